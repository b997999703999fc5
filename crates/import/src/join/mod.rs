//! Files of one folder that report on one thing become one run: a cluster's report and those of its instances, text and HTML of
//! one report, and what SLOB leaves beside them (`iostat`, `vmstat`, `mpstat`, `slob.conf`, `tm.out`).

mod beside;
mod reports;
mod series;

use super::run::{FileRead, Made};
use super::slob_files;
use model::record::Step;
use model::record::Workload;
use model::record::facts::DATABASE_ID;

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
        } else if made.draft.workload == Workload::Host {
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
            hosts = beside::add(only, hosts);
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
    Some(format!("{} {}", facts.get(DATABASE_ID)?, facts.get("snapshots")?))
}

/// Whether a report is of a whole database, and not of one of its instances.
fn is_cluster(made: &Made) -> bool {
    !made.draft.target.address.contains('/')
}

/// How much a report reports: of two of one thing the fuller is taken.
fn content_size(made: &Made) -> usize {
    let of_step = |step: &Step| {
        let own: usize = step.instances.iter().map(|instance| instance.own.len()).sum();
        own + step.waits.len() + step.reported.len()
    };
    made.draft.steps.iter().map(of_step).sum()
}

/// Reports of one interval: the cluster's with those of its instances in it, or else one for each instance.
fn one_interval(reports: Vec<Made>) -> Vec<Made> {
    let mut by_address: Vec<Made> = Vec::new();
    for made in reports {
        match by_address.iter_mut().find(|known| reports::is_same_report(known, &made)) {
            Some(known) => {
                let mut other = made;
                if content_size(&other) > content_size(known) {
                    std::mem::swap(known, &mut other);
                }
                reports::add_twin(known, other);
            }
            None => by_address.push(made),
        }
    }
    let Some(at) = by_address.iter().position(is_cluster) else { return by_address };
    let mut cluster = by_address.remove(at);
    let (of_it, apart): (Vec<Made>, Vec<Made>) =
        by_address.into_iter().partition(|made| !is_cluster(made) && reports::is_of_cluster(&cluster, made));
    of_it.into_iter().for_each(|instance| reports::add_instance(&mut cluster, instance));
    reports::add_histograms(&mut cluster);
    std::iter::once(cluster).chain(apart).collect()
}

/// Settings of a run, and the time it took.
fn add_context(run: &mut Made, settings: Made) {
    run.files.extend(settings.files);
    run.not_understood.extend(settings.not_understood);
    for (name, value) in settings.draft.parameters {
        run.draft.parameters.entry(name).or_insert(value);
    }
    let figures = settings.draft.steps.into_iter().flat_map(|step| step.reported);
    match run.draft.steps.as_mut_slice() {
        [step] => step.reported.extend(figures),
        _ => run.draft.notes.extend(figures.map(|figure| {
            format!("{}: {} {}, of which of its steps is not reported.", figure.name, figure.value, figure.unit)
        })),
    }
}

#[cfg(test)]
mod tests;
