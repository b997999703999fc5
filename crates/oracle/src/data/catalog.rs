//! What is in the schema: Plimsoll's own tables, and what matters about the database and the user.

use crate::error::{LACKS_RIGHTS, ORACLE, number_in};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{Access, Session};
use crate::connect::Connector;
use crate::driver::{DB_TYPE_NUMBER, Error, Row, ToDbValue};
use crate::sql::{self, CONTAINER, Grant, IS_CLUSTER, Layout, Need, OWN_TABLESPACES, Sql, dictionary_name, grants};
use ::sql::data::catalog::{Dropped, FORMAT_VERSION, Keeps, NamespaceFacts, SqlData, damaged, described, lock};
use ::sql::data::streams::Halt;
use ::sql::data::{Content, DataSet, Found, Stage, TableId, TableKind};
use ::sql::orders::OrdersData;
use ::sql::{Product, ServerError};
use targets::TargetError;
use targets::database::Filling;

/// What was to be made is there: a name, a key, the name of a rule, a foreign key.
const IS_THERE: [u32; 4] = [955, 2260, 2264, 2275];
/// What a name that is already used, a row that is already there, and a table that is not there are called.
const NAME_IS_USED: u32 = 955;
const ROW_IS_THERE: u32 = 1;
pub(super) const NO_TABLE: u32 = 942;
/// There is no such sequence.
const NO_SEQUENCE: u32 = 2289;
/// A procedure is not there.
const NO_OBJECT: u32 = 4043;
/// Somebody has locked it.
const BUSY: u32 = 54;
/// Locks are held by a transaction of the two-phase kind, or waited for in vain.
const LOCK_DENIED: u32 = 1591;

/// Bytes that a block can have.
const BLOCK_BYTES: RangeInclusive<u32> = 2 << 10..=32 << 10;

/// What matters about the database and the user.
#[derive(Debug, Clone)]
pub struct Server {
    /// The user whose session it is, as the data dictionary has the name; empty where that is not said.
    user: String,
    /// `Oracle Database 19c Enterprise Edition`, `19.0.0.0.0`.
    pub(super) product: String,
    pub(super) version: String,
    /// The container and the instance that this session landed on.
    pub(super) container: String,
    pub(super) instance: String,
    /// `PRIMARY`, `PHYSICAL STANDBY`, …
    pub(super) role: String,
    pub(super) place: Option<Tablespace>,
}

/// The tablespace in which the user's tables are made.
#[derive(Debug, Clone)]
pub(super) struct Tablespace {
    pub(super) name: String,
    pub(super) block_bytes: u32,
    pub(super) is_online: bool,
    pub(super) is_permanent: bool,
    pub(super) is_encrypted: bool,
}

impl Server {
    pub(super) fn ask(session: &Session<'_>) -> Result<Self, TargetError> {
        let doing = "ask for its version";
        let product = session.first(doing, sql::PRODUCT, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (product, version): (String, String) =
            product.unwrap_or_else(|| ("Oracle".to_owned(), session.version_text()));
        let text = |row: &Row, column: usize| Ok::<_, Error>(row.get::<Option<String>>(column)?.unwrap_or_default());
        let landed = session.first("ask where it landed", sql::SESSION, &[], |row| {
            Ok((text(row, 0)?, text(row, 2)?, text(row, 4)?, text(row, 5)?))
        })?;
        let (user, container, instance, role) = landed.unwrap_or_default();
        let place = session.first("ask for its tablespace", sql::PLACE, &[], |row| {
            Ok(Tablespace {
                name: row.get(0)?,
                block_bytes: row.get(1)?,
                is_online: text(row, 2)? == "ONLINE",
                is_permanent: text(row, 3)? == "PERMANENT",
                is_encrypted: text(row, 6)? == "YES",
            })
        })?;
        Ok(Self { user, product: product.trim().to_owned(), version, container, instance, role, place })
    }

    /// Whether data can only be read there.
    pub(super) fn is_standby(&self) -> bool {
        sql::only_reads(&self.role)
    }
}

/// Names and statements, once the size of blocks is known.
pub(super) fn sql_of(access: Access<'_>, block_bytes: u32) -> Sql {
    Sql::new(access.namespace, block_bytes).by(access.connector.method())
}

/// The name of the schema that an address means, as the data dictionary has it.
pub(crate) fn schema_of(user: &str) -> String {
    // A proxy user stands before the one whose schema it is: `proxy[owner]`.
    let owner = user.split_once('[').and_then(|(_, owner)| owner.strip_suffix(']')).unwrap_or(user);
    dictionary_name(owner)
}

impl SqlData for Connector {
    const PRODUCT: &'static Product = ORACLE;
    const HOLDER: &'static str = "user";
    const HOLDER_OPTION: &'static str = "`oracle://USER@HOST/SERVICE`";
    type Session<'a> = Session<'a>;
    type Server = Server;

    fn node_names(&self) -> Vec<String> {
        self.nodes()
    }

    fn open(access: Access<'_>) -> Result<Session<'_>, TargetError> {
        Session::open(access)
    }

    fn execute(session: &mut Session<'_>, doing: &str, statement: &str, halt: Halt<'_>) -> Result<(), TargetError> {
        let access = session.access();
        let done = unless(session.execute_long(doing, statement.to_owned(), halt), &IS_THERE);
        done.map_err(|error| with_grants::<OrdersData>(access, error))
    }

    fn ask(
        session: &mut Session<'_>,
        doing: &str,
        statement: &str,
        halt: Halt<'_>,
    ) -> Result<Vec<Vec<Option<String>>>, TargetError> {
        session.query_long(doing, statement, halt, |row| (0..row.width()).map(|column| row.get(column)).collect())
    }

    /// A row is locked by a session of its own, since each statement on the data dictionary ends a transaction.
    fn try_lock(session: &mut Session<'_>) -> Result<bool, TargetError> {
        let sql = sql_of(session.access(), 0);
        if sql.layout() == Layout::Slob {
            let what = format!("the tables in {} are SLOB's own", session.access().place());
            return Err(session
                .access()
                .unfit(what, "make and remove them by SLOB's own scripts, or leave out `--layout slob`"));
        }
        // Whoever only removes data may have no right to make a table any more.
        let (held, missing) = (&[BUSY, LOCK_DENIED], &[NO_TABLE]);
        if let Some(is_mine) = session.hold(&sql.lock(), held, missing)? {
            return Ok(is_mine);
        }
        let (_, make) = &sql.create_own_tables(&sql::SLOB)[0];
        unless(session.execute("make the lock of the data", make, &[]), &[NAME_IS_USED])?;
        unless(session.execute("make the lock of the data", &sql.insert_lock(), &[]), &[ROW_IS_THERE])?;
        session.connected()?.commit("make the lock of the data")?;
        Ok(session.hold(&sql.lock(), held, missing)?.unwrap_or(false))
    }

    fn lock_holder(session: &mut Session<'_>) -> Result<Option<String>, TargetError> {
        let read = |row: &Row| {
            let (sid, machine): (u64, Option<String>) = (row.get(0)?, row.get(1)?);
            Ok(format!("session {sid} of {}", machine.as_deref().unwrap_or("an unknown machine")))
        };
        match session.first("look who uses the data", sql::LOCK_HOLDER, &[], read) {
            // Who may not see the sessions does not learn it.
            Err(error) if ServerError::refusal_in(&error).is_some() => Ok(None),
            holder => holder,
        }
    }
}

/// A table, qualified.
pub(crate) fn name_of(sql: &Sql, table: TableId) -> String {
    match table.kind {
        TableKind::Rows => sql.table(table.schema),
        TableKind::Scan => sql.scan_table(table.schema),
    }
}

/// What was done, or that it need not be done, as one of these errors says.
pub(super) fn unless(done: Result<u64, TargetError>, numbers: &[u32]) -> Result<(), TargetError> {
    match done {
        Err(error) if number_in(&error).is_some_and(|number| numbers.contains(&number)) => Ok(()),
        other => other.map(drop),
    }
}

/// Tables are looked for among those of the session's user, and are made and dropped in the schema that the address names: these
/// have to be the same. With `role=sysdba` the session is of SYS, who may drop anybody's tables.
fn check_user(access: Access<'_>, server: &Server) -> Result<(), TargetError> {
    if server.user.is_empty() || server.user == access.namespace {
        return Ok(());
    }
    let what = format!(
        "the session on `{}` is of the user `{}`, and the data belong to the user `{}`",
        access.node_name(),
        server.user,
        access.namespace
    );
    Err(access.unfit(what, "log in as the user whose schema it is, without `role` in the address"))
}

/// Bytes of a block of the tablespace in which tables of the session's user are made.
fn place_of(access: Access<'_>, server: &Server) -> Result<u32, TargetError> {
    check_user(access, server)?;
    let place = server.place.as_ref().ok_or_else(|| {
        let what = format!("the user of {} has no tablespace", access.place());
        let user = sql::quoted(access.namespace);
        let hint = format!(
            "give it one: ALTER USER {user} DEFAULT TABLESPACE … QUOTA UNLIMITED ON …; `plimsoll slob script oracle` \
             prints every other right that is needed, and asks no server"
        );
        access.unfit(what, hint)
    })?;
    Ok(place.block_bytes)
}

/// Data that are kept here.
pub(super) trait Kept: Dropped<Connector> {
    /// Their own tables.
    const KIND: sql::Kind;

    /// The data that are there, and the bytes of a block where they are or would be.
    ///
    /// # Errors
    /// When the server cannot be asked, or what is there cannot be read.
    fn find(session: &Session<'_>, server: &Server) -> Result<(u32, Option<Found<Self>>), TargetError> {
        let block_bytes = place_of(session.access(), server)?;
        Ok((block_bytes, read_descriptor(session)?))
    }

    /// Refuses what none can be made of.
    ///
    /// # Errors
    /// What stands against it, with a cure.
    fn check_access(_access: Access<'_>) -> Result<(), TargetError> {
        Ok(())
    }

    /// What is wrong with a descriptor, if anything is.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Whether a right is made use of.
    fn needs(need: Need) -> bool;

    /// Asks which tables and other things have names that are theirs: name in small letters, bytes.
    fn objects_there() -> String {
        Self::KIND.objects()
    }

    /// Bare names of their tables.
    fn tables_here(&self) -> Vec<String>;

    /// What room there is for them, where that is asked.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn room(_session: &Session<'_>, _server: &Server) -> Result<Option<u64>, TargetError> {
        Ok(None)
    }
}

impl Kept for DataSet {
    const KIND: sql::Kind = sql::SLOB;

    fn find(session: &Session<'_>, server: &Server) -> Result<(u32, Option<Found>), TargetError> {
        match session.access().connector.method().layout {
            Layout::Plimsoll => {
                let block_bytes = place_of(session.access(), server)?;
                Ok((block_bytes, read_descriptor(session)?))
            }
            // Whoever uses tables of others needs no room for any of its own.
            Layout::Slob => {
                let own_block_bytes = server.place.as_ref().map(|place| place.block_bytes);
                let block_bytes = block_bytes_of_slob(session, own_block_bytes)?;
                Ok((block_bytes, found_of_slob(session, block_bytes)?))
            }
        }
    }

    fn check_access(access: Access<'_>) -> Result<(), TargetError> {
        if access.connector.method().layout == Layout::Slob {
            let what = "SLOB's own tables are made by SLOB's own `setup.sh`".to_owned();
            return Err(access.unfit(what, "leave out `--layout slob`, and Plimsoll makes tables of its own"));
        }
        Ok(())
    }

    fn fault(&self) -> Option<String> {
        let is_possible = BLOCK_BYTES.contains(&self.block_bytes);
        (!is_possible).then(|| format!("it has blocks of {} bytes", self.block_bytes))
    }

    fn needs(need: Need) -> bool {
        need != Need::Orders
    }

    /// Batches are sent as blocks, so there are no procedures.
    fn tables_here(&self) -> Vec<String> {
        self.tables().map(TableId::name).collect()
    }
}

impl<D: Kept> Keeps<D> for Connector {
    fn look(session: &mut Session<'_>) -> Result<NamespaceFacts<Server, D>, TargetError> {
        let server = Server::ask(session)?;
        let (block_bytes, found) = D::find(session, &server)?;
        Ok(NamespaceFacts {
            version: format!("{} {}", server.product, server.version),
            database: format!("{} in {}", session.access().namespace, server.container),
            block_bytes,
            found,
            server,
        })
    }

    fn check_place(
        access: Access<'_>,
        session: &mut Session<'_>,
        facts: &NamespaceFacts<Server, D>,
    ) -> Result<(), TargetError> {
        D::check_access(access)?;
        let server = &facts.server;
        let at = access.node_name();
        if server.is_standby() {
            let what = format!("`{at}` is a {}, which only reads", server.role.to_lowercase());
            return Err(access.unfit(what, "make the data on the primary; the standby gets them from there"));
        }
        if let Some(place) = &server.place {
            let stands_against = match () {
                () if !place.is_online => Some("is not online"),
                () if !place.is_permanent => Some("is not for tables that stay"),
                () if OWN_TABLESPACES.contains(&place.name.as_str()) => {
                    Some("is the database's own, and a database stops whose own is full")
                }
                () => None,
            };
            if let Some(why) = stands_against {
                let what = format!("the tablespace {} of `{at}` {why}", place.name);
                return Err(access.unfit(what, "give the user another one: ALTER USER … DEFAULT TABLESPACE …"));
            }
        }
        if facts.found.is_some() {
            return Ok(());
        }
        // Our own tables may be left of a set-up that was ended at its very beginning.
        let there = <Self as Keeps<D>>::objects(session)?;
        let clash = there.into_keys().find(|name| !D::KIND.own_tables().contains(&name.as_str()));
        match clash.map_or_else(|| not_ours::<D>(session), |clash| Ok(Some(clash)))? {
            None => Ok(()),
            Some(clash) => {
                let what = format!("{} holds `{clash}`, which Plimsoll did not make", access.place());
                Err(access.unfit_here(what, "name"))
            }
        }
    }

    fn grants(access: Access<'_>, server: &Server) -> Vec<(String, String)> {
        let tablespace = server.place.as_ref().map(|place| place.name.as_str()).unwrap_or("USERS");
        let (is_pluggable, is_cluster) = circumstances(access);
        let is_used = |grant: &Grant| match grant.need {
            Need::Load | Need::Setup | Need::Figures | Need::Orders => true,
            Need::Container => is_pluggable,
            Need::Cluster => is_cluster,
            Need::ClusterContainer => is_pluggable && is_cluster,
            Need::Awr | Need::Statspack => false,
        };
        let grants =
            grants(access.namespace, tablespace).into_iter().filter(|grant| D::needs(grant.need) && is_used(grant));
        grants.map(|grant| (grant.statement, grant.why.to_owned())).collect()
    }

    fn room(session: &mut Session<'_>, server: &Server) -> Result<Option<u64>, TargetError> {
        D::room(session, server)
    }

    fn objects(session: &mut Session<'_>) -> Result<BTreeMap<String, u64>, TargetError> {
        let there = D::objects_there();
        let rows = session.query("list the tables", &there, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.into_iter().collect())
    }

    fn objects_of(data: &D) -> Vec<String> {
        data.tables_here().into_iter().chain([sql::LOCK_TABLE.to_owned()]).collect()
    }

    /// What marks the data as ours comes before all else.
    fn begin(session: &mut Session<'_>, data: &D) -> Result<(), TargetError> {
        let access = session.access();
        // The lock went with the data that were there.
        if !session.is_holding() {
            lock::<Connector>(access, session)?;
            if read_descriptor::<D>(session)?.is_some() {
                let what = format!("another process has made data in {} meanwhile", access.place());
                return Err(access.unfit(what, format!("look what they are: `{} info`", D::COMMAND)));
            }
        }
        let (sql, doing) = (sql_of(access, 0), "begin the set-up");
        for (_, create) in sql.create_own_tables(&D::KIND) {
            unless(session.execute(doing, &create, &[]), &[NAME_IS_USED])
                .map_err(|error| with_grants::<D>(access, error))?;
        }
        let descriptor = serde_json::to_string(data).expect("a descriptor has no value that JSON lacks");
        for table in [D::KIND.load_table, D::KIND.data_table] {
            session.execute(doing, &format!("DELETE FROM {}", sql.qualified(table)), &[])?;
        }
        let values: [&dyn ToDbValue; 3] = [&D::FORMAT_VERSION, &Stage::Loading.word(), &descriptor];
        session.execute(doing, &sql.insert_descriptor(&D::KIND), &values)?;
        Ok(session.connected()?.commit(doing)?)
    }

    fn finish(_: Access<'_>, session: &mut Session<'_>, _: Halt<'_>) -> Result<(), TargetError> {
        set_stage::<D>(session, Stage::Ready)?;
        let forget = Sql::drop_table(&sql_of(session.access(), 0).qualified(D::LOAD_TABLE));
        unless(session.execute("end the set-up", &forget, &[]), &[NO_TABLE])
    }

    fn remove(session: &mut Session<'_>, found: &Found<D>, halt: Halt<'_>) -> Result<(), TargetError> {
        let (access, doing) = (session.access(), "drop the data");
        let sql = sql_of(access, 0);
        session.execute(doing, sql::WAIT_FOR_TABLES, &[])?;
        set_stage::<D>(session, Stage::Dropping)?;
        let own = [D::KIND.load_table, D::KIND.data_table].map(|name| Sql::drop_table(&sql.qualified(name)));
        for statement in found.data.drops(access, session)?.into_iter().chain(own) {
            unless(session.execute_long(doing, statement, halt), &[NO_TABLE, NO_SEQUENCE, NO_OBJECT])?;
        }
        // The lock is on a table that other data may need; where there are none, nothing is left that anybody could spoil.
        let others: Option<u64> = session.first("look for other data", sql::DESCRIBED, &[], |row| row.get(0))?;
        session.release();
        if others == Some(0) {
            let lock = Sql::drop_table(&sql.qualified(sql::LOCK_TABLE));
            unless(session.execute_long(doing, lock, halt), &[NO_TABLE])?;
        }
        Ok(())
    }
}

/// The data that are described there.
fn read_descriptor<D: Kept>(session: &Session<'_>) -> Result<Option<Found<D>>, TargetError> {
    let access = session.access();
    let columns = D::KIND.descriptor_columns();
    let columns: Option<u64> = session.first("look for data", &columns, &[], |row| row.get(0))?;
    if columns != Some(3) {
        return Ok(None);
    }
    let sql = sql_of(access, 0);
    let read = sql.read_descriptor(&D::KIND);
    let rows: Vec<(u32, String, String)> =
        session.query("read which data is there", &read, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let table = sql.qualified(D::KIND.data_table);
    match rows.as_slice() {
        // A set-up that was ended at its very beginning.
        [] => Ok(None),
        [(format, stage, text)] => {
            let found = described::<_, D>(access, &table, (*format, stage, text, false))?;
            match found.data.fault() {
                None => Ok(Some(found)),
                Some(fault) => Err(damaged::<_, D>(access, &table, &fault)),
            }
        }
        rows => Err(damaged::<_, D>(access, &table, &format!("it has {} rows", rows.len()))),
    }
}

/// The data set that SLOB's own `setup.sh` has made, as far as this user may see it.
fn found_of_slob(session: &Session<'_>, block_bytes: u32) -> Result<Option<Found>, TargetError> {
    let doing = "look for SLOB's own tables";
    let owners: BTreeMap<String, u32> =
        session.query(doing, sql::SLOB_OWNERS, &[], |row| Ok((row.get(0)?, row.get(1)?)))?.into_iter().collect();
    let schemas = sql::slob_schemas(owners.keys().map(String::as_str));
    let access = session.access();
    if schemas == 0 {
        let what = format!("{} sees no table cf1 of user1, as SLOB's own `setup.sh` makes it", access.place());
        let grants = Sql::slob_grants(access.namespace, 0, true).join("; ");
        return Err(access.unfit(what, format!("have each of SLOB's users grant the right to its tables: {grants}")));
    }
    let sql = sql_of(access, block_bytes);
    let read = |row: &Row| row.get::<Option<u64>>(1);
    let last = session.first(doing, &sql.ends(0), &[], read)?.flatten().unwrap_or(0);
    if last == 0 {
        return Ok(None);
    }
    let has_scans = (0..schemas).all(|schema| owners.get(&sql::slob_owner(schema)).is_some_and(|tables| *tables > 0));
    let scan_blocks = match has_scans {
        true => session.first(doing, &sql.scan(0).text, &[], |row| row.get(0))?.unwrap_or(0),
        false => 0,
    };
    let data = DataSet {
        format_version: FORMAT_VERSION,
        plimsoll_version: "SLOB".to_owned(),
        created_at: "by SLOB".to_owned(),
        seed: 0,
        block_bytes,
        column_bytes: sql.column_bytes(),
        schemas,
        scale_blocks: last,
        scan_blocks,
        filling: Filling::Compressible,
    };
    Ok(Some(Found { data, stage: Stage::Ready, made_namespace: false }))
}

/// Bytes of a block of SLOB's own tables. Who may not see the parameter takes those of the user's own tablespace for them.
fn block_bytes_of_slob(session: &Session<'_>, own: Option<u32>) -> Result<u32, TargetError> {
    let doing = "ask for the size of a block";
    let of_parameter = match session.first::<String>(doing, sql::SLOB_BLOCK_BYTES, &[], |row| row.get(0)) {
        Err(error) if ServerError::refusal_in(&error).is_some() => None,
        found => found?.and_then(|text| text.parse().ok()),
    };
    of_parameter.or(own).ok_or_else(|| {
        let access = session.access();
        let what =
            format!("how large a block is on `{}` is not known: v$parameter is not to be read", access.node_name());
        access.unfit(what, format!("GRANT SELECT ON SYS.V_$PARAMETER TO {}", sql::quoted(access.namespace)))
    })
}

/// Notes how far data have come.
pub(super) fn set_stage<D: Kept>(session: &Session<'_>, stage: Stage) -> Result<(), TargetError> {
    let sql = sql_of(session.access(), 0);
    session.execute("note the stage", &sql.set_stage(&D::KIND), &[&stage.word()])?;
    Ok(session.connected()?.commit("note the stage")?)
}

/// Whether the user is in a pluggable database, and whether the database is one of a cluster. Who may not ask learns less; the
/// notes of a run name what is missing then.
fn circumstances(access: Access<'_>) -> (bool, bool) {
    let Ok(connected) = access.connector.connect(access.node) else { return (false, false) };
    let container = connected.first("ask for its container", CONTAINER, &[], |row| row.get::<Option<String>>(0));
    let number = container.ok().flatten().flatten().and_then(|number| number.parse::<u64>().ok());
    let called = connected.call("ask whether it is one of a cluster", IS_CLUSTER, &[&DB_TYPE_NUMBER]);
    let is_cluster = called.ok().and_then(|row| row.get::<u64>(0).ok());
    (number.is_some_and(|number| number > 1), is_cluster == Some(1))
}

/// A refusal for lack of rights, with the way to all that are needed.
pub(super) fn with_grants<D: Content>(access: Access<'_>, error: TargetError) -> TargetError {
    match number_in(&error) {
        Some(code) if LACKS_RIGHTS.contains(&code) => {
            let hint = format!(
                "`{} setup --dry-run` prints every GRANT that is needed, for an administrator to execute",
                D::COMMAND
            );
            access.unfit(error.to_string(), hint)
        }
        _ => error,
    }
}

/// A table with a name of one of our own three that has other columns.
fn not_ours<D: Kept>(session: &Session<'_>) -> Result<Option<String>, TargetError> {
    let found: Vec<(String, u64, u64)> =
        session.query("look whose tables there are", &D::KIND.own_columns(), &[], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let own = |name: &str| match name {
        sql::LOCK_TABLE => 1,
        name if name == D::KIND.load_table => 4,
        _ => 3,
    };
    Ok(found.into_iter().find(|(name, all, known)| (*all, *known) != (own(name), own(name))).map(|(name, ..)| name))
}
