//! `plimsoll slob setup`.

use std::io::Write;
use std::path::Path;

use clap::Args;
use serde_json::{Value, json};

use super::arguments::LedgerArgs;
use crate::cli::arguments::{Format, FormatArgs, IoArgs, ParameterArgs, PermissionArgs, ProgressArgs, TargetArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::servers::{DEFAULT_REDO_FILE, DEFAULT_REDO_FILES, ServerArgs};
use crate::cli::{Interrupt, fresh_seed, say, setting_up, sheets};
use crate::databases;
use crate::plan::caches::{self, Data};
use model::config::Key;
use model::config::group::GroupSpec;
use model::units::{Bytes, Nanos};
use targets::block::safety::Permission;
use targets::database::{Database, DatabaseOptions, Replace, SetupPlan, SetupReport, SetupRequest};
use targets::places;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob setup -s 8 SCALE=1G --target dir:/u01/plimsoll
  plimsoll slob setup 4 SCALE=10G SCAN_TABLE_SZ=100M --block-size 16K
  plimsoll slob setup -c slob.conf -s 16 --dry-run
  plimsoll slob setup -s 8 SCALE=1G --target pg:/u01/pgdata
  plimsoll slob setup -s 8 SCALE=1G --target postgres://bench@db1/bench
  plimsoll slob setup -s 1 SCALE=4G --redo-size 1G --redo-files 3 --replace";

/// Arguments of `plimsoll slob setup`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    target: TargetArgs,

    /// Block size, from 2K to 32K, the same as BLOCK_SZ [default: 8K; on a server its own]
    #[arg(long, value_name = "SIZE", help_heading = "Data")]
    block_size: Option<String>,

    /// Size of each redo log file of the embedded engine [default: 64M]
    #[arg(long, value_name = "SIZE", help_heading = "Data")]
    redo_size: Option<Bytes>,

    /// Number of redo log files of the embedded engine [default: 4]
    #[arg(long, value_name = "N", help_heading = "Data")]
    redo_files: Option<u32>,

    /// Where to put the embedded engine's data files: directory, NFS address or disk group
    ///
    /// An address is `nfs://server/export/dir`, a disk group `data=normal,size=16G:/u01/a|/u02/b`.
    ///
    /// Control files and change maps stay in the engine's directory, as does a ledger without --ledger.
    #[arg(long, value_name = "DEST", help_heading = "Data")]
    data_dest: Option<String>,

    /// Where to put the embedded engine's redo log files, in the form of --data-dest
    #[arg(long, value_name = "DEST", help_heading = "Data")]
    redo_dest: Option<String>,

    #[command(flatten)]
    ledger: LedgerArgs,

    /// Seed of every random choice [default: that of the existing data, else a new one]
    #[arg(long, value_name = "N", help_heading = "Data")]
    seed: Option<u64>,

    /// Remove existing data, and create it again
    #[arg(long, help_heading = "Data")]
    replace: bool,

    #[command(flatten)]
    permission: PermissionArgs,

    #[command(flatten)]
    io: IoArgs,

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

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    interrupt.judge(sheets::with(databases::slob(arguments.target.address(), &options(arguments)?)?, |database| {
        set_up(arguments, database, &interrupt)
    }))
}

fn options(arguments: &Arguments) -> Result<DatabaseOptions, Failure> {
    let address = arguments.target.address();
    let options = arguments.server.options(address)?;
    let given = [
        ("--redo-size", arguments.redo_size.is_some()),
        ("--redo-files", arguments.redo_files.is_some()),
        ("--data-dest", arguments.data_dest.is_some()),
        ("--redo-dest", arguments.redo_dest.is_some()),
        ("--io-engine", arguments.io.engine().is_some()),
    ];
    if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given && address.is_server()) {
        let failure = Failure::new(format_args!("`{flag}` is for the embedded engine, not for `{address}`"));
        return Err(failure.with_hint("leave it out; a server has settings of its own".to_owned()));
    }
    let permission = arguments.permission.permission();
    let is_group = |destination: &Option<String>| destination.as_deref().is_some_and(places::is_group);
    if permission != Permission::default() && !is_group(&arguments.data_dest) && !is_group(&arguments.redo_dest) {
        let failure = Failure::new("`--destroy` applies only to members of a disk group, and no group was named");
        return Err(failure.with_hint("leave it out; `--replace` makes data of ours again".to_owned()));
    }
    Ok(DatabaseOptions {
        permission,
        io_engine: arguments.io.engine(),
        redo_file: arguments.redo_size.unwrap_or(DEFAULT_REDO_FILE),
        redo_files: arguments.redo_files.unwrap_or(DEFAULT_REDO_FILES),
        data_dest: destination("--data-dest", arguments.data_dest.as_deref())?,
        redo_dest: destination("--redo-dest", arguments.redo_dest.as_deref())?,
        ledger: arguments.ledger.directory(address)?,
        dry_run: arguments.dry_run,
        ..options
    })
}

/// A place for files as it is kept: a directory by its absolute path, for it may be used from another one later.
fn destination(flag: &str, text: Option<&str>) -> Result<Option<String>, Failure> {
    let Some(text) = text else { return Ok(None) };
    if places::is_virtual(text) {
        return Ok(Some(places::kept(text)));
    }
    let path = Path::new(text).canonicalize();
    // What begins as a disk group does and is no path is a group with a mistake in it.
    if path.is_err()
        && text.split(':').next().is_some_and(|words| words.contains('='))
        && let Err(problem) = text.parse::<GroupSpec>()
    {
        return Err(Failure::new(format_args!("`{flag} {text}`: {problem}")).with_hint(problem.hint()));
    }
    let path = path.map_err(|error| Failure::new(format_args!("`{flag} {text}`: {error}"))).and_then(|path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| Failure::new(format_args!("`{flag}`: the path is not UTF-8")))
    });
    path.map(Some)
        .map_err(|failure| failure.with_hint("name a directory that is there, or `nfs://server/export/dir`".to_owned()))
}

fn set_up(arguments: &Arguments, database: &mut dyn Database, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let request = request(arguments, database, interrupt)?;
    database.notes().iter().for_each(say::note);
    let plan = database.plan_setup(&request, interrupt.flag())?;
    note_on_cache(&*plan, &request).iter().for_each(say::note);
    let verbosity = arguments.progress.verbosity();
    let Some(report) = setting_up::run(plan, arguments.dry_run, verbosity, interrupt)? else { return Ok(Exit::Done) };
    match arguments.format.format() {
        Format::Json => say::json(&document(&request, report))?,
        Format::Text => {
            let mut out = say::output();
            write_report(&mut out, &request, &report)?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

fn request(arguments: &Arguments, database: &mut dyn Database, interrupt: &Interrupt) -> Result<SetupRequest, Failure> {
    let mut asked = arguments.parameters.read()?;
    if let Some(size) = &arguments.block_size {
        asked.set(Key::BlockSz, size);
    }
    let parameters = asked.parameters()?;
    let streams = parameters.load_parallel_degree;
    let request = crate::plan::DataSetRequest {
        schemas: asked.schemas.unwrap_or(1),
        block_bytes: database.block_bytes(parameters.block_size, streams, interrupt.flag())?,
        seed: arguments.seed.unwrap_or_else(fresh_seed),
        is_seed_asked: arguments.seed.is_some(),
        replace: if arguments.replace { Replace::Replace } else { Replace::Refuse },
    };
    Ok(crate::plan::plan_data_set(&parameters, &request)?)
}

/// Whether a cache will answer what is meant for storage.
fn note_on_cache(plan: &dyn SetupPlan, request: &SetupRequest) -> Option<String> {
    let cache = plan.cache().filter(|_| plan.makes_data())?;
    let &SetupRequest { schemas, scale_blocks, block_bytes, .. } = request;
    caches::note(Data { schemas, scale_blocks, block_bytes }, &cache, None)
}

fn document(request: &SetupRequest, report: SetupReport) -> Value {
    let document = json!({
        "schemas": request.schemas,
        "scale_blocks": request.scale_blocks,
        "scan_blocks": request.scan_blocks,
        "block_bytes": request.block_bytes,
    });
    setting_up::document(document, report)
}

fn write_report(out: &mut impl Write, request: &SetupRequest, report: &SetupReport) -> std::io::Result<()> {
    let (place, words) = (&report.place, request.words());
    if !report.created {
        return writeln!(out, "Already there: {words} in {place}; nothing was written.");
    }
    let seconds = (report.elapsed_ns as f64 / 1e9).max(1e-9);
    let rows = report.rows.map_or_else(String::new, |rows| format!(" {:.0} rows/s,", rows as f64 / seconds));
    writeln!(
        out,
        "Set up {words} in {place}: {} in {}, {:.0} MB/s,{rows} seed {}.",
        Bytes(report.bytes_written),
        Nanos(report.elapsed_ns),
        report.bytes_written as f64 / 1e6 / seconds,
        report.seed
    )?;
    if report.phases.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", setting_up::phases(report))
}
