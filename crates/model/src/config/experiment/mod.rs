//! Experiments: an evening of measurements in one file (`docs/experiment.md` shows its keys).
//!
//! What is read here is what the user wrote, typed and checked. What follows from it, step by step, is a plan.

mod error;
mod form;
mod read;
#[cfg(test)]
mod tests;

pub use error::ExperimentError;
pub use form::{Around, Entry, Experiment, MAX_REPEATS, is_hidden};
