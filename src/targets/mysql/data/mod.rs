//! Data sets on MySQL and MariaDB: making, proving, verifying and removing them. Everything here is synchronous and has
//! connections of its own.

mod catalog;
pub(in crate::targets) mod info;
mod load;
mod orders;
pub(in crate::targets) mod proof;
mod session;
mod setup;
#[cfg(test)]
pub(in crate::targets::mysql) mod tests;
mod verify;

pub(in crate::targets) use session::Access;
