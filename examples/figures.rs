//! Measures the figures of docs/performance.md, side by side with fio, in alternating runs, and prints them as Markdown.
//!
//! `make bench` runs it. Nothing is tuned here: fio gets the flags that its users give it, and Plimsoll its defaults.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own, not a part of the library")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use serde_json::Value;

/// Alternating runs of each side.
const ROUNDS: usize = 5;
const SECONDS: u32 = 10;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Failure> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "./plimsoll-bench".to_owned()));
    let bench = Bench {
        program: std::env::current_exe()?.parent().and_then(Path::parent).ok_or("no target folder")?.join("plimsoll"),
        data: folder.join("data"),
        runs: folder.join("runs"),
        scratch: folder.join("fio.dat"),
    };
    std::fs::create_dir_all(&folder)?;
    println!("{}\n", bench.machine()?);
    println!("| figure | Plimsoll | fio | ratio, median of pairs | asked | |");
    println!("| --- | ---: | ---: | ---: | ---: | --- |");
    bench.set_up()?;
    bench.random_reads()?;
    bench.cached_reads()?;
    bench.memory()?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

struct Bench {
    program: PathBuf,
    data: PathBuf,
    runs: PathBuf,
    scratch: PathBuf,
}

/// One round of reads: requests per second, microseconds of processor time for each.
struct Reads {
    per_second: f64,
    cpu_us: f64,
}

impl Bench {
    fn machine(&self) -> Result<String, Failure> {
        let fio = text(Command::new("fio").arg("--version"))?;
        let doctor: Value = serde_json::from_str(&self.plimsoll_text(&["doctor", "--json"])?)?;
        let environment = &doctor["environment"];
        let says = |key: &str| environment[key].as_str().unwrap_or("?").to_owned();
        let device = environment["devices"][0]["name"].as_str().unwrap_or("?");
        let kind = environment["file_system"]["kind"].as_str().unwrap_or("?");
        Ok(format!(
            "{} x {}, kernel {}, {kind} on {device}, {}",
            environment["cpus"],
            says("cpu_model"),
            says("kernel"),
            fio.trim()
        ))
    }

    fn target(&self) -> String {
        format!("dir:{}", self.data.display())
    }

    fn plimsoll_text(&self, arguments: &[&str]) -> Result<String, Failure> {
        text(Command::new(&self.program).args(arguments))
    }

    fn fio(&self, arguments: &[&str]) -> Result<Value, Failure> {
        let output = text(Command::new("fio").args(["--name=bench", "--output-format=json"]).args(arguments))?;
        let begin = output.find('{').ok_or("fio printed no JSON")?;
        Ok(serde_json::from_str(&output[begin..])?)
    }

    /// Set-up against sequential direct writes, 4 GiB each.
    fn set_up(&self) -> Result<(), Failure> {
        let mut pairs = Vec::new();
        for _ in 0..ROUNDS {
            let _ = std::fs::remove_file(&self.scratch);
            let file = format!("--filename={}", self.scratch.display());
            let theirs = self.fio(&[
                &file,
                "--rw=write",
                "--bs=1m",
                "--size=4g",
                "--direct=1",
                "--ioengine=io_uring",
                "--iodepth=8",
                "--refill_buffers",
                "--end_fsync=1",
            ])?;
            let theirs = number(&theirs["jobs"][0]["write"]["bw_bytes"])? / 1e6;
            let _ = std::fs::remove_file(&self.scratch);
            let target = self.target();
            let report = self.plimsoll_text(&[
                "slob",
                "setup",
                "-s",
                "4",
                "SCALE=1G",
                "SCAN_TABLE_SZ=0",
                "--replace",
                "--redo-size",
                "64M",
                "--json",
                "--target",
                &target,
            ])?;
            let report: Value = serde_json::from_str(&report)?;
            let ours = number(&report["bytes_written"])? / number(&report["elapsed_ns"])? * 1e3;
            pairs.push((ours, theirs));
        }
        row("set-up, MB/s (4 GiB, redo files included, against 1 MiB sequential direct writes)", &pairs, 0.95);
        Ok(())
    }

    /// 32 sessions of reads against depth 32, on the same blocks.
    fn random_reads(&self) -> Result<(), Failure> {
        let mut rates = Vec::new();
        let mut costs = Vec::new();
        for _ in 0..ROUNDS {
            let theirs = self.fio_reads()?;
            let ours = self.slob_reads()?;
            rates.push((ours.per_second, theirs.per_second));
            costs.push((ours.cpu_us, theirs.cpu_us));
        }
        row("8 KiB random reads/s, 32 sessions, 64 MiB cache, 4 GiB", &rates, 0.95);
        let (ours, theirs) = (median(costs.iter().map(|pair| pair.0)), median(costs.iter().map(|pair| pair.1)));
        let extra = median(costs.iter().map(|(ours, theirs)| ours - theirs));
        println!(
            "| processor time for each of these reads, us | {ours:.2} | {theirs:.2} | {extra:+.2} us | at most +1 us | {} |",
            verdict(extra <= 1.0)
        );
        Ok(())
    }

    fn fio_reads(&self) -> Result<Reads, Failure> {
        let file = format!("--filename={}", self.data.join("data-0001.dbf").display());
        let runtime = format!("--runtime={SECONDS}");
        let told = self.fio(&[
            &file,
            "--readonly",
            "--rw=randread",
            "--bs=8k",
            "--direct=1",
            "--ioengine=io_uring",
            "--iodepth=32",
            "--norandommap",
            "--randrepeat=0",
            "--time_based",
            "--ramp_time=2",
            &runtime,
        ])?;
        let job = &told["jobs"][0];
        let read = &job["read"];
        let busy_us = (number(&job["usr_cpu"])? + number(&job["sys_cpu"])?) / 100.0 * number(&read["runtime"])? * 1e3;
        Ok(Reads { per_second: number(&read["iops"])?, cpu_us: busy_us / number(&read["total_ios"])? })
    }

    fn slob(&self, arguments: &[&str]) -> Result<Value, Failure> {
        let (target, runs) = (self.target(), self.runs.display().to_string());
        let mut all = vec!["slob", "run", "--json", "--quiet", "--target", &target, "--runs", &runs, "UPDATE_PCT=0"];
        all.extend_from_slice(arguments);
        let run: Value = serde_json::from_str(&self.plimsoll_text(&all)?)?;
        Ok(run["steps"][0].clone())
    }

    fn slob_reads(&self) -> Result<Reads, Failure> {
        let run_time = format!("RUN_TIME={SECONDS}");
        let step = self.slob(&["-s", "4", "-t", "8", "--cache", "64M", "--warmup", "2s", &run_time])?;
        let reads = number(&step["counters"]["physical_reads"])?;
        let cpu = number(&step["process_cpu"]["user_ns"])? + number(&step["process_cpu"]["system_ns"])?;
        Ok(Reads { per_second: reads / number(&step["window"]["duration_ns"])? * 1e9, cpu_us: cpu / reads / 1e3 })
    }

    /// Everything in the cache, one session on one thread.
    fn cached_reads(&self) -> Result<(), Failure> {
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            // One schema of 1 GiB; the warm-up reads all of it.
            let step =
                self.slob(&["-s", "1", "-t", "1", "--lanes", "1", "--cache", "2G", "--warmup", "15s", "RUN_TIME=5"])?;
            let per_second =
                number(&step["counters"]["logical_reads"])? / number(&step["window"]["duration_ns"])? * 1e9;
            let hits = number(&step["counters"]["cache_hits"])? / number(&step["counters"]["logical_reads"])?;
            if hits < 0.999 {
                return Err(format!("the warm-up left {:.2} % misses", (1.0 - hits) * 100.0).into());
            }
            rates.push(per_second);
        }
        let rate = median(rates.into_iter());
        println!(
            "| cached logical reads/s, one core, 1 GiB of 8 KiB blocks | {rate:.0} | - | - | 4000000 | {} |",
            verdict(rate >= 4e6)
        );
        Ok(())
    }

    /// Peak memory with 4,096 sessions.
    fn memory(&self) -> Result<(), Failure> {
        let step = self.slob(&["-s", "4", "-t", "1024", "--cache", "128M", "--warmup", "2s", "RUN_TIME=10"])?;
        let peak = number(&step["peak_memory_bytes"])? / f64::from(1 << 20);
        let most = 128.0 + 64.0 + 4096.0 / 32.0;
        println!(
            "| peak memory, MiB, 4096 sessions, 128 MiB cache | {peak:.0} | - | - | {most:.0} | {} |",
            verdict(peak <= most)
        );
        Ok(())
    }
}

fn row(what: &str, pairs: &[(f64, f64)], asked: f64) {
    let (ours, theirs) = (median(pairs.iter().map(|pair| pair.0)), median(pairs.iter().map(|pair| pair.1)));
    let ratio = median(pairs.iter().map(|(ours, theirs)| ours / theirs));
    let reached = ratio >= asked;
    println!("| {what} | {ours:.0} | {theirs:.0} | {ratio:.3} | {asked:.2} | {} |", verdict(reached));
}

fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "MISSED" }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn number(value: &Value) -> Result<f64, Failure> {
    value.as_f64().ok_or_else(|| format!("a number is missing: {value}").into())
}

fn text(command: &mut Command) -> Result<String, Failure> {
    let begin = Instant::now();
    let output = command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed after {:.1?}: {}", begin.elapsed(), told.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
