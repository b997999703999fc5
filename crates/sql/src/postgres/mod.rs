//! PostgreSQL: SLOB's load through a real database server.
//!
//! The client draws the operations; the server executes them. They are sent one statement each, or in batches that a
//! procedure on the server loops over, timing each operation, so that the client costs next to nothing.

pub(super) mod cluster;
mod connect;
#[cfg(test)]
mod connect_tests;
mod data;
mod database;
mod ending;
mod error;
mod executing;
mod executor;
mod failure;
mod local;
mod login;
#[cfg(test)]
mod login_tests;
mod meanings;
mod monitor;
mod orders;
mod password_file;
mod session;
pub mod sql;
#[cfg(test)]
mod sql_tests;
mod stream;
#[cfg(any(test, feature = "test-servers"))]
pub mod test_server;
mod text;
mod tls;
#[cfg(test)]
mod tls_tests;

pub use connect::{CancelToken, Connected, Connector};
pub use local::LocalServer;
pub use monitor::{Monitor, MonitorRequest};
pub use orders::PostgresOrders;
pub use session::{Postgres, PostgresServers};
