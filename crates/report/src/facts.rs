//! What was run, where and when.

use std::collections::BTreeMap;

use super::sections::{fleet, servers};
use super::text::Detail;
use analysis::{Expected, Tagged, Vocabulary, is_host_load, is_on_servers, tagged_platform};
use model::config::PARAMETERS;
use model::platforms::Catalogue;
use model::record::{
    ArrayState, BlockDevice, Clock, Environment, GroupLimit, Imported, NvmeState, Outcome, PathState, PoolState, Run,
    Workload,
};
use model::units::{Bytes, Nanos, group_thousands, shell_command};

/// Name of the command line among the facts.
pub(super) const COMMAND: &str = "Command";
const NOTE: &str = "Note";

/// What is known of a run and its surroundings, each with its name, in the order in which it is to be read.
pub(super) fn facts(run: &Run, detail: Detail) -> Vec<(&'static str, String)> {
    let name = Some(run.name.clone()).filter(|name| !name.is_empty());
    let mut facts = vec![("Run", join([Some(run.id.clone()), name]))];
    facts.push(("Imported", run.imported.as_ref().map(files).unwrap_or_default()));
    facts.extend([("Made", made(run)), (COMMAND, shell_command(&run.command)), ("Load", load(run, detail))]);
    facts.push(("Parts", fleet::fact(run)));
    if is_on_servers(run) {
        let (reported, settings) = servers::facts(run, detail);
        facts.extend([("Target", target(run, &reported)), ("Settings", settings)]);
    } else {
        facts.push(("Target", target(run, &pairs(&run.target.facts.shown()))));
    }
    facts.extend([("Tags", pairs(&run.tags)), expected(run), ("Machine", machine(&run.environment))]);
    facts.push(("Storage", storage(&run.environment)));
    facts.extend(run.notes.iter().map(|note| ("Note", note.clone())));
    facts.retain(|(_, text)| !text.is_empty());
    facts
}

/// The same on one screen: which run, the command that says what was asked, and what load came of it on what.
pub(super) fn brief(run: &Run) -> Vec<(&'static str, String)> {
    let name = Some(run.name.clone()).filter(|name| !name.is_empty());
    let shape = load(run, Detail::Full);
    let shape = shape.split_once(": ").map_or(shape.as_str(), |(shape, _)| shape).to_owned();
    let tags = Some(pairs(&run.tags)).filter(|tags| !tags.is_empty());
    let mut facts = vec![("Run", join([Some(run.id.clone()), name, tags])), ("Command", run.command.join(" "))];
    let of_target = match is_on_servers(run) {
        true => servers::facts(run, Detail::Brief).0,
        // How requests went is a part of what was measured; an engine's own facts are many.
        false if Vocabulary::of(run) == Vocabulary::Requests => pairs(&run.target.facts.shown()),
        false => String::new(),
    };
    facts.extend([("Load", shape), ("Target", target(run, &of_target))]);
    // What is expected stands in the answer.
    facts.extend(Some(expected(run)).filter(|(name, _)| *name == NOTE));
    facts.extend(run.notes.iter().map(|note| ("Note", note.clone())));
    facts.retain(|(_, text)| !text.is_empty());
    facts
}

/// What the platform that the tags name should reach, beside what was measured; a note where they nearly name one.
fn expected(run: &Run) -> (&'static str, String) {
    match tagged_platform(run, Catalogue::in_reports()) {
        Tagged::Nothing => ("Expected", String::new()),
        Tagged::Nearly(note) => (NOTE, note),
        Tagged::Platform(platform) => {
            let expected = Expected::of_run(run, &platform);
            let words = expected.and_then(|expected| Some((expected.words(&platform)?, expected.step)));
            let text = words.map(|(words, step)| format!("{words} ({step}, {})", platform.name()));
            ("Expected", text.unwrap_or_default())
        }
    }
}

/// The parts that are known, with commas between them.
fn join(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn pairs(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn made(run: &Run) -> String {
    let began = run.started_at.0;
    let took = run.ended_at.map(|ended| Nanos::from(ended.0.duration_since(began).unsigned_abs()));
    let outcome = match &run.outcome {
        Outcome::Unfinished => "not finished",
        Outcome::Completed => "completed",
        Outcome::Interrupted => "ended early",
        Outcome::Failed { .. } => "failed",
    };
    join([
        Some(
            format!("{} {} by {} {}", began.strftime("%Y-%m-%d %H:%M:%S"), clock(run), run.tool.name, run.tool.version)
                .trim_end()
                .to_owned(),
        ),
        took.map(|took| format!("took {took}")),
        Some(outcome.to_owned()),
    ])
}

/// What the times of a run are reported in.
pub(super) fn clock(run: &Run) -> &'static str {
    match run.imported.as_ref().map(|imported| imported.clock) {
        None | Some(Clock::Utc) => "UTC",
        Some(Clock::Wall) => "by the clock there (its zone is not reported)",
        Some(Clock::FileTime) => "UTC (last change of the file, which reports no time)",
    }
}

/// The files that a run was imported from.
fn files(imported: &Imported) -> String {
    imported.files.iter().map(|file| format!("{} ({})", file.path, file.kind)).collect::<Vec<_>>().join(", ")
}

fn load(run: &Run, detail: Detail) -> String {
    let measured = run.steps.iter().filter(|step| step.window.duration_ns > 0);
    let windows = measured.map(|step| Nanos(step.window.duration_ns));
    let windows = match (windows.clone().min(), windows.max()) {
        (Some(shortest), Some(longest)) if shortest.to_string() == longest.to_string() => {
            Some(format!("windows of {longest}"))
        }
        (Some(shortest), Some(longest)) => Some(format!("windows of {shortest} to {longest}")),
        _ => None,
    };
    let steps = if run.steps.len() == 1 { "1 step".to_owned() } else { format!("{} steps", run.steps.len()) };
    let shape = join([
        Some(run.workload().to_string()),
        Some(steps),
        range(run),
        windows,
        run.seed.map(|seed| format!("seed {seed}")),
    ]);
    let is_shown = |(name, value): &(&String, &String)| detail == Detail::Full || !is_at_default(run, name, value);
    let shown = run.parameters.iter().filter(is_shown).map(|(name, value)| (name.clone(), value.clone())).collect();
    let shown = pairs(&shown);
    if shown.is_empty() { shape } else { format!("{shape}: {shown}") }
}

/// What requests are by default.
const REQUESTS: [(&str, &str); 4] =
    [("BLOCK_SIZE", "8K"), ("JOBS", "1"), ("READ_PCT", "100"), ("DISTRIBUTION", "uniform")];

/// Whether a parameter of ours is at its default.
fn is_at_default(run: &Run, name: &str, value: &str) -> bool {
    if run.imported.is_some() {
        return false;
    }
    match run.workload() {
        Workload::Io => REQUESTS.contains(&(name, value)),
        Workload::Slob => PARAMETERS.iter().any(|known| known.name == name && known.default == value),
        _ => false,
    }
}

/// From the least load to the largest.
fn range(run: &Run) -> Option<String> {
    let sessions = run.steps.iter().filter_map(|step| step.load.sessions);
    let (least, most) = (sessions.clone().min()?, sessions.max()?);
    let words = Vocabulary::of(run);
    if words == Vocabulary::Requests {
        let rates = || run.steps.iter().filter_map(|step| step.load.rate_operations_per_s);
        if let (Some(lowest), Some(highest)) = (rates().reduce(f64::min), rates().reduce(f64::max)) {
            let from = if lowest < highest { format!("{} to ", group_thousands(lowest)) } else { String::new() };
            let at_most = words.closed_load(most);
            return Some(format!("{from}{}, at most {at_most}", words.rate(highest)));
        }
    }
    let from = if least < most { format!("{least} to ") } else { String::new() };
    if is_host_load(run) {
        return Some(if most == 1 { "1 processor".to_owned() } else { format!("{from}{most} processors") });
    }
    Some(match words {
        Vocabulary::Sessions if most == 1 => "1 session".to_owned(),
        Vocabulary::Sessions => format!("{from}{most} sessions"),
        Vocabulary::Users if most == 1 => "1 user".to_owned(),
        Vocabulary::Users => format!("{from}{most} users"),
        Vocabulary::Requests => format!("{from}{most} outstanding"),
    })
}

fn target(run: &Run, facts: &str) -> String {
    let target = &run.target;
    let bytes = |bytes: Option<u64>, what: &str| bytes.map(|bytes| format!("{} {what}", Bytes(bytes)));
    let place = match (target.kind_name(), target.address.as_str()) {
        (kind, "") => kind.to_owned(),
        ("", address) => address.to_owned(),
        (kind, address) => format!("{kind} at {address}"),
    };
    let known = join([
        Some(place).filter(|place| !place.is_empty()),
        bytes(target.data_bytes, "of data"),
        bytes(target.block_bytes, "blocks"),
        bytes(target.cache_bytes, "of cache"),
    ]);
    if facts.is_empty() { known } else { format!("{known}; {facts}") }
}

fn machine(environment: &Environment) -> String {
    join([
        environment.hostname.clone(),
        environment.cpu_model.clone(),
        environment.cpus.map(|cpus| format!("{cpus} processor{}", if cpus == 1 { "" } else { "s" })),
        environment.cpu_governor.as_ref().map(|governor| format!("governor {governor}")),
        environment.memory_bytes.map(|bytes| format!("{} of memory", Bytes(bytes))),
        environment.memory_limit_bytes.map(|bytes| format!("limited to {}", Bytes(bytes))),
        environment.os.clone(),
        environment.kernel.as_ref().map(|kernel| format!("kernel {kernel}")),
        environment.architecture.clone(),
        environment.virtualization.as_ref().map(|kind| format!("on {kind}")),
        environment.clocksource.as_ref().map(|clock| format!("clock {clock}")),
    ])
}

fn storage(environment: &Environment) -> String {
    let file_system = environment.file_system.as_ref().map(|file_system| {
        format!(
            "{} on {} from {} ({})",
            file_system.kind, file_system.mount_point, file_system.source, file_system.options
        )
    });
    let devices = environment.devices.iter().map(device);
    let limits = environment.group_limits.iter().filter(|limit| limit.device.is_some()).map(GroupLimit::words);
    file_system.into_iter().chain(devices).chain(limits).collect::<Vec<_>>().join("; ")
}

/// Words that say something.
fn said(words: String) -> Option<String> {
    Some(words).filter(|words| !words.is_empty())
}

fn device(device: &BlockDevice) -> String {
    let name = match &device.model {
        Some(model) => format!("{} ({model})", device.name),
        None => device.name.clone(),
    };
    let pool = |pool: &PoolState| join([Some(format!("thin pool {}", pool.words())), said(pool.used())]);
    join([
        Some(name),
        device.size_bytes.map(|bytes| Bytes(bytes).to_string()),
        device.rotational.map(|spins| if spins { "rotational" } else { "not rotational" }.to_owned()),
        device.scheduler.as_ref().map(|scheduler| format!("scheduler {scheduler}")),
        device.queue_requests.map(|requests| format!("queue of {requests}")),
        device.read_ahead_bytes.map(|bytes| format!("read-ahead {}", Bytes(bytes))),
        device.write_cache.clone(),
        device.array.as_ref().map(ArrayState::words).and_then(said),
        device.paths.as_ref().map(PathState::words),
        device.pool.as_ref().map(pool),
        device.nvme.as_ref().map(NvmeState::words).and_then(said),
        device.nvme.as_ref().map(NvmeState::health).and_then(said),
        (device.layer.as_deref() == Some("snapshot")).then(|| "keeps old blocks for a snapshot".to_owned()),
    ])
}
