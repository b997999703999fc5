//! `plimsoll slob setup` on a server.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;

use super::{Reached, ServerArgs, private_cache};
use crate::cli::arguments::{Format, FormatArgs, ProgressArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::fresh_seed;
use crate::cli::interrupt::Interrupt;
use crate::cli::live::ByteProgress;
use crate::cli::say;
use crate::cli::slob::setup::data_words;
use crate::config::{Filler, SlobParameters};
use crate::plan::caches::{self, Data};
use crate::targets::TargetError;
use crate::targets::embedded::Filling;
use crate::targets::postgres::data;
use crate::targets::postgres::data::setup::{
    self, Existing, Phase, Progress, Replace, SetupPlan, SetupReport, SetupRequest,
};
use crate::units::{Bytes, Nanos};

/// Size of a block of a server as it is built everywhere.
const DEFAULT_BLOCK_BYTES: u64 = 8192;

/// What is wanted of a set-up, besides the parameters.
pub(in crate::cli::slob) struct Wanted<'a> {
    /// Schemas to make.
    pub(in crate::cli::slob) schemas: u32,
    /// Seed of the placement of rows and of their filling.
    pub(in crate::cli::slob) seed: Option<u64>,
    /// What to do with data that are there.
    pub(in crate::cli::slob) replace: Replace,
    /// Only say what would be done.
    pub(in crate::cli::slob) dry_run: bool,
    pub(in crate::cli::slob) format: &'a FormatArgs,
    pub(in crate::cli::slob) progress: &'a ProgressArgs,
}

pub(in crate::cli::slob) fn run(
    reached: &Reached<'_>,
    parameters: &SlobParameters,
    wanted: &Wanted<'_>,
    interrupt: &Interrupt,
) -> Result<Exit, Failure> {
    let request = request(reached, parameters, wanted)?;
    let plan = setup::plan(&reached.access(), &request)?;
    plan.notes.iter().chain(&warnings(reached, &plan, &request)?).for_each(say::note);
    if wanted.dry_run {
        let mut out = say::output();
        write_plan(&mut out, reached, &plan, &request)?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let known = plan.notes.clone();
    let progress = ByteProgress::new("setting up", wanted.progress.verbosity());
    let tell = |phase: Phase, now: Progress| progress.update_phase(phase, now.done_bytes, now.total_bytes);
    let outcome = setup::run(plan, &tell, interrupt.flag());
    progress.end();
    let report = outcome.map_err(|error| match (error, interrupt.exit()) {
        (TargetError::Interrupted, Some(exit)) => {
            Failure::new("interrupted; the same command goes on from here").with_exit(exit)
        }
        (error, _) => Failure::from(error),
    })?;
    report.notes.iter().filter(|note| !known.contains(note)).for_each(say::note);
    tell_report(reached, &request, &report, wanted.format.format())?;
    Ok(Exit::Done)
}

/// What the user should know before anything is loaded.
fn warnings(reached: &Reached<'_>, plan: &SetupPlan<'_>, request: &SetupRequest) -> Result<Vec<String>, Failure> {
    if !plan.makes_data() {
        return Ok(Vec::new());
    }
    let &SetupRequest { schemas, scale_blocks, block_bytes, .. } = request;
    let cache = reached.cache()?;
    let small = cache.and_then(|cache| caches::note(Data { schemas, scale_blocks, block_bytes }, &cache, None));
    let grows = |room: &(_, Bytes)| plan.missing_bytes() + plan.index_bytes + plan.redo_bytes > room.1.0;
    let full = reached.room().filter(grows).map(|(directory, room)| {
        format!(
            "{room} are left in `{}`, and this loads {}, builds {} of indexes and writes up to {} of write-ahead log: lower SCALE, or \
             use another file system",
            directory.display(),
            Bytes(plan.missing_bytes()),
            Bytes(plan.index_bytes),
            Bytes(plan.redo_bytes)
        )
    });
    Ok(small.into_iter().chain(full).collect())
}

fn request(reached: &Reached<'_>, parameters: &SlobParameters, wanted: &Wanted<'_>) -> Result<SetupRequest, Failure> {
    let access = reached.access();
    let server_block = data::block_bytes(&access)?;
    // What the parameters ask for is compared with what the server has, which alone decides.
    let block_bytes = parameters.block_size.map_or(u64::from(server_block), |size| size.0);
    let there = data::find(&access)?.filter(|_| wanted.replace == Replace::Refuse);
    let request = SetupRequest {
        schemas: wanted.schemas,
        scale_blocks: parameters.scale.blocks(block_bytes),
        scan_blocks: parameters.scan_table.blocks(block_bytes),
        block_bytes: u32::try_from(block_bytes).unwrap_or(u32::MAX),
        filling: match parameters.filler {
            Filler::Incompressible => Filling::Incompressible,
            Filler::Compressible => Filling::Compressible,
        },
        streams: parameters.load_parallel_degree,
        // The same command given twice finds its own data: only a seed that was asked for can differ from theirs.
        seed: wanted.seed.or(there.map(|found| found.data.seed)).unwrap_or_else(fresh_seed),
        replace: wanted.replace,
    };
    Ok(request)
}

fn write_plan(
    out: &mut impl Write,
    reached: &Reached<'_>,
    plan: &SetupPlan<'_>,
    request: &SetupRequest,
) -> io::Result<()> {
    let there = match plan.existing {
        Existing::Nothing => "no data".to_owned(),
        Existing::SameData => "the data asked for".to_owned(),
        Existing::Unfinished { loaded_bytes } if plan.makes_data() => {
            format!("an unfinished set-up of these data, {} of them loaded", Bytes(loaded_bytes))
        }
        Existing::Unfinished { .. } | Existing::HalfRemoved => {
            "the rest of other data, which would be removed".to_owned()
        }
        Existing::OtherData => "other data, which would be removed".to_owned(),
    };
    let access = reached.access();
    writeln!(out, "server     {}, PostgreSQL {}", access.node_name(), plan.server_version)?;
    writeln!(out, "database   {}, schema {}", plan.database, access.namespace)?;
    writeln!(out, "there now  {there}")?;
    writeln!(out, "data       {}", data_sentence(request))?;
    writeln!(out, "seed       {}", request.seed)?;
    if !plan.makes_data() {
        return writeln!(out, "\nNothing would be written.");
    }
    let streams = if request.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", request.streams) };
    writeln!(out, "loaded by  {streams} of binary COPY, {} to go", Bytes(plan.missing_bytes()))?;
    writeln!(
        out,
        "space      {} in {} tables, {} of indexes, up to {} of write-ahead log",
        Bytes(plan.data_bytes),
        plan.tables,
        Bytes(plan.index_bytes),
        Bytes(plan.redo_bytes)
    )
}

fn data_sentence(request: &SetupRequest) -> String {
    let &SetupRequest { schemas, scale_blocks, scan_blocks, block_bytes, .. } = request;
    data_words(schemas, scale_blocks, scan_blocks, block_bytes)
}

fn tell_report(
    reached: &Reached<'_>,
    request: &SetupRequest,
    report: &SetupReport,
    format: Format,
) -> Result<(), Failure> {
    let access = reached.access();
    if format == Format::Json {
        let phases: BTreeMap<Phase, u64> = report.phases.iter().copied().collect();
        return say::json(&json!({
            "server": access.node_name(),
            "db_schema": access.namespace,
            "created": report.created,
            "schemas": request.schemas,
            "scale_blocks": request.scale_blocks,
            "scan_blocks": request.scan_blocks,
            "block_bytes": request.block_bytes,
            "seed": request.seed,
            "bytes_written": report.bytes_written,
            "bytes_found": report.bytes_found,
            "elapsed_ns": report.elapsed_ns,
            "phases_ns": phases,
            "notes": report.notes,
        }));
    }
    let mut out = say::output();
    let place = format!("the schema `{}` on `{}`", access.namespace, access.node_name());
    if report.created {
        let seconds = report.elapsed_ns as f64 / 1e9;
        let rows = report.bytes_written as f64 / f64::from(request.block_bytes.max(1));
        writeln!(
            out,
            "Set up {} in {place}: {} in {}, {:.0} MB/s, {:.0} rows/s, seed {}.",
            data_sentence(request),
            Bytes(report.bytes_written),
            Nanos(report.elapsed_ns),
            report.bytes_written as f64 / 1e6 / seconds.max(1e-9),
            rows / seconds.max(1e-9),
            request.seed
        )?;
        let phases: Vec<String> = report.phases.iter().map(|(phase, ns)| format!("{phase} {}", Nanos(*ns))).collect();
        writeln!(out, "{}.", phases.join(", "))?;
    } else {
        writeln!(out, "There is {} in {place} already; nothing was written.", data_sentence(request))?;
    }
    out.flush()?;
    Ok(())
}

/// What a set-up would do where there is no private cluster yet.
pub(in crate::cli::slob) fn tell_new_cluster(
    directory: &Path,
    arguments: &ServerArgs,
    schemas: u32,
    parameters: &SlobParameters,
) -> Result<(), Failure> {
    let block = parameters.block_size.map_or(DEFAULT_BLOCK_BYTES, |size| size.0);
    let (scale, scan) = (parameters.scale.blocks(block), parameters.scan_table.blocks(block));
    let data = Data { schemas, scale_blocks: scale, block_bytes: u32::try_from(block).unwrap_or(u32::MAX) };
    let cache = private_cache(arguments.host_memory());
    cache.and_then(|cache| caches::note(data, &cache, None)).iter().for_each(say::note);
    let mut out = say::output();
    writeln!(out, "directory  {}", directory.display())?;
    writeln!(out, "there now  nothing; a private cluster would be made")?;
    writeln!(out, "cache      {} of shared buffers", arguments.db_cache())?;
    if let Some(limit) = arguments.host_memory() {
        writeln!(out, "memory     {limit} for the server, page cache included")?;
    }
    writeln!(out, "data       {}", data_words(schemas, scale, scan, u32::try_from(block).unwrap_or(u32::MAX)))?;
    out.flush()?;
    Ok(())
}
