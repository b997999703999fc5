//! `plimsoll table`.

use std::io::Write;

use clap::{Args, ValueEnum};

use super::arguments::{RunsArgs, Taken};
use super::exit::{Exit, Failure};
use super::say;
use model::record::Run;
use report::{self, Format, Style};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll table last                          as awr_info, or for io or orders
  plimsoll table vm=d8s vm=d16s --style matrix    all runs with these tags
  plimsoll table --runs /u01/plimsoll-runs     all runs in that directory
  plimsoll table last --style matrix --format markdown    for a document
  plimsoll table last --format csv             for a spreadsheet
  plimsoll table last --format html > table.html";

/// Arguments of `plimsoll table`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Runs: id, beginning of ids, name, tag as in `vm=d8s`, directory, or `last` [default: all]
    ///
    /// All matching runs are used.
    #[arg(value_name = "RUN")]
    names: Vec<String>,

    /// Columns [default: io for raw storage, orders for order entry, else awr]
    #[arg(long, value_enum, help_heading = "Output")]
    style: Option<Columns>,

    /// Output format
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
    /// Transactions of users, their times and their connections
    Orders,
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
    /// A self-contained page for a browser
    Html,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let loaded = Taken::default().load_all(&arguments.runs.store(), &arguments.names)?;
    let runs: Vec<Run> = loaded.into_iter().map(|(_, run)| run).collect();
    let style = match arguments.style {
        None => Style::usual(&runs),
        Some(Columns::Awr) => Style::AwrInfo,
        Some(Columns::Matrix) => Style::Matrix,
        Some(Columns::Io) => Style::Requests,
        Some(Columns::Orders) => Style::Transactions,
    };
    let format = match arguments.format {
        Writing::Text => Format::Text,
        Writing::Markdown => Format::Markdown,
        Writing::Csv => Format::Csv,
        Writing::Json => Format::Json,
        Writing::Html => Format::Html,
    };
    let mut out = if matches!(format, Format::Json) { say::json_output() } else { say::output() };
    report::table(&mut out, &runs, style, format)?;
    out.flush()?;
    let counts_blocks =
        |run: &Run| run.imported.is_some() && run.steps.iter().any(|step| step.counters.physical_read_blocks.is_some());
    if style == Style::Matrix && runs.iter().any(counts_blocks) {
        say::note(
            "IOPS_RESULT of Oracle's reports counts blocks, `plimsoll trend` requests, of which one may read many blocks",
        );
    }
    Ok(Exit::Done)
}
