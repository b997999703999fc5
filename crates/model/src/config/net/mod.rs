//! What the user asks of a network.
//!
//! ```
//! use plimsoll_model::config::net::{DEFAULT_PORT, NetServer};
//!
//! assert_eq!("db2".parse::<NetServer>()?.to_string(), format!("db2:{DEFAULT_PORT}"));
//! assert_eq!("self".parse::<NetServer>()?, NetServer::Own);
//! # Ok::<(), plimsoll_model::config::ConfigError>(())
//! ```

mod options;
pub mod oratcptest;
mod pattern;
mod problem;
mod server;
mod sizes;

pub use options::{MAX_CONNECTIONS, NetOptions, Outstanding};
pub use pattern::{FlowDirection, NetPattern};
pub use problem::NetProblem;
pub use server::{DEFAULT_PORT, NetServer, NetServers};
pub use sizes::{MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES};

crate::text::as_text!(FlowDirection, NetPattern, crate::workload::net::Sizes);
