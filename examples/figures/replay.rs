//! Replays beside fio's: when requests of a recorded trace reach the device, and what that costs.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Bench, Failure, Goal, children_cpu, figure, in_turn, median, ratios, text};
use test_support::loop_device::LoopDevice;
use trace::{TraceFile, TraceSource};

/// Requests per second that are recorded.
const RATE: &str = "8000";

/// How far arrivals were from their recorded times, at p99 in microseconds, and the processor time, in seconds.
struct Replayed {
    error_us: f64,
    cpu_s: f64,
    requests: usize,
}

impl Bench {
    pub(crate) fn replay(&self) -> Result<(), Failure> {
        let folder = self.runs.with_file_name("replay");
        std::fs::create_dir_all(&folder)?;
        let image = folder.join("image");
        std::fs::File::create(&image)?.set_len(1 << 30)?;
        text(
            Command::new("dd")
                .args(["if=/dev/urandom", "bs=1M", "count=1024", "oflag=direct"])
                .arg(format!("of={}", image.display())),
        )?;
        let device = LoopDevice::over(&image).ok_or("no loop device can be made")?;
        let path = device.path().display().to_string();
        let trace = folder.join("recorded.trace");
        let recorder = self.record(&device.name(), &trace)?;
        let seconds = self.seconds.to_string();
        let runs = self.runs.display().to_string();
        let load = ["io", "run", "--quiet", "--runs", &runs, "--path", &path, "--pattern", "randread", "--rate", RATE];
        self.plimsoll_text(&[&load[..], &["--warmup", "0", "--duration", &seconds]].concat())?;
        ended(recorder)?;
        let log = folder.join("recorded.log");
        std::fs::write(&log, iolog(&trace, &path)?)?;
        let expected = arrivals(&trace)?;
        let ours = |round: usize| {
            let words = ["io", "replay", "--quiet", "--runs", &runs, "--path", &path];
            let trace = trace.display().to_string();
            self.replayed(&folder, &device, round, &expected, || {
                self.plimsoll_text(&[&words[..], &[&trace]].concat()).map(drop)
            })
        };
        let theirs = |round: usize| {
            let log = format!("--read_iolog={}", log.display());
            let words = [&*log, "--replay_no_stall=0", "--ioengine=io_uring", "--iodepth=64", "--direct=1"];
            self.replayed(&folder, &device, round, &expected, || self.fio(&words).map(drop))
        };
        let rounds = (0..self.rounds).map(|round| in_turn(round, || ours(round), || theirs(round)));
        let rounds: Vec<(Replayed, Replayed)> = rounds.collect::<Result<_, Failure>>()?;
        let pairs =
            |of: fn(&Replayed) -> f64| rounds.iter().map(|(ours, theirs)| (of(ours), of(theirs))).collect::<Vec<_>>();
        ratios(
            "replay of 8,000 reads/s: p99 of arrivals off their time, us",
            &pairs(|it| it.error_us),
            0,
            Goal::AtMost(0.1),
        );
        ratios("the same: CPU time of the program, s", &pairs(|it| it.cpu_s), 2, Goal::AtMost(1.0));
        let missing = |of: fn(&(Replayed, Replayed)) -> usize| {
            median(rounds.iter().map(|round| expected.len() as f64 - of(round) as f64))
        };
        figure(&format!(
            "| the same: requests that the device did not see, of {} | {} | {} | - | 0 | |",
            expected.len(),
            missing(|round| round.0.requests),
            missing(|round| round.1.requests)
        ));
        Ok(())
    }

    /// A recording that has begun.
    fn record(&self, device: &str, trace: &Path) -> Result<Child, Failure> {
        let mut child = Command::new(&self.program)
            .args(["record", "--quiet", "--json", "--device", device, "-o"])
            .arg(trace)
            .stdout(Stdio::null())
            .spawn()?;
        let begun = Instant::now();
        while !trace.exists() {
            if child.try_wait()?.is_some() || begun.elapsed() > Duration::from_secs(30) {
                return Err("the recording did not begin".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(child)
    }

    fn replayed(
        &self,
        folder: &Path,
        device: &LoopDevice,
        round: usize,
        expected: &[(u64, u64)],
        replay: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Replayed, Failure> {
        let seen: PathBuf = folder.join(format!("seen-{round}.trace"));
        let recorder = self.record(&device.name(), &seen)?;
        let before = children_cpu()?;
        replay()?;
        let cpu_s = children_cpu()? - before;
        ended(recorder)?;
        let found = arrivals(&seen)?;
        std::fs::remove_file(&seen)?;
        // By their places, from the end: a look at the device before the load is among what was seen.
        let mut seen: HashMap<u64, VecDeque<u64>> = HashMap::new();
        found.into_iter().for_each(|(at_ns, offset_bytes)| seen.entry(offset_bytes).or_default().push_back(at_ns));
        let pairs: Vec<(u64, u64)> = expected
            .iter()
            .rev()
            .filter_map(|(at_ns, offset_bytes)| Some((seen.get_mut(offset_bytes)?.pop_back()?, *at_ns)))
            .collect();
        let (first, from) = pairs.last().copied().unwrap_or_default();
        let mut errors: Vec<i64> = pairs
            .iter()
            .map(|(found, expected)| *found as i64 - first as i64 - (*expected as i64 - from as i64))
            .collect();
        errors.iter_mut().for_each(|error| *error = error.abs());
        errors.sort_unstable();
        let error_us = errors.get(errors.len() * 99 / 100).map_or(f64::NAN, |ns| *ns as f64 / 1e3);
        Ok(Replayed { error_us, cpu_s, requests: pairs.len() })
    }
}

fn ended(mut recorder: Child) -> Result<(), Failure> {
    text(Command::new("kill").args(["-INT", &recorder.id().to_string()]))?;
    recorder.wait()?;
    Ok(())
}

/// Every 8 KiB of the requests: the kernel makes one of two neighbours that are sent at once.
fn each(trace: &Path, mut take: impl FnMut(u64, u64)) -> Result<(), Failure> {
    let mut file = TraceFile::open(trace)?;
    let mut batch = Vec::new();
    loop {
        batch.clear();
        file.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(());
        }
        batch
            .iter()
            .filter(|request| request.bytes.is_multiple_of(8_192) && request.bytes <= 65_536)
            .flat_map(|request| {
                (0..request.bytes / 8_192).map(|piece| (request.at_ns, request.offset_bytes + piece * 8_192))
            })
            .for_each(|(at_ns, offset_bytes)| take(at_ns, offset_bytes));
    }
}

/// When each came, and where.
fn arrivals(trace: &Path) -> Result<Vec<(u64, u64)>, Failure> {
    let mut found = Vec::new();
    each(trace, |at_ns, offset_bytes| found.push((at_ns, offset_bytes)))?;
    Ok(found)
}

/// The same for fio: its third version has times, in microseconds.
fn iolog(trace: &Path, device: &str) -> Result<String, Failure> {
    let mut log = format!("fio version 3 iolog\n0 {device} add\n0 {device} open\n");
    let mut first = None;
    each(trace, |at_ns, offset_bytes| {
        let at_us = (at_ns - *first.get_or_insert(at_ns)) / 1_000;
        let _ = writeln!(log, "{at_us} {device} read {offset_bytes} 8192");
    })?;
    let _ = writeln!(log, "0 {device} close");
    Ok(log)
}
