//! Limits of the machine, which a shell can set.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

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

#[test]
fn a_limit_of_open_files_is_an_error_that_says_what_to_raise() {
    let place = scratch();
    let run = "net run --to self --pattern bulk --connections 64 --duration 1 --warmup 0 -q";
    let done = limited("-n 24", place.path(), run);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && said.contains("Too many open files"), "{said}");
    assert!(said.contains("hint:") && said.contains("ulimit -n"), "{said}");
}

/// Storage is not blamed for seconds in which the program was kept from running.
#[test]
fn a_program_that_was_stopped_says_so() {
    let place = scratch();
    let words = "io run --path data --size 8M --pattern randread --depth 1 --duration 4 --warmup 0 --json";
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(words.split_whitespace()).current_dir(place.path()).env("PLIMSOLL_RUNS", "runs");
    let mut child = command
        .stdout(fs::File::create(place.path().join("report.json")).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    // Again and again, since nobody knows when the window begins on a slow disk.
    while child.try_wait().unwrap().is_none() {
        kill_process(pid, Signal::STOP).unwrap();
        sleep(Duration::from_millis(900));
        kill_process(pid, Signal::CONT).unwrap();
        sleep(Duration::from_millis(300));
    }
    let document = fs::read_to_string(place.path().join("report.json")).unwrap();
    assert!(document.contains("\"generator.stopped\""), "{document}");
    assert!(!document.contains("\"steadiness.stall\""), "{document}");
}
