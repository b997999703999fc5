//! Requests to raw storage.

mod distribution;
mod operation;
mod places;
mod shape;
mod zipf;

pub use distribution::{Access, Distribution, MAX_ZIPF_THETA};
pub use operation::{IoKind, IoOperation};
pub use shape::{IoClass, IoShape, IoStream, RequestSize};
