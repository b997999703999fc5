//! The embedded engine: a database's block path in this process.
//!
//! It does what a database does with blocks, for real: rows in blocks scattered over data files, a buffer cache with a
//! replacement policy, redo written before blocks, group commit, database writers, checkpoints, and recovery after a
//! crash. It has no SQL, no rollback and no row locks.

pub mod block;
mod cache;
mod cached;
mod changes;
mod control;
mod database;
mod dbwriter;
mod descriptor;
mod destination;
mod directory;
mod engine;
mod flash;
mod frame;
pub mod info;
mod lane;
mod layout;
mod ledger;
mod recovery;
mod redo;
mod reuse;
mod scan;
pub mod setup;
mod shared;
mod touch;
pub mod verify;
mod wakers;
mod writers;

pub use block::{BlockFault, BlockShape};
pub use cached::CachedBlocks;
pub use database::EngineDirectory;
pub use descriptor::Descriptor;
pub use destination::Destinations;
pub use directory::Directory;
pub use engine::{Engine, EngineOptions};
pub use flash::FlashOptions;
pub use layout::Layout;
pub use ledger::LedgerReach;
pub use recovery::{LostCommits, Recovery};
