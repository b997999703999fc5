//! The arena's memory, as a queue touches it: only here.

use std::io::{self, IoSliceMut, Read};
use std::net::TcpStream;
use std::sync::Arc;

use crate::io::Arena;

/// Memory of requests that the queue holds. What a range belongs to was asserted when the request was pushed.
#[derive(Clone)]
pub(super) struct Memory(Arc<Arena>);

impl Memory {
    pub(super) fn new(arena: Arc<Arena>) -> Self {
        Self(arena)
    }

    /// Panics where the range is not inside the arena.
    pub(super) fn assert_inside(&self, offset: u64, bytes: u32) {
        self.0.address(offset, bytes as usize);
    }

    /// Shows what is to be written, or was.
    #[inline]
    pub(super) fn show<T>(&self, offset: u64, bytes: u32, to: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: the range belongs to a write in flight, so its owner lets nobody write there until it has finished; this
        // thread does not either while it is shown.
        to(unsafe { self.0.bytes(offset, bytes as usize) })
    }

    /// Puts down what was read.
    #[inline]
    pub(super) fn put(&self, offset: u64, bytes: &[u8]) {
        // SAFETY: the range belongs to a read in flight, so nobody else touches it until it has finished.
        unsafe { self.0.bytes_mut(offset, bytes.len()) }.copy_from_slice(bytes);
    }

    /// Receives to the range of a read in flight, and then to `rest`.
    pub(super) fn receive(&self, socket: &TcpStream, offset: u64, bytes: usize, rest: &mut [u8]) -> io::Result<usize> {
        // SAFETY: as in `put`; the borrow ends with the call, and the kernel writes only during it.
        let near = unsafe { self.0.bytes_mut(offset, bytes) };
        let mut socket = socket;
        socket.read_vectored(&mut [IoSliceMut::new(near), IoSliceMut::new(rest)])
    }
}
