//! What `runit.sh` of SLOB prints: its parameters and how long it ran. What load it made stands in the database's own report.

use model::record::{Ending, Outcome, TargetKind, Workload};
use std::collections::BTreeMap;

use super::console::plain;
use super::draft::{self, reported_figure};
use super::numbers::whole_number;
use super::{Began, Draft, ImportError, Notes, Source};

const S: u64 = 1_000_000_000;
/// Parameters of `slob.conf` that are kept, from the console and from the file itself. Whatever else stands there, a password above all, is not kept.
pub(super) const PARAMETERS: [&str; 25] = [
    "UPDATE_PCT",
    "SCAN_PCT",
    "RUN_TIME",
    "WORK_LOOP",
    "SCALE",
    "SCAN_TABLE_SZ",
    "WORK_UNIT",
    "REDO_STRESS",
    "LOAD_PARALLEL_DEGREE",
    "THREADS_PER_SCHEMA",
    "DATABASE_STATISTICS_TYPE",
    "DO_HOTSPOT",
    "HOTSPOT_MB",
    "HOTSPOT_OFFSET_MB",
    "HOTSPOT_FREQUENCY",
    "HOT_SCHEMA_FREQUENCY",
    "THINK_TM_FREQUENCY",
    "THINK_TM_MIN",
    "THINK_TM_MAX",
    "ADMIN_SQLNET_SERVICE",
    "SQLNET_SERVICE_BASE",
    "SQLNET_SERVICE_MAX",
    "NO_OS_PERF_DATA",
    "OBFUSCATE_COLUMNS",
    "EXTERNAL_SCRIPT",
];

/// Whether messages of SLOB stand in it with what only `runit.sh` says.
pub(super) fn recognises(head: &str) -> bool {
    let (mut messages, mut ours) = (false, false);
    for line in head.lines() {
        let line = plain(line);
        if let Some((_, _, text)) = message(line) {
            messages = true;
            ours |= text.contains("SLOB") || text.contains("slob.conf");
        }
        if messages && ours {
            return true;
        }
    }
    false
}

/// `NOTIFY  : 2021.11.07-13:58:15 : text`: its level, its time and its text.
fn message(line: &str) -> Option<(&str, jiff::civil::DateTime, &str)> {
    let (level, rest) = line.split_once(':')?;
    let level = level.trim();
    if !matches!(level, "NOTIFY" | "WARNING" | "FATAL") {
        return None;
    }
    let (time, text) = rest.split_once(" :")?;
    let time = jiff::civil::DateTime::strptime("%Y.%m.%d-%H:%M:%S", time.trim()).ok()?;
    Some((level, time, text.trim()))
}

/// What was printed of one run.
#[derive(Debug, Default)]
struct Printed {
    first: Option<jiff::civil::DateTime>,
    last: Option<jiff::civil::DateTime>,
    schemas: Option<u32>,
    threads: Option<u32>,
    parameters: BTreeMap<String, String>,
    seconds: Option<u64>,
    snaps: Vec<(&'static str, u64)>,
    complete: bool,
    fatal: bool,
}

/// The runs in it.
pub(super) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut runs = vec![Printed::default()];
    for (number, line) in source.lines() {
        let line = plain(line);
        let begins = line.contains("runit.sh") && arguments(line).is_some() || line.ends_with("Sourcing in slob.conf");
        if begins && runs.last().is_some_and(|run| run.complete || run.fatal) {
            runs.push(Printed::default());
        }
        if let Some(run) = runs.last_mut() {
            run.line(notes, number, line);
        }
    }
    let runs: Vec<Printed> = runs.into_iter().filter(|run| run.seconds.is_some()).collect();
    if runs.is_empty() {
        let what = "it holds no result: SLOB does not say how long it ran, so it did not finish";
        return Err(ImportError::no_result(source, what));
    }
    Ok(runs.into_iter().map(Printed::draft).collect())
}

/// Schemas and threads that `runit.sh 8` or `runit.sh -s 8 -t 4` asks for.
fn arguments(line: &str) -> Option<(u32, Option<u32>)> {
    let (before, rest) = line.split_once("runit.sh")?;
    // A message that names the program runs nothing.
    if before.contains("NOTIFY") || before.contains("WARNING") || before.contains("FATAL") {
        return None;
    }
    let words: Vec<&str> = rest.split_whitespace().take(8).collect();
    let number = |word: &str| word.parse().ok();
    match words[..] {
        ["-s", schemas, "-t", threads, ..] | ["-t", threads, "-s", schemas, ..] => {
            Some((number(schemas)?, Some(number(threads)?)))
        }
        [schemas, ..] => Some((number(schemas)?, None)),
        [] => None,
    }
}

impl Printed {
    fn line(&mut self, notes: &mut Notes, number: u64, line: &str) {
        if let Some((level, time, text)) = message(line) {
            self.first = self.first.or(Some(time));
            self.last = Some(time);
            self.fatal |= level == "FATAL";
            self.message(notes, number, text);
        } else if let Some((schemas, threads)) = arguments(line) {
            (self.schemas, self.threads) = (Some(schemas), threads);
        } else if let Some((name, value)) = line.split_once("==").or_else(|| line.split_once(':'))
            && PARAMETERS.contains(&name.trim())
        {
            let value = value.trim().trim_matches('"');
            // A service may be written as a whole connect string.
            if !value.contains('@') && !value.is_empty() {
                self.parameters.insert(name.trim().to_owned(), value.to_owned());
            }
        } else {
            notes.unknown(number, line);
        }
    }

    fn message(&mut self, notes: &mut Notes, number: u64, text: &str) {
        let words: Vec<&str> = text.split_whitespace().take(12).collect();
        let before = |unit: &str| {
            let at = words.iter().position(|word| word.starts_with(unit))?;
            words.get(at.checked_sub(1)?)?.parse().ok()
        };
        if let Some(time) = text.strip_prefix("Run time ") {
            self.seconds = time.split(' ').next().and_then(whole_number);
            if self.seconds.is_none() {
                notes.not_understood(number, "a run time in seconds was expected");
            }
        } else if let Some((which, id)) = text.split_once("snap ID is") {
            let which = if which.starts_with("After") { "snapshot after" } else { "snapshot before" };
            self.snaps.extend(whole_number(id).map(|id| (which, id)));
        } else if text.contains("accessed by") {
            self.schemas = before("schema").or(self.schemas);
            self.threads = before("thread").or(self.threads);
        } else if let Some(rest) = text.strip_prefix("Connecting ")
            && text.contains("(THREADS_PER_SCHEMA)")
        {
            // `Connecting 4 (THREADS_PER_SCHEMA) session(s) to 8 schema(s) ...`: what it does, whoever asked for it.
            self.threads = rest.split(' ').next().and_then(|threads| threads.parse().ok()).or(self.threads);
            self.schemas = before("schema").or(self.schemas);
        }
        self.complete |= text.starts_with("SLOB test is complete");
    }

    fn draft(self) -> Draft {
        let mut draft = Draft::new(Workload::Slob, "SLOB", "SLOB");
        draft.began = self.first.and_then(Began::wall);
        draft.ended = self.last.and_then(Began::wall).map(Began::timestamp);
        draft.target.kind = Some(TargetKind::Oracle);
        draft.notes.push(
            "SLOB's console reports no figures of load: those stand in the report of the database from the same run."
                .to_owned(),
        );
        // `4 (-t option)` where the command line has the say.
        let parameter =
            self.parameters.get("THREADS_PER_SCHEMA").and_then(|threads| threads.split(' ').next()?.parse().ok());
        let threads = self.threads.or(parameter);
        let mut step = draft::step(0, "", self.seconds.unwrap_or(0).saturating_mul(S));
        step.load.schemas = self.schemas;
        step.load.threads_per_schema = threads;
        step.load.sessions = self.schemas.and_then(|schemas| schemas.checked_mul(threads.unwrap_or(1)));
        if threads.is_none() && self.schemas.is_some() {
            draft
                .notes
                .push("Threads of each schema are not reported; sessions are counted with SLOB's one.".to_owned());
        }
        step.label = match (self.schemas, threads) {
            (Some(schemas), Some(threads)) => format!("s{schemas}_t{threads}"),
            (Some(schemas), None) => format!("s{schemas}"),
            _ => "all".to_owned(),
        };
        let by_loops = self.parameters.get("WORK_LOOP").is_some_and(|loops| loops != "0");
        step.window.ending = match (self.complete, by_loops) {
            (true, false) => Ending::Time,
            (true, true) => Ending::WorkLoop,
            _ => Ending::Unknown,
        };
        if self.fatal {
            step.outcome = Outcome::Failed { error: "SLOB ended with a message of level FATAL".to_owned() };
        } else if !self.complete {
            step.outcome = Outcome::Unfinished;
        }
        step.reported.extend(self.seconds.map(|seconds| reported_figure("client", "Run time", "s", seconds as f64)));
        step.reported.extend(self.snaps.iter().map(|(name, id)| reported_figure("server", *name, "", *id as f64)));
        draft.parameters = self.parameters;
        draft.steps.push(step);
        draft
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{read, recognises};
    use crate::specimens::{damaged, source, survives};
    use crate::{Draft, Notes};
    use model::record::{Ending, Outcome};

    const RUN: &str = "$ sh ./runit.sh -s 6 -t 4\nNOTIFY  : 2024.02.03-10:00:00 : SLOB TEMPDIR is /tmp/x.\n\
NOTIFY  : 2024.02.03-10:00:01 : Sourcing in slob.conf\n\nUPDATE_PCT: 15\nRUN_TIME: 90\nWORK_LOOP: 0\nSCALE: 1G (131072 blocks)\n\
THREADS_PER_SCHEMA: 4\nSYSDBA_PASSWD: \"hush\"\nADMIN_SQLNET_SERVICE: \"sys/hush@x\"\n\
WARNING : 2024.02.03-10:00:03 : connecting with sqlplus system/hush@x\nNOTIFY  : 2024.02.03-10:01:40 : Run time 91 seconds.\n\
NOTIFY  : 2024.02.03-10:01:50 : After awr snap ID is 8\nNOTIFY  : 2024.02.03-10:02:00 : SLOB test is complete.\n";

    fn one(text: &str) -> Draft {
        assert!(recognises(text), "{text}");
        read(&source(text), &mut Notes::default()).unwrap().remove(0)
    }

    #[test]
    fn parameters_and_time_are_kept_and_no_secret_is() {
        let draft = one(RUN);
        let step = &draft.steps[0];
        assert_eq!((step.label.as_str(), step.load.sessions), ("s6_t4", Some(24)));
        assert_eq!((step.window.duration_ns, step.window.ending), (91_000_000_000, Ending::Time));
        assert_eq!(
            (draft.parameters["SCALE"].as_str(), draft.parameters["UPDATE_PCT"].as_str()),
            ("1G (131072 blocks)", "15")
        );
        assert_eq!(draft.began.map(|began| began.timestamp().0.to_string()).as_deref(), Some("2024-02-03T10:00:00Z"));
        let all = format!("{draft:?}");
        assert!(!all.contains("hush") && !all.contains("PASSWD"), "{all}");
    }

    #[test]
    fn threads_come_from_slob_conf_if_the_command_has_none() {
        assert_eq!(one(&RUN.replace("-s 6 -t 4", "6")).steps[0].load.sessions, Some(24));
        let old = RUN.replace("-s 6 -t 4", "6").replace("THREADS_PER_SCHEMA: 4", "THREADS_PER_SCHEMA == 3");
        assert_eq!(one(&old).steps[0].load.sessions, Some(18));
        let draft = one(&RUN.replace("-s 6 -t 4", "6").replace("THREADS_PER_SCHEMA: 4\n", ""));
        assert_eq!((draft.steps[0].load.sessions, draft.steps[0].load.threads_per_schema), (Some(6), None));
        assert!(draft.notes.iter().any(|note| note.contains("Threads of each schema are not reported")));
        assert_eq!(one(&RUN.replace("$ sh ./runit.sh -s 6 -t 4\n", "")).steps[0].load.sessions, None);
    }

    #[test]
    fn schemas_and_threads_come_from_what_slob_says_it_connects() {
        let bare = RUN.replace("$ sh ./runit.sh -s 6 -t 4\n", "").replace("THREADS_PER_SCHEMA: 4\n", "");
        let says = "NOTIFY  : 2024.02.03-10:00:05 : Connecting 3 (THREADS_PER_SCHEMA) session(s) to 5 schema(s) ...\n";
        let console = bare.replace("NOTIFY  : 2024.02.03-10:01:40", &format!("{says}NOTIFY  : 2024.02.03-10:01:40"));
        let step = one(&console).steps.remove(0);
        assert_eq!((step.load.schemas, step.load.threads_per_schema, step.load.sessions), (Some(5), Some(3), Some(15)));
        let option = RUN.replace("-s 6 -t 4", "6").replace("SCHEMA: 4\n", "SCHEMA: 7 (-t option)\n");
        assert_eq!(one(&option).steps[0].load.sessions, Some(42));
    }

    #[test]
    fn a_run_that_did_not_finish_has_no_result() {
        let cut = &RUN[..RUN.find("NOTIFY  : 2024.02.03-10:01:40").unwrap()];
        assert!(read(&source(cut), &mut Notes::default()).unwrap_err().to_string().contains("no result"));
        let stopped = one(&RUN[..RUN.find("NOTIFY  : 2024.02.03-10:02:00").unwrap()]);
        assert_eq!(
            (&stopped.steps[0].outcome, stopped.steps[0].window.ending),
            (&Outcome::Unfinished, Ending::Unknown)
        );
    }

    #[test]
    fn several_runs_are_several_and_other_messages_are_not_of_slob() {
        assert_eq!(read(&source(&RUN.repeat(2)), &mut Notes::default()).unwrap().len(), 2);
        assert!(!recognises("NOTIFY: SLOB will be run later\nRUN_TIME: 3\n"));
    }

    proptest! {
        #[test]
        fn damaged_files_give_runs_or_errors(file in damaged(&[RUN])) {
            survives(file);
        }
    }
}
