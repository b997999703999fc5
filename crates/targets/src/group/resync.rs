//! Making copies alike again before they are read: after a crash those that load was changing, and for members that were away
//! what was changed meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::buffer::Buffer;
use super::error::GroupError;
use super::map::{FileMap, Range};
use super::state::State;
use measure::ChannelCounter;

/// Length of what is compared at once.
const STEP_BYTES: u32 = 1 << 20;

/// What was done to make copies alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resynced {
    /// Bytes of copies that were compared.
    pub compared_bytes: u64,
    /// Bytes of copies that differed and were written again.
    pub copied_bytes: u64,
    /// Bytes of which no copy could be read.
    pub unreadable_bytes: u64,
}

/// What is to be made alike.
pub struct Resync<'a> {
    /// The group.
    pub state: &'a State,
    /// Whether copies on current members may differ, too.
    pub after_crash: bool,
    /// Members that were away, and whether each needs everything.
    pub behind: Vec<(usize, bool)>,
    /// Reported after each step: bytes of files done, and in all.
    pub progress: &'a dyn Fn(u64, u64),
    /// Ends it early.
    pub stop: &'a AtomicBool,
}

impl Resync<'_> {
    /// Goes through all files. Members of `behind` that could not be brought up to date are left out of the list that comes
    /// back with the figures.
    ///
    /// # Errors
    /// [`GroupError::Interrupted`]; or when current members fail and the redundancy does not bear it.
    pub fn run(mut self, files: &[Arc<FileMap>]) -> Result<(Resynced, Vec<usize>), GroupError> {
        let mut done = Resynced::default();
        let unit = self.state.shape.unit_bytes;
        let total: u64 = files.iter().map(|file| u64::from(file.extents()) * unit).sum();
        let mut walked = 0;
        for file in files {
            for extent in 0..file.extents() {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(GroupError::Interrupted);
                }
                self.extent(file, extent, &mut done)?;
                walked += unit;
                (self.progress)(walked, total);
            }
        }
        Ok((done, self.behind.into_iter().map(|(member, _)| member).collect()))
    }

    /// Copies that have to be compared with the others.
    fn targets(&self, file: &FileMap, extent: u32) -> Vec<usize> {
        let changed = self.state.is_changed(file.slot, file.part(extent));
        let is_target = |member: u16| match self.behind.iter().find(|(behind, _)| *behind == usize::from(member)) {
            Some((_, whole)) => *whole || changed,
            None => self.after_crash && changed && self.state.is_online(member),
        };
        let places = file.places(extent);
        (0..places.len()).filter(|copy| is_target(places[*copy].member)).collect()
    }

    fn extent(&mut self, file: &FileMap, extent: u32, done: &mut Resynced) -> Result<(), GroupError> {
        let targets = self.targets(file, extent);
        if targets.is_empty() {
            return Ok(());
        }
        let unit = self.state.shape.unit_bytes as u32;
        for within in (0..unit).step_by(STEP_BYTES as usize) {
            self.step(file, Range { extent, within, bytes: STEP_BYTES.min(unit - within) }, &targets, done)?;
        }
        Ok(())
    }

    fn step(&mut self, file: &FileMap, range: Range, targets: &[usize], done: &mut Resynced) -> Result<(), GroupError> {
        let places = file.places(range.extent);
        let (mut right, mut other) = (Buffer::new(range.bytes as usize), Buffer::new(range.bytes as usize));
        // The first copy that can be read is right: after a crash any is, as long as all are alike afterwards.
        let source = (0..places.len()).find(|copy| file.read_copy(range, *copy, &mut right).is_ok());
        let Some(source) = source else {
            done.unreadable_bytes += u64::from(range.bytes);
            // What cannot be read now was not lost by those that were away: they stay so, and may have it still.
            self.behind.retain(|(member, _)| !places.iter().any(|place| usize::from(place.member) == *member));
            return Ok(());
        };
        for copy in targets.iter().copied().filter(|copy| *copy != source) {
            let member = usize::from(places[copy].member);
            let is_behind = self.behind.iter().any(|(behind, _)| *behind == member);
            if !is_behind && !self.state.is_online(member as u16) {
                continue;
            }
            done.compared_bytes += u64::from(range.bytes);
            let read = self
                .state
                .file(member)
                .and_then(|at| at.read_exact_at(&mut other, file.offset(places[copy], range.within)));
            if read.is_ok() && right[..] == other[..] {
                continue;
            }
            match file.write_copy(range, copy, &right) {
                Ok(()) => {
                    done.copied_bytes += u64::from(range.bytes);
                    self.state.count(member, ChannelCounter::ResyncedBytes, u64::from(range.bytes));
                }
                Err(error) if is_behind => {
                    let name = &self.state.members[member].name;
                    self.state.lock().notes.push(format!("member `{name}` cannot be resynchronised: {error}"));
                    self.behind.retain(|(behind, _)| *behind != member);
                }
                Err(error) => self.state.drop_member(member, &format!("a write failed: {error}"), false)?,
            }
        }
        Ok(())
    }
}
