//! ORION's own command line and its list of devices, read as ORION reads them.
//!
//! ORION (ORacle IO Numbers) walks a matrix: so many small random requests outstanding in the columns, so many large ones
//! in the rows. Its users have their command lines ready, so the options keep ORION's names, units and defaults, single
//! dash included. What ORION lacks is Plimsoll's own and has no place here.
//!
//! ```
//! use plimsoll_model::config::orion::{OrionCommand, RunType, parse};
//!
//! let words = ["-run", "oltp", "-testname", "san", "-num_disks", "4", "-write", "20"].map(str::to_owned);
//! let OrionCommand::Run(options) = parse(&words)? else { panic!("no help was asked for") };
//! assert_eq!(options.run, RunType::Oltp);
//! assert!(options.destroys_data());
//! # Ok::<(), plimsoll_model::config::ConfigError>(())
//! ```

mod luns;
mod option;
mod problem;
mod reading;
#[cfg(test)]
mod tests;

pub use luns::{LunFile, lun_file, read_luns};
pub use option::help_text;
pub use problem::OrionProblem;
pub use reading::parse;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

/// What ORION is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrionCommand {
    /// `-help`: say what the options are, whatever else is asked.
    Help,
    /// Walk the matrix.
    Run(OrionOptions),
}

/// ORION's options, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OrionOptions {
    /// What to walk.
    pub run: RunType,
    /// Base name of the device list and of all output; may be a path. Never empty, one printable line.
    pub testname: String,
    /// Spindles, at least 1: only scales how far the load rises. Default: the number of devices in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_disks: Option<u32>,
    /// Size of a small request.
    #[serde(rename = "small_bytes")]
    pub size_small: Bytes,
    /// Size of a large request.
    #[serde(rename = "large_bytes")]
    pub size_large: Bytes,
    /// Where large requests go.
    pub pattern: LargePattern,
    /// Writes in a hundred requests, 0 to 100. More than 0 destroys data.
    pub write_pct: u8,
    /// How the devices are put together to one volume.
    pub layout: ArrayLayout,
    /// How the array's cache is filled before a large sequential point.
    pub cache: ArrayCache,
    /// Length of each point.
    #[serde(rename = "duration_ns")]
    pub duration: Nanos,
    /// How much is reported on the way.
    #[serde(skip)]
    pub verbosity: OrionVerbosity,
    /// What the user should know: options that mean nothing here, or nothing beside the others.
    #[serde(skip)]
    pub notes: Vec<String>,
}

impl OrionOptions {
    /// Whether requests write, so that what the devices hold is lost.
    pub fn destroys_data(&self) -> bool {
        self.write_pct > 0
    }
}

/// What to walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunType {
    /// Small requests alone, then large ones alone.
    Simple,
    /// Every combination of small and large.
    Normal,
    /// Small requests alone, much further up: the most requests per second.
    Oltp,
    /// Large requests alone, much further up: the most bytes per second.
    Dss,
    /// What the matrix says, with every other option free.
    Advanced(Matrix),
}

impl RunType {
    /// The word after `-run`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Normal => "normal",
            Self::Oltp => "oltp",
            Self::Dss => "dss",
            Self::Advanced(_) => "advanced",
        }
    }

    /// The matrix that it is short for.
    pub fn matrix(self) -> Matrix {
        match self {
            Self::Simple => Matrix::Basic,
            Self::Normal => Matrix::Detailed,
            Self::Oltp => Matrix::Row { large: 0 },
            Self::Dss => Matrix::Col { small: 0 },
            Self::Advanced(matrix) => matrix,
        }
    }
}

/// The part of the matrix that an advanced run walks. Numbers are requests outstanding; of large sequential ones, streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Matrix {
    /// The first row and the first column: small alone, large alone.
    Basic,
    /// All of it.
    Detailed,
    /// One point; not both numbers are 0.
    Point {
        /// Small requests outstanding.
        small: u32,
        /// Large requests outstanding.
        large: u32,
    },
    /// Rising large load beside so many small requests.
    Col {
        /// Small requests outstanding.
        small: u32,
    },
    /// Rising small load beside so many large requests.
    Row {
        /// Large requests outstanding.
        large: u32,
    },
    /// All combinations up to these maxima, of which not both are 0.
    Max {
        /// Most small requests outstanding.
        small: u32,
        /// Most large requests outstanding.
        large: u32,
    },
}

impl Matrix {
    /// The word after `-matrix`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Detailed => "detailed",
            Self::Point { .. } => "point",
            Self::Col { .. } => "col",
            Self::Row { .. } => "row",
            Self::Max { .. } => "max",
        }
    }
}

/// Where large requests go. Small ones are always random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LargePattern {
    /// Anywhere.
    Random,
    /// One after the other in each stream.
    Sequential {
        /// Requests that each stream keeps outstanding, at least 1.
        requests_per_stream: u32,
    },
}

/// How the devices are put together to one volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrayLayout {
    /// One after the other.
    Concat,
    /// Striped, as ASM and RAID 0 do.
    Raid0 {
        /// Bytes on one device before the next is used.
        stripe: Bytes,
    },
}

/// What is known about the array's cache. It decides on requests that are not measured, before each large sequential
/// point, so that the point does not read what the one before it has left in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrayCache {
    /// Nothing: two minutes of random requests.
    NotEntered,
    /// There is none: no such requests.
    Absent,
    /// Its size: random requests of so many bytes in all.
    Size(Bytes),
}

/// How much is reported on the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OrionVerbosity {
    /// What is reported on every run.
    #[default]
    Usual,
    /// Each point's result as it ends (`-verbose`).
    EachPoint,
}
