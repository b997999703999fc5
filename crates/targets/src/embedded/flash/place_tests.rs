use super::*;

fn options(path: &Path) -> FlashOptions {
    FlashOptions::new(path.to_owned(), Bytes::mib(1))
}

#[test]
fn a_file_is_made_and_goes_with_its_cache() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flash");
    let file = FlashFile::open(&options(&path)).unwrap();
    assert_eq!(path.metadata().unwrap().len(), (1 << 20) + HEAD_BYTES);
    assert!(matches!(FlashFile::open(&options(&path)), Err(TargetError::Block(BlockError::Locked { .. }))));
    drop(file);
    assert!(!path.exists());
}

#[test]
fn a_file_that_a_killed_process_left_is_taken_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flash");
    std::fs::write(&path, [MARK.as_slice(), &[7; 5_000]].concat()).unwrap();
    judge(&options(&path)).unwrap();
    drop(FlashFile::open(&options(&path)).unwrap());
    assert!(!path.exists());
}

#[test]
fn somebody_elses_file_is_refused_and_neither_written_nor_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("thesis.tex");
    std::fs::write(&path, "years of work").unwrap();
    for refused in [judge(&options(&path)).unwrap_err(), FlashFile::open(&options(&path)).err().unwrap()] {
        assert!(refused.to_string().contains("would destroy"), "{refused}");
        // A hint that names a flag of another command would lead nowhere.
        assert!(refused.hint().unwrap().contains("`--flash-cache-destroy "), "{refused}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"years of work");
    let mut allowed = options(&path);
    allowed.permission.destroy = vec!["thesis.tex".to_owned()];
    for _ in 0..2 {
        let file = FlashFile::open(&allowed).unwrap();
        // A process that is killed now leaves nothing that the next one would take for its own.
        assert_eq!(std::fs::read(&path).unwrap()[..13], *b"years of work");
        drop(file);
        assert!(path.exists(), "what was there before stays there");
        assert!(
            judge(&options(&path)).unwrap_err().to_string().contains("would destroy"),
            "each run has to be allowed"
        );
    }
}

#[test]
fn directories_and_places_that_are_not_there_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(judge(&options(dir.path())), Err(TargetError::Block(BlockError::WrongKind { .. }))));
    let missing = judge(&options(&dir.path().join("no/such/flash"))).unwrap_err();
    assert!(matches!(missing, TargetError::File { action: "find", .. }), "{missing}");
}

#[test]
fn another_file_that_took_its_place_is_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flash");
    let file = FlashFile::open(&options(&path)).unwrap();
    std::fs::rename(&path, dir.path().join("moved")).unwrap();
    std::fs::write(&path, "mine").unwrap();
    drop(file);
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn too_little_space_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flash");
    let huge = FlashOptions::new(path.clone(), Bytes(1 << 60));
    assert!(FlashFile::open(&huge).is_err());
    assert!(!path.exists());
}
