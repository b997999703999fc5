//! What a trace is like.
//!
//! A [`Profiler`] sees each request once, in the order of the trace, and its memory does not grow with the trace. What cannot be
//! counted in bounded memory is sampled, and the [`Profile`] says so. Its largest tables are those of chunks (150 MiB at most)
//! and, where a trace has many devices, of what is in flight on each.

mod blocks;
mod burst;
pub(crate) mod depth;
mod device;
mod hash;
mod hot;
mod kinds;
mod order;
mod reuse;
mod series;
mod sizes;
pub(crate) mod streams;
#[cfg(test)]
mod tests;

pub use blocks::{CachePoint, Curve, Footprint};
pub use burst::Burst;
pub use depth::Depth;
pub use device::{DeviceProfile, Extent};
pub use hot::HotSpots;
pub use kinds::{ByKind, Counted};
pub use series::{MAX_POINTS, Over, Point, Second, Series, Worst};
pub use sizes::{OfSize, Sizes};
pub use streams::{LogStream, Runs, Sequential};

use model::record::Histogram;
use model::trace::{TraceEnd, TraceHeader, TraceKind, TraceRequest};
use serde::Serialize;

use blocks::Blocks;
use burst::Windows;
use depth::InFlight;
use device::{Devices, place_of};
use hot::Chunks;
use kinds::share;
use series::{Clock, SECOND_NS, Seconds};
use sizes::SizeCounts;
use streams::RunCounts;

/// Times later than this (146 years) count as this: they are damage, and sums with them must not overflow.
const LATEST_NS: u64 = 1 << 62;

/// The miss-ratio curve alone, of requests in blocks of 4 KiB.
pub(crate) struct Reuse(Blocks);

impl Default for Reuse {
    fn default() -> Self {
        let ProfileOptions { block_bytes, sampled_blocks, .. } = ProfileOptions::default();
        Self(Blocks::new(block_bytes.ilog2(), sampled_blocks))
    }
}

impl Reuse {
    pub(crate) fn add(&mut self, device: u16, is_write: bool, offset_bytes: u64, bytes: u64) {
        self.0.add(device, is_write, offset_bytes, bytes);
    }

    pub(crate) fn finish(self) -> Curve {
        self.0.finish(1).curve
    }
}

/// How a trace is profiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileOptions {
    /// The unit of footprints, overwrites and the cache; rounded up to a power of two between 512 bytes and 1 GiB.
    pub block_bytes: u64,
    /// The unit of hot spots; rounded likewise.
    pub chunk_bytes: u64,
    /// Blocks that are sampled at most, at least 1,024.
    pub sampled_blocks: usize,
    /// Chunks that are counted at most, at least 1,024.
    pub counted_chunks: usize,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        Self { block_bytes: 4_096, chunk_bytes: 1 << 20, sampled_blocks: 1 << 16, counted_chunks: 1 << 22 }
    }
}

/// What a trace is like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// The program and form that the trace comes from.
    pub source: String,
    /// How long was recorded; where the trace does not say, up to its last request.
    pub duration_ns: u64,
    /// Requests that the recorder lost, as far as it counted.
    pub lost_requests: Option<u64>,
    /// Requests that were issued earlier than the one before them; they count as issued with it.
    pub out_of_order_requests: u64,
    /// All requests.
    pub requests: u64,
    /// Requests and bytes by kind.
    pub counted: ByKind<Counted>,
    /// Of the writes, those that are FUA.
    pub fua_writes: Counted,
    /// Reads over reads and writes; absent without either.
    pub read_requests_share: Option<f64>,
    /// Their bytes over those of both.
    pub read_bytes_share: Option<f64>,
    /// Rates over the whole duration; absent where it is zero.
    pub mean_rates: Option<Rates>,
    /// Requests by the time of their issue.
    pub series: Series,
    /// The second with most reads and writes; absent without requests.
    pub busiest_second: Option<Second>,
    /// The second with most of their bytes.
    pub busiest_second_by_bytes: Option<Second>,
    /// Lengths by kind; absent where there are none.
    pub sizes: ByKind<Option<Sizes>>,
    /// How sequential reads are.
    pub sequential_reads: Option<Sequential>,
    /// How sequential writes are.
    pub sequential_writes: Option<Sequential>,
    /// Runs of reads.
    pub read_runs: Option<Runs>,
    /// Runs of writes.
    pub write_runs: Option<Runs>,
    /// Streams of at least 64 sequential writes: the (at most 16) with most bytes.
    pub logs: Vec<LogStream>,
    /// Requests in flight on all devices together; absent where no latency is known.
    pub depth: Option<Depth>,
    /// How unevenly requests arrive, by the length of windows.
    pub bursts: Vec<Burst>,
    /// How unevenly requests are spread over the devices; absent without reads and writes.
    pub hot_spots: Option<HotSpots>,
    /// Distinct blocks read or written; absent without any.
    pub footprint: Option<Footprint>,
    /// How data is written and made durable.
    pub writes: WritePattern,
    /// Times between the issue of a request and the next, of any kind.
    pub inter_arrival: Option<Histogram>,
    /// Between two of the same kind.
    pub inter_arrival_by_kind: ByKind<Option<Histogram>>,
    /// Latencies, of those requests where they are known; absent where none is.
    pub latency: ByKind<Option<Histogram>>,
    /// What a cache would answer of the reads.
    pub curve: Curve,
    /// The devices, in the order of their numbers.
    pub devices: Vec<DeviceProfile>,
}

/// Means over the duration of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rates {
    /// Requests of all kinds.
    pub requests_per_s: f64,
    /// Reads.
    pub reads_per_s: f64,
    /// Writes.
    pub writes_per_s: f64,
    /// Bytes read.
    pub read_bytes_per_s: f64,
    /// Bytes written.
    pub write_bytes_per_s: f64,
}

/// How data is written and made durable.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WritePattern {
    /// Flushes.
    pub flushes: u64,
    /// FUA writes over writes; absent without writes.
    pub fua_share: Option<f64>,
    /// The median of the writes of a device between two of its flushes; absent with fewer than two.
    pub median_writes_between_flushes: Option<u64>,
    /// Blocks written that the trace had written before, over all blocks written; absent without (sampled) writes.
    pub overwritten_share: Option<f64>,
}

impl Profile {
    /// In which intervals of the series a limit of reads and writes per second, or of their bytes per second, was exceeded.
    pub fn over(&self, iops: Option<f64>, bytes_per_s: Option<f64>) -> Over {
        self.series.over(iops, bytes_per_s)
    }
}

/// What is kept for each kind of request.
#[derive(Debug, Default)]
struct OfKind {
    counted: Counted,
    sizes: SizeCounts,
    last_ns: Option<u64>,
    gaps: Histogram,
    latencies: Histogram,
}

/// Reads the requests of a trace, once.
#[derive(Debug)]
pub struct Profiler {
    now_ns: u64,
    first_ns: Option<u64>,
    requests: u64,
    out_of_order: u64,
    fua_writes: Counted,
    kinds: ByKind<OfKind>,
    gaps: Histogram,
    clock: Clock,
    windows: Windows,
    chunks: Chunks,
    blocks: Blocks,
    read_runs: RunCounts,
    write_runs: RunCounts,
    devices: Devices,
    between_flushes: Histogram,
    /// The place of the only device so far whose latencies are known.
    sole: Option<usize>,
    /// What all devices together have in flight, once there are two.
    in_flight: Option<InFlight>,
}

impl Profiler {
    /// Before the first request.
    pub fn new(options: ProfileOptions) -> Self {
        let bits = |bytes: u64| bytes.clamp(512, 1 << 30).next_power_of_two().ilog2();
        Self {
            now_ns: 0,
            first_ns: None,
            requests: 0,
            out_of_order: 0,
            fua_writes: Counted::default(),
            kinds: ByKind::default(),
            gaps: Histogram::default(),
            clock: Clock::new(),
            windows: Windows::new(),
            chunks: Chunks::new(bits(options.chunk_bytes), options.counted_chunks.max(1_024)),
            blocks: Blocks::new(bits(options.block_bytes), options.sampled_blocks.clamp(1_024, 1 << 22)),
            read_runs: RunCounts::new(false),
            write_runs: RunCounts::new(true),
            devices: Devices::default(),
            between_flushes: Histogram::default(),
            sole: None,
            in_flight: None,
        }
    }

    /// The next request of the trace.
    pub fn add(&mut self, request: &TraceRequest) {
        let at_ns = request.at_ns.min(LATEST_NS);
        self.out_of_order += u64::from(at_ns < self.now_ns);
        let now_ns = at_ns.max(self.now_ns);
        match self.first_ns {
            Some(_) => self.gaps.record(now_ns - self.now_ns),
            None => self.first_ns = Some(now_ns),
        }
        self.now_ns = now_ns;
        self.requests += 1;

        let kind = self.kinds.get_mut(request.kind);
        kind.counted.add(request.bytes);
        kind.sizes.add(request.bytes);
        if let Some(last_ns) = kind.last_ns.replace(now_ns) {
            kind.gaps.record(now_ns - last_ns);
        }
        self.clock.add(now_ns, request.kind, request.bytes);
        self.windows.add(now_ns);
        let place = place_of(request.device);
        if let Some(latency_ns) = request.latency_ns {
            kind.latencies.record(latency_ns);
            let sole = *self.sole.get_or_insert(place);
            if sole != place && self.in_flight.is_none() {
                // Until now it was all of them.
                self.in_flight = Some(self.devices.of(sole).in_flight.clone());
            }
        }

        let device = self.devices.of(place);
        device.add(request, &mut self.between_flushes);
        if let Some(latency_ns) = request.latency_ns {
            if let Some(in_flight) = &mut self.in_flight {
                in_flight.issue(now_ns, latency_ns);
            }
            device.in_flight.issue(now_ns, latency_ns);
        }
        let is_write = request.kind == TraceKind::Write;
        if !is_write && request.kind != TraceKind::Read {
            return;
        }
        if is_write {
            device.writes.add(now_ns, request, &mut self.write_runs);
            if request.is_fua {
                self.fua_writes.add(request.bytes);
            }
        } else {
            device.reads.add(now_ns, request, &mut self.read_runs);
        }
        self.chunks.add(request.device, request.offset_bytes);
        self.blocks.add(request.device, is_write, request.offset_bytes, request.bytes);
    }

    /// After the last request. `header` is as the trace has it then, with all devices.
    pub fn finish(mut self, header: &TraceHeader, end: &TraceEnd) -> Profile {
        let duration_ns = end.duration_ns.unwrap_or(0).min(LATEST_NS).max(self.now_ns);
        let Seconds { series, by_requests, by_bytes } = self.clock.finish(duration_ns);
        let touched = self.blocks.finish(device::PLACES);
        let runs = (&mut self.read_runs, &mut self.write_runs);
        let devices = self.devices.finish(header, duration_ns, &touched.by_device, runs);
        let depth = match self.in_flight {
            Some(in_flight) => in_flight.finish(duration_ns),
            None => devices.iter().find_map(|device| device.depth.clone()),
        };
        let filled = |mut histogram: Histogram| {
            histogram.pack();
            (histogram.count() > 0).then_some(histogram)
        };
        let (mut sizes, mut gaps, mut latency) = (ByKind::default(), ByKind::default(), ByKind::default());
        let mut counted: ByKind<Counted> = ByKind::default();
        for kind in TraceKind::ALL {
            let of_kind = std::mem::take(self.kinds.get_mut(kind));
            *counted.get_mut(kind) = of_kind.counted;
            *sizes.get_mut(kind) = of_kind.sizes.finish();
            *gaps.get_mut(kind) = filled(of_kind.gaps);
            *latency.get_mut(kind) = filled(of_kind.latencies);
        }
        let (reads, writes) = (counted.read, counted.write);
        let both = reads.plus(writes);
        let seconds = duration_ns as f64 / SECOND_NS as f64;
        let mean_rates = (duration_ns > 0).then(|| Rates {
            requests_per_s: self.requests as f64 / seconds,
            reads_per_s: reads.requests as f64 / seconds,
            writes_per_s: writes.requests as f64 / seconds,
            read_bytes_per_s: reads.bytes as f64 / seconds,
            write_bytes_per_s: writes.bytes as f64 / seconds,
        });
        let (read_runs, _) = self.read_runs.finish(reads.requests);
        let (write_runs, logs) = self.write_runs.finish(writes.requests);
        Profile {
            source: header.source.clone(),
            duration_ns,
            lost_requests: end.lost,
            out_of_order_requests: self.out_of_order,
            requests: self.requests,
            fua_writes: self.fua_writes,
            read_requests_share: share(reads.requests, both.requests),
            read_bytes_share: share(reads.bytes, both.bytes),
            mean_rates,
            series,
            busiest_second: by_requests,
            busiest_second_by_bytes: by_bytes,
            sizes,
            sequential_reads: streams::together(devices.iter().map(|device| &device.sequential_reads), reads),
            sequential_writes: streams::together(devices.iter().map(|device| &device.sequential_writes), writes),
            read_runs,
            write_runs,
            logs,
            depth,
            bursts: self.windows.finish(duration_ns),
            hot_spots: self.chunks.finish(),
            footprint: touched.footprint,
            writes: WritePattern {
                flushes: counted.flush.requests,
                fua_share: share(self.fua_writes.requests, writes.requests),
                median_writes_between_flushes: self.between_flushes.quantile_ns(0.5),
                overwritten_share: touched.overwritten_share,
            },
            counted,
            inter_arrival: filled(self.gaps),
            inter_arrival_by_kind: gaps,
            latency,
            curve: touched.curve,
            devices,
        }
    }
}
