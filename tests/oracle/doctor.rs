//! `slob doctor`, and `io calibrate` by the database itself.

use crate::model::Model;
use crate::place::Answer as Said;
use crate::responder::{Answer, Column, GENERATIONS, Generation, Value, Way};
use crate::whole::{PASSWORD, Site};

/// Views of which nothing but the right to read them matters.
const OTHER_VIEWS: [&str; 17] = [
    "v$sysstat",
    "v$system_event",
    "v$event_histogram_micro",
    "v$sys_time_model",
    "v$osstat",
    "v$iostat_function",
    "v$session",
    "v$session_event",
    "v$instance",
    "v$mystat",
    "v$statname",
    "v$sql_plan",
    "v$locked_object",
    "v$con_sysstat",
    "v$con_system_event",
    "v$con_event_histogram_micro",
    "v$con_sys_time_model",
];
const PARAMETERS: [(&str, &str); 8] = [
    ("timed_statistics", "TRUE"),
    ("filesystemio_options", "SETALL"),
    ("disk_asynch_io", "TRUE"),
    ("cluster_database", "FALSE"),
    ("resource_manager_plan", ""),
    ("_db_block_prefetch_limit", "0"),
    ("_db_block_prefetch_quota", "0"),
    ("_db_file_noncontig_mblock_read_count", "0"),
];

fn rows<const N: usize>(all: &[[&str; N]]) -> Answer {
    let value = |text: &str| if text.is_empty() { Value::Null } else { Value::from(text) };
    Answer::rows(["C"; N].map(Column::text), all.iter().map(|row| row.map(value)).collect())
}

fn waits(all: &[(&str, i64)]) -> Answer {
    let columns = [Column::text("EVENT"), Column::number("TOTAL_WAITS"), Column::number("TIME_WAITED_MICRO")];
    let row = |(event, count): &(&str, i64)| [Value::from(*event), (*count).into(), (*count * 200).into()];
    Answer::rows(columns, all.iter().map(row).collect())
}

fn out(values: Vec<Value>) -> Answer {
    Answer::Block { ways: vec![Way::Out; values.len()], out: vec![values] }
}

fn answer(model: &Model, part: &str, answers: impl IntoIterator<Item = Answer>) {
    model.with(|database| {
        database.answered.retain(|(other, _)| other != part);
        database.answered.push((part.to_owned(), answers.into_iter().collect()));
    });
}

fn set_parameters(model: &Model, change: (&str, &str)) {
    let all = PARAMETERS.map(|(name, value)| if name == change.0 { [name, change.1] } else { [name, value] });
    model.with(|database| database.views.insert("v$parameter".to_owned(), rows(&all)));
}

/// A database in which nothing is wrong, seen by a user who has every right.
fn healthy(generation: Generation) -> Site {
    let site = Site::new(generation);
    let model = &site.model;
    model.with(|database| {
        for view in OTHER_VIEWS {
            database.views.insert(view.to_owned(), rows(&[[""]]));
        }
        database.views.insert("v$database".to_owned(), rows(&[["READ WRITE", "ARCHIVELOG", "NO"]]));
        let plan = [
            ["abc", "SELECT STATEMENT", "", ""],
            ["abc", "TABLE ACCESS", "BY INDEX ROWID", "SLOB_1"],
            ["abc", "INDEX", "RANGE SCAN", "SLOB_1_KEY"],
        ];
        database.views.insert("v$sql".to_owned(), rows(&plan));
        let cache = Answer::rows([Column::number("BYTES")], vec![[(1_i64 << 20).into()]]);
        database.views.insert("v$sgainfo".to_owned(), cache);
        let continued = Answer::rows([Column::number("VALUE")], vec![[0_i64.into()]]);
        database.views.insert("v$mystat".to_owned(), continued);
    });
    set_parameters(model, ("", ""));
    let machines = rows(&[["tcp", "3", "db1.example.com", "client7", "10.1.2.3"]]);
    answer(model, "NETWORK_PROTOCOL", [machines]);
    let privileges = rows(&[["CREATE SESSION"], ["CREATE TABLE"]]);
    answer(model, "FROM session_privs", [privileges]);
    answer(model, "FROM all_objects", [rows(&[["UTL_RAW"], ["DBMS_STATS"]])]);
    let quota = Answer::rows(["BYTES", "MAX_BYTES"].map(Column::number), vec![[0_i64.into(), (-1_i64).into()]]);
    answer(model, "FROM user_ts_quotas", [quota]);
    answer(model, ":smallest_us", [out(vec![1_i64.into(), 4000_i64.into()])]);
    let synchronous = |count: i64| Answer::rows([Column::number("VALUE")], vec![[count.into()]]);
    answer(model, "'redo synch writes'", [synchronous(4), synchronous(14)]);
    let read = waits(&[("db file sequential read", 500)]);
    let committed = waits(&[("db file sequential read", 500), ("log file sync", 10)]);
    answer(model, "event, total_waits", [waits(&[]), read.clone(), read, committed]);
    answer(model, ":took", [out(vec![Value::from("410 395 400 402 399 405 398 401 400 1203 ")])]);
    site
}

fn doctor(site: &Site) -> Said {
    site.run(&["slob", "doctor", "-o", "doctor.txt"])
}

fn file(site: &Site) -> String {
    std::fs::read_to_string(site.place.path("doctor.txt")).unwrap()
}

#[test]
fn a_healthy_database_is_called_so_and_nothing_in_it_changes() {
    for generation in GENERATIONS {
        let site = healthy(generation);
        site.set_up();
        let before = site.model.with(|database| (database.tables.clone(), database.descriptor.clone()));
        let said = doctor(&site);
        assert_eq!(said.code, Some(0), "{said}");
        for part in [
            "version: Oracle Database 19c Enterprise Edition",
            "a pluggable database",
            "PRIMARY, READ WRITE, ARCHIVELOG",
            "rights to views: all 17 are there",
            "rights to views of the container: all 4",
            "rights for AWR: missing; needed only",
            "prefetching: off",
            "SYSTIMESTAMP goes on in steps of 1.00 us",
            "round trip: ",
            "tcp, not encrypted",
            "300 rows in 300 blocks",
            "by 500 reads of single blocks; 200 us in the mean",
            "executed plans: by index and ROWID",
            "10 commits took 395 us to 1.20 ms, 401 us in the median, with 10 waits for redo (log file sync), and 10 redo synch writes",
            "the data is",
        ] {
            assert!(said.stdout.contains(part), "`{part}` is not in:\n{said}");
        }
        assert!(!said.stdout.contains("problem") && !said.stdout.contains("not known"), "{said}");
        let after = site.model.with(|database| (database.tables.clone(), database.descriptor.clone()));
        assert!(before == after);
        let text = file(&site);
        assert!(text.starts_with("plimsoll slob doctor, version "), "{text}");
        for part in [
            "right.v$sysstat = yes",
            "parameter.disk_asynch_io = TRUE",
            "plan.001 = abc TABLE ACCESS",
            "commits_us = 410",
        ] {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
        assert!(text.contains("oracle://slob@host-1:") && text.contains("service = orcl"), "{text}");
        for machine in ["127.0.0.1", "db1", "client7", "10.1.2.3", PASSWORD] {
            assert!(!text.contains(machine) && !said.stdout.contains(machine), "`{machine}` is in:\n{text}");
        }
    }
}

#[test]
fn the_same_is_said_to_programs() {
    let site = healthy(Generation::V23);
    let said = site.run(&["slob", "doctor", "--json"]);
    assert_eq!(said.code, Some(0), "{said}");
    let document = said.json();
    let checks = document["checks"].as_array().unwrap();
    let of =
        |topic: &str| checks.iter().find(|check| check["topic"] == topic).unwrap_or_else(|| panic!("{topic}\n{said}"));
    assert_eq!(of("data")["status"], "advice");
    assert!(of("data")["advice"].as_str().unwrap().contains("slob setup"));
    assert_eq!(document["facts"]["clock.smallest_step_us"], "1");
    let written = std::fs::read_dir(site.place.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = written.map(|name| name.into_string().unwrap()).collect();
    assert!(names.len() == 1 && names[0].starts_with("plimsoll-doctor-"), "{names:?}");
}

#[test]
fn a_user_without_rights_learns_which_grants_are_missing() {
    let site = Site::new(Generation::V19);
    answer(&site.model, "FROM session_privs", [rows(&[["CREATE SESSION"]])]);
    answer(&site.model, "FROM user_ts_quotas", [rows::<2>(&[])]);
    let said = doctor(&site);
    assert_eq!(said.code, Some(1), "{said}");
    for part in [
        "rights to views: 17 of 17 missing",
        "GRANT SELECT ON SYS.V_$SYSSTAT TO \"SLOB\"",
        "GRANT CREATE TABLE TO \"SLOB\"",
        "QUOTA UNLIMITED ON \"DATA\"",
        "its size is not known",
        "how it is open is not known",
        "none are there",
    ] {
        assert!(said.stdout.contains(part), "`{part}` is not in:\n{said}");
    }
    let text = file(&site);
    assert!(text.contains("right.v$sysstat = no") && text.contains("right.CREATE TABLE = no"), "{text}");
    assert!(text.contains("refused.ask for the parameters = ") && text.contains("ORA-00942"), "{text}");
}

#[test]
fn what_spoils_a_test_is_a_problem_and_what_may_is_advice() {
    type Spoiler<'a> = (&'a dyn Fn(&Site), Option<i32>, &'a str);
    let spoilers: [Spoiler<'_>; 8] = [
        (
            &|site| {
                let edition = rows(&[["Oracle Database 19c Standard Edition 2", "19.0.0.0.0"]]);
                answer(&site.model, "FROM product_component_version", [edition]);
            },
            Some(0),
            "16 processor threads",
        ),
        (
            &|site| {
                let none = Answer::rows([Column::number("VALUE")], vec![[0_i64.into()]]);
                answer(&site.model, "'redo synch writes'", [none]);
                let read = waits(&[("db file sequential read", 500)]);
                answer(&site.model, "event, total_waits", [waits(&[]), read]);
            },
            Some(0),
            "not all waited",
        ),
        (&|site| set_parameters(&site.model, ("timed_statistics", "FALSE")), Some(1), "no wait is timed"),
        (&|site| set_parameters(&site.model, ("resource_manager_plan", "DAYTIME")), Some(0), "DAYTIME is active"),
        (
            &|site| answer(&site.model, ":smallest_us", [out(vec![Value::Null, 0_i64.into()])]),
            Some(1),
            "SYSTIMESTAMP stood still",
        ),
        (
            &|site| {
                let mixed = waits(&[("db file sequential read", 50), ("db file parallel read", 50)]);
                answer(&site.model, "event, total_waits", [waits(&[]), mixed]);
            },
            Some(0),
            "50 of several blocks at once",
        ),
        (&|site| site.model.with(|database| assert!(database.indexes.remove("slob_1_key"))), Some(1), "is missing"),
        (
            &|site| {
                let cache = Answer::rows([Column::number("BYTES")], vec![[(8_i64 << 30).into()]]);
                site.model.with(|database| database.views.insert("v$sgainfo".to_owned(), cache));
            },
            Some(1),
            "the cache serves much of what should reach storage",
        ),
    ];
    for (spoil, code, says) in spoilers {
        let site = healthy(Generation::V19);
        site.set_up();
        spoil(&site);
        let said = doctor(&site);
        assert!(said.code == code && said.stdout.contains(says), "`{says}`\n{said}");
        assert!(file(&site).contains(says));
    }
}

#[test]
fn whoever_cannot_be_asked_is_no_patient() {
    let site = healthy(Generation::V19);
    site.model.with(|database| {
        database.refused.push((
            "FROM v$sgainfo WHERE name".to_owned(),
            3113,
            "end-of-file on communication channel".to_owned(),
        ));
    });
    let said = doctor(&site);
    assert!(said.code == Some(2) && said.stderr.contains("is gone"), "{said}");
    assert!(!site.place.path("doctor.txt").exists());
    for address in ["dir:data", "postgres://u@127.0.0.1/x"] {
        let said = site.run_at(address, &["slob", "doctor"]);
        assert!(said.code == Some(2) && said.stderr.contains("supports Oracle only so far"), "{said}");
        assert!(said.stderr.contains("hint: "), "{said}");
    }
}

#[test]
fn a_file_of_somebody_else_is_not_written_over() {
    let site = healthy(Generation::V23);
    site.place.write("doctor.txt", "my own notes\n");
    let said = doctor(&site);
    assert!(said.code == Some(2) && said.stderr.contains("is not overwritten"), "{said}");
    assert_eq!(file(&site), "my own notes\n");
}

fn calibrate(site: &Site, role: &str, more: &[&str]) -> Said {
    site.run_at(&format!("{}{role}", site.address()), &[&["io", "calibrate", "--disks", "4"], more].concat())
}

#[test]
fn the_database_calibrates_its_storage_three_times() {
    let site = Site::new(Generation::V23);
    let found = |iops: i64, mbps: i64, latency: i64| Answer::Block {
        ways: vec![Way::In, Way::In, Way::Out, Way::Out, Way::Out],
        out: vec![vec![iops.into(), mbps.into(), latency.into()]],
    };
    answer(&site.model, "CALIBRATE_IO", [found(9000, 900, 8), found(12_000, 850, 0), found(11_000, 1000, 9)]);
    let own = ["io", "calibrate", "--path", "sim:iops_cap=5000,mbps_cap=200,clock=simulated", "--quiet"];
    site.place.done(&own);
    let said = calibrate(&site, "?role=sysdba", &["--max-latency", "20ms", "--beside", "last"]);
    assert_eq!(said.code, Some(0), "{said}");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert!(lines[4].starts_with("median") && lines[4].contains("11,000") && lines[4].contains("900"), "{said}");
    assert!(lines[5].starts_with("ours") && lines[5].contains("200"), "{said}");
    assert!(said.stderr.contains("never tried on a real Oracle database"), "{said}");
    let asked: Vec<_> = site.responder.calls().into_iter().filter(|call| call.sql.contains("CALIBRATE_IO")).collect();
    assert_eq!(asked.len(), 3);
    assert_eq!([&asked[0].binds[0][0], &asked[0].binds[0][1]].map(Value::as_i64), [Some(4), Some(20)]);
    let said = calibrate(&site, "?role=sysdba", &["--json"]);
    assert_eq!(said.json()["median"]["max_iops"], 11_000, "{said}");
}

#[test]
fn calibration_says_what_it_needs() {
    let site = Site::new(Generation::V19);
    let said = calibrate(&site, "", &[]);
    assert!(said.code == Some(2) && said.stderr.contains("role=sysdba"), "{said}");
    for (code, hint) in [(56_708, "filesystemio_options"), (56_705, "only one"), (1031, "GRANT")] {
        answer(&site.model, "CALIBRATE_IO", [Answer::error(code, "no")]);
        let said = calibrate(&site, "?role=sysdba", &[]);
        let number = format!("ORA-{code:05}");
        assert!(said.code == Some(2) && said.stderr.contains(&number) && said.stderr.contains(hint), "{said}");
    }
    let said = calibrate(&site, "?role=sysdba", &["--max-latency", "p99=10ms"]);
    assert!(said.code == Some(2) && said.stderr.contains("whole milliseconds"), "{said}");
    let said = calibrate(&site, "?role=sysdba", &["--path", "x"]);
    assert!(said.code == Some(2) && said.stderr.contains("cannot be used with"), "{said}");
    let said = site.run_at("pg:x", &["io", "calibrate"]);
    assert!(said.code == Some(2) && said.stderr.contains("supports Oracle only"), "{said}");
}

#[test]
fn what_the_server_refuses_to_tell_is_not_called_there() {
    let site = healthy(Generation::V19);
    site.set_up();
    for part in ["FROM session_privs", "FROM all_objects", ":smallest_us"] {
        answer(&site.model, part, [Answer::error(600, "internal error")]);
    }
    let said = doctor(&site);
    for part in ["advice   right to connect: 1 of 1 not known", "advice   questions: 3 were refused"] {
        assert!(said.stdout.contains(part), "`{part}` is not in:\n{said}");
    }
    assert!(file(&site).contains("refused.read the clock = "), "{}", file(&site));
}
