//! Writing notes.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{CLOSE, HEADING, OPEN, chains, digest, link};
use crate::opening::{Closing, Opened, Opening};
use files::How;

/// How long a note may be in the page cache alone.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// What a load says that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Its opening makes no sense.
    #[error("it announces a load that there cannot be")]
    Opening,
    /// Something comes in a wrong order, such as a note before the opening.
    #[error("it says {0} where that has no meaning")]
    Order(&'static str),
    /// A session that was not announced, or a commit that does not follow the one before.
    #[error("it notes commit {seq} of session {session}, which does not follow")]
    Note {
        /// The session, from 0.
        session: u32,
        /// Number of the commit.
        seq: u64,
    },
    /// The notes cannot be written.
    #[error("the notes cannot be written: {0}")]
    File(#[from] io::Error),
}

/// Notes that are being written. Each is in the page cache before it is answered, and durable within a second.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    run: Option<Run>,
    synced: Instant,
    is_dirty: bool,
    is_closed: bool,
}

#[derive(Debug)]
struct Run {
    began: Instant,
    chains: Vec<u64>,
    last: Vec<u64>,
    notes: u64,
    line: String,
}

impl Writer {
    /// Makes the file, which must not be there yet.
    ///
    /// # Errors
    /// When something has that name, others may change what is in the directory, or the system refuses.
    pub fn make(path: &Path) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        files::judge_directory(folder)?;
        let mut file = files::make_new(path, How { mode: 0o644, append: true, ..How::default() })?;
        let begun = writeln!(file, "{HEADING}").and_then(|()| file.sync_all());
        if let Err(error) = begun.and_then(|()| files::sync_directory(folder)) {
            let _ = files::remove(path);
            return Err(error);
        }
        Ok(Self { file, path: path.to_owned(), run: None, synced: Instant::now(), is_dirty: false, is_closed: false })
    }

    /// Whether a load has begun.
    pub fn is_open(&self) -> bool {
        self.run.is_some()
    }

    /// How many commits were noted.
    pub fn notes(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.notes)
    }

    /// Begins the notes of a load, durably.
    ///
    /// # Errors
    /// When there cannot be such a load, another has begun, or it cannot be written.
    pub fn open(&mut self, opening: &Opening) -> Result<(), Refused> {
        if self.run.is_some() {
            return Err(Refused::Order("an opening"));
        }
        if !opening.is_sensible() {
            return Err(Refused::Opening);
        }
        let opened = Opened { opening: opening.clone(), at_wall_ns: measure::wall_ns() };
        let text = serde_json::to_string(&opened).map_err(io::Error::from)?;
        if text.len() + OPEN.len() >= super::MAX_LINE_BYTES {
            return Err(Refused::Opening);
        }
        writeln!(self.file, "{OPEN}{text}")?;
        self.file.sync_data()?;
        let sessions = opening.shape.sessions;
        self.run = Some(Run {
            began: Instant::now(),
            chains: chains(&text, sessions),
            last: vec![0; sessions as usize],
            notes: 0,
            line: String::new(),
        });
        Ok(())
    }

    /// Notes commits, each of which follows the one before of its session. All of them are written when this returns.
    ///
    /// # Errors
    /// When one does not follow, in which case those before it are written; or when they cannot be written.
    pub fn note(&mut self, commits: &[(u32, u64)]) -> Result<(), Refused> {
        let Some(run) = self.run.as_mut().filter(|_| !self.is_closed) else {
            return Err(Refused::Order("a note"));
        };
        let at_us = u64::try_from(run.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        run.line.clear();
        let mut refused = None;
        for &(session, seq) in commits {
            let place = session as usize;
            if run.last.get(place).copied() != seq.checked_sub(1) {
                refused = Some(Refused::Note { session, seq });
                break;
            }
            run.last[place] = seq;
            run.chains[place] = link(run.chains[place], seq, at_us);
            run.notes += 1;
            let _ = writeln!(run.line, "{session} {seq} {at_us} {:016x}", run.chains[place]);
        }
        // At the end of the file, and in one request. After a part of it nothing more is written, not even the end: the chains are ahead.
        if let Err(error) = self.file.write_all(run.line.as_bytes()) {
            self.is_closed = true;
            return Err(error.into());
        }
        self.is_dirty = true;
        refused.map_or(Ok(()), Err)
    }

    /// Makes durable what has waited for that for a second. To be called now and then.
    ///
    /// # Errors
    /// The system's error.
    pub fn look(&mut self) -> io::Result<()> {
        if self.is_dirty && self.synced.elapsed() >= SYNC_EVERY {
            self.file.sync_data()?;
            (self.synced, self.is_dirty) = (Instant::now(), false);
        }
        Ok(())
    }

    /// Says how the load ended, durably. Nothing can be noted after that.
    ///
    /// # Errors
    /// The system's error.
    pub fn close(&mut self, closing: &Closing) -> io::Result<()> {
        let Some(run) = self.run.as_ref().filter(|_| !self.is_closed) else { return Ok(()) };
        self.is_closed = true;
        let text = serde_json::to_string(&Closing {
            notes: run.notes,
            at_us: u64::try_from(run.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            ..closing.clone()
        })?;
        writeln!(self.file, "{CLOSE}{:016x} {text}", digest(&run.chains, &text))?;
        self.file.sync_all()
    }

    /// Removes the file where no load has come.
    pub fn discard(self) {
        if self.run.is_none() {
            let _ = files::remove(&self.path);
        }
    }
}
