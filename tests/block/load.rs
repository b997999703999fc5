//! Reads and writes: where they go, how they are counted, whether they are durable.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::common::raw::{
    BLOCK, bytes_at, checked, engines, layouts, open, open_as, read_back, run, run_on, sequential, step, wanted, wide,
};
use crate::common::{run_until, scratch};
use plimsoll::config::io::Durable;
use plimsoll::load::{Pace, StepOutcome, StepPlan};
use plimsoll::measure::environment;
use plimsoll::record::Step;
use plimsoll::targets::Target;
use plimsoll::targets::block::stamp::{self, FileId};
use plimsoll::targets::block::{Block, PrepareOptions, VolumeLayout};
use plimsoll::targets::io::{Caching, Durability};
use plimsoll::units::Nanos;
use plimsoll::workload::Arrival;
use plimsoll::workload::io::IoShape;
use test_support::skip::skip;

/// Runs a plan in windows of time, whose edges every thread knows beforehand, until enough has happened in one.
fn run_in_time(block: &Block, mut plan: StepPlan<IoShape>, is_enough: impl Fn(&Step) -> bool) -> StepOutcome {
    (plan.work_loop, plan.duration) = (None, Nanos::millis(300));
    run_until(&mut plan, |plan| run(block, plan), is_enough)
}

/// Each operation of a load of blocks is one wait, one request and so many bytes.
fn assert_accounts_agree(step: &Step) {
    let counters = &step.counters;
    let (reads, writes) = (counters.physical_reads.unwrap(), counters.physical_writes.unwrap());
    assert_eq!(reads + writes, counters.operations.unwrap());
    assert_eq!(counters.physical_read_bytes.unwrap(), reads * u64::from(BLOCK));
    assert_eq!(counters.physical_write_bytes.unwrap(), writes * u64::from(BLOCK));
    let waits =
        |event: &str| step.waits.iter().find(|waits| waits.event == event).map_or(0, |waits| waits.waits.count());
    assert_eq!((waits("db file sequential read"), waits("direct path write")), (reads, writes));
    let kinds = |kind: &str| step.operations.iter().find(|of| of.kind == kind).map_or(0, |of| of.service.count());
    assert_eq!((kinds("read"), kinds("write")), (reads, writes));
}

#[test]
fn every_layout_is_read_and_written_through_both_engines() {
    for (layout, members) in layouts() {
        let dir = scratch();
        for engine in engines() {
            let block = open_as(&wanted(dir.path(), layout, members, 8), engine, Durable::None);
            let outcome = run_in_time(&block, step(&block, 50), |step| step.counters.physical_writes.unwrap() > 1_000);
            assert!(outcome.failure.is_none(), "{layout}, {engine}: {:?}", outcome.failure);
            assert_accounts_agree(&outcome.step);
            let counters = &outcome.step.counters;
            let (reads, writes) = (counters.physical_reads.unwrap(), counters.physical_writes.unwrap());
            // Of any hundred requests of a slot fifty are reads.
            assert!(reads.abs_diff(writes) <= 8 * 50, "{layout}: {reads} reads, {writes} writes");
            let files = block.describe().facts.files;
            assert_eq!((files.direct_io, files.io_engine), (Some(true), Some(engine.to_string())));
            assert!(outcome.step.generator.unwrap().ceiling_operations_per_s.unwrap() > 0.0);
        }
    }
}

#[test]
fn an_open_loop_sends_what_falls_due_and_says_how_late() {
    for engine in engines() {
        let dir = scratch();
        let block = open_as(&wanted(dir.path(), VolumeLayout::Single, 1, 8), engine, Durable::None);
        let mut plan = wide(step(&block, 70), 64, 2);
        plan.pace = Pace::Open { rate_per_s: 500.0, arrival: Arrival::Fixed };
        (plan.work_loop, plan.duration) = (None, Nanos::seconds(1));
        let outcome = run(&block, &plan);
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        assert_accounts_agree(&outcome.step);
        let generator = outcome.step.generator.unwrap();
        // Storage that stalls leaves operations to be done after the window; none is forgotten, and none is sent before its time.
        let (due, backlog) = (generator.due_operations.unwrap(), generator.backlog_operations.unwrap());
        assert!(due.abs_diff(500) <= 2, "{due} operations were due where 500 are");
        let (done, slots) = (outcome.step.counters.operations.unwrap(), 64);
        assert!(done <= due + slots && done + backlog + slots >= due, "{done} done and {backlog} left of {due}");
        assert!(generator.schedule_lag.unwrap().count() >= done);
        for operations in &outcome.step.operations {
            assert!(operations.response.total_ns() > operations.service.total_ns(), "waiting for a turn takes time");
        }
    }
}

/// The generation that all sectors of one block of a member carry.
fn generation(path: &Path, offset: u64, bytes: usize) -> u64 {
    let id = FileId::found_in(&bytes_at(path, 0, 512)).unwrap();
    stamp::check(&bytes_at(path, offset, bytes), offset, id).unwrap()
}

#[test]
fn both_copies_of_a_mirror_hold_every_write() {
    const UNIT: u64 = 64 << 10;
    let dir = scratch();
    let wanted = checked(dir.path(), VolumeLayout::Mirror { unit_bytes: UNIT }, 3, 6);
    let block = open(&wanted);
    let base = block.options().generation_base;
    let outcome = run(&block, &wide(step(&block, 30), 24, 3));
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let capacity = block.options().region_bytes;
    drop(block);
    let half = capacity / 3;
    let mut written = 0;
    for offset in (0..capacity).step_by(BLOCK as usize) {
        // Reckoned here once more, so that a mistake in the map is no mistake in its test.
        let (unit, within) = (offset / UNIT, offset % UNIT);
        let (first, second) = (unit % 3, (unit + 1) % 3);
        let place = unit / 3 * UNIT + within;
        let one = generation(&wanted.paths[first as usize], place, BLOCK as usize);
        let two = generation(&wanted.paths[second as usize], half + place, BLOCK as usize);
        // As it was laid out, or with the same write on both.
        assert_eq!(one, two, "offset {offset}");
        written += u64::from(one > base);
    }
    assert!(written > 50, "only {written} blocks were written: the test shows nothing");
}

#[test]
fn stripes_lie_where_the_map_says() {
    let dir = scratch();
    for (unit, layout) in [(4096, VolumeLayout::Stripe { unit_bytes: 4096 }), (1 << 20, VolumeLayout::Concat)] {
        let wanted = checked(&dir.path().join(unit.to_string()), layout, 3, 3);
        std::fs::create_dir(wanted.paths[0].parent().unwrap()).unwrap();
        let block = open(&wanted);
        let base = block.options().generation_base;
        let mut plan = wide(sequential(step(&block, 0)), 1, 1);
        // Once around in order, so that the number of writes says which blocks they went to.
        plan.work_loop = Some(200);
        assert!(run(&block, &plan).failure.is_none());
        drop(block);
        for offset in (0..3_u64 << 20).step_by(4096) {
            let (number, within) = (offset / unit, offset % unit);
            let path = &wanted.paths[(number % 3) as usize];
            let found = generation(path, number / 3 * unit + within, 4096);
            // The write that was under way when the last one counted has gone through too, or has not.
            if offset / u64::from(BLOCK) != 200 {
                assert_eq!(found > base, offset / u64::from(BLOCK) < 200, "{layout}, offset {offset}");
            }
        }
    }
}

#[test]
fn the_seed_decides_which_blocks_are_written() {
    let dir = scratch();
    let wanted = checked(dir.path(), VolumeLayout::Single, 1, 8);
    let written = |seed| {
        let block = open(&wanted);
        let base = block.options().generation_base;
        let mut plan = wide(step(&block, 0), 1, 1);
        (plan.seed, plan.work_loop) = (seed, Some(50));
        assert!(run(&block, &plan).failure.is_none());
        drop(block);
        let is_new = |block: &u64| generation(&wanted.paths[0], block * u64::from(BLOCK), BLOCK as usize) > base;
        (0..1024).filter(is_new).collect::<BTreeSet<u64>>()
    };
    let (one, again, other) = (written(7), written(7), written(8));
    // The write that was under way at the end may have gone through in one and not in the other.
    assert!(one.symmetric_difference(&again).count() <= 1, "{one:?}, {again:?}");
    assert!(one.len() > 40 && one.intersection(&other).count() < 15, "{one:?}, {other:?}");
}

#[test]
fn writes_of_many_lanes_to_few_blocks_find_no_fault_in_sound_storage() {
    for (layout, members) in layouts() {
        for engine in engines() {
            let dir = scratch();
            let block = open_as(&checked(dir.path(), layout, members, 1), engine, Durable::None);
            // 128 blocks, 64 requests: most writes meet another one.
            let is_enough = |step: &Step| step.counters.physical_writes.unwrap() > 250;
            let outcome = run_in_time(&block, wide(step(&block, 50), 64, 4), is_enough);
            assert!(outcome.failure.is_none(), "{layout}, {engine}: {:?}", outcome.failure);
            // A second step begins where the first one left the blocks.
            let outcome = run(&block, &wide(step(&block, 90), 32, 4));
            assert!(outcome.failure.is_none(), "{layout}, {engine}: {:?}", outcome.failure);
            let (all, blocks) = (block.options().region_bytes / u64::from(BLOCK), read_back(&block).unwrap());
            assert!((all / 2..=all).contains(&blocks), "{blocks} of {all} blocks were read back");
        }
    }
}

#[test]
fn a_later_run_accepts_what_an_earlier_one_wrote() {
    let dir = scratch();
    let wanted = checked(dir.path(), VolumeLayout::Stripe { unit_bytes: 64 << 10 }, 2, 2);
    for _ in 0..2 {
        let block = open(&wanted);
        assert!(run(&block, &wide(step(&block, 50), 16, 2)).failure.is_none());
        read_back(&block).unwrap();
    }
    let reads = PrepareOptions { permission: None, ..wanted };
    let block = open(&reads);
    let outcome = run(&block, &step(&block, 100));
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(read_back(&block).unwrap(), 0, "nothing was written");
}

/// Flags of the descriptors that this process has on a file.
fn open_flags(path: &Path) -> Vec<i32> {
    let wanted = path.metadata().unwrap();
    let mut flags = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let Ok(found) = entry.path().metadata() else { continue };
        if (found.dev(), found.ino()) != (wanted.dev(), wanted.ino()) {
            continue;
        }
        let info = Path::new("/proc/self/fdinfo").join(entry.file_name());
        let Ok(info) = std::fs::read_to_string(info) else { continue };
        let octal = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
        flags.push(i32::from_str_radix(octal, 8).unwrap());
    }
    flags
}

#[test]
fn files_are_open_as_was_asked() {
    let dir = scratch();
    let path = dir.path().join("member-0");
    for (caching, durability) in [
        (Caching::Direct, Durability::OnSync),
        (Caching::Direct, Durability::EachWrite),
        (Caching::PageCache, Durability::OnSync),
    ] {
        let wanted = PrepareOptions { caching, durability, ..wanted(dir.path(), VolumeLayout::Single, 1, 1) };
        let block = open(&wanted);
        let writable: Vec<i32> =
            open_flags(&path).into_iter().filter(|flags| flags & libc::O_ACCMODE == libc::O_RDWR).collect();
        assert_eq!(writable.len(), 1, "{writable:?}");
        assert_eq!(writable[0] & libc::O_DIRECT != 0, caching == Caching::Direct);
        assert_eq!(writable[0] & libc::O_DSYNC != 0, durability == Durability::EachWrite);
        assert_eq!(block.describe().facts.files.direct_io, Some(caching == Caching::Direct));
    }
}

/// The only device below a path that counts flushes and keeps what is written in a cache of its own.
fn device_with_write_cache(path: &Path) -> Result<String, &'static str> {
    let devices = environment::devices_below(path);
    let [device] = devices.as_slice() else { return Err("it is not known which device is below the files") };
    let queue = |name: &str| std::fs::read_to_string(format!("/sys/class/block/{device}/queue/{name}"));
    if queue("write_cache").is_ok_and(|kind| kind.trim() != "write back") {
        return Err("the device says that it has no write cache, so nothing is ever flushed");
    }
    if queue("fua").is_ok_and(|fua| fua.trim() != "0") {
        return Err("the device takes durable writes without flushes");
    }
    Ok(device.clone())
}

#[test]
fn durable_writes_flush_the_devices_cache() {
    let dir = scratch();
    let device = match device_with_write_cache(dir.path()) {
        Ok(device) => device,
        Err(reason) => return skip(reason),
    };
    for engine in engines() {
        for (durability, durable, writes_each) in [
            (Durability::EachWrite, Durable::Dsync, 1),
            (Durability::OnSync, Durable::Fsync { every: NonZeroU32::new(4).unwrap() }, 4),
        ] {
            let wanted = PrepareOptions { durability, ..wanted(dir.path(), VolumeLayout::Single, 1, 8) };
            let block = open_as(&wanted, engine, durable);
            assert_eq!(block.describe().facts.files.durable, Some(durable));
            // One after the other: flushes of writes side by side may be one.
            let mut plan = wide(step(&block, 0), 1, 1);
            plan.work_loop = Some(40);
            let outcome = run_on(&block, &plan, std::slice::from_ref(&device));
            assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
            let writes = outcome.step.counters.physical_writes.unwrap();
            let Some(flushes) = outcome.step.devices.first().and_then(|device| device.flushes) else {
                return skip("this kernel does not count flushes");
            };
            assert!(writes >= 16, "only {writes} writes");
            // The device's counters are read a moment after the load has begun, which on a busy machine has some writes in it.
            let wanted = writes / writes_each;
            assert!(4 * flushes >= 3 * wanted, "{engine}, {durable}: {flushes} flushes, {writes} writes");
        }
    }
}

#[test]
fn a_sync_reaches_every_member_and_counts_in_the_write_that_waits_for_it() {
    let dir = scratch();
    let wanted = checked(dir.path(), VolumeLayout::Stripe { unit_bytes: 4096 }, 3, 3);
    for engine in engines() {
        let block = open_as(&wanted, engine, Durable::Fsync { every: NonZeroU32::new(3).unwrap() });
        let plan = wide(step(&block, 20), 12, 2);
        let outcome = run_in_time(&block, plan, |step| step.counters.physical_writes.unwrap() > 10);
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        assert_accounts_agree(&outcome.step);
        read_back(&block).unwrap();
    }
}
