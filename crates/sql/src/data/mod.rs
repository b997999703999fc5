//! Data sets on SQL servers: what they are, making them, proving them fit, reading all of them, removing them.
//!
//! A server's own folder says what of that is SQL of its dialect, by traits of its connector: [`catalog::SqlData`] and
//! [`catalog::Keeps`], which every kind of data needs, [`setup::SetUp`] and [`verify::Verify`].

pub mod access;
pub mod catalog;
pub mod content;
pub mod descriptor;
pub(crate) mod drop;
pub(crate) mod found;
pub mod pieces;
pub(crate) mod plan;
pub mod proof;
pub mod rows;
pub mod setup;
pub mod shape;
pub mod streams;
#[cfg(test)]
pub(crate) mod tests;
pub mod verify;
pub mod work;
