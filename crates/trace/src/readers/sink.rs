//! Where the readers put requests, and how these become a trace.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use model::record::Timestamp;
use model::trace::{TraceDevice, TraceEnd, TraceHeader, TraceRequest};

use super::ordered::Ordered;
use crate::{BATCH, TraceError, TraceSource};

/// The most devices: the number of one has 16 bits.
const MAX_DEVICES: usize = 65_535;

/// The longest name of a device, in characters.
const MAX_NAME: usize = 100;

/// What one reader has to do of its own.
pub(super) trait Input: Send {
    /// Reads some lines or records; false at the end of the file, when all of its requests are in `sink`.
    fn read(&mut self, sink: &mut Sink) -> Result<bool, TraceError>;

    /// The wall-clock time of a time of the file; absent where the file does not say.
    fn wall(&self, at_ns: u64) -> Option<Timestamp>;

    /// What a reader has to know so far.
    fn notes(&self) -> Vec<String>;
}

/// The requests of a file and their devices.
pub(super) struct Sink {
    header: TraceHeader,
    /// Numbers by the hash of the whole name: a hostile file cannot fill the memory with long names.
    known: HashMap<u64, u16>,
    hashes: RandomState,
    last: Option<(u64, u16)>,
    refused: u64,
    ordered: Ordered,
}

impl crate::pairing::Taker for Sink {
    fn take(&mut self, request: TraceRequest) {
        self.push(request);
    }
}

impl Sink {
    fn new(source: &str, clock: Option<&str>) -> Self {
        Self {
            header: TraceHeader {
                source: source.to_owned(),
                clock: clock.map(str::to_owned),
                ..TraceHeader::default()
            },
            known: HashMap::new(),
            hashes: RandomState::new(),
            last: None,
            refused: 0,
            ordered: Ordered::default(),
        }
    }

    /// The number of a device; absent when there are too many, which is counted.
    pub(super) fn device(&mut self, name: &[u8]) -> Option<u16> {
        let hash = self.hashes.hash_one(name);
        if let Some((last, number)) = self.last
            && last == hash
        {
            return Some(number);
        }
        let number = match self.known.get(&hash) {
            Some(number) => *number,
            None if self.known.len() >= MAX_DEVICES => {
                self.refused += 1;
                return None;
            }
            None => {
                let number = u16::try_from(self.known.len()).ok()?;
                self.known.insert(hash, number);
                let name = String::from_utf8_lossy(name).chars().take(MAX_NAME).collect();
                self.header.devices.push(TraceDevice { name, bytes: None });
                number
            }
        };
        self.last = Some((hash, number));
        Some(number)
    }

    /// Takes a request with the time of the file.
    pub(super) fn push(&mut self, request: TraceRequest) {
        self.ordered.push(request);
    }
}

/// A trace that an [`Input`] reads.
pub(super) struct Reader<I> {
    input: I,
    sink: Sink,
    is_done: bool,
}

impl<I: Input + 'static> Reader<I> {
    /// Reads up to the first request: the header has the beginning, and a file without requests is refused.
    pub(super) fn open(
        input: I,
        path: &str,
        source: &str,
        clock: Option<&str>,
    ) -> Result<Box<dyn TraceSource>, TraceError> {
        let mut reader = Self { input, sink: Sink::new(source, clock), is_done: false };
        while !reader.is_done && !reader.sink.ordered.is_ready() {
            reader.read()?;
        }
        if reader.sink.ordered.is_unused() {
            return Err(TraceError::Empty { path: path.to_owned() });
        }
        reader.sink.header.began = reader.sink.ordered.oldest().and_then(|at_ns| reader.input.wall(at_ns));
        Ok(Box::new(reader))
    }

    fn read(&mut self) -> Result<(), TraceError> {
        match self.input.read(&mut self.sink) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.is_done = true;
                self.sink.ordered.drain();
                Ok(())
            }
            // What follows damage is not read: a caller that goes on comes to an end.
            Err(error) => {
                self.is_done = true;
                Err(error)
            }
        }
    }
}

impl<I: Input + 'static> TraceSource for Reader<I> {
    fn header(&self) -> &TraceHeader {
        &self.sink.header
    }

    fn next_batch(&mut self, batch: &mut Vec<TraceRequest>) -> Result<(), TraceError> {
        let full = batch.len() + BATCH;
        loop {
            self.sink.ordered.pop_into(batch, full);
            if batch.len() >= full || self.is_done {
                return Ok(());
            }
            self.read()?;
            if self.is_done {
                self.sink.ordered.pop_into(batch, full);
                return Ok(());
            }
        }
    }

    fn end(&self) -> TraceEnd {
        let mut notes = self.input.notes();
        notes.extend(self.sink.ordered.note());
        if self.sink.refused > 0 {
            notes.push(format!("requests of devices after the first {MAX_DEVICES}, left out: {}", self.sink.refused));
        }
        TraceEnd { duration_ns: None, lost: None, notes }
    }
}

/// The wall-clock time of nanoseconds after 1970.
pub(super) fn unix(ns: i128) -> Option<Timestamp> {
    jiff::Timestamp::from_nanosecond(ns).ok().map(Timestamp)
}
