//! `plimsoll durable`.

mod layers;
mod load;
mod verify;
mod witness;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, Subcommand};

use super::exit::{Exit, Failure};
use crate::cli::servers::ServerArgs;
use crate::cli::{Interrupt, RemovalArgs, say, sheets};
use crate::databases;
use ::durable::device::CommitDevice;
use ::durable::link::LinkError;
use ::durable::notes::NotesError;
use ::durable::opening::FileCommits;
use ::durable::witness::WitnessError;
use model::config::{ConfigError, TargetAddress, TargetProblem};
use targets::block::safety::Permission;
use targets::durable::CommitTarget;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll durable witness --listen 0.0.0.0 --notes cut1.notes
  plimsoll durable run --target dir:/u01/durable --witness 10.0.0.9
  plimsoll durable verify --target dir:/u01/durable --notes cut1.notes
  plimsoll durable drop --target dir:/u01/durable

Start the witness on another machine, then the load. Cut the power while the load goes on. After the restart copy the notes, and verify.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Note on another machine which commits were acknowledged
    #[command(after_long_help = witness::EXAMPLES)]
    Witness(witness::Arguments),
    /// Load commits, each noted by the witness before its session goes on
    #[command(after_long_help = load::RUN_EXAMPLES)]
    Run(load::RunArguments),
    /// Load commits with notes on standard output, for a witness at the end of a pipe
    #[command(after_long_help = load::LOAD_EXAMPLES)]
    Load(load::LoadArguments),
    /// Compare what is there with the notes: is every acknowledged commit there?
    #[command(after_long_help = verify::EXAMPLES)]
    Verify(verify::Arguments),
    /// Name the layer that loses, by the answers of several cuts
    #[command(after_long_help = layers::EXAMPLES)]
    Layers(layers::Arguments),
    /// Remove what a load made
    #[command(after_long_help = DROP_EXAMPLES)]
    Drop(DropArguments),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Witness(arguments) => witness::run(&arguments),
            Self::Run(arguments) => load::run(&arguments),
            Self::Load(arguments) => load::load(&arguments),
            Self::Verify(arguments) => verify::run(&arguments),
            Self::Layers(arguments) => layers::run(&arguments),
            Self::Drop(arguments) => run_drop(&arguments),
        }
    }
}

/// Where commits are kept.
#[derive(Debug, Clone)]
enum CommitAddress {
    /// `raw:DEVICE`: on a block device itself. Nothing else of the program has such targets: `plimsoll io` has paths.
    Device(PathBuf),
    /// What other commands know as well.
    Of(Box<TargetAddress>),
}

impl CommitAddress {
    /// The device that is written to without a file system.
    fn device(&self) -> Option<&Path> {
        match self {
            Self::Device(path) => Some(path),
            Self::Of(_) => None,
        }
    }

    /// Whether commits are blocks of ours.
    fn is_in_blocks(&self) -> bool {
        match self {
            Self::Device(_) => true,
            Self::Of(address) => matches!(**address, TargetAddress::Directory(_)),
        }
    }
}

impl FromStr for CommitAddress {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text.strip_prefix("raw:") {
            Some("") => Err(ConfigError::Target(TargetProblem::NoPath { kind: "raw".to_owned() })),
            Some(path) if path.chars().any(char::is_control) => Err(ConfigError::Target(TargetProblem::Unprintable)),
            Some(path) => Ok(Self::Device(path.into())),
            None => text.parse().map(|address| Self::Of(Box::new(address))),
        }
    }
}

impl fmt::Display for CommitAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(path) => write!(f, "raw:{}", path.display()),
            Self::Of(address) => address.fmt(f),
        }
    }
}

/// Where commits are kept, as it is given.
#[derive(Debug, Args)]
#[command(mut_arg("layout", |layout| layout.hide(true)))]
struct CommitTargetArgs {
    /// Where commits are kept: `dir:PATH`, `raw:DEVICE`, `pg:DIR`, `my:DIR`, or an address of a server
    #[arg(long, value_name = "ADDRESS", env = "PLIMSOLL_TARGET", hide_env_values = true, help_heading = "Target")]
    target: CommitAddress,

    #[command(flatten)]
    server: ServerArgs,
}

impl CommitTargetArgs {
    /// What keeps them there. Nothing is reached yet.
    fn open(&self, files: FileCommits, permission: Permission) -> Result<Box<dyn CommitTarget>, Failure> {
        let address = match &self.target {
            CommitAddress::Device(path) => {
                return Ok(Box::new(CommitDevice::new(path.clone(), files, permission)));
            }
            CommitAddress::Of(address) => address,
        };
        if !permission.destroy.is_empty() {
            let failure = Failure::new(format_args!("`--destroy` is for devices, not for `{address}`"));
            return Err(failure.with_hint("leave it out: nothing of others is overwritten there".to_owned()));
        }
        let options = self.server.options(address)?;
        databases::commits(address, &options, files).ok_or_else(|| {
            let failure = Failure::new(format_args!("`{address}` keeps no commits that could be compared with notes"));
            failure.with_hint(
                "name a target: `dir:PATH`, `raw:DEVICE`, `pg:DIR`, `my:DIR`, `postgres://…` or `mysql://…`".to_owned(),
            )
        })
    }
}

/// Does something with a target and leaves it however that ends.
fn with<T>(
    target: Box<dyn CommitTarget>,
    work: impl FnOnce(&mut dyn CommitTarget) -> Result<T, Failure>,
) -> Result<T, Failure> {
    sheets::then_leave(target, |target| work(target), CommitTarget::close)
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        Self::new(&error).with_hint(model::hint(&error))
    }
}

impl From<NotesError> for Failure {
    fn from(error: NotesError) -> Self {
        Self::new(&error).with_hint(model::hint(&error))
    }
}

impl From<WitnessError> for Failure {
    fn from(error: WitnessError) -> Self {
        Self::new(&error).with_hint(model::hint(&error))
    }
}

const DROP_EXAMPLES: &str = "\
Examples:
  plimsoll durable drop --target dir:/u01/durable --dry-run
  plimsoll durable drop --target postgres://bench@db1/bench --yes

Only what a load of commits made is removed, whole or not. On a device that is its heading; the blocks stay. A private server (`pg:DIR`, `my:DIR`) is removed whole if it holds no other \
data of Plimsoll.";

/// Arguments of `plimsoll durable drop`.
#[derive(Debug, Args)]
pub(super) struct DropArguments {
    #[command(flatten)]
    target: CommitTargetArgs,

    #[command(flatten)]
    removal: RemovalArgs,
}

fn run_drop(arguments: &DropArguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let target = arguments.target.open(FileCommits::default(), Permission::default())?;
    interrupt.judge(with(target, |target| {
        let plan = target.plan_drop(interrupt.flag())?;
        arguments.removal.run(plan, &interrupt)
    }))
}

/// Says what the user should know of a target.
fn say_notes(target: &dyn CommitTarget) {
    target.notes().iter().for_each(say::note);
}
