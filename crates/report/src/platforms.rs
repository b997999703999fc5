//! The catalogue of platforms, and what one of them should reach, for a terminal.

use std::io::{self, Write};

use jiff::civil::Date;

use super::grid::Grid;
use super::paper::{Paper, Terminal};
use super::text::NARROWEST;
use super::words::{NONE, UNKNOWN, number};
use model::platforms::{
    Asked, Cache, Catalogue, Combination, Expectation, Limit, Machine, Rates, Rule, Source, Standing, Unpublished,
    VolumeKind, Whose, length, sentences,
};
use model::units::{Bytes, group_thousands, percent};

/// Shares of reads, and sizes of requests, whose ceilings are shown beside those that were asked for.
const READ_SHARES: [f64; 5] = [1.0, 0.9, 0.75, 0.5, 0.0];
const BLOCK_BYTES: [f64; 5] = [4096.0, 8192.0, 65_536.0, 262_144.0, 1_048_576.0];
const HIT_SHARES: [f64; 5] = [0.0, 0.3, 0.5, 0.9, 1.0];

const LEGEND: &str = "These are limits that clouds publish, before a load spread evenly over nodes and volumes: what is measured is less. MB: \
                      1,000,000 bytes. `?`: not published, or not known; `<=`: no more than that, since another limit is not.";

/// Other loads whose ceilings are shown with those of `asked`: other mixes, other sizes, and other shares that the host's cache serves.
pub fn other_loads(platform: &Combination, asked: &Asked) -> [Vec<Asked>; 3] {
    let mixes = READ_SHARES.map(|read_share| Asked { read_share, ..*asked }).to_vec();
    let sizes = BLOCK_BYTES.map(|block_bytes| Asked { block_bytes, ..*asked }).to_vec();
    let hits = match platform.cache {
        Cache::Read => HIT_SHARES.map(|hit_share| Asked { hit_share, ..*asked }).to_vec(),
        Cache::None => Vec::new(),
    };
    [mixes, sizes, hits]
}

/// Writes what `platform` should reach, for a terminal of `width` columns.
///
/// # Errors
/// If `out` fails.
pub fn expectation(
    out: &mut impl Write,
    platform: &Combination,
    expectation: &Expectation,
    (catalogue, today): (&Catalogue, Date),
    width: usize,
) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    for sentence in sentences(platform, expectation).into_iter().chain(platform.cautions(today)) {
        paper.remark(&sentence)?;
    }
    paper.table("Limits", &limits(platform, expectation))?;
    let [mixes, sizes, hits] = other_loads(platform, &expectation.asked);
    let share = |share: f64| format!("{} %", percent(share).trim_end_matches(".0"));
    paper.table("By mix", &ceilings(platform, "reads", &mixes, |asked| share(asked.read_share)))?;
    let size = |asked: &Asked| Bytes(asked.block_bytes as u64).to_string();
    paper.table("By size of requests", &ceilings(platform, "size", &sizes, size))?;
    paper
        .table("By what the host's cache serves", &ceilings(platform, "hits", &hits, |asked| share(asked.hit_share)))?;
    paper.title("From")?;
    for source in sources_of(platform, catalogue) {
        paper.paragraph(&source_words(source), "- ")?;
    }
    paper.gap()?;
    paper.remark(LEGEND)
}

/// Where the figures of a platform are from.
pub fn sources_of<'a>(platform: &Combination, catalogue: &'a Catalogue) -> Vec<&'a Source> {
    let volumes =
        platform.volumes.iter().flat_map(|volumes| [&volumes.kind.source].into_iter().chain(&volumes.kind.also));
    platform.machine.sources.iter().chain(volumes).filter_map(|source| catalogue.source(source)).collect()
}

fn source_words(source: &Source) -> String {
    let Source { document, address, as_of, looked_up, secondary } = source;
    let copy = if *secondary { ", a secondary copy" } else { "" };
    format!("{document} (of {as_of}, read on {looked_up}{copy}): {address}")
}

fn limits(platform: &Combination, expectation: &Expectation) -> Grid {
    let mut grid = Grid::new(1, ["limit", "in the long run", "on credit", "for", "binds at requests/s"]);
    for limit in &expectation.limits {
        let rate = |per_s: f64| {
            let unit = if limit.whose.is_of_requests() { "requests/s" } else { "MB/s" };
            format!("{} {unit}", group_thousands(per_s))
        };
        grid.push(vec![
            limit.whose.words().to_owned(),
            rate(limit.per_s),
            limit.credit.map_or_else(|| NONE.to_owned(), |credit| rate(credit.burst_per_s)),
            credit_length(limit).map_or_else(|| NONE.to_owned(), length),
            group_thousands(limit.binds_at(false).floor()),
        ]);
    }
    let is_on_the_way = expectation.limits.iter().any(|limit| limit.whose == Whose::Network);
    if let Some(mbit) = platform.machine.network_mbit.filter(|_| !is_on_the_way) {
        let megabytes = format!("{} MB/s", group_thousands(mbit / 8.0 * f64::from(platform.nodes)));
        grid.push(vec![
            "the machines' network (not to volumes)".to_owned(),
            megabytes,
            NONE.to_owned(),
            NONE.to_owned(),
            NONE.to_owned(),
        ]);
    }
    grid
}

/// How long a full credit lasts at the whole burst rate, in seconds.
pub fn credit_length(limit: &Limit) -> Option<f64> {
    limit.credit.map(|credit| credit.full / (credit.burst_per_s - limit.per_s))
}

fn ceilings(platform: &Combination, key: &str, loads: &[Asked], name: impl Fn(&Asked) -> String) -> Grid {
    let mut grid = Grid::new(1, [key, "requests/s", "MB/s", "with full credits", "what binds"]);
    for asked in loads {
        let expectation = Expectation::of(platform, *asked);
        let sustained = expectation.sustained();
        let unpublished = Unpublished::of(platform, asked);
        let at_most = if unpublished.is_empty() { "" } else { "<= " };
        let requests = |per_s: f64| format!("{at_most}{}", group_thousands(per_s.floor()));
        let has_bytes = sustained.filter(|_| !unpublished.has_no_bytes);
        grid.push(vec![
            name(asked),
            sustained.map_or_else(|| UNKNOWN.to_owned(), |it| requests(it.per_s)),
            has_bytes.map_or_else(|| UNKNOWN.to_owned(), |it| requests(it.per_s * asked.block_bytes / 1e6)),
            expectation.burst().map_or_else(|| NONE.to_owned(), |it| requests(it.per_s)),
            sustained.map_or_else(|| UNKNOWN.to_owned(), |it| it.whose.words().to_owned()),
        ]);
    }
    grid
}

/// What a list of entries ends with.
const LIST_LEGEND: &str = "Pairs are requests/s and MB/s. `?`: not published, or not known. `of`: the date of the first source; `*`: some                            figures are from a secondary copy; `!`: older than a year, or of no known date.";

/// Writes entries of the catalogue, one a line.
///
/// # Errors
/// If `out` fails.
pub fn list(
    out: &mut impl Write,
    machines: &[&Machine],
    volumes: &[&VolumeKind],
    (gaps, today): (&[String], Date),
    width: usize,
) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    let header = ["machine", "cloud", "vCPU", "GiB", "disks", "cached", "to volumes", "burst", "Mbit/s", "of", "state"];
    let mut grid = Grid::new(1, header);
    for machine in machines {
        grid.push(vec![
            machine.name.clone(),
            machine.cloud.clone(),
            number(machine.processors.map(f64::from)),
            memory(machine),
            number(machine.data_disks.map(f64::from)),
            pair(machine.cached),
            pair(machine.uncached),
            pair(machine.uncached_burst),
            number(machine.network_mbit),
            format!("{}{}", machine.standing.as_of, machine.standing.marks(today)),
            machine.standing.state_words().unwrap_or_else(|| UNKNOWN.to_owned()),
        ]);
    }
    if !grid.is_empty() {
        paper.grid(&grid)?;
        paper.gap()?;
    }
    let header = ["volume", "cloud", "kind", "GiB", "IOPS", "throughput", "burst", "of", "state"];
    let mut grid = Grid::new(1, header);
    for kind in volumes {
        let burst = kind.burst.as_ref();
        let of = |rule: Option<&Rule>, unit: &str| rule.map(|rule| format!("{}{unit}", rule_words(rule)));
        let bursts = [
            of(burst.and_then(|burst| burst.iops.as_ref()), ""),
            of(burst.and_then(|burst| burst.throughput.as_ref()), &format!(" {}", kind.unit.name())),
        ];
        let bursts: Vec<String> = bursts.into_iter().flatten().collect();
        grid.push(vec![
            kind.name.clone(),
            kind.cloud.clone(),
            kind.kind.clone(),
            kind.size_gib.map_or_else(|| "any".to_owned(), |gib| gib.to_string()),
            of(kind.iops.as_ref(), "").unwrap_or_else(|| UNKNOWN.to_owned()),
            of(kind.throughput.as_ref(), &format!(" {}", kind.unit.name())).unwrap_or_else(|| UNKNOWN.to_owned()),
            if bursts.is_empty() { NONE.to_owned() } else { bursts.join(", ") },
            format!("{}{}", kind.standing.as_of, kind.standing.marks(today)),
            kind.standing.state_words().unwrap_or_else(|| UNKNOWN.to_owned()),
        ]);
    }
    if !grid.is_empty() {
        paper.grid(&grid)?;
        paper.gap()?;
    }
    if !gaps.is_empty() {
        paper.remark(&not_in_the_catalogue(gaps))?;
    }
    paper.remark(LIST_LEGEND)
}

/// What was looked for and not found.
pub(super) fn not_in_the_catalogue(gaps: &[String]) -> String {
    format!("Not in the catalogue: {}.", gaps.join("; "))
}

/// `256`, or `<=256` where the buyer chooses it.
pub(super) fn memory(machine: &Machine) -> String {
    let most = if machine.memory_is_chosen { "<=" } else { "" };
    machine.memory_gib.map_or_else(|| UNKNOWN.to_owned(), |gib| format!("{most}{gib}"))
}

fn pair(rates: Option<Rates>) -> String {
    rates.map_or_else(|| UNKNOWN.to_owned(), |rates| format!("{}/{}", rates.iops, rates.mb_per_s))
}

/// A rule in words: `3 per GiB, 100 to 16,000`.
fn rule_words(rule: &Rule) -> String {
    let mut words: Vec<String> = Vec::new();
    words.extend(rule.fixed.map(group_thousands));
    words.extend(rule.per_gib.map(|per| format!("{} per GiB", short(per))));
    words.extend(rule.per_iops.map(|per| format!("{} per IOPS", short(per))));
    words.extend(rule.up_to.iter().map(|(size, rate)| format!("{} up to {size} GiB", short(*rate))));
    if rule.provisioned {
        let included = rule.included.map_or_else(String::new, |it| format!(", {} included", group_thousands(it)));
        words.push(format!("provisioned{included}"));
    }
    words.extend(rule.max_per_gib.map(|per| format!("at most {} per GiB", short(per))));
    words.extend(rule.max_per_iops.map(|per| format!("at most {} per IOPS", short(per))));
    words.extend(rule.min_per_iops.map(|per| format!("at least {} per IOPS", short(per))));
    words.extend(rule.min.map(|min| format!("at least {}", short(min))));
    words.extend(rule.max.map(|max| format!("at most {}", short(max))));
    words.join(", ")
}

fn short(value: f64) -> String {
    if value >= 1_000.0 && value.fract() == 0.0 { group_thousands(value) } else { format!("{value}") }
}

/// Writes all that is known of a machine.
///
/// # Errors
/// If `out` fails.
pub fn machine(
    out: &mut impl Write,
    machine: &Machine,
    (catalogue, today): (&Catalogue, Date),
    width: usize,
) -> io::Result<()> {
    let mut rows = vec![("machine", format!("{} ({})", machine.name, machine.cloud))];
    let mut add = |label, value: Option<String>| rows.push((label, value.unwrap_or_else(|| UNKNOWN.to_owned())));
    let rates = |rates: Option<Rates>| {
        rates.map(|it| format!("{} requests/s, {} MB/s", group_thousands(it.iops), short(it.mb_per_s)))
    };
    add("processors", machine.processors.map(|it| it.to_string()));
    add("memory", Some(format!("{} GiB", memory(machine))));
    add("data disks", machine.data_disks.map(|it| it.to_string()));
    add("cached", rates(machine.cached));
    add("cache", machine.cache_gib.map(|gib| format!("{gib} GiB")));
    add("uncached", rates(machine.uncached));
    let bursts = [
        ("cached burst", machine.cached_burst),
        ("burst", machine.uncached_burst),
        ("ultra", machine.ultra),
        ("ultra burst", machine.ultra_burst),
    ];
    for (label, burst) in bursts.into_iter().filter(|(_, burst)| burst.is_some()) {
        add(label, rates(burst));
    }
    for (kind, limits) in &machine.kinds {
        add("limits", rates(Some(*limits)).map(|rates| format!("{rates} to volumes of `{kind}`")));
    }
    if let Some(iops) = machine.one_volume_iops {
        add("one volume", Some(format!("at most {} requests/s", group_thousands(iops))));
    }
    if let Some(minutes) = machine.burst_minutes {
        let again = machine.burst_refill_hours.map_or_else(String::new, |hours| format!(", once in {hours} hours"));
        add("for", Some(format!("{minutes} minutes at the whole burst rate{again}")));
    }
    let network_burst = machine.network_burst_mbit.map(|mbit| format!(", in a burst {} Mbit/s", group_thousands(mbit)));
    let network_burst = network_burst.unwrap_or_default();
    add("network", machine.network_mbit.map(|mbit| format!("{} Mbit/s{network_burst}", group_thousands(mbit))));
    if let Some(local) = machine.local {
        let number = |it: Option<f64>| it.map_or_else(|| UNKNOWN.to_owned(), group_thousands);
        let of = local.block_kib.map_or_else(String::new, |kib| format!(" of {kib} KiB"));
        let (reads, writes) = (number(Some(local.read_iops)), number(local.write_iops));
        let (read, written) = (number(local.read_throughput), number(local.write_throughput));
        let words = format!("{reads} reads/s and {writes} writes/s{of}, {read} MB/s read and {written} MB/s written");
        add("built in", Some(format!("{words}; ephemeral")));
    }
    rows.extend(standing(&machine.standing, today));
    entry(out, &rows, machine.sources.iter(), catalogue, width)
}

/// Writes all that is known of a kind of volume.
///
/// # Errors
/// If `out` fails.
pub fn volume(
    out: &mut impl Write,
    kind: &VolumeKind,
    (catalogue, today): (&Catalogue, Date),
    width: usize,
) -> io::Result<()> {
    let unit = kind.unit.name();
    let rule = |rule: Option<&Rule>| rule.map_or_else(|| UNKNOWN.to_owned(), rule_words);
    let mut rows = vec![("volume", format!("{} ({}, {})", kind.name, kind.cloud, kind.kind))];
    let size = match (kind.size_gib, kind.sizes_gib) {
        (Some(gib), _) => format!("{gib} GiB"),
        (None, Some((least, largest))) => format!("{least} to {largest} GiB"),
        (None, None) => UNKNOWN.to_owned(),
    };
    rows.push(("size", size));
    rows.push(("requests", rule(kind.iops.as_ref())));
    rows.push(("throughput", format!("{} ({unit})", rule(kind.throughput.as_ref()))));
    if let Some(kib) = kind.counts_kib {
        rows.push(("counted", format!("a request of more than {kib} KiB counts as several")));
    }
    if let Some(kib) = kind.costs_kib {
        rows.push((
            "costs",
            format!("a random request of less than {kib} KiB takes as much throughput as one of {kib} KiB"),
        ));
    }
    if let Some(small) = &kind.small {
        let words = rule_words(&small.throughput);
        rows.push((
            "small",
            format!("requests of {} KiB: {words} ({unit}); larger ones come no more often", small.kib),
        ));
    }
    if kind.streams {
        rows.push(("for", "large requests in a row: in no ranking for small ones".to_owned()));
    }
    if let Some(burst) = &kind.burst {
        let how_long = [
            burst.minutes.map(|minutes| format!("for {minutes} minutes from full")),
            burst.credit_ios.map(|ios| format!("from a credit of {} requests", group_thousands(ios))),
            burst.credit_mib_per_gib.map(|mib| format!("from a credit of {mib} MiB for each GiB")),
        ];
        let words: Vec<String> = [
            burst.iops.as_ref().map(|it| format!("{} requests/s", rule_words(it))),
            burst.throughput.as_ref().map(|it| format!("{} {unit}", rule_words(it))),
        ]
        .into_iter()
        .chain(how_long)
        .flatten()
        .collect();
        rows.push(("burst", words.join("; ")));
    }
    if let Some(burst) = kind.on_demand_burst {
        let words = format!("{} requests/s, {} {unit}, billed", group_thousands(burst.iops), short(burst.throughput));
        rows.push(("on demand", words));
    }
    rows.push((
        "host cache",
        if kind.host_cache { "can lie before it" } else { "not known to lie before it" }.to_owned(),
    ));
    if !kind.over_network {
        let nodes = kind.max_nodes.map_or_else(|| UNKNOWN.to_owned(), |most| most.to_string());
        rows.push(("attached to", format!("{nodes} machines at most at the same time")));
    }
    if kind.over_network {
        rows.push(("reached", "over the machine's network".to_owned()));
    }
    if let Some(calls) = kind.calls_per_connection {
        rows.push(("one connection", format!("at most {calls} NFS calls at the same time")));
    }
    if !kind.families.is_empty() {
        rows.push(("only with", kind.families.join(", ")));
    }
    rows.extend(standing(&kind.standing, today));
    entry(out, &rows, [&kind.source].into_iter().chain(&kind.also), catalogue, width)
}

/// State and date of an entry.
fn standing(standing: &Standing, today: Date) -> [(&'static str, String); 2] {
    [("state", standing.state_words().unwrap_or_else(|| UNKNOWN.to_owned())), ("as of", standing.words(today))]
}

fn entry<'a>(
    out: &mut dyn Write,
    rows: &[(&str, String)],
    sources: impl Iterator<Item = &'a String>,
    catalogue: &Catalogue,
    width: usize,
) -> io::Result<()> {
    let mut paper = Terminal { out, width: width.max(NARROWEST) };
    rows.iter().try_for_each(|(label, text)| paper.paragraph(text, &format!("{label:<13}")))?;
    for source in sources.filter_map(|source| catalogue.source(source)) {
        paper.paragraph(&source_words(source), &format!("{:<13}", "from"))?;
    }
    Ok(())
}
