//! Work on processors: how fast each kind went, memory by size, and what the kernel said of the processors meanwhile.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{NONE, UNKNOWN, duration, longest, number, quantile, share};
use analysis::{Speed, WorkUnit, is_host_load};
use model::record::{HostStats, Run, Step};
use model::units::Nanos;

/// The tables of a load on processors; nothing of any other.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if !is_host_load(run) {
        return Ok(());
    }
    let speeds = Speed::of_run(run);
    let is_waiting = |speed: &Speed<'_>| matches!(speed.unit, WorkUnit::RoundTrips | WorkUnit::Sleeps);
    let is_memory = |speed: &Speed<'_>| matches!(speed.unit, WorkUnit::Bytes | WorkUnit::Loads);
    let table = |what: &str, columns: &[Column], is_wanted: &dyn Fn(&Speed<'_>) -> bool| {
        let wanted = speeds.iter().filter(|speed| is_wanted(speed));
        let rows = wanted.map(|speed| {
            let kind = match speed.unit {
                WorkUnit::Sleeps => "1 ms sleep, late by",
                WorkUnit::RoundTrips => "wake-up and answer",
                _ => speed.kind,
            };
            ([speed.step.label.clone(), kind.to_owned()], speed)
        });
        Grid::of(["step", what], columns, rows)
    };
    let title = "Work (slices of a fixed amount; GB of blocks of 8 KiB)";
    paper.table(title, &table("work", &WORK, &|speed| !is_waiting(speed) && !is_memory(speed)))?;
    let title = "Memory by how much of it is gone through (read and written; a load waits for the one before)";
    paper.table(title, &table("work", &MEMORY, &is_memory))?;
    paper.table("Wake-ups and timers", &table("what", &WAITING, &is_waiting))?;
    processors(paper, run)?;
    each_processor(paper, run)
}

/// Heading and value of a column.
type Column = (&'static str, fn(&Speed<'_>) -> String);

const PROCESSORS: Column = ("processors", |speed| speed.threads.to_string());

const WORK: [Column; 7] = [
    PROCESSORS,
    ("all of them", |speed| speed.per_s.map_or_else(|| NONE.to_owned(), |per_s| speed.unit.words(per_s))),
    ("one, while at it", |speed| speed.unit.words(speed.per_processor_s)),
    ("slice p50", |speed| quantile(speed.times, 0.5)),
    ("p99", |speed| quantile(speed.times, 0.99)),
    ("p99.9", |speed| quantile(speed.times, 0.999)),
    ("max", |speed| longest(speed.times)),
];

const MEMORY: [Column; 4] = [
    PROCESSORS,
    ("memory of each", |speed| speed.size.map_or_else(|| UNKNOWN.to_owned(), |size| size.to_string())),
    ("all of them", |speed| {
        let moved = speed.per_s.filter(|_| speed.unit == WorkUnit::Bytes);
        moved.map_or_else(|| NONE.to_owned(), |per_s| speed.unit.words(per_s))
    }),
    ("one load", |speed| speed.load_time().map_or_else(|| NONE.to_owned(), |ns| format!("{ns:.1} ns"))),
];

const WAITING: [Column; 6] = [
    PROCESSORS,
    ("count", |speed| number(Some(speed.times.count() as f64))),
    ("p50", |speed| quantile(speed.times, 0.5)),
    ("p99", |speed| quantile(speed.times, 0.99)),
    ("p99.9", |speed| quantile(speed.times, 0.999)),
    ("max", |speed| longest(speed.times)),
];

/// What held the loaded processors back, and what they looked like.
fn processors(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let names =
        ["step", "own %", "others %", "stolen %", "limit", "held back %", "GHz", "hottest C", "throttled", "waited %"];
    let mut grid = Grid::new(1, names);
    for (step, host) in hosts(run) {
        let all = host.elapsed_ns as f64 * f64::from(step.load.sessions.unwrap_or(0));
        let of_all = |ns: Option<u64>| share(ns.filter(|_| all > 0.0).map(|ns| ns as f64 / all));
        let others = host.loaded.busy_ns.map(|busy| busy.saturating_sub(host.loaded.own_ns));
        let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
        let held = host.throttled.filter(|throttled| throttled.periods > 0);
        let held = held.map(|throttled| throttled.throttled_periods as f64 / throttled.periods as f64);
        let waited = host.cpu_pressure_ns.map(|ns| (ns as f64 / host.elapsed_ns.max(1) as f64).min(1.0));
        grid.push(vec![
            step.label.clone(),
            of_all(Some(host.loaded.own_ns)),
            of_all(others),
            of_all(host.loaded.steal_ns),
            host.quota_processors.map_or_else(|| NONE.to_owned(), |limit| format!("{limit:.2}")),
            held.map_or_else(|| NONE.to_owned(), |held| share(Some(held))),
            known(host.frequency_hz.map(|hz| format!("{:.2}", hz as f64 / 1e9))),
            known(host.temperature_celsius.map(|celsius| format!("{celsius:.0}"))),
            known(host.thermal_throttles.map(|count| count.to_string())),
            share(waited),
        ]);
    }
    let title = "The loaded processors (layer: OS; 100 % = all of them; limit: of control groups, in processors; waited: some \
                 task for a processor)";
    paper.table(title, &grid)
}

/// Most processors that have rows of their own; of more the slowest and the fastest say enough.
const MAX_ROWS: usize = 16;

fn each_processor(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let is_one = |step: &&(&Step, &HostStats)| step.1.processors.len() > 1;
    let loads: Vec<(&Step, &HostStats)> = hosts(run).collect();
    // Of a survey the last load on all of them would be one of sleeps; the longest is what a reader asked for.
    let Some((step, host)) = loads.iter().filter(is_one).max_by_key(|(step, _)| step.window.duration_ns) else {
        return Ok(());
    };
    let mut sorted: Vec<_> = host.processors.iter().collect();
    let is_cut = sorted.len() > MAX_ROWS;
    if is_cut {
        sorted.sort_by_key(|processor| processor.times.operations);
        sorted.drain(MAX_ROWS / 2..sorted.len() - MAX_ROWS / 2);
    }
    let mut grid = Grid::new(1, ["processor", "slices/s", "own %", "others %", "stolen %"]);
    for processor in sorted {
        let times = &processor.times;
        let part = |ns: Option<u64>| share(ns.map(|ns| ns as f64 / host.elapsed_ns.max(1) as f64));
        grid.push(vec![
            processor.number.to_string(),
            number(analysis::rate(Some(times.operations), host.elapsed_ns)),
            part(Some(times.own_ns)),
            part(times.busy_ns.map(|busy| busy.saturating_sub(times.own_ns))),
            part(times.steal_ns),
        ]);
    }
    let which = if is_cut { ", the slowest and the fastest" } else { "" };
    let lasted = duration(Some(Nanos(host.elapsed_ns).0));
    paper.table(&format!("Each processor in {}, {lasted}{which}", step.label), &grid)
}

fn hosts(run: &Run) -> impl Iterator<Item = (&Step, &HostStats)> {
    run.steps.iter().filter_map(|step| Some((step, step.host.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Terminal;
    use model::record::Load;
    use model::record::Workload;
    use model::record::sample;

    fn rendered(run: &Run) -> String {
        let mut out = Vec::new();
        write(&mut Terminal { out: &mut out, width: 300 }, run).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_load_is_told_by_its_work_and_by_each_of_its_processors() {
        let mut run = sample::host::load(10);
        run.steps[0].host.as_mut().unwrap().quota_processors = Some(2.5);
        let text = rendered(&run);
        let row = |begin: &str| text.lines().find(|line| line.starts_with(begin)).unwrap_or_default().to_owned();
        assert!(row("checksum_p4  checksum").contains("67.1 GB/s"), "{text}");
        assert!(
            text.contains("2.50") && text.contains("3.00") && text.contains("60"),
            "limit, clock and sensor: {text}"
        );
        assert!(row("3 ").contains("1,000"), "{text}");
        run.load = Load::foreign(Workload::Slob);
        assert_eq!(rendered(&run), "");
    }

    #[test]
    fn of_many_processors_the_slowest_and_the_fastest_are_told() {
        let mut run = sample::host::load(10);
        let processors = &mut run.steps[0].host.as_mut().unwrap().processors;
        *processors = (0..40)
            .map(|number| {
                let mut processor = processors[0].clone();
                (processor.number, processor.times.operations) = (number, 10_000 - u64::from(number));
                processor
            })
            .collect();
        let text = rendered(&run);
        let has = |number: u32| text.lines().any(|line| line.starts_with(&format!("{number} ")));
        assert!(has(0) && has(39) && !has(20), "{text}");
        assert!(text.contains("the slowest and the fastest"), "{text}");
    }
}
