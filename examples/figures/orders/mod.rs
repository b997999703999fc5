//! Order entry on private servers: its load against pgbench and sysbench, which send the same statements, and its set-up against the
//! fastest ways that the servers' own programs have.

mod counted;
mod pgbench;
mod scripts;
mod setup;
mod sysbench;
mod users;

use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll::units::Bytes;
use serde_json::Value;

use self::counted::{Counted, counted, is_same};
use crate::server::Server;
use crate::{Bench, Failure, Goal, children_cpu, in_turn, number, ratios};

/// Scale of the data that load is put on.
const SCALE: &str = "0.2";
/// Customers that there are at that scale.
const CUSTOMERS: u32 = 200_000;
/// Users, on as many connections.
const USERS: u32 = 16;
/// Threads that drive them.
const THREADS: u32 = 2;
/// Buffers of the servers: all data fit.
const BUFFERS: Bytes = Bytes::gib(1);
/// Load of ours before each measured window, in seconds.
const WARM_UP: u32 = 2;

/// One way to put load on a server, measured once.
struct Outcome {
    /// Transactions a second.
    per_second: f64,
    /// The client's processor time for each, in microseconds.
    cpu_us: f64,
    /// What the server did for each.
    counted: Counted,
}

/// Refuses to begin without these programs.
fn need(programs: &[&str]) -> Result<(), Failure> {
    for program in programs {
        let mut version = Command::new(program);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().map_err(|error| {
            format!("`{program}` cannot be started: {error}; `make bench` as root installs what is missing on Debian")
        })?;
    }
    Ok(())
}

impl Bench {
    /// Measures on a private server that holds order entry, and removes it, whatever came of it.
    fn on_orders(
        &self,
        scheme: &'static str,
        scale: &str,
        measure: impl FnOnce(&Server<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let server = self.server(scheme);
        let buffers = BUFFERS.0.to_string();
        let made = server.command("orders", &["setup", "--scale", scale, "--seed", "1", "--db-cache", &buffers]);
        let outcome = made.and_then(|_| measure(&server));
        let removed = self.plimsoll_text(&["orders", "drop", "--yes", "--target", &server.address()]);
        outcome.and(removed.map(drop))
    }

    /// One run of order entry: its document, and the transactions it did in all, also before and after its window.
    fn orders_run(&self, server: &Server<'_>, words: &[&str]) -> Result<(Value, f64), Failure> {
        let (seconds, warm_up, runs) = (self.seconds.to_string(), WARM_UP.to_string(), self.runs.display().to_string());
        let always = ["run", "--no-audit", "--no-trace", "--duration", &seconds, "--warmup", &warm_up, "--runs", &runs];
        let run = server.command("orders", &[&always, words].concat())?;
        let id = run["id"].as_str().ok_or("the run has no id")?;
        let intervals = std::fs::read_to_string(self.runs.join(id).join("intervals.jsonl"))?;
        let mut all = 0.0;
        for line in intervals.lines() {
            all += number(&serde_json::from_str::<Value>(line)?["counters"]["operations"])?;
        }
        Ok((run, all))
    }

    /// Load by as many users as everywhere here, as fast as they can.
    fn users(&self, server: &Server<'_>, words: &[&str]) -> Result<Outcome, Failure> {
        let users = USERS.to_string();
        let before = counted(server)?;
        let (run, all) = self.orders_run(server, &[&["--users", users.as_str()], words].concat())?;
        let counted = counted(server)?.since(&before, all);
        let step = &run["steps"][0];
        let done = number(&step["counters"]["operations"])?;
        let per_second = done * 1e9 / number(&step["window"]["duration_ns"])?;
        Ok(Outcome { per_second, cpu_us: cpu_ns(step)? / 1e3 / done, counted })
    }

    /// Load by another program. `run` has it run for so long, and says how many transactions it did, and how many a second.
    fn rival(
        &self,
        server: &Server<'_>,
        run: impl Fn(Length) -> Result<(f64, f64), Failure>,
    ) -> Result<Outcome, Failure> {
        let timed = |length| -> Result<(f64, f64, f64), Failure> {
            let before = children_cpu()?;
            let (done, per_second) = run(length)?;
            Ok((done, per_second, children_cpu()? - before))
        };
        // Connecting and preparing statements are no part of the load, and cost the same however long it is.
        let (first, _, first_cpu) = timed(Length::Once)?;
        let before = counted(server)?;
        let (done, per_second, cpu) = timed(Length::Seconds(self.seconds))?;
        let counted = counted(server)?.since(&before, done);
        Ok(Outcome { per_second, cpu_us: (cpu - first_cpu) * 1e6 / (done - first), counted })
    }

    /// Pairs of ours and theirs, who take turns; refused where the server did not do the same for both.
    fn turns(
        &self,
        what: &str,
        ours: impl Fn() -> Result<Outcome, Failure>,
        theirs: impl Fn() -> Result<Outcome, Failure>,
    ) -> Result<Pairs, Failure> {
        let mut pairs = Pairs::default();
        for round in 0..self.rounds {
            let (ours, theirs) = in_turn(round, &ours, &theirs)?;
            is_same(&ours.counted, &theirs.counted).map_err(|difference| format!("{what}: {difference}"))?;
            pairs.rates.push((ours.per_second, theirs.per_second));
            pairs.costs.push((ours.cpu_us, theirs.cpu_us));
        }
        Ok(pairs)
    }
}

/// How long another program runs.
#[derive(Clone, Copy)]
enum Length {
    /// One transaction of each user.
    Once,
    Seconds(u32),
}

/// Ours and theirs, round by round.
#[derive(Default)]
struct Pairs {
    /// Transactions a second.
    rates: Vec<(f64, f64)>,
    /// Microseconds of the client's processor time for each.
    costs: Vec<(f64, f64)>,
}

impl Pairs {
    fn print(&self, what: &str, cost: Goal) {
        ratios(&format!("{what}: transactions/s"), &self.rates, 0, Goal::AtLeast(1.0));
        ratios(&format!("{what}: client's processor time for each, us"), &self.costs, 1, cost);
    }
}

/// Processor time of our process in a window.
fn cpu_ns(step: &Value) -> Result<f64, Failure> {
    let cpu = &step["process_cpu"];
    Ok(number(&cpu["user_ns"])? + number(&cpu["system_ns"])?)
}

/// Whether our program can be told this.
fn knows(bench: &Bench, flag: &str) -> Result<bool, Failure> {
    Ok(bench.plimsoll_text(&["orders", "run", "--help"])?.contains(flag))
}

/// A path as an argument.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
