//! One test: its connections, what is seen of both ends, and its end.

use std::io::Read as _;
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::belief::{self, Known, Messages};
use super::datagrams::{self, DatagramLane, Traffic, introduced};
use super::lane::{Line, NetLane};
use super::{LaneContext, NetError, NetTarget, TestOptions, connect};
use crate::network::wire::{
    ANSWER_HEAD_BYTES, Carries, ClientControl, Ended, Flow, FromClient, FromServer, Open, Opened, Refused, Seen,
    WireError, short,
};
use crate::{Lane, SessionRange, TargetError};
use measure::monotonic_ns;
use measure::os::EndWatch;
use model::record::{NetworkEnd, NetworkSide};
use model::workload::net::{NetKind, NetOperation, NetShape};
use model::workload::{self, Rng};

/// The server takes a client for gone that says nothing for 10 s.
const ALIVE_EVERY: Duration = Duration::from_secs(2);
/// How often connections are looked at between readings.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long what has come on the control connection is read.
const GLANCE: Duration = Duration::from_millis(1);
/// How long a server may take to fill its files before a test.
const PREPARES_FOR: Duration = Duration::from_secs(600);
/// Bytes that are under way when a test ends are waited for as long as some come, but for no pause that is longer than this.
const DRAINS_FOR: Duration = Duration::from_secs(2);
/// Reports of a server in a row that show nothing read since the one before: two seconds of its reports.
const IDLE_REPORTS: u32 = 20;
/// Bytes that are read at once when a test ends.
const DRAIN_BYTES: usize = 64 << 10;

/// A connection or a socket that waits for its lane.
enum Made {
    Stream(Arc<TcpStream>),
    Datagrams(Arc<UdpSocket>),
}

/// What both ends saw in all of a test, connections that were closed included.
#[derive(Debug, Clone, PartialEq)]
pub struct TestEnds {
    /// This host.
    pub client: NetworkEnd,
    /// The other end, as it reported when the test ended.
    pub server: NetworkEnd,
}

/// A test that was opened.
pub(super) struct Test {
    shape: NetShape,
    /// By number; each until a lane takes it.
    made: Vec<Option<Made>>,
    /// Holds connections until the test ends, so that they can be looked at after their lanes have gone.
    streams: Vec<(Carries, Arc<TcpStream>)>,
    filling: Arc<[u8]>,
    traffic: Vec<Arc<Traffic>>,
    watch: EndWatch,
    server_node: String,
    /// What was reported last, of each end since the beginning.
    reported: [Option<NetworkEnd>; 2],
    seen: Option<Seen>,
    messages: Messages,
    /// Heard while nobody could be notified.
    failed: Option<TargetError>,
    /// What was heard last was an error: nothing more is to be had of the server.
    is_over: bool,
    asked: Instant,
    opened: Instant,
    alive: Instant,
    looked: Instant,
}

impl std::fmt::Debug for Test {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Test").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Test {
    /// Asks for a test, waits until it is opened, and makes its connections.
    pub(super) fn open(target: &NetTarget, shape: &NetShape, wanted: &TestOptions) -> Result<Self, TargetError> {
        let largest = |of: fn(&model::workload::net::NetClass) -> u32| shape.classes.iter().map(of).max().unwrap_or(0);
        let has_datagrams = target.options.is_udp && shape.classes.iter().any(|class| class.kind == NetKind::Block);
        let open = Open {
            what: wanted.what.clone(),
            connections: shape.connections(),
            max_request_bytes: largest(|class| class.sizes.largest()),
            max_answer_bytes: largest(|class| class.answer_bytes).max(ANSWER_HEAD_BYTES as u32),
            is_durable: shape.classes.iter().any(|class| class.is_durable),
            has_datagrams,
            duration_ms: Some(wanted.duration.0.div_ceil(1_000_000)),
            down_bytes_per_s: None,
            sockets: target.options.sockets.clone(),
        };
        let (is_durable, asked) = (open.is_durable, Instant::now());
        let opened = ask(target, &mut target.control(), open)?;
        let lacks = |what: &str| unbelievable(target, format!("it opens a test {what}, which was requested"));
        if has_datagrams && opened.datagrams.is_none() {
            return Err(lacks("without datagrams"));
        }
        if is_durable && opened.limits.write_bytes.is_none() {
            return Err(lacks("without files to write"));
        }
        target.known().limits = Some(opened.limits);
        let local = target.local().map(|address| address.ip());
        let mut this = Self {
            shape: shape.clone(),
            made: Vec::new(),
            streams: Vec::new(),
            filling: filling(largest(|class| class.sizes.largest())),
            traffic: Vec::new(),
            watch: EndWatch::begin(NetworkSide::Client, host_name(), local, "lane", monotonic_ns()),
            server_node: opened.host.hostname.as_deref().map_or_else(|| target.server().to_owned(), short),
            reported: [None, None],
            seen: None,
            messages: Messages::new(),
            failed: None,
            is_over: false,
            asked,
            opened: Instant::now(),
            alive: Instant::now(),
            looked: Instant::now(),
        };
        this.connect(target, &opened)?;
        let begun = target.control().send(&FromClient::Begin);
        begun.map_err(|source| target.wire(source))?;
        Ok(this)
    }

    fn connect(&mut self, target: &NetTarget, opened: &Opened) -> Result<(), TargetError> {
        let mut number = 0;
        for class in self.shape.classes.clone() {
            for _ in 0..class.connections {
                let made = match opened.datagrams {
                    Some(door) if class.kind == NetKind::Block => {
                        let server = target.server().to_owned();
                        let socket = introduced(target.address, door, number).map_err(|source| NetError::Lost {
                            server,
                            number: number + 1,
                            during: "over UDP",
                            source,
                        })?;
                        Made::Datagrams(Arc::new(socket))
                    }
                    _ => {
                        let carries = match class.kind {
                            NetKind::Send => Carries::Up,
                            NetKind::Receive => Carries::Down,
                            NetKind::Redo | NetKind::Block | NetKind::Rows | NetKind::Ping => Carries::Exchanges,
                        };
                        let (server, options) = (target.server(), &target.options.sockets);
                        let flow = Flow { number, carries };
                        let (session, timeout) = (&target.session, target.timeout());
                        let stream =
                            connect::data(server, target.address, session, opened.test, flow, options, timeout)?;
                        let stream = Arc::new(stream);
                        self.watch.add(&stream);
                        self.streams.push((carries, Arc::clone(&stream)));
                        Made::Stream(stream)
                    }
                };
                self.made.push(Some(made));
                number += 1;
                self.stay_alive(&target.control()).map_err(|source| target.wire(source))?;
            }
        }
        Ok(())
    }

    /// The lane of some sessions.
    pub(super) fn open_lane<'t>(
        &mut self,
        target: &'t NetTarget,
        range: SessionRange,
    ) -> Result<Box<dyn Lane<NetOperation> + 't>, TargetError> {
        let traffic = Arc::new(Traffic::default());
        self.traffic.push(Arc::clone(&traffic));
        let (mut lines, mut sockets, mut line_of) = (Vec::new(), Vec::new(), Vec::new());
        let mut last = None;
        for session in range.first_session..range.first_session + range.sessions {
            let Some(workload::net::SessionConnection { class, connection }) = self.shape.place_of(session) else {
                continue;
            };
            if last != Some(connection) {
                last = Some(connection);
                match self.made.get_mut(connection as usize).and_then(Option::take) {
                    Some(Made::Stream(stream)) => {
                        lines.push(Line::new(stream, connection, self.shape.classes[class].kind));
                    }
                    Some(Made::Datagrams(socket)) => sockets.push(datagrams::Line::new(socket, connection)),
                    None => return Err(TargetError::Stopped),
                }
            }
            line_of.push((lines.len() + sockets.len() - 1) as u32);
        }
        let filling = Arc::clone(&self.filling);
        let place = LaneContext::new(target, &range, filling, traffic, self.watch.ended_threads());
        Ok(match sockets.is_empty() {
            true => Box::new(NetLane::new(place, lines, line_of)?),
            false => Box::new(DatagramLane::new(place, sockets, line_of)?),
        })
    }

    /// Hears what the server has to say, and lets it know that somebody is here.
    pub(super) fn check_health(&mut self, target: &NetTarget) -> Result<(), TargetError> {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            self.watch.look();
        }
        self.hear(target)
    }

    fn hear(&mut self, target: &NetTarget) -> Result<(), TargetError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let heard = self.hear_what_has_come(target);
        self.is_over |= heard.is_err();
        heard
    }

    fn hear_what_has_come(&mut self, target: &NetTarget) -> Result<(), TargetError> {
        if self.is_over {
            return Ok(());
        }
        let mut control = target.control();
        self.stay_alive(&control).map_err(|source| target.wire(source))?;
        // However much comes, it is looked at for a moment only.
        let until = Instant::now() + GLANCE;
        while let Some(message) = control.receive(until).map_err(|source| target.wire(source))? {
            self.take_in(target, message)?;
        }
        Ok(())
    }

    fn stay_alive(&mut self, control: &ClientControl) -> Result<(), WireError> {
        if self.alive.elapsed() < ALIVE_EVERY {
            return Ok(());
        }
        self.alive = Instant::now();
        control.send(&FromClient::Alive)
    }

    fn take_in(&mut self, target: &NetTarget, message: FromServer) -> Result<(), TargetError> {
        if let Some(what) = self.messages.came() {
            return Err(unbelievable(target, what));
        }
        match message {
            FromServer::Seen(seen) => self.keep(target, *seen),
            FromServer::Ended(ended) => {
                let Ended { why, seen } = *ended;
                self.keep(target, seen)?;
                let why = why.map_or_else(|| "it does not say why".to_owned(), |why| short(&why));
                Err(NetError::Ended { server: target.server().to_owned(), why }.into())
            }
            FromServer::Version(_) | FromServer::Preparing { .. } | FromServer::Opened(_) | FromServer::Refused(_) => {
                Err(unbelievable(target, "it answers a request that was not sent, during a test".to_owned()))
            }
        }
    }

    /// What this end knows by now.
    fn known(&self, target: &NetTarget) -> Known {
        let bytes = self.traffic.iter().map(|traffic| traffic.bytes());
        let (sent_bytes, received_bytes) = bytes.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        let each = belief::MOVED_BYTES + self.filling.len() as u64;
        Known {
            asked: self.asked.elapsed(),
            sent_bytes,
            received_bytes,
            datagrams: self.traffic.iter().map(|traffic| traffic.asked()).sum(),
            under_way_bytes: each * u64::from(self.shape.connections()),
            may_double: target.options.is_udp,
        }
    }

    fn keep(&mut self, target: &NetTarget, mut seen: Seen) -> Result<(), TargetError> {
        if let Some(what) = belief::doubt(&seen, self.seen.as_ref(), &self.known(target)) {
            return Err(unbelievable(target, what));
        }
        belief::make_plain(&mut seen.end);
        // Whatever it calls itself, it is the other end.
        (seen.end.side, seen.end.node) = (NetworkSide::Server, self.server_node.clone());
        if let Some(trouble) = seen.trouble.take() {
            let words = format!("the server says: {}", short(&trouble));
            let mut known = target.known();
            if !known.trouble.contains(&words) {
                known.trouble.push(words);
            }
        }
        let [counted, strange] = [seen.datagrams, seen.strange_datagrams];
        if counted > 0 || strange > 0 {
            seen.end.counters.insert("udp.answered".to_owned(), counted);
            seen.end.counters.insert("udp.strange".to_owned(), strange);
        }
        self.seen = Some(seen);
        Ok(())
    }

    /// What both ends saw since this was asked last.
    pub(super) fn take_ends(&mut self, target: &NetTarget) -> Vec<NetworkEnd> {
        // What goes wrong here is found by the next look at health.
        self.failed = self.hear(target).err();
        let now = [Some(self.own_end()), self.seen.as_ref().map(|seen| seen.end.clone())];
        let mut ends = Vec::new();
        for (now, reported) in now.into_iter().zip(&mut self.reported) {
            let Some(now) = now else { continue };
            let since = reported.as_ref().map_or_else(|| now.clone(), |reported| now.since(reported));
            if since.elapsed_ns > 0 {
                ends.push(since);
                *reported = Some(now);
            }
        }
        ends
    }

    fn own_end(&mut self) -> NetworkEnd {
        let bytes = self.traffic.iter().map(|traffic| traffic.bytes());
        let (sent, received) =
            bytes.fold((0, 0), |(sent, received), (more_sent, more)| (sent + more_sent, received + more));
        let mut end = self.watch.read(monotonic_ns(), Some(sent), Some(received));
        if !self.traffic.is_empty() && self.streams.is_empty() {
            self.traffic.iter().for_each(|traffic| traffic.add_datagrams(&mut end.counters));
        }
        end
    }

    /// Closes connections and the test.
    pub(super) fn end(mut self, target: &NetTarget) -> Result<TestEnds, TargetError> {
        let has_drained = !target.options.drains || self.is_over || self.drain(target)?;
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let client = self.own_end();
        let (open, known) = (self.opened.elapsed(), self.known(target));
        self.made.clear();
        // Until all has come that the server sends on its own.
        self.streams.retain(|(carries, _)| *carries == Carries::Down);
        if self.is_over {
            // What it was has been reported by whoever heard it first; what the other end saw by then is not the whole test.
            return Err(target.wire(WireError::Closed { during: "before the test had ended" }));
        }
        let mut control = target.control();
        control.send(&FromClient::End).map_err(|source| target.wire(source))?;
        let deadline = target.deadline();
        let ended = loop {
            match control.expect(deadline).map_err(|source| target.wire(source))? {
                FromServer::Ended(ended) => break ended,
                message => self.take_in(target, message)?,
            }
        };
        self.keep(target, ended.seen)?;
        let (late_bytes, has_come) = self.take_what_is_under_way(target.timeout());
        let seen = self.seen.take().unwrap_or_default();
        if let Some(what) = belief::doubt_of_all(&seen, open, &known) {
            return Err(unbelievable(target, what));
        }
        let received_bytes = known.received_bytes + late_bytes;
        // Behind a slow way, seconds of what was sent may still be queued.
        let under_way_bytes = if has_drained && has_come { self.exchanged_bytes() } else { u64::MAX };
        let known = belief::Known { received_bytes, ..known };
        if let Some(what) = belief::disagreement(&seen, &known, under_way_bytes) {
            return Err(NetError::Disagreement { server: target.server().to_owned(), what }.into());
        }
        Ok(TestEnds { client, server: seen.end })
    }

    /// Reads what the server had sent on its own when it ended the test; says how many bytes came, and whether there was time for all.
    fn take_what_is_under_way(&mut self, timeout: Duration) -> (u64, bool) {
        let until = Instant::now() + timeout.max(DRAINS_FOR);
        let mut room = vec![0; DRAIN_BYTES];
        let mut came = 0;
        for (_, stream) in self.streams.drain(..) {
            let mut stream = &*stream;
            // A connection without a limit could be waited for without end.
            if stream.set_read_timeout(Some(DRAINS_FOR)).is_err() {
                continue;
            }
            while Instant::now() < until {
                match stream.read(&mut room) {
                    Ok(0) => break,
                    Ok(bytes) => came += bytes as u64,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
        (came, Instant::now() < until)
    }

    /// Bytes of requests, or of their answers, that may be under way on connections that are closed when a test ends.
    fn exchanged_bytes(&self) -> u64 {
        let exchanges =
            self.shape.classes.iter().filter(|class| !matches!(class.kind, NetKind::Send | NetKind::Receive));
        exchanges
            .map(|class| u64::from(class.sessions()) * u64::from(class.sizes.largest().max(class.answer_bytes)))
            .sum()
    }

    /// Waits until the server has read all that was sent to it.
    ///
    /// Says whether it has, or reads no more; otherwise there was no time for the rest.
    fn drain(&mut self, target: &NetTarget) -> Result<bool, TargetError> {
        for (_, stream) in &self.streams {
            // One that is closed already needs no end.
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let at = |later: Duration| target.clock.now_ns().saturating_add(later.as_nanos() as u64);
        let last_ns = at(target.timeout().max(DRAINS_FOR));
        let sent: u64 = self.traffic.iter().map(|traffic| traffic.bytes().0).sum();
        let read = |this: &Self| this.seen.as_ref().and_then(|seen| seen.end.received_bytes);
        let reported = |this: &Self| this.seen.as_ref().map(|seen| seen.at_ns);
        // Only reports say that it reads no more: one that is stopped makes none, and goes on later.
        let (mut before, mut last_report, mut idle_reports) = (read(self), reported(self), 0);
        while read(self).is_none_or(|bytes| bytes < sent) && idle_reports < IDLE_REPORTS && at(Duration::ZERO) < last_ns
        {
            std::thread::sleep(GLANCE);
            self.hear(target)?;
            if read(self) != before {
                (before, idle_reports) = (read(self), 0);
            } else if reported(self) != last_report {
                idle_reports += 1;
            }
            last_report = reported(self);
        }
        Ok(read(self).is_some_and(|bytes| bytes >= sent) || at(Duration::ZERO) < last_ns)
    }
}

/// Has a test opened.
pub(super) fn ask(target: &NetTarget, control: &mut ClientControl, open: Open) -> Result<Opened, TargetError> {
    control.send(&FromClient::Open(open)).map_err(|source| target.wire(source))?;
    let until = Instant::now() + PREPARES_FOR;
    let mut deadline = target.deadline();
    let mut messages = Messages::new();
    loop {
        let message = control.expect(deadline.min(until)).map_err(|source| target.wire(source))?;
        if let Some(what) = messages.came() {
            return Err(unbelievable(target, what));
        }
        match message {
            FromServer::Preparing { done_bytes, of_bytes } if done_bytes > of_bytes => {
                return Err(unbelievable(target, format!("it has filled {done_bytes} of {of_bytes} bytes")));
            }
            FromServer::Opened(opened) => return Ok(*opened),
            FromServer::Preparing { .. } => {
                control.send(&FromClient::Alive).map_err(|source| target.wire(source))?;
                deadline = target.deadline();
            }
            FromServer::Refused(Refused { why, hint }) => {
                let (server, why) = (target.server().to_owned(), short(&why));
                return Err(NetError::Refused { server, why, hint: hint.map(|hint| short(&hint)) }.into());
            }
            // What was left of a test before.
            FromServer::Version(_) | FromServer::Seen(_) | FromServer::Ended(_) => {}
        }
    }
}

fn unbelievable(target: &NetTarget, what: String) -> TargetError {
    NetError::Unbelievable { server: target.server().to_owned(), what }.into()
}

/// Bytes that no device on the way can make smaller.
fn filling(bytes: u32) -> Arc<[u8]> {
    const SEED: u64 = 7018;
    let mut filling = vec![0; bytes as usize];
    Rng::new(SEED, 0).fill(&mut filling);
    filling.into()
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "client".to_owned(), |name| name.trim().to_owned())
}
