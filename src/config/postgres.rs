//! The address of PostgreSQL servers.

use std::fmt;
use std::path::PathBuf;

use super::Secret;

/// Port where an address names none.
pub const USUAL_PORT: u16 = 5432;

/// Where one or several PostgreSQL servers are, and as whom to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresAddress {
    /// Servers in the order in which they were named; at least one.
    pub nodes: Vec<PostgresNode>,
    /// Role; that of the operating system where none is named.
    pub user: Option<String>,
    /// Password that stood in the address.
    pub password: Option<Secret>,
    /// Database; of the role's name where none is named.
    pub database: Option<String>,
    /// Whether and how connections are encrypted.
    pub tls: TlsOptions,
    /// Longest wait for a connection, in seconds; `None` for the usual one.
    pub connect_timeout_s: Option<u32>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostgresNode {
    /// Host name, IP address, or the directory of the server's socket if it begins with `/`.
    pub host: String,
    /// Port; part of the socket's name where the host is a directory.
    pub port: u16,
}

/// Encryption of connections, by libpq's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// `sslmode`; `None` where nobody says.
    pub mode: Option<TlsMode>,
    /// `sslrootcert`: certificates to trust.
    pub root_certificates: Option<RootCertificates>,
    /// `sslcert`: our own certificate.
    pub certificate: Option<PathBuf>,
    /// `sslkey`: the key of our own certificate.
    pub key: Option<PathBuf>,
}

/// libpq's `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Never encrypted.
    Disable,
    /// Encrypted only where the server refuses plain connections.
    Allow,
    /// Encrypted where the server can.
    Prefer,
    /// Always encrypted; the server may be anybody.
    Require,
    /// Encrypted, and the server's certificate is signed by somebody trusted.
    VerifyCa,
    /// The same, and the certificate is that of the host that was named.
    VerifyFull,
}

/// Certificates that are trusted to sign a server's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootCertificates {
    /// Those of the operating system: `sslrootcert=system`.
    System,
    /// Those in a file.
    File(PathBuf),
}

impl PostgresNode {
    /// Whether it is reached over a socket file, and so runs on this machine.
    pub fn is_socket(&self) -> bool {
        self.host.starts_with('/')
    }
}

/// `db1:5432`; the directory of a socket with its port if that is unusual.
impl fmt::Display for PostgresNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        match (self.is_socket(), *port == USUAL_PORT) {
            (true, true) => f.write_str(host),
            _ if host.contains(':') => write!(f, "[{host}]:{port}"),
            _ => write!(f, "{host}:{port}"),
        }
    }
}
