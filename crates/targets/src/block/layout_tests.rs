use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::*;
use test_support::skip::skip;

const MIB: u64 = 1 << 20;

fn lay(path: &Path, bytes: u64, existing: Existing) -> Result<FileId, TargetError> {
    let (engine, _) = IoEngine::best_available();
    lay_out(path, bytes, existing, engine, &|_| {}, &AtomicBool::new(false))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_file_is_laid_out_in_its_exact_size_and_every_sector_is_stamped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let bytes = 9 * MIB + 4096;
    let seen = Mutex::new(Vec::new());
    let progress = |progress: Progress| seen.lock().unwrap().push(progress);
    let (engine, _) = IoEngine::best_available();
    let id = lay_out(&path, bytes, Existing::Keep, engine, &progress, &AtomicBool::new(false)).unwrap();

    let data = fs::read(&path).unwrap();
    assert_eq!(data.len() as u64, bytes);
    assert_eq!(stamp::check(&data, 0, id), Ok(LAID_GENERATION));
    let filling: HashSet<&[u8]> = data.chunks(SECTOR_BYTES).map(|sector| &sector[32..]).collect();
    assert_eq!(filling.len() as u64, bytes / SECTOR_BYTES as u64, "no two sectors are filled alike");
    assert_eq!(seen.into_inner().unwrap().last(), Some(&Progress { done_bytes: bytes, total_bytes: bytes }));
    assert_eq!(names(directory.path()), ["data"]);
    assert_eq!(inspect(&path, bytes).unwrap(), FileState::Laid { id, length_bytes: bytes });
}

#[test]
fn an_interrupted_file_leaves_nothing_and_the_old_one_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, "old").unwrap();
    let stop = AtomicBool::new(true);
    let (engine, _) = IoEngine::best_available();
    let laid = lay_out(&path, 64 * MIB, Existing::Replace, engine, &|_| stop.store(true, Ordering::Relaxed), &stop);
    assert!(matches!(laid, Err(TargetError::Interrupted)));
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(directory.path()), ["data"]);
}

#[test]
fn a_file_that_is_there_is_replaced_only_when_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, "old").unwrap();
    assert!(lay(&path, MIB, Existing::Keep).unwrap_err().to_string().ends_with("exists already"));
    let first = lay(&path, MIB, Existing::Replace).unwrap();
    let second = lay(&path, MIB, Existing::Replace).unwrap();
    assert_ne!(first, second, "old data must not pass for new ones");
}

#[test]
fn what_an_earlier_attempt_left_is_cleared_away_unless_it_is_at_work() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let left = directory.path().join(".data.plimsoll-unfinished");
    fs::write(&left, "half").unwrap();
    let at_work = File::open(&left).unwrap();
    at_work.lock().unwrap();
    assert!(lay(&path, MIB, Existing::Keep).unwrap_err().to_string().contains("in use by another Plimsoll"));
    drop(at_work);
    lay(&path, MIB, Existing::Keep).unwrap();
    assert_eq!(names(directory.path()), ["data"]);
}

#[test]
fn impossible_sizes_are_refused_before_anything_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    for bytes in [0, 5000] {
        assert!(lay(&path, bytes, Existing::Keep).unwrap_err().to_string().contains("multiple of 4 KiB"));
    }
    let error = lay(&path, 1 << 60, Existing::Keep).unwrap_err();
    assert!(error.to_string().contains("free"), "{error}");
    assert!(error.hint().is_some());
    assert!(names(directory.path()).is_empty());
}

#[test]
fn files_that_no_device_would_see_reads_of_are_distinguished() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    assert_eq!(inspect(&path, MIB).unwrap(), FileState::Missing);
    let file = File::create(&path).unwrap();
    assert_eq!(inspect(&path, 0).unwrap(), FileState::TooShort { length_bytes: 0 });
    file.set_len(4 * MIB).unwrap();
    assert_eq!(inspect(&path, 8 * MIB).unwrap(), FileState::TooShort { length_bytes: 4 * MIB });
    assert_eq!(inspect(&path, 4 * MIB).unwrap(), FileState::Sparse { written_share: 0.0 });
    file.write_all_at(&vec![7; 3 * MIB as usize], 0).unwrap();
    assert_eq!(inspect(&path, 4 * MIB).unwrap(), FileState::Sparse { written_share: 0.75 });
    assert_eq!(inspect(&path, 3 * MIB).unwrap(), FileState::Foreign { length_bytes: 4 * MIB });
}

#[test]
fn a_file_that_was_only_reserved_is_not_taken_for_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    StorageFile::create(&path, Durability::OnSync).unwrap().reserve(4 * MIB).unwrap();
    match inspect(&path, 4 * MIB).unwrap() {
        FileState::NeverWritten { written_share } => assert_eq!(written_share, 0.0),
        other => skip(format_args!("this file system does not report reserved space from data: {other:?}")),
    }
}

#[test]
fn a_laid_file_that_was_cut_or_made_longer_is_no_laid_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    lay(&path, MIB, Existing::Keep).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[1; 4096], MIB).unwrap();
    assert_eq!(inspect(&path, MIB).unwrap(), FileState::Foreign { length_bytes: MIB + 4096 });
}

#[test]
fn a_link_stays_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("data"), directory.path().join("link"));
    fs::write(&path, "").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let id = lay(&link, MIB, Existing::Keep).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(inspect(&path, MIB).unwrap(), FileState::Laid { id, length_bytes: MIB });
}

#[test]
fn a_pipe_is_refused_without_waiting_for_its_other_end() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        skip("no mkfifo");
        return;
    }
    assert!(inspect(&pipe, 0).unwrap_err().to_string().contains("is a named pipe"));
}
