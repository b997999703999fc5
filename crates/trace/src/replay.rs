//! The requests of a trace on their way to other storage: which of them, when, and where.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{BATCH, TraceError, TraceFile, TraceSource, TraceSummary};
use model::record::{Histogram, ReplayPlacement};
use model::trace::{TraceEnd, TraceHeader, TraceKind, TraceRequest};
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
    /// Whether writes and flushes are left out.
    pub reads_only: bool,
    /// What offsets and lengths become multiples of, in bytes.
    pub unit_bytes: u32,
}

impl Selection {
    /// Whether requests of a kind are left out on purpose.
    fn is_unwanted(&self, kind: TraceKind) -> bool {
        kind == TraceKind::Discard || (self.reads_only && kind != TraceKind::Read)
    }

    /// What becomes of a request: absent where it is left out.
    fn of(&self, request: &TraceRequest) -> Option<IoOperation> {
        let unit = u64::from(self.unit_bytes);
        let kind = match request.kind {
            TraceKind::Read => IoKind::Read,
            TraceKind::Write | TraceKind::Flush if self.reads_only => return None,
            TraceKind::Write => IoKind::Write,
            TraceKind::Flush => IoKind::Flush,
            TraceKind::Discard => return None,
        };
        if kind == IoKind::Flush {
            return Some(IoOperation { kind, offset_bytes: 0, bytes: 0, is_durable: false });
        }
        let begin = request.offset_bytes - request.offset_bytes % unit;
        let end = request.offset_bytes.saturating_add(request.bytes).checked_next_multiple_of(unit)?;
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
    /// Requests that cannot be replayed: without bytes, or longer than 4 GiB.
    pub left_out: u64,
    /// Requests replayed whose ends were moved to multiples of the unit.
    pub lengthened: u64,
    /// Requests replayed, by second of the window.
    pub by_second: Vec<u32>,
    /// Chunks that they touch, in their order; absent where they are more than can be remembered.
    pub chunks: Option<Vec<(u16, u64)>>,
}

/// Seconds of a window that are kept.
const MAX_SECONDS: usize = 7 * 86_400;

/// Reads the window of a trace.
///
/// # Errors
/// [`TraceError`], and [`TraceError::Empty`] where nothing is left to replay.
pub fn survey(path: &Path, selection: &Selection) -> Result<Survey, TraceError> {
    let mut file = TraceFile::open(path)?;
    file.skip_to(selection.window_ns.start);
    let whole_ns = file.summary().last_ns.saturating_add(1);
    let mut survey = Survey { header: file.header().clone(), end: file.end(), whole_ns, ..Survey::default() };
    let (mut batch, mut chunks) = (Vec::with_capacity(BATCH), Some(BTreeSet::new()));
    let mut last = None;
    loop {
        batch.clear();
        file.next_batch(&mut batch)?;
        let Some(first) = batch.first() else { break };
        if first.at_ns >= selection.window_ns.end {
            break;
        }
        for request in batch.iter().filter(|request| selection.window_ns.contains(&request.at_ns)) {
            survey.recorded.add(request);
            let Some(operation) = selection.of(request) else {
                survey.left_out += u64::from(!selection.is_unwanted(request.kind));
                continue;
            };
            let (offset_bytes, bytes) = (operation.offset_bytes, u64::from(operation.bytes));
            survey.replayed.add(&TraceRequest { offset_bytes, bytes, ..*request });
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
                continue;
            }
            let touched = offset_bytes / CHUNK_BYTES..=(offset_bytes + bytes - 1) / CHUNK_BYTES;
            let one = (request.device, *touched.start());
            // Neighbours of the one before are the usual case.
            if last == Some(one) && touched.start() == touched.end() {
                continue;
            }
            last = Some(one);
            if let Some(known) = &mut chunks {
                known.extend(touched.map(|chunk| (request.device, chunk)));
                if known.len() > MAX_CHUNKS {
                    chunks = None;
                }
            }
        }
    }
    if survey.replayed.total() == 0 {
        return Err(TraceError::Empty { path: path.display().to_string() });
    }
    survey.chunks = chunks.map(|chunks| chunks.into_iter().collect());
    Ok(survey)
}

/// Where requests go.
#[derive(Clone, PartialEq, Eq)]
pub enum Placement {
    /// Each device at an address of its own, everything in it where it was.
    AsRecorded {
        /// Where each device begins, in bytes.
        bases_bytes: Vec<u64>,
    },
    /// The parts that are touched side by side, in their order: what is never touched takes no space.
    Compact {
        /// Where each chunk goes, in chunks.
        chunks: HashMap<(u16, u64), u64>,
    },
    /// As recorded, modulo the size of the target: places that were apart become one.
    Folded {
        /// Where each device begins, in bytes.
        bases_bytes: Vec<u64>,
        /// Size of the target, a multiple of a chunk.
        size_bytes: u64,
    },
}

impl fmt::Debug for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().name())
    }
}

impl Placement {
    /// The first of these that fits into a target of so many bytes: as recorded, compact, folded. Absent where not even a chunk fits.
    pub fn choose(survey: &Survey, capacity_bytes: u64) -> Option<Self> {
        let mut next = 0_u64;
        let bases_bytes: Vec<u64> = survey
            .replayed
            .extents_bytes
            .iter()
            .map(|extent| {
                let base = next;
                // Far beyond any device, and still a multiple of a chunk.
                next =
                    next.saturating_add(extent.checked_next_multiple_of(CHUNK_BYTES).unwrap_or(1 << 63)).min(1 << 63);
                base
            })
            .collect();
        let end = bases_bytes
            .iter()
            .zip(&survey.replayed.extents_bytes)
            .map(|(base, extent)| base.saturating_add(*extent))
            .max();
        if end.is_some_and(|end| end <= capacity_bytes) {
            return Some(Self::AsRecorded { bases_bytes });
        }
        let room = capacity_bytes / CHUNK_BYTES;
        match &survey.chunks {
            Some(chunks) if chunks.len() as u64 <= room => {
                Some(Self::Compact { chunks: chunks.iter().copied().zip(0..).collect() })
            }
            _ => (room > 0 && survey.replayed.largest_bytes <= room * CHUNK_BYTES)
                .then_some(Self::Folded { bases_bytes, size_bytes: room * CHUNK_BYTES }),
        }
    }

    /// Which of them it is, for the record.
    pub fn kind(&self) -> ReplayPlacement {
        match self {
            Self::AsRecorded { .. } => ReplayPlacement::AsRecorded,
            Self::Compact { .. } => ReplayPlacement::Compact,
            Self::Folded { .. } => ReplayPlacement::Folded,
        }
    }

    /// Bytes of the target that requests can touch.
    pub fn size_bytes(&self, survey: &Survey) -> u64 {
        match self {
            Self::AsRecorded { bases_bytes } => {
                let ends = bases_bytes.iter().zip(&survey.replayed.extents_bytes);
                ends.map(|(base, extent)| base + extent).max().unwrap_or(0)
            }
            Self::Compact { chunks } => chunks.len() as u64 * CHUNK_BYTES,
            Self::Folded { size_bytes, .. } => *size_bytes,
        }
    }

    /// Touched chunks that share their place with another, in each hundred: what folding loses. Absent where that is not known.
    pub fn shared_pct(&self, survey: &Survey) -> Option<f64> {
        let Self::Folded { .. } = self else { return Some(0.0) };
        let chunks = survey.chunks.as_ref()?;
        let mut places: HashMap<u64, u64> = HashMap::new();
        for (device, chunk) in chunks {
            *places.entry(self.place(*device, chunk * CHUNK_BYTES, 0)).or_default() += 1;
        }
        let shared: u64 = places.values().filter(|count| **count > 1).sum();
        Some(shared as f64 * 100.0 / chunks.len().max(1) as f64)
    }

    /// Where a request begins.
    fn place(&self, device: u16, offset_bytes: u64, bytes: u64) -> u64 {
        match self {
            Self::AsRecorded { bases_bytes } => {
                bases_bytes.get(usize::from(device)).copied().unwrap_or(0).saturating_add(offset_bytes)
            }
            Self::Compact { chunks } => {
                // A request of several chunks touches them all, so that they are neighbours here as well.
                let chunk = chunks.get(&(device, offset_bytes / CHUNK_BYTES)).copied().unwrap_or(0);
                chunk * CHUNK_BYTES + offset_bytes % CHUNK_BYTES
            }
            Self::Folded { bases_bytes, size_bytes } => {
                let base = bases_bytes.get(usize::from(device)).copied().unwrap_or(0);
                let at = base.wrapping_add(offset_bytes) % size_bytes;
                // One that would go beyond the end ends there.
                at.min(size_bytes - bytes)
            }
        }
    }
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
    /// How many times as fast.
    pub times: f64,
    /// Why the trace could not be read to its end, if so.
    pub failure: Arc<Mutex<Option<String>>>,
}

impl Replay {
    /// Why the trace could not be read to its end while it was replayed, if so.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the requests of one stream until its load has ended.
    fn read(&self, stream: u64, streams: u64, out: &SyncSender<Vec<DueOperation>>) -> Result<(), TraceError> {
        let Self { selection, placement, lead_in_ns, times, .. } = self;
        let mut file = TraceFile::open(&self.path)?;
        file.skip_to(selection.window_ns.start);
        let mut batch = Vec::with_capacity(BATCH);
        let mut number = 0;
        loop {
            batch.clear();
            file.next_batch(&mut batch)?;
            if batch.first().is_none_or(|first| first.at_ns >= selection.window_ns.end) {
                return Ok(());
            }
            let mut due = Vec::with_capacity(batch.len() / streams as usize + 1);
            for request in batch.iter().filter(|request| selection.window_ns.contains(&request.at_ns)) {
                let Some(operation) = selection.of(request) else { continue };
                number += 1;
                if number % streams != stream {
                    continue;
                }
                let after_ns = (request.at_ns - selection.window_ns.start) as f64 / times;
                let place = match operation.kind {
                    IoKind::Flush => 0,
                    _ => placement.place(request.device, operation.offset_bytes, u64::from(operation.bytes)),
                };
                let operation = IoOperation { offset_bytes: place, ..operation };
                due.push(DueOperation { due_ns: lead_in_ns.saturating_add(after_ns as u64), operation });
            }
            if !due.is_empty() && out.send(due).is_err() {
                return Ok(());
            }
        }
    }
}

impl ReplaySource for Replay {
    fn open(&self, stream: u32, streams: u32) -> Box<dyn ReplayFeed> {
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
        Box::new(Feed(batches))
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
        Selection { window_ns, reads_only: false, unit_bytes: 4_096 }
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
        times: f64,
    ) -> Vec<Vec<DueOperation>> {
        let survey = survey(file.path(), selection).expect("a trace");
        let placement = Arc::new(Placement::choose(&survey, capacity).expect("room"));
        let (path, failure) = (file.path().to_owned(), Arc::default());
        let replay = Replay { path, selection: selection.clone(), placement, lead_in_ns: 1_000, times, failure };
        let of = |stream| {
            let (mut feed, mut found) = (replay.open(stream, streams), VecDeque::new());
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
        let found = replayed(&five(), &all(0..u64::MAX), 1 << 30, 1, 1.0).remove(0);
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
    fn twice_as_fast_a_window_and_reads_alone() {
        let twice = replayed(&five(), &all(150..500), 1 << 30, 1, 2.0).remove(0);
        assert_eq!(twice.iter().map(|due| due.due_ns).collect::<Vec<_>>(), [1_025, 1_125]);
        let reads = Selection { reads_only: true, ..all(0..u64::MAX) };
        assert_eq!(replayed(&five(), &reads, 1 << 30, 1, 1.0)[0].len(), 2);
        let nothing = survey(five().path(), &all(600..700));
        assert!(matches!(nothing, Err(TraceError::Empty { .. })));
    }

    #[test]
    fn streams_share_the_requests() {
        let found = replayed(&five(), &all(0..u64::MAX), 1 << 30, 3, 1.0);
        let mut due: Vec<u64> = found.iter().flatten().map(|due| due.due_ns).collect();
        due.sort_unstable();
        assert_eq!(due, [1_100, 1_200, 1_400, 1_500]);
        assert!(found.iter().all(|stream| stream.len() <= 2));
    }

    #[test]
    fn what_does_not_fit_is_moved_together_and_then_folded() {
        let survey = survey(five().path(), &all(0..u64::MAX)).unwrap();
        assert_eq!(survey.chunks.as_deref(), Some(&[(0, 0), (0, 9), (0, 10), (1, 40)][..]));
        let kind = |capacity| Placement::choose(&survey, capacity).map(|placement| placement.kind().name());
        assert_eq!(kind(51 * MIB + 4_096), Some("as recorded"));
        assert_eq!(kind(51 * MIB), Some("compact"));
        assert_eq!(kind(4 * MIB), Some("compact"));
        assert_eq!(kind(3 * MIB), Some("folded"));
        assert_eq!(kind(MIB - 1), None);
        let compact = Placement::choose(&survey, 4 * MIB).unwrap();
        // The request over the edge of two chunks still goes from one to the next.
        assert_eq!(compact.place(0, 10 * MIB - 4_096, 8_192), 2 * MIB - 4_096);
        assert_eq!(compact.place(1, 40 * MIB, 4_096), 3 * MIB);
        assert_eq!(compact.shared_pct(&survey), Some(0.0));
        let folded = Placement::choose(&survey, 2 * MIB).unwrap();
        assert_eq!(folded.place(0, 10 * MIB - 4_096, 8_192), 2 * MIB - 8_192, "it ends at the end");
        // Chunks 0 and 10 of the first device share a place, and 9 has the other with 11 + 40 of the second.
        assert_eq!(folded.shared_pct(&survey), Some(100.0));
    }

    #[test]
    fn what_is_replayed_is_counted_beside_what_was_recorded() {
        let survey = survey(five().path(), &all(0..u64::MAX)).unwrap();
        assert_eq!((survey.recorded.total(), survey.replayed.total(), survey.lengthened), (5, 4, 1));
        assert_eq!(survey.by_second, [4]);
        assert_eq!(survey.latencies[TraceKind::Read.index()].count(), 2);
    }
}
