//! The server of `plimsoll net` before clients that do what they should, and before those that do not; and its client before servers that lie.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

#[path = "../common/mod.rs"]
mod common;

mod any_bytes;
mod hostile;
mod liar;
mod lied_to;
mod peer;
mod served;
