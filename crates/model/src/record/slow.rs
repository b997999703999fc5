//! Operations that took far longer than most, and what the system did meanwhile, in spans shorter than an interval.

use serde::{Deserialize, Serialize};

/// An episode of slow operations has one that took at least this long: what is shorter is not seen in moments of 50 ms.
pub const LONG_NS: u64 = 25_000_000;

/// One operation that took far longer than most of its step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct SlowOperation {
    /// What was requested, in the words of the workload, such as `read`.
    pub kind: String,
    /// The session whose it was: its number in the step, from 0.
    pub session: u32,
    /// From the start of the step's load to its end.
    pub ended_ns: u64,
    /// From sent to finished.
    pub service_ns: u64,
    /// From due to finished.
    pub response_ns: u64,
    /// How many slow operations it stands for: of many, only some are recorded. 1 where absent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub stands_for: f64,
}

fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_one(count: &f64) -> bool {
    *count == 1.0
}

impl SlowOperation {
    /// From the start of the step's load to the instant at which it was due.
    pub fn due_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.response_ns)
    }
}

/// Slow operations that ended in an interval. With the last one of a window are those that were under way when it closed; one that never
/// ended stands there as if it had ended when it was given up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct SlowOperations {
    /// How many ended that took longer than their thread's threshold at that time, which follows from the intervals before. The
    /// interval's `response` has exact counts beyond any time.
    pub count: u64,
    /// Some of them, drawn at random if there are many; those of 25 ms or longer before others.
    pub kept: Vec<SlowOperation>,
}

/// What the system did in short spans of an interval, the *moments*. Every list has one element for each moment; one that is absent could
/// not be read. Times that are sums over CPUs or requests may exceed the length of the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Moments {
    /// From the start of the step's load to the beginning of the first one.
    pub begin_ns: u64,
    /// How long each moment was: 50 ms and a little more, unless the thread that looks was held up.
    pub length_us: Vec<u64>,
    /// By how much that thread, which only sleeps and comes before others, woke too late.
    pub overslept_us: Vec<u64>,
    /// Requests that the devices below the target completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Vec<u64>>,
    /// Of these, flushes of the devices' caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<Vec<u64>>,
    /// Time that the completed requests spent at the devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_us: Option<Vec<u64>>,
    /// Requests that the devices held when the moment ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<Vec<u64>>,
    /// Bytes that the devices wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<Vec<u64>>,
    /// Bytes that the devices read or wrote and that are not this process's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_bytes: Option<Vec<u64>>,
    /// Time for which the thread of the load that waited longest was ready to run and got no CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_us: Option<Vec<u64>>,
    /// Time for which the CPU quota of our control group stopped threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_us: Option<Vec<u64>>,
    /// Time that the hypervisor took from a CPU, the mean of all CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_us: Option<Vec<u64>>,
    /// Time for which CPUs were idle, their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_us: Option<Vec<u64>>,
    /// Time for which at least one task of the machine waited for memory (PSI, `some`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_stall_us: Option<Vec<u64>>,
    /// TCP segments that the machine sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted: Option<Vec<u64>>,
}

/// What was seen in one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "documented at the lists of `Moments`")]
pub struct Moment {
    pub length_us: u64,
    pub overslept_us: u64,
    pub completed: Option<u64>,
    pub flushes: Option<u64>,
    pub device_us: Option<u64>,
    pub in_flight: Option<u64>,
    pub written_bytes: Option<u64>,
    pub others_bytes: Option<u64>,
    pub waited_us: Option<u64>,
    pub throttled_us: Option<u64>,
    pub stolen_us: Option<u64>,
    pub idle_us: Option<u64>,
    pub memory_stall_us: Option<u64>,
    pub retransmitted: Option<u64>,
}

macro_rules! lists {
    ($($name:ident),+) => {
        impl Moments {
            /// The lists of these moments, the first of which began so long after the start of the load. A list is absent if any of them
            /// lacks its value.
            pub fn of(begin_ns: u64, moments: &[Moment]) -> Self {
                Self {
                    begin_ns,
                    overslept_us: moments.iter().map(|moment| moment.overslept_us).collect(),
                    length_us: moments.iter().map(|moment| moment.length_us).collect(),
                    $($name: moments.iter().map(|moment| moment.$name).collect(),)+
                }
            }

            /// The moments, one after another. A list that is too short, as in a file that was changed by hand, gives no value.
            pub fn iter(&self) -> impl Iterator<Item = Moment> {
                self.length_us.iter().enumerate().map(|(at, length_us)| Moment {
                    length_us: *length_us,
                    overslept_us: self.overslept_us.get(at).copied().unwrap_or_default(),
                    $($name: self.$name.as_ref().and_then(|list| list.get(at).copied()),)+
                })
            }
        }
    };
}

lists!(
    completed,
    flushes,
    device_us,
    in_flight,
    written_bytes,
    others_bytes,
    waited_us,
    throttled_us,
    stolen_us,
    idle_us,
    memory_stall_us,
    retransmitted
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_what_their_lists_were_made_of_and_what_one_lacks_is_unknown() {
        let seen = Moment { length_us: 50_000, completed: Some(3), idle_us: Some(7), ..Moment::default() };
        let moments = [seen, Moment { idle_us: None, completed: Some(0), ..seen }];
        let lists = Moments::of(7, &moments);
        assert_eq!((lists.completed.as_deref(), &lists.idle_us), (Some([3, 0].as_slice()), &None));
        let back: Vec<Moment> = lists.iter().collect();
        assert_eq!(back, moments.map(|moment| Moment { idle_us: None, ..moment }));
        let cut = Moments { completed: Some(vec![3]), ..lists };
        assert_eq!(cut.iter().map(|moment| moment.completed).collect::<Vec<_>>(), [Some(3), None]);
        assert_eq!(Moments::of(0, &[]).iter().count(), 0);
    }

    #[test]
    fn an_operation_was_due_before_it_ended() {
        let slow = |ended_ns, response_ns| SlowOperation {
            kind: "read".to_owned(),
            session: 3,
            ended_ns,
            service_ns: 1,
            response_ns,
            stands_for: 1.0,
        };
        assert_eq!((slow(900, 300).due_ns(), slow(9, 300).due_ns()), (600, 0));
    }
}
