//! Parsing from what `bpftrace` printed; counting against loads whose calls are known, where tracing is permitted.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;
use crate::os::{Probe, Snapshot};
use test_support::loop_device::LoopDevice;
use test_support::scratch::scratch;
use test_support::skip::skip;

/// Printed by bpftrace 0.17.
const PRINTED: &str = r#"{"type": "attached_probes", "data": {"probes": 5}}
{"type": "printf", "data": "begin 3032946436737\n"}

{"type": "hist", "data": {"@us": {"0": [{"min": 0, "max": 0, "count": 2}, {"min": 1, "max": 1, "count": 5}], "4": [{"min": 1, "max": 1, "count": 7}, {"min": 2, "max": 3, "count": 0}, {"min": 4, "max": 7, "count": 9}]}}}
{"type": "map", "data": {"@ns": {"0": 9000, "4": 44000}}}
{"type": "map", "data": {"@bytes": {"0": 100, "4": 131072}}}
{"type": "printf", "data": "end\n"}
{"type": "printf", "data": "begin 3033046436737\n"}
{"type": "hist", "data": {"@us": {"0": [{"min": 0, "max": 0, "count": 2}, {"min": 1, "max": 1, "count": 5}], "4": [{"min": 1, "max": 1, "count": 8}, {"min": 2, "max": 3, "count": 0}, {"min": 4, "max": 7, "count": 9}]}}}
{"type": "map", "data": {"@ns": {"0": 9000, "4": 45500}}}
{"type": "map", "data": {"@bytes": {"0": 100, "4": 139264}}}
{"type": "printf", "data": "end\n"}
{"type": "printf", "data": "begin 3033146436737\n"}
{"type": "hist", "data": {"@us": {"0": [{"min": 0,"#;

fn data_read() -> Event {
    program::events(Some(&[]), &[]).into_iter().find(|event| event.name == "data read").unwrap()
}

#[test]
fn readings_are_put_together_from_lines_and_a_torn_one_is_none() {
    let mut reader = bpftrace::Reader::default();
    let readings: Vec<TraceSample> = PRINTED.lines().filter_map(|line| reader.line(line)).collect();
    assert_eq!(readings.len(), 2);
    let first = readings[0].since(&TraceSample::default(), &data_read());
    assert_eq!((first.count, first.bytes, first.total_ns), (16, 131_072, 44_000));
    assert_eq!(first.buckets, [0, 7, 0, 9], "1 us is below 2 us, 4 us below 8 us");
    let then = readings[1].since(&readings[0], &data_read());
    assert_eq!((then.elapsed_ns, then.count, then.bytes, then.total_ns), (100_000_000, 1, 8_192, 1_500));
    assert_eq!(then.buckets, [0, 1]);
    let mut sum = first.clone();
    sum.add(&then);
    assert_eq!((sum.count, sum.buckets), (17, vec![0, 8, 0, 9]));
}

proptest::proptest! {
    #[test]
    fn nothing_that_is_printed_makes_the_reader_panic(
        text in proptest::prop_oneof![".{0,80}", r#"\{"type": "(hist|map|printf)", "data": (\{"@(us|ns)": (\{"[0-9a]{1,20}": (\[\{"min": -?[0-9]{1,20}, "count": [0-9]{1,9}\}\]|[0-9]{1,3})\}|7)\}|"begin [0-9]{1,25}")\}"#],
    ) {
        let mut reader = bpftrace::Reader::default();
        let _ = reader.line(r#"{"type": "printf", "data": "begin 1\n"}"#);
        let _ = reader.line(&text);
    }
}

/// Tests trace one after another: what one does as a child of this process would be counted by another.
static ALONE: Mutex<()> = Mutex::new(());

struct Alone {
    tracer: Tracer,
    _guard: std::sync::MutexGuard<'static, ()>,
}

impl std::ops::Deref for Alone {
    type Target = Tracer;

    fn deref(&self) -> &Tracer {
        &self.tracer
    }
}

/// A tracer that is alone; where there is none the reason is reported instead.
fn tracer(request: &TraceRequest) -> Option<Alone> {
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match Tracer::start(request) {
        Ok(tracer) => Some(Alone { tracer, _guard: guard }),
        Err(
            missing @ (NoTrace::NotInstalled | NoTrace::NotPermitted { .. } | NoTrace::NoTracing | NoTrace::NoTypes),
        ) => {
            skip(missing);
            None
        }
        Err(other) => panic!("{other}"),
    }
}

fn of(pid: u32) -> TraceRequest {
    TraceRequest { process: Some(pid), devices: Vec::new() }
}

fn one<'a>(stats: &'a [TraceStats], event: &str) -> &'a TraceStats {
    let found: Vec<_> = stats.iter().filter(|stats| stats.event == event).collect();
    assert_eq!(found.len(), 1, "{event}");
    found[0]
}

fn totals(stats: &TraceStats) -> (u64, u64) {
    assert_eq!(stats.count, stats.buckets.iter().sum::<u64>());
    (stats.count, stats.bytes)
}

/// A shell that works in a directory laid out as PostgreSQL's, and does what it is reported.
struct Server {
    _directory: tempfile::TempDir,
    shell: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["base/5", "global", "pg_wal"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        fs::write(directory.path().join("PG_VERSION"), "15\n").unwrap();
        fs::write(directory.path().join("base/5/16384"), vec![7; 8_192 * 300]).unwrap();
        let mut shell = Command::new("sh")
            .args(["-c", "while read -r line; do eval \"$line\"; echo done; done"])
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let answers = BufReader::new(shell.stdout.take().unwrap());
        Self { _directory: directory, shell, answers }
    }

    fn does(&mut self, what: &str) {
        writeln!(self.shell.stdin.as_mut().unwrap(), "{what}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, "done\n");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

#[test]
fn calls_of_children_are_counted_exactly_and_distinguished_by_their_files() {
    let mut server = Server::new();
    let Some(tracer) = tracer(&of(server.shell.id())) else { return };
    assert!(tracer.knows_files());
    server.does("dd if=base/5/16384 of=/dev/null bs=8192 count=300");
    let first = tracer.take();
    assert_eq!(totals(one(&first, "data read")), (300, 300 * 8_192));
    // A grandchild, a log, and a file that is neither.
    server.does("sh -c 'dd if=/dev/zero of=pg_wal/000000010000000000000001 bs=8192 count=50 conv=fdatasync; true'");
    server
        .does("dd if=/dev/zero of=unknown bs=4096 count=20 conv=fsync; dd if=/dev/zero of=global/1260 bs=8192 count=7");
    let second = tracer.take();
    assert_eq!(totals(one(&second, "data read")), (0, 0));
    assert_eq!(totals(one(&second, "data write")), (7, 7 * 8_192));
    assert_eq!(totals(one(&second, "wal write")), (50, 50 * 8_192));
    assert_eq!(totals(one(&second, "wal sync")).0, 1);
    assert_eq!(totals(one(&second, "other write")), (20, 20 * 4_096));
    assert_eq!(totals(one(&second, "other sync")).0, 1);
    for (part, then) in first.iter().zip(&second) {
        assert!(part.is_same_kind(then), "the kinds came in another order");
    }
}

#[test]
fn every_call_of_a_thread_is_counted_once_also_under_pressure() {
    const CALLS: u64 = 40_000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("users01.dbf");
    fs::write(&path, vec![1; 1 << 20]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let Some(tracer) = tracer(&of(std::process::id())) else { return };
    let stop = std::sync::atomic::AtomicBool::new(false);
    let taken = std::thread::scope(|scope| {
        // More threads than processors, so that everything is interrupted everywhere.
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut block = [0; 8_192];
                    for call in 0..CALLS / 4 {
                        file.read_exact_at(&mut block, call % 128 * 8_192).unwrap();
                    }
                })
            })
            .collect();
        let mut taken = vec![tracer.take(), tracer.take()];
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        taken.push(tracer.take());
        taken
    });
    let mut sum = TraceStats::default();
    taken.iter().filter(|stats| !stats.is_empty()).for_each(|stats| sum.add(one(stats, "data read")));
    assert_eq!(totals(&sum), (CALLS, CALLS * 8_192));
    assert!(sum.total_ns > CALLS * 100, "a read takes more than 100 ns: {sum:?}");
    // The sum of the times lies within what the buckets allow.
    let least: u64 = sum.buckets.iter().enumerate().skip(1).map(|(k, count)| count * (1_000 << (k - 1))).sum();
    let most: u64 = sum.buckets.iter().enumerate().map(|(k, count)| count * (1_000 << k)).sum();
    assert!((least..=most).contains(&sum.total_ns), "{least} <= {} <= {most}", sum.total_ns);
    // Calls that fail move nothing and are not counted.
    assert!(File::open(&path).unwrap().write_at(&[1], 0).is_err());
    assert_eq!(totals(one(&tracer.take(), "data write")), (0, 0));
}

#[test]
fn parts_add_up_to_the_time_that_passed() {
    let Some(tracer) = tracer(&of(std::process::id())) else { return };
    let begun = Instant::now();
    let mut reported_ns = 0;
    let mut longest = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(2) {
        let asked = Instant::now();
        reported_ns += tracer.take().first().map_or(0, |stats| stats.elapsed_ns);
        longest = longest.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(150));
    }
    reported_ns += tracer.take().first().map_or(0, |stats| stats.elapsed_ns);
    let passed_ns = begun.elapsed().as_nanos() as u64;
    // Part of the first and of the last look is outside.
    let looks_ns = 2 * longest.as_nanos() as u64;
    assert!(
        reported_ns.abs_diff(passed_ns) < 300_000_000 + looks_ns,
        "{reported_ns} of {passed_ns}, looks of {longest:?}"
    );
    assert!(longest < Duration::from_secs(20), "{longest:?}");
}

/// A disk that nobody else uses, and the request that traces it.
fn own_disk(directory: &Path) -> Option<(LoopDevice, TraceRequest)> {
    let image = directory.join("image");
    fs::write(&image, vec![0; 64 << 20]).unwrap();
    let disk = LoopDevice::over(&image)?;
    let request = TraceRequest { process: None, devices: vec![disk.name()] };
    Some((disk, request))
}

#[test]
fn requests_of_a_device_are_those_that_the_kernel_counts() {
    let directory = scratch();
    let Some((disk, request)) = own_disk(directory.path()) else { return };
    let Some(tracer) = tracer(&request) else { return };
    let probe = Probe::new(vec![disk.name()]);
    let before = Snapshot::take(&probe, 0);
    tracer.take();
    let dd = Command::new("dd")
        .args(["if=/dev/zero", "bs=64k", "count=1000", "oflag=direct", &format!("of={}", disk.path().display())])
        .stderr(Stdio::null())
        .status();
    assert!(dd.unwrap().success());
    let stats = tracer.take();
    let counted = Snapshot::take(&probe, 1).since(&before).devices.remove(0);
    let written = one(&stats, "write");
    assert_eq!((written.layer.as_str(), written.device.as_deref()), ("device", Some(disk.name().as_str())));
    assert_eq!((counted.writes, written.counted_by_kernel), (1_000, Some(1_000)));
    // A request that ends while its processor runs the program of another tracer is passed over.
    let shown = format!("{written:?}");
    assert!((950..=1_000).contains(&written.count), "{shown}");
    assert_eq!(written.bytes, written.count << 16, "{shown}");
}

/// A file system that can be frozen: what is written to its files then waits.
struct FileSystem {
    at: PathBuf,
    _disk: LoopDevice,
}

impl FileSystem {
    fn new(directory: &Path) -> Option<Self> {
        let (image, at) = (directory.join("below"), directory.join("mounted"));
        File::create(&image).unwrap().set_len(128 << 20).unwrap();
        fs::create_dir(&at).unwrap();
        let disk = LoopDevice::over(&image)?;
        let device = disk.path().to_str().unwrap();
        if !runs("mkfs.ext4", &["-q", device]) || !runs("mount", &[device, at.to_str().unwrap()]) {
            skip("no file system can be made and mounted here");
            return None;
        }
        Some(Self { at, _disk: disk })
    }

    fn freeze(&self, how: &str) -> bool {
        runs("fsfreeze", &[how, self.at.to_str().unwrap()])
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        self.freeze("--unfreeze");
        runs("umount", &[self.at.to_str().unwrap()]);
    }
}

fn runs(tool: &str, arguments: &[&str]) -> bool {
    Command::new(tool).args(arguments).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[test]
fn requests_for_one_place_at_once_are_not_timed_and_the_next_one_is() {
    let directory = scratch();
    let Some(below) = FileSystem::new(directory.path()) else { return };
    let Some((disk, request)) = own_disk(&below.at) else { return };
    let Some(tracer) = tracer(&request) else { return };
    let to = format!("of={}", disk.path().display());
    let write = |times: u64| {
        assert!(below.freeze("--freeze"));
        let arguments = ["if=/dev/zero", "bs=4k", "count=1", "oflag=direct", "conv=notrunc", &to];
        let writer = || Command::new("dd").args(arguments).stderr(Stdio::null()).spawn().unwrap();
        let writers: Vec<Child> = (0..times).map(|_| writer()).collect();
        let waiting = format!("/sys/block/{}/inflight", disk.name());
        let begun = Instant::now();
        while fs::read_to_string(&waiting).unwrap().split_whitespace().next_back() != Some(&times.to_string()) {
            assert!(begun.elapsed() < Duration::from_secs(60), "the writes do not arrive");
            std::thread::sleep(Duration::from_millis(5));
        }
        let arrived = Instant::now();
        std::thread::sleep(Duration::from_millis(200));
        assert!(below.freeze("--unfreeze"));
        let waited = arrived.elapsed();
        writers.into_iter().for_each(|mut writer| assert!(writer.wait().unwrap().success()));
        let stats = tracer.take();
        let written = one(&stats, "write");
        assert_eq!(written.counted_by_kernel, Some(times));
        (written.count, written.total_ns, waited)
    };
    tracer.take();
    let (count, total_ns, _) = write(3);
    assert_eq!((count, total_ns), (0, 0), "which of them ended when is not known");
    let (count, total_ns, waited) = write(1);
    assert_eq!(count, 1);
    assert!(u128::from(total_ns) >= Duration::from_millis(200).as_nanos(), "{total_ns} ns, it waited {waited:?}");
}

#[test]
fn what_is_not_there_is_named() {
    let missing = |request: &TraceRequest| match Tracer::start(request) {
        Ok(_) => panic!("it was started"),
        Err(missing @ (NoTrace::NotInstalled | NoTrace::NotPermitted { .. })) => {
            skip(missing);
            None
        }
        Err(missing) => Some(missing.to_string()),
    };
    let Some(reported) = missing(&of(u32::MAX)) else { return };
    assert_eq!(reported, "there is no process 4294967295");
    let none = TraceRequest { process: None, devices: vec!["no-such-disk".to_owned()] };
    assert_eq!(missing(&none).unwrap(), "there is no block device `no-such-disk`");
    assert_eq!(
        missing(&TraceRequest::default()).unwrap(),
        "there is nothing to trace: neither a process nor a block device"
    );
}

#[test]
fn nothing_is_left_behind() {
    let Some(tracer) = tracer(&of(std::process::id())) else { return };
    let mine = || family(&Root::default(), std::process::id());
    let names = |pids: Vec<u32>| -> Vec<String> {
        pids.iter().filter_map(|pid| Process::find(*pid)).filter_map(|process| process.name()).collect()
    };
    assert!(names(mine()).contains(&"bpftrace".to_owned()));
    let pid = tracer.bpftrace.pid();
    drop(tracer);
    assert_eq!(Process::find(pid), None);
}

#[test]
fn tracing_that_was_killed_says_so_and_keeps_what_it_reported() {
    let Some(tracer) = tracer(&of(std::process::id())) else { return };
    assert_eq!(tracer.ended(), None);
    assert!(Command::new("kill").args(["-KILL", &tracer.bpftrace.pid().to_string()]).status().unwrap().success());
    let begun = Instant::now();
    while tracer.ended().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(10));
    }
    tracer.take();
    assert_eq!(tracer.take(), []);
    assert!(tracer.ended().unwrap().contains("ended without a word"));
}

#[test]
fn a_hostile_name_does_not_move_the_fields() {
    let stat = Stat::parse("7 (a) Z 1 (x) S 42 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 998877 1 2\n").unwrap();
    assert_eq!((stat.has_ended, stat.parent, stat.born_ticks), (false, 42, 998_877));
    assert!(Stat::parse("7 (a) Z 1").is_none());
}

#[test]
fn a_process_is_found_until_it_has_ended() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let process = Process::find(child.id()).unwrap();
    assert!(process.is_running());
    assert!(family(&Root::default(), std::process::id()).contains(&child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!process.is_running());
}

fn root_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = Root::at(directory.path());
    (directory, root)
}

#[test]
fn two_of_the_newer_capabilities_do_as_well_as_the_old_one() {
    for (mask, may) in
        [("0000000000200000", true), ("000000c000000000", true), ("0000008000000000", false), ("0", false)]
    {
        let (_directory, root) = root_with(&[("proc/self/status", &format!("Name:\tx\nCapEff:\t{mask}\n"))]);
        assert_eq!(look_at_rights(&root).is_ok(), may, "{mask}");
    }
}

#[test]
fn other_process_numbers_are_noticed() {
    for (link, foreign) in [("pid:[4026531836]", false), ("pid:[4026532201]", true)] {
        let (directory, root) = root_with(&[("proc/self/ns/x", "")]);
        std::os::unix::fs::symlink(link, directory.path().join("proc/self/ns/pid")).unwrap();
        assert_eq!(numbers_are_foreign(&root), foreign, "{link}");
    }
}

#[test]
fn what_bpftrace_says_is_sorted() {
    let harmless = "ERROR: Unknown error -1: couldn't set RLIMIT_MEMLOCK for bpftrace. If your program is not loading, \
                        you can try \"ulimit -l 8192\" to fix the problem\n";
    let of = |said: &str| NoTrace::from_words(&format!("{harmless}{said}"));
    assert!(matches!(
        of("ERROR: bpftrace currently only supports running as the root user."),
        NoTrace::NotPermitted { .. }
    ));
    assert!(matches!(of("ERROR: failed to create map: '@x': Operation not permitted"), NoTrace::LockedMemory { .. }));
    let message = of("stdin:1:1-9: ERROR: tracepoint not found: block:x\nBEGIN\n~~~~~\n").to_string();
    assert_eq!(message, "`bpftrace` cannot trace here: stdin:1:1-9: ERROR: tracepoint not found: block:x");
    assert!(of("").to_string().ends_with("it ended without a word"));
}
