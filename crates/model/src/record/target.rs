//! Where load landed.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::facts::{TargetFacts, Term};
use crate::text::is_default;

/// Where load landed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Target {
    /// What it is: `embedded`, `block`, `postgres`, …; absent where an imported result does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TargetKind>,
    /// Address without secrets, such as `dir:/u01/plimsoll`.
    pub address: String,
    /// Block size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Data that operations can touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
    /// Memory given to the buffer cache, its headers included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
    /// Blocks that the cache holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_blocks: Option<u64>,
    /// Everything else worth knowing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub facts: TargetFacts,
}

impl Target {
    /// What it is in a word; empty where that is unknown.
    pub fn kind_name(&self) -> &str {
        self.kind.as_ref().map_or("", TargetKind::name)
    }

    /// Whether it is a model of storage, so that nothing of the machine bears on it.
    pub fn is_simulated(&self) -> bool {
        self.kind == Some(TargetKind::Simulated)
    }

    /// Whether the database itself counted its reads from storage, rather than the operating system.
    pub fn counts_device_reads(&self) -> bool {
        self.facts.server.counts_device_reads == Some(true)
    }

    /// Whether it is a database that reads data files past the page cache.
    pub fn reads_directly(&self) -> bool {
        self.facts.server.reads_directly == Some(true)
    }

    /// What the server calls it, or a plain word for it.
    pub fn term(&self, term: Term) -> &str {
        self.facts.server.terms.get(&term).map_or(term.plain(), String::as_str)
    }
}

/// What load landed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetKind {
    /// Files and devices.
    Block,
    /// The database in this program.
    Embedded,
    /// Processors and memory.
    Host,
    /// MySQL.
    Mysql,
    /// A network.
    Network,
    /// Oracle Database.
    Oracle,
    /// PostgreSQL.
    Postgres,
    /// A model of storage.
    Simulated,
    /// What only other programs load, by the word of their results.
    Other(String),
}

impl TargetKind {
    const NAMED: [Self; 8] = [
        Self::Block,
        Self::Embedded,
        Self::Host,
        Self::Mysql,
        Self::Network,
        Self::Oracle,
        Self::Postgres,
        Self::Simulated,
    ];

    /// As it stands in a run and in reports.
    pub fn name(&self) -> &str {
        match self {
            Self::Block => "block",
            Self::Embedded => "embedded",
            Self::Host => "host",
            Self::Mysql => "mysql",
            Self::Network => "network",
            Self::Oracle => "oracle",
            Self::Postgres => "postgres",
            Self::Simulated => "simulated",
            Self::Other(word) => word,
        }
    }
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TargetKind {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(word.into())
    }
}

impl From<&str> for TargetKind {
    fn from(word: &str) -> Self {
        let known = Self::NAMED.into_iter().find(|kind| kind.name() == word);
        known.unwrap_or_else(|| Self::Other(word.to_owned()))
    }
}

crate::text::as_text!(TargetKind);
