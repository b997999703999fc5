//! MySQL and MariaDB as a database under SLOB's method. They speak one dialect with two accents; docs/mysql.md says what a user
//! sees of it.

mod connect;
mod error;
mod login;
mod session;
mod sql;

pub use connect::{Connected, Connector, Version};
pub use error::MysqlError;
pub use session::{Mysql, MysqlServers};
pub use sql::{Sql, quoted};
