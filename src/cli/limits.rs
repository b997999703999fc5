//! Limits that are asked for: refused before there is any load if nothing can be judged by them.

use super::exit::Failure;
use crate::cli::timed::Timed;
use analysis::{Judgeable, LatencyTarget};
use clap::Args;

/// What a load must keep.
#[derive(Debug, Default, Args)]
pub(super) struct LimitArgs {
    /// Latency limit, such as `p99=5ms` or `log file sync:p99.9=20ms` (repeatable)
    ///
    /// All limits must be met. Without a name, a limit applies to the response time of all operations.
    ///
    /// For `slob` on the engine without --rate, it applies to single-block reads.
    ///
    /// Exit code 1 if a limit is exceeded, 2 if the data cannot decide.
    #[arg(long = "limit", alias = "target-latency", value_name = "[WHAT:]pQ=TIME", help_heading = "Output")]
    limits: Vec<LatencyTarget>,

    /// Share of operations that may fail although a limit is met, such as `0.1%` [default: 0%]
    #[arg(long, value_name = "PERCENT", value_parser = share, requires = "limits", help_heading = "Output")]
    errors: Option<f64>,
}

impl LimitArgs {
    /// The limits, each with the share that may fail.
    pub(super) fn asked(&self) -> Vec<LatencyTarget> {
        let errors = self.errors.or(Some(0.0));
        self.limits.iter().map(|limit| LatencyTarget { errors, ..limit.clone() }).collect()
    }
}

/// A share of operations, from `0.1%`.
pub(super) fn share(words: &str) -> Result<f64, String> {
    let percent: Option<f64> = words.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
    let share = percent.map(|percent| percent / 100.0).filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| "not a share from 0% to below 100%, such as `0.1%`".to_owned())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_may_fail_is_a_percentage() {
        assert_eq!((share("0.1%"), share(" 0 % ")), (Ok(0.001), Ok(0.0)));
        for wrong in ["", "%", "1", "0.5", "100%", "-1%", "nan%", "inf%", "1 percent"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
