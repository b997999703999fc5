//! The thread that writes copies of blocks to flash.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::map::Slot;
use super::{Flash, Ring};
use crate::embedded::block;
use crate::embedded::shared::Shared;
use measure::{Counter, WaitEvent};

/// Copies that are too few for a batch are written after this time.
const LINGER: Duration = Duration::from_millis(10);

/// Writes until the flash cache stops.
pub(in crate::embedded) fn run(shared: &Shared, flash: &Flash) {
    let _ = flash.writer.set(thread::current());
    // Next slot of each ring.
    let mut next: Vec<u64> = flash.rings.iter().map(|ring| ring.slots.start).collect();
    let batch = flash.batch_blocks();
    let mut least = batch;
    while !flash.is_stopping.load(Ordering::Relaxed) {
        let mut worked = false;
        for (ring, next) in flash.rings.iter().zip(&mut next) {
            let room = (ring.slots.end - *next).min(batch as u64) as usize;
            if let Some(taken) = ring.pending.take(least.min(room), room) {
                let slots = *next..*next + taken.len() as u64;
                *next = if slots.end == ring.slots.end { ring.slots.start } else { slots.end };
                write(shared, flash, ring, taken.clone(), slots);
                ring.pending.free(taken);
                worked = true;
            }
        }
        count_skipped(shared, flash);
        least = batch;
        if !worked {
            thread::park_timeout(LINGER);
            least = 1;
        }
    }
    count_skipped(shared, flash);
}

fn count_skipped(shared: &Shared, flash: &Flash) {
    let skipped = flash.skipped.swap(0, Ordering::Relaxed);
    if skipped > 0 {
        shared.background.with(|recorded| recorded.count(Counter::FlashCacheSkipped, skipped));
    }
}

/// Writes copies to slots that lie beside each other. What cannot be written is forgotten: it is in the data files.
fn write(shared: &Shared, flash: &Flash, ring: &Ring, taken: Range<usize>, slots: Range<u64>) {
    // From here on nobody begins to read them.
    slots.clone().for_each(|slot| flash.map.take_out(slot as Slot));
    if flash.is_off.load(Ordering::Relaxed) {
        return;
    }
    let block_bytes = flash.block_bytes as usize;
    let begin = ring.memory + taken.start as u64 * flash.block_bytes;
    let bytes = taken.len() * block_bytes;
    let started = shared.clock.now_ns();
    // SAFETY: sessions had filled these places when they were taken, and nobody touches them before they are free.
    let copies = unsafe { flash.memory.bytes_mut(begin, bytes) };
    // A buffer's checksum is not brought up to date while it is in the cache.
    copies.chunks_exact_mut(block_bytes).for_each(block::seal);
    let written = flash.storage().write_all_at(copies, flash.offset(slots.start));
    if let Err(error) = written {
        flash.failed("write", &error);
        shared.background.with(|recorded| recorded.count(Counter::FlashCacheSkipped, taken.len() as u64));
        return;
    }
    flash.succeeded();
    let took = shared.clock.now_ns().saturating_sub(started);
    for (number, slot) in taken.clone().zip(slots) {
        let (block, epoch) = ring.pending.copy(number);
        flash.map.put_in(slot as Slot, block, || shared.cache.epoch(block) == epoch);
    }
    shared.background.with(|recorded| {
        recorded.wait(WaitEvent::DbFlashCacheWrite, took);
        recorded.count(Counter::FlashCacheWrites, taken.len() as u64);
        recorded.count(Counter::FlashCacheWriteBytes, bytes as u64);
    });
}
