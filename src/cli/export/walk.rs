//! Which runs are to be exported. Only directories are looked at: of a hundred thousand runs one is read at a time.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::exit::Failure;
use model::record::store::{INTERVALS_FILE, RUN_FILE, Store};

/// The directory of a run.
pub(super) struct Found {
    pub(super) directory: PathBuf,
    /// What is to be read of it, for progress.
    pub(super) bytes: u64,
}

/// A directory that could not be looked at, and why.
type Unread = (PathBuf, String);

/// The runs that the words mean, in the order of the words and then of their directories; all of the store without words.
pub(super) fn runs(store: &Store, words: &[String]) -> Result<(Vec<Found>, Vec<Unread>), Failure> {
    let (mut directories, mut problems) = (Vec::new(), Vec::new());
    if words.is_empty() {
        walk(store.path(), &mut directories, &mut problems);
    }
    for word in words {
        let path = Path::new(word);
        if path.is_dir() {
            walk(path, &mut directories, &mut problems);
        } else {
            directories.extend(store.find_all(word)?);
        }
    }
    let size = |path: PathBuf| fs::metadata(path).map_or(0, |status| status.len());
    let found = directories.into_iter().map(|directory| {
        let bytes = size(directory.join(RUN_FILE)) + size(directory.join(INTERVALS_FILE));
        Found { directory, bytes }
    });
    Ok((found.collect(), problems))
}

/// Takes `top` if it is a run, else the runs in it and below. Hidden directories and links to directories are passed over.
fn walk(top: &Path, found: &mut Vec<PathBuf>, problems: &mut Vec<Unread>) {
    let mut waiting = vec![top.to_owned()];
    while let Some(folder) = waiting.pop() {
        if folder.join(RUN_FILE).is_file() {
            found.push(folder);
            continue;
        }
        let entries = fs::read_dir(&folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut inside = match entries {
            Ok(entries) => entries,
            Err(error) => {
                // A store that nobody has written to is empty.
                if error.kind() != std::io::ErrorKind::NotFound {
                    problems.push((folder.clone(), format!("cannot list `{}`: {error}", folder.display())));
                }
                continue;
            }
        };
        inside.retain(|entry| {
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir())
        });
        inside.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
        waiting.extend(inside.into_iter().map(|entry| entry.path()));
    }
}
