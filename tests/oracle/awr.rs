//! AWR and Statspack: snapshots at both edges of a window, the report kept and read, and laid beside what was counted.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::model::Instance;
use crate::place::Answer as Said;
use crate::responder::{Answer, Column, Generation, SessionLog};
use crate::skip::skip;
use crate::whole::{Site, longer};

const CONSENT: &str = "yes, the Diagnostics Pack is licensed";

/// A database that counts what is done to it.
fn site() -> Site {
    let site = Site::new(Generation::V19);
    site.model.with(|database| database.counts = true);
    site
}

/// The same, in which the user sees no counter.
fn blind() -> Site {
    let site = site();
    refuse(&site, "v$con_", 942);
    site
}

const UPDATES: [&str; 8] = ["slob", "run", "--send", "statement", "UPDATE_PCT=100", "WORK_UNIT=4", "--warmup", "0"];

/// Measures 400 updates or so, with these words besides.
fn measured(site: &Site, words: &[&str]) -> Said {
    site.run(&[&UPDATES[..], &["WORK_LOOP=200"], words].concat())
}

/// The same or more, with what the server counted.
fn counted(site: &Site) -> Said {
    let attempt = |length: &str| site.done(&[&UPDATES[..], &[length]].concat());
    longer(["WORK_LOOP=200", "WORK_LOOP=800", "WORK_LOOP=3200"], attempt, |_| site.is_counted_to_the_end())
}

fn refuse(site: &Site, part: &str, code: u32) {
    let message = "identifier must be declared, or is no table".to_owned();
    site.model.with(|database| database.refused.push((part.to_owned(), code, message)));
}

fn full(site: &Site, directory: &Path) -> String {
    site.place.done(&["report", &directory.display().to_string(), "--full"]).stdout
}

fn line<'a>(report: &'a str, what: &str) -> &'a str {
    let mut lines = report.lines().filter(|line| line.trim_start().starts_with(what));
    lines.next().unwrap_or_else(|| panic!("no `{what}` in\n{report}"))
}

#[test]
fn awr_takes_its_own_word_for_the_licence_and_no_other() {
    let site = site();
    for words in ["yes", "", "Yes, the Diagnostics Pack is licensed"] {
        let said = measured(&site, &["--awr", words]);
        assert_eq!(said.code, Some(2), "{said}");
        assert!(said.stderr.contains("Diagnostics Pack") && said.stderr.contains(CONSENT), "{said}");
    }
    let elsewhere = site.place.run(&["slob", "run", "--target", "sim:", "--awr", CONSENT]);
    assert_eq!(elsewhere.code, Some(2), "{elsewhere}");
    assert!(elsewhere.stderr.contains("for Oracle"), "{elsewhere}");
    assert!(site.model.with(|database| database.snapshots.taken.is_empty()));
    assert_eq!(site.responder.sessions().len(), 0, "nobody was asked before that was clear");
}

#[test]
fn a_report_is_kept_and_laid_beside_what_was_counted() {
    // Only the load's own commits are known besides the report.
    let site = blind();
    site.set_up();
    let said = measured(&site, &["--awr", CONSENT]);
    assert_eq!(said.code, Some(0), "{said}");
    let (run, directory) = site.kept();
    let step = &run["steps"][0];
    let report = &step["own_reports"][0];
    // One to learn how long it takes, and one at each edge.
    assert_eq!((&report["begin_snapshot"], &report["end_snapshot"]), (&Json::from(2), &Json::from(3)), "{report}");
    assert_eq!((report["kind"].as_str(), report["file"].as_str()), (Some("AWR"), Some("awr-0-0.txt")), "{report}");
    let text = std::fs::read_to_string(directory.join("awr-0-0.txt")).unwrap();
    assert!(text.starts_with("\nWORKLOAD REPOSITORY report for\n\nDB Name"), "lines without words are kept, too");
    let ours = step["counters"]["commits"].as_u64().unwrap();
    let theirs = report["counted"]["counters"]["commits"].as_u64().unwrap();
    assert!(ours > 200 && theirs.abs_diff(ours) <= 4, "{theirs} of {ours}");
    // No session of the load has taken one, and the first was there before any load.
    let snapshots = site.model.with(|database| database.snapshots.taken.clone());
    let sessions = site.responder.sessions();
    let of = |session: u32| -> &SessionLog { &sessions[session as usize - 1] };
    assert!(snapshots.iter().all(|snapshot| of(snapshot.session).module == "plimsoll snapshots"));
    assert_eq!((snapshots[1].executed, snapshots[2].executed), (0, site.executed().len()));
    let full = full(&site, &directory);
    assert!(full.contains("AWR beside what was counted here") && full.contains("snapshots 2 to 3"), "{full}");
    let commits = line(&full, "commits");
    assert!(commits.contains(&theirs.to_string()) && commits.contains(&ours.to_string()), "{commits}");
    assert!(!commits.contains("sessions"), "what agrees needs no reason: {commits}");
    assert!(
        line(&said.stdout, "Own report").contains("AWR: figures that both have 1, agree or are explained 1"),
        "{said}"
    );
    // The file goes with the run.
    let id = site.place.runs().pop().unwrap();
    site.place.done(&["runs", "rm", &id]);
    assert!(!directory.exists());
}

#[test]
fn the_first_snapshot_comes_late_in_a_long_warm_up_and_before_a_short_one() {
    const WARMUP_NS: u64 = 3_000_000_000;
    let site = site();
    site.set_up();
    let load = ["slob", "run", "--send", "statement", "WORK_LOOP=200", "WORK_UNIT=4", "--warmup", "3s"];
    site.done(&[&load, &["--awr", CONSENT][..]].concat());
    let report = site.kept().0["steps"][0]["own_reports"][0].clone();
    let [lead_ns, lag_ns] = ["lead_ns", "lag_ns"].map(|name| report[name].as_u64().unwrap());
    assert!(lag_ns > 0, "{report}");
    // Where a snapshot takes long, three seconds are short: then it was there before all load.
    let executed = site.model.with(|database| database.snapshots.taken[1].executed);
    assert_eq!(executed == 0, lead_ns >= WARMUP_NS, "{executed} operations before it, {report}");
}

#[test]
fn what_other_sessions_did_is_named_where_the_report_has_more() {
    let site = blind();
    site.set_up();
    site.model.with(|database| database.snapshots.planted = Some(("user commits", 1_000_000)));
    let said = measured(&site, &["--awr", CONSENT]);
    assert_eq!(said.code, Some(0), "{said}");
    let full = full(&site, &site.kept().1);
    assert!(line(&full, "commits").contains("other sessions"), "{full}");
}

#[test]
fn a_real_report_is_read_as_import_reads_it() {
    let corpus = std::env::var_os("PLIMSOLL_CORPUS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"), PathBuf::from);
    let Ok(text) = std::fs::read_to_string(corpus.join("awr/awr_11204_rac_inst1.txt")) else {
        return skip(format_args!("there is no corpus in {}", corpus.display()));
    };
    let site = blind();
    site.model.with(|database| database.snapshots.report = Some(text.clone()));
    site.set_up();
    let said = measured(&site, &["--awr", CONSENT]);
    assert_eq!(said.code, Some(0), "{said}");
    let (run, directory) = site.kept();
    let kept = std::fs::read_to_string(directory.join("awr-0-0.txt")).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(kept, text);
    let counted = &run["steps"][0]["own_reports"][0]["counted"];
    assert_eq!(counted["counters"]["commits"], 29, "{counted}");
    assert_eq!(counted["counters"]["physical_reads"], 68);
    assert_eq!(counted["counters"]["physical_read_bytes"], 557_056);
    assert_eq!(counted["counters"]["redo_bytes"], 1_723_792);
    assert_eq!(counted["own"]["execute count"], 3_758);
    assert_eq!(counted["own"]["DB time_ns"], 1_900_000_000_u64);
    let events = counted["waits"].as_array().unwrap();
    assert!(events.iter().any(|wait| wait["event"] == "log file parallel write"), "{counted}");
    let full = full(&site, &directory);
    assert!(line(&full, "DB CPU").contains("1.1"), "{full}");
    assert!(line(&full, "log file parallel write").contains('?'), "{full}");
    assert!(line(&full, "commits").contains("29"), "{full}");
}

#[test]
fn a_right_that_is_missing_is_named_before_any_load() {
    let site = site();
    site.set_up();
    refuse(&site, "DBMS_WORKLOAD_REPOSITORY", 6550);
    let said = measured(&site, &["--awr", CONSENT]);
    assert_eq!(said.code, Some(2), "{said}");
    let is_named =
        ["ORA-06550", "GRANT EXECUTE ON SYS.DBMS_WORKLOAD_REPOSITORY TO", "GRANT SELECT ON SYS.V_$DATABASE TO"]
            .iter()
            .all(|words| said.stderr.contains(words));
    assert!(is_named, "{said}");
    assert!(site.executed().is_empty() && site.place.runs().is_empty());
}

/// What a report says beside what was counted: of a line its name, both values, by how much they differ, and why.
fn beside(full: &str, kind: &str) -> Vec<Vec<String>> {
    let title = format!("{kind} beside what was counted here, in");
    let lines =
        full.lines().skip_while(|line| !line.starts_with(&title)).skip_while(|line| !line.starts_with("figure "));
    let lines = lines.skip(1).take_while(|line| !line.starts_with(&format!("{kind} covers ")));
    let cells = |line: &str| {
        let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect::<Vec<_>>()
    };
    lines.map(cells).collect()
}

/// Per cent by which a report's value differs, of a line that both have.
fn difference(lines: &[Vec<String>], what: &str) -> f64 {
    let line = lines.iter().find(|line| line[0] == what).unwrap_or_else(|| panic!("no `{what}` in {lines:#?}"));
    let percent = line[3].trim_end_matches(" %").replace('\u{2212}', "-").replace([',', '+'], "");
    percent.parse().unwrap_or_else(|_| panic!("{line:?}"))
}

/// All that both have, where the load reads and writes.
const FIGURES: [&str; 19] = [
    "execute count",
    "logical reads",
    "read requests",
    "read",
    "write requests",
    "written",
    "redo",
    "commits",
    "DB time",
    "DB CPU",
    "background CPU",
    "db file sequential read",
    "db file sequential read, time",
    "log file sync",
    "log file sync, time",
    "db file parallel write",
    "db file parallel write, time",
    "log file parallel write",
    "log file parallel write, time",
];
/// Per cent: on a busy machine the load has begun when the counters are read for the first time.
const MAX_APART: f64 = 10.0;
const LOAD: [&str; 7] = ["slob", "run", "--send", "statement", "UPDATE_PCT=30", "WORK_UNIT=4", "--warmup=0"];
const REPORTS: [(&str, &[&str]); 2] = [("AWR", &["--awr", CONSENT]), ("Statspack", &["--statspack"])];

/// Of fewer operations what goes on at the edges of a window is more than that, and times in a report, in whole milliseconds, are too rough.
const LEAST_OPERATIONS: u64 = 1_000;

/// Puts the load on, with the words for a report.
fn loaded(site: &Site, words: &[&str]) -> Said {
    let load = |length: &str| site.done(&[&LOAD[..], &[length], words].concat());
    longer(["RUN_TIME=4", "RUN_TIME=16", "RUN_TIME=64"], load, |_| {
        let operations = site.kept().0["steps"][0]["counters"]["operations"].as_u64();
        site.is_counted_to_the_end() && operations >= Some(LEAST_OPERATIONS)
    })
}

#[test]
fn both_reports_have_our_figures() {
    for (kind, words) in REPORTS {
        let site = site();
        site.set_up();
        // AWR's is of a pluggable database.
        site.model.with(|database| database.is_alone = kind == "Statspack");
        let said = loaded(&site, words);
        assert!(
            line(&said.stdout, "Own report").contains(&format!("{kind}: figures that both have 19, agree")),
            "{said}"
        );
        let (run, directory) = site.kept();
        let full = full(&site, &directory);
        let lines = beside(&full, kind);
        assert_eq!(lines.iter().map(|line| line[0].as_str()).collect::<Vec<_>>(), FIGURES, "{full}");
        for what in FIGURES {
            assert!(difference(&lines, what).abs() <= MAX_APART, "{full}");
        }
        // What the load's sessions count is not added to what the server counts.
        let step = &run["steps"][0];
        let counters = |of: &Json| ["commits", "block_changes"].map(|name| of[name].as_f64().unwrap());
        let (ours, server) = (counters(&step["counters"]), counters(&step["servers"][0]["counters"]));
        for (ours, server) in ours.into_iter().zip(server) {
            assert!(ours > 0.0 && (ours / server - 1.0).abs() * 100.0 < MAX_APART, "{ours} of {server}: {step}");
        }
    }
}

#[test]
fn writes_are_known_where_a_pluggable_database_counts_its_writers_and_unknown_elsewhere() {
    for hides_writers in [false, true] {
        let site = site();
        site.set_up();
        site.model.with(|database| database.counters.hides_writers = hides_writers);
        counted(&site);
        let counters = site.kept().0["steps"][0]["servers"][0]["counters"].clone();
        for name in ["physical_writes", "physical_write_bytes", "redo_writes"] {
            let written = counters.get(name).and_then(Json::as_u64);
            assert!(if hides_writers { written.is_none() } else { written > Some(100) }, "{name}: {counters}");
        }
        assert!(counters["commits"].as_u64() > Some(100), "{counters}");
    }
}

#[test]
fn an_older_release_shows_as_much_as_it_has() {
    for is_alone in [true, false] {
        let site = site();
        site.set_up();
        site.model.with(|database| database.is_alone = is_alone);
        refuse(&site, "total_waits_fg", 904);
        refuse(&site, "event_histogram_micro", 942);
        let said = counted(&site);
        assert!(said.stderr.contains("of this release lacks a column (ORA-00904)"), "{said}");
        assert_eq!(said.stderr.contains("in whole milliseconds alone"), is_alone, "{said}");
        let (run, _) = site.kept();
        let waits = run["steps"][0]["waits"].as_array().unwrap();
        let reads = waits.iter().find(|wait| wait["event"] == "db file sequential read").unwrap();
        assert_eq!(reads["reported"][0]["by"], "all", "{reads}");
        assert!(reads["waits"]["count"].as_u64().unwrap() > 500, "{reads}");
        let buckets = reads["waits"]["reported"].as_array().unwrap().len();
        assert_eq!(buckets, if is_alone { 3 } else { 1 }, "{reads}");
    }
}

#[test]
fn what_a_report_has_besides_is_found() {
    for (kind, words) in REPORTS {
        let site = site();
        site.set_up();
        site.model.with(|database| database.snapshots.planted = Some(("physical read IO requests", 1_000_000)));
        let said = loaded(&site, words);
        let own = line(&said.stdout, "Own report").to_owned();
        assert!(own.contains("both have 19") && own.contains("differ "), "{said}");
        let full = full(&site, &site.kept().1);
        assert_eq!(
            full.contains("Statspack of a pluggable database keeps rows of the plain views"),
            kind == "Statspack"
        );
        let lines = beside(&full, kind);
        assert!(difference(&lines, "read requests") > 100.0, "{lines:#?}");
        assert!(difference(&lines, "db file sequential read").abs() <= MAX_APART, "{lines:#?}");
    }
}

#[test]
fn what_statspack_counted_is_kept_as_a_report_that_can_be_imported() {
    let site = site();
    site.set_up();
    // More than any storage of today reads in an hour.
    site.model.with(|database| database.snapshots.planted = Some(("physical read bytes", 9_876_543_210_987_654)));
    let said = measured(&site, &["--statspack"]);
    assert_eq!(said.code, Some(0), "{said}");
    let (run, directory) = site.kept();
    let report = &run["steps"][0]["own_reports"][0];
    assert_eq!((report["kind"].as_str(), report["file"].as_str()), (Some("Statspack"), Some("statspack-0-0.txt")));
    let file = directory.join("statspack-0-0.txt");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("STATSPACK report for\n") && text.ends_with("\nEnd of Report\n"), "{text}");
    assert!(text.lines().all(|line| line.len() == line.trim_end().len()), "{text}");
    let imported = site.place.done(&["import", "--json", &file.display().to_string()]).json()[0].clone();
    assert_eq!(
        (&imported["files"][0]["kind"], &imported["not_understood"]),
        (&"statspack".into(), &Json::Array(vec![]))
    );
    let there =
        site.place.done(&["report", imported["id"].as_str().unwrap(), "--json"]).json()["run"]["steps"][0].clone();
    let here = &report["counted"];
    assert!(here["own"]["DB time_ns"].as_u64().unwrap() > 0 && here["counters"]["redo_bytes"].as_u64().unwrap() > 0);
    assert_eq!((&there["counters"], &there["instances"][0]["own"]), (&here["counters"], &here["own"]));
    // Histograms are in per cent there.
    let waits = |of: &Json| {
        let wait =
            |wait: &Json| [&wait["event"], &wait["waits"]["count"], &wait["waits"]["total_ns"]].map(Json::to_string);
        of["waits"].as_array().unwrap().iter().map(wait).collect::<Vec<_>>()
    };
    assert_eq!((waits(&there), waits(here).len()), (waits(here), 4));
}

#[test]
fn statspack_gives_its_snapshots_where_its_tables_may_not_be_read() {
    let site = site();
    site.set_up();
    refuse(&site, "perfstat.stats$", 942);
    let said = measured(&site, &["--statspack"]);
    assert_eq!(said.code, Some(0), "{said}");
    for part in [
        "snapshots 2 and 3",
        "spreport",
        "ORA-00942",
        "GRANT SELECT ON PERFSTAT.STATS$SYSSTAT TO \"SLOB\"",
        "GRANT SELECT ON SYS.V_$EVENT_NAME TO",
    ] {
        assert!(said.stderr.contains(part), "`{part}` is not in:\n{said}");
    }
    let (run, directory) = site.kept();
    let report = &run["steps"][0]["own_reports"][0];
    assert_eq!((report["kind"].as_str(), &report["counted"]), (Some("Statspack"), &Json::Null), "{report}");
    assert!(!directory.join("statspack-0-0.txt").exists());
    assert_eq!(measured(&site, &["--statspack", "--awr", CONSENT]).code, Some(2));
}

#[test]
fn statspack_s_snapshots_are_of_one_instance_wherever_a_listener_leads() {
    let site = site();
    site.set_up();
    let lands_on = |instances: &[i64]| {
        let answer = |number: &i64| Answer::rows([Column::number("INSTANCE")], vec![[(*number).into()]]);
        let answers = instances.iter().map(answer).collect();
        let part = "TO_NUMBER(SYS_CONTEXT('USERENV', 'INSTANCE')) FROM dual".to_owned();
        site.model.with(|database| database.answered = vec![(part, answers)]);
    };
    lands_on(&[2, 2, 1, 1, 2, 1]);
    let said = measured(&site, &["--statspack"]);
    assert_eq!(said.code, Some(0), "{said}");
    let taken = site.model.with(|database| database.snapshots.taken.len());
    assert_eq!((taken, site.kept().0["steps"][0]["own_reports"].as_array().map(Vec::len)), (3, Some(1)), "{said}");
    lands_on(&[2]);
    let said = measured(&site, &["--statspack"]);
    assert_eq!(said.code, Some(2), "{said}");
    assert!(said.stderr.contains("other instances than number 1") && said.stderr.contains("?instance="), "{said}");
    assert_eq!(site.model.with(|database| database.snapshots.taken.len()), taken);
}

#[test]
fn no_report_is_of_two_lives_of_an_instance() {
    let site = site();
    site.set_up();
    site.model.with(|database| database.snapshots.is_restarted = true);
    let said = measured(&site, &["--statspack"]);
    assert_eq!(said.code, Some(0), "{said}");
    assert!(said.stderr.contains("was started anew") && !said.stderr.contains("spreport"), "{said}");
    let step = &site.kept().0["steps"][0];
    assert_eq!(step.get("own_reports").and_then(Json::as_array).map_or(0, Vec::len), 0, "{step}");
}

#[test]
fn each_instance_of_a_cluster_has_its_report_between_the_same_snapshots() {
    let site = Site::new(Generation::V19);
    site.set_up();
    site.model.with(|database| {
        database.cluster = vec![Instance::steady(1, "ONE1"), Instance::steady(2, "ONE2")];
    });
    let said = measured(&site, &["--awr", CONSENT]);
    assert_eq!(said.code, Some(0), "{said}");
    let (run, directory) = site.kept();
    let reports = run["steps"][0]["own_reports"].as_array().unwrap();
    let of = |report: &Json| {
        let text = |name: &str| report[name].as_str().unwrap().to_owned();
        assert!(directory.join(text("file")).is_file() && report["counted"].is_object(), "{report}");
        (
            text("node"),
            report["instance"].as_u64().unwrap(),
            report["begin_snapshot"].clone(),
            report["end_snapshot"].clone(),
        )
    };
    let reports: Vec<_> = reports.iter().map(of).collect();
    let [one, two] = reports.as_slice() else { panic!("{reports:?}") };
    assert_eq!(((one.0.as_str(), one.1), (two.0.as_str(), two.1)), (("ONE1", 1), ("ONE2", 2)));
    assert_eq!((&one.2, &one.3), (&two.2, &two.3), "a snapshot for AWR is of all instances");
    let taken = site.model.with(|database| database.snapshots.taken.len());
    assert_eq!(taken, 3, "one to try, and one at each edge");
    let nodes: Vec<&Json> =
        run["steps"][0]["servers"].as_array().unwrap().iter().map(|server| &server["node"]).collect();
    assert_eq!(nodes, ["ONE1", "ONE2"], "they are laid beside what is called so");
    assert_eq!(run["target"]["facts"]["other"]["nodes"], "2");
}
