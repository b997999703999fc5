//! Files of the kernel that are read again and again.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Resource, Root, limit};

/// Of the files that this process may open, the part that is kept open; the others stay free for connections.
const SHARE: u64 = 8;
/// Room for a file at first.
const ROOM_BYTES: usize = 4096;

/// Keeps files open between readings: of a small file in `/proc`, opening costs more than twice what reading does, and a server
/// with a thousand sessions has a thousand of them. Those for which there is no room are opened each time.
#[derive(Debug)]
pub struct KeptFiles {
    root: Root,
    /// Each with the number of the round in which it was last read.
    files: HashMap<String, (File, u64)>,
    max: usize,
    round: u64,
    text: Vec<u8>,
}

impl KeptFiles {
    /// Keeps none yet.
    pub fn new(root: Root) -> Self {
        let max = usize::try_from(limit(Resource::OpenFiles).unwrap_or(0) / SHARE).unwrap_or(usize::MAX);
        Self { root, files: HashMap::new(), max, round: 0, text: vec![0; ROOM_BYTES] }
    }

    /// Begins a round of reading: what was not read in the last one is closed.
    pub fn begin_round(&mut self) {
        let last = self.round;
        self.files.retain(|_, (_, round)| *round == last);
        self.round += 1;
    }

    /// The whole file as it is now, bytes that are not UTF-8 replaced; `None` when it cannot be read, as when its process has ended. It is kept open if
    /// `keeps` says so of it.
    pub fn text(&mut self, path: &str, keeps: impl FnOnce(&str) -> bool) -> Option<Cow<'_, str>> {
        if let Some((file, round)) = self.files.get_mut(path) {
            *round = self.round;
            if let Some(length) = read(file, &mut self.text) {
                return Some(String::from_utf8_lossy(&self.text[..length]));
            }
            // The process of this number has ended. There may be another one.
            self.files.remove(path);
        }
        let file = File::open(self.root.path(path)).ok()?;
        let length = read(&file, &mut self.text)?;
        let text = String::from_utf8_lossy(&self.text[..length]);
        if self.files.len() < self.max && keeps(&text) {
            self.files.insert(path.to_owned(), (file, self.round));
        }
        Some(text)
    }
}

/// Reads a file from its beginning; gives its length.
fn read(file: &File, into: &mut Vec<u8>) -> Option<usize> {
    let mut length = 0;
    loop {
        length += file.read_at(&mut into[length..], length as u64).ok()?;
        // The kernel gives such a file whole if there is room for all of it.
        if length < into.len() {
            return Some(length);
        }
        into.resize(2 * into.len(), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_read_as_it_is_now_kept_or_not() {
        let place = tempfile::tempdir().unwrap();
        let mut files = KeptFiles::new(Root::at(place.path()));
        for (round, text) in ["7", "long ".repeat(3_000).as_str(), "", "short"].into_iter().enumerate() {
            files.begin_round();
            for name in ["kept", "not"] {
                fs::write(place.path().join(name), text).unwrap();
                assert_eq!(files.text(&format!("/{name}"), |_| name == "kept"), Some(text.into()));
            }
            assert_eq!(files.files.len(), 1, "{round}");
        }
        files.begin_round();
        files.begin_round();
        assert!(files.files.is_empty(), "what nobody reads any more is closed");
        assert_eq!(files.text("/missing", |_| true), None);
    }

    #[test]
    fn the_end_of_a_process_is_noticed_though_its_file_is_kept() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let path = format!("/proc/{}/stat", child.id());
        let mut files = KeptFiles::new(Root::default());
        files.begin_round();
        assert!(files.text(&path, |text| text.contains("sleep")).is_some());
        assert_eq!(files.files.len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
        files.begin_round();
        assert_eq!(files.text(&path, |_| true), None);
        assert!(files.files.is_empty());
    }

    #[test]
    fn no_more_files_are_kept_than_there_is_room_for() {
        let place = tempfile::tempdir().unwrap();
        let mut files = KeptFiles { max: 2, ..KeptFiles::new(Root::at(place.path())) };
        for name in ["a", "b", "c"] {
            fs::write(place.path().join(name), name).unwrap();
            assert_eq!(files.text(&format!("/{name}"), |_| true), Some(name.into()));
        }
        assert_eq!(files.files.len(), 2);
    }
}
