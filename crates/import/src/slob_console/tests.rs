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
    assert_eq!((&stopped.steps[0].outcome, stopped.steps[0].window.ending), (&Outcome::Unfinished, Ending::Unknown));
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
