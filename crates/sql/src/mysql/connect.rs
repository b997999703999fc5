//! Connections to MySQL and MariaDB servers.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use std::{fmt, io};

use mysql_async::prelude::Queryable;
use mysql_async::{ClientIdentity, Conn, DriverError, Error, IoError, OptsBuilder, SslOpts};
use mysql_seam::crypto::{ServerKey, TooLong, Untrusted, trusting};
use mysql_seam::quietly;
use tokio::time::timeout;

use super::login::{Endpoint, Environment, Login};
use super::sql::quoted;
use super::{MYSQL, error_of, numbered, refusal_hint};
use crate::ending::{on_own_runtime, unless_ended};
use crate::error::innermost;
use crate::orders::load::procedure::Parts;
use crate::{ServerError, SqlText};
use measure::ConnectFailure;
use model::config::SecretFile;
use model::config::mysql::{DEFAULT_PORT, MysqlAddress, TlsMode};
use model::record::ServerFacts;
use model::workload::orders::tables::Kind;
use targets::MORE_FILES;

/// A connection that is idle this long is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(5);

/// Longest message, either way. What a server says it takes is no limit to what it sends.
const MAX_PACKET_BYTES: usize = 16 << 20;

/// Makes connections to the servers of one address.
#[derive(Debug, Clone)]
pub struct Connector {
    login: Login,
    application: String,
}

/// A connection. It lives on the runtime that made it.
pub struct Connected {
    /// Where statements are sent. Never to be printed: it holds the password.
    pub(super) conn: Conn,
    /// Which server it is.
    pub(super) version: Version,
    node: String,
    /// Absent over a socket.
    is_encrypted: Option<bool>,
}

/// What a server is, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// `10.11.19-MariaDB-0+deb12u1`, `8.0.15`.
    pub text: String,
    /// Whether it is MariaDB.
    pub is_mariadb: bool,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { conn, version, node, is_encrypted: _ } = self;
        f.debug_struct("Connected").field("node", node).field("id", &conn.id()).field("version", version).finish()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(node) => f.write_str(&node.shown(DEFAULT_PORT)),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}

impl Connector {
    /// For the servers of `address`. Connections are known to the server as `application`.
    ///
    /// # Errors
    /// When something that the address needs is missing or cannot be read, such as an option file.
    pub fn new(address: &MysqlAddress, application: &str) -> Result<Self, ServerError> {
        // The driver takes the provider of the process, and fails where there are several and none was chosen. Another one
        // that was chosen before serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let login = Login::of(address, &Environment::of_process())?;
        Ok(Self { login, application: application.to_owned() })
    }

    /// For one server only: the first of the address that accepts a connection. A server that answers but refuses the login
    /// ends the search.
    ///
    /// # Errors
    /// [`ServerError::Connect`] of the server that ended it.
    pub fn single(mut self) -> Result<Self, ServerError> {
        let mut last = None;
        for place in std::mem::take(&mut self.login.places) {
            let one = Self { login: Login { places: vec![place], ..self.login.clone() }, ..self.clone() };
            match on_own_runtime(async { Ok(one.try_wires(&one.login.places[0]).await.map(drop)) })? {
                Ok(()) => return Ok(one),
                Err((error, true)) => return Err(error),
                Err((error, false)) => last = Some(error),
            }
        }
        Err(last.expect("a login has at least one server"))
    }

    /// Names of the servers, in the order of the address.
    pub fn nodes(&self) -> Vec<String> {
        self.login.places.iter().map(ToString::to_string).collect()
    }

    /// The same, known to the server as `application`.
    #[must_use]
    pub fn called(self, application: &str) -> Self {
        Self { application: application.to_owned(), ..self }
    }

    /// What the user should know about how the address was understood.
    pub fn notes(&self) -> &[String] {
        &self.login.notes
    }

    /// The user who logs in.
    pub fn user(&self) -> &str {
        &self.login.user
    }

    /// Connects to server number `node` for any purpose, without a database. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`ServerError::Connect`], with what to do about it, at the latest after the address's time for connecting.
    pub async fn connect(&self, node: usize) -> Result<Connected, ServerError> {
        self.try_wires(&self.login.places[node]).await.map_err(|(error, _)| error)
    }

    /// Adds to `facts` how `connected` was made.
    pub(super) fn describe(&self, connected: &Connected, facts: &mut ServerFacts) {
        let mode = self.login.tls.mode.unwrap_or(TlsMode::Preferred);
        let verifies = mode == TlsMode::VerifyIdentity;
        facts.is_encrypted = connected.is_encrypted;
        facts.tls_mode = connected.is_encrypted.map(|_| mode.name().to_owned());
        facts.is_verified = connected.is_encrypted.filter(|is| *is).map(|_| verifies);
    }

    /// Connects a session that executes operations: each by one index range scan that visits rows in the order of their keys.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_session(&self, node: usize) -> Result<Connected, ServerError> {
        let mut connected = self.connect(node).await?;
        // Multi-range reads and batched key access would sort what the method scatters. At READ COMMITTED, ranges that touch
        // do not lock the gap between them. Times of batches must not jump with daylight saving.
        let batched = if connected.version.is_mariadb { "join_cache_bka" } else { "batched_key_access" };
        let settings = format!(
            "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', autocommit = 1, \
             optimizer_switch = 'mrr=off,{batched}=off'"
        );
        for statement in [settings.as_str(), "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"] {
            connected.execute("prepare a session", statement).await?;
        }
        Ok(connected)
    }

    /// Tries with and without encryption, as the mode says. Also says whether the server has answered, so that another one
    /// must not be tried.
    async fn try_wires(&self, place: &Endpoint) -> Result<Connected, (ServerError, bool)> {
        let ended = || Err((MYSQL.interrupted(place.to_string()), true));
        unless_ended(self.try_each_wire(place)).await.unwrap_or_else(ended)
    }

    async fn try_each_wire(&self, place: &Endpoint) -> Result<Connected, (ServerError, bool)> {
        let is_socket = matches!(place, Endpoint::Socket(_));
        let mode = if is_socket { TlsMode::Disabled } else { self.login.tls.mode.unwrap_or(TlsMode::Preferred) };
        if mode != TlsMode::Disabled {
            let encryption = self.encryption(mode).map_err(|error| (error, true))?;
            match self.log_in(place, Some(encryption)).await {
                Err(error) if mode == TlsMode::Preferred && is_about_encryption(&error) => {}
                outcome => return outcome.map_err(|error| self.failed(place, mode, &error)),
            }
        }
        self.log_in(place, None).await.map_err(|error| self.failed(place, mode, &error))
    }

    fn encryption(&self, mode: TlsMode) -> Result<SslOpts, ServerError> {
        let tls = &self.login.tls;
        let own = match tls.certificate.clone().zip(tls.key.as_ref()) {
            None => None,
            Some((certificate, path)) => {
                let key = SecretFile::read(path).and_then(SecretFile::private_key);
                let key = key.map_err(|error| ServerError::Unfit {
                    what: format!("the key `{}` cannot be used: {error}", path.display()),
                    hint: None,
                })?;
                Some(ClientIdentity::new(certificate.into(), key.into()))
            }
        };
        let roots: Vec<_> = tls.ca.iter().cloned().map(Into::into).collect();
        let verifies = matches!(mode, TlsMode::VerifyCa | TlsMode::VerifyIdentity);
        let options = SslOpts::default()
            .with_client_identity(own)
            .with_disable_built_in_roots(verifies && !roots.is_empty())
            .with_root_certs(if verifies { roots } else { Vec::new() })
            .with_danger_accept_invalid_certs(!verifies)
            .with_danger_skip_domain_validation(mode != TlsMode::VerifyIdentity);
        Ok(options)
    }

    /// One attempt.
    async fn log_in(&self, place: &Endpoint, encryption: Option<SslOpts>) -> Result<Connected, Error> {
        let is_encrypted = encryption.is_some();
        let mut options = OptsBuilder::default()
            .user(Some(&self.login.user))
            .pass(self.login.password.as_ref().map(|password| password.expose()))
            .prefer_socket(false)
            .tcp_keepalive(Some(KEEPALIVE))
            .max_allowed_packet(Some(MAX_PACKET_BYTES))
            .ssl_opts(encryption)
            .connect_attribute("program_name", &self.application);
        let is_encrypted = matches!(place, Endpoint::Network(_)).then_some(is_encrypted);
        options = match place {
            Endpoint::Network(node) => options.ip_or_hostname(&node.host).tcp_port(node.port.unwrap_or(DEFAULT_PORT)),
            Endpoint::Socket(path) => options.socket(Some(path.to_string_lossy())),
        };
        let connecting = async {
            let mut conn = guarded(&self.login.server_key, Conn::new(options)).await?;
            let text: String = conn.query_first("SELECT VERSION()").await?.unwrap_or_default();
            let is_mariadb = text.to_ascii_lowercase().contains("mariadb");
            Ok(Connected { conn, version: Version { text, is_mariadb }, node: place.to_string(), is_encrypted })
        };
        match timeout(self.login.connect_timeout, connecting).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Io(IoError::Io(io::ErrorKind::TimedOut.into()))),
        }
    }

    /// Why no connection was made, and whether the server has answered.
    fn failed(&self, place: &Endpoint, mode: TlsMode, error: &Error) -> (ServerError, bool) {
        let Login { user, password_source, connect_timeout, .. } = &self.login;
        let runs = "check that the server runs and listens there";
        let (reason, hint, is_final) = match error {
            Error::Server(refusal) => {
                let hint = match refusal.code {
                    1045 => format!("{password_source}; or the user `{user}` may not connect from this machine"),
                    1698 => format!(
                        "the server knows `{user}` by its operating system's user only; name another user, or run as that one"
                    ),
                    1129 => {
                        "the server has shut this machine out after failed attempts: `FLUSH HOSTS` there".to_owned()
                    }
                    1130 => format!("have the server let this machine in: CREATE USER {}@'…'", super::quoted(user)),
                    3159 => "the server wants encryption: `ssl-mode=required`".to_owned(),
                    1053 => "wait until the server has started or ended".to_owned(),
                    code => refusal_hint(code).unwrap_or("the server's own log may say more").to_owned(),
                };
                (numbered(refusal), hint, refusal.code != 1053)
            }
            Error::Driver(DriverError::NoClientSslFlagFromServer) => (
                format!("the server does not encrypt, and `ssl-mode={}` asks for it", mode.name()),
                "set up TLS on the server, or connect without: `ssl-mode=disabled`".to_owned(),
                true,
            ),
            error if is_about_encryption(error) => {
                let why = innermost(error);
                let hint = if why.contains("HandshakeFailure") {
                    "the server's TLS has no cipher in common with this program, as MySQL before 8.0.16 has not: update it, or \
                     connect without: `ssl-mode=disabled`"
                } else {
                    "name the certificate that signed the server's with `ssl-ca=PATH` and the host as the server's has it, or do \
                     not verify: `ssl-mode=required`"
                };
                (
                    format!("the connection could not be encrypted (`ssl-mode={}`): {why}", mode.name()),
                    hint.to_owned(),
                    true,
                )
            }
            Error::Io(IoError::Io(error)) => match (error.kind(), place) {
                (io::ErrorKind::NotFound, Endpoint::Socket(path)) => (
                    format!("there is no socket `{}`", path.display()),
                    format!("{runs} (its `socket`), or name a host: `mysql://USER@HOST/DATABASE`"),
                    false,
                ),
                (io::ErrorKind::ConnectionRefused, _) => ("no server listens there".to_owned(), runs.to_owned(), false),
                (io::ErrorKind::PermissionDenied, Endpoint::Socket(path)) => (
                    format!("this user may not use the socket `{}`", path.display()),
                    "run as a user who may, or name a host: `mysql://USER@HOST/DATABASE`".to_owned(),
                    false,
                ),
                (io::ErrorKind::TimedOut, _) => (
                    format!("no answer within {} s", connect_timeout.as_secs()),
                    "check the address, the network and its firewalls, or allow more time: `connect-timeout=30`"
                        .to_owned(),
                    false,
                ),
                (io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset, _) => (
                    "the connection was closed before anybody logged in".to_owned(),
                    "the server's own log may say why, or another program listens there".to_owned(),
                    false,
                ),
                _ if error.raw_os_error() == Some(libc::EMFILE) => (error.to_string(), MORE_FILES.to_owned(), true),
                _ => (error.to_string(), "check the address and the network to it".to_owned(), false),
            },
            Error::Other(why) if why.is::<PasswordTooLong>() => (
                format!("{why}, under which it goes over a connection that is not encrypted"),
                "encrypt the connection (`ssl-mode=required`): it takes a password of any length".to_owned(),
                true,
            ),
            Error::Other(why) if why.is::<UntrustedKey>() => (
                format!(
                    "the connection is not encrypted (`ssl-mode={}`), and the server asks for the password under a key that \
                     anybody on the way could have sent",
                    mode.name()
                ),
                "encrypt (`ssl-mode=required`), name a file with the server's public key (`server-public-key=PATH`), or trust \
                 the network (`server-public-key=accept`)"
                    .to_owned(),
                true,
            ),
            other => (
                format!("what answered does not speak as MySQL does ({})", innermost(other)),
                "check host and port; something else may listen there, or a proxy".to_owned(),
                false,
            ),
        };
        let failure = connect_failure(error);
        (ServerError::Connect { product: MYSQL, node: place.to_string(), reason, hint: Some(hint), failure }, is_final)
    }
}

impl Connected {
    /// Executes one statement without rows.
    pub(super) async fn execute(&mut self, doing: &str, statement: &str) -> Result<(), ServerError> {
        let Self { conn, node, .. } = self;
        conn.query_drop(statement).await.map_err(|error| error_of(node, doing, &error))
    }

    /// What an error of this connection means.
    pub(super) fn error(&self, doing: &str, error: &Error) -> ServerError {
        error_of(&self.node, doing, error)
    }

    /// Asks the server to cancel what another session executes; a user may do so to its own.
    pub(super) async fn kill_query(&mut self, id: u32) -> Result<(), ServerError> {
        self.execute("cancel a statement", &format!("KILL QUERY {id}")).await
    }
}

/// A password was asked for under a key that is not trusted.
#[derive(Debug, thiserror::Error)]
#[error("the key of the server is not trusted")]
struct UntrustedKey;

/// The password does not fit under the key of the server.
#[derive(Debug, thiserror::Error)]
#[error("the password is too long for the key of the server")]
struct PasswordTooLong;

/// The client library gave up in the middle of an answer.
#[derive(Debug, thiserror::Error)]
#[error("its answers are out of order")]
struct Confused;

/// Connects as one who trusts `key`. Where the library can only give up, that becomes an error.
async fn guarded<T>(key: &ServerKey, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let mut work = pin!(work);
    poll_fn(|task| {
        let polled = quietly(|| trusting(key, || work.as_mut().poll(task)));
        polled.unwrap_or_else(|unwound| {
            Poll::Ready(Err(Error::Other(if unwound.is::<Untrusted>() {
                Box::new(UntrustedKey)
            } else if unwound.is::<TooLong>() {
                Box::new(PasswordTooLong)
            } else {
                Box::new(Confused)
            })))
        })
    })
    .await
}

/// Of which kind an error of connecting is, for an application that tries again.
fn connect_failure(error: &Error) -> ConnectFailure {
    match error {
        Error::Server(refusal) => match refusal.code {
            1040 | 1203 | 1226 => ConnectFailure::OutOfConnections,
            1044 | 1045 | 1049 | 1129 | 1130 | 1698 | 1862 | 3118 | 4151 => ConnectFailure::Login,
            1053 => ConnectFailure::Refused,
            _ => ConnectFailure::Other,
        },
        error if is_about_encryption(error) => ConnectFailure::Other,
        Error::Other(why) if why.is::<UntrustedKey>() || why.is::<PasswordTooLong>() => ConnectFailure::Login,
        Error::Io(_) => ConnectFailure::Refused,
        _ => ConnectFailure::Other,
    }
}

/// Whether the server was reached and encryption failed.
fn is_about_encryption(error: &Error) -> bool {
    match error {
        Error::Io(IoError::Tls(_)) | Error::Driver(DriverError::NoClientSslFlagFromServer) => true,
        Error::Io(IoError::Io(error)) => error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()),
        _ => false,
    }
}

// What MySQL and MariaDB say in words of their own, and transactions of order entry as procedures in what both have in common of
// SQL/PSM.
//
// There are no arrays, so a column of a bank is its numbers as text with commas between them. The answer to an insertion has the key.

/// What a text may be: names and addresses are in tables of this character set, and are found by their very letters.
const TEXT: &str = "VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
/// Room for the numbers of a column.
const COLUMN: &str = "VARCHAR(1000) CHARACTER SET latin1";

impl SqlText for Connector {
    fn quoted(name: &str) -> String {
        quoted(name)
    }

    fn kind(kind: Kind) -> String {
        match kind {
            Kind::Whole(..=9) => "INT".to_owned(),
            Kind::Whole(_) => "BIGINT".to_owned(),
            Kind::Money(digits) => format!("DECIMAL({digits},2)"),
            Kind::Text(chars) => format!("VARCHAR({chars})"),
            Kind::Day => "DATE".to_owned(),
            Kind::Instant => "DATETIME(6)".to_owned(),
        }
    }

    fn float(expression: &str) -> String {
        // An approximate number in it makes the whole approximate.
        format!("({expression}) + 0e0")
    }

    fn cents(amount: &str) -> String {
        format!("CAST({amount} * 100 AS SIGNED)")
    }

    fn days_ahead(days: &str) -> String {
        format!("DATE_ADD(CURRENT_DATE, INTERVAL {days} DAY)")
    }

    fn now() -> &'static str {
        "NOW(6)"
    }

    fn hour_ago() -> String {
        "DATE_SUB(NOW(6), INTERVAL 1 HOUR)".to_owned()
    }

    fn five_minutes(instant: &str) -> String {
        format!("FLOOR(UNIX_TIMESTAMP({instant}) / 300)")
    }

    /// A generated column, which both MySQL and MariaDB can have an index on.
    fn lower(column: &str) -> String {
        format!("{column}_lower")
    }

    /// The table has no key that the server would count, as Swingbench's has none.
    fn next_logon(_: &str) -> String {
        "UUID_SHORT() & 9223372036854775807".to_owned()
    }

    /// MySQL has no CUBE: the sums over the second column alone, which is one value here, are those over both.
    fn cube(one: &str, other: &str) -> String {
        format!("GROUP BY {one}, {other} WITH ROLLUP")
    }

    /// Rows that are not committed are locked.
    fn after_commits(_: &str, query: &str) -> String {
        format!("{query} LOCK IN SHARE MODE")
    }

    fn frame(namespace: &str, parts: &Parts, mark: &str) -> String {
        let Parts { name, parameters, wholes, begins, banks, pauses, answer, body } = parts;
        let head: Vec<String> = parameters
            .iter()
            .map(|(name, is_text)| format!("IN {name} {}", if *is_text { TEXT } else { "BIGINT" }))
            .collect();
        let mut declared: Vec<String> =
            wholes.iter().chain(answer).map(|name| format!("{name} BIGINT DEFAULT 0")).collect();
        declared.extend(begins.iter().map(|(name, value)| format!("{name} BIGINT DEFAULT {value}")));
        for (bank, width) in banks {
            declared.extend((1..=*width).map(|column| format!("{bank}_{column} {COLUMN} DEFAULT ''")));
        }
        if *pauses {
            declared.extend(["v_length DOUBLE", "v_asleep DATETIME(6)"].map(str::to_owned));
        }
        let body: Vec<String> = body.iter().map(|line| format!("    {line}")).collect();
        format!(
            "CREATE PROCEDURE {}({})\nSQL SECURITY INVOKER\nCOMMENT '{mark}'\nBEGIN\n  DECLARE {};\n  steps: BEGIN\n{}\n  END steps;\n  SELECT {};\nEND",
            Self::table(namespace, name),
            head.join(", "),
            declared.join(";\n  DECLARE "),
            body.join("\n"),
            answer.join(", ")
        )
    }

    fn assign(variable: &str, to: &str) -> String {
        format!("SET {variable} = {to};")
    }

    fn repeated() -> (&'static str, &'static str) {
        ("DO", "END WHILE;")
    }

    fn begin_changes(_: bool) -> Option<&'static str> {
        Some("START TRANSACTION;")
    }

    fn leave() -> &'static str {
        "LEAVE steps;"
    }

    /// One statement puts the numbers together: a cursor would keep the rows in a table as well, and then fetch each.
    fn keep_rows(query: &str, bank: &str, columns: &[&str]) -> Vec<String> {
        let gathered = columns.iter().map(|column| format!(", GROUP_CONCAT(q.{column})"));
        let into = (1..=columns.len()).map(|number| format!(", {bank}_{number}"));
        let (gathered, into): (String, String) = (gathered.collect(), into.collect());
        vec![format!("SELECT COUNT(*){gathered} INTO {bank}{into} FROM ({query}) q;")]
    }

    fn keep_row(bank: &str, values: &[String]) -> Vec<String> {
        let kept = (1..)
            .zip(values)
            .map(|(number, value)| format!("SET {bank}_{number} = CONCAT({bank}_{number}, {value}, ',');"));
        std::iter::once(format!("SET {bank} = {bank} + 1;")).chain(kept).collect()
    }

    fn kept(bank: &str, column: usize, row: &str) -> String {
        format!("SUBSTRING_INDEX(SUBSTRING_INDEX({bank}_{column}, ',', {row}), ',', -1)")
    }

    fn count_changed(into: &str) -> String {
        format!("SET {into} = ROW_COUNT();")
    }

    fn giving(_: &str, _: &str) -> String {
        String::new()
    }

    fn given(into: &str) -> Option<String> {
        Some(format!("SET {into} = LAST_INSERT_ID();"))
    }

    fn sleep() -> Vec<String> {
        let lines = [
            "SET v_asleep = SYSDATE(6);",
            "DO SLEEP(v_length / 1000000);",
            "SET v_paused_us = v_paused_us + TIMESTAMPDIFF(MICROSECOND, v_asleep, SYSDATE(6));",
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
    fn an_order_of_products_is_a_procedure_in_sql_psm() {
        insta::assert_snapshot!(Procedure::of::<Connector>(TransactionKind::OrderProducts, "bench").text);
    }
}
