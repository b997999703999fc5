//! The style guide, held over every string that users see, and over comments. Help has a test of its own, beside the commands.
//!
//! `baseline.txt` has what there is still: how often the strings and comments of a file break a rule. A file may not have more,
//! and when it has less its number goes down. `UPDATE_DOCS=1 cargo test --test style` lowers the numbers, and never raises one.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

mod literals;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const BASELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/style/baseline.txt");

const HEADER: &str =
    "# Breaches of the style guide that are left, a file a line. These numbers may only shrink: tests/style/main.rs.\n";

/// What other programs read, not people: words of the statements that a server is sent.
const STATEMENTS: &[&str] = &[" FROM ", " WHERE ", " INTO ", " VALUES", "CREATE ", "select ", "begin\n", " loop\n"];

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Whether a string is a statement for a server.
fn is_statement(text: &str) -> bool {
    STATEMENTS.iter().any(|word| text.contains(word))
}

/// Each breach, as a line to read: where, what, and the text.
fn breaches(rule: &str, path: &Path, texts: &[(usize, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (line, text) in texts {
        let words = if rule == "strings" { words::forbidden_in_strings(text) } else { words::forbidden(text) };
        let mut problems: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        if rule == "strings" && !is_statement(text) {
            let long = words::long_sentences(text);
            problems.extend(long.iter().map(|_| format!("more than {} words", words::MOST_WORDS)));
        }
        found.extend(problems.iter().map(|problem| format!("{}:{line}: {problem}: {text}", path.display())));
    }
    found
}

/// Every breach by rule and file.
fn all_breaches() -> BTreeMap<(&'static str, PathBuf), Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.ends_with("test-support") {
            sources(&folder.join("src"), &mut files);
        }
    }
    let read: Vec<_> = files
        .iter()
        .map(|file| {
            let path = file.strip_prefix(root).unwrap().to_path_buf();
            let texts = literals::texts(&path, &fs::read_to_string(file).unwrap());
            (path, texts)
        })
        .collect();
    let for_tests: BTreeSet<&PathBuf> = read.iter().flat_map(|(_, texts)| &texts.test_modules).collect();
    let is_for_tests = |path: &Path| path.ancestors().any(|part| for_tests.contains(&part.to_path_buf()));
    let mut all = BTreeMap::new();
    for (path, texts) in read.iter().filter(|(path, _)| !is_for_tests(path)) {
        for (rule, texts) in [("strings", &texts.strings), ("comments", &texts.comments)] {
            let found = breaches(rule, path, texts);
            if !found.is_empty() {
                all.insert((rule, path.clone()), found);
            }
        }
    }
    all
}

fn baseline() -> BTreeMap<(String, PathBuf), usize> {
    let text = fs::read_to_string(BASELINE).unwrap_or_default();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [rule, count, path] = words[..] else { panic!("baseline.txt: {row}") };
        ((rule.to_owned(), PathBuf::from(path)), count.parse().unwrap())
    })
    .collect()
}

#[test]
fn texts_break_the_style_guide_no_more_often_than_before() {
    let found = all_breaches();
    let mut allowed = baseline();
    let count = |rule: &str, path: &Path| {
        found.iter().find(|((r, p), _)| *r == rule && p == path).map_or(0, |(_, lines)| lines.len())
    };
    if std::env::var_os("UPDATE_DOCS").is_some() {
        for ((rule, path), most) in &mut allowed {
            *most = count(rule, path).min(*most);
        }
        let mut text = HEADER.to_owned();
        for ((rule, path), most) in allowed.iter().filter(|(_, most)| **most > 0) {
            writeln!(text, "{rule} {most} {}", path.display()).unwrap();
        }
        fs::write(BASELINE, text).unwrap();
        allowed.retain(|_, most| *most > 0);
    }
    let mut problems = String::new();
    for ((rule, path), lines) in &found {
        let most = allowed.get(&((*rule).to_owned(), path.clone())).copied().unwrap_or(0);
        if lines.len() > most {
            writeln!(problems, "{rule} of {}: {}, allowed {most}", path.display(), lines.len()).unwrap();
            lines.iter().for_each(|line| writeln!(problems, "  {line}").unwrap());
        }
    }
    for ((rule, path), most) in &allowed {
        let now = count(rule, path);
        if now < *most {
            writeln!(problems, "{rule} of {}: {now}, the baseline has {most}: lower it", path.display()).unwrap();
        }
    }
    assert!(problems.is_empty(), "UPDATE_DOCS=1 cargo test --test style lowers the baseline\n{problems}");
}
