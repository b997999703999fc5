//! Emptying the operating system's page cache of a server's data.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use super::error::PrivateError;
use super::files::file_error;
use model::units::Bytes;

/// What was let go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Number of files.
    pub files: u64,
    /// Their length.
    pub bytes: Bytes,
}

/// Writes all files below `directory` back to their device and asks the kernel to forget its copies of them. Files that
/// vanish meanwhile are passed over: a server that runs may drop them. Pages that somebody has mapped stay.
///
/// # Errors
/// The system's error.
pub fn drop_page_cache(directory: &Path) -> Result<Dropped, PrivateError> {
    let mut dropped = Dropped::default();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        let Some(entries) = present(fs::read_dir(&folder), "list", &folder)? else { continue };
        for entry in entries {
            let entry = entry.map_err(file_error("list", &folder))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(file_error("look at", &path))?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file()
                && let Some(file) = present(File::open(&path), "open", &path)?
            {
                // The kernel keeps pages that are not on the device yet.
                file.sync_data().map_err(file_error("sync", &path))?;
                fadvise(&file, 0, None, Advice::DontNeed)
                    .map_err(|error| file_error("drop the page cache of", &path)(error.into()))?;
                dropped.files += 1;
                dropped.bytes.0 += file.metadata().map_err(file_error("look at", &path))?.len();
            }
        }
    }
    Ok(dropped)
}

fn present<T>(result: io::Result<T>, action: &'static str, path: &Path) -> Result<Option<T>, PrivateError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some).map_err(file_error(action, path)),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use test_support::scratch::{is_in_memory, scratch};
    use test_support::skip::skip;

    fn cached_bytes(path: &Path) -> Option<u64> {
        let reported = Command::new("fincore").args(["--bytes", "--noheadings", "--output", "RES"]).arg(path).output();
        String::from_utf8(reported.ok()?.stdout).ok()?.trim().parse().ok()
    }

    #[test]
    fn files_of_all_levels_leave_the_page_cache() {
        let directory = scratch();
        let inner = directory.path().join("base/16384");
        fs::create_dir_all(&inner).unwrap();
        let (small, large) = (directory.path().join("base/small"), inner.join("large"));
        fs::write(&small, vec![1; 8192]).unwrap();
        fs::write(&large, vec![2; 1 << 20]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", inner.join("link")).unwrap();
        let before = cached_bytes(&large);
        let dropped = drop_page_cache(directory.path()).unwrap();
        assert_eq!(dropped, Dropped { files: 2, bytes: Bytes((1 << 20) + 8192) });
        if is_in_memory(directory.path()) {
            return skip("on tmpfs the page cache is the file");
        }
        if before == Some(1 << 20) {
            assert_eq!((cached_bytes(&large), cached_bytes(&small)), (Some(0), Some(0)));
        }
    }
}
