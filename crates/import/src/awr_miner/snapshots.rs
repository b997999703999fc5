//! Snapshots become steps.

use std::collections::{BTreeMap, BTreeSet};

use super::super::draft::{reported_figure, step, whole};
use super::super::evhist::{edges_ns, kind_of_event};
use super::super::numbers::{ungrouped, whole_number};
use super::super::oracle_time;
use super::super::{Began, Draft, Notes};
use super::metrics;
use model::record::{Counters, Histogram, ReportedBucket, ReportedFigure, ServerStats, Step, WaitStats};

const SECTIONS: [&str; 8] = [
    "MAIN-METRICS",
    "IO-WAIT-HISTOGRAM",
    "TOP-N-TIMED-EVENTS",
    "IOSTAT-BY-FUNCTION",
    "SYSSTAT",
    "MEMORY",
    "AVERAGE-ACTIVE-SESSIONS",
    "SIZE-ON-DISK",
];

/// What the file reports on its snapshots.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    by_id: BTreeMap<u64, Snapshot>,
    instances: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Snapshot {
    /// Rows of the main metrics by instance.
    instances: BTreeMap<u64, Instance>,
    waits: BTreeMap<String, Waits>,
    reported: Vec<ReportedFigure>,
}

#[derive(Debug, Default)]
struct Instance {
    duration_ns: u64,
    end: Option<jiff::Timestamp>,
    /// By lower-case heading, in the order of the columns.
    metrics: Vec<(String, f64)>,
}

#[derive(Debug, Default)]
struct Waits {
    class: String,
    buckets: Vec<ReportedBucket>,
    total_us: Option<f64>,
}

impl Waits {
    /// The histogram, with the total time that another section reports if that can be the time of these waits: buckets of which
    /// the first snapshots know nothing are missing here and not there.
    fn histogram(&self) -> Histogram {
        let sum = |edge: fn(&ReportedBucket) -> Option<u64>| {
            let of = |bucket: &ReportedBucket| Some(edge(bucket)? as f64 * bucket.count as f64);
            self.buckets.iter().map(of).try_fold(0.0, |sum, ns| Some(sum + ns?))
        };
        let (least, most) = (sum(|bucket| Some(bucket.from_ns)), sum(|bucket| bucket.to_ns));
        let total_ns = self.total_us.map(|us| us * 1e3).filter(|total_ns| {
            least.is_some_and(|least| least <= *total_ns) && most.is_none_or(|most| *total_ns <= most)
        });
        Histogram::reported(self.buckets.clone(), total_ns.and_then(whole), None, None)
    }
}

impl Snapshots {
    /// Whether rows of a section are read.
    pub(super) fn reads(section: &str) -> bool {
        SECTIONS.contains(&section)
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The first and the last snapshot.
    pub(super) fn range(&self) -> (u64, u64) {
        let ends = self.by_id.keys().next().zip(self.by_id.keys().next_back());
        ends.map_or((0, 0), |(first, last)| (*first, *last))
    }

    /// Takes a row of a section.
    pub(super) fn row(&mut self, section: &str, line: u64, headings: &[String], cells: &[String], notes: &mut Notes) {
        if !Self::reads(section) {
            return;
        }
        let cell = |name: &str| {
            let at = headings.iter().position(|heading| heading == name)?;
            cells.get(at).map(String::as_str).filter(|cell| !cell.is_empty())
        };
        let id = cell("SNAP_ID").or_else(|| cell("SNAP")).and_then(whole_number);
        let Some(id) = id else {
            notes.not_understood(line, format!("a row of {section} without its snapshot"));
            return;
        };
        let snapshot = self.by_id.entry(id).or_default();
        // Columns that name the row, not figures of it.
        let is_figure = |name: &str| !["SNAP_ID", "SNAP", "INST", "INSTANCE_NUMBER", "DUR_M", "END"].contains(&name);
        let figures = || {
            let pairs = headings.iter().zip(cells).filter(|(heading, _)| is_figure(heading));
            pairs.filter_map(|(heading, cell)| Some((heading.to_lowercase(), ungrouped(cell)?)))
        };
        let understood = match section {
            "MAIN-METRICS" => cell("INST").and_then(whole_number).map(|inst| {
                self.instances.insert(inst);
                let minutes = cell("DUR_M").and_then(whole_number).unwrap_or(0);
                let instance = Instance {
                    duration_ns: minutes.saturating_mul(60_000_000_000),
                    end: cell("END").and_then(end_of),
                    metrics: figures().collect(),
                };
                // Where a snapshot has several rows of one instance, the longest interval is the snapshot's.
                let place = snapshot.instances.entry(inst).or_default();
                if place.metrics.is_empty() || instance.duration_ns > place.duration_ns {
                    *place = instance;
                }
            }),
            "IO-WAIT-HISTOGRAM" => snapshot.bucket(&cell),
            "TOP-N-TIMED-EVENTS" => cell("EVENT_NAME").map(|event| {
                let total_us = cell("TOTAL_TIME_S").and_then(ungrouped);
                if let Some(percent) = cell("PCTDBT").and_then(ungrouped) {
                    snapshot.reported.push(reported_figure("engine", format!("{event} PCTDBT"), "%", percent));
                }
                if let Some(us) = total_us {
                    snapshot.reported.push(reported_figure("engine", format!("{event} TOTAL_TIME_S"), "s", us / 1e6));
                }
                let waits = snapshot.waits.entry(event.to_owned()).or_default();
                waits.total_us = total_us;
                cell("WAIT_CLASS").unwrap_or_default().clone_into(&mut waits.class);
            }),
            "IOSTAT-BY-FUNCTION" => cell("FUNCTION_NAME").map(|function| {
                // Functions that did nothing are many.
                let did = figures().any(|(_, value)| value > 0.0);
                let named = figures().filter(|_| did).map(|(name, value)| {
                    reported_figure("engine", format!("{function} {}", name.to_uppercase()), "", value)
                });
                snapshot.reported.extend(named);
            }),
            "AVERAGE-ACTIVE-SESSIONS" => {
                cell("WAIT_CLASS").zip(cell("AVG_SESS").and_then(ungrouped)).map(|(class, sessions)| {
                    snapshot.reported.push(reported_figure("engine", format!("AVG_SESS {class}"), "", sessions));
                })
            }
            "MEMORY" => {
                let instance =
                    cell("INSTANCE_NUMBER").map_or_else(String::new, |number| format!(" (instance {number})"));
                let named = figures().map(|(name, gb)| {
                    reported_figure("engine", format!("{}{instance}", name.to_uppercase()), "GiB", gb)
                });
                snapshot.reported.extend(named);
                Some(())
            }
            "SIZE-ON-DISK" => {
                snapshot
                    .reported
                    .extend(figures().map(|(name, gb)| reported_figure("engine", name.to_uppercase(), "GiB", gb)));
                Some(())
            }
            _ => {
                snapshot.reported.extend(
                    figures().map(|(name, value)| reported_figure("engine", format!("SYSSTAT {name}"), "", value)),
                );
                Some(())
            }
        };
        if understood.is_none() {
            notes.not_understood(line, format!("a row of {section} of which columns are missing"));
        }
    }

    /// Adds them to the run.
    pub(super) fn into_steps(self, draft: &mut Draft) {
        let several = self.instances.len() > 1;
        let begins = |instance: &Instance| {
            let length = jiff::SignedDuration::from_nanos(i64::try_from(instance.duration_ns).ok()?);
            instance.end?.checked_sub(length).ok()
        };
        let instances = || self.by_id.values().flat_map(|snapshot| snapshot.instances.values());
        let began = instances().filter_map(begins).min();
        let wall = |time: jiff::Timestamp| Began::Wall(model::record::Timestamp(time));
        draft.began = began.map(wall);
        draft.ended = instances().filter_map(|instance| instance.end).max().map(|end| wall(end).timestamp());
        draft.notes.push("intervals are reported in whole minutes, and metrics with one decimal".to_owned());
        if several {
            let note = "metrics of an instance have its number; those without one are sums over the instances that the snapshot has";
            draft.notes.push(note.to_owned());
        }
        for (id, snapshot) in self.by_id {
            let offset = began.zip(snapshot.instances.values().filter_map(begins).min());
            let mut step = snapshot.step(id, draft.steps.len(), several);
            let offset_ns = offset.map(|(from, to)| to.duration_since(from).as_nanos());
            step.window.offset_ns = offset_ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
            draft.steps.push(step);
        }
    }
}

/// `14/12/05 18:39`: year, month, day.
fn end_of(text: &str) -> Option<jiff::Timestamp> {
    let century = if text.find('/') == Some(2) { "20" } else { "" };
    oracle_time::began(&format!("{century}{text}")).map(|began| began.timestamp().0)
}

impl Snapshot {
    fn bucket<'a>(&mut self, cell: &impl Fn(&str) -> Option<&'a str>) -> Option<()> {
        let (from_ns, to_ns) = match cell("WAIT_TIME_MICRO") {
            Some(us) => edges_ns(whole_number(us)?, 1_000, 4_294_967_295)?,
            None => edges_ns(whole_number(cell("WAIT_TIME_MILLI")?)?, 1_000_000, 4_194_304)?,
        };
        let count = whole_number(cell("WAIT_COUNT")?)?;
        let waits = self.waits.entry(cell("EVENT_NAME")?.to_owned()).or_default();
        cell("WAIT_CLASS").unwrap_or_default().clone_into(&mut waits.class);
        waits.buckets.push(ReportedBucket { from_ns, to_ns, count });
        Some(())
    }

    fn step(self, id: u64, index: usize, several: bool) -> Step {
        let duration_ns = self.instances.values().map(|instance| instance.duration_ns).max().unwrap_or(0);
        let mut step = step(index, format!("snapshot {id}"), duration_ns);
        step.parameters.insert("SNAP_ID".to_owned(), id.to_string());
        let mut sums: Vec<(String, f64, usize)> = Vec::new();
        let mut all: Vec<Counters> = Vec::new();
        for (number, instance) in &self.instances {
            let rate = |name: &str| instance.metrics.iter().find(|(metric, _)| metric == name).map(|(_, value)| *value);
            let counters = metrics::counters(rate, instance.duration_ns);
            all.push(counters.clone());
            step.instances.push(ServerStats {
                node: format!("instance {number}"),
                elapsed_ns: instance.duration_ns,
                counters,
                ..ServerStats::default()
            });
            for (name, value) in &instance.metrics {
                let part = format!("instance {number}");
                step.reported.push(match several {
                    true => metrics::figure(name, format!("{name} ({part})"), *value).of(&part),
                    false => metrics::figure(name, name.clone(), *value),
                });
                if metrics::adds_up(name) {
                    match sums.iter_mut().find(|(metric, _, _)| metric == name) {
                        Some((_, sum, count)) => (*sum, *count) = (*sum + value, *count + 1),
                        None => sums.push((name.clone(), *value, 1)),
                    }
                }
            }
        }
        step.counters = metrics::sum(&all);
        if several {
            let complete = sums.into_iter().filter(|(_, _, count)| *count == self.instances.len());
            step.reported.extend(complete.map(|(name, sum, _)| metrics::figure(&name, name.clone(), sum)));
        }
        step.reported.extend(self.reported);
        for (event, waits) in self.waits {
            let histogram = waits.histogram();
            // It is of other waits than the histogram, and known all the same.
            if let (Some(us), None) = (waits.total_us, histogram.total_ns()) {
                step.reported.push(reported_figure("engine", format!("{event}: total wait time"), "s", us / 1e6));
            }
            if waits.buckets.is_empty() {
                continue;
            }
            let (class, foreground) = kind_of_event(&event);
            let class = if waits.class.is_empty() { class.to_owned() } else { waits.class.clone() };
            step.waits.push(WaitStats {
                class,
                layer: "engine".to_owned(),
                foreground,
                waits: histogram,
                reported: Vec::new(),
                event,
            });
        }
        step
    }
}
