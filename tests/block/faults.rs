//! Planted faults: each kind is found while load runs and when what was written is read back.

use std::path::Path;

use crate::common::raw::{
    BLOCK, bytes_at, checked, layouts, open, put, read_back, run, sequential, step, wanted, wide,
};
use crate::common::scratch;
use plimsoll::targets::TargetError;
use plimsoll::targets::block::{Block, BlockError, VolumeLayout};

const SIZE: u64 = BLOCK as u64;
/// Somewhere inside the volume.
const PLACE: u64 = 40 * SIZE;

/// A volume of one file of which every block was written, and what was in the file before that.
fn written(folder: &Path) -> (Block, Vec<u8>) {
    let wanted = checked(folder, VolumeLayout::Single, 1, 1);
    let block = open(&wanted);
    let before = bytes_at(&wanted.paths[0], 0, 1 << 20);
    let mut plan = wide(sequential(step(&block, 0)), 1, 1);
    plan.work_loop = Some(300);
    let outcome = run(&block, &plan);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(read_back(&block).unwrap(), 128, "every block was written");
    (block, before)
}

/// Plants a fault in a volume that was written, and gives what the load and the reading back say of it.
fn found(plant: impl Fn(&Path, &[u8])) -> [String; 2] {
    let dir = scratch();
    let (block, before) = written(dir.path());
    let path = dir.path().join("member-0");
    plant(&path, &before);
    let mut plan = step(&block, 100);
    plan.work_loop = None;
    let outcome = run(&block, &plan);
    [outcome.failure, read_back(&block).err()].map(|error| {
        let error = error.expect("the fault is found");
        assert!(matches!(error, TargetError::Block(BlockError::BadData { .. })), "{error}");
        assert!(error.is_data_fault() && error.hint().is_some());
        let reported = error.to_string();
        assert!(reported.contains("member-0"), "{reported}");
        reported
    })
}

#[test]
fn a_changed_byte_of_a_stamp_is_found() {
    for byte in [0, 4, 9, 17, 24, 31] {
        let offset = PLACE + 512 + byte;
        let reported = found(|path, _| put(path, offset, &[bytes_at(path, offset, 1)[0] ^ 0x10]));
        assert!(reported[0].contains(&format!("offset {}", PLACE + 512)), "byte {byte}: {reported:?}");
        assert_eq!(reported[0], reported[1]);
    }
}

#[test]
fn swapped_blocks_are_found() {
    let reported = found(|path, _| {
        let (one, other) = (bytes_at(path, PLACE, SIZE as usize), bytes_at(path, 0, SIZE as usize));
        put(path, 0, &one);
        put(path, PLACE, &other);
    });
    assert!(reported[1].contains(&format!("the sector at offset 0 holds the data of offset {PLACE}")), "{reported:?}");
}

#[test]
fn a_lost_write_is_found() {
    let reported = found(|path, before| put(path, PLACE, &before[PLACE as usize..][..SIZE as usize]));
    for reported in reported {
        assert!(reported.contains(&format!("an acknowledged write at offset {PLACE} is lost: generation 1 is there")));
    }
}

#[test]
fn half_a_write_is_found() {
    let half = SIZE as usize / 2;
    let reported = found(|path, before| put(path, PLACE, &before[PLACE as usize..][..half]));
    assert!(reported[1].contains(&format!("the write of 8192 bytes at offset {PLACE} is torn")), "{reported:?}");
    assert_eq!(reported[0], reported[1]);
}

#[test]
fn a_sector_of_zeroes_is_found() {
    let reported = found(|path, _| put(path, PLACE + 1024, &[0; 512]));
    assert!(reported[0].contains(&format!("the sector at offset {} was never written", PLACE + 1024)), "{reported:?}");
    assert_eq!(reported[0], reported[1]);
}

#[test]
fn data_of_another_file_and_of_another_program_are_found() {
    let elsewhere = scratch();
    drop(open(&wanted(elsewhere.path(), VolumeLayout::Single, 1, 1)));
    let foreign = bytes_at(&elsewhere.path().join("member-0"), PLACE, SIZE as usize);
    let reported = found(|path, _| put(path, PLACE, &foreign));
    assert!(reported[0].contains("belongs to file"), "{reported:?}");
    let reported = found(|path, _| put(path, PLACE, &[b'x'; SIZE as usize]));
    assert!(reported[0].contains("has no stamp of Plimsoll"), "{reported:?}");
}

/// A spoilt block that load reads and writes is reported, or was healed by a write before anybody read it: nothing else.
#[test]
fn a_fault_is_found_among_many_writes() {
    for (layout, members) in layouts() {
        let dir = scratch();
        let wanted = checked(dir.path(), layout, members, 1);
        let block = open(&wanted);
        // In all layouts this is the first copy of some block.
        put(&wanted.paths[members - 1], 64 << 10, &[0; 4096]);
        let outcome = run(&block, &wide(step(&block, 90), 32, 2));
        // A write may heal it before it is read.
        if let Some(error) = &outcome.failure {
            assert!(matches!(error, TargetError::Block(BlockError::BadData { .. })), "{layout}: {error}");
        } else {
            read_back(&block).unwrap();
        }
    }
}

#[test]
fn a_lost_second_copy_is_found_when_it_is_read_back() {
    const UNIT: u64 = 64 << 10;
    let dir = scratch();
    let wanted = checked(dir.path(), VolumeLayout::Mirror { unit_bytes: UNIT }, 2, 1);
    let block = open(&wanted);
    let half = block.options().region_bytes / 2;
    // The second copy of the volume's first block.
    let before = bytes_at(&wanted.paths[1], half, SIZE as usize);
    let mut plan = wide(sequential(step(&block, 0)), 1, 1);
    plan.work_loop = Some(200);
    assert!(run(&block, &plan).failure.is_none());
    read_back(&block).unwrap();
    put(&wanted.paths[1], half, &before);
    let reads = run(&block, &step(&block, 100));
    assert!(reads.failure.is_none(), "reads go to the first copy: {:?}", reads.failure);
    let reported = read_back(&block).unwrap_err().to_string();
    assert!(
        reported.contains("member-1") && reported.contains(&format!("write at offset {half} is lost")),
        "{reported}"
    );
}

#[test]
fn a_file_that_was_not_laid_out_cannot_be_checked() {
    use plimsoll::targets::block::Preparation;
    let dir = scratch();
    let wanted = checked(dir.path(), VolumeLayout::Single, 1, 1);
    std::fs::write(&wanted.paths[0], vec![7; 1 << 20]).unwrap();
    std::fs::File::open(&wanted.paths[0]).unwrap().sync_all().unwrap();
    let read_only = plimsoll::targets::block::PrepareOptions { permission: None, ..wanted };
    let error = Preparation::look(read_only).unwrap_err();
    assert!(matches!(error, TargetError::Block(BlockError::NotLaidOut { .. })), "{error}");
}
