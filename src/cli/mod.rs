//! Commands, one file or folder each; the only place that prints or exits.

#[cfg(test)]
mod advised;
mod arguments;
mod beside;
mod check;
mod children;
mod compare;
mod database_load;
mod doctor;
mod dry_run;
mod durable;
mod exit;
mod expect;
mod experiment;
mod export;
mod failure;
mod first_contact;
mod fit;
mod fleet;
mod guesses;
mod help;
mod host;
mod import;
mod in_turn;
mod io;
mod judged_files;
mod like;
mod limits;
mod live;
mod manual;
mod map;
mod marks;
mod merge;
mod net;
mod orders;
mod own_reports;
mod page_file;
mod platforms;
mod probe;
mod record;
mod recording;
#[cfg(test)]
mod reference;
mod report;
mod results;
mod runner;
mod runs;
mod say;
mod second_look;
mod servers;
mod setting_up;
mod sheets;
mod shell;
mod slob;
#[cfg(test)]
mod style;
mod supervisor;
mod table;
mod timed;
mod token;
mod tour;
mod trace;
mod trend;
mod typed;

use std::error::Error as _;
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use ::serve::ListenError;
use arguments::{RateError, RunsArgs};
use compare::ThresholdError;
use exit::{Exit, Failure, exit_code_of_signal};
use load::Stop;
use model::config::ConfigError;
use model::record::store::StoreError;
use model::shown::{shown, shown_message};
use model::units::{Bytes, UnitError};
use serve::{Listen, Problem, Server};
use supervisor::Supervisor;
use targets::database::DropPlan;
use targets::ending::end_connecting_on;

const EXAMPLES: &str = "\
Examples:
  plimsoll check --reads 20000@5ms --commits 200@10ms /u01
                                     does it sustain that? yes or no
  plimsoll doctor                    is this machine fit for measuring?
  plimsoll slob setup -s 8 SCALE=1G  make data in ./plimsoll-data
  plimsoll slob sweep -s 8 --threads 1,2,4,8 RUN_TIME=30
  plimsoll report last --full        see the last run again

Exit codes:
  0    done
  1    done, but a limit was exceeded, a run is worse than
       its baseline, a platform does not sustain a database,
       or data is not what was written
  2    not done, or no verdict: the measurements do not show
       whether a limit was met
  130  stopped by Ctrl-C (SIGINT); measurements are kept
  143  stopped by SIGTERM; the same
  129  stopped because the terminal closed (SIGHUP); the same

Data goes to standard output, everything else to standard error. NO_COLOR is honoured.";

/// Measures how much database load a platform sustains, and why it stops there
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, after_long_help = EXAMPLES, after_help = "`--help` shows more, with examples.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check whether a target sustains a given load, with how much headroom, and what limits it
    #[command(after_long_help = check::EXAMPLES)]
    Check(Box<check::Arguments>),
    /// Apply SLOB's load to a target: many sessions that touch random blocks
    #[command(subcommand, after_long_help = slob::EXAMPLES)]
    Slob(Box<slob::Command>),
    /// Order entry: create its data, and run transactions as Swingbench does
    #[command(subcommand, after_long_help = orders::EXAMPLES)]
    Orders(Box<orders::Command>),
    /// Apply load to raw storage: files and block devices
    #[command(subcommand, after_long_help = io::EXAMPLES)]
    Io(Box<io::Command>),
    /// Measure whether CPUs and memory keep their speed, and what they are worth to a database
    #[command(subcommand, after_long_help = host::EXAMPLES)]
    Host(host::Command),
    /// Measure a network as databases use it: bulk data, redo, blocks, rows, round trips
    #[command(subcommand, after_long_help = net::EXAMPLES)]
    Net(net::Command),
    /// Check whether acknowledged commits are still there after the power failed
    #[command(subcommand, after_long_help = durable::EXAMPLES)]
    Durable(Box<durable::Command>),
    /// Measure what loads cost each other: each alone and all together, alternating
    #[command(after_long_help = beside::EXAMPLES)]
    Beside(Box<beside::Arguments>),
    /// What a failure costs while a load goes on
    #[command(subcommand, after_long_help = failure::EXAMPLES)]
    Failure(failure::Command),
    /// Run a test matrix from a file: loads over a matrix of values, reported on one page
    #[command(subcommand, after_long_help = experiment::EXAMPLES)]
    Experiment(Box<experiment::Command>),
    /// Import results of other programs as runs: AWR reports, fio, iostat, Swingbench and many more
    #[command(after_long_help = import::EXAMPLES)]
    Import(import::Arguments),
    /// Add up the parts of a fleet to one run
    #[command(after_long_help = merge::EXAMPLES)]
    Merge(merge::Arguments),
    /// List, show and remove the runs that are kept
    #[command(subcommand, after_long_help = runs::EXAMPLES)]
    Runs(runs::Command),
    /// Show what a run found: load line, wait events, histograms and findings
    #[command(after_long_help = report::EXAMPLES)]
    Report(report::Arguments),
    /// Lay many runs side by side, one row per step
    #[command(after_long_help = table::EXAMPLES)]
    Table(table::Arguments),
    /// Compare runs with each other: is a difference real, and does it matter?
    #[command(after_long_help = compare::EXAMPLES)]
    Compare(compare::Arguments),
    /// Follow a database over many runs: peaks, percentiles, growth, hours of the day
    #[command(after_long_help = trend::EXAMPLES)]
    Trend(trend::Arguments),
    /// Write runs as tables for DuckDB, Polars, Spark or pandas: Parquet or CSV
    #[command(after_long_help = export::EXAMPLES)]
    Export(export::Arguments),
    /// Compare a database's demand with a platform's capacity, and show the headroom
    #[command(after_long_help = fit::EXAMPLES)]
    Fit(fit::Arguments),
    /// Show what a machine should reach: published limits, which one binds, how long bursts last
    #[command(after_long_help = expect::EXAMPLES)]
    Expect(expect::Arguments),
    /// List and show machines and volumes with published limits
    #[command(subcommand, after_long_help = platforms::EXAMPLES)]
    Platforms(platforms::Command),
    /// Show the runs in a browser: a list, reports, comparisons, and runs as they go on
    #[command(after_long_help = SERVE_EXAMPLES)]
    Serve(ServeArguments),
    /// Measure the read and write latencies of a live database, of any process, or of devices
    #[command(after_long_help = probe::EXAMPLES)]
    Probe(probe::Arguments),
    /// Record every request of a block device, to look at it and to replay it
    #[command(after_long_help = record::EXAMPLES)]
    Record(record::Arguments),
    /// Look at traces of requests, and convert those of other programs
    #[command(subcommand, after_long_help = trace::EXAMPLES)]
    Trace(trace::Command),
    /// Check whether this machine is fit for measuring
    #[command(after_long_help = doctor::EXAMPLES)]
    Doctor(doctor::Arguments),
    /// Take a short guided tour on simulated storage
    #[command(after_long_help = tour::EXAMPLES)]
    Tour(tour::Arguments),
    /// Print shell completions
    #[command(after_long_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArguments),
    /// Write the man pages
    #[command(after_long_help = manual::EXAMPLES)]
    Manual(manual::Arguments),
}

/// The program: reads the command line, carries it out, and says how it ended.
pub fn main() -> ExitCode {
    // A write beyond the file size limit is then an error as others are, and no end of the program.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    measure::os::spare_address_space();
    on_another_thread(|| run(std::env::args_os())).into()
}

/// What the first thread has of a stack unless it is told otherwise.
const STACK_BYTES: usize = 8 << 20;

/// Carries out `work` while the first thread waits for its end and does nothing else. The kernel gives a signal to the first thread where
/// that can take it, whatever the others do. One that sleeps in the kernel for storage that does not answer cannot: so it must not be the
/// one that works.
fn on_another_thread(work: fn() -> Exit) -> Exit {
    let worker = std::thread::Builder::new().name("main".to_owned()).stack_size(STACK_BYTES);
    match worker.spawn(work) {
        Ok(worker) => worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        // No thread to spare: it works all the same.
        Err(_) => work(),
    }
}

fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let words: Vec<OsString> = arguments.into_iter().collect();
    let outcome = match parse(&words) {
        Ok(cli) => cli.command.run(),
        Err(error) => return refuse(error, &words),
    };
    match outcome {
        Ok(exit) => exit,
        Err(Failure::PipeClosed) => Exit::Done,
        Err(Failure::Reported(reported)) => {
            if let Some(supervisor) = supervisor::Supervisor::of_this_process() {
                let exit::Reported { message, hint, exit } = &reported;
                supervisor.say(&supervisor::Said::Failed {
                    message: message.clone(),
                    hint: hint.clone(),
                    code: exit.code(),
                });
            }
            say::error(&reported.message);
            reported.hint.iter().for_each(say::hint);
            reported.exit
        }
    }
}

fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = help::command();
    let mut matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

impl Command {
    fn run(self) -> Result<Exit, Failure> {
        if !matches!(self, Self::Expect(_) | Self::Platforms(_) | Self::Fit(_)) {
            platforms::for_reports();
        }
        match self {
            Self::Check(arguments) => check::run(&arguments),
            Self::Slob(command) => command.run(),
            Self::Orders(command) => command.run(),
            Self::Io(command) => command.run(),
            Self::Host(command) => command.run(),
            Self::Net(command) => command.run(),
            Self::Durable(command) => command.run(),
            Self::Beside(arguments) => beside::run(&arguments),
            Self::Failure(command) => command.run(),
            Self::Experiment(command) => command.run(),
            Self::Import(arguments) => import::run(&arguments),
            Self::Merge(arguments) => merge::run(&arguments),
            Self::Runs(command) => command.run(),
            Self::Report(arguments) => report::run(&arguments),
            Self::Table(arguments) => table::run(&arguments),
            Self::Compare(arguments) => compare::run(&arguments),
            Self::Trend(arguments) => trend::run(&arguments),
            Self::Export(arguments) => export::run(&arguments),
            Self::Fit(arguments) => fit::run(&arguments),
            Self::Expect(arguments) => expect::run(&arguments),
            Self::Platforms(command) => command.run(),
            Self::Serve(arguments) => run_serve(&arguments),
            Self::Probe(arguments) => probe::run(&arguments),
            Self::Record(arguments) => record::run(&arguments),
            Self::Trace(command) => command.run(),
            Self::Doctor(arguments) => doctor::run(&arguments),
            Self::Tour(arguments) => tour::run(&arguments),
            Self::Completions(arguments) => run_completions(&arguments),
            Self::Manual(arguments) => manual::run(&arguments),
        }
    }
}

/// Processors that this process may use.
fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

/// A seed that nobody has used before, as far as chance goes.
fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // The standard library seeds each of these from the system's randomness. 53 bits survive every format of JSON.
    RandomState::new().hash_one(std::process::id()) >> 11
}

/// Tells what is wrong with the command line, or shows the help that was asked for.
fn refuse(mut error: clap::Error, words: &[OsString]) -> Exit {
    if let Some(hint) = missing_word(&error, words) {
        match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(missing)) => say::error(format_args!("{} is missing", missing.join(" and "))),
            argument => say::error(format_args!(
                "there is no {}",
                argument.map_or_else(|| "such argument".to_owned(), |argument| format!("`{argument}`"))
            )),
        }
        say::hint(hint);
        return Exit::CouldNot;
    }
    if let Some(met) = guesses::meet(&error, words, &help::command()) {
        say::error(met.message);
        say::hint(met.hint);
        return Exit::CouldNot;
    }
    // All values that are possible are listed; which of them looks alike says nothing about what was meant.
    error.remove(ContextKind::SuggestedValue);
    let error = &error;
    // Our own types say better than clap what is wrong with a value and what to write instead.
    let source = error.source().filter(|_| error.kind() == ErrorKind::ValueValidation);
    if let Some(error) = source.and_then(|source| source.downcast_ref::<ConfigError>()) {
        say::error(error);
        let meant = match error {
            ConfigError::Argument { text } => guesses::meet_word(text),
            _ => None,
        };
        meant.or_else(|| error.hint()).iter().for_each(say::hint);
    } else if let Some(error) = source.and_then(|source| source.downcast_ref::<ListenError>()) {
        say::error(error);
        say::hint(error.hint());
    } else if let Some(reason) = source.filter(|source| is_ours(*source)) {
        say::error(format_args!("{}{reason}", flag_of(error)));
    } else {
        help::write(error);
    }
    if error.use_stderr() { Exit::CouldNot } else { Exit::Done }
}

/// What to write where the word is missing that a command is about, or a limit stands where it cannot.
fn missing_word(error: &clap::Error, words: &[OsString]) -> Option<&'static str> {
    let shown = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    match (error.kind(), words.get(1)?.to_str()?) {
        (ErrorKind::MissingRequiredArgument, "check") => {
            Some("name a directory, a device or an address, as in `plimsoll check --reads 3000@5ms /u01`")
        }
        (ErrorKind::MissingRequiredArgument, "beside") => Some(
            "write two loads or more, each as it is typed alone: `plimsoll beside -- slob run 8 -- io run --path /u01/backup.dat --pattern read`",
        ),
        (ErrorKind::MissingRequiredArgument, "completions") => Some("name a shell: `plimsoll completions bash`"),
        (ErrorKind::UnknownArgument, "check") if shown(ContextKind::InvalidArg).starts_with("--p") => Some(
            "a limit stands behind its rate: `--reads 3000@5ms` is p99 within 5 ms, `@p99.9=5ms` another percentile",
        ),
        _ => None,
    }
}

/// Whether an error says by itself what was wrong and what to write instead.
fn is_ours(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<UnitError>() || error.is::<RateError>() || error.is::<ThresholdError>()
}

/// The flag whose value is wrong, to stand before the reason.
fn flag_of(error: &clap::Error) -> String {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(shown)) => {
            shown.split_whitespace().next().map_or_else(String::new, |flag| format!("{flag}: "))
        }
        _ => String::new(),
    }
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  plimsoll completions bash \\
    > ~/.local/share/bash-completion/completions/plimsoll
  plimsoll completions zsh > ~/.zfunc/_plimsoll
  plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish

`make install` installs all three. For zsh the directory must be in `fpath` before `compinit` runs.";

/// Arguments of `plimsoll completions`.
#[derive(Debug, Args)]
struct CompletionsArguments {
    /// The shell
    shell: Supported,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Supported {
    Bash,
    Zsh,
    Fish,
}

fn run_completions(arguments: &CompletionsArguments) -> Result<Exit, Failure> {
    let shell = match arguments.shell {
        Supported::Bash => Shell::Bash,
        Supported::Zsh => Shell::Zsh,
        Supported::Fish => Shell::Fish,
    };
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "plimsoll", &mut script);
    let mut out = say::output();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Done)
}

/// Whether something is removed, and whether that is asked about.
#[derive(Debug, Args)]
struct RemovalArgs {
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Print what would be done, and exit
    #[arg(long)]
    dry_run: bool,
}

impl RemovalArgs {
    /// Removes what the plan lists, or says what that is.
    fn run(&self, plan: Box<dyn DropPlan + '_>, interrupt: &Interrupt) -> Result<Exit, Failure> {
        let what = plan.what();
        if self.dry_run {
            let mut out = say::output();
            for (bytes, name) in plan.items() {
                writeln!(out, "{:>10}  {name}", Bytes(bytes).to_string())?;
            }
            out.flush()?;
            say::line(format_args!("would remove {what}"));
            return Ok(Exit::Done);
        }
        if !self.yes {
            confirm(&what)?;
        }
        let also = plan.run(interrupt.flag())?.map_or_else(String::new, |also| format!(", and {also}"));
        say::line(format_args!("removed {what}{also}"));
        Ok(Exit::Done)
    }
}

/// Asks on a terminal whether `what` may be removed; without one, nobody can have meant it.
fn confirm(what: &str) -> Result<(), Failure> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        let failure = Failure::new(format_args!("removing {what} must be confirmed"));
        return Err(failure.with_hint("add `--yes`; `--dry-run` shows what would go".to_owned()));
    }
    let _ = write!(anstream::stderr(), "Remove {}? [y/N] ", shown(what));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Failure::new("nothing was removed"))
    }
}

const SERVE_EXAMPLES: &str = "\
Examples:
  plimsoll serve                        http://127.0.0.1:8321/ until Ctrl-C
  plimsoll serve --runs /u01/plimsoll-runs
  plimsoll serve --listen 127.0.0.1:0   any free port; standard output has it
  plimsoll serve --listen 0.0.0.0:8321  for all machines in reach

Nothing can be changed through it. From another machine, `ssh -L 8321:localhost:8321 HOST` is the safe way to reach \
it.";

/// Arguments of `plimsoll serve`.
#[derive(Debug, Args)]
struct ServeArguments {
    /// Address and port to listen on, such as 127.0.0.1:8321 or [::1]:8321 (port 0: any free one)
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8321")]
    listen: Listen,

    #[command(flatten)]
    runs: RunsArgs,
}

fn run_serve(arguments: &ServeArguments) -> Result<Exit, Failure> {
    let store = arguments.runs.store();
    let directory = store.path().to_owned();
    let server = Server::open(arguments.listen, store).map_err(not_opened)?;
    let ender = server.ender();
    Interrupt::end_with(move || ender.end())?;
    let url = format!("http://{}/", server.address());
    let runs = server.runs();
    let plural = if runs == 1 { "run" } else { "runs" };
    say::line(format_args!("Serving {runs} {plural} in `{}` at {url} (Ctrl-C ends it)", directory.display()));
    if !arguments.listen.is_local() {
        say::note("every machine that can reach this one can read these runs");
    }
    let mut out = say::output();
    // Nobody need read the address: whoever has closed standard output can still read the pages.
    let _ = writeln!(out, "{url}").and_then(|()| out.flush());
    drop(out);
    server.serve()?;
    Ok(Exit::Done)
}

/// A directory that is missing has another reason before the first look than after it.
fn not_opened(problem: Problem) -> Failure {
    let is_missing = matches!(
        &problem,
        Problem::Store(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound
    );
    let failure = Failure::from(problem);
    if is_missing {
        failure.with_hint("`--runs DIR` names the directory in which runs are kept; the first run makes it".to_owned())
    } else {
        failure
    }
}

/// What the user's signals are sent to.
#[derive(Debug, Clone)]
struct Interrupt {
    stop: Stop,
    /// The first signal, or 0.
    signal: Arc<AtomicI32>,
    /// What stays behind if the program ends at once, in words.
    left_behind: Arc<Mutex<Option<String>>>,
}

impl Interrupt {
    /// Takes over the signals for the rest of the program.
    fn listen() -> Result<Self, Failure> {
        let mut signals = signals()?;
        let this = Self { stop: Stop::new(), signal: Arc::new(AtomicI32::new(0)), left_behind: Arc::default() };
        if let Some(supervisor) = Supervisor::of_this_process() {
            supervisor.listen(this.stop.clone()).map_err(|error| cannot_listen(&error))?;
        }
        end_connecting_on(this.stop.flag());
        let receiver = this.clone();
        let listener = std::thread::Builder::new().name("signals".into());
        listener
            .spawn(move || signals.forever().for_each(|number| receiver.receive(number)))
            .map_err(|error| cannot_listen(&error))?;
        Ok(this)
    }

    /// Has `end` called by the first signal that asks for an end, for work that has nothing to keep.
    fn end_with(end: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
        let mut signals = signals()?;
        let listener = std::thread::Builder::new().name("signals".into());
        let wait = move || {
            if signals.forever().next().is_some() {
                end();
            }
        };
        listener.spawn(wait).map(|_| ()).map_err(|error| cannot_listen(&error))
    }

    fn receive(&self, number: i32) {
        if self.signal.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            // Who holds the lock is about to change the words; nothing waits for that.
            if let Ok(words) = self.left_behind.try_lock() {
                words.iter().for_each(|words| {
                    let _ = writeln!(std::io::stderr(), "{}", shown_message(words));
                });
            }
            signal_hook::low_level::exit(i32::from(exit_code_of_signal(number)));
        }
        self.stop.ask();
        // The terminal has just echoed `^C` into whatever line was there.
        let fresh_line = if std::io::stderr().is_terminal() { "\r\u{1b}[2K" } else { "\n" };
        let _ = writeln!(std::io::stderr(), "{fresh_line}stopping; once more to abort at once");
    }

    /// Has it said, if a second signal ends the program at once, what stays behind; nothing from now on without words.
    fn leaves(&self, words: Option<String>) {
        if let Ok(mut left) = self.left_behind.lock() {
            *left = words;
        }
    }

    /// The request to end, for load.
    fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The request to end, for set-up and verification.
    fn flag(&self) -> &AtomicBool {
        self.stop.flag()
    }

    /// How the program ends if a signal ended its work.
    fn exit(&self) -> Option<Exit> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Exit::Signal(number)),
        }
    }
}

impl Interrupt {
    /// An outcome whose exit code is that of the signal, if one came: whatever it ended, it was the signal.
    fn judge<T>(&self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        outcome.map_err(|failure| match self.exit() {
            Some(exit) => failure.with_exit(exit),
            None => failure,
        })
    }
}

/// The signals that ask for an end. Under `nohup` a terminal that closes is to be ignored, and it stays so.
fn signals() -> Result<Signals, Failure> {
    let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    Signals::new([SIGINT, SIGTERM].into_iter().chain(hang_up)).map_err(|error| cannot_listen(&error))
}

fn cannot_listen(error: &std::io::Error) -> Failure {
    Failure::new(format_args!("cannot listen for signals: {error}"))
}

/// Whether this process was started with `signal` ignored. The kernel reports in a mask of which bit 0 is signal 1.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn walk(command: &clap::Command, path: &str, look: &mut impl FnMut(&clap::Command, &str)) {
        look(command, path);
        for inner in command.get_subcommands() {
            walk(inner, &format!("{path} {}", inner.get_name()), look);
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_is_described_and_has_examples() {
        walk(&Cli::command(), "plimsoll", &mut |command, path| {
            let examples = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(command.get_about().is_some(), "{path} is not described");
            assert!(examples.starts_with("Examples:\n  plimsoll "), "{path} has no examples");
        });
    }

    #[test]
    fn every_argument_is_described() {
        walk(&Cli::command(), "plimsoll", &mut |command, path| {
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{path}: {} is not described", argument.get_id());
            }
        });
    }

    #[test]
    fn every_example_can_be_typed() {
        walk(&Cli::command(), "plimsoll", &mut |command, path| {
            let examples = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            let examples = examples.replace(" \\\n    ", " ");
            let lines = examples.lines().filter_map(|line| line.strip_prefix("  plimsoll "));
            for line in lines {
                // A remark is set off by blanks, and the shell keeps its own words and quotation marks.
                let line = line.split("  ").next().unwrap_or(line);
                let parts = (0..).zip(line.split('\''));
                let words = parts.flat_map(|(at, part)| match at % 2 {
                    0 => part.split_whitespace().collect(),
                    _ => vec![part],
                });
                let words = words.take_while(|word| !matches!(*word, ">" | "&&"));
                let words = std::iter::once("plimsoll").chain(words);
                let parsed = Cli::try_parse_from(words);
                assert!(parsed.is_ok(), "{path}: {line}: {}", parsed.unwrap_err());
            }
        });
    }
}
