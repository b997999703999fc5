//! `plimsoll failure`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child as Process, Command as Shell, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use clap::{Args, Subcommand};
use std::ffi::OsString;

use super::arguments::{FormatArgs, ProgressArgs, RunsArgs, Seconds};
use super::beside::loads::{Given, Load, Read, only};
use super::children::{Children, State};
use super::dry_run::DryRun;
use super::exit::{Exit, Failure};
use super::live::Watch;
use super::{Interrupt, say, sheets};
use analysis::{FailureCost, FailureMarks, Pause};
use measure::monotonic_ns;
use model::config::Tag;
use model::record::store;
use model::shown::shown;
use model::units::{Nanos, group_thousands};
use serde_json::json;
use targets::database::Sheet;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll failure run --inject 'ip link set eth1 down' \\
    --recover 'ip link set eth1 up' --after 5s -- \\
    orders run --rate 500 --users 32 --duration 60 \\
    --reconnect every --target postgres://bench@db1/bench
  plimsoll failure run --by-hand --max-pause 30s -- \\
    slob run -s 8 --rate 2000 --duration 300 --target pg:/u01/pg

Plimsoll does nothing to a machine by itself: a failure is a command that you type, or your own hand. The command of \
--recover runs whatever happens, once that of --inject has begun. A pattern of `pkill -f` matches Plimsoll as well, whose \
arguments hold it: use `pkill -x NAME`, or numbers of processes.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Cause a failure while a load goes on, and say what it cost
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(Box<RunArguments>),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Run(arguments) => run(&arguments),
        }
    }
}

const RUN_EXAMPLES: &str = "\
Examples:
  plimsoll failure run --inject 'systemctl restart postgresql' -- \\
    orders run --rate 200 --users 16 --duration 60 \\
    --reconnect every --target postgres://bench@db1/bench
  plimsoll failure run --inject 'multipathd fail path sdc' \\
    --recover 'multipathd reinstate path sdc' --after 20s -- \\
    io run --path /dev/mapper/u01 --rate 5000 --duration 60

Give the load a `--rate`: then operations are due whatever happens, and those that come meanwhile wait. Operations of a load without a \
rate stop coming, so what users feel is longer than what is shown.

Loads: `host run`, `io run`, `net run`, `orders run`, `slob run`.

Exit code 0: done, and no demand was missed. 1: a demand was missed, or the load exceeded its own `--limit`, or what it left is not sound. \
2: it could not be done.";

/// Arguments of `plimsoll failure run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The load, typed as a command of its own, behind `--`
    #[arg(value_name = "COMMAND", last = true, required = true)]
    words: Vec<OsString>,

    /// Shell command that causes the failure
    #[arg(long, value_name = "COMMAND", required_unless_present = "by_hand", help_heading = "Failure")]
    inject: Option<String>,

    /// When that runs, from the start of the measured window
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Failure")]
    at: Seconds,

    /// Shell command that ends the failure
    #[arg(long, value_name = "COMMAND", conflicts_with = "by_hand", help_heading = "Failure")]
    recover: Option<String>,

    /// When that runs, after the command of the failure has ended [default: 10s]
    #[arg(long, value_name = "TIME", requires = "recover", help_heading = "Failure")]
    after: Option<Seconds>,

    /// Mark a failure that you cause: Enter when it begins, and Enter when it is over
    #[arg(long, conflicts_with_all = ["inject", "at"], help_heading = "Failure")]
    by_hand: bool,

    /// Longest time without a completed operation that is allowed
    #[arg(long, value_name = "TIME", help_heading = "Demands")]
    max_pause: Option<Seconds>,

    /// No operation may fail, or never end
    #[arg(long, help_heading = "Demands")]
    no_errors: bool,

    /// A second is as before where its p99 is within this time [default: twice that before the failure]
    #[arg(long, value_name = "TIME", help_heading = "Demands")]
    p99: Option<Seconds>,

    /// Tag that says what varies between runs, such as `vm=d8s` (repeatable)
    #[arg(long = "tag", value_name = "KEY=VALUE", help_heading = "Output")]
    tags: Vec<Tag>,

    #[command(flatten)]
    runs: RunsArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    progress: ProgressArgs,

    /// Print what would be done, and exit
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    dry_run: bool,
}

const AFTER: Nanos = Nanos::seconds(10);
/// From the moment when the load is ready to its start.
const START_DELAY_NS: u64 = 250_000_000;
/// How long a command may go on once everything else has ended.
const LAST_COMMANDS: Duration = Duration::from_secs(30);
const LOOK_AROUND: Duration = Duration::from_millis(20);

fn run(arguments: &RunArguments) -> Result<Exit, Failure> {
    let store = arguments.runs.store();
    let given = Given { duration: None, warmup: None, tags: &arguments.tags, runs: store.path() };
    let (load, measured) = match only(&arguments.words, &given)? {
        Read::Loads(mut loads, measured) => (loads.remove(0), measured),
        Read::Refused(exit) => return Ok(exit),
    };
    let after = arguments.after.map_or(AFTER, |Seconds(time)| time);
    let last = Nanos(arguments.at.0.0.saturating_add(if arguments.recover.is_some() { after.0 } else { 0 }));
    if !arguments.by_hand && last >= measured.duration {
        let failure = Failure::new(format_args!(
            "the failure is over after {last}, and the load is measured for {}",
            measured.duration
        ));
        return Err(failure.with_hint("give the load a longer `--duration`, or lower `--at` and `--after`".to_owned()));
    }
    if arguments.dry_run {
        let command = |command: &String, when: String| format!("{when}: {}", shown(command));
        let at = format!("{} into the window", arguments.at.0);
        return DryRun::default()
            .fact("load", &load.typed)
            .fact("measured", format!("{} after {}", measured.duration, measured.warmup))
            .facts("failure", arguments.inject.as_ref().map(|inject| command(inject, at)))
            .facts("recovery", arguments.recover.as_ref().map(|recover| command(recover, format!("{after} later"))))
            .facts("failure", arguments.by_hand.then_some("at your first Enter; the recovery at your second"))
            .print(None, false);
    }
    let interrupt = Interrupt::listen()?;
    let came = carry_out(arguments, &load, (measured.warmup, after), &interrupt);
    let came = interrupt.judge(came)?;
    if let Some(exit) = interrupt.exit() {
        say::note("cut short; the run is kept, and what the failure cost is not known");
        return Ok(exit);
    }
    let record = store::load(&came.run)?;
    let cost = came.marks.and_then(|marks| FailureCost::of(&record, marks)).ok_or_else(|| {
        let failure = Failure::new("no failure was marked while the load was measured");
        failure.with_hint("press Enter when it begins; the run is kept".to_owned())
    })?;
    let demands = demands(arguments, &cost);
    let sheet = sheet(&cost, &demands, &record.id);
    let shown = match sheets::show(&sheet, arguments.format.format()) {
        Ok(_) | Err(Failure::PipeClosed) => Ok(()),
        Err(failure) => Err(failure),
    };
    // What the load itself says comes after what was asked here.
    came.load?;
    shown?;
    let is_missed = demands.iter().any(|(_, is_met)| !is_met);
    Ok(if is_missed { Exit::NotMet } else { came.limits.exit() })
}

/// What came of it.
struct Came {
    run: PathBuf,
    marks: Option<FailureMarks>,
    limits: super::supervisor::Kept,
    /// What the load says where it went well and left something that is not sound.
    load: Result<(), Failure>,
}

/// Runs the load, and what fails and recovers meanwhile.
fn carry_out(
    arguments: &RunArguments,
    load: &Load,
    (warmup, after): (Nanos, Nanos),
    interrupt: &Interrupt,
) -> Result<Came, Failure> {
    let mut children = Children::new();
    let watch = Watch::new(arguments.progress.verbosity());
    children.start(0, &load.arguments, BTreeMap::new(), true)?;
    let listen = |children: &mut Children| {
        children.listen();
        if interrupt.stop().is_asked() {
            children.stop();
        }
        let words = match children.all.first().map(|child| &child.state) {
            Some(State::Loading { words, .. }) => words.clone(),
            _ => "the load is made ready".to_owned(),
        };
        watch.show(|width| words.chars().take(width).collect(), Vec::new);
    };
    while !children.is_last_decided() {
        listen(&mut children);
    }
    let begin_ns = monotonic_ns() + START_DELAY_NS;
    if !children.is_stopped() {
        children.begin(begin_ns);
    }
    let mut failure = Caused::new(arguments, begin_ns, (warmup, after));
    while !children.are_gone() {
        listen(&mut children);
        if let Err(error) = failure.look(children.is_stopped()) {
            children.stop();
            while !children.are_gone() {
                listen(&mut children);
            }
            watch.end();
            return Err(error);
        }
    }
    watch.end();
    let recovered = failure.end();
    let ended = children.all.iter().find_map(|child| match &child.state {
        State::Ended { run, limits } => Some((run.clone(), *limits)),
        _ => None,
    });
    let load = children.failure().map_or(Ok(()), |(_, failure)| Err(failure));
    recovered?;
    let Some((run, limits)) = ended else {
        load?;
        return Err(Failure::new("the load ended without a run"));
    };
    let p99 = arguments.p99.map(|Seconds(time)| time);
    let marks = failure.failed_ns.map(|failed_ns| FailureMarks {
        failed: Nanos(failed_ns.saturating_sub(begin_ns)),
        recovered: failure.recovered_ns.map(|at_ns| Nanos(at_ns.saturating_sub(begin_ns))),
        p99,
    });
    Ok(Came { run, marks, limits, load })
}

/// The failure, by its commands or by hand. What was begun is ended, also where something else goes wrong.
struct Caused<'a> {
    inject: Option<&'a str>,
    recover: Option<&'a str>,
    keys: Option<Receiver<u64>>,
    at_ns: u64,
    after_ns: u64,
    injecting: Option<Process>,
    recovering: Option<Process>,
    failed_ns: Option<u64>,
    injected_ns: Option<u64>,
    recovered_ns: Option<u64>,
}

impl<'a> Caused<'a> {
    fn new(arguments: &'a RunArguments, begin_ns: u64, (warmup, after): (Nanos, Nanos)) -> Self {
        Self {
            inject: arguments.inject.as_deref(),
            recover: arguments.recover.as_deref(),
            keys: arguments.by_hand.then(keys),
            at_ns: begin_ns.saturating_add(warmup.0).saturating_add(arguments.at.0.0),
            after_ns: after.0,
            injecting: None,
            recovering: None,
            failed_ns: None,
            injected_ns: None,
            recovered_ns: None,
        }
    }

    /// Does what is due. Where the load is being ended, what has not begun is left out.
    fn look(&mut self, is_ending: bool) -> Result<(), Failure> {
        for at_ns in self.keys.iter().flat_map(Receiver::try_iter).collect::<Vec<_>>() {
            let (mark, word) = match self.failed_ns {
                None => (&mut self.failed_ns, "the failure begins"),
                Some(_) => (&mut self.recovered_ns, "the recovery"),
            };
            if mark.is_none() {
                *mark = Some(at_ns);
                say::line(format_args!("marked: {word}"));
            }
        }
        if self.failed_ns.is_none()
            && !is_ending
            && monotonic_ns() >= self.at_ns
            && let Some(command) = self.inject
        {
            say::line(format_args!("failure: {}", shown(command)));
            self.failed_ns = Some(monotonic_ns());
            self.injecting = Some(shell(command)?);
        }
        if ended(&mut self.injecting, self.inject)? {
            self.injected_ns = Some(monotonic_ns());
        }
        let is_due = |injected_ns: u64| is_ending || monotonic_ns() >= injected_ns.saturating_add(self.after_ns);
        if self.recovering.is_none() && self.recovered_ns.is_none() && self.injected_ns.is_some_and(is_due) {
            self.begin_recovery()?;
        }
        ended(&mut self.recovering, self.recover).map(drop)
    }

    fn begin_recovery(&mut self) -> Result<(), Failure> {
        let Some(command) = self.recover else { return Ok(()) };
        say::line(format_args!("recovery: {}", shown(command)));
        self.recovered_ns = Some(monotonic_ns());
        self.recovering = Some(shell(command)?);
        Ok(())
    }

    /// Ends what was begun, and waits for it.
    fn end(&mut self) -> Result<(), Failure> {
        let begun = std::time::Instant::now();
        let mut first = Ok(());
        while self.inject.is_some() && self.failed_ns.is_some() {
            let looked = self.look(true);
            if first.is_ok() {
                first = looked;
            }
            let is_done = self.injecting.is_none() && self.recovering.is_none();
            if is_done || begun.elapsed() >= LAST_COMMANDS {
                break;
            }
            std::thread::sleep(LOOK_AROUND);
        }
        first
    }
}

impl Drop for Caused<'_> {
    fn drop(&mut self) {
        if let Err(Failure::Reported(reported)) = self.end() {
            say::error(&reported.message);
        }
        if self.failed_ns.is_some() && self.recovered_ns.is_none() && self.begin_recovery().is_ok() {
            // The failure's command did not end, and is not waited for any more.
            let _ = self.recovering.take().map(|mut process| process.wait());
        }
    }
}

/// A command of the user's, out of reach of a Ctrl-C that ends the load.
fn shell(command: &str) -> Result<Process, Failure> {
    let mut shell = Shell::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(std::io::stderr()).process_group(0);
    shell.spawn().map_err(|error| Failure::new(format_args!("`{}`: {error}", shown(command))))
}

/// Whether a command has ended just now, and well.
fn ended(process: &mut Option<Process>, command: Option<&str>) -> Result<bool, Failure> {
    let command = command.unwrap_or_default();
    let Some(running) = process else { return Ok(false) };
    let waited = running.try_wait().map_err(|error| Failure::new(format_args!("`{}`: {error}", shown(command))))?;
    let Some(status) = waited else { return Ok(false) };
    *process = None;
    if status.success() {
        return Ok(true);
    }
    let failure = Failure::new(format_args!("`{}` ended with {status}", shown(command)));
    Err(failure.with_hint("try it by hand first: what it does to the load is then known".to_owned()))
}

/// The instants at which Enter is pressed.
fn keys() -> Receiver<u64> {
    let (pressed, keys) = mpsc::channel();
    say::line("Press Enter when the failure begins, and Enter when it is over");
    std::thread::spawn(move || {
        for _ in BufReader::new(std::io::stdin()).lines().map_while(Result::ok) {
            if pressed.send(monotonic_ns()).is_err() {
                return;
            }
        }
    });
    keys
}

/// Each demand, and whether it is met.
fn demands(arguments: &RunArguments, cost: &FailureCost) -> Vec<(String, bool)> {
    let pause = arguments
        .max_pause
        .map(|Seconds(most)| (format!("at most {most} without a completed operation"), cost.pause_ns() <= most.0));
    let errors =
        arguments.no_errors.then(|| ("no operation fails or never ends".to_owned(), cost.errors + cost.unended == 0));
    pause.into_iter().chain(errors).collect()
}

fn sheet(cost: &FailureCost, demands: &[(String, bool)], run: &str) -> Sheet {
    let listed: Vec<_> = demands.iter().map(|(demand, is_met)| json!({ "demand": demand, "met": is_met })).collect();
    let mut sheet = Sheet::of(json!({ "format": 1, "run": run, "demands": listed, "cost": cost }));
    for (demand, is_met) in demands {
        sheet.add(if *is_met { "yes" } else { "no" }, demand.clone());
    }
    sheet.add(
        "pause",
        match cost.pause {
            Pause::None => "none: operations were completed all the time".to_owned(),
            Pause::Seen { from_ns, length_ns } => {
                format!("{} without a completed operation, {} into the window", Nanos(length_ns), Nanos(from_ns))
            }
            Pause::AtLeast { length_ns } => format!("{} or longer without a completed operation", Nanos(length_ns)),
        },
    );
    if let Some(longest_ns) = cost.longest_ns {
        sheet.add("longest", format!("{} for one operation, from due to finished", Nanos(longest_ns)));
    }
    let since = if cost.recovered_ns.is_some() { "the recovery" } else { "the failure" };
    if let Some(backlog) = cost.backlog {
        let gone = cost.gone_after_ns.map(|ns| format!(", the last ended {} after {since}", Nanos(ns)));
        let backlog = group_thousands(backlog as f64);
        sheet.add("backlog", format!("{backlog} operations waited at its worst{}", gone.unwrap_or_default()));
    }
    sheet.add(
        "as before",
        match (cost.before, cost.as_before_after_ns) {
            (None, _) => "unknown: no whole second of the window was before the failure".to_owned(),
            (Some(_), Some(ns)) => format!("{} after {since}, to the end of the window", Nanos(ns)),
            (Some(_), None) => "not within the window".to_owned(),
        },
    );
    if let Some(before) = cost.before {
        let rate = group_thousands(before.rate_per_s);
        sheet.add("before", format!("{rate} operations/s, p99 {}", Nanos(before.p99_ns)));
    }
    sheet.add(
        "errors",
        match (cost.errors, cost.unended) {
            (0, 0) => "none".to_owned(),
            (errors, unended) => {
                let kinds = cost.errors_by_kind.iter().filter(|(_, many)| **many > 0);
                let kinds: Vec<String> = kinds.map(|(kind, many)| format!("{} {many}", shown(kind))).collect();
                let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
                format!("{errors} failed{kinds}, {unended} never ended")
            }
        },
    );
    if let Some(cause) = &cost.cause {
        sheet.add("cause", shown(cause).into_owned());
    }
    let recovered = cost.recovered_ns.map(|ns| format!(", recovery at {}", Nanos(ns)));
    sheet.add("marks", format!("failure at {} of the window{}", Nanos(cost.failed_ns), recovered.unwrap_or_default()));
    if !cost.has_rate {
        sheet.add("note", "the load has no `--rate`: operations that would have come meanwhile are not counted");
    }
    sheet.add("run", format!("`plimsoll report {run}` shows the whole of it"));
    sheet
}
