//! A server whose processes run on this machine.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Client;

use super::connect::Connector;
use crate::ServerError;
use crate::ending::on_own_runtime;
use measure::os::{Root, proc, ticks_per_second};

/// How far two clocks of one machine may distinguish the age of a process: a tick, and the way of the answer.
const AGE_TOLERANCE: Duration = Duration::from_secs(1);

/// A server whose processes run on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// The process whose children all others are.
    pub postmaster_pid: u32,
    /// Where its data are, if that is known.
    pub data_directory: Option<PathBuf>,
}

/// The server's side of a connection, as the server reports it.
#[derive(Debug, Clone)]
pub(super) struct Backend {
    /// Its process number there.
    pub(super) pid: u32,
    /// How old it is.
    pub(super) age: Duration,
    /// Port of our side; `None` for a socket file.
    pub(super) client_port: Option<u16>,
}

impl LocalServer {
    /// Server number `node`, if it runs here and its processes can be seen. Connects for that, on a runtime of its own.
    ///
    /// # Errors
    /// When the server cannot be connected to or asked.
    pub fn find(connector: &Connector, node: usize) -> Result<Option<Self>, ServerError> {
        on_own_runtime(async {
            let connected = connector.connect(node).await?;
            let found = Self::of_client(&connected.client).await;
            found.map_err(|error| connected.error("find the server's process", &error))
        })
    }

    /// The server that a connection leads to.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub(super) async fn of_client(client: &Client) -> Result<Option<Self>, tokio_postgres::Error> {
        let row = client
            .query_one(
                "SELECT pg_backend_pid(), inet_client_port(), \
                 extract(epoch FROM clock_timestamp() - backend_start)::float8 \
                 FROM pg_catalog.pg_stat_get_activity(pg_backend_pid())",
                &[],
            )
            .await?;
        let age_s = row.get::<_, Option<f64>>(2).and_then(|age_s| Duration::try_from_secs_f64(age_s).ok());
        let pid = u32::try_from(row.get::<_, i32>(0)).ok();
        let Some((age, pid)) = age_s.zip(pid) else { return Ok(None) };
        let client_port = row.get::<_, Option<i32>>(1).and_then(|port| u16::try_from(port).ok());
        Ok(Self::of_backend(&Root::default(), &Backend { pid, age, client_port }, since_boot()))
    }

    /// The server of `backend`, if its processes can be seen below `root`. `since_boot` is the time since this machine was
    /// booted.
    ///
    /// A server in a container has numbers of its own, and one elsewhere has too: another process has its number here, or
    /// none has. So the process must be as old and, by its title, serve this very connection.
    pub(super) fn of_backend(root: &Root, backend: &Backend, since_boot: Duration) -> Option<Self> {
        let Backend { pid, age, client_port } = backend;
        let title = root.text(format!("/proc/{pid}/cmdline"))?;
        let stat = proc::process_stat(&root.text(format!("/proc/{pid}/stat"))?)?;
        let began = Duration::from_secs_f64(stat.start_ticks as f64 / ticks_per_second()? as f64);
        let age_here = since_boot.checked_sub(began)?;
        let client = client_port.map_or("[local]".to_owned(), |port| format!("({port})"));
        if !title.starts_with("postgres:") || !title.contains(&client) || age_here.abs_diff(*age) > AGE_TOLERANCE {
            return None;
        }
        // Readable by the server's own user and by root alone.
        let data_directory = std::fs::read_link(root.path(format!("/proc/{pid}/cwd"))).ok();
        Some(Self { postmaster_pid: stat.parent, data_directory })
    }
}

/// Time since this machine was booted, as the kernel counts the ages of processes.
pub(super) fn since_boot() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // Neither is ever negative, and nanoseconds are below a second.
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const BOOTED: Duration = Duration::from_secs(1_000);

    /// A machine whose process 50 is `title` and began 900 s after it was booted.
    fn machine(title: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let process = directory.path().join("proc/50");
        fs::create_dir_all(&process).unwrap();
        let start = 900 * ticks_per_second().unwrap();
        let stat = format!("50 (postgres) S 41 41 41 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 {start} 0 0");
        fs::write(process.join("stat"), stat).unwrap();
        fs::write(process.join("cmdline"), title).unwrap();
        std::os::unix::fs::symlink("/srv/pg", process.join("cwd")).unwrap();
        directory
    }

    fn found(machine: &tempfile::TempDir, pid: u32, age_s: u64, client_port: Option<u16>) -> Option<LocalServer> {
        let backend = Backend { pid, age: Duration::from_secs(age_s), client_port };
        LocalServer::of_backend(&Root::at(machine.path()), &backend, BOOTED)
    }

    #[test]
    fn a_backend_leads_to_its_server() {
        let server = LocalServer { postmaster_pid: 41, data_directory: Some("/srv/pg".into()) };
        assert_eq!(found(&machine("postgres: bench db [local] SELECT\0"), 50, 100, None), Some(server.clone()));
        assert_eq!(found(&machine("postgres: main: bench db ::1(4711) idle\0"), 50, 100, Some(4711)), Some(server));
    }

    #[test]
    fn a_stranger_with_the_same_number_is_not_taken_for_the_backend() {
        let backend = machine("postgres: bench db 10.0.0.7(4711) SELECT\0");
        assert_eq!(found(&backend, 50, 3, Some(4711)), None);
        assert_eq!(found(&backend, 51, 100, Some(4711)), None);
        assert_eq!(found(&backend, 50, 100, Some(471)), None);
        assert_eq!(found(&backend, 50, 100, None), None);
        assert_eq!(found(&machine("nginx: worker process [local]\0"), 50, 100, None), None);
    }
}
