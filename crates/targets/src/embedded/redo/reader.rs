//! Reading redo back: from a log file on to where the log ends.

use std::path::PathBuf;

use super::{HEADER_BYTES, LogShape, MAX_WRITE_BYTES, WriteHeader};
use crate::embedded::destination::Placed;
use crate::error::{FileContext, TargetError};
use crate::io::StorageFile;

/// Where redo ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Tail {
    /// Position after the last durable record byte.
    pub(in super::super) position: u64,
    /// Number of the last log with redo in it.
    pub(in super::super) log_number: u64,
    /// File in which it ends.
    pub(in super::super) path: PathBuf,
    /// Offset in that file.
    pub(in super::super) offset: u64,
    /// Whether a write begins there that never became whole: the last one before a crash, acknowledged to nobody.
    pub(in super::super) torn: bool,
}

/// Reads the writes of a circular set of log files in order. Through the page cache: what is read here was written by a
/// process that is gone, and is read once.
pub(in super::super) struct RedoReader {
    shape: LogShape,
    files: Vec<LogFile>,
}

struct LogFile {
    path: PathBuf,
    file: StorageFile,
}

/// Bytes of a log file that are looked at together while searching: the starts of writes lie in the first half.
const WINDOW_BYTES: u64 = 2 * MAX_WRITE_BYTES as u64;

impl RedoReader {
    /// Opens the log files.
    ///
    /// # Errors
    /// When one is missing, too short, or cannot be opened.
    pub(in super::super) fn open(files: &[Placed], shape: LogShape) -> Result<Self, TargetError> {
        let open = |file: &Placed| Ok(LogFile { path: file.path(), file: file.open_to_look()? });
        Ok(Self { shape, files: files.iter().map(open).collect::<Result<_, TargetError>>()? })
    }

    /// Tells the payload of every write from the start of log `number` on, with its position. The log must hold
    /// `position` or end there.
    ///
    /// # Errors
    /// [`TargetError::DamagedRedo`] when redo that was durable is missing, or what `visit` or the system says.
    pub(in super::super) fn read(
        &self,
        number: u64,
        position: u64,
        mut visit: impl FnMut(u64, &[u8]) -> Result<(), TargetError>,
    ) -> Result<Tail, TargetError> {
        let (mut number, mut offset) = (number, 0);
        let mut expected: Option<u64> = None;
        let mut window = Vec::new();
        loop {
            let log = &self.files[self.shape.file_of(number) as usize];
            self.look(log, offset, MAX_WRITE_BYTES as u64, &mut window)?;
            let header = WriteHeader::parse(&window).filter(|header| self.belongs(*header, number, expected));
            if let Some(header) = header.filter(|header| header.is_sound(&window)) {
                if expected.is_none() && header.position > position {
                    return Err(log.damaged(offset, "it begins after the last checkpoint"));
                }
                visit(header.position, &window[HEADER_BYTES..HEADER_BYTES + header.payload_bytes as usize])?;
                expected = Some(header.position + u64::from(header.payload_bytes));
                offset += header.write_bytes(self.shape.sector_bytes);
            } else if self.begins(number + 1, expected)? {
                number += 1;
                offset = 0;
            } else {
                let end = expected.unwrap_or(position);
                if end < position {
                    return Err(log.damaged(offset, "it ends before the last checkpoint"));
                }
                self.refuse_redo_after(number, offset, end)?;
                let path = log.path.clone();
                return Ok(Tail { position: end, log_number: number, path, offset, torn: header.is_some() });
            }
        }
    }

    fn belongs(&self, header: WriteHeader, number: u64, expected: Option<u64>) -> bool {
        header.database == self.shape.database
            && header.log_number == number
            && expected.is_none_or(|position| header.position == position)
    }

    /// Whether log `number` begins with a sound write at `expected`.
    fn begins(&self, number: u64, expected: Option<u64>) -> Result<bool, TargetError> {
        let mut window = Vec::new();
        self.look(&self.files[self.shape.file_of(number) as usize], 0, MAX_WRITE_BYTES as u64, &mut window)?;
        let header = WriteHeader::parse(&window).filter(|header| self.belongs(*header, number, expected));
        Ok(expected.is_some() && header.is_some_and(|header| header.is_sound(&window)))
    }

    /// The end of redo must be its end: sound redo behind it means that something in between was destroyed. The rest of
    /// the log is searched, and the start of the one that would follow it.
    fn refuse_redo_after(&self, number: u64, offset: u64, end: u64) -> Result<(), TargetError> {
        let broken = &self.files[self.shape.file_of(number) as usize];
        let mut window = Vec::new();
        let mut at = offset + self.shape.sector_bytes;
        while at < self.shape.file_bytes {
            self.look(broken, at, WINDOW_BYTES, &mut window)?;
            for start in (0..window.len().min(MAX_WRITE_BYTES)).step_by(self.shape.sector_bytes as usize) {
                if self.is_later(&window[start..], number, end) {
                    return Err(broken.damaged(offset, "sound redo follows a write that is not"));
                }
            }
            at += MAX_WRITE_BYTES as u64;
        }
        let next = &self.files[self.shape.file_of(number + 1) as usize];
        self.look(next, 0, MAX_WRITE_BYTES as u64, &mut window)?;
        if self.is_later(&window, number + 1, end) {
            return Err(broken.damaged(offset, "the next log file goes on after a gap"));
        }
        Ok(())
    }

    fn is_later(&self, bytes: &[u8], number: u64, end: u64) -> bool {
        WriteHeader::parse(bytes).is_some_and(|header| {
            header.database == self.shape.database
                && header.log_number == number
                && header.position >= end
                && header.is_sound(bytes)
        })
    }

    /// Puts the bytes of a log file from `offset` on, at most `most`, into `window`.
    fn look(&self, log: &LogFile, offset: u64, most: u64, window: &mut Vec<u8>) -> Result<(), TargetError> {
        let bytes = self.shape.file_bytes.saturating_sub(offset).min(most);
        window.resize(bytes as usize, 0);
        log.file.read_exact_at(window, offset).of_file("read", &log.path)
    }
}

impl LogFile {
    fn damaged(&self, offset: u64, what: &str) -> TargetError {
        TargetError::DamagedRedo { path: self.path.clone(), offset, what: what.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::block::safety::Permission;
    use crate::embedded::destination::{Destinations, Files};
    use crate::embedded::{BlockShape, Layout};

    const SHAPE: LogShape = LogShape { files: 2, file_bytes: 8 << 10, sector_bytes: 512, database: 1 };

    fn open(directory: &Path) -> RedoReader {
        let shape = BlockShape::new(8192).unwrap();
        let layout = Layout::new(shape, 1, 1, 1, 1, 0);
        let (none, redo) = (Destinations::default(), (SHAPE.files, SHAPE.file_bytes));
        RedoReader::open(&Files::of(directory, &none, 1, &layout, redo, &Permission::default()).unwrap().redo, SHAPE)
            .unwrap()
    }

    /// Two log files, 7 and 8, with one write each: redo 10..30 and 30..50.
    fn two_logs(directory: &Path) {
        for (log_number, position) in [(7, 10), (8, 30)] {
            let mut bytes = vec![0; SHAPE.file_bytes as usize];
            WriteHeader { database: 1, payload_bytes: 20, log_number, position }.seal(&mut bytes);
            std::fs::write(directory.join(super::super::file_name(SHAPE.file_of(log_number))), &bytes).unwrap();
        }
    }

    #[test]
    fn redo_goes_on_in_the_next_log() {
        let dir = tempfile::tempdir().unwrap();
        two_logs(dir.path());
        let mut records = Vec::new();
        let reader = open(dir.path());
        let tail = reader.read(7, 30, |position, payload| {
            records.push((position, payload.len()));
            Ok(())
        });
        assert_eq!(records, [(10, 20), (30, 20)]);
        assert_eq!(tail.map(|tail| (tail.position, tail.log_number, tail.torn)).unwrap(), (50, 8, false));
    }

    #[test]
    fn redo_behind_a_log_that_cannot_be_read_is_not_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        two_logs(dir.path());
        let path = dir.path().join(super::super::file_name(SHAPE.file_of(7)));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[45] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let result = open(dir.path()).read(7, 30, |_, _| Ok(()));
        assert!(matches!(result, Err(TargetError::DamagedRedo { .. })), "{result:?}");
    }
}
