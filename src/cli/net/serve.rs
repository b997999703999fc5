//! `plimsoll net serve`.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::cli::arguments::Seconds;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::say;
use crate::cli::token::{self, TokenOf};
use model::config::net::DEFAULT_PORT;
use model::units::Bytes;
use targets::network::server::{DEFAULT_MAX_CONNECTIONS, Event, ServeError, Server, ServerOptions, WriteTo};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll net serve                   for this machine alone; shows a token
  plimsoll net serve --listen 10.0.2.2 --token-file /root/net-token
  plimsoll net serve --listen 0.0.0.0 --once --idle 5m
  plimsoll net serve --listen 0.0.0.0:5201 --write /u01 --write-max 1G
  plimsoll net serve --listen 0.0.0.0 --max-rate 125M --max-duration 2m

Clients must know the token: the one in PLIMSOLL_NET_TOKEN or --token-file, or
a new one that is shown here once. It is never sent. Nothing is encrypted: what
is sent is filling. One test is served at a time. This command never connects
to anybody, and writes nothing unless --write says where.";

/// Arguments of `plimsoll net serve`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Address to listen on, with or without a port: 127.0.0.1 is this machine alone, 0.0.0.0 everybody who can reach it
    #[arg(long, value_name = "ADDR[:PORT]", default_value = "127.0.0.1", help_heading = "Network")]
    listen: At,

    /// File that holds the token; without it, the variable PLIMSOLL_NET_TOKEN does, or one is made
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    token_file: Option<PathBuf>,

    /// Maximum number of data connections of a test
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_CONNECTIONS, help_heading = "Limits",
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    max_connections: u32,

    /// Maximum bytes per second, each way, of all connections together [default: no limit]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    max_rate: Option<Bytes>,

    /// Longest test
    #[arg(long, value_name = "TIME", default_value = "1h", help_heading = "Limits")]
    max_duration: Seconds,

    /// Directory in which redo is written where a client asks for durable writes; without it there are none
    #[arg(long, value_name = "DIR", help_heading = "Writing")]
    write: Option<PathBuf>,

    /// Size of the files that are written to, together; writing goes around in them
    #[arg(long, value_name = "SIZE", default_value = "256M", requires = "write", help_heading = "Writing")]
    write_max: Bytes,

    /// End after this long without a test; 0 waits forever
    #[arg(long, value_name = "TIME", default_value = "10m", help_heading = "End")]
    idle: Seconds,

    /// End after one test
    #[arg(long, short = '1', help_heading = "End")]
    once: bool,

    /// Write what happens to standard output, one JSON document a line
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// An address with or without a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At(SocketAddr);

/// Text that is no address.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an address of this machine: write 127.0.0.1, 10.0.2.2:7018, [::1]:7018 or 0.0.0.0")]
struct NoAddress(String);

impl FromStr for At {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let named = match text.strip_prefix("localhost") {
            Some(rest) => format!("{}{rest}", Ipv4Addr::LOCALHOST),
            None => text.to_owned(),
        };
        let bare = named.trim_start_matches('[').trim_end_matches(']');
        let with_port = |ip: IpAddr| SocketAddr::new(ip, DEFAULT_PORT);
        let found = named.parse().ok().or_else(|| bare.parse().ok().map(with_port));
        found.map(Self).ok_or_else(|| NoAddress(text.to_owned()))
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        Self::new(&error).with_hint(error.hint().map(str::to_owned))
    }
}

/// The first line of `--json`.
#[derive(Serialize)]
struct Listening {
    event: &'static str,
    address: SocketAddr,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let At(listen) = arguments.listen;
    let given = token::given(TokenOf::Net, arguments.token_file.as_deref())?;
    let is_made = given.is_none();
    let token = given.map_or_else(token::made, Ok)?;
    let duration = |Seconds(time): Seconds| Duration::from_nanos(time.0);
    let max_duration = duration(arguments.max_duration);
    if max_duration.is_zero() || arguments.max_rate == Some(Bytes(0)) || arguments.write_max == Bytes(0) {
        let failure = Failure::new("a limit of 0 lets nothing through");
        return Err(
            failure.with_hint("leave it out for what is usual: `plimsoll net serve --help` says what".to_owned())
        );
    }
    let write = arguments.write.clone().map(|directory| WriteTo { directory, max_bytes: arguments.write_max.0 });
    let server = Server::bind(ServerOptions {
        listen,
        token,
        max_connections: arguments.max_connections,
        max_bytes_per_s: arguments.max_rate.map(|Bytes(bytes)| bytes),
        max_duration,
        write,
        idle: Some(duration(arguments.idle)).filter(|idle| !idle.is_zero()),
        once: arguments.once,
    })?;
    let interrupt = Interrupt::listen()?;
    let address = server.address();
    greet(&server, is_made);
    let is_json = arguments.json;
    // Nobody need read the address: whoever has closed standard output is served still.
    let _ = if is_json { json_line(&Listening { event: "listening", address }) } else { line(&address) };
    server.serve(interrupt.flag(), &|event| print(event, is_json))?;
    Ok(Exit::Done)
}

fn greet(server: &Server, is_made: bool) {
    let address = server.address();
    say::line(format_args!("Listening on {address} (Ctrl-C ends it)"));
    if is_made {
        say::line(format_args!("Token, shown this once: {}", server.token().expose()));
        say::line(format_args!(
            "On the other host: PLIMSOLL_NET_TOKEN={} plimsoll net run --to {}",
            server.token().expose(),
            if address.ip().is_unspecified() { format!("HOST:{}", address.port()) } else { address.to_string() }
        ));
    }
    if address.ip().is_loopback() {
        say::note("only this machine can reach it; `--listen 0.0.0.0` lets others, who must know the token");
    }
}

fn print(event: &Event, is_json: bool) {
    if is_json {
        let _ = json_line(event);
    } else {
        say::line(format_args!("{} {event}", jiff::Zoned::now().strftime("%H:%M:%S")));
    }
}

fn json_line(document: &impl Serialize) -> Result<(), Failure> {
    line(&serde_json::to_string(document)?)
}

fn line(text: &impl std::fmt::Display) -> Result<(), Failure> {
    let mut out = say::output();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_port() {
        for (text, shown) in [
            ("127.0.0.1", "127.0.0.1:7018"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("localhost", "127.0.0.1:7018"),
            ("localhost:99", "127.0.0.1:99"),
            ("::1", "[::1]:7018"),
            ("[::1]", "[::1]:7018"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(text.parse::<At>().unwrap().0.to_string(), shown, "{text}");
        }
        for text in ["", "db2", "1.2.3", "127.0.0.1:", "127.0.0.1:70000", ":7018", "localhosts"] {
            assert!(text.parse::<At>().is_err(), "{text}");
        }
    }
}
