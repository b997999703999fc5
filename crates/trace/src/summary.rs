//! What is known of all requests of a trace without another look at them.

use model::trace::{TraceKind, TraceRequest};
use serde::{Deserialize, Serialize};

/// What is known of all requests of a trace without another look at them: it is kept in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSummary {
    /// Requests by kind, in the order of [`TraceKind::ALL`].
    pub requests: [u64; 4],
    /// Bytes by kind.
    pub bytes: [u64; 4],
    /// Writes that were to be on the medium when acknowledged.
    pub fua_writes: u64,
    /// Requests whose latency is known.
    pub timed: u64,
    /// When the last request was issued: nanoseconds after the beginning.
    pub last_ns: u64,
    /// The longest read or write, in bytes.
    pub largest_bytes: u64,
    /// Behind the last byte that a read or write touched, of each device.
    pub extents_bytes: Vec<u64>,
}

impl TraceSummary {
    /// Takes one more request in.
    pub fn add(&mut self, request: &TraceRequest) {
        let kind = request.kind.index();
        self.requests[kind] += 1;
        self.bytes[kind] = self.bytes[kind].saturating_add(request.bytes);
        self.fua_writes += u64::from(request.is_fua && request.kind == TraceKind::Write);
        self.timed += u64::from(request.latency_ns.is_some());
        self.last_ns = self.last_ns.max(request.at_ns);
        let device = usize::from(request.device);
        if self.extents_bytes.len() <= device {
            self.extents_bytes.resize(device + 1, 0);
        }
        if matches!(request.kind, TraceKind::Read | TraceKind::Write) {
            self.largest_bytes = self.largest_bytes.max(request.bytes);
            let end = request.offset_bytes.saturating_add(request.bytes);
            self.extents_bytes[device] = self.extents_bytes[device].max(end);
        }
    }

    /// All requests.
    pub fn total(&self) -> u64 {
        self.requests.iter().sum()
    }

    /// Requests of a kind.
    pub fn of(&self, kind: TraceKind) -> u64 {
        self.requests[kind.index()]
    }
}
