//! Limits that are asked for: refused before there is any load if nothing can be judged by them.

use super::exit::Failure;
use crate::cli::timed::Timed;
use analysis::{Judgeable, LatencyTarget};

/// Refuses limits on what a planned run does not time.
pub(super) fn check_planned(limits: &[LatencyTarget], timed: &Timed) -> Result<(), Failure> {
    check(limits, &Judgeable::new(&timed.kinds, &timed.events))
}

/// The limits that a load line over rates keeps: the usual one, if none was asked for.
pub(super) fn of_lines(asked: &[LatencyTarget]) -> Vec<LatencyTarget> {
    if asked.is_empty() { vec![LatencyTarget::default()] } else { asked.to_vec() }
}

/// Refuses limits on what is not there.
pub(super) fn check(limits: &[LatencyTarget], judgeable: &Judgeable) -> Result<(), Failure> {
    limits.iter().try_for_each(|limit| {
        judgeable.check(limit).map_err(|refused| Failure::new(&refused).with_hint(refused.hint().to_owned()))
    })
}
