//! The server process of a cluster, as its own files and the kernel report on it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::private::{PrivateError, file_error, is_alive, works_in};

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
    fn read(data: &Path) -> Result<Option<Self>, PrivateError> {
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
    /// When that cannot be found out.
    pub(super) fn running(data: &Path) -> Result<Option<Self>, PrivateError> {
        Ok(Self::read(data)?.filter(|found| is_alive(found.pid) && works_in(found.pid, data)))
    }
}

/// Whether the server that was started last on `data` was started by us.
pub(super) fn was_started_by_us(data: &Path) -> bool {
    let options = fs::read_to_string(data.join("postmaster.opts")).unwrap_or_default();
    options.contains(&format!("\"cluster_name={CLUSTER_NAME}\""))
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
        // Our own process lives, and works elsewhere: as if the number had been given to another process.
        for pid in [std::process::id(), 4_194_999] {
            fs::write(&pid_file, format!("{pid}\n")).unwrap();
            assert_eq!(Postmaster::running(data.path()).unwrap(), None, "{pid}");
        }
    }
}
