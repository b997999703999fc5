//! The address of a file on an NFS server.

use std::fmt;
use std::str::FromStr;

use percent_encoding::utf8_percent_encode;

use super::super::{
    ENCODED, ESCAPES, ServerAddressProblem, ServerNode, connect_timeout, decoded, nodes, problem, raw_parameters,
    write_raw_parameters, written,
};

/// Port where nobody names one.
pub const DEFAULT_PORT: u16 = 2049;
/// Connections of a thread to each path where nobody says.
pub const DEFAULT_CONNECTIONS: u32 = 1;
/// Most connections of a thread to each path.
pub const MAX_CONNECTIONS: u32 = 1024;
/// Calls in flight on a connection where nobody says: what the servers of large clouds take from one.
pub const DEFAULT_OUTSTANDING: u32 = 128;
/// Most calls in flight on a connection.
pub const MAX_OUTSTANDING: u32 = 4096;
/// Most paths to a server; Oracle's Direct NFS has as many.
pub const MAX_PATHS: usize = 4;
/// Seconds without any answer after which a connection counts as silent, where nobody says.
pub const DEFAULT_TIMEOUT_S: u32 = 10;
/// Most of these.
pub const MAX_TIMEOUT_S: u32 = 600;
/// Bytes of a path at most: more than servers take.
const MAX_PATH_BYTES: usize = 4096;
/// Bytes of one name in it at most, as in any file system.
const MAX_NAME_BYTES: usize = 255;

/// A version of NFS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NfsVersion {
    /// Version 3 (RFC 1813).
    #[default]
    V3,
    /// Version 4.1 (RFC 8881).
    V41,
}

impl NfsVersion {
    /// As it is written in an address.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V3 => "3",
            Self::V41 => "4.1",
        }
    }
}

/// What may follow the `?`.
const PARAMETERS: [&str; 9] =
    ["paths", "local", "connections", "outstanding", "version", "mountport", "export", "timeout", "connect-timeout"];
const FORM: &str = "write `nfs://SERVER/EXPORT/FILE`, with a port as `nfs://SERVER:PORT/EXPORT/FILE`";

/// A file on an NFS server. Printing it gives an address that can be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NfsAddress {
    /// The server as it was named; connections go there unless paths are given.
    pub server: ServerNode,
    /// From the server's root to the file, such as `/export/data/file`. It has no empty part, and none that is `.` or `..`.
    pub path: String,
    /// Addresses of the same server over several networks, at most [`MAX_PATHS`]; none where the server's own is the one.
    pub paths: Vec<ServerNode>,
    /// Our own address for each path, in their order; as many as paths (one where there are none), or none.
    pub local: Vec<ServerNode>,
    /// Connections of each thread to each path, from 1 to [`MAX_CONNECTIONS`]; `None` for [`DEFAULT_CONNECTIONS`].
    pub connections: Option<u32>,
    /// Calls in flight on a connection at most, from 1 to [`MAX_OUTSTANDING`]; `None` for [`DEFAULT_OUTSTANDING`].
    pub outstanding: Option<u32>,
    /// Which version is spoken.
    pub version: NfsVersion,
    /// Port of the server's mount service; asked of its port mapper where none is named. Version 4.1 has no such service.
    pub mount_port: Option<u16>,
    /// What is mounted, a beginning of `path`; found by trying where none is named. In version 4.1, the directory whose space and limits
    /// are asked.
    pub export: Option<String>,
    /// Seconds without any answer after which a connection counts as silent; `None` for [`DEFAULT_TIMEOUT_S`].
    pub timeout_s: Option<u32>,
    /// Longest wait for a connection, in seconds; `None` for the same as `timeout_s`.
    pub connect_timeout_s: Option<u32>,
}

impl NfsAddress {
    /// A file of a server, everything else as usual.
    pub(super) fn plain(server: ServerNode, path: String) -> Self {
        Self {
            server,
            path,
            paths: Vec::new(),
            local: Vec::new(),
            connections: None,
            outstanding: None,
            version: NfsVersion::V3,
            mount_port: None,
            export: None,
            timeout_s: None,
            connect_timeout_s: None,
        }
    }

    /// The addresses that connections go to, with our own for each where one was named. Never empty.
    pub fn routes(&self) -> impl Iterator<Item = (&ServerNode, Option<&ServerNode>)> {
        let paths = if self.paths.is_empty() { std::slice::from_ref(&self.server) } else { &self.paths };
        paths.iter().enumerate().map(|(number, path)| (path, self.local.get(number)))
    }

    /// Port of a path: its own, else that of the server.
    pub fn port_of(&self, path: &ServerNode) -> u16 {
        path.port.or(self.server.port).unwrap_or(DEFAULT_PORT)
    }

    /// Directory and name of the file.
    pub fn directory_and_name(&self) -> (&str, &str) {
        let (directory, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        (if directory.is_empty() { "/" } else { directory }, name)
    }

    /// The same server with another file: `name` in the directory of this one, or below this one where it is a directory.
    pub fn with_path(&self, path: &str) -> Result<Self, ServerAddressProblem> {
        Ok(Self { path: checked_path(path)?, ..self.clone() })
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ServerAddressProblem> {
        let number = |least: u32, most: u32| {
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            value.parse::<u32>().ok().filter(|number| digits && (least..=most).contains(number))
        };
        match name {
            "paths" => {
                self.paths = nodes(value)?;
                if self.paths.is_empty() || self.paths.len() > MAX_PATHS {
                    return problem(
                        "`paths` in the address names no path, or more than 4",
                        "write the server's addresses with commas between: `paths=10.0.1.9,10.0.2.9`",
                    );
                }
            }
            "local" => {
                self.local = nodes(value)?;
                if self.local.is_empty() || self.local.iter().any(|local| local.port.is_some()) {
                    return problem(
                        "`local` in the address is not a list of addresses of this machine",
                        "write one for each path, without ports: `local=10.0.1.5,10.0.2.5`",
                    );
                }
            }
            "connections" => match number(1, MAX_CONNECTIONS) {
                None => {
                    return problem(
                        "`connections` in the address is not a number from 1 to 1024",
                        "it is how many connections each thread has to each path, such as `connections=4`",
                    );
                }
                some => self.connections = some,
            },
            "outstanding" => match number(1, MAX_OUTSTANDING) {
                None => {
                    return problem(
                        "`outstanding` in the address is not a number from 1 to 4096",
                        "it is how many calls one connection may have in flight, such as `outstanding=64`",
                    );
                }
                some => self.outstanding = some,
            },
            "version" => match value {
                "3" => self.version = NfsVersion::V3,
                "4.1" => self.version = NfsVersion::V41,
                "4" | "4.0" | "4.2" => {
                    return problem(
                        "the address asks for a version 4 of NFS which this program does not speak",
                        "write `version=4.1`, which has sessions, or `version=3`",
                    );
                }
                _ => {
                    return problem(
                        "`version` in the address is not a version of NFS",
                        "write `version=3` or `version=4.1`",
                    );
                }
            },
            "mountport" => match number(1, u16::MAX.into()).and_then(|port| u16::try_from(port).ok()) {
                None => {
                    return problem(
                        "`mountport` in the address is not a number from 1 to 65535",
                        "it is the port of the server's mount service, such as `mountport=635`; leave it out to ask the \
                         server's port mapper",
                    );
                }
                some => self.mount_port = some,
            },
            "export" => match decoded(value)?.as_deref() {
                Some("/") => self.export = Some("/".to_owned()),
                Some(export) => self.export = Some(checked_path(export)?),
                None => {
                    return problem("`export` in the address names nothing", "write `export=/PATH`, or leave it out");
                }
            },
            "timeout" => match number(1, MAX_TIMEOUT_S) {
                None => {
                    return problem(
                        "`timeout` in the address is not a number of seconds from 1 to 600",
                        "it is how long a connection may be silent, such as `timeout=10`",
                    );
                }
                some => self.timeout_s = some,
            },
            "connect-timeout" => match connect_timeout(decoded(value)?)? {
                Some(seconds) if seconds <= MAX_TIMEOUT_S => self.connect_timeout_s = Some(seconds),
                _ => return problem("`connect-timeout` in the address is over 600 seconds", "write at most 600"),
            },
            _ => {
                return problem(
                    "the address has an unknown parameter",
                    "the parameters are paths, local, connections, outstanding, version, mountport, export, timeout and \
                     connect-timeout",
                );
            }
        }
        Ok(())
    }

    /// Whether parts that belong together do.
    pub(super) fn check(&self) -> Result<(), ServerAddressProblem> {
        if !self.local.is_empty() && self.local.len() != self.paths.len().max(1) {
            return problem(
                "the address has not as many `local` addresses as paths",
                "name one local address for each path, in the same order",
            );
        }
        let twice = |(number, path): (usize, &ServerNode)| {
            self.paths[..number]
                .iter()
                .enumerate()
                .any(|(earlier, other)| other == path && self.local.get(earlier) == self.local.get(number))
        };
        if self.paths.iter().enumerate().any(twice) {
            return problem(
                "the address names a path twice",
                "for more connections over one path write `connections=2`",
            );
        }
        if self.version == NfsVersion::V41 && self.mount_port.is_some() {
            return problem(
                "the address names a `mountport`, and version 4.1 of NFS has no mount service",
                "leave `mountport` out, or write `version=3`",
            );
        }
        match &self.export {
            Some(export) if !is_below(&self.path, export) => problem(
                "the file of the address is not below its `export`",
                "`export` is a beginning of the file's path: `nfs://SERVER/vol/data/file?export=/vol/data`",
            ),
            _ => Ok(()),
        }
    }
}

/// Whether `path` is below the directory `above`.
pub(super) fn is_below(path: &str, above: &str) -> bool {
    above == "/" || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

/// A path from the root to something in it.
pub(super) fn checked_path(path: &str) -> Result<String, ServerAddressProblem> {
    let Some(inner) = path.strip_prefix('/').filter(|inner| !inner.is_empty()) else {
        return problem("the address names no file on the server", FORM);
    };
    if path.len() > MAX_PATH_BYTES || inner.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
        return problem(
            "the path in the address is longer than servers take",
            "a name has at most 255 bytes, a path 4096",
        );
    }
    if inner.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return problem(
            "the path in the address has a part that is empty, `.` or `..`",
            "write the path from the server's root without them",
        );
    }
    Ok(path.to_owned())
}

impl fmt::Display for NfsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            server, path, paths, local, connections, outstanding, version, mount_port, export, timeout_s, ..
        } = self;
        write!(f, "nfs://{}{}", written(std::slice::from_ref(server)), utf8_percent_encode(path, ENCODED))?;
        let list = |nodes: &[ServerNode]| (!nodes.is_empty()).then(|| written(nodes));
        let number = |number: &Option<u32>| number.map(|number| number.to_string());
        let values = [
            list(paths),
            list(local),
            number(connections),
            number(outstanding),
            (*version != NfsVersion::default()).then(|| version.name().to_owned()),
            mount_port.map(|port| port.to_string()),
            export.as_ref().map(|export| utf8_percent_encode(export, ENCODED).to_string()),
            number(timeout_s),
            number(&self.connect_timeout_s),
        ];
        write_raw_parameters(f, PARAMETERS.into_iter().zip(values))
    }
}

impl FromStr for NfsAddress {
    type Err = ServerAddressProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(rest) = text.strip_prefix("nfs://") else {
            return problem("the address of a file on an NFS server begins with `nfs://`", FORM);
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let Some(at) = place.find('/') else {
            return problem("the address names no file on the server", FORM);
        };
        let (host, path) = place.split_at(at);
        if host.contains('@') {
            return problem(
                "the address of an NFS server names a user",
                "requests carry the user and the groups that run this program; leave the part before the `@` out",
            );
        }
        let mut servers = nodes(host)?;
        let (Some(server), None) = (servers.pop(), servers.pop()) else {
            return problem(
                "the address names no server, or several",
                "name one; several addresses of it go into `paths`: `nfs://filer/vol/file?paths=10.0.1.9,10.0.2.9`",
            );
        };
        let Some(path) = decoded(path)? else { return problem("the address names no file on the server", FORM) };
        // Whoever wrote `%2F` means a name with a slash in it, which no server has.
        if place.to_ascii_lowercase().contains("%2f") {
            return problem("a name in the address holds a `/`", ESCAPES);
        }
        let mut address = Self::plain(server, checked_path(&path)?);
        for (name, value) in raw_parameters(query)? {
            address.set(name, value)?;
        }
        address.check()?;
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> NfsAddress {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn node(host: &str, port: Option<u16>) -> ServerNode {
        ServerNode { host: host.to_owned(), port }
    }

    #[test]
    fn reads_paths_and_parameters() {
        let text = "nfs://filer1:12049/vol/ora/data%201?paths=10.0.1.9,[fd00::9]:2050&local=10.0.1.5,fd00::5\
                    &connections=4&outstanding=64&version=3&mountport=635&export=/vol/ora&timeout=5&connect-timeout=600";
        let error = text.parse::<NfsAddress>().unwrap_err();
        assert!(error.to_string().contains("a port"), "{error}");
        let address = parsed(&text.replace("fd00::5", "[fd00::5]"));
        assert_eq!((&address.server, address.path.as_str()), (&node("filer1", Some(12049)), "/vol/ora/data 1"));
        assert_eq!(address.directory_and_name(), ("/vol/ora", "data 1"));
        assert_eq!(address.paths, [node("10.0.1.9", None), node("fd00::9", Some(2050))]);
        assert_eq!(address.local[1], node("fd00::5", None));
        let ports: Vec<u16> = address.routes().map(|(path, _)| address.port_of(path)).collect();
        assert_eq!(ports, [12049, 2050]);
        assert_eq!((address.connections, address.outstanding, address.mount_port), (Some(4), Some(64), Some(635)));
        assert_eq!((address.timeout_s, address.connect_timeout_s), (Some(5), Some(600)));
        assert_eq!(parsed(&address.to_string()), address);
        assert!(address.to_string().contains("?paths=10.0.1.9,[fd00::9]:2050&local="), "{address}");
    }

    #[test]
    fn a_server_alone_is_its_own_only_path() {
        let address = parsed("nfs://filer/vol/file");
        let routes: Vec<_> = address.routes().collect();
        assert_eq!(routes, [(&node("filer", None), None)]);
        assert_eq!(address.port_of(routes[0].0), DEFAULT_PORT);
        assert_eq!((address.version, parsed("nfs://h/f?version=4.1").version), (NfsVersion::V3, NfsVersion::V41));
        assert_eq!(parsed("nfs://h/f?version=4.1").to_string(), "nfs://h/f?version=4.1");
        assert_eq!(parsed("nfs://h/f").directory_and_name(), ("/", "f"));
        assert_eq!(address.with_path("/vol/other").unwrap().to_string(), "nfs://filer/vol/other");
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, message) in [
            ("nfs:/h/f", "begins with `nfs://`"),
            ("nfs://h", "names no file"),
            ("nfs://h/", "names no file"),
            ("nfs:///f", "no server"),
            ("nfs://a,b/f", "or several"),
            ("nfs://u@h/f", "names a user"),
            ("nfs://h:0/f", "a port"),
            ("nfs://h/a//b", "`.` or `..`"),
            ("nfs://h/a/../b", "`.` or `..`"),
            ("nfs://h/a%2Fb", "holds a `/`"),
            ("nfs://h/a%0Ab", "not printable"),
            ("nfs://h/f?paths=", "names no path"),
            ("nfs://h/f?paths=a,b,c,d,e", "more than 4"),
            ("nfs://h/f?paths=a,a", "a path twice"),
            ("nfs://h/f?local=a,b", "as many `local`"),
            ("nfs://h/f?local=a:1", "`local`"),
            ("nfs://h/f?connections=0", "`connections`"),
            ("nfs://h/f?connections=+4", "`connections`"),
            ("nfs://h/f?connections=1025", "`connections`"),
            ("nfs://h/f?outstanding=x", "`outstanding`"),
            ("nfs://h/f?version=4", "does not speak"),
            ("nfs://h/f?version=4.2", "does not speak"),
            ("nfs://h/f?version=2", "not a version"),
            ("nfs://h/f?version=4.1&mountport=635", "no mount service"),
            ("nfs://h/f?mountport=70000", "`mountport`"),
            ("nfs://h/f?timeout=0", "`timeout`"),
            ("nfs://h/f?connect-timeout=601", "over 600"),
            ("nfs://h/f?export=/other", "not below its `export`"),
            ("nfs://h/f?export=/f", "not below its `export`"),
            ("nfs://h/f?connections=1&connections=1", "twice"),
            ("nfs://h/f?nonsense=1", "unknown parameter"),
        ] {
            let error = text.parse::<NfsAddress>().expect_err(text);
            assert!(error.to_string().contains(message), "{text}: {error}");
            assert!(!error.hint().is_empty());
        }
        let long = format!("nfs://h/{}", "n".repeat(256)).parse::<NfsAddress>().unwrap_err();
        assert!(long.to_string().contains("longer"), "{long}");
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(
            text in "nfs://[a-z0-9.:\\[\\]%]{1,12}(/[ -~]{1,9}){1,3}(\\?(paths|local|export)=[a-z0-9.,:/%\\[\\]]{1,20}(&[a-z]{4,11}=[0-9]{1,4})?)?",
        ) {
            if let Ok(address) = text.parse::<NfsAddress>() {
                prop_assert_eq!(address.to_string().parse::<NfsAddress>().unwrap(), address);
            }
        }

        #[test]
        fn any_valid_address_survives_being_printed(
            host in "[a-z%: ]{1,9}", names in prop::collection::vec("[^/\\p{Cc}]{1,12}", 1..4),
            port in prop::option::of(1..u16::MAX), connections in prop::option::of(1..=MAX_CONNECTIONS),
            paths in prop::collection::vec(("[a-z0-9.%]{1,8}", prop::option::of(1..u16::MAX)), 0..=MAX_PATHS),
        ) {
            prop_assume!(names.iter().all(|name| name != "." && name != ".."));
            let mut address = NfsAddress::plain(ServerNode { host, port }, format!("/{}", names.join("/")));
            address.connections = connections;
            address.paths = paths.into_iter().map(|(host, port)| ServerNode { host, port }).collect();
            prop_assume!(address.check().is_ok());
            prop_assert_eq!(address.to_string().parse::<NfsAddress>().unwrap(), address);
        }
    }
}
