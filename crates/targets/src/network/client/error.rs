//! Why a network cannot be measured, in words.

use std::io;

use crate::network::wire::WireError;
use miette::Diagnostic;
use model::units::Nanos;

const LOOK_BETWEEN: &str =
    "look at the terminal of `plimsoll net serve`, and whether something between cuts connections";

/// Why a load on a network cannot be carried out, or not any more.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum NetError {
    /// A name without an address.
    #[error("`{server}` has no address: {source}")]
    #[diagnostic(help("check the name, or give an IP address"))]
    NoAddress {
        /// The server as it was named.
        server: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Nobody takes connections there.
    #[error("cannot connect to `{server}`: {source}")]
    #[diagnostic(help("{}", hint_for_connecting(source)))]
    Connect {
        /// The server as it was named.
        server: String,
        /// The system's reason.
        source: io::Error,
    },
    /// What both ends say to each other went wrong.
    #[error("`{server}`: {source}")]
    #[diagnostic(forward(source))]
    Wire {
        /// The server as it was named.
        server: String,
        /// What went wrong.
        source: WireError,
    },
    /// The server does not open the test.
    #[error("`{server}` refuses the test: {why}")]
    Refused {
        /// The server as it was named.
        server: String,
        /// Its reason.
        why: String,
        /// What it says to do about it.
        #[help]
        hint: Option<String>,
    },
    /// The server ended the test.
    #[error("`{server}` ended the test: {why}")]
    #[diagnostic(help(
        "`plimsoll net serve` says more on its own terminal; its limits are in `plimsoll net serve --help`"
    ))]
    Ended {
        /// The server as it was named.
        server: String,
        /// Its reason.
        why: String,
    },
    /// A connection that carried load is gone.
    #[error("connection {number} to `{server}` was lost {during}: {source}")]
    #[diagnostic(help("{LOOK_BETWEEN}"))]
    Lost {
        /// The server as it was named.
        server: String,
        /// Number of the connection, from 1.
        number: u32,
        /// What was under way.
        during: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A connection on which nothing comes or goes.
    #[error("connection {number} to `{server}`: nothing {during} for {}", Nanos(*waited_ns))]
    #[diagnostic(help("{LOOK_BETWEEN}"))]
    Silent {
        /// The server as it was named.
        server: String,
        /// Number of the connection, from 1.
        number: u32,
        /// What was under way.
        during: &'static str,
        /// For how long.
        waited_ns: u64,
    },
    /// An answer that is none to what was asked.
    #[error("connection {number} to `{server}`: {what}")]
    #[diagnostic(help("{LOOK_BETWEEN}"))]
    Answer {
        /// The server as it was named.
        server: String,
        /// Number of the connection, from 1.
        number: u32,
        /// What is wrong with it.
        what: String,
    },
    /// What the server says of a test cannot be.
    #[error("what `{server}` says cannot be: {what}")]
    #[diagnostic(help(
        "run the same version of plimsoll on both hosts, and look whether something between changes what is sent"
    ))]
    Unbelievable {
        /// The server as it was named.
        server: String,
        /// What is wrong with it.
        what: String,
    },
    /// A socket cannot be had as it was asked for.
    #[error("cannot {action}: {source}")]
    #[diagnostic(help("{}", hint_for_socket(action, source)))]
    Socket {
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// No token was given.
    #[error("no token was given for `{server}`")]
    #[diagnostic(help(
        "set PLIMSOLL_NET_TOKEN, or name a file with `--token-file`: `plimsoll net serve` shows the token that it made"
    ))]
    NoToken {
        /// The server as it was named.
        server: String,
    },
    /// The server of this process.
    #[error("cannot serve on this host: {why}")]
    Own {
        /// The reason.
        why: String,
    },
}

impl NetError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }
}

fn hint_for_connecting(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => {
            "start `plimsoll net serve --listen ADDRESS` there: without `--listen` it takes connections of its own host only"
        }
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "a firewall or a route may be in the way; the port must be open for TCP (and UDP, for `--udp`)"
        }
        _ => "look whether the other host can be reached: `ping` and `ip route get`",
    }
}

fn hint_for_socket(action: &str, source: &io::Error) -> &'static str {
    if source.raw_os_error() == Some(libc::EMFILE) {
        "raise the limit of open files: `ulimit -n 65536`"
    } else if action.contains("congestion") {
        "`sysctl net.ipv4.tcp_available_congestion_control` lists what the kernel has"
    } else {
        ""
    }
}
