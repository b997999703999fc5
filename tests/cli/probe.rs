//! `plimsoll probe` on a shell that stands for a server: its calls are known, so the counts must be.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::manners::{signal, wait_for};
use crate::place::{Answer, Place};
use crate::skip::skip;

/// A shell in a directory laid out as PostgreSQL's, which does what it is reported.
struct Server {
    place: Place,
    shell: Child,
    answers: BufReader<ChildStdout>,
}

impl Server {
    fn start() -> Self {
        let place = Place::new();
        for name in ["base/5", "global", "pg_wal"] {
            std::fs::create_dir_all(place.path(name)).unwrap();
        }
        place.write("PG_VERSION", "15\n");
        place.write("base/5/16384", &"x".repeat(8_192 * 100));
        let mut shell = Command::new("sh")
            .args(["-c", "while read -r line; do eval \"$line\"; echo done; done"])
            .current_dir(place.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        place.write("postmaster.pid", &format!("{}\n/data\n", shell.id()));
        let answers = BufReader::new(shell.stdout.take().unwrap());
        Self { place, shell, answers }
    }

    fn does(&mut self, what: &str) {
        writeln!(self.shell.stdin.as_mut().unwrap(), "{what}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, "done\n");
    }

    fn ends(&mut self) {
        drop(self.shell.stdin.take());
        self.shell.wait().unwrap();
    }

    /// A probe that has begun to count; `None` where tracing is not permitted, which is then reported.
    fn probe(&self, arguments: &[&str]) -> Option<(Child, BufReader<std::process::ChildStderr>)> {
        if let Some(reason) = not_permitted() {
            skip(reason);
            return None;
        }
        let words = ["probe"].iter().chain(arguments).copied().collect::<Vec<_>>();
        let mut probe = self.place.plimsoll(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = wait_for(&mut probe, "tracing ");
        Some((probe, stderr))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends();
    }
}

/// Why nothing can be traced on this machine, as the program reports it.
pub fn not_permitted() -> Option<String> {
    let answer =
        Place::new().run(&["probe", "--pid", &std::process::id().to_string(), "--duration", "200ms", "--quiet"]);
    let missing = ["not installed", "not permitted", "offers no tracing", "does not describe its types"];
    missing.iter().any(|word| answer.stderr.contains(word)).then_some(answer.stderr)
}

fn lines(output: &str) -> Vec<serde_json::Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn of<'a>(document: &'a serde_json::Value, event: &str) -> &'a serde_json::Value {
    let traces = document["traces"].as_array().unwrap();
    let is_it = |trace: &&serde_json::Value| trace["layer"] == "OS file" && trace["event"] == event;
    traces.iter().find(is_it).unwrap_or_else(|| panic!("no {event} in {document}"))
}

#[test]
fn calls_of_a_live_server_are_counted_in_each_interval_and_in_all() {
    let mut server = Server::start();
    let pid = server.shell.id().to_string();
    let Some((probe, _stderr)) = server.probe(&["--pid", &pid, "--duration", "15s", "--json"]) else { return };
    server.does("dd if=base/5/16384 of=/dev/null bs=8192 count=100");
    server.does("dd if=/dev/zero of=pg_wal/1 bs=8192 count=10 conv=fdatasync");
    let answer = Answer::from(probe.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer}");
    let lines = lines(&answer.stdout);
    let (total, intervals) = lines.split_last().unwrap();
    assert_eq!((&total["kind"], &total["ended_by"]), (&"total".into(), &"duration".into()));
    assert_eq!((&of(total, "data read")["count"], &of(total, "data read")["bytes"]), (&100.into(), &819_200.into()));
    assert_eq!((&of(total, "wal write")["count"], &of(total, "wal sync")["count"]), (&10.into(), &1.into()));
    assert!(intervals.len() >= 2, "{answer}");
    for figure in ["count", "elapsed_ns", "total_ns"] {
        let sum: u64 = intervals.iter().map(|interval| of(interval, "data read")[figure].as_u64().unwrap()).sum();
        assert_eq!(sum, of(total, "data read")[figure].as_u64().unwrap(), "{figure}");
    }
    let elapsed_s = of(total, "data read")["elapsed_ns"].as_f64().unwrap() / 1e9;
    assert!(elapsed_s >= 2.6, "{elapsed_s}");
}

#[test]
fn ctrl_c_tells_the_sums_and_is_no_error() {
    let mut server = Server::start();
    let target = format!("dir:{}", server.place.path("").display());
    let Some((probe, mut stderr)) = server.probe(&["--target", &target]) else { return };
    server.does("dd if=base/5/16384 of=/dev/null bs=8192 count=64");
    signal(&probe, "-INT");
    let answer = Answer::from(probe.wait_with_output().unwrap());
    let mut reported = String::new();
    stderr.read_to_string(&mut reported).unwrap();
    assert_eq!(answer.code, Some(0), "{answer}{reported}");
    assert!(answer.stdout.starts_with("Traced for "), "{answer}");
    let row = answer.stdout.lines().find(|line| line.starts_with("data read")).unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(row.split_whitespace().nth(2), Some("64"), "{answer}");
    assert!(answer.stdout.contains("\n% of the count, by time\n"), "{answer}");
}

#[test]
fn a_duration_that_was_cut_short_is_reported_by_the_exit_code() {
    let server = Server::start();
    let pid = server.shell.id().to_string();
    let Some((probe, _stderr)) = server.probe(&["--pid", &pid, "--duration", "60s"]) else { return };
    signal(&probe, "-TERM");
    assert_eq!(probe.wait_with_output().unwrap().status.code(), Some(143));
}

#[test]
fn a_process_that_ends_ends_the_probe() {
    let mut server = Server::start();
    let pid = server.shell.id().to_string();
    let Some((probe, mut stderr)) = server.probe(&["--pid", &pid]) else { return };
    server.does("dd if=base/5/16384 of=/dev/null bs=8192 count=3");
    server.ends();
    let answer = Answer::from(probe.wait_with_output().unwrap());
    let mut reported = String::new();
    stderr.read_to_string(&mut reported).unwrap();
    assert_eq!(answer.code, Some(0), "{answer}");
    assert!(reported.contains("note: the process has ended"), "{reported}");
    assert!(answer.stdout.contains("data read"), "{answer}");
}

#[test]
fn a_probe_that_is_killed_leaves_no_tracing_behind() {
    let server = Server::start();
    let pid = server.shell.id().to_string();
    let Some((mut probe, _stderr)) = server.probe(&["--pid", &pid]) else { return };
    let tracing = children_of(probe.id());
    assert_eq!(tracing.len(), 1, "{tracing:?}");
    signal(&probe, "-KILL");
    probe.wait().unwrap();
    let begun = Instant::now();
    while is_running(tracing[0]) {
        assert!(begun.elapsed() < Duration::from_secs(120), "bpftrace still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn where_the_tracing_file_system_is_not_mounted_it_is_mounted_for_the_tracing_alone() {
    let server = Server::start();
    if let Some(reason) = not_permitted() {
        return skip(reason);
    }
    let pid = server.shell.id().to_string();
    let hidden = "umount /sys/kernel/tracing 2>/dev/null; \"$@\"; test ! -e /sys/kernel/tracing/events";
    let probe = server.place.plimsoll(&["probe", "--pid", &pid, "--duration", "300ms", "--json"]);
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", hidden, "sh"])
        .arg(probe.get_program())
        .args(probe.get_args())
        .output()
        .unwrap();
    let answer = Answer::from(output);
    assert_eq!(answer.code, Some(0), "{answer}");
    assert_eq!(lines(&answer.stdout).last().unwrap()["ended_by"], "duration", "{answer}");
}

fn stat(pid: u32) -> Option<(String, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

fn is_running(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != "Z" && state != "X")
}

fn children_of(parent: u32) -> Vec<u32> {
    let names = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let pids = names.filter_map(|name| name.parse().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|(_, of)| of == parent)).collect()
}

#[test]
fn what_is_missing_is_named_with_advice() {
    let place = Place::new();
    std::fs::create_dir(place.path("empty")).unwrap();
    let reported = |arguments: &[&str]| {
        let answer = place.plimsoll(arguments).env("PATH", place.path("empty")).output().unwrap();
        let answer = Answer::from(answer);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""), "{answer}");
        answer.stderr.replace(&place.path("").display().to_string(), "PLACE/")
    };
    let me = std::process::id().to_string();
    place.write("postmaster.pid", "1\n/elsewhere\n");
    let mut all = String::new();
    for words in [
        vec!["probe", "--pid", &me],
        vec!["probe", "--pid", "4294967295"],
        vec!["probe", "--target", "sim:"],
        vec!["probe", "--target", "dir:empty"],
        vec!["probe", "--target", "dir:."],
        vec!["probe", "--device", "/dev/no-such-disk"],
        vec!["probe", "--pid", &me, "--interval", "10ms"],
    ] {
        let shown = words.join(" ").replace(&me, "PID");
        all += &format!("$ plimsoll {shown}\n{}\n", reported(&words));
    }
    insta::assert_snapshot!(all);
    let nothing = reported(&["probe"]);
    assert!(nothing.contains("<--target <ADDRESS>|--pid <N>|--device <NAME>>"), "{nothing}");
}

#[test]
fn an_ordinary_user_is_reported_which_right_is_missing() {
    let arguments =
        ["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_plimsoll"), "probe", "--pid", "1"];
    let Ok(output) = Command::new("setpriv").args(arguments).output() else { return skip("no setpriv") };
    let answer = Answer::from(output);
    if answer.stderr.starts_with("setpriv:") || answer.stderr.contains("not installed") {
        return skip(answer.stderr);
    }
    assert_eq!(answer.code, Some(2), "{answer}");
    let reported = "error: kernel tracing is not permitted: this process has neither the capability SYS_ADMIN nor both BPF and PERFMON\n\
                hint: run as root; ";
    assert!(answer.stderr.starts_with(reported), "{answer}");
}

#[test]
fn who_holds_a_lock_is_said_while_others_wait_for_it() {
    use sql::postgres::test_server::{block_on, server_to_break};
    // Of its own: those of other tests wait for locks as well.
    let Some(server) = server_to_break() else { return };
    let address = server.address("postgres");
    let client = async || {
        let connector = sql::postgres::Connector::new(&address, "plimsoll tests").unwrap();
        connector.connect(0).await.unwrap().client
    };
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel::<i32>();
    std::thread::scope(|scope| {
        let client = &client;
        scope.spawn(move || {
            block_on(async {
                let client = client().await;
                client.batch_execute("CREATE TABLE t ()").await.unwrap();
                client.batch_execute("BEGIN; LOCK TABLE t").await.unwrap();
                ready.send(client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)).unwrap();
                // An error is a test that has failed.
                let _ = released.recv();
                client.batch_execute("COMMIT").await.unwrap();
            });
        });
        let holder = is_ready.recv().unwrap();
        scope.spawn(|| block_on(async { client().await.batch_execute("TABLE t").await.unwrap() }));
        let release = release;
        let place = Place::new();
        let target = address.to_string();
        let words = ["probe", "--stalls", "--json", "--duration", "100s", "--target", &target];
        let mut probe = place.plimsoll(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(probe.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let episode: serde_json::Value = serde_json::from_str(&line).unwrap();
        let found = &episode["episode"];
        assert_eq!((&episode["kind"], &found["goes_on"]), (&"episode".into(), &true.into()), "{line}");
        let cause = &found["blame"]["cause"]["held_lock"];
        assert_eq!(cause, "plimsoll tests, idle in transaction", "{line}");
        let evidence = found["blame"]["evidence"].as_str().unwrap();
        assert!(
            evidence.contains(&format!("session {holder} (plimsoll tests, idle in transaction) held it")),
            "{line}"
        );
        release.send(()).unwrap();
        line.clear();
        said.read_line(&mut line).unwrap();
        assert!(line.contains("\"goes_on\":false"), "{line}");
        signal(&probe, "-INT");
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        let sum: serde_json::Value = serde_json::from_str(&rest).unwrap();
        assert_eq!((&sum["kind"], &sum["ended_by"]), (&"stalls".into(), &"signal".into()), "{rest}");
        assert_eq!((&sum["stalls"]["episodes"], &sum["stalls"]["statements"]), (&1.into(), &1.into()), "{rest}");
        assert_eq!(probe.wait().unwrap().code(), Some(130));
    });
}

#[test]
fn stalls_are_looked_for_where_sessions_can_be_seen() {
    let place = Place::new();
    let answer = place.run(&["probe", "--stalls", "--target", "dir:/nowhere"]);
    assert_eq!(answer.code, Some(2), "{answer}");
    assert!(answer.stderr.contains("cannot be looked at") && answer.stderr.contains("hint:"), "{answer}");
    let short = place.run(&["probe", "--stalls", "--slower-than", "1ms", "--target", "postgres://nowhere"]);
    assert!(short.stderr.contains("`--slower-than` cannot be 1.00 ms"), "{short}");
    let none = place.run(&["probe", "--stalls", "--target", &format!("pg:{}", place.path("none").display())]);
    assert!(none.stderr.contains("no private server works on"), "{none}");
    let other = place.run(&["probe", "--slower-than", "1s", "--pid", "1"]);
    assert!(other.stderr.contains("--stalls"), "{other}");
}
