//! Order entry on SQL servers: what its data are, making them, holding them against what was to be made, removing them; and in
//! [`load`] the transactions on them.
//!
//! A server's own folder says what of that is SQL of its dialect, by [`SqlText`](crate::SqlText) and [`OrdersDialect`].

pub(crate) mod audit;
pub mod ddl;
pub mod descriptor;
mod dialect;
pub mod load;
pub mod procedures;
pub(crate) mod setup;
pub mod source;
#[cfg(test)]
mod tests;
pub(crate) mod validation;

pub use dialect::{BuiltIndex, Job, KeyStatements, Lacking, OrdersDialect, PartKind, Parts, Sizing, Step, parts_of};
