//! Reading back, after a load that was checked, every block that it wrote.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::memory::SlotMemory;
use super::raw::{Block, Checking};
use crate::target::Progress;
use crate::target::error::TargetError;
use crate::target::io::{Direction, Patience, Queue, Request};

/// Reads in flight.
const DEPTH: u32 = 32;

impl Block {
    /// Reads every block that an acknowledged write of this run went to, and checks it. Returns how many there were; none
    /// where data are not checked.
    ///
    /// # Errors
    /// The first block that is not as it was acknowledged, [`TargetError::Interrupted`], or the system's error.
    pub fn read_back(&self, progress: &dyn Fn(Progress), stop: &AtomicBool) -> Result<u64, TargetError> {
        let (Some(map), Checking::On { block_bytes }) = (self.generations(), self.options().checking) else {
            return Ok(0);
        };
        let kernel = |action| move |source| TargetError::Kernel { action, source };
        let memory =
            SlotMemory::new(DEPTH, u64::from(block_bytes)).map_err(kernel("get memory to read blocks back"))?;
        let arena = Arc::clone(memory.arena());
        let depth = DEPTH.saturating_mul(self.most_requests());
        let mut queue = Queue::new(self.options().io_engine, self.files(), Arc::clone(&arena), depth)
            .map_err(kernel("make a queue for requests"))?;
        let total_bytes = map.blocks() as u64 * u64::from(block_bytes);
        let mut numbers = (0..map.blocks()).filter(|block| map.was_acknowledged(*block));
        let mut checked = 0;
        let mut done = Vec::new();
        loop {
            // One round: as many blocks as there are slots, then all of them are awaited.
            let round: Vec<usize> = numbers.by_ref().take(DEPTH as usize).collect();
            let Some(last) = round.last() else { return Ok(checked) };
            let (done_bytes, floors) = (
                *last as u64 * u64::from(block_bytes),
                round.iter().map(|block| map.floor(*block)).collect::<Vec<_>>(),
            );
            for (slot, block) in (0..).zip(&round) {
                let offset = *block as u64 * u64::from(block_bytes);
                for segment in self.volume().segments(offset, block_bytes, Direction::Read) {
                    let request = Request {
                        direction: Direction::Read,
                        file: segment.member,
                        file_offset: segment.offset_bytes,
                        arena_offset: memory.offset(slot) + u64::from(segment.at),
                        bytes: segment.bytes,
                        token: offset,
                    };
                    queue.push(request).map_err(kernel("send a request"))?;
                }
            }
            while queue.in_flight() > 0 {
                queue.wait(Patience::Until(Duration::from_secs(1)), &mut done).map_err(kernel("wait for requests"))?;
            }
            for completion in done.drain(..) {
                completion.bytes().map_err(|source| TargetError::Request {
                    action: "read",
                    path: self.files()[0].path().to_owned(),
                    offset: completion.token,
                    bytes: block_bytes,
                    source,
                })?;
            }
            for ((slot, block), floor) in (0..).zip(&round).zip(floors) {
                // SAFETY: no request is in flight, so nobody writes to this memory.
                let found = unsafe { arena.bytes(memory.offset(slot), block_bytes as usize) };
                self.check(*block as u64 * u64::from(block_bytes), found, floor)?;
                checked += 1;
            }
            progress(Progress { done_bytes, total_bytes });
            if stop.load(Ordering::Relaxed) {
                return Err(TargetError::Interrupted);
            }
        }
    }
}
