//! What load and work are called, so that each kind of user reads his own words.

use super::sending::{OUT_OF_QUOTA, is_under_quota};
use super::traffic::operations_are_requests;
use model::record::Workload;
use model::record::{Run, Step};
use model::units::group_thousands;

/// The words of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    /// Sessions do operations, each of many reads.
    Sessions,
    /// Requests are outstanding, and each is an operation.
    Requests,
    /// Users do transactions, each of several statements.
    Users,
}

/// Whether the response times of a run are service times: other programs time requests from when they are sent, as fio's clat does.
pub fn is_timed_from_sent(run: &Run) -> bool {
    let mut operations = run.steps.iter().flat_map(|step| &step.operations);
    run.imported.is_some() && operations.all(|operation| operation.response == operation.service)
}

/// From when to when the response times of a run are.
pub fn response_words(run: &Run) -> &'static str {
    if is_timed_from_sent(run) { "from sent to finished" } else { "from due to finished" }
}

/// By which flag a command gives its load generator more threads; advice names no flag that a command has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadsFlag {
    /// `--jobs` of loads on raw storage.
    Jobs,
    /// `--lanes` of loads on databases.
    Lanes,
    /// The command decides by itself, or another program made the run.
    Absent,
    /// More threads use a quota up sooner.
    Quota,
}

impl ThreadsFlag {
    /// That of the command that made `run`.
    pub fn of(run: &Run) -> Self {
        match run.workload() {
            _ if run.imported.is_some() || run.check.is_some() => Self::Absent,
            _ if is_under_quota(run) => Self::Quota,
            Workload::Io => Self::Jobs,
            Workload::Slob | Workload::Orders => Self::Lanes,
            _ => Self::Absent,
        }
    }

    /// `more threads (`--jobs`)`.
    fn more_threads(self) -> Option<&'static str> {
        match self {
            Self::Jobs => Some("more threads (`--jobs`)"),
            Self::Lanes => Some("more threads (`--lanes`)"),
            Self::Absent | Self::Quota => None,
        }
    }

    /// What follows another way out: ` or more threads (`--jobs`)`, with `before` before it; empty without a flag.
    pub(super) fn or(self, before: &str) -> String {
        self.more_threads().map_or_else(String::new, |more| format!("{before}{more}"))
    }

    /// What helps a load generator that is the limit.
    pub(super) fn for_generator(self) -> String {
        match self.more_threads() {
            Some(more) => format!("Give the load generator {more} or processors."),
            None if self == Self::Quota => OUT_OF_QUOTA.to_owned(),
            None => "Generate the load on a machine with more or faster processors.".to_owned(),
        }
    }

    /// `fewer (`--jobs`)`.
    pub(super) fn fewer_threads(self) -> &'static str {
        match self {
            Self::Jobs => "fewer (`--jobs`)",
            Self::Lanes => "fewer (`--lanes`)",
            Self::Absent | Self::Quota => "fewer",
        }
    }

    /// What helps where processors are idle.
    pub(super) fn where_idle(self) -> String {
        match self.more_threads() {
            Some(more) => format!("Where processors are idle, {more} help."),
            None if self == Self::Quota => OUT_OF_QUOTA.to_owned(),
            None => {
                "End what else is working on this machine, or generate the load on one with more processors.".to_owned()
            }
        }
    }
}

impl Vocabulary {
    /// The words of `run`.
    pub fn of(run: &Run) -> Self {
        match run.workload() {
            _ if operations_are_requests(run) => Self::Requests,
            Workload::Orders if run.imported.is_none() => Self::Users,
            _ => Self::Sessions,
        }
    }

    /// What is finished: `operations`, `requests` or `transactions`.
    pub fn work(self) -> &'static str {
        match self {
            Self::Sessions => "operations",
            Self::Requests => "requests",
            Self::Users => "transactions",
        }
    }

    /// What a closed loop has more of when its load is larger.
    pub fn slots(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Requests => "requests outstanding",
            Self::Users => "users",
        }
    }

    /// A closed loop's load: `8 sessions` or `8 outstanding`.
    pub fn closed_load(self, slots: u32) -> String {
        match (self, slots) {
            (Self::Sessions, 1) => "1 session".to_owned(),
            (Self::Sessions, _) => format!("{} sessions", group_thousands(f64::from(slots))),
            (Self::Requests, _) => format!("{} outstanding", group_thousands(f64::from(slots))),
            (Self::Users, 1) => "1 user".to_owned(),
            (Self::Users, _) => format!("{} users", group_thousands(f64::from(slots))),
        }
    }

    /// `5,000 operations/s` or `5,000 requests/s`.
    pub fn rate(self, per_s: f64) -> String {
        format!("{} {}/s", group_thousands(per_s), self.work())
    }

    /// The load of a step: its rate in an open loop, else how much is at work at once.
    pub(super) fn load(self, step: &Step) -> String {
        match step.load.rate_operations_per_s {
            Some(rate) => self.rate(rate),
            None => step
                .load
                .sessions
                .map_or_else(|| "load that is not reported".to_owned(), |sessions| self.closed_load(sessions)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::Load;
    use model::record::sample;

    #[test]
    fn times_of_other_programs_that_are_counted_from_sent_are_called_so() {
        let mut run = sample::requests::mixed();
        assert_eq!(response_words(&run), "from due to finished", "our own are from due, however short the queue");
        run.imported = Some(model::record::Imported {
            files: Vec::new(),
            clock: model::record::Clock::Wall,
            not_understood: Vec::new(),
        });
        for operation in run.steps.iter_mut().flat_map(|step| &mut step.operations) {
            operation.response = operation.service.clone();
        }
        assert_eq!(response_words(&run), "from sent to finished");
        run.steps[0].operations[0].response = sample::latencies(7, 1_000);
        assert_eq!(response_words(&run), "from due to finished");
    }

    #[test]
    fn advice_names_the_flag_that_the_command_has_and_none_that_it_has_not() {
        let of = |change: fn(&mut Run)| {
            let mut run = sample::requests::sweep();
            change(&mut run);
            let threads = ThreadsFlag::of(&run);
            [threads.for_generator(), threads.where_idle(), threads.or(", or with ")].join(" ")
        };
        let raw = of(|_| {});
        assert_eq!((raw.matches("`--jobs`").count(), raw.contains("--lanes")), (3, false), "{raw}");
        let engine = of(|run| run.load = Load::foreign(Workload::Slob));
        assert_eq!((engine.matches("`--lanes`").count(), engine.contains("--jobs")), (3, false), "{engine}");
        let of_check = |run: &mut Run| run.check = Some(sample::check_of_reads("3000@5ms"));
        for without in [of(of_check), of(|run| run.load = Load::foreign(Workload::Orion))] {
            assert!(!without.contains("--"), "{without}");
        }
    }
}
