//! From what a production did to a load that does the same: which parameters reproduce which figure, and which cannot be.
//!
//! Everything is computed once, for what production did; a step at a multiple asks for the same work at so many times its rate.
//! `slob` and `io` are the arithmetic, `run` makes steps of it.

mod aspects;
mod io;
mod io_run;
mod marks;
mod net;
mod observed;
mod run;
mod slob;
#[cfg(test)]
mod slob_tests;
mod split;
mod updates;
mod words;

pub use io::{IoLike, io};
pub use io_run::{IoLikePlan, IoRequest, plan_io};
pub use net::{RedoLike, message_bytes, redo};
pub use run::{On, SlobLikePlan, Tried, plan};
pub use slob::{HOT_SET, SlobFacts, SlobLike, slob};
pub use split::split;
pub use words::times_text;
