//! Every limit of a platform, and how much of it one request of the load takes.

use super::combination::{Asked, Cache, Combination};
use super::{Credit, Rates, Volumes};

/// Whose limit it is, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// Requests that all volumes allow.
    VolumesIops,
    /// Bytes that all volumes allow.
    VolumesBytes,
    /// Requests that the machines send to volumes.
    MachineIops,
    /// Bytes that the machines send to volumes.
    MachineBytes,
    /// Requests that the machines' host caches and what is behind them serve.
    CacheIops,
    /// Bytes that they serve.
    CacheBytes,
    /// Read requests of storage that is built in.
    LocalReads,
    /// Write requests of it.
    LocalWrites,
    /// Bytes read from it.
    LocalBytes,
    /// Bytes written to it.
    LocalWriteBytes,
    /// The machines' network, where the volumes are reached over it.
    Network,
}

impl Whose {
    /// In words, after "what binds is".
    pub fn words(self) -> &'static str {
        match self {
            Self::VolumesIops => "the volumes' requests",
            Self::VolumesBytes => "the volumes' throughput",
            Self::MachineIops => "the machines' requests to volumes",
            Self::MachineBytes => "the machines' throughput to volumes",
            Self::CacheIops => "the machines' requests through the cache",
            Self::CacheBytes => "the machines' throughput through the cache",
            Self::LocalReads => "reads of the storage that is built in",
            Self::LocalWrites => "writes of the storage that is built in",
            Self::LocalBytes => "read throughput of the storage that is built in",
            Self::LocalWriteBytes => "write throughput of the storage that is built in",
            Self::Network => "the machines' network",
        }
    }

    /// Whether it counts requests: else bytes.
    pub fn is_of_requests(self) -> bool {
        matches!(self, Self::VolumesIops | Self::MachineIops | Self::CacheIops | Self::LocalReads | Self::LocalWrites)
    }
}

/// A limit of the whole platform.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Whose.
    pub whose: Whose,
    /// What it allows in the long run: requests, or megabytes (10^6), per second, of all nodes and volumes together.
    pub per_s: f64,
    /// What one request of the load takes of it, in the same unit. 0 where the load does not touch it.
    pub use_of_one: f64,
    /// What there is on credit beyond it, of all together.
    pub credit: Option<Credit>,
}

impl Limit {
    /// Requests of the load per second at which it binds; infinite where the load does not touch it.
    pub fn binds_at(&self, is_burst: bool) -> f64 {
        let allowed = self.credit.filter(|_| is_burst).map_or(self.per_s, |credit| credit.burst_per_s);
        if self.use_of_one > 0.0 { allowed / self.use_of_one } else { f64::INFINITY }
    }
}

/// Every published limit of `platform`, before a load of `asked`.
///
/// Of each request that reads, a hit ends in the host's cache. Misses and writes go on to the machine's limit past the cache and to the
/// volumes; a write goes there once for each copy, and comes to one of the nodes' limits each time. A load is taken to be spread evenly over
/// nodes and volumes. `redo_bytes` come with each request and go to volumes of their own, once for each copy: of what is listed here they
/// take the machines' bytes alone.
pub(super) fn of(platform: &Combination, asked: &Asked, redo_bytes: f64) -> Vec<Limit> {
    let nodes = f64::from(platform.nodes);
    let reads = asked.read_share;
    let writes = (1.0 - reads) * platform.redundancy.copies();
    let megabytes = asked.block_bytes / 1e6;
    let redo = redo_bytes * platform.redundancy.copies() / 1e6;
    let hits = if platform.cache == Cache::Read { asked.hit_share } else { 0.0 };
    let past_cache = reads * (1.0 - hits) + writes;
    let mut limits = Vec::new();
    let machine = &platform.machine;
    let Some(volumes) = &platform.volumes else {
        if let Some(local) = machine.local {
            add(&mut limits, Whose::LocalReads, Some(local.read_iops * nodes), reads, None);
            add(&mut limits, Whose::LocalWrites, local.write_iops.map(|iops| iops * nodes), writes, None);
            add(&mut limits, Whose::LocalBytes, local.read_throughput.map(|mb| mb * nodes), reads * megabytes, None);
            let written = local.write_throughput.map(|mb| mb * nodes);
            add(&mut limits, Whose::LocalWriteBytes, written, writes * megabytes, None);
            add(&mut limits, Whose::MachineBytes, machine.uncached.map(|rates| rates.mb_per_s * nodes), redo, None);
        }
        return limits;
    };
    limits.extend(of_volumes(volumes, machine.one_volume_iops, asked, past_cache));
    if volumes.kind.over_network {
        // How long a network's burst lasts is not published: it is not counted on.
        add(
            &mut limits,
            Whose::Network,
            machine.network_mbit.map(|mbit| mbit / 8.0 * nodes),
            past_cache * megabytes + redo,
            None,
        );
        return limits;
    }
    let (base, burst) = machine.to(&volumes.kind).unzip();
    let burst = burst.flatten();
    let mut of_machine = |whose: [Whose; 2], base: Option<Rates>, burst: Option<Rates>, requests: f64, beside: f64| {
        let bytes = requests * megabytes + beside;
        let refill = |full: f64, base: f64| machine.burst_refill_hours.map_or(full / base, |hours| hours * 3600.0);
        let credit = |of: fn(&Rates) -> f64| {
            let (base, burst) = (of(&base?), of(&burst?));
            let full = machine.burst_minutes? * 60.0 * (burst - base);
            (burst > base)
                .then(|| times(Credit { burst_per_s: burst, full, refill_s: Some(refill(full, base)) }, nodes))
        };
        add(&mut limits, whose[0], base.map(|base| base.iops * nodes), requests, credit(|rates| rates.iops));
        add(&mut limits, whose[1], base.map(|base| base.mb_per_s * nodes), bytes, credit(|rates| rates.mb_per_s));
    };
    of_machine([Whose::MachineIops, Whose::MachineBytes], base, burst, past_cache, redo);
    if platform.cache == Cache::Read {
        of_machine([Whose::CacheIops, Whose::CacheBytes], machine.cached, machine.cached_burst, reads, 0.0);
    }
    limits
}

/// The limits of volumes alone, of which a machine gives each so many requests at most.
pub(super) fn of_volumes(volumes: &Volumes, most_of_one: Option<f64>, asked: &Asked, past_cache: f64) -> Vec<Limit> {
    let (count, each) = (f64::from(volumes.count), volumes.each);
    let mut limits = Vec::new();
    let counted = volumes.kind.counted_as(asked.block_bytes);
    let of_all = |credit: Credit| times(credit, count);
    let iops = each.iops.map(|iops| iops.min(most_of_one.unwrap_or(f64::INFINITY)));
    add(
        &mut limits,
        Whose::VolumesIops,
        iops.map(|iops| iops * count),
        past_cache * counted,
        each.iops_credit.map(of_all),
    );
    let (mb, bytes) = volumes.throughput_for(asked.block_bytes);
    let credit = each.mb_credit.filter(|_| mb == each.mb_per_s).map(of_all);
    add(&mut limits, Whose::VolumesBytes, mb.map(|mb| mb * count), past_cache * bytes / 1e6, credit);
    limits
}

fn add(limits: &mut Vec<Limit>, whose: Whose, per_s: Option<f64>, use_of_one: f64, credit: Option<Credit>) {
    limits.extend(per_s.map(|per_s| Limit { whose, per_s, use_of_one, credit }));
}

fn times(credit: Credit, count: f64) -> Credit {
    Credit { burst_per_s: credit.burst_per_s * count, full: credit.full * count, refill_s: credit.refill_s }
}
