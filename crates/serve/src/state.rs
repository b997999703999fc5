//! How a run stands, in words.

use model::record::{Outcome, Timestamp};

/// A run in which nothing is written for longer than this is taken for dead. A running one writes every second, but between
/// two steps it may prepare the next one for a while.
const LONGEST_SILENCE: jiff::SignedDuration = jiff::SignedDuration::from_secs(60);

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State<'a> {
    /// It is being made.
    InProgress,
    /// It has no end, and nothing was written since then.
    Silent(Option<Timestamp>),
    /// All that was asked was done.
    Completed,
    /// The user ended it early.
    Interrupted,
    /// An error ended it.
    Failed(&'a str),
}

impl<'a> State<'a> {
    /// The state of a run that ended so, or to which something was last written then.
    pub(super) fn of(outcome: &'a Outcome, written_at: Option<Timestamp>, now: Timestamp) -> Self {
        match outcome {
            Outcome::Unfinished if is_recent(written_at, now) => Self::InProgress,
            Outcome::Unfinished => Self::Silent(written_at),
            Outcome::Completed => Self::Completed,
            Outcome::Interrupted => Self::Interrupted,
            Outcome::Failed { error } => Self::Failed(error),
        }
    }

    /// It in a word or two.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::InProgress => "in progress",
            Self::Silent(_) => "probably killed",
            Self::Completed => "completed",
            Self::Interrupted => "interrupted",
            Self::Failed(_) => "failed",
        }
    }

    /// More about it, where there is more.
    pub(super) fn more(&self) -> Option<String> {
        match self {
            Self::Silent(Some(since)) => Some(format!("without an end; last written {}", instant(*since))),
            Self::Silent(None) => Some("without an end".to_owned()),
            Self::Failed(error) => Some((*error).to_owned()),
            Self::InProgress | Self::Completed | Self::Interrupted => None,
        }
    }
}

/// Whether something was written so lately that the run can be alive.
pub(super) fn is_recent(written_at: Option<Timestamp>, now: Timestamp) -> bool {
    // A time stamp of the future comes from a clock that was set back, or from another machine's.
    written_at.is_some_and(|written| now.0.duration_since(written.0).abs() <= LONGEST_SILENCE)
}

/// An instant as the lists of the command line show it.
pub(super) fn instant(Timestamp(instant): Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_run_is_alive_as_long_as_something_is_written() {
        let at = |text: &str| Timestamp(text.parse().unwrap());
        let now = at("2026-11-20T10:30:00Z");
        let state = |written| State::of(&Outcome::Unfinished, written, now);
        assert_eq!(state(Some(at("2026-11-20T10:29:01Z"))).word(), "in progress");
        let silent = state(Some(at("2026-11-20T10:28:59Z")));
        assert_eq!(silent.word(), "probably killed");
        assert!(silent.more().unwrap().ends_with("last written 2026-11-20 10:28:59 UTC"));
        assert_eq!(state(None), State::Silent(None));
        assert_eq!(State::of(&Outcome::Completed, None, now).word(), "completed");
    }
}
