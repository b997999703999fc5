//! Runs that go on, as families of metrics: OpenMetrics text for Prometheus and whatever else reads that, and what `push` sends.
//!
//! Counts and histograms grow from the start of a run's load, warm-up included: a scraper takes differences itself. Names follow the
//! convention: base units, `_total` for counts, the unit in the name. The format is OpenMetrics 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use analysis::Figures;
use model::record::store::Summary;
use model::record::{Counters, CpuTime, DeviceStats, Histogram, Interval, Metric, POWER_OF_TWO_BOUNDS, Step, Workload};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const NS_PER_S: f64 = 1e9;

/// All intervals of a run so far, added up.
#[derive(Debug, Clone, Default)]
pub struct SoFar {
    step: u32,
    is_warmup: bool,
    loaded_ns: u64,
    counters: Counters,
    response: Histogram,
    waits: BTreeMap<String, Histogram>,
    process_cpu: Option<CpuTime>,
    devices: BTreeMap<String, DeviceStats>,
}

impl SoFar {
    /// Adds the next interval.
    pub fn add(&mut self, interval: &Interval) {
        (self.step, self.is_warmup) = (interval.step, interval.warmup);
        self.loaded_ns = self.loaded_ns.saturating_add(interval.duration_ns);
        self.counters.add(&interval.counters);
        self.response.merge(&interval.response);
        for (event, waits) in &interval.waits {
            self.waits.entry(event.clone()).or_default().merge(waits);
        }
        if let Some(cpu) = interval.process_cpu {
            let sum = self.process_cpu.get_or_insert_default();
            sum.user_ns = sum.user_ns.saturating_add(cpu.user_ns);
            sum.system_ns = sum.system_ns.saturating_add(cpu.system_ns);
        }
        for device in &interval.devices {
            let sum = self.devices.entry(device.name.clone()).or_default();
            let adds = [
                (&mut sum.reads, device.reads),
                (&mut sum.read_bytes, device.read_bytes),
                (&mut sum.writes, device.writes),
                (&mut sum.write_bytes, device.write_bytes),
                (&mut sum.busy_ns, device.busy_ns),
            ];
            adds.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        }
    }
}

/// What is counted of a device: the metric whose rate it is, and what is counted.
type OfDevice = (Metric, fn(&DeviceStats) -> u64);

const DEVICES: [OfDevice; 4] = [
    (Metric::DeviceReads, |device| device.reads),
    (Metric::DeviceReadMegabytes, |device| device.read_bytes),
    (Metric::DeviceWrites, |device| device.writes),
    (Metric::DeviceWriteMegabytes, |device| device.write_bytes),
];

/// A name and its value.
pub type Label = (String, String);

/// What the values of a family are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Labels that say something; the value is always 1.
    Info,
    /// It rises and falls.
    Gauge,
    /// It only rises.
    Counter,
    /// Times in buckets, which only rise.
    Histogram,
}

/// A metric of runs, with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Its name, without the ending of its kind.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// What it counts, in a sentence without a full stop.
    pub help: String,
    /// Its values, each by its labels.
    pub points: Vec<(Vec<Label>, Value)>,
}

/// A value of a family.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// Times, in seconds.
    Times(Box<Times>),
}

/// Times in buckets of powers of two microseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    /// How many are in each bucket; the last one has no upper bound.
    pub counts: [u64; POWER_OF_TWO_BOUNDS + 1],
    /// Their sum in seconds, where it is known.
    pub sum_s: Option<f64>,
}

impl Times {
    fn of(histogram: &Histogram) -> Self {
        Self {
            counts: histogram.power_of_two_us().map(|count| count.unwrap_or(0)),
            sum_s: histogram.total_ns().map(|total_ns| total_ns as f64 / NS_PER_S),
        }
    }

    /// The upper bounds of all buckets but the last, in seconds. A bound is exclusive in wait tables and inclusive here; times are whole
    /// nanoseconds, and one that is exactly a bound counts in the next bucket.
    pub fn bounds_s() -> [f64; POWER_OF_TWO_BOUNDS] {
        std::array::from_fn(|bucket| (1_u64 << bucket) as f64 / 1e6)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Family {
    fn new(name: &str, kind: Kind, help: &str, points: Vec<(Vec<Label>, Value)>) -> Self {
        let mut help = help.to_owned();
        if let Some(first) = help.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        Self { name: format!("plimsoll_{name}"), kind, help, points }
    }

    /// The base unit of its values, if its name ends in one.
    pub fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes"].into_iter().find(|unit| self.name.ends_with(&format!("_{unit}")))
    }

    /// Its values as samples of plain numbers: name, labels, value. A histogram is its buckets, its count and its sum.
    pub fn samples(&self) -> Vec<(String, Vec<Label>, f64)> {
        let named = |ending: &str| format!("{}{ending}", self.name);
        let mut samples = Vec::new();
        for (labels, value) in &self.points {
            match value {
                Value::Number(value) => {
                    let ending = match self.kind {
                        Kind::Info => "_info",
                        Kind::Counter => "_total",
                        Kind::Gauge | Kind::Histogram => "",
                    };
                    samples.push((named(ending), labels.clone(), *value));
                }
                Value::Times(times) => {
                    let bounds = Times::bounds_s().map(|bound| bound.to_string());
                    let mut below = 0;
                    for (bound, count) in bounds.into_iter().chain(["+Inf".to_owned()]).zip(times.counts) {
                        below += count;
                        let labels = labels.iter().cloned().chain([("le".to_owned(), bound)]).collect();
                        samples.push((named("_bucket"), labels, below as f64));
                    }
                    samples.push((named("_count"), labels.clone(), below as f64));
                    samples.extend(times.sum_s.map(|sum_s| (named("_sum"), labels.clone(), sum_s)));
                }
            }
        }
        samples
    }
}

/// What is known of a run in progress besides what it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// What distinguishes it from others in the same place.
    pub key: String,
    /// What it is: its name, its workload, its target, and its tags.
    pub labels: Vec<Label>,
}

impl Identity {
    /// Of a run that is named so; a label has letters, digits and `_` only.
    pub fn new(key: &str, name: &str, workload: Workload, target: &str, tags: &BTreeMap<String, String>) -> Self {
        let own = [("name", name), ("workload", workload.name()), ("target", target)];
        let mut labels: Vec<Label> = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut names = BTreeSet::new();
        for (tag, value) in tags {
            let name = label_name(tag);
            // Two tags that differ only in what a label cannot have: the first one counts.
            if names.insert(name.clone()) {
                labels.push((name, value.clone()));
            }
        }
        Self { key: key.to_owned(), labels }
    }

    fn with(&self, more: &[(&str, &str)]) -> Vec<Label> {
        let own = [("run", self.key.as_str())];
        own.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }
}

/// All that is known of runs in progress.
pub fn families(runs: &[(Identity, &SoFar)]) -> Vec<Family> {
    let number = |run: &Identity, value: f64| (run.with(&[]), Value::Number(value));
    let of_each = |value: &dyn Fn(&SoFar) -> f64| runs.iter().map(|(run, so_far)| number(run, value(so_far))).collect();
    let named = |run: &Identity| run.with(&[]).into_iter().chain(run.labels.iter().cloned()).collect();
    let infos = runs.iter().map(|(run, _)| (named(run), Value::Number(1.0)));
    let mut families = vec![
        Family::new(
            "run",
            Kind::Info,
            "A run in progress: its name, its workload, its target, and its tags",
            infos.collect(),
        ),
        Family::new(
            "step",
            Kind::Gauge,
            "Number of the step that is under load, from 1",
            of_each(&|so_far| f64::from(so_far.step) + 1.0),
        ),
        Family::new(
            "warmup",
            Kind::Gauge,
            "1 while a step warms up, 0 in its window",
            of_each(&|so_far| f64::from(u8::from(so_far.is_warmup))),
        ),
        Family::new(
            "loaded_seconds",
            Kind::Counter,
            "Time under load",
            of_each(&|so_far| so_far.loaded_ns as f64 / NS_PER_S),
        ),
    ];
    for metric in Metric::COUNTED {
        let known = runs.iter().filter_map(|(run, so_far)| Some(number(run, metric.count(&so_far.counters)? as f64)));
        let known: Vec<_> = known.collect();
        if !known.is_empty() {
            families.push(Family::new(&metric.count_name(), Kind::Counter, metric.meaning(), known));
        }
    }
    let of_modes = runs.iter().flat_map(|(run, so_far)| {
        let modes = so_far.process_cpu.into_iter().flat_map(|cpu| [("user", cpu.user_ns), ("system", cpu.system_ns)]);
        modes.map(|(mode, ns)| (run.with(&[("mode", mode)]), Value::Number(ns as f64 / NS_PER_S)))
    });
    let cpu = "Processor time of the load generator, and of an engine inside it";
    families.push(Family::new("process_cpu_seconds", Kind::Counter, cpu, of_modes.collect()));
    let mut of_devices = |name: &str, help: &str, of: &dyn Fn(&DeviceStats) -> f64| {
        let points = runs.iter().flat_map(|(run, so_far)| {
            let each = so_far.devices.iter();
            each.map(|(device, stats)| (run.with(&[("device", device)]), Value::Number(of(stats))))
        });
        families.push(Family::new(name, Kind::Counter, help, points.collect()));
    };
    for (metric, of) in DEVICES {
        of_devices(&metric.count_name(), metric.meaning(), &|device| of(device) as f64);
    }
    of_devices("device_busy_seconds", Metric::DeviceBusy.meaning(), &|device| device.busy_ns as f64 / NS_PER_S);
    let responses =
        runs.iter().map(|(run, so_far)| (run.with(&[]), Value::Times(Box::new(Times::of(&so_far.response)))));
    let response = "Response time of operations, from due to finished";
    families.push(Family::new("response_seconds", Kind::Histogram, response, responses.collect()));
    let waits = runs.iter().flat_map(|(run, so_far)| {
        let each = so_far.waits.iter();
        each.map(|(event, waits)| (run.with(&[("event", event)]), Value::Times(Box::new(Times::of(waits)))))
    });
    families.push(Family::new("wait_seconds", Kind::Histogram, "Waits that ended, by event", waits.collect()));
    families
}

/// Quantiles of response times of a finished step.
const QUANTILES: [(&str, f64); 4] = [("0.5", 0.5), ("0.95", 0.95), ("0.99", 0.99), ("0.999", 0.999)];

/// What a finished step came to: each metric that it has, and its response times.
pub fn of_step(run: &Identity, step: &Step) -> Vec<Family> {
    let figures = Figures(step);
    let labels = || run.with(&[("step", &step.label)]);
    let known = Metric::ALL.iter().filter_map(|metric| Some((metric, figures.value(*metric)?)));
    let mut families: Vec<Family> = known
        .map(|(metric, value)| {
            let name = format!("step_{}", metric.key());
            Family::new(&name, Kind::Gauge, metric.meaning(), vec![(labels(), Value::Number(value))])
        })
        .collect();
    if let Some(response) = figures.response() {
        let points = QUANTILES.iter().filter_map(|(name, quantile)| {
            let seconds = response.quantile_ns(*quantile)? as f64 / NS_PER_S;
            Some((run.with(&[("step", &step.label), ("quantile", name)]), Value::Number(seconds)))
        });
        let help = "Response time of operations in the window of a finished step";
        families.push(Family::new("step_response_seconds", Kind::Gauge, help, points.collect()));
    }
    families
}

/// The whole text of these runs, with the key by which the server knows each.
pub fn text(runs: &[(&str, &Summary, &SoFar)]) -> String {
    let identity = |key: &str, run: &Summary| Identity::new(key, &run.name, run.workload, &run.target, &run.tags);
    let runs: Vec<_> = runs.iter().map(|(key, summary, so_far)| (identity(key, summary), *so_far)).collect();
    let mut out = Text(String::new());
    families(&runs).iter().for_each(|family| out.family(family));
    out.0.push_str("# EOF\n");
    out.0
}

/// Text that grows. Writing to a string cannot fail.
struct Text(String);

impl Text {
    fn add(&mut self, text: fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("writing to a string does not fail");
    }

    fn family(&mut self, family: &Family) {
        let kind = match family.kind {
            Kind::Info => "info",
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        let Family { name, help, .. } = family;
        self.add(format_args!("# TYPE {name} {kind}\n"));
        family.unit().into_iter().for_each(|unit| self.add(format_args!("# UNIT {name} {unit}\n")));
        self.add(format_args!("# HELP {name} {help}.\n"));
        for (name, labels, value) in family.samples() {
            let quoted = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
            let labels: Vec<String> = quoted.collect();
            self.add(format_args!("{name}{{{}}} {value}\n", labels.join(",")));
        }
    }
}

/// The label of a tag: what no label may have becomes `_`.
fn label_name(tag: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("tag_{}", tag.chars().map(plain).collect::<String>())
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;
    use model::record::store::{Store, load};

    fn of_a_sample(change: impl FnOnce(&mut model::record::Run)) -> (Summary, SoFar, model::record::Run) {
        let directory = tempfile::tempdir().unwrap();
        let mut run = sample::updates(3);
        change(&mut run);
        let store = Store::new(directory.path());
        let path = store.save(&run).unwrap();
        let summary = store.list().0.remove(0);
        let run = load(&path).unwrap();
        let mut so_far = SoFar::default();
        run.steps.iter().flat_map(|step| &step.intervals).for_each(|interval| so_far.add(interval));
        (summary, so_far, run)
    }

    fn value(text: &str, sample: &str) -> f64 {
        let line =
            text.lines().find(|line| line.starts_with(sample)).unwrap_or_else(|| panic!("no {sample} in\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    fn counts_are_those_of_all_intervals_and_histograms_add_up() {
        let (summary, so_far, run) = of_a_sample(|_| {});
        let text = text(&[("r", &summary, &so_far)]);
        let intervals = || run.steps.iter().flat_map(|step| &step.intervals);
        let operations: u64 = intervals().filter_map(|interval| interval.counters.operations).sum();
        assert_eq!(value(&text, "plimsoll_operations_total{run=\"r\"}"), operations as f64);
        let responses: u64 = intervals().map(|interval| interval.response.count()).sum();
        assert!(responses > 0);
        for name in ["response_seconds_count{run=\"r\"}", "response_seconds_bucket{run=\"r\",le=\"+Inf\"}"] {
            assert_eq!(value(&text, &format!("plimsoll_{name}")), responses as f64);
        }
        let total_ns: u64 = intervals().filter_map(|interval| interval.response.total_ns()).sum();
        assert!((value(&text, "plimsoll_response_seconds_sum{run=\"r\"}") - total_ns as f64 / 1e9).abs() < 1e-6);
        assert!(text.contains("event=\"db file sequential read\",le=\"0.000512\"}"), "{text}");
        assert!(text.contains("# UNIT plimsoll_response_seconds seconds\n") && text.ends_with("# EOF\n"));
        assert!(!text.contains("plimsoll_buffer_misses"), "what nobody counts is not there");
    }

    #[test]
    fn hostile_names_and_tags_stay_inside_their_quotes() {
        let (summary, so_far, _) = of_a_sample(|run| {
            run.name = "a\"b\\c\nd".to_owned();
            run.tags.insert("Größe-x".to_owned(), "\"} 5".to_owned());
        });
        let text = text(&[("r", &summary, &so_far)]);
        assert!(text.contains("name=\"a\\\"b\\\\c\\nd\"") && text.contains("tag_Gr__e_x=\"\\\"} 5\""), "{text}");
        assert!(text.lines().all(|line| line.starts_with("# ") || line.starts_with("plimsoll_")), "{text}");
    }

    #[test]
    fn the_dashboard_asks_for_nothing_that_is_not_there() {
        let (summary, mut so_far, _) = of_a_sample(|_| {});
        so_far.devices.insert("vda".to_owned(), DeviceStats::default());
        so_far.process_cpu = Some(CpuTime::default());
        let text = text(&[("r", &summary, &so_far)]);
        let dashboard = include_str!("../../../examples/grafana/plimsoll.json");
        let document: serde_json::Value = serde_json::from_str(dashboard).unwrap();
        assert!(document["panels"].as_array().unwrap().len() >= 6);
        let names: BTreeSet<&str> = dashboard
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| word.starts_with("plimsoll_"))
            .collect();
        assert!(names.len() > 8, "{names:?}");
        for name in names {
            assert!(text.contains(&format!("\n{name}{{")), "the dashboard asks for {name}");
        }
    }
}
