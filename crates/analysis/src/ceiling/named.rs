//! A limit that a control group around this process sets, where a run stops there: no verdict from its seconds is as sure.

use super::{Ceiling, Limit, ceiling_of_steps, is_growing, mean_rate, reached};
use crate::{Series, is_on_servers};
use model::record::{GroupLimit, Limited, Run, Step};

/// A rate so near to a limit is held by it: the kernel lets through what it says, to within a few requests a second.
const NEAR: std::ops::RangeInclusive<f64> = 0.95..=1.05;
/// A rate so near is the limit, though it still grew with its load.
const REACHED: f64 = 0.02;
/// Of what a device did near a limit, at least this part must be ours: others are not in our group.
const OURS: f64 = 0.5;

/// The limit that holds steps of a series, if one of the known ones does.
pub(super) fn find(run: &Run, series: &Series<'_>) -> Option<Ceiling> {
    if is_on_servers(run) || run.target.is_simulated() || run.imported.is_some() {
        return None;
    }
    let limits = run.environment.group_limits.iter().filter(|limit| limit.what.is_rate() && limit.value > 0.0);
    // Of two that are near, the one that is reached.
    let found = limits.filter_map(|limit| at(run, series, limit));
    found.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, found)| found)
}

/// How far the nearest step is from a limit, as a share of it, and what its steps have come to.
fn at(run: &Run, series: &Series<'_>, limit: &GroupLimit) -> Option<(f64, Ceiling)> {
    let held: Vec<(&Step, f64)> =
        series.steps.iter().copied().filter_map(|step| Some((step, off(step, limit)?))).collect();
    let nearest = held.iter().map(|(_, off)| *off).reduce(f64::min)?;
    if nearest > REACHED && is_growing(run, series) {
        return None;
    }
    let steps: Vec<&Step> = held.into_iter().map(|(step, _)| step).collect();
    let rates: Vec<f64> = steps.iter().map(|step| mean_rate(run, step)).collect::<Option<_>>()?;
    let counts_bytes = matches!(limit.what, Limited::ReadBytesPerS | Limited::WriteBytesPerS);
    let kind = if counts_bytes { Limit::Throughput } else { Limit::Requests };
    let found = ceiling_of_steps(run, series, &steps, &rates, kind)?;
    Some((nearest, Ceiling { named: Some(Box::new(limit.clone())), like: None, ..found }))
}

/// How far a step that goes as fast as the limit lets it is from it, as a share of it. An open loop that keeps its rate is not held.
fn off(step: &Step, limit: &GroupLimit) -> Option<f64> {
    let keeps_up = step.load.rate_operations_per_s.is_some() && reached(step).unwrap_or(true);
    let counters = &step.counters;
    let (ours, of_device) = match limit.what {
        Limited::ReadsPerS => (counters.physical_reads, device(step, limit).map(|device| device.reads)),
        Limited::WritesPerS => (counters.physical_writes, device(step, limit).map(|device| device.writes)),
        Limited::ReadBytesPerS => (counters.physical_read_bytes, device(step, limit).map(|device| device.read_bytes)),
        Limited::WriteBytesPerS => {
            (counters.physical_write_bytes, device(step, limit).map(|device| device.write_bytes))
        }
        Limited::LatencyNs | Limited::CostPercent | Limited::Processors | Limited::MemoryBytes => (None, None),
    };
    let share = |count: Option<u64>, ns: u64| count.map(|count| count as f64 * 1e9 / ns.max(1) as f64 / limit.value);
    let ours = share(ours, step.window.duration_ns);
    let of_device = share(of_device, device(step, limit).map_or(0, |device| device.elapsed_ns));
    let near = |share: Option<f64>| share.filter(|share| NEAR.contains(share)).map(|share| (share - 1.0).abs());
    let of_device = || near(of_device).filter(|_| ours.is_none_or(|ours| ours >= OURS));
    near(ours).or_else(of_device).filter(|_| !keeps_up)
}

fn device<'a>(step: &'a Step, limit: &GroupLimit) -> Option<&'a model::record::DeviceStats> {
    step.devices.iter().find(|device| Some(&device.name) == limit.device.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figures, Finding, LatencyTarget, Message, Opening, analyse};
    use model::record::sample::requests;

    /// The largest load of a run of requests, with a limit of a group at so many times its reads per second.
    fn limited(times: f64, what: Limited) -> Run {
        let mut run = requests::sweep();
        let last = run.steps.len() - 1;
        run.steps.drain(..last);
        let reads = run.steps[0].counters.physical_reads.unwrap() as f64 * 1e9 / run.steps[0].window.duration_ns as f64;
        run.environment.group_limits = vec![GroupLimit {
            group: "/app.slice".to_owned(),
            file: "io.max".to_owned(),
            device: Some("nvme0n1".to_owned()),
            what,
            value: times * reads,
        }];
        run
    }

    fn named(run: &Run) -> Option<String> {
        analyse(run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
            Finding::Ceiling(found) if found.named.is_some() => Some(found.sentence()),
            _ => None,
        })
    }

    #[test]
    fn a_run_that_stops_at_the_limit_of_its_group_names_it() {
        let run = limited(1.01, Limited::ReadsPerS);
        let sentence = named(&run).unwrap();
        assert!(sentence.contains("`io.max` of `/app.slice` caps nvme0n1 at "), "{sentence}");
        let findings = analyse(&run, &LatencyTarget::default());
        let first = Opening::of(&run, &findings).sentence();
        assert!(first.contains("`io.max` of `/app.slice`"), "{first}");
    }

    #[test]
    fn of_two_limits_that_are_near_the_one_that_is_reached_is_named() {
        let mut run = limited(1.024, Limited::ReadsPerS);
        let step = &run.steps[0];
        let bytes = step.counters.physical_read_bytes.unwrap() as f64 * 1e9 / step.window.duration_ns as f64;
        let of_bytes =
            GroupLimit { what: Limited::ReadBytesPerS, value: bytes, ..run.environment.group_limits[0].clone() };
        run.environment.group_limits.push(of_bytes);
        let found = find(&run, &Series::of(&run)[0]).unwrap();
        assert_eq!((found.limit, found.named.unwrap().what), (Limit::Throughput, Limited::ReadBytesPerS));
    }

    #[test]
    fn a_rate_that_still_grows_as_its_load_is_not_held() {
        let grown = |times: f64| {
            let mut run = limited(times, Limited::ReadsPerS);
            let last = run.steps.remove(0);
            let mut before = last.clone();
            before.load.sessions = last.load.sessions.map(|sessions| sessions / 2);
            for count in [&mut before.counters.physical_reads, &mut before.counters.operations] {
                *count = count.map(|count| count / 2);
            }
            for second in &mut before.intervals {
                second.counters.physical_reads = second.counters.physical_reads.map(|count| count / 2);
            }
            run.steps = vec![before, last];
            find(&run, &Series::of(&run)[0]).is_some()
        };
        assert!(!grown(1.04) && grown(1.0));
    }

    #[test]
    fn a_limit_that_is_far_away_or_of_another_kind_is_not_named() {
        assert_eq!(named(&limited(2.0, Limited::ReadsPerS)), None);
        assert_eq!(named(&limited(0.5, Limited::ReadsPerS)), None, "a limit that is exceeded does not hold");
        assert_eq!(named(&limited(1.0, Limited::WritesPerS)), None);
        assert_eq!(named(&limited(1.0, Limited::Processors)), None);
    }

    #[test]
    fn what_others_do_on_the_device_is_not_held_by_our_group() {
        let mut run = limited(3.0, Limited::ReadsPerS);
        let (name, value) = ("nvme0n1".to_owned(), run.environment.group_limits[0].value);
        let mut stats = run.steps[0].devices.first().cloned().unwrap_or_default();
        (stats.name, stats.elapsed_ns, stats.reads) = (name, 1_000_000_000, value as u64);
        run.steps[0].devices = vec![stats];
        assert_eq!(named(&run), None);
    }

    #[test]
    fn an_open_loop_that_keeps_its_rate_is_not_held() {
        let mut run = limited(1.0, Limited::ReadsPerS);
        let ended = Figures(&run.steps[0]).ended_per_s().unwrap();
        run.steps[0].load.rate_operations_per_s = Some(ended);
        assert_eq!(off(&run.steps[0], &run.environment.group_limits[0]), None);
        run.steps[0].load.rate_operations_per_s = Some(2.0 * ended);
        assert!(off(&run.steps[0], &run.environment.group_limits[0]).is_some());
    }
}
