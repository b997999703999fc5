//! A SLOB data set in PostgreSQL: making it, proving how it lies, reading all of it, removing it.
//!
//! Everything lies in one schema of the database, which is called the namespace here to tell it from SLOB's schemas, and
//! can be made by an ordinary role. Two tables beside the data say what they are:
//!
//! - `plimsoll_data` has one row, the descriptor, and the state: `loading`, `ready` or `dropping`.
//! - `plimsoll_load` says which rows are there while data are being loaded. Each piece of rows is committed together with
//!   its mark, so after any interruption the same command goes on where it was, and no row comes twice.
//!
//! The functions here are synchronous and drive connections of their own: they must not be called in a tokio runtime.

mod catalog;
mod descriptor;
pub(crate) mod info;
mod orders;
pub(crate) mod proof;
mod session;
mod setup;
pub mod shape;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use session::Access;
