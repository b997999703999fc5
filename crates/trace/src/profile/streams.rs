//! Requests that begin where an earlier one ended.
//!
//! The ends of up to [`STREAMS`] sequential streams are remembered for each device and direction. A request that begins at one of
//! them continues that stream; any other request begins a new one in the place of an old one. Streams of random requests are old
//! after 64 other requests of theirs. One that was continued is passed over a few times (a clock with several chances), so that
//! a log survives among random writes.
//!
//! A database's log begins each write in the block that the one before ended in, as often as that block is not full. Such a write
//! is not sequential, but belongs to its stream.

use model::record::Histogram;
use model::trace::{TraceKind, TraceRequest};
use serde::Serialize;

use super::kinds::{Counted, share};

/// Streams at a time.
const STREAMS: usize = 64;
/// How often a long stream is passed over, at most.
const MOST_CHANCES: u32 = 7;
/// Streams of writes that are as long as this are listed.
const LOG_REQUESTS: u64 = 64;
/// And have as many requests that go further than the ones before.
const LOG_ADVANCES: u64 = 16;
/// How much of a stream's end a write may write again, and the granularity at which such streams are looked up.
const REGION: u64 = 1 << 16;
/// Streams that are listed, at most.
const LISTED: usize = 16;
/// Gaps between requests are kept from this request of a stream on: streams of random requests do not get so far.
const GAPS_FROM: u64 = 8;

/// How sequential the requests of one direction are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sequential {
    /// Requests that begin where an earlier one ended, and their bytes.
    pub counted: Counted,
    /// Their share of the requests.
    pub requests_share: f64,
    /// Their share of the bytes; absent where all requests are empty.
    pub bytes_share: Option<f64>,
}

/// How long sequential runs of one direction are. A request that continues none is a run of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Runs {
    /// All runs.
    pub runs: u64,
    /// Runs by their requests: 1, 2-3, 4-7 and so on, each class up to twice as long, up to the longest that there is.
    pub by_requests: Vec<u64>,
    /// The mean bytes of a run.
    pub mean_bytes: f64,
    /// Half of the runs have no more bytes (within 0.8 %).
    pub median_bytes: u64,
}

/// A long sequential stream of writes, such as a database's log makes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogStream {
    /// The device: its place in the trace's header.
    pub device: u16,
    /// When it began, after the trace began.
    pub first_ns: u64,
    /// When its last request was issued.
    pub last_ns: u64,
    /// Where it begins on the device.
    pub begin_bytes: u64,
    /// Where it ended.
    pub end_bytes: u64,
    /// Its requests and their bytes.
    pub counted: Counted,
    /// Of these, those that begin before the end of the one before, and write some of it again.
    pub rewriting: Counted,
    /// Its share of all writes of the trace.
    pub writes_share: f64,
    /// The mean length of its requests.
    pub mean_bytes: f64,
    /// The median time from one issue to the next (within 4 %), from the eighth request on.
    pub median_gap_ns: Option<u64>,
    /// The share of its requests that were issued when the one before had completed; absent where no latency is known.
    pub serial_share: Option<f64>,
    /// Whether all were (a depth of 1); absent where the latency of one of them is not known.
    pub is_serial: Option<bool>,
}

#[derive(Debug)]
struct Stream {
    number: u64,
    device: u16,
    begin_bytes: u64,
    end_bytes: u64,
    /// Where its last request begins.
    last_begin_bytes: u64,
    counted: Counted,
    rewriting: Counted,
    /// Requests that end later than all before.
    advances: u64,
    first_ns: u64,
    last_ns: u64,
    /// When the last request completed, where that is known.
    completed_ns: Option<u64>,
    /// Requests of which it is known whether the one before had completed, and those where it had.
    judged: u64,
    serial: u64,
    gaps: Option<Box<Gaps>>,
    chances: u32,
}

impl Stream {
    fn new(number: u64, now_ns: u64, request: &TraceRequest) -> Self {
        Self {
            number,
            device: request.device,
            begin_bytes: request.offset_bytes,
            end_bytes: request.offset_bytes.saturating_add(request.bytes),
            last_begin_bytes: request.offset_bytes,
            rewriting: Counted::default(),
            advances: 0,
            counted: Counted { requests: 1, bytes: request.bytes },
            first_ns: now_ns,
            last_ns: now_ns,
            completed_ns: completion(now_ns, request),
            judged: 0,
            serial: 0,
            gaps: None,
            chances: 0,
        }
    }

    fn continued(&mut self, now_ns: u64, request: &TraceRequest) {
        self.counted.add(request.bytes);
        let end_bytes = request.offset_bytes.saturating_add(request.bytes);
        if request.offset_bytes < self.end_bytes {
            self.rewriting.add(request.bytes);
        }
        self.advances += u64::from(end_bytes > self.end_bytes);
        (self.last_begin_bytes, self.end_bytes) = (request.offset_bytes, end_bytes);
        if let Some(completed_ns) = self.completed_ns {
            self.judged += 1;
            self.serial += u64::from(completed_ns <= now_ns);
        }
        if self.counted.requests >= GAPS_FROM {
            self.gaps.get_or_insert_default().record(now_ns.saturating_sub(self.last_ns));
        }
        self.completed_ns = completion(now_ns, request);
        self.last_ns = now_ns;
        self.chances = self.counted.requests.ilog2().min(MOST_CHANCES);
    }
}

impl Stream {
    /// Whether a write from here to there writes the tail of the stream again.
    fn is_rewritten(&self, begin: u64, end: u64) -> bool {
        let is_tail = (self.last_begin_bytes..self.end_bytes).contains(&begin) && self.end_bytes - begin <= REGION;
        is_tail && end >= self.end_bytes
    }
}

fn completion(now_ns: u64, request: &TraceRequest) -> Option<u64> {
    request.latency_ns.map(|latency_ns| now_ns.saturating_add(latency_ns))
}

/// Runs of one direction, of all devices.
#[derive(Debug)]
pub(crate) struct RunCounts {
    by_requests: [u64; u64::BITS as usize],
    /// Bytes of runs.
    bytes: Histogram,
    logs: Vec<LogStream>,
    /// Whether long ones are listed: of writes.
    lists_logs: bool,
}

impl RunCounts {
    pub(crate) fn new(lists_logs: bool) -> Self {
        Self { by_requests: [0; u64::BITS as usize], bytes: Histogram::default(), logs: Vec::new(), lists_logs }
    }

    fn add(&mut self, stream: &Stream) {
        let Counted { requests, bytes } = stream.counted;
        self.by_requests[requests.max(1).ilog2() as usize] += 1;
        self.bytes.record(bytes);
        if !self.lists_logs || requests < LOG_REQUESTS || stream.advances < LOG_ADVANCES {
            return;
        }
        let is_known = stream.judged == requests - 1;
        self.logs.push(LogStream {
            device: stream.device,
            first_ns: stream.first_ns,
            last_ns: stream.last_ns,
            begin_bytes: stream.begin_bytes,
            end_bytes: stream.end_bytes,
            counted: stream.counted,
            rewriting: stream.rewriting,
            // Known at the end.
            writes_share: 0.0,
            mean_bytes: bytes as f64 / requests as f64,
            median_gap_ns: stream.gaps.as_ref().and_then(|gaps| gaps.median()),
            serial_share: share(stream.serial, stream.judged),
            is_serial: is_known.then_some(stream.serial == stream.judged),
        });
        if self.logs.len() > 2 * LISTED {
            self.keep_largest();
        }
    }

    fn keep_largest(&mut self) {
        self.logs.sort_by_key(|log| (std::cmp::Reverse(log.counted.bytes), log.first_ns));
        self.logs.truncate(LISTED);
    }

    /// Runs, absent without any, and the largest of the long ones; `requests` are all of this direction.
    pub(super) fn finish(mut self, requests: u64) -> (Option<Runs>, Vec<LogStream>) {
        self.keep_largest();
        for log in &mut self.logs {
            log.writes_share = share(log.counted.requests, requests).unwrap_or_default();
        }
        let used = self.by_requests.iter().rposition(|runs| *runs > 0).map_or(0, |last| last + 1);
        let runs = self.bytes.mean_ns().zip(self.bytes.quantile_ns(0.5)).map(|(mean_bytes, median_bytes)| Runs {
            runs: self.bytes.count(),
            by_requests: self.by_requests.iter().take(used).copied().collect(),
            mean_bytes,
            // The histogram gives the end of a class. Its beginning is the median itself wherever sizes are round.
            median_bytes: median_bytes & !((1_u64 << median_bytes.max(1).ilog2() >> 7).max(1) - 1),
        });
        (runs, self.logs)
    }
}

/// Streams of one device and direction.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Some bits of where each would be continued: looked through for each request, so small and apart from the rest.
    tags: Vec<u32>,
    /// The same of the region that each ends in.
    regions: Vec<u32>,
    streams: Vec<Stream>,
    hand: usize,
    /// The stream that was continued last.
    last: usize,
    all: Counted,
    sequential: Counted,
    /// Streams that were begun.
    begun: u64,
}

/// A request that continues a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Continued {
    /// The stream: its number among those of its device and direction.
    pub(crate) number: u64,
    /// When the request before it completed, where that is known.
    pub(crate) completed_ns: Option<u64>,
}

fn tag_of(offset_bytes: u64) -> u32 {
    (offset_bytes ^ (offset_bytes >> 32)) as u32
}

fn region_of(offset_bytes: u64) -> u32 {
    tag_of(offset_bytes / REGION)
}

impl Streams {
    #[inline]
    pub(crate) fn add(&mut self, now_ns: u64, request: &TraceRequest, runs: &mut RunCounts) -> Option<Continued> {
        self.all.add(request.bytes);
        if request.bytes == 0 {
            // It ends where it begins, and would continue itself.
            return None;
        }
        let end = request.offset_bytes.saturating_add(request.bytes);
        let continued = self.continued(request.offset_bytes);
        if continued.is_some() {
            self.sequential.add(request.bytes);
        }
        let is_write = request.kind == TraceKind::Write;
        let rewritten = || if is_write { self.rewritten(request.offset_bytes, end) } else { None };
        let (end_tag, region) = (tag_of(end), region_of(end.saturating_sub(1)));
        if let Some(at) = continued.or_else(rewritten) {
            let stream = &mut self.streams[at];
            let continued = if end > stream.end_bytes || stream.advances > 0 {
                let continued = Continued { number: stream.number, completed_ns: stream.completed_ns };
                stream.continued(now_ns, request);
                Some(continued)
            } else {
                // One block, over and over, is not a log. Its last write may begin one.
                runs.add(stream);
                *stream = Stream::new(self.begun, now_ns, request);
                self.begun += 1;
                None
            };
            (self.tags[at], self.regions[at]) = (end_tag, region);
            self.last = at;
            return continued;
        }
        let stream = Stream::new(self.begun, now_ns, request);
        self.begun += 1;
        if self.streams.len() < STREAMS {
            self.tags.push(end_tag);
            self.regions.push(region);
            self.streams.push(stream);
            return None;
        }
        let at = self.oldest();
        runs.add(&self.streams[at]);
        (self.streams[at], self.tags[at], self.regions[at]) = (stream, end_tag, region);
        None
    }

    /// The place of the stream that ended here.
    #[inline]
    fn continued(&self, offset_bytes: u64) -> Option<usize> {
        if self.streams.get(self.last)?.end_bytes == offset_bytes {
            return Some(self.last);
        }
        let tag = tag_of(offset_bytes);
        // Without a branch for each the compiler compares several at a time; most random requests end here.
        if !self.tags.iter().fold(false, |any, end_tag| any | (*end_tag == tag)) {
            return None;
        }
        let ended_here = |(stream, end_tag): (&Stream, &u32)| *end_tag == tag && stream.end_bytes == offset_bytes;
        self.streams.iter().zip(&self.tags).position(ended_here)
    }

    /// The place of the stream whose tail a write from here to there writes again.
    #[inline]
    fn rewritten(&self, begin: u64, end: u64) -> Option<usize> {
        // The stream ends within the write: in its first region or its last one, unless the write is long.
        let (first, last) = (region_of(begin), region_of(end.saturating_sub(1)));
        if !self.regions.iter().fold(false, |any, region| any | (*region == first) | (*region == last)) {
            return None;
        }
        self.streams.iter().position(|stream| stream.is_rewritten(begin, end))
    }

    /// The next stream in turn without a chance left; of those passed over each loses one.
    #[inline]
    fn oldest(&mut self) -> usize {
        loop {
            let at = self.hand;
            self.hand = (at + 1) % STREAMS;
            match &mut self.streams[at].chances {
                0 => return at,
                chances => *chances -= 1,
            }
        }
    }

    /// Ends all streams. Absent where there was no request.
    pub(super) fn finish(self, runs: &mut RunCounts) -> Option<Sequential> {
        self.streams.iter().for_each(|stream| runs.add(stream));
        Some(Sequential {
            counted: self.sequential,
            requests_share: share(self.sequential.requests, self.all.requests)?,
            bytes_share: share(self.sequential.bytes, self.all.bytes),
        })
    }
}

/// Of several devices together.
pub(super) fn together<'a>(devices: impl Iterator<Item = &'a Option<Sequential>>, all: Counted) -> Option<Sequential> {
    let sum = devices.flatten().fold(Counted::default(), |sum, device| sum.plus(device.counted));
    Some(Sequential {
        counted: sum,
        requests_share: share(sum.requests, all.requests)?,
        bytes_share: share(sum.bytes, all.bytes),
    })
}

/// Gaps by 16 classes in each doubling: 2.7 KiB, where a histogram would need 36 for each stream.
#[derive(Debug)]
struct Gaps([u32; Self::CLASSES]);

impl Default for Gaps {
    fn default() -> Self {
        Self([0; Self::CLASSES])
    }
}

impl Gaps {
    const STEPS: u64 = 16;
    /// Up to 2^45 ns, ten hours.
    const CLASSES: usize = 42 * Self::STEPS as usize;

    fn record(&mut self, ns: u64) {
        let class = if ns < Self::STEPS {
            ns
        } else {
            let doubling = ns.ilog2() - Self::STEPS.ilog2();
            (u64::from(doubling) + 1) * Self::STEPS + ((ns >> doubling) & (Self::STEPS - 1))
        };
        let count = &mut self.0[(class as usize).min(Self::CLASSES - 1)];
        *count = count.saturating_add(1);
    }

    /// The middle of the class that has the median.
    fn median(&self) -> Option<u64> {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let mut below = 0;
        let class = self.0.iter().position(|count| {
            below += u64::from(*count);
            all > 0 && below * 2 >= all
        })? as u64;
        let begin = |class: u64| match class / Self::STEPS {
            0 => class,
            doublings => (Self::STEPS + class % Self::STEPS) << (doublings - 1),
        };
        Some(begin(class) + (begin(class + 1) - begin(class)) / 2)
    }
}

#[cfg(test)]
mod tests {
    use model::workload::Rng;

    use super::*;

    fn write(at_ns: u64, offset_bytes: u64, bytes: u64, latency_ns: Option<u64>) -> TraceRequest {
        TraceRequest { at_ns, device: 0, kind: TraceKind::Write, is_fua: false, offset_bytes, bytes, latency_ns }
    }

    fn of(requests: &[TraceRequest]) -> (Sequential, Runs, Vec<LogStream>) {
        let (mut streams, mut runs) = (Streams::default(), RunCounts::new(true));
        for request in requests {
            streams.add(request.at_ns, request, &mut runs);
        }
        let sequential = streams.finish(&mut runs).expect("there are requests");
        let (runs, logs) = runs.finish(requests.len() as u64);
        (sequential, runs.expect("there are runs"), logs)
    }

    #[test]
    fn interleaved_streams_are_both_sequential() {
        let requests: Vec<_> = (0..200)
            .map(|number| {
                let (stream, along) = (number % 2, number / 2);
                // The second is issued before the one before it has completed.
                let latency = if stream == 0 { 500 } else { 5_000 };
                write(number * 1_000, (stream << 40) + along * 8_192, 8_192, Some(latency))
            })
            .collect();
        let (sequential, runs, logs) = of(&requests);
        assert_eq!(sequential.counted, Counted { requests: 198, bytes: 198 * 8_192 });
        assert_eq!((runs.runs, runs.by_requests.as_slice()), (2, [0, 0, 0, 0, 0, 0, 2].as_slice()));
        assert_eq!(runs.mean_bytes, 819_200.0);
        let found: Vec<_> = logs.iter().map(|log| (log.begin_bytes, log.counted.requests, log.is_serial)).collect();
        assert_eq!(found, [(0, 100, Some(true)), (1 << 40, 100, Some(false))]);
        assert_eq!((logs[0].end_bytes, logs[0].writes_share, logs[1].serial_share), (819_200, 0.5, Some(0.0)));
        let gap = logs[0].median_gap_ns.expect("gaps are known");
        assert!((1_930..2_070).contains(&gap), "{gap}");
    }

    #[test]
    fn a_log_among_random_writes_is_found_and_they_are_not_sequential() {
        let (mut rng, mut requests) = (Rng::new(5, 5), Vec::new());
        let mut log = 0;
        for number in 0..40_000_u64 {
            // Once it is known it may be rarer than there are streams.
            let is_log = number % if number < 1_000 { 40 } else { 200 } == 0;
            let offset = if is_log { log * 4_096 } else { (1 << 40) + rng.below(1 << 28) * 4_096 };
            log += u64::from(is_log);
            requests.push(write(number * 1_000, offset, 4_096, None));
        }
        let (sequential, _, logs) = of(&requests);
        assert!(sequential.counted.requests < 225, "{sequential:?}");
        assert_eq!(logs.len(), 1);
        assert!(logs[0].counted.requests > 150, "{logs:?}");
        assert_eq!((logs[0].serial_share, logs[0].is_serial), (None, None));
    }

    #[test]
    fn a_log_that_writes_its_last_block_again_is_a_stream_and_a_hot_block_is_not() {
        let (mut now, mut requests) = (0, Vec::new());
        for block in 0..100_u64 {
            // Three commits in each block, the last of which begins the next block as well.
            for bytes in [4_096, 4_096, 8_192] {
                now += 1_000;
                requests.push(write(now, (1 << 30) + block * 4_096, bytes, Some(10)));
                requests.push(write(now, 1 << 20, 4_096, Some(10)));
            }
        }
        let (sequential, _, logs) = of(&requests);
        assert_eq!(sequential.counted.requests, 0);
        assert_eq!(logs.len(), 1, "{logs:?}");
        let log = &logs[0];
        assert!(log.counted.requests >= 296 && log.rewriting.requests + 1 == log.counted.requests, "{log:?}");
        assert_eq!((log.end_bytes, log.is_serial), ((1 << 30) + 101 * 4_096, Some(true)));
    }
}
