//! Release files, where `make dist` has built them: they are used where nothing else is installed.

use test_support::skip;

use std::path::Path;
use std::process::Command;

/// How `packaging/try` ends where it cannot be run.
const CANNOT: i32 = 77;

#[test]
fn release_files_work_in_an_empty_root_and_in_a_bare_debian_and_leave_nothing() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/try");
    let answer = Command::new(script).output().expect("a script can be started");
    let reported = String::from_utf8_lossy(&answer.stdout);
    match answer.status.code() {
        Some(0) => {}
        Some(CANNOT) => skip::skip(reported.trim_end().rsplit("skipped: ").next().unwrap_or_default()),
        _ => panic!("{}: {reported}{}", answer.status, String::from_utf8_lossy(&answer.stderr)),
    }
}

#[test]
fn the_pages_name_the_files_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    for page in [include_str!("../README.md"), include_str!("../docs/start/install.md")] {
        for file in [format!("plimsoll_{version}_amd64.deb"), format!("plimsoll-{version}-x86_64-linux.tar.gz")] {
            assert!(page.contains(&file), "a page does not name {file}");
        }
    }
}
