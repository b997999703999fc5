//! Comparing all copies of a file while nothing or everything else goes on.

use std::sync::atomic::Ordering;

use super::buffer::Buffer;
use super::map::{FileMap, Range};
use crate::measure::ChannelCounter;
use crate::targets::io::{Scrub, Scrubbed};

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
        let copies: Vec<(usize, Option<Buffer>, Option<u64>)> = current_copies(file, range)
            .into_iter()
            .map(|copy| {
                let mut buffer = Buffer::new(range.bytes as usize);
                let read = file.read_copy(range, copy, &mut buffer).is_ok();
                let rank = if read { (self.judge)(offset, &buffer) } else { None };
                (copy, read.then_some(buffer), rank)
            })
            .collect();
        // Of equals the first, which is the primary or stands for it.
        let best = copies.iter().rev().filter(|(_, _, rank)| rank.is_some()).max_by_key(|(_, _, rank)| *rank);
        let Some((_, Some(right), rank)) = best else {
            found.faulty += 1;
            found.lost += 1;
            return;
        };
        let differs = |buffer: &Option<Buffer>| buffer.as_ref().is_none_or(|buffer| buffer[..] != right[..]);
        let wrong: Vec<usize> =
            copies.iter().filter(|(_, buffer, _)| differs(buffer)).map(|(copy, ..)| *copy).collect();
        if wrong.is_empty() {
            // It was being written when it was looked at first.
            return;
        }
        found.faulty += 1;
        found.unsure += u64::from(copies.iter().any(|(copy, _, other)| wrong.contains(copy) && other == rank));
        if !state.writable {
            found.left += 1;
            return;
        }
        let mut all = true;
        for copy in wrong {
            let member = usize::from(file.places(range.extent)[copy].member);
            match file.write_copy(range, copy, right) {
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
}

fn current_copies(file: &FileMap, range: Range) -> Vec<usize> {
    let places = file.places(range.extent);
    (0..places.len()).filter(|copy| file.state.is_online(places[*copy].member)).collect()
}
