//! One connection: logging on, then calls until it ends.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::calls::Cursors;
use super::faults::{Ended, Fault, Stage};
use super::log::{SessionLog, State};
use super::reply::Error;
use super::wire::{self, Interrupted, Link, MARKER, MARKER_BREAK, MARKER_RESET, Packet, Reader, Short};
use super::{Generation, Shared};

/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(3600);

/// What the responder keeps of a session when its thread has ended.
pub struct Record {
    stream: Arc<TcpStream>,
    pub log: Mutex<SessionLog>,
}

impl Record {
    pub fn new(stream: TcpStream, session: u32) -> Record {
        let log = SessionLog { session, ..SessionLog::default() };
        Record { stream: Arc::new(stream), log: Mutex::new(log) }
    }

    pub fn cut(&self) {
        // It may be cut already.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    pub fn end(&self) {
        self.cut();
        let mut log = self.log.lock().unwrap();
        if log.state != State::LoggedOff {
            log.state = State::Gone;
        }
    }
}

/// A session while its thread runs.
pub struct Session<'a> {
    pub shared: Arc<Shared>,
    pub record: &'a Record,
    pub link: Link,
    pub fault: Option<Fault>,
    pub cursors: Cursors,
    pub is_in_transaction: bool,
}

impl<'a> Session<'a> {
    pub fn new(shared: Arc<Shared>, record: &'a Record) -> Session<'a> {
        let link = Link::new(Arc::clone(&record.stream), shared.options.packet_bytes, shared.options.write_bytes);
        let cursors = Cursors::new(shared.options.max_cursors);
        Session { shared, record, link, fault: None, cursors, is_in_transaction: false }
    }

    pub fn run(&mut self) -> Result<(), Ended> {
        self.log_on()?;
        loop {
            self.call()?;
        }
    }

    pub fn log(&self, change: impl FnOnce(&mut SessionLog)) {
        change(&mut self.record.log.lock().unwrap());
    }

    /// The session's number: its id for the client, too.
    pub fn number(&self) -> u32 {
        self.record.log.lock().unwrap().session
    }

    /// The version of the fields in messages, which is what the two generations differ by.
    pub fn field_version(&self) -> u8 {
        if self.shared.options.generation == Generation::V23 { 24 } else { 13 }
    }

    /// Does what the fault wants at this stage.
    pub fn reach(&mut self, stage: Stage) -> Result<(), Ended> {
        match self.fault {
            Some(Fault::Delay(at, wait)) if at == stage => {
                std::thread::sleep(wait);
                Ok(())
            }
            Some(Fault::Silence(at)) if at == stage => loop {
                // What comes is read and stays without an answer, until the connection ends.
                self.link.packet()?;
            },
            Some(Fault::Close(at)) if at == stage => Err(Ended::ByFault),
            _ => Ok(()),
        }
    }

    /// Reads a request. Who interrupts instead gets the answer to that, and the request is waited for again.
    pub fn request<T>(&mut self, parse: impl Fn(&mut Reader<'_>, &Cursors) -> Result<T, Short>) -> Result<T, Ended> {
        loop {
            let cursors = &self.cursors;
            match self.link.request(|reader| parse(reader, cursors)) {
                Ok(parsed) => return Ok(parsed),
                Err(Interrupted::Marker(packet)) => self.break_off(packet)?,
                Err(Interrupted::Ended(ended)) => return Err(ended),
            }
        }
    }

    /// Waits before an answer. False when the client has broken off and got the answer to that.
    pub fn waits(&mut self, wait: Duration) -> Result<bool, Ended> {
        match self.link.packet_within(wait)? {
            None => Ok(true),
            Some(packet) => self.break_off(packet).map(|()| false),
        }
    }

    pub fn waits_forever(&mut self) -> Result<bool, Ended> {
        self.waits(FOREVER)
    }

    /// The client breaks off a call: an interrupt, then a reset. It is answered by a reset and the call's end.
    fn break_off(&mut self, interrupt: Packet) -> Result<(), Ended> {
        self.await_reset(interrupt)?;
        self.link.send(MARKER, &[1, 0, MARKER_RESET])?;
        let canceled = Error::new(1013, "user requested cancel of current operation");
        let answer = self.error(0, 0, Some(&canceled));
        self.link.send_data(answer)
    }

    /// Announces an error by a marker, and waits until the client is ready for it.
    pub fn announce_break(&mut self) -> Result<(), Ended> {
        self.link.send(MARKER, &[1, 0, MARKER_BREAK])?;
        let packet = self.link.packet()?;
        self.await_reset(packet)?;
        self.link.send(MARKER, &[1, 0, MARKER_RESET])
    }

    fn await_reset(&mut self, mut packet: Packet) -> Result<(), Ended> {
        loop {
            match (packet.kind, packet.body.get(2)) {
                (wire::MARKER, Some(kind)) => {
                    self.log(|log| log.markers.push(*kind));
                    if *kind == MARKER_RESET {
                        return Ok(());
                    }
                }
                _ => return Err(Ended::Nonsense("no marker where a reset was due")),
            }
            packet = self.link.packet()?;
        }
    }
}
