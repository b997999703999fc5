//! `plimsoll host`: what is refused, what is done, and what is found that was planted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::errors::refused;
use crate::manners::{long_enough, wait_for_intervals};
use crate::place::{Place, kinds};
use crate::skip::skip;

/// Every kind of work, with little memory.
const EVERYTHING: &str =
    "host run --work processor,memory,wake,timer --size 1M --cache 2M --warmup 0s --seed 3 --quiet";

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn sentences(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().map(|finding| finding["sentence"].as_str().expect("a sentence").to_owned()).collect()
}

#[test]
fn bad_words_are_refused_with_advice() {
    let place = Place::new();
    let lines = [
        "host run --work fast",
        "host run --work sort,sort",
        "host run --processors none",
        "host run --processors 1000-1000",
        "host run --duration 0",
        "host run --size 900T --work memory-copy",
        "host sweep --threads 4096",
        "beside --duration 1 -- host run -- io run --path sim: --pattern randread",
    ];
    for line in lines {
        let reported = refused(&place, &words(line));
        assert!(
            reported.contains("error:") && (reported.contains("hint:") || line.contains("--duration 0")),
            "{line}: {reported}"
        );
    }
    assert!(place.runs().is_empty());
}

#[test]
fn a_plan_says_what_a_survey_does_and_does_nothing() {
    let place = Place::new();
    let reported = place.done(&["host", "run", "--dry-run"]).stdout;
    for step in ["checksum_p1", "memory-latency_16KiB_p1", "wake_p1", "timer_p1"] {
        assert!(reported.contains(step), "{reported}");
    }
    assert!(place.runs().is_empty());
}

#[test]
fn every_kind_of_work_is_done_rightly_and_recorded() {
    let place = Place::new();
    let report = long_enough(
        |seconds| place.done(&[words(EVERYTHING), vec!["--json", "--duration", seconds]].concat()).json(),
        |report| kinds(&report["run"]).len() == 10,
    );
    let (step, kinds) = (&report["run"]["steps"][0], kinds(&report["run"]));
    assert_eq!(kinds.len(), 10, "{kinds:?}");
    assert_eq!(step["counters"]["errors"], 0);
    let host = &step["host"];
    assert!(host["loaded"]["own_ns"].as_u64().unwrap() > 0 && host["work"]["checksum"].as_u64().unwrap() > 0, "{host}");
    assert!(host["processors"].as_array().unwrap().len() == step["load"]["sessions"].as_u64().unwrap() as usize);
    let opening = report["opening"].as_str().unwrap();
    assert!(opening.contains("logical reads/s") && opening.contains("keys/s sorted"), "{opening}");
    let reported = place.done(&["report", "last", "--full"]).stdout;
    for heading in ["Work (slices", "Memory by how much", "Wake-ups and timers", "The loaded processors"] {
        assert!(reported.contains(heading), "{reported}");
    }
    assert!(!reported.contains("SLOBops"), "{reported}");
    place.done(&["report", "last", "-o", "page.html"]);
    assert!(fs::read_to_string(place.path("page.html")).unwrap().contains("Wake-ups and timers"));
}

#[test]
fn a_sweep_has_a_step_for_each_number_of_threads() {
    let place = Place::new();
    let line = "host sweep --work sort --threads 1 --duration 1s --warmup 0s --quiet --json";
    let report = place.done(&words(line)).json();
    assert_eq!(report["run"]["steps"][0]["label"], "sort_p1");
}

#[test]
fn work_on_processors_runs_beside_storage() {
    let place = Place::new();
    let line = "beside --rounds 1 --duration 1s --warmup 0s --json -- host run --work checksum --processors 1 -- \
                io run --path sim: --pattern randread --depth 2";
    let reported = place.run(&words(line));
    assert_eq!(reported.code, Some(0), "{}", reported.stderr);
    assert_eq!(place.runs().len(), 4, "each alone and both together");
}

/// A control group that limits processor time; removed when it is dropped.
struct Group(PathBuf);

impl Group {
    /// A fifth of a processor, or why there is none.
    fn of_a_fifth() -> Result<Self, String> {
        let group = |top: &str| PathBuf::from(format!("{top}/plimsoll-test-{}", std::process::id()));
        let is_one = Path::new("/sys/fs/cgroup/cpu/cpu.cfs_period_us").exists()
            || Path::new("/sys/fs/cgroup/cpu/cgroup.procs").exists();
        let path = group(if is_one { "/sys/fs/cgroup/cpu" } else { "/sys/fs/cgroup" });
        fs::create_dir(&path).map_err(|error| format!("`{}` cannot be made: {error}", path.display()))?;
        let group = Self(path);
        let set = |file: &str, text: &str| {
            fs::write(group.0.join(file), text).map_err(|error| format!("`{file}` refuses {text}: {error}"))
        };
        if is_one {
            set("cpu.cfs_period_us", "100000")?;
            set("cpu.cfs_quota_us", "20000")?;
        } else {
            set("cpu.max", "20000 100000")?;
        }
        Ok(group)
    }

    /// The command, to be started inside the group.
    fn inside(&self, command: &Command) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        shell.arg(command.get_program()).args(command.get_args());
        if let Some(directory) = command.get_current_dir() {
            shell.current_dir(directory);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        // A test that fails already says why; one that does not must leave nothing behind.
        assert!(std::thread::panicking(), "`{}` could not be removed", self.0.display());
    }
}

#[test]
fn a_limit_of_a_control_group_is_found_and_named() {
    let group = match Group::of_a_fifth() {
        Ok(group) => group,
        Err(why) => return skip(why),
    };
    let place = Place::new();
    let line = "host run --work checksum --processors 1 --duration 3s --warmup 0s --quiet --json";
    let output = group.inside(&place.plimsoll(&words(line))).output().expect("it can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let host = &report["run"]["steps"][0]["host"];
    let limit = host["quota_processors"].as_f64().expect("a limit");
    assert!((limit - 0.2).abs() <= 0.02 * 0.2, "{limit}");
    let reported = sentences(&report).join("\n");
    let used = host["loaded"]["own_ns"].as_f64().unwrap() / host["elapsed_ns"].as_f64().unwrap();
    let throttled = host["throttled"]["throttled_periods"].as_u64().unwrap_or(0);
    // Where others leave it less than its limit, that is not what holds it back.
    if throttled < 10 {
        return skip(format_args!("others left only {used:.2} of a processor, so the limit of 0.20 did not bind"));
    }
    assert!(reported.contains("A control group limits this process to 0.20 processors"), "{reported}");
    assert!(used < 0.2 * 1.25, "{used}");
}

/// Ended when it is dropped.
struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn another_process_on_the_same_processor_is_named_as_competition() {
    let status = fs::read_to_string("/proc/self/status").expect("the kernel says what is allowed");
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list").trim();
    let first = allowed.split([',', '-']).next().expect("a processor");
    let (its, ours) = (Place::new(), Place::new());
    let on = format!("--processors {first}-{first} --warmup 0s --quiet");
    let hog = format!("host run --work sort --duration 300s {on}");
    let started = its.plimsoll(&words(&hog)).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _hog = Hog(started.expect("the program can be started"));
    wait_for_intervals(&its, 1);
    let report = ours.done(&words(&format!("host run --work checksum --duration 3s --json {on}"))).json();
    let reported = sentences(&report).join("\n");
    assert!(reported.contains("Other processes of this machine took"), "{reported}");
    assert!(report["opening"].as_str().unwrap().contains("other processes took"), "{}", report["opening"]);
}
