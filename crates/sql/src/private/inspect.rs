//! What a directory holds, and removing a private server.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::error::PrivateError;
use super::files::{DirectoryState, Files, OurFile};
use super::memory::MemoryLimit;
use super::owner::Owner;
use super::process::end;
use super::programs::{Programs, Running};
use super::server::not_ours;
use super::sockets::Sockets;
use targets::TargetError;

/// A private server as it lies there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundServer<A> {
    /// Its server, if it runs.
    pub(crate) running: Option<Running<A>>,
    /// The command that works on it, if one does: `process 123`.
    pub(crate) in_use_by: Option<String>,
    /// All that Plimsoll made there.
    pub(crate) files: Vec<OurFile>,
}

/// Looks what server `directory` holds, also while a command works on it, and changes nothing. `None` where nothing is,
/// and one may be made.
///
/// # Errors
/// When it holds anything that Plimsoll did not make, or belongs to somebody else.
pub(crate) fn inspect<P: Programs>(directory: &Path) -> Result<Option<FoundServer<P::Address>>, PrivateError> {
    let files = Files::new(P::KIND, directory)?;
    if files.look()? == DirectoryState::Free {
        return Ok(None);
    }
    Owner::of(P::KIND, &files.data())?;
    Ok(Some(FoundServer {
        running: P::running(&files.data())?,
        in_use_by: files.holder().map(|holder| holder.to_string()),
        files: files.ours()?,
    }))
}

/// Removes the server in `directory` with all that is in it, and the directory if nothing else is in that. A kept server
/// of ours is ended first. Gives what was removed.
///
/// # Errors
/// When there is no private server, a command works on it, a server runs on it that Plimsoll has not started, or the
/// system refuses; [`TargetError::Interrupted`] when it was stopped before it began.
pub(crate) fn remove<P: Programs>(
    directory: &Path,
    notify: &dyn Fn(&str),
    stop: &AtomicBool,
) -> Result<Vec<OurFile>, TargetError> {
    let files = Files::new(P::KIND, directory)?;
    if files.look()? == DirectoryState::Free {
        return Err(files.nothing_there().into());
    }
    let owner = Owner::of(P::KIND, &files.data())?;
    let _hold = files.take(&owner, notify, stop)?;
    if let Some(running) = P::running(&files.data())? {
        if !running.is_ours {
            return Err(not_ours::<P>(&files, running.pid).into());
        }
        notify("stopping the server");
        // Both are known only while it runs, and go when it has ended.
        let _sockets = running.sockets.as_deref().map(Sockets::of_running);
        let _memory = MemoryLimit::take_over(running.pid);
        end(P::KIND, running.pid);
    }
    let ours = files.ours()?;
    notify("removing its files");
    files.remove()?;
    Ok(ours)
}
