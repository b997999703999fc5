//! What is asked and what was seen, as types: everything that the other crates speak of.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod config;
pub mod live;
pub mod plain;
pub mod platforms;
pub mod record;
pub mod shown;
mod text;
pub mod trace;
pub mod units;
pub mod workload;

/// What to do about an error. An empty help is none: what `miette` derives cannot be without help at times only.
pub fn hint<E: miette::Diagnostic + ?Sized>(error: &E) -> Option<String> {
    error.help().map(|help| help.to_string()).filter(|help| !help.is_empty())
}
