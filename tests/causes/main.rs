//! What stops a load is named right, or not at all: one bottleneck is planted at a time below real programs, and the first screen is
//! read as a user reads it.
//!
//! `make test` plants two; `make torture` plants all of them, `PLIMSOLL_TIMES` times (20), and prints the table of the book
//! (dev/causes.md). Needs root, control groups and the servers; says what was skipped elsewhere.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]
#![expect(clippy::print_stderr, reason = "a planting that was made many times says how often it was named")]

#[expect(dead_code, reason = "other tests ask more of it")]
#[path = "../nfs/ganesha.rs"]
mod ganesha;
#[path = "../throttle/group.rs"]
mod group;
mod on_nfs;
mod planting;
mod screen;
mod servers;
mod stalls;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use group::{Counted, Group};
use planting::{Bound, Disk, Hogs, Shaper, drop_page_cache};
use scratch::scratch;
use screen::{Cause, Screen, Verdict};
use servers::{Kind, Server};
use skip::skip;
use test_support::{scratch, skip};

/// Plantings that use up a machine go on one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Whether all are planted, and not only a few.
fn is_torture() -> bool {
    std::env::var_os("PLIMSOLL_TORTURE_SECONDS").is_some()
}

fn times() -> u32 {
    if !is_torture() {
        return 1;
    }
    std::env::var("PLIMSOLL_TIMES").ok().map_or(20, |times| times.parse().unwrap())
}

/// How often `make test` plants before it says that the cause is not named.
const ATTEMPTS: u32 = 3;

/// How a user asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Single,
    Sweep,
    Check,
}

/// One cell of the matrix.
struct Cell<'a> {
    planted: &'a str,
    on: &'a str,
    way: Way,
    /// Causes that are right: one of them is to be named. None where nothing was planted.
    right: &'a [Cause],
    /// Causes that may be named besides, since they are there as well.
    beside: &'a [Cause],
}

/// What became of cells, in the order in which they were planted.
#[derive(Default)]
struct Table(Vec<(String, BTreeMap<Verdict, u32>)>);

impl Table {
    fn add(&mut self, cell: &Cell<'_>, verdict: Verdict) {
        let name = format!("| {} | {} | {:?} |", cell.planted, cell.on, cell.way);
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, counts)) => *counts.entry(verdict).or_default() += 1,
            None => self.0.push((name, [(verdict, 1)].into())),
        }
    }
}

impl Drop for Table {
    /// Also where a test fails: then it says how far it came.
    fn drop(&mut self) {
        for (name, counts) in &self.0 {
            let of = |verdict| counts.get(&verdict).copied().unwrap_or_default();
            let all: u32 = counts.values().sum();
            eprintln!(
                "{name} {} of {all} | {} | {} | {} |",
                of(Verdict::Right),
                of(Verdict::InFull),
                of(Verdict::Silent),
                of(Verdict::Wrong)
            );
        }
    }
}

/// A place with its runs, and the block device below it, which may be limited.
struct Place {
    directory: tempfile::TempDir,
    group: Group,
}

impl Place {
    /// Or why there is none.
    fn new() -> Result<Self, String> {
        let directory = scratch();
        servers::open_to_all(directory.path());
        let group = Group::new(directory.path())?;
        Ok(Self { directory, group })
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// The program with `words`, inside of the group or outside.
    fn command(&self, words: &[&str], is_limited: bool) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
        let mut command = if is_limited { self.group.command(program) } else { Command::new(program) };
        command.args(words).current_dir(self.directory.path()).env_clear();
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").stdin(Stdio::null());
        command
    }

    /// What it prints, which has to be an answer.
    fn screen(&self, mut command: Command) -> Screen {
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (first, said) = (text(&output.stdout), text(&output.stderr));
        // A check that could not be measured has an answer as well: it says why.
        let answers = matches!(output.status.code(), Some(0 | 1)) || first.starts_with("Not measurable");
        assert!(answers, "{command:?} ended with {}:\n{first}\n{said}", output.status);
        let full = self.command(&["report", "last", "--full"], false).output().unwrap();
        Screen { first, full: text(&full.stdout) }
    }

    /// Runs what is to be there before.
    fn done(&self, words: &[&str]) {
        let made = self.command(words, false).output().unwrap();
        assert!(made.status.success(), "{words:?}: {}", String::from_utf8_lossy(&made.stderr));
    }

    /// Judges what is said of a planting, as often as asked for.
    fn judge(&self, table: &mut Table, cell: &Cell<'_>, command: impl Fn() -> Command) {
        let mut left = times();
        let mut attempts = if is_torture() { 0 } else { ATTEMPTS };
        while left > 0 {
            let screen = self.screen(command());
            let verdict = screen.judged(cell.way == Way::Check, cell.right, cell.beside);
            // Others may have the machine for a while.
            if verdict != Verdict::Right && attempts > 1 {
                attempts -= 1;
                continue;
            }
            left -= 1;
            if verdict != Verdict::Right {
                eprintln!(
                    "{} on {}, {:?}: {verdict:?}: {}",
                    cell.planted,
                    cell.on,
                    cell.way,
                    screen.answer(cell.way == Way::Check)
                );
            }
            table.add(cell, verdict);
            let is_bad = verdict == Verdict::Wrong || (verdict == Verdict::Silent && !cell.right.is_empty());
            assert!(is_torture() || !is_bad, "{} on {}: {}", cell.planted, cell.on, screen.first);
        }
    }
}

/// A test that has the machine to itself, where a limit can be set.
fn with_place(what: &str, test: impl FnOnce(&Place, &mut Table)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match Place::new() {
        Ok(place) => test(&place, &mut Table::default()),
        Err(why) => skip(format_args!("nothing was planted below {what}: {why}")),
    }
}

/// What others may do at any time on a machine that is not ours alone.
const OTHERS: &[Cause] = &[Cause::OtherPrograms, Cause::Neighbour];
const LIMIT: &[Cause] = &[Cause::Limit, Cause::LimitOrDevice];

#[test]
fn on_raw_storage() {
    // What a throttle limits on a disk that may be slower than it is sought by the tests of `throttle`.
    if !is_torture() {
        return skip("nothing was planted below raw storage: `make torture` does that");
    }
    with_place("raw storage", |place, table| {
        let file = place.path("data");
        let io = |words: &str| -> Vec<String> {
            let fixed = format!("--path {file} --size 256M --quiet");
            words.split(' ').chain(fixed.split(' ')).map(str::to_owned).collect()
        };
        let mut judge = |planted, way, right, beside, words: &str| {
            let words = io(words);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let cell = Cell { planted, on: "raw storage", way, right, beside };
            place.judge(table, &cell, || place.command(&words, true));
        };
        // Creates and fills the file without a limit.
        place.done(&io("io run --pattern randread --duration 1").iter().map(String::as_str).collect::<Vec<_>>());
        let sweep = "io sweep --pattern randread --depth 2,16,64 --duration 3 --warmup 1";
        place.group.limit(Counted::Requests, 2_000);
        judge("2,000 requests/s", Way::Sweep, LIMIT, OTHERS, sweep);
        judge(
            "2,000 requests/s",
            Way::Single,
            &[Cause::Limit, Cause::LimitOrDevice, Cause::Before],
            OTHERS,
            "io run --pattern randread --depth 32 --duration 8",
        );
        judge(
            "2,000 requests/s",
            Way::Sweep,
            LIMIT,
            OTHERS,
            "io sweep --pattern randread --rate 500,1500,3000,6000 --duration 4 --warmup 1",
        );
        let writes = "io sweep --pattern randwrite --depth 2,16,64 --duration 3 --warmup 1";
        judge("2,000 requests/s, writes", Way::Sweep, LIMIT, OTHERS, writes);
        place.group.limit(Counted::Requests, 0);
        place.group.limit(Counted::Bytes, 50_000_000);
        let large = "io sweep --pattern randread --block-size 1M --depth 2,8,32 --duration 4 --warmup 1";
        judge("50 MB/s", Way::Sweep, LIMIT, OTHERS, large);
        judge(
            "50 MB/s",
            Way::Single,
            &[Cause::Limit, Cause::LimitOrDevice, Cause::Before],
            OTHERS,
            "io run --pattern randread --block-size 1M --depth 16 --duration 8",
        );
        place.group.limit(Counted::Bytes, 0);
        let devices = &[
            Cause::Device,
            Cause::LimitOrDevice,
            Cause::Generator,
            Cause::OtherPrograms,
            Cause::Neighbour,
            Cause::Processors,
        ];
        judge("nothing", Way::Sweep, &[], devices, sweep);
        judge("nothing", Way::Single, &[], devices, "io run --pattern randread --depth 32 --duration 8");
    });
}

#[test]
fn on_simulated_devices_no_limit_is_called_one() {
    let place = match Place::new() {
        Ok(place) => place,
        Err(why) => return skip(format_args!("no simulated device was asked: {why}")),
    };
    let mut table = Table::default();
    for spread in ["fixed", "exponential", "lognormal:0.5"] {
        for servers in if is_torture() { &[1, 2, 4, 8, 12, 16, 24, 32, 48, 64][..] } else { &[8] } {
            let path = format!("sim:service=1ms,servers={servers},spread={spread},clock=simulated");
            let words = ["io", "sweep", "--path", &path, "--pattern", "randread", "--depth", "1,4,16,64,128"];
            let words = [&words[..], &["--duration", "4", "--warmup", "1", "--quiet"]].concat();
            let on = format!("a simulated device, {spread}");
            let cell = Cell {
                planted: "nothing",
                on: &on,
                way: Way::Sweep,
                right: &[],
                beside: &[Cause::Device, Cause::LimitOrDevice],
            };
            // Simulated time repeats itself to the request.
            let screen = place.screen(place.command(&words, false));
            let verdict = screen.judged(false, cell.right, cell.beside);
            table.add(&cell, verdict);
            assert_ne!(verdict, Verdict::Wrong, "{path}: {}", screen.first);
        }
    }
}

#[test]
fn below_the_engine() {
    if !is_torture() {
        return skip("nothing was planted below the engine: `make torture` does that");
    }
    with_place("the engine", |place, table| {
        let target = format!("dir:{}", place.path("engine"));
        place.done(&["slob", "setup", "-s", "1", "SCALE=256M", "--target", &target]);
        let fixed = ["--cache", "16M", "--target", &target, "--quiet"];
        let mut judge = |planted, way, right, words: &[&str]| {
            let words = [words, &fixed].concat();
            let cell = Cell { planted, on: "the engine", way, right, beside: OTHERS };
            place.judge(table, &cell, || place.command(&words, true));
        };
        let sweep = ["slob", "sweep", "-s", "1", "--threads", "1,8,32", "UPDATE_PCT=0", "RUN_TIME=5"];
        place.group.limit(Counted::Requests, 3_000);
        judge("3,000 requests/s", Way::Sweep, LIMIT, &sweep);
        judge(
            "3,000 requests/s",
            Way::Single,
            &[Cause::Limit, Cause::Reads, Cause::Before],
            &["slob", "run", "-s", "1", "-t", "16", "UPDATE_PCT=0", "RUN_TIME=8"],
        );
        place.group.limit(Counted::Requests, 200);
        let changing = ["slob", "sweep", "-s", "1", "--threads", "1,8,32", "UPDATE_PCT=100", "RUN_TIME=6"];
        judge(
            "200 requests/s, changes",
            Way::Sweep,
            &[Cause::Limit, Cause::LimitOrDevice, Cause::Before, Cause::Commits],
            &changing,
        );
        place.group.limit(Counted::Requests, 0);
    });
}

/// A load generator that gets so few processors that it is what stops.
const SLOW_CLIENT: f64 = 0.04;
/// Processors with which it does in a part of each period what it may.
const SLOW_FOR_A_PART: f64 = 0.1;

#[test]
fn in_the_load_generator() {
    if !is_torture() {
        return skip("no load generator was slowed down: `make torture` does that");
    }
    with_orders(Kind::Postgres, &["fsync=off"], |place, table, server| {
        let slow = match Bound::processors(SLOW_CLIENT) {
            Ok(slow) => slow,
            Err(why) => return skip(format_args!("no quota was planted: {why}")),
        };
        let mut judge = |planted: &'static str, on, way, words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            let cell = Cell {
                planted,
                on,
                way,
                right: &[Cause::Generator],
                beside: &[Cause::MayLose, Cause::OtherPrograms, Cause::Neighbour, Cause::Processors],
            };
            place.judge(table, &cell, || slow.inside(&place.command(&words, false)));
        };
        for (way, words) in [(Way::Single, SINGLE), (Way::Sweep, SWEEP)] {
            judge(
                "a slow load generator",
                "order entry on PostgreSQL",
                way,
                &format!("{words} --quiet --target {}", server.address()),
            );
        }
        let file = place.path("data");
        let words = format!("io run --path {file} --size 256M --pattern randread --duration 1 --quiet");
        place.done(&words.split(' ').collect::<Vec<_>>());
        let sweep = "io sweep --pattern randread --depth 2,16,64 --duration 3 --warmup 1 --quiet --size 256M --path";
        judge("a slow load generator", "raw storage", Way::Sweep, &format!("{sweep} {file}"));
        // It sleeps while it waits for the device, so that it wants less than all of the time.
        slow.limit_processors(SLOW_FOR_A_PART);
        let run = "io run --pattern randread --depth 32 --duration 5 --warmup 1 --quiet --size 256M --path";
        judge("a quota of 0.1 processors on the load generator", "raw storage", Way::Single, &format!("{run} {file}"));
    });
}

/// Data of SLOB that neither the buffers of a server nor its memory hold.
fn with_small_memory(kind: Kind, test: impl FnOnce(&Place, &mut dyn FnMut(&str, &[Cause], &[Cause]))) {
    if !is_torture() {
        return skip(format_args!("{} was not kept short of memory: `make torture` does that", kind.name()));
    }
    let settings: &[&str] = match kind {
        Kind::Postgres => &["shared_buffers=16MB"],
        Kind::MariaDb => &["--innodb-buffer-pool-size=16M"],
    };
    with_place(kind.name(), |place, table| {
        let Some(server) = Server::start(kind, place.directory.path(), settings, None) else { return };
        place.done(&["slob", "setup", "-s", "1", "SCALE=400M", "--target", server.address()]);
        let _memory = match Bound::memory(128 << 20).and_then(|memory| memory.holding(&server.pids())) {
            Ok(memory) => memory,
            Err(why) => return skip(format_args!("no memory was limited: {why}")),
        };
        drop_page_cache();
        place.group.enter(&server.pids());
        let on = format!("SLOB on {}", kind.name());
        test(place, &mut |planted, right, beside| {
            for (way, words) in [
                (Way::Single, "slob run -s 1 -t 16 UPDATE_PCT=0 RUN_TIME=8"),
                (Way::Sweep, "slob sweep -s 1 --threads 1,8,32 UPDATE_PCT=0 RUN_TIME=6"),
            ] {
                let words: Vec<&str> = words.split(' ').chain(["--quiet", "--target", server.address()]).collect();
                let cell = Cell { planted, on: &on, way, right, beside };
                place.judge(table, &cell, || place.command(&words, false));
            }
        });
    });
}

fn on_small_memory(kind: Kind) {
    with_small_memory(kind, |place, judge| {
        judge("memory of 128 MiB", &[Cause::Reads, Cause::Device, Cause::LimitOrDevice, Cause::Processors], OTHERS);
        place.group.limit(Counted::Requests, 600);
        judge("600 reads/s", &[Cause::Limit, Cause::LimitOrDevice, Cause::Reads], OTHERS);
        place.group.limit(Counted::Requests, 0);
        place.group.limit(Counted::Bytes, 5_000_000);
        judge("5 MB/s", &[Cause::Limit, Cause::LimitOrDevice, Cause::Reads], OTHERS);
        place.group.limit(Counted::Bytes, 0);
    });
}

#[test]
fn on_postgresql_with_small_memory() {
    on_small_memory(Kind::Postgres);
}

#[test]
fn on_mariadb_with_small_memory() {
    on_small_memory(Kind::MariaDb);
}

fn with_slow_log(kind: Kind) {
    if !is_torture() {
        return skip(format_args!("{} got no slow log: `make torture` does that", kind.name()));
    }
    with_place(kind.name(), |place, table| {
        let disk = match Disk::mount(place.directory.path(), "log", 1024) {
            Ok(disk) => disk,
            Err(why) => return skip(format_args!("no disk for a log: {why}")),
        };
        let Some(server) = Server::start(kind, place.directory.path(), &[], Some(disk.path())) else { return };
        make_orders(place, &server);
        place.group.enter(&server.pids());
        place.group.limit_device(&disk.number(), Counted::Requests, 60).unwrap();
        judge_orders(place, table, &server, "60 writes/s of the log alone", &[Cause::Commits], &[]);
    });
}

#[test]
fn on_postgresql_with_a_slow_log() {
    with_slow_log(Kind::Postgres);
}

#[test]
fn on_mariadb_with_a_slow_log() {
    with_slow_log(Kind::MariaDb);
}

/// A server of its own, small data of order entry in it, and how to load them.
fn with_orders(kind: Kind, settings: &[&str], test: impl FnOnce(&Place, &mut Table, &Server)) {
    with_place(kind.name(), |place, table| {
        let Some(server) = Server::start(kind, place.directory.path(), settings, None) else { return };
        make_orders(place, &server);
        test(place, table, &server);
    });
}

fn make_orders(place: &Place, server: &Server) {
    place.done(&["orders", "setup", "--scale", "0.02", "--target", server.address()]);
}

const SINGLE: &str = "orders run --users 8 --duration 10 --warmup 2";
const SWEEP: &str = "orders sweep --users 1,4,16 --duration 7 --warmup 2";

fn judge_orders(place: &Place, table: &mut Table, server: &Server, planted: &str, right: &[Cause], beside: &[Cause]) {
    let ways: &[(Way, &str)] =
        if is_torture() { &[(Way::Single, SINGLE), (Way::Sweep, SWEEP)] } else { &[(Way::Single, SINGLE)] };
    for (way, words) in ways {
        let words: Vec<&str> = words.split(' ').chain(["--quiet", "--target", server.address()]).collect();
        let on = format!("order entry on {}", server.kind().name());
        let cell = Cell { planted, on: &on, way: *way, right, beside };
        place.judge(table, &cell, || place.command(&words, false));
    }
}

fn on_a_server(kind: Kind) {
    // A slow disk must not be what sessions wait for where only the quota is planted.
    let settings: &[&str] = if is_torture() { &[] } else { &["fsync=off"] };
    with_orders(kind, settings, |place, table, server| {
        let quota = Bound::processors(0.4).and_then(|quota| quota.holding(&server.pids()));
        let beside = [OTHERS, &[Cause::Generator, Cause::MayLose]].concat();
        match &quota {
            Ok(_) => judge_orders(place, table, server, "a quota of 0.4 processors", &[Cause::Quota], &beside),
            Err(why) => skip(format_args!("no quota was planted: {why}")),
        }
        drop(quota);
        if !is_torture() {
            stalls::on_a_server(place, server);
            return;
        }
        let hogs = Hogs::start(6);
        judge_orders(place, table, server, "six programs that compute", &[Cause::OtherPrograms], &[]);
        drop(hogs);
        let hogs = Hogs::start(4);
        match Bound::preferred().and_then(|preferred| preferred.holding(&hogs.pids())) {
            Ok(_preferred) => {
                judge_orders(place, table, server, "a group of ten times the weight", &[Cause::OtherPrograms], &[]);
            }
            Err(why) => skip(format_args!("no weight was planted: {why}")),
        }
        drop(hogs);
        place.group.enter(&server.pids());
        place.group.limit(Counted::Requests, 100);
        judge_orders(place, table, server, "100 writes/s", &[Cause::Commits], &[]);
        place.group.limit(Counted::Requests, 0);
        let lock = server.hold_locks();
        judge_orders(place, table, server, "a session that locks all stock", &[Cause::Locks], &[]);
        drop(lock);
        // On few processors order entry in memory is at the end of them.
        let beside = &[Cause::Processors, Cause::OtherPrograms, Cause::Commits];
        judge_orders(place, table, server, "nothing", &[], beside);
    });
}

#[test]
fn on_postgresql() {
    on_a_server(Kind::Postgres);
}

#[test]
fn on_mariadb() {
    if !is_torture() {
        return skip("nothing was planted below MariaDB: `make torture` does that");
    }
    on_a_server(Kind::MariaDb);
}

fn on_the_way_to(kind: Kind) {
    if !is_torture() {
        return skip("nothing was planted on the way to a server: `make torture` does that");
    }
    with_orders(kind, &[], |place, table, server| {
        let shaper = match Shaper::start("20mbit") {
            Ok(shaper) => shaper,
            Err(why) => return skip(format_args!("no shaper was planted: {why}")),
        };
        for (way, words) in [(Way::Single, SINGLE), (Way::Sweep, SWEEP)] {
            let address = server.address_at(planting::NEAR);
            let words: Vec<&str> = words.split(' ').chain(["--quiet", "--target", &address]).collect();
            let cell = Cell {
                planted: "a shaper of 20 Mbit/s",
                on: &format!("order entry on {}", kind.name()),
                way,
                right: &[Cause::Outside],
                beside: &[],
            };
            place.judge(table, &cell, || shaper.inside(place.command(&words, false)));
        }
    });
}

#[test]
fn on_the_way_to_postgresql() {
    on_the_way_to(Kind::Postgres);
}

#[test]
fn on_the_way_to_mariadb() {
    on_the_way_to(Kind::MariaDb);
}

#[test]
fn in_settings_of_mariadb() {
    if !is_torture() {
        return skip("nothing was planted in the settings of MariaDB: `make torture` does that");
    }
    with_orders(Kind::MariaDb, &["--innodb-flush-log-at-trx-commit=0"], |place, table, server| {
        let wait = &[Cause::Processors, Cause::OtherPrograms, Cause::Commits];
        judge_orders(place, table, server, "innodb_flush_log_at_trx_commit=0", &[Cause::MayLose], wait);
    });
}

#[test]
fn in_settings_of_postgresql() {
    if !is_torture() {
        return skip("nothing was planted in the settings of a server: `make torture` does that");
    }
    let wait = &[Cause::Processors, Cause::OtherPrograms, Cause::Commits];
    for (planted, settings, right) in [
        ("max_wal_size=64MB", &["max_wal_size=64MB"][..], Cause::Checkpoints),
        ("synchronous_commit=off", &["synchronous_commit=off"], Cause::MayLose),
        ("fsync=off", &["fsync=off"], Cause::MayLose),
    ] {
        with_orders(Kind::Postgres, settings, |place, table, server| {
            judge_orders(place, table, server, planted, &[right], wait);
        });
    }
}

/// The cell of a check.
fn judge_check(place: &Place, table: &mut Table, (planted, on): (&str, &str), right: &[Cause], words: &[&str]) {
    let cell = Cell { planted, on, way: Way::Check, right, beside: OTHERS };
    place.judge(table, &cell, || {
        let mut command = place.command(words, true);
        command.args(["--quiet", "-o", "check.html"]);
        command
    });
}

#[test]
fn in_checks() {
    if !is_torture() {
        return skip("nothing was planted below a check: `make torture` does that");
    }
    with_place("a check", |place, table| {
        let mut judge = |cell, right: &[Cause], words: &[&str]| judge_check(place, table, cell, right, words);
        let directory = place.path("here");
        servers::make(Path::new(&directory));
        let reads = ["check", &directory, "--reads", "8000@20ms", "--for", "60s", "--size", "1G"];
        place.group.limit(Counted::Requests, 6_000);
        judge(("6,000 requests/s", "a directory"), LIMIT, &reads);
        place.group.limit(Counted::Requests, 400);
        let writes = ["check", &directory, "--writes", "800@50ms", "--for", "60s", "--size", "1G"];
        judge(("400 requests/s, writes", "a directory"), LIMIT, &writes);
        place.group.limit(Counted::Requests, 0);
        let postgres = format!("pg:{}", place.path("pg"));
        let words = ["check", &postgres, "--reads", "200000@20ms", "--for", "100s", "--size", "512M"];
        judge(("nothing, 200,000 reads/s asked", "PostgreSQL"), &[Cause::Processors], &words);
    });
}

#[test]
fn in_checks_of_servers() {
    if !is_torture() {
        return skip("nothing was planted below a check of a server: `make torture` does that");
    }
    with_place("a check of a server", |place, table| {
        let mut judge = |cell, right: &[Cause], words: &[&str]| judge_check(place, table, cell, right, words);
        // MariaDB makes its data below the limit in three minutes.
        for (on, scheme, time) in [("PostgreSQL", "pg", "180s"), ("MariaDB", "my", "360s")] {
            let server = format!("{scheme}:{}", place.path(&format!("{scheme}-reads")));
            // More than the memory of its machine, as far as the server can tell.
            let words = ["check", &server, "--reads", "4000@20ms", "--for", time, "--size", "2G"];
            let words = [&words[..], if scheme == "pg" { &["--host-memory", "400M"] } else { &[] }].concat();
            place.group.limit(Counted::Requests, 2_000);
            let right = [LIMIT, &[Cause::ServerStorage, Cause::Reads]].concat();
            judge(("2,000 requests/s", on), &right, &words);
            place.group.limit(Counted::Requests, 0);
        }
        for (on, scheme) in [("PostgreSQL", "pg"), ("MariaDB", "my")] {
            let server = format!("{scheme}:{}", place.path(&format!("{scheme}-commits")));
            place.done(&["slob", "setup", "-s", "1", "SCALE=64M", "--target", &server]);
            place.group.limit(Counted::Requests, 60);
            let words = ["check", &server, "--commits", "600@50ms", "--for", "120s", "--prove"];
            judge(("60 requests/s, commits", on), &[Cause::Commits], &words);
            place.group.limit(Counted::Requests, 0);
        }
    });
}
