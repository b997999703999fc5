use model::record::Load;
use model::record::Workload;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;
use model::record::{
    ClockOffset, Counters, CpuTime, DeviceStats, Ending, FleetPart, Generator, Histogram, Intensity, MergedWindows,
    NetworkEnd, NetworkSide, OperationStats, ServerStats, Step, TargetKind, Window, sample,
};

const SECOND: u64 = 1_000_000_000;
const WARMUP: usize = 2;

/// What one part did: times of operations, second by second, the first two of which are warm-up.
type Seconds = Vec<Vec<u64>>;

fn histogram<'a>(times: impl IntoIterator<Item = &'a u64>) -> Histogram {
    let mut histogram = Histogram::default();
    times.into_iter().for_each(|ns| histogram.record(*ns));
    histogram
}

fn counters(times: &[u64]) -> Counters {
    let operations = times.len() as u64;
    Counters {
        operations: Some(operations),
        errors: Some(times.iter().filter(|ns| **ns % 7 == 0).count() as u64),
        physical_reads: Some(operations * 3),
        physical_read_bytes: Some(operations * 3 * 8_192),
        ..Counters::default()
    }
}

fn device(name: &str, times: &[u64], elapsed_ns: u64) -> DeviceStats {
    let reads = times.len() as u64 * 3;
    DeviceStats { name: name.to_owned(), elapsed_ns, reads, read_bytes: reads * 8_192, ..DeviceStats::default() }
}

/// A step of `seconds`, with an odd and an even kind of operation.
fn step(seconds: &Seconds) -> Step {
    let mut step = Step::new(0, "s8_t1");
    let measured: Vec<u64> = seconds.iter().skip(WARMUP).flatten().copied().collect();
    let window_ns = (seconds.len() - WARMUP) as u64 * SECOND;
    step.load = Intensity { sessions: Some(2), threads_per_schema: Some(1), schemas: Some(8), ..Intensity::default() };
    step.outcome = Outcome::Completed;
    step.window = Window { offset_ns: 3 * SECOND, warmup_ns: 2 * SECOND, duration_ns: window_ns, ending: Ending::Time };
    step.counters = counters(&measured);
    for (kind, rest) in [("read", 0), ("update", 1)] {
        let times: Vec<u64> = measured.iter().copied().filter(|ns| ns % 2 == rest).collect();
        step.operations.push(OperationStats {
            kind: kind.to_owned(),
            count: times.len() as u64,
            errors: times.iter().filter(|ns| **ns % 7 == 0).count() as u64,
            block_touches: times.len() as u64 * 64,
            service: histogram(&times),
            response: histogram(&times),
            transactions: None,
            failed: Default::default(),
        });
    }
    step.waits = vec![sample::wait(sample::SEQUENTIAL_READ, "User I/O", true, histogram(&measured))];
    let cpu = |times: &[u64]| Some(CpuTime { user_ns: times.iter().sum(), system_ns: 5, ..CpuTime::default() });
    step.process_cpu = cpu(&measured);
    step.peak_memory_bytes = Some(measured.len() as u64);
    step.devices = vec![device("nvme0n1", &measured, window_ns)];
    step.generator = Some(Generator { lanes: 1, busy_ns: 7, busiest_share: 0.25, ..Generator::default() });
    step.intervals = (0..)
        .zip(seconds)
        .map(|(number, times)| Interval {
            step: 0,
            offset_ns: number * SECOND,
            duration_ns: SECOND,
            warmup: number < WARMUP as u64,
            counters: counters(times),
            waits: BTreeMap::from([(sample::SEQUENTIAL_READ.to_owned(), histogram(times))]),
            response: histogram(times),
            process_cpu: cpu(times),
            devices: vec![device("nvme0n1", times, SECOND)],
            ..Interval::default()
        })
        .collect();
    step
}

fn part(number: u32, parts: u32, seconds: &Seconds) -> Run {
    let mut run = sample::run(&[]);
    run.id = format!("part-{number}");
    run.environment.hostname = Some(format!("host{number}"));
    run.part = Some(FleetPart {
        number,
        parts,
        source: "--part".to_owned(),
        configuration: "c0ffee".to_owned(),
        start_at_ns: None,
        start_error_ns: Some(200_000),
        clock: Some(ClockOffset { before_ns: 0, after_ns: None, bound_ns: 40_000 }),
    });
    run.steps = vec![step(seconds)];
    run
}

fn four() -> Vec<Run> {
    let seconds = |number: u64| (0..12).map(|second| vec![100_000 + number * 1_000 + second; 20]).collect();
    (0..4).map(|number| part(number, 4, &seconds(u64::from(number)))).collect()
}

fn try_merge(runs: &[Run], wanted: MergeOptions) -> Result<(Run, Vec<Interval>), MergeError> {
    let parts = runs.iter().cloned().map(Part::of).collect::<Result<Vec<_>, _>>()?;
    let mut intervals = Vec::new();
    let run = Merging::new(parts, &wanted, "merged")?.merge::<MergeError>(&AtomicBool::new(false), |interval| {
        intervals.push(interval.clone());
        Ok(())
    })?;
    Ok((run, intervals))
}

fn merge(runs: &[Run]) -> (Run, Vec<Interval>) {
    try_merge(runs, MergeOptions::default()).unwrap()
}

const PARTIAL: MergeOptions = MergeOptions { missing: Missing::Noted, differences: Differences::Refused };
const FORCE: MergeOptions = MergeOptions { missing: Missing::Refused, differences: Differences::Marked };

fn later(run: &mut Run, ns: i64) {
    run.started_at.0 += jiff::SignedDuration::from_nanos(ns);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn parts_of_a_run_that_was_split_are_the_whole_in_any_order(
        parts in prop::collection::vec(prop::collection::vec(prop::collection::vec(1_u64..50_000_000, 0..20), 6..=6), 1..5),
        turn in 0_usize..5,
    ) {
        let whole: Seconds = (0..6).map(|second| parts.iter().flat_map(|part| part[second].clone()).collect()).collect();
        let whole = step(&whole);
        let count = parts.len() as u32;
        let mut runs: Vec<Run> = (0..count).zip(&parts).map(|(number, seconds)| part(number, count, seconds)).collect();
        let in_order = merge(&runs);
        let turn = turn % runs.len();
        runs.rotate_left(turn);
        runs.reverse();
        prop_assert_eq!(&merge(&runs), &in_order, "the order in which parts are named");

        let (run, intervals) = in_order;
        let merged = &run.steps[0];
        prop_assert_eq!(&merged.counters, &whole.counters);
        prop_assert_eq!(&merged.operations, &whole.operations);
        prop_assert_eq!(&merged.waits, &whole.waits);
        prop_assert_eq!(merged.window.duration_ns, whole.window.duration_ns);
        prop_assert_eq!(merged.process_cpu.unwrap().user_ns, whole.process_cpu.unwrap().user_ns);
        let bytes: u64 = merged.devices.iter().map(|device| device.read_bytes).sum();
        prop_assert_eq!(bytes, whole.devices[0].read_bytes);
        prop_assert_eq!(intervals.len(), whole.intervals.len());
        for (merged, whole) in intervals.iter().zip(&whole.intervals) {
            prop_assert_eq!(&merged.response, &whole.response);
            prop_assert_eq!(&merged.counters, &whole.counters);
            prop_assert_eq!(&merged.waits, &whole.waits);
            prop_assert_eq!((merged.offset_ns, merged.warmup), (whole.offset_ns, whole.warmup));
        }
    }

    #[test]
    fn a_window_that_was_cut_is_the_sum_of_the_intervals_that_all_parts_share(
        parts in prop::collection::vec(prop::collection::vec(prop::collection::vec(1_u64..50_000_000, 1..9), 10..=10), 2..5),
        late in prop::collection::vec(0_usize..4, 5),
    ) {
        let count = parts.len() as u32;
        let mut runs: Vec<Run> = (0..count).zip(&parts).map(|(number, seconds)| part(number, count, seconds)).collect();
        runs.iter_mut().zip(&late).for_each(|(run, late)| later(run, *late as i64 * SECOND as i64 + 3_000));
        let late = &late[..parts.len()];
        let (first, last) = (*late.iter().min().unwrap(), *late.iter().max().unwrap());
        let shared = 8 - (last - first);
        let (run, intervals) = merge(&runs);
        let merged = &run.steps[0];
        let in_window = |part: &Seconds, late: usize| -> Vec<u64> {
            part[WARMUP + last - late..][..shared].iter().flatten().copied().collect()
        };
        let all: Vec<u64> = parts.iter().zip(late).flat_map(|(part, late)| in_window(part, *late)).collect();
        prop_assert_eq!(merged.window.duration_ns, shared as u64 * SECOND);
        prop_assert_eq!(&merged.counters, &counters(&all));
        let mut response = Histogram::default();
        merged.operations.iter().for_each(|kind| response.merge(&kind.response));
        prop_assert_eq!(&response, &histogram(&all));
        prop_assert_eq!(&merged.waits[0].waits, &histogram(&all));
        let of_window = intervals.iter().filter(|interval| !interval.warmup).count();
        prop_assert_eq!(of_window, shared);
        for (row, late) in run.parts.iter().zip(late) {
            prop_assert_eq!(row.steps[0].cut_before_ns, (last - late) as u64 * SECOND);
            prop_assert_eq!(row.steps[0].cut_after_ns, (late - first) as u64 * SECOND);
        }
        let wanted = if first == last { MergedWindows::Whole } else { MergedWindows::Shared };
        prop_assert_eq!(run.merged.unwrap().steps[0].windows, wanted);
    }
}

#[test]
fn sessions_and_rates_add_and_saturation_is_the_worst_parts() {
    let mut runs = four();
    for (run, share) in runs.iter_mut().zip([0.2, 0.9, 0.3, 0.3]) {
        run.steps[0].load.rate_operations_per_s = Some(25.0);
        let generator = run.steps[0].generator.as_mut().unwrap();
        generator.busiest_share = share;
        generator.ceiling_operations_per_s = Some(20.0 * 10.0 * (1.0 - share));
        generator.backlog_operations = Some(3);
        generator.schedule_lag = Some(histogram(&[10, 20]));
    }
    runs[2].steps[0].peak_memory_bytes = Some(1 << 30);
    let (run, _) = merge(&runs);
    let step = &run.steps[0];
    assert_eq!((step.load.sessions, step.load.rate_operations_per_s), (Some(8), Some(100.0)));
    assert_eq!((step.load.schemas, step.peak_memory_bytes), (Some(8), Some(1 << 30)));
    let generator = step.generator.as_ref().unwrap();
    assert_eq!((generator.lanes, generator.busiest_share, generator.backlog_operations), (4, 0.9, Some(12)));
    assert_eq!(generator.schedule_lag.as_ref().unwrap().count(), 8);
    let room = generator.ceiling_operations_per_s.unwrap() / 80.0;
    assert!((room - 1.0).abs() < 1e-9, "as little room as part 1 has: {room}");
}

#[test]
fn what_one_part_does_not_know_is_unknown_of_all() {
    let mut runs = four();
    runs[1].steps[0].counters.physical_reads = None;
    runs[1].steps[0].process_cpu = None;
    let (run, _) = merge(&runs);
    assert_eq!((run.steps[0].counters.physical_reads, run.steps[0].process_cpu), (None, None));
    assert!(run.steps[0].counters.operations.is_some());
}

#[test]
fn a_device_that_two_parts_of_one_host_saw_counts_once_and_those_of_two_hosts_twice() {
    let mut runs = four();
    runs.iter_mut().for_each(|run| run.environment.hostname = Some("one".to_owned()));
    let (run, intervals) = merge(&runs);
    let [device] = run.steps[0].devices.as_slice() else { panic!("{:?}", run.steps[0].devices) };
    assert_eq!((device.name.as_str(), device.reads), ("nvme0n1", 20 * 10 * 3));
    assert_eq!(intervals[3].devices.len(), 1);
    runs[3].environment.hostname = Some("two".to_owned());
    let (run, intervals) = merge(&runs);
    let names: Vec<&str> = run.steps[0].devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["one:nvme0n1", "two:nvme0n1"]);
    assert_eq!(intervals[3].devices.len(), 2);
}

fn server(node: &str, reads: u64, elapsed_ns: u64) -> ServerStats {
    let counters = Counters { physical_reads: Some(reads), ..Counters::default() };
    ServerStats { node: node.to_owned(), elapsed_ns, counters, ..ServerStats::default() }
}

#[test]
fn a_server_that_all_parts_loaded_counts_once_as_the_widest_window_has_it() {
    let mut runs = four();
    for (run, reads) in runs.iter_mut().zip([900, 1_000, 950, 940]) {
        let step = &mut run.steps[0];
        step.servers = vec![server("db1:5432", reads, reads)];
        step.counters.physical_reads = Some(reads);
        let timed = Histogram::counted(reads, Some(reads));
        step.waits.push(model::record::WaitStats {
            layer: "server".to_owned(),
            ..sample::wait("redo", "Commit", true, timed)
        });
        for interval in &mut step.intervals {
            interval.servers = vec![server("db1:5432", reads / 10, SECOND)];
            interval.counters.physical_reads = Some(reads / 10);
            interval.waits.insert("redo".to_owned(), Histogram::counted(reads / 10, None));
        }
    }
    let (run, intervals) = merge(&runs);
    let step = &run.steps[0];
    assert_eq!((step.servers.len(), step.counters.physical_reads), (1, Some(1_000)));
    assert_eq!(step.counters.operations, Some(4 * 200), "which the parts counted");
    let waits = |event: &str| step.waits.iter().find(|wait| wait.event == event).unwrap().waits.count();
    assert_eq!((waits("redo"), waits(sample::SEQUENTIAL_READ)), (1_000, 800));
    assert_eq!(intervals[4].counters.physical_reads, Some(100));
    assert_eq!(intervals[4].waits["redo"].count(), 100);

    runs.iter_mut().for_each(|run| run.steps[0].servers[0].node = "/u01/pgdata".to_owned());
    let (run, _) = merge(&runs);
    assert_eq!(run.steps[0].servers.len(), 4, "a directory of each host");
    assert_eq!(run.steps[0].counters.physical_reads, Some(3_790));
}

#[test]
fn both_ends_of_a_network_stay_two_and_their_bytes_add() {
    let end = |side, node: &str| NetworkEnd {
        side,
        node: node.to_owned(),
        elapsed_ns: SECOND,
        sent_bytes: Some(100),
        counters: BTreeMap::from([("tcpext.ListenDrops".to_owned(), 3)]),
        process_cpu: Some(CpuTime { user_ns: 10, ..CpuTime::default() }),
        ..NetworkEnd::default()
    };
    let mut runs = four();
    for (run, client) in runs.iter_mut().zip(["a", "a", "b", "c"]) {
        run.steps[0].network = vec![end(NetworkSide::Client, client), end(NetworkSide::Server, "db")];
    }
    let (run, _) = merge(&runs);
    let [client, server] = run.steps[0].network.as_slice() else { panic!("{:?}", run.steps[0].network) };
    assert_eq!((client.node.as_str(), client.sent_bytes, client.elapsed_ns), ("a and 2 more", Some(400), SECOND));
    assert_eq!(
        (client.counters["tcpext.ListenDrops"], client.process_cpu.unwrap().user_ns),
        (9, 40),
        "kernels of three hosts"
    );
    assert_eq!((server.node.as_str(), server.sent_bytes), ("db", Some(400)));
    assert_eq!(
        (server.counters["tcpext.ListenDrops"], server.process_cpu.unwrap().user_ns),
        (3, 10),
        "one process, one kernel"
    );
}

#[test]
fn a_clock_that_is_known_to_be_off_is_put_right() {
    let mut runs = four();
    later(&mut runs[2], 5 * SECOND as i64);
    let clock = &mut runs[2].part.as_mut().unwrap().clock;
    *clock = Some(ClockOffset {
        before_ns: -5 * SECOND as i64 - 1_000,
        after_ns: Some(-5 * SECOND as i64 + 1_000),
        bound_ns: 40_000,
    });
    let (run, intervals) = merge(&runs);
    let step = &run.merged.as_ref().unwrap().steps[0];
    assert_eq!((step.windows, step.apart_ns, step.clock_uncertainty_ns), (MergedWindows::Whole, Some(0), Some(41_000)));
    assert_eq!((intervals.len(), run.steps[0].window.offset_ns), (12, 3 * SECOND));
    assert!(run.notes.is_empty(), "{:?}", run.notes);
}

#[test]
fn intervals_that_lie_far_apart_are_not_shown_and_a_little_is_noted() {
    let mut runs = four();
    later(&mut runs[1], 30_000_000);
    let (run, intervals) = merge(&runs);
    assert!(run.notes.iter().any(|note| note.contains("errs by up to 3 %")), "{:?}", run.notes);
    assert_eq!(intervals.len(), 12);
    runs[1].part.as_mut().unwrap().clock = Some(ClockOffset { before_ns: 0, after_ns: None, bound_ns: 600_000_000 });
    let (run, intervals) = merge(&runs);
    assert!(intervals.is_empty() && run.notes.iter().any(|note| note.contains("there are none of the merged run")));
    assert_eq!(run.steps[0].counters.operations, Some(800), "sums are not touched");
    runs[1].part.as_mut().unwrap().clock = None;
    let (run, _) = merge(&runs);
    assert!(run.notes.iter().any(|note| note.contains("were not compared")), "{:?}", run.notes);
    assert_eq!(run.parts[1].clock, None);
}

#[test]
fn parts_without_intervals_keep_their_whole_windows_and_say_so() {
    let mut runs = four();
    runs[3].steps[0].intervals.clear();
    let (run, intervals) = merge(&runs);
    assert!(intervals.is_empty() && run.steps[0].counters.operations == Some(800));
    assert_eq!(run.merged.as_ref().unwrap().steps[0].windows, MergedWindows::Whole);
    later(&mut runs[3], 3 * SECOND as i64);
    let (run, _) = merge(&runs);
    assert_eq!(run.merged.as_ref().unwrap().steps[0].windows, MergedWindows::Apart);
    assert!(run.notes.iter().any(|note| note.contains("counts are exact, rates are not")), "{:?}", run.notes);
}

/// The refusal of four parts, of which `spoil` spoils some. Force lets it pass where it is about what belongs together.
#[track_caller]
fn refused(wanted: MergeOptions, spoil: impl Fn(&mut Vec<Run>)) -> MergeError {
    let mut runs = four();
    spoil(&mut runs);
    let error = try_merge(&runs, wanted).unwrap_err();
    assert!(error.hint().is_some(), "{error} has no hint");
    error
}

#[test]
fn what_does_not_belong_together_is_refused_by_name_and_marked_by_force() {
    type Spoiler = fn(&mut Run);
    let spoilers: [(&str, Spoiler); 7] = [
        ("format", |run| run.format = 2),
        ("version", |run| run.tool.version = "0.0.9".to_owned()),
        ("kind of target", |run| run.target.kind = Some(TargetKind::Simulated)),
        ("seed", |run| run.seed = Some(43)),
        ("configuration digest", |run| run.part.as_mut().unwrap().configuration = "decaf".to_owned()),
        ("label of a step", |run| run.steps[0].label = "s16_t1".to_owned()),
        ("workload", |run| run.load = Load::foreign(Workload::Io)),
    ];
    for (what, spoil) in spoilers {
        let error = refused(MergeOptions::default(), |runs| spoil(&mut runs[2])).to_string();
        assert!(error.contains(&format!("{what} is `")), "{error}");
        assert!(error.contains("`part-0`") && error.contains("`part-2`"), "{error}");
        let mut runs = four();
        spoil(&mut runs[2]);
        let (run, _) = try_merge(&runs, FORCE).unwrap();
        assert!(run.merged.unwrap().forced[0].contains(what), "{what} is marked");
        assert!(run.notes.iter().any(|note| note.contains("--force")), "{:?}", run.notes);
    }
}

#[test]
fn numbers_that_are_there_twice_or_cannot_be_are_refused() {
    let number = |run: &mut Run, number| run.part.as_mut().unwrap().number = number;
    let twice = refused(MergeOptions::default(), |runs| {
        number(&mut runs[3], 2);
    });
    assert_eq!(twice.to_string(), "`part-2` and `part-3` are both part 2");
    let parts = refused(MergeOptions::default(), |runs| runs[3].part.as_mut().unwrap().parts = 5);
    assert!(parts.to_string().contains("number of parts is `4` in one and `5` in the other"), "{parts}");
    let beyond = refused(FORCE, |runs| number(&mut runs[1], 4));
    assert!(matches!(beyond, MergeError::BadPlace { number: 4, parts: 4, .. }), "{beyond}");
    let none = refused(FORCE, |runs| runs[1].part = None);
    assert!(matches!(none, MergeError::NotAPart { .. }), "{none}");
    assert!(matches!(try_merge(&[], FORCE), Err(MergeError::NoParts)));
}

#[test]
fn missing_parts_are_refused_or_told() {
    let error = refused(FORCE, |runs| {
        runs.remove(1);
    });
    assert_eq!(error.to_string(), "of 4 parts one is missing: 1; there is `part-0`");
    let mut runs = four();
    runs.drain(1..3);
    let (run, intervals) = try_merge(&runs, PARTIAL).unwrap();
    let merged = run.merged.as_ref().unwrap();
    assert_eq!((merged.parts, merged.missing.as_slice(), merged.steps[0].parts), (4, &[1, 2][..], 2));
    assert_eq!((run.steps[0].counters.operations, intervals.len(), run.parts.len()), (Some(400), 12, 2));
}

#[test]
fn a_part_that_failed_is_refused_left_out_or_shortens_all() {
    let mut runs = four();
    let failed = Outcome::Failed { error: "the disk is full".to_owned() };
    (runs[2].outcome, runs[2].steps[0].outcome) = (failed.clone(), failed);
    runs[2].steps[0].intervals.truncate(7);
    runs[2].steps[0].window.duration_ns = 5 * SECOND;
    let error = try_merge(&runs, MergeOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "`part-2`, part 2 beside `part-0`, failed (the disk is full)");
    let (run, _) = try_merge(&runs, PARTIAL).unwrap();
    assert_eq!((run.steps[0].counters.operations, run.steps[0].window.duration_ns), (Some(600), 10 * SECOND));
    assert_eq!((run.parts.len(), run.parts[2].steps.len()), (4, 0));
    let (run, _) = try_merge(&runs, FORCE).unwrap();
    assert_eq!((run.steps[0].counters.operations, run.steps[0].window.duration_ns), (Some(400), 5 * SECOND));
    assert!(matches!(run.outcome, Outcome::Failed { .. }));
}

#[test]
fn a_killed_part_is_left_out_since_nobody_knows_when_its_window_began() {
    let mut runs = four();
    (runs[1].outcome, runs[1].steps[0].outcome) = (Outcome::Unfinished, Outcome::Unfinished);
    runs[1].steps[0].window.duration_ns = 0;
    assert!(matches!(try_merge(&runs, MergeOptions::default()), Err(MergeError::Dead { number: 1, .. })));
    for wanted in [PARTIAL, FORCE] {
        let (run, _) = try_merge(&runs, wanted).unwrap();
        assert_eq!((run.steps[0].counters.operations, run.merged.unwrap().steps[0].parts), (Some(600), 3));
    }
}

#[test]
fn a_step_that_an_interrupted_part_has_not_is_refused_unless_nobody_finished_it() {
    let longer = |outcome: Outcome| {
        let mut runs = four();
        runs[3].outcome = Outcome::Interrupted;
        for run in &mut runs[..3] {
            let mut more = run.steps[0].clone();
            (more.index, more.label, more.outcome) = (1, "s16_t1".to_owned(), outcome.clone());
            more.window.offset_ns += 20 * SECOND;
            more.intervals.iter_mut().for_each(|interval| interval.step = 1);
            run.steps.push(more);
        }
        runs
    };
    let error = try_merge(&longer(Outcome::Completed), MergeOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "`part-3` ended before step `s16_t1`, which `part-0` has");
    let (run, intervals) = try_merge(&longer(Outcome::Completed), PARTIAL).unwrap();
    assert_eq!((run.steps.len(), run.merged.unwrap().steps[1].parts, intervals.len()), (2, 3, 24));
    let (run, _) = try_merge(&longer(Outcome::Interrupted), MergeOptions::default()).unwrap();
    assert_eq!((run.steps.len(), run.outcome), (1, Outcome::Interrupted));
    assert!(run.notes.iter().any(|note| note.starts_with("s16_t1 is left out")), "{:?}", run.notes);
}

#[test]
fn parts_that_were_never_under_load_together_are_refused() {
    let error = refused(FORCE, |runs| later(&mut runs[1], 60 * SECOND as i64));
    let words = error.to_string();
    assert!(words.contains("`part-0`") || words.contains("`part-2`"), "{words}");
    assert!(words.contains("`part-1`") && words.contains("50.0 s before"), "{words}");
}

#[test]
fn the_merged_run_bears_the_command_without_the_part_and_what_all_have_in_common() {
    let mut runs = four();
    for (number, run) in (0..).zip(&mut runs) {
        run.command = ["plimsoll", "io", "run", "--part", &format!("{number}/4"), "--limit", "p99=5ms"]
            .map(str::to_owned)
            .to_vec();
        run.tags.insert("rack".to_owned(), number.to_string());
        run.notes.push("no io_uring".to_owned());
    }
    let (run, _) = merge(&runs);
    assert_eq!(run.command.join(" "), "plimsoll io run --limit p99=5ms");
    assert_eq!(run.tags.keys().collect::<Vec<_>>(), ["disk", "vm"]);
    assert!(run.part.is_none() && run.notes.contains(&"part 0: no io_uring".to_owned()), "{:?}", run.notes);
    assert_eq!((run.id.as_str(), run.parts.len()), ("merged", 4));
    let hosts: Vec<_> = run.parts.iter().filter_map(|part| part.host.as_deref()).collect();
    assert_eq!(hosts, ["host0", "host1", "host2", "host3"]);
}

#[test]
fn parts_on_disk_are_merged_as_those_that_are_held_and_can_be_ended() {
    let directory = tempfile::tempdir().unwrap();
    let store = model::record::store::Store::new(directory.path());
    let runs = four();
    let paths: Vec<_> = runs.iter().map(|run| store.save(run).unwrap()).collect();
    let stop = AtomicBool::new(false);
    let mut intervals = Vec::new();
    let merging = Merging::new(Part::open_all(&paths, &stop).unwrap(), &MergeOptions::default(), "merged").unwrap();
    let kept = merging
        .merge::<MergeError>(&stop, |interval| {
            intervals.push(interval.clone());
            Ok(())
        })
        .unwrap();
    assert_eq!((kept, intervals), merge(&runs));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(Part::open_all(&paths, &stop), Err(MergeError::Stopped)));
}
