//! The embedded engine: set-up, physical and cached reads, memory.

use serde_json::Value;

use crate::{Bench, Failure, Goal, figure, in_turn, median, number, ratios, run_of, verdict};

/// One round of reads: requests per second, microseconds of processor time for each.
struct Reads {
    per_second: f64,
    cpu_us: f64,
}

impl Bench {
    fn target(&self) -> String {
        format!("dir:{}", self.data.display())
    }

    /// Set-up against sequential direct writes, 4 GiB each.
    pub(crate) fn set_up(&self) -> Result<(), Failure> {
        let mut pairs = Vec::new();
        for _ in 0..self.rounds {
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
        let what = "set-up, MB/s (4 GiB, redo files included, against 1 MiB sequential direct writes)";
        ratios(what, &pairs, 0, Goal::AtLeast(0.95));
        Ok(())
    }

    /// 32 sessions of reads against depth 32, on the same blocks.
    pub(crate) fn engine_reads(&self) -> Result<(), Failure> {
        let mut rates = Vec::new();
        let mut costs = Vec::new();
        for round in 0..self.rounds {
            let (ours, theirs) = in_turn(round, || self.slob_reads(), || self.fio_reads())?;
            rates.push((ours.per_second, theirs.per_second));
            costs.push((ours.cpu_us, theirs.cpu_us));
        }
        ratios("8 KiB random reads/s, 32 sessions, 64 MiB cache, 4 GiB", &rates, 0, Goal::AtLeast(0.95));
        let (ours, theirs) = (median(costs.iter().map(|pair| pair.0)), median(costs.iter().map(|pair| pair.1)));
        let extra = median(costs.iter().map(|(ours, theirs)| ours - theirs));
        figure(&format!(
            "| processor time for each of these reads, us | {ours:.2} | {theirs:.2} | {extra:+.2} us | at most +1 us | {} |",
            verdict(extra <= 1.0)
        ));
        Ok(())
    }

    fn fio_reads(&self) -> Result<Reads, Failure> {
        let file = format!("--filename={}", self.data.join("data-0001.dbf").display());
        let runtime = format!("--runtime={}", self.seconds);
        let reported = self.fio(&[
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
        let job = &reported["jobs"][0];
        let read = &job["read"];
        let busy_us = (number(&job["usr_cpu"])? + number(&job["sys_cpu"])?) / 100.0 * number(&read["runtime"])? * 1e3;
        Ok(Reads { per_second: number(&read["iops"])?, cpu_us: busy_us / number(&read["total_ios"])? })
    }

    fn slob(&self, arguments: &[&str]) -> Result<Value, Failure> {
        let (target, runs) = (self.target(), self.runs.display().to_string());
        let mut all = vec!["slob", "run", "--json", "--quiet", "--target", &target, "--runs", &runs, "UPDATE_PCT=0"];
        all.extend_from_slice(arguments);
        let run = run_of(&self.plimsoll_text(&all)?)?;
        Ok(run["steps"][0].clone())
    }

    fn slob_reads(&self) -> Result<Reads, Failure> {
        let run_time = format!("RUN_TIME={}", self.seconds);
        let step = self.slob(&["-s", "4", "-t", "8", "--cache", "64M", "--warmup", "2s", &run_time])?;
        let reads = number(&step["counters"]["physical_reads"])?;
        let cpu = number(&step["process_cpu"]["user_ns"])? + number(&step["process_cpu"]["system_ns"])?;
        Ok(Reads { per_second: reads / number(&step["window"]["duration_ns"])? * 1e9, cpu_us: cpu / reads / 1e3 })
    }

    /// Everything in the cache, one session on one thread.
    pub(crate) fn cached_reads(&self) -> Result<(), Failure> {
        let mut rates = Vec::new();
        for _ in 0..self.rounds {
            rates.push(self.all_cached(&["30s", "60s", "120s"])?);
        }
        let rate = median(rates.into_iter());
        figure(&format!(
            "| cached logical reads/s, one core, 1 GiB of 8 KiB blocks | {rate:.0} | - | - | at least 4000000 | {} |",
            verdict(rate >= 4e6)
        ));
        Ok(())
    }

    /// Logical reads/s of one schema of 1 GiB, after the first of these warm-ups that reads all of it: a slow disk takes longer.
    fn all_cached(&self, warmups: &[&str]) -> Result<f64, Failure> {
        let mut missed = 1.0;
        for warmup in warmups {
            let sessions = ["-s", "1", "-t", "1", "--lanes", "1", "--cache", "2G", "--warmup", warmup, "RUN_TIME=5"];
            let step = self.slob(&sessions)?;
            let reads = number(&step["counters"]["logical_reads"])?;
            missed = 1.0 - number(&step["counters"]["cache_hits"])? / reads;
            if missed <= 0.001 {
                return Ok(reads / number(&step["window"]["duration_ns"])? * 1e9);
            }
        }
        Err(format!("a warm-up of {} left {:.2} % misses", warmups.last().unwrap_or(&""), missed * 100.0).into())
    }

    /// Peak memory with 4,096 sessions.
    pub(crate) fn memory(&self) -> Result<(), Failure> {
        let step = self.slob(&["-s", "4", "-t", "1024", "--cache", "128M", "--warmup", "2s", "RUN_TIME=10"])?;
        let peak = number(&step["peak_memory_bytes"])? / f64::from(1 << 20);
        let most = 128.0 + 64.0 + 4096.0 / 32.0;
        figure(&format!(
            "| peak memory, MiB, 4096 sessions, 128 MiB cache | {peak:.0} | - | - | at most {most:.0} | {} |",
            verdict(peak <= most)
        ));
        Ok(())
    }
}
