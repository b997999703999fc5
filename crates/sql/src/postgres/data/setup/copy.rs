//! Loading rows.

use std::pin::pin;
use std::time::Duration;

use futures_util::SinkExt;

use super::rows::{Buffer, RowBuilder};
use crate::data::pieces::{PIECE_BYTES, Piece};
use crate::data::rows::RowSource;
use crate::data::streams::Stream;
use crate::postgres::data::catalog;
use crate::postgres::data::descriptor::{DataSet, TableKind};
use crate::postgres::data::session::Session;
use crate::postgres::sql::Sql;
use targets::TargetError;

/// A table is vacuumed each time that so many bytes of it were loaded, or a smaller part of the server's buffers. Its blocks are
/// still in memory and not yet written: an hour later each would be read and written once more, and the log flushed for every
/// few of them.
const MAX_VACUUM_BYTES: u64 = 64 << 20;
/// All streams together fill so small a part of the server's buffers between two vacuums.
const PART_OF_BUFFERS: u64 = 4;
/// How long a piece may go on when the load is to end: one that is given up leaves its blocks behind, empty.
const PIECE_PATIENCE: Duration = Duration::from_secs(5);

/// How many bytes of a table are loaded between two vacuums of it, on a server with buffers of this size.
pub(super) fn vacuum_bytes(shared_buffers: u64, streams: u32) -> u64 {
    (shared_buffers / PART_OF_BUFFERS / u64::from(streams.max(1))).clamp(PIECE_BYTES, MAX_VACUUM_BYTES)
}

/// Loads one piece and its mark: both or neither. Then vacuums the table where that is due.
pub(super) fn load(
    session: &Session<'_>,
    data: &DataSet,
    piece: &Piece,
    stream: &Stream<'_>,
) -> Result<(), TargetError> {
    let Piece { table, first, places, then_vacuum } = *piece;
    let name = table.qualified(&session.access().sql(data.block_bytes));
    let doing = format!("load rows into {name}");
    let (source, mut builder) = (RowSource::new(data, table), RowBuilder::new(data.column_bytes));
    let block_bytes = u64::from(data.block_bytes);
    // Rows count as committed for a vacuum once the log says so on storage.
    let durable = if then_vacuum { "SET LOCAL synchronous_commit = local; " } else { "" };
    let mark = format!(
        "{durable}INSERT INTO {} VALUES ({}, {}, {first}, {places}); COMMIT",
        catalog::load_table::<DataSet>(session.access()),
        table.kind == TableKind::Scan,
        table.schema,
    );
    session.wait_with_patience(&doing, stream.halt, PIECE_PATIENCE, async {
        let client = session.client();
        client.batch_execute("BEGIN").await?;
        let mut sink = pin!(client.copy_in::<_, Buffer>(&Sql::copy_in(&name)).await?);
        sink.feed(RowBuilder::header()).await?;
        let mut at = first;
        while at < first + places {
            let rows = builder.rows_at_once().min(first + places - at);
            sink.feed(builder.build(&source, at, rows)).await?;
            at += rows;
            stream.done(rows * block_bytes);
        }
        sink.feed(RowBuilder::trailer()).await?;
        sink.finish().await?;
        client.batch_execute(&mark).await
    })?;
    if then_vacuum {
        // Another stream's vacuum of the same table does as well. Blocks at the end may be those that another stream is about
        // to fill.
        let vacuum = format!("VACUUM (TRUNCATE false, SKIP_LOCKED) {name}");
        session.execute(&format!("vacuum {name}"), &vacuum, stream.halt)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::pieces::{Marks, missing};
    use crate::postgres::data::descriptor::sample;

    const PIECE: u64 = PIECE_BYTES / 8192;

    fn data(schemas: u32, scale_blocks: u64) -> DataSet {
        DataSet { schemas, scale_blocks, scan_blocks: 0, ..sample() }
    }

    #[test]
    fn a_table_is_vacuumed_while_its_blocks_are_in_memory_and_not_too_often() {
        let due = |scale_blocks, vacuum_bytes| -> Vec<usize> {
            let work = missing(&data(1, scale_blocks), &Marks::new(), vacuum_bytes);
            let pieces = work[0].1.iter().enumerate();
            pieces.filter(|(_, piece)| piece.then_vacuum).map(|(place, _)| place).collect()
        };
        assert_eq!(due(10 * PIECE, vacuum_bytes(128 << 20, 1)), [1, 3, 5, 7, 9]);
        assert_eq!(due(10 * PIECE, vacuum_bytes(128 << 20, 2)), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(due(10 * PIECE + 1, vacuum_bytes(8 << 30, 4)), [3, 7]);
        assert_eq!(due(1000 * PIECE, vacuum_bytes(16 << 20, 16)).len(), 62, "each 16th piece");
        assert!(due(PIECE - 1, MAX_VACUUM_BYTES).is_empty());
    }
}
