//! Raw storage as a whole, on real files: where data go, what is counted, what is noticed, and how it ends.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

#[path = "../common/mod.rs"]
mod common;

mod endings;
mod faults;
mod load;
