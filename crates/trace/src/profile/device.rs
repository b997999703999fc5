//! What is known of each device of a trace.

use model::record::Histogram;
use model::trace::{TraceHeader, TraceKind, TraceRequest};
use serde::Serialize;

use super::blocks::Footprint;
use super::depth::{Depth, InFlight};
use super::kinds::{ByKind, Counted};
use super::streams::{RunCounts, Sequential, Streams};

/// Devices that are profiled apart. Those with higher numbers are profiled together, as the last of these.
pub(super) const PLACES: usize = 256;

/// A device, and the requests that it had.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceProfile {
    /// Its place in the trace's header. The one with number 255 also has all later ones.
    pub number: usize,
    /// What the trace calls it.
    pub name: Option<String>,
    /// Its size, where the trace says it.
    pub size_bytes: Option<u64>,
    /// Requests and bytes by kind.
    pub counted: ByKind<Counted>,
    /// From the first byte to the last that was read or written; absent without either.
    pub extent: Option<Extent>,
    /// Distinct blocks read or written; absent without any, or where the sample of all devices has none of this one.
    pub footprint: Option<Footprint>,
    /// How sequential reads are; absent without any.
    pub sequential_reads: Option<Sequential>,
    /// How sequential writes are; absent without any.
    pub sequential_writes: Option<Sequential>,
    /// Requests in flight; absent where no latency is known.
    pub depth: Option<Depth>,
}

/// A range of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Extent {
    /// Its first byte.
    pub begin_bytes: u64,
    /// The byte after its last one.
    pub end_bytes: u64,
}

/// What is kept of a device.
#[derive(Debug, Default)]
pub(super) struct Device {
    counted: ByKind<Counted>,
    extent: Option<Extent>,
    pub(super) reads: Streams,
    pub(super) writes: Streams,
    pub(super) in_flight: InFlight,
    /// Writes after the last flush; absent before the first one.
    writes_since_flush: Option<u64>,
}

impl Device {
    #[inline]
    pub(super) fn add(&mut self, request: &TraceRequest, between_flushes: &mut Histogram) {
        self.counted.get_mut(request.kind).add(request.bytes);
        match request.kind {
            TraceKind::Read => {}
            TraceKind::Write => {
                if let Some(writes) = &mut self.writes_since_flush {
                    *writes += 1;
                }
            }
            TraceKind::Flush => {
                if let Some(writes) = self.writes_since_flush.replace(0) {
                    between_flushes.record(writes);
                }
                return;
            }
            TraceKind::Discard => return,
        }
        let (begin, end) = (request.offset_bytes, request.offset_bytes.saturating_add(request.bytes));
        let extent = self.extent.get_or_insert(Extent { begin_bytes: begin, end_bytes: end });
        extent.begin_bytes = extent.begin_bytes.min(begin);
        extent.end_bytes = extent.end_bytes.max(end);
    }
}

/// The place of a device.
pub(super) fn place_of(device: u16) -> usize {
    usize::from(device).min(PLACES - 1)
}

/// The devices that have requests, each at its place.
#[derive(Debug, Default)]
pub(super) struct Devices(Vec<Option<Box<Device>>>);

impl Devices {
    #[inline]
    pub(super) fn of(&mut self, place: usize) -> &mut Device {
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place].get_or_insert_default()
    }

    /// In the order of their places, those without requests as well if the header has them.
    pub(super) fn finish(
        self,
        header: &TraceHeader,
        duration_ns: u64,
        footprints: &[Option<Footprint>],
        (read_runs, write_runs): (&mut RunCounts, &mut RunCounts),
    ) -> Vec<DeviceProfile> {
        let mut devices = self.0;
        let named = header.devices.len().min(PLACES);
        devices.resize_with(named.max(devices.len()), || None);
        let profile = |(number, device): (usize, Option<Box<Device>>)| {
            let device = device.map_or_else(Device::default, |device| *device);
            let named = header.devices.get(number);
            DeviceProfile {
                number,
                name: named.map(|named| named.name.clone()),
                size_bytes: named.and_then(|named| named.bytes),
                counted: device.counted,
                extent: device.extent,
                footprint: footprints.get(number).copied().flatten(),
                sequential_reads: device.reads.finish(read_runs),
                sequential_writes: device.writes.finish(write_runs),
                depth: device.in_flight.finish(duration_ns),
            }
        };
        devices.into_iter().enumerate().map(profile).collect()
    }
}
