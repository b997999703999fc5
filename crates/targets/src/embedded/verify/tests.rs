use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use tempfile::TempDir;

use super::*;
use crate::block::safety::Permission;
use crate::database::{Filling, Replace, SetupRequest};
use crate::embedded::Destinations;
use crate::embedded::block::{self, BlockShape};
use crate::embedded::info::{State, info};
use crate::embedded::ledger::LedgerPlace;
use crate::embedded::setup::{EngineRequest, plan, run};
use model::workload::Rng;
use test_support::scratch::scratch;

const BLOCK: usize = 8192;

fn set_up() -> TempDir {
    let dir = scratch();
    let request = EngineRequest {
        data: SetupRequest {
            schemas: 3,
            scale_blocks: 500,
            scan_blocks: 20,
            block_bytes: BLOCK as u32,
            filling: Filling::Incompressible,
            streams: 2,
            seed: 7,
            is_seed_asked: true,
            replace: Replace::Refuse,
        },
        redo_file_bytes: 8 << 20,
        redo_files: 3,
        destinations: Destinations::default(),
        permission: Permission::default(),
        io_engine: None,
    };
    run(plan(dir.path(), &request).unwrap(), &|_| {}, &AtomicBool::new(false)).unwrap();
    dir
}

fn verified(dir: &TempDir) -> VerifyReport {
    verify(dir.path(), None, None, false, &|_| {}, &AtomicBool::new(false)).unwrap()
}

fn data(dir: &TempDir) -> PathBuf {
    dir.path().join("data-0001.dbf")
}

fn read_block(dir: &TempDir, block: u64) -> Vec<u8> {
    let mut contents = vec![0; BLOCK];
    let file = fs::File::open(data(dir)).unwrap();
    file.read_exact_at(&mut contents, block * BLOCK as u64).unwrap();
    contents
}

fn write_block(dir: &TempDir, block: u64, contents: &[u8]) {
    let file = OpenOptions::new().write(true).open(data(dir)).unwrap();
    file.write_all_at(contents, block * BLOCK as u64).unwrap();
    file.sync_all().unwrap();
}

/// Expects exactly these bad blocks, each with this word in its fault.
fn expect(dir: &TempDir, bad: &[(u64, &str)]) {
    let report = verified(dir);
    assert!(!report.is_sound());
    assert_eq!((report.bad_block_count, report.bad_blocks.len()), (bad.len() as u64, bad.len()), "{report:?}");
    for (found, (block, word)) in report.bad_blocks.iter().zip(bad) {
        assert_eq!((found.block, found.offset, &found.path), (*block, block * BLOCK as u64, &data(dir)));
        assert!(found.fault.contains(word), "{found:?}");
    }
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}

#[test]
fn sound_data_are_sound_and_all_of_them_are_read() {
    let dir = set_up();
    let (reported, total) = (std::sync::Mutex::new(0), 1560 * BLOCK as u64);
    let report = verify(
        dir.path(),
        None,
        Some(IoEngine::Psync),
        false,
        &|progress| {
            assert_eq!(progress.total_bytes, total);
            *reported.lock().unwrap() = progress.done_bytes;
        },
        &AtomicBool::new(false),
    )
    .unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.blocks, report.bytes, *reported.lock().unwrap()), (1560, total, total));
    assert_eq!((report.commits_acknowledged, report.commits_found), (Some(0), Some(0)));
    assert_eq!(report.recovery, None);
}

#[test]
fn a_flipped_bit_is_found_in_rows_and_in_scan_tables() {
    let dir = set_up();
    for block in [0, 777, 1559] {
        let mut contents = read_block(&dir, block);
        contents[4000] ^= 1;
        write_block(&dir, block, &contents);
    }
    expect(&dir, &[(0, "flipped bit"), (777, "flipped bit"), (1559, "flipped bit")]);
}

#[test]
fn a_pair_of_swapped_blocks_is_found() {
    let dir = set_up();
    let (one, other) = (read_block(&dir, 3), read_block(&dir, 900));
    write_block(&dir, 3, &other);
    write_block(&dir, 900, &one);
    expect(&dir, &[(3, "it is block 900"), (900, "it is block 3")]);
}

#[test]
fn a_zeroed_block_and_a_block_of_other_data_are_found() {
    let (dir, other) = (set_up(), set_up());
    write_block(&dir, 10, &[0; BLOCK]);
    write_block(&dir, 20, &read_block(&other, 20));
    expect(&dir, &[(10, "does not begin as a block"), (20, "another data set")]);
}

#[test]
fn a_block_whose_last_write_was_lost_is_found() {
    let dir = set_up();
    let descriptor = Descriptor::load(dir.path()).unwrap();
    let layout = descriptor.layout(dir.path()).unwrap();
    let (mut control, mut checkpoint) = Control::open(dir.path(), descriptor.database).unwrap();
    let map = ChangeMap::load(dir.path(), checkpoint.change_map, layout.row_blocks()).unwrap();
    map.set(50, 1);
    map.set(51, 1);
    checkpoint.change_map = 1;
    map.save(dir.path(), 1).unwrap();
    control.save(&checkpoint).unwrap();
    // Block 50 was written with its change; the write of block 51 never came.
    let mut changed = vec![0; BLOCK];
    let shape = BlockShape::new(BLOCK).unwrap();
    shape.build(&mut changed, layout.identity(50), Filling::Incompressible, &mut Rng::new(1, 1));
    block::note_change_in(&mut changed, 1, 512, 0);
    block::seal(&mut changed);
    write_block(&dir, 50, &changed);
    expect(&dir, &[(51, "stale")]);
}

#[test]
fn a_truncated_file_costs_exactly_the_blocks_behind_its_end() {
    let dir = set_up();
    let file = OpenOptions::new().write(true).open(data(&dir)).unwrap();
    file.set_len(1000 * BLOCK as u64 + 512).unwrap();
    let mut contents = read_block(&dir, 5);
    contents[100] ^= 0x80;
    write_block(&dir, 5, &contents);
    let report = verified(&dir);
    assert_eq!(report.bad_block_count, 561);
    assert_eq!(report.bad_blocks.iter().map(|bad| bad.block).collect::<Vec<_>>()[..3], [5, 1000, 1001]);
    assert!(report.bad_blocks[1].fault.contains("truncated"));
    assert!(report.faults[0].contains("was truncated"), "{:?}", report.faults);
}

#[test]
fn a_missing_file_costs_all_its_blocks_and_the_list_stays_short() {
    let dir = set_up();
    fs::remove_file(data(&dir)).unwrap();
    let report = verified(&dir);
    assert_eq!((report.bad_block_count, report.bad_blocks.len()), (1560, LISTED_BAD_BLOCKS));
    assert_eq!((report.bad_blocks[0].block, report.bad_blocks[999].block), (0, 999));
    assert_eq!(report.faults.len(), 1);
}

#[test]
fn a_damaged_change_map_is_reported_and_blocks_are_still_read() {
    let dir = set_up();
    let path = dir.path().join("changes-a.map");
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    write_block(&dir, 10, &[0; BLOCK]);
    let report = verified(&dir);
    assert_eq!((report.faults.len(), report.bad_block_count), (1, 1), "{report:?}");
}

#[test]
fn recovery_that_cannot_be_done_is_reported_and_blocks_are_still_read() {
    let dir = set_up();
    let database = Descriptor::load(dir.path()).unwrap().database;
    let (mut control, mut checkpoint) = Control::open(dir.path(), database).unwrap();
    checkpoint.clean = false;
    control.save(&checkpoint).unwrap();
    assert_eq!(info(dir.path()).unwrap().state, State::NeedsRecovery);
    fs::remove_file(dir.path().join("changes-a.map")).unwrap();
    write_block(&dir, 10, &[0; BLOCK]);
    let report = verified(&dir);
    assert_eq!((report.faults.len(), report.bad_block_count), (1, 1), "{report:?}");
    assert_eq!((report.commits_acknowledged, report.commits_found), (None, None));
}

#[test]
fn a_commit_that_was_acknowledged_and_is_not_there_is_lost() {
    let dir = set_up();
    let place = LedgerPlace::new(dir.path(), None, 0);
    Ledger::open(&place).unwrap().note(4, &[9], &mut Vec::new()).unwrap();
    let report = verified(&dir);
    assert!(!report.is_sound());
    assert_eq!(report.lost, [LostCommits { session: 5, acknowledged: 9, found: 0 }]);
    assert_eq!((report.commits_acknowledged, report.commits_found), (Some(9), Some(0)));
}

#[test]
fn what_a_ledger_that_lost_entries_does_not_know_is_not_proven() {
    let dir = set_up();
    let database = Descriptor::load(dir.path()).unwrap().database;
    let (mut control, mut checkpoint) = Control::open(dir.path(), database).unwrap();
    checkpoint.commits[4] = 1;
    control.save(&checkpoint).unwrap();
    let report = verified(&dir);
    assert!(report.is_sound() && report.is_proven(), "one commit may not have been acknowledged");
    checkpoint.commits[4] = 1_754;
    control.save(&checkpoint).unwrap();
    let report = verified(&dir);
    assert!(report.is_sound() && !report.is_proven(), "{report:?}");
    assert_eq!(report.ledger, Some(LedgerReach::Behind { sessions: 1, commits: 1_753 }));
}

#[test]
fn verifying_can_be_stopped_and_needs_whole_data() {
    let dir = set_up();
    let stopped = verify(dir.path(), None, None, false, &|_| {}, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(TargetError::Interrupted)), "{stopped:?}");
    let directory = Directory::lock(dir.path()).unwrap();
    let locked = verify(dir.path(), None, None, false, &|_| {}, &AtomicBool::new(false));
    assert!(matches!(locked, Err(TargetError::Locked { .. })), "{locked:?}");
    directory.begin_setup(None).unwrap();
    drop(directory);
    let half = verify(dir.path(), None, None, false, &|_| {}, &AtomicBool::new(false));
    assert!(matches!(half, Err(TargetError::HalfSetUp { .. })), "{half:?}");
}

#[test]
fn info_tells_the_state_and_takes_nothing() {
    let dir = set_up();
    let found = info(dir.path()).unwrap();
    assert_eq!(found.state, State::ClosedCleanly);
    assert_eq!(found.descriptor.unwrap().schemas, 3);
    assert_eq!(found.checkpoint.unwrap().redo_position, 0);
    assert!(found.files.iter().any(|file| file.name == "data-0001.dbf" && file.bytes == 1560 * BLOCK as u64));
    assert_eq!(found.bytes, found.files.iter().map(|file| file.bytes).sum::<u64>());

    let held = Directory::lock(dir.path()).unwrap();
    let by = format!("process {}", std::process::id());
    assert_eq!(info(dir.path()).unwrap().state, State::InUse { by: by.clone() });
    held.begin_setup(None).unwrap();
    assert_eq!(info(dir.path()).unwrap().state, State::UnfinishedSetUp { in_use_by: Some(by) });
    held.end_setup().unwrap();
    drop(held);
    fs::write(dir.path().join("control.ctl"), "x").unwrap();
    assert!(matches!(info(dir.path()).unwrap().state, State::Damaged { .. }));
    fs::remove_file(dir.path().join("database.json")).unwrap();
    assert!(matches!(info(dir.path()), Err(TargetError::NotSetUp { .. })));
    assert!(matches!(info(&dir.path().join("nowhere")), Err(TargetError::NotSetUp { .. })));
}
