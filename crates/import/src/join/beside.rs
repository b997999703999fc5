//! What iostat, vmstat and mpstat saw of the machine while something ran.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Began;
use super::super::run::Made;
use super::series;
use model::record::{Interval, ReportedFigure, Step};

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
            count => match series::one_of(fitting) {
                Ok(one) => one,
                Err(several) => {
                    run.draft.notes.push(format!(
                        "{count} runs of {program} lie beside it and stay runs of their own: they do not follow one another by \
                         their times, or do not report them."
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
