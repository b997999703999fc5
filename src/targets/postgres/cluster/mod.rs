//! Private clusters: PostgreSQL servers that Plimsoll makes, starts, stops and removes, each in a directory of its own.
//!
//! A server that a command has started ends with that command, whatever ends it, unless it is to be kept. A kept server is
//! used by later commands on the same directory, which leave it running; [`remove`] stops it. One command at a time works
//! on a directory.

mod binaries;
mod create;
mod facts;
mod inspect;
mod memory;
mod postmaster;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use rustix::process::Signal;

use self::binaries::Binaries;
use self::postmaster::Postmaster;
use self::settings::SettingOptions;
use super::error::PostgresError;
use super::local::LocalServer;
use crate::config::postgres::{DEFAULT_PORT, PostgresAddress, PostgresNode, TlsOptions};
use crate::targets::TargetError;
use crate::targets::sql::private::{
    DirectoryState, Files, Hold, MemoryLimit, Owner, PrivateError, ServerKind, Sockets, Start, Supervisor, await_ready,
    damaged, effective_limit, file_error, is_held_to, limit_of, log_or,
};
use crate::units::Bytes;

pub use self::facts::facts_of;
pub use self::inspect::{FoundCluster, Running, inspect, remove};
pub use self::memory::{check as check_memory, needed as needed_memory};
pub use crate::targets::sql::private::{Dropped, OurFile, drop_page_cache};

/// What PostgreSQL's private servers are.
const CLUSTER: ServerKind = ServerKind {
    product: "PostgreSQL",
    noun: "cluster",
    user: "postgres",
    environment: &["PG"],
    data_file: "PG_VERSION",
    schemes: ["postgres://", "pg:"],
    socket: ".s.PGSQL.5432",
    stop: [Signal::INT, Signal::QUIT],
};

/// The role that owns a private cluster, and the database in it.
const ROLE: &str = "plimsoll";

/// What a private cluster is asked for.
#[derive(Debug, Clone)]
pub struct ClusterRequest {
    /// Its directory.
    pub directory: PathBuf,
    /// Whether it may be made if it is not there.
    pub create: bool,
    /// Shared buffers of its server; at least 128 KiB.
    pub db_cache: Bytes,
    /// Most memory that the server may use, page cache of its files included; `None` for no limit.
    pub host_memory: Option<Bytes>,
    /// Sessions for which there is to be room.
    pub max_sessions: u32,
    /// Sessions that are known to come: the memory must do for them.
    pub sessions: u32,
    /// Whether the server goes on running when we end.
    pub keep_running: bool,
    /// Directory of the server's programs; the newest that are found where `None`.
    pub binaries: Option<PathBuf>,
}

/// A private cluster whose server runs. Dropping it ends a server that it has started and that is not to be kept.
// The fields are dropped in this order: the server, what it needed, and last the lock.
#[derive(Debug)]
pub struct Cluster {
    /// None where the server is to go on running.
    supervisor: Option<Supervisor>,
    /// Directory of its socket, which may have to go with it.
    _sockets: Sockets,
    /// Its control group, where it is to go with it.
    _memory: Option<MemoryLimit>,
    files: Files,
    program: PathBuf,
    log_offset: u64,
    address: PostgresAddress,
    local: LocalServer,
    facts: BTreeMap<String, String>,
    notes: Vec<String>,
    _hold: Hold,
}

impl Cluster {
    /// Makes the cluster if it may and must, starts its server if it does not run, and waits until it takes connections.
    /// `tell` hears what takes long; `stop` ends the wait. Must not be called in a tokio runtime.
    ///
    /// # Errors
    /// When that cannot be done, with the reason; then nothing that was started runs any more. [`TargetError::Interrupted`]
    /// when it was stopped.
    pub fn start(request: &ClusterRequest, tell: &dyn Fn(&str), stop: &AtomicBool) -> Result<Self, TargetError> {
        settings::check_shared_buffers(request.db_cache)?;
        if let Some(limit) = request.host_memory {
            memory::check(limit, request.db_cache, request.sessions)?;
        }
        let files = Files::new(&CLUSTER, &request.directory)?;
        let free = files.look()? == DirectoryState::Free;
        if free && !request.create {
            return Err(files.nothing_there().into());
        }
        let owner = Owner::of(&CLUSTER, &files.data())?;
        Binaries::find(request.binaries.as_deref(), data_major(&files)?)?;
        owner.check_reach(files.directory())?;
        let files = files.make(&owner)?;
        owner.check_reach(files.directory())?;
        let hold = files.take(&owner, tell, stop)?;
        // Somebody may have made or removed it until we had the lock.
        let free = files.look()? == DirectoryState::Free;
        let binaries = Binaries::find(request.binaries.as_deref(), data_major(&files)?)?;
        if data_major(&files)?.is_none() {
            if !request.create {
                return Err(files.unfinished().into());
            }
            let shown = files.directory().display();
            tell(&format!("making a cluster of PostgreSQL {} in {shown}", binaries.version));
            let made = create::initialize(&files, &owner, &binaries, &hold, stop);
            if made.is_err() && free {
                files.remove()?;
            }
            made?;
        }
        match Postmaster::running(&files.data())? {
            Some(running) => Self::join(request, files, binaries, hold, &running),
            None => Self::launch(request, files, &owner, &binaries, hold, tell, stop),
        }
    }

    fn launch(
        request: &ClusterRequest,
        files: Files,
        owner: &Owner,
        binaries: &Binaries,
        hold: Hold,
        tell: &dyn Fn(&str),
        stop: &AtomicBool,
    ) -> Result<Self, TargetError> {
        let mut sockets = Sockets::make(&files, owner)?;
        let memory = request.host_memory.map(MemoryLimit::make).transpose()?;
        if memory.is_some() {
            // Pages that are cached already are charged to others, and would be read without the device.
            tell("dropping the cluster's files from the page cache");
            drop_page_cache(&files.data())?;
        }
        let wishes = SettingOptions {
            shared_buffers: request.db_cache,
            sessions: request.max_sessions,
            socket_directory: &sockets.path,
            port: DEFAULT_PORT,
            file_system: settings::file_system_bytes(files.directory())?,
        };
        let known = facts::known_settings(owner, binaries)?;
        let chosen = settings::chosen(&wishes, |name| known.contains(name));
        let mut arguments = vec!["-D".to_owned(), files.data().to_string_lossy().into_owned()];
        arguments.extend(chosen.iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]));
        let (_, log_offset) = files.open_log(owner)?;
        let program = binaries.program("postgres");
        tell("starting the server");
        let supervisor = Supervisor::start(&Start {
            owner,
            files: &files,
            hold: &hold,
            program: &program,
            arguments,
            memory: memory.as_ref(),
            passing_sockets: sockets.passing().as_deref(),
        })?;
        let pid = supervisor.server_pid();
        let is_ready = || Ok(Postmaster::read(&files.data())?.is_some_and(|found| found.pid == pid && found.is_ready));
        await_ready(&files, log_offset, (&program, pid), is_ready, program_hint, tell, stop)?;
        // A run without the limit would measure something else.
        if let Some(limit) = request.host_memory.filter(|limit| !is_held_to(pid, *limit)) {
            return Err(PostgresError::Unfit {
                what: format!("the kernel does not hold the server to {limit} of memory, though it took the limit"),
                hint: Some("something manages the control groups here; do without `--host-memory`".to_owned()),
            }
            .into());
        }
        let address = address(&sockets.path, DEFAULT_PORT);
        let mut facts = facts::read(&address, true)?;
        facts.insert("started_by_us".to_owned(), "yes".to_owned());
        facts.insert("bin_directory".to_owned(), binaries.directory.display().to_string());
        let mut notes = limit_notes(pid, request, &mut facts);
        let supervisor = if request.keep_running {
            supervisor.release()?;
            sockets.keep();
            notes.push(format!("the server is left running (process {pid}); `kill -INT {pid}` stops it"));
            None
        } else {
            Some(supervisor)
        };
        let memory = match memory {
            Some(memory) if request.keep_running => {
                memory.keep();
                None
            }
            memory => memory,
        };
        let local = LocalServer { postmaster_pid: pid, data_directory: Some(files.data()) };
        Ok(Self {
            supervisor,
            _sockets: sockets,
            _memory: memory,
            files,
            program,
            log_offset,
            address,
            local,
            facts,
            notes,
            _hold: hold,
        })
    }

    /// Uses a server that an earlier command has kept.
    fn join(
        request: &ClusterRequest,
        files: Files,
        binaries: Binaries,
        hold: Hold,
        running: &Postmaster,
    ) -> Result<Self, TargetError> {
        let pid = running.pid;
        let data = files.data();
        let stop_it = format!("stop it first: `kill -INT {pid}`");
        let unfit = |what: String, hint: String| TargetError::from(PostgresError::Unfit { what, hint: Some(hint) });
        let shown = files.directory().display();
        if !postmaster::was_started_by_us(&data) {
            let what =
                format!("a server that Plimsoll has not started (process {pid}) runs on the cluster in `{shown}`");
            return Err(unfit(what, format!("{stop_it}, or load it by its address: `--target postgres://…`")));
        }
        let Some((directory, port)) = running.socket.as_ref().filter(|_| running.is_ready) else {
            let what = format!("the server of the cluster in `{shown}` (process {pid}) takes no connections");
            return Err(unfit(
                what,
                format!("wait until it has started or ended; `{}` says more", files.log().display()),
            ));
        };
        let mut sockets = Sockets::of_running(directory);
        sockets.keep();
        if let Some(limit) = request.host_memory.filter(|limit| !is_held_to(pid, *limit)) {
            let what = format!("the server of the cluster in `{shown}` runs without a memory limit of {limit}");
            return Err(unfit(what, format!("{stop_it}, then it is started anew with the limit")));
        }
        let address = address(&sockets.path, *port);
        let mut facts = facts::read(&address, false)?;
        let setting = |name: &str| facts.get(&format!("setting.{name}")).cloned().unwrap_or_default();
        let needed = request.max_sessions.saturating_add(settings::SPARE_CONNECTIONS);
        if setting("max_connections").parse().is_ok_and(|most: u32| most < needed) {
            let what = format!(
                "the server of the cluster in `{shown}` takes {} connections, and {needed} are needed",
                setting("max_connections")
            );
            return Err(unfit(what, format!("{stop_it}, then it is started anew for them")));
        }
        let mut notes = vec![format!("the server was running already (process {pid}) and is left running")];
        let shared_buffers = setting("shared_buffers");
        if facts::setting_bytes(&shared_buffers) != Some(request.db_cache) {
            notes.push(format!(
                "its shared buffers are {shared_buffers}, not the {} asked for; to have those, {stop_it}",
                request.db_cache
            ));
        }
        facts.insert("started_by_us".to_owned(), "no".to_owned());
        notes.extend(limit_notes(pid, request, &mut facts));
        let local = LocalServer { postmaster_pid: pid, data_directory: Some(data) };
        let program = binaries.program("postgres");
        Ok(Self {
            supervisor: None,
            _sockets: sockets,
            _memory: None,
            files,
            program,
            log_offset: 0,
            address,
            local,
            facts,
            notes,
            _hold: hold,
        })
    }

    /// Where the server is reached: as the role `plimsoll`, in the database of that name.
    pub fn address(&self) -> &PostgresAddress {
        &self.address
    }

    /// Its processes and data.
    pub fn local(&self) -> LocalServer {
        self.local.clone()
    }

    /// What is worth knowing of the server: `server_version`, `setting.NAME` of the settings that matter, `host_memory` if
    /// it is limited, `started_by_us` (`no` for one that an earlier command has kept), `bin_directory`.
    pub fn facts(&self) -> BTreeMap<String, String> {
        self.facts.clone()
    }

    /// What the user should know.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Ends the server if this value has started it and it is not to be kept, and waits for its end: it is given two
    /// minutes to write out what it holds in memory.
    ///
    /// # Errors
    /// When it did not end in order. It runs no more in this case either.
    pub fn stop(mut self) -> Result<(), PostgresError> {
        let Some(supervisor) = &mut self.supervisor else { return Ok(()) };
        if supervisor.end() {
            return Ok(());
        }
        Err(PrivateError::Program {
            program: self.program.clone(),
            reason: log_or(&self.files, self.log_offset, "the server did not shut down in order"),
            hint: Some("nothing committed is lost: the next start recovers it".to_owned()),
        }
        .into())
    }
}

/// Major version of the cluster's data; none before they are whole.
///
/// # Errors
/// When the version cannot be read.
fn data_major(files: &Files) -> Result<Option<u32>, PrivateError> {
    let path = files.data().join("PG_VERSION");
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !files.data().exists() => return Ok(None),
        read => read.map_err(file_error("read", &path))?,
    };
    text.trim().parse().map(Some).map_err(|_| damaged(&path, "it holds no version of PostgreSQL"))
}

/// What to do about what a server or initdb said when it failed.
fn program_hint(said: &str) -> Option<String> {
    let reported = match said {
        _ if said.contains("No space left on device") => "free some space, or use a directory on another file system",
        _ if said.contains("shared memory") || said.contains("Cannot allocate memory") => {
            "lower `--db-cache`: the machine has no room for shared buffers of this size"
        }
        _ if said.contains("Permission denied") => {
            "let the server's user read and write there, or use another directory"
        }
        _ => return None,
    };
    Some(reported.to_owned())
}

/// Adds the memory limit to the facts, and gives notes about it.
fn limit_notes(pid: u32, request: &ClusterRequest, facts: &mut BTreeMap<String, String>) -> Vec<String> {
    let Some(limit) = limit_of(pid) else { return Vec::new() };
    facts.insert("host_memory".to_owned(), limit.to_string());
    let mut notes = Vec::new();
    if request.host_memory.is_none() {
        notes.push(format!("the server was started with its memory limited to {limit}"));
    }
    if let Some(binding) = effective_limit(pid).filter(|binding| *binding < limit) {
        notes.push(format!("a control group around the server's limits its memory to {binding} already"));
    }
    notes
}

fn address(socket_directory: &str, port: u16) -> PostgresAddress {
    PostgresAddress {
        nodes: vec![PostgresNode { host: socket_directory.to_owned(), port: Some(port) }],
        user: Some(ROLE.to_owned()),
        password: None,
        database: Some(ROLE.to_owned()),
        tls: TlsOptions::default(),
        connect_timeout_s: None,
    }
}
