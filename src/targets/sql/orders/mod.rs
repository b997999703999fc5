//! Order entry on SQL servers: what its data are, making them, holding them against what was to be made, removing them; and in
//! [`load`] the transactions on them.
//!
//! A server's own room says what of that is SQL of its dialect, by [`TableWords`](ddl::TableWords) and [`OrdersDialect`].

pub(in crate::targets) mod audit;
pub(in crate::targets) mod ddl;
pub(in crate::targets) mod descriptor;
mod dialect;
pub(in crate::targets) mod load;
pub(in crate::targets) mod procedures;
pub(in crate::targets) mod setup;
pub(in crate::targets) mod source;
#[cfg(test)]
mod tests;
pub(in crate::targets) mod validation;

pub(in crate::targets) use dialect::{Job, Lacking, OrdersDialect, PartKind, Parts, Sizing, Step, drops, parts_of};
