//! What reports of other programs' figures open with.

use super::*;
use crate::SINGLE_BLOCK_READ;
use crate::{Figures, analyse_asked};
use model::record::Load;
use model::record::Workload;
use model::record::{
    Clock, Histogram, Imported, Level, Metric, OrionLevel, Outcome, ReportedFigure, Run, Step, WaitStats, sample,
};

fn sentence_of(run: &Run) -> String {
    Opening::of(run, &analyse_asked(run, None)).sentence()
}

/// A step of a program that only reports figures: name, unit and value of each.
fn only_reported(label: &str, point: Option<(u32, u32)>, figures: &[(&str, &str, f64)]) -> Step {
    let mut step = Step::new(0, label);
    step.outcome = Outcome::Completed;
    step.level = point.map(|(small, large)| Level::Orion(OrionLevel { small, large }));
    let known = |name: &str| {
        let metric = match name {
            "Maximum Small IOPS" => Metric::Operations,
            "Maximum Large MBPS" => Metric::Megabytes,
            "max_iops" => Metric::Reads,
            "max_mbps" => Metric::ReadMegabytes,
            "latency" => Metric::RequestTime,
            _ => return None,
        };
        Some(metric)
    };
    let figure = |(name, unit, value): &(&str, &str, f64)| {
        ReportedFigure::new("client", *name, unit, *value).is(known(name), 1.0)
    };
    step.reported.extend(figures.iter().map(figure));
    step
}

fn reported_by(program: &str, workload: Workload, steps: Vec<Step>) -> Run {
    let mut run = sample::imported();
    run.imported = Some(Imported { files: Vec::new(), clock: Clock::Wall, not_understood: Vec::new() });
    program.clone_into(&mut run.tool.name);
    run.load = Load::foreign(workload);
    run.steps = steps;
    run
}

#[test]
fn what_has_no_rate_is_reported_by_the_sources_own_names() {
    let step = |nopm| only_reported("test", None, &[("NOPM", "/min", nopm), ("TPM", "/min", 3.0)]);
    let mut run = reported_by("HammerDB", Workload::Transactions, [10.0, 75_200.0, 30.0].map(step).into());
    assert_eq!(sentence_of(&run), "HammerDB reports NOPM at most 75,200 /min.");
    run.load = Load::foreign(Workload::Host);
    assert_eq!(sentence_of(&run), "What HammerDB saw of a machine: of load it says nothing.");
}

#[test]
fn what_iostat_saw_opens_with_the_busiest_device() {
    let figures = [
        ("sda", Metric::DeviceReads, 9.0),
        ("sda", Metric::DeviceBusy, 3.0),
        ("sdb", Metric::DeviceReads, 1_200.0),
        ("sdb", Metric::DeviceWrites, 30.5),
        ("sdb", Metric::DeviceReadMegabytes, 9.83),
        ("sdb", Metric::DeviceWriteMegabytes, 0.0),
        ("sdb", Metric::DeviceReadAwait, 4.25),
        ("sdb", Metric::DeviceBusy, 87.5),
    ];
    let mut step = only_reported("all", None, &[]);
    let figure = |(device, metric, value): (&str, Metric, f64)| {
        ReportedFigure::new("device", metric.key(), "", value).is(metric, 1.0).of(device)
    };
    step.reported = figures.map(figure).into();
    let run = reported_by("iostat", Workload::Host, vec![step]);
    assert_eq!(
        sentence_of(&run),
        "iostat saw sdb busiest, 88 % of the time, with 1,200 reads/s, 30 writes/s, 9.8 MB/s read, 0 MB/s written, \
         4.2 ms r_await."
    );
}

#[test]
fn a_percentile_of_few_reads_is_not_that_of_all() {
    let mut run = sample::imported();
    let step = &mut run.steps[0];
    let single = step.waits.iter().find(|wait| wait.event == SINGLE_BLOCK_READ).unwrap().clone();
    assert!(sentence_of(&run).contains(" at p99 "), "{}", sentence_of(&run));
    let many = Histogram::counted(single.waits.count() * 100, None);
    let direct = WaitStats { event: "direct path read".to_owned(), waits: many, reported: Vec::new(), ..single };
    run.steps[0].waits.push(direct);
    let words = sentence_of(&run);
    assert!(words.contains(" reads/s, most of them direct path read") && !words.contains("p99"), "{words}");
}

#[test]
fn orion_and_calibrate_io_open_with_both_of_their_answers() {
    let mut small = only_reported("small9_large0", Some((9, 0)), &[("Maximum Small IOPS", "/s", 4_321.0)]);
    small.load.sessions = Some(9);
    let large = only_reported("small0_large2", Some((0, 2)), &[("Maximum Large MBPS", "MB/s", 210.7)]);
    let mixed = only_reported("small4_large2", Some((4, 2)), &[("Small IOPS", "/s", 9_999.0)]);
    assert_eq!(Figures(&mixed).operations_per_s(), None, "large requests were sent beside them");
    let orion = reported_by("ORION", Workload::Orion, vec![large, small, mixed]);
    assert_eq!(
        sentence_of(&orion),
        "ORION reports at most 4,321 requests/s with 9 outstanding, and 211 MB/s at small0_large2."
    );

    let figures = [("max_iops", "/s", 1_234.0), ("latency", "ms", 9.5), ("max_mbps", "MB/s", 88.0)];
    let calibration = only_reported("calibration", None, &figures);
    let calibrate = reported_by("CALIBRATE_IO", Workload::Calibrate, vec![calibration]);
    assert_eq!(
        sentence_of(&calibrate),
        "CALIBRATE_IO reports at most 1,234 reads/s in 9.5 ms on average, and 88 MB/s."
    );
}
