//! What normal output reports on one job.

use super::{after, around, bytes, figure, time_unit, value, without_words};
use crate::draft::{reported_figure, whole};
use crate::fio::assemble::LAYER;
use crate::fio::latency::shares_of_labels;
use crate::fio::{Direction, Job, Latency, Measure, Way, figure_of};
use crate::numbers;

/// One job, as its lines come.
#[derive(Debug, Default)]
pub struct Block {
    /// The line at which it begins.
    pub line: u64,
    /// Its name, with what a log put before it.
    raw_name: String,
    /// The server that reports it, where there are several.
    pub server: Option<String>,
    /// When it was printed, on the wall.
    pub printed: Option<jiff::civil::DateTime>,
    /// Whether the number of its requests was reported, which comes near the end.
    pub is_counted: bool,
    /// How many words a log puts before each line, where that can be seen.
    pub words_before: Option<usize>,
    job: Job,
    parts: Vec<Part>,
    totals: Option<[u64; 4]>,
    shares: Vec<(u64, Option<u64>, f64)>,
    percentiles_of: Option<(Name, f64, &'static str)>,
}

/// One direction of it.
#[derive(Debug)]
struct Part {
    way: Way,
    iops: Option<f64>,
    bytes: Option<f64>,
    runtime_ms: Option<f64>,
    completion: Option<Latency>,
    total: Option<Latency>,
}

/// A latency by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Submission,
    Completion,
    Total,
    Sync,
}

/// How lines with figures and with percentiles of each begin, up to the unit.
const BEGINNINGS: [(&str, &str, Name); 4] = [
    ("slat (", "slat percentiles (", Name::Submission),
    ("clat (", "clat percentiles (", Name::Completion),
    ("lat (", "lat percentiles (", Name::Total),
    ("sync (", "sync percentiles (", Name::Sync),
];

impl Name {
    /// How JSON calls it, in a direction.
    fn shown(self, way: Way) -> String {
        let name = match self {
            Self::Submission => "slat",
            Self::Completion => "clat",
            Self::Total | Self::Sync => "lat",
        };
        format!("{} {name}", way.name())
    }
}

impl Block {
    /// The job that begins at a line such as `name: (groupid=0, jobs=4): err= 0: pid=9531: Fri Apr  2 23:07:00 2021`.
    pub fn begin(line: &str, number: u64) -> Option<Self> {
        let (name, rest) = line.split_once(": (groupid=")?;
        let (group, rest) = rest.split_once(", jobs=")?;
        let (processes, rest) = rest.split_once("): err=")?;
        let end = rest.trim_start().find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.trim_start().len());
        let (error, rest) = rest.trim_start().split_at(end);
        let (what, rest) = rest.rsplit_once("pid=").unwrap_or((rest, ""));
        let (pid, date) = rest.split_once(':').unwrap_or((rest, ""));
        let what = what.trim().trim_end_matches(':').trim_matches(['(', ')', ' ', ':']);
        let failure = (!error.trim_start_matches('0').is_empty()).then(|| match what {
            "" => format!("fio says error {error}"),
            what => format!("fio says error {error}: {what}"),
        });
        let job = Job {
            group: group.trim().parse().ok()?,
            processes: Some(processes.trim().parse().ok()?),
            error: error.parse().ok(),
            pid: pid.trim().parse().ok(),
            failure,
            ..Job::default()
        };
        Some(Self { line: number, raw_name: name.to_owned(), printed: printed(date), job, ..Self::default() })
    }

    /// Its name.
    pub fn name(&self, words_before: usize) -> &str {
        without_words(&self.raw_name, words_before)
    }

    /// Its group, and its process.
    pub fn identity(&self) -> (u64, Option<u64>) {
        (self.job.group, self.job.pid)
    }

    /// How many processes it sums up.
    pub fn processes(&self) -> u64 {
        self.job.processes.unwrap_or(1)
    }

    /// The longest time that it ran in a direction.
    pub fn runtime_ms(&self) -> Option<f64> {
        self.parts.iter().filter_map(|part| part.runtime_ms).max_by(f64::total_cmp)
    }

    /// Takes a line. Says what was not understood, of a line that belongs to a job.
    pub fn take(&mut self, line: &str) -> Result<(), String> {
        // Latency of one priority is of requests that are counted already.
        if [" prio ", "high prio_", "low prio_"].iter().any(|mark| line.contains(mark)) {
            self.percentiles_of = None;
            return Ok(());
        }
        if line.contains("th=[") {
            return self.take_percentiles(line);
        }
        if let Some((way, before, rest)) = direction_of(line) {
            self.words_before = Some(before.split_whitespace().count());
            return self.begin_direction(way, rest);
        }
        for (figures, percentiles, name) in BEGINNINGS {
            if let Some(unit) = after(line, percentiles) {
                let unit = unit.split(')').next().unwrap_or("");
                let (scale, short) = time_unit(unit).ok_or_else(|| format!("percentiles in `{unit}`"))?;
                self.percentiles_of = Some((name, scale, short));
                return Ok(());
            }
            if let Some((unit, rest)) = after(line, figures).and_then(|rest| rest.split_once(')')) {
                return self.take_latency(name, unit, rest);
            }
        }
        self.take_figures(line);
        Ok(())
    }

    fn begin_direction(&mut self, way: Way, rest: &str) -> Result<(), String> {
        let is_old = value(rest, "io").is_some();
        let iops = figure(rest, "IOPS").or_else(|| figure(rest, "iops"));
        // 3.x: `(1969MiB/180001msec)`; 2.x: `io=65152KB, ..., runt= 60055msec`.
        let mut parts = if is_old { "" } else { rest }.rsplit('(');
        let done = parts.find_map(|part| part.split_once("msec").and_then(|(part, _)| part.split_once('/')));
        let (volume, time) = match done {
            Some((volume, time)) => (Some(volume), Some(time)),
            None => (value(rest, "io"), value(rest, "runt").map(|time| time.trim_end_matches("msec"))),
        };
        let runtime_ms = time.and_then(numbers::number);
        let volume = volume.and_then(|volume| bytes(volume, is_old)).map(|(number, _, scale)| number * scale);
        if volume.is_none() && iops.is_none() {
            return Err(format!("`{}`, where bytes and requests per second were expected", rest.trim()));
        }
        // With `unified_rw_reporting=both` the sum beside its parts is printed as 0, at least up to 3.33.
        let iops = iops.filter(|iops| way != Way::Mixed || *iops > 0.0);
        let name = way.name();
        self.job.reported.extend(iops.map(|iops| figure_of(way, "iops", ("1/s", 1.0), iops)));
        if let Some((rate, unit, scale)) =
            value(rest, "BW").or_else(|| value(rest, "bw")).and_then(|rate| bytes(rate, is_old))
        {
            self.job.reported.push(figure_of(way, "bw", (&format!("{unit}/s"), scale), rate));
        }
        self.job.reported.extend(runtime_ms.map(|ms| reported_figure(LAYER, format!("{name} runtime"), "ms", ms)));
        self.parts.push(Part { way, iops, bytes: volume, runtime_ms, completion: None, total: None });
        Ok(())
    }

    fn take_latency(&mut self, name: Name, unit: &str, rest: &str) -> Result<(), String> {
        let (scale, short) = time_unit(unit).ok_or_else(|| format!("a latency in `{unit}`"))?;
        if !rest.contains("min=") {
            // `lat (usec) : 250=5.27%, 500=24.51%`: shares of all requests.
            if name == Name::Total {
                let pairs = rest.trim_start_matches([' ', ':']).split(',').filter_map(|pair| pair.rsplit_once('='));
                let labels: Vec<(&str, f64)> = pairs
                    .filter_map(|(label, share)| {
                        Some((label.trim(), numbers::number(share.trim().trim_end_matches('%'))?))
                    })
                    .collect();
                self.shares.extend(shares_of_labels(&labels, scale as u64));
            }
            return Ok(());
        }
        let mean = figure(rest, "avg");
        let ns = |value: Option<f64>| value.and_then(|value| whole(value * scale));
        let latency = Latency {
            measure: match name {
                Name::Completion => Some(Measure::Completion),
                Name::Total => Some(Measure::Total),
                Name::Submission | Name::Sync => None,
            },
            mean_ns: mean.map(|mean| mean * scale),
            min_ns: ns(figure(rest, "min")),
            max_ns: ns(figure(rest, "max")),
            ..Latency::default()
        };
        if name == Name::Sync && self.parts.last().is_none_or(|part| part.way != Way::Sync) {
            let way = Way::Sync;
            self.parts.push(Part { way, iops: None, bytes: None, runtime_ms: None, completion: None, total: None });
        }
        let Some(part) = self.parts.last_mut() else { return Err("a latency before any direction".to_owned()) };
        let shown = name.shown(part.way);
        for (figure_name, value) in [("mean", mean), ("stddev", figure(rest, "stdev"))] {
            self.job
                .reported
                .extend(value.map(|value| reported_figure(LAYER, format!("{shown} {figure_name}"), short, value)));
        }
        match name {
            Name::Completion | Name::Sync => part.completion = Some(latency),
            Name::Total => part.total = Some(latency),
            Name::Submission => {}
        }
        Ok(())
    }

    fn take_percentiles(&mut self, line: &str) -> Result<(), String> {
        let Some((name, scale, short)) = self.percentiles_of else { return Ok(()) };
        let Some(part) = self.parts.last_mut() else { return Err("percentiles before any direction".to_owned()) };
        let mut pairs = Vec::new();
        for pair in line.split(']').filter(|pair| pair.contains("th=[")) {
            let read = pair.split_once("th=[").and_then(|(percentage, value)| {
                let percentage = percentage.rsplit([' ', ',', '|', '\t']).next()?;
                Some((numbers::number(percentage)?, numbers::scaled(value)?))
            });
            pairs.push(read.ok_or_else(|| format!("`{}]`, where a percentile was expected", pair.trim()))?);
        }
        let latency = match name {
            Name::Completion | Name::Sync => part.completion.as_mut(),
            Name::Total => part.total.as_mut(),
            Name::Submission => None,
        };
        let shown = name.shown(part.way);
        for (percentage, value) in &pairs {
            if *percentage == 99.0 || latency.is_none() {
                self.job.reported.push(reported_figure(
                    LAYER,
                    format!("{shown} percentile {percentage}"),
                    short,
                    *value,
                ));
            }
        }
        if let Some(latency) = latency {
            let least = latency.percentiles.last().map_or(0.0, |(_, ns)| *ns);
            let mut rising = least;
            for (percentage, value) in pairs {
                if value * scale < rising {
                    return Err("percentiles that fall where they should rise".to_owned());
                }
                rising = value * scale;
                latency.percentiles.push((percentage, rising));
            }
        }
        Ok(())
    }

    fn take_figures(&mut self, line: &str) {
        let mut push = |name: &str, unit: &str, value: Option<f64>| {
            self.job.reported.extend(value.map(|value| reported_figure("client", name, unit, value)));
        };
        if line.contains("usr=") && line.contains("sys=") {
            push("usr_cpu", "%", figure(line, "usr"));
            push("sys_cpu", "%", figure(line, "sys"));
            for name in ["ctx", "majf", "minf"] {
                push(name, "", figure(line, name));
            }
        } else if let Some(rest) = after(line, "IO depths") {
            // The last level is `>=64=0.0%`.
            let pairs = rest.trim_start_matches([' ', ':']).split(',').filter_map(|pair| pair.rsplit_once('='));
            for (level, share) in pairs {
                let share = numbers::number(share.trim().trim_end_matches('%')).filter(|share| *share > 0.0);
                push(&format!("iodepth_level {}", level.trim()), "%", share);
            }
        } else if let Some(rest) = after(line, "issued") {
            self.totals = totals(rest);
            self.is_counted = self.totals.is_some();
        } else if after(line, "latency").is_some() && line.contains("target=") {
            self.job.depth = figure(line, "depth").and_then(whole);
        } else if line.contains("first_error=") {
            let total = figure(line, "total");
            push("total_err", "", total);
            self.job.errors = total.and_then(whole);
            // With `continue_on_error` the error is the first one that it went on after.
            let first = value(line, "first_error").and_then(|first| first.split('/').next()?.parse().ok());
            if first.is_some() && first == self.job.error && self.job.errors > Some(0) {
                self.job.failure = None;
            }
        } else if let Some(part) = self.parts.last() {
            let way = part.way.name();
            let (name, unit) = match (around(line, "bw ("), around(line, "iops ")) {
                (Some((_, rest)), _) => {
                    let unit: String = rest.split(')').next().unwrap_or("").split_whitespace().collect();
                    // `KB  /s` of 2.x is what is called KiB now.
                    ("bw", if unit == "KB/s" { "KiB/s".to_owned() } else { unit })
                }
                (_, Some(_)) => ("iops", "1/s".to_owned()),
                _ => return,
            };
            let deviation = if name == "bw" { "bw_dev" } else { "iops_stddev" };
            let named = [("min", "_min"), ("max", "_max"), ("avg", "_mean"), ("stdev", "")];
            for (printed, suffix) in named {
                let figure_name = if suffix.is_empty() { deviation.to_owned() } else { format!("{name}{suffix}") };
                let value = figure(line, printed);
                self.job
                    .reported
                    .extend(value.map(|value| reported_figure(LAYER, format!("{way} {figure_name}"), &unit, value)));
            }
        }
    }

    /// The job, named, with the sizes of requests where each direction has one.
    pub fn finish(mut self, words_before: usize, blocks: [Option<u64>; 3]) -> Job {
        self.job.name = self.name(words_before).trim().to_owned();
        self.job.host = self.server;
        self.job.is_partial = self.totals.is_none();
        let requests_of_one_way = self.parts.iter().filter(|part| part.way != Way::Sync).count() == 1;
        for part in self.parts {
            let requests = match (part.way.place(), self.totals) {
                (Some(place), Some(totals)) => totals.get(place).copied(),
                (None, Some(totals)) if part.way == Way::Sync => Some(totals[3]).filter(|syncs| *syncs > 0),
                (None, Some(totals)) => totals.iter().take(3).try_fold(0_u64, |sum, more| sum.checked_add(*more)),
                (_, None) => {
                    let by_rate = part.iops.zip(part.runtime_ms).and_then(|(iops, ms)| whole(iops * ms / 1e3));
                    self.job.counts_from_rate |= by_rate.is_some();
                    by_rate.filter(|requests| *requests > 0)
                }
            };
            let reported_bytes = part.bytes.and_then(whole);
            let exact = part.way.place().and_then(|place| blocks.get(place).copied().flatten());
            let exact = exact.zip(requests.filter(|_| self.totals.is_some())).and_then(|(block, requests)| {
                let exact = block.checked_mul(requests)?;
                // Three digits are printed at least.
                let near =
                    |reported: u64| (exact as f64 - reported as f64).abs() <= reported as f64 * 0.01 + block as f64;
                reported_bytes.is_some_and(near).then_some(exact)
            });
            self.job.bytes_rounded |= exact.is_none() && reported_bytes.is_some_and(|bytes| bytes > 0);
            let bytes = exact.or(reported_bytes);
            let takes_total = part.completion.as_ref().is_none_or(|latency| !latency.is_distribution())
                && part.total.as_ref().is_some_and(|latency| latency.is_distribution() || part.completion.is_none());
            let mut latency = match (part.completion, part.total) {
                (Some(completion), Some(total)) => {
                    Some(Latency::chosen(completion, total, takes_total, part.way, &mut self.job.doubts))
                }
                (completion, total) => completion.or(total),
            };
            if let Some(latency) = latency.as_mut().filter(|latency| !latency.is_distribution())
                && requests_of_one_way
                && part.way != Way::Sync
            {
                latency.shares.append(&mut self.shares);
            }
            // fio leaves `fdatasync` out of its counts: then nothing can be made of its percentiles but what they are.
            if let Some(latency) = latency.as_ref().filter(|_| part.way == Way::Sync && requests.is_none()) {
                let figure_of = |(percentage, ns): &(f64, f64)| {
                    (*percentage != 99.0)
                        .then(|| reported_figure(LAYER, format!("sync lat percentile {percentage}"), "us", ns / 1e3))
                };
                self.job.reported.extend(latency.percentiles.iter().filter_map(figure_of));
            }
            if [requests, bytes].into_iter().flatten().any(|count| count > 0) || latency.is_some() {
                let runtime_ms = part.runtime_ms.filter(|ms| *ms > 0.0);
                self.job.directions.push(Direction { way: part.way, requests, bytes, runtime_ms, latency });
            }
        }
        self.job
    }
}

/// The direction that a line begins, what stands before it, and the rest of the line.
fn direction_of(line: &str) -> Option<(Way, &str, &str)> {
    let (before, rest) = [": IOPS=", ": io="].into_iter().find_map(|mark| {
        let at = line.find(mark)?;
        Some((line.get(..at)?.trim_end(), line.get(at + 1..)?))
    })?;
    let ways = [Way::Read, Way::Write, Way::Trim, Way::Mixed];
    ways.into_iter().find_map(|way| {
        let before = before.strip_suffix(way.name())?;
        (!before.ends_with(|c: char| c.is_alphanumeric())).then_some((way, before, rest))
    })
}

/// Reads, writes, trims and syncs: `rwts: total=0,1024,0,0 short=...`, `: total=r=8177/w=8200/d=0, ...`, `r/w/d: total=9/0/0`.
fn totals(text: &str) -> Option<[u64; 4]> {
    let text = after(text, "total")?.strip_prefix('=')?;
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let counts: Vec<u64> = text
        .get(..end)?
        .trim_end_matches(',')
        .split([',', '/'])
        .map(|count| count.rsplit('=').next().and_then(numbers::whole_number))
        .collect::<Option<_>>()?;
    let at = |place: usize| counts.get(place).copied().unwrap_or(0);
    (counts.len() >= 2).then(|| [at(0), at(1), at(2), at(3)])
}

/// `Fri Apr  2 23:07:00 2021`, as C prints it whatever the locale.
fn printed(text: &str) -> Option<jiff::civil::DateTime> {
    let words: Vec<&str> = text.split_whitespace().skip(1).take(4).collect();
    jiff::civil::DateTime::strptime("%b %d %H:%M:%S %Y", words.join(" ")).ok()
}
