//! Why a text is not the address of PostgreSQL servers.

use super::parse::PARAMETERS;

/// What is wrong with an address. An address may hold a password, and a wrong one may hold it anywhere: so no message repeats
/// any text of it but the plain name of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum AddressProblem {
    /// No `postgres://`.
    #[error("the address of a PostgreSQL server begins with `postgres://`")]
    NotAnAddress,
    /// An `@` besides the one that ends the password.
    #[error("the address holds an `@` that does not stand before its hosts")]
    StrayAt,
    /// A `%` that encodes nothing.
    #[error("the {part} in the address holds a `%` that two hexadecimal digits do not follow")]
    Percent { part: &'static str },
    /// Control characters, or bytes that are not UTF-8.
    #[error("the {part} in the address is not printable text")]
    NotText { part: &'static str },
    /// An IPv6 address without its brackets.
    #[error("an IPv6 address in the address is empty or not in brackets")]
    Brackets,
    /// A host that cannot be one.
    #[error("a host in the address holds a `,`")]
    Comma,
    /// A port that is no port.
    #[error("a port in the address is not a number from 1 to 65535")]
    Port,
    /// As many ports as hosts, or one, but not this.
    #[error("the address has {ports} ports for {hosts} hosts")]
    PortCount { hosts: usize, ports: usize },
    /// A parameter without `=`, or with two.
    #[error("what follows the `?` of the address is not NAME=VALUE")]
    Parameter,
    /// A parameter that is not known; without its name where that is no word.
    #[error("the address has {}", shown_parameter(name))]
    UnknownParameter { name: Option<String> },
    /// A parameter that is there twice, or that stands before the `?` as well.
    #[error("the address names `{name}` twice")]
    Twice { name: &'static str },
    /// A value that its parameter does not accept.
    #[error("the value of `{name}` in the address is not {accepted}")]
    Value { name: &'static str, accepted: &'static str },
}

fn shown_parameter(name: &Option<String>) -> String {
    name.as_ref().map_or_else(|| "an unknown parameter".to_owned(), |name| format!("the unknown parameter `{name}`"))
}

impl AddressProblem {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotAnAddress => "write `postgres://USER@HOST:PORT/DATABASE`".to_owned(),
            Self::StrayAt | Self::Percent { .. } | Self::NotText { .. } | Self::Comma | Self::Parameter => {
                "within a name, a password or a value write `@` as `%40`, `/` as `%2F`, `:` as `%3A`, `,` as `%2C`, `=` as \
                 `%3D`, `&` as `%26`, `%` as `%25`"
                    .to_owned()
            }
            Self::Port => "write `postgres://USER@HOST:PORT/DATABASE`; a `/` within a password is written `%2F`".to_owned(),
            Self::Brackets => "write it as in `postgres://USER@[::1]:5432/DATABASE`".to_owned(),
            Self::PortCount { .. } => "give each host its port, or all of them one".to_owned(),
            Self::UnknownParameter { .. } => format!("the parameters are {}", PARAMETERS.join(", ")),
            Self::Twice { .. } => "name it once".to_owned(),
            Self::Value { name: "sslmode", .. } => {
                "they are disable, allow, prefer, require, verify-ca and verify-full".to_owned()
            }
            Self::Value { .. } => "write seconds, such as `connect_timeout=10`".to_owned(),
        }
    }
}
