//! Lanes over TCP: a lane keeps its sessions' connections, one in blocking calls, several with epoll.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

use super::exchange::{Answered, Exchanges};
use super::{LaneContext, Ready, TICK_NS, Watch, done, record_waits};
use crate::network::wire::Status;
use crate::{Finished, Lane, OperationResult, TargetError};
use measure::LaneRecorder;
use model::workload::net::{NetKind, NetOperation};

/// Bytes that are taken from a socket at once.
const BUFFER_BYTES: usize = 256 << 10;

/// A connection that a lane has.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) stream: Arc<TcpStream>,
    /// Number in the test, from 0.
    pub(super) number: u32,
    carries: Carries,
    /// When something last went or came, or began to be waited for.
    progress_ns: u64,
    /// Whether it is waited for until something can be sent.
    is_held_back: bool,
}

#[derive(Debug)]
enum Carries {
    Exchanges(Exchanges),
    /// A flow, and the chunk under way: its session and what is left of it.
    Up(Option<(u32, usize)>),
    Down(Option<(u32, usize)>),
}

impl Line {
    pub(super) fn new(stream: Arc<TcpStream>, number: u32, kind: NetKind) -> Self {
        let carries = match kind {
            NetKind::Send => Carries::Up(None),
            NetKind::Receive => Carries::Down(None),
            NetKind::Redo | NetKind::Block | NetKind::Rows | NetKind::Ping => Carries::Exchanges(Exchanges::default()),
        };
        Self { stream, number, carries, progress_ns: 0, is_held_back: false }
    }

    fn receives(&self) -> bool {
        !matches!(self.carries, Carries::Up(_))
    }

    fn is_at_work(&self) -> bool {
        match &self.carries {
            Carries::Exchanges(exchanges) => exchanges.is_waiting(),
            Carries::Up(chunk) | Carries::Down(chunk) => chunk.is_some(),
        }
    }

    /// Whether it waits until something can be sent, and not until something comes.
    fn waits_to_send(&self) -> bool {
        match &self.carries {
            Carries::Exchanges(exchanges) => exchanges.has_to_send(),
            Carries::Up(_) => true,
            Carries::Down(_) => false,
        }
    }

    /// What has not happened for too long when it is silent.
    fn awaited(&self) -> &'static str {
        if self.waits_to_send() { "could be sent" } else { "came" }
    }
}

/// How calls on its connections are made.
#[derive(Debug)]
struct Calls {
    place: LaneContext,
    /// Whether they may wait: of an only connection with an only session.
    may_wait: bool,
}

pub(super) struct NetLane {
    calls: Calls,
    lines: Vec<Line>,
    /// Of each session its line.
    line_of: Vec<u32>,
    watch: Option<Watch>,
    /// Lines that have a chunk to go on with.
    eager: Vec<u32>,
    ready: Vec<Ready>,
    buffer: Vec<u8>,
    looked_ns: u64,
    /// A connection has failed.
    has_failed: bool,
}

impl NetLane {
    /// A lane of these connections; `line_of` says which of them each session has.
    pub(super) fn new(place: LaneContext, lines: Vec<Line>, line_of: Vec<u32>) -> Result<Self, TargetError> {
        let may_wait = lines.len() == 1 && line_of.len() == 1;
        let calls = Calls { place, may_wait };
        let watch = if may_wait { None } else { Some(Watch::new()?) };
        for (number, line) in (0..).zip(&lines) {
            if let Some(watch) = &watch {
                watch.add(&line.stream, number, line.receives())?;
            }
        }
        Ok(Self {
            calls,
            lines,
            line_of,
            watch,
            eager: Vec::new(),
            ready: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            looked_ns: 0,
            has_failed: false,
        })
    }

    /// Ends with an error if a connection has been silent for too long.
    fn look_for_silence(&mut self) -> Result<(), TargetError> {
        let place = &self.calls.place;
        let now = place.clock.now_ns();
        if now < self.looked_ns + TICK_NS {
            return Ok(());
        }
        self.looked_ns = now;
        let mut at_work = self.lines.iter().filter(|line| line.is_at_work());
        at_work.try_for_each(|line| place.check_silence(line.number, line.awaited(), line.progress_ns, now))
    }

    /// Goes on with one connection as far as it is ready.
    fn go_on(
        &mut self,
        index: u32,
        can_receive: bool,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        let Self { calls, lines, buffer, eager, .. } = self;
        let line = &mut lines[index as usize];
        let Line { stream, number, carries, progress_ns, .. } = line;
        let moved = match carries {
            Carries::Up(chunk @ Some(_)) => calls.send_chunk(stream, chunk, finished),
            Carries::Down(chunk @ Some(_)) => calls.receive_chunk(stream, chunk, buffer, finished),
            Carries::Exchanges(exchanges) => {
                let sent = calls.send_requests(stream, exchanges);
                match sent {
                    Ok(sent)
                        if can_receive && exchanges.is_waiting() && !(calls.may_wait && exchanges.has_to_send()) =>
                    {
                        calls.receive_answers(stream, exchanges, buffer, recorder, finished).map(|came| sent || came)
                    }
                    sent => sent,
                }
            }
            Carries::Up(None) | Carries::Down(None) => Ok(false),
        };
        self.has_failed |= moved.is_err();
        if moved.map_err(|failure| calls.lost(*number, failure))? {
            *progress_ns = calls.place.clock.now_ns();
        }
        let is_held_back = match &line.carries {
            Carries::Up(chunk) => chunk.is_some(),
            Carries::Exchanges(exchanges) => exchanges.has_to_send(),
            Carries::Down(_) => false,
        };
        if let Some(watch) = &self.watch
            && is_held_back != line.is_held_back
        {
            let receives = line.receives();
            watch.sends(&line.stream, index, receives, is_held_back)?;
            line.is_held_back = is_held_back;
        }
        eager.retain(|eager| *eager != index);
        Ok(())
    }
}

/// What ends a connection.
enum Failure {
    Io(&'static str, io::Error),
    Answer(String),
}

impl Calls {
    fn lost(&self, number: u32, failure: Failure) -> TargetError {
        match failure {
            Failure::Io(during, source) => self.place.lost(number, during, source),
            Failure::Answer(what) => self.place.wrong_answer(number, what),
        }
    }

    /// Waits, as long as a connection may be silent, until something comes on it or goes.
    fn goes_on(&self, line: &Line) -> Result<bool, Failure> {
        let (flags, during) = match line.waits_to_send() {
            true => (PollFlags::OUT, "while sending"),
            false => (PollFlags::IN, "while waiting for an answer"),
        };
        loop {
            let left_ns =
                line.progress_ns.saturating_add(self.place.timeout_ns).saturating_sub(self.place.clock.now_ns());
            let patience = Duration::from_nanos(left_ns);
            let patience = Timespec { tv_sec: patience.as_secs() as _, tv_nsec: patience.subsec_nanos().into() };
            match poll(&mut [PollFd::new(&line.stream, flags)], Some(&patience)) {
                Ok(0) => return Ok(false),
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(Failure::Io(during, error.into())),
            }
        }
        let rest = recv(&line.stream, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT).map(|(_, came)| came);
        if rest == Ok(0) { Err(closed(during)) } else { Ok(true) }
    }

    fn send_flags(&self) -> SendFlags {
        if self.may_wait { SendFlags::NOSIGNAL } else { SendFlags::NOSIGNAL | SendFlags::DONTWAIT }
    }

    /// What a call moved; nothing where it would have to wait longer.
    fn moved(result: Result<usize, Errno>, during: &'static str) -> Result<usize, Failure> {
        match result {
            Ok(moved) => Ok(moved),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(Failure::Io(during, error.into())),
        }
    }

    fn send_chunk(
        &self,
        stream: &TcpStream,
        chunk: &mut Option<(u32, usize)>,
        finished: &mut Vec<Finished>,
    ) -> Result<bool, Failure> {
        let Some((session, left)) = *chunk else { return Ok(false) };
        let sent = Self::moved(send(stream, &self.place.filling[..left], self.send_flags()), "while sending")?;
        self.place.traffic.sent(sent);
        self.chunk_moved(chunk, session, left, sent, finished);
        Ok(sent > 0)
    }

    fn receive_chunk(
        &self,
        stream: &TcpStream,
        chunk: &mut Option<(u32, usize)>,
        buffer: &mut [u8],
        finished: &mut Vec<Finished>,
    ) -> Result<bool, Failure> {
        let Some((session, left)) = *chunk else { return Ok(false) };
        // Bytes that nobody looks at are not copied.
        let flags = if self.may_wait { RecvFlags::WAITALL } else { RecvFlags::DONTWAIT } | RecvFlags::TRUNC;
        let wanted = left.min(buffer.len());
        let came = recv(stream, &mut buffer[..wanted], flags).map(|(_, came)| came);
        if came == Ok(0) {
            return Err(closed("while receiving"));
        }
        let came = Self::moved(came, "while receiving")?;
        self.place.traffic.received(came);
        self.chunk_moved(chunk, session, left, came, finished);
        Ok(came > 0)
    }

    fn chunk_moved(
        &self,
        chunk: &mut Option<(u32, usize)>,
        session: u32,
        left: usize,
        moved: usize,
        finished: &mut Vec<Finished>,
    ) {
        let left = left.saturating_sub(moved);
        *chunk = (left > 0).then_some((session, left));
        if left == 0 {
            finished.push(done(session, self.place.clock.now_ns(), OperationResult::Done));
        }
    }

    /// Sends what is to be sent, as far as the socket takes it.
    fn send_requests(&self, stream: &TcpStream, exchanges: &mut Exchanges) -> Result<bool, Failure> {
        let mut has_moved = false;
        while let Some(parts) = exchanges.next_parts(&self.place.filling) {
            let sent = sendmsg(stream, &parts, &mut SendAncillaryBuffer::default(), self.send_flags());
            let sent = Self::moved(sent, "while sending")?;
            if sent == 0 {
                break;
            }
            self.place.traffic.sent(sent);
            exchanges.was_sent(sent);
            has_moved = true;
        }
        Ok(has_moved)
    }

    fn receive_answers(
        &self,
        stream: &TcpStream,
        exchanges: &mut Exchanges,
        buffer: &mut [u8],
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<bool, Failure> {
        let (wanted, flags) = match exchanges.awaited_bytes() {
            Some(bytes) if self.may_wait => (bytes.min(buffer.len()), RecvFlags::WAITALL),
            _ if self.may_wait => (buffer.len(), RecvFlags::empty()),
            _ => (buffer.len(), RecvFlags::DONTWAIT),
        };
        let came = recv(stream, &mut buffer[..wanted], flags).map(|(_, came)| came);
        if came == Ok(0) {
            return Err(closed("while waiting for an answer"));
        }
        let came = Self::moved(came, "while waiting for an answer")?;
        if came == 0 {
            return Ok(false);
        }
        self.place.traffic.received(came);
        let now = self.place.clock.now_ns();
        recorder.advance(now);
        let mut doubt = None;
        let mut answered = |answered: Answered| {
            doubt = doubt.take().or_else(|| answered.doubt(now));
            record_waits(recorder, now.saturating_sub(answered.asked.sent_ns), &answered);
            let result = match answered.answer.status {
                Status::Done => OperationResult::Done,
                Status::NotWritten => OperationResult::Failed,
            };
            finished.push(done(answered.asked.session, now, result));
        };
        let taken = exchanges.came(&buffer[..came], &mut answered);
        taken.map_err(|error| Failure::Answer(error.to_string()))?;
        doubt.map_or(Ok(true), |doubt| Err(Failure::Answer(doubt)))
    }
}

fn closed(during: &'static str) -> Failure {
    Failure::Io(during, io::Error::new(io::ErrorKind::ConnectionAborted, "the other end closed it"))
}

impl Lane<NetOperation> for NetLane {
    fn start(
        &mut self,
        session: u32,
        operation: &NetOperation,
        sent_ns: u64,
        _: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        let index = self.line_of[session as usize];
        let Self { calls, lines, eager, .. } = self;
        let Line { stream, number, carries, progress_ns, is_held_back } = &mut lines[index as usize];
        let NetOperation { request_bytes, answer_bytes, is_durable, .. } = *operation;
        match carries {
            Carries::Exchanges(exchanges) => {
                if !exchanges.is_waiting() {
                    *progress_ns = sent_ns;
                }
                exchanges.ask(session, sent_ns, request_bytes, answer_bytes, is_durable);
                if !*is_held_back {
                    calls.send_requests(stream, exchanges).map_err(|failure| calls.lost(*number, failure))?;
                    if exchanges.has_to_send() {
                        eager.push(index);
                    }
                }
            }
            Carries::Up(chunk) => {
                (*chunk, *progress_ns) = (Some((session, request_bytes as usize)), sent_ns);
                eager.push(index);
            }
            Carries::Down(chunk) => {
                (*chunk, *progress_ns) = (Some((session, answer_bytes as usize)), sent_ns);
                eager.push(index);
            }
        }
        Ok(())
    }

    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        let clock = self.calls.place.clock;
        if self.calls.may_wait {
            if self.lines.iter().any(Line::is_at_work) {
                self.go_on(0, true, recorder, finished)?;
            } else {
                clock.sleep_until(until_ns.min(clock.now_ns() + TICK_NS));
            }
            return self.look_for_silence();
        }
        let had_eager = !self.eager.is_empty();
        for index in std::mem::take(&mut self.eager) {
            self.go_on(index, true, recorder, finished)?;
        }
        let until_ns = if had_eager || !finished.is_empty() { 0 } else { until_ns };
        let mut ready = std::mem::take(&mut self.ready);
        if let Some(watch) = &self.watch {
            watch.wait(clock, until_ns, &mut ready)?;
        }
        for Ready { number, can_receive, .. } in ready.drain(..) {
            self.go_on(number, can_receive, recorder, finished)?;
        }
        self.ready = ready;
        self.look_for_silence()
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        // What is under way ends with its connection, which is closed when the step's test is. A server that had gone silent before is
        // an error still: it would have been one later.
        if self.has_failed {
            return Ok(());
        }
        let calls = &self.calls;
        for line in self.lines.iter().filter(|line| line.is_at_work()) {
            if !calls.goes_on(line).map_err(|failure| calls.lost(line.number, failure))? {
                return Err(calls.place.silent(
                    line.number,
                    line.awaited(),
                    line.progress_ns,
                    calls.place.clock.now_ns(),
                ));
            }
        }
        Ok(())
    }
}
