//! What a thousand users cost who think most of the time.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{BUFFERS, cpu_ns, need};
use crate::server::Server;
use crate::{Bench, Failure, figure, median, number, text, verdict};

/// Users of these figures.
const MANY: u32 = 1_000;
/// How long each pauses between two transactions: about a hundred transactions a second in all.
const THINK: &str = "5s..15s";
/// After so many seconds all users are out of step with each other.
const WARM_UP: &str = "15";
/// Most of a core, in percent, and most memory of a user, in KiB.
const MAX_CPU: f64 = 5.0;
const MAX_MEMORY: f64 = 64.0;
/// How long a server may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

impl Bench {
    /// The client's processor time with many users who think, and the memory of each.
    pub(crate) fn orders_users(&self) -> Result<(), Failure> {
        need(&["psql"])?;
        self.on_orders("pg", super::SCALE, |server| {
            // It takes as many connections as its first command needs.
            stop(server)?;
            let (mut busy, mut memory, mut rates) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..self.rounds {
                let (many, one) = (self.thinking(server, MANY)?, self.thinking(server, 1)?);
                let peak = |step: &Value| number(&step["peak_memory_bytes"]);
                let window_ns = number(&many["window"]["duration_ns"])?;
                busy.push(cpu_ns(&many)? * 100.0 / window_ns);
                rates.push(number(&many["counters"]["operations"])? * 1e9 / window_ns);
                memory.push((peak(&many)? - peak(&one)?) / f64::from(MANY - 1) / 1024.0);
            }
            let [busy, memory, rate] = [busy, memory, rates].map(|values| median(values.into_iter()));
            figure(&format!(
                "| PostgreSQL, {MANY} users who think {THINK} ({rate:.0} transactions/s): client's processor time, of a core | {busy:.1} % | - | \
                 - | at most {MAX_CPU} % | {} |",
                verdict(busy <= MAX_CPU)
            ));
            figure(&format!(
                "| the same: memory of each user (peak, less that of one user), KiB | {memory:.0} | - | - | at most {MAX_MEMORY} | {} |",
                verdict(memory <= MAX_MEMORY)
            ));
            Ok(())
        })
    }

    fn thinking(&self, server: &Server<'_>, users: u32) -> Result<Value, Failure> {
        let users = users.to_string();
        let (seconds, runs) = (self.seconds.to_string(), self.runs.display().to_string());
        let buffers = BUFFERS.0.to_string();
        let words = ["run", "--users", &users, "--think", THINK, "--no-audit", "--no-trace", "--warmup", WARM_UP];
        let more = ["--duration", &seconds, "--runs", &runs, "--db-cache", &buffers];
        let mut run = server.command("orders", &[&words[..], &more].concat())?;
        Ok(run["steps"][0].take())
    }
}

/// Ends a private server that was left running.
fn stop(server: &Server<'_>) -> Result<(), Failure> {
    let file = server.directory().join("data/postmaster.pid");
    let process = std::fs::read_to_string(&file)?.lines().next().ok_or("no process in postmaster.pid")?.to_owned();
    text(Command::new("kill").args(["-INT", &process]))?;
    let began = Instant::now();
    while file.exists() {
        if began.elapsed() > PATIENCE {
            return Err(format!("the server, process {process}, does not end").into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
