//! How a server is reached, and how long that may take: what everything that calls it shares.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::NfsError;
use super::caller::Caller;
use super::connect::Route;
use super::wire::{Credential, Program, Status};
use model::config::nfs::{DEFAULT_TIMEOUT_S, NfsAddress};

/// How long a server may say that it is not ready before that is an error, and the first and longest pause between.
pub const MAX_NOT_READY: Duration = Duration::from_secs(30);
pub const FIRST_PAUSE: Duration = Duration::from_millis(50);
pub const MAX_PAUSE: Duration = Duration::from_secs(2);
/// How long a server that has restarted may wait for clients of its life before: servers do for 90 s.
pub const MAX_GRACE: Duration = Duration::from_secs(150);
/// How long a server may refuse a call so before that is an error.
pub const fn patience(status: Status) -> Duration {
    match status {
        Status::JUKEBOX => MAX_NOT_READY,
        Status::GRACE => MAX_GRACE,
        _ => Duration::ZERO,
    }
}

/// Pauses between attempts, each twice as long as the one before.
#[derive(Debug)]
pub struct Pauses {
    began: Instant,
    pause: Duration,
}

impl Pauses {
    /// Before the first attempt.
    pub fn begin() -> Self {
        Self { began: Instant::now(), pause: FIRST_PAUSE }
    }

    /// Makes one, unless that was done for as long as `most`.
    pub fn rest(&mut self, most: Duration) -> bool {
        let may_rest = self.began.elapsed() < most;
        if may_rest {
            thread::sleep(self.pause);
            self.pause = (self.pause * 2).min(MAX_PAUSE);
        }
        may_rest
    }

    /// What it means that no attempt was of use: the server was never ready, or it refuses.
    pub fn refused(&self, call: &'static str, name: &str, status: Status) -> NfsError {
        let name = name.to_owned();
        if patience(status).is_zero() {
            return NfsError::Refused { call, name, status };
        }
        NfsError::NotReady { call, name, waited_ns: self.began.elapsed().as_nanos() as u64 }
    }
}

/// How many times the patience with a silent connection is the patience with the server.
const GIVE_UP_FACTOR: u32 = 5;
/// Patience with each way at least, however many there are: TCP repeats a lost request after 200 ms, and then after twice that.
const SHORTEST: Duration = Duration::from_secs(1);
/// Bytes of writes to one file that are kept because they are not durable yet, at most, beside those in flight.
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// How long is waited, and how much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For any answer on a connection that owes one, before it counts as silent.
    pub silent: Duration,
    /// For an answer at all.
    pub give_up: Duration,
    /// For a connection.
    pub connect: Duration,
    /// Bytes that were written to a file and are not durable: at half of it COMMIT is sent, and no more is written above it.
    pub kept_bytes: u64,
}

impl Limits {
    /// Those of an address.
    pub fn of(address: &NfsAddress) -> Self {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let silent = seconds(address.timeout_s.unwrap_or(DEFAULT_TIMEOUT_S));
        let connect = address.connect_timeout_s.map_or(silent, seconds);
        Self { silent, give_up: silent * GIVE_UP_FACTOR, connect, kept_bytes: MAX_KEPT_BYTES }
    }
}

/// All ways to a server.
#[derive(Debug)]
pub struct Ways {
    /// The server, for a reader.
    pub server: String,
    /// Its addresses, at least one.
    pub routes: Vec<Route>,
    /// Who calls.
    pub credential: Arc<Credential>,
    /// How long that may take.
    pub limits: Limits,
    made: AtomicU64,
}

impl Ways {
    /// To `server` by `routes`.
    pub fn new(server: String, routes: Vec<Route>, limits: Limits) -> Self {
        let credential = Arc::new(Credential::of_this_process());
        Self { server, routes, credential, limits, made: AtomicU64::new(1) }
    }

    /// How often connections were made by which a server that has restarted could answer.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Acquire)
    }

    /// Another connection was made, to a server that may have restarted. Said before anything is read by it.
    pub fn make(&self) {
        self.made.fetch_add(1, Ordering::AcqRel);
    }

    /// A connection to the server's NFS that blocks.
    ///
    /// # Errors
    /// Why none is made.
    pub fn connect(&self, route: Route, program: Program) -> Result<Caller, NfsError> {
        let caller = self.call("NFS server", route, program)?;
        self.make();
        Ok(caller)
    }

    /// A connection to one of its services.
    ///
    /// # Errors
    /// Why none is made.
    pub fn call(&self, service: &'static str, route: Route, program: Program) -> Result<Caller, NfsError> {
        // All ways together: whoever asks by one after the other gives the server up in that time.
        let ways = u32::try_from(self.routes.len()).unwrap_or(u32::MAX).max(1);
        let patience = (self.limits.give_up / ways).max(SHORTEST.min(self.limits.silent));
        Caller::connect(service, route, program, Arc::clone(&self.credential), (self.limits.connect, patience))
    }

    /// Asks by one way after the other until one of them answers.
    ///
    /// # Errors
    /// The first failure of all ways, or what is none of a way.
    pub fn by_any<T>(&self, mut ask: impl FnMut(Route) -> Result<T, NfsError>) -> Result<T, NfsError> {
        let mut failed = None;
        for route in &self.routes {
            match ask(*route) {
                Err(error) if is_of_path(&error) => failed = failed.or(Some(error)),
                done => return done,
            }
        }
        Err(failed.unwrap_or_else(|| self.nowhere()))
    }

    /// The first address.
    pub fn first(&self) -> Option<SocketAddr> {
        self.routes.first().map(|route| route.to)
    }

    /// There is no way.
    pub fn nowhere(&self) -> NfsError {
        NfsError::Resolve { host: self.server.clone(), source: Arc::new(io::ErrorKind::NotFound.into()) }
    }
}

/// Whether another path, or another attempt, may do better.
pub fn is_of_path(error: &NfsError) -> bool {
    matches!(error, NfsError::Connect { .. } | NfsError::Broken { .. } | NfsError::Silent { .. })
}
