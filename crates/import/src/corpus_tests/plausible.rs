//! What is doubted of results that people published: nothing that can be.

use std::path::{Path, PathBuf};

use super::folder;
use crate::{Source, read};

pub(super) fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn what_can_be_is_not_doubted() {
    let Some(folder) = folder() else { return };
    let mut found = Vec::new();
    files(&folder, &mut found);
    found.sort();
    let mut doubted = Vec::new();
    for path in found {
        let Ok((_, drafts, _)) = Source::open(&path).and_then(|source| read(&source)) else { continue };
        let of = |note: &&String| {
            note.contains(" reported as ") || note.contains(" reported to have ") || note.contains("cannot be.")
        };
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        doubted.extend(drafts.iter().flat_map(|draft| &draft.notes).filter(of).map(|note| format!("{name}: {note}")));
    }
    assert!(doubted.is_empty(), "{doubted:#?}");
}
