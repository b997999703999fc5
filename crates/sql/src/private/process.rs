//! The process of a private server, as the kernel reports on it.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::ServerKind;

/// How long a server may take to write out what it holds in memory and end. On slow storage that is minutes; what a
/// server leaves behind that is not given the time, the next one recovers.
pub(super) const FAST_PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to end when it does nothing more than that.
pub(super) const IMMEDIATE_PATIENCE: Duration = Duration::from_secs(30);

/// Whether a process runs; one that has ended and that nobody has asked about yet does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    // See proc(5): the state follows the name, which stands in parentheses and may hold any.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Whether a process may be the server of `data`, if servers of its kind work in that directory. The number may be another's by
/// now; where we may not look, it may be the server.
pub(crate) fn works_in(pid: u32, data: &Path) -> bool {
    match fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(works_in) => data.canonicalize().is_ok_and(|data| data == works_in),
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

/// Ends a server that has no supervisor: asks it to shut down, then to drop everything, and kills it if it does neither.
/// Returns whether it wrote everything out.
pub(crate) fn end(kind: &ServerKind, pid: u32) -> bool {
    let [in_order, at_once] = kind.stop;
    let stages = [(in_order, FAST_PATIENCE), (at_once, IMMEDIATE_PATIENCE), (Signal::KILL, IMMEDIATE_PATIENCE)];
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    for (signal, patience) in stages {
        let begun = Instant::now();
        // A signal that fails found nobody, or somebody who is not ours to end; the loop sees which.
        let _ = kill_process(process, signal);
        while is_alive(pid) && begun.elapsed() < patience {
            thread::sleep(Duration::from_millis(20));
        }
        if !is_alive(pid) {
            return signal == in_order;
        }
    }
    false
}
