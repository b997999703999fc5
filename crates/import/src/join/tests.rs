use super::*;
use crate::draft::reported_figure;
use crate::{Began, Draft};
use model::record::Workload;
use model::record::{
    CpuTime, DeviceStats, Histogram, ImportedFile, Interval, ReportedBucket, ReportedWaits, ServerStats, Timestamp,
    WaitStats, Waiters,
};

const BEGAN: &str = "2020-02-10T20:33:02Z";

fn at(text: &str) -> Timestamp {
    Timestamp(text.parse().unwrap())
}

fn read(path: &str, kind: &str, draft: Draft) -> FileRead {
    let file = ImportedFile {
        path: path.to_owned(),
        kind: kind.to_owned(),
        bytes: 1,
        crc64: String::new(),
        part: 0,
        lines: None,
    };
    FileRead { file, changed: at(BEGAN), drafts: vec![draft], not_understood: Vec::new() }
}

/// A report of ten minutes of `address`, with so many statistics for each of its nodes.
fn report(address: &str, snapshots: &str, nodes: &[&str], statistics: usize) -> Draft {
    let mut draft = Draft::new(Workload::Database, "Oracle Database", address);
    draft.began = Some(Began::Wall(at(BEGAN)));
    draft.target.address = address.to_owned();
    draft.target.facts.database.id = Some(7);
    draft.target.facts.database.snapshots = Some(snapshots.to_owned());
    let mut step = Step::new(0, "report");
    step.window.duration_ns = 600_000_000_000;
    step.instances = nodes
        .iter()
        .map(|node| ServerStats {
            node: (*node).to_owned(),
            own: (0..statistics).map(|number| (format!("statistic {number}"), 1)).collect(),
            ..ServerStats::default()
        })
        .collect();
    draft.steps.push(step);
    draft
}

/// Ten samples of 3 s.
fn host(program: &'static str, began: Option<&str>, name: &str) -> Draft {
    let mut draft = Draft::new(Workload::Host, program, program);
    draft.began = began.map(|began| Began::Wall(at(began)));
    let mut step = Step::new(0, "samples");
    step.window.duration_ns = 30_000_000_000;
    let sample = |number: u64| Interval {
        offset_ns: number * 3_000_000_000,
        duration_ns: 3_000_000_000,
        reported: [(name.to_owned(), number as f64)].into(),
        ..Interval::default()
    };
    step.intervals = (0..10).map(sample).collect();
    draft.steps.push(step);
    draft
}

#[test]
fn a_cluster_and_its_instances_are_one_run_whichever_comes_first() {
    let files = vec![
        read("awr.txt", "awr-text", report("DB/db1", "1-2", &["db1"], 3)),
        read("awr_rac.html", "awr-html", report("DB", "1-2", &["db1", "db2"], 1)),
        read("awr_rac.txt", "awr-text", report("DB", "1-2", &["db1", "db2"], 1)),
    ];
    let joined = join(files);
    let [only] = joined.as_slice() else { panic!("{joined:?}") };
    let paths: Vec<&str> = only.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["awr_rac.html", "awr_rac.txt", "awr.txt"]);
    let own: Vec<usize> = only.draft.steps[0].instances.iter().map(|instance| instance.own.len()).collect();
    assert_eq!(own, [3, 1], "the instance's own report knows more of it");
}

fn wait(event: &str, by: &[(Waiters, u64, u64)], histogram: Option<&[(u64, u64)]>) -> WaitStats {
    let reported: Vec<ReportedWaits> = by
        .iter()
        .map(|(by, count, total_s)| ReportedWaits {
            by: *by,
            count: *count,
            total_ns: Some(total_s * 1_000_000_000),
            layer: "engine".to_owned(),
            source: "Foreground Wait Events".to_owned(),
        })
        .collect();
    let (count, total_ns) = by.iter().fold((0, 0), |sum, (_, count, s)| (sum.0 + count, sum.1 + s * 1_000_000_000));
    let buckets = |buckets: &[(u64, u64)]| {
        let of = |(to_us, count): &(u64, u64)| ReportedBucket {
            from_ns: to_us * 500,
            to_ns: Some(to_us * 1_000),
            count: *count,
        };
        Histogram::reported(buckets.iter().map(of).collect::<Vec<_>>(), None, None, None)
    };
    WaitStats {
        event: event.to_owned(),
        class: "User I/O".to_owned(),
        layer: "engine".to_owned(),
        foreground: true,
        waits: histogram.map_or_else(|| Histogram::counted(count, Some(total_ns)), buckets),
        reported: if histogram.is_some() { reported } else { Vec::new() },
    }
}

fn with(mut draft: Draft, waits: Vec<WaitStats>, figures: &[(&str, f64)]) -> Draft {
    draft.steps[0].waits = waits;
    draft.steps[0].reported =
        figures.iter().map(|(name, value)| reported_figure("engine", *name, "/s", *value)).collect();
    draft
}

#[test]
fn a_cluster_takes_histograms_and_events_from_the_reports_of_all_its_instances() {
    let of_node = |count: u64, bucket: u64| {
        vec![
            wait(
                "db file sequential read",
                &[(Waiters::Foreground, count, 4)],
                Some(&[(512, count - bucket), (1_024, bucket)]),
            ),
            wait("tape read", &[(Waiters::Foreground, 5, 1)], None),
        ]
    };
    let cluster = with(
        report("DB", "1-2", &["db1", "db2"], 1),
        vec![wait("db file sequential read", &[(Waiters::Foreground, 305, 9)], None)],
        &[],
    );
    let files = vec![
        read("awr_rac.html", "awr-html", cluster),
        read(
            "1/awr.txt",
            "awr-text",
            with(report("DB/db1", "1-2", &["db1"], 3), of_node(100, 10), &[("Read IO requests", 7.5)]),
        ),
        read(
            "2/awr.txt",
            "awr-text",
            with(report("DB/db2", "1-2", &["db2"], 3), of_node(200, 50), &[("Read IO requests", 8.5)]),
        ),
    ];
    let joined = join(files);
    let [only] = joined.as_slice() else { panic!("{joined:?}") };
    let step = &only.draft.steps[0];
    let of = |event: &str| step.waits.iter().find(|wait| wait.event == event).unwrap();
    let reads = of("db file sequential read");
    assert_eq!((reads.waits.count(), reads.waits.below_ns(512_000).0), (300, 240), "the sum of both instances");
    assert_eq!((reads.sum().count, reads.sum().total_ns), (305, Some(9_000_000_000)), "as the cluster states it");
    assert_eq!((of("tape read").sum().count, of("tape read").sum().total_ns), (10, Some(2_000_000_000)));
    let own: Vec<usize> = step.instances.iter().map(|instance| instance.waits.len()).collect();
    assert_eq!(own, [2, 2], "and each instance keeps its own");
    let figures: Vec<(&str, f64)> = step.reported.iter().map(|figure| (figure.name.as_str(), figure.value)).collect();
    assert_eq!(figures, [("db1: Read IO requests", 7.5), ("db2: Read IO requests", 8.5)]);
    assert!(
        only.draft.notes.iter().any(|note| note.contains("are sums of those of its instances")),
        "{:?}",
        only.draft.notes
    );
}

#[test]
fn the_histogram_of_one_instance_of_several_is_said_to_be_its_own() {
    let reads = |histogram| wait("db file sequential read", &[(Waiters::Foreground, 100, 4)], histogram);
    let alone = wait("tape read", &[(Waiters::Foreground, 5, 1)], None);
    let mut cluster = with(report("DB", "1-2", &["db1", "db2"], 1), vec![reads(None)], &[]);
    let mut instance = with(report("DB/db1", "1-2", &["db1"], 3), vec![reads(Some(&[(512, 40)])), alone], &[]);
    cluster.notes.push("Of all reports.".to_owned());
    instance.notes.extend(["Of all reports.".to_owned(), "Of one.".to_owned()]);
    let files = vec![read("awr_rac.txt", "awr-text", cluster), read("awr.txt", "awr-text", instance)];
    let joined = join(files);
    assert_eq!(joined[0].draft.notes[..2], ["Of all reports.", "db1: Of one."], "what is said of all is said once");
    let step = &joined[0].draft.steps[0];
    assert_eq!((joined.len(), step.waits.len()), (1, 1), "what one instance waited for is not what the cluster did");
    assert_eq!((step.waits[0].waits.count(), step.waits[0].sum().count), (40, 100));
    assert_eq!(step.instances[0].waits.len(), 2);
    assert!(
        joined[0]
            .draft
            .notes
            .iter()
            .any(|note| note.contains("reports of db1, and are those of these instances alone"))
    );
}

#[test]
fn text_and_html_of_a_report_keep_what_either_has() {
    let reads = |histogram| wait("db file sequential read", &[(Waiters::Foreground, 100, 4)], histogram);
    let only_here = |event: &str| wait(event, &[(Waiters::Foreground, 5, 1)], None);
    let html = with(
        report("DB/db1", "1-2", &["db1"], 9),
        vec![reads(None), only_here("latch: a long name of an event")],
        &[("Redo size", 100.25), ("Executes", 7.0)],
    );
    let text = with(
        report("DB/db1", "1-2", &["db1"], 1),
        vec![reads(Some(&[(512, 100)])), only_here("latch: a long name of an"), only_here("latch: a long")],
        &[("Redo size", 100.3), ("Executes", 8.0), ("Logons", 1.5)],
    );
    let joined = join(vec![read("awr.txt", "awr-text", text), read("awr.html", "awr-html", html)]);
    let [only] = joined.as_slice() else { panic!("{joined:?}") };
    let step = &only.draft.steps[0];
    let events: Vec<(&str, bool)> =
        step.waits.iter().map(|wait| (wait.event.as_str(), wait.waits.is_distribution())).collect();
    let expected =
        [("latch: a long name of an event", false), ("db file sequential read", true), ("latch: a long", false)];
    assert_eq!(events, expected);
    let figures: Vec<(&str, f64)> = step.reported.iter().map(|figure| (figure.name.as_str(), figure.value)).collect();
    assert_eq!(figures, [("Redo size", 100.25), ("Executes", 7.0), ("Logons", 1.5)], "the more exact stands");
    let note = "Figures that awr.txt and the other files of this run state differently: Executes (7 stands, not 8).";
    assert_eq!(only.draft.notes, [note]);
}

#[test]
fn other_intervals_databases_and_instances_stay_apart() {
    let files = vec![
        read("a", "awr-text", report("DB/db1", "1-2", &["db1"], 1)),
        read("b", "awr-text", report("DB/db2", "1-2", &["db2"], 1)),
        read("c", "awr-text", report("DB/db1", "2-3", &["db1"], 1)),
    ];
    assert_eq!(join(files).len(), 3);
}

#[test]
fn of_two_of_one_report_the_fuller_is_taken() {
    let files = vec![
        read("a", "awr-text", report("DB/db1", "1-2", &["db1"], 1)),
        read("b", "awr-html", report("DB/db1", "1-2", &["db1"], 5)),
    ];
    let joined = join(files);
    assert_eq!((joined.len(), joined[0].files[0].path.as_str(), joined[0].files.len()), (1, "b", 2));
}

#[test]
fn what_tools_saw_meanwhile_lies_beside_the_only_report() {
    let files = vec![
        read("iostat.out", "iostat", host("iostat", Some("2020-02-10T20:32:56Z"), "sda %util")),
        read("vmstat.out", "vmstat", host("vmstat", Some("2020-02-10T20:32:56Z"), "us %")),
        read("mpstat.out", "mpstat", host("mpstat", None, "%usr")),
        read("awr.txt", "awr-text", report("DB/db1", "1-2", &["db1"], 1)),
    ];
    let joined = join(files);
    assert_eq!((joined.len(), joined[0].files.len()), (1, 4));
    let step = &joined[0].draft.steps[0];
    assert_eq!((step.intervals.len(), step.window.warmup_ns), (10, 6_000_000_000));
    let warm: Vec<bool> = step.intervals.iter().map(|interval| interval.warmup).collect();
    assert_eq!(warm[..3], [true, true, false]);
    assert!(step.intervals.iter().all(|interval| interval.reported.len() == 2), "both tools in one interval");
}

#[test]
fn what_tools_saw_at_another_time_or_beside_two_reports_stays_apart() {
    let report = |snapshots| read("awr.txt", "awr-text", report("DB/db1", snapshots, &["db1"], 1));
    let later = || read("iostat.out", "iostat", host("iostat", Some("2020-02-11T20:00:00Z"), "x"));
    assert_eq!(join(vec![report("1-2"), later()]).len(), 2);
    let meanwhile = read("iostat.out", "iostat", host("iostat", Some("2020-02-10T20:34:00Z"), "x"));
    assert_eq!(join(vec![report("1-2"), report("2-3"), meanwhile]).len(), 3);
}

#[test]
fn samples_that_are_mostly_of_another_time_stay_apart() {
    let report = || read("awr.txt", "awr-text", report("DB/db1", "1-2", &["db1"], 1));
    let day = |began| {
        let mut host = host("iostat", Some(began), "x");
        host.steps[0].window.duration_ns = 3_600_000_000_000;
        read("iostat.out", "iostat", host)
    };
    assert_eq!(join(vec![report(), day("2020-02-10T20:03:02Z")]).len(), 2, "ten minutes of an hour");
    // The last ten of 30 s lie in the window.
    let early = |began| read("iostat.out", "iostat", host("iostat", Some(began), "x"));
    assert_eq!(join(vec![report(), early("2020-02-10T20:32:42Z")]).len(), 2);
    let joined = join(vec![report(), early("2020-02-10T20:32:52Z")]);
    assert_eq!(joined.len(), 1);
    let note = "Figures of iostat are means over its own samples of 30 s, which begin 10 s before the window does.";
    assert_eq!(joined[0].draft.notes, [note]);
}

/// A file of `vmstat` or another tool that lasts 30 s from `began`.
fn beside(path: &str, began: &str, name: &str) -> FileRead {
    read(path, "iostat", host("iostat", Some(began), name))
}

#[test]
fn files_of_one_tool_that_follow_one_another_are_added_once() {
    let with = |began: &str, rate: f64, wait_ms: f64, idle: f64| {
        let mut file = beside(began, began, "sda r/s");
        let step = &mut file.drafts[0].steps[0];
        step.reported = vec![
            reported_figure("device", "sda r/s", "1/s", rate),
            reported_figure("device", "sda r_await", "ms", wait_ms),
            reported_figure("host", "%idle", "%", idle),
        ];
        step.devices = vec![DeviceStats {
            name: "sda".into(),
            elapsed_ns: 30_000_000_000,
            reads: 30 * rate as u64,
            ..DeviceStats::default()
        }];
        step.host_cpu = Some(CpuTime { user_ns: 5, system_ns: 1, iowait_ns: None, steal_ns: None, idle_ns: Some(4) });
        file
    };
    // The second stands first.
    let files = vec![
        with("2020-02-10T20:34:02Z", 300.0, 5.0, 10.0),
        with("2020-02-10T20:33:32Z", 100.0, 1.0, 90.0),
        // Of another hour.
        with("2020-02-10T22:33:32Z", 1e6, 1e6, 0.0),
        read("awr.txt", "awr-text", report("DB/db1", "1-2", &["db1"], 1)),
    ];
    let joined = join(files);
    assert_eq!((joined.len(), joined[0].files.len()), (2, 3));
    let step = &joined[0].draft.steps[0];
    let figures: Vec<(&str, f64)> = step.reported.iter().map(|figure| (figure.name.as_str(), figure.value)).collect();
    // A time weighs by the requests that took it: (100 x 1 ms + 300 x 5 ms) / 400.
    assert_eq!(figures, [("sda r/s", 200.0), ("sda r_await", 4.0), ("iostat %idle", 50.0)]);
    let [sda] = step.devices.as_slice() else { panic!("{:?}", step.devices) };
    assert_eq!((sda.reads, sda.elapsed_ns), (12_000, 60_000_000_000));
    assert_eq!(step.host_cpu.map(|cpu| (cpu.user_ns, cpu.idle_ns)), Some((10, Some(8))));
    let offsets: Vec<u64> = step.intervals.iter().map(|interval| interval.offset_ns / 1_000_000_000).collect();
    assert_eq!(offsets, (0..20).map(|number| 30 + 3 * number).collect::<Vec<u64>>());
    let note = "Figures of iostat are means over its own samples of 60 s, which begin 30 s after the window does.";
    assert_eq!(joined[0].draft.notes, [note]);
}

#[test]
fn runs_of_one_tool_at_one_time_or_at_none_stay_apart_and_it_is_said() {
    let awr = || read("awr.txt", "awr-text", report("DB/db1", "1-2", &["db1"], 1));
    let at_once = vec![beside("a", "2020-02-10T20:34:02Z", "x"), beside("b", "2020-02-10T20:34:12Z", "x"), awr()];
    let timeless = || read("iostat.out", "iostat", host("iostat", None, "x"));
    let mut other_host = beside("b", "2020-02-10T20:35:02Z", "x");
    other_host.drafts[0].environment.hostname = Some("db2".to_owned());
    let other_hosts = vec![beside("a", "2020-02-10T20:34:02Z", "x"), other_host, awr()];
    for files in [at_once, vec![timeless(), timeless(), awr()], other_hosts] {
        let joined = join(files);
        assert_eq!((joined.len(), joined[0].files.len()), (3, 1));
        assert!(
            joined[0].draft.notes[0].starts_with("2 runs of iostat from the same place stay separate"),
            "{:?}",
            joined[0].draft.notes
        );
        assert!(joined[0].draft.steps[0].intervals.is_empty() && joined[0].draft.steps[0].reported.is_empty());
    }
}

#[test]
fn samples_of_every_second_stay_apart_and_meet_those_of_other_tools() {
    let every_second = |program: &'static str, began: &str, name: &str| {
        let mut draft = host(program, Some(began), name);
        let step = &mut draft.steps[0];
        step.window.duration_ns = 10_000_000_000;
        for (interval, number) in step.intervals.iter_mut().zip(0..) {
            (interval.offset_ns, interval.duration_ns) = (number * 1_000_000_000, 1_000_000_000);
        }
        read(program, program, draft)
    };
    let files = vec![
        every_second("iostat", "2020-02-10T20:34:02Z", "a"),
        every_second("vmstat", "2020-02-10T20:34:02.400Z", "b"),
        read("awr.txt", "awr-text", report("DB/db1", "1-2", &["db1"], 1)),
    ];
    let joined = join(files);
    let values: Vec<(f64, f64)> = joined[0].draft.steps[0]
        .intervals
        .iter()
        .map(|interval| (interval.reported["a"], interval.reported["b"]))
        .collect();
    assert_eq!(values, (0..10).map(|number| (f64::from(number), f64::from(number))).collect::<Vec<_>>());
}

#[test]
fn samples_of_unknown_length_give_their_means_and_no_places() {
    let mut snapshot = beside("iostat.out", "2020-02-10T20:34:02Z", "x");
    let step = &mut snapshot.drafts[0].steps[0];
    step.window.duration_ns = 0;
    step.intervals.iter_mut().for_each(|interval| (interval.offset_ns, interval.duration_ns) = (0, 0));
    step.reported = vec![reported_figure("host", "%idle", "%", 7.0)];
    let joined = join(vec![snapshot, read("awr.txt", "awr-text", report("DB/db1", "1-2", &["db1"], 1))]);
    let step = &joined[0].draft.steps[0];
    assert_eq!((joined.len(), step.reported[0].value, step.intervals.len()), (1, 7.0, 0));
}

#[test]
fn clocks_of_which_one_tells_its_zone_are_said_to_be_taken_for_the_same() {
    let mut utc = beside("iostat.out", "2020-02-10T20:34:02Z", "x");
    utc.drafts[0].began = Some(Began::Utc(at("2020-02-10T20:34:02Z")));
    let joined = join(vec![utc, read("awr.txt", "awr-text", report("DB/db1", "1-2", &["db1"], 1))]);
    assert_eq!(joined.len(), 1);
    assert!(joined[0].draft.notes[0].ends_with("their clocks are taken for the same."), "{:?}", joined[0].draft.notes);
}
