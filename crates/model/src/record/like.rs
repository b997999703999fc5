//! A load that is made like a production's: what a database did each second, what of it was asked for, and by which means.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Parameters, Step};

/// How much of a production a step is like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct LikeLevel {
    /// How many times what production did is asked for.
    pub times: f64,
    /// Which moment of production it is, where the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moment: Option<String>,
}

/// What a database does that a load can be made like, each per second of its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkFigure {
    /// Blocks found through the buffer cache, hit or miss.
    LogicalReads,
    /// Read requests sent to storage.
    Reads,
    /// Of these, those of more than one block.
    LargeReads,
    /// Bytes that they read.
    ReadBytes,
    /// Write requests for data blocks.
    Writes,
    /// Bytes that they wrote.
    WriteBytes,
    /// Commits.
    Commits,
    /// Bytes of redo that sessions made.
    RedoBytes,
    /// Writes of the log.
    RedoWrites,
    /// Sessions that were active on average: a number, and no rate.
    ActiveSessions,
    /// Bytes between the database and its clients, both ways.
    ClientBytes,
}

/// What is known of the work of one window. What is not reported is absent.
pub type Work = BTreeMap<WorkFigure, f64>;

impl WorkFigure {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 11] = [
        Self::LogicalReads,
        Self::Reads,
        Self::LargeReads,
        Self::ReadBytes,
        Self::Writes,
        Self::WriteBytes,
        Self::Commits,
        Self::RedoBytes,
        Self::RedoWrites,
        Self::ActiveSessions,
        Self::ClientBytes,
    ];

    /// What it is called, with the unit that tables have it in.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogicalReads => "logical reads/s",
            Self::Reads => "reads/s",
            Self::LargeReads => "multi-block reads/s",
            Self::ReadBytes => "read MB/s",
            Self::Writes => "writes/s",
            Self::WriteBytes => "write MB/s",
            Self::Commits => "commits/s",
            Self::RedoBytes => "redo kB/s",
            Self::RedoWrites => "redo writes/s",
            Self::ActiveSessions => "active sessions",
            Self::ClientBytes => "client MB/s",
        }
    }

    /// Of how many of its own unit one of that of tables is made: 10^6 bytes are one MB.
    pub fn scale(self) -> f64 {
        match self {
            Self::ReadBytes | Self::WriteBytes | Self::ClientBytes => 1e6,
            Self::RedoBytes => 1e3,
            _ => 1.0,
        }
    }

    /// Whether it is a number of things that happened, of which few say little.
    pub fn is_counted(self) -> bool {
        matches!(
            self,
            Self::LogicalReads | Self::Reads | Self::LargeReads | Self::Writes | Self::Commits | Self::RedoWrites
        )
    }
}

/// What a run's load was made like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Like {
    /// The database.
    pub database: String,
    /// Ids of the runs that report on it.
    pub runs: Vec<String>,
    /// Which moment of it was asked for: `peak`, `p95`, `mean`, an hour, or `day` for each hour of a day.
    pub at: String,
    /// These moments: one, or one an hour.
    pub moments: Vec<LikeMoment>,
    /// What of them is reproduced, by what, and what is not.
    pub aspects: Vec<Aspect>,
}

/// A moment of production and what was asked to be like it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct LikeMoment {
    /// Its name among the others, such as `peak` or `09`.
    pub name: String,
    /// When it was, in words.
    pub words: String,
    /// What the database did.
    pub work: Work,
    /// What is asked of the target once; a step asks for as many times that as it says. What is not reproduced is absent.
    pub asked: Work,
}

/// Whether something that production did is reproduced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Aspect {
    /// What.
    pub figure: WorkFigure,
    /// By what; absent where it is not asked for at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What is missing, and why; absent where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

impl LikeLevel {
    /// The same for display.
    pub fn parameters(&self) -> Parameters {
        let times = [("TIMES".to_owned(), ((self.times * 1e4).round() / 1e4).to_string())];
        let moment = self.moment.clone().map(|moment| ("MOMENT".to_owned(), moment));
        times.into_iter().chain(moment).collect()
    }
}

impl Like {
    /// The moment that a step is like, and how many times that it asks for.
    pub fn moment_of(&self, step: &Step) -> Option<(&LikeMoment, f64)> {
        let LikeLevel { times, moment } = step.like.as_ref().filter(|level| level.times > 0.0)?;
        let moment = match moment {
            Some(name) => self.moments.iter().find(|moment| moment.name == *name)?,
            None => self.moments.first()?,
        };
        Some((moment, *times))
    }
}
