//! The intervals of a run, one line after the other, for whoever cannot hold them all.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::{INTERVALS_FILE, StoreError};

/// The interval file of a run, read line by line.
#[derive(Debug)]
pub struct IntervalLines {
    path: PathBuf,
    reader: BufReader<File>,
    line: Vec<u8>,
    /// Lines read so far.
    number: usize,
    is_cut_short: bool,
}

impl IntervalLines {
    /// Opens that of the run in `directory`; none if the run has no intervals.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(directory: &Path) -> Result<Option<Self>, StoreError> {
        let path = directory.join(INTERVALS_FILE);
        match File::open(&path) {
            Ok(file) => {
                let reader = BufReader::new(file);
                Ok(Some(Self { path, reader, line: Vec::new(), number: 0, is_cut_short: false }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io(&path, "open", error)),
        }
    }

    /// The next line as an [`Interval`](crate::record::Interval), or as a type that has some of its fields; none at the end, or at
    /// a last line that was half-written.
    ///
    /// # Errors
    /// If it cannot be read, or is no interval.
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<Option<T>, StoreError> {
        if !self.skip()? {
            return Ok(None);
        }
        match serde_json::from_slice(&self.line) {
            Ok(interval) => Ok(Some(interval)),
            Err(_) if self.line.last() != Some(&b'\n') => {
                self.is_cut_short = true;
                Ok(None)
            }
            Err(error) => Err(self.at_line(StoreError::json(&self.path, &error))),
        }
    }

    /// Passes over a line; false at the end.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn skip(&mut self) -> Result<bool, StoreError> {
        self.line.clear();
        let read = self.reader.read_until(b'\n', &mut self.line);
        let bytes = read.map_err(|error| StoreError::io(&self.path, "read", error))?;
        self.number += usize::from(bytes > 0);
        Ok(bytes > 0)
    }

    /// Whether the last line was half-written, and left out.
    pub fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// Each interval is parsed by itself, so the parser counts from its own line.
    fn at_line(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Unreadable { path, column, reason, cut_short, .. } => {
                StoreError::Unreadable { path, line: self.number, column, reason, cut_short }
            }
            other => other,
        }
    }
}
