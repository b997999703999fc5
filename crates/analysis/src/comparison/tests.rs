//! Comparisons of made-up runs in which it is known what differs.

use model::record::Load;
use model::record::Workload;
use std::collections::BTreeMap;

use super::scatter::tests::series;
use super::*;
use crate::chance::Chance;
use model::record::sample::{self, Level, requests, windows};
use model::record::{Histogram, Intensity, Interval, Metric, OperationStats, Outcome, TargetKind, WaitStats};

const SECOND: u64 = 1_000_000_000;
const READ: &str = "db file sequential read";

/// A run whose seconds scatter and remember, with reads of `read_us` in the median.
fn scattered(chance: &mut Chance, id: &str, sessions: &[u32], seconds: usize, read_us: f64) -> Run {
    let levels: Vec<Level> = sessions.iter().map(|sessions| level(*sessions)).collect();
    let mut run = sample::run(&levels);
    run.id = id.to_owned();
    run.name = id.to_owned();
    for step in &mut run.steps {
        scatter(chance, step, seconds, read_us);
    }
    run
}

fn level(sessions: u32) -> Level {
    Level { sessions, operations_per_s: 10, read_ns: 400_000, seconds: 1, update_pct: 0 }
}

/// Gives a step made-up seconds, and a window that is their sum. Times wander by 4 % from second to second, rates against
/// them.
fn scatter(chance: &mut Chance, step: &mut Step, seconds: usize, read_us: f64) {
    let wander = series(chance, seconds, 1.0, 0.04, 0.4);
    let per_second = 60.0;
    step.intervals = wander
        .iter()
        .zip(0..)
        .map(|(factor, second)| {
            let mean_us = read_us * factor;
            let count = (per_second * 400.0 / mean_us * (1.0 + 0.05 * chance.normal())).max(1.0) as u64;
            let mut response = Histogram::default();
            (0..count).for_each(|_| response.record((mean_us * 1e3 * (0.2 * chance.normal()).exp()) as u64));
            let mut interval = Interval {
                step: step.index,
                offset_ns: second * SECOND,
                duration_ns: SECOND,
                waits: BTreeMap::from([(READ.to_owned(), response.clone())]),
                response,
                ..Interval::default()
            };
            interval.counters.operations = Some(count);
            interval.counters.physical_reads = Some(count);
            interval
        })
        .collect();
    let mut all = Histogram::default();
    step.intervals.iter().for_each(|second| all.merge(&second.response));
    step.window.duration_ns = seconds as u64 * SECOND;
    step.counters.operations = Some(all.count());
    step.counters.physical_reads = Some(all.count());
    step.process_io = None;
    step.operations =
        vec![OperationStats { service: all.clone(), response: all.clone(), ..step.operations[0].clone() }];
    step.waits = vec![WaitStats { waits: all, ..step.waits[0].clone() }];
}

fn compared(runs: &[&Run], threshold: f64) -> Compared {
    Compared::of(runs, 0, threshold).unwrap()
}

fn figure<'a>(pair: &'a Pair, load: usize, what: &str) -> &'a ComparedFigure {
    let figures = &pair.loads[load].figures;
    figures.iter().find(|figure| figure.measure.to_string() == what).unwrap_or_else(|| panic!("no {what}: {figures:?}"))
}

#[test]
fn identical_runs_compared_a_hundred_times_seldom_differ_in_any_figure() {
    let mut chance = Chance::new(1);
    let calls_something_real = (0..100).filter(|_| {
        let [a, b] = ["a", "b"].map(|id| {
            let mut run = scattered(&mut chance, id, &[1, 2], 20, 400.0);
            // Reads are all that an operation is, so they would be the same figures once more.
            run.load = Load::foreign(Workload::Io);
            run
        });
        let compared = compared(&[&a, &b], 0.05);
        assert!(compared.intervals >= 2 * 4, "{}", compared.intervals);
        compared.pairs[0].comparisons().any(|(.., comparison)| comparison.is_real())
    });
    // 5 of 100 are stated; three standard deviations of chance are 6.5 more.
    let count = calls_something_real.count();
    assert!(count <= 11, "{count} of 100");
}

#[test]
fn a_planted_tenth_is_found_in_nearly_all_pairs_and_its_interval_holds_it() {
    let mut chance = Chance::new(2);
    let (mut found, mut held) = (0, 0);
    for _ in 0..15 {
        let a = scattered(&mut chance, "old", &[8], 60, 400.0);
        let b = scattered(&mut chance, "new", &[8], 60, 440.0);
        let compared = compared(&[&a, &b], 0.05);
        let pair = &compared.pairs[0];
        found += usize::from(compared.has_regression() && pair.overall() == Overall::Worse);
        let (low, high) = figure(pair, 0, "mean of response time").comparison.unwrap().interval.unwrap();
        held += usize::from(low <= 0.1 && 0.1 <= high);
        assert!(!Compared::of(&[&a, &b], 1, 0.05).unwrap().has_regression(), "the old one is faster");
    }
    assert!(found >= 14 && held >= 14, "{found} found and {held} held of 15");
}

#[test]
fn a_planted_tenth_is_real_but_small_beside_a_fifth() {
    let mut chance = Chance::new(3);
    let a = scattered(&mut chance, "old", &[8], 120, 400.0);
    let b = scattered(&mut chance, "new", &[8], 120, 440.0);
    let compared = compared(&[&a, &b], 0.2);
    let mean = figure(&compared.pairs[0], 0, "mean of response time").comparison.unwrap();
    assert_eq!(mean.difference(), Difference::RealButSmall, "{mean:?}");
    assert!(!compared.has_regression());
    assert_eq!(compared.pairs[0].overall(), Overall::Same);
}

#[test]
fn the_figures_of_a_closed_loop_are_rates_and_times_and_those_of_an_open_one_times() {
    let mut chance = Chance::new(4);
    let [mut a, mut b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 40, 400.0));
    let names = |a: &Run, b: &Run| -> Vec<String> {
        let compared = compared(&[a, b], 0.05);
        compared.pairs[0].loads[0].figures.iter().map(|figure| figure.measure.to_string()).collect()
    };
    assert_eq!(
        names(&a, &b).join("; "),
        "operations/s; reads/s; mean of response time; p50 of response time; p99 of response time; mean of \
         `db file sequential read`; p50 of `db file sequential read`; p99 of `db file sequential read`"
    );
    for run in [&mut a, &mut b] {
        run.steps[0].load = Intensity { sessions: Some(8), rate_operations_per_s: Some(40.0), ..Intensity::default() };
    }
    assert_eq!(names(&a, &b).join("; "), "mean of response time; p50 of response time; p99 of response time");
}

#[test]
fn loads_are_matched_by_what_was_asked_and_not_by_their_labels() {
    let mut chance = Chance::new(5);
    let mut a = scattered(&mut chance, "a", &[1, 8, 16], 10, 400.0);
    let b = scattered(&mut chance, "b", &[16, 32, 8], 10, 400.0);
    a.steps.iter_mut().for_each(|step| step.label = "imported".to_owned());
    let compared = compared(&[&a, &b], 0.05);
    let pair = &compared.pairs[0];
    assert_eq!(pair.loads.iter().map(|load| load.name.as_str()).collect::<Vec<_>>(), ["8 sessions", "16 sessions"]);
    assert_eq!(pair.loads[0].steps, [vec![1], vec![2]]);
    assert_eq!(pair.only, [vec!["1 session".to_owned()], vec!["32 sessions".to_owned()]]);
}

#[test]
fn a_parameter_that_one_run_varies_is_matched_with_that_of_the_whole_other_run() {
    let mut chance = Chance::new(6);
    let mut a = scattered(&mut chance, "a", &[8, 8], 10, 400.0);
    let b = scattered(&mut chance, "b", &[8], 10, 400.0);
    for (step, unit) in a.steps.iter_mut().zip(["16", "64"]) {
        step.parameters.insert("WORK_UNIT".to_owned(), unit.to_owned());
    }
    let compared = compared(&[&a, &b], 0.05);
    let pair = &compared.pairs[0];
    assert_eq!(pair.loads[0].steps, [vec![1], vec![0]], "WORK_UNIT is 64 in the parameters of the run");
    assert_eq!(pair.only, [vec!["WORK_UNIT=16 8 sessions".to_owned()], Vec::new()]);
}

#[test]
fn runs_without_a_load_in_common_are_reported_so() {
    let mut chance = Chance::new(7);
    let a = scattered(&mut chance, "a", &[8], 20, 400.0);
    let b = scattered(&mut chance, "b", &[16], 20, 800.0);
    let compared = compared(&[&a, &b], 0.05);
    let pair = &compared.pairs[0];
    assert_eq!((pair.overall(), pair.doubts.first()), (Overall::Nothing, Some(&Doubt::NoLoadInCommon)));
    assert_eq!(compared.verdict(pair), "`a` and `b` have nothing in common that could be compared.");
    assert_eq!(compared.confidence(), None);
    assert!(!compared.has_regression());
}

#[test]
fn commits_that_one_run_did_not_wait_for_are_another_work() {
    let update = Level { update_pct: 50, ..level(8) };
    let [waited, mut unwaited] = ["waited", "unwaited"].map(|id| {
        let mut run = sample::run(&[update]);
        (run.id, run.name) = (id.to_owned(), id.to_owned());
        run
    });
    unwaited.target.facts.server.commits_unwaited = Some(true);
    let doubts = |runs: [&Run; 2]| compared(&runs, 0.05).pairs.remove(0).doubts;
    let about = |doubts: &[Doubt]| doubts.iter().find(|doubt| matches!(doubt, Doubt::UnwaitedCommits { .. })).cloned();
    assert_eq!(about(&doubts([&waited, &unwaited])), Some(Doubt::UnwaitedCommits { without: 1 }));
    let doubt = about(&doubts([&unwaited, &waited])).unwrap();
    assert_eq!(doubt, Doubt::UnwaitedCommits { without: 0 });
    assert!(
        doubt.sentence(["unwaited", "waited"]).contains("make commits durable in `unwaited`, and does in `waited`")
    );
    assert_eq!(about(&doubts([&unwaited, &unwaited.clone()])), None);
    let mut reads = sample::run(&[level(8)]);
    reads.target.facts.server.commits_unwaited = Some(true);
    assert_eq!(about(&doubts([&waited, &reads])), None, "who only reads commits nothing");
}

#[test]
fn three_repeats_on_both_sides_are_the_evidence() {
    let mut chance = Chance::new(8);
    let mut repeated = |id, us| scattered(&mut chance, id, &[8, 8, 8, 8], 20, us);
    let (a, b) = (repeated("a", 400.0), repeated("b", 480.0));
    let both = compared(&[&a, &b], 0.05);
    let mean = figure(&both.pairs[0], 0, "mean of response time").comparison.unwrap();
    assert_eq!((mean.evidence, mean.difference()), (Evidence::Repeats(4, 4), Difference::Worse), "{mean:?}");
    assert!(both.confidence().unwrap().contains("They come from repeats"));
    let mut fewer = b.clone();
    fewer.steps.truncate(2);
    let both = compared(&[&a, &fewer], 0.05);
    let mean = figure(&both.pairs[0], 0, "mean of response time").comparison.unwrap();
    assert_eq!(mean.evidence, Evidence::Seconds(80, 40));
    assert!(both.confidence().unwrap().contains("not how one run differs from the next"));
}

#[test]
fn figures_without_seconds_are_shown_and_never_called_real() {
    let mut fast = sample::imported();
    fast.name = "fast".to_owned();
    let mut slow = fast.clone();
    slow.name = "slow".to_owned();
    slow.steps[0] =
        sample::run(&[Level { sessions: 128, operations_per_s: 500, read_ns: 5_400_000, seconds: 300, update_pct: 0 }])
            .steps
            .remove(0);
    slow.steps[0].operations.clear();
    slow.steps[0].intervals.clear();
    let compared = compared(&[&fast, &slow], 0.05);
    let pair = &compared.pairs[0];
    let mean = figure(pair, 0, "mean of `db file sequential read`").comparison.unwrap();
    assert_eq!((mean.difference(), mean.evidence), (Difference::Unknown, Evidence::Nothing));
    assert!((mean.change - 1.0).abs() < 0.01, "{mean:?}");
    assert_eq!((pair.overall(), compared.intervals, compared.has_regression()), (Overall::Unknown, 0, false));
    assert!(compared.verdict(pair).starts_with("Nothing says how much the figures of `fast` and `slow` scatter"));
}

#[test]
fn a_window_of_a_second_has_no_interval() {
    let mut chance = Chance::new(9);
    let [a, b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 1, 400.0));
    let compared = compared(&[&a, &b], 0.05);
    assert!(compared.pairs[0].comparisons().all(|(.., comparison)| comparison.difference() == Difference::Unknown));
}

#[test]
fn nothing_and_no_number_are_not_compared() {
    let mut chance = Chance::new(10);
    let [mut a, b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 20, 400.0));
    a.steps[0].counters.operations = Some(0);
    a.steps[0].counters.physical_reads = None;
    let compared = compared(&[&a, &b], 0.05);
    let pair = &compared.pairs[0];
    assert_eq!(figure(pair, 0, "operations/s").comparison, None, "a share of nothing");
    assert_eq!(figure(pair, 0, "reads/s").values[0], None);
    let mut empty = b.clone();
    empty.steps.clear();
    let nothing = Compared::of(&[&empty, &b], 0, 0.05).unwrap();
    assert_eq!(nothing.pairs[0].overall(), Overall::Nothing);
    assert_eq!(Compared::of(&[&b], 0, 0.05), None);
    assert_eq!(Compared::of(&[&a, &b], 2, 0.05), None);
}

#[test]
fn every_run_is_compared_with_the_baseline_and_all_intervals_hold_together() {
    let mut chance = Chance::new(11);
    let [a, b, c] = ["a", "b", "c"].map(|id| scattered(&mut chance, id, &[8], 30, 400.0));
    let three = Compared::of(&[&a, &b, &c], 1, 0.05).unwrap();
    assert_eq!(three.pairs.iter().map(|pair| three.names_of(pair)).collect::<Vec<_>>(), [["b", "a"], ["b", "c"]]);
    let two = Compared::of(&[&b, &a], 0, 0.05).unwrap();
    assert_eq!(three.intervals, 2 * two.intervals);
    let width = |compared: &Compared| {
        let (low, high) = figure(&compared.pairs[0], 0, "operations/s").comparison.unwrap().interval.unwrap();
        high - low
    };
    assert!(width(&three) > width(&two), "more figures, wider intervals");
}

#[test]
fn runs_of_one_name_are_called_by_their_ids() {
    let mut chance = Chance::new(12);
    let [mut a, mut b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 10, 400.0));
    a.name = "same".to_owned();
    b.name = "same".to_owned();
    assert_eq!(compared(&[&a, &b], 0.05).names, ["a", "b"]);
    b.name = "other".to_owned();
    assert_eq!(compared(&[&a, &b], 0.05).names, ["same", "other"]);
}

#[test]
fn what_could_be_hidden_is_reported() {
    let mut chance = Chance::new(13);
    let [a, b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 10, 400.0));
    let compared = compared(&[&a, &b], 0.02);
    let verdict = compared.verdict(&compared.pairs[0]);
    assert!(verdict.starts_with("No difference of more than 2.0 % between `a` and `b` is shown"), "{verdict}");
    assert!(verdict.contains("These data could hide one of up to "), "{verdict}");
}

fn doubts(a: &Run, b: &Run) -> String {
    let compared = compared(&[a, b], 0.05);
    let pair = &compared.pairs[0];
    let sentences = pair.doubts.iter().map(|doubt| {
        let names = compared.names_of(pair);
        assert!(!names.contains(&"?"));
        doubt.sentence(names)
    });
    sentences.collect::<Vec<_>>().join("\n")
}

#[test]
fn runs_that_are_alike_are_not_doubted() {
    let mut chance = Chance::new(14);
    let [a, b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 30, 400.0));
    assert_eq!(doubts(&a, &b), "");
}

#[test]
fn every_reason_why_runs_are_not_comparable_is_reported() {
    let mut chance = Chance::new(15);
    let [a, b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 30, 400.0));
    type Change = fn(&mut Run);
    let changes: [(Change, &str); 14] = [
        (|run| run.load = Load::foreign(Workload::Io), "The workloads differ: `slob` in `a`, `io` in `b`."),
        (
            |run| run.target.kind = Some(TargetKind::Block),
            "The targets differ in kind: `embedded` in `a`, `block` in `b`.",
        ),
        (|run| run.tool.name = "awr".to_owned(), "`plimsoll` made `a` and `awr` made `b`"),
        (|run| run.target.block_bytes = Some(16_384), "The block sizes differ: 8 KiB in `a`, 16 KiB in `b`."),
        (
            |run| drop(run.parameters.insert("UPDATE_PCT".to_owned(), "20".to_owned())),
            "UPDATE_PCT is 0 in `a` and 20 in `b`.",
        ),
        (|run| drop(run.parameters.remove("WORK_UNIT")), "WORK_UNIT is 64 in `a` and not set in `b`."),
        (|run| run.command.push("--verify".to_owned()), "`b` checks every block that it reads and `a` does not"),
        (
            |run| run.target.facts.files.direct_io = Some(false),
            "`b` reads through the page cache of the operating system and `a` does not.",
        ),
        (
            |run| run.steps[0].counters.cache_hits = run.steps[0].counters.logical_reads,
            "At 8 sessions the buffer cache answered 1.6 % of logical reads in `a` and 100.0 % in `b`",
        ),
        (
            |run| run.steps[0].window.duration_ns *= 10,
            "The windows at 8 sessions differ in length: 30.0 s in `a`, 5m00s in `b`.",
        ),
        (
            |run| run.steps[0].load.rate_operations_per_s = Some(40.0),
            "`b` is an open loop, where the rate is set, and `a` a closed one",
        ),
        (|run| run.outcome = Outcome::Failed { error: "disk full".to_owned() }, "In `b`: The run failed with"),
        (|run| run.outcome = Outcome::Interrupted, "In `b`: The run was ended early"),
        (
            |run| run.steps[0].generator.as_mut().unwrap().busiest_share = 0.99,
            "In `b`: The busiest thread used 99.0 % of its processor in s8_t1",
        ),
    ];
    for (change, words) in changes {
        let mut other = b.clone();
        change(&mut other);
        let sentences = doubts(&a, &other);
        assert!(sentences.contains(words), "{words}\n--\n{sentences}");
        let compared = compared(&[&a, &other], 0.05);
        assert!(
            compared.pairs[0].doubts.iter().any(|doubt| doubt.advice(compared.pairs[0].grounds).is_some()),
            "{words}"
        );
    }
}

#[test]
fn a_rate_that_was_not_reached_and_a_generator_at_its_end_are_reported() {
    let [a, mut b] = [requests::sweep(), requests::sweep()];
    let step = &mut b.steps[0];
    let reached = crate::Figures(step).operations_per_s();
    let generator = step.generator.as_mut().unwrap();
    (generator.ceiling_operations_per_s, generator.busiest_share) = (reached, 0.8);
    b.name = "b".to_owned();
    let sentences = doubts(&a, &b);
    assert!(
        sentences.contains(&format!("In `b` the load generator was the limit in {}:", b.steps[0].label)),
        "{sentences}"
    );
    let open = requests::open_loop();
    let behind = Run { name: "behind".to_owned(), ..open.clone() };
    let sentences = doubts(&open, &behind);
    assert!(sentences.contains("In `behind`: The requested rate was not reached in"), "{sentences}");
}

#[test]
fn a_figure_of_which_nothing_is_known_is_not_called_the_same() {
    let mut chance = Chance::new(18);
    let [mut a, mut b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 300, 400.0));
    for run in [&mut a, &mut b] {
        // The waits of the whole are kept, those of seconds are not.
        run.steps[0].intervals.iter_mut().for_each(|second| second.waits.clear());
    }
    let compared = compared(&[&a, &b], 0.2);
    let pair = &compared.pairs[0];
    assert_eq!(figure(pair, 0, "mean of response time").comparison.unwrap().difference(), Difference::NoneThatMatters);
    assert_eq!(
        figure(pair, 0, "mean of `db file sequential read`").comparison.unwrap().difference(),
        Difference::Unknown
    );
    assert_eq!(pair.overall(), Overall::NotShown);
    let verdict = compared.verdict(pair);
    assert!(verdict.contains("nothing says how much they scatter."), "{verdict}");
}

#[test]
fn a_doubt_about_one_load_does_not_touch_the_others() {
    let mut chance = Chance::new(16);
    let [a, mut b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[4, 8], 30, 400.0));
    b.steps[1].generator.as_mut().unwrap().busiest_share = 0.99;
    let compared = compared(&[&a, &b], 0.05);
    let pair = &compared.pairs[0];
    assert_eq!(pair.loads.iter().map(|load| load.is_doubtful).collect::<Vec<_>>(), [false, true]);
    assert!(compared.verdict(pair).ends_with("This rests in part on doubtful steps: read the doubts first."));
    let unmatched = scattered(&mut chance, "c", &[4], 30, 400.0);
    assert_eq!(doubts(&unmatched, &b), "", "what was not compared is not doubted");
}

#[test]
fn differences_in_configuration_are_reported_by_what_they_mean() {
    let mut chance = Chance::new(17);
    let [a, mut b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 10, 400.0));
    assert_eq!(compared(&[&a, &b], 0.05).settings, []);
    b.seed = Some(7);
    b.tags.insert("disk".to_owned(), "p40".to_owned());
    b.environment.kernel = None;
    b.environment.devices[0].scheduler = Some("bfq".to_owned());
    b.target.cache_bytes = Some(1 << 30);
    let settings = compared(&[&a, &b], 0.05).settings;
    let names: Vec<(&str, Bearing)> = settings.iter().map(|setting| (setting.name.as_str(), setting.bearing)).collect();
    let expected = [
        ("cache", Bearing::Work),
        ("tag disk", Bearing::Varied),
        ("kernel", Bearing::Varied),
        ("device 1 scheduler", Bearing::Varied),
        ("seed", Bearing::Incidental),
    ];
    assert_eq!(names, expected);
    assert_eq!(settings[1].values, [Some("p30x2".to_owned()), Some("p40".to_owned())]);
    assert_eq!(settings[2].values[1], None);
}

#[test]
fn an_array_that_lacks_members_and_a_limit_of_a_group_are_differences() {
    use model::record::{ArrayState, GroupLimit, Limited};
    let mut chance = Chance::new(17);
    let [mut a, mut b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 10, 400.0));
    let array = |missing| Some(ArrayState { members: Some(2), missing: Some(missing), ..ArrayState::default() });
    (a.environment.devices[0].array, b.environment.devices[0].array) = (array(0), array(1));
    b.environment.group_limits = vec![GroupLimit {
        group: "/app.slice".to_owned(),
        file: "io.max".to_owned(),
        device: Some("nvme0n1".to_owned()),
        what: Limited::ReadsPerS,
        value: 300.0,
    }];
    let settings = compared(&[&a, &b], 0.05).settings;
    let values = |name: &str| {
        let found = settings.iter().find(|setting| setting.name == name).map(|setting| &setting.values);
        found
            .unwrap_or_else(|| panic!("{name} is not among {settings:?}"))
            .iter()
            .map(Option::as_deref)
            .collect::<Vec<_>>()
    };
    assert_eq!(values("device 1 array"), [Some("0 of 2 members missing"), Some("1 of 2 members missing")]);
    assert_eq!(values("control group"), [None, Some("`io.max` of `/app.slice` caps nvme0n1 at 300 reads/s")]);
}

#[test]
fn a_pool_that_fills_is_incidental_until_it_is_nearly_full_and_a_lost_path_is_a_difference() {
    use model::record::{PathState, PoolState};
    let mut chance = Chance::new(17);
    let [mut a, mut b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 10, 400.0));
    let mut differing = |used: [u64; 2], usable: [u32; 2]| {
        for (run, used, usable) in [(&mut a, used[0], usable[0]), (&mut b, used[1], usable[1])] {
            let pool = PoolState { data_bytes: Some(100), data_used_bytes: Some(used), ..PoolState::default() };
            let device = &mut run.environment.devices[0];
            device.pool = Some(pool);
            device.paths = Some(PathState { paths: 2, usable: Some(usable), ..PathState::default() });
        }
        let settings = compared(&[&a, &b], 0.05).settings;
        settings.into_iter().map(|setting| (setting.name, setting.bearing)).collect::<Vec<_>>()
    };
    let used = ("device 1 thin pool used".to_owned(), Bearing::Incidental);
    assert_eq!(differing([40, 50], [2, 2]), std::slice::from_ref(&used));
    let [paths, pool] = ["device 1 paths", "device 1 thin pool"].map(|name| (name.to_owned(), Bearing::Varied));
    assert_eq!(differing([40, 95], [2, 1]), [paths, pool, used]);
}

#[test]
fn runs_that_repeat_each_other_are_one_side_and_their_scatter_is_the_evidence() {
    let mut chance = Chance::new(19);
    let mut side = |us: [f64; 3]| {
        let runs = us.map(|us| scattered(&mut chance, "repeated", &[4, 8], 20, us));
        Repeats::of(runs.to_vec()).unwrap().unwrap()
    };
    // Seconds alone would call these different: the medians scatter by a tenth from run to run.
    let sides = [side([400.0, 440.0, 480.0]), side([440.0, 480.0, 520.0])];
    assert_eq!(sides[0].run.steps.iter().map(|step| step.index).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(sides[0].run.steps[5].intervals.iter().all(|interval| interval.step == 5));
    let compared = Compared::of_repeats(&sides, 0, 0.05).unwrap();
    let pair = &compared.pairs[0];
    assert_eq!(pair.loads[1].steps, [vec![1, 3, 5], vec![1, 3, 5]]);
    let mean = figure(pair, 1, "mean of response time").comparison.unwrap();
    assert_eq!((mean.evidence, mean.difference()), (Evidence::Repeats(3, 3), Difference::NotShown), "{mean:?}");
    let single = [&sides[0].run, &sides[1].run].map(|run| {
        let mut one = run.clone();
        one.steps.truncate(2);
        one
    });
    assert!(Compared::of(&[&single[0], &single[1]], 0, 0.05).unwrap().has_regression());
}

#[test]
fn runs_that_differ_are_no_repeats() {
    let mut chance = Chance::new(20);
    let [a, mut b] = ["a", "b"].map(|id| scattered(&mut chance, id, &[8], 10, 400.0));
    b.seed = Some(7);
    assert!(Repeats::of(vec![a.clone(), b.clone()]).unwrap().is_ok(), "a seed is incidental");
    b.environment.kernel = Some("7.0".to_owned());
    let message = Repeats::of(vec![a, b]).unwrap().unwrap_err().to_string();
    assert_eq!(message, "`a` and `b` are no repeats of each other: they differ in kernel");
    assert_eq!(Repeats::of(Vec::new()), None);
}

#[test]
fn reports_of_a_database_are_compared_by_all_that_they_tell_exactly() {
    let hour =
        |reads_per_s| windows::Hour { at: 9, minutes: 60, reads_per_s, writes_per_s: 100, within_ms: windows::QUICK };
    let [old, mut new] = [1_000, 2_000].map(|reads_per_s| {
        let mut run = windows::report(hour(reads_per_s));
        run.name = format!("{reads_per_s}");
        let commits = Histogram::counted(7_200, Some(reads_per_s * 7_200_000));
        run.steps[0].waits.push(sample::wait("log file sync", "Commit", true, commits));
        run
    });
    let values = |runs: [&Run; 2], what: &str| {
        let compared = compared(&runs, 0.05);
        let figure = figure(&compared.pairs[0], 0, what).clone();
        assert!(figure.comparison.is_none_or(|it| it.difference() == Difference::Unknown), "one reading each");
        figure.values.map(|value| value.map(|value| (value * 1e3).round() / 1e3))
    };
    for (what, wanted) in [
        ("reads/s", [1_000.0, 2_000.0]),
        ("writes/s", [100.0, 100.0]),
        ("MB/s", [9.011, 17.203]),
        ("redo MB/s", [0.1, 0.1]),
        ("mean of `log file sync`", [1e6, 2e6]),
    ] {
        assert_eq!(values([&old, &new], what), wanted.map(Some), "{what}");
    }
    new.steps[0].counters.physical_reads = None;
    new.steps[0].counters.physical_read_bytes = None;
    new.steps[0].counters.physical_read_blocks = Some(7_200_000);
    assert_eq!(values([&old, &new], "blocks read/s"), [None, Some(2_000.0)]);
    assert_eq!(values([&old, &new], "MB/s"), [Some(9.011), None], "writes alone are not both");
    let own = sample::sweep(20);
    let figures = &compared(&[&own, &own.clone()], 0.05).pairs[0].loads[0].figures;
    assert!(!figures.iter().any(|figure| figure.measure == Measure::Rate(Metric::RedoMegabytes)), "{figures:?}");
}

#[test]
fn where_files_lie_makes_no_other_load_unless_one_run_has_several_places() {
    let set = |run: &mut Run, name: &str, value: &str| {
        run.steps.iter_mut().for_each(|step| drop(step.parameters.insert(name.to_owned(), value.to_owned())));
    };
    let (mut old, mut new) = (requests::sweep(), requests::sweep());
    new.id = "20261121-103000-io".to_owned();
    set(&mut old, "filename", "/u02/data");
    set(&mut new, "directory", "/data");
    set(&mut new, "filename", "data");
    let pair = Compared::of(&[&old, &new], 0, 0.05).unwrap().pairs.remove(0);
    assert_eq!(pair.loads.len(), old.steps.len());
    assert!(pair.only.iter().all(Vec::is_empty), "{:?}", pair.only);
    let mut again = old.clone();
    again.id.clone_from(&new.id);
    for run in [&mut old, &mut again] {
        "/u03/other".clone_into(run.steps[0].parameters.get_mut("filename").unwrap());
    }
    let pair = Compared::of(&[&old, &again], 0, 0.05).unwrap().pairs.remove(0);
    assert!(
        pair.loads.iter().any(|load| load.name.contains("filename=/u03/other")),
        "two disks in one run are two loads"
    );
}

#[test]
fn repeats_are_called_by_what_they_have_in_common() {
    let side = |tag: &str| {
        let mut run = requests::sweep();
        run.tags = BTreeMap::from([("vm".to_owned(), tag.to_owned())]);
        let mut again = run.clone();
        again.id += "-2";
        Repeats::of(vec![run, again]).unwrap().unwrap()
    };
    let compared = Compared::of_repeats(&[side("a"), side("b")], 0, 0.05).unwrap();
    assert_eq!(compared.names, ["vm=a (2 runs)", "vm=b (2 runs)"]);
}

#[test]
fn what_iostat_saw_is_compared_by_the_busiest_device_of_each_side() {
    let seen = |device: &str, figures: [(Metric, f64); 7]| {
        let mut step = Step::new(0, "iostat");
        step.window.duration_ns = 60 * SECOND;
        step.outcome = Outcome::Completed;
        step.reported
            .extend([("idle", Metric::DeviceReads, 9_000.0), ("idle", Metric::DeviceBusy, 1.0)].map(of_device));
        step.reported.extend(figures.map(|(metric, value)| of_device((device, metric, value))));
        let mut run = sample::imported();
        run.load = Load::foreign(Workload::Host);
        device.clone_into(&mut run.name);
        device.clone_into(&mut run.id);
        run.steps = vec![step];
        run
    };
    let metrics = [
        Metric::DeviceReads,
        Metric::DeviceWrites,
        Metric::DeviceReadMegabytes,
        Metric::DeviceWriteMegabytes,
        Metric::DeviceReadAwait,
        Metric::DeviceWriteAwait,
        Metric::DeviceBusy,
    ];
    let values = |values: [f64; 7]| std::array::from_fn(|place| (metrics[place], values[place]));
    let old = seen("sda", values([1_000.0, 500.0, 8.192, 4.096, 2.0, 5.0, 50.0]));
    let new = seen("nvme0n1", values([2_000.0, 0.0, 16.384, 0.0, 1.0, -1.0, 25.0]));
    let compared = Compared::of(&[&old, &new], 0, 0.05).unwrap();
    let figures = &compared.pairs[0].loads[0].figures;
    let known: Vec<(String, [f64; 2])> =
        figures.iter().map(|it| (it.measure.to_string(), it.values.map(Option::unwrap))).collect();
    let of = |name: &str| known.iter().find(|(measure, _)| measure == name).map(|(_, values)| *values);
    assert_eq!(of("reads/s of the busiest device"), Some([1_000.0, 2_000.0]));
    assert_eq!(of("read MB/s of the busiest device"), Some([8.192, 16.384]));
    assert_eq!(of("await of the busiest device"), Some([3e6, 1e6]), "of reads and writes as many as there were");
    assert_eq!(of("busy % of the busiest device"), Some([50.0, 25.0]));
    assert!(!compared.has_regression() && compared.pairs[0].comparisons().count() == known.len(), "{known:?}");
}

fn of_device((device, metric, value): (&str, Metric, f64)) -> model::record::ReportedFigure {
    model::record::ReportedFigure::new("device", "", "", value).is(metric, 1.0).of(device)
}
