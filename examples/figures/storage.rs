//! Raw storage: `plimsoll io run` and fio on the same file, with the same flags.

use plimsoll::record::Run;

use crate::{Asked, Bench, Failure, in_turn, number, ratios, run_of};

/// One load for both sides.
#[derive(Clone, Copy)]
struct Load {
    /// A pattern by the name that both have for it.
    pattern: &'static str,
    block_size: &'static str,
    depth: u32,
    cache: Cache,
}

#[derive(Clone, Copy, PartialEq)]
enum Cache {
    Past,
    Through,
}

/// What one side did.
#[derive(Clone, Copy)]
struct Done {
    per_second: f64,
    /// Processor time of each request.
    cpu_us: f64,
    mean_us: f64,
}

/// Ours and theirs of one figure.
fn pairs(rounds: &[(Done, Done)], of: fn(&Done) -> f64) -> Vec<(f64, f64)> {
    rounds.iter().map(|(ours, theirs)| (of(ours), of(theirs))).collect()
}

impl Bench {
    /// Random 8 KiB reads at depth 32 from the disk.
    pub(crate) fn random_reads(&self) -> Result<(), Failure> {
        let rounds = self.rounds_of(Load { pattern: "randread", block_size: "8k", depth: 32, cache: Cache::Past })?;
        ratios(
            "raw 8 KiB random reads/s, depth 32, 4 GiB",
            &pairs(&rounds, |done| done.per_second),
            0,
            Asked::AtLeast(1.0),
        );
        let what = "processor time for each of these raw reads, us";
        ratios(what, &pairs(&rounds, |done| done.cpu_us), 2, Asked::AtMost(0.75));
        Ok(())
    }

    /// One request at a time.
    pub(crate) fn single_reads(&self) -> Result<(), Failure> {
        let rounds = self.rounds_of(Load { pattern: "randread", block_size: "8k", depth: 1, cache: Cache::Past })?;
        let what = "mean latency of raw 8 KiB random reads, depth 1, us";
        ratios(what, &pairs(&rounds, |done| done.mean_us), 1, Asked::AtMost(1.02));
        Ok(())
    }

    /// Requests of 1 MiB from one end of the file to the other.
    pub(crate) fn sequential(&self) -> Result<(), Failure> {
        for (pattern, what) in
            [("read", "raw 1 MiB sequential reads/s, depth 8"), ("write", "raw 1 MiB sequential writes/s, depth 8")]
        {
            let rounds = self.rounds_of(Load { pattern, block_size: "1m", depth: 8, cache: Cache::Past })?;
            ratios(what, &pairs(&rounds, |done| done.per_second), 0, Asked::AtLeast(1.0));
        }
        Ok(())
    }

    /// Reads that no device limits.
    pub(crate) fn page_cached_reads(&self) -> Result<(), Failure> {
        let rounds =
            self.rounds_of(Load { pattern: "randread", block_size: "8k", depth: 32, cache: Cache::Through })?;
        let what = "raw 8 KiB random reads/s from the page cache, depth 32, 1 GiB";
        ratios(what, &pairs(&rounds, |done| done.per_second), 0, Asked::AtLeast(1.1));
        Ok(())
    }

    fn rounds_of(&self, load: Load) -> Result<Vec<(Done, Done)>, Failure> {
        self.lay_out(load)?;
        (0..self.rounds).map(|round| in_turn(round, || self.ours(load), || self.theirs(load))).collect()
    }

    /// Makes the file anew: fio writes over what tells that it was laid out.
    fn lay_out(&self, load: Load) -> Result<(), Failure> {
        let _ = std::fs::remove_file(&self.raw);
        let (path, runs) = (self.raw.display().to_string(), self.runs.display().to_string());
        let size = if load.cache == Cache::Through { "1G" } else { "4G" };
        let words =
            ["io", "run", "--quiet", "--json", "--pattern", "randread", "--duration", "100ms", "--warmup", "0s"];
        self.plimsoll_text(&[&words[..], &["--path", &path, "--runs", &runs, "--size", size]].concat())?;
        if load.cache == Cache::Through {
            // All of it into the page cache, where both sides find it.
            std::io::copy(&mut std::fs::File::open(&self.raw)?, &mut std::io::sink())?;
        }
        Ok(())
    }

    fn ours(&self, load: Load) -> Result<Done, Failure> {
        let Load { pattern, block_size, depth, cache } = load;
        let (path, runs) = (self.raw.display().to_string(), self.runs.display().to_string());
        let (depth, seconds) = (depth.to_string(), self.seconds.to_string());
        let direct = if cache == Cache::Past { "on" } else { "off" };
        let mut words =
            vec!["io", "run", "--json", "--quiet", "--path", &path, "--runs", &runs, "--engine", "io-uring"];
        words.extend(["--pattern", pattern, "--block-size", block_size, "--depth", &depth, "--direct", direct]);
        words.extend(["--duration", &seconds, "--warmup", "2"]);
        if pattern == "write" {
            words.extend(["--destroy", &path]);
        }
        let run: Run = serde_json::from_value(run_of(&self.plimsoll_text(&words)?)?)?;
        let step = run.steps.first().ok_or("a run without a step")?;
        let done = step.counters.operations.ok_or("no operations were counted")? as f64;
        let cpu = step.process_cpu.ok_or("the processor time is not known")?;
        let operations = step.operations.first().ok_or("no operation finished")?;
        Ok(Done {
            per_second: done / step.window.duration_ns as f64 * 1e9,
            cpu_us: (cpu.user_ns + cpu.system_ns) as f64 / done / 1e3,
            mean_us: operations.service.mean_ns().ok_or("no operation finished")? / 1e3,
        })
    }

    fn theirs(&self, load: Load) -> Result<Done, Failure> {
        let Load { pattern, block_size, depth, cache } = load;
        let file = format!("--filename={}", self.raw.display());
        let (rw, bs, iodepth) = (format!("--rw={pattern}"), format!("--bs={block_size}"), format!("--iodepth={depth}"));
        let (direct, runtime) =
            (format!("--direct={}", u8::from(cache == Cache::Past)), format!("--runtime={}", self.seconds));
        let mut words = vec![&*file, &*rw, &*bs, &*iodepth, &*direct, &*runtime];
        words.extend(["--ioengine=io_uring", "--fixedbufs=1", "--registerfiles=1", "--norandommap", "--randrepeat=0"]);
        words.extend(["--time_based", "--ramp_time=2"]);
        if cache == Cache::Through {
            // It would empty the page cache of the file first.
            words.push("--invalidate=0");
        }
        let told = self.fio(&words)?;
        let job = &told["jobs"][0];
        let way = &job[if pattern == "write" { "write" } else { "read" }];
        let busy = (number(&job["usr_cpu"])? + number(&job["sys_cpu"])?) / 100.0;
        let busy_us = busy * number(&way["runtime"])? * 1e3;
        Ok(Done {
            per_second: number(&way["iops"])?,
            cpu_us: busy_us / number(&way["total_ios"])?,
            mean_us: number(&way["lat_ns"]["mean"])? / 1e3,
        })
    }
}
