//! A run as a log of HdrHistogram's intervals, which HdrHistogram's own tools, HistogramLogAnalyzer and others read.
//!
//! Each interval of the window has a line: response times, and each wait event under a tag of its own. Warm-up is left out,
//! since those tools add up all lines that they are given. Values are nanoseconds; what a line says of its longest value is in
//! milliseconds, as those tools expect.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag};

use model::record::{Histogram, Interval, Run, Step};

/// What every such file begins with. A file that does not was made by another program.
pub const BEGINNING: &str = "#Written by Plimsoll";

/// Nanoseconds in the unit in which a line states its longest value.
const NS_PER_MS: f64 = 1e6;

/// Whether the run has what a log consists of: histograms of its own intervals. Runs of other programs mostly have none.
pub fn has_intervals(run: &Run) -> bool {
    run.steps.iter().any(|step| measured(step).any(|interval| !interval.response.is_reported()))
}

/// Writes one line for each interval of each window, and one more for each wait event in it. Response times have no tag in a run
/// of one step; with several steps the tag is the step's label. Wait events are tagged by name, with the label before it.
///
/// # Errors
/// If `out` fails.
pub fn write(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let begun = SystemTime::from(run.started_at.0);
    let comments = [
        format!("{} {} of run {}; values in nanoseconds", &BEGINNING[1..], run.tool.version, one_line(&run.id)),
        "[Histogram log format version 1.3]".to_owned(),
    ];
    let mut builder = IntervalLogWriterBuilder::new();
    comments.iter().for_each(|comment| _ = builder.add_comment(comment));
    builder.with_start_time(begun).with_base_time(begun).with_max_value_divisor(NS_PER_MS);
    // The library wants a type of known size.
    let mut out = out;
    let mut log = builder.begin_log_with(&mut out, &mut serializer)?;
    let label_of = |step: &Step| (run.steps.len() > 1).then(|| word(&step.label));
    for step in &run.steps {
        let label = label_of(step);
        let load_began_ns = step.window.offset_ns.saturating_sub(step.window.warmup_ns);
        for interval in measured(step) {
            let start = Duration::from_nanos(load_began_ns.saturating_add(interval.offset_ns));
            let length = Duration::from_nanos(interval.duration_ns);
            let mut line = |histogram: &Histogram, tag: Option<&str>| match histogram.to_hdr() {
                Some(hdr) => log.write_histogram(&hdr, start, length, tag.and_then(Tag::new)).map_err(io_error),
                // Of another program, in buckets of its own: HdrHistogram has no place for them.
                None => Ok(()),
            };
            line(&interval.response, label.as_deref())?;
            for (event, waits) in &interval.waits {
                let event = word(event);
                let tag = label.as_ref().map_or_else(|| event.clone(), |label| format!("{label}:{event}"));
                line(waits, Some(&tag))?;
            }
        }
    }
    Ok(())
}

fn measured(step: &Step) -> impl Iterator<Item = &Interval> {
    step.intervals.iter().filter(|interval| !interval.warmup)
}

/// A name without what ends a tag or a line.
fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_whitespace() || c.is_control() || c == ',' { '_' } else { c }).collect()
}

fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn io_error<E: std::fmt::Debug>(error: IntervalLogWriterError<E>) -> io::Error {
    match error {
        IntervalLogWriterError::IoError(error) => error,
        IntervalLogWriterError::SerializeError(error) => {
            io::Error::other(format!("cannot encode a histogram: {error:?}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Cursor;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use model::record::sample;

    /// Durations by tag, as another program adds them up.
    fn added_up(log: &[u8]) -> BTreeMap<String, hdrhistogram::Histogram<u64>> {
        let mut sums = BTreeMap::new();
        for entry in IntervalLogIterator::new(log) {
            let LogEntry::Interval(line) = entry.expect("a line that the library reads") else { continue };
            let bytes = STANDARD.decode(line.encoded_histogram()).unwrap();
            let decoded: hdrhistogram::Histogram<u64> =
                Deserializer::new().deserialize(&mut Cursor::new(bytes)).unwrap();
            let milliseconds = decoded.max() as f64 / NS_PER_MS;
            assert!((line.max() - milliseconds).abs() < 0.001, "{} is not {milliseconds}", line.max());
            let tag = line.tag().map_or_else(String::new, |tag| tag.as_str().to_owned());
            let sum = sums.entry(tag).or_insert_with(|| hdrhistogram::Histogram::new_from(&decoded));
            sum.add(decoded).unwrap();
        }
        sums
    }

    fn written(run: &Run) -> Vec<u8> {
        let mut log = Vec::new();
        write(&mut log, run).unwrap();
        log
    }

    #[test]
    fn a_reader_of_the_log_gets_the_windows_and_nothing_of_the_warm_up() {
        let run = sample::sweep(3);
        assert!(has_intervals(&run) && run.steps.len() > 1);
        let log = written(&run);
        assert!(log.starts_with(BEGINNING.as_bytes()));
        let sums = added_up(&log);
        for step in &run.steps {
            let mut expected = Histogram::default();
            measured(step).for_each(|interval| expected.merge(&interval.response));
            assert_eq!(sums[&word(&step.label)].len(), expected.count(), "{}", step.label);
            assert!(step.intervals.iter().any(|interval| interval.warmup), "the sample has a warm-up to be left out");
            let event = "db file sequential read";
            let waits: u64 =
                measured(step).filter_map(|interval| interval.waits.get(event)).map(Histogram::count).sum();
            let tag = format!("{}:db_file_sequential_read", word(&step.label));
            assert_eq!(sums.get(&tag).map_or(0, hdrhistogram::Histogram::len), waits);
        }
    }

    #[test]
    fn a_single_step_has_no_tag_and_lines_stand_where_they_happened() {
        let mut run = sample::sweep(3);
        run.steps.truncate(1);
        let log = written(&run);
        assert_eq!(
            added_up(&log)[""].len(),
            measured(&run.steps[0]).map(|interval| interval.response.count()).sum::<u64>()
        );
        let first = IntervalLogIterator::new(&log).find_map(|entry| match entry {
            Ok(LogEntry::Interval(line)) => Some(line.start_timestamp()),
            _ => None,
        });
        // The first interval after the warm-up begins with the window.
        let difference = first.unwrap().as_secs_f64() - run.steps[0].window.offset_ns as f64 / 1e9;
        assert!(difference.abs() < 0.001, "{difference} s off");
    }

    #[test]
    fn a_run_without_intervals_has_no_log() {
        let mut run = sample::sweep(3);
        run.steps.iter_mut().for_each(|step| step.intervals.clear());
        assert!(!has_intervals(&run));
    }
}
