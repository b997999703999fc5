//! Where the server writes what it is sent, as a standby database writes redo.

use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Most files that one test writes to. Connections share them beyond.
const MAX_FILES: u32 = 16;
/// Bytes that are filled at once.
const FILL_BYTES: u64 = 1 << 20;

/// Files that exist already from their beginning to their end, as standby redo logs do, so that a durable write changes nothing but
/// blocks. They have no names: however the server ends, nothing is left behind.
#[derive(Debug)]
pub(super) struct Files {
    files: Vec<Log>,
    bytes_each: u64,
}

#[derive(Debug)]
struct Log {
    file: File,
    next: AtomicU64,
}

impl Files {
    /// Makes files for so many connections, of `max_bytes` together. `filled` hears how far that is; an error of its ends it.
    ///
    /// # Errors
    /// When the directory cannot be written to or has no room, and what `filled` says.
    pub(super) fn make<E: From<io::Error>>(
        directory: &Path,
        connections: u32,
        max_bytes: u64,
        mut filled: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Self, E> {
        let count = connections.clamp(1, MAX_FILES);
        let bytes_each = max_bytes / u64::from(count);
        let piece = vec![0x5a; usize::try_from(FILL_BYTES).unwrap_or(0)];
        let mut files = Vec::new();
        for number in 0..count {
            let mut file = nameless(directory, number)?;
            let mut left = bytes_each;
            while left > 0 {
                let bytes = left.min(FILL_BYTES);
                file.write_all(&piece[..bytes as usize])?;
                left -= bytes;
                filled(u64::from(number) * bytes_each + (bytes_each - left))?;
            }
            file.sync_all()?;
            files.push(Log { file: durable(&file)?, next: AtomicU64::new(0) });
        }
        Ok(Self { files, bytes_each })
    }

    /// Longest write that has room.
    pub(super) fn max_write(connections: u32, max_bytes: u64) -> u64 {
        max_bytes / u64::from(connections.clamp(1, MAX_FILES))
    }

    /// Writes what came over connection `number`; when this returns, it is durable. Begins anew at the end of the file.
    ///
    /// # Errors
    /// When it could not be written.
    pub(super) fn write(&self, number: u32, bytes: &[u8]) -> io::Result<()> {
        let log = &self.files[number as usize % self.files.len()];
        let length = bytes.len() as u64;
        let place = |next: u64| if next + length <= self.bytes_each { next } else { 0 };
        let before = log.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| Some(place(next) + length));
        log.file.write_all_at(bytes, before.map_or(0, place))
    }
}

/// Looks whether files can be made in `directory`.
///
/// # Errors
/// What the system says.
pub(super) fn try_directory(directory: &Path) -> io::Result<()> {
    nameless(directory, 0).map(drop)
}

/// A new file that has no name any more.
fn nameless(directory: &Path, number: u32) -> io::Result<File> {
    let path: PathBuf = directory.join(format!("plimsoll-net-{}-{number}.tmp", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    remove_file(&path)?;
    Ok(file)
}

/// The same file, of which every write is durable.
fn durable(file: &File) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().write(true).custom_flags(libc::O_DSYNC).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_no_names_are_filled_and_go_around() {
        let place = tempfile::tempdir().unwrap();
        let mut progress = Vec::new();
        let made = Files::make::<io::Error>(place.path(), 2, 40_000, |done| {
            progress.push(done);
            Ok(())
        });
        let files = made.unwrap();
        assert_eq!(progress, [20_000, 40_000]);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "a file has a name");
        for _ in 0..9 {
            files.write(3, &[7; 8_192]).unwrap();
        }
        let sizes: Vec<u64> = files.files.iter().map(|log| log.file.metadata().unwrap().len()).collect();
        assert_eq!(sizes, [20_000, 20_000]);
        assert_eq!(files.files[0].next.load(Ordering::Relaxed), 0);
        // Two fit, and the ninth is the first of its round.
        assert_eq!(files.files[1].next.load(Ordering::Relaxed), 8_192);
        assert!(Files::max_write(100, 1_600) == 100);
        assert!(try_directory(Path::new("/no/such/place")).is_err());
    }
}
