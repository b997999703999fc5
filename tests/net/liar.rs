//! A server that knows the token and keeps to the protocol but for one thing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll::record::{Environment, NetworkEnd, NetworkFacts, NetworkSide, ProcessorTime};
use plimsoll::targets::network::wire::{
    Answer, Carries, Ended, FromClient, FromServer, INTRODUCTION_BYTES, Introduction, Limits, MAX_FRAME_BYTES, Opened,
    REQUEST_HEAD_BYTES, RequestHead, Role, Seen, ServerControl, Session, Status, UdpPort, greet,
};

use crate::peer::{soon, token};

/// What it does otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// Nothing.
    None,
    // Of what it saw.
    MoreReceived,
    FewerReceived,
    HalfIsKeptOnTheWay,
    MoreTime,
    LessTime,
    MoreProcessorTime,
    Backwards,
    MoreDatagrams,
    NamesThatTerminalsObey,
    // Of its messages.
    Again,
    TooLong,
    NoMessage,
    Flood,
    EndsEarly,
    PreparesForever,
    PreparesMore,
    OpensWithoutFiles,
    OpensWithoutDatagrams,
    // Of its answers.
    OtherNumber,
    OtherLength,
    LaterThanItCame,
    WroteUnasked,
    WroteNothing,
    Twice,
    FloodOfDatagrams,
    // Of its presence.
    SilentAtFirst,
    SilentWhenAsked,
    SilentInTheMiddle,
    SilentAtTheEnd,
    HalfAnAnswer,
    ClosesInTheMiddle,
    ReadsNothing,
}

const NONCE: [u8; 16] = [7; 16];
/// Answers before it lies.
const HONEST: u64 = 20;

struct Shared {
    lie: Lie,
    session: Mutex<Option<Session>>,
    received: AtomicU64,
    sent: AtomicU64,
    stop: AtomicBool,
    /// Flows to the client are to end, and have ended.
    is_over: AtomicBool,
    has_given: AtomicBool,
    datagrams: UdpSocket,
}

/// Serves until it is dropped.
pub struct Liar {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

impl Liar {
    pub fn start(lie: Lie) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            lie,
            session: Mutex::new(None),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            has_given: AtomicBool::new(true),
            datagrams: UdpSocket::bind("127.0.0.1:0").unwrap(),
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (shared, stream) = (Arc::clone(&serving), stream.unwrap());
                if shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                // Whatever goes wrong here, the client says so or does not.
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Self { address, shared }
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Keeps a connection open and says nothing on it.
fn stay_silent(mut stream: &TcpStream) {
    stream.set_read_timeout(None).unwrap();
    let mut room = [0; 4096];
    while stream.read(&mut room).is_ok_and(|bytes| bytes > 0) {}
}

impl Shared {
    fn serve(self: &Arc<Self>, stream: TcpStream) -> Option<()> {
        if self.lie == Lie::SilentAtFirst {
            stay_silent(&stream);
            return None;
        }
        let test = || self.session.lock().unwrap().clone().map(|session| (session, 1));
        match greet(&stream, &token().key(), test, soon()).ok()? {
            (Role::Control, session) => {
                *self.session.lock().unwrap() = session;
                self.control(ServerControl::accepted(stream, soon()).ok()?)
            }
            (Role::Data(flow), _) if flow.carries == Carries::Exchanges => self.exchanges(stream),
            (Role::Data(flow), _) if flow.carries == Carries::Down => self.give(stream),
            (Role::Data(_), _) => self.flow(stream),
            (Role::Part | Role::Load, _) => None,
        }
    }

    fn control(self: &Arc<Self>, mut control: ServerControl) -> Option<()> {
        let (mut opened, mut begun, mut told) = (Instant::now(), false, 0_u32);
        loop {
            let until = Instant::now() + Duration::from_millis(50);
            match control.receive(until).ok()? {
                Some(FromClient::Open(_)) => {
                    opened = Instant::now();
                    self.open(&mut control)?;
                }
                Some(FromClient::Begin) => begun = true,
                Some(FromClient::End) => {
                    if self.lie == Lie::SilentAtTheEnd {
                        stay_silent(control.stream());
                        return None;
                    }
                    self.is_over.store(true, Ordering::Relaxed);
                    while !self.has_given.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    let seen = self.seen(opened, told);
                    control.send(&FromServer::Ended(Box::new(Ended { why: None, seen }))).ok()?;
                    begun = false;
                }
                Some(_) => {}
                None if begun => {
                    told += 1;
                    self.tell(&control, self.seen(opened, told), told)?;
                }
                None => {}
            }
        }
    }

    fn open(self: &Arc<Self>, control: &mut ServerControl) -> Option<()> {
        let preparing = |done_bytes| FromServer::Preparing { done_bytes, of_bytes: 100 };
        match self.lie {
            Lie::SilentWhenAsked => stay_silent(control.stream()),
            Lie::PreparesMore => control.send(&preparing(101)).ok()?,
            Lie::PreparesForever => loop {
                control.send(&preparing(5)).ok()?;
            },
            _ => {}
        }
        control.send(&self.opened()).ok()?;
        if self.lie != Lie::OpensWithoutDatagrams {
            let shared = Arc::clone(self);
            std::thread::spawn(move || shared.datagrams());
        }
        Some(())
    }

    fn opened(&self) -> FromServer {
        let door = UdpPort { port: self.datagrams.local_addr().unwrap().port(), nonce: NONCE };
        let write_bytes = (self.lie != Lie::OpensWithoutFiles).then_some(1 << 20);
        FromServer::Opened(Box::new(Opened {
            test: 1,
            datagrams: (self.lie != Lie::OpensWithoutDatagrams).then_some(door),
            host: Environment::default(),
            limits: Limits { bytes_per_s: None, duration_ms: 60_000, write_bytes },
        }))
    }

    /// What it saw, as it is but for its lie.
    fn seen(&self, opened: Instant, reported: u32) -> Seen {
        let elapsed_ns = opened.elapsed().as_nanos() as u64;
        let count = |counter: &AtomicU64| Some(counter.load(Ordering::Relaxed));
        let mut end = NetworkEnd {
            side: NetworkSide::Server,
            elapsed_ns,
            sent_bytes: count(&self.sent),
            received_bytes: count(&self.received),
            ..NetworkEnd::default()
        };
        let mut seen = Seen { at_ns: elapsed_ns, ..Seen::default() };
        match self.lie {
            Lie::MoreReceived => end.received_bytes = Some(1 << 40),
            Lie::FewerReceived => end.received_bytes = end.received_bytes.map(|bytes| bytes - bytes / 2),
            Lie::MoreTime => end.elapsed_ns += 3_600_000_000_000,
            Lie::MoreProcessorTime => {
                let busy_ns = 3_600_000_000_000;
                end.processors = vec![ProcessorTime { busy_ns, ..ProcessorTime::default() }];
            }
            Lie::LessTime => end.elapsed_ns /= 100,
            Lie::Backwards if reported.is_multiple_of(2) => end.elapsed_ns /= 4,
            Lie::MoreDatagrams => seen.datagrams = 1 << 40,
            Lie::NamesThatTerminalsObey => {
                end.node = "\x1b[2Jnode".to_owned();
                end.counters.insert("\x1b[2Jcounter".to_owned(), 7);
                let interface = Some("\x1b[2Jinterface".to_owned());
                end.facts = Some(NetworkFacts { interface, ..NetworkFacts::default() });
                seen.trouble = Some("\x1b[2Jtrouble".to_owned());
            }
            _ => {}
        }
        Seen { end, ..seen }
    }

    fn tell(&self, control: &ServerControl, seen: Seen, reported: u32) -> Option<()> {
        let frame = |text: &[u8]| [&(text.len() as u32).to_le_bytes()[..], text].concat();
        let mut raw = control.stream();
        match self.lie {
            Lie::Again if reported > 2 => control.send(&self.opened()).ok()?,
            Lie::TooLong => raw.write_all(&(MAX_FRAME_BYTES as u32 + 1).to_le_bytes()).ok()?,
            Lie::NoMessage => raw.write_all(&frame(b"{\"\x1b[2J\":1}")).ok()?,
            Lie::EndsEarly if reported > 2 => {
                let why = Some("it is \x1b[2Jtired".to_owned());
                control.send(&FromServer::Ended(Box::new(Ended { why, seen: seen.clone() }))).ok()?;
            }
            Lie::Flood => loop {
                control.send(&FromServer::Seen(Box::new(seen.clone()))).ok()?;
            },
            _ => {}
        }
        control.send(&FromServer::Seen(Box::new(seen))).ok()
    }

    fn exchanges(&self, mut stream: TcpStream) -> Option<()> {
        for number in 0.. {
            let mut head = [0; REQUEST_HEAD_BYTES];
            stream.read_exact(&mut head).ok()?;
            let request = RequestHead::read(&head, u32::MAX, u32::MAX).ok()?;
            let mut body = vec![0; request.request_bytes as usize - head.len()];
            stream.read_exact(&mut body).ok()?;
            self.received.fetch_add(request.request_bytes.into(), Ordering::Relaxed);
            let lie = if number < HONEST { Lie::None } else { self.lie };
            let bytes = answer(&request, lie);
            let times = if lie == Lie::Twice { 2 } else { 1 };
            match lie {
                Lie::ClosesInTheMiddle => return None,
                Lie::SilentInTheMiddle => break,
                Lie::HalfAnAnswer => {
                    stream.write_all(&bytes[..bytes.len() / 2]).ok()?;
                    break;
                }
                _ => stream.write_all(&bytes.repeat(times)).ok()?,
            }
            self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        stay_silent(&stream);
        Some(())
    }

    fn give(&self, mut stream: TcpStream) -> Option<()> {
        self.has_given.store(false, Ordering::Relaxed);
        let piece = vec![1; 1 << 16];
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let counted = if self.lie == Lie::HalfIsKeptOnTheWay { 2 } else { 1 };
        while !self.stop.load(Ordering::Relaxed) && !self.is_over.load(Ordering::Relaxed) {
            match stream.write(&piece) {
                Ok(bytes) => drop(self.sent.fetch_add(counted * bytes as u64, Ordering::Relaxed)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        let _ = stream.shutdown(std::net::Shutdown::Write);
        self.has_given.store(true, Ordering::Relaxed);
        Some(())
    }

    fn flow(&self, mut stream: TcpStream) -> Option<()> {
        let mut room = vec![0; 1 << 20];
        while !self.stop.load(Ordering::Relaxed) {
            if self.lie == Lie::ReadsNothing {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            let bytes = stream.read(&mut room).ok().filter(|bytes| *bytes > 0)?;
            self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        Some(())
    }

    fn datagrams(&self) {
        let socket = &self.datagrams;
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut room = vec![0; 65_536];
        while let Ok((bytes, from)) = socket.recv_from(&mut room) {
            let came = &room[..bytes];
            if bytes == INTRODUCTION_BYTES && Introduction::read(came).is_some() {
                let _ = socket.send_to(came, from);
                continue;
            }
            let head = came.first_chunk::<REQUEST_HEAD_BYTES>();
            let Some(request) = head.and_then(|head| RequestHead::read(head, 65_507, 65_507).ok()) else { continue };
            self.received.fetch_add(bytes as u64, Ordering::Relaxed);
            let _ = socket.send_to(&answer(&request, self.lie), from);
            if self.lie == Lie::FloodOfDatagrams {
                (0..5_000).for_each(|_| drop(socket.send_to(&[9; 40], from)));
            }
        }
    }
}

/// The answer to a request, as it should be but for the lie.
fn answer(request: &RequestHead, lie: Lie) -> Vec<u8> {
    let mut answer = Answer {
        answer_bytes: request.answer_bytes,
        status: Status::Done,
        sequence: request.sequence,
        server_ns: 10,
        durable_ns: if request.is_durable { 5 } else { 0 },
    };
    match lie {
        Lie::OtherNumber => answer.sequence += 1,
        Lie::OtherLength => answer.answer_bytes += 1,
        Lie::LaterThanItCame => answer.server_ns = 3_600_000_000_000,
        Lie::WroteUnasked => answer.durable_ns = 3,
        Lie::WroteNothing => answer.durable_ns = 0,
        _ => {}
    }
    let mut bytes = answer.bytes().to_vec();
    bytes.resize(answer.answer_bytes as usize, 1);
    bytes
}
