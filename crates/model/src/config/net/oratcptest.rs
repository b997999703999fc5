//! oratcptest's command line (MOS note 2064368.1), as its users type it.

use std::fmt;
use std::str::FromStr;

use miette::Diagnostic;

use super::{MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES, NetProblem};
use crate::config::ConfigError;
use crate::config::io::MAX_DEPTH;
use crate::units::{Bytes, Nanos};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OratcptestCommand {
    /// The options.
    Help,
    /// A test.
    Run(OratcptestOptions),
}

/// A test that oratcptest would be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OratcptestOptions {
    /// The other host, and the port.
    pub server: NetServer,
    /// Whether each message waits for its acknowledgement.
    pub is_sync: bool,
    /// Bytes of each message. One has at least a header here, and oratcptest's of length 0 has 12 bytes.
    pub length: Bytes,
    /// Connections.
    pub connections: u32,
    /// Whether the other host writes to disk before it acknowledges.
    pub is_written: bool,
    /// Size of the socket buffers, where it was asked for.
    pub socket_buffer: Option<Bytes>,
    /// Length of the test.
    pub duration: Nanos,
    /// Length of each line's interval, in whole seconds.
    pub interval: Nanos,
    /// How long nothing may come.
    pub timeout: Option<Nanos>,
}

/// Why oratcptest's words cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum OratcptestProblem {
    /// No host.
    #[error("no host is named")]
    #[diagnostic(help("write it first: `plimsoll net oratcptest HOST -port=7018 -mode=sync`"))]
    NoHost,
    /// A second host.
    #[error("two hosts are named: `{first}` and `{second}`")]
    #[diagnostic(help("name one, and options as `-name=value`"))]
    TwoHosts { first: String, second: String },
    /// A word that is no option.
    #[error("oratcptest has no option `{word}`")]
    #[diagnostic(help("`plimsoll net oratcptest -help` lists the options"))]
    Unknown { word: String },
    /// An option twice.
    #[error("`-{option}` is given twice")]
    #[diagnostic(help("give each option once"))]
    Twice { option: &'static str },
    /// A value that its option does not take.
    #[error("`-{option}={value}` is not {wanted}")]
    #[diagnostic(help("{}", meaning_of(option)))]
    Value { option: &'static str, value: String, wanted: &'static str },
    /// An option of oratcptest's that has no meaning here.
    #[error("`-{option}` is not done here")]
    #[diagnostic(help("{instead}"))]
    NotHere { option: &'static str, instead: &'static str },
}

fn meaning_of(option: &str) -> String {
    let row = OPTIONS.iter().find(|row| row.name == option);
    row.map_or_else(String::new, |row| format!("`-{}`: {}", row.name, row.meaning))
}

struct Row {
    name: &'static str,
    value: Option<&'static str>,
    meaning: &'static str,
}

const fn row(name: &'static str, value: Option<&'static str>, meaning: &'static str) -> Row {
    Row { name, value, meaning }
}

const OPTIONS: [Row; 10] = [
    row("port", Some("N"), "port of `plimsoll net serve` on that host (7018)"),
    row("mode", Some("sync|async"), "whether each message waits for its acknowledgement (async)"),
    row("length", Some("SIZE"), "bytes of a message, such as 8192, 8K or 1M (8K with sync, 1M with async)"),
    row("duration", Some("TIME"), "length of the test, such as 60s or 10m (10s)"),
    row("interval", Some("TIME"), "whole seconds between two lines of figures (1s)"),
    row("num_conn", Some("N"), "connections (1)"),
    row("sockbuf", Some("SIZE"), "socket buffers of both ends (as the systems have them)"),
    row("write", None, "the server writes each message to disk first; it needs `--write DIR`"),
    row("timeout", Some("TIME"), "how long nothing may come before the test ends (10s)"),
    row("help", None, "this list"),
];

/// Options that oratcptest has, and what does it here.
const NOT_HERE: [(&str, &str); 4] = [
    ("server", "the other end is `plimsoll net serve`"),
    ("delay", "send at a rate instead: `plimsoll net run --pattern redo-sync --rate N`"),
    ("freq", "have it repeated by cron or a timer: runs are kept, and `plimsoll compare` lays them side by side"),
    ("file", "`plimsoll net serve --write DIR` says where the server writes"),
];

/// The options, one a line.
pub fn help_text() -> String {
    let mut text = String::from("plimsoll net oratcptest HOST [-option=value ...]\n");
    for row in &OPTIONS {
        let written = row.value.map_or_else(|| format!("-{}", row.name), |value| format!("-{}={value}", row.name));
        text += &format!("  {written:<18}  {}\n", row.meaning);
    }
    text.truncate(text.trim_end().len());
    text
}

/// Reads oratcptest's words, without the name of the program. Names and words may be in any case.
///
/// # Errors
/// [`ConfigError::Net`] for a word that is no option, a value out of range, an option that is there twice, and without a host.
pub fn parse(words: &[String]) -> Result<OratcptestCommand, ConfigError> {
    read(words).map_err(|problem| ConfigError::Net(NetProblem::Oratcptest(problem)))
}

fn read(words: &[String]) -> Result<OratcptestCommand, OratcptestProblem> {
    use OratcptestProblem::{NoHost, NotHere, Twice, TwoHosts, Unknown};
    let mut given: Vec<(&'static str, &str)> = Vec::new();
    let mut host: Option<&str> = None;
    for word in words {
        let Some(option) = word.strip_prefix('-') else {
            if let Some(first) = host.replace(word) {
                return Err(TwoHosts { first: first.to_owned(), second: word.clone() });
            }
            continue;
        };
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let name = name.trim_start_matches('-').to_ascii_lowercase();
        if let Some((option, instead)) = NOT_HERE.iter().find(|(known, _)| *known == name) {
            return Err(NotHere { option, instead });
        }
        let unknown = || Unknown { word: word.clone() };
        let row = OPTIONS.iter().find(|row| row.name == name).ok_or_else(unknown)?;
        if row.value.is_some() != value.is_some() {
            return Err(unknown());
        }
        if given.iter().any(|(known, _)| *known == row.name) {
            return Err(Twice { option: row.name });
        }
        given.push((row.name, value.unwrap_or_default()));
    }
    let get = |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    if get("help").is_some() {
        return Ok(OratcptestCommand::Help);
    }
    let is_sync = value(&given, "mode", "`sync` or `async`", |mode| match mode.to_ascii_lowercase().as_str() {
        "sync" => Some(true),
        "async" => Some(false),
        _ => None,
    })?
    .unwrap_or(false);
    let port = value(&given, "port", "a port", |port| port.parse::<u16>().ok().filter(|port| *port > 0))?;
    let host = host.ok_or(NoHost)?;
    let named = NetServer::from_str(host).map_err(|_| Unknown { word: host.to_owned() })?;
    let server = match (named, port) {
        (NetServer::At { host, .. }, Some(port)) => NetServer::At { host, port },
        (server, _) => server,
    };
    let size = |text: &str| text.parse::<Bytes>().ok().filter(|bytes| bytes.0 <= u64::from(MAX_MESSAGE_BYTES));
    let length = value(&given, "length", "a size of at most 16M", size)?;
    let length = length.unwrap_or(if is_sync { Bytes::kib(8) } else { Bytes::mib(1) });
    let time = |text: &str| time(text).filter(|time| *time > Nanos(0));
    let whole_seconds = |text: &str| time(text).filter(|time| time.0.is_multiple_of(1_000_000_000));
    let connections = |text: &str| text.parse().ok().filter(|count| (1..=MAX_DEPTH).contains(count));
    Ok(OratcptestCommand::Run(OratcptestOptions {
        server,
        is_sync,
        length,
        connections: value(&given, "num_conn", "a number of connections", connections)?.unwrap_or(1),
        is_written: get("write").is_some(),
        socket_buffer: value(&given, "sockbuf", "a size", |text| text.parse().ok().filter(|size| *size > Bytes(0)))?,
        duration: value(&given, "duration", "a time", time)?.unwrap_or(Nanos::seconds(10)),
        interval: value(&given, "interval", "whole seconds", whole_seconds)?.unwrap_or(Nanos::seconds(1)),
        timeout: value(&given, "timeout", "a time", time)?,
    }))
}

fn value<T>(
    given: &[(&'static str, &str)],
    option: &'static str,
    wanted: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, OratcptestProblem> {
    let Some((_, value)) = given.iter().find(|(known, _)| *known == option) else { return Ok(None) };
    let wrong = || OratcptestProblem::Value { option, value: (*value).to_owned(), wanted };
    read(value).map(Some).ok_or_else(wrong)
}

/// `60s`, `10m`, or bare seconds.
fn time(text: &str) -> Option<Nanos> {
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if bare { format!("{text}s").parse().ok() } else { text.parse().ok() }
}

impl OratcptestOptions {
    /// Bytes of a message here.
    pub fn message_bytes(&self) -> u32 {
        u32::try_from(self.length.0).unwrap_or(MAX_MESSAGE_BYTES).max(MIN_MESSAGE_BYTES)
    }
}

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
        read_server(text).map_err(ConfigError::Net)
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
        let server = read_server(name)?;
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

fn read_server(text: &str) -> Result<NetServer, NetProblem> {
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
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn options(line: &str) -> OratcptestOptions {
        match parse(&words(line)).unwrap() {
            OratcptestCommand::Run(options) => options,
            OratcptestCommand::Help => panic!("{line} asks for no help"),
        }
    }

    #[test]
    fn what_its_users_type_is_understood() {
        let sync = options("10.0.2.2 -mode=sync -length=0 -duration=1s -interval=1s -port=1521");
        assert_eq!((sync.server.to_string().as_str(), sync.is_sync), ("10.0.2.2:1521", true));
        assert_eq!((sync.length, sync.message_bytes(), sync.duration), (Bytes(0), 32, Nanos::seconds(1)));
        let asynchronous = options("db2 -mode=async -duration=10s -interval=2s");
        assert_eq!((asynchronous.is_sync, asynchronous.length), (false, Bytes::mib(1)));
        assert_eq!((asynchronous.interval, asynchronous.server.to_string().as_str()), (Nanos::seconds(2), "db2:7018"));
        let written =
            options("db2 -port=7018 -mode=SYNC -length=8192 -duration=60 -interval=1s -write -num_conn=2 -sockbuf=4M");
        assert_eq!((written.is_written, written.connections, written.socket_buffer), (true, 2, Some(Bytes::mib(4))));
        assert_eq!(parse(&words("-help")).unwrap(), OratcptestCommand::Help);
    }

    #[test]
    fn other_words_are_refused_with_what_to_write() {
        for (line, message) in [
            ("-mode=sync", "no host is named"),
            ("db1 db2", "two hosts are named: `db1` and `db2`"),
            ("db1 -mode=maybe", "`-mode=maybe` is not `sync` or `async`"),
            ("db1 -port=0", "`-port=0` is not a port"),
            ("db1 -interval=100ms", "`-interval=100ms` is not whole seconds"),
            ("db1 -length=1G", "`-length=1G` is not a size of at most 16M"),
            ("db1 -write=yes", "oratcptest has no option `-write=yes`"),
            ("db1 -speed=9", "oratcptest has no option `-speed=9`"),
            ("db1 -port=1 -port=2", "`-port` is given twice"),
            ("db1 -freq=1h", "`-freq` is not done here"),
            ("-server db1", "`-server` is not done here"),
        ] {
            let error = parse(&words(line)).unwrap_err();
            assert_eq!(error.to_string(), message, "{line}");
            assert!(!error.hint().unwrap_or_default().is_empty(), "{line}");
        }
    }

    #[test]
    fn the_help_names_every_option() {
        let help = help_text();
        assert!(OPTIONS.iter().all(|row| help.contains(&format!("-{}", row.name))), "{help}");
        assert!(help.lines().all(|line| line.chars().count() < 110), "{help}");
    }
}

#[cfg(test)]
mod server_tests {
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
