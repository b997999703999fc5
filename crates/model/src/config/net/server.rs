//! Where the other end of a network is.

use std::fmt;
use std::str::FromStr;

use super::NetProblem;
use crate::config::ConfigError;

/// The port on which `plimsoll net serve` listens unless the user says otherwise. iperf3 has 5201, and oratcptest none.
pub const DEFAULT_PORT: u16 = 7018;

/// The other end of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetServer {
    /// `self`: a server in this process, on loopback.
    Own,
    /// `HOST`, `HOST:PORT`, `[2001:db8::1]:PORT`: one that listens there.
    At {
        /// Host name or IP address.
        host: String,
        /// Port.
        port: u16,
    },
}

impl FromStr for NetServer {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text).map_err(ConfigError::Net)
    }
}

/// Several servers, as they are named on a command line: `db2,db3:7019`. Two at least, none twice, none of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetServers(pub Vec<NetServer>);

impl FromStr for NetServers {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read_all(text).map(Self).map_err(ConfigError::Net)
    }
}

fn read_all(text: &str) -> Result<Vec<NetServer>, NetProblem> {
    let mut servers: Vec<NetServer> = Vec::new();
    for name in text.split(',') {
        let server = read(name)?;
        if server == NetServer::Own {
            return Err(NetProblem::OwnAmongSeveral);
        }
        if servers.contains(&server) {
            return Err(NetProblem::ServerTwice { server: server.to_string() });
        }
        servers.push(server);
    }
    if servers.len() < 2 {
        return Err(NetProblem::OneServer { text: text.to_owned() });
    }
    Ok(servers)
}

fn read(text: &str) -> Result<NetServer, NetProblem> {
    let wrong = || NetProblem::Server { text: text.to_owned() };
    if text == "self" {
        return Ok(NetServer::Own);
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or_else(wrong)?;
            (host, if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or_else(wrong)?) })
        }
        // More than one colon is an IPv6 address without a port.
        None if text.matches(':').count() > 1 => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_sign = |sign: char| sign.is_alphanumeric() || "-._:%".contains(sign);
    if host.is_empty() || !host.chars().all(is_sign) {
        return Err(wrong());
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?,
    };
    Ok(NetServer::At { host: host.to_owned(), port })
}

impl fmt::Display for NetServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.pad("self"),
            Self::At { host, port } if host.contains(':') => f.pad(&format!("[{host}]:{port}")),
            Self::At { host, port } => f.pad(&format!("{host}:{port}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_are_read_with_and_without_a_port() {
        for (text, shown) in [
            ("db2", "db2:7018"),
            ("db2.example:5201", "db2.example:5201"),
            ("10.0.2.2", "10.0.2.2:7018"),
            ("::1", "[::1]:7018"),
            ("[2001:db8::1]:99", "[2001:db8::1]:99"),
            ("[::1]", "[::1]:7018"),
            ("self", "self"),
        ] {
            assert_eq!(text.parse::<NetServer>().unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn a_matrix_has_several_servers_each_once() {
        let NetServers(servers) = "db2,[::1]:99,db2:7019".parse().unwrap();
        assert_eq!(servers.iter().map(ToString::to_string).collect::<Vec<_>>(), ["db2:7018", "[::1]:99", "db2:7019"]);
        for text in ["db2", "db2,", "db2,db2:7018", "db2,self", ",db2"] {
            let error = text.parse::<NetServers>().unwrap_err();
            assert!(error.hint().is_some(), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in ["", ":7018", "db2:", "db2:0", "db2:70000", "[::1", "[::1]x", "a b", "http://db2", "db2/x", "u@db2"]
        {
            let error = text.parse::<NetServer>().unwrap_err();
            assert_eq!(error.to_string(), format!("`{text}` is not a server"), "{text}");
            assert!(error.hint().unwrap().contains("HOST:PORT"));
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".*") {
            if let Ok(server) = text.parse::<NetServer>() {
                prop_assert_eq!(server.to_string().parse::<NetServer>().unwrap(), server);
            }
        }
    }
}
