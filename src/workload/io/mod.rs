//! Requests to raw storage.

mod operation;

pub use operation::{IoKind, IoOperation};
