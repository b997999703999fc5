//! What load does, as pure generators from a seed.
//!
//! Nothing here reads a clock, a file or the configuration: the same seed and shape give the same operations, at the
//! same due instants, on every target. Each choice that a generator makes draws from its own random stream, so that
//! switching one choice on leaves all the others as they were.
//!
//! - [`SlobSession`]: the operations of one session of the SLOB method.
//! - [`io::IoStream`]: the requests of one stream to raw storage.
//! - [`host::HostShape`]: slices of work for processors.
//! - [`net::NetStream`]: what a session of a load on a network sends and is answered.
//! - [`orders::OrdersShape`]: the transactions of order entry.
//! - [`SlobBlend`], [`io::IoBlend`]: several kinds of work, each at a rate of its own.
//! - [`Arrivals`]: when operations are due, for an open loop.
//! - [`Permutation`]: where logical neighbours lie physically.
//! - [`Rng`]: the random numbers behind all of them, and the filler of incompressible rows.
//! - [`MinimalStandard`]: random numbers that a SQL server draws as well.

mod arrivals;
pub mod host;
pub mod io;
mod minimal;
mod mix;
pub mod net;
mod operation;
pub mod orders;
mod permutation;
mod rng;
mod shape;
mod slob;

pub use arrivals::{Arrival, Arrivals};
pub use minimal::MinimalStandard;
pub use operation::{OperationKind, RedoStress, SlobOperation};
pub use permutation::Permutation;
pub use rng::{Rng, mix64};
pub use shape::{Drawn, Operation, Shape, Stream};
pub use slob::{HotSpot, SlobBlend, SlobBlendSession, SlobPart, SlobSession, SlobShape, Think};
