//! Holds README.md and the pages under `docs` to the program: what they report a reader to type must exist, their links must lead
//! somewhere, and the picture must show its own figures.

#[path = "cli/place.rs"]
#[allow(dead_code, reason = "a part of it is used here")]
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use model::platforms::{Cache, Catalogue, Combination, Redundancy};
use place::Place;

const README: &str = include_str!("../README.md");
/// The page that shows the output of `make demo`.
const DEMO: &str = include_str!("../docs/workloads/slob.md");
/// The page that translates the options of other tools.
const OTHER_TOOLS: &str = include_str!("../docs/recipes/coming-from.md");
const SUMMARY: &str = include_str!("../docs/SUMMARY.md");
const MAKEFILE: &str = include_str!("../Makefile");
const PICTURE: &str = include_str!("../docs/picture.svg");

const MAX_README_LINES: usize = 200;
/// What a reader can be asked to find his way in; pages that are made from the program do not count.
const MAX_PAGES: usize = 26;
const MAX_WORDS: usize = 45_000;
/// Pages below `docs` that are made from the program, or by tests.
const MADE: &[&str] = &[
    "SUMMARY.md",
    "reference/commands.md",
    "reference/commands/",
    "reference/environment.md",
    "reference/findings.md",
    "reference/formats.md",
    "reference/metrics.md",
    "reference/parameters.md",
    "reference/tables.md",
    "reference/tried-on-guests.md",
    "reference/tried-on.md",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page that a reader may open, by its path.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut paths: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].iter().map(|name| root().join(name)).collect();
    let mut folders = vec![root().join("dev"), root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("the folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    let read = |path: PathBuf| std::fs::read_to_string(&path).ok().map(|text| (path, text));
    let pages: BTreeMap<PathBuf, String> = paths.into_iter().filter_map(read).collect();
    assert!(pages.len() > 20, "only {} pages were found", pages.len());
    pages
}

/// The lines of all fenced blocks of a language.
fn fenced<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let mut lines = Vec::new();
    let mut within = None;
    for line in page.lines() {
        // Examples within a list are indented.
        match (line.trim_start().strip_prefix("```"), within) {
            (Some(opened), None) => within = Some(opened),
            (Some(_), Some(_)) => within = None,
            (None, Some(opened)) if opened == language => lines.push(line),
            (None, _) => {}
        }
    }
    assert!(within.is_none(), "a fenced block is not closed");
    lines
}

/// The lines of a page outside its fenced blocks.
fn prose(page: &str) -> Vec<&str> {
    let mut is_fenced = false;
    let mut outside = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    };
    page.lines().filter(&mut outside).collect()
}

/// The arguments of each `plimsoll` line in a shell block of any page, without a comment or a file that the output goes to. Loads that
/// are measured beside each other are commands too.
fn commands() -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for (path, page) in pages() {
        for line in fenced(&page, "sh") {
            assert!(!line.ends_with('\\'), "{}: the tests here read commands of one line", path.display());
            let line = line.trim_start().trim_start_matches("target/release/");
            let Some(arguments) = line.strip_prefix("plimsoll ") else { continue };
            let words = arguments.split_whitespace().take_while(|word| !word.starts_with('#') && *word != ">");
            let words: Vec<String> = words.map(str::to_owned).collect();
            commands.extend(words.split(|word| word == "--").map(<[String]>::to_vec));
        }
    }
    commands
}

/// What follows each occurrence of `before` in a page, as far as `belongs` holds.
fn after<'a>(page: &'a str, before: &str, belongs: impl Fn(char) -> bool) -> BTreeSet<&'a str> {
    let ends = page.match_indices(before).map(|(at, found)| &page[at + found.len()..]);
    ends.map(|rest| rest.split(|letter| !belongs(letter)).next().unwrap_or("")).collect()
}

/// The words that name a command: those before the first flag, number, name or setting.
fn command_words(arguments: &[String]) -> Vec<&str> {
    let words = if matches!(
        arguments[0].as_str(),
        "slob" | "io" | "orders" | "net" | "host" | "runs" | "experiment" | "durable" | "failure" | "trace"
    ) {
        2
    } else {
        1
    };
    arguments[..words].iter().map(String::as_str).collect()
}

#[test]
fn every_flag_and_parameter_of_every_command_is_in_that_commands_help() {
    let place = Place::new();
    let commands = commands();
    assert!(commands.len() > 80, "only {} commands were found", commands.len());
    let mut helps: BTreeMap<Vec<&str>, String> = BTreeMap::new();
    for arguments in &commands {
        let words = command_words(arguments);
        let help = helps.entry(words.clone()).or_insert_with(|| place.done(&[&words[..], &["--help"]].concat()).stdout);
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        let known: BTreeSet<&str> = help.split(|letter| !is_word(letter)).collect();
        for argument in arguments {
            let name = argument.split('=').next().unwrap_or(argument);
            let is_parameter =
                argument.contains('=') && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
            if argument.starts_with('-') || is_parameter {
                assert!(known.contains(name), "`{name}` of {arguments:?} is not in the help");
            }
        }
    }
}

/// The production that a command asks for is a run that is kept here: the reader's own is not there.
fn like_a_kept_run(arguments: &mut [&str]) {
    let named = arguments.iter().position(|argument| *argument == "--like").and_then(|at| arguments.get_mut(at + 1));
    if let Some(run) = named {
        *run = "format-1-updates";
    }
}

/// Megabytes where a page has gigabytes: what is free on the disk of the machine that tests decides nothing.
fn of_a_small_disk(argument: &str) -> String {
    let size = argument.rsplit('=').next().unwrap_or(argument);
    let is_gigabytes = size.strip_suffix('G').is_some_and(|number| number.parse::<u64>().is_ok());
    if is_gigabytes { format!("{}M", &argument[..argument.len() - 1]) } else { argument.to_owned() }
}

/// On the simulated target, which needs no data, a dry run reads every argument and carries nothing out.
#[test]
fn every_load_and_set_up_can_be_planned() {
    let place = Place::with_kept_runs();
    place.write("slob.conf", "UPDATE_PCT=10\nRUN_TIME=300\nSCALE=80M\nWORK_UNIT=64\n");
    for arguments in &commands() {
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let address = match arguments[..] {
            ["slob", "run" | "sweep", ..] => "sim:",
            ["slob", "setup", ..] => "dir:./data",
            _ => continue,
        };
        if let Some(at) = arguments.iter().position(|argument| *argument == "--target") {
            arguments.drain(at..at + 2);
        }
        // What only a server or only the engine takes is refused elsewhere, as it should be; the help test has looked at these flags.
        for flag in ["--send", "--db-cache", "--host-memory", "--db-schema", "--flash-cache"] {
            if let Some(at) = arguments.iter().position(|argument| *argument == flag) {
                arguments.drain(at..at + 2);
            }
        }
        arguments.retain(|argument| !["--per-node", "--keep-running", "--no-trace", "--dry-run"].contains(argument));
        arguments.push("--dry-run");
        like_a_kept_run(&mut arguments);
        let arguments: Vec<String> = arguments.into_iter().map(of_a_small_disk).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        place.done(&[arguments, vec!["--target", address]].concat());
    }
}

/// Loads beside each other are read whole, on simulated targets in place of those that a reader has.
#[test]
fn every_measurement_of_loads_beside_each_other_can_be_planned() {
    let place = Place::new();
    let lines =
        pages().into_values().flat_map(|page| fenced(&page, "sh").into_iter().map(str::to_owned).collect::<Vec<_>>());
    let lines: Vec<String> =
        lines.filter(|line| line.starts_with("plimsoll beside ") && line.contains(" -- ")).collect();
    assert!(lines.len() > 2, "no page measures loads beside each other");
    for line in lines {
        let words = line.split_whitespace().skip(1).take_while(|word| !word.starts_with('#'));
        let words: Vec<&str> =
            words.flat_map(|word| if word == "beside" { vec![word, "--dry-run"] } else { vec![word] }).collect();
        let plan = place.done(&words);
        assert!(plan.stdout.contains("A+B together") || plan.stdout.contains("A+B+C together"), "{line}: {plan}");
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
    let place = Place::with_kept_runs();
    // A calibration by a database, with `--target`, is planned in `tests/oracle/doctor.rs`.
    let is_raw = |arguments: &Vec<String>| arguments[0] == "io" && !arguments.iter().any(|word| word == "--target");
    let loads: Vec<_> = commands().into_iter().filter(is_raw).collect();
    for command in ["run", "sweep", "orion", "calibrate", "soak"] {
        assert!(loads.iter().any(|arguments| arguments[1] == command), "no page has a `plimsoll io {command}`");
    }
    for arguments in loads {
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        like_a_kept_run(&mut arguments);
        // Small files lie on one device, which is refused there.
        if arguments.contains(&"--together") {
            let at = arguments.iter().position(|argument| *argument == "--path").expect("it has paths");
            arguments.drain(at + 2..at + 4);
            arguments[at + 1] = "sim:volumes=2,clock=simulated";
        }
        // A small file has no connections.
        if let Some(at) = arguments.iter().position(|argument| *argument == "--connections") {
            arguments.drain(at..at + 2);
        }
        place.done(&planned_on_small_files(&arguments, &["one.dat", "two.dat", "three.dat"]));
    }
}

/// The flags in the last column of the table that translates fio's.
#[test]
fn every_flag_that_is_given_for_one_of_fios_exists() {
    let help = Place::new().done(&["io", "run", "--help"]).stdout;
    let (_, after) = OTHER_TOOLS.split_once("\n## From fio\n").expect("the page is about fio");
    let section = after.split("\n## ").next().unwrap_or_default();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `--")).collect();
    assert!(rows.len() > 10, "the table of fio's flags was not found");
    for row in rows {
        let ours = row.split(" | ").nth(1).unwrap_or_default();
        for flag in ours.split(['`', ' ']).filter(|word| word.starts_with("--")) {
            assert!(help.contains(flag), "`{flag}` is not a flag of `plimsoll io run`: {row}");
        }
    }
}

/// The anchor that GitHub makes of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

#[test]
fn anchors_are_made_as_github_makes_them() {
    assert_eq!(anchor("What would CALIBRATE_IO say, only honestly?"), "what-would-calibrate_io-say-only-honestly");
    assert_eq!(anchor("`--host-memory`"), "--host-memory");
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_are_there() {
    let pages = pages();
    let mut wrong = Vec::new();
    let mut anchors = 0;
    for (path, page) in &pages {
        let folder = path.parent().expect("a page lies in a folder");
        let text = prose(page).join("\n");
        for target in after(&text, "](", |letter| letter != ')' && letter != '\n') {
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let (file, heading) =
                target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
            let linked = if file.is_empty() { path.clone() } else { folder.join(file) };
            let Ok(linked) = linked.canonicalize() else {
                wrong.push(format!("{}: `{target}` is not there", path.display()));
                continue;
            };
            let Some(heading) = heading else { continue };
            anchors += 1;
            let headings = pages.get(&linked).map(|page| prose(page)).unwrap_or_default();
            let mut headings = headings.iter().filter(|line| line.starts_with('#'));
            if !headings.any(|line| anchor(line.trim_start_matches('#')) == heading) {
                wrong.push(format!("{}: `{target}` has no such heading", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(anchors > 50, "only {anchors} links to headings were found");
}

/// The pages of the book, by their paths below `docs`.
fn book() -> BTreeMap<String, String> {
    let docs = root().join("docs");
    let named =
        |(path, page): (PathBuf, String)| Some((path.strip_prefix(&docs).ok()?.to_string_lossy().into_owned(), page));
    pages().into_iter().filter_map(named).collect()
}

fn is_made(page: &str) -> bool {
    MADE.iter().any(|made| page == *made || (made.ends_with('/') && page.starts_with(made)))
}

#[test]
fn the_table_of_contents_has_every_page_once_and_no_other() {
    let listed: Vec<&str> = SUMMARY.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)).collect();
    let listed_once: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(listed.len(), listed_once.len(), "a page is listed twice");
    let book = book();
    let there: BTreeSet<&str> = book.keys().map(String::as_str).filter(|page| *page != "SUMMARY.md").collect();
    assert_eq!(listed_once, there, "docs/SUMMARY.md lists other pages than there are");
}

/// A page without the table that the corpus of imports writes into it.
fn written_by_hand(page: &str) -> String {
    let Some((before, rest)) = page.split_once("\n### What was tried\n") else { return page.to_owned() };
    rest.split_once("\n## ").map_or(before.to_owned(), |(_, after)| format!("{before}\n## {after}"))
}

#[test]
fn the_book_stays_small_enough_to_be_read() {
    let by_hand: BTreeMap<String, String> = book().into_iter().filter(|(page, _)| !is_made(page)).collect();
    let words: usize = by_hand.values().map(|page| written_by_hand(page).split_whitespace().count()).sum();
    assert!(by_hand.len() <= MAX_PAGES, "{} pages are written by hand, above {MAX_PAGES}", by_hand.len());
    assert!(words <= MAX_WORDS, "the pages have {words} words, above {MAX_WORDS}: say each fact once");
}

#[test]
fn every_page_opens_with_what_its_reader_can_do_after_it() {
    for (name, page) in book().into_iter().filter(|(page, _)| !is_made(page)) {
        let mut lines = page.lines().filter(|line| !line.is_empty());
        assert!(lines.next().is_some_and(|line| line.starts_with("# ")), "{name} has no title");
        let opening = lines.next().unwrap_or_default();
        assert!(opening.starts_with("After this page you "), "{name} opens with `{opening}`");
    }
}

/// mdBook gives the second of two headings another anchor than the first.
#[test]
fn no_page_of_the_book_has_two_headings_with_one_anchor() {
    for (name, page) in book() {
        let mut seen = BTreeSet::new();
        for heading in prose(&page).into_iter().filter(|line| line.starts_with('#')) {
            assert!(seen.insert(anchor(heading.trim_start_matches('#'))), "{name} has `{heading}` twice");
        }
    }
}

/// In the book there is nothing outside of it that a link could lead to.
#[test]
fn no_link_leads_out_of_the_book() {
    let docs = root().join("docs").canonicalize().expect("the book is there");
    for (name, page) in book() {
        let text = prose(&page).join("\n");
        for target in after(&text, "](", |letter| letter != ')' && letter != '#' && letter != '\n') {
            let is_within = target.is_empty()
                || target.contains("://")
                || docs.join(&name).parent().is_some_and(|folder| {
                    folder.join(target).canonicalize().is_ok_and(|linked| linked.starts_with(&docs))
                });
            assert!(is_within, "{name}: `{target}` is not in the book");
        }
    }
}

/// Paths below `docs` that sources, messages and scripts name exist, with their headings; so do the pages of findings.
#[test]
fn every_page_that_is_named_outside_of_the_book_exists() {
    let mut wrong = Vec::new();
    let mut named = 0;
    let mut files = vec![root().join("Makefile")];
    let mut folders: Vec<PathBuf> =
        ["src", "crates", "tests", "examples", "packaging"].iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("the folder can be listed").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let book = book();
    let of_path = |letter: char| letter.is_ascii_alphanumeric() || "-_/.#".contains(letter);
    for path in files {
        // Sources of the catalogue are pages of clouds.
        if path.extension().is_some_and(|extension| extension == "toml") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let mut targets: Vec<String> = after(&text, "docs/", of_path).into_iter().map(str::to_owned).collect();
        if path.ends_with("analysis/src/rule.rs") {
            targets = after(&text, "] \"", of_path).into_iter().map(str::to_owned).collect();
            assert!(targets.len() > 20, "findings name {targets:?}");
        }
        for target in targets {
            let target = target.trim_end_matches('.');
            let (page, heading) =
                target.split_once('#').map_or((target, None), |(page, heading)| (page, Some(heading)));
            if !page.ends_with(".md") {
                continue;
            }
            named += 1;
            let found = book.get(page);
            let has = |heading| {
                found.is_some_and(|page| {
                    prose(page)
                        .iter()
                        .any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == heading)
                })
            };
            if found.is_none() || heading.is_some_and(|heading| !has(heading)) {
                wrong.push(format!("{}: `docs/{target}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(named > 50, "only {named} were found");
}

#[test]
fn every_page_can_be_reached_from_the_readme() {
    let pages = pages();
    let mut seen = BTreeSet::new();
    let mut next = vec![root().join("README.md").canonicalize().expect("README.md is there")];
    while let Some(path) = next.pop() {
        let Some(page) = pages.get(&path) else { continue };
        if seen.insert(path.clone()) {
            let folder = path.parent().expect("a page lies in a folder");
            let targets = after(page, "](", |letter| letter != ')' && letter != '#' && letter != '\n');
            next.extend(targets.into_iter().filter_map(|target| folder.join(target).canonicalize().ok()));
        }
    }
    let is_page = |path: &Path| path.starts_with(root().join("docs")) && !path.ends_with("SUMMARY.md");
    let lost: Vec<_> = pages.keys().filter(|path| is_page(path) && !seen.contains(*path)).collect();
    assert!(lost.is_empty(), "no link leads to {lost:?}");
}

#[test]
fn the_readme_stays_short_enough_to_be_read() {
    let lines = README.lines().count();
    assert!(lines <= MAX_README_LINES, "README.md has {lines} lines: move what is about one task to the book");
}

#[test]
fn every_make_target_that_is_named_exists() {
    let mut named = BTreeSet::new();
    let pages = pages();
    for page in pages.values() {
        named.extend(after(page, "`make ", |letter| letter.is_ascii_lowercase() || letter == '-'));
        let lines = fenced(page, "sh").into_iter().map(|line| line.trim_start_matches("sudo "));
        named.extend(lines.filter_map(|line| line.strip_prefix("make ")?.split(' ').next()));
    }
    assert!(["demo", "test", "install"].iter().all(|target| named.contains(target)), "{named:?}");
    for target in named {
        assert!(MAKEFILE.lines().any(|line| line.starts_with(&format!("{target}:"))), "there is no `make {target}`");
    }
}

/// The cells of the row that the demo's output has for `sessions`, from the table whose heading holds `heading`.
fn demo_row(heading: &str, sessions: u32) -> Vec<&'static str> {
    let label = format!("s1_t{sessions}");
    let mut rows =
        fenced(DEMO, "text").into_iter().skip_while(|line| !(line.starts_with("step") && line.contains(heading)));
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
    let answer = fenced(DEMO, "text").into_iter().find(|line| line.starts_with("Sustains at least "));
    assert!(answer.is_some_and(|answer| PICTURE.contains(answer)), "docs/picture.svg does not open as the demo does");
}

#[test]
fn every_machine_and_volume_of_an_example_is_in_the_catalogue() {
    let mut seen = 0;
    for (path, page) in pages() {
        for line in page.lines() {
            let word = |flag: &str| line.split_once(flag).and_then(|(_, rest)| rest.split([' ', '`', '<']).next());
            let (Some(machine), volume) = (word("--machine "), word("--volume ")) else { continue };
            // A placeholder has no small letter.
            if !machine.contains(|letter: char| letter.is_ascii_lowercase()) {
                continue;
            }
            let catalogue = Catalogue::built_in();
            let found = match volume {
                Some(volume) => Combination::parse(catalogue, (machine, 1), volume, Cache::None, Redundancy::External)
                    .map(drop)
                    .map_err(|problem| problem.to_string()),
                None => catalogue.machine(machine).map(drop).map_err(|problem| problem.to_string()),
            };
            assert_eq!(found, Ok(()), "{}: {line}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen} lines were found");
}
