//! The SQL and PL/SQL that is sent to Oracle, as text, and how operations are packed for it. Nothing here talks to a server.
//!
//! A schema of SLOB's is a table of one row a block, with SLOB's own columns: `custid`, and nineteen columns of filling. Our own
//! layout has all tables in the schema of one Oracle user; SLOB's has a user for each. Versions from 12.1 on understand all of
//! it, no privilege of a DBA is needed, and no hidden parameter is set. Values are bound, each placeholder stands once in a text,
//! and placeholders are named in the order in which they are bound. What is no column has a name: a query of several rows is asked
//! as a view (`Connected::query`), in which long expressions could be taken for each other.

mod batch;
mod catalog;
mod grants;
mod names;
mod operations;
mod proof;
mod setup;
mod slob;

pub use batch::{Kinds, MAX_BATCH, pack, unpack};
pub(crate) use catalog::TABLES;
pub use catalog::{
    AT_WORK, BUFFER_CACHE, CONTAINER, DATABASE, DESCRIBED, IS_CLUSTER, Kind, LOCK_HOLDER, LOCK_TABLE, ORDERS,
    OWN_TABLESPACES, PLACE, PRIVILEGES, PRODUCT, QUOTAS, SESSION, SLOB, only_reads,
};
pub use grants::{Grant, Need, PUBLIC_PACKAGES, grants};
pub use names::{Commits, Layout, Method, Reads, Sql, column_bytes, dictionary_name, printable, quoted, slob_owner};
pub use operations::Statement;
pub use proof::{
    Address, COLUMNS_OF, CONTINUED_ROWS, EXECUTED_PLANS, INDEXES_OF, PLAN, PlanLine, SHAPE_OF, TRIGGERS_OF, explain,
    plan_fault,
};
pub use setup::{Fill, READY_PLACE, WAIT_FOR_TABLES};
pub use slob::{SLOB_BLOCK_BYTES, SLOB_OWNERS, slob_schemas};
