//! What the transactions of users spend their time on, and so what stops them: processors, commits, locks or reads.

use super::Served;
use super::processors::Processors;
use model::record::facts::Term;
use model::record::{Run, SessionState, Step};
use model::units::{Nanos, percent};

/// Fewer looks than these say little.
const ENOUGH_LOOKS: u64 = 10;
/// What sessions at work wait for is what stops them from this share of what was seen of them.
const MOST: f64 = 0.3;
/// A machine that was idle for less than the rest had no processor time left.
const EXHAUSTED: f64 = 0.95;
/// Whoever used this share of the time that was used, used it up.
const MAINLY: f64 = 0.5;

/// What stops transactions. Shares are 0 to 1.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stops {
    /// The machine had no processor time left.
    Processors {
        /// Share of the time that processors were busy.
        busy: f64,
        /// Who used most of what was used.
        by: UsedBy,
    },
    /// Sessions wait for their commits, until the log is durable.
    Commits {
        /// Share of what was seen of sessions at work.
        share: f64,
        /// The mean time in which the log was made durable, where the server times it.
        #[serde(rename = "flush_ns")]
        flush: Option<Nanos>,
        /// What the server calls its log.
        log: String,
    },
    /// Sessions wait for rows that other transactions have changed.
    Locks {
        /// Share of what was seen of sessions at work.
        share: f64,
        /// The mean wait, where the server times it.
        #[serde(rename = "wait_ns")]
        wait: Option<Nanos>,
    },
    /// Sessions wait for blocks from storage.
    Reads {
        /// Share of what was seen of sessions at work.
        share: f64,
    },
}

/// Who used the processors of the load generator's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsedBy {
    /// The server.
    Server,
    /// The load generator.
    Generator,
    /// Neither of them alone, but both together.
    Both,
    /// Other programs on the machine.
    Others,
}

impl Stops {
    /// Of one step; `None` where nothing stands out, or too little was seen. Processors come first: whoever waits for one waits longer
    /// for all else.
    pub(crate) fn of(run: &Run, step: &Step) -> Option<Self> {
        let processors = Self::processors(run, step);
        match processors {
            // Who stands behind others' programs may still wait for something of his own.
            Some(Self::Processors { by: UsedBy::Others, .. }) => Self::waits(run, step).or(processors),
            Some(_) => processors,
            None => Self::waits(run, step),
        }
    }

    /// Only if it is processors.
    pub(crate) fn processors(run: &Run, step: &Step) -> Option<Self> {
        let Processors { busy, server, generator, .. } = Processors::of(run, step)?;
        let busy = busy.filter(|busy| *busy >= EXHAUSTED)?;
        // A server on another machine uses none of this one.
        let (server, generator) = (server.unwrap_or(0.0), generator?);
        let by = if server >= MAINLY {
            UsedBy::Server
        } else if generator >= MAINLY {
            UsedBy::Generator
        } else if server + generator >= MAINLY {
            UsedBy::Both
        } else {
            UsedBy::Others
        };
        Some(Self::Processors { busy, by })
    }

    fn waits(run: &Run, step: &Step) -> Option<Self> {
        let served = Served::of(run, step);
        if served.looks() < ENOUGH_LOOKS {
            return None;
        }
        let doing = served.doing();
        let all: f64 = doing.values().sum();
        let share = |states: &[SessionState]| {
            let found = doing.iter().filter(|(what, _)| states.contains(&served.state(what)));
            found.map(|(_, sessions)| sessions).sum::<f64>() / all
        };
        let ns = |ns: f64| Nanos(ns as u64);
        let waits = [
            Self::Commits {
                share: share(&[SessionState::LogWrite, SessionState::Log]),
                flush: served.mean_log_sync_ns().map(ns),
                log: run.target.term(Term::Log).to_owned(),
            },
            Self::Locks { share: share(&[SessionState::Lock]), wait: served.mean_lock_wait_ns().map(ns) },
            Self::Reads { share: share(&[SessionState::Read, SessionState::ReadElsewhere]) },
        ];
        let most = waits.into_iter().max_by(|one, other| one.share().total_cmp(&other.share()))?;
        (all > 0.0 && most.share() >= MOST).then_some(most)
    }

    /// Of sessions at work, or of processors.
    fn share(&self) -> f64 {
        match self {
            Self::Processors { busy: share, .. }
            | Self::Commits { share, .. }
            | Self::Locks { share, .. }
            | Self::Reads { share } => *share,
        }
    }

    /// `commits: log flushes at 1.90 ms each`.
    pub(crate) fn words(&self) -> String {
        let percent = percent(self.share());
        match self {
            Self::Processors { by, .. } => {
                let whose = match by {
                    UsedBy::Server => "the server's processors",
                    UsedBy::Generator => "the load generator's processors",
                    UsedBy::Both => "the processors that server and load generator share",
                    UsedBy::Others => "processors that other programs on this machine used",
                };
                format!("{whose}, {percent} % busy")
            }
            Self::Commits { flush: Some(flush), log, .. } => format!("commits: {log} flushes at {flush} each"),
            Self::Commits { .. } => format!("commits: {percent} % of what was seen of sessions at work"),
            Self::Locks { wait: Some(wait), .. } => format!("locks: waits for rows of {wait} each"),
            Self::Locks { .. } => format!("locks of rows: {percent} % of what was seen of sessions at work"),
            Self::Reads { .. } => format!("reads from storage: {percent} % of what was seen of sessions at work"),
        }
    }

    /// The same as a sentence about a step.
    pub(crate) fn sentence(&self, step: &str) -> String {
        let share = percent(self.share());
        match self {
            Self::Processors { .. } => format!("Transactions of {step} were stopped by {}.", self.words()),
            Self::Commits { flush, log, .. } => {
                let flush =
                    flush.map_or_else(String::new, |flush| format!(", which was made durable in {flush} on average"));
                format!(
                    "Users of {step} waited most for commits, {share} % of what was seen of sessions at work: for the {log}{flush}."
                )
            }
            Self::Locks { wait, .. } => {
                let wait = wait.map_or_else(String::new, |wait| format!(", {wait} each on average"));
                format!(
                    "Users of {step} waited most for rows that others had changed, {share} % of what was seen of sessions at work{wait}."
                )
            }
            Self::Reads { .. } => format!(
                "Users of {step} waited most for blocks from storage, {share} % of what was seen of sessions at work."
            ),
        }
    }

    /// What to do about it.
    pub(crate) fn advice(&self) -> String {
        match self {
            Self::Processors { by: UsedBy::Server, .. } => {
                "For more transactions give the server more or faster processors.".to_owned()
            }
            Self::Processors { by: UsedBy::Others, .. } => "End what else is working on this machine.".to_owned(),
            Self::Processors { .. } => {
                "Generate the load on another machine than the server's, or on one with more processors.".to_owned()
            }
            Self::Commits { log, .. } => format!("Put the {log} on storage with faster durable writes."),
            Self::Locks { .. } => {
                "Fewer users meet in larger data (`--scale`); look for a session that holds locks for long.".to_owned()
            }
            Self::Reads { .. } => "Give the server a larger cache, or its data faster storage.".to_owned(),
        }
    }
}
