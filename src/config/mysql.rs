//! The address of MySQL and MariaDB servers.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Port where nobody names one.
pub const DEFAULT_PORT: u16 = 3306;
/// What stays as it is in a printed address.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
/// The same for names, in which a `/` would end them.
const ENCODED_NAME: &AsciiSet = &ENCODED.add(b'/');
/// What may follow the `?`.
const PARAMETERS: [&str; 7] =
    ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket", "defaults-file", "connect-timeout"];

/// Where one or several MySQL or MariaDB servers are, and as whom to connect. It never holds a password.
///
/// Printing it gives an address that can be read again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MysqlAddress {
    /// Servers in the order in which they were named; none where a socket of this machine is meant.
    pub nodes: Vec<MysqlNode>,
    /// User; that of the option file or of the operating system where none is named.
    pub user: Option<String>,
    /// Database that holds the data, or is to hold them.
    pub database: Option<String>,
    /// `socket`: the server's socket on this machine.
    pub socket: Option<PathBuf>,
    /// `defaults-file`: the option file to read instead of `~/.my.cnf`.
    pub defaults_file: Option<PathBuf>,
    /// Whether and how connections are encrypted.
    pub tls: TlsOptions,
    /// Longest wait for a connection, in seconds, at least 1; `None` for the usual one.
    pub connect_timeout_s: Option<u32>,
}

/// One server on the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MysqlNode {
    /// Host name or IP address.
    pub host: String,
    /// Port; `None` for [`DEFAULT_PORT`].
    pub port: Option<u16>,
}

/// Encryption of connections, by the words of MySQL's own client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// `ssl-mode`; `None` where nobody says.
    pub mode: Option<TlsMode>,
    /// `ssl-ca`: a file of certificates to trust instead of the public authorities.
    pub ca: Option<PathBuf>,
    /// `ssl-cert`: our own certificate.
    pub certificate: Option<PathBuf>,
    /// `ssl-key`: the key of our own certificate.
    pub key: Option<PathBuf>,
}

/// `ssl-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Never encrypted.
    Disabled,
    /// Encrypted where the server can.
    Preferred,
    /// Always encrypted; the server may be anybody.
    Required,
    /// Encrypted, and the server's certificate is signed by somebody trusted. The driver compares its name as well.
    VerifyCa,
    /// The same, and the certificate is that of the host that was named.
    VerifyIdentity,
}

impl TlsMode {
    const ALL: [Self; 5] = [Self::Disabled, Self::Preferred, Self::Required, Self::VerifyCa, Self::VerifyIdentity];

    /// MySQL's word for it, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Preferred => "preferred",
            Self::Required => "required",
            Self::VerifyCa => "verify_ca",
            Self::VerifyIdentity => "verify_identity",
        }
    }
}

/// Why a text is not the address of MySQL servers. As a wrong address may hold a password anywhere, no message repeats any of
/// it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MysqlAddressProblem {
    message: &'static str,
    hint: &'static str,
}

const FORM: &str = "write `mysql://USER@HOST:PORT/DATABASE`";
const ESCAPES: &str = "within a name or a value write `@` as `%40`, `/` as `%2F`, `:` as `%3A`, `,` as `%2C`, `=` as `%3D`, `&` \
                       as `%26`, `%` as `%25`";

fn problem<T>(message: &'static str, hint: &'static str) -> Result<T, MysqlAddressProblem> {
    Err(MysqlAddressProblem { message, hint })
}

impl MysqlAddressProblem {
    /// What to do about it.
    pub fn hint(&self) -> String {
        self.hint.to_owned()
    }
}

/// `db1:3306`
impl fmt::Display for MysqlNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port.unwrap_or(DEFAULT_PORT);
        if self.host.contains(':') { write!(f, "[{}]:{port}", self.host) } else { write!(f, "{}:{port}", self.host) }
    }
}

impl fmt::Display for MysqlAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, user, database, socket, defaults_file, tls, connect_timeout_s } = self;
        f.write_str("mysql://")?;
        if let Some(user) = user {
            write!(f, "{}@", utf8_percent_encode(user, ENCODED_NAME))?;
        }
        for (index, MysqlNode { host, port }) in nodes.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            if host.contains(':') {
                write!(f, "[{host}]")?;
            } else {
                write!(f, "{}", utf8_percent_encode(host, ENCODED_NAME))?;
            }
            if let Some(port) = port {
                write!(f, ":{port}")?;
            }
        }
        if let Some(database) = database {
            write!(f, "/{}", utf8_percent_encode(database, ENCODED_NAME))?;
        }
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let values = [
            tls.mode.map(|mode| mode.name().to_owned()),
            path(&tls.ca),
            path(&tls.certificate),
            path(&tls.key),
            path(socket),
            path(defaults_file),
            connect_timeout_s.map(|seconds| seconds.to_string()),
        ];
        let given = PARAMETERS.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
        for (index, (name, value)) in given.enumerate() {
            let before = if index == 0 { '?' } else { '&' };
            write!(f, "{before}{name}={}", utf8_percent_encode(&value, ENCODED))?;
        }
        Ok(())
    }
}

impl FromStr for MysqlAddress {
    type Err = MysqlAddressProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(rest) = text.strip_prefix("mysql://") else {
            return problem("the address of a MySQL or MariaDB server begins with `mysql://`", FORM);
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, place) = place.rsplit_once('@').unwrap_or(("", place));
        if login.contains(':') {
            return problem(
                "the address holds a password, which everybody sees in the list of processes",
                "write `mysql://USER@HOST/DATABASE` and give the password in MYSQL_PWD or in `~/.my.cnf`",
            );
        }
        if login.contains(['@', '/']) {
            return problem("the address holds an `@` that does not stand before its hosts", ESCAPES);
        }
        let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
        if database.contains('/') {
            return problem("the name of the database in the address holds a `/`", ESCAPES);
        }
        let nodes =
            if hosts.is_empty() { Vec::new() } else { hosts.split(',').map(node).collect::<Result<Vec<_>, _>>()? };
        let mut address = Self { nodes, user: decoded(login)?, database: decoded(database)?, ..Self::default() };
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return problem("what follows the `?` of the address is not NAME=VALUE", ESCAPES);
            };
            if seen.contains(&name) {
                return problem("the address names a parameter twice", "name it once");
            }
            seen.push(name);
            address.set(name, decoded(value)?)?;
        }
        if address.socket.is_some() && !address.nodes.is_empty() {
            return problem("the address names a host and a socket", "name one of the two");
        }
        Ok(address)
    }
}

impl MysqlAddress {
    fn set(&mut self, name: &str, value: Option<String>) -> Result<(), MysqlAddressProblem> {
        let path = || value.as_ref().map(PathBuf::from);
        match name {
            "ssl-mode" => {
                let word = value.unwrap_or_default().to_ascii_lowercase().replace('-', "_");
                self.tls.mode = TlsMode::ALL.into_iter().find(|mode| mode.name() == word);
                if self.tls.mode.is_none() {
                    return problem(
                        "the value of `ssl-mode` in the address is none of its modes",
                        "they are disabled, preferred, required, verify_ca and verify_identity",
                    );
                }
            }
            "ssl-ca" => self.tls.ca = path(),
            "ssl-cert" => self.tls.certificate = path(),
            "ssl-key" => self.tls.key = path(),
            "socket" => self.socket = path(),
            "defaults-file" => self.defaults_file = path(),
            "connect-timeout" => {
                let seconds = value.and_then(|value| value.parse::<u32>().ok()).filter(|seconds| *seconds > 0);
                if seconds.is_none() {
                    return problem(
                        "the value of `connect-timeout` in the address is not a number of seconds",
                        "write seconds, such as `connect-timeout=10`",
                    );
                }
                self.connect_timeout_s = seconds;
            }
            _ => {
                return problem(
                    "the address has an unknown parameter",
                    "the parameters are ssl-mode, ssl-ca, ssl-cert, ssl-key, socket, defaults-file and connect-timeout; a \
                     password stands in MYSQL_PWD or in `~/.my.cnf`",
                );
            }
        }
        Ok(())
    }
}

/// `HOST`, `HOST:PORT` or `[IPv6]:PORT`.
fn node(text: &str) -> Result<MysqlNode, MysqlAddressProblem> {
    let (host, after) = match text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, after)) => (host, after),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let Some(host) = decoded(host)?.filter(|host| !host.contains(['[', ']', ','])) else {
        return problem(
            "a host in the address is empty, or none",
            "write an IPv6 address in brackets, as in `mysql://USER@[::1]:3306/DATABASE`",
        );
    };
    let port = match after.strip_prefix(':') {
        None if after.is_empty() => None,
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok().filter(|port| *port > 0)
        }
        _ => None,
    };
    if port.is_none() && !after.is_empty() {
        return problem("a port in the address is not a number from 1 to 65535", FORM);
    }
    Ok(MysqlNode { host, port })
}

/// What a part of an address stands for; an empty one counts as none.
fn decoded(text: &str) -> Result<Option<String>, MysqlAddressProblem> {
    let bytes = text.as_bytes();
    let is_encoded =
        |at: usize| bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    if (0..bytes.len()).any(|at| bytes[at] == b'%' && !is_encoded(at)) {
        return problem("the address holds a `%` that two hexadecimal digits do not follow", ESCAPES);
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(text) if !text.chars().any(char::is_control) => Ok(Some(text.into_owned()).filter(|text| !text.is_empty())),
        _ => problem("a part of the address is not printable text", ESCAPES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> MysqlAddress {
        text.parse().unwrap()
    }

    #[test]
    fn reads_hosts_ports_and_parameters() {
        let address =
            parsed("mysql://bench@db1,[::1]:3307/slob?ssl-mode=VERIFY-CA&ssl-ca=/etc/ca.pem&connect-timeout=3");
        let node = |host: &str, port| MysqlNode { host: host.to_owned(), port };
        assert_eq!(address.nodes, [node("db1", None), node("::1", Some(3307))]);
        assert_eq!((address.user.as_deref(), address.database.as_deref()), (Some("bench"), Some("slob")));
        assert_eq!((address.tls.mode, address.connect_timeout_s), (Some(TlsMode::VerifyCa), Some(3)));
        assert_eq!(address.tls.ca, Some("/etc/ca.pem".into()));
        assert_eq!(address.nodes[1].to_string(), "[::1]:3307");
    }

    #[test]
    fn a_socket_needs_no_host() {
        let address = parsed("mysql:///slob?socket=/run/mysqld/mysqld.sock&defaults-file=/root/bench.cnf");
        assert_eq!((address.nodes.len(), address.socket), (0, Some("/run/mysqld/mysqld.sock".into())));
        assert_eq!(parsed("mysql://").nodes, []);
    }

    #[test]
    fn a_password_is_refused_with_the_cure_and_never_repeated() {
        for text in ["mysql://u:tiger@h/d", "mysql://u:ti@ger@h/d", "mysql://h/d?password=tiger", "mysql://u:tiger/x@h"]
        {
            let error = text.parse::<MysqlAddress>().unwrap_err();
            assert!(error.hint().contains("MYSQL_PWD"), "{text}: {error}");
            assert!(!format!("{error} {} {error:?}", error.hint()).contains("tiger"));
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, message) in [
            ("mysql:h", "begins with `mysql://`"),
            ("mysql://h:0/d", "a port"),
            ("mysql://h:x/d", "a port"),
            ("mysql://a,,b/d", "a host"),
            ("mysql://::1/d", "a host"),
            ("mysql://h/a/b", "the name of the database"),
            ("mysql://h/d%2", "a `%`"),
            ("mysql://h/d?ssl-mode=maybe", "`ssl-mode`"),
            ("mysql://h/d?connect-timeout=0", "`connect-timeout`"),
            ("mysql://h/d?ssl-ca", "NAME=VALUE"),
            ("mysql://h/d?ssl-ca=a&ssl-ca=b", "twice"),
            ("mysql://h/d?socket=/s", "a host and a socket"),
            ("mysql://h/d?nonsense=1", "unknown parameter"),
        ] {
            let error = text.parse::<MysqlAddress>().unwrap_err();
            assert!(error.to_string().contains(message), "{text}: {error}");
            assert!(!error.hint().is_empty());
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(text in "mysql://([a-z%@]{0,8}@)?[a-z0-9.:,\\[\\]]{0,12}(/[ -~]{0,9})?(\\?[a-z=&/-]{0,20})?") {
            if let Ok(address) = text.parse::<MysqlAddress>() {
                prop_assert_eq!(address.to_string().parse::<MysqlAddress>().unwrap(), address);
            }
        }
    }
}
