//! Loading a data set, step by step.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::copy;
use super::rows::RowBuilder;
use super::{Existing, Loaded, TablesPlan, data_set, look, makes_data};
use crate::targets::database::{Phase, Progress, Replace};
use crate::targets::error::TargetError;
use crate::targets::postgres::data::catalog::{self, Ground, Stage};
use crate::targets::postgres::data::descriptor::{DataSet, TableId, TableKind};
use crate::targets::postgres::data::drop;
use crate::targets::postgres::data::session::{Halt, Session};
use crate::targets::postgres::data::shape::ALLOWED_PART;
use crate::targets::postgres::data::streams::{Queue, Streams};
use crate::targets::postgres::sql::Sql;
use crate::targets::sql::data::pieces::{self, Pieces};

/// Tables and procedures that are made in one transaction: each holds locks until its end, of which a server has few.
const MADE_AT_ONCE: usize = 16;
/// Memory that sorting the keys of one row takes when an index is built.
const SORT_BYTES_PER_ROW: u64 = 32;
/// Most memory that one stream has indexes built with.
const MAX_SORT_BYTES: u64 = 256 << 20;
/// The planner learns from 300 rows for each unit of this: enough to tell 0 from 0.05 in a correlation, and far fewer
/// blocks to read than by default.
const STATISTICS_TARGET: u32 = 30;

/// Does what was planned. `tell` is reported on every phase when it begins and ends, and at most ten times a second between;
/// setting `stop` ends the work soon.
///
/// # Errors
/// [`TargetError::Interrupted`] when stopped, or what went wrong. What was done until then stays, and the same set-up goes
/// on from there; data that were to be replaced are gone.
pub fn run(plan: TablesPlan<'_>, tell: &dyn Fn(Phase, Progress), stop: &AtomicBool) -> Result<Loaded, TargetError> {
    let began = Instant::now();
    let nothing = Loaded {
        bytes_written: 0,
        bytes_found: 0,
        elapsed_ns: 0,
        phases: Vec::new(),
        created: false,
        notes: plan.notes.clone(),
    };
    if !plan.makes_data() {
        return Ok(nothing);
    }
    let session = Session::open(plan.access)?;
    catalog::lock(&session)?;
    // The plan was made without the lock: what is there may be different by now.
    let ground = Ground::look(&session)?;
    let existing = look(&session, &ground, &plan.request)?;
    if !makes_data(existing, plan.request.replace) {
        return Ok(nothing);
    }
    let mut work = Work {
        data: data_set(&plan.request, plan.access),
        sql: plan.access.sql(plan.request.block_bytes),
        session,
        streams: plan.request.streams,
        vacuum_bytes: copy::vacuum_bytes(ground.server.shared_buffers, plan.request.streams),
        tell,
        stop,
        report: Loaded { created: true, ..nothing },
    };
    let autovacuum = if ground.server.autovacuum {
        "is on and looks after"
    } else {
        "is off on this server and does not look after"
    };
    work.report.notes.push(format!("autovacuum {autovacuum} these tables"));
    work.begin(ground, existing, plan.request.replace)?;
    work.make_tables()?;
    work.load_rows()?;
    work.compact()?;
    work.build_indexes()?;
    work.make_procedures()?;
    work.vacuum()?;
    work.write_checkpoint()?;
    work.finish()?;
    work.report.elapsed_ns = began.elapsed().as_nanos() as u64;
    Ok(work.report)
}

struct Work<'a> {
    session: Session<'a>,
    data: DataSet,
    sql: Sql,
    streams: u32,
    /// How much of a table is loaded between two vacuums.
    vacuum_bytes: u64,
    tell: &'a dyn Fn(Phase, Progress),
    stop: &'a AtomicBool,
    report: Loaded,
}

impl Work<'_> {
    fn halt(&self) -> Halt<'_> {
        Halt::on(self.stop)
    }

    /// Does one phase, which comes to `total_bytes`; it is handed how to tell what it has done.
    fn phase(
        &mut self,
        phase: Phase,
        total_bytes: u64,
        work: impl FnOnce(&Self, &dyn Fn(u64)) -> Result<(), TargetError>,
    ) -> Result<(), TargetError> {
        self.halt().check()?;
        let (began, reported) = (Instant::now(), self.tell);
        let tell = |done_bytes: u64| reported(phase, Progress { done_bytes, total_bytes });
        tell(0);
        work(self, &tell)?;
        tell(total_bytes);
        self.report.phases.push((phase, began.elapsed().as_nanos() as u64));
        Ok(())
    }

    /// Removes what is to be replaced, and describes what is to become.
    fn begin(&mut self, mut ground: Ground, existing: Existing, replace: Replace) -> Result<(), TargetError> {
        let goes_on = matches!(existing, Existing::Unfinished { .. }) && replace == Replace::Refuse;
        if let Some(there) = ground.found.take() {
            if goes_on {
                // When it was begun, and by which version.
                self.data = there.data;
                return Ok(());
            }
            self.phase(Phase::Remove, 0, |work, _| drop::remove(&work.session, &there, work.halt()))?;
            ground = Ground::look(&self.session)?;
            ground.check_for_setup(self.session.access())?;
        }
        catalog::begin(&self.session, &self.data, !ground.has_namespace())
    }

    fn objects(&self) -> Result<BTreeSet<String>, TargetError> {
        Ok(catalog::our_objects(&self.session)?.into_iter().map(|(name, _)| name).collect())
    }

    /// Makes the tables that are not there yet. A table that somebody dropped in between is loaded again.
    fn make_tables(&mut self) -> Result<(), TargetError> {
        let there = self.objects()?;
        let missing: Vec<TableId> = self.data.tables().filter(|table| !there.contains(&table.name())).collect();
        self.phase(Phase::Create, 0, |work, _| {
            let marks = catalog::load_table(work.session.access());
            let make = |table: &TableId| {
                let (name, is_scan) = (table.qualified(&work.sql), table.kind == TableKind::Scan);
                // Nobody else should look at a table while it is loaded: it is vacuumed at the end anyway.
                format!(
                    "{}; ALTER TABLE {name} SET (autovacuum_enabled = off); \
                     DELETE FROM {marks} WHERE is_scan = {is_scan} AND schema = {};",
                    work.sql.create_table(&name),
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

    fn load_rows(&mut self) -> Result<(), TargetError> {
        let marks = copy::marks(&self.session)?;
        let block_bytes = u64::from(self.data.block_bytes);
        let found = pieces::loaded_places(&marks) * block_bytes;
        let total = self.data.bytes();
        self.report.bytes_found = found;
        self.report.bytes_written = total - found;
        let work = pieces::missing(&self.data, &marks, self.vacuum_bytes);
        let count = work.iter().map(|(_, pieces)| pieces.len()).sum();
        let pieces_left = Pieces::new(work);
        self.phase(Phase::Load, total, |work, tell| {
            let tell_all = |done| tell(found + done);
            let streams = work.streams(count, &tell_all);
            // Losing the last pieces in a crash of the server costs nothing: their marks are lost with them.
            let settings = "SET synchronous_commit = off";
            let (data, sql) = (&work.data, &work.sql);
            let builder = || RowBuilder::new(data.column_bytes);
            streams.run(
                settings,
                builder,
                |ended| pieces_left.next(ended),
                |session, builder, piece, stream| copy::load(session, data, sql, piece, builder, stream),
            )
        })
    }

    fn streams<'b>(&'b self, jobs: usize, tell: &'b dyn Fn(u64)) -> Streams<'b> {
        let count = self.streams.min(u32::try_from(jobs).unwrap_or(u32::MAX));
        Streams { access: self.session.access(), count, stop: self.stop, tell }
    }

    /// Writes tables anew that have too many blocks without a row. Pieces that were given up leave such blocks, and so
    /// does a server that adds several blocks at a time.
    fn compact(&mut self) -> Result<(), TargetError> {
        let pages = catalog::table_pages(&self.session, &self.data)?;
        let too_many = |(table, pages): &(TableId, u64)| {
            let rows = self.data.rows_of(*table);
            *pages > rows + (rows / (2 * ALLOWED_PART)).max(1)
        };
        let tables: Vec<TableId> = pages.into_iter().filter(too_many).map(|(table, _)| table).collect();
        if tables.is_empty() {
            return Ok(());
        }
        let total = tables.iter().map(|table| self.data.bytes_of(*table)).sum();
        self.phase(Phase::Compact, total, |work, tell| {
            let (streams, data, sql) = (work.streams(tables.len(), tell), &work.data, &work.sql);
            let queue = Queue::new(tables);
            streams.run(
                "",
                || (),
                |ended| queue.next(ended),
                |session, (), table, stream| {
                    let name = table.qualified(sql);
                    session.execute(&format!("compact {name}"), &format!("VACUUM FULL {name}"), stream.halt)?;
                    stream.done(data.bytes_of(*table));
                    Ok(())
                },
            )
        })
    }

    fn build_indexes(&mut self) -> Result<(), TargetError> {
        let there = self.objects()?;
        let missing: Vec<u32> =
            (0..self.data.schemas).filter(|schema| !there.contains(&Sql::index_name(*schema))).collect();
        let each = self.data.scale_blocks * u64::from(self.data.block_bytes);
        self.phase(Phase::Index, each * missing.len() as u64, |work, tell| {
            let kib = (work.data.scale_blocks * SORT_BYTES_PER_ROW).min(MAX_SORT_BYTES) >> 10;
            // Never less than the server's own, and every role may ask for more.
            let settings = format!(
                "SELECT set_config('maintenance_work_mem', greatest({kib}, setting::bigint)::text || 'kB', false) \
                 FROM pg_settings WHERE name = 'maintenance_work_mem'"
            );
            let (streams, sql) = (work.streams(missing.len(), tell), &work.sql);
            let queue = Queue::new(missing);
            streams.run(
                &settings,
                || (),
                |ended| queue.next(ended),
                |session, (), schema, stream| {
                    let doing = format!("build the index of {}", sql.table(*schema));
                    session.execute(&doing, &sql.create_index(*schema), stream.halt)?;
                    stream.done(each);
                    Ok(())
                },
            )
        })
    }

    fn make_procedures(&mut self) -> Result<(), TargetError> {
        let schemas: Vec<u32> = (0..self.data.schemas).collect();
        for schemas in schemas.chunks(MADE_AT_ONCE) {
            let statements: Vec<String> = schemas.iter().map(|schema| self.sql.create_procedure(*schema)).collect();
            self.session.execute("create the procedures", &statements.join("; "), self.halt())?;
        }
        Ok(())
    }

    /// Vacuums what is not vacuumed yet.
    fn vacuum(&mut self) -> Result<(), TargetError> {
        let tables = self.unvacuumed()?;
        let total = tables.iter().map(|table| self.data.bytes_of(*table)).sum();
        self.phase(Phase::Vacuum, total, |work, tell| {
            let (streams, data, sql) = (work.streams(tables.len(), tell), &work.data, &work.sql);
            let settings = format!("SET default_statistics_target = {STATISTICS_TARGET}");
            let queue = Queue::new(tables);
            streams.run(
                &settings,
                || (),
                |ended| queue.next(ended),
                |session, (), table, stream| {
                    let name = table.qualified(sql);
                    let doing = format!("vacuum {name}");
                    // Only the key matters to the planner; VACUUM wants to be alone in its message.
                    session.execute(&doing, &format!("ALTER TABLE {name} RESET (autovacuum_enabled)"), stream.halt)?;
                    session.execute(&doing, &format!("VACUUM (ANALYZE) {name} (custid)"), stream.halt)?;
                    stream.done(data.bytes_of(*table));
                    Ok(())
                },
            )
        })
    }

    fn unvacuumed(&self) -> Result<Vec<TableId>, TargetError> {
        let access = self.session.access();
        let ask = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                   WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relpages > 0 AND c.relallvisible = c.relpages \
                   AND EXISTS (SELECT FROM pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname)";
        let rows = self.session.query("look which tables are vacuumed", ask, &[&access.namespace], self.halt())?;
        let vacuumed: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        Ok(self.data.tables().filter(|table| !vacuumed.contains(&table.name())).collect())
    }

    /// Writes everything to storage now, where the role may ask for it: else the first run would pay for it.
    fn write_checkpoint(&mut self) -> Result<(), TargetError> {
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

    /// Declares the data whole. Waiting for this commit makes all those before it durable too.
    fn finish(&mut self) -> Result<(), TargetError> {
        let access = self.session.access();
        let statements = format!(
            "SET synchronous_commit = on; BEGIN; {}; DROP TABLE {}; COMMIT",
            catalog::set_stage(access, Stage::Ready),
            catalog::load_table(access)
        );
        self.session.execute("end the set-up", &statements, self.halt())
    }
}
