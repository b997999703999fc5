//! What happens to data when members fail.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use super::flaky::Flaky;
use super::*;
use crate::nfs::NfsError;
use test_support::scratch::scratch;

const BLOCKS: u64 = 512;

/// A group of flaky members, opened, with a file whose blocks all have version 1.
fn flaky_group(folder: &Path, text: &str, members: usize) -> (GroupSpec, Vec<Arc<Flaky>>, DiskGroup, Arc<StorageFile>) {
    let paths = make_members(folder, &vec![9; members]);
    let spec = spec(text, &paths);
    create(&spec);
    let flaky: Vec<_> = paths.iter().map(|path| Flaky::new(path)).collect();
    let group = open_offers(&spec, flaky_offers(&spec, &flaky)).unwrap();
    let file = Arc::new(group.create_file("f", BLOCKS * BLOCK, Striping::Coarse).unwrap());
    write_all(&file, BLOCKS, 1);
    (spec, flaky, group, file)
}

fn flaky_offers(spec: &GroupSpec, flaky: &[Arc<Flaky>]) -> Vec<MemberOffer> {
    let offer =
        |(name, flaky): (&str, &Arc<Flaky>)| MemberOffer { name: name.to_owned(), file: Ok(flaky.as_storage()) };
    spec.members().map(|(_, name)| name).zip(flaky).map(offer).collect()
}

fn repairs(group: &DiskGroup) -> u64 {
    group.members().iter().map(|member| member.repairs).sum()
}

#[test]
fn a_block_that_cannot_be_read_comes_from_the_other_copy_and_is_written_again() {
    let folder = scratch();
    let (_, flaky, group, file) = flaky_group(folder.path(), "normal,au=1M:0|1", 2);
    flaky.iter().for_each(|member| member.bad.lock().unwrap().push(1 << 20..(1 << 20) + 8192));
    // Both members hold their bad page as some copy of some extent: nothing may be lost, unless both are of the same block.
    let lost = (0..BLOCKS).filter(|number| {
        let mut load = Load::new(&file, 1);
        load.push(Direction::Read, *number, 0);
        load.result().is_err() || load.version(*number, 0) != Some(1)
    });
    let lost = lost.count();
    let both_bad = flaky.iter().all(|member| !member.bad.lock().unwrap().is_empty());
    assert_eq!(lost, usize::from(both_bad), "a block is lost exactly if both of its copies are bad");
    flaky[0].bad.lock().unwrap().clear();
    flaky[1].bad.lock().unwrap().clear();
    flaky[0].bad.lock().unwrap().push(3 << 20..(3 << 20) + 8192);
    let before = repairs(&group);
    (0..BLOCKS).for_each(|number| assert_eq!(read_block(&file, number), Some(1)));
    flaky[1].bad.lock().unwrap().push(4 << 20..(4 << 20) + 8192);
    let mut load = Load::new(&file, 1);
    for number in 0..BLOCKS {
        load.push(Direction::Read, number, 0);
        assert_eq!(load.result().unwrap(), 8192);
        assert_eq!(load.version(number, 0), Some(1));
    }
    // Copies that are not read are not found bad; with primaries on both, at least the scrub finds the rest.
    let scrubbed = scrub(&group, "f");
    assert_eq!(repairs(&group) - before, 2);
    assert!(flaky.iter().all(|member| member.bad.lock().unwrap().is_empty()));
    assert_eq!((scrubbed.lost, scrubbed.left, scrubbed.unsure), (0, 0, 0));
}

#[test]
fn corrupt_data_are_replaced_by_the_copy_that_passes_the_check() {
    let folder = scratch();
    let paths = make_members(folder.path(), &[9, 9]);
    let spec = spec("normal,au=1M:0|1", &paths);
    create(&spec);
    let group = open(&spec).unwrap();
    let file = group.create_file("f", BLOCKS * BLOCK, Striping::Fine).unwrap();
    write_all(&file, BLOCKS, 1);
    // Page 0 of unit 2 of the first member: the block that lies there, whichever it is.
    let member = OpenOptions::new().read(true).write(true).open(&paths[0]).unwrap();
    let place = 3 << 20;
    let mut bytes = [0; 8];
    member.read_exact_at(&mut bytes, place).unwrap();
    let number = u64::from_le_bytes(bytes);
    member.write_all_at(&[0xff; 100], place + 512).unwrap();
    let mut bytes = vec![0; BLOCK as usize];
    let sound = |bytes: &[u8]| version_of(number, bytes).is_some();
    assert!(file.read_sound(&mut bytes, number * BLOCK, &sound).unwrap());
    assert_eq!((version_of(number, &bytes), repairs(&group)), (Some(1), 1));
    let scrubbed = scrub(&group, "f");
    assert_eq!(scrubbed, Scrubbed { bytes: BLOCKS * BLOCK, copies_bytes: 2 * BLOCKS * BLOCK, ..Default::default() });
    // A scrub finds it too, and takes the newer of two that are sound.
    member.write_all_at(&[0xff; 100], place + 512).unwrap();
    let old = OpenOptions::new().read(true).write(true).open(&paths[1]).unwrap();
    let newer = block(number + 1, 7);
    assert_eq!(read_block(&file, number + 1), Some(1));
    let beside = find(&old, &block(number + 1, 1));
    old.write_all_at(&newer, beside).unwrap();
    let scrubbed = scrub(&group, "f");
    assert_eq!((scrubbed.faulty, scrubbed.repaired, scrubbed.lost, scrubbed.unsure), (2, 2, 0, 0));
    assert_eq!((read_block(&file, number), read_block(&file, number + 1)), (Some(1), Some(7)));
    // Both copies gone is a loss that is said.
    member.write_all_at(&[0xff; 100], place + 512).unwrap();
    let twin = find(&old, &block(number, 1));
    old.write_all_at(&[0xff; 100], twin + 512).unwrap();
    assert!(!file.read_sound(&mut bytes, number * BLOCK, &sound).unwrap());
    assert_eq!(scrub(&group, "f").lost, 1);
}

#[test]
fn blocks_of_half_a_page_are_judged_and_repaired_one_by_one() {
    const HALF: u64 = 2048;
    let folder = scratch();
    let paths = make_members(folder.path(), &[9, 9]);
    let spec = spec("normal,au=1M:0|1", &paths);
    create(&spec);
    let group = open(&spec).unwrap();
    let file = group.create_file("f", 1 << 20, Striping::Coarse).unwrap();
    let half = |number: u64| vec![1 + number as u8; HALF as usize];
    (0..512).for_each(|number| file.write_all_at(&half(number % 200), number * HALF).unwrap());
    let judge = |offset: u64, bytes: &[u8]| {
        let is_right = |(number, half_of): (u64, &[u8])| half_of == half((offset / HALF + number) % 200);
        (0..).zip(bytes.chunks_exact(HALF as usize)).all(is_right).then_some(1)
    };
    let members: Vec<_> =
        paths.iter().map(|path| OpenOptions::new().read(true).write(true).open(path).unwrap()).collect();
    // One half of a page is right on one member, and the other on the other.
    let spoil = || {
        for (number, member) in [(4, &members[0]), (5, &members[1])] {
            let at = ((1 << 20)..9 << 20).step_by(HALF as usize).find(|at| {
                let mut bytes = half(0);
                member.read_exact_at(&mut bytes, *at).unwrap();
                bytes == half(number)
            });
            member.write_all_at(&[0xff; 64], at.unwrap()).unwrap();
        }
    };
    spoil();
    for number in [4, 5] {
        let mut bytes = half(0);
        assert!(file.read_sound(&mut bytes, number * HALF, &|bytes| bytes == half(number)).unwrap(), "half {number}");
        assert_eq!(bytes, half(number));
    }
    assert_eq!(repairs(&group), 2);
    spoil();
    let stop = AtomicBool::new(false);
    let scrub = Scrub { grain_bytes: 4096, block_bytes: HALF as u32, judge: &judge, progress: &|_, _| {}, stop: &stop };
    let scrubbed = group.open_file("f").unwrap().scrub(&scrub).unwrap();
    assert_eq!((scrubbed.faulty, scrubbed.lost, scrubbed.repaired, scrubbed.left, scrubbed.unsure), (1, 0, 2, 0, 0));
    assert_eq!(group.open_file("f").unwrap().scrub(&scrub).unwrap().faulty, 0);
}

#[test]
fn a_member_that_fails_writes_is_dropped_and_gets_only_what_it_missed() {
    let folder = scratch();
    let (spec, flaky, group, file) = flaky_group(folder.path(), "normal,au=1M:0,1|2,3", 4);
    // A clean close: what was written so far need not be compared again.
    drop((file, group));
    let group = open_offers(&spec, flaky_offers(&spec, &flaky)).unwrap();
    assert_eq!(group.resynced(), Resynced::default());
    let file = Arc::new(group.open_file("f").unwrap());
    let mut load = Load::new(&file, 4);
    // Written once before, so that the next write of an extent is the first that the member fails.
    for number in (1..BLOCKS).step_by(128) {
        load.write(number, 2, 0);
        assert_eq!(load.result().unwrap(), 8192);
    }
    flaky[0].fail_writes.store(true, Ordering::Relaxed);
    let mut written = Vec::new();
    for number in (0..BLOCKS).step_by(128) {
        load.write(number, 2, 0);
        assert_eq!(load.result().unwrap(), 8192);
        written.push(number);
        if !group.members()[0].online {
            break;
        }
    }
    assert!(!group.members()[0].online, "no extent had a copy on the member");
    let channels = file.virtual_file().unwrap().take_channels();
    assert_eq!(channels.iter().map(|member| member.drops).collect::<Vec<_>>(), [Some(1), Some(0), Some(0), Some(0)]);
    assert_eq!(group.notes().len(), 1);
    assert!(group.notes()[0].contains("was dropped: a write failed"), "{:?}", group.notes());
    let reads = flaky[0].reads.load(Ordering::Relaxed);
    (0..BLOCKS).for_each(|number| assert!(read_block(&file, number).is_some()));
    assert_eq!(flaky[0].reads.load(Ordering::Relaxed), reads, "a member that is dropped is not read");
    drop((load, file, group));
    flaky[0].fail_writes.store(false, Ordering::Relaxed);
    let before = flaky[0].written_bytes.load(Ordering::Relaxed);
    let group = open_offers(&spec, flaky_offers(&spec, &flaky)).unwrap();
    let resynced = group.resynced();
    assert!(resynced.copied_bytes > 0 && resynced.copied_bytes <= (written.len() as u64) << 20, "{resynced:?}");
    let copied = flaky[0].written_bytes.load(Ordering::Relaxed) - before;
    assert!(copied < 3 << 20, "{copied} bytes were written to it, the group's own pages included");
    assert!(group.members()[0].online);
    let file = group.open_file("f").unwrap();
    let channels = file.virtual_file().unwrap().take_channels();
    assert_eq!(channels[0].resynced_bytes, Some(resynced.copied_bytes));
    written.iter().for_each(|number| assert_eq!(read_block(&file, *number), Some(2)));
    assert_eq!(scrub(&group, "f").faulty, 0);
}

#[test]
fn the_loss_of_both_copies_is_an_error_of_the_request_and_of_the_group() {
    let folder = scratch();
    let (spec, flaky, group, file) = flaky_group(folder.path(), "normal,au=1M:0|1", 2);
    let mut load = Load::new(&file, 1);
    flaky.iter().for_each(|member| member.fail_writes.store(true, Ordering::Relaxed));
    load.write(5, 2, 0);
    assert!(load.result().is_err());
    assert!(file.is_linked().unwrap_err().to_string().contains("disk group `data` has lost data"));
    assert!(file.write_all_at(&block(5, 2), 5 * BLOCK).is_err());
    load.write(5, 2, 0);
    assert!(load.result().is_err(), "it never comes back by itself");
    drop((load, file, group));
    // Both failed at once: the one that was dropped first, if it was remembered at all, is not enough.
    flaky.iter().for_each(|member| member.fail_writes.store(false, Ordering::Relaxed));
    let group = open_offers(&spec, flaky_offers(&spec, &flaky)).unwrap();
    assert_eq!(scrub(&group, "f").faulty, 0);
}

#[test]
fn a_member_on_a_server_is_dropped_for_an_answer_and_not_for_a_silence() {
    let folder = scratch();
    let (_, flaky, group, file) = flaky_group(folder.path(), "normal,au=1M:0|1", 2);
    *flaky[1].asked.lock().unwrap() = Some(|| io::ErrorKind::ConnectionRefused.into());
    assert!(file.is_linked().unwrap());
    assert!(group.members()[1].online, "a load's connections are made again after such a moment");
    let other = || NfsError::OtherFile { name: "/vol/m1".to_owned(), before: 7, now: 8 }.into();
    *flaky[1].asked.lock().unwrap() = Some(other);
    assert!(file.is_linked().unwrap());
    assert!(!group.members()[1].online && group.notes()[0].contains("is another file now"), "{:?}", group.notes());
}

#[test]
fn a_server_that_cannot_be_asked_any_more_is_named_where_nobody_has_what_it_had() {
    let folder = scratch();
    let (_, flaky, _, file) = flaky_group(folder.path(), "external,au=1M:0,1", 2);
    let mut load = Load::new(&file, 1);
    load.write(5, 2, 0);
    assert_eq!(load.result().unwrap(), 8192);
    flaky[0].is_gone.store(true, Ordering::Relaxed);
    load.write(6, 2, 0);
    let error = load.queue.wait(Patience::Until(Duration::from_secs(5)), &mut load.done).unwrap_err();
    assert!(error.to_string().contains("no path to the server answers"), "{error}");
    assert!(load.done.is_empty(), "no request is said to have met a bad place");
}

#[test]
fn external_redundancy_passes_errors_on() {
    let folder = scratch();
    let (_, flaky, group, file) = flaky_group(folder.path(), "external,au=1M:0,1", 2);
    let mut load = Load::new(&file, 1);
    flaky[0].bad.lock().unwrap().push(1 << 20..2 << 20);
    let errors = (0..BLOCKS).filter(|number| {
        load.push(Direction::Read, *number, 0);
        load.result().is_err()
    });
    assert_eq!(errors.count(), 128);
    flaky[0].fail_writes.store(true, Ordering::Relaxed);
    let errors = (0..BLOCKS).filter(|number| {
        load.write(*number, 2, 0);
        load.result().is_err()
    });
    assert_eq!(errors.count(), 256);
    assert!(group.members().iter().all(|member| member.online), "there is nothing that could stand for it");
    assert_eq!(group.map_writes(), 1, "without copies nothing is marked");
}

#[test]
fn reads_go_to_the_preferred_failure_group_and_are_counted_by_member() {
    let folder = scratch();
    let paths = make_members(folder.path(), &[9, 9, 9, 9]);
    let asked = |text: &str| spec(text, &paths);
    create(&asked("normal,au=1M:0,1|2,3"));
    for (text, near) in [("normal:0,1|2,3", None), ("normal,preferred=2:0,1|2,3", Some(2))] {
        let group = open(&asked(text)).unwrap();
        let file = match near {
            None => Arc::new(group.create_file("f", BLOCKS * BLOCK, Striping::Coarse).unwrap()),
            Some(_) => Arc::new(group.open_file("f").unwrap()),
        };
        if near.is_none() {
            write_all(&file, BLOCKS, 1);
        }
        let mut load = Load::new(&file, 8);
        for number in 0..BLOCKS {
            load.push(Direction::Read, number, 0);
            assert!(load.result().is_ok());
        }
        load.write(0, 1, 0);
        assert!(load.result().is_ok());
        let members = file.virtual_file().unwrap().take_channels();
        let reads = |group: &str| {
            let of_group = members.iter().filter(|member| member.within.as_deref() == Some(group));
            of_group.map(|member| member.reads).sum::<u64>()
        };
        let (one, two) = (reads("failure group 1"), reads("failure group 2"));
        assert_eq!(members.len(), 4);
        assert_eq!(members.iter().map(|member| member.writes).sum::<u64>(), 2, "each write goes to both copies");
        assert!(
            members.iter().all(|member| (member.of.as_str(), member.errors, member.repairs) == ("data", 0, Some(0)))
        );
        match near {
            None => assert_eq!((one, two), (256, 256), "primaries are spread evenly"),
            Some(_) => assert_eq!((one, two), (0, 512)),
        }
    }
}

#[test]
fn members_of_two_kinds_work_beside_each_other() {
    let folder = scratch();
    let paths = make_members(folder.path(), &[9, 9]);
    let spec = spec("normal,au=1M:0|1", &paths);
    create(&spec);
    let mut offers = offers(&spec);
    offers[1].file = Ok(Flaky::new(&paths[1]).as_storage());
    let group = open_offers(&spec, offers).unwrap();
    let file = Arc::new(group.create_file("f", BLOCKS * BLOCK, Striping::Fine).unwrap());
    let mut load = Load::new(&file, 16);
    for first in (0..BLOCKS).step_by(16) {
        (0..16).for_each(|slot| load.write(first + slot, 3, slot));
        let mut finished = 0;
        while finished < 16 {
            let done = load.wait();
            assert!(done.iter().all(|done| done.bytes().unwrap() == 8192));
            finished += done.len();
        }
    }
    load.push(Direction::Sync, 0, 0);
    load.result().unwrap();
    load.push(Direction::Nothing, 0, 0);
    load.result().unwrap();
    (0..BLOCKS).for_each(|number| assert_eq!(read_block(&file, number), Some(3)));
    assert_eq!(scrub(&group, "f").faulty, 0);
    // The end of the file.
    load.push(Direction::Read, BLOCKS, 0);
    assert_eq!(load.result().unwrap(), 0);
    load.push(Direction::Write, BLOCKS, 0);
    assert!(load.result().is_err());
}
