//! `plimsoll slob verify` on a server.

use std::io::{self, Write};

use serde_json::json;

use super::Reached;
use crate::cli::arguments::Format;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::{ByteProgress, Verbosity};
use crate::cli::say;
use crate::targets::TargetError;
use crate::targets::postgres::data::setup::Progress;
use crate::targets::postgres::data::verify::{self, VerifyReport};
use crate::units::{Bytes, Nanos, group_thousands};

pub(in crate::cli::slob) fn run(
    reached: &Reached<'_>,
    format: Format,
    verbosity: Verbosity,
    interrupt: &Interrupt,
) -> Result<Exit, Failure> {
    let progress = ByteProgress::new("verifying", verbosity);
    let tell = |now: Progress| progress.update(now.done_bytes, now.total_bytes);
    let outcome = verify::verify(&reached.access(), &tell, interrupt.flag());
    progress.end();
    let report = outcome.map_err(|error| match (error, interrupt.exit()) {
        (TargetError::Interrupted, Some(exit)) => Failure::new("interrupted; not all data were read").with_exit(exit),
        (error, _) => Failure::from(error),
    })?;
    match format {
        Format::Json => {
            let mut document = serde_json::to_value(&report)?;
            document["sound"] = json!(report.is_sound());
            say::json(&document)?;
        }
        Format::Text => {
            report.notes.iter().for_each(say::note);
            let mut out = say::output();
            write_report(&mut out, &report)?;
            out.flush()?;
        }
    }
    Ok(if report.is_sound() { Exit::Done } else { Exit::NotMet })
}

fn write_report(out: &mut impl Write, report: &VerifyReport) -> io::Result<()> {
    writeln!(
        out,
        "read       {} rows of {} tables, {} in {}, {:.0} MB/s",
        group_thousands(report.rows as f64),
        report.tables,
        Bytes(report.bytes),
        Nanos(report.elapsed_ns),
        report.bytes as f64 * 1e3 / report.elapsed_ns.max(1) as f64
    )?;
    for fault in &report.faults {
        writeln!(out, "fault      {fault}")?;
    }
    let unreported = report.fault_count.saturating_sub(report.faults.len() as u64);
    if unreported > 0 {
        writeln!(out, "           and {} more", group_thousands(unreported as f64))?;
    }
    if report.is_sound() {
        writeln!(out, "sound      every row is there once, in a block of its own, and as long as it was loaded")
    } else {
        writeln!(out, "not sound  the data are not what was loaded")
    }
}
