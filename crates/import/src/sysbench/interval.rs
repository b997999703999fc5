//! The lines that sysbench prints with `--report-interval`.

use crate::draft::{count_of, whole};
use crate::interval::{self, seconds_ns};
use crate::numbers::number;
use crate::percentiles::{self, ms};
use model::record::Step;

/// One such line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// When the interval ended, in seconds since load began.
    pub at_s: f64,
    /// Name and value of each figure, by the names of sysbench, in its units.
    pub figures: Vec<(String, f64)>,
    /// The percentile that is reported, as a share, and its value in milliseconds.
    pub latency: Option<(f64, f64)>,
}

/// `[ 2s ] thds: 16 tps: 1.0 qps: 2.0 (r/w/o: 1/2/3) lat (ms,95%): 4.5 err/s: 0.0 reconn/s: 0.0` of version 1,
/// `[   2s] threads: 2, tps: 1.0, reads: 2.0, response time: 17.5ms (99%), …` of version 0.5, and those of other tests.
pub(super) fn parse(text: &str) -> Option<Line> {
    let (time, rest) = text.strip_prefix('[')?.split_once(']')?;
    let at_s = number(time.trim().strip_suffix('s')?)?;
    let mut line = Line { at_s, figures: Vec::new(), latency: None };
    let mut name = String::new();
    let words: Vec<&str> = rest.split([' ', ',', '\t']).filter(|word| !word.is_empty()).take(64).collect();
    let mut percent = None;
    for word in words {
        let bare = word.trim_matches(['(', ')']);
        if let Some(reported) = bare.trim_end_matches(':').trim_end_matches(')').strip_suffix('%').and_then(number) {
            // Version 1 reports the percentile before its value, version 0.5 after it.
            percent = Some(reported);
            if word.ends_with(':') {
                name = "lat".to_owned();
            }
        } else if let Some(last) = bare.strip_suffix(':') {
            name = if name.is_empty() || !word_goes_on(&name) { last.to_owned() } else { format!("{name} {last}") };
        } else if name == "r/w/o" {
            let three = ["r", "w", "o"].iter().zip(bare.split('/'));
            let figures = three.filter_map(|(kind, value)| Some(((*kind).to_owned(), number(value)?)));
            line.figures.extend(figures);
            name.clear();
        } else if let Some(value) = number(bare.trim_end_matches("ms").trim_end_matches("/s")) {
            match name.as_str() {
                "lat" | "response time" => line.latency = Some((0.0, value)),
                "" => name = format!("{value}"),
                _ => line.figures.push((std::mem::take(&mut name), value)),
            }
            if line.latency.is_some() && matches!(name.as_str(), "lat" | "response time") {
                name.clear();
            }
        } else if bare == "MiB/sec" || bare == "MB/sec" {
            // The test of memory reports a rate alone.
            line.figures.extend(number(&name).map(|value| (bare.to_owned(), value)));
            name.clear();
        } else {
            name = if word_goes_on(&name) { format!("{name} {bare}") } else { bare.to_owned() };
        }
    }
    line.latency = line.latency.zip(percent).map(|((_, value), percent)| (percent / 100.0, value));
    (!line.figures.is_empty() || line.latency.is_some()).then_some(line)
}

/// Names of two words.
fn word_goes_on(name: &str) -> bool {
    matches!(name, "response" | "queue")
}

/// Makes the intervals of a step that began `since_s` seconds after the load. Counts are rates times the length of the interval,
/// rounded.
pub(super) fn fill(step: &mut Step, lines: &[Line], since_s: f64) {
    let mut before_s = since_s;
    for line in lines {
        if line.at_s < before_s {
            // Lines of a warm-up come before the clock begins anew.
            before_s = since_s;
        }
        if line.at_s == before_s && !step.intervals.is_empty() {
            // A second line about the same interval: the queue of an open loop.
            if let Some(last) = step.intervals.last_mut() {
                last.reported.extend(line.figures.iter().cloned());
            }
            continue;
        }
        let length_ns = seconds_ns(line.at_s - before_s);
        let mut interval = interval::of(step, seconds_ns(before_s - since_s), length_ns);
        before_s = line.at_s;
        interval.reported = line.figures.iter().cloned().collect();
        let of = |names: &[&str]| names.iter().find_map(|name| interval.reported.get(*name).copied());
        let count = of(&["tps", "eps"]).and_then(|rate| count_of(rate, length_ns)).filter(|_| length_ns > 0);
        let errors = of(&["err/s", "errors"]).and_then(|rate| count_of(rate, length_ns));
        interval.counters.operations = count;
        interval.counters.errors = errors;
        // The 0th percentile, and that of no events, are printed as 0 and are not known.
        let known = line.latency.filter(|(share, _)| *share > 0.0 && count != Some(0));
        if let Some((share, value_ms)) = known {
            interval.reported.insert(format!("lat {}%", share * 100.0), value_ms);
            if let Some(reported) = count.zip(ms(value_ms)).filter(|_| value_ms > 0.0) {
                let (count, ns) = reported;
                interval.response = percentiles::histogram(count, None, None, None, &[(share, ns)]);
            }
        }
        for (name, bytes) in [("reads", true), ("writes", false)] {
            // Of files these are bytes; of databases they are queries.
            let is_files = interval.reported.contains_key("fsyncs");
            let mib = interval.reported.get(name).filter(|_| is_files);
            let total = mib.and_then(|mib| whole(mib * 1_048_576.0 * length_ns as f64 / 1e9));
            let counter = if bytes {
                &mut interval.counters.physical_read_bytes
            } else {
                &mut interval.counters.physical_write_bytes
            };
            *counter = total;
        }
        step.intervals.push(interval);
    }
}
