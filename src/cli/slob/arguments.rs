//! What only a database server takes, and what is asked of the wrong target.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::exit::Failure;
use crate::cli::say;
use crate::config::TargetAddress;
use crate::targets::database::{Commits, DatabaseOptions, Layout, Method, Reads, Sending};
use crate::units::Bytes;

/// Buffer cache of the embedded engine where nobody says otherwise.
pub(super) const DEFAULT_CACHE: Bytes = Bytes::mib(64);
/// Its redo where nobody says otherwise.
pub(super) const DEFAULT_REDO_FILE: Bytes = Bytes::mib(64);
pub(super) const DEFAULT_REDO_FILES: u32 = 4;
/// Schema of the database where nobody names another.
const DEFAULT_SCHEMA: &str = "plimsoll";
/// Buffers of a private server where nobody says otherwise: small, so that reads leave them.
const DEFAULT_DB_CACHE: Bytes = Bytes::mib(128);

/// Where data are on a server, and how a private server is run.
#[derive(Debug, Args)]
pub(in crate::cli) struct ServerArgs {
    /// Schema of the PostgreSQL database that holds the data [default: plimsoll]
    #[arg(long, value_name = "NAME", help_heading = "Database servers")]
    db_schema: Option<String>,

    /// Shared buffers or buffer pool of a private server (`pg:DIR`, `my:DIR`) [default: 128M]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Database servers")]
    db_cache: Option<Bytes>,

    /// Memory that a private server may take, page cache included, so that memory cannot hide the device (needs root)
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Database servers")]
    host_memory: Option<Bytes>,

    /// Whose tables are used, on Oracle [default: plimsoll]
    #[arg(long, value_enum, value_name = "WHOSE", help_heading = "Database servers")]
    layout: Option<LayoutChoice>,

    /// Leave a private server running when the command ends
    #[arg(long, help_heading = "Database servers")]
    keep_running: bool,

    /// Folder of PostgreSQL's programs, for a private server [default: the newest that is installed]; those of MySQL and MariaDB
    /// are in PLIMSOLL_MYSQL_BIN
    #[arg(
        long,
        value_name = "DIR",
        env = "PLIMSOLL_PG_BIN",
        hide_env_values = true,
        help_heading = "Database servers"
    )]
    pg_bin: Option<PathBuf>,
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

/// Which servers load is put on, and how they are watched.
#[derive(Debug, Args)]
pub(in crate::cli) struct NodeArgs {
    /// Take the hosts of the address as servers of their own, spread sessions over all, and distinguish each
    #[arg(long, help_heading = "Database servers")]
    per_node: bool,

    /// Do not trace the server's reads and writes in the kernel, even where that is allowed
    #[arg(long, help_heading = "Database servers")]
    no_trace: bool,
}

impl NodeArgs {
    /// Adds it to how a server is used.
    pub(in crate::cli) fn add_to(&self, options: DatabaseOptions) -> DatabaseOptions {
        DatabaseOptions { per_node: self.per_node, trace: !self.no_trace, ..options }
    }

    /// Which of them was given.
    fn given(&self) -> Option<&'static str> {
        [("--per-node", self.per_node), ("--no-trace", self.no_trace)]
            .into_iter()
            .find_map(|(flag, given)| given.then_some(flag))
    }
}

/// How operations reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SendChoice {
    /// One prepared statement for each operation, timed here
    Statement,
    /// Lists that a procedure of the server loops over and times
    Batch,
}

/// How load is put on Oracle, where there is a choice.
#[derive(Debug, Args)]
pub(super) struct MethodArgs {
    /// How updates in batches are committed, on Oracle [default: wait]
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Database servers")]
    commit: Option<CommitChoice>,

    /// How a range of keys is read, on Oracle [default: range]
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Database servers")]
    reads: Option<ReadsChoice>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum LayoutChoice {
    /// Those that `plimsoll slob setup` makes in one schema
    Plimsoll,
    /// Those that SLOB's own `setup.sh` has made: cf1 of user1, user2, …
    Slob,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CommitChoice {
    /// Each waits until it is on storage
    Wait,
    /// As SLOB's, which the server does not wait for before the batch ends
    Slob,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReadsChoice {
    /// By one statement, as SLOB does
    Range,
    /// By a statement for each key, on the server: surely single blocks
    KeyByKey,
}

impl LayoutChoice {
    pub(super) fn layout(self) -> Layout {
        match self {
            Self::Plimsoll => Layout::Plimsoll,
            Self::Slob => Layout::Slob,
        }
    }
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

impl ServerArgs {
    /// How the database at an address is reached and used.
    ///
    /// # Errors
    /// When something was said that means nothing there.
    pub(in crate::cli) fn options(&self, address: &TargetAddress) -> Result<DatabaseOptions, Failure> {
        self.check(address)?;
        Ok(DatabaseOptions {
            io_engine: None,
            cache: DEFAULT_CACHE,
            redo_file: DEFAULT_REDO_FILE,
            redo_files: DEFAULT_REDO_FILES,
            schema: self.db_schema.clone().unwrap_or_else(|| DEFAULT_SCHEMA.to_owned()),
            db_cache: self.db_cache.unwrap_or(DEFAULT_DB_CACHE),
            host_memory: self.host_memory,
            keep_running: self.keep_running,
            programs: self.pg_bin.clone().filter(|_| address.is_postgres()),
            sending: None,
            method: Method { layout: self.layout.map(LayoutChoice::layout).unwrap_or_default(), ..Method::default() },
            is_open_loop: false,
            per_node: false,
            trace: true,
            own_report: None,
            dry_run: false,
            say: |words| say::line(words),
        })
    }

    /// Whether nobody limits the memory of a private server, page cache included.
    pub(in crate::cli) fn has_no_host_memory(&self) -> bool {
        self.host_memory.is_none()
    }

    /// Refuses what means nothing for a target: whoever said it expects an effect.
    fn check(&self, address: &TargetAddress) -> Result<(), Failure> {
        let is_private = address.is_private_server();
        let private_only = [
            ("--db-cache", self.db_cache.is_some()),
            ("--host-memory", self.host_memory.is_some()),
            ("--keep-running", self.keep_running),
        ];
        for (flag, given) in private_only {
            if given && !is_private {
                let failure = Failure::new(format_args!("`{flag}` is for a private server, not for `{address}`"));
                let hint = if address.is_server() {
                    "a server of your own is configured where it runs; a private one is `--target pg:DIR` or `my:DIR`"
                } else {
                    "`--target pg:DIR` and `my:DIR` are private servers; the embedded engine's cache is `--cache`"
                };
                return Err(failure.with_hint(hint.to_owned()));
            }
        }
        if self.layout.is_some() && !address.is_oracle() {
            return Err(not_oracle("--layout", address));
        }
        if self.db_schema.is_some() && !address.is_postgres() {
            let failure = Failure::new(format_args!("`--db-schema` is for PostgreSQL, not for `{address}`"));
            return Err(failure.with_hint(
                "leave it out; MySQL and MariaDB have the database in the address, Oracle the user".to_owned(),
            ));
        }
        Ok(())
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

fn not_oracle(flag: &str, address: &TargetAddress) -> Failure {
    Failure::new(format_args!("`{flag}` is for Oracle, not for `{address}`")).with_hint("leave it out".to_owned())
}

fn not_a_server(flag: &str, address: &TargetAddress) -> Failure {
    Failure::new(format_args!("`{flag}` is for database servers, not for `{address}`")).with_hint(
        "leave it out, or name a server: `--target pg:DIR`, `my:DIR`, `postgres://USER@HOST/DATABASE` or `mysql://USER@HOST/DATABASE`".to_owned(),
    )
}
