//! `plimsoll io calibrate --target`: a database calibrates its own storage, and what it says is set beside our own calibration.

use crate::cli::dry_run::DryRun;
use std::io::{self, Write};

use clap::Args;
use serde_json::json;

use crate::cli::arguments::{Format, KeepingArgs, Taken};
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::Verbosity;
use crate::cli::say;
use crate::databases::calibrate_io;
use analysis::{Calibration, LatencyCap, REPEATS, Statistic};
use model::config::TargetAddress;
use model::units::{Nanos, group_thousands};
use targets::database::{IoCalibration, IoCalibrationRequest};

/// Disks behind a database where nobody says how many, as `CALIBRATE_IO` has it.
const DEFAULT_DISKS: u32 = 1;
/// What an end by the user leaves behind.
const GOES_ON: &str = "the database goes on calibrating; that ends by itself";
const MILLISECOND: u64 = 1_000_000;
/// Flags that are about storage of our own.
const OF_STORAGE: [&str; 16] = [
    "paths",
    "group",
    "oranfstab",
    "size",
    "stripe",
    "mirror",
    "direct",
    "engine",
    "prefill",
    "destroy",
    "destroy_signature",
    "block_size",
    "duration",
    "warmup",
    "seed",
    "tags",
];

/// What only a database takes.
#[derive(Debug, Args)]
pub(super) struct DatabaseArgs {
    /// Oracle database that calibrates its own storage by CALIBRATE_IO, three times: `oracle://sys@HOST/SERVICE?role=sysdba`
    #[arg(long, value_name = "ADDRESS", help_heading = "Oracle", conflicts_with_all = OF_STORAGE)]
    target: Option<TargetAddress>,

    /// Disks behind the database, about [default: 1]
    #[arg(long, value_name = "N", help_heading = "Oracle", requires = "target", value_parser = clap::value_parser!(u32).range(1..))]
    disks: Option<u32>,

    /// Run of `io calibrate` on the same storage, whose answers are shown beside the database's
    #[arg(long, value_name = "RUN", help_heading = "Oracle", requires = "target")]
    beside: Option<String>,
}

impl DatabaseArgs {
    /// The database, if one is to calibrate its storage.
    pub(super) fn target(&self) -> Option<&TargetAddress> {
        self.target.as_ref()
    }
}

/// Our own answers: reads a second, megabytes a second, mean latency.
struct Ours {
    id: String,
    max_iops: Option<(f64, Nanos)>,
    max_mb_per_s: Option<f64>,
}

pub(super) fn run(
    address: &TargetAddress,
    arguments: &DatabaseArgs,
    cap: LatencyCap,
    keeping: &KeepingArgs,
) -> Result<Exit, Failure> {
    let request = IoCalibrationRequest {
        disks: arguments.disks.unwrap_or(DEFAULT_DISKS),
        max_latency_ms: whole_milliseconds(cap)?,
    };
    let ours = arguments.beside.as_deref().map(|word| ours(word, keeping)).transpose()?;
    if keeping.dry_run {
        let call = format!(
            "DBMS_RESOURCE_MANAGER.CALIBRATE_IO, {REPEATS} times, with {} disks and at most {} ms",
            request.disks, request.max_latency_ms
        );
        return DryRun::default().fact("target", address).fact("call", call).print(None, false);
    }
    let interrupt = Interrupt::listen()?;
    say::note(
        "nobody has run this on a real Oracle database yet: it was tested against a stand-in that speaks its protocol",
    );
    say::note(
        "CALIBRATE_IO reads all data files from all instances, so nothing else should run; the database keeps its answer",
    );
    interrupt.leaves(Some(GOES_ON.to_owned()));
    let mut answers = Vec::with_capacity(REPEATS);
    for number in 1..=REPEATS {
        if keeping.progress.verbosity() != Verbosity::Quiet {
            say::line(format_args!("CALIBRATE_IO {number} of {REPEATS}, which takes minutes"));
        }
        let answer = calibrate_io(address, &request, interrupt.flag()).map_err(Failure::from);
        let with_rest = |failure: Failure| match interrupt.exit() {
            Some(_) => failure.with_hint(GOES_ON.to_owned()),
            None => failure,
        };
        answers.push(interrupt.judge(answer).map_err(with_rest)?);
    }
    let median = median(&answers);
    match keeping.format.format() {
        Format::Json => say::json(&json!({
            "target": address.to_string(),
            "disks": request.disks,
            "max_latency_ms": request.max_latency_ms,
            "answers": answers,
            "median": median,
            "beside": ours.as_ref().map(|ours| json!({
                "run": ours.id,
                "max_iops": ours.max_iops.map(|(rate, _)| rate),
                "mean_latency_ns": ours.max_iops.map(|(_, mean)| mean.0),
                "max_mb_per_s": ours.max_mb_per_s,
            })),
        }))?,
        Format::Text => {
            let mut out = say::output();
            write(&mut out, &answers, &median, ours.as_ref())?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

/// CALIBRATE_IO limits the mean, in whole milliseconds.
fn whole_milliseconds(cap: LatencyCap) -> Result<u32, Failure> {
    let LatencyCap { statistic, limit } = cap;
    let whole = u32::try_from(limit.0 / MILLISECOND).ok().filter(|ms| *ms > 0 && limit.0 % MILLISECOND == 0);
    match (statistic, whole) {
        (Statistic::Mean, Some(ms)) => Ok(ms),
        _ => {
            let failure = Failure::new(format_args!("--max-latency: CALIBRATE_IO cannot keep `{cap}`"));
            Err(failure.with_hint("it limits the mean, in whole milliseconds: `--max-latency 10ms`".to_owned()))
        }
    }
}

fn ours(word: &str, keeping: &KeepingArgs) -> Result<Ours, Failure> {
    let (_, run) = Taken::default().load(&keeping.runs.store(), word)?;
    let Some(Calibration { max_iops, max_bytes, .. }) = Calibration::of(&run) else {
        let failure = Failure::new(format_args!("run `{}` is none of `plimsoll io calibrate`", run.id));
        return Err(failure.with_hint("name one that is: `plimsoll runs` lists them".to_owned()));
    };
    Ok(Ours {
        id: run.id,
        max_iops: max_iops.map(|answer| (answer.rate.value, answer.mean)),
        max_mb_per_s: max_bytes.map(|answer| answer.rate.value / 1e6),
    })
}

/// Of each figure by itself. There is an odd number of answers.
fn median(answers: &[IoCalibration]) -> IoCalibration {
    let of = |figure: fn(&IoCalibration) -> u64| {
        let mut figures: Vec<u64> = answers.iter().map(figure).collect();
        figures.sort_unstable();
        figures[figures.len() / 2]
    };
    IoCalibration {
        max_iops: of(|answer| answer.max_iops),
        max_mb_per_s: of(|answer| answer.max_mb_per_s),
        latency_ms: of(|answer| answer.latency_ms),
    }
}

fn write(
    out: &mut impl Write,
    answers: &[IoCalibration],
    median: &IoCalibration,
    ours: Option<&Ours>,
) -> io::Result<()> {
    let mut row = |of: &str, iops: String, mb_per_s: String, latency: String| {
        writeln!(out, "{of:<16} {iops:>12} {mb_per_s:>9} {latency:>10}")
    };
    let group = |figure: f64| group_thousands(figure.round());
    row("", "max_iops".to_owned(), "MB/s".to_owned(), "latency".to_owned())?;
    let numbered = answers.iter().enumerate().map(|(at, answer)| (format!("CALIBRATE_IO {}", at + 1), answer));
    for (of, answer) in numbered.chain([("median".to_owned(), median)]) {
        let latency = match answer.latency_ms {
            0 => "< 1 ms".to_owned(),
            ms => format!("{ms} ms"),
        };
        row(&of, group(answer.max_iops as f64), group(answer.max_mb_per_s as f64), latency)?;
    }
    let Some(Ours { id, max_iops, max_mb_per_s }) = ours else { return Ok(()) };
    let unknown = || "-".to_owned();
    row(
        "ours",
        max_iops.map_or_else(unknown, |(rate, _)| group(rate)),
        max_mb_per_s.map_or_else(unknown, group),
        max_iops.map_or_else(unknown, |(_, mean)| mean.to_string()),
    )?;
    writeln!(out, "\nours: run {id}; megabytes are of 10^6 bytes there, and the database does not say which it means")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(max_iops: u64, max_mb_per_s: u64, latency_ms: u64) -> IoCalibration {
        IoCalibration { max_iops, max_mb_per_s, latency_ms }
    }

    #[test]
    fn only_what_calibrate_io_can_keep_is_asked_of_it() {
        let asked = |text: &str| whole_milliseconds(text.parse().unwrap()).ok();
        assert_eq!([asked("10ms"), asked("mean=20ms"), asked("1s")], [Some(10), Some(20), Some(1000)]);
        assert_eq!([asked("p99=10ms"), asked("500us"), asked("1500us")], [None; 3]);
    }

    #[test]
    fn answers_stand_beside_ours_and_what_is_unknown_is_no_zero() {
        let answers = [answer(9000, 900, 8), answer(12_000, 850, 0), answer(11_000, 1000, 9)];
        let middle = median(&answers);
        assert_eq!(middle, answer(11_000, 900, 8));
        let ours = Ours { id: "r1".to_owned(), max_iops: None, max_mb_per_s: Some(812.4) };
        let mut out = Vec::new();
        write(&mut out, &answers, &middle, Some(&ours)).unwrap();
        let lines: Vec<Vec<String>> = String::from_utf8(out)
            .unwrap()
            .lines()
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect();
        assert_eq!(lines[2], ["CALIBRATE_IO", "2", "12,000", "850", "<", "1", "ms"]);
        assert_eq!(lines[4], ["median", "11,000", "900", "8", "ms"]);
        assert_eq!(lines[5], ["ours", "-", "812", "-"]);
    }
}
