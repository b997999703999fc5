//! The requests of a trace on their way to other storage: which of them, when, and where.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

mod chains;
mod placement;

pub use chains::Chains;
pub use placement::{Placement, Region, TooSmall};

use crate::profile::Reuse;
use crate::profile::depth::InFlight;
use crate::{BATCH, TraceError, TraceFile, TraceSource, TraceSummary};
use chains::{Follower, Link};
use model::record::Histogram;
use model::trace::{TraceEnd, TraceHeader, TraceKind, TraceRequest};
use model::workload::After;
use model::workload::io::{IoKind, IoOperation};
use model::workload::replay::{DueOperation, ReplayFeed, ReplaySource};

/// Unit in which addresses are moved: requests inside one stay as near to each other as they were.
pub const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks that are remembered: 16 TiB of touched addresses.
const MAX_CHUNKS: usize = 1 << 24;
/// Batches that are read ahead of the load, of each stream.
const AHEAD: usize = 8;

/// Which requests of a trace are replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The part of the trace: nanoseconds after its beginning.
    pub window_ns: Range<u64>,
    /// Whether all but reads are left out.
    pub reads_only: bool,
    /// Whether discards are replayed.
    pub discards: bool,
    /// What offsets and lengths become multiples of, in bytes.
    pub unit_bytes: u32,
    /// Devices that are left out.
    pub without: BTreeSet<u16>,
}

impl Selection {
    /// Whether requests of a kind are left out on purpose.
    fn is_unwanted(&self, request: &TraceRequest) -> bool {
        let is_wanted = match request.kind {
            TraceKind::Read => true,
            TraceKind::Write | TraceKind::Flush => !self.reads_only,
            TraceKind::Discard => self.discards && !self.reads_only,
        };
        !is_wanted || self.without.contains(&request.device)
    }

    /// What becomes of a request: absent where it is left out.
    fn of(&self, request: &TraceRequest) -> Option<IoOperation> {
        if self.is_unwanted(request) {
            return None;
        }
        let unit = u64::from(self.unit_bytes);
        let kind = match request.kind {
            TraceKind::Read => IoKind::Read,
            TraceKind::Write => IoKind::Write,
            TraceKind::Flush => IoKind::Flush,
            TraceKind::Discard => IoKind::Discard,
        };
        if kind == IoKind::Flush {
            return Some(IoOperation { kind, offset_bytes: 0, bytes: 0, is_durable: false });
        }
        let end = request.offset_bytes.saturating_add(request.bytes);
        let (begin, end) = if kind == IoKind::Discard {
            // What was not discarded is kept: blocks of which it is a part are left out.
            (request.offset_bytes.checked_next_multiple_of(unit)?, end - end % unit)
        } else {
            (request.offset_bytes - request.offset_bytes % unit, end.checked_next_multiple_of(unit)?)
        };
        let bytes = u32::try_from(end.checked_sub(begin)?).ok().filter(|bytes| *bytes > 0 && request.bytes > 0)?;
        Some(IoOperation { kind, offset_bytes: begin, bytes, is_durable: request.is_fua })
    }
}

/// What a trace has in its window.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Its header.
    pub header: TraceHeader,
    /// Its end.
    pub end: TraceEnd,
    /// How long the whole trace is, up to its last request: nanoseconds.
    pub whole_ns: u64,
    /// All requests of the window, as they were recorded.
    pub recorded: TraceSummary,
    /// Those of them that are replayed, as they are replayed.
    pub replayed: TraceSummary,
    /// Their latencies when they were recorded, by kind; empty where none is known.
    pub latencies: [Histogram; 4],
    /// Requests that cannot be replayed: without bytes, longer than 4 GiB, or discards without a whole unit.
    pub left_out: u64,
    /// Requests replayed whose ends were moved to multiples of the unit; those of discards inwards.
    pub lengthened: u64,
    /// The longest of all that are replayed, discards among them, in bytes.
    pub longest_bytes: u64,
    /// Requests replayed, by second of the window.
    pub by_second: Vec<u32>,
    /// Chunks that they touch, in their order; absent where they are more than can be remembered.
    pub chunks: Option<Vec<(u16, u64)>>,
    /// Its chains, where they were looked for.
    pub chains: Option<Chains>,
    /// How many of those that are replayed were in flight while any was, as they were recorded; absent where no latency is known.
    pub depth: Option<f64>,
}

/// Seconds of a window that are kept.
const MAX_SECONDS: usize = 7 * 86_400;

/// Reads the window of a trace; with its chains if they are wanted.
///
/// # Errors
/// [`TraceError`], and [`TraceError::Empty`] where nothing is left to replay.
pub fn survey(path: &Path, selection: &Selection, wants_chains: bool) -> Result<Survey, TraceError> {
    let (mut survey, mut chunks) = (Survey::default(), Some(BTreeSet::new()));
    let mut last = None;
    let mut follower = wants_chains.then(Follower::default);
    let mut in_flight = InFlight::default();
    let file = each_in_window(path, selection, &mut |request| {
        survey.recorded.add(request);
        let Some(operation) = selection.of(request) else {
            survey.left_out += u64::from(!selection.is_unwanted(request));
            return;
        };
        if let Some(latency_ns) = request.latency_ns {
            in_flight.issue(request.at_ns - selection.window_ns.start, latency_ns);
        }
        if let Some(follower) = &mut follower {
            follower.add(request);
        }
        let (offset_bytes, bytes) = (operation.offset_bytes, u64::from(operation.bytes));
        survey.replayed.add(&TraceRequest { offset_bytes, bytes, ..*request });
        survey.longest_bytes = survey.longest_bytes.max(bytes);
        if operation.kind == IoKind::Discard {
            // They need their place as well, so that none reaches into what is behind it.
            let end_bytes = &mut survey.replayed.extents_bytes[usize::from(request.device)];
            *end_bytes = (*end_bytes).max(offset_bytes + bytes);
        }
        survey.lengthened += u64::from(operation.kind != IoKind::Flush && bytes != request.bytes);
        if let Some(latency_ns) = request.latency_ns {
            survey.latencies[request.kind.index()].record(latency_ns);
        }
        let second = ((request.at_ns - selection.window_ns.start) / 1_000_000_000) as usize;
        if second < MAX_SECONDS {
            survey.by_second.resize(survey.by_second.len().max(second + 1), 0);
            survey.by_second[second] += 1;
        }
        if operation.kind == IoKind::Flush {
            return;
        }
        let touched = offset_bytes / CHUNK_BYTES..=(offset_bytes + bytes - 1) / CHUNK_BYTES;
        let one = (request.device, *touched.start());
        // Neighbours of the one before are the usual case.
        if last == Some(one) && touched.start() == touched.end() {
            return;
        }
        last = Some(one);
        if let Some(known) = &mut chunks {
            known.extend(touched.map(|chunk| (request.device, chunk)));
            if known.len() > MAX_CHUNKS {
                chunks = None;
            }
        }
    })?;
    if survey.replayed.total() == 0 {
        return Err(TraceError::Empty { path: path.display().to_string() });
    }
    survey.whole_ns = file.summary().last_ns.saturating_add(1);
    (survey.header, survey.end) = (file.header().clone(), file.end());
    let until_ns = (survey.recorded.last_ns + 1).saturating_sub(selection.window_ns.start);
    survey.depth = in_flight.finish(until_ns).map(|depth| depth.mean / depth.busy_share);
    survey.chains = follower.map(Follower::finish);
    survey.chunks = chunks.map(|chunks| chunks.into_iter().collect());
    Ok(survey)
}

/// Reads every request of the window, in their order.
fn each_in_window(
    path: &Path,
    selection: &Selection,
    each: &mut dyn FnMut(&TraceRequest),
) -> Result<TraceFile, TraceError> {
    let mut file = TraceFile::open(path)?;
    file.skip_to(selection.window_ns.start);
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        batch.clear();
        file.next_batch(&mut batch)?;
        if batch.first().is_none_or(|first| first.at_ns >= selection.window_ns.end) {
            return Ok(file);
        }
        batch.iter().filter(|request| selection.window_ns.contains(&request.at_ns)).for_each(&mut *each);
    }
}

/// How far apart the hit ratios of caches are for the requests of a window at their recorded addresses and where they are replayed: the
/// most of all sizes, in points of 100. Caches keep what was used last. Absent without reads.
///
/// # Errors
/// [`TraceError`].
pub fn moved_hit_points(path: &Path, selection: &Selection, placement: &Placement) -> Result<Option<f64>, TraceError> {
    let (mut recorded, mut placed) = (Reuse::default(), Reuse::default());
    each_in_window(path, selection, &mut |request| {
        let Some(IoOperation { kind, offset_bytes, bytes, .. }) = selection.of(request) else { return };
        if kind.moves_data() {
            let (bytes, is_write) = (u64::from(bytes), kind.is_write());
            for copy in 0..u64::from(placement.copies()) {
                // Each copy has addresses of its own.
                recorded.add(request.device, is_write, offset_bytes.wrapping_add(copy << 53), bytes);
                placed.add(0, is_write, placement.place(copy, request.device, offset_bytes, bytes), bytes);
            }
        }
    })?;
    Ok(recorded.finish().farthest(&placed.finish()).map(|share| share * 100.0))
}

/// A trace that is replayed.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The file.
    pub path: PathBuf,
    /// Which of its requests.
    pub selection: Selection,
    /// Where they go.
    pub placement: Arc<Placement>,
    /// When the first instant of the window is: nanoseconds after the load begins.
    pub lead_in_ns: u64,
    /// How much more of it.
    pub scale: Scale,
    /// How often the window is replayed, one lap after the other.
    pub laps: u32,
    /// How long the window was when it was recorded, in nanoseconds.
    pub lap_ns: u64,
    /// Streams whose requests wait for the one before.
    pub chains: Option<Arc<Chains>>,
    /// Whether requests are sent when earlier ones end, whenever they were issued: then all streams take them from one place.
    pub is_fast: bool,
    /// Where they are taken from then; a new one for each step.
    pub shared: Arc<Mutex<Option<Shared>>>,
    /// Why the trace could not be read to its end, if so.
    pub failure: Arc<Mutex<Option<String>>>,
}

/// The requests of all streams, in their order.
#[derive(Debug)]
pub struct Shared {
    batches: Receiver<Vec<DueOperation>>,
    waiting: VecDeque<DueOperation>,
}

/// Requests that a stream takes of them at a time: none is in the hands of one stream when another finds that there are no more.
const TAKEN: usize = 1;

/// How a replay sends more than was recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Time runs so many times as fast.
    Pace(f64),
    /// At the recorded pace, so many copies at other addresses, each [`COPY_SHIFT_NS`] behind the one before. The last one is a part: of
    /// 2.5 copies it has every second request.
    Copies(f64),
}

/// A copy comes so long after the one before: peaks stay peaks, and no request has its twin at the same instant.
pub const COPY_SHIFT_NS: u64 = 10_000_000;

impl Scale {
    /// How many times as fast time runs.
    pub fn pace(self) -> f64 {
        match self {
            Self::Pace(times) => times,
            Self::Copies(_) => 1.0,
        }
    }

    /// Copies, the one that is a part among them.
    pub fn copies(self) -> u32 {
        match self {
            Self::Pace(_) => 1,
            Self::Copies(copies) => copies.ceil().max(1.0) as u32,
        }
    }

    /// Whether a copy has a request: the first of a lap has number 1.
    fn has(self, copy: u32, number: u64) -> bool {
        let Self::Copies(copies) = self else { return true };
        let share = (copies - f64::from(copy)).clamp(0.0, 1.0);
        (number as f64 * share).floor() > ((number - 1) as f64 * share).floor()
    }
}

impl Replay {
    /// Why the trace could not be read to its end while it was replayed, if so.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the requests of one stream until its load has ended.
    fn read(&self, stream: u64, streams: u64, out: &SyncSender<Vec<DueOperation>>) -> Result<(), TraceError> {
        let mut later = Later::default();
        for lap in 0..u64::from(self.laps.max(1)) {
            if !self.read_lap(lap, (stream, streams), &mut later, out)? {
                return Ok(());
            }
        }
        let rest = later.until(u64::MAX);
        let _ = rest.is_empty() || out.send(rest).is_ok();
        Ok(())
    }

    /// Reads one lap. Returns whether its requests are still wanted.
    fn read_lap(
        &self,
        lap: u64,
        (stream, streams): (u64, u64),
        later: &mut Later,
        out: &SyncSender<Vec<DueOperation>>,
    ) -> Result<bool, TraceError> {
        let Self { selection, scale, .. } = self;
        let mut file = TraceFile::open(&self.path)?;
        file.skip_to(selection.window_ns.start);
        let mut batch = Vec::with_capacity(BATCH);
        let mut follower = self.chains.as_ref().map(|_| Follower::default());
        let mut number = 0;
        let copies = scale.copies().min(self.placement.copies());
        let due_of = |at_ns: u64| {
            let after_ns = lap.saturating_mul(self.lap_ns).saturating_add(at_ns - selection.window_ns.start);
            self.lead_in_ns.saturating_add((after_ns as f64 / scale.pace()) as u64)
        };
        loop {
            batch.clear();
            file.next_batch(&mut batch)?;
            if batch.first().is_none_or(|first| first.at_ns >= selection.window_ns.end) {
                return Ok(true);
            }
            let mut due = Vec::with_capacity(batch.len() / streams as usize + 1);
            for request in batch.iter().filter(|request| selection.window_ns.contains(&request.at_ns)) {
                let Some(operation) = selection.of(request) else { continue };
                number += 1;
                let due_ns = due_of(request.at_ns);
                let link = follower.as_mut().and_then(|follower| follower.add(request));
                for copy in (0..copies).filter(|copy| scale.has(*copy, number)) {
                    let (after, lane) = self.after(link.as_ref(), u64::from(copy), (number, streams));
                    if lane == stream {
                        let operation = self.placed(u64::from(copy), request.device, operation);
                        let due_ns = due_ns.saturating_add(u64::from(copy) * COPY_SHIFT_NS);
                        later.add(copy, DueOperation { due_ns, operation, after });
                    }
                }
                later.move_until(due_ns, &mut due);
            }
            if !due.is_empty() && out.send(due).is_err() {
                return Ok(false);
            }
        }
    }

    /// What a request waits for, and the lane that has it: a chain stays in one.
    fn after(&self, link: Option<&Link>, copy: u64, (number, lanes): (u64, u64)) -> (Option<After>, u64) {
        let chained = link.zip(self.chains.as_ref()).and_then(|(link, chains)| Some((link, chains.gap_ns(link)?)));
        match chained {
            Some((link, gap_ns)) => {
                let gap_ns = (gap_ns as f64 / self.scale.pace()) as u64;
                (Some(After { chain: link.key.number(copy), gap_ns }), link.key.lane(copy, lanes))
            }
            None => (None, (number + copy) % lanes),
        }
    }

    fn placed(&self, copy: u64, device: u16, operation: IoOperation) -> IoOperation {
        if operation.kind == IoKind::Flush {
            // One byte of a part of the target stands for that part.
            let flushed = self.placement.flushed(device);
            return IoOperation {
                offset_bytes: flushed.unwrap_or(0),
                bytes: u32::from(flushed.is_some()),
                ..operation
            };
        }
        let offset_bytes = self.placement.place(copy, device, operation.offset_bytes, u64::from(operation.bytes));
        IoOperation { offset_bytes, ..operation }
    }
}

/// Requests of copies that are due later than the request of the trace that was read last, in the order of each copy.
#[derive(Debug, Default)]
struct Later(Vec<VecDeque<DueOperation>>);

impl Later {
    fn add(&mut self, copy: u32, due: DueOperation) {
        let copy = copy as usize;
        if self.0.len() <= copy {
            self.0.resize_with(copy + 1, VecDeque::new);
        }
        self.0[copy].push_back(due);
    }

    /// Moves all that are due by an instant, the earliest first.
    fn move_until(&mut self, due_ns: u64, into: &mut Vec<DueOperation>) {
        loop {
            let first = |(copy, waiting): (usize, &VecDeque<DueOperation>)| Some((waiting.front()?.due_ns, copy));
            let Some((first_ns, copy)) = self.0.iter().enumerate().filter_map(first).min() else { return };
            if first_ns > due_ns {
                return;
            }
            into.extend(self.0[copy].pop_front());
        }
    }

    fn until(&mut self, due_ns: u64) -> Vec<DueOperation> {
        let mut due = Vec::new();
        self.move_until(due_ns, &mut due);
        due
    }
}

impl ReplaySource for Replay {
    fn open(&self, stream: u32, streams: u32, is_rehearsal: bool) -> Box<dyn ReplayFeed> {
        if !self.is_fast || is_rehearsal {
            return Box::new(Feed(self.begin(stream, streams)));
        }
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.get_or_insert_with(|| Shared { batches: self.begin(0, 1), waiting: VecDeque::new() });
        Box::new(SharedFeed(Arc::clone(&self.shared)))
    }
}

impl Replay {
    /// Begins to read the requests of a stream.
    fn begin(&self, stream: u32, streams: u32) -> Receiver<Vec<DueOperation>> {
        let (out, batches) = sync_channel(AHEAD);
        let replay = self.clone();
        let reader = std::thread::Builder::new().name(format!("trace {stream}"));
        let fail = |why: String| *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        let started = reader.spawn(move || {
            if let Err(error) = replay.read(u64::from(stream), u64::from(streams.max(1)), &out) {
                *replay.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            }
        });
        if let Err(error) = started {
            fail(format!("cannot start a thread that reads the trace: {error}"));
        }
        batches
    }
}

/// A stream's part of what all streams share.
struct SharedFeed(Arc<Mutex<Option<Shared>>>);

impl ReplayFeed for SharedFeed {
    fn next_batch(&mut self, into: &mut VecDeque<DueOperation>) {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Shared { batches, waiting }) = shared.as_mut() else { return };
        if waiting.is_empty() {
            waiting.extend(batches.recv().into_iter().flatten());
        }
        into.extend(waiting.drain(..waiting.len().min(TAKEN)));
    }
}

/// What the reading thread of a stream has ready.
struct Feed(Receiver<Vec<DueOperation>>);

impl ReplayFeed for Feed {
    fn next_batch(&mut self, into: &mut VecDeque<DueOperation>) {
        into.extend(self.0.recv().into_iter().flatten());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceWriter;
    use model::trace::TraceDevice;

    const MIB: u64 = 1 << 20;

    fn request(at_ns: u64, device: u16, kind: TraceKind, offset_bytes: u64, bytes: u64) -> TraceRequest {
        let is_fua = kind == TraceKind::Write && bytes == 4_096;
        TraceRequest { at_ns, device, kind, is_fua, offset_bytes, bytes, latency_ns: Some(1_000) }
    }

    fn trace(requests: &[TraceRequest]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let device = |name: &str| TraceDevice { name: name.to_owned(), bytes: None };
        let header = TraceHeader { devices: vec![device("a"), device("b")], ..TraceHeader::default() };
        let mut writer = TraceWriter::begin("test", file.reopen().expect("it again")).expect("a trace");
        writer.write(requests, &header).expect("written");
        writer.finish(&header, &TraceEnd::default()).expect("written");
        file
    }

    fn all(window_ns: Range<u64>) -> Selection {
        Selection { window_ns, reads_only: false, discards: false, unit_bytes: 4_096, without: BTreeSet::new() }
    }

    fn five() -> tempfile::NamedTempFile {
        trace(&[
            request(100, 0, TraceKind::Read, 512, 1_024),
            request(200, 1, TraceKind::Write, 40 * MIB, 4_096),
            request(300, 0, TraceKind::Discard, 0, 8_192),
            request(400, 1, TraceKind::Flush, 0, 0),
            request(500, 0, TraceKind::Read, 10 * MIB - 4_096, 8_192),
        ])
    }

    fn replayed(
        file: &tempfile::NamedTempFile,
        selection: &Selection,
        capacity: u64,
        streams: u32,
        scale: Scale,
    ) -> Vec<Vec<DueOperation>> {
        let survey = survey(file.path(), selection, false).expect("a trace");
        let placement = Placement::choose(&survey, &one_region(capacity), scale.copies()).expect("room");
        played(&replay(file, selection, placement, scale), streams)
    }

    fn one_region(length_bytes: u64) -> [Region; 1] {
        [Region { begin_bytes: 0, length_bytes, is_part: false, devices: vec![0, 1] }]
    }

    fn replay(file: &tempfile::NamedTempFile, selection: &Selection, placement: Placement, scale: Scale) -> Replay {
        Replay {
            path: file.path().to_owned(),
            selection: selection.clone(),
            placement: Arc::new(placement),
            lead_in_ns: 1_000,
            scale,
            laps: 1,
            lap_ns: 1_000,
            chains: None,
            is_fast: false,
            shared: Arc::default(),
            failure: Arc::default(),
        }
    }

    fn played(replay: &Replay, streams: u32) -> Vec<Vec<DueOperation>> {
        let of = |stream| {
            let (mut feed, mut found) = (replay.open(stream, streams, false), VecDeque::new());
            let mut before = usize::MAX;
            while found.len() != before {
                before = found.len();
                feed.next_batch(&mut found);
            }
            found.into_iter().collect()
        };
        let found = (0..streams).map(of).collect();
        assert_eq!(replay.failure(), None);
        found
    }

    #[test]
    fn requests_are_due_when_they_were_issued_at_their_places() {
        let found = replayed(&five(), &all(0..u64::MAX), 1 << 30, 1, Scale::Pace(1.0)).remove(0);
        let seen: Vec<_> = found
            .iter()
            .map(|due| {
                (
                    due.due_ns,
                    due.operation.kind,
                    due.operation.offset_bytes,
                    due.operation.bytes,
                    due.operation.is_durable,
                )
            })
            .collect();
        // The second device begins behind the 11 chunks of the first; ends lie at multiples of 4 KiB.
        let expected = [
            (1_100, IoKind::Read, 0, 4_096, false),
            (1_200, IoKind::Write, 51 * MIB, 4_096, true),
            (1_400, IoKind::Flush, 0, 0, false),
            (1_500, IoKind::Read, 10 * MIB - 4_096, 8_192, false),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn discards_are_replayed_where_wanted_without_what_was_kept() {
        let discard = |at_ns, offset_bytes, bytes| request(at_ns, 0, TraceKind::Discard, offset_bytes, bytes);
        let file = trace(&[
            request(100, 0, TraceKind::Read, 0, 4_096),
            discard(200, 512, 3 * 4_096),
            discard(300, 512, 4_096),
            discard(400, 2 * MIB, MIB),
            request(500, 1, TraceKind::Write, 0, 4_096),
        ]);
        assert_eq!(replayed(&file, &all(0..u64::MAX), 1 << 30, 1, Scale::Pace(1.0))[0].len(), 2);
        let with = Selection { discards: true, ..all(0..u64::MAX) };
        let survey = survey(file.path(), &with, false).expect("a trace");
        let seen = (survey.left_out, survey.lengthened, survey.longest_bytes, survey.replayed.largest_bytes);
        assert_eq!(seen, (1, 1, MIB, 4_096), "no buffer is as long as a discard");
        let found = replayed(&file, &with, 1 << 30, 1, Scale::Pace(1.0)).remove(0);
        let seen: Vec<_> =
            found.iter().map(|due| (due.operation.kind, due.operation.offset_bytes, due.operation.bytes)).collect();
        let expected = [
            (IoKind::Read, 0, 4_096),
            (IoKind::Discard, 4_096, 2 * 4_096),
            (IoKind::Discard, 2 * MIB, MIB as u32),
            // Behind what was discarded of the first device.
            (IoKind::Write, 3 * MIB, 4_096),
        ];
        assert_eq!(seen, expected);
        let too_small = Placement::choose(&survey, &one_region(MIB / 2), 1);
        assert!(too_small.is_err(), "a discard has to fit as well");
    }

    #[test]
    fn twice_as_fast_a_window_and_reads_alone() {
        let twice = replayed(&five(), &all(150..500), 1 << 30, 1, Scale::Pace(2.0)).remove(0);
        assert_eq!(twice.iter().map(|due| due.due_ns).collect::<Vec<_>>(), [1_025, 1_125]);
        let reads = Selection { reads_only: true, ..all(0..u64::MAX) };
        assert_eq!(replayed(&five(), &reads, 1 << 30, 1, Scale::Pace(1.0))[0].len(), 2);
        let nothing = survey(five().path(), &all(600..700), false);
        assert!(matches!(nothing, Err(TraceError::Empty { .. })));
    }

    #[test]
    fn streams_share_the_requests() {
        let found = replayed(&five(), &all(0..u64::MAX), 1 << 30, 3, Scale::Pace(1.0));
        let mut due: Vec<u64> = found.iter().flatten().map(|due| due.due_ns).collect();
        due.sort_unstable();
        assert_eq!(due, [1_100, 1_200, 1_400, 1_500]);
        assert!(found.iter().all(|stream| stream.len() <= 2));
    }

    #[test]
    fn what_does_not_fit_is_moved_together_and_then_folded() {
        let survey = survey(five().path(), &all(0..u64::MAX), false).unwrap();
        assert_eq!(survey.chunks.as_deref(), Some(&[(0, 0), (0, 9), (0, 10), (1, 40)][..]));
        let kind = |capacity| {
            Placement::choose(&survey, &one_region(capacity), 1).ok().map(|placement| placement.kind().name())
        };
        assert_eq!(kind(51 * MIB + 4_096), Some("as recorded"));
        assert_eq!(kind(51 * MIB), Some("compact"));
        assert_eq!(kind(4 * MIB), Some("compact"));
        assert_eq!(kind(3 * MIB), Some("folded"));
        assert_eq!(kind(MIB - 1), None);
        let compact = Placement::choose(&survey, &one_region(4 * MIB), 1).unwrap();
        // The request over the edge of two chunks still goes from one to the next.
        assert_eq!(compact.place(0, 0, 10 * MIB - 4_096, 8_192), 2 * MIB - 4_096);
        assert_eq!(compact.place(0, 1, 40 * MIB, 4_096), 3 * MIB);
        assert_eq!(compact.shared_pct(&survey), Some(0.0));
        let folded = Placement::choose(&survey, &one_region(2 * MIB), 1).unwrap();
        let moved = |placement| moved_hit_points(five().path(), &all(0..u64::MAX), placement).unwrap().unwrap();
        // What is moved together is read again as often and as soon.
        assert_eq!(moved(&compact), 0.0);
        assert_eq!(folded.place(0, 0, 10 * MIB - 4_096, 8_192), 2 * MIB - 8_192, "it ends at the end");
        // Chunks 0 and 10 of the first device share a place, and 9 has the other with 11 + 40 of the second.
        assert_eq!(folded.shared_pct(&survey), Some(100.0));
    }

    #[test]
    fn what_is_replayed_is_counted_beside_what_was_recorded() {
        let survey = survey(five().path(), &all(0..u64::MAX), false).unwrap();
        assert_eq!((survey.recorded.total(), survey.replayed.total(), survey.lengthened), (5, 4, 1));
        assert_eq!(survey.by_second, [4]);
        assert_eq!(survey.latencies[TraceKind::Read.index()].count(), 2);
    }

    #[test]
    fn copies_lie_behind_each_other_and_come_a_little_later() {
        let scale = Scale::Copies(2.5);
        assert_eq!((scale.copies(), scale.pace()), (3, 1.0));
        let found = replayed(&five(), &all(0..u64::MAX), 1 << 30, 1, scale).remove(0);
        assert!(found.windows(2).all(|pair| pair[0].due_ns <= pair[1].due_ns));
        let writes: Vec<_> = found.iter().filter(|due| due.operation.kind == IoKind::Write).collect();
        let seen: Vec<_> = writes.iter().map(|due| (due.due_ns, due.operation.offset_bytes / MIB)).collect();
        // The devices end in chunk 11 and 41, so a copy spans 52 of them. The third copy has every second request.
        assert_eq!(seen, [(1_200, 51), (10_001_200, 51 + 52), (20_001_200, 51 + 104)]);
        assert_eq!(found.len(), 10);
        // Without the room of three, touched parts are moved together: four of each copy.
        let found = replayed(&five(), &all(0..u64::MAX), 12 * MIB, 1, scale).remove(0);
        let places: Vec<_> = found.iter().map(|due| due.operation.offset_bytes / MIB).collect();
        assert_eq!(places, [0, 3, 0, 1, 4, 7, 0, 5, 11, 9], "the flush has no place");
    }

    #[test]
    fn laps_follow_each_other() {
        let file = five();
        let survey = survey(file.path(), &all(0..u64::MAX), false).unwrap();
        let placement = Placement::choose(&survey, &one_region(1 << 30), 1).unwrap();
        let twice = Replay { laps: 2, ..replay(&file, &all(0..u64::MAX), placement, Scale::Pace(2.0)) };
        let due: Vec<u64> = played(&twice, 1).remove(0).iter().map(|due| due.due_ns).collect();
        assert_eq!(due, [1_050, 1_100, 1_200, 1_250, 1_550, 1_600, 1_700, 1_750]);
    }

    #[test]
    fn devices_go_to_regions_of_their_own_with_their_flushes_or_are_left_out() {
        let file = five();
        let survey = survey(file.path(), &all(0..u64::MAX), false).unwrap();
        let region = |begin, length, device| Region {
            begin_bytes: begin * MIB,
            length_bytes: length * MIB,
            is_part: true,
            devices: vec![device],
        };
        let regions = [region(0, 64, 1), region(64, 3, 0)];
        let placement = Placement::choose(&survey, &regions, 1).unwrap();
        assert_eq!((placement.kind().name(), placement.size_bytes()), ("compact", 67 * MIB));
        let found = played(&replay(&file, &all(0..u64::MAX), placement, Scale::Pace(1.0)), 1).remove(0);
        let seen: Vec<_> = found.iter().map(|due| (due.operation.offset_bytes, due.operation.bytes)).collect();
        let expected = [(64 * MIB, 4_096), (40 * MIB, 4_096), (0, 1), (66 * MIB - 4_096, 8_192)];
        assert_eq!(seen, expected, "a flush is of its device's region alone");
        let too_small = Placement::choose(&survey, &[region(0, 64, 1), region(64, 0, 0)], 1);
        assert_eq!(too_small.unwrap_err(), TooSmall { region: 1, length_bytes: 0 });
        let alone = Selection { without: BTreeSet::from([0]), ..all(0..u64::MAX) };
        let survey = super::survey(file.path(), &alone, false).unwrap();
        assert_eq!((survey.recorded.total(), survey.replayed.total(), survey.left_out), (5, 2, 0));
    }

    #[test]
    fn as_fast_as_possible_all_streams_take_from_one_place() {
        let file = five();
        let survey = survey(file.path(), &all(0..u64::MAX), false).unwrap();
        // Up to the last issue, after 401 ns: one for 100 ns, two for 200, three for 100, then four. The discard is not replayed.
        assert!((survey.depth.unwrap() - 804.0 / 401.0).abs() < 0.001, "{:?}", survey.depth);
        let placement = Placement::choose(&survey, &one_region(1 << 30), 1).unwrap();
        let fast = Replay { is_fast: true, ..replay(&file, &all(0..u64::MAX), placement, Scale::Pace(1.0)) };
        let (mut one, mut other) = (fast.open(0, 2, false), fast.open(1, 2, false));
        let (mut first, mut second, mut rehearsed) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        fast.open(0, 1, true).next_batch(&mut rehearsed);
        // In turns, beyond the end.
        for _ in 0..4 {
            one.next_batch(&mut first);
            other.next_batch(&mut second);
        }
        assert_eq!((rehearsed.len(), first.len(), second.len()), (4, 2, 2), "nothing is sent twice");
        assert!(first.iter().all(|due| !second.contains(due)));
    }

    #[test]
    fn chains_stay_in_one_lane_and_keep_their_gaps() {
        let log = |number: u64| request(number * 2_000, 0, TraceKind::Write, number * 8_192, 8_192);
        let other = |number: u64| request(number * 2_000 + 7, 1, TraceKind::Read, (number * 7_919 % 64) << 20, 4_096);
        let requests: Vec<_> = (0..100).flat_map(|number| [log(number), other(number)]).collect();
        let file = trace(&requests);
        let survey = survey(file.path(), &all(0..u64::MAX), true).unwrap();
        let chains = survey.chains.clone().unwrap();
        assert_eq!((chains.count(), chains.requests), (1, 99));
        let placement = Placement::choose(&survey, &one_region(1 << 30), 1).unwrap();
        let ordered =
            Replay { chains: Some(Arc::new(chains)), ..replay(&file, &all(0..u64::MAX), placement, Scale::Pace(2.0)) };
        let found = played(&ordered, 3);
        assert_eq!(found.iter().map(Vec::len).sum::<usize>(), 200);
        let chained = |stream: &&Vec<DueOperation>| stream.iter().any(|due| due.after.is_some());
        let chained: Vec<_> = found.iter().filter(chained).collect();
        let afters: Vec<_> = chained[0].iter().filter_map(|due| due.after).collect();
        assert_eq!((chained.len(), afters.len()), (1, 99), "all of the chain are in one lane");
        // Issued 2,000 ns apart with latencies of 1,000, at twice the pace.
        assert!(afters.iter().all(|after| after.chain == afters[0].chain && after.gap_ns == 500));
    }
}
