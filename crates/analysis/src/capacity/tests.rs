use model::record::{Covers, JobsAtOnce, ReportedColumn, ReportedRow, ReportedTable, TargetKind, Workload};
use proptest::prelude::*;

use super::*;
use crate::trend::Trends;
use model::record::sample::requests::{self, Requests};
use model::record::sample::windows::{Hour, QUICK, history, report};
use model::record::sample::{self};
use model::units::Nanos;

fn demand_of(runs: &[Run], share: Share) -> Demand {
    let runs: Vec<&Run> = runs.iter().collect();
    Demand::of(&Trends::of(&runs).trends[0], &runs, share, &LatencyTarget::default())
}

fn asks(reads_per_s: u64, writes_per_s: u64) -> Demand {
    demand_of(&[report(Hour { at: 9, minutes: 60, reads_per_s, writes_per_s, within_ms: QUICK })], Share::Peak)
}

fn fit_to(demand: &Demand, run: &Run, target: &str) -> Fit {
    let target: LatencyTarget = target.parse().unwrap();
    Fit::of(demand, &Platform::of(run, &target), run, &target)
}

/// 5,040, 9,954, 19,404, 35,280, 40,068 and 40,320 reads/s of 8 KiB; p99 is above 5 ms in the last.
fn sweep() -> Run {
    sample::sweep(60)
}

#[test]
fn a_demand_below_a_level_that_met_the_target_is_carried_with_its_headroom() {
    let fit = fit_to(&asks(20_000, 0), &sweep(), "p99=5ms");
    assert_eq!((fit.answer, fit.binding, fit.is_at_least), (Answer::Carries, Some(Metric::Reads), false));
    assert_eq!(fit.level.as_deref(), Some("s16_t1"));
    assert!((fit.headroom().unwrap() - 40_068.0 / 20_000.0).abs() < 1e-9);
}

#[test]
fn processors_and_memory_are_those_that_one_host_used() {
    // With 1,000 reads/s 90 % of the host are idle.
    let mut run = report(Hour { at: 9, minutes: 60, reads_per_s: 1_000, writes_per_s: 0, within_ms: QUICK });
    run.environment.cpus = None;
    let of = |run: &Run| {
        let demand = demand_of(std::slice::from_ref(run), Share::Peak);
        (demand.processors, demand.memory_bytes)
    };
    assert_eq!(of(&run), (None, None));
    // A tenth of 16 is busy. Of the SGA and the PGA each edge is reported, and the larger counts.
    run.environment.cpus = Some(16);
    let row = |name: &str, begin, end| ReportedRow {
        names: vec![name.to_owned()],
        unit: "B".to_owned(),
        values: vec![begin, end],
    };
    run.steps[0].tables.push(ReportedTable {
        subject: "Memory".to_owned(),
        source: "Memory Statistics".to_owned(),
        node: None,
        layer: "host".to_owned(),
        covers: Covers::Edges,
        keys: vec!["memory".to_owned()],
        columns: ["begin", "end"].map(|name| ReportedColumn { name: name.to_owned(), unit: String::new() }).into(),
        rows: vec![
            row("SGA use", Some(4e9), Some(5e9)),
            row("PGA use", Some(1e9), None),
            row("Host Mem", Some(64e9), None),
        ],
        remarks: Vec::new(),
    });
    let (processors, memory) = of(&run);
    assert!((processors.unwrap() - 1.6).abs() < 1e-9 && memory == Some(6e9), "{processors:?} {memory:?}");
    // Of a cluster one host is not all.
    run.target.facts.database.is_clustered = Some(true);
    assert_eq!(of(&run), (None, None));
}

#[test]
fn a_demand_beyond_a_level_that_missed_it_is_not_carried() {
    let fit = fit_to(&asks(41_000, 0), &sweep(), "p99=5ms");
    assert_eq!(fit.answer, Answer::DoesNot);
    assert!(fit.headroom().unwrap() < 1.0 && fit.latency.is_none());
}

#[test]
fn between_met_and_missed_nobody_measured() {
    assert_eq!(fit_to(&asks(40_200, 0), &sweep(), "p99=5ms").answer, Answer::Unknown(NotKnown::Between));
    let mut all_met = sweep();
    all_met.steps.truncate(3);
    let beyond = fit_to(&asks(25_000, 0), &all_met, "p99=5ms");
    assert_eq!((beyond.answer, beyond.is_at_least), (Answer::Unknown(NotKnown::BeyondLevels), true));
    assert!(beyond.latency.is_none(), "never extrapolated");
    assert_eq!(fit_to(&asks(1_000, 0), &sweep(), "p99=1us").answer, Answer::Unknown(NotKnown::BelowLevels));
    assert_eq!(fit_to(&asks(6_000, 0), &sweep(), "p99=1us").answer, Answer::DoesNot);
    let nothing = fit_to(&asks(1_000, 0), &sweep(), "no such event:p99=5ms");
    assert_eq!(nothing.answer, Answer::Unknown(NotKnown::NotJudged));
}

#[test]
fn a_load_of_reads_says_nothing_of_writes() {
    let fit = fit_to(&asks(10_000, 4_000), &sweep(), "p99=5ms");
    assert_eq!(fit.answer, Answer::Unknown(NotKnown::NotMeasured(Metric::Writes)));
    assert!(
        fit.doubts.iter().any(|doubt| matches!(doubt, FitDoubt::OtherMix(asked, 1.0) if (asked - 0.714).abs() < 0.01))
    );
    assert_eq!(
        (fit.level.as_deref(), fit.binding),
        (Some("s16_t1"), Some(Metric::Megabytes)),
        "the rest is still compared"
    );
    assert!(fit.doubts.contains(&FitDoubt::NotLoaded(vec![Metric::RedoMegabytes, Metric::Commits])));
    // Some writes among very many reads are not asked for by themselves.
    assert_eq!(fit_to(&asks(10_000, 50), &sweep(), "p99=5ms").answer, Answer::Carries);
}

#[test]
fn larger_requests_are_judged_by_their_bytes() {
    let mut large = report(Hour { at: 9, minutes: 60, reads_per_s: 5_000, writes_per_s: 0, within_ms: QUICK });
    let bytes = large.steps[0].counters.physical_read_bytes.as_mut().unwrap();
    *bytes *= 16;
    let fit = fit_to(&demand_of(&[large], Share::Peak), &sweep(), "p99=5ms");
    assert_eq!((fit.answer, fit.binding), (Answer::Unknown(NotKnown::Between), Some(Metric::Megabytes)));
    assert!(
        fit.doubts.iter().any(|doubt| matches!(doubt, FitDoubt::OtherSize(131_072.0, 8_192.0))),
        "{:?}",
        fit.doubts
    );
}

#[test]
fn a_mix_is_within_a_level_that_did_as_much_of_both() {
    let mixed = levels(&[(1, 7_000, 3_000, 500), (4, 14_000, 6_000, 900), (16, 16_800, 7_200, 9_000)]);
    let other = fit_to(&asks(5_000, 5_900), &mixed, "p99=5ms");
    assert_eq!((other.answer, other.binding), (Answer::Carries, Some(Metric::Writes)), "whatever its share of reads");
    assert!(other.doubts.iter().any(|doubt| matches!(doubt, FitDoubt::OtherSubject { .. })), "{:?}", other.doubts);
    let fewer_writes = fit_to(&asks(14_500, 5_000), &mixed, "p99=5ms");
    assert_eq!(fewer_writes.answer, Answer::Unknown(NotKnown::Between), "fewer writes do not pay for more reads");
    let more_writes = fit_to(&asks(13_000, 6_500), &mixed, "p99=5ms");
    assert_eq!(more_writes.answer, Answer::Unknown(NotKnown::Between), "nor the other way round");
    assert_eq!(fit_to(&asks(17_000, 7_300), &mixed, "p99=5ms").answer, Answer::DoesNot);
}

#[test]
fn a_trivial_demand_is_carried_by_a_level_that_had_room() {
    let fit = fit_to(&asks(9, 3), &sweep(), "p99=5ms");
    assert_eq!((fit.answer, &fit.basis), (Answer::Carries, &Basis::Trivial("s1_t1".to_owned())));
    // 50 of 5,040 requests are a hundredth, and 60 are more.
    assert_eq!(fit_to(&asks(37, 11), &sweep(), "p99=5ms").answer, Answer::Carries);
    let unknown = Answer::Unknown(NotKnown::NotMeasured(Metric::Writes));
    assert_eq!(fit_to(&asks(40, 20), &sweep(), "p99=5ms").answer, unknown);
    // The least level needs half of the limit or less.
    let p99 = LatencyTarget::default().value(Workload::Slob, &sweep().steps[0]).unwrap().0;
    let limit = |ns: u64| format!("p99={}ns", ns);
    assert_eq!(fit_to(&asks(9, 3), &sweep(), &limit(2 * p99)).answer, Answer::Carries);
    assert_eq!(fit_to(&asks(9, 3), &sweep(), &limit(2 * p99 - 2)).answer, unknown);
    let memory = {
        let mut run = levels(&[(4, 30_000, 0, 90)]);
        run.target.facts.files.direct_io = Some(false);
        fit_to(&asks(9, 3), &run, "p99=5ms").answer
    };
    assert_eq!(memory, Answer::Unknown(NotKnown::FromMemory));
    // Large requests are bytes too.
    let mut large = report(Hour { at: 9, minutes: 60, reads_per_s: 9, writes_per_s: 3, within_ms: QUICK });
    large.steps[0].counters.physical_read_bytes = Some((9 * 3_600) << 20);
    assert_eq!(fit_to(&demand_of(&[large], Share::Peak), &sweep(), "p99=5ms").answer, unknown);
}

#[test]
fn windows_each_within_a_level_are_carried_although_no_level_has_all_peaks() {
    let both = levels(&[(4, 10_500, 1_000, 900), (5, 1_000, 10_500, 900)]);
    let by_day_and_night = demand_of(&[hour(2, 800, 10_000), hour(9, 10_000, 900)], Share::Peak);
    let fit = fit_to(&by_day_and_night, &both, "p99=5ms");
    assert_eq!((fit.answer, &fit.basis, fit.binding), (Answer::Carries, &Basis::Windows, None));
    assert!(fit.compared.iter().all(|it| !it.is_decisive || it.headroom().is_some_and(|room| room >= 1.0)));
    let at_once = demand_of(&[hour(2, 800, 10_000), hour(9, 10_000, 900), hour(12, 6_000, 6_000)], Share::Peak);
    assert_eq!(fit_to(&at_once, &both, "p99=5ms").answer, Answer::Unknown(NotKnown::BeyondLevels));
    // One window in twelve need not be carried at p90.
    let mut hours: Vec<Run> = (0..11).map(|at| hour(at, 900, 10_000)).collect();
    hours.push(hour(20, 6_000, 6_000));
    assert_eq!(fit_to(&demand_of(&hours, Share::Quantile(0.9)), &both, "p99=5ms").answer, Answer::Carries);
    // A window that does not report its writes is within nothing.
    let mut unreported = [hour(2, 800, 10_000), hour(9, 10_000, 900)];
    unreported[1].steps[0].counters.physical_writes = None;
    assert_ne!(fit_to(&demand_of(&unreported, Share::Peak), &both, "p99=5ms").answer, Answer::Carries);
}

/// The words of a command that begins with `plimsoll`, as the program parses them.
fn value_of<'a>(command: &'a str, flag: &str) -> &'a str {
    command.split_once(&format!(" {flag} ")).unwrap().1.split(' ').next().unwrap()
}

#[test]
fn what_is_not_known_comes_with_the_command_that_decides_it() {
    let run = levels(&[(1, 7_000, 3_000, 500), (4, 14_000, 6_000, 900), (16, 16_800, 7_200, 9_000)]);
    let demand = asks(14_500, 5_000);
    let fit = fit_to(&demand, &run, "p99=5ms");
    let command = fit.command.unwrap();
    assert!(
        command.starts_with("plimsoll io sweep --path /u01/test.dat --pattern randrw --block-size 8K "),
        "{command}"
    );
    assert!(command.ends_with("--limit p99=5ms"), "{command}");
    // Whatever comes of these two rates decides: both were met, both were missed, or the edge lies between them.
    let share = value_of(&command, "--read-pct").parse::<f64>().unwrap() / 100.0;
    let rates: Vec<f64> = value_of(&command, "--rate").split(',').map(|rate| rate.parse().unwrap()).collect();
    assert!(rates.len() == 2 && rates[1] < 1.1 * rates[0], "{command}");
    let result = |us: [u64; 2]| {
        let level = |(rate, us): (&f64, u64)| (4, (rate * share) as u64, (rate * (1.0 - share)) as u64, us);
        let measured = levels(&rates.iter().zip(us).map(level).collect::<Vec<_>>());
        fit_to(&demand, &measured, "p99=5ms").answer
    };
    assert_eq!(result([900, 900]), Answer::Carries);
    assert_eq!(result([9_000, 9_000]), Answer::DoesNot);
    assert_eq!(result([900, 9_000]), Answer::Unknown(NotKnown::Between));
    for (demand, reported) in [(asks(20_000, 0), Answer::Carries), (asks(41_000, 0), Answer::DoesNot)] {
        let fit = fit_to(&demand, &sweep(), "p99=5ms");
        assert_eq!((fit.answer, fit.command), (reported, None));
    }
}

#[test]
fn the_command_takes_the_storage_that_the_run_was_reported() {
    let mut run = levels(&[(1, 700, 300, 500)]);
    let command_line =
        "plimsoll io sweep --path=/u01/a --path /u02/b --stripe 1M --depth 1,2 --destroy a --pattern randrw";
    run.command = command_line.split(' ').map(str::to_owned).collect();
    let command = fit_to(&asks(1_000, 0), &run, "p99=700us").command.unwrap();
    let words = "plimsoll io sweep --path=/u01/a --path /u02/b --stripe 1M --destroy a --pattern randread --block-size 8K --rate ";
    assert!(command.starts_with(words) && command.ends_with("--limit p99=700us"), "{command}");
    run.command = "plimsoll io sweep --group a=normal:/u01|/u02 --depth 1,2".split(' ').map(str::to_owned).collect();
    let command = fit_to(&asks(1_000, 0), &run, "p99=700us").command.unwrap();
    assert!(command.starts_with("plimsoll io sweep --group 'a=normal:/u01|/u02' --pattern "), "{command}");
    run.command.clear();
    run.target.address = "/u01/my data".to_owned();
    let command = fit_to(&asks(1_000, 0), &run, "log file sync:p99=5ms").command.unwrap();
    assert!(
        command.contains(" --path '/u01/my data' ") && command.ends_with("--limit 'log file sync:p99=5ms'"),
        "{command}"
    );
    run.target.address = "db1".to_owned();
    assert!(fit_to(&asks(1_000, 0), &run, "p99=5ms").command.unwrap().contains(" --path PATH "));
    // A report that does not report its writes is no load that could be made.
    let mut unreported = hour(9, 10_000, 4_000);
    unreported.steps[0].counters.physical_writes = None;
    assert_eq!(fit_to(&demand_of(&[unreported], Share::Peak), &run, "p99=5ms").command, None);
}

#[test]
fn the_engine_is_asked_for_more_of_its_own_load_where_commits_are_asked_for() {
    let mut run = sample::updates(60);
    run.target.kind = Some(TargetKind::Embedded);
    let words = "plimsoll slob sweep -s 1..8 -t 1 UPDATE_PCT=20 RUN_TIME=10 --target dir:/u01/data --tag a=b --cache 1G --conf slob.conf";
    run.command = words.split(' ').map(str::to_owned).collect();
    let platform = Platform::of(&run, &LatencyTarget::default());
    let most = platform.levels.iter().filter_map(|level| level.rates.reads).fold(0.0, f64::max);
    let mut demand = asks(3 * most as u64, most as u64 / 2);
    let other = fit_to(&demand, &run, "p99=5ms").command.unwrap();
    assert!(other.starts_with("plimsoll check --like "), "its commits are few beside its reads: {other}");
    assert!(other.ends_with(&run.target.address), "{other}");
    let level = platform.levels.last().unwrap().rates;
    let thrice = |rate: Option<f64>| rate.map(|rate| 3.0 * rate);
    demand.rates = Rates {
        reads: thrice(level.reads),
        writes: thrice(level.writes),
        io: thrice(level.io),
        megabytes: thrice(level.megabytes),
        redo: thrice(level.redo),
        commits: thrice(level.commits),
    };
    let fit = fit_to(&demand, &run, "p99=5ms");
    let command = fit.command.unwrap();
    assert!(
        command.starts_with("plimsoll slob run --target dir:/u01/data --cache 1G --conf slob.conf -s "),
        "{command}"
    );
    assert!(command.contains(" UPDATE_PCT=20 RUN_TIME=60 --rate ") && !command.contains("--tag"), "{command}");
}

#[test]
fn what_decides_nothing_is_not_asked_for() {
    let run = sweep();
    let command = fit_to(&asks(40_200, 1), &run, "p99=5ms").command.unwrap();
    assert!(command.contains(" --pattern randread ") && !command.contains("--read-pct"), "{command}");
    let rates = command.split(" --rate ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let rates: Vec<f64> = rates.split(',').map(|rate| rate.parse().unwrap()).collect();
    assert!(rates.iter().all(|rate| (rate / 40_200.0 - 1.0).abs() < 0.03), "{command}");
}

#[test]
fn several_databases_at_once_ask_for_the_sum_of_their_peaks() {
    let demands = [asks(10_000, 100), asks(20_000, 200)];
    let together = Demand::together(&demands).unwrap();
    assert_eq!((together.rates.reads, together.rates.writes), (Some(30_000.0), Some(300.0)));
    assert_eq!(Demand::together(&demands[..1]), None);
    let mut unknown = demands[0].clone();
    unknown.rates.writes = None;
    assert_eq!(Demand::together(&[demands[1].clone(), unknown]).unwrap().rates.writes, None, "never taken for nothing");
}

#[test]
fn bytes_of_writes_that_never_happened_are_known_and_others_are_not() {
    let mut run = sweep();
    run.steps.iter_mut().for_each(|step| step.counters.physical_write_bytes = None);
    assert_eq!(fit_to(&asks(20_000, 0), &run, "p99=5ms").answer, Answer::Carries);
    run.steps.iter_mut().for_each(|step| step.counters.physical_writes = None);
    let unknown = fit_to(&asks(20_000, 0), &run, "p99=5ms");
    assert_eq!(unknown.answer, Answer::Unknown(NotKnown::NotMeasured(Metric::Megabytes)));
}

#[test]
fn latency_is_read_between_levels_and_not_beyond_them() {
    let run = sweep();
    let mean = |index: usize| run.steps[index].waits[0].waits.mean_ns().unwrap() / 1e6;
    let fit = fit_to(&asks(27_342, 0), &run, "p99=5ms");
    let there = fit.latency.unwrap();
    assert_eq!(there.levels, ["s4_t1", "s8_t1"]);
    assert!((there.mean_ms.unwrap() - (mean(2) + mean(3)) / 2.0).abs() < 1e-6, "{there:?}");
    let below = fit_to(&asks(1_000, 0), &run, "p99=5ms").latency.unwrap();
    assert_eq!((below.is_below, below.mean_ms), (true, Some(mean(0))));
}

#[test]
fn buckets_too_wide_for_the_target_decide_nothing() {
    let imported =
        report(Hour { at: 0, minutes: 60, reads_per_s: 9_000, writes_per_s: 0, within_ms: [60, 20, 15, 5, 0, 0] });
    let verdict = |target: &str| {
        let fit = fit_to(&asks(4_000, 0), &imported, target);
        (fit.answer, fit.doubts.iter().any(|doubt| matches!(doubt, FitDoubt::TooWide(_))))
    };
    let level = Platform::of(&imported, &"p99=10ms".parse().unwrap()).levels.remove(0);
    assert_eq!(level.quantile, Some(QuantileValue { ns: Nanos(8_192_000), is_bound: true }));
    assert_eq!(verdict("p99=10ms"), (Answer::Carries, false));
    assert_eq!(verdict("p99=5ms"), (Answer::Unknown(NotKnown::NotJudged), true));
    assert_eq!(verdict("p90=2ms"), (Answer::Unknown(NotKnown::BelowLevels), false));
}

#[test]
fn peak_and_percentiles_of_a_history_are_different_demands() {
    let runs = history();
    let peak = demand_of(&runs, Share::Peak);
    assert_eq!((peak.rates.reads, peak.windows), (Some(6_000.0), 237));
    let window = peak.window.as_ref().unwrap();
    assert_eq!(
        (window.run.as_str(), window.quantile),
        ("20261107-020000-awr", Some(QuantileValue { ns: Nanos(32_768_000), is_bound: true }))
    );
    let usual = demand_of(&runs, Share::Quantile(0.95));
    assert!(usual.rates.reads.unwrap() < 4_000.0 && usual.rates.io.unwrap() == 4_500.0);
    assert_eq!((usual.share.name(), Share::Quantile(0.999).name()), ("p95".to_owned(), "p99.9".to_owned()));
}

#[test]
fn of_a_snapshot_among_many_the_latency_of_all_of_them_is_not_reported() {
    let mut run = report(Hour { at: 0, minutes: 120, reads_per_s: 1_000, writes_per_s: 0, within_ms: QUICK });
    let snapshot = |at: u64| model::record::Interval {
        offset_ns: at * 3_600_000_000_000,
        duration_ns: 3_600_000_000_000,
        counters: model::record::Counters { physical_reads: Some(3_600 * (at + 1)), ..Default::default() },
        waits: [(crate::SINGLE_BLOCK_READ.to_owned(), model::record::Histogram::counted(10, Some(70_000_000)))].into(),
        ..Default::default()
    };
    run.steps[0].intervals = (0..2).map(snapshot).collect();
    let demand = demand_of(&[run], Share::Peak);
    let window = demand.window.unwrap();
    assert_eq!((demand.rates.reads, window.mean_ms, window.quantile), (Some(2.0), Some(7.0), None));
}

#[test]
fn a_demand_that_tells_no_requests_is_no_demand() {
    let mut run = report(Hour { at: 9, minutes: 60, reads_per_s: 1, writes_per_s: 1, within_ms: QUICK });
    run.steps[0].counters = model::record::Counters { commits: Some(1_000), ..Default::default() };
    let fit = fit_to(&demand_of(&[run], Share::Peak), &sweep(), "p99=5ms");
    assert_eq!((fit.answer, fit.binding), (Answer::Unknown(NotKnown::NoDemand), None));
}

/// Levels of reads and writes of 8 KiB, each with its number of requests outstanding and its time in microseconds.
fn levels(of: &[(u32, u64, u64, u64)]) -> Run {
    let levels: Vec<Requests> = of
        .iter()
        .map(|(slots, reads_per_s, writes_per_s, us)| Requests {
            slots: *slots,
            asked_per_s: None,
            reads_per_s: *reads_per_s,
            writes_per_s: *writes_per_s,
            service_ns: us * 1_000,
            queued_ns: 0,
        })
        .collect();
    requests::run(&levels)
}

fn hour(at: i64, reads_per_s: u64, writes_per_s: u64) -> Run {
    report(Hour { at, minutes: 60, reads_per_s, writes_per_s, within_ms: QUICK })
}

#[test]
fn reads_by_day_and_writes_by_night_are_no_mix_of_both() {
    let half = levels(&[(4, 6_000, 6_000, 900)]);
    let apart = demand_of(&[hour(2, 0, 10_000), hour(9, 10_000, 0)], Share::Peak);
    let fit = fit_to(&apart, &half, "p99=5ms");
    assert_eq!(fit.answer, Answer::Unknown(NotKnown::BeyondLevels), "nobody wrote 10,000 times a second");
    let mixed = demand_of(&[hour(2, 5_000, 5_000), hour(9, 5_500, 4_500)], Share::Peak);
    assert_eq!(fit_to(&mixed, &half, "p99=5ms").answer, Answer::Carries);
}

#[test]
fn peaks_of_different_hours_never_prove_that_a_platform_fails() {
    let slow = levels(&[(4, 6_000, 6_000, 9_000)]);
    let apart = demand_of(&[hour(2, 0, 10_000), hour(9, 10_000, 0)], Share::Peak);
    assert_eq!(fit_to(&apart, &slow, "p99=5ms").answer, Answer::Unknown(NotKnown::BelowLevels));
    let quiet: Vec<Run> = (0..20).map(|at| hour(at, 1_000, 1_000)).collect();
    let busy =
        |hours: i64| [&quiet[..], &(0..hours).map(|at| hour(30 + at, 8_000, 8_000)).collect::<Vec<_>>()].concat();
    assert_eq!(fit_to(&demand_of(&busy(1), Share::Peak), &slow, "p99=5ms").answer, Answer::DoesNot);
    let most = |hours| fit_to(&demand_of(&busy(hours), Share::Quantile(0.9)), &slow, "p99=5ms").answer;
    assert_eq!(most(2), Answer::Unknown(NotKnown::BelowLevels), "9 % of the time need not be sustained");
    assert_eq!(most(3), Answer::DoesNot);
}

#[test]
fn what_a_report_does_not_tell_is_not_taken_for_nothing() {
    let without = |take: fn(&mut model::record::Counters)| {
        let mut run = hour(9, 10_000, 4_000);
        take(&mut run.steps[0].counters);
        fit_to(&demand_of(&[run], Share::Peak), &sweep(), "p99=5ms").answer
    };
    let writes = without(|counters| (counters.physical_writes, counters.physical_write_bytes) = (None, None));
    assert_eq!(writes, Answer::Unknown(NotKnown::NotReported(Metric::Writes)));
    let bytes = without(|counters| {
        (counters.physical_writes, counters.physical_write_bytes, counters.physical_read_bytes) = (Some(0), None, None);
    });
    assert_eq!(bytes, Answer::Unknown(NotKnown::NotReported(Metric::Megabytes)));
    // One report of many that reports writes is all that is known of them.
    let mut many: Vec<Run> = (0..30).map(|at| hour(at, 1_000, 10)).collect();
    many.iter_mut().skip(1).for_each(|run| run.steps[0].counters.physical_writes = None);
    let known = demand_of(&many, Share::Peak);
    assert_eq!((known.windows, known.covered_share), (1, 1.0 / 30.0));
}

#[test]
fn slow_large_requests_say_nothing_of_small_ones() {
    let mut large = levels(&[(4, 1_000, 0, 9_000)]);
    let bytes = large.steps[0].counters.physical_read_bytes.as_mut().unwrap();
    *bytes *= 16;
    assert_eq!(fit_to(&asks(20_000, 0), &large, "p99=5ms").answer, Answer::Unknown(NotKnown::BelowLevels));
    assert_eq!(fit_to(&asks(20_000, 0), &levels(&[(4, 1_000, 0, 9_000)]), "p99=5ms").answer, Answer::DoesNot);
}

#[test]
fn what_the_page_cache_did_storage_need_not() {
    let mut cached = levels(&[(4, 30_000, 0, 90)]);
    assert_eq!(fit_to(&asks(20_000, 0), &cached, "p99=5ms").answer, Answer::Carries);
    cached.target.facts.files.direct_io = Some(false);
    assert_eq!(fit_to(&asks(20_000, 0), &cached, "p99=5ms").answer, Answer::Unknown(NotKnown::FromMemory));
    assert_eq!(fit_to(&asks(40_000, 0), &cached, "p99=10us").answer, Answer::DoesNot);
}

#[test]
fn a_job_beside_others_does_not_miss_the_target_by_its_own_load() {
    let mut groups = levels(&[(4, 3_000, 0, 9_000), (4, 3_000, 0, 9_000)]);
    groups.imported = Some(model::record::Imported {
        files: Vec::new(),
        clock: model::record::Clock::Utc,
        not_understood: Vec::new(),
    });
    let seconds = groups.steps.iter().map(|step| step.window.duration_ns / 1_000_000_000).sum::<u64>() as i64;
    let took = |seconds| Some(model::record::Timestamp(groups.started_at.0 + jiff::SignedDuration::from_secs(seconds)));
    let (in_turn, beside) = (took(seconds), took(seconds / 2));
    groups.ended_at = in_turn;
    assert_eq!(fit_to(&asks(4_000, 0), &groups, "p99=5ms").answer, Answer::DoesNot);
    groups.ended_at = beside;
    assert_eq!(fit_to(&asks(4_000, 0), &groups, "p99=5ms").answer, Answer::Unknown(NotKnown::NotJudged));
    assert_eq!(fit_to(&asks(2_000, 0), &groups, "p99=100ms").answer, Answer::Carries);
}

#[test]
fn one_instance_of_a_cluster_is_not_the_load_of_its_storage() {
    let of = |is_clustered: bool| {
        let mut run = report(Hour { at: 9, minutes: 60, reads_per_s: 4_000, writes_per_s: 0, within_ms: QUICK });
        run.target.facts.database.is_clustered = Some(is_clustered);
        let fit = fit_to(&demand_of(&[run], Share::Peak), &sweep(), "p99=5ms");
        fit.doubts.into_iter().filter(|doubt| matches!(doubt, FitDoubt::OneInstance(_))).count()
    };
    assert_eq!((of(true), of(false)), (1, 0));
}

#[test]
fn a_level_of_which_much_failed_or_that_this_machine_spoilt_is_not_judged() {
    let spoilt = |change: fn(&mut model::record::Step)| {
        let mut run = sweep();
        run.steps.iter_mut().for_each(change);
        run
    };
    let answer = |run: &Run, reads: u64, target: &str| fit_to(&asks(reads, 0), run, target).answer;
    assert_eq!(answer(&sweep(), 20_000, "p99=5ms"), Answer::Carries);
    let failing = spoilt(|step| step.counters.errors = Some(step.counters.operations.unwrap() / 4));
    assert_eq!(answer(&failing, 20_000, "p99=5ms"), Answer::Unknown(NotKnown::NotJudged));
    let busy = spoilt(|step| step.generator.as_mut().unwrap().busiest_share = 0.97);
    assert_eq!(answer(&sweep(), 6_000, "p99=1us"), Answer::DoesNot);
    assert_eq!(answer(&busy, 6_000, "p99=1us"), Answer::Unknown(NotKnown::NotJudged));
}

#[test]
fn jobs_at_the_same_time_are_judged_as_one_load() {
    let mut jobs = levels(&[(4, 3_000, 0, 900), (4, 3_000, 0, 900), (4, 3_000, 0, 900)]);
    jobs.steps.iter_mut().for_each(|step| step.window.offset_ns = 0);
    jobs.imported = Some(model::record::Imported {
        files: Vec::new(),
        clock: model::record::Clock::Utc,
        not_understood: Vec::new(),
    });
    assert_eq!(fit_to(&asks(8_000, 0), &jobs, "p99=5ms").answer, Answer::Unknown(NotKnown::BeyondLevels));
    jobs.target.facts.jobs_at_once = Some(JobsAtOnce::All(3));
    let together = fit_to(&asks(8_000, 0), &jobs, "p99=5ms");
    assert_eq!((together.answer, together.level.as_deref()), (Answer::Carries, Some("3 jobs together")));
    // Three jobs that were slow together say nothing of a load like that of one of them.
    assert_eq!(fit_to(&asks(4_000, 0), &jobs, "p99=100us").answer, Answer::Unknown(NotKnown::BelowLevels));
    // Of two groups each is a level: what both did one after the other is no load.
    jobs.target.facts.jobs_at_once = Some(JobsAtOnce::Each(vec![Some(1), Some(1), Some(2)]));
    let groups = |reads, target| fit_to(&asks(reads, 0), &jobs, target).answer;
    assert_eq!(groups(5_000, "p99=5ms"), Answer::Carries);
    assert_eq!(groups(8_000, "p99=5ms"), Answer::Unknown(NotKnown::BeyondLevels));
    assert_eq!(groups(4_000, "p99=100us"), Answer::DoesNot, "the second group missed it alone");
    jobs.target.facts.jobs_at_once = Some(JobsAtOnce::All(3));
    jobs.steps[0].window.duration_ns /= 3;
    assert_eq!(fit_to(&asks(4_000, 0), &jobs, "p99=5ms").answer, Answer::Unknown(NotKnown::NotJudged));
}

proptest! {
    /// What is carried stays carried when less is asked for, and what is not stays so when more is.
    #[test]
    fn asking_for_less_never_makes_it_worse(reads in 100_u64..60_000, less in 1_u64..100) {
        let run = sample::sweep(3);
        let more = fit_to(&asks(reads, 0), &run, "p99=5ms").answer;
        let fewer = fit_to(&asks(reads * less / 100 + 1, 0), &run, "p99=5ms").answer;
        prop_assert!(more != Answer::Carries || fewer == Answer::Carries);
        prop_assert!(fewer != Answer::DoesNot || more == Answer::DoesNot);
    }
}

#[test]
fn a_platform_without_tags_is_called_by_its_target() {
    let mut run = sweep();
    (run.imported, run.target.address) = (None, "dir:/u01".to_owned());
    run.tags.clear();
    assert_eq!(Platform::of(&run, &LatencyTarget::default()).name, "dir:/u01");
    run.tags.insert("vm".to_owned(), "d8s".to_owned());
    assert_eq!(Platform::of(&run, &LatencyTarget::default()).name, run.name);
}
