//! Reading notes, which others may have written: line by line, in memory that grows with the slots and not with the notes.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::{CLOSE, HEADING, MAX_LINE_BYTES, OPEN, chains, digest, link};
use crate::brief;
use crate::opening::{Closing, Opened};
use model::plain::{self, Links};

/// Length of the end of a run within which its rate is judged.
pub const RECENT_US: u64 = 5_000_000;
/// In which pieces that is counted.
const PIECE_US: u64 = 100_000;

/// Why notes cannot be used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum NotesError {
    /// The file cannot be read.
    #[error("the notes cannot be read: {0}")]
    #[diagnostic(help("name the file that the witness wrote: `--notes FILE`"))]
    File(#[from] io::Error),
    /// The file is another one.
    #[error("the file does not begin as notes of `plimsoll durable witness`")]
    #[diagnostic(help("name the file that the witness wrote: `--notes FILE`"))]
    NoNotes,
    /// No load came to the witness.
    #[error("the notes hold no load: the witness was never told of one, or lost it")]
    #[diagnostic(help("start the witness with a new file, then the load"))]
    Empty,
    /// A line is not what a witness writes.
    #[error("line {line} of the notes {what}")]
    #[diagnostic(help(
        "the file was changed, or the witness lost a part of it in a crash. Nothing can be judged by it: repeat the test"
    ))]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The opening cannot be understood.
    #[error("the opening of the notes cannot be understood: {0}")]
    #[diagnostic(help("verify with the version of plimsoll that the witness has"))]
    Opening(String),
}

/// What was noted of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionNotes {
    /// Number of the last commit; 0 for none.
    pub last: u64,
    /// When the last commit of each slot was noted, in microseconds since the opening.
    times_us: Vec<u64>,
}

impl SessionNotes {
    /// The last noted commit of a slot, which the slot must hold; 0 for none.
    pub fn expected(&self, slot: u32, blocks: u32) -> u64 {
        let Some(behind) = self.last.checked_sub(u64::from(slot) + 1) else { return 0 };
        self.last - behind % u64::from(blocks.max(1))
    }

    /// When that was noted.
    pub fn time_us(&self, slot: u32) -> u64 {
        self.times_us.get(slot as usize).copied().unwrap_or(0)
    }
}

/// What a witness noted of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Noted {
    /// How it began.
    pub opened: Opened,
    /// Each session.
    pub sessions: Vec<SessionNotes>,
    /// How many commits were noted.
    pub notes: u64,
    /// When the last one was noted, in microseconds since the opening.
    pub last_us: u64,
    /// How many were noted in the five seconds before that.
    pub recent: u64,
    /// How it ended, where the witness lived to say so.
    pub closing: Option<Closing>,
    /// Whether the last line is half a line, as a crash of the witness leaves it.
    pub has_half_line: bool,
}

impl Noted {
    /// Slots that have a noted commit.
    pub fn slots(&self) -> u64 {
        let blocks = u64::from(self.opened.opening.shape.blocks);
        self.sessions.iter().map(|session| session.last.min(blocks)).sum()
    }
}

/// Reads the notes at `path`.
///
/// # Errors
/// When they cannot be read, or are not as a witness wrote them.
pub fn read(path: &Path) -> Result<Noted, NotesError> {
    read_from(BufReader::with_capacity(1 << 20, plain::open(path, Links::Followed)?))
}

/// The same from anything.
pub(super) fn read_from(mut from: impl BufRead) -> Result<Noted, NotesError> {
    let mut line = Vec::new();
    if next_line(&mut from, &mut line, 1)? != Line::Whole || line != HEADING.as_bytes() {
        return Err(NotesError::NoNotes);
    }
    match next_line(&mut from, &mut line, 2)? {
        Line::Whole => {}
        Line::Half | Line::End => return Err(NotesError::Empty),
    }
    let text = line.strip_prefix(OPEN.as_bytes()).and_then(|text| std::str::from_utf8(text).ok());
    let text = text.ok_or(NotesError::Line { line: 2, what: "is not an opening" })?;
    let opened: Opened = serde_json::from_str(text).map_err(|error| NotesError::Opening(brief(&error.to_string())))?;
    if !opened.opening.is_sensible() {
        return Err(NotesError::Opening("there cannot be such a load".to_owned()));
    }
    let mut reading = Reading::new(opened, text);
    let mut number = 2;
    loop {
        number += 1;
        match next_line(&mut from, &mut line, number)? {
            Line::End => return Ok(reading.noted),
            Line::Half => {
                // After a closing nothing is ever written.
                reading.no_more(number)?;
                reading.noted.has_half_line = true;
                return Ok(reading.noted);
            }
            Line::Whole => reading.line(&line, number)?,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole,
    /// The file ends within it.
    Half,
    End,
}

/// Reads a line without its end. Half a line is not kept, however long it is: a crash may leave zeroes.
fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>, number: u64) -> Result<Line, NotesError> {
    line.clear();
    from.by_ref().take(MAX_LINE_BYTES as u64).read_until(b'\n', line)?;
    if line.pop_if(|last| *last == b'\n').is_some() {
        return Ok(Line::Whole);
    }
    if line.is_empty() {
        return Ok(Line::End);
    }
    let is_cut = line.len() == MAX_LINE_BYTES;
    line.clear();
    if is_cut && has_line_end(from)? {
        return Err(NotesError::Line { line: number, what: "is longer than a line can be" });
    }
    Ok(Line::Half)
}

/// Whether a line ends anywhere in what is left.
fn has_line_end(from: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let piece = from.fill_buf()?;
        if piece.is_empty() {
            return Ok(false);
        }
        if piece.contains(&b'\n') {
            return Ok(true);
        }
        let length = piece.len();
        from.consume(length);
    }
}

struct Reading {
    noted: Noted,
    blocks: u32,
    chains: Vec<u64>,
    /// How many were noted in each of the last pieces of time.
    pieces: VecDeque<(u64, u64)>,
}

impl Reading {
    fn new(opened: Opened, text: &str) -> Self {
        let shape = opened.opening.shape;
        let noted = Noted {
            opened,
            sessions: vec![SessionNotes::default(); shape.sessions as usize],
            notes: 0,
            last_us: 0,
            recent: 0,
            closing: None,
            has_half_line: false,
        };
        Self { noted, blocks: shape.blocks, chains: chains(text, shape.sessions), pieces: VecDeque::new() }
    }

    fn no_more(&self, line: u64) -> Result<(), NotesError> {
        let is_over = self.noted.closing.is_some();
        if is_over { Err(NotesError::Line { line, what: "comes after the end of the run" }) } else { Ok(()) }
    }

    fn line(&mut self, text: &[u8], line: u64) -> Result<(), NotesError> {
        let wrong = |what| NotesError::Line { line, what };
        self.no_more(line)?;
        let text = std::str::from_utf8(text).map_err(|_| wrong("is not text"))?;
        match text.strip_prefix(CLOSE) {
            Some(closing) => self.close(closing).ok_or(wrong("is not the end of these notes")),
            None => self.note(text).map_err(wrong),
        }
    }

    fn note(&mut self, text: &str) -> Result<(), &'static str> {
        const NO_NOTE: &str = "is not a note";
        let mut words = text.split(' ');
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).ok_or(NO_NOTE);
        let (session, seq, at_us) = (number()?, number()?, number()?);
        let chain = words.next().and_then(|word| u64::from_str_radix(word, 16).ok()).ok_or(NO_NOTE)?;
        let place = usize::try_from(session).unwrap_or(usize::MAX);
        let (Some(of), Some(own), None) =
            (self.noted.sessions.get_mut(place), self.chains.get_mut(place), words.next())
        else {
            return Err(NO_NOTE);
        };
        if of.last.checked_add(1) != Some(seq) {
            return Err("does not follow the note before of its session: notes are missing");
        }
        if at_us < self.noted.last_us {
            return Err("is earlier than the line before");
        }
        *own = link(*own, seq, at_us);
        if *own != chain {
            return Err("does not fit the chain of its session: it, or a line before, was changed or lost");
        }
        let slot = usize::try_from((seq - 1) % u64::from(self.blocks)).unwrap_or(0);
        match of.times_us.get_mut(slot) {
            Some(time) => *time = at_us,
            None => of.times_us.push(at_us),
        }
        of.last = seq;
        self.noted.notes += 1;
        self.noted.last_us = at_us;
        self.count(at_us);
        Ok(())
    }

    fn count(&mut self, at_us: u64) {
        let piece = at_us / PIECE_US;
        match self.pieces.back_mut().filter(|(last, _)| *last == piece) {
            Some((_, count)) => *count += 1,
            None => self.pieces.push_back((piece, 1)),
        }
        self.noted.recent += 1;
        while let Some((first, count)) = self.pieces.front().copied()
            && first + RECENT_US / PIECE_US <= piece
        {
            self.noted.recent -= count;
            self.pieces.pop_front();
        }
    }

    fn close(&mut self, text: &str) -> Option<()> {
        let (sum, text) = text.split_once(' ')?;
        let closing: Closing = serde_json::from_str(text).ok()?;
        let is_own =
            u64::from_str_radix(sum, 16).ok()? == digest(&self.chains, text) && closing.notes == self.noted.notes;
        let why = brief(&closing.why);
        is_own.then(|| self.noted.closing = Some(Closing { why, ..closing }))
    }
}

#[cfg(test)]
impl SessionNotes {
    /// So many commits, noted a millisecond apart.
    pub(crate) fn sample(last: u64, blocks: u32) -> Self {
        let mut notes = Self { last, times_us: Vec::new() };
        let times = (0..blocks).map(|slot| notes.expected(slot, blocks) * 1000).take_while(|time| *time > 0);
        notes.times_us = times.collect();
        notes
    }
}
