//! Why operations were slow for a while: a stall is planted in the middle of a load on raw storage or on a server, and its cause is looked up
//! in the record.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::group::Counted;
use super::planting::{Bound, Disk, Hogs, NEAR, Shaper};
use super::servers::{Kind, Server};
use super::skip::skip;
use super::{ALONE, Place, is_torture, times, with_orders};

/// A stall begins so long after the second of the load that follows its warm-up is recorded: a load on a server takes seconds to begin.
const BEGINS: Duration = Duration::from_millis(300);
const RECORDED: usize = 2;
const LASTS: Duration = Duration::from_millis(800);
const WINDOW: &str = "7";
/// A quota of so many processors limits nothing.
const MANY: f64 = 64.0;

/// What is named in an episode, by its name in JSON, and in words; `None` where it is unexplained.
type Named = Option<(String, String)>;

/// Starts the load, plants a stall in it, and gives what the longest episode of it is called; `None` if there is none.
fn planted(place: &Place, mut command: Command, plant: impl FnOnce(&Child)) -> Option<Named> {
    let before = runs(place);
    let mut load = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    let recorded = || {
        let new = runs(place).into_iter().find(|run| !before.contains(run))?;
        Some(std::fs::read_to_string(new.join("intervals.jsonl")).ok()?.lines().count())
    };
    while recorded().is_none_or(|seconds| seconds < RECORDED) {
        assert!(began.elapsed() < Duration::from_secs(120), "the load does not begin");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(BEGINS);
    plant(&load);
    assert!(matches!(load.wait().unwrap().code(), Some(0 | 1)));
    let said = place.command(&["report", "last", "--json"], false).output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let episodes = document["stalls"][0]["episodes"].as_array()?;
    let longest = episodes.iter().max_by_key(|episode| episode["length_ns"].as_u64())?;
    (longest["length_ns"].as_u64()? > LASTS.as_nanos() as u64 / 2).then(|| {
        let cause = &longest["blame"]["cause"];
        let name = cause.as_str().map(str::to_owned).or_else(|| Some(cause.as_object()?.keys().next()?.clone()));
        name.map(|name| (name, longest["blame"].to_string()))
    })
}

/// Directories of all runs.
fn runs(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path("plimsoll-runs")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Keeps `what` for as long as a stall lasts.
fn for_a_while<T>(what: T) {
    let began = Instant::now();
    std::thread::sleep(LASTS);
    drop(what);
    assert!(began.elapsed() < Duration::from_secs(60), "the machine stood still");
}

fn signal(load: &Child, name: &str) {
    Command::new("kill").args([name, &load.id().to_string()]).status().unwrap();
}

/// A row of the table: what was planted, how often it was right, unexplained, not seen, and called by another's name.
#[derive(Default)]
struct Row {
    right: u32,
    unexplained: u32,
    unseen: u32,
    wrong: Vec<String>,
}

/// How often `make test` plants before it says that a cause is not named: others may have the machine for a while.
const ATTEMPTS: u32 = 4;

fn judge(what: &str, right: &[&str], plant: impl Fn() -> Option<Named>) {
    let mut row = Row::default();
    for _ in 0..if is_torture() { times() } else { ATTEMPTS } {
        match plant() {
            None => row.unseen += 1,
            Some(None) => row.unexplained += 1,
            Some(Some((named, _))) if right.contains(&named.as_str()) => row.right += 1,
            Some(Some((_, words))) => row.wrong.push(words),
        }
        if row.right > 0 && !is_torture() {
            return;
        }
    }
    let Row { right, unexplained, unseen, wrong } = &row;
    eprintln!("| {what} | right {right} | unexplained {unexplained} | not seen {unseen} | another's name {wrong:?} |");
    assert!(is_torture() || *right > 0, "{what}: {unexplained} unexplained, {unseen} not seen, {wrong:?}");
}

/// A file with data, and the words of a load on it.
fn load(place: &Place, file: &str, words: &str) -> Vec<String> {
    let fixed = format!("--path {file} --size 256M --quiet");
    place.done(&format!("io run --pattern randread --duration 1 {fixed}").split(' ').collect::<Vec<_>>());
    format!("io run {words} --duration {WINDOW} --warmup 1 {fixed}").split(' ').map(str::to_owned).collect()
}

fn words(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn a_stop_and_a_quota_in_the_middle_of_a_load_are_named() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let place = match Place::new() {
        Ok(place) => place,
        Err(why) => return skip(format_args!("no stall was planted: {why}")),
    };
    let reads = load(&place, &place.path("data"), "--pattern randread --depth 8");
    judge("SIGSTOP", &["stopped"], || {
        planted(&place, place.command(&words(&reads), false), |load| {
            signal(load, "-STOP");
            std::thread::sleep(LASTS);
            signal(load, "-CONT");
        })
    });
    let bound = match Bound::processors(MANY) {
        Ok(bound) => bound,
        Err(why) => return skip(format_args!("no quota was planted: {why}")),
    };
    judge("a CPU quota of 2 %", &["quota"], || {
        planted(&place, bound.inside(&place.command(&words(&reads), false)), |_| {
            bound.limit_processors(0.02);
            std::thread::sleep(LASTS);
            bound.limit_processors(MANY);
        })
    });
}

#[test]
fn other_stalls_in_the_middle_of_a_load_are_named() {
    if !is_torture() {
        return skip("few stalls were planted: `make torture` plants the others");
    }
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let place = match Place::new() {
        Ok(place) => place,
        Err(why) => return skip(format_args!("no stall was planted: {why}")),
    };
    let file = place.path("data");
    let reads = load(&place, &file, "--pattern randread --depth 8");
    judge("eight programs with ten times the weight", &["processors"], || {
        planted(&place, place.command(&words(&reads), false), |_| {
            let hogs = Hogs::start(8);
            match Bound::preferred() {
                Ok(bound) => for_a_while((hogs.pids(), bound.holding(&hogs.pids()).unwrap(), hogs)),
                Err(why) => skip(format_args!("no weight was planted: {why}")),
            }
        })
    });
    judge("40 requests/s", &["before_device"], || {
        planted(&place, place.command(&words(&reads), true), |_| {
            place.group.limit(Counted::Requests, 40);
            std::thread::sleep(LASTS);
            place.group.limit(Counted::Requests, 0);
        })
    });
    judge("another's writes", &["neighbour"], || {
        planted(&place, place.command(&words(&reads), false), |_| {
            let target = format!("of={}", place.path("other"));
            let write = ["if=/dev/zero", &target, "bs=4M", "count=10000", "oflag=direct", "conv=notrunc"];
            let mut writers: Vec<Child> =
                (0..3).map(|_| Command::new("dd").args(write).stderr(Stdio::null()).spawn().unwrap()).collect();
            std::thread::sleep(LASTS);
            writers.iter_mut().for_each(|writer| {
                let _ = writer.kill();
                let _ = writer.wait();
            });
        })
    });
    match Disk::mount(place.directory.path(), "frozen", 600) {
        Ok(disk) => {
            let writes = load(&place, &disk.path().join("data").display().to_string(), "--pattern randwrite --depth 8");
            judge("a frozen file system", &["before_device"], || {
                planted(&place, place.command(&words(&writes), false), |_| {
                    let freeze = |flag| Command::new("fsfreeze").arg(flag).arg(disk.path()).status().unwrap();
                    freeze("--freeze");
                    std::thread::sleep(LASTS);
                    freeze("--unfreeze");
                })
            });
        }
        Err(why) => skip(format_args!("no file system was frozen: {why}")),
    }
    judge("nothing", &["device_slow", "device_silent"], || {
        planted(&place, place.command(&words(&reads), false), |_| ())
    });
}

#[test]
fn stalls_of_servers_are_named() {
    if !is_torture() {
        return skip("few stalls of servers were planted: `make torture` plants the others");
    }
    for kind in [Kind::Postgres, Kind::MariaDb] {
        with_orders(kind, &[], |place, _, server| {
            on_a_server(place, server);
            on_the_way(place, server);
        });
    }
    // Checkpoints come by themselves, on a volume that can write only so much.
    with_orders(Kind::Postgres, &["max_wal_size=48MB", "min_wal_size=32MB"], |place, _, server| {
        place.group.enter(&server.pids());
        judge("max_wal_size=48MB on a volume of 10 MB/s", &["checkpoint"], || {
            place.group.limit(Counted::Bytes, 10_000_000);
            let loaded = planted(place, place.command(&orders(server.address()), false), |_| ());
            place.group.limit(Counted::Bytes, 0);
            loaded
        });
    });
}

/// Order entry on a server.
fn orders(address: &str) -> Vec<&str> {
    let words = ["orders", "run", "--users", "8", "--duration", WINDOW, "--warmup", "1", "--quiet", "--target"];
    words.into_iter().chain([address]).collect()
}

/// Stalls between a load and its server.
fn on_the_way(place: &Place, server: &Server) {
    let way = match Shaper::start("1gbit") {
        Ok(way) => way,
        Err(why) => return skip(format_args!("no packets were lost: {why}")),
    };
    let address = server.address_at(NEAR);
    judge(&format!("lost packets on the way to {}", server.kind().name()), &["retransmission"], || {
        planted(place, way.inside(place.command(&orders(&address), false)), |_| {
            way.losing(|| std::thread::sleep(LASTS)).unwrap();
        })
    });
}

/// Stalls of order entry on a server.
pub fn on_a_server(place: &Place, server: &Server) {
    let on = server.kind().name();
    let load = || place.command(&orders(server.address()), false);
    judge(&format!("a lock on a table of {on}"), &["held_lock"], || {
        planted(place, load(), |_| assert!(server.locking(LASTS.as_secs_f64()).status().unwrap().success()))
    });
    if !is_torture() {
        return;
    }
    judge(&format!("{on} stopped by SIGSTOP"), &["server_silent"], || {
        planted(place, load(), |_| {
            let pids: Vec<String> = server.pids().iter().map(u32::to_string).collect();
            let signal = |name: &str| Command::new("kill").arg(name).args(&pids).status().unwrap();
            signal("-STOP");
            std::thread::sleep(LASTS);
            signal("-CONT");
        })
    });
    if server.kind() == Kind::Postgres {
        // A volume that can write only so much, so that a checkpoint is in the way of commits for a while.
        place.group.enter(&server.pids());
        judge("CHECKPOINT on a volume of 10 MB/s", &["checkpoint"], || {
            place.group.limit(Counted::Bytes, 10_000_000);
            let loaded = planted(place, load(), |_| assert!(server.does("CHECKPOINT")));
            place.group.limit(Counted::Bytes, 0);
            loaded
        });
    }
    // Commits may wait for a disk that is not ours alone.
    judge(&format!("nothing on {on}"), &["wait", "writes", "device_slow", "device_silent"], || {
        planted(place, load(), |_| ())
    });
}
