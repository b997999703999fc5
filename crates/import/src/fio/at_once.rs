//! Which jobs ran at the same time: what the platform carried is what they did together.

use std::collections::{BTreeMap, BTreeSet};

use super::options::Options;
use super::{Invocation, Job};
use model::record::{JobsAtOnce, Step};

/// Share of the shorter of two times by which a job that waited for another may seem to begin before that ended.
const SEEMING: f64 = 0.05;

/// How a group of jobs stands to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// After their end.
    After,
    /// With them, or while they ran.
    Beside,
}

/// Which jobs ran at the same time; absent where each ran alone. `steps` are those of the jobs of `invocation`, in their order.
pub fn jobs(invocation: &Invocation, steps: &[Step]) -> Option<JobsAtOnce> {
    let batches = batches(invocation, steps);
    let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
    batches.iter().for_each(|batch| *sizes.entry(*batch).or_default() += 1);
    let unknown: BTreeSet<u32> = sizes
        .iter()
        .filter(|(batch, size)| {
            let jobs = invocation.jobs.iter().zip(&batches).filter(|(_, its)| its == batch).map(|(job, _)| job);
            **size > 1 && began_apart(jobs, invocation)
        })
        .map(|(batch, _)| *batch)
        .collect();
    match sizes.len() {
        _ if sizes.values().all(|size| *size == 1) => None,
        1 if unknown.is_empty() => Some(JobsAtOnce::All(steps.len() as u32)),
        _ => Some(JobsAtOnce::Each(
            batches.into_iter().map(|batch| Some(batch).filter(|batch| !unknown.contains(batch))).collect(),
        )),
    }
}

/// Whether groups of jobs ran at the same time, as far as that is reported.
pub fn are_groups_beside(invocation: &Invocation, steps: &[Step]) -> bool {
    let groups: BTreeSet<u64> = invocation.jobs.iter().map(|job| job.group).collect();
    let batches: BTreeSet<u32> = batches(invocation, steps).into_iter().collect();
    batches.len() < groups.len()
}

/// For each job the number, from 1, of the groups that it ran with.
fn batches(invocation: &Invocation, steps: &[Step]) -> Vec<u32> {
    let jobs = &invocation.jobs;
    let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    jobs.iter().enumerate().for_each(|(at, job)| groups.entry(job.group).or_default().push(at));
    let mut of_group: BTreeMap<u64, u32> = BTreeMap::new();
    // The latest end of all before, and their shortest time.
    let mut before: Option<(f64, f64)> = None;
    let mut batch = 0;
    for (group, members) in &groups {
        let starts: Option<Vec<f64>> = members.iter().map(|at| jobs.get(*at)?.start_ms).collect();
        let lengths =
            || members.iter().filter_map(|at| steps.get(*at)).map(|step| step.window.duration_ns as f64 / 1e6);
        let begins_ms = starts.as_ref().and_then(|starts| starts.iter().copied().min_by(f64::total_cmp));
        let shortest_ms = lengths().fold(f64::INFINITY, f64::min);
        let begins = match begins_ms.zip(before) {
            Some((begins_ms, (ended_ms, shortest_before_ms))) => {
                let seeming_ms = SEEMING * shortest_ms.min(shortest_before_ms);
                if begins_ms < ended_ms - seeming_ms { Begins::Beside } else { Begins::After }
            }
            None => {
                members.first().and_then(|at| jobs.get(*at)).map_or(Begins::After, |job| by_options(job, invocation))
            }
        };
        if begins == Begins::After || batch == 0 {
            batch += 1;
        }
        of_group.insert(*group, batch);
        let ends_ms =
            starts.map(|starts| starts.iter().zip(lengths()).map(|(from, long)| from + long).fold(0.0, f64::max));
        before = ends_ms.map(|ends_ms| match before {
            Some((latest_ms, least_ms)) => (ends_ms.max(latest_ms), shortest_ms.min(least_ms)),
            None => (ends_ms, shortest_ms),
        });
    }
    jobs.iter().map(|job| of_group.get(&job.group).copied().unwrap_or_default()).collect()
}

/// How the first job of a group stands to the group before by its options: a group is begun by `stonewall`, which waits for all
/// before it, or by `new_group`, which waits for nothing. Where neither is reported the usual one of both is taken.
fn by_options(job: &Job, invocation: &Invocation) -> Begins {
    let none = BTreeMap::new();
    let options = options(job, invocation, &none);
    let waits = ["stonewall", "wait_for_previous"].iter().any(|name| options.switch(name) == Some(true))
        || options.get(&["wait_for"]).is_some();
    if options.switch("new_group") == Some(true) && !waits { Begins::Beside } else { Begins::After }
}

/// Whether jobs of one batch were asked to begin at different times, and did so nobody says when.
fn began_apart<'a>(jobs: impl Iterator<Item = &'a Job>, invocation: &Invocation) -> bool {
    let none = BTreeMap::new();
    let mut delays = BTreeSet::new();
    let (mut are_reported, mut waits) = (true, false);
    for job in jobs {
        let options = options(job, invocation, &none);
        are_reported &= job.start_ms.is_some();
        waits |= options.get(&["wait_for"]).is_some();
        delays.insert(options.get(&["startdelay", "start_delay"]).filter(|delay| *delay != "0").map(str::to_owned));
    }
    !are_reported && (waits || delays.len() > 1)
}

fn options<'a>(job: &'a Job, invocation: &'a Invocation, none: &'a BTreeMap<String, String>) -> Options<'a> {
    Options { own: job.options.as_ref().unwrap_or(none), globals: &invocation.globals, are_all: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::step;

    /// Jobs with their group, options, begin and length in seconds.
    fn of(jobs: &[(u64, &str, Option<f64>, f64)]) -> Option<String> {
        let option =
            |word: &str| word.split_once('=').map_or((word.to_owned(), "1".to_owned()), |(k, v)| (k.into(), v.into()));
        let job = |(group, options, start_s, _): &(u64, &str, Option<f64>, f64)| Job {
            group: *group,
            options: Some(options.split_whitespace().map(option).collect()),
            start_ms: start_s.map(|start_s| start_s * 1e3),
            ..Job::default()
        };
        let invocation = Invocation { jobs: jobs.iter().map(job).collect(), ..Invocation::default() };
        let steps: Vec<Step> =
            jobs.iter().enumerate().map(|(at, (.., long_s))| step(at, "job", (long_s * 1e9) as u64)).collect();
        super::jobs(&invocation, &steps).map(|jobs| jobs.to_string())
    }

    #[test]
    fn jobs_of_one_group_ran_together_and_those_behind_a_stonewall_alone() {
        assert_eq!(of(&[(0, "", None, 9.0), (0, "", None, 9.0)]).as_deref(), Some("2"));
        assert_eq!(of(&[(0, "", None, 9.0), (1, "stonewall", None, 9.0)]), None);
        let two = [
            (0, "", None, 9.0),
            (0, "", None, 9.0),
            (1, "stonewall", None, 9.0),
            (1, "", None, 9.0),
            (2, "wait_for_previous", None, 9.0),
        ];
        assert_eq!(of(&two).as_deref(), Some("1 1 2 2 3"));
    }

    #[test]
    fn groups_that_waited_for_nothing_ran_together() {
        assert_eq!(of(&[(0, "", None, 9.0), (1, "new_group", None, 9.0)]).as_deref(), Some("2"));
        let then = [(0, "", None, 9.0), (1, "new_group", None, 9.0), (2, "new_group stonewall", None, 9.0)];
        assert_eq!(of(&then).as_deref(), Some("1 1 2"));
        assert_eq!(of(&[(0, "", None, 9.0), (1, "new_group=0 stonewall", None, 9.0)]), None);
    }

    #[test]
    fn the_time_at_which_jobs_began_counts_for_more_than_options() {
        assert_eq!(of(&[(0, "", Some(5.0), 9.0), (1, "", Some(5.1), 9.0)]).as_deref(), Some("2"));
        assert_eq!(of(&[(0, "", Some(5.0), 9.0), (1, "new_group startdelay=9", Some(14.0), 9.0)]), None);
        assert_eq!(of(&[(0, "", Some(5.0), 9.0), (1, "", Some(13.8), 9.0)]), None, "ends are rounded");
        let long =
            [(0, "", Some(0.0), 60.0), (1, "", Some(1.0), 9.0), (2, "", Some(20.0), 9.0), (3, "", Some(61.0), 9.0)];
        assert_eq!(of(&long).as_deref(), Some("1 1 1 2"), "the first outlasts the second");
    }

    #[test]
    fn of_jobs_that_began_later_nobody_knows_what_they_did_together() {
        assert_eq!(of(&[(0, "", None, 9.0), (0, "startdelay=5", None, 9.0)]).as_deref(), Some("? ?"));
        assert_eq!(of(&[(0, "startdelay=5", None, 9.0), (0, "startdelay=5", None, 9.0)]).as_deref(), Some("2"));
        let third = [(0, "", None, 9.0), (0, "wait_for=a", None, 9.0), (1, "stonewall", None, 9.0)];
        assert_eq!(of(&third).as_deref(), Some("? ? 2"));
        assert_eq!(of(&[(0, "", Some(0.0), 9.0), (0, "startdelay=5", Some(5.0), 9.0)]).as_deref(), Some("2"));
    }
}
