//! The map of the house, held against the code: a room uses only the rooms that it names as its neighbours.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

#[path = "architecture/graph.rs"]
mod graph;
#[path = "architecture/planted.rs"]
mod planted;
#[path = "architecture/uses.rs"]
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use graph::{Edge, Modules, circles};
use uses::Part;

/// Each room and the rooms that it may use. A room never uses one that is listed below it.
const ROOMS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("workload", &[]),
    ("platforms", &["units"]),
    ("config", &["units", "workload"]),
    ("record", &["units"]),
    ("measure", &["units", "record"]),
    ("targets", &["units", "config", "record", "measure", "workload"]),
    ("load", &["units", "record", "measure", "workload", "targets"]),
    ("fleet", &["units", "record", "measure", "targets"]),
    ("plan", &["units", "config", "record", "workload", "targets", "load"]),
    ("import", &["units", "record"]),
    ("merge", &["units", "record"]),
    ("analysis", &["units", "record", "platforms"]),
    ("report", &["units", "record", "platforms", "analysis"]),
    ("serve", &["units", "record", "analysis", "report"]),
    (
        "cli",
        &[
            "units",
            "config",
            "record",
            "measure",
            "workload",
            "targets",
            "load",
            "plan",
            "import",
            "merge",
            "analysis",
            "report",
            "serve",
            "fleet",
            "platforms",
        ],
    ),
];

/// Files that may hold `unsafe`: the kernel's interfaces and memory shared with the kernel.
const UNSAFE_FILES: &[&str] = &[
    "src/measure/os/kernel.rs",
    "src/measure/os/net/interface.rs",
    "src/measure/os/tcp.rs",
    "src/targets/crew.rs",
    "src/targets/io/arena.rs",
    "src/targets/io/event.rs",
    "src/targets/io/extents.rs",
    "src/targets/io/file.rs",
    "src/targets/io/pool.rs",
    "src/targets/io/uring.rs",
    "src/targets/nfs/queue/memory.rs",
    "src/targets/block/lane.rs",
    "src/targets/block/read_back.rs",
    "src/targets/embedded/dbwriter.rs",
    "src/targets/embedded/flash/session.rs",
    "src/targets/embedded/flash/writer.rs",
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

/// All sources by their paths below `src`; those of the program's door are no part of the library.
fn library() -> Vec<(String, String)> {
    let root = Path::new("src");
    let files = sources(root).into_iter().filter(|file| file != Path::new("src/main.rs"));
    files
        .map(|file| (file.strip_prefix(root).unwrap().display().to_string(), fs::read_to_string(&file).unwrap()))
        .collect()
}

fn room_of(file: &str) -> &str {
    file.split('/').next().unwrap_or_default()
}

/// Uses of rooms that are no neighbours: by their names, and of what is not only for tests also by where it is defined.
fn trespasses(sources: &[(String, String)], rooms: &[(&str, &[&str])]) -> Vec<String> {
    let rooms: BTreeMap<&str, &[&str]> = rooms.iter().copied().collect();
    let mut used_rooms = Modules::of(sources, Part::All).rooms_named();
    used_rooms.extend(Modules::of(sources, Part::WithoutTests).rooms_behind());
    let mut wrong = BTreeSet::new();
    for (file, used) in used_rooms {
        let (room, used) = (room_of(&file), used.as_str());
        let is_near = room == used || rooms.get(room).is_none_or(|near| near.contains(&used));
        if rooms.contains_key(used) && !is_near {
            wrong.insert(format!("{file} uses `{used}`, which is no neighbour of `{room}`"));
        }
    }
    wrong.into_iter().collect()
}

#[test]
fn a_room_uses_only_its_neighbours() {
    let wrong = trespasses(&library(), ROOMS);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files below a folder that use what its root defines, although the root uses them. All for one reason: the root holds the words
/// that its files share, and puts the files together. A root that grows gives its words a file of their own.
const ROOTS: &[&str] = &[
    "analysis/calibration/mod.rs",
    "analysis/capacity/mod.rs",
    "analysis/ceiling/mod.rs",
    "analysis/check/mod.rs",
    "analysis/comparison/mod.rs",
    "analysis/mod.rs",
    "analysis/opening/mod.rs",
    "analysis/together/mod.rs",
    "cli/check/mod.rs",
    "cli/mod.rs",
    "config/postgres/mod.rs",
    "import/evhist/mod.rs",
    "import/oracle/subjects/mod.rs",
    "import/orion/mod.rs",
    "import/spool/mod.rs",
    "measure/doctor/mod.rs",
    "measure/trace/mod.rs",
    "record/store/mod.rs",
    "report/csv/mod.rs",
    "report/html/chart/mod.rs",
    "report/html/mod.rs",
    "report/sections/mod.rs",
    "report/sections/servers/mod.rs",
    "targets/block/signature/mod.rs",
    "targets/embedded/verify/mod.rs",
    "targets/io/mod.rs",
    "targets/database/mod.rs",
    "targets/mysql/server/mod.rs",
    "targets/network/client/mod.rs",
    "targets/postgres/cluster/mod.rs",
    "targets/sql/monitor/mod.rs",
    "targets/postgres/data/proof/mod.rs",
    "targets/postgres/monitor/mod.rs",
    "targets/simulated/mod.rs",
];

/// Other uses that close a circle between files of one room: who, whom, and why it stands. `*` is every file of a folder.
const ARROWS: &[(&str, &str, &str)] = &[
    (
        "analysis/*",
        "analysis/finding.rs",
        "the list of all findings names the types of the rules, and a rule gives its own as one of them",
    ),
    ("analysis/rounds.rs", "analysis/steadiness.rs", "takes the rates inside a window, which steadiness is about"),
    ("analysis/traffic.rs", "analysis/figures.rs", "takes figures of a step, some of which are of traffic"),
    (
        "analysis/limit_verdict/mod.rs",
        "analysis/opening/mod.rs",
        "the verdict names the load that a report would open with",
    ),
    (
        "analysis/limit_verdict/mod.rs",
        "analysis/opening/answer.rs",
        "the verdict names the load that a report would open with",
    ),
    ("cli/check/session.rs", "cli/check/database.rs", "starts the check of the place that was named"),
    ("cli/check/session.rs", "cli/check/storage.rs", "starts the check of the place that was named"),
    ("cli/io/together.rs", "cli/io/measure.rs", "takes the job, which may be of several volumes"),
    ("config/*", "config/error.rs", "the error of the room names the problems of its parts, which give it"),
    ("config/io/problem.rs", "config/io/*", "a problem shows the limits and words of the parameter that it is about"),
    ("config/net/problem.rs", "config/net/*", "a problem shows the limits and words of the parameter that it is about"),
    ("config/postgres/problem.rs", "config/postgres/parse.rs", "a problem lists the parameters that there are"),
    ("import/error.rs", "import/source.rs", "an error says of which source it is"),
    ("import/fio/text/mod.rs", "import/fio/json/mod.rs", "must not claim what the other two recognise"),
    ("import/fio/text/mod.rs", "import/fio/terse.rs", "must not claim what the other two recognise"),
    ("import/iperf3/stream.rs", "import/iperf3/json.rs", "lines of a stream end as the document that the other reads"),
    ("import/oracle/containers.rs", "import/oracle/header.rs", "takes the helpers that write a fact"),
    ("import/oracle/text/marks.rs", "import/oracle/text/open.rs", "takes how many lines a heading may have"),
    ("import/oracle/text/open.rs", "import/oracle/text/sections.rs", "takes the list that cannot grow without bounds"),
    (
        "import/oracle/text/sections.rs",
        "import/oracle/statspack.rs",
        "a Statspack report names its database in a place of its own",
    ),
    ("import/osstat/figures.rs", "import/osstat/iostat.rs", "takes how a cell is read"),
    ("import/run.rs", "import/join/mod.rs", "drafts become runs when they have been joined"),
    ("load/ceiling.rs", "load/step.rs", "runs a step to see what the load generator can do"),
    ("plan/caches.rs", "plan/slob.rs", "takes how a size is written"),
    ("plan/steps.rs", "plan/slob.rs", "takes the request that steps are made of"),
    ("plan/together.rs", "plan/io.rs", "takes the level, which one volume has as several do"),
    ("record/step.rs", "record/server.rs", "a step holds what servers and waits have of its own types"),
    ("record/step.rs", "record/waits.rs", "a step holds what servers and waits have of its own types"),
    (
        "record/store/headline.rs",
        "record/store/reader.rs",
        "takes the outline of a step, of which the reader knows the format",
    ),
    ("report/*", "report/text.rs", "`Detail`, how much is reported, stands where a report in text is put together"),
    ("report/html/picture/mod.rs", "report/html/comparison.rs", "a picture names its runs as the page does"),
    ("targets/error.rs", "targets/embedded/block.rs", "the error of the room wraps that of each target"),
    ("targets/error.rs", "targets/postgres/error.rs", "the error of the room wraps that of each target"),
    ("targets/error.rs", "targets/mysql/error.rs", "the error of the room wraps that of each target"),
    ("targets/error.rs", "targets/oracle/error.rs", "the error of the room wraps that of each target"),
    ("targets/block/lane.rs", "targets/block/raw.rs", "a lane holds parts of the target that opened it"),
    (
        "targets/block/usage.rs",
        "targets/block/error.rs",
        "the error holds who uses a device, and looking for that may fail",
    ),
    (
        "targets/embedded/writers.rs",
        "targets/embedded/shared.rs",
        "writers are part of what all threads share, and read the rest of it",
    ),
    (
        "targets/sql/private/files.rs",
        "targets/sql/private/owner.rs",
        "files are made as the server's user, whose rights are looked up in files",
    ),
    ("targets/sql/lane/batch.rs", "targets/sql/target.rs", "a lane holds parts of the target that opened it"),
    ("targets/sql/lane/line.rs", "targets/sql/target.rs", "a lane holds parts of the target that opened it"),
    ("targets/sql/lane/statement.rs", "targets/sql/target.rs", "a lane holds parts of the target that opened it"),
    ("targets/sql/lane/transaction.rs", "targets/sql/target.rs", "a lane holds parts of the target that opened it"),
    (
        "targets/postgres/password_file.rs",
        "targets/postgres/login.rs",
        "takes which socket directory counts as the local host",
    ),
    (
        "targets/simulated/keys.rs",
        "targets/simulated/options.rs",
        "the words of an address write and read the options, which are made by them",
    ),
];

fn is_below(file: &str, root: &str) -> bool {
    let folder = root.strip_suffix("mod.rs").unwrap_or(root);
    file.starts_with(folder)
}

fn fits(file: &str, pattern: &str) -> bool {
    pattern.strip_suffix('*').map_or(file == pattern, |folder| file.starts_with(folder))
}

#[test]
fn no_files_of_a_room_use_each_other_in_a_circle() {
    let modules = Modules::of(&library(), Part::WithoutTests);
    let inside: BTreeSet<Edge> =
        modules.edges().into_iter().filter(|edge| room_of(&edge.from) == room_of(&edge.to)).collect();
    let in_circle = |edge: &Edge, circles: &[Vec<String>]| {
        circles.iter().any(|circle| circle.contains(&edge.from) && circle.contains(&edge.to))
    };
    let is_up = |edge: &Edge| ROOTS.iter().any(|root| edge.to == *root && is_below(&edge.from, root));
    let is_known = |edge: &Edge| ARROWS.iter().any(|(from, to, _)| fits(&edge.from, from) && fits(&edge.to, to));
    let rest: BTreeSet<Edge> = inside.iter().filter(|edge| !is_up(edge) && !is_known(edge)).cloned().collect();
    let new: Vec<String> = circles(&rest).iter().map(|circle| circle.join(" <-> ")).collect();
    assert!(new.is_empty(), "files of a room that use each other in a circle:\n{}", new.join("\n"));
    // What is listed must be there still, and close a circle.
    let found = circles(&inside);
    let closing: Vec<&Edge> = inside.iter().filter(|edge| in_circle(edge, &found)).collect();
    let idle = ROOTS.iter().filter(|root| !closing.iter().any(|edge| edge.to == **root && is_below(&edge.from, root)));
    let idle: Vec<String> = idle.map(|root| (*root).to_owned()).collect();
    let gone =
        ARROWS.iter().filter(|(from, to, _)| !closing.iter().any(|edge| fits(&edge.from, from) && fits(&edge.to, to)));
    let gone: Vec<String> = gone.map(|(from, to, _)| format!("{from} -> {to}")).collect();
    assert!(idle.is_empty() && gone.is_empty(), "no circle any more: take them off the lists: {idle:?} {gone:?}");
    assert!(ARROWS.iter().all(|(_, _, reason)| !reason.is_empty()));
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
fn a_module_with_a_folder_is_the_mod_rs_in_it() {
    let beside = sources(Path::new("src")).into_iter().filter(|file| file.with_extension("").is_dir());
    let beside: Vec<String> = beside.map(|file| file.display().to_string()).collect();
    assert!(beside.is_empty(), "modules beside their folder, which are its `mod.rs`: {}", beside.join(", "));
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
