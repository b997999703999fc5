//! Connections to Oracle databases.

use crate::error::{ORACLE, error_of};
use std::collections::BTreeMap;
use std::fmt;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::driver::{self, Driver, Error, Landed, Prepared, Row, Settings, ToDbValue};
use super::refusal::Refusal;
use super::sql::quoted;
use ::sql::orders::load::ANSWERS;
use ::sql::orders::load::procedure::Parts;
use ::sql::{Environment, ServerError, SessionId, SqlText};
use model::config::oracle::{DEFAULT_PORT, OracleAddress, OracleDriver, OraclePlace};
use model::config::{Secret, SecretFile, SecretFileProblem, ServerNode};
use model::record::ServerFacts;
use model::workload::orders::tables::Kind;
use targets::database::Method;
use targets::ending::{EndSignal, LOOK};

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

    /// Adds to `facts` how connections are made, as far as the address says; what an entry of `tnsnames.ora` or an installed client
    /// does is not known.
    pub(super) fn describe(&self, facts: &mut ServerFacts) {
        let OraclePlace::Listeners { tls, .. } = &self.address.place else { return };
        let is_ours = self.address.driver == OracleDriver::Thin;
        facts.tls_mode = Some(if *tls { "tcps" } else { "tcp" }.to_owned());
        facts.is_encrypted = Some(*tls).filter(|tls| *tls || is_ours);
        // The driver in Rust connects to nobody whose certificate is not trusted.
        facts.is_verified = (*tls && is_ours).then_some(true);
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

/// One place that sessions go to.
#[derive(Debug, Clone)]
struct Node {
    /// As it is shown: `db1:1521/orcl`.
    pub(super) name: String,
    /// What the driver is given.
    pub(super) connect_string: String,
}

/// The places of an address, each of which is to answer `within` a time if that has to stand in its descriptor.
fn nodes_of(address: &OracleAddress, per_node: bool, within: Option<Duration>) -> Vec<Node> {
    let (nodes, service, tls, server, instance) = match &address.place {
        OraclePlace::Listeners { nodes, service, tls, server, instance } => (nodes, service, tls, server, instance),
        OraclePlace::Alias(text) | OraclePlace::Descriptor(text) => {
            return vec![Node { name: text.clone(), connect_string: text.clone() }];
        }
    };
    let groups: Vec<&[ServerNode]> = if per_node { nodes.chunks(1).collect() } else { vec![nodes] };
    let services: Vec<String> = match address.services {
        Some(count) => (1..=count).map(|number| format!("{service}{number}")).collect(),
        None => vec![service.clone()],
    };
    let limit = within.map(|limit| limit.as_secs().max(1));
    let limit = limit.map(|s| format!("(CONNECT_TIMEOUT={s})(TRANSPORT_CONNECT_TIMEOUT={s})")).unwrap_or_default();
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
            connect_string: format!(
                "(DESCRIPTION=(RETRY_DELAY=0){limit}(ADDRESS_LIST={addresses})(CONNECT_DATA={data}))"
            ),
        }
    };
    groups.iter().flat_map(|group| services.iter().map(move |service| (*group, service))).map(node).collect()
}

/// Longest wait for a connection where nobody says.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Variables of the environment that hold the password, and that of the wallet.
const PASSWORD: &str = "PLIMSOLL_ORACLE_PASSWORD";
const WALLET_PASSWORD: &str = "PLIMSOLL_ORACLE_WALLET_PASSWORD";

/// All that is needed to log in, with nothing left open.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(super) user: String,
    pub(super) password: Secret,
    pub(super) wallet_password: Option<Secret>,
    /// Where the password came from, for whoever was refused.
    pub(super) password_source: String,
    /// Directory of `tnsnames.ora`.
    pub(super) tns_admin: Option<String>,
    pub(super) connect_timeout: Duration,
}

impl Login {
    /// What `address` asks for, in `environment`. A person is asked for the password by `ask`, where there is one.
    ///
    /// # Errors
    /// When there is no password, or its file cannot be read or may be read by others.
    pub(super) fn of(
        address: &OracleAddress,
        environment: &Environment<'_>,
        ask: &dyn Fn(&str) -> Option<Secret>,
    ) -> Result<Self, ServerError> {
        let user = address.user.clone();
        let (password, password_source) = match &address.password_file {
            Some(path) => (of_file(path)?, format!("check the password in `{}`", path.display())),
            None => match environment.text(PASSWORD) {
                Some(password) => (Secret::new(password), format!("check the password in {PASSWORD}")),
                None => match ask(&format!("Password of `{user}` in Oracle: ")) {
                    Some(password) => (password, "check the password".to_owned()),
                    None => {
                        return Err(ServerError::Unfit {
                            what: format!("there is no password for the user `{user}`"),
                            hint: Some(format!(
                                "give it in the environment ({PASSWORD}), or in a file that only you may read: `?password-file=PATH`"
                            )),
                        });
                    }
                },
            },
        };
        let timeout = address.connect_timeout_s.map(|seconds| Duration::from_secs(seconds.into()));
        Ok(Self {
            user,
            password,
            wallet_password: environment.text(WALLET_PASSWORD).map(Secret::new),
            password_source,
            tns_admin: environment.text("TNS_ADMIN"),
            connect_timeout: timeout.unwrap_or(CONNECT_TIMEOUT),
        })
    }
}

/// Asks the person at the terminal, without showing what is typed; none where there is no terminal.
fn ask_person(prompt: &str) -> Option<Secret> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    rpassword::prompt_password(prompt).ok().filter(|typed| !typed.is_empty()).map(Secret::new)
}

fn of_file(path: &Path) -> Result<Secret, ServerError> {
    let shown = path.display();
    let unfit = |what: String, hint: &str| ServerError::Unfit { what, hint: Some(hint.to_owned()) };
    let correct = "correct `password-file` in the address, or let this user read the file";
    let secret = SecretFile::secret_text(path).map_err(|problem| match problem {
        SecretFileProblem::Open => unfit(
            format!("the password in `{shown}` is not used: group or others may read the file"),
            &format!("`chmod 600 {shown}`"),
        ),
        problem => unfit(format!("cannot read the password in `{shown}`: {problem}"), correct),
    })?;
    let text = secret.expose();
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(Secret::new(line)),
        None => Err(unfit(format!("the first line of `{shown}` is empty"), "write the password into its first line")),
    }
}

// What Oracle says in words of its own, and transactions of order entry as procedures in PL/SQL.

/// Now in UTC, whatever the time zones of session and server are.
const NOW: &str = "SYS_EXTRACT_UTC(SYSTIMESTAMP)";

impl SqlText for Connector {
    fn quoted(name: &str) -> String {
        name.to_owned()
    }

    fn qualified(namespace: &str, name: &str) -> String {
        format!("{}.{name}", quoted(namespace))
    }

    fn kind(kind: Kind) -> String {
        match kind {
            Kind::Whole(digits) => format!("NUMBER({digits})"),
            Kind::Money(digits) => format!("NUMBER({digits},2)"),
            Kind::Text(chars) => format!("VARCHAR2({chars} CHAR)"),
            Kind::Day => "DATE".to_owned(),
            Kind::Instant => "TIMESTAMP(6)".to_owned(),
        }
    }

    fn value(number: usize) -> String {
        format!(":v{number}")
    }

    fn days_ahead(days: &str) -> String {
        format!("TRUNC({NOW}) + {days}")
    }

    fn now() -> &'static str {
        NOW
    }

    /// A date is a number of days once another one is taken from it.
    fn five_minutes(instant: &str) -> String {
        format!("FLOOR((CAST({instant} AS DATE) - DATE '1970-01-01') * 288)")
    }

    fn next_logon(namespace: &str) -> String {
        format!("{}.logon_seq.NEXTVAL", quoted(namespace))
    }

    fn limit(rows: usize) -> String {
        format!(" FETCH FIRST {rows} ROWS ONLY")
    }

    fn returning(key: &str) -> String {
        format!(" RETURNING {key} INTO :new_key")
    }

    fn call(namespace: &str, procedure: &str, values: &[String]) -> String {
        let answer = (values.len() + 1..=values.len() + ANSWERS).map(Self::value);
        let all: Vec<String> = values.iter().cloned().chain(answer).collect();
        format!("BEGIN {}({}); END;", Self::table(namespace, procedure), all.join(", "))
    }

    fn frame(namespace: &str, parts: &Parts, mark: &str) -> String {
        let Parts { name, parameters, wholes, begins, banks, pauses, answer, body } = parts;
        let kind = |is_text: bool| if is_text { "VARCHAR2" } else { "NUMBER" };
        let mut head: Vec<String> =
            parameters.iter().map(|(name, is_text)| format!("{name} IN {}", kind(*is_text))).collect();
        head.extend(answer.iter().map(|name| format!("{name} OUT NUMBER")));
        let mut declared = vec!["TYPE numbers IS TABLE OF NUMBER INDEX BY PLS_INTEGER".to_owned()];
        declared.extend(wholes.iter().map(|name| format!("{name} NUMBER := 0")));
        declared.extend(begins.iter().map(|(name, value)| format!("{name} NUMBER := {value}")));
        for (bank, width) in banks {
            declared.extend((1..=*width).map(|column| format!("{bank}_{column} numbers")));
        }
        if *pauses {
            let sleeps =
                ["v_length NUMBER", "v_asleep TIMESTAMP WITH TIME ZONE", "v_slept INTERVAL DAY(3) TO SECOND(6)"];
            declared.extend(sleeps.map(str::to_owned));
            declared.push("v_rest NUMBER := MOD(p_lengths, 10000)".to_owned());
        }
        let answers: Vec<String> = answer.iter().map(|name| format!("  {name} := 0;")).collect();
        let body: Vec<String> = body.iter().map(|line| format!("  {line}")).collect();
        format!(
            "CREATE PROCEDURE {}({})\nAUTHID CURRENT_USER AS\n  -- {mark}\n  {};\nBEGIN\n{}\n{}\nEND;",
            Self::table(namespace, name),
            head.join(", "),
            declared.join(";\n  "),
            answers.join("\n"),
            body.join("\n")
        )
    }

    fn looped(query: &str) -> String {
        format!("({query})")
    }

    fn kept(bank: &str, column: usize, row: &str) -> String {
        format!("{bank}_{column}({row})")
    }

    fn count_changed(into: &str) -> String {
        format!("{into} := SQL%ROWCOUNT;")
    }

    /// A plain `COMMIT` inside of PL/SQL does not wait for its redo: only the end of the call does.
    fn commit() -> &'static str {
        "COMMIT WRITE IMMEDIATE WAIT;"
    }

    /// The server sleeps in whole hundredths of a second, up to an hour. What is left goes to the next pause, and what the first one
    /// begins with is drawn, so that the mean is right. Before 18c there is nothing that everybody may sleep by.
    fn sleep() -> Vec<String> {
        let lines = [
            "v_length := v_length + v_rest;",
            "v_rest := MOD(v_length, 10000);",
            "v_asleep := SYSTIMESTAMP;",
            "$IF DBMS_DB_VERSION.VERSION >= 18 $THEN",
            "DBMS_SESSION.SLEEP(LEAST((v_length - v_rest) / 1000000, 3600));",
            "$ELSE",
            "RAISE_APPLICATION_ERROR(-20018, 'pauses inside of procedures need Oracle 18c');",
            "$END",
            "v_slept := SYSTIMESTAMP - v_asleep;",
            "v_paused_us := v_paused_us + TRUNC(((EXTRACT(DAY FROM v_slept) * 24 + EXTRACT(HOUR FROM v_slept)) * 3600",
            "  + EXTRACT(MINUTE FROM v_slept) * 60 + EXTRACT(SECOND FROM v_slept)) * 1000000);",
        ];
        lines.map(str::to_owned).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use model::workload::orders::TransactionKind;
    use sql::orders::load::procedure::Procedure;
    use targets::DatabaseError as _;

    #[test]
    fn a_limit_stands_in_the_descriptor_only_where_it_is_asked_for() {
        let of = |within| {
            let address = "oracle://u@a,b:7/s?services=2&protocol=tcps".parse().unwrap();
            nodes_of(&address, true, within).into_iter().map(|node| node.connect_string).collect::<Vec<_>>()
        };
        let plain = "(DESCRIPTION=(RETRY_DELAY=0)(ADDRESS_LIST=(ADDRESS=(PROTOCOL=tcps)(HOST=b)(PORT=7)))\
                     (CONNECT_DATA=(SERVICE_NAME=s2)))";
        assert_eq!((of(None).len(), of(None)[3].as_str()), (4, plain));
        let limited = plain.replace("(ADDRESS_LIST", "(CONNECT_TIMEOUT=3)(TRANSPORT_CONNECT_TIMEOUT=3)(ADDRESS_LIST");
        assert_eq!(of(Some(Duration::from_secs(3)))[3], limited);
    }

    fn login(address: &str, variables: &[(&str, &str)], typed: Option<&str>) -> Result<Login, ServerError> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let environment = Environment { variable: &variable, os_user: &|| None };
        Login::of(&address.parse().unwrap(), &environment, &|_| typed.map(Secret::new))
    }

    #[test]
    fn a_file_counts_before_the_variable_and_that_before_the_person() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        fs::write(&file, "in a file\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let address = format!("oracle://slob@h/s?password-file={}", file.display());
        let variables = [(PASSWORD, "in a variable"), ("TNS_ADMIN", "/tns")];
        let found = login(&address, &variables, Some("typed")).unwrap();
        assert_eq!((found.password.expose(), found.tns_admin.as_deref()), ("in a file", Some("/tns")));
        assert_eq!(login("oracle://slob@h/s", &variables, Some("typed")).unwrap().password.expose(), "in a variable");
        assert_eq!(login("oracle://slob@h/s", &[], Some("typed")).unwrap().password.expose(), "typed");
        let error = login("oracle://slob@h/s", &[], None).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains(PASSWORD)), "{error}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let error = login(&address, &variables, None).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains("chmod 600")), "{error}");
    }

    #[test]
    fn nothing_that_is_printed_shows_a_password() {
        let found = login("oracle://slob@h/s", &[(PASSWORD, "tiger"), (WALLET_PASSWORD, "tiger")], None).unwrap();
        assert!(!format!("{found:?}").contains("tiger"));
    }

    #[test]
    fn procedures_compile_before_18c_and_wait_for_each_commit() {
        for procedure in Procedure::all::<Connector>("BENCH") {
            let text = procedure.text;
            let (sleeping, rest) = text
                .split_once("$IF DBMS_DB_VERSION.VERSION >= 18 $THEN\n")
                .map_or(("", ""), |(_, inside)| inside.split_once("$ELSE\n").expect("the other way"));
            let others = text.replace(sleeping, "");
            assert!(!others.contains("DBMS_SESSION"), "{text}");
            assert_eq!(rest.contains("$END\n"), text.contains("v_asleep"), "{text}");
            let commits = text.matches("COMMIT").count();
            assert_eq!(commits, text.matches("COMMIT WRITE IMMEDIATE WAIT;").count(), "{text}");
        }
    }

    #[test]
    fn an_order_of_products_is_a_procedure_in_plsql() {
        insta::assert_snapshot!(Procedure::of::<Connector>(TransactionKind::OrderProducts, "BENCH").text);
    }

    #[test]
    fn a_call_binds_what_it_is_asked_with_and_what_it_answers() {
        use sql::orders::load::Statement;
        assert_eq!(
            Statement::call(TransactionKind::SalesRepQuery).text::<Connector>("BENCH"),
            "BEGIN \"BENCH\".plimsoll_sales_rep_query(:v1, :v2, :v3, :v4, :v5, :v6, :v7, :v8, :v9); END;"
        );
    }
}
