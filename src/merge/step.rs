//! One step of all parts.

use std::sync::atomic::AtomicBool;

use super::align::{self, Lying, NOTED_APART_NS};
use super::part::{Part, Second, widest};
use super::series::{self, PartInput};
use super::{MergeError, Taken, Voice, is_of_server, sum, voices};
use model::record::{
    ChannelStats, Counters, DeviceStats, Ending, Generator, Histogram, Intensity, Interval, MergedStep, MergedWindows,
    NetworkEnd, OperationStats, Outcome, Outstanding, Run, Step, TraceStats, WaitStats, Window, known_sum,
};
use model::units::Nanos;

/// The kind of operations whose own kinds are not known.
const ALL_KINDS: &str = "all";

/// A step that was added up.
pub(super) struct Added {
    pub(super) step: Step,
    pub(super) merged: MergedStep,
    pub(super) lying: Lying,
    pub(super) notes: Vec<String>,
}

/// Adds up step number `index` of the merged run.
pub(super) fn add<E: From<MergeError>>(
    parts: &[Part],
    taken: &Taken,
    index: u32,
    run: &Run,
    stop: &AtomicBool,
    each: &mut impl FnMut(&Interval) -> Result<(), E>,
) -> Result<Added, E> {
    let zero = parts.iter().find(|part| part.place.number == 0);
    let found = taken.from.iter().filter_map(|(place, at)| {
        let part = parts.get(*place)?;
        Some((part, part.run.steps.get(*at)?, part.seconds.get(*at)?.as_slice()))
    });
    let all: Vec<(&Part, &Step, &[Second])> = found.collect();
    let lying = align::lay(&all, zero)?;
    let plain: Vec<(&Part, &Step)> = all.iter().map(|(part, step, _)| (*part, *step)).collect();
    let voices = voices(&plain);
    let mut step = whole(&plain, &voices, index, &taken.label);
    step.window = window(&all, &lying, run, zero);
    let of_servers = of_servers(&plain);
    let server_waits: Vec<String> = plain
        .iter()
        .flat_map(|(_, step)| &step.waits)
        .filter(|wait| is_of_server(wait))
        .map(|wait| wait.event.clone())
        .collect();
    let is_cut = lying.windows == MergedWindows::Shared;
    if lying.has_intervals || is_cut {
        let readings: Vec<PartInput<'_>> = all
            .iter()
            .zip(&voices)
            .zip(&lying.parts)
            .map(|(((part, _, seconds), voice), lies)| PartInput { part, seconds, first: lies.first, voice })
            .collect();
        let (mut shared, mut offset_ns) = (Shared::default(), 0);
        series::gather(&readings, &lying, &server_waits, stop, |at, gathered| {
            let mut interval = gathered.finish(&of_servers);
            (interval.step, interval.offset_ns, interval.warmup) = (index, offset_ns, at < lying.lead);
            offset_ns += interval.duration_ns;
            if is_cut && !interval.warmup {
                shared.add(&interval);
            }
            if lying.has_intervals { each(&interval) } else { Ok(()) }
        })?;
        if is_cut {
            shared.give(&mut step, &plain);
        }
    }
    let merged = MergedStep {
        step: index,
        parts: u32::try_from(all.len()).unwrap_or(u32::MAX),
        windows: lying.windows,
        apart_ns: lying.apart_ns,
        clock_uncertainty_ns: lying.uncertainty_ns,
        has_intervals: lying.has_intervals,
    };
    let notes = notes(&merged, &step, &lying, &plain);
    Ok(Added { step, merged, lying, notes })
}

/// Where the merged window lies, by the clock of part 0 and from the start of the merged run.
fn window(all: &[(&Part, &Step, &[Second])], lying: &Lying, run: &Run, zero: Option<&Part>) -> Window {
    let offset = |part: &Part| align::clock(part, zero).map_or(0, |clock| i128::from(clock.offset_ns()));
    let run_began_ns = run.started_at.0.as_nanosecond() + zero.map_or(0, offset);
    let begins = all.iter().zip(&lying.parts).map(|((part, step, _), lies)| {
        let began_ns = part.run.started_at.0.as_nanosecond() + offset(part);
        began_ns + i128::from(step.window.offset_ns) + i128::from(lies.cut_before_ns) - run_began_ns
    });
    let sum = |from: usize, count: usize| {
        let of_part = |((_, _, seconds), lies): (&(&Part, &Step, &[Second]), &align::PartLying)| -> u64 {
            let from = lies.first + from;
            seconds.get(from..from + count).unwrap_or_default().iter().map(|second| second.duration_ns).sum()
        };
        all.iter().zip(&lying.parts).map(of_part).max().unwrap_or(0)
    };
    let endings = || all.iter().map(|(_, step, _)| step.window.ending);
    let first = endings().next().unwrap_or(Ending::Unknown);
    let has_seconds = lying.count > 0;
    // Where the windows differ by some microseconds, the longest keeps rates from being overstated.
    let duration_ns = match lying.windows {
        MergedWindows::Shared => sum(lying.lead, lying.count),
        _ => all.iter().map(|(_, step, _)| step.window.duration_ns).max().unwrap_or(0),
    };
    Window {
        offset_ns: begins.max().and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0),
        warmup_ns: if has_seconds {
            sum(0, lying.lead)
        } else {
            all.iter().map(|(_, step, _)| step.window.warmup_ns).min().unwrap_or(0)
        },
        duration_ns,
        ending: if endings().all(|ending| ending == first) { first } else { Ending::Unknown },
    }
}

/// A number for each counter that servers keep and not the parts.
fn of_servers(all: &[(&Part, &Step)]) -> Counters {
    let mut known = Counters::default();
    all.iter().flat_map(|(_, step)| &step.servers).for_each(|server| known.add(&server.counters));
    known
}

/// The sum of the parts' whole windows.
fn whole(all: &[(&Part, &Step)], voices: &[Voice], index: u32, label: &str) -> Step {
    let mut merged = Step::new(index, label);
    merged.outcome = all.iter().map(|(_, step)| &step.outcome).fold(Outcome::Completed, Outcome::worse);
    merged.load = load(all);
    merged.generator = generator(all);
    let mut ends: Vec<&NetworkEnd> = Vec::new();
    for (place, ((_, step), voice)) in all.iter().zip(voices).enumerate() {
        let is_first = place == 0;
        let Step {
            index: _,
            label: _,
            load: _,
            level,
            like,
            parameters,
            window: _,
            outcome: _,
            counters,
            operations,
            waits,
            failed_connects,
            outstanding,
            unended,
            process_cpu,
            host_cpu,
            process_io,
            peak_memory_bytes,
            devices,
            servers,
            // They lie beside the part's own run, and one of them for each part would be of the same database.
            own_reports: _,
            // A failure is caused under a load that has no other parts.
            failure: _,
            // Of imported runs only.
            instances: _,
            reported: _,
            tables: _,
            traces,
            host,
            network,
            channels,
            generator: _,
            intervals: _,
            // Each part has a cache of its own, before a part of the touches.
            cache_curve: _,
            // No part measures any: a part alone is no load of its own.
            pulse_test: _,
            size_test: _,
            relief_test: _,
        } = step;
        if is_first {
            (merged.level, merged.like) = (level.clone(), like.clone());
            merged.parameters.clone_from(parameters);
            merged.counters = counters.clone();
            (merged.process_cpu, merged.process_io) = (*process_cpu, *process_io);
        } else {
            merged.parameters.retain(|name, value| parameters.get(name) == Some(value));
            merged.counters = merged.counters.with(counters);
            merged.process_cpu = sum::processor_time(merged.process_cpu, *process_cpu);
            merged.process_io = merged.process_io.zip(*process_io).map(|(mut sum, more)| {
                sum.read_bytes += more.read_bytes;
                sum.write_bytes += more.write_bytes;
                sum
            });
        }
        sum::operations(&mut merged.operations, operations);
        let heard: Vec<WaitStats> = waits.iter().filter(|wait| voice.waits || !is_of_server(wait)).cloned().collect();
        WaitStats::add_to(&mut merged.waits, &heard);
        sum::by_name(&mut merged.failed_connects, failed_connects);
        Outstanding::add_to(&mut merged.outstanding, outstanding);
        if let Some(unended) = unended {
            merged.unended.get_or_insert_default().add(unended);
        }
        // Machines add where they are several.
        if voice.host {
            let is_first_host = !voices.iter().take(place).any(|voice| voice.host);
            merged.host_cpu = if is_first_host { *host_cpu } else { sum::processor_time(merged.host_cpu, *host_cpu) };
        }
        merged.peak_memory_bytes = merged.peak_memory_bytes.max(*peak_memory_bytes);
        sum::devices(&mut merged.devices, devices, voice);
        sum::servers(&mut merged.servers, servers, voice);
        sum::traces(&mut merged.traces, traces, voice);
        if let Some(host) = host {
            sum::host(&mut merged.host, host, voice);
        }
        sum::channels(&mut merged.channels, channels, voice);
        ends.extend(network);
    }
    merged.network = sum::network(&ends);
    sum::settle(&mut merged.counters, &merged.servers, &of_servers(all));
    merged
}

fn load(all: &[(&Part, &Step)]) -> Intensity {
    let loads = || all.iter().map(|(_, step)| &step.load);
    let sessions = loads().map(|load| load.sessions).sum::<Option<u32>>();
    let first = loads().next().cloned().unwrap_or_default();
    let threads =
        first.threads_per_schema.filter(|_| loads().all(|load| load.threads_per_schema == first.threads_per_schema));
    // A schema may be shared by two parts, so that only sessions say how many there are.
    let schemas = sessions.zip(threads).filter(|(sessions, threads)| *threads > 0 && sessions % threads == 0);
    Intensity {
        sessions,
        schemas: schemas.map(|(sessions, threads)| sessions / threads),
        threads_per_schema: threads,
        rate_operations_per_s: loads().map(|load| load.rate_operations_per_s).sum::<Option<f64>>(),
        arrival: first.arrival,
    }
}

/// The load generators of all parts: their work adds, and the worst one's saturation is that of all.
fn generator(all: &[(&Part, &Step)]) -> Option<Generator> {
    let known: Vec<(&Step, &Generator)> =
        all.iter().map(|(_, step)| Some((*step, step.generator.as_ref()?))).collect::<Option<_>>()?;
    let sum = |of: fn(&Generator) -> u64| known.iter().map(|(_, one)| of(one)).sum();
    let all_of = |of: fn(&Generator) -> Option<u64>| known_sum(known.iter().map(|(_, one)| of(one)));
    let lag = |of: fn(&Generator) -> Option<&Histogram>| {
        let lags: Option<Vec<&Histogram>> = known.iter().map(|(_, one)| of(one)).collect();
        lags.map(|lags| {
            let mut sum = Histogram::default();
            lags.into_iter().for_each(|lag| sum.merge(lag));
            sum
        })
    };
    let rate = |step: &Step| {
        let seconds = step.window.duration_ns as f64 / 1e9;
        step.counters.operations.filter(|_| seconds > 0.0).map(|operations| operations as f64 / seconds)
    };
    // As many times what was reached as the part with the least room could have had.
    let ceiling = || {
        let reached: f64 = known.iter().map(|(step, _)| rate(step)).sum::<Option<f64>>()?;
        let room = |(step, one): &(&Step, &Generator)| {
            Some(one.ceiling_operations_per_s? / rate(step).filter(|rate| *rate > 0.0)?)
        };
        let rooms: Vec<f64> = known.iter().map(room).collect::<Option<_>>()?;
        rooms.into_iter().reduce(f64::min).map(|room| room * reached)
    };
    Some(Generator {
        lanes: known.iter().map(|(_, one)| one.lanes).sum(),
        busy_ns: sum(|one| one.busy_ns),
        busiest_share: known.iter().map(|(_, one)| one.busiest_share).fold(0.0, f64::max),
        wanted_share: known.iter().filter_map(|(_, one)| one.wanted_share).reduce(f64::max),
        idle_session_ns: sum(|one| one.idle_session_ns),
        due_operations: all_of(|one| one.due_operations),
        backlog_operations: all_of(|one| one.backlog_operations),
        backlog_ages: lag(|one| one.backlog_ages.as_ref()),
        schedule_lag: lag(|one| one.schedule_lag.as_ref()),
        own_lag: lag(|one| one.own_lag.as_ref()),
        ceiling_operations_per_s: ceiling(),
        // The busiest threads are of different hosts, so that a sum would be of none of them.
        throttled: None,
        stopped_ns: known.iter().filter_map(|(_, one)| one.stopped_ns).max(),
    })
}

/// What the intervals of a window that was cut add up to.
#[derive(Debug, Default)]
struct Shared {
    intervals: u64,
    sum: Interval,
}

impl Shared {
    fn add(&mut self, more: &Interval) {
        let sum = &mut self.sum;
        let is_first = self.intervals == 0;
        self.intervals += 1;
        sum.duration_ns += more.duration_ns;
        sum.counters = if is_first { more.counters.clone() } else { sum.counters.with(&more.counters) };
        sum.process_cpu =
            if is_first { more.process_cpu } else { sum::processor_time(sum.process_cpu, more.process_cpu) };
        sum.response.merge(&more.response);
        for (event, waits) in &more.waits {
            sum.waits.entry(event.clone()).or_default().merge(waits);
        }
        for device in &more.devices {
            match sum.devices.iter_mut().find(|known| known.name == device.name) {
                Some(known) => later(known, device),
                None => sum.devices.push(device.clone()),
            }
        }
        for server in &more.servers {
            match sum.servers.iter_mut().find(|known| known.node == server.node) {
                Some(known) => known.add(server),
                None => sum.servers.push(server.clone()),
            }
        }
        for trace in &more.traces {
            match sum.traces.iter_mut().find(|known| known.is_same_kind(trace)) {
                Some(known) => known.add(trace),
                None => sum.traces.push(TraceStats::clone(trace)),
            }
        }
        match (&mut sum.host, &more.host) {
            (Some(known), Some(more)) => known.add(more),
            (known, more) => *known = known.take().or_else(|| more.clone()),
        }
        NetworkEnd::add_to(&mut sum.network, &more.network);
        ChannelStats::add_to(&mut sum.channels, &more.channels);
    }

    /// Puts it in the place of what the whole windows came to. What intervals do not carry is unknown, or where it is a share or a
    /// lateness that of the whole windows.
    fn give(self, step: &mut Step, all: &[(&Part, &Step)]) {
        let Interval {
            counters,
            waits,
            response,
            process_cpu,
            devices,
            servers,
            traces,
            host,
            network,
            channels,
            duration_ns,
            ..
        } = self.sum;
        step.counters = counters;
        step.counters.settle_page_cache_hits();
        step.operations = operations(step, &response);
        let known = std::mem::take(&mut step.waits);
        let of = |(event, waits)| {
            let wait = known.iter().find(|wait| wait.event == event)?.clone();
            Some(WaitStats { waits, reported: Vec::new(), ..wait })
        };
        step.waits = waits.into_iter().filter_map(of).collect();
        (step.process_cpu, step.host_cpu, step.process_io) = (process_cpu, None, None);
        step.failed_connects.clear();
        (step.devices, step.traces, step.host) = (devices, traces, host);
        // Waits of one of several servers are of windows alone.
        step.servers = servers;
        let facts = std::mem::take(&mut step.network);
        step.network = network;
        // Intervals have no histograms.
        step.channels = channels;
        for end in &mut step.network {
            end.facts = facts.iter().find(|known| known.is_same_end(end)).and_then(|known| known.facts.clone());
        }
        let windows_ns: u64 = all.iter().map(|(_, step)| step.window.duration_ns).sum();
        let share = (duration_ns as f64 * all.len() as f64 / windows_ns.max(1) as f64).min(1.0);
        if let Some(generator) = &mut step.generator {
            generator.busy_ns = (generator.busy_ns as f64 * share) as u64;
            generator.idle_session_ns = (generator.idle_session_ns as f64 * share) as u64;
            (generator.due_operations, generator.backlog_operations) = (None, None);
            generator.backlog_ages = None;
        }
    }
}

/// Operations of a window that was cut: intervals know all kinds together.
fn operations(step: &Step, response: &Histogram) -> Vec<OperationStats> {
    let Some(count) = step.counters.operations else { return Vec::new() };
    let (touches, of_all) = step
        .operations
        .iter()
        .fold((0, 0), |(touches, count), kind| (touches + kind.block_touches, count + kind.count));
    let kind = match step.operations.as_slice() {
        [] => return Vec::new(),
        [only] => only.kind.clone(),
        _ => ALL_KINDS.to_owned(),
    };
    let is_closed = step.load.rate_operations_per_s.is_none();
    vec![OperationStats {
        kind,
        count,
        errors: step.counters.errors.unwrap_or(0),
        block_touches: (touches as f64 * count as f64 / (of_all as f64).max(1.0)).round() as u64,
        // In a closed loop operations are due when they are sent.
        service: if is_closed { response.clone() } else { Histogram::counted(count, None) },
        response: response.clone(),
        // Intervals have no histogram of them.
        failed: Histogram::default(),
        transactions: None,
    }]
}

/// Adds what the same device did after it.
fn later(sum: &mut DeviceStats, more: &DeviceStats) {
    let DeviceStats {
        name: _,
        elapsed_ns,
        reads,
        read_bytes,
        read_time_ns,
        writes,
        write_bytes,
        write_time_ns,
        flushes,
        busy_ns,
        weighted_ns,
    } = more;
    sum.elapsed_ns += elapsed_ns;
    sum.reads += reads;
    sum.read_bytes += read_bytes;
    sum.read_time_ns += read_time_ns;
    sum.writes += writes;
    sum.write_bytes += write_bytes;
    sum.write_time_ns += write_time_ns;
    sum.flushes = sum::both(sum.flushes, *flushes);
    sum.busy_ns += busy_ns;
    sum.weighted_ns += weighted_ns;
}

/// What the reader must know of how the step was added up.
fn notes(merged: &MergedStep, step: &Step, lying: &Lying, all: &[(&Part, &Step)]) -> Vec<String> {
    let label = &step.label;
    let mut notes = Vec::new();
    match merged.windows {
        MergedWindows::Whole => {}
        MergedWindows::Shared => {
            let cut_ns = |lies: &&align::PartLying| lies.cut_before_ns.saturating_add(lies.cut_after_ns);
            let cut = all.iter().zip(&lying.parts).map(|((part, _), lies)| (part.place.number, lies));
            if let Some((number, lies)) = widest(cut, |(_, lies)| cut_ns(lies)) {
                let of_whole = "; kinds of operations are not told apart, and lateness is of whole windows";
                notes.push(format!(
                    "{label}: the window is the {} that all parts share; {} were cut before and {} after it from part {number}, less from others{of_whole}",
                    Nanos(step.window.duration_ns),
                    Nanos(lies.cut_before_ns),
                    Nanos(lies.cut_after_ns)
                ));
            }
        }
        MergedWindows::Apart => notes.push(format!(
            "{label}: the parts' windows do not lie over each other, and there are no intervals to cut them by: counts are exact, rates are not"
        )),
    }
    let apart_ns = merged.apart_ns.unwrap_or(0);
    let off_ns = apart_ns.saturating_add(merged.clock_uncertainty_ns.unwrap_or(0));
    if off_ns > NOTED_APART_NS {
        let share = off_ns as f64 / 1e9 * 100.0;
        notes.push(match merged.has_intervals || lying.count == 0 {
            true => format!("{label}: intervals of the parts lie up to {} apart, so a rate of one second errs by up to {share:.0} %", Nanos(off_ns)),
            false => format!("{label}: intervals of the parts lie up to {} apart, so there are none of the merged run; sums are not touched by that", Nanos(off_ns)),
        });
    }
    if merged.clock_uncertainty_ns.is_none() {
        notes.push(format!(
            "{label}: the clocks of the hosts were not compared with that of part 0; they were taken to agree"
        ));
    }
    notes
}
