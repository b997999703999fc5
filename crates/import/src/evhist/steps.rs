//! Tables of buckets become steps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::draft::{reported_figure, step, whole};
use super::super::{Began, Draft};
use super::kind_of_event;
use super::readings::{Event, Row, Snapshot, Table};
use model::record::{Histogram, ReportedBucket, Step, WaitStats};

const CUMULATIVE: &str = "counts are kept as they are, without rates. Oracle's views count from the start of the \
    instance, and the file does not show since when";
const SUMMED: &str = "the waits of all instances are added up; how many each of them had is reported beside them";

/// Adds the steps of a table to the draft.
pub(super) fn add(table: &Table, events: &[Event], draft: &mut Draft) {
    if table.rows.iter().filter_map(|row| row.instance).collect::<BTreeSet<_>>().len() > 1 {
        note(draft, SUMMED.to_owned());
    }
    let order = in_order(&table.snapshots);
    match order {
        Some(order) if order.len() > 1 => between_snapshots(table, &order, events, draft),
        Some(_) => {
            note(draft, CUMULATIVE.to_owned());
            as_it_stands(table, &table.rows, None, events, draft);
        }
        None => {
            note(
                draft,
                "snapshots cannot be distinguished by their numbers or times; their counts are kept as they stand"
                    .into(),
            );
            each_snapshot(table, &(0..table.snapshots.len()).collect::<Vec<_>>(), events, draft);
        }
    }
}

/// The snapshots by number, else by time; nothing if that is not known of each.
fn in_order(snapshots: &[Snapshot]) -> Option<Vec<usize>> {
    if snapshots.len() < 2 {
        return Some((0..snapshots.len()).collect());
    }
    if snapshots.iter().any(|snapshot| !snapshot.group.is_empty()) {
        return None;
    }
    let time = |snapshot: &Snapshot| {
        let began = snapshot.begin.or(snapshot.end).or(snapshot.at);
        began.map(|began| began.timestamp().0.as_nanosecond())
    };
    let by_id = snapshots.iter().all(|snapshot| snapshot.id.is_some());
    let keys: Option<Vec<i128>> =
        snapshots.iter().map(|snapshot| if by_id { snapshot.id.map(i128::from) } else { time(snapshot) }).collect();
    let keys = keys?;
    let mut order: Vec<usize> = (0..snapshots.len()).collect();
    order.sort_by_key(|at| keys.get(*at).copied());
    Some(order)
}

fn note(draft: &mut Draft, text: String) {
    if !draft.notes.contains(&text) {
        draft.notes.push(text);
    }
}

/// A step of counts as they stand.
fn as_it_stands<'a>(
    table: &Table,
    rows: impl IntoIterator<Item = &'a Row>,
    label: Option<String>,
    events: &[Event],
    draft: &mut Draft,
) {
    let of_snapshot = || {
        let [snapshot] = table.snapshots.as_slice() else { return None };
        draft.began = draft.began.or(snapshot.begin.or(snapshot.end).or(snapshot.at));
        Some(format!("snapshot {}", snapshot.id?))
    };
    let label = label.or_else(of_snapshot).or_else(|| table.caption.clone());
    let label = label.unwrap_or_else(|| format!("reading {}", draft.steps.len() + 1));
    let step = step_of(rows, events, label, 0, draft);
    draft.steps.push(step);
}

fn each_snapshot(table: &Table, order: &[usize], events: &[Event], draft: &mut Draft) {
    let mut rows = rows_by_snapshot(table);
    for at in order {
        let label = table.snapshots.get(*at).map(|snapshot| name_of(snapshot, *at));
        as_it_stands(table, rows.remove(at).unwrap_or_default(), label, events, draft);
    }
}

fn name_of(snapshot: &Snapshot, at: usize) -> String {
    match (snapshot.id, snapshot.group.as_str()) {
        (None, "") => format!("reading {}", at + 1),
        (None, group) => group.to_owned(),
        (Some(id), "") => format!("snapshot {id}"),
        (Some(id), group) => format!("snapshot {id} {group}"),
    }
}

fn rows_by_snapshot(table: &Table) -> HashMap<usize, Vec<&Row>> {
    let mut rows: HashMap<usize, Vec<&Row>> = HashMap::new();
    for row in &table.rows {
        rows.entry(row.snapshot).or_default().push(row);
    }
    rows
}

/// Counts by bucket of one instance at one snapshot.
type Counts = HashMap<(usize, Option<u64>, u64, Option<u64>), u64>;

fn by_instance(rows: &[&Row]) -> BTreeMap<Option<u64>, Counts> {
    let mut counts: BTreeMap<Option<u64>, Counts> = BTreeMap::new();
    for row in rows {
        let bucket = (row.event, row.container, row.from_ns, row.to_ns);
        let count = counts.entry(row.instance).or_default().entry(bucket).or_default();
        *count = count.saturating_add(row.count);
    }
    counts
}

/// What came between two snapshots, and which instances were restarted or missing there.
struct Between {
    rows: Vec<Row>,
    restarted: Vec<Option<u64>>,
    missing: Vec<Option<u64>>,
}

fn between(before: &[&Row], after: &[&Row]) -> Between {
    let (earlier, mut later) = (by_instance(before), by_instance(after));
    let mut between = Between { rows: Vec::new(), restarted: Vec::new(), missing: Vec::new() };
    for (instance, counts) in &mut later {
        let Some(earlier) = earlier.get(instance) else {
            between.missing.push(*instance);
            continue;
        };
        // A bucket that is gone has fallen to nothing.
        let falls = |(bucket, count): (&_, &u64)| counts.get(bucket).copied().unwrap_or(0) < *count;
        if earlier.iter().any(falls) {
            between.restarted.push(*instance);
            continue;
        }
        between.rows.extend(counts.iter().map(|((event, container, from_ns, to_ns), count)| Row {
            event: *event,
            instance: *instance,
            container: *container,
            snapshot: 0,
            from_ns: *from_ns,
            to_ns: *to_ns,
            count: count - earlier.get(&(*event, *container, *from_ns, *to_ns)).copied().unwrap_or(0),
        }));
    }
    between
}

/// Snapshots that are distinguished: what was counted from one to the next.
fn between_snapshots(table: &Table, order: &[usize], events: &[Event], draft: &mut Draft) {
    let rows = rows_by_snapshot(table);
    let none = Vec::new();
    let rows_of = |at: usize| rows.get(&at).unwrap_or(&none).as_slice();
    let pairs: Vec<(usize, usize)> = order.iter().copied().zip(order.iter().copied().skip(1)).collect();
    let parts: Vec<Between> = pairs.iter().map(|(from, to)| between(rows_of(*from), rows_of(*to))).collect();
    let falling = parts.iter().filter(|part| !part.restarted.is_empty()).count();
    if falling * 2 > parts.len() {
        let why = "counts fall from most snapshots to the next: either the query reported differences, or instances were restarted; they \
                   are kept as they stand";
        note(draft, why.to_owned());
        return each_snapshot(table, order, events, draft);
    }
    for (at, (part, (from, to))) in parts.iter().zip(&pairs).enumerate() {
        let (Some(earlier), Some(later)) = (table.snapshots.get(*from), table.snapshots.get(*to)) else { continue };
        let label = match (earlier.id, later.id) {
            (Some(from), Some(to)) => format!("snapshots {from} to {to}"),
            _ => format!("readings {} to {}", at + 1, at + 2),
        };
        for (instances, what) in
            [(&part.restarted, "counts fall, so it was restarted"), (&part.missing, "it is missing at first")]
        {
            for instance in instances {
                let name = instance.map_or_else(|| "the instance".to_owned(), |number| format!("instance {number}"));
                note(draft, format!("{label}: {name} is left out: {what}"));
            }
        }
        if part.rows.is_empty() {
            continue;
        }
        let following = pairs.get(at + 1).and_then(|(_, next)| table.snapshots.get(*next));
        let duration_ns = duration_ns(earlier, later, following).unwrap_or(0);
        draft.began = draft.began.or(later.begin).or(earlier.end).or(earlier.at);
        let step = step_of(&part.rows, events, label, duration_ns, draft);
        draft.steps.push(step);
    }
}

/// The time between two snapshots, each taken at the end of its interval.
fn duration_ns(earlier: &Snapshot, later: &Snapshot, following: Option<&Snapshot>) -> Option<u64> {
    let since = |from: Option<Began>, to: Option<Began>| {
        let nanoseconds = to?.timestamp().0.as_nanosecond().checked_sub(from?.timestamp().0.as_nanosecond())?;
        u64::try_from(nanoseconds).ok()
    };
    let follows = |a: &Snapshot, b: &Snapshot| a.id.zip(b.id).is_some_and(|(a, b)| a.checked_add(1) == Some(b));
    since(earlier.end, later.end).or_else(|| since(earlier.at, later.at)).or_else(|| {
        // The interval of `later` begins where that of `earlier` ends, if none is missing between them.
        if !follows(earlier, later) {
            return None;
        }
        match following.filter(|following| follows(later, following)) {
            Some(following) => since(later.begin, following.begin),
            None => since(later.begin, later.end),
        }
    })
}

fn step_of<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    events: &[Event],
    label: String,
    duration_ns: u64,
    draft: &Draft,
) -> Step {
    let mut buckets: BTreeMap<usize, BTreeMap<(u64, Option<u64>), u64>> = BTreeMap::new();
    let mut by_instance: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    for row in rows {
        let ReportedBucket { from_ns, to_ns, count } = row.bucket();
        let sum = buckets.entry(row.event).or_default().entry((from_ns, to_ns)).or_default();
        *sum = sum.saturating_add(count);
        if let Some(instance) = row.instance {
            let sum = by_instance.entry((row.event, instance)).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    let taken = |label: &str| draft.steps.iter().rev().take(1_000).any(|step| step.label == label);
    let label = if taken(&label) { format!("{label} ({})", draft.steps.len() + 1) } else { label };
    let mut step = step(draft.steps.len(), label, duration_ns);
    for (event, counts) in buckets {
        let Some(Event { name, class }) = events.get(event) else { continue };
        let (known_class, foreground) = kind_of_event(name);
        let class = if class.is_empty() { known_class.to_owned() } else { class.clone() };
        let buckets = counts.into_iter().map(|((from_ns, to_ns), count)| ReportedBucket { from_ns, to_ns, count });
        step.waits.push(WaitStats {
            event: name.clone(),
            class,
            layer: "engine".to_owned(),
            foreground,
            waits: Histogram::reported(buckets, None, None, None),
            reported: Vec::new(),
        });
    }
    let instances: BTreeSet<u64> = by_instance.keys().map(|(_, instance)| *instance).collect();
    if instances.len() > 1 {
        step.reported.extend(by_instance.iter().filter_map(|((event, instance), count)| {
            let name = format!("{} waits of instance {instance}", events.get(*event)?.name);
            whole(*count as f64).map(|_| reported_figure("engine", name, "", *count as f64))
        }));
    }
    step
}
