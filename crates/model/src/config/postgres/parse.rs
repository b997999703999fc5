//! Reading addresses, as libpq does ("Connection URIs" in PostgreSQL's manual), but stricter where a slip of the pen could
//! send a password to a wrong place.

use std::path::PathBuf;
use std::str::FromStr;

use miette::Diagnostic;
use percent_encoding::percent_decode_str;

use super::{PostgresAddress, PostgresNode, TlsMode, TlsOptions};
use crate::config::is_encoded;

/// What may follow the `?`.
pub(super) const PARAMETERS: [&str; 10] =
    ["host", "port", "user", "password", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout"];

impl FromStr for PostgresAddress {
    type Err = AddressProblem;

    /// Reads `postgres://…` and `postgresql://…`.
    fn from_str(text: &str) -> Result<Self, AddressProblem> {
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        let rest = rest.ok_or(AddressProblem::NotAnAddress)?;
        // As libpq: a user stands there if an `@` comes before the first `/`.
        let (login, rest) = match rest.find(['@', '/']) {
            Some(at) if rest[at..].starts_with('@') => (&rest[..at], &rest[at + 1..]),
            _ => ("", rest),
        };
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        if !password.is_empty() {
            return Err(AddressProblem::Password);
        }
        // Libpq would take what is left of such a password for a host or a database, and disclose it to the server there.
        if rest.contains('@') || user.contains('?') {
            return Err(AddressProblem::StrayAt);
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let mut nodes = authority.split(',').map(node).collect::<Result<Vec<_>, _>>()?;
        let parameters = Parameters::read(query)?;

        if let Some(hosts) = parameters.text("host")? {
            if nodes.len() > 1 || !nodes[0].host.is_empty() {
                return Err(AddressProblem::Twice { name: "host" });
            }
            let port = nodes[0].port;
            nodes = PostgresNode::list(&hosts, "")?;
            nodes.iter_mut().for_each(|node| node.port = port);
        }
        if let Some(ports) = parameters.text("port")? {
            if nodes.iter().any(|node| node.port.is_some()) {
                return Err(AddressProblem::Twice { name: "port" });
            }
            let hosts: Vec<&str> = nodes.iter().map(|node| node.host.as_str()).collect();
            nodes = PostgresNode::list(&hosts.join(","), &ports)?;
        }
        Ok(Self {
            nodes,
            user: parameters.or_before("user", user)?,
            database: parameters.or_before("dbname", database)?,
            tls: TlsOptions {
                mode: parameters.text("sslmode")?.map(|mode| tls_mode(&mode)).transpose()?,
                root_certificates: parameters.text("sslrootcert")?.map(|roots| roots.as_str().into()),
                certificate: parameters.text("sslcert")?.map(PathBuf::from),
                key: parameters.text("sslkey")?.map(PathBuf::from),
            },
            connect_timeout_s: match parameters.text("connect_timeout")? {
                Some(seconds) => connect_timeout(&seconds)?,
                None => None,
            },
        })
    }
}

/// What `text` stands for. `part` is what it is, such as `user`.
fn decoded(text: &str, part: &'static str) -> Result<String, AddressProblem> {
    if !is_encoded(text) {
        return Err(AddressProblem::Percent { part });
    }
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| AddressProblem::NotText { part })?;
    Ok(decoded.into_owned())
}

/// `HOST`, `HOST:PORT`, `:PORT` or nothing.
fn node(text: &str) -> Result<PostgresNode, AddressProblem> {
    let (name, after) = match text.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((name, after)) if !name.is_empty() && (after.is_empty() || after.starts_with(':')) => (name, after),
            _ => return Err(AddressProblem::Brackets),
        },
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let after = after.strip_prefix(':').unwrap_or(after);
    if after.contains(':') && !text.starts_with('[') {
        return Err(AddressProblem::Brackets);
    }
    Ok(PostgresNode { host: host(&decoded(name, "host")?)?, port: port(after)? })
}

pub(super) fn host(text: &str) -> Result<String, AddressProblem> {
    if text.contains(',') {
        return Err(AddressProblem::Comma);
    }
    printable(text.to_owned(), "host")
}

pub(super) fn port(text: &str) -> Result<Option<u16>, AddressProblem> {
    // `parse` alone would accept a sign.
    match text.parse::<u16>() {
        _ if text.is_empty() => Ok(None),
        Ok(port @ 1..) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Some(port)),
        _ => Err(AddressProblem::Port),
    }
}

fn tls_mode(text: &str) -> Result<TlsMode, AddressProblem> {
    TlsMode::from_name(text).ok_or(AddressProblem::Value { name: "sslmode", accepted: "one of its modes" })
}

/// To libpq nought and less mean to wait for ever; that nobody should, so they mean the usual time.
fn connect_timeout(text: &str) -> Result<Option<u32>, AddressProblem> {
    match text.parse::<i32>() {
        Ok(seconds) => Ok(u32::try_from(seconds).ok().filter(|seconds| *seconds > 0)),
        Err(_) => Err(AddressProblem::Value { name: "connect_timeout", accepted: "a whole number of seconds" }),
    }
}

fn printable(text: String, part: &'static str) -> Result<String, AddressProblem> {
    if text.chars().any(char::is_control) { Err(AddressProblem::NotText { part }) } else { Ok(text) }
}

/// What follows the `?`, still encoded.
struct Parameters<'a>(Vec<(&'static str, &'a str)>);

impl<'a> Parameters<'a> {
    fn read(query: &'a str) -> Result<Self, AddressProblem> {
        let mut given: Vec<(&'static str, &'a str)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(AddressProblem::Parameter)?;
            if value.contains('=') {
                return Err(AddressProblem::Parameter);
            }
            let Some(known) = PARAMETERS.into_iter().find(|known| *known == name) else {
                let is_word = name.len() <= 32 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
                return Err(AddressProblem::UnknownParameter { name: is_word.then(|| name.to_owned()) });
            };
            if given.iter().any(|(earlier, _)| *earlier == known) {
                return Err(AddressProblem::Twice { name: known });
            }
            if known == "password" && !value.is_empty() {
                return Err(AddressProblem::Password);
            }
            given.push((known, value));
        }
        Ok(Self(given))
    }

    /// The value of a parameter; an empty one counts as none, as for libpq.
    fn text(&self, name: &'static str) -> Result<Option<String>, AddressProblem> {
        let value = self.0.iter().find(|(given, _)| *given == name).map_or("", |(_, value)| value);
        readable(value, name)
    }

    /// The same where it may stand before the `?` instead.
    fn or_before(&self, name: &'static str, before: &str) -> Result<Option<String>, AddressProblem> {
        match (readable(before, name)?, self.text(name)?) {
            (Some(_), Some(_)) => Err(AddressProblem::Twice { name }),
            (one, other) => Ok(one.or(other)),
        }
    }
}

fn readable(encoded: &str, name: &'static str) -> Result<Option<String>, AddressProblem> {
    let text = printable(decoded(encoded, name)?, name)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// How signs that have a meaning in an address are written in this one.
const ESCAPES: &str = "percent-encode these in a name or value: `@` %40, `/` %2F, `:` %3A, `,` %2C, `=` %3D, `&` \
    %26, `%` %25";

/// What is wrong with an address. A wrong one may hold a password anywhere, so no message repeats any text of it but the plain
/// name of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum AddressProblem {
    /// No `postgres://`.
    #[error("the address of a PostgreSQL server begins with `postgres://`")]
    #[diagnostic(help("write `postgres://USER@HOST:PORT/DATABASE`"))]
    NotAnAddress,
    /// A password, in either of the places that libpq reads it from.
    #[error("the address holds a password, which every user of this machine sees in the list of processes")]
    #[diagnostic(help(
        "write `postgres://USER@HOST/DATABASE` and give the password in PGPASSWORD or in `~/.pgpass` (`chmod 600`)"
    ))]
    Password,
    /// An `@` besides the one that ends the user.
    #[error("the address holds an `@` that does not stand before its hosts")]
    #[diagnostic(help("{ESCAPES}"))]
    StrayAt,
    /// A `%` that encodes nothing.
    #[error("the {part} in the address holds a `%` that two hexadecimal digits do not follow")]
    #[diagnostic(help("{ESCAPES}"))]
    Percent { part: &'static str },
    /// Control characters, or bytes that are not UTF-8.
    #[error("the {part} in the address is not printable text")]
    #[diagnostic(help("{ESCAPES}"))]
    NotText { part: &'static str },
    /// An IPv6 address without its brackets.
    #[error("an IPv6 address in the address is empty or not in brackets")]
    #[diagnostic(help("write it as in `postgres://USER@[::1]:5432/DATABASE`"))]
    Brackets,
    /// A host that cannot be one.
    #[error("a host in the address holds a `,`")]
    #[diagnostic(help("{ESCAPES}"))]
    Comma,
    /// A port that is no port.
    #[error("a port in the address is not a number from 1 to 65535")]
    #[diagnostic(help("write `postgres://USER@HOST:PORT/DATABASE`"))]
    Port,
    /// As many ports as hosts, or one, but not this.
    #[error("the address has {ports} ports for {hosts} hosts")]
    #[diagnostic(help("give each host its port, or all of them one"))]
    PortCount { hosts: usize, ports: usize },
    /// A parameter without `=`, or with two.
    #[error("what follows the `?` of the address is not NAME=VALUE")]
    #[diagnostic(help("{ESCAPES}"))]
    Parameter,
    /// A parameter that is not known; without its name where that is no word.
    #[error("the address has {}", shown_parameter(name))]
    #[diagnostic(help("the parameters are {}", PARAMETERS.into_iter().filter(|name| *name != "password").collect::<Vec<_>>().join(", ")))]
    UnknownParameter { name: Option<String> },
    /// A parameter that is there twice, or that stands before the `?` as well.
    #[error("the address names `{name}` twice")]
    #[diagnostic(help("name it once"))]
    Twice { name: &'static str },
    /// A value that its parameter does not accept.
    #[error("the value of `{name}` in the address is not {accepted}")]
    #[diagnostic(help("{}", values_of(name)))]
    Value { name: &'static str, accepted: &'static str },
}

fn shown_parameter(name: &Option<String>) -> String {
    name.as_ref().map_or_else(|| "an unknown parameter".to_owned(), |name| format!("the unknown parameter `{name}`"))
}

fn values_of(name: &str) -> &'static str {
    match name {
        "sslmode" => "they are disable, allow, prefer, require, verify-ca and verify-full",
        _ => "write seconds, such as `connect_timeout=10`",
    }
}
