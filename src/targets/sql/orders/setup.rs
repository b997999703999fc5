//! Making data of order entry: decide first, then load.
//!
//! [`plan`] looks and decides without writing anything. [`run()`] loads: tables first, then rows in pieces, each committed with its
//! mark, then indexes and keys. Each of its steps can be repeated, so whoever is interrupted goes on where it was.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::descriptor::OrdersData;
use super::dialect::{self, Estimate, OrdersDialect, Step, parts_there};
use super::procedures;
use super::source::Source;
use super::validation::{Validation, validate};
use crate::targets::TargetError;
use crate::targets::database::{Phase, Progress, Replace};
use crate::targets::orders::OrdersRequest;
use crate::targets::sql::data::access::Access;
use crate::targets::sql::data::catalog::{self, NamespaceFacts};
use crate::targets::sql::data::content::Content;
use crate::targets::sql::data::descriptor::{Found, Stage};
use crate::targets::sql::data::found::{Existing, Loaded};
use crate::targets::sql::data::pieces::{Marks, Pieces, cut};
use crate::targets::sql::data::setup::Work;
use crate::targets::sql::data::streams::Halt;
use crate::targets::sql::orders::ddl::qualified;
use crate::workload::orders::Table;

/// Bytes of the values of a piece: it takes well under a second, which is what an interruption costs, and far longer than its commit.
pub(in crate::targets) const PIECE_BYTES: u64 = 8 << 20;

/// What [`run()`] will do.
#[derive(Debug, Clone)]
pub(in crate::targets) struct OrdersPlan<'a, C> {
    /// Where.
    pub(in crate::targets) access: Access<'a, C>,
    /// The server's version, as it is shown.
    pub(in crate::targets) version: String,
    /// What holds the data, as it is shown.
    pub(in crate::targets) database: String,
    /// What is there already.
    pub(in crate::targets) existing: Existing,
    /// About what the data take.
    pub(in crate::targets) estimate: Estimate,
    /// What was asked for.
    pub(in crate::targets) request: OrdersRequest,
    /// The data that will be there.
    pub(in crate::targets) data: OrdersData,
    /// Their rows.
    pub(in crate::targets) source: Source,
    /// The data that are there.
    found: Option<Found<OrdersData>>,
}

impl<C> OrdersPlan<'_, C> {
    /// Whether anything is to be written: not when the same data are there and were not to be replaced.
    pub(in crate::targets) fn makes_data(&self) -> bool {
        self.existing != Existing::SameData || self.request.replace == Replace::Replace
    }

    /// Whether a set-up goes on that never came to its end.
    fn goes_on(&self) -> bool {
        matches!(self.existing, Existing::Unfinished { .. }) && self.request.replace == Replace::Refuse
    }

    /// Bytes of values that are still to be loaded.
    pub(in crate::targets) fn missing_bytes(&self) -> u64 {
        match self.existing {
            _ if !self.makes_data() => 0,
            Existing::Unfinished { loaded_bytes } if self.goes_on() => self.source.bytes().saturating_sub(loaded_bytes),
            _ => self.source.bytes(),
        }
    }
}

/// What a set-up did.
#[derive(Debug, Clone, Default)]
pub(in crate::targets) struct OrdersLoaded {
    /// What every set-up says.
    pub(in crate::targets) loaded: Loaded,
    /// Rows that were loaded, this time.
    pub(in crate::targets) rows_written: u64,
    /// Whether all is as it was to be; nothing where nothing was made.
    pub(in crate::targets) validation: Option<Validation>,
}

/// Units that are loaded already, and rows of each table that came of them.
#[derive(Debug, Clone, Default)]
pub(super) struct LoadedUnits {
    marks: Marks<Table>,
    pub(super) rows: BTreeMap<Table, u64>,
}

impl LoadedUnits {
    /// Reads what has been loaded.
    pub(super) fn read<C: OrdersDialect>(
        access: Access<'_, C>,
        session: &mut C::Session<'_>,
    ) -> Result<Self, TargetError> {
        let table = qualified::<C>(access.namespace, OrdersData::LOAD_TABLE);
        let read = format!("SELECT table_name, first_unit, units, rows_loaded FROM {table} ORDER BY 1, 2");
        let mut loaded = Self::default();
        for row in C::ask(session, "read what has been loaded", &read, Halt::NEVER)? {
            let number = |at: usize| row.get(at)?.as_ref()?.parse::<u64>().ok();
            let table = row.first().and_then(|name| Table::named(name.as_deref()?));
            if let (Some(table), Some(first), Some(units), Some(rows)) = (table, number(1), number(2), number(3)) {
                loaded.marks.entry(table).or_default().push((first, units));
                *loaded.rows.entry(table).or_default() += rows;
            }
        }
        Ok(loaded)
    }

    fn bytes(&self, source: &Source) -> u64 {
        let units = |table: &Table| self.marks[table].iter().map(|(_, units)| units).sum();
        self.marks.keys().map(|table| source.bytes_of_units(*table, units(table))).sum()
    }

    fn row_count(&self) -> u64 {
        self.rows.values().sum()
    }
}

/// Decides everything, and writes nothing.
///
/// # Errors
/// [`TargetError::Shape`] when the request makes no sense; what stands against it on the server, with a cure; or why the
/// server cannot be asked.
pub(in crate::targets) fn plan<'a, C: OrdersDialect>(
    access: &Access<'a, C>,
    request: &OrdersRequest,
) -> Result<OrdersPlan<'a, C>, TargetError> {
    Ok(plan_in(*access, &mut C::open(*access)?, request)?.0)
}

fn plan_in<'a, C: OrdersDialect>(
    access: Access<'a, C>,
    session: &mut C::Session<'_>,
    request: &OrdersRequest,
) -> Result<(OrdersPlan<'a, C>, C::Server), TargetError> {
    request.check()?;
    let facts = C::look_for_orders(session)?;
    C::check_place_of_orders(access, session, &facts)?;
    let request = request.beside(facts.found.as_ref().map(|found| found.data.seed));
    let data = OrdersData::wanted(&request);
    let source = Source::new(data.seed, data.sizes);
    let existing = existing(access, session, facts.found.as_ref(), &request, &source)?;
    let NamespaceFacts { server, version, database, found, .. } = facts;
    let estimate = C::estimate(&data, &source);
    let mut plan = OrdersPlan { access, version, database, existing, estimate, request, data, source, found };
    if let Some(there) = plan.found.as_ref().filter(|_| plan.goes_on()) {
        // When it was begun, and by which version.
        plan.data = there.data.clone();
    }
    Ok((plan, server))
}

/// Finds out what is there, and refuses what the request may not touch.
fn existing<C: OrdersDialect>(
    access: Access<'_, C>,
    session: &mut C::Session<'_>,
    found: Option<&Found<OrdersData>>,
    request: &OrdersRequest,
    source: &Source,
) -> Result<Existing, TargetError> {
    let Some(Found { data, stage, .. }) = found else { return Ok(Existing::Nothing) };
    if *stage == Stage::Dropping {
        return Ok(Existing::HalfRemoved);
    }
    match (data.difference(request), request.replace, stage) {
        (Some(difference), Replace::Refuse, _) => Err(access.unfit(
            format!("{} already holds other {}: {difference}", access.place(), OrdersData::NOUN),
            format!(
                "ask for the same data, name another {} ({}), or replace them: `plimsoll orders setup --replace`",
                C::HOLDER,
                C::HOLDER_OPTION
            ),
        )),
        (Some(_), Replace::Replace, _) => Ok(Existing::OtherData),
        (None, Replace::Replace, Stage::Ready) => Ok(Existing::SameData),
        (None, Replace::Refuse, Stage::Ready) => {
            let there = parts_there::<C>(access, session)?;
            match C::parts_of(data).into_iter().find(|part| !there.contains(part)) {
                None => Ok(Existing::SameData),
                Some((_, missing)) => Err(access.unfit(
                    format!("`{missing}` is missing in {}", access.place()),
                    "make the data again: `plimsoll orders setup --replace`",
                )),
            }
        }
        (None, _, _) => {
            let loaded = LoadedUnits::read(access, session)?;
            Ok(Existing::Unfinished { loaded_bytes: loaded.bytes(source) })
        }
    }
}

/// Does what was planned. `tell` is called when a phase begins and ends, and at most ten times a second between;
/// setting `stop` ends the work soon.
///
/// # Errors
/// [`TargetError::Interrupted`] when stopped, or what went wrong. What was done until then stays, and the same set-up goes
/// on from there; data that were to be replaced are gone.
pub(in crate::targets) fn run<C: OrdersDialect>(
    plan: OrdersPlan<'_, C>,
    tell: &dyn Fn(Phase, Progress),
    stop: &AtomicBool,
) -> Result<OrdersLoaded, TargetError> {
    let began = Instant::now();
    let access = plan.access;
    if !plan.makes_data() {
        return Ok(OrdersLoaded::default());
    }
    let mut session = C::open(access)?;
    catalog::lock(access, &mut session)?;
    // The plan was made without the lock: what is there may be different by now.
    let (plan, server) = plan_in(access, &mut session, &plan.request)?;
    if !plan.makes_data() {
        return Ok(OrdersLoaded::default());
    }
    let (goes_on, streams) = (plan.goes_on(), plan.request.streams);
    let mut report = Loaded { created: true, ..Loaded::default() };
    report.notes.extend(C::remarks_on(&plan.data));
    report.notes.extend(C::notes_on_loading(&server));
    let OrdersPlan { source, data, found, .. } = plan;
    let mut work = Work { access, session, server, data, streams, tell, stop, report };
    if let Some(there) = found.filter(|_| !goes_on) {
        work.phase(Phase::Remove, 0, |work, _| {
            let mut drops = procedures::drops::<C>(&mut work.session, access.namespace)?;
            drops.extend(dialect::drops::<C>(access.namespace));
            C::remove_orders(&mut work.session, &there, &drops, Halt::on(stop))
        })?;
    }
    if !goes_on {
        C::begin_orders(&mut work.session, &work.data)?;
    }
    let (rows_written, validation) = make(&mut work, &source)?;
    work.report.elapsed_ns = began.elapsed().as_nanos() as u64;
    Ok(OrdersLoaded { loaded: work.report, rows_written, validation: Some(validation) })
}

/// All phases; gives the rows that were loaded, and what was found in the end.
fn make<C: OrdersDialect>(
    work: &mut Work<'_, C, OrdersData>,
    source: &Source,
) -> Result<(u64, Validation), TargetError> {
    let (access, halt) = (work.access, work.halt());
    make_tables(work)?;
    let found_rows = load_rows(work, source)?;
    let there = parts_there(access, &mut work.session)?;
    for step in C::steps(access.namespace, &work.data, &there) {
        do_step(work, &step, source)?;
    }
    let tables: Vec<(Table, u64)> = Table::ALL.map(|table| (table, source.bytes_of(table))).to_vec();
    let data = work.data.clone();
    work.side_by_side(
        C::SETTLING,
        &tables,
        |_| C::open(access),
        |session, table, halt| C::settle(session, &data, table, halt),
    )?;
    C::write_out_orders(work)?;
    let loaded = LoadedUnits::read(access, &mut work.session)?;
    let validation = validate(work, source, &loaded.rows)?;
    C::finish_orders(&mut work.session, halt)?;
    Ok((loaded.row_count() - found_rows, validation))
}

/// Makes the tables that are not there yet. A table that somebody dropped in between is loaded again.
fn make_tables<C: OrdersDialect>(work: &mut Work<'_, C, OrdersData>) -> Result<(), TargetError> {
    let there = C::orders_objects(&mut work.session)?;
    let missing = Table::ALL.into_iter().filter(|table| !there.contains_key(table.name()));
    work.phase(Phase::Create, 0, |work, _| {
        let (namespace, halt) = (work.access.namespace, work.halt());
        let marks = qualified::<C>(namespace, OrdersData::LOAD_TABLE);
        for table in missing {
            let forget = format!("DELETE FROM {marks} WHERE table_name = '{}'", table.name());
            for statement in C::create_orders_table(namespace, &work.data, table, forget) {
                C::execute(&mut work.session, "create the tables", &statement, halt)?;
            }
        }
        Ok(())
    })
}

/// Loads what is missing, in pieces, and gives the rows that were there before.
fn load_rows<C: OrdersDialect>(work: &mut Work<'_, C, OrdersData>, source: &Source) -> Result<u64, TargetError> {
    let loaded = LoadedUnits::read(work.access, &mut work.session)?;
    let (found, total) = (loaded.bytes(source), source.bytes());
    work.report.bytes_found = found;
    work.report.bytes_written = total.saturating_sub(found);
    let missing: Vec<_> = Table::ALL
        .into_iter()
        .map(|table| {
            let done = loaded.marks.get(&table).map_or(&[][..], Vec::as_slice);
            let longest = (PIECE_BYTES / source.bytes_of_units(table, 1).max(1)).max(1);
            (table, cut(table, table.units(&work.data.sizes), done, longest, u64::MAX))
        })
        .filter(|(_, pieces)| !pieces.is_empty())
        .collect();
    let count = missing.iter().map(|(_, pieces)| pieces.len()).sum();
    let left = Pieces::new(missing);
    work.phase(Phase::Load, total, |work, tell| {
        let (access, server) = (work.access, &work.server);
        let tell_all = |done: u64| tell((found + done).min(total));
        work.streams(count, &tell_all).run(
            |halt| C::orders_loader(access, server, halt),
            |ended| left.next(ended),
            |loader, piece, stream| C::load_orders(loader, source, piece, stream),
        )
    })?;
    Ok(loaded.row_count())
}

fn do_step<C: OrdersDialect>(
    work: &mut Work<'_, C, OrdersData>,
    step: &Step,
    source: &Source,
) -> Result<(), TargetError> {
    let access = work.access;
    let execute = |session: &mut C::Session<'_>, at: usize, halt: Halt<'_>| {
        let job = &step.jobs[at];
        job.statements.iter().try_for_each(|statement| C::execute(session, &job.doing, statement, halt))
    };
    let mut jobs: Vec<(usize, u64)> =
        step.jobs.iter().enumerate().map(|(at, job)| (at, source.bytes_of(job.table))).collect();
    if step.is_parallel {
        // The longest first, so that none of them is left alone at the end.
        jobs.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        return work.side_by_side(step.phase, &jobs, |halt| C::open_for_building(access, halt), execute);
    }
    let total = jobs.iter().map(|(_, bytes)| bytes).sum();
    work.phase(step.phase, total, |work, tell| {
        let (mut done, halt) = (0, work.halt());
        for (at, bytes) in jobs {
            execute(&mut work.session, at, halt)?;
            done += bytes;
            tell(done);
        }
        Ok(())
    })
}
