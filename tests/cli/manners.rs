//! Streams, colours, pipes, signals and exit codes. Load lands on the simulated target: no disk is needed.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::place::{Answer, Place};
use crate::servers::wait_until;

/// A run of a second on a simulated device and a simulated clock.
const SIMULATED: [&str; 6] =
    ["slob", "run", "RUN_TIME=1", "--warmup=0s", "--target", "sim:service=200us,servers=4,clock=simulated"];

fn simulated<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SIMULATED.into_iter().chain(more.iter().copied()).collect()
}

/// Waits for a line on standard error that holds `text`.
pub(crate) fn wait_for(child: &mut Child, text: &str) -> BufReader<std::process::ChildStderr> {
    let mut stderr = BufReader::new(child.stderr.take().expect("standard error is piped"));
    let mut line = String::new();
    while stderr.read_line(&mut line).expect("standard error can be read") > 0 {
        if line.contains(text) {
            return stderr;
        }
        line.clear();
    }
    panic!("`{text}` never came");
}

/// The lines of the intervals that the last run has recorded by now.
fn intervals(place: &Place) -> Vec<String> {
    let text = place
        .runs()
        .pop()
        .and_then(|id| std::fs::read_to_string(place.path("plimsoll-runs").join(id).join("intervals.jsonl")).ok());
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Waits until the last run has recorded so many intervals: a line for each would be too many for a log.
pub(crate) fn wait_for_intervals(place: &Place, count: usize) {
    wait_until(&format!("{count} intervals are recorded"), || intervals(place).len() >= count);
}

/// Waits until the last run has recorded some of this counter within its window.
pub(crate) fn wait_for_counted(place: &Place, counter: &str) {
    let has_some = |line: &String| {
        // The last line may not be whole yet.
        let interval: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        interval["warmup"] == false && interval["counters"][counter].as_u64() > Some(0)
    };
    wait_until(&format!("{counter} are counted"), || intervals(place).iter().any(has_some));
}

/// The first run that is enough, of one second, of five and of twenty; else the last of them, for the test to judge. In one second a busy
/// machine may finish nothing of a kind.
pub(crate) fn long_enough<T>(mut run: impl FnMut(&str) -> T, is_enough: impl Fn(&T) -> bool) -> T {
    let shorter = ["1", "5"].into_iter().map(&mut run).find(|done| is_enough(done));
    shorter.unwrap_or_else(|| run("20"))
}

pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the signal cannot be sent");
}

/// Ctrl-C, which reaches all processes that a terminal started, while a private server is made in `directory`.
pub(crate) fn ctrl_c_leaves_nothing(place: &Place, directory: &str, address: &str) {
    use std::os::unix::process::CommandExt;
    let check = ["check", "--reads", "30@p50=60s", "--commits", "30@p50=60s", "--size", "64M", address];
    let set_up = ["slob", "setup", "-s", "1", "SCALE=64M", "--target", address];
    for words in [&check[..], &set_up] {
        let mut command = place.plimsoll(words);
        let command = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program can be started");
        let entries = || std::fs::read_dir(place.path(directory)).map_or(0, Iterator::count);
        while entries() == 0 {
            assert!(child.try_wait().expect("it can be asked").is_none(), "it ended before anything was made");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let sent = Command::new("kill").args(["-INT", "--", &format!("-{}", child.id())]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal cannot be sent");
        let mut said = String::new();
        child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it says text");
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{words:?} {said}");
        assert_eq!(entries(), 0, "{words:?} left something behind: {said}");
    }
}

#[test]
fn data_go_to_standard_output_and_everything_else_to_standard_error() {
    let place = Place::new();
    let answer = place.done(&simulated(&["-s", "2", "--json"]));
    assert_eq!(answer.run()["outcome"], "completed");
    assert!(answer.stderr.contains("step 1 of 1, s2_t1: no warm-up, 1.00 s measured"), "{answer}");
    assert!(answer.stderr.contains(" ops/s "), "{answer}");
    let quiet = place.done(&simulated(&["--json", "--quiet"]));
    assert!(!quiet.stderr.contains("step 1"), "{quiet}");
}

#[test]
fn a_log_has_a_line_each_ten_seconds_and_begins_with_how_long_it_takes() {
    let place = Place::new();
    let words = ["slob", "run", "--warmup=0s", "--target", "sim:service=10ms,clock=simulated", "RUN_TIME=35"];
    let answer = place.done(&words);
    assert_eq!(answer.stderr.lines().filter(|line| line.contains(" ops/s ")).count(), 4, "{answer}");
    assert!(!answer.stderr.contains("this run takes"), "{answer}");
    let words = ["slob", "run", "--target", "sim:service=10ms"];
    let mut child = place.plimsoll(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let rest = wait_for(&mut child, "this run takes 5m10s");
    signal(&child, "-INT");
    rest.lines().for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn the_json_of_a_run_is_that_of_its_report_and_follows_the_published_schema() {
    let place = Place::new();
    let report = place.done(&simulated(&["--json", "--tag", "vm=d8s", "--seed", "42"])).json();
    assert_eq!(report, place.done(&["report", "last", "--json"]).json());
    let schema = include_str!("../../docs/schema/report.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let errors: Vec<_> = schema.iter_errors(&report).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert!(report["opening"].as_str().is_some_and(|opening| opening.ends_with('.')), "{}", report["opening"]);
    assert!(report["findings"].as_array().is_some_and(|findings| !findings.is_empty()));
    let printed = &report["run"];
    let id = place.runs().remove(0);
    let path = place.path("plimsoll-runs").join(id).join("run.json");
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(printed, &kept);
    assert_eq!((&printed["seed"], &printed["name"]), (&42.into(), &"d8s_s1_t1_wu64".into()));
    assert_eq!(printed["command"][0], "plimsoll");
}

#[test]
fn a_limit_that_is_not_kept_is_exit_code_one() {
    let place = Place::new();
    let missed = place.run(&simulated(&["--limit", "p99=50us"]));
    assert_eq!(missed.code, Some(1), "{missed}");
    assert!(missed.stderr.contains("the limit was not kept: p99 of `db file sequential read` within 50.0 us"));
    place.done(&simulated(&["--limit", "p99=900ms"]));
    place.done(&simulated(&[]));
}

#[test]
fn a_sweep_finds_the_planted_knee() {
    let place = Place::new();
    let words = "slob sweep --threads 1,4,16 RUN_TIME=1 --warmup 0s --target sim:service=10ms,servers=4,clock=simulated --limit p99=30ms";
    let answer = place.done(&words.split(' ').collect::<Vec<_>>());
    assert!(answer.stdout.starts_with("RESULT    Yes: "), "{answer}");
    assert!(answer.stdout.lines().next().is_some_and(|line| line.contains("(4 sessions: p99 ")), "{answer}");
    assert!(answer.stderr.contains("step 3 of 3, s1_t16"), "{answer}");
}

#[test]
fn a_dry_run_says_everything_and_does_nothing() {
    let place = Place::new();
    let words = "slob sweep -s 2 --threads 1,8 --vary WORK_UNIT=4,64 UPDATE_PCT=0 SCALE=1G --seed 7 --lanes 2 --target sim: \
                 --rate 500/s --arrival fixed --tag vm=d8s --dry-run";
    let answer = place.done(&words.split_whitespace().collect::<Vec<_>>());
    insta::assert_snapshot!(answer.reported());
    assert!(!place.path("plimsoll-runs").exists());
}

#[test]
fn duration_and_lists_are_written_alike_in_all_commands() {
    let place = Place::new();
    place.write("slob.conf", "RUN_TIME=300\n");
    let planned = |words: &str| {
        let more = ["--dry-run", "--seed", "7", "--target", "sim:"];
        place.done(&words.split(' ').chain(more).collect::<Vec<_>>()).stdout
    };
    for words in
        ["slob run --duration 20", "slob run -c slob.conf --duration 20s", "slob run RUN_TIME=20 --duration 20"]
    {
        assert!(planned(words).contains("RUN_TIME=20\n"), "{words}");
    }
    assert!(planned("slob run --rate 2.5k/s").contains("2500 operations/s"));
    let listed = planned("slob sweep --threads 1,2,4,8 --vary WORK_UNIT=4,8,16");
    assert_eq!(planned("slob sweep --threads 1..8 --vary WORK_UNIT=4,8,…,16"), listed);
    assert_eq!(planned("slob sweep --threads 1,2,...,8 --vary WORK_UNIT=4..16"), listed);
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_says_so() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let place = Place::new();
        let words = ["slob", "run", "RUN_TIME=60", "--warmup=0s", "--target", "sim:"];
        let mut command = place.plimsoll_that_hangs_up(&words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = wait_for(&mut child, " ops/s ");
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        assert_eq!(output.status.code(), Some(code), "{rest}");
        assert!(rest.contains("note: the run was cut short; what was measured is kept"), "{rest}");
        // On a busy machine another doubt may come first.
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("RESULT    not reliable ("), "{rest}");
        let full = place.run(&["report", "last", "--full"]).stdout;
        assert!(full.contains("The run was ended early"), "{full}");
        let run = place.done(&["runs", "show", "last", "--json"]).json();
        assert_eq!((&run["outcome"], &run["steps"][0]["outcome"]), (&"interrupted".into(), &"interrupted".into()));
        assert!(run["steps"][0]["counters"]["operations"].as_u64().unwrap() > 0);
    }
}

#[test]
fn under_nohup_a_terminal_may_close() {
    let place = Place::new();
    let mut child = Command::new("nohup")
        .arg(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["slob", "run", "RUN_TIME=3", "--warmup=0s", "--target", "sim:"])
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = wait_for(&mut child, " ops/s ");
    signal(&child, "-HUP");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_anything() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("slow.sh", "#!/bin/sh\necho heard $1\nexec sleep 300\n");
    std::fs::set_permissions(place.path("slow.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let words = simulated(&["EXTERNAL_SCRIPT=slow.sh"]);
    let mut child = place.plimsoll(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = std::time::Instant::now();
    let mut stderr = wait_for(&mut child, "heard pre");
    signal(&child, "-INT");
    let mut line = String::new();
    while !line.contains("once more to abort at once") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "the first signal was not answered");
    }
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < std::time::Duration::from_secs(200), "it waited for the script");
}

#[test]
fn a_run_that_was_killed_still_has_its_data() {
    let place = Place::new();
    let words = ["slob", "run", "RUN_TIME=60", "--warmup=0s", "--target", "sim:"];
    let mut child = place.plimsoll(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    drop(wait_for(&mut child, " ops/s "));
    signal(&child, "-KILL");
    child.wait().unwrap();
    let report = place.done(&["report"]).stdout;
    assert!(
        report.starts_with("RESULT    no step is complete: the run has not finished, or its process was killed"),
        "{report}"
    );
    assert!(report.contains("its figures are the sum of its intervals"), "{report}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::with_kept_runs();
    for words in ["runs show format-1-sweep --json", "report format-1-sweep --full", "table format-1-sweep", "--help"] {
        let arguments: Vec<&str> = words.split(' ').collect();
        let mut child = place.plimsoll(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let answer = Answer::from(child.wait_with_output().unwrap());
        assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""), "{words}\n{answer}");
    }
}

#[test]
fn colours_are_for_terminals_and_for_those_who_force_them() {
    let place = Place::new();
    let colours = |set: &[(&str, &str)]| {
        let output = place.plimsoll(&["report"]).envs(set.iter().copied()).output().unwrap();
        String::from_utf8(output.stderr).unwrap().contains('\u{1b}')
    };
    assert!(!colours(&[]));
    assert!(colours(&[("CLICOLOR_FORCE", "1")]));
    assert!(!colours(&[("NO_COLOR", "1")]));
}

#[test]
fn the_doctor_answers_in_words_and_in_json() {
    let place = Place::new();
    let reported = place.run(&["doctor"]);
    assert!(matches!(reported.code, Some(0 | 1)), "{reported}");
    assert!(reported.stdout.lines().any(|line| line.starts_with("good ")), "{reported}");
    let document = place.run(&["doctor", "--json"]).json();
    assert!(!document["checks"].as_array().unwrap().is_empty());
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0, "the doctor left something behind");
}

#[test]
fn the_script_is_called_before_after_and_at_the_end() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let script = |text: &str, mode| {
        place.write("notify.sh", text);
        std::fs::set_permissions(place.path("notify.sh"), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let words = simulated(&["EXTERNAL_SCRIPT=notify.sh", "--json"]);

    script("#!/bin/sh\necho \"$1\" >> calls\necho \"heard $1\"\n", 0o755);
    let answer = place.done(&words);
    assert_eq!(std::fs::read_to_string(place.path("calls")).unwrap(), "pre\npost\nend\n");
    assert_eq!(answer.run()["outcome"], "completed", "what the script prints is no data");
    assert!(answer.stderr.contains("heard post"), "{answer}");

    script("#!/bin/sh\n[ \"$1\" = pre ]\n", 0o755);
    let failed_later = place.done(&words).run();
    let notes = failed_later["notes"].to_string();
    assert!(notes.contains("post failed") && notes.contains("end failed"), "{notes}");

    let kept = place.runs().len();
    script("#!/bin/sh\nexit 3\n", 0o755);
    let refused = place.run(&words);
    assert_eq!((refused.code, place.runs().len()), (Some(2), kept), "{refused}");
    assert!(refused.stderr.contains("pre failed: exit status: 3"), "{refused}");

    script("", 0o644);
    let refused = place.run(&words);
    assert!(refused.stderr.contains("(command line) is not executable"), "{refused}");
}
