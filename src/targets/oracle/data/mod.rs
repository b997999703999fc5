//! SLOB's data on an Oracle database, and order entry's: making, proving, reading and removing them.

mod catalog;
mod info;
mod load;
pub(super) mod orders;
mod proof;
mod session;
mod setup;
mod verify;

pub(in crate::targets) use catalog::schema_of;
pub(in crate::targets) use info::info;
pub(in crate::targets) use proof::prove;
pub(in crate::targets) use session::Access;
