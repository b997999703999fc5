//! Limits of the system: memory, threads, open files, and what an ordinary user may do.

use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use crate::place::{Answer, Place};
use crate::skip::skip;

/// Runs the program from a shell that has set `limits` first.
fn limited(place: &Place, limits: &str, arguments: &[&str]) -> Answer {
    Answer::from(in_shell(place, limits, arguments).output().expect("a shell can be started"))
}

fn in_shell(place: &Place, limits: &str, arguments: &[&str]) -> std::process::Command {
    let program = place.plimsoll(arguments);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")]).arg(program.get_program()).args(program.get_args());
    shell.current_dir(place.path("")).stdin(std::process::Stdio::null());
    shell
}

#[test]
fn a_cache_that_does_not_fit_into_memory_is_refused_before_anything_starts() {
    let place = Place::new();
    place.set_up();
    for more in [&[][..], &["--dry-run"]] {
        let refused = place.run(&[&["slob", "run", "--cache", "100T"][..], more].concat());
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("error: a cache of 100 TiB and what 2 sessions need are"), "{refused}");
        assert!(refused.stderr.contains("hint: use a smaller `--cache`"), "{refused}");
    }
    assert!(!place.path("plimsoll-runs").exists());
    let simulated = ["slob", "run", "--cache", "100T", "--target", "sim:", "--dry-run"];
    place.done(&simulated);
}

#[test]
fn too_few_descriptors_are_an_error_with_advice() {
    let place = Place::new();
    place.set_up();
    let words = ["slob", "run", "-t", "32", "--lanes", "64", "RUN_TIME=1", "--warmup=0s", "--io-engine", "io-uring"];
    let refused = limited(&place, "ulimit -n 32", &words);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("hint: raise the limit of open files: `ulimit -n 65536`"), "{refused}");
    place.done(&["slob", "verify"]);
}

#[test]
fn threads_that_cannot_be_started_are_an_error_with_advice() {
    let place = Place::new();
    let words = ["slob", "run", "-t", "2000", "--lanes", "2000", "RUN_TIME=1", "--warmup=0s", "--target", "sim:"];
    // Where exactly memory ends decides what fails, so it is tried in many places.
    for kib in (140_000..1_500_000).step_by(45_300) {
        let begun = Instant::now();
        let refused = limited(&place, &format!("ulimit -v {kib}"), &words);
        assert_eq!(refused.code, Some(2), "{kib} KiB\n{refused}");
        assert!(refused.stderr.contains("cannot start a thread for each lane of sessions"), "{kib} KiB\n{refused}");
        assert!(refused.stderr.contains("hint: use fewer `--lanes`"), "{kib} KiB\n{refused}");
        assert!(begun.elapsed() < Duration::from_secs(120), "it took {:?}", begun.elapsed());
    }
}

/// An ordinary user who may start no other threads than the one that works and the one that listens for signals.
#[test]
fn an_import_without_workers_takes_longer_and_nothing_else() {
    // A user of its own, for the limit counts all threads of one user.
    const USER: u32 = 64_321;
    // SAFETY: a plain system call without arguments.
    if unsafe { libc::geteuid() } != 0 {
        skip("only root can work as a user without other threads");
        return;
    }
    let place = Place::new();
    for (count, name) in ["one.csv", "two.csv", "three.csv"].into_iter().enumerate() {
        std::fs::write(place.path(name), format!("EVENT,WAIT_TIME_MICRO,WAIT_COUNT\na,1,{count}7\n")).unwrap();
    }
    let opened = std::process::Command::new("chmod").args(["-R", "a+rwX"]).arg(place.path("")).status();
    assert!(opened.is_ok_and(|status| status.success()));
    let may_start = in_shell(&place, "true", &["--version"]).uid(USER).output();
    if !may_start.is_ok_and(|output| output.status.success()) {
        skip("an ordinary user cannot start the program where it stands");
        return;
    }
    let words = ["import", "one.csv", "two.csv", "three.csv", "missing.csv"];
    let limits = "ulimit -u 3 2>/dev/null || ulimit -p 3";
    let answer = Answer::from(in_shell(&place, limits, &words).uid(USER).output().unwrap());
    assert_eq!(answer.code, Some(2), "{answer}");
    assert!(
        answer.stdout.contains("3 runs imported from 3 files") || answer.stderr.contains("missing.csv"),
        "{answer}"
    );
    assert_eq!(place.done(&["runs", "list", "--json"]).json().as_array().map(Vec::len), Some(3), "{answer}");
}

/// Containers often allow an ordinary user 64 KiB of locked memory, and newer kernels count rings as such.
#[test]
fn little_locked_memory_is_no_reason_to_fail() {
    let place = Place::new();
    place.set_up();
    // SAFETY: a plain system call without arguments.
    let is_root = unsafe { libc::geteuid() } == 0;
    if is_root {
        // Root is not bound by the limit, so somebody else tries.
        let opened = std::process::Command::new("chmod").args(["-R", "a+rwX"]).arg(place.path("")).status();
        assert!(opened.is_ok_and(|status| status.success()));
        let may_start = in_shell(&place, "true", &["--version"]).uid(65_534).output();
        if !may_start.is_ok_and(|output| output.status.success()) {
            skip("an ordinary user cannot start the program where it stands");
            return;
        }
    }
    for limit in ["64", "0"] {
        let words = ["slob", "run", "-t", "2", "RUN_TIME=1", "--warmup=0s"];
        let mut shell = in_shell(&place, &format!("ulimit -l {limit}"), &words);
        if is_root {
            shell.uid(65_534);
        }
        let answer = Answer::from(shell.output().unwrap());
        assert_eq!(answer.code, Some(0), "{limit} KiB\n{answer}");
    }
}
