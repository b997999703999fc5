//! Connections to Oracle databases.

use crate::error::{ORACLE, error_of};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::driver::{self, Driver, Error, Landed, Prepared, Row, Settings, ToDbValue};
use super::login::{Login, ask_person};
use super::nodes::{Node, nodes_of};
use super::refusal::Refusal;
use ::sql::ServerError;
use ::sql::ending::{EndSignal, LOOK};
use ::sql::{Environment, SessionId};
use model::config::oracle::{OracleAddress, OracleDriver};
use targets::database::Method;

/// Threads that connect are called so: see [`quiet_panics`].
const CONNECTING: &str = "oracle-connect";
/// Rows that a question of ours is answered with in one round trip.
const ROWS_AT_ONCE: u32 = 500;
/// The network, and then the login, may each take the address's time.
const STAGES: u32 = 2;

/// Makes connections to the databases of one address.
#[derive(Debug, Clone)]
pub struct Connector {
    login: Login,
    address: OracleAddress,
    nodes: Vec<Node>,
    program: String,
    method: Method,
    /// Instances of a cluster that are watched together. Clones share it.
    instances: Arc<Mutex<BTreeMap<u64, String>>>,
}

/// A connection. It is asked one thing at a time, and waits for the answer.
pub struct Connected {
    /// Never to be printed: it knows the password.
    driver: Box<dyn Driver>,
    node: String,
    /// The instance that it landed on.
    pub(super) instance: String,
    /// The server's version: 19, 3, 0, 0, 0.
    pub(super) version: [usize; 5],
    /// SID and serial number of the session.
    pub(super) id: SessionId,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, instance, version, id, driver: _ } = self;
        let mut shown = f.debug_struct("Connected");
        shown.field("node", node).field("instance", instance).field("version", version).field("id", id).finish()
    }
}

impl Connector {
    /// For the databases of `address`; for each listener of its own if `per_node`, else for the first that answers. Sessions are
    /// known to the server as `program`.
    ///
    /// # Errors
    /// When there is no password, or not the driver that the address asks for.
    pub fn new(address: &OracleAddress, program: &str, per_node: bool, method: Method) -> Result<Self, ServerError> {
        if !driver::is_built_in(address.driver) {
            return Err(ServerError::Unfit {
                what: "this program was built without the driver for an installed Oracle client (`driver=oci`)".to_owned(),
                hint: Some(
                    "build it with that: `make build FEATURES=oracle-oci`, or `cargo build --release --locked --features \
                     oracle-oci`; or leave out `driver=oci`"
                        .to_owned(),
                ),
            });
        }
        let login = Login::of(address, &Environment::of_process(), &ask_person)?;
        // The other driver has a setting for that.
        let within = (address.driver == OracleDriver::Oci).then_some(login.connect_timeout);
        let nodes = nodes_of(address, per_node, within);
        Ok(Self {
            login,
            address: address.clone(),
            nodes,
            program: program.to_owned(),
            method,
            instances: Arc::default(),
        })
    }

    /// Names of the places that sessions go to.
    pub fn nodes(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// Instances of a cluster that are watched over one address, their names by their numbers; none where each address is watched by
    /// itself.
    pub(super) fn instances(&self) -> MutexGuard<'_, BTreeMap<u64, String>> {
        // What a panic left behind are names.
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// [`ServerError::Connect`], with what to do about it.
    pub fn connect(&self, node: usize) -> Result<Connected, ServerError> {
        let Node { name, connect_string } = &self.nodes[node];
        let refusal = Refusal { node: name, login: &self.login };
        let settings = self.settings(connect_string);
        quiet_panics();
        let (sender, answer) = mpsc::sync_channel(1);
        // On a thread of its own: the driver panics where it has not been finished, and waits for an answer to the login without
        // any limit.
        let thread = std::thread::Builder::new().name(CONNECTING.to_owned()).spawn(move || {
            let _ = sender.send(driver::connect(&settings));
        });
        let thread = thread.map_err(|error| ServerError::Unfit {
            what: format!("this system gives no thread to connect with: {error}"),
            hint: Some("allow more processes: `ulimit -u`".to_owned()),
        })?;
        let limit = self.login.connect_timeout * STAGES;
        let (signal, deadline) = (EndSignal::from_now_on(), Instant::now() + limit);
        let answer = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match answer.recv_timeout(left.min(LOOK)) {
                Err(mpsc::RecvTimeoutError::Timeout) if signal.is_set() => {
                    return Err(ORACLE.interrupted(name));
                }
                Err(mpsc::RecvTimeoutError::Timeout) if !left.is_zero() => {}
                answer => break answer,
            }
        };
        let (driver, landed) = match answer {
            Ok(connected) => connected.map_err(|error| refusal.of(&error))?,
            Err(mpsc::RecvTimeoutError::Timeout) => return Err(refusal.silence(limit)),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let why = thread.join().err();
                let said = why.as_ref().and_then(|why| {
                    why.downcast_ref::<String>()
                        .cloned()
                        .or_else(|| why.downcast_ref::<&str>().map(|&text| text.to_owned()))
                });
                return Err(refusal.of(&driver::given_up(said.as_deref().unwrap_or_default())));
            }
        };
        let Landed { instance, version, id } = landed;
        Ok(Connected { driver, node: name.clone(), instance, version, id })
    }

    fn settings(&self, connect_string: &str) -> Settings {
        let Login { user, password, wallet_password, tns_admin, connect_timeout, .. } = &self.login;
        Settings {
            driver: self.address.driver,
            user: user.clone(),
            password: password.clone(),
            role: self.address.role,
            connect_string: connect_string.to_owned(),
            connect_timeout: *connect_timeout,
            tns_admin: tns_admin.clone(),
            wallet: self.address.wallet.clone(),
            wallet_password: wallet_password.clone(),
            program: self.program.clone(),
        }
    }
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
    /// The place that it was connected to.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// The version as it is shown.
    pub(super) fn version_text(&self) -> String {
        self.version.map(|part| part.to_string()).join(".")
    }

    /// What an error of this connection means.
    pub(super) fn error(&self, doing: &str, error: &Error) -> ServerError {
        error_of(&self.node, doing, error)
    }

    /// Names what the session does, as `v$session` shows it; it goes with the next call.
    pub(super) fn name_work(&self, module: &str, action: &str) {
        // Only a poisoned lock could be in the way, and the next call says so.
        let _ = self.driver.name_work(module, action);
    }

    /// Limits how long a call may take. One that takes longer is cancelled and ends in an error.
    pub(super) fn limit_calls(&self, limit: Option<Duration>) -> Result<(), ServerError> {
        self.driver.limit_calls(limit).map_err(|error| self.error("limit how long calls take", &error))
    }

    /// Executes a statement or a block, and says how many rows it changed.
    pub(super) fn execute(&self, doing: &str, sql: &str, values: &[&dyn ToDbValue]) -> Result<u64, ServerError> {
        self.driver.execute(sql, values).map_err(|error| self.error(doing, &error))
    }

    /// Executes a block, and gives what it puts out.
    pub(super) fn call(&self, doing: &str, sql: &str, values: &[&dyn ToDbValue]) -> Result<Row, ServerError> {
        self.driver.call(sql, values).map_err(|error| self.error(doing, &error))
    }

    /// Executes a statement once for each row of values, in one round trip.
    pub(super) fn execute_for_each(
        &self,
        doing: &str,
        sql: &str,
        rows: &[&[&dyn ToDbValue]],
    ) -> Result<u64, ServerError> {
        self.driver.execute_for_each(sql, rows).map_err(|error| self.error(doing, &error))
    }

    /// All rows of a query, each as `read` takes it.
    pub(super) fn query<T>(
        &self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, ServerError> {
        let mut rows = Vec::new();
        let mut take = |row: &Row| {
            rows.push(read(row)?);
            Ok(())
        };
        let done = self.driver.query(sql, values, ROWS_AT_ONCE, &mut take);
        done.map_err(|error| self.error(doing, &error))?;
        Ok(rows)
    }

    /// The first row of a query, if it has any.
    pub(super) fn first<T>(
        &self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Option<T>, ServerError> {
        match self.driver.first(sql, values).and_then(|row| read(&row)) {
            Ok(found) => Ok(Some(found)),
            Err(Error::NoRow) => Ok(None),
            Err(error) => Err(self.error(doing, &error)),
        }
    }

    /// A statement or block that is executed many times.
    pub(super) fn prepare(&self, doing: &str, sql: &str) -> Result<Prepared, ServerError> {
        self.driver.prepare(sql).map_err(|error| self.error(doing, &error))
    }

    /// Executes a block that was prepared, and gives the number that it puts out, which is its last value.
    pub(super) fn count_of_block(
        &self,
        doing: &str,
        block: &mut Prepared,
        values: &[&dyn ToDbValue],
    ) -> Result<u64, ServerError> {
        let count = block.call(values).and_then(|row| row.get(0));
        count.map_err(|error| self.error(doing, &error))
    }

    /// Executes a block that was prepared, and gives the numbers that it puts out, which are its last values.
    pub(super) fn numbers_of_block<const N: usize>(
        &self,
        doing: &str,
        block: &mut Prepared,
        values: &[&dyn ToDbValue],
    ) -> Result<[i64; N], ServerError> {
        let read = |row: Row| {
            let mut numbers = [0; N];
            for (column, number) in numbers.iter_mut().enumerate() {
                *number = row.get(column)?;
            }
            Ok(numbers)
        };
        block.call(values).and_then(read).map_err(|error| self.error(doing, &error))
    }

    /// Executes a block that was prepared, and lets `read` have the bytes that it puts out; none where they are null.
    pub(super) fn bytes_of_block<T>(
        &self,
        doing: &str,
        block: &mut Prepared,
        values: &[&dyn ToDbValue],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, ServerError> {
        let done = block.call(values).and_then(|row| Ok(read(row.bytes(0)?)));
        done.map_err(|error| self.error(doing, &error))
    }

    /// The number that a query of one row gives. It stays prepared by its text.
    pub(super) fn count_of_query(&self, doing: &str, sql: &str, values: &[&dyn ToDbValue]) -> Result<u64, ServerError> {
        let count = self.driver.first(sql, values).and_then(|row| row.get(0));
        count.map_err(|error| self.error(doing, &error))
    }

    /// Asks for a sign of life: one round trip with nothing to do on the other side.
    pub(super) fn ping(&self) -> Result<(), ServerError> {
        self.driver.ping().map_err(|error| self.error("ask for a sign of life", &error))
    }

    /// Ends the transaction.
    pub(super) fn commit(&self, doing: &str) -> Result<(), ServerError> {
        self.driver.commit().map_err(|error| self.error(doing, &error))
    }

    /// Takes back what was not committed.
    pub(super) fn roll_back(&self, doing: &str) -> Result<(), ServerError> {
        self.driver.rollback().map_err(|error| self.error(doing, &error))
    }

    /// Takes back what was not committed. A connection that is gone has nothing to take back.
    pub(super) fn rollback(&self) {
        let _ = self.driver.rollback();
    }
}
