//! What stands in the catalogue.

use serde::{Deserialize, Serialize};

use super::rule::Rule;

/// Where a figure is from.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Title of the document.
    pub document: String,
    /// Where it is published.
    pub address: String,
    /// Of when the text is that was read, as far as that is known.
    pub as_of: String,
    /// The day on which it was read.
    pub looked_up: String,
}

/// Requests per second, and megabytes (10^6 bytes) per second. In a file `[16000, 128]`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(from = "(f64, f64)")]
pub struct Rates {
    /// Requests per second.
    pub iops: f64,
    /// Megabytes per second.
    pub mb_per_s: f64,
}

impl From<(f64, f64)> for Rates {
    fn from((iops, mb_per_s): (f64, f64)) -> Self {
        Self { iops, mb_per_s }
    }
}

/// Storage that is built into a machine, all of it together.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Local {
    /// Of what size the requests are whose rates these are, in KiB, where that is published: of larger ones they may be fewer.
    pub block_kib: Option<f64>,
    /// Read requests per second.
    pub read_iops: f64,
    /// Write requests per second, where they are published.
    pub write_iops: Option<f64>,
    /// Megabytes read per second, where they are published.
    pub read_throughput: Option<f64>,
    /// Megabytes written per second, where they are published.
    pub write_throughput: Option<f64>,
}

/// A size of a machine.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// As its cloud writes it.
    pub name: String,
    /// Other names for it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Who sells it. Of its series.
    #[serde(skip_deserializing)]
    pub cloud: String,
    /// Pages that its figures are from. Of its series.
    #[serde(skip_deserializing)]
    pub sources: Vec<String>,
    /// Virtual processors.
    pub processors: Option<u32>,
    /// Memory, in GiB.
    pub memory_gib: Option<f64>,
    /// How many data disks may be attached.
    pub data_disks: Option<u32>,
    /// With the host's cache: what the cache and what lies behind it deliver together.
    pub cached: Option<Rates>,
    /// The same in a burst.
    pub cached_burst: Option<Rates>,
    /// Size of the host's cache, in GiB.
    pub cache_gib: Option<f64>,
    /// To volumes, past the host's cache.
    pub uncached: Option<Rates>,
    /// The same in a burst.
    pub uncached_burst: Option<Rates>,
    /// To volumes for which the cloud publishes limits of their own (`limits = "ultra"`).
    pub ultra: Option<Rates>,
    /// The same in a burst.
    pub ultra_burst: Option<Rates>,
    /// Network, in megabits (10^6) per second.
    pub network_mbit: Option<f64>,
    /// The same in a burst.
    pub network_burst_mbit: Option<f64>,
    /// Storage that is built in.
    pub local: Option<Local>,
    /// How long a full credit lasts at the whole burst rate, in minutes. Of its series.
    #[serde(skip_deserializing)]
    pub burst_minutes: Option<f64>,
    /// After how many hours there is a full credit again, where that is published. Of its series.
    #[serde(skip_deserializing)]
    pub burst_refill_hours: Option<f64>,
}

/// What throughput of a volume is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Unit {
    /// 1,000,000 bytes per second.
    #[serde(rename = "MB/s")]
    Megabytes,
    /// 1,048,576 bytes per second.
    #[serde(rename = "MiB/s")]
    Mebibytes,
}

impl Unit {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Megabytes => "MB/s",
            Self::Mebibytes => "MiB/s",
        }
    }

    /// A throughput in it, in megabytes (10^6) per second.
    pub fn in_megabytes(self, throughput: f64) -> f64 {
        match self {
            Self::Megabytes => throughput,
            Self::Mebibytes => throughput * 1.048_576,
        }
    }
}

/// What a volume gives while its credit lasts.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Requests per second.
    pub iops: Option<Rule>,
    /// Throughput, in the volume's unit.
    pub throughput: Option<Rule>,
    /// How long a full credit lasts at the whole burst rate, in minutes.
    pub minutes: Option<f64>,
    /// A full credit in requests, where it is published as such.
    pub credit_ios: Option<f64>,
    /// A full credit of throughput in MiB for each GiB of the volume, where it is published as such.
    pub credit_mib_per_gib: Option<f64>,
}

/// A burst that is bought, not saved up.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OnDemandBurst {
    /// Requests per second.
    pub iops: f64,
    /// Throughput, in the volume's unit.
    pub throughput: f64,
}

/// A kind of volume, in one size or in any.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeKind {
    /// As its cloud writes it.
    pub name: String,
    /// Other names for it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Who sells it.
    pub cloud: String,
    /// What it is one of.
    pub kind: String,
    /// The page that its figures are from.
    pub source: String,
    /// Other pages that some of them are from.
    #[serde(default)]
    pub also: Vec<String>,
    /// Its size, where it comes in one only.
    pub size_gib: Option<f64>,
    /// The least and the largest size, where they are published.
    pub sizes_gib: Option<(f64, f64)>,
    /// What throughput is counted in.
    pub unit: Unit,
    /// Requests per second; absent where no limit is published.
    pub iops: Option<Rule>,
    /// Throughput, in `unit`; absent where no limit is published.
    pub throughput: Option<Rule>,
    /// A request of more than so many KiB counts as several.
    pub counts_kib: Option<f64>,
    /// What it gives while a credit lasts.
    pub burst: Option<Burst>,
    /// What it gives for more money.
    pub on_demand_burst: Option<OnDemandBurst>,
    /// Whether the host's cache can lie before it.
    #[serde(default)]
    pub host_cache: bool,
    /// Which of a machine's limits hold for it: its `uncached` ones, or those called so.
    pub limits: Option<String>,
    /// Whether it is reached over the machine's network.
    #[serde(default)]
    pub over_network: bool,
    /// Calls of one NFS connection that its server works on at the same time.
    pub calls_per_connection: Option<u32>,
    /// Families of machines that alone can have it.
    #[serde(default)]
    pub families: Vec<String>,
}

impl VolumeKind {
    /// How many requests one of `bytes` counts as.
    pub fn counted_as(&self, bytes: f64) -> f64 {
        self.counts_kib.map_or(1.0, |kib| (bytes / (kib * 1024.0)).ceil().max(1.0))
    }
}

/// A full credit, and how fast it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Credit {
    /// What is given while it lasts, per second.
    pub burst_per_s: f64,
    /// What is given beyond the base, in the same unit without the second, until it is spent.
    pub full: f64,
    /// How many seconds pass until it is full again, with nothing asked for meanwhile.
    pub refill_s: Option<f64>,
}

/// The most that a cloud lets one connection have.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// What the firmware of its machines calls them.
    pub firmware: String,
    /// Gigabits (10^9) per second.
    pub gbit_per_s: f64,
    /// Of what.
    pub what: String,
    /// The page that it is from.
    pub source: String,
}
