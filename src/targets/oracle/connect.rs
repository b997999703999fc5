//! Connections to Oracle databases.

use std::fmt;
use std::sync::{Once, mpsc};
use std::time::Duration;

use oracledb::{Config, Connection, Error, ErrorKind, Row, Statement, ToDbValue};

use super::error::{OraNumber, OracleError, bare, refusal_hint, words};
use super::login::{Login, ask_person};
use crate::config::ServerNode;
use crate::config::oracle::{DEFAULT_PORT, OracleAddress, OraclePlace, OracleRole};
use crate::targets::database::Method;
use crate::targets::sql::Environment;

/// Threads that connect are called so: see [`quiet_panics`].
const CONNECTING: &str = "oracle-connect";
/// Statements of a session that the driver keeps prepared: more than operations and batches have.
const STATEMENTS: usize = 32;
/// Rows that a question of ours is answered with in one round trip.
const ROWS_AT_ONCE: u32 = 500;
/// The network, and then the login, may each take the address's time.
const STAGES: u32 = 2;
/// First bytes of the version by which the driver knows a server: 12.1.
const OLDEST: usize = 12;

/// Makes connections to the databases of one address.
#[derive(Debug, Clone)]
pub struct Connector {
    login: Login,
    address: OracleAddress,
    nodes: Vec<Node>,
    program: String,
    method: Method,
}

/// One place that sessions go to.
#[derive(Debug, Clone)]
struct Node {
    /// As it is shown: `db1:1521/orcl`.
    name: String,
    /// What the driver is given.
    connect_string: String,
}

/// A connection. It is asked one thing at a time, and waits for the answer.
pub struct Connected {
    /// Never to be printed: it knows the password.
    conn: Connection,
    node: String,
    /// The instance that it landed on.
    pub(super) instance: String,
    /// The server's version: 19, 3, 0, 0, 0.
    pub(super) version: [usize; 5],
    /// SID and serial number of the session.
    pub(super) id: SessionId,
}

/// How a database numbers its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionId {
    /// `SID`.
    pub sid: u64,
    /// `SERIAL#`.
    pub serial: u64,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, instance, version, id, conn: _ } = self;
        let mut shown = f.debug_struct("Connected");
        shown.field("node", node).field("instance", instance).field("version", version).field("id", id).finish()
    }
}

impl Connector {
    /// For the databases of `address`; for each listener of its own if `per_node`, else for the first that answers. Sessions are
    /// known to the server as `program`.
    ///
    /// # Errors
    /// When there is no password.
    pub fn new(address: &OracleAddress, program: &str, per_node: bool, method: Method) -> Result<Self, OracleError> {
        // Two libraries in this program bring a provider each; the driver fails unless one was chosen. Another one that was
        // chosen before serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let login = Login::of(address, &Environment::of_process(), &ask_person)?;
        let nodes = nodes_of(address, per_node);
        Ok(Self { login, address: address.clone(), nodes, program: program.to_owned(), method })
    }

    /// Names of the places that sessions go to.
    pub fn nodes(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// How load is put on them.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The user who logs in.
    pub fn user(&self) -> &str {
        &self.login.user
    }

    /// The program's name as the server shows it.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Connects to node number `node`. Waits for it, at most for the address's time and a while for the login.
    ///
    /// # Errors
    /// [`OracleError::Connect`], with what to do about it.
    pub fn connect(&self, node: usize) -> Result<Connected, OracleError> {
        let Node { name, connect_string } = &self.nodes[node];
        let config = self.config(connect_string).map_err(|error| self.failed(name, &error))?;
        quiet_panics();
        let (sender, answer) = mpsc::sync_channel(1);
        // On a thread of its own: the driver panics where it has not been finished, and waits for an answer to the login without
        // any limit.
        let thread = std::thread::Builder::new().name(CONNECTING.to_owned()).spawn(move || {
            let _ = sender.send(oracledb::connect(config));
        });
        let thread = thread.map_err(|error| OracleError::Unfit {
            what: format!("this system gives no thread to connect with: {error}"),
            hint: Some("allow more processes: `ulimit -u`".to_owned()),
        })?;
        let conn = match answer.recv_timeout(self.login.connect_timeout * STAGES) {
            Ok(connected) => connected.map_err(|error| self.failed(name, &error))?,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let waited = (self.login.connect_timeout * STAGES).as_secs();
                return Err(self.refused(
                    name,
                    format!("something listens there and does not answer (waited {waited} s)"),
                    "check host and port, and the listener's log; allow more time: `connect-timeout=60`",
                ));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let why = thread.join().err();
                let said = why.as_ref().and_then(|why| {
                    why.downcast_ref::<String>()
                        .cloned()
                        .or_else(|| why.downcast_ref::<&str>().map(|&text| text.to_owned()))
                });
                return Err(self.panicked(name, said.as_deref().unwrap_or_default()));
            }
        };
        Connected::new(conn, name).map_err(|error| self.failed(name, &error))
    }

    fn config(&self, connect_string: &str) -> Result<Config, Error> {
        let Login { user, password, wallet_password, tns_admin, connect_timeout, .. } = &self.login;
        let mut config = Config::default()
            .set_credentials(user, password.expose())
            .set_driver_name(concat!("plimsoll ", env!("CARGO_PKG_VERSION")))
            .set_program(self.program.as_str())?
            .set_stmtcachesize(STATEMENTS)
            .set_transport_connect_timeout(Some(*connect_timeout));
        if let Some(directory) = tns_admin {
            config = config.set_config_dir(directory);
        }
        if let Some(wallet) = &self.address.wallet {
            config = config.set_wallet_location(wallet.to_string_lossy());
        }
        if let Some(password) = wallet_password {
            config = config.set_wallet_password(password.expose());
        }
        config = match self.address.role {
            Some(OracleRole::Sysdba) => config.set_auth_mode(oracledb::AUTH_MODE_SYSDBA),
            Some(OracleRole::Sysoper) => config.set_auth_mode(oracledb::AUTH_MODE_SYSOPER),
            None => config,
        };
        config.set_connect_string(connect_string)
    }

    fn refused(&self, node: &str, reason: impl Into<String>, hint: impl Into<String>) -> OracleError {
        OracleError::Connect { node: node.to_owned(), reason: reason.into(), hint: Some(hint.into()) }
    }

    /// What the driver's panic means: it has two while it connects, and both have a cause that can be named.
    fn panicked(&self, node: &str, said: &str) -> OracleError {
        let other_driver = "this driver cannot; on the server, ";
        match said {
            _ if said.contains("not yet implemented") => self.refused(
                node,
                "the server demands its native network encryption or checksums, which this driver does not have",
                format!(
                    "{other_driver}set SQLNET.ENCRYPTION_SERVER and SQLNET.CRYPTO_CHECKSUM_SERVER to ACCEPTED, or use TCPS: \
                     `protocol=tcps`"
                ),
            ),
            _ => self.refused(
                node,
                format!("the driver gave up while it logged in as `{}`, as it does where the server has only an old password \
                         verifier (10G, 11G)", self.login.user),
                format!("{other_driver}set the password again, with a 12C verifier (ALTER USER … IDENTIFIED BY …)"),
            ),
        }
    }

    /// Why no connection was made.
    fn failed(&self, node: &str, error: &Error) -> OracleError {
        let listener = "look whether the listener runs there: `lsnrctl services`";
        match error.kind() {
            ErrorKind::DbError(refusal) => {
                let code = u32::try_from(refusal.code()).unwrap_or(0);
                let hint = match code {
                    1017 => self.login.password_source.clone(),
                    1031 | 1994 => "the user may not log in with that role; leave out `role`".to_owned(),
                    12_514 | 12_505 => format!("check the name of the service; {listener}"),
                    code => refusal_hint(code).unwrap_or(listener).to_owned(),
                };
                self.refused(node, format!("{} ({})", bare(refusal.message()), OraNumber(code)), hint)
            }
            ErrorKind::InvalidServiceName(_, service, ..) => self.refused(
                node,
                format!("the listener knows no service `{service}` (ORA-12514)"),
                format!("check the name of the service; {listener}"),
            ),
            ErrorKind::InvalidSid(_, sid, ..) => self.refused(
                node,
                format!("the listener knows no SID `{sid}` (ORA-12505)"),
                format!("name a service instead of a SID; {listener}"),
            ),
            ErrorKind::ListenerRefusedConnection(_, _, _, code) => {
                self.refused(node, format!("the listener refused the connection (ORA-{code:05})"), listener)
            }
            ErrorKind::TnsAliasNotFound(file, alias) => self.refused(
                node,
                format!("there is no `{alias}` in `{file}`"),
                "check the name, or name the database: `oracle://USER@HOST:PORT/SERVICE`",
            ),
            ErrorKind::NoConfigDir => self.refused(
                node,
                "it is a name of tnsnames.ora, and TNS_ADMIN does not say where that is",
                "set TNS_ADMIN to its directory, or name the database: `oracle://USER@HOST:PORT/SERVICE`",
            ),
            ErrorKind::CallTimeoutExceeded => self.refused(
                node,
                format!("no answer within {} s (ORA-12170)", self.login.connect_timeout.as_secs()),
                "check the address, the network and its firewalls, or allow more time: `connect-timeout=60`",
            ),
            ErrorKind::ServerVersionNotSupported => {
                self.refused(node, format!("the database is older than {OLDEST}.1"), "this driver needs 12.1 or later")
            }
            ErrorKind::WalletUnreadable(file) => self.refused(
                node,
                format!("the wallet `{file}` cannot be read"),
                "name the directory that has `ewallet.pem`: `wallet=DIR`",
            ),
            ErrorKind::WalletPasswordMissingOrInvalid(file, _) => self.refused(
                node,
                format!("the password of the wallet `{file}` is missing or wrong"),
                "give it in the environment: PLIMSOLL_ORACLE_WALLET_PASSWORD",
            ),
            ErrorKind::TlsOperation => self.refused(
                node,
                format!("the connection could not be encrypted: {}", words(error)),
                "name the directory of the wallet that trusts the server (`wallet=DIR`), and the port that has TCPS",
            ),
            ErrorKind::StreamOperation | ErrorKind::DeadConnection | ErrorKind::OutOfData => {
                self.refused(node, words(error), format!("check the address and the network to it; {listener}"))
            }
            _ => self.refused(
                node,
                format!("what answered does not speak as Oracle does ({})", words(error)),
                "check host and port; something else may listen there",
            ),
        }
    }
}

/// The places of an address.
fn nodes_of(address: &OracleAddress, per_node: bool) -> Vec<Node> {
    let OraclePlace::Listeners { nodes, service, tls, server, instance } = &address.place else {
        let (OraclePlace::Alias(text) | OraclePlace::Descriptor(text)) = &address.place else {
            unreachable!("a place without listeners is a name or a descriptor")
        };
        return vec![Node { name: text.clone(), connect_string: text.clone() }];
    };
    let groups: Vec<&[ServerNode]> = if per_node { nodes.chunks(1).collect() } else { vec![nodes] };
    let services: Vec<String> = match address.services {
        Some(count) => (1..=count).map(|number| format!("{service}{number}")).collect(),
        None => vec![service.clone()],
    };
    let protocol = if *tls { "tcps" } else { "tcp" };
    let own = |word: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!("({word}={value})")).unwrap_or_default()
    };
    let node = |(nodes, service): (&[ServerNode], &String)| {
        let shown: Vec<String> = nodes.iter().map(|node| node.shown(DEFAULT_PORT)).collect();
        let addresses: String = nodes
            .iter()
            .map(|ServerNode { host, port }| {
                let port = port.unwrap_or(DEFAULT_PORT);
                format!("(ADDRESS=(PROTOCOL={protocol})(HOST={host})(PORT={port}))")
            })
            .collect();
        let data = format!("(SERVICE_NAME={service}){}{}", own("SERVER", server), own("INSTANCE_NAME", instance));
        Node {
            name: format!("{}/{service}", shown.join(",")),
            // Without the delay of none, each address that fails costs a second.
            connect_string: format!("(DESCRIPTION=(RETRY_DELAY=0)(ADDRESS_LIST={addresses})(CONNECT_DATA={data}))"),
        }
    };
    groups.iter().flat_map(|group| services.iter().map(move |service| (*group, service))).map(node).collect()
}

/// Keeps panics of connecting threads off the screen: their causes are named in the error that they become.
fn quiet_panics() {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name() != Some(CONNECTING) {
                usual(panic);
            }
        }));
    });
}

impl Connected {
    fn new(conn: Connection, node: &str) -> Result<Self, Error> {
        let oracledb::OracleVersion(major, minor, third, fourth, fifth) = conn.version()?;
        let instance = conn.instance_name()?.to_owned();
        let id = SessionId { sid: conn.session_id()? as u64, serial: conn.serial_num()? as u64 };
        Ok(Self { conn, node: node.to_owned(), instance, version: [major, minor, third, fourth, fifth], id })
    }

    /// The place that it was connected to.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// The version as it is shown.
    pub(super) fn version_text(&self) -> String {
        self.version.map(|part| part.to_string()).join(".")
    }

    /// What an error of this connection means.
    pub(super) fn error(&self, doing: &str, error: &Error) -> OracleError {
        OracleError::of(&self.node, doing, error)
    }

    /// Names what the session does, as `v$session` shows it; it goes with the next call.
    pub(super) fn name_work(&self, module: &str, action: &str) {
        // Only a poisoned lock could be in the way, and the next call says so.
        let _ = self.conn.set_module(module);
        let _ = self.conn.set_action(action);
    }

    /// Limits how long a call may take. One that takes longer is cancelled and ends in an error.
    pub(super) fn limit_calls(&self, limit: Option<Duration>) -> Result<(), OracleError> {
        self.conn.set_call_timeout(limit).map_err(|error| self.error("limit how long calls take", &error))
    }

    /// Executes a statement or a block, and says how many rows it changed.
    pub(super) fn execute(&self, doing: &str, sql: &str, values: &[&dyn ToDbValue]) -> Result<u64, OracleError> {
        let done = self.conn.execute(sql, values);
        done.map(|done| done.rows_affected()).map_err(|error| self.error(doing, &error))
    }

    /// Executes a block, and gives what it puts out.
    pub(super) fn call(&self, doing: &str, sql: &str, values: &[&dyn ToDbValue]) -> Result<Row, OracleError> {
        let done = self.conn.execute(sql, values);
        done.map(|mut done| done.out_bind_data()).map_err(|error| self.error(doing, &error))
    }

    /// Executes a statement once for each row of values, in one round trip.
    pub(super) fn execute_for_each(
        &self,
        doing: &str,
        sql: &str,
        rows: &[&[&dyn ToDbValue]],
    ) -> Result<u64, OracleError> {
        let done = self.conn.execute_batch(sql, rows);
        done.map(|done| done.rows_affected()).map_err(|error| self.error(doing, &error))
    }

    /// All rows of a query, each as `read` takes it.
    ///
    /// A server leaves out what a row has in common with the row before, and the driver forgets to forget which columns those were.
    /// A column that is the same in all rows has each row say so again; it comes last, where nobody looks.
    pub(super) fn query<T>(
        &self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, OracleError> {
        let rows = || {
            let sql = format!("SELECT q.*, 1 FROM ({sql}) q");
            let statement = self.conn.statement(&sql)?.prefetch_rows(ROWS_AT_ONCE).fetch_array_size(ROWS_AT_ONCE);
            statement.build()?.query(values)?.map(|row| read(&row?)).collect::<Result<Vec<T>, Error>>()
        };
        rows().map_err(|error| self.error(doing, &error))
    }

    /// The first row of a query, if it has any.
    pub(super) fn first<T>(
        &self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Option<T>, OracleError> {
        let row = || read(&self.conn.statement(sql)?.prefetch_rows(1).build()?.query_row(values)?);
        match row() {
            Ok(found) => Ok(Some(found)),
            Err(error) if matches!(error.kind(), ErrorKind::NoDataFound) => Ok(None),
            Err(error) => Err(self.error(doing, &error)),
        }
    }

    /// A statement or block that is executed many times.
    pub(super) fn prepare(&self, doing: &str, sql: &str) -> Result<Statement, OracleError> {
        let prepared = self.conn.statement(sql).and_then(|statement| statement.build());
        prepared.map_err(|error| self.error(doing, &error))
    }

    /// Executes a block that was prepared, and gives the number that it puts out, which is its last value.
    pub(super) fn count_of_block(
        &self,
        doing: &str,
        block: &mut Statement,
        values: &[&dyn ToDbValue],
    ) -> Result<u64, OracleError> {
        let count = block.execute(values).and_then(|mut done| done.out_bind_data().get(0));
        count.map_err(|error| self.error(doing, &error))
    }

    /// Executes a block that was prepared, and lets `read` have the bytes that it puts out; none where they are null.
    pub(super) fn bytes_of_block<T>(
        &self,
        doing: &str,
        block: &mut Statement,
        values: &[&dyn ToDbValue],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, OracleError> {
        let done = block.execute(values).and_then(|mut done| {
            let row = done.out_bind_data();
            let bytes: Option<&[u8]> = row.get(0)?;
            Ok(read(bytes.unwrap_or_default()))
        });
        done.map_err(|error| self.error(doing, &error))
    }

    /// The number that a query of one row gives. The driver keeps it prepared by its text, unless it has seen the end of the rows.
    pub(super) fn count_of_query(&self, doing: &str, sql: &str, values: &[&dyn ToDbValue]) -> Result<u64, OracleError> {
        let count = || self.conn.statement(sql)?.prefetch_rows(1).build()?.query_row(values)?.get(0);
        count().map_err(|error| self.error(doing, &error))
    }

    /// Asks for a sign of life: one round trip with nothing to do on the other side.
    pub(super) fn ping(&self) -> Result<(), OracleError> {
        self.conn.ping().map_err(|error| self.error("ask for a sign of life", &error))
    }

    /// Ends the transaction.
    pub(super) fn commit(&self, doing: &str) -> Result<(), OracleError> {
        self.conn.commit().map_err(|error| self.error(doing, &error))
    }

    /// Takes back what was not committed. A connection that is gone has nothing to take back.
    pub(super) fn rollback(&self) {
        let _ = self.conn.rollback();
    }
}
