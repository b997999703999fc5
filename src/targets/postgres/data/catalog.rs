//! What is in the namespace: Plimsoll's own two tables, and whose the rest is.

use tokio_postgres::Row;

use super::descriptor::{DataSet, FORMAT_VERSION, TableId};
use super::session::{Access, Halt, Session};
use crate::targets::error::TargetError;
use crate::targets::postgres::sql::{Sql, identifier, literal};
pub use crate::targets::sql::data::descriptor::{Found, Stage};
use crate::units::Bytes;

/// The table of the descriptor.
pub(super) const DATA_TABLE: &str = "plimsoll_data";
/// The table of what has been loaded.
pub(super) const LOAD_TABLE: &str = "plimsoll_load";
/// All names that a set-up may use, as a regular expression of PostgreSQL's.
const OUR_NAMES: &str = "^(plimsoll_(data|load)(_pkey)?|(slob|scan)_[0-9]+|slob_[0-9]+_key|slob_batch_[0-9]+)$";
/// Oldest server that is supported, as `server_version_num` has it.
const OLDEST_VERSION: i32 = 130_000;

/// Looks for a data set, whole or not; changes nothing.
///
/// # Errors
/// When the server cannot be reached, or what is there cannot be read.
pub fn find(access: &Access<'_>) -> Result<Option<Found>, TargetError> {
    let session = Session::open(*access)?;
    Ok(Ground::look(&session)?.found)
}

/// The data set, which must be whole.
///
/// # Errors
/// When it is missing or unfinished, or as [`find`].
pub fn load(access: &Access<'_>) -> Result<DataSet, TargetError> {
    let found = require(*access, find(access)?)?;
    match found.stage {
        Stage::Ready => Ok(found.data),
        stage => Err(unfinished(*access, stage)),
    }
}

/// Size of a block of the server.
///
/// # Errors
/// When the server cannot be reached.
pub fn block_bytes(access: &Access<'_>) -> Result<u32, TargetError> {
    Ok(Server::ask(&Session::open(*access)?)?.block_bytes)
}

/// # Errors
/// When there is no data set.
pub(super) fn require(access: Access<'_>, found: Option<Found>) -> Result<Found, TargetError> {
    found.ok_or_else(|| {
        let what = format!("no SLOB data in the schema `{}` on `{}`", access.namespace, access.node_name());
        access.unfit(
            what,
            Some("make some: `plimsoll slob setup`, or name another schema with `--db-schema NAME`".to_owned()),
        )
    })
}

pub(super) fn unfinished(access: Access<'_>, stage: Stage) -> TargetError {
    let (namespace, node) = (access.namespace, access.node_name());
    match stage {
        Stage::Dropping => access.unfit(
            format!("the SLOB data in the schema `{namespace}` on `{node}` are half removed"),
            Some("remove the rest: `plimsoll slob drop`".to_owned()),
        ),
        Stage::Loading | Stage::Ready => access.unfit(
            format!("the set-up of the schema `{namespace}` on `{node}` was never finished"),
            Some("run the same `plimsoll slob setup` again; it goes on where it was".to_owned()),
        ),
    }
}

/// What matters about the server and the role.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) version: String,
    pub(super) block_bytes: u32,
    pub(super) database: String,
    pub(super) role: String,
    pub(super) data_checksums: bool,
    pub(super) autovacuum: bool,
    /// Bytes of its buffers.
    pub(super) shared_buffers: u64,
    in_recovery: bool,
    may_create_namespace: bool,
}

impl Server {
    pub(super) fn ask(session: &Session<'_>) -> Result<Self, TargetError> {
        let ask = "SELECT current_setting('server_version'), current_setting('block_size')::int, \
                   current_database()::text, current_user::text, current_setting('data_checksums') = 'on', \
                   current_setting('autovacuum') = 'on', pg_is_in_recovery(), \
                   has_database_privilege(current_database(), 'CREATE'), current_setting('server_version_num')::int, \
                   pg_size_bytes(current_setting('shared_buffers'))";
        let row = session.query_one("ask for its settings", ask, &[])?;
        let server = Self {
            version: row.get(0),
            block_bytes: row.get::<_, i32>(1).unsigned_abs(),
            database: row.get(2),
            role: row.get(3),
            data_checksums: row.get(4),
            autovacuum: row.get(5),
            shared_buffers: row.get::<_, i64>(9).unsigned_abs(),
            in_recovery: row.get(6),
            may_create_namespace: row.get(7),
        };
        if row.get::<_, i32>(8) < OLDEST_VERSION {
            let what = format!("`{}` is PostgreSQL {}", session.access().node_name(), server.version);
            return Err(session.access().unfit(what, Some("use a server of version 13 or later".to_owned())));
        }
        Ok(server)
    }
}

/// The schema of the database.
#[derive(Debug, Clone, Copy)]
struct Namespace {
    may_create: bool,
    may_use: bool,
}

/// What is there.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    pub(super) server: Server,
    pub(super) found: Option<Found>,
    namespace: Option<Namespace>,
    /// Something that is not ours and has a name that set-up uses.
    clash: Option<String>,
}

impl Ground {
    pub(super) fn look(session: &Session<'_>) -> Result<Self, TargetError> {
        let server = Server::ask(session)?;
        let access = session.access();
        let ask = "SELECT has_schema_privilege(oid, 'CREATE'), has_schema_privilege(oid, 'USAGE') FROM pg_namespace \
                   WHERE nspname = $1";
        let rows = session.query("look for the schema", ask, &[&access.namespace], Halt::NEVER)?;
        let Some(row) = rows.first() else {
            return Ok(Self { server, found: None, namespace: None, clash: None });
        };
        let namespace = Namespace { may_create: row.get(0), may_use: row.get(1) };
        if !namespace.may_use {
            return Err(lacks(access, &server, "USAGE"));
        }
        let found = read_descriptor(session)?;
        let clash = if found.is_some() { None } else { first_clash(session)? };
        Ok(Self { server, found, namespace: Some(namespace), clash })
    }

    /// Whether the schema of the database is there.
    pub(super) fn has_namespace(&self) -> bool {
        self.namespace.is_some()
    }

    /// Refuses a place where no data can be made.
    pub(super) fn check_for_setup(&self, access: Access<'_>) -> Result<(), TargetError> {
        let Server { role, database, .. } = &self.server;
        if self.server.in_recovery {
            let what = format!("`{}` is a standby, which nobody can write to", access.node_name());
            return Err(access.unfit(what, Some("name the primary".to_owned())));
        }
        if let Some(clash) = &self.clash {
            let what = format!("the schema `{}` was not made by Plimsoll: it holds `{clash}`", access.namespace);
            return Err(access.unfit(what, Some("name another schema: `--db-schema NAME`".to_owned())));
        }
        match self.namespace {
            Some(Namespace { may_create: true, .. }) => Ok(()),
            Some(_) => Err(lacks(access, &self.server, "CREATE")),
            None if self.server.may_create_namespace => Ok(()),
            None => {
                let what = format!("the role `{role}` may not make a schema in the database `{database}`");
                let (role, database) = (identifier(role), identifier(database));
                let hint = format!(
                    "have its owner execute: GRANT CREATE ON DATABASE {database} TO {role}; or: CREATE SCHEMA {} \
                     AUTHORIZATION {role}",
                    identifier(access.namespace)
                );
                Err(access.unfit(what, Some(hint)))
            }
        }
    }
}

fn lacks(access: Access<'_>, server: &Server, right: &str) -> TargetError {
    let what = format!("the role `{}` has not the right {right} on the schema `{}`", server.role, access.namespace);
    let (namespace, role) = (identifier(access.namespace), identifier(&server.role));
    let hint = format!("have its owner execute: GRANT USAGE, CREATE ON SCHEMA {namespace} TO {role}");
    access.unfit(what, Some(hint))
}

/// Something in the namespace that has one of our names.
fn first_clash(session: &Session<'_>) -> Result<Option<String>, TargetError> {
    let ask = "SELECT name FROM ( \
               SELECT relnamespace AS space, relname::text AS name FROM pg_class \
               UNION ALL SELECT pronamespace, proname::text FROM pg_proc \
               UNION ALL SELECT typnamespace, typname::text FROM pg_type) there \
               WHERE space = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND name ~ $2 ORDER BY name LIMIT 1";
    let rows = session.query("look into the schema", ask, &[&session.access().namespace, &OUR_NAMES], Halt::NEVER)?;
    Ok(rows.first().map(|row| row.get(0)))
}

fn read_descriptor(session: &Session<'_>) -> Result<Option<Found>, TargetError> {
    let access = session.access();
    // A table of the same name that is somebody else's lacks our columns, and then clashes.
    let ask = "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
               JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2 \
               AND c.relkind = 'r' AND a.attname IN ('format', 'stage', 'descriptor', 'made_namespace')";
    let columns: i64 = session.query_one("look for data", ask, &[&access.namespace, &DATA_TABLE])?.get(0);
    if columns != 4 {
        return Ok(None);
    }
    let table = qualified(access, DATA_TABLE);
    let read = format!("SELECT format, stage, descriptor, made_namespace FROM {table}");
    let rows = session.query("read what data are there", &read, &[], Halt::NEVER)?;
    let damaged = |what: String| {
        let hint = "drop the schema by hand, or name another one: `--db-schema NAME`";
        access.unfit(format!("the descriptor in {table} is damaged: {what}"), Some(hint.to_owned()))
    };
    let [row] = rows.as_slice() else { return Err(damaged(format!("it has {} rows", rows.len()))) };
    let format = row.get::<_, i32>(0).unsigned_abs();
    if format != FORMAT_VERSION {
        let what = format!("{table} describes data of format {format}; this program reads format {FORMAT_VERSION}");
        let hint = "use the version of Plimsoll that made them, or name another schema: `--db-schema NAME`";
        return Err(access.unfit(what, Some(hint.to_owned())));
    }
    let word: String = row.get(1);
    let stage = Stage::ALL.into_iter().find(|stage| stage.word() == word);
    let stage = stage.ok_or_else(|| damaged(format!("its stage is `{word}`")))?;
    let data: DataSet = serde_json::from_str(row.get(2)).map_err(|error| damaged(error.to_string()))?;
    if data.schemas == 0 || data.scale_blocks == 0 || data.block_bytes == 0 {
        return Err(damaged("it describes no data".to_owned()));
    }
    Ok(Some(Found { data, stage, made_namespace: row.get(3) }))
}

fn qualified(access: Access<'_>, name: &str) -> String {
    format!("{}.{}", identifier(access.namespace), identifier(name))
}

/// Begins a set-up: all of it or nothing is there afterwards.
pub(super) fn begin(session: &Session<'_>, data: &DataSet, make_namespace: bool) -> Result<(), TargetError> {
    let access = session.access();
    let descriptor = serde_json::to_string(data).expect("a descriptor has no value that JSON lacks");
    let namespace =
        if make_namespace { format!("CREATE SCHEMA {};", identifier(access.namespace)) } else { String::new() };
    let (data_table, load_table) = (qualified(access, DATA_TABLE), qualified(access, LOAD_TABLE));
    let statements = format!(
        "BEGIN; {namespace}
         CREATE TABLE {data_table} (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), format integer NOT NULL, \
         stage text NOT NULL, descriptor text NOT NULL, made_namespace boolean NOT NULL);
         CREATE TABLE {load_table} (is_scan boolean, schema integer, first_place bigint, places bigint NOT NULL, \
         PRIMARY KEY (is_scan, schema, first_place));
         INSERT INTO {data_table} (format, stage, descriptor, made_namespace) VALUES ({FORMAT_VERSION}, {stage}, \
         {descriptor}, {make_namespace});
         COMMIT",
        stage = literal(Stage::Loading.word()),
        descriptor = literal(&descriptor),
    );
    session.execute("begin the set-up", &statements, Halt::NEVER)
}

/// The statement that notes how far a data set has come.
pub(super) fn set_stage(access: Access<'_>, stage: Stage) -> String {
    format!("UPDATE {} SET stage = {}", qualified(access, DATA_TABLE), literal(stage.word()))
}

/// Refuses to work on data that another process makes or removes. The lock is held as long as the session lives.
pub(super) fn lock(session: &Session<'_>) -> Result<(), TargetError> {
    let access = session.access();
    let row = session.query_one("lock the data", "SELECT pg_try_advisory_lock($1)", &[&lock_key(access)])?;
    if row.get(0) {
        return Ok(());
    }
    let by = lock_holder(session)?.map(|by| format!(" ({by})")).unwrap_or_default();
    let what = format!("another process makes or removes the data in the schema `{}`{by}", access.namespace);
    Err(access.unfit(what, Some("wait until it ends, or name another schema: `--db-schema NAME`".to_owned())))
}

/// Who makes or removes the data just now.
pub(super) fn lock_holder(session: &Session<'_>) -> Result<Option<String>, TargetError> {
    // The server shows a key of 64 bits in two halves.
    let ask = "SELECT a.pid, a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
               WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 \
               AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
               AND (l.classid::bigint << 32 | l.objid::bigint) = $1 AND a.pid <> pg_backend_pid() LIMIT 1";
    let rows = session.query("look who uses the data", ask, &[&lock_key(session.access())], Halt::NEVER)?;
    Ok(rows.first().map(|row| {
        let (pid, name): (i32, Option<String>) = (row.get(0), row.get(1));
        let name = name.filter(|name| !name.is_empty()).map(|name| format!(", {name}")).unwrap_or_default();
        format!("session {pid} of the server{name}")
    }))
}

/// Advisory locks are numbers, shared by everything in the database.
fn lock_key(access: Access<'_>) -> i64 {
    let name = format!("plimsoll {}", access.namespace);
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, name.as_bytes()) as i64
}

/// Bare names of the relations and procedures of the namespace that have one of our names, with their sizes.
pub(super) fn our_objects(session: &Session<'_>) -> Result<Vec<(String, u64)>, TargetError> {
    let ask = "SELECT relname::text, pg_total_relation_size(oid) FROM pg_class \
               WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relname ~ $2 \
               UNION ALL SELECT DISTINCT proname::text, 0 FROM pg_proc \
               WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND proname ~ $2";
    let rows = session.query("list the tables", ask, &[&session.access().namespace, &OUR_NAMES], Halt::NEVER)?;
    // A relation that somebody drops meanwhile has no size.
    Ok(rows.iter().map(|row| (row.get(0), row.get::<_, Option<i64>>(1).unwrap_or(0).unsigned_abs())).collect())
}

/// Blocks of each table that is there.
pub(super) fn table_pages(session: &Session<'_>, data: &DataSet) -> Result<Vec<(TableId, u64)>, TargetError> {
    let tables: Vec<TableId> = data.tables().collect();
    let names: Vec<String> = tables.iter().map(|table| table.name()).collect();
    let ask = "SELECT t.place - 1, pg_relation_size(c.oid) FROM unnest($2::text[]) WITH ORDINALITY t(name, place) \
               JOIN pg_class c ON c.relname = t.name \
               WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)";
    let values = (session.access().namespace, names);
    let rows = session.query("read the sizes of the tables", ask, &[&values.0, &values.1], Halt::NEVER)?;
    let pages = |row: &Row| {
        let bytes: Option<i64> = row.get(1);
        bytes.unwrap_or(0).unsigned_abs() / u64::from(data.block_bytes)
    };
    Ok(rows.iter().map(|row| (tables[row.get::<_, i64>(0) as usize], pages(row))).collect())
}

/// Refuses blocks of another size than the server's.
pub(super) fn check_block_bytes(access: Access<'_>, server: &Server, asked: u32) -> Result<(), TargetError> {
    if asked == server.block_bytes {
        return Ok(());
    }
    let (asked, there) = (Bytes(asked.into()), Bytes(server.block_bytes.into()));
    let what = format!("blocks of {asked} were asked for, and `{}` has blocks of {there}", access.node_name());
    Err(access.unfit(what, Some(format!("leave the block size away, or ask for {there}"))))
}

/// The marks of what has been loaded: qualified and quoted.
pub(super) fn load_table(access: Access<'_>) -> String {
    qualified(access, LOAD_TABLE)
}

/// Names that [`our_objects`] gives for a whole data set.
pub(super) fn expected_objects(data: &DataSet) -> Vec<String> {
    let tables = data.tables().map(TableId::name);
    let rest = (0..data.schemas).flat_map(|schema| [Sql::index_name(schema), Sql::procedure_name(schema)]);
    tables.chain(rest).collect()
}
