//! `plimsoll io map`: the line over reads and writes that is planted in simulated storage is the one that it finds.

use std::fs;
use std::process::Stdio;

use model::record::sample::windows::{Hour, QUICK, report};
use model::record::store::Store;
use serde_json::Value;

use crate::manners::{signal, wait_for};
use crate::place::{Answer, Place};

const PLANTED: &str = "sim:service=200us,servers=64,read_iops_cap=8000,write_iops_cap=3000,clock=simulated";
/// Wide enough that what queues at random before a cap is not the line.
const LIMIT: [&str; 8] = ["--limit", "p99=50ms", "--rate", "100..50k", "--duration", "5", "--warmup", "1"];

fn map(place: &Place, path: &str, more: &[&str]) -> Answer {
    place.run(&[&["io", "map", "--quiet", "--seed", "7", "--path", path], &LIMIT[..], more].concat())
}

fn mapped(place: &Place, path: &str) -> Value {
    let answer = map(place, path, &["--json"]);
    assert_eq!(answer.code, Some(0), "{answer}");
    answer.json()["map"].clone()
}

fn near(found: &Value, planted: f64) -> bool {
    found.as_f64().is_some_and(|found| (found / planted - 1.0).abs() < 0.05)
}

#[test]
fn planted_caps_are_the_line() {
    let place = Place::new();
    // What each mix carries of all requests, by its share of reads.
    type Line = fn(f64) -> f64;
    let planted: [(&str, Line); 3] = [
        ("read_iops_cap=8000,write_iops_cap=3000", |share| (8_000.0 / share).min(3_000.0 / (1.0 - share))),
        ("iops_cap=6000", |_| 6_000.0),
        ("mbps_cap=50,write_iops_cap=2000", |share| (50e6 / 8_192.0_f64).min(2_000.0 / (1.0 - share))),
    ];
    for (caps, line) in planted {
        let found = mapped(&place, &format!("sim:service=200us,servers=64,{caps},clock=simulated"));
        let mixes = found["mixes"].as_array().unwrap();
        assert!(mixes.len() >= 7 && found["points"].as_u64() <= Some(40), "{found}");
        assert_eq!(found["ended"], "found", "{found}");
        for mix in mixes {
            let share = mix["read_share"].as_f64().unwrap();
            assert!(near(&mix["line_per_s"], line(share)), "{caps}, {share}: {mix}");
        }
        assert_eq!((&found["anchors_missed"], &found["limit"]), (&0.into(), &"p99=50ms".into()), "{found}");
    }
}

#[test]
fn a_demand_is_inside_or_outside_and_the_map_can_be_reported_and_drawn() {
    let place = Place::new();
    let inside = map(&place, PLANTED, &["--reads", "7k", "--writes", "2500/s"]);
    assert_eq!(inside.code, Some(0), "{inside}");
    assert!(
        inside.stdout.starts_with("RESULT    Yes: 7,000 reads/s with 2,500 writes/s is inside of the line"),
        "{inside}"
    );
    assert!(
        inside.stdout.contains("The line within p99=50ms") && inside.stdout.contains(" writes/s alone"),
        "{inside}"
    );
    let writes_alone = map(&place, PLANTED, &["--reads", "0", "--writes", "2800"]);
    assert_eq!(writes_alone.code, Some(0), "{writes_alone}");
    let nothing = map(&place, PLANTED, &["--reads", "0", "--writes", "0/s"]);
    assert!(nothing.code == Some(2) && nothing.stderr.contains("both are 0"), "{nothing}");
    let outside = map(&place, PLANTED, &["--reads", "4000", "--writes", "3500"]);
    assert_eq!(outside.code, Some(1), "{outside}");
    let close = map(&place, PLANTED, &["--reads", "8000", "--writes", "1000"]);
    assert_eq!(close.code, Some(2), "{close}");
    assert!(
        close.stdout.starts_with("RESULT    No verdict: 8,000 reads/s with 1,000 writes/s may be on either side"),
        "{close}"
    );
    let again = place.done(&["report", "last", "--json"]).json();
    assert_eq!(again["map"]["place"]["kind"], "unknown", "{again}");
    place.run(&["report", "last", "--junit", "map.xml"]);
    let cases = fs::read_to_string(place.path("map.xml")).unwrap();
    assert!(cases.contains(r#"tests="1" failures="0" errors="1""#), "{cases}");
    let runs = place.runs();
    let compared = place.run(&["compare", &runs[0], &runs[2]]);
    assert!(compared.code == Some(2) && compared.stderr.contains("maps have no load in common"), "{compared}");
    let refused = place.run(&["report", "last", "--limit", "p99=1ms"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("is a map"), "{refused}");
    place.done(&["report", "last", "-o", "map.html"]);
    let page = fs::read_to_string(place.path("map.html")).unwrap();
    assert!(page.contains("Reads and writes within p99=50ms") && page.contains("writes/s (layer: client)"));
    place.done(&["report", "last", "-o", "map.png"]);
    assert!(fs::read(place.path("map.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(page.contains(">demand<") && !page.contains("Published for"), "{page}");
    // Its limits are those of one volume, which are drawn; of three times as much they are out of sight, and said.
    for (disk, words, is_drawn) in
        [("p30", "Published for Standard_D8s_v3 with P30", true), ("p30x3", "P30 x 3", false)]
    {
        let disk = format!("disk={disk}");
        map(&place, PLANTED, &["--tag", "vm=D8s_v3", "--tag", &disk, "--points", "9"]);
        place.done(&["report", "last", "-o", "tagged.html"]);
        let page = fs::read_to_string(place.path("tagged.html")).unwrap();
        assert!(page.contains(words) && !page.contains(">demand<"), "{page}");
        assert_eq!(page.contains(">published limits<"), is_drawn, "{page}");
    }
    let full = place.done(&["report", "last", "--full"]);
    assert!(!full.stdout.contains("did not reach"), "points beyond the line are meant: {full}");
}

#[test]
fn what_is_no_map_is_refused_before_any_load() {
    let place = Place::new();
    for (words, why, hint) in [
        (&["--read-pct", "95..50"][..], "not two shares", ""),
        (&["--within", "0%"], "not a share from 1% to 50%", ""),
        (&["--points", "4"], "4 is not in 5..=1000", ""),
        (&["--limit", "read response:p99=5ms"], "judges reads and writes", "--limit p99=5ms"),
        (&["--rate", "1000,2000"], "is not a range", "--rate 100..50k"),
        (&["--reads", "100"], "--writes", ""),
        (&["--limit", "p99.999999=5ms"], "", ""),
        (&["--reads", "100", "--writes", "900", "--read-pct", "50..95"], "outside of what is measured", "--read-pct"),
        (&["--reads", "100k", "--writes", "900", "--rate", "10..5k"], "outside of what is measured", "--rate"),
        (&["--duration", "0"], "a window of no length", "--duration"),
    ] {
        let words = [&["io", "map", "--path", "sim:clock=simulated"], words].concat();
        let refused = place.run(&words);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(why) && refused.stderr.contains(hint), "{refused}");
    }
    fs::write(place.path("data"), vec![0; 1 << 20]).unwrap();
    let path = place.path("data");
    let refused = place.run(&["io", "map", "--path", path.to_str().unwrap()]);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("hint: "),
        "a file of others is not written to: {refused}"
    );
    assert_eq!(fs::read(&path).unwrap(), vec![0; 1 << 20]);
    let plan = place.done(&["io", "map", "--path", PLANTED, "--dry-run"]);
    assert!(plan.stdout.contains("up to 40 points") && place.runs().is_empty(), "{plan}");
}

#[test]
fn what_no_mix_carries_or_nobody_could_measure_is_no_success() {
    let place = Place::new();
    let slow = "sim:service=20ms,servers=4,clock=simulated";
    let words = ["io", "map", "--quiet", "--path", slow, "--rate", "10..2k", "--duration", "20", "--warmup", "1"];
    for (more, code) in [(&[][..], 1), (&["--reads", "500", "--writes", "500"], 1), (&["--limit", "p99=1s"], 0)] {
        let answer = place.run(&[&words[..], more].concat());
        assert_eq!(answer.code, Some(code), "{answer}");
        assert!(answer.stdout.contains("p99=5ms") || answer.stdout.contains("within p99=1000ms"), "{answer}");
    }
    // Writes are one of a hundred requests, and each is slow: all requests together meet the limit.
    let rare = "sim:service=200us,servers=64,write_iops_cap=2,clock=simulated";
    let words = ["io", "map", "--quiet", "--path", rare, "--rate", "50..2k", "--read-pct", "99..100"];
    let answer = place.run(&[&words[..], &["--duration", "20", "--warmup", "1", "--json"]].concat());
    let mixes = answer.json()["map"]["mixes"].as_array().unwrap().clone();
    let rarest = mixes.iter().find(|mix| mix["read_share"] == 0.99).unwrap();
    assert!(rarest["line_per_s"].as_f64() < Some(240.0), "200 requests/s have two writes: {answer}");
}

#[test]
fn a_map_that_is_cut_short_shows_what_it_has() {
    let place = Place::new();
    let words = ["io", "map", "--path", "sim:iops_cap=500", "--duration", "1", "--warmup", "0", "--rate", "10..2k"];
    let mut command = place.plimsoll(&words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _stderr = wait_for(&mut child, "step 3");
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("The map was cut short."), "{said}");
}

#[test]
fn a_production_is_held_against_the_line_hour_by_hour_and_drawn_on_it() {
    let place = Place::new();
    let ask = |at: &str, more: &[&str]| place.run(&[&["fit", "--demand", "202611", "--at", at], more].concat());
    let of_map = |size: &str| {
        let answer = map(&place, PLANTED, &["--block-size", size, "--json"]);
        assert_eq!(answer.code, Some(0), "{answer}");
        answer.json()["run"]["id"].as_str().unwrap().to_owned()
    };
    let (same, smaller) = (of_map("8K"), of_map("4K"));
    let store = Store::new(place.path("plimsoll-runs"));
    let hour = |at, reads_per_s, writes_per_s| {
        store.save(&report(Hour { at, minutes: 60, reads_per_s, writes_per_s, within_ms: QUICK })).unwrap();
    };
    (0..40).for_each(|at| hour(at, 4_000 + 60 * at.unsigned_abs(), 1_000 + 30 * at.unsigned_abs()));
    // No level has the reads of one and the writes of the other.
    hour(40, 7_000, 500);
    hour(41, 500, 2_500);
    let on_map = |answer: &Answer| answer.json()["map"].clone();
    let all = ask("peak", &["--capacity", &same, "--json"]);
    assert_eq!(
        (all.code, &all.json()["basis"], &on_map(&all)["inside"]),
        (Some(0), &"map".into(), &42.into()),
        "{all}"
    );
    assert!(all.json()["latency"]["platform"].is_null(), "points of a map are in no order: {all}");
    // One of 43 hours is less than 5 % of the time.
    hour(42, 5_000, 4_500);
    let peak = ask("peak", &["--capacity", &same, "-o", "hours.html", "--text"]);
    assert_eq!(peak.code, Some(1), "{peak}");
    let sentence = peak.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let outside = "1 of 43 windows is outside of the map's line; the line is at 0.7 times the load of the worst.";
    assert!(sentence.contains(outside) && sentence.contains("Of 43 windows these 10 come first"), "{peak}");
    assert!(!sentence.contains("share of writes"), "the map has every mix: {peak}");
    assert!(fs::read_to_string(place.path("hours.html")).unwrap().contains("windows of the demand"));
    assert_eq!(ask("p95", &["--capacity", &same]).code, Some(0));
    // A larger request counts as several of the map's where it is to be inside, and as one where it is to be outside.
    let larger = ask("p95", &["--capacity", &smaller, "--json"]);
    assert_eq!((larger.code, &on_map(&larger)["outside"]), (Some(2), &1.into()), "{larger}");
    assert!(on_map(&larger)["inside"].as_u64().is_some_and(|inside| inside < 42), "{larger}");
    assert_eq!(on_map(&larger)["first"][1]["why_not_known"], "other_size", "{larger}");
    // An idle hour asks for nothing.
    hour(43, 0, 0);
    let idle = ask("p95", &["--capacity", &same, "--json"]);
    assert_eq!((idle.code, &on_map(&idle)["unknown"]), (Some(0), &0.into()), "{idle}");
    let other_limit = ask("p95", &["--capacity", &same, "--limit", "p99=60ms", "--json"]);
    assert!(on_map(&other_limit).is_null() && other_limit.stdout.contains("made by p99"), "{other_limit}");
    let sweep =
        ["io", "sweep", "--path", PLANTED, "--pattern", "randread", "--depth", "1,2", "--duration", "1", "--quiet"];
    place.run(&sweep);
    let refused = ask("peak", &["--capacity", "last", "-o", "no.png"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("only a map is drawn"), "{refused}");
    let ranked = ask("peak", &["--platforms", "-o", "no.png"]);
    assert!(ranked.code == Some(2) && ranked.stderr.contains("only a map is drawn"), "{ranked}");
    assert!(!place.path("no.png").exists());
}
