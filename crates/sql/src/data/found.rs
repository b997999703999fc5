//! What a set-up finds on a server, and what it did there.

use model::units::Bytes;
use targets::database::Phase;

/// What is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// No data.
    Nothing,
    /// The data asked for.
    SameData,
    /// A set-up of the requested data that never came to its end.
    Unfinished {
        /// Bytes of blocks that are loaded.
        loaded_bytes: u64,
    },
    /// The rest of data that were being removed.
    HalfRemoved,
    /// Other data.
    OtherData,
}

impl Existing {
    /// In words, where the plan makes data or leaves what is there.
    pub fn words(self, makes_data: bool) -> String {
        match self {
            Self::Nothing => "no data".to_owned(),
            Self::SameData => "the requested data".to_owned(),
            Self::Unfinished { loaded_bytes } if makes_data => {
                format!("an unfinished set-up of these data, {} of them loaded", Bytes(loaded_bytes))
            }
            Self::Unfinished { .. } | Self::HalfRemoved => "the rest of other data, which would be removed".to_owned(),
            Self::OtherData => "other data, which would be removed".to_owned(),
        }
    }
}

/// Bytes that data take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Estimate {
    /// Of the tables.
    pub(crate) tables: u64,
    /// Of keys and indexes.
    pub(crate) indexes: u64,
    /// Of sorting while indexes are built.
    pub(crate) sorting: u64,
    /// By which the log may grow.
    pub(crate) log: u64,
}

impl Estimate {
    /// All of it.
    pub(crate) fn total(&self) -> u64 {
        let Self { tables, indexes, sorting, log } = *self;
        tables + indexes + sorting + log
    }
}

/// What a set-up did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Bytes of blocks that were loaded, this time.
    pub bytes_written: u64,
    /// Bytes of blocks that an earlier, interrupted set-up had loaded.
    pub bytes_found: u64,
    /// Rows that were loaded, this time.
    pub rows_written: u64,
    /// How long it took, until everything was durable.
    pub elapsed_ns: u64,
    /// How long each phase took.
    pub phases: Vec<(Phase, u64)>,
    /// Whether data were made: not when the same data were there already.
    pub created: bool,
    /// What the user should know.
    pub notes: Vec<String>,
}
