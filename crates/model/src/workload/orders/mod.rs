//! Order entry: customers who register, browse and order, and staff who process orders and ask for figures.
//!
//! Tables, numbers of rows, kinds of transaction and their weights are those of Swingbench's Order Entry (SOE) schema,
//! version 2, as its documentation and its results describe them; statements and code are our own.
//!
//! - [`OrdersShape`]: which transactions each user does, and how long a user thinks.
//! - [`Sizes`]: how many rows each table has at a scale.
//! - [`tables`]: their columns, keys and indexes.
//! - [`rows`]: what set-up puts into them.
//! - [`expected`]: what their values come to.
//! - [`names`]: what people are called.

pub mod expected;
mod mix;
pub mod names;
mod reconnect;
pub mod rows;
mod shape;
mod sizes;
pub mod tables;
mod transaction;
mod words;

pub use mix::{Mix, MixError, Preset};
pub use reconnect::{Reconnect, ReconnectError};
pub use shape::{OrdersSession, OrdersShape, PauseBounds, Pauses};
pub use sizes::{CATEGORIES, FULL_STOCK_SCALE, MAX_SCALE, MIN_SCALE, PRODUCTS, SALES_REPS, Sizes, WAREHOUSES};
pub use tables::Table;
pub use transaction::{OrderTransaction, TransactionKind};

crate::text::as_text!(Mix, Pauses, Reconnect);
