//! SLOB's data on an Oracle database, and order entry's: making, proving, reading and removing them.

mod catalog;
pub(super) mod orders;
mod proof;
mod setup;

use std::collections::BTreeMap;
use std::sync::mpsc;

use serde_json::json;

use super::driver::Row;
use super::meanings::TERMS;
use super::monitor::MonitorRequest;
use super::session::OracleServers;
use super::snapshots::Snapshots;
use super::sql::{BUFFER_CACHE, DATABASE, Sql};
use crate::connect::{Connected, Connector};
use crate::driver::{Error, ToDbValue};
use crate::error::number;
use crate::sql::{Address, Layout};
use ::sql::data::catalog::{Keeps, require};
use ::sql::data::streams::{Halt, LOOK_AROUND, Stream};
use ::sql::data::{DataSet, Findings, Proven, TableId, TableKind, Verify};
use ::sql::database::{APPLICATION, Dialect, Watched, add_state};
use ::sql::private::NoPrograms;
use ::sql::{COLUMNS, ServerError};
use catalog::{NO_TABLE, Server, sql_of};
use model::config::oracle::OracleAddress;
use model::record::{ServerFacts, TargetFacts};
use model::units::Bytes;
use targets::database::{Commits, DatabaseOptions, Method, Reads, Sheet};
use targets::{DatabaseError as _, OwnReportKind, OwnReporter, TargetError};

pub(crate) use catalog::{name_of, schema_of};
pub(crate) use proof::prove;

/// Data, where they are and what they take.
///
/// # Errors
/// When there are none, or the server cannot be asked.
pub(crate) fn info(access: &Access<'_>) -> Result<Sheet, TargetError> {
    let mut session = Session::open(*access)?;
    let facts = <Connector as Keeps<DataSet>>::look(&mut session)?;
    let found = require(*access, facts.found)?;
    let tables: Vec<TableId> = found.data.tables().collect();
    // How much tables of others take is not to be seen.
    let bytes: Option<u64> = match access.connector.method().layout {
        Layout::Plimsoll => {
            let there = <Connector as Keeps<DataSet>>::objects(&mut session)?;
            Some(tables.iter().filter_map(|table| there.get(&table.name())).sum())
        }
        Layout::Slob => None,
    };
    let Server { container, instance, role, place, .. } = &facts.server;
    let tablespace = place.as_ref().map(|place| place.name.as_str());
    let mut sheet = Sheet::of(json!({
        "node": access.node_name(),
        "server_version": facts.version,
        "container": container,
        "instance": instance,
        "role": role,
        "user": access.namespace,
        "tablespace": tablespace,
        "tables": tables.len(),
        "bytes": bytes,
        "descriptor": found.data,
        "stage": found.stage,
    }));
    sheet.add("server", format!("{}, {}", access.node_name(), facts.version));
    sheet.add("landed on", format!("instance {instance}, container {container}, {}", role.to_lowercase()));
    let encrypted = if place.as_ref().is_some_and(|place| place.is_encrypted) { ", encrypted" } else { "" };
    let tablespace = tablespace.map_or_else(|| "no tablespace".to_owned(), |name| format!("tablespace {name}"));
    sheet.add("user", format!("{}, {tablespace}{encrypted}", access.namespace));
    add_state(&mut sheet, &found.data, found.stage, None);
    let bytes = bytes.map(|bytes| format!(", {} with their indexes", Bytes(bytes))).unwrap_or_default();
    sheet.add("tables", format!("{}{bytes}", tables.len()));
    Ok(sheet)
}

/// Rows that are asked for at a time.
const ROWS_AT_ONCE: u64 = 20_000;

/// Every row of every table is read, with its address and the length of its filling.
impl Verify for Connector {
    fn check_table(
        session: &mut Session<'_>,
        data: &DataSet,
        table: TableId,
        _: &Server,
        stream: &Stream<'_>,
        found: &mut Findings,
    ) -> Result<(), TargetError> {
        let sql = sql_of(session.access(), data.block_bytes);
        let (name, bare, rows) = (name_of(&sql, table), table.name(), data.rows_of(table));
        let doing = format!("read {name}");
        let width = u64::from(COLUMNS * data.column_bytes);
        // Without an index the server would read the whole table for each part of it.
        let at_once = if table.kind == TableKind::Scan { rows } else { ROWS_AT_ONCE };
        let mut blocks = std::collections::HashSet::new();
        let (mut from, end) = (sql.custid(0), sql.custid(rows));
        while from < end {
            stream.halt.check()?;
            let beyond = end.min(from + at_once);
            let read: Vec<(u64, String, u64)> =
                session.query(&doing, &sql.filled_rows(&name), &[&from, &beyond], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })?;
            let mut expected = from;
            for (key, rowid, bytes) in read {
                found.rows += 1;
                if key < expected {
                    found.fault(format!("`{bare}`: there are several rows with key {key}"));
                }
                for missing in expected..key {
                    found.fault(format!("`{bare}`: there is no row with key {missing}"));
                }
                expected = expected.max(key + 1);
                if bytes != width {
                    found.fault(format!(
                        "`{bare}`: the row with key {key} has {bytes} bytes of filling instead of {width}"
                    ));
                }
                match Address::of(&rowid) {
                    None => found.fault(format!("`{bare}`: the row with key {key} has the address `{rowid}`")),
                    Some(address) if !blocks.insert(address) => {
                        found.fault(format!("`{bare}`: the row with key {key} shares its block with another"));
                    }
                    Some(_) => {}
                }
            }
            for missing in expected..beyond {
                found.fault(format!("`{bare}`: there is no row with key {missing}"));
            }
            stream.done((beyond - from) * u64::from(data.block_bytes));
            from = beyond;
        }
        let more: Option<u64> =
            session.first(&doing, &sql.strange_rows(&name), &[&sql.custid(0), &end], |row| row.get(0))?;
        if let Some(more) = more.filter(|more| *more > 0) {
            found.fault(format!("`{bare}` has {more} rows that set-up did not put there"));
        }
        Ok(())
    }

    fn fault_of(error: &TargetError) -> Option<String> {
        let error = error.database::<ServerError>()?;
        (error.is_data_fault() || number(error) == Some(NO_TABLE)).then(|| error.to_string())
    }
}

/// Parameters that matter to results, where the user may see them.
const PARAMETERS: &str = "SELECT name, value FROM v$parameter WHERE name IN ('db_block_size', 'db_cache_size', 'sga_target', \
    'memory_target', 'cpu_count', 'filesystemio_options', 'disk_asynch_io', 'commit_wait', 'commit_logging', \
    'timed_statistics', 'db_file_multiblock_read_count', 'resource_manager_plan', 'log_buffer', 'cluster_database', \
    'control_management_pack_access')";

impl Dialect for Connector {
    const LOG: (&'static str, Option<&'static str>) = ("redo", None);
    const BUFFERS: (&'static str, &'static str) = ("buffer cache", "buffer_cache");
    const AFTER_LOADING: Option<&'static str> = Some(
        "rows were loaded past the buffer cache, so the first read of a block may clean it. A first run without \
        updates may show redo and writes that the second does not",
    );

    type Programs = NoPrograms<OracleAddress>;
    type Servers = OracleServers;
    type Reader = MonitorRequest;

    fn connector(address: &OracleAddress, per_node: bool, method: Method) -> Result<Self, TargetError> {
        Ok(Self::new(address, APPLICATION, per_node, method)?)
    }

    fn namespace(address: &OracleAddress, _: &DatabaseOptions) -> String {
        schema_of(&address.user)
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![
            "this version of Plimsoll was never tried on a real Oracle database. Compare its results with AWR or \
            Statspack, and send us the file of `plimsoll doctor --first-contact`"
                .to_owned(),
        ];
        if self.method().reads == Reads::KeyByKey {
            remarks.push(
                "ranges are read key by key: surely in single blocks, with more processor time than SLOB's own range scans"
                    .to_owned(),
            );
        }
        remarks
    }

    fn database_of(access: &Access<'_>) -> Result<Option<String>, TargetError> {
        let connected = access.connector.connect(access.node)?;
        let name =
            connected.first::<Option<String>>("find out which database it is", DATABASE, &[], |row| row.get(0))?;
        Ok(name.flatten())
    }

    fn facts(&self) -> Result<TargetFacts, TargetError> {
        let connected = self.connect(0)?;
        let Method { commits, reads, layout } = self.method();
        let mut other = BTreeMap::from([
            ("server_version".to_owned(), format!("Oracle {}", connected.version_text())),
            ("instance".to_owned(), connected.instance.clone()),
        ]);
        let chosen = [
            ("reads", (reads == Reads::KeyByKey).then_some("key by key")),
            ("layout", (layout == Layout::Slob).then_some("SLOB's own tables")),
        ];
        other.extend(chosen.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))));
        let read = |row: &Row| Ok((row.get::<String>(0)?, row.get::<Option<String>>(1)?));
        // Who may not see them does not learn them.
        let parameters = connected.query("ask for its parameters", PARAMETERS, &[], read).unwrap_or_default();
        let mut settings: BTreeMap<String, String> =
            parameters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let reads_directly = settings
            .get("filesystemio_options")
            .map(|mode| ["SETALL", "DIRECTIO"].contains(&mode.to_ascii_uppercase().as_str()));
        if let Ok(Some(bytes)) = connected.first::<u64>("ask for its cache", BUFFER_CACHE, &[], |row| row.get(0)) {
            settings.insert("buffer_cache".to_owned(), bytes.to_string());
        }
        let mut server = ServerFacts {
            reads_directly,
            counts_device_reads: Some(true),
            commits_unwaited: (commits == Commits::Slob).then_some(true),
            settings,
            terms: TERMS.map(|(term, words)| (term, words.to_owned())).into(),
            ..ServerFacts::default()
        };
        self.describe(&mut server);
        Ok(TargetFacts { server, other, ..TargetFacts::default() })
    }

    fn info(access: &Access<'_>) -> Result<Sheet, TargetError> {
        info(access)
    }

    fn prove(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Proven, TargetError> {
        prove(access, data, schemas)
    }

    fn doubts(server: &ServerFacts, _: &DataSet) -> Vec<String> {
        let note = "batched updates are committed as SLOB commits: the server does not wait for the redo of each. Do \
            not compare commits or updates with other databases or `--commit wait`";
        (server.commits_unwaited == Some(true)).then(|| note.to_owned()).into_iter().collect()
    }

    fn reader(&self, _: &Watched<'_>) -> MonitorRequest {
        MonitorRequest::new(self.clone(), APPLICATION)
    }

    fn own_reporter(&self, kind: OwnReportKind) -> Result<Box<dyn OwnReporter>, TargetError> {
        Ok(Box::new(Snapshots::new(self, kind)?))
    }

    fn table_name(&self, namespace: &str, table: TableId) -> String {
        name_of(&Sql::new(namespace, 0).by(self.method()), table)
    }

    fn servers(&self, namespace: &str, data: &DataSet) -> OracleServers {
        OracleServers::new(self.clone(), Sql::new(namespace, data.block_bytes).by(self.method()))
    }
}

/// Where a data set is, or is to be.
pub(crate) type Access<'a> = sql::data::Access<'a, Connector>;

/// A connection that waits for each answer.
#[derive(Debug)]
pub struct Session<'a> {
    access: Access<'a>,
    /// Lent to a thread while a long statement runs; gone for good if that was not waited for.
    connected: Option<Connected>,
    /// Another one, in whose transaction something is locked.
    holding: Option<Connected>,
}

impl<'a> Session<'a> {
    /// Connects for work of any length.
    ///
    /// # Errors
    /// When the database cannot be reached.
    fn open(access: Access<'a>) -> Result<Self, TargetError> {
        let connected = access.connector.connect(access.node)?;
        connected.name_work(access.connector.program(), "set-up");
        Ok(Self { access, connected: Some(connected), holding: None })
    }

    fn access(&self) -> Access<'a> {
        self.access
    }

    /// The connection, for what the others have no words for.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`] when it was left to a statement that nobody waited for.
    fn connected(&self) -> Result<&Connected, TargetError> {
        self.connected.as_ref().ok_or(TargetError::Interrupted)
    }

    /// The version of the server.
    fn version_text(&self) -> String {
        self.connected.as_ref().map(Connected::version_text).unwrap_or_default()
    }

    /// Locks something by a query on a connection of its own, which is kept as long as this session or until it is
    /// [`released`](Self::release); `false` if that is refused with one of the numbers in `is_held`, and `None` if there is nothing to
    /// lock: no row, or an error with one of those in `is_missing`.
    ///
    /// # Errors
    /// When the server refuses otherwise.
    fn hold(&mut self, sql: &str, is_held: &[u32], is_missing: &[u32]) -> Result<Option<bool>, TargetError> {
        let connected = self.access.connector.connect(self.access.node)?;
        let is_one =
            |error: &ServerError, numbers: &[u32]| number(error).is_some_and(|number| numbers.contains(&number));
        match connected.first("lock the data", sql, &[], |_| Ok(())) {
            Ok(Some(())) => {
                self.holding = Some(connected);
                Ok(Some(true))
            }
            Ok(None) => Ok(None),
            Err(error) if is_one(&error, is_held) => Ok(Some(false)),
            Err(error) if is_one(&error, is_missing) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether something is locked so.
    fn is_holding(&self) -> bool {
        self.holding.is_some()
    }

    /// Gives that up.
    fn release(&mut self) {
        self.holding = None;
    }

    /// Executes a short statement, and says how many rows it changed.
    ///
    /// # Errors
    /// When the server refuses.
    fn execute(&self, doing: &str, sql: &str, values: &[&dyn ToDbValue]) -> Result<u64, TargetError> {
        Ok(self.connected()?.execute(doing, sql, values)?)
    }

    /// Executes a statement that may take long. Nothing can cancel it from outside, so when the work is to end it is left to the
    /// database, which finishes it or takes it back when the connection ends.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what the server says.
    fn execute_long(&mut self, doing: &str, sql: String, halt: Halt<'_>) -> Result<u64, TargetError> {
        let doing = doing.to_owned();
        self.long(halt, move |connected| connected.execute(&doing, &sql, &[]))
    }

    /// All rows of a query that may take long, each as `read` takes it. It is left as [`execute_long`](Self::execute_long) is.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or what the server says.
    fn query_long<T: Send + 'static>(
        &mut self,
        doing: &str,
        sql: &str,
        halt: Halt<'_>,
        read: fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, TargetError> {
        let (doing, sql) = (doing.to_owned(), sql.to_owned());
        self.long(halt, move |connected| connected.query(&doing, &sql, &[], read))
    }

    fn long<T: Send + 'static>(
        &mut self,
        halt: Halt<'_>,
        work: impl FnOnce(&Connected) -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, TargetError> {
        halt.check()?;
        let connected = self.connected.take().ok_or(TargetError::Interrupted)?;
        let (sender, done) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("oracle-statement".to_owned());
        let spawned = thread.spawn(move || {
            let outcome = work(&connected);
            let _ = sender.send((connected, outcome));
        });
        spawned.map_err(|source| TargetError::Kernel { action: "start a thread", source })?;
        loop {
            match done.recv_timeout(LOOK_AROUND) {
                Ok((connected, outcome)) => {
                    self.connected = Some(connected);
                    return Ok(outcome?);
                }
                Err(mpsc::RecvTimeoutError::Timeout) if !halt.is_set() => {}
                Err(_) => return Err(TargetError::Interrupted),
            }
        }
    }

    /// All rows of a query, each as `read` takes it.
    ///
    /// # Errors
    /// When the server refuses.
    fn query<T>(
        &self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, TargetError> {
        Ok(self.connected()?.query(doing, sql, values, read)?)
    }

    /// The first row of a query, if it has any.
    ///
    /// # Errors
    /// When the server refuses.
    fn first<T>(
        &self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Option<T>, TargetError> {
        Ok(self.connected()?.first(doing, sql, values, read)?)
    }
}
