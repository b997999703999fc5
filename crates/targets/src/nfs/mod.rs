//! Files on NFS servers, without a mount of the kernel: this program speaks NFS versions 3 and 4.1 itself, as Oracle's Direct NFS does, so
//! that each thread has connections of its own, as many as asked, over several paths.
//!
//! `wire/` is the protocol as pure code. [`NfsMount`] and [`NfsFile`] do everything beside load by calls that block; `queue/` is
//! what load goes through. `docs/nfs.md` says what is sent, counted, and done when paths fail.

mod caller;
mod claim;
mod client;
mod connect;
mod directory;
mod error;
mod file;
mod mount;
mod open_file;
mod queue;
mod resend;
mod unstable;
mod ways;
pub mod wire;

pub use claim::NfsClaim;
pub use directory::NfsDirectory;
pub use error::NfsError;
pub use file::NfsFile;
pub use mount::NfsMount;
pub use open_file::FileIdentity;
pub use queue::NfsQueue;
pub use ways::Limits;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;
