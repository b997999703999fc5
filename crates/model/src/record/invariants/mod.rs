//! Rules that the values of a step keep, whoever measured them: the one list of what cannot be.
//!
//! [`violations`] changes nothing. It names each value that breaks a rule, the rule, and what the value contradicts.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use super::{Counters, Histogram, Interval, ReportedFigure, Step};
use crate::units::{Nanos, group_thousands};

macro_rules! invariants {
    ($($name:ident $id:literal $meaning:literal $tolerance:literal;)+) => {
        /// A rule. Its [`id`](Self::id) never changes its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Invariant {
            $(#[doc = $meaning] $name,)+
        }

        impl Invariant {
            /// Every rule.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// How reports name it.
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)+ }
            }

            /// What values that keep it have in common.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)+ }
            }

            /// By how much values may miss it, and why.
            pub fn tolerance(self) -> &'static str {
                match self { $(Self::$name => $tolerance,)+ }
            }
        }
    };
}

invariants! {
    PartWithinWhole "part-within-whole"
        "a mean completion or service time does not exceed the mean of the whole latency"
        "5 %: programs print three digits";
    WithinLoad "within-load"
        "no latency is longer than the load with its warm-up"
        "5 % and 1 s: programs round both and wait for the last request";
    PercentileWithinLongest "percentile-within-longest"
        "no percentile is above the longest"
        "5 %: a percentile may be the middle or the edge of a bucket";
    PercentilesAscend "percentiles-ascend"
        "a higher percentile is not below a lower one"
        "5 %: estimates of near percentiles may cross";
    MeanWithinExtremes "mean-within-extremes"
        "a mean is between the shortest and the longest"
        "the last digit that is printed of each";
    ShareOfWhole "share-of-whole"
        "no share is above 100 % of the CPUs, or of what it is a share of"
        "1 point: shares are rounded. A device may be at 1,000 %: some kernels count its busy time for each queue";
    CounterWrapped "counter-wrapped"
        "no rate is negative or above what any machine reaches: the counter overflowed or was reset"
        "half of one: rounded zeros may be below zero";
    RateTimesTime "rate-times-time"
        "a rate times the time is its count"
        "5 %, and 10 % for networks: the time is often in whole seconds, and one side counts longer";
    BytesOfRequests "bytes-of-requests"
        "bytes are the requests times their size"
        "2 %: counts are calculated from rates of three digits";
    LittlesLaw "littles-law"
        "all latencies together are no more than the sessions times the time"
        "10 %: means and times are rounded";
    DepthOfDevice "depth-of-device"
        "the queue of a device is its requests times their time"
        "a factor of 3, above a depth of 1: requests are timed when they end, and the queue when it changes";
    IntervalsAddUp "intervals-add-up"
        "intervals that cover the whole window add up to its total"
        "10 %: the last interval is often not printed in full";
}

/// By how much a latency may be longer than the load, as a share and in nanoseconds.
const LATE: f64 = 1.05;
const LATE_NS: f64 = 1e9;
const RATE_TOLERANCE: f64 = 0.05;
const TRANSFER_TOLERANCE: f64 = 0.1;
/// Below this rate, rounding to whole numbers is more than the tolerance.
const MIN_RATE: f64 = 20.0;
const SIZE_TOLERANCE: f64 = 0.02;
const BUSY_TOLERANCE: f64 = 1.1;
const DEPTH_FACTOR: f64 = 3.0;
const INTERVAL_TOLERANCE: f64 = 0.1;
/// What a share of a whole may be, in percent.
pub const ALL: f64 = 101.0;
/// The same of a device that serves several requests at once.
pub const DEVICE: f64 = 1_000.0;
/// CPUs where their number is unknown.
const MOST_CPUS: u32 = 4_096;

/// A rate by the name that its program prints, and what it is made of: its program, its name or how that begins, the count that it
/// is a rate of, and what that is called.
type Headline = (&'static str, &'static str, fn(&Counters) -> Option<u64>, &'static str);

const HEADLINES: [Headline; 8] = [
    ("pgio", "RIOPS", |counters| counters.physical_reads, "blks_read"),
    ("pgio", "CACHE_HITS/s", |counters| counters.cache_hits, "blks_hit"),
    // That without connections of old versions is of a shorter time.
    ("pgbench", "tps (including", |counters| counters.operations, "transactions"),
    ("pgbench", "tps (without", |counters| counters.operations, "transactions"),
    ("sysbench", "transactions per sec.", |counters| counters.operations, "transactions"),
    ("sysbench", "events per second", |counters| counters.operations, "events"),
    ("sysbench", "events/s (eps)", |counters| counters.operations, "events"),
    ("sysbench", "Total operations per sec.", |counters| counters.operations, "operations"),
];

/// What else must be known of the run that a step belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured<'a> {
    /// The program that measured it.
    pub program: &'a str,
    /// The load with its warm-up; absent where latencies may have begun long before.
    pub load_ns: Option<u64>,
    /// CPUs of the machine.
    pub cpus: Option<u32>,
    /// The one size of all requests.
    pub request_bytes: Option<u64>,
}

/// A histogram of times in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// From due to finished, of one kind of operation.
    Response(usize),
    /// From sent to finished.
    Service(usize),
    /// One wait event.
    Wait(usize),
    /// One interval.
    Interval(usize),
}

/// A value in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The shortest.
    Shortest(Times),
    /// The mean.
    Mean(Times),
    /// The longest.
    Longest(Times),
    /// All that distributes them.
    Percentiles(Times),
    /// A value by its program's own name.
    Reported(usize),
    /// Bytes read.
    ReadBytes,
    /// Bytes written.
    WriteBytes,
    /// CPU time of the machine.
    HostCpu,
}

/// A value that breaks a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The rule.
    pub rule: Invariant,
    /// What the value is of, in words that begin a sentence.
    pub figure: String,
    /// The value with its unit.
    pub value: String,
    /// The value that it contradicts, in words.
    pub against: String,
    /// Where it is in the step; nothing where it is not known which of several values is wrong, or where it is in no field.
    pub at: Vec<At>,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, figure, value, against, .. } = self;
        write!(out, "{figure} cannot be {value}: {against} (rule `{}`).", rule.id())
    }
}

/// A rate, a share or a size that no machine has: negative, a share above `all` percent, or more than any device does.
pub fn wrapped(figure: &str, unit: &str, value: f64, all: f64) -> Option<Violation> {
    let most = match unit {
        "%" => all,
        "1/s" => 1e8,
        "KiB/s" => 1e9,
        "MiB/s" => 1e6,
        "sectors/s" | "blocks/s" => 2e9,
        "ms" => 1e8,
        "KiB" | "sectors" => 1e8,
        // Sums since a machine started.
        _ => 9e18,
    };
    let (rule, against) = match () {
        () if value < -0.5 => (Invariant::CounterWrapped, "it is negative".to_owned()),
        () if value > most && unit == "%" => (Invariant::ShareOfWhole, format!("the most is {} %", most.floor())),
        () if value > most => {
            (Invariant::CounterWrapped, format!("no machine reaches {} {unit}", group_thousands(most)))
        }
        () => return None,
    };
    let value = format!("{} {unit}", group_thousands(value)).trim_end().to_owned();
    Some(Violation { rule, figure: figure.to_owned(), value, against, at: Vec::new() })
}

/// Whether the mean of a part of a time is longer than the mean of the whole.
pub fn is_beyond_whole(part: f64, whole: f64) -> bool {
    whole > 0.0 && part > whole * LATE
}

/// The first of `percentiles`, of percent and value, that is below a lower one.
pub fn descending(figure: &str, percentiles: &[(f64, f64)], show: impl Fn(f64) -> String) -> Option<Violation> {
    let mut highest: Option<(f64, f64)> = None;
    for (percent, value) in percentiles.iter().copied() {
        if let Some((lower, most)) = highest.filter(|(lower, most)| *lower < percent && value * LATE < *most) {
            return Some(Violation {
                rule: Invariant::PercentilesAscend,
                figure: format!("p{percent} of {figure}"),
                value: show(value),
                against: format!("p{lower} is {}", show(most)),
                at: Vec::new(),
            });
        }
        highest = highest.filter(|(_, most)| *most >= value).or(Some((percent, value)));
    }
    None
}

/// Whether a count over a time is its rate, but for rounding.
pub fn is_rate_of(rate: f64, count: f64, seconds: f64, tolerance: f64) -> bool {
    (count / seconds - rate).abs() <= tolerance
}

/// All values of a step that break a rule.
pub fn violations(step: &Step, measured: Measured<'_>) -> Vec<Violation> {
    let mut check = Check { step, measured, seconds: step.window.duration_ns as f64 / 1e9, found: Vec::new() };
    check.latencies();
    check.own_latencies();
    check.completions();
    check.families();
    check.host();
    check.rates();
    check.transfers();
    check.bytes();
    check.busy();
    check.depths();
    check.intervals();
    check.found
}

/// What a value by its program's own name is of its family: `latency max` and `latency 99th percentile` are of `latency`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistic {
    Min,
    Mean,
    Max,
    Percentile(f64),
}

impl Statistic {
    fn of(name: &str) -> Option<(&str, Self)> {
        let (stem, last) = name.rsplit_once([' ', '_'])?;
        let percentile = |word: &str| {
            let number = word.strip_prefix(['p', 'P']).or_else(|| word.strip_suffix("th"))?;
            number.parse().ok().filter(|percent| (0.0..=100.0).contains(percent)).map(Self::Percentile)
        };
        Some(match last {
            "min" | "MIN" => (stem, Self::Min),
            "mean" | "avg" | "AVG" => (stem, Self::Mean),
            "max" | "MAX" => (stem, Self::Max),
            "percentile" => stem.rsplit_once(' ').and_then(|(stem, word)| Some((stem, percentile(word)?)))?,
            word => match stem.strip_suffix(" percentile") {
                Some(stem) => (stem, Self::Percentile(word.parse().ok()?)),
                None => (stem, percentile(word)?),
            },
        })
    }
}

/// What values of one family have in common: their name, layer and unit.
type Family<'a> = (&'a str, &'a str, &'a str);

struct Check<'a> {
    step: &'a Step,
    measured: Measured<'a>,
    seconds: f64,
    found: Vec<Violation>,
}

impl Check<'_> {
    fn add(&mut self, rule: Invariant, figure: String, value: impl ToString, against: String, at: &[At]) {
        self.found.push(Violation { rule, figure, value: value.to_string(), against, at: at.to_vec() });
    }

    fn latencies(&mut self) {
        let step = self.step;
        for (at, operation) in step.operations.iter().enumerate() {
            let what = format!("latency of {}", operation.kind);
            self.times(Times::Response(at), &operation.response, &what);
            self.times(Times::Service(at), &operation.service, &what);
            if let (Some(service_ns), Some(response_ns)) = (operation.service.mean_ns(), operation.response.mean_ns()) {
                let means = [service_ns, response_ns].map(|ns| Nanos(ns as u64));
                if is_beyond_whole(service_ns, response_ns) {
                    let figure = format!("The mean service time of {}", operation.kind);
                    let against = format!("the mean response is {}", means[1]);
                    let at = [At::Mean(Times::Service(at)), At::Mean(Times::Response(at))];
                    self.add(Invariant::PartWithinWhole, figure, means[0], against, &at);
                }
            }
        }
        for (at, wait) in step.waits.iter().enumerate() {
            self.times(Times::Wait(at), &wait.waits, &format!("time of {}", wait.event));
        }
        for (at, interval) in step.intervals.iter().enumerate() {
            let what = format!("latency in the interval that begins at {}", Nanos(interval.offset_ns));
            self.times(Times::Interval(at), &interval.response, &what);
        }
    }

    fn times(&mut self, times: Times, of: &Histogram, what: &str) {
        let count = of.count();
        if count == 0 {
            return;
        }
        let (was_max, mut mean_ns, mut min_ns, mut max_ns) = (of.max_ns(), of.mean_ns(), of.min_ns(), of.max_ns());
        let first_beyond =
            |limit: f64| of.buckets_ns().find(|(from_ns, ..)| of.is_reported() && *from_ns as f64 > limit);
        let beyond = max_ns.and_then(|max_ns| Some((max_ns, first_beyond(max_ns as f64 * LATE + last_digit(max_ns))?)));
        if let Some((max_ns, (from_ns, ..))) = beyond {
            let (figure, against) =
                (format!("A percentile of the {what}"), format!("the longest is {}", Nanos(max_ns)));
            let at = [At::Percentiles(times), At::Longest(times), At::Shortest(times)];
            return self.add(Invariant::PercentileWithinLongest, figure, Nanos(from_ns), against, &at);
        }
        if let Some(load_ns) = self.measured.load_ns {
            let mut fits = |which: &str, ns: f64, at: &[At]| {
                let is_so = ns <= limit(load_ns);
                if !is_so {
                    let (figure, against) = (format!("The {which} {what}"), lasted(load_ns));
                    self.add(Invariant::WithinLoad, figure, Nanos(ns as u64), against, at);
                }
                is_so
            };
            max_ns = max_ns.filter(|ns| fits("longest", *ns as f64, &[At::Longest(times)]));
            min_ns = min_ns.filter(|ns| fits("shortest", *ns as f64, &[At::Shortest(times)]));
            mean_ns = mean_ns.filter(|ns| fits("mean", *ns, &[At::Mean(times)]));
            let highest = first_beyond(limit(load_ns)).filter(|(from_ns, ..)| Some(*from_ns) != was_max);
            if let Some((from_ns, ..)) = highest.filter(|_| max_ns == was_max) {
                fits("highest bucket of the", from_ns as f64, &[]);
            }
        }
        let Some(mean_ns) = mean_ns else { return };
        let below = min_ns.filter(|min_ns| mean_ns + last_digit(*min_ns) < *min_ns as f64).map(|ns| ("shortest", ns));
        let above = || max_ns.filter(|max_ns| mean_ns > *max_ns as f64 + last_digit(*max_ns)).map(|ns| ("longest", ns));
        if let Some((which, bound)) = below.or_else(above) {
            let (figure, against) = (format!("The mean {what}"), format!("the {which} is {}", Nanos(bound)));
            self.add(Invariant::MeanWithinExtremes, figure, Nanos(mean_ns as u64), against, &[At::Mean(times)]);
        }
    }

    /// Latencies by their programs' names.
    fn own_latencies(&mut self) {
        let Some(load_ns) = self.measured.load_ns else { return };
        let is_latency = |name: &str| {
            let is_one = |word: &str| {
                ["clat", "slat", "lat", "latency", "rtt", "jitter"].iter().any(|known| word.starts_with(known))
            };
            // A sum is one of all requests.
            !name.ends_with("sum") && name.split([' ', '_']).any(is_one)
        };
        for (at, figure) in self.step.reported.iter().enumerate() {
            let Some(unit_ns) = unit_ns(&figure.unit) else { continue };
            if is_latency(&figure.name) && figure.value * unit_ns > limit(load_ns) {
                self.add(Invariant::WithinLoad, quoted(figure), shown(figure), lasted(load_ns), &[At::Reported(at)]);
            }
        }
    }

    /// Values of one family by their programs' names: mean and percentiles within the extremes, percentiles in order.
    fn families(&mut self) {
        let mut families: BTreeMap<Family<'_>, Vec<(Statistic, usize)>> = BTreeMap::new();
        for (at, figure) in self.step.reported.iter().enumerate() {
            if let Some((stem, statistic)) = Statistic::of(&figure.name) {
                families.entry((stem, &figure.layer, &figure.unit)).or_default().push((statistic, at));
            }
        }
        let step = self.step;
        let at = |at: usize| step.reported.get(at);
        for ((stem, ..), family) in families.into_iter().filter(|(_, family)| family.len() > 1) {
            let of = |wanted: Statistic| family.iter().find(|(is, _)| *is == wanted).and_then(|(_, place)| at(*place));
            let (min, max) = (of(Statistic::Min), of(Statistic::Max));
            let mut percentiles: Vec<(f64, usize)> = Vec::new();
            for (statistic, place) in &family {
                let Some(figure) = at(*place) else { continue };
                let against = |bound: &ReportedFigure| format!("{} is {}", quoted(bound), shown(bound));
                let off = |bound: &&ReportedFigure| rounding(figure.value) + rounding(bound.value);
                match statistic {
                    Statistic::Mean => {
                        let below = min.filter(|min| min.value - figure.value > off(min));
                        let beyond = below.or_else(|| max.filter(|max| figure.value - max.value > off(max)));
                        if let Some(bound) = beyond {
                            let rule = Invariant::MeanWithinExtremes;
                            self.add(rule, quoted(figure), shown(figure), against(bound), &[At::Reported(*place)]);
                        }
                    }
                    Statistic::Percentile(percent) => {
                        percentiles.push((*percent, *place));
                        if let Some(max) = max.filter(|max| figure.value > max.value * LATE + off(max)) {
                            let rule = Invariant::PercentileWithinLongest;
                            self.add(rule, quoted(figure), shown(figure), against(max), &[At::Reported(*place)]);
                        }
                    }
                    Statistic::Min | Statistic::Max => {}
                }
            }
            percentiles.sort_by(|one, other| one.0.total_cmp(&other.0));
            let values: Vec<(f64, f64)> =
                percentiles.iter().filter_map(|(percent, place)| Some((*percent, at(*place)?.value))).collect();
            let found = descending(&format!("`{stem}`"), &values, group_thousands);
            let places = || percentiles.iter().map(|(_, place)| At::Reported(*place)).collect();
            self.found.extend(found.map(|found| Violation { at: places(), ..found }));
        }
    }

    /// A mean completion latency (`clat`), which is a part of the whole (`lat`).
    fn completions(&mut self) {
        let step = self.step;
        for (at, mean) in step.reported.iter().enumerate().filter(|(_, figure)| figure.name.ends_with(" mean")) {
            let Some((before, name)) = mean.name.split_once("clat") else { continue };
            let name = format!("{before}lat{name}");
            let whole = step.reported.iter().find(|figure| figure.name == name);
            let beyond = |whole: &&ReportedFigure| {
                let ns = unit_ns(&mean.unit).zip(unit_ns(&whole.unit));
                ns.is_some_and(|(one, other)| is_beyond_whole(mean.value * one, whole.value * other))
            };
            if let Some(whole) = whole.filter(beyond) {
                let against = format!("{} is {}", quoted(whole), shown(whole));
                let rule = Invariant::PartWithinWhole;
                self.add(rule, quoted(mean), shown(mean), against, &[At::Reported(at)]);
            }
        }
    }

    /// Shares of CPUs, and rates of machines.
    fn host(&mut self) {
        let cpus = self.measured.cpus.unwrap_or(MOST_CPUS);
        for (at, figure) in self.step.reported.iter().enumerate() {
            let is_of_machine = matches!(figure.layer.as_str(), "host" | "device");
            let is_cpu = figure.unit == "%" && figure.name.to_ascii_lowercase().contains("cpu");
            let all = match figure.layer.as_str() {
                _ if is_cpu => 100.0 * f64::from(cpus) + 1.0,
                "host" if figure.metric.is_some() => ALL,
                "device" => DEVICE,
                _ => f64::INFINITY,
            };
            // Times of devices may be sums.
            if (is_of_machine && figure.unit != "ms" || is_cpu)
                && let Some(found) = wrapped(&quoted(figure), &figure.unit, figure.value, all)
            {
                self.found.push(Violation { at: vec![At::Reported(at)], ..found });
            }
        }
        let (Some(cpu), Some(cpus)) = (&self.step.host_cpu, self.measured.cpus.filter(|cpus| *cpus > 0)) else {
            return;
        };
        let parts = [Some(cpu.busy_ns()), cpu.iowait_ns, cpu.steal_ns, cpu.idle_ns];
        let percent = parts.into_iter().flatten().map(|ns| ns as f64).sum::<f64>() / self.seconds / 1e7;
        if self.seconds > 0.0 && percent > (ALL + LATE) * f64::from(cpus) {
            let against = format!("{cpus} CPUs have {} %", cpus.saturating_mul(100));
            let figure = "The CPU time of the machine".to_owned();
            self.add(Invariant::ShareOfWhole, figure, format!("{percent:.0} %"), against, &[At::HostCpu]);
        }
    }

    /// Rates that their own counts contradict. The counts are kept.
    fn rates(&mut self) {
        let (program, seconds) = (self.measured.program, self.seconds);
        for (_, name, count, counted) in HEADLINES.iter().filter(|(of, ..)| *of == program && seconds > 0.0) {
            let Some(count) = count(&self.step.counters).map(|count| count as f64) else { continue };
            let rate = count / seconds;
            for (at, figure) in self.step.reported.iter().enumerate() {
                let tolerance = RATE_TOLERANCE * rate.max(MIN_RATE);
                if figure.name.starts_with(name) && !is_rate_of(figure.value, count, seconds, tolerance) {
                    let against = format!(
                        "{} {counted} in {} are {}/s",
                        group_thousands(count),
                        Nanos(self.step.window.duration_ns),
                        group_thousands(rate.round())
                    );
                    self.add(Invariant::RateTimesTime, quoted(figure), shown(figure), against, &[At::Reported(at)]);
                }
            }
        }
    }

    /// Rates of a network that the bytes over the time contradict. Which of both is wrong is not known.
    fn transfers(&mut self) {
        let reported = || self.step.reported.iter().enumerate();
        let mut found = Vec::new();
        for (at, rate) in reported().filter(|(_, figure)| figure.unit == "bits/s" && self.seconds > 1.0) {
            let Some(name) = rate.name.strip_suffix("bits/s").map(|stem| format!("{stem}bytes")) else { continue };
            let Some((of_bytes, bytes)) =
                reported().find(|(_, figure)| figure.name == name && figure.layer == rate.layer)
            else {
                continue;
            };
            let by_bytes = bytes.value * 8.0 / self.seconds;
            let tolerance = TRANSFER_TOLERANCE * by_bytes.max(rate.value);
            if !is_rate_of(rate.value, bytes.value * 8.0, self.seconds, tolerance) {
                let over = Nanos(self.step.window.duration_ns);
                let against = format!("`{name}` over {over} are {} bits/s", group_thousands(by_bytes.round()));
                found.push((quoted(rate), shown(rate), against, [At::Reported(at), At::Reported(of_bytes)]));
            }
        }
        for (figure, value, against, at) in found {
            self.add(Invariant::RateTimesTime, figure, value, against, &at);
        }
    }

    fn bytes(&mut self) {
        let Counters { physical_reads, physical_read_bytes, physical_writes, physical_write_bytes, .. } =
            &self.step.counters;
        let ways = [
            ("read", At::ReadBytes, physical_reads, physical_read_bytes),
            ("written", At::WriteBytes, physical_writes, physical_write_bytes),
        ];
        for (way, at, requests, bytes) in ways {
            let (Some(size), Some(requests), Some(bytes)) = (self.measured.request_bytes, requests, bytes) else {
                continue;
            };
            let expected = *requests as f64 * size as f64;
            if (*bytes as f64 - expected).abs() > SIZE_TOLERANCE * expected + size as f64 {
                let [requests, expected, bytes] =
                    [*requests as f64, expected, *bytes as f64].map(|value| group_thousands(value.round()));
                let against = format!("{requests} requests of {size} bytes are {expected}");
                self.add(Invariant::BytesOfRequests, format!("The count of bytes {way}"), bytes, against, &[at]);
            }
        }
    }

    /// Operations of a closed loop do not take longer than all sessions have time.
    fn busy(&mut self) {
        let step = self.step;
        let Some(sessions) = step.load.sessions.filter(|_| step.load.arrival.is_none() && self.seconds > 0.0) else {
            return;
        };
        let taken: Option<Vec<f64>> =
            step.operations.iter().map(|one| one.service.total_ns().map(|ns| ns as f64)).collect();
        let Some(taken_ns) = taken.map(|taken| taken.iter().sum::<f64>()) else { return };
        let load_ns = step.window.warmup_ns.saturating_add(step.window.duration_ns);
        if taken_ns > limit(load_ns) * f64::from(sessions) * BUSY_TOLERANCE {
            let of = |at: usize| {
                [Times::Service(at), Times::Response(at)].into_iter().flat_map(|times| {
                    [At::Mean(times), At::Percentiles(times), At::Longest(times), At::Shortest(times)]
                })
            };
            let at: Vec<At> = (0..step.operations.len()).flat_map(of).collect();
            let against = format!("a depth of {sessions} has less time in {}", Nanos(load_ns));
            let figure = "The time of all operations together (rate x latency)".to_owned();
            self.add(Invariant::LittlesLaw, figure, Nanos(taken_ns as u64), against, &at);
        }
    }

    /// Queues of devices, as iostat makes them.
    fn depths(&mut self) {
        for device in &self.step.devices {
            let elapsed_ns = device.elapsed_ns.max(1) as f64;
            let queue = device.weighted_ns as f64 / elapsed_ns;
            let by_times = (device.read_time_ns as f64 + device.write_time_ns as f64) / elapsed_ns;
            // Requests of other kinds, such as discards, are in the queue only.
            if by_times > 1.0 && by_times > queue.max(1.0) * DEPTH_FACTOR {
                let against = format!("its requests times their mean time are {by_times:.2}");
                let figure = format!("The queue of {}", device.name);
                self.add(Invariant::DepthOfDevice, figure, format!("{queue:.2}"), against, &[]);
            }
        }
    }

    /// Intervals that cover the whole window add up to its counts, and to the bytes that both report by one name.
    fn intervals(&mut self) {
        let step = self.step;
        let in_window = || step.intervals.iter().filter(|interval| !interval.warmup);
        let covered_ns: u64 = in_window().map(|interval| interval.duration_ns).fold(0, u64::saturating_add);
        let window_ns = step.window.duration_ns;
        if in_window().nth(1).is_none() || covered_ns.abs_diff(window_ns) as f64 > 0.01 * window_ns as f64 {
            return;
        }
        let mut compare = |figure: String, whole: f64, sum: Option<f64>, at: &[At]| {
            if let Some(sum) = sum.filter(|sum| (sum - whole).abs() > INTERVAL_TOLERANCE * sum.max(whole)) {
                let [whole, sum] = [whole, sum].map(|value| group_thousands(value.round()));
                self.add(Invariant::IntervalsAddUp, figure, whole, format!("all intervals together have {sum}"), at);
            }
        };
        if let Some(operations) = step.counters.operations {
            let of = |interval: &Interval| interval.counters.operations.map(|count| count as f64);
            compare("The count of operations".to_owned(), operations as f64, in_window().map(of).sum(), &[]);
        }
        let is_bytes = |figure: &ReportedFigure| figure.unit == "bytes" && figure.name.ends_with(" bytes");
        for (at, figure) in step.reported.iter().enumerate().filter(|(_, figure)| is_bytes(figure)) {
            let of = |interval: &Interval| interval.reported.get(&figure.name).copied();
            compare(quoted(figure), figure.value, in_window().map(of).sum(), &[At::Reported(at)]);
        }
    }
}

fn quoted(figure: &ReportedFigure) -> String {
    format!("`{}`", figure.name)
}

fn shown(figure: &ReportedFigure) -> String {
    let value = if figure.value.abs() < 1e3 { figure.value.to_string() } else { group_thousands(figure.value) };
    format!("{value} {}", figure.unit).trim_end().to_owned()
}

/// Nanoseconds of a unit of time.
fn unit_ns(unit: &str) -> Option<f64> {
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6)].into_iter().find(|(known, _)| *known == unit).map(|(_, ns)| ns)
}

fn lasted(load_ns: u64) -> String {
    format!("the load lasted {}", Nanos(load_ns))
}

/// The longest duration that fits into a load, programs' rounding included.
fn limit(load_ns: u64) -> f64 {
    load_ns as f64 * LATE + LATE_NS
}

/// What the last digit of a duration may stand for: one that ends in zeros was rounded to the digits before them.
fn last_digit(ns: u64) -> f64 {
    let zeros = (1..=9).take_while(|zeros| ns.is_multiple_of(10_u64.pow(*zeros))).last();
    1.01 * 10_f64.powi(zeros.map_or(0, |zeros| zeros as i32))
}

/// What the last decimal that is printed of a value may stand for.
fn rounding(value: f64) -> f64 {
    let text = value.to_string();
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    10_f64.powi(-i32::try_from(decimals).unwrap_or(0))
}
