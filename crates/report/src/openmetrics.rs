//! Runs that go on, as OpenMetrics text for Prometheus and whatever else reads that.
//!
//! Counts and histograms grow from the start of a run's load, warm-up included: a scraper takes differences itself. Names follow the
//! convention: base units, `_total` for counts, the unit in the name. The format is OpenMetrics 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use model::record::store::Summary;
use model::record::{Counters, CpuTime, DeviceStats, Histogram, Interval, Metric, POWER_OF_TWO_BOUNDS};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const NS_PER_S: f64 = 1e9;

/// All intervals of a run so far, added up.
#[derive(Debug, Default)]
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

/// The whole text of these runs, with the key by which the server knows each.
pub fn text(runs: &[(&str, &Summary, &SoFar)]) -> String {
    let mut out = Text(String::new());
    out.family("run", "info", "A run in progress: its name, its workload, its target, and its tags");
    for (key, summary, _) in runs {
        let mut labels = vec![("run".to_owned(), (*key).to_owned())];
        let own = [("name", summary.name.as_str()), ("workload", summary.workload.name()), ("target", &summary.target)];
        labels.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let mut names = BTreeSet::new();
        for (tag, value) in &summary.tags {
            let name = label_name(tag);
            // Two tags that differ only in what a label cannot have: the first one counts.
            if names.insert(name.clone()) {
                labels.push((name, value.clone()));
            }
        }
        out.sample("run_info", &labels, 1.0);
    }
    let run = |key: &str| vec![("run".to_owned(), key.to_owned())];
    let labelled = |key: &str, name: &str, value: &str| {
        let mut labels = run(key);
        labels.push((name.to_owned(), value.to_owned()));
        labels
    };
    out.family("step", "gauge", "Number of the step that is under load, from 1");
    runs.iter().for_each(|(key, _, so_far)| out.sample("step", &run(key), f64::from(so_far.step) + 1.0));
    out.family("warmup", "gauge", "1 while a step warms up, 0 in its window");
    runs.iter().for_each(|(key, _, so_far)| out.sample("warmup", &run(key), f64::from(u8::from(so_far.is_warmup))));
    out.family("loaded_seconds", "counter", "Time under load");
    runs.iter().for_each(|(key, _, so_far)| {
        out.sample("loaded_seconds_total", &run(key), so_far.loaded_ns as f64 / NS_PER_S);
    });
    for metric in Metric::COUNTED {
        let of = |so_far: &SoFar| metric.count(&so_far.counters);
        let known: Vec<_> = runs.iter().filter_map(|(key, _, so_far)| Some((*key, of(so_far)?))).collect();
        if !known.is_empty() {
            let name = metric.count_name();
            out.family(&name, "counter", metric.meaning());
            known.iter().for_each(|(key, value)| out.sample(&format!("{name}_total"), &run(key), *value as f64));
        }
    }
    out.family("process_cpu_seconds", "counter", "Processor time of the load generator, and of an engine inside it");
    for (key, _, so_far) in runs {
        for (mode, ns) in so_far.process_cpu.iter().flat_map(|cpu| [("user", cpu.user_ns), ("system", cpu.system_ns)]) {
            out.sample("process_cpu_seconds_total", &labelled(key, "mode", mode), ns as f64 / NS_PER_S);
        }
    }
    let mut of_devices = |name: &str, help: &str, of: &dyn Fn(&DeviceStats) -> f64| {
        out.family(name, "counter", help);
        for (key, _, so_far) in runs {
            for (device, stats) in &so_far.devices {
                out.sample(&format!("{name}_total"), &labelled(key, "device", device), of(stats));
            }
        }
    };
    for (metric, of) in DEVICES {
        of_devices(&metric.count_name(), metric.meaning(), &|device| of(device) as f64);
    }
    of_devices("device_busy_seconds", Metric::DeviceBusy.meaning(), &|device| device.busy_ns as f64 / NS_PER_S);
    out.family("response_seconds", "histogram", "Response time of operations, from due to finished");
    runs.iter().for_each(|(key, _, so_far)| out.histogram("response_seconds", &run(key), &so_far.response));
    out.family("wait_seconds", "histogram", "Waits that ended, by event");
    for (key, _, so_far) in runs {
        for (event, waits) in &so_far.waits {
            out.histogram("wait_seconds", &labelled(key, "event", event), waits);
        }
    }
    out.0.push_str("# EOF\n");
    out.0
}

/// Text that grows. Writing to a string cannot fail.
struct Text(String);

impl Text {
    fn add(&mut self, text: fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("writing to a string does not fail");
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.add(format_args!("# TYPE plimsoll_{name} {kind}\n"));
        if let Some(unit) = ["seconds", "bytes"].iter().find(|unit| name.ends_with(&format!("_{unit}"))) {
            self.add(format_args!("# UNIT plimsoll_{name} {unit}\n"));
        }
        let mut help = help.to_owned();
        if let Some(first) = help.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        self.add(format_args!("# HELP plimsoll_{name} {help}.\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(String, String)], value: f64) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        self.add(format_args!("plimsoll_{name}{{{}}} {value}\n", labels.join(",")));
    }

    /// A histogram in buckets of powers of two microseconds. A bucket's bound is exclusive in wait tables and inclusive here; times
    /// are whole nanoseconds, and one that is exactly a bound counts in the next bucket.
    fn histogram(&mut self, name: &str, labels: &[(String, String)], histogram: &Histogram) {
        let mut below = 0;
        for (bucket, count) in histogram.power_of_two_us().into_iter().enumerate() {
            below += count.unwrap_or(0);
            let bound = match bucket {
                POWER_OF_TWO_BOUNDS => "+Inf".to_owned(),
                bucket => ((1_u64 << bucket) as f64 / 1e6).to_string(),
            };
            let mut labels = labels.to_vec();
            labels.push(("le".to_owned(), bound));
            self.sample(&format!("{name}_bucket"), &labels, below as f64);
        }
        self.sample(&format!("{name}_count"), labels, histogram.count() as f64);
        if let Some(total_ns) = histogram.total_ns() {
            self.sample(&format!("{name}_sum"), labels, total_ns as f64 / NS_PER_S);
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
