//! The command whose result decides what is not known: a load of the demand's own size and mix, on the same storage.

use super::super::{LatencyTarget, Subject};
use super::{Demand, Platform};
use model::record::{Metric, Run, Step, TargetKind};

/// Requests are whole units of this size.
const UNIT_BYTES: f64 = 4_096.0;
/// How far beside the demand the two rates lie at least, so that what is drawn at random falls on the side that is meant.
const MARGIN: f64 = 0.01;
/// Length of a window of such a load, in seconds.
const SECONDS: f64 = 60.0;
/// How much more a load of another kind is asked to do, since it is scaled from a level.
const SCALED: f64 = 1.05;
/// A level of the engine is a load like the demand if, made as large, it does at most so many times as much of anything as is asked.
const SAME_LOAD: f64 = 2.0;
/// Flags of `plimsoll io` that say on what storage, and whether a value follows.
const STORAGE_FLAGS: [(&str, bool); 10] = [
    ("--path", true),
    ("--group", true),
    ("--oranfstab", true),
    ("--size", true),
    ("--stripe", true),
    ("--mirror", false),
    ("--engine", true),
    ("--destroy", true),
    ("--destroy-signature", false),
    ("--durable", true),
];
/// Flags of `plimsoll slob` that say on what data, and whether a value follows.
const DATA_FLAGS: [(&str, bool); 4] = [("--target", true), ("--cache", true), ("--conf", true), ("-c", true)];

/// The command for a demand that reports its reads, its writes and their bytes; else no load is known that would be like it.
pub(super) fn command(
    demand: &Demand,
    platform: &Platform,
    run: &Run,
    target: &LatencyTarget,
    decisive: &[Metric],
) -> Option<String> {
    engine_load(demand, platform, run, target, decisive).or_else(|| raw_load(demand, run, target, decisive))
}

/// Two rates of requests of the demand's size and mix: all that is asked for is within the larger one, and the smaller one is
/// within what is asked for. Whichever of them meets the target, the answer is known; between them lie a few per cent.
///
/// Reads or writes that decide nothing are not in it: a write a second beside thousands of reads would else set both rates.
fn raw_load(demand: &Demand, run: &Run, target: &LatencyTarget, decisive: &[Metric]) -> Option<String> {
    let rates = &demand.rates;
    let counted = |respect, rate: f64| if decisive.contains(&respect) { rate } else { 0.0 };
    let (reads, writes) = (counted(Metric::Reads, rates.reads?), counted(Metric::Writes, rates.writes?));
    let megabytes = rates.megabytes?;
    let requests = reads + writes;
    if requests <= 0.0 {
        return None;
    }
    let units = (megabytes * 1e6 / requests / UNIT_BYTES).round().max(1.0);
    let bytes = units * UNIT_BYTES;
    let (pattern, read_pct) = match (reads > 0.0, writes > 0.0) {
        (true, true) => ("randrw", (100.0 * reads / requests).round().clamp(1.0, 99.0)),
        (true, false) => ("randread", 100.0),
        _ => ("randwrite", 0.0),
    };
    let needs: Vec<f64> = [(reads, read_pct / 100.0), (writes, 1.0 - read_pct / 100.0), (megabytes, bytes / 1e6)]
        .into_iter()
        .filter(|(_, of_each)| *of_each > 0.0)
        .map(|(asked, of_each)| asked / of_each)
        .collect();
    let rarer = [reads, writes].into_iter().filter(|rate| *rate > 0.0).fold(f64::INFINITY, f64::min);
    let margin = MARGIN.max(3.0 / (rarer * SECONDS).sqrt());
    let most = (needs.iter().copied().fold(0.0, f64::max) * (1.0 + margin)).ceil().max(1.0);
    let least = (needs.iter().copied().fold(f64::INFINITY, f64::min) * (1.0 - margin)).floor();
    let rate = if least >= 1.0 && least < most { format!("{least},{most}") } else { format!("{most}") };
    let mut words = vec!["plimsoll io sweep".to_owned(), storage(run)];
    words.push(format!("--pattern {pattern} --block-size {}K", units * UNIT_BYTES / 1024.0));
    if pattern == "randrw" {
        words.push(format!("--read-pct {read_pct}"));
    }
    words.push(format!("--rate {rate} --duration {SECONDS} --limit {}", shell_word(&limit(target))));
    Some(words.join(" "))
}

/// On which storage: what the run itself was reported, else the file or device that it names, else a file beside an engine's data.
fn storage(run: &Run) -> String {
    let address = run.target.address.as_str();
    let is_ours = run.imported.is_none();
    let words = if is_ours && is_command(run, "io") { kept(&run.command, &STORAGE_FLAGS) } else { Vec::new() };
    let beside = address.strip_prefix("dir:").filter(|_| is_ours);
    match beside {
        _ if words.iter().any(|word| word.starts_with("--path") || word.starts_with("--group")) => words.join(" "),
        Some(directory) => {
            let path = shell_word(&format!("{}/plimsoll-fit.dat", directory.trim_end_matches('/')));
            let size = run.target.data_bytes.map_or(16 << 30, |bytes| bytes.max(1 << 30));
            format!("--path {path} --size {}M", size.div_ceil(1 << 20))
        }
        None if address.starts_with('/') || address.starts_with("sim:") => format!("--path {}", shell_word(address)),
        None => "--path PATH".to_owned(),
    }
}

/// The load of a level of the engine's own, as much more of it as makes all that is asked for; none where the level did nothing of
/// something that is.
fn engine_load(
    demand: &Demand,
    platform: &Platform,
    run: &Run,
    target: &LatencyTarget,
    decisive: &[Metric],
) -> Option<String> {
    let is_engine = run.imported.is_none() && run.target.kind == Some(TargetKind::Embedded) && is_command(run, "slob");
    let asks_commits = demand.rates.commits.is_some_and(|rate| rate > 0.0) && decisive.contains(&Metric::Commits);
    if !is_engine || !asks_commits {
        return None;
    }
    let scaled = platform.levels.iter().rev().find_map(|level| {
        let step = run.steps.iter().find(|step| step.label == level.label)?;
        let of_each = |respect: &Metric| {
            let done = level.rates.of(*respect).filter(|done| *done > 0.0)?;
            Some(demand.rates.of(*respect)? / done)
        };
        let times: Vec<f64> = decisive.iter().map(of_each).collect::<Option<_>>()?;
        let (most, least) = (times.iter().copied().fold(0.0, f64::max), times.iter().copied().fold(f64::MAX, f64::min));
        let operations = super::super::Figures(step).operations_per_s().filter(|rate| *rate > 0.0)?;
        Some((step, operations * most * SCALED, most <= SAME_LOAD * least))
    });
    let (step, rate, is_same_load): (&Step, f64, bool) = scaled?;
    if !is_same_load {
        return check_like(demand, run);
    }
    let mut words = vec!["plimsoll slob run".to_owned()];
    words.extend(kept(&run.command, &DATA_FLAGS));
    words.push(format!("-s {} -t {}", step.load.schemas?, step.load.threads_per_schema?));
    words.extend(
        run.command.iter().filter(|word| is_parameter(word) && !is_varied(word, step)).map(|it| shell_word(it)),
    );
    words.extend(step.parameters.iter().map(|(key, value)| shell_word(&format!("{key}={value}"))));
    words.push(format!("RUN_TIME={SECONDS} --rate {:.0} --limit {}", rate.ceil().max(1.0), shell_word(&limit(target))));
    Some(words.join(" "))
}

/// The demand's own mix of reads and commits, where the level's, however much of it, would ask for many times too much of one of
/// them. Its answer is that of a check, which has limits of its own.
fn check_like(demand: &Demand, run: &Run) -> Option<String> {
    let like = &demand.window.as_ref()?.run;
    Some(format!("plimsoll check --like {} --for 10m {}", shell_word(like), shell_word(&run.target.address)))
}

/// What is judged on our own storage: operations, unless the user named something.
fn limit(target: &LatencyTarget) -> String {
    let time = match target.limit.0 {
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns => format!("{}us", ns as f64 / 1e3),
    };
    let value = format!("{}={time}", target.quantile_name());
    match &target.subject {
        None => value,
        Some(Subject::Event(event)) => format!("{event}:{value}"),
        Some(Subject::Response(kind)) => format!("{}:{value}", named(kind.as_deref(), "response")),
        Some(Subject::Service(kind)) => format!("{}:{value}", named(kind.as_deref(), "service")),
    }
}

fn named(kind: Option<&str>, time: &str) -> String {
    kind.map_or_else(|| time.to_owned(), |kind| format!("{kind} {time}"))
}

fn is_command(run: &Run, name: &str) -> bool {
    run.command.get(1).is_some_and(|word| word == name)
}

fn is_parameter(word: &str) -> bool {
    word.split_once('=').is_some_and(|(key, _)| {
        key != "RUN_TIME" && !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    })
}

fn is_varied(word: &str, step: &Step) -> bool {
    word.split_once('=').is_some_and(|(key, _)| step.parameters.contains_key(key))
}

/// Of a command those flags, with their values.
fn kept(command: &[String], flags: &[(&str, bool)]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = command.iter();
    while let Some(word) = words.next() {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        let Some((_, has_value)) = flags.iter().find(|(flag, _)| *flag == name) else { continue };
        kept.push(shell_word(word));
        if *has_value && !word.contains('=') {
            kept.extend(words.next().map(|value| shell_word(value)));
        }
    }
    kept
}

/// A word as a shell reads it back.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
