//! What is in the database: Plimsoll's own two tables, and whose the rest is.

use std::collections::BTreeMap;

use super::session::{Access, Session};
use crate::targets::error::TargetError;
use crate::targets::mysql::error::MysqlError;
use crate::targets::mysql::sql::{Sql, quoted};
use crate::targets::sql::data::descriptor::{DataSet, Found, Stage, TableId};
use crate::targets::sql::data::streams::Halt;
use crate::units::Bytes;

/// The table of the descriptor.
pub(super) const DATA_TABLE: &str = "plimsoll_data";
/// The table of what has been loaded.
pub(super) const LOAD_TABLE: &str = "plimsoll_load";
/// All names that a set-up may use, as a regular expression.
const OUR_NAMES: &str = "^(plimsoll_(data|load)|(slob|scan)_[0-9]+|slob_batch_[0-9]+)$";
/// Version of everything that set-up makes in the database.
pub(super) const FORMAT_VERSION: u32 = 1;
/// The lock of whoever changes the server's `innodb_fill_factor`.
const FILL_FACTOR_LOCK: &str = "plimsoll fill factor";
/// Oldest MariaDB and MySQL that are supported.
const OLDEST_MARIADB: (u32, u32) = (10, 5);
const OLDEST_MYSQL: (u32, u32) = (8, 0);

/// Looks for a data set, whole or not; changes nothing.
///
/// # Errors
/// When the server cannot be reached, or what is there cannot be read.
pub fn find(access: &Access<'_>) -> Result<Option<Found>, TargetError> {
    read_descriptor(&mut Session::open(*access)?)
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

/// Size of a page of the server.
///
/// # Errors
/// When the server cannot be reached.
pub fn page_bytes(access: &Access<'_>) -> Result<u32, TargetError> {
    Ok(Server::ask(&mut Session::open(*access)?)?.page_bytes)
}

/// # Errors
/// When there is no data set.
pub(super) fn require(access: Access<'_>, found: Option<Found>) -> Result<Found, TargetError> {
    found.ok_or_else(|| {
        let what = format!("no SLOB data in the database `{}` on `{}`", access.database, access.node_name());
        access.unfit(what, "make some: `plimsoll slob setup`, or name another database: `mysql://USER@HOST/DATABASE`")
    })
}

pub(super) fn unfinished(access: Access<'_>, stage: Stage) -> TargetError {
    let place = format!("the database `{}` on `{}`", access.database, access.node_name());
    match stage {
        Stage::Dropping => {
            access.unfit(format!("the SLOB data in {place} are half removed"), "remove the rest: `plimsoll slob drop`")
        }
        Stage::Loading | Stage::Ready => access.unfit(
            format!("the set-up of {place} was never finished"),
            "run the same `plimsoll slob setup` again; it goes on where it was",
        ),
    }
}

/// What matters about the server and the user.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) version: String,
    pub(super) page_bytes: u32,
    pub(super) user: String,
    pub(super) buffer_pool_bytes: u64,
    /// How full a table is when it is written anew, in percent.
    pub(super) fill_factor: u32,
    /// Whether rows may be sent as a file.
    pub(super) takes_files: bool,
    is_read_only: bool,
}

impl Server {
    pub(super) fn ask(session: &mut Session<'_>) -> Result<Self, TargetError> {
        let ask = "SELECT VERSION(), @@innodb_page_size, CURRENT_USER(), @@innodb_buffer_pool_size, @@innodb_fill_factor, \
                   @@local_infile, @@read_only";
        let row: Option<(String, u32, String, u64, u32, bool, bool)> =
            session.first("ask for its settings", ask, ())?;
        let (version, page_bytes, user, buffer_pool_bytes, fill_factor, takes_files, is_read_only) =
            row.ok_or_else(|| session.access().unfit("the server does not say what it is", "use MySQL or MariaDB"))?;
        let oldest = if session.is_mariadb() { OLDEST_MARIADB } else { OLDEST_MYSQL };
        if numbers(&version).is_some_and(|version| version < oldest) {
            let what = format!("`{}` is version {version}", session.access().node_name());
            let hint = "use MariaDB 10.5 or later, or MySQL 8.0 or later";
            return Err(session.access().unfit(what, hint));
        }
        Ok(Self { version, page_bytes, user, buffer_pool_bytes, fill_factor, takes_files, is_read_only })
    }

    /// Refuses blocks of another size than the server's pages, and a server that nobody can write to.
    pub(super) fn check_for_setup(&self, access: Access<'_>, block_bytes: u32) -> Result<(), TargetError> {
        if self.is_read_only {
            let what = format!("`{}` only reads (`read_only`)", access.node_name());
            return Err(access.unfit(what, "name the primary"));
        }
        if block_bytes != self.page_bytes {
            let (asked, there) = (Bytes(block_bytes.into()), Bytes(self.page_bytes.into()));
            let what = format!("blocks of {asked} were asked for, and `{}` has pages of {there}", access.node_name());
            return Err(access.unfit(what, format!("leave the block size away, or ask for {there}")));
        }
        Ok(())
    }
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Whether the database is there.
pub(super) fn has_database(session: &mut Session<'_>) -> Result<bool, TargetError> {
    let ask = "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?";
    let database = session.access().database;
    Ok(session.first::<u64>("look for the database", ask, (database,))?.is_some_and(|count| count > 0))
}

/// Bytes of each table and procedure of the database that has one of our names, by bare name.
pub(super) fn our_objects(session: &mut Session<'_>) -> Result<BTreeMap<String, u64>, TargetError> {
    // A table that somebody makes or drops meanwhile has no size.
    let ask = "SELECT table_name, CAST(COALESCE(data_length + index_length, 0) AS UNSIGNED) FROM information_schema.tables \
               WHERE table_schema = ? AND table_name REGEXP ? \
               UNION ALL SELECT routine_name, 0 FROM information_schema.routines \
               WHERE routine_schema = ? AND routine_name REGEXP ?";
    let database = session.access().database;
    let values = (database, OUR_NAMES, database, OUR_NAMES);
    Ok(session.query("list the tables", ask, values, Halt::NEVER)?.into_iter().collect())
}

/// Names that [`our_objects`] gives for a whole data set.
pub(super) fn expected_objects(data: &DataSet) -> Vec<String> {
    data.tables().map(TableId::name).chain((0..data.schemas).map(Sql::procedure_name)).collect()
}

/// The data set that is described there. Where none is, nothing may have one of our names.
pub(super) fn read_descriptor(session: &mut Session<'_>) -> Result<Option<Found>, TargetError> {
    let access = session.access();
    let ask = "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = ? AND table_name = ? \
               AND column_name IN ('format', 'stage', 'descriptor', 'made_database')";
    let columns: Option<u64> = session.first("look for data", ask, (access.database, DATA_TABLE))?;
    if columns != Some(4) {
        return Ok(None);
    }
    let table = qualified(access, DATA_TABLE);
    let read = format!("SELECT format, stage, descriptor, made_database FROM {table}");
    let rows: Vec<(u32, String, String, bool)> = session.query("read what data are there", &read, (), Halt::NEVER)?;
    let another = "drop the database by hand, or name another one: `mysql://USER@HOST/DATABASE`";
    let damaged = |what: String| access.unfit(format!("the descriptor in {table} is damaged: {what}"), another);
    if rows.is_empty() {
        // A set-up that was ended at its very beginning.
        return Ok(None);
    }
    let [(format, word, text, made_database)] = rows.as_slice() else {
        return Err(damaged(format!("it has {} rows", rows.len())));
    };
    if *format != FORMAT_VERSION {
        let what = format!("{table} describes data of format {format}; this program reads format {FORMAT_VERSION}");
        return Err(access.unfit(what, "use the version of Plimsoll that made them, or name another database"));
    }
    let stage = Stage::ALL.into_iter().find(|stage| stage.word() == word);
    let stage = stage.ok_or_else(|| damaged(format!("its stage is `{word}`")))?;
    let data: DataSet = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
    if data.schemas == 0 || data.scale_blocks == 0 || data.block_bytes == 0 {
        return Err(damaged("it describes no data".to_owned()));
    }
    Ok(Some(Found { data, stage, made_namespace: *made_database }))
}

pub(super) fn qualified(access: Access<'_>, name: &str) -> String {
    format!("{}.{}", quoted(access.database), quoted(name))
}

/// Begins a set-up. Tables cannot be made in a transaction, so what marks the data as ours comes before all else; whoever is
/// interrupted in between begins again.
pub(super) fn begin(session: &mut Session<'_>, data: &DataSet, make_database: bool) -> Result<(), TargetError> {
    let access = session.access();
    let doing = "begin the set-up";
    if make_database {
        let made = session.execute(doing, &format!("CREATE DATABASE {}", quoted(access.database)), Halt::NEVER);
        made.map_err(|error| with_grants(access, error))?;
    }
    let (data_table, load_table) = (qualified(access, DATA_TABLE), qualified(access, LOAD_TABLE));
    let descriptor = serde_json::to_string(data).expect("a descriptor has no value that JSON lacks");
    let make = |table: &str, columns: &str| format!("CREATE TABLE IF NOT EXISTS {table} ({columns}) ENGINE=InnoDB");
    let marks = make(
        &load_table,
        "is_scan BOOLEAN, `schema` INT, first_place BIGINT, places BIGINT NOT NULL, PRIMARY KEY (is_scan, `schema`, first_place)",
    );
    let own = make(
        &data_table,
        "format INT NOT NULL, stage VARCHAR(16) NOT NULL, descriptor TEXT NOT NULL, made_database BOOLEAN NOT NULL",
    );
    for statement in [marks, own, format!("DELETE FROM {data_table}"), format!("DELETE FROM {load_table}")] {
        session.execute(doing, &statement, Halt::NEVER).map_err(|error| with_grants(access, error))?;
    }
    let insert = format!("INSERT INTO {data_table} VALUES (?, ?, ?, ?)");
    let values = (FORMAT_VERSION, Stage::Loading.word(), descriptor, make_database);
    session.query::<mysql_async::Row>(doing, &insert, values, Halt::NEVER).map(drop)
}

/// A refusal for lack of rights, with the statement that grants them.
pub(super) fn with_grants(access: Access<'_>, error: TargetError) -> TargetError {
    match error {
        TargetError::Mysql(MysqlError::Refused { code, message, .. })
            if crate::targets::mysql::error::LACKS_RIGHTS.contains(&code) =>
        {
            let hint = format!(
                "have an administrator execute: GRANT ALL ON {}.* TO '{}'@'…'; and for set-up, which lowers the server's \
                 innodb_fill_factor for a while: GRANT SUPER ON *.* (MariaDB) or GRANT SYSTEM_VARIABLES_ADMIN ON *.* (MySQL)",
                quoted(access.database),
                access.connector.user()
            );
            access.unfit(format!("`{}` refused: {message} (error {code})", access.node_name()), hint)
        }
        other => other,
    }
}

/// Notes how far a data set has come.
pub(super) fn set_stage(session: &mut Session<'_>, stage: Stage) -> Result<(), TargetError> {
    let table = qualified(session.access(), DATA_TABLE);
    session.execute("note the stage", &format!("UPDATE {table} SET stage = '{}'", stage.word()), Halt::NEVER)
}

/// Refuses to work on data that another process makes or removes. The lock is held as long as the session lives.
pub(super) fn lock(session: &mut Session<'_>) -> Result<(), TargetError> {
    let access = session.access();
    let name = lock_name(access);
    if session.first::<Option<u8>>("lock the data", "SELECT GET_LOCK(?, 0)", (name,))?.flatten() == Some(1) {
        return Ok(());
    }
    let by = lock_holder(session)?.map(|by| format!(" ({by})")).unwrap_or_default();
    let what = format!("another process makes or removes the data in the database `{}`{by}", access.database);
    Err(access.unfit(what, "wait until it ends, or name another database: `mysql://USER@HOST/DATABASE`"))
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

/// Who makes or removes the data just now.
pub(super) fn lock_holder(session: &mut Session<'_>) -> Result<Option<String>, TargetError> {
    let name = lock_name(session.access());
    let id = session.first::<Option<u64>>("look who uses the data", "SELECT IS_USED_LOCK(?)", (name,))?;
    Ok(id.flatten().map(|id| format!("session {id} of the server")))
}

/// Locks are names of at most 64 characters, shared by the whole server.
fn lock_name(access: Access<'_>) -> String {
    let database = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, access.database.as_bytes());
    format!("plimsoll {database:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_both_kinds_are_read() {
        assert_eq!(numbers("10.11.19-MariaDB-0+deb12u1"), Some((10, 11)));
        assert_eq!(numbers("8.0.15"), Some((8, 0)));
        assert_eq!(numbers("nonsense"), None);
    }
}
