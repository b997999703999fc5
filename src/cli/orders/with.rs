//! A database of order entry that something is asked of.

use crate::cli::exit::Failure;
use crate::cli::sheets;
use targets::orders::OrdersDatabase;

/// Does something with a database and leaves it however that ends.
pub(super) fn with<T>(
    database: Box<dyn OrdersDatabase>,
    work: impl FnOnce(&mut dyn OrdersDatabase) -> Result<T, Failure>,
) -> Result<T, Failure> {
    sheets::then_leave(database, |database| work(database), OrdersDatabase::close)
}
