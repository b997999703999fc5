use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::database::{Filling, Progress};
use crate::embedded::verify::verify;
use test_support::scratch::scratch;

fn request(block_bytes: u32) -> EngineRequest {
    EngineRequest {
        data: SetupRequest {
            schemas: 3,
            scale_blocks: 500,
            scan_blocks: 20,
            block_bytes,
            filling: Filling::Incompressible,
            streams: 2,
            seed: 42,
            is_seed_asked: true,
            replace: Replace::Refuse,
        },
        redo_file_bytes: 8 << 20,
        redo_files: 3,
        destinations: Destinations::default(),
        permission: Permission::default(),
        io_engine: None,
    }
}

/// A request with something changed.
fn changed(mut request: EngineRequest, change: impl FnOnce(&mut EngineRequest)) -> EngineRequest {
    change(&mut request);
    request
}

fn set_up(path: &Path, request: &EngineRequest) -> Result<Written, TargetError> {
    run(plan(path, request)?, &|_| {}, &AtomicBool::new(false))
}

/// Names and contents of all files but the lock.
fn contents(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let named = files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()));
    named.filter(|(name, _)| name != "plimsoll.lock").collect()
}

fn assert_sound(path: &Path) {
    let report = verify(path, None, None, false, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn data_of_every_block_size_are_sound_and_of_the_size_planned() {
    for kib in [2, 4, 8, 16, 32] {
        let dir = scratch();
        let path = dir.path().join("new").join("deep");
        let request = request(kib << 10);
        let plan = plan(&path, &request).unwrap();
        assert!(!path.exists(), "planning writes nothing");
        assert_eq!((plan.existing, plan.data_bytes), (Existing::Nothing, 1560 * u64::from(kib << 10)));
        let planned = plan.files.clone();
        let seen = Mutex::new(Vec::new());
        let report = run(plan, &|reported| seen.lock().unwrap().push(reported), &AtomicBool::new(false)).unwrap();
        assert!(report.created);
        assert_eq!(report.bytes_written, 1560 * u64::from(kib << 10) + (24 << 20));
        let last = *seen.lock().unwrap().last().unwrap();
        assert_eq!(last, Progress { done_bytes: report.bytes_written, total_bytes: report.bytes_written });
        for (name, bytes) in planned {
            let length = fs::metadata(path.join(&name)).unwrap().len();
            assert!(length >= bytes && length < bytes + 4096, "{name} has {length} bytes, planned were {bytes}");
        }
        assert!(!Directory::is_half_set_up_at(&path));
        assert_sound(&path);
    }
}

#[test]
fn redo_log_files_are_all_zeros_and_really_written() {
    let dir = scratch();
    set_up(dir.path(), &request(8192)).unwrap();
    for (path, metadata) in Directory::files_at(dir.path()).unwrap() {
        if path.extension().is_some_and(|extension| extension == "log") {
            assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 0));
            assert!(crate::embedded::info::allocated_bytes(&metadata) >= 8 << 20);
        }
    }
}

#[test]
fn setting_up_the_same_data_again_changes_nothing() {
    let dir = scratch();
    set_up(dir.path(), &request(8192)).unwrap();
    let before = contents(dir.path());
    let again = plan(dir.path(), &request(8192)).unwrap();
    assert_eq!((again.existing, again.has_work()), (Existing::SameData, false));
    let report = run(again, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert!(!report.created);
    assert!(contents(dir.path()) == before);
}

#[test]
fn the_same_data_with_a_cut_or_missing_file_are_not_there_already() {
    let dir = scratch();
    set_up(dir.path(), &request(8192)).unwrap();
    let data = dir.path().join("data-0001.dbf");
    fs::OpenOptions::new().write(true).open(&data).unwrap().set_len(8192).unwrap();
    assert!(matches!(plan(dir.path(), &request(8192)), Err(TargetError::Truncated { length: 8192, .. })));
    fs::remove_file(&data).unwrap();
    assert!(matches!(plan(dir.path(), &request(8192)), Err(TargetError::File { path, .. }) if path == data));
    set_up(
        dir.path(),
        &changed(request(8192), |r| {
            r.data.replace = Replace::Replace;
        }),
    )
    .unwrap();
    assert_sound(dir.path());
}

#[test]
fn other_data_are_refused_untouched_and_every_difference_is_reported() {
    let dir = scratch();
    set_up(dir.path(), &request(8192)).unwrap();
    let before = contents(dir.path());
    let different = changed(request(8192), |r| {
        r.data.schemas = 4;
        r.data.seed = 1;
        r.data.filling = Filling::Compressible;
    });
    match plan(dir.path(), &different) {
        Err(TargetError::DifferentData { difference, .. }) => assert_eq!(
            difference,
            "the number of schemas is 3 there and 4 here; the seed is 42 there and 1 here; the filling is incompressible \
             there and compressible here"
        ),
        other => panic!("{other:?}"),
    }
    assert!(contents(dir.path()) == before);
}

#[test]
fn other_data_are_replaced_when_reported_so() {
    let dir = scratch();
    set_up(dir.path(), &request(8192)).unwrap();
    fs::write(dir.path().join("data-0099.dbf"), "left over").unwrap();
    let other = changed(request(4096), |r| {
        r.data.schemas = 2;
        r.data.replace = Replace::Replace;
        r.redo_files = 4;
    });
    let planned = plan(dir.path(), &other).unwrap();
    assert_eq!(planned.existing, Existing::OtherData);
    assert!(run(planned, &|_| {}, &AtomicBool::new(false)).unwrap().created);
    assert_eq!(Descriptor::load(dir.path()).unwrap().schemas, 2);
    assert!(!dir.path().join("data-0099.dbf").exists());
    assert_sound(dir.path());
}

#[test]
fn an_interrupted_set_up_leaves_nothing() {
    let dir = scratch();
    for (path, stays) in [(dir.path().join("a").join("b"), false), (dir.path().join("kept"), true)] {
        if stays {
            fs::create_dir(&path).unwrap();
        }
        let stop = AtomicBool::new(false);
        let planned = plan(
            &path,
            &changed(request(8192), |r| {
                r.redo_file_bytes = 64 << 20;
            }),
        )
        .unwrap();
        // Progress is reported at the end of writing at the latest: before the data count.
        let stopped = run(planned, &|_| stop.store(true, Ordering::Relaxed), &stop);
        assert!(matches!(stopped, Err(TargetError::Interrupted)), "{stopped:?}");
        assert_eq!(path.exists(), stays);
    }
    assert!(!dir.path().join("a").exists(), "directories that were made on the way are removed too");
    assert_eq!(fs::read_dir(dir.path().join("kept")).unwrap().count(), 0);
}

#[test]
fn an_unfinished_set_up_is_begun_anew() {
    let dir = scratch();
    let directory = Directory::claim(dir.path()).unwrap();
    directory.begin_setup(None).unwrap();
    fs::write(dir.path().join("data-0001.dbf"), "half").unwrap();
    drop(directory);
    let planned = plan(dir.path(), &request(8192)).unwrap();
    assert_eq!(planned.existing, Existing::Unfinished);
    run(planned, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert_sound(dir.path());
}

#[test]
fn a_foreign_directory_is_refused_untouched() {
    let dir = scratch();
    fs::write(dir.path().join("thesis.tex"), "years of work").unwrap();
    for replace in [Replace::Refuse, Replace::Replace] {
        let refused = plan(
            dir.path(),
            &changed(request(8192), |r| {
                r.data.replace = replace;
            }),
        );
        assert!(matches!(refused, Err(TargetError::NotOurs { file, .. }) if file == "thesis.tex"));
    }
    assert_eq!(contents(dir.path()).len(), 1);
}

#[test]
fn data_that_do_not_fit_are_refused_before_anything_is_written() {
    let dir = scratch();
    let path = dir.path().join("new");
    let refused = plan(
        &path,
        &changed(request(8192), |r| {
            r.data.scale_blocks = 1 << 37;
        }),
    );
    match refused {
        Err(TargetError::NoSpace { needed, available, .. }) => assert!(needed > available),
        other => panic!("{other:?}"),
    }
    assert!(!path.exists());
}

#[test]
fn a_directory_in_use_is_refused() {
    let dir = scratch();
    let held = Directory::claim(dir.path()).unwrap();
    let refused = plan(dir.path(), &request(8192));
    assert!(matches!(&refused, Err(TargetError::Locked { holder, .. }) if holder.contains("process")), "{refused:?}");
    drop(held);
    plan(dir.path(), &request(8192)).unwrap();
}

#[test]
fn data_made_by_somebody_else_after_the_plan_are_not_lost() {
    let dir = scratch();
    let planned = plan(
        dir.path(),
        &changed(request(8192), |r| {
            r.data.seed = 1;
        }),
    )
    .unwrap();
    set_up(dir.path(), &request(8192)).unwrap();
    let refused = run(planned, &|_| {}, &AtomicBool::new(false));
    assert!(matches!(refused, Err(TargetError::DifferentData { .. })), "{refused:?}");
    assert_sound(dir.path());
}

#[test]
fn the_data_do_not_depend_on_the_number_of_loaders_or_the_way_of_writing() {
    /// Blocks without their checksum and the identity of their data set.
    fn comparable(path: &Path) -> Vec<u8> {
        let mut data = fs::read(path.join("data-0001.dbf")).unwrap();
        for block in data.chunks_exact_mut(8192) {
            block[..8].fill(0);
            block[12..16].fill(0);
        }
        data
    }
    let made =
        [(1, IoEngine::Psync), (2, IoEngine::best_available().0), (5, IoEngine::Psync)].map(|(loaders, engine)| {
            let dir = scratch();
            set_up(
                dir.path(),
                &changed(request(8192), |r| {
                    r.data.streams = loaders;
                    r.io_engine = Some(engine);
                }),
            )
            .unwrap();
            comparable(dir.path())
        });
    assert!(made[0] == made[1] && made[1] == made[2]);
}

#[test]
fn every_impossible_shape_is_refused_with_its_reason() {
    let dir = scratch();
    let good = request(8192);
    let cases = [
        (
            changed(good.clone(), |r| {
                r.data.schemas = 0;
            }),
            "schemas",
        ),
        (
            changed(good.clone(), |r| {
                r.data.schemas = 4097;
            }),
            "schemas",
        ),
        (
            changed(good.clone(), |r| {
                r.data.block_bytes = 1024;
            }),
            "KiB",
        ),
        (
            changed(good.clone(), |r| {
                r.data.block_bytes = 12 << 10;
            }),
            "KiB",
        ),
        (
            changed(good.clone(), |r| {
                r.data.scale_blocks = 0;
            }),
            "at least 1 block",
        ),
        (
            changed(good.clone(), |r| {
                r.data.scale_blocks = 1 << 40;
            }),
            "less than",
        ),
        (
            changed(good.clone(), |r| {
                r.data.scale_blocks = u64::MAX;
            }),
            "less than",
        ),
        (
            changed(good.clone(), |r| {
                r.redo_file_bytes = (8 << 20) - 4096;
            }),
            "redo log file",
        ),
        (
            changed(good.clone(), |r| {
                r.redo_file_bytes = (8 << 20) + 512;
            }),
            "redo log file",
        ),
        (
            changed(good.clone(), |r| {
                r.redo_file_bytes = u64::MAX - 4095;
            }),
            "too many",
        ),
        (
            changed(good.clone(), |r| {
                r.redo_files = 2;
            }),
            "redo log files",
        ),
        (
            changed(good, |r| {
                r.data.streams = 0;
            }),
            "stream",
        ),
    ];
    for (request, word) in cases {
        match plan(&dir.path().join("new"), &request) {
            Err(TargetError::Shape(why)) => assert!(why.contains(word), "{why}"),
            other => panic!("{request:?} gave {other:?}"),
        }
    }
}

#[test]
fn the_ledger_may_lie_elsewhere_and_is_removed_with_its_data() {
    let (dir, kept, moved) = (scratch(), scratch(), scratch());
    let path = dir.path().join("set");
    let text = |place: &tempfile::TempDir| Some(place.path().to_str().unwrap().to_owned());
    let request = changed(request(8 << 10), |request| request.destinations.ledger = text(&kept));
    let plan_of = |request: &EngineRequest| plan(&path, request).unwrap().notes;
    let (own, elsewhere) = (changed(request.clone(), |it| it.destinations.ledger = None), plan_of(&request));
    assert!(plan_of(&own).iter().any(|note| note.contains("`--ledger DIR`")), "{:?}", plan_of(&own));
    assert!(elsewhere.iter().any(|note| note.contains("on the file system of the data")), "{elsewhere:?}");
    assert!(set_up(&path, &request).unwrap().created);
    let there = || fs::read_dir(kept.path()).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    assert!(there().len() == 1 && !path.join("acknowledged.led").exists(), "{:?}", there());
    assert_sound(&path);
    // Set up again without a word on it, they are the same data; with another place they are not.
    assert!(!set_up(&path, &own).unwrap().created && plan_of(&own).iter().all(|note| !note.contains("--ledger")));
    let other = changed(request.clone(), |request| request.destinations.ledger = text(&moved));
    assert!(matches!(plan(&path, &other), Err(TargetError::DifferentData { .. })));
    // After a move its new place is named.
    let (from, stop) = (there().remove(0), AtomicBool::new(false));
    let verified = |ledger: Option<&str>| verify(&path, ledger, None, false, &|_| {}, &stop);
    fs::rename(&from, moved.path().join(from.file_name().unwrap())).unwrap();
    let error = verified(None).unwrap_err();
    assert!(matches!(&error, TargetError::NoLedger { directory, .. } if directory == kept.path()), "{error}");
    assert!(verified(moved.path().to_str()).unwrap().is_proven());
    fs::rename(moved.path().join(from.file_name().unwrap()), &from).unwrap();
    Directory::lock(&path).unwrap().remove().unwrap();
    assert!(there().is_empty(), "{:?}", there());
}

#[test]
fn data_and_redo_may_lie_elsewhere_and_go_from_there() {
    let (dir, data, redo) = (scratch(), scratch(), scratch());
    let path = dir.path().join("set");
    let text = |place: &tempfile::TempDir| Some(place.path().to_str().unwrap().to_owned());
    let request = changed(request(8 << 10), |request| {
        request.destinations = Destinations { data: text(&data), redo: text(&redo), ledger: None };
    });
    fs::write(data.path().join("thesis.tex"), "years of work").unwrap();
    let written = set_up(&path, &request).unwrap();
    assert!(written.created && !set_up(&path, &request).unwrap().created);
    let names = |place: &Path| {
        let mut names: Vec<String> =
            fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let own = names(&path);
    assert!(own.iter().all(|name| !name.contains(".dbf") && !name.contains("redo")), "{own:?}");
    let (of_data, of_redo) = (names(data.path()), names(redo.path()));
    assert!(of_data.len() == 2 && of_data[0].ends_with("-data-0001.dbf"), "{of_data:?}");
    assert!(of_redo.len() == 3 && of_redo[2].ends_with("-redo-03.log"), "{of_redo:?}");
    assert_sound(&path);
    // Another data set has names of its own there, and one without destinations is another one.
    let other = dir.path().join("other");
    set_up(&other, &request).unwrap();
    assert_eq!((names(data.path()).len(), names(redo.path()).len()), (3, 6));
    let here = changed(request.clone(), |request| request.destinations = Destinations::default());
    let error = set_up(&path, &here).unwrap_err().to_string();
    assert!(error.contains("the data files lie in"), "{error}");
    // What was begun and never finished is removed where it lies.
    let descriptor = Descriptor::load(&path).unwrap();
    fs::remove_file(path.join("database.json")).unwrap();
    Directory::lock(&path).unwrap().begin_setup(Some(&descriptor)).unwrap();
    Directory::lock(&path).unwrap().remove().unwrap();
    Directory::lock(&other).unwrap().remove().unwrap();
    assert_eq!((names(data.path()), names(redo.path())), (vec!["thesis.tex".to_owned()], Vec::new()));
    assert!(!path.exists() && !other.exists());
}

#[test]
fn a_destination_that_is_no_directory_is_refused_before_anything_is_written() {
    let dir = scratch();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    for wrong in [file.to_str().unwrap().to_owned(), dir.path().join("missing").to_str().unwrap().to_owned()] {
        let request = changed(request(8 << 10), |request| request.destinations.redo = Some(wrong.clone()));
        let path = dir.path().join("set");
        assert!(matches!(set_up(&path, &request), Err(TargetError::File { .. })));
        assert!(!path.exists());
    }
}
