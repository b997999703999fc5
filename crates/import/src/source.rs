//! A file to be imported, as text.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::ImportError;
use super::decimals::{self, Decimals};
use super::remainder::Remainder;
use super::surroundings::{self, Bare};
use model::plain::{self, Links};
use model::record::{ImportedFile, LineCounts, NotUnderstood, Timestamp};

/// The most that is read of a file, after decompression.
pub const MAX_BYTES: u64 = 256 << 20;
/// How much of a file an importer sees to recognise it.
const HEAD_BYTES: usize = 64 << 10;
/// Notes of one file that are kept; the rest is counted.
const MAX_NOTES: usize = 50;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZEROS: &str = "it holds zero bytes";

/// A file to be imported, as text. Gzip is taken off, what stands around the result too (logs, fences, colours), and UTF-16 becomes UTF-8;
/// bytes that are neither become U+FFFD one by one, so that columns stay where they are.
#[derive(Debug)]
pub struct Source {
    path: String,
    bare: Bare,
    bytes: u64,
    changed: Timestamp,
    crc64: u64,
    is_private: bool,
    /// Lines of the file before it, where it is a part of one.
    lines_before: u64,
    /// How many lines it has, where it is a part: those of others are blank in it.
    own_lines: Option<u64>,
}

impl Source {
    /// Text that is in memory already, as a file called `path`.
    pub fn new(path: impl Into<String>, bytes: Vec<u8>, changed: Timestamp) -> Result<Self, ImportError> {
        let path = path.into();
        let crc64 = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, &bytes);
        let text = decode(bytes).map_err(|what| ImportError::NotText { path: path.clone(), what })?;
        let bytes = text.len() as u64;
        let bare = surroundings::taken_off(text, |text| super::recognise(head_of(text)).is_some());
        Ok(Self { path, bare, bytes, changed, crc64, is_private: false, lines_before: 0, own_lines: None })
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, is larger than [`MAX_BYTES`] after decompression, or is not text.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let shown = path.display().to_string();
        let cannot = |error: io::Error| ImportError::Io { path: shown.clone(), error };
        let file = plain::open(path, Links::Followed).map_err(cannot)?;
        let status = file.metadata().map_err(cannot)?;
        let changed = status.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok()).unwrap_or_default();
        let mut reader = BufReader::new(file);
        let packed = { io::BufRead::fill_buf(&mut reader).map_err(cannot)?.starts_with(&GZIP) };
        let mut bytes = Vec::new();
        if packed {
            // More than one member may follow another, as `cat a.gz b.gz` makes them.
            flate2::bufread::MultiGzDecoder::new(reader).take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
        } else {
            reader.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
        }
        if bytes.len() as u64 > MAX_BYTES {
            return Err(ImportError::TooLarge { path: shown, most: MAX_BYTES });
        }
        // Readable for everybody, or nobody is shown what it holds.
        let is_private = status.permissions().mode() & 0o004 == 0;
        Ok(Self { is_private, ..Self::new(shown, bytes, Timestamp(changed))? })
    }

    /// A part of it with so many lines, before which so many others stand.
    pub(super) fn part(&self, text: String, lines_before: u64, own_lines: u64) -> Self {
        let timed = self.bare.timed.as_ref().map(|timed| {
            timed.lines().skip(usize::try_from(lines_before).unwrap_or(usize::MAX)).collect::<Vec<_>>().join("\n")
        });
        let (path, bare) = (self.path.clone(), Bare { text, timed });
        Self { path, bare, lines_before, own_lines: Some(own_lines), ..*self }
    }

    /// The document that it is. Text behind that is none of it.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn json(&self, notes: &mut Notes) -> Result<serde_json::Value, ImportError> {
        let mut documents = serde_json::Deserializer::from_str(self.text()).into_iter();
        let document = documents.next().unwrap_or(Ok(serde_json::Value::Null)).map_err(|error| {
            let line = u64::try_from(error.line()).ok().filter(|line| *line > 0);
            ImportError::damaged(self, line, error.to_string())
        })?;
        let end = documents.byte_offset();
        let before = self.text().get(..end).unwrap_or_default().matches('\n').count() as u64;
        for (text, line) in self.text().get(end..).unwrap_or_default().lines().zip(1..) {
            notes.unknown(before + line, text);
        }
        Ok(document)
    }

    /// The same with decimal points, where its numbers have commas for them; where they have both, that is noted.
    pub(super) fn with_points(&self, notes: &mut Notes) -> Option<Self> {
        match decimals::of(self.text()) {
            Decimals::Points => None,
            Decimals::Commas(text) => {
                let bare = Bare { text, timed: self.bare.timed.clone() };
                Some(Self { path: self.path.clone(), bare, ..*self })
            }
            Decimals::Mixed(commas, points) => {
                let what = format!(
                    "numbers with a decimal comma: {commas}, with a point: {points}; those with a comma are unknown or doubtful"
                );
                notes.not_understood(None, what);
                None
            }
        }
    }

    /// Lines of the file before it.
    pub(super) fn lines_before(&self) -> u64 {
        self.lines_before
    }

    /// Whether it is a file that not everybody may read.
    pub fn is_private(&self) -> bool {
        self.is_private
    }

    /// Its path, as it was named.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.bare.text
    }

    /// Its beginning.
    pub fn head(&self) -> &str {
        head_of(self.text())
    }

    /// Its lines with their numbers, from 1, without line ends.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &str)> {
        self.text().lines().zip(1..).map(|(line, number)| (number, line))
    }

    /// The same, each with the time that a logger put before it, where one did.
    pub(super) fn timed_lines(&self) -> impl Iterator<Item = (u64, Option<&str>, &str)> {
        let mut timed = self.bare.timed.as_deref().map(str::lines);
        self.lines().map(move |(number, line)| (number, timed.as_mut().and_then(Iterator::next), line))
    }

    /// When the file was changed last.
    pub fn changed(&self) -> Timestamp {
        self.changed
    }

    /// What a run keeps of it.
    pub(super) fn file(&self, kind: &str) -> ImportedFile {
        ImportedFile {
            path: self.path.clone(),
            kind: kind.to_owned(),
            bytes: self.bytes,
            crc64: format!("{:016x}", self.crc64),
            part: 0,
            lines: None,
        }
    }
}

/// The beginning of a text, which decides what it is.
pub(super) fn head_of(text: &str) -> &str {
    let mut end = text.len().min(HEAD_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn decode(bytes: Vec<u8>) -> Result<String, String> {
    let utf16 = |of: fn([u8; 2]) -> u16| {
        let units = bytes[2..].chunks_exact(2).map(|pair| of([pair[0], pair[1]]));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>()
    };
    let text = match bytes.as_slice() {
        [0xff, 0xfe, ..] => utf16(u16::from_le_bytes),
        [0xfe, 0xff, ..] => utf16(u16::from_be_bytes),
        // Before it is copied: a core dump may be large.
        bytes if bytes.contains(&0) => return Err(ZEROS.to_owned()),
        _ => match String::from_utf8(bytes) {
            Ok(text) => text,
            // Latin-1 has one byte a character, which keeps columns in their places; so does this.
            Err(error) => {
                let one = |byte: &u8| if byte.is_ascii() { char::from(*byte) } else { char::REPLACEMENT_CHARACTER };
                error.as_bytes().iter().map(one).collect()
            }
        },
    };
    if text.contains('\0') {
        return Err(ZEROS.to_owned());
    }
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(text)
}

/// What was recognised in a file and not understood.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    path: String,
    kept: Vec<NotUnderstood>,
    left_out: u64,
    lines_before: u64,
    kind: &'static str,
    is_private: bool,
    remainder: Remainder,
    /// How much of it is of documents.
    of_documents: (u64, u64),
    /// Lines of all parts that are read line by line; nothing if none is.
    counted: Option<u64>,
    /// Whether the part that is read is one of these.
    is_counted: bool,
    /// Lines of these parts that the notes are on.
    unread: BTreeSet<u64>,
}

impl Notes {
    /// None so far, of `source`.
    pub fn new(source: &Source) -> Self {
        Self { path: source.path().to_owned(), ..Self::default() }
    }

    /// What follows is of this part of the file.
    pub(super) fn in_part(&mut self, source: &Source) {
        self.lines_before = source.lines_before;
    }

    /// What follows is of a file of this kind, which is read line by line or as a whole.
    pub(super) fn of_kind(&mut self, kind: &'static str, is_counted: bool, source: &Source) {
        (self.kind, self.is_private, self.is_counted) = (kind, source.is_private, is_counted);
        if is_counted {
            let lines = source.own_lines.unwrap_or_else(|| source.text().lines().count() as u64);
            self.counted = Some(self.counted.unwrap_or(0).saturating_add(lines));
        }
    }

    /// A line (from 1) that its reader does not know. One that holds a value is shown.
    pub(super) fn unknown(&mut self, line: u64, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let Self { kind, is_private, lines_before, .. } = *self;
        let before = self.remainder.counts();
        self.remainder.add(kind, is_private, lines_before.saturating_add(line), text);
        if !self.is_counted {
            let after = self.remainder.counts();
            self.of_documents.0 += after.0 - before.0;
            self.of_documents.1 += after.1 - before.1;
        }
    }

    /// At `line` (from 1) stands something that belongs to files of this kind and was not understood: what stands there, and
    /// what was expected.
    pub fn not_understood(&mut self, line: impl Into<Option<u64>>, what: impl Into<String>) {
        if self.kept.len() == MAX_NOTES {
            self.left_out += 1;
            return;
        }
        let line = line.into().map(|line| self.lines_before.saturating_add(line));
        if self.is_counted {
            // Several notes may be on one line.
            self.unread.extend(line);
        }
        self.kept.push(NotUnderstood { path: self.path.clone(), line, what: what.into() });
    }

    /// Whether all was understood.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Without lines that no reader knows.
    #[cfg(test)]
    pub(super) fn places(self) -> Vec<NotUnderstood> {
        Self { remainder: Remainder::default(), ..self }.into_list()
    }

    /// How many lines were read, ignored and unknown, of all that were read line by line; nothing if none was.
    pub(super) fn lines(&self) -> Option<LineCounts> {
        let all = self.counted?;
        let ((ignored, unknown), of_documents) = (self.remainder.counts(), self.of_documents);
        let (ignored, unknown) = (ignored.saturating_sub(of_documents.0), unknown.saturating_sub(of_documents.1));
        let ignored = ignored.min(all);
        Some(LineCounts { all, ignored, unknown: unknown.saturating_add(self.unread.len() as u64).min(all - ignored) })
    }

    /// All of them; the last says how many more there were, if not all were kept.
    pub fn into_list(self) -> Vec<NotUnderstood> {
        let path = self.path;
        let of = |(line, what): (Option<u64>, String)| NotUnderstood { path: path.clone(), line, what };
        let unknown: Vec<NotUnderstood> = self.remainder.into_words().map(of).collect();
        let more = (self.left_out > 0).then(|| NotUnderstood {
            path: path.clone(),
            line: None,
            what: format!("{} more places that were not understood", self.left_out),
        });
        self.kept.into_iter().chain(more).chain(unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Result<Source, ImportError> {
        Source::new("file", bytes.to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn text_of_any_coding_keeps_its_columns() {
        assert_eq!(of(b"\xef\xbb\xbfone\ntwo").unwrap().text(), "one\ntwo");
        assert_eq!(of(b"\xff\xfea\0b\0").unwrap().text(), "ab");
        assert_eq!(of(b"\xfe\xff\0a\0b").unwrap().text(), "ab");
        assert_eq!(of(b"caf\xe9 x").unwrap().text().chars().count(), 6);
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(Source::open(&pipe).unwrap_err().to_string().ends_with("it is a pipe, not a plain file"));
    }

    #[test]
    fn what_is_not_text_is_refused() {
        let refused = |bytes: &[u8]| of(bytes).unwrap_err().to_string();
        assert_eq!(refused(b"\x7fELF\0\0"), "file is not text: it holds zero bytes");
        assert_eq!(refused(b" \n\r\n"), "file is not text: it is empty");
    }

    #[test]
    fn notes_without_end_are_counted() {
        let mut notes = Notes::new(&of(b"x").unwrap());
        (0..80).for_each(|line| notes.not_understood(line, "?"));
        let list = notes.into_list();
        assert_eq!((list.len(), list[50].what.as_str()), (51, "30 more places that were not understood"));
    }
}
