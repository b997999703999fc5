//! A server in this process, and a client of a few lines that can be made to misbehave.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll::targets::network::server::{Event, Server, ServerOptions};
use plimsoll::targets::network::wire::{
    ANSWER_HEAD_BYTES, Answer, Carries, ClientControl, Flow, FromClient, FromServer, Open, Opened, RequestHead, Seen,
    Session, Token, WireError, prove_data,
};

pub const TOKEN: &str = "a token for tests";

/// Nobody waits longer, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn soon() -> Instant {
    Instant::now() + PATIENCE
}

pub fn token() -> Token {
    Token::new(TOKEN).unwrap()
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = soon();
    while !is_so() {
        assert!(Instant::now() < deadline, "waited for this in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A server that serves until this is dropped.
pub struct Serving {
    pub address: SocketAddr,
    pub events: Arc<Mutex<Vec<Event>>>,
    stop: Arc<AtomicBool>,
    ended: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    pub fn start() -> Self {
        Self::with(|_| ())
    }

    pub fn with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let mut options = ServerOptions::own(token());
        change(&mut options);
        let server = Server::bind(options).unwrap();
        let (address, events, stop) = (server.address(), Arc::<Mutex<Vec<Event>>>::default(), Arc::default());
        let (reported, stopped) = (Arc::clone(&events), Arc::<AtomicBool>::clone(&stop));
        let (end, ended) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            server.serve(&stopped, &|event| reported.lock().unwrap().push(event.clone())).unwrap();
            let _ = end.send(());
        });
        Self { address, events, stop, ended, thread: Some(thread) }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub fn client(&self) -> Client {
        let proved = ClientControl::prove(self.connect(), &token().key(), soon());
        let (control, session) = proved.unwrap_or_else(|error| panic!("{error}"));
        Client { control, session, address: self.address, test: 0 }
    }

    /// What was told so far, as lines.
    pub fn reported(&self) -> String {
        self.events.lock().unwrap().iter().map(|event| format!("{event}\n")).collect()
    }

    /// Waits until it has ended by itself.
    pub fn ends(&self) {
        self.ended.recv_timeout(PATIENCE).expect("the server ends by itself");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

/// A client that has shown the token.
pub struct Client {
    pub control: ClientControl,
    pub session: Session,
    pub address: SocketAddr,
    pub test: u64,
}

/// A test of exchanges.
pub fn exchanges(connections: u32) -> Open {
    Open {
        what: "a test".to_owned(),
        connections,
        max_request_bytes: 1 << 20,
        max_answer_bytes: 1 << 20,
        ..Open::default()
    }
}

impl Client {
    pub fn ask(&mut self, open: Open) -> Result<Opened, String> {
        self.control.send(&FromClient::Open(open)).unwrap();
        loop {
            match self.control.expect(soon()).unwrap() {
                FromServer::Opened(opened) => {
                    self.test = opened.test;
                    return Ok(*opened);
                }
                FromServer::Refused(refused) => {
                    return Err(format!("{} ({})", refused.why, refused.hint.unwrap_or_default()));
                }
                FromServer::Preparing { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// On a slow machine work takes its time, and who says nothing for ten seconds is taken for gone.
    pub fn is_here(&self) {
        let _ = self.control.send(&FromClient::Alive);
    }

    pub fn flow(&self, number: u32, carries: Carries) -> Result<TcpStream, WireError> {
        self.is_here();
        let stream = TcpStream::connect(self.address).unwrap();
        prove_data(&stream, &self.session, self.test, Flow { number, carries }, soon())?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Ok(stream)
    }

    pub fn begin(&self) {
        self.control.send(&FromClient::Begin).unwrap();
    }

    /// Asks for what the server saw until now, passing over what it says by itself.
    pub fn snapshot(&mut self, number: u64) -> Seen {
        self.control.send(&FromClient::Snapshot(number)).unwrap();
        loop {
            match self.control.expect(soon()).unwrap() {
                FromServer::Seen(seen) if seen.snapshot == Some(number) => return *seen,
                FromServer::Seen(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Waits until so many connections belong to the test: a client hears that one is accepted just before it does, and what the
    /// kernel counts of it is counted from then on.
    pub fn are_served(&mut self, connections: u32) {
        until("connections are served", || self.snapshot(u64::MAX).connections == connections);
    }

    /// Waits for the end of a test: why it ended, and what was seen.
    pub fn ended(&mut self) -> (Option<String>, Seen) {
        loop {
            match self.control.expect(soon()).unwrap() {
                FromServer::Ended(ended) => return (ended.why, ended.seen),
                FromServer::Seen(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn end(&mut self) -> Seen {
        self.control.send(&FromClient::End).unwrap();
        let (why, seen) = self.ended();
        assert_eq!(why, None);
        seen
    }
}

/// A request and its answer.
pub fn exchange(stream: &mut TcpStream, request: RequestHead) -> Answer {
    send(stream, request);
    receive(stream)
}

pub fn send(stream: &mut TcpStream, request: RequestHead) {
    let mut bytes = request.bytes().to_vec();
    bytes.resize(request.request_bytes as usize, 1);
    stream.write_all(&bytes).unwrap();
}

pub fn receive(stream: &mut TcpStream) -> Answer {
    let mut head = [0; ANSWER_HEAD_BYTES];
    stream.read_exact(&mut head).unwrap();
    let answer = Answer::read(&head, u32::MAX).unwrap();
    let mut body = vec![0; answer.answer_bytes as usize - ANSWER_HEAD_BYTES];
    stream.read_exact(&mut body).unwrap();
    answer
}

/// A request without options.
pub fn asking(request_bytes: u32, answer_bytes: u32, sequence: u64) -> RequestHead {
    RequestHead { request_bytes, answer_bytes, sequence, is_durable: false, is_whole: false }
}

/// Whether the other end has closed, whatever came before.
pub fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = [0; 4096];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
