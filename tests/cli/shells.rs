//! Completions, man pages, and what `make install` puts where.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::Place;
use crate::skip::skip;

/// What a program says of a file that it checks; nothing where it is not installed, which is said.
fn checked(program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    match Command::new(program).args(arguments).arg(file).output() {
        Ok(output) => {
            let reported = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{program} refuses {}: {reported}", file.display());
            Some(reported)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skip(format_args!("`{program}` is not installed, so what is made for it was not checked"));
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

fn installed_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(installed_files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

#[test]
fn completions_are_scripts_that_their_shell_can_read() {
    let place = Place::new();
    for (shell, arguments) in [("bash", &["-n"][..]), ("zsh", &["-n"]), ("fish", &["--no-execute"])] {
        let script = place.done(&["completions", shell]).stdout;
        for word in ["calibrate", "max-latency", "completions"] {
            assert!(script.contains(word), "{shell} knows no {word}");
        }
        place.write(shell, &script);
        if let Some(reported) = checked(shell, arguments, &place.path(shell)) {
            assert_eq!(reported, "", "{shell}");
        }
    }
    let refused = place.run(&["completions", "tcsh"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("bash, zsh, fish"), "{refused}");
}

#[test]
fn bash_completes_commands_and_flags() {
    let place = Place::new();
    place.write("completions", &place.done(&["completions", "bash"]).stdout);
    let complete = |words: &str, current: &str| {
        let script = format!(
            "source completions; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _plimsoll plimsoll '{current}' ''; echo \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash").args(["-c", &script]).current_dir(place.path("")).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete("plimsoll io cal", "cal"), "calibrate");
    assert_eq!(complete("plimsoll slob run --rat", "--rat"), "--rate");
}

#[test]
fn every_command_has_a_man_page_that_renders_without_a_warning() {
    let place = Place::new();
    let reported = place.done(&["manual", "man"]);
    assert!(reported.stdout.is_empty() && reported.stderr.contains("man pages into `man`"), "{reported}");
    let pages = installed_files(&place.path("man"));
    assert!(pages.len() > 20, "{pages:?}");
    for page in &pages {
        let Some(warnings) = checked("groff", &["-man", "-Tutf8", "-ww", "-z"], page) else { return };
        assert_eq!(warnings, "", "{}", page.display());
    }
    let output =
        Command::new("groff").args(["-man", "-Tutf8", "-P-cbou"]).arg(place.path("man/plimsoll-io-sweep.1")).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    for part in ["NAME", "SYNOPSIS", "LOAD", "EXAMPLES"] {
        assert!(text.lines().any(|line| line == part), "no {part} in:\n{text}");
    }
    assert!(text.contains("plimsoll io sweep --path /u01/test.dat --pattern randread --depth 1,2,4,…,256\n"), "{text}");
    assert!(!text.contains("EXTRA"), "{text}");
}

#[test]
fn man_pages_are_written_again_but_never_over_files_of_others() {
    let place = Place::new();
    place.done(&["manual", "man"]);
    place.done(&["manual", "man"]);
    place.write("man/plimsoll-io.1", "my own page\n");
    let refused = place.run(&["manual", "man"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("`man/plimsoll-io.1` is not overwritten"), "{refused}");
}

#[test]
fn make_install_puts_everything_below_its_prefix_and_uninstall_takes_it_away() {
    let place = Place::new();
    let make = |target: &str, program: &str| {
        let mut command = Command::new("make");
        command.arg("--no-print-directory").arg(target).arg(format!("PLIMSOLL={program}"));
        command.arg("PREFIX=/usr").arg(format!("DESTDIR={}", place.path("package").display()));
        command.current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("MAKEFLAGS").output()
    };
    let missing = match make("install", "/nowhere/plimsoll") {
        Ok(output) => output,
        Err(error) => return skip(format_args!("make cannot be started: {error}")),
    };
    assert!(!missing.status.success() && !place.path("package").exists());
    assert!(String::from_utf8_lossy(&missing.stderr).contains("hint: run `make build` first"));

    let done = make("install", env!("CARGO_BIN_EXE_plimsoll")).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let usr = place.path("package/usr");
    for file in [
        "bin/plimsoll",
        "share/man/man1/plimsoll.1",
        "share/man/man1/plimsoll-slob-run.1",
        "share/bash-completion/completions/plimsoll",
        "share/zsh/site-functions/_plimsoll",
        "share/fish/vendor_completions.d/plimsoll.fish",
    ] {
        assert!(std::fs::metadata(usr.join(file)).is_ok_and(|it| it.len() > 500), "{file} is not there, or is empty");
    }
    let version = Command::new(usr.join("bin/plimsoll")).arg("--version").output().unwrap();
    assert!(version.status.success());

    assert!(make("uninstall", env!("CARGO_BIN_EXE_plimsoll")).unwrap().status.success());
    assert_eq!(installed_files(&place.path("package")), Vec::<PathBuf>::new());
}
