//! Making data, whoever asks for it.

use super::exit::Failure;
use super::interrupt::Interrupt;
use super::live::ByteProgress;
use crate::targets::TargetError;
use crate::targets::database::{self, SetupPlan, SetupReport};

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
