//! The seam to the libraries that speak to Oracle: nothing outside this folder names one.
//!
//! A [`Driver`] is one connection, made by [`connect`]. Values go to it as [`ToDbValue`], rows come back as [`Row`], and what went
//! wrong as [`Error`], whichever library does it.

#[cfg(feature = "oci")]
mod cells;
#[cfg(feature = "oci")]
mod oci;
mod thin;

#[cfg(feature = "oci")]
use cells::{Cells, OfCell};

use std::fmt;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::{Error as PemError, PemObject as _, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use ::sql::SessionId;
use model::config::oracle::{OracleDriver, OracleRole};
use model::config::{Secret, SecretFile, SecretFileProblem};
use model::plain;
use model::units::Bytes;

/// Stack of a session's thread: room for a driver's calls, the deepest of which is the login over TLS. What an installed client needs
/// is not known. Only what is used takes memory.
pub(super) const STACK_BYTES: usize = if cfg!(feature = "oci") { 2 << 20 } else { 512 << 10 };

/// Whether this program has the driver at all.
pub(super) fn is_built_in(driver: OracleDriver) -> bool {
    driver == OracleDriver::Thin || cfg!(feature = "oci")
}

/// Connects and logs in. May wait without end for a listener that is silent, and may panic: see [`given_up`].
///
/// # Errors
/// Why there is no connection.
pub(super) fn connect(settings: &Settings) -> Result<(Box<dyn Driver>, Landed), Error> {
    match settings.driver {
        #[cfg(feature = "oci")]
        OracleDriver::Oci => oci::connect(settings),
        _ => thin::connect(settings),
    }
}

/// What it means that a driver has panicked with these words while it connected.
pub(super) fn given_up(said: &str) -> Error {
    thin::given_up(said)
}

/// A row, or what a block has put out.
pub(crate) struct Row(Fetched);

/// Whose row it is.
enum Fetched {
    /// With so many columns at its end that nobody asked for.
    Thin(oracledb::Row, usize),
    #[cfg(feature = "oci")]
    Oci(Cells),
}

/// What a column can be read as; `Option` of it where the column may be NULL.
#[cfg(not(feature = "oci"))]
pub(crate) trait FromDbValue: for<'a> oracledb::FromDbValue<'a> {}

#[cfg(not(feature = "oci"))]
impl<T: for<'a> oracledb::FromDbValue<'a>> FromDbValue for T {}

/// What a column can be read as; `Option` of it where the column may be NULL.
#[cfg(feature = "oci")]
pub(crate) trait FromDbValue: for<'a> oracledb::FromDbValue<'a> + OfCell {}

#[cfg(feature = "oci")]
impl<T: for<'a> oracledb::FromDbValue<'a> + OfCell> FromDbValue for T {}

impl Row {
    /// A column, counted from 0. Numbers can be read as text too.
    ///
    /// # Errors
    /// When it is not there, is NULL, or something else.
    pub(crate) fn get<T: FromDbValue>(&self, column: usize) -> Result<T, Error> {
        match &self.0 {
            Fetched::Thin(row, _) => Ok(row.get(column)?),
            #[cfg(feature = "oci")]
            Fetched::Oci(cells) => cells.get(column),
        }
    }

    /// How many columns were asked for.
    pub(crate) fn width(&self) -> usize {
        match &self.0 {
            Fetched::Thin(row, added) => row.columns().len() - added,
            #[cfg(feature = "oci")]
            Fetched::Oci(cells) => cells.0.len(),
        }
    }

    /// The bytes of a column, or none if it is NULL.
    ///
    /// # Errors
    /// When it is not there, or something else.
    pub(crate) fn bytes(&self, column: usize) -> Result<&[u8], Error> {
        match &self.0 {
            Fetched::Thin(row, _) => Ok(row.get::<Option<&[u8]>>(column)?.unwrap_or_default()),
            #[cfg(feature = "oci")]
            Fetched::Oci(cells) => cells.bytes(column),
        }
    }
}

/// Why a driver could not do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Error {
    /// The database refused it: the number of its error, and its words as they came.
    Refused { code: u32, message: String },
    /// A query that has no row.
    NoRow,
    /// The other side closed the connection without a word.
    Closed,
    /// The way to the database is broken.
    Broken(String),
    /// The call took longer than it may. The connection can be used further.
    TookTooLong,
    /// It took longer than it may, and the server did not answer when it was asked to stop.
    Silent,
    /// The listener knows no such service.
    UnknownService(String),
    /// The listener knows no such SID.
    UnknownSid(String),
    /// The listener refused with this number.
    ListenerRefused(usize),
    /// A file has no such name.
    UnknownAlias { file: String, alias: String },
    /// It is not known where `tnsnames.ora` is.
    NoAliases,
    /// The file of names cannot be read.
    Names { file: String, why: String },
    /// A connect descriptor, of the address or of an alias, cannot be understood.
    Descriptor(String),
    /// The database is older than the driver can speak with.
    TooOld,
    /// The wallet in this file cannot be used.
    Wallet { file: String, why: String },
    /// The password of the wallet in this file is missing or wrong.
    WalletPassword(String),
    /// The connection could not be encrypted.
    Tls(String),
    /// There is no Oracle client that could be loaded.
    #[cfg_attr(not(feature = "oci"), expect(dead_code, reason = "only the driver that uses a client needs one"))]
    NoClient(String),
    /// The server demands its own encryption, which the driver does not have.
    NativeEncryption,
    /// The driver gave up where it logged in, as it does where the server has only a password verifier of 10G or 11G.
    OldVerifier,
    /// Anything else: a value that cannot be sent or read as what it should be, or something that does not speak as Oracle does.
    Other(String),
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { message, .. } => f.write_str(message),
            Self::NoRow => f.write_str("it has no row"),
            Self::Closed => f.write_str("it closed the connection without a word"),
            Self::TookTooLong => f.write_str("the call took longer than it may"),
            Self::Silent => f.write_str("it did not answer, nor did it stop on request"),
            Self::UnknownService(name) => write!(f, "the listener knows no service `{name}`"),
            Self::UnknownSid(name) => write!(f, "the listener knows no SID `{name}`"),
            Self::ListenerRefused(code) => write!(f, "the listener refused the connection (ORA-{code:05})"),
            Self::UnknownAlias { file, alias } => write!(f, "there is no `{alias}` in `{file}`"),
            Self::NoAliases => f.write_str("it is not known where tnsnames.ora is"),
            Self::TooOld => f.write_str("the database is too old"),
            Self::Names { file, why } => write!(f, "`{file}` cannot be read: {why}"),
            Self::Descriptor(why) => write!(f, "its connect descriptor cannot be understood: {why}"),
            Self::Wallet { file, why } => write!(f, "the wallet `{file}` cannot be used: {why}"),
            Self::WalletPassword(file) => write!(f, "the password of the wallet `{file}` is missing or wrong"),
            Self::NativeEncryption => f.write_str("the server demands its native network encryption or checksums"),
            Self::OldVerifier => f.write_str("the driver gave up while it logged in"),
            Self::NoClient(words) | Self::Broken(words) | Self::Tls(words) | Self::Other(words) => f.write_str(words),
        }
    }
}

/// Statements of a session that a driver keeps prepared: more than operations and batches have.
const STATEMENTS: u32 = 32;

/// How to connect.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) driver: OracleDriver,
    pub(crate) user: String,
    pub(crate) password: Secret,
    pub(crate) role: Option<OracleRole>,
    /// A descriptor, or a name of `tnsnames.ora`.
    pub(crate) connect_string: String,
    /// Longest wait for the network.
    pub(crate) connect_timeout: Duration,
    /// Directory of `tnsnames.ora`.
    pub(crate) tns_admin: Option<String>,
    pub(crate) wallet: Option<PathBuf>,
    pub(crate) wallet_password: Option<Secret>,
    /// The program's name, as `v$session` shows it; an installed client shows that of the file.
    pub(crate) program: String,
}

/// Where a connection has landed.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) instance: String,
    /// The server's version: 19, 3, 0, 0, 0.
    pub(crate) version: [usize; 5],
    pub(crate) id: SessionId,
}

/// A connection. It is asked one thing at a time, and waits for the answer.
pub(crate) trait Driver: Send {
    /// Names what the session does, as `v$session` shows it; it goes with the next call.
    ///
    /// # Errors
    /// When the connection is not usable.
    fn name_work(&self, module: &str, action: &str) -> Result<(), Error>;

    /// Limits how long a call may take. One that takes longer is cancelled and ends in [`Error::TookTooLong`].
    ///
    /// # Errors
    /// When the connection is not usable.
    fn limit_calls(&self, limit: Option<Duration>) -> Result<(), Error>;

    /// Executes a statement or a block, and says how many rows it changed.
    ///
    /// # Errors
    /// What the server says.
    fn execute(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<u64, Error>;

    /// Executes a block, and gives what it puts out: a column for each value that is one of the types.
    ///
    /// # Errors
    /// What the server says.
    fn call(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<Row, Error>;

    /// Executes a statement once for each row of values, in one round trip, and says how many rows it changed.
    ///
    /// # Errors
    /// What the server says.
    fn execute_for_each(&self, sql: &str, rows: &[&[&dyn ToDbValue]]) -> Result<u64, Error>;

    /// Has `take` see all rows of a query, of which so many come in one round trip.
    ///
    /// # Errors
    /// What the server or `take` says.
    fn query(
        &self,
        sql: &str,
        values: &[&dyn ToDbValue],
        rows_at_once: u32,
        take: &mut dyn FnMut(&Row) -> Result<(), Error>,
    ) -> Result<(), Error>;

    /// The first row of a query.
    ///
    /// # Errors
    /// [`Error::NoRow`], or what the server says.
    fn first(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<Row, Error>;

    /// A statement or block that is executed many times.
    ///
    /// # Errors
    /// What the server says.
    fn prepare(&self, sql: &str) -> Result<Prepared, Error>;

    /// One round trip with nothing to do on the other side.
    ///
    /// # Errors
    /// When the connection is not usable.
    fn ping(&self) -> Result<(), Error>;

    /// Ends the transaction.
    ///
    /// # Errors
    /// What the server says.
    fn commit(&self) -> Result<(), Error>;

    /// Takes back what was not committed.
    ///
    /// # Errors
    /// What the server says.
    fn rollback(&self) -> Result<(), Error>;
}

/// A block that is kept prepared.
pub(crate) trait Block: Send {
    /// Executes it, and gives what it puts out.
    ///
    /// # Errors
    /// What the server says.
    fn call(&mut self, values: &[&dyn ToDbValue]) -> Result<Row, Error>;
}

/// A statement or block that is kept prepared.
pub(crate) type Prepared = Box<dyn Block>;

// Files that the driver reads before it connects. They are looked at first: the driver waits for a pipe without end, names no file
// that is damaged, and its words for one are those for a server that speaks nonsense.

/// Longest `tnsnames.ora`.
const MAX_NAMES: Bytes = Bytes::mib(64);
/// How a private key begins that no password protects.
const PLAIN_KEY: &str = "-----BEGIN PRIVATE KEY-----";
/// How one begins that a password protects. The driver opens it.
const PROTECTED_KEY: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";

/// Looks whether there is a `tnsnames.ora` in `directory` that can be read.
///
/// # Errors
/// [`Error::Names`], with what is in the way.
fn look_at_names(directory: &str) -> Result<(), Error> {
    let file = Path::new(directory).join("tnsnames.ora");
    let read = plain::read_named_text(&file, MAX_NAMES);
    read.map(drop).map_err(|why| Error::Names { file: file.display().to_string(), why: why.to_string() })
}

/// Looks whether `ewallet.pem` in `directory` is whole, as far as that can be seen without its password.
///
/// # Errors
/// [`Error::Wallet`], with what is wrong.
fn look_at_wallet(directory: &Path) -> Result<(), Error> {
    let file = directory.join("ewallet.pem");
    let read = || {
        let read = SecretFile::read(&file).map_err(|why| why.to_string())?;
        let text = read.text().map_err(|why| why.to_string())?;
        // A key under a password is a secret of the password.
        if text.contains(PLAIN_KEY) && read.is_open() {
            return Err(SecretFileProblem::Open.to_string());
        }
        whole(text)
    };
    read().map_err(|why| Error::Wallet { file: file.display().to_string(), why })
}

/// Says what is wrong with the text of a wallet, if anything is.
fn whole(text: &str) -> Result<(), String> {
    let mut certificates = Vec::new();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()) {
        match section {
            Ok((SectionKind::Certificate, bytes)) => certificates.push(CertificateDer::from(bytes)),
            Ok(_) => {}
            Err(PemError::MissingSectionEnd { .. }) => return Err("it ends in the middle of a section".to_owned()),
            Err(_) => return Err("a section in it is damaged".to_owned()),
        }
    }
    if certificates.is_empty() {
        return Err("it has no certificate".to_owned());
    }
    if text.contains(PLAIN_KEY) {
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).ok();
        return match key.and_then(|key| any_supported_type(&key).ok()) {
            Some(_) => Ok(()),
            None => Err("the private key in it is damaged".to_owned()),
        };
    }
    // Beside a key they are the client's own, which the driver takes as they are.
    let are_read = text.contains(PROTECTED_KEY)
        || certificates.into_iter().all(|certificate| RootCertStore::empty().add(certificate).is_ok());
    if are_read { Ok(()) } else { Err("a certificate in it is damaged".to_owned()) }
}

/// A value as drivers take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Signed(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// A number that is unknown.
    NoNumber,
    Out(DbType),
}

/// What a block puts out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DbType {
    Number,
    /// At most 4,000 bytes.
    Text,
    /// At most 4,000 bytes.
    Bytes,
}

/// Stands where a block puts out a number.
pub(crate) const DB_TYPE_NUMBER: DbType = DbType::Number;
/// Stands where a block puts out text.
pub(crate) const DB_TYPE_VARCHAR: DbType = DbType::Text;
/// Stands where a block puts out bytes.
pub(crate) const DB_TYPE_RAW: DbType = DbType::Bytes;

/// What can be bound.
pub(crate) trait ToDbValue {
    /// As drivers take it.
    fn value(&self) -> Value<'_>;
}

impl ToDbValue for u64 {
    fn value(&self) -> Value<'_> {
        Value::Number(*self)
    }
}

impl ToDbValue for u32 {
    fn value(&self) -> Value<'_> {
        Value::Number((*self).into())
    }
}

impl ToDbValue for i64 {
    fn value(&self) -> Value<'_> {
        Value::Signed(*self)
    }
}

impl ToDbValue for &str {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToDbValue for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToDbValue for &[u8] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl ToDbValue for Value<'_> {
    fn value(&self) -> Value<'_> {
        *self
    }
}

impl ToDbValue for DbType {
    fn value(&self) -> Value<'_> {
        Value::Out(*self)
    }
}

/// Room for the values of one operation: all columns, two keys, and the count that comes back.
const ROOM: usize = 24;

/// Has `work` do something with the values, which need no room on the heap unless they are many.
fn with_values<T>(bound: &[&dyn ToDbValue], work: impl FnOnce(&[Value<'_>]) -> T) -> T {
    let mut room = [Value::Number(0); ROOM];
    match room.get_mut(..bound.len()) {
        Some(values) => {
            for (value, bound) in values.iter_mut().zip(bound) {
                *value = bound.value();
            }
            work(values)
        }
        None => work(&bound.iter().map(|bound| bound.value()).collect::<Vec<_>>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_wallet_is_said() {
        let section = |kind: &str, text: &str| format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n");
        let garbage = section("CERTIFICATE", "AAECAwQFBgcICQ==");
        for (text, says) in [
            (String::new(), "no certificate"),
            ("\0".repeat(5000), "no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAEC".to_owned(), "in the middle"),
            (section("CERTIFICATE", "!!!!"), "section in it is damaged"),
            (garbage.clone(), "a certificate in it is damaged"),
            (garbage.clone() + &section("PRIVATE KEY", "AAECAwQFBgcICQ=="), "private key in it is damaged"),
        ] {
            let why = whole(&text).unwrap_err();
            assert!(why.contains(says), "{says}: {why}");
        }
        assert_eq!(whole(&(garbage + &section("ENCRYPTED PRIVATE KEY", "AAECAwQFBgcICQ=="))), Ok(()));
    }
}
