//! The program as its user meets it, against a small database behind the responder: from set-up to removal.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::model::{Executed, Model, Touch};
use crate::place::{Answer, Place};
use crate::responder::{GENERATIONS, Generation, Options, Responder};

/// What must be in no output, no run, no log.
pub const PASSWORD: &str = "tiger in the tank";

/// A database, the responder before it, and a place to run the program in.
pub struct Site {
    pub model: Model,
    pub responder: Responder,
    pub place: Place,
}

impl Site {
    pub fn new(generation: Generation) -> Self {
        Self::with(Options::of(generation))
    }

    pub fn with(options: Options) -> Self {
        let options = Options { hashings: 1, password: PASSWORD.to_owned(), ..options };
        let model = Model::default();
        let responder = Responder::start(options, model.clone());
        Self { model, responder, place: Place::new() }
    }

    pub fn address(&self) -> String {
        format!("oracle://slob@127.0.0.1:{}/orcl", self.responder.port())
    }

    /// Runs a command on the database. Whatever it prints and keeps, the password is not in it.
    pub fn run(&self, words: &[&str]) -> Answer {
        self.run_at(&self.address(), words)
    }

    pub fn run_at(&self, address: &str, words: &[&str]) -> Answer {
        let mut command = self.place.plimsoll(&[words, &["--target", address]].concat());
        let answer = Answer::from(command.env("PLIMSOLL_ORACLE_PASSWORD", PASSWORD).output().unwrap());
        assert!(!format!("{}{}", answer.stdout, answer.stderr).contains(PASSWORD));
        answer
    }

    pub fn done(&self, words: &[&str]) -> Answer {
        let answer = self.run(words);
        assert_eq!(answer.code, Some(0), "{words:?}\n{answer}");
        answer
    }

    /// The run that was kept last, and its directory.
    pub fn kept(&self) -> (Json, PathBuf) {
        let directory = self.place.path("plimsoll-runs").join(self.place.runs().pop().unwrap());
        let text = std::fs::read_to_string(directory.join("run.json")).unwrap();
        (serde_json::from_str(&text).unwrap(), directory)
    }

    /// Whether the server answered in time at the end of the window of the last run: only then it counted as much as the load did.
    pub fn is_counted_to_the_end(&self) -> bool {
        let has_servers = |last: &Json| last["servers"].as_array().is_some_and(|servers| !servers.is_empty());
        intervals(&self.kept().1).last().is_some_and(has_servers)
    }

    /// Two small schemas.
    pub fn set_up(&self) -> Answer {
        self.done(&["slob", "setup", "-s", "2", "SCALE=300", "SCAN_TABLE_SZ=20", "--seed", "7", "--quiet"])
    }

    pub fn executed(&self) -> Vec<Executed> {
        self.model.with(|database| std::mem::take(&mut database.executed))
    }
}

/// What a run of one of these lengths comes to: the first that has what is looked for, or the last.
pub fn longer<T>(lengths: [&str; 3], mut run: impl FnMut(&str) -> T, has: impl Fn(&T) -> bool) -> T {
    let [shorter @ .., longest] = lengths;
    let found = shorter.into_iter().map(&mut run).find(has);
    found.unwrap_or_else(|| run(longest))
}

/// The seconds of a kept run.
pub fn intervals(directory: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(directory.join("intervals.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The run that `--json` printed.
fn run_of(answer: &Answer) -> Json {
    answer.json()["run"].clone()
}

#[test]
fn from_set_up_to_removal_in_both_generations_of_the_protocol() {
    for generation in GENERATIONS {
        let site = Site::new(generation);
        let dry = site.done(&["slob", "setup", "-s", "2", "SCALE=300", "--dry-run"]);
        assert!(dry.stdout.contains("8 KiB") && site.model.with(|database| database.tables.is_empty()), "{dry}");
        site.set_up();
        site.model.with(|database| {
            let rows = |name: &str| database.tables[name].rows.keys().copied().collect::<Vec<_>>();
            assert_eq!(rows("slob_1"), (0..300).collect::<Vec<_>>());
            assert_eq!(rows("scan_2"), (0..20).collect::<Vec<_>>());
            assert!(database.tables["slob_2"].is_minimized && database.indexes.contains("slob_2_key"));
            assert_eq!(database.descriptor.as_ref().map(|(_, stage, _)| stage.as_str()), Some("ready"));
            assert!(!database.tables.contains_key("plimsoll_load"));
            // Neighbours in the order of keys are none on storage.
            let blocks: Vec<u64> = database.tables["slob_1"].rows.values().map(|row| row.block).collect();
            let neighbours = blocks.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
            assert!(neighbours < 30, "{neighbours} of 300 rows lie as their keys do");
        });
        // The same again finds them.
        let before = site.responder.round_trips();
        site.set_up();
        assert!(site.responder.round_trips() - before < 30, "nothing was loaded again");
        let info = site.done(&["slob", "info"]);
        assert!(info.stdout.contains("whole") && info.stdout.contains("seed 7"), "{info}");
        let verified = site.done(&["slob", "verify"]);
        assert!(verified.stdout.contains("sound") && verified.stdout.contains("640 rows"), "{verified}");
        for send in ["statement", "batch"] {
            let load = ["slob", "run", "--send", send, "WORK_LOOP=40", "UPDATE_PCT=30", "WORK_UNIT=8"];
            let words = [&load[..], &["--warmup", "1s", "--json"]].concat();
            let run = run_of(&site.done(&words));
            let executed = site.executed();
            let measured = run["steps"][0]["counters"]["operations"].as_u64().unwrap();
            assert!(measured > 0 && executed.len() as u64 >= measured, "{measured} of {}", executed.len());
            assert!(executed.iter().all(|one| one.in_batch == (send == "batch")));
            assert!(executed.iter().any(|one| one.touch == Touch::UpdateLite));
        }
        assert!(site.done(&["slob", "verify"]).stdout.contains("sound"), "updates keep rows as long as they were");
        site.done(&["slob", "drop", "--yes"]);
        site.model.with(|database| assert!(database.tables.is_empty() && database.indexes.is_empty()));
    }
}

#[test]
fn an_operation_is_one_round_trip_and_a_batch_is_one() {
    let site = Site::new(Generation::V23);
    site.set_up();
    for send in ["statement", "batch"] {
        let words = ["slob", "run", "--send", send, "WORK_LOOP=200", "UPDATE_PCT=25", "--warmup", "0", "--quiet"];
        let before = site.responder.sessions().len();
        site.done(&words);
        let executed = site.executed().len();
        let sessions = site.responder.sessions().split_off(before);
        let load: Vec<_> = sessions.iter().filter(|session| session.action == "load").collect();
        assert_eq!(load.len(), 2, "a session for each schema");
        assert!(load.iter().all(|session| session.program == "plimsoll" && session.module == "plimsoll"));
        let calls: usize = load.iter().map(|session| session.calls.len()).sum();
        // Each session rehearses each kind of operation once, on no rows, and logs off.
        match send {
            "statement" => assert!((executed..=executed + 8).contains(&calls), "{calls} calls for {executed}"),
            _ => assert!(calls * 4 < executed, "{calls} calls for {executed} operations in batches"),
        }
    }
}

#[test]
fn who_has_slob_set_up_changes_nothing() {
    let site = Site::new(Generation::V19);
    site.model.set_up_as_slob(2, 300);
    let info = site.done(&["slob", "info", "--layout", "slob"]);
    assert!(info.stdout.contains("2 schemas") && info.stdout.contains("by SLOB"), "{info}");
    for send in ["statement", "batch"] {
        let run = ["slob", "run", "--layout", "slob", "--send", send, "WORK_LOOP=50", "UPDATE_PCT=20", "SCAN_PCT=10"];
        // One thread begins both sessions before either has done its loop.
        let shown = site.done(&[&run[..], &["--lanes", "1", "--warmup", "0"]].concat());
        assert!(shown.stdout.contains("was never tried on a real"), "{shown}");
        let executed = site.executed();
        let of = |name: &str| executed.iter().filter(|one| one.table == name).count();
        assert!(of("user1.cf1") > 0 && of("user2.cf1") > 0, "{executed:?}");
        // SLOB's own keys begin with 1.
        assert!(executed.iter().all(|one| one.touch == Touch::Scan || one.first_key > 0));
    }
    assert!(site.done(&["slob", "verify", "--layout", "slob"]).stdout.contains("sound"));
    for words in [&["slob", "setup", "-s", "2", "SCALE=300"][..], &["slob", "drop", "--yes"]] {
        let refused = site.run(&[words, &["--layout", "slob"]].concat());
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("SLOB's own"), "{refused}");
    }
    site.model.with(|database| assert_eq!(database.tables.len(), 4));
}

#[test]
fn commits_as_slob_s_and_reads_key_by_key_are_sent_so_and_said() {
    let site = Site::new(Generation::V19);
    site.set_up();
    let words =
        ["slob", "run", "WORK_LOOP=40", "UPDATE_PCT=50", "--warmup", "0", "--commit", "slob", "--reads", "key-by-key"];
    let shown = site.done(&words);
    assert!(shown.stderr.contains("committed as SLOB commits") && shown.stderr.contains("key by key"), "{shown}");
    let calls = site.responder.calls();
    let batches: Vec<&str> = calls
        .iter()
        .map(|call| &*call.sql)
        .filter(|sql| sql.contains(":operations") && sql.contains(":filling"))
        .collect();
    assert!(!batches.is_empty());
    assert!(
        batches
            .iter()
            .all(|sql| sql.contains("COMMIT;") && !sql.contains("WRITE IMMEDIATE") && sql.contains("= at_key"))
    );
    // Whatever table one looks at, the step or the run says it by its name.
    let slob = site.place.runs().pop().unwrap();
    site.done(&["slob", "run", "WORK_LOOP=40", "UPDATE_PCT=50", "--warmup", "0"]);
    let waited = site.place.runs().into_iter().find(|id| *id != slob).unwrap();
    let show = |words: &[&str]| site.place.run(words).stdout;
    let tables = [
        (&["report", &slob][..], "s2_t1_wu64_nowait"),
        (&["report", &slob, "--full"], "s2_t1_nowait "),
        (&["table", &slob], "/s2_t1_nowait|"),
        (&["table", &slob, &waited], "s2_t1_nowait"),
        (&["table", &slob, "--style", "matrix"], "s2_t1_nowait"),
        (&["runs", "list"], "s2_t1_wu64_nowait"),
        (&["compare", &waited, &slob], "does not make commits durable in"),
    ];
    for (words, says) in tables {
        let shown = show(words);
        assert!(shown.contains(says), "{words:?}\n{shown}");
    }
    // Whoever waits for each, or commits nothing, is not marked.
    site.done(&["slob", "run", "WORK_LOOP=40", "UPDATE_PCT=0", "--warmup", "0", "--commit", "slob"]);
    site.done(&[
        "slob",
        "run",
        "WORK_LOOP=4",
        "UPDATE_PCT=50",
        "--warmup",
        "0",
        "--commit",
        "slob",
        "--send",
        "statement",
    ]);
    let listed = show(&["runs", "list"]);
    assert_eq!((site.place.runs().len(), listed.matches("_nowait").count()), (4, 1), "{listed}");
    let refused = site.run_at("sim:", &["slob", "run", "WORK_LOOP=1", "--commit", "slob"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("is for Oracle"), "{refused}");
}

#[test]
fn what_is_said_fits_what_was_asked_and_who_counted() {
    let site = Site::new(Generation::V19);
    let dry = site.done(&["slob", "setup", "-s", "2", "SCALE=300", "--dry-run"]).stdout;
    let rights: Vec<&str> = dry.lines().filter(|line| line.starts_with("right ")).collect();
    // SQL*Plus sends nothing of a statement that something follows on its line.
    assert!(rights.len() > 20 && rights.iter().all(|line| line.ends_with("*/;")), "{dry}");
    let none = site.run(&["slob", "run", "--layout", "slob"]);
    assert!(none.code == Some(2) && none.stderr.contains("error: the user `SLOB` on "), "{none}");
    site.set_up();
    site.model.with(|database| database.counts = true);
    let mut said = Vec::new();
    for send in ["statement", "batch"] {
        let words = ["slob", "run", "--warmup", "0", "--commit", "slob", "--send", send];
        let attempt = |length: &str| site.done(&[&words[..], &[length]].concat());
        let lengths = ["RUN_TIME=1", "RUN_TIME=4", "RUN_TIME=16"];
        said.push(longer(lengths, attempt, |_| site.is_counted_to_the_end()).to_string());
    }
    let note = "the server does not wait for the redo of each";
    assert!(!said[0].contains(note) && said[1].contains(note), "{}\n{}", said[0], said[1]);
    // Without the parameters nobody knows whether files are read directly, but it is the server who counts.
    assert!(said[1].contains("its own count of them"), "{}", said[1]);
    assert!(!said[1].contains("device reads: OS"), "{}", said[1]);
}

#[test]
fn no_password_is_in_any_run() {
    let site = Site::new(Generation::V19);
    site.set_up();
    site.done(&["slob", "run", "WORK_LOOP=20", "--warmup", "0", "--quiet"]);
    let mut looked_at = 0;
    let mut folders = vec![site.place.path(".")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            looked_at += 1;
            let bytes = std::fs::read(entry.path()).unwrap();
            let found = bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes());
            assert!(!found, "the password is in {}", entry.path().display());
        }
    }
    assert!(looked_at > 1);
}
