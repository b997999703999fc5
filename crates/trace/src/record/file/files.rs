//! The files of a recording, each a device of its trace.

use std::collections::HashMap;
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
    /// Where the next append goes, if one was seen.
    end_bytes: Option<u64>,
    is_folded: bool,
}

/// The files that were found so far.
#[derive(Debug, Default)]
pub(super) struct Files {
    has_names: bool,
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
        if let Some(place) = self.known.get(&key) {
            return *place;
        }
        let next = u16::try_from(self.all.len()).unwrap_or(u16::MAX);
        let is_folded = self.known.len() >= MAX_FILES;
        if is_folded && let Some(place) = self.folded[key.role as usize] {
            return place;
        }
        let path = (self.has_names && !is_folded).then(|| path.display().to_string());
        self.all.push(OneFile { role: key.role, path, device: None, bytes, end_bytes: None, is_folded });
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
        self.all.get(usize::from(place))?.end_bytes
    }

    pub(super) fn set_end(&mut self, place: u16, end_bytes: Option<u64>) {
        if let Some(file) = self.all.get_mut(usize::from(place)).filter(|file| !file.is_folded) {
            file.end_bytes = end_bytes;
        }
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
