//! Writing a run while it goes on, so that a killed one still has its data.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use files::How;

use super::{Allowance, INTERVALS_FILE, RUN_FILE, Store, StoreError, TEMPORARY_FILE};
use crate::record::{Interval, Outcome, Run};

/// The pen of one run: intervals are appended each second, the document is replaced whole.
#[derive(Debug)]
pub struct RunWriter {
    directory: PathBuf,
    intervals: File,
    /// Bytes of whole lines in the interval file.
    intervals_bytes: u64,
}

impl RunWriter {
    /// Makes the directory of `run` and writes its document as it stands.
    ///
    /// # Errors
    /// If the id cannot name a directory, a run of that id is there already, or the file system refuses.
    pub fn create(store: &Store, run: &Run) -> Result<Self, StoreError> {
        let directory = make_directory(store, run)?;
        if let Err(error) = write_document(&directory, run) {
            // Nothing of the run is kept, so its directory would only be in the way.
            let _ = files::remove_directory(&directory);
            return Err(error);
        }
        let path = directory.join(INTERVALS_FILE);
        let how = How { append: true, ..How::default() };
        let intervals = files::make_new(&path, how).map_err(|e| StoreError::io(&path, "make", e))?;
        Ok(Self { directory, intervals, intervals_bytes: 0 })
    }

    /// Where the run is kept.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds one interval as one line, in one write.
    ///
    /// # Errors
    /// If the file system refuses; lines written before stay whole, and later ones may still be added.
    pub fn append(&mut self, interval: &Interval) -> Result<(), StoreError> {
        let mut line = to_json(interval, Layout::Compact);
        line.push(b'\n');
        if let Err(error) = self.intervals.write_all(&line) {
            // A full disk can leave half a line, and the next one would be glued to it. If cutting it off fails too,
            // the reader still drops it, so only the first error is worth reporting.
            let _ = self.intervals.set_len(self.intervals_bytes);
            return Err(StoreError::io(&self.directory.join(INTERVALS_FILE), "write to", error));
        }
        self.intervals_bytes += line.len() as u64;
        Ok(())
    }

    /// Replaces the document. At every instant, a crash included, `run.json` is either the old or the new one, whole.
    ///
    /// # Errors
    /// If the file system refuses; the old document is kept.
    pub fn update(&mut self, run: &Run) -> Result<(), StoreError> {
        write_document(&self.directory, run)
    }

    /// Keeps a report that a database made of itself in step number `step`, the `place`-th of them; returns its file's name.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn keep_own_report(&self, kind: &str, step: u32, place: usize, text: &str) -> Result<String, StoreError> {
        let name = format!("{}-{step}-{place}.txt", kind.to_ascii_lowercase());
        self.keep_text(&name, text)?;
        Ok(name)
    }

    /// Keeps a text beside the run, under this name.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn keep_text(&self, name: &str, text: &str) -> Result<(), StoreError> {
        let path = self.directory.join(name);
        let written = files::make_new(&path, How::default()).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|e| StoreError::io(&path, "write", e))
    }

    /// Makes the intervals durable, writes the final document and returns the directory.
    ///
    /// # Errors
    /// If the file system refuses; what was written before is kept.
    pub fn finish(mut self, run: &Run) -> Result<PathBuf, StoreError> {
        self.intervals
            .sync_all()
            .map_err(|e| StoreError::io(&self.directory.join(INTERVALS_FILE), "make durable", e))?;
        self.update(run)?;
        Ok(self.directory)
    }
}

/// Keeps a run that is whole already, and returns its directory. The document comes last: what is cut off before it is no run,
/// rather than one without its intervals.
pub(super) fn save(store: &Store, run: &Run) -> Result<PathBuf, StoreError> {
    let directory = make_directory(store, run)?;
    if let Err(error) = write_intervals(&directory, run).and_then(|()| write_document(&directory, run)) {
        // Nothing of the run is kept, so what was begun would only be in the way.
        let _ = files::remove(&directory.join(INTERVALS_FILE));
        let _ = files::remove_directory(&directory);
        return Err(error);
    }
    Ok(directory)
}

fn make_directory(store: &Store, run: &Run) -> Result<PathBuf, StoreError> {
    let directory = store.directory_of(&run.id)?;
    files::make_directories(store.path()).map_err(|e| StoreError::io(store.path(), "make directory", e))?;
    files::make_directory(&directory, 0o777).map_err(|e| StoreError::io(&directory, "make directory", e))?;
    Ok(directory)
}

/// Writes all intervals, durably. A run without any needs no file.
fn write_intervals(directory: &Path, run: &Run) -> Result<(), StoreError> {
    let mut intervals = run.steps.iter().flat_map(|step| &step.intervals).peekable();
    if intervals.peek().is_none() {
        return Ok(());
    }
    let path = directory.join(INTERVALS_FILE);
    let written = files::make_new(&path, How::default()).and_then(|file| {
        let mut out = BufWriter::new(file);
        for interval in intervals {
            out.write_all(&to_json(interval, Layout::Compact))?;
            out.write_all(b"\n")?;
        }
        out.into_inner()?.sync_all()
    });
    written.map_err(|error| StoreError::io(&path, "write", error))
}

enum Layout {
    Compact,
    Pretty,
}

fn to_json(value: &impl serde::Serialize, layout: Layout) -> Vec<u8> {
    match layout {
        Layout::Compact => serde_json::to_vec(value),
        Layout::Pretty => serde_json::to_vec_pretty(value),
    }
    .expect("the document has text keys only, and memory takes every write")
}

/// Gives the run in `directory` tags, in place of those of the same keys. The rest of its document stays as it is, whatever its
/// format.
///
/// # Errors
/// If there is no run that has ended, or the file system refuses; the old document is kept then.
pub fn tag(directory: &Path, tags: &BTreeMap<String, String>) -> Result<(), StoreError> {
    let summary = super::reader::summarise(directory, Allowance::default())?;
    if summary.outcome == Outcome::Unfinished {
        return Err(StoreError::StillGoesOn { id: summary.id });
    }
    let (path, text) = super::reader::text_of(directory, &mut Allowance::default())?;
    let mut document: serde_json::Value = serde_json::from_slice(&text).map_err(|e| StoreError::json(&path, &e))?;
    for (key, value) in tags {
        document["tags"][key] = value.as_str().into();
    }
    write_document(directory, &document)
}

/// Writes the document in one step.
pub(super) fn write_document(directory: &Path, run: &impl serde::Serialize) -> Result<(), StoreError> {
    let path = directory.join(RUN_FILE);
    let mut text = to_json(run, Layout::Pretty);
    text.push(b'\n');
    files::replace_own(&path, TEMPORARY_FILE, &text).map_err(|e| StoreError::io(&path, "write", e))
}
