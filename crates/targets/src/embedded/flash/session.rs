//! What sessions do with the flash cache: they offer it what leaves the buffer cache, and read from it what is there.

use crate::embedded::block;
use crate::embedded::cache::FrameId;
use crate::embedded::lane::{EngineLane, Phase};
use crate::error::TargetError;
use crate::io::{Completion, Direction, Request};
use measure::{Counter, LaneRecorder};

use super::{Flash, Slot};

impl EngineLane<'_> {
    /// Offers the block that `frame` held until now, and reads `block` into it from flash if it is there. Returns whether it is.
    pub(in crate::embedded) fn read_flash(
        &mut self,
        flash: &Flash,
        index: u32,
        (frame, block): (FrameId, u64),
        recorder: &mut LaneRecorder,
    ) -> Result<bool, TargetError> {
        let shape = self.shared.layout.shape();
        let memory = self.shared.cache.offset(frame);
        if let Some(evicted) = self.hand.evicted.take() {
            // SAFETY: the frame is in state LOADING, this session is its loader and has not sent its read yet: nobody writes to it.
            let contents = unsafe { self.shared.cache.arena().bytes(memory, shape.bytes()) };
            flash.offer(evicted.block, evicted.epoch, contents);
        }
        let Some(slot) = flash.find(block) else {
            if flash.is_missed(block) {
                recorder.count(Counter::FlashCacheGivenUp, 1);
            }
            return Ok(false);
        };
        self.wait(index, Phase::ReadingFlash { frame, block, slot });
        let bytes = shape.bytes() as u32;
        let request = Request {
            direction: Direction::Read,
            // Behind the data files.
            file: self.shared.data_files.len() as u32,
            file_offset: flash.offset(u64::from(slot)),
            arena_offset: memory,
            bytes,
            token: u64::from(index),
        };
        self.queue.push(request).map_err(|error| self.shared.bad_request("read", block, bytes, Err(error)))?;
        Ok(true)
    }

    /// A read from flash has come back. If it brought the block, it is as good as one from the data file; if not, the block is read
    /// from there now. Returns whether it did.
    pub(in crate::embedded) fn arrive_flash(
        &mut self,
        index: u32,
        (frame, block, slot): (FrameId, u64, Slot),
        completion: Completion,
        recorder: &mut LaneRecorder,
    ) -> Result<bool, TargetError> {
        let Some(flash) = &self.shared.flash else { unreachable!("a read from flash needs one") };
        if self.is_from_flash(flash, (frame, block, slot), completion) {
            recorder.count(Counter::FlashCacheReads, 1);
            recorder.count(Counter::FlashCacheReadBytes, self.shared.layout.shape().bytes() as u64);
            return Ok(true);
        }
        recorder.count(Counter::FlashCacheFallbacks, 1);
        self.wait(index, Phase::Reading { frame, block });
        let bytes = self.shared.layout.shape().bytes() as u32;
        self.send_read(index, block, self.shared.cache.offset(frame), bytes)?;
        Ok(false)
    }

    /// Whether what came from flash is the newest version of a block.
    pub(in crate::embedded) fn is_from_flash(
        &self,
        flash: &Flash,
        (frame, block, slot): (FrameId, u64, Slot),
        completion: Completion,
    ) -> bool {
        let bytes = self.shared.layout.shape().bytes();
        let why: &dyn std::fmt::Display = match completion.bytes() {
            Ok(moved) if moved as usize == bytes => {
                // SAFETY: the frame is in state LOADING and this session is its loader: the kernel has finished with the buffer, and no
                // session writes to it before it is valid.
                let contents = unsafe { self.shared.cache.arena().bytes(self.shared.cache.offset(frame), bytes) };
                match block::check(contents, self.shared.layout.identity(block), self.shared.changes.get(block)) {
                    Ok(()) => {
                        flash.succeeded();
                        return true;
                    }
                    // The slot was written anew while it was read: nothing is wrong with the flash.
                    Err(_) if !flash.map.holds(slot, block) => return false,
                    Err(fault) => &{ fault },
                }
            }
            Ok(_) => &"the file is shorter than it was made",
            Err(error) => &{ error },
        };
        flash.map.invalidate(block);
        flash.failed("read", why);
        false
    }
}
