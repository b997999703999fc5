//! Devices with loads. They want root and loop devices; what only reads and writes files is tested with directories.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

use test_support::loop_device::LoopDevice;

use super::*;

const SHAPE: Shape = Shape { run: 9, sessions: 2, blocks: 8 };
static NEVER: AtomicBool = AtomicBool::new(false);

/// What each slot of each session holds.
type Slots = BTreeMap<(u32, u32), Found>;

/// A disk of this length that nothing else uses; none, with a word, where there is none to be had.
fn disk(bytes: u64) -> Option<(tempfile::TempDir, LoopDevice)> {
    let folder = test_support::scratch::scratch();
    let file = folder.path().join("disk");
    // Data of others, which must not change before the first byte is ours.
    std::fs::write(&file, vec![0xa5; bytes as usize]).unwrap();
    LoopDevice::over(&file).map(|device| (folder, device))
}

fn device(path: &Path, means: Means, allowed: bool) -> CommitDevice {
    let destroy = if allowed { vec![path.to_string_lossy().into_owned()] } else { Vec::new() };
    let commits = FileCommits { means, ..FileCommits::default() };
    CommitDevice::new(path.to_owned(), commits, Permission { destroy, destroy_signature: false })
}

/// Eleven commits of the first session and one of the second.
fn load(target: &mut CommitDevice) -> Made {
    let made = target.make(&SHAPE, &NEVER).unwrap();
    let committers = target.committers();
    let (mut one, mut other) = (committers.open(0).unwrap(), committers.open(1).unwrap());
    (1..=11).for_each(|seq| one.commit(seq, &NEVER).unwrap());
    other.commit(1, &NEVER).unwrap();
    made
}

fn read(path: &Path, shape: &Shape, made: &Made) -> Result<(Presence, Slots), TargetError> {
    let mut found = BTreeMap::new();
    let visit = &mut |session, slot, here| drop(found.insert((session, slot), here));
    let presence = device(path, Means::Fdatasync, false).read(shape, made, &NEVER, visit)?;
    Ok((presence, found))
}

fn missing(presence: &Presence) -> &[String] {
    match presence {
        Presence::There { missing, .. } => missing,
        other => panic!("{other:?}"),
    }
}

#[test]
fn commits_on_a_device_are_read_as_they_were_made_and_only_ours_go() {
    let Some((_folder, disk)) = disk(8 << 20) else { return };
    let path = disk.path();
    for (_, means) in Means::ALL {
        let mut target = device(path, means, true);
        let made = load(&mut target);
        // Under way, nobody else touches it.
        assert!(read(path, &SHAPE, &made).unwrap_err().to_string().contains("is in use by process"));
        assert!(device(path, means, false).plan_drop(&NEVER).is_err());
        if means == Means::Dsync {
            target.end().unwrap();
        }
        drop(target);
        let (presence, found) = read(path, &SHAPE, &made).unwrap();
        let has_ended = means == Means::Dsync;
        assert_eq!(presence, Presence::There { has_ended, started_s: None, missing: Vec::new(), loses: Vec::new() });
        for slot in 0..8 {
            let last = if slot < 3 { 9 + u64::from(slot) } else { 1 + u64::from(slot) };
            assert_eq!(found[&(0, slot)], Found::Whole { seq: last }, "{means}");
        }
        assert_eq!((&found[&(1, 0)], &found[&(1, 1)]), (&Found::Whole { seq: 1 }, &Found::Blank));
        let other = Shape { run: 10, ..SHAPE };
        assert_eq!(read(path, &other, &made).unwrap().0, Presence::OtherRun { run: 9 });
        // What may still have to be verified is not written over, whatever is typed.
        let left = device(path, means, true).make(&SHAPE, &NEVER).unwrap_err();
        assert!(left.to_string().contains("an earlier load"), "{left}");
        device(path, means, false).plan_drop(&NEVER).unwrap().run(&NEVER).unwrap();
        assert!(device(path, means, false).plan_drop(&NEVER).err().unwrap().to_string().contains("no load of commits"));
    }
}

#[test]
fn what_is_gone_of_a_device_is_told_from_another_device() {
    let Some((_folder, disk)) = disk(8 << 20) else { return };
    let path = disk.path();
    let made = load(&mut device(path, Means::Fdatasync, true));
    let file = File::options().read(true).write(true).open(path).unwrap();
    let write = |bytes: &[u8], at| {
        file.write_all_at(bytes, at).unwrap();
        file.sync_all().unwrap();
    };
    // Others write to the beginning of disks: the second heading holds then, and a removal leaves their page.
    write(&[0x5a; 4096], 0);
    assert!(missing(&read(path, &SHAPE, &made).unwrap().0).is_empty());
    write(b"x", HEADINGS_AT[1] + HEADING.len() as u64);
    assert!(missing(&read(path, &SHAPE, &made).unwrap().0)[0].contains("are damaged"));
    let left = device(path, Means::Fdatasync, true).make(&SHAPE, &NEVER).unwrap_err();
    assert!(left.to_string().contains("an earlier load"), "{left}");
    device(path, Means::Fdatasync, false).plan_drop(&NEVER).unwrap().run(&NEVER).unwrap();
    let mut page = vec![0; 4096];
    file.read_exact_at(&mut page, 0).unwrap();
    assert!(page.iter().all(|byte| *byte == 0x5a), "it is not ours");
    let (presence, found) = read(path, &SHAPE, &made).unwrap();
    assert!(missing(&presence)[0].contains("are gone") && found[&(1, 0)] == Found::Whole { seq: 1 });
    // A longer or a shorter device is another one, and a wiped one may be.
    let Place::Device(identity) = made.place.clone() else { panic!("{made:?}") };
    let longer = Made { place: Place::Device(DeviceIdentity { bytes: 9 << 20, ..identity }), ..made.clone() };
    assert!(matches!(read(path, &SHAPE, &longer).unwrap().0, Presence::Elsewhere { .. }));
    write(&vec![0; 8 << 20], 0);
    assert!(matches!(read(path, &SHAPE, &made).unwrap().0, Presence::Gone { .. }));
}

#[test]
fn a_device_that_was_not_named_holds_data_or_is_too_short_is_left_alone() {
    let Some((folder, disk)) = disk(2 << 20) else { return };
    let path = disk.path();
    let refused = |allowed, shape: &Shape| device(path, Means::Fdatasync, allowed).make(shape, &NEVER).unwrap_err();
    let error = refused(false, &SHAPE);
    assert!(
        error.to_string().contains("all data on this device") || error.hint().unwrap().contains("--destroy"),
        "{error}"
    );
    let error = refused(true, &Shape { blocks: 512, ..SHAPE });
    assert!(error.to_string().contains("are needed") && error.hint().unwrap().contains("--blocks"), "{error}");
    let content = || std::fs::read(folder.path().join("disk")).unwrap();
    assert!(content().iter().all(|byte| *byte == 0xa5), "nothing is written");
    // One that is stopped leaves no heading.
    let stopped = device(path, Means::Fdatasync, true).make(&SHAPE, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(TargetError::Interrupted)));
    assert!(device(path, Means::Fdatasync, false).plan_drop(&NEVER).is_err());
    // A file is no device, and one that is not there is made by nobody.
    let file = device(&folder.path().join("disk"), Means::Fdatasync, true).make(&SHAPE, &NEVER).unwrap_err();
    assert!(file.to_string().contains("is not a block device") && file.hint().unwrap().contains("dir:"));
    let nothing = folder.path().join("nothing");
    assert!(device(&nothing, Means::Fdatasync, true).make(&SHAPE, &NEVER).is_err() && !nothing.exists());
}
