//! A loop device of a test's own: a disk that nobody else uses.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skip::skip;

/// A loop device over a file, taken down again when it is dropped.
pub struct LoopDevice(PathBuf);

impl LoopDevice {
    /// None, with the reason reported, where that is not allowed.
    pub fn over(file: &Path) -> Option<Self> {
        let made = Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(file).output();
        match made {
            Ok(made) if made.status.success() => {
                Some(Self(PathBuf::from(String::from_utf8(made.stdout).unwrap().trim())))
            }
            Ok(made) => {
                skip(format_args!("no loop device: {}", String::from_utf8_lossy(&made.stderr).trim()));
                None
            }
            Err(error) => {
                skip(format_args!("losetup cannot be started: {error}"));
                None
            }
        }
    }

    /// Path of its block device.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Its name, as the kernel has it.
    pub fn name(&self) -> String {
        self.0.file_name().unwrap().to_string_lossy().into_owned()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}
