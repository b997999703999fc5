//! `plimsoll tour`: what the program answers, shown on storage that is simulated, by commands that can be typed again.

use std::io::{BufRead, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::dry_run::DryRun;
use super::exit::{Exit, Failure, exit_code_of_signal};
use super::{Interrupt, say};
use files::How;
use model::units::shell_split;
use report::wrap;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll tour
  plimsoll tour --keep                   its runs stay, to be looked at again
  plimsoll tour --no-pause > tour.txt

On a terminal it waits for Enter before each part. It measures a simulation, in simulated time. It writes only its \
runs, in a folder that it names, and removes at the end.";

/// This very program, also if its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// What another program printed, for the part about results that somebody already has.
const SPECIMEN: (&str, &str) = ("fio.txt", include_str!("../../examples/tour/fio.txt"));
/// Columns of words where the terminal has more.
const WIDEST: usize = 100;

/// Arguments of `plimsoll tour`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Do not wait for Enter, also on a terminal
    #[arg(long, help_heading = "Output")]
    no_pause: bool,

    /// Keep the folder with its runs [default: ask on a terminal, else remove it]
    #[arg(long, help_heading = "Output")]
    keep: bool,

    /// Print what would be done, and exit
    #[arg(long, conflicts_with = "keep", help_heading = "Output")]
    dry_run: bool,
}

/// One part of it.
struct Stop {
    title: &'static str,
    /// What is about to be shown, and why anybody asks.
    before: &'static str,
    commands: &'static [&'static str],
    /// What to see in what was printed.
    after: &'static str,
}

const STOPS: [Stop; 5] = [
    Stop {
        title: "The load line",
        before: "How much load does a platform sustain before it sinks? Here 8 disks that take 500 us for each read get more and more \
                 sessions that read random blocks, as SLOB's do. The load line is the most reads per second at which the 99th \
                 percentile still keeps a limit, here 2 ms.",
        commands: &[
            "slob sweep --threads 1,2,4,8,16,32,64 UPDATE_PCT=0 RUN_TIME=10 --warmup 1s --limit p99=2ms --quiet --target \
             sim:service=500us,spread=lognormal:0.3,servers=8,clock=simulated",
        ],
        after: "The first sentence is the answer; it may be repeated without the rest. From 8 sessions on more of them only wait \
                longer, and at 32 the limit is broken.",
    },
    Stop {
        title: "A cap",
        before: "Clouds sell volumes with so many requests per second. Here is one of 5,000, like an Azure P30, \
             under more and more requests at a time.",
        commands: &[
            "io sweep --path sim:service=500us,servers=64,iops_cap=5000,burst=40000:10ms,clock=simulated --pattern randread \
             --depth 1,2,4,8,16,32 --duration 10 --warmup 1 --quiet",
        ],
        after: "What stopped it holds the rate to the request, and after a pause it lets a burst through: software does that, and no device. \
                Which published volumes have this cap is said too. More requests at a time buy nothing but latency.",
    },
    Stop {
        title: "A credit",
        before: "Some volumes are fast as long as a credit lasts, then slow: a short test measures the credit. This \
             one gives 600 requests/s for 10 minutes, then 100. Half an hour passes in a moment, since its time is \
             simulated.",
        commands: &["io soak --path sim:iops_cap=100,burst=600:10m,clock=simulated --duration 30m --warmup 0 --quiet"],
        after: "The answer is what remains, not the mean. On a real volume `plimsoll io soak --duration 2h` finds out the same.",
    },
    Stop {
        title: "A comparison",
        before: "Is the new volume worse than the old one, or is that chance? The new one here takes 550 us instead of 500.",
        commands: &[
            "io run --path sim:service=500us,servers=8,spread=exponential,clock=simulated,seed=1 --pattern randread --depth 4 \
             --duration 20 --warmup 1 --tag volume=old --quiet",
            "io run --path sim:service=550us,servers=8,spread=exponential,clock=simulated,seed=2 --pattern randread --depth 4 \
             --duration 20 --warmup 1 --tag volume=new --quiet",
            "compare volume=old volume=new",
        ],
        after: "Every change has an interval, and the exit code is 1 where a figure is worse, so that a pipeline can stop there. Real \
                comparisons are made of repeats in turns: `plimsoll experiment` does that.",
    },
    Stop {
        title: "An import",
        before: "What other programs measured becomes a run like any other: AWR and Statspack reports, fio, ORION, Swingbench and many \
                 more. This is what fio prints for a volume with that cap of 5,000.",
        commands: &["import fio.txt --tag from=fio", "report from=fio"],
        after: "What fio did not print stays unknown, and is not made up.",
    },
];

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.dry_run {
        let titled = STOPS.iter().fold(DryRun::default(), |it, stop| {
            let commands = stop.commands.iter();
            commands.fold(it.line(stop.title), |it, command| it.line(format_args!("  plimsoll {command}")))
        });
        return titled.print(None, true);
    }
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let pauses = is_terminal && !arguments.no_pause;
    let folder = make_folder()?;
    let (ended, keep) = (folder.clone(), arguments.keep);
    Interrupt::end_with(move || {
        if !keep {
            let _ = files::remove_tree(&ended);
        }
        signal_hook::low_level::exit(i32::from(exit_code_of_signal(signal_hook::consts::SIGINT)));
    })?;
    let shown = show_all(&folder, pauses, pauses || keep);
    let keep = keep || (shown.is_ok() && pauses && wants_to_keep(&folder)?);
    if keep {
        say::line(format_args!("The runs are kept in `{0}`: `plimsoll runs list --runs {0}`", folder.display()));
    } else {
        files::remove_tree(&folder)
            .map_err(|error| Failure::new(format_args!("cannot remove `{}`: {error}", folder.display())))?;
    }
    shown.map(|()| Exit::Done)
}

/// A folder of its own that nobody had made before.
fn make_folder() -> Result<PathBuf, Failure> {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let folder = std::env::temp_dir().join(format!("plimsoll-tour-{now}-{}", std::process::id()));
    let specimen = || files::make_new(&folder.join(SPECIMEN.0), How::default())?.write_all(SPECIMEN.1.as_bytes());
    let made = files::make_directory(&folder, 0o700).and_then(|()| specimen());
    made.map_err(|error| {
        let failure = Failure::new(format_args!("cannot make `{}`: {error}", folder.display()));
        failure.with_hint("name another directory for it: `TMPDIR=DIR plimsoll tour`".to_owned())
    })?;
    Ok(folder)
}

fn show_all(folder: &Path, pauses: bool, may_stay: bool) -> Result<(), Failure> {
    let stays = format!(
        "Five things that plimsoll answers, on simulated storage. Each command can be typed again, in the folder in which the runs are:\n\n    \
         cd {0}\n    export PLIMSOLL_RUNS={0}",
        folder.display()
    );
    let removed = "Five things that plimsoll answers, on simulated storage. The runs are removed at the end: `plimsoll tour --keep` keeps them.";
    words(if may_stay { &stays } else { removed })?;
    for (number, stop) in (1..).zip(&STOPS) {
        let title = format!("{number}. {}", stop.title);
        words(&format!("\n{title}\n{}\n\n{}", "=".repeat(title.chars().count()), stop.before))?;
        if pauses {
            wait_for_enter("Enter goes on. ")?;
        }
        for command in stop.commands {
            words(&format!("\n    plimsoll {command}\n"))?;
            show(command, folder)?;
        }
        words(&format!("\n{}", stop.after))?;
    }
    words(
        "\nOn your own machine, `plimsoll doctor` checks whether it is fit for measuring. `plimsoll check --reads \
         3000@5ms /u01` answers whether it sustains that load. Each command has `--help` with examples.",
    )
}

/// Paragraphs, each broken into lines; what is indented stays as it is.
fn words(text: &str) -> Result<(), Failure> {
    let mut out = say::output();
    for line in text.lines() {
        if line.starts_with(' ') || line.is_empty() {
            writeln!(out, "{line}")?;
        } else {
            wrap(line, say::width().min(WIDEST)).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Runs a command as its user would, in the folder. That a run is worse than another is what is to be shown.
fn show(command: &str, folder: &Path) -> Result<(), Failure> {
    let failed = |what: &dyn std::fmt::Display| Failure::new(format_args!("`plimsoll {command}`: {what}"));
    let arguments = shell_split(command).ok_or_else(|| failed(&"a quotation mark is not closed"))?;
    let mut process = Command::new(PROGRAM);
    process.arg0("plimsoll").args(arguments).current_dir(folder).env("PLIMSOLL_RUNS", folder);
    let status = process.status().map_err(|error| failed(&error))?;
    if matches!(status.code(), Some(0 | 1)) { Ok(()) } else { Err(failed(&format_args!("it ended with {status}"))) }
}

/// What was typed before Enter.
fn wait_for_enter(prompt: &str) -> Result<String, Failure> {
    let mut out = say::output();
    write!(out, "\n{prompt}")?;
    out.flush()?;
    drop(out);
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_lowercase())
}

fn wants_to_keep(folder: &Path) -> Result<bool, Failure> {
    let answer = wait_for_enter(&format!("Keep the runs in {}? [y/N] ", folder.display()))?;
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_shown_can_be_typed() {
        for command in STOPS.iter().flat_map(|stop| stop.commands) {
            let words = shell_split(command).unwrap();
            let typed: Vec<std::ffi::OsString> =
                ["plimsoll".to_owned()].into_iter().chain(words).map(Into::into).collect();
            assert!(super::super::parse(&typed).is_ok(), "{command}");
        }
    }
}
