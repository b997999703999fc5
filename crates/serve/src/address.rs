//! Where the server listens, and which names of this machine it answers to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// An address to listen on: `127.0.0.1:8321`, `[::1]:0`, `localhost:8321`, `0.0.0.0:8321`. Port 0 means any free one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen(pub SocketAddr);

/// Text that is no address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--listen: `{text}` is not an address and a port")]
pub struct ListenError {
    text: String,
}

impl ListenError {
    /// What to write instead.
    pub fn hint(&self) -> String {
        "write 127.0.0.1:8321 or [::1]:8321 for this machine alone, 0.0.0.0:8321 for everybody who can reach it; port 0 \
         picks a free one"
            .to_owned()
    }
}

impl Listen {
    /// Whether only this machine can reach it.
    pub fn is_local(self) -> bool {
        self.0.ip().is_loopback()
    }
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let refuse = || ListenError { text: text.to_owned() };
        match text.strip_prefix("localhost:") {
            Some(port) => {
                let port = port.parse().map_err(|_| refuse())?;
                Ok(Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)))
            }
            None => text.parse().map(Self).map_err(|_| refuse()),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a `Host` header names this machine as itself, with any port or none. A page of the internet can have its own
/// name lead to 127.0.0.1 and read what a local server answers; only the name reports.
pub(super) fn names_this_machine(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, port)) => (name, port.strip_prefix(':').or(port.is_empty().then_some("0"))),
        None => host.split_once(':').map_or((host, Some("0")), |(name, port)| (name, Some(port))),
    };
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
    is_port && (name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_a_port_and_a_place() {
        for (text, is_local) in [
            ("127.0.0.1:8321", true),
            ("[::1]:0", true),
            ("localhost:8321", true),
            ("127.8.9.1:80", true),
            ("0.0.0.0:8321", false),
            ("[::]:8321", false),
        ] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!(listen.is_local(), is_local, "{text}");
        }
        assert_eq!("localhost:1".parse::<Listen>().unwrap().to_string(), "127.0.0.1:1");
        for text in ["", ":8080", "8080", "127.0.0.1", "::1:80", "localhost", "host.example:80", "127.0.0.1:65536"] {
            let error = text.parse::<Listen>().unwrap_err();
            assert!(error.to_string().contains(&format!("`{text}`")) && error.hint().contains("port 0"), "{error}");
        }
    }

    #[test]
    fn only_names_of_this_machine_itself_are_local() {
        for host in ["localhost", "LOCALHOST:8321", "127.0.0.1", "127.0.0.1:1", "127.1.2.3:9", "[::1]", "[::1]:8321"] {
            assert!(names_this_machine(host), "{host}");
        }
        for host in [
            "",
            ":8321",
            "evil.example",
            "evil.example:8321",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8321",
            "10.0.0.1",
            "[::2]:1",
            "[::1]x",
            "[::1",
            "localhost:",
            "localhost:x",
            "localhost:1:2",
            "user@localhost",
        ] {
            assert!(!names_this_machine(host), "{host}");
        }
    }
}
