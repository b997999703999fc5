//! Commits on a block device, without a file system: what the layers above stand on.
//!
//! | bytes of the device | what |
//! | --- | --- |
//! | 0 to 4,095 | whose the others are, as text |
//! | 4,096 to 8,191 | whether the load has ended |
//! | from 512 KiB, 4,096 of them | the first page again: others write to the beginning of disks, such as firmware that restores partitions |
//! | from 1 MiB | the slots of each session, one session after the other |
//!
//! All of it is made durable before the load begins. A page is cleared only if it is ours.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use files::How;

use crate::blocks::{Session, Slots, is_of_the_media, read_at_once, whole, write_at_once};
use crate::kept::{Heading, Kept, Named, Problem};
use crate::opening::{FileCommits, Means};
use model::units::Bytes;
use targets::block::safety::{self, Checked, PathKind, Permission, Purpose};
use targets::database::DropPlan;
use targets::durable::{
    CommitTarget, Committer, Committers, DeviceIdentity, Found, Made, Place, Presence, Shape, whereabouts,
};
use targets::group::buffer::{Buffer, PAGE_BYTES};
use targets::{FileContext as _, TargetError};

/// How the text begins that says whose the others are.
const HEADING: &str = "plimsoll durable device\n";
/// Where the text is.
const HEADINGS_AT: [u64; 2] = [0, 1 << 19];
/// Where the mark is that the load has ended, and how it begins.
const MARK_AT: u64 = PAGE_BYTES as u64;
const MARK: &str = "ended ";
/// Programs that look at new devices hold each for a moment.
const CLAIMS: u32 = 5;
const BETWEEN_CLAIMS: Duration = Duration::from_millis(100);
/// Where the slots begin.
const SLOTS_AT: u64 = 1 << 20;
/// How devices are named that keep nothing without power.
const IN_MEMORY: [&str; 2] = ["zram", "ram"];

/// Commits on a block device.
#[derive(Debug)]
pub struct CommitDevice {
    path: PathBuf,
    commits: FileCommits,
    permission: Permission,
    made: Option<OwnDevice>,
    notes: Vec<String>,
}

/// A device that this process has made a load on.
#[derive(Debug)]
struct OwnDevice {
    shape: Shape,
    /// Keeps others away as long as this lives.
    checked: Checked,
    /// Whether anything was written: before that, nothing there is ours.
    has_written: bool,
}

/// What heads a device.
enum Headed {
    /// No load of commits.
    Nothing,
    /// One.
    Load(Heading),
    /// That cannot be read, for this reason.
    Unreadable(io::Error),
}

impl CommitDevice {
    /// The device at `path`, which may be overwritten if `permission` names it. Nothing is looked at yet.
    pub fn new(path: PathBuf, commits: FileCommits, permission: Permission) -> Self {
        Self { path, commits, permission, made: None, notes: Vec::new() }
    }

    fn named(&self) -> Named {
        Named { kind: "raw", path: self.path.clone() }
    }

    /// The slots of a session on the device.
    fn slots(&self, shape: &Shape, session: u32) -> Slots {
        let block_bytes = self.commits.block_bytes as usize;
        let start = SLOTS_AT + u64::from(session) * u64::from(shape.blocks) * block_bytes as u64;
        Slots { path: self.path.clone(), start, block_bytes }
    }

    /// The device, opened to be read, and what heads it.
    fn look(&self) -> Result<(File, Headed), TargetError> {
        let path = &self.path;
        let checked = safety::check(std::slice::from_ref(path), Purpose::Read)?;
        if checked.iter().any(|one| one.kind() != PathKind::BlockDevice) {
            return Err(Problem::NoDevice { at: self.named() }.into());
        }
        let file = files::open_to_read(path, How { direct: true, ..How::default() }).of_file("open", path)?;
        let headed = headed(&file).of_file("read", path)?;
        Ok((file, headed))
    }

    /// Keeps others from using the device, so that nothing changes there meanwhile.
    fn claim(&self, headed: &Headed) -> Result<File, TargetError> {
        let mut claims = 0;
        loop {
            claims += 1;
            match files::claim_device(&self.path) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy && claims < CLAIMS => {
                    std::thread::sleep(BETWEEN_CLAIMS);
                }
                Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                    // The number may be of a process before the cut, and is of another one now.
                    let name = |process: &str| std::fs::read_to_string(format!("/proc/{process}/comm")).ok();
                    let holder = match headed {
                        Headed::Load(Heading::Kept(kept)) if name(&kept.process.to_string()) == name("self") => {
                            format!("process {}", kept.process)
                        }
                        _ => "a mount, a volume above it, or another process".to_owned(),
                    };
                    return Err(Problem::InUse { at: self.named(), holder }.into());
                }
                claimed => return claimed.of_file("claim", &self.path),
            }
        }
    }

    fn fill(&mut self, shape: &Shape, stop: &AtomicBool) -> Result<Made, TargetError> {
        let path = self.path.clone();
        let named = self.named();
        let Some(own) = &mut self.made else { return Err(TargetError::Stopped) };
        let file = own.checked.open_to_write(How { direct: true, ..How::default() })?;
        let bytes = length_of(&file).of_file("find the size of", &path)?;
        let needed = Bytes(SLOTS_AT + shape.slots() * u64::from(self.commits.block_bytes));
        if needed.0 > bytes {
            return Err(Problem::NoSpace { at: named, needed, available: Bytes(bytes) }.into());
        }
        // Another load may have come and gone since it was looked at.
        match headed(&file).of_file("read", &path)? {
            Headed::Nothing => own.has_written = true,
            Headed::Load(_) => return Err(Problem::Left { at: named }.into()),
            Headed::Unreadable(error) => return Err(error).of_file("read", &path),
        }
        // First, so that whatever is left of it is known for ours.
        let kept = serde_json::to_string(&Kept::new(shape, false)).map_err(io::Error::from).of_file("write", &path)?;
        for at in HEADINGS_AT {
            write_text(&file, &format!("{HEADING}{kept}\n"), at).of_file("write", &path)?;
        }
        write_text(&file, "", MARK_AT).of_file("write", &path)?;
        for session in 0..shape.sessions {
            let failed = |source| TargetError::File { action: "write", path: path.clone(), source };
            self.slots(shape, session).blank(&file, shape.blocks, stop, failed)?;
        }
        file.sync_all().of_file("make durable", &path)?;
        Ok(Made {
            place: Place::Device(DeviceIdentity::of(&path, bytes)),
            at: whereabouts(&path),
            words: format!("block device of {}", Bytes(bytes)),
            is_here: true,
            started_s: None,
            loses: Vec::new(),
            whole: whole(&path, self.commits.block_bytes),
        })
    }

    /// The place where the target was made, if the one that is there now is another.
    fn elsewhere(&self, file: &File, made: &Made) -> Result<Option<Presence>, TargetError> {
        let bytes = length_of(file).of_file("find the size of", &self.path)?;
        let now = DeviceIdentity::of(&self.path, bytes);
        let at = whereabouts(&self.path);
        Ok(match &made.place {
            Place::Device(then) if then.is_same(&now).unwrap_or(at == made.at) => None,
            _ => Some(Presence::Elsewhere {
                made: format!("{}, {}", made.at, made.words),
                now: format!("{at}, block device of {}", Bytes(now.bytes)),
            }),
        })
    }
}

fn length_of(file: &File) -> io::Result<u64> {
    let mut end = file;
    io::Seek::seek(&mut end, io::SeekFrom::End(0))
}

/// What heads a device: what one of the two pages says that is whole, else what is left of either.
fn headed(file: &File) -> io::Result<Headed> {
    let mut found = Headed::Nothing;
    for at in HEADINGS_AT {
        let text = match text_at(file, at) {
            Ok(text) => text,
            Err(error) if is_of_the_media(&error) => {
                if matches!(found, Headed::Nothing) {
                    found = Headed::Unreadable(error);
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        match text.strip_prefix(HEADING).map(|text| Heading::read(text.trim_end_matches(['\0', '\n']))) {
            None => {}
            Some(Heading::Damaged) => {
                if matches!(found, Headed::Nothing) {
                    found = Headed::Load(Heading::Damaged);
                }
            }
            Some(whole) => return Ok(Headed::Load(whole)),
        }
    }
    Ok(found)
}

/// The text of a page of the device; empty where other bytes are.
fn text_at(file: &File, offset: u64) -> io::Result<String> {
    let mut page = Buffer::new(PAGE_BYTES);
    read_at_once(file, &mut page, offset)?;
    Ok(String::from_utf8(page.to_vec()).unwrap_or_default())
}

/// Writes a page that begins with `text`, durably.
fn write_text(file: &File, text: &str, offset: u64) -> io::Result<()> {
    let mut page = Buffer::new(PAGE_BYTES);
    let room = page.get_mut(..text.len()).ok_or(ErrorKind::InvalidInput)?;
    room.copy_from_slice(text.as_bytes());
    write_at_once(file, &page, offset)?;
    file.sync_all()
}

impl CommitTarget for CommitDevice {
    fn make(&mut self, shape: &Shape, stop: &AtomicBool) -> Result<Made, TargetError> {
        let (file, headed) = self.look()?;
        drop(file);
        match headed {
            Headed::Nothing => {}
            Headed::Load(_) => {
                // A load under way is named as such.
                drop(self.claim(&headed)?);
                return Err(Problem::Left { at: self.named() }.into());
            }
            Headed::Unreadable(error) => return Err(error).of_file("read", &self.path),
        }
        let name = whereabouts(&self.path);
        let name = name.rsplit('/').next().unwrap_or_default();
        if IN_MEMORY.iter().any(|kind| name.strip_prefix(kind).is_some_and(|rest| rest.parse::<u32>().is_ok())) {
            return Err(Problem::InMemory { at: self.named(), on: name.to_owned() }.into());
        }
        let checked = safety::check(std::slice::from_ref(&self.path), Purpose::Write(&self.permission))?;
        let checked = checked.into_iter().next().ok_or(TargetError::Stopped)?;
        self.notes.extend_from_slice(checked.notes());
        self.made = Some(OwnDevice { shape: *shape, checked, has_written: false });
        let made = self.fill(shape, stop);
        if made.is_err() {
            // The first error is the one to report.
            let _ = self.unmake();
        }
        made
    }

    fn committers(&self) -> Box<dyn Committers + '_> {
        Box::new(Sessions(self))
    }

    fn end(&mut self) -> Result<(), TargetError> {
        let Some(own) = &self.made else { return Ok(()) };
        let file = own.checked.open_to_write(How { direct: true, ..How::default() })?;
        write_text(&file, &format!("{MARK}{}\n", own.shape.run), MARK_AT).of_file("write", &self.path)
    }

    fn unmake(&mut self) -> Result<(), TargetError> {
        match self.made.take() {
            Some(own) if own.has_written => clear(&own.checked),
            _ => Ok(()),
        }
    }

    fn read(
        &mut self,
        shape: &Shape,
        made: &Made,
        stop: &AtomicBool,
        visit: &mut dyn FnMut(u32, u32, Found),
    ) -> Result<Presence, TargetError> {
        let (file, headed) = self.look()?;
        if let Some(elsewhere) = self.elsewhere(&file, made)? {
            return Ok(elsewhere);
        }
        let mut missing = Vec::new();
        let (mut is_ours, mut is_unread) = (false, false);
        match &headed {
            Headed::Load(Heading::OfVersion(format)) => {
                return Err(Problem::OtherVersion { at: self.named(), format: *format }.into());
            }
            Headed::Load(Heading::Kept(kept)) if kept.shape.run != shape.run => {
                return Ok(Presence::OtherRun { run: kept.shape.run });
            }
            Headed::Load(Heading::Kept(kept)) if kept.shape == *shape => is_ours = true,
            Headed::Load(_) => missing.push("both headings of the device are damaged".to_owned()),
            Headed::Nothing => missing.push("both headings of the device are gone".to_owned()),
            Headed::Unreadable(_) => is_unread = true,
        }
        let _claim = self.claim(&headed)?;
        let mut is_short = false;
        for session in 0..shape.sessions {
            let mut look = |session, slot, found: Found| {
                is_ours |= match &found {
                    Found::Whole { .. } => true,
                    Found::Torn(torn) => torn.newest.is_some(),
                    Found::Foreign(owner) => owner.run == shape.run,
                    Found::Blank | Found::Unreadable(_) => false,
                };
                is_unread |= matches!(found, Found::Unreadable(_));
                visit(session, slot, found);
            };
            is_short |= self.slots(shape, session).read(&file, (shape, session), stop, &mut look)?;
        }
        // A disk that was wiped, or exchanged for one of the same size, looks like that.
        if !is_ours && !is_unread {
            return Ok(Presence::Gone { what: format!("everything on `{}`", self.path.display()), started_s: None });
        }
        if is_short {
            missing.push("the device is shorter than it was".to_owned());
        }
        let has_ended = text_at(&file, MARK_AT).is_ok_and(|mark| mark.starts_with(MARK));
        Ok(Presence::There { has_ended, started_s: None, missing, loses: Vec::new() })
    }

    fn plan_drop(&mut self, _: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        let (file, headed) = self.look()?;
        drop(file);
        match &headed {
            Headed::Load(_) => {}
            Headed::Nothing => return Err(Problem::Nothing { at: self.named() }.into()),
            Headed::Unreadable(error) => {
                let error = io::Error::new(error.kind(), error.to_string());
                return Err(error).of_file("read", &self.path);
            }
        }
        drop(self.claim(&headed)?);
        // Only pages that are ours are cleared, whatever else is there.
        let ours = Permission { destroy: vec![self.path.to_string_lossy().into_owned()], destroy_signature: true };
        let checked = safety::check(std::slice::from_ref(&self.path), Purpose::Write(&ours))?;
        let checked = checked.into_iter().next().ok_or(TargetError::Stopped)?;
        if !checked.notes().is_empty() {
            let holder = "another process, which may write to it".to_owned();
            return Err(Problem::InUse { at: self.named(), holder }.into());
        }
        Ok(Box::new(HeadingToRemove { checked }))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        Ok(())
    }
}

/// What says that a device holds a load. The blocks behind it stay as they are: they are not the user's data any more.
struct HeadingToRemove {
    checked: Checked,
}

impl DropPlan for HeadingToRemove {
    fn what(&self) -> String {
        format!("the heading of a load of commits on `{}`", self.shown())
    }

    fn items(&self) -> Vec<(u64, String)> {
        vec![(2 * MARK_AT, self.shown())]
    }

    fn run(self: Box<Self>, _: &AtomicBool) -> Result<Option<String>, TargetError> {
        clear(&self.checked).map(|()| None)
    }
}

impl HeadingToRemove {
    fn shown(&self) -> String {
        self.checked.path().display().to_string()
    }
}

/// Removes the mark and the headings, these last. What others have written in their place stays.
fn clear(checked: &Checked) -> Result<(), TargetError> {
    let path = checked.path();
    let file = checked.open_to_write(How { direct: true, ..How::default() })?;
    let [first, second] = HEADINGS_AT;
    for (at, begins) in [(MARK_AT, MARK), (second, HEADING), (first, HEADING)] {
        if text_at(&file, at).of_file("read", path)?.starts_with(begins) {
            write_text(&file, "", at).of_file("write", path)?;
        }
    }
    Ok(())
}

/// The sessions of a device.
struct Sessions<'a>(&'a CommitDevice);

impl Committers for Sessions<'_> {
    fn open(&self, session: u32) -> Result<Box<dyn Committer + '_>, TargetError> {
        let CommitDevice { commits: FileCommits { means, .. }, made, .. } = self.0;
        let own = made.as_ref().ok_or(TargetError::Stopped)?;
        let how = How { direct: true, durable: *means == Means::Dsync, ..How::default() };
        let file = own.checked.open_to_write(how)?;
        Ok(Box::new(Session::new(file, self.0.slots(&own.shape, session), *means, own.shape, session)))
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
