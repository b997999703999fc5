//! `plimsoll slob setup`.

use std::io::Write;
use std::path::Path;

use clap::Args;
use serde_json::json;

use super::load::DEFAULT_CACHE;
use super::server::{self, Nodes, Purpose, Reached, ServerArgs};
use crate::cli::arguments::{Asked, Format, FormatArgs, IoArgs, ParameterArgs, ProgressArgs, TargetArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::fresh_seed;
use crate::cli::interrupt::Interrupt;
use crate::cli::live::ByteProgress;
use crate::cli::say;
use crate::config::{Key, TargetAddress};
use crate::plan::caches::{self, Cache, Data};
use crate::plan::data_set;
use crate::targets::TargetError;
use crate::targets::embedded::Descriptor;
use crate::targets::embedded::setup::{self, Existing, Replace, SetupPlan, SetupReport, SetupRequest};
use crate::targets::postgres::cluster::inspect;
use crate::units::{Bytes, Nanos, group_thousands};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob setup -s 8 SCALE=1G --target dir:/u01/plimsoll
  plimsoll slob setup 4 SCALE=10G SCAN_TABLE_SZ=100M --block-size 16K
  plimsoll slob setup -c slob.conf -s 16 --dry-run
  plimsoll slob setup -s 8 SCALE=1G --target pg:/u01/pgdata
  plimsoll slob setup -s 8 SCALE=1G --target postgres://bench@db1/bench
  plimsoll slob setup -s 1 SCALE=4G --redo-size 1G --redo-files 3 --replace";

/// Redo of the embedded engine where nobody says otherwise.
const DEFAULT_REDO_FILE: Bytes = Bytes::mib(64);
const DEFAULT_REDO_FILES: u32 = 4;

/// Arguments of `plimsoll slob setup`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    target: TargetArgs,

    /// Size of a block, from 2K to 32K; the same as BLOCK_SZ [default: 8K, on a server its own]
    #[arg(long, value_name = "SIZE", help_heading = "Data")]
    block_size: Option<String>,

    /// Size of each redo log file of the embedded engine [default: 64M]
    #[arg(long, value_name = "SIZE", help_heading = "Data")]
    redo_size: Option<Bytes>,

    /// Number of redo log files of the embedded engine [default: 4]
    #[arg(long, value_name = "N", help_heading = "Data")]
    redo_files: Option<u32>,

    /// Seed of the placement of rows and of their filling [default: that of the data that are there, else a fresh one]
    #[arg(long, value_name = "N", help_heading = "Data")]
    seed: Option<u64>,

    /// Remove data that are there, and make them anew
    #[arg(long, help_heading = "Data")]
    replace: bool,

    #[command(flatten)]
    io: IoArgs,

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

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let address = arguments.target.address();
    arguments.server.check(address)?;
    match address {
        TargetAddress::PrivateCluster(_) | TargetAddress::Postgres(_) => on_server(arguments, address),
        TargetAddress::Directory(_) | TargetAddress::Simulated(_) => on_engine(arguments),
    }
}

fn on_server(arguments: &Arguments, address: &TargetAddress) -> Result<Exit, Failure> {
    let given = [
        ("--redo-size", arguments.redo_size.is_some()),
        ("--redo-files", arguments.redo_files.is_some()),
        ("--io-engine", arguments.io.engine().is_some()),
    ];
    if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
        let failure = Failure::new(format_args!("`{flag}` is for the embedded engine, not for `{address}`"));
        return Err(failure.with_hint("leave it out; a server has settings of its own".to_owned()));
    }
    let asked = asked(arguments)?;
    let parameters = asked.parameters()?;
    if let (true, TargetAddress::PrivateCluster(directory)) = (arguments.dry_run, address)
        && inspect(directory).map_err(TargetError::from)?.is_none()
    {
        server::setup::tell_new_cluster(directory, &arguments.server, asked.schemas.unwrap_or(1), &parameters)?;
        return Ok(Exit::Done);
    }
    let interrupt = Interrupt::listen()?;
    // What loads side by side is what the memory must do for; how many sessions a run will have nobody knows yet.
    let (nodes, sessions) = (Nodes::FirstThatAccepts, Some(parameters.load_parallel_degree));
    let reached = Reached::reach(address, &arguments.server, nodes, Purpose::SetUp, sessions, interrupt.flag())?;
    let wanted = server::setup::Wanted {
        schemas: asked.schemas.unwrap_or(1),
        seed: arguments.seed,
        replace: replace(arguments),
        dry_run: arguments.dry_run,
        format: &arguments.format,
        progress: &arguments.progress,
    };
    let reached = reached.expect("the address is that of a server");
    reached.with(|reached| server::setup::run(reached, &parameters, &wanted, &interrupt))
}

fn asked(arguments: &Arguments) -> Result<Asked, Failure> {
    let mut asked = arguments.parameters.read()?;
    if let Some(size) = &arguments.block_size {
        asked.set(Key::BlockSz, size);
    }
    Ok(asked)
}

fn replace(arguments: &Arguments) -> Replace {
    if arguments.replace { Replace::Replace } else { Replace::Refuse }
}

fn on_engine(arguments: &Arguments) -> Result<Exit, Failure> {
    let path = arguments.target.directory()?;
    let request = request(arguments, path)?;
    let plan = setup::plan(path, &request)?;
    plan.notes.iter().chain(&note_on_cache(&plan, &request)).for_each(say::note);
    if arguments.dry_run {
        let mut out = say::output();
        write_plan(&mut out, &plan, &request)?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let interrupt = Interrupt::listen()?;
    let progress = ByteProgress::new("setting up", arguments.progress.verbosity());
    let known: Vec<String> = plan.notes.clone();
    let tell = |now: setup::Progress| progress.update(now.done_bytes, now.total_bytes);
    let outcome = setup::run(plan, &tell, interrupt.flag());
    progress.end();
    let report = outcome.map_err(|error| match (error, interrupt.exit()) {
        (TargetError::Interrupted, Some(exit)) => {
            Failure::new("interrupted; everything that was made has been removed").with_exit(exit)
        }
        (error, _) => Failure::from(error),
    })?;
    report.notes.iter().filter(|note| !known.contains(note)).for_each(say::note);
    tell_report(arguments, &request, &report, path)?;
    Ok(Exit::Done)
}

fn request(arguments: &Arguments, path: &Path) -> Result<SetupRequest, Failure> {
    let asked = asked(arguments)?;
    let replace = replace(arguments);
    // The same command given twice finds its own data: only a seed that was asked for can differ from theirs.
    let seed_there = || Descriptor::load(path).ok().filter(|_| replace == Replace::Refuse).map(|data| data.seed);
    let request = data_set::Request {
        schemas: asked.schemas.unwrap_or(1),
        redo_file: arguments.redo_size.unwrap_or(DEFAULT_REDO_FILE),
        redo_files: arguments.redo_files.unwrap_or(DEFAULT_REDO_FILES),
        seed: arguments.seed.or_else(seed_there).unwrap_or_else(fresh_seed),
        replace,
        io_engine: arguments.io.engine(),
    };
    Ok(data_set::plan(&asked.parameters()?, &request)?)
}

/// Whether the cache that runs usually have will answer what is meant for storage.
fn note_on_cache(plan: &SetupPlan, request: &SetupRequest) -> Option<String> {
    let &SetupRequest { schemas, scale_blocks, block_bytes, .. } = request;
    let what = "the buffer cache that a run has unless `--cache` says otherwise".to_owned();
    let cache = Cache { bytes: DEFAULT_CACHE, what, cure: None };
    let note = || caches::note(Data { schemas, scale_blocks, block_bytes }, &cache, None);
    plan.makes_data().then(note).flatten()
}

fn write_plan(out: &mut impl Write, plan: &SetupPlan, request: &SetupRequest) -> std::io::Result<()> {
    let there = match plan.existing {
        Existing::Nothing => "no data",
        Existing::SameData => "the data asked for",
        Existing::Unfinished => "an unfinished set-up, which would be removed",
        Existing::OtherData => "other data, which would be removed",
    };
    writeln!(out, "directory  {}", plan.directory.display())?;
    writeln!(out, "there now  {there}")?;
    writeln!(out, "data       {}", data_sentence(request))?;
    writeln!(out, "seed       {}", request.seed)?;
    writeln!(out, "written by {}", plan.io_engine)?;
    if !plan.makes_data() {
        return writeln!(out, "\nNothing would be written.");
    }
    writeln!(out, "space      {}, {} of it data", Bytes(plan.total_bytes), Bytes(plan.data_bytes))?;
    writeln!(out)?;
    for (name, bytes) in &plan.files {
        writeln!(out, "{name:<24} {:>10}", Bytes(*bytes))?;
    }
    Ok(())
}

fn data_sentence(request: &SetupRequest) -> String {
    let &SetupRequest { schemas, scale_blocks, scan_blocks, block_bytes, .. } = request;
    data_words(schemas, scale_blocks, scan_blocks, block_bytes)
}

/// `8 schemas of 1 GiB (131,072 blocks of 8 KiB), each with a scan table of 1 MiB`.
pub(super) fn data_words(schemas: u32, scale_blocks: u64, scan_blocks: u64, block_bytes: u32) -> String {
    let schemas = if schemas == 1 { "1 schema".to_owned() } else { format!("{schemas} schemas") };
    let block = u64::from(block_bytes);
    let mut words = format!(
        "{schemas} of {} ({} blocks of {})",
        Bytes(scale_blocks * block),
        group_thousands(scale_blocks as f64),
        Bytes(block)
    );
    if scan_blocks > 0 {
        words.push_str(&format!(", each with a scan table of {}", Bytes(scan_blocks * block)));
    }
    words
}

fn tell_report(
    arguments: &Arguments,
    request: &SetupRequest,
    report: &SetupReport,
    path: &Path,
) -> Result<(), Failure> {
    if arguments.format.format() == Format::Json {
        return say::json(&json!({
            "directory": path,
            "created": report.created,
            "schemas": request.schemas,
            "scale_blocks": request.scale_blocks,
            "scan_blocks": request.scan_blocks,
            "block_bytes": request.block_bytes,
            "seed": request.seed,
            "bytes_written": report.bytes_written,
            "elapsed_ns": report.elapsed_ns,
            "notes": report.notes,
        }));
    }
    let mut out = say::output();
    if report.created {
        let seconds = report.elapsed_ns as f64 / 1e9;
        writeln!(
            out,
            "Set up {} in `{}`: {} in {}, {:.0} MB/s, seed {}.",
            data_sentence(request),
            path.display(),
            Bytes(report.bytes_written),
            Nanos(report.elapsed_ns),
            report.bytes_written as f64 / 1e6 / seconds.max(1e-9),
            request.seed
        )?;
    } else {
        writeln!(out, "`{}` holds {} already; nothing was written.", path.display(), data_sentence(request))?;
    }
    out.flush()?;
    Ok(())
}
