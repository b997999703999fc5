//! What a part and the meeting point say to each other.

use serde::{Deserialize, Serialize};

use targets::network::wire::Version;

/// Longest name of a step, host or reason that is kept of what came.
pub(super) const MAX_NAME_CHARS: usize = 200;

/// What came of a step at one part, from the best on. The meeting point makes the worst of all parts the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The limit was kept.
    Passed,
    /// The load was not steady enough to say.
    Unsteady,
    /// The load generator was the limit.
    GeneratorBound,
    /// The limit was broken.
    Failed,
    /// Nothing can be said of the step.
    Unjudged,
}

/// Who a part is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Introduction {
    /// Protocol and program.
    pub(super) version: Version,
    /// Its number, from 0.
    pub number: u32,
    /// How many parts it thinks there are.
    pub parts: u32,
    /// Digest of all that decides the load.
    pub configuration: String,
    /// Its host's name.
    pub host: String,
}

/// What a part says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromPart {
    /// Said first. Answered by [`FromMeeting::Welcome`] or [`FromMeeting::Refused`].
    Hello(Introduction),
    /// Asks for the time. Answered at once by [`FromMeeting::Time`] with the same number.
    Ask(u32),
    /// All its sessions can begin step number `step`. Answered by [`FromMeeting::Begin`] when all parts can.
    Ready { step: u32, label: String },
    /// What came of a step. Answered by [`FromMeeting::Verdict`] when all parts have said it.
    Judged { step: u32, judgement: Judgement },
    /// It is there still. Whoever says nothing for 10 s is taken for gone.
    Alive,
    /// It has done all that was asked, or why it ends before that.
    Leaves { early: Option<String> },
}

/// What the meeting point says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromMeeting {
    /// The part belongs here.
    Welcome { host: String },
    /// The part does not belong here.
    Refused { why: String },
    /// The time at part 0: on its monotonic clock, and since 1970.
    Time { asked: u32, monotonic_ns: u64, utc_ns: u64 },
    /// Load begins at this reading of part 0's monotonic clock.
    Begin { step: u32, monotonic_ns: u64 },
    /// What came of a step over all parts.
    Verdict { step: u32, judgement: Judgement },
    /// A part has gone, and the rest goes on.
    Gone { number: u32, why: String },
    /// The load is to end.
    Stop { why: String },
}

/// What came, no longer than it may be, and without control characters: it is shown and kept.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(MAX_NAME_CHARS).collect()
}
