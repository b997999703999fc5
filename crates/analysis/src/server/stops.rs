//! Where the time of users' transactions goes, and what stops more of them.
//!
//! By Little's law the transactions under way are their rate times their mean time. Each of them is in one place at a time: its server
//! process runs, is ready and does not run, or waits for something that the server names; else it is outside of the server, on the way
//! there or back. So the parts add up to the transactions under way, and what no part has is outside.

use super::figures::Served;
use super::{Classes, ENOUGH_LOOKS, EXHAUSTED, Processors};
use crate::Figures;
use crate::generator::{throttled_share, wanted_share};
use crate::message::list;
use model::record::{Run, SessionState, Step, Term, Throttled};
use model::shown::shown;
use model::units::{Nanos, group_thousands, percent};

/// What transactions spend this share of their time on stops them, or is where most of it goes.
const MOST: f64 = 0.3;
/// Whoever used this share of the processor time that was used, used it up.
const MAINLY: f64 = 0.5;
/// Other programs that used more than this share of it are what stands in the way, whoever used more.
const OTHERS: f64 = 0.2;
/// A quota that held a server back in fewer periods than this share is not what it waits for.
const OFTEN: f64 = 0.1;
/// A load generator that was busy for more than this share of its time may itself be the way outside.
const BUSY: f64 = 0.5;

/// Transactions under way on average, by where they are. Unknown parts are none, and then so is what is left.
#[derive(Debug, Clone, PartialEq)]
struct Spent {
    all: f64,
    /// Ready to run, without a processor.
    ready: Option<f64>,
    /// On a processor or ready for one, as far as that is known.
    processors: f64,
    reads: f64,
    log: f64,
    locks: f64,
    /// The wait that most were found in of those that have no class here, by the server's name for it.
    named: Option<(String, f64)>,
    /// Outside of the server.
    outside: f64,
}

impl Spent {
    /// Of one step; `None` where its transactions were not timed, or sessions were not looked at often enough.
    fn of(step: &Step, served: &Served<'_>) -> Option<Self> {
        let figures = Figures(step);
        let all = figures.operations_per_s()? * figures.service_in_window()?.mean_ns()? / 1e9;
        if served.looks() < ENOUGH_LOOKS || all <= 0.0 {
            return None;
        }
        let classes = Classes::of(served, step.load.sessions.map_or(0.0, f64::from));
        // What a log or a lock is waited for besides commits and rows, a standby or a new page of a file, is its own cause.
        let beside = |found: &&str| match served.state(found) {
            // A leader waits for its own parallel workers, which compute or read.
            SessionState::Other if found.starts_with("IPC:") => false,
            SessionState::Log | SessionState::Other => true,
            SessionState::Lock => !is_of_rows(found),
            _ => false,
        };
        let named: Vec<(&str, f64)> = served.doing().into_iter().filter(|(found, _)| beside(found)).collect();
        let of =
            |state| named.iter().filter(|(found, _)| served.state(found) == state).map(|(_, mean)| mean).sum::<f64>();
        let reads = classes.reads.likely;
        let log = (classes.log.likely - of(SessionState::Log)).max(0.0);
        let locks = (classes.locks.likely - of(SessionState::Lock)).max(0.0);
        let named = named.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let named = named.map(|(found, mean)| (found.to_owned(), mean));
        let reading = classes.reading(served, step);
        let (reads, waiting) = (reads + reading, classes.waiting() + reading);
        let running = served.processors();
        // Who was woken still counts as waiting until he runs.
        let most = |running: f64| (all - waiting - running).max(0.0);
        let ready = running.zip(served.ready()).map(|(running, ready)| ready.min(most(running)));
        // Where processes cannot be seen, what sessions were seen doing says how many run or want to.
        let seen = classes.processor.likely + classes.either.likely - reading;
        let at_processors = running.zip(ready).map_or(seen, |(running, ready)| (running + ready).max(seen));
        let outside = (all - waiting - at_processors).max(0.0);
        // A sample can find more at work than there are: then shares are of these.
        let all = all.max(waiting + at_processors.min(seen));
        Some(Self { all, ready, processors: at_processors, reads, log, locks, named, outside })
    }
}

/// What stops transactions, or where most of their time goes. Shares are 0 to 1.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stops {
    /// The machine had no processor time left.
    Processors {
        /// Share of the time that processors were busy.
        busy: f64,
        /// Who used most of what was used.
        by: UsedBy,
        /// Share of what was used that neither the server nor the load generator used; absent where the server's is not known.
        others: Option<f64>,
        /// Share of the time that the hypervisor took; absent unless it is who used them.
        #[serde(skip_serializing_if = "Option::is_none")]
        stolen: Option<f64>,
    },
    /// A quota kept processors from the server.
    Quota {
        /// Share of the time of transactions in which the server was ready to run and did not.
        share: f64,
        /// Periods of the quota in which the server had something to do.
        periods: u64,
        /// Those in which it was held back.
        throttled_periods: u64,
    },
    /// Sessions wait for their commits, until the log is durable.
    Commits {
        /// Share of the time of transactions.
        share: f64,
        /// The mean time in which the log was made durable, where the server times it.
        #[serde(rename = "flush_ns")]
        flush: Option<Nanos>,
        /// What the server calls its log.
        log: String,
    },
    /// Sessions wait for rows that other transactions have changed.
    Locks {
        /// Share of the time of transactions.
        share: f64,
        /// The mean wait, where the server times it.
        #[serde(rename = "wait_ns")]
        wait: Option<Nanos>,
    },
    /// Sessions wait for blocks from storage.
    Reads {
        /// Share of the time of transactions.
        share: f64,
    },
    /// Sessions wait for something that only the server's name for it says.
    Waits {
        /// Share of the time of transactions.
        share: f64,
        /// That name, such as `IPC:SyncRep`.
        event: String,
        /// Whether it is a lock of another transaction, on something else than rows.
        is_lock: bool,
    },
    /// The server had nothing to do for transactions that were under way.
    Outside {
        /// Share of the time of transactions.
        share: f64,
        /// Whether the server's processors can be seen from here, so that it did not want one either.
        is_sure: bool,
    },
    /// Sessions wait for several things, each for as long as looks at them can tell; the largest first.
    Several(Vec<Self>),
}

/// Who used the processors of the load generator's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsedBy {
    /// The server.
    Server,
    /// The load generator.
    Generator,
    /// The hypervisor, which gave them to other machines.
    Hypervisor,
    /// Neither of them alone, but both together.
    Both,
    /// Other programs on the machine, or the kernel by itself, or these besides.
    Others,
    /// Not the load generator: the server, whose processor time is not known, or other programs.
    Unknown,
}

impl Stops {
    /// Of one step; `None` where nothing stands out, or too little was seen. Processors come first: whoever waits for one waits longer
    /// for all else.
    pub(crate) fn of(run: &Run, step: &Step) -> Option<Self> {
        let processors = Self::processors(run, step);
        match processors {
            // Who stands behind others may still wait for something of his own.
            Some(Self::Processors { by: UsedBy::Others | UsedBy::Hypervisor, .. }) => {
                let quota = Self::quota(run, step).filter(Self::is_mostly_held_back);
                quota.or_else(|| Self::waits(run, step)).or(processors)
            }
            Some(_) => processors,
            None => Self::quota(run, step).or_else(|| Self::waits(run, step)).or_else(|| Self::outside(run, step)),
        }
    }

    /// Of a quota: whether it held the server back in most periods, so that a free machine would have been no help.
    fn is_mostly_held_back(&self) -> bool {
        matches!(self, Self::Quota { periods, throttled_periods, .. } if *throttled_periods as f64 >= MAINLY * *periods as f64)
    }

    /// Only if it is processors.
    pub(crate) fn processors(run: &Run, step: &Step) -> Option<Self> {
        let Processors { busy, stolen, server, generator, .. } = Processors::of(run, step)?;
        let busy = busy.filter(|busy| *busy >= EXHAUSTED)?;
        let generator = generator?;
        let others = server.map(|server| (1.0 - server - generator).max(0.0));
        let by = match server {
            _ if stolen >= Some(OTHERS) => UsedBy::Hypervisor,
            _ if others >= Some(OTHERS) => UsedBy::Others,
            Some(server) if server >= MAINLY => UsedBy::Server,
            _ if generator >= MAINLY => UsedBy::Generator,
            Some(_) => UsedBy::Both,
            None => UsedBy::Unknown,
        };
        Some(Self::Processors { busy, by, others, stolen: stolen.filter(|_| by == UsedBy::Hypervisor) })
    }

    fn quota(run: &Run, step: &Step) -> Option<Self> {
        let served = Served::of(run, step);
        let throttled = served.throttled()?;
        let Throttled { periods, throttled_periods, throttled_ns } = throttled;
        let spent = Spent::of(step, &served)?;
        // All that were under way may have been held back while the quota was used up, and no longer. What they were ready for besides was
        // taken by others.
        // The kernel adds up the time of all processors, so that the share of periods bounds it too.
        let held_back = throttled_ns as f64 / 1e9 / Figures(step).seconds();
        let held_back = held_back.min(throttled_share(throttled));
        let share = (spent.ready? / spent.all).min(held_back);
        let is_often = throttled_periods as f64 >= OFTEN * periods as f64 && throttled_periods > 0;
        let named = spent.named.map_or(0.0, |(_, mean)| mean);
        let is_most = [spent.reads, spent.log, spent.locks, named].iter().all(|wait| wait / spent.all <= share);
        (is_often && is_most && share >= MOST).then_some(Self::Quota { share, periods, throttled_periods })
    }

    fn waits(run: &Run, step: &Step) -> Option<Self> {
        let served = Served::of(run, step);
        let Spent { all, processors, reads, log, locks, named, outside, .. } = Spent::of(step, &served)?;
        let ns = |ns: f64| Nanos(ns as u64);
        let mut waits = vec![
            Self::Commits {
                share: log / all,
                flush: served.mean_log_sync_ns().map(ns),
                log: run.target.term(Term::Log).to_owned(),
            },
            Self::Locks { share: locks / all, wait: served.mean_lock_wait_ns().map(ns) },
            Self::Reads { share: reads / all },
        ];
        waits.extend(named.map(|(event, mean)| {
            let is_lock = served.state(&event) == SessionState::Lock;
            Self::Waits { share: mean / all, event, is_lock }
        }));
        waits.sort_by(|one, other| other.share().total_cmp(&one.share()));
        let most = waits.first()?.share();
        // What is less than the time at work or on the way is not what stops them.
        if most < MOST || most < outside.max(processors) / all {
            return None;
        }
        // Each look at a session is a draw, so that a share is known to two standard errors of one.
        let draws = served.looks() as f64 * all.max(1.0);
        let error = 2.0 * (2.0 * most * (1.0 - most).max(0.0) / draws).sqrt();
        waits.retain(|wait| wait.share() >= MOST && wait.share() >= most - error);
        if waits.len() == 1 { waits.pop() } else { Some(Self::Several(waits)) }
    }

    /// What is outside may be the load generator itself: then nothing is said.
    fn outside(run: &Run, step: &Step) -> Option<Self> {
        let served = Served::of(run, step);
        let Spent { all, ready, outside, .. } = Spent::of(step, &served)?;
        let is_idle = wanted_share(step).is_some_and(|share| share < BUSY);
        let share = outside / all;
        (is_idle && share >= MAINLY).then_some(Self::Outside { share, is_sure: ready.is_some() })
    }

    /// Of the time of transactions, or of processors.
    fn share(&self) -> f64 {
        match self {
            Self::Processors { busy: share, .. }
            | Self::Quota { share, .. }
            | Self::Commits { share, .. }
            | Self::Locks { share, .. }
            | Self::Reads { share }
            | Self::Waits { share, .. }
            | Self::Outside { share, .. } => *share,
            Self::Several(waits) => waits.iter().map(Self::share).sum(),
        }
    }

    /// What it is, and the figures beside it, such as the time of a flush.
    fn parts(&self) -> (String, Option<String>) {
        let alone = |what: &str| (what.to_owned(), None);
        match self {
            Self::Processors { by: UsedBy::Others, busy, others: Some(others), .. } => (
                "processors".to_owned(),
                Some(format!("{} % busy, {} of that by other programs or the kernel", percent(*busy), whole(*others))),
            ),
            Self::Processors { by: UsedBy::Hypervisor, busy, stolen: Some(stolen), .. } => (
                "processors".to_owned(),
                Some(format!("{} % busy, {} of the time taken by the hypervisor", percent(*busy), whole(*stolen))),
            ),
            Self::Processors { by, busy, .. } => {
                let whose = match by {
                    UsedBy::Server => "the server's processors",
                    UsedBy::Generator => "the load generator's processors",
                    UsedBy::Both => "the processors that server and load generator share",
                    UsedBy::Others | UsedBy::Hypervisor | UsedBy::Unknown => "the processors of this machine",
                };
                (whose.to_owned(), Some(format!("{} % busy", percent(*busy))))
            }
            Self::Quota { periods, throttled_periods, .. } => (
                "the server's processor quota".to_owned(),
                Some(format!("held back in {}", periods_words(*throttled_periods, *periods))),
            ),
            Self::Commits { flush, log, .. } => {
                ("commits".to_owned(), flush.map(|flush| format!("{log} flushes at {flush} each")))
            }
            Self::Locks { wait, .. } => ("locks of rows".to_owned(), wait.map(|wait| format!("waits of {wait} each"))),
            Self::Reads { .. } => alone("reads from storage"),
            Self::Waits { event, is_lock: true, .. } => {
                (format!("locks other than of rows (`{}`)", shown(event)), None)
            }
            Self::Waits { event, .. } => (format!("waits that the server calls `{}`", shown(event)), None),
            Self::Outside { is_sure: true, .. } => alone("the way to the server and back"),
            Self::Outside { is_sure: false, .. } => {
                alone("the way to the server and back, or processors that it waits for")
            }
            Self::Several(waits) => {
                let (what, beside): (Vec<String>, Vec<Option<String>>) = waits.iter().map(Self::parts).unzip();
                let beside: Vec<String> = beside.into_iter().flatten().collect();
                (format!("{} alike", list(&what)), (!beside.is_empty()).then(|| beside.join(", ")))
            }
        }
    }

    /// `commits (64.0 % of the time of transactions, WAL flushes at 1.90 ms each)`.
    pub(crate) fn words(&self) -> String {
        self.words_of("transactions")
    }

    /// The same of other work than transactions.
    pub(crate) fn words_of(&self, work: &str) -> String {
        let (what, beside) = self.parts();
        let share = (!matches!(self, Self::Processors { .. }))
            .then(|| format!("{} % of the time of {work}", percent(self.share())));
        let beside: Vec<String> = share.into_iter().chain(beside).collect();
        format!("{what} ({})", beside.join(", "))
    }

    /// `64.0 % of the time of transactions went to commits (WAL flushes at 1.90 ms each)`.
    pub(crate) fn went_to(&self, work: &str) -> String {
        let (what, beside) = self.parts();
        let beside = beside.map_or_else(String::new, |beside| format!(" ({beside})"));
        format!("{} % of the time of {work} went to {what}{beside}", percent(self.share()))
    }

    /// The same as a sentence about a step.
    pub(crate) fn sentence(&self, step: &str) -> String {
        let share = percent(self.share());
        match self {
            Self::Processors { .. } => format!("Transactions of {step} were stopped by {}.", self.words()),
            Self::Quota { periods, throttled_periods, .. } => format!(
                "Transactions of {step} waited most for processors that a quota kept from the server, {share} % of their time: it was held \
                 back in {}.",
                periods_words(*throttled_periods, *periods)
            ),
            Self::Commits { flush, log, .. } => {
                let flush =
                    flush.map_or_else(String::new, |flush| format!(", which was made durable in {flush} on average"));
                format!(
                    "Transactions of {step} waited most for commits, {share} % of their time: for the {log}{flush}."
                )
            }
            Self::Locks { wait, .. } => {
                let wait = wait.map_or_else(String::new, |wait| format!(", {wait} each on average"));
                format!(
                    "Transactions of {step} waited most for rows that others had changed, {share} % of their time{wait}."
                )
            }
            Self::Reads { .. } => {
                format!("Transactions of {step} waited most for blocks from storage, {share} % of their time.")
            }
            Self::Waits { event, .. } => format!(
                "Transactions of {step} waited most for what the server calls `{}`, {share} % of their time.",
                shown(event)
            ),
            Self::Outside { is_sure, .. } => format!(
                "Transactions of {step} were outside of the server for {share} % of their time: on the way there and back{}.",
                if *is_sure { "" } else { ", or waiting for processors of the server that cannot be seen from here" }
            ),
            Self::Several(waits) => waits.iter().map(|wait| wait.sentence(step)).collect::<Vec<_>>().join(" "),
        }
    }

    /// What to do about it.
    pub(crate) fn advice(&self) -> String {
        match self {
            Self::Processors { by: UsedBy::Server, .. } => {
                "For more transactions give the server more or faster processors.".to_owned()
            }
            Self::Processors { by: UsedBy::Hypervisor, .. } => {
                "Use a machine whose processors are not shared with others (dedicated vCPUs).".to_owned()
            }
            Self::Processors { by: UsedBy::Others, .. } => {
                "See what else works on this machine (`top`), and end it, or use more processors.".to_owned()
            }
            Self::Processors { by: UsedBy::Unknown, .. } => {
                "See who uses them: the server, if it runs on this machine, or other programs.".to_owned()
            }
            Self::Processors { .. } => {
                "Generate the load on another machine than the server's, or on one with more processors.".to_owned()
            }
            Self::Quota { .. } => {
                "Raise the limit of the server's control group: `cpu.max`, or `cpu.cfs_quota_us` of version 1.".to_owned()
            }
            Self::Commits { log, .. } => format!("Put the {log} on storage with faster durable writes."),
            Self::Locks { .. } => {
                "Fewer users meet in larger data (`--scale`); look for a session that holds locks for long.".to_owned()
            }
            Self::Reads { .. } => "Give the server a larger cache, or its data faster storage.".to_owned(),
            Self::Waits { event, .. } if event.ends_with(":SyncRep") => {
                "Commits wait for a standby (`synchronous_standby_names`): measure the network to it and its storage."
                    .to_owned()
            }
            Self::Waits { is_lock: true, .. } => {
                "Look for the session that holds the lock; `plimsoll probe --stalls` names it.".to_owned()
            }
            Self::Waits { event, .. } => {
                format!("Look `{}` up among the wait events in the server's manual.", shown(event))
            }
            Self::Outside { .. } => {
                "Measure that way by itself: `plimsoll net serve` there, `plimsoll net run --to HOST` here; look for a shaper, a \
                 distant server or a pooler between."
                    .to_owned()
            }
            Self::Several(waits) => waits.iter().map(Self::advice).collect::<Vec<_>>().join(" "),
        }
    }
}

/// Whether a lock that sessions were found waiting for is of rows. PostgreSQL's are `tuple`, `transactionid` and `spectoken`, Oracle's
/// `TX - row lock contention`.
/// InnoDB's waits for rows have no name of their own, and those that have one are for tables.
fn is_of_rows(found_in: &str) -> bool {
    ["tuple", "transactionid", "spectoken", "enq: TX - row", "row"].iter().any(|of_rows| found_in.contains(of_rows))
}

/// A share in whole percents.
fn whole(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn periods_words(throttled: u64, all: u64) -> String {
    format!("{} of {} periods", group_thousands(throttled as f64), group_thousands(all as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Classes;
    use model::record::sample::servers;
    use model::record::{Activity, states};

    #[test]
    fn waits_for_rows_that_a_server_only_times_are_taken_from_what_looks_like_work() {
        let mut run = servers::innodb();
        let server = &mut run.steps[0].servers[0];
        server.session_samples = [("Updating".to_owned(), 7 * server.sampled_times)].into();
        server.session_states = states(&server.session_samples);
        server.session_states.insert("Updating".to_owned(), SessionState::ProcessorOrRead);
        let mut classes = |lock_sessions: u64| {
            let server = &mut run.steps[0].servers[0];
            server.activity.insert(Activity::LockWaitNs, lock_sessions * server.elapsed_ns);
            Classes::of(&Served::of(&run, &run.steps[0]), 8.0)
        };
        let found = classes(6);
        assert!((found.locks.likely - 6.0).abs() < 0.01 && (found.either.likely - 1.0).abs() < 0.01, "{found:?}");
        // Waits that began before the window are no more than there are sessions.
        assert!((classes(9).locks.likely - 7.0).abs() < 0.01 && classes(9).either.likely == 0.0);
    }
}
