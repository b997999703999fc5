//! How much of a run is read. Whoever keeps a run may have made it himself, so nothing in it decides how long reading takes.

use std::path::Path;
use std::time::Instant;

use super::StoreError;
use crate::units::{Bytes, group_thousands};

/// The longest `run.json`.
pub const MAX_DOCUMENT: Bytes = Bytes::mib(256);
/// Values in a `run.json`, those of all lists and objects in it: as many small ones take ten times their text in memory.
const MAX_VALUES: usize = 16_000_000;
/// The longest single text in a `run.json`, as it is written there.
pub const MAX_TEXT: Bytes = Bytes::mib(4);
/// The longest line of `intervals.jsonl`.
pub const MAX_LINE: Bytes = Bytes::mib(4);
/// Lists and objects within each other in a `run.json`.
pub const MAX_NESTING: usize = 100;
/// Most steps of a run.
pub const MAX_STEPS: usize = 20_000;
/// Most intervals of a run: a month of seconds.
pub const MAX_INTERVALS: usize = 3_000_000;
/// The longest `intervals.jsonl`.
pub const MAX_LINES: Bytes = Bytes::gib(8);

/// The same for a page that `serve` makes, of all runs on it together, so that a page takes no more than 256 MiB of memory.
const MAX_PAGE_DOCUMENTS: Bytes = Bytes::mib(32);
const MAX_PAGE_VALUES: usize = 2_000_000;
/// Most steps of all runs on a page that `serve` makes.
pub const MAX_PAGE_STEPS: usize = 4_000;
/// Most intervals of all runs on a page that `serve` makes: a day and a half of seconds.
pub const MAX_PAGE_INTERVALS: usize = 130_000;
/// Most text of the intervals of all runs on a page that `serve` makes: in memory they take more than twice as much.
pub const MAX_PAGE_LINES: Bytes = Bytes::mib(32);

/// What may still be read. Several runs that are read for one purpose share one.
#[derive(Debug, Clone)]
pub struct Allowance {
    pub(super) documents: Bytes,
    pub(super) values: usize,
    pub(super) steps: usize,
    pub(super) intervals: usize,
    pub(super) lines: Bytes,
    pub(super) until: Option<Instant>,
    pub(super) is_page: bool,
}

impl Default for Allowance {
    /// Of one run, for a command.
    fn default() -> Self {
        Self {
            documents: MAX_DOCUMENT,
            values: MAX_VALUES,
            steps: MAX_STEPS,
            intervals: MAX_INTERVALS,
            lines: MAX_LINES,
            until: None,
            is_page: false,
        }
    }
}

impl Allowance {
    /// Of all runs on a page of the server, which must be read by `until`.
    pub fn of_page(until: Instant) -> Self {
        Self {
            documents: MAX_PAGE_DOCUMENTS,
            values: MAX_PAGE_VALUES,
            steps: MAX_PAGE_STEPS,
            intervals: MAX_PAGE_INTERVALS,
            lines: MAX_PAGE_LINES,
            until: Some(until),
            is_page: true,
        }
    }

    /// Bytes that a document may have.
    pub(super) fn document(&self) -> Bytes {
        self.documents
    }

    /// Takes a document that was read.
    pub(super) fn take_document(&mut self, path: &Path, text: &[u8]) -> Result<(), StoreError> {
        self.documents.0 = self.documents.0.saturating_sub(text.len() as u64);
        let Measured { values, longest, deepest } = Measured::of(text);
        if deepest > MAX_NESTING {
            return Err(self.exceeded(path, format!("lists within lists, more than {MAX_NESTING} deep")));
        }
        if longest as u64 > MAX_TEXT.0 {
            return Err(self.exceeded(path, format!("a text longer than {MAX_TEXT}")));
        }
        match self.values.checked_sub(values) {
            Some(left) => self.values = left,
            None => return Err(self.exceeded(path, format!("more than {} values", number(self.values)))),
        }
        self.on_time(path)
    }

    /// Takes steps that were read.
    pub(super) fn take_steps(&mut self, path: &Path, steps: usize) -> Result<(), StoreError> {
        match self.steps.checked_sub(steps) {
            Some(left) => self.steps = left,
            None => {
                return Err(self.exceeded(path, format!("{} steps, more than {}", number(steps), number(self.steps))));
            }
        }
        Ok(())
    }

    /// Takes an interval that was read, from a line of so many bytes.
    pub(super) fn take_interval(&mut self, path: &Path, line_bytes: usize) -> Result<(), StoreError> {
        match self.intervals.checked_sub(1) {
            Some(left) => self.intervals = left,
            None => return Err(self.exceeded(path, "more intervals than are read".to_owned())),
        }
        match self.lines.0.checked_sub(line_bytes as u64) {
            Some(left) => self.lines = Bytes(left),
            None => return Err(self.exceeded(path, "more text of intervals than is read".to_owned())),
        }
        self.on_time(path)
    }

    /// Whether there is time left.
    ///
    /// # Errors
    /// [`StoreError::TooSlow`] if there is none.
    pub fn on_time(&self, path: &Path) -> Result<(), StoreError> {
        if self.until.is_some_and(|until| Instant::now() > until) {
            return Err(StoreError::TooSlow { path: path.to_owned() });
        }
        Ok(())
    }

    fn exceeded(&self, path: &Path, what: String) -> StoreError {
        StoreError::TooMuch { path: path.to_owned(), what, is_page: self.is_page }
    }

    /// The same said of a file that is longer than the whole allowance.
    pub(super) fn too_long(&self, path: &Path, most: Bytes) -> StoreError {
        self.exceeded(path, format!("more than {most}"))
    }
}

fn number(count: usize) -> String {
    group_thousands(count as f64)
}

/// What is known of a JSON text before it is parsed.
#[derive(Debug, PartialEq)]
struct Measured {
    /// Values in it, or some more.
    values: usize,
    /// Bytes of the longest text in it.
    longest: usize,
    /// Lists and objects within each other.
    deepest: usize,
}

impl Measured {
    fn of(json: &[u8]) -> Self {
        let mut found = Self { values: 1, longest: 0, deepest: 0 };
        let (mut at, mut depth) = (0, 0_usize);
        while let Some(byte) = json.get(at) {
            at += 1;
            match byte {
                b',' => found.values += 1,
                b'[' | b'{' => {
                    found.values += 1;
                    depth += 1;
                    found.deepest = found.deepest.max(depth);
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                b'"' => {
                    let begin = at;
                    while let Some(byte) = json.get(at).filter(|byte| **byte != b'"') {
                        at += if *byte == b'\\' { 2 } else { 1 };
                    }
                    found.longest = found.longest.max(at - begin);
                    at += 1;
                }
                _ => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_takes_so_much_text_of_intervals_and_no_more() {
        let mut allowance = Allowance::of_page(Instant::now() + std::time::Duration::from_secs(600));
        let path = Path::new("run");
        for _ in 0..4 {
            allowance.take_interval(path, MAX_PAGE_LINES.0 as usize / 4).unwrap();
        }
        let error = allowance.take_interval(path, 1).unwrap_err().to_string();
        assert!(error.contains("more text of intervals than is read"), "{error}");
    }

    #[test]
    fn values_and_texts_are_counted_without_parsing() {
        let measured = |json: &[u8]| {
            let Measured { values, longest, deepest } = Measured::of(json);
            (values, longest, deepest)
        };
        assert_eq!(measured(br#"{"a": [1, 2, 3], "b\"],[": "x"}"#), (6, 6, 2));
        assert_eq!(measured(br#"["unfinished"#), (2, 10, 1));
        assert_eq!(measured(b"\"\\"), (1, 2, 0));
        assert_eq!(measured(b"]]][{}]"), (3, 0, 2));
    }
}
