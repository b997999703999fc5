//! SLOB's data on an Oracle database, and order entry's: making, proving, reading and removing them.

mod catalog;
mod info;
mod load;
pub(super) mod orders;
mod proof;
mod session;
mod setup;
mod verify;

pub(crate) use catalog::{name_of, schema_of};
pub(crate) use info::info;
pub(crate) use proof::prove;
pub(crate) use session::Access;
