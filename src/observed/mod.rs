//! A trace of block requests as the other commands take one: rates that limits of platforms are held against, and a run.

mod draft;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use import::{Draft, FileRead, ImportError, identity};
use model::platforms::recorded::{IntervalRates, Recorded};
use model::record::TRACE_FILE;
use model::trace::{TraceEnd, TraceHeader};
use trace::profile::{Point, Profile, ProfileOptions, Profiler};
use trace::{BATCH, TraceError, TraceFile, TraceSource};

pub use draft::{draft, notes};

/// Whether a trace is of what a process asked of its files: the page cache answers some of that, so limits of devices do not apply.
pub fn is_of_calls(header: &TraceHeader) -> bool {
    !header.layer.is_device()
}

/// How much of the trace, at its end, is too short to be an interval. It is not judged: what is in a few milliseconds is not a rate.
pub fn left_over_ns(profile: &Profile) -> u64 {
    profile.duration_ns % profile.series.interval_ns.max(1)
}

/// What the trace did, interval by interval, in each that is whole.
pub fn recorded(profile: &Profile) -> Recorded {
    let whole = profile.duration_ns / profile.series.interval_ns.max(1);
    let seconds = profile.series.interval_ns as f64 / 1e9;
    let mean = |bytes: u64, requests: u64| if requests > 0 { bytes as f64 / requests as f64 } else { 0.0 };
    let rates = |point: &Point| IntervalRates {
        reads_per_s: point.reads as f64 / seconds,
        read_bytes: mean(point.read_bytes, point.reads),
        writes_per_s: point.writes as f64 / seconds,
        write_bytes: mean(point.write_bytes, point.writes),
    };
    let whole = usize::try_from(whole).unwrap_or(usize::MAX);
    Recorded::new(seconds, profile.series.points.iter().take(whole).map(rates).collect())
}

/// Which share of the reads a host cache of so many GiB would answer; absent where the trace has no reads.
pub fn hit_share(profile: &Profile, gib: f64) -> Option<f64> {
    profile.curve.hit_ratio((gib * f64::from(1 << 30)) as u64)
}

/// Whether a file is a trace that this program wrote.
pub fn is_trace(path: &Path) -> bool {
    TraceFile::is_one(path)
}

/// Reads a trace for the import; absent where `stop` was set before its end.
///
/// # Errors
/// If it cannot be read, is damaged, or is another table.
pub fn read_file(path: &Path, stop: &AtomicBool) -> Result<Option<FileRead>, ImportError> {
    let shown = path.display().to_string();
    let failed = |error| import_error(error, &shown);
    let mut source = TraceFile::open(path).map_err(failed)?;
    let Some(profile) = profile(&mut source, stop).map_err(failed)? else { return Ok(None) };
    let (header, end) = (source.header(), source.end());
    if profile.requests == 0 {
        return Err(ImportError::NoResult { path: shown, what: "it has no requests".to_owned() });
    }
    let (file, changed) = identity(path, TRACE_FILE).map_err(|error| ImportError::Io { path: shown.clone(), error })?;
    let drafts = vec![draft(&title(path), header, &end, &profile)];
    Ok(Some(FileRead { file, changed, drafts, not_understood: Vec::new() }))
}

/// What a trace is called in runs: the name of its file.
pub fn title(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The run of a trace that is judged at once and not kept. Where the trace does not say when it began, its times count from 1970.
pub fn run(path: &Path, header: &TraceHeader, end: &TraceEnd, profile: &Profile) -> Option<model::record::Run> {
    let mut made: Draft = draft(&title(path), header, end, profile);
    made.began = made.began.or_else(|| import::Began::epoch_s(0));
    let file = model::record::ImportedFile {
        path: path.display().to_string(),
        kind: TRACE_FILE.to_owned(),
        bytes: 0,
        crc64: String::new(),
        part: 0,
        lines: None,
    };
    let changed = model::record::Timestamp(jiff::Timestamp::UNIX_EPOCH);
    let mut run =
        import::runs(vec![FileRead { file, changed, drafts: vec![made], not_understood: Vec::new() }]).pop()?;
    run.id = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Some(run)
}

fn profile(source: &mut dyn TraceSource, stop: &AtomicBool) -> Result<Option<Profile>, TraceError> {
    let mut profiler = Profiler::new(ProfileOptions::default());
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        batch.clear();
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(Some(profiler.finish(source.header(), &source.end())));
        }
        batch.iter().for_each(|request| profiler.add(request));
    }
}

fn import_error(error: TraceError, shown: &str) -> ImportError {
    let path = shown.to_owned();
    match error {
        TraceError::Read { source, .. } | TraceError::Write { source, .. } => ImportError::Io { path, error: source },
        TraceError::NotRecognised { .. } => ImportError::NotRecognised { path, begins: None },
        TraceError::Damaged { line, what, .. } => ImportError::Damaged { path, line, what },
        TraceError::Empty { .. } => ImportError::NoResult { path, what: "it has no requests".to_owned() },
    }
}
