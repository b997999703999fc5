//! `plimsoll io replay`.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;

use super::arguments::{OutputArgs, Storage, VolumeArgs};
use super::volume::{Intended, Prospect};
use crate::cli::arguments::{Seconds, SeedArg};
use crate::cli::dry_run::DryRun;
use crate::cli::exit::{Exit, Failure};
use crate::cli::fleet::{Experiment, Fleet, FleetArgs, Joined};
use crate::cli::live::Steps;
use crate::cli::record::{began, plural};
use crate::cli::recording::Recorded;
use crate::cli::runner::{self, Beginning, Outline};
use crate::cli::timed::Timed;
use crate::cli::{in_turn, limits, say};
use crate::plan::io::Facts;
use crate::plan::replay::{ReplayPlan, ReplayRequest, lap_ns, plan};
use load::StepPlan;
use measure::environment;
use model::config::io::{DepthList, Durable, IoOptions, Pattern, RateRange};
use model::record::{ReplayPlacement, ReplayScale, Timestamp};
use model::trace::TraceKind;
use model::units::{Bytes, Nanos, group_thousands};
use model::workload::replay::ReplayShape;
use trace::replay::{Placement, Region, Replay, Scale, Selection, Survey, moved_hit_points, survey};
use trace::{TraceError, TraceFile, TraceSource};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll io replay monday.trace --path /dev/sdb --destroy sdb
  plimsoll io replay monday.trace --path /u01/test.dat --size 64G --reads-only
  plimsoll io replay monday.trace --path /dev/sdb --destroy sdb \\
    --times 1..8 --limit p99=5ms
  plimsoll io replay monday.trace --times 1,2,4 \\
    --path sim:service=200us,servers=8,clock=simulated

Each request is sent when it was issued, whatever became of earlier ones (open loop). Addresses stay where they were if the \
target is large enough. Else the touched parts are moved together, and if they still do not fit, addresses are folded; the \
report says which. Record a trace with `plimsoll record`; `plimsoll trace convert` makes one of the \
traces of other programs.";

/// What offsets and lengths become multiples of: what most storage has for a block.
const UNIT: &str = "4K";

/// Arguments of `plimsoll io replay`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Trace that `plimsoll record` or `plimsoll trace convert` wrote
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    #[command(flatten)]
    volume: VolumeArgs,

    /// Multiples of the recorded pace, one step each: 1,1.5,2 or 1,2,…,8
    ///
    /// With `..`, as in 1..8, a search finds the highest one that meets every --limit.
    #[arg(long, value_name = "N,N,...", default_value = "1", help_heading = "Load")]
    times: RateRange,

    /// Part of the trace to replay: 5m..15m from its beginning, or 10:00..10:15 UTC
    #[arg(long, value_name = "FROM..TO", help_heading = "Load")]
    window: Option<Window>,

    /// Leave out writes, flushes and discards
    #[arg(long, help_heading = "Load")]
    reads_only: bool,

    /// Send discards as well, to local files and devices (else they are left out)
    ///
    /// A device gets them as they are. In a file they punch holes, which later reads find.
    #[arg(long, conflicts_with = "reads_only", help_heading = "Load")]
    discards: bool,

    /// Let --times send copies at other addresses, at the recorded pace
    ///
    /// Without it, time runs faster. Each copy comes 10 ms after the one before.
    #[arg(long, help_heading = "Load")]
    copies: bool,

    /// Replay the trace so many times, one after the other
    #[arg(long = "loop", value_name = "N", default_value = "1", help_heading = "Load")]
    laps: NonZeroU32,

    /// Send each request when an earlier one ends, at the recorded depth (closed loop)
    ///
    /// It ends with the trace, or after ten times its length.
    #[arg(long, conflicts_with_all = ["times", "copies", "keep_order"], help_heading = "Load")]
    as_fast_as_possible: bool,

    /// Hold back requests that waited for an answer when they were recorded
    ///
    /// These are long sequential streams, such as logs and scans, with one request at a time.
    ///
    /// They keep the time between an answer and the next request, and are never early.
    #[arg(long, help_heading = "Load")]
    keep_order: bool,

    /// Send a recorded device's requests to this path: `sda=/dev/sdx` (repeatable)
    ///
    /// Every device of the trace needs one. `sda=none` leaves a device out.
    ///
    /// Without it, devices lie one behind the other.
    #[arg(long, value_name = "DEVICE=PATH", help_heading = "Storage")]
    map: Vec<Mapped>,

    /// Threads that share the depth
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Load")]
    jobs: NonZeroU32,

    /// Outstanding requests of all jobs together [default: up to 1024]
    ///
    /// It is the maximum. Without it, as many as fall due in 30 s, and as fit in 1 GiB.
    #[arg(long, value_name = "N", help_heading = "Load")]
    depth: Option<NonZeroU32>,

    #[command(flatten)]
    seed: SeedArg,

    #[command(flatten)]
    fleet: FleetArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Where the requests of a device go.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapped {
    device: String,
    /// Absent where they are left out.
    path: Option<PathBuf>,
}

impl FromStr for Mapped {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((device, path)) if !device.is_empty() && !path.is_empty() => {
                Ok(Self { device: device.to_owned(), path: (path != "none").then(|| PathBuf::from(path)) })
            }
            _ => Err(format!("`{text}` is not a device and a path, as in `sda=/dev/sdx`")),
        }
    }
}

/// A part of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    from: Edge,
    to: Edge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// After the beginning.
    After(Nanos),
    /// Seconds after midnight.
    Clock(u64),
}

impl FromStr for Edge {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is neither a time such as `5m` nor an hour such as `10:15`");
        if !text.contains(':') {
            return text.parse::<Seconds>().map(|Seconds(time)| Self::After(time)).map_err(|_| wrong());
        }
        let parts: Vec<u64> = text.split(':').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        match parts[..] {
            [hour, minute] if hour < 24 && minute < 60 => Ok(Self::Clock((hour * 60 + minute) * 60)),
            [hour, minute, second] if hour < 24 && minute < 60 && second < 60 => {
                Ok(Self::Clock((hour * 60 + minute) * 60 + second))
            }
            _ => Err(wrong()),
        }
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").ok_or_else(|| format!("`{text}` has no `..`, as in `5m..15m`"))?;
        Ok(Self { from: from.trim().parse()?, to: to.trim().parse()? })
    }
}

const DAY_NS: u64 = 86_400_000_000_000;

impl Edge {
    /// Nanoseconds after the beginning of a trace.
    fn of(self, began: Option<Timestamp>) -> Option<u64> {
        match self {
            Self::After(time) => Some(time.0),
            Self::Clock(seconds) => {
                let began_ns = u64::try_from(began?.0.as_nanosecond().rem_euclid(i128::from(DAY_NS))).ok()?;
                // The first time that it is so late.
                Some((seconds * 1_000_000_000 + DAY_NS - began_ns) % DAY_NS)
            }
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    runner::run(prepare(arguments)?)
}

/// A replay that is planned and checked, and has touched nothing.
struct Planned<'a> {
    arguments: &'a Arguments,
    storage: Storage,
    asked: IoOptions,
    survey: Survey,
    plan: ReplayPlan,
    steps: Vec<StepPlan<ReplayShape>>,
    joined: Joined,
    prospect: Prospect,
}

fn prepare(arguments: &Arguments) -> Result<Planned<'_>, Failure> {
    let Arguments { trace, volume, times, seed, fleet, output, .. } = arguments;
    let (storage, fleet) = (volume.storage()?, fleet.join()?);
    fleet.refuse_search(Some(times))?;
    if arguments.discards && storage.local().is_empty() {
        let failure = Failure::new("`--discards` needs files or devices of this machine");
        return Err(failure.with_hint("leave it out: discards of the trace are then not sent".to_owned()));
    }
    let selection = selection(arguments)?;
    let survey = survey(trace, &selection, arguments.keep_order).map_err(|error| unreadable(error, trace))?;
    let pattern = match survey.replayed.total() - survey.replayed.of(TraceKind::Read) {
        0 => Pattern::RandRead,
        _ => Pattern::RandRw,
    };
    let block = UNIT.parse()?;
    let asked = IoOptions { durable: Durable::None, ..volume.asked(&storage, pattern, block, DepthList(vec![1])) };
    let prospect = Prospect::look(&storage, &volume.handling, &asked)?;
    let (regions, paths) = regions(arguments, &storage, &survey, &prospect.facts(&asked)?)?;
    if arguments.as_fast_as_possible && fleet.share().parts > 1 {
        let failure = Failure::new("`--as-fast-as-possible` has no parts: each would replay the whole trace");
        return Err(failure.with_hint("replay it on one host, or at its recorded pace".to_owned()));
    }
    if arguments.copies && most(times) > MAX_COPIES {
        let failure = Failure::new(format_args!("`--copies` with `--times {}` is too much", most(times)));
        return Err(failure.with_hint(format!("use at most {MAX_COPIES} copies")));
    }
    let scale = if arguments.copies { Scale::Copies(most(times)) } else { Scale::Pace(1.0) };
    let placement = Placement::choose(&survey, &regions, scale.copies()).map_err(|problem| {
        let target = match paths.get(problem.region) {
            Some(path) => format!("`{}`", path.display()),
            None => "the target".to_owned(),
        };
        let length = Bytes(problem.length_bytes);
        let failure = Failure::new(format_args!("{target} has {length}, too little for this trace"));
        failure.with_hint(format!(
            "give it at least {}",
            Bytes(survey.longest_bytes.next_multiple_of(trace::replay::CHUNK_BYTES).max(trace::replay::CHUNK_BYTES))
        ))
    })?;
    let moved_hit_points = match placement.kind() {
        ReplayPlacement::Folded => {
            moved_hit_points(trace, &selection, &placement).map_err(|error| unreadable(error, trace))?
        }
        ReplayPlacement::AsRecorded | ReplayPlacement::Compact => None,
    };
    let replay = Replay {
        path: trace.clone(),
        lap_ns: lap_ns(&survey, &selection.window_ns),
        selection,
        placement: Arc::new(placement),
        lead_in_ns: 0,
        scale,
        laps: arguments.laps.get(),
        chains: survey.chains.clone().map(Arc::new),
        is_fast: arguments.as_fast_as_possible,
        shared: Arc::default(),
        failure: Arc::default(),
    };
    let ((plan, steps), joined) = fleet.plan(seed.given(), &mut |seed| {
        let plan = plan(
            &request(arguments, &fleet, (seed, moved_hit_points), prospect.clock().is_simulated()),
            &survey,
            &replay,
        )?;
        let steps = plan.steps();
        let experiment = Experiment::new(&plan.head, &steps);
        Ok(((plan, steps), experiment))
    })?;
    limits::check_planned(&output.limits.asked(), &Timed::of_replay(&plan.load))?;
    Ok(Planned { arguments, storage, asked, survey, plan, steps, joined, prospect })
}

/// Copies at most.
const MAX_COPIES: f64 = 1_024.0;

/// The largest multiple.
fn most(times: &RateRange) -> f64 {
    match times {
        RateRange::Each(times) => times.iter().copied().fold(1.0, f64::max),
        RateRange::Between { highest, .. } => *highest,
    }
}

/// Which part of the target each device of the trace has, and the paths of these parts where devices are mapped.
fn regions(
    arguments: &Arguments,
    storage: &Storage,
    survey: &Survey,
    facts: &Facts,
) -> Result<(Vec<Region>, Vec<PathBuf>), Failure> {
    let devices = survey.header.devices.len().max(survey.replayed.extents_bytes.len());
    let devices = 0..u16::try_from(devices).unwrap_or(u16::MAX);
    if arguments.map.is_empty() {
        let (length_bytes, devices) = (facts.capacity_bytes, devices.collect());
        return Ok((vec![Region { begin_bytes: 0, length_bytes, is_part: false, devices }], Vec::new()));
    }
    let paths = storage.paths();
    if facts.volumes.len() != paths.len() {
        let failure = Failure::new("`--map` needs paths that lie one behind the other");
        return Err(failure.with_hint("leave `--stripe`, `--mirror` and `sim:` out".to_owned()));
    }
    let mut regions: Vec<Region> = facts
        .volumes
        .iter()
        .map(|span| Region {
            begin_bytes: span.start,
            length_bytes: span.end - span.start,
            is_part: paths.len() > 1,
            devices: Vec::new(),
        })
        .collect();
    for device in devices {
        let name = survey.header.devices.get(usize::from(device)).map_or("?", |device| device.name.as_str());
        let mapped = arguments.map.iter().find(|mapped| mapped.device == name).ok_or_else(|| {
            let failure = Failure::new(format_args!("`--map` names no path for device `{name}` of the trace"));
            failure.with_hint(format!("add `--map {name}=PATH`, or `--map {name}=none` to leave it out"))
        })?;
        let Some(path) = &mapped.path else { continue };
        let number = paths.iter().position(|known| known == path).ok_or_else(|| {
            let failure = Failure::new(format_args!("`--map {name}={}` names a path that is not used", path.display()));
            failure.with_hint(format!("add `--path {}`", path.display()))
        })?;
        regions[number].devices.push(device);
    }
    let used = regions.into_iter().zip(paths).filter(|(region, _)| !region.devices.is_empty());
    Ok(used.map(|(region, path)| (region, path.clone())).unzip())
}

/// The devices of the trace that the user leaves out.
fn without(arguments: &Arguments) -> Result<BTreeSet<u16>, Failure> {
    if arguments.map.is_empty() {
        return Ok(BTreeSet::new());
    }
    let file = TraceFile::open(&arguments.trace).map_err(|error| unreadable(error, &arguments.trace))?;
    let devices = &file.header().devices;
    let mut without = BTreeSet::new();
    for (number, mapped) in arguments.map.iter().enumerate() {
        let place = devices.iter().position(|device| device.name == mapped.device).ok_or_else(|| {
            let failure = Failure::new(format_args!("the trace has no device `{}`", mapped.device));
            let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).take(8).collect();
            failure.with_hint(format!("it has {}", names.join(", ")))
        })?;
        if arguments.map[..number].iter().any(|other| other.device == mapped.device) {
            let failure = Failure::new(format_args!("`--map` names device `{}` twice", mapped.device));
            return Err(failure.with_hint("name one path for each device".to_owned()));
        }
        if mapped.path.is_none() {
            without.extend(u16::try_from(place).ok());
        }
    }
    Ok(without)
}

/// The error of a trace; one of another program has to be converted.
fn unreadable(error: TraceError, path: &std::path::Path) -> Failure {
    let is_unknown = matches!(error, TraceError::NotRecognised { .. });
    if is_unknown && trace::open(&[path]).is_ok() {
        let failure = Failure::new(format_args!("`{}` is a trace of another program", path.display()));
        return failure
            .with_hint(format!("convert it first: `plimsoll trace convert {} -o NAME.trace`", path.display()));
    }
    error.into()
}

fn selection(arguments: &Arguments) -> Result<Selection, Failure> {
    let window_ns = match arguments.window {
        None => 0..u64::MAX,
        Some(window) => window_of(window, arguments)?,
    };
    let without = without(arguments)?;
    let Arguments { reads_only, discards, .. } = *arguments;
    Ok(Selection { window_ns, reads_only, discards, unit_bytes: 4_096, without })
}

fn window_of(window: Window, arguments: &Arguments) -> Result<Range<u64>, Failure> {
    let file = TraceFile::open(&arguments.trace).map_err(|error| unreadable(error, &arguments.trace))?;
    let since = file.header().began;
    let edges = window.from.of(since).zip(window.to.of(since));
    let (from, to) = edges.ok_or_else(|| {
        let failure = Failure::new("`--window` names an hour, and the trace does not say when it began");
        failure.with_hint("name times from its beginning: `--window 5m..15m`".to_owned())
    })?;
    let length = Nanos(file.end().duration_ns.unwrap_or(file.summary().last_ns + 1));
    if from >= to || from >= length.0 {
        let failure = Failure::new("`--window` has no part of the trace");
        return Err(failure.with_hint(format!("it began at {} and lasts {length}", began(since))));
    }
    Ok(from..to.min(length.0))
}

fn request(
    arguments: &Arguments,
    fleet: &Fleet,
    (seed, moved_hit_points): (u64, Option<f64>),
    is_simulated: bool,
) -> ReplayRequest {
    ReplayRequest {
        times: arguments.times.clone(),
        is_fast: arguments.as_fast_as_possible,
        scale: if arguments.copies { ReplayScale::Copies } else { ReplayScale::Pace },
        jobs: arguments.jobs.get(),
        depth: arguments.depth.map(NonZeroU32::get),
        tags: arguments.output.keeping.tags.clone(),
        seed,
        share: fleet.share(),
        is_simulated,
        moved_hit_points,
        available_memory: if is_simulated { None } else { environment::available_memory() },
    }
}

impl<'a> runner::Work<'a> for Planned<'a> {
    fn outline(&self) -> Outline<'a> {
        let output = &self.arguments.output;
        let outline = match &self.arguments.times {
            RateRange::Each(_) => Outline::new(&self.plan.head, &output.keeping, Steps::of(&self.steps)),
            times @ RateRange::Between { .. } => {
                Outline::of_rates(&self.plan.head, &output.keeping, Some(times), 0, self.plan.longest())
            }
        };
        Outline {
            joined: Some(self.joined.clone()),
            limits: output.limits.asked(),
            is_simulated: self.prospect.clock().is_simulated(),
            ..outline
        }
    }

    fn described(self) -> Result<DryRun, Failure> {
        let Self { arguments, plan, steps, prospect, survey, .. } = self;
        let load = &plan.load;
        let described = DryRun::named(&plan.head.name)
            .facts("path", prospect.members().iter().map(|(path, bytes)| format!("{} of {bytes}", path.display())));
        let kinds: Vec<String> = TraceKind::ALL
            .into_iter()
            .filter(|kind| survey.replayed.of(*kind) > 0)
            .map(|kind| format!("{} {}", group_thousands(survey.replayed.of(kind) as f64), plural(kind)))
            .collect();
        let described = prospect
            .describe_fills(described)
            .fact("trace", format_args!("{} in {}: {}", load.trace, load.duration_ns, kinds.join(", ")))
            .fact("began", began(load.began))
            .fact("addresses", format_args!("{}, {} are touched", load.placement.name(), Bytes(plan.region_bytes)))
            .fact("seed", plan.head.seed)
            .settings(&plan.head.tags, &plan.head.parameters);
        let described =
            notes(&plan, &survey, steps.len()).into_iter().fold(described, |it, note| it.fact("note", note));
        let unit = if arguments.copies { "copies" } else { "times its pace" };
        Ok(described.rates(Some(&arguments.times), unit, plan.longest(), &steps, |step| {
            let slots = step.load.slots();
            match step.load.rate_operations_per_s {
                Some(rate) => format!("{} requests/s on average, at most {slots} outstanding", group_thousands(rate)),
                None => format!("{slots} outstanding"),
            }
        }))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let Self { arguments, storage, asked, plan, steps, prospect, survey, .. } = self;
        let output = &arguments.output;
        let (clock, verbosity) = (prospect.clock(), output.keeping.progress.verbosity());
        let (region_bytes, largest_bytes) = (plan.region_bytes, plan.largest_bytes);
        let intended = Intended { region_bytes, largest_bytes, seed: plan.head.seed };
        let opened = prospect.open(&asked, intended, clock, beginning.interrupt, verbosity)?;
        if survey.replayed.of(TraceKind::Discard) > 0 {
            opened
                .check_discards()
                .map_err(|failure| failure.with_hint("leave `--discards` out, and discards are not sent".to_owned()))?;
        }
        let landing = opened.landing(clock, Bytes(asked.block.bytes().into()), region_bytes, storage.local());
        let mut recording = beginning.record(landing)?;
        notes(&plan, &survey, steps.len()).into_iter().for_each(|note| recording.note(note));
        let limits = output.limits.asked();
        let mut step_at = |index, per_s| Some(plan.step_at(index, per_s));
        let wanted = in_turn::run_rates(
            &mut recording,
            Some(&plan.rates()),
            &steps,
            &limits,
            &mut step_at,
            &mut |recording, step| recording.step(opened.target(), step),
        );
        opened.note_of_the_load().into_iter().for_each(|note| recording.note(note));
        if let Some(why) = plan.failure() {
            say::error(format_args!("the trace could not be read to its end: {why}"));
            recording.note(format!("the trace could not be read to its end, so requests are missing: {why}"));
            recording.cut_short();
        }
        drop(opened);
        Ok(recording.end(wanted))
    }
}

/// Names of the devices that are left out.
fn replay_devices_left_out<'a>(plan: &'a ReplayPlan, survey: &'a Survey) -> impl Iterator<Item = &'a str> {
    let without = plan.without().iter();
    without.filter_map(|device| survey.header.devices.get(usize::from(*device))).map(|device| device.name.as_str())
}

/// What the user has to know of what becomes of the requests.
///
/// A search has no steps yet, and more than one.
fn notes(plan: &ReplayPlan, survey: &Survey, steps: usize) -> Vec<String> {
    let load = &plan.load;
    let count = |number: u64| group_thousands(number as f64);
    let mut notes: Vec<String> = survey.end.notes.iter().map(|note| format!("the trace: {note}")).collect();
    if survey.left_out > 0 {
        notes.push(format!(
            "{} requests without bytes or whole blocks, or longer than 4 GiB, are left out",
            count(survey.left_out)
        ));
    }
    if load.fua_writes > 0 {
        notes.push(format!("{} FUA writes are sent as a write and a flush after it", count(load.fua_writes)));
    }
    if load.discards > 0 {
        notes.push(format!("discards of the trace that are not sent: {}", count(load.discards)));
    }
    if survey.replayed.of(TraceKind::Discard) > 0 && (steps != 1 || load.laps > 1) {
        notes.push(
            "discards leave ranges without data: storage may answer reads of them faster the second time".to_owned(),
        );
    }
    if load.lengthened > 0 {
        notes.push(format!("{} requests were not multiples of {UNIT} and are rounded to them", count(load.lengthened)));
    }
    if let Some(chained) = load.chained {
        notes.push(match chained.streams {
            0 => "no stream of the trace waited for its answers, so `--keep-order` holds back nothing".to_owned(),
            _ => format!(
                "{} requests of {} streams waited for the one before, and do so again",
                count(chained.requests),
                count(chained.streams.into())
            ),
        });
    }
    let left_out: Vec<&str> = replay_devices_left_out(plan, survey).collect();
    if !left_out.is_empty() {
        notes.push(format!("requests of {} are left out", left_out.join(", ")));
    }
    if load.laps > 1 {
        notes.push(format!("the trace is replayed {} times, one after the other", load.laps));
    }
    if load.scale == ReplayScale::Copies {
        notes.push("multiples are copies at other addresses, each 10 ms behind the one before".to_owned());
    }
    let shared = load.shared_pct.map_or_else(|| "an unknown share".to_owned(), |pct| format!("{pct:.1} %"));
    match load.placement {
        ReplayPlacement::AsRecorded => {}
        ReplayPlacement::Compact => notes.push(format!(
            "the trace{} spans more than the target: its touched parts are moved together to {}. Their order is kept",
            if load.scale == ReplayScale::Copies { " with its copies" } else { "" },
            Bytes(plan.region_bytes)
        )),
        ReplayPlacement::Folded => notes.push(format!(
            "the trace touches more than the target has: addresses are folded into {}. {shared} of the touched parts share \
             their place{}",
            Bytes(plan.region_bytes),
            load.moved_hit_points.map_or_else(String::new, |points| format!(
                ", which moves the hit ratios of caches below by up to {points:.1} points"
            ))
        )),
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_read_as_times_or_hours() {
        let window: Window = "5m..15m".parse().unwrap();
        assert_eq!((window.from.of(None), window.to.of(None)), (Some(300_000_000_000), Some(900_000_000_000)));
        let began = "2026-11-30T09:50:00Z".parse().ok().map(Timestamp);
        let clock: Window = "10:00..00:10:30".parse().unwrap();
        assert_eq!(clock.from.of(began), Some(600_000_000_000));
        assert_eq!(clock.to.of(began), Some((14 * 60 + 20) * 60_000_000_000 + 30_000_000_000));
        assert_eq!(clock.from.of(None), None);
        for wrong in ["5m", "5m..", "25:00..26:00", "x..y", "10:60..11:00"] {
            assert!(wrong.parse::<Window>().is_err(), "{wrong}");
        }
    }
}
