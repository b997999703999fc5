//! Settings that the kernel shows as files: they are there or not, and nothing is ever made of a name that is not.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Says whether a setting may be changed. Changes nothing.
///
/// # Errors
/// The system's error.
pub fn judge(path: &Path) -> io::Result<()> {
    open(path).map(drop)
}

/// Changes a setting.
///
/// # Errors
/// The system's error.
pub fn set(path: &Path, value: &str) -> io::Result<()> {
    open(path)?.write_all(value.as_bytes())
}

/// Empties a list, such as that of the processes that are traced.
///
/// # Errors
/// The system's error.
pub fn clear(path: &Path) -> io::Result<()> {
    File::options().write(true).truncate(true).open(path).map(drop)
}

fn open(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

/// Opens a stream of the kernel, such as its trace, for reading. Reading it never waits for what is not there yet.
///
/// # Errors
/// The system's error.
pub fn open_stream(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)
}

/// Makes what the kernel shows as a directory: a control group, an instance of its tracing.
///
/// # Errors
/// The system's error.
pub fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Removes what the kernel shows as a directory: a control group that has no processes, an instance of its tracing.
///
/// # Errors
/// The system's error.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}
