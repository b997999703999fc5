//! The server of `plimsoll net`: what a client on another host measures a network with.
//!
//! It is safe by construction. It never connects to anybody. Of a connection it reads 64 bytes before that has shown the token, has
//! patience with four such connections at a time, and five seconds with each. Datagrams go only to the host of a proven control
//! connection (`datagrams.rs`). One test is served at a time, by an accepted client that keeps saying that it is there; rates, times,
//! connections and what is written to disk have limits. Each data connection has a thread of its own, for lack of a faster way.
//!
//! ```text
//! accept ─▶ handshake ─▶ control ─▶ test ◀─ flow, one thread for each data connection
//!                                      ◀─ datagrams
//! ```

mod accept;
mod control;
mod datagrams;
mod flow;
mod test;

use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use files::How;
use serde::Serialize;

use super::wire::Token;
use crate::network::wire::{Key, Limits};
use model::units::{Bytes, Nanos};
use test::Test;

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens; nobody is answered before [`serve`](Self::serve).
    ///
    /// # Errors
    /// When the address cannot be had, or the directory for writes cannot be written to.
    pub fn bind(options: ServerOptions) -> Result<Self, ServeError> {
        if let Some(write) = &options.write {
            let path = || write.directory.clone();
            try_directory(&write.directory).map_err(|source| ServeError::Directory { path: path(), source })?;
        }
        let cannot = |source| ServeError::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        Ok(Self { options, listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What clients must know.
    pub fn token(&self) -> &Token {
        &self.options.token
    }

    /// Serves until `stop`, or until it is idle for as long as it was given, or has served the one test that it was to serve. A test
    /// that goes on is ended, and its client hears why. `report` is called by many threads.
    ///
    /// # Errors
    /// When connections cannot be taken any more.
    pub fn serve(&self, stop: &AtomicBool, report: Report<'_>) -> Result<(), ServeError> {
        let shared = Shared::new(&self.options, self.address, stop, report);
        std::thread::scope(|scope| {
            let served = accept::attend(&shared, &self.listener, scope);
            // Whoever is still there is sent away.
            shared.is_done();
            served
        })
    }
}

/// Why a server cannot be started, or not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// Nothing can be written where durable writes shall go.
    #[error("cannot write to `{path}`: {source}", path = .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Connections cannot be taken any more.
    #[error("cannot take connections on {address}: {source}")]
    Accept {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
}

impl ServeError {
    /// What to do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Listen { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "another server listens there, perhaps of ours: `--listen ADDR:PORT` takes another port, and port 0 any free one"
                }
                io::ErrorKind::AddrNotAvailable => {
                    "this machine has no such address: `ip address` lists what it has, and 0.0.0.0 is all of them"
                }
                io::ErrorKind::PermissionDenied => "ports below 1024 are for root: take another one",
                _ => return None,
            },
            Self::Directory { .. } => "`--write DIR` names a directory that exists and can be written to by this user",
            Self::Accept { .. } => return None,
        })
    }
}

/// Most control connections at a time.
const MAX_CONTROLS: u32 = 16;

/// Who hears what happens.
pub type Report<'a> = &'a (dyn Fn(&Event) + Sync);

/// How a server shall be.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Address and port; port 0 takes any free one.
    pub listen: SocketAddr,
    /// What clients must know.
    pub token: Token,
    /// Maximum number of data connections of a test.
    pub max_connections: u32,
    /// Maximum bytes per second, each way, of all connections together.
    pub max_bytes_per_s: Option<u64>,
    /// Longest test.
    pub max_duration: Duration,
    /// Where durable writes go; without it there are none.
    pub write: Option<WriteTo>,
    /// The server ends when nobody has had a test for so long.
    pub idle: Option<Duration>,
    /// The server ends after one test.
    pub once: bool,
}

/// Where durable writes go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteTo {
    /// A directory that exists.
    pub directory: PathBuf,
    /// Size of all files that are written to together.
    pub max_bytes: u64,
}

/// Maximum number of data connections of a test unless more are allowed.
pub const DEFAULT_MAX_CONNECTIONS: u32 = 512;
/// Longest test unless longer ones are allowed.
pub const DEFAULT_MAX_DURATION: Duration = Duration::from_secs(3_600);
/// Size of the files that are written to unless another is given.
pub const DEFAULT_WRITE_MAX: u64 = 256 << 20;

impl ServerOptions {
    /// On loopback and any free port, with limits as they are by default, and until it is asked to end: for both ends in one process.
    pub fn own(token: Token) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            token,
            max_connections: DEFAULT_MAX_CONNECTIONS,
            max_bytes_per_s: None,
            max_duration: DEFAULT_MAX_DURATION,
            write: None,
            idle: None,
            once: false,
        }
    }
}

impl ServerOptions {
    /// What clients hear of it.
    fn limits(&self) -> Limits {
        Limits {
            bytes_per_s: self.max_bytes_per_s,
            duration_ms: u64::try_from(self.max_duration.as_millis()).unwrap_or(u64::MAX),
            write_bytes: self.write.as_ref().map(|write| write.max_bytes),
        }
    }
}

// What a server says of who comes and what happens. Nothing of a secret is in it.

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A connection did not show that it knows the token.
    TurnedAway {
        /// Where it came from.
        from: IpAddr,
        /// Why.
        why: String,
        /// How many more there were that were not reported.
        more: u64,
    },
    /// A test was not opened.
    Refused {
        /// Who asked.
        from: SocketAddr,
        /// Why not.
        why: String,
    },
    /// A test was opened.
    Opened {
        /// Who asked.
        from: SocketAddr,
        /// Its number.
        test: u64,
        /// What it is, in its client's words.
        what: String,
    },
    /// A data connection ended otherwise than it should.
    Trouble {
        /// Whose.
        from: SocketAddr,
        /// Of which test.
        test: u64,
        /// What went wrong.
        what: String,
    },
    /// A test has ended.
    Ended {
        /// Whose.
        from: SocketAddr,
        /// Its number.
        test: u64,
        /// Why, where its client did not ask for it.
        why: Option<String>,
        /// Time since it was opened.
        elapsed_ns: u64,
        /// Bytes received.
        received_bytes: u64,
        /// Bytes sent.
        sent_bytes: u64,
        /// Requests answered.
        requests: u64,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TurnedAway { from, why, more } => {
                write!(f, "{from} turned away: {why}")?;
                if *more > 0 { write!(f, " (and {more} more before)") } else { Ok(()) }
            }
            Self::Refused { from, why } => write!(f, "{from} refused: {why}"),
            Self::Opened { from, test, what } => write!(f, "{from} begins test {test}: {what}"),
            Self::Trouble { from, test, what } => write!(f, "{from} in test {test}: {what}"),
            Self::Ended { from, test, why, elapsed_ns, received_bytes, sent_bytes, requests } => {
                let (received, sent) = (Bytes(*received_bytes), Bytes(*sent_bytes));
                let elapsed = Nanos(*elapsed_ns);
                write!(f, "{from} ends test {test} after {elapsed}: received {received}, sent {sent}")?;
                if *requests > 0 {
                    write!(f, ", {requests} requests")?;
                }
                why.iter().try_for_each(|why| write!(f, "; {why}"))
            }
        }
    }
}

/// Most files that one test writes to. Connections share them beyond.
const MAX_FILES: u32 = 16;
/// Bytes that are filled at once.
const FILL_BYTES: u64 = 1 << 20;

/// Files that exist already from their beginning to their end, as standby redo logs do, so that a durable write changes nothing but
/// blocks. They have no names: however the server ends, nothing is left behind.
#[derive(Debug)]
struct Files {
    files: Vec<Log>,
    bytes_each: u64,
}

#[derive(Debug)]
struct Log {
    file: File,
    next: AtomicU64,
}

impl Files {
    /// Makes files for so many connections, of `max_bytes` together. `filled` hears how far that is; an error of its ends it.
    ///
    /// # Errors
    /// When the directory cannot be written to or has no room, and what `filled` says.
    fn make<E: From<io::Error>>(
        directory: &Path,
        connections: u32,
        max_bytes: u64,
        mut filled: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Self, E> {
        let count = connections.clamp(1, MAX_FILES);
        let bytes_each = max_bytes / u64::from(count);
        let piece = vec![0x5a; usize::try_from(FILL_BYTES).unwrap_or(0)];
        let mut files = Vec::new();
        for number in 0..count {
            let mut file = nameless(directory, number)?;
            let mut left = bytes_each;
            while left > 0 {
                let bytes = left.min(FILL_BYTES);
                file.write_all(&piece[..bytes as usize])?;
                left -= bytes;
                filled(u64::from(number) * bytes_each + (bytes_each - left))?;
            }
            file.sync_all()?;
            files.push(Log { file: durable(&file)?, next: AtomicU64::new(0) });
        }
        Ok(Self { files, bytes_each })
    }

    /// Longest write that has room.
    fn max_write(connections: u32, max_bytes: u64) -> u64 {
        max_bytes / u64::from(connections.clamp(1, MAX_FILES))
    }

    /// Writes what came over connection `number`; when this returns, it is durable. Begins anew at the end of the file.
    ///
    /// # Errors
    /// When it could not be written.
    fn write(&self, number: u32, bytes: &[u8]) -> io::Result<()> {
        let log = &self.files[number as usize % self.files.len()];
        let length = bytes.len() as u64;
        let place = |next: u64| if next + length <= self.bytes_each { next } else { 0 };
        let before = log.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| Some(place(next) + length));
        log.file.write_all_at(bytes, before.map_or(0, place))
    }
}

/// Looks whether files can be made in `directory`.
///
/// # Errors
/// What the system says.
fn try_directory(directory: &Path) -> io::Result<()> {
    nameless(directory, 0).map(drop)
}

/// A new file that has no name any more.
fn nameless(directory: &Path, number: u32) -> io::Result<File> {
    let path: PathBuf = directory.join(format!("plimsoll-net-{}-{number}.tmp", std::process::id()));
    let file = files::make_new(&path, How { mode: 0o600, ..How::default() })?;
    files::remove(&path)?;
    Ok(file)
}

/// The same file, of which every write is durable.
fn durable(file: &File) -> io::Result<File> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    files::open_judged(&path, How { durable: true, ..How::default() })
}

/// Those that are turned away are reported one by one up to here in a period.
const REPORTED_AWAY: u64 = 10;
const AWAY_PERIOD: Duration = Duration::from_secs(10);

/// A server that is serving.
struct Shared<'s> {
    options: &'s ServerOptions,
    address: SocketAddr,
    key: Key,
    asked_to_stop: &'s AtomicBool,
    report: Report<'s>,
    place: Mutex<TestSlot>,
    away: Mutex<Away>,
    tests: AtomicU64,
    /// Control connections.
    controls: AtomicU32,
    is_done: AtomicBool,
}

/// Where there is room for one test.
struct TestSlot {
    test: Option<Arc<Test>>,
    /// Whoever prepares one, and since when.
    taken: Option<(SocketAddr, Instant)>,
    empty_since: Instant,
}

struct Away {
    since: Instant,
    reported: u64,
    silent: u64,
}

/// Keeps the one place for a test, until it is dropped.
struct Taken<'h, 's>(&'h Shared<'s>);

impl Drop for Taken<'_, '_> {
    fn drop(&mut self) {
        let mut place = self.0.place();
        *place = TestSlot { test: None, taken: None, empty_since: Instant::now() };
    }
}

impl Taken<'_, '_> {
    /// From now on data connections may come.
    fn open(&self, test: &Arc<Test>) {
        self.0.place().test = Some(Arc::clone(test));
    }
}

impl<'s> Shared<'s> {
    fn new(options: &'s ServerOptions, address: SocketAddr, asked_to_stop: &'s AtomicBool, report: Report<'s>) -> Self {
        let now = Instant::now();
        Self {
            options,
            address,
            key: options.token.key(),
            asked_to_stop,
            report,
            place: Mutex::new(TestSlot { test: None, taken: None, empty_since: now }),
            away: Mutex::new(Away { since: now, reported: 0, silent: 0 }),
            tests: AtomicU64::new(0),
            controls: AtomicU32::new(0),
            is_done: AtomicBool::new(false),
        }
    }

    fn place(&self) -> MutexGuard<'_, TestSlot> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, event: &Event) {
        (self.report)(event);
    }

    /// Reports somebody who was turned away, as long as there are few: nobody fills a log who has no token.
    fn turned_away(&self, from: IpAddr, why: &dyn std::fmt::Display) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if away.since.elapsed() > AWAY_PERIOD {
            (away.since, away.reported) = (Instant::now(), 0);
        }
        if away.reported == REPORTED_AWAY {
            away.silent += 1;
            return;
        }
        away.reported += 1;
        let more = std::mem::take(&mut away.silent);
        drop(away);
        self.report(&Event::TurnedAway { from: from.to_canonical(), why: why.to_string(), more });
    }

    /// Whether the server is to end.
    fn is_ending(&self) -> bool {
        self.asked_to_stop.load(Ordering::Relaxed) || self.is_done.load(Ordering::Relaxed)
    }

    /// Whether nobody has had a test for as long as the server waits.
    fn is_idle(&self) -> bool {
        let place = self.place();
        let waits = self.options.idle;
        place.taken.is_none() && waits.is_some_and(|waits| place.empty_since.elapsed() >= waits)
    }

    /// Ends the server, since what it was there for is done.
    fn is_done(&self) {
        self.is_done.store(true, Ordering::Relaxed);
    }

    /// The test that goes on.
    fn test(&self) -> Option<Arc<Test>> {
        self.place().test.clone()
    }

    /// Takes the one place for a test, or says who has it.
    fn take_place(&self, from: SocketAddr) -> Result<Taken<'_, 's>, String> {
        let mut place = self.place();
        if let Some((who, since)) = place.taken {
            let seconds = since.elapsed().as_secs();
            return Err(format!("a test of {} goes on, since {seconds} s", who.ip().to_canonical()));
        }
        place.taken = Some((from, Instant::now()));
        Ok(Taken(self))
    }

    fn next_test(&self) -> u64 {
        self.tests.fetch_add(1, Ordering::Relaxed) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_no_names_are_filled_and_go_around() {
        let place = tempfile::tempdir().unwrap();
        let mut progress = Vec::new();
        let made = Files::make::<io::Error>(place.path(), 2, 40_000, |done| {
            progress.push(done);
            Ok(())
        });
        let files = made.unwrap();
        assert_eq!(progress, [20_000, 40_000]);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "a file has a name");
        for _ in 0..9 {
            files.write(3, &[7; 8_192]).unwrap();
        }
        let sizes: Vec<u64> = files.files.iter().map(|log| log.file.metadata().unwrap().len()).collect();
        assert_eq!(sizes, [20_000, 20_000]);
        assert_eq!(files.files[0].next.load(Ordering::Relaxed), 0);
        // Two fit, and the ninth is the first of its round.
        assert_eq!(files.files[1].next.load(Ordering::Relaxed), 8_192);
        assert!(Files::max_write(100, 1_600) == 100);
        assert!(try_directory(Path::new("/no/such/place")).is_err());
    }
}
