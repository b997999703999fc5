//! Requests to raw storage.

mod blend;
mod distribution;
mod operation;
mod places;
mod shape;
mod zipf;

pub use blend::{IoBlend, IoBlendStream, IoPart};
pub use distribution::{Access, Distribution, MAX_ZIPF_THETA};
pub use operation::{IoKind, IoOperation};
pub use shape::{IoClass, IoShape, IoStream, RequestSize};
