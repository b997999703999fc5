//! Parts of a fleet on this machine: what four of them do beside one process, how far apart they begin, and what their merge takes.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Bench, Failure, Goal, figure, in_turn, median, number, ratios, run_of, text, verdict};

/// Known to our parts, and worth nothing beyond loopback.
const TOKEN: &str = "figures on loopback";
const PARTS: usize = 4;
/// Sessions of all parts together.
const SESSIONS: &str = "16";
/// A large fleet, and seconds of its step.
const MANY: &str = "256";
const HOUR: &str = "3600";
/// How often a process is asked for its memory.
const LOOK_EVERY: Duration = Duration::from_millis(10);

fn operations_per_s(run: &Value) -> Result<f64, Failure> {
    let step = &run["steps"][0];
    Ok(number(&step["counters"]["operations"])? * 1e9 / number(&step["window"]["duration_ns"])?)
}

impl Bench {
    /// Four parts on one PostgreSQL, against one process with the same sessions.
    pub(crate) fn fleet_postgres(&self) -> Result<(), Failure> {
        let server = self.server("pg");
        server.slob(&["setup", "-s", SESSIONS, "SCALE=64M", "SCAN_TABLE_SZ=0", "--db-cache", "128M"])?;
        let address = format!("postgres://plimsoll@/plimsoll?host={}", server.directory().join("run").display());
        let run_time = format!("RUN_TIME={}", self.seconds);
        let load =
            ["slob", "run", "-s", SESSIONS, "-t", "1", "UPDATE_PCT=0", &run_time, "--warmup", "2s", "--no-trace"];
        let load = [load.as_slice(), &["--quiet", "--seed", "7", "--target", &address]].concat();
        let (mut pairs, mut spreads) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let (parts, whole) = in_turn(
                round,
                || self.parts(&load, round),
                || operations_per_s(&run_of(&self.plimsoll_text(&[load.as_slice(), &["--json"]].concat())?)?),
            )?;
            pairs.push((parts.0, whole));
            spreads.push(parts.1);
        }
        ratios(
            &format!("PostgreSQL, {SESSIONS} sessions: operations/s of {PARTS} parts, merged, against one process"),
            &pairs,
            0,
            Goal::AtLeast(0.95),
        );
        let spread = median(spreads.into_iter());
        figure(&format!(
            "| begin of the load in {PARTS} parts with a meeting point: from the first to the last, ms | {spread:.2} | - | - | at most 5 | {} |",
            verdict(spread <= 5.0)
        ));
        server.drop()
    }

    /// Operations a second of the merged run, and from the first part's start to the last one's, in milliseconds.
    fn parts(&self, load: &[&str], round: usize) -> Result<(f64, f64), Failure> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let runs = self.runs.join(format!("parts-{round}"));
        let part = |number: usize| {
            let mut command = Command::new(&self.program);
            command.args(load).args(["--part", &format!("{number}/{PARTS}"), "--meet", &format!("127.0.0.1:{port}")]);
            command.arg("--runs").arg(&runs).env("PLIMSOLL_MEET_TOKEN", TOKEN);
            command.stdout(Stdio::null()).spawn()
        };
        let parts: Vec<Child> = (0..PARTS).map(part).collect::<Result<_, _>>()?;
        for mut part in parts {
            if !part.wait()?.success() {
                return Err("a part failed".into());
            }
        }
        let merged = text(Command::new(&self.program).arg("merge").arg(&runs).arg("--json"))?;
        let merged = run_of(&merged)?;
        let starts = merged["parts"].as_array().ok_or("no parts")?.iter().map(|part| number(&part["start_error_ns"]));
        let starts: Vec<f64> = starts.collect::<Result<_, _>>()?;
        let (first, last) = starts.iter().fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(*at), high.max(*at)));
        Ok((operations_per_s(&merged)?, (last - first) / 1e6))
    }

    /// An hour of 256 parts becomes one run.
    pub(crate) fn fleet_merge(&self) -> Result<(), Failure> {
        let path = self.raw.display().to_string();
        let runs = self.runs.display().to_string();
        let load = ["io", "run", "--path", &path, "--size", "64M", "--pattern", "randrw", "--depth", "8"];
        let load =
            [load.as_slice(), &["--duration", "10s", "--warmup", "1s", "--json", "--quiet", "--runs", &runs]].concat();
        let run = run_of(&self.plimsoll_text(&load)?)?;
        let run = self.runs.join(run["id"].as_str().ok_or("the run has no id")?);
        let fleet = self.runs.with_file_name("fleet");
        let maker = std::env::current_exe()?.with_file_name("fleet");
        text(Command::new(maker).arg(run).arg(&fleet).args([MANY, HOUR]))?;
        let begun = Instant::now();
        let mut merge = Command::new(&self.program);
        merge.arg("merge").arg(&fleet).arg("-o").arg(fleet.with_file_name("merged")).arg("--json");
        let mut merge = merge.stdout(Stdio::null()).spawn()?;
        let mut peak_kb = 0.0_f64;
        let status = loop {
            peak_kb = peak_kb.max(peak_memory_kb(merge.id()).unwrap_or(0.0));
            match merge.try_wait()? {
                Some(status) => break status,
                None => std::thread::sleep(LOOK_EVERY),
            }
        };
        let (elapsed, peak) = (begun.elapsed().as_secs_f64(), peak_kb * 1024.0 / 1e6);
        if !status.success() {
            return Err("the merge failed".into());
        }
        figure(&format!(
            "| an hour of {MANY} parts merged: seconds | {elapsed:.1} | - | - | at most 30 | {} |",
            verdict(elapsed <= 30.0)
        ));
        figure(&format!(
            "| the same: peak memory, MB | {peak:.0} | - | - | at most 500 | {} |",
            verdict(peak <= 500.0)
        ));
        Ok(())
    }
}

fn peak_memory_kb(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
