//! Memory for requests past the page cache that are not on the way of load.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;

use super::map::{FileMap, Range};
use crate::io::{Scrub, Scrubbed};
use measure::ChannelCounter;

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

/// Length of what is compared at once, as far as it lies in one piece.
const STEP_BYTES: u64 = 1 << 20;

impl Scrub<'_> {
    /// Goes through a file, from its beginning to its end or until it is stopped.
    pub(super) fn run(&self, file: &FileMap) -> Scrubbed {
        let mut found = Scrubbed::default();
        let mut offset = 0;
        let mut buffers: Vec<Buffer> = (0..file.state.shape.copies).map(|_| Buffer::new(STEP_BYTES as usize)).collect();
        while offset < file.bytes && !self.stop.load(Ordering::Relaxed) {
            let left = (file.bytes - offset).min(STEP_BYTES);
            let range = file.range(offset, left.next_multiple_of(u64::from(self.grain_bytes)));
            self.step(file, offset, range, &mut buffers, &mut found);
            offset += u64::from(range.bytes);
            found.bytes = offset.min(file.bytes);
            (self.progress)(found.bytes, file.bytes);
        }
        found
    }

    fn step(&self, file: &FileMap, offset: u64, range: Range, buffers: &mut [Buffer], found: &mut Scrubbed) {
        let bytes = range.bytes as usize;
        let current = current_copies(file, range);
        let mut all_read = true;
        for copy in &current {
            all_read &= file.read_copy(range, *copy, &mut buffers[*copy][..bytes]).is_ok();
        }
        found.copies_bytes += (bytes * current.len()) as u64;
        for at in (0..bytes).step_by(self.grain_bytes as usize) {
            let end = bytes.min(at + self.grain_bytes as usize);
            let grain = |copy: &usize| &buffers[*copy][at..end];
            let alike = current.windows(2).all(|pair| grain(&pair[0]) == grain(&pair[1]));
            let right = current.first().is_some_and(|copy| (self.judge)(offset + at as u64, grain(copy)).is_some());
            if !(all_read && alike && right) {
                let range = Range { within: range.within + at as u32, bytes: (end - at) as u32, ..range };
                self.settle(file, offset + at as u64, range, found);
            }
        }
    }

    /// Looks again at a grain while nobody writes it, and makes its copies alike.
    fn settle(&self, file: &FileMap, offset: u64, range: Range, found: &mut Scrubbed) {
        let state = &file.state;
        let mut closed = None;
        while closed.is_none() && !self.stop.load(Ordering::Relaxed) {
            closed = state.gates.close(file.slot, range.extent);
        }
        if closed.is_none() {
            found.left += 1;
            return;
        }
        let read = |copy: usize| {
            let mut buffer = Buffer::new(range.bytes as usize);
            file.read_copy(range, copy, &mut buffer).is_ok().then_some(buffer)
        };
        let copies: Vec<(usize, Option<Buffer>)> =
            current_copies(file, range).into_iter().map(|copy| (copy, read(copy))).collect();
        let Settled { right, is_lost, is_unsure, wrong } = self.choose(offset, &copies, range.bytes as usize);
        if wrong.is_empty() && !is_lost {
            // It was being written when it was looked at first.
            return;
        }
        found.faulty += 1;
        found.lost += u64::from(is_lost);
        found.unsure += u64::from(is_unsure);
        if wrong.is_empty() {
            return;
        }
        if !state.writable {
            found.left += 1;
            return;
        }
        let mut all = true;
        for at in wrong {
            let (copy, own) = &copies[at];
            let member = usize::from(file.places(range.extent)[*copy].member);
            // Of a block that is lost nobody knows which copy is nearest to the truth: each keeps its own.
            let Some(page) = right.over(own.as_ref()) else {
                all = false;
                continue;
            };
            match file.write_copy(range, *copy, &page) {
                Ok(()) => {
                    found.repaired += 1;
                    state.count(member, ChannelCounter::Repairs, 1);
                }
                Err(error) => {
                    all = false;
                    // A failure of the group is found by the next request.
                    let _ = state.write_failed(member, error);
                }
            }
        }
        found.left += u64::from(!all);
    }

    /// Chooses each block of a grain by itself: the newest sound copy, and of equals the first, which is the primary or stands for it.
    fn choose(&self, offset: u64, copies: &[(usize, Option<Buffer>)], bytes: usize) -> Settled {
        let mut settled = Settled {
            right: Right { page: Buffer::new(bytes), blocks: Vec::new() },
            is_lost: false,
            is_unsure: false,
            wrong: Vec::new(),
        };
        for begin in (0..bytes).step_by(self.block_bytes as usize) {
            let block = begin..bytes.min(begin + self.block_bytes as usize);
            let judged: Vec<(Option<&[u8]>, Option<u64>)> = copies
                .iter()
                .map(|(_, buffer)| buffer.as_ref().map(|buffer| &buffer[block.clone()]))
                .map(|contents| (contents, contents.and_then(|contents| (self.judge)(offset + begin as u64, contents))))
                .collect();
            let best = judged.iter().rev().filter(|(_, rank)| rank.is_some()).max_by_key(|(_, rank)| *rank);
            let Some((Some(right), best)) = best else {
                settled.is_lost = true;
                continue;
            };
            for (at, (contents, rank)) in
                judged.iter().enumerate().filter(|(_, (contents, _))| *contents != Some(right))
            {
                if !settled.wrong.contains(&at) {
                    settled.wrong.push(at);
                }
                settled.is_unsure |= contents.is_some() && rank == best;
            }
            settled.right.page[block.clone()].copy_from_slice(right);
            settled.right.blocks.push(block);
        }
        settled
    }
}

/// What a grain comes to.
struct Settled {
    right: Right,
    /// Whether some block has no sound copy.
    is_lost: bool,
    /// Whether copies of a block differ that are equally right.
    is_unsure: bool,
    /// Copies that have to be written, by their place in the list.
    wrong: Vec<usize>,
}

/// The blocks of a grain that are known.
struct Right {
    page: Buffer,
    blocks: Vec<std::ops::Range<usize>>,
}

impl Right {
    /// A copy's page with what is known put in; none where something else was on it that cannot be read.
    fn over(&self, own: Option<&Buffer>) -> Option<Buffer> {
        let known: usize = self.blocks.iter().map(|block| block.len()).sum();
        let mut page = Buffer::new(self.page.len());
        match own {
            Some(own) => page.copy_from_slice(own),
            None if known < page.len() => return None,
            None => {}
        }
        self.blocks.iter().for_each(|block| page[block.clone()].copy_from_slice(&self.page[block.clone()]));
        Some(page)
    }
}

fn current_copies(file: &FileMap, range: Range) -> Vec<usize> {
    let places = file.places(range.extent);
    (0..places.len()).filter(|copy| file.state.is_online(places[*copy].member)).collect()
}
