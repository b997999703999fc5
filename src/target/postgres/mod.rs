//! PostgreSQL: SLOB's load through a real database server.
//!
//! The client draws the operations; the server executes them. They are sent one statement each, or in batches that a
//! procedure on the server loops over, timing each operation, so that the client costs next to nothing.

mod connect;
pub mod data;
mod error;
pub mod sql;
#[cfg(test)]
mod sql_tests;
#[cfg(test)]
mod test_server;

pub use connect::{Connected, Connector};
pub use error::PostgresError;
