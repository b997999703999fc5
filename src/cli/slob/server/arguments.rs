//! What only a database server takes, and what is asked of the wrong target.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::exit::Failure;
use crate::config::TargetAddress;
use crate::units::Bytes;

/// Schema of the database where nobody names another.
const DEFAULT_SCHEMA: &str = "plimsoll";
/// Shared buffers of a private cluster where nobody says otherwise: small, so that reads leave them.
const DEFAULT_DB_CACHE: Bytes = Bytes::mib(128);

/// Where data are on a server, and how a private cluster is run.
#[derive(Debug, Args)]
pub(in crate::cli) struct ServerArgs {
    /// Schema of the database that holds the data [default: plimsoll]
    #[arg(long, value_name = "NAME", help_heading = "PostgreSQL")]
    db_schema: Option<String>,

    /// Shared buffers of a private cluster (`pg:DIR`) [default: 128M]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "PostgreSQL")]
    db_cache: Option<Bytes>,

    /// Memory that a private cluster may take, page cache included, so that memory cannot hide the device (needs root)
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "PostgreSQL")]
    host_memory: Option<Bytes>,

    /// Leave a private cluster running when the command ends
    #[arg(long, help_heading = "PostgreSQL")]
    keep_running: bool,

    /// Folder of the server's programs, for a private cluster [default: the newest that is installed]
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_PG_BIN", hide_env_values = true, help_heading = "PostgreSQL")]
    pg_bin: Option<PathBuf>,
}

/// How load is put on a server.
#[derive(Debug, Default, Args)]
pub(in crate::cli) struct SendArgs {
    /// How operations reach the server [default: batch; statement with --rate]
    #[arg(long, value_enum, value_name = "HOW", help_heading = "PostgreSQL")]
    send: Option<SendChoice>,

    /// Take the hosts of the address as servers of their own, spread sessions over all, and distinguish each
    #[arg(long, help_heading = "PostgreSQL")]
    pub(super) per_node: bool,

    /// Do not trace the server's reads and writes in the kernel, even where that is allowed
    #[arg(long, help_heading = "PostgreSQL")]
    pub(super) no_trace: bool,
}

/// How operations reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum SendChoice {
    /// One prepared statement for each operation, timed here
    Statement,
    /// Lists that a procedure of the server loops over and times
    Batch,
}

impl ServerArgs {
    /// The schema of the database.
    pub(super) fn schema(&self) -> &str {
        self.db_schema.as_deref().unwrap_or(DEFAULT_SCHEMA)
    }

    /// Shared buffers of a private cluster.
    pub(super) fn db_cache(&self) -> Bytes {
        self.db_cache.unwrap_or(DEFAULT_DB_CACHE)
    }

    /// Most memory of a private cluster.
    pub(super) fn host_memory(&self) -> Option<Bytes> {
        self.host_memory
    }

    /// Whether a private cluster outlives the command.
    pub(super) fn keeps_running(&self) -> bool {
        self.keep_running
    }

    /// Where the server's programs are.
    pub(super) fn binaries(&self) -> Option<&PathBuf> {
        self.pg_bin.as_ref()
    }

    /// Refuses what means nothing for a target: whoever said it expects an effect.
    pub(in crate::cli) fn check(&self, address: &TargetAddress) -> Result<(), Failure> {
        let is_private = matches!(address, TargetAddress::PrivateCluster(_));
        let private_only = [
            ("--db-cache", self.db_cache.is_some()),
            ("--host-memory", self.host_memory.is_some()),
            ("--keep-running", self.keep_running),
        ];
        for (flag, given) in private_only {
            if given && !is_private {
                let failure = Failure::new(format_args!("`{flag}` is for a private cluster, not for `{address}`"));
                let hint = if is_server(address) {
                    "a server of your own is configured where it runs; a private one is `--target pg:DIR`"
                } else {
                    "`--target pg:DIR` is a private PostgreSQL cluster; the embedded engine's cache is `--cache`"
                };
                return Err(failure.with_hint(hint.to_owned()));
            }
        }
        if self.db_schema.is_some() && !is_server(address) {
            return Err(not_a_server("--db-schema", address));
        }
        Ok(())
    }
}

impl SendArgs {
    /// How operations are sent, in an open loop or a closed one.
    pub(super) fn send(&self, is_open_loop: bool) -> Result<SendChoice, Failure> {
        match self.send {
            Some(SendChoice::Batch) if is_open_loop => {
                let failure = Failure::new(
                    "`--rate` and `--send batch` contradict each other: operations that are sent \
                                            in batches cannot start when they are due",
                );
                Err(failure
                    .with_hint("leave out one of them; with `--rate`, operations are sent as statements".to_owned()))
            }
            Some(choice) => Ok(choice),
            None if is_open_loop => Ok(SendChoice::Statement),
            None => Ok(SendChoice::Batch),
        }
    }

    /// Refuses what means nothing for a target.
    pub(in crate::cli) fn check(&self, address: &TargetAddress) -> Result<(), Failure> {
        if is_server(address) {
            return Ok(());
        }
        let given = [("--send", self.send.is_some()), ("--per-node", self.per_node), ("--no-trace", self.no_trace)];
        match given.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(not_a_server(flag, address)),
            None => Ok(()),
        }
    }
}

/// Whether load on this address lands on a database server.
pub(in crate::cli) fn is_server(address: &TargetAddress) -> bool {
    matches!(address, TargetAddress::PrivateCluster(_) | TargetAddress::Postgres(_))
}

fn not_a_server(flag: &str, address: &TargetAddress) -> Failure {
    Failure::new(format_args!("`{flag}` is for database servers, not for `{address}`")).with_hint(
        "leave it out, or name a server: `--target pg:DIR` or `--target postgres://USER@HOST/DATABASE`".to_owned(),
    )
}
