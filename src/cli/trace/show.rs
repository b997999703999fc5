//! `plimsoll trace show`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{MEAN_HITS, check_judged, left_over, names, read_all};
use crate::cli::arguments::{Format, FormatArgs, ProgressArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::expect::CacheChoice;
use crate::cli::platforms::PlatformsArgs;
use crate::cli::record::{began, plural};
use crate::cli::{say, sheets};
use crate::observed;
use ::trace::profile::{Profile, ProfileOptions, Profiler, Sequential, Sizes};
use model::platforms::recorded::{Held, Recorded};
use model::platforms::{Cache, Combination, Redundancy};
use model::record::Histogram;
use model::trace::{TraceEnd, TraceHeader, TraceKind};
use model::units::{Bytes, Nanos, group_thousands};
use targets::database::Sheet;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll trace show monday.trace
  plimsoll trace show monday.trace --cache 200G
  plimsoll trace show monday.trace --machine Standard_E8s_v3 --volume p30x4
  plimsoll trace show monday.trace --machine E8s_v3 --volume p30x4 \\
    --host-cache read
  plimsoll trace show sda.blktrace.* --json

`bursts` is variance over mean of the requests in windows of a length. It is 1 for random arrivals, and more where they come \
together. `cache` is the share of reads that a least-recently-used cache would answer. It begins empty, and keeps writes as well.";

/// Arguments of `plimsoll trace show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Trace of any format that `plimsoll trace formats` lists
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// What a cache of this size would answer (repeatable) [default: sizes up to all that is touched]
    #[arg(long, value_name = "SIZE", help_heading = "Output")]
    cache: Vec<Bytes>,

    /// Machine type of each node, such as `Standard_D8s_v3` or `d8s`
    ///
    /// The seconds that exceed its published limits are shown.
    #[arg(long, value_name = "NAME", requires = "volume", help_heading = "Platform")]
    machine: Option<String>,

    /// Volumes of all nodes together: `p30x32`, `gp2:500Gx4`, or `local`
    #[arg(long, value_name = "VOLUMES", requires = "machine", help_heading = "Platform")]
    volume: Option<String>,

    /// Host cache in front of the volumes
    ///
    /// The share of the reads that it answers is the trace's own, at the size of one machine's cache.
    #[arg(long, value_enum, default_value_t, requires = "machine", help_heading = "Platform")]
    host_cache: CacheChoice,

    #[command(flatten)]
    platforms: PlatformsArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    progress: ProgressArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let catalogue = arguments.platforms.catalogue()?;
    let platform = arguments.machine.as_deref().zip(arguments.volume.as_deref());
    let platform = platform.map(|(machine, volume)| {
        let platform = Combination::parse(&catalogue, (machine, 1), volume, Cache::None, Redundancy::External)
            .map_err(|problem| Failure::new(&problem).with_hint(problem.hint()))?;
        with_cache(platform, arguments.host_cache)
    });
    let platform = platform.transpose()?;
    let mut profiler = Profiler::new(ProfileOptions::default());
    let read = read_all(&arguments.files, arguments.progress.verbosity(), &mut |batch, _| {
        batch.iter().for_each(|request| profiler.add(request));
        Ok(())
    })?;
    let source = match read {
        Ok(source) => source,
        Err(exit) => return Ok(exit),
    };
    let (header, end) = (source.header(), source.end());
    let profile = profiler.finish(header, &end);
    end.notes.iter().for_each(say::note);
    if platform.is_some() {
        check_judged(&names(&arguments.files), header, &profile)?;
    }
    let cached = platform.as_ref().map(|platform| HostCache::of(platform, &profile)).transpose()?.flatten();
    let used = cached.as_ref().filter(|cached| cached.is_used);
    let limits = platform.as_ref().map(|platform| limits(platform, &profile, used)).unwrap_or_default();
    let caches: Vec<_> = arguments
        .cache
        .iter()
        .map(|size| json!({ "cache_bytes": size, "hit_ratio": profile.curve.hit_ratio(size.0) }))
        .collect();
    let document = json!({ "format": 1, "header": header, "end": end, "profile": profile, "host_cache": cached, "limits": limits, "caches": caches });
    let mut sheet = Sheet::of(document);
    write(&mut sheet, arguments, (header, &end), &profile);
    if let Some(platform) = &platform {
        sheet.add("platform", platform.name());
        if let Some(cached) = &cached {
            sheet.add("", cached.words());
        }
        if used.is_some() {
            sheet.add("", MEAN_HITS);
        }
        for limit in &limits {
            sheet.add("", limit.words());
        }
        left_over(&profile).into_iter().for_each(|words| sheet.add("", words));
    }
    match arguments.format.format() {
        Format::Json => say::json(&sheet.document).map(|()| Exit::Done),
        Format::Text => sheets::show(&sheet, Format::Text),
    }
}

/// A limit of a platform beside the trace.
#[derive(Debug, serde::Serialize)]
struct Exceeded {
    limit: &'static str,
    per_s: f64,
    unit: &'static str,
    intervals: usize,
    of: usize,
    interval_ns: u64,
    first_ns: Option<u64>,
    worst_factor: Option<f64>,
    worst_begin_ns: Option<u64>,
    /// Whether more is allowed while a credit lasts.
    has_credit: bool,
    /// What is allowed while it lasts.
    burst_per_s: Option<f64>,
    /// Whether some interval takes more than that.
    is_beyond_burst: bool,
    /// When a credit that is full at the beginning is used up; absent where there is none, or it lasts.
    credit_ends_ns: Option<u64>,
    /// In how many intervals it is exceeded if the host cache answers nothing; absent where no cache is used.
    intervals_without_hits: Option<usize>,
}

impl Exceeded {
    fn words(&self) -> String {
        let limit = format!("{}: {} {}", self.limit, group_thousands(self.per_s), self.unit);
        let length = |intervals: usize| Nanos((intervals as u64).saturating_mul(self.interval_ns));
        let (seconds, all) = (length(self.intervals), length(self.of));
        let exceeded = match (self.first_ns, self.worst_factor, self.worst_begin_ns) {
            (Some(first), Some(factor), Some(at)) => format!(
                "{limit} is exceeded in {seconds} of {all}, first {} after the beginning, at most {factor:.1} times at {}",
                Nanos(first),
                Nanos(at)
            ),
            _ => format!("{limit} is never exceeded"),
        };
        let mut words = vec![exceeded];
        let has_credit = self.has_credit && self.intervals > 0;
        if let Some(burst) = self.burst_per_s.filter(|_| has_credit && self.is_beyond_burst) {
            words.push(format!("beyond its burst of {} {}", group_thousands(burst), self.unit));
        }
        match self.credit_ends_ns {
            Some(at) if has_credit => words.push(format!("a full credit is used up after {}", Nanos(at))),
            None if has_credit && !self.is_beyond_burst => words.push("a full credit lasts".to_owned()),
            _ => {}
        }
        let cold = self.intervals_without_hits.filter(|cold| *cold > self.intervals);
        words.extend(cold.map(|cold| match self.intervals {
            0 => format!("by the cache alone: without hits in {} of {all}", length(cold)),
            _ => format!("without hits in {} of {all}", length(cold)),
        }));
        words.join("; ")
    }
}

/// The platform with the host cache that was chosen.
fn with_cache(platform: Combination, choice: CacheChoice) -> Result<Combination, Failure> {
    if choice == CacheChoice::None {
        return Ok(platform);
    }
    let Combination { machine, nodes, volumes, redundancy, .. } = platform;
    let name = machine.name.clone();
    if machine.cached.is_some() && machine.cache_gib.is_none() {
        let failure = Failure::new(format_args!("the size of the host cache of {name} is not known"));
        return Err(failure.with_hint("leave out `--host-cache`, or add its size with `--platforms-file`".to_owned()));
    }
    Combination::of(machine, nodes, volumes, Cache::Read, redundancy).map_err(|problem| {
        Failure::new(&problem).with_hint("leave out `--host-cache`, or name a machine and volumes with one".to_owned())
    })
}

/// What the host cache of a platform would answer.
#[derive(Debug, serde::Serialize)]
struct HostCache {
    cache_gib: f64,
    hit_share: f64,
    /// Whether limits are judged with it.
    is_used: bool,
}

impl HostCache {
    /// Absent where there is none, or where its size is not known.
    fn of(platform: &Combination, profile: &Profile) -> Result<Option<Self>, Failure> {
        let is_used = platform.cache == Cache::Read;
        let may_have = platform.volumes.as_ref().is_some_and(|volumes| volumes.kind.host_cache);
        let gib = platform.machine.cached.and(platform.machine.cache_gib).filter(|_| may_have);
        let found = gib.and_then(|gib| Some((gib, observed::hit_share(profile, gib)?)));
        if is_used && found.is_none() {
            let failure = match (gib, profile.curve.points.first()) {
                (Some(gib), Some(least)) => Failure::new(format_args!(
                    "what a host cache of {gib} GiB answers is unknown: the trace shows it from {} on",
                    Bytes(least.cache_bytes)
                )),
                _ => Failure::new("the trace has no reads that a host cache could answer"),
            };
            return Err(failure.with_hint("leave out `--host-cache`".to_owned()));
        }
        Ok(found.map(|(cache_gib, hit_share)| Self { cache_gib, hit_share, is_used }))
    }

    fn words(&self) -> String {
        let answers = format!("host cache of {} GiB answers {} of the reads", self.cache_gib, percent(self.hit_share));
        match self.is_used {
            true => format!("{answers}: only the others reach the volumes"),
            false => format!("{answers}: not counted, see `--host-cache`"),
        }
    }
}

/// Which seconds exceed the limits that a platform has in the long run, with the reads that miss its host cache where one is used.
fn limits(platform: &Combination, profile: &Profile, used: Option<&HostCache>) -> Vec<Exceeded> {
    let recorded = observed::recorded(profile);
    let interval_ns = profile.series.interval_ns;
    let cold = recorded.held(platform, 0.0);
    let Some(cached) = used else {
        return cold.iter().map(|held| exceeded(held, &recorded, interval_ns)).collect();
    };
    let warm = recorded.held(platform, cached.hit_share);
    // A limit that only misses touch is not among those of a cache that misses nothing.
    let of = |cold: &Held| {
        let unused = || Held { uses: vec![0.0; cold.uses.len()], ..cold.clone() };
        let warm = warm.iter().find(|warm| warm.whose == cold.whose).cloned().unwrap_or_else(unused);
        let without_hits = cold.uses.iter().filter(|of| **of > 1.0).count();
        Exceeded { intervals_without_hits: Some(without_hits), ..exceeded(&warm, &recorded, interval_ns) }
    };
    cold.iter().map(of).collect()
}

fn exceeded(held: &Held, recorded: &Recorded, interval_ns: u64) -> Exceeded {
    let over = || held.uses.iter().enumerate().filter(|(_, of)| **of > 1.0);
    let begin_ns = |at: usize| interval_ns.saturating_mul(at as u64);
    let worst = over().reduce(|worst, other| if other.1 > worst.1 { other } else { worst });
    Exceeded {
        limit: held.whose.words(),
        per_s: held.per_s,
        unit: if held.whose.is_of_requests() { "requests/s" } else { "MB/s" },
        intervals: over().count(),
        of: recorded.intervals(),
        interval_ns,
        first_ns: over().next().map(|(at, _)| begin_ns(at)),
        worst_factor: worst.map(|(_, factor)| *factor),
        worst_begin_ns: worst.map(|(at, _)| begin_ns(at)),
        has_credit: held.credit.is_some(),
        burst_per_s: held.credit.map(|credit| credit.burst_per_s),
        is_beyond_burst: held.is_beyond_burst(),
        credit_ends_ns: held.credit_ends_after(recorded.interval_s()).map(begin_ns),
        intervals_without_hits: None,
    }
}

/// Every row.
fn write(sheet: &mut Sheet, arguments: &Arguments, (header, end): (&TraceHeader, &TraceEnd), profile: &Profile) {
    let devices: Vec<&str> = header.devices.iter().map(|device| device.name.as_str()).take(4).collect();
    let more = header.devices.len().saturating_sub(devices.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    sheet.add("trace", format!("{}: {}, {}{more}", names(&arguments.files), header.source, devices.join(", ")));
    sheet.add("time", format!("{}, began {}", Nanos(profile.duration_ns), began(header.began)));
    if let Some(lost) = end.lost.filter(|lost| *lost > 0) {
        sheet.add("lost", format!("up to {} requests are missing", group_thousands(lost as f64)));
    }
    rates(sheet, profile);
    sizes(sheet, profile);
    order(sheet, profile);
    places(sheet, profile);
    times(sheet, profile);
    cache(sheet, arguments, profile);
}

fn percent(share: f64) -> String {
    let pct = share * 100.0;
    if pct > 0.0 && pct < 0.95 { format!("{pct:.1} %") } else { format!("{pct:.0} %") }
}

fn rates(sheet: &mut Sheet, profile: &Profile) {
    let total = profile.requests.max(1) as f64;
    let kinds: Vec<String> = TraceKind::ALL
        .into_iter()
        .filter(|kind| profile.counted.get(*kind).requests > 0)
        .map(|kind| format!("{} {}", percent(profile.counted.get(kind).requests as f64 / total), plural(kind)))
        .collect();
    sheet.add("requests", format!("{}: {}", group_thousands(profile.requests as f64), kinds.join(", ")));
    if let Some(rates) = &profile.mean_rates {
        sheet.add(
            "mean",
            format!(
                "{} requests/s, reads {:.1} MB/s, writes {:.1} MB/s",
                group_thousands(rates.requests_per_s),
                rates.read_bytes_per_s / 1e6,
                rates.write_bytes_per_s / 1e6
            ),
        );
    }
    let peaks: Vec<String> = profile
        .bursts
        .iter()
        .filter_map(|burst| Some(format!("{} in {}", group_thousands(burst.peak_per_s?), Nanos(burst.window_ns))))
        .collect();
    if !peaks.is_empty() {
        sheet.add("peak", format!("requests/s: {}", peaks.join(", ")));
    }
    let bursts: Vec<String> = profile
        .bursts
        .iter()
        .filter_map(|burst| Some(format!("{:.1} in {}", burst.dispersion?, Nanos(burst.window_ns))))
        .collect();
    if !bursts.is_empty() {
        sheet.add("bursts", format!("{} (1: at random)", bursts.join(", ")));
    }
}

fn sizes(sheet: &mut Sheet, profile: &Profile) {
    let of = |kind: TraceKind, sizes: &Sizes| {
        let requests = profile.counted.get(kind).requests.max(1) as f64;
        let mut exact: Vec<_> = sizes.exact.iter().collect();
        exact.sort_by_key(|size| std::cmp::Reverse(size.requests));
        let common: Vec<String> = exact
            .iter()
            .take(3)
            .map(|size| format!("{} {}", Bytes(size.bytes), percent(size.requests as f64 / requests)))
            .collect();
        let (least, mean, most) =
            (Bytes(sizes.min_bytes), Bytes(sizes.mean_bytes.round() as u64), Bytes(sizes.max_bytes));
        match sizes.min_bytes == sizes.max_bytes {
            true => format!("{} of {least} each", plural(kind)),
            false => format!("{} of {least} to {most}, mean {mean}: {}", plural(kind), common.join(", ")),
        }
    };
    let mut label = "sizes";
    for kind in [TraceKind::Read, TraceKind::Write, TraceKind::Discard] {
        if let Some(sizes) = profile.sizes.get(kind) {
            sheet.add(label, of(kind, sizes));
            label = "";
        }
    }
}

fn order(sheet: &mut Sheet, profile: &Profile) {
    let of = |what: &str, sequential: &Option<Sequential>, median: Option<u64>| {
        let sequential = sequential.as_ref()?;
        let run = median.map_or_else(String::new, |bytes| format!(" (median run {})", Bytes(bytes)));
        Some(format!("{} of {what}{run}", percent(sequential.requests_share)))
    };
    let reads = of("reads", &profile.sequential_reads, profile.read_runs.as_ref().map(|runs| runs.median_bytes));
    let writes = of("writes", &profile.sequential_writes, profile.write_runs.as_ref().map(|runs| runs.median_bytes));
    let both: Vec<String> = reads.into_iter().chain(writes).collect();
    if !both.is_empty() {
        sheet.add("sequential", both.join(", "));
    }
    let mut label = "logs";
    for log in profile.logs.iter().take(4) {
        let name = profile.devices.iter().find(|device| device.number == usize::from(log.device));
        let name = name.and_then(|device| device.name.clone()).unwrap_or_else(|| log.device.to_string());
        let serial = match log.is_serial {
            Some(true) => ", each after the one before",
            Some(false) => ", several at a time",
            None => "",
        };
        sheet.add(
            label,
            format!(
                "{name} at {}: {} writes, mean {}, {} of all writes{serial}",
                Bytes(log.begin_bytes),
                group_thousands(log.counted.requests as f64),
                Bytes(log.mean_bytes.round() as u64),
                percent(log.writes_share)
            ),
        );
        label = "";
    }
}

fn places(sheet: &mut Sheet, profile: &Profile) {
    if let Some(footprint) = &profile.footprint {
        let about = if footprint.standard_error > 0.0 { "about " } else { "" };
        sheet.add(
            "touched",
            format!("{about}{} in blocks of {}", Bytes(footprint.bytes), Bytes(profile.curve.block_bytes)),
        );
    }
    if let Some(hot) = &profile.hot_spots {
        sheet.add(
            "hot spots",
            format!(
                "the hottest 1 % of touched space takes {} of requests, 5 % {}, 20 % {}",
                percent(hot.hottest_1_percent_share),
                percent(hot.hottest_5_percent_share),
                percent(hot.hottest_20_percent_share)
            ),
        );
    }
    let writes = &profile.writes;
    let mut words = Vec::new();
    words.extend(writes.overwritten_share.map(|share| format!("{} overwrite blocks written before", percent(share))));
    words.extend(writes.fua_share.filter(|share| *share > 0.0).map(|share| format!("{} FUA", percent(share))));
    words.extend(
        writes.median_writes_between_flushes.map(|count| format!("writes from flush to flush: {count} (median)")),
    );
    if !words.is_empty() {
        sheet.add("writes", words.join(", "));
    }
}

fn times(sheet: &mut Sheet, profile: &Profile) {
    if let Some(depth) = &profile.depth {
        sheet.add(
            "in flight",
            format!(
                "mean {:.1}, p50 {}, p99 {}, max {}; busy {} of the time",
                depth.mean,
                depth.p50,
                depth.p99,
                depth.max,
                percent(depth.busy_share)
            ),
        );
    }
    let words = |latency: &Histogram| {
        let at =
            |quantile: f64| latency.quantile_ns(quantile).map_or_else(|| "?".to_owned(), |ns| Nanos(ns).to_string());
        let max = latency.max_ns().map_or_else(|| "?".to_owned(), |ns| Nanos(ns).to_string());
        format!("p50 {}, p99 {}, p99.9 {}, max {max}", at(0.5), at(0.99), at(0.999))
    };
    let mut label = "latency";
    for kind in TraceKind::ALL {
        if let Some(latency) = profile.latency.get(kind) {
            sheet.add(label, format!("{}: {}", plural(kind), words(latency)));
            label = "";
        }
    }
    if let Some(gaps) = &profile.inter_arrival {
        sheet.add("gaps", format!("between requests: {}", words(gaps)));
    }
}

/// Sizes of caches that are shown by default.
const CACHES: usize = 6;

fn cache(sheet: &mut Sheet, arguments: &Arguments, profile: &Profile) {
    let curve = &profile.curve;
    let words: Vec<String> = if arguments.cache.is_empty() {
        let skipped = curve.points.len().saturating_sub(CACHES);
        curve
            .points
            .iter()
            .skip(skipped)
            .map(|point| format!("{} {}", Bytes(point.cache_bytes), percent(point.hit_ratio)))
            .collect()
    } else {
        let of = |size: &Bytes| {
            let ratio = curve.hit_ratio(size.0).map_or_else(|| "?".to_owned(), percent);
            format!("{size} {ratio}")
        };
        arguments.cache.iter().map(of).collect()
    };
    if !words.is_empty() {
        sheet.add("cache", format!("answers of the reads: {}", words.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit() -> Exceeded {
        Exceeded {
            limit: "the volumes' requests",
            per_s: 300.0,
            unit: "requests/s",
            intervals: 2,
            of: 10,
            interval_ns: 1_000_000_000,
            first_ns: Some(0),
            worst_factor: Some(2.0),
            worst_begin_ns: Some(0),
            has_credit: true,
            burst_per_s: Some(3_000.0),
            is_beyond_burst: false,
            credit_ends_ns: None,
            intervals_without_hits: None,
        }
    }

    #[test]
    fn a_credit_does_not_last_beyond_its_burst() {
        assert!(limit().words().ends_with("; a full credit lasts"));
        let beyond = Exceeded { is_beyond_burst: true, ..limit() };
        assert!(beyond.words().ends_with("; beyond its burst of 3,000 requests/s"), "{}", beyond.words());
    }

    #[test]
    fn a_limit_that_the_cache_alone_meets_says_so() {
        let met = Exceeded { intervals: 0, first_ns: None, intervals_without_hits: Some(4), ..limit() };
        let words = "is never exceeded; by the cache alone: without hits in 4.00 s of 10.0 s";
        assert!(met.words().ends_with(words), "{}", met.words());
        let same = Exceeded { intervals_without_hits: Some(2), ..limit() };
        assert!(!same.words().contains("without hits"), "{}", same.words());
    }
}
