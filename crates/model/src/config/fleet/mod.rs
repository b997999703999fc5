//! The place of a process in a fleet's experiment: which part it is, of how many, and when all begin.

mod place;
mod problem;
mod start;

pub use place::{PartChoice, PartNumber, find_place};
pub use problem::FleetProblem;
pub use start::StartTime;

/// Most parts of an experiment.
pub const MAX_PARTS: u32 = 65_536;
