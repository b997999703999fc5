//! What is in a namespace: Plimsoll's own two tables, and whose the rest is.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use super::streams::Halt;
use super::{Access, Content, DataSet, Found, Stage};
use crate::{Product, SqlText};
use targets::TargetError;

pub use super::{FORMAT_VERSION, LOAD_TABLE};

/// A session that has ended may hold its lock until the server has seen the end.
const LOCK_ATTEMPTS: u32 = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// Data sets on servers of one kind, as far as any work on them needs it. What implements it makes connections to the servers of one
/// address, and by its type all that is SQL of them is found.
pub trait SqlData: SqlText + Clone + Debug + Send + Sync + 'static {
    /// What its servers are.
    const PRODUCT: &'static Product;
    /// What holds data sets on such servers: `schema`, `database`.
    const HOLDER: &'static str = "schema";
    /// How another one is named.
    const HOLDER_OPTION: &'static str = "`--db-schema NAME`";
    /// One connection, driven from ordinary code.
    type Session<'a>;
    /// What only servers of this kind are asked.
    type Server: Sync;

    /// The servers' names, at least one.
    fn node_names(&self) -> Vec<String>;

    /// Connects for work of any length.
    ///
    /// # Errors
    /// When the server cannot be reached.
    fn open(access: Access<'_, Self>) -> Result<Self::Session<'_>, TargetError>;

    /// Executes one statement, or several that form one transaction where the server has such for tables.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what went wrong.
    fn execute(
        session: &mut Self::Session<'_>,
        doing: &str,
        statement: &str,
        halt: Halt<'_>,
    ) -> Result<(), TargetError>;

    /// Executes one statement for its rows, as text.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what went wrong.
    fn ask(
        session: &mut Self::Session<'_>,
        doing: &str,
        statement: &str,
        halt: Halt<'_>,
    ) -> Result<Vec<Vec<Option<String>>>, TargetError>;

    /// Whether the namespace is there.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn has_namespace(_session: &mut Self::Session<'_>) -> Result<bool, TargetError> {
        Ok(true)
    }

    /// Locks the data for work that others must not do at the same time, as long as the session lives; `false` if somebody has.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn try_lock(session: &mut Self::Session<'_>) -> Result<bool, TargetError>;

    /// Who holds that lock.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn lock_holder(_session: &mut Self::Session<'_>) -> Result<Option<String>, TargetError> {
        Ok(None)
    }
}

/// Servers that keep one kind of data.
pub trait Keeps<D: Content>: SqlData {
    /// Looks what there is, and changes nothing.
    ///
    /// # Errors
    /// When the server cannot be asked or is too old, or what is there cannot be read.
    fn look(session: &mut Self::Session<'_>) -> Result<NamespaceFacts<Self::Server, D>, TargetError>;

    /// Refuses a place where no data can be made.
    ///
    /// # Errors
    /// What stands against it, with a cure.
    fn check_place(
        access: Access<'_, Self>,
        session: &mut Self::Session<'_>,
        facts: &NamespaceFacts<Self::Server, D>,
    ) -> Result<(), TargetError>;

    /// Statements that give a user every right that set-up and load make use of, for whoever may, with what each is for.
    fn grants(_access: Access<'_, Self>, _server: &Self::Server) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Room that a server of others has for the data, in bytes, as far as it says so to this user.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn room(_session: &mut Self::Session<'_>, _server: &Self::Server) -> Result<Option<u64>, TargetError> {
        Ok(None)
    }

    /// Bytes of whatever is in the namespace and has a name that set-up uses, by its bare name.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn objects(session: &mut Self::Session<'_>) -> Result<BTreeMap<String, u64>, TargetError>;

    /// Names of what is dropped with a data set besides its marks, as [`objects`](Self::objects) has them.
    fn objects_of(data: &D) -> Vec<String> {
        data.objects()
    }

    /// Begins a set-up: makes the namespace where it is not there, and what marks the data as ours.
    ///
    /// # Errors
    /// When the server refuses.
    fn begin(session: &mut Self::Session<'_>, data: &D) -> Result<(), TargetError>;

    /// Declares data whole.
    ///
    /// # Errors
    /// When the server refuses.
    fn finish(access: Access<'_, Self>, session: &mut Self::Session<'_>, _: Halt<'_>) -> Result<(), TargetError> {
        let name = |table: &str| Self::qualified(access.namespace, table);
        let declare = format!("UPDATE {} SET stage = '{}'", name(D::DATA_TABLE), Stage::Ready.word());
        Self::execute(session, "note the stage", &declare, Halt::NEVER)?;
        let forget = format!("DROP TABLE IF EXISTS {}", name(D::LOAD_TABLE));
        Self::execute(session, "end the set-up", &forget, Halt::NEVER)
    }

    /// Drops a data set with what marks it, and the namespace if set-up made it and nothing else is in it. The caller holds the lock.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what went wrong.
    fn remove(session: &mut Self::Session<'_>, found: &Found<D>, halt: Halt<'_>) -> Result<(), TargetError>;
}

/// Data of one kind, as servers of one kind drop them.
pub trait Dropped<C: SqlData>: Content {
    /// Statements that drop their tables and procedures, but for what marks them.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn drops(&self, access: Access<'_, C>, session: &mut C::Session<'_>) -> Result<Vec<String>, TargetError>;

    /// Bare names of procedures that were made beside them later, and go with them.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn made_later(_access: Access<'_, C>, _session: &mut C::Session<'_>) -> Result<Vec<String>, TargetError> {
        Ok(Vec::new())
    }
}

/// What is there.
#[derive(Debug, Clone)]
pub struct NamespaceFacts<S, D = DataSet> {
    /// What only servers of this kind are asked.
    pub server: S,
    /// The server's version, as it is shown.
    pub version: String,
    /// What holds the data, as it is shown.
    pub database: String,
    /// Size of a block of the server.
    pub block_bytes: u32,
    /// The data set that is there, whole or not.
    pub found: Option<Found<D>>,
}

/// Looks for a data set, whole or not; changes nothing.
///
/// # Errors
/// When the server cannot be reached, or what is there cannot be read.
pub fn find<C: Keeps<D>, D: Content>(access: &Access<'_, C>) -> Result<Option<Found<D>>, TargetError> {
    Ok(C::look(&mut C::open(*access)?)?.found)
}

/// The data set of SLOB's, which must be whole.
///
/// # Errors
/// When it is missing or unfinished, or as [`find`].
pub(crate) fn load<C: Keeps<DataSet>>(access: &Access<'_, C>) -> Result<DataSet, TargetError> {
    whole(*access, find(access)?)
}

/// Size of a block of the server.
///
/// # Errors
/// When the server cannot be reached.
pub(crate) fn block_bytes<C: Keeps<DataSet>>(access: &Access<'_, C>) -> Result<u32, TargetError> {
    Ok(C::look(&mut C::open(*access)?)?.block_bytes)
}

/// # Errors
/// When there is no data set.
pub fn require<C: SqlData, D: Content>(
    access: Access<'_, C>,
    found: Option<Found<D>>,
) -> Result<Found<D>, TargetError> {
    found.ok_or_else(|| {
        let hint = format!("make some: `{} setup`, or name", D::COMMAND);
        access.unfit_here(format!("no {} in {}", D::NOUN, access.place()), &hint)
    })
}

/// # Errors
/// When there is no data set, or one that is not whole.
pub(crate) fn whole<C: SqlData, D: Content>(access: Access<'_, C>, found: Option<Found<D>>) -> Result<D, TargetError> {
    let Found { data, stage, .. } = require(access, found)?;
    let (place, command) = (access.place(), D::COMMAND);
    match stage {
        Stage::Ready => Ok(data),
        Stage::Dropping => {
            let what = format!("the {} in {place} are half removed", D::NOUN);
            Err(access.unfit(what, format!("remove the rest: `{command} drop`")))
        }
        Stage::Loading => Err(access.unfit(
            format!("the set-up of {place} was never finished"),
            format!("run the same `{command} setup` again; it goes on where it was"),
        )),
    }
}

/// What a row of the table of a descriptor says, which is called `table`: format, stage, descriptor and whether set-up made the namespace.
///
/// # Errors
/// When it cannot be understood.
pub fn described<C: SqlData, D: Content>(
    access: Access<'_, C>,
    table: &str,
    (format, word, text, made_namespace): (u32, &str, &str, bool),
) -> Result<Found<D>, TargetError> {
    if format != D::FORMAT_VERSION {
        let ours = D::FORMAT_VERSION;
        let what = format!("{table} describes data of format {format}; this program reads format {ours}");
        return Err(access.unfit_here(what, "use the version of Plimsoll that made them, or name"));
    }
    let stage = Stage::ALL.into_iter().find(|stage| stage.word() == word);
    let stage = stage.ok_or_else(|| damaged::<C, D>(access, table, &format!("its stage is `{word}`")))?;
    let data: D = serde_json::from_str(text).map_err(|error| damaged::<C, D>(access, table, &error.to_string()))?;
    if !data.is_sensible() {
        return Err(damaged::<C, D>(access, table, "it describes no data"));
    }
    Ok(Found { data, stage, made_namespace })
}

/// The table of the descriptor is not as set-up made it.
pub fn damaged<C: SqlData, D: Content>(access: Access<'_, C>, table: &str, what: &str) -> TargetError {
    let hint = format!("drop that table and those of the data ({}) by hand, or name", D::TABLES);
    access.unfit_here(format!("the descriptor in {table} is damaged: {what}"), &hint)
}

/// Refuses to work on data that another process makes or removes. The lock is held as long as the session lives.
///
/// # Errors
/// When somebody else holds it.
pub fn lock<C: SqlData>(access: Access<'_, C>, session: &mut C::Session<'_>) -> Result<(), TargetError> {
    for _ in 0..LOCK_ATTEMPTS {
        if C::try_lock(session)? {
            return Ok(());
        }
        std::thread::sleep(BETWEEN_ATTEMPTS);
    }
    let by = C::lock_holder(session)?.map(|by| format!(" ({by})")).unwrap_or_default();
    let what = format!("another process makes or removes the data in the {} `{}`{by}", C::HOLDER, access.namespace);
    Err(access.unfit_here(what, "wait until it ends, or name"))
}
