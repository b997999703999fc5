//! What addresses of servers are made of, whoever made the server: hosts with ports, and parts in which signs are escaped.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};

/// What stays as it is in a printed address.
pub(super) const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
/// The same for names, in which a `/` would end them.
pub(super) const ENCODED_NAME: &AsciiSet = &ENCODED.add(b'/');
/// The same within brackets, where a `:` ends nothing.
pub(super) const ENCODED_BRACKETED: &AsciiSet = &ENCODED_NAME.remove(b':');
/// How signs that have a meaning in an address are written.
pub(super) const ESCAPES: &str = "within a name or a value write `@` as `%40`, `/` as `%2F`, `:` as `%3A`, `,` as `%2C`, `=` as \
                                  `%3D`, `&` as `%26`, `%` as `%25`";

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
pub(super) fn problem<T>(message: &'static str, hint: &'static str) -> Result<T, ServerAddressProblem> {
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
pub(super) fn written(nodes: &[ServerNode]) -> String {
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
pub(super) fn nodes(text: &str) -> Result<Vec<ServerNode>, ServerAddressProblem> {
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
pub(super) fn is_encoded(text: &str) -> bool {
    let mut escapes = text.split('%').skip(1);
    escapes.all(|after| after.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

/// What a part of an address stands for; an empty one counts as none.
pub(super) fn decoded(text: &str) -> Result<Option<String>, ServerAddressProblem> {
    if !is_encoded(text) {
        return problem("the address holds a `%` that two hexadecimal digits do not follow", ESCAPES);
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(text) if !text.chars().any(char::is_control) => Ok(Some(text.into_owned()).filter(|text| !text.is_empty())),
        _ => problem("a part of the address is not printable text", ESCAPES),
    }
}

/// What follows the `?` of an address: names and what they stand for, each once.
pub(super) fn parameters(query: &str) -> Result<Vec<(&str, Option<String>)>, ServerAddressProblem> {
    raw_parameters(query)?.into_iter().map(|(name, value)| Ok((name, decoded(value)?))).collect()
}

/// The same with values as they are written, for those in which signs of their own have a meaning.
pub(super) fn raw_parameters(query: &str) -> Result<Vec<(&str, &str)>, ServerAddressProblem> {
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
pub(super) fn write_parameters<'a>(
    f: &mut std::fmt::Formatter<'_>,
    given: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> std::fmt::Result {
    let escaped = |value: String| percent_encoding::utf8_percent_encode(&value, ENCODED).to_string();
    write_raw_parameters(f, given.into_iter().map(|(name, value)| (name, value.map(escaped))))
}

/// The same with values in which all is escaped that must be.
pub(super) fn write_raw_parameters<'a>(
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
pub(super) fn connect_timeout(value: Option<String>) -> Result<Option<u32>, ServerAddressProblem> {
    match value.and_then(|value| value.parse::<u32>().ok()).filter(|seconds| *seconds > 0) {
        None => problem(
            "the value of `connect-timeout` in the address is not a number of seconds",
            "write seconds, such as `connect-timeout=10`",
        ),
        seconds => Ok(seconds),
    }
}
