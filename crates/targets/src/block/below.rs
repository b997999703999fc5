//! Whether paths that are to be compared lie on devices of their own.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::BlockError;
use measure::environment;

/// What `BlockDevice::layer` says of a part of a disk.
const PARTITION: &str = "partition";

/// What lies below a path.
struct Below<'a> {
    path: &'a Path,
    /// The device, or the file system where that has none which the kernel shows: two paths with the same are one storage.
    place: String,
    /// All devices down to the disks, partitions left out.
    devices: Vec<String>,
}

/// The devices, by kernel name, that lie below at least two of the paths.
///
/// # Errors
/// [`BlockError::OneDevice`] where two paths are on one device, or on one file system.
pub fn devices_shared(paths: &[PathBuf]) -> Result<Vec<String>, BlockError> {
    let all: Vec<Below<'_>> = paths.iter().map(|path| Below::of(path)).collect();
    let mut shared: Vec<String> = Vec::new();
    for (at, second) in all.iter().enumerate() {
        for first in &all[..at] {
            if first.place == second.place {
                let (first, second, place) = (first.path.to_owned(), second.path.to_owned(), second.place.clone());
                return Err(BlockError::OneDevice { first, second, place });
            }
            let both = second.devices.iter().filter(|device| first.devices.contains(device));
            for device in both {
                if !shared.contains(device) {
                    shared.push(device.clone());
                }
            }
        }
    }
    Ok(shared)
}

impl<'a> Below<'a> {
    fn of(path: &'a Path) -> Self {
        let found = environment::capture(Some(path)).devices;
        let whole = found.into_iter().filter(|device| device.layer.as_deref() != Some(PARTITION));
        let devices: Vec<String> = whole.map(|device| device.name).collect();
        let place = match devices.first() {
            Some(device) => format!("`{device}`"),
            None => file_system(path),
        };
        Self { path, place, devices }
    }
}

/// A file system, or device, by its number: of a path that is not there yet, that of the nearest directory above it.
fn file_system(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = absolute.ancestors().find_map(|ancestor| ancestor.metadata().ok());
    let number = known.map_or(0, |found| if found.file_type().is_block_device() { found.rdev() } else { found.dev() });
    format!("file system {}:{}", libc::major(number), libc::minor(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_in_one_directory_are_on_one_device_though_one_is_not_there_yet() {
        for directory in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")] {
            let Ok(directory) = directory else { continue };
            let paths = ["one", "two"].map(|name| directory.path().join(name));
            std::fs::write(&paths[0], "1").unwrap();
            let error = devices_shared(&paths).unwrap_err();
            assert!(matches!(error, BlockError::OneDevice { .. }), "{error}");
            assert!(devices_shared(&paths[..1]).unwrap().is_empty());
        }
    }

    #[test]
    fn memory_and_the_disk_have_nothing_in_common() {
        let paths = [PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from("/proc")];
        assert_eq!(devices_shared(&paths).unwrap(), [""; 0]);
    }
}
