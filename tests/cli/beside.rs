//! `plimsoll beside`: what loads cost each other.

use std::io::Read;
use std::process::{Child, Stdio};

use crate::errors::refused;
use crate::manners::{signal, wait_for, wait_for_intervals};
use crate::place::{Answer, Place};
use crate::servers::wait_until;

/// Two servers that share nothing, in simulated time.
const SIMULATED: &str = "slob run 4 --target sim:service=200us,servers=4,clock=simulated -- \
                         io run --path sim:service=300us,servers=8,clock=simulated --pattern randread --depth 16";
/// The same in time that passes.
const REAL: &str = "slob run 1 --target sim: -- io run --path sim: --pattern randread --depth 2";

fn words<'a>(options: &'a str, loads: &'a str) -> Vec<&'a str> {
    let words = ["beside"].into_iter().chain(options.split_whitespace()).chain(["--"]);
    words.chain(loads.split_whitespace()).collect()
}

fn beside(place: &Place, options: &str, loads: &str) -> Answer {
    place.run(&words(options, loads))
}

/// Each run that is kept: load, round, turn and outcome, in the order in which they began.
fn kept(place: &Place) -> Vec<String> {
    let list = place.done(&["runs", "list", "--json"]).json();
    let of_run = |run: &serde_json::Value| {
        let tag = |name: &str| run["tags"][name].as_str().unwrap_or("-").to_owned();
        let outcome = run["outcome"].as_str().unwrap_or("failed").to_owned();
        [tag("beside.load"), tag("beside.round"), tag("beside.turn"), outcome].join(" ")
    };
    list.as_array().expect("a list").iter().map(of_run).collect()
}

fn start(place: &Place, options: &str, loads: &str) -> Child {
    let mut command = place.plimsoll(&words(options, loads));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program can be started")
}

/// The processes that a process has started.
fn children_of(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("its threads can be listed");
    let of_task = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let lists: Vec<String> = tasks.filter_map(Result::ok).map(of_task).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn simulated_servers_share_nothing_and_cost_each_other_nothing() {
    let place = Place::new();
    let answer = beside(&place, "--duration 20 --warmup 1 --rounds 3 --tag vm=d8s --json", SIMULATED);
    assert_eq!(answer.code, Some(0), "{answer}");
    let document = answer.json();
    assert_eq!((&document["rounds"], &document["rounds_left_out"]), (&serde_json::json!([1, 2, 3]), &0.into()));
    let loads = document["loads"].as_array().expect("loads");
    assert_eq!(loads.len(), 2);
    for load in loads {
        let figures = load["figures"].as_array().expect("figures");
        assert_eq!(figures.len(), 2, "{answer}");
        for figure in figures {
            let ratio = figure["ratio"].as_f64().expect("a ratio");
            assert!((ratio - 1.0).abs() < 0.02 && figure["answer"] == "same", "{figure}");
        }
    }
    let turns = ["A 1 alone", "B 1 alone", "A 1 together", "B 1 together"];
    let kept = kept(&place);
    assert_eq!(kept.len(), 12);
    for turn in turns.into_iter().flat_map(|turn| ["1", "2", "3"].map(|round| turn.replace('1', round))) {
        assert!(kept.contains(&format!("{turn} completed")), "{turn}: {kept:?}");
    }

    // The same from the store, by its name, its beginning, and as the last one.
    let group = document["group"].as_str().expect("a group");
    for word in [group, &group[..12], "last"] {
        assert_eq!(place.done(&["beside", "--report", word, "--json"]).json(), document, "{word}");
    }
    let tagged = place.done(&["runs", "list", &format!("beside={group}"), "--json"]).json();
    assert_eq!(tagged.as_array().map(Vec::len), Some(12));
    assert!(tagged[0]["tags"]["vm"] == "d8s" && tagged[0]["name"].as_str().is_some_and(|name| !name.contains(group)));
    let text = place.done(&["beside", "--report", "last", "-o", "page.html", "--text"]);
    assert!(text.stdout.starts_with("A+B together: A pays no more than 5.0 %; B pays no more than 5.0 %."), "{text}");
    let page = std::fs::read_to_string(place.path("page.html")).expect("the page is there");
    assert!(page.contains("What each load pays for its company") && page.contains("Histogram of B"), "{page}");

    // Rounds repeat each other, so that any two sides of them can be compared as any runs.
    let ids = |load: usize, side: &str| -> String {
        let ids = loads[load][side]["runs"].as_array().expect("ids").iter().filter_map(|id| id.as_str());
        ids.collect::<Vec<_>>().join(",")
    };
    let compared = place.done(&["compare", &ids(1, "alone"), &ids(1, "together")]);
    assert!(compared.stdout.contains("tag beside.turn") && compared.stdout.contains("together"), "{compared}");
}

#[test]
fn an_engine_and_raw_storage_on_one_disk_are_measured_in_the_same_windows() {
    let place = Place::on_disk();
    place.set_up();
    let loads = "slob run 2 UPDATE_PCT=50 -- io run --path raw.dat --size 16M --pattern randread --depth 4";
    let answer = beside(&place, "--duration 2 --warmup 1 --rounds 1", loads);
    assert_eq!(answer.code, Some(0), "{answer}");
    assert_eq!(
        kept(&place),
        ["A 1 alone completed", "B 1 alone completed", "A 1 together completed", "B 1 together completed"]
    );
    for part in ["in 1 round.", "slob run 2 UPDATE_PCT=50 --duration 2s --warmup 1s", "raw.dat", "requests/s"] {
        assert!(answer.stdout.contains(part), "{part}\n{answer}");
    }
    // What the processes of the loads say is not mixed into it.
    assert!(
        !answer.stderr.contains("step 1 of 1") && answer.stderr.contains("turn 3 of 3, round 1, A+B together"),
        "{answer}"
    );
    place.done(&["slob", "verify"]);
}

#[test]
fn a_load_that_fails_ends_the_measurement_with_its_error_and_its_hint() {
    let place = Place::on_disk();
    let missing = beside(
        &place,
        "--duration 1 --warmup 0",
        "io run --path none.dat --pattern randread -- slob run 1 --target sim:",
    );
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(2), ""), "{missing}");
    assert!(
        missing.stderr.contains("error: load A (`io run --path none.dat --pattern randread`), round 1, A alone: "),
        "{missing}"
    );
    assert!(missing.stderr.contains("`none.dat` is not there\nhint: "), "{missing}");

    // Each can be loaded alone, but only one at a time, which their names do not say.
    place.set_up();
    std::os::unix::fs::symlink("plimsoll-data", place.path("other")).expect("a link can be made");
    let twice = beside(&place, "--duration 1 --warmup 0 --rounds 2", "slob run 1 -- slob run 2 --target dir:other");
    assert_eq!((twice.code, twice.stdout.as_str()), (Some(2), ""), "{twice}");
    assert!(
        twice.stderr.contains("error: load B (`slob run 2 --target dir:other`), round 1, A+B together: ")
            && twice.stderr.contains("in use"),
        "{twice}"
    );
    assert!(twice.stderr.contains("\nhint: ") && twice.stderr.contains("Kept as `"), "{twice}");
    assert_eq!(kept(&place), ["A 1 alone completed", "B 1 alone completed", "A 1 together interrupted"]);
    let none = place.run(&["beside", "--report", "last"]);
    assert!(none.code == Some(2) && none.stderr.contains("no round is whole"), "{none}");
    place.done(&["slob", "verify"]);
}

#[test]
fn a_load_whose_process_is_killed_is_a_failure_that_is_told() {
    let place = Place::new();
    let child = start(&place, "--duration 600 --warmup 0", REAL);
    wait_for_intervals(&place, 1);
    let processes = children_of(child.id());
    assert_eq!(processes.len(), 1, "one load alone is one process");
    let killed = std::process::Command::new("kill").args(["-KILL", &processes[0].to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let answer = Answer::from(child.wait_with_output().expect("it ends"));
    assert_eq!(answer.code, Some(2), "{answer}");
    assert!(answer.stderr.contains("round 1, A alone: its process ended without a word: signal: 9"), "{answer}");
}

#[test]
fn ctrl_c_ends_all_loads_and_keeps_what_was_measured() {
    let place = Place::new();
    // The first round is whole; the second is never over.
    let mut child = start(&place, "--duration 5 --warmup 0 --rounds 99", REAL);
    let mut stderr = wait_for(&mut child, "turn 4 of 297, round 2, A+B together");
    wait_until("both loads of the second round are kept", || kept(&place).len() >= 6);
    signal(&child, "-INT");
    let (mut rest, mut stdout) = (String::new(), String::new());
    stderr.read_to_string(&mut rest).expect("it can be read");
    child.stdout.take().expect("it is piped").read_to_string(&mut stdout).expect("it can be read");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130), "{rest}");
    assert!(rest.contains("cut short") && rest.contains("Kept as `"), "{rest}");
    let kept = kept(&place);
    let done: Vec<&str> = kept.iter().map(String::as_str).filter(|run| run.contains(" 1 ")).collect();
    assert!(done.len() == 4 && done.iter().all(|run| run.ends_with("completed")), "{kept:?}");
    assert!(kept.iter().all(|run| !run.ends_with("unfinished")), "{kept:?}");
    assert!(stdout.contains("in 1 round. 1 round that is not whole was left out."), "{stdout}");
}

#[test]
fn loads_end_by_themselves_when_whoever_started_them_is_killed() {
    let place = Place::new();
    let mut child = start(&place, "--duration 600 --warmup 0", REAL);
    wait_for_intervals(&place, 1);
    child.kill().expect("it can be killed");
    child.wait().expect("it is gone");
    wait_until("the load has ended", || kept(&place) == ["A 1 alone interrupted"]);
}

#[test]
fn a_limit_that_a_load_does_not_keep_is_the_exit_code() {
    let place = Place::new();
    let loads = format!("{SIMULATED} --limit p99=100us");
    let answer = beside(&place, "--duration 20 --warmup 1 --rounds 1", &loads);
    assert_eq!(answer.code, Some(1), "{answer}");
    assert!(
        answer.stderr.contains("note: B kept its limits in 0 of 1 rounds alone, and in 0 of 1 together"),
        "{answer}"
    );
}

#[test]
fn a_program_that_a_load_calls_has_no_part_in_it() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_plimsoll");
    place.write(
        "pre.sh",
        &format!("#!/bin/sh\nexec {program} slob run 1 RUN_TIME=1 --target sim:clock=simulated --runs nested\n"),
    );
    let script = place.path("pre.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("it can be made executable");
    let loads = format!(
        "slob run 4 EXTERNAL_SCRIPT={} --target sim:clock=simulated -- slob run 2 --target sim:clock=simulated",
        script.display()
    );
    let answer = beside(&place, "--duration 2 --warmup 0 --rounds 1", &loads);
    assert_eq!(answer.code, Some(0), "{answer}");
    let nested = place.done(&["runs", "list", "--runs", "nested", "--json"]).json();
    let nested = nested.as_array().expect("a list");
    // Before, after and at the end of each of its two turns.
    assert_eq!(nested.len(), 6);
    assert!(
        nested.iter().all(|run| run["tags"] == serde_json::json!({}) && run["outcome"] == "completed"),
        "{nested:?}"
    );
}

#[test]
fn a_dry_run_lists_every_turn() {
    let place = Place::new();
    let answer = beside(
        &place,
        "--dry-run --rounds 2 --duration 90 --warmup 500ms",
        "plimsoll slob run 4 SYSDBA_PASSWD=tiger -- io run --path /dev/none --pattern randread",
    );
    insta::assert_snapshot!(answer.reported());
    assert!(!place.path("plimsoll-runs").exists());
}

#[test]
fn what_cannot_be_measured_together_is_refused_with_advice() {
    let place = Place::new();
    let io = "io run --path sim: --pattern randread";
    let nine = ["slob run 1"; 9].join(" -- ");
    let reported: Vec<String> = [
        io.to_owned(),
        format!("{io} --"),
        format!("{io} -- fio job.fio"),
        format!("{io} -- slob setup -s 2"),
        format!("{io} -- slob run 4 --target sim:"),
        format!("{io} -- slob run 4 RUN_TIME=30 WORK_LOOP=100"),
        format!("{io} -- slob run 4 RUN_TIME=thirty"),
        format!("{io} -- slob run 4 --targt sim:"),
        format!("{io} --json -- slob run 4"),
        format!("{io} -- slob run 4 --runs=elsewhere"),
        format!("{io} -- orders run --users 2 --results results.xml --target postgres://bench@db1/bench"),
        "slob run 1 --target dir:/data/one -- slob run 2 --target dir:/data//one/".to_owned(),
        nine,
    ]
    .iter()
    .map(|loads| refused(&place, &words("", loads)))
    .chain(
        ["beside", "beside --report none", "beside --report last --rounds 2", "beside --rounds 0 -- io run -- io run"]
            .map(|line| refused(&place, &line.split_whitespace().collect::<Vec<_>>())),
    )
    .chain([
        refused(&place, &words("-o chart.png", SIMULATED)),
        refused(&place, &words("--duration 9", &format!("{io} --duration 5 -- {io}"))),
    ])
    .collect();
    insta::assert_snapshot!(reported.join("\n"));
}
