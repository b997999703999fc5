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

/// What is said of a file.
pub(super) struct Said {
    path: PathBuf,
    /// Which importer reads it.
    pub(super) kind: &'static str,
    /// Of its runs.
    pub(super) versions: Vec<String>,
    /// Notes of its runs.
    notes: Vec<String>,
    /// What was not understood.
    places: Vec<String>,
}

/// Of every file of the corpus and every specimen here, each read once; nothing where the corpus is missing.
pub(super) fn said() -> &'static [Said] {
    static SAID: std::sync::OnceLock<Vec<Said>> = std::sync::OnceLock::new();
    SAID.get_or_init(|| {
        let Some(corpus) = folder() else { return Vec::new() };
        let mut found = Vec::new();
        for folder in [corpus.join("../cases"), PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src"), corpus] {
            files(&folder, &mut found);
        }
        found.retain(|path| path.extension().is_none_or(|ending| ending != "rs"));
        found.sort();
        let of = |path: PathBuf| {
            let (importer, drafts, notes) = Source::open(&path).and_then(|source| read(&source)).ok()?;
            let places = notes.into_list().into_iter().map(|note| note.what).collect();
            // A text may hold results of several programs.
            let of_kind = drafts.iter().filter(|draft| draft.program == drafts[0].program);
            let versions = of_kind.map(|draft| draft.version.clone()).collect();
            let notes = drafts.iter().flat_map(|draft| draft.notes.clone()).collect();
            Some(Said { path, kind: importer.kind, versions, notes, places })
        };
        found.into_iter().filter_map(of).collect()
    })
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
    let count = |what: &String| match what.split_once(" more lines that hold values") {
        Some((more, _)) => more.parse().unwrap(),
        None => usize::from(what.contains("is in no known form")),
    };
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let counted = said().iter().map(|one| (name(&one.path), one.places.iter().map(count).sum()));
    let unknown: Vec<(String, usize)> = counted.filter(|(_, count)| *count > 0).collect();
    let expected: Vec<(String, usize)> = UNKNOWN.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    let words: Vec<&Said> = said().iter().filter(|one| one.places.iter().map(count).sum::<usize>() > 0).collect();
    let words: Vec<_> = words.iter().map(|one| (name(&one.path), &one.places)).collect();
    assert!(unknown == expected || said().is_empty(), "{words:#?}");
}

#[test]
fn what_can_be_is_not_doubted_and_what_cannot_is_listed_here() {
    let of_file = |Said { path, notes, .. }: &'static Said| {
        let doubted = notes.iter().filter(|note| note.contains(" cannot be"));
        doubted.map(|note| (path.display().to_string(), note)).collect::<Vec<_>>()
    };
    let mut doubted: Vec<(String, &String)> = said().iter().flat_map(of_file).collect();
    for (file, rule, count) in VIOLATIONS.iter().filter(|_| !said().is_empty()) {
        let of = |(path, note): &(String, &String)| path.ends_with(file) && note.contains(&format!("(rule `{rule}`)"));
        let before = doubted.len();
        doubted.retain(|one| !of(one));
        assert_eq!(before - doubted.len(), *count, "{file}: {rule}");
    }
    assert!(doubted.is_empty(), "{doubted:#?}");
}
