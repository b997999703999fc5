//! Plimsoll says how much database load a platform carries before it sinks (its *load line*), and why it stops there.
//!
//! # The flow is an hourglass
//!
//! ```text
//! what was asked    what will be done    doing it          what was seen    kept            meaning      reported
//! flags, slob.conf ─▶ config ─▶ plan ─▶ load ─▶ target ─▶ measure ──────▶ record::Run ─▶ analysis ─▶ report
//!                                                     foreign results ─▶ import ───────┘
//! ```
//!
//! [`record::Run`] is the neck: live runs produce it, and nothing to the right of it knows how its numbers were made.
//! Each room below may use only its neighbours; `tests/architecture.rs` holds that map against the code.
//!
//! # Words
//!
//! A *run* is one recorded experiment; it has *steps* (one load level each); a step has *intervals* (one second).
//! A *target* is where load lands; a *session* is one private line to it; an *operation* is one unit that a workload
//! asks for; a *block touch* is one block that it visits. A *logical read* finds a block through the buffer cache, hit
//! or miss; a *physical read* is a read request sent to storage. A *finding* is something that the analysis has to say.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod cli;
pub mod databases;
pub mod fleet;
pub mod merge;
pub mod observed;
pub mod plan;

pub use model::{config, platforms, record, units, workload};
#[cfg(feature = "oracle")]
pub use oracle;
pub use {analysis, import, load, measure, report, serve, sql, targets};
