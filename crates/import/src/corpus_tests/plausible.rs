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

#[test]
fn what_can_be_is_not_doubted_and_what_cannot_is_listed_here() {
    let Some(corpus) = folder() else { return };
    let mut found = Vec::new();
    for folder in [corpus.clone(), corpus.join("../cases"), PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")] {
        files(&folder, &mut found);
    }
    found.sort();
    let mut doubted: Vec<(String, String)> = Vec::new();
    for path in found.iter().filter(|path| path.extension().is_none_or(|ending| ending != "rs")) {
        let Ok((_, drafts, _)) = Source::open(path).and_then(|source| read(&source)) else { continue };
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
