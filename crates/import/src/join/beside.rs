//! What iostat, vmstat and mpstat saw of the machine while something ran.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Began, osstat};
use super::Made;
use model::record::{CpuTime, DeviceStats, Interval, ReportedFigure, Step};

const SECOND_NS: i128 = 1_000_000_000;
/// Samples that begin within this time of each other are of one interval: three tools that one script started.
const TOGETHER_NS: i128 = SECOND_NS;
/// Intervals of a run that are looked at for a sample.
const MAX_NEAR: usize = 64;

/// Adds to a run what was measured meanwhile. What does not belong to it comes back.
///
/// One run of each tool is added. Where there are several, as of watchers that start a tool anew for each snapshot, they are added
/// as one if they came one after the other.
pub(super) fn add(run: &mut Made, hosts: Vec<Made>) -> Vec<Made> {
    let mut by_program: Vec<(&'static str, Vec<Made>)> = Vec::new();
    for host in hosts {
        match by_program.iter_mut().find(|(program, _)| *program == host.draft.program) {
            Some((_, same)) => same.push(host),
            None => by_program.push((host.draft.program, vec![host])),
        }
    }
    let mut apart = Vec::new();
    for (program, hosts) in by_program {
        let (mut fitting, others): (Vec<Made>, Vec<Made>) = hosts.into_iter().partition(|host| fits(run, host));
        apart.extend(others);
        let host = match fitting.len() {
            0 => continue,
            1 => fitting.remove(0),
            count => match one_of(fitting) {
                Ok(one) => one,
                Err(several) => {
                    run.draft.notes.push(format!(
                        "{count} runs of {program} from the same place stay separate runs: their times are not \
                        consecutive, or not reported."
                    ));
                    apart.extend(several);
                    continue;
                }
            },
        };
        apart.extend(add_host(run, host));
    }
    apart
}

/// How long after the start of `run` the other began, by clocks that are taken for the same; in nanoseconds.
fn after_ns(run: &Made, host: &Made) -> Option<i128> {
    let began = |made: &Made| made.draft.began.map(|began| began.timestamp().0);
    began(run).zip(began(host)).map(|(of_run, of_host)| of_host.duration_since(of_run).as_nanos())
}

fn lasts_ns(made: &Made) -> i128 {
    made.draft.steps.iter().map(|step| i128::from(step.window.duration_ns)).sum()
}

/// Whether both were at the same time, as far as both report: otherwise the means of the one would be those of something else.
fn fits(run: &Made, host: &Made) -> bool {
    let (run_ns, host_ns) = (lasts_ns(run), lasts_ns(host));
    run.draft.steps.len() == 1
        && after_ns(run, host).is_none_or(|after_ns| {
            let together_ns = (after_ns + host_ns).min(run_ns) - after_ns.max(0);
            together_ns >= 0 && (run_ns == 0 || together_ns * 2 >= host_ns)
        })
}

/// What must be known to read the figures of a tool.
fn note_on(run: &Made, host: &Made) -> String {
    let program = host.draft.program;
    let Some(after_ns) = after_ns(run, host) else {
        return format!("Figures of {program} are means over its own samples.");
    };
    let zones = |made: &Made| made.draft.began.is_some_and(|began| matches!(began, Began::Utc(_)));
    let clocks = match zones(run) == zones(host) {
        true => "",
        false => " Only one of the two reports its time zone: their clocks are taken for the same.",
    };
    format!(
        "Figures of {program} are means over its own samples of {} s, which begin {} s {} the window does.{clocks}",
        lasts_ns(host) / SECOND_NS,
        after_ns.abs() / SECOND_NS,
        if after_ns < 0 { "before" } else { "after" }
    )
}

/// Adds what a tool saw; it comes back if there is no step that it could be added to.
fn add_host(run: &mut Made, host: Made) -> Option<Made> {
    let (after_ns, note) = (after_ns(run, &host), note_on(run, &host));
    let [step] = run.draft.steps.as_mut_slice() else { return Some(host) };
    let Made { draft, files, not_understood, .. } = host;
    run.files.extend(files);
    run.not_understood.extend(not_understood);
    run.draft.notes.push(note);
    let mut beside = Vec::new();
    for mut other in draft.steps {
        // `%idle` is said by several tools, each of its own samples.
        let of_host: BTreeSet<String> =
            other.reported.iter().filter(|figure| figure.layer == "host").map(|figure| figure.name.clone()).collect();
        let renamed = |name: &str| match of_host.contains(name) {
            true => format!("{} {name}", draft.program),
            false => name.to_owned(),
        };
        // Shares of the machine are those of the first tool that has them: parts of two are not added up.
        let is_host = |figure: &ReportedFigure| figure.layer == "host" && figure.metric.is_some();
        let is_second = step.reported.iter().any(is_host);
        step.reported.extend(other.reported.drain(..).map(|figure| {
            let named = ReportedFigure { name: renamed(&figure.name), ..figure };
            if is_second && is_host(&named) { named.of(draft.program) } else { named }
        }));
        for interval in &mut other.intervals {
            interval.reported = std::mem::take(&mut interval.reported)
                .into_iter()
                .map(|(name, value)| (renamed(&name), value))
                .collect();
        }
        step.host_cpu = step.host_cpu.or(other.host_cpu);
        step.devices.append(&mut other.devices);
        // Without a time of both, or without lengths of samples, nobody knows when these samples were.
        let at = |interval: Interval| Some((after_ns? + i128::from(interval.offset_ns), interval));
        beside.extend(other.intervals.into_iter().filter(|interval| interval.duration_ns > 0).filter_map(at));
    }
    if !beside.is_empty() {
        set_beside(step, beside);
    }
    None
}

/// Puts samples of a tool, each with its time after the start of the window, beside those that are there. Samples of several
/// tools at the same time become one interval, those of one tool never do; and what lies before the window is its warm-up.
fn set_beside(step: &mut Step, beside: Vec<(i128, Interval)>) {
    let warmup_ns = i128::from(step.window.warmup_ns);
    let window_ns = i128::from(step.window.duration_ns);
    let there = std::mem::take(&mut step.intervals);
    // By time, and by a number of their own.
    let mut at: BTreeMap<(i128, usize), Interval> = BTreeMap::new();
    for interval in there {
        at.insert((i128::from(interval.offset_ns) - warmup_ns, at.len()), interval);
    }
    let mut taken: BTreeSet<(i128, usize)> = BTreeSet::new();
    for (at_ns, interval) in beside {
        let near = at.range((at_ns - TOGETHER_NS, 0)..=(at_ns + TOGETHER_NS, usize::MAX)).map(|(near, _)| *near);
        let near = near.take(MAX_NEAR).filter(|near| !taken.contains(near));
        let near = near.min_by_key(|(near_ns, _)| (near_ns - at_ns).abs());
        match near.and_then(|near| Some((near, at.get_mut(&near)?))) {
            Some((near, known)) => {
                known.reported.extend(interval.reported);
                known.devices.extend(interval.devices);
                known.process_cpu = known.process_cpu.or(interval.process_cpu);
                taken.insert(near);
            }
            None => {
                taken.insert((at_ns, at.len()));
                at.insert((at_ns, at.len()), interval);
            }
        }
    }
    let first_ns = at.keys().next().map_or(0, |(at_ns, _)| *at_ns).min(0);
    step.window.warmup_ns = u64::try_from(-first_ns).unwrap_or(0);
    let placed = at.into_iter().map(|((at_ns, _), interval)| Interval {
        offset_ns: u64::try_from(at_ns - first_ns).unwrap_or(u64::MAX),
        warmup: at_ns < 0 || at_ns >= window_ns,
        ..interval
    });
    step.intervals = placed.collect();
}

// Runs of one tool, one after the other, as one: a file for each hour, or a watcher that starts the tool anew for each snapshot.

const SERIES_SECOND_NS: i128 = 1_000_000_000;

/// One run of all of them, or all of them as they are if they do not follow one another, or not all report their times.
fn one_of(mut runs: Vec<Made>) -> Result<Made, Vec<Made>> {
    if !follow_one_another(&mut runs) {
        return Err(runs);
    }
    let mut rest = runs.into_iter();
    let Some(mut one) = rest.next() else { return Err(Vec::new()) };
    let mut steps = std::mem::take(&mut one.draft.steps);
    let mut offsets_ns = vec![0];
    for other in rest {
        let Made { draft, files, not_understood, .. } = other;
        let after = draft
            .began
            .zip(one.draft.began)
            .map(|(of_other, of_one)| of_other.timestamp().0.duration_since(of_one.timestamp().0).as_nanos());
        offsets_ns.push(after.and_then(|after_ns| u64::try_from(after_ns).ok()).unwrap_or(0));
        steps.extend(draft.steps);
        // Parts of one file have the notes of all of it.
        not_understood.into_iter().for_each(|note| {
            if !one.not_understood.contains(&note) {
                one.not_understood.push(note);
            }
        });
        one.files.extend(files);
        one.draft.ended = draft.ended.or(one.draft.ended);
    }
    one.draft.steps.extend(joined(steps, &offsets_ns));
    Ok(one)
}

/// Sorts them by their beginnings, and says whether each began after the one before had ended, by the same clock and in as
/// good a measure of time.
fn follow_one_another(runs: &mut [Made]) -> bool {
    let began = |made: &Made| made.draft.began.map(|began| (began.timestamp().0, began));
    runs.sort_by_key(|made| began(made).map(|(at, _)| at));
    let length_ns = |made: &Made| match made.draft.steps.as_slice() {
        [step] => Some(step.window.duration_ns),
        _ => None,
    };
    runs.iter().zip(runs.iter().skip(1)).all(|(before, after)| {
        let (Some((first, of_first)), Some((next, of_next))) = (began(before), began(after)) else { return false };
        let (Some(first_ns), Some(next_ns)) = (length_ns(before), length_ns(after)) else { return false };
        let gap_ns = next.duration_since(first).as_nanos() - i128::from(first_ns);
        std::mem::discriminant(&of_first) == std::mem::discriminant(&of_next)
            && (first_ns == 0) == (next_ns == 0)
            && next > first
            // Clocks that are reported in whole seconds.
            && gap_ns >= -SERIES_SECOND_NS
            && before.draft.environment.hostname == after.draft.environment.hostname
    })
}

/// Samples of all at their times, and figures over all of them. What some of them do not report is not reported.
fn joined(steps: Vec<Step>, offsets_ns: &[u64]) -> Option<Step> {
    let reported = figures(&steps);
    let devices = devices(&steps);
    let cpu = |sum: CpuTime, more: CpuTime| CpuTime {
        user_ns: sum.user_ns.saturating_add(more.user_ns),
        system_ns: sum.system_ns.saturating_add(more.system_ns),
        iowait_ns: sum.iowait_ns.zip(more.iowait_ns).map(|(sum, more)| sum.saturating_add(more)),
        steal_ns: sum.steal_ns.zip(more.steal_ns).map(|(sum, more)| sum.saturating_add(more)),
        idle_ns: sum.idle_ns.zip(more.idle_ns).map(|(sum, more)| sum.saturating_add(more)),
    };
    let cpus: Option<Vec<CpuTime>> = steps.iter().map(|step| step.host_cpu).collect();
    let host_cpu = cpus.and_then(|cpus| cpus.into_iter().reduce(cpu));
    let duration_ns = steps.iter().fold(0_u64, |sum, step| sum.saturating_add(step.window.duration_ns));
    let mut intervals = Vec::new();
    let mut first = None;
    for (mut step, offset_ns) in steps.into_iter().zip(offsets_ns) {
        for mut interval in std::mem::take(&mut step.intervals) {
            interval.offset_ns = interval.offset_ns.saturating_add(*offset_ns);
            intervals.push(interval);
        }
        first.get_or_insert(step);
    }
    let mut step = first?;
    step.window.duration_ns = duration_ns;
    Some(Step { reported, devices, host_cpu, intervals, ..step })
}

/// What each step weighs: its length, or how many samples it has where lengths are not reported.
fn weight(step: &Step) -> f64 {
    match step.window.duration_ns {
        0 => step.intervals.len() as f64,
        length_ns => length_ns as f64,
    }
}

fn figure<'a>(step: &'a Step, layer: &str, name: &str) -> Option<&'a ReportedFigure> {
    step.reported.iter().find(|figure| figure.layer == layer && figure.name == name)
}

/// Figures that all steps have, as one.
fn figures(steps: &[Step]) -> Vec<ReportedFigure> {
    let Some(first) = steps.iter().max_by_key(|step| step.reported.len()) else { return Vec::new() };
    let of_all = |known: &ReportedFigure| {
        let (device, column) = match known.name.rsplit_once(' ') {
            Some((device, column)) if known.layer == "device" => (format!("{device} "), column),
            _ => (String::new(), known.name.as_str()),
        };
        let values = || steps.iter().map(|step| figure(step, &known.layer, &known.name).map(|figure| figure.value));
        let all: Option<Vec<f64>> = values().collect();
        let mean = |weighted: &mut dyn Iterator<Item = (f64, f64)>| {
            let (sum, weight) =
                weighted.fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + value * weight, all + weight));
            (weight > 0.0).then(|| sum / weight)
        };
        let over_time = |all: Option<Vec<f64>>| mean(&mut all?.into_iter().zip(steps.iter().map(weight)));
        let value = match osstat::over(column) {
            _ if known.layer != "device" => over_time(all),
            osstat::Over::Sum => all.map(|all| all.iter().sum()),
            // A time of each request weighs by their number; where there were none it is not reported.
            osstat::Over::Counts(counts) => {
                let counted = |step: &Step| {
                    let rates = counts.iter().filter_map(|count| figure(step, "device", &format!("{device}{count}")));
                    rates.map(|figure| figure.value).sum::<f64>() * weight(step)
                };
                mean(&mut steps.iter().zip(values()).filter_map(|(step, value)| Some((value?, counted(step)))))
            }
            osstat::Over::Time => over_time(all),
        };
        Some(ReportedFigure { value: value.filter(|value| value.is_finite())?, ..known.clone() })
    };
    first.reported.iter().filter_map(of_all).collect()
}

/// Counts of devices that all steps have.
fn devices(steps: &[Step]) -> Vec<DeviceStats> {
    let Some((first, others)) = steps.split_first() else { return Vec::new() };
    let of_all = |device: &DeviceStats| {
        others.iter().try_fold(device.clone(), |mut sum, step| {
            let more = step.devices.iter().find(|more| more.name == device.name)?;
            osstat::add(&mut sum, more);
            sum.elapsed_ns = sum.elapsed_ns.saturating_add(more.elapsed_ns);
            Some(sum)
        })
    };
    first.devices.iter().filter_map(of_all).collect()
}
