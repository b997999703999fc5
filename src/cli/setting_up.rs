//! Making data, whoever asks for it.

use std::io::Write;

use serde_json::Value;

use super::exit::Failure;
use super::live::{ByteProgress, Verbosity};
use super::{Interrupt, say, sheets};
use model::units::Nanos;
use targets::TargetError;
use targets::database::{self, SetupPlan, SetupReport};

/// Makes the data and says what is to be known about them; `None` where a dry run only says what would be done.
pub(super) fn run(
    plan: Box<dyn SetupPlan + '_>,
    is_dry: bool,
    verbosity: Verbosity,
    interrupt: &Interrupt,
) -> Result<Option<SetupReport>, Failure> {
    let known = plan.notes();
    known.iter().for_each(say::note);
    if is_dry {
        let mut out = say::output();
        sheets::write(&mut out, &plan.sheet())?;
        if !plan.makes_data() {
            writeln!(out, "\nNothing would be written.")?;
        }
        out.flush()?;
        return Ok(None);
    }
    let report = load(plan, &ByteProgress::new("setting up", verbosity), interrupt)?;
    report.notes.iter().filter(|note| !known.contains(note)).for_each(say::note);
    Ok(Some(report))
}

/// What every document of a set-up has, added to what is of its kind of data.
pub(super) fn document(mut of_its_kind: Value, report: SetupReport) -> Value {
    of_its_kind["created"] = report.created.into();
    of_its_kind["seed"] = report.seed.into();
    of_its_kind["bytes_written"] = report.bytes_written.into();
    of_its_kind["elapsed_ns"] = report.elapsed_ns.into();
    of_its_kind["notes"] = report.notes.into();
    for (name, value) in report.document {
        of_its_kind[name] = value;
    }
    of_its_kind
}

/// How long each phase took, as a sentence.
pub(super) fn phases(report: &SetupReport) -> String {
    let phases: Vec<String> = report.phases.iter().map(|(phase, ns)| format!("{phase} {}", Nanos(*ns))).collect();
    format!("{}.", phases.join(", "))
}

/// Makes the data, and shows how far that has come.
pub(super) fn load(
    plan: Box<dyn SetupPlan + '_>,
    progress: &ByteProgress,
    interrupt: &Interrupt,
) -> Result<SetupReport, Failure> {
    let (after_interrupt, row_bytes) = (plan.after_interrupt(), plan.mean_row_bytes());
    let show = |phase: Option<database::Phase>, now: database::Progress| match phase {
        Some(phase) => {
            let row_bytes = row_bytes.filter(|_| phase.is_loading());
            progress.update_phase(phase, now.done_bytes, now.total_bytes, row_bytes);
        }
        None => progress.update(now.done_bytes, now.total_bytes),
    };
    let outcome = plan.run(&show, interrupt.flag());
    progress.end();
    outcome.map_err(|error| match (error, interrupt.exit()) {
        (TargetError::Interrupted, Some(exit)) => {
            Failure::new(format_args!("interrupted; {after_interrupt}")).with_exit(exit)
        }
        (error, _) => Failure::from(error),
    })
}
