//! How load is put on a database server, and what is asked of the wrong target.

use std::path::Path;

use clap::{Args, ValueEnum};

use crate::cli::exit::Failure;
use crate::cli::servers::{NodeArgs, not_oracle};
use model::config::TargetAddress;
use targets::database::{Commits, DatabaseOptions, Layout, Method, Reads, Sending};

/// Where the ledger of acknowledged commits is.
#[derive(Debug, Args)]
pub(super) struct LedgerArgs {
    /// Directory of the embedded engine's ledger of commits, on another disk [default: as set up]
    #[arg(long, value_name = "DIR", help_heading = "Data")]
    ledger: Option<String>,
}

impl LedgerArgs {
    /// The directory by its absolute path, for it may be used from another one later.
    ///
    /// # Errors
    /// When it is not there, or the target has no ledger.
    pub(super) fn directory(&self, address: &TargetAddress) -> Result<Option<String>, Failure> {
        let Some(text) = &self.ledger else { return Ok(None) };
        if !matches!(address, TargetAddress::Directory(_)) {
            let failure = Failure::new(format_args!("`--ledger` is for the embedded engine, not for `{address}`"));
            return Err(failure.with_hint("leave it out".to_owned()));
        }
        let path = Path::new(text);
        let found = path.canonicalize().and_then(|path| match path.is_dir() {
            true => Ok(path),
            false => Err(std::io::ErrorKind::NotADirectory.into()),
        });
        let path = found.map_err(|error| {
            let failure = Failure::new(format_args!("`--ledger {text}`: {error}"));
            failure.with_hint("mount or make that directory, or name another one".to_owned())
        })?;
        match path.to_str() {
            Some(path) => Ok(Some(path.to_owned())),
            None => Err(Failure::new("`--ledger`: the path is not UTF-8")),
        }
    }
}

/// How load is put on a server.
#[derive(Debug, Args)]
pub(in crate::cli) struct SendArgs {
    /// How operations reach the server [default: batch; statement with --rate]
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Database servers")]
    send: Option<SendChoice>,

    #[command(flatten)]
    method: MethodArgs,

    #[command(flatten)]
    nodes: NodeArgs,
}

/// How operations reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SendChoice {
    /// One prepared statement for each operation, timed here
    Statement,
    /// Lists of operations that a procedure on the server runs and times
    Batch,
}

/// How load is put on Oracle, where there is a choice.
#[derive(Debug, Args)]
pub(super) struct MethodArgs {
    /// How batched updates are committed, on Oracle [default: wait]
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Database servers")]
    commit: Option<CommitChoice>,

    /// How a range of keys is read, on Oracle [default: range]
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Database servers")]
    reads: Option<ReadsChoice>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CommitChoice {
    /// Each waits until it is on storage
    Wait,
    /// As in SLOB: the server does not wait for each before the batch ends
    Slob,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReadsChoice {
    /// By one statement, as SLOB does
    Range,
    /// By one statement per key, on the server: certainly single blocks
    KeyByKey,
}

impl MethodArgs {
    /// What was asked for, on tables of this layout.
    pub(super) fn method(&self, layout: Layout) -> Method {
        let commits = match self.commit {
            Some(CommitChoice::Slob) => Commits::Slob,
            Some(CommitChoice::Wait) | None => Commits::Wait,
        };
        let reads = match self.reads {
            Some(ReadsChoice::KeyByKey) => Reads::KeyByKey,
            Some(ReadsChoice::Range) | None => Reads::Range,
        };
        Method { layout, commits, reads }
    }
}

impl SendArgs {
    /// Adds how load is put on the database at an address.
    ///
    /// # Errors
    /// When something was said that means nothing there.
    pub(super) fn add_to(&self, options: DatabaseOptions, address: &TargetAddress) -> Result<DatabaseOptions, Failure> {
        self.check(address)?;
        let sending = self.send.map(|choice| match choice {
            SendChoice::Statement => Sending::Statement,
            SendChoice::Batch => Sending::Batch,
        });
        let method = self.method.method(options.method.layout);
        Ok(self.nodes.add_to(DatabaseOptions { sending, method, ..options }))
    }

    /// Refuses what means nothing for a target.
    fn check(&self, address: &TargetAddress) -> Result<(), Failure> {
        let of_oracle = [("--commit", self.method.commit.is_some()), ("--reads", self.method.reads.is_some())];
        if let Some((flag, _)) = of_oracle.into_iter().find(|(_, given)| *given && !address.is_oracle()) {
            return Err(not_oracle(flag, address));
        }
        if address.is_server() {
            return Ok(());
        }
        let given = self.send.map(|_| "--send").or_else(|| self.nodes.given());
        given.map_or(Ok(()), |flag| Err(not_a_server(flag, address)))
    }
}

fn not_a_server(flag: &str, address: &TargetAddress) -> Failure {
    Failure::new(format_args!("`{flag}` is for database servers, not for `{address}`")).with_hint(
        "leave it out, or name a server: `--target pg:DIR`, `my:DIR`, `postgres://USER@HOST/DATABASE` or `mysql://USER@HOST/DATABASE`".to_owned(),
    )
}
