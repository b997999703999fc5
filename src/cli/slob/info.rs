//! `plimsoll slob info`.

use std::io::{self, Write};

use clap::Args;

use super::server::{self, Nodes, Purpose, Reached, ServerArgs};
use crate::cli::arguments::{Format, FormatArgs, TargetArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::say;
use crate::targets::embedded::Filling;
use crate::targets::embedded::info::{self, Info, State};
use crate::units::{Bytes, group_thousands};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob info
  plimsoll slob info --target dir:/u01/plimsoll --json

It only looks, so it works while a run goes on; a private cluster (`pg:DIR`) is started for it and stopped again.";

/// Arguments of `plimsoll slob info`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let (address, format) = (arguments.target.address(), arguments.format.format());
    let interrupt = Interrupt::listen()?;
    let nodes = Nodes::FirstThatAccepts;
    match Reached::reach(address, &arguments.server, nodes, Purpose::Use, None, interrupt.flag())? {
        Some(reached) => reached.with(|reached| server::info::run(reached, format)),
        None => of_engine(arguments),
    }
}

fn of_engine(arguments: &Arguments) -> Result<Exit, Failure> {
    let info = info::info(arguments.target.directory()?)?;
    match arguments.format.format() {
        Format::Json => say::json(&info)?,
        Format::Text => {
            let mut out = say::output();
            write_info(&mut out, &info)?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

fn write_info(out: &mut impl Write, info: &Info) -> io::Result<()> {
    writeln!(out, "directory  {}", info.directory.display())?;
    writeln!(out, "state      {}", state_sentence(&info.state))?;
    if let Some(data) = &info.descriptor {
        let block = u64::from(data.block_bytes);
        let blocks = |count: u64| format!("{} ({} blocks)", Bytes(count * block), group_thousands(count as f64));
        let filling = match data.filling {
            Filling::Incompressible => "incompressible",
            Filling::Compressible => "compressible",
        };
        writeln!(out, "made       {}, format {}", data.created_at, data.format_version)?;
        writeln!(out, "schemas    {} of {}", data.schemas, blocks(data.scale_blocks))?;
        if data.scan_blocks > 0 {
            writeln!(out, "scan table {} in each schema", blocks(data.scan_blocks))?;
        }
        writeln!(out, "blocks     {}, {filling} rows, seed {}", Bytes(block), data.seed)?;
        writeln!(out, "redo       {} log files of {}", data.redo_files, Bytes(data.redo_file_bytes))?;
    }
    writeln!(
        out,
        "files      {}, {}, {} on the file system",
        info.files.len(),
        Bytes(info.bytes),
        Bytes(info.allocated_bytes)
    )
}

fn state_sentence(state: &State) -> String {
    match state {
        State::ClosedCleanly => "closed cleanly".to_owned(),
        State::NeedsRecovery => "its last user was killed; the next run or `verify` recovers it".to_owned(),
        State::UnfinishedSetUp { in_use_by: None } => "its set-up was never finished; set it up again".to_owned(),
        State::UnfinishedSetUp { in_use_by: Some(by) } => format!("being set up by {by}"),
        State::InUse { by } => format!("in use by {by}"),
        State::Damaged { why } => format!("damaged: {why}"),
    }
}
