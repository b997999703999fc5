//! What the sessions of any SQL server have in common: how they are driven, timed, checked and watched.
//!
//! A server's own folder says how a session is connected and what SQL it sends ([`SqlServers`], [`SqlSession`]), and which of
//! its errors end the load ([`Product`]). Everything else about sending operations is here, once for all servers.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod data;
pub mod database;
mod ending;
mod environment;
mod error;
mod filling;
mod lane;
mod monitor;
pub mod mysql;
pub mod orders;
pub mod postgres;
pub mod private;
mod session;
pub mod statements;
mod target;
mod text;

pub use database::Observers;
pub use environment::Environment;
pub use error::{Meaning, Product, ServerError};
pub use filling::{COLUMNS, FILLING_PLACES, FILLING_STEP, batch_filling_bytes};
pub use lane::{ServerTimes, TimedOperation};
pub use monitor::{Counted, Doing, Member, Monitor, Readings, Reported, Sampled, ServerReader, TAKE_LIMIT};
pub use session::{SessionId, SlobSession, SqlServers, SqlSession, StatementKind, home_schema};
pub use target::{CheckHealth, SlobTables, SqlOptions, SqlTarget, TakeBackground};
pub use text::SqlText;
