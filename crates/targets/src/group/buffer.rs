//! Memory for requests past the page cache that are not on the way of load.

use std::ops::{Deref, DerefMut};

/// What any device and file system takes as the alignment of memory and of offsets.
pub const PAGE_BYTES: usize = 4096;

/// Zeroed memory that begins at a multiple of a page and is whole pages long.
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl Buffer {
    /// With room for at least `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.max(1).next_multiple_of(PAGE_BYTES);
        let memory = vec![0; bytes + PAGE_BYTES];
        let start = memory.as_ptr().align_offset(PAGE_BYTES);
        Self { memory, start, bytes }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.bytes]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.bytes]
    }
}
