use super::*;
use crate::import::{Began, Draft};
use crate::record::{ImportedFile, Timestamp};

const BEGAN: &str = "2020-02-10T20:33:02Z";

fn at(text: &str) -> Timestamp {
    Timestamp(text.parse().unwrap())
}

fn read(path: &str, kind: &str, draft: Draft) -> FileRead {
    let file = ImportedFile { path: path.to_owned(), kind: kind.to_owned(), bytes: 1, crc64: String::new(), part: 0 };
    FileRead { file, changed: at(BEGAN), drafts: vec![draft], not_understood: Vec::new() }
}

/// A report of ten minutes of `address`, with so many statistics for each of its nodes.
fn report(address: &str, snapshots: &str, nodes: &[&str], statistics: usize) -> Draft {
    let mut draft = Draft::new("database", "Oracle Database", address);
    draft.began = Some(Began::Wall(at(BEGAN)));
    draft.target.address = address.to_owned();
    draft.target.facts = [("db_id", "7"), ("snapshots", snapshots)].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
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
    let mut draft = Draft::new("host", program, program);
    draft.began = began.map(|began| Began::Wall(at(began)));
    let mut step = Step::new(0, "samples");
    step.window.duration_ns = 30_000_000_000;
    let sample = |number: u64| Interval {
        offset_ns: number * 3_000_000_000,
        duration_ns: 3_000_000_000,
        told: [(name.to_owned(), number as f64)].into(),
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
    assert!(step.intervals.iter().all(|interval| interval.told.len() == 2), "both tools in one interval");
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
