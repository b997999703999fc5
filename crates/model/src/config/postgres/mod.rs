//! The address of PostgreSQL servers: libpq's connection URIs.

mod parse;
mod problem;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;

use percent_encoding::utf8_percent_encode;

use super::Secret;
use super::address::{ENCODED_BRACKETED, ENCODED_NAME, write_parameters};

pub use problem::AddressProblem;

/// Port where nobody names one.
pub const DEFAULT_PORT: u16 = 5432;

/// Where one or several PostgreSQL servers are, and as whom to connect.
///
/// Printing it gives an address that can be read again, without the password.
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
    /// Longest wait for a connection, in seconds, at least 1; `None` for the usual one.
    pub connect_timeout_s: Option<u32>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostgresNode {
    /// Host name, IP address, or the directory of the server's socket if it begins with `/`. Empty where the address names
    /// none: then it is that of `PGHOST`, or the usual directory of sockets.
    pub host: String,
    /// Port; part of the socket's name where the host is a directory. `None` where the address names none: then it is that
    /// of `PGPORT`, or [`DEFAULT_PORT`].
    pub port: Option<u16>,
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

    /// Servers from libpq's two lists: `a,b` and `5432,5433`, or one port for all. What is empty is not named.
    ///
    /// # Errors
    /// When a host or a port is none, or the lists have different lengths.
    pub fn list(hosts: &str, ports: &str) -> Result<Vec<Self>, AddressProblem> {
        let ports: Vec<Option<u16>> = ports.split(',').map(parse::port).collect::<Result<_, _>>()?;
        let hosts: Vec<&str> = hosts.split(',').collect();
        if ports.len() != 1 && ports.len() != hosts.len() {
            return Err(AddressProblem::PortCount { hosts: hosts.len(), ports: ports.len() });
        }
        let ports = ports.iter().cycle();
        hosts.iter().zip(ports).map(|(host, port)| Ok(Self { host: parse::host(host)?, port: *port })).collect()
    }
}

impl TlsMode {
    const ALL: [Self; 6] = [Self::Disable, Self::Allow, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];

    /// libpq's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl From<&str> for RootCertificates {
    /// From libpq's `sslrootcert`, where `system` is no file.
    fn from(text: &str) -> Self {
        if text == "system" { Self::System } else { Self::File(PathBuf::from(text)) }
    }
}

/// `db1:5432`; the directory of a socket with its port if that is unusual.
impl fmt::Display for PostgresNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.is_empty() { "local socket" } else { &self.host };
        let port = self.port.unwrap_or(DEFAULT_PORT);
        match (self.is_socket(), port == DEFAULT_PORT) {
            (true, true) => f.write_str(host),
            _ if host.contains(':') => write!(f, "[{host}]:{port}"),
            _ => write!(f, "{host}:{port}"),
        }
    }
}

/// The address as it is written on the command line, without its password.
impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No field may be forgotten, and the password must be.
        let Self { nodes, user, password: _, database, tls, connect_timeout_s } = self;
        f.write_str("postgres://")?;
        if let Some(user) = user {
            write!(f, "{}@", utf8_percent_encode(user, ENCODED_NAME))?;
        }
        for (index, node) in nodes.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            if node.host.contains(':') {
                write!(f, "[{}]", utf8_percent_encode(&node.host, ENCODED_BRACKETED))?;
            } else {
                write!(f, "{}", utf8_percent_encode(&node.host, ENCODED_NAME))?;
            }
            if let Some(port) = node.port {
                write!(f, ":{port}")?;
            }
        }
        if let Some(database) = database {
            write!(f, "/{}", utf8_percent_encode(database, ENCODED_NAME))?;
        }
        let roots = tls.root_certificates.as_ref().map(|roots| match roots {
            RootCertificates::System => "system".to_owned(),
            RootCertificates::File(path) => path.display().to_string(),
        });
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let parameters = [
            ("sslmode", tls.mode.map(|mode| mode.name().to_owned())),
            ("sslrootcert", roots),
            ("sslcert", path(&tls.certificate)),
            ("sslkey", path(&tls.key)),
            ("connect_timeout", connect_timeout_s.map(|seconds| seconds.to_string())),
        ];
        write_parameters(f, parameters)
    }
}
