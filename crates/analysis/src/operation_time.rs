//! Where the time of one operation went: reads, cache hits, log, waits, processor, and what nobody saw.
//!
//! Of a server it is what its sessions were seen doing: by Little's law, sessions in a state over operations per second are the time
//! that one operation spends in it. Of the engine it is what its sessions waited for, and the processor time of its process. What
//! is not known stays so.

use super::server::Classes;
use super::{Figures, Served, Vocabulary, is_on_server};
use model::record::{Metric, Run, Step, known_sum};

/// Looks at sessions below which they say little of where time went.
const ENOUGH_LOOKS: u64 = 10;

/// A part of an operation's time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Part {
    /// Time in one operation, in nanoseconds.
    pub ns: Option<f64>,
    /// Whether it is at most that.
    pub is_bound: bool,
    /// How often it happens in one operation, such as blocks read.
    pub each: Option<f64>,
}

/// Where the time of one operation went, on average over a step.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationTime {
    /// From sent to finished, in nanoseconds.
    pub mean_ns: f64,
    /// Waiting for blocks that were not in the buffer cache: for storage, or on a server for its page cache.
    pub reads: Part,
    /// Blocks that were in the buffer cache. Nobody times them: they are in the processor's time.
    pub cache_hits: Part,
    /// Waiting for the log.
    pub log: Part,
    /// Waiting for anything else.
    pub waits: Part,
    /// Using a processor, and on a server waiting for one.
    pub processor: Part,
    /// What is left; absent if a part is not known.
    pub rest_ns: Option<f64>,
    /// By how much the parts that were measured exceed the mean, in nanoseconds, if they do. An operation of the engine waits for several
    /// blocks at once, and looks at sessions are a sample.
    pub excess_ns: Option<f64>,
}

/// Time of sessions, in nanoseconds for each operation.
struct Spent {
    reads: Option<f64>,
    log: Option<f64>,
    waits: Option<f64>,
    processor: Option<f64>,
}

impl OperationTime {
    /// Of a step of a load of sessions, or of transactions of users; absent where these were not timed.
    pub fn of(run: &Run, step: &Step) -> Option<Self> {
        let is_of_database = matches!(Vocabulary::of(run), Vocabulary::Sessions | Vocabulary::Users);
        if !is_of_database || step.operations.is_empty() {
            return None;
        }
        let figures = Figures(step);
        let operations = figures.operations_per_s().filter(|rate| *rate > 0.0)?;
        let mean_ns = figures.service_in_window()?.mean_ns()?;
        let on_server = is_on_server(step);
        let spent = if on_server { of_server(run, step, operations) } else { of_engine(run, step, operations) };
        let each = |per_s: Option<f64>| per_s.map(|per_s| per_s / operations);
        let served = Served::of(run, step);
        let (missed, hits) = match on_server {
            // Where reads pass by the page cache, each goes to storage.
            true => {
                let reads = served
                    .value(Metric::BufferMisses)
                    .or_else(|| served.value(Metric::Reads).filter(|_| run.target.counts_device_reads()));
                (reads, served.value(Metric::CacheHits))
            }
            false => (figures.value(Metric::Reads), super::rate(step.counters.cache_hits, step.window.duration_ns)),
        };
        let part = |ns: Option<f64>, each| Part { ns, is_bound: false, each };
        let all: Option<f64> = [spent.reads, spent.log, spent.waits, spent.processor].into_iter().sum();
        let mut time = Self {
            mean_ns,
            reads: part(spent.reads, each(missed)),
            cache_hits: part(None, each(hits)),
            log: part(spent.log, each(figures.commits_per_s())),
            waits: part(spent.waits, None),
            processor: part(spent.processor, None),
            rest_ns: all.map(|all| mean_ns - all).filter(|rest| *rest >= 0.0),
            excess_ns: None,
        };
        let known: f64 = [spent.reads, spent.log, spent.waits, spent.processor].into_iter().flatten().sum();
        if known > mean_ns {
            time.excess_ns = Some(known - mean_ns);
            if !on_server {
                // Reads overlap each other and what the processor does: they are at most what the log and other waits leave.
                let others = spent.log.unwrap_or(0.0) + spent.waits.unwrap_or(0.0);
                let most = spent.reads.map(|reads| reads.min((mean_ns - others).max(0.0)));
                time.reads = Part { ns: most, is_bound: true, ..time.reads };
            }
        }
        Some(time)
    }
}

/// What sessions of all servers were seen doing; nothing is known unless all of them were looked at.
fn of_server(run: &Run, step: &Step, operations_per_s: f64) -> Spent {
    let is_seen = !step.servers.is_empty() && step.servers.iter().all(|server| server.sampled_times >= ENOUGH_LOOKS);
    let served = Served::of(run, step);
    let classes = Classes::of(&served, step.load.sessions.map_or(0.0, f64::from));
    let each = |sessions: f64| is_seen.then_some(sessions / operations_per_s * 1e9);
    let mut spent = Spent {
        reads: each(classes.reads.likely),
        log: each(classes.log.likely),
        waits: each(classes.locks.likely + classes.other.likely),
        processor: each(classes.processor.likely),
    };
    if classes.either.likely > 0.0 {
        // The server timed its reads, or nobody knows which of both it was.
        let either = each(classes.either.likely);
        let timed = served.read_seconds_per_s().map(|seconds| seconds / operations_per_s * 1e9);
        let read = either.zip(timed).map(|(either, timed)| timed.min(either));
        let plus = |known: Option<f64>, more: Option<f64>| known.zip(more).map(|(known, more)| known + more);
        spent.processor = plus(spent.processor, either.zip(read).map(|(either, read)| either - read));
        spent.reads = plus(spent.reads, read);
    }
    spent
}

/// What sessions of the engine waited for, and the processor time of the process, which simulated time has none of.
fn of_engine(run: &Run, step: &Step, operations_per_s: f64) -> Spent {
    let per_operation = |ns: u64| super::rate(Some(ns), step.window.duration_ns).map(|per_s| per_s / operations_per_s);
    let waited = |is_part: fn(&str) -> bool| {
        let waits = super::foreground_waits(step);
        let of_part = waits.iter().filter(|wait| is_part(&wait.class)).map(|wait| wait.of_sessions()?.total_ns);
        // An engine that timed no waits at all says nothing of them.
        (!step.waits.is_empty()).then(|| known_sum(of_part)).flatten().and_then(per_operation)
    };
    let cpu = step.process_cpu.filter(|_| !run.target.is_simulated());
    Spent {
        reads: waited(|class| class == "User I/O"),
        log: waited(|class| class == "Commit"),
        waits: waited(|class| !["User I/O", "Commit"].contains(&class)),
        processor: cpu.and_then(|cpu| per_operation(cpu.busy_ns())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::TargetKind;
    use model::record::sample::{self, servers};

    fn sum(time: &OperationTime) -> f64 {
        let parts = [time.reads, time.log, time.waits, time.processor].map(|part| part.ns.unwrap());
        parts.iter().sum::<f64>() + time.rest_ns.unwrap_or(0.0)
    }

    #[test]
    fn where_the_server_does_not_distinguish_reads_its_own_times_of_them_do() {
        let mut run = servers::innodb();
        let time = OperationTime::of(&run, &run.steps[0]).unwrap();
        let (reads, processor) = (time.reads.ns.unwrap(), time.processor.ns.unwrap());
        // Of seven sessions at work five were reading, by its times.
        assert!((reads / processor - 2.5).abs() < 0.01, "{time:?}");
        assert!((time.reads.each.unwrap() - 60.0).abs() < 0.5, "{time:?}");
        run.steps[0].servers[0].activity.remove(&model::record::Activity::BlockReadNs);
        let time = OperationTime::of(&run, &run.steps[0]).unwrap();
        assert_eq!((time.reads.ns, time.processor.ns, time.rest_ns), (None, None, None));
    }

    #[test]
    fn what_sessions_of_a_server_were_seen_doing_adds_up_to_the_operation() {
        let mut run = servers::private_cluster();
        let server = &mut run.steps[0].servers[0];
        server.sampled_times = 100;
        let seen =
            [("IO:DataFileRead", 200), ("CPU", 80), ("IO:WALSync", 60), ("LWLock:WALWrite", 20), ("Lock:tuple", 8)];
        server.session_samples = seen.map(|(what, samples)| (what.to_owned(), samples)).into();
        server.session_states = model::record::states(&server.session_samples);
        let time = OperationTime::of(&run, &run.steps[0]).unwrap();
        let operations = Figures(&run.steps[0]).operations_per_s().unwrap();
        let ms = |sessions: f64| sessions / operations * 1e9;
        let known = [time.reads, time.processor, time.log, time.waits].map(|part| part.ns.unwrap());
        for (known, sessions) in known.into_iter().zip([2.0, 0.8, 0.8, 0.08]) {
            assert!((known - ms(sessions)).abs() < 1.0, "{time:?}");
        }
        assert!((sum(&time) - time.mean_ns).abs() < 1.0 && time.rest_ns.unwrap() > 0.0, "{time:?}");
        assert_eq!((time.cache_hits.ns, time.excess_ns), (None, None), "nobody times a hit");
        assert!(time.cache_hits.each.is_some() && time.reads.each.unwrap() > 1.0);
    }

    #[test]
    fn what_nobody_looked_at_is_not_known_and_no_zero() {
        let mut run = servers::private_cluster();
        run.steps[0].servers[0].sampled_times = 3;
        let time = OperationTime::of(&run, &run.steps[0]).unwrap();
        assert_eq!([time.reads, time.log, time.waits, time.processor].map(|part| part.ns), [None; 4]);
        assert_eq!((time.rest_ns, time.excess_ns), (None, None));
        assert_eq!(OperationTime::of(&sample::requests::mixed(), &sample::requests::mixed().steps[0]), None);
    }

    #[test]
    fn waits_that_overlap_are_said_to_exceed_the_operation() {
        let mut run = sample::updates(20);
        let time = OperationTime::of(&run, &run.steps[0]).unwrap();
        assert!(time.excess_ns.is_none() || time.reads.is_bound, "{time:?}");
        for wait in run.steps[0].waits.iter_mut().filter(|wait| wait.class == "User I/O") {
            let more = wait.waits.clone();
            (0..3).for_each(|_| wait.waits.merge(&more));
        }
        let time = OperationTime::of(&run, &run.steps[0]).unwrap();
        assert!(time.reads.is_bound && time.excess_ns.unwrap() > 0.0 && time.rest_ns.is_none(), "{time:?}");
        assert!(time.reads.ns.unwrap() + time.log.ns.unwrap() + time.waits.ns.unwrap() <= time.mean_ns * 1.000_001);
        run.target.kind = Some(TargetKind::Simulated);
        assert_eq!(OperationTime::of(&run, &run.steps[0]).unwrap().processor.ns, None);
    }
}
