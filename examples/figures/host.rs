//! Processors and memory: how much of it moves, beside stress-ng and sysbench, and whether two runs agree.

use std::process::Command;

use serde_json::Value;

use crate::{Bench, Failure, Goal, figure, in_turn, median, number, ratios, run_of, text, verdict};

/// Four arrays of stress-ng for a cache of 32 MiB; far behind every cache, as is sysbench's block.
const SIZE: &str = "384M";
const SYSBENCH_BLOCK: &str = "64M";
/// What stress-ng needs at least to tell a rate.
const STRESS_NG_SECONDS: u32 = 12;
/// Two runs of one command differ by no more than this share.
const REPEATS_WITHIN: f64 = 0.02;
/// What is repeated.
const KINDS: [&str; 7] = ["logical-read", "checksum", "compare", "sort", "hash-join", "memory-triad", "memory-latency"];

impl Bench {
    /// Bytes that memory moves with one thread and with one for each processor.
    pub(crate) fn host_memory(&self) -> Result<(), Failure> {
        let all = std::thread::available_parallelism()?.get();
        for threads in if all > 1 { vec![1, all] } else { vec![1] } {
            let (mut streams, mut blocks) = (Vec::new(), Vec::new());
            for round in 0..self.rounds {
                let triad = || self.host("memory-triad", threads, SIZE);
                streams.push(in_turn(round, triad, || self.stress_ng(threads))?);
                let copy = || self.host("memory-copy", threads, SIZE);
                blocks.push(in_turn(round, copy, || self.sysbench_memory(threads))?);
            }
            let of = |what: &str| {
                format!(
                    "memory, GB/s, {}: {what}",
                    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
                )
            };
            ratios(&of("triad and `stress-ng --stream`"), &streams, 1, Goal::AtLeast(0.95));
            ratios(&of("copy and `sysbench memory`, writes"), &blocks, 1, Goal::AtLeast(0.95));
        }
        Ok(())
    }

    /// Whether two runs of the same command find the same speed.
    pub(crate) fn host_repeat(&self) -> Result<(), Failure> {
        for kind in KINDS {
            let mut apart = Vec::new();
            for _ in 0..self.rounds {
                let (first, second) = (self.host(kind, 1, SIZE)?, self.host(kind, 1, SIZE)?);
                apart.push((first / second - 1.0).abs());
            }
            let apart = median(apart.into_iter());
            figure(&format!(
                "| two runs of {kind} apart | {:.2} % | - | - | at most {:.0} % | {} |",
                apart * 100.0,
                REPEATS_WITHIN * 100.0,
                verdict(apart <= REPEATS_WITHIN)
            ));
        }
        Ok(())
    }

    /// Billions of units per second of all threads: bytes, of other work loads or whatever it is counted in.
    fn host(&self, kind: &str, threads: usize, size: &str) -> Result<f64, Failure> {
        let (duration, threads, runs) =
            (self.seconds.to_string(), threads.to_string(), self.runs.display().to_string());
        let words = [
            "host",
            "run",
            "--work",
            kind,
            "--processors",
            &threads,
            "--size",
            size,
            "--duration",
            &duration,
            "--warmup",
            "1",
            "--runs",
            &runs,
            "--quiet",
            "--json",
        ];
        let run: Value = run_of(&self.plimsoll_text(&words)?)?;
        let step = &run["steps"][0];
        let units = number(&step["operations"][0]["block_touches"])?;
        Ok(units / number(&step["window"]["duration_ns"])?)
    }

    /// What `stress-ng --stream` reads and writes.
    fn stress_ng(&self, threads: usize) -> Result<f64, Failure> {
        let mut command = Command::new("stress-ng");
        let seconds = self.seconds.max(STRESS_NG_SECONDS);
        command.args(["--stream", &threads.to_string(), "--timeout", &format!("{seconds}s"), "--metrics"]);
        let output = command.output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        // `… stream   1841.38 memory write rate (MB per sec) (… of 2 instances)`, a mean of all of them.
        let rate = |what: &str| {
            let before =
                printed.lines().find_map(|line| line.split_once(&format!(" memory {what} rate (MB per sec)")))?.0;
            before.split_whitespace().last()?.parse::<f64>().ok()
        };
        let both = rate("read").zip(rate("write")).map(|(read, write)| read + write);
        let each = both.ok_or_else(|| format!("stress-ng printed no rate of memory:\n{printed}"))?;
        Ok(each * threads as f64 / 1e3)
    }

    /// What `sysbench memory` writes.
    fn sysbench_memory(&self, threads: usize) -> Result<f64, Failure> {
        let mut command = Command::new("sysbench");
        command.arg("memory").args([
            format!("--memory-block-size={SYSBENCH_BLOCK}"),
            "--memory-oper=write".to_owned(),
            "--memory-total-size=100T".to_owned(),
            format!("--time={}", self.seconds),
            format!("--threads={threads}"),
        ]);
        let printed = text(command.arg("run"))?;
        let mebibytes = printed.lines().find_map(|line| {
            let (_, rate) = line.split_once("transferred (")?;
            rate.strip_suffix(" MiB/sec)")?.parse::<f64>().ok()
        });
        Ok(mebibytes.ok_or("sysbench printed no rate")? * 1_048_576.0 / 1e9)
    }
}
