//! Settings that the kernel shows as files: they are there or not, and nothing is ever made of a name that is not.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

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

fn open(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

/// Makes a control group, which the kernel shows as a directory.
///
/// # Errors
/// The system's error.
pub fn make_control_group(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Removes a control group that has no processes.
///
/// # Errors
/// The system's error.
pub fn remove_control_group(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}
