//! Connections to PostgreSQL servers.

use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fmt, io};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, SimpleQueryMessage};

use super::failure::{Attempt, Cause, Failure};
use super::login::{Environment, Login, Server};
use super::sql::{SESSION_SETTINGS, identifier, literal};
use super::stream::{Encrypting, Shared};
use super::tls::{Encryption, Wire};
use super::{reason_of, silence, system_error, with_state};
use crate::ending::{on_own_runtime, unless_ended};
use crate::orders::load::ANSWERS;
use crate::orders::load::procedure::Parts;
use crate::postgres::{POSTGRES, error_of};
use crate::{ServerError, SqlText};
use model::config::postgres::{DEFAULT_PORT, PostgresAddress, PostgresNode};
use model::record::ServerFacts;
use model::workload::orders::tables::Kind;

/// How often a server that is starting is asked again.
const STARTUP_PAUSE: Duration = Duration::from_millis(100);

/// The server starts, stops or recovers.
const CANNOT_CONNECT_NOW: &str = "57P03";

/// Makes connections to the servers of one address.
#[derive(Debug, Clone)]
pub struct Connector {
    nodes: Vec<PostgresNode>,
    login: Login,
    encryption: Encryption,
    application: String,
}

/// A connection. It lives while the client and the runtime that made it do.
#[derive(Debug)]
pub struct Connected {
    /// Where statements are sent.
    pub client: Client,
    /// Process number of the server's side.
    pub server_pid: i32,
    stream: Shared,
    watching: JoinHandle<()>,
    ending: Ending,
    way: Way,
    /// Absent over a socket.
    is_encrypted: Option<bool>,
}

/// Breaks off what a connection is doing.
#[derive(Clone)]
pub struct CancelToken {
    token: tokio_postgres::CancelToken,
    way: Way,
}

/// How a connection was made.
#[derive(Debug, Clone)]
struct Way {
    server: Server,
    address: Option<IpAddr>,
    wire: Wire,
    connect_timeout: Duration,
}

/// What to do when a server is starting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Startup {
    Wait,
    GiveUp,
}

impl Connector {
    /// For the servers of `address`, each a node of its own. Connections are known to the server as `application`.
    ///
    /// # Errors
    /// When something that the address needs is missing or cannot be read, such as a certificate.
    pub fn new(address: &PostgresAddress, application: &str) -> Result<Self, ServerError> {
        Self::in_environment(address, application, &Environment::of_process())
    }

    /// The same with another environment than that of the process.
    pub(super) fn in_environment(
        address: &PostgresAddress,
        application: &str,
        environment: &Environment<'_>,
    ) -> Result<Self, ServerError> {
        let login = Login::of(address, environment)?;
        let encryption = if login.servers.iter().all(|server| server.node.is_socket()) {
            Encryption::none()
        } else {
            Encryption::new(&login.tls, login.certificates.as_deref())?
        };
        let nodes = login.servers.iter().map(|server| server.node.clone()).collect();
        Ok(Self { nodes, login, encryption, application: application.to_owned() })
    }

    /// For one server only: the first of the address, in its order, that accepts a connection. So every connection lands on
    /// the same one. As for libpq, a server that answers but refuses the login ends the search.
    ///
    /// Must be called in a tokio runtime. An address of one server is not tried.
    ///
    /// # Errors
    /// [`ServerError::Connect`] with what each server said.
    pub async fn first_that_accepts(mut self) -> Result<Self, ServerError> {
        let mut failed: Option<(String, Failure)> = None;
        let several = self.nodes.len() > 1;
        for index in 0..self.nodes.len() {
            let outcome = match several {
                true => match unless_ended(self.try_node(index, Startup::GiveUp)).await {
                    Some(outcome) => outcome.map(drop),
                    None => return Err(POSTGRES.interrupted(self.nodes[index].to_string())),
                },
                false => Ok(()),
            };
            let Err(failure) = outcome else {
                self.nodes = vec![self.nodes[index].clone()];
                self.login.servers = vec![self.login.servers[index].clone()];
                return Ok(self);
            };
            let is_final = matches!(&failure.cause, Cause::Refusal(code) if code != CANNOT_CONNECT_NOW);
            let name = self.nodes[index].to_string();
            failed = Some(match failed {
                None => (name, failure),
                Some((names, earlier)) => (format!("{names}, {name}"), earlier.and(failure, &name)),
            });
            if is_final {
                break;
            }
        }
        let (names, failure) = failed.expect("an address has at least one node");
        Err(connect_error(&names, failure))
    }

    /// The same from ordinary code, on a runtime of its own.
    ///
    /// # Errors
    /// As [`first_that_accepts`](Self::first_that_accepts).
    pub fn single(self) -> Result<Self, ServerError> {
        if self.nodes.len() == 1 { Ok(self) } else { on_own_runtime(self.first_that_accepts()) }
    }

    /// The servers, in the order of the address. Each has a host and a port.
    pub fn nodes(&self) -> &[PostgresNode] {
        &self.nodes
    }

    /// The application's name as the server shows it.
    pub fn application(&self) -> &str {
        &self.application
    }

    /// What the user should know about how the address was understood.
    pub fn notes(&self) -> &[String] {
        &self.login.notes
    }

    /// Connects to server number `node` for any purpose. Must be called in a tokio runtime, which drives the connection.
    /// A server that is starting is waited for.
    ///
    /// # Errors
    /// [`ServerError::Connect`], with what to do about it. At the latest after the address's time for connecting, for each
    /// network address of the host.
    pub async fn connect(&self, node: usize) -> Result<Connected, ServerError> {
        let name = || self.nodes[node].to_string();
        match unless_ended(self.try_node(node, Startup::Wait)).await {
            Some(outcome) => outcome.map_err(|failure| connect_error(&name(), failure)),
            None => Err(POSTGRES.interrupted(name())),
        }
    }

    /// Adds to `facts` how `connected` was made.
    pub(super) fn describe(&self, connected: &Connected, facts: &mut ServerFacts) {
        facts.is_encrypted = connected.is_encrypted;
        facts.tls_mode = connected.is_encrypted.map(|_| self.encryption.mode.name().to_owned());
        facts.is_verified = connected.is_encrypted.filter(|is| *is).map(|_| self.encryption.verifies);
    }

    /// Connects a session that executes operations: with [`SESSION_SETTINGS`].
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_session(&self, node: usize) -> Result<Connected, ServerError> {
        let connected = self.connect(node).await?;
        let settings: Vec<String> =
            SESSION_SETTINGS.iter().map(|(name, value)| format!("SET {name} = {value}")).collect();
        let doing = "prepare a session";
        match timeout(self.login.connect_timeout, connected.client.batch_execute(&settings.join("; "))).await {
            Ok(outcome) => outcome.map_err(|error| connected.error(doing, &error))?,
            Err(_) => {
                let waited_s = self.login.connect_timeout.as_secs();
                return Err(POSTGRES.timed_out(connected.way.node(), doing, waited_s));
            }
        }
        Ok(connected)
    }

    /// Tries all network addresses of a server.
    async fn try_node(&self, node: usize, startup: Startup) -> Result<Connected, Failure> {
        let server = &self.login.servers[node];
        if server.node.is_socket() {
            return self.try_address(server, None, startup).await;
        }
        let port = server.node.port.unwrap_or(DEFAULT_PORT);
        let lookup = tokio::net::lookup_host((server.node.host.as_str(), port));
        let addresses: Vec<IpAddr> = match timeout(self.login.connect_timeout, lookup).await {
            Ok(found) => found.map_err(|error| Failure::unknown_host(&error))?.map(|address| address.ip()).collect(),
            Err(_) => return Err(Failure::silence(&self.login)),
        };
        let mut failed: Option<Failure> = None;
        for address in addresses {
            match self.try_address(server, Some(address), startup).await {
                Ok(connected) => return Ok(connected),
                Err(failure) if failure.cause != Cause::NoAnswer => return Err(failure),
                Err(failure) => {
                    failed = Some(match failed {
                        None => failure,
                        Some(earlier) => earlier.and(failure, &format!("at {address}")),
                    });
                }
            }
        }
        Err(failed.unwrap_or_else(|| {
            Failure::unknown_host(&std::io::Error::new(std::io::ErrorKind::NotFound, "it has no address"))
        }))
    }

    /// Tries until the time for connecting is over, while the server is starting.
    async fn try_address(
        &self,
        server: &Server,
        address: Option<IpAddr>,
        startup: Startup,
    ) -> Result<Connected, Failure> {
        let deadline = Instant::now() + self.login.connect_timeout;
        let mut starting = None;
        loop {
            let outcome = timeout_at(deadline, self.try_wires(server, address)).await;
            match outcome {
                Err(_) => return Err(starting.unwrap_or_else(|| Failure::silence(&self.login))),
                Ok(Err(failure))
                    if startup == Startup::Wait
                        && failure.cause == Cause::Refusal(CANNOT_CONNECT_NOW.to_owned())
                        && Instant::now() + STARTUP_PAUSE < deadline =>
                {
                    starting = Some(failure);
                    sleep(STARTUP_PAUSE).await;
                }
                Ok(outcome) => return outcome,
            }
        }
    }

    /// Tries with and without encryption, as the mode says.
    async fn try_wires(&self, server: &Server, address: Option<IpAddr>) -> Result<Connected, Failure> {
        let wires = if server.node.is_socket() { vec![Wire::Plain] } else { self.encryption.wires() };
        let mut failed: Option<Failure> = None;
        for wire in wires {
            let how = wire.description();
            let is_plain = matches!(wire, Wire::Plain);
            let failure = match self.log_in(server, address, wire).await {
                Ok(connected) => return Ok(connected),
                Err(refused) => {
                    let attempt = Attempt { login: &self.login, server, encryption: &self.encryption, is_plain };
                    match refused {
                        Refused::Socket(error) => Failure::of_system(&error, &attempt),
                        Refused::Login(error) => Failure::of(&error, &attempt),
                    }
                }
            };
            // Only these can be otherwise on another wire: pg_hba.conf may distinguish them.
            let is_final = match &failure.cause {
                Cause::Tls => false,
                Cause::Refusal(code) => !code.starts_with("28"),
                Cause::NoAnswer => true,
            };
            let failure = match failed.take() {
                None => failure,
                Some(earlier) => earlier.and(failure, how),
            };
            if is_final {
                return Err(failure);
            }
            failed = Some(failure);
        }
        Err(failed.expect("each mode has at least one wire"))
    }

    /// One attempt.
    async fn log_in(&self, server: &Server, address: Option<IpAddr>, wire: Wire) -> Result<Connected, Refused> {
        let mut config = Config::new();
        config
            .user(&self.login.user)
            .dbname(&self.login.database)
            .application_name(&self.application)
            .ssl_mode(wire.mode());
        if let Some((password, _)) = &server.password {
            config.password(password.expose());
        }
        let ending = Ending::default();
        let mut stream = Shared::open(server, address, !matches!(wire, Wire::Plain)).await.map_err(Refused::Socket)?;
        let mut is_encrypted = false;
        let (client, watching) = match &wire {
            Wire::Plain => {
                let (client, connection) = config.connect_raw(stream.clone(), NoTls).await?;
                (client, tokio::spawn(ending.clone().watch(connection)))
            }
            Wire::EncryptedIfPossible(tls) | Wire::Encrypted(tls) => {
                let encrypted = Arc::default();
                let tls = Encrypting::new(tls, &server.node.host, Arc::clone(&encrypted)).map_err(Refused::Socket)?;
                let (client, connection) = config.connect_raw(stream.clone(), tls).await?;
                is_encrypted = encrypted.get().is_some();
                stream = encrypted.get().cloned().unwrap_or(stream);
                (client, tokio::spawn(ending.clone().watch(connection)))
            }
        };
        let server_pid = own_number(&client).await.map_err(|error| ending.refusal(error))?;
        let way = Way { server: server.clone(), address, wire, connect_timeout: self.login.connect_timeout };
        let is_encrypted = (!server.node.is_socket()).then_some(is_encrypted);
        Ok(Connected { client, server_pid, stream, watching, ending, way, is_encrypted })
    }
}

/// Why an attempt came to nothing.
enum Refused {
    /// The system does not connect.
    Socket(io::Error),
    /// The server does not let us in.
    Login(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for Refused {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Login(error)
    }
}

/// The process number of a session, in one round trip.
async fn own_number(client: &Client) -> Result<i32, tokio_postgres::Error> {
    let answer = client.simple_query("SELECT pg_backend_pid()").await?;
    let row = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    // A number that no process has: whoever asks for it is answered that it is not at work.
    Ok(row.and_then(|number| number.parse().ok()).unwrap_or(0))
}

fn connect_error(node: &str, failure: Failure) -> ServerError {
    let kind = failure.kind();
    ServerError::Connect {
        product: POSTGRES,
        node: node.to_owned(),
        reason: failure.reason,
        hint: failure.hint,
        failure: kind,
    }
}

impl Connected {
    /// What an error of the client means, as `error_of`; where the connection had ended before, why it had.
    pub fn error(&self, doing: &str, error: &tokio_postgres::Error) -> ServerError {
        let node = self.way.node();
        let ended = if error.is_closed() { self.ending.error(&node, doing) } else { None };
        ended.unwrap_or_else(|| error_of(&node, doing, error))
    }

    /// The stream itself, with the number of the server's process and what breaks statements off. Nothing may be under way on it.
    pub(super) async fn into_stream(self) -> (Shared, i32, CancelToken) {
        let Self { client, server_pid, stream, watching, way, .. } = self;
        let cancel_token = CancelToken { token: client.cancel_token(), way };
        // The library lets the stream go without a word to the server: its task no longer runs once it would say goodbye.
        watching.abort();
        let _ = watching.await;
        (stream, server_pid, cancel_token)
    }

    /// What breaks off the statement under way, from any thread and over a connection of its own, encrypted as this one is.
    pub fn cancel_token(&self) -> CancelToken {
        CancelToken { token: self.client.cancel_token(), way: self.way.clone() }
    }
}

impl CancelToken {
    /// The server's name.
    pub(super) fn node(&self) -> String {
        self.way.node()
    }

    /// Asks the server to break off what the connection is doing; that then fails with SQLSTATE 57014, if it has not ended
    /// before. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn cancel(&self) -> Result<(), ServerError> {
        let Self { token, way: Way { server, address, wire, connect_timeout } } = self;
        let (node, doing) = (self.way.node(), "break off a statement");
        let not_asked = |error: io::Error| POSTGRES.lost(node.clone(), error.to_string());
        let asked = async {
            let stream = Shared::open(server, *address, !matches!(wire, Wire::Plain)).await.map_err(not_asked)?;
            let asked = match wire {
                Wire::Plain => token.cancel_query_raw(stream, NoTls).await,
                Wire::EncryptedIfPossible(tls) | Wire::Encrypted(tls) => {
                    let tls = Encrypting::new(tls, &server.node.host, Arc::default()).map_err(not_asked)?;
                    token.cancel_query_raw(stream, tls).await
                }
            };
            asked.map_err(|error| error_of(&node, doing, &error))
        };
        timeout(*connect_timeout, asked)
            .await
            .unwrap_or_else(|_| Err(POSTGRES.timed_out(&node, doing, connect_timeout.as_secs())))
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds is as good as a password for breaking statements off.
        f.debug_struct("CancelToken").field("way", &self.way).finish_non_exhaustive()
    }
}

impl Way {
    fn node(&self) -> String {
        self.server.node.to_string()
    }
}

impl Wire {
    fn mode(&self) -> SslMode {
        match self {
            Self::Plain => SslMode::Disable,
            Self::EncryptedIfPossible(_) => SslMode::Prefer,
            Self::Encrypted(_) => SslMode::Require,
        }
    }

    fn description(&self) -> &'static str {
        match self {
            Self::Plain => "without encryption",
            Self::EncryptedIfPossible(_) | Self::Encrypted(_) => "encrypted",
        }
    }
}

/// Why a connection ended, once it has. Shared by the task that drives it and whoever sends statements.
#[derive(Debug, Clone, Default)]
struct Ending(Arc<OnceLock<End>>);

#[derive(Debug)]
enum End {
    /// With these words.
    Reported(String),
    /// The network was silent for longer than it may be.
    Silence,
}

impl Ending {
    /// The error of a statement that was to do `doing`, if the connection has ended.
    pub(super) fn error(&self, node: &str, doing: &str) -> Option<ServerError> {
        Some(match self.0.get()? {
            End::Reported(reason) => POSTGRES.lost(node, reason),
            End::Silence => silence(node, doing),
        })
    }

    /// Why a statement that only looks who is there came to nothing.
    fn refusal(&self, error: tokio_postgres::Error) -> Refused {
        match self.0.get() {
            Some(End::Reported(reason)) if error.is_closed() => Refused::Socket(io::Error::other(reason.clone())),
            _ => Refused::Login(error),
        }
    }

    /// Drives a connection to its end. Must be a task of its own.
    pub(super) async fn watch<S, T>(self, mut connection: Connection<S, T>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
        T: AsyncRead + AsyncWrite + Unpin,
    {
        // A server that breaks down says so by a notice, and then only closes the connection.
        let mut farewell = None;
        let end = loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notice(notice))) if notice.code().code().starts_with("57P") => {
                    farewell = Some(with_state(&notice));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        let Some(error) = end else { return };
        let timed_out = system_error(&error).is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut);
        let end = match (farewell, timed_out) {
            (Some(words), _) => End::Reported(words),
            (None, true) => End::Silence,
            (None, false) => End::Reported(reason_of(&error)),
        };
        // Before the connection is dropped, which is what statements under way notice. Nobody else sets it.
        let _ = self.0.set(end);
    }
}

// What PostgreSQL says in words of its own, and transactions of order entry as procedures in PL/pgSQL.

impl SqlText for Connector {
    fn kind(kind: Kind) -> String {
        match kind {
            // As many digits as are always held: 9 and 18.
            Kind::Whole(..=9) => "integer".to_owned(),
            Kind::Whole(_) => "bigint".to_owned(),
            Kind::Money(digits) => format!("numeric({digits},2)"),
            Kind::Text(chars) => format!("varchar({chars})"),
            Kind::Day => "date".to_owned(),
            Kind::Instant => "timestamptz(6)".to_owned(),
        }
    }

    fn float(expression: &str) -> String {
        format!("({expression})::float8")
    }

    fn table(namespace: &str, name: &str) -> String {
        format!("{}.{name}", identifier(namespace))
    }

    fn column(name: &str) -> String {
        name.to_owned()
    }

    fn value(number: usize) -> String {
        format!("${number}")
    }

    fn cents(amount: &str) -> String {
        format!("({amount} * 100)::bigint")
    }

    fn amount(cents: &str) -> String {
        format!("{cents}::bigint * 0.01")
    }

    fn days_ahead(days: &str) -> String {
        format!("CURRENT_DATE + {days}::integer")
    }

    fn now() -> &'static str {
        "now()"
    }

    fn hour_ago() -> String {
        "now() - INTERVAL '1 hour'".to_owned()
    }

    fn five_minutes(instant: &str) -> String {
        format!("floor(extract(epoch FROM {instant}) / 300)")
    }

    fn lower(column: &str) -> String {
        format!("lower({column})")
    }

    fn next_logon(namespace: &str) -> String {
        let sequence = format!("{}.logon_seq", identifier(namespace));
        format!("nextval({}::regclass)", literal(&sequence))
    }

    fn after_commits(table: &str, query: &str) -> String {
        format!("BEGIN; LOCK TABLE {table} IN SHARE MODE; {query}; COMMIT")
    }

    fn returning(key: &str) -> String {
        format!(" RETURNING {key}")
    }

    fn call(namespace: &str, procedure: &str, values: &[String]) -> String {
        let answer = ["NULL"; ANSWERS].map(str::to_owned);
        format!("CALL {}({})", Self::table(namespace, procedure), [values, &answer].concat().join(", "))
    }

    fn frame(namespace: &str, parts: &Parts, mark: &str) -> String {
        let Parts { name, parameters, wholes, begins, banks, pauses, answer, body } = parts;
        let mut head: Vec<String> = parameters
            .iter()
            .map(|(name, is_text)| format!("{name} {}", if *is_text { "text" } else { "bigint" }))
            .collect();
        // Servers before version 14 have no OUT for procedures.
        head.extend(answer.iter().map(|name| format!("INOUT {name} bigint")));
        let mut declared: Vec<String> = wholes.iter().map(|name| format!("{name} bigint := 0")).collect();
        declared.extend(begins.iter().map(|(name, value)| format!("{name} bigint := {value}")));
        for (bank, width) in banks {
            declared.extend((1..=*width).map(|column| format!("{bank}_{column} bigint[]")));
        }
        declared.push("v_record record".to_owned());
        if *pauses {
            declared.extend(["v_length double precision", "v_asleep timestamptz"].map(str::to_owned));
        }
        let answers: Vec<String> = answer.iter().map(|name| format!("  {name} := 0;")).collect();
        let body: Vec<String> = body.iter().map(|line| format!("  {line}")).collect();
        format!(
            "CREATE PROCEDURE {name}({})\nLANGUAGE plpgsql AS $procedure$\nDECLARE\n  {};\nBEGIN\n{}\n{}\nEND\n$procedure$;\n\
             COMMENT ON PROCEDURE {name} IS '{mark}'",
            head.join(", "),
            declared.join(";\n  "),
            answers.join("\n"),
            body.join("\n"),
            name = Self::table(namespace, name),
        )
    }

    /// A transaction is always open: one that only read ends first, so that another snapshot begins with what is to be committed.
    fn begin_changes(is_clean: bool) -> Option<&'static str> {
        (!is_clean).then_some("COMMIT;")
    }

    fn sleep() -> Vec<String> {
        let lines = [
            "v_asleep := clock_timestamp();",
            "PERFORM pg_sleep(v_length / 1000000);",
            "v_paused_us := v_paused_us + floor(extract(epoch FROM clock_timestamp() - v_asleep) * 1000000)::bigint;",
        ];
        lines.map(str::to_owned).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::load::procedure::Procedure;
    use model::workload::orders::TransactionKind;

    #[test]
    fn an_order_of_products_is_a_procedure_in_plpgsql() {
        insta::assert_snapshot!(Procedure::of::<Connector>(TransactionKind::OrderProducts, "bench").text);
    }
}
