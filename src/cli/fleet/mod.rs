//! A process as a part of a fleet's experiment: its place, the seed that all parts have, and the start that they have agreed on.
//!
//! [`Fleet`] is what was asked, [`Joined`] what it means for a plan. A recording asks the latter when each step begins.

mod arguments;
mod company;
mod experiment;
mod joined;
mod start;

pub(super) use arguments::{Fleet, FleetArgs, PartArgs};
pub(super) use company::Company;
pub(super) use experiment::Experiment;
pub(super) use joined::{Joined, StepStart};
