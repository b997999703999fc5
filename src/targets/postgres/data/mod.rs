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
pub mod drop;
pub mod info;
pub mod proof;
mod session;
pub mod setup;
pub mod shape;
mod streams;
#[cfg(test)]
mod tests;
pub mod verify;

pub use catalog::{Found, Stage, block_bytes, find, load};
pub use descriptor::DataSet;

pub use proof::{Proof, prove};
pub use session::Access;
pub use shape::Shape;
