//! Reading one table and its index.

use std::pin::pin;

use futures_util::StreamExt;

use crate::COLUMNS;
use crate::data::streams::Stream;
use crate::data::{Findings, index_name};
use crate::postgres::data::descriptor::{DataSet, TableId};
use crate::postgres::data::session::{Halt, Session};
use crate::postgres::sql::FIRST_COLUMN;
use targets::TargetError;

/// Signature and flags of the binary form, before the length of an extension.
const HEADER_BYTES: usize = 11 + 4;
/// Faults of one kind in one table that are reported one by one.
const REPORTED_OF_A_KIND: u64 = 5;
/// Rows between two words about progress.
const ROWS_AT_ONCE: u64 = 1024;

/// Reads a table where its rows lie, and ticks off their keys.
pub(super) fn heap(
    session: &Session<'_>,
    data: &DataSet,
    table: TableId,
    progress: &Stream<'_>,
    found: &mut Findings,
) -> Result<(), TargetError> {
    let halt = progress.halt;
    let sql = session.access().sql(data.block_bytes);
    let name = table.qualified(&sql);
    let doing = format!("read {name}");
    // Rows come in the order of their blocks.
    let settings = "SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0; SET enable_seqscan = on; \
                    SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off";
    session.execute(&doing, settings, halt)?;
    let wrong: Vec<String> = (0..COLUMNS)
        .map(|column| {
            let column = FIRST_COLUMN + column;
            format!("CASE WHEN octet_length(c{column}) = {} THEN 0 ELSE {column} END", data.column_bytes)
        })
        .collect();
    let copy =
        format!("COPY (SELECT custid, ctid, greatest({}) FROM {name}) TO STDOUT (FORMAT binary)", wrong.join(", "));
    let rows = data.rows_of(table);
    let mut ticks = Ticks::new(table.name(), rows);
    session.wait(&doing, halt, async {
        let mut stream = pin!(session.client().copy_out(&copy).await?);
        let mut reader = Reader::default();
        let mut unreported = 0;
        while let Some(message) = stream.next().await {
            reader.feed(&message?);
            while let Some([key, block, wrong]) = reader.row([8, 6, 4]) {
                // The place of a row is its block and its number in the block, of 16 bits.
                ticks.tick(key as i64, block >> 16, wrong, found);
                unreported += 1;
                if unreported == ROWS_AT_ONCE {
                    progress.done(unreported * u64::from(data.block_bytes));
                    unreported = 0;
                }
            }
        }
        progress.done(unreported * u64::from(data.block_bytes));
        Ok(())
    })?;
    ticks.finish(found);
    Ok(())
}

/// Reads an index from end to end: its keys must be those of the rows, each once.
pub(super) fn index(
    session: &Session<'_>,
    data: &DataSet,
    schema: u32,
    halt: Halt<'_>,
    found: &mut Findings,
) -> Result<(), TargetError> {
    let sql = session.access().sql(data.block_bytes);
    let (table, index) = (sql.table(schema), index_name(schema));
    let doing = format!("read the index of {table}");
    let ask = "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
               JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname = $1 AND c.relname = $2 AND i.indisvalid AND i.indisunique AND i.indkey::text = '1'";
    let there: i64 = session.query_one(&doing, ask, &[&session.access().namespace, &index])?.get(0);
    if there != 1 {
        found.fault(format!("the index `{index}` is missing or not valid"));
        return Ok(());
    }
    let settings = "SET enable_seqscan = off; SET enable_sort = off; SET enable_indexscan = on; \
                    SET enable_indexonlyscan = on";
    session.execute(&doing, settings, halt)?;
    let copy = format!("COPY (SELECT custid FROM {table} ORDER BY custid) TO STDOUT (FORMAT binary)");
    let (mut entries, mut misplaced) = (0_u64, None);
    session.wait(&doing, halt, async {
        let mut stream = pin!(session.client().copy_out(&copy).await?);
        let mut reader = Reader::default();
        while let Some(message) = stream.next().await {
            reader.feed(&message?);
            while let Some([key]) = reader.row([8]) {
                if key != entries && misplaced.is_none() {
                    misplaced = Some((entries, key as i64));
                }
                entries += 1;
            }
        }
        Ok(())
    })?;
    if let Some((expected, key)) = misplaced {
        found.fault(format!("the index `{index}` has the key {key} where {expected} belongs"));
    } else if entries != data.scale_blocks {
        found.fault(format!("the index `{index}` leads to {entries} rows instead of {}", data.scale_blocks));
    }
    Ok(())
}

/// Has amcheck look at the pages of an index, and whether every row has its entry.
pub(super) fn index_pages(
    session: &Session<'_>,
    data: &DataSet,
    schema: u32,
    amcheck: &str,
    halt: Halt<'_>,
) -> Result<(), TargetError> {
    let index = session.access().sql(data.block_bytes).qualified(&index_name(schema));
    let doing = format!("check the index {index}");
    session.query(&doing, &format!("SELECT {amcheck}($1::text::regclass, true)"), &[&index], halt).map(|_| ())
}

/// Which keys and blocks of a table have been seen.
struct Ticks {
    table: String,
    rows: u64,
    seen: Vec<u64>,
    found: u64,
    last_block: Option<u64>,
    strangers: u64,
    duplicates: u64,
    crowded: u64,
    wrong: u64,
}

impl Ticks {
    fn new(table: String, rows: u64) -> Self {
        let seen = vec![0; rows.div_ceil(64) as usize];
        Self { table, rows, seen, found: 0, last_block: None, strangers: 0, duplicates: 0, crowded: 0, wrong: 0 }
    }

    /// `wrong` is the number of a column of the wrong length, or 0.
    fn tick(&mut self, key: i64, block: u64, wrong: u64, found: &mut Findings) {
        self.found += 1;
        let table = &self.table;
        let mut note = |count: &mut u64, fault: &dyn Fn() -> String| {
            *count += 1;
            if *count <= REPORTED_OF_A_KIND {
                found.fault(fault());
            }
        };
        match u64::try_from(key).ok().filter(|key| *key < self.rows) {
            None => note(&mut self.strangers, &|| format!("`{table}` has a row with key {key}, which belongs nowhere")),
            Some(key) => {
                let (word, bit) = (&mut self.seen[(key / 64) as usize], 1 << (key % 64));
                if *word & bit != 0 {
                    note(&mut self.duplicates, &|| format!("`{table}` has more than one row with key {key}"));
                }
                *word |= bit;
            }
        }
        if self.last_block == Some(block) {
            note(&mut self.crowded, &|| format!("block {block} of `{table}` holds more than one row"));
        }
        self.last_block = Some(block);
        if wrong != 0 {
            note(&mut self.wrong, &|| {
                format!("the row with key {key} of `{table}` has a column c{wrong} of the wrong length")
            });
        }
    }

    fn finish(self, found: &mut Findings) {
        let Self { table, rows, .. } = &self;
        found.rows += self.found;
        let kinds = [
            (self.strangers, "rows with keys that belong nowhere"),
            (self.duplicates, "rows whose key another row has"),
            (self.crowded, "rows that share a block"),
            (self.wrong, "rows with columns of the wrong length"),
        ];
        for (count, what) in kinds {
            if count > REPORTED_OF_A_KIND {
                found.fault(format!("`{table}` has {count} {what} in all"));
            }
        }
        let missing = rows - self.seen.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        if missing > 0 {
            let first = (0..*rows).find(|key| self.seen[(key / 64) as usize] & 1 << (key % 64) == 0);
            let first = first.map(|key| format!("; the first has key {key}")).unwrap_or_default();
            found.fault(format!("`{table}` misses {missing} of {rows} rows{first}"));
        }
    }
}

/// Takes rows of whole numbers out of a stream in the binary form of COPY, however it is cut into messages.
#[derive(Default)]
struct Reader {
    bytes: Vec<u8>,
    at: usize,
    has_header: bool,
}

impl Reader {
    fn feed(&mut self, message: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(message);
    }

    /// The next row, if it is there whole, with fields of these lengths, at most 8 bytes each. A field that is null or of
    /// another length cannot be: the statement says so. The stream's end has no fields, and is left alone.
    fn row<const FIELDS: usize>(&mut self, lengths: [usize; FIELDS]) -> Option<[u64; FIELDS]> {
        if !self.has_header {
            let extension = self.bytes.get(HEADER_BYTES..HEADER_BYTES + 4)?;
            let header = HEADER_BYTES + 4 + big_endian(extension) as usize;
            self.bytes.get(..header)?;
            self.at = header;
            self.has_header = true;
        }
        let mut rest = self.bytes.get(self.at..)?;
        let bytes = 2 + lengths.iter().map(|length| 4 + length).sum::<usize>();
        if rest.len() < bytes {
            return None;
        }
        rest = &rest[2..];
        self.at += bytes;
        Some(lengths.map(|length| {
            let value = big_endian(&rest[4..4 + length]);
            rest = &rest[4 + length..];
            value
        }))
    }
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_however_the_stream_is_cut() {
        let mut whole = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\x02ab".to_vec();
        for key in 0..5_u64 {
            whole.extend([0, 2, 0, 0, 0, 8]);
            whole.extend(key.to_be_bytes());
            whole.extend([0, 0, 0, 4, 0, 0, 1, 7]);
        }
        whole.extend((-1_i16).to_be_bytes());
        for cut in [1, 7, 19, 24, 1000] {
            let (mut reader, mut rows) = (Reader::default(), Vec::new());
            for message in whole.chunks(cut) {
                reader.feed(message);
                while let Some(row) = reader.row([8, 4]) {
                    rows.push(row);
                }
            }
            assert_eq!(rows, [0, 1, 2, 3, 4].map(|key| [key, 263]), "cut at {cut}");
        }
    }

    #[test]
    fn many_faults_of_a_kind_are_reported_once_each_and_then_summed_up() {
        let (mut ticks, mut found) = (Ticks::new("slob_1".to_owned(), 100), Findings::default());
        for key in 0..50 {
            ticks.tick(key, key as u64, 0, &mut found);
            ticks.tick(key, 1000 + key as u64, 0, &mut found);
        }
        ticks.finish(&mut found);
        assert_eq!(found.rows, 100);
        assert_eq!(found.faults[0], "`slob_1` has more than one row with key 0");
        assert_eq!(
            found.faults[5..],
            [
                "`slob_1` has 50 rows whose key another row has in all",
                "`slob_1` misses 50 of 100 rows; the first has key 50"
            ]
        );
    }
}
