//! A descriptor by which one thread wakes another that waits in the kernel.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// An eventfd: a descriptor that becomes readable when somebody notifies it.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// One that is not readable yet.
    ///
    /// # Errors
    /// When this process or the system may have no more descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: plain system call that makes a new descriptor.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes the descriptor readable. Cannot fail in a way that matters: a full counter is readable already.
    pub fn notify(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: writes eight bytes from a live buffer to a descriptor that we own.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Makes the descriptor unreadable until the next notification.
    pub fn reset(&self) {
        let mut count = [0u8; 8];
        // SAFETY: reads eight bytes into a live buffer from a descriptor that we own; it does not block.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
