//! Commands that messages, help and pages advise exist, with the flags that they are advised with.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
            found.push(path);
        }
    }
}

/// What stands between back-ticks and begins with the program's name, in a text whose string literals may go over several lines.
fn advised(text: &str) -> Vec<String> {
    let joined: Vec<&str> =
        text.split("\\\n").enumerate().map(|(at, part)| if at == 0 { part } else { part.trim_start() }).collect();
    let joined = joined.concat();
    let found = joined.split("`plimsoll ").skip(1).filter_map(|rest| Some(rest.split_once('`')?.0));
    found.map(|command| command.replace('\n', " ")).collect()
}

/// The first flag that the command does not have; also a command that there is none of.
fn unknown(root: &Command, advised: &str) -> Option<String> {
    let mut command = root;
    for word in advised.split_whitespace() {
        // Loads beside each other are commands again.
        if word == "--" {
            command = root;
            continue;
        }
        if let Some(next) = word.split('|').next().and_then(|word| command.find_subcommand(word)) {
            command = next;
            continue;
        }
        let name = word.split(['=', ']', ')', ',', '|']).next().unwrap_or_default().trim_start_matches('[');
        let has = |test: &dyn Fn(&clap::Arg) -> bool| command.get_arguments().any(test);
        let is_there = match (name.strip_prefix("--"), name.strip_prefix('-')) {
            (Some("help" | "version"), _) => true,
            (Some(long), _) => {
                has(&|arg| arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&long)))
            }
            (None, Some(short)) => {
                short.len() != 1 || short == "h" || has(&|arg| arg.get_short() == short.chars().next())
            }
            // Of a command that has others below it only a placeholder may stand in the place of one.
            (None, None) => {
                !command.has_subcommands() || !name.chars().all(|sign| sign.is_ascii_lowercase() || sign == '-')
            }
        };
        if !is_there {
            return Some(word.to_owned());
        }
    }
    None
}

#[test]
fn advised_commands_are_there_with_their_flags() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("README.md")];
    ["src", "crates", "docs"].iter().for_each(|folder| files(&root.join(folder), &mut found));
    // What users may type instead of a command, and this file.
    let is_about_others = |path: &Path| path.ends_with("guesses.rs") || path.ends_with("cli/advised.rs");
    let program = super::help::command();
    let (mut checked, mut wrong) = (0, Vec::new());
    for path in found.iter().filter(|path| !is_about_others(path)) {
        for command in advised(&fs::read_to_string(path).unwrap()) {
            checked += 1;
            if let Some(word) = unknown(&program, &command) {
                wrong.push(format!("{}: `plimsoll {command}`: {word}", path.display()));
            }
        }
    }
    assert!(checked > 200, "only {checked} were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A flag that is spelled otherwise, and a command that is missing.
    assert_eq!(unknown(&program, "slob run --config x"), Some("--config".to_owned()));
    assert_eq!(unknown(&program, "slob ran -s 1"), Some("ran".to_owned()));
}
