//! `plimsoll experiment`: an evening in a file.

use std::path::Path;
use std::process::Stdio;

use crate::manners::signal;
use crate::place::{Answer, Place};
use crate::servers::wait_until;

/// Storage in simulated time, and in time that passes.
const SIMULATED: &str = "sim:service=200us,servers=8,clock=simulated";
const REAL: &str = "sim:service=20ms,servers=1";

fn run(place: &Place, options: &str) -> Answer {
    place.run(&["experiment", "run", "e.toml"].into_iter().chain(options.split_whitespace()).collect::<Vec<_>>())
}

/// The runs of the experiment `e`: step, round and outcome, in the order in which they began.
fn kept(place: &Place) -> Vec<String> {
    let list = place.done(&["runs", "list", "--runs", "plimsoll-runs/e", "--json"]).json();
    let of_run = |run: &serde_json::Value| {
        let tag = |name: &str| run["tags"][name].as_str().unwrap_or("-").to_owned();
        let outcome = run["outcome"].as_str().unwrap_or("failed");
        format!("{} {} {outcome}", tag("experiment.step"), tag("experiment.round"))
    };
    list.as_array().expect("a list").iter().map(of_run).collect()
}

#[test]
fn the_series_on_flashgrid_comes_to_what_its_author_concluded() {
    let place = Place::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/flashgrid.toml");
    let text = std::fs::read_to_string(example).expect("the example is there");
    // Debug builds simulate slowly.
    let short =
        text.replace("RUN_TIME=5 --warmup 1s", "RUN_TIME=1 --warmup 0").replace("--duration 1 ", "--duration 0.2 ");
    assert_ne!(short, text);
    place.write("flashgrid.toml", &short);

    let plan = place.done(&["experiment", "plan", "flashgrid.toml"]);
    assert!(plan.stdout.contains("in all     11 steps, 11 runs"), "{plan}");
    assert!(
        plan.stdout.contains(
            "SLOB cache=none data=100G disk=p30x2 nodes=2 redundancy=normal vm=D8s_v3: 4.00 s of simulated time"
        ),
        "{plan}"
    );
    assert!(!place.path("plimsoll-runs").exists());

    let answer = place.run(&["experiment", "run", "flashgrid.toml", "--json"]);
    assert_eq!(answer.code, Some(0), "{answer}");
    let document = answer.json();
    let cases = document["cases"].as_array().expect("cases");
    assert_eq!((cases.len(), document["not_measured"].as_array().map(Vec::len)), (11, Some(0)));
    let carries = |vm: &str, disk: &str, cache: &str, data: &str| {
        let tags = |case: &&serde_json::Value| {
            let tag = |name: &str, value: &str| case["tags"][name] == value;
            tag("vm", vm) && tag("disk", disk) && tag("cache", cache) && tag("data", data)
        };
        let case = cases.iter().find(tags).unwrap_or_else(|| panic!("no {vm} {disk} {cache} {data}"));
        (case["carries_per_s"].as_f64().expect("a rate"), case["expected"]["share"].as_f64().expect("an expectation"))
    };
    let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.05;
    // The disks' own limit, the machine's past its cache, and the cache's above both.
    for (vm, disk, cache, data, per_s, share) in [
        ("D8s_v3", "p30x2", "none", "100G", 10_000.0, 1.0),
        ("E32s_v3", "p30x16", "none", "100G", 80_000.0, 1.0),
        ("M64s", "p30x32", "read", "2T", 80_000.0, 1.0),
        ("M64s", "p30x32", "read", "65G", 160_000.0, 2.0),
        ("M128s", "p30x32", "read", "2T", 160_000.0, 1.0),
        ("M128s", "p60x8", "none", "256G", 80_000.0, 0.625),
    ] {
        let found = carries(vm, disk, cache, data);
        assert!(near(found.0, per_s) && near(found.1, share), "{vm} {disk} {cache} {data}: {found:?}");
    }
    let summary: Vec<&str> =
        document["summary"].as_array().expect("five").iter().filter_map(|it| it.as_str()).collect();
    assert_eq!(summary.len(), 5);
    assert!(
        summary[0].contains("11 combinations of cache, data, disk and vm")
            && summary[0].contains("`SLOB` and `CALIBRATE_IO`"),
        "{summary:#?}"
    );
    assert!(summary[1].contains(". `SLOB cache=none data=100G disk=p30x2 vm="), "{summary:#?}");
    assert!(
        summary[2].contains("largest single difference is disk: ")
            && summary[2].contains("`p30x16` sustains 8.0 times what `p30x2` does"),
        "{summary:#?}"
    );
    assert!(
        summary[3].contains("from the host's cache")
            && summary[3].contains("furthest below is `SLOB cache=none data=256G disk=p60x8 vm=M128s` with"),
        "{summary:#?}"
    );
    assert!(summary[4].contains("more than once"), "{summary:#?}");

    // The page and the text have the table with what was expected; a second run has nothing to do.
    let page = std::fs::read_to_string(place.path("plimsoll-runs/flashgrid/experiment.html")).expect("the page");
    assert!(page.contains("SLOB on FlashGrid") && page.contains("EXPECTED") && page.contains("load-line-0"));
    let again = place.done(&["experiment", "run", "flashgrid.toml"]);
    assert!(again.stdout.contains("What each combination sustains") && again.stdout.contains("| RAC_IOPS"), "{again}");
    let report = place.done(&["experiment", "report", "plimsoll-runs/flashgrid", "--json"]);
    assert_eq!(report.json()["runs"], 11);
}

#[test]
fn a_file_that_is_wrong_is_an_error_with_its_line_and_nothing_is_written() {
    let place = Place::new();
    let step = |run: &str| format!("\n[[step]]\nrun = \"{run}\"\n");
    let slob = format!("slob run 4 RUN_TIME=1 --target {SIMULATED}");
    for (text, says) in [
        (format!("bugdet = 3{}", step(&slob)), "e.toml, line 1: unknown field `bugdet`"),
        (step("slob run {threads}"), "e.toml, line 2: `{threads}`"),
        (
            step("check --reads 3 /u01"),
            "e.toml, line 2: step 1, `check --reads 3 /u01`: `check --reads 3 /u01` is not a load",
        ),
        (step(&format!("{slob} --runs x")), "`--runs` stands in its command"),
        (step("slob run 4 --treads 3"), "that is step 1 of `e.toml`, line 2: `slob run 4 --treads 3`"),
        (
            step("io run --path none.dat --pattern randread"),
            "e.toml, line 2: step 1, `io run --path none.dat --pattern randread`: ",
        ),
    ] {
        place.write("e.toml", &text);
        for command in [&["experiment", "run", "e.toml"][..], &["experiment", "plan", "e.toml"]] {
            let answer = place.run(command);
            assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""), "{text}\n{answer}");
            assert!(answer.stderr.contains(says) && answer.stderr.contains("hint: "), "{says}\n{answer}");
            assert!(!place.path("plimsoll-runs").exists(), "{answer}");
        }
    }
    let missing = place.run(&["experiment", "run", "none.toml"]);
    assert!(missing.code == Some(2) && missing.stderr.contains("cannot read `none.toml`"), "{missing}");
}

#[test]
fn what_could_not_be_done_is_passed_over_and_the_same_command_goes_on() {
    let place = Place::new();
    let load = format!("slob run {{threads}} RUN_TIME=5 --target {SIMULATED}");
    let text = format!(
        "after = \"echo the end\"\n[each]\nrepeats = 2\n[[step]]\nrun = \"{load}\"\nmatrix = {{ threads = [1, 4] }}\n\
         [[step]]\nname = \"gated\"\nrun = \"io run --path {SIMULATED} --pattern randread --duration 5\"\n\
         before = \"test -e gate\"\nafter = \"basename $PLIMSOLL_RUN >>followed\"\nrepeats = 1\n"
    );
    place.write("e.toml", &text);
    let first = run(&place, "");
    assert_eq!(first.code, Some(2), "{first}");
    assert!(
        first.stderr.contains("step 3, ") && first.stderr.contains("script `test -e gate` ended with exit status: 1"),
        "{first}"
    );
    assert!(first.stderr.contains("1 run could not be made") && first.stderr.contains("the end"), "{first}");
    // Every other round goes backwards, and the third step has one.
    let four = ["1 1 completed", "2 1 completed", "2 2 completed", "1 2 completed"];
    assert_eq!(kept(&place), four);
    assert!(first.stdout.contains("Not measured") && first.stdout.contains("Repeats"), "{first}");

    place.write("gate", "");
    let second = run(&place, "--json");
    assert_eq!(second.code, Some(0), "{second}");
    assert!(second.stderr.contains("4 of 5 runs are there already"), "{second}");
    assert_eq!(kept(&place), [&four[..], &["3 1 completed"]].concat());
    let document = second.json();
    assert_eq!((&document["runs"], document["not_measured"].as_array().map(Vec::len)), (&5.into(), Some(0)));
    let followed = std::fs::read_to_string(place.path("followed")).expect("the script after it has run");
    assert_eq!(followed.trim(), document["cases"][2]["runs"][0]["run"].as_str().expect("an id"));

    // A changed file is another experiment; a budget is none.
    place.write("e.toml", &format!("budget = \"1h\"\n{text}"));
    assert_eq!(run(&place, "--quiet").code, Some(0));
    place.write("e.toml", &text.replace("[1, 4]", "[1, 8]"));
    let changed = run(&place, "");
    assert_eq!((changed.code, changed.stdout.as_str()), (Some(2), ""), "{changed}");
    assert!(changed.stderr.contains("asks for something else") && changed.stderr.contains("`--fresh`"), "{changed}");
    let fresh = run(&place, "--fresh --quiet --json");
    assert_eq!((fresh.code, &fresh.json()["runs"]), (Some(0), &5.into()), "{fresh}");
    let folders = std::fs::read_dir(place.path("plimsoll-runs")).expect("the folder").count();
    assert_eq!((folders, kept(&place).len()), (2, 5), "what was measured before is kept");
}

#[test]
fn a_script_behind_a_run_or_at_the_end_that_fails_is_said_and_nothing_is_measured_again() {
    let place = Place::new();
    let load = format!("[[step]]\nrun = \"slob run 4 RUN_TIME=5 --target {SIMULATED}\"\n");
    place.write("e.toml", &format!("{load}before = \"echo ready\"\nafter = \"test -e missing\"\n"));
    let first = run(&place, "");
    assert_eq!((first.code, kept(&place).len()), (Some(2), 1), "{first}");
    let run_path = format!(
        "PLIMSOLL_RUN=./plimsoll-runs/e/{}",
        std::fs::read_dir(place.path("plimsoll-runs/e"))
            .expect("the folder")
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .find(|name| name.contains("slob"))
            .expect("a run")
    );
    assert!(first.stderr.contains("is not measured again") && first.stderr.contains(&run_path), "{run_path}\n{first}");
    assert!(first.stderr.contains("all runs are made"), "{first}");
    assert_eq!((run(&place, "").code, kept(&place).len()), (Some(0), 1));
    place.write("end.toml", &format!("after = \"exit 3\"\n{load}"));
    let ended = place.run(&["experiment", "run", "end.toml"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("the script at the end failed"), "{ended}");
}

#[test]
fn a_budget_leaves_out_what_would_end_later_and_an_interruption_keeps_what_was_done() {
    let place = Place::new();
    let step = |name: &str, run: &str| format!("[[step]]\nname = \"{name}\"\nrun = \"{run}\"\n");
    let text = [
        "budget = \"10m\"\n".to_owned(),
        step("first", &format!("slob run 4 RUN_TIME=5 --target {SIMULATED}")),
        step("second", &format!("slob run 1 RUN_TIME=15 --warmup 0 --target {REAL}")),
        step("third", &format!("slob run 1 RUN_TIME=3600 --target {REAL}")),
    ];
    place.write("e.toml", &text.concat());
    let mut command = place.plimsoll(&["experiment", "run", "e.toml"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program can be started");
    let runs = || {
        std::fs::read_dir(place.path("plimsoll-runs/e")).map_or(0, |runs| {
            runs.filter(|run| run.as_ref().is_ok_and(|run| run.path().join("run.json").is_file())).count()
        })
    };
    wait_until("the second run has begun", || runs() >= 2);
    signal(&child, "-INT");
    let answer = Answer::from(child.wait_with_output().expect("it ends"));
    assert_eq!(answer.code, Some(130), "{answer}");
    assert!(answer.stderr.contains("`plimsoll experiment run e.toml` goes on"), "{answer}");
    assert!(answer.stdout.contains("2 of 3 requested runs are missing"), "{answer}");

    let rest = run(&place, "");
    assert_eq!(rest.code, Some(0), "{rest}");
    assert!(rest.stderr.contains("1 run is left out, since the next one would end after the budget"), "{rest}");
    assert!(rest.stdout.contains("left out: this or one before it"), "{rest}");
    let kept = kept(&place);
    assert_eq!(kept.iter().filter(|run| run.ends_with("completed")).count(), 2, "{kept:?}");
    assert!(kept.iter().any(|run| run == "2 1 completed") && !kept.iter().any(|run| run.starts_with('3')), "{kept:?}");
}
