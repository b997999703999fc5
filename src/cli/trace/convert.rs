//! `plimsoll trace convert`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{names, read_all};
use crate::cli::arguments::{Format, FormatArgs, ProgressArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::record::kinds;
use crate::cli::say;
use ::trace::TraceWriter;
use model::units::{Bytes, group_thousands};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll trace convert sda.blktrace.* -o monday.trace
  plimsoll trace convert fio.log -o fio.trace
  plimsoll trace convert monday.trace -o copy.trace

The format is recognized. `plimsoll trace formats` lists those that are read.";

/// Arguments of `plimsoll trace convert`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Trace of another program
    ///
    /// Several files are those that blktrace wrote, one for each CPU.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// File for the trace
    ///
    /// An existing file is not replaced.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: PathBuf,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    progress: ProgressArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { files, out, format, progress } = arguments;
    // What is wrong with the trace shows before anything is made.
    drop(::trace::open(files)?);
    let mut writer = Some(TraceWriter::create(out)?);
    let whole = read_all(files, progress.verbosity(), &mut |batch, source| {
        writer.as_mut().map_or(Ok(()), |writer| writer.write(batch, source.header())).map_err(Into::into)
    });
    let source = match whole {
        Ok(Ok(source)) => source,
        ended => {
            // Nothing is left half-written.
            drop(writer.take());
            let _ = files::remove(out);
            let exit = ended?.err().unwrap_or(Exit::CouldNot);
            say::note("stopped: nothing was written");
            return Ok(exit);
        }
    };
    let (header, end) = (source.header(), source.end());
    end.notes.iter().for_each(say::note);
    let Some(writer) = writer else { return Ok(Exit::CouldNot) };
    let (summary, _) = writer.finish(header, &end).inspect_err(|_| drop(files::remove(out)))?;
    let bytes = out.metadata().map(|found| found.len()).unwrap_or_default();
    match format.format() {
        Format::Json => {
            say::json(&json!({ "file": out, "file_bytes": bytes, "header": header, "end": end, "summary": summary }))?;
        }
        Format::Text => {
            let mut text = say::output();
            let total = summary.total();
            writeln!(
                text,
                "read      {}, {}: {} requests ({})",
                names(files),
                header.source,
                group_thousands(total as f64),
                kinds(&summary)
            )?;
            let each = bytes as f64 / total.max(1) as f64;
            writeln!(text, "file      `{}`, {}, {each:.1} bytes a request", out.display(), Bytes(bytes))?;
            text.flush()?;
        }
    }
    Ok(Exit::Done)
}
