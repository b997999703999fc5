//! Servers that used up the processors of this machine, so that nothing is learnt about storage.

use super::{Processors, ServerFinding};
use crate::{Vocabulary, is_on_server, worst};
use model::record::{Run, Step};

/// Whether the server used up the processors of this machine.
pub(crate) fn are_exhausted(run: &Run, step: &Step) -> bool {
    is_on_server(step) && Processors::of(run, step).is_some_and(|processors| processors.are_exhausted_by_server())
}

pub(super) fn find(run: &Run) -> Option<ServerFinding> {
    // For transactions processors are a limit as any other.
    if Vocabulary::of(run) == Vocabulary::Users {
        return None;
    }
    let exhausted = |step: &Step| {
        let processors = Processors::of(run, step).filter(|_| are_exhausted(run, step))?;
        Some((processors.busy?, processors.server?, processors.generator))
    };
    let (steps, (busy, server, generator)) = worst(run, exhausted)?;
    Some(ServerFinding::ProcessorsExhausted { steps, busy, server, generator })
}
