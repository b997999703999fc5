//! Holds README.md to the program: what it tells a reader to type must exist, and its picture must show its own figures.

#[path = "cli/place.rs"]
#[allow(dead_code, reason = "a part of it is used here")]
mod place;

use std::collections::BTreeSet;
use std::path::Path;

use place::Place;

const README: &str = include_str!("../README.md");
const MAKEFILE: &str = include_str!("../Makefile");
const PICTURE: &str = include_str!("../docs/picture.svg");

/// The lines of all fenced blocks of a language.
fn fenced(language: &str) -> Vec<&'static str> {
    let mut lines = Vec::new();
    let mut within = None;
    for line in README.lines() {
        match (line.strip_prefix("```"), within) {
            (Some(opened), None) => within = Some(opened),
            (Some(_), Some(_)) => within = None,
            (None, Some(opened)) if opened == language => lines.push(line),
            (None, _) => {}
        }
    }
    assert!(within.is_none(), "a fenced block is not closed");
    lines
}

/// The arguments of each `plimsoll` line in a shell block.
fn commands() -> Vec<Vec<&'static str>> {
    let lines = fenced("sh");
    assert!(!lines.iter().any(|line| line.ends_with('\\')), "the tests here read commands of one line");
    let commands = lines.iter().filter_map(|line| line.strip_prefix("plimsoll "));
    commands.map(|arguments| arguments.split_whitespace().collect()).collect()
}

/// What follows each occurrence of `before` in the README, as far as `belongs` holds.
fn after(before: &str, belongs: impl Fn(char) -> bool) -> BTreeSet<&'static str> {
    let ends = README.match_indices(before).map(|(at, found)| &README[at + found.len()..]);
    ends.map(|rest| rest.split(|letter| !belongs(letter)).next().unwrap_or("")).collect()
}

/// The words that name a command: those before the first flag, number, name or setting.
fn command_words<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let words = if matches!(arguments[0], "slob" | "io" | "runs") { 2 } else { 1 };
    arguments[..words].to_vec()
}

#[test]
fn every_flag_and_parameter_of_every_command_is_in_that_commands_help() {
    let place = Place::new();
    let commands = commands();
    assert!(commands.len() > 20, "only {} commands were found", commands.len());
    for arguments in commands {
        let help = place.done(&[command_words(&arguments), vec!["--help"]].concat()).stdout;
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        let known: BTreeSet<&str> = help.split(|letter| !is_word(letter)).collect();
        for argument in &arguments {
            let name = argument.split('=').next().unwrap_or(argument);
            let is_parameter =
                argument.contains('=') && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
            if argument.starts_with('-') || is_parameter {
                assert!(known.contains(name), "`{name}` of {arguments:?} is not in the help");
            }
        }
    }
}

/// On the simulated target, which needs no data, a dry run reads every argument and carries nothing out.
#[test]
fn every_load_and_set_up_can_be_planned() {
    let place = Place::new();
    place.write("slob.conf", "UPDATE_PCT=10\nRUN_TIME=300\nSCALE=80M\nWORK_UNIT=64\n");
    for mut arguments in commands() {
        let address = match arguments[..] {
            ["slob", "run" | "sweep", ..] => "sim:",
            ["slob", "setup", ..] => "dir:./data",
            _ => continue,
        };
        if let Some(at) = arguments.iter().position(|argument| *argument == "--target") {
            arguments.drain(at..at + 2);
        }
        // What only a server can be told is refused elsewhere, as it should be; the help test has looked at these flags.
        for flag in ["--send", "--db-cache", "--host-memory", "--db-schema"] {
            if let Some(at) = arguments.iter().position(|argument| *argument == flag) {
                arguments.drain(at..at + 2);
            }
        }
        arguments.retain(|argument| !["--per-node", "--keep-running", "--no-trace", "--dry-run"].contains(argument));
        arguments.push("--dry-run");
        place.done(&[arguments, vec!["--target", address]].concat());
    }
}

/// A load on raw storage as a dry run that needs neither the README's devices nor its sizes: each path becomes a small file
/// that would be laid out, so that the layout of several is still looked at. Simulated storage stays what it is.
fn planned_on_small_files<'a>(arguments: &[&'a str], files: &[&'a str]) -> Vec<&'a str> {
    let mut files = files.iter();
    let mut planned = arguments[..2].to_vec();
    let mut rest = arguments[2..].iter().copied();
    let mut is_simulated = false;
    let mut paths = 0;
    let mut flags = Vec::new();
    while let Some(argument) = rest.next() {
        match argument {
            "--path" => {
                let path = rest.next().expect("a path follows");
                is_simulated |= path.starts_with("sim:");
                let file = files.next().expect("there are files enough");
                flags.extend(["--path", if is_simulated { path } else { file }]);
                paths += 1;
            }
            "--size" => drop(rest.next()),
            "--dry-run" => {}
            _ => flags.push(argument),
        }
    }
    // Ours stand before the first of ORION's.
    planned.push("--dry-run");
    if !is_simulated {
        planned.extend(["--size", "64M"]);
    }
    if paths == 0 {
        planned.extend(["--path", files.next().expect("there are files enough")]);
    }
    planned.extend(flags);
    planned
}

#[test]
fn every_load_on_raw_storage_can_be_planned() {
    let place = Place::new();
    let loads: Vec<_> = commands().into_iter().filter(|arguments| arguments[0] == "io").collect();
    for command in ["run", "sweep", "orion", "calibrate", "soak"] {
        assert!(loads.iter().any(|arguments| arguments[1] == command), "no `plimsoll io {command}` in README.md");
    }
    for arguments in loads {
        place.done(&planned_on_small_files(&arguments, &["one.dat", "two.dat", "three.dat"]));
    }
}

/// The flags in the last column of the table that translates fio's.
#[test]
fn every_flag_that_is_given_for_one_of_fios_exists() {
    let help = Place::new().done(&["io", "run", "--help"]).stdout;
    let rows: Vec<&str> = README.lines().filter(|line| line.starts_with("| `--")).collect();
    assert!(rows.len() > 10, "the table of fio's flags was not found");
    for row in rows {
        let ours = row.split(" | ").nth(1).unwrap_or_default();
        for flag in ours.split(['`', ' ']).filter(|word| word.starts_with("--")) {
            assert!(help.contains(flag), "`{flag}` is not a flag of `plimsoll io run`: {row}");
        }
    }
}

#[test]
fn every_file_that_is_linked_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let targets = after("](", |letter| letter != ')' && letter != '#');
    let files: Vec<&str> = targets.into_iter().filter(|target| !target.is_empty() && !target.contains("://")).collect();
    assert!(files.contains(&"docs/picture.svg"), "{files:?}");
    for file in files {
        assert!(root.join(file).is_file(), "README.md links `{file}`, which is not there");
    }
}

#[test]
fn every_make_target_that_is_named_exists() {
    let in_text = after("`make ", |letter| letter.is_ascii_lowercase() || letter == '-');
    let in_blocks = fenced("sh").into_iter().filter_map(|line| line.strip_prefix("make "));
    let named: BTreeSet<&str> = in_text.into_iter().chain(in_blocks).collect();
    assert!(named.contains("demo") && named.contains("test"), "{named:?}");
    for target in named {
        assert!(MAKEFILE.lines().any(|line| line.starts_with(&format!("{target}:"))), "there is no `make {target}`");
    }
}

#[test]
fn every_variable_that_is_named_is_read_by_a_command() {
    let help = Place::new().done(&["slob", "run", "--help"]).stdout;
    for name in after("`PLIMSOLL_", |letter| letter.is_ascii_uppercase() || letter == '_') {
        assert!(help.contains(&format!("[env: PLIMSOLL_{name}]")), "`PLIMSOLL_{name}` is not in the help");
    }
}

/// The cells of the row that the demo's output has for `sessions`, from the table whose heading holds `heading`.
fn demo_row(heading: &str, sessions: u32) -> Vec<&'static str> {
    let label = format!("s1_t{sessions}");
    let mut rows = fenced("text").into_iter().skip_while(|line| !(line.starts_with("step") && line.contains(heading)));
    let row = rows.find(|line| line.split_whitespace().next() == Some(&label));
    row.unwrap_or_else(|| panic!("the demo's output has no {label} below `{heading}`")).split_whitespace().collect()
}

#[test]
fn the_picture_shows_the_figures_of_the_demo() {
    for sessions in [1, 2, 4, 8, 16, 32] {
        let rates = demo_row("SLOBops/s", sessions);
        // Each duration is a number and its unit: label, sessions, mean, p50, p99.
        let times = demo_row("read mean", sessions);
        let plural = if sessions == 1 { "" } else { "s" };
        let title =
            format!("<title>{sessions} session{plural}: {} reads/s, p99 {} {}</title>", rates[4], times[6], times[7]);
        assert!(PICTURE.contains(&title), "docs/picture.svg has no {title}");
    }
}
