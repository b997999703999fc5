//! A real limiter is found: the program runs under the kernel's throttle of the device below its file.
//!
//! Needs root and the block I/O controller of control groups; says that it was skipped elsewhere.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]
#![expect(clippy::print_stderr, reason = "a test that is skipped or repeated says so")]

#[path = "throttle/group.rs"]
mod group;
#[path = "throttle/map.rs"]
mod map;
#[path = "throttle/noise.rs"]
mod noise;
#[path = "throttle/reader.rs"]
mod reader;
use test_support::scratch;
use test_support::skip;
#[path = "throttle/together.rs"]
mod together;

use std::fmt::Display;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};

use group::{Counted, Group};
use plimsoll::analysis::{BurstFound, Ceiling, Figures, Finding, LatencyTarget, Limit, PulseVerdict, analyse};
use plimsoll::record::{Run, store};
use scratch::scratch;
use skip::skip;

/// Tests that measure the disk do so one after the other.
static ALONE: Mutex<()> = Mutex::new(());

const STEP: [&str; 2] = ["--duration=4", "--warmup=1"];
/// Long enough after the change for a second level to be distinguished from a dip.
const BURST_SECONDS: u64 = 20;
const BASE_SECONDS: u64 = 13;
const SETTLED_SECOND: u64 = BURST_SECONDS + 2;

/// A place with a file, and a group that limits who is in it.
struct Place {
    directory: tempfile::TempDir,
    group: Group,
}

impl Place {
    /// Or why there is none.
    fn new() -> Result<Self, String> {
        let directory = scratch();
        let group = Group::new(directory.path())?;
        Ok(Self { directory, group })
    }

    /// The program on the file, in the group, with random reads.
    fn start(&self, words: &[&str]) -> Child {
        self.start_plain(&[words, &["--pattern=randread"]].concat())
    }

    /// The same for a command that has a pattern of its own.
    fn start_plain(&self, words: &[&str]) -> Child {
        let path = self.directory.path();
        let runs = path.join("runs");
        let _ = std::fs::remove_dir_all(&runs);
        let mut command = self.group.command(Path::new(env!("CARGO_BIN_EXE_plimsoll")));
        command.arg("io").args(words).arg("--path").arg(path.join("data"));
        command.args(["--size=128M", "--json", "--runs"]).arg(runs);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What became of it, its seconds included.
    fn ended(&self, child: Child) -> Run {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut run = self.last_as_kept();
        // A cloud's limit is in no group of ours: it has to be found without the kernel's word on it.
        run.environment.group_limits.clear();
        run
    }

    fn run(&self, words: &[&str]) -> Run {
        self.ended(self.start(words))
    }

    /// What the last run found with all that it knew.
    fn last_as_kept(&self) -> Run {
        let runs = std::fs::read_dir(self.directory.path().join("runs")).unwrap();
        store::load(&runs.map(|run| run.unwrap().path()).max().unwrap()).unwrap()
    }

    fn sweep(&self, depths: &str, more: &[&str]) -> Run {
        self.run(&[&["sweep", "--depth", depths][..], &STEP, more].concat())
    }
}

/// Attempts at what others may disturb.
const ATTEMPTS: u32 = 3;

/// Tries again if the device gave less than `allowed` lets through in some seconds: then the device was the limit there and
/// not the throttle, as when another program uses it. If that is so in each attempt, nothing is known of the throttle.
fn repeated(what: &str, allowed: impl Fn(u64) -> u32, mut attempt: impl FnMut() -> (Run, Result<(), String>)) {
    for _ in 0..ATTEMPTS {
        let (run, Err(why)) = attempt() else { return };
        let seconds = run.steps.iter().flat_map(|step| step.intervals.iter().filter(|second| !second.warmup));
        let given: Vec<(u64, u64)> =
            seconds.map(|second| (second.offset_ns / 1_000_000_000, second.counters.operations.unwrap())).collect();
        let is_starved = |(second, operations): &&(u64, u64)| (*operations as f64) < 0.98 * f64::from(allowed(*second));
        let starved = given.iter().filter(is_starved).count();
        assert!(starved > 0, "{what}: {why}\n{given:?}");
        eprintln!("{what}: the device itself gave less in {starved} seconds: {given:?}\n({why})");
    }
    skip(format_args!("{what}: the device gives less than the throttle lets through"));
}

fn reported(run: &Run) -> Vec<Finding> {
    analyse(run, &LatencyTarget::default())
}

fn sentences(found: &[Finding]) -> String {
    found.iter().map(|finding| format!("\n- {}", finding.sentence())).collect()
}

fn ceiling(found: &[Finding]) -> Option<&Ceiling> {
    found.iter().find_map(|finding| match finding {
        Finding::Ceiling(ceiling) => Some(ceiling),
        _ => None,
    })
}

fn is_cap(ceiling: &Ceiling) -> bool {
    matches!(ceiling.limit, Limit::Requests | Limit::Throughput | Limit::RequestsOrThroughput)
}

fn near(what: impl Display, value: f64, planted: f64, tolerance: f64) -> Result<(), String> {
    if (value / planted - 1.0).abs() <= tolerance { Ok(()) } else { Err(format!("{what} is {value}, not {planted}")) }
}

fn finds_a_cap_on_requests(found: &[Finding], per_s: f64) -> Result<(), String> {
    match ceiling(found) {
        Some(cap) if matches!(cap.limit, Limit::Requests | Limit::RequestsOrThroughput) => {
            near("the cap", cap.per_s, per_s, 0.01)
        }
        _ => Err(format!("no cap is reported: {}", sentences(found))),
    }
}

fn finds_a_cap_on_throughput(found: &[Finding], megabytes_per_s: f64) -> Result<(), String> {
    match ceiling(found) {
        Some(cap) if cap.limit == Limit::Throughput => {
            near("the cap", cap.megabytes_per_s.unwrap_or(0.0), megabytes_per_s, 0.01)
        }
        _ => Err(format!("no cap is reported: {}", sentences(found))),
    }
}

fn finds_a_burst(found: &[Finding], (rate, base): (f64, f64)) -> Result<(), String> {
    let is_burst = |finding: &Finding| match finding {
        Finding::Burst(burst) => Some(burst.clone()),
        _ => None,
    };
    let Some(BurstFound { burst_per_s, base_per_s, after, credit, .. }) = found.iter().find_map(is_burst) else {
        return Err(format!("no burst is reported: {}", sentences(found)));
    };
    let lasts = BURST_SECONDS as f64;
    near("the burst rate", burst_per_s, rate, 0.02)?;
    near("the base rate", base_per_s, base, 0.02)?;
    near("the moment of change", after.as_seconds(), lasts, 1.5 / lasts)?;
    near("the credit", credit, (rate - base) * lasts, 0.05)
}

/// A place where a throttle works and the device gives at least `enough` requests/s without it, with what it gives; or why
/// there is none.
fn tested_place(enough: f64) -> Result<(Place, f64), String> {
    let place = Place::new()?;
    let reached = |words: &[&str]| {
        let run = place.run(&[&["run"], words, &["--duration=1", "--warmup=0"]].concat());
        Figures(&run.steps[0]).operations_per_s().unwrap()
    };
    // Also lays out the file, without a limit.
    let fastest = reached(&["--depth=64"]);
    if fastest < enough {
        return Err(format!("the device gives only {fastest:.0} requests/s without one"));
    }
    place.group.limit(Counted::Requests, 2_000);
    let checked = reached(&["--depth=16"]);
    if checked > 4_000.0 {
        return Err(format!("a limit of 2,000 requests/s lets {checked:.0} direct reads/s through"));
    }
    Ok((place, fastest))
}

#[test]
fn what_a_throttle_limits_is_found() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (place, fastest) = match tested_place(10_000.0) {
        Ok(tested) => tested,
        Err(why) => return skip(format_args!("no throttle was tested: {why}")),
    };
    let high = (fastest / 2.5) as u32;
    for (cap, depths) in [(2_000, "2,64"), (high.min(12_345), "16,128")] {
        repeated(
            &format!("{cap} requests/s"),
            |_| cap,
            || {
                place.group.limit(Counted::Requests, cap);
                let run = place.sweep(depths, &["--no-pulse"]);
                let judged = finds_a_cap_on_requests(&reported(&run), f64::from(cap));
                (run, judged)
            },
        );
    }
    repeated(
        "a rate above the cap",
        |_| 2_000,
        || {
            place.group.limit(Counted::Requests, 2_000);
            let run = place.run(&[&["run", "--rate=4000"][..], &STEP].concat());
            let not_reached = reported(&run).into_iter().find_map(|finding| match finding {
                Finding::RateNotReached(missed) => Some(missed.achieved_per_s),
                _ => None,
            });
            let missing = || format!("it is not said to be missed: {}", sentences(&reported(&run)));
            let judged = not_reached.ok_or_else(missing).and_then(|rate| near("the rate reached", rate, 2_000.0, 0.02));
            (run, judged)
        },
    );
    repeated(
        "100 MB/s",
        |_| 95,
        || {
            place.group.limit(Counted::Requests, 0);
            place.group.limit(Counted::Bytes, 100_000_000);
            let run = place.sweep("4,16", &["--block-size=1M", "--no-pulse"]);
            let judged = finds_a_cap_on_throughput(&reported(&run), 100.0);
            place.group.limit(Counted::Bytes, 0);
            (run, judged)
        },
    );
}

#[test]
fn pulses_tell_a_throttle_from_the_device() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (place, _) = match tested_place(10_000.0) {
        Ok(tested) => tested,
        Err(why) => return skip(format_args!("no pulse was sent: {why}")),
    };
    let pulsed = |run: &Run| ceiling(&reported(run)).and_then(|found| found.pulsed).map(|pulsed| pulsed.verdict);
    for (what, counted, per_s, allowed) in
        [("2,000 requests/s", Counted::Requests, 2_000, 2_000), ("16 MB/s", Counted::Bytes, 16_384_000, 2_000)]
    {
        repeated(
            &format!("pulses at {what}"),
            |_| allowed,
            || {
                place.group.limit(counted, per_s);
                let mut run = place.sweep("4,32", &[]);
                // Others on the disk hold single pulses up, and then it is not known who is the limit.
                for _ in 0..2 {
                    if pulsed(&run) == Some(PulseVerdict::Unknown) {
                        run = place.sweep("4,32", &[]);
                    }
                }
                place.group.limit(counted, 0);
                let kept = place.last_as_kept();
                let named = ceiling(&reported(&kept)).and_then(|found| found.named.clone());
                let judged = match pulsed(&run) {
                    Some(PulseVerdict::Burst) if named.is_none() => {
                        Err(format!("its group is not named: {:?}", kept.environment.group_limits))
                    }
                    Some(PulseVerdict::Burst) => Ok(()),
                    Some(PulseVerdict::Unknown) => {
                        skip(format_args!("pulses at {what} do not agree: others use the disk"));
                        Ok(())
                    }
                    Some(PulseVerdict::NoMore) | None => Err(format!("no burst: {}", sentences(&reported(&run)))),
                };
                (run, judged)
            },
        );
    }
    // Others on the disk can look like a limit: not each time.
    let is_burst = |run: &Run| pulsed(run) == Some(PulseVerdict::Burst);
    let limited: Vec<Run> = (0..ATTEMPTS).map(|_| place.sweep("16,64", &[])).take_while(is_burst).collect();
    let said = || limited.iter().map(|run| sentences(&reported(run))).collect::<String>();
    assert!(limited.len() < ATTEMPTS as usize, "nothing limits it: {}", said());
}

#[test]
fn a_credit_that_runs_out_is_found() {
    if std::env::var_os("PLIMSOLL_TORTURE_SECONDS").is_none() {
        return skip("no credit was let run out: `make torture` does that");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (place, _) = match tested_place(22_000.0) {
        Ok(tested) => tested,
        Err(why) => return skip(format_args!("no credit was let run out: {why}")),
    };
    let allowed = |second| match second {
        ..BURST_SECONDS => 20_000,
        // The kernel settles what was let through above the new limit.
        BURST_SECONDS..SETTLED_SECOND => 0,
        SETTLED_SECOND.. => 3_000,
    };
    repeated("a burst", allowed, || {
        place.group.limit(Counted::Requests, 20_000);
        let duration = format!("--duration={}", BURST_SECONDS + BASE_SECONDS);
        let mut child = place.start(&["run", "--depth=32", &duration, "--warmup=0"]);
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        // `    1 s   20,000 requests/s …`: a line for each second is for terminals alone.
        let second = |line: String| line.trim_start().split_once(" s ")?.0.parse::<u64>().ok();
        let seen = lines.find_map(second).expect("a line reports on the load");
        std::thread::sleep(std::time::Duration::from_secs(BURST_SECONDS.saturating_sub(seen)));
        place.group.limit(Counted::Requests, 3_000);
        lines.for_each(drop);
        let run = place.ended(child);
        let judged = finds_a_burst(&reported(&run), (20_000.0, 3_000.0));
        (run, judged)
    });
}
