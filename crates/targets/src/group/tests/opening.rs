//! Which members are believed.

use std::fs;
use std::os::unix::fs::FileExt;

use super::*;
use test_support::scratch::scratch;

fn said(spec: &GroupSpec) -> String {
    let error = open(spec).unwrap_err();
    assert!(error.hint().is_some(), "{error}");
    error.to_string()
}

/// A group over three failure groups of one member, with a file of which all blocks have version 1.
fn group_of_three(folder: &Path) -> Vec<PathBuf> {
    let paths = make_members(folder, &[9, 9, 9]);
    let spec = spec("normal,au=1M:0|1|2", &paths);
    create(&spec);
    let group = open(&spec).unwrap();
    write_all(&group.create_file("f", 512 * BLOCK, Striping::Coarse).unwrap(), 512, 1);
    paths
}

#[test]
fn a_pipe_in_the_place_of_a_member_is_refused_and_not_waited_for() {
    let folder = scratch();
    let paths = make_members(folder.path(), &[9, 9]);
    let spec = spec("external,au=1M:0,1", &paths);
    create(&spec);
    fs::remove_file(&paths[1]).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&paths[1]).status();
    if !made.is_ok_and(|made| made.success()) {
        test_support::skip::skip("no mkfifo");
        return;
    }
    let said = said(&spec);
    assert!(said.contains("m1` is not a member of a disk group"), "{said}");
}

#[test]
fn files_are_made_found_listed_and_removed() {
    let folder = scratch();
    let paths = make_members(folder.path(), &[9, 17]);
    let spec = spec("external,au=1M:0,1", &paths);
    create(&spec);
    let group = open(&spec).unwrap();
    assert_eq!(group.free(), model::units::Bytes::mib(24));
    let file = group.create_file("data_1", 5 << 20, Striping::Coarse).unwrap();
    group.create_file("redo", 3 << 20, Striping::Fine).unwrap();
    assert_eq!(file.path(), Path::new("+data/data_1"));
    assert!(matches!(group.create_file("redo", 1, Striping::Fine), Err(GroupError::Exists { .. })));
    assert!(matches!(group.create_file("big", 17 << 20, Striping::Fine), Err(GroupError::Full { .. })));
    assert!(matches!(group.remove_file("data_1"), Err(GroupError::FileInUse { .. })));
    assert!(matches!(group.rename_file("redo", "data_1"), Err(GroupError::FileInUse { .. })));
    // A file keeps what makes it itself under another name, also while it is open.
    let identity = group.files()[0].identity;
    group.rename_file("data_1", "data_2").unwrap();
    assert_eq!((group.files()[0].name.as_str(), group.files()[0].identity), ("data_2", identity));
    assert!(matches!(group.open_file("data_1"), Err(GroupError::NoFile { .. })));
    assert!(matches!(group.rename_file("data_2", "a/b"), Err(GroupError::FileName { .. })));
    drop(file);
    // What had the name is gone.
    group.create_file("next", 1 << 20, Striping::Coarse).unwrap();
    group.rename_file("next", "data_2").unwrap();
    assert_ne!(group.files().iter().find(|file| file.name == "data_2").unwrap().identity, identity);
    group.remove_file("data_2").unwrap();
    assert!(matches!(group.remove_file("data_2"), Err(GroupError::NoFile { .. })));
    drop(group);
    let group = open(&spec).unwrap();
    let files = group.files();
    assert_eq!(
        (files.len(), files[0].name.as_str(), files[0].bytes, files[0].striping),
        (1, "redo", 3 << 20, Striping::Fine)
    );
    assert_eq!(group.free(), model::units::Bytes::mib(21));
}

#[test]
fn swapped_foreign_and_other_members_are_refused() {
    let folder = scratch();
    let paths = group_of_three(folder.path());
    assert!(
        said(&spec("normal:1|0|2", &paths)).contains("is member 2 of the group and stands in the place of member 1")
    );
    let other = scratch();
    let others = group_of_three(other.path());
    let mixed = [paths[0].clone(), paths[1].clone(), others[2].clone()];
    assert!(
        said(&spec("normal:0|1|2", &mixed)).contains("belongs to another one of this name, not to disk group `data`")
    );
    assert!(
        said(&spec("external:0,1,2", &paths))
            .contains("has 2 copies of its data, but one copy of its data was requested")
    );
    assert!(said(&spec("normal,au=2M:0|1|2", &paths)).contains("an allocation unit of 1 MiB, but 2 MiB was requested"));
    assert!(
        said(&spec("normal:0,1|2", &paths))
            .contains("failure groups of 1 + 1 + 1 members, but failure groups of 2 + 1 members")
    );
    let blank = other.path().join("blank");
    fs::write(&blank, vec![0; 9 << 20]).unwrap();
    let lacking = [paths[0].clone(), paths[1].clone(), blank];
    assert!(said(&spec("normal:0|1|2", &lacking)).contains("is not a member of a disk group"));
    let small = folder.path().join("small");
    fs::write(&small, vec![0; 1 << 20]).unwrap();
    let small = [small];
    let error = DiskGroup::create(&spec("external,au=1M:0", &small), &[storage(&small[0]).unwrap()]).unwrap_err();
    assert!(error.to_string().contains("has 1 MiB, and 2 MiB are needed at least"));
}

#[test]
fn a_missing_member_is_borne_as_long_as_the_others_are_sure_to_be_the_newest() {
    let folder = scratch();
    let paths = group_of_three(folder.path());
    let whole = spec("normal:0|1|2", &paths);
    let aside = folder.path().join("aside");
    fs::rename(&paths[2], &aside).unwrap();
    let group = open(&whole).unwrap();
    assert!(group.notes()[0].contains("was dropped: No such file"), "{:?}", group.notes());
    let file = group.open_file("f").unwrap();
    (0..512).for_each(|number| assert_eq!(read_block(&file, number), Some(1)));
    write_all(&file, 10, 2);
    drop((file, group));
    // A second one is too much, with or without force.
    let second = folder.path().join("second");
    fs::rename(&paths[1], &second).unwrap();
    assert!(said(&whole).contains("no copy of some data is left"));
    fs::rename(&second, &paths[1]).unwrap();
    // It comes back, and gets what it missed before it is read.
    fs::rename(&aside, &paths[2]).unwrap();
    let group = open(&whole).unwrap();
    assert!(group.members()[2].online);
    assert_eq!(scrub(&group, "f").faulty, 0);
    let file = group.open_file("f").unwrap();
    (0..10).for_each(|number| assert_eq!(read_block(&file, number), Some(2)));
}

#[test]
fn of_two_failure_groups_neither_is_believed_alone_and_never_both_apart() {
    let folder = scratch();
    let paths = make_members(folder.path(), &[9, 9]);
    let whole = spec("normal,au=1M:0|1", &paths);
    let forced = spec("normal,force:0|1", &paths);
    create(&whole);
    write_all(&open(&whole).unwrap().create_file("f", 64 * BLOCK, Striping::Coarse).unwrap(), 64, 1);
    let aside = folder.path().join("aside");
    fs::rename(&paths[1], &aside).unwrap();
    assert!(said(&whole).contains("cannot tell whether the others have the newest data"));
    write_all(&open(&forced).unwrap().open_file("f").unwrap(), 64, 2);
    // The other one alone has older data, and nobody could tell.
    fs::rename(&paths[0], folder.path().join("first")).unwrap();
    fs::rename(&aside, &paths[1]).unwrap();
    assert!(said(&whole).contains("cannot tell whether the others"));
    write_all(&open(&forced).unwrap().open_file("f").unwrap(), 64, 3);
    // Each went on without the other.
    fs::rename(folder.path().join("first"), &paths[0]).unwrap();
    assert!(said(&whole).contains("were changed apart from each other"));
    assert!(said(&forced).contains("were changed apart from each other"));
    // One of them is given up.
    fs::write(&paths[1], vec![0; 9 << 20]).unwrap();
    let group = open(&spec("normal,rebuild:0|1", &paths)).unwrap();
    assert_eq!(scrub(&group, "f"), Scrubbed { bytes: 64 * BLOCK, copies_bytes: 2 * 64 * BLOCK, ..Default::default() });
    assert_eq!(read_block(&group.open_file("f").unwrap(), 9), Some(2));
}

#[test]
fn an_old_copy_of_a_member_is_not_read() {
    let folder = scratch();
    let paths = group_of_three(folder.path());
    let whole = spec("normal:0|1|2", &paths);
    let old = fs::read(&paths[0]).unwrap();
    for version in 2..4 {
        write_all(&open(&whole).unwrap().open_file("f").unwrap(), 512, version);
    }
    fs::write(&paths[0], old).unwrap();
    let group = open(&whole).unwrap();
    assert!(group.notes()[0].contains("it is stale: it has generation"), "{:?}", group.notes());
    let file = group.open_file("f").unwrap();
    (0..512).for_each(|number| assert_eq!(read_block(&file, number), Some(3)));
    assert_eq!(scrub(&group, "f").faulty, 0);
}

#[test]
fn a_truncated_member_gets_everything_again() {
    let folder = scratch();
    let paths = group_of_three(folder.path());
    let whole = spec("normal:0|1|2", &paths);
    let group = open(&whole).unwrap();
    let file = Arc::new(group.open_file("f").unwrap());
    OpenOptions::new().write(true).open(&paths[1]).unwrap().set_len(2 << 20).unwrap();
    // Found by a look at the file's health, or by the next request that fails.
    assert!(file.is_linked().unwrap());
    assert!(group.notes()[0].contains("was dropped: it was truncated"), "{:?}", group.notes());
    (0..512).for_each(|number| assert_eq!(read_block(&file, number), Some(1)));
    drop((file, group));
    OpenOptions::new().write(true).open(&paths[1]).unwrap().set_len(9 << 20).unwrap();
    let group = open(&whole).unwrap();
    assert!(group.members()[1].online);
    assert_eq!(scrub(&group, "f").faulty, 0, "what was cut off is not zeroes now");
}

#[test]
fn opening_for_reads_changes_nothing() {
    let folder = scratch();
    let paths = group_of_three(folder.path());
    let before: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    let whole = spec("normal,preferred=2:0|1|2", &paths);
    let engine = IoEngine::best_available().0;
    let stop = AtomicBool::new(false);
    let group = DiskGroup::open(&whole, offers(&whole), GroupAccess::Read, engine, &|_, _| {}, &stop).unwrap();
    let file = group.open_file("f").unwrap();
    (0..512).for_each(|number| assert_eq!(read_block(&file, number), Some(1)));
    assert!(matches!(group.create_file("g", 1, Striping::Fine), Err(GroupError::ReadOnly { .. })));
    assert!(matches!(group.remove_file("g"), Err(GroupError::NoFile { .. })));
    drop((file, group));
    assert!(paths.iter().zip(before).all(|(path, before)| fs::read(path).unwrap() == before));
}

#[test]
fn after_a_crash_copies_of_what_was_being_changed_are_made_alike_and_no_others() {
    let folder = scratch();
    let paths = make_members(folder.path(), &[9, 9]);
    let whole = spec("normal,au=1M,preferred=2:0|1", &paths);
    create(&whole);
    write_all(&open(&whole).unwrap().create_file("f", 512 * BLOCK, Striping::Coarse).unwrap(), 512, 1);
    let group = open(&whole).unwrap();
    let file = group.open_file("f").unwrap();
    // Extent 1, which begins with block 128, is being changed when the process is killed.
    file.write_all_at(&block(130, 2), 130 * BLOCK).unwrap();
    std::mem::forget((file, group));
    let members: Vec<_> =
        paths.iter().map(|path| OpenOptions::new().read(true).write(true).open(path).unwrap()).collect();
    let put = |member: &fs::File, from: u64, to: u64, number: u64| {
        member.write_all_at(&block(number, to), find(member, &block(number, from))).unwrap();
    };
    // A write that reached one member, first the one and then the other, which no caller ever heard of.
    put(&members[0], 1, 5, 128);
    put(&members[1], 1, 5, 129);
    // What was not marked is not looked at: it cannot have been changed by load.
    put(&members[1], 1, 5, 300);
    let engine = IoEngine::best_available().0;
    let stop = AtomicBool::new(false);
    let looked = DiskGroup::open(&whole, offers(&whole), GroupAccess::Read, engine, &|_, _| {}, &stop).unwrap();
    let seen = |group: &DiskGroup| {
        let file = group.open_file("f").unwrap();
        [128, 129, 130].map(|number| read_block(&file, number).unwrap())
    };
    let before = seen(&looked);
    drop(looked);
    let group = open(&whole).unwrap();
    assert_eq!(group.resynced(), Resynced { compared_bytes: 1 << 20, copied_bytes: 1 << 20, unreadable_bytes: 0 });
    assert_eq!(seen(&group), before, "who looked before has seen what it was made into, whichever group is preferred");
    assert_eq!((before[0] == 5, before[2]), (before[1] == 1, 2));
    assert_eq!(scrub(&group, "f").faulty, 1, "only the block that the test itself has changed");
    drop(group);
    assert_eq!(open(&whole).unwrap().resynced(), Resynced::default(), "it was closed");
}
