//! Where a file on an NFS server is, and over how many connections it is reached: from its address, or from what Oracle's
//! Direct NFS client reads.

mod address;
mod oranfstab;

pub use address::{
    DEFAULT_CONNECTIONS, DEFAULT_OUTSTANDING, DEFAULT_PORT, DEFAULT_TIMEOUT_S, MAX_CONNECTIONS, MAX_OUTSTANDING,
    MAX_PATHS, NfsAddress, NfsVersion,
};
pub use oranfstab::{Oranfstab, OranfstabNote, OranfstabProblem};
