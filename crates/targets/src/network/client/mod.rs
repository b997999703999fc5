//! The client's end: a target whose lanes put load on a network to a server of ours.
//!
//! A run has one control connection. Each step is a test of its own: [`NetTarget::begin`] asks for it and makes its connections,
//! lanes take them, and [`NetTarget::end`] closes it.

mod belief;
mod connect;
mod datagrams;
mod exchange;
mod lane;
mod path;
mod test;

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use miette::Diagnostic;
use rustix::event::epoll::{CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

pub use test::TestEnds;

use self::connect::control;
use self::test::Test;
use super::wire::{ClientControl, Key, Limits, Session, SocketOptions};
use crate::network::wire::WireError;
use crate::{Background, Finished, Lane, MORE_FILES, OperationResult, SessionRange, Target, TargetError, TargetFor};
use datagrams::Traffic;
use exchange::Answered;
use measure::os::EndedThreads;
use measure::{Clock, Counter, LaneRecorder, WaitEvent};
use model::record::{self, PathMtu, TargetFacts};
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
    path_mtu: PathMtu,
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
        self.known().path_mtu = found.clone();
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
        let facts = TargetFacts { path_mtu: self.known().path_mtu.clone(), ..TargetFacts::default() };
        record::Target {
            kind: Some(record::TargetKind::Network),
            address: self.server.clone(),
            facts,
            ..record::Target::default()
        }
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

/// Where a lane works.
#[derive(Debug)]
struct LaneContext {
    server: String,
    clock: Clock,
    filling: Arc<[u8]>,
    traffic: Arc<Traffic>,
    timeout_ns: u64,
    ended: EndedThreads,
}

impl LaneContext {
    fn new(
        target: &NetTarget,
        range: &SessionRange,
        filling: Arc<[u8]>,
        traffic: Arc<Traffic>,
        ended: EndedThreads,
    ) -> Self {
        let timeout_ns = target.timeout().as_nanos() as u64;
        Self { server: target.server().to_owned(), clock: range.clock, filling, traffic, timeout_ns, ended }
    }

    /// A connection that is gone; connections are numbered from 0.
    fn lost(&self, number: u32, during: &'static str, source: io::Error) -> TargetError {
        NetError::Lost { server: self.server.clone(), number: number + 1, during, source }.into()
    }

    /// An answer that is none to what was asked.
    fn wrong_answer(&self, number: u32, what: String) -> TargetError {
        NetError::Answer { server: self.server.clone(), number: number + 1, what }.into()
    }

    /// An error if nothing has moved on a connection for too long; `awaited` ends "nothing …".
    fn check_silence(
        &self,
        number: u32,
        awaited: &'static str,
        progress_ns: u64,
        now_ns: u64,
    ) -> Result<(), TargetError> {
        if now_ns.saturating_sub(progress_ns) <= self.timeout_ns {
            return Ok(());
        }
        Err(self.silent(number, awaited, progress_ns, now_ns))
    }

    /// A connection on which nothing has moved since `progress_ns`.
    fn silent(&self, number: u32, awaited: &'static str, progress_ns: u64, now_ns: u64) -> TargetError {
        let waited_ns = now_ns.saturating_sub(progress_ns);
        NetError::Silent { server: self.server.clone(), number: number + 1, during: awaited, waited_ns }.into()
    }
}

/// A lane goes with its thread.
impl Drop for LaneContext {
    fn drop(&mut self) {
        self.ended.leave();
    }
}

/// Cuts the time of an exchange into the network's and the server's, both on clocks of their own: the server says how long it had
/// the request, and cannot have had it for longer than it took.
fn record_waits(recorder: &mut LaneRecorder, total_ns: u64, answered: &Answered) {
    let server_ns = answered.answer.server_ns.min(total_ns);
    let written_ns = answered.answer.durable_ns.min(server_ns);
    recorder.wait(WaitEvent::NetworkRoundTrip, total_ns - server_ns);
    recorder.wait(WaitEvent::RemoteService, server_ns - written_ns);
    if answered.answer.durable_ns > 0 {
        recorder.wait(WaitEvent::RfsWrite, written_ns);
    }
}

fn done(session: u32, at_ns: u64, result: OperationResult) -> Finished {
    Finished { session, at_ns, paused_ns: 0, connecting_ns: 0, block_touches: 0, result }
}

/// Nobody waits longer than this, so that whoever is silent is noticed.
const TICK_NS: u64 = 20_000_000;
/// `epoll_wait` counts in milliseconds, rounded up; what is due sooner than this is waited for in nanoseconds.
const FINE_NS: u64 = 5_000_000;
/// Most sockets that are reported as ready at once.
const EVENTS: usize = 64;

/// What a socket is ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ready {
    /// Number by which it was added.
    number: u32,
    /// Something can be taken, or the other end has gone.
    can_receive: bool,
    /// Something can be sent.
    can_send: bool,
}

/// Sockets that are waited for.
#[derive(Debug)]
struct Watch {
    epoll: OwnedFd,
}

impl Watch {
    fn new() -> Result<Self, NetError> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC).map_err(cannot)? })
    }

    /// Waits for a socket from now on.
    fn add(&self, socket: impl AsFd, number: u32, receives: bool) -> Result<(), NetError> {
        let flags = if receives { EventFlags::IN } else { EventFlags::empty() };
        epoll::add(&self.epoll, socket, EventData::new_u64(u64::from(number)), flags).map_err(cannot)
    }

    /// Says whether it is waited for until something can be sent too.
    fn sends(&self, socket: impl AsFd, number: u32, receives: bool, sends: bool) -> Result<(), NetError> {
        let mut flags = if receives { EventFlags::IN } else { EventFlags::empty() };
        flags.set(EventFlags::OUT, sends);
        epoll::modify(&self.epoll, socket, EventData::new_u64(u64::from(number)), flags).map_err(cannot)
    }

    /// Appends what is ready. Returns at the latest soon after `until_ns`, and after [`TICK_NS`].
    fn wait(&self, clock: Clock, until_ns: u64, ready: &mut Vec<Ready>) -> Result<(), NetError> {
        let left_ns = until_ns.saturating_sub(clock.now_ns()).min(TICK_NS);
        let mut coarse_ns = 0;
        if left_ns >= FINE_NS {
            coarse_ns = left_ns - left_ns % 1_000_000;
        } else if left_ns > 0 {
            let patience = Timespec { tv_sec: 0, tv_nsec: left_ns as _ };
            match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&patience)) {
                Ok(0) | Err(Errno::INTR) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(cannot(error)),
            }
        }
        let patience = Timespec { tv_sec: 0, tv_nsec: coarse_ns as _ };
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        match epoll::wait(&self.epoll, &mut events, Some(&patience)) {
            Ok((events, _)) => ready.extend(events.iter().map(|event| {
                let flags = event.flags;
                let gone = EventFlags::HUP | EventFlags::ERR;
                Ready {
                    number: event.data.u64() as u32,
                    can_receive: flags.intersects(EventFlags::IN | gone),
                    can_send: flags.intersects(EventFlags::OUT | gone),
                }
            })),
            Err(Errno::INTR) => {}
            Err(error) => return Err(cannot(error)),
        }
        Ok(())
    }
}

fn cannot(source: Errno) -> NetError {
    NetError::Socket { action: "wait for sockets", source: source.into() }
}

/// How long a blocking call may take.
const TICK: Duration = Duration::from_nanos(TICK_NS);

// Several servers that are put under load at once, each with a load of its own.

/// Servers that all have the same load at the same time. Its sessions are numbered server by server, so that its shape is that of
/// one server [`times`](NetShape::times) their number.
#[derive(Debug)]
pub struct NetTargets {
    targets: Vec<NetTarget>,
    sessions_each: u32,
}

impl NetTargets {
    /// Opens a test on each of them.
    ///
    /// # Errors
    /// When one refuses it, or a connection cannot be had.
    pub fn begin(targets: Vec<NetTarget>, each: &NetShape, wanted: &TestOptions) -> Result<Self, TargetError> {
        for target in &targets {
            target.begin(each, wanted)?;
        }
        Ok(Self { targets, sessions_each: each.sessions().max(1) })
    }

    /// Closes the tests.
    ///
    /// # Errors
    /// When a server has gone: the first of them.
    pub fn end(&self) -> Result<(), TargetError> {
        let mut all = Ok(());
        for target in &self.targets {
            // Each is ended, whatever became of those before it.
            let ended = target.end().map(drop);
            all = all.and(ended);
        }
        all
    }

    /// What went wrong at the servers since this was asked last.
    pub fn take_trouble(&self) -> Vec<String> {
        let of = |target: &NetTarget| {
            let words = target.take_trouble().into_iter();
            words.map(|words| format!("`{}`: {words}", target.server())).collect::<Vec<_>>()
        };
        self.targets.iter().flat_map(of).collect()
    }
}

impl Target for NetTargets {
    fn describe(&self) -> record::Target {
        let servers: Vec<&str> = self.targets.iter().map(NetTarget::server).collect();
        record::Target {
            kind: Some(record::TargetKind::Network),
            address: servers.join(", "),
            ..record::Target::default()
        }
    }

    fn notes(&self) -> Vec<String> {
        let of = |target: &NetTarget| {
            let notes = target.notes().into_iter();
            notes.map(|note| format!("`{}`: {note}", target.server())).collect::<Vec<_>>()
        };
        self.targets.iter().flat_map(of).collect()
    }

    fn layer(&self) -> &'static str {
        "network"
    }

    fn known_counters(&self) -> &'static [Counter] {
        self.targets.first().map_or(&[], Target::known_counters)
    }

    fn take_background(&self) -> Background {
        let mut network = Vec::new();
        for target in &self.targets {
            let ends = target.take_background().network.into_iter();
            network.extend(ends.map(|end| record::NetworkEnd { server: Some(target.server().to_owned()), ..end }));
        }
        Background { network, ..Background::default() }
    }

    fn check_health(&self) -> Result<(), TargetError> {
        self.targets.iter().try_for_each(Target::check_health)
    }
}

impl TargetFor<NetOperation> for NetTargets {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<NetOperation> + '_>, TargetError> {
        let (place, first_session) =
            (range.first_session / self.sessions_each, range.first_session % self.sessions_each);
        // A lane has connections to one server: whoever plans gives each flow a thread.
        debug_assert!(first_session + range.sessions <= self.sessions_each, "{range:?} is of more than one server");
        let target = self.targets.get(place as usize).ok_or(TargetError::Stopped)?;
        target.open_lane(SessionRange { first_session, ..range })
    }
}

const LOOK_BETWEEN: &str =
    "look at the terminal of `plimsoll net serve`, and whether something between cuts connections";

/// Why a load on a network cannot be carried out, or not any more.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum NetError {
    /// A name without an address.
    #[error("`{server}` has no address: {source}")]
    #[diagnostic(help("check the name, or give an IP address"))]
    NoAddress {
        /// The server as it was named.
        server: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Nobody takes connections there.
    #[error("cannot connect to `{server}`: {source}")]
    #[diagnostic(help("{}", hint_for_connecting(source)))]
    Connect {
        /// The server as it was named.
        server: String,
        /// The system's reason.
        source: io::Error,
    },
    /// What both ends say to each other went wrong.
    #[error("`{server}`: {source}")]
    #[diagnostic(forward(source))]
    Wire {
        /// The server as it was named.
        server: String,
        /// What went wrong.
        source: WireError,
    },
    /// The server does not open the test.
    #[error("`{server}` refuses the test: {why}")]
    Refused {
        /// The server as it was named.
        server: String,
        /// Its reason.
        why: String,
        /// What it says to do about it.
        #[help]
        hint: Option<String>,
    },
    /// The server ended the test.
    #[error("`{server}` ended the test: {why}")]
    #[diagnostic(help(
        "`plimsoll net serve` says more on its own terminal; its limits are in `plimsoll net serve --help`"
    ))]
    Ended {
        /// The server as it was named.
        server: String,
        /// Its reason.
        why: String,
    },
    /// A connection that carried load is gone.
    #[error("connection {number} to `{server}` was lost {during}: {source}")]
    #[diagnostic(help("{LOOK_BETWEEN}"))]
    Lost {
        /// The server as it was named.
        server: String,
        /// Number of the connection, from 1.
        number: u32,
        /// What was under way.
        during: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A connection on which nothing comes or goes.
    #[error("connection {number} to `{server}`: nothing {during} for {}", Nanos(*waited_ns))]
    #[diagnostic(help("{LOOK_BETWEEN}"))]
    Silent {
        /// The server as it was named.
        server: String,
        /// Number of the connection, from 1.
        number: u32,
        /// What was under way.
        during: &'static str,
        /// For how long.
        waited_ns: u64,
    },
    /// An answer that is none to what was asked.
    #[error("connection {number} to `{server}`: {what}")]
    #[diagnostic(help("{LOOK_BETWEEN}"))]
    Answer {
        /// The server as it was named.
        server: String,
        /// Number of the connection, from 1.
        number: u32,
        /// What is wrong with it.
        what: String,
    },
    /// What the server says of a test cannot be.
    #[error("what `{server}` says cannot be: {what}")]
    #[diagnostic(help(
        "run the same version of plimsoll on both hosts, and look whether something between changes what is sent"
    ))]
    Unbelievable {
        /// The server as it was named.
        server: String,
        /// What is wrong with it.
        what: String,
    },
    /// Not all that one end sent has reached the other.
    #[error("the counts of this host and of `{server}` differ: {what}")]
    #[diagnostic(help(
        "something between both hosts, such as a proxy or a tunnel, keeps or adds bytes. Rates are not those of the \
        network: measure without it"
    ))]
    Disagreement {
        /// The server as it was named.
        server: String,
        /// Which counts differ.
        what: String,
    },
    /// A socket cannot be had as it was asked for.
    #[error("cannot {action}: {source}")]
    #[diagnostic(help("{}", hint_for_socket(action, source)))]
    Socket {
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// No token was given.
    #[error("no token was given for `{server}`")]
    #[diagnostic(help(
        "set PLIMSOLL_NET_TOKEN, or name a file with `--token-file`: `plimsoll net serve` shows the token that it made"
    ))]
    NoToken {
        /// The server as it was named.
        server: String,
    },
    /// The server of this process.
    #[error("cannot serve on this host: {why}")]
    Own {
        /// The reason.
        why: String,
    },
}

impl NetError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }
}

fn hint_for_connecting(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => {
            "start `plimsoll net serve --listen ADDRESS` there: without `--listen` it takes connections of its own host only"
        }
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "a firewall or a route may be in the way; the port must be open for TCP (and UDP, for `--udp`)"
        }
        _ if source.raw_os_error() == Some(libc::EMFILE) => MORE_FILES,
        _ => "look whether the other host can be reached: `ping` and `ip route get`",
    }
}

fn hint_for_socket(action: &str, source: &io::Error) -> &'static str {
    if source.raw_os_error() == Some(libc::EMFILE) {
        MORE_FILES
    } else if action.contains("congestion") {
        "`sysctl net.ipv4.tcp_available_congestion_control` lists what the kernel has"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_has_come_is_reported_at_once_and_nothing_at_its_time() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let (watch, clock) = (Watch::new().unwrap(), Clock::start());
        watch.add(&far, 7, true).unwrap();
        let mut ready = Vec::new();
        for wait_ns in [0, 300_000, 9_000_000] {
            let until_ns = clock.now_ns() + wait_ns;
            while clock.now_ns() < until_ns {
                watch.wait(clock, until_ns, &mut ready).unwrap();
            }
            assert!(ready.is_empty(), "{wait_ns}");
        }
        near.write_all(b"!").unwrap();
        watch.wait(clock, clock.now_ns() + 10 * TICK_NS, &mut ready).unwrap();
        assert_eq!(ready, [Ready { number: 7, can_receive: true, can_send: false }]);
        watch.sends(&far, 7, false, true).unwrap();
        ready.clear();
        watch.wait(clock, 0, &mut ready).unwrap();
        assert_eq!(ready, [Ready { number: 7, can_receive: false, can_send: true }]);
    }
}
