//! What a directory holds, and removing a cluster.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::postmaster::{self, Postmaster};
use super::{CLUSTER, OurFile, address, data_major};
use crate::config::postgres::PostgresAddress;
use crate::targets::TargetError;
use crate::targets::postgres::{LocalServer, PostgresError};
use crate::targets::sql::private::{DirectoryState, Files, MemoryLimit, Owner, Sockets, end};

/// A private cluster as it lies there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCluster {
    /// Major version of PostgreSQL that its data are of; none when it was never finished.
    pub major: Option<u32>,
    /// When it was made, RFC 3339 in UTC.
    pub created_at: String,
    /// Version of the server that made it.
    pub made_by_version: String,
    /// Its server, if it runs.
    pub running: Option<Running>,
    /// The command that works on it, if one does: `process 123`.
    pub in_use_by: Option<String>,
    /// All that Plimsoll made there.
    pub files: Vec<OurFile>,
}

/// The server of a private cluster that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Its processes and data.
    pub local: LocalServer,
    /// Where it is reached; none while it starts.
    pub address: Option<PostgresAddress>,
    /// Whether Plimsoll has started it.
    pub started_by_us: bool,
}

/// Looks what cluster `directory` holds, also while a command works on it, and changes nothing. `None` where nothing is,
/// and a cluster may be made.
///
/// # Errors
/// When it holds anything that Plimsoll did not make, or belongs to somebody else.
pub fn inspect(directory: &Path) -> Result<Option<FoundCluster>, PostgresError> {
    let files = Files::new(&CLUSTER, directory)?;
    let DirectoryState::Ours(marker) = files.look()? else { return Ok(None) };
    Owner::of(&CLUSTER, &files.data())?;
    Ok(Some(FoundCluster {
        major: data_major(&files)?,
        created_at: marker.created_at,
        made_by_version: marker.server_version,
        running: running(&files)?,
        in_use_by: files.holder().map(|holder| holder.to_string()),
        files: files.ours()?,
    }))
}

fn running(files: &Files) -> Result<Option<Running>, PostgresError> {
    let data = files.data();
    let Some(found) = Postmaster::running(&data)? else { return Ok(None) };
    let reached = found.socket.filter(|_| found.is_ready);
    Ok(Some(Running {
        address: reached.map(|(directory, port)| address(&directory.to_string_lossy(), port)),
        started_by_us: postmaster::was_started_by_us(&data),
        local: LocalServer { postmaster_pid: found.pid, data_directory: Some(data) },
    }))
}

/// Removes the cluster in `directory` with all that is in it, and the directory if nothing else is in that. A kept server
/// of ours is ended first. Gives what was removed.
///
/// # Errors
/// When there is no private cluster, a command works on it, a server runs on it that Plimsoll has not started, or the
/// system refuses; [`TargetError::Interrupted`] when it was stopped before it began.
pub fn remove(directory: &Path, tell: &dyn Fn(&str), stop: &AtomicBool) -> Result<Vec<OurFile>, TargetError> {
    let files = Files::new(&CLUSTER, directory)?;
    if files.look()? == DirectoryState::Free {
        return Err(files.nothing_there().into());
    }
    let owner = Owner::of(&CLUSTER, &files.data())?;
    let _hold = files.take(&owner, tell, stop)?;
    if let Some(found) = Postmaster::running(&files.data())? {
        if !postmaster::was_started_by_us(&files.data()) {
            let what = format!(
                "a server that Plimsoll has not started (process {}) runs on the cluster in `{}`",
                found.pid,
                files.directory().display()
            );
            let hint = Some(format!("stop it first: `kill -INT {}`", found.pid));
            return Err(PostgresError::Unfit { what, hint }.into());
        }
        tell("stopping the server");
        // Both are known only while it runs, and go when it has ended.
        let _sockets = found.socket.map(|(directory, _)| Sockets::of_running(&directory));
        let _memory = MemoryLimit::take_over(found.pid);
        end(&CLUSTER, found.pid);
    }
    let ours = files.ours()?;
    tell("removing its files");
    files.remove()?;
    Ok(ours)
}
