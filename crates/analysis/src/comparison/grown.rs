//! Which part of an operation's time grew, where one alone explains most of why operations take longer.

use super::ComparedLoad;
use crate::{Figures, Place, TimeParts, Vocabulary};
use model::record::{Run, Step};
use model::units::{Nanos, percent};

/// A part of the growth from this share on explains it.
const EXPLAINS: f64 = 0.5;

/// The part that grew most, in the load whose operations became slowest against the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Grown {
    /// The load in words.
    pub load: String,
    /// Where operations spend more time than before.
    pub part: Place,
    /// Time that a mean operation spent there, in nanoseconds: in the baseline, and in the other run.
    pub part_ns: [f64; 2],
    /// Time of a mean operation from due to finished, in nanoseconds: in the baseline, and in the other run.
    pub mean_ns: [f64; 2],
    /// What operations are called.
    pub words: Vocabulary,
}

/// Time of one operation in nanoseconds: the mean, and of each place at least, likely and at most.
struct OperationParts {
    mean_ns: f64,
    places: Vec<[f64; 3]>,
}

impl OperationParts {
    /// Of the steps of a load together: sessions in a place over operations per second (Little's law). Absent unless all of them have both.
    fn of<'a>(run: &Run, steps: impl Iterator<Item = &'a Step>) -> Option<Self> {
        let (mut operations, mut response_ns, mut places) = (0.0, 0.0, vec![[0.0; 3]; Place::ALL.len()]);
        for step in steps {
            let (parts, times) = (TimeParts::of(run, step)?, Figures(step).response()?);
            operations += times.count() as f64;
            response_ns += times.total_ns()? as f64;
            for (sum, place) in places.iter_mut().zip(Place::ALL) {
                let Some(part) = parts.part(place) else { continue };
                let seen = [part.least_sessions, part.likely_sessions, part.most_sessions];
                let ns = step.window.duration_ns as f64;
                sum.iter_mut().zip(seen).for_each(|(sum, sessions)| *sum += sessions * ns);
            }
        }
        let each = |place: [f64; 3]| place.map(|ns| ns / operations);
        let places = places.into_iter().map(each).collect();
        (operations > 0.0).then_some(Self { mean_ns: response_ns / operations, places })
    }
}

impl Grown {
    /// Of the loads of a pair; absent where no mean grew by more than `threshold`, a share, or no part explains it.
    pub(super) fn of(runs: [&Run; 2], loads: &[ComparedLoad], threshold: f64) -> Option<Self> {
        let all = loads.iter().filter_map(|load| Self::of_load(runs, load, threshold));
        let times = |grown: &Self| grown.mean_ns[1] / grown.mean_ns[0];
        all.reduce(|most, other| if times(&other) > times(&most) { other } else { most })
    }

    fn of_load(runs: [&Run; 2], load: &ComparedLoad, threshold: f64) -> Option<Self> {
        let of_side = |side: usize| OperationParts::of(runs[side], load.steps(runs[side], side));
        let (before, after) = (of_side(0)?, of_side(1)?);
        let growth = after.mean_ns - before.mean_ns;
        if growth <= threshold.abs() * before.mean_ns {
            return None;
        }
        let grew = |at: usize| after.places[at][1] - before.places[at][1];
        // Of what may have been as much before nothing is known to have grown. Of what a server's processes used and wanted of processors, as
        // the kernel counts it, half may be of work for no session.
        let is_known = |at: &usize| {
            let [least, likely, _] = after.places[*at];
            let is_counted = matches!(Place::ALL[*at], Place::Running | Place::Ready);
            let least = if is_counted { least.max(likely / 2.0) } else { least };
            least > before.places[*at][2]
        };
        let is_due = |at: &usize| Place::ALL[*at].is_of_operations();
        let most = (0..Place::ALL.len())
            .filter(|at| is_due(at) && is_known(at))
            .max_by(|a, b| grew(*a).total_cmp(&grew(*b)))?;
        (grew(most) >= EXPLAINS * growth).then(|| Self {
            load: load.name.clone(),
            part: Place::ALL[most],
            part_ns: [before.places[most][1], after.places[most][1]],
            mean_ns: [before.mean_ns, after.mean_ns],
            words: Vocabulary::of(runs[1]),
        })
    }

    /// `At 8 sessions a mean operation of `new` takes 2.00 ms instead of 1.00 ms: "waiting for reads" grew from 400 us to 1.30 ms, 90.0 % of
    /// the difference.`
    pub fn sentence(&self, name: &str) -> String {
        let Self { load, part, part_ns, mean_ns, words } = self;
        let ns = |ns: f64| Nanos(ns.round().max(0.0) as u64).to_string();
        let ([before, after], [mean_before, mean_after]) = (part_ns.map(ns), mean_ns.map(ns));
        let share = (part_ns[1] - part_ns[0]) / (mean_ns[1] - mean_ns[0]);
        format!(
            "At {load} a mean {} of `{name}` takes {mean_after} instead of {mean_before}: \"{}\" grew from {before} to {after}, {} % of the \
             difference.",
            words.work().trim_end_matches('s'),
            part.name(),
            percent(share.min(1.0))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compared;
    use model::record::sample::requests::{self, Requests};
    use model::record::sample::servers;

    /// Eight requests outstanding that take so long, of which so many are in the device.
    fn run(id: &str, service_us: u64, in_device: f64) -> Run {
        let reads_per_s = 8_000_000 / service_us;
        let level = Requests {
            slots: 8,
            asked_per_s: None,
            reads_per_s,
            writes_per_s: 0,
            service_ns: service_us * 1_000,
            queued_ns: 0,
        };
        let mut run = requests::run(&[level]);
        (run.id, run.name) = (id.to_owned(), id.to_owned());
        let step = &mut run.steps[0];
        let generator = step.generator.as_mut().unwrap();
        (generator.idle_session_ns, generator.busy_ns) = (0, 0);
        step.process_cpu = None;
        let device = &mut step.devices[0];
        device.weighted_ns = (in_device * device.elapsed_ns as f64) as u64;
        run
    }

    fn grown(old: &Run, new: &Run) -> Option<Grown> {
        Compared::of(&[old, new], 0, 0.05).unwrap().pairs.remove(0).grown
    }

    #[test]
    fn the_part_that_explains_most_of_the_growth_is_named() {
        let (old, new) = (run("old", 1_000, 7.8), run("new", 4_000, 2.0));
        let found = grown(&old, &new).unwrap();
        assert_eq!(found.part, Place::BeforeDevice);
        // 0.2 of 8 requests of 1 ms, and 6 of 8 of 4 ms.
        assert!((found.part_ns[0] - 25e3).abs() < 5e3 && (found.part_ns[1] - 3e6).abs() < 0.1e6, "{found:?}");
        let compared = Compared::of(&[&old, &new], 0, 0.05).unwrap();
        let verdict = compared.verdict(&compared.pairs[0]);
        assert!(
            verdict.contains("a mean request of `new` takes ") && verdict.contains("\"before the device\" grew from"),
            "{verdict}"
        );
        assert_eq!(grown(&new, &old), None, "what became faster has not grown");
        assert_eq!(grown(&old, &run("new", 1_020, 5.0)), None, "within the threshold");
        let slow_device = grown(&old, &run("new", 4_000, 7.9)).unwrap();
        assert_eq!(slow_device.part, Place::Device);
    }

    #[test]
    fn a_quota_that_keeps_processors_from_a_server_is_named() {
        let with = |id: &str, ready: u64, mean_ms: u64| {
            let mut run = servers::private_cluster();
            run.id = id.to_owned();
            run.target.facts.server.sent_as = Some(model::record::SentAs::Statement);
            run.steps.truncate(1);
            let step = &mut run.steps[0];
            step.load.sessions = Some(10);
            for operation in &mut step.operations {
                operation.response = model::record::sample::latencies(operation.count, mean_ms * 1_000_000);
            }
            let server = &mut step.servers[0];
            server.session_samples = [("CPU".to_owned(), server.sampled_times)].into();
            server.session_states = model::record::states(&server.session_samples);
            server.run_delay_ns = Some(ready * server.elapsed_ns / 10);
            run
        };
        let found = grown(&with("old", 2, 30), &with("new", 80, 60)).unwrap();
        assert_eq!(found.part, Place::Ready);
        assert_eq!(grown(&with("old", 60, 30), &with("new", 80, 60)), None, "half of it may be of work for no session");
    }

    #[test]
    fn nothing_is_named_that_may_have_been_as_long_before() {
        let (old, mut new) = (run("old", 1_000, 7.8), run("new", 4_000, 7.9));
        // Others moved most of the bytes, so that the device's time may be theirs.
        new.steps[0].devices[0].write_bytes = new.steps[0].devices[0].read_bytes * 20;
        assert_eq!(grown(&old, &new), None);
        let (old, mut new) = (servers::remote(), servers::remote());
        new.id = "20261121-103000-slob".to_owned();
        for server in &mut new.steps[0].servers {
            server.session_samples = [("CPU".to_owned(), 15 * server.sampled_times)].into();
        }
        let operation = &mut new.steps[0].operations[0];
        operation.response = model::record::sample::latencies(operation.count, 40_000_000);
        assert_eq!(grown(&old, &new), None, "a processor of a remote server is not seen");
    }
}
