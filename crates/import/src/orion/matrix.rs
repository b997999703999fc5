//! The matrices `_iops.csv`, `_mbps.csv` and `_lat.csv`: a row for each large load, a column for each small one.

use super::super::draft::reported_figure;
use super::super::numbers::number;
use super::super::{Draft, ImportError, Notes, Source};
use super::assemble::{self, began_by_name, file_stem};
use super::{Figure, MAX_RUNS, Point};
use model::record::Workload;

/// No walk has more points.
const MAX_POINTS: usize = 50_000;
/// A mean latency below this is in milliseconds: no storage answers in so few microseconds.
const SURELY_MS: f64 = 5.0;
/// The least mean latency of a walk, if it is above this, is in microseconds: one request at a time waits for no storage that
/// many milliseconds.
const SURELY_US: f64 = 50.0;

/// `Large/Small,      1,      2`; its first letter may be missing.
pub(super) fn is_heading(line: &str) -> bool {
    let line = line.trim_start_matches(['"', ' ', 'L']);
    line.strip_prefix("arge/Small").is_some_and(|rest| rest.trim_start_matches(['"', ' ']).starts_with([',', ';']))
}

/// A run for each matrix of the file.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut above = String::new();
    let mut smalls: Vec<Option<u32>> = Vec::new();
    let mut cells: Vec<(Point, f64)> = Vec::new();
    let mut drafts = Vec::new();
    let mut runs = 0;
    for (line, text) in source.lines() {
        if cells.len() > MAX_POINTS || runs > MAX_RUNS {
            return Err(ImportError::damaged(source, line, "it holds more points than any walk of ORION"));
        }
        if is_heading(text) {
            runs += 1;
            if !cells.is_empty() {
                drafts.push(draft(source, &above, std::mem::take(&mut cells))?);
                above.clear();
            }
            smalls = loads(text);
            continue;
        }
        if text.trim().is_empty() {
            continue;
        }
        if smalls.is_empty() {
            notes.unknown(line, text);
            if above.len() < 4_096 {
                above.push_str(text);
                above.push('\n');
            }
            continue;
        }
        let mut fields = text.split([',', ';']).map(|field| field.trim().trim_matches('"').trim());
        let Some(large) = fields.next().and_then(|large| large.parse::<u32>().ok()) else {
            if !cells.is_empty() {
                // What stands below is the head of a matrix that follows.
                drafts.push(draft(source, &above, std::mem::take(&mut cells))?);
                above.clear();
            }
            smalls.clear();
            notes.unknown(line, text);
            above.push_str(text);
            above.push('\n');
            continue;
        };
        for (field, small) in fields.zip(&smalls).filter(|(field, _)| !field.is_empty()) {
            match (number(field), small) {
                (Some(value), Some(small)) => cells.push((Point { small: *small, large }, value)),
                _ => notes
                    .not_understood(line, format!("`{}`: a figure of a point was expected", assemble::short(field))),
            }
        }
    }
    if !cells.is_empty() {
        drafts.push(draft(source, &above, cells)?);
    }
    if drafts.is_empty() {
        return Err(ImportError::damaged(source, None, "its matrix has no figure"));
    }
    Ok(drafts)
}

fn loads(heading: &str) -> Vec<Option<u32>> {
    heading.split([',', ';']).skip(1).take(MAX_POINTS).map(|load| load.trim().trim_matches('"').parse().ok()).collect()
}

fn draft(source: &Source, above: &str, cells: Vec<(Point, f64)>) -> Result<Draft, ImportError> {
    let name = source.path();
    let figure = figure(name, above, &cells).ok_or_else(|| {
        let what = "whether these are IOPS or latencies is reported by the file's name alone: it must end in `_iops.csv` or \
                    `_lat.csv`, as ORION names it";
        ImportError::no_result(source, what)
    })?;
    let mut draft = Draft::new(Workload::Orion, "ORION", file_stem(name).unwrap_or("ORION"));
    draft.began = began_by_name(file_stem(name).unwrap_or_default(), false);
    let (label, unit, factor) = match figure {
        Figure::Megabytes => ("Large MBPS", "MB/s", 1.0),
        Figure::Requests => ("Small IOPS", "/s", 1.0),
        Figure::Latency => {
            let least =
                cells.iter().map(|(_, value)| *value).filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
            let (unit, factor, note) = latency_unit(above, least);
            draft.notes.push(note.to_owned());
            ("Small Latency", unit, factor)
        }
    };
    let mut points = assemble::Points::default();
    for (point, value) in cells {
        let of_point = reported_figure("OS file", label, unit, value * factor);
        points.at(point).reported.push(figure.known(of_point, point));
    }
    draft.notes.push(
        "a matrix reports one figure of each point: neither how long it ran nor the sizes of requests".to_owned(),
    );
    points.into_steps(&mut draft, &assemble::Load::default());
    Ok(draft)
}

/// Which figure a matrix reports: by the words above it, which releases from 11.2 on have, else by the file's name. Only large
/// loads alone have a rate in megabytes without any small one.
fn figure(name: &str, above: &str, cells: &[(Point, f64)]) -> Option<Figure> {
    let words = above.to_ascii_lowercase();
    if words.contains("latency") {
        return Some(Figure::Latency);
    }
    if words.contains("mbps") {
        return Some(Figure::Megabytes);
    }
    if words.contains("iops") {
        return Some(Figure::Requests);
    }
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let ends = |ending: &str| name.strip_suffix(".csv").unwrap_or(name).ends_with(ending);
    if ends("mbps") {
        Some(Figure::Megabytes)
    } else if ends("iops") {
        Some(Figure::Requests)
    } else if ends("lat") || ends("latency") {
        Some(Figure::Latency)
    } else if cells.iter().any(|(point, _)| point.small == 0) {
        Some(Figure::Megabytes)
    } else {
        None
    }
}

/// The unit in which latencies are reported, what makes microseconds of them where that is known, and why.
fn latency_unit(above: &str, least: f64) -> (&'static str, f64, &'static str) {
    if above.contains("microsecond") || above.contains("usec") {
        ("us", 1.0, "latencies are in microseconds, as the file says")
    } else if least < SURELY_MS {
        let note = "the file has no unit for its latencies. They are read as milliseconds, as ORION wrote them up to \
            11.1: no storage answers in so few microseconds";
        ("us", 1_000.0, note)
    } else if least >= SURELY_US {
        let note = "the file has no unit for its latencies. They are read as microseconds, as ORION writes them from \
            11.2 on: one request would hardly take that many milliseconds";
        ("us", 1.0, note)
    } else {
        let note = "the file does not say in which unit its latencies are: milliseconds up to ORION 11.1, microseconds later; they are \
                    reported without one";
        ("", 1.0, note)
    }
}
