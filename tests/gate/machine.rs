//! Limits of the machine, which a shell can set.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use test_support::scratch::scratch;

fn limited(limit: &str, directory: &std::path::Path, words: &str) -> Output {
    let script = format!("ulimit {limit} && exec \"$0\" {words}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_plimsoll")]).current_dir(directory).env("PLIMSOLL_RUNS", "runs");
    shell.output().unwrap()
}

/// The signal that the kernel sends then ended the program without a word.
#[test]
fn a_file_size_limit_is_an_error_like_others() {
    let place = scratch();
    let run = "slob run --target sim: -s 1 -t 1 RUN_TIME=1 --warmup 0 -q";
    assert!(limited("-n 1024", place.path(), run).status.success());
    for words in ["report last -o page.html", "export --out tables"] {
        let done = limited("-f 1", place.path(), words);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!((done.status.code(), done.status.signal()), (Some(2), None), "{words}: {said}");
        assert!(said.contains("File too large") && said.contains("ulimit -f"), "{words}: {said}");
    }
    let done = limited("-f 1", place.path(), run);
    let (shown, said) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.code() == Some(2) && said.contains("ulimit -f"), "{said}");
    assert!(!shown.contains("Kept in"), "{shown}");
    assert!(!place.path().join("page.html").exists());
    let left = fs::read_dir(place.path().join("tables")).map_or(0, |entries| entries.count());
    assert_eq!(left, 0, "nothing half-written is left");
}
