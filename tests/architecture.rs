//! The map of the house, held against the code: a room uses only the rooms that it names as its neighbours.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each room and the rooms that it may use. A room never uses one that is listed below it.
const ROOMS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("workload", &[]),
    ("config", &["units", "workload"]),
    ("record", &["units"]),
    ("measure", &["units", "record"]),
    ("targets", &["units", "config", "record", "measure", "workload"]),
    ("load", &["units", "record", "measure", "workload", "targets"]),
    ("plan", &["units", "config", "record", "workload", "targets", "load"]),
    ("import", &["units", "record"]),
    ("analysis", &["units", "record"]),
    ("report", &["units", "record", "analysis"]),
    ("serve", &["units", "record", "analysis", "report"]),
    (
        "cli",
        &[
            "units", "config", "record", "measure", "workload", "targets", "load", "plan", "import", "analysis",
            "report", "serve",
        ],
    ),
];

/// Files that may hold `unsafe`: the kernel's interfaces and memory shared with the kernel.
const UNSAFE_FILES: &[&str] = &[
    "src/measure/os/kernel.rs",
    "src/targets/crew.rs",
    "src/targets/io/arena.rs",
    "src/targets/io/extents.rs",
    "src/targets/io/file.rs",
    "src/targets/io/pool.rs",
    "src/targets/io/uring.rs",
    "src/targets/block/lane.rs",
    "src/targets/block/read_back.rs",
    "src/targets/embedded/dbwriter.rs",
    "src/targets/embedded/directory.rs",
    "src/targets/embedded/recovery.rs",
    "src/targets/embedded/redo/writer.rs",
    "src/targets/embedded/scan.rs",
    "src/targets/embedded/touch.rs",
];

const LONGEST_FILE_LINES: usize = 800;

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The source with comments taken out, so that a room may speak of another without using it.
fn code_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Rooms named by `crate::room` in the code, also inside braces: `use crate::{record, units}`.
fn rooms_used(code: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap_or_default(),
            None => rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default(),
        };
        for name in names.split(',') {
            let name = name.trim().split("::").next().unwrap_or_default();
            used.insert(name.to_owned());
        }
    }
    used
}

#[test]
fn a_room_uses_only_its_neighbours() {
    let rooms: BTreeMap<&str, &[&str]> = ROOMS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (room, neighbours) in ROOMS {
        for file in sources(&Path::new("src").join(room)) {
            for used in rooms_used(&code_of(&file)) {
                if used != *room && rooms.contains_key(used.as_str()) && !neighbours.contains(&used.as_str()) {
                    wrong.push(format!("{} uses `{used}`, which is no neighbour of `{room}`", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_map_has_one_direction() {
    let order: Vec<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    for (place, (room, neighbours)) in ROOMS.iter().enumerate() {
        for neighbour in *neighbours {
            let theirs = order.iter().position(|other| other == neighbour).expect("a neighbour is a room");
            assert!(theirs < place, "`{room}` may use `{neighbour}`, which stands below it");
        }
    }
}

#[test]
fn every_room_is_on_the_map_and_in_the_book() {
    let mapped: BTreeSet<String> = ROOMS.iter().map(|(room, _)| (*room).to_owned()).collect();
    let found: BTreeSet<String> = fs::read_dir("src")
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(mapped, found);
    let book = fs::read_to_string("docs/architecture.md").unwrap();
    for (room, neighbours) in ROOMS {
        let listed = if neighbours.is_empty() { "nobody".to_owned() } else { neighbours.join(", ") };
        let row = book.lines().find(|line| line.starts_with(&format!("| `{room}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/architecture.md has no row for `{room}`"));
        assert!(row.ends_with(&format!("| {listed} |")), "docs/architecture.md: `{room}` uses {listed}, not: {row}");
    }
}

#[test]
fn unsafe_code_stays_where_the_kernel_needs_it() {
    let holding: Vec<String> = sources(Path::new("src"))
        .iter()
        .filter(|file| {
            let code = code_of(file);
            code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl")
        })
        .map(|file| file.display().to_string())
        .collect();
    let stray: Vec<&String> = holding.iter().filter(|file| !UNSAFE_FILES.contains(&file.as_str())).collect();
    assert!(stray.is_empty(), "unsafe code outside its files: {stray:?}");
    let idle: Vec<&&str> = UNSAFE_FILES.iter().filter(|file| !holding.iter().any(|held| held == **file)).collect();
    assert!(idle.is_empty(), "files that need no unsafe code any more: {idle:?}");
}

#[test]
fn no_file_is_too_long() {
    for file in sources(Path::new("src")) {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= LONGEST_FILE_LINES, "{} has {lines} lines", file.display());
    }
}

#[test]
fn only_the_doors_print_and_exit() {
    for file in sources(Path::new("src")) {
        if file.starts_with("src/cli") || file == Path::new("src/main.rs") {
            continue;
        }
        let code = code_of(&file);
        let tested = code.split("#[cfg(test)]").next().unwrap_or_default();
        for word in ["println!", "eprintln!", "process::exit"] {
            let is_test_file = file.to_string_lossy().contains("tests");
            assert!(is_test_file || !tested.contains(word), "{} has {word}", file.display());
        }
    }
}

/// What only one database says. Past the neck, runs are of any database: what is reported has a name of its meaning there, and what
/// a server calls a thing comes with the run.
const WORDS_OF_ONE_SERVER: &[&str] = &["pg_stat", "max_wal_size", "shared_buffers", "autovacuum", "debug_io_direct"];

#[test]
fn past_the_neck_nobody_knows_which_database_it_was() {
    for file in sources(Path::new("src")) {
        let past_the_neck = ["src/analysis", "src/report", "src/serve"].iter().any(|room| file.starts_with(room));
        // Tests make up runs of servers that exist.
        if !past_the_neck || file.to_string_lossy().contains("tests") {
            continue;
        }
        let code = code_of(&file);
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        for word in WORDS_OF_ONE_SERVER {
            assert!(!code.contains(word), "{} has {word}", file.display());
        }
    }
}
