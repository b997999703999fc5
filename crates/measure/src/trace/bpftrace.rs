//! The `bpftrace` process: started, listened to, and gone with its owner.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use super::program::Event;
use super::{NoTrace, has_tracefs};
use crate::os::Root;
use model::record::TraceStats;

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

/// The sums since the start at one instant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TraceSample {
    /// The kernel's clock when they were printed.
    pub(super) at_ns: u64,
    sums: BTreeMap<u64, Sums>,
}

/// The sums of one event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sums {
    bytes: u64,
    total_ns: u64,
    buckets: Vec<u64>,
}

impl TraceSample {
    /// What happened to one event since `earlier`.
    pub(super) fn since(&self, earlier: &Self, event: &Event) -> TraceStats {
        let none = Sums::default();
        let [later, before] = [self, earlier].map(|reading| reading.sums.get(&event.number).unwrap_or(&none));
        let before_in = |bucket: usize| before.buckets.get(bucket).copied().unwrap_or(0);
        // Sums only grow.
        let counts = later.buckets.iter().enumerate().map(|(bucket, count)| count.saturating_sub(before_in(bucket)));
        let mut buckets: Vec<u64> = counts.collect();
        buckets.truncate(buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1));
        TraceStats {
            layer: event.layer.to_owned(),
            event: event.name.clone(),
            device: event.device.clone(),
            elapsed_ns: self.at_ns.saturating_sub(earlier.at_ns),
            count: buckets.iter().sum(),
            counted_by_kernel: None,
            bytes: later.bytes.saturating_sub(before.bytes),
            total_ns: later.total_ns.saturating_sub(before.total_ns),
            buckets,
        }
    }
}

/// Puts readings together from lines.
#[derive(Debug, Default)]
pub(super) struct Reader(Option<TraceSample>);

impl Reader {
    /// Takes the next line; gives a reading when it was the last of one. What is not known is passed over.
    pub(super) fn line(&mut self, line: &str) -> Option<TraceSample> {
        let line: Value = serde_json::from_str(line).ok()?;
        let data = line.get("data")?;
        if line.get("type")?.as_str()? == "printf" {
            let words = data.as_str()?.trim();
            if words == "end" {
                return self.0.take();
            }
            let at_ns = words.strip_prefix("begin ")?.parse().ok()?;
            self.0 = Some(TraceSample { at_ns, sums: BTreeMap::new() });
            return None;
        }
        let sums = &mut self.0.as_mut()?.sums;
        for (map, events) in data.as_object()? {
            for (event, value) in events.as_object().into_iter().flatten() {
                let Ok(event) = event.parse() else { continue };
                let of_event: &mut Sums = sums.entry(event).or_default();
                match map.as_str() {
                    "@us" => of_event.buckets = buckets(value),
                    "@ns" => of_event.total_ns = value.as_u64().unwrap_or(0),
                    "@bytes" => of_event.bytes = value.as_u64().unwrap_or(0),
                    _ => {}
                }
            }
        }
        None
    }
}

/// The counts of a histogram: element `k` those from 2^(k-1) up to 2^k, element 0 those below 1.
fn buckets(histogram: &Value) -> Vec<u64> {
    let mut counts = Vec::new();
    for bucket in histogram.as_array().into_iter().flatten() {
        // Only a bucket below zero has no lower bound, and no time is below zero.
        let number = |name: &str| bucket.get(name).and_then(Value::as_u64);
        let (Some(least), Some(count)) = (number("min"), number("count")) else { continue };
        let element = (u64::BITS - least.leading_zeros()) as usize;
        if counts.len() <= element {
            counts.resize(element + 1, 0);
        }
        counts[element] += count;
    }
    counts
}
