//! Making a data set: tables of one row a block, loaded by COPY.

mod copy;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::time::sleep;

pub(super) use self::rows::{HEADER, TRAILER};
use super::catalog;
use super::descriptor::{DataSet, TableId, TableKind};
use super::session::{Access, Halt, Session};
use crate::data::catalog::Keeps;
use crate::data::descriptor::index_name;
use crate::data::pieces::Piece;
use crate::data::proof::ALLOWED_PART;
use crate::data::setup::{SetUp, Work};
use crate::data::streams::{LOOK_AROUND, Stream};
use crate::postgres::Connector;
use crate::postgres::data::catalog::Server;
use crate::postgres::sql::Sql;
use targets::TargetError;
use targets::database::Phase;

/// Tables and procedures that are made in one transaction: each holds locks until its end, of which a server has few.
const MADE_AT_ONCE: usize = 16;
/// Memory that sorting the keys of one row takes when an index is built.
const SORT_BYTES_PER_ROW: u64 = 32;
/// Most memory that one stream has indexes built with.
const MAX_SORT_BYTES: u64 = 256 << 20;
/// The planner learns from 300 rows for each unit of this: enough to tell 0 from 0.05 in a correlation, and far fewer
/// blocks to read than by default.
const STATISTICS_TARGET: u32 = 30;
/// How long deleted rows may be kept by transactions that are older than their end.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(60);
const OLD_SNAPSHOT: &str = "look for it by `SELECT pid, state, query FROM pg_stat_activity WHERE backend_xmin IS NOT NULL \
                            ORDER BY age(backend_xmin) DESC`, end it, and repeat this command: it continues from here";

impl SetUp for Connector {
    // It numbers blocks with 32 bits, and the last number is none.
    const MAX_TABLE_BLOCKS: (&'static str, u64) = ("PostgreSQL", u32::MAX as u64 - 1);

    fn column_bytes(block_bytes: u32) -> u32 {
        Sql::new("", block_bytes).column_bytes()
    }

    fn estimates(data: &DataSet) -> (u64, u64) {
        (data.estimated_index_bytes(), data.estimated_redo_bytes())
    }

    fn indexes_of(data: &DataSet) -> Vec<String> {
        (0..data.schemas).map(index_name).collect()
    }

    fn vacuum_bytes(server: &Server, streams: u32) -> u64 {
        copy::vacuum_bytes(server.shared_buffers, streams)
    }

    /// Losing the last pieces in a crash of the server costs nothing: their marks are lost with them.
    fn open_for_loading<'a>(access: Access<'a>, halt: Halt<'_>) -> Result<Session<'a>, TargetError> {
        open_with(access, "SET synchronous_commit = off", halt)
    }

    fn load(
        session: &mut Session<'_>,
        _: &Server,
        data: &DataSet,
        piece: &Piece,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError> {
        copy::load(session, data, piece, stream)
    }

    fn make(work: &mut Work<'_, Self>) -> Result<(), TargetError> {
        let autovacuum = if work.server.autovacuum {
            "is on and looks after"
        } else {
            "is off on this server and does not look after"
        };
        work.report.notes.push(format!("autovacuum {autovacuum} these tables"));
        work.make_tables()?;
        work.load_rows()?;
        work.compact()?;
        work.build_indexes()?;
        work.make_procedures()?;
        work.vacuum()?;
        work.write_checkpoint()
    }
}

/// Connects, and has `settings` executed.
pub(super) fn open_with<'a>(access: Access<'a>, settings: &str, halt: Halt<'_>) -> Result<Session<'a>, TargetError> {
    let session = Session::open(access)?;
    session.execute("set up a session", settings, halt)?;
    Ok(session)
}

/// The statement by which a session sorts with so much memory: never less than the server's own, and every role may ask for more.
pub(super) fn sort_settings(bytes: u64) -> String {
    let kib = bytes >> 10;
    format!(
        "SELECT set_config('maintenance_work_mem', greatest({kib}, setting::bigint)::text || 'kB', false) \
         FROM pg_settings WHERE name = 'maintenance_work_mem'"
    )
}

impl Work<'_, Connector> {
    fn sql(&self) -> Sql {
        self.access.sql(self.data.block_bytes)
    }

    /// Each table with its bytes.
    fn sized(&self, tables: impl IntoIterator<Item = TableId>) -> Vec<(TableId, u64)> {
        tables.into_iter().map(|table| (table, self.data.bytes_of(table))).collect()
    }

    /// Makes the tables that are not there yet. A table that somebody dropped in between is loaded again.
    fn make_tables(&mut self) -> Result<(), TargetError> {
        let there = <Connector as Keeps<DataSet>>::objects(&mut self.session)?;
        let missing: Vec<TableId> = self.data.tables().filter(|table| !there.contains_key(&table.name())).collect();
        self.phase(Phase::Create, 0, |work, _| {
            let (marks, sql) = (catalog::load_table::<DataSet>(work.access), work.sql());
            let make = |table: &TableId| {
                let (name, is_scan) = (table.qualified(&sql), table.kind == TableKind::Scan);
                // Nobody else should look at a table while it is loaded: it is vacuumed at the end anyway.
                format!(
                    "{}; ALTER TABLE {name} SET (autovacuum_enabled = off); \
                     DELETE FROM {marks} WHERE is_scan = {is_scan} AND schema = {};",
                    sql.create_table(&name),
                    table.schema
                )
            };
            for tables in missing.chunks(MADE_AT_ONCE) {
                let statements: String = tables.iter().map(make).collect();
                work.session.execute("create the tables", &format!("BEGIN; {statements} COMMIT"), work.halt())?;
            }
            Ok(())
        })
    }

    /// Rewrites tables that have too many blocks without a row. Pieces that were given up leave such blocks, and so
    /// does a server that adds several blocks at a time.
    fn compact(&mut self) -> Result<(), TargetError> {
        let tables = self.sized(sparse(&self.session, &self.data)?);
        if tables.is_empty() {
            return Ok(());
        }
        let (access, sql, data) = (self.access, self.sql(), self.data.clone());
        self.side_by_side(
            Phase::Compact,
            &tables,
            |_| Session::open(access),
            |session, table, halt| {
                let name = table.qualified(&sql);
                let began = Instant::now();
                // Deleted rows stay while a snapshot sees them that is older than their end, such as that of ANALYZE.
                loop {
                    let rewrite = Instant::now();
                    session.execute(&format!("compact {name}"), &format!("VACUUM FULL {name}"), halt)?;
                    if !sparse(session, &data)?.contains(&table) {
                        return Ok(());
                    }
                    if began.elapsed() > SNAPSHOT_PATIENCE {
                        let what =
                            format!("{name} keeps deleted rows that an older transaction in its database still sees");
                        return Err(access.unfit(what, OLD_SNAPSHOT));
                    }
                    let pause = rewrite.elapsed().max(LOOK_AROUND);
                    session.wait("wait for an older transaction", halt, async {
                        sleep(pause).await;
                        Ok(())
                    })?;
                }
            },
        )
    }

    fn build_indexes(&mut self) -> Result<(), TargetError> {
        let there = <Connector as Keeps<DataSet>>::objects(&mut self.session)?;
        let each = self.data.scale_blocks * u64::from(self.data.block_bytes);
        let missing = (0..self.data.schemas).filter(|schema| !there.contains_key(&index_name(*schema)));
        let missing: Vec<(u32, u64)> = missing.map(|schema| (schema, each)).collect();
        let settings = sort_settings((self.data.scale_blocks * SORT_BYTES_PER_ROW).min(MAX_SORT_BYTES));
        let (access, sql) = (self.access, self.sql());
        self.side_by_side(
            Phase::Index,
            &missing,
            |halt| open_with(access, &settings, halt),
            |session, schema, halt| {
                let doing = format!("build the index of {}", sql.table(schema));
                session.execute(&doing, &sql.create_index(schema), halt)
            },
        )
    }

    fn make_procedures(&mut self) -> Result<(), TargetError> {
        let sql = self.sql();
        let schemas: Vec<u32> = (0..self.data.schemas).collect();
        for schemas in schemas.chunks(MADE_AT_ONCE) {
            let statements: Vec<String> = schemas.iter().map(|schema| sql.create_procedure(*schema)).collect();
            self.session.execute("create the procedures", &statements.join("; "), self.halt())?;
        }
        Ok(())
    }

    /// Vacuums what is not vacuumed yet.
    fn vacuum(&mut self) -> Result<(), TargetError> {
        let tables = self.sized(self.unvacuumed()?);
        let settings = format!("SET default_statistics_target = {STATISTICS_TARGET}");
        let (access, sql) = (self.access, self.sql());
        self.side_by_side(
            Phase::Vacuum,
            &tables,
            |halt| open_with(access, &settings, halt),
            |session, table, halt| {
                let name = table.qualified(&sql);
                let doing = format!("vacuum {name}");
                // Only the key matters to the planner; VACUUM wants to be alone in its message.
                session.execute(&doing, &format!("ALTER TABLE {name} RESET (autovacuum_enabled)"), halt)?;
                session.execute(&doing, &format!("VACUUM (ANALYZE) {name} (custid)"), halt)
            },
        )
    }

    fn unvacuumed(&self) -> Result<Vec<TableId>, TargetError> {
        let access = self.access;
        let ask = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                   WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relpages > 0 AND c.relallvisible = c.relpages \
                   AND EXISTS (SELECT FROM pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname)";
        let rows = self.session.query("look which tables are vacuumed", ask, &[&access.namespace], self.halt())?;
        let vacuumed: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        Ok(self.data.tables().filter(|table| !vacuumed.contains(&table.name())).collect())
    }
}

/// Tables that have too many blocks without a row.
fn sparse(session: &Session<'_>, data: &DataSet) -> Result<Vec<TableId>, TargetError> {
    let too_many = |(table, pages): &(TableId, u64)| {
        let rows = data.rows_of(*table);
        *pages > rows + (rows / (2 * ALLOWED_PART)).max(1)
    };
    let pages = catalog::table_pages(session, data)?;
    Ok(pages.into_iter().filter(too_many).map(|(table, _)| table).collect())
}

impl<D: Sync> Work<'_, Connector, D> {
    /// Writes everything to storage now, where the role may ask for it: else the first run would pay for it.
    pub(in crate::postgres) fn write_checkpoint(&mut self) -> Result<(), TargetError> {
        let ask = "SELECT rolsuper OR coalesce(pg_has_role(current_user, to_regrole('pg_checkpoint')::oid, 'USAGE'), false) \
                   FROM pg_roles WHERE rolname = current_user";
        if self.session.query_one("ask for the role's rights", ask, &[])?.get(0) {
            return self.phase(Phase::Checkpoint, 0, |work, _| {
                work.session.execute("write a checkpoint", "CHECKPOINT", work.halt())
            });
        }
        self.report.notes.push(
            "no checkpoint was written, as the role has not the right to (pg_checkpoint, from PostgreSQL 15 on): the server \
             still writes loaded blocks in the background, so wait for its next checkpoint before a run"
                .to_owned(),
        );
        Ok(())
    }
}
