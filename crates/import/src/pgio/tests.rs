use proptest::prelude::*;

use super::{read, recognises};
use crate::specimens::{damaged, only, source, survives};
use crate::{Began, Draft, ImportError, Notes};

const RUN: &str = "Date: Sat Mar  7 08:09:10 CET 2020\nDatabase connect string: \"postgresql://bob:hush@db7/pgio\".\nShared buffers: 512MB.\n\
Testing 4 schemas with 2 thread(s) accessing 64M (8192 blocks) of each schema.\npg_stat_database stats:\n\
          datname| blks_hit| blks_read|tup_returned|tup_fetched|tup_updated\nBEFORE:  pgio    | 1000 | 5000 |   10 |  20 |     30\n\
AFTER:   pgio    | 4000 | 65000 |   110 |  220 |     30\nDBNAME:  pgio. 4 schemas, 2 threads(each). Run time: 60 seconds. RIOPS >1000< CACHE_HITS/s >50<\n";

fn one(text: &str) -> Result<Draft, ImportError> {
    assert!(recognises(text), "{text}");
    read(&source(text), &mut Notes::default()).map(|mut drafts| drafts.remove(0))
}

#[test]
fn counters_are_what_they_rose_by() {
    let draft = one(RUN).unwrap();
    let step = &draft.steps[0];
    assert_eq!((step.label.as_str(), step.load.sessions, step.window.duration_ns), ("s4_t2", Some(8), 60_000_000_000));
    let counters = &step.counters;
    assert_eq!((counters.physical_reads, counters.buffer_misses), (Some(60_000), Some(60_000)));
    assert_eq!((counters.cache_hits, counters.logical_reads), (Some(3_000), Some(63_000)));
    assert_eq!((draft.target.cache_bytes, draft.target.data_bytes), (Some(512 << 20), Some(256 << 20)));
    assert!(matches!(draft.began, Some(Began::Wall(_))));
    assert!(step.reported.iter().any(|figure| figure.name == "tup_fetched" && figure.value == 200.0));
}

#[test]
fn passwords_are_not_kept() {
    let draft = one(RUN).unwrap();
    assert!(!format!("{draft:?}").contains("hush"));
    assert_eq!(draft.target.address, "db7/pgio");
}

#[test]
fn a_headline_that_its_counters_contradict_is_not_believed() {
    let draft = only("pgio", &RUN.replace("RIOPS >1000<", "RIOPS >4000<"));
    let step = &draft.steps[0];
    assert_eq!(step.counters.physical_reads, Some(60_000));
    assert!(
        step.reported.iter().all(|figure| figure.name != "RIOPS")
            && step.reported.iter().any(|figure| figure.name == "CACHE_HITS/s")
    );
    let doubt = "RIOPS is reported as 4,000 /s, and is not believed: 60,000 blks_read in 1m00s are 1,000/s. The counts are kept.";
    assert!(draft.notes.iter().any(|note| note == doubt), "{:?}", draft.notes);
    assert!(only("pgio", RUN).notes.iter().all(|note| !note.contains("believed")));
}

#[test]
fn counters_that_go_back_are_damaged() {
    let back = one(&RUN.replace("| 65000 |", "| 4999 |")).unwrap_err().to_string();
    assert!(back.contains("blks_read is lower after the run"), "{back}");
    assert!(one(&RUN[..RUN.find("DBNAME").unwrap()]).unwrap_err().to_string().contains("ends before its result"));
}

#[test]
fn a_result_without_counters_has_its_rates_alone() {
    let draft = one(&RUN[RUN.find("DBNAME").unwrap()..]).unwrap();
    assert_eq!((draft.steps[0].counters.physical_reads, draft.steps[0].load.sessions), (None, Some(8)));
    assert_eq!(draft.steps[0].reported[0].value, 1_000.0);
}

#[test]
fn several_runs_are_several() {
    assert_eq!(read(&source(&RUN.repeat(3)), &mut Notes::default()).unwrap().len(), 3);
}

proptest! {
    #[test]
    fn damaged_files_give_runs_or_errors(file in damaged(&[RUN])) {
        survives(file);
    }
}
