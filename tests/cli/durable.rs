//! `plimsoll durable` from its set-up to its verdict. No test can cut the power: a load is killed, its notes come from a boot that never
//! was, and what a lying disk would have lost is damaged or noted in addition.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::manners::{signal, wait_for};
use crate::net::DeafPort;
use crate::place::{Answer, Place};
use crate::servers::{servers, wait_until};
use crate::skip::skip;

const TOKEN: &str = "a token of tests";
/// A block of a commit in a file.
const BLOCK: usize = 8192;

/// A witness on a port that the kernel chose. Ends when it is dropped.
struct Witness {
    child: Child,
    address: String,
}

impl Witness {
    fn start(place: &Place, notes: &str) -> Self {
        let mut command = place.plimsoll(&["durable", "witness", "--listen", "127.0.0.1:0", "--notes", notes]);
        command.env("PLIMSOLL_WITNESS_TOKEN", TOKEN).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the witness starts");
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).expect("it says its address");
        Self { child, address: address.trim().to_owned() }
    }

    /// How it ended by itself, and what it said.
    fn ended(mut self) -> Answer {
        let child = std::mem::replace(&mut self.child, std::process::Command::new("true").spawn().unwrap());
        Answer::from(child.wait_with_output().unwrap())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A place on a disk that takes direct writes; `None`, with a word about it, where tests have none.
pub(crate) fn place() -> Option<Place> {
    let place = Place::on_disk();
    let planned = place.run(&["durable", "load", "--target", "dir:try", "--duration", "0", "--sessions", "1"]);
    if planned.code != Some(0) && (planned.stderr.contains("O_DIRECT") || planned.stderr.contains("in memory")) {
        skip("the directory of the tests takes no direct writes");
        return None;
    }
    assert_eq!(planned.code, Some(0), "{planned}");
    place.done(&["durable", "drop", "--target", "dir:try", "--yes"]);
    assert!(!place.path("try").exists());
    Some(place)
}

fn run_words<'a>(target: &'a str, witness: &'a Witness, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["durable", "run", "--target", target, "--witness", &witness.address];
    words.into_iter().chain(more.iter().copied()).collect()
}

fn run(place: &Place, words: &[&str]) -> Answer {
    Answer::from(place.plimsoll(words).env("PLIMSOLL_WITNESS_TOKEN", TOKEN).output().unwrap())
}

/// A load under way over a connection.
fn running(place: &Place, target: &str, witness: &Witness) -> Child {
    let mut command = place.plimsoll(&run_words(target, witness, &["--means", "none"]));
    command.env("PLIMSOLL_WITNESS_TOKEN", TOKEN).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Loads commits, kills the load after so many notes, and has a witness note them as of another boot, with `more` notes that no commit
/// stands behind and the silence of a machine without power.
fn cut(place: &Place, target: &str, load: &[&str], notes: &str, more: &[(u32, u64)]) {
    let mut load = place
        .plimsoll(&[&["durable", "load", "--target", target], load].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut witness = place
        .plimsoll(&["durable", "witness", "--stdin", "--notes", notes])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = witness.stdin.take().unwrap();
    let (mut noted, mut last, mut sessions) = (0, vec![0; 8], 8);
    for line in BufReader::new(load.stdout.take().unwrap()).lines() {
        let mut line = line.unwrap();
        if let Some(text) = line.strip_prefix("open ") {
            let mut opening: Value = serde_json::from_str(text).unwrap();
            opening["load"]["boot"] = "another".into();
            sessions = opening["shape"]["sessions"].as_u64().unwrap() as usize;
            // A kill loses nothing that was written, and flushes take time.
            if opening["files"]["means"] == "none" {
                opening["files"]["means"] = "fdatasync".into();
            }
            line = format!("open {opening}");
        } else if let Some((session, seq)) = line
            .split_once(' ')
            .and_then(|(session, seq)| Some((session.parse::<usize>().ok()?, seq.parse::<u64>().ok()?)))
        {
            last[session] = seq;
            noted += 1;
            // Each session has gone round in its slots.
            if last[..sessions].iter().all(|last| *last >= 100) {
                load.kill().unwrap();
            }
        }
        writeln!(pipe, "{line}").unwrap();
    }
    load.wait().unwrap();
    assert!(noted >= 200, "only {noted} commits were noted");
    for (session, count) in more {
        for next in 1..=*count {
            writeln!(pipe, "{session} {}", last[*session as usize] + next).unwrap();
        }
    }
    pipe.flush().unwrap();
    // The witness counts its silence from what it has read. A heading and the opening stand before the notes.
    let lines = 2 + noted + more.iter().map(|(_, count)| *count as usize).sum::<usize>();
    wait_until("all commits are noted", || {
        assert!(witness.try_wait().unwrap().is_none(), "the witness ended before that");
        fs::read_to_string(place.path(notes)).unwrap().lines().count() == lines
    });
    // Longer than a cut has to be silent, since the load may have said after its last note that it is there.
    std::thread::sleep(Duration::from_secs(6));
    drop(pipe);
    assert_eq!(witness.wait().unwrap().code(), Some(0));
}

fn verify(place: &Place, target: &str, notes: &str) -> Answer {
    place.run(&["durable", "verify", "--target", target, "--notes", notes, "--json"])
}

/// The names of the reasons for no verdict.
fn reasons(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.code, Some(2), "{answer}");
    let document = answer.json();
    assert_eq!(document["verdict"], "no_verdict", "{answer}");
    document["reasons"].as_array().unwrap().iter().map(|reason| reason["id"].as_str().unwrap().to_owned()).collect()
}

fn counted(document: &Value, name: &str) -> u64 {
    document["found"][name].as_u64().unwrap_or_else(|| panic!("{name}: {document}"))
}

#[test]
fn a_load_that_ends_in_order_proves_nothing() {
    let Some(place) = place() else { return };
    let witness = Witness::start(&place, "notes");
    let answer = run(&place, &run_words("dir:commits", &witness, &["--duration", "500ms", "--sessions", "2"]));
    assert_eq!(answer.code, Some(0), "{answer}");
    assert!(answer.stdout.contains("commits were acknowledged and noted in"), "{answer}");
    let said = witness.ended();
    assert!(said.code == Some(0) && said.stderr.contains("the load is over"), "{said}");
    let verified = verify(&place, "dir:commits", "notes");
    assert_eq!(reasons(&verified)[..3], ["ended_in_order", "same_boot", "ended_on_target"], "{verified}");
    let document = verified.json();
    assert!(counted(&document, "compared") > 0 && document["noted"].as_u64().unwrap() > 0);
    assert_eq!(counted(&document, "compared"), counted(&document, "kept"), "{verified}");
    let text = place.run(&["durable", "verify", "--target", "dir:commits", "--notes", "notes"]);
    assert!(text.code == Some(2) && text.stdout.starts_with("no verdict none is missing of"), "{text}");
    assert!(text.stdout.contains("why        nothing was cut"), "{text}");

    // What is left is named, and goes with its directory.
    let witness = Witness::start(&place, "notes2");
    let again = run(&place, &run_words("dir:commits", &witness, &[]));
    assert!(again.code == Some(2) && again.stderr.contains("plimsoll durable drop --target dir:commits"), "{again}");
    let planned = place.done(&["durable", "drop", "--target", "dir:commits", "--dry-run"]);
    assert!(planned.stdout.contains("plimsoll-durable-0002.blocks") && place.path("commits").exists(), "{planned}");
    place.done(&["durable", "drop", "--target", "dir:commits", "--yes"]);
    assert!(!place.path("commits").exists());
    // It was removed, and no power was cut.
    assert_eq!(reasons(&verify(&place, "dir:commits", "notes")), ["gone"]);
    assert_eq!(reasons(&verify(&place, "dir:mistyped", "notes")), ["elsewhere"]);
}

#[test]
fn what_is_there_after_a_cut_is_kept_and_what_is_not_is_lost() {
    let Some(place) = place() else { return };
    cut(&place, "dir:commits", &["--means", "none", "--blocks", "64"], "notes", &[]);
    let kept = verify(&place, "dir:commits", "notes");
    assert_eq!(kept.code, Some(0), "{kept}");
    let document = kept.json();
    assert_eq!((&document["verdict"], counted(&document, "compared")), (&"kept".into(), 256), "{kept}");

    let file = place.path("commits/plimsoll-durable-0002.blocks");
    let whole = fs::read(&file).unwrap();
    let lost = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        fs::write(&file, bytes).unwrap();
        let answer = verify(&place, "dir:commits", "notes");
        assert_eq!((answer.code, &answer.json()["verdict"]), (Some(1), &"lost".into()), "{answer}");
        answer.json()
    };
    let document = lost(&|bytes| bytes[3 * BLOCK..4 * BLOCK].fill(0));
    assert_eq!((counted(&document, "missing"), &document["faults"][0]["session"]), (1, &1.into()), "{document}");
    let document = lost(&|bytes| bytes[3 * BLOCK..3 * BLOCK + 512].fill(0x55));
    assert_eq!((counted(&document, "torn"), &document["faults"][0]["fate"]["strange"]), (1, &1.into()), "{document}");
    let document = lost(&|bytes| bytes.copy_within(5 * BLOCK..6 * BLOCK, 3 * BLOCK));
    assert_eq!((counted(&document, "foreign"), &document["faults"][0]["fate"]["slot"]), (1, &5.into()), "{document}");
    let document = lost(&|bytes| bytes.truncate(60 * BLOCK));
    assert!(counted(&document, "missing") == 4 && !document["damaged"].as_array().unwrap().is_empty(), "{document}");
    let document = lost(&|bytes| bytes.fill(0));
    assert_eq!((counted(&document, "missing"), counted(&document, "kept")), (64, 192), "{document}");

    // A reader that has gone takes nothing from the exit code.
    let mut command = place.plimsoll(&["durable", "verify", "--target", "dir:commits", "--notes", "notes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    fs::write(&file, &whole).unwrap();
    assert_eq!(verify(&place, "dir:commits", "notes").code, Some(0));

    // All of it gone, on a disk that is still there.
    fs::remove_dir_all(place.path("commits")).unwrap();
    let gone = verify(&place, "dir:commits", "notes");
    assert!(gone.code == Some(2) && gone.json()["is_gone"] == true, "{gone}");
}

#[test]
fn an_acknowledged_tail_that_is_not_there_is_lost() {
    let Some(place) = place() else { return };
    cut(&place, "dir:commits", &["--means", "none", "--blocks", "64"], "notes", &[(0, 3), (2, 1)]);
    let answer = verify(&place, "dir:commits", "notes");
    assert_eq!(answer.code, Some(1), "{answer}");
    let document = answer.json();
    // A commit that was under way when the load was killed may be one of them.
    let missing = counted(&document, "missing");
    assert!((2..=4).contains(&missing) && counted(&document, "out_of_order") == 0, "{answer}");
    let text = place.run(&["durable", "verify", "--target", "dir:commits", "--notes", "notes"]).stdout;
    assert!(text.starts_with("lost ") && text.contains("the older commit"), "{text}");

    // Notes that were cut short by a crash of the witness show a loss still, and never that all was kept.
    let notes = fs::read_to_string(place.path("notes")).unwrap();
    let without_end = notes.rsplit_once("\nclose ").unwrap().0;
    place.write("unfinished", &format!("{without_end}\n0 99"));
    assert_eq!(verify(&place, "dir:commits", "unfinished").code, Some(1));
    let lines: Vec<&str> = without_end.lines().collect();
    place.write("half", &format!("{}\n", lines[..lines.len() - 200].join("\n")));
    assert!(reasons(&verify(&place, "dir:commits", "half")).contains(&"witness_died".to_owned()));
    place.write("changed", &notes.replacen("another", "anotheR", 1));
    let changed = verify(&place, "dir:commits", "changed");
    assert!(changed.code == Some(2) && changed.stderr.contains("was changed or lost"), "{changed}");
    for (name, text) in [("empty", ""), ("noise", "PK\u{3}\u{4}"), ("one", "plimsoll durable notes 1\n")] {
        place.write(name, text);
        let refused = verify(&place, "dir:commits", name);
        assert!(refused.code == Some(2) && refused.stdout.is_empty() && refused.stderr.contains("hint:"), "{refused}");
    }
}

#[test]
fn a_witness_that_dies_ends_the_load_and_proves_nothing() {
    let Some(place) = place() else { return };
    let mut witness = Witness::start(&place, "notes");
    let mut load = running(&place, "dir:commits", &witness);
    let stderr = wait_for(&mut load, "Cut the power");
    let in_use = place.run(&["durable", "drop", "--target", "dir:commits", "--yes"]);
    assert!(in_use.code == Some(2) && in_use.stderr.contains(&format!("process {}", load.id())), "{in_use}");
    let other = Witness::start(&place, "other");
    let second = run(&place, &run_words("dir:commits", &other, &[]));
    assert!(second.stderr.contains("is in use by process"), "{second}");
    wait_until("commits are noted", || fs::read(place.path("notes")).unwrap().len() > 8_000);
    witness.child.kill().unwrap();
    witness.child.wait().unwrap();
    let said: Vec<String> = stderr.lines().map_while(Result::ok).collect();
    assert_eq!(load.wait().unwrap().code(), Some(2));
    assert!(said.iter().any(|line| line.contains("the witness `127.0.0.1:") && line.contains("is gone")), "{said:?}");
    let why = reasons(&verify(&place, "dir:commits", "notes"));
    for reason in ["witness_died", "same_boot", "ended_on_target"] {
        assert!(why.iter().any(|known| known == reason), "{why:?}");
    }
}

#[test]
fn ctrl_c_ends_a_witness_in_order_and_the_load_with_it() {
    let Some(place) = place() else { return };
    let mut witness = Witness::start(&place, "notes");
    let mut load = running(&place, "dir:commits", &witness);
    let stderr = wait_for(&mut load, "Cut the power");
    wait_until("commits are noted", || fs::read(place.path("notes")).unwrap().len() > 8_000);
    signal(&witness.child, "-INT");
    assert_eq!(witness.child.wait().unwrap().code(), Some(130));
    let said: Vec<String> = stderr.lines().map_while(Result::ok).collect();
    assert_eq!(load.wait().unwrap().code(), Some(2));
    assert!(said.iter().any(|line| line.contains("the witness was stopped")), "{said:?}");
    assert!(reasons(&verify(&place, "dir:commits", "notes")).contains(&"witness_stopped".to_owned()));

    // Where nothing comes, too, and no notes stay of what never began.
    let mut command = place.plimsoll(&["durable", "witness", "--stdin", "--notes", "none"]);
    let mut waiting = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // Waiting for a child closes its input, which would end the witness before the signal does.
    let _input = waiting.stdin.take();
    wait_until("its file is there", || place.path("none").exists());
    signal(&waiting, "-INT");
    assert_eq!(waiting.wait().unwrap().code(), Some(130));
    assert!(!place.path("none").exists());
}

#[test]
fn a_load_that_is_killed_is_no_power_cut() {
    let Some(place) = place() else { return };
    let witness = Witness::start(&place, "notes");
    let mut load = running(&place, "dir:commits", &witness);
    let _stderr = wait_for(&mut load, "Cut the power");
    wait_until("commits are noted", || fs::read(place.path("notes")).unwrap().len() > 8_000);
    load.kill().unwrap();
    load.wait().unwrap();
    let said = witness.ended();
    assert!(said.code == Some(0) && said.stderr.contains("was closed after"), "{said}");
    let why = reasons(&verify(&place, "dir:commits", "notes"));
    assert!(
        why.starts_with(&["nothing_promised".to_owned()]) && why.contains(&"connection_closed".to_owned()),
        "{why:?}"
    );
}

#[test]
fn ctrl_c_ends_a_load_in_order() {
    let Some(place) = place() else { return };
    let witness = Witness::start(&place, "notes");
    let mut load = running(&place, "dir:commits", &witness);
    let _stderr = wait_for(&mut load, "Cut the power");
    signal(&load, "-INT");
    assert_eq!(load.wait().unwrap().code(), Some(130));
    assert!(witness.ended().stderr.contains("the load is over"));
    assert!(reasons(&verify(&place, "dir:commits", "notes")).contains(&"ended_in_order".to_owned()));
}

#[test]
fn nothing_is_made_before_the_witness_is_reached() {
    let place = Place::on_disk();
    let nothing_there = || std::fs::read_dir(place.path(".")).unwrap().count() == 0;
    let without_token = place.run(&["durable", "run", "--target", "dir:commits", "--witness", "127.0.0.1:1"]);
    assert!(
        without_token.code == Some(2) && without_token.stderr.contains("PLIMSOLL_WITNESS_TOKEN"),
        "{without_token}"
    );
    let port = DeafPort::bind();
    let refused = run(&place, &["durable", "run", "--target", "dir:commits", "--witness", &port.address]);
    assert!(refused.code == Some(2) && refused.stderr.contains("plimsoll durable witness --listen"), "{refused}");
    assert!(!refused.stderr.contains("net serve") && nothing_there(), "{refused}");
    {
        let witness = Witness::start(&place, "notes");
        let mut command = place.plimsoll(&run_words("dir:commits", &witness, &[]));
        let wrong = Answer::from(command.env("PLIMSOLL_WITNESS_TOKEN", "another token").output().unwrap());
        assert!(wrong.code == Some(2) && wrong.stderr.contains("it has another token"), "{wrong}");
        assert!(wrong.stderr.contains("PLIMSOLL_WITNESS_TOKEN") && !wrong.stderr.contains("NET_TOKEN"), "{wrong}");
        // What a client of `net` says is not taken for a load, and the witness waits on.
        let words = ["net", "run", "--to", &witness.address, "--pattern", "ping", "--duration", "1"];
        let mut command = place.plimsoll(&words);
        let net = Answer::from(command.env("PLIMSOLL_NET_TOKEN", TOKEN).output().unwrap());
        assert_eq!(net.code, Some(2), "{net}");
        let there = place.run(&["durable", "witness", "--listen", "127.0.0.1:0", "--notes", "notes"]);
        assert!(there.code == Some(2) && there.stderr.contains("notes of its own"), "{there}");
        // A directory that cannot be made: the witness is free for the next load.
        let missing = run(&place, &run_words("dir:not/there", &witness, &[]));
        assert!(missing.code == Some(2) && missing.stderr.contains("a mount may be missing"), "{missing}");
        signal(&witness.child, "-INT");
        let said = witness.ended();
        assert!(said.stderr.contains("turned away") && said.stderr.contains("no load came"), "{said}");
    }
    assert!(nothing_there());
}

#[test]
fn what_has_no_meaning_is_refused_and_a_dry_run_makes_nothing() {
    let place = Place::on_disk();
    for (line, message) in [
        ("durable load --target sim:", "keeps no commits"),
        ("durable load --target oracle://u@h/s", "keeps no commits"),
        ("durable load --target pg:x --means dsync", "`--means` is for files"),
        ("durable load --target dir:x --sessions 1024 --blocks 100000", "are too many"),
        ("durable load --target postgres://h/d --sessions 1024 --blocks 1000", "are too many"),
        ("durable load --target dir:x --db-cache 64M", "is for a private server"),
        ("durable run --target dir:x --witness self", "would lose its power with the load"),
        ("durable verify --target dir:x --notes nothing", "cannot be read"),
        ("durable drop --target dir:x --yes", "cannot list `x`"),
    ] {
        let said = place.run(&line.split(' ').collect::<Vec<_>>());
        assert!(
            said.code == Some(2) && said.stderr.contains(message) && said.stderr.contains("hint:"),
            "{line}: {said}"
        );
    }
    for line in [
        "durable run --target dir:x --witness h:1 --duration 5 --dry-run",
        "durable load --target pg:x --dry-run",
        "durable witness --listen 127.0.0.1:0 --notes x --dry-run",
        "durable witness --stdin --notes x --dry-run",
    ] {
        place.done(&line.split(' ').collect::<Vec<_>>());
    }
    assert_eq!(fs::read_dir(place.path(".")).unwrap().count(), 0);
}

/// From its set-up to its removal on a private server, of which a kill is all that a test can do.
fn on_a_private_server(target: &str, directory: &str) {
    let place = Place::new();
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    let path = place.path(directory);
    let target = format!("{target}:{}", path.display());
    let first = place.run(&["durable", "load", "--target", &target, "--duration", "0"]);
    if first.stderr.contains("in memory") {
        return skip("the directory of the tests is in memory");
    }
    assert_eq!(first.code, Some(0), "{first}");
    let left = place.run(&["durable", "load", "--target", &target]);
    assert!(left.code == Some(2) && left.stderr.contains("plimsoll durable drop --target"), "{left}");
    // Data of others stays.
    let slob = place.run(&["slob", "drop", "--yes", "--target", &target]);
    assert!(slob.code == Some(2) && path.exists(), "{slob}");
    place.done(&["durable", "drop", "--yes", "--target", &target]);
    assert!(!path.exists() && servers(&path).is_empty());

    cut(&place, &target, &["--sessions", "2", "--blocks", "64"], "notes", &[]);
    wait_until("the killed load's server has ended", || servers(&path).is_empty());
    let kept = verify(&place, &target, "notes");
    let document = kept.json();
    let few = reasons_of(&document) == ["too_few_commits"];
    assert!(kept.code == Some(0) || few, "{kept}");
    assert_eq!((counted(&document, "compared"), counted(&document, "kept")), (128, 128), "{kept}");
    place.done(&["durable", "drop", "--yes", "--target", &target]);

    // Two commits that the server never made.
    cut(&place, &target, &["--sessions", "2", "--blocks", "64"], "lost", &[(0, 2)]);
    wait_until("the killed load's server has ended", || servers(&path).is_empty());
    let lost = verify(&place, &target, "lost");
    assert_eq!(lost.code, Some(1), "{lost}");
    assert!((1..=2).contains(&counted(&lost.json(), "missing")), "{lost}");
    assert_eq!(reasons(&verify(&place, &target, "notes")), ["other_run"]);
    // A load in another schema stays, and so does the server.
    let schema: &[&str] = if directory == "pg" { &["--db-schema", "other"] } else { &[] };
    if !schema.is_empty() {
        place.done(&[&["durable", "load", "--target", &target, "--duration", "0"], schema].concat());
        place.done(&["durable", "drop", "--yes", "--target", &target]);
        assert!(path.exists());
    }
    // A disk that lies leaves servers that do not start. They can be removed.
    let broken = ["data/global/pg_control", "data/ibdata1"].map(|file| path.join(file));
    fs::remove_file(broken.iter().find(|file| file.exists()).expect("a file without which no server starts")).unwrap();
    let dropped = place.done(&[&["durable", "drop", "--yes", "--target", &target], schema].concat());
    assert!(!path.exists() && dropped.stderr.contains("its contents are not known"), "{dropped}");
    // The whole server is gone, and the place is the same.
    assert_eq!(verify(&place, &target, "lost").code, Some(2), "it was dropped");
}

/// The power of a server on this machine is that of this machine, whatever its address.
#[test]
fn a_server_on_this_machine_is_judged_by_its_boot() {
    if !sql::mysql::test_server::is_installed() {
        return;
    }
    let place = Place::new();
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    let private = format!("my:{}", place.path("my").display());
    let words = ["-s", "1", "SCALE=200", "SCAN_TABLE_SZ=0", "--db-cache", "16M", "--quiet", "--keep-running"];
    place.done(&[&["slob", "setup"], &words[..], &["--target", &private]].concat());
    let socket = place.path("my/run/sock");
    if socket.exists() {
        let target = format!("mysql://root@/plimsoll?socket={}", socket.display());
        let load = place.done(&["durable", "load", "--duration", "0", "--target", &target]);
        let opening = load.stdout.lines().find_map(|line| line.strip_prefix("open ")).expect("it says that it begins");
        let made = serde_json::from_str::<Value>(opening).unwrap()["made"].take();
        assert!(made["is_here"] == true && made["started_s"].as_u64().is_some(), "{made}");
        assert!(made["place"]["server"].as_str().unwrap().contains("/my/data"), "{made}");
        place.done(&["durable", "drop", "--yes", "--target", &target]);
        // A load under way is neither read nor removed, and ends where another program takes its rows away.
        let witness = Witness::start(&place, "notes");
        let mut command = place.plimsoll(&run_words(&target, &witness, &[]));
        let command = command.env("PLIMSOLL_WITNESS_TOKEN", TOKEN).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut load = command.spawn().unwrap();
        let said = wait_for(&mut load, "Cut the power");
        wait_until("commits are noted", || fs::read(place.path("notes")).unwrap().len() > 2_000);
        let removal = place.run(&["durable", "drop", "--yes", "--target", &target]);
        assert!(removal.code == Some(2) && removal.stderr.contains("another process makes or removes"), "{removal}");
        let mut client = Command::new("mariadb");
        client.arg(format!("--socket={}", socket.display())).args(["--user=root", "plimsoll"]);
        client.args(["-e", "DELETE FROM plimsoll_durable_commits"]);
        assert!(client.status().expect("a client comes with the server").success());
        let said: Vec<String> = said.lines().map_while(Result::ok).collect();
        assert_eq!(load.wait().unwrap().code(), Some(2));
        assert!(said.iter().any(|line| line.contains("a commit changed 0 rows")), "{said:?}");
        // What is on the server besides stays.
        place.done(&["durable", "drop", "--yes", "--target", &target]);
        assert_eq!(place.run(&["durable", "drop", "--yes", "--target", &target]).code, Some(2));
    } else {
        skip("the place's name is too long for a socket, so the server's is elsewhere");
    }
    place.done(&["slob", "drop", "--yes", "--target", &private]);
    assert!(servers(&place.path("my")).is_empty());
}

fn reasons_of(document: &Value) -> Vec<&str> {
    document["reasons"].as_array().unwrap().iter().filter_map(|reason| reason["id"].as_str()).collect()
}

#[test]
fn commits_on_postgresql_are_compared() {
    if sql::postgres::test_server::is_installed() {
        on_a_private_server("pg", "pg");
    }
}

#[test]
fn commits_on_mariadb_are_compared() {
    if sql::mysql::test_server::is_installed() {
        on_a_private_server("my", "my");
    }
}
