//! A server whose processes run on this machine.

use std::path::PathBuf;

/// A server whose processes run on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// Its first process, the parent of all others.
    pub postmaster_pid: u32,
    /// Directory of its data, where known.
    pub data_directory: Option<PathBuf>,
}
