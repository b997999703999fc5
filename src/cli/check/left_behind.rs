//! What a check makes and removes at its end is written down beside the runs, so that the next check, of whatever kind, knows what one
//! that was killed has left.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::made_process;
use crate::cli::say;
use files::{How, Links};
use model::shown::shown;

/// Longer than any that a check writes.
const MAX_BYTES: u64 = 16 << 10;

/// What stays behind if a check is killed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LeftBehind {
    /// The same in words, with what to do about it.
    pub(super) words: String,
    /// The file that was made, which the next check may remove; none where a database has the data.
    pub(super) file: Option<PathBuf>,
    /// The directory that a private server was made in.
    pub(super) directory: Option<PathBuf>,
}

/// The note of a check, which goes when it is dropped. A check that is killed drops nothing.
#[derive(Debug)]
pub(super) struct Note(Option<PathBuf>);

impl Note {
    /// Writes down what this process may leave; nothing where that cannot be kept, which ends no check.
    pub(super) fn write(runs: &Path, left: &LeftBehind) -> Option<Self> {
        let path = runs.join(note_name(std::process::id()));
        let text = serde_json::to_vec(left).ok()?;
        files::make_directories(runs).ok()?;
        let _ = files::remove(&path);
        let mut file = files::make_new(&path, How::default()).ok()?;
        let note = Self(Some(path));
        file.write_all(&text).and_then(|()| file.sync_all()).ok()?;
        Some(note)
    }

    /// Something did stay: the note does as well.
    pub(super) fn stays(mut self) {
        self.0 = None;
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = self.0.as_deref().map(files::remove);
    }
}

fn note_name(process: u32) -> String {
    format!(".{}.left", super::made_name(process))
}

/// Removes what files checks left that were killed, and says what else they left.
pub(super) fn look(runs: &Path) {
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let Some(made) = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(".left")) else { continue };
        let Some(process) = made_process(made).filter(|process| super::made_name(*process) == made) else { continue };
        if Path::new(&format!("/proc/{process}")).exists() {
            continue;
        }
        let path = entry.path();
        // It is acted upon: what another user wrote is his, and stays.
        let Ok(note) = files::open_plain(&path, Links::Ours) else { continue };
        if !read(note).is_some_and(|left| is_still_there(&left, process)) {
            let _ = files::remove(&path);
        }
    }
}

/// None where it is no note.
fn read(note: File) -> Option<LeftBehind> {
    let mut text = Vec::new();
    note.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Removes what may be removed, and says what is left: whether the next check is to say it again.
fn is_still_there(left: &LeftBehind, process: u32) -> bool {
    let LeftBehind { words, file, directory } = left;
    if let Some(file) = file {
        let made = file.parent().map(|directory| super::of_process(directory, process)).unwrap_or_default();
        made.iter().for_each(|path| super::remove_left(path));
        return made.iter().any(|path| path.exists());
    }
    if directory.as_ref().is_some_and(|directory| !directory.exists()) {
        return false;
    }
    say::note(format_args!("a check that was killed {}", shown(words)));
    directory.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// No process has this number: the kernel gives smaller ones only.
    const DEAD: u32 = 4_194_305;

    #[test]
    fn a_file_of_a_killed_check_goes_and_nothing_else_does() {
        let place = tempfile::tempdir().unwrap();
        let (runs, data) = (place.path().join("runs"), place.path().join("data"));
        [&runs, &data].into_iter().for_each(|directory| fs::create_dir(directory).unwrap());
        let file = data.join(super::super::made_name(DEAD));
        let stranger = data.join("accounts.dat");
        let note = runs.join(note_name(DEAD));
        let put = |file: &Path| {
            let left = LeftBehind { words: "left".to_owned(), file: Some(file.to_owned()), directory: None };
            fs::write(&note, serde_json::to_vec(&left).unwrap()).unwrap();
        };
        [&file, &stranger].into_iter().for_each(|path| fs::write(path, "data").unwrap());
        put(&stranger);
        // What a note names is not removed: only what has the name of that check.
        look(&runs);
        assert!(stranger.exists() && !file.exists() && !note.exists());
        fs::write(&note, "{").unwrap();
        look(&runs);
        assert!(!note.exists(), "what is no note says nothing");
        // One that others could have put there under a second name.
        fs::write(&file, "data").unwrap();
        put(&file);
        fs::hard_link(&note, runs.join("second")).unwrap();
        look(&runs);
        assert!(file.exists() && note.exists());
    }

    #[test]
    fn a_private_server_is_named_until_it_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("server");
        let note = place.path().join(note_name(DEAD));
        let left = LeftBehind { words: "left a server".to_owned(), file: None, directory: Some(directory.clone()) };
        fs::write(&note, serde_json::to_vec(&left).unwrap()).unwrap();
        fs::create_dir(&directory).unwrap();
        look(place.path());
        assert!(note.exists() && directory.exists());
        fs::remove_dir(&directory).unwrap();
        look(place.path());
        assert!(!note.exists());
    }

    #[test]
    fn a_note_goes_with_its_check() {
        let place = tempfile::tempdir().unwrap();
        let left = LeftBehind { words: "left".to_owned(), file: None, directory: None };
        let note = Note::write(place.path(), &left).unwrap();
        let path = place.path().join(note_name(std::process::id()));
        assert_eq!(read(files::open_plain(&path, Links::Ours).unwrap()), Some(left));
        look(place.path());
        assert!(path.exists(), "it is still at work");
        drop(note);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
