//! Which platforms of the catalogue carry a load, and what stands in the way of the others.

use std::collections::BTreeMap;

use super::combination::{Asked, Cache, Combination, CombinationError, Redundancy};
use super::limits::Whose;
use super::prices::Prices;
use super::recorded::Recorded;
use super::volumes::Volumes;
use super::words::Expectation;
use super::{Catalogue, Machine, Unpublished, VolumeKind, without_a_most};

/// Numbers of volumes and, of kinds that come in any size, GiB of each that are tried.
const COUNTS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
const SIZES_GIB: [u32; 10] = [64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768];

/// Smaller requests are not what volumes for large ones in a row (`streams`) are proposed for: a hard disk seeks before each.
const LARGE_BYTES: f64 = 262_144.0;

/// What was measured in the tests of the project's first seed, and what is published of each platform, in requests per second.
pub const MEASURED_OF_PUBLISHED: [(f64, f64); 11] = [
    (8_039.0, 10_000.0),
    (9_215.0, 10_000.0),
    (61_000.0, 80_000.0),
    (44_000.0, 80_000.0),
    (25_000.0, 32_000.0),
    (33_000.0, 40_000.0),
    (125_000.0, 160_000.0),
    (107_000.0, 160_000.0),
    (67_000.0, 80_000.0),
    (77_000.0, 160_000.0),
    (80_000.0, 128_000.0),
];

/// How many times the demand a platform must allow unless the user says otherwise. They reached 48 to 92 % of what is published; of a platform
/// with so much headroom 62.5 % are enough, which nine of the eleven reached. For the other two it would be 1.82 and 2.08.
pub const DEFAULT_HEADROOM: f64 = 1.6;

/// How many of those platforms would have carried a demand for which they were chosen with this headroom.
pub fn covered_by(headroom: f64) -> usize {
    MEASURED_OF_PUBLISHED.iter().filter(|(measured, published)| measured * headroom >= *published).count()
}

/// What is to be carried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Need {
    /// The mix and the size of requests.
    pub asked: Asked,
    /// Requests per second, with the headroom that is wanted.
    pub per_s: f64,
    /// GiB that the volumes must hold, all together, with all copies; 0 where that is not asked for.
    pub gib: f64,
    /// Bytes of redo that come with each request. They go to volumes of their own, which are not sized, and through the machines.
    pub redo_bytes: f64,
    /// Processors of all nodes together; absent where nobody knows: then they are not compared.
    pub processors: Option<f64>,
    /// GiB of memory of all nodes together, likewise.
    pub memory_gib: Option<f64>,
    /// Whether data may lie on what is built into a machine, and be lost with it.
    pub ephemeral: bool,
}

/// A platform held against it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sized {
    /// The platform.
    pub platform: Combination,
    /// What it allows in the long run, or of a load that was recorded in its busiest interval.
    pub per_s: f64,
    /// What binds.
    pub whose: Whose,
    /// What it costs, where that is known.
    pub price: Option<f64>,
}

/// What came of all platforms of the catalogue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranking {
    /// Those that carry the load: the cheapest first, of those without a price and of equal ones that with the fewest processors, the least
    /// memory, the fewest volumes, the smallest ones and those for which the fewest requests are bought.
    pub carry: Vec<Sized>,
    /// Those that do not: that which comes nearest first.
    pub fail: Vec<Sized>,
    /// Those that cannot be, that are not to be bought, or of which nothing is published, with why.
    pub left_out: Vec<(String, String)>,
    /// What is not in the catalogue, and so in no answer.
    pub gaps: Vec<String>,
}

/// Volumes of one kind in each number and size that are tried, with whether they are enough: first what is, in the order in which it is
/// bought, then what comes nearest.
type Tried = Vec<(bool, Volumes)>;

/// Holds every machine of `catalogue`, `nodes` of it, against `need`: with each kind of volume of its cloud, in the least number and size
/// that carry it, or in the cheapest, and with what is built in.
pub fn rank(catalogue: &Catalogue, need: &Need, nodes: (u32, Redundancy), prices: Option<&Prices>) -> Ranking {
    ranked(catalogue, need, nodes, prices, None)
}

/// A load that was recorded, for [`rank_recorded`].
#[derive(Clone, Copy)]
pub struct Seconds<'a> {
    /// What it did.
    pub recorded: &'a Recorded,
    /// How many times that a platform must allow.
    pub headroom: f64,
    /// Which share of the reads a host cache of so many GiB answers; absent where that is not known.
    pub hit_share: &'a dyn Fn(f64) -> Option<f64>,
    /// Whether the host's cache is used; absent: where less is bought with it, or the load is met with it alone.
    pub cache: Option<Cache>,
}

/// The same for a load that was recorded: each interval of it must be met, with full burst credits at its beginning. `need` is that of its
/// busiest interval, by which the platforms are named.
pub fn rank_recorded(
    catalogue: &Catalogue,
    need: &Need,
    nodes: (u32, Redundancy),
    prices: Option<&Prices>,
    seconds: Seconds<'_>,
) -> Ranking {
    ranked(catalogue, need, nodes, prices, Some(seconds))
}

fn ranked(
    catalogue: &Catalogue,
    need: &Need,
    (nodes, redundancy): (u32, Redundancy),
    prices: Option<&Prices>,
    seconds: Option<Seconds<'_>>,
) -> Ranking {
    let mut ranking = Ranking { gaps: catalogue.gaps(), ..Ranking::default() };
    let enough = BTreeMap::new();
    let mut held = Held { need, nodes, redundancy, prices, seconds, enough, ranking: &mut ranking };
    let mut of_kinds: Vec<(&VolumeKind, Tried)> = Vec::new();
    for kind in catalogue.volumes() {
        match held.tried(kind) {
            Ok(tried) => of_kinds.push((kind, tried)),
            Err(why) => held.ranking.left_out.push((kind.name.clone(), why)),
        }
    }
    for machine in catalogue.machines() {
        if let Some(why) = held.unfit(machine) {
            held.ranking.left_out.push((machine.name.clone(), why));
            continue;
        }
        for (_, tried) in of_kinds.iter().filter(|(kind, _)| kind.cloud == machine.cloud) {
            held.with_volumes(machine, tried);
        }
        // What is built in is as large as it is, which is not published here.
        let is_cached_alone = seconds.is_some_and(|seconds| seconds.cache == Some(Cache::Read));
        if machine.local.is_some() && need.gib == 0.0 && !is_cached_alone {
            if need.ephemeral {
                held.hold(machine, None, Cache::None);
            } else {
                let why = "its data is lost when the machine stops: `--ephemeral` allows it";
                held.ranking.left_out.push((format!("{} with storage that is built in", machine.name), why.to_owned()));
            }
        }
    }
    ranking.carry.sort_by(|a, b| {
        let figures = |sized: &Sized| {
            let machine = &sized.platform.machine;
            let volumes = sized.platform.volumes.as_ref();
            [
                sized.price.unwrap_or(f64::INFINITY),
                machine.processors.map_or(f64::INFINITY, f64::from),
                machine.memory_gib.unwrap_or(f64::INFINITY),
                volumes.map_or(0.0, |volumes| f64::from(volumes.count)),
                volumes.map_or(0.0, gib),
                volumes.map_or(0.0, bought_beyond),
                sized.per_s,
            ]
        };
        let (of_a, of_b) = (figures(a), figures(b));
        of_a.iter()
            .zip(&of_b)
            .map(|(a, b)| a.total_cmp(b))
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    ranking.fail.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
    ranking
}

fn is_before(a: &[f64; 3], b: &[f64; 3]) -> bool {
    a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()) == Some(std::cmp::Ordering::Less)
}

/// What they hold together; more than anything where that is not known.
fn gib(volumes: &Volumes) -> f64 {
    volumes.size_gib.map_or(f64::INFINITY, |size| size * f64::from(volumes.count))
}

/// Requests per second that are bought for them beyond what is included.
fn bought_beyond(volumes: &Volumes) -> f64 {
    let rule = volumes.kind.iops.as_ref().filter(|rule| rule.provisioned);
    let included = rule.map_or(f64::INFINITY, |rule| rule.included.unwrap_or(0.0));
    (volumes.each.iops.unwrap_or(0.0) - included).max(0.0) * f64::from(volumes.count)
}

impl Seconds<'_> {
    fn are_enough(&self, volumes: &Volumes, redundancy: Redundancy, hit_share: f64) -> bool {
        self.recorded.is_met_by(volumes, redundancy.copies(), hit_share, self.headroom)
    }

    /// How many times what was recorded a platform allows, and what binds.
    fn allowed(&self, platform: &Combination) -> Option<(f64, Whose)> {
        let gib = platform.machine.cache_gib.filter(|_| platform.cache == Cache::Read);
        let hit_share = gib.and_then(self.hit_share).unwrap_or(0.0);
        self.recorded.times(platform, hit_share)
    }
}

/// What is held against what.
struct Held<'a> {
    need: &'a Need,
    nodes: u32,
    redundancy: Redundancy,
    prices: Option<&'a Prices>,
    seconds: Option<Seconds<'a>>,
    /// By kind and share of hits: which of the volumes that are tried are enough for what was recorded.
    enough: BTreeMap<(String, u64), Vec<bool>>,
    ranking: &'a mut Ranking,
}

impl Held<'_> {
    /// Why a machine is not to be bought, whatever its storage.
    fn unfit(&self, machine: &Machine) -> Option<String> {
        if let Some(day) = &machine.standing.retires {
            return Some(format!("its cloud stops it on {day}"));
        }
        let nodes = f64::from(self.nodes);
        let compared = [
            ("processors", self.need.processors, machine.processors.map(f64::from)),
            ("GiB of memory", self.need.memory_gib, machine.memory_gib),
        ];
        compared.into_iter().find_map(|(what, needed, has)| {
            let needed = needed?;
            let Some(has) = has.map(|has| has * nodes) else {
                return Some(format!("how many {what} it has is not known"));
            };
            (has < needed).then(|| format!("{has} {what} are fewer than {}", (needed * 10.0).ceil() / 10.0))
        })
    }

    /// Whether each of several nodes may have volumes of its own: where one copy of all data is elsewhere.
    fn is_mirrored(&self) -> bool {
        self.nodes > 1 && self.redundancy != Redundancy::External
    }

    /// Whether `nodes` of that can have one volume together; else each has its own, if data are mirrored.
    fn may_share(&self, shared_by: Option<u32>) -> Result<bool, String> {
        match shared_by {
            _ if self.nodes == 1 => Ok(true),
            Some(most) if most >= self.nodes => Ok(true),
            _ if self.is_mirrored() => Ok(false),
            Some(0 | 1) => {
                Err("only one machine can have it (no Multi-Attach), and there is one copy of the data".to_owned())
            }
            Some(most) => Err(format!("{most} machines can share one, not {}", self.nodes)),
            None => Err(format!("whether {} machines can share one is not known", self.nodes)),
        }
    }

    /// The volumes of a kind that are tried, or why none are.
    fn tried(&self, kind: &VolumeKind) -> Result<Tried, String> {
        let need = self.need;
        if kind.streams && need.asked.block_bytes < LARGE_BYTES {
            return Err("it is made for large requests in a row, not for small random ones".to_owned());
        }
        if let Some(day) = &kind.standing.retires {
            return Err(format!("its cloud stops it on {day}"));
        }
        let without_a_most: Vec<String> = without_a_most(kind).collect();
        if !without_a_most.is_empty() {
            return Err(not_published(&without_a_most));
        }
        // Where nodes cannot share, each has as many as the others.
        let step = if kind.over_network || self.may_share(kind.max_nodes)? { 1 } else { self.nodes };
        let past_cache = need.asked.read_share + (1.0 - need.asked.read_share) * self.redundancy.copies();
        let needed = need.per_s * past_cache;
        let counted = needed * kind.counted_as(need.asked.block_bytes);
        let most_megabytes = needed * kind.costs(need.asked.block_bytes) / 1e6;
        let (counted, most_megabytes) = match &self.seconds {
            Some(seconds) => {
                let (counted, bytes) = seconds.recorded.most_for(kind, self.redundancy.copies());
                (counted * seconds.headroom, bytes * seconds.headroom / 1e6)
            }
            None => (counted, most_megabytes),
        };
        let mut tried: Tried = Vec::new();
        let mut refused = None;
        for count in COUNTS.map(|count| count * step) {
            let each = f64::from(count);
            let sizes: Vec<Option<f64>> = match kind.size_gib {
                Some(_) => vec![None],
                None => SIZES_GIB.into_iter().map(f64::from).filter(|size| kind.has_size(*size)).map(Some).collect(),
            };
            for size in sizes {
                let (iops, throughput) = bought(kind, counted / each, most_megabytes / each);
                let volumes = match Volumes::of(kind, count, size, (iops, throughput)) {
                    Ok(volumes) => volumes,
                    Err(problem) => {
                        refused = Some(problem.0);
                        continue;
                    }
                };
                if volumes.size_gib.is_some_and(|size| size * each < need.gib) {
                    refused.get_or_insert_with(|| "too small for the data".to_owned());
                    continue;
                }
                let (mb, bytes) = volumes.throughput_for(need.asked.block_bytes);
                let is_enough = match &self.seconds {
                    Some(seconds) => seconds.are_enough(&volumes, self.redundancy, 0.0),
                    None => {
                        volumes.each.iops.is_none_or(|iops| iops >= counted / each)
                            && mb.is_none_or(|mb| mb >= needed / each * bytes / 1e6)
                    }
                };
                tried.push((is_enough, volumes));
            }
        }
        let key = |(is_enough, volumes): &(bool, Volumes)| {
            let price = self.prices.and_then(|prices| prices.of_volumes(volumes)).unwrap_or(f64::INFINITY);
            match is_enough {
                true => [0.0, price, f64::from(volumes.count), gib(volumes)],
                // What is not enough shows what binds: the more of it the nearer it comes.
                false => [1.0, -f64::from(volumes.count), -gib(volumes), 0.0],
            }
        };
        let mut tried: Vec<([f64; 4], (bool, Volumes))> = tried.into_iter().map(|it| (key(&it), it)).collect();
        tried.sort_by(|(a, _), (b, _)| {
            a.iter()
                .zip(b)
                .map(|(a, b)| a.total_cmp(b))
                .find(|order| order.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        if tried.is_empty() {
            return Err(refused.unwrap_or_else(|| "none can be had".to_owned()));
        }
        Ok(tried.into_iter().map(|(_, it)| it).collect())
    }

    /// Why these volumes cannot be attached to a machine.
    fn unattachable(&self, machine: &Machine, volumes: &Volumes) -> Option<String> {
        if volumes.kind.over_network {
            return None;
        }
        let splits = volumes.count.is_multiple_of(self.nodes) && self.is_mirrored();
        match self.may_share(machine.shared_by(&volumes.kind)) {
            Err(why) => return Some(why),
            Ok(false) if !splits => return Some("its nodes share one".to_owned()),
            Ok(_) => {}
        }
        let on_each = if splits { volumes.count / self.nodes } else { volumes.count };
        let most = machine.data_disks.filter(|most| on_each > *most)?;
        Some(format!("{on_each} volumes on each machine, which takes {most}"))
    }

    /// Holds a machine with the first of the volumes that can be attached to it and that give there what they allow.
    fn with_volumes(&mut self, machine: &Machine, tried: &Tried) {
        let most_of_one = machine.one_volume_iops.unwrap_or(f64::INFINITY);
        let is_good = |(is_enough, volumes): &(bool, Volumes)| {
            *is_enough && volumes.each.iops.is_none_or(|iops| iops <= most_of_one)
        };
        let is_attachable = |at: &usize| self.unattachable(machine, &tried[*at].1).is_none();
        let attachable: Vec<usize> = (0..tried.len()).filter(is_attachable).collect();
        let first_good = attachable.iter().copied().find(|at| is_good(&tried[*at]));
        let Some(plain) = first_good.or_else(|| attachable.first().copied()) else {
            let Some((_, first)) = tried.first() else { return };
            let why = self.unattachable(machine, first).unwrap_or_default();
            self.ranking.left_out.push((format!("{} with {}", machine.name, first.kind.name), why));
            return;
        };
        let cached = self.first_cached(machine, tried, &attachable);
        match (cached, self.seconds.and_then(|seconds| seconds.cache)) {
            (None, Some(Cache::Read)) => {
                let why = "no host cache of a known size can lie before its volumes".to_owned();
                self.ranking.left_out.push((format!("{} with {}", machine.name, tried[plain].1.kind.name), why));
            }
            (Some(cached), Some(Cache::Read)) => self.hold(machine, Some(tried[cached].1.clone()), Cache::Read),
            (None, _) | (_, Some(Cache::None)) => self.hold(machine, Some(tried[plain].1.clone()), Cache::None),
            (Some(cached), None) => {
                let times = |at: usize, cache| self.times(machine, &tried[at].1, cache);
                let headroom = self.seconds.map_or(1.0, |seconds| seconds.headroom);
                let (of_plain, of_cached) = (times(plain, Cache::None), times(cached, Cache::Read));
                let is_cached = match (of_plain >= headroom, of_cached >= headroom) {
                    (true, true) => is_before(&self.bought(&tried[cached].1), &self.bought(&tried[plain].1)),
                    (false, false) => of_cached > of_plain,
                    (_, is_met) => is_met,
                };
                let (at, cache) = if is_cached { (cached, Cache::Read) } else { (plain, Cache::None) };
                self.hold(machine, Some(tried[at].1.clone()), cache);
            }
        }
    }

    /// The first volumes that are enough behind a machine's host cache, else the first of all; absent where there is none.
    fn first_cached(&mut self, machine: &Machine, tried: &Tried, attachable: &[usize]) -> Option<usize> {
        let seconds = self.seconds.filter(|seconds| seconds.cache != Some(Cache::None))?;
        let (_, first) = tried.first().filter(|(_, volumes)| volumes.kind.host_cache)?;
        let hit_share = (seconds.hit_share)(machine.cached.and(machine.cache_gib)?)?;
        let redundancy = self.redundancy;
        let enough = self.enough.entry((first.kind.name.clone(), hit_share.to_bits())).or_insert_with(|| {
            tried.iter().map(|(_, volumes)| seconds.are_enough(volumes, redundancy, hit_share)).collect()
        });
        let good: Vec<usize> = attachable.iter().copied().filter(|at| enough.get(*at) == Some(&true)).collect();
        // Behind a cache less is enough, and what is not enough without one is in no order to buy.
        let by_price = |best: usize, other: usize| {
            let is_less = is_before(&self.bought(&tried[other].1), &self.bought(&tried[best].1));
            if is_less { other } else { best }
        };
        good.into_iter().reduce(by_price).or_else(|| attachable.first().copied())
    }

    /// By what volumes of a kind are chosen where several are enough: the least first.
    fn bought(&self, volumes: &Volumes) -> [f64; 3] {
        let price = self.prices.and_then(|prices| prices.of_volumes(volumes)).unwrap_or(f64::INFINITY);
        [price, f64::from(volumes.count), gib(volumes)]
    }

    /// How many times what was recorded a machine with these volumes allows; 0 where it cannot be.
    fn times(&self, machine: &Machine, volumes: &Volumes, cache: Cache) -> f64 {
        let platform = Combination::of(machine.clone(), self.nodes, Some(volumes.clone()), cache, self.redundancy).ok();
        let allowed = |platform: Combination| self.seconds?.allowed(&platform);
        platform.and_then(allowed).map_or(0.0, |(times, _)| times)
    }

    fn hold(&mut self, machine: &Machine, volumes: Option<Volumes>, cache: Cache) {
        let what = volumes.as_ref().map_or_else(|| "storage that is built in".to_owned(), Volumes::name);
        let name = format!("{} with {what}", machine.name);
        let Self { need, nodes, redundancy, prices, seconds, ranking, .. } = self;
        let platform = match Combination::of(machine.clone(), *nodes, volumes, cache, *redundancy) {
            Ok(platform) => platform,
            Err(CombinationError::Apart { problem, .. }) => return ranking.left_out.push((name, problem)),
            Err(problem) => return ranking.left_out.push((name, problem.to_string())),
        };
        let allowed = match seconds {
            Some(seconds) => {
                let allowed = seconds.allowed(&platform);
                allowed.map(|(times, whose)| (times * need.per_s / seconds.headroom, whose))
            }
            None => {
                let sustained = Expectation::with_redo(&platform, need.asked, need.redo_bytes).sustained();
                sustained.map(|sustained| (sustained.per_s, sustained.whose))
            }
        };
        let Some((per_s, whose)) = allowed else {
            return ranking.left_out.push((name, "no limit of it is published".to_owned()));
        };
        // Half of an answer is none: a platform whose other limits nobody publishes may carry much less.
        let mut unpublished = Unpublished::of(&platform, &need.asked);
        if need.redo_bytes > 0.0 && platform.volumes.is_none() && machine.uncached.is_none() {
            unpublished.limits.push(format!("what {} sends to volumes, with redo on some", machine.name));
        }
        if !unpublished.is_empty() {
            return ranking.left_out.push((name, not_published(&unpublished.limits)));
        }
        let price = prices.and_then(|prices| prices.of(&platform));
        let sized = Sized { platform, per_s, whose, price };
        if sized.per_s >= need.per_s { ranking.carry.push(sized) } else { ranking.fail.push(sized) }
    }
}

fn not_published(limits: &[String]) -> String {
    format!("no limit is published of {}", limits.join(", "))
}

/// What has to be provisioned of one volume for `iops` requests per second, as the kind counts them, and `megabytes`: requests, and
/// throughput in its unit.
fn bought(kind: &VolumeKind, iops: f64, megabytes: f64) -> (Option<f64>, Option<f64>) {
    let wanted = (megabytes / kind.unit.in_megabytes(1.0)).ceil();
    let iops = kind.iops.as_ref().filter(|rule| rule.provisioned).map(|rule| {
        // Throughput is had for requests, so these must be enough for it too, beyond that which there is for any number of them.
        let for_throughput = kind.throughput.as_ref().and_then(|rule| {
            let has_anyway = rule.min.or(rule.included).unwrap_or(0.0);
            let per = rule.max_per_iops.or(rule.per_iops).filter(|_| wanted > has_anyway)?;
            Some((wanted / per).ceil())
        });
        iops.ceil().max(1.0).max(for_throughput.unwrap_or(0.0)).max(rule.included.unwrap_or(0.0))
    });
    let throughput = kind.throughput.as_ref().filter(|rule| rule.provisioned);
    (iops, throughput.map(|rule| wanted.max(rule.included.unwrap_or(0.0)).max(1.0)))
}
