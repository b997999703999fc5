//! What kernel tracing saw, layer by layer: rates, means, and the power-of-two table.

use std::io::{self, Write};

use super::buckets::{self, Columns};
use super::grid::Grid;
use super::paper::{Paper, Terminal};
use super::words::{NONE, duration, number, share};
use analysis::rate;
use model::record::{POWER_OF_TWO_BOUNDS, Run, TraceStats};
use model::units::{group_thousands, short_count};

/// Writes the sections of all layers for a terminal of `width` columns. Kinds without a single call are left out; nothing is written where there are no
/// others.
///
/// # Errors
/// If `out` fails.
pub fn write_traces_within(out: &mut impl Write, traces: &[TraceStats], width: usize) -> io::Result<()> {
    write(&mut Terminal { out, width }, traces, "")
}

/// The same of each step of a run.
pub(super) fn of_run(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    run.steps.iter().try_for_each(|step| {
        let of_what = if run.steps.len() > 1 { format!(", in {}", step.label) } else { String::new() };
        write(paper, &step.traces, &of_what)
    })
}

/// The same on any paper; titles end in `of_what`.
fn write(paper: &mut dyn Paper, traces: &[TraceStats], of_what: &str) -> io::Result<()> {
    for (layer, title) in layers(traces) {
        let seen: Vec<&TraceStats> = of_layer(traces, layer).filter(|trace| trace.count > 0).collect();
        if seen.is_empty() {
            continue;
        }
        paper.table(&format!("{title}, timed in the kernel{of_what}"), &rates(&seen))?;
        paper.next_grid("% of the count, by time", &shares(&seen))?;
    }
    Ok(())
}

/// One line for each layer in which something happened, for a display that scrolls: rates and means.
pub fn trace_lines(traces: &[TraceStats]) -> Vec<String> {
    let line = |layer: &str| {
        let seen = of_layer(traces, layer).filter(|trace| trace.count > 0);
        let words: Vec<String> = seen
            .map(|trace| {
                let per_s = rate(Some(trace.count), trace.elapsed_ns).map_or_else(String::new, short_count);
                format!("{} {per_s}/s of {}", name(trace), mean(trace))
            })
            .collect();
        let list = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
        format!("{layer}: {list}")
    };
    layers(traces).into_iter().map(|(layer, _)| line(layer)).collect()
}

/// The layers that were traced, in the order in which they come, and what their times are of.
fn layers(traces: &[TraceStats]) -> Vec<(&str, String)> {
    let mut layers: Vec<&str> = Vec::new();
    for trace in traces {
        if !layers.contains(&trace.layer.as_str()) {
            layers.push(&trace.layer);
        }
    }
    let title = |layer: &str| match layer {
        "OS file" => "OS file: system calls of the server, answered by page cache or device".to_owned(),
        "device" => "Device: requests of all programs, from the driver to the device and back".to_owned(),
        other => other.to_owned(),
    };
    layers.into_iter().map(|layer| (layer, title(layer))).collect()
}

fn of_layer<'a>(traces: &'a [TraceStats], layer: &str) -> impl Iterator<Item = &'a TraceStats> {
    traces.iter().filter(move |trace| trace.layer == layer)
}

fn rates(traces: &[&TraceStats]) -> Grid {
    let is_counted = traces.iter().any(|trace| trace.counted_by_kernel.is_some());
    let timed = is_counted.then_some("timed %");
    let figures = ["count/s", "MB/s", "mean", "p50", "p99", "p99.9", "max"];
    let mut grid = Grid::new(1, ["event", "count"].into_iter().chain(timed).chain(figures));
    for trace in traces {
        let per_s = |count: u64| rate(Some(count), trace.elapsed_ns);
        let bounds = [0.5, 0.99, 0.999, 1.0].map(|quantile| bound(trace, quantile));
        let named = [name(trace), group_thousands(trace.count as f64)];
        let timed = is_counted.then(|| share(timed_share(trace)));
        let figures = [number(per_s(trace.count)), number(per_s(trace.bytes).map(|bytes| bytes / 1e6)), mean(trace)];
        grid.push(named.into_iter().chain(timed).chain(figures).chain(bounds).collect());
    }
    grid
}

/// How much of what the kernel counted was timed. The edges of both are not quite the same instant, so a little more than
/// all is all.
fn timed_share(trace: &TraceStats) -> Option<f64> {
    let counted = trace.counted_by_kernel.filter(|counted| *counted > 0)?;
    Some((trace.count as f64 / counted as f64).min(1.0))
}

fn shares(traces: &[&TraceStats]) -> Grid {
    let columns = Columns::covering_counts(traces.iter().map(|trace| counts(trace).map(Some)));
    let mut grid = Grid::new(1, ["event".to_owned()].into_iter().chain(columns.headings()));
    for trace in traces {
        let counts = counts(trace);
        let cells = columns.shares_of_counts(&counts.map(Some), counts.iter().sum()).into_iter().map(buckets::cell);
        grid.push([name(trace)].into_iter().chain(cells).collect());
    }
    grid
}

/// Which device, if one, and what was timed.
pub(super) fn name(trace: &TraceStats) -> String {
    match &trace.device {
        Some(device) => format!("{device} {}", trace.event),
        None => trace.event.clone(),
    }
}

fn mean(trace: &TraceStats) -> String {
    duration(trace.total_ns.checked_div(trace.count))
}

/// The buckets that the tables have; what is longer than all bounds stands in the last.
pub(super) fn counts(trace: &TraceStats) -> [u64; POWER_OF_TWO_BOUNDS + 1] {
    let mut counts = [0; POWER_OF_TWO_BOUNDS + 1];
    for (bucket, count) in trace.buckets.iter().enumerate() {
        counts[bucket.min(POWER_OF_TWO_BOUNDS)] += count;
    }
    counts
}

/// The upper edge of the bucket that holds a quantile. Buckets say no more of it than that it is shorter.
fn bound(trace: &TraceStats, quantile: f64) -> String {
    let rank = (trace.count as f64 * quantile).ceil() as u64;
    let mut below = 0;
    for (bucket, count) in counts(trace).into_iter().enumerate() {
        below += count;
        if count > 0 && below >= rank {
            return buckets::heading(bucket);
        }
    }
    NONE.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(layer: &str, event: &str, device: Option<&str>, buckets: &[u64]) -> TraceStats {
        let count: u64 = buckets.iter().sum();
        TraceStats {
            layer: layer.to_owned(),
            event: event.to_owned(),
            device: device.map(str::to_owned),
            elapsed_ns: 2_000_000_000,
            count,
            counted_by_kernel: device.map(|_| count + 3),
            bytes: count * 8_192,
            total_ns: count * 91_500,
            buckets: buckets.to_vec(),
        }
    }

    fn traces() -> [TraceStats; 5] {
        [
            trace("OS file", "data read", None, &[0, 4_000, 900, 0, 0, 0, 0, 90, 9, 1]),
            trace("OS file", "data sync", None, &[]),
            trace("OS file", "wal write", None, &[0, 0, 0, 0, 70, 30]),
            trace("device", "read", Some("vda"), &[0, 0, 0, 0, 0, 0, 0, 90, 10]),
            trace("device", "flush", Some("vda"), &[]),
        ]
    }

    fn written(traces: &[TraceStats], width: usize) -> String {
        let mut out = Vec::new();
        write_traces_within(&mut out, traces, width).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_layer_has_its_tables() {
        insta::assert_snapshot!(written(&traces(), 120));
    }

    #[test]
    fn of_what_was_not_called_nothing_is_said() {
        assert_eq!(written(&traces()[1..2], 120), "");
    }

    #[test]
    fn a_narrow_terminal_folds_the_tables() {
        let text = written(&traces(), 60);
        let widest =
            text.lines().filter(|line| !line.starts_with(['O', 'D', '-'])).map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= 60, "{text}");
    }

    #[test]
    fn quantiles_are_bounds() {
        let all = trace("device", "read", None, &[0, 50, 49, 1]);
        let bounds = [0.5, 0.51, 0.99, 0.999, 1.0].map(|quantile| bound(&all, quantile));
        assert_eq!(bounds, ["<2us", "<4us", "<4us", "<8us", "<8us"]);
        let mut long = vec![0; 40];
        long[35] = 1;
        assert_eq!(bound(&trace("device", "read", None, &long), 0.5), ">=64s");
    }

    #[test]
    fn a_line_tells_rates_and_means() {
        let lines = trace_lines(&traces());
        assert_eq!(
            lines,
            ["OS file: data read 2.5K/s of 91.5 us, wal write 50/s of 91.5 us", "device: vda read 50/s of 91.5 us"]
        );
        assert_eq!(trace_lines(&traces()[1..2]), ["OS file: nothing"]);
    }
}
