//! Is an acknowledged commit still there after the power failed?
//!
//! ```text
//! load ──commits──▶ target                      machine whose power is cut
//!   │ each acknowledgement, before the next commit of its session
//!   ▼
//! witness ──▶ notes                             another machine
//!
//! verify: target and notes ──▶ judge ──▶ verdict
//! ```
//!
//! - `block` is what a commit is in a file or on a device, `directory` and `device` are the targets of ours. Servers are in `sql`; what all
//!   offer is [`targets::durable`].
//! - `notes` is what a witness writes and `verify` reads; `witness` and `link` are the two ends of the connection between them.
//! - `judge` holds what is found against what was noted, slot by slot. `verdict` says what that proves, and is strict: *kept* is said only
//!   where the notes are whole, the power seems to have been cut under load, and enough was acknowledged just before. `layers` takes the
//!   answers of several cuts together.
//!
//! The order of a run is fixed, so that a failure leaves nothing half-made: the witness is reached and has proved that it knows the token;
//! then everything is made on the target, durably; then the witness is told of the run and writes that down; then load begins.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod block;
mod blocks;
pub mod device;
pub mod directory;
pub mod judge;
mod kept;
pub mod layers;
pub mod link;
pub mod load;
pub mod notes;
pub mod opening;
pub mod verdict;
pub mod witness;

use targets::network::wire::short as brief;
