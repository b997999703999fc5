//! Text, tables and CSV from a run and its findings.
//!
//! Everything writes plain text to any [`std::io::Write`]; colour is the caller's. Numbers come from
//! [`analysis::Figures`], so that the same figure reads the same everywhere.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod answer;
mod buckets;
mod calibration;
mod cases;
mod comma;
mod comparison;
pub mod csv;
pub mod document;
mod experiment;
pub mod export;
mod facts;
pub mod fio_json;
mod first_screen;
pub mod fit;
mod grid;
pub mod history;
pub mod hlog;
pub mod html;
mod interference;
pub mod junit;
mod live;
pub mod markdown;
pub mod openmetrics;
mod operation_parts;
pub mod oratcptest;
pub mod orion;
mod paper;
pub mod platforms;
pub mod ranking;
mod screen;
mod sections;
mod sheet;
pub mod swingbench;
mod table;
mod text;
pub mod trace;
pub mod trend;
mod words;

pub use cases::Suite;
pub use comparison::comparison;
pub use experiment::{NotMeasured, experiment};
pub use interference::interference;
pub use live::{interval_line, interval_words, transactions_line, transactions_words};
pub use sections::failure::failure_rows;
pub use table::{Format, Style, table};
pub use text::{Detail, text};
pub use words::{plain, wrap};

#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod requests_tests;
#[cfg(test)]
mod servers_tests;
#[cfg(test)]
mod tests;
