//! What the user asked for, as plain data.
//!
//! Text goes in, typed and checked values come out; the only things that are opened are the parameter file, ORION's list of
//! devices, and files of passwords, that the user names. Nothing here knows a target: what needs facts about the data set is checked by whoever has them, with
//! [`SlobParameters::check_against`].
//!
//! ```
//! use plimsoll_model::config::{Assignment, SlobParameters, slob_conf};
//!
//! let mut settings = slob_conf::parse("UPDATE_PCT=20   # a fifth\nSCALE=80M\n", "slob.conf")?;
//! if let Assignment::Set(setting) = "UPDATE_PCT=50".parse()? {
//!     settings.push(setting);
//! }
//! let parameters = SlobParameters::from_settings(&settings)?;
//! assert_eq!(parameters.update_pct, 50);
//! assert_eq!(parameters.scale.blocks(8192), 10_240);
//! # Ok::<(), plimsoll_model::config::ConfigError>(())
//! ```

mod error;
pub mod experiment;
pub mod fleet;
pub mod group;
pub mod host;
pub mod io;
pub mod mysql;
pub mod net;
pub mod nfs;
pub mod oracle;
pub mod orion;
mod parameter;
pub mod postgres;
mod secret;
mod slob;
pub mod slob_conf;
mod vary;

use std::fmt;
use std::ops::Add;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};

use crate::units::Nanos;
use crate::workload::Arrival;
use crate::workload::orders::Pauses;
use secret::MASK;
use slob_conf::is_plain_text;

pub use error::{ConfigError, SyntaxProblem, TargetAddress, TargetProblem, VaryProblem};
pub use experiment::Tag;
pub use parameter::{Key, PARAMETERS, Parameter, Role, help_text};
pub use secret::{Secret, SecretFile, SecretFileProblem};
pub use slob::{
    Connection, Filler, HotSpot, MAX_SESSIONS, MAX_WORK_UNIT, RedoStress, Scale, SlobParameters, StatisticsType, Think,
    nanos_text,
};
pub use vary::{Axes, MAX_STEPS, ThreadList, Vary};

// How operations arrive when a rate is asked for.

impl FromStr for Arrival {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "poisson" => Ok(Self::Poisson),
            "fixed" => Ok(Self::Fixed),
            _ => Err(ConfigError::Arrival { text: text.to_owned() }),
        }
    }
}

/// What is wrong with a list whose numbers can all be read.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Gap<T> {
    /// A number stands there twice.
    Twice(T),
    /// A range goes down.
    Down { first: T, last: T },
    /// What stands before `…` does not say how it goes on.
    NoDoubling { before: T, first: T },
}

/// The text without spaces, and with each way to leave something out written as `…`.
fn one_ellipsis(text: &str) -> String {
    text.replace(char::is_whitespace, "").replace("...", "…").replace("..", "…")
}

/// Reads a list: each number by `number`, which accepts none at or below zero. A range ends with its last number even if that
/// is no doubling, and no number is there twice.
///
/// # Errors
/// What `number` says of a text, and what `wrong` says of the list.
fn numbers<T: Copy + PartialOrd + Add<Output = T>, E>(
    text: &str,
    number: impl Fn(&str) -> Result<T, E>,
    wrong: impl Fn(Gap<T>) -> E,
) -> Result<Vec<T>, E> {
    let mut found: Vec<T> = Vec::new();
    for item in one_ellipsis(text).replace(",…,", "…").split(',') {
        let Some((first, last)) = item.split_once('…') else {
            found.push(number(item)?);
            continue;
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong(Gap::Down { first, last }));
        }
        // `1,3,…,9` does not mean doubling, whatever else it means.
        if let Some(&before) = found.last().filter(|&&before| before + before != first) {
            return Err(wrong(Gap::NoDoubling { before, first }));
        }
        found.extend(std::iter::successors(Some(first), |number| Some(*number + *number)).take_while(|it| *it < last));
        found.push(last);
    }
    match found.iter().enumerate().find(|(place, number)| found[..*place].contains(number)) {
        Some((_, &number)) => Err(wrong(Gap::Twice(number))),
        None => Ok(found),
    }
}

/// Why text says nothing about pauses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PausesError(String);

/// `0`, `5ms` (always as long; a plain number is seconds), `1ms..5ms`, or `exp:5ms` for a mean.
impl FromStr for Pauses {
    type Err = PausesError;

    fn from_str(text: &str) -> Result<Self, PausesError> {
        let time = |text: &str| match text.trim() {
            "0" => Ok(0),
            text => text.parse::<Nanos>().map(|Nanos(ns)| ns).map_err(|error| PausesError(error.to_string())),
        };
        if let Some(mean) = text.trim().strip_prefix("exp:") {
            return Ok(Self::Exponential { mean_ns: time(mean)? });
        }
        let Some((min, max)) = text.split_once("..") else {
            let ns = time(text)?;
            return Ok(if ns == 0 { Self::None } else { Self::Fixed { ns } });
        };
        let (min_ns, max_ns) = (time(min)?, time(max)?);
        if min_ns > max_ns {
            return Err(PausesError(format!(
                "the shortest pause, {}, is longer than the longest, {}",
                Nanos(min_ns),
                Nanos(max_ns)
            )));
        }
        Ok(Self::Uniform { min_ns, max_ns })
    }
}

/// As they are typed; they read back exactly.
impl fmt::Display for Pauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |ns: u64| nanos_text(Nanos(ns));
        match *self {
            Self::None => f.write_str("0"),
            Self::Fixed { ns } => f.write_str(&text(ns)),
            Self::Uniform { min_ns, max_ns } => write!(f, "{}..{}", text(min_ns), text(max_ns)),
            Self::Exponential { mean_ns } => write!(f, "exp:{}", text(mean_ns)),
        }
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    /// Nobody gave it.
    #[default]
    Default,
    /// A line of a parameter file.
    File {
        /// The file, as the user named it.
        file: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// `KEY=VALUE`, `-t` or `--vary` on the command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// One value given to one parameter. Settings form an ordered list in which a later one wins.
///
/// An empty value takes the parameter back to its default, as it does in SLOB.
#[derive(Clone, PartialEq, Eq)]
pub struct Setting {
    /// The parameter.
    pub key: Key,
    /// The value as text, quotes and comments removed. One printable line.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

impl Setting {
    /// A setting from a name and a value that are still plain text.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnknownParameter`] if no parameter has this name.
    pub fn new(name: &str, value: impl Into<String>, origin: Origin) -> Result<Self, ConfigError> {
        match Key::from_name(name) {
            Some(key) => Ok(Self { key, value: value.into(), origin }),
            None => Err(ConfigError::UnknownParameter { name: name.to_owned(), origin }),
        }
    }

    /// A setting made from the command line.
    pub fn from_command_line(key: Key, value: impl Into<String>) -> Self {
        Self { key, value: value.into(), origin: Origin::CommandLine }
    }

    /// The value, unless it is a secret.
    fn shown_value(&self) -> &str {
        if self.key.is_secret() { MASK } else { &self.value }
    }
}

/// Prints `KEY=VALUE`, with `***` for a secret.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.shown_value())
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.origin)
    }
}

/// One word of the command line that is not a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assignment {
    /// A bare number: how many schemas, as for SLOB's `runit.sh`. At least 1, at most [`MAX_SESSIONS`].
    Schemas(u32),
    /// `KEY=VALUE`: overrides the parameter file. The shell has taken the quotes off already.
    Set(Setting),
}

impl FromStr for Assignment {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((name, value)) = text.split_once('=') {
            let setting = Setting::new(name, value, Origin::CommandLine)?;
            return if is_plain_text(&setting.value) {
                Ok(Self::Set(setting))
            } else {
                Err(ConfigError::Unprintable { key: setting.key })
            };
        }
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ConfigError::Argument { text: text.to_owned() });
        }
        match text.parse() {
            Ok(schemas @ 1..=MAX_SESSIONS) => Ok(Self::Schemas(schemas)),
            _ => Err(ConfigError::Schemas { text: text.to_owned() }),
        }
    }
}

/// The same command-line word with `***` for a password: in `SYSDBA_PASSWD=…`, in an address that names a user and a
/// password before its host, and in `…password=…`. For the command that a run keeps. Where a word is no good address, rather
/// too much is hidden than too little.
pub fn without_secrets(argument: &str) -> String {
    if let Some((name, _)) = argument.split_once('=')
        && Key::from_name(name).is_some_and(Key::is_secret)
    {
        return format!("{name}={MASK}");
    }
    // The same length, so places in one are places in the other.
    let lowercase = argument.to_ascii_lowercase();
    let named = ["password=", "passwd="].iter().filter_map(|name| Some(lowercase.find(name)? + name.len())).min();
    let login = place_of_address(&lowercase).and_then(|start| password_of_login(argument, start));
    match (named, login) {
        (None, None) => argument.to_owned(),
        (None, Some((from, until))) => format!("{}{MASK}{}", &argument[..from], &argument[until..]),
        // What follows such a password may belong to it.
        (Some(from), None) => format!("{}{MASK}", &argument[..from]),
        (Some(from), Some((earlier, _))) => format!("{}{MASK}", &argument[..from.min(earlier)]),
    }
}

/// Where user, password and host begin.
fn place_of_address(lowercase: &str) -> Option<usize> {
    let kinds = ["://", "postgres:", "postgresql:"];
    let after_kind = kinds.iter().filter_map(|kind| Some(lowercase.find(kind)? + kind.len())).min()?;
    let slashes = lowercase[after_kind..].bytes().take_while(|byte| *byte == b'/').count();
    Some(after_kind + slashes)
}

/// From where to where a password, or what may be one, stands before the host of an address that begins at `start`.
fn password_of_login(argument: &str, start: usize) -> Option<(usize, usize)> {
    let address = &argument[start..];
    // A password may itself hold `/` or `@`, so the host begins after the last `@`.
    if let Some(at) = address.rfind('@') {
        let colon = address.find(':').filter(|colon| *colon < at)?;
        return Some((start + colon + 1, start + at));
    }
    // Without `@` there are hosts and ports only; what is no port may be a password that was put at the wrong place.
    let mut place = start;
    for node in address.split(['/', '?']).next().unwrap_or_default().split(',') {
        let name = node.find(']').unwrap_or(0);
        if let Some(colon) = node[name..].find(':').map(|colon| name + colon)
            && !node[colon + 1..].bytes().all(|byte| byte.is_ascii_digit())
        {
            return Some((place + colon + 1, argument.len()));
        }
        place += node.len() + 1;
    }
    None
}

/// What stays as it is in a printed address.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
/// The same for names, in which a `/` would end them.
const ENCODED_NAME: &AsciiSet = &ENCODED.add(b'/');
/// The same within brackets, where a `:` ends nothing.
const ENCODED_BRACKETED: &AsciiSet = &ENCODED_NAME.remove(b':');
/// How signs that have a meaning in an address are written.
const ESCAPES: &str = "percent-encode these in a name or value: `@` %40, `/` %2F, `:` %3A, `,` %2C, `=` %3D, `&` \
    %26, `%` %25";

/// One server on the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerNode {
    /// Host name or IP address.
    pub host: String,
    /// Port; `None` for the usual one of such servers.
    pub port: Option<u16>,
}

/// Why a text is not the address of servers. As a wrong address may hold a password anywhere, no message repeats any of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("{message}")]
pub struct ServerAddressProblem {
    message: &'static str,
    #[help]
    hint: &'static str,
}

/// What is wrong, and what to do about it.
fn problem<T>(message: &'static str, hint: &'static str) -> Result<T, ServerAddressProblem> {
    Err(ServerAddressProblem { message, hint })
}

impl ServerAddressProblem {
    /// What to do about it.
    pub fn hint(&self) -> String {
        self.hint.to_owned()
    }
}

impl ServerNode {
    /// `db1:3306`, with the usual port where none was named.
    pub fn shown(&self, default_port: u16) -> String {
        let port = self.port.unwrap_or(default_port);
        if self.host.contains(':') { format!("[{}]:{port}", self.host) } else { format!("{}:{port}", self.host) }
    }
}

/// The servers of an address, as they are written there.
fn written(nodes: &[ServerNode]) -> String {
    let node = |ServerNode { host, port }: &ServerNode| {
        let host = match host.contains(':') {
            true => format!("[{}]", percent_encoding::utf8_percent_encode(host, ENCODED_BRACKETED)),
            false => percent_encoding::utf8_percent_encode(host, ENCODED_NAME).to_string(),
        };
        port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"))
    };
    nodes.iter().map(node).collect::<Vec<_>>().join(",")
}

/// `HOST`, `HOST:PORT` or `[IPv6]:PORT`, several of them with commas between; none in an empty text.
fn nodes(text: &str) -> Result<Vec<ServerNode>, ServerAddressProblem> {
    if text.is_empty() { Ok(Vec::new()) } else { text.split(',').map(node).collect() }
}

fn node(text: &str) -> Result<ServerNode, ServerAddressProblem> {
    let (host, after) = match text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, after)) => (host, after),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let Some(host) = decoded(host)?.filter(|host| !host.contains(['[', ']', ','])) else {
        return problem(
            "a host in the address is empty, or none",
            "write an IPv6 address in brackets, as in `[::1]:PORT`",
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
        return problem("a port in the address is not a number from 1 to 65535", "write `HOST:PORT`");
    }
    Ok(ServerNode { host, port })
}

/// Whether two hexadecimal digits follow each `%`.
fn is_encoded(text: &str) -> bool {
    let mut escapes = text.split('%').skip(1);
    escapes.all(|after| after.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

/// What a part of an address stands for; an empty one counts as none.
fn decoded(text: &str) -> Result<Option<String>, ServerAddressProblem> {
    if !is_encoded(text) {
        return problem("the address holds a `%` that two hexadecimal digits do not follow", ESCAPES);
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(text) if !text.chars().any(char::is_control) => Ok(Some(text.into_owned()).filter(|text| !text.is_empty())),
        _ => problem("a part of the address is not printable text", ESCAPES),
    }
}

/// What follows the `?` of an address: names and what they stand for, each once.
fn parameters(query: &str) -> Result<Vec<(&str, Option<String>)>, ServerAddressProblem> {
    raw_parameters(query)?.into_iter().map(|(name, value)| Ok((name, decoded(value)?))).collect()
}

/// The same with values as they are written, for those in which signs of their own have a meaning.
fn raw_parameters(query: &str) -> Result<Vec<(&str, &str)>, ServerAddressProblem> {
    let mut parameters: Vec<(&str, &str)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let Some((name, value)) = pair.split_once('=') else {
            return problem("what follows the `?` of the address is not NAME=VALUE", ESCAPES);
        };
        if parameters.iter().any(|(seen, _)| *seen == name) {
            return problem("the address names a parameter twice", "name it once");
        }
        parameters.push((name, value));
    }
    Ok(parameters)
}

/// Writes the parameters that were given after the first `?`.
fn write_parameters<'a>(
    f: &mut std::fmt::Formatter<'_>,
    given: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> std::fmt::Result {
    let escaped = |value: String| percent_encoding::utf8_percent_encode(&value, ENCODED).to_string();
    write_raw_parameters(f, given.into_iter().map(|(name, value)| (name, value.map(escaped))))
}

/// The same with values in which all is escaped that must be.
fn write_raw_parameters<'a>(
    f: &mut std::fmt::Formatter<'_>,
    given: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> std::fmt::Result {
    let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
    for (index, (name, value)) in given.enumerate() {
        let before = if index == 0 { '?' } else { '&' };
        write!(f, "{before}{name}={value}")?;
    }
    Ok(())
}

/// `connect-timeout`, in seconds.
fn connect_timeout(value: Option<String>) -> Result<Option<u32>, ServerAddressProblem> {
    match value.and_then(|value| value.parse::<u32>().ok()).filter(|seconds| *seconds > 0) {
        None => problem(
            "the value of `connect-timeout` in the address is not a number of seconds",
            "write seconds, such as `connect-timeout=10`",
        ),
        seconds => Ok(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for arrival in [Arrival::Poisson, Arrival::Fixed] {
            assert_eq!(arrival.to_string().parse::<Arrival>().unwrap(), arrival);
        }
    }

    #[test]
    fn says_which_arrivals_there_are() {
        let error = "uniform".parse::<Arrival>().unwrap_err();
        assert_eq!(error.to_string(), "`uniform` is not a kind of arrival");
        assert_eq!(error.hint().as_deref(), Some("write `poisson` or `fixed`"));
    }

    #[test]
    fn pauses_are_read_in_all_forms() {
        let read = |text: &str| text.parse::<Pauses>().map_err(|error| error.to_string());
        assert_eq!(read("0"), Ok(Pauses::None));
        assert_eq!(read("5ms"), Ok(Pauses::Fixed { ns: 5_000_000 }));
        assert_eq!(read("5"), Ok(Pauses::Fixed { ns: 5_000_000_000 }), "seconds, as everywhere");
        assert_eq!(read("1ms..5ms"), Ok(Pauses::Uniform { min_ns: 1_000_000, max_ns: 5_000_000 }));
        assert_eq!(read("0..5ms"), Ok(Pauses::Uniform { min_ns: 0, max_ns: 5_000_000 }));
        assert_eq!(read("exp:2s"), Ok(Pauses::Exponential { mean_ns: 2_000_000_000 }));
        assert!(read("5ms..1ms").unwrap_err().contains("is longer than the longest"));
        for text in ["", "-1ms", "exp:", "1ms..", "..", "soon"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let odd = Pauses::Uniform { min_ns: 1_234_000_000, max_ns: 90_000_000_000 };
        assert_eq!(odd.to_string(), "1234ms..90", "no digit is lost");
        for text in ["0", "5ms", "1ms..5ms", "exp:2", "1234ms..90"] {
            assert_eq!(text.parse::<Pauses>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_password_is_never_printed() {
        let setting = Setting::from_command_line(Key::SysdbaPasswd, "tiger");
        assert_eq!(format!("{setting} | {setting:?}"), "SYSDBA_PASSWD=*** | SYSDBA_PASSWD=*** (command line)");
    }

    #[test]
    fn an_unknown_name_is_refused_with_its_origin() {
        let origin = Origin::File { file: "slob.conf".to_owned(), line: 3 };
        let error = Setting::new("UPDATE_PTC", "5", origin).unwrap_err();
        assert_eq!(error.to_string(), "slob.conf:3: unknown parameter `UPDATE_PTC`");
        assert_eq!(error.hint().as_deref(), Some("did you mean `UPDATE_PCT`?"));
    }
}

#[cfg(test)]
mod argument_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bare_number_is_schemas_and_key_value_is_a_setting() {
        assert_eq!("8".parse::<Assignment>().unwrap(), Assignment::Schemas(8));
        assert_eq!(
            "SCALE=1G".parse::<Assignment>().unwrap(),
            Assignment::Set(Setting::from_command_line(Key::Scale, "1G"))
        );
    }

    #[test]
    fn anything_else_is_refused_with_advice() {
        for (text, message, hint) in [
            (
                "IOPS",
                "`IOPS` is neither a number of schemas nor KEY=VALUE",
                "write a number such as `8`, or a parameter such as `UPDATE_PCT=20`",
            ),
            ("0", "`0` is not a number of schemas", "write a number from 1 to 4096"),
            ("5000", "`5000` is not a number of schemas", "write a number from 1 to 4096"),
            (
                "update_pct=20",
                "command line: unknown parameter `update_pct`",
                "did you mean `UPDATE_PCT`? Names are in capitals, as in a shell",
            ),
            (
                "vm=d8s",
                "command line: unknown parameter `vm`",
                "`--help` lists the parameters; a tag is given as `--tag KEY=VALUE`",
            ),
            (
                "DBA_PRIV_USER=a\nb",
                "the value of `DBA_PRIV_USER` holds a character that is not printable text",
                "type the value again; it may have been pasted with an invisible character",
            ),
        ] {
            let error = text.parse::<Assignment>().unwrap_err();
            assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (message, Some(hint)));
        }
    }

    #[test]
    fn secrets_are_masked_in_any_argument() {
        for (argument, shown) in [
            ("SYSDBA_PASSWD=tiger", "SYSDBA_PASSWD=***"),
            ("postgres://scott:ti@g/er@db:5432/x", "postgres://scott:***@db:5432/x"),
            ("--target=mysql://scott:tiger@db/x", "--target=mysql://scott:***@db/x"),
            ("postgres://db:5432/x", "postgres://db:5432/x"),
            ("postgres://a:1,b:2,[::1]:3,c/x?sslmode=require", "postgres://a:1,b:2,[::1]:3,c/x?sslmode=require"),
            ("postgres://u@[::1]:5432/x", "postgres://u@[::1]:5432/x"),
            ("--target=postgres://h/d?user=u&password=ti&ger", "--target=postgres://h/d?user=u&password=***"),
            ("postgres://h/d?password=a://b@c", "postgres://h/d?password=***"),
            ("postgres://u:mypassword=x@h/d", "postgres://u:***"),
            ("postgres:u:tiger@h/d", "postgres:u:***@h/d"),
            ("--target=POSTGRES:/u:tiger@h/d", "--target=POSTGRES:/u:***@h/d"),
            ("postgresql://u:ti?ger@h", "postgresql://u:***@h"),
            ("postgres://u:tiger", "postgres://u:***"),
            ("postgres://h:1,u:tig/er", "postgres://h:1,u:***"),
            ("host=h PASSWORD=tiger user=u", "host=h PASSWORD=***"),
            ("dir:/u01/plimsoll", "dir:/u01/plimsoll"),
            ("UPDATE_PCT=5", "UPDATE_PCT=5"),
        ] {
            assert_eq!(without_secrets(argument), shown);
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".*") {
            let _ = text.parse::<Assignment>();
            let _ = without_secrets(&text);
        }
    }
}
