//! The address of PostgreSQL servers: libpq's connection URIs.

mod parse;

use std::fmt;
use std::path::PathBuf;

use percent_encoding::utf8_percent_encode;

use super::{ENCODED_BRACKETED, ENCODED_NAME, write_parameters};

pub use parse::AddressProblem;

/// Port where nobody names one.
pub const DEFAULT_PORT: u16 = 5432;

/// Where one or several PostgreSQL servers are, and as whom to connect. It never holds a password.
///
/// Printing it gives an address that can be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresAddress {
    /// Servers in the order in which they were named; at least one.
    pub nodes: Vec<PostgresNode>,
    /// Role; that of the operating system where none is named.
    pub user: Option<String>,
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

/// The address as it is written on the command line.
impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, user, database, tls, connect_timeout_s } = self;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> PostgresAddress {
        text.parse().unwrap_or_else(|problem| panic!("{text}: {problem}"))
    }

    fn node(host: &str, port: Option<u16>) -> PostgresNode {
        PostgresNode { host: host.to_owned(), port }
    }

    #[test]
    fn all_parts_are_read_and_decoded() {
        let address = read(
            "postgresql://be%6Ech@db1:5433/my%20db?sslmode=verify-full&sslrootcert=/etc/ca.pem&sslcert=c&sslkey=k\
         &connect_timeout=7",
        );
        assert_eq!(address.nodes, [node("db1", Some(5433))]);
        assert_eq!((address.user.as_deref(), address.database.as_deref()), (Some("bench"), Some("my db")));
        assert_eq!(
            address.tls,
            TlsOptions {
                mode: Some(TlsMode::VerifyFull),
                root_certificates: Some(RootCertificates::File("/etc/ca.pem".into())),
                certificate: Some("c".into()),
                key: Some("k".into()),
            }
        );
        assert_eq!(address.connect_timeout_s, Some(7));
    }

    #[test]
    fn what_is_not_named_stays_open() {
        for text in ["postgres://", "postgres:///", "postgresql://?", "postgres:///?connect_timeout=0&user=&password="]
        {
            let address = read(text);
            assert_eq!(address.nodes, [node("", None)], "{text}");
            assert_eq!((address.user, address.database), (None, None), "{text}");
            assert_eq!((address.tls, address.connect_timeout_s), (TlsOptions::default(), None), "{text}");
        }
    }

    #[test]
    fn hosts_are_named_in_all_of_libpqs_ways() {
        for (text, nodes) in [
            ("postgres://a:1,b,c:3/d", vec![node("a", Some(1)), node("b", None), node("c", Some(3))]),
            ("postgres://[::1]/d", vec![node("::1", None)]),
            ("postgres://u@[fe80::1%25eth0]:7,h", vec![node("fe80::1%eth0", Some(7)), node("h", None)]),
            ("postgres://%2Frun%2Fpostgresql/d", vec![node("/run/postgresql", None)]),
            ("postgres:///d?host=/run/postgresql&port=6000", vec![node("/run/postgresql", Some(6000))]),
            ("postgres://:6000/d?host=::1", vec![node("::1", Some(6000))]),
            ("postgres:///?host=a,b&port=1,2", vec![node("a", Some(1)), node("b", Some(2))]),
            ("postgres://a,b/?port=9", vec![node("a", Some(9)), node("b", Some(9))]),
        ] {
            assert_eq!(read(text).nodes, nodes, "{text}");
        }
    }

    #[test]
    fn a_password_is_refused_with_the_cure_wherever_libpq_reads_it() {
        for text in [
            "postgres://u:Tiger7@h/d",
            "postgresql://u:Tiger7?x=1@h/d",
            "postgres://u:a:Tiger7@h/d",
            "postgres://h/d?user=u&password=Tiger7",
            "postgres://h/d?password=%0ATiger7",
        ] {
            let problem = text.parse::<PostgresAddress>().unwrap_err();
            assert_eq!(problem, AddressProblem::Password, "{text}");
            let hint = crate::hint(&problem).unwrap();
            assert!(hint.contains("PGPASSWORD") && hint.contains("~/.pgpass"), "{hint}");
        }
        assert_eq!(read("postgres://u:@h/d").user.as_deref(), Some("u"), "an empty password is none");
    }

    /// Each of them holds `Tiger7` where a password may have got to.
    const WRONG: [(&str, AddressProblem); 24] = [
        ("postgres:u:Tiger7@h", AddressProblem::NotAnAddress),
        ("postgres:/u:Tiger7@h", AddressProblem::NotAnAddress),
        ("postgres://u:pa/Tiger7@h/d", AddressProblem::StrayAt),
        ("postgres://u:5432/Tiger7@h/d", AddressProblem::StrayAt),
        ("postgres://u:p@Tiger7@h/d", AddressProblem::Password),
        ("postgres://h/d?password=Tiger7@x", AddressProblem::StrayAt),
        ("postgres://h?password=Tiger7@x", AddressProblem::StrayAt),
        ("postgres://u:Tiger7", AddressProblem::Port),
        ("postgres://u:Tiger7/d", AddressProblem::Port),
        ("postgres://u@h:Tiger7/d", AddressProblem::Port),
        ("postgres://u@h:0Tiger7", AddressProblem::Port),
        ("postgres://Tiger7@h:+5", AddressProblem::Port),
        ("postgres://Tiger7@h:65536", AddressProblem::Port),
        ("postgres://Tiger7%4@h", AddressProblem::Percent { part: "user" }),
        ("postgres://Tiger7%FF@h", AddressProblem::NotText { part: "user" }),
        ("postgres://Tiger7%00@h", AddressProblem::NotText { part: "user" }),
        ("postgres://Tiger7@::1/d", AddressProblem::Brackets),
        ("postgres://Tiger7@[::1", AddressProblem::Brackets),
        ("postgres://u@h/?Tiger7", AddressProblem::Parameter),
        ("postgres://u@h/?password=Tiger7=", AddressProblem::Parameter),
        ("postgres://u@h/?Tiger7=1", AddressProblem::UnknownParameter { name: None }),
        ("postgres://Tiger7@h/?user=Tiger7", AddressProblem::Twice { name: "user" }),
        ("postgres://h/?sslmode=Tiger7", AddressProblem::Value { name: "sslmode", accepted: "one of its modes" }),
        (
            "postgres://h/?connect_timeout=Tiger7",
            AddressProblem::Value { name: "connect_timeout", accepted: "a whole number of seconds" },
        ),
    ];

    #[test]
    fn what_is_wrong_is_reported_without_repeating_what_may_be_a_password() {
        for (text, problem) in WRONG {
            let error = text.parse::<PostgresAddress>().unwrap_err();
            assert_eq!(error, problem, "{text}");
            assert!(!format!("{error} {error:?} {:?}", crate::hint(&error)).contains("Tiger7"), "{error:?}");
        }
    }

    #[test]
    fn hosts_and_ports_that_do_not_fit_are_refused() {
        for (text, problem) in [
            ("postgres://a/?host=b", AddressProblem::Twice { name: "host" }),
            ("postgres://a:1/?port=2", AddressProblem::Twice { name: "port" }),
            ("postgres://a,b/?port=1,2,3", AddressProblem::PortCount { hosts: 2, ports: 3 }),
            ("postgres://a%2Cb/", AddressProblem::Comma),
            ("postgres://[]/", AddressProblem::Brackets),
            ("postgres://h/?sslmode=require&sslmode=disable", AddressProblem::Twice { name: "sslmode" }),
        ] {
            assert_eq!(text.parse::<PostgresAddress>().unwrap_err(), problem, "{text}");
        }
    }

    #[test]
    fn an_unknown_parameter_is_named_with_those_that_are_known() {
        let problem = "postgres://h/?target_session_attrs=any".parse::<PostgresAddress>().unwrap_err();
        assert_eq!(problem.to_string(), "the address has the unknown parameter `target_session_attrs`");
        assert_eq!(
            crate::hint(&problem).unwrap(),
            "the parameters are host, port, user, dbname, sslmode, sslrootcert, sslcert, sslkey, connect_timeout"
        );
    }

    #[test]
    fn an_address_is_printed_in_its_shortest_form() {
        for (text, printed) in [
            ("postgres://db1/?password=&user=bench", "postgres://bench@db1"),
            ("postgres:///d?host=/tmp&sslrootcert=system", "postgres://%2Ftmp/d?sslrootcert=system"),
            ("postgres://[::1]:1,b", "postgres://[::1]:1,b"),
        ] {
            assert_eq!(read(text).to_string(), printed);
        }
    }

    fn addresses() -> impl Strategy<Value = PostgresAddress> {
        let word = || proptest::option::of("[^\\pC]{1,12}");
        let node = ("[^\\pC,]{0,12}", proptest::option::of(1..=u16::MAX));
        let nodes = proptest::collection::vec(node.prop_map(|(host, port)| PostgresNode { host, port }), 1..4);
        let mode = proptest::option::of(proptest::sample::select(TlsMode::ALL.to_vec()));
        let timeout = proptest::option::of(1..=i32::MAX as u32);
        (nodes, word(), word(), mode, word(), word(), timeout).prop_map(
            |(nodes, user, database, mode, roots, key, connect_timeout_s)| PostgresAddress {
                nodes,
                user,
                database,
                tls: TlsOptions {
                    mode,
                    root_certificates: roots.map(|roots| roots.as_str().into()),
                    certificate: None,
                    key: key.map(PathBuf::from),
                },
                connect_timeout_s,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(address in addresses()) {
            prop_assert_eq!(address.to_string().parse::<PostgresAddress>().unwrap(), address);
        }

        #[test]
        fn no_text_is_read_with_a_panic_or_refused_with_its_password(text in "postgres(ql)?://[ -~]{0,8}Tiger7[ -~]{0,12}") {
            if let Err(problem) = text.parse::<PostgresAddress>() {
                let shown = format!("{} {:?} {:?}", problem, problem, crate::hint(&problem));
                prop_assert!(!shown.contains("Tiger7"));
            }
        }
    }
}
