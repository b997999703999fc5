//! Raw storage: `plimsoll io run` and fio on the same file, with the same flags.

use plimsoll::record::{Histogram, Run};

use crate::{Bench, Failure, Goal, figure, in_turn, median, number, ratios, run_of};

/// The rate of the open loop.
const RATE_PER_S: &str = "15000";

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
            Goal::AtLeast(1.0),
        );
        let what = "processor time for each of these raw reads, us";
        ratios(what, &pairs(&rounds, |done| done.cpu_us), 2, Goal::AtMost(0.70));
        Ok(())
    }

    /// One request at a time.
    pub(crate) fn single_reads(&self) -> Result<(), Failure> {
        let rounds = self.rounds_of(Load { pattern: "randread", block_size: "8k", depth: 1, cache: Cache::Past })?;
        let what = "mean latency of raw 8 KiB random reads, depth 1, us";
        ratios(what, &pairs(&rounds, |done| done.mean_us), 1, Goal::AtMost(1.02));
        Ok(())
    }

    /// Requests of 1 MiB from one end of the file to the other.
    pub(crate) fn sequential(&self) -> Result<(), Failure> {
        for (pattern, what) in
            [("read", "raw 1 MiB sequential reads/s, depth 8"), ("write", "raw 1 MiB sequential writes/s, depth 8")]
        {
            let rounds = self.rounds_of(Load { pattern, block_size: "1m", depth: 8, cache: Cache::Past })?;
            ratios(what, &pairs(&rounds, |done| done.per_second), 0, Goal::AtLeast(1.0));
        }
        Ok(())
    }

    /// Reads that no device limits.
    pub(crate) fn page_cached_reads(&self) -> Result<(), Failure> {
        let rounds =
            self.rounds_of(Load { pattern: "randread", block_size: "8k", depth: 32, cache: Cache::Through })?;
        let what = "raw 8 KiB random reads/s from the page cache, depth 32, 1 GiB";
        ratios(what, &pairs(&rounds, |done| done.per_second), 0, Goal::AtLeast(1.1));
        Ok(())
    }

    /// Random 8 KiB reads that fall due at 15,000 a second, as Poisson has them, where up to 64 may be outstanding. fio waits
    /// for all that it has outstanding before it sleeps until the next one is due, and counts from sending.
    pub(crate) fn open_loop(&self) -> Result<(), Failure> {
        let load = Load { pattern: "randread", block_size: "8k", depth: 64, cache: Cache::Past };
        self.lay_out(load)?;
        let rounds =
            (0..self.rounds).map(|round| in_turn(round, || self.ours_at_a_rate(load), || self.fio_at_a_rate(load)));
        let rounds: Vec<([f64; 3], f64)> = rounds.collect::<Result<_, Failure>>()?;
        for (what, at) in [
            ("p99 of 8 KiB reads at 15,000/s, us: our response (from due) against fio's latency (from sending)", 0),
            ("the same: our service (from sending) against fio's latency", 1),
        ] {
            let pairs: Vec<(f64, f64)> = rounds.iter().map(|(ours, theirs)| (ours[at], *theirs)).collect();
            ratios(what, &pairs, 0, Goal::AtMost(1.0));
        }
        let lag = median(rounds.iter().map(|(ours, _)| ours[2]));
        figure(&format!(
            "| the same: p99 of how long after it was due a request was sent, us | {lag:.0} | - | - | - | |"
        ));
        Ok(())
    }

    /// p99 of response, of service and of late sending, in microseconds.
    fn ours_at_a_rate(&self, load: Load) -> Result<[f64; 3], Failure> {
        let (path, runs) = (self.raw.display().to_string(), self.runs.display().to_string());
        let (depth, seconds) = (load.depth.to_string(), self.seconds.to_string());
        let mut words = vec!["io", "run", "--json", "--quiet", "--path", &path, "--runs", &runs];
        words.extend(["--engine", "io-uring", "--pattern", load.pattern, "--block-size", load.block_size]);
        words.extend(["--depth", &depth, "--rate", RATE_PER_S, "--duration", &seconds, "--warmup", "2"]);
        let run = self.run_of(&words)?;
        let step = run.steps.first().ok_or("a run without a step")?;
        let operations = step.operations.first().ok_or("no operation finished")?;
        let p99_us = |times: &Histogram| times.quantile_ns(0.99).map(|ns| ns as f64 / 1e3);
        let lag = step.generator.as_ref().and_then(|generator| generator.schedule_lag.as_ref()).and_then(p99_us);
        let times = (p99_us(&operations.response), p99_us(&operations.service), lag);
        let (Some(response), Some(service), Some(lag)) = times else { return Err("a latency is missing".into()) };
        Ok([response, service, lag])
    }

    /// p99 of fio's latency in microseconds, which counts from sending.
    fn fio_at_a_rate(&self, load: Load) -> Result<f64, Failure> {
        let file = format!("--filename={}", self.raw.display());
        let (iodepth, runtime) = (format!("--iodepth={}", load.depth), format!("--runtime={}", self.seconds));
        let rate = format!("--rate_iops={RATE_PER_S}");
        let mut words = vec![&*file, "--rw=randread", "--bs=8k", &*iodepth, "--direct=1", &*runtime, &*rate];
        words.extend(["--rate_process=poisson", "--ioengine=io_uring", "--norandommap", "--randrepeat=0"]);
        words.extend(["--time_based", "--ramp_time=2", "--lat_percentiles=1", "--clat_percentiles=0"]);
        let reported = self.fio(&words)?;
        Ok(number(&reported["jobs"][0]["read"]["lat_ns"]["percentile"]["99.000000"])? / 1e3)
    }

    /// A run that was printed.
    pub(crate) fn run_of(&self, words: &[&str]) -> Result<Run, Failure> {
        Ok(serde_json::from_value(run_of(&self.plimsoll_text(words)?)?)?)
    }

    fn rounds_of(&self, load: Load) -> Result<Vec<(Done, Done)>, Failure> {
        self.lay_out(load)?;
        (0..self.rounds).map(|round| in_turn(round, || self.ours(load), || self.theirs(load))).collect()
    }

    /// Makes the file anew: fio writes over what says that it was laid out.
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
        let run = self.run_of(&words)?;
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
        let reported = self.fio(&words)?;
        let job = &reported["jobs"][0];
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
