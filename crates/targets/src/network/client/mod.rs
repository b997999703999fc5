//! The client's end: a target whose lanes put load on a network to a server of ours.
//!
//! A run has one control connection. Each step is a test of its own: [`NetTarget::begin`] asks for it and makes its connections,
//! lanes take them, and [`NetTarget::end`] closes it.

mod belief;
mod connect;
mod datagrams;
mod error;
mod exchange;
mod lane;
mod path;
mod place;
mod several;
mod test;
mod traffic;
mod watch;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use error::NetError;
pub use path::PathMtu;
pub use several::NetTargets;
pub use test::TestEnds;

use self::connect::control;
use self::test::Test;
use super::wire::{ClientControl, Key, Limits, Session, SocketOptions};
use crate::{Background, Lane, SessionRange, Target, TargetError, TargetFor};
use measure::{Clock, Counter};
use model::record;
use model::record::facts::{INTERFACE_MTU, KERNEL_PATH_MTU, PATH_MTU_DOWN, PATH_MTU_UP};
use model::units::Nanos;
use model::workload::net::{NetOperation, NetShape};

/// How a client shall behave.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// How long nothing may come, or be taken, until a connection counts as lost.
    pub timeout: Duration,
    /// How the sockets of both ends shall be.
    pub sockets: SocketOptions,
    /// Whether blocks are asked for and sent as datagrams.
    pub is_udp: bool,
    /// Whether the end of a test waits until the server has taken all that was sent.
    pub drains: bool,
}

/// What a server can be asked for in one test, besides its shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestOptions {
    /// What it is, in a few words for the server's log.
    pub what: String,
    /// How long load will go on.
    pub duration: Nanos,
}

/// A network with a server at its other end.
#[derive(Debug)]
pub struct NetTarget {
    server: String,
    address: SocketAddr,
    options: ClientOptions,
    clock: Clock,
    session: Session,
    control: Mutex<ClientControl>,
    test: Mutex<Option<Test>>,
    known: Mutex<Known>,
}

/// What is known of both ends by now.
#[derive(Debug, Default)]
struct Known {
    facts: BTreeMap<String, String>,
    limits: Option<Limits>,
    trouble: Vec<String>,
}

impl NetTarget {
    /// Connects to a server and proves that both know the token. `server` is what messages call it.
    ///
    /// # Errors
    /// When none of ours answers there, or it does not accept the token.
    pub fn open(
        server: &str,
        addresses: &[SocketAddr],
        token: &Key,
        options: ClientOptions,
        clock: Clock,
    ) -> Result<Self, TargetError> {
        if let Some(name) = &options.sockets.congestion {
            connect::check_congestion(name)?;
        }
        let (address, control, session) = control(server, addresses, token, options.timeout)?;
        Ok(Self {
            server: server.to_owned(),
            address,
            options,
            clock,
            session,
            control: Mutex::new(control),
            test: Mutex::new(None),
            known: Mutex::default(),
        })
    }

    /// The server as messages call it.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// How long nothing may come.
    pub fn timeout(&self) -> Duration {
        self.options.timeout
    }

    /// Opens a test for a load and makes its connections.
    ///
    /// # Errors
    /// When the server refuses it, or a connection cannot be had.
    pub fn begin(&self, shape: &NetShape, wanted: &TestOptions) -> Result<(), TargetError> {
        let test = Test::open(self, shape, wanted)?;
        *lock(&self.test) = Some(test);
        Ok(())
    }

    /// Closes the test, if one is open, and says what both ends saw in all of it.
    ///
    /// # Errors
    /// When the server has gone.
    pub fn end(&self) -> Result<Option<TestEnds>, TargetError> {
        let Some(test) = lock(&self.test).take() else { return Ok(None) };
        test.end(self).map(Some)
    }

    /// Looks which packets reach the other end uncut. Takes some seconds where large ones are lost on the way.
    ///
    /// # Errors
    /// When the server refuses a test for it or has gone. That no datagram comes back is none.
    pub fn look_at_path(&self) -> Result<PathMtu, TargetError> {
        let found = path::look(self)?;
        let mut known = self.known();
        let mut say = |name: &str, bytes: Option<u32>| {
            known.facts.extend(bytes.map(|bytes| (name.to_owned(), bytes.to_string())));
        };
        say(INTERFACE_MTU, found.interface_bytes);
        say(KERNEL_PATH_MTU, found.kernel_bytes);
        say(PATH_MTU_UP, found.up_bytes);
        say(PATH_MTU_DOWN, found.down_bytes);
        Ok(found)
    }

    /// What went wrong at the server since this was asked last.
    pub fn take_trouble(&self) -> Vec<String> {
        std::mem::take(&mut self.known().trouble)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    fn control(&self) -> MutexGuard<'_, ClientControl> {
        lock(&self.control)
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.options.timeout
    }

    fn wire(&self, source: super::wire::WireError) -> TargetError {
        NetError::Wire { server: self.server.clone(), source }.into()
    }

    /// The address of this host that leads to the server.
    fn local(&self) -> Option<SocketAddr> {
        self.control().stream().local_addr().ok()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Target for NetTarget {
    fn describe(&self) -> record::Target {
        let facts = self.known().facts.clone();
        record::Target { kind: "network".to_owned(), address: self.server.clone(), facts, ..record::Target::default() }
    }

    fn notes(&self) -> Vec<String> {
        let known = self.known();
        let Some(Limits { bytes_per_s: Some(bytes_per_s), .. }) = known.limits else { return Vec::new() };
        vec![format!(
            "the server was started with a limit of {:.2} Gbit/s (`--max-rate`)",
            bytes_per_s as f64 * 8.0 / 1e9
        )]
    }

    fn layer(&self) -> &'static str {
        "network"
    }

    fn known_counters(&self) -> &'static [Counter] {
        &[Counter::Operations, Counter::Errors]
    }

    fn take_background(&self) -> Background {
        let network = lock(&self.test).as_mut().map_or_else(Vec::new, |test| test.take_ends(self));
        Background { network, ..Background::default() }
    }

    fn check_health(&self) -> Result<(), TargetError> {
        lock(&self.test).as_mut().map_or(Ok(()), |test| test.check_health(self))
    }
}

impl TargetFor<NetOperation> for NetTarget {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<NetOperation> + '_>, TargetError> {
        let mut test = lock(&self.test);
        let test = test.as_mut().ok_or(TargetError::Stopped)?;
        test.open_lane(self, range)
    }
}
