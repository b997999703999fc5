//! Making a data set: decide first, then load. Each step can be repeated, and what was done stays: whoever is interrupted goes
//! on where it was with the same command.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::catalog::{self, LOAD_TABLE, Server, qualified};
use super::session::Session;
use super::{drop, load};
use crate::targets::error::TargetError;
use crate::targets::mysql::sql::Sql;
use crate::targets::sql::data::descriptor::{DataSet, Stage, TableId, TableKind};
use crate::targets::sql::data::pieces::{self, Pieces};
use crate::targets::sql::data::streams::{Halt, Queue, Streams};

pub use super::plan::{Existing, Loaded, Phase, Progress, Replace, SetupRequest, TablesPlan, plan};

/// How full leaves are made: two rows are more than that, and fewer than two InnoDB never puts there.
const FILL_FACTOR: u32 = 10;
/// That of a server whose own nobody knows any more.
const DEFAULT_FILL_FACTOR: u32 = 100;

/// Does what was planned. `tell` is reported on every phase when it begins and ends, and at most ten times a second between;
/// setting `stop` ends the work soon.
///
/// # Errors
/// [`TargetError::Interrupted`] when stopped, or what went wrong. What was done until then stays, and the same set-up goes
/// on from there; data that were to be replaced are gone.
pub fn run(plan: TablesPlan<'_>, tell: &dyn Fn(Phase, Progress), stop: &AtomicBool) -> Result<Loaded, TargetError> {
    let began = Instant::now();
    let access = plan.access;
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
    let mut session = Session::open(access)?;
    catalog::lock(&mut session)?;
    // The plan was made without the lock: what is there may be different by now.
    let plan = super::plan::plan_in(&mut session, &plan.request)?;
    if !plan.makes_data() {
        return Ok(nothing);
    }
    let server = Server::ask(&mut session)?;
    let mut work = Work {
        data: plan.data.clone(),
        sql: access.sql(plan.request.block_bytes),
        session,
        server,
        streams: plan.request.streams,
        tell,
        stop,
        report: Loaded { created: true, ..nothing },
    };
    work.begin(&plan)?;
    work.make_tables()?;
    work.load_rows()?;
    work.rebuild()?;
    work.build_indexes()?;
    work.make_procedures()?;
    work.analyze()?;
    work.write_out()?;
    catalog::set_stage(&mut work.session, Stage::Ready)?;
    let forget = format!("DROP TABLE IF EXISTS {}", qualified(access, LOAD_TABLE));
    work.session.execute("end the set-up", &forget, Halt::NEVER)?;
    work.report.elapsed_ns = began.elapsed().as_nanos() as u64;
    Ok(work.report)
}

struct Work<'a> {
    session: Session<'a>,
    server: Server,
    data: DataSet,
    sql: Sql,
    streams: u32,
    tell: &'a dyn Fn(Phase, Progress),
    stop: &'a AtomicBool,
    report: Loaded,
}

impl Work<'_> {
    /// Does one phase, which comes to `total_bytes`; it is handed how to tell what it has done.
    fn phase(
        &mut self,
        phase: Phase,
        total_bytes: u64,
        work: impl FnOnce(&mut Self, &dyn Fn(u64)) -> Result<(), TargetError>,
    ) -> Result<(), TargetError> {
        Halt::on(self.stop).check()?;
        let (began, reported) = (Instant::now(), self.tell);
        let tell = |done_bytes: u64| reported(phase, Progress { done_bytes, total_bytes });
        tell(0);
        work(self, &tell)?;
        tell(total_bytes);
        self.report.phases.push((phase, began.elapsed().as_nanos() as u64));
        Ok(())
    }

    /// Removes what is to be replaced, and describes what is to become.
    fn begin(&mut self, plan: &TablesPlan<'_>) -> Result<(), TargetError> {
        let goes_on = matches!(plan.existing, Existing::Unfinished { .. }) && plan.request.replace == Replace::Refuse;
        if let Some(there) = &plan.found {
            if goes_on {
                return Ok(());
            }
            self.phase(Phase::Remove, 0, |work, _| drop::remove(&mut work.session, there, work.stop))?;
        }
        let is_there = catalog::has_database(&mut self.session)?;
        catalog::begin(&mut self.session, &self.data, !is_there)
    }

    fn mark_of(&self, table: TableId) -> String {
        let (is_scan, schema) = (table.kind == TableKind::Scan, table.schema);
        format!("is_scan = {is_scan} AND `schema` = {schema}")
    }

    /// Makes the tables that are not there yet. A table that somebody dropped in between is loaded again.
    fn make_tables(&mut self) -> Result<(), TargetError> {
        let there = catalog::our_objects(&mut self.session)?;
        self.phase(Phase::Create, 0, |work, _| {
            let (access, halt) = (work.session.access(), Halt::on(work.stop));
            let marks = qualified(access, LOAD_TABLE);
            let missing: Vec<TableId> = work.data.tables().filter(|table| !there.contains_key(&table.name())).collect();
            for table in missing {
                let forget = format!("DELETE FROM {marks} WHERE {}", work.mark_of(table));
                for statement in [forget, work.sql.create_table(&table.qualified_in(&work.sql))] {
                    let done = work.session.execute("create the tables", &statement, halt);
                    done.map_err(|error| catalog::with_grants(access, error))?;
                }
            }
            Ok(())
        })
    }

    fn load_rows(&mut self) -> Result<(), TargetError> {
        let marks = load::marks(&mut self.session)?;
        let leaf_bytes = u64::from(self.data.block_bytes);
        let found = pieces::loaded_places(&marks) * leaf_bytes;
        let total = self.data.bytes();
        self.report.bytes_found = found;
        self.report.bytes_written = total - found;
        let as_file = self.server.takes_files;
        if !as_file && total > found {
            let note = "the server takes no rows as a file (`local_infile` is off), so they are sent as statements, which takes longer";
            self.report.notes.push(note.to_owned());
        }
        // Nothing is vacuumed here.
        let missing = pieces::missing(&self.data, &marks, u64::MAX);
        let count = missing.iter().map(|(_, pieces)| pieces.len()).sum();
        let left = Pieces::new(missing);
        self.phase(Phase::Load, total, |work, tell| {
            let (data, sql, access) = (&work.data, &work.sql, work.session.access());
            work.streams(count, &|done| tell(found + done)).run(
                |_| Session::open(access),
                |ended| left.next(ended),
                |session, piece, stream| load::load(session, data, sql, piece, as_file, stream),
            )
        })
    }

    fn streams<'b>(&self, jobs: usize, tell: &'b dyn Fn(u64)) -> Streams<'b>
    where
        Self: 'b,
    {
        let count = self.streams.min(u32::try_from(jobs).unwrap_or(u32::MAX));
        Streams { count, stop: self.stop, tell }
    }

    /// Writes the tables anew with two rows in each leaf. That takes a setting of the whole server, which is put back.
    fn rebuild(&mut self) -> Result<(), TargetError> {
        let access = self.session.access();
        let marks = qualified(access, LOAD_TABLE);
        let ask = format!("SELECT is_scan, `schema` FROM {marks} WHERE first_place = -1");
        let done: BTreeSet<(bool, u32)> =
            self.session.query("look which tables are rebuilt", &ask, (), Halt::NEVER)?.into_iter().collect();
        let is_done = |table: &TableId| done.contains(&(table.kind == TableKind::Scan, table.schema));
        let tables: Vec<TableId> = self.data.tables().filter(|table| !is_done(table)).collect();
        if tables.is_empty() {
            return Ok(());
        }
        // Two set-ups on one server would put the setting back under each other's hands.
        catalog::lock_fill_factor(&mut self.session, Halt::on(self.stop))?;
        self.server = Server::ask(&mut self.session)?;
        self.set_fill_factor(FILL_FACTOR)?;
        let total = tables.iter().map(|table| self.data.bytes_of(*table)).sum();
        let rebuilt = self.phase(Phase::Rebuild, total, |work, tell| {
            let (data, sql) = (&work.data, &work.sql);
            let queue = Queue::new(tables.iter().copied());
            work.streams(tables.len(), tell).run(
                |_| Session::open(access),
                |ended| queue.next(ended),
                |session, table, stream| {
                    let name = table.qualified_in(sql);
                    session.execute(&format!("rebuild {name}"), &Sql::rebuild(&name), stream.halt)?;
                    let (is_scan, schema) = (table.kind == TableKind::Scan, table.schema);
                    let mark = format!("REPLACE INTO {marks} VALUES ({is_scan}, {schema}, -1, 0)");
                    session.execute("note a rebuilt table", &mark, stream.halt)?;
                    stream.done(data.bytes_of(*table));
                    Ok(())
                },
            )
        });
        let usual = if self.server.fill_factor == FILL_FACTOR { DEFAULT_FILL_FACTOR } else { self.server.fill_factor };
        let put_back = self.set_fill_factor(usual);
        catalog::unlock_fill_factor(&mut self.session)?;
        rebuilt.and(put_back)
    }

    fn set_fill_factor(&mut self, percent: u32) -> Result<(), TargetError> {
        let statement = format!("SET GLOBAL innodb_fill_factor = {percent}");
        let access = self.session.access();
        let set = self.session.execute("set how full tables are built", &statement, Halt::NEVER);
        set.map_err(|error| catalog::with_grants(access, error))
    }

    /// After the tables, since the index is to be as full as others are.
    fn build_indexes(&mut self) -> Result<(), TargetError> {
        let access = self.session.access();
        let ask = "SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = ?";
        let there: Vec<String> =
            self.session.query("look which indexes there are", ask, (access.database,), Halt::NEVER)?;
        let missing: Vec<u32> =
            (0..self.data.schemas).filter(|schema| !there.contains(&Sql::index_name(*schema))).collect();
        let each = self.data.scale_blocks * u64::from(self.data.block_bytes);
        self.phase(Phase::Index, each * missing.len() as u64, |work, tell| {
            let sql = &work.sql;
            let queue = Queue::new(missing.iter().copied());
            work.streams(missing.len(), tell).run(
                |_| Session::open(access),
                |ended| queue.next(ended),
                |session, schema, stream| {
                    let doing = format!("build the index of {}", sql.table(*schema));
                    session.execute(&doing, &sql.create_index(*schema), stream.halt)?;
                    stream.done(each);
                    Ok(())
                },
            )
        })
    }

    fn make_procedures(&mut self) -> Result<(), TargetError> {
        let (access, halt) = (self.session.access(), Halt::on(self.stop));
        for schema in 0..self.data.schemas {
            let forget = format!("DROP PROCEDURE IF EXISTS {}", self.sql.procedure(schema));
            for statement in [forget, self.sql.create_procedure(schema)] {
                let made = self.session.execute("create the procedures", &statement, halt);
                made.map_err(|error| catalog::with_grants(access, error))?;
            }
        }
        Ok(())
    }

    /// Has the server count leaves and learn the shape of the indexes.
    fn analyze(&mut self) -> Result<(), TargetError> {
        let tables: Vec<TableId> = self.data.tables().collect();
        self.phase(Phase::Analyze, 0, |work, _| {
            for table in &tables {
                super::proof::analyze(&mut work.session, &table.qualified_in(&work.sql), Halt::on(work.stop))?;
            }
            Ok(())
        })
    }

    /// Writes everything to storage now, where the user may ask for it: else the first run would pay for it.
    fn write_out(&mut self) -> Result<(), TargetError> {
        let tables: Vec<TableId> = self.data.tables().collect();
        let mut refused = None;
        self.phase(Phase::Checkpoint, 0, |work, _| {
            for table in &tables {
                let flush = format!("FLUSH TABLES {} FOR EXPORT", table.qualified_in(&work.sql));
                match work.session.execute("write out a table", &flush, Halt::on(work.stop)) {
                    Ok(()) => work.session.execute("unlock a table", "UNLOCK TABLES", Halt::NEVER)?,
                    Err(TargetError::Mysql(error))
                        if !matches!(error, crate::targets::mysql::MysqlError::Lost { .. }) =>
                    {
                        refused = Some(error);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })?;
        if let Some(refused) = refused {
            self.report.notes.push(format!(
                "the server may still write loaded pages in the background, so wait before a run: {refused}"
            ));
        }
        Ok(())
    }
}
