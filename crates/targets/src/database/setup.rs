//! The words of set-up, the same for every database.

use std::fmt;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{Cache, Sheet};
use crate::TargetError;
use model::units::{Bytes, group_thousands};

pub use crate::crew::Progress;

/// Sessions that one data set can distinguish: as many as SLOB allows.
pub const MAX_SESSIONS: u32 = 4096;

/// How rows are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filling {
    /// Random bytes throughout: storage can neither compress nor deduplicate them.
    Incompressible,
    /// Repeated text, as SLOB has it by default.
    Compressible,
}

/// What to do with data that are there and differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// Leave them alone and say so.
    Refuse,
    /// Remove them and make new ones, even when they have the shape asked for: they may be damaged.
    Replace,
}

/// What data are wanted.
#[derive(Debug, Clone)]
pub struct SetupRequest {
    /// Number of schemas, 1 to [`MAX_SESSIONS`].
    pub schemas: u32,
    /// Rows, and so blocks, of each schema; at least 1.
    pub scale_blocks: u64,
    /// Blocks of each schema's scan table; may be 0.
    pub scan_blocks: u64,
    /// Size of a block in bytes, which must be the server's on a server.
    pub block_bytes: u32,
    /// How rows are filled.
    pub filling: Filling,
    /// Threads or connections that load, at least 1. The data do not depend on it.
    pub streams: u32,
    /// Seed of the placement of rows and of their filling.
    pub seed: u64,
    /// Whether the user named the seed. If not, the same data with another seed are the data that are asked for.
    pub is_seed_asked: bool,
    /// What to do with data that are there.
    pub replace: Replace,
}

impl SetupRequest {
    /// The same, beside data with the seed `there`: the same command given twice finds its own data, and only a seed that was
    /// asked for can differ from theirs.
    #[must_use]
    pub fn beside(&self, there: Option<u64>) -> Self {
        let keeps = |_: &u64| !self.is_seed_asked && self.replace == Replace::Refuse;
        Self { seed: there.filter(keeps).unwrap_or(self.seed), ..self.clone() }
    }

    /// The data in words.
    pub fn words(&self) -> String {
        data_words(self.schemas, self.scale_blocks, self.scan_blocks, self.block_bytes)
    }

    /// Refuses what no database can make.
    ///
    /// # Errors
    /// [`TargetError::Shape`] says what makes no sense.
    pub fn check(&self) -> Result<(), TargetError> {
        let refuse = |why: String| Err(TargetError::Shape(why));
        if !(1..=MAX_SESSIONS).contains(&self.schemas) {
            return refuse(format!("a data set has 1 to {MAX_SESSIONS} schemas, not {}", self.schemas));
        }
        if self.scale_blocks == 0 {
            return refuse("a schema has at least 1 block, not 0".to_owned());
        }
        if self.streams == 0 {
            return refuse("at least 1 stream is needed to load, not 0".to_owned());
        }
        Ok(())
    }
}

/// `8 schemas of 1 GiB (131,072 blocks of 8 KiB), each with a scan table of 1 MiB`.
pub fn data_words(schemas: u32, scale_blocks: u64, scan_blocks: u64, block_bytes: u32) -> String {
    let schemas = if schemas == 1 { "1 schema".to_owned() } else { format!("{schemas} schemas") };
    let block = u64::from(block_bytes);
    let mut words = format!(
        "{schemas} of {} ({} blocks of {})",
        Bytes(scale_blocks * block),
        group_thousands(scale_blocks as f64),
        Bytes(block)
    );
    if scan_blocks > 0 {
        words.push_str(&format!(", each with a scan table of {}", Bytes(scan_blocks * block)));
    }
    words
}

/// What of a data set differs from what is asked for, in words: each is a name, the figure there and the figure asked. None if
/// nothing differs.
pub fn difference(figures: &[(&str, u64, u64)], fillings: (Filling, Filling)) -> Option<String> {
    let number = figures.iter().filter(|(_, there, asked)| there != asked);
    let mut found: Vec<String> =
        number.map(|(what, there, asked)| format!("{what} is {there} there and {asked} here")).collect();
    let (there, asked) = fillings;
    if there != asked {
        found.push(format!("the filling is {there:?} there and {asked:?} here").to_lowercase());
    }
    (!found.is_empty()).then(|| found.join("; "))
}

/// A set-up that was decided on.
pub trait SetupPlan {
    /// What would be done.
    fn sheet(&self) -> Sheet;

    /// Whether anything is to be written: not when the same data are there and were not to be replaced.
    fn makes_data(&self) -> bool;

    /// What the user should know before it begins.
    fn notes(&self) -> Vec<String>;

    /// The largest cache between load and storage that is known already.
    fn cache(&self) -> Option<Cache> {
        None
    }

    /// Bytes that a row is counted as in progress, in the mean, where rows are more to the point than bytes.
    fn mean_row_bytes(&self) -> Option<f64> {
        None
    }

    /// Does it.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`] when stopped, or what went wrong.
    fn run(
        self: Box<Self>,
        progress: &(dyn Fn(Option<Phase>, Progress) + Sync),
        stop: &AtomicBool,
    ) -> Result<SetupReport, TargetError>;

    /// What stays of it when it is interrupted, in words.
    fn after_interrupt(&self) -> &'static str;
}

/// What a set-up is doing, on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Removes data that are to be replaced.
    Remove,
    /// Makes empty tables.
    Create,
    /// Loads rows.
    Load,
    /// Rewrites tables that have empty blocks.
    Compact,
    /// Rewrites tables with as few rows in a block as there can be.
    Rebuild,
    /// Builds the indexes.
    Index,
    /// Makes indexes keys, and adds foreign keys and what numbers new rows.
    Keys,
    /// Vacuums or analyses the tables, and has the planner learn their shape.
    Vacuum,
    /// Has the planner learn the shape of the tables.
    Analyze,
    /// Writes a checkpoint.
    Checkpoint,
    /// Holds what is there against what was to be made.
    Validate,
}

impl Phase {
    /// Whether rows are loaded in it.
    pub fn is_loading(self) -> bool {
        self == Self::Load
    }
}

/// `loading rows`
impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Remove => "removing what is there",
            Self::Create => "creating tables",
            Self::Load => "loading rows",
            Self::Compact => "compacting tables",
            Self::Rebuild => "rebuilding tables",
            Self::Index => "building indexes",
            Self::Keys => "adding keys",
            Self::Vacuum => "vacuuming",
            Self::Analyze => "analyzing tables",
            Self::Checkpoint => "writing a checkpoint",
            Self::Validate => "validating",
        })
    }
}

/// What a set-up did.
#[derive(Debug, Clone, PartialEq)]
pub struct SetupReport {
    /// Where the data are, to be read after "in".
    pub place: String,
    /// Bytes of blocks, and of redo where there is any, that were written this time.
    pub bytes_written: u64,
    /// Rows that were loaded, where they are counted apart from blocks.
    pub rows: Option<u64>,
    /// How long it took, until everything was durable.
    pub elapsed_ns: u64,
    /// How long each phase took.
    pub phases: Vec<(Phase, u64)>,
    /// Seed of the data.
    pub seed: u64,
    /// Whether data were made: not when the same data were there already.
    pub created: bool,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Fields of its document that only this kind of database has.
    pub document: serde_json::Map<String, serde_json::Value>,
}
