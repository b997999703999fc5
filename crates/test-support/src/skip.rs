//! How a test says that it cannot be run on this machine. One helper for the tests of the crate and for all test programs.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::thread;

/// Names the file to which every skipped test adds a line, because Cargo hides what passing tests print. `tests/run` sets it.
const SKIPPED: &str = "PLIMSOLL_SKIPPED";

/// Says why this test, or the part of it that `why` names, is not run. Whoever calls it then returns or goes on.
#[allow(clippy::print_stderr, reason = "what is skipped is said where no summary is made")]
pub fn skip(why: impl Display) {
    let why = why.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("skipped: {why}");
    let Some(list) = std::env::var_os(SKIPPED) else { return };
    // Cargo adds a hash to the name of a program, and the test harness names each test's thread after it.
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let program = program.rsplit_once('-').map_or(program.as_str(), |(name, _)| name);
    let line = format!("{program}\t{}\t{why}\n", thread::current().name().unwrap_or("(a thread of a test)"));
    let added =
        OpenOptions::new().create(true).append(true).open(&list).and_then(|mut file| file.write_all(line.as_bytes()));
    added.unwrap_or_else(|error| panic!("cannot add to {}: {error}", Path::new(&list).display()));
}
