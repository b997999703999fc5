//! Answers from programs that report rates and no counts.

use super::*;
use crate::trend::Trends;
use model::record::Load;
use model::record::OrionLevel;
use model::record::Workload;
use model::record::sample::windows::{Hour, QUICK, report};
use model::record::{Clock, Imported, Metric, ReportedFigure, Step, sample};

/// A database that reads blocks of 8 KiB.
fn asks(reads_per_s: u64) -> Demand {
    let mut run = report(Hour { at: 9, minutes: 60, reads_per_s, writes_per_s: 0, within_ms: QUICK });
    let counters = &mut run.steps[0].counters;
    (counters.physical_writes, counters.physical_write_bytes) = (Some(0), Some(0));
    Demand::of(&Trends::of(&[&run]).trends[0], &[&run], Share::Peak, &LatencyTarget::default())
}

fn run(workload: Workload, steps: Vec<Step>) -> Run {
    let mut run = sample::sweep(60);
    run.imported = Some(Imported { files: Vec::new(), clock: Clock::FileTime, not_understood: Vec::new() });
    run.load = Load::foreign(workload);
    (run.parameters, run.target, run.command, run.steps) = (Default::default(), Default::default(), Vec::new(), steps);
    run
}

fn step(label: &str, figures: &[(&str, &str, f64)]) -> Step {
    let mut step = Step::new(0, label);
    step.outcome = model::record::Outcome::Completed;
    let known = |name: &str| {
        let metric = match name {
            "Maximum Small IOPS" => (Metric::Operations, 1.0),
            "Minimum Small Latency" => (Metric::RequestTime, 1e-3),
            "Maximum Large MBPS" => (Metric::Megabytes, 1.0),
            "max_iops" => (Metric::Reads, 1.0),
            "max_mbps" => (Metric::ReadMegabytes, 1.0),
            "latency" => (Metric::RequestTime, 1.0),
            _ => return None,
        };
        Some(metric)
    };
    let figure = |(name, unit, value): &(&str, &str, f64)| {
        let (metric, factor) = known(name).unzip();
        ReportedFigure::new("OS file", *name, unit, *value).is(metric, factor.unwrap_or(1.0))
    };
    step.reported = figures.iter().map(figure).collect();
    step
}

fn point(small: u32, large: u32, figures: &[(&str, &str, f64)]) -> Step {
    let mut step = step(&format!("small{small}_large{large}"), figures);
    step.level = Some(model::record::Level::Orion(OrionLevel { small, large }));
    step
}

/// 20,000 small reads a second with 10 outstanding, and 700 MB/s of large ones.
fn orion() -> Run {
    let mut run = run(
        Workload::Orion,
        vec![
            point(0, 4, &[("Maximum Large MBPS", "MB/s", 700.0)]),
            point(10, 0, &[("Maximum Small IOPS", "/s", 20_000.0)]),
            point(1, 0, &[("Minimum Small Latency", "us", 150.0)]),
        ],
    );
    run.command = ["orion", "-run", "simple"].map(str::to_owned).to_vec();
    run.target.block_bytes = Some(8_192);
    run
}

fn fit_to(demand: &Demand, run: &Run, target: &str) -> (Fit, Platform) {
    let target: LatencyTarget = target.parse().unwrap();
    let platform = Platform::of(run, &target);
    (Fit::of(demand, &platform, run, &target), platform)
}

fn answer_of(demand: &Demand, run: &Run, target: &str) -> Answer {
    fit_to(demand, run, target).0.answer
}

#[test]
fn a_point_of_orion_answers_with_its_rate_where_the_mean_proves_the_target() {
    let (fit, platform) = fit_to(&asks(15_000), &orion(), "p90=5ms");
    assert_eq!((fit.answer, fit.level.as_deref()), (Answer::Carries, Some("small10_large0")), "{platform:?}");
    assert!((fit.headroom().unwrap() - 20_000.0 / 15_000.0).abs() < 1e-9);
    assert!(fit.doubts.contains(&FitDoubt::UnreportedLengths), "{:?}", fit.doubts);
    let labels: Vec<&str> = platform.levels.iter().map(|level| level.label.as_str()).collect();
    assert_eq!(labels, ["small0_large4", "small10_large0"], "one that reports no rate is no level");
    assert_eq!(platform.levels[1].mean_ms, None, "what bounds the mean is not the mean");
    assert_eq!(answer_of(&asks(21_000), &orion(), "p90=5ms"), Answer::Unknown(NotKnown::BeyondLevels));
    assert_eq!(answer_of(&asks(15_000), &orion(), "p90=4.9ms"), Answer::Unknown(NotKnown::NotJudged));
}

#[test]
fn a_mean_never_proves_a_percentile_near_it_nor_a_miss() {
    let (fit, platform) = fit_to(&asks(15_000), &orion(), "p99=5ms");
    assert_eq!((fit.answer, platform.levels[1].verdict), (Answer::Unknown(NotKnown::NotJudged), Verdict::OnlyMean));
    assert!(fit.doubts.contains(&FitDoubt::OnlyMeans(vec!["small10_large0".to_owned()])), "{:?}", fit.doubts);
    assert_eq!(answer_of(&asks(30_000), &orion(), "p99=1us"), Answer::Unknown(NotKnown::NotJudged));
    let event = answer_of(&asks(15_000), &orion(), "db file sequential read:p90=5ms");
    assert_eq!(event, Answer::Unknown(NotKnown::NotJudged), "ORION timed no event");
}

#[test]
fn the_longest_request_proves_every_percentile() {
    let mut run = orion();
    let maxima = [(Metric::ReadTime, 490.0), (Metric::ReadTimeMax, 4_900.0)];
    let figures = maxima.map(|(metric, us)| ReportedFigure::new("OS file", "latency", "us", us).is(metric, 1e-3));
    run.steps[1].reported.extend(figures);
    let (fit, platform) = fit_to(&asks(15_000), &run, "p99=5ms");
    assert_eq!((fit.answer, platform.levels[1].mean_ms), (Answer::Carries, Some(0.49)));
    assert_eq!(answer_of(&asks(15_000), &run, "p99=4.8ms"), Answer::Unknown(NotKnown::NotJudged));
    run.parameters.insert("WRITE_PCT".to_owned(), "20".to_owned());
    assert_eq!(fit_to(&asks(15_000), &run, "p99=5ms").1.levels[1].verdict, Verdict::OnlyMean, "writes took longer");
}

#[test]
fn what_orion_does_not_tell_is_not_known() {
    let mut run = orion();
    run.parameters.insert("WRITE_PCT".to_owned(), "20".to_owned());
    let rates = |run: &Run| fit_to(&asks(1_000), run, "p90=5ms").1.levels[1].rates;
    assert_eq!((rates(&run).reads, rates(&run).writes), (Some(16_000.0), Some(4_000.0)));
    (run.parameters, run.command) = (Default::default(), Vec::new());
    assert_eq!((rates(&run).reads, rates(&run).writes, rates(&run).io), (None, None, Some(20_000.0)));
    let unknown = answer_of(&asks(1_000), &run, "p90=5ms");
    assert_eq!(unknown, Answer::Unknown(NotKnown::NotMeasured(Metric::Reads)), "it may have written");
    let mut mixed = orion();
    let Some(model::record::Level::Orion(point)) = &mut mixed.steps[1].level else { panic!("a point") };
    point.large = 1;
    assert_eq!(fit_to(&asks(1_000), &mixed, "p90=5ms").1.levels.len(), 1, "large requests are not in its IOPS");
    let mut small = orion();
    small.target.block_bytes = None;
    let apart = answer_of(&asks(1_000), &small, "p90=5ms");
    assert_eq!(apart, Answer::Unknown(NotKnown::Apart), "bytes were reported on large requests only");
}

#[test]
fn windows_and_counts_that_are_known_count_for_more_than_reported_rates() {
    let mut run = orion();
    run.steps[1].window.duration_ns = 60_000_000_000;
    (run.steps[1].counters.physical_reads, run.steps[1].counters.physical_writes) = (Some(600_000), Some(0));
    let level = &fit_to(&asks(1_000), &run, "p90=5ms").1.levels[1];
    assert_eq!((level.rates.reads, level.seconds), (Some(10_000.0), Some(60.0)));
}

#[test]
fn calibrate_io_proves_two_rates_apart() {
    let calibration = |ms| {
        run(
            Workload::Calibrate,
            vec![step(
                "calibration",
                &[("max_iops", "/s", 9_000.0), ("max_mbps", "MB/s", 300.0), ("latency", "ms", ms)],
            )],
        )
    };
    let (fit, platform) = fit_to(&asks(5_000), &calibration(0.4), "p90=5ms");
    assert_eq!((fit.answer, fit.level.as_deref()), (Answer::Unknown(NotKnown::Apart), Some("max_iops")));
    let levels: Vec<_> =
        platform.levels.iter().map(|level| (level.label.as_str(), level.rates, level.verdict)).collect();
    let bytes = Rates { megabytes: Some(300.0), writes: Some(0.0), ..Rates::default() };
    let reads = Rates { reads: Some(9_000.0), writes: Some(0.0), io: Some(9_000.0), ..Rates::default() };
    assert_eq!(levels, [("max_mbps", bytes, Verdict::NotJudged), ("max_iops", reads, Verdict::Met)]);
    assert_eq!(answer_of(&asks(10_000), &calibration(0.4), "p90=5ms"), Answer::Unknown(NotKnown::BeyondLevels));
    // Whole milliseconds may be nearly one more: 0 proves no more than 1 does.
    let of_none = fit_to(&asks(5_000), &calibration(0.0), "p90=9.9ms").1;
    assert_eq!((of_none.levels[1].verdict, of_none.levels[1].mean_ms), (Verdict::OnlyMean, None));
    assert_eq!(fit_to(&asks(5_000), &calibration(0.0), "p90=10ms").1.levels[1].verdict, Verdict::Met);
}
