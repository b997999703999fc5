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

mod latency;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use files::How;
use model::record::{Histogram, Level, Load, OperationStats, OrionLevel, OrionLoad, Outcome, Run, Step, Workload};
use model::units::Bytes;

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
        write_new(path, text)?;
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

/// Why ORION's files could not be made.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum OrionFilesError {
    /// A run of another workload.
    #[error("run `{id}` is of workload `{workload}`; ORION's files can only be made of ORION's walk")]
    #[diagnostic(help("other reports show every run"))]
    NotOrion { id: String, workload: Workload },
    /// A file is in the way.
    #[error("`{}` is there already", path.display())]
    #[diagnostic(help(
        "ORION names its files by the minute: move that one away, give another `-testname`, or start a minute later"
    ))]
    Exists { path: PathBuf },
    /// The file system refuses.
    #[error("cannot write `{}`: {reason}", path.display())]
    #[diagnostic(help("look at the directory's permissions and free space; the run itself is kept"))]
    Write { path: PathBuf, reason: io::Error },
}

/// Writes a file that is not there yet: under a name of its own first, so that nobody ever sees a part of it.
fn write_new(path: &Path, text: &str) -> Result<(), OrionFilesError> {
    let failed = |reason: io::Error| match reason.kind() {
        ErrorKind::AlreadyExists => OrionFilesError::Exists { path: path.to_owned() },
        _ => OrionFilesError::Write { path: path.to_owned(), reason },
    };
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let named = write_durably(&temporary, text).and_then(|()| files::rename_new(&temporary, path));
    if let Err(reason) = named {
        let _ = files::remove(&temporary);
        return Err(failed(reason));
    }
    Ok(())
}

fn write_durably(temporary: &Path, text: &str) -> io::Result<()> {
    let mut file = files::make_new(temporary, How::default())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The matrix of a run.
struct Points<'a> {
    /// Points that ran to their end, in the order in which they ran.
    seen: Vec<Point<'a>>,
    /// All small loads of the walk, in rising order.
    small_loads: Vec<u32>,
    /// All large loads of the walk, in rising order.
    large_loads: Vec<u32>,
    small_bytes: u64,
    large_bytes: u64,
    /// What was asked for.
    load: &'a OrionLoad,
}

/// One point that ran to its end.
struct Point<'a> {
    small: u32,
    large: u32,
    large_bytes: u64,
    step: &'a Step,
}

/// Requests of one size.
#[derive(Clone, Copy)]
enum Size {
    Small,
    Large,
}

/// Reads or writes.
#[derive(Clone, Copy)]
enum Way {
    Read,
    Write,
}

impl<'a> Points<'a> {
    fn of(run: &'a Run) -> Result<Self, OrionFilesError> {
        let Load::Orion(load) = &run.load else {
            return Err(OrionFilesError::NotOrion { id: run.id.clone(), workload: run.workload() });
        };
        let (Bytes(small_bytes), Bytes(large_bytes)) = (load.options.size_small, load.options.size_large);
        let mut small_loads: BTreeSet<u32> = load.small_loads.iter().copied().collect();
        let mut large_loads: BTreeSet<u32> = load.large_loads.iter().copied().collect();
        let mut seen = Vec::new();
        for step in run.steps.iter().filter(|step| step.outcome == Outcome::Completed) {
            let Some(Level::Orion(OrionLevel { small, large })) = step.level else { continue };
            small_loads.insert(small);
            large_loads.insert(large);
            seen.push(Point { small, large, large_bytes, step });
        }
        Ok(Self {
            load,
            seen,
            small_loads: small_loads.into_iter().collect(),
            large_loads: large_loads.into_iter().collect(),
            small_bytes,
            large_bytes,
        })
    }

    /// The last point that ran with this load.
    fn at(&self, small: u32, large: u32) -> Option<&Point<'a>> {
        self.seen.iter().rev().find(|point| (point.small, point.large) == (small, large))
    }
}

impl Point<'_> {
    /// Where it lies, as ORION says it.
    fn place(&self) -> String {
        format!("Small={} and Large={}", self.small, self.large)
    }

    /// Small requests per second; none if the point has no small load.
    fn small_per_s(&self) -> Option<f64> {
        (self.small > 0).then(|| self.per_s(Size::Small)).flatten()
    }

    /// Bytes of large requests per second, in units of 2^20; none if the point has no large load.
    fn megabytes_per_s(&self) -> Option<f64> {
        let requests = (self.large > 0).then(|| self.per_s(Size::Large)).flatten()?;
        Some(requests * self.large_bytes as f64 / (1_u64 << 20) as f64)
    }

    /// Mean latency of small reads and writes together.
    fn small_latency_us(&self) -> Option<f64> {
        let mut all = Histogram::default();
        for way in [Way::Read, Way::Write] {
            if let Some(times) = self.times(Size::Small, way) {
                all.merge(times);
            }
        }
        all.mean_ns().map(|ns| ns / 1e3)
    }

    /// From sent to finished; none if no such request finished.
    fn times(&self, size: Size, way: Way) -> Option<&Histogram> {
        self.operations(size, way).map(|operations| &operations.service).filter(|times| times.count() > 0)
    }

    fn per_s(&self, size: Size) -> Option<f64> {
        let finished: u64 = [Way::Read, Way::Write]
            .into_iter()
            .filter_map(|way| self.operations(size, way))
            .map(|operations| operations.count.saturating_sub(operations.errors))
            .sum();
        let duration_ns = self.step.window.duration_ns;
        (duration_ns > 0).then(|| finished as f64 * 1e9 / duration_ns as f64)
    }

    fn operations(&self, size: Size, way: Way) -> Option<&OperationStats> {
        let kind = match (size, way) {
            (Size::Small, Way::Read) => "read",
            (Size::Small, Way::Write) => "write",
            (Size::Large, Way::Read) => "large read",
            (Size::Large, Way::Write) => "large write",
        };
        self.step.operations.iter().find(|operations| operations.kind == kind)
    }
}
