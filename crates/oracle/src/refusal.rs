//! Why there is no connection, and what to do about it.

use std::time::Duration;

use super::connect::Login;
use super::driver::Error;
use super::error::{ORACLE, OraNumber, bare, refusal_hint};
use ::sql::ServerError;
use measure::ConnectFailure;

/// What is said where a listener is in doubt.
const LISTENER: &str = "look whether the listener runs there: `lsnrctl services`";
/// What is said where the driver is what lacks something.
const OTHER_DRIVER: &str = "this driver cannot, and an installed Oracle client can: `driver=oci`; or, on the server, ";

/// Turns what a driver says while it connects into what a person reads.
#[derive(Debug)]
pub(super) struct Refusal<'a> {
    /// Whither.
    pub(super) node: &'a str,
    /// As whom.
    pub(super) login: &'a Login,
}

impl Refusal<'_> {
    fn with(&self, reason: impl Into<String>, hint: impl Into<String>) -> ServerError {
        let failure = ConnectFailure::Other;
        let (node, reason, hint) = (self.node.to_owned(), reason.into(), Some(hint.into()));
        ServerError::Connect { product: ORACLE, node, reason, hint, failure }
    }

    /// Nothing was heard for so long.
    pub(super) fn silence(&self, waited: Duration) -> ServerError {
        self.with(
            format!(
                "something listens there and does not answer to the end (waited {} s, ORA-12170)",
                waited.as_secs()
            ),
            "check host and port (TCPS has a port of its own), and the listener's log; allow more time: `connect-timeout=60`",
        )
    }

    /// What an error means that ended the attempt.
    pub(super) fn of(&self, error: &Error) -> ServerError {
        let mut words = self.words(error);
        if let ServerError::Connect { failure, .. } = &mut words {
            *failure = kind(error);
        }
        words
    }

    fn words(&self, error: &Error) -> ServerError {
        match error {
            Error::Refused { code, message } => {
                let hint = match *code {
                    1017 => self.login.password_source.clone(),
                    1031 | 1994 => "the user may not log in with that role; leave out `role`".to_owned(),
                    12_514 | 12_505 => format!("check the name of the service; {LISTENER}"),
                    code => refusal_hint(code).unwrap_or(LISTENER).to_owned(),
                };
                self.with(format!("{} ({})", bare(message), OraNumber(*code)), hint)
            }
            Error::UnknownService(_) => {
                self.with(format!("{error} (ORA-12514)"), format!("check the name of the service; {LISTENER}"))
            }
            Error::UnknownSid(_) => {
                self.with(format!("{error} (ORA-12505)"), format!("name a service instead of a SID; {LISTENER}"))
            }
            Error::ListenerRefused(code) => {
                let hint = u32::try_from(*code).ok().and_then(refusal_hint).map(|hint| format!("{hint}; {LISTENER}"));
                self.with(error.to_string(), hint.unwrap_or_else(|| LISTENER.to_owned()))
            }
            Error::UnknownAlias { .. } => self.with(
                error.to_string(),
                "check the name, whether all brackets in that file close, and whether a newline ends its last line; or name the \
                 database: `oracle://USER@HOST:PORT/SERVICE`",
            ),
            Error::NoAliases => self.with(
                "it is a name of tnsnames.ora, and TNS_ADMIN does not say where that is",
                "set TNS_ADMIN to its directory, or name the database: `oracle://USER@HOST:PORT/SERVICE`",
            ),
            Error::TookTooLong => self.with(
                format!("no answer within {} s (ORA-12170)", self.login.connect_timeout.as_secs()),
                "check the address, the network and its firewalls, or allow more time: `connect-timeout=60`",
            ),
            Error::TooOld => self.with("the database is older than 12.1", "this driver needs 12.1 or later"),
            Error::Names { .. } => self.with(
                error.to_string(),
                "set TNS_ADMIN to the directory of a `tnsnames.ora` that can be read, or name the database: \
                 `oracle://USER@HOST:PORT/SERVICE`",
            ),
            Error::Descriptor(_) => self.with(
                error.to_string(),
                "correct it where it stands, in the address or in tnsnames.ora; or name the database: \
                 `oracle://USER@HOST:PORT/SERVICE`",
            ),
            Error::Wallet { .. } => {
                self.with(error.to_string(), "name the directory that has a whole `ewallet.pem`: `wallet=DIR`")
            }
            Error::WalletPassword(_) => {
                self.with(error.to_string(), "give it in the environment: PLIMSOLL_ORACLE_WALLET_PASSWORD")
            }
            Error::Tls(words) => self.with(
                format!("the connection could not be encrypted: {words}"),
                "name the directory of the wallet that trusts the server (`wallet=DIR`), the port that has TCPS, and the host as the \
                 server's certificate names it",
            ),
            Error::NoClient(words) => self.with(
                format!("no Oracle client could be loaded, which `driver=oci` uses: {}", bare(words)),
                "install Oracle Instant Client, Basic or Basic Light, from \
                 https://www.oracle.com/database/technologies/instant-client.html, and set LD_LIBRARY_PATH to its directory; \
                 or leave out `driver=oci`",
            ),
            Error::NativeEncryption => self.with(
                "the server demands its native network encryption or checksums, which this driver does not have",
                format!(
                    "{OTHER_DRIVER}set SQLNET.ENCRYPTION_SERVER and SQLNET.CRYPTO_CHECKSUM_SERVER to ACCEPTED, or use TCPS: \
                     `protocol=tcps`"
                ),
            ),
            Error::OldVerifier => self.with(
                format!(
                    "the driver gave up while it logged in as `{}`, as it does where the server has only an old password \
                     verifier (10G, 11G)",
                    self.login.user
                ),
                format!("{OTHER_DRIVER}set the password again, with a 12C verifier (ALTER USER … IDENTIFIED BY …)"),
            ),
            Error::Broken(_) | Error::Closed => {
                let hint = format!("check the address and the network to it; {LISTENER}; a port of TCPS wants `protocol=tcps`");
                self.with(error.to_string(), hint)
            }
            Error::NoRow | Error::Silent | Error::Other(_) => self.with(
                format!("what answered does not speak as Oracle does ({error})"),
                "check host and port; something else may listen there",
            ),
        }
    }
}

/// Of which kind an error of connecting is, for an application that tries again.
fn kind(error: &Error) -> ConnectFailure {
    match error {
        Error::Refused { code, .. } => match code {
            18 | 20 | 2391 | 12_516 | 12_518 | 12_519 | 12_520 => ConnectFailure::OutOfConnections,
            1005 | 1017 | 1031 | 1994 | 1045 | 28_000 | 28_001 => ConnectFailure::Login,
            1033 | 1034 | 1089 | 1090 => ConnectFailure::Refused,
            _ => ConnectFailure::Other,
        },
        Error::ListenerRefused(12_516 | 12_518..=12_520) => ConnectFailure::OutOfConnections,
        Error::ListenerRefused(_) | Error::TookTooLong | Error::Broken(_) | Error::Closed => ConnectFailure::Refused,
        Error::OldVerifier => ConnectFailure::Login,
        _ => ConnectFailure::Other,
    }
}
