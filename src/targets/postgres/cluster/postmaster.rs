//! The server process of a cluster, as its own files and the kernel report on it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::super::error::PostgresError;
use super::files::file_error;

/// How long a server may take to write out what it holds in memory and end. On slow storage that is minutes; what a
/// server leaves behind that is not given the time, the next one recovers.
pub(super) const FAST_PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to end when it does nothing more than that.
pub(super) const IMMEDIATE_PATIENCE: Duration = Duration::from_secs(30);
/// Set on each server that we start, and so reported by `postmaster.opts` and in lists of processes.
pub(super) const CLUSTER_NAME: &str = "plimsoll";

/// What `postmaster.pid` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Postmaster {
    pub(super) pid: u32,
    /// Directory and port of its first socket; none while it starts.
    pub(super) socket: Option<(PathBuf, u16)>,
    /// Whether it takes connections.
    pub(super) is_ready: bool,
}

impl Postmaster {
    /// The lines are those of `pidfile.h` in PostgreSQL's source: process, data directory, start time, port, socket
    /// directory, address, shared memory, status.
    fn parse(text: &str) -> Option<Self> {
        let line = |number: usize| text.lines().nth(number).map(str::trim).filter(|line| !line.is_empty());
        // A server in single-user mode writes its number as a negative one.
        let pid = u32::try_from(line(0)?.parse::<i64>().ok()?.unsigned_abs()).ok().filter(|pid| *pid > 0)?;
        let socket = line(4).zip(line(3).and_then(|port| port.parse().ok()));
        Some(Self {
            pid,
            socket: socket.map(|(directory, port)| (PathBuf::from(directory), port)),
            is_ready: line(7) == Some("ready"),
        })
    }

    /// What the file in `data` says; none without one that can be understood.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn read(data: &Path) -> Result<Option<Self>, PostgresError> {
        let path = data.join("postmaster.pid");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error("read", &path)(error)),
        }
    }

    /// The server that runs on `data`; none after a crash, which leaves the file and no such process.
    ///
    /// # Errors
    /// When that cannot be reported.
    pub(super) fn running(data: &Path) -> Result<Option<Self>, PostgresError> {
        Ok(Self::read(data)?.filter(|found| is_alive(found.pid) && may_work_in(found.pid, data)))
    }
}

/// Whether the server that was started last on `data` was started by us.
pub(super) fn was_started_by_us(data: &Path) -> bool {
    let options = fs::read_to_string(data.join("postmaster.opts")).unwrap_or_default();
    options.contains(&format!("\"cluster_name={CLUSTER_NAME}\""))
}

/// Whether a process runs; one that has ended and that nobody has asked about yet does not.
pub(super) fn is_alive(pid: u32) -> bool {
    // See proc(5): the state follows the name, which stands in parentheses and may hold any.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Whether a process may be the server of `data`, which works in that directory. The number may be another's by now; where
/// we may not look, it may be the server.
fn may_work_in(pid: u32, data: &Path) -> bool {
    match fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(works_in) => data.canonicalize().is_ok_and(|data| data == works_in),
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

/// Ends a server that has no supervisor: asks it to shut down, then to drop everything, and kills it if it does neither.
/// Returns whether it wrote everything out.
pub(super) fn end(pid: u32) -> bool {
    let stages = [(Signal::INT, FAST_PATIENCE), (Signal::QUIT, IMMEDIATE_PATIENCE), (Signal::KILL, IMMEDIATE_PATIENCE)];
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    for (signal, patience) in stages {
        let begun = Instant::now();
        // A signal that fails found nobody, or somebody who is not ours to end; the loop sees which.
        let _ = kill_process(process, signal);
        while is_alive(pid) && begun.elapsed() < patience {
            thread::sleep(Duration::from_millis(20));
        }
        if !is_alive(pid) {
            return signal == Signal::INT;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_own_file_is_read_as_far_as_it_goes() {
        let whole = "4711\n/u01/pg/data\n1700000000\n5432\n/u01/pg/run\n\n  1234567  42\nready   \n";
        let socket = Some((PathBuf::from("/u01/pg/run"), 5432));
        assert_eq!(Postmaster::parse(whole), Some(Postmaster { pid: 4711, socket, is_ready: true }));
        let begun = Postmaster { pid: 4711, socket: None, is_ready: false };
        assert_eq!(Postmaster::parse("4711\n/u01/pg/data\n"), Some(begun.clone()));
        assert_eq!(Postmaster::parse("-4711\n"), Some(begun));
        assert_eq!((Postmaster::parse(""), Postmaster::parse("0\n"), Postmaster::parse("x\n")), (None, None, None));
    }

    #[test]
    fn a_file_that_a_crash_left_is_not_taken_for_a_server() {
        let data = tempfile::tempdir().unwrap();
        let pid_file = data.path().join("postmaster.pid");
        // Our own process lives, and works elsewhere: as if the number had been given anew.
        for pid in [std::process::id(), 4_194_999] {
            fs::write(&pid_file, format!("{pid}\n")).unwrap();
            assert_eq!(Postmaster::running(data.path()).unwrap(), None, "{pid}");
        }
    }
}
