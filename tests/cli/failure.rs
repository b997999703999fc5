//! What a failure costs a load: failures of known lengths on a real server, and commands that do not do what they should.

use std::fs;
use std::io::{BufRead as _, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::manners::{signal, wait_for};
use crate::place::Place;
use crate::servers::wait_until;
use sql::postgres::test_server::is_installed;

const LOAD: &[&str] = &["--", "host", "run", "--work", "checksum", "--processors", "1", "--warmup", "0"];

fn words<'a>(failure: &[&'a str], load: &[&'a str]) -> Vec<&'a str> {
    [&["failure", "run"], failure, LOAD, load].concat()
}

#[test]
fn what_cannot_be_is_said_before_anything_begins() {
    let place = Place::new();
    for (line, says) in [
        ("failure run --inject true", "required arguments"),
        ("failure run -- host run", "--inject"),
        ("failure run --inject true --by-hand -- host run", "cannot be used with"),
        ("failure run --recover true --by-hand -- host run", "cannot be used with"),
        ("failure run --inject true --listen 127.0.0.1:0 -- host run", "cannot be used with"),
        ("failure run --listen 8322 -- host run", "is not an address and a port"),
        ("failure run --inject true -- host run -- io run", "2 loads are given"),
        ("failure run --inject true -- io sweep --path x", "cannot take part"),
        ("failure run --inject true -- host run --json", "one for all loads"),
        ("failure run --inject true --at 30s -- host run --work checksum --duration 30s", "measured for 30.0 s"),
        (
            "failure run --inject true --recover true --after 25s -- host run --work checksum --duration 30s",
            "over after 35.0 s",
        ),
    ] {
        let answer = place.run(&line.split(' ').collect::<Vec<_>>());
        assert!(answer.code == Some(2) && answer.stderr.contains(says), "{line}: {answer}");
    }
    let plan = ["--inject", "echo \u{1b}[2J", "--at", "3s", "--recover", "true", "--after", "4s", "--dry-run"];
    let plan = place.done(&words(&plan, &["--duration", "20s"]));
    assert!(plan.stdout.contains("3.00 s into the window: echo [U+001B][2J"), "{plan}");
    assert!(plan.stdout.contains("4.00 s later: true"), "{plan}");
    assert_eq!(fs::read_dir(place.path(".")).unwrap().count(), 0);
}

#[test]
fn what_was_begun_is_ended_whatever_happens() {
    let place = Place::new();
    let recover = format!("echo >>{}", place.path("recovered").display());
    // A failure that cannot be caused ends the load.
    let wrong = ["--inject", "exit 7", "--at", "100ms", "--recover", &recover, "--after", "50s"];
    let answer = place.run(&words(&wrong, &["--duration", "60s"]));
    assert!(answer.code == Some(2) && answer.stderr.contains("`exit 7` ended with exit status: 7"), "{answer}");
    assert_eq!(fs::read_to_string(place.path("recovered")).unwrap(), "\n");
    // So does Ctrl-C.
    let long = ["--inject", "true", "--at", "100ms", "--recover", &recover, "--after", "50s"];
    let mut command = place.plimsoll(&words(&long, &["--duration", "60s"]));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = wait_for(&mut child, "failure: true");
    signal(&child, "-INT");
    std::io::BufRead::lines(said).for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_to_string(place.path("recovered")).unwrap(), "\n\n");
    // What kills this program lets the recovery go: its shell waits for that, or for the end of this program.
    let mut command = place.plimsoll(&words(&long, &["--duration", "60s"]));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = wait_for(&mut child, "failure: true");
    signal(&child, "-KILL");
    assert!(!child.wait().unwrap().success());
    wait_until("it recovered", || fs::read_to_string(place.path("recovered")).unwrap() == "\n\n\n");
    drop(said);
    // A failure that does not end is ended first.
    let endless = ["--inject", "sleep 1000", "--at", "100ms", "--recover", &recover, "--after", "1s"];
    let answer = place.run(&words(&endless, &["--duration", "3s"]));
    assert!(answer.stderr.contains("recovery: echo"), "{answer}");
    assert_eq!(fs::read_to_string(place.path("recovered")).unwrap(), "\n\n\n\n");
    // A load without a rate, and a failure that it does not feel. Others that have the processor for long make a pause all the same.
    let nothing = ["--inject", "true", "--at", "1s", "--max-pause", "500ms", "--no-errors"];
    let unfelt = |_| {
        let answer = place.run(&words(&nothing, &["--duration", "3s"]));
        assert!(matches!(answer.code, Some(0..=2)), "{answer}");
        answer.stdout.contains("pause      none was seen").then_some(answer)
    };
    let answer = (0..5).find_map(unfelt).expect("one of five runs has no pause");
    // A second in which others have the processors takes the proof away, and the answer is then unknown.
    assert!([Some(0), Some(2)].contains(&answer.code), "{answer}");
    for says in ["at most 500 ms without", "pause      none was seen", "errors     none", "the load has no `--rate`"] {
        assert!(answer.stdout.contains(says), "{says}: {answer}");
    }
}

#[test]
fn failures_of_an_experiment_stand_side_by_side() {
    let place = Place::new();
    // The load is the first child of what causes the failure, and the shell of that asks for it.
    let load = "$(cat /proc/$PPID/task/*/children | cut -d ' ' -f 1)";
    let run = "host run --work checksum --processors 2 --warmup 0 --duration";
    place.write(
        "f.toml",
        &format!(
            r#"
[[step]]
run = "failure run --inject {{_inject}} --recover {{_recover}} --at 2s --after 2s --max-pause 1s -- {run} 7s"
cases = [
  {{ failure = "nothing", _inject = "true", _recover = "true" }},
  {{ failure = "a stop", _inject = "kill -STOP {load}", _recover = "kill -CONT {load}" }},
]
[[step]]
name = "wrong"
run = "failure run --inject 'exit 7' --at 100ms --recover true --after 1s -- {run} 60s"
"#
        ),
    );
    let plan = place.done(&["experiment", "plan", "f.toml"]);
    assert!(plan.stdout.contains("failure run failure=a stop: 7.00 s"), "{plan}");
    let answer = place.run(&["experiment", "run", "f.toml", "--json"]);
    assert!(answer.code == Some(2) && answer.stderr.contains("`exit 7` ended with exit status: 7"), "{answer}");
    let document = answer.json();
    let cases = document["cases"].as_array().expect("cases");
    assert_eq!((cases.len(), document["not_measured"][0]["step"].as_str()), (2, Some("wrong")), "{document}");
    let of = |case: usize| &cases[case]["runs"][0]["failure"];
    assert_eq!(of(1)["demands"][0]["met"], false, "two seconds are more than one: {document}");
    assert!(of(1)["cost"]["longest_ns"].as_u64() >= Some(2_000_000_000), "{document}");
    // Of the other only that: on a busy machine it may pause too.
    assert!(of(0)["cost"]["failed_ns"].as_u64() >= Some(2_000_000_000), "{document}");
    let report = place.done(&["experiment", "report", "f.toml"]);
    assert!(report.stdout.contains("`failure=a stop` paused longest: ") && report.stdout.contains("1 of 1 missed"));
    // A step whose failure could not be caused is measured again, and the others are not.
    let again = place.run(&["experiment", "run", "f.toml"]);
    assert!(again.code == Some(2) && again.stderr.matches("run 3 of 3").count() == 1, "{again}");
    assert!(!again.stderr.contains("run 1 of 3") && !again.stderr.contains("run 2 of 3"), "{again}");
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/failures.toml");
    let plan = place.done(&["experiment", "plan", example.to_str().unwrap()]);
    assert!(plan.stdout.contains("in all     6 steps, 18 runs"), "{plan}");
    assert!(plan.stdout.contains("add chain inet away out { type filter"), "{plan}");
    place.write("hand.toml", "[[step]]\nrun = \"failure run --by-hand -- host run --work checksum --duration 5\"\n");
    let answer = place.run(&["experiment", "plan", "hand.toml"]);
    assert!(answer.code == Some(2) && answer.stderr.contains("`--by-hand` needs the keys of a person"), "{answer}");
}

/// `POST` to a path of the address that takes marks. Gives the status.
fn post(address: &str, path: &str, token: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    write!(stream, "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n")
        .expect("it hears");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("it answers");
    said.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn marks_come_by_http_from_who_has_the_token() {
    let place = Place::new();
    let load = ["host", "run", "--work", "checksum", "--processors", "1", "--warmup", "3", "--duration", "8"];
    let mut command =
        place.plimsoll(&[&["failure", "run", "--listen", "127.0.0.1:0", "--json", "--"][..], &load].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let mut behind = |words: &str| {
        let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains(words)).unwrap();
        line.split(words).nth(1).unwrap().split(['/', ' ']).next().unwrap().to_owned()
    };
    let (token, address) = (behind("Token, shown this once: "), behind("http://"));
    let address = address.as_str();
    assert!(token.len() >= 32, "{token}");
    assert!(post(address, "/failure", "wrong").contains("401"));
    let stdout = child.stdout.take().unwrap();
    let (sender, said) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    // One that comes before the load is measured is refused, and one that were taken would lie outside the window.
    wait_until("the failure is marked", || {
        let status = post(address, "/failure", &token);
        assert!(status.contains("200") || status.contains("409"), "{status}");
        status.contains("200")
    });
    for (path, status) in [("/failure", "409"), ("/recovery", "200"), ("/recovery", "409")] {
        assert!(post(address, path, &token).contains(status), "{path}");
    }
    let document: serde_json::Value = serde_json::from_reader(stdout).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{document}");
    let cost = &document["cost"];
    let (failed, recovered) = (cost["failed_ns"].as_u64().unwrap(), cost["recovered_ns"].as_u64().unwrap());
    assert!(recovered >= failed, "{document}");
    let said: Vec<String> = said.into_iter().collect();
    assert_eq!(said.iter().filter(|line| line.starts_with("marked: ")).count(), 2, "{said:?}");
}

/// The server's processes are stopped for two seconds under load.
#[test]
fn a_pause_of_a_server_is_as_long_as_it_was() {
    if !is_installed() {
        return;
    }
    let place = Place::new();
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    let target = format!("pg:{}", place.path("pg").display());
    place.done(&["orders", "setup", "--scale", "0.01", "--target", &target, "--quiet"]);
    let pid_file = place.path("pg/data/postmaster.pid");
    let all =
        format!("for p in $(cat /proc/$(head -n 1 {})/task/*/children); do kill -SIG $p; done", pid_file.display());
    let (stop, go_on) = (all.replace("SIG", "STOP"), all.replace("SIG", "CONT"));
    let failure = ["failure", "run", "--inject", &stop, "--at", "3s", "--recover", &go_on, "--after", "2s"];
    let demands = ["--max-pause", "1s", "--no-errors", "--json", "--"];
    let load =
        ["orders", "run", "--target", &target, "--rate", "25", "--users", "16", "--duration", "15", "--warmup", "1"];
    let answer = place.run(&[&failure[..], &demands, &load].concat());
    assert_eq!(answer.code, Some(1), "two seconds are more than one: {answer}");
    let document = answer.json();
    let cost = &document["cost"];
    let ns = |pointer: &str| {
        cost.pointer(pointer).and_then(|value| value.as_u64()).unwrap_or_else(|| panic!("{pointer}: {document}"))
    };
    let held_ns = ns("/recovered_ns") - ns("/failed_ns");
    // A machine that others use is late to stop and to go on, and the pause ends with the recovery at the soonest.
    let (from_ns, recovered_ns) = (ns("/pause/from_ns"), ns("/recovered_ns"));
    assert!(held_ns >= 2_000_000_000, "{document}");
    assert!(from_ns < recovered_ns, "{document}");
    assert!(from_ns + ns("/pause/length_ns") + 100_000_000 >= recovered_ns, "{document}");
    assert!(ns("/longest_ns") >= ns("/pause/length_ns") && ns("/backlog") >= 16, "{document}");
    assert_eq!((ns("/errors"), ns("/unended")), (0, 0), "{document}");
    assert_eq!((&document["demands"][0]["met"], &document["demands"][1]["met"]), (&false.into(), &true.into()));
    let runs = place.runs();
    assert_eq!(runs, [document["run"].as_str().unwrap()]);
    // The run keeps what was marked: its reports say what the failure cost, and show when it was.
    let report = place.done(&["report", "last"]);
    let begins = report.stdout.starts_with("RESULT    a failure cost a pause of ");
    assert!(begins && report.stdout.contains(" at most 1.00 s without a completed operation"), "{report}");
    let kept = place.done(&["report", "last", "--json"]).json();
    assert_eq!((&kept["failure"]["cost"], &kept["failure"]["demands"]), (cost, &document["demands"]));
    place.done(&["report", "last", "--output", "page.html"]);
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains(">failure</span>") && page.contains(">recovery</span>"), "both are marked in charts");
    wait_until("the private server has ended", || !pid_file.exists());
}
