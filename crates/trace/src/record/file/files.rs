//! The files of a recording, each a device of its trace.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::Path;

use model::trace::TraceDevice;

/// What a file is to its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileRole {
    /// Tables and indexes.
    Data,
    /// The log that makes commits durable.
    Log,
    /// Anything else, or unknown.
    Other,
}

impl FileRole {
    /// Every role, in the order of their numbers.
    const ALL: [Self; 3] = [Self::Data, Self::Log, Self::Other];

    fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Log => "log",
            Self::Other => "other",
        }
    }
}

/// Files that are a device each: what comes later is one device a role.
const MAX_FILES: usize = if cfg!(test) { 50 } else { 4_096 };

/// By what a file is the same one: a log that is renamed to be used again is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileKey {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) role: FileRole,
}

#[derive(Debug)]
struct OneFile {
    role: FileRole,
    /// Its path, if names are wanted.
    path: Option<String>,
    /// Its device of the trace; absent before its first request.
    device: Option<u16>,
    /// Size as far as it is known; absent for all that is folded.
    bytes: Option<u64>,
    /// Where the next append goes, and when that was known, if one was seen.
    end: Option<(u64, u64)>,
    /// The hash of the path that it was last seen with.
    path_hash: u64,
    /// Whether it has another path than when the end was known.
    is_renamed: bool,
    /// When the look began that showed a wrong end: what was found before says nothing of it.
    cut_ns: u64,
    /// When the last look began.
    looked_ns: u64,
    is_folded: bool,
}

/// The files that were found so far.
#[derive(Debug, Default)]
pub(super) struct Files {
    has_names: bool,
    hashes: RandomState,
    known: HashMap<FileKey, u16>,
    all: Vec<OneFile>,
    folded: [Option<u16>; FileRole::ALL.len()],
    /// Devices of each role.
    devices: [u64; FileRole::ALL.len()],
}

impl Files {
    pub(super) fn new(has_names: bool) -> Self {
        Self { has_names, ..Self::default() }
    }

    /// The place of a file in the list.
    pub(super) fn place(&mut self, key: FileKey, path: &Path, bytes: Option<u64>) -> u16 {
        let path_hash = self.hashes.hash_one(path);
        if let Some(place) = self.known.get(&key).copied() {
            if let Some(file) = self.all.get_mut(usize::from(place)).filter(|file| file.path_hash != path_hash) {
                file.path_hash = path_hash;
                file.is_renamed = true;
            }
            return place;
        }
        let next = u16::try_from(self.all.len()).unwrap_or(u16::MAX);
        let is_folded = self.known.len() >= MAX_FILES;
        if is_folded && let Some(place) = self.folded[key.role as usize] {
            return place;
        }
        let path = (self.has_names && !is_folded).then(|| path.display().to_string());
        let role = key.role;
        let (device, end, is_renamed, cut_ns, looked_ns) = (None, None, false, 0, 0);
        self.all.push(OneFile { role, path, device, bytes, end, path_hash, is_renamed, cut_ns, looked_ns, is_folded });
        if is_folded {
            self.folded[key.role as usize] = Some(next);
        } else {
            self.known.insert(key, next);
        }
        next
    }

    /// Notes a request, and returns the device of the trace: it is added with the first one. True if several files are this device.
    pub(super) fn request(&mut self, place: u16, end_bytes: u64, into: &mut Vec<TraceDevice>) -> Option<(u16, bool)> {
        let file = self.all.get_mut(usize::from(place))?;
        let device = match file.device {
            Some(device) => device,
            None => {
                let device = u16::try_from(into.len()).ok()?;
                let number = &mut self.devices[file.role as usize];
                *number += 1;
                let name = match &file.path {
                    Some(path) => path.clone(),
                    None if file.is_folded => format!("{}-rest", file.role.name()),
                    None => format!("{}-{number}", file.role.name()),
                };
                into.push(TraceDevice { name, bytes: file.bytes.filter(|_| !file.is_folded) });
                file.device = Some(device);
                device
            }
        };
        // It may have grown since it was looked at.
        if let Some(bytes) = into.get_mut(usize::from(device)).and_then(|device| device.bytes.as_mut()) {
            *bytes = end_bytes.max(*bytes);
        }
        Some((device, file.is_folded))
    }

    /// Where the next append to a file goes, if that is known.
    pub(super) fn end_bytes(&self, place: u16) -> Option<u64> {
        Some(self.all.get(usize::from(place))?.end?.0)
    }

    /// An append that ended at a moment moved it.
    pub(super) fn set_end(&mut self, place: u16, at_ns: u64, end_bytes: Option<u64>) {
        if let Some(file) = self.all.get_mut(usize::from(place)).filter(|file| !file.is_folded) {
            file.end = end_bytes.map(|bytes| (bytes, at_ns));
        }
    }

    /// Forgets the end if a new look shows that it is not right: the file was cut, or its inode is another file. Looks by which the end was
    /// found are left out: what other descriptors appended before them is part of the size.
    pub(super) fn seen(&mut self, place: u16, from_ns: u64, bytes: u64) {
        let Some(file) = self.all.get_mut(usize::from(place)).filter(|file| file.looked_ns < from_ns) else { return };
        file.looked_ns = from_ns;
        if let Some((end_bytes, _)) = file.end.filter(|(_, at_ns)| *at_ns < from_ns)
            && (bytes < end_bytes || file.is_renamed)
        {
            file.end = None;
            file.is_renamed = false;
            file.cut_ns = from_ns;
        }
    }

    /// When the end was forgotten; 0 if it is known or never was.
    pub(super) fn cut_ns(&self, place: u16) -> u64 {
        self.all.get(usize::from(place)).filter(|file| file.end.is_none()).map_or(0, |file| file.cut_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_their_role_or_by_their_path() {
        for (has_names, names) in [(false, ["data-1", "log-1", "data-2"]), (true, ["/d/1", "/d/2", "/d/3"])] {
            let (mut files, mut devices) = (Files::new(has_names), Vec::new());
            for (inode, role) in [(1, FileRole::Data), (2, FileRole::Log), (3, FileRole::Data), (1, FileRole::Data)] {
                let path = format!("/d/{inode}");
                let place = files.place(FileKey { device: 1, inode, role }, Path::new(&path), Some(10));
                assert_eq!(files.request(place, 5 * inode, &mut devices), Some((inode as u16 - 1, false)));
            }
            assert_eq!(devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(), names);
            assert_eq!(devices[2].bytes, Some(15), "it grew");
        }
    }

    #[test]
    fn the_end_of_a_file_that_was_cut_or_is_another_is_forgotten() {
        let mut files = Files::new(false);
        let key = FileKey { device: 1, inode: 1, role: FileRole::Other };
        let place = files.place(key, Path::new("/d/a"), Some(100));
        files.set_end(place, 50, Some(100));
        files.seen(place, 40, 0);
        files.seen(place, 60, 100);
        assert_eq!(files.end_bytes(place), Some(100), "a look before the append, and one that agrees");
        assert_eq!(files.cut_ns(place), 0);
        files.seen(place, 61, 99);
        assert_eq!((files.end_bytes(place), files.cut_ns(place)), (None, 61));
        files.set_end(place, 70, Some(10));
        assert_eq!(files.place(key, Path::new("/d/b"), Some(500)), place);
        files.seen(place, 80, 500);
        assert_eq!(files.end_bytes(place), None);
    }

    #[test]
    fn what_is_beyond_the_limit_is_one_device_a_role() {
        let (mut files, mut devices) = (Files::new(true), Vec::new());
        let mut folded = 0;
        for inode in 0..1_000 {
            let role = FileRole::ALL[inode as usize % 3];
            let place = files.place(FileKey { device: 1, inode, role }, Path::new("/d/x"), Some(10));
            folded += u64::from(files.request(place, 1, &mut devices).unwrap().1);
        }
        assert_eq!((devices.len(), folded), (MAX_FILES + 3, 1_000 - MAX_FILES as u64));
        let mut rest: Vec<&str> = devices[MAX_FILES..].iter().map(|device| device.name.as_str()).collect();
        rest.sort_unstable();
        assert_eq!(rest, ["data-rest", "log-rest", "other-rest"]);
        assert_eq!(devices[MAX_FILES].bytes, None);
    }
}
