//! What is asked and what was seen, as types: everything that the other crates speak of.

pub mod config;
pub mod platforms;
pub mod record;
pub mod units;
pub mod workload;
