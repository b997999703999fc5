//! What is doubted of results that people published, and of the specimens here: nothing that can be.

use std::path::{Path, PathBuf};

use super::folder;
use crate::{Source, read};

pub(super) fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Specimens that hold what cannot be: the end of the path, the rule, and how many values break it.
const VIOLATIONS: [(&str, &str, usize); 4] = [
    // Planted: a counter of 64 bits that overflowed, and a part that is longer than the whole.
    ("cases/iostat_wrapped_sample.txt", "counter-wrapped", 1),
    ("specimens/iostat_wrapped_sample.txt", "counter-wrapped", 1),
    ("cases/fio_clat_beyond_lat.txt", "part-within-whole", 1),
    ("specimens/fio_clat_beyond_lat.txt", "part-within-whole", 1),
];

/// Every file of the corpus, and every specimen here.
fn all(corpus: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [corpus.to_owned(), corpus.join("../cases"), PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")] {
        files(&folder, &mut found);
    }
    found.retain(|path| path.extension().is_none_or(|ending| ending != "rs"));
    found.sort();
    found
}

/// Files with lines that hold a value in no form that their reader knows, and how many: what scripts say between results, lists of
/// files, a generator of data, another program's sums.
const UNKNOWN: [(&str, usize); 8] = [
    ("mdcallag_336_ser7_ext4_nj2.txt", 20),
    ("rafmoshe_341_phase2.log", 2),
    ("rafmoshe_341_randrw_rate_capped.log", 2),
    ("oci_sprint15_charbench.log", 7),
    ("oci_sprint17_charbench.log", 7),
    ("oci_sprint18_charbench.log", 7),
    ("mdcallag_pg_pointquery_dop40.txt", 2),
    ("pkb_long_report_interval.txt", 1),
];

#[test]
fn lines_that_no_reader_knows_are_those_of_others() {
    let Some(corpus) = folder() else { return };
    let mut unknown: Vec<(String, usize)> = Vec::new();
    for path in all(&corpus) {
        let Ok((_, _, notes)) = Source::open(&path).and_then(|source| read(&source)) else { continue };
        let count = |note: &model::record::NotUnderstood| match note.what.split_once(" more lines that hold values") {
            Some((more, _)) => more.parse().unwrap(),
            None => usize::from(note.what.contains("is in no known form")),
        };
        let sum: usize = notes.into_list().iter().map(count).sum();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        unknown.extend((sum > 0).then_some((name, sum)));
    }
    let expected: Vec<(String, usize)> = UNKNOWN.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    assert_eq!(unknown, expected);
}

#[test]
fn what_can_be_is_not_doubted_and_what_cannot_is_listed_here() {
    let Some(corpus) = folder() else { return };
    let mut doubted: Vec<(String, String)> = Vec::new();
    for path in all(&corpus) {
        let Ok((_, drafts, _)) = Source::open(&path).and_then(|source| read(&source)) else { continue };
        let name = path.display().to_string();
        let notes = drafts.into_iter().flat_map(|draft| draft.notes);
        doubted.extend(notes.filter(|note| note.contains(" cannot be")).map(|note| (name.clone(), note)));
    }
    for (file, rule, count) in VIOLATIONS {
        let of = |(path, note): &(String, String)| path.ends_with(file) && note.contains(&format!("(rule `{rule}`)"));
        let before = doubted.len();
        doubted.retain(|one| !of(one));
        assert_eq!(before - doubted.len(), count, "{file}: {rule}");
    }
    assert!(doubted.is_empty(), "{doubted:#?}");
}
