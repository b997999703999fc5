//! Which platforms of the catalogue carry a load, and what stands in the way of the others.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::combination::{Asked, Cache, Combination, CombinationError, Redundancy};
use super::file::{FileError, line_of};
use super::limits::Whose;
use super::volumes::Volumes;
use super::words::Expectation;
use super::{Catalogue, Machine, Unpublished, VolumeKind, without_a_most};

/// Numbers of volumes and, of kinds that come in any size, GiB of each that are tried.
const COUNTS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
const SIZES_GIB: [u32; 10] = [64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768];

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
}

/// A platform held against it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sized {
    /// The platform.
    pub platform: Combination,
    /// What it allows in the long run, and whose that is.
    pub per_s: f64,
    /// What binds.
    pub whose: Whose,
    /// What it costs, where that is known.
    pub price: Option<f64>,
}

/// What came of all platforms of the catalogue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranking {
    /// Those that carry the load: the cheapest first, of those without a price and of equal ones that with the fewest processors, memory
    /// and volumes.
    pub carry: Vec<Sized>,
    /// Those that do not: that which comes nearest first.
    pub fail: Vec<Sized>,
    /// Those that cannot be, or of which nothing is published, with why.
    pub left_out: Vec<(String, String)>,
}

/// Holds every machine of `catalogue`, `nodes` of it, against `need`: with each kind of volume of its cloud, in the least number and size
/// that carry it, and with what is built in.
pub fn rank(
    catalogue: &Catalogue,
    need: &Need,
    (nodes, redundancy): (u32, Redundancy),
    prices: Option<&Prices>,
) -> Ranking {
    let mut ranking = Ranking::default();
    let past_cache = need.asked.read_share + (1.0 - need.asked.read_share) * redundancy.copies();
    let mut of_kinds: Vec<(&VolumeKind, Volumes)> = Vec::new();
    for kind in catalogue.volumes() {
        match least(catalogue, kind, need, past_cache) {
            Ok(volumes) => of_kinds.push((kind, volumes)),
            Err(why) => ranking.left_out.push((kind.name.clone(), why)),
        }
    }
    for machine in catalogue.machines() {
        for (_, volumes) in of_kinds.iter().filter(|(kind, _)| kind.cloud == machine.cloud) {
            ranking.hold(machine, nodes, Some(volumes.clone()), redundancy, (need, prices));
        }
        // What is built in is as large as it is, which is not published here.
        if machine.local.is_some() && need.gib == 0.0 {
            ranking.hold(machine, nodes, None, redundancy, (need, prices));
        }
    }
    let resources = |sized: &Sized| {
        let machine = &sized.platform.machine;
        let volumes = sized.platform.volumes.as_ref().map_or(0, |volumes| volumes.count);
        (machine.processors.unwrap_or(u32::MAX), machine.memory_gib.unwrap_or(f64::INFINITY), volumes)
    };
    ranking.carry.sort_by(|a, b| {
        let price = |sized: &Sized| sized.price.unwrap_or(f64::INFINITY);
        let (of_a, of_b) = (resources(a), resources(b));
        price(a)
            .total_cmp(&price(b))
            .then(of_a.0.cmp(&of_b.0))
            .then(of_a.1.total_cmp(&of_b.1))
            .then(of_a.2.cmp(&of_b.2))
            .then(b.per_s.total_cmp(&a.per_s))
    });
    ranking.fail.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
    ranking
}

impl Ranking {
    fn hold(
        &mut self,
        machine: &Machine,
        nodes: u32,
        volumes: Option<Volumes>,
        redundancy: Redundancy,
        (need, prices): (&Need, Option<&Prices>),
    ) {
        let what = volumes.as_ref().map_or_else(|| "storage that is built in".to_owned(), Volumes::name);
        let name = format!("{} with {what}", machine.name);
        let platform = match Combination::of(machine.clone(), nodes, volumes, Cache::None, redundancy) {
            Ok(platform) => platform,
            Err(CombinationError::Apart { problem, .. }) => return self.left_out.push((name, problem)),
            Err(problem) => return self.left_out.push((name, problem.to_string())),
        };
        let Some(sustained) = Expectation::with_redo(&platform, need.asked, need.redo_bytes).sustained() else {
            return self.left_out.push((name, "no limit of it is published".to_owned()));
        };
        // Half of an answer is none: a platform whose other limits nobody publishes may carry much less.
        let mut unpublished = Unpublished::of(&platform, &need.asked);
        if need.redo_bytes > 0.0 && platform.volumes.is_none() && machine.uncached.is_none() {
            unpublished.limits.push(format!("what {} sends to volumes, with redo on some", machine.name));
        }
        if !unpublished.is_empty() {
            return self.left_out.push((name, not_published(&unpublished.limits)));
        }
        let price = prices.and_then(|prices| prices.of(&platform));
        let sized = Sized { platform, per_s: sustained.per_s, whose: sustained.whose, price };
        if sized.per_s >= need.per_s { self.carry.push(sized) } else { self.fail.push(sized) }
    }
}

fn not_published(limits: &[String]) -> String {
    format!("no limit is published of {}", limits.join(", "))
}

/// The least number of volumes of a kind, and the least size and provision of each, that carry the load; else the most that can be, of
/// which the ranking says what binds.
fn least(catalogue: &Catalogue, kind: &VolumeKind, need: &Need, past_cache: f64) -> Result<Volumes, String> {
    let without_a_most: Vec<String> = without_a_most(kind).collect();
    if !without_a_most.is_empty() {
        return Err(not_published(&without_a_most));
    }
    let needed = need.per_s * past_cache;
    let counted = needed * kind.counted_as(need.asked.block_bytes);
    let megabytes = needed * need.asked.block_bytes / 1e6;
    let mut most: Option<Volumes> = None;
    let mut refused = None;
    for count in COUNTS {
        let each = f64::from(count);
        let sizes: Vec<Option<u32>> = match kind.size_gib {
            Some(_) => vec![None],
            None => SIZES_GIB.into_iter().map(Some).collect(),
        };
        for size in sizes {
            let written = written(kind, size, counted / each, megabytes / each);
            let volumes = match Volumes::parse(&format!("{written}x{count}"), catalogue) {
                Ok(volumes) => volumes,
                Err(problem) => {
                    refused = Some(problem.to_string());
                    continue;
                }
            };
            let of_one = volumes.each;
            let carries = of_one.iops.is_none_or(|iops| iops >= counted / each)
                && of_one.mb_per_s.is_none_or(|mb| mb >= megabytes / each)
                && volumes.size_gib.is_none_or(|size| size * each >= need.gib);
            if carries {
                return Ok(volumes);
            }
            most = Some(volumes);
        }
    }
    match most {
        Some(most) if most.size_gib.is_some_and(|size| size * f64::from(most.count) < need.gib) => {
            Err("too small for the data".to_owned())
        }
        Some(most) => Ok(most),
        None => Err(refused.unwrap_or_else(|| "none can be had".to_owned())),
    }
}

/// One of them as it is asked for, with what has to be provisioned for `iops` requests per second, as the kind counts them, and `megabytes`.
fn written(kind: &VolumeKind, size: Option<u32>, iops: f64, megabytes: f64) -> String {
    let mut options: Vec<String> = size.iter().map(|size| format!("{size}G")).collect();
    let throughput = (megabytes / kind.unit.in_megabytes(1.0)).ceil();
    let buys = |rule: &Option<super::rule::Rule>| rule.as_ref().filter(|rule| rule.provisioned).cloned();
    if let Some(rule) = buys(&kind.iops) {
        // Throughput is had for requests, so these must be enough for it too, beyond that which there is for any number of them.
        let for_throughput = kind.throughput.as_ref().and_then(|rule| {
            let has_anyway = rule.min.or(rule.included).unwrap_or(0.0);
            let per = rule.max_per_iops.or(rule.per_iops).filter(|_| throughput > has_anyway)?;
            Some((throughput / per).ceil())
        });
        let asked = iops.ceil().max(1.0).max(for_throughput.unwrap_or(0.0));
        options.push(format!("iops={}", asked.max(rule.included.unwrap_or(0.0))));
    }
    if let Some(rule) = buys(&kind.throughput) {
        options.push(format!("throughput={}", throughput.max(rule.included.unwrap_or(0.0)).max(1.0)));
    }
    if options.is_empty() { kind.name.clone() } else { format!("{}:{}", kind.name, options.join(",")) }
}

// What a user pays: a list of his own, in whatever money and for whatever time. The program brings none.

/// Prices of machines and volumes.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// What they are in, as `EUR a month`.
    pub unit: String,
    machines: BTreeMap<String, f64>,
    volumes: BTreeMap<String, VolumePrice>,
}

/// What one volume costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct VolumePrice {
    /// The volume as it is.
    #[serde(default)]
    each: f64,
    /// For each GiB.
    #[serde(default)]
    per_gib: f64,
    /// For each request per second beyond what is included.
    #[serde(default)]
    per_iops: f64,
    /// For each unit of throughput, as its cloud sells it, beyond what is included.
    #[serde(default)]
    per_throughput: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    unit: String,
    #[serde(default)]
    machines: BTreeMap<Spanned<String>, f64>,
    #[serde(default)]
    volumes: BTreeMap<Spanned<String>, VolumePrice>,
}

impl Prices {
    /// Reads `text`, which is the file `file`.
    ///
    /// # Errors
    /// If it is not of that form, a price is below 0, or a name is none of `catalogue`; with the line.
    pub fn read(file: &str, text: &str, catalogue: &Catalogue) -> Result<Self, FileError> {
        let fail = |at: usize, problem: String, hint: String| FileError {
            file: file.to_owned(),
            line: line_of(text, at),
            problem,
            hint,
        };
        let written: Written = toml::from_str(text).map_err(|problem| {
            let at = problem.span().map_or(0, |span| span.start);
            let hint = "docs/platforms.md shows a list of prices".to_owned();
            fail(at, problem.message().trim_end().replace('\n', "; "), hint)
        })?;
        let checked = |at: usize, name: &str, prices: &[f64]| {
            if prices.iter().all(|price| price.is_finite() && *price >= 0.0) {
                return Ok(());
            }
            Err(fail(at, format!("the price of `{name}` is below 0 or no number"), "write what it costs".to_owned()))
        };
        let mut prices = Self { unit: written.unit, machines: BTreeMap::new(), volumes: BTreeMap::new() };
        for (name, price) in &written.machines {
            let at = name.span().start;
            checked(at, name.get_ref(), &[*price])?;
            let machine = catalogue.machine(name.get_ref());
            let machine = machine.map_err(|problem| fail(at, problem.to_string(), problem.hint()))?;
            prices.machines.insert(machine.name.clone(), *price);
        }
        for (name, price) in &written.volumes {
            let at = name.span().start;
            checked(at, name.get_ref(), &[price.each, price.per_gib, price.per_iops, price.per_throughput])?;
            let kind = catalogue.volume(name.get_ref());
            let kind = kind.map_err(|problem| fail(at, problem.to_string(), problem.hint()))?;
            prices.volumes.insert(kind.name.clone(), *price);
        }
        Ok(prices)
    }

    /// What a platform costs; not known where the price of a part is not.
    pub fn of(&self, platform: &Combination) -> Option<f64> {
        let machines = self.machines.get(&platform.machine.name)? * f64::from(platform.nodes);
        let volumes = platform.volumes.as_ref().map_or(Some(0.0), |volumes| self.of_volumes(volumes))?;
        Some(machines + volumes)
    }

    fn of_volumes(&self, volumes: &Volumes) -> Option<f64> {
        let price = self.volumes.get(&volumes.kind.name)?;
        let beyond = |rule: &Option<super::rule::Rule>, rate: Option<f64>| {
            let included = rule.as_ref().and_then(|rule| rule.included).unwrap_or(0.0);
            (rate.unwrap_or(0.0) - included).max(0.0)
        };
        // A size that does not matter to the price need not be known.
        let of_size = if price.per_gib > 0.0 { price.per_gib * volumes.size_gib? } else { 0.0 };
        let iops = beyond(&volumes.kind.iops, volumes.each.iops);
        let throughput = volumes.each.mb_per_s.map(|mb| mb / volumes.kind.unit.in_megabytes(1.0));
        let throughput = beyond(&volumes.kind.throughput, throughput);
        let each = price.each + of_size + price.per_iops * iops + price.per_throughput * throughput;
        Some(each * f64::from(volumes.count))
    }
}
