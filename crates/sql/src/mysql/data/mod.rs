//! Data sets on MySQL and MariaDB: making, proving, verifying and removing them. Everything here is synchronous and has
//! connections of its own.

mod catalog;
pub(crate) mod info;
mod load;
mod orders;
pub(crate) mod proof;
mod session;
mod setup;
#[cfg(test)]
pub(in crate::mysql) mod tests;
mod verify;

pub(crate) use session::Access;
