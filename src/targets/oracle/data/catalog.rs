//! What is in the schema: Plimsoll's own tables, and what matters about the database and the user.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::session::{Access, Session};
use crate::targets::TargetError;
use crate::targets::database::Filling;
use crate::targets::oracle::OracleError;
use crate::targets::oracle::connect::Connector;
use crate::targets::oracle::driver::{Error, Row, ToDbValue};
use crate::targets::oracle::sql::{self, Layout, Sql, dictionary_name};
use crate::targets::sql::data::catalog::{
    DATA_TABLE, FORMAT_VERSION, LOAD_TABLE, NamespaceFacts, SqlData, damaged, described,
};
use crate::targets::sql::data::descriptor::{DataSet, Found, Stage, TableId, TableKind};
use crate::targets::sql::data::streams::Halt;

/// What a name that is already used, a row that is already there, and a table that is not there are called.
const NAME_IS_USED: u32 = 955;
const ROW_IS_THERE: u32 = 1;
pub(super) const NO_TABLE: u32 = 942;
/// Somebody has locked it.
const BUSY: u32 = 54;
/// Locks are held by a transaction of the two-phase kind, or waited for in vain.
const LOCK_DENIED: u32 = 1591;

/// Bytes that a block can have.
const BLOCK_BYTES: RangeInclusive<u32> = 2 << 10..=32 << 10;

/// What matters about the database and the user.
#[derive(Debug, Clone)]
pub(in crate::targets) struct Server {
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
    pub(super) place: Option<Place>,
}

/// The tablespace in which the user's tables are made.
#[derive(Debug, Clone)]
pub(super) struct Place {
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
            Ok(Place {
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

impl Access<'_> {
    /// Names and statements, once the size of blocks is known.
    pub(super) fn sql(&self, block_bytes: u32) -> Sql {
        Sql::new(self.namespace, block_bytes).by(self.connector.method())
    }
}

/// The name of the schema that an address means, as the data dictionary has it.
pub(in crate::targets) fn schema_of(user: &str) -> String {
    // A proxy user stands before the one whose schema it is: `proxy[owner]`.
    let owner = user.split_once('[').and_then(|(_, owner)| owner.strip_suffix(']')).unwrap_or(user);
    dictionary_name(owner)
}

impl SqlData for Connector {
    type Session<'a> = Session<'a>;
    type Server = Server;

    fn open(access: Access<'_>) -> Result<Session<'_>, TargetError> {
        Session::open(access)
    }

    fn look(session: &mut Session<'_>) -> Result<NamespaceFacts<Server>, TargetError> {
        let server = Server::ask(session)?;
        let access = session.access();
        let own_block_bytes = server.place.as_ref().map(|place| place.block_bytes);
        let (block_bytes, found) = match access.connector.method().layout {
            Layout::Plimsoll => {
                check_user(access, &server)?;
                let Some(block_bytes) = own_block_bytes else {
                    let what = format!("the user of {} has no tablespace", access.place());
                    let user = sql::quoted(access.namespace);
                    let hint = format!(
                        "give it one: ALTER USER {user} DEFAULT TABLESPACE … QUOTA UNLIMITED ON …; `plimsoll slob script oracle` \
                         prints every other right that is needed, and asks no server"
                    );
                    return Err(access.unfit(what, hint));
                };
                (block_bytes, read_descriptor(session)?)
            }
            // Whoever uses tables of others needs no room for any of its own.
            Layout::Slob => {
                let block_bytes = block_bytes_of_slob(session, own_block_bytes)?;
                (block_bytes, found_of_slob(session, block_bytes)?)
            }
        };
        Ok(NamespaceFacts {
            version: format!("{} {}", server.product, server.version),
            database: format!("{} in {}", access.namespace, server.container),
            block_bytes,
            found,
            server,
        })
    }

    /// Whoever can ask is there.
    fn has_namespace(_: &mut Session<'_>) -> Result<bool, TargetError> {
        Ok(true)
    }

    fn objects(session: &mut Session<'_>) -> Result<BTreeMap<String, u64>, TargetError> {
        let rows = session.query("list the tables", sql::OBJECTS, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.into_iter().collect())
    }

    /// Batches are sent as blocks, so there are no procedures.
    fn objects_of(data: &DataSet) -> Vec<String> {
        data.tables().map(TableId::name).chain([sql::LOCK_TABLE.to_owned()]).collect()
    }

    /// A row is locked by a session of its own, since each statement on the data dictionary ends a transaction.
    fn try_lock(session: &mut Session<'_>) -> Result<bool, TargetError> {
        let sql = session.access().sql(0);
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
        let (_, make) = &sql.create_own_tables()[0];
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
            Err(TargetError::Oracle(OracleError::Refused { .. })) => Ok(None),
            holder => holder,
        }
    }

    fn remove(session: &mut Session<'_>, found: &Found, halt: Halt<'_>) -> Result<(), TargetError> {
        let (access, doing) = (session.access(), "drop the data");
        let sql = access.sql(found.data.block_bytes);
        session.execute(doing, sql::WAIT_FOR_TABLES, &[])?;
        set_stage(session, Stage::Dropping)?;
        let drop = |session: &mut Session<'_>, table: &str| {
            unless(session.execute_long(doing, Sql::drop_table(table), halt), &[NO_TABLE])
        };
        for table in found.data.tables() {
            drop(session, &name_of(&sql, table))?;
        }
        // The lock is on one of them; nothing is left by then that anybody could spoil.
        for (at, name) in Sql::own_tables().into_iter().enumerate() {
            if at + 1 == Sql::own_tables().len() {
                session.release();
            }
            drop(session, &sql.qualified(name))?;
        }
        Ok(())
    }
}

/// A table, qualified.
pub(super) fn name_of(sql: &Sql, table: TableId) -> String {
    match table.kind {
        TableKind::Rows => sql.table(table.schema),
        TableKind::Scan => sql.scan_table(table.schema),
    }
}

/// What was done, or that it need not be done, as one of these errors says.
pub(super) fn unless(done: Result<u64, TargetError>, numbers: &[u32]) -> Result<(), TargetError> {
    match done {
        Err(TargetError::Oracle(error)) if error.number().is_some_and(|number| numbers.contains(&number)) => Ok(()),
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

/// The data set that is described there.
pub(super) fn read_descriptor(session: &Session<'_>) -> Result<Option<Found>, TargetError> {
    let access = session.access();
    let columns: Option<u64> = session.first("look for data", sql::DESCRIPTOR_COLUMNS, &[], |row| row.get(0))?;
    if columns != Some(3) {
        return Ok(None);
    }
    let sql = access.sql(0);
    let rows: Vec<(u32, String, String)> =
        session.query("read what data are there", &sql.read_descriptor(), &[], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let table = sql.qualified(DATA_TABLE);
    match rows.as_slice() {
        // A set-up that was ended at its very beginning.
        [] => Ok(None),
        [(format, stage, text)] => {
            let found = described(access, &table, (*format, stage, text, false))?;
            let Found { data: DataSet { block_bytes, .. }, .. } = &found;
            match BLOCK_BYTES.contains(block_bytes) {
                true => Ok(Some(found)),
                false => Err(damaged::<_, DataSet>(access, &table, &format!("it has blocks of {block_bytes} bytes"))),
            }
        }
        rows => Err(damaged::<_, DataSet>(access, &table, &format!("it has {} rows", rows.len()))),
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
    let sql = access.sql(block_bytes);
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
        Err(TargetError::Oracle(OracleError::Refused { .. })) => None,
        found => found?.and_then(|text| text.parse().ok()),
    };
    of_parameter.or(own).ok_or_else(|| {
        let access = session.access();
        let what =
            format!("how large a block is on `{}` is not known: v$parameter is not to be read", access.node_name());
        access.unfit(what, format!("GRANT SELECT ON SYS.V_$PARAMETER TO {}", sql::quoted(access.namespace)))
    })
}

/// Begins a set-up: what marks the data as ours comes before all else.
pub(super) fn begin(session: &Session<'_>, data: &DataSet) -> Result<(), TargetError> {
    let sql = session.access().sql(data.block_bytes);
    let doing = "begin the set-up";
    for (_, create) in sql.create_own_tables() {
        unless(session.execute(doing, &create, &[]), &[NAME_IS_USED])?;
    }
    let descriptor = serde_json::to_string(data).expect("a descriptor has no value that JSON lacks");
    for table in [LOAD_TABLE, DATA_TABLE] {
        session.execute(doing, &format!("DELETE FROM {}", sql.qualified(table)), &[])?;
    }
    let values: [&dyn ToDbValue; 3] = [&FORMAT_VERSION, &Stage::Loading.word(), &descriptor];
    session.execute(doing, &sql.insert_descriptor(), &values)?;
    Ok(session.connected()?.commit(doing)?)
}

/// Notes how far a data set has come.
pub(super) fn set_stage(session: &Session<'_>, stage: Stage) -> Result<(), TargetError> {
    let sql = session.access().sql(0);
    session.execute("note the stage", &sql.set_stage(), &[&stage.word()])?;
    Ok(session.connected()?.commit("note the stage")?)
}
