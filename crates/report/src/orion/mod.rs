//! A run of ORION's walk as the files that ORION itself would have written, in its layout, for whatever reads those.
//!
//! The layout is that of 11.1 for the three matrices and of 19.3 for the summary's last part and the histograms. What
//! ORION leaves open is settled so:
//!
//! - IOPS are small requests per second, reads and writes together. Requests that failed count in no rate.
//! - MBPS are large requests' bytes per second in units of 2^20 bytes: ORION calls its 1024 KB requests 1M. Its output
//!   that was at hand would allow 10^6 as well.
//! - The latency of a point is the mean over small reads and writes together, from sent to finished, in microseconds, as in
//!   later releases (11.1 has milliseconds); the summary says so.
//! - A histogram's rows are powers of two; the empty ones at either end are one row, which is how the one table at hand
//!   comes to `0 - 32` and `4096 - 268435456`. The percentage includes all rows above.
//! - Histograms go to `_hist.csv` as with some of its builds; others name the file `_hist.txt`.
//! - A point that did not run to its end has an empty cell.
//! - The instant in the names is that at which the run began, in UTC as in our own names.
//!
//! Everything is taken from the run document, so the files can be made again.

mod file;
mod latency;
mod point;
mod summary;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use file::OrionFilesError;
use model::record::Run;
use point::{Point, Points};

const SUFFIXES: [&str; 5] = ["_summary.txt", "_mbps.csv", "_iops.csv", "_lat.csv", "_hist.csv"];
/// Width of a cell of a matrix, without the comma before it.
const CELL: usize = 7;
/// Width of its first cell.
const CORNER: usize = "Large/Small".len();

/// The texts of ORION's files, each with the end of its name.
///
/// # Errors
///
/// [`OrionFilesError::NotOrion`] for a run of another load.
pub fn texts(run: &Run) -> Result<[(&'static str, String); SUFFIXES.len()], OrionFilesError> {
    let points = Points::of(run)?;
    let texts = [
        summary::text(run, &points),
        megabytes_per_s(&points),
        requests_per_s(&points),
        latencies(&points),
        latency::histograms(&points),
    ];
    let mut texts = texts.into_iter();
    Ok(SUFFIXES.map(|suffix| (suffix, texts.next().expect("there is a text for each suffix"))))
}

/// Where the files of `run` go in `directory`: `TESTNAME_yyyymmdd_hhmm_summary.txt` and so on, without the directories that
/// the test's name may have.
///
/// # Errors
///
/// [`OrionFilesError::NotOrion`] for a run of another load.
pub fn paths(run: &Run, directory: &Path) -> Result<[PathBuf; SUFFIXES.len()], OrionFilesError> {
    let testname = &Points::of(run)?.load.options.testname;
    let name = Path::new(testname).file_name().map_or(testname.into(), |name| name.to_string_lossy());
    let began = run.started_at.0.strftime("%Y%m%d_%H%M");
    Ok(SUFFIXES.map(|suffix| directory.join(format!("{name}_{began}{suffix}"))))
}

/// Looks whether [`write()`] would find a file in its way; for the start of a run, so that it does not end in an error.
///
/// # Errors
///
/// [`OrionFilesError::Exists`] with the first such file, and as [`paths`].
pub fn check_free(run: &Run, directory: &Path) -> Result<(), OrionFilesError> {
    match paths(run, directory)?.into_iter().find(|path| path.symlink_metadata().is_ok()) {
        Some(path) => Err(OrionFilesError::Exists { path }),
        None => Ok(()),
    }
}

/// Writes ORION's files of `run` into `directory` and returns their paths. Each appears whole or not at all, and none takes
/// the place of a file that is there.
///
/// # Errors
///
/// As [`texts`] and [`check_free`], before anything is written; [`OrionFilesError::Write`] if the file system refuses, when
/// the files before that one stay.
pub fn write(run: &Run, directory: &Path) -> Result<Vec<PathBuf>, OrionFilesError> {
    let texts = texts(run)?;
    check_free(run, directory)?;
    let paths = paths(run, directory)?;
    for (path, (_, text)) in paths.iter().zip(&texts) {
        file::write_new(path, text)?;
    }
    Ok(paths.into())
}

/// `_mbps.csv`: large loads from 1 on.
fn megabytes_per_s(points: &Points<'_>) -> String {
    let rows = from_one(&points.large_loads);
    matrix(points, &points.small_loads, &rows, |point| point.megabytes_per_s().map(|rate| format!("{rate:.2}")))
}

/// `_iops.csv`: small loads from 1 on.
fn requests_per_s(points: &Points<'_>) -> String {
    let columns = from_one(&points.small_loads);
    matrix(points, &columns, &points.large_loads, |point| point.small_per_s().map(|rate| format!("{rate:.0}")))
}

/// `_lat.csv`: small loads from 1 on, in microseconds.
fn latencies(points: &Points<'_>) -> String {
    let columns = from_one(&points.small_loads);
    matrix(points, &columns, &points.large_loads, |point| point.small_latency_us().map(|us| format!("{us:.2}")))
}

fn from_one(loads: &[u32]) -> Vec<u32> {
    loads.iter().copied().filter(|load| *load > 0).collect()
}

/// One of the three matrices: a row for each large load, a column for each small one.
fn matrix(points: &Points<'_>, columns: &[u32], rows: &[u32], cell: impl Fn(&Point<'_>) -> Option<String>) -> String {
    let mut text = line("Large/Small", columns.iter().map(|small| Some(small.to_string())));
    for large in rows {
        let cells = columns.iter().map(|small| points.at(*small, *large).and_then(&cell));
        text.push_str(&line(&large.to_string(), cells));
    }
    text
}

/// One line of it. Cells after the last that is known are left out with their commas, as ORION does.
fn line(first: &str, cells: impl Iterator<Item = Option<String>>) -> String {
    let mut cells: Vec<Option<String>> = cells.collect();
    cells.truncate(cells.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
    let cells = cells.into_iter().map(|cell| format!(",{:>CELL$}", cell.unwrap_or_default())).collect::<String>();
    format!("{first:>CORNER$}{cells}\n")
}
