//! Members of this machine: made, locked, and never taken from somebody else.

use std::fs;

use super::*;
use crate::config::group::GroupSpec;
use crate::scratch::scratch;
use crate::targets::TargetError;
use crate::targets::block::safety::Permission;

fn opened(spec: &GroupSpec, access: GroupAccess, destroy: &[&str]) -> Result<DiskGroup, TargetError> {
    let permission =
        Permission { destroy: destroy.iter().map(|name| (*name).to_owned()).collect(), destroy_signature: false };
    let stop = AtomicBool::new(false);
    let members = Members {
        spec,
        permission: &permission,
        access,
        durability: Durability::OnSync,
        io_engine: IoEngine::best_available().0,
        elsewhere: &|_| None,
        progress: &|_, _| {},
        stop: &stop,
    };
    members.open_or_create()
}

#[test]
fn missing_files_are_made_and_found_again() {
    let folder = scratch();
    let paths: Vec<PathBuf> = (0..2).map(|number| folder.path().join(format!("m{number}"))).collect();
    let error = opened(&spec("normal,au=1M:0|1", &paths), GroupAccess::Write, &[]).unwrap_err();
    assert!(error.to_string().contains("m0` is not there, and none of the others belongs to a disk group"), "{error}");
    let sized = spec("normal,au=1M,size=9M:0|1", &paths);
    let group = opened(&sized, GroupAccess::Write, &[]).unwrap();
    write_all(&group.create_file("f", 64 * BLOCK, Striping::Coarse).unwrap(), 64, 1);
    // Nobody else has them meanwhile.
    let error = opened(&sized, GroupAccess::Write, &[]).unwrap_err();
    assert!(error.to_string().contains("in use by another Plimsoll"), "{error}");
    drop(group);
    let group = opened(&spec("normal:0|1", &paths), GroupAccess::Read, &[]).unwrap();
    assert_eq!(read_block(&group.open_file("f").unwrap(), 9), Some(1));
    drop(group);
    // A member that is lost is not made anew in silence: the data on it are lost.
    fs::remove_file(&paths[1]).unwrap();
    let error = opened(&sized, GroupAccess::Write, &[]).unwrap_err();
    assert!(error.to_string().contains("lacks"), "{error}");
    assert!(!paths[1].exists());
}

#[test]
fn what_is_somebody_elses_is_kept_and_nothing_is_left_half_made() {
    let folder = scratch();
    let paths: Vec<PathBuf> = (0..3).map(|number| folder.path().join(format!("m{number}"))).collect();
    fs::write(&paths[1], vec![7; 9 << 20]).unwrap();
    let sized = spec("normal,au=1M,size=9M:0|1", &paths);
    let error = opened(&sized, GroupAccess::Write, &[]).unwrap_err();
    assert!(error.to_string().contains("destroys a file that Plimsoll did not lay out"), "{error}");
    assert!(!paths[0].exists() && fs::read(&paths[1]).unwrap().iter().all(|byte| *byte == 7));
    // One that is too small is found after the others were made, which are gone then.
    fs::write(&paths[2], vec![7; 1 << 20]).unwrap();
    let error = opened(&spec("normal,au=1M,size=9M:0|2", &paths), GroupAccess::Write, &["m2"]).unwrap_err();
    assert!(error.to_string().contains("are needed at least"), "{error}");
    assert!(!paths[0].exists());
    drop(opened(&sized, GroupAccess::Write, &["m1"]).unwrap());
    // A member is nobody's to overwrite without a word.
    let single = spec("external,au=1M:1", &paths);
    let error = opened(&single, GroupAccess::Write, &[]).unwrap_err();
    assert!(error.to_string().contains("stands in the place of member 1"), "{error}");
}
