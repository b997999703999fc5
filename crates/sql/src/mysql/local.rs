//! A server whose process runs on this machine.

use std::path::{Path, PathBuf};

use mysql_async::prelude::Queryable;

use super::connect::Connector;
use crate::ServerError;
use crate::ending::on_own_runtime;
use measure::os::Root;

/// A server whose process runs on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// Its process.
    pub pid: u32,
    /// Where its data are.
    pub data_directory: PathBuf,
}

impl LocalServer {
    /// Server number `node`, if it runs here and this user may see its process. Connects for that, on a runtime of its own.
    ///
    /// # Errors
    /// When the server cannot be connected to or asked.
    pub fn find(connector: &Connector, node: usize) -> Result<Option<Self>, ServerError> {
        on_own_runtime(async {
            let mut connected = connector.connect(node).await?;
            let asked = connected.conn.query_first("SELECT @@hostname, @@pid_file, @@datadir").await;
            let reported: Option<(String, String, String)> =
                asked.map_err(|error| connected.error("find the server's process", &error))?;
            Ok(reported
                .and_then(|(host, pid_file, data)| Self::of(&Root::default(), &host, &pid_file, Path::new(&data))))
        })
    }

    /// The server that names this host and these files, if they lead to its process below `root`. A server elsewhere, or in a
    /// container, may name the same files: so the process must work in its data here.
    fn of(root: &Root, host: &str, pid_file: &str, data_directory: &Path) -> Option<Self> {
        if root.text("/proc/sys/kernel/hostname")?.trim() != host {
            return None;
        }
        let pid_file = data_directory.join(pid_file);
        let pid: u32 = root.text(pid_file.to_str()?)?.trim().parse().ok()?;
        let works_in = std::fs::read_link(root.path(format!("/proc/{pid}/cwd"))).ok()?;
        let data_directory = data_directory.canonicalize().unwrap_or_else(|_| data_directory.to_owned());
        (works_in == data_directory).then_some(Self { pid, data_directory })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_a_process_of_this_host_that_works_in_the_data_is_the_server() {
        let machine = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = machine.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/hostname", "db1\n");
        write("srv/no-such-data/db1.pid", "50\n");
        write("run/mysqld/other.pid", "51\n");
        for (pid, works_in) in [("50", "/srv/no-such-data"), ("51", "/elsewhere")] {
            write(&format!("proc/{pid}/comm"), "mysqld\n");
            std::os::unix::fs::symlink(works_in, machine.path().join("proc").join(pid).join("cwd")).unwrap();
        }
        let root = Root::at(machine.path());
        let found = |host: &str, pid_file: &str| {
            LocalServer::of(&root, host, pid_file, Path::new("/srv/no-such-data")).map(|server| server.pid)
        };
        assert_eq!((found("db1", "db1.pid"), found("db1", "/srv/no-such-data/db1.pid")), (Some(50), Some(50)));
        assert_eq!((found("db2", "db1.pid"), found("db1", "gone.pid")), (None, None));
        assert_eq!(found("db1", "/run/mysqld/other.pid"), None, "it works in other data");
    }
}
