//! `plimsoll slob map`: the line over reads and updates of a database is found, and says what it counts.

use std::fs;

use serde_json::Value;

use crate::place::{Answer, Place};

/// Eight blocks at a time, each for 200 µs: 40,000 operations per second of one block, whatever their mix.
const TARGET: &str = "sim:service=200us,servers=8,clock=simulated";
const CARRIED: f64 = 40_000.0;
const LOAD: [&str; 10] =
    ["--limit", "p99=5ms", "--rate", "10..100k", "--duration", "3", "--warmup", "1", "WORK_UNIT=1", "-s1"];

fn map(place: &Place, more: &[&str]) -> Answer {
    place.run(&[&["slob", "map", "--quiet", "--seed", "7", "--target", TARGET], &LOAD[..], more].concat())
}

fn line_of(mix: &Value) -> f64 {
    mix["line_per_s"].as_f64().unwrap_or_default()
}

#[test]
fn what_a_database_carries_is_the_line_and_can_be_reported_and_drawn() {
    let place = Place::new();
    let answer = map(&place, &["--demand-reads", "20k", "--demand-updates", "10k/s"]);
    assert_eq!(answer.code, Some(0), "{answer}");
    let first = "RESULT    Yes: 20,000 reads/s with 10,000 updates/s is inside of the line";
    assert!(answer.stdout.starts_with(first), "{answer}");
    let told = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [" updates/s alone within p99=5ms with 32 sessions", " p. updates ", "all sessions were busy"] {
        assert!(told.contains(words), "{words}: {answer}");
    }
    assert!(!told.contains("writes/s") && !told.contains("IOPS"), "{told}");
    let found = place.done(&["report", "last", "--json"]).json();
    let mixes = found["map"]["mixes"].as_array().unwrap();
    assert!(mixes.len() >= 7 && found["map"]["ended"] == "found", "{found}");
    for mix in mixes {
        assert!((line_of(mix) / CARRIED - 1.0).abs() < 0.05, "{mix}");
        let alone = mix["read_share"] == 1.0;
        assert_eq!(mix["write_ns"].is_null(), alone, "both kinds are judged: {mix}");
    }
    let of = |name: &str| &found["map"][name];
    assert_eq!((of("of"), of("sessions"), of("block_bytes")), (&"operations".into(), &32.into(), &Value::Null));
    place.done(&["report", "last", "-o", "map.html"]);
    let page = fs::read_to_string(place.path("map.html")).unwrap();
    assert!(page.contains("Reads and updates within p99=5ms") && page.contains("updates/s (layer: client)"), "{page}");
    let id = &place.runs()[0];
    let fit = place.run(&["fit", "--demand", id, "--capacity", id]);
    assert!(fit.code == Some(2) && fit.stderr.contains("a map of a database's operations"), "{fit}");
    let outside = map(&place, &["--demand-reads", "20k", "--demand-updates", "30k"]);
    assert_eq!(outside.code, Some(1), "{outside}");
}

#[test]
fn sessions_bound_the_line() {
    let place = Place::new();
    let answer = map(&place, &["-t", "4", "--json"]);
    let found = answer.json();
    let mixes = found["map"]["mixes"].as_array().unwrap();
    assert!(!mixes.is_empty());
    for mix in mixes {
        assert!((line_of(mix) / (CARRIED / 2.0) - 1.0).abs() < 0.06, "four of eight places are used: {mix}");
    }
    assert_eq!(found["map"]["sessions"], 4);
}

#[test]
fn the_engine_is_mapped_and_its_data_stay_sound() {
    let place = Place::new();
    place.done(&["slob", "setup", "-s1", "SCALE=4M", "--quiet"]);
    let words = ["slob", "map", "--quiet", "--duration", "1", "--warmup", "0", "--points", "6", "WORK_UNIT=2", "-t4"];
    let answer = place.run(&[&words[..], &["--rate", "10..2k", "--limit", "p99=10s", "--json"]].concat());
    let found = answer.json();
    let kinds = |step: &Value| {
        let kinds = step["operations"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap().to_owned());
        kinds.collect::<Vec<_>>()
    };
    let steps = found["run"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 6, "{answer}");
    assert!(steps.iter().any(|step| kinds(step) == ["update"]) && steps.iter().any(|step| kinds(step) == ["read"]));
    let sound = place.done(&["slob", "verify", "--quiet"]);
    assert!(sound.stdout.contains("sound"), "{sound}");
}

#[test]
fn what_a_map_does_not_vary_is_refused_and_what_a_file_says_of_it_is_not_used() {
    let place = Place::new();
    for (words, why, hint) in [
        (&["UPDATE_PCT=20"][..], "a map tries shares of its own", "--read-pct"),
        (&["SCAN_PCT=20"], "`SCAN_PCT` (command line): a map is of reads and updates", "SCAN_PCT=0"),
        (&["WORK_LOOP=9"], "measured for the same time", "WORK_LOOP=0"),
        (&["THINK_TM_FREQUENCY=1"], "without pauses", "THINK_TM_FREQUENCY=0"),
        (&["--limit", "update:p99=5ms"], "judges reads and updates", "--limit p99=5ms"),
        (&["--demand-reads", "0", "--demand-updates", "0"], "both are 0", "--demand-reads 12k --demand-updates 0"),
        (&["--demand-reads", "20"], "--demand-updates", ""),
        (&["--commit", "slob"], "is for Oracle", ""),
    ] {
        let refused = place.run(&[&["slob", "map", "--target", TARGET], words].concat());
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(why) && refused.stderr.contains(hint), "{refused}");
    }
    let conf = "UPDATE_PCT=25\nRUN_TIME=300\nTHREADS_PER_SCHEMA=1\nWORK_UNIT=8\nSCAN_PCT=0\n";
    fs::write(place.path("slob.conf"), conf).unwrap();
    let plan = place.done(&["slob", "map", "-c", "slob.conf", "--target", TARGET, "--dry-run"]);
    for words in ["sessions   32", "up to 40 points, each 2.00 s of warm-up and 10.0 s measured", "WORK_UNIT"] {
        assert!(plan.stdout.contains(words), "{words}: {plan}");
    }
    let note = "`RUN_TIME`, `THREADS_PER_SCHEMA`, `UPDATE_PCT` of the parameter file are not used";
    assert!(plan.stderr.contains(note), "{plan}");
    assert!(!plan.stderr.contains("SLOB itself accepts 30 s"), "it is the map's own: {plan}");
    assert!(!plan.stdout.contains("UPDATE_PCT") && place.runs().is_empty(), "{plan}");
}
