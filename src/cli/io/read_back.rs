//! `--verify`: after the load, every block that it wrote is read back.

use crate::cli::interrupt::Interrupt;
use crate::cli::live::{ByteProgress, Verbosity};
use crate::cli::recording::Recording;
use model::units::group_thousands;
use targets::TargetError;
use targets::block::Block;

/// Reads back what was written, and says so in the record. A bad block fails the run.
pub(super) fn run(recording: &mut Recording, block: &Block, interrupt: &Interrupt, verbosity: Verbosity) {
    if !block.is_checked() || !recording.is_going_well() {
        return;
    }
    recording.progress().end();
    let progress = ByteProgress::new("reading back", verbosity);
    let result = block.read_back(&|now| progress.update(now.done_bytes, now.total_bytes), interrupt.flag());
    progress.end();
    match result {
        Ok(0) => recording.note("every block that was read held what was written there".to_owned()),
        Ok(blocks) => {
            let blocks = group_thousands(blocks as f64);
            recording.note(format!(
                "every block that was read held what was written there; the {blocks} blocks written were read back and are \
                 sound"
            ));
        }
        Err(TargetError::Interrupted) => {
            recording.note("reading back was cut short: not every block that was written was checked".to_owned());
            recording.cut_short();
        }
        Err(error) => recording.fail(error),
    }
}
