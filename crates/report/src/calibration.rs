//! The answers of a calibration, before everything else in its report.

use analysis::{Calibrated, Calibration, CalibrationConfidence, Estimate, REPEATS, Stopped};
use model::record::Run;
use model::units::{Bytes, group_thousands, percent};

/// The answers with their names, in the order in which they are to be read; a line without a name belongs to the one before.
/// Nothing for a run that is no calibration.
pub(super) fn answers(run: &Run) -> Vec<(&'static str, String)> {
    Calibration::of(run).as_ref().map(lines).unwrap_or_default()
}

fn lines(calibration: &Calibration) -> Vec<(&'static str, String)> {
    let Calibration { cap, max_iops, max_bytes, confidence } = calibration;
    let within = format!("{} within {}", cap.name(), cap.limit);
    let mut lines = vec![
        (
            "max_iops",
            match max_iops {
                Some(found) => rate(found, "/s", 1.0),
                None => format!("none: no depth that was measured keeps the limit ({within})"),
            },
        ),
        (
            "max_mbps",
            match max_bytes {
                Some(found) => rate(found, " MB/s", 1e6),
                None => "unknown: nothing was measured".to_owned(),
            },
        ),
    ];
    if let Some(found) = max_iops {
        let us = group_thousands((found.mean.0 as f64 / 1e3).round());
        lines.push(("latency", format!("{us} us mean at max_iops, p99 {}; the limit is {within}", found.p99)));
        lines.push(("", stopped("max_iops", found, "the rate")));
    }
    if let Some(found) = max_bytes {
        lines.push(("", stopped("max_mbps", found, "MB/s")));
    }
    lines.extend(sure(confidence).into_iter().enumerate().map(|(number, text)| match number {
        0 => ("how sure", text),
        _ => ("", text),
    }));
    lines
}

fn rate(found: &Calibrated, unit: &str, scale: f64) -> String {
    let Calibrated { request, depth, rate: Estimate { value, low, high, runs }, mean, p99, .. } = found;
    let number = |value: f64| match value / scale {
        value if value < 99.95 => format!("{value:.1}"),
        value => group_thousands(value),
    };
    let between = match runs {
        1 => "measured once".to_owned(),
        runs => format!("{} to {} in {runs} runs", number(*low), number(*high)),
    };
    let gap = if unit.starts_with('/') { " " } else { "" };
    format!(
        "{}{gap}{unit} ({between}): {} random reads, mean {mean}, p99 {p99} at {depth} outstanding",
        number(*value),
        Bytes(request.0),
    )
}

fn stopped(name: &str, found: &Calibrated, what: &str) -> String {
    match found.stopped {
        Stopped::RateFlat => format!("{name}: {what} grows no further with more outstanding"),
        Stopped::LatencyLimit { depth } => {
            format!("{name}: more would be had beyond the limit of latency, which {depth} outstanding break")
        }
        Stopped::MostOutstanding => format!(
            "{name}: a lower bound; {what} was still growing at {} outstanding, the most that are tried",
            group_thousands(f64::from(found.depth))
        ),
        Stopped::CutShort => format!("{name}: a lower bound; the search was cut short"),
    }
}

fn sure(confidence: &CalibrationConfidence) -> Vec<String> {
    let CalibrationConfidence { repeats, spread, range_of_seconds, watched, doubts } = confidence;
    let mut words = Vec::new();
    words.push(match repeats {
        0 => "not at all: there is nothing to judge".to_owned(),
        1 => "little: the best points were measured once, while they were looked for, which flatters them".to_owned(),
        repeats => {
            let seconds = range_of_seconds.map_or_else(String::new, |range| {
                format!("; within a repeat the rate of single seconds ranged over {} %", percent(range))
            });
            let few = if confidence.is_repeated() { String::new() } else { format!(" ({REPEATS} were wanted)") };
            format!("{repeats} repeats{few} in turn, which lie within {} % of each other{seconds}", percent(*spread))
        }
    });
    words.push(format!("a burst credit that lasts longer than the {watched} of load in all was not seen to end"));
    words.extend(doubts.iter().map(|doubt| format!("warning: {doubt}")));
    words
}
