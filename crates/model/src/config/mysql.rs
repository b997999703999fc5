//! The address of MySQL and MariaDB servers.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::utf8_percent_encode;

use super::{
    ENCODED_NAME, ESCAPES, ServerAddressProblem, ServerNode, connect_timeout, decoded, nodes, parameters, problem,
    write_parameters, written,
};

/// Port where nobody names one.
pub const DEFAULT_PORT: u16 = 3306;
/// What may follow the `?`.
const PARAMETERS: [&str; 8] =
    ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "server-public-key", "socket", "defaults-file", "connect-timeout"];
/// The value of `server-public-key` that trusts the key that the server sends.
const ACCEPT: &str = "accept";

/// Where one or several MySQL or MariaDB servers are, and as whom to connect. It never holds a password.
///
/// Printing it gives an address that can be read again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MysqlAddress {
    /// Servers in the order in which they were named; none where a socket of this machine is meant.
    pub nodes: Vec<ServerNode>,
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
    /// `server-public-key`: under which key a password may go where connections are not encrypted; `None` for none.
    pub server_key: Option<ServerKey>,
}

/// The public key of a server, under which a password is encrypted on a connection that is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerKey {
    /// The one that the server sends, which may be that of anybody on the way: `accept`.
    Accept,
    /// The one in a file, in PEM.
    File(PathBuf),
}

impl From<&str> for ServerKey {
    /// From the value of `server-public-key`, where `accept` is no file.
    fn from(text: &str) -> Self {
        if text == ACCEPT { Self::Accept } else { Self::File(PathBuf::from(text)) }
    }
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

    /// All of their names, in words.
    pub const NAMES: &'static str = "they are disabled, preferred, required, verify_ca and verify_identity";

    /// The one that MySQL's clients call so, in any case and with either dash.
    pub fn named(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase().replace('-', "_");
        Self::ALL.into_iter().find(|mode| mode.name() == word)
    }

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

const FORM: &str = "write `mysql://USER@HOST:PORT/DATABASE`";

impl fmt::Display for MysqlAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, user, database, socket, defaults_file, tls, connect_timeout_s } = self;
        f.write_str("mysql://")?;
        if let Some(user) = user {
            write!(f, "{}@", utf8_percent_encode(user, ENCODED_NAME))?;
        }
        f.write_str(&written(nodes))?;
        if let Some(database) = database {
            write!(f, "/{}", utf8_percent_encode(database, ENCODED_NAME))?;
        }
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let server_key = tls.server_key.as_ref().map(|key| match key {
            ServerKey::Accept => ACCEPT.to_owned(),
            ServerKey::File(path) => path.display().to_string(),
        });
        let values = [
            tls.mode.map(|mode| mode.name().to_owned()),
            path(&tls.ca),
            path(&tls.certificate),
            path(&tls.key),
            server_key,
            path(socket),
            path(defaults_file),
            connect_timeout_s.map(|seconds| seconds.to_string()),
        ];
        write_parameters(f, PARAMETERS.into_iter().zip(values))
    }
}

impl FromStr for MysqlAddress {
    type Err = ServerAddressProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(rest) = text.strip_prefix("mysql://") else {
            return problem("the address of a MySQL or MariaDB server begins with `mysql://`", FORM);
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, place) = place.rsplit_once('@').unwrap_or(("", place));
        if login.contains(':') {
            return problem(
                "the address holds a password, which every user of this machine sees in the list of processes",
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
        let mut address =
            Self { nodes: nodes(hosts)?, user: decoded(login)?, database: decoded(database)?, ..Self::default() };
        for (name, value) in parameters(query)? {
            address.set(name, value)?;
        }
        if address.socket.is_some() && !address.nodes.is_empty() {
            return problem("the address names a host and a socket", "name one of the two");
        }
        Ok(address)
    }
}

impl MysqlAddress {
    fn set(&mut self, name: &str, value: Option<String>) -> Result<(), ServerAddressProblem> {
        let path = || value.as_ref().map(PathBuf::from);
        match name {
            "ssl-mode" => {
                self.tls.mode = TlsMode::named(&value.unwrap_or_default());
                if self.tls.mode.is_none() {
                    return problem("the value of `ssl-mode` in the address is none of its modes", TlsMode::NAMES);
                }
            }
            "ssl-ca" => self.tls.ca = path(),
            "ssl-cert" => self.tls.certificate = path(),
            "ssl-key" => self.tls.key = path(),
            "server-public-key" => self.tls.server_key = value.as_deref().map(ServerKey::from),
            "socket" => self.socket = path(),
            "defaults-file" => self.defaults_file = path(),
            "connect-timeout" => self.connect_timeout_s = connect_timeout(value)?,
            _ => {
                return problem(
                    "the address has an unknown parameter",
                    "the parameters are ssl-mode, ssl-ca, ssl-cert, ssl-key, server-public-key, socket, defaults-file and \
                     connect-timeout; a password stands in MYSQL_PWD or in `~/.my.cnf`",
                );
            }
        }
        Ok(())
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
        let node = |host: &str, port| ServerNode { host: host.to_owned(), port };
        assert_eq!(address.nodes, [node("db1", None), node("::1", Some(3307))]);
        assert_eq!((address.user.as_deref(), address.database.as_deref()), (Some("bench"), Some("slob")));
        assert_eq!((address.tls.mode, address.connect_timeout_s), (Some(TlsMode::VerifyCa), Some(3)));
        assert_eq!(address.tls.ca, Some("/etc/ca.pem".into()));
        assert_eq!(address.nodes[1].shown(DEFAULT_PORT), "[::1]:3307");
    }

    #[test]
    fn a_servers_key_is_a_file_or_accepted() {
        let key = |text: &str| parsed(text).tls.server_key;
        assert_eq!(key("mysql://h/d"), None);
        assert_eq!(key("mysql://h/d?server-public-key=accept"), Some(ServerKey::Accept));
        let file = "mysql://h/d?server-public-key=./accept";
        assert_eq!(key(file), Some(ServerKey::File("./accept".into())));
        assert_eq!(parsed(file).to_string(), file);
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
