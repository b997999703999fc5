//! What went wrong, in words that all drivers share.

use std::fmt;
use std::fmt::Display;

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
            Self::Silent => f.write_str("it did not answer, and not when it was asked to stop either"),
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
