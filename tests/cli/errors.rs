//! What is refused, in which words. Nothing may be written by any of it.

use crate::place::Place;

/// Asserts that it is refused with exit code 2 and nothing on standard output, and that nothing was made.
pub fn refused(place: &Place, arguments: &[&str]) -> String {
    let answer = place.run(arguments);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""), "{arguments:?}\n{answer}");
    assert!(!place.path("plimsoll-runs").exists() && !place.path("new").exists(), "{arguments:?} made something");
    assert!(!answer.stderr.contains("tiger"), "a password was shown");
    format!("$ plimsoll {}\n{}", arguments.join(" "), answer.stderr)
}

#[test]
fn bad_words_are_refused_with_advice() {
    let place = Place::new();
    place.write("slob.conf", "UPDATE_PCT=20\nWORKUNIT=64\n");
    place.write("shell.conf", "SCALE=$(cat size)\n");
    let reported: Vec<String> = [
        "slob run -c slob.conf",
        "slob run -c shell.conf",
        "slob run -c missing.conf",
        "slob run UPDATE_PCT=101 --target sim:",
        "slob run UPDATE_PCT=80 SCAN_PCT=30 --target sim:",
        "slob run update_pct=10",
        "slob run IOPS",
        "slob run -s 4 8 --target sim:",
        "slob run 4 8 --target sim:",
        "slob run --cache lots",
        "slob run --tag vm",
        "slob run --tag vm=a --tag vm=b --target sim:",
        "slob run --limit 5ms",
        "slob run --rate 0",
        "slob run RUN_TIME=30 --duration 20 --target sim:",
        "slob run --duration 0.5 --target sim:",
        "slob run --warmup soon",
        "slob run -s 4096 -t 2 --target sim:",
        "slob run --target /u01/data",
        "slob run --target mysql://scott:tiger@db/x",
        "slob run --target postgres://scott:tiger@db/x",
        "slob run --target postgres://scott:ti/ger@db/x",
        "slob run --target sim:colour=blue",
        "slob run EXTERNAL_SCRIPT=missing.sh --target sim:",
        "slob sweep --threads 1,1",
        "slob sweep --vary SCALE=1G,2G",
        "slob setup --block-size 5K --target dir:new",
        "slob setup --redo-files 1 --target dir:new",
        "slob setup SCALE=4K --target dir:new",
        "slob verify --target sim:",
        "slob run --runtime 30 --scale 1G",
        "slob run dir:/u01/data",
        "io run --bs 4k --rw randread",
        "io run --patern randread",
        "list",
    ]
    .iter()
    .map(|words| refused(&place, &words.split(' ').collect::<Vec<_>>()))
    .collect();
    insta::assert_snapshot!(reported.join("\n"));
}

#[test]
fn a_negative_value_is_a_bad_value_and_no_unknown_flag() {
    let place = Place::new();
    for (words, reported) in [
        ("--rate -1", "error: --rate: `-1` is not a rate"),
        ("--warmup -1s", "error: --warmup: `-1s` is not a duration"),
        ("--cache -1", "error: --cache: `-1` is not a size"),
        ("--seed -1", "invalid value '-1' for '--seed <N>'"),
    ] {
        let arguments: Vec<&str> = ["slob", "run"].into_iter().chain(words.split(' ')).collect();
        let answer = refused(&place, &arguments);
        assert!(answer.contains(reported), "{answer}");
    }
}

#[test]
fn an_absurdly_long_value_is_not_repeated_whole() {
    let place = Place::new();
    let answer = refused(&place, &["slob", "run", "--target", "sim:", &format!("UPDATE_PCT={}", "9".repeat(100_000))]);
    let reported = answer.lines().nth(1).unwrap();
    assert!(
        reported.starts_with("error: ") && reported.contains("is not a whole number") && reported.len() < 300,
        "{reported}"
    );
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let place = Place::new();
    for words in [
        "slob sweep",
        "slob run --arrival fixed",
        "slob run --dry-run --json",
        "slob run -s 0",
        "slob run -t 4097",
        "slob run --seed -1",
        "slob run --no-such-flag",
        "table",
        "runs rm",
        "slob flush",
    ] {
        refused(&place, &words.split(' ').collect::<Vec<_>>());
    }
}

#[test]
fn what_is_not_there_is_named() {
    let place = Place::new();
    let reported: Vec<String> = [
        "slob run",
        "slob sweep --threads 1,2",
        "slob verify",
        "slob info",
        "slob drop --dry-run",
        "slob run --target dir:nowhere/at/all",
        "report",
        "report 2026",
        "report ./nothing",
        "table last",
        "runs show last",
        "runs rm last",
    ]
    .iter()
    .map(|words| refused(&place, &words.split(' ').collect::<Vec<_>>()))
    .collect();
    insta::assert_snapshot!(reported.join("\n"));
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir(place.path("home")).unwrap();
    place.write("home/thesis.tex", "years of work");
    let reported: Vec<String> = ["slob setup --replace", "slob drop --yes", "slob run"]
        .iter()
        .map(|words| {
            let words: Vec<&str> = words.split(' ').chain(["--target", "dir:home"]).collect();
            refused(&place, &words)
        })
        .collect();
    insta::assert_snapshot!(reported.join("\n"));
    assert_eq!(std::fs::read_dir(place.path("home")).unwrap().count(), 1);
}

#[test]
fn what_the_data_set_does_not_have_is_refused_before_anything_starts() {
    let place = Place::new();
    place.set_up();
    let reported: Vec<String> = [
        "slob run -s 3",
        "slob run SCALE=1G",
        "slob run WORK_UNIT=2001",
        "slob run DO_HOTSPOT=TRUE",
        "slob sweep --vary WORK_UNIT=4,4000",
        "slob run --cache 64K",
        "slob setup -s 4 SCALE=2000",
    ]
    .iter()
    .map(|words| refused(&place, &words.split(' ').collect::<Vec<_>>()))
    .collect();
    insta::assert_snapshot!(reported.join("\n"));
}
