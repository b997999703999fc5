//! What clouds publish of their machines and volumes, and what a platform made of them should reach.
//!
//! The figures are data: `published/*.toml`, each with the page that it is from and the day on which that was looked up. What was not found
//! stays out. A user's own file of the same form extends and corrects them. From there on all is arithmetic: [`Expectation`] says which
//! limit binds at which load, and how long bursts last.

mod catalogue;
mod combination;
mod entry;
mod expectation;
mod file;
mod limits;
mod marks;
mod names;
mod prices;
mod rule;
#[cfg(test)]
mod seed_tests;
mod sizing;
#[cfg(test)]
mod sizing_tests;
#[cfg(test)]
mod tests;
mod unpublished;
mod volumes;
mod words;

pub use catalogue::Catalogue;
pub use combination::{Asked, Cache, Combination, CombinationError, Redundancy};
pub use entry::{Burst, Credit, Flow, Local, Machine, OnDemandBurst, Rates, Source, Unit, VolumeKind};
pub use expectation::{Expectation, Phase};
pub use file::FileError;
pub use limits::{Limit, Whose};
pub use marks::{flow_like, like};
pub use names::NameError;
pub use prices::Prices;
pub use rule::Rule;
pub use sizing::{Need, Ranking, Sized, rank};
pub use unpublished::Unpublished;
pub use volumes::{VolumeError, Volumes};
pub use words::{allowed_by, length, measured_against, sentences};
