//! `plimsoll check`: the answer, its exit code, and what is left behind.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use serde_json::Value;

use crate::manners::{signal, wait_for};
use crate::place::Place;
use crate::skip::skip;

const CAPPED: &str = "sim:service=200us,servers=8,iops_cap=8000,clock=simulated";

/// What a check of simulated storage prints and how it ends.
fn checked(words: &[&str], place: &str) -> (i32, String) {
    let directory = Place::new();
    let ended = directory.run(&[&["check"], words, &[place, "--quiet"]].concat());
    (ended.code.expect("nothing kills it"), ended.stdout)
}

#[test]
fn yes_and_no_have_their_exit_codes_in_at_most_five_lines() {
    for (reads, code, begins) in [("3000@5ms", 0, "Yes. sim:"), ("20000@5ms", 1, "No. sim:")] {
        let (ended, said) = checked(&["--reads", reads], CAPPED);
        assert_eq!(ended, code, "{said}");
        assert!(said.starts_with(begins) && said.lines().count() <= 5, "{said}");
        let last = said.lines().last().unwrap();
        assert!(last.starts_with("Page: check.html   Run: 20"), "{said}");
    }
}

#[test]
fn a_planted_cap_is_the_reason_and_the_room_ends_there() {
    let (_, said) = checked(&["--reads", "3000@5ms", "--writes", "500@5ms"], CAPPED);
    let room = said.lines().nth(1).unwrap();
    let times = room.strip_prefix("Room to spare: ").unwrap().trim_start_matches("between ");
    let times: f64 = times.split(' ').next().unwrap().parse().unwrap();
    assert!(room.contains(" reads/s with ") && !room.contains("beyond"), "rates are said: {said}");
    assert!((2.0..=2.29).contains(&times), "3,500 go 2.29 times into 8,000: {said}");
    assert!(room.contains("stopped by a limit at 8,000 requests/s"), "{said}");
    assert!(said.contains("3,000 reads/s (p99 ") && said.contains("with 500 writes/s (p99 "), "{said}");
}

#[test]
fn what_is_carried_instead_stands_beside_a_no() {
    let (_, said) = checked(&["--reads", "20000@5ms"], CAPPED);
    assert!(said.contains("because it is stopped by a limit or the device itself, at 8,000 requests/s"), "{said}");
    assert!(said.contains("only 40 % of it was finished and a queue grew."), "{said}");
    let carried = said.lines().nth(1).unwrap();
    let carried = carried.strip_prefix("It sustains ").unwrap().trim_start_matches("between ");
    let times: f64 = carried.split(' ').next().unwrap().parse().unwrap();
    assert!((0.35..=0.4).contains(&times), "{said}");
}

#[test]
fn slots_do_not_decide_what_a_database_carries() {
    let tail = "sim:tiers=0.992:200us+0.008:900ms,servers=4000,clock=simulated";
    let (code, said) = checked(&["--reads", "10000@2ms", "--commits", "10", "--for", "60"], tail);
    assert!(code == 0 && said.starts_with("Yes."), "80 are under way in the mean: {said}");
    let tail = "sim:tiers=0.995:200us+0.005:400ms,servers=2000,clock=simulated";
    let (_, said) = checked(&["--reads", "3000@5ms", "--commits", "10", "--for", "60"], tail);
    assert!(said.starts_with("Yes.") && !said.contains("the device"), "{said}");
}

#[test]
fn errors_and_missed_measurements_are_not_passed_over() {
    let (code, said) = checked(&["--reads", "6000@5ms"], "sim:errors=0.005,clock=simulated");
    assert!(code == 1 && said.lines().next().unwrap().contains("operations failed"), "{said}");
    let stalls = "sim:stall=20s:3s,clock=simulated";
    let (_, said) = checked(&["--reads", "6000@5ms", "--commits", "50@10ms"], stalls);
    assert!(!said.starts_with("Yes.") || said.contains("measurements did not show it: p99"), "{said}");
}

#[test]
fn a_bare_throughput_is_megabytes_and_one_without_a_request_is_refused() {
    let (code, said) = checked(&["--scan", "800"], "sim:service=200us,clock=simulated");
    assert!(code == 0 && said.contains("800 MB/s of scans"), "{said}");
    let ended = Place::new().run(&["check", "--scan", "800B/s", "sim:clock=simulated"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("too few scans"), "{ended}");
}

#[test]
fn commits_are_asked_of_a_database_at_the_same_time() {
    let (code, said) = checked(&["--reads", "3000@5ms", "--commits", "100@10ms"], CAPPED);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains(" with 100 commits/s (p99 ") && said.contains("at the same time."), "{said}");
}

#[test]
fn the_answer_is_in_the_document_the_page_and_the_report_of_the_run() {
    let place = Place::new();
    let words = ["check", "--reads", "3000@5ms", CAPPED, "--quiet", "--json", "-o", "answer.html"];
    let document: Value = serde_json::from_str(&place.done(&words).stdout).unwrap();
    let check = &document["check"];
    assert_eq!((check["answer"].as_str(), check["limit_seen"].as_bool()), (Some("yes"), Some(true)));
    assert_eq!(check["asked"][0]["asked_per_s"], 3000.0);
    let first = check["lines"][0].as_str().unwrap();
    let page = fs::read_to_string(place.path("answer.html")).unwrap();
    assert!(page.contains("sustains 3,000 reads/s"), "the page's head has the answer");
    assert!(page.contains("Requested load") && page.contains("limit 5.00 ms"), "and what was asked");
    let report = place.done(&["report", "last"]).stdout;
    assert!(report.contains("once sent"), "{report}");
    let one_line = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains(first), "{report}");
}

/// What this machine carries is not the question: that it answers, and leaves nothing behind, is.
fn leaves_nothing_behind(demands: &[&str]) {
    let place = Place::on_disk();
    fs::create_dir_all(place.path("u01")).expect("a directory can be made");
    leaves_nothing_behind_in(&place, demands);
}

fn leaves_nothing_behind_in(place: &Place, demands: &[&str]) {
    let there = place.path("u01");
    let ended = place.run(&[&["check"], demands, &["--size", "64M", "--for", "40", "--quiet", "u01"]].concat());
    assert_eq!(fs::read_dir(&there).expect("it can be listed").count(), 0, "{ended}");
    if ended.stderr.contains("is too short") {
        return skip("the disk was too slow to make 64 MiB in a few seconds, so nothing was checked");
    }
    let said = &ended.stdout;
    assert!(said.starts_with("Yes.") || said.starts_with("No.") || said.starts_with("Not measurable"), "{ended}");
}

#[test]
fn a_file_is_made_loaded_and_removed() {
    leaves_nothing_behind(&["--reads", "20@p50=60s", "--writes", "5@p50=60s"]);
}

#[test]
fn data_of_the_engine_are_made_loaded_and_removed() {
    leaves_nothing_behind(&["--reads", "20@p50=60s", "--commits", "5@p50=60s"]);
}

/// Two signals while a check makes its data. What the program says when the second one ends it; absent if it had removed
/// everything before that came.
fn ended_at_once(place: &Place, words: &[&str]) -> Option<String> {
    let begun = fs::read_dir(place.path("u01")).expect("the directory can be listed").count();
    let mut command = place.plimsoll(&[&["check"], words, &["--size", "2G", "--for", "300", "u01"]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program can be started");
    let mut stderr = wait_for(&mut child, "making ");
    while fs::read_dir(place.path("u01")).expect("the directory can be listed").count() == begun {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // Both wait for it when it goes on, so that no time passes between them.
    signal(&child, "-STOP");
    signal(&child, "-INT");
    signal(&child, "-TERM");
    signal(&child, "-CONT");
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("it says text");
    let code = child.wait().expect("it ends").code();
    let is_left = fs::read_dir(place.path("u01")).expect("the directory can be listed").count() > begun;
    assert!(matches!(code, Some(130 | 143)), "{code:?} {said}");
    is_left.then_some(said)
}

#[test]
fn a_second_ctrl_c_says_what_is_left_behind_and_a_later_check_removes_it() {
    for kinds in [&["--reads", "20@p50=60s"][..], &["--reads", "20@p50=60s", "--commits", "5@p50=60s"]] {
        let place = Place::on_disk();
        fs::create_dir_all(place.path("u01")).unwrap();
        let said = (0..20).find_map(|_| ended_at_once(&place, kinds)).expect("of twenty tries one is quick enough");
        let left: Vec<_> = fs::read_dir(place.path("u01")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let [name] = left.as_slice() else { panic!("{left:?}") };
        let line = said.lines().find(|line| line.starts_with("left behind: ")).unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains(&*name.to_string_lossy()) && line.contains("the next check "), "{line}");
        assert!(line.contains("`rm ") || line.contains("`plimsoll slob drop --target dir:"), "{line}");
        leaves_nothing_behind_in(&place, kinds);
    }
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_is_made() {
    let place = Place::new();
    fs::write(place.path("file"), "not ours").unwrap();
    for (words, reason) in [
        (vec!["."], "no load given"),
        (vec!["--reads", "fast", "."], "is not a rate"),
        (vec!["--reads", "100@5", "."], "not a time such as `5ms`"),
        (vec!["--reads", "100@5ms", "nowhere"], "cannot look at `nowhere`"),
        (vec!["--commits", "10@5ms", "file"], "is not a directory"),
        (vec!["--commits", "10", "--writes", "100@5ms", "."], "`--writes` cannot have a time limit"),
        (vec!["--commits", "10", "--writes", "5000", "--reads", "10", "sim:"], "a database reads each block"),
        (vec!["--reads", "100@5ms", "--for", "10", "."], "`--for 10` is too short"),
        (vec!["--reads", "100@5ms", "--for", "4", "."], "`--for 4` is too short"),
        (vec!["--reads", "100@5ms", "-o", "file", "."], "is not overwritten"),
        (vec!["--reads", "100", "--writes", "5", "postgres://a@b/c"], "a server decides when it writes"),
        (vec!["--reads", "5@p99.9=5ms", "sim:clock=simulated"], "too few reads for their percentile"),
        (vec!["--reads", "100@p99.99=5ms", "."], "--for 22m"),
        (vec!["--reads", "100@5ms", "--commits", "99@p50=1s", "--size", "1G", "."], "the others belong to updates"),
        (vec!["--commits", "10", "--writes", "5000", "--reads", "10", "."], "a database reads each block"),
        (vec!["--reads", "3000@5ms", "mysql://u:secret@x/y"], "the address holds a password"),
        (vec!["--reads", "3000@5ms", "oracle://u:secret@x/y"], "the address holds a password"),
        (vec!["--reads", "3000@5ms", "foo:bar"], "foo"),
        (vec!["--reads", "3000@5ms"], "WHERE"),
        (vec!["--p99", "5ms", "."], "--reads 3000@5ms"),
        (vec!["--like", "nothing", "."], "no run"),
        (vec!["--commits", "10", "--prove", "."], "is not a private server"),
        (vec!["--reads", "10", "--prove", "pg:x"], "--prove: no commits are requested"),
        (vec!["--reads", "10", "--host-memory", "256M", "pg:x"], "use `--host-memory 338M`"),
    ] {
        let ended = place.run(&[&["check"], &words[..]].concat());
        let said = ended.stderr.clone();
        assert_eq!(ended.code, Some(2), "{words:?}: {said}");
        // Texts that are no rates say by themselves what to write.
        let says_what_to_do = said.contains("hint:") || said.contains("such as");
        assert!(said.contains(reason) && says_what_to_do, "{words:?}: {said}");
    }
    // What another check left here is its own.
    assert_eq!(place.run(&["check", "--commits", "10@p50=5ms", "--dry-run", "."]).code, Some(0));
    let left: Vec<_> = fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["file"]);
}

#[test]
fn a_dry_run_makes_nothing() {
    let place = Place::new();
    for demand in [["--reads", "100@5ms"], ["--commits", "10@p50=50ms"]] {
        let ended = place.run(&[&["check"], &demand[..], &["--size", "64M", "--dry-run", "."]].concat());
        let said = ended.stdout.clone();
        assert!(ended.code == Some(0) && said.contains("64 MiB") && said.contains("ask        1"), "{said}");
        assert_eq!(said.contains("5 after pauses of"), demand[0] == "--reads", "what else is sent: {said}");
    }
    let words = ["check", "--reads", "100@5ms", "--size", "64M", "--dry-run", "--no-experiments", "."];
    assert!(!place.done(&words).stdout.contains("pulses"));
    assert_eq!(fs::read_dir(place.path(".")).unwrap().count(), 0);
}

#[test]
fn limits_and_checks_are_test_cases_for_ci() {
    let place = Place::new();
    let sim = "sim:iops_cap=8000,clock=simulated";
    let load = ["io", "run", "--path", sim, "--pattern=randread", "--depth=4", "--duration=2", "--quiet"];
    place.done(&load);
    let nothing = place.run(&["report", "last", "--junit", "none.xml"]);
    assert_eq!(nothing.code, Some(2), "{nothing}");
    assert!(nothing.stderr.contains("no limit was requested") && !place.path("none.xml").exists(), "{nothing}");
    let missed = place.run(&["report", "last", "--junit", "limits.xml", "--limit", "p99=1us", "--limit", "p99=10s"]);
    assert_eq!(missed.code, Some(1), "{missed}");
    let text = fs::read_to_string(place.path("limits.xml")).unwrap();
    assert!(text.contains(r#"tests="2" failures="1" errors="0""#), "{text}");
    let check = place.run(&["check", "--reads", "9000@5ms", "--for", "60", "--quiet", sim]);
    assert_eq!(check.code, Some(1), "{check}");
    place.done(&["report", "last", "--junit", "limits.xml"]);
    let text = fs::read_to_string(place.path("limits.xml")).unwrap();
    assert!(text.contains(r#"<testsuite name="check (simulated)""#), "{text}");
    let first = check.stdout.lines().next().unwrap().to_owned();
    assert!(
        text.contains(r#"<failure message="No. "#) && text.contains("9,000 reads/s (p99 within 5.00 ms)"),
        "{text}"
    );
    assert!(text.contains(first.split(':').next().unwrap()), "{first}\n{text}");
    place.write("theirs.xml", "<project/>");
    let marked = place.done(&["report", "last", "--github", "--markdown", "summary.md"]).stdout;
    let levels: Vec<&str> = marked.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(levels.len() == 2 && levels.iter().all(|level| *level == "::error"), "{marked}");
    assert!(marked.starts_with("::error title=check (simulated)::No: 9,000 reads/s"), "{marked}");
    let summary = fs::read_to_string(place.path("summary.md")).unwrap();
    assert!(summary.contains("### check\n\n**No. ") || summary.contains("### check\n\n**No: "), "{summary}");
    assert!(summary.contains("- ALSO: ") && summary.lines().count() <= 21, "{summary}");
    assert!(!summary.contains("- :"), "{summary}");
    let theirs = place.run(&["report", "last", "--junit", "theirs.xml"]);
    assert!(theirs.code == Some(2) && theirs.stderr.contains("name another file: `--junit FILE`"), "{theirs}");
    assert_eq!(fs::read_to_string(place.path("theirs.xml")).unwrap(), "<project/>");
}
