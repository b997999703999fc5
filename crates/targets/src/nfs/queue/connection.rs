//! One connection of a queue.

use std::io::{self, Write};
use std::net::TcpStream;

use crate::nfs::connect::{Route, begin, made};
use crate::nfs::mount::NfsMount;
use crate::nfs::wire::Records;
use measure::os::TcpInfo;
use measure::{ChannelCounter, ChannelName, ChannelWriter};
use model::record::ChannelKind;

/// Calls are written no further ahead of what the kernel takes than this, in bytes.
const MAX_UNSENT_BYTES: usize = 256 << 10;
/// Pauses between attempts to reach a server again: the first, and the longest.
const FIRST_RETRY_NS: u64 = 100_000_000;
const MAX_RETRY_NS: u64 = 5_000_000_000;
/// What is counted about connections beside requests.
const KEEPS: &[ChannelCounter] = &[
    ChannelCounter::Queued,
    ChannelCounter::QueuedNs,
    ChannelCounter::Retries,
    ChannelCounter::Reconnects,
    ChannelCounter::SegmentsResent,
    ChannelCounter::BusyNs,
    ChannelCounter::RwndLimitedNs,
    ChannelCounter::RoomCommits,
    ChannelCounter::ResentWrites,
    ChannelCounter::ResentBytes,
];

/// Pauses between attempts, each twice as long as the one before up to 5 s. Nothing sleeps: a queue has others to serve meanwhile.
#[derive(Debug)]
pub(super) struct Backoff {
    pause_ns: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { pause_ns: FIRST_RETRY_NS }
    }
}

impl Backoff {
    /// When to try again after an attempt that failed now.
    pub(super) fn retry_ns(&mut self, now_ns: u64) -> u64 {
        let retry_ns = now_ns + self.pause_ns;
        self.pause_ns = (self.pause_ns * 2).min(MAX_RETRY_NS);
        retry_ns
    }
}

/// What servers have forgotten could not be made good.
#[derive(Debug)]
pub(super) struct Stuck {
    pub(super) since_ns: u64,
    /// When that is tried again.
    pub(super) retry_ns: u64,
    pub(super) backoff: Backoff,
}

/// How a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Calls can be sent.
    Up,
    /// It owes answers and has been silent for long: nothing more is sent there.
    Silent,
    /// Being made, until then at most.
    Connecting { until_ns: u64 },
    /// Broken; made again then.
    Down { retry_ns: u64 },
}

/// A read whose data are coming.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadInProgress {
    pub(super) call: u32,
    pub(super) done_bytes: u32,
    pub(super) is_end: bool,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) route: Route,
    pub(super) life: Life,
    socket: Option<TcpStream>,
    /// Calls that the kernel has not taken yet, from `sent_bytes` on.
    pub(super) out: Vec<u8>,
    sent_bytes: usize,
    pub(super) records: Records,
    data_max: u32,
    pub(super) reading: Option<ReadInProgress>,
    pub(super) writer: ChannelWriter,
    /// When something last came, or when it began to owe answers.
    pub(super) heard_ns: u64,
    /// Whether a wake-up was asked for when it takes more.
    pub(super) waits_to_send: bool,
    /// Whether it is on the list of those with something to send.
    pub(super) is_listed: bool,
    backoff: Backoff,
    /// The server's verifier in the last answer to a WRITE or COMMIT.
    pub(super) verifier: Option<u64>,
    /// Why it was last lost.
    pub(super) why: Option<String>,
    tcp: TcpInfo,
}

impl Connection {
    /// Begins to connect. `number` is that of the connection on its path, from 0.
    pub(super) fn begin(mount: &NfsMount, route: Route, number: u32, data_max: u32, until_ns: u64) -> io::Result<Self> {
        let socket = begin(route)?;
        let writer = mount.channels().open(ChannelName {
            kind: ChannelKind::Connection,
            of: mount.ways().server.clone(),
            within: Some(route.to.to_string()),
            name: (number + 1).to_string(),
            keeps: KEEPS,
        });
        Ok(Self {
            route,
            life: Life::Connecting { until_ns },
            socket: Some(socket),
            out: Vec::new(),
            sent_bytes: 0,
            records: Records::new(data_max),
            data_max,
            reading: None,
            writer,
            heard_ns: 0,
            waits_to_send: false,
            is_listed: false,
            backoff: Backoff::default(),
            verifier: None,
            why: None,
            tcp: TcpInfo::default(),
        })
    }

    pub(super) fn socket(&self) -> Option<&TcpStream> {
        self.socket.as_ref()
    }

    /// Whether more calls may be written.
    pub(super) fn has_room(&self) -> bool {
        self.out.len() - self.sent_bytes < MAX_UNSENT_BYTES
    }

    /// Whether it was made.
    pub(super) fn made(&mut self, now_ns: u64) -> io::Result<()> {
        made(self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?)?;
        self.life = Life::Up;
        self.heard_ns = now_ns;
        self.backoff = Backoff::default();
        Ok(())
    }

    /// Hands the kernel what it takes. True where nothing is left.
    pub(super) fn send(&mut self) -> io::Result<bool> {
        let Some(mut socket) = self.socket.as_ref() else { return Ok(true) };
        while self.sent_bytes < self.out.len() {
            match socket.write(&self.out[self.sent_bytes..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.sent_bytes += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.sent_bytes > MAX_UNSENT_BYTES {
                        self.out.drain(..self.sent_bytes);
                        self.sent_bytes = 0;
                    }
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent_bytes = 0;
        Ok(true)
    }

    /// Gives the socket up. What it owes is the caller's affair.
    pub(super) fn close(&mut self, why: String, now_ns: u64) -> Option<TcpStream> {
        self.count_tcp();
        self.tcp = TcpInfo::default();
        self.why = Some(why);
        self.life = Life::Down { retry_ns: self.backoff.retry_ns(now_ns) };
        self.out.clear();
        self.sent_bytes = 0;
        (self.reading, self.waits_to_send) = (None, false);
        self.records = Records::new(self.data_max);
        self.socket.take()
    }

    /// Begins to connect once more.
    pub(super) fn begin_again(&mut self, until_ns: u64) -> io::Result<()> {
        self.socket = Some(begin(self.route)?);
        self.life = Life::Connecting { until_ns };
        Ok(())
    }

    /// Counts what the kernel has counted since the last time.
    pub(super) fn count_tcp(&mut self) {
        let Some(now) = self.socket.as_ref().and_then(|socket| TcpInfo::of(socket).ok()) else { return };
        let before = std::mem::replace(&mut self.tcp, now);
        let resent = now.segments_resent.wrapping_sub(before.segments_resent);
        self.writer.count(ChannelCounter::SegmentsResent, resent.into());
        self.writer.count(ChannelCounter::BusyNs, now.busy_ns.saturating_sub(before.busy_ns));
        self.writer.count(ChannelCounter::RwndLimitedNs, now.rwnd_limited_ns.saturating_sub(before.rwnd_limited_ns));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.count_tcp();
    }
}
