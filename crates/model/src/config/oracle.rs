//! The address of Oracle databases.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::utf8_percent_encode;

use super::{
    ENCODED_NAME, ESCAPES, ServerAddressProblem, ServerNode, connect_timeout, decoded, nodes, parameters, problem,
    write_parameters, written,
};

/// Port of a listener where nobody names one.
pub const DEFAULT_PORT: u16 = 1521;
/// Most services over which sessions are spread.
const MAX_SERVICES: u32 = 1000;
/// What would end a name in a connect descriptor.
const NOT_IN_NAMES: [char; 8] = ['/', '(', ')', '=', '"', '\'', '\\', ' '];
/// What may follow the `?`.
const PARAMETERS: [&str; 9] =
    ["protocol", "server", "instance", "services", "wallet", "password-file", "role", "connect-timeout", "driver"];

/// Where one or several Oracle databases are, and as whom to connect. It never holds a password.
///
/// Printing it gives an address that can be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OracleAddress {
    /// Where they are.
    pub place: OraclePlace,
    /// User; one has to be named, since the driver has no other way to log in.
    pub user: String,
    /// `password-file`: a file whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// `wallet`: the directory of `ewallet.pem`, for TCPS.
    pub wallet: Option<PathBuf>,
    /// `role`: to log in with more rights.
    pub role: Option<OracleRole>,
    /// `services`: sessions go in turn to so many services, whose names end with their number, as SLOB's do. `None` for the one
    /// service that is named.
    pub services: Option<u32>,
    /// Longest wait for a connection, in seconds, at least 1; `None` for the usual one.
    pub connect_timeout_s: Option<u32>,
    /// `driver`: what speaks to the database.
    pub driver: OracleDriver,
}

/// What speaks to an Oracle database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OracleDriver {
    /// `thin`: the driver in Rust, which needs nothing installed.
    #[default]
    Thin,
    /// `oci`: an installed Oracle client, which has Oracle's native network encryption and old password verifiers, and takes wallets
    /// from its own `sqlnet.ora`.
    Oci,
}

/// Where Oracle databases are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OraclePlace {
    /// Listeners, and the service that they lead to: what Oracle calls EZConnect.
    Listeners {
        /// In the order in which they were named; at least one.
        nodes: Vec<ServerNode>,
        /// Name of the service, such as that of a pluggable database.
        service: String,
        /// `protocol=tcps`: encrypted.
        tls: bool,
        /// `server`: `dedicated`, `shared` or `pooled`; the listener's choice where nobody says.
        server: Option<String>,
        /// `instance`: one instance of the service.
        instance: Option<String>,
    },
    /// A name of `tnsnames.ora`, in the directory that `TNS_ADMIN` names.
    Alias(String),
    /// A whole connect descriptor: `(DESCRIPTION=...)`.
    Descriptor(String),
}

/// What a user may log in as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OracleRole {
    /// `SYSDBA`, which only calibration needs.
    Sysdba,
    /// `SYSOPER`.
    Sysoper,
}

impl OracleRole {
    /// As it stands in an address.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sysdba => "sysdba",
            Self::Sysoper => "sysoper",
        }
    }
}

const FORM: &str = "write `oracle://USER@HOST:PORT/SERVICE`, or `oracle://USER@ALIAS` for a name of tnsnames.ora";
const PASSWORD: &str = "give the password in the environment (PLIMSOLL_ORACLE_PASSWORD), in a file \
    (`?password-file=PATH`), or at the prompt";

impl fmt::Display for OracleAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, user, password_file, wallet, role, services, connect_timeout_s, driver } = self;
        write!(f, "oracle://{}@", utf8_percent_encode(user, ENCODED_NAME))?;
        let (mut protocol, mut mode, mut one_instance) = (None, None, None);
        match place {
            OraclePlace::Alias(name) => write!(f, "{}", utf8_percent_encode(name, ENCODED_NAME))?,
            OraclePlace::Descriptor(text) => f.write_str(text)?,
            OraclePlace::Listeners { nodes, service, tls, server, instance } => {
                write!(f, "{}/{}", written(nodes), utf8_percent_encode(service, ENCODED_NAME))?;
                protocol = tls.then(|| "tcps".to_owned());
                (mode, one_instance) = (server.clone(), instance.clone());
            }
        }
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let values = [
            protocol,
            mode,
            one_instance,
            services.map(|count| count.to_string()),
            path(wallet),
            path(password_file),
            role.map(|role| role.name().to_owned()),
            connect_timeout_s.map(|seconds| seconds.to_string()),
            (*driver == OracleDriver::Oci).then(|| "oci".to_owned()),
        ];
        write_parameters(f, PARAMETERS.into_iter().zip(values))
    }
}

impl FromStr for OracleAddress {
    type Err = ServerAddressProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(rest) = text.strip_prefix("oracle://") else {
            return problem("the address of an Oracle database begins with `oracle://`", FORM);
        };
        // A descriptor has signs of its own, and may hold any of those that an address is cut at.
        let (before, descriptor) = rest.split_once("@(").map_or((rest, None), |(login, text)| (login, Some(text)));
        let (login, place, query) = match descriptor {
            Some(_) => (before, &rest[before.len() + 1..], ""),
            None => {
                let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
                let Some((login, place)) = place.rsplit_once('@') else {
                    return problem("the address names no user", FORM);
                };
                (login, place, query)
            }
        };
        if login.contains([':', '/']) {
            return problem(
                "the address holds a password, which every user of this machine can see in the list of \
                processes",
                PASSWORD,
            );
        }
        if login.contains('@') {
            return problem("the address holds an `@` that does not stand before its hosts", ESCAPES);
        }
        let Some(user) = decoded(login)? else { return problem("the address names no user", FORM) };
        let (place, query) = match descriptor {
            None => (Self::place(place)?, query),
            Some(_) => {
                let end = place.rfind(')').map_or(place.len(), |end| end + 1);
                let (text, after) = place.split_at(end);
                let query = after.strip_prefix('?').or_else(|| after.is_empty().then_some(""));
                let is_closed = text.matches('(').count() == text.matches(')').count();
                let Some(query) = query.filter(|_| is_closed) else {
                    return problem("the connect descriptor in the address has brackets that do not close", FORM);
                };
                if text.to_ascii_uppercase().contains("PASSWORD") {
                    return problem("the connect descriptor in the address holds a password", PASSWORD);
                }
                (OraclePlace::Descriptor(text.to_owned()), query)
            }
        };
        let mut address = Self {
            place,
            user,
            password_file: None,
            wallet: None,
            role: None,
            services: None,
            connect_timeout_s: None,
            driver: OracleDriver::default(),
        };
        for (name, value) in parameters(query)? {
            address.set(name, value)?;
        }
        if address.driver == OracleDriver::Oci && address.wallet.is_some() {
            return problem(
                "the address names a wallet, and an installed client takes wallets from its own sqlnet.ora",
                "leave out `wallet`, and name the directory there: WALLET_LOCATION in sqlnet.ora, which TNS_ADMIN leads to",
            );
        }
        Ok(address)
    }
}

impl OracleAddress {
    fn place(text: &str) -> Result<OraclePlace, ServerAddressProblem> {
        let Some((hosts, service)) = text.split_once('/') else {
            return match decoded(text)? {
                Some(_) if text.contains([':', ',']) => problem("the address names no service", FORM),
                Some(name) => Ok(OraclePlace::Alias(name)),
                None => problem("the address names neither a host nor an alias", FORM),
            };
        };
        let nodes = nodes(hosts)?;
        if nodes.iter().any(|node| node.host.contains(NOT_IN_NAMES)) {
            return problem("a host in the address cannot be one", FORM);
        }
        let service = decoded(service)?.filter(|service| !service.contains(NOT_IN_NAMES));
        match (nodes.is_empty(), service) {
            (true, _) => problem("the address names no host", FORM),
            (_, None) => problem(
                "the address names no service, or one that cannot be",
                "write `oracle://USER@HOST:PORT/SERVICE`; the instance and the kind of server are parameters: `?instance=NAME`, \
                 `?server=dedicated`",
            ),
            (false, Some(service)) => {
                Ok(OraclePlace::Listeners { nodes, service, tls: false, server: None, instance: None })
            }
        }
    }

    fn set(&mut self, name: &str, value: Option<String>) -> Result<(), ServerAddressProblem> {
        let path = || value.as_ref().map(PathBuf::from);
        let of_listeners = ["protocol", "server", "instance", "services"];
        if of_listeners.contains(&name) && !matches!(self.place, OraclePlace::Listeners { .. }) {
            return problem(
                "the address has a parameter that belongs into the entry of tnsnames.ora or the descriptor",
                "protocol, server, instance and services go with `HOST:PORT/SERVICE` only",
            );
        }
        match (name, &mut self.place) {
            ("protocol", OraclePlace::Listeners { tls, .. }) => match value.as_deref() {
                Some("tcps") => *tls = true,
                Some("tcp") => *tls = false,
                _ => return problem("the value of `protocol` in the address is unknown", "it is tcp or tcps"),
            },
            ("server", OraclePlace::Listeners { server, .. }) => {
                *server = value.filter(|value| ["dedicated", "shared", "pooled"].contains(&value.as_str()));
                if server.is_none() {
                    return problem(
                        "the value of `server` in the address is unknown",
                        "it is dedicated, shared or pooled",
                    );
                }
            }
            ("instance", OraclePlace::Listeners { instance, .. }) => {
                *instance = value.filter(|value| !value.contains(NOT_IN_NAMES));
                if instance.is_none() {
                    return problem(
                        "the value of `instance` in the address is not a name",
                        "write the instance's name",
                    );
                }
            }
            ("services", _) => {
                let count = value.and_then(|value| value.parse().ok());
                self.services = count.filter(|count| (1..=MAX_SERVICES).contains(count));
                if self.services.is_none() {
                    return problem(
                        "the value of `services` in the address is not a number from 1 to 1000",
                        "write how many numbered services there are: with `services=2`, sessions go to SERVICE1 and SERVICE2 in turn",
                    );
                }
            }
            ("wallet", _) => self.wallet = path(),
            ("password-file", _) => self.password_file = path(),
            ("role", _) => {
                let word = value.unwrap_or_default().to_ascii_lowercase();
                self.role = [OracleRole::Sysdba, OracleRole::Sysoper].into_iter().find(|role| role.name() == word);
                if self.role.is_none() {
                    return problem("the value of `role` in the address is unknown", "it is sysdba or sysoper");
                }
            }
            ("connect-timeout", _) => self.connect_timeout_s = connect_timeout(value)?,
            ("driver", _) => {
                self.driver = match value.as_deref() {
                    Some("thin") => OracleDriver::Thin,
                    Some("oci") => OracleDriver::Oci,
                    _ => {
                        return problem(
                            "the value of `driver` in the address is unknown",
                            "it is thin, or oci for an installed Oracle client",
                        );
                    }
                };
            }
            _ => {
                return problem(
                    "the address has an unknown parameter",
                    "the parameters are protocol, server, instance, services, wallet, password-file, role, connect-timeout and \
                     driver; a password stands in PLIMSOLL_ORACLE_PASSWORD or in a file",
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

    fn parsed(text: &str) -> OracleAddress {
        text.parse().unwrap()
    }

    #[test]
    fn reads_listeners_aliases_and_descriptors() {
        let address = parsed(
            "oracle://slob@scan:1522,[::1]/orcl.example?protocol=tcps&wallet=/w&services=2&role=SYSDBA&connect-timeout=3",
        );
        let OraclePlace::Listeners { nodes, service, tls, .. } = &address.place else { panic!("{address:?}") };
        assert_eq!((nodes.len(), service.as_str(), *tls), (2, "orcl.example", true));
        assert_eq!((address.user.as_str(), address.services), ("slob", Some(2)));
        assert_eq!((address.role, address.connect_timeout_s), (Some(OracleRole::Sysdba), Some(3)));
        assert_eq!(parsed("oracle://slob@PROD").place, OraclePlace::Alias("PROD".to_owned()));
        let descriptor = "(DESCRIPTION=(ADDRESS=(PROTOCOL=tcp)(HOST=a/b)(PORT=1))(CONNECT_DATA=(SERVICE_NAME=x)))";
        let address = parsed(&format!("oracle://slob@{descriptor}?password-file=/p"));
        assert_eq!(address.place, OraclePlace::Descriptor(descriptor.to_owned()));
        assert_eq!(address.password_file, Some("/p".into()));
        assert_eq!(address.driver, OracleDriver::Thin);
        let address = parsed("oracle://slob@PROD?driver=oci");
        assert_eq!(
            (address.driver, address.to_string().as_str()),
            (OracleDriver::Oci, "oracle://slob@PROD?driver=oci")
        );
    }

    #[test]
    fn a_password_is_refused_with_the_cure_and_never_repeated() {
        for text in [
            "oracle://u:tiger@h/d",
            "oracle://u/tiger@h/d",
            "oracle://u:ti@ger@h/d",
            "oracle://u@h/d?password=tiger",
            "oracle://u@(DESCRIPTION=(SECURITY=(PASSWORD=tiger)))",
            "oracle://u/tiger@(DESCRIPTION=(HOST=h))",
        ] {
            let error = text.parse::<OracleAddress>().unwrap_err();
            assert!(error.hint().contains("PLIMSOLL_ORACLE_PASSWORD"), "{text}: {error}");
            assert!(!format!("{error} {} {error:?}", error.hint()).contains("tiger"));
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, message) in [
            ("oracle:h", "begins with `oracle://`"),
            ("oracle://h/d", "no user"),
            ("oracle://@h/d", "no user"),
            ("oracle://u@", "neither a host nor an alias"),
            ("oracle://u@h:1521", "no service"),
            ("oracle://u@/d", "no host"),
            ("oracle://u@h/", "no service"),
            ("oracle://u@h/d/dedicated", "no service, or one"),
            ("oracle://u@h%28/d", "a host"),
            ("oracle://u@h/d?instance=a)b", "`instance`"),
            ("oracle://u@h:0/d", "a port"),
            ("oracle://u@h/d?server=own", "`server`"),
            ("oracle://u@h/d?services=0", "a number from 1 to 1000"),
            ("oracle://u@h/d?services=99999999", "a number from 1 to 1000"),
            ("oracle://u@PROD?protocol=tcps", "belongs into the entry"),
            ("oracle://u@h/d?role=dba", "`role`"),
            ("oracle://u@(DESCRIPTION=(HOST=h)", "do not close"),
            ("oracle://u@h/d?driver=jdbc", "`driver`"),
            ("oracle://u@h/d?driver=oci&wallet=/w", "sqlnet.ora"),
            ("oracle://u@h/d?nonsense=1", "unknown parameter"),
        ] {
            let error = text.parse::<OracleAddress>().unwrap_err();
            assert!(error.to_string().contains(message), "{text}: {error}");
            assert!(!error.hint().is_empty());
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(
            text in "oracle://[a-z%]{1,8}@[a-z0-9.:,()=\\[\\]]{0,12}(/[ -~]{0,9})?(\\?[a-z=&/-]{0,20})?"
        ) {
            if let Ok(address) = text.parse::<OracleAddress>() {
                prop_assert_eq!(address.to_string().parse::<OracleAddress>().unwrap(), address);
            }
        }
    }
}
