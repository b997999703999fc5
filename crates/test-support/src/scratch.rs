//! Where tests put data. One helper for the tests of the crate and for all test programs.

use std::path::PathBuf;

use tempfile::TempDir;

/// Names another place for the data of tests, such as a disk of another kind or one in memory.
const PLACE: &str = "PLIMSOLL_TEST_DIR";

/// A directory for one test. It lies in Cargo's target directory unless somebody names a place, because that is on a disk as a
/// rule, so that O_DIRECT works, and because what a killed test leaves there is no part of the sources.
pub fn scratch() -> TempDir {
    let place = std::env::var_os(PLACE).map_or_else(beside_the_program, PathBuf::from);
    let made = std::fs::create_dir_all(&place).and_then(|()| tempfile::tempdir_in(&place));
    made.unwrap_or_else(|error| panic!("cannot make a directory in {}: {error}", place.display()))
}

/// `target/tmp`, seen from `target/debug/deps/program`.
fn beside_the_program() -> PathBuf {
    let program = std::env::current_exe().expect("a program has a path");
    program.ancestors().nth(3).expect("programs lie in the target directory").join("tmp")
}

/// Whether files there are in memory alone, on tmpfs: they have no page cache to leave, and writes to them are never under way.
pub fn is_in_memory(path: &std::path::Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    rustix::fs::statfs(path).expect("the place of a test can be looked at").f_type == TMPFS
}
