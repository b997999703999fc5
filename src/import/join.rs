//! Files of one folder that tell of one thing become one run: a cluster's report and those of its instances, text and HTML of
//! one report, and what SLOB leaves beside them (`iostat`, `vmstat`, `mpstat`, `slob.conf`, `tm.out`).

use std::collections::{BTreeMap, BTreeSet};

use super::run::{FileRead, Made};
use super::{Began, slob_files};
use crate::record::{Interval, ServerStats, Step, Timestamp, ToldFigure};

const SECOND_NS: i128 = 1_000_000_000;
/// Samples that begin within this time of each other are of one interval: three tools that one script started.
const TOGETHER_NS: i128 = SECOND_NS;

/// Joins what belongs together, in the order of the files.
pub(super) fn join(files: Vec<FileRead>) -> Vec<Made> {
    let mut reports: Vec<(String, Vec<Made>)> = Vec::new();
    let (mut hosts, mut context, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for made in files.into_iter().flat_map(Made::of) {
        if let Some(of) = interval_of(&made) {
            match reports.iter_mut().find(|(known, _)| *known == of) {
                Some((_, same)) => same.push(made),
                None => reports.push((of, vec![made])),
            }
        } else if made.draft.workload == "host" {
            hosts.push(made);
        } else if made.files.iter().all(|file| [slob_files::CONF, slob_files::TM].contains(&file.kind.as_str())) {
            context.push(made);
        } else {
            others.push(made);
        }
    }
    let mut joined: Vec<Made> = reports.into_iter().flat_map(|(_, same)| one_interval(same)).collect();
    // What was measured beside belongs to the only run that it can belong to.
    match (joined.as_mut_slice(), others.as_mut_slice()) {
        ([only], []) | ([], [only]) => {
            context.into_iter().for_each(|settings| add_context(only, settings));
            hosts = hosts.into_iter().filter_map(|host| add_host(only, host)).collect();
        }
        _ => {}
    }
    joined.extend(others);
    joined.extend(hosts);
    joined
}

/// Which interval of which database a report is of: its database and its snapshots.
fn interval_of(made: &Made) -> Option<String> {
    let facts = &made.draft.target.facts;
    Some(format!("{} {}", facts.get("db_id")?, facts.get("snapshots")?))
}

/// Whether a report is of a whole database, and not of one of its instances.
fn is_cluster(made: &Made) -> bool {
    !made.draft.target.address.contains('/')
}

/// How much a report tells: of two of one thing the fuller is taken.
fn told(made: &Made) -> usize {
    let of_step = |step: &Step| {
        let own: usize = step.instances.iter().map(|instance| instance.own.len()).sum();
        own + step.waits.len() + step.told.len()
    };
    made.draft.steps.iter().map(of_step).sum()
}

/// Reports of one interval: the cluster's with those of its instances in it, or else one for each instance.
fn one_interval(reports: Vec<Made>) -> Vec<Made> {
    let mut by_address: Vec<Made> = Vec::new();
    for made in reports {
        match by_address.iter_mut().find(|known| known.draft.target.address == made.draft.target.address) {
            Some(known) => {
                let mut other = made;
                if told(&other) > told(known) {
                    std::mem::swap(known, &mut other);
                }
                known.files.extend(other.files);
            }
            None => by_address.push(made),
        }
    }
    let Some(at) = by_address.iter().position(is_cluster) else { return by_address };
    let mut cluster = by_address.remove(at);
    let (of_it, apart): (Vec<Made>, Vec<Made>) = by_address.into_iter().partition(|made| !is_cluster(made));
    of_it.into_iter().for_each(|instance| add_instance(&mut cluster, instance));
    std::iter::once(cluster).chain(apart).collect()
}

/// Facts of an instance's own report that are not the cluster's.
const OF_ONE_INSTANCE: [&str; 5] = ["instance", "instance_number", "report", "startup", "sessions_begin"];

/// What an instance's own report tells beyond the cluster's.
///
/// A cluster's report tells its times in minutes; that of an instance, of the same snapshots, in seconds.
fn add_instance(cluster: &mut Made, instance: Made) {
    let Made { draft, files, not_understood, .. } = instance;
    let within_a_minute = |exact: Timestamp, rounded: Timestamp| exact.0.duration_since(rounded.0).abs().as_secs() < 60;
    if let (Some(Began::Wall(exact)), Some(Began::Wall(rounded))) = (draft.began, cluster.draft.began)
        && within_a_minute(exact, rounded)
    {
        cluster.draft.began = draft.began;
        cluster.draft.ended = draft.ended.or(cluster.draft.ended);
    }
    cluster.files.extend(files);
    cluster.not_understood.extend(not_understood);
    for (name, fact) in draft.target.facts.into_iter().filter(|(name, _)| !OF_ONE_INSTANCE.contains(&name.as_str())) {
        cluster.draft.target.facts.entry(name).or_insert(fact);
    }
    let target = &mut cluster.draft.target;
    target.block_bytes = target.block_bytes.or(draft.target.block_bytes);
    let own = draft.steps.into_iter().flat_map(|step| step.instances);
    let Some(step) = cluster.draft.steps.first_mut() else { return };
    for ServerStats { node, own, cpu, .. } in own {
        if let Some(known) = step.instances.iter_mut().find(|known| known.node == node) {
            own.into_iter().for_each(|(name, value)| {
                known.own.entry(name).or_insert(value);
            });
            known.cpu = known.cpu.or(cpu);
        }
    }
}

/// Settings of a run, and the time it took.
fn add_context(run: &mut Made, settings: Made) {
    run.files.extend(settings.files);
    run.not_understood.extend(settings.not_understood);
    for (name, value) in settings.draft.parameters {
        run.draft.parameters.entry(name).or_insert(value);
    }
    if let [step] = run.draft.steps.as_mut_slice() {
        step.told.extend(settings.draft.steps.into_iter().flat_map(|step| step.told));
    }
}

/// What a tool saw of the machine meanwhile; it comes back if the two were not at the same time, as far as both tell: then its
/// means would be those of something else.
fn add_host(run: &mut Made, host: Made) -> Option<Made> {
    let began = |made: &Made| made.draft.began.map(|began| began.timestamp().0);
    let after_ns = began(run).zip(began(&host)).map(|(of_run, of_host)| of_host.duration_since(of_run).as_nanos());
    let lasts = |made: &Made| made.draft.steps.iter().map(|step| i128::from(step.window.duration_ns)).sum::<i128>();
    let (run_ns, host_ns) = (lasts(run), lasts(&host));
    let is_apart = after_ns.is_some_and(|after_ns| {
        let together_ns = (after_ns + host_ns).min(run_ns) - after_ns.max(0);
        together_ns < 0 || (run_ns > 0 && together_ns * 2 < host_ns)
    });
    let [step] = run.draft.steps.as_mut_slice() else { return Some(host) };
    if is_apart {
        return Some(host);
    }
    let Made { draft, files, not_understood, .. } = host;
    run.files.extend(files);
    run.not_understood.extend(not_understood);
    run.draft.notes.push(match after_ns {
        Some(after_ns) => format!(
            "Figures of {} are means over its own samples of {} s, which begin {} s {} the window does.",
            draft.program,
            host_ns / SECOND_NS,
            after_ns.abs() / SECOND_NS,
            if after_ns < 0 { "before" } else { "after" }
        ),
        None => format!("Figures of {} are means over its own samples.", draft.program),
    });
    let mut beside = Vec::new();
    for mut other in draft.steps {
        // `%idle` is said by several tools, each of its own samples.
        let of_host: BTreeSet<String> =
            other.told.iter().filter(|figure| figure.layer == "host").map(|figure| figure.name.clone()).collect();
        let renamed = |name: &str| match of_host.contains(name) {
            true => format!("{} {name}", draft.program),
            false => name.to_owned(),
        };
        step.told.extend(other.told.drain(..).map(|figure| ToldFigure { name: renamed(&figure.name), ..figure }));
        for interval in &mut other.intervals {
            interval.told =
                std::mem::take(&mut interval.told).into_iter().map(|(name, value)| (renamed(&name), value)).collect();
        }
        step.host_cpu = step.host_cpu.or(other.host_cpu);
        step.devices.append(&mut other.devices);
        // Without a time of both nobody knows when these samples were.
        let at = |interval: Interval| Some((after_ns? + i128::from(interval.offset_ns), interval));
        beside.extend(other.intervals.into_iter().filter_map(at));
    }
    if !beside.is_empty() {
        set_beside(step, beside);
    }
    None
}

/// Puts samples, each with its time after the start of the window, beside those that are there. Samples of several tools at the
/// same time become one interval, and what lies before the window is its warm-up.
fn set_beside(step: &mut Step, beside: Vec<(i128, Interval)>) {
    let warmup_ns = i128::from(step.window.warmup_ns);
    let window_ns = i128::from(step.window.duration_ns);
    let there = std::mem::take(&mut step.intervals);
    let there = there.into_iter().map(|interval| (i128::from(interval.offset_ns) - warmup_ns, interval));
    let mut at: BTreeMap<i128, Interval> = BTreeMap::new();
    for (at_ns, interval) in there.chain(beside) {
        let near = at.range(at_ns - TOGETHER_NS..=at_ns + TOGETHER_NS).map(|(at_ns, _)| *at_ns).next();
        match near.and_then(|near| at.get_mut(&near)) {
            Some(known) => {
                known.told.extend(interval.told);
                known.devices.extend(interval.devices);
                known.process_cpu = known.process_cpu.or(interval.process_cpu);
            }
            None => {
                at.insert(at_ns, interval);
            }
        }
    }
    let first_ns = at.keys().next().copied().unwrap_or(0).min(0);
    step.window.warmup_ns = u64::try_from(-first_ns).unwrap_or(0);
    let placed = at.into_iter().map(|(at_ns, interval)| Interval {
        offset_ns: u64::try_from(at_ns - first_ns).unwrap_or(u64::MAX),
        warmup: at_ns < 0 || at_ns >= window_ns,
        ..interval
    });
    step.intervals = placed.collect();
}

#[cfg(test)]
mod tests;
