//! MySQL and MariaDB as a database under SLOB's method. They speak one dialect with two accents; docs/mysql.md says what a user
//! sees of it.

mod connect;
mod data;
mod database;
mod error;
mod local;
mod login;
pub mod monitor;
mod orders;
pub mod server;
mod session;
mod sql;
#[cfg(any(test, feature = "test-servers"))]
pub mod test_server;
#[cfg(test)]
mod tests;
mod text;

pub use connect::{Connected, Connector, Version};
pub use local::LocalServer;
pub use orders::MysqlOrders;
pub use session::{Mysql, MysqlServers};
pub use sql::{Sql, quoted};
