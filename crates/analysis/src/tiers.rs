//! Where reads came from, as far as the time that they took reports.

use super::message::of_series;
use super::modes::{Mode, modes};
use super::{Figures, Finding, Message, SINGLE_BLOCK_READ, Series, proof, wait};
use crate::Rule;
use model::record::{Histogram, Metric, Run, Step};
use model::units::{Nanos, percent};

/// No device answers a read through the kernel sooner: a system call and a copy take a few microseconds, and even the
/// fastest flash needs tens.
const MEMORY_BELOW_NS: u64 = 20_000;
/// A flash cell is read in 50 to 100 us and a local bus adds little; network and array controllers add more than that.
const LOCAL_BELOW_NS: u64 = 250_000;
/// Remote flash, queues of its network included, answers sooner; a disk must turn: half a turn of the fastest (15,000
/// a minute) takes 2 ms, before any seek.
const REMOTE_BELOW_NS: u64 = 2_000_000;
/// So many sessions seldom stand in each other's way.
const FEW_SESSIONS: f64 = 4.0;
/// Where another step of the series carries so many times more, this one is not queueing for what is full.
const FAR_FROM_FULL: f64 = 1.5;
/// Groups nearer to each other than this are one tier with two habits, not two tiers.
const TIERS_APART: f64 = 1.8;

/// Where reads of a certain time usually come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadSource {
    /// Below 20 us: no device answers as fast.
    Memory,
    /// Below 250 us.
    LocalFlash,
    /// Below 2 ms.
    RemoteFlash,
    /// Longer.
    Disk,
}

impl ReadSource {
    /// By the median of a group of reads.
    pub fn of(median: Nanos) -> Self {
        match median.0 {
            ..MEMORY_BELOW_NS => Self::Memory,
            MEMORY_BELOW_NS..LOCAL_BELOW_NS => Self::LocalFlash,
            LOCAL_BELOW_NS..REMOTE_BELOW_NS => Self::RemoteFlash,
            REMOTE_BELOW_NS.. => Self::Disk,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::LocalFlash => "local flash or host cache",
            Self::RemoteFlash => "array cache or remote flash",
            Self::Disk => "disk",
        }
    }
}

/// Reads of one block fall into groups by the time that they took.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Tiers {
    /// The series, if there are several.
    pub series: String,
    /// Label of the step that was looked at.
    pub step: String,
    /// Its load in words.
    pub load: String,
    /// The groups, fastest first; two or more.
    pub modes: Vec<Mode>,
    /// Whether the groups can be distinguished from queueing.
    pub cause: Cause,
}

/// What makes the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Different places that reads come from.
    Places,
    /// Places or queueing: the load is too high to say.
    PlacesOrQueue,
    /// Places or schedulers: the machine is a virtual one, and nothing shows that neither its own nor its host's makes some reads wait.
    PlacesOrScheduler,
}

/// Of what sets the groups apart, so little may lie outside of the device for schedulers to have no part in it.
const OUTSIDE: f64 = 0.25;
/// A host that takes no more of a machine's processors than this, as a share, makes few reads wait.
const STOLEN: f64 = 0.01;
/// What stands between a process and a kernel that it shares with others, and is not a virtual machine.
const CONTAINERS: [&str; 7] = ["docker", "podman", "kubernetes", "lxd", "lxc", "systemd-nspawn", "oci"];

/// Whether a hypervisor was recognised below the machine that timed the reads.
fn is_virtual(run: &Run) -> bool {
    let below = run.environment.virtualization.as_deref().filter(|_| !run.target.is_simulated());
    below.is_some_and(|below| !CONTAINERS.contains(&below))
}

/// Whether what sets groups apart is the device's own time: the kernel sees it there, and the host took no processor away.
fn is_of_device(run: &Run, step: &Step, times: &Histogram, modes: &[Mode]) -> bool {
    let shown = || {
        let tops = proof::tops(run, step);
        let [top] = tops.as_slice() else { return None };
        let device_ns = (top.reads > 0).then(|| top.read_time_ns as f64 / top.reads as f64)?;
        let apart = |mode: &Mode| mode.share * (mode.median_ns - modes[0].median_ns) as f64;
        let outside_ns = times.mean_ns()? - device_ns;
        let host = step.host_cpu?;
        let all_ns = host.busy_ns().saturating_add(host.free_ns()?).saturating_add(host.steal_ns?);
        let is_left_alone = host.steal_ns? as f64 <= STOLEN * all_ns.max(1) as f64;
        Some(is_left_alone && outside_ns <= OUTSIDE * modes.iter().map(apart).sum::<f64>())
    };
    shown().unwrap_or(false)
}

/// Looks at the step with the least load of each series, for queues move and smear the groups.
pub(super) fn find(run: &Run) -> Vec<Finding> {
    // Histograms of others may have buckets so coarse that each looks like a group.
    if !run.tool.is_own() {
        return Vec::new();
    }
    Series::of(run).iter().filter_map(|series| in_series(run, series)).map(Finding::Tiers).collect()
}

fn in_series(run: &Run, series: &Series<'_>) -> Option<Tiers> {
    let step = *series.steps.first()?;
    let times = &wait(step, SINGLE_BLOCK_READ)?.waits;
    let mut found = modes(times);
    join_near(&mut found);
    if found.len() < 2 {
        return None;
    }
    let cause = match () {
        () if !is_moderate(series, step) => Cause::PlacesOrQueue,
        () if is_virtual(run) && !is_of_device(run, step, times, &found) => Cause::PlacesOrScheduler,
        () => Cause::Places,
    };
    let (name, label) = (series.name.clone(), step.label.clone());
    Some(Tiers { series: name, step: label, load: series.words.load(step), modes: found, cause })
}

/// Whether the load is so low that a read seldom waits for others. A step of few sessions may still stand at a cap, if
/// no step of the series carries more; a lone step cannot show it, and one of an open loop least of all.
fn is_moderate(series: &Series<'_>, step: &Step) -> bool {
    let reads = |step: &&Step| Figures(step).value(Metric::Reads);
    let most = series.steps.iter().filter_map(reads).fold(0.0, f64::max);
    let far_from_full = reads(&step).is_some_and(|rate| FAR_FROM_FULL * rate <= most);
    let at_work =
        Figures(step).busy_sessions().unwrap_or(f64::INFINITY).min(step.load.sessions.map_or(f64::INFINITY, f64::from));
    // Requests that fall due by chance come in bunches, and bunches behind a cap look like a second tier.
    far_from_full || (at_work <= FEW_SESSIONS && series.steps.len() == 1 && series.is_closed_loop())
}

/// Joins groups whose medians are too near to be two tiers.
fn join_near(modes: &mut Vec<Mode>) {
    let near = |pair: &[Mode]| (pair[1].median_ns as f64) < TIERS_APART * pair[0].median_ns as f64;
    while let Some(at) = modes.windows(2).position(near) {
        let (fast, slow) = (modes[at], modes.remove(at + 1));
        let larger = if fast.share >= slow.share { fast } else { slow };
        modes[at] = Mode {
            share: fast.share + slow.share,
            median_ns: larger.median_ns,
            p10_ns: fast.p10_ns,
            p90_ns: slow.p90_ns,
        };
    }
}

impl Message for Tiers {
    fn rule(&self) -> Rule {
        Rule::StorageTiers
    }

    fn sentence(&self) -> String {
        let group = |mode: &Mode| {
            let took =
                format!("{} % of reads took {} to {}", percent(mode.share), Nanos(mode.p10_ns), Nanos(mode.p90_ns));
            match self.cause {
                Cause::Places => format!("{took} ({})", ReadSource::of(Nanos(mode.median_ns)).words()),
                Cause::PlacesOrQueue | Cause::PlacesOrScheduler => took,
            }
        };
        let groups = self.modes.iter().map(group).collect::<Vec<_>>().join(", ");
        let (of, load) = (of_series(&self.series), &self.load);
        match self.cause {
            Cause::Places => {
                let place = |mode: &Mode| ReadSource::of(Nanos(mode.median_ns));
                // Two groups of one place may be two states of it: a cache in front is reported where the places differ.
                let faster = self.modes.windows(2).any(|pair| place(&pair[0]) != place(&pair[1]));
                let fast = percent(self.modes[0].share);
                let verdict =
                    if faster { format!(" A cache or faster tier answered {fast} %.") } else { String::new() };
                format!("Reads{of} come from more than one place, seen at {load}: {groups}.{verdict}")
            }
            Cause::PlacesOrScheduler => {
                let count = match self.modes.len() {
                    2 => "two".to_owned(),
                    more => more.to_string(),
                };
                format!(
                    "Reads{of} fall into {count} groups at {load}: {groups}. The machine is virtual: its scheduler or its host's may \
                     make them as well as a cache."
                )
            }
            Cause::PlacesOrQueue => format!(
                "Reads{of} fall into groups at {load}: {groups}. Whether a cache or a queue makes them cannot be judged at this load."
            ),
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match self.cause {
            Cause::Places | Cause::PlacesOrScheduler => {
                "Vary the size of the data set: the fast share falls when it outgrows the cache."
            }
            Cause::PlacesOrQueue => "Repeat at a low rate, where nothing queues.",
        };
        Some(advice.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::modes::tests::mixture;
    use super::*;
    use crate::{LatencyTarget, Severity, analyse};
    use model::record::{CpuTime, DeviceStats, sample};

    const PLANTED: [(f64, f64, f64); 2] = [(0.3, 105.0, 0.12), (0.7, 900.0, 0.2)];

    fn planted(step: usize) -> Run {
        let mut run = sample::sweep(60);
        run.environment.virtualization = None;
        run.steps[step].waits[0].waits = mixture(3, 10_000, &PLANTED);
        run
    }

    fn tiers_of(run: &Run) -> Option<Tiers> {
        analyse(run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
            Finding::Tiers(tiers) => Some(tiers),
            _ => None,
        })
    }

    #[test]
    fn planted_tiers_are_reported_with_share_place_and_name() {
        let tiers = tiers_of(&planted(0)).unwrap();
        let sentence = tiers.sentence();
        assert!((tiers.modes[0].share - 0.3).abs() < 0.03, "{sentence}");
        assert!(sentence.contains("(local flash or host cache)"), "{sentence}");
        assert!(sentence.contains("(array cache or remote flash)"), "{sentence}");
        assert!(sentence.contains("seen at 1 session:"), "{sentence}");
    }

    /// In a virtual machine, with a device that takes this long and a host that takes this share of the processors.
    fn in_virtual_machine(device_ns: u64, stolen: f64) -> Run {
        let mut run = planted(0);
        run.environment.virtualization = Some("docker on kvm".to_owned());
        let step = &mut run.steps[0];
        let name = run.environment.devices[0].name.clone();
        step.devices =
            vec![DeviceStats { name, reads: 1_000, read_time_ns: 1_000 * device_ns, ..DeviceStats::default() }];
        let (idle_ns, steal_ns) = (Some(1_000_000), Some((stolen * 1e6) as u64));
        step.host_cpu = Some(CpuTime { idle_ns, steal_ns, iowait_ns: Some(0), ..CpuTime::default() });
        run
    }

    #[test]
    fn groups_in_a_virtual_machine_are_not_called_places_unless_the_device_shows_them() {
        let mean_ns = 661_000;
        for (device_ns, stolen) in [(110_000, 0.0), (mean_ns, 0.2)] {
            let run = in_virtual_machine(device_ns, stolen);
            let tiers = tiers_of(&run).unwrap();
            assert_eq!(tiers.cause, Cause::PlacesOrScheduler);
            let sentence = tiers.sentence();
            assert!(sentence.starts_with("Reads fall into two groups at 1 session: "), "{sentence}");
            assert!(!sentence.contains("flash") && !sentence.contains("tier"), "{sentence}");
            let opening = crate::Opening::of(&run, &analyse(&run, &LatencyTarget::default())).sentence();
            assert!(!opening.contains("faster tier"), "{opening}");
        }
        assert_eq!(tiers_of(&in_virtual_machine(mean_ns, 0.0)).unwrap().cause, Cause::Places);
        let mut container = in_virtual_machine(110_000, 0.0);
        container.environment.virtualization = Some("docker".to_owned());
        assert_eq!(tiers_of(&container).unwrap().cause, Cause::Places);
    }

    #[test]
    fn only_the_least_load_is_looked_at() {
        assert_eq!(tiers_of(&planted(4)), None);
        assert_eq!(tiers_of(&sample::sweep(60)), None);
    }

    #[test]
    fn groups_at_a_high_load_are_not_called_places() {
        let mut run = planted(5);
        run.steps.drain(..5);
        let tiers = tiers_of(&run).unwrap();
        assert_eq!(tiers.cause, Cause::PlacesOrQueue);
        assert!(tiers.sentence().contains("cannot be judged") && !tiers.sentence().contains("host cache"));
        assert_eq!(Finding::Tiers(tiers).severity(), Severity::Note);
    }

    #[test]
    fn a_cap_that_holds_from_the_first_step_on_is_not_called_a_place() {
        let mut run = planted(0);
        run.steps.truncate(2);
        run.steps[1].counters = run.steps[0].counters.clone();
        assert_eq!(tiers_of(&run).unwrap().cause, Cause::PlacesOrQueue);
    }

    #[test]
    fn a_lone_step_of_one_session_is_judged() {
        let mut run = planted(0);
        run.steps.truncate(1);
        assert_eq!(tiers_of(&run).unwrap().cause, Cause::Places);
    }

    #[test]
    fn buckets_of_other_tools_are_not_taken_for_tiers() {
        let mut run = planted(0);
        run.tool.name = "awr".to_owned();
        assert_eq!(tiers_of(&run), None);
    }

    #[test]
    fn places_have_their_bounds() {
        for (us, place) in [
            (8, ReadSource::Memory),
            (90, ReadSource::LocalFlash),
            (600, ReadSource::RemoteFlash),
            (6_000, ReadSource::Disk),
        ] {
            assert_eq!(ReadSource::of(Nanos(us * 1_000)), place);
        }
    }

    #[test]
    fn near_groups_are_one_tier() {
        let mode = |share, us: u64| Mode { share, median_ns: us * 1_000, p10_ns: us * 900, p90_ns: us * 1_100 };
        let mut found = vec![mode(0.2, 100), mode(0.3, 150), mode(0.5, 1_000)];
        join_near(&mut found);
        assert_eq!(
            found.iter().map(|mode| (mode.share, mode.median_ns)).collect::<Vec<_>>(),
            [(0.5, 150_000), (0.5, 1_000_000)]
        );
    }
}
