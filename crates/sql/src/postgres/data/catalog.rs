//! What is in the namespace: Plimsoll's own two tables, and whose the rest is.

use std::collections::BTreeMap;

use tokio_postgres::{Row, SimpleQueryMessage};

use super::descriptor::{DataSet, TableId};
use super::session::{Access, Halt, Session};
use crate::Product;
use crate::data::catalog::{Dropped, Keeps, NamespaceFacts, SqlData, damaged, described};
use crate::data::{Content, Found, Stage};
use crate::postgres::sql::{identifier, literal};
use crate::postgres::{Connector, POSTGRES};
use targets::TargetError;

/// Tables that are dropped in one transaction: each holds locks until its end, of which a server has few.
const DROPPED_AT_ONCE: usize = 16;
/// How long to wait for sessions that use a table; then it is in use, and dropping it would only make them wait too.
const LOCK_TIMEOUT: &str = "5s";
/// Oldest server that is supported, as `server_version_num` has it.
const OLDEST_VERSION: i32 = 130_000;

/// What matters about the server and the role.
#[derive(Debug, Clone)]
pub struct Server {
    pub(super) version: String,
    pub(super) block_bytes: u32,
    pub(super) database: String,
    pub(super) role: String,
    pub(super) data_checksums: bool,
    pub(super) autovacuum: bool,
    /// Bytes of its buffers.
    pub(super) shared_buffers: u64,
    /// The checking function of amcheck, once it was looked for.
    pub(super) amcheck: Option<String>,
    in_recovery: bool,
    may_create_namespace: bool,
    /// The schema, if it is there.
    namespace: Option<Namespace>,
    /// Something that is not ours and has a name that set-up uses.
    clash: Option<String>,
}

impl Server {
    fn ask(session: &Session<'_>) -> Result<Self, TargetError> {
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
            amcheck: None,
            in_recovery: row.get(6),
            may_create_namespace: row.get(7),
            namespace: None,
            clash: None,
        };
        if row.get::<_, i32>(8) < OLDEST_VERSION {
            let what = format!("`{}` is PostgreSQL {}", session.access().node_name(), server.version);
            return Err(session.access().unfit(what, "use a server of version 13 or later"));
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

impl SqlData for Connector {
    const PRODUCT: &'static Product = POSTGRES;
    type Session<'a> = Session<'a>;
    type Server = Server;

    fn node_names(&self) -> Vec<String> {
        self.nodes().iter().map(ToString::to_string).collect()
    }

    fn open(access: Access<'_>) -> Result<Session<'_>, TargetError> {
        Session::open(access)
    }

    fn execute(session: &mut Session<'_>, doing: &str, statement: &str, halt: Halt<'_>) -> Result<(), TargetError> {
        Session::execute(session, doing, statement, halt)
    }

    fn ask(
        session: &mut Session<'_>,
        doing: &str,
        statement: &str,
        halt: Halt<'_>,
    ) -> Result<Vec<Vec<Option<String>>>, TargetError> {
        let messages = session.wait(doing, halt, session.client().simple_query(statement))?;
        let row = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
            }
            _ => None,
        };
        Ok(messages.iter().filter_map(row).collect())
    }

    fn has_namespace(session: &mut Session<'_>) -> Result<bool, TargetError> {
        let ask = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
        Ok(session.query_one("look for the schema", ask, &[&session.access().namespace])?.get(0))
    }

    fn try_lock(session: &mut Session<'_>) -> Result<bool, TargetError> {
        let key = lock_key(session.access());
        Ok(session.query_one("lock the data", "SELECT pg_try_advisory_lock($1)", &[&key])?.get(0))
    }

    fn lock_holder(session: &mut Session<'_>) -> Result<Option<String>, TargetError> {
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
}

impl<D: Dropped<Connector>> Keeps<D> for Connector {
    fn look(session: &mut Session<'_>) -> Result<NamespaceFacts<Server, D>, TargetError> {
        look(session)
    }

    fn check_place(
        access: Access<'_>,
        _: &mut Session<'_>,
        facts: &NamespaceFacts<Server, D>,
    ) -> Result<(), TargetError> {
        check_place(access, &facts.server)
    }

    fn objects(session: &mut Session<'_>) -> Result<BTreeMap<String, u64>, TargetError> {
        let ask = "SELECT relname::text, pg_total_relation_size(oid) FROM pg_class \
                   WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relname ~ $2 \
                   UNION ALL SELECT DISTINCT proname::text, 0 FROM pg_proc \
                   WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND proname ~ $2";
        let rows = session.query("list the tables", ask, &[&session.access().namespace, &D::names()], Halt::NEVER)?;
        // A relation that somebody drops meanwhile has no size.
        Ok(rows.iter().map(|row| (row.get(0), row.get::<_, Option<i64>>(1).unwrap_or(0).unsigned_abs())).collect())
    }

    /// All of it or nothing is there afterwards.
    fn begin(session: &mut Session<'_>, data: &D) -> Result<(), TargetError> {
        let access = session.access();
        // What was there may have been removed just now.
        let server = look::<D>(session)?.server;
        check_place(access, &server)?;
        let make_namespace = server.namespace.is_none();
        let descriptor = serde_json::to_string(data).expect("a descriptor has no value that JSON lacks");
        let namespace =
            if make_namespace { format!("CREATE SCHEMA {};", identifier(access.namespace)) } else { String::new() };
        let (data_table, load_table) = (qualified(access, D::DATA_TABLE), load_table::<D>(access));
        let columns: Vec<String> =
            D::LOAD_COLUMNS.iter().map(|(name, kind)| format!("{} {kind} NOT NULL", identifier(name))).collect();
        let key: Vec<String> = D::LOAD_COLUMNS[..D::LOAD_KEY].iter().map(|(name, _)| identifier(name)).collect();
        let statements = format!(
            "BEGIN; {namespace}
             CREATE TABLE {data_table} (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), format integer NOT NULL, \
             stage text NOT NULL, descriptor text NOT NULL, made_namespace boolean NOT NULL);
             CREATE TABLE {load_table} ({columns}, PRIMARY KEY ({key}));
             INSERT INTO {data_table} (format, stage, descriptor, made_namespace) VALUES ({format}, {stage}, {descriptor}, \
             {make_namespace});
             COMMIT",
            columns = columns.join(", "),
            key = key.join(", "),
            format = D::FORMAT_VERSION,
            stage = literal(Stage::Loading.word()),
            descriptor = literal(&descriptor),
        );
        session.execute("begin the set-up", &statements, Halt::NEVER)
    }
    /// Waiting for this commit makes all those before it durable too.
    fn finish(_: Access<'_>, session: &mut Session<'_>, halt: Halt<'_>) -> Result<(), TargetError> {
        let access = session.access();
        let statements = format!(
            "SET synchronous_commit = on; BEGIN; {}; DROP TABLE {}; COMMIT",
            set_stage::<D>(access, Stage::Ready),
            load_table::<D>(access)
        );
        session.execute("end the set-up", &statements, halt)
    }

    fn remove(session: &mut Session<'_>, found: &Found<D>, halt: Halt<'_>) -> Result<(), TargetError> {
        let (access, doing) = (session.access(), "drop the data");
        let begin = format!("SET lock_timeout = '{LOCK_TIMEOUT}'; {}", set_stage::<D>(access, Stage::Dropping));
        session.execute(doing, &begin, halt)?;
        for statements in found.data.drops(access, session)?.chunks(DROPPED_AT_ONCE) {
            session.execute(doing, &statements.join("; "), halt)?;
        }
        let own = qualified(access, D::DATA_TABLE);
        let mut last = format!("DROP TABLE IF EXISTS {}; DROP TABLE {own}", load_table::<D>(access));
        if found.made_namespace && is_empty_but_for_marks::<D>(session)? {
            last.push_str(&format!("; DROP SCHEMA {}", identifier(access.namespace)));
        }
        session.execute(doing, &format!("{last}; SET lock_timeout = 0"), halt)
    }
}

/// Looks what there is of data of this kind, and changes nothing.
fn look<D: Content>(session: &Session<'_>) -> Result<NamespaceFacts<Server, D>, TargetError> {
    let mut server = Server::ask(session)?;
    let access = session.access();
    let ask = "SELECT has_schema_privilege(oid, 'CREATE'), has_schema_privilege(oid, 'USAGE') FROM pg_namespace \
               WHERE nspname = $1";
    let rows = session.query("look for the schema", ask, &[&access.namespace], Halt::NEVER)?;
    server.namespace = rows.first().map(|row| Namespace { may_create: row.get(0), may_use: row.get(1) });
    let found = match server.namespace {
        None => None,
        Some(Namespace { may_use: false, .. }) => return Err(lacks(access, &server, "USAGE")),
        Some(_) => read_descriptor(session)?,
    };
    if found.is_none() && server.namespace.is_some() {
        server.clash = first_clash::<D>(session)?;
    }
    Ok(NamespaceFacts {
        version: format!("PostgreSQL {}", server.version),
        database: format!("{}, schema {}", server.database, access.namespace),
        block_bytes: server.block_bytes,
        server,
        found,
    })
}

/// Refuses a place where no data can be made.
fn check_place(access: Access<'_>, server: &Server) -> Result<(), TargetError> {
    let Server { role, database, .. } = server;
    if server.in_recovery {
        let what = format!("`{}` is a standby, which is read-only", access.node_name());
        return Err(access.unfit(what, "name the primary"));
    }
    if let Some(clash) = &server.clash {
        let what = format!("the schema `{}` was not made by Plimsoll: it holds `{clash}`", access.namespace);
        return Err(access.unfit_here(what, "name"));
    }
    match server.namespace {
        Some(Namespace { may_create: true, .. }) => Ok(()),
        Some(_) => Err(lacks(access, server, "CREATE")),
        None if server.may_create_namespace => Ok(()),
        None => {
            let what = format!("the role `{role}` may not make a schema in the database `{database}`");
            let (role, database) = (identifier(role), identifier(database));
            let hint = format!(
                "have its owner execute: GRANT CREATE ON DATABASE {database} TO {role}; or: CREATE SCHEMA {} \
                 AUTHORIZATION {role}",
                identifier(access.namespace)
            );
            Err(access.unfit(what, hint))
        }
    }
}

fn lacks(access: Access<'_>, server: &Server, right: &str) -> TargetError {
    let what = format!("the role `{}` has not the right {right} on the schema `{}`", server.role, access.namespace);
    let (namespace, role) = (identifier(access.namespace), identifier(&server.role));
    let hint = format!("have its owner execute: GRANT USAGE, CREATE ON SCHEMA {namespace} TO {role}");
    access.unfit(what, hint)
}

/// Something in the namespace that has one of our names.
fn first_clash<D: Content>(session: &Session<'_>) -> Result<Option<String>, TargetError> {
    let ask = "SELECT name FROM ( \
               SELECT relnamespace AS space, relname::text AS name FROM pg_class \
               UNION ALL SELECT pronamespace, proname::text FROM pg_proc \
               UNION ALL SELECT typnamespace, typname::text FROM pg_type) there \
               WHERE space = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND name ~ $2 ORDER BY name LIMIT 1";
    let rows = session.query("look into the schema", ask, &[&session.access().namespace, &D::names()], Halt::NEVER)?;
    Ok(rows.first().map(|row| row.get(0)))
}

fn read_descriptor<D: Content>(session: &Session<'_>) -> Result<Option<Found<D>>, TargetError> {
    let access = session.access();
    // A table of the same name that is somebody else's lacks our columns, and then clashes.
    let ask = "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
               JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2 \
               AND c.relkind = 'r' AND a.attname IN ('format', 'stage', 'descriptor', 'made_namespace')";
    let columns: i64 = session.query_one("look for data", ask, &[&access.namespace, &D::DATA_TABLE])?.get(0);
    if columns != 4 {
        return Ok(None);
    }
    let table = qualified(access, D::DATA_TABLE);
    let read = format!("SELECT format, stage, descriptor, made_namespace FROM {table}");
    let rows = session.query("read which data is there", &read, &[], Halt::NEVER)?;
    let [row] = rows.as_slice() else {
        return Err(damaged::<_, D>(access, &table, &format!("it has {} rows", rows.len())));
    };
    let format = row.get::<_, i32>(0).unsigned_abs();
    described(access, &table, (format, row.get(1), row.get(2), row.get(3))).map(Some)
}

fn qualified(access: Access<'_>, name: &str) -> String {
    format!("{}.{}", identifier(access.namespace), identifier(name))
}

/// The statement that notes how far a data set has come.
pub(super) fn set_stage<D: Content>(access: Access<'_>, stage: Stage) -> String {
    format!("UPDATE {} SET stage = {}", qualified(access, D::DATA_TABLE), literal(stage.word()))
}

/// Advisory locks are numbers, shared by everything in the database.
fn lock_key(access: Access<'_>) -> i64 {
    let name = format!("plimsoll {}", access.namespace);
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, name.as_bytes()) as i64
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

/// The marks of what has been loaded: qualified and quoted.
pub(super) fn load_table<D: Content>(access: Access<'_>) -> String {
    qualified(access, D::LOAD_TABLE)
}

/// Whether nothing is in the namespace but the two tables of these data's marks and what hangs on them.
fn is_empty_but_for_marks<D: Content>(session: &Session<'_>) -> Result<bool, TargetError> {
    // Everything in a schema depends on it: one catalogue reports on objects of every kind.
    let ask = "SELECT NOT EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass \
               AND d.refobjid = (SELECT oid FROM pg_namespace WHERE nspname = $1) \
               AND NOT (d.classid = 'pg_class'::regclass AND d.objid IN (SELECT c.oid FROM pg_class c \
               WHERE c.relname = ANY($2))))";
    let own = [D::DATA_TABLE, D::LOAD_TABLE].as_slice();
    Ok(session.query_one("look what else is in the schema", ask, &[&session.access().namespace, &own])?.get(0))
}
