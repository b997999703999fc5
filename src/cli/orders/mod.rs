//! `plimsoll orders`.

mod audit;
mod load;
mod verify;

use std::io;
use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};

use super::exit::{Exit, Failure};
use crate::cli::arguments::{Format, FormatArgs, Measured, ProgressArgs, Rate, TargetArgs};
use crate::cli::servers::ServerArgs;
use crate::cli::{Interrupt, RemovalArgs, fresh_seed, say, setting_up, sheets};
use crate::databases;
use load::LoadArgs;
use model::config::io::RateRange;
use model::config::{MAX_SESSIONS, TargetAddress, ThreadList};
use model::units::{Bytes, Nanos, group_thousands};
use targets::database::{DatabaseOptions, Replace, SetupReport};
use targets::orders::{Indexes, OrdersDatabase, OrdersRequest};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll orders setup --scale 0.1 --target pg:/u01/pgdata
  plimsoll orders setup --scale 10 --target postgres://bench@db1/bench
  plimsoll orders run --users 16 --duration 60 --target pg:/u01/pgdata
  plimsoll orders verify --target pg:/u01/pgdata
  plimsoll orders drop --target postgres://bench@db1/bench --dry-run";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create the data: customers, products, stocks and orders
    #[command(after_long_help = SETUP_EXAMPLES)]
    Setup(SetupArguments),
    /// Measure one load of users
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Measure several loads in turn and find the largest that the target sustains
    #[command(after_long_help = SWEEP_EXAMPLES)]
    Sweep(SweepArguments),
    /// Audit the data: totals, stock, keys, and that nothing acknowledged is missing
    #[command(after_long_help = verify::EXAMPLES)]
    Verify(verify::Arguments),
    /// Show what data exists
    #[command(after_long_help = INFO_EXAMPLES)]
    Info(InfoArguments),
    /// Remove the data
    #[command(after_long_help = DROP_EXAMPLES)]
    Drop(DropArguments),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Setup(arguments) => run_setup(&arguments),
            Self::Run(arguments) => self::run(&arguments),
            Self::Sweep(arguments) => run_sweep(&arguments),
            Self::Verify(arguments) => verify::run(&arguments),
            Self::Info(arguments) => run_info(&arguments),
            Self::Drop(arguments) => run_drop(&arguments),
        }
    }
}

/// Does something with a database and leaves it however that ends.
fn with<T>(
    database: Box<dyn OrdersDatabase>,
    work: impl FnOnce(&mut dyn OrdersDatabase) -> Result<T, Failure>,
) -> Result<T, Failure> {
    sheets::then_leave(database, |database| work(database), OrdersDatabase::close)
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  plimsoll orders sweep --users 1,2,4,8,16,32 --duration 30
  plimsoll orders sweep --users 1..64 --limit p99=20ms
  plimsoll orders sweep --users 64 --rate 100,200,400";

/// Arguments of `plimsoll orders sweep`.
#[derive(Debug, Args)]
pub(super) struct SweepArguments {
    /// Users, one step each: 1,2,4 or 1,2,…,64 or 1..64
    #[arg(short, long, value_name = "N,N,...", help_heading = "Load")]
    users: ThreadList,

    /// Start transactions at each of these rates over all users (open loop), one step each: 100,200,400
    #[arg(long, value_name = "N,N,...", help_heading = "Load")]
    rate: Option<RateRange>,

    #[command(flatten)]
    load: LoadArgs,
}

fn run_sweep(arguments: &SweepArguments) -> Result<Exit, Failure> {
    let ThreadList(users) = &arguments.users;
    let rates = match &arguments.rate {
        Some(RateRange::Between { lowest, highest }) => {
            let failure = Failure::new("`--rate`: order entry has no search for its maximum rate");
            return Err(failure.with_hint(format!("write the rates to be measured: `--rate {lowest},{highest}`")));
        }
        Some(RateRange::Each(rates)) => rates.clone(),
        None => Vec::new(),
    };
    arguments.load.run(users.clone(), rates, None)
}

const DROP_EXAMPLES: &str = "\
Examples:
  plimsoll orders drop --target pg:/u01/pgdata --dry-run
  plimsoll orders drop --target postgres://bench@db1/bench

Only what set-up made is removed. A private server (`pg:DIR`, `my:DIR`) is removed whole if it holds no other data of \
Plimsoll.";

/// Arguments of `plimsoll orders drop`.
#[derive(Debug, Args)]
pub(super) struct DropArguments {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    removal: RemovalArgs,
}

fn run_drop(arguments: &DropArguments) -> Result<Exit, Failure> {
    let address = arguments.target.address();
    let options = arguments.server.options(address)?;
    let interrupt = Interrupt::listen()?;
    interrupt.judge(with(databases::orders(address, &options)?, |database| {
        let plan = database.plan_drop(interrupt.flag())?;
        arguments.removal.run(plan, &interrupt)
    }))
}

const INFO_EXAMPLES: &str = "\
Examples:
  plimsoll orders info --target pg:/u01/pgdata
  plimsoll orders info --target mysql://bench@db1/bench --json

It only looks, so it works while a run goes on; a private server (`pg:DIR`, `my:DIR`) is started for it and stopped again.";

/// Arguments of `plimsoll orders info`.
#[derive(Debug, Args)]
pub(super) struct InfoArguments {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

fn run_info(arguments: &InfoArguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let address = arguments.target.address();
    let database = databases::orders(address, &arguments.server.options(address)?)?;
    let sheet = interrupt.judge(with(database, |database| {
        let sheet = database.info(interrupt.flag())?;
        database.notes().iter().for_each(say::note);
        Ok(sheet)
    }))?;
    sheets::show(&sheet, arguments.format.format())
}

const RUN_EXAMPLES: &str = "\
Examples:
  plimsoll orders run --users 16 --target pg:/u01/pgdata --duration 60
  plimsoll orders run --users 200 --think 100ms..500ms \\
    --target postgres://bench@db1/bench
  plimsoll orders run --users 64 --rate 500/s --limit p99=20ms
  plimsoll orders run --users 16 --mix OP=40,BP=50,PO=5";

/// Arguments of `plimsoll orders run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// Users, each with its own connection
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SESSIONS)),
        help_heading = "Load"
    )]
    users: u32,

    /// Start operations at this rate, whether or not earlier ones are done (open loop)
    ///
    /// An operation is a transaction. The rate is that of all users together.
    #[arg(long, value_name = "N[/s]", allow_hyphen_values = true, help_heading = "Load")]
    rate: Option<Rate>,

    /// Write the results as Swingbench does, for tools that read its files
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    results: Option<PathBuf>,

    #[command(flatten)]
    load: LoadArgs,
}

impl RunArguments {
    /// The directory that nobody else can use at the same time, if the data are in one.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.load.directory()
    }

    /// When the load is measured.
    pub(super) fn measured(&self) -> Measured {
        self.load.measured()
    }
}

fn run(arguments: &RunArguments) -> Result<Exit, Failure> {
    let rates = arguments.rate.iter().map(|Rate(per_s)| *per_s).collect();
    arguments.load.run(vec![arguments.users], rates, arguments.results.as_deref())
}

const SETUP_EXAMPLES: &str = "\
Examples:
  plimsoll orders setup --scale 0.1 --target pg:/u01/pgdata
  plimsoll orders setup --scale 10 --target postgres://bench@db1/bench
  plimsoll orders setup --partitions 32 --target mysql://bench@db1/bench
  plimsoll orders setup --scale 100 --target pg:/u01/pgdata --dry-run

Scale 1 is a million customers: about 15.8 million rows. If interrupted, run the same command again to resume. At \
the end setup checks all parts, rows and values. Exit code 1: something is wrong in them.";

/// Streams where nobody says otherwise are one for each processor, up to this many.
const MAX_OWN_STREAMS: u32 = 16;

/// Arguments of `plimsoll orders setup`.
#[derive(Debug, Args)]
pub(super) struct SetupArguments {
    #[command(flatten)]
    target: TargetArgs,

    /// Size of the data in millions of customers, from 0.001 to 10000
    #[arg(long, value_name = "N", default_value_t = 1.0, allow_hyphen_values = true, help_heading = "Data")]
    scale: f64,

    /// Hash partitions of each large table, from 2 to 1024 [default: none]
    #[arg(long, value_name = "N", help_heading = "Data")]
    partitions: Option<u32>,

    /// On Oracle, confirm that Partitioning is licensed: "yes, Partitioning is licensed"
    #[arg(long, value_name = "CONSENT", requires = "partitions", help_heading = "Data")]
    licensed: Option<String>,

    /// Indexes to create
    #[arg(long, value_enum, value_name = "WHICH", default_value = "all", help_heading = "Data")]
    indexes: IndexesChoice,

    /// Connections that load and build indexes [default: one per CPU here, up to 16]
    #[arg(long, value_name = "N", help_heading = "Data")]
    streams: Option<NonZero<u32>>,

    /// Seed of every random choice [default: that of the existing data, else a new one]
    #[arg(long, value_name = "N", help_heading = "Data")]
    seed: Option<u64>,

    /// Remove existing data, and create it again
    #[arg(long, help_heading = "Data")]
    replace: bool,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    progress: ProgressArgs,

    /// Print what would be done, and exit
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IndexesChoice {
    /// Keys, foreign keys and all others: 27 indexes
    All,
    /// Keys and foreign keys
    Keys,
    /// None, except those that the server needs to keep a table
    None,
}

/// What somebody writes who has the licence that partitions need on Oracle. Nothing shorter: it is not to be written by habit.
const CONSENT: &str = "yes, Partitioning is licensed";

impl SetupArguments {
    /// Refuses partitions on Oracle as long as nobody has agreed to them, and the flag elsewhere.
    fn check_licence(&self, address: &TargetAddress) -> Result<(), Failure> {
        let is_oracle = matches!(address, TargetAddress::Oracle(_));
        match &self.licensed {
            Some(_) if !is_oracle => {
                let failure = Failure::new(format_args!("`--licensed` is for Oracle, not for `{address}`"));
                Err(failure.with_hint("leave it out".to_owned()))
            }
            given if !is_oracle || self.partitions.is_none() || given.as_deref() == Some(CONSENT) => Ok(()),
            given => {
                let failure = Failure::new(match given {
                    Some(given) => format!("`--licensed {given}` does not say that `--partitions` may be used"),
                    None => "`--partitions` uses Oracle's Partitioning, which is licensed besides the database and counted there"
                        .to_owned(),
                });
                Err(failure.with_hint(format!(
                    "if this database is licensed for it, or is Free or Express Edition, write exactly: --licensed \"{CONSENT}\"; if \
                     not, leave `--partitions` out"
                )))
            }
        }
    }

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

fn run_setup(arguments: &SetupArguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let request = arguments.request();
    request.check()?;
    let address = arguments.target.address();
    arguments.check_licence(address)?;
    let options = DatabaseOptions { dry_run: arguments.dry_run, ..arguments.server.options(address)? };
    let database = databases::orders(address, &options)?;
    interrupt.judge(with(database, |database| set_up(arguments, &request, database, &interrupt)))
}

fn set_up(
    arguments: &SetupArguments,
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
