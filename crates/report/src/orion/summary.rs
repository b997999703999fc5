//! `_summary.txt`.

use super::{Point, Points, Size, latency};
use model::config::orion::{ArrayCache, ArrayLayout, LargePattern, Matrix};
use model::record::{LunFacts, OrionLoad, Run};
use model::units::Bytes;

/// The summary. Its first two lines say what ORION's cannot: who wrote it, and in which units.
pub(super) fn text(run: &Run, points: &Points<'_>) -> String {
    let mut text = format!(
        "ORION VERSION none, written by {} {} in ORION's layout\n\
         MBPS in 2^20 bytes per second, lat.csv in usecs\n\
         \n\
         Commandline:\n{}\n\
         \n\
         This maps to this test:\n",
        run.tool.name,
        run.tool.version,
        command_line(run),
    );
    for line in test(points) {
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&devices(run));
    text.push_str(&best(points));
    text
}

/// ORION's words of the command line: those after its name.
fn command_line(run: &Run) -> String {
    let words = match run.command.iter().position(|word| word == "orion") {
        Some(name) => &run.command[name + 1..],
        None => &run.command[..],
    };
    words.join(" ")
}

fn test(points: &Points<'_>) -> Vec<String> {
    let OrionLoad { options, data_points, .. } = points.load;
    let (streams, large) = match options.pattern {
        LargePattern::Sequential { requests_per_stream } => (Some(requests_per_stream), "Large Sequential Streams"),
        LargePattern::Random => (None, "Large Random IOs"),
    };
    let mut lines = vec![
        format!("Test: {}", options.testname),
        format!("Small IO size: {} KB", points.small_bytes >> 10),
        format!("Large IO size: {} KB", points.large_bytes >> 10),
        format!("IO Types: Small Random IOs, {large}"),
    ];
    if let Some(requests) = streams {
        lines.push(format!("Number of Concurrent IOs Per Stream: {requests}"));
    }
    match options.layout {
        ArrayLayout::Raid0 { stripe: Bytes(stripe) } => {
            lines.push("Simulated Array Type: RAID 0".to_owned());
            lines.push(format!("Stripe Depth: {} KB", stripe >> 10));
        }
        ArrayLayout::Concat => lines.push("Simulated Array Type: CONCAT".to_owned()),
    }
    lines.push(format!("Write: {}%", options.write_pct));
    lines.push(match options.cache {
        ArrayCache::NotEntered => "Cache Size: Not Entered".to_owned(),
        ArrayCache::Absent => "Cache Size: 0 MB".to_owned(),
        ArrayCache::Size(Bytes(bytes)) => format!("Cache Size: {} MB", bytes >> 20),
    });
    lines.push(format!("Duration for each Data Point: {} seconds", options.duration.0 / 1_000_000_000));
    // Where row and column are walked apart, ORION reports its second walk, that of the large load alone.
    let small = if options.run.matrix() == Matrix::Basic { &[0][..] } else { &points.small_loads };
    lines.push(format!("Small Columns:{}", columns(small)));
    lines.push(format!("Large Columns:{}", columns(&points.large_loads)));
    lines.push(format!("Total Data Points: {data_points}"));
    lines
}

fn columns(loads: &[u32]) -> String {
    loads.iter().map(|load| format!(",{load:>7}")).collect()
}

/// The devices, if the run reports them.
fn devices(run: &Run) -> String {
    let luns = &run.target.facts.files.luns;
    if luns.is_empty() {
        return String::new();
    }
    let lines: Vec<String> =
        luns.iter().map(|LunFacts { path, bytes }| format!("Name: {path}  Size: {bytes}\n")).collect();
    format!("{}{} FILEs found.\n\n", lines.concat(), luns.len())
}

/// The best points. Of equal ones the first that ran, which has the lowest load.
fn best(points: &Points<'_>) -> String {
    let mut parts = Vec::new();
    if let Some((rate, point)) = most(points, Point::megabytes_per_s) {
        parts.push(format!("Maximum Large MBPS={rate:.2} @ {}\n", point.place()));
    }
    if let Some((rate, point)) = most(points, Point::small_per_s) {
        parts.push(format!("Maximum Small IOPS={rate:.0} @ {}\n{}", point.place(), latency::small_lines(point)));
    }
    if let Some((negative, point)) = most(points, |point| point.small_latency_us().map(|us| -us)) {
        parts.push(format!(
            "Minimum Small Latency={:.3} usecs @ {}\n{}{}",
            -negative,
            point.place(),
            latency::small_lines(point),
            latency::histogram(point, Size::Small),
        ));
    }
    parts.join("\n")
}

fn most<'a, 'b>(points: &'b Points<'a>, figure: impl Fn(&Point<'a>) -> Option<f64>) -> Option<(f64, &'b Point<'a>)> {
    points
        .seen
        .iter()
        .filter_map(|point| Some((figure(point)?, point)))
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
}
