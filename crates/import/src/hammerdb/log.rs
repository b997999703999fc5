//! What HammerDB says while it tests: on its command line, or in the log of its windows.

use model::record::Workload;
use std::collections::BTreeMap;

use super::test::Test;
use crate::console::{plain, unprefixed};
use crate::unix_date;
use crate::{Began, Draft, ImportError, Notes, Source};

const CLI: &str = "HammerDB CLI v";
const LOG: &str = "Hammerdb Log @";
/// Lines that only HammerDB prints.
const MARKS: [&str; 6] = [CLI, LOG, "Vuser 1:", "Vuser 1 created", "Virtual Users Created", "SETTING CONFIGURATION"];

/// What `job` prints of a test before its result, in the order of the test.
const JOB_SAYS: [&str; 2] = ["Beginning rampup time of", "Timing test period of"];

/// Whether two of its lines stand there, or a result by one of its users.
pub(crate) fn recognises(head: &str) -> bool {
    let mut seen = [false; MARKS.len()];
    for line in head.lines() {
        let line = plain(line);
        let text = unprefixed(line);
        if vuser(text).is_some_and(|(_, said)| said.starts_with("TEST RESULT :")) || is_quoted_result(text) {
            return true;
        }
        for (seen, mark) in seen.iter_mut().zip(MARKS) {
            *seen |= text.starts_with(mark) || (mark.starts_with("Virtual") && is_created(text));
        }
    }
    seen.iter().filter(|seen| **seen).count() >= 2
}

/// `Vuser 2:FINISHED SUCCESS`.
fn vuser(text: &str) -> Option<(u32, &str)> {
    let (user, said) = text.strip_prefix("Vuser ")?.split_once(':')?;
    Some((user.trim().parse().ok()?, said.trim()))
}

/// A result as `job` prints it, in JSON.
fn is_quoted_result(text: &str) -> bool {
    text.starts_with("\"TEST RESULT : System achieved")
}

/// `3 Virtual Users Created with Monitor VU`.
fn is_created(text: &str) -> bool {
    let Some((users, rest)) = text.split_once(' ') else { return false };
    users.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with("Virtual Users Created")
}

/// One start of HammerDB.
#[derive(Debug, Default)]
struct Session {
    version: String,
    began: Option<Began>,
    database: Option<String>,
    benchmark: Option<String>,
    parameters: BTreeMap<String, String>,
    in_dictionary: bool,
    tests: Vec<Test>,
    /// Results that `job` printed.
    quoted: Vec<Test>,
    /// What else it printed of the test that comes next.
    of_job: Vec<String>,
}

/// The runs in it: one for each start of HammerDB, of which each test is a step.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut sessions = vec![Session::default()];
    for (line, text) in source.lines() {
        let text = plain(text);
        let text = unprefixed(text);
        let starts = text.starts_with(CLI) || text.starts_with(LOG);
        if starts && sessions.last().is_some_and(|session| !session.tests.is_empty()) {
            sessions.push(Session::default());
        }
        if let Some(session) = sessions.last_mut() {
            session.line(notes, line, text);
        }
    }
    let running = sessions.iter().flat_map(|session| &session.tests).any(|test| test.running);
    let drafts: Vec<Draft> = sessions.into_iter().filter_map(Session::draft).collect();
    if drafts.is_empty() {
        let what = if running {
            "it holds no result: the log ends before one of its tests did"
        } else {
            "it holds no result: HammerDB built or set up a schema and tested nothing"
        };
        return Err(ImportError::no_result(source, what));
    }
    Ok(drafts)
}

impl Session {
    fn line(&mut self, notes: &mut Notes, line: u64, text: &str) {
        if let Some(version) = text.strip_prefix(CLI) {
            version.trim().clone_into(&mut self.version);
        } else if let Some(time) = text.strip_prefix(LOG) {
            self.began = unix_date::parse(time);
        } else if let Some((user, said)) = vuser(text) {
            if self.begins_test(said) {
                self.tests.push(Test::default());
            }
            let Some(test) = self.tests.last_mut() else { return };
            let was_reported = test.is_reported();
            test.said(user, said);
            if said.starts_with("TEST RESULT") && !test.is_reported() && !was_reported {
                notes.not_understood(line, "a test result without NOPM and TPM");
            }
        } else if is_created(text) {
            let mut test = Test::default();
            test.created(text);
            self.tests.push(test);
        } else if is_quoted_result(text) {
            let mut test = Test::default();
            for said in self.of_job.drain(..) {
                test.said(1, &said);
            }
            test.result(text.trim_matches('"'));
            self.quoted.push(test);
        } else if let Some(said) = text.strip_prefix('"')
            && (said.contains(" Active Virtual User") || JOB_SAYS.iter().any(|start| said.starts_with(start)))
        {
            if said.starts_with(JOB_SAYS[0]) {
                self.of_job.clear();
            }
            self.of_job.push(said.trim_matches(['"', ',', ' ']).to_owned());
        } else if let Some(database) = text.strip_prefix("Database set to ") {
            self.database = Some(database.trim().to_owned());
        } else if let Some(benchmark) = text.strip_prefix("Benchmark set to ") {
            self.benchmark = benchmark.split(' ').next().map(str::to_owned);
        } else {
            if !self.setting(text) {
                notes.unknown(line, text);
            }
        }
    }

    /// Whether what a user says belongs to a test that has not been seen beginning.
    fn begins_test(&self, said: &str) -> bool {
        let again = |test: &Test| {
            said.starts_with("Beginning rampup") && (test.running || test.is_reported())
                || said.starts_with("TEST RESULT") && test.is_reported()
        };
        self.tests.last().is_none_or(again)
    }

    /// `Changed tpcc:mysql_rampup from 2 to 5 for MySQL`, `Value 2 for tpcc:mysql_rampup is the same …`, and the lines of a
    /// dictionary that was printed: ` mysql_rampup = 2`.
    fn setting(&mut self, text: &str) -> bool {
        if let Some(rest) = text.strip_prefix("Changed ") {
            let Some((name, values)) = rest.split_once(" from ") else { return false };
            let value = values.rsplit_once(" to ").map(|(_, value)| value);
            let value = value.map(|value| value.rsplit_once(" for ").map_or(value, |(value, _)| value));
            self.set(name, value.unwrap_or_default());
        } else if let Some(rest) = text.strip_prefix("Value ") {
            let Some((reported, _)) = rest.split_once(" is the same as") else { return false };
            let Some((value, name)) = reported.rsplit_once(" for ") else { return false };
            self.set(name, value);
        } else if text.ends_with('{') {
            self.in_dictionary = true;
        } else if text == "}" {
            self.in_dictionary = false;
        } else if self.in_dictionary
            && let Some((name, value)) = text.split_once(" = ")
        {
            self.set(name, value);
        } else {
            return false;
        }
        true
    }

    fn set(&mut self, name: &str, value: &str) {
        let name = name.rsplit(':').next().unwrap_or(name).trim();
        let lower = name.to_ascii_lowercase();
        let is_secret = ["pass", "pwd", "secret", "token", "wallet", "ssl", "auth", "connect"]
            .iter()
            .any(|word| lower.contains(word));
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        if is_name && !is_secret && !value.contains('@') {
            self.parameters.insert(name.to_owned(), value.trim().to_owned());
        }
    }

    fn draft(self) -> Option<Draft> {
        let unfinished = self.tests.iter().filter(|test| test.running && !test.has_results()).count();
        let mut tests: Vec<Test> = self.tests.into_iter().filter(Test::has_results).collect();
        if tests.is_empty() {
            tests = self.quoted.into_iter().filter(Test::has_results).collect();
        }
        let database = tests.iter().find_map(|test| test.database.clone()).or(self.database).unwrap_or_default();
        tests.first()?;
        let benchmark = self.benchmark.as_deref().map_or("", |benchmark| match benchmark {
            "TPC-C" => "TPROC-C",
            "TPC-H" => "TPROC-H",
            other => other,
        });
        let title = format!("{database} {benchmark}");
        let mut draft = Draft::new(Workload::Transactions, "HammerDB", title.trim());
        draft.version = self.version;
        draft.began = self.began;
        draft.target.kind = Some(super::target_kind(&database));
        draft.parameters = self.parameters;
        if tests.iter().any(Test::is_reported) {
            draft.notes.push(
                "NOPM counts new orders, TPM commits and rollbacks of the whole database, as that database counts them."
                    .to_owned(),
            );
        }
        if unfinished > 0 {
            draft.notes.push(format!("{unfinished} tests were begun and have no result."));
        }
        for test in tests {
            for remark in test.remarks() {
                if !draft.notes.contains(&remark) {
                    draft.notes.push(remark);
                }
            }
            draft.steps.push(test.step(draft.steps.len()));
        }
        distinguish(&mut draft);
        Some(draft)
    }
}

/// Labels of tests with as many users as an earlier one get a number.
fn distinguish(draft: &mut Draft) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for step in &mut draft.steps {
        let times = seen.entry(step.label.clone()).or_default();
        *times += 1;
        if *times > 1 {
            step.label = format!("{}_{times}", step.label);
        }
    }
}
