//! The server's clock, mapped to ours.
//!
//! A server times the operations of a batch by its wall clock, in microseconds. All of them lie between the moment when the
//! batch was sent and that when its answer came. What is left between the two is taken to be way there and back in equal
//! parts. A wall clock can be set while a batch runs; that shows when its operations take longer than we waited for them all,
//! or end before they began.

use targets::BatchedOperation;

/// The server's clock may run so much faster than ours within a batch without having been set.
const TOLERANCE_NS: u64 = 1_000_000;

/// What a server reported on a batch that it executed and timed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTimes {
    /// When its first operation began, in microseconds of the server's clock since any instant.
    pub began_us: i64,
    /// Its operations in their order. Each began when the one before it ended.
    pub operations: Vec<TimedOperation>,
}

/// One operation of such a batch, in microseconds of the same clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOperation {
    /// When its commit began, if it had one.
    pub committing_us: Option<i64>,
    /// When it ended.
    pub ended_us: i64,
    /// Rows that it read or changed.
    pub touched: u64,
}

impl ServerTimes {
    /// Leaves the operations between the two instants of our clock, and says whether the server's clock was set meanwhile, so
    /// that what they took is only an estimate. What they changed is not known here.
    pub(super) fn lay_between(&self, sent_ns: u64, received_ns: u64) -> (Vec<BatchedOperation>, bool) {
        let available_ns = received_ns.saturating_sub(sent_ns);
        let mut was_set = false;
        let mut before_us = self.began_us;
        let mut placed: Vec<BatchedOperation> = self
            .operations
            .iter()
            .map(|&TimedOperation { committing_us, ended_us, touched }| {
                let service_us = ended_us.saturating_sub(std::mem::replace(&mut before_us, ended_us));
                was_set |= service_us < 0;
                let service_ns = nanos(service_us);
                let commit_ns = committing_us.map(|begun_us| nanos(ended_us.saturating_sub(begun_us)).min(service_ns));
                BatchedOperation { ended_ns: 0, service_ns, commit_ns, block_touches: touched, block_changes: 0 }
            })
            .collect();
        let took_ns = sum_ns(&placed);
        if took_ns > available_ns.saturating_add(TOLERANCE_NS) {
            was_set = true;
            // A clock is set in one moment, so within one operation: the longest.
            if let Some(longest) = placed.iter_mut().max_by_key(|placed| placed.service_ns) {
                longest.service_ns = longest.service_ns.saturating_sub(took_ns - available_ns);
            }
        }
        let took_ns = sum_ns(&placed);
        if took_ns > available_ns {
            for placed in &mut placed {
                placed.service_ns =
                    (u128::from(placed.service_ns) * u128::from(available_ns) / u128::from(took_ns)) as u64;
            }
        }
        let mut at_ns = sent_ns + available_ns.saturating_sub(took_ns) / 2;
        for placed in &mut placed {
            at_ns += placed.service_ns;
            placed.ended_ns = at_ns;
            placed.commit_ns = placed.commit_ns.map(|commit_ns| commit_ns.min(placed.service_ns));
        }
        (placed, was_set)
    }
}

fn sum_ns(placed: &[BatchedOperation]) -> u64 {
    placed.iter().fold(0, |sum, placed| sum.saturating_add(placed.service_ns))
}

fn nanos(us: i64) -> u64 {
    u64::try_from(us).unwrap_or(0).saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(began_us: i64, ended_us: &[i64]) -> ServerTimes {
        let timed = |&ended_us| TimedOperation { committing_us: None, ended_us, touched: 1 };
        ServerTimes { began_us, operations: ended_us.iter().map(timed).collect() }
    }

    fn given(times: &ServerTimes, sent_us: u64, received_us: u64) -> (Vec<(u64, u64)>, bool) {
        let (placed, was_set) = times.lay_between(sent_us * 1_000, received_us * 1_000);
        (placed.iter().map(|placed| (placed.ended_ns / 1_000, placed.service_ns / 1_000)).collect(), was_set)
    }

    #[test]
    fn a_batch_is_laid_into_the_middle_of_the_time_it_was_waited_for() {
        let times = times(1_000_000, &[1_000_300, 1_000_400, 1_001_000]);
        assert_eq!(given(&times, 50, 1_250), (vec![(450, 300), (550, 100), (1_150, 600)], false));
    }

    #[test]
    fn a_commit_is_the_end_of_its_operation_and_others_have_none() {
        let mut times = times(0, &[500, 900]);
        times.operations[1].committing_us = Some(650);
        let (placed, _) = times.lay_between(0, 900_000);
        assert_eq!((placed[0].commit_ns, placed[1].commit_ns), (None, Some(250_000)));
    }

    #[test]
    fn a_server_clock_a_little_fast_is_slowed_down_and_nothing_is_said() {
        assert_eq!(given(&times(0, &[500, 2_000]), 0, 1_000), (vec![(250, 250), (1_000, 750)], false));
    }

    #[test]
    fn a_clock_set_forward_within_an_operation_costs_only_that_one_its_time() {
        let hour = 3_600_000_000;
        assert_eq!(
            given(&times(0, &[500, hour + 900, hour + 1_500]), 0, 2_000),
            (vec![(500, 500), (1_400, 900), (2_000, 600)], true)
        );
    }

    #[test]
    fn a_clock_set_back_leaves_no_operation_that_ended_before_it_began() {
        let hour = 3_600_000_000;
        let (placed, was_set) = given(&times(hour, &[hour + 500, 900, 1_500]), 0, 2_000);
        assert_eq!((placed, was_set), (vec![(950, 500), (950, 0), (1_550, 600)], true));
    }

    #[test]
    fn absurd_times_break_nothing() {
        for ended in [[i64::MIN, i64::MAX], [i64::MAX, i64::MIN], [i64::MAX, i64::MAX]] {
            for began in [i64::MIN, 0, i64::MAX] {
                let (placed, _) = times(began, &ended).lay_between(5, 10);
                assert!(
                    placed.iter().all(|placed| (5..=10).contains(&placed.ended_ns)),
                    "{began} {ended:?} {placed:?}"
                );
            }
        }
    }
}
