//! `plimsoll orders setup`.

use std::io::{self, Write};
use std::num::NonZero;

use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};

use super::with::with;
use crate::cli::arguments::{Format, FormatArgs, ProgressArgs, TargetArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::servers::ServerArgs;
use crate::cli::{fresh_seed, say, setting_up};
use crate::databases;
use model::units::{Bytes, Nanos, group_thousands};
use targets::database::{DatabaseOptions, Replace, SetupReport};
use targets::orders::{Indexes, OrdersDatabase, OrdersRequest};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll orders setup --scale 0.1 --target pg:/u01/pgdata
  plimsoll orders setup --scale 10 --target postgres://bench@db1/bench
  plimsoll orders setup --partitions 32 --target mysql://bench@db1/bench
  plimsoll orders setup --scale 100 --target pg:/u01/pgdata --dry-run

Scale 1 is a million customers: about 15.8 million rows. Whoever is interrupted goes on by the same command. At the end all parts, \
rows and values are looked at; exit code 1: something is not as it was to be.";

/// Streams where nobody says otherwise are one for each processor, up to this many.
const MAX_OWN_STREAMS: u32 = 16;

/// Arguments of `plimsoll orders setup`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    target: TargetArgs,

    /// Size of the data: 1 is a million customers; from 0.001 to 10000
    #[arg(long, value_name = "N", default_value_t = 1.0, allow_hyphen_values = true, help_heading = "Data")]
    scale: f64,

    /// Hash partitions of each large table, from 2 to 1024 [default: tables are whole]
    #[arg(long, value_name = "N", help_heading = "Data")]
    partitions: Option<u32>,

    /// Which indexes there are
    #[arg(long, value_enum, value_name = "WHICH", default_value = "all", help_heading = "Data")]
    indexes: IndexesChoice,

    /// Connections that load and build indexes [default: one for each processor here, up to 16]
    #[arg(long, value_name = "N", help_heading = "Data")]
    streams: Option<NonZero<u32>>,

    /// Seed of all rows [default: that of the data that are there, else a fresh one]
    #[arg(long, value_name = "N", help_heading = "Data")]
    seed: Option<u64>,

    /// Remove order entry that is there, and make it again
    #[arg(long, help_heading = "Data")]
    replace: bool,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    progress: ProgressArgs,

    /// Only say what would be done
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IndexesChoice {
    /// Keys, foreign keys and all others: 27 indexes
    All,
    /// Keys and foreign keys
    Keys,
    /// None, but for those without which the server cannot keep a table
    None,
}

impl Arguments {
    fn request(&self) -> OrdersRequest {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let own = u32::try_from(processors).unwrap_or(MAX_OWN_STREAMS).min(MAX_OWN_STREAMS);
        OrdersRequest {
            scale: self.scale,
            // 0 is how data without partitions are described; who asks for it means no partitions.
            partitions: self.partitions.unwrap_or(0),
            indexes: match self.indexes {
                IndexesChoice::All => Indexes::All,
                IndexesChoice::Keys => Indexes::Keys,
                IndexesChoice::None => Indexes::None,
            },
            streams: self.streams.map_or(own, NonZero::get),
            seed: self.seed.unwrap_or_else(fresh_seed),
            is_seed_asked: self.seed.is_some(),
            replace: if self.replace { Replace::Replace } else { Replace::Refuse },
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let request = arguments.request();
    request.check()?;
    let address = arguments.target.address();
    let options = DatabaseOptions { dry_run: arguments.dry_run, ..arguments.server.options(address)? };
    let database = databases::orders(address, &options)?;
    interrupt.judge(with(database, |database| set_up(arguments, &request, database, &interrupt)))
}

fn set_up(
    arguments: &Arguments,
    request: &OrdersRequest,
    database: &mut dyn OrdersDatabase,
    interrupt: &Interrupt,
) -> Result<Exit, Failure> {
    let plan = database.plan_setup(request, interrupt.flag())?;
    let verbosity = arguments.progress.verbosity();
    let Some(report) = setting_up::run(plan, arguments.dry_run, verbosity, interrupt)? else { return Ok(Exit::Done) };
    let is_valid = report.document["validation"]["is_valid"] != Value::Bool(false);
    match arguments.format.format() {
        Format::Json => say::json(&document(request, report))?,
        Format::Text => {
            let mut out = say::output();
            write_report(&mut out, request, &report)?;
            out.flush()?;
        }
    }
    Ok(if is_valid { Exit::Done } else { Exit::NotMet })
}

fn document(request: &OrdersRequest, report: SetupReport) -> Value {
    let document = json!({
        "scale": request.scale,
        "partitions": request.partitions,
        "indexes": request.indexes,
        "rows_written": report.rows,
    });
    setting_up::document(document, report)
}

fn write_report(out: &mut impl Write, request: &OrdersRequest, report: &SetupReport) -> io::Result<()> {
    let (place, words) = (&report.place, request.words());
    if !report.created {
        return writeln!(out, "Already there: {words} in {place}; nothing was written.");
    }
    let loading: u64 = report.phases.iter().filter(|(phase, _)| phase.is_loading()).map(|(_, ns)| ns).sum();
    let (seconds, rows) = ((loading as f64 / 1e9).max(1e-9), report.rows.unwrap_or(0) as f64);
    writeln!(out, "Set up {words} in {place} in {}, seed {}.", Nanos(report.elapsed_ns), report.seed)?;
    writeln!(
        out,
        "Loaded {} rows, {}, at {} rows/s, {:.0} MB/s.",
        group_thousands(rows),
        Bytes(report.bytes_written),
        group_thousands(rows / seconds),
        report.bytes_written as f64 / 1e6 / seconds
    )?;
    writeln!(out, "{}\n", setting_up::phases(report))?;
    write_validation(out, &report.document["validation"])
}

/// The parts by their kinds, and every figure.
fn write_validation(out: &mut impl Write, validation: &Value) -> io::Result<()> {
    let none = Vec::new();
    let checks = validation["checks"].as_array().unwrap_or(&none);
    let text = |check: &Value, field: &str| check[field].as_str().unwrap_or_default().to_owned();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["What", "Name", "State", "Expected", "Found"]);
    for kind in ["table", "key", "index", "foreign_key", "check", "sequence"] {
        let of_kind: Vec<&Value> = checks.iter().filter(|check| check["what"] == kind).collect();
        let valid = of_kind.iter().filter(|check| check["state"] == "valid").count();
        if !of_kind.is_empty() {
            let state = if valid == of_kind.len() { "valid" } else { "missing" };
            let name = if kind == "index" { "indexes".to_owned() } else { format!("{}s", kind.replace('_', " ")) };
            table.add_row(["parts", &name, state, &of_kind.len().to_string(), &valid.to_string()]);
        }
    }
    for check in checks {
        let is_figure = !check["expected"].is_null();
        if is_figure || check["state"] != "valid" {
            table.add_row(["what", "name", "state", "expected", "found"].map(|field| text(check, field)));
        }
    }
    writeln!(out, "{table}")?;
    let wrong = checks.iter().filter(|check| check["state"] != "valid").count();
    match wrong {
        0 => writeln!(out, "\nAll {} checks are valid.", checks.len()),
        _ => writeln!(out, "\n{wrong} of {} checks are not valid.", checks.len()),
    }
}
