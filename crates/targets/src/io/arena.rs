//! Memory that is shared with the kernel and between threads.
//!
//! Storage requests and several threads touch this memory at the same time, so it is never handed out as an ordinary
//! slice by safe means. Words are read and written as relaxed atomics; whole regions are borrowed only through functions
//! whose safety rests on the caller's latch.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a huge page where the processor has one of this size; elsewhere only an alignment.
const HUGE_PAGE: usize = 2 << 20;
/// Smaller arenas have small pages: a request in them has few segments anyway, and of thousands of lanes each would make the kernel
/// clear a huge page for a few KiB, all of them in the first moment of the load.
const MIN_HUGE_BYTES: usize = 256 << 10;

/// Zeroed, page-aligned memory, with transparent huge pages asked for unless it is small. Freed on drop.
pub struct Arena {
    base: NonNull<u8>,
    bytes: usize,
    mapping: NonNull<u8>,
    mapped: usize,
}

// SAFETY: the arena owns its mapping; all safe access goes through atomics, and the unsafe accessors state what their
// caller must guarantee.
unsafe impl Send for Arena {}
// SAFETY: see above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps `bytes` bytes, rounded up to whole pages. Memory is taken from the system when it is first touched.
    ///
    /// # Errors
    /// When the system has no such address space or memory to give.
    pub fn new(bytes: usize) -> io::Result<Self> {
        const PAGE: usize = 4096;
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        // Mapped with room to begin where a huge page can begin: a piece of one has a single physical address, so that the
        // kernel sends it as one segment.
        let whole = bytes.checked_next_multiple_of(HUGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapped = whole.checked_add(HUGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if bytes >= MIN_HUGE_BYTES {
            // SAFETY: the range was mapped just above. Advice only: a kernel without huge pages ignores it.
            unsafe { libc::madvise(base, mapped, libc::MADV_HUGEPAGE) };
        }
        let mapping = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let skipped = mapping.as_ptr().align_offset(HUGE_PAGE);
        // SAFETY: less than a huge page is skipped, and the mapping is longer than the arena by one.
        let base = unsafe { mapping.add(skipped) };
        Ok(Self { base, bytes, mapping, mapped })
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the arena has no memory; never the case.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Address of `offset`, for the kernel. Valid as long as the arena lives.
    ///
    /// # Panics
    /// When `offset..offset + bytes` is not inside the arena.
    #[inline]
    pub fn address(&self, offset: u64, bytes: usize) -> *mut u8 {
        let offset = offset as usize;
        assert!(bytes <= self.bytes && offset <= self.bytes - bytes, "range lies outside the arena");
        // SAFETY: the range was checked to lie inside the mapping.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// Asks the processor to bring the line at `offset` near. No effect on results.
    #[inline]
    pub fn prefetch(&self, offset: u64) {
        prefetch(self.address(offset, 1));
    }

    #[inline]
    fn word(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8));
        let address = self.address(offset, 8);
        // SAFETY: inside the mapping, 8-byte aligned because the base is page-aligned and callers use multiples of 8;
        // words are shared only as atomics.
        unsafe { AtomicU64::from_ptr(address.cast()) }
    }

    /// Reads the little-endian word at `offset`, a multiple of 8.
    #[inline]
    pub fn load(&self, offset: u64) -> u64 {
        u64::from_le(self.word(offset).load(Ordering::Relaxed))
    }

    /// Writes the little-endian word at `offset`, a multiple of 8.
    #[inline]
    pub fn store(&self, offset: u64, value: u64) {
        self.word(offset).store(value.to_le(), Ordering::Relaxed);
    }

    /// Writes `bytes`, whose length is a multiple of 8, word by word, so that concurrent word readers are safe.
    #[inline]
    pub fn store_bytes(&self, offset: u64, bytes: &[u8]) {
        debug_assert!(bytes.len().is_multiple_of(8));
        for (index, word) in bytes.chunks_exact(8).enumerate() {
            let word = u64::from_ne_bytes(word.try_into().expect("chunks of eight"));
            self.word(offset + index as u64 * 8).store(word, Ordering::Relaxed);
        }
    }

    /// All of it as numbers, for a thread that has the arena to itself and gave no address of it away.
    pub fn as_f64_mut(&mut self) -> &mut [f64] {
        // SAFETY: the mapping is page-aligned and initialised with zeros, any bits are a number, and no reference to it can be
        // elsewhere while the arena is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().cast(), self.bytes / 8) }
    }

    /// Borrows a region for reading.
    ///
    /// # Safety
    /// Nobody, the kernel included, may write to the region while the borrow lives.
    #[inline]
    pub unsafe fn bytes(&self, offset: u64, bytes: usize) -> &[u8] {
        let address = self.address(offset, bytes);
        // SAFETY: inside the mapping, initialised by the kernel with zeros; absence of writers is the caller's promise.
        unsafe { std::slice::from_raw_parts(address, bytes) }
    }

    /// Borrows a region for writing.
    ///
    /// # Safety
    /// Nobody else, the kernel included, may touch the region while the borrow lives.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "exclusive use of the region is the caller's promise, see Safety")]
    pub unsafe fn bytes_mut(&self, offset: u64, bytes: usize) -> &mut [u8] {
        let address = self.address(offset, bytes);
        // SAFETY: inside the mapping; exclusive use is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(address, bytes) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this length, and every queue that could let the kernel write to it
        // holds the arena alive until its requests have finished.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}

/// Asks the processor to bring the line at `address` near. No effect on results, whatever the address is.
#[inline]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch does not access memory in the sense of the language, and never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::skip::skip;

    /// Whether huge pages are asked for at an address; unknown where the kernel does not show it.
    fn asks_for_huge_pages(arena: &Arena) -> Option<bool> {
        let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let wanted = arena.address(0, 1) as usize;
        let mut is_it = false;
        for line in maps.lines() {
            if let Some(flags) = line.strip_prefix("VmFlags:") {
                if is_it {
                    return Some(flags.split_ascii_whitespace().any(|flag| flag == "hg"));
                }
            } else if let Some((from, to)) = line.split(' ').next().and_then(|range| range.split_once('-')) {
                let [from, to] = [from, to].map(|at| usize::from_str_radix(at, 16).unwrap_or(0));
                is_it = from <= wanted && wanted < to;
            }
        }
        None
    }

    #[test]
    fn only_what_is_not_small_has_huge_pages() {
        let arenas = [8 << 10, 1 << 20].map(|bytes| Arena::new(bytes).unwrap());
        match arenas.each_ref().map(asks_for_huge_pages) {
            [small, Some(true)] => assert_eq!(small, Some(false), "2 MiB would be cleared for 8 KiB"),
            found => skip(format_args!("this kernel does not show who asks for huge pages: {found:?}")),
        }
    }
}
