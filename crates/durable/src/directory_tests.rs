//! Directories with loads, as crashes, disks and people leave them.

use std::collections::BTreeMap;

use super::*;
use targets::durable::{Owner, Torn};

const SHAPE: Shape = Shape { run: 9, sessions: 2, blocks: 8 };
static NEVER: AtomicBool = AtomicBool::new(false);

/// A directory with a load in which the first session made eleven commits and the second one; none, with a word, where direct
/// writes do not work.
fn loaded(means: Means) -> Option<(tempfile::TempDir, PathBuf, Made)> {
    loaded_with(commits(means))
}

fn loaded_with(files: FileCommits) -> Option<(tempfile::TempDir, PathBuf, Made)> {
    let folder = test_support::scratch::scratch();
    let path = folder.path().join("commits");
    let mut target = CommitDirectory::new(path.clone(), files);
    let made = match target.make(&SHAPE, &NEVER) {
        Ok(made) => made,
        Err(error) if error.to_string().contains("O_DIRECT") || error.to_string().contains("in memory") => {
            test_support::skip::skip("no direct writes where tests are");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    {
        let committers = target.committers();
        let (mut one, mut other) = (committers.open(0).unwrap(), committers.open(1).unwrap());
        (1..=11).for_each(|seq| one.commit(seq, &NEVER).unwrap());
        other.commit(1, &NEVER).unwrap();
    }
    Some((folder, path, made))
}

fn commits(means: Means) -> FileCommits {
    FileCommits { means, ..FileCommits::default() }
}

fn read(path: &Path, made: &Made) -> (Presence, BTreeMap<(u32, u32), Found>) {
    let mut found = BTreeMap::new();
    let mut target = CommitDirectory::new(path.to_owned(), FileCommits::default());
    let presence =
        target.read(&SHAPE, made, &NEVER, &mut |session, slot, here| drop(found.insert((session, slot), here)));
    (presence.unwrap(), found)
}

fn missing(presence: &Presence) -> Vec<String> {
    match presence {
        Presence::There { missing, .. } => missing.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn commits_are_read_as_they_were_made_by_all_means() {
    for (_, means) in Means::ALL {
        let Some((_folder, path, made)) = loaded(means) else { return };
        let (presence, found) = read(&path, &made);
        assert_eq!(
            presence,
            Presence::There { has_ended: false, started_s: None, missing: Vec::new(), loses: Vec::new() }
        );
        assert_eq!(found.len(), 16);
        for slot in 0..8 {
            let last = if slot < 3 { 9 + u64::from(slot) } else { 1 + u64::from(slot) };
            assert_eq!(found[&(0, slot)], Found::Whole { seq: last }, "{means}");
        }
        assert_eq!((&found[&(1, 0)], &found[&(1, 1)]), (&Found::Whole { seq: 1 }, &Found::Blank));
    }
}

/// Flags of the open file at `path`, as the kernel has them.
fn flags_of(path: &Path) -> rustix::fs::OFlags {
    let path = fs::canonicalize(path).unwrap();
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let own = open.filter(|link| fs::read_link(link.path()).is_ok_and(|leads_to| leads_to == path)).last().unwrap();
    let info = fs::read_to_string(Path::new("/proc/self/fdinfo").join(own.file_name())).unwrap();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
    rustix::fs::OFlags::from_bits_retain(u32::from_str_radix(flags, 8).unwrap())
}

#[test]
fn files_are_written_past_the_page_cache_and_durably_where_that_is_the_means() {
    use rustix::fs::OFlags;
    for (_, means) in Means::ALL {
        let Some((_folder, path, _)) = loaded(means) else { return };
        let mut target = CommitDirectory::new(path.clone(), commits(means));
        target.made = Some(OwnDirectory { shape: SHAPE, made_directory: true, opening: None });
        let committers = target.committers();
        let _open = committers.open(0).unwrap();
        let flags = flags_of(&path.join(file_name(0)));
        assert!(flags.contains(OFlags::DIRECT), "{means}: {flags:?}");
        assert_eq!(flags.contains(OFlags::DSYNC), means == Means::Dsync, "{means}: {flags:?}");
    }
}

#[test]
fn what_is_damaged_cut_or_gone_is_said_and_the_rest_is_read() {
    let Some((_folder, path, made)) = loaded(Means::Fdatasync) else { return };
    let first = path.join(file_name(0));
    let mut bytes = fs::read(&first).unwrap();
    bytes[8192 + 600] ^= 1;
    let (one, other) = bytes.split_at_mut(3 * 8192);
    one[2 * 8192..].copy_from_slice(&other[..8192]);
    fs::write(&first, &bytes[..5 * 8192 + 100]).unwrap();
    fs::write(path.join(OPENING), "{").unwrap();
    fs::remove_file(path.join(file_name(1))).unwrap();
    let (presence, found) = read(&path, &made);
    let missing = missing(&presence);
    assert_eq!(missing.len(), 3, "{missing:?}");
    assert!(missing[0].contains("is damaged") && missing[1].contains("is shorter") && missing[2].contains("is gone"));
    assert!(matches!(found[&(0, 1)], Found::Torn(_)) && matches!(found[&(0, 2)], Found::Foreign(Owner { seq: 4, .. })));
    assert!(matches!(found[&(0, 4)], Found::Whole { seq: 5 }));
    // A hundred bytes of it are left.
    assert!(matches!(found[&(0, 5)], Found::Torn(Torn { strange: 1, .. })));
    assert!((6..8).all(|slot| found[&(0, slot)] == Found::Blank) && found[&(1, 0)] == Found::Blank);
    fs::remove_file(path.join(OPENING)).unwrap();
    let (presence, _) = read(&path, &made);
    assert!(matches!(&presence, Presence::There { missing, .. } if missing[0].contains("is gone")));
    // Even of that drop makes an end; the directory is not known for ours any more.
    let mut left = CommitDirectory::new(path.clone(), FileCommits::default());
    left.plan_drop(&NEVER).unwrap().run(&NEVER).unwrap();
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
}

#[test]
fn a_directory_that_is_gone_is_known_by_its_file_system() {
    let Some((folder, path, made)) = loaded(Means::Fdatasync) else { return };
    fs::remove_dir_all(&path).unwrap();
    assert!(matches!(read(&path, &made).0, Presence::Gone { .. }));
    fs::create_dir(&path).unwrap();
    assert!(matches!(read(&path, &made).0, Presence::Gone { .. }), "an empty directory holds nothing either");
    let place = FileSystem::of(folder.path()).unwrap();
    let other = FileSystem { uuid: place.uuid.as_ref().map(|_| "another".to_owned()), fsid: place.fsid ^ 1, ..place };
    let moved = Made { place: Place::Files(other), ..made.clone() };
    assert!(matches!(read(&path, &moved).0, Presence::Elsewhere { .. }));
    // Nor is anything gone in a directory that the load was never in.
    let wrong = read(&folder.path().join("mistyped"), &made).0;
    assert!(matches!(&wrong, Presence::Elsewhere { made, .. } if made.ends_with("/commits")), "{wrong:?}");
}

#[test]
fn blocks_of_every_size_are_read_as_they_were_made() {
    for block_bytes in [4096, 65_536, 1 << 20] {
        let files = FileCommits { block_bytes, ..FileCommits::default() };
        let Some((_folder, path, made)) = loaded_with(files) else { return };
        let mut kept = 0;
        let mut target = CommitDirectory::new(path.clone(), files);
        let visit = &mut |_, _, found| kept += u32::from(matches!(found, Found::Whole { .. }));
        target.read(&SHAPE, &made, &NEVER, visit).unwrap();
        assert_eq!(kept, 9, "{block_bytes}");
        assert_eq!(path.join(file_name(0)).metadata().unwrap().len(), 8 * u64::from(block_bytes));
    }
}

#[test]
fn a_copy_elsewhere_and_what_is_half_removed_have_lost_nothing() {
    let Some((folder, path, made)) = loaded(Means::Fdatasync) else { return };
    let error = |path: &Path| {
        let mut target = CommitDirectory::new(path.to_owned(), FileCommits::default());
        target.read(&SHAPE, &made, &NEVER, &mut |_, _, _| {}).unwrap_err()
    };
    fs::write(path.join(DROPPING), "").unwrap();
    assert!(error(&path).to_string().contains("half removed"));
    fs::remove_file(path.join(DROPPING)).unwrap();
    // A later version may know more.
    let opening = fs::read_to_string(path.join(OPENING)).unwrap();
    let later = opening.replacen("\"format\":1", "\"format\":2,\"more\":0", 1);
    fs::write(path.join(OPENING), later).unwrap();
    assert!(error(&path).to_string().contains("in format 2"));
    fs::write(path.join(OPENING), "{}").unwrap();
    assert!(matches!(read(&path, &made).0, Presence::There { missing, .. } if missing.len() == 1));
    fs::write(path.join(OPENING), opening).unwrap();
    // A snapshot that is mounted elsewhere is of another time.
    let other = folder.path().join("snapshot");
    fs::rename(&path, &other).unwrap();
    assert!(matches!(read(&other, &made).0, Presence::Elsewhere { .. }));
    // What cannot be removed leaves the mark, and the next removal goes on.
    CommitDirectory::new(other.clone(), FileCommits::default()).plan_drop(&NEVER).unwrap().run(&NEVER).unwrap();
    assert!(!other.exists());
}

#[test]
fn another_run_is_not_read_and_one_that_ended_says_so() {
    let Some((_folder, path, made)) = loaded(Means::Fdatasync) else { return };
    let mut target = CommitDirectory::new(path.clone(), FileCommits::default());
    target.made = Some(OwnDirectory { shape: SHAPE, made_directory: true, opening: None });
    target.end().unwrap();
    assert!(matches!(read(&path, &made).0, Presence::There { has_ended: true, .. }));
    let other = Shape { run: 10, ..SHAPE };
    let presence = target.read(&other, &made, &NEVER, &mut |_, _, _| panic!("nothing is visited"));
    assert_eq!(presence.unwrap(), Presence::OtherRun { run: 9 });
}

#[test]
fn only_an_empty_or_a_new_directory_is_taken_and_nothing_half_made_stays() {
    let folder = test_support::scratch::scratch();
    let at = |name: &str| folder.path().join(name);
    let make = |path: PathBuf, shape: &Shape, stop: &AtomicBool| {
        CommitDirectory::new(path, FileCommits::default()).make(shape, stop).map_err(|error| error.to_string())
    };
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/theirs"), "precious").unwrap();
    assert!(make(at("full"), &SHAPE, &NEVER).unwrap_err().contains("was not made by Plimsoll"));
    assert!(make(at("not/there"), &SHAPE, &NEVER).is_err() && !at("not").exists());
    assert!(make(at("new"), &SHAPE, &AtomicBool::new(true)).unwrap_err().contains("interrupted"));
    assert!(!at("new").exists());
    let huge = Shape { run: 1, sessions: 1024, blocks: 4096 };
    let refused = make(at("huge"), &huge, &AtomicBool::new(true)).unwrap_err();
    assert!((refused.contains("are needed") || refused.contains("interrupted")) && !at("huge").exists(), "{refused}");
    let Some((_folder, path, _)) = loaded(Means::Fdatasync) else { return };
    let left = CommitDirectory::new(path.clone(), FileCommits::default()).make(&SHAPE, &NEVER).unwrap_err();
    assert!(left.to_string().contains("an earlier load") && left.hint().unwrap().contains("plimsoll durable drop"));
    let mut target = CommitDirectory::new(path.clone(), FileCommits::default());
    target.plan_drop(&NEVER).unwrap().run(&NEVER).unwrap();
    assert!(!path.exists());
    assert!(target.plan_drop(&NEVER).is_err());
}

#[test]
fn a_load_under_way_keeps_others_away() {
    let folder = test_support::scratch::scratch();
    let path = folder.path().join("commits");
    let mut target = CommitDirectory::new(path.clone(), FileCommits::default());
    let Ok(made) = target.make(&SHAPE, &NEVER) else { return };
    let mut other = CommitDirectory::new(path.clone(), FileCommits::default());
    let in_use = format!("is in use by process {}", std::process::id());
    assert!(other.make(&SHAPE, &NEVER).unwrap_err().to_string().contains(&in_use));
    assert!(other.plan_drop(&NEVER).err().unwrap().to_string().contains(&in_use));
    let read = other.read(&SHAPE, &made, &NEVER, &mut |_, _, _| {});
    assert!(read.unwrap_err().to_string().contains(&in_use));
    target.unmake().unwrap();
    assert!(!path.exists());
}
