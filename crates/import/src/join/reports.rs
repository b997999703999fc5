//! Reports of one interval of one database: what each of them has survives in the run that they become.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Began;
use super::super::oracle::classes;
use super::Made;
use model::record::{
    Histogram, ReportedFigure, ReportedTable, ReportedWaits, ServerStats, Step, Timestamp, WaitStats, Waiters,
};

/// Contradictions that are reported; the rest is counted.
const MAX_REPORTED: usize = 8;

/// Whether two reports of one address and interval are of the same containers: a pluggable database has reports of its own.
pub(super) fn is_same_report(one: &Made, other: &Made) -> bool {
    let address = |made: &Made| made.draft.target.address.clone();
    let names = |made: &Made| -> Vec<String> {
        let all = made.draft.target.facts.database.containers.join(", ");
        all.split(", ").map(|name| name.split(" (").next().unwrap_or_default().to_owned()).collect()
    };
    let (mine, theirs) = (names(one), names(other));
    address(one) == address(other)
        && mine.len() == theirs.len()
        && mine.iter().zip(&theirs).all(|(mine, theirs)| mine.starts_with(theirs) || theirs.starts_with(mine))
}

/// Whether one is the other, or its beginning as text reports cut it: `direct path read` is none of `direct path read temp`.
fn is_cut_of(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    short == long || (classes::is_cut(short) && long.starts_with(short))
}

/// Names of figures have that of an event or a function in front, and that one may be cut.
fn is_same_name(one: &str, other: &str) -> bool {
    match (one.split_once(": "), other.split_once(": ")) {
        (Some(one), Some(other)) => one.1 == other.1 && is_cut_of(one.0, other.0),
        _ => one == other,
    }
}

/// What two files state differently.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn add(&mut self, name: &str, stands: impl ToString, other: impl ToString) {
        self.0.push(format!("{name} ({} stands, not {})", stands.to_string(), other.to_string()));
    }

    /// What is to be said of them, where `file` was joined to others.
    fn note(self, file: &str) -> Option<String> {
        let more = self.0.len().saturating_sub(MAX_REPORTED);
        let first = self.0.into_iter().take(MAX_REPORTED).collect::<Vec<_>>().join("; ");
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        (!first.is_empty())
            .then(|| format!("Figures that {file} and the other files of this run state differently: {first}{more}."))
    }
}

/// The first of the files of a report, for notes.
fn file(made: &Made) -> String {
    made.files.first().map_or_else(String::new, |file| file.path.clone())
}

/// Adds to a report what another one of the same thing has beyond it, such as its text to its HTML.
pub(super) fn add_twin(known: &mut Made, other: Made) {
    let other_file = file(&other);
    let Made { draft, files, not_understood, .. } = other;
    known.files.extend(files);
    for note in not_understood {
        if !known.not_understood.contains(&note) {
            known.not_understood.push(note);
        }
    }
    known.draft.target.facts.fill(&draft.target.facts);
    known.draft.target.block_bytes = known.draft.target.block_bytes.or(draft.target.block_bytes);
    known.draft.target.cache_bytes = known.draft.target.cache_bytes.or(draft.target.cache_bytes);
    let (Some(step), Some(theirs)) = (known.draft.steps.first_mut(), draft.steps.into_iter().next()) else { return };
    let mut differences = Differences::default();
    for (name, mine, theirs) in step.counters.fill(&theirs.counters) {
        differences.add(name, mine, theirs);
    }
    step.host_cpu = step.host_cpu.or(theirs.host_cpu);
    for instance in theirs.instances {
        match step.instances.iter_mut().find(|known| known.node == instance.node) {
            Some(known) => add_own(known, instance, &mut differences),
            None => step.instances.push(instance),
        }
    }
    add_waits(&mut step.waits, theirs.waits, &mut differences);
    let is_known = |table: &ReportedTable| {
        step.tables.iter().any(|known| (&known.subject, &known.node) == (&table.subject, &table.node))
    };
    let new: Vec<ReportedTable> = theirs.tables.into_iter().filter(|table| !is_known(table)).collect();
    step.tables.extend(new);
    add_figures(&mut step.reported, theirs.reported, &mut differences);
    known.draft.notes.extend(differences.note(&other_file));
}

/// What another report reports on an instance by the database's own names.
fn add_own(known: &mut ServerStats, other: ServerStats, differences: &mut Differences) {
    let node = known.node.clone();
    for (name, mine, theirs) in known.counters.fill(&other.counters) {
        // A cluster's report has redo in units of 1,024 bytes.
        if name == "redo_bytes" && mine.abs_diff(theirs) <= 1_024 {
            known.counters.redo_bytes = [mine, theirs].into_iter().find(|bytes| bytes % 1_024 != 0).or(Some(mine));
        } else {
            differences.add(&format!("{node}: {name}"), mine, theirs);
        }
    }
    for (name, value) in other.own {
        known.own.entry(name).or_insert(value);
    }
    known.cpu = known.cpu.or(other.cpu);
}

/// The names of events, of which one may be cut, that belong together in `waits`.
fn of_event<'a>(waits: &'a [WaitStats], event: &'a str) -> impl Iterator<Item = &'a WaitStats> {
    waits.iter().filter(move |wait| is_cut_of(&wait.event, event))
}

fn is_distribution(wait: &WaitStats) -> bool {
    wait.waits.is_distribution() && wait.waits.count() > 0
}

/// Adds events that are not known, and takes those that are known without a histogram from where they have one.
fn add_waits(known: &mut Vec<WaitStats>, others: Vec<WaitStats>, differences: &mut Differences) {
    let before = known.clone();
    let mut replaced: BTreeSet<String> = BTreeSet::new();
    let theirs = others.clone();
    for other in others {
        let mine: Vec<&WaitStats> = of_event(&before, &other.event).collect();
        let has_histogram = mine.iter().any(|wait| is_distribution(wait));
        // All rows of an event come from one file, so that none counts twice; its whole name stays.
        let name = mine.iter().map(|wait| &wait.event).max_by_key(|name| name.len()).cloned();
        let same = mine.iter().find(|mine| mine.event == other.event && mine.foreground == other.foreground);
        let same_count = same.map(|mine| mine.sum().count);
        match name {
            None => known.push(other),
            Some(name) if !has_histogram && of_event(&theirs, &other.event).any(is_distribution) => {
                if replaced.insert(name.clone()) {
                    known.retain(|wait| wait.event != name);
                }
                known.push(WaitStats { event: name, ..other });
            }
            Some(_) => {
                if let Some(count) = same_count.filter(|count| *count != other.sum().count) {
                    differences.add(&format!("waits of `{}`", other.event), count, other.sum().count);
                }
            }
        }
    }
}

/// Significant digits of a figure as it was printed, those after the point among them.
fn digits(value: f64) -> usize {
    let text = format!("{value}");
    let decimals = text.split_once('.').map_or(0, |(_, rest)| rest.len());
    let whole = text.split('.').next().unwrap_or_default().trim_start_matches(['-', '0']);
    if decimals > 0 { whole.len() + decimals } else { whole.trim_end_matches('0').len() }
}

/// Whether the one with fewer digits is the other, rounded.
fn is_rounding(coarse: f64, fine: f64) -> bool {
    let text = format!("{coarse}");
    let decimals = text.split_once('.').map_or(0, |(_, rest)| rest.len().min(12));
    // Text reports print rates that are too wide for their column as `1.4E+04`.
    let wide = coarse.abs() >= 1e4 && digits(coarse) < 5;
    let off = if wide {
        coarse.abs() * 0.5 / 10_f64.powi(digits(coarse) as i32 - 1)
    } else {
        0.5 / 10_f64.powi(decimals as i32)
    };
    (coarse - fine).abs() <= off * 1.02
}

/// Adds figures that are not known. Of those that are, the one with more digits stands.
fn add_figures(known: &mut Vec<ReportedFigure>, others: Vec<ReportedFigure>, differences: &mut Differences) {
    let mut by_end: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let end = |name: &str| name.rsplit(": ").next().unwrap_or_default().to_owned();
    for (at, figure) in known.iter().enumerate() {
        by_end.entry(end(&figure.name)).or_default().push(at);
    }
    for other in others {
        let same = |at: &usize| {
            known.get(*at).is_some_and(|mine| {
                (&mine.unit, &mine.layer) == (&other.unit, &other.layer) && is_same_name(&mine.name, &other.name)
            })
        };
        let place = by_end.get(&end(&other.name)).into_iter().flatten().copied().find(same);
        let Some(mine) = place.and_then(|at| known.get_mut(at)) else {
            known.push(other);
            continue;
        };
        let (coarse, fine) = if digits(mine.value) < digits(other.value) {
            (mine.value, other.value)
        } else {
            (other.value, mine.value)
        };
        if !is_rounding(coarse, fine) {
            differences.add(&mine.name, fine, coarse);
        }
        mine.value = fine;
    }
}

/// Facts of an instance's own report that are not the cluster's.
const OF_ONE_INSTANCE: [&str; 5] = ["instance", "instance_number", "report", "startup", "sessions_begin"];

/// Whether a report is of an instance that the report of its cluster lists.
pub(super) fn is_of_cluster(cluster: &Made, instance: &Made) -> bool {
    let nodes = |made: &Made| -> Vec<String> {
        made.draft.steps.iter().flat_map(|step| &step.instances).map(|instance| instance.node.clone()).collect()
    };
    let listed = nodes(cluster);
    nodes(instance).iter().all(|node| listed.contains(node))
}

/// What an instance's own report reports beyond the cluster's: everything that is the instance's, under its name.
///
/// A cluster's report reports its times in minutes; that of an instance, of the same snapshots, in seconds.
pub(super) fn add_instance(cluster: &mut Made, instance: Made) {
    let instance_file = file(&instance);
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
    let mut facts = draft.target.facts;
    facts.other.retain(|name, _| !OF_ONE_INSTANCE.contains(&name.as_str()));
    cluster.draft.target.facts.fill(&facts);
    let target = &mut cluster.draft.target;
    target.block_bytes = target.block_bytes.or(draft.target.block_bytes);
    let Some(step) = cluster.draft.steps.first_mut() else { return };
    let mut differences = Differences::default();
    let mut nodes = Vec::new();
    for Step { instances, mut waits, reported, tables, .. } in draft.steps {
        // What the cluster's report has of all instances is not repeated for each.
        let is_of_all = |table: &ReportedTable| {
            step.tables.iter().any(|known| known.node.is_none() && known.subject == table.subject)
        };
        let new: Vec<ReportedTable> = tables.into_iter().filter(|table| !is_of_all(table)).collect();
        step.tables.extend(new);
        for instance in instances {
            let node = instance.node.clone();
            let Some(known) = step.instances.iter_mut().find(|known| known.node == node) else { continue };
            add_own(known, instance, &mut differences);
            known.waits.append(&mut waits);
            let named = |figure: &ReportedFigure| {
                ReportedFigure { name: format!("{node}: {}", figure.name), ..figure.clone() }.of(&node)
            };
            add_figures(&mut step.reported, reported.iter().map(named).collect(), &mut differences);
            nodes.push(node);
        }
    }
    let of = nodes.join(", ");
    // What the cluster's report already says of all is not said again of one.
    let known = cluster.draft.notes.clone();
    let new = draft.notes.into_iter().filter(|note| !known.contains(note));
    cluster.draft.notes.extend(new.map(|note| format!("{of}: {note}")));
    cluster.draft.notes.extend(differences.note(&instance_file));
}

/// Gives events of a cluster the histograms that only its instances' own reports have.
pub(super) fn add_histograms(cluster: &mut Made) {
    let Some(step) = cluster.draft.steps.first_mut() else { return };
    let with_reports: Vec<&ServerStats> = step.instances.iter().filter(|instance| !instance.waits.is_empty()).collect();
    let are_all = with_reports.len() == step.instances.len();
    let names: BTreeSet<&str> =
        with_reports.iter().flat_map(|instance| &instance.waits).map(|wait| wait.event.as_str()).collect();
    let (mut joined, mut filled) = (Vec::new(), 0_usize);
    for name in names {
        let mine: Vec<&WaitStats> = of_event(&step.waits, name).collect();
        let parts: Vec<&WaitStats> = with_reports.iter().flat_map(|instance| of_event(&instance.waits, name)).collect();
        let distributions: Vec<&WaitStats> = parts.iter().copied().filter(|wait| is_distribution(wait)).collect();
        let from = distributions.first().or(parts.first()).filter(|_| !mine.iter().any(|wait| is_distribution(wait)));
        // What the cluster's report leaves out is the cluster's only as the sum of all instances.
        let Some(from) = from.filter(|_| are_all || !mine.is_empty() && !distributions.is_empty()) else { continue };
        if !mine.is_empty() && distributions.is_empty() {
            continue;
        }
        let mut waits = Histogram::reported([], None, None, None);
        let counted = if distributions.is_empty() { &parts } else { &distributions };
        counted.iter().for_each(|wait| waits.merge(&wait.waits));
        let reported = if mine.is_empty() { waits_by_side(&parts) } else { waits_by_side(&mine) };
        let event = mine.first().map_or(name, |wait| wait.event.as_str()).to_owned();
        joined.push(WaitStats { event, waits, reported, ..(*from).clone() });
        filled += 1;
    }
    if filled == 0 {
        return;
    }
    let nodes = with_reports.iter().map(|instance| instance.node.as_str()).collect::<Vec<_>>().join(", ");
    let whose = if are_all { "are sums of those of its instances" } else { "are those of these instances alone" };
    let note = format!(
        "Of {filled} events the cluster's report has no histogram. Theirs are from the reports of {nodes}, and {whose}; numbers and \
         times are those of the cluster where it states them."
    );
    step.waits.retain(|wait| !joined.iter().any(|new: &WaitStats| new.event == wait.event));
    step.waits.extend(joined);
    cluster.draft.notes.push(note);
}

/// What rows of an event state, foreground and background each as one.
fn waits_by_side(waits: &[&WaitStats]) -> Vec<ReportedWaits> {
    let sides = [
        (Waiters::Foreground, waits.iter().map(|wait| wait.of_sessions()).collect::<Vec<_>>()),
        (Waiters::Background, waits.iter().map(|wait| wait.of_background()).collect()),
    ];
    let Some(first) = waits.first() else { return Vec::new() };
    let source = first.reported.first().map_or_else(|| "Wait Events".to_owned(), |reported| reported.source.clone());
    let side = |(by, all): (Waiters, Vec<Option<model::record::Waited>>)| {
        let sum = all.into_iter().flatten().reduce(model::record::Waited::and)?;
        let (count, total_ns) = (sum.count, sum.total_ns);
        Some(ReportedWaits { by, count, total_ns, layer: first.layer.clone(), source: source.clone() })
    };
    sides.into_iter().filter_map(side).collect()
}
