//! ORION, Oracle's program that loads storage: its summary, what it prints, its matrices and its histograms, of 10.2 to 19c, and
//! the files of the same layout that Plimsoll writes.
//!
//! A point is a number of small requests outstanding and a number of large ones; it becomes a step. Latencies are reported in
//! microseconds whatever the release printed them in: 10.2 and 11.1 have milliseconds and print no unit, later ones say `usecs`.

mod assemble;
mod histogram;
mod matrix;
#[cfg(test)]
mod tests;
mod text;

use super::{Draft, ImportError, Notes, Source};
use model::record::{Metric, ReportedFigure};

/// The beginnings of the lines that report the best points. Their first letters are missing in copies.
const FIGURES: [(&str, Figure); 3] = [
    ("aximum Large MBPS=", Figure::Megabytes),
    ("aximum Small IOPS=", Figure::Requests),
    ("inimum Small Latency=", Figure::Latency),
];
/// Results that one file may hold.
const MAX_RUNS: usize = 1_000;
const HISTOGRAM: &str = "Latency Histogram @";

/// What a figure reports on a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    /// Megabytes per second of large requests.
    Megabytes,
    /// Small requests per second.
    Requests,
    /// Mean latency of small requests.
    Latency,
}

impl Figure {
    /// `figure` of a point with the metric that it is. Beside requests of the other size a rate is that of some requests alone.
    fn known(self, figure: ReportedFigure, point: Point) -> ReportedFigure {
        match self {
            Self::Megabytes if point.small == 0 => figure.is(Metric::Megabytes, 1.0),
            Self::Requests if point.large == 0 => figure.is(Metric::Operations, 1.0),
            Self::Latency if figure.unit == "us" => figure.is(Metric::RequestTime, 1e-3),
            _ => figure,
        }
    }
}

/// A number of small requests outstanding and a number of large requests, or of streams of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Point {
    small: u32,
    large: u32,
}

impl Point {
    /// The point in `… @ Small=10 and Large=0`.
    fn of(text: &str) -> Option<Self> {
        let after = |name: &str| {
            let (_, rest) = text.split_once(name)?;
            let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        };
        Some(Self { small: after("mall=")?, large: after("arge=")? })
    }
}

fn has_figure(head: &str) -> bool {
    let is_figure = |line: &str| {
        let line = line.replace('*', "");
        line.contains("@ Small=") && FIGURES.iter().any(|(marker, _)| line.contains(marker))
    };
    head.lines().any(is_figure)
}

fn is_console(head: &str) -> bool {
    head.contains("acle IO Numbers") && !head.contains("RION VERSION")
}

/// The file that ORION leaves, or the lines of it that people copy.
pub(super) fn recognises_summary(head: &str) -> bool {
    has_figure(head) && !is_console(head)
}

/// What ORION prints.
pub(super) fn recognises_console(head: &str) -> bool {
    has_figure(head) && is_console(head)
}

/// Histograms of every point.
pub(super) fn recognises_histograms(head: &str) -> bool {
    head.lines().any(|line| line.contains(HISTOGRAM) && Point::of(line).is_some()) && !has_figure(head)
}

/// One of the three matrices.
pub(super) fn recognises_matrix(head: &str) -> bool {
    head.lines().any(matrix::is_heading) && !has_figure(head)
}

/// A run for each invocation of the file.
pub(super) fn read_text(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    text::read(source, notes)
}

/// A run for each matrix of the file.
pub(super) fn read_matrix(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    matrix::read(source, notes)
}
