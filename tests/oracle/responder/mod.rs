//! A server that speaks Oracle's protocol as far as the driver asks for it, with the answers of a test.
//!
//! It listens on loopback and has a thread for each connection. What it is asked goes to the test's [`Answers`] and into a log. It knows
//! no SQL. It repeats our reading of the protocol: the recordings in `recordings.rs` hold the driver against real bytes.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

mod answers;
pub mod calls;
mod faults;
mod log;
mod logon;
mod reply;
pub mod requests;
mod session;
pub mod tcps;
mod values;
pub mod wire;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use answers::{Answer, Answers, Call, Column, Kind, Way};
pub use faults::{Fault, Stage};
pub use log::{SessionLog, State};
pub use values::{Moment, Value};

use faults::Ended;
use logon::Password;
use session::{Record, Session};

/// What a session's thread needs: it holds one answer and no deep calls. A test's closure runs on it as well.
const STACK_BYTES: usize = 256 << 10;
/// The longest that a test waits for what has to happen on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Names the folder that statements go to; nothing is written without it.
const FOLDER: &str = "PLIMSOLL_ORACLE_SENT";
/// The name by which the program works. Tests of the driver have another.
const PROGRAM: &str = "plimsoll";

/// Which releases a responder speaks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// 19c: connecting in steps, answers without a mark of their end.
    V19,
    /// 23ai: connecting in one step, answers that say where they end.
    V23,
}

/// Both generations, for tests that hold for each.
pub const GENERATIONS: [Generation; 2] = [Generation::V19, Generation::V23];

/// What becomes of a value that is that of the row before. Real servers leave it out. Which of the two ways is theirs is not known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    Sent,
    /// Each row but the first one says which columns it has.
    LeftOut,
    /// Rows say that only where a column is left out.
    LeftOutWhereAny,
}

/// How a responder presents itself.
#[derive(Clone, Debug)]
pub struct Options {
    pub generation: Generation,
    /// The release that it says it is, if not that of its generation: the first number alone.
    pub release: Option<u32>,
    pub user: String,
    pub password: String,
    /// Services that the listener knows, with the instance that serves each. It knows any when there are none, served by `ONE1`.
    pub services: Vec<(String, String)>,
    /// How often the password is hashed. Oracle's own number costs both sides milliseconds at each logon.
    pub hashings: u32,
    /// The most that is put in one packet, to have answers of many packets.
    pub packet_bytes: usize,
    /// The most that is given to the socket at once, to have packets that come in pieces.
    pub write_bytes: Option<usize>,
    pub repeats: Repeats,
    /// Whether calls are remembered. Rounds are counted anyway.
    pub keeps_calls: bool,
    /// ORA-01000 comes beyond that.
    pub max_cursors: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            generation: Generation::V19,
            release: None,
            user: "SLOB".to_owned(),
            password: "secret".to_owned(),
            services: Vec::new(),
            hashings: 4096,
            packet_bytes: 8192 - 10,
            write_bytes: None,
            repeats: Repeats::LeftOut,
            keeps_calls: true,
            max_cursors: 300,
        }
    }
}

impl Options {
    pub fn of(generation: Generation) -> Options {
        Options { generation, ..Options::default() }
    }
}

/// A listener with its sessions. All of them end when it is dropped.
pub struct Responder {
    shared: Arc<Shared>,
    address: SocketAddr,
    listener: Mutex<Option<JoinHandle<()>>>,
}

/// What all sessions of a responder share.
struct Shared {
    options: Options,
    password: Password,
    answers: Box<dyn Answers>,
    fault: Mutex<Option<Fault>>,
    records: Mutex<Vec<Arc<Record>>>,
    is_stopping: AtomicBool,
    complaints: Mutex<Vec<String>>,
}

impl Responder {
    pub fn start(options: Options, answers: impl Answers) -> Responder {
        let password = Password::new(&options.password, options.hashings);
        let shared = Arc::new(Shared {
            options,
            password,
            answers: Box::new(answers),
            fault: Mutex::new(None),
            records: Mutex::new(Vec::new()),
            is_stopping: AtomicBool::new(false),
            complaints: Mutex::new(Vec::new()),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let listening = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("listener".to_owned()).spawn(move || shared.listen(&listener)).unwrap()
        };
        Responder { shared, address, listener: Mutex::new(Some(listening)) }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connect descriptor for a service here. A connect that fails does not make the driver wait for a second.
    pub fn descriptor(&self, service: &str) -> String {
        let port = self.port();
        format!(
            "(DESCRIPTION=(RETRY_DELAY=0)(ADDRESS=(PROTOCOL=TCP)(HOST=127.0.0.1)(PORT={port}))(CONNECT_DATA=(SERVICE_NAME={service})))"
        )
    }

    /// What goes wrong with everybody who connects from now on, unless the answers say something else.
    pub fn set_fault(&self, fault: Option<Fault>) {
        *self.shared.fault.lock().unwrap() = fault;
    }

    /// What is known of all sessions so far, in the order of connecting.
    pub fn sessions(&self) -> Vec<SessionLog> {
        self.records().iter().map(|record| record.log.lock().unwrap().clone()).collect()
    }

    /// All calls of all sessions, a session after the other.
    pub fn calls(&self) -> Vec<Call> {
        self.sessions().into_iter().flat_map(|session| session.calls).collect()
    }

    /// How many calls were made: round trips beyond connecting.
    pub fn round_trips(&self) -> u64 {
        self.records().iter().map(|record| record.log.lock().unwrap().round_trips).sum()
    }

    /// How many sessions are logged on now.
    pub fn logged_on(&self) -> usize {
        self.records().iter().filter(|record| record.log.lock().unwrap().state == State::LoggedOn).count()
    }

    /// Waits until the sessions are as wanted. What a client has just done may not have come here yet.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&[SessionLog]) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(&self.sessions()) {
            assert!(Instant::now() < until, "the responder has waited in vain: {what}; {:#?}", self.sessions());
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Cuts one session's connection, as when its server process is killed.
    pub fn cut(&self, session: u32) {
        self.records()[session as usize - 1].cut();
    }

    /// The instance goes away: its listener refuses, and all connections are cut.
    pub fn go_away(&self) {
        let Some(listening) = self.listener.lock().unwrap().take() else { return };
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        listening.join().unwrap();
        for record in self.records() {
            record.cut();
        }
    }

    fn records(&self) -> Vec<Arc<Record>> {
        self.shared.records.lock().unwrap().clone()
    }
}

impl Drop for Responder {
    /// A responder that was asked what it does not understand fails its test, since nobody knows what that test has shown.
    fn drop(&mut self) {
        self.go_away();
        write_sent(&self.sessions());
        let complaints = self.shared.complaints.lock().unwrap();
        if !thread::panicking() {
            assert!(complaints.is_empty(), "the responder did not understand: {complaints:?}");
        }
    }
}

impl Shared {
    fn listen(self: &Arc<Shared>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.is_stopping.load(Ordering::SeqCst) {
                return;
            }
            let Ok(stream) = stream else { continue };
            // Only a delay would follow if this failed.
            let _ = stream.set_nodelay(true);
            let record = {
                let mut records = self.records.lock().unwrap();
                let session = records.len() as u32 + 1;
                let record = Arc::new(Record::new(stream, session));
                records.push(Arc::clone(&record));
                record
            };
            let shared = Arc::clone(self);
            let thread = thread::Builder::new().name("session".to_owned()).stack_size(STACK_BYTES);
            thread.spawn(move || shared.serve(&record)).unwrap();
        }
    }

    fn serve(self: Arc<Shared>, record: &Record) {
        // The client must not wait for a thread that has panicked in a test's closure.
        let ended = catch_unwind(AssertUnwindSafe(|| Session::new(Arc::clone(&self), record).run()));
        let complaint = match ended {
            Ok(Err(Ended::Nonsense(what))) => Some(what),
            Ok(_) => None,
            Err(_) => Some("a call on which the test's answers panicked"),
        };
        self.complaints.lock().unwrap().extend(complaint.map(str::to_owned));
        record.end();
    }
}

/// Writes each text that was sent in these sessions into a file of its own, ended as SQL*Plus wants it, for parsers to read: `make
/// check-plsql`.
fn write_sent(sessions: &[SessionLog]) {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let ours = sessions.iter().filter(|session| session.program == PROGRAM);
    let texts: BTreeSet<&str> =
        ours.flat_map(|session| &session.calls).map(|call| &*call.sql).filter(|sql| !sql.is_empty()).collect();
    for text in texts {
        // The parser knows no EXPLAIN, but what is explained.
        let text = text.strip_prefix("EXPLAIN PLAN SET STATEMENT_ID = 'plimsoll' FOR ").unwrap_or(text);
        let is_block = ["BEGIN", "DECLARE", "CREATE PROCEDURE"].iter().any(|word| text.starts_with(word));
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let file = Path::new(&folder).join(format!("sent-{:016x}.sql", hasher.finish()));
        std::fs::write(file, format!("{text}{}", if is_block { "\n/\n" } else { ";\n" })).unwrap();
    }
}
