//! Making a data set: decide first, then load.
//!
//! [`plan`] looks and decides without writing anything, so it also serves a dry run. [`run()`] loads. Each of its
//! steps can be repeated, and what was done stays: whoever is interrupted goes on where it was with the same command.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::access::Access;
use super::catalog::{self, FORMAT_VERSION, NamespaceFacts, SqlData};
use super::descriptor::{DataSet, Found, Stage};
use super::pieces::{self, Marks, Piece, Pieces};
use super::streams::{Halt, Queue, Stream, Streams};
use crate::targets::TargetError;
use crate::targets::database::{Phase, Progress, Replace, SetupRequest};
use crate::units::Bytes;

pub(in crate::targets) use super::found::{Existing, Loaded};

/// How servers of one kind have data made.
pub(in crate::targets) trait SetUp: SqlData {
    /// Who keeps the tables, and how many blocks one of them has at most.
    const MAX_TABLE_BLOCKS: (&'static str, u64);

    /// Loads pieces over one connection.
    type Loader<'a>;

    /// Bytes of each filling column in blocks of this size.
    fn column_bytes(block_bytes: u32) -> u32;

    /// About what the indexes take and what the log grows by while the data are made, in bytes.
    fn estimates(data: &DataSet) -> (u64, u64);

    /// Refuses a place where no data can be made.
    ///
    /// # Errors
    /// What stands against it, with a cure.
    fn check_place(
        access: Access<'_, Self>,
        session: &mut Self::Session<'_>,
        facts: &NamespaceFacts<Self::Server>,
    ) -> Result<(), TargetError>;

    /// Statements that give a user every right that set-up and load make use of, for whoever may, with what each is for.
    fn grants(_access: Access<'_, Self>, _server: &Self::Server) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What [`SqlData::objects`] gives for a whole data set besides [`DataSet::objects`].
    fn indexes_of(_data: &DataSet) -> Vec<String> {
        Vec::new()
    }

    /// Reads what has been loaded.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn marks(session: &mut Self::Session<'_>) -> Result<Marks, TargetError>;

    /// Begins a set-up: makes the namespace where it is not there, and what marks the data as ours.
    ///
    /// # Errors
    /// When the server refuses.
    fn begin(session: &mut Self::Session<'_>, data: &DataSet) -> Result<(), TargetError>;

    /// Bytes of a table that are loaded between two vacuums, where tables are vacuumed.
    fn vacuum_bytes(_server: &Self::Server, _streams: u32) -> u64 {
        u64::MAX
    }

    /// Connects a stream that loads.
    ///
    /// # Errors
    /// When it cannot be connected.
    fn loader<'a>(
        access: Access<'a, Self>,
        server: &Self::Server,
        data: &DataSet,
        halt: Halt<'_>,
    ) -> Result<Self::Loader<'a>, TargetError>;

    /// Loads one piece and its mark: both or neither.
    ///
    /// # Errors
    /// When the server refuses, or it was stopped.
    fn load(
        loader: &mut Self::Loader<'_>,
        data: &DataSet,
        piece: &Piece,
        stream: &Stream<'_>,
    ) -> Result<(), TargetError>;

    /// Makes the tables, has rows loaded, and does what has to be done before and after, until the data are whole.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what went wrong.
    fn make(work: &mut Work<'_, Self>) -> Result<(), TargetError>;
}

/// What [`run()`] will do.
#[derive(Debug, Clone)]
pub(in crate::targets) struct TablesPlan<'a, C> {
    /// Where.
    pub(in crate::targets) access: Access<'a, C>,
    /// The server's version, as it is shown.
    pub(in crate::targets) version: String,
    /// What holds the data, as it is shown.
    pub(in crate::targets) database: String,
    /// What is there already.
    pub(in crate::targets) existing: Existing,
    /// About what the indexes take.
    pub(in crate::targets) index_bytes: u64,
    /// About what the log grows by; the server recycles it.
    pub(in crate::targets) redo_bytes: u64,
    /// Rights that are made use of: statements, and what each is for.
    pub(in crate::targets) grants: Vec<(String, String)>,
    /// What was asked for.
    pub(in crate::targets) request: SetupRequest,
    /// The data that will be there.
    pub(in crate::targets) data: DataSet,
    /// The data that are there.
    found: Option<Found>,
}

impl<C> TablesPlan<'_, C> {
    /// Whether anything is to be written: not when the same data are there and were not to be replaced.
    pub(in crate::targets) fn makes_data(&self) -> bool {
        self.existing != Existing::SameData || self.request.replace == Replace::Replace
    }

    /// Whether a set-up goes on that never came to its end.
    fn goes_on(&self) -> bool {
        matches!(self.existing, Existing::Unfinished { .. }) && self.request.replace == Replace::Refuse
    }

    /// Bytes of blocks that are still to be loaded.
    pub(in crate::targets) fn missing_bytes(&self) -> u64 {
        match self.existing {
            _ if !self.makes_data() => 0,
            Existing::Unfinished { loaded_bytes } if self.goes_on() => self.data.bytes().saturating_sub(loaded_bytes),
            _ => self.data.bytes(),
        }
    }
}

/// Decides everything, and writes nothing.
///
/// # Errors
/// [`TargetError::Shape`] when the request makes no sense; what stands against it on the server, with a cure; or why the
/// server cannot be asked.
pub(in crate::targets) fn plan<'a, C: SetUp>(
    access: &Access<'a, C>,
    request: &SetupRequest,
) -> Result<TablesPlan<'a, C>, TargetError> {
    Ok(plan_in(*access, &mut C::open(*access)?, request)?.0)
}

fn plan_in<'a, C: SetUp>(
    access: Access<'a, C>,
    session: &mut C::Session<'_>,
    request: &SetupRequest,
) -> Result<(TablesPlan<'a, C>, C::Server), TargetError> {
    check::<C>(request)?;
    let facts = C::look(session)?;
    let (asked, there) = (Bytes(request.block_bytes.into()), Bytes(facts.block_bytes.into()));
    if asked != there {
        let what = format!("blocks of {asked} were asked for, and `{}` has blocks of {there}", access.node_name());
        return Err(access.unfit(what, format!("leave the block size away, or ask for {there}")));
    }
    C::check_place(access, session, &facts)?;
    let existing = existing(access, session, facts.found.as_ref(), request)?;
    let data = DataSet::wanted(request, FORMAT_VERSION, C::column_bytes(request.block_bytes));
    let (index_bytes, redo_bytes) = C::estimates(&data);
    let NamespaceFacts { server, version, database, found, .. } = facts;
    let grants = C::grants(access, &server);
    let mut plan = TablesPlan {
        access,
        grants,
        version,
        database,
        existing,
        index_bytes,
        redo_bytes,
        request: request.clone(),
        data,
        found,
    };
    if let Some(there) = plan.found.as_ref().filter(|_| plan.goes_on()) {
        // When it was begun, and by which version.
        plan.data = there.data.clone();
    }
    Ok((plan, server))
}

/// Refuses what cannot be a data set.
fn check<C: SetUp>(request: &SetupRequest) -> Result<(), TargetError> {
    request.check()?;
    let (keeper, most) = C::MAX_TABLE_BLOCKS;
    if request.scale_blocks.max(request.scan_blocks) > most {
        let bytes = Bytes(most * u64::from(request.block_bytes));
        return Err(TargetError::Shape(format!(
            "a table of {keeper} has at most {most} blocks, {bytes}; lower the scale"
        )));
    }
    Ok(())
}

/// Finds out what is there, and refuses what the request may not touch.
fn existing<C: SetUp>(
    access: Access<'_, C>,
    session: &mut C::Session<'_>,
    found: Option<&Found>,
    request: &SetupRequest,
) -> Result<Existing, TargetError> {
    let Some(Found { data, stage, .. }) = found else { return Ok(Existing::Nothing) };
    if *stage == Stage::Dropping {
        return Ok(Existing::HalfRemoved);
    }
    match (data.difference(request), request.replace, stage) {
        (Some(difference), Replace::Refuse, _) => Err(access.unfit(
            format!("{} already holds other SLOB data: {difference}", access.place()),
            format!(
                "ask for the same data, name another {} ({}), or replace them: `plimsoll slob setup --replace`",
                C::HOLDER,
                C::HOLDER_OPTION
            ),
        )),
        (Some(_), Replace::Replace, _) => Ok(Existing::OtherData),
        (None, Replace::Replace, Stage::Ready) => Ok(Existing::SameData),
        (None, Replace::Refuse, Stage::Ready) => {
            let there = C::objects(session)?;
            let mut wanted = C::objects_of(data).into_iter().chain(C::indexes_of(data));
            match wanted.find(|name| !there.contains_key(name)) {
                None => Ok(Existing::SameData),
                Some(missing) => Err(access.unfit(
                    format!("`{missing}` is missing in {}", access.place()),
                    "make the data again: `plimsoll slob setup --replace`",
                )),
            }
        }
        (None, _, _) => {
            let places = pieces::loaded_places(&C::marks(session)?);
            Ok(Existing::Unfinished { loaded_bytes: places * u64::from(data.block_bytes) })
        }
    }
}

/// Does what was planned. `tell` is called when a phase begins and ends, and at most ten times a second between;
/// setting `stop` ends the work soon.
///
/// # Errors
/// [`TargetError::Interrupted`] when stopped, or what went wrong. What was done until then stays, and the same set-up goes
/// on from there; data that were to be replaced are gone.
pub(in crate::targets) fn run<C: SetUp>(
    plan: TablesPlan<'_, C>,
    tell: &dyn Fn(Phase, Progress),
    stop: &AtomicBool,
) -> Result<Loaded, TargetError> {
    let began = Instant::now();
    let access = plan.access;
    if !plan.makes_data() {
        return Ok(Loaded::default());
    }
    let mut session = C::open(access)?;
    catalog::lock(access, &mut session)?;
    // The plan was made without the lock: what is there may be different by now.
    let (plan, server) = plan_in(access, &mut session, &plan.request)?;
    if !plan.makes_data() {
        return Ok(Loaded::default());
    }
    let (goes_on, streams) = (plan.goes_on(), plan.request.streams);
    let report = Loaded { created: true, ..Loaded::default() };
    let mut work = Work { access, session, server, data: plan.data, streams, tell, stop, report };
    if let Some(there) = plan.found.filter(|_| !goes_on) {
        work.phase(Phase::Remove, 0, |work, _| C::remove(&mut work.session, &there, Halt::on(stop)))?;
    }
    if !goes_on {
        C::begin(&mut work.session, &work.data)?;
    }
    C::make(&mut work)?;
    work.report.elapsed_ns = began.elapsed().as_nanos() as u64;
    Ok(work.report)
}

/// A set-up that is being done.
pub(in crate::targets) struct Work<'a, C: SqlData, D = DataSet> {
    pub(in crate::targets) access: Access<'a, C>,
    /// Holds the lock.
    pub(in crate::targets) session: C::Session<'a>,
    pub(in crate::targets) server: C::Server,
    pub(in crate::targets) data: D,
    pub(in crate::targets) streams: u32,
    pub(in crate::targets) tell: &'a dyn Fn(Phase, Progress),
    pub(in crate::targets) stop: &'a AtomicBool,
    pub(in crate::targets) report: Loaded,
}

impl<'a, C: SqlData, D: Sync> Work<'a, C, D> {
    /// What ends it early.
    pub(in crate::targets) fn halt(&self) -> Halt<'a> {
        Halt::on(self.stop)
    }

    /// Does one phase, which comes to `total_bytes`; it is handed what to call with the bytes that it has done.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or those of `work`.
    pub(in crate::targets) fn phase(
        &mut self,
        phase: Phase,
        total_bytes: u64,
        work: impl FnOnce(&mut Self, &dyn Fn(u64)) -> Result<(), TargetError>,
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

    /// Streams for so many jobs.
    pub(in crate::targets) fn streams<'b>(&self, jobs: usize, tell: &'b dyn Fn(u64)) -> Streams<'b>
    where
        'a: 'b,
    {
        let count = self.streams.min(u32::try_from(jobs).unwrap_or(u32::MAX));
        Streams { count, stop: self.stop, tell }
    }

    /// Does a phase of jobs, each of so many bytes, side by side on connections of their own that `open` makes.
    ///
    /// # Errors
    /// As [`phase`](Self::phase).
    pub(in crate::targets) fn side_by_side<J: Copy + Send>(
        &mut self,
        phase: Phase,
        jobs: &[(J, u64)],
        open: impl Fn(Halt<'_>) -> Result<C::Session<'a>, TargetError> + Sync,
        work: impl Fn(&mut C::Session<'a>, J, Halt<'_>) -> Result<(), TargetError> + Sync,
    ) -> Result<(), TargetError> {
        let total = jobs.iter().map(|(_, bytes)| bytes).sum();
        self.phase(phase, total, |this, tell| {
            let queue = Queue::new(jobs.iter().copied());
            this.streams(jobs.len(), tell).run(
                open,
                |ended| queue.next(ended),
                |session, &(job, bytes), stream| {
                    work(session, job, stream.halt)?;
                    stream.done(bytes);
                    Ok(())
                },
            )
        })
    }
}

impl<C: SetUp> Work<'_, C> {
    /// Loads what is missing, in pieces.
    ///
    /// # Errors
    /// As [`phase`](Self::phase).
    pub(in crate::targets) fn load_rows(&mut self) -> Result<(), TargetError> {
        let marks = C::marks(&mut self.session)?;
        let found = pieces::loaded_places(&marks) * u64::from(self.data.block_bytes);
        let total = self.data.bytes();
        self.report.bytes_found = found;
        self.report.bytes_written = total - found;
        let missing = pieces::missing(&self.data, &marks, C::vacuum_bytes(&self.server, self.streams));
        let count = missing.iter().map(|(_, pieces)| pieces.len()).sum();
        let left = Pieces::new(missing);
        self.phase(Phase::Load, total, |work, tell| {
            let (access, server, data) = (work.access, &work.server, &work.data);
            let tell_all = |done| tell(found + done);
            work.streams(count, &tell_all).run(
                |halt| C::loader(access, server, data, halt),
                |ended| left.next(ended),
                |loader, piece, stream| C::load(loader, data, piece, stream),
            )
        })
    }
}
