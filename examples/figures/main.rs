//! Measures the figures of dev/performance.md, side by side with fio, in alternating runs, and prints them as Markdown.
//!
//! `make bench` runs it. Nothing is tuned here: fio gets the flags that its users give it, and Plimsoll its defaults.
//!
//! `figures FOLDER [ROUNDS SECONDS [PART...]]`: so many alternating runs of so many seconds each, of all parts or of some. A part
//! is named as a whole or by the words that it begins with: `orders` is all parts about order entry.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own, not a part of the library")]

mod fleet;
#[path = "../../tests/nfs/ganesha.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "a part of the tests, of which this uses a part")]
mod ganesha;
#[path = "../../tests/throttle/group.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "a part of the tests, of which this uses a part")]
mod group;
mod history;
mod host;
mod imports;
mod layouts;
#[cfg(feature = "oracle")]
#[path = "../../tests/oracle/model/mod.rs"]
#[allow(dead_code, unused_imports, clippy::unwrap_used, reason = "a part of the tests, of which this uses a part")]
mod model;
mod mysql;
mod network;
#[cfg(feature = "oracle")]
mod oracle;
mod orders;
mod pages;
mod postgres;
mod replay;
#[cfg(feature = "oracle")]
#[path = "../../tests/oracle/responder/mod.rs"]
#[allow(unused_imports, reason = "a part of the tests, of which this uses a part")]
mod responder;
use test_support::scratch;
mod server;
use test_support::skip;
mod slob;
mod storage;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use serde_json::Value;

type Failure = Box<dyn std::error::Error>;

/// What prints one or more rows.
type Measure = fn(&Bench) -> Result<(), Failure>;

/// Everything that is measured, by the word that selects it. All parts about the engine need its set-up.
const PARTS: &[(&str, Measure)] = &[
    ("set-up", Bench::set_up),
    ("engine-reads", Bench::engine_reads),
    ("cached-reads", Bench::cached_reads),
    ("memory", Bench::memory),
    ("random", Bench::random_reads),
    ("single", Bench::single_reads),
    ("sequential", Bench::sequential),
    ("page-cache", Bench::page_cached_reads),
    ("open-loop", Bench::open_loop),
    ("replay", Bench::replay),
    ("nfs-reads", Bench::nfs_reads),
    ("nfs-paths", Bench::nfs_paths),
    ("group-reads", Bench::group_reads),
    ("flash-reads", Bench::flash_reads),
    ("server-load", Bench::server_load),
    ("server-reads", Bench::server_reads),
    ("traced-reads", Bench::traced_reads),
    ("mysql-load", Bench::mysql_load),
    ("mysql-reads", Bench::mysql_reads),
    ("mysql-counters", Bench::mysql_counters),
    #[cfg(feature = "oracle")]
    ("oracle-client", Bench::oracle_client),
    ("orders-pgbench", Bench::orders_pgbench),
    ("orders-procedures", Bench::orders_procedures),
    ("orders-rate", Bench::orders_rate),
    ("orders-sysbench", Bench::orders_sysbench),
    ("orders-mariadb", Bench::orders_mariadb),
    ("orders-users", Bench::orders_users),
    ("orders-load", Bench::orders_load),
    ("orders-import", Bench::orders_import),
    ("orders-audit", Bench::orders_audit),
    ("host-memory", Bench::host_memory),
    ("host-repeat", Bench::host_repeat),
    ("net-bulk", Bench::net_bulk),
    ("net-veth", Bench::net_veth),
    ("net-answers", Bench::net_answers),
    ("net-rate", Bench::net_rate),
    ("fleet-postgres", Bench::fleet_postgres),
    ("fleet-merge", Bench::fleet_merge),
    ("report-page", Bench::report_page),
    ("listed-runs", Bench::listed_runs),
    ("compared-runs", Bench::compared_runs),
    ("history-made-up", Bench::made_up_histories),
    ("history-real", Bench::real_history),
    ("imported-reports", Bench::imported_reports),
];

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
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize, usual: &str| words.get(index).cloned().unwrap_or_else(|| usual.to_owned());
    let folder = PathBuf::from(word(0, "./plimsoll-bench"));
    let bench = Bench {
        program: std::env::current_exe()?.parent().and_then(Path::parent).ok_or("no target folder")?.join("plimsoll"),
        data: folder.join("data"),
        runs: folder.join("runs"),
        scratch: folder.join("fio.dat"),
        raw: folder.join("raw.dat"),
        rounds: word(1, "5").parse()?,
        seconds: word(2, "10").parse()?,
    };
    let chosen = words.get(3..).unwrap_or_default();
    let means = |word: &String, name: &str| {
        name == word || name.strip_prefix(word.as_str()).is_some_and(|rest| rest.starts_with('-'))
    };
    if let Some(unknown) = chosen.iter().find(|word| PARTS.iter().all(|(name, _)| !means(word, name))) {
        return Err(format!("there is no part `{unknown}`").into());
    }
    std::fs::create_dir_all(&folder)?;
    println!("{}\n", bench.machine()?);
    figure("| figure | Plimsoll | theirs | ratio, median of pairs | asked | |");
    figure("| --- | ---: | ---: | ---: | ---: | --- |");
    // A part that fails is named where its figure would be, and the others go on.
    let mut failed = Vec::new();
    for (name, measure) in PARTS {
        if (chosen.is_empty() || chosen.iter().any(|word| means(word, name)))
            && let Err(error) = measure(&bench)
        {
            figure(&format!("| {name} | not measured | | | | {} |", error.to_string().replace(['\n', '|'], " ")));
            failed.push(*name);
        }
    }
    std::fs::remove_dir_all(&folder)?;
    if failed.is_empty() { Ok(()) } else { Err(format!("parts without a figure: {}", failed.join(", ")).into()) }
}

struct Bench {
    program: PathBuf,
    /// Directory of the embedded engine.
    data: PathBuf,
    runs: PathBuf,
    /// File that fio makes for itself.
    scratch: PathBuf,
    /// File that both sides read and write.
    raw: PathBuf,
    /// Alternating runs of each side.
    rounds: usize,
    seconds: u32,
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

    fn plimsoll_text(&self, arguments: &[&str]) -> Result<String, Failure> {
        text(Command::new(&self.program).args(arguments))
    }

    fn fio(&self, arguments: &[&str]) -> Result<Value, Failure> {
        let output = text(Command::new("fio").args(["--name=bench", "--output-format=json"]).args(arguments))?;
        let begin = output.find('{').ok_or("fio printed no JSON")?;
        Ok(serde_json::from_str(&output[begin..])?)
    }
}

/// Runs ours and theirs one after the other; who comes first changes from round to round, so that neither has the better
/// place.
fn in_turn<T, U>(
    round: usize,
    ours: impl FnOnce() -> Result<T, Failure>,
    theirs: impl FnOnce() -> Result<U, Failure>,
) -> Result<(T, U), Failure> {
    if round.is_multiple_of(2) {
        let theirs = theirs()?;
        Ok((ours()?, theirs))
    } else {
        let ours = ours()?;
        Ok((ours, theirs()?))
    }
}

/// What a ratio of ours to theirs should be.
#[derive(Clone, Copy)]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// Shown beside what is asked for.
    Nothing,
}

/// Prints the medians of pairs of ours and theirs, with so many digits, and the median of their ratios.
fn ratios(what: &str, pairs: &[(f64, f64)], digits: usize, asked: Goal) {
    let (ours, theirs) = (median(pairs.iter().map(|pair| pair.0)), median(pairs.iter().map(|pair| pair.1)));
    let ratio = median(pairs.iter().map(|(ours, theirs)| ours / theirs));
    let (words, verdict) = match asked {
        Goal::AtLeast(least) => (format!("at least {least:.2}"), verdict(ratio >= least)),
        Goal::AtMost(most) => (format!("at most {most:.2}"), verdict(ratio <= most)),
        Goal::Nothing => ("-".to_owned(), ""),
    };
    figure(&format!("| {what} | {ours:.digits$} | {theirs:.digits$} | {ratio:.3} | {words} | {verdict} |"));
}

/// Prints one row.
fn figure(row: &str) {
    println!("{row}");
}

fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "MISSED" }
}

/// The middle value, or the mean of the two in the middle.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let (below, above) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    (below + above) / 2.0
}

/// The run in a document that `--json` printed; a document without one stays as it is.
fn run_of(document: &str) -> Result<Value, Failure> {
    let mut document: Value = serde_json::from_str(document)?;
    Ok(match document.get_mut("run") {
        Some(run) => run.take(),
        None => document,
    })
}

/// Seconds of processor time of the children that ended so far.
fn children_cpu() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Fields 16 and 17 in ticks of a hundredth of a second; the name in field 2 may hold spaces.
    let after_name = stat.rsplit_once(") ").ok_or("no name in /proc/self/stat")?.1;
    let ticks: Vec<f64> =
        after_name.split(' ').skip(13).take(2).map(str::parse).collect::<Result<_, std::num::ParseFloatError>>()?;
    Ok(ticks.iter().sum::<f64>() / 100.0)
}

fn number(value: &Value) -> Result<f64, Failure> {
    value.as_f64().ok_or_else(|| format!("a number is missing: {value}").into())
}

fn text(command: &mut Command) -> Result<String, Failure> {
    let begin = Instant::now();
    let output = command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if !output.status.success() {
        let reported = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed after {:.1?}: {}", begin.elapsed(), reported.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
