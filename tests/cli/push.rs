//! Runs that are sent to monitoring while they go on: Debian's Prometheus has them, and where nobody listens the run goes on.

use crate::place::Place;
use crate::serve::Prometheus;
use crate::skip::skip;

const LOAD: [&str; 12] = [
    "io",
    "run",
    "--pattern",
    "randread",
    "--path",
    "sim:service=200us,servers=4",
    "--size",
    "1G",
    "--duration",
    "2",
    "--warmup",
    "0",
];

#[test]
fn prometheus_receives_a_run_and_its_results() {
    if !Prometheus::is_installed() {
        return skip("prometheus is not installed");
    }
    let place = Place::new();
    let prometheus = Prometheus::start(&place, "", &["--web.enable-remote-write-receiver"]);
    let url = format!("http://{}/api/v1/write", prometheus.address());
    let ran = place.run(&[&LOAD[..], &["--remote-write", &url, "--json", "--tag", "vm=d8s"]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    let document = ran.json();
    let of_step = &document["run"]["steps"][0];
    let counted = of_step["counters"]["operations"].as_f64().unwrap();
    // A series of a run ends with it, so that it is looked at over time.
    let sent = prometheus.ask("max_over_time(plimsoll_operations_total[10m])");
    assert!((sent - counted).abs() < 0.5, "{sent} of {counted}");
    let name = prometheus.ask("count(last_over_time(plimsoll_run_info{tag_vm=%22d8s%22,job=%22plimsoll%22}[10m]))");
    assert!((name - 1.0).abs() < f64::EPSILON);
    let rate = prometheus.ask("last_over_time(plimsoll_step_operations_per_s[10m])");
    let window_s = of_step["window"]["duration_ns"].as_f64().unwrap() / 1e9;
    assert!((rate - counted / window_s).abs() < 0.01 * rate, "{rate} of {counted} in {window_s} s");
    let p99 = prometheus.ask("last_over_time(plimsoll_step_response_seconds{quantile=%220.99%22}[10m])");
    assert!(p99 >= 0.000_1, "{p99} s");
}

#[test]
fn where_nobody_listens_the_run_goes_on() {
    let place = Place::new();
    // Nothing listens at the first port.
    let ran = place.run(&[&LOAD[..], &["--otlp", "http://127.0.0.1:1", "--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stderr.contains("/v1/metrics: ") && ran.stderr.contains("the run goes on"), "{ran}");
    assert!(ran.stderr.contains("the results of 1 step are not there"), "{ran}");
    let notes = ran.json()["run"]["notes"].to_string();
    assert!(notes.contains("requests failed, the last one too"), "what was not delivered is kept: {notes}");
}

#[test]
fn addresses_are_judged_before_any_load_and_secrets_are_not_kept() {
    let place = Place::new();
    let file = place.path("data");
    let on_file = ["io", "run", "--path", file.to_str().unwrap(), "--size", "1M", "--pattern", "randread"];
    for (flags, why) in [
        (&["--otlp", "localhost:4318"][..], "--otlp: `localhost:4318` is not an address"),
        (&["--remote-write", "http://me:hush@host/write"], "may be secret"),
        (&["--remote-write", "https://host/write?token=hush"], "may be secret"),
    ] {
        for more in [&[][..], &["--dry-run"]] {
            let refused = place.run(&[&on_file[..], flags, more].concat());
            assert_eq!(refused.code, Some(2), "{refused}");
            assert!(refused.stderr.contains(why) && refused.stderr.contains("hint: "), "{refused}");
            assert!(!refused.stderr.contains("hush"), "{refused}");
        }
    }
    assert!(!place.path("plimsoll-runs").exists() && !file.exists(), "nothing was begun");
    let planned = place
        .plimsoll(&[&LOAD[..], &["--dry-run", "--otlp"]].concat())
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&planned.stdout);
    assert!(text.contains("send to    http://collector:4318/v1/metrics"), "{text}");
    let silent = place
        .plimsoll(&[&LOAD[..], &["--dry-run"]].concat())
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&silent.stdout).contains("collector"), "a variable alone sends nothing");
}
