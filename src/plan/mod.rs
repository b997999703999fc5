//! What will be done, decided from what was asked and the facts about the target.
//!
//! Nothing here touches a file or prints: asked and facts go in, a plan or the reason against it comes out. Whatever can
//! be found wrong with a run is found here, before anything starts.

pub mod caches;
pub mod calibrate;
pub mod check;
pub mod data_set;
mod error;
pub mod experiment;
mod head;
pub mod host;
pub mod io;
pub mod like;
mod names;
pub mod net;
pub mod net_matrix;
pub mod orders;
#[cfg(test)]
mod orders_tests;
pub mod orion;
pub mod slob;
mod steps;
#[cfg(test)]
mod tests;
pub mod together;

pub use error::PlanError;
pub use head::RunHead;
pub use steps::{again, share_out};
