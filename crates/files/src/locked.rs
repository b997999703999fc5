//! Locks of files that end with the value that holds them.

use std::fs::File;
use std::ops::{Deref, DerefMut};

/// A file whose lock (`flock`) is let go when the value is dropped.
///
/// Closing alone is not enough: another thread may be starting a program, and its child has the descriptor too, and so the lock, until it
/// executes that.
#[derive(Debug)]
pub struct LockedFile(File);

impl From<File> for LockedFile {
    fn from(file: File) -> Self {
        Self(file)
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for LockedFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Fails only where there are no locks.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_ends_with_the_value_though_a_child_has_the_descriptor() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let held = LockedFile::from(file.reopen().unwrap());
        held.try_lock().unwrap();
        // What a child has between `fork` and `exec`.
        let inherited = held.try_clone().unwrap();
        file.as_file().try_lock().unwrap_err();
        drop(held);
        file.as_file().try_lock().unwrap();
        drop(inherited);
    }
}
