//! Parts of a fleet's experiment become one run, added up exactly.
//!
//! The way of a merge:
//!
//! ```text
//! run directories ─▶ Part… ─▶ belong ─▶ align ─▶ sum ─▶ Run, and its intervals one by one
//!                    documents  refuses  windows  series
//! ```
//!
//! What is added and what is not is in `sum`, who saw the same thing twice in `identity`, and how windows are laid over each other in
//! `align`. Documents of all parts are held, packed; of their intervals only those of one instant.

mod align;
mod part;
mod rows;
mod series;
mod step;
mod sum;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use miette::Diagnostic;

use model::record::store::StoreError;
use model::record::{FORMAT, Interval, Merged, Outcome, Run, ServerStats, Step, WaitStats};
use part::widest;

pub use part::{MAX_PARTS, Part};

/// Flags that say which part of a fleet a process is and when it begins, each with a value, and nothing of the load.
const PLACE_FLAGS: [&str; 8] =
    ["--part", "--hosts", "--start-at", "--step-gap", "--meet", "--meet-token-file", "--meet-wait", "--on-part-end"];

/// Parts that belong together, ready to be added up.
#[derive(Debug)]
pub struct Merging {
    parts: Vec<Part>,
    together: Together,
    run: Run,
}

impl Merging {
    /// Looks whether the parts belong together. `id` is the merged run's.
    ///
    /// # Errors
    /// If they do not, or one of them is missing; `wanted` says which of that is let pass.
    pub fn new(mut parts: Vec<Part>, wanted: &MergeOptions, id: impl Into<String>) -> Result<Self, MergeError> {
        parts.sort_by(|one, other| one.order().cmp(&other.order()));
        let together = check_belong(&parts, wanted)?;
        let run = header(&parts, &together, id.into());
        Ok(Self { parts, together, run })
    }

    /// The same under another id.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.run.id);
        self
    }

    /// The merged run before its first step.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Adds everything up. Each merged interval is handed over as soon as it is whole, and not kept.
    ///
    /// # Errors
    /// If parts have no time in common, intervals cannot be read, `each` fails, or `stop` was set.
    pub fn merge<E: From<MergeError>>(
        self,
        stop: &AtomicBool,
        mut each: impl FnMut(&Interval) -> Result<(), E>,
    ) -> Result<Run, E> {
        let Self { parts, together, mut run } = self;
        let mut rows = rows::begin(&parts);
        let mut merged = Merged {
            parts: together.parts,
            configuration: parts.first().map(|part| part.place.configuration.clone()).unwrap_or_default(),
            missing: together.missing,
            forced: together.forced,
            steps: Vec::new(),
        };
        for (index, taken) in (0..).zip(&together.steps) {
            let added = step::add(&parts, taken, index, &run, stop, &mut each)?;
            rows::add(&mut rows, &parts, taken, &added);
            merged.steps.push(added.merged);
            run.notes.extend(added.notes);
            run.steps.push(added.step);
        }
        run.merged = Some(merged);
        run.parts = rows;
        Ok(run)
    }
}

/// What all parts have in common, and of the first one what a run has only one of.
fn header(parts: &[Part], together: &Together, id: String) -> Run {
    let runs = || parts.iter().map(|part| &part.run);
    // `check` refuses nothing at all, so there is a first one.
    let first = parts.first().expect("there are parts");
    let Run { name, tool, load, command, tags, seed, target, environment, like, .. } = first.run.clone();
    let shared = |of: fn(&Run) -> &std::collections::BTreeMap<String, String>| {
        let in_all = |(key, value): &(&String, &String)| runs().all(|run| of(run).get(*key) == Some(value));
        of(&first.run)
            .iter()
            .filter(in_all)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let mut target = target;
    runs().for_each(|run| target.facts.keep_common(&run.target.facts));
    let mut notes = together.notes.clone();
    if runs().any(|run| run.target.address != target.address) {
        notes.push(format!(
            "the parts loaded several targets; `{}` is that of part {}",
            target.address, first.place.number
        ));
    }
    for (note, number) in runs_notes(parts) {
        notes.push(format!("part {number}: {note}"));
    }
    let is_alike =
        |of: fn(&Run) -> &std::collections::BTreeMap<String, String>| shared(of).len() == of(&first.run).len();
    if !is_alike(|run| &run.tags) {
        notes.push("tags that differ between parts are left out".to_owned());
    }
    Run {
        format: FORMAT,
        id,
        name,
        tool,
        load,
        check: None,
        command: without_place(&command),
        started_at: first.run.started_at,
        ended_at: runs().map(|run| run.ended_at).max().flatten(),
        outcome: runs().map(|run| &run.outcome).fold(Outcome::Completed, Outcome::worse),
        tags: if is_alike(|run| &run.tags) { tags } else { shared(|run| &run.tags) },
        seed,
        parameters: shared(|run| &run.parameters),
        target,
        environment,
        notes,
        imported: None,
        part: None,
        like,
        merged: None,
        parts: Vec::new(),
        steps: Vec::new(),
    }
}

/// Each note once, with the number of the first part that has it.
fn runs_notes(parts: &[Part]) -> Vec<(String, u32)> {
    let mut notes: Vec<(String, u32)> = Vec::new();
    for part in parts {
        for note in &part.run.notes {
            if !notes.iter().any(|(known, _)| known == note) {
                notes.push((note.clone(), part.place.number));
            }
        }
    }
    notes
}

/// A command line without the words that only say which part it was.
fn without_place(command: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_value = false;
    for word in command {
        if std::mem::take(&mut is_value) {
            continue;
        }
        let (flag, value) = word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
        match PLACE_FLAGS.contains(&flag) {
            true => is_value = value.is_none(),
            false => words.push(word.clone()),
        }
    }
    words
}

/// What a part says for all that saw the same; the rest of what it says of shared things is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Voice {
    /// Servers that it speaks for.
    nodes: BTreeSet<String>,
    /// Devices that it speaks for, with their names in the merged run.
    devices: BTreeMap<String, String>,
    /// Whether it speaks for its host: processors, and what kernel tracing saw.
    host: bool,
    /// Whether it speaks for the waits that servers timed.
    waits: bool,
    /// What stands before the names of things of its host, where there are several hosts.
    before: String,
}

/// The voice of each part in one step. Of those that saw the same the one with the widest reading speaks, of equals the first.
fn voices(parts: &[(&Part, &Step)]) -> Vec<Voice> {
    let hosts: BTreeSet<&str> = parts.iter().map(|(part, _)| part.host()).collect();
    let mut voices = vec![Voice::default(); parts.len()];
    let numbered = || parts.iter().enumerate();
    for (place, (part, step)) in numbered() {
        let of_host = numbered().filter(|(_, (other, _))| other.host() == part.host());
        let speaker = widest(of_host, |(_, (_, step))| step.window.duration_ns);
        let before = if hosts.len() > 1 { format!("{}:", part.host()) } else { String::new() };
        let nodes = step.servers.iter().filter(|server| {
            let seen = numbered().flat_map(|(at, (other, step))| {
                let same = |candidate: &&ServerStats| node_key(other, candidate) == node_key(part, server);
                step.servers.iter().filter(same).map(move |server| (at, server.elapsed_ns))
            });
            widest(seen, |(_, elapsed_ns)| *elapsed_ns).is_some_and(|(at, _)| at == place)
        });
        let devices = step.devices.iter().filter(|device| {
            let seen = numbered().filter(|(_, (other, _))| other.host() == part.host()).flat_map(|(at, (_, step))| {
                let same = |candidate: &&model::record::DeviceStats| candidate.name == device.name;
                step.devices.iter().filter(same).map(move |device| (at, device.elapsed_ns))
            });
            widest(seen, |(_, elapsed_ns)| *elapsed_ns).is_some_and(|(at, _)| at == place)
        });
        if let Some(voice) = voices.get_mut(place) {
            voice.nodes = nodes.map(|server| server.node.clone()).collect();
            voice.devices = devices.map(|device| (device.name.clone(), format!("{before}{}", device.name))).collect();
            voice.host = speaker.is_some_and(|(at, _)| at == place);
            voice.before = before;
        }
    }
    // Those of one server alone stand in the step: whoever speaks for the first server speaks for them.
    if let Some(first) = voices.iter_mut().find(|voice| !voice.nodes.is_empty()) {
        first.waits = true;
    }
    voices
}

/// A server in the directory of a host, or on its loopback, is another one than that of the same name on another host.
fn node_key<'a>(part: &'a Part, server: &'a ServerStats) -> (&'a str, &'a str) {
    let (host, _) = server.node.rsplit_once(':').unwrap_or((&server.node, ""));
    let is_local = !server.node.contains(|letter: char| letter.is_ascii_alphanumeric())
        || server.node.starts_with(['/', '.', '@'])
        || host.starts_with("127.")
        || ["localhost", "[::1]", "::1"].contains(&host);
    (if is_local { part.host() } else { "" }, &server.node)
}

/// Whether a server timed these waits by its own counters, which everybody's sessions are in. Those that sessions of the load timed
/// one by one are a distribution of ours.
fn is_of_server(wait: &WaitStats) -> bool {
    wait.layer == "server" && wait.waits.is_reported()
}

const FORCE: &str = "`--force` merges them anyway, and marks the result";

/// Why parts did not become one run. Each says which runs it is about.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("there is no part of a fleet to merge")]
    #[diagnostic(help(
        "name the run directories of the parts, or directories that hold them: `plimsoll merge host*/plimsoll-runs`"
    ))]
    NoParts,
    /// A run that was the whole experiment.
    #[error("`{run}` is not a part of a fleet: it has no part number")]
    #[diagnostic(help(
        "only runs that were made with `--part` are merged; `plimsoll compare` holds any runs against each other"
    ))]
    NotAPart {
        /// Its id.
        run: String,
    },
    /// A part number that cannot be.
    #[error("`{run}` cannot be part {number} of {parts}")]
    #[diagnostic(help("parts count from 0: `--part 0/4` to `--part 3/4`; look into its `run.json`"))]
    BadPlace {
        /// Its id.
        run: String,
        /// The number that it says.
        number: u32,
        /// The parts that it says.
        parts: u32,
    },
    /// Two runs are not of one experiment.
    #[error(
        "`{left}` and `{right}` do not belong together: {what} is `{left_value}` in one and `{right_value}` in the other"
    )]
    #[diagnostic(help("{}; {FORCE}", match *what {
        "format" | "version" => "run the same version of the program on all hosts",
        _ => "name the runs of one experiment alone",
    }))]
    Differ {
        /// What differs.
        what: &'static str,
        /// Id of one run.
        left: String,
        /// What it has.
        left_value: String,
        /// Id of the other.
        right: String,
        /// What that has.
        right_value: String,
    },
    /// Two runs are the same part.
    #[error("`{left}` and `{right}` are both part {number}")]
    #[diagnostic(help("give each part a number of its own, and name each run once; {FORCE}"))]
    Twice {
        /// The number.
        number: u32,
        /// Id of one run.
        left: String,
        /// Id of the other.
        right: String,
    },
    /// There is no run of some parts.
    #[error("of {parts} parts {} missing: {}; there is `{run}`", if numbers.len() == 1 { "one is" } else { "some are" }, numbers_in_words(numbers))]
    #[diagnostic(help("name the missing runs too; `--partial` merges what there is, and says what is missing"))]
    Missing {
        /// Parts that there should be.
        parts: u32,
        /// Numbers of those that are not there.
        numbers: Vec<u32>,
        /// Id of a run that is there.
        run: String,
    },
    /// A part did not come to its end.
    #[error("`{run}`, part {number} beside `{other}`, {how}")]
    #[diagnostic(help(
        "`--partial` leaves out what it did not complete; `--force` takes the time that all parts share"
    ))]
    Dead {
        /// Its id.
        run: String,
        /// Its number.
        number: u32,
        /// How it ended, as a predicate.
        how: String,
        /// Id of another part; of one that came to its end, if there is one.
        other: String,
    },
    /// A part ended before a step that others have.
    #[error("`{run}` ended before step `{step}`, which `{other}` has")]
    #[diagnostic(help("`--partial` merges the step without it, and says what is missing"))]
    EndedBefore {
        /// Id of the part.
        run: String,
        /// Label of the step.
        step: String,
        /// Id of a part that has it.
        other: String,
    },
    /// The parts were never under load at the same time.
    #[error("in step `{step}` the windows of `{left}` and `{right}` have no whole interval in common: one ends {} s before the other begins", seconds(*gap_ns))]
    #[diagnostic(help("start the parts together with `--start-at` or `--meet`, and see that the hosts' clocks agree"))]
    NoCommonTime {
        /// Label of the step.
        step: String,
        /// Id of the part whose window ends first.
        left: String,
        /// Id of the part whose window begins last.
        right: String,
        /// From the one to the other, by the clock of part 0; 0 where they overlap by less than an interval.
        gap_ns: u64,
    },
    /// No step is in all parts.
    #[error("no step was measured by all parts, from `{left}` to `{right}`")]
    #[diagnostic(help("look how each of them ended: `plimsoll runs show RUN`"))]
    NoSteps {
        /// Id of the first part.
        left: String,
        /// Id of the last.
        right: String,
    },
    /// A run could not be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Store(#[from] StoreError),
    /// There is no thread to read with.
    #[error("cannot start a thread: {0}")]
    #[diagnostic(help("raise the limit of processes: `ulimit -u`"))]
    Thread(#[source] std::io::Error),
    /// The user wanted an end.
    #[error("the merge was ended early; nothing is kept")]
    Stopped,
}

fn seconds(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e9)
}

/// Numbers in a sentence, runs of them as `3 to 7`.
fn numbers_in_words(numbers: &[u32]) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => spans.push((*number, *number)),
        }
    }
    let words = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    spans.iter().map(words).collect::<Vec<_>>().join(", ")
}

impl MergeError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }
}

/// What is let pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeOptions {
    /// Parts that are missing, or did not come to their end.
    pub missing: Missing,
    /// Runs that do not belong together.
    pub differences: Differences,
}

/// What happens where parts are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Missing {
    /// Nothing is merged.
    #[default]
    Refused,
    /// The rest is merged, and the run says what is missing.
    Noted,
}

/// What happens where runs do not belong together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Differences {
    /// Nothing is merged.
    #[default]
    Refused,
    /// They are merged, and the run is marked.
    Marked,
}

/// What belongs together.
#[derive(Debug)]
struct Together {
    /// Parts that the experiment had.
    parts: u32,
    /// Numbers of those that are not there.
    missing: Vec<u32>,
    /// What was let pass although it does not belong together.
    forced: Vec<String>,
    /// What the reader must know.
    notes: Vec<String>,
    /// Each step, as it lies in the parts that have it.
    steps: Vec<Taken>,
}

/// A step of the merged run: which parts have it, and where.
#[derive(Debug)]
struct Taken {
    label: String,
    /// Places among the parts, and of the step in the part.
    from: Vec<(usize, usize)>,
}

/// Words for what a part has of something.
type Words = fn(&Part) -> String;

/// What has to be equal, in the order in which a difference is reported.
const EQUAL: [(&str, Words); 7] = [
    ("format", |part| part.run.format.to_string()),
    ("version", |part| format!("{} {}", part.run.tool.name, part.run.tool.version)),
    ("workload", |part| part.run.workload().to_string()),
    ("kind of target", |part| part.run.target.kind_name().to_owned()),
    ("number of parts", |part| part.place.parts.to_string()),
    ("seed", |part| part.run.seed.map_or_else(|| "none".to_owned(), |seed| seed.to_string())),
    ("configuration digest", |part| part.place.configuration.clone()),
];

/// Looks whether `parts`, sorted, belong together.
fn check_belong(parts: &[Part], wanted: &MergeOptions) -> Result<Together, MergeError> {
    let Some(first) = parts.first() else { return Err(MergeError::NoParts) };
    let mut forced = Vec::new();
    let mut let_pass = |error: MergeError| match wanted.differences {
        Differences::Refused => Err(error),
        Differences::Marked => {
            forced.push(error.to_string());
            Ok(())
        }
    };
    for part in parts {
        for (what, of) in EQUAL {
            let (left_value, right_value) = (of(first), of(part));
            if left_value != right_value {
                let (left, right) = (first.run.id.clone(), part.run.id.clone());
                let_pass(MergeError::Differ { what, left, left_value, right, right_value })?;
            }
        }
    }
    for pair in parts.windows(2) {
        if let [one, other] = pair
            && one.place.number == other.place.number
        {
            let (left, right) = (one.run.id.clone(), other.run.id.clone());
            let_pass(MergeError::Twice { number: one.place.number, left, right })?;
        }
    }
    let all = parts.iter().map(|part| part.place.parts).max().unwrap_or(0);
    // A damaged document may say any number: what is missing is not counted beyond what there is.
    let missing: Vec<u32> =
        (0..all).filter(|number| parts.binary_search_by_key(number, |part| part.place.number).is_err()).collect();
    if !missing.is_empty() && wanted.missing == Missing::Refused {
        return Err(MergeError::Missing { parts: all, numbers: missing, run: first.run.id.clone() });
    }
    let mut notes = Vec::new();
    if !missing.is_empty() {
        notes.push(format!("of {all} parts there is no run of {}", numbers_in_words(&missing)));
    }
    for part in parts {
        let Some(how) = death(&part.run) else { continue };
        if wanted.missing == Missing::Noted {
            notes.push(format!("part {} {how}: what it did not complete is left out", part.place.number));
            continue;
        }
        let living = parts.iter().find(|other| death(&other.run).is_none());
        let other = living.or_else(|| parts.iter().find(|other| other.run.id != part.run.id)).unwrap_or(part);
        let (run, other) = (part.run.id.clone(), other.run.id.clone());
        let_pass(MergeError::Dead { run, number: part.place.number, how, other })?;
    }
    let steps = steps(parts, wanted, &mut let_pass, &mut notes)?;
    if steps.is_empty() {
        let last = parts.last().unwrap_or(first);
        return Err(MergeError::NoSteps { left: first.run.id.clone(), right: last.run.id.clone() });
    }
    if !forced.is_empty() {
        notes.push("merged with --force although not all of it belongs together".to_owned());
    }
    Ok(Together { parts: all, missing, forced, notes, steps })
}

/// How a run ended that did not come to its end; a user's request is an end.
fn death(run: &Run) -> Option<String> {
    match &run.outcome {
        Outcome::Completed | Outcome::Interrupted => None,
        Outcome::Unfinished => Some("was killed, or has not finished".to_owned()),
        Outcome::Failed { error } => Some(format!("failed ({error})")),
    }
}

/// Whether a step can be added to those of others.
fn is_measured(step: &Step, wanted: &MergeOptions) -> bool {
    // Without its end nobody knows when a window began.
    let has_window = step.window.duration_ns > 0 && step.outcome != Outcome::Unfinished;
    let is_whole = step.outcome == Outcome::Completed || step.outcome == Outcome::Interrupted;
    has_window && (is_whole || wanted.missing == Missing::Refused)
}

/// The steps of the merged run, by their places and labels.
fn steps(
    parts: &[Part],
    wanted: &MergeOptions,
    let_pass: &mut impl FnMut(MergeError) -> Result<(), MergeError>,
    notes: &mut Vec<String>,
) -> Result<Vec<Taken>, MergeError> {
    let longest = part::widest(parts, |part| part.run.steps.len() as u64);
    let Some(longest) = longest else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (at, wanted_step) in longest.run.steps.iter().enumerate() {
        let label = &wanted_step.label;
        let mut taken = Taken { label: label.clone(), from: Vec::new() };
        let mut without: Vec<&Part> = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            match part.run.steps.get(at) {
                Some(step) if step.label != *label => let_pass(MergeError::Differ {
                    what: "label of a step",
                    left: longest.run.id.clone(),
                    left_value: label.clone(),
                    right: part.run.id.clone(),
                    right_value: step.label.clone(),
                })?,
                Some(step) if is_measured(step, wanted) => taken.from.push((place, at)),
                None if part.run.outcome == Outcome::Completed => let_pass(MergeError::Differ {
                    what: "number of steps",
                    left: longest.run.id.clone(),
                    left_value: longest.run.steps.len().to_string(),
                    right: part.run.id.clone(),
                    right_value: part.run.steps.len().to_string(),
                })?,
                _ => without.push(part),
            }
        }
        if let Some(part) = without.first()
            && wanted.missing == Missing::Refused
        {
            let is_whole = |(place, at): &&(usize, usize)| {
                parts
                    .get(*place)
                    .and_then(|part| part.run.steps.get(*at))
                    .is_some_and(|step| step.outcome == Outcome::Completed)
            };
            let whole = taken.from.iter().find(is_whole).and_then(|(place, _)| parts.get(*place));
            if let Some(other) = whole {
                let (run, other) = (part.run.id.clone(), other.run.id.clone());
                let_pass(MergeError::EndedBefore { run, step: label.clone(), other })?;
            } else {
                notes.push(format!("{label} is left out: part {} ended before it was measured", part.place.number));
                continue;
            }
        }
        if !taken.from.is_empty() {
            all.push(taken);
        }
    }
    Ok(all)
}
