//! Commits on SQL servers that must outlast a power failure: a row for each slot, and one statement that is a transaction by itself.

use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{Dialect, Place, Reached, ServerToRemove, SqlDatabase, TablesToRemove, orders::marks_on_the_server, unfit};
use crate::data::catalog::{self, Dropped, Keeps, SqlData};
use crate::data::streams::Halt;
use crate::data::{Access, Content, DataSet, Found, Stage};
use crate::orders::OrdersData;
use crate::private::{inspect, remove};
use model::workload::mix64;
use targets::database::{DatabaseOptions, DropPlan};
use targets::durable::{
    CommitTarget, Committer, Committers, FileSystem, Found as FoundCommit, Made, Place as MadePlace, Presence, Shape,
    Torn, whereabouts,
};
use targets::{FileContext as _, TargetError};

use super::AddressOf;

/// Rows of one statement.
const ROWS_AT_ONCE: u32 = 500;
/// Stands for a session in the row that says that the load has ended.
const ENDED: i32 = -1;

/// The table of the commits.
const COMMITS: &str = "plimsoll_durable_commits";

/// What a load of commits makes on a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitData {
    shape: Shape,
}

impl Content for CommitData {
    const NOUN: &'static str = "load of commits";
    const COMMAND: &'static str = "plimsoll durable";
    const DATA_TABLE: &'static str = "plimsoll_durable";
    const LOAD_TABLE: &'static str = "plimsoll_durable_load";
    const LOAD_COLUMNS: &'static [(&'static str, &'static str)] = &[("session_no", "integer")];
    const LOAD_KEY: usize = 1;
    const TABLES: &'static str = "`plimsoll_durable_commits`";
    const DROPPED: &'static str = "tables of a load of commits";
    const FORMAT_VERSION: u32 = 1;

    fn names() -> String {
        "^plimsoll_durable(_load|_commits)?(_pkey)?$".to_owned()
    }

    fn objects(&self) -> Vec<String> {
        vec![COMMITS.to_owned()]
    }

    fn is_sensible(&self) -> bool {
        self.shape.is_sensible()
    }
}

impl<C: SqlData> Dropped<C> for CommitData {
    fn drops(&self, access: Access<'_, C>, _: &mut C::Session<'_>) -> Result<Vec<String>, TargetError> {
        Ok(vec![format!("DROP TABLE IF EXISTS {}", C::qualified(access.namespace, COMMITS))])
    }
}

/// Servers of one kind, as far as such commits need them.
pub trait CommitDialect: Dialect + Keeps<CommitData> {
    /// What stands behind the columns of a table, so that its commits are durable.
    const TABLE_END: &'static str = "";

    /// Changes rows by one statement that is a transaction by itself, and gives how many.
    ///
    /// # Errors
    /// As [`execute`](SqlData::execute).
    fn change(session: &mut Self::Session<'_>, statement: &str, halt: Halt<'_>) -> Result<u64, TargetError>;

    /// What the server calls itself, the same after a restart; empty where it does not say. A copy of it may call itself the same.
    fn identity(session: &mut Self::Session<'_>) -> String;

    /// When the server was started, in seconds since 1970.
    fn started_s(session: &mut Self::Session<'_>) -> Option<u64>;

    /// The first value that a statement gives.
    fn first_value(session: &mut Self::Session<'_>, statement: &str) -> Option<String> {
        let rows = Self::ask(session, "ask the server who it is", statement, Halt::NEVER).ok()?;
        rows.into_iter().next()?.into_iter().next()?
    }
}

/// A server, or a private one, as a target of such commits.
pub struct SqlCommits<D: CommitDialect> {
    database: SqlDatabase<D>,
    made: Option<Shape>,
    /// Whether the server itself was made for them.
    made_server: bool,
}

impl<D: CommitDialect> SqlCommits<D> {
    /// `address` is how the place is shown.
    pub fn new(place: Place<AddressOf<D>>, address: String, options: &DatabaseOptions) -> Self {
        Self { database: SqlDatabase::new(place, address, options), made: None, made_server: false }
    }

    /// Where a load is there, so that another one's absence is not taken for a loss.
    fn at(&self) -> String {
        let SqlDatabase { place, options, .. } = &self.database;
        match place {
            Place::Private(directory) => format!("{}, {} `{}`", whereabouts(directory), D::HOLDER, options.schema),
            Place::Servers(address) => format!("{} `{}`", D::HOLDER, D::namespace(address, options)),
        }
    }

    fn reached(&self) -> Result<&Reached<D>, TargetError> {
        self.database.reached.as_ref().ok_or(TargetError::Stopped)
    }

    fn make_tables(&mut self, shape: &Shape, stop: &AtomicBool) -> Result<Made, TargetError> {
        let file_system = match self.database.directory() {
            Some(directory) => Some(FileSystem::of(directory).of_file("look at", directory)?),
            None => None,
        };
        let (address, at) = (self.database.address.clone(), self.at());
        if let Some(found) = file_system.as_ref().filter(|found| found.is_in_memory()) {
            let what = format!("`{address}` would be on {}, which keeps files in memory", found.words());
            return Err(unfit(what, "name a directory on the disk to be tested".to_owned()));
        }
        if let Some(found) = file_system.as_ref().filter(|found| found.is_remote()) {
            let what = format!("`{address}` would be on {}, whose power is not this machine's", found.words());
            return Err(unfit(what, "run it on the machine that has the disk".to_owned()));
        }
        let reached = self.database.reach(true, Some(shape.sessions), stop)?;
        let loses = reached.facts()?.server.loses_commits();
        let access = reached.access();
        let mut session = D::open(access)?;
        catalog::lock(access, &mut session)?;
        let facts = <D as Keeps<CommitData>>::look(&mut session)?;
        if facts.found.is_some() {
            let what =
                format!("{} holds an earlier load of commits, which may still have to be verified", access.place());
            return Err(unfit(what, format!("once that is done: `plimsoll durable drop --target {address}`")));
        }
        <D as Keeps<CommitData>>::check_place(access, &mut session, &facts)?;
        self.made = Some(*shape);
        let halt = Halt::on(stop);
        D::begin(&mut session, &CommitData { shape: *shape })?;
        let table = D::qualified(access.namespace, COMMITS);
        let make = format!(
            "CREATE TABLE {table} (session_no INTEGER NOT NULL, slot_no INTEGER NOT NULL, seq BIGINT NOT NULL, \
             proof BIGINT NOT NULL, PRIMARY KEY (session_no, slot_no)){}",
            D::TABLE_END
        );
        D::execute(&mut session, "make the table of commits", &make, halt)?;
        for session_no in 0..shape.sessions {
            for first in (0..shape.blocks).step_by(ROWS_AT_ONCE as usize) {
                let slots = first..shape.blocks.min(first + ROWS_AT_ONCE);
                let rows: Vec<String> = slots.map(|slot| format!("({session_no}, {slot}, 0, 0)")).collect();
                let insert = format!("INSERT INTO {table} VALUES {}", rows.join(", "));
                D::execute(&mut session, "fill the table of commits", &insert, halt)?;
            }
        }
        <D as Keeps<CommitData>>::finish(access, &mut session, halt)?;
        let is_private = file_system.is_some();
        let identity = D::identity(&mut session);
        let name = D::PRODUCT.name;
        Ok(Made {
            at,
            place: file_system.map_or(MadePlace::Server(identity), MadePlace::Files),
            words: if facts.version.starts_with(name) { facts.version } else { format!("{name} {}", facts.version) },
            is_here: is_private || reached.connector.process().is_ok_and(|process| process.is_some()),
            started_s: if is_private { None } else { D::started_s(&mut session) },
            loses,
            whole: None,
        })
    }

    /// Reads the rows of a session, a part at a time, and says how many are not there.
    fn read_session(
        access: Access<'_, D>,
        session: &mut D::Session<'_>,
        (shape, number): (&Shape, u32),
        stop: &AtomicBool,
        visit: &mut dyn FnMut(u32, u32, FoundCommit),
    ) -> Result<u32, TargetError> {
        let table = D::qualified(access.namespace, COMMITS);
        let mut gone = 0;
        for first in (0..shape.blocks).step_by(ROWS_AT_ONCE as usize) {
            let end = shape.blocks.min(first + ROWS_AT_ONCE);
            let ask = format!(
                "SELECT slot_no, seq, proof FROM {table} WHERE session_no = {number} AND slot_no >= {first} \
                 AND slot_no < {end} ORDER BY slot_no"
            );
            let rows = match D::ask(session, "read the commits", &ask, Halt::on(stop)) {
                Ok(rows) => rows,
                Err(error) if error.is_data_fault() => {
                    (first..end).for_each(|slot| visit(number, slot, FoundCommit::Unreadable(error.to_string())));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut slots = first..end;
            for row in rows {
                let (slot, seq, proof) = numbers(&row).filter(|(slot, ..)| slots.contains(slot)).ok_or_else(|| {
                    let hint = "another program may have changed the table; repeat the test".to_owned();
                    unfit(format!("a row of {table} on `{}` is none that can be there", access.node_name()), hint)
                })?;
                // A row that is not there is as one that was never written, and set-up wrote all of them.
                slots.by_ref().take_while(|before| *before != slot).for_each(|before| {
                    gone += 1;
                    visit(number, before, FoundCommit::Blank);
                });
                visit(number, slot, found_in(shape, number, slot, seq, proof));
            }
            slots.for_each(|slot| {
                gone += 1;
                visit(number, slot, FoundCommit::Blank);
            });
        }
        Ok(gone)
    }
}

/// Nothing of a load is there: gone, or elsewhere.
fn nothing_there(made: &Made, now: String, what: String, started_s: Option<u64>) -> Presence {
    if now == made.at { Presence::Gone { what, started_s } } else { Presence::Elsewhere { made: made.at.clone(), now } }
}

/// The three numbers of a row.
fn numbers(row: &[Option<String>]) -> Option<(u32, u64, i64)> {
    let [Some(slot), Some(seq), Some(proof)] = row else { return None };
    Some((slot.parse().ok()?, seq.parse().ok()?, proof.parse().ok()?))
}

/// What a row holds.
fn found_in(shape: &Shape, session: u32, slot: u32, seq: u64, proof: i64) -> FoundCommit {
    if (seq, proof) == (0, 0) {
        FoundCommit::Blank
    } else if seq > 0 && shape.slot_of(seq) == slot && proof == proof_of(shape, session, seq) {
        FoundCommit::Whole { seq }
    } else {
        // No transaction under way leaves that.
        FoundCommit::Torn(Torn { oldest: Some(0), newest: None, strange: 1 })
    }
}

/// Shows that a row was written by this session of this run for this commit.
fn proof_of(shape: &Shape, session: u32, seq: u64) -> i64 {
    // Positive, as every server writes it.
    (mix64(shape.run ^ mix64(u64::from(session) ^ mix64(seq))) >> 1) as i64
}

impl<D: CommitDialect> CommitTarget for SqlCommits<D> {
    fn make(&mut self, shape: &Shape, stop: &AtomicBool) -> Result<Made, TargetError> {
        self.made_server = match self.database.directory() {
            Some(directory) => inspect::<D::Programs>(directory)?.is_none(),
            None => false,
        };
        let made = self.make_tables(shape, stop);
        if made.is_err() {
            // The first error is the one to report.
            let _ = self.unmake();
        }
        made
    }

    fn committers(&self) -> Box<dyn Committers + '_> {
        let access = self.database.reached.as_ref().map(Reached::access);
        Box::new(Sessions { access, shape: self.made })
    }

    fn end(&mut self) -> Result<(), TargetError> {
        let access = self.reached()?.access();
        let mut session = D::open(access)?;
        let table = D::qualified(access.namespace, COMMITS);
        let insert = format!("INSERT INTO {table} VALUES ({ENDED}, 0, 1, 0)");
        D::execute(&mut session, "note that the load has ended", &insert, Halt::NEVER)
    }

    fn unmake(&mut self) -> Result<(), TargetError> {
        let (made, made_server) = (self.made.take(), std::mem::take(&mut self.made_server));
        if let Some(directory) = self.database.directory().filter(|_| made_server).map(std::path::Path::to_owned) {
            self.database.reached.take().map_or(Ok(()), Reached::leave)?;
            if inspect::<D::Programs>(&directory)?.is_some() {
                remove::<D::Programs>(&directory, &self.database.options.say, &AtomicBool::new(false))?;
            }
            return Ok(());
        }
        if made.is_none() {
            return Ok(());
        }
        let mut session = D::open(self.reached()?.access())?;
        match <D as Keeps<CommitData>>::look(&mut session)?.found {
            Some(found) => D::remove(&mut session, &found, Halt::NEVER),
            None => Ok(()),
        }
    }

    fn read(
        &mut self,
        shape: &Shape,
        made: &Made,
        stop: &AtomicBool,
        visit: &mut dyn FnMut(u32, u32, FoundCommit),
    ) -> Result<Presence, TargetError> {
        let now_at = self.at();
        if let Some(directory) = self.database.directory() {
            let now = FileSystem::of(directory).of_file("look at", directory)?;
            if !matches!(&made.place, MadePlace::Files(then) if then.is_same(&now)) {
                return Ok(Presence::Elsewhere { made: made.words.clone(), now: now.words() });
            }
            if inspect::<D::Programs>(directory)?.is_none() {
                let what = format!("the private server in `{}`", directory.display());
                return Ok(nothing_there(made, now_at, what, None));
            }
        }
        let is_private = self.database.directory().is_some();
        let address = self.database.address.clone();
        if is_private && now_at != made.at {
            return Ok(Presence::Elsewhere { made: made.at.clone(), now: now_at });
        }
        let reached = self.database.reach(false, None, stop)?;
        let (loses, access) = (reached.facts()?.server.loses_commits(), reached.access());
        let mut session = D::open(access)?;
        // A load under way changes what was read before.
        catalog::lock(access, &mut session)?;
        let identity = if is_private { String::new() } else { D::identity(&mut session) };
        let started_s = if is_private { None } else { D::started_s(&mut session) };
        match &made.place {
            MadePlace::Files(_) if is_private => {}
            MadePlace::Server(then) if *then == identity || then.is_empty() => {}
            _ => {
                let now = format!("{} that calls itself `{identity}`", D::PRODUCT.name);
                return Ok(Presence::Elsewhere { made: made.words.clone(), now });
            }
        }
        let Some(Found { data, stage, .. }) = <D as Keeps<CommitData>>::look(&mut session)?.found else {
            if !is_private && identity.is_empty() {
                let what = format!("{} holds no load of commits, and does not say which server it is", access.place());
                return Err(unfit(what, "look whether the address is that of the load".to_owned()));
            }
            let what = format!("the table of commits in {}", access.place());
            return Ok(nothing_there(made, now_at, what, started_s));
        };
        if data.shape.run != shape.run {
            return Ok(Presence::OtherRun { run: data.shape.run });
        }
        if stage == Stage::Dropping || data.shape != *shape {
            let what =
                format!("the load of commits in {} is half removed, or is not that of the notes", access.place());
            return Err(unfit(what, format!("remove the rest: `plimsoll durable drop --target {address}`")));
        }
        let mut missing = Vec::new();
        if stage == Stage::Loading {
            missing.push("the last commit of the set-up, which was waited for before the load, is missing".to_owned());
        }
        if !<D as Keeps<CommitData>>::objects(&mut session)?.contains_key(COMMITS) {
            missing.push(format!("the table `{COMMITS}` is gone"));
            for number in 0..shape.sessions {
                (0..shape.blocks).for_each(|slot| visit(number, slot, FoundCommit::Blank));
            }
            return Ok(Presence::There { has_ended: false, started_s, missing, loses });
        }
        let mut gone = 0;
        for number in 0..shape.sessions {
            gone += Self::read_session(access, &mut session, (shape, number), stop, visit)?;
        }
        if gone > 0 {
            missing.push(format!("{gone} rows of `{COMMITS}` are gone, which were there before the load"));
        }
        let table = D::qualified(access.namespace, COMMITS);
        let ended = format!("SELECT seq FROM {table} WHERE session_no = {ENDED}");
        let has_ended = !D::ask(&mut session, "look whether the load had ended", &ended, Halt::on(stop))?.is_empty();
        Ok(Presence::There { has_ended, started_s, missing, loses })
    }

    fn plan_drop(&mut self, stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        let nothing = |place: &str| {
            let hint = "name the target that `plimsoll durable run` was given".to_owned();
            unfit(format!("{place} holds no load of commits"), hint)
        };
        if let Some(directory) = self.database.directory().map(std::path::Path::to_owned) {
            if inspect::<D::Programs>(&directory)?.is_none() {
                return Err(nothing(&format!("`{}`", directory.display())));
            }
            let whole = ServerToRemove::<D::Programs>::find(&directory, self.database.options.say)?;
            // A server that was made for commits, and whose set-up was cut off, may hold nothing at all. Loads of commits may be in
            // other schemas as well.
            let holds_others = match self.database.reach(false, None, stop) {
                Ok(reached) => {
                    let access = reached.access();
                    let marks = [OrdersData::DATA_TABLE, DataSet::DATA_TABLE, CommitData::DATA_TABLE];
                    let mut session = D::open(access)?;
                    catalog::lock(access, &mut session)?;
                    let all = marks_on_the_server::<D>(&mut session, &marks)?;
                    all > usize::from(catalog::find::<D, CommitData>(&access)?.is_some())
                }
                Err(TargetError::Interrupted) => return Err(TargetError::Interrupted),
                // A disk that lies leaves one that does not start.
                Err(error) => return Ok(Box::new(whole.unseen(&error))),
            };
            if !holds_others {
                self.database.reached.take().map_or(Ok(()), Reached::leave)?;
                return Ok(Box::new(whole));
            }
        }
        let access = self.database.reach(false, None, stop)?.access();
        if catalog::find::<D, CommitData>(&access)?.is_none() {
            return Err(nothing(&access.place()));
        }
        Ok(Box::new(TablesToRemove::<_, CommitData>::find(access)?))
    }

    fn notes(&self) -> Vec<String> {
        self.database.reached.as_ref().map(Reached::notes).unwrap_or_default()
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        self.database.reached.map_or(Ok(()), Reached::leave)
    }
}

/// Opens sessions on the first server.
struct Sessions<'a, D> {
    access: Option<Access<'a, D>>,
    shape: Option<Shape>,
}

impl<D: CommitDialect> Committers for Sessions<'_, D> {
    fn open(&self, session: u32) -> Result<Box<dyn Committer + '_>, TargetError> {
        let (Some(access), Some(shape)) = (self.access, self.shape) else { return Err(TargetError::Stopped) };
        let table = D::qualified(access.namespace, COMMITS);
        let mut connected = D::open(access)?;
        if session == 0 {
            // As long as it is connected nothing is read or removed.
            catalog::lock(access, &mut connected)?;
        }
        Ok(Box::new(Session::<D> { connected, table, shape, session, dialect: PhantomData }))
    }
}

struct Session<'a, D: CommitDialect> {
    connected: D::Session<'a>,
    table: String,
    shape: Shape,
    session: u32,
    dialect: PhantomData<D>,
}

impl<D: CommitDialect> Committer for Session<'_, D> {
    fn commit(&mut self, seq: u64, stop: &AtomicBool) -> Result<(), TargetError> {
        let Self { connected, table, shape, session, .. } = self;
        let (slot, proof) = (shape.slot_of(seq), proof_of(shape, *session, seq));
        // A transaction by itself: what answers it is the answer to its commit.
        let update = format!(
            "UPDATE {table} SET seq = {seq}, proof = {proof} WHERE session_no = {session} AND slot_no = {slot}"
        );
        match D::change(connected, &update, Halt::on(stop))? {
            1 => Ok(()),
            rows => {
                let what = format!("a commit changed {rows} rows of {table}, and changes one");
                Err(unfit(
                    what,
                    "another program may have changed the table, or its rights; repeat the test".to_owned(),
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { run: 5, sessions: 2, blocks: 4 };

    #[test]
    fn a_row_says_which_commit_it_is_of() {
        let proof = proof_of(&SHAPE, 1, 6);
        assert!(proof >= 0);
        assert_eq!(found_in(&SHAPE, 1, 1, 6, proof), FoundCommit::Whole { seq: 6 });
        assert_eq!(found_in(&SHAPE, 1, 1, 0, 0), FoundCommit::Blank);
        for (session, slot, seq, proof) in [(0, 1, 6, proof), (1, 2, 6, proof), (1, 1, 10, proof), (1, 1, 0, 1)] {
            assert!(matches!(found_in(&SHAPE, session, slot, seq, proof), FoundCommit::Torn(Torn { strange: 1, .. })));
        }
    }

    #[test]
    fn rows_that_cannot_be_are_none() {
        let row = |words: &[&str]| numbers(&words.iter().map(|word| Some((*word).to_owned())).collect::<Vec<_>>());
        assert_eq!(row(&["1", "6", "9"]), Some((1, 6, 9)));
        for wrong in [&["1", "6"][..], &["x", "6", "9"], &["1", "-6", "9"], &["1", "6", "9", "1"], &["-1", "6", "9"]] {
            assert_eq!(row(wrong), None, "{wrong:?}");
        }
        assert_eq!(numbers(&[None, Some("1".to_owned()), Some("2".to_owned())]), None);
    }
}
