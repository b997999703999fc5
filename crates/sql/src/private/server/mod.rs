//! A private server from its making to its removal, whatever its kind.
//!
//! A kept server is used by later commands on the same directory, which leave it running; removing it stops it.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};

use super::files::{DirectoryState, Files, file_error, private_directory, remove as remove_path};
use super::memory::{MemoryLimit, effective_limit, is_held_to, limit_of};
use super::supervisor::{Start, Supervisor};
use super::{Hold, Owner, PrivateError, Programs, Running, ServerKind, ServerRequest, Starting, is_alive};
use model::plain::Links;
use model::record::{ServerFacts, TargetFacts};
use model::units::Bytes;
use targets::TargetError;

#[cfg(test)]
pub(crate) mod tests;

/// How programs of servers say that a disk is full: the system's words, and InnoDB's two ways.
const FULL_DISK: [&str; 3] = ["No space left on device", "out of disk space", "failed with error 28"];
/// What to do then.
const FREE_SPACE: &str = "free some space, or use a directory on another file system";
/// Lines of its log in which that is looked for when a server does not start.
const LOG_LINES: usize = 100;

/// A private server that runs. Dropping it ends a server that it has started and that is not to be kept.
// The fields are dropped in this order: the server, what it needed, and last the lock.
#[derive(Debug)]
pub(crate) struct PrivateServer<P: Programs> {
    /// None where the server is to go on running.
    supervisor: Option<Supervisor>,
    /// Directory of its socket, which may have to go with it.
    _sockets: Sockets,
    /// Its control group, where it is to go with it.
    _memory: Option<MemoryLimit>,
    files: Files,
    program: PathBuf,
    log_offset: u64,
    address: P::Address,
    pid: u32,
    facts: TargetFacts,
    notes: Vec<String>,
    _hold: Hold,
}

impl<P: Programs> PrivateServer<P> {
    /// Makes the server if it may and must, starts it if it does not run, and waits until it takes connections. `notify` is called with
    /// what takes long; `stop` ends the wait. Must not be called in a tokio runtime.
    ///
    /// # Errors
    /// When that cannot be done, with the reason; then nothing that was started runs any more. [`TargetError::Interrupted`]
    /// when it was stopped.
    pub(crate) fn start(
        request: &ServerRequest,
        notify: &dyn Fn(&str),
        stop: &AtomicBool,
    ) -> Result<Self, TargetError> {
        let ServerKind { noun, buffers, min_db_cache, .. } = P::KIND;
        if request.db_cache < *min_db_cache {
            let what = format!("{} of {buffers} is too little: {min_db_cache} is the least", request.db_cache);
            return Err(PrivateError::unfit(what, "raise `--db-cache`").into());
        }
        if let Some(limit) = request.host_memory {
            check_memory::<P>(limit, request.db_cache, request.sessions, Bytes(0))?;
        }
        let files = Files::new(P::KIND, &request.directory)?;
        let free = files.look()? == DirectoryState::Free;
        if free && !request.create {
            return Err(files.nothing_there().into());
        }
        let owner = Owner::of(P::KIND, &files.data())?;
        let programs = P::find(request.binaries.as_deref(), &files)?;
        if let Some(limit) = request.host_memory {
            check_memory::<P>(limit, request.db_cache, request.sessions, programs.more_memory())?;
        }
        owner.check_reach(files.directory())?;
        let files = files.make(&owner)?;
        owner.check_reach(files.directory())?;
        let hold = files.take(&owner, notify, stop)?;
        // Somebody may have made or removed it until we had the lock.
        let free = files.look()? == DirectoryState::Free;
        let programs = P::find(request.binaries.as_deref(), &files);
        if programs.is_err() && free {
            files.remove()?;
        }
        let programs = programs?;
        if !files.data().exists() {
            if !request.create {
                return Err(files.unfinished().into());
            }
            notify(&format!("making a {noun} of version {} in {}", programs.version(), files.directory().display()));
            let made = initialize(&files, &owner, &programs, &hold, stop);
            if made.is_err() && free {
                files.remove()?;
            }
            made?;
        }
        match P::running(&files.data())? {
            Some(running) => Self::join(request, files, &owner, &programs, hold, &running),
            None => Self::launch(request, files, &owner, &programs, hold, notify, stop),
        }
    }

    fn launch(
        request: &ServerRequest,
        files: Files,
        owner: &Owner,
        programs: &P,
        hold: Hold,
        notify: &dyn Fn(&str),
        stop: &AtomicBool,
    ) -> Result<Self, TargetError> {
        let mut sockets = Sockets::make(&files, owner)?;
        // Also for files that sorting takes, which are to be where the data are.
        private_directory(&files.run(), owner)?;
        let memory = request.host_memory.map(MemoryLimit::make).transpose()?;
        if memory.is_some() {
            // Pages that are cached already are charged to others, and would be read without the device.
            notify(&format!("dropping the {}'s files from the page cache", P::KIND.noun));
            drop_page_cache(&files.data())?;
        }
        let (program, arguments) = programs.starting(&Starting {
            owner,
            files: &files,
            sockets: &sockets.path,
            db_cache: request.db_cache,
            page_protection: request.page_protection,
            max_connections: request.max_connections(),
        })?;
        let (_, log_offset) = files.open_log(owner)?;
        notify("starting the server");
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
        let address = P::address(&sockets.path);
        // What a killed server has left answers nobody, and the server's own number stands in its file.
        let is_ready = || {
            let its_own = P::running(&files.data())?.filter(|running| running.pid == pid);
            Ok(its_own.is_some_and(|running| running.address.is_some()) && P::answers(&address))
        };
        // A server that the kernel ends for its memory says nothing about it.
        let of_memory = || {
            let limit = request.host_memory?;
            Some(format!("{limit} of memory may be too little for it: raise `--host-memory`"))
        };
        let hint = |said: &str| {
            // What an error repeats of the log need not hold that the disk was full.
            let of_disk = is_full_disk(&files.log_tail(log_offset, LOG_LINES)).then(|| FREE_SPACE.to_owned());
            of_disk.or_else(|| P::hint(said)).or_else(of_memory)
        };
        await_ready(&files, log_offset, (&program, pid), is_ready, hint, notify, stop)?;
        // A run without the limit would measure something else.
        if let Some(limit) = request.host_memory.filter(|limit| !is_held_to(pid, *limit)) {
            return Err(PrivateError::unfit(
                format!("the kernel does not hold the server to {limit} of memory, though it took the limit"),
                "something manages the control groups here; do without `--host-memory`",
            )
            .into());
        }
        let mut facts = P::facts(&address, true)?;
        facts.server.is_private = Some(true);
        facts.other.insert("bin_directory".to_owned(), program.parent().unwrap_or(&program).display().to_string());
        let mut notes = limit_notes(pid, request, &mut facts.server);
        let (supervisor, memory) = if request.keep_running {
            supervisor.release()?;
            sockets.keep();
            memory.into_iter().for_each(MemoryLimit::keep);
            let stop = stop_command(P::KIND, pid);
            notes.push(format!("the server is left running (process {pid}); `{stop}` stops it"));
            (None, None)
        } else {
            (Some(supervisor), memory)
        };
        let (_sockets, _memory, _hold) = (sockets, memory, hold);
        Ok(Self { supervisor, _sockets, _memory, files, program, log_offset, address, pid, facts, notes, _hold })
    }

    /// Uses a server that an earlier command has kept.
    fn join(
        request: &ServerRequest,
        files: Files,
        owner: &Owner,
        programs: &P,
        hold: Hold,
        running: &Running<P::Address>,
    ) -> Result<Self, TargetError> {
        let ServerKind { noun, buffers, buffers_setting, .. } = P::KIND;
        let pid = running.pid;
        let stop_it = format!("stop it first: `{}`", stop_command(P::KIND, pid));
        let shown = format!("the private {noun} in `{}`", files.directory().display());
        if !running.is_ours {
            return Err(not_ours::<P>(&files, pid).into());
        }
        let (Some(directory), Some(address)) = (&running.sockets, running.address.clone()) else {
            let log = files.log();
            return Err(PrivateError::unfit(
                format!("{shown} (process {pid}) takes no connections"),
                format!("wait until it has started or ended; `{}` says more", log.display()),
            )
            .into());
        };
        let mut sockets = Sockets::of_running(directory, owner);
        sockets.keep();
        if let Some(limit) = request.host_memory.filter(|limit| !is_held_to(pid, *limit)) {
            let what = format!("{shown} runs without a memory limit of {limit}");
            return Err(PrivateError::unfit(what, format!("{stop_it}, then it is started again with the limit")).into());
        }
        let mut facts = P::facts(&address, false)?;
        let setting = |name: &str| facts.server.settings.get(name);
        let (most, needed) = (setting("max_connections"), request.max_connections());
        if let Some(most) = most.filter(|most| most.parse().is_ok_and(|most: u32| most < needed)) {
            let what = format!("{shown} takes {most} connections, and {needed} are needed");
            return Err(PrivateError::unfit(what, format!("{stop_it}, then it is started again for them")).into());
        }
        let protection = ["full_page_writes", "innodb_doublewrite"].into_iter().find_map(setting);
        let is_on = protection.map(|there| there.eq_ignore_ascii_case("on"));
        if let Some(is_on) = is_on.filter(|is_on| *is_on != request.page_protection) {
            let (flag, there) = if is_on { ("without", "with") } else { ("with", "without") };
            let what = format!("{shown} runs {there} full-page writes or a doublewrite buffer");
            let hint =
                format!("{flag} `--no-page-protection` it is used as it is; or {stop_it}, then it is started again");
            return Err(PrivateError::unfit(what, hint).into());
        }
        let mut notes = vec![format!("the server was running already (process {pid}) and is left running")];
        let (there, asked) = (setting(buffers_setting).and_then(|shown| shown.parse::<Bytes>().ok()), request.db_cache);
        if let Some(there) = there.filter(|there| *there != asked) {
            notes.push(format!("it has {there} of {buffers}, not the requested {asked}. To change that, {stop_it}"));
        }
        facts.server.is_private = Some(false);
        notes.extend(limit_notes(pid, request, &mut facts.server));
        Ok(Self {
            supervisor: None,
            _sockets: sockets,
            _memory: None,
            files,
            program: programs.server(),
            log_offset: 0,
            address,
            pid,
            facts,
            notes,
            _hold: hold,
        })
    }

    /// Where the server is reached: as its owner, in the database that was made for the data.
    pub(crate) fn address(&self) -> &P::Address {
        &self.address
    }

    /// Number of its first process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Where its data are.
    pub(crate) fn data_directory(&self) -> PathBuf {
        self.files.data()
    }

    /// What is worth knowing of the server: its settings that matter and its memory, whether this command started it (not one that an
    /// earlier one has kept), `server_version` and `bin_directory`.
    pub(crate) fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    /// What the user should know.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Ends the server if this value has started it and it is not to be kept, and waits for its end: it is given two
    /// minutes to write out what it holds in memory.
    ///
    /// # Errors
    /// When it did not end in order. It runs no more in this case either.
    pub(crate) fn stop(mut self) -> Result<(), TargetError> {
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

/// Refuses a limit of memory in which a server could not live that needs `more` than any of its kind.
///
/// # Errors
/// When `limit` is too small, with what is needed.
pub(crate) fn check_memory<P: Programs>(
    limit: Bytes,
    db_cache: Bytes,
    sessions: u32,
    more: Bytes,
) -> Result<(), PrivateError> {
    let needed = Bytes(P::needed_memory(db_cache, sessions).0.saturating_add(more.0));
    if limit >= needed {
        return Ok(());
    }
    let sessions = if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") };
    let buffers = P::KIND.buffers;
    Err(PrivateError::unfit(
        format!(
            "{limit} of memory are too little for a server with {db_cache} of {buffers} and {sessions}: it needs at least \
             {needed}"
        ),
        format!("lower `--db-cache` or the number of sessions, or use `--host-memory {}M`", needed.0 >> 20),
    ))
}

/// Makes the data in a directory that is ours alone. Data that were begun and never finished are started over.
fn initialize<P: Programs>(
    files: &Files,
    owner: &Owner,
    programs: &P,
    hold: &Hold,
    stop: &AtomicBool,
) -> Result<(), TargetError> {
    files.mark(programs.version())?;
    let data = files.unfinished_data();
    remove_path(&data)?;
    private_directory(&data, owner)?;
    // A server that starts removes temporary tables of others from a directory that it shares with them.
    private_directory(&files.run(), owner)?;
    let (program, arguments) = programs.initializing(&data);
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
            let hint = if is_full_disk(&reason) { Some(FREE_SPACE.to_owned()) } else { P::hint(&reason) };
            PrivateError::Program { program, reason, hint }.into()
        }
        Err(error) => error,
    };
    remove_path(&data)?;
    Err(failed)
}

/// Adds the memory limit to what is known of the server, and gives notes about it.
fn limit_notes(pid: u32, request: &ServerRequest, server: &mut ServerFacts) -> Vec<String> {
    let Some(limit) = limit_of(pid) else { return Vec::new() };
    server.memory_limit_bytes = Some(limit.0);
    let mut notes = Vec::new();
    if request.host_memory.is_none() {
        notes.push(format!("the server was started with its memory limited to {limit}"));
    }
    if let Some(binding) = effective_limit(pid).filter(|binding| *binding < limit) {
        notes.push(format!("a control group around the server's limits its memory to {binding} already"));
    }
    notes
}

fn is_full_disk(said: &str) -> bool {
    FULL_DISK.iter().any(|words| said.contains(words))
}

fn stop_command(kind: &ServerKind, pid: u32) -> String {
    match kind.stop {
        [Signal::INT, _] => format!("kill -INT {pid}"),
        _ => format!("kill {pid}"),
    }
}

pub(super) fn not_ours<P: Programs>(files: &Files, pid: u32) -> PrivateError {
    let [address, _] = P::KIND.schemes;
    let shown = files.directory().display();
    let what = format!("a server that Plimsoll has not started (process {pid}) runs on the data in `{shown}`");
    let stop = stop_command(P::KIND, pid);
    PrivateError::unfit(what, format!("stop it first: `{stop}`, or load it by its address: `--target {address}…`"))
}

/// What was let go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Number of files.
    pub files: u64,
    /// Their length.
    pub bytes: Bytes,
}

/// Writes all files below `directory` back to their device and asks the kernel to forget its copies of them. Files that
/// vanish meanwhile are passed over: a server that runs may drop them. Pages that somebody has mapped stay.
///
/// # Errors
/// The system's error.
pub fn drop_page_cache(directory: &Path) -> Result<Dropped, PrivateError> {
    let mut dropped = Dropped::default();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        let Some(entries) = present(fs::read_dir(&folder), "list", &folder)? else { continue };
        for entry in entries {
            let entry = entry.map_err(file_error("list", &folder))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(file_error("look at", &path))?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file()
                && let Some(file) = present(model::plain::open(&path, Links::Refused), "open", &path)?
            {
                // The kernel keeps pages that are not on the device yet.
                file.sync_data().map_err(file_error("sync", &path))?;
                fadvise(&file, 0, None, Advice::DontNeed)
                    .map_err(|error| file_error("drop the page cache of", &path)(error.into()))?;
                dropped.files += 1;
                dropped.bytes.0 += file.metadata().map_err(file_error("look at", &path))?.len();
            }
        }
    }
    Ok(dropped)
}

fn present<T>(result: io::Result<T>, action: &'static str, path: &Path) -> Result<Option<T>, PrivateError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some).map_err(file_error(action, path)),
    }
}

// The directory of a private server's socket. Only the server's user, and root, may enter it.

/// Longest path of a socket: `sun_path` of unix(7) without the zero at its end.
const LONGEST_PATH_BYTES: usize = 107;
/// Where directories of sockets lie that cannot be in the server's own.
const PLACE: &str = "/tmp";
const PREFIX: &str = "plimsoll-sockets-";

/// The directory of a private server's socket.
#[derive(Debug)]
pub(super) struct Sockets {
    /// Its path, which has nothing in it that a server's list of directories could misread.
    pub(crate) path: String,
    /// Whose it is.
    owner: u32,
    /// Whether it is not in the server's own directory and goes when the server ends.
    passing: bool,
}

impl Sockets {
    /// Makes the directory: `run` in the server's own, or one in a place with a short name if that has too long a path or
    /// one with odd characters.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn make(files: &Files, owner: &Owner) -> Result<Self, PrivateError> {
        let (run, kind) = (files.run(), files.kind());
        if let Some(path) = run.to_str().filter(|path| is_fit(kind, path)) {
            private_directory(&run, owner)?;
            return Ok(Self { path: path.to_owned(), owner: owner.uid, passing: false });
        }
        let mut number = std::process::id();
        loop {
            let path = format!("{PLACE}/{PREFIX}{number}");
            match files::make_directory(Path::new(&path), 0o700) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number = number.wrapping_add(1),
                made => {
                    made.map_err(file_error("create", Path::new(&path)))?;
                    owner.adopt(Path::new(&path))?;
                    return Ok(Self { path, owner: owner.uid, passing: true });
                }
            }
        }
    }

    /// The directory of a server that runs, as the server says. Its user may have it say anything: only one in the place where we make
    /// them goes with the server, and only if it is that user's own, so that he gets nothing removed that he could not remove himself.
    pub(crate) fn of_running(directory: &Path, owner: &Owner) -> Self {
        let number =
            directory.strip_prefix(PLACE).ok().and_then(Path::to_str).and_then(|name| name.strip_prefix(PREFIX));
        let passing = number.is_some_and(|number| number.parse::<u32>().is_ok());
        Self { path: directory.to_string_lossy().into_owned(), owner: owner.uid, passing }
    }

    /// The directory, if it is to be removed when the server ends.
    pub(crate) fn passing(&self) -> Option<PathBuf> {
        self.passing.then(|| PathBuf::from(&self.path))
    }

    /// Leaves the directory to a server that goes on running.
    pub(crate) fn keep(&mut self) {
        self.passing = false;
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if let Some(directory) = self.passing() {
            // A server that was killed leaves its socket. The supervisor may have been here before.
            let _ = files::remove_flat(&directory, self.owner);
        }
    }
}

fn is_fit(kind: &ServerKind, directory: &str) -> bool {
    let socket_bytes = format!("{directory}/{}", kind.socket).len();
    // Quotation marks and backslashes mean something in a list of directories.
    socket_bytes <= LONGEST_PATH_BYTES && !directory.contains(['"', '\\'])
}

/// How often a server that starts is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often a wait is reported.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// Lines of a server's log that an error repeats.
const PROGRAM_LOG_LINES: usize = 4;

/// Waits until a program ends, and gives what it said if it failed.
///
/// # Errors
/// The system's error, or [`TargetError::Interrupted`].
fn await_end(child: &mut Child, program: &Path, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
    let status = loop {
        if let Some(status) = child.try_wait().map_err(file_error("wait for", program))? {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            // It ends its own children, and so nothing writes to the directory afterwards.
            let _ = kill_process(Pid::from_child(child), Signal::INT);
            child.wait().map_err(file_error("wait for", program))?;
            return Err(TargetError::Interrupted);
        }
        thread::sleep(Duration::from_millis(10));
    };
    if status.success() {
        return Ok(None);
    }
    let mut text = Vec::new();
    if let Some(mut said) = child.stderr.take() {
        said.read_to_end(&mut text).map_err(file_error("read from", program))?;
    }
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Ok(Some(if lines.is_empty() { status.to_string() } else { lines.join(" | ") }))
}

/// Waits until `is_ready` says that a server, process `pid`, takes connections; `program_hint` knows what to do about what it
/// says when it ends instead. Its log since it was started begins at `log_offset`.
///
/// # Errors
/// When it ended, with what it said, or [`TargetError::Interrupted`].
fn await_ready(
    files: &Files,
    log_offset: u64,
    (program, pid): (&Path, u32),
    is_ready: impl Fn() -> Result<bool, PrivateError>,
    program_hint: impl Fn(&str) -> Option<String>,
    notify: &dyn Fn(&str),
    stop: &AtomicBool,
) -> Result<(), TargetError> {
    let mut reported_at = Instant::now();
    loop {
        // The server may have ended between two looks: what it wrote before counts then.
        let alive = is_alive(pid);
        if is_ready()? {
            return Ok(());
        }
        if !alive {
            let reason = log_or(files, log_offset, "the server ended and said nothing");
            let hint = program_hint(&reason);
            return Err(PrivateError::Program { program: program.to_owned(), reason, hint }.into());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(TargetError::Interrupted);
        }
        if reported_at.elapsed() >= TELL_EVERY {
            // Recovery after a crash may take minutes, and the log says how far it is.
            notify(&format!(
                "waiting for the server: {}",
                log_tail_or(files, log_offset, 1, "it has said nothing yet")
            ));
            reported_at = Instant::now();
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The last words of a server's log behind `offset`.
fn log_or(files: &Files, offset: u64, otherwise: &str) -> String {
    log_tail_or(files, offset, PROGRAM_LOG_LINES, otherwise)
}

fn log_tail_or(files: &Files, offset: u64, lines: usize, otherwise: &str) -> String {
    let tail = files.log_tail(offset, lines);
    if tail.is_empty() { otherwise.to_owned() } else { tail }
}

#[cfg(test)]
mod page_cache_tests {
    use std::process::Command;

    use super::*;
    use test_support::scratch::{is_in_memory, scratch};
    use test_support::skip::skip;

    fn cached_bytes(path: &Path) -> Option<u64> {
        let reported = Command::new("fincore").args(["--bytes", "--noheadings", "--output", "RES"]).arg(path).output();
        String::from_utf8(reported.ok()?.stdout).ok()?.trim().parse().ok()
    }

    #[test]
    fn files_of_all_levels_leave_the_page_cache() {
        let directory = scratch();
        let inner = directory.path().join("base/16384");
        fs::create_dir_all(&inner).unwrap();
        let (small, large) = (directory.path().join("base/small"), inner.join("large"));
        fs::write(&small, vec![1; 8192]).unwrap();
        fs::write(&large, vec![2; 1 << 20]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", inner.join("link")).unwrap();
        let before = cached_bytes(&large);
        let dropped = drop_page_cache(directory.path()).unwrap();
        assert_eq!(dropped, Dropped { files: 2, bytes: Bytes((1 << 20) + 8192) });
        if is_in_memory(directory.path()) {
            return skip("on tmpfs the page cache is the file");
        }
        if before == Some(1 << 20) {
            assert_eq!((cached_bytes(&large), cached_bytes(&small)), (Some(0), Some(0)));
        }
    }
}

#[cfg(test)]
mod sockets_tests {
    use super::super::TESTED;
    use super::*;

    #[test]
    fn only_paths_that_a_socket_can_have_are_fit() {
        assert!(is_fit(&TESTED, "/u01/my pg, really/run"));
        assert!(!is_fit(&TESTED, "/u01/a\"b/run"));
        let longest = LONGEST_PATH_BYTES - "/.s.PGSQL.5432".len();
        assert!(is_fit(&TESTED, &"a".repeat(longest)) && !is_fit(&TESTED, &"a".repeat(longest + 1)));
    }

    #[test]
    fn only_a_directory_of_its_own_goes_with_the_server() {
        let owner = Owner::choose(&TESTED, Some((5, 5)), (5, 5), "", Path::new("/no/such/data")).unwrap();
        let of_running = |path: &str| Sockets::of_running(Path::new(path), &owner);
        for path in [
            "/u01/pg/run",
            "/u01/plimsoll-sockets-12",
            "/tmp/deeper/plimsoll-sockets-12",
            "/tmp/../etc/plimsoll-sockets-12",
            "/tmp/plimsoll-sockets-x",
            "/tmp/plimsoll-sockets-",
        ] {
            assert_eq!(of_running(path).passing(), None, "{path}");
        }
        let mut own = of_running("/tmp/plimsoll-sockets-12");
        assert_eq!(own.passing(), Some(PathBuf::from("/tmp/plimsoll-sockets-12")));
        own.keep();
        assert_eq!(own.passing(), None);
    }
}
