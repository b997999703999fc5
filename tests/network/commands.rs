//! The same by the commands as a person gives them: `plimsoll net serve` in one namespace, `net run` in another.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::skip::skip;
use crate::spaces::{Between, SERVER, Spaces};
use crate::{ATTEMPTS, IS_DISTURBED, MAX_WAITING, beside, each_time};

const TOKEN: &str = "a token of tests, long enough";

/// A server in its namespace; ended when it is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program(spaces: &Spaces, end: &str, words: &[&str]) -> Command {
    // `ip netns exec` would hide control groups behind a new /sys.
    let mut command = Command::new("nsenter");
    let network = format!("--net=/run/netns/{}", spaces.name(end));
    command.args([&network, env!("CARGO_BIN_EXE_plimsoll"), "net"]).args(words);
    command.env("PLIMSOLL_NET_TOKEN", TOKEN).stdin(Stdio::null());
    command
}

fn serve(spaces: &Spaces) -> Serving {
    let mut command = program(spaces, "s", &["serve", "--listen", SERVER]);
    Serving(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// The report of bulk data to the server, from its first sentence on.
fn bulk(spaces: &Spaces, duration: &str) -> serde_json::Value {
    let runs = tempfile::tempdir().unwrap();
    let words =
        ["run", "--to", SERVER, "--pattern", "bulk", "--warmup", "1", "--duration", duration, "--json", "--runs"];
    let begun = Instant::now();
    loop {
        let mut command = program(spaces, "c", &words);
        let said = command.arg(runs.path()).output().unwrap();
        if said.status.success() {
            return serde_json::from_slice(&said.stdout).unwrap();
        }
        // The server may not listen yet.
        let why = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(begun.elapsed() < Duration::from_secs(30), "{why}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn says(report: &serde_json::Value, words: &str) -> Result<(), String> {
    let opening = report["opening"].as_str().unwrap();
    let ends = &report["run"]["steps"][0]["network"];
    if opening.contains(words) {
        Ok(())
    } else {
        Err(format!("{opening}\nfindings {}\nends {ends}", report["findings"]))
    }
}

/// Whether the threads of these ends found processors.
fn are_calm(report: &serde_json::Value, sides: &[&str]) -> bool {
    let ends = report["run"]["steps"][0]["network"].as_array().unwrap();
    ends.iter().filter(|end| sides.contains(&end["side"].as_str().unwrap())).all(|end| {
        let waited_ns = end["busiest_thread"]["waiting_ns"].as_f64().unwrap_or(0.0);
        waited_ns < MAX_WAITING * end["elapsed_ns"].as_f64().unwrap()
    })
}

#[test]
fn the_report_of_a_run_opens_with_the_shaper_that_was_planted() {
    each_time(Between::Router, |spaces| {
        spaces.shape("200mbit", "32kb");
        let _serving = serve(spaces);
        // Put on again where others had the processors, as elsewhere here.
        let mut reports = (0..ATTEMPTS).map(|_| beside(|| bulk(spaces, "4")));
        let report = reports.find(|report| are_calm(report, &["client", "server"]));
        IS_DISTURBED.set(report.is_none());
        says(&report.unwrap_or_else(|| beside(|| bulk(spaces, "4"))), "shaper or a slower link")
    });
}

/// A control group of version 1 that gives its processes a part of a processor; removed when it is dropped.
struct Quota(PathBuf);

impl Quota {
    /// Or why there is none.
    fn of(percent: u32) -> Result<Self, String> {
        let group = Path::new("/sys/fs/cgroup/cpu").join(format!("plimsoll-test-{}", std::process::id()));
        fs::create_dir(&group).map_err(|error| format!("no group that limits processors (version 1): {error}"))?;
        let group = Self(group);
        let put = |name: &str, value: u32| fs::write(group.0.join(name), value.to_string());
        put("cpu.cfs_period_us", 100_000)
            .and_then(|()| put("cpu.cfs_quota_us", percent * 1_000))
            .map_err(|error| format!("no limit on processors: {error}"))?;
        Ok(group)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // A process that has just ended leaves its group a moment later.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_limit_on_the_servers_processors_is_named_as_one() {
    each_time(Between::Router, |spaces| {
        let quota = match Quota::of(5) {
            Ok(quota) => quota,
            Err(why) => {
                skip(why);
                return Ok(());
            }
        };
        let serving = serve(spaces);
        fs::write(quota.0.join("cgroup.procs"), serving.0.id().to_string()).unwrap();
        // Where others have the processors, the server may not get to use all that it may.
        let mut reports = (0..ATTEMPTS).map(|_| beside(|| bulk(spaces, "4"))).map(|report| {
            // The server's threads wait for its quota.
            IS_DISTURBED.set(!are_calm(&report, &["client"]));
            says(&report, "the processor of the server, which receives: its control group's limit")
        });
        let mut said = reports.next().expect("at least one attempt");
        while said.is_err()
            && let Some(again) = reports.next()
        {
            said = again;
        }
        drop(serving);
        said
    });
}
