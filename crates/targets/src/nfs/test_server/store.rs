//! Files of the server, whatever version they are asked for in.

use std::collections::{BTreeMap, HashMap};

/// The directory of all files.
pub const EXPORT: u64 = 0;

/// All files, and what of them would not survive the server.
#[derive(Debug, Default)]
pub struct Files {
    /// Number and durable contents, by name.
    by_name: BTreeMap<String, u64>,
    contents: HashMap<u64, Vec<u8>>,
    /// What COMMIT has not made durable: file, offset, data.
    uncommitted: Vec<(u64, usize, Vec<u8>)>,
    last: u64,
    /// Its word for its present life.
    pub verifier: u64,
}

impl Files {
    /// A new life: what was not committed is forgotten.
    pub fn forget(&mut self) {
        self.uncommitted.clear();
        self.verifier += 1;
    }

    pub fn find(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).copied()
    }

    /// Has a name lead to a file.
    pub fn name(&mut self, name: &str, file: u64) {
        self.by_name.insert(name.to_owned(), file);
    }

    /// `None` where the name is taken.
    pub fn create(&mut self, name: &str) -> Option<u64> {
        if self.by_name.contains_key(name) {
            return None;
        }
        self.last += 1;
        self.name(name, self.last);
        self.contents.insert(self.last, Vec::new());
        Some(self.last)
    }

    pub fn remove(&mut self, name: &str) -> Option<u64> {
        self.by_name.remove(name)
    }

    /// Durable contents.
    pub fn contents(&self, file: u64) -> Vec<u8> {
        self.contents.get(&file).cloned().unwrap_or_default()
    }

    pub fn size(&self, file: u64) -> u64 {
        let durable = self.contents.get(&file).map_or(0, Vec::len);
        let ends = self.uncommitted.iter().filter(|write| write.0 == file).map(|write| write.1 + write.2.len());
        ends.fold(durable, usize::max) as u64
    }

    /// What a reader sees, and whether the file ends there.
    pub fn read(&self, file: u64, offset: u64, bytes: u32) -> (Vec<u8>, bool) {
        let mut seen = self.contents(file);
        for (_, offset, data) in self.uncommitted.iter().filter(|write| write.0 == file) {
            place(&mut seen, *offset, data);
        }
        let begin = (offset as usize).min(seen.len());
        let end = (begin + bytes as usize).min(seen.len());
        (seen[begin..end].to_vec(), end == seen.len())
    }

    pub fn write(&mut self, file: u64, offset: u64, data: &[u8], is_durable: bool) {
        if is_durable {
            place(self.contents.entry(file).or_default(), offset as usize, data);
        } else {
            self.uncommitted.push((file, offset as usize, data.to_vec()));
        }
    }

    pub fn commit(&mut self, file: u64) {
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.uncommitted).into_iter().partition(|write| write.0 == file);
        self.uncommitted = later;
        for (file, offset, data) in now {
            place(self.contents.entry(file).or_default(), offset, &data);
        }
    }
}

fn place(contents: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if contents.len() < end {
        contents.resize(end, 0);
    }
    contents[offset..end].copy_from_slice(data);
}
