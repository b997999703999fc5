//! Lanes over UDP: requests and answers as datagrams, of which some are lost, late, doubled or out of order.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::exchange::{Answered, SentRequest};
use super::{LaneContext, NetError, Ready, Watch, done, record_waits};
use crate::network::wire::{ANSWER_HEAD_BYTES, Answer, INTRODUCTION_BYTES, Introduction, RequestHead, Status, UdpPort};
use crate::{Finished, Lane, OperationResult, TargetError};
use measure::LaneRecorder;
use model::workload::net::NetOperation;

/// A block that has not come after so long is lost: a database asks again.
const LOST_NS: u64 = 500_000_000;
/// Lost ones that are remembered, to know those that come late.
const REMEMBERED: usize = 1_024;
/// Datagrams that are taken from a socket at once.
const AT_ONCE: u32 = 256;
/// Datagrams that answer nothing and are no flood, besides one for each that was sent: a network may double them.
const USELESS: u64 = 1_000;
/// Longest datagram, and one byte to see that none is longer.
const BUFFER_BYTES: usize = (64 << 10) + 1;
/// How long the server has to answer an introduction, and how often it is tried.
const INTRODUCED_IN: Duration = Duration::from_millis(300);
const INTRODUCTIONS: u32 = 10;

/// A socket that the server knows.
///
/// # Errors
/// When there is none, or the server does not answer it.
pub(super) fn introduced(server: SocketAddr, door: UdpPort, number: u32) -> io::Result<UdpSocket> {
    let any: SocketAddr = if server.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(SocketAddr::new(server.ip(), door.port))?;
    let introduction = Introduction { nonce: door.nonce, number };
    for _ in 0..INTRODUCTIONS {
        socket.send(&introduction.bytes())?;
        let until = Instant::now() + INTRODUCED_IN;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            socket.set_read_timeout(Some(left))?;
            let mut bytes = [0; INTRODUCTION_BYTES + 1];
            match socket.recv(&mut bytes) {
                Ok(came) if Introduction::read(&bytes[..came]) == Some(introduction) => return Ok(socket),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "no datagram comes back: a firewall may let only TCP through"))
}

/// Exchanges over one socket.
#[derive(Debug)]
pub(super) struct Line {
    socket: Arc<UdpSocket>,
    number: u32,
    next_sequence: u64,
    /// The highest number that was answered, and one more.
    answered_up_to: u64,
    asked: VecDeque<Waiting>,
    lost: VecDeque<u64>,
    answered_ns: u64,
    /// Datagrams that answered nothing.
    useless: u64,
}

#[derive(Debug)]
struct Waiting {
    asked: SentRequest,
    sequence: u64,
}

impl Line {
    pub(super) fn new(socket: Arc<UdpSocket>, number: u32) -> Self {
        Self {
            socket,
            number,
            next_sequence: 0,
            answered_up_to: 0,
            asked: VecDeque::new(),
            lost: VecDeque::new(),
            answered_ns: 0,
            useless: 0,
        }
    }

    /// What an answer with this number is, and what it answers if it comes in time.
    fn sort(&mut self, sequence: u64) -> (Datagrams, Option<SentRequest>) {
        if let Some(place) = self.asked.iter().position(|waiting| waiting.sequence == sequence) {
            let asked = self.asked.remove(place).map(|waiting| waiting.asked);
            let what = if sequence < self.answered_up_to { Datagrams::Reordered } else { Datagrams::Answered };
            self.answered_up_to = self.answered_up_to.max(sequence + 1);
            return (what, asked);
        }
        if let Some(place) = self.lost.iter().position(|lost| *lost == sequence) {
            self.lost.remove(place);
            return (Datagrams::Late, None);
        }
        (if sequence < self.next_sequence { Datagrams::Duplicated } else { Datagrams::Strange }, None)
    }

    /// One came that answers nothing; says what is wrong if they are a flood.
    fn is_useless(&mut self) -> Option<String> {
        self.useless += 1;
        let is_flood = self.useless > USELESS + self.next_sequence;
        is_flood.then(|| format!("it is flooded: {} datagrams came that answer nothing", self.useless))
    }

    fn take_for_lost(&mut self, waiting: &Waiting) {
        if self.lost.len() == REMEMBERED {
            self.lost.pop_front();
        }
        self.lost.push_back(waiting.sequence);
    }
}

pub(super) struct DatagramLane {
    place: LaneContext,
    lines: Vec<Line>,
    line_of: Vec<u32>,
    watch: Watch,
    ready: Vec<Ready>,
    buffer: Vec<u8>,
}

impl DatagramLane {
    pub(super) fn new(place: LaneContext, lines: Vec<Line>, line_of: Vec<u32>) -> Result<Self, TargetError> {
        let watch = Watch::new()?;
        for (number, line) in (0..).zip(&lines) {
            let socket = |source| NetError::Socket { action: "use a socket without waiting", source };
            line.socket.set_nonblocking(true).map_err(socket)?;
            watch.add(&line.socket, number, true)?;
        }
        Ok(Self { place, lines, line_of, watch, ready: Vec::new(), buffer: vec![0; BUFFER_BYTES] })
    }

    fn receive(
        &mut self,
        index: u32,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        // What is left is reported again: whoever is flooded gets to everything else still.
        for _ in 0..AT_ONCE {
            let line = &mut self.lines[index as usize];
            let came = match line.socket.recv(&mut self.buffer) {
                Ok(came) => came,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(()),
                    io::ErrorKind::Interrupted => continue,
                    _ => return Err(self.place.lost(line.number, "while waiting for an answer", error)),
                },
            };
            self.place.traffic.received(came);
            let now = self.place.clock.now_ns();
            let head = self.buffer[..came].first_chunk::<ANSWER_HEAD_BYTES>();
            let answer = head.and_then(|head| Answer::read(head, BUFFER_BYTES as u32).ok());
            let Some(answer) = answer.filter(|answer| answer.answer_bytes as usize == came) else {
                self.place.traffic.datagram(Datagrams::Strange);
                match line.is_useless() {
                    Some(what) => return Err(self.place.wrong_answer(line.number, what)),
                    None => continue,
                }
            };
            let (what, asked) = line.sort(answer.sequence);
            if let Some(asked) = asked {
                line.answered_ns = now;
                recorder.advance(now);
                let answered = Answered { asked, answer };
                if let Some(what) = answered.doubt(now) {
                    return Err(self.place.wrong_answer(line.number, what));
                }
                record_waits(recorder, now.saturating_sub(asked.sent_ns), &answered);
                let is_done = answer.status == Status::Done && answer.answer_bytes == asked.answer_bytes;
                let result = if is_done { OperationResult::Done } else { OperationResult::Failed };
                finished.push(done(asked.session, now, result));
                if what == Datagrams::Reordered {
                    self.place.traffic.datagram(Datagrams::Answered);
                }
            }
            self.place.traffic.datagram(what);
            if matches!(what, Datagrams::Strange | Datagrams::Duplicated)
                && let Some(what) = line.is_useless()
            {
                return Err(self.place.wrong_answer(line.number, what));
            }
        }
        Ok(())
    }

    /// Gives up what has waited for too long.
    fn give_up(&mut self, finished: &mut Vec<Finished>) -> Result<(), TargetError> {
        let now = self.place.clock.now_ns();
        let lost_ns = LOST_NS.min(self.place.timeout_ns);
        for line in &mut self.lines {
            while let Some(first) = line.asked.front()
                && now.saturating_sub(first.asked.sent_ns) > lost_ns
            {
                let Some(waiting) = line.asked.pop_front() else { break };
                line.take_for_lost(&waiting);
                self.place.traffic.datagram(Datagrams::Lost);
                finished.push(done(waiting.asked.session, now, OperationResult::Failed));
                self.place.check_silence(line.number, "came", line.answered_ns, now)?;
            }
        }
        Ok(())
    }
}

impl Lane<NetOperation> for DatagramLane {
    fn start(
        &mut self,
        session: u32,
        operation: &NetOperation,
        sent_ns: u64,
        _: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        let NetOperation { request_bytes, answer_bytes, is_durable, .. } = *operation;
        let line = &mut self.lines[self.line_of[session as usize] as usize];
        if line.answered_ns == 0 {
            line.answered_ns = sent_ns;
        }
        let sequence = line.next_sequence;
        line.next_sequence += 1;
        let head = RequestHead { request_bytes, answer_bytes, sequence, is_durable, is_whole: false }.bytes();
        let body = &self.place.filling[..(request_bytes as usize).saturating_sub(head.len())];
        let parts = [IoSlice::new(&head), IoSlice::new(body)];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(&*line.socket, &parts, &mut SendAncillaryBuffer::default(), flags) {
            Ok(sent) => self.place.traffic.sent(sent),
            // No room in a buffer on the way: lost, as it would be a step further.
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {}
            Err(error) => return Err(self.place.lost(line.number, "while sending", error.into())),
        }
        line.asked.push_back(Waiting {
            asked: SentRequest::new(session, sent_ns, answer_bytes, is_durable, sequence),
            sequence,
        });
        self.place.traffic.datagram(Datagrams::Asked);
        Ok(())
    }

    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        let mut ready = std::mem::take(&mut self.ready);
        self.watch.wait(self.place.clock, until_ns, &mut ready)?;
        for Ready { number, .. } in ready.drain(..) {
            self.receive(number, recorder, finished)?;
        }
        self.ready = ready;
        self.give_up(finished)
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        Ok(())
    }
}

/// What crossed the network, as the lanes saw it. Each lane has one of its own, so that none waits for another's cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Traffic {
    /// Bytes handed to the kernel.
    sent_bytes: AtomicU64,
    /// Bytes taken from it.
    received_bytes: AtomicU64,
    datagrams: [AtomicU64; Datagrams::ALL.len()],
}

/// What can become of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Datagrams {
    /// Asked.
    Asked,
    /// Answered in time.
    Answered,
    /// Not answered in time.
    Lost,
    /// Answered before one that was asked earlier.
    Reordered,
    /// Answered more than once.
    Duplicated,
    /// Answered after it was taken for lost.
    Late,
    /// Not what an answer looks like.
    Strange,
}

impl Datagrams {
    const ALL: [Self; 7] =
        [Self::Asked, Self::Answered, Self::Lost, Self::Reordered, Self::Duplicated, Self::Late, Self::Strange];

    /// The name among the counters of an end.
    const fn name(self) -> &'static str {
        match self {
            Self::Asked => "udp.asked",
            Self::Answered => "udp.answered",
            Self::Lost => "udp.lost",
            Self::Reordered => "udp.reordered",
            Self::Duplicated => "udp.duplicated",
            Self::Late => "udp.late",
            Self::Strange => "udp.strange",
        }
    }
}

impl Traffic {
    #[inline]
    pub(super) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn datagram(&self, what: Datagrams) {
        self.datagrams[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes sent and received so far.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.sent_bytes.load(Ordering::Relaxed), self.received_bytes.load(Ordering::Relaxed))
    }

    /// Datagrams that were sent, or tried to.
    pub(super) fn asked(&self) -> u64 {
        self.datagrams[Datagrams::Asked as usize].load(Ordering::Relaxed)
    }

    /// Adds what became of datagrams to the counters of an end.
    pub(super) fn add_datagrams(&self, counters: &mut BTreeMap<String, u64>) {
        for what in Datagrams::ALL {
            let count = self.datagrams[what as usize].load(Ordering::Relaxed);
            *counters.entry(what.name().to_owned()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_distinguished_by_their_numbers() {
        let mut line = Line::new(Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap()), 0);
        line.next_sequence = 5;
        for sequence in 0..5 {
            line.asked
                .push_back(Waiting { asked: SentRequest::new(sequence as u32, 0, 32, false, sequence), sequence });
        }
        let session = |(what, asked): (Datagrams, Option<SentRequest>)| (what, asked.map(|asked| asked.session));
        assert_eq!(session(line.sort(0)), (Datagrams::Answered, Some(0)));
        assert_eq!(session(line.sort(3)), (Datagrams::Answered, Some(3)), "those before it may be lost");
        assert_eq!(session(line.sort(2)), (Datagrams::Reordered, Some(2)));
        assert_eq!(session(line.sort(3)), (Datagrams::Duplicated, None));
        let waiting = line.asked.pop_front().unwrap();
        line.take_for_lost(&waiting);
        assert_eq!(session(line.sort(1)), (Datagrams::Late, None));
        assert_eq!(session(line.sort(1)), (Datagrams::Duplicated, None));
        assert_eq!(session(line.sort(9)), (Datagrams::Strange, None));
        assert_eq!(session(line.sort(4)), (Datagrams::Answered, Some(4)));
    }

    #[test]
    fn every_count_has_a_place_and_a_name_of_its_own() {
        let traffic = Traffic::default();
        for (place, what) in Datagrams::ALL.into_iter().enumerate() {
            assert_eq!(place, what as usize);
            (0..=place).for_each(|_| traffic.datagram(what));
        }
        let mut counters = BTreeMap::new();
        traffic.add_datagrams(&mut counters);
        assert_eq!(counters.len(), 7);
        assert_eq!((counters["udp.asked"], counters["udp.lost"], counters["udp.strange"]), (1, 3, 7));
    }
}
