//! What a database asks of storage.

use super::super::trend::{Trend, TrendWindow};
use super::super::{LatencyTarget, QuantileValue, SINGLE_BLOCK_READ, Subject, is_on_servers};
use super::Rates;
use super::platform::{quantile, with_subject};
use model::record::{Metric, Run, Step};

/// Which of a database's windows are to be carried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Share {
    /// All of them.
    Peak,
    /// What was not exceeded in this share of the time, 0 to 1.
    Quantile(f64),
}

impl Share {
    /// Of so many seconds those that need not be carried. A microsecond more than the share, which rounding makes smaller than it is: 0.1
    /// of 100 hours are 10.
    pub(super) fn left_out_s(self, all_s: f64) -> f64 {
        match self {
            Self::Peak => 0.0,
            Self::Quantile(quantile) => (1.0 - quantile) * all_s + 1e-6,
        }
    }

    /// `peak` or `p95`.
    pub fn name(self) -> String {
        match self {
            Self::Peak => "peak".to_owned(),
            Self::Quantile(quantile) => format!("p{}", (quantile * 1e6).round() / 1e4),
        }
    }
}

/// What a database asks for, each respect by itself: its peaks need not fall into one window.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// The database.
    pub database: String,
    /// Whether it is one instance of a cluster, whose others load the same storage.
    pub is_of_cluster: bool,
    /// Which of its windows.
    pub share: Share,
    /// What is asked for.
    pub rates: Rates,
    /// Windows that it is taken from.
    pub windows: usize,
    /// Length of the shortest and of the longest, in seconds.
    pub lengths_s: (f64, f64),
    /// Share of the time from the first to the last that windows cover, 0 to 1.
    pub covered_share: f64,
    /// Reads as a share of all requests over all windows, 0 to 1.
    pub read_share: Option<f64>,
    /// Processors that its host kept busy, by the same measure; absent where it is not known of how many, or of several hosts.
    pub processors: Option<f64>,
    /// Bytes of memory that it takes at most: of Oracle its SGA and PGA, of the engine of this program the whole process.
    pub memory_bytes: Option<f64>,
    /// The window with that many requests.
    pub window: Option<DemandWindow>,
    /// Its windows; none where it is the sum of several databases.
    each: Vec<Window>,
}

/// What one window asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Window {
    /// When it began; absent of a sum.
    pub(super) from: Option<jiff::Timestamp>,
    /// How long it is.
    pub(super) seconds: f64,
    pub(super) rates: Rates,
}

/// What the database itself saw in the window whose requests are asked for, or in that of the next larger number.
#[derive(Debug, Clone, PartialEq)]
pub struct DemandWindow {
    /// Id of the run.
    pub run: String,
    /// When it began.
    pub from: jiff::Timestamp,
    /// When it ended.
    pub to: jiff::Timestamp,
    /// Mean of what the target judges, in milliseconds.
    pub mean_ms: Option<f64>,
    /// The target's quantile of it.
    pub quantile: Option<QuantileValue>,
    /// What was judged, in words.
    pub subject: String,
}

/// Whether the reports are of one instance of an Oracle cluster: others put their load on the same storage.
pub fn is_one_of_cluster(trend: &Trend, runs: &[&Run]) -> bool {
    let is_clustered = |run: &&Run| run.target.facts.database.is_clustered == Some(true);
    trend.database.scope.instance.is_some() && runs.iter().any(is_clustered)
}

impl Demand {
    /// Of the windows of one database; `runs` are those that they are from.
    pub fn of(trend: &Trend, runs: &[&Run], share: Share, target: &LatencyTarget) -> Self {
        let rate = |measure| match share {
            Share::Peak => trend.summary(measure).map(|summary| summary.peak),
            Share::Quantile(quantile) => trend.quantile(measure, quantile),
        };
        // What a server writes reaches storage later and in other requests, as the platform's own levels have it.
        let is_on_server = runs.iter().any(|run| is_on_servers(run));
        let rates = self::rates(is_on_server, rate);
        let of_window = |window: &TrendWindow| {
            let rates = self::rates(is_on_server, |measure| Some(window.reading(measure)?.value));
            Window { from: Some(window.from), seconds: window.seconds, rates }
        };
        let telling = |respect| {
            let measure = match respect {
                Metric::Writes => Metric::Writes,
                Metric::Megabytes => Metric::Megabytes,
                _ => Metric::Reads,
            };
            trend.summary(measure).filter(|_| rates.of(respect).is_some()).map(|it| (it.windows, it.covered_s))
        };
        let all_s: f64 = trend.windows.iter().map(|window| window.seconds).sum();
        let covered = [Metric::Reads, Metric::Writes, Metric::Megabytes].into_iter().filter_map(telling);
        let (windows, reported_s) = covered.min_by_key(|(windows, _)| *windows).unwrap_or((trend.windows.len(), all_s));
        let mean = |measure| trend.summary(measure).and_then(|summary| summary.mean);
        let read_share = mean(Metric::Reads).zip(mean(Metric::Writes)).map(|(reads, writes)| reads / (reads + writes));
        let [least, _, most] = trend.lengths_s().unwrap_or_default();
        Self {
            database: trend.database.name.clone(),
            is_of_cluster: is_one_of_cluster(trend, runs),
            share,
            rates,
            windows,
            lengths_s: (least, most),
            covered_share: trend.covered_share() * if all_s > 0.0 { reported_s / all_s } else { 1.0 },
            read_share: read_share.filter(|share| share.is_finite()),
            processors: cpus(runs).zip(rate(Metric::HostBusy)).map(|(cpus, percent)| cpus * percent / 100.0),
            memory_bytes: memory_bytes(runs),
            window: window(trend, runs, &rates, target),
            each: trend.windows.iter().map(of_window).collect(),
        }
    }

    /// Whether windows of which `is_enough` holds are part of what is to be carried: one of them at the peak, and at a
    /// percentile more of the time than may be left out.
    pub(super) fn is_reached(&self, is_enough: impl Fn(&Rates) -> bool) -> bool {
        let seconds = |windows: &mut dyn Iterator<Item = &Window>| windows.map(|window| window.seconds).sum::<f64>();
        let enough_s = seconds(&mut self.each.iter().filter(|window| is_enough(&window.rates)));
        enough_s > self.share.left_out_s(seconds(&mut self.each.iter()))
    }

    /// Reads and writes per second of each window that reports both; none of a sum of several databases.
    pub fn points(&self) -> Vec<(f64, f64)> {
        self.each.iter().filter_map(|window| window.rates.reads.zip(window.rates.writes)).collect()
    }

    /// Its windows, or what several databases need at once as one.
    pub(super) fn windows_of(&self) -> Vec<Window> {
        if !self.each.is_empty() || self.windows == 0 {
            return self.each.clone();
        }
        vec![Window { from: None, seconds: 1.0, rates: self.rates }]
    }

    /// Whether `covers` holds of enough windows: of all at the peak, and at a percentile of so much of the time.
    pub(super) fn is_covered(&self, covers: impl Fn(&Rates) -> bool) -> bool {
        !self.each.is_empty() && !self.is_reached(|window| !covers(window))
    }

    /// Several databases at once: the sum of what each asks for, which is at least what all of them ask for at one time. Absent
    /// of fewer than two. What one of them does not report is not known of all, and no window of it is one of all.
    pub fn together(demands: &[Self]) -> Option<Self> {
        let [first, _, ..] = demands else { return None };
        let sum = |respect: Metric| demands.iter().map(|demand| demand.rates.of(respect)).sum::<Option<f64>>();
        let rates = Rates {
            reads: sum(Metric::Reads),
            writes: sum(Metric::Writes),
            io: sum(Metric::Io),
            megabytes: sum(Metric::Megabytes),
            redo: sum(Metric::RedoMegabytes),
            commits: sum(Metric::Commits),
        };
        let least = |of: fn(&Self) -> f64| demands.iter().map(of).fold(f64::INFINITY, f64::min);
        let names: Vec<&str> = demands.iter().map(|demand| demand.database.as_str()).collect();
        Some(Self {
            database: names.join(" + "),
            // Each says so of itself.
            is_of_cluster: false,
            share: first.share,
            rates,
            windows: demands.iter().map(|demand| demand.windows).min().unwrap_or(0),
            lengths_s: (least(|it| it.lengths_s.0), demands.iter().map(|it| it.lengths_s.1).fold(0.0, f64::max)),
            covered_share: least(|it| it.covered_share),
            read_share: rates.read_share(),
            processors: demands.iter().map(|demand| demand.processors).sum(),
            memory_bytes: demands.iter().map(|demand| demand.memory_bytes).sum(),
            window: None,
            each: Vec::new(),
        })
    }
}

/// Whether what a run reports of a host is of the only one on which its database is.
fn is_of_one_host(run: &Run) -> bool {
    !is_on_servers(run) && run.target.facts.database.is_clustered != Some(true)
}

/// Processors of the host, if it is one and the same in all runs.
fn cpus(runs: &[&Run]) -> Option<f64> {
    let first = runs.first()?.environment.cpus?;
    let is_same = |run: &&Run| run.environment.cpus == Some(first) && is_of_one_host(run);
    runs.iter().all(is_same).then_some(f64::from(first))
}

/// The most memory in a run, if all of them report it.
fn memory_bytes(runs: &[&Run]) -> Option<f64> {
    let of_step = |step: &Step| {
        let used = |name: &str| {
            let mut tables = step.tables.iter().filter(|table| table.subject == "Memory");
            let rows = tables.next()?.rows.iter().filter(|row| row.names.first().is_some_and(|own| own == name));
            rows.flat_map(|row| row.values.iter().flatten().copied()).reduce(f64::max)
        };
        let of_process = || step.peak_memory_bytes.map(|bytes| bytes as f64);
        used("SGA use").zip(used("PGA use")).map(|(sga, pga)| sga + pga).or_else(of_process)
    };
    let of_run = |run: &&Run| {
        let steps = run.steps.iter().filter(|_| is_of_one_host(run));
        steps.filter_map(of_step).reduce(f64::max)
    };
    let each: Option<Vec<f64>> = runs.iter().map(of_run).collect();
    each?.into_iter().reduce(f64::max)
}

/// Rates by what `rate` has of each measure.
fn rates(is_on_server: bool, rate: impl Fn(Metric) -> Option<f64>) -> Rates {
    let in_requests = |measure| rate(measure).filter(|_| !is_on_server);
    Rates {
        reads: rate(Metric::Reads),
        writes: in_requests(Metric::Writes),
        io: in_requests(Metric::Io),
        megabytes: in_requests(Metric::Megabytes),
        redo: rate(Metric::RedoMegabytes),
        commits: rate(Metric::Commits),
    }
}

fn window(trend: &Trend, runs: &[&Run], rates: &Rates, target: &LatencyTarget) -> Option<DemandWindow> {
    let (measure, asked) = match (rates.io, rates.reads) {
        (Some(io), _) => (Metric::Io, io),
        (None, reads) => (Metric::Reads, reads?),
    };
    let value = |window: &TrendWindow| Some(window.reading(measure)?.value);
    let enough = trend.windows.iter().filter(|window| value(window).is_some_and(|value| value >= asked));
    let window = enough.min_by(|a, b| value(a).unwrap_or(0.0).total_cmp(&value(b).unwrap_or(0.0)))?;
    let run = runs.iter().find(|run| run.id == window.run)?;
    let step = run.steps.iter().find(|step| step.label == window.step)?;
    // Of one snapshot among many in a step no more than its mean is kept.
    if (window.seconds - step.window.duration_ns as f64 / 1e9).abs() > 1.0 {
        return Some(DemandWindow {
            run: run.id.clone(),
            from: window.from,
            to: window.to,
            mean_ms: window.reading(Metric::ReadTime).map(|reading| reading.value),
            quantile: None,
            subject: Subject::Event(SINGLE_BLOCK_READ.to_owned()).to_string(),
        });
    }
    let target = with_subject(run, target);
    let subject = target.subject.as_ref()?;
    let times = subject.times(step);
    Some(DemandWindow {
        run: run.id.clone(),
        from: window.from,
        to: window.to,
        mean_ms: times.as_ref().and_then(|times| times.mean_ns()).map(|ns| ns / 1e6),
        quantile: quantile(times.as_deref(), &target),
        subject: subject.to_string(),
    })
}
