//! `plimsoll durable run` and `plimsoll durable load`.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;

use super::{CommitTargetArgs, say_notes, with};
use crate::cli::arguments::{PermissionArgs, Seconds};
use crate::cli::dry_run::DryRun;
use crate::cli::exit::{Exit, Failure};
use crate::cli::token::{self, TokenOf};
use crate::cli::{Interrupt, fresh_seed, say};
use ::durable::link::{Link, LinkError, Notebook, Pipe};
use ::durable::load::{self, LoadError, Loaded, Until};
use ::durable::opening::{FileCommits, Machine, Means, Opening, Way};
use ::durable::witness::{ALIVE_EVERY, End};
use model::config::net::NetServer;
use model::units::{Bytes, Nanos, group_thousands};
use sql::ServerError;
use targets::TargetError;
use targets::durable::{CommitTarget, MAX_SESSIONS, Made, Shape};

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  plimsoll durable run --target dir:/u01/durable --witness 10.0.0.9
  plimsoll durable run --target dir:/u01/durable --witness 10.0.0.9 \\
    --means dsync --sessions 16
  plimsoll durable run --target raw:/dev/sdb --destroy sdb \\
    --witness 10.0.0.9
  plimsoll durable run --target pg:/u01/pgdata --witness 10.0.0.9:7018
  plimsoll durable run --target mysql://bench@db1/bench \\
    --witness 10.0.0.9

Cut the power while it goes on. Ctrl-C ends it in order, which proves nothing. The witness must be on a machine that keeps its power: \
`plimsoll durable witness`. Everything is made on the target before the witness is told, so a failure leaves no load behind. What was on a device before is gone then.";

pub(super) const LOAD_EXAMPLES: &str = "\
Examples:
  plimsoll durable load --target dir:/u01/durable --sessions 4

It is started over ssh from the machine of the witness, and needs no port there:

  ssh db1 plimsoll durable load --target dir:/u01/durable \\
    | plimsoll durable witness --stdin --notes cut1.notes

Nothing answers, so notes that are in the pipe when the power fails are lost. That makes the answer weaker, and never wrong: what came \
is compared. `plimsoll durable run` waits for each note.";

/// Slots of a session in files: 16 MiB.
const BLOCKS_IN_FILES: u32 = 2048;
/// Slots of a session on a server.
const ROWS_ON_SERVERS: u32 = 256;
/// Most slots of all sessions on a server, whose rows are made one by one.
const MAX_ROWS: u64 = 1 << 18;
/// How often is said how far it is.
const SAYS_EVERY: Duration = Duration::from_secs(10);

/// What is loaded.
#[derive(Debug, Args)]
struct CommitArgs {
    #[command(flatten)]
    target: CommitTargetArgs,

    #[command(flatten)]
    permission: PermissionArgs,

    /// Sessions that commit at the same time
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Load",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SESSIONS)))]
    sessions: u32,

    /// Time after which the load ends in order [default: until the power fails or Ctrl-C]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    duration: Option<Seconds>,

    /// How a commit in a file or on a device is made durable: fdatasync, dsync or none [default: fdatasync]
    ///
    /// `none` flushes nothing and promises nothing. It shows in which order a stack loses writes.
    #[arg(long, value_name = "MEANS", help_heading = "Load")]
    means: Option<Means>,

    /// Size of a commit in a file or on a device: a power of two from 4K to 1M [default: 8K]
    ///
    /// After the cut `verify` says whether writes of this size were left in part.
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    block: Option<Bytes>,

    /// Slots of a session that its commits go round in [default: 2048, on a server 256 rows]
    #[arg(long, value_name = "N", help_heading = "Load", value_parser = clap::value_parser!(u32).range(2..))]
    blocks: Option<u32>,

    /// Print what would be done, and exit
    #[arg(long, help_heading = "Output")]
    dry_run: bool,
}

/// Arguments of `plimsoll durable run`.
#[derive(Debug, Args)]
pub(in crate::cli) struct RunArguments {
    #[command(flatten)]
    commits: CommitArgs,

    /// Address of `plimsoll durable witness` on another machine
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Witness")]
    witness: NetServer,

    /// File with the token of the witness [default: the variable PLIMSOLL_WITNESS_TOKEN]
    #[arg(long, value_name = "FILE", help_heading = "Witness")]
    token_file: Option<PathBuf>,
}

/// Arguments of `plimsoll durable load`.
#[derive(Debug, Args)]
pub(in crate::cli) struct LoadArguments {
    #[command(flatten)]
    commits: CommitArgs,
}

impl CommitArgs {
    fn is_in_blocks(&self) -> bool {
        self.target.target.is_in_blocks()
    }

    fn shape(&self) -> Result<Shape, Failure> {
        let target = &self.target.target;
        let given = [("--means", self.means.is_some()), ("--block", self.block.is_some())];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given && !self.is_in_blocks()) {
            let failure = Failure::new(format_args!("`{option}` is for files and devices, not for `{target}`"));
            return Err(failure.with_hint("leave it out: a server has settings for that, which are noted".to_owned()));
        }
        if let Some(block) = self.block.filter(|_| !self.files().is_sensible()) {
            let failure = Failure::new(format_args!("a commit cannot have {block}"));
            return Err(failure.with_hint("name a power of two from 4K to 1M: `--block 16K`".to_owned()));
        }
        let blocks = self.blocks.unwrap_or(if self.is_in_blocks() { BLOCKS_IN_FILES } else { ROWS_ON_SERVERS });
        let shape = Shape { run: fresh_seed(), sessions: self.sessions, blocks };
        if !shape.is_sensible() || (!self.is_in_blocks() && shape.slots() > MAX_ROWS) {
            let failure = Failure::new(format_args!("{} sessions of {blocks} slots are too many", self.sessions));
            return Err(failure.with_hint("lower `--sessions` or `--blocks`".to_owned()));
        }
        Ok(shape)
    }

    fn files(&self) -> FileCommits {
        let FileCommits { means, block_bytes } = FileCommits::default();
        FileCommits {
            means: self.means.unwrap_or(means),
            block_bytes: self.block.map_or(block_bytes, |bytes| u32::try_from(bytes.0).unwrap_or(0)),
        }
    }

    fn plan(&self, shape: &Shape, notes: &str) -> Result<Exit, Failure> {
        let in_blocks = format!("{} in blocks", Bytes(shape.slots() * u64::from(self.files().block_bytes)));
        let size = if self.is_in_blocks() { in_blocks } else { format!("{} rows", shape.slots()) };
        let means = self.is_in_blocks().then(|| self.files().means.words());
        DryRun::default()
            .fact("target", &self.target.target)
            .fact("make", size)
            .facts("overwrite", self.target.target.device().map(|path| format!("all data on `{}`", path.display())))
            .fact("sessions", shape.sessions)
            .facts("means", means)
            .facts("for", self.duration.map(|Seconds(time)| time))
            .fact("notes", notes)
            .print(None, false)
    }

    fn opening(&self, shape: Shape, made: Made, way: Way) -> Opening {
        Opening {
            shape,
            target: self.target.target.to_string(),
            made,
            files: self.is_in_blocks().then(|| self.files()),
            way,
            load: Machine::here(),
        }
    }

    fn warn(&self, made: &Made) {
        if self.is_in_blocks() && self.files().means == Means::None {
            say::note(
                "`--means none` flushes nothing, so nothing is promised: a loss proves nothing, only its order is shown",
            );
        }
        if !made.loses.is_empty() {
            let settings = made.loses.join(", ");
            say::note(format_args!(
                "this server may lose or tear what it acknowledges when the power fails ({settings}), so there will be no verdict `kept`"
            ));
        }
    }

    fn until<'a>(&self, interrupt: &'a Interrupt) -> Until<'a> {
        Until {
            duration: self.duration.map(|Seconds(time)| Duration::from_nanos(time.0)),
            stop: interrupt.flag(),
            gives_up: !self.is_in_blocks(),
        }
    }
}

pub(super) fn run(arguments: &RunArguments) -> Result<Exit, Failure> {
    let RunArguments { commits, witness, token_file } = arguments;
    let shape = commits.shape()?;
    let NetServer::At { host, port } = witness else {
        let failure = Failure::new("`--witness self` would lose its power with the load");
        return Err(failure.with_hint("start `plimsoll durable witness` on another machine, and name that".to_owned()));
    };
    if commits.dry_run {
        return commits
            .plan(&shape, &format!("by the witness at {witness}, each before the next commit of its session"));
    }
    let Some(token) = token::given(TokenOf::Witness, token_file.as_deref())? else {
        let failure = Failure::new(format_args!("no token for the witness `{witness}`"));
        return Err(failure.with_hint(format!(
            "set {} to the token that the witness shows, or name a file with --token-file",
            TokenOf::Witness.variable()
        )));
    };
    let target = commits.target.open(commits.files(), commits.permission.permission())?;
    let interrupt = Interrupt::listen()?;
    // Before anything is made.
    let link = interrupt.judge(Link::connect(&witness.to_string(), (host, *port), &token).map_err(Failure::from))?;
    let ended = with(target, |target| {
        let made = make(target, &shape, &interrupt)?;
        commits.warn(&made);
        let opening = commits.opening(shape, made, Way::Answered);
        or_unmake(target, link.open(&opening))?;
        Ok(carry_out(commits, target, &shape, &link, &|end| link.end(end), &interrupt))
    })?;
    conclude(ended, &interrupt, true)
}

pub(super) fn load(arguments: &LoadArguments) -> Result<Exit, Failure> {
    let commits = &arguments.commits;
    let shape = commits.shape()?;
    if commits.dry_run {
        return commits.plan(&shape, "to standard output, without an answer");
    }
    if std::io::stdout().is_terminal() {
        let failure = Failure::new("standard output is a terminal, and notes on it are lost");
        return Err(failure.with_hint(
            "start it over ssh: `ssh HOST plimsoll durable load … | plimsoll durable witness --stdin --notes FILE`"
                .to_owned(),
        ));
    }
    let target = commits.target.open(commits.files(), commits.permission.permission())?;
    let interrupt = Interrupt::listen()?;
    // Before anything is made.
    let pipe = Pipe::begin(std::io::stdout(), interrupt.flag())?;
    let is_over = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        let _over = Over(&is_over);
        let alive = || {
            while !is_over.load(Ordering::Relaxed) && pipe.alive().is_ok() {
                thread::park_timeout(ALIVE_EVERY);
            }
        };
        let started = thread::Builder::new().name("alive".to_owned()).spawn_scoped(scope, alive);
        let alive = started.map_err(LinkError::Thread)?;
        let ended = with(target, |target| {
            let made = make(target, &shape, &interrupt)?;
            commits.warn(&made);
            let opening = commits.opening(shape, made, Way::OneWay);
            or_unmake(target, pipe.open(&opening))?;
            Ok(carry_out(commits, target, &shape, &pipe, &|end| pipe.end(&end), &interrupt))
        });
        is_over.store(true, Ordering::Relaxed);
        alive.thread().unpark();
        ended
    })?;
    conclude(ended, &interrupt, false)
}

/// Ends the thread that says that the load is there, also where a panic ends the rest.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn make(target: &mut dyn CommitTarget, shape: &Shape, interrupt: &Interrupt) -> Result<Made, Failure> {
    let made = target.make(shape, interrupt.flag());
    say_notes(target);
    made.map_err(|error| match (error, interrupt.exit()) {
        (TargetError::Interrupted, Some(exit)) => {
            Failure::new("interrupted before the load, and no load is left there").with_exit(exit)
        }
        (error, _) => Failure::from(error),
    })
}

/// Removes what was made where the witness was not told of it.
fn or_unmake(target: &mut dyn CommitTarget, told: Result<(), LinkError>) -> Result<(), Failure> {
    told.map_err(|error| {
        if let Err(left) = target.unmake() {
            say::note(format_args!("what was made stays: {left}"));
        }
        Failure::from(error)
    })
}

/// Carries out the load, says how it ended, to the witness first, and marks that on the target.
fn carry_out(
    commits: &CommitArgs,
    target: &mut dyn CommitTarget,
    shape: &Shape,
    notebook: &dyn Notebook,
    end: &dyn Fn(End) -> Result<(), LinkError>,
    interrupt: &Interrupt,
) -> Loaded {
    say::line(format_args!(
        "{} sessions commit on `{}`. Cut the power while this goes on; Ctrl-C ends it in order",
        shape.sessions, commits.target.target
    ));
    let mut said = Duration::ZERO;
    let mut look = |commits: u64, elapsed: Duration| {
        if elapsed.saturating_sub(said) >= SAYS_EVERY {
            said = elapsed;
            say::line(format_args!("{} commits noted in {}", group_thousands(commits as f64), nanos(elapsed)));
        }
    };
    let (loaded, panicked) = load::run(shape, &*target.committers(), notebook, commits.until(interrupt), &mut look);
    let why = match (&loaded.error, &panicked) {
        (_, Some(_)) => Some("a session of the load panicked".to_owned()),
        (Some(error), None) => Some(error_words(error).message),
        (None, None) => None,
    };
    let is_target_gone = match &loaded.error {
        // What refuses, answers: a server that says that it shuts down has not lost its power.
        Some(LoadError::Target(error @ TargetError::Database(_))) => ServerError::refusal_in(error).is_none(),
        Some(LoadError::Silent(_)) => true,
        _ => false,
    };
    let idle_ms = u64::try_from(loaded.idle.as_millis()).unwrap_or(u64::MAX);
    let told = end(End { has_failed: why.is_some(), is_target_gone, idle_ms, why: why.unwrap_or_default() });
    // A witness that is gone is why the load ended, and has been named.
    if let Some(error) = told.err().filter(|_| !matches!(loaded.error, Some(LoadError::Notes(_)))) {
        say::note(format_args!("the end of the load is not noted: {error}"));
    }
    // One that is gone has no load to mark, and one that is back already was cut.
    if !is_target_gone && let Err(error) = target.end() {
        say::note(format_args!("the end of the load is not marked on the target: {error}"));
    }
    load::resume(panicked);
    loaded
}

/// What ended a load, in words.
struct ErrorWords {
    message: String,
    hint: Option<String>,
}

fn error_words(error: &LoadError) -> ErrorWords {
    const AFTER: &str = "if its power was cut: `plimsoll durable verify` once it is back";
    match error {
        LoadError::Target(error @ TargetError::Database(_)) => {
            ErrorWords { message: error.to_string(), hint: Some(AFTER.to_owned()) }
        }
        LoadError::Target(error) => ErrorWords { message: error.to_string(), hint: error.hint() },
        LoadError::Silent(seconds) => ErrorWords {
            message: format!("the server has acknowledged nothing for {seconds} s"),
            hint: Some(AFTER.to_owned()),
        },
        LoadError::Notes(error) => ErrorWords { message: error.to_string(), hint: model::hint(error) },
    }
}

fn conclude(loaded: Loaded, interrupt: &Interrupt, has_output: bool) -> Result<Exit, Failure> {
    let Loaded { commits, elapsed, error, idle: _ } = loaded;
    let rate = commits as f64 / elapsed.as_secs_f64().max(1e-9);
    let words = format!(
        "{} commits were acknowledged and noted in {}, {}/s",
        group_thousands(commits as f64),
        nanos(elapsed),
        group_thousands(rate)
    );
    if has_output {
        let mut out = say::output();
        writeln!(out, "{words}")?;
        out.flush()?;
    } else {
        say::line(&words);
    }
    match error {
        Some(error) => {
            let ErrorWords { message, hint } = error_words(&error);
            let exit = interrupt.exit().unwrap_or(Exit::CouldNot);
            Err(Failure::new(message).with_hint(hint).with_exit(exit))
        }
        None => Ok(interrupt.exit().unwrap_or(Exit::Done)),
    }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
