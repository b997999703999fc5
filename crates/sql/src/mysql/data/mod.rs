//! Data sets on MySQL and MariaDB: making, proving, verifying and removing them. Everything here is synchronous and has
//! connections of its own.

mod catalog;
pub(crate) mod info;
mod orders;
pub(crate) mod proof;
mod setup;
#[cfg(test)]
pub(in crate::mysql) mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Error, FromRowError, Params};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::monitor::MonitorRequest;
use super::server::{Binaries, free_pages_note};
use super::{Connector, MysqlServers, Sql, server};
use crate::data::catalog::SqlData as _;
use crate::data::streams::{CANCEL_PATIENCE, Halt, Stream, runtime};
use crate::data::{DataSet, Findings, Proven, RowSource, TableId, TableKind, Verify, index_name};
use crate::database::durable::CommitDialect;
use crate::database::{APPLICATION, Dialect, Watched, add_state};
use crate::ending::on_own_runtime;
use crate::monitor::SAMPLE_EVERY;
use crate::mysql::session::WORTH_ANOTHER_ATTEMPT;
use crate::mysql::sql::{ROWS_OF_A_LEAF, columns, quoted};
use crate::mysql::{Connected, MISSING, number};
use crate::{COLUMNS, ServerError};
use catalog::Server;
use info::info;
use measure::os::Root;
use model::config::mysql::MysqlAddress;
use model::record::{ServerFacts, TargetFacts};
use model::units::Bytes;
use proof::prove;
use targets::TargetError;
use targets::database::{DatabaseOptions, Method, Sheet};

/// Database that holds the data where the address names none.
const DEFAULT_DATABASE: &str = "plimsoll";

impl Dialect for Connector {
    const DEFAULT_BLOCK_BYTES: u64 = 16_384;
    const SOUND: &'static str = "every row is there once, and as long as it was loaded";
    const UNWAITED: Option<[&'static str; 3]> = Some([
        "innodb_flush_log_at_trx_commit=0",
        "SET GLOBAL innodb_flush_log_at_trx_commit = 0",
        "SET GLOBAL innodb_flush_log_at_trx_commit = 1",
    ]);

    type Programs = Binaries;
    type Servers = MysqlServers;
    type Reader = MonitorRequest;

    fn connector(address: &MysqlAddress, per_node: bool, _: Method) -> Result<Self, TargetError> {
        let connector = Self::new(address, APPLICATION)?;
        Ok(if per_node { connector } else { connector.single()? })
    }

    fn namespace(address: &MysqlAddress, _: &DatabaseOptions) -> String {
        address.database.clone().unwrap_or_else(|| DEFAULT_DATABASE.to_owned())
    }

    fn remarks(&self) -> Vec<String> {
        self.notes().to_vec()
    }

    fn facts(&self) -> Result<TargetFacts, TargetError> {
        Ok(server::facts(self, 0)?)
    }

    fn info(access: &Access<'_>) -> Result<Sheet, TargetError> {
        let info = info(access)?;
        let mut sheet = Sheet::of(json!(info));
        sheet.add("server", format!("{}, {}", info.node, info.server_version));
        sheet.add("database", format!("{}, user {}", info.database, info.user));
        add_state(&mut sheet, &info.descriptor, info.stage, info.in_use_by.as_deref());
        sheet.add("tables", format!("{}, {} with their indexes", info.tables.len(), Bytes(info.bytes)));
        sheet.add("buffer pool", Bytes(info.buffer_pool_bytes).to_string());
        Ok(sheet)
    }

    fn prove(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Proven, TargetError> {
        let proof = prove(access, data, schemas)?;
        Ok(Proven { facts: proof.facts(), notes: proof.notes })
    }

    fn doubts(server: &ServerFacts, data: &DataSet) -> Vec<String> {
        free_pages_note(&server.settings, data.block_bytes).into_iter().collect()
    }

    fn reader(&self, watched: &Watched<'_>) -> MonitorRequest {
        MonitorRequest {
            // What reads the counters is not to be seen as a session of the load.
            connector: self.clone().called("plimsoll monitor"),
            application: APPLICATION.to_owned(),
            page_bytes: watched.block_bytes,
            reads_directly: watched.server.reads_directly == Some(true),
            sample_every: SAMPLE_EVERY,
        }
    }

    fn servers(&self, namespace: &str, data: &DataSet) -> MysqlServers {
        MysqlServers::new(self.clone(), Sql::new(namespace, data.block_bytes))
    }

    fn process(&self) -> Result<Option<(u32, Option<PathBuf>)>, TargetError> {
        Ok(LocalServer::find(self, 0)?.map(|server| (server.pid, Some(server.data_directory))))
    }
}

impl CommitDialect for Connector {
    const TABLE_END: &'static str = " ENGINE=InnoDB";

    fn change(session: &mut Session<'_>, statement: &str, halt: Halt<'_>) -> Result<u64, TargetError> {
        session.wait("commit", halt, Duration::ZERO, async |conn| {
            conn.query_drop(statement).await?;
            Ok(conn.affected_rows())
        })
    }

    fn identity(session: &mut Session<'_>) -> String {
        let place = Self::first_value(session, "SELECT CONCAT(@@hostname, ':', @@port, @@datadir)").unwrap_or_default();
        // MySQL's own number, and MariaDB's.
        let ask = |variable| Self::first_value(session, variable);
        let number = ["SELECT @@server_uuid", "SELECT @@server_uid"].into_iter().find_map(ask).unwrap_or_default();
        format!("{place} {number}").trim().to_owned()
    }

    fn started_s(session: &mut Session<'_>) -> Option<u64> {
        let rows =
            Self::ask(session, "ask when it was started", "SHOW GLOBAL STATUS LIKE 'Uptime'", Halt::NEVER).ok()?;
        let uptime_s: u64 = rows.first()?.get(1)?.as_ref()?.parse().ok()?;
        let now_s: u64 = Self::first_value(session, "SELECT UNIX_TIMESTAMP()")?.parse().ok()?;
        now_s.checked_sub(uptime_s)
    }
}

/// A server whose process runs on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// Its process.
    pub pid: u32,
    /// Where its data are.
    pub data_directory: PathBuf,
}

impl LocalServer {
    /// Server number `node`, if it runs here and this user may see its process. Connects for that, on a runtime of its own.
    ///
    /// # Errors
    /// When the server cannot be connected to or asked.
    pub fn find(connector: &Connector, node: usize) -> Result<Option<Self>, ServerError> {
        on_own_runtime(async {
            let mut connected = connector.connect(node).await?;
            Self::of_client(&mut connected).await
        })
    }

    /// The server that a connection leads to.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub(super) async fn of_client(connected: &mut Connected) -> Result<Option<Self>, ServerError> {
        let asked = connected.conn.query_first("SELECT @@hostname, @@pid_file, @@datadir").await;
        let reported: Option<(String, String, String)> =
            asked.map_err(|error| connected.error("find the server's process", &error))?;
        Ok(reported.and_then(|(host, pid_file, data)| Self::of(&Root::default(), &host, &pid_file, Path::new(&data))))
    }

    /// The server that names this host and these files, if they lead to its process below `root`. A server elsewhere, or in a
    /// container, may name the same files: so the process must work in its data here.
    fn of(root: &Root, host: &str, pid_file: &str, data_directory: &Path) -> Option<Self> {
        if root.text("/proc/sys/kernel/hostname")?.trim() != host {
            return None;
        }
        let pid_file = data_directory.join(pid_file);
        let pid: u32 = root.text(pid_file.to_str()?)?.trim().parse().ok()?;
        let works_in = std::fs::read_link(root.path(format!("/proc/{pid}/cwd"))).ok()?;
        let data_directory = data_directory.canonicalize().unwrap_or_else(|_| data_directory.to_owned());
        (works_in == data_directory).then_some(Self { pid, data_directory })
    }
}

/// Rows that are asked for at a time.
const ROWS_AT_ONCE: u64 = 20_000;

/// Every row of every table is read by both of its indexes, and the server checks its pages.
impl Verify for Connector {
    fn check_table(
        session: &mut Session<'_>,
        data: &DataSet,
        table: TableId,
        _: &Server,
        stream: &Stream<'_>,
        found: &mut Findings,
    ) -> Result<(), TargetError> {
        let sql = session.access().sql(data.block_bytes);
        let name = table.qualified_in(&sql);
        let bare = table.name();
        let source = RowSource::new(data, table);
        let leaves = data.rows_of(table);
        let rows = leaves * ROWS_OF_A_LEAF;
        let width = u64::from(COLUMNS * data.column_bytes);
        let doing = format!("read {name}");
        let filling = columns().collect::<Vec<_>>().join(", ");
        let by_place = format!(
            "SELECT place, custid, COALESCE(LENGTH(CONCAT({filling})), 0) FROM {name} FORCE INDEX (PRIMARY) \
             WHERE place >= ? AND place < ? ORDER BY place"
        );
        let key_of = |place: u64| source.key(place / ROWS_OF_A_LEAF) + place % ROWS_OF_A_LEAF * leaves;
        in_parts(rows, |from, to| {
            let read: Vec<(i64, i64, u64)> = session.query(&doing, &by_place, (from, to), stream.halt)?;
            found.rows += read.len() as u64;
            let mut expected = from..to;
            for (place, key, bytes) in read {
                for missing in expected.by_ref().take_while(|expected| *expected as i64 != place) {
                    found.fault(format!(
                        "`{bare}`: no row is at place {missing}, where key {} belongs",
                        key_of(missing)
                    ));
                }
                if key != key_of(place as u64) as i64 {
                    found.fault(format!(
                        "`{bare}`: the row at place {place} has key {key} instead of {}",
                        key_of(place as u64)
                    ));
                }
                if bytes != width {
                    found.fault(format!(
                        "`{bare}`: the row with key {key} has {bytes} bytes of filling instead of {width}"
                    ));
                }
            }
            for missing in expected {
                found.fault(format!("`{bare}`: no row is at place {missing}, where key {} belongs", key_of(missing)));
            }
            stream.done((to - from) / ROWS_OF_A_LEAF * u64::from(data.block_bytes));
            Ok(())
        })?;
        let outside = format!("SELECT COUNT(*) FROM {name} FORCE INDEX (PRIMARY) WHERE place < 0 OR place >= ?");
        let more: Option<u64> = session.first(&doing, &outside, (rows,))?;
        if let Some(more) = more.filter(|more| *more > 0) {
            found.fault(format!("`{bare}` has {more} rows that set-up did not put there"));
        }
        if table.kind == TableKind::Rows {
            check_index(session, data, table.schema, &name, stream.halt, found)?;
        }
        // The server reads every page of every index and compares their checksums and their order.
        let said: Vec<(String, String, String, String)> =
            session.query(&format!("check {name}"), &format!("CHECK TABLE {name}"), (), stream.halt)?;
        for (_, _, kind, text) in said {
            if kind.eq_ignore_ascii_case("error") || (kind.eq_ignore_ascii_case("status") && text != "OK") {
                found.fault(format!("`{bare}`: the server's own check says: {text}"));
            }
        }
        Ok(())
    }

    fn fault_of(error: &TargetError) -> Option<String> {
        if error.is_data_fault() {
            return Some(error.to_string());
        }
        let (code, message) = ServerError::refusal_in(error).filter(|(code, _)| MISSING.contains(&number(code)))?;
        Some(format!("{message} (error {code})"))
    }
}

/// Whether the index leads from each key to its place.
fn check_index(
    session: &mut Session<'_>,
    data: &DataSet,
    schema: u32,
    name: &str,
    halt: Halt<'_>,
    found: &mut Findings,
) -> Result<(), TargetError> {
    let index = index_name(schema);
    let by_key = format!(
        "SELECT custid, place FROM {name} FORCE INDEX ({}) WHERE custid >= ? AND custid < ? ORDER BY custid",
        quoted(&index)
    );
    let (permutation, leaves) = (data.permutation(schema), data.scale_blocks);
    in_parts(leaves * ROWS_OF_A_LEAF, |from, to| {
        let read: Vec<(u64, i64)> = session.query(&format!("read {index}"), &by_key, (from, to), halt)?;
        if read.len() as u64 != to - from {
            let what =
                format!("`{index}` has {} keys from {from} to {} where {} belong", read.len(), to - 1, to - from);
            found.fault(what);
        }
        for (key, place) in read {
            let expected = permutation.map(key % leaves) * ROWS_OF_A_LEAF + key / leaves;
            if place != expected as i64 {
                found.fault(format!("`{index}` leads from key {key} to place {place} instead of {expected}"));
            }
        }
        Ok(())
    })
}

/// Calls `read` with the ends of each part of `total` rows.
fn in_parts(total: u64, mut read: impl FnMut(u64, u64) -> Result<(), TargetError>) -> Result<(), TargetError> {
    (0..total).step_by(ROWS_AT_ONCE as usize).try_for_each(|from| read(from, (from + ROWS_AT_ONCE).min(total)))
}

/// The longest wait for a table's lock that can be set, a year: all work but removal waits for as long as it takes.
const NO_LOCK_TIMEOUT_S: u32 = 31_536_000;
/// How often a transaction that works on data is begun before its refusal is reported.
const MAX_ATTEMPTS: u32 = 10;
/// Longest name of a database, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Where a data set is, or is to be.
pub(crate) type Access<'a> = crate::data::Access<'a, Connector>;

impl Access<'_> {
    /// Names and statements, once the size of the server's pages is known.
    fn sql(&self, page_bytes: u32) -> Sql {
        Sql::new(self.namespace, page_bytes)
    }
}

/// A connection and the runtime that drives it.
pub struct Session<'a> {
    access: Access<'a>,
    /// Only taken when the session ends.
    connected: Option<Connected>,
    runtime: Runtime,
}

impl<'a> Session<'a> {
    /// Connects for work of any length.
    ///
    /// # Errors
    /// When the server cannot be reached, or no runtime be made.
    fn open(access: Access<'a>) -> Result<Self, TargetError> {
        let mut session = Self::connect(access, async |connector, node| connector.connect(node).await)?;
        // Limits of time are for applications. MySQL's views of tables are up to a day old by default.
        let own = if session.is_mariadb() { "max_statement_time = 0" } else { "information_schema_stats_expiry = 0" };
        let settings = format!(
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES', autocommit = 1, lock_wait_timeout = {NO_LOCK_TIMEOUT_S}, \
             wait_timeout = 86400, net_read_timeout = 600, net_write_timeout = 600, {own}"
        );
        session.execute("set up a session", &settings, Halt::NEVER)?;
        Ok(session)
    }

    /// Connects as the sessions of the load do, with their settings.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn open_as_load(access: Access<'a>) -> Result<Self, TargetError> {
        Self::connect(access, async |connector, node| connector.connect_session(node).await)
    }

    fn connect(
        access: Access<'a>,
        connect: impl AsyncFnOnce(&Connector, usize) -> Result<Connected, ServerError>,
    ) -> Result<Self, TargetError> {
        let name = access.namespace;
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.ends_with(' ') || name.contains('\0') {
            let what = format!("a database of MySQL cannot be named `{}`", name.escape_debug());
            return Err(access.unfit(what, format!("use a name of 1 to {MAX_NAME_CHARS} characters")));
        }
        let runtime = runtime()?;
        let connected = runtime.block_on(connect(access.connector, access.node))?;
        Ok(Self { access, connected: Some(connected), runtime })
    }

    fn access(&self) -> Access<'a> {
        self.access
    }

    fn is_mariadb(&self) -> bool {
        self.connected.as_ref().is_some_and(|connected| connected.version.is_mariadb)
    }

    /// Does `work` on the connection. When it should end, work that has begun is given `patience`, and then the server is asked
    /// to cancel the statement; the session is of no use after that.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what the server says.
    fn wait<T>(
        &mut self,
        doing: &str,
        halt: Halt<'_>,
        patience: Duration,
        work: impl AsyncFnOnce(&mut Conn) -> Result<T, Error>,
    ) -> Result<T, TargetError> {
        halt.check()?;
        let Self { access, connected, runtime } = self;
        let connected = connected.as_mut().expect("a session has a connection until it ends");
        let id = connected.conn.id();
        let cancel = async { access.connector.connect(access.node).await.ok()?.kill_query(id).await.ok() };
        let outcome = runtime.block_on(halt.unless_set(patience, work(&mut connected.conn), cancel));
        match outcome {
            None => Err(TargetError::Interrupted),
            Some(done) => done.map_err(|error| connected.error(doing, &error).into()),
        }
    }

    /// Does `work`, a transaction from its first statement to its commit, as [`wait`](Self::wait) does. One that InnoDB ends so
    /// that another can go on, as it may where streams load side by side, is begun again.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), once it was begun [`MAX_ATTEMPTS`] times.
    fn transact<T>(
        &mut self,
        doing: &str,
        halt: Halt<'_>,
        patience: Duration,
        work: impl AsyncFn(&mut Conn) -> Result<T, Error>,
    ) -> Result<T, TargetError> {
        let mut attempts = 1;
        loop {
            let outcome = self.wait(doing, halt, patience, async |conn| {
                conn.query_drop("START TRANSACTION").await?;
                let outcome = work(conn).await;
                if let Err(Error::Server(refusal)) = &outcome
                    && WORTH_ANOTHER_ATTEMPT.contains(&refusal.code)
                {
                    // A wait that timed out undoes its statement only.
                    conn.query_drop("ROLLBACK").await?;
                }
                outcome
            });
            match outcome {
                Err(error)
                    if attempts < MAX_ATTEMPTS
                        && ServerError::refusal_in(&error)
                            .is_some_and(|(code, _)| WORTH_ANOTHER_ATTEMPT.contains(&number(code))) =>
                {
                    attempts += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Executes one statement without values or rows.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    fn execute(&mut self, doing: &str, statement: &str, halt: Halt<'_>) -> Result<(), TargetError> {
        self.wait(doing, halt, Duration::ZERO, async |conn| conn.query_drop(statement).await)
    }

    /// Executes one statement with values, for its rows.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), or that rows have other values than such a statement gives.
    fn query<T: FromRow + Send + 'static>(
        &mut self,
        doing: &str,
        statement: &str,
        values: impl Into<Params>,
        halt: Halt<'_>,
    ) -> Result<Vec<T>, TargetError> {
        let values = values.into();
        let rows: Vec<Result<T, FromRowError>> = self.wait(doing, halt, Duration::ZERO, async |conn| match values {
            // Some statements, such as ANALYZE of old versions, cannot be prepared.
            Params::Empty => conn.query_iter(statement).await?.try_collect_and_drop().await,
            values => conn.exec_iter(statement, values).await?.try_collect_and_drop().await,
        })?;
        rows.into_iter().collect::<Result<_, _>>().map_err(|_| {
            let what = format!("cannot {doing} on `{}`: a value is none that can be there", self.access.node_name());
            self.access.unfit(
                what,
                "another program may have changed the data. Create it again: `plimsoll slob setup --replace`",
            )
        })
    }

    /// As [`query`](Self::query), for the first row of a statement that takes no time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    fn first<T: FromRow + Send + 'static>(
        &mut self,
        doing: &str,
        statement: &str,
        values: impl Into<Params>,
    ) -> Result<Option<T>, TargetError> {
        Ok(self.query(doing, statement, values, Halt::NEVER)?.into_iter().next())
    }
}

impl Drop for Session<'_> {
    /// Says goodbye, so that the server releases at once what the session held.
    fn drop(&mut self) {
        if let Some(connected) = self.connected.take() {
            let goodbye = async { timeout(CANCEL_PATIENCE, connected.conn.disconnect()).await };
            let _ = self.runtime.block_on(goodbye);
        }
    }
}

#[cfg(test)]
mod database_tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_a_process_of_this_host_that_works_in_the_data_is_the_server() {
        let machine = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = machine.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/hostname", "db1\n");
        write("srv/no-such-data/db1.pid", "50\n");
        write("run/mysqld/other.pid", "51\n");
        for (pid, works_in) in [("50", "/srv/no-such-data"), ("51", "/elsewhere")] {
            write(&format!("proc/{pid}/comm"), "mysqld\n");
            std::os::unix::fs::symlink(works_in, machine.path().join("proc").join(pid).join("cwd")).unwrap();
        }
        let root = Root::at(machine.path());
        let found = |host: &str, pid_file: &str| {
            LocalServer::of(&root, host, pid_file, Path::new("/srv/no-such-data")).map(|server| server.pid)
        };
        assert_eq!((found("db1", "db1.pid"), found("db1", "/srv/no-such-data/db1.pid")), (Some(50), Some(50)));
        assert_eq!((found("db2", "db1.pid"), found("db1", "gone.pid")), (None, None));
        assert_eq!(found("db1", "/run/mysqld/other.pid"), None, "it works in other data");
    }
}
