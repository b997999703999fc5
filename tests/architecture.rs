//! The direction of dependencies, and rules that the compiler does not hold. dev/architecture.md has the picture.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate and the crates of this workspace that it may use. None uses one that is listed below it.
const CRATES: &[(&str, &[&str])] = &[
    ("files", &[]),
    ("model", &["files"]),
    ("mysql-seam", &[]),
    ("measure", &["model"]),
    ("targets", &["files", "measure", "model"]),
    ("load", &["measure", "model", "targets"]),
    ("sql", &["files", "measure", "model", "mysql-seam", "targets"]),
    ("oracle", &["measure", "model", "sql", "targets"]),
    ("durable", &["files", "measure", "model", "targets"]),
    ("import", &["model"]),
    ("trace", &["files", "model"]),
    ("analysis", &["model"]),
    ("report", &["analysis", "files", "model"]),
    ("push", &["model", "report"]),
    ("serve", &["analysis", "files", "model", "report"]),
];

/// Each part of the program and the other parts that it may use.
const PROGRAM: &[(&str, &[&str])] = &[
    ("databases", &[]),
    ("merge", &[]),
    ("fleet", &[]),
    ("plan", &[]),
    ("cli", &["databases", "fleet", "merge", "plan"]),
];

/// Files that may hold `unsafe`: interfaces of the kernel, and memory shared with it.
const UNSAFE_FILES: &[&str] = &[
    "crates/measure/src/os/kernel.rs",
    "crates/measure/src/os/net/interface.rs",
    "crates/measure/src/os/tcp.rs",
    "crates/targets/src/block/lane.rs",
    "crates/targets/src/block/read_back.rs",
    "crates/targets/src/crew.rs",
    "crates/targets/src/embedded/dbwriter.rs",
    "crates/targets/src/embedded/flash/session.rs",
    "crates/targets/src/embedded/flash/writer.rs",
    "crates/targets/src/embedded/recovery.rs",
    "crates/targets/src/embedded/redo/writer.rs",
    "crates/targets/src/embedded/scan.rs",
    "crates/targets/src/embedded/touch.rs",
    "crates/targets/src/io/arena.rs",
    "crates/targets/src/io/event.rs",
    "crates/targets/src/io/file.rs",
    "crates/targets/src/io/pool.rs",
    "crates/targets/src/io/uring.rs",
    "crates/targets/src/nfs/queue/memory.rs",
];

const LONGEST_FILE_LINES: usize = 800;

/// What only one database says. After the record, runs are of any database: what a server calls a thing comes with the run.
const WORDS_OF_ONE_SERVER: &[&str] = &["pg_stat", "max_wal_size", "shared_buffers", "autovacuum", "debug_io_direct"];

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

fn all_sources() -> Vec<PathBuf> {
    let mut files = sources(Path::new("src"));
    for name in CRATES.iter().map(|(name, _)| *name).chain(["test-support"]) {
        files.extend(sources(&Path::new("crates").join(name).join("src")));
    }
    files
}

/// The source without comments.
fn code_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The crates of this workspace below `[dependencies]`.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let table: toml::Table = toml::from_str(manifest).unwrap();
    let known: BTreeSet<&str> = CRATES.iter().map(|(name, _)| *name).collect();
    let named = table["dependencies"].as_table().unwrap().keys();
    named.filter(|name| known.contains(name.as_str())).cloned().collect()
}

#[test]
fn crates_use_only_what_the_picture_allows() {
    let book = fs::read_to_string("dev/architecture.md").unwrap();
    let found: BTreeSet<String> =
        fs::read_dir("crates").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let listed = CRATES.iter().map(|(name, _)| (*name).to_owned()).chain(["test-support".to_owned()]);
    assert_eq!(found, listed.collect());
    for (place, (name, allowed)) in CRATES.iter().enumerate() {
        let used = dependencies(&fs::read_to_string(format!("crates/{name}/Cargo.toml")).unwrap());
        assert_eq!(used, allowed.iter().map(|other| (*other).to_owned()).collect(), "what `{name}` uses");
        for other in *allowed {
            assert!(
                CRATES[..place].iter().any(|(above, _)| above == other),
                "`{name}` uses `{other}`, listed below it"
            );
        }
        let uses = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
        let row = book.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        assert!(
            row.is_some_and(|row| row.ends_with(&format!("| {uses} |"))),
            "dev/architecture.md: no row `{name}` … {uses}"
        );
    }
}

#[test]
fn every_crate_is_under_both_licences() {
    let table = |path: &str| toml::from_str::<toml::Table>(&fs::read_to_string(path).unwrap()).unwrap();
    let licence = "MIT OR Apache-2.0";
    assert_eq!(table("Cargo.toml")["workspace"]["package"]["license"].as_str(), Some(licence));
    assert_eq!(table("fuzz/Cargo.toml")["package"]["license"].as_str(), Some(licence));
    let crates = fs::read_dir("crates").unwrap().map(|entry| entry.unwrap().path().join("Cargo.toml"));
    for manifest in crates.chain([PathBuf::from("Cargo.toml")]) {
        let inherited = table(manifest.to_str().unwrap())["package"].get("license").cloned();
        let inherits = inherited.and_then(|licence| licence.get("workspace")?.as_bool());
        assert_eq!(inherits, Some(true), "{}", manifest.display());
    }
    assert!(fs::read_to_string("LICENSE-MIT").unwrap().contains("The Plimsoll authors"));
    assert!(fs::read_to_string("LICENSE-APACHE").unwrap().contains("Version 2.0, January 2004"));
}

/// `clippy.toml` lists what only `files` may use; whoever forbids it in each crate is looked for here.
#[test]
fn nothing_is_written_but_through_one_door() {
    const FORBIDS: &str = "#![cfg_attr(not(test), warn(clippy::disallowed_methods))]";
    let crates = CRATES.iter().map(|(name, _)| *name).filter(|name| *name != "files");
    let roots = crates.map(|name| format!("crates/{name}/src/lib.rs")).chain(["src/lib.rs".to_owned()]);
    for root in roots {
        assert!(fs::read_to_string(&root).unwrap().contains(FORBIDS), "{root} does not forbid it");
    }
    // Servers for the tests of other crates.
    let excepted = ["tests/architecture.rs", "mysql/test_server.rs", "postgres/test_server.rs"];
    for path in all_sources().iter().filter(|path| !excepted.iter().any(|end| path.ends_with(end))) {
        let text = fs::read_to_string(path).unwrap();
        let around = ["allow(clippy::disallowed_methods", "expect(clippy::disallowed_methods"]
            .iter()
            .any(|way| text.contains(way));
        assert!(!around, "{} goes round it", path.display());
    }
}

#[test]
fn parts_of_the_program_use_each_other_in_one_direction() {
    let parts: BTreeMap<&str, &[&str]> = PROGRAM.iter().copied().collect();
    let part_of = |file: &Path| file.iter().nth(1).unwrap().to_string_lossy().trim_end_matches(".rs").to_owned();
    for file in sources(Path::new("src")) {
        let part = part_of(&file);
        let Some(allowed) = parts.get(part.as_str()) else { continue };
        // Tests of plans run them.
        if file.to_string_lossy().contains("tests") {
            continue;
        }
        for (other, _) in PROGRAM.iter().filter(|(other, _)| *other != part && !allowed.contains(other)) {
            let code = code_of(&file);
            assert!(!code.contains(&format!("crate::{other}")), "{} uses `{other}`", file.display());
        }
    }
}

#[test]
fn unsafe_code_stays_where_the_kernel_needs_it() {
    let holds = |file: &PathBuf| {
        let code = code_of(file);
        ["unsafe {", "unsafe fn", "unsafe impl"].iter().any(|word| code.contains(word))
    };
    let holding: Vec<String> =
        all_sources().iter().filter(|file| holds(file)).map(|file| file.display().to_string()).collect();
    assert_eq!(holding, UNSAFE_FILES);
}

#[test]
fn no_file_is_too_long() {
    for file in all_sources() {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= LONGEST_FILE_LINES, "{} has {lines} lines", file.display());
    }
}

#[test]
fn nothing_after_the_record_knows_which_database_it_was() {
    for name in ["analysis", "report", "serve"] {
        for file in sources(&Path::new("crates").join(name).join("src")) {
            // Tests make up runs of servers that exist.
            if file.to_string_lossy().contains("tests") {
                continue;
            }
            let code = code_of(&file);
            let code = code.split("#[cfg(test)]").next().unwrap_or_default();
            for word in WORDS_OF_ONE_SERVER {
                assert!(!code.contains(word), "{} has {word}", file.display());
            }
        }
    }
}
