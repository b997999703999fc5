//! `plimsoll io calibrate`: what is planted in simulated storage is what it answers.

use std::process::Stdio;

use serde_json::Value;

use crate::manners::{signal, wait_for};
use crate::place::{Answer, Place};

fn calibrate(place: &Place, planted: &str, more: &[&str]) -> Answer {
    let path = format!("sim:{planted},clock=simulated");
    let words = ["io", "calibrate", "--quiet", "--path", &path, "--duration", "4"];
    place.run(&words.into_iter().chain(more.iter().copied()).collect::<Vec<_>>())
}

fn answers(place: &Place, planted: &str, more: &[&str]) -> Value {
    let more: Vec<&str> = more.iter().copied().chain(["--json"]).collect();
    let answer = calibrate(place, planted, &more);
    assert_eq!(answer.code, Some(0), "{answer}");
    let report = answer.json();
    assert!(report["run"]["steps"].is_array() && report["opening"].is_string(), "{answer}");
    report["calibration"].clone()
}

fn assert_near(answer: &Value, planted: f64, share: f64, what: &str) {
    let found = answer["value"].as_f64().unwrap_or(f64::NAN);
    assert!((found / planted - 1.0).abs() <= share, "{what}: {found} and not {planted}");
    assert_eq!(answer["runs"], 3, "{what}: {answer}");
}

#[test]
fn planted_caps_are_found_over_several_seeds() {
    let place = Place::new();
    for seed in 1..=3 {
        let caps = format!("iops_cap=5000,mbps_cap=200,spread=lognormal:0.4,seed={seed}");
        let found = answers(&place, &caps, &["--seed", &seed.to_string()]);
        assert_near(&found["max_iops"], 5_000.0, 0.02, &caps);
        assert_near(&found["max_mbps"], 200.0, 0.03, &caps);
    }
}

#[test]
fn a_planted_knee_is_found_over_several_seeds() {
    let place = Place::new();
    for seed in 1..=3 {
        // 20 servers of 4 ms each do 5,000 requests a second, and 20 MiB-reads more slowly by what the bytes take.
        let knee = format!("service=4ms,servers=20,spread=exponential,bandwidth=256M,seed={seed}");
        let found = answers(&place, &knee, &["--seed", &seed.to_string()]);
        assert_near(&found["max_iops"], 20.0 / (0.004 + 8_192.0 / f64::from(256 << 20)), 0.02, &knee);
        let bytes_per_s = 20.0 * f64::from(1 << 20) / (0.004 + 1.0 / 256.0);
        assert_near(&found["max_mbps"], bytes_per_s / 1e6, 0.03, &knee);
    }
}

#[test]
fn the_limit_of_latency_decides_where_it_comes_before_the_knee() {
    let place = Place::new();
    // Each read waits its turn at one server of 1 ms: as many outstanding as milliseconds are allowed, 1,000 reads a second
    // from the first on. Where service itself grows with the queue no more than the limit is used.
    let found = answers(&place, "service=1ms,servers=1", &["--max-latency", "3ms"]);
    assert_near(&found["max_iops"], 1_000.0, 0.02, "one server");
    assert_eq!(found["max_iops"]["outstanding"], 1);
    // Half of all reads take 1 ms, the others 30 ms: the mean keeps 20 ms, the 99th percentile does not.
    let tiers = "tiers=0.5:1ms+0.5:30ms,servers=64";
    assert_near(&answers(&place, tiers, &["--max-latency", "20ms"])["max_iops"], 64.0 / 0.015_5, 0.02, tiers);
    let refused = calibrate(&place, tiers, &["--max-latency", "p99=20ms"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stdout.starts_with("max_iops    none: no depth that was measured keeps the limit"), "{refused}");
}

#[test]
fn the_answer_comes_first_and_can_be_reported_again_from_the_run() {
    let place = Place::new();
    let answer = calibrate(&place, "iops_cap=5000,mbps_cap=200", &[]);
    assert_eq!(answer.code, Some(0), "{answer}");
    let head: Vec<&str> = answer.stdout.lines().take(3).collect();
    assert!(
        head[0].starts_with("max_iops    5,000 /s (5,000 to 5,000 in 3 runs): 8 KiB random reads, mean "),
        "{answer}"
    );
    assert!(head[1].starts_with("max_mbps    200 MB/s ("), "{answer}");
    assert!(head[2].starts_with("latency     ") && head[2].contains(" us mean at max_iops"), "{answer}");
    assert!(answer.stdout.contains("\nhow sure    3 repeats in turn, which lie within "), "{answer}");
    assert!(answer.stdout.contains("burst credit that lasts longer than"), "{answer}");
    let again = place.done(&["report", "last"]);
    assert_eq!(again.stdout, answer.stdout);
    let document = place.done(&["report", "last", "--json"]).json();
    assert!((document["calibration"]["max_iops"]["value"].as_f64().unwrap() - 5_000.0).abs() < 100.0);
    assert_eq!(document["run"]["load"]["kind"], "calibrate");
    let other = place.done(&["slob", "run", "RUN_TIME=1", "--target", "sim:clock=simulated", "--quiet"]);
    assert!(!other.stdout.contains("max_iops"), "{other}");
}

#[test]
fn data_that_a_cache_holds_are_reported() {
    let place = Place::new();
    let answer = calibrate(&place, "cache=64M,cache_service=9ms,service=9ms", &["--size", "64M"]);
    assert_eq!(answer.code, Some(0), "{answer}");
    assert!(answer.stdout.contains("warning: "), "{answer}");
}

#[test]
fn a_dry_run_says_what_would_be_tried() {
    let place = Place::new();
    let words = "io calibrate --path sim: --size 1G --dry-run --seed 7 --tag disk=p30 --max-latency p99=5ms";
    let answer = place.done(&words.split_whitespace().collect::<Vec<_>>());
    insta::assert_snapshot!(answer.reported());
    assert!(!place.path("plimsoll-runs").exists());
}

#[test]
fn what_cannot_be_calibrated_is_refused_with_advice() {
    let place = Place::new();
    place.write("small.dat", "too small");
    let mut reported = String::new();
    for words in [
        "",
        "--path nowhere.dat",
        "--path .",
        "--path sim: --max-latency fast",
        "--path sim: --max-latency 0",
        "--path sim: --max-latency=-5ms",
        "--path sim: --size 512K",
        "--path sim: --block-size 1000",
        "--path sim: --block-size 1M",
        "--path sim: --depth 4",
        "--path sim:nonsense=1",
    ] {
        let all: Vec<&str> = ["io", "calibrate"].into_iter().chain(words.split_whitespace()).collect();
        let answer = place.run(&all);
        assert_eq!(answer.code, Some(2), "{words}: {answer}");
        reported += &format!("> {words}\n{}\n", answer.stderr);
    }
    insta::assert_snapshot!(reported);
    assert!(!place.path("plimsoll-runs").exists());
}

#[test]
fn ctrl_c_keeps_what_was_found_and_says_how_little_that_is() {
    let place = Place::new();
    let words = ["io", "calibrate", "--path", "sim:", "--warmup", "0", "--duration", "1"];
    let mut child = place.plimsoll(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _rest = wait_for(&mut child, ", 8K_d4");
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let reported = String::from_utf8_lossy(&output.stdout);
    assert!(reported.starts_with("max_iops    ") && reported.contains("(measured once)"), "{reported}");
    assert!(reported.contains("a lower bound; the search was cut short"), "{reported}");
    assert!(reported.contains("max_mbps    unknown: nothing was measured"), "{reported}");
}

#[test]
fn a_real_file_is_laid_out_and_read() {
    let place = Place::on_disk();
    // A disk that others use may finish nothing at all in half a second: then there is no answer, and exit code 1.
    let calibrated = |duration: &str| {
        let words = "io calibrate --quiet --path data.dat --size 16M --warmup 0 --json --max-latency 1s --duration";
        let answer = place.run(&[&words.split_whitespace().collect::<Vec<_>>()[..], &[duration]].concat());
        // An encoded histogram may have these letters.
        let is_no_number = |line: &str| line.contains("NaN") && !line.contains("base64");
        assert!(matches!(answer.code, Some(0 | 1)) && !answer.stdout.lines().any(is_no_number), "{answer}");
        (answer.code == Some(0)).then(|| answer.json())
    };
    let answer = ["500ms", "3s", "10s"].into_iter().find_map(calibrated).expect("ten seconds finish something");
    assert!(answer["calibration"]["max_iops"]["value"].as_f64().unwrap() > 0.0, "{answer}");
    assert!(answer["calibration"]["max_mbps"]["value"].as_f64().unwrap() > 0.0, "{answer}");
    assert!(answer["run"]["steps"][0]["counters"]["physical_writes"].as_u64().unwrap() == 0);
}
