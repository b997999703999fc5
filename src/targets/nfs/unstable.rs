//! Writes that a server has taken and not made durable. A server that restarts may have forgotten them, and says so by another
//! verifier: then they are lost, and whoever asks for durability learns of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Such writes of one thread to one file. Only that thread adds to them.
#[derive(Debug, Default)]
pub struct Uncommitted {
    /// Writes so far.
    written: AtomicU64,
    /// How many of them, the oldest ones, are known to be durable.
    committed: AtomicU64,
    /// The server's word for its present life, of the writes that are not.
    verifier: AtomicU64,
    lost: AtomicBool,
}

impl Uncommitted {
    /// The server took a write in the life that `verifier` names. False where it has begun a new life since a write that is not
    /// durable yet.
    #[inline]
    pub fn wrote(&self, verifier: u64) -> bool {
        let written = self.written.load(Ordering::Relaxed);
        if verifier != self.verifier.load(Ordering::Relaxed) {
            if written == self.committed.load(Ordering::Acquire) {
                self.verifier.store(verifier, Ordering::Relaxed);
            } else {
                self.lost.store(true, Ordering::Relaxed);
            }
        }
        self.written.store(written + 1, Ordering::Release);
        !self.lost.load(Ordering::Relaxed)
    }

    /// A COMMIT that was sent when there had been `written` writes was answered in the life that `verifier` names. False where it is
    /// not that of the writes.
    fn committed(&self, written: u64, verifier: u64) -> bool {
        if self.lost.load(Ordering::Relaxed) || self.verifier.load(Ordering::Relaxed) != verifier {
            self.lost.store(true, Ordering::Relaxed);
            return false;
        }
        self.committed.fetch_max(written, Ordering::Release);
        true
    }
}

/// How many writes of each thread there had been when a COMMIT was sent.
pub type Marks = Vec<(Arc<Uncommitted>, u64)>;

/// All threads that write to a file.
#[derive(Debug, Default)]
pub struct Writers(Mutex<Vec<Arc<Uncommitted>>>);

impl Writers {
    /// Another one.
    pub fn open(&self) -> Arc<Uncommitted> {
        let writer = Arc::new(Uncommitted::default());
        let mut writers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are gone and left nothing are forgotten.
        writers.retain(|writer| {
            let is_clean = writer.written.load(Ordering::Acquire) == writer.committed.load(Ordering::Relaxed);
            Arc::strong_count(writer) > 1 || !is_clean
        });
        writers.push(Arc::clone(&writer));
        writer
    }

    /// Notes into `marks` what a COMMIT that is sent now has to make durable.
    pub fn mark(&self, marks: &mut Marks) {
        marks.clear();
        let writers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for writer in writers.iter() {
            let written = writer.written.load(Ordering::Acquire);
            if written > writer.committed.load(Ordering::Relaxed) {
                marks.push((Arc::clone(writer), written));
            }
        }
    }
}

/// The COMMIT for which `marks` were noted was answered. False where writes were lost.
pub fn committed(marks: &mut Marks, verifier: u64) -> bool {
    // Every one is asked, so that all know.
    marks.drain(..).fold(true, |kept, (writer, written)| writer.committed(written, verifier) && kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_between_write_and_commit_loses_writes_for_good() {
        let (writers, mut marks) = (Writers::default(), Marks::new());
        let writer = writers.open();
        assert!(writer.wrote(7) && writer.wrote(7));
        writers.mark(&mut marks);
        assert!(!committed(&mut marks, 8));
        writers.mark(&mut marks);
        assert!(!committed(&mut marks, 7));
        assert!(!writer.wrote(8));
    }

    #[test]
    fn a_restart_after_the_commit_loses_nothing() {
        let (writers, mut marks) = (Writers::default(), Marks::new());
        let writer = writers.open();
        assert!(writer.wrote(7));
        writers.mark(&mut marks);
        assert!(committed(&mut marks, 7));
        assert!(writer.wrote(8) && writer.wrote(8));
        writers.mark(&mut marks);
        assert!(committed(&mut marks, 8));
        writers.mark(&mut marks);
        assert!(marks.is_empty());
    }

    #[test]
    fn a_restart_between_two_writes_loses_the_first_and_a_write_after_the_mark_stays_uncommitted() {
        let (writers, mut marks) = (Writers::default(), Marks::new());
        let writer = writers.open();
        assert!(writer.wrote(7));
        writers.mark(&mut marks);
        assert!(writer.wrote(7));
        assert!(committed(&mut marks, 7));
        assert!(!writer.wrote(8));
    }

    #[test]
    fn what_a_thread_wrote_before_it_went_must_be_durable_too() {
        let (writers, mut marks) = (Writers::default(), Marks::new());
        assert!(writers.open().wrote(7));
        drop(writers.open());
        writers.mark(&mut marks);
        assert_eq!(marks.len(), 1);
        assert!(committed(&mut marks, 7));
        writers.open();
        assert_eq!(writers.0.lock().unwrap().len(), 1);
    }
}
