//! `plimsoll slob verify`.

use std::io::{self, Write};

use clap::Args;
use serde_json::json;

use super::server::{self, Nodes, Purpose, Reached, ServerArgs};
use crate::cli::arguments::{Format, FormatArgs, IoArgs, ProgressArgs, TargetArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::ByteProgress;
use crate::cli::say;
use crate::targets::TargetError;
use crate::targets::embedded::Recovery;
use crate::targets::embedded::verify::{self, VerifyReport};
use crate::units::{Bytes, Nanos, group_thousands};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob verify
  plimsoll slob verify --target dir:/u01/plimsoll --json

Redo is replayed first if the last run was killed. Exit code 1: a block is not what was written, or a commit that was \
acknowledged is missing.";

/// Bad blocks that are reported; `--json` has more of them.
const REPORTED_BAD_BLOCKS: usize = 20;

/// Arguments of `plimsoll slob verify`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    io: IoArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    progress: ProgressArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let (address, nodes) = (arguments.target.address(), Nodes::FirstThatAccepts);
    match Reached::reach(address, &arguments.server, nodes, Purpose::Use, None, interrupt.flag())? {
        Some(reached) => {
            let (format, verbosity) = (arguments.format.format(), arguments.progress.verbosity());
            reached.with(|reached| server::verify::run(reached, format, verbosity, &interrupt))
        }
        None => of_engine(arguments, &interrupt),
    }
}

fn of_engine(arguments: &Arguments, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let path = arguments.target.directory()?;
    let progress = ByteProgress::new("verifying", arguments.progress.verbosity());
    let tell = |now: verify::Progress| progress.update(now.done_bytes, now.total_bytes);
    let outcome = verify::verify(path, arguments.io.engine(), &tell, interrupt.flag());
    progress.end();
    let report = outcome.map_err(|error| match (error, interrupt.exit()) {
        (TargetError::Interrupted, Some(exit)) => Failure::new("interrupted; not all data were read").with_exit(exit),
        (error, _) => Failure::from(error),
    })?;
    match arguments.format.format() {
        Format::Json => {
            let mut document = serde_json::to_value(&report)?;
            document["sound"] = json!(report.is_sound());
            say::json(&document)?;
        }
        Format::Text => {
            let mut out = say::output();
            write_report(&mut out, &report)?;
            out.flush()?;
        }
    }
    Ok(if report.is_sound() { Exit::Done } else { Exit::NotMet })
}

fn write_report(out: &mut impl Write, report: &VerifyReport) -> io::Result<()> {
    if let Some(recovery) = &report.recovery {
        writeln!(out, "recovered  {}", recovery_sentence(recovery))?;
        if let Some((path, offset)) = &recovery.torn_tail {
            writeln!(
                out,
                "           the last write to `{}`, at offset {offset}, was torn; nobody had been told of it",
                path.display()
            )?;
        }
    }
    writeln!(
        out,
        "read       {} blocks, {} in {}, {:.0} MB/s",
        group_thousands(report.blocks as f64),
        Bytes(report.bytes),
        Nanos(report.elapsed_ns),
        report.bytes as f64 * 1e3 / report.elapsed_ns.max(1) as f64
    )?;
    let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| group_thousands(count as f64));
    writeln!(
        out,
        "commits    {} acknowledged, {} found",
        count(report.commits_acknowledged),
        count(report.commits_found)
    )?;
    for fault in &report.faults {
        writeln!(out, "fault      {fault}")?;
    }
    for lost in &report.lost {
        let missing = lost.acknowledged.saturating_sub(lost.found);
        writeln!(out, "lost       session {} misses {missing} of {} commits", lost.session, lost.acknowledged)?;
    }
    for bad in report.bad_blocks.iter().take(REPORTED_BAD_BLOCKS) {
        writeln!(out, "bad block  {} at offset {} of `{}`: {}", bad.block, bad.offset, bad.path.display(), bad.fault)?;
    }
    let unreported = report.bad_block_count.saturating_sub(report.bad_blocks.len().min(REPORTED_BAD_BLOCKS) as u64);
    if unreported > 0 {
        writeln!(out, "           and {} more bad blocks", group_thousands(unreported as f64))?;
    }
    if report.is_sound() {
        writeln!(out, "sound      every block is what was written last, and no acknowledged commit is missing")
    } else {
        writeln!(out, "not sound  the data are not what was written")
    }
}

/// What a recovery did, in a sentence.
fn recovery_sentence(recovery: &Recovery) -> String {
    format!(
        "the last user of the data was killed: {} of redo with {} commits was read again, {} changes were missing and \
         made again",
        Bytes(recovery.redo_bytes),
        group_thousands(recovery.commits as f64),
        group_thousands(recovery.changes_made_again as f64)
    )
}
