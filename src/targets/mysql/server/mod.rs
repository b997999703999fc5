//! Private servers: MySQL or MariaDB servers that Plimsoll makes, starts, stops and removes, each in a directory of its own.
//!
//! A server that a command has started ends with that command, whatever ends it, unless it is to be kept. A kept server is
//! used by later commands on the same directory, which leave it running; [`remove`] stops it. One command at a time works
//! on a directory.

pub(in crate::targets::mysql) mod binaries;
mod running;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;

use rustix::process::Signal;

use self::binaries::Binaries;
use self::running::Running;
use super::connect::{Connector, on_own_runtime};
use crate::config::mysql::MysqlAddress;
use crate::targets::TargetError;
use crate::targets::sql::private::{
    DirectoryState, Files, Hold, MemoryLimit, OurFile, Owner, PrivateError, ServerKind, Sockets, Start, Supervisor,
    await_end, await_ready, drop_page_cache, end, file_error, is_held_to, limit_of, log_or, private_directory,
    remove as remove_path,
};
use crate::units::Bytes;

pub use self::settings::{facts, needed_memory};

/// What private servers of MySQL and MariaDB are.
const SERVER: ServerKind = ServerKind {
    product: "MySQL",
    noun: "server",
    user: "mysql",
    environment: &["MYSQL", "MARIADB"],
    data_file: "ibdata1",
    schemes: ["mysql://", "my:"],
    socket: SOCKET,
    // There is no signal that has it drop everything and end at once; what a kill leaves the next start recovers.
    stop: [Signal::TERM, Signal::KILL],
};
const SOCKET: &str = "sock";
/// The user of a private server: that of its own administration, whom only the socket lets in.
const USER: &str = "root";
/// The database that holds the data.
const DATABASE: &str = "plimsoll";

/// What a private server is asked for.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    /// Its directory.
    pub directory: PathBuf,
    /// Whether it may be made if it is not there.
    pub create: bool,
    /// Its buffer pool; at least 5 MiB.
    pub db_cache: Bytes,
    /// Most memory that the server may use, page cache of its files included; `None` for no limit.
    pub host_memory: Option<Bytes>,
    /// Sessions for which there is to be room.
    pub max_sessions: u32,
    /// Sessions that are known to come: the memory must do for them.
    pub sessions: u32,
    /// Whether the server goes on running when we end.
    pub keep_running: bool,
    /// Directory of the server's programs; the first that are found where `None`.
    pub binaries: Option<PathBuf>,
}

/// A private server that runs. Dropping it ends a server that it has started and that is not to be kept.
// The fields are dropped in this order: the server, what it needed, and last the lock.
#[derive(Debug)]
pub struct PrivateServer {
    /// None where the server is to go on running.
    supervisor: Option<Supervisor>,
    /// Directory of its socket, which may have to go with it.
    _sockets: Sockets,
    /// Its control group, where it is to go with it.
    _memory: Option<MemoryLimit>,
    files: Files,
    program: PathBuf,
    log_offset: u64,
    socket: PathBuf,
    pid: u32,
    facts: BTreeMap<String, String>,
    notes: Vec<String>,
    _hold: Hold,
}

/// A private server as it lies there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// When it was made, RFC 3339 in UTC.
    pub created_at: String,
    /// Version of the programs that made it.
    pub made_by_version: String,
    /// Whether its data are whole, rather than never finished.
    pub is_whole: bool,
    /// Process number and address of its server, if it runs.
    pub running: Option<(u32, MysqlAddress)>,
    /// The command that works on it, if one does: `process 123`.
    pub in_use_by: Option<String>,
    /// All that Plimsoll made there.
    pub files: Vec<OurFile>,
}

impl PrivateServer {
    /// Makes the server if it may and must, starts it if it does not run, and waits until it takes connections. `tell` hears
    /// what takes long; `stop` ends the wait. Must not be called in a tokio runtime.
    ///
    /// # Errors
    /// When that cannot be done, with the reason; then nothing that was started runs any more. [`TargetError::Interrupted`]
    /// when it was stopped.
    pub fn start(request: &ServerRequest, tell: &dyn Fn(&str), stop: &AtomicBool) -> Result<Self, TargetError> {
        settings::check(request)?;
        let files = Files::new(&SERVER, &request.directory)?;
        let free = files.look()? == DirectoryState::Free;
        if free && !request.create {
            return Err(files.nothing_there().into());
        }
        let owner = Owner::of(&SERVER, &files.data())?;
        let binaries = Binaries::find(request.binaries.as_deref())?;
        owner.check_reach(files.directory())?;
        let files = files.make(&owner)?;
        owner.check_reach(files.directory())?;
        let hold = files.take(&owner, tell, stop)?;
        // Somebody may have made or removed it until we had the lock.
        let state = files.look()?;
        if !files.data().exists() {
            if !request.create {
                return Err(files.unfinished().into());
            }
            tell(&format!("making a server of version {} in {}", binaries.version, files.directory().display()));
            let made = initialize(&files, &owner, &binaries, &hold, stop);
            if made.is_err() && state == DirectoryState::Free {
                files.remove()?;
            }
            made?;
        } else if let DirectoryState::Ours(marker) = state {
            check_version(&files, &marker.server_version, &binaries)?;
        }
        match Running::of(&files.data())? {
            Some(running) => Self::join(request, files, binaries, hold, &running),
            None => Self::launch(request, files, &owner, &binaries, hold, tell, stop),
        }
    }

    fn launch(
        request: &ServerRequest,
        files: Files,
        owner: &Owner,
        binaries: &Binaries,
        hold: Hold,
        tell: &dyn Fn(&str),
        stop: &AtomicBool,
    ) -> Result<Self, TargetError> {
        let mut sockets = Sockets::make(&files, owner)?;
        // Also for files that sorting takes, which are to be where the data are.
        private_directory(&files.run(), owner)?;
        let memory = request.host_memory.map(MemoryLimit::make).transpose()?;
        if memory.is_some() {
            tell("dropping the server's files from the page cache");
            drop_page_cache(&files.data())?;
        }
        let socket = Path::new(&sockets.path).join(SOCKET);
        let arguments = settings::arguments(request, &files, &socket, binaries)?;
        let (_, log_offset) = files.open_log(owner)?;
        let program = binaries.server.clone();
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
        // A socket that a killed server has left answers nobody, and the server's own number stands in its file.
        let connector = Connector::new(&address(&socket), "plimsoll")?;
        let is_ready = || {
            let is_its_own = Running::of(&files.data())?.is_some_and(|running| running.pid == pid);
            Ok(is_its_own && on_own_runtime(async { connector.connect(0).await.map(drop) }).is_ok())
        };
        await_ready(&files, log_offset, (&program, pid), is_ready, program_hint, tell, stop)?;
        // A run without the limit would measure something else.
        if let Some(limit) = request.host_memory.filter(|limit| !is_held_to(pid, *limit)) {
            return Err(PrivateError::Unfit {
                what: format!("the kernel does not hold the server to {limit} of memory, though it took the limit"),
                hint: Some("something manages the control groups here; do without `--host-memory`".to_owned()),
            }
            .into());
        }
        let mut facts = settings::facts(&connector, 0)?;
        facts.insert("started_by_us".to_owned(), "yes".to_owned());
        facts.insert("bin_directory".to_owned(), program.parent().unwrap_or(&program).display().to_string());
        if let Some(limit) = request.host_memory {
            facts.insert("host_memory".to_owned(), limit.to_string());
        }
        let mut notes = Vec::new();
        let (supervisor, memory) = if request.keep_running {
            supervisor.release()?;
            sockets.keep();
            memory.into_iter().for_each(MemoryLimit::keep);
            notes.push(format!("the server is left running (process {pid}); `kill {pid}` stops it"));
            (None, None)
        } else {
            (Some(supervisor), memory)
        };
        let (_sockets, _memory, _hold) = (sockets, memory, hold);
        Ok(Self { supervisor, _sockets, _memory, files, program, log_offset, socket, pid, facts, notes, _hold })
    }

    /// Uses a server that an earlier command has kept.
    fn join(
        request: &ServerRequest,
        files: Files,
        binaries: Binaries,
        hold: Hold,
        running: &Running,
    ) -> Result<Self, TargetError> {
        let pid = running.pid;
        let shown = files.directory().display();
        let stop_it = format!("stop it first: `kill {pid}`");
        let unfit = |what: String, hint: String| TargetError::from(PrivateError::Unfit { what, hint: Some(hint) });
        let Some(socket) = running.socket.clone() else { return Err(not_ours(&files, pid)) };
        if let Some(limit) = request.host_memory.filter(|limit| !is_held_to(pid, *limit)) {
            let what = format!("the server in `{shown}` runs without a memory limit of {limit}");
            return Err(unfit(what, format!("{stop_it}, then it is started anew with the limit")));
        }
        let mut facts = settings::facts(&Connector::new(&address(&socket), "plimsoll")?, 0)?;
        let setting = |name: &str| facts.get(&format!("setting.{name}")).and_then(|value| value.parse::<u64>().ok());
        let needed = settings::max_connections(request);
        if let Some(most) = setting("max_connections").filter(|most| *most < u64::from(needed)) {
            let what = format!("the server in `{shown}` takes {most} connections, and {needed} are needed");
            return Err(unfit(what, format!("{stop_it}, then it is started anew for them")));
        }
        let mut notes = vec![format!("the server was running already (process {pid}) and is left running")];
        if let Some(pool) = setting("innodb_buffer_pool_size").filter(|pool| *pool != request.db_cache.0) {
            let (pool, asked) = (Bytes(pool), request.db_cache);
            notes.push(format!("its buffer pool is {pool}, not the {asked} asked for; to have that, {stop_it}"));
        }
        if let Some(limit) = limit_of(pid) {
            facts.insert("host_memory".to_owned(), limit.to_string());
            if request.host_memory.is_none() {
                notes.push(format!("the server was started with its memory limited to {limit}"));
            }
        }
        facts.insert("started_by_us".to_owned(), "no".to_owned());
        let mut sockets = Sockets::of_running(socket.parent().unwrap_or(&socket));
        sockets.keep();
        Ok(Self {
            supervisor: None,
            _sockets: sockets,
            _memory: None,
            program: binaries.server,
            log_offset: 0,
            files,
            socket,
            pid,
            facts,
            notes,
            _hold: hold,
        })
    }

    /// Where the server is reached: as its administrator, with the database that holds the data.
    pub fn address(&self) -> MysqlAddress {
        address(&self.socket)
    }

    /// Process number of the server.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where its data are.
    pub fn data_directory(&self) -> PathBuf {
        self.files.data()
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
    pub fn stop(mut self) -> Result<(), TargetError> {
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

/// Makes the data in a directory that is ours alone. Data that were begun and never finished are started over.
fn initialize(
    files: &Files,
    owner: &Owner,
    binaries: &Binaries,
    hold: &Hold,
    stop: &AtomicBool,
) -> Result<(), TargetError> {
    files.mark(binaries.version.clone())?;
    let data = files.unfinished_data();
    remove_path(&data)?;
    private_directory(&data, owner)?;
    // A server that starts removes temporary tables of others from a directory that it shares with them.
    private_directory(&files.run(), owner)?;
    let (program, arguments) = binaries.initializing(&data);
    let mut command = owner.command(&program);
    command
        .args(arguments)
        .env("TMPDIR", files.run())
        // It reads nothing. Should we be killed, the directory stays locked until it has ended.
        .stdin(hold.share()?)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Ctrl-C reaches it through us.
        .process_group(0);
    let mut child = command.spawn().map_err(file_error("run", &program))?;
    let failed = match await_end(&mut child, &program, stop) {
        Ok(None) => return Ok(files.finish_data()?),
        Ok(Some(reason)) => {
            let hint = program_hint(&reason);
            PrivateError::Program { program, reason, hint }.into()
        }
        Err(error) => error,
    };
    remove_path(&data)?;
    Err(failed)
}

/// Data of one product, or of a later version, are not for the programs of another.
fn check_version(files: &Files, made_by: &str, binaries: &Binaries) -> Result<(), TargetError> {
    let major = |version: &str| version.split('.').next().and_then(|number| number.parse::<u32>().ok());
    let is_mariadb = |version: &str| version.contains("MariaDB");
    if is_mariadb(made_by) == binaries.is_mariadb() && major(made_by) <= major(&binaries.version) {
        return Ok(());
    }
    Err(PrivateError::Unfit {
        what: format!(
            "the server in `{}` was made by version {made_by}, and the programs here are of version {}",
            files.directory().display(),
            binaries.version
        ),
        hint: Some("name the directory of the right programs with PLIMSOLL_MYSQL_BIN, or another directory".to_owned()),
    }
    .into())
}

fn not_ours(files: &Files, pid: u32) -> TargetError {
    let shown = files.directory().display();
    PrivateError::Unfit {
        what: format!("a server that Plimsoll has not started (process {pid}) runs on the data in `{shown}`"),
        hint: Some(format!("stop it first: `kill {pid}`, or load it by its address: `--target mysql://…`")),
    }
    .into()
}

/// Looks what server `directory` holds, also while a command works on it, and changes nothing. `None` where nothing is,
/// and a server may be made.
///
/// # Errors
/// When it holds anything that Plimsoll did not make, or belongs to somebody else.
pub fn inspect(directory: &Path) -> Result<Option<FoundServer>, TargetError> {
    let files = Files::new(&SERVER, directory)?;
    let DirectoryState::Ours(marker) = files.look()? else { return Ok(None) };
    Owner::of(&SERVER, &files.data())?;
    let running = Running::of(&files.data())?;
    Ok(Some(FoundServer {
        created_at: marker.created_at,
        made_by_version: marker.server_version,
        is_whole: files.data().exists(),
        running: running.and_then(|running| Some((running.pid, address(&running.socket?)))),
        in_use_by: files.holder().map(|holder| holder.to_string()),
        files: files.ours()?,
    }))
}

/// Removes the server in `directory` with all that is in it, and the directory if nothing else is in that. A kept server
/// of ours is ended first. Gives what was removed.
///
/// # Errors
/// When there is no private server, a command works on it, a server runs on it that Plimsoll has not started, or the
/// system refuses; [`TargetError::Interrupted`] when it was stopped before it began.
pub fn remove(directory: &Path, tell: &dyn Fn(&str), stop: &AtomicBool) -> Result<Vec<OurFile>, TargetError> {
    let files = Files::new(&SERVER, directory)?;
    if files.look()? == DirectoryState::Free {
        return Err(files.nothing_there().into());
    }
    let owner = Owner::of(&SERVER, &files.data())?;
    let _hold = files.take(&owner, tell, stop)?;
    if let Some(running) = Running::of(&files.data())? {
        let Some(socket) = running.socket else { return Err(not_ours(&files, running.pid)) };
        tell("stopping the server");
        // Both are known only while it runs, and go when it has ended.
        let _sockets = Sockets::of_running(socket.parent().unwrap_or(&socket));
        let _memory = MemoryLimit::take_over(running.pid);
        end(&SERVER, running.pid);
    }
    let ours = files.ours()?;
    tell("removing its files");
    files.remove()?;
    Ok(ours)
}

fn address(socket: &Path) -> MysqlAddress {
    MysqlAddress {
        user: Some(USER.to_owned()),
        database: Some(DATABASE.to_owned()),
        socket: Some(socket.to_owned()),
        ..MysqlAddress::default()
    }
}

/// What to do about what a program of the server's said when it failed.
fn program_hint(said: &str) -> Option<String> {
    let hint = match said {
        _ if said.contains("No space left on device") => "free some space, or use a directory on another file system",
        _ if said.contains("Cannot allocate memory") => {
            "lower `--db-cache`: the machine has no room for such a buffer pool"
        }
        _ if said.contains("Permission denied") => {
            "let the server's user read and write there, or use another directory"
        }
        _ if said.contains("upgrade") || said.contains("redo log") => {
            "the data may be of another version: name the programs that made them with PLIMSOLL_MYSQL_BIN"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}
