//! The load as statements and as procedures against pgbench, which sends the same statements, and at a rate.

use std::path::Path;
use std::process::Command;

use plimsoll::record::{Histogram, Run};

use super::{Length, Outcome, THREADS, USERS, WARM_UP, knows, need, shown};
use crate::server::Server;
use crate::{Bench, Failure, Goal, figure, in_turn, median, ratios, text, verdict};

/// Transactions that are measured alone: the shortest, and one that changes data.
const SINGLE: [(&str, &str); 2] =
    [("SQ=1", "sales rep query, one statement"), ("NCR=1", "customer registration, 8 to 11 statements")];
/// The kinds that pgbench can do, with the weights of Swingbench 2.6.
const MIX: &str = "NCR=15,BP=90,PO=5,SQ=2,WQ=1,WA=1";
/// The part of the capacity at which response times are compared.
const PART: f64 = 0.6;
/// How far a rate may be from what was asked for, in percent.
const MAX_OFF: f64 = 0.5;
/// What pgbench calls a rate.
const RATE: &str = "tps = ";

/// Values that are the same in each transaction. pgbench has numbers alone, so whatever has an index is a number as long as our text.
const WORDS: [&str; 9] = [
    "language=us",
    "territory=AMERICA",
    "class=Occasional",
    "interest=Computing",
    "street=Station Street",
    "town=Guildford",
    "county=Norfolk",
    "country=Germany",
    "card=Visa (Debit)",
];

fn pgbench(server: &Server<'_>, scripts: &[String], length: Length) -> Command {
    let mut command = Command::new("pgbench");
    command.args(["-n", "-M", "prepared", "plimsoll", "-U", "plimsoll", "-h"]).arg(server.directory().join("run"));
    command.args(["-c", &USERS.to_string(), "-j", &THREADS.to_string(), "-D"]);
    command.arg(format!("customers={}", super::CUSTOMERS));
    command.args(WORDS.iter().flat_map(|word| ["-D", word]));
    command.args(scripts.iter().flat_map(|script| ["-f", script]));
    match length {
        Length::Once => command.args(["-t", "1"]),
        Length::Seconds(seconds) => command.args(["-T", &seconds.to_string()]),
    };
    command
}

/// What stands behind a word of what pgbench printed.
fn after(printed: &str, label: &str) -> Result<f64, Failure> {
    let found = printed.lines().find_map(|line| line.trim_start().strip_prefix(label));
    let word = found.and_then(|rest| rest.split([' ', '/']).find(|word| !word.is_empty()));
    Ok(word.ok_or_else(|| format!("pgbench printed no `{label}`"))?.parse()?)
}

/// Has pgbench put load on, and says how many transactions it did, and how many a second.
fn load(server: &Server<'_>, scripts: &[String], length: Length) -> Result<(f64, f64), Failure> {
    let printed = text(pgbench(server, scripts, length).args(["--max-tries", "10"]))?;
    let failed = after(&printed, "number of failed transactions:")?;
    if failed > 0.0 {
        return Err(format!("{failed} transactions of pgbench failed").into());
    }
    // `number of transactions actually processed: 160/160`, without the latter part where it ran for a time.
    Ok((after(&printed, "number of transactions actually processed:")?, after(&printed, RATE)?))
}

/// Response times of a load at a rate.
struct AtRate {
    per_second: f64,
    p99_ms: f64,
}

impl Bench {
    fn pgbench_outcome(&self, server: &Server<'_>, scripts: &[String]) -> Result<Outcome, Failure> {
        self.rival(server, |length| load(server, scripts, length))
    }

    /// Rates and processor time of single transactions and of a mix, as statements.
    pub(crate) fn orders_pgbench(&self) -> Result<(), Failure> {
        need(&["pgbench", "psql"])?;
        self.on_orders("pg", super::SCALE, |server| {
            for (mix, what) in SINGLE.into_iter().chain([(MIX, "mix of six kinds")]) {
                let scripts = self.pgbench_scripts(server, mix)?;
                let ours = || self.users(server, &["--mix", mix]);
                let pairs = self.turns(mix, ours, || self.pgbench_outcome(server, &scripts))?;
                pairs.print(&format!("PostgreSQL, {USERS} users, {what}, against pgbench"), Goal::AtMost(0.8));
            }
            Ok(())
        })
    }

    /// Processor time of transactions that are one call each, against the same transactions of pgbench's in statements.
    pub(crate) fn orders_procedures(&self) -> Result<(), Failure> {
        need(&["pgbench", "psql"])?;
        if !knows(self, "--send ")? {
            figure("| transactions as procedures | - | - | - | - | not measured: `orders run` has no `--send` |");
            return Ok(());
        }
        self.on_orders("pg", super::SCALE, |server| {
            for (mix, what) in [SINGLE[1], (MIX, "mix of six kinds")] {
                let scripts = self.pgbench_scripts(server, mix)?;
                let ours = || self.users(server, &["--mix", mix, "--send", "procedure"]);
                let pairs = self.turns(mix, ours, || self.pgbench_outcome(server, &scripts))?;
                let what = format!("PostgreSQL, {USERS} users, {what}, as procedures, against pgbench's statements");
                pairs.print(&what, Goal::AtMost(0.25));
            }
            Ok(())
        })
    }

    /// Response times at a rate that is a part of what the slower side can do, and how well the rate is kept.
    pub(crate) fn orders_rate(&self) -> Result<(), Failure> {
        need(&["pgbench", "psql"])?;
        self.on_orders("pg", super::SCALE, |server| {
            for (mix, what) in [SINGLE[1], (MIX, "mix of six kinds")] {
                let scripts = self.pgbench_scripts(server, mix)?;
                let (our, their) = (self.users(server, &["--mix", mix])?, self.pgbench_outcome(server, &scripts)?);
                let rate = (our.per_second.min(their.per_second) * PART).floor();
                let (mut p99s, mut kept) = (Vec::new(), Vec::new());
                for round in 0..self.rounds {
                    let (ours, theirs) = in_turn(
                        round,
                        || self.at_rate(server, mix, rate, "poisson"),
                        || self.pgbench_at_rate(server, &scripts, rate),
                    )?;
                    p99s.push((ours.p99_ms, theirs.p99_ms));
                    // Random arrivals alone are further off than what is asked for.
                    kept.push((self.at_rate(server, mix, rate, "fixed")?.per_second, theirs.per_second));
                }
                let what = format!("PostgreSQL, {USERS} users, {what}, at {rate:.0} transactions/s");
                ratios(&format!("{what}, against pgbench: p99 of response, ms"), &p99s, 2, Goal::AtMost(1.02));
                let off = |rates: Vec<f64>| median(rates.into_iter().map(|kept| (kept / rate - 1.0) * 100.0));
                let (our, their): (Vec<f64>, Vec<f64>) = kept.into_iter().unzip();
                let (our, their) = (off(our), off(their));
                figure(&format!(
                    "| {what}: rate kept (ours at equal gaps, pgbench's at random) | {our:+.2} % | {their:+.2} % | - | within {MAX_OFF} % | \
                     {} |",
                    verdict(our.abs() <= MAX_OFF)
                ));
            }
            Ok(())
        })
    }

    fn at_rate(&self, server: &Server<'_>, mix: &str, rate: f64, arrival: &str) -> Result<AtRate, Failure> {
        let (users, rate) = (USERS.to_string(), rate.to_string());
        let words = ["--users", &users, "--mix", mix, "--rate", &rate, "--arrival", arrival];
        let (run, _) = self.orders_run(server, &words)?;
        let run: Run = serde_json::from_value(run)?;
        let step = run.steps.first().ok_or("a run without a step")?;
        let (mut times, mut done) = (Histogram::default(), 0);
        for kind in &step.operations {
            times.merge(&kind.response);
            done += kind.count;
        }
        let p99_ns = times.quantile_ns(0.99).ok_or("nothing was done")?;
        Ok(AtRate { per_second: done as f64 * 1e9 / step.window.duration_ns as f64, p99_ms: p99_ns as f64 / 1e6 })
    }

    /// From pgbench's log of each transaction, whose times run from when it was due, without those of a warm-up as long as ours.
    fn pgbench_at_rate(&self, server: &Server<'_>, scripts: &[String], rate: f64) -> Result<AtRate, Failure> {
        let logs = self.data.with_file_name("log");
        std::fs::create_dir_all(&logs)?;
        let mut command = pgbench(server, scripts, Length::Seconds(self.seconds + WARM_UP));
        command.args(["-R", &rate.to_string(), "-l", "--log-prefix", &shown(&logs.join("transactions"))]);
        text(&mut command)?;
        let transactions = read_logs(&logs)?;
        std::fs::remove_dir_all(&logs)?;
        let begin = transactions.iter().map(|(at, _)| *at).fold(f64::INFINITY, f64::min) + f64::from(WARM_UP);
        let end = transactions.iter().map(|(at, _)| *at).fold(0.0, f64::max);
        let mut times: Vec<f64> = transactions.into_iter().filter(|(at, _)| *at >= begin).map(|(_, ms)| ms).collect();
        times.sort_by(f64::total_cmp);
        let rank = (times.len() as f64 * 0.99).ceil() as usize;
        let p99_ms = *times.get(rank.saturating_sub(1)).ok_or("pgbench logged nothing")?;
        Ok(AtRate { per_second: times.len() as f64 / (end - begin), p99_ms })
    }
}

/// When each transaction ended, in seconds, and its time in milliseconds.
fn read_logs(folder: &Path) -> Result<Vec<(f64, f64)>, Failure> {
    let mut transactions = Vec::new();
    for log in std::fs::read_dir(folder)? {
        for line in std::fs::read_to_string(log?.path())?.lines() {
            // Client, number, time in us, script, second, microsecond, and how late it began.
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, _, time_us, _, second, micro, ..] = fields[..] else { return Err("a log of pgbench".into()) };
            let at = second.parse::<f64>()? + micro.parse::<f64>()? / 1e6;
            transactions.push((at, time_us.parse::<f64>()? / 1e3));
        }
    }
    Ok(transactions)
}
