//! What load a run puts on, as types: the command line parses into it, a plan makes steps of it, the record keeps it, and whoever reads
//! a record matches on it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{IoMap, MapDemand, MapLevel, MapOf, MapSearch, ReplayLoad, SlobMap};
use crate::config::host::{ProcessorChoice, WorkList, ranges};
use crate::config::io::{BlockSize, DepthList, Durable, IoLevel, IoOptions, rate_text};
use crate::config::net::{FlowDirection, NetOptions, NetPattern, Outstanding};
use crate::config::orion::{ArrayCache, ArrayLayout, LargePattern, OrionOptions};
use crate::config::{Key, nanos_text};
use crate::units::{Bytes, Nanos};
use crate::workload::io::Distribution;
use crate::workload::orders::{Mix, Pauses, Reconnect};

/// Parameters as they are displayed, by their names.
pub type Parameters = BTreeMap<String, String>;

/// What load a run puts on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Load {
    /// Requests of one pattern to raw storage.
    Io(IoOptions),
    /// Kinds of requests to raw storage, each at a rate of its own: what a check asks for, or what a production did.
    IoMix(IoMix),
    /// The requests of a trace, at its instants.
    Replay(ReplayLoad),
    /// Requests of one pattern for hours, reported in rounds.
    Soak(Soak),
    /// ORION's walk.
    Orion(OrionLoad),
    /// The search of CALIBRATE_IO.
    Calibrate(CalibrateLoad),
    /// Reads and writes at rates of their own, to find where a limit is kept.
    IoMap(IoMap),
    /// SLOB's method.
    Slob(SlobLoad),
    /// Reads and updates of SLOB's method at rates of their own, to find where a limit is kept.
    SlobMap(SlobMap),
    /// Order entry.
    Orders(OrdersOptions),
    /// Work of processors and memory.
    Host(HostLoad),
    /// One pattern on a network.
    Network(NetOptions),
    /// What a network carries, without a load of the user's own.
    NetworkSurvey(NetSurvey),
    /// Several servers on a network, each by itself and all at once.
    NetworkMatrix(NetMatrix),
    /// That of another program, of which the record has what its report says.
    Foreign(Foreign),
}

/// The point of a [`Load`] at which a step is, where its points differ in more than how intense they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Of requests of one pattern.
    Io(IoLevel),
    /// Of ORION's walk, measured by ORION or by this program.
    Orion(OrionLevel),
    /// Of a calibration.
    Calibrate(CalibrateLevel),
    /// Of a map of storage.
    IoMap(MapLevel),
    /// Parameters of SLOB that differ from step to step.
    Slob(SlobLoad),
    /// Of a map of a database.
    SlobMap(MapLevel),
    /// Of a load on a network.
    Network(NetLevel),
    /// Of work of processors.
    Host(HostLevel),
}

/// Kinds of requests to raw storage, each at a rate of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct IoMix {
    /// Size of a small request.
    pub block: BlockSize,
}

/// A long load that is reported in rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Soak {
    /// The load.
    pub requests: IoOptions,
    /// Length of a round, in nanoseconds.
    pub round_ns: Nanos,
}

/// ORION's options as they are in force, and the matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct OrionLoad {
    /// The options.
    pub options: OrionOptions,
    /// Disks that the loads were scaled by.
    pub num_disks: u32,
    /// Small loads in rising order: the columns of the matrix.
    pub small_loads: Vec<u32>,
    /// Large loads in rising order: its rows.
    pub large_loads: Vec<u32>,
    /// Data points as ORION counts them.
    pub data_points: u32,
}

/// A point of ORION's matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct OrionLevel {
    /// Small random requests outstanding.
    pub small: u32,
    /// Large requests outstanding; with sequential ones, streams.
    pub large: u32,
}

/// Random reads of two sizes, at depths that are found on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct CalibrateLoad {
    /// Length of a small read.
    pub small: BlockSize,
    /// Length of a large read.
    pub large: BlockSize,
    /// Most small reads outstanding.
    pub max_small: u32,
    /// Most large reads outstanding.
    pub max_large: u32,
    /// The latency that small reads must keep, such as `mean=10ms`.
    pub max_latency: String,
}

/// A reading of a calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct CalibrateLevel {
    /// Length of a read.
    pub block: BlockSize,
    /// Reads outstanding.
    pub depth: u32,
    /// Threads that share them.
    pub jobs: u32,
}

/// Parameters of SLOB by their keys, as text that reads back to the same values. Secrets are not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct SlobLoad {
    /// The parameters.
    pub parameters: BTreeMap<Key, String>,
}

/// Order entry, as it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct OrdersOptions {
    /// How often each kind of transaction is done.
    pub mix: Mix,
    /// Pauses between transactions.
    pub between: Pauses,
    /// Pauses inside transactions.
    pub inside: Pauses,
    /// Length of each measured window, in nanoseconds.
    pub duration_ns: Nanos,
    /// How often a transaction is tried again.
    pub max_retries: u32,
    /// How long connections last.
    pub reconnect: Reconnect,
    /// Level of transactions, as SQL has it; that of the server where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
}

/// Work of processors and memory, as it was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct HostLoad {
    /// The kinds of work; absent for the survey, which looks at each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkList>,
    /// On which processors.
    pub processors: ProcessorChoice,
    /// Numbers of threads, a step each of every kind of work; absent for one step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<DepthList>,
    /// Memory that each thread's copies, triads and chases go through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<Bytes>,
    /// Buffer cache of the logical reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<Bytes>,
}

/// Work of one step on some processors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct HostLevel {
    /// The kinds of work, in turn.
    pub work: WorkList,
    /// The processors.
    pub processors: Vec<u32>,
    /// Memory that each thread goes through, where the work goes through any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<Bytes>,
    /// Buffer cache of the logical reads, where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<Bytes>,
    /// The processor of another NUMA node that the memory is near to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_of: Option<u32>,
    /// The processor of the threads that are woken, where it is another than that of those which wake them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_on: Option<u32>,
}

/// The redo of a database that a look at a network is asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct NetSurvey {
    /// Redo that the database makes, in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redo_bytes_per_s: Option<f64>,
    /// Bytes of each redo write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redo_write_bytes: Option<f64>,
}

/// Several servers, each by itself and all at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct NetMatrix {
    /// How many servers.
    pub servers: u32,
    /// Flows to and from each of them.
    pub flows: u32,
}

/// Load of one step on a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct NetLevel {
    /// What crosses it, where steps differ in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<NetOptions>,
    /// Connections and what is under way on each; at a rate, at most.
    pub outstanding: Outstanding,
    /// Operations per second of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Flows that go while round trips are timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// The only server of several that the step has; absent where it has all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// Bulk flows beside round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Beside {
    /// How many in each direction.
    pub flows: u32,
    /// Where they go.
    pub direction: FlowDirection,
}

/// The load of another program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Foreign {
    /// Which kind of load it is most like.
    pub workload: Workload,
}

impl Load {
    /// That of another program.
    pub const fn foreign(workload: Workload) -> Self {
        Self::Foreign(Foreign { workload })
    }

    /// Which kind of load it is.
    pub const fn workload(&self) -> Workload {
        match self {
            Self::Io(_) | Self::IoMix(_) | Self::Replay(_) => Workload::Io,
            Self::Soak(_) => Workload::Soak,
            Self::Orion(_) => Workload::Orion,
            Self::Calibrate(_) => Workload::Calibrate,
            Self::IoMap(_) => Workload::Map,
            Self::Slob(_) | Self::SlobMap(_) => Workload::Slob,
            Self::Orders(_) => Workload::Orders,
            Self::Host(_) => Workload::Host,
            Self::Network(_) | Self::NetworkSurvey(_) | Self::NetworkMatrix(_) => Workload::Network,
            Self::Foreign(Foreign { workload }) => *workload,
        }
    }

    /// Requests of one pattern, if they are its load.
    pub const fn requests(&self) -> Option<&IoOptions> {
        match self {
            Self::Io(requests) | Self::Soak(Soak { requests, .. }) => Some(requests),
            _ => None,
        }
    }

    /// Which points a map looks for; absent for another load.
    pub const fn map(&self) -> Option<&MapSearch> {
        match self {
            Self::IoMap(IoMap { search, .. }) | Self::SlobMap(SlobMap { search, .. }) => Some(search),
            _ => None,
        }
    }

    /// What all of its steps have in common, for display.
    pub fn parameters(&self) -> Parameters {
        let mut shown = Shown::default();
        match self {
            Self::Io(requests) => shown.requests(requests),
            Self::IoMix(IoMix { block }) => shown.add("BLOCK_SIZE", block),
            Self::Replay(ReplayLoad {
                trace, devices, placement, reads_only, from_ns, duration_ns, is_part, ..
            }) => {
                shown.add("TRACE", trace);
                shown.add("DEVICES", devices.join(","));
                shown.add("PLACEMENT", placement.name());
                let to = Nanos(from_ns.0.saturating_add(duration_ns.0));
                let window = is_part.then(|| format!("{}..{}", nanos_text(*from_ns), nanos_text(to)));
                shown.add_some("WINDOW", window);
                shown.add_some("READS_ONLY", reads_only.then_some("yes"));
            }
            Self::Soak(Soak { requests, round_ns }) => {
                shown.requests(requests);
                shown.add("ROUND", format_args!("{}s", round_ns.0 / 1_000_000_000));
            }
            Self::Orion(load) => shown.orion(load),
            Self::Calibrate(CalibrateLoad { small, large, max_small, max_large, max_latency }) => {
                shown.add("PATTERN", "randread");
                shown.add("READ_PCT", 100);
                shown.add("DISTRIBUTION", Distribution::Uniform);
                shown.add("SMALL_SIZE", small);
                shown.add("LARGE_SIZE", large);
                shown.add("MAX_SMALL", max_small);
                shown.add("MAX_LARGE", max_large);
                shown.add("MAX_LATENCY", max_latency);
            }
            Self::IoMap(map) => {
                shown.add("BLOCK_SIZE", map.block);
                if map.durable != Durable::None {
                    shown.add("DURABLE", map.durable);
                }
                shown.search(&map.search);
            }
            Self::SlobMap(map) => {
                map.load.parameters.iter().for_each(|(key, value)| shown.add(key.name(), value));
                shown.search(&map.search);
            }
            Self::Slob(SlobLoad { parameters }) => {
                parameters.iter().for_each(|(key, value)| shown.add(key.name(), value))
            }
            Self::Orders(load) => shown.orders(load),
            // What its steps have in common says it all.
            Self::Host(_) | Self::Foreign(_) => {}
            Self::Network(options) => shown.network(options),
            Self::NetworkSurvey(NetSurvey { redo_bytes_per_s, redo_write_bytes }) => {
                shown.add("SURVEY", "yes");
                shown.add_some("REDO_BYTES_PER_S", redo_bytes_per_s.map(f64::round));
                shown.add_some("REDO_WRITE_BYTES", redo_write_bytes.map(f64::round));
            }
            Self::NetworkMatrix(NetMatrix { servers, flows }) => {
                shown.add("MATRIX", servers);
                shown.add("CONNECTIONS", flows);
            }
        }
        shown.0
    }
}

impl Level {
    /// That of a map, and what it counts; absent for another one.
    pub const fn map(&self) -> Option<(MapOf, MapLevel)> {
        match self {
            Self::IoMap(level) => Some((MapOf::Requests, *level)),
            Self::SlobMap(level) => Some((MapOf::Operations, *level)),
            _ => None,
        }
    }

    /// The same for display.
    pub fn parameters(&self) -> Parameters {
        let mut shown = Shown::default();
        match self {
            Self::Io(level) => {
                match level {
                    IoLevel::Depth(_) => {}
                    IoLevel::Rate { per_s, .. } => shown.add("RATE", rate_text(*per_s)),
                    IoLevel::Volumes { chosen, .. } => shown.add("VOLUMES", chosen),
                    IoLevel::Connections { each, .. } => shown.add("CONNECTIONS", each),
                }
                shown.add("DEPTH", level.depth());
            }
            Self::Orion(OrionLevel { small, large }) => {
                shown.add("SMALL", small);
                shown.add("LARGE", large);
            }
            Self::Calibrate(CalibrateLevel { block, depth, jobs }) => {
                shown.add("BLOCK_SIZE", block);
                shown.add("DEPTH", depth);
                shown.add("JOBS", jobs);
            }
            Self::IoMap(level) => shown.level(MapOf::Requests, *level),
            Self::SlobMap(level) => shown.level(MapOf::Operations, *level),
            Self::Slob(SlobLoad { parameters }) => {
                parameters.iter().for_each(|(key, value)| shown.add(key.name(), value))
            }
            Self::Network(NetLevel { options, outstanding, rate_per_s, beside, server }) => {
                options.iter().for_each(|options| shown.network(options));
                shown.add("CONNECTIONS", outstanding.connections);
                shown.add("OUTSTANDING", outstanding.each);
                shown.add_some("RATE", rate_per_s.map(rate_text));
                if let Some(Beside { flows, direction }) = beside {
                    shown.add("BESIDE_FLOWS", flows);
                    shown.add("DIRECTION", direction);
                }
                shown.add_some("SERVER", server.as_ref());
            }
            Self::Host(HostLevel { work, processors, size_bytes, cache_bytes, memory_of, wake_on }) => {
                shown.add("WORK", work);
                shown.add("PROCESSORS", ranges(processors));
                shown.add_some("SIZE", size_bytes.map(one_word));
                shown.add_some("CACHE", cache_bytes.map(one_word));
                shown.add_some("MEMORY_OF", *memory_of);
                shown.add_some("WAKE_ON", *wake_on);
            }
        }
        shown.0
    }
}

impl SlobLoad {
    /// Those of `parameters` that are SLOB's.
    pub fn of(parameters: &Parameters) -> Self {
        let known = |(name, value): (&String, &String)| Some((Key::from_name(name)?, value.clone()));
        Self { parameters: parameters.iter().filter_map(known).collect() }
    }
}

/// What is displayed, as it is collected.
#[derive(Default)]
pub(super) struct Shown(pub(super) Parameters);

impl Shown {
    pub(super) fn add(&mut self, name: &str, value: impl fmt::Display) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    pub(super) fn add_some(&mut self, name: &str, value: Option<impl fmt::Display>) {
        value.into_iter().for_each(|value| self.add(name, value));
    }

    fn requests(&mut self, requests: &IoOptions) {
        self.add("PATTERN", requests.pattern);
        self.add("BLOCK_SIZE", requests.block);
        self.add("READ_PCT", requests.read_pct_in_force());
        self.add("JOBS", requests.jobs);
        if !requests.pattern.is_sequential() {
            self.add("DISTRIBUTION", requests.distribution.unwrap_or_default());
        }
        if requests.durable != Durable::None {
            self.add("DURABLE", requests.durable);
        }
    }

    fn search(&mut self, search: &MapSearch) {
        self.add("LIMIT", &search.limit);
        self.add("READ_PCT", format_args!("{}..{}", search.least_read_pct, search.most_read_pct));
        self.add("RATE", format_args!("{}..{}", rate_text(search.lowest_per_s), rate_text(search.highest_per_s)));
        self.add("WITHIN", format_args!("{}%", rate_text(search.within * 100.0)));
        self.add("POINTS", search.most_points);
        if let Some(MapDemand { reads_per_s, writes_per_s }) = search.demand {
            self.add("READS", rate_text(reads_per_s));
            self.add(&search.of.changes().to_uppercase(), rate_text(writes_per_s));
        }
    }

    fn level(&mut self, of: MapOf, level: MapLevel) {
        self.add("READS_PER_S", rate_text(level.reads_per_s()));
        self.add(&format!("{}_PER_S", of.changes().to_uppercase()), rate_text(level.writes_per_s()));
    }

    fn network(&mut self, options: &NetOptions) {
        self.add("PATTERN", options.pattern);
        self.add("SIZE", options.sizes_in_force());
        match options.pattern {
            NetPattern::Bulk => self.add("DIRECTION", options.direction.unwrap_or_default()),
            _ => {
                self.add("ANSWER_SIZE", options.answer_bytes());
                self.add("TRANSPORT", if options.is_udp { "udp" } else { "tcp" });
            }
        }
        if options.pattern.is_redo() {
            self.add("DURABLE", if options.is_durable { "yes" } else { "no" });
        }
    }

    fn orders(&mut self, load: &OrdersOptions) {
        self.add("MIX", load.mix);
        self.add("RUN_TIME", nanos_text(load.duration_ns));
        self.add("THINK_BETWEEN", load.between);
        self.add("THINK_INSIDE", load.inside);
        self.add("MAX_RETRIES", load.max_retries);
        if load.reconnect != Reconnect::Never {
            self.add("RECONNECT", load.reconnect);
        }
        self.add_some("ISOLATION", load.isolation.as_ref().map(|level| level.to_lowercase()));
    }

    /// ORION's options as they are in force, by the names that its own report has them under.
    fn orion(&mut self, load: &OrionLoad) {
        let OrionLoad { options, num_disks, small_loads, large_loads, data_points } = load;
        let kilobytes = |bytes: Bytes| format!("{}K", bytes.0 >> 10);
        let list = |loads: &[u32]| loads.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        self.add("RUN", options.run.name());
        self.add("MATRIX", options.run.matrix().name());
        self.add("TESTNAME", &options.testname);
        self.add("NUM_DISKS", num_disks);
        self.add("SMALL_SIZE", kilobytes(options.size_small));
        self.add("LARGE_SIZE", kilobytes(options.size_large));
        self.add("WRITE_PCT", options.write_pct);
        self.add("DURATION_S", options.duration.0 / 1_000_000_000);
        self.add("SMALL_LOADS", list(small_loads));
        self.add("LARGE_LOADS", list(large_loads));
        self.add("DATA_POINTS", data_points);
        match options.pattern {
            LargePattern::Random => self.add("TYPE", "rand"),
            LargePattern::Sequential { requests_per_stream } => {
                self.add("TYPE", "seq");
                self.add("NUM_STREAMIO", requests_per_stream);
            }
        }
        match options.layout {
            ArrayLayout::Concat => self.add("SIMULATE", "concat"),
            ArrayLayout::Raid0 { stripe } => {
                self.add("SIMULATE", "raid0");
                self.add("STRIPE", kilobytes(stripe));
            }
        }
        match options.cache {
            ArrayCache::NotEntered => {}
            ArrayCache::Absent => self.add("CACHE_SIZE", "0M"),
            ArrayCache::Size(bytes) => self.add("CACHE_SIZE", format_args!("{}M", bytes.0 >> 20)),
        }
    }
}

/// A size as one word, which reads back.
pub fn one_word(size: Bytes) -> String {
    size.to_string().replace(' ', "")
}

/// The kind of load of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
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
    /// A map of reads and writes.
    Map,
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
            Self::Map => "map",
            Self::Host => "host",
            Self::Network => "network",
            Self::Database => "database",
            Self::Transactions => "transactions",
            Self::Processor => "processor",
        }
    }

    /// Whether an operation is one request to storage, as in raw I/O, rather than many through a cache.
    pub const fn is_of_requests(self) -> bool {
        matches!(self, Self::Io | Self::Orion | Self::Calibrate | Self::Map | Self::Soak)
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
