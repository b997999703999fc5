//! Where the parts of a fleet meet: one experiment on many hosts begins each step at one instant, and ends together.
//!
//! Part 0 has the meeting point, a TCP port behind the same handshake as that of `plimsoll net serve`: nobody is heard before they
//! have shown the token. All parts come there, part 0 too, over loopback, so that there is one way only:
//!
//! ```text
//! part                                      meeting point
//!   hello: version, number, configuration ─▶
//!                                         ◀─ welcome, or refused
//!   ask, 64 times                         ─▶
//!                                         ◀─ time                    the offset of the two clocks
//!   ready for a step                      ─▶
//!                                         ◀─ begin at an instant     when all parts are ready
//!   judged: what came of the step         ─▶                         where a search decides by it
//!                                         ◀─ verdict                 the worst of all parts
//!   leaves                                ─▶
//! ```
//!
//! It is a barrier, not a cluster: nobody is started, nobody comes back, and no part depends on what another measures but for the
//! verdict. Clocks are compared again before each step and after the last one, because monotonic clocks of two hosts drift by
//! some 10 µs a second when nothing disciplines them.

#[cfg(test)]
mod any_words;
mod book;
mod error;
mod meeting;
mod member;
mod message;
mod offset;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use error::FleetError;
pub use meeting::{Meeting, listening_addresses};
pub use member::{Joining, Member, Started};
pub use message::{Introduction, Judgement};
pub use offset::{Exchange, Offset};

/// What happens to the others when a part ends early, or never comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnPartEnd {
    /// All end, and keep what they measured.
    #[default]
    Stop,
    /// The others go on without it.
    Continue,
}

/// What a meeting point asks of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// How many there are.
    pub parts: u32,
    /// Digest of all that decides the load.
    pub configuration: String,
    /// Name of the host of part 0.
    pub host: String,
    /// How long is waited for parts to come.
    pub patience: Duration,
    /// What happens when one ends early.
    pub on_part_end: OnPartEnd,
}
