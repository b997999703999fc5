//! `plimsoll failure`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::PipeWriter;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Stdio};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};

use super::arguments::{FormatArgs, Measured, ProgressArgs, RunsArgs, Seconds};
use super::beside::loads::{Given, Load, Read, only};
use super::children::{self, Children, State};
use super::dry_run::DryRun;
use super::exit::{Exit, Failure};
use super::live::Watch;
use super::marks::Marks;
use super::shell::{end_group, ended, shell};
use super::supervisor::{Kept, Said, Supervisor};
use super::token::TokenOf;
use super::{Interrupt, say, sheets};
use analysis::{FailureCost, FailureDemand};
use measure::monotonic_ns;
use model::config::Tag;
use model::record::store::{self, Store};
use model::record::{FailureMarks, Outcome};
use model::shown::shown;
use model::units::Nanos;
use serde_json::json;
use serve::Listen;
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

Loads: `host run`, `io run`, `net run`, `orders run`, `slob run`. A file of several failures, each repeated, is an experiment: \
`examples/failures.toml`.

Exit code 0: done, and no demand was missed. 1: a demand was missed, or the load exceeded its own `--limit`, or what it left is not sound. \
2: it could not be done.";

/// Arguments of `plimsoll failure run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The load, typed as a command of its own, behind `--`
    #[arg(value_name = "COMMAND", last = true, required = true)]
    words: Vec<OsString>,

    /// Shell command that causes the failure
    #[arg(long, value_name = "COMMAND", required_unless_present_any = ["by_hand", "listen"], help_heading = "Failure")]
    inject: Option<String>,

    /// When that runs, from the start of the measured window
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Failure")]
    at: Seconds,

    /// Shell command that ends the failure
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["by_hand", "listen"], help_heading = "Failure")]
    recover: Option<String>,

    /// When that runs, after the command of the failure has ended [default: 10s]
    #[arg(long, value_name = "TIME", requires = "recover", help_heading = "Failure")]
    after: Option<Seconds>,

    /// Mark a failure that you cause: Enter when it begins, and Enter when it is over
    #[arg(long, conflicts_with_all = ["inject", "at"], help_heading = "Failure")]
    by_hand: bool,

    /// Address and port to listen on, such as 127.0.0.1:8321 or [::1]:8321 (port 0: any free one)
    ///
    /// POST /failure marks its begin, POST /recovery its end; PLIMSOLL_MARKS_TOKEN is the token.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["inject", "at"], help_heading = "Failure")]
    listen: Option<Listen>,

    /// Longest time without a completed operation that is allowed
    #[arg(long, value_name = "TIME", help_heading = "Demands")]
    max_pause: Option<Seconds>,

    /// No operation may fail, or be due and never sent, or never end
    ///
    /// Attempts to connect that fail are counted apart.
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
/// A load that is on says something each second.
const SAYS_NOTHING: Duration = Duration::from_secs(5);
/// How long a command may go on once everything else has ended.
const LAST_COMMANDS: Duration = Duration::from_secs(60);
const LOOK_AROUND: Duration = Duration::from_millis(20);

fn run(arguments: &RunArguments) -> Result<Exit, Failure> {
    let store = arguments.runs.store();
    let given = Given {
        command: "failure run",
        duration: None,
        warmup: None,
        tags: &arguments.tags,
        push: Vec::new(),
        runs: store.path(),
    };
    let (load, measured) = match only(&arguments.words, &given)? {
        Read::Loads(mut loads, measured) => (loads.remove(0), measured),
        Read::Refused(exit) => return Ok(exit),
    };
    let supervisor = Supervisor::of_this_process();
    if supervisor.is_some() && arguments.by_hand {
        let failure = Failure::new("`--by-hand` needs the keys of a person, and a step of an experiment has none");
        return Err(failure.with_hint("cause the failure by `--inject`".to_owned()));
    }
    let has_token = std::env::var(TokenOf::Marks.variable()).is_ok_and(|token| !token.trim().is_empty());
    if supervisor.is_some() && arguments.listen.is_some_and(|listen| listen.0.port() == 0 || !has_token) {
        let failure =
            Failure::new("the token and the port that a step of an experiment picks by itself cannot be seen");
        let hint = format!("set {}, and name a port", TokenOf::Marks.variable());
        return Err(failure.with_hint(hint));
    }
    let after = arguments.after.map_or(AFTER, |Seconds(time)| time);
    let last = Nanos(arguments.at.0.0.saturating_add(if arguments.recover.is_some() { after.0 } else { 0 }));
    if arguments.inject.is_some() && last >= measured.duration {
        let failure = Failure::new(format_args!(
            "the failure is over after {last}, and the load is measured for {}",
            measured.duration
        ));
        return Err(failure.with_hint("give the load a longer `--duration`, or lower `--at` and `--after`".to_owned()));
    }
    if arguments.dry_run {
        let planned = children::planned(&load.arguments)?;
        let command = |command: &String, when: String| format!("{when}: {}", shown(command));
        let at = format!("{} into the window", arguments.at.0);
        return DryRun::default()
            .fact("load", &load.typed)
            .fact("measured", format!("{} after {}", measured.duration, measured.warmup))
            .facts("failure", arguments.inject.as_ref().map(|inject| command(inject, at)))
            .facts("recovery", arguments.recover.as_ref().map(|recover| command(recover, format!("{after} later"))))
            .facts("failure", arguments.by_hand.then_some("at your first Enter; the recovery at your second"))
            .facts(
                "failure",
                arguments.listen.map(|address| format!("at a POST to /failure on {address}, or to /recovery")),
            )
            .print(planned.time, planned.is_simulated);
    }
    let interrupt = Interrupt::listen()?;
    let came = carry_out(arguments, &load, (measured, after), &interrupt);
    let came = interrupt.judge(came)?;
    if let Some(exit) = interrupt.exit() {
        say::note("cut short; the run is kept, and what the failure cost is not known");
        return Ok(exit);
    }
    let mut record = store::load(&came.run)?;
    record.steps.iter_mut().for_each(|step| step.failure = came.marks);
    let no_failure = || {
        let failure = Failure::new("no failure was marked while the load was measured");
        failure.with_hint("press Enter, or POST to /failure, when it begins; the run is kept".to_owned())
    };
    let (marks, cost) = came.marks.zip(FailureCost::of(&record)).ok_or_else(no_failure)?;
    let demands = cost.demands(marks);
    let answers: Vec<Option<bool>> = demands.iter().map(|demand| demand.met).collect();
    let met = match answers.iter().find(|answer| **answer != Some(true)) {
        None => Kept::Yes,
        Some(_) if answers.contains(&Some(false)) => Kept::No,
        Some(_) => Kept::Unknown,
    };
    if let Some(supervisor) = supervisor {
        came.load?;
        came.kept?;
        supervisor.say(&Said::Ended { run: came.run, limits: met.max(came.limits) });
        return Ok(Exit::Done);
    }
    let sheet = sheet(&cost, &demands, &record.id);
    let shown = match sheets::show(&sheet, arguments.format.format()) {
        Ok(_) | Err(Failure::PipeClosed) => Ok(()),
        Err(failure) => Err(failure),
    };
    // What the load itself says comes after what was asked here.
    came.load?;
    shown?;
    came.kept?;
    Ok(met.max(came.limits).exit())
}

/// What came of it.
struct Came {
    run: PathBuf,
    marks: Option<FailureMarks>,
    /// Whether the record has these.
    kept: Result<(), Failure>,
    limits: Kept,
    /// What the load says where it went well and left something that is not sound.
    load: Result<(), Failure>,
}

/// Runs the load, and what fails and recovers meanwhile.
fn carry_out(
    arguments: &RunArguments,
    load: &Load,
    (measured, after): (Measured, Nanos),
    interrupt: &Interrupt,
) -> Result<Came, Failure> {
    let mut children = Children::new();
    let watch = Watch::new(arguments.progress.verbosity());
    let Measured { warmup, duration, .. } = measured;
    let marks = Marks::default();
    if let Some(address) = arguments.listen {
        marks.by_http(address)?;
    }
    if arguments.by_hand {
        marks.by_enter();
    }
    let supervisor = Supervisor::of_this_process();
    let tags = supervisor.map_or_else(BTreeMap::new, |supervisor| supervisor.tags().clone());
    children.start(0, &load.arguments, tags, true)?;
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
    let from_ns = begin_ns.saturating_add(warmup.0);
    marks.measured(from_ns..from_ns.saturating_add(duration.0));
    let mut failure = Caused::new(arguments, begin_ns, (warmup, after), marks);
    let (mut heard, mut first) = ((0, Instant::now()), Ok(()));
    while !children.are_gone() {
        listen(&mut children);
        let (over_ns, words) = match children.all.first().map(|child| &child.state) {
            Some(State::Loading { over_ns, words }) => (Some(*over_ns), words.as_str()),
            Some(State::Ready) => (Some(0), ""),
            _ => (None, ""),
        };
        if let Some(over_ns) = over_ns.filter(|over_ns| *over_ns != heard.0) {
            heard = (over_ns, Instant::now());
            let second = Said::Second { over_ns, words: words.to_owned() };
            supervisor.into_iter().for_each(|supervisor| supervisor.say(&second));
        }
        // A load that says nothing any more has ended, and nothing would be measured.
        let is_on = over_ns.is_some() && heard.1.elapsed() < SAYS_NOTHING.max(warmup.as_duration());
        let looked = failure.look(is_on && !children.is_stopped(), children.is_stopped());
        if looked.is_err() && first.is_ok() {
            first = looked;
            children.stop();
        }
    }
    watch.end();
    let recovered = failure.end();
    let ended = children.all.iter().find_map(|child| match &child.state {
        State::Ended { run, limits } => Some((run.clone(), *limits)),
        _ => None,
    });
    let load = children.failure().map_or(Ok(()), |(_, failure)| Err(failure));
    let ns = |given: Option<Seconds>| given.map(|Seconds(time)| time.0);
    let marks = failure.failed_ns.map(|failed_ns| FailureMarks {
        failed_ns: failed_ns.saturating_sub(begin_ns),
        recovered_ns: failure.recovered_ns.map(|at_ns| at_ns.saturating_sub(begin_ns)),
        p99_ns: ns(arguments.p99),
        max_pause_ns: ns(arguments.max_pause),
        no_errors: arguments.no_errors,
    });
    // However the rest ended: a run whose target was made to fail is not like others.
    let kept = match (&ended, marks) {
        (Some((run, _)), Some(marks)) => {
            let error = [&first, &recovered].into_iter().find_map(|ended| ended.as_ref().err());
            keep(&arguments.runs.store(), run, marks, error)
        }
        _ => Ok(()),
    };
    first?;
    recovered?;
    let Some((run, limits)) = ended else {
        load?;
        return Err(Failure::new("the load ended without a run"));
    };
    Ok(Came { run, marks, kept, limits, load })
}

/// Writes the marks into the record of a run; with `error`, that its failure is not the one that was requested.
fn keep(store: &Store, run: &Path, marks: FailureMarks, error: Option<&Failure>) -> Result<(), Failure> {
    let mut record = store::load(run)?;
    if let Some(Failure::Reported(reported)) = error {
        record.outcome = record.outcome.worse(&Outcome::Failed { error: reported.message.clone() });
    }
    record.steps.iter_mut().for_each(|step| step.failure = Some(marks));
    Ok(store.replace(&record)?)
}

/// The failure, by its commands or by hand.
struct Caused<'a> {
    inject: Option<&'a str>,
    recover: Option<&'a str>,
    marks: Marks,
    refused: u32,
    at_ns: u64,
    after_ns: u64,
    injecting: Option<Process>,
    recovery: Recovery,
    failed_ns: Option<u64>,
    injected_ns: Option<u64>,
    recovered_ns: Option<u64>,
}

/// The command that ends the failure. Its shell is started before the failure is caused, and waits until this process lets it go, or is
/// gone: then nothing keeps it from running.
enum Recovery {
    None,
    Waiting { shell: Process, held: PipeWriter },
    Running(Process),
}

impl<'a> Caused<'a> {
    fn new(arguments: &'a RunArguments, begin_ns: u64, (warmup, after): (Nanos, Nanos), marks: Marks) -> Self {
        Self {
            inject: arguments.inject.as_deref(),
            recover: arguments.recover.as_deref(),
            marks,
            refused: 0,
            at_ns: begin_ns.saturating_add(warmup.0).saturating_add(arguments.at.0.0),
            after_ns: after.0,
            injecting: None,
            recovery: Recovery::None,
            failed_ns: None,
            injected_ns: None,
            recovered_ns: None,
        }
    }

    /// Does what is due. A failure is caused while the load is on; what was begun is ended at once where everything ends.
    fn look(&mut self, is_on: bool, is_ending: bool) -> Result<(), Failure> {
        let marked = self.marks.so_far();
        for (mark, given, word) in [
            (&mut self.failed_ns, marked.failed_ns, "the failure begins"),
            (&mut self.recovered_ns, marked.recovered_ns, "the recovery"),
        ] {
            if mark.is_none() && given.is_some() {
                *mark = given;
                say::line(format_args!("marked: {word}"));
            }
        }
        if marked.refused > std::mem::replace(&mut self.refused, marked.refused) {
            say::line("not marked: the load is not measured now");
        }
        if self.failed_ns.is_none()
            && is_on
            && monotonic_ns() >= self.at_ns
            && let Some(command) = self.inject
        {
            if let Some(recover) = self.recover {
                let (reader, held) = std::io::pipe().map_err(|error| Failure::new(format_args!("no pipe: {error}")))?;
                let shell = shell(&format!("read -r _\n{recover}"), reader.into())?;
                self.recovery = Recovery::Waiting { shell, held };
            }
            say::line(format_args!("failure: {}", shown(command)));
            self.failed_ns = Some(monotonic_ns());
            self.injecting = Some(shell(command, Stdio::null())?);
        }
        let injected = ended(&mut self.injecting, self.inject);
        if matches!(injected, Ok(true)) {
            self.injected_ns = Some(monotonic_ns());
        }
        let is_due = |injected_ns: u64| monotonic_ns() >= injected_ns.saturating_add(self.after_ns);
        if injected.is_err() || is_ending || self.injected_ns.is_some_and(is_due) {
            self.recover();
        }
        injected?;
        self.recovered()
    }

    /// Lets the recovery go. The command of the failure, where it still runs, is ended before, so that it does not fail anything again.
    fn recover(&mut self) {
        match std::mem::replace(&mut self.recovery, Recovery::None) {
            Recovery::Waiting { shell, held } => {
                end_group(self.injecting.take());
                say::line(format_args!("recovery: {}", shown(self.recover.unwrap_or_default())));
                self.recovered_ns = Some(monotonic_ns());
                drop(held);
                self.recovery = Recovery::Running(shell);
            }
            other => self.recovery = other,
        }
    }

    /// Notices that the recovery has ended.
    fn recovered(&mut self) -> Result<(), Failure> {
        let Recovery::Running(shell) = &mut self.recovery else { return Ok(()) };
        match shell.try_wait() {
            Ok(None) => return Ok(()),
            Ok(Some(status)) if status.success() => {}
            Ok(Some(status)) => {
                self.recovery = Recovery::None;
                let failure = Failure::new(format_args!("the recovery ended with {status}"));
                return Err(failure.with_hint("look whether the failure is over, and end it by hand".to_owned()));
            }
            Err(error) => return Err(Failure::new(format_args!("the recovery: {error}"))),
        }
        self.recovery = Recovery::None;
        Ok(())
    }

    /// Ends what was begun and waits for it, but not for ever.
    fn end(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            self.look(false, true)?;
            if self.injecting.is_none() && !matches!(self.recovery, Recovery::Running(_)) {
                return Ok(());
            }
            if begun.elapsed() >= LAST_COMMANDS {
                let failure = Failure::new(format_args!("a command still runs after {} s", LAST_COMMANDS.as_secs()));
                return Err(failure.with_hint("look whether the failure is over: it is not waited for".to_owned()));
            }
            std::thread::sleep(LOOK_AROUND);
        }
    }
}

fn sheet(cost: &FailureCost, demands: &[FailureDemand], run: &str) -> Sheet {
    let mut sheet = Sheet::of(json!({ "format": 1, "run": run, "demands": demands, "cost": cost }));
    report::failure_rows(cost, demands).into_iter().for_each(|(label, words)| sheet.add(label, words));
    sheet.add("run", format!("`plimsoll report {run}` shows the whole of it"));
    sheet
}
