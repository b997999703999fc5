//! Why one attempt to connect failed, in words, and what to do about it.

use std::error::Error;
use std::io;

use tokio_postgres::error::DbError;

use super::login::{Login, PasswordSource, Server, socket_path};
use super::refusal_hint;
use super::tls::Encryption;
use crate::error::innermost;
use measure::ConnectFailure;
use model::config::postgres::{DEFAULT_PORT, TlsMode};
use targets::MORE_FILES;

/// Why one attempt failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// In one sentence, without the server's name.
    pub(super) reason: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
    pub(super) cause: Cause,
}

/// What kind of failure it was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The server refused, with this SQLSTATE.
    Refusal(String),
    /// The connection could not be encrypted.
    Tls,
    /// Nobody answered as a server does.
    NoAnswer,
}

/// What was attempted.
pub(super) struct Attempt<'a> {
    pub(super) login: &'a Login,
    pub(super) server: &'a Server,
    pub(super) encryption: &'a Encryption,
    /// Whether it was made without any encryption.
    pub(super) is_plain: bool,
}

impl Failure {
    fn no_answer(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: Some(hint.into()), cause: Cause::NoAnswer }
    }

    /// No word in the time that there was.
    pub(super) fn silence(login: &Login) -> Self {
        let waited_s = login.connect_timeout.as_secs();
        Self::no_answer(
            format!("there was no answer for {waited_s} s"),
            "look whether the server runs, and whether a firewall drops what is sent to it; `connect_timeout` in the address \
             is how long to wait",
        )
    }

    /// The host's name leads nowhere.
    pub(super) fn unknown_host(error: &io::Error) -> Self {
        Self::no_answer(
            format!("the host's name cannot be resolved: {error}"),
            "check the name, and whether this machine can resolve it: `getent hosts NAME`",
        )
    }

    /// What the system says of an attempt.
    pub(super) fn of_system(error: &io::Error, attempt: &Attempt<'_>) -> Self {
        system_failed(error, attempt)
    }

    /// What the client's library says of an attempt.
    pub(super) fn of(error: &tokio_postgres::Error, attempt: &Attempt<'_>) -> Self {
        if let Some(refusal) = error.as_db_error() {
            return refused(refusal, attempt);
        }
        if let Some(tls) = tls_error(error) {
            return tls_failed(tls, attempt);
        }
        let source = error.source();
        if let Some(error) = source.and_then(|source| source.downcast_ref::<io::Error>()) {
            return system_failed(error, attempt);
        }
        let inner = source.map(ToString::to_string).unwrap_or_default();
        // The library does not show of which kind its errors are, but for their words.
        match (error.to_string().as_str(), inner.as_str()) {
            (_, "password missing") => Self {
                reason: format!("the server asks for the password of role `{}`, and there is none", attempt.login.user),
                hint: Some(format!("give it {PASSWORD_PLACES}")),
                cause: Cause::Refusal("28P01".to_owned()),
            },
            ("error performing TLS handshake", "server does not support TLS") => Self {
                reason: format!("the server offers no encryption, which `sslmode={}` asks for", mode(attempt)),
                hint: Some("turn its `ssl` on, or do without: `sslmode=prefer`".to_owned()),
                cause: Cause::Tls,
            },
            ("error performing TLS handshake", inner) => Self {
                reason: format!("the connection could not be encrypted (`sslmode={}`): {inner}", mode(attempt)),
                hint: None,
                cause: Cause::Tls,
            },
            ("authentication error", inner) => Self {
                reason: format!("logging in failed: {inner}"),
                hint: Some(
                    "have the server's pg_hba.conf ask for a password (scram-sha-256, md5) or for a certificate; GSSAPI, \
                     SSPI and the like are not known here"
                        .to_owned(),
                ),
                cause: Cause::Refusal("28000".to_owned()),
            },
            _ => Self::no_answer(
                format!("what answered does not speak as PostgreSQL does ({})", innermost(error)),
                "check host and port; something else may listen there, or a proxy",
            ),
        }
    }

    /// Of which kind it is, for an application that tries again.
    pub(super) fn kind(&self) -> ConnectFailure {
        match &self.cause {
            Cause::Refusal(code) => match code.as_str() {
                "53300" => ConnectFailure::OutOfConnections,
                "3D000" | "42501" => ConnectFailure::Login,
                code if code.starts_with("28") => ConnectFailure::Login,
                code if code.starts_with("57P") => ConnectFailure::Refused,
                _ => ConnectFailure::Other,
            },
            Cause::Tls => ConnectFailure::Other,
            Cause::NoAnswer => ConnectFailure::Refused,
        }
    }

    /// Two attempts at the same server that failed, reported as one.
    pub(super) fn and(self, second: Self, how: &str) -> Self {
        if self.reason == second.reason {
            return self;
        }
        Self {
            reason: format!("{}; {how}: {}", self.reason, second.reason),
            hint: self.hint.or(second.hint),
            cause: second.cause,
        }
    }
}

/// Where a password can be given.
const PASSWORD_PLACES: &str = "in the environment (PGPASSWORD) or in the password file (~/.pgpass or PGPASSFILE, \
                               `chmod 600`, lines of HOST:PORT:DATABASE:USER:PASSWORD)";

fn mode(attempt: &Attempt<'_>) -> &'static str {
    attempt.encryption.mode.name()
}

fn refused(refusal: &DbError, attempt: &Attempt<'_>) -> Failure {
    let code = refusal.code().code();
    let Attempt { login, server, .. } = attempt;
    let hint = match code {
        "28P01" => Some(wrong_password(server)),
        "28000" if refusal.message().contains("pg_hba.conf") => Some(shut_out(attempt)),
        "28000" => Some(format!(
            "check the role `{}`: whether it exists and may log in, and how pg_hba.conf has it proved; another one is named as \
             `postgres://USER@…`",
            login.user
        )),
        "3D000" => Some(format!(
            "make it (`CREATE DATABASE \"{}\"`), or name another one: `postgres://USER@HOST/DATABASE`",
            login.database.replace('"', "\"\"")
        )),
        "42501" => Some(format!(
            "have the right granted: `GRANT CONNECT ON DATABASE \"{}\" TO \"{}\"`",
            login.database.replace('"', "\"\""),
            login.user.replace('"', "\"\"")
        )),
        "57P03" => Some("wait until the server has started, or give it longer with `connect_timeout`".to_owned()),
        _ => refusal_hint(code).map(str::to_owned),
    };
    Failure { reason: format!("{} (SQLSTATE {code})", refusal.message()), hint, cause: Cause::Refusal(code.to_owned()) }
}

fn wrong_password(server: &Server) -> String {
    match &server.password {
        Some((_, PasswordSource::Variable)) => {
            "check the password in PGPASSWORD; ~/.pgpass is not looked at when it is set".to_owned()
        }
        Some((_, PasswordSource::File(path))) => {
            format!("check the password in `{}`; the first line that fits counts", path.display())
        }
        None => format!("give the password {PASSWORD_PLACES}"),
    }
}

/// No line of pg_hba.conf lets this in.
fn shut_out(attempt: &Attempt<'_>) -> String {
    let Attempt { login, server, .. } = attempt;
    let allow = format!("have a line of its pg_hba.conf let role `{}` in from here", login.user);
    if server.node.is_socket() {
        allow
    } else if attempt.is_plain {
        format!("the server may want encryption: `sslmode=require`; or {allow}")
    } else {
        format!("the server may want no encryption: `sslmode=disable`; or {allow}")
    }
}

fn system_failed(error: &io::Error, attempt: &Attempt<'_>) -> Failure {
    let node = &attempt.server.node;
    let port = node.port.unwrap_or(DEFAULT_PORT);
    let socket = || socket_path(&node.host, port).display().to_string();
    let runs = "look whether the server runs and listens there";
    match (error.kind(), node.is_socket()) {
        (io::ErrorKind::NotFound, true) => Failure::no_answer(
            format!("there is no socket `{}`", socket()),
            format!("{runs} (its unix_socket_directories and port), or name a host: `postgres://USER@HOST/DATABASE`"),
        ),
        (io::ErrorKind::ConnectionRefused, true) => Failure::no_answer(
            format!("no server listens on the socket `{}`", socket()),
            "the server seems to have ended without removing it; start the server",
        ),
        (io::ErrorKind::ConnectionRefused, false) => Failure::no_answer(
            format!("no server listens on port {port}"),
            format!("{runs} (its listen_addresses and port)"),
        ),
        (io::ErrorKind::PermissionDenied, true) => Failure::no_answer(
            format!("this user may not use the socket `{}`", socket()),
            "run as a user who may, or name a host: `postgres://USER@HOST/DATABASE`",
        ),
        (io::ErrorKind::TimedOut, _) => Failure::silence(attempt.login),
        (io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable, _) => {
            Failure::no_answer(error.to_string(), "check the address and the network to it")
        }
        (io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe, _) => {
            Failure::no_answer(
                "the connection was closed before anybody logged in",
                "the server's own log may say why, or another program listens there",
            )
        }
        _ if error.raw_os_error() == Some(libc::EMFILE) => Failure::no_answer(error.to_string(), MORE_FILES),
        _ => Failure::no_answer(error.to_string(), runs),
    }
}

/// The error of encryption that an error of the client's library wraps.
fn tls_error(error: &tokio_postgres::Error) -> Option<&rustls::Error> {
    let system = error.source()?.downcast_ref::<io::Error>()?;
    system.get_ref()?.downcast_ref::<rustls::Error>()
}

fn tls_failed(error: &rustls::Error, attempt: &Attempt<'_>) -> Failure {
    use rustls::{CertificateError as Bad, Error};
    let host = &attempt.server.node.host;
    let unverified = "or do not verify: `sslmode=require` without a root certificate";
    let (why, hint) = match error {
        Error::InvalidCertificate(Bad::UnknownIssuer) => (
            "the server's certificate is not signed by any of the root certificates".to_owned(),
            format!("name the right root certificates with `sslrootcert=PATH` (usually ~/.postgresql/root.crt), {unverified}"),
        ),
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => (
            format!("the server's certificate is not for the host `{host}`"),
            "use a host name that its subject alternative names hold (a common name alone is not looked at), or do not check \
             the name: `sslmode=verify-ca`"
                .to_owned(),
        ),
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            ("the server's certificate has expired".to_owned(), format!("have it renewed, {unverified}"))
        }
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => (
            "the server's certificate is not valid yet".to_owned(),
            format!("check the clocks of both machines, {unverified}"),
        ),
        Error::InvalidCertificate(bad) => {
            (format!("the server's certificate is not good: {bad}"), format!("have it made again, {unverified}"))
        }
        Error::AlertReceived(alert) => (
            format!("the server broke the encryption off ({alert:?})"),
            "it may want a certificate of ours, or another one: `sslcert=PATH` and `sslkey=PATH`; its own log says why"
                .to_owned(),
        ),
        other => (other.to_string(), "the server's own log may say more; it must know TLS 1.2 or later".to_owned()),
    };
    let asked = match attempt.encryption.mode {
        // Here the plain attempt that follows is what counts.
        TlsMode::Prefer | TlsMode::Allow => String::new(),
        mode => format!(" (`sslmode={}`)", mode.name()),
    };
    Failure {
        reason: format!("the connection could not be encrypted{asked}: {why}"),
        hint: Some(hint),
        cause: Cause::Tls,
    }
}
