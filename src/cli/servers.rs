//! Where data are on a database server, and how a private one is run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::exit::Failure;
use super::{processors, say};
use model::config::TargetAddress;
use model::units::Bytes;
use targets::block::safety::Permission;
use targets::database::{DatabaseOptions, Layout, Method};

/// Buffer cache of the embedded engine where nobody says otherwise.
pub(super) const DEFAULT_CACHE: Bytes = Bytes::mib(64);
/// Its redo where nobody says otherwise.
pub(super) const DEFAULT_REDO_FILE: Bytes = Bytes::mib(64);
pub(super) const DEFAULT_REDO_FILES: u32 = 4;
/// Schema of the database where nobody names another.
const DEFAULT_SCHEMA: &str = "plimsoll";
/// Buffers of a private server where nobody says otherwise: small, so that reads leave them.
const DEFAULT_DB_CACHE: Bytes = Bytes::mib(128);

/// Processors for the threads that sessions are shared out among, where nobody says how many there are to be.
///
/// A private server works on the same ones, and a statement costs it several times what it costs the client. So a quarter of them is
/// enough; with more, threads wake up for one answer each: on two processors two threads take 1.2 to 1.5 times the time of one.
pub(super) fn processors_for_sessions(address: &TargetAddress) -> u32 {
    let all = processors();
    if address.is_private_server() { (all / 4).max(1) } else { all }
}

/// Where data are on a server, and how a private server is run.
#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// Schema of the PostgreSQL database that holds the data [default: plimsoll]
    #[arg(long, value_name = "NAME", help_heading = "Database servers")]
    db_schema: Option<String>,

    /// Shared buffers or buffer pool of a private server (`pg:DIR`, `my:DIR`) [default: 128M]
    ///
    /// In a check the default is a 64th of its data, but at least 16M.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Database servers")]
    db_cache: Option<Bytes>,

    /// Memory limit of a private server, including page cache (needs root)
    ///
    /// With less memory than data, reads reach the device.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Database servers")]
    host_memory: Option<Bytes>,

    /// Switch off full-page writes or the doublewrite buffer of a private server, to measure what they cost
    ///
    /// Such data may be damaged by a power cut.
    #[arg(long, help_heading = "Database servers")]
    no_page_protection: bool,

    /// Whose tables to use, on Oracle [default: plimsoll]
    #[arg(long, value_enum, value_name = "WHOSE", help_heading = "Database servers")]
    layout: Option<LayoutChoice>,

    /// Leave a private server running when the command ends
    #[arg(long, help_heading = "Database servers")]
    keep_running: bool,

    /// Directory of PostgreSQL's programs, for a private server [default: the newest installed]
    ///
    /// PLIMSOLL_MYSQL_BIN names those of MySQL and MariaDB.
    #[arg(
        long,
        value_name = "DIR",
        env = "PLIMSOLL_PG_BIN",
        hide_env_values = true,
        help_heading = "Database servers"
    )]
    pg_bin: Option<PathBuf>,
}

/// Which servers load is put on, and how they are watched.
#[derive(Debug, Args)]
pub(super) struct NodeArgs {
    /// Treat each host of the address as a server of its own, spread sessions, and report each
    #[arg(long, help_heading = "Database servers")]
    per_node: bool,

    /// Do not trace the server's reads and writes in the kernel
    #[arg(long, help_heading = "Database servers")]
    no_trace: bool,
}

impl NodeArgs {
    /// Adds it to how a server is used.
    pub(super) fn add_to(&self, options: DatabaseOptions) -> DatabaseOptions {
        DatabaseOptions { per_node: self.per_node, trace: !self.no_trace, ..options }
    }

    /// Which of them was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        [("--per-node", self.per_node), ("--no-trace", self.no_trace)]
            .into_iter()
            .find_map(|(flag, given)| given.then_some(flag))
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum LayoutChoice {
    /// Those that `plimsoll slob setup` creates in one schema
    Plimsoll,
    /// Those that SLOB's own `setup.sh` created: cf1 of user1, user2, …
    Slob,
}

impl LayoutChoice {
    pub(super) fn layout(self) -> Layout {
        match self {
            Self::Plimsoll => Layout::Plimsoll,
            Self::Slob => Layout::Slob,
        }
    }
}

impl ServerArgs {
    /// How the database at an address is reached and used.
    ///
    /// # Errors
    /// When something was said that means nothing there.
    pub(super) fn options(&self, address: &TargetAddress) -> Result<DatabaseOptions, Failure> {
        self.check(address)?;
        Ok(DatabaseOptions {
            io_engine: None,
            cache: DEFAULT_CACHE,
            flash: None,
            redo_file: DEFAULT_REDO_FILE,
            redo_files: DEFAULT_REDO_FILES,
            data_dest: None,
            redo_dest: None,
            ledger: None,
            permission: Permission::default(),
            scrub: false,
            schema: self.db_schema.clone().unwrap_or_else(|| DEFAULT_SCHEMA.to_owned()),
            db_cache: self.db_cache.unwrap_or(DEFAULT_DB_CACHE),
            host_memory: self.host_memory,
            page_protection: !self.no_page_protection,
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

    /// Whether the size of a private server's buffers is left to the program.
    pub(super) fn has_no_db_cache(&self) -> bool {
        self.db_cache.is_none()
    }

    /// Whether nobody limits the memory of a private server, page cache included.
    pub(super) fn has_no_host_memory(&self) -> bool {
        self.host_memory.is_none()
    }

    /// Refuses what means nothing for a target: whoever said it expects an effect.
    fn check(&self, address: &TargetAddress) -> Result<(), Failure> {
        let is_private = address.is_private_server();
        let private_only = [
            ("--db-cache", self.db_cache.is_some()),
            ("--host-memory", self.host_memory.is_some()),
            ("--no-page-protection", self.no_page_protection),
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

/// Refuses what only Oracle has a meaning for.
pub(super) fn not_oracle(flag: &str, address: &TargetAddress) -> Failure {
    Failure::new(format_args!("`{flag}` is for Oracle, not for `{address}`")).with_hint("leave it out".to_owned())
}
