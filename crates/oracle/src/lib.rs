//! Oracle: databases that somebody else runs, reached by Oracle's own driver without a client installed.
//!
//! That driver waits for each answer, so each session of the load has a thread. Nobody has run any of this on a real database yet:
//! docs/workloads/oracle.md says what was done instead.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod calibrate;
mod connect;
mod data;
mod doctor;
mod driver;
mod error;
mod meanings;
mod monitor;
mod orders;
mod refusal;
pub mod script;
mod session;
mod snapshots;
pub mod sql;
mod statspack;
mod worker;

pub use calibrate::calibrate_io;
pub use connect::{Connected, Connector};
pub use doctor::{examine, first_contact, first_contact_script};
pub use session::{Oracle, OracleServers, Session};
