//! What is in the database: Plimsoll's own two tables, and whose the rest is.

use std::collections::BTreeMap;

use mysql_async::{Row, Value};

use super::{Access, NO_LOCK_TIMEOUT_S, Session};
use crate::data::catalog::{Dropped, Keeps, NamespaceFacts, SqlData, damaged, described};
use crate::data::streams::Halt;
use crate::data::{Content, Found, Stage};
use crate::mysql::sql::quoted;
use crate::mysql::{Connector, LACKS_RIGHTS, MYSQL, number};
use crate::{Product, ServerError};
use targets::TargetError;

/// How long to wait for sessions that use a table that is to be dropped, in seconds; then it is in use.
const LOCK_TIMEOUT_S: u32 = 5;
/// The lock of whoever changes the server's `innodb_fill_factor`.
const FILL_FACTOR_LOCK: &str = "plimsoll fill factor";
/// Oldest MariaDB and MySQL that are supported.
const OLDEST_MARIADB: [u32; 3] = [10, 5, 0];
const OLDEST_MYSQL: [u32; 3] = [8, 0, 0];
/// First MySQL that keeps rules of columns.
const FIRST_WITH_CHECKS: [u32; 3] = [8, 0, 16];

/// What matters about the server and the user.
#[derive(Debug, Clone)]
pub struct Server {
    pub(super) version: String,
    pub(super) page_bytes: u32,
    pub(super) user: String,
    pub(super) buffer_pool_bytes: u64,
    /// How full a table is when it is rebuilt, in percent.
    pub(super) fill_factor: u32,
    /// Whether rows may be sent as a file.
    pub(super) takes_files: bool,
    pub(super) is_read_only: bool,
    /// Whether rows have to keep rules: MySQL read over them once.
    pub(super) keeps_checks: bool,
}

impl Server {
    pub(super) fn ask(session: &mut Session<'_>) -> Result<Self, TargetError> {
        // Some versions have more ways of reading only than one.
        let ask = "SELECT VERSION(), @@innodb_page_size, CURRENT_USER(), @@innodb_buffer_pool_size, @@innodb_fill_factor, \
                   @@local_infile, CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF')";
        let row: Option<(String, u32, String, u64, u32, bool, bool)> =
            session.first("ask for its settings", ask, ())?;
        let (version, page_bytes, user, buffer_pool_bytes, fill_factor, takes_files, is_read_only) =
            row.ok_or_else(|| session.access().unfit("the server does not say what it is", "use MySQL or MariaDB"))?;
        let oldest = if session.is_mariadb() { OLDEST_MARIADB } else { OLDEST_MYSQL };
        let number = numbers(&version);
        if number.is_some_and(|version| version < oldest) {
            let what = format!("`{}` is version {version}", session.access().node_name());
            let hint = "use MariaDB 10.5 or later, or MySQL 8.0 or later";
            return Err(session.access().unfit(what, hint));
        }
        let keeps_checks = session.is_mariadb() || number.is_none_or(|version| version >= FIRST_WITH_CHECKS);
        Ok(Self { version, page_bytes, user, buffer_pool_bytes, fill_factor, takes_files, is_read_only, keeps_checks })
    }
}

/// The first three numbers of a version.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split(['.', '-']).map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)])
}

impl SqlData for Connector {
    const PRODUCT: &'static Product = MYSQL;
    const HOLDER: &'static str = "database";
    const HOLDER_OPTION: &'static str = "`mysql://USER@HOST/DATABASE`";
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
        Session::execute(session, doing, statement, halt).map_err(|error| with_grants(access, error))
    }

    fn ask(
        session: &mut Session<'_>,
        doing: &str,
        statement: &str,
        halt: Halt<'_>,
    ) -> Result<Vec<Vec<Option<String>>>, TargetError> {
        let rows: Vec<Row> = session.query(doing, statement, (), halt)?;
        let text = |value: Value| match value {
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            _ => None,
        };
        Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect())
    }

    fn has_namespace(session: &mut Session<'_>) -> Result<bool, TargetError> {
        let ask = "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?";
        let database = session.access().namespace;
        Ok(session.first::<u64>("look for the database", ask, (database,))?.is_some_and(|count| count > 0))
    }

    fn try_lock(session: &mut Session<'_>) -> Result<bool, TargetError> {
        let name = lock_name(session.access());
        Ok(session.first::<Option<u8>>("lock the data", "SELECT GET_LOCK(?, 0)", (name,))?.flatten() == Some(1))
    }

    fn lock_holder(session: &mut Session<'_>) -> Result<Option<String>, TargetError> {
        let name = lock_name(session.access());
        let id = session.first::<Option<u64>>("look who uses the data", "SELECT IS_USED_LOCK(?)", (name,))?;
        Ok(id.flatten().map(|id| format!("session {id} of the server")))
    }
}

impl<D: Dropped<Connector>> Keeps<D> for Connector {
    fn look(session: &mut Session<'_>) -> Result<NamespaceFacts<Server, D>, TargetError> {
        let server = Server::ask(session)?;
        Ok(NamespaceFacts {
            version: server.version.clone(),
            database: session.access().namespace.to_owned(),
            block_bytes: server.page_bytes,
            server,
            found: read_descriptor(session)?,
        })
    }

    fn check_place(
        access: Access<'_>,
        session: &mut Session<'_>,
        facts: &NamespaceFacts<Server, D>,
    ) -> Result<(), TargetError> {
        if facts.server.is_read_only {
            let what = format!("`{}` only reads (`read_only`)", access.node_name());
            return Err(access.unfit(what, "name the primary"));
        }
        if facts.found.is_some() {
            return Ok(());
        }
        // Our own two tables may be left of a set-up that was ended at its very beginning.
        let there = <Self as Keeps<D>>::objects(session)?;
        let is_ours = !there.contains_key(D::DATA_TABLE) || has_data_table::<D>(session)?;
        let is_clash = |name: &&String| !(is_ours && [D::DATA_TABLE, D::LOAD_TABLE].contains(&name.as_str()));
        match there.keys().find(is_clash) {
            None => Ok(()),
            Some(clash) => {
                let what = format!("{} holds `{clash}`, which Plimsoll did not make", access.place());
                Err(access.unfit_here(what, "name"))
            }
        }
    }

    fn objects(session: &mut Session<'_>) -> Result<BTreeMap<String, u64>, TargetError> {
        // A table that somebody makes or drops meanwhile has no size.
        let ask = "SELECT table_name, CAST(COALESCE(data_length + index_length, 0) AS UNSIGNED) FROM information_schema.tables \
                   WHERE table_schema = ? AND table_name REGEXP ? \
                   UNION ALL SELECT routine_name, 0 FROM information_schema.routines \
                   WHERE routine_schema = ? AND routine_name REGEXP ?";
        let (database, names) = (session.access().namespace, D::names());
        let values = (database, &names, database, &names);
        Ok(session.query("list the tables", ask, values, Halt::NEVER)?.into_iter().collect())
    }

    /// Tables cannot be made in a transaction, so what marks the data as ours comes before all else; whoever is interrupted in
    /// between begins again.
    fn begin(session: &mut Session<'_>, data: &D) -> Result<(), TargetError> {
        let access = session.access();
        let make_database = !Connector::has_namespace(session)?;
        let doing = "begin the set-up";
        if make_database {
            Self::execute(session, doing, &format!("CREATE DATABASE {}", quoted(access.namespace)), Halt::NEVER)?;
        }
        let (data_table, load_table) = (qualified(access, D::DATA_TABLE), qualified(access, D::LOAD_TABLE));
        let descriptor = serde_json::to_string(data).expect("a descriptor has no value that JSON lacks");
        let make = |table: &str, columns: &str| format!("CREATE TABLE IF NOT EXISTS {table} ({columns}) ENGINE=InnoDB");
        let columns: Vec<String> =
            D::LOAD_COLUMNS.iter().map(|(name, kind)| format!("{} {kind} NOT NULL", quoted(name))).collect();
        let key: Vec<String> = D::LOAD_COLUMNS[..D::LOAD_KEY].iter().map(|(name, _)| quoted(name)).collect();
        let marks = make(&load_table, &format!("{}, PRIMARY KEY ({})", columns.join(", "), key.join(", ")));
        let own = make(
            &data_table,
            "format INT NOT NULL, stage VARCHAR(16) NOT NULL, descriptor TEXT NOT NULL, made_database BOOLEAN NOT NULL",
        );
        for statement in [marks, own, format!("DELETE FROM {data_table}"), format!("DELETE FROM {load_table}")] {
            Self::execute(session, doing, &statement, Halt::NEVER)?;
        }
        let insert = format!("INSERT INTO {data_table} VALUES (?, ?, ?, ?)");
        let values = (D::FORMAT_VERSION, Stage::Loading.word(), descriptor, make_database);
        session.query::<mysql_async::Row>(doing, &insert, values, Halt::NEVER).map(drop)
    }

    fn remove(session: &mut Session<'_>, found: &Found<D>, halt: Halt<'_>) -> Result<(), TargetError> {
        let (access, doing) = (session.access(), "drop the data");
        session.execute(doing, &format!("SET SESSION lock_wait_timeout = {LOCK_TIMEOUT_S}"), halt)?;
        set_stage::<D>(session, Stage::Dropping)?;
        let last =
            [D::LOAD_TABLE, D::DATA_TABLE].map(|name| format!("DROP TABLE IF EXISTS {}", qualified(access, name)));
        for statement in found.data.drops(access, session)?.iter().chain(&last) {
            session.execute(doing, statement, halt)?;
        }
        if found.made_namespace && is_empty(session)? {
            session.execute(doing, &format!("DROP DATABASE {}", quoted(access.namespace)), halt)?;
        }
        session.execute(doing, &format!("SET SESSION lock_wait_timeout = {NO_LOCK_TIMEOUT_S}"), halt)
    }
}

/// Whether a table has the name and the columns of that of the descriptor: another one of this name is somebody else's.
fn has_data_table<D: Content>(session: &mut Session<'_>) -> Result<bool, TargetError> {
    let ask = "SELECT column_name IN ('format', 'stage', 'descriptor', 'made_database') FROM information_schema.columns \
               WHERE table_schema = ? AND table_name = ?";
    let place = (session.access().namespace, D::DATA_TABLE);
    Ok(session.query::<bool>("look for data", ask, place, Halt::NEVER)? == [true; 4])
}

/// The data set that is described there. Where none is, nothing may have one of our names.
fn read_descriptor<D: Content>(session: &mut Session<'_>) -> Result<Option<Found<D>>, TargetError> {
    let access = session.access();
    if !has_data_table::<D>(session)? {
        return Ok(None);
    }
    let table = qualified(access, D::DATA_TABLE);
    let read = format!("SELECT format, stage, descriptor, made_database FROM {table}");
    let rows: Vec<(u32, String, String, bool)> = session.query("read which data is there", &read, (), Halt::NEVER)?;
    match rows.as_slice() {
        // A set-up that was ended at its very beginning.
        [] => Ok(None),
        [(format, stage, text, made)] => described(access, &table, (*format, stage, text, *made)).map(Some),
        rows => Err(damaged::<_, D>(access, &table, &format!("it has {} rows", rows.len()))),
    }
}

pub(super) fn qualified(access: Access<'_>, name: &str) -> String {
    format!("{}.{}", quoted(access.namespace), quoted(name))
}

/// A refusal for lack of rights, with the statement that grants them.
fn with_grants(access: Access<'_>, error: TargetError) -> TargetError {
    match ServerError::refusal_in(&error) {
        Some((code, message)) if LACKS_RIGHTS.contains(&number(code)) => {
            let hint = format!(
                "have an administrator execute: GRANT ALL ON {}.* TO '{}'@'…'. Setup also lowers innodb_fill_factor \
                for a while: GRANT SUPER ON *.* (MariaDB) or GRANT SYSTEM_VARIABLES_ADMIN ON *.* (MySQL)",
                quoted(access.namespace),
                access.connector.user()
            );
            access.unfit(format!("`{}` refused: {message} (error {code})", access.node_name()), hint)
        }
        _ => error,
    }
}

/// Notes how far a data set has come.
pub(super) fn set_stage<D: Content>(session: &mut Session<'_>, stage: Stage) -> Result<(), TargetError> {
    let table = qualified(session.access(), D::DATA_TABLE);
    session.execute("note the stage", &format!("UPDATE {table} SET stage = '{}'", stage.word()), Halt::NEVER)
}

/// Waits until no other set-up on the whole server rebuilds tables. The lock goes with the session at the latest.
pub(super) fn lock_fill_factor(session: &mut Session<'_>, halt: Halt<'_>) -> Result<(), TargetError> {
    let doing = "wait until another set-up has rebuilt its tables";
    while session.query::<Option<u8>>(doing, "SELECT GET_LOCK(?, 1)", (FILL_FACTOR_LOCK,), halt)? != [Some(1)] {}
    Ok(())
}

pub(super) fn unlock_fill_factor(session: &mut Session<'_>) -> Result<(), TargetError> {
    session.first::<Option<u8>>("let others rebuild tables", "SELECT RELEASE_LOCK(?)", (FILL_FACTOR_LOCK,)).map(drop)
}

/// Locks are names of at most 64 characters, shared by the whole server.
fn lock_name(access: Access<'_>) -> String {
    let database = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, access.namespace.as_bytes());
    format!("plimsoll {database:016x}")
}

/// Whether nothing is in the database.
fn is_empty(session: &mut Session<'_>) -> Result<bool, TargetError> {
    let ask = "SELECT (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?) \
               + (SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = ?) \
               + (SELECT COUNT(*) FROM information_schema.events WHERE event_schema = ?)";
    let database = session.access().namespace;
    let left: Option<u64> = session.first("look what else is in the database", ask, (database, database, database))?;
    Ok(left == Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_both_kinds_are_read() {
        assert_eq!(numbers("10.11.19-MariaDB-0+deb12u1"), Some([10, 11, 19]));
        assert_eq!(numbers("8.0.15"), Some([8, 0, 15]));
        assert_eq!(numbers("nonsense"), None);
    }
}
