//! Why a text is not the address of PostgreSQL servers.

use miette::Diagnostic;

use super::parse::PARAMETERS;

/// How signs that have a meaning in an address are written in this one, which may hold a password.
const ESCAPES: &str = "within a name, a password or a value write `@` as `%40`, `/` as `%2F`, `:` as `%3A`, `,` as `%2C`, \
                       `=` as `%3D`, `&` as `%26`, `%` as `%25`";

/// What is wrong with an address. An address may hold a password, and a wrong one may hold it anywhere: so no message repeats
/// any text of it but the plain name of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum AddressProblem {
    /// No `postgres://`.
    #[error("the address of a PostgreSQL server begins with `postgres://`")]
    #[diagnostic(help("write `postgres://USER@HOST:PORT/DATABASE`"))]
    NotAnAddress,
    /// An `@` besides the one that ends the password.
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
    #[diagnostic(help("write `postgres://USER@HOST:PORT/DATABASE`; a `/` within a password is written `%2F`"))]
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
    #[diagnostic(help("the parameters are {}", PARAMETERS.join(", ")))]
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
