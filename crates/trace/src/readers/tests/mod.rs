//! Made-up traces of each format, and what is read of them.

mod blktrace;
mod csv;
mod hostile;
mod ordered;
mod text;

use std::path::Path;

use model::trace::{TraceEnd, TraceHeader, TraceKind, TraceRequest};

use super::open;
use crate::{BATCH, TraceError, TraceSource};

/// What is read of a trace.
#[derive(Debug)]
struct Trace {
    header: TraceHeader,
    requests: Vec<TraceRequest>,
    end: TraceEnd,
}

impl Trace {
    fn devices(&self) -> Vec<&str> {
        self.header.devices.iter().map(|device| device.name.as_str()).collect()
    }

    fn began(&self) -> Option<String> {
        self.header.began.map(|began| began.0.to_string())
    }
}

fn drained(mut source: Box<dyn TraceSource>) -> Result<Trace, TraceError> {
    let mut requests = Vec::new();
    loop {
        let before = requests.len();
        source.next_batch(&mut requests)?;
        let read = requests.len() - before;
        assert!(read <= BATCH);
        if read == 0 {
            break;
        }
    }
    assert!(requests.first().is_none_or(|first| first.at_ns == 0));
    assert!(requests.is_sorted_by_key(|request| request.at_ns));
    let header = source.header().clone();
    assert!(requests.iter().all(|request| usize::from(request.device) < header.devices.len()));
    Ok(Trace { header, requests, end: source.end() })
}

fn read_path(path: &Path) -> Result<Trace, TraceError> {
    drained(open(path)?)
}

fn read(content: impl AsRef<[u8]>) -> Result<Trace, TraceError> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    std::fs::write(&path, content).expect("the trace is written");
    read_path(&path)
}

fn request(
    at_ns: u64,
    device: u16,
    kind: TraceKind,
    (offset_bytes, bytes): (u64, u64),
    latency_ns: Option<u64>,
) -> TraceRequest {
    TraceRequest { at_ns, device, kind, is_fua: false, offset_bytes, bytes, latency_ns }
}
