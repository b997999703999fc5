//! Making data of whichever kind: decide first, then do.
//!
//! [`plan`] looks and decides without writing anything, so it also serves a dry run. [`run()`] does it, under the lock. What was
//! done stays: whoever is interrupted goes on where it was with the same command.

use std::fmt::Debug;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::catalog::{self, Keeps, NamespaceFacts, SqlData};
use super::found::{Estimate, Existing, Loaded};
use super::streams::Halt;
use super::{Access, Content, Found, Stage, Work};
use targets::TargetError;
use targets::database::{Phase, Progress, Replace};

/// What data are asked for, of servers of one kind. Each kind of data has a request of its own.
pub(crate) trait DataRequest<C: SqlData>: Clone + Debug {
    /// Such data.
    type Data: Content + Sync;
    /// What making them comes to besides [`Loaded`].
    type Outcome;

    /// What to do with data that are there.
    fn replace(&self) -> Replace;

    /// Connections that load.
    fn streams(&self) -> u32;

    /// Refuses what no server can make.
    ///
    /// # Errors
    /// [`TargetError::Shape`] says what makes no sense.
    fn check(&self) -> Result<(), TargetError>;

    /// The same, beside what is there: the same command given twice finds its own data.
    #[must_use]
    fn beside(&self, there: Option<&Self::Data>) -> Self;

    /// The data, on a server with blocks of this size.
    ///
    /// # Errors
    /// When blocks of another size were asked for.
    fn data(&self, access: Access<'_, C>, block_bytes: u32) -> Result<Self::Data, TargetError>;

    /// How data differ from what is asked for, in words; none if they do not.
    fn difference(&self, there: &Self::Data) -> Option<String>;

    /// The first thing that data which are declared whole lack.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn lacks(
        access: Access<'_, C>,
        session: &mut C::Session<'_>,
        server: &C::Server,
        data: &Self::Data,
    ) -> Result<Option<String>, TargetError>;

    /// Bytes that are loaded already.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn loaded_bytes(access: Access<'_, C>, session: &mut C::Session<'_>, data: &Self::Data)
    -> Result<u64, TargetError>;

    /// Bytes that are loaded in all.
    fn bytes(data: &Self::Data) -> u64;

    /// About what the data take.
    fn estimate(data: &Self::Data) -> Estimate;

    /// Makes the tables, has rows loaded, and does what has to be done before and after, until the data are whole.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what went wrong.
    fn make(work: &mut Work<'_, C, Self::Data>) -> Result<Self::Outcome, TargetError>;
}

/// What [`run()`] will do.
#[derive(Debug, Clone)]
pub(crate) struct Plan<'a, C: SqlData, R: DataRequest<C>> {
    /// Where.
    pub(crate) access: Access<'a, C>,
    /// The server's version, as it is shown.
    pub(crate) version: String,
    /// What holds the data, as it is shown.
    pub(crate) database: String,
    /// What is there already.
    pub(crate) existing: Existing,
    /// About what the data take.
    pub(crate) estimate: Estimate,
    /// Room that the server has for them, where it says so.
    pub(crate) room: Option<u64>,
    /// Rights that are made use of: statements, and what each is for.
    pub(crate) grants: Vec<(String, String)>,
    /// What was asked for.
    pub(crate) request: R,
    /// The data that will be there.
    pub(crate) data: R::Data,
    /// The data that are there.
    found: Option<Found<R::Data>>,
}

impl<C: SqlData, R: DataRequest<C>> Plan<'_, C, R> {
    /// Whether anything is to be written: not when the same data are there and were not to be replaced.
    pub(crate) fn makes_data(&self) -> bool {
        self.existing != Existing::SameData || self.request.replace() == Replace::Replace
    }

    /// Whether a set-up goes on that never came to its end.
    fn goes_on(&self) -> bool {
        matches!(self.existing, Existing::Unfinished { .. }) && self.request.replace() == Replace::Refuse
    }

    /// Bytes that are still to be loaded.
    pub(crate) fn missing_bytes(&self) -> u64 {
        match self.existing {
            _ if !self.makes_data() => 0,
            Existing::Unfinished { loaded_bytes } if self.goes_on() => {
                R::bytes(&self.data).saturating_sub(loaded_bytes)
            }
            _ => R::bytes(&self.data),
        }
    }
}

/// Decides everything, and writes nothing.
///
/// # Errors
/// [`TargetError::Shape`] when the request makes no sense; what stands against it on the server, with a cure; or why the
/// server cannot be asked.
pub(crate) fn plan<'a, C: Keeps<R::Data>, R: DataRequest<C>>(
    access: &Access<'a, C>,
    request: &R,
) -> Result<Plan<'a, C, R>, TargetError> {
    request.check()?;
    Ok(plan_in(*access, &mut C::open(*access)?, request)?.0)
}

fn plan_in<'a, C: Keeps<R::Data>, R: DataRequest<C>>(
    access: Access<'a, C>,
    session: &mut C::Session<'_>,
    request: &R,
) -> Result<(Plan<'a, C, R>, C::Server), TargetError> {
    let facts = C::look(session)?;
    let request = request.beside(facts.found.as_ref().map(|found| &found.data));
    let data = request.data(access, facts.block_bytes)?;
    C::check_place(access, session, &facts)?;
    let existing = existing(access, session, &facts, &request)?;
    let NamespaceFacts { server, version, database, found, .. } = facts;
    let (grants, room) = (C::grants(access, &server), C::room(session, &server)?);
    let estimate = R::estimate(&data);
    let mut plan = Plan { access, version, database, existing, estimate, room, grants, request, data, found };
    if let Some(there) = plan.found.as_ref().filter(|_| plan.goes_on()) {
        // When it was begun, and by which version.
        plan.data = there.data.clone();
    }
    Ok((plan, server))
}

/// Finds out what is there, and refuses what the request may not touch.
fn existing<C: Keeps<R::Data>, R: DataRequest<C>>(
    access: Access<'_, C>,
    session: &mut C::Session<'_>,
    facts: &NamespaceFacts<C::Server, R::Data>,
    request: &R,
) -> Result<Existing, TargetError> {
    let Some(Found { data, stage, .. }) = &facts.found else { return Ok(Existing::Nothing) };
    if *stage == Stage::Dropping {
        return Ok(Existing::HalfRemoved);
    }
    let (noun, command) = (R::Data::NOUN, R::Data::COMMAND);
    match (request.difference(data), request.replace(), stage) {
        (Some(difference), Replace::Refuse, _) => Err(access.unfit(
            format!("{} already holds other {noun}: {difference}", access.place()),
            format!(
                "ask for the same data, name another {} ({}), or replace them: `{command} setup --replace`",
                C::HOLDER,
                C::HOLDER_OPTION
            ),
        )),
        (Some(_), Replace::Replace, _) => Ok(Existing::OtherData),
        (None, Replace::Replace, Stage::Ready) => Ok(Existing::SameData),
        (None, Replace::Refuse, Stage::Ready) => match R::lacks(access, session, &facts.server, data)? {
            None => Ok(Existing::SameData),
            Some(missing) => Err(access.unfit(
                format!("`{missing}` is missing in {}", access.place()),
                format!("make the data again: `{command} setup --replace`"),
            )),
        },
        (None, _, _) => Ok(Existing::Unfinished { loaded_bytes: R::loaded_bytes(access, session, data)? }),
    }
}

/// Does what was planned. `notify` is called when a phase begins and ends, and at most ten times a second between;
/// setting `stop` ends the work soon. What making them came to is there where data were made.
///
/// # Errors
/// [`TargetError::Interrupted`] when stopped, or what went wrong. What was done until then stays, and the same set-up goes
/// on from there; data that were to be replaced are gone.
pub(crate) fn run<C: Keeps<R::Data>, R: DataRequest<C>>(
    plan: Plan<'_, C, R>,
    notify: &dyn Fn(Phase, Progress),
    stop: &AtomicBool,
) -> Result<(Loaded, Option<R::Outcome>), TargetError> {
    let began = Instant::now();
    let access = plan.access;
    if !plan.makes_data() {
        return Ok(Default::default());
    }
    let mut session = C::open(access)?;
    catalog::lock(access, &mut session)?;
    // The plan was made without the lock: what is there may be different by now.
    let (plan, server) = plan_in(access, &mut session, &plan.request)?;
    if !plan.makes_data() {
        return Ok(Default::default());
    }
    let (goes_on, streams) = (plan.goes_on(), plan.request.streams());
    let report = Loaded { created: true, ..Loaded::default() };
    let mut work = Work { access, session, server, data: plan.data, streams, notify, stop, report };
    if let Some(there) = plan.found.filter(|_| !goes_on) {
        work.phase(Phase::Remove, 0, |work, _| C::remove(&mut work.session, &there, Halt::on(stop)))?;
    }
    if !goes_on {
        C::begin(&mut work.session, &work.data)?;
    }
    let outcome = R::make(&mut work)?;
    C::finish(access, &mut work.session, Halt::on(stop))?;
    work.report.elapsed_ns = began.elapsed().as_nanos() as u64;
    Ok((work.report, Some(outcome)))
}
