//! An instance of the kernel's tracing of our own: what others trace is not touched, and it goes when we go.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use files::kernel;

use super::RecordError;
use super::ring::{PageLayout, events};

/// Where the kernel's tracing is, since 4.1 and before.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PREFIX: &str = "plimsoll-";
/// A part of the ring buffer that is handed over at once, where the kernel lets that be chosen (6.8): a call for each costs less.
const PART_KB: u64 = 64;

/// An instance of the kernel's tracing.
#[derive(Debug)]
pub(super) struct Instance {
    path: PathBuf,
    layout: PageLayout,
    /// One of each processor.
    pipes: Vec<File>,
    page: Vec<u8>,
    /// Of each processor.
    buffer_bytes: u64,
}

/// What the ring buffer lost, in events.
pub(super) fn lost(stats: &str) -> u64 {
    // `commit overrun` is of events inside events, and counts what is in none of the others.
    let keys = ["overrun:", "commit overrun:", "dropped events:"];
    stats
        .lines()
        .filter_map(|line| keys.iter().find_map(|key| line.strip_prefix(key)))
        .filter_map(|value| value.trim().parse::<u64>().ok())
        .sum()
}

impl Instance {
    /// Makes one whose ring buffer has so many bytes for each processor.
    pub(super) fn make(buffer_bytes: u64) -> Result<Self, RecordError> {
        let root = PLACES.iter().map(Path::new).find(|place| place.join("events/block").is_dir());
        let root = root.ok_or_else(|| {
            let is_there = PLACES.iter().any(|place| Path::new(place).is_dir());
            if is_there { RecordError::NotMounted } else { RecordError::NoTracing }
        })?;
        let header = header_page(root).map_err(at("read", root))?;
        let layout = PageLayout::parse(&header).ok_or(RecordError::Unknown { what: "events/header_page" })?;
        let instances = root.join("instances");
        remove_left_behind(&instances);
        let path = instances.join(format!("{PREFIX}{}", std::process::id()));
        kernel::make_directory(&path).map_err(at("make", &path))?;
        let mut instance =
            Self { path, layout, pipes: Vec::new(), page: vec![0; (PART_KB as usize) << 10], buffer_bytes };
        // Another recording that begins must not take it for one that was left behind.
        let held = kernel::open_stream(&instance.path.join("tracing_on")).map_err(at("open", &instance.path))?;
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        // What is lost is the newest, and is counted: what has been recorded stays whole.
        instance.set("options/overwrite", "0")?;
        // Not there before 6.8; pages of 4 KiB then.
        let _ = instance.set("buffer_subbuf_size_kb", &PART_KB.to_string());
        instance.set("buffer_size_kb", &(buffer_bytes >> 10).max(1).to_string())?;
        instance.pipes = instance.open_pipes()?;
        drop(held);
        Ok(instance)
    }

    pub(super) fn set(&self, name: &str, value: &str) -> Result<(), RecordError> {
        let path = self.path.join(name);
        kernel::set(&path, value).map_err(at("write to", &path))
    }

    /// Whether a file of the instance is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// The text of a file of the instance.
    pub(super) fn text(&self, name: &str) -> Result<String, RecordError> {
        let path = self.path.join(name);
        fs::read_to_string(&path).map_err(at("read", &path))
    }

    fn processors(&self) -> Result<Vec<PathBuf>, RecordError> {
        let path = self.path.join("per_cpu");
        let names = fs::read_dir(&path).map_err(at("read", &path))?;
        let mut paths: Vec<PathBuf> = names.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        Ok(paths)
    }

    fn open_pipes(&self) -> Result<Vec<File>, RecordError> {
        let open = |processor: PathBuf| {
            let path = processor.join("trace_pipe_raw");
            kernel::open_stream(&path).map_err(at("open", &path))
        };
        self.processors()?.into_iter().map(open).collect()
    }

    /// Memory of the ring buffers of all processors, in bytes.
    pub(super) fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes.saturating_mul(super::online_processors())
    }

    /// Calls `on_event` for everything that is in the ring buffer. Of each processor it ends with the page that goes beyond `until_ns`:
    /// events may come faster than they are read. True if a buffer was half full, so that it may have lost events.
    pub(super) fn drain(&mut self, until_ns: u64, mut on_event: impl FnMut(u64, &[u8])) -> Result<bool, RecordError> {
        let mut was_filled = false;
        for pipe in &mut self.pipes {
            let (mut last_ns, mut taken_bytes) = (0, 0_u64);
            while last_ns < until_ns {
                match pipe.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => {
                        taken_bytes = taken_bytes.saturating_add(length as u64);
                        events(&self.page[..length], self.layout, |at_ns, bytes| {
                            last_ns = at_ns;
                            on_event(at_ns, bytes);
                        });
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(at("read", &self.path)(error)),
                }
            }
            was_filled |= taken_bytes >= self.buffer_bytes / 2;
        }
        Ok(was_filled)
    }

    /// Whether the kernel has threads to watch: it removes those that end. True where that is not known.
    pub(super) fn has_watched(&self) -> bool {
        let mut first = [0; 16];
        let read = File::open(self.path.join("set_event_pid")).and_then(|mut file| file.read(&mut first));
        read.map_or(true, |length| length > 0)
    }

    /// Events that were lost so far.
    pub(super) fn lost(&self) -> Option<u64> {
        let processors = self.processors().ok()?;
        processors.into_iter().map(|path| Some(lost(&fs::read_to_string(path.join("stats")).ok()?))).sum()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.pipes.clear();
        quieten(&self.path);
        // Busy while an event is being written.
        for _ in 0..50 {
            match kernel::remove_directory(&self.path) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                _ => return,
            }
        }
    }
}

/// Ends what the events of an instance cost, even if the instance itself cannot be removed. Without a list of processes those of all
/// would be events: so the list goes last.
fn quieten(instance: &Path) {
    let _ = kernel::set(&instance.join("tracing_on"), "0");
    if kernel::set(&instance.join("events/enable"), "0").is_ok() {
        let _ = kernel::clear(&instance.join("set_event_pid"));
    }
}

/// The kernel gives this text to the first call that reads, as far as it fits, and nothing to the next one.
fn header_page(root: &Path) -> io::Result<String> {
    let mut text = vec![0; 1 << 16];
    let length = File::open(root.join("events/header_page"))?.read(&mut text)?;
    Ok(String::from_utf8_lossy(&text[..length]).into_owned())
}

/// Removes instances of recordings that were killed: their events would cost this machine for ever. The kernel keeps those that are read,
/// and a number may be that of another process by now, in a container even our own. The removal switches the events off: to do so before
/// would harm a recording that goes on.
fn remove_left_behind(instances: &Path) {
    for (path, _) in ours(instances) {
        let _ = kernel::remove_directory(&path);
    }
}

/// Instances of recordings whose process is gone, as far as the numbers of processes show: the kernel traces for them until the next
/// recording begins, or until they are removed. Nothing is written.
pub fn left_behind() -> Vec<PathBuf> {
    let root = PLACES.iter().map(Path::new).find(|place| place.join("instances").is_dir());
    root.map(|root| without_process(&root.join("instances"), Path::new("/proc"))).unwrap_or_default()
}

fn without_process(instances: &Path, processes: &Path) -> Vec<PathBuf> {
    ours(instances).filter(|(_, process)| !processes.join(process).exists()).map(|(path, _)| path).collect()
}

/// Each instance that a recording of ours made, and the number of its process.
fn ours(instances: &Path) -> impl Iterator<Item = (PathBuf, String)> {
    fs::read_dir(instances).into_iter().flatten().flatten().filter_map(|entry| {
        let process = entry.file_name().to_str()?.strip_prefix(PREFIX)?.to_owned();
        Some((entry.path(), process))
    })
}

/// An error of the system at a file of the kernel.
fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordError {
    let path = path.display().to_string();
    move |source| match source.kind() {
        ErrorKind::PermissionDenied => RecordError::NotPermitted { path },
        _ => RecordError::Kernel { action, path, source },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{lost, without_process};

    #[test]
    fn instances_whose_process_is_gone_were_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let [instances, processes] = ["instances", "proc"].map(|name| folder.path().join(name));
        for path in ["instances/plimsoll-7", "instances/plimsoll-8", "instances/others-9", "proc/7"] {
            fs::create_dir_all(folder.path().join(path)).expect("made");
        }
        assert_eq!(without_process(&instances, &processes), [instances.join("plimsoll-8")]);
        assert!(without_process(&folder.path().join("none"), &processes).is_empty());
    }

    #[test]
    fn whatever_the_ring_buffer_did_not_keep_is_counted() {
        let stats = "entries: 5\noverrun: 3\ncommit overrun: 1\nbytes: 77\noldest event ts:  1.000000\n\
                     now ts:  2.0\ndropped events: 10\nread events: 9\n";
        assert_eq!(lost(stats), 14);
    }
}
