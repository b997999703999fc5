//! What clouds publish of their machines and volumes, and what a platform made of them should reach.
//!
//! The figures are data: `published/*.toml`, a line for each machine and volume, with the page that they are from and the day on which that was
//! looked up. What was not found stays out. A user's own file of the same form extends and corrects them. From there on all is arithmetic: [`Expectation`] says which
//! limit binds at which load, and how long bursts last.

mod combination;
#[cfg(test)]
mod demand_tests;
mod file;
mod limits;
mod prices;
pub mod recorded;
mod rule;
#[cfg(test)]
mod seed_tests;
mod sizing;
#[cfg(test)]
mod sizing_tests;
mod standing;
#[cfg(test)]
mod tests;
mod volumes;
mod words;

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use serde::{Deserialize, Serialize};

use crate::units::edit_distance;
use file::{Entries, read};

pub use combination::{Asked, Cache, Combination, CombinationError, Redundancy};
pub use file::FileError;
pub use limits::{Limit, Whose};
pub use prices::Prices;
pub use rule::Rule;
pub use sizing::{
    DEFAULT_HEADROOM, MEASURED_OF_PUBLISHED, Need, Ranking, Seconds, Sized, covered_by, rank, rank_recorded,
};
pub use standing::{Source, Standing, State};
pub use volumes::{VolumeError, Volumes};
pub use words::{Expectation, Phase, allowed_by, length, measured_against, sentences};

// What nobody publishes of a platform though a load needs it: a ceiling without it may be too high.

/// What is not published of a platform and a load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unpublished {
    /// Of what no limit is known, in words that stand after "no limit is known of".
    pub limits: Vec<String>,
    /// Whether nothing limits the bytes of the load, so that none can be said of it.
    pub has_no_bytes: bool,
    /// Of what size, in KiB, the requests are whose rates are published, where those of the load are larger.
    pub smaller_kib: Option<f64>,
}

impl Unpublished {
    /// Of `platform` under a load of `asked`.
    pub fn of(platform: &Combination, asked: &Asked) -> Self {
        let machine = &platform.machine;
        let mut found = Self::default();
        match (&platform.volumes, machine.local) {
            (Some(volumes), _) => {
                if volumes.each.iops.is_none() {
                    found.limits.push(format!("requests of {}", volumes.kind.name));
                }
                if volumes.each.mb_per_s.is_none() {
                    found.limits.push(format!("throughput of {}", volumes.kind.name));
                }
                found.limits.extend(without_a_most(&volumes.kind));
                if volumes.kind.over_network && machine.network_mbit.is_none() {
                    found.limits.push(format!("the network of {}", machine.name));
                }
                if !volumes.kind.over_network && machine.to(&volumes.kind).is_none() {
                    found.limits.push(format!("what {} sends to {}", machine.name, volumes.kind.kind));
                }
            }
            (None, Some(local)) => found.of_local(machine, local, asked),
            (None, None) => {}
        }
        found
    }

    /// Rates of requests say nothing of larger ones: of those bytes may be the limit.
    fn of_local(&mut self, machine: &Machine, local: Local, asked: &Asked) {
        let name = &machine.name;
        let is_larger = local.block_kib.is_none_or(|kib| asked.block_bytes > kib * 1024.0);
        let (reads, writes) = (asked.read_share > 0.0, asked.read_share < 1.0);
        if reads && is_larger && local.read_throughput.is_none() {
            self.limits.push(format!("bytes read from the storage in {name}"));
            self.has_no_bytes = true;
        }
        if writes && local.write_iops.is_none() {
            self.limits.push(format!("writes of the storage in {name}"));
        } else if writes && is_larger && local.write_throughput.is_none() {
            self.limits.push(format!("bytes written to the storage in {name}"));
            self.has_no_bytes = true;
        }
        self.smaller_kib = local.block_kib.filter(|_| self.has_no_bytes);
    }

    /// Whether all that the load needs is published.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// In words that stand after "no limit is known of".
    pub fn words(&self) -> String {
        self.limits.join(", ")
    }
}

/// What can be bought of a kind in any number, as far as anybody says: what is provisioned with no most.
fn without_a_most(kind: &VolumeKind) -> impl Iterator<Item = String> {
    let bought = |rule: &Option<Rule>, what: &str| {
        let has_none = rule.as_ref().is_some_and(|rule| rule.provisioned && rule.max.is_none());
        has_none.then(|| format!("the most {what} that can be bought of {}", kind.name))
    };
    [bought(&kind.iops, "requests"), bought(&kind.throughput, "throughput")].into_iter().flatten()
}

/// Machines, volumes and flows, with where their figures are from.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    sources: BTreeMap<String, Source>,
    machines: Vec<Machine>,
    volumes: Vec<VolumeKind>,
    flows: Vec<Flow>,
    gaps: Vec<String>,
}

const PUBLISHED: [(&str, &str); 4] = [
    ("published/azure.toml", include_str!("published/azure.toml")),
    ("published/aws.toml", include_str!("published/aws.toml")),
    ("published/gcp.toml", include_str!("published/gcp.toml")),
    ("published/oci.toml", include_str!("published/oci.toml")),
];

static BUILT_IN: LazyLock<Catalogue> = LazyLock::new(|| {
    let mut catalogue = Catalogue::default();
    for (file, text) in PUBLISHED {
        catalogue.add(file, text).expect("a test reads what is built in");
    }
    catalogue
});

static IN_REPORTS: OnceLock<Catalogue> = OnceLock::new();

impl Catalogue {
    /// What the program brings.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// What reports of runs look names up in: what the program brings, or what [`Self::use_in_reports`] put in its place.
    pub fn in_reports() -> &'static Self {
        IN_REPORTS.get().unwrap_or(&BUILT_IN)
    }

    /// Has reports of this process look names up here. The first to be put there stays.
    pub fn use_in_reports(self) {
        let _ = IN_REPORTS.set(self);
    }

    /// Adds what `text` has, which is the file `file`. An entry of a name that is known stands in the place of that, and an alias that is
    /// known is of the later entry.
    ///
    /// # Errors
    /// If the file is not of that form, with the line. Then nothing was added.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), FileError> {
        let Entries { sources, machines, volumes, flows, gaps } = read(file, text, &self.sources)?;
        self.sources.extend(sources);
        for machine in machines {
            put(&mut self.machines, machine, |it| (it.name.as_str(), &mut it.aliases));
        }
        for volume in volumes {
            put(&mut self.volumes, volume, |it| (it.name.as_str(), &mut it.aliases));
        }
        self.flows.extend(flows);
        self.gaps.extend(gaps);
        Ok(())
    }

    /// The machine of that name, as loosely as people write it.
    ///
    /// # Errors
    /// If none is called so, or several are.
    pub fn machine(&self, name: &str) -> Result<&Machine, NameError> {
        find(Named::Machine, name, self.machines.iter().map(|it| (it, it.name.as_str(), it.aliases.as_slice())))
    }

    /// The kind of volume of that name.
    ///
    /// # Errors
    /// If none is called so, or several are.
    pub fn volume(&self, name: &str) -> Result<&VolumeKind, NameError> {
        find(Named::Volume, name, self.volumes.iter().map(|it| (it, it.name.as_str(), it.aliases.as_slice())))
    }

    /// All machines, cloud by cloud.
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// All kinds of volumes, cloud by cloud.
    pub fn volumes(&self) -> &[VolumeKind] {
        &self.volumes
    }

    /// Limits of single connections.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// What was looked for and not found, and clouds of which only volumes are known: no answer counts them.
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps = self.gaps.clone();
        let has_machines = |cloud: &str| self.machines.iter().any(|machine| machine.cloud == cloud);
        for kind in self.volumes.iter().filter(|kind| !has_machines(&kind.cloud)) {
            let gap = format!("any machine of {}", kind.cloud);
            if !gaps.contains(&gap) {
                gaps.push(gap);
            }
        }
        gaps
    }

    /// Where figures are from that name `source`.
    pub fn source(&self, source: &str) -> Option<&Source> {
        self.sources.get(source)
    }
}

/// The name of an entry, and its aliases.
type Names<T> = for<'a> fn(&'a mut T) -> (&'a str, &'a mut Vec<String>);

/// The later entry has all of its names: it takes the place of those that are called so, and others lose an alias that is one of them. Each
/// name is of one entry then, and none that was added later is out of reach.
fn put<T>(entries: &mut Vec<T>, mut entry: T, names: Names<T>) {
    let (name, aliases) = names(&mut entry);
    let keys: Vec<String> = [name].into_iter().chain(aliases.iter().map(String::as_str)).map(key).collect();
    let is_taken = |name: &str| keys.contains(&key(name));
    let place = entries.iter_mut().position(|other| is_taken(names(other).0));
    entries.retain_mut(|other| !is_taken(names(other).0));
    entries.iter_mut().for_each(|other| names(other).1.retain(|alias| !is_taken(alias)));
    // Nothing before the first that was taken away is gone, so its place is still the same.
    entries.insert(place.unwrap_or(entries.len()), entry);
}

/// Share of a flow's limit that headers take at an MTU of 1500 with IPv6 and all options, and what measuring may be off by.
const HEADERS: f64 = 0.08;
const OFF: f64 = 0.01;

/// Rates that some volumes of the built-in catalogue are limited to, each once, with what they are.
type Marks = LazyLock<Vec<(f64, String)>>;

static REQUESTS: Marks = LazyLock::new(|| marks(false));
static BYTES: Marks = LazyLock::new(|| marks(true));

fn marks(is_bytes: bool) -> Vec<(f64, String)> {
    let mut marks: Vec<(f64, Vec<String>)> = Vec::new();
    for (rate, words) in Catalogue::built_in().volumes().iter().flat_map(|kind| of(kind, is_bytes)) {
        match marks.iter_mut().find(|(known, _)| *known == rate) {
            Some((_, known)) if known.contains(&words) => {}
            Some((_, known)) => known.push(words),
            None => marks.push((rate, vec![words])),
        }
    }
    let words = |mut words: Vec<String>| {
        // What a volume has by itself comes before the largest of a kind and before bursts.
        words.sort_by_key(|words| words.starts_with("the "));
        joined(&words)
    };
    marks.into_iter().map(|(rate, of)| (rate, words(of))).collect()
}

/// What volumes of the built-in catalogue are limited to `per_s`, if some are within a share `tolerance`: requests per second, or bytes
/// per second where `is_bytes`. The nearest counts.
pub fn like(is_bytes: bool, per_s: f64, tolerance: f64) -> Option<&'static str> {
    let marks: &'static [(f64, String)] = if is_bytes { &BYTES } else { &REQUESTS };
    let distance = |mark: f64| (per_s / mark - 1.0).abs();
    let (mark, words) = marks.iter().min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)))?;
    (distance(*mark) <= tolerance).then_some(words.as_str())
}

/// Rates of a kind that a cap may be at, with what they are: that of its one size, what is included, the most, and bursts.
fn of(kind: &VolumeKind, is_bytes: bool) -> Vec<(f64, String)> {
    let name = format!("{} {}", kind.cloud, kind.name.trim_start_matches(&format!("{} ", kind.cloud)));
    let in_bytes = |rate: f64| if is_bytes { kind.unit.in_megabytes(rate) * 1e6 } else { rate };
    let mut marks = Vec::new();
    let mut add = |rate: Option<f64>, words: String| marks.extend(rate.map(|rate| (in_bytes(rate), words)));
    let rule = if is_bytes { &kind.throughput } else { &kind.iops };
    if let Some(rule) = rule {
        add(rule.fixed, name.clone());
        add(rule.included, name.clone());
        add(rule.max, format!("the largest {name}"));
        for (index, (size, rate)) in rule.up_to.iter().enumerate() {
            let words = match index.checked_sub(1).and_then(|before| rule.up_to.get(before)) {
                None => format!("{name} up to {size} GiB"),
                Some((before, _)) => format!("{name} above {before} GiB"),
            };
            add(Some(*rate), words);
        }
    }
    // Bursts of all sizes of one kind are one.
    let of_kind = format!("{} {}", kind.cloud, kind.kind);
    if let Some(burst) = &kind.burst {
        let rule = if is_bytes { &burst.throughput } else { &burst.iops };
        add(rule.as_ref().and_then(|rule| rule.fixed.or(rule.max)), format!("the burst of {of_kind}"));
    }
    if let Some(burst) = kind.on_demand_burst {
        add(Some(if is_bytes { burst.throughput } else { burst.iops }), format!("the on-demand burst of {of_kind}"));
    }
    marks
}

/// How many names are written out.
const NAMES: usize = 5;

/// `Azure P40 and P50`: of names in a row that begin with the same cloud, it stands once.
fn joined(words: &[String]) -> String {
    let mut text = String::new();
    let (words, more) = words.split_at(if words.len() > NAMES + 1 { NAMES } else { words.len() });
    for (index, word) in words.iter().enumerate() {
        let cloud = |word: &str| word.split_once(' ').map(|(cloud, rest)| (cloud.to_owned(), rest.to_owned()));
        let before = index.checked_sub(1).and_then(|before| cloud(&words[before]));
        let own = match (before, cloud(word)) {
            (Some((before, _)), Some((cloud, rest))) if before == cloud && cloud != "the" => rest,
            _ => word.clone(),
        };
        let between = match index {
            0 => "",
            _ if index + 1 == words.len() && more.is_empty() => " and ",
            _ => ", ",
        };
        text.push_str(between);
        text.push_str(&own);
    }
    if !more.is_empty() {
        text.push_str(&format!(" and {} others", more.len()));
    }
    text
}

/// Whose published limit of a flow this rate is at, on a machine whose firmware calls itself so: gigabits per second, and of what.
pub fn flow_like(machine: Option<&str>, bits_per_s: f64) -> Option<(f64, &'static str)> {
    let machine = machine?;
    let is_near = |limit: f64| (limit * (1.0 - HEADERS)..=limit * (1.0 + OFF)).contains(&(bits_per_s / 1e9));
    let mut flows = Catalogue::built_in().flows().iter();
    let flow = flows.find(|flow| machine.contains(&flow.firmware) && is_near(flow.gbit_per_s))?;
    Some((flow.gbit_per_s, flow.what.as_str()))
}

/// How many names are offered for one that is not known.
const MAX_OFFERED: usize = 6;

/// Why a name says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No entry is called so; these are called nearly so.
    #[error("no {what} is called `{name}`")]
    Unknown {
        /// `machine` or `volume`.
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest names, the nearest first.
        near: Vec<String>,
    },
    /// It may be several.
    #[error("`{name}` may be any of {} {what}s", among.len())]
    Ambiguous {
        /// `machine` or `volume`.
        what: &'static str,
        /// The name.
        name: String,
        /// Which.
        among: Vec<String>,
    },
}

impl NameError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { near, .. } if near.is_empty() => {
                "`plimsoll platforms list` shows all that are known, and `--platforms-file` adds others".to_owned()
            }
            Self::Unknown { near, .. } => format!(
                "the nearest are {}; `plimsoll platforms list` shows all, and `--platforms-file` adds others",
                near.join(", ")
            ),
            Self::Ambiguous { among, .. } => format!("write one of {}", among.join(", ")),
        }
    }

    /// Whether the name is nearly one, so that it is probably meant as one.
    pub fn is_near(&self) -> bool {
        match self {
            Self::Ambiguous { .. } => true,
            Self::Unknown { name, near, .. } => {
                let name = key(name);
                let most = if name.len() < 5 { 1 } else { 2 };
                near.first().is_some_and(|near| name.len() > 2 && edit_distance(&key(near), &name) <= most)
            }
        }
    }
}

/// What is the same in all ways of writing a name: `Standard_D8s_v3`, `D8s-v3` and `d8sv3` are one.
fn key(name: &str) -> String {
    let lower = name.trim().to_ascii_lowercase();
    let lower = lower.strip_prefix("standard_").unwrap_or(&lower);
    lower.chars().filter(|c| c.is_ascii_alphanumeric()).collect()
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// A machine.
    Machine,
    /// A volume.
    Volume,
}

impl Named {
    fn word(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Volume => "volume",
        }
    }

    /// Whether `D8s` may stand for `D8s_v3`. Of volumes the version is another product: Premium SSD is not Premium SSD v2.
    fn may_leave_out_version(self) -> bool {
        self == Self::Machine
    }
}

/// Which of `entries` is called `name`: each has its name and its aliases. The whole name counts first, then, of machines, a name of which
/// only the version is left out, if there is one such alone.
fn find<'a, T>(
    named: Named,
    name: &str,
    entries: impl Iterator<Item = (&'a T, &'a str, &'a [String])>,
) -> Result<&'a T, NameError> {
    let what = named.word();
    let asked = key(name);
    let mut without_version: Vec<(&T, &str)> = Vec::new();
    let mut near: Vec<(usize, bool, &str)> = Vec::new();
    for (entry, own, aliases) in entries {
        let keys = || [own].into_iter().chain(aliases.iter().map(String::as_str)).map(key);
        if !asked.is_empty() && keys().any(|key| key == asked) {
            return Ok(entry);
        }
        let is_version = |rest: &str| {
            let number = rest.strip_prefix('v');
            number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        };
        let leaves_out = named.may_leave_out_version() && !asked.is_empty();
        if leaves_out && keys().any(|key| key.strip_prefix(&asked).is_some_and(is_version)) {
            without_version.push((entry, own));
        }
        let distance = keys().map(|key| edit_distance(&key, &asked)).min().unwrap_or(usize::MAX);
        // Of names that are as near those of the same family come first.
        let is_other = !keys().any(|key| key.chars().next() == asked.chars().next());
        near.push((distance, is_other, own));
    }
    if let [(entry, _)] = without_version.as_slice() {
        return Ok(entry);
    }
    if !without_version.is_empty() {
        let among = without_version.iter().map(|(_, name)| (*name).to_owned()).collect();
        return Err(NameError::Ambiguous { what, name: name.to_owned(), among });
    }
    near.sort();
    let is_near = |(distance, ..): &&(usize, bool, &str)| *distance <= 1 + asked.len() / 3;
    let near = near.iter().filter(is_near).take(MAX_OFFERED).map(|(.., name)| (*name).to_owned()).collect();
    Err(NameError::Unknown { what, name: name.to_owned(), near })
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
    /// To volumes of other kinds with limits of their own, by what those call them (`limits`).
    #[serde(default)]
    pub kinds: BTreeMap<String, Rates>,
    /// Network, in megabits (10^6) per second.
    pub network_mbit: Option<f64>,
    /// The same in a burst.
    pub network_burst_mbit: Option<f64>,
    /// Storage that is built in.
    pub local: Option<Local>,
    #[serde(default, skip_serializing)]
    state: Option<State>,
    #[serde(default, skip_serializing)]
    retires: Option<String>,
    /// Whether it is still sold, and how far its figures can be trusted.
    #[serde(skip_deserializing)]
    pub standing: Standing,
    /// The most requests per second to one volume, whatever that allows. Of its series.
    #[serde(skip_deserializing)]
    pub one_volume_iops: Option<f64>,
    /// Whether no volume of it may be attached to another machine too. Of its series.
    #[serde(skip_deserializing)]
    pub no_multi_attach: bool,
    /// Whether the buyer chooses the memory, `memory_gib` at most. Of its series.
    #[serde(skip_deserializing)]
    pub memory_is_chosen: bool,
    /// How long a full credit lasts at the whole burst rate, in minutes. Of its series.
    #[serde(skip_deserializing)]
    pub burst_minutes: Option<f64>,
    /// After how many hours there is a full credit again, where that is published. Of its series.
    #[serde(skip_deserializing)]
    pub burst_refill_hours: Option<f64>,
}

impl Machine {
    /// What it sends to volumes of that kind, in the long run and in a burst; absent where that is not known. Ultra limits that are not
    /// published are the ordinary ones.
    pub fn to(&self, kind: &VolumeKind) -> Option<(Rates, Option<Rates>)> {
        match kind.limits.as_deref() {
            Some("ultra") if self.ultra.is_some() => Some((self.ultra?, self.ultra_burst)),
            None | Some("ultra") => Some((self.uncached?, self.uncached_burst)),
            Some(other) => Some((*self.kinds.get(other)?, None)),
        }
    }

    /// How many machines of it may have one volume of that kind attached at the same time; absent where that is not known.
    pub fn shared_by(&self, kind: &VolumeKind) -> Option<u32> {
        if self.no_multi_attach { Some(1) } else { kind.max_nodes }
    }
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

/// What a volume gives of small requests at most.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Small {
    /// Of requests of so many KiB.
    pub kib: f64,
    /// Throughput of those, in the volume's unit. Larger ones come no more often.
    pub throughput: Rule,
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
    /// A request of fewer KiB takes as much of the throughput as one of so many.
    pub costs_kib: Option<f64>,
    /// What holds small requests back where that is less than `throughput` and `iops` say.
    pub small: Option<Small>,
    /// How many machines may have one attached at the same time; absent where that was not looked up.
    pub max_nodes: Option<u32>,
    /// Whether it is made for large requests in a row, as hard disks are: never proposed for small ones.
    #[serde(default)]
    pub streams: bool,
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
    /// Families of machines that alone can have it; `c3:88` are those with at least 88 processors.
    #[serde(default)]
    pub families: Vec<String>,
    #[serde(default, skip_serializing)]
    state: Option<State>,
    #[serde(default, skip_serializing)]
    retires: Option<String>,
    /// Whether it is still sold, and how far its figures can be trusted.
    #[serde(skip_deserializing)]
    pub standing: Standing,
}

impl VolumeKind {
    /// How many requests one of `bytes` counts as.
    pub fn counted_as(&self, bytes: f64) -> f64 {
        self.counts_kib.map_or(1.0, |kib| (bytes / (kib * 1024.0)).ceil().max(1.0))
    }

    /// Whether it comes in that size, where it comes in any.
    pub(crate) fn has_size(&self, gib: f64) -> bool {
        self.sizes_gib.is_none_or(|(least, largest)| (least..=largest).contains(&gib))
    }

    /// How many bytes one of `bytes` takes of the throughput.
    pub fn costs(&self, bytes: f64) -> f64 {
        self.costs_kib.map_or(bytes, |kib| bytes.max(kib * 1024.0))
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
