//! What databases send over a network: bulk data, redo, blocks, rows and round trips.

mod operation;
mod shape;
mod sizes;

pub use operation::{NetKind, NetOperation};
pub use shape::{MAX_FLOW_THREADS, NetClass, NetShape, NetStream, SessionConnection};
pub use sizes::{Sizes, WeightedSize};
