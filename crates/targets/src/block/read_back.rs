//! Reading back, after a load that was checked, every block that it wrote.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::raw::{Block, Checking};
use super::volume::Segment;
use super::{Floor, SlotMemory};
use crate::Progress;
use crate::error::TargetError;
use crate::io::{Direction, Patience, Queue, Request};

/// Blocks that are read at the same time.
const DEPTH: u32 = 32;

/// A piece of a block that is being read.
struct SegmentRead {
    block: usize,
    floor: Floor,
    segment: Segment,
    /// Where in the arena.
    place: u64,
}

impl Block {
    /// Reads every block that an acknowledged write of this run went to, all copies of it, and checks it. Returns how many
    /// blocks there were; none where data are not checked.
    ///
    /// # Errors
    /// The first block that is not as it was acknowledged, [`TargetError::Interrupted`], or the system's error.
    pub fn read_back(&self, progress: &dyn Fn(Progress), stop: &AtomicBool) -> Result<u64, TargetError> {
        let (Some(map), Checking::On { block_bytes }) = (self.generations(), self.options().checking) else {
            return Ok(0);
        };
        let kernel = |action| move |source| TargetError::Kernel { action, source };
        let copies = u64::from(self.volume().copies());
        let memory = SlotMemory::new(DEPTH, u64::from(block_bytes) * copies)
            .map_err(kernel("get memory to read blocks back"))?;
        let arena = Arc::clone(memory.arena());
        let depth = DEPTH.saturating_mul(self.max_requests());
        let mut queue = Queue::new(self.options().io_engine, self.files(), Arc::clone(&arena), depth)
            .map_err(kernel("make a queue for requests"))?;
        let total_bytes = map.blocks() as u64 * u64::from(block_bytes);
        let mut numbers = (0..map.blocks()).filter(|block| map.was_acknowledged(*block));
        let mut checked = 0;
        let mut done = Vec::new();
        let mut round: Vec<SegmentRead> = Vec::new();
        loop {
            // One round: as many blocks as there are slots, then all of them are awaited.
            for (slot, block) in (0..).zip(numbers.by_ref().take(DEPTH as usize)) {
                let floor = map.floor(block);
                let mut place = memory.offset(slot);
                // Where a write would go: to all copies.
                for segment in
                    self.volume().segments(block as u64 * u64::from(block_bytes), block_bytes, Direction::Write)
                {
                    round.push(SegmentRead { block, floor, segment, place });
                    place += u64::from(segment.bytes);
                }
                checked += 1;
            }
            let Some(last) = round.last() else { return Ok(checked) };
            let done_bytes = last.block as u64 * u64::from(block_bytes);
            for (token, reading) in (0..).zip(&round) {
                let Segment { member: file, offset_bytes: file_offset, bytes, .. } = reading.segment;
                let request = Request {
                    direction: Direction::Read,
                    file,
                    file_offset,
                    arena_offset: reading.place,
                    bytes,
                    token,
                };
                queue.push(request).map_err(kernel("send a request"))?;
            }
            while queue.in_flight() > 0 {
                queue.wait(Patience::Until(Duration::from_secs(1)), &mut done).map_err(kernel("wait for requests"))?;
            }
            for completion in done.drain(..) {
                let Segment { member, offset_bytes: offset, bytes, .. } = round[completion.token as usize].segment;
                let read = completion.bytes().and_then(|moved| match moved {
                    moved if moved == bytes => Ok(()),
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                });
                read.map_err(|source| {
                    let path = self.files()[member as usize].path().to_owned();
                    TargetError::Request { action: "read", path, offset, bytes, source }
                })?;
            }
            for SegmentRead { block, floor, segment, place } in round.drain(..) {
                // SAFETY: no request is in flight, so nobody writes to this memory.
                let found = unsafe { arena.bytes(place, segment.bytes as usize) };
                self.check_segment(map, block, segment, found, floor)?;
            }
            progress(Progress { done_bytes, total_bytes });
            if stop.load(Ordering::Relaxed) {
                return Err(TargetError::Interrupted);
            }
        }
    }
}
