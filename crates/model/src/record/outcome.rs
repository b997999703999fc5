//! How a run or a step ended.

use serde::{Deserialize, Serialize};

/// How a run or a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It goes on, or its process was killed.
    Unfinished,
    /// All that was asked was done.
    Completed,
    /// The user ended it early; what was measured is kept.
    Interrupted,
    /// An error ended it; what was measured is kept.
    Failed {
        /// The error, as it was shown.
        error: String,
    },
}

impl Outcome {
    /// The worse of two: failed, then unfinished, then ended early.
    pub fn worse(self, other: &Self) -> Self {
        let rank = |outcome: &Self| match outcome {
            Self::Completed => 0,
            Self::Interrupted => 1,
            Self::Unfinished => 2,
            Self::Failed { .. } => 3,
        };
        if rank(other) > rank(&self) { other.clone() } else { self }
    }
}
