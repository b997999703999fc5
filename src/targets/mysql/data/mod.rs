//! Data sets on MySQL and MariaDB: making, proving, verifying and removing them. Everything here is synchronous and has
//! connections of its own.

mod catalog;
pub mod drop;
mod info;
mod load;
mod plan;
mod proof;
mod session;
pub mod setup;
#[cfg(test)]
pub(in crate::targets::mysql) mod tests;
mod verify;

pub use catalog::{find, load, page_bytes};
pub use info::{Info, TableInfo, info};
pub use proof::{Proof, prove};
pub use session::Access;
pub use verify::{VerifyReport, verify};
