//! Requests as a trace has them: what a kernel, or another program, saw of a workload.

use serde::{Deserialize, Serialize};

use crate::record::Timestamp;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceKind {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It asks the device to make durable what was written.
    Flush,
    /// It gives a range back to the device.
    Discard,
}

impl TraceKind {
    /// Every kind, in the order of [`index`](Self::index).
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Discard];

    /// Its place in [`ALL`](Self::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
        }
    }
}

/// One request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRequest {
    /// When it was issued: nanoseconds after the trace began.
    pub at_ns: u64,
    /// Its device: a place in [`TraceHeader::devices`].
    pub device: u16,
    /// What it does.
    pub kind: TraceKind,
    /// Whether it is acknowledged only when it is on the medium (FUA).
    pub is_fua: bool,
    /// Where it begins on the device; 0 for a flush.
    pub offset_bytes: u64,
    /// Its length; 0 for a flush.
    pub bytes: u64,
    /// From its issue to its completion; absent where the trace does not say.
    pub latency_ns: Option<u64>,
}

/// A device of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceDevice {
    /// What the trace calls it.
    pub name: String,
    /// Its size; absent where the trace does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Where the requests of a trace were seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceLayer {
    /// At block devices.
    #[default]
    Device,
    /// At files, before caches and file systems: each device of the trace is a file.
    File,
}

impl TraceLayer {
    /// Whether they were seen at block devices.
    pub fn is_device(&self) -> bool {
        *self == Self::Device
    }
}

/// What a trace says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// The program and the form that its requests come from, such as `plimsoll record` or `blktrace`.
    pub source: String,
    /// Where its requests were seen.
    #[serde(default, skip_serializing_if = "TraceLayer::is_device")]
    pub layer: TraceLayer,
    /// When it began; absent where the trace does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    /// Its devices, in the order of their numbers.
    pub devices: Vec<TraceDevice>,
    /// The clock that timed it; absent where the trace does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
}

/// What is known of a trace at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEnd {
    /// How long was recorded; absent where the trace does not say: then it ended with its last request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Requests that are missing, as far as the recorder counted; absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// What a reader has to know: lines that were not understood, a file that was cut off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
