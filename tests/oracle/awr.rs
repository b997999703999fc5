//! AWR and Statspack: snapshots at both edges of a window, the report kept and read, and laid beside what was counted.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;

use crate::model::{Instance, Model};
use crate::place::{Answer as Said, Place};
use crate::responder::{Answer, Answers, Call, Column, Fault, Generation, Kind, Options, Responder, Value, Way};
use crate::skip::skip;
use crate::whole::{PASSWORD, Site};

const CONSENT: &str = "yes, the Diagnostics Pack is licensed";
const DBID: i64 = 77_000_111;

/// A database with AWR and Statspack before the model.
struct WithAwr {
    model: Model,
    awr: Arc<Mutex<Awr>>,
}

#[derive(Default)]
struct Awr {
    /// The number of each snapshot is its place here, from 1 on: commits and operations until then, and who took it.
    snapshots: Vec<Snapshot>,
    /// Commits that the report has besides those of the model.
    commits_of_others: u64,
    /// A report that is handed out as it is.
    report: Option<String>,
    is_refused: bool,
}

#[derive(Clone, Copy)]
struct Snapshot {
    commits: u64,
    executed: usize,
    session: u32,
}

impl Answers for WithAwr {
    fn answer(&self, call: &Call) -> Answer {
        if ![Kind::Execute, Kind::Reexecute].contains(&call.kind) {
            return self.model.answer(call);
        }
        let mut awr = self.awr.lock().unwrap();
        let is_awr = call.sql.contains("DBMS_WORKLOAD_REPOSITORY");
        if awr.is_refused && is_awr {
            return Answer::error(6550, "PLS-00201: identifier 'SYS.DBMS_WORKLOAD_REPOSITORY' must be declared");
        }
        if call.sql.contains("con_dbid") {
            return Answer::rows(
                [Column::number("DBID"), Column::number("INSTANCE")],
                vec![[DBID.into(), 1_i64.into()]],
            );
        }
        if call.sql.contains("CREATE_SNAPSHOT") || call.sql.contains("PERFSTAT.STATSPACK.SNAP") {
            let (commits, executed) = self.model.with(|database| (database.commits, database.executed.len()));
            awr.snapshots.push(Snapshot { commits, executed, session: call.session });
            let number = awr.snapshots.len() as i64;
            return Answer::Block { ways: vec![Way::Out], out: vec![vec![number.into()]] };
        }
        if call.sql.contains("AWR_REPORT_TEXT") {
            let asked: Vec<i64> = call.binds[0].iter().filter_map(Value::as_i64).collect();
            let [DBID, 1 | 2, begin, end] = asked[..] else { return Answer::error(20_200, "no such snapshots") };
            let text = awr.report.clone().unwrap_or_else(|| awr.made_up(begin, end));
            let line = |line: &str| [if line.is_empty() { Value::Null } else { line.into() }];
            return Answer::rows([Column::text("OUTPUT")], text.lines().map(line).collect());
        }
        drop(awr);
        self.model.answer(call)
    }

    fn connecting(&self, session: u32, service: &str) -> Option<Fault> {
        self.model.connecting(session, service)
    }
}

impl Awr {
    /// A short report with figures of nobody's but the commits.
    fn made_up(&self, begin: i64, end: i64) -> String {
        let at = |number: i64| self.snapshots[number as usize - 1].commits;
        let commits = at(end) - at(begin) + self.commits_of_others;
        format!(
            "
WORKLOAD REPOSITORY report for

DB Name         DB Id    Unique Name DB Role          Edition Release    RAC CDB
------------ ----------- ----------- ---------------- ------- ---------- --- ---
SHOP            77000111 shop        PRIMARY          EE      19.0.0.0.0 NO  NO

Instance     Inst Num Startup Time
------------ -------- ---------------
shop1               1 01-Mar-21 08:00

Host Name        Platform                         CPUs Cores Sockets Memory(GB)
---------------- -------------------------------- ---- ----- ------- ----------
host             Linux x86 64-bit                    4                     7.50

              Snap Id      Snap Time      Sessions Curs/Sess  PDBs
            --------- ------------------- -------- --------- -----
Begin Snap: {begin:>9} 01-Mar-21 10:00:01        40        .9     2
  End Snap: {end:>9} 01-Mar-21 10:00:03        41       1.1     2
   Elapsed:                0.03 (mins)
   DB Time:                0.01 (mins)

Key Instance Activity Stats                   DB/Inst: SHOP/shop1  Snaps: {begin}-{end}
-> Ordered by statistic name

Statistic                                     Total     per Second     per Trans
-------------------------------- ------------------ -------------- -------------
execute count                             1,234,567            1.0           1.0
user commits                     {commits:>18}            1.0           1.0
                          ------------------------------------------------------

End of Report
"
        )
    }
}

fn site(awr: Awr) -> (Site, Arc<Mutex<Awr>>) {
    let options = Options { hashings: 1, password: PASSWORD.to_owned(), ..Options::of(Generation::V19) };
    let (model, awr) = (Model::default(), Arc::new(Mutex::new(awr)));
    let responder = Responder::start(options, WithAwr { model: model.clone(), awr: Arc::clone(&awr) });
    (Site { model, responder, place: Place::new() }, awr)
}

/// Measures 400 updates or so, with these words besides.
fn measured(site: &Site, words: &[&str]) -> Said {
    let load =
        ["slob", "run", "--send", "statement", "WORK_LOOP=200", "UPDATE_PCT=100", "WORK_UNIT=4", "--warmup", "0"];
    site.run(&[&load, words].concat())
}

/// The run that was kept last, and its directory.
fn kept(site: &Site) -> (Json, PathBuf) {
    let directory = site.place.path("plimsoll-runs").join(site.place.runs().pop().unwrap());
    let text = std::fs::read_to_string(directory.join("run.json")).unwrap();
    (serde_json::from_str(&text).unwrap(), directory)
}

fn full(site: &Site, directory: &std::path::Path) -> String {
    site.place.done(&["report", &directory.display().to_string(), "--full"]).stdout
}

fn line<'a>(report: &'a str, what: &str) -> &'a str {
    let mut lines = report.lines().filter(|line| line.trim_start().starts_with(what));
    lines.next().unwrap_or_else(|| panic!("no `{what}` in\n{report}"))
}

#[test]
fn awr_takes_its_own_word_for_the_licence_and_no_other() {
    let (site, awr) = site(Awr::default());
    for words in ["yes", "", "Yes, the Diagnostics Pack is licensed"] {
        let said = measured(&site, &["--awr", words]);
        assert_eq!(said.code, Some(2), "{said}");
        assert!(said.stderr.contains("Diagnostics Pack") && said.stderr.contains(CONSENT), "{said}");
    }
    let elsewhere = site.place.run(&["slob", "run", "--target", "sim:", "--awr", CONSENT]);
    assert_eq!(elsewhere.code, Some(2), "{elsewhere}");
    assert!(elsewhere.stderr.contains("for Oracle"), "{elsewhere}");
    assert!(awr.lock().unwrap().snapshots.is_empty());
    assert_eq!(site.responder.sessions().len(), 0, "nobody was asked before that was clear");
}

#[test]
fn a_report_is_kept_and_laid_beside_what_was_counted() {
    let (site, awr) = site(Awr::default());
    site.set_up();
    let said = measured(&site, &["--awr", CONSENT]);
    assert_eq!(said.code, Some(0), "{said}");
    let (run, directory) = kept(&site);
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
    assert_eq!(report["counted"]["own"]["execute count"], 1_234_567);
    // No session of the load has taken one, and the first was there before any load.
    let snapshots = awr.lock().unwrap().snapshots.clone();
    let sessions = site.responder.sessions();
    let module = |snapshot: &Snapshot| sessions[snapshot.session as usize - 1].module.clone();
    assert!(snapshots.iter().all(|snapshot| module(snapshot) == "plimsoll snapshots"));
    assert_eq!((snapshots[1].executed, snapshots[2].executed), (0, site.executed().len()));
    let full = full(&site, &directory);
    assert!(full.contains("AWR beside what was counted here") && full.contains("snapshots 2 to 3"), "{full}");
    let commits = line(&full, "commits");
    assert!(commits.contains(&theirs.to_string()) && commits.contains(&ours.to_string()), "{commits}");
    assert!(!commits.contains("sessions"), "what agrees needs no reason: {commits}");
    assert!(line(&full, "execute count").contains("1,234,567"), "{full}");
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
    let (site, awr) = site(Awr::default());
    site.set_up();
    let load = ["slob", "run", "--send", "statement", "WORK_LOOP=200", "WORK_UNIT=4", "--warmup", "3s"];
    site.done(&[&load, &["--awr", CONSENT][..]].concat());
    let report = kept(&site).0["steps"][0]["own_reports"][0].clone();
    let [lead_ns, lag_ns] = ["lead_ns", "lag_ns"].map(|name| report[name].as_u64().unwrap());
    assert!(lag_ns > 0, "{report}");
    // Where a snapshot takes long, three seconds are short: then it was there before all load.
    let executed = awr.lock().unwrap().snapshots[1].executed;
    assert_eq!(executed == 0, lead_ns >= WARMUP_NS, "{executed} operations before it, {report}");
}

#[test]
fn what_other_sessions_did_is_named_where_the_report_has_more() {
    let (site, _) = site(Awr { commits_of_others: 1_000_000, ..Awr::default() });
    site.set_up();
    let said = measured(&site, &["--awr", CONSENT]);
    assert_eq!(said.code, Some(0), "{said}");
    let full = full(&site, &kept(&site).1);
    assert!(line(&full, "commits").contains("other sessions"), "{full}");
}

#[test]
fn a_real_report_is_read_as_import_reads_it() {
    let corpus = std::env::var_os("PLIMSOLL_CORPUS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"), PathBuf::from);
    let Ok(text) = std::fs::read_to_string(corpus.join("awr/awr_11204_rac_inst1.txt")) else {
        return skip(format_args!("there is no corpus in {}", corpus.display()));
    };
    let (site, _) = site(Awr { report: Some(text.clone()), ..Awr::default() });
    site.set_up();
    let said = measured(&site, &["--awr", CONSENT]);
    assert_eq!(said.code, Some(0), "{said}");
    let (run, directory) = kept(&site);
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
    let (site, awr) = site(Awr::default());
    site.set_up();
    awr.lock().unwrap().is_refused = true;
    let said = measured(&site, &["--awr", CONSENT]);
    assert_eq!(said.code, Some(2), "{said}");
    let is_named =
        ["ORA-06550", "GRANT EXECUTE ON SYS.DBMS_WORKLOAD_REPOSITORY TO", "GRANT SELECT ON SYS.V_$DATABASE TO"]
            .iter()
            .all(|words| said.stderr.contains(words));
    assert!(is_named, "{said}");
    assert!(site.executed().is_empty() && site.place.runs().is_empty());
}

#[test]
fn statspack_gives_snapshots_and_says_how_its_report_is_made() {
    let (site, _) = site(Awr::default());
    site.set_up();
    let said = measured(&site, &["--statspack"]);
    assert_eq!(said.code, Some(0), "{said}");
    assert!(said.stderr.contains("snapshots 2 and 3") && said.stderr.contains("spreport"), "{said}");
    let (run, directory) = kept(&site);
    let report = &run["steps"][0]["own_reports"][0];
    assert_eq!((report["kind"].as_str(), &report["counted"]), (Some("Statspack"), &Json::Null), "{report}");
    assert!(!directory.join("awr-0-0.txt").exists());
    assert_eq!(measured(&site, &["--statspack", "--awr", CONSENT]).code, Some(2));
}

#[test]
fn each_instance_of_a_cluster_has_its_report_between_the_same_snapshots() {
    let (site, awr) = site(Awr::default());
    site.set_up();
    site.model.with(|database| {
        database.cluster = vec![Instance::steady(1, "ONE1"), Instance::steady(2, "ONE2")];
    });
    let said = measured(&site, &["--awr", CONSENT]);
    assert_eq!(said.code, Some(0), "{said}");
    let (run, directory) = kept(&site);
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
    assert_eq!(awr.lock().unwrap().snapshots.len(), 3, "one to try, and one at each edge");
    let nodes: Vec<&Json> =
        run["steps"][0]["servers"].as_array().unwrap().iter().map(|server| &server["node"]).collect();
    assert_eq!(nodes, ["ONE1", "ONE2"], "they are laid beside what is called so");
    assert_eq!(run["target"]["facts"]["nodes"], "2");
}
