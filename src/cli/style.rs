//! The style guide, held over the help of every command and flag.

use std::collections::{BTreeMap, BTreeSet};

use clap::Command;

#[path = "../../tests/style/words.rs"]
mod words;

const LONGEST_LINE: usize = 100;

/// Flags whose text is not the same everywhere, although they take values of the same name, and why.
const SEVERAL_TEXTS: &[(&str, &str)] = &[
    ("--block-size", "of data it is a property with limits, of requests a length"),
    ("--cache", "of the engine, of logical reads, or of what a database will have"),
    ("--connections", "to an NFS server they belong to threads and paths"),
    ("--duration", "a probe has no window, and a load of commits need not end"),
    ("--full", "what a report leaves out differs"),
    ("--json", "a page says what its document has"),
    ("--output", "what is written differs"),
    ("--pattern", "requests to storage and messages on a network have different ones"),
    ("--rate", "order entry takes a list without ranges"),
    ("--size", "of a volume, of temporary data, of memory or of messages"),
    ("--target", "a calibration takes Oracle alone, a probe what runs here, commits what can keep them"),
    ("--token-file", "servers of tests and witnesses have tokens of their own"),
    ("--threads", "of a schema, of a processor or of an NFS client"),
];

/// Looks at every command, by its words.
fn walk(command: &Command, path: &str, look: &mut impl FnMut(&Command, &str)) {
    look(command, path);
    for inner in command.get_subcommands() {
        walk(inner, &format!("{path} {}", inner.get_name()), look);
    }
}

fn every_command(look: &mut impl FnMut(&Command, &str)) {
    let mut root = super::help::command();
    root.build();
    walk(&root, "plimsoll", look);
}

/// Every text of help: where it is, and the text.
fn texts() -> Vec<(String, String)> {
    let mut all = Vec::new();
    every_command(&mut |command, path| {
        let abouts =
            [command.get_about(), command.get_long_about(), command.get_after_help(), command.get_after_long_help()];
        let plain = |text: &clap::builder::StyledStr| super::help::plain(&text.to_string());
        all.extend(abouts.into_iter().flatten().map(|text| (path.to_owned(), plain(text))));
        for argument in command.get_arguments() {
            let place = format!("{path} {}", argument.get_id());
            let helps = [argument.get_help(), argument.get_long_help()];
            all.extend(helps.into_iter().flatten().map(|text| (place.clone(), plain(text))));
            let values = argument.get_possible_values();
            all.extend(values.iter().filter_map(|value| Some((place.clone(), plain(value.get_help()?)))));
        }
    });
    all
}

#[test]
fn help_keeps_to_the_style_guide() {
    let (mut problems, mut seen) = (BTreeSet::new(), 0);
    for (place, text) in texts() {
        seen += 1;
        for word in words::forbidden_in_strings(&text) {
            problems.insert(format!("{place}: `{word}`: {text}"));
        }
        for sentence in words::long_sentences(&text) {
            problems.insert(format!("{place}: more than {} words: {sentence}", words::MOST_WORDS));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(seen > 500, "only {seen} texts were looked at");
}

/// Paragraphs after the arguments follow the width of the terminal, and examples a width of their own.
#[test]
fn help_of_an_argument_or_command_is_short() {
    let mut problems = BTreeSet::new();
    let mut look = |place: &str, text: Option<&clap::builder::StyledStr>| {
        let text = text.map(ToString::to_string).unwrap_or_default();
        for line in text.lines().filter(|line| line.chars().count() > LONGEST_LINE) {
            problems.insert(format!("{place}: {} characters: {line}", line.chars().count()));
        }
        let first = text.lines().next().and_then(|first| first.split(" [default: ").next());
        if first.is_some_and(|first| first.contains(';')) {
            problems.insert(format!("{place}: a semicolon: {text}"));
        }
    };
    every_command(&mut |command, path| {
        look(path, command.get_about());
        look(path, command.get_long_about());
        for argument in command.get_arguments() {
            let place = format!("{path} {}", argument.get_id());
            look(&place, argument.get_help());
            look(&place, argument.get_long_help());
            argument.get_possible_values().iter().for_each(|value| look(&place, value.get_help()));
        }
    });
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn the_same_flag_has_the_same_text() {
    let mut by_flag: BTreeMap<(String, String), BTreeMap<String, String>> = BTreeMap::new();
    every_command(&mut |command, path| {
        for argument in command.get_arguments() {
            let (Some(flag), Some(help)) = (argument.get_long(), argument.get_help()) else { continue };
            let values: Vec<String> =
                argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
            let values = if argument.get_action().takes_values() { values.join(" ") } else { String::new() };
            let help = help.to_string();
            let text = help.split(" [default: ").next().unwrap_or_default().to_owned();
            by_flag.entry((format!("--{flag}"), values)).or_default().insert(text, path.to_owned());
        }
    });
    let several: BTreeMap<_, _> = by_flag.iter().filter(|(_, texts)| texts.len() > 1).collect();
    let allowed: BTreeSet<&str> = SEVERAL_TEXTS.iter().map(|(flag, _)| *flag).collect();
    let wrong: Vec<_> = several.iter().filter(|((flag, _), _)| !allowed.contains(flag.as_str())).collect();
    assert!(wrong.is_empty(), "these have several texts: {wrong:#?}");
    let found: BTreeSet<&str> = several.keys().map(|(flag, _)| flag.as_str()).collect();
    let stale: Vec<&&str> = allowed.difference(&found).collect();
    assert!(stale.is_empty(), "these have one text: {stale:?}");
}
