//! `plimsoll table`.

use std::io::Write;

use clap::{Args, ValueEnum};

use super::arguments::RunsArgs;
use super::exit::{Exit, Failure};
use super::say;
use crate::record::{Run, store};
use crate::report::{self, Format, Style};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll table last                          as SLOB's awr_info, or for io
  plimsoll table 20261120-10 20261120-11 --style matrix
  plimsoll table last --style matrix --format markdown    for a document
  plimsoll table last --format csv             for a spreadsheet
  plimsoll table last --format html > table.html";

/// Arguments of `plimsoll table`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Runs: id, beginning of an id, name, directory, or `last`
    #[arg(value_name = "RUN", required = true)]
    names: Vec<String>,

    /// Which columns [default: io if all runs are of raw storage, else awr]
    #[arg(long, value_enum, help_heading = "Output")]
    style: Option<Columns>,

    /// How they are written
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Writing,

    #[command(flatten)]
    runs: RunsArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Columns {
    /// Those of SLOB's awr_info
    Awr,
    /// Tags, I/O per second, and the histogram of single-block reads
    Matrix,
    /// Requests, bytes and times of raw storage, and whose limit they are
    Io,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Writing {
    /// Pipe-delimited, as the readers of each style expect it
    #[default]
    Text,
    /// A Markdown table
    Markdown,
    /// Comma-separated, numbers unrounded
    Csv,
    /// A list of objects, numbers unrounded
    Json,
    /// A page for a browser that carries all it needs
    Html,
}

pub(super) fn carry_out(arguments: &Arguments) -> Result<Exit, Failure> {
    let store = arguments.runs.store();
    let runs: Vec<Run> =
        arguments.names.iter().map(|name| store::load(&store.find(name)?)).collect::<Result<_, _>>()?;
    let style = match arguments.style {
        None => Style::usual(&runs),
        Some(Columns::Awr) => Style::AwrInfo,
        Some(Columns::Matrix) => Style::Matrix,
        Some(Columns::Io) => Style::Requests,
    };
    let format = match arguments.format {
        Writing::Text => Format::Text,
        Writing::Markdown => Format::Markdown,
        Writing::Csv => Format::Csv,
        Writing::Json => Format::Json,
        Writing::Html => Format::Html,
    };
    let mut out = say::output();
    report::table(&mut out, &runs, style, format)?;
    out.flush()?;
    Ok(Exit::Done)
}
