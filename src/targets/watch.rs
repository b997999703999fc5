//! Whether files are still there and as long as they were while load runs.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::targets::error::{FileContext, TargetError};
use crate::targets::io::StorageFile;

/// Between two looks at a file of a server, which cost it a call each.
const PAUSE: Duration = Duration::from_millis(500);

/// Looks whether a file is still there and as long as it was.
///
/// # Errors
/// [`TargetError::Vanished`], [`TargetError::Truncated`], or the system's or server's error.
pub(crate) fn look(file: &StorageFile, has_name: bool, length_bytes: u64) -> Result<(), TargetError> {
    let path = || file.path().to_owned();
    if has_name && !file.is_linked().of_file("look at", file.path())? {
        return Err(TargetError::Vanished { path: path() });
    }
    let length = file.length().of_file("find the size of", file.path())?;
    if length < length_bytes {
        return Err(TargetError::Truncated { path: path(), length, expected: length_bytes });
    }
    Ok(())
}

/// A thread that looks at a file of a server: an answer may take long, and whoever asks how the file is cannot wait for it.
#[derive(Debug)]
pub(crate) struct Watch {
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
        let (file, in_thread) = (Arc::clone(file), Arc::clone(&shared));
        let thread = thread::Builder::new().name("watch".to_owned()).spawn(move || {
            while !in_thread.stop.load(Ordering::Relaxed) {
                thread::park_timeout(PAUSE);
                // A server that does not answer is what requests of the load find out, with more patience.
                let is_certain = |error: &TargetError| !matches!(error, TargetError::File { .. });
                if let Err(error) = look(&file, true, length_bytes)
                    && is_certain(&error)
                {
                    *in_thread.wrong.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return;
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// What was wrong with the file, once.
    ///
    /// # Errors
    /// As [`look`].
    pub(crate) fn seen(&self) -> Result<(), TargetError> {
        let wrong = self.shared.wrong.lock().unwrap_or_else(PoisonError::into_inner).take();
        wrong.map_or(Ok(()), Err)
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
