//! Ways to storage: connections to a server, members of a disk group.

use std::io::{self, Write};

use super::{DURATION_COLUMNS, durations, field, line};
use model::record::Run;

const COUNTS: [&str; 9] = [
    "channels",
    "reads",
    "read_bytes",
    "writes",
    "write_bytes",
    "errors",
    "outstanding_us",
    "most_outstanding",
    "window_us",
];
const KNOWN: [&str; 13] = [
    "queued",
    "queued_us",
    "retries",
    "reconnects",
    "segments_resent",
    "busy_us",
    "rwnd_limited_us",
    "room_commits",
    "resent_writes",
    "resent_bytes",
    "repairs",
    "drops",
    "resynced_bytes",
];

/// One row for each channel of each step.
///
/// # Errors
/// If `out` fails.
pub(super) fn channels(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let times = ["read", "write", "nothing"].map(|work| DURATION_COLUMNS.map(|name| format!("{work}_{name}")));
    let names = ["run", "step", "kind", "of", "within", "name"].into_iter().chain(COUNTS).chain(KNOWN);
    line(out, names.map(str::to_owned).chain(times.into_iter().flatten()))?;
    let us = |ns: u64| (ns as f64 / 1e3).to_string();
    let known = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
    let known_us = |ns: Option<u64>| ns.map_or_else(String::new, us);
    for step in &run.steps {
        for it in &step.channels {
            let names =
                [run.id.as_str(), &step.label, it.kind.name(), &it.of, it.within.as_deref().unwrap_or(""), &it.name];
            let counts = [it.channels.into(), it.reads, it.read_bytes, it.writes, it.write_bytes, it.errors];
            let known = [
                known(it.queued),
                known_us(it.queued_ns),
                known(it.retries),
                known(it.reconnects),
                known(it.segments_resent),
                known_us(it.busy_ns),
                known_us(it.rwnd_limited_ns),
                known(it.room_commits),
                known(it.resent_writes),
                known(it.resent_bytes),
                known(it.repairs),
                known(it.drops),
                known(it.resynced_bytes),
            ];
            let row = names.into_iter().map(field).chain(counts.map(|count: u64| count.to_string()));
            let outstanding = [us(it.outstanding_ns), it.most_outstanding.to_string(), us(step.window.duration_ns)];
            let times = [&it.read, &it.write, &it.nothing].into_iter().flat_map(durations);
            line(out, row.chain(outstanding).chain(known).chain(times))?;
        }
    }
    Ok(())
}
