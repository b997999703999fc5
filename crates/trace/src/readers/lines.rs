//! Text files of gigabytes, line by line, without a copy of each line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use model::record::Timestamp;

use super::sink::{Input, Sink};
use crate::TraceError;

/// The longest line: no program writes one of this length.
const MAX_LINE: usize = 65_536;

/// What is read at once.
const BUFFER: usize = 262_144;

/// Lines that show whether a file is of its format.
const JUDGED: u64 = 1_000;

/// How many lines are read until requests are passed on.
const STEP: usize = 1_024;

/// How much of a line a note quotes, in characters.
const QUOTED: usize = 100;

/// A line of a file.
pub(super) enum Line<'a> {
    /// It is whole.
    Whole(&'a [u8]),
    /// The file ends within it.
    CutOff,
    /// The file has no further one.
    End,
}

/// The lines of a file.
pub(super) struct Lines {
    path: String,
    reader: BufReader<File>,
    /// Bytes at the beginning of the buffer that the last line had.
    used: usize,
    /// A line that lies in two buffers.
    long: Vec<u8>,
    /// The number of the last line, from 1.
    number: u64,
}

impl Lines {
    /// Opens a file.
    pub(super) fn open(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Ok(Self {
                path: name,
                reader: BufReader::with_capacity(BUFFER, file),
                used: 0,
                long: Vec::new(),
                number: 0,
            }),
            Err(source) => Err(TraceError::Read { path: name, source }),
        }
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self) -> Result<Line<'_>, TraceError> {
        self.reader.consume(self.used);
        self.used = 0;
        self.long.clear();
        self.number += 1;
        loop {
            let available = match self.reader.fill_buf() {
                Ok(available) => available,
                Err(source) if source.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(TraceError::Read { path: self.path.clone(), source }),
            };
            if available.is_empty() {
                return Ok(if self.long.is_empty() { Line::End } else { Line::CutOff });
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let length = end.unwrap_or(available.len());
            if self.long.len() + length > MAX_LINE {
                return Err(self.damaged(format!("the line is longer than {MAX_LINE} bytes")));
            }
            match end {
                Some(end) if self.long.is_empty() => {
                    self.used = end + 1;
                    let line = self.reader.buffer().get(..end).unwrap_or_default();
                    return Ok(Line::Whole(without_return(line)));
                }
                Some(end) => {
                    self.long.extend_from_slice(available.get(..end).unwrap_or_default());
                    self.used = end + 1;
                    return Ok(Line::Whole(without_return(&self.long)));
                }
                None => {
                    self.long.extend_from_slice(available);
                    self.reader.consume(length);
                }
            }
        }
    }

    fn damaged(&self, what: String) -> TraceError {
        TraceError::Damaged { path: self.path.clone(), line: Some(self.number), what }
    }
}

/// Windows writes a carriage return before the end of a line.
fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// What the lines of one format mean.
pub(super) trait Rows: Send {
    /// Takes a line that is not empty; absent if it is not understood.
    fn row(&mut self, line: &[u8], sink: &mut Sink) -> Option<()>;

    /// Passes on what waits for a later line.
    fn finish(&mut self, _sink: &mut Sink) {}

    /// The wall-clock time of a time of the file; absent where the file does not say.
    fn wall(&self, _at_ns: u64) -> Option<Timestamp> {
        None
    }

    /// What a reader has to know so far.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A text file and what its lines mean.
pub(super) struct Text<R> {
    lines: Lines,
    rows: R,
    seen: u64,
    not_understood: u64,
    first: Option<(u64, String)>,
    cut_off: Option<u64>,
}

impl<R: Rows> Text<R> {
    /// Opens a file.
    pub(super) fn open(path: &Path, rows: R) -> Result<Self, TraceError> {
        Ok(Self { lines: Lines::open(path)?, rows, seen: 0, not_understood: 0, first: None, cut_off: None })
    }

    /// Refuses a file of which most lines are not understood: it is of another format.
    fn judge(&self) -> Result<(), TraceError> {
        if self.not_understood * 2 <= self.seen {
            return Ok(());
        }
        let (line, text) = self.first.clone().unwrap_or_default();
        Err(TraceError::Damaged {
            path: self.lines.path.clone(),
            line: Some(line),
            what: format!("{} of {} lines could not be parsed, the first is `{text}`", self.not_understood, self.seen),
        })
    }
}

impl<R: Rows> Input for Text<R> {
    fn read(&mut self, sink: &mut Sink) -> Result<bool, TraceError> {
        for _ in 0..STEP {
            let number = self.lines.number + 1;
            match self.lines.next()? {
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Line::Whole(line) => {
                    self.seen += 1;
                    if self.rows.row(line, sink).is_none() {
                        self.not_understood += 1;
                        self.first.get_or_insert_with(|| {
                            (number, String::from_utf8_lossy(line).chars().take(QUOTED).collect())
                        });
                    }
                    if self.seen == JUDGED {
                        self.judge()?;
                    }
                }
                end => {
                    // A number that was cut off is another number: that line is not used.
                    self.cut_off = matches!(end, Line::CutOff).then_some(number);
                    if self.seen < JUDGED {
                        self.judge()?;
                    }
                    self.rows.finish(sink);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn wall(&self, at_ns: u64) -> Option<Timestamp> {
        self.rows.wall(at_ns)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.rows.notes();
        if let Some((line, text)) = &self.first {
            notes.push(format!(
                "lines that could not be parsed: {}; the first is line {line}: `{text}`",
                self.not_understood
            ));
        }
        if let Some(line) = self.cut_off {
            notes.push(format!("the file ends within line {line}: that line is left out"));
        }
        notes
    }
}
