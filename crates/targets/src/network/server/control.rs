//! A client that has shown the token: what it asks for, and the tests that it has.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::test::{MAX_HELD_BYTES, Test};
use super::{Event, Files, MAX_CONTROLS, Shared, Taken, datagrams};
use crate::network::wire::{
    Ended, FromClient, FromServer, MAX_BODY_BYTES, Open, Opened, Refused, Seen, ServerControl, Session, UdpPort,
    WireError, short,
};
use measure::os::EndWatch;
use measure::{environment, monotonic_ns};
use model::record::{Environment, NetworkEnd, NetworkSide};
use model::units::Bytes;

/// A client that says nothing for so long is gone, while it has a test and while it has none.
const SILENT_FOR: Duration = Duration::from_secs(10);
const WAITS_FOR: Duration = Duration::from_secs(60);
/// How long a client may take to make its connections.
const BEGINS_IN: Duration = Duration::from_secs(120);
/// How often what was seen is sent to it.
const REPORTS_EVERY: Duration = Duration::from_millis(100);
/// How long it may take to say its version.
const SAYS_VERSION_IN: Duration = Duration::from_secs(5);
/// How often a client hears how far files are filled.
const PREPARES_EVERY: Duration = Duration::from_secs(1);

/// Serves one control connection until its client leaves.
///
/// # Errors
/// When the client never was one. What happens in tests is reported as events.
pub(super) fn attend(shared: &Shared<'_>, stream: TcpStream, session: Session) -> Result<(), WireError> {
    let slot = ControlSlot::new(shared)?;
    let address = |error| WireError::Io { action: "ask where a connection comes from", source: error };
    let (from, local) = (stream.peer_addr().map_err(address)?, stream.local_addr().map_err(address)?);
    let mut control = ServerControl::accepted(stream, Instant::now() + SAYS_VERSION_IN)?;
    let mut heard = Instant::now();
    while !shared.is_ending() && heard.elapsed() < WAITS_FOR {
        match control.receive(Instant::now() + REPORTS_EVERY) {
            Ok(Some(FromClient::Open(open))) => {
                let asked = TestRequest { shared, from, local, session: &session };
                if !asked.serve(&mut control, open) {
                    break;
                }
            }
            // What was said of a test that had just ended by itself.
            Ok(Some(_)) => {}
            Ok(None) => continue,
            Err(_) => break,
        }
        heard = Instant::now();
    }
    control.close();
    drop(slot);
    Ok(())
}

/// One of few control connections.
struct ControlSlot<'h, 's>(&'h Shared<'s>);

impl<'h, 's> ControlSlot<'h, 's> {
    fn new(shared: &'h Shared<'s>) -> Result<Self, WireError> {
        let slot = Self(shared);
        if shared.controls.fetch_add(1, Ordering::Relaxed) >= MAX_CONTROLS {
            return Err(WireError::Malformed {
                what: "a control connection",
                why: format!("there are {MAX_CONTROLS} already"),
            });
        }
        Ok(slot)
    }
}

impl Drop for ControlSlot<'_, '_> {
    fn drop(&mut self) {
        self.0.controls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a test is not opened, or a client left before it was.
enum NotOpened {
    Refused(Refused),
    Left,
}

impl From<io::Error> for NotOpened {
    fn from(error: io::Error) -> Self {
        refused(format!("the server cannot write to its directory: {error}"), None)
    }
}

fn refused(why: String, hint: Option<&str>) -> NotOpened {
    NotOpened::Refused(Refused { why, hint: hint.map(str::to_owned) })
}

/// A client that asks for a test.
struct TestRequest<'a, 's> {
    shared: &'a Shared<'s>,
    from: SocketAddr,
    local: SocketAddr,
    session: &'a Session,
}

impl TestRequest<'_, '_> {
    /// Opens the test, if it can be, and serves it to its end. Says whether the client is still there.
    fn serve(&self, control: &mut ServerControl, open: Open) -> bool {
        let made = self.make(control, open);
        let refused = match made {
            Ok((taken, test, host)) => return self.attend(control, taken, &test, host),
            Err(NotOpened::Left) => return false,
            Err(NotOpened::Refused(refused)) => refused,
        };
        self.shared.report(&Event::Refused { from: self.from, why: refused.why.clone() });
        control.send(&FromServer::Refused(refused)).is_ok()
    }

    fn make<'h>(
        &'h self,
        control: &mut ServerControl,
        open: Open,
    ) -> Result<(Taken<'h, 'h>, Arc<Test>, Environment), NotOpened>
    where
        Self: 'h,
    {
        let options = self.shared.options;
        self.check(&open)?;
        let hint = "one test is served at a time: wait until it has ended";
        let taken = self.shared.take_place(self.from).map_err(|why| refused(why, Some(hint)))?;
        let files = match &options.write {
            Some(write) if open.is_durable => {
                Some(self.fill(control, &write.directory, open.connections, write.max_bytes)?)
            }
            _ => None,
        };
        let number = self.shared.next_test();
        let host = environment::capture(None);
        let watch = watch(self.local, &host);
        let test = Test::new(number, self.from, self.session.clone(), open, files, options.max_bytes_per_s, watch);
        Ok((taken, Arc::new(test), host))
    }

    /// Whether the server allows it.
    fn check(&self, open: &Open) -> Result<(), NotOpened> {
        let options = self.shared.options;
        if open.connections == 0 || open.connections > options.max_connections {
            let (asked, most) = (open.connections, options.max_connections);
            return Err(refused(
                format!("it asks for {asked} connections, and this server takes 1 to {most}"),
                Some("`plimsoll net serve --max-connections N` takes more"),
            ));
        }
        let longest = open.max_request_bytes.max(open.max_answer_bytes);
        if longest > MAX_BODY_BYTES {
            return Err(refused(format!("messages of {longest} bytes are longer than {MAX_BODY_BYTES}"), None));
        }
        if open.is_durable {
            let Some(write) = &options.write else {
                return Err(refused(
                    "this server writes nothing".to_owned(),
                    Some("start it with `--write DIR`, a directory on the disk for redo"),
                ));
            };
            let request = u64::from(open.max_request_bytes);
            let held = request * u64::from(open.connections);
            if held > MAX_HELD_BYTES {
                let held = Bytes(held);
                return Err(refused(format!("requests that are written would take {held} of memory"), None));
            }
            if request > Files::max_write(open.connections, write.max_bytes) {
                let most = Bytes(write.max_bytes);
                return Err(refused(
                    format!("its requests of {} do not fit into files of {most} together", Bytes(request)),
                    Some("`plimsoll net serve --write-max SIZE` allows more"),
                ));
            }
        }
        let longest = u64::try_from(options.max_duration.as_millis()).unwrap_or(u64::MAX);
        if open.duration_ms.is_some_and(|asked| asked > longest) {
            return Err(refused(
                format!("it is to last longer than {} s", options.max_duration.as_secs()),
                Some("`plimsoll net serve --max-duration TIME` allows longer tests"),
            ));
        }
        Ok(())
    }

    /// Makes the files, and reports to the client how far it is.
    fn fill(
        &self,
        control: &mut ServerControl,
        directory: &Path,
        connections: u32,
        max_bytes: u64,
    ) -> Result<Files, NotOpened> {
        let mut last_report = Instant::now();
        Files::make(directory, connections, max_bytes, |done_bytes| {
            if self.shared.is_ending() {
                return Err(NotOpened::Left);
            }
            if last_report.elapsed() < PREPARES_EVERY {
                return Ok(());
            }
            last_report = Instant::now();
            let sent = control.send(&FromServer::Preparing { done_bytes, of_bytes: max_bytes });
            sent.map_err(|_| NotOpened::Left)
        })
    }

    /// The test, from its first connection to its end. Says whether the client is still there.
    fn attend(&self, control: &mut ServerControl, taken: Taken<'_, '_>, test: &Arc<Test>, host: Environment) -> bool {
        let shared = self.shared;
        let what = short(&test.open.what);
        let opened = match self.datagrams(test) {
            Ok(opened) => opened,
            Err(error) => {
                let why = format!("the server has no socket for datagrams: {error}");
                shared.report(&Event::Refused { from: self.from, why: why.clone() });
                return control.send(&FromServer::Refused(Refused { why, hint: None })).is_ok();
            }
        };
        let (door, datagrams) = opened;
        taken.open(test);
        shared.report(&Event::Opened { from: self.from, test: test.number, what });
        let opened = Opened { test: test.number, datagrams: door, host, limits: shared.options.limits() };
        let mut why = control.send(&FromServer::Opened(Box::new(opened))).err().map(|error| error.to_string());
        let (mut begun, mut heard, mut next) = (None, Instant::now(), Instant::now());
        let mut is_there = why.is_none();
        while why.is_none() {
            let now = Instant::now();
            next = next.max(now);
            let until = if begun.is_some() { next } else { now + REPORTS_EVERY };
            match control.receive(until) {
                Ok(Some(message)) => {
                    heard = Instant::now();
                    match message {
                        FromClient::Begin => {
                            begun = Some(*begun.get_or_insert(heard));
                            next = heard + REPORTS_EVERY;
                        }
                        FromClient::Snapshot(number) => {
                            if send_seen(control, seen(test, begun, Some(number))).is_err() {
                                (why, is_there) = (Some("its client has gone".to_owned()), false);
                            }
                        }
                        FromClient::Alive => {}
                        FromClient::End => break,
                        FromClient::Open(_) | FromClient::Version(_) => {
                            (why, is_there) = (Some("its client does not keep to the protocol".to_owned()), false);
                        }
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    let gone = if error.is_closed() { "its client has gone".to_owned() } else { error.to_string() };
                    (why, is_there) = (Some(gone), false);
                }
            }
            if let Some(begun) = begun.filter(|_| Instant::now() >= next) {
                next += REPORTS_EVERY;
                if send_seen(control, seen(test, Some(begun), None)).is_err() {
                    (why, is_there) = (Some("its client has gone".to_owned()), false);
                }
            }
            let most = shared.options.max_duration;
            let over = begun.map(|begun: Instant| begun.elapsed());
            why = why.or_else(|| {
                if shared.is_ending() {
                    Some("the server was ended".to_owned())
                } else if heard.elapsed() > SILENT_FOR {
                    Some(format!("its client said nothing for {} s", SILENT_FOR.as_secs()))
                } else if over.is_some_and(|over| over > most) {
                    Some(format!("it went on for longer than {} s, the server's --max-duration", most.as_secs()))
                } else if over.is_none() && test.since.elapsed() > BEGINS_IN {
                    Some(format!("it was not begun within {} s", BEGINS_IN.as_secs()))
                } else {
                    None
                }
            });
        }
        // A last look while connections are open, then what still came.
        test.watch().look();
        test.end(why.is_some());
        let seen = seen(test, begun, None);
        drop(datagrams);
        // Whoever hears that it has ended may have the next one.
        drop(taken);
        let (sent_bytes, received_bytes) = test.bytes();
        shared.report(&Event::Ended {
            from: self.from,
            test: test.number,
            why: why.clone(),
            elapsed_ns: u64::try_from(test.since.elapsed().as_nanos()).unwrap_or(u64::MAX),
            received_bytes,
            sent_bytes,
            requests: seen.requests,
        });
        let ended = Ended { why, seen: light(seen) };
        if shared.options.once {
            shared.is_done();
        }
        control.send(&FromServer::Ended(Box::new(ended))).is_ok() && is_there
    }

    /// The thread that answers datagrams, where there are to be any. It ends with the test.
    fn datagrams(&self, test: &Arc<Test>) -> io::Result<(Option<UdpPort>, Option<Joined>)> {
        if !test.open.has_datagrams {
            return Ok((None, None));
        }
        let socket = datagrams::open(self.local)?;
        let nonce = crate::network::wire::fresh_nonce().map_err(io::Error::other)?;
        let door = UdpPort { port: socket.local_addr()?.port(), nonce };
        let test = Arc::clone(test);
        let thread = std::thread::Builder::new().name("serve datagrams".to_owned());
        let thread = thread.spawn(move || datagrams::attend(&test, &socket, &nonce))?;
        Ok((Some(door), Some(Joined(Some(thread)))))
    }
}

/// A thread that is waited for.
struct Joined(Option<std::thread::JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        let _ = self.0.take().map(std::thread::JoinHandle::join);
    }
}

/// Watches what this end sees of itself.
fn watch(local: SocketAddr, host: &Environment) -> EndWatch {
    let node = host.hostname.clone().unwrap_or_else(|| local.ip().to_string());
    EndWatch::begin(NetworkSide::Server, node, Some(local.ip()), "serve", monotonic_ns())
}

fn seen(test: &Test, begun: Option<Instant>, snapshot: Option<u64>) -> Seen {
    let mut watch = test.watch();
    let (sent, received) = test.bytes();
    let end = watch.read(monotonic_ns(), Some(sent), Some(received));
    Seen { snapshot, end, ..test.seen(begun) }
}

/// Sends the client what was seen.
fn send_seen(control: &ServerControl, seen: Seen) -> Result<(), WireError> {
    match control.send(&FromServer::Seen(Box::new(seen.clone()))) {
        Err(WireError::TooLong { .. }) => control.send(&FromServer::Seen(Box::new(light(seen)))),
        sent => sent,
    }
}

/// The same without what a host of very many processors has much of.
fn light(seen: Seen) -> Seen {
    const FEW_PROCESSORS: usize = 64;
    if seen.end.processors.len() <= FEW_PROCESSORS {
        return seen;
    }
    let facts = seen.end.facts.clone();
    Seen { end: NetworkEnd { facts, ..seen.end.of_interval() }, ..seen }
}
