//! Whether files are still there and as long as they were while load runs.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::block::BlockError;
use crate::error::TargetError;
use crate::group::GroupError;
use crate::io::StorageFile;
use crate::nfs::NfsError;

/// Between two looks at a file of a server, which cost it a call each.
const PAUSE: Duration = Duration::from_millis(500);

/// Looks whether a file is still there and as long as it was.
///
/// # Errors
/// [`TargetError::Vanished`], [`TargetError::Unplugged`], [`TargetError::Truncated`], [`BlockError::Replaced`], what a disk group says of itself; or
/// [`TargetError::File`] with the system's or server's error where that did not become known.
pub(crate) fn look(file: &StorageFile, has_name: bool, length_bytes: u64) -> Result<(), TargetError> {
    let path = || file.path().to_owned();
    if has_name && !file.is_linked().map_err(|error| said(file, "look at", error))? {
        return Err(TargetError::Vanished { path: path() });
    }
    let length = file.length().map_err(|error| said(file, "find the size of", error))?;
    // A device that has gone keeps its node, with no bytes.
    if !has_name && length == 0 && length_bytes > 0 {
        return Err(TargetError::Unplugged { path: path() });
    }
    if length < length_bytes {
        return Err(TargetError::Truncated { path: path(), length, expected: length_bytes });
    }
    Ok(())
}

/// What storage has found out about itself by now, without asking anybody.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn known(file: &StorageFile) -> Result<(), TargetError> {
    file.known_failure().map_or(Ok(()), |error| Err(said(file, "use", error)))
}

/// An error of storage that was looked at. Only what nobody answered stays one of the file.
fn said(file: &StorageFile, action: &'static str, error: io::Error) -> TargetError {
    let path = || file.path().to_owned();
    if is_another_file(&error) {
        return BlockError::Replaced { path: path() }.into();
    }
    match error.downcast::<GroupError>() {
        Ok(error) => error.into(),
        Err(source) => TargetError::File { action, path: path(), source },
    }
}

/// Whether a server said that the path leads to another file now. That is an answer, as opposed to all that keeps one away.
pub(crate) fn is_another_file(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(NfsError::OtherFile { .. }))
}

/// A thread that looks at a file of a server: an answer may take long, and whoever asks how the file is cannot wait for it.
#[derive(Debug)]
pub(crate) struct Watch {
    file: Arc<StorageFile>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// The first thing that was wrong, until somebody asks.
    wrong: Mutex<Option<TargetError>>,
}

impl Watch {
    /// Begins to look at a file that should be `length_bytes` bytes long.
    pub(crate) fn begin(file: &Arc<StorageFile>, length_bytes: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (watched, in_thread) = (Arc::clone(file), Arc::clone(&shared));
        let thread = thread::Builder::new().name("watch".to_owned()).spawn(move || {
            while !in_thread.stop.load(Ordering::Relaxed) {
                thread::park_timeout(PAUSE);
                // A server that does not answer is what requests of the load find out, with more patience.
                let is_certain = |error: &TargetError| !matches!(error, TargetError::File { .. });
                if let Err(error) = look(&watched, true, length_bytes)
                    && is_certain(&error)
                {
                    *in_thread.wrong.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return;
                }
            }
        })?;
        Ok(Self { file: Arc::clone(file), shared, thread: Some(thread) })
    }

    /// What was wrong with the file, once; or what it knows of itself, which does not wait for the next look.
    ///
    /// # Errors
    /// As [`look`].
    pub(crate) fn seen(&self) -> Result<(), TargetError> {
        let wrong = self.shared.wrong.lock().unwrap_or_else(PoisonError::into_inner).take();
        wrong.map_or_else(|| known(&self.file), Err)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It only looks, so there is nothing to learn from how it ended.
            let _ = thread.join();
        }
    }
}
