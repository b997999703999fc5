//! What is looked at, made and refused before load.

use super::*;
use test_support::scratch::scratch;

fn wanted(paths: &[&Path]) -> PrepareOptions {
    PrepareOptions {
        paths: paths.iter().map(|path| path.to_path_buf()).collect(),
        elsewhere: Vec::new(),
        layout: if paths.len() == 1 { VolumeLayout::Single } else { VolumeLayout::Stripe { unit_bytes: 1 << 20 } },
        size: Some(Bytes::mib(4)),
        reads: true,
        permission: None,
        checked: false,
        prefill: false,
        caching: Caching::Direct,
        durability: Durability::OnSync,
        io_engine: IoEngine::best_available().0,
    }
}

fn prepare(wanted: PrepareOptions) -> Result<(Volume, Vec<Member>), TargetError> {
    Preparation::look(wanted)?.run(&|_| {}, &AtomicBool::new(false))
}

#[test]
fn missing_files_are_laid_out_and_found_again() {
    let folder = scratch();
    let (first, second) = (folder.path().join("a"), folder.path().join("b"));
    let wanted = wanted(&[&first, &second]);
    let look = Preparation::look(wanted.clone()).unwrap();
    assert_eq!(look.fills().map(|(_, bytes)| bytes).collect::<Vec<_>>(), [Bytes::mib(2), Bytes::mib(2)]);
    let (volume, members) = prepare(wanted.clone()).unwrap();
    assert_eq!((volume.capacity_bytes(), members.len()), (4 << 20, 2));
    drop(members);
    assert_eq!(Preparation::look(wanted).unwrap().fills().count(), 0, "what is there is not written again");
}

#[test]
fn files_that_have_no_room_or_no_directory_are_refused_before_any_is_made() {
    let folder = scratch();
    let (first, second) = (folder.path().join("a"), folder.path().join("b"));
    let available = os::space(folder.path()).unwrap().available_bytes;
    // Each by itself would fit.
    let each_fits = PrepareOptions { size: Some(Bytes(available / 4096 * 4096 * 3 / 2)), ..wanted(&[&first, &second]) };
    let error = Preparation::look(each_fits).unwrap_err();
    assert!(matches!(error, TargetError::Block(BlockError::NoSpace { .. })), "{error}");
    let nowhere = folder.path().join("nowhere/a");
    let said = Preparation::look(wanted(&[&nowhere])).unwrap_err().to_string();
    assert!(said.starts_with("cannot find the directory of `") && said.contains("nowhere/a"), "{said}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_file_without_data_is_refused_for_reads() {
    let folder = scratch();
    let path = folder.path().join("hole");
    std::fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
    let said = Preparation::look(wanted(&[&path])).unwrap_err().to_string();
    assert!(said.contains("hole") && said.contains("0 %"), "{said}");
}

#[test]
fn a_file_without_data_is_written_to_with_a_note() {
    let folder = scratch();
    let path = folder.path().join("hole");
    std::fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
    let permission = Permission { destroy: vec!["hole".to_owned()], ..Permission::default() };
    let writes = PrepareOptions { reads: false, permission: Some(permission), ..wanted(&[&path]) };
    let notes = Preparation::look(writes.clone()).unwrap().notes;
    assert!(notes.len() == 1 && notes[0].contains("only 0.0 %") && notes[0].contains("--prefill"), "{notes:?}");
    let prefilled = Preparation::look(PrepareOptions { prefill: true, ..writes }).unwrap();
    assert_eq!((prefilled.notes.len(), prefilled.fills().count()), (0, 1));
}

#[test]
fn a_file_that_somebody_uses_is_not_replaced_by_a_larger_one() {
    let folder = scratch();
    let path = folder.path().join("data");
    drop(prepare(wanted(&[&path])).unwrap());
    let larger = PrepareOptions { size: Some(Bytes::mib(8)), ..wanted(&[&path]) };
    let reader = check(&[MemberLocation::Local(path.clone())], None).unwrap();
    let error = Preparation::look(larger.clone()).unwrap_err();
    assert!(matches!(error, TargetError::Block(BlockError::Locked { .. })), "{error}");
    drop(reader);
    assert_eq!(Preparation::look(larger).unwrap().fills().count(), 1);
}

#[test]
fn a_missing_file_under_two_names_is_refused_before_it_is_made() {
    let folder = scratch();
    let (first, second) = (folder.path().join("a"), folder.path().join(".").join("a"));
    std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
    for other in [second, folder.path().join("link").join("a")] {
        let error = Preparation::look(wanted(&[&first, &other])).unwrap_err();
        assert!(matches!(error, TargetError::Block(BlockError::Same { .. })), "{error}");
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing but the link");
}

#[test]
fn a_hole_that_a_row_of_files_would_read_is_found_wherever_it_is() {
    let folder = scratch();
    let (first, second) = (folder.path().join("a"), folder.path().join("b"));
    for path in [&first, &second] {
        std::fs::write(path, vec![7; 4 << 20]).unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_len(8 << 20).unwrap();
        file.sync_all().unwrap();
    }
    // All of the 8 MiB would be read from the first file.
    let row = PrepareOptions { layout: VolumeLayout::Concat, size: Some(Bytes::mib(8)), ..wanted(&[&first, &second]) };
    let error = Preparation::look(row).unwrap_err();
    assert!(matches!(error, TargetError::Block(BlockError::NothingPhysical { .. })), "{error}");
}

#[test]
fn somebody_elses_file_is_read_but_never_replaced() {
    let folder = scratch();
    let path = folder.path().join("theirs");
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    let (volume, members) = prepare(wanted(&[&path])).unwrap();
    assert_eq!(volume.capacity_bytes(), 1 << 20, "too small for what is wanted, and left as it is");
    drop(members);
    let write = PrepareOptions { permission: Some(Permission::default()), ..wanted(&[&path]) };
    assert!(matches!(Preparation::look(write), Err(TargetError::Block(BlockError::NotAllowed { .. }))));
    let checked = PrepareOptions { checked: true, ..wanted(&[&path]) };
    assert!(matches!(Preparation::look(checked), Err(TargetError::Block(BlockError::NotLaidOut { .. }))));
    assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn a_file_that_somebody_reads_is_not_replaced_by_a_larger_one() {
    let folder = scratch();
    let path = folder.path().join("a");
    let (_, reader) = prepare(wanted(&[&path])).unwrap();
    let larger = || PrepareOptions { size: Some(Bytes::mib(8)), ..wanted(&[&path]) };
    assert!(matches!(Preparation::look(larger()), Err(TargetError::Block(BlockError::Locked { .. }))));
    drop(reader);
    let look = Preparation::look(larger()).unwrap();
    let (_, reader) = prepare(wanted(&[&path])).unwrap();
    let late = look.run(&|_| {}, &AtomicBool::new(false));
    assert!(matches!(late, Err(TargetError::Block(BlockError::Locked { .. }))), "somebody came after the look");
    reader[0].check_health().unwrap();
}

#[test]
fn somebody_elses_file_that_came_after_the_look_is_not_replaced() {
    let folder = scratch();
    let path = folder.path().join("a");
    let look = Preparation::look(wanted(&[&path])).unwrap();
    std::fs::write(&path, b"theirs").unwrap();
    let late = look.run(&|_| {}, &AtomicBool::new(false));
    assert!(matches!(late, Err(TargetError::Block(BlockError::NotAllowed { .. }))));
    assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
}

#[test]
fn sizes_beyond_all_storage_are_refused() {
    let folder = scratch();
    let (first, second) = (folder.path().join("a"), folder.path().join("b"));
    for paths in [&[first.as_path()][..], &[&first, &second]] {
        for layout in [VolumeLayout::Concat, VolumeLayout::Stripe { unit_bytes: 1 << 20 }] {
            let huge = PrepareOptions { layout, size: Some(Bytes(u64::MAX)), ..wanted(paths) };
            assert!(matches!(Preparation::look(huge), Err(TargetError::Block(BlockError::NoSpace { .. }))));
        }
    }
}

#[test]
fn no_file_is_made_among_devices() {
    let path = Path::new("/dev/plimsoll-no-such-device");
    let error = Preparation::look(wanted(&[path])).unwrap_err();
    assert!(matches!(error, TargetError::Block(BlockError::NoDevice { .. })), "{error}");
    assert!(!path.exists());
}

#[test]
fn a_file_that_is_missing_needs_a_size() {
    let folder = scratch();
    let path = folder.path().join("none");
    let error = Preparation::look(PrepareOptions { size: None, ..wanted(&[&path]) }).unwrap_err();
    assert!(error.hint().unwrap().contains("--size"), "{error}");
    assert!(!path.exists());
}
