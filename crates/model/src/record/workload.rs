//! Which kind of load a run had.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of load of a run.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// SLOB's method: sessions that touch random blocks.
    Slob,
    /// Order entry.
    Orders,
    /// Requests to raw storage.
    Io,
    /// The same for hours, to see whether the rate holds.
    Soak,
    /// ORION's loads of small and large requests.
    Orion,
    /// The search of CALIBRATE_IO.
    Calibrate,
    /// Processors and memory; of an imported run also what a machine did with whatever load it had.
    Host,
    /// Bytes and messages over a network.
    Network,
    /// Imported: whatever load a database had.
    #[default]
    Database,
    /// Imported: transactions of another program.
    Transactions,
    /// Imported: work of processors.
    Processor,
}

impl Workload {
    /// As it stands in a run, in its id and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slob => "slob",
            Self::Orders => "orders",
            Self::Io => "io",
            Self::Soak => "soak",
            Self::Orion => "orion",
            Self::Calibrate => "calibrate",
            Self::Host => "host",
            Self::Network => "network",
            Self::Database => "database",
            Self::Transactions => "transactions",
            Self::Processor => "processor",
        }
    }

    /// Whether an operation is one request to storage, as in raw I/O, rather than many through a cache.
    pub const fn is_of_requests(self) -> bool {
        matches!(self, Self::Io | Self::Orion | Self::Calibrate | Self::Soak)
    }

    /// Whether operations are many single-block reads, so that a database's usual limits apply to the reads only. The
    /// operations behind an imported report of a database are unknown.
    pub const fn is_judged_by_reads(self) -> bool {
        matches!(self, Self::Slob | Self::Database)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
