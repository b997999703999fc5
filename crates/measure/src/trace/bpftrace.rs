//! The `bpftrace` process: started, listened to, and gone with its owner.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::missing::{NoTrace, has_tracefs};
use super::reading::{Reader, TraceSample};
use crate::os::Root;

/// Compiling the program takes a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Readings come every 100 ms; one that is later than this has met a machine that is busy beyond measure.
const LONGEST_WAIT: Duration = Duration::from_millis(300);

/// Entries of each table in the kernel: calls and requests that may be in flight at once, and buckets of histograms. Memory for all of
/// them is taken at the start, some of it for each processor.
const TABLE_ENTRIES: &str = "8192";

/// More of what it complains about than this says nothing new.
const MAX_WORDS: u64 = 64 << 10;

/// A running `bpftrace`. It prints into a pipe ten times a second, so it is killed by its next print when this process is gone,
/// however that came about.
#[derive(Debug)]
pub(super) struct Bpftrace {
    child: Child,
    shared: Arc<Shared>,
    listeners: Vec<JoinHandle<()>>,
    clock: ClockId,
}

#[derive(Debug, Default)]
struct Shared {
    heard: Mutex<Heard>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Heard {
    latest: Option<TraceSample>,
    words: String,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done`, the end of the process, or the time limit.
    fn wait(&self, limit: Duration, done: impl Fn(&Heard) -> bool) -> MutexGuard<'_, Heard> {
        let waited = self.news.wait_timeout_while(self.lock(), limit, |heard| !heard.ended && !done(heard));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Bpftrace {
    /// Runs the program and waits until it counts.
    pub(super) fn start(root: &Root, program: &str) -> Result<Self, NoTrace> {
        let mut child = command(root, program).spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let shared = Arc::new(Shared::default());
        let mut this = Self { child, shared, listeners: Vec::new(), clock: ClockId::Monotonic };
        let words = this.listen("trace words", {
            let shared = Arc::clone(&this.shared);
            move || listen_to_words(stderr, &shared)
        })?;
        let readings = this.listen("trace readings", {
            let shared = Arc::clone(&this.shared);
            move || listen_to_readings(stdout, words, &shared)
        })?;
        this.listeners.push(readings);
        this.wait_until_it_counts()?;
        Ok(this)
    }

    fn listen(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, NoTrace> {
        Ok(thread::Builder::new().name(name.into()).spawn(body)?)
    }

    /// A reading says that every probe is attached: it prints nothing before.
    fn wait_until_it_counts(&mut self) -> Result<(), NoTrace> {
        let heard = self.shared.wait(PATIENCE, |heard| heard.latest.is_some());
        if let Some(first) = &heard.latest {
            self.clock = clock_of(first.at_ns);
            return Ok(());
        }
        if heard.ended {
            return Err(NoTrace::from_words(&heard.words));
        }
        Err(NoTrace::TooSlow { seconds: PATIENCE.as_secs() })
    }

    /// A reading that was made after the call, or the last one there is.
    pub(super) fn now(&self) -> Option<TraceSample> {
        let now = read(self.clock);
        let heard =
            self.shared.wait(LONGEST_WAIT, |heard| heard.latest.as_ref().is_some_and(|latest| latest.at_ns >= now));
        heard.latest.clone()
    }

    /// Its process number.
    #[cfg(test)]
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Why it has ended by itself, if it has.
    pub(super) fn ended(&self) -> Option<String> {
        let heard = self.shared.lock();
        heard.ended.then(|| NoTrace::from_words(&heard.words).to_string())
    }
}

impl Drop for Bpftrace {
    fn drop(&mut self) {
        // Killed rather than asked: then it prints no last sums, and the kernel takes back all that it held.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for listener in self.listeners.drain(..) {
            let _ = listener.join();
        }
    }
}

/// In a process group of its own, so that Ctrl-C reaches us alone.
fn command(root: &Root, program: &str) -> Command {
    let flags = ["-f", "json", "-B", "line", "-e", program];
    let mut command = if has_tracefs(root) {
        let mut command = Command::new("bpftrace");
        command.args(flags);
        command
    } else {
        // The tracing file system is mounted where only this one process sees it: nothing is changed on the machine.
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c"]);
        command.args(["mount -t tracefs nodev /sys/kernel/tracing && exec bpftrace \"$@\"", "sh"]).args(flags);
        command
    };
    // Later versions call it by the second name.
    command.env("BPFTRACE_MAP_KEYS_MAX", TABLE_ENTRIES).env("BPFTRACE_MAX_MAP_KEYS", TABLE_ENTRIES);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command
}

fn listen_to_words(stderr: Option<ChildStderr>, shared: &Shared) {
    let Some(mut stderr) = stderr else { return };
    let mut words = Vec::new();
    let _ = stderr.by_ref().take(MAX_WORDS).read_to_end(&mut words);
    shared.lock().words = String::from_utf8_lossy(&words).into_owned();
    // Whatever else it says must not block it.
    let _ = std::io::copy(&mut stderr, &mut std::io::sink());
}

fn listen_to_readings(stdout: Option<ChildStdout>, words: JoinHandle<()>, shared: &Shared) {
    let mut reader = Reader::default();
    for line in stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()) {
        let Ok(line) = line else { break };
        if let Some(reading) = reader.line(&line) {
            shared.lock().latest = Some(reading);
            shared.news.notify_all();
        }
    }
    // What it had to say comes before the news that it has ended.
    let _ = words.join();
    shared.lock().ended = true;
    shared.news.notify_all();
}

/// The clock that `nsecs` comes from: later versions count time asleep too.
fn clock_of(instant_ns: u64) -> ClockId {
    let clocks = [ClockId::Monotonic, ClockId::Boottime];
    clocks.into_iter().min_by_key(|clock| read(*clock).abs_diff(instant_ns)).unwrap_or(ClockId::Monotonic)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
