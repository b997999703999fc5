//! Yes, no, or no verdict: what a run with limits opens with, and its exit code.

use crate::errors::refused;
use crate::place::{Answer, Place};
use crate::serve::Served;

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Simulated storage that serves each request in 200 us, 8 at a time, and on which time passes at once.
fn on_storage<'a>(what: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let storage = ["--path=sim:service=200us,servers=8,clock=simulated", "--pattern=randread", "--duration=2"];
    [&["io", what], &storage[..], &["--warmup=0", "--seed=7", "--quiet"], more].concat()
}

/// The result, which stands first.
fn first_line(answer: &Answer) -> &str {
    let first = answer.stdout.lines().next().unwrap_or_default();
    first.strip_prefix("RESULT    ").unwrap_or_else(|| panic!("no result first: {answer}"))
}

/// The answer: everything before the first empty line.
fn answer_of(answer: &Answer) -> String {
    answer.stdout.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A search on simulated storage that keeps its limit, one that does not, and a load that does not: what each run gave, its report,
/// lists, tables and the server give again.
#[test]
fn a_verdict_is_given_again_wherever_the_run_is_shown() {
    let place = Place::new();
    let search = ["sweep", "--rate=1000..100000"];
    let one = ["run", "--rate=60000"];
    for (what, limit, word, code) in
        [(search, "p99=5ms", "yes", 0), (search, "p99=100us", "no", 1), (one, "p99=5ms", "no", 1)]
    {
        let limit = format!("--limit={limit}");
        let ran = place.run(&on_storage(what[0], &[what[1], &limit]));
        assert_eq!(ran.code, Some(code), "{ran}");
        let said = first_line(&ran);
        assert!(said.to_lowercase().starts_with(&format!("{word}: ")), "{ran}");
        let again = place.done(&["report", "last"]);
        assert_eq!(answer_of(&again), answer_of(&ran));
        let json = place.done(&["report", "last", "--json"]).json();
        assert_eq!(json["verdict"]["answer"], word, "{json}");
        let result = json["answer"]["result"].as_str().unwrap();
        assert!(json["answer"]["simulated"] == true && result.to_lowercase().starts_with(&format!("{word}: ")));
        let measured = json["answer"]["limits"][0]["measured"].as_str().unwrap().to_owned();
        assert!(answer_of(&ran).contains(&measured) || ran.stdout.contains(&format!("{measured}, limit ")), "{ran}");

        let id = json["run"]["id"].as_str().unwrap();
        let listed = place.done(&["runs", "list", id, "--json"]).json();
        assert_eq!(listed[0]["answer"], word, "{listed}");
        let list = place.done(&["runs", "list", id]).stdout;
        assert!(list.contains(&format!("{word}: ")) && !list.contains("exceeded") && !list.contains("ms ?"), "{list}");
        let table = place.done(&["table", id, "--format", "csv"]).stdout;
        let answers: Vec<&str> = table.lines().skip(1).filter_map(|row| row.split(',').nth(1)).collect();
        assert!(table.starts_with("FILE,ANSWER,") && answers.contains(&word), "{table}");
        assert!(answers.iter().all(|answer| answer.is_empty() || *answer == word), "{table}");

        let served = Served::start(&place);
        let page = served.get(&format!("/runs/{id}")).body;
        assert!(page.contains(&format!("Simulated: {result}")), "{result}");
        let rows: serde_json::Value = serde_json::from_str(&served.get("/runs.json").body).unwrap();
        let row = rows["runs"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap();
        assert_eq!(row["answer"], word, "{row}");
        let words = list.lines().nth(1).unwrap().split("  ").find(|cell| cell.starts_with(word)).unwrap();
        assert!(served.get("/").body.contains(words.trim()), "{words}");
    }
}

#[test]
fn a_single_load_opens_with_the_answer_and_has_no_load_line() {
    let place = Place::new();
    let kept = place.done(&on_storage("run", &["--depth=8", "--target-latency=p99=5ms"]));
    assert!(first_line(&kept).starts_with("Yes: p99 of response time is "), "{kept}");
    assert!(kept.stdout.contains(", within 5.00 ms, at "), "{kept}");
    let missed = place.run(&on_storage("run", &["--depth=8", "--limit=p99=50us"]));
    assert_eq!(missed.code, Some(1), "{missed}");
    assert!(first_line(&missed).starts_with("No: p99 of response time is "), "{missed}");
    assert!(missed.stderr.contains("note: the limit was not kept: p99 of response time within 50.0 us"), "{missed}");
    for answer in [&kept, &missed, &place.done(&on_storage("run", &["--depth=8"]))] {
        assert!(!answer.stdout.contains("oad line"), "{answer}");
    }
}

#[test]
fn a_document_and_a_page_open_with_the_same_answer() {
    let place = Place::new();
    place.done(&on_storage("run", &["--depth=8"]));
    let json = place.done(&["report", "last", "--limit=p99=5ms", "--json"]).json();
    let opening = json["opening"].as_str().unwrap();
    assert!(opening.starts_with("Yes: p99 of response time is "), "{opening}");
    let result = json["answer"]["result"].as_str().unwrap().to_owned();
    assert_eq!(
        (&json["verdict"]["answer"], &json["verdict"]["limits"][0]["limit_ns"]),
        (&"yes".into(), &5_000_000.into())
    );
    assert!(json["verdict"]["limits"][0]["value_ns"].as_u64().is_some_and(|ns| ns < 5_000_000), "{json}");
    assert!(place.done(&["report", "last", "--json"]).json().get("verdict").is_none(), "nobody asked");
    place.done(&["report", "last", "--limit=p99=5ms", "-o", "page.html"]);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains(&format!("Simulated: {}</h1>", result.replace('&', "&amp;"))), "{result}");
}

#[test]
fn several_loads_open_with_the_answer_and_the_line_is_at_least_what_was_tried() {
    let place = Place::new();
    let kept = place.done(&on_storage("sweep", &["--depth=1,2,4", "--limit=p99=1s"]));
    assert!(first_line(&kept).starts_with("Yes: at least "), "{kept}");
    assert!(kept.stdout.contains("Load line: at least 4 outstanding (d4), "), "{kept}");
    let missed = place.run(&on_storage("sweep", &["--depth=1,2,4", "--limit=p99=1us"]));
    assert_eq!(missed.code, Some(1), "{missed}");
    assert!(first_line(&missed).starts_with("No: less than "), "{missed}");
}

#[test]
fn several_limits_are_all_to_be_kept() {
    let place = Place::new();
    let two = ["--depth=8", "--limit=p99=5ms", "--limit=read service:p50=1us"];
    let missed = place.run(&on_storage("run", &two));
    assert_eq!(missed.code, Some(1), "{missed}");
    assert!(first_line(&missed).starts_with("No: p50 of read service time is "), "{missed}");
    let reported = missed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(reported.contains("beyond 1.00 us; p99 of response time is "), "{missed}");
    place.done(&["report", "last", "--limit=p99=5ms", "--limit=read service:p50=1s"]);
}

#[test]
fn a_limit_that_judges_nothing_is_refused_before_the_load_with_the_names_that_are_there() {
    let place = Place::new();
    let reported = refused(&place, &on_storage("run", &["--limit=write:p99=10ms"]));
    assert!(
        reported.contains("error: the limit p99 of `write` within 10.0 ms judges nothing: this run has no waits for"),
        "{reported}"
    );
    assert!(
        reported.contains("hint: it has `response`, `service`, `read response`, `read service`, `db file seq"),
        "{reported}"
    );
    refused(&place, &on_storage("sweep", &["--rate=100..200", "--limit=write response:p99=10ms"]));
    refused(&place, &on_storage("run", &["--block-size=1M", "--limit=db file sequential read:p99=10ms", "--dry-run"]));
    place.done(&on_storage("run", &["--block-size=1M", "--limit=direct path read:p99=10ms", "--dry-run"]));
    let reported = refused(&place, &words("slob run --target sim: --limit foo:p99=1ms"));
    assert!(reported.contains("hint: it has `response`, `service`, `read response`"), "{reported}");
    assert!(!place.path("plimsoll-runs").exists(), "nothing was run");
}

#[test]
fn what_a_bare_limit_judges_on_the_engine_depends_on_what_it_does() {
    let place = Place::new();
    place.set_up();
    let reads = words("slob run RUN_TIME=1 --warmup=0s --dry-run UPDATE_PCT=0");
    let reported = place.run(&[&reads[..], &["--limit=log file sync:p99=5ms"]].concat());
    assert_eq!((reported.code, reported.stdout.as_str()), (Some(2), ""), "{reported}");
    assert!(reported.stderr.contains("`db file sequential read`, `read by other session`"), "{reported}");
    let updates = words("slob run RUN_TIME=1 --warmup=0s --dry-run UPDATE_PCT=20 --limit=update_response:p99=5ms");
    assert_eq!(place.run(&updates).code, Some(2), "that is no name");
    place.done(
        &[&words("slob run RUN_TIME=1 --dry-run UPDATE_PCT=20")[..], &["--limit=log file sync:p99=5ms"]].concat(),
    );
    place.done(&[&words("slob run RUN_TIME=1 --dry-run SCAN_PCT=20")[..], &["--limit=scan response:p99=5s"]].concat());
}

#[test]
fn what_did_not_happen_is_no_verdict_and_exit_code_two() {
    let place = Place::new();
    place.set_up();
    let reads = words("slob run -t 1 RUN_TIME=300 WORK_LOOP=20 --warmup=0s UPDATE_PCT=0 --quiet");
    let answer = place.run(&[&reads[..], &["--limit=free buffer waits:p99=5ms"]].concat());
    assert_eq!(answer.code, Some(2), "{answer}");
    assert!(first_line(&answer).starts_with("No verdict: no session waited for `free buffer waits`"), "{answer}");
    // A run that is kept has only what happened in it.
    let reported = place.run(&["report", "last", "--limit=free buffer waits:p99=5ms"]);
    assert_eq!((reported.code, reported.stdout.as_str()), (Some(2), ""), "{reported}");
    assert!(reported.stderr.contains("hint: it has `response`"), "{reported}");
    let whose = format!("judges nothing: run `{}` has no waits for `free buffer waits`", place.runs()[0]);
    assert!(reported.stderr.contains(&whose), "{reported}");
}

/// Storage that stalls once, while the second of three loads is measured.
#[test]
fn a_load_that_failed_below_one_that_passed_is_measured_again() {
    let place = Place::new();
    let storage = "io sweep --path=sim:service=200us,servers=8,stall=3s:300ms,clock=simulated --pattern=randread --duration=2 \
                   --warmup=0 --seed=7 --json";
    let labels = |more: &str| {
        let answer = place.done(&words(&format!("{storage} {more}")));
        let run = answer.run();
        let labels: Vec<String> =
            run["steps"].as_array().unwrap().iter().map(|step| step["label"].as_str().unwrap().to_owned()).collect();
        (labels, answer)
    };
    let (steps, answer) = labels("--rate=1000,2000,4000");
    assert_eq!(steps, ["r1000", "r2000", "r4000", "r2000_2", "r2000_3"], "{answer}");
    assert!(answer.stderr.contains("r2000 did not keep the limit although a larger load did"), "{answer}");
    let json = answer.json();
    assert_eq!(json["run"]["outcome"], "completed");
    assert!(json["run"]["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains("r2000_2")));
    assert!(json["opening"].as_str().unwrap().starts_with("Sustains at least 4,0"), "{}", json["opening"]);
    // Of a closed loop, only who asks for a limit waits for it.
    let (steps, _) = labels("--depth=1,2,4");
    assert_eq!(steps, ["d1", "d2", "d4"]);
    let (steps, answer) = labels("--depth=1,2,4 --limit=p99.995=5ms");
    assert_eq!(steps[3..], ["d2_2", "d2_3"], "{answer}");
    assert!(answer.json()["opening"].as_str().unwrap().starts_with("Yes: sustains "), "{answer}");
}

#[test]
fn a_latency_without_a_unit_is_refused_everywhere_alike() {
    let place = Place::with_kept_runs();
    place.write("matrix.toml", "[[step]]\nrun = \"io run --path sim:service=1ms --pattern randread --limit p99=5\"\n");
    let commands: [&[&str]; 7] = [
        &["io", "run", "--path=sim:service=1ms", "--pattern=randread", "--limit=p99=5"],
        &["slob", "run", "--target=sim:", "--target-latency=p99=5"],
        &["report", "last", "--limit=p99=5"],
        &["merge", "plimsoll-runs", "--limit=p99=5"],
        &["io", "calibrate", "--path=sim:service=1ms", "--max-latency=5"],
        &["check", "--reads=3000@5", "sim:service=1ms"],
        &["experiment", "run", "matrix.toml", "--dry-run"],
    ];
    for command in commands {
        let answer = place.run(command);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""), "{command:?}: {answer}");
        let says = ["unit", "not a time such as `5ms`"].iter().any(|words| answer.stderr.contains(words));
        assert!(says, "{command:?}: {answer}");
    }
}
