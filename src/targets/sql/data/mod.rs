//! Data sets on SQL servers: what they are, making them, proving them fit, reading all of them, removing them.
//!
//! A server's own room says what of that is SQL of its dialect, by traits of its connector: [`catalog::SqlData`] and
//! [`catalog::Keeps`], which every kind of data needs, [`setup::SetUp`] and [`verify::Verify`].

pub(in crate::targets) mod access;
pub(in crate::targets) mod catalog;
pub(in crate::targets) mod content;
pub(in crate::targets) mod descriptor;
pub(in crate::targets) mod drop;
pub(in crate::targets) mod found;
pub(in crate::targets) mod pieces;
pub(in crate::targets) mod plan;
pub(in crate::targets) mod proof;
pub(in crate::targets) mod rows;
pub(in crate::targets) mod setup;
pub(in crate::targets) mod streams;
#[cfg(test)]
pub(in crate::targets) mod tests;
pub(in crate::targets) mod verify;
pub(in crate::targets) mod work;
