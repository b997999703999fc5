//! Redo records: a change of one block, or a commit.

use crate::database::RedoSizes;

const CHANGE: u8 = 1;
const COMMIT: u8 = 2;
const CHANGE_HEADER_BYTES: usize = 24;
const COMMIT_BYTES: usize = 16;

/// New contents of some columns of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// Session that made it.
    pub session: u32,
    /// Block.
    pub block: u64,
    /// The block's change number after it.
    pub changes: u64,
    /// Whether the first and the last column changed, or all of them.
    pub all_columns: bool,
    /// The new columns, one after the other.
    pub columns: &'a [u8],
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// A block was changed.
    Change(Change<'a>),
    /// A session committed.
    Commit {
        /// The session.
        session: u32,
        /// How many commits it has made with this one.
        number: u64,
    },
}

impl Record<'_> {
    /// Its length in the stream.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Change(change) => (CHANGE_HEADER_BYTES + change.columns.len()) as u64,
            Self::Commit { .. } => COMMIT_BYTES as u64,
        }
    }
}

/// Bytes of the records of updates on rows of `columns` columns of `column_bytes` each.
pub fn sizes(column_bytes: usize, columns: usize) -> RedoSizes {
    let change = |columns: usize| (CHANGE_HEADER_BYTES + columns * column_bytes) as u64;
    RedoSizes { lite_bytes: change(2), heavy_bytes: change(columns), commit_bytes: COMMIT_BYTES as u64 }
}

/// Appends a change.
pub fn write_change(out: &mut Vec<u8>, change: &Change<'_>) {
    let head = u64::from(CHANGE)
        | u64::from(change.all_columns) << 8
        | u64::from(change.session as u16) << 16
        | (change.columns.len() as u64) << 32;
    out.extend_from_slice(&head.to_le_bytes());
    out.extend_from_slice(&change.block.to_le_bytes());
    out.extend_from_slice(&change.changes.to_le_bytes());
    out.extend_from_slice(change.columns);
}

/// Appends a commit.
pub fn write_commit(out: &mut Vec<u8>, session: u32, number: u64) {
    let head = u64::from(COMMIT) | u64::from(session as u16) << 16;
    out.extend_from_slice(&head.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
}

/// Cuts the record stream into records, however it comes in pieces.
#[derive(Debug, Default)]
pub struct RecordReader {
    pending: Vec<u8>,
}

/// The stream holds something that is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotARecord {
    /// What stands where a kind of record belongs.
    pub kind: u8,
}

impl RecordReader {
    /// Takes the next piece of the stream and reports every record that it completes.
    ///
    /// # Errors
    /// When the stream holds something that is no record, or `visit` fails.
    pub fn push<E: From<NotARecord>>(
        &mut self,
        piece: &[u8],
        mut visit: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pending.extend_from_slice(piece);
        let mut at = 0;
        while let Some((record, bytes)) = parse(&self.pending[at..])? {
            visit(record)?;
            at += bytes;
        }
        self.pending.drain(..at);
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> Result<Option<(Record<'_>, usize)>, NotARecord> {
    let word = |at: usize| bytes.get(at..at + 8).map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")));
    let Some(head) = word(0) else { return Ok(None) };
    let session = u32::from((head >> 16) as u16);
    match head as u8 {
        CHANGE => {
            let end = CHANGE_HEADER_BYTES + (head >> 32) as usize;
            let (Some(block), Some(changes), Some(columns)) = (word(8), word(16), bytes.get(CHANGE_HEADER_BYTES..end))
            else {
                return Ok(None);
            };
            let all_columns = head >> 8 & 1 == 1;
            Ok(Some((Record::Change(Change { session, block, changes, all_columns, columns }), end)))
        }
        COMMIT => Ok(word(8).map(|number| (Record::Commit { session, number }, COMMIT_BYTES))),
        kind => Err(NotARecord { kind }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records(reader: &mut RecordReader, piece: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        reader
            .push::<NotARecord>(piece, |record| {
                all.push(format!("{record:?}"));
                Ok(())
            })
            .unwrap();
        all
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        let error = RecordReader::default().push::<NotARecord>(&[9; 64], |_| Ok(()));
        assert_eq!(error, Err(NotARecord { kind: 9 }));
    }

    proptest! {
        #[test]
        fn records_come_back_however_the_stream_is_cut(
            payloads in prop::collection::vec((0u32..4096, any::<u64>(), prop::collection::vec(any::<u8>(), 0..300)), 1..20),
            cuts in prop::collection::vec(1usize..100, 1..50),
        ) {
            let mut stream = Vec::new();
            let mut expected = Vec::new();
            for (session, number, columns) in &payloads {
                let change = Change {
                    session: *session, block: *number, changes: number ^ 1, all_columns: number % 2 == 0, columns,
                };
                write_change(&mut stream, &change);
                expected.push(format!("{:?}", Record::Change(change)));
                write_commit(&mut stream, *session, *number);
                expected.push(format!("{:?}", Record::Commit { session: *session, number: *number }));
            }
            let mut reader = RecordReader::default();
            let mut all = Vec::new();
            let mut rest = &stream[..];
            for cut in cuts.iter().cycle() {
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                all.extend(records(&mut reader, piece));
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(all, expected);
            prop_assert!(reader.pending.is_empty());
        }
    }
}
