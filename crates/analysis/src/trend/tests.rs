use super::*;
use model::record::sample::windows::{Hour, QUICK, history, planted_reads, report};
use model::record::{JobsAtOnce, ReportedFigure, ServerStats, Step, sample};

fn of(runs: &[Run]) -> Trends {
    Trends::of(&runs.iter().collect::<Vec<_>>())
}

fn of_one(run: &Run) -> Trends {
    of(std::slice::from_ref(run))
}

fn hour(at: i64) -> Hour {
    Hour { at, minutes: 60, reads_per_s: 1_000, writes_per_s: 100, within_ms: QUICK }
}

fn only(trends: Trends) -> Trend {
    assert_eq!(trends.trends.len(), 1, "{:?}", trends.trends.iter().map(|t| &t.database).collect::<Vec<_>>());
    trends.trends.into_iter().next().unwrap()
}

#[test]
fn the_planted_history_comes_out() {
    let trend = only(of(&history()));
    assert_eq!((trend.windows.len(), trend.is_wall_clock), (237, true));
    let [twice] = trend.set_aside.as_slice() else { panic!("{:?}", trend.set_aside) };
    assert!(matches!(&twice.why, Why::Again { of } if *of == "20261102-100000-awr"), "{twice:?}");
    let [gap] = trend.gaps.as_slice() else { panic!("{:?}", trend.gaps) };
    assert_eq!((gap.from.to_string(), gap.seconds()), ("2026-11-05T08:00:00Z".to_owned(), 12_000.0));
    assert!((trend.covered_share() - (1.0 - 12_000.0 / 864_000.0)).abs() < 1e-9);

    let reads = trend.summary(Metric::Reads).unwrap();
    assert_eq!(
        (reads.peak, trend.windows[reads.peak_at].from.to_string()),
        (6_000.0, "2026-11-07T02:00:00Z".to_owned())
    );
    let growth = reads.growth.unwrap();
    assert!((growth.per_day - 100.0).abs() < 1.0 && growth.is_shown(), "{growth:?}");
    assert_eq!((growth.days, growth.like), (10, LikeDays::All));
    let io = trend.summary(Metric::Io).unwrap();
    assert!((io.peak - 7_500.0).abs() < 1e-6);
}

#[test]
fn a_percentile_over_time_is_that_of_all_minutes() {
    let runs = history();
    let trend = only(of(&runs));
    let mut minutes: Vec<f64> = Vec::new();
    for run in &runs[..runs.len() - 1] {
        let step = &run.steps[0];
        let seconds = step.window.duration_ns / 1_000_000_000;
        let rate = step.counters.physical_reads.unwrap() as f64 / seconds as f64;
        minutes.extend(std::iter::repeat_n(rate, seconds as usize / 60));
    }
    minutes.sort_by(f64::total_cmp);
    let wanted = QUANTILES.map(|quantile| minutes[(minutes.len() as f64 * quantile).ceil() as usize - 1]);
    let summary = trend.summary(Metric::Reads).unwrap();
    assert_eq!(summary.quantiles, wanted);
    let mean = minutes.iter().sum::<f64>() / minutes.len() as f64;
    assert!((summary.mean.unwrap() - mean).abs() < 1e-6);
}

#[test]
fn hours_and_days_are_those_of_the_clock() {
    let trend = only(of(&history()));
    let hours = trend.hours(Metric::Reads);
    assert_eq!(hours.len(), 24);
    let nine = &hours[9];
    let planted: f64 = (0..10).filter(|day| *day != 3).map(|day| planted_reads(24 * day + 9) as f64).sum();
    assert_eq!((nine.days, nine.peak), (9, 3_900.0));
    assert!((nine.mean.unwrap() - planted / 9.0).abs() < 1e-6, "{nine:?}");
    assert_eq!((hours[2].peak, hours[2].peak_from.to_string()), (6_000.0, "2026-11-07T02:00:00Z".to_owned()));
    let days = trend.days(Metric::Reads);
    assert_eq!(days.len(), 10);
    assert!((days[3].covered_share - (86_400.0 - 12_000.0) / 86_400.0).abs() < 1e-9);
    assert_eq!((days[5].peak, days[9].peak), (6_000.0, 3_900.0));
    assert_eq!(days[0].covered_share, 1.0);
}

#[test]
fn a_window_that_crosses_an_hour_counts_for_both_by_its_time_in_them() {
    let mut run = report(hour(9));
    run.started_at.0 += jiff::SignedDuration::from_mins(45);
    let trend = only(of(&[report(hour(8)), run]));
    let cells = trend.hour_cells(Metric::Reads);
    let covered: Vec<f64> = cells.values().map(|cell| cell.covered_s).collect();
    assert_eq!(covered, [3_600.0, 900.0, 2_700.0]);
    assert!(cells.values().all(|cell| cell.mean() == Some(1_000.0)));
}

#[test]
fn a_report_that_ends_some_seconds_late_tells_nothing_of_the_hour_after() {
    let late = |at, reads_per_s| {
        let mut run = report(Hour { reads_per_s, ..hour(at) });
        run.started_at.0 += jiff::SignedDuration::from_secs(5);
        run
    };
    let trend = only(of(&[late(22, 1_000), late(23, 6_000), late(24, 500)]));
    let hours: Vec<(u8, usize, f64)> =
        trend.hours(Metric::Reads).iter().map(|row| (row.hour, row.days, row.peak)).collect();
    assert_eq!(hours, [(0, 1, 500.0), (22, 1, 1_000.0), (23, 1, 6_000.0)], "and not 6,000 after midnight");
    let days: Vec<f64> = trend.days(Metric::Reads).iter().map(|row| row.peak).collect();
    assert_eq!(days, [6_000.0, 500.0]);
    let cells: Vec<f64> = trend.hour_cells(Metric::Reads).values().map(|cell| cell.peak).collect();
    assert_eq!(cells, [1_000.0, 6_000.0, 500.0]);
    // What is known of an hour still counts in its mean, by its time.
    let midnight = &trend.hours(Metric::Reads)[0];
    assert!((midnight.mean.unwrap() - (5.0 * 6_000.0 + 3_595.0 * 500.0) / 3_600.0).abs() < 1e-6);
}

#[test]
fn pluggable_databases_of_one_database_are_not_the_same_time_again() {
    let on = |containers: &str| {
        let mut run = report(hour(3));
        run.target.facts.database.containers = containers.split(", ").map(str::to_owned).collect();
        run
    };
    let trends = of(&[on("CDB$ROOT, PDB$SEED, SALES"), on("SALES"), on("HR"), on("CDB$ROOT")]);
    let set_aside: Vec<(&str, usize)> =
        trends.trends.iter().map(|trend| (trend.database.name.as_str(), trend.set_aside.len())).collect();
    assert_eq!(set_aside, [("PROD/PROD1", 1), ("PROD:HR/PROD1", 0), ("PROD:SALES/PROD1", 0)]);
}

#[test]
fn a_listener_is_no_instance_of_a_database() {
    let mut client = report(hour(3));
    client.target.facts.database.id = None;
    for address in ["//localhost:1521/FREEPDB1", "db1:1521/ORCL"] {
        client.target.address = address.to_owned();
        let database = only(of(std::slice::from_ref(&client))).database;
        assert_eq!((database.name.as_str(), database.scope.instance), (address, None));
    }
}

#[test]
fn jobs_at_the_same_time_are_one_window_with_all_that_they_did() {
    let mut run = report(hour(3));
    let mut second = run.steps[0].clone();
    second.label = "second".to_owned();
    run.steps.push(second);
    let unreported = of(std::slice::from_ref(&run));
    assert!(
        unreported.trends.is_empty() && unreported.left_out.iter().all(|aside| aside.why == Why::NoTime),
        "{unreported:?}"
    );
    run.target.facts.jobs_at_once = Some(JobsAtOnce::All(2));
    let trend = only(of(std::slice::from_ref(&run)));
    assert_eq!((trend.windows.len(), trend.set_aside.len()), (1, 0));
    assert_eq!(trend.windows[0].reading(Metric::Io).unwrap().value, 2_200.0);
    // Those that began an hour later ran by themselves, and those of which nobody knows when they ran together count for nothing.
    let of_groups = |groups: [Option<u32>; 3]| {
        let mut run = run.clone();
        let third = run.steps[1].clone();
        run.steps.push(third);
        run.steps[2].window.offset_ns = 3_600_000_000_000;
        run.target.facts.jobs_at_once = Some(JobsAtOnce::Each(groups.into()));
        of(&[run])
    };
    let two = only(of_groups([Some(1), Some(1), Some(2)]));
    let io: Vec<f64> = two.windows.iter().map(|window| window.reading(Metric::Io).unwrap().value).collect();
    assert_eq!((io, two.set_aside.len()), (vec![2_200.0, 1_100.0], 0));
    let part = of_groups([None, None, Some(2)]);
    assert!(part.left_out.iter().filter(|aside| aside.why == Why::Part).count() == 2, "{part:?}");
}

#[test]
fn of_a_report_on_a_day_and_those_on_its_hours_the_hours_count() {
    let mut day = report(hour(0));
    day.id = "day".to_owned();
    day.steps[0].window.duration_ns *= 24;
    let trend = only(of(&[day, report(hour(3)), report(hour(4))]));
    assert_eq!(trend.windows.len(), 2);
    assert!(matches!(&trend.set_aside[..], [SetAside { run, why: Why::Overlaps { .. }, .. }] if run == "day"));
}

#[test]
fn reports_that_meet_at_the_minute_do_not_overlap() {
    let mut next = report(hour(4));
    next.started_at.0 -= jiff::SignedDuration::from_secs(40);
    let trend = only(of(&[report(hour(3)), next]));
    assert_eq!((trend.windows.len(), trend.gaps.len(), trend.covered_share()), (2, 0, 1.0));
}

#[test]
fn other_databases_stand_apart_and_are_reported_by_their_number_where_the_name_is_one() {
    let mut other = report(hour(3));
    other.target.facts.database.id = Some(42);
    let trends = of(&[report(hour(3)), other, sample::updates(20)]);
    let names: Vec<&str> = trends.trends.iter().map(|trend| trend.database.name.as_str()).collect();
    assert_eq!(names, ["PROD (oracle 1234567890)/PROD1", "PROD (oracle 42)/PROD1", "dir:/u01/plimsoll"]);
    assert!(trends.trends.iter().all(|trend| trend.windows.len() == 1 && trend.set_aside.is_empty()));
}

#[test]
fn one_number_is_one_database_however_it_is_called() {
    let mut small = report(hour(4));
    small.target.address = "prod/PROD1".to_owned();
    assert_eq!(only(of(&[report(hour(3)), small])).windows.len(), 2);
}

#[test]
fn reports_on_all_instances_and_on_one_are_not_added_up() {
    let server = |node: &str| ServerStats { node: node.to_owned(), ..ServerStats::default() };
    let whole = |at| {
        let mut run = report(hour(at));
        run.id = format!("whole-{at}");
        run.target.address = "PROD".to_owned();
        run.steps[0].instances = vec![server("1"), server("2")];
        run
    };
    let second = |at| {
        let mut run = report(hour(at));
        run.target.address = "PROD/PROD2".to_owned();
        run
    };
    let trends = of(&[whole(3), report(hour(3)), second(3), report(hour(4)), second(4)]);
    let counts: Vec<(&str, usize, usize)> = trends
        .trends
        .iter()
        .map(|trend| (trend.database.name.as_str(), trend.windows.len(), trend.set_aside.len()))
        .collect();
    assert_eq!(counts, [("PROD", 1, 0), ("PROD/PROD1", 1, 1), ("PROD/PROD2", 1, 1)]);
    let inside = only(of(&[whole(3), report(hour(3)), second(3)]));
    assert_eq!(inside.set_aside.len(), 2);
    assert!(inside.set_aside.iter().all(|aside| matches!(&aside.why, Why::InWhole { of } if of == "whole-3")));
}

#[test]
fn what_is_not_reported_is_left_out_and_never_zero() {
    let mut reads_only = report(hour(3));
    reads_only.steps[0].counters.physical_writes = None;
    reads_only.steps[0].waits.clear();
    reads_only.steps[0].reported.clear();
    let trend = only(of(&[reads_only]));
    let names: Vec<&str> = trend.measures().into_iter().map(Metric::heading).collect();
    assert_eq!(names, ["reads/s", "MB/s", "read MB/s", "write MB/s", "redo MB/s", "commits/s"]);

    let mut no_length = report(hour(4));
    no_length.steps[0].window.duration_ns = 0;
    let mut no_time = report(hour(5));
    no_time.imported.as_mut().unwrap().clock = Clock::FileTime;
    let mut failed = report(hour(6));
    failed.steps[0].outcome = model::record::Outcome::Unfinished;
    let trends = of(&[no_length, no_time, failed]);
    assert!(trends.trends.is_empty());
    let why: Vec<&Why> = trends.left_out.iter().map(|aside| &aside.why).collect();
    assert_eq!(why, [&Why::NoLength, &Why::NoTime, &Why::NotFinished]);
}

#[test]
fn latency_load_and_processors_are_read_in_the_words_of_a_report() {
    let mut run = report(Hour { within_ms: [50, 0, 0, 0, 30, 20], ..hour(3) });
    let value =
        |run: &Run, measure: Metric| only(of(std::slice::from_ref(run))).summary(measure).map(|reported| reported.peak);
    // Those of 8 to 16 ms may have taken less than 10 ms.
    assert!((value(&run, Metric::SlowReads).unwrap() - 20.0).abs() < 1e-9);
    assert_eq!(value(&run, Metric::ReadTimeP99), Some(32.768));
    assert_eq!(value(&run, Metric::HostBusy), Some(10.0));
    assert_eq!(value(&run, Metric::ActiveSessions), Some(2.0));
    assert_eq!(only(of(std::slice::from_ref(&run))).summary(Metric::ReadTimeP99).unwrap().mean, None);
    run.steps[0].reported[0] = ReportedFigure::new("engine", "DB Time(s)", "/s", 7.5);
    assert_eq!(value(&run, Metric::ActiveSessions), None, "which metric it is is not known");
    run.steps[0].reported[0] = run.steps[0].reported[0].clone().is(Metric::ActiveSessions, 1.0);
    assert_eq!(value(&run, Metric::ActiveSessions), Some(7.5));
}

#[test]
fn a_processor_that_waits_for_storage_is_not_busy() {
    let busy = |figures: &[(Option<&str>, Metric, f64)]| {
        let mut run = report(hour(3));
        let step = &mut run.steps[0];
        step.reported.retain(|figure| figure.layer != "host");
        let of = |(part, metric, value): &(Option<&str>, Metric, f64)| {
            let whole = ReportedFigure::new("host", "a share", "%", *value).is(*metric, 1.0);
            if let Some(part) = part { whole.of(part) } else { whole }
        };
        step.reported.extend(figures.iter().map(of));
        only(of_one(&run)).summary(Metric::HostBusy).map(|reported| reported.peak)
    };
    let (user, system, idle) = (Metric::HostUser, Metric::HostSystem, Metric::HostIdle);
    let nice = [(None, user, 10.0), (None, user, 2.0), (None, system, 5.0), (None, Metric::HostIowait, 40.0)];
    assert_eq!(busy(&nice), Some(17.0));
    assert_eq!(busy(&[(None, Metric::HostIowait, 30.0), (None, idle, 60.0)]), Some(10.0));
    // Oracle counts the wait for storage as idle.
    assert_eq!(busy(&[(None, idle, 85.0)]), Some(15.0));
    assert_eq!(busy(&[(None, Metric::HostBusy, 12.0)]), Some(12.0));
    // What iostat saw is not mixed with what mpstat did.
    assert_eq!(busy(&[(None, user, 10.0), (Some("mpstat"), system, 70.0), (None, system, 5.0)]), Some(15.0));
    assert_eq!(busy(&[(Some("db1"), idle, 90.0)]), Some(10.0));
    assert_eq!(busy(&[(Some("db1"), idle, 90.0), (Some("db2"), idle, 10.0)]), None, "two machines of unknown sizes");
    assert_eq!(busy(&[(None, Metric::HostIowait, 40.0)]), None);
}

#[test]
fn the_machines_of_a_cluster_are_busy_by_their_times() {
    let mut run = report(hour(3));
    let of_node = |busy: u64, idle: u64| ServerStats {
        own: [("BUSY_TIME_ns", busy), ("IDLE_TIME_ns", idle)].map(|(name, ns)| (name.to_owned(), ns)).into(),
        ..ServerStats::default()
    };
    run.steps[0].instances = vec![of_node(10, 90), of_node(200, 100)];
    assert_eq!(only(of_one(&run)).summary(Metric::HostBusy).map(|reported| reported.peak), Some(52.5));
}

#[test]
fn snapshots_within_one_run_are_windows_of_their_own() {
    let mut run = report(hour(0));
    let step = &mut run.steps[0];
    step.window.duration_ns *= 3;
    let hours: Vec<model::record::Interval> = (0..3_u64)
        .map(|at| model::record::Interval {
            offset_ns: at * 3_600_000_000_000,
            duration_ns: 3_600_000_000_000,
            counters: model::record::Counters { physical_reads: Some(3_600 * (at + 1)), ..Default::default() },
            ..Default::default()
        })
        .collect();
    step.intervals = hours;
    let trend = only(of(&[run]));
    let values: Vec<f64> = trend.windows.iter().map(|w| w.reading(Metric::Reads).unwrap().value).collect();
    assert_eq!(values, [1.0, 2.0, 3.0]);
    assert_eq!(trend.windows[2].from.to_string(), "2026-11-02T02:00:00Z");
    // Seconds of a load are not.
    let own = only(of(&[sample::updates(20)]));
    assert_eq!(own.windows.len(), 1);
}

#[test]
fn snapshots_that_report_the_host_alone_do_not_stand_for_a_report_that_reports_storage() {
    let mut run = report(hour(0));
    let step = &mut run.steps[0];
    step.reported.push(ReportedFigure::new("host", "%Idle", "%", 80.0).is(Metric::HostIdle, 1.0));
    let idle = |at: u64| model::record::Interval {
        offset_ns: at * 1_200_000_000_000,
        duration_ns: 1_200_000_000_000,
        reported: [("%Idle".to_owned(), 70.0 + at as f64)].into(),
        ..Default::default()
    };
    step.intervals = (0..3).map(idle).collect();
    let trend = only(of(&[run]));
    assert_eq!(trend.windows.len(), 1, "the whole report");
    assert_eq!(trend.summary(Metric::Reads).map(|reads| reads.peak), Some(1_000.0));
    assert_eq!(trend.summary(Metric::HostBusy).map(|busy| busy.windows), Some(1));
}

#[test]
fn a_run_without_steps_is_nothing() {
    let mut run = report(hour(0));
    run.steps = Vec::<Step>::new();
    assert_eq!(of(&[run]), Trends { trends: Vec::new(), left_out: Vec::new() });
}

#[test]
fn what_a_report_does_not_say_is_absent_and_multi_block_reads_are_no_more_than_reads() {
    let mut run = report(Hour { at: 1, minutes: 60, reads_per_s: 2_000, writes_per_s: 500, within_ms: QUICK });
    let known = work(&run, &run.steps[0]);
    assert_eq!((known[&WorkFigure::Reads], known[&WorkFigure::Commits]), (2_000.0, 50.0));
    assert_eq!((known[&WorkFigure::ReadBytes], known[&WorkFigure::RedoBytes]), (2_000.0 * 8_192.0, 500e3));
    assert!(!known.contains_key(&WorkFigure::LogicalReads) && !known.contains_key(&WorkFigure::LargeReads));
    let large = ReportedFigure::new("engine", "multi", "", 9_000.0 * 3_600.0);
    run.steps[0].reported.push(large.is(Metric::MultiBlockReads, 1.0));
    assert_eq!(work(&run, &run.steps[0])[&WorkFigure::LargeReads], 2_000.0);
}
