//! The data of writes that are kept.

use std::collections::VecDeque;

/// Memory for kept data is taken in pieces of so many bytes: as many as a call has at most.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// A write that is kept. Numbers of one count order all that happens to the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// When it was sent: of two that overlap, the later one wins.
    pub(super) sent: u64,
    /// When it was answered: a COMMIT that is sent later has to make it durable.
    pub(super) answered: u64,
    /// When the server last took it; later than `answered` where it was sent again.
    pub(super) taken: u64,
    /// The server's word for the life in which it took it.
    pub(super) verifier: u64,
    pub(super) offset: u64,
    pub(super) chunk: u64,
    pub(super) begin: usize,
    pub(super) bytes: usize,
}

/// What one writer keeps: a queue, since each COMMIT covers the oldest. Memory is used again.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) entries: VecDeque<Entry>,
    pub(super) chunks: VecDeque<Vec<u8>>,
    first_chunk: u64,
    pub(super) spare: Vec<Vec<u8>>,
}

impl Kept {
    pub(super) fn push(&mut self, entry: Entry, data: &[u8]) {
        let has_room = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= data.len();
        if !self.chunks.back().is_some_and(has_room) {
            let spare = self.spare.pop().filter(has_room);
            self.chunks.push_back(spare.unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES.max(data.len()))));
        }
        let last = self.first_chunk + self.chunks.len() as u64 - 1;
        let Some(chunk) = self.chunks.back_mut() else { return };
        self.entries.push_back(Entry { chunk: last, begin: chunk.len(), bytes: data.len(), ..entry });
        chunk.extend_from_slice(data);
    }

    /// Forgets what was answered before `mark`. Returns its bytes.
    pub(super) fn forget_before(&mut self, mark: u64) -> u64 {
        let mut bytes = 0;
        while let Some(entry) = self.entries.front().filter(|entry| entry.answered < mark) {
            bytes += entry.bytes as u64;
            self.entries.pop_front();
        }
        let needed = self.entries.front().map_or(u64::MAX, |entry| entry.chunk);
        while self.first_chunk < needed
            && let Some(mut chunk) = self.chunks.pop_front()
        {
            chunk.clear();
            self.spare.push(chunk);
            self.first_chunk += 1;
        }
        bytes
    }

    pub(super) fn data(&self, entry: &Entry) -> &[u8] {
        let chunk = self.chunks.get((entry.chunk - self.first_chunk) as usize);
        chunk.and_then(|chunk| chunk.get(entry.begin..entry.begin + entry.bytes)).unwrap_or_default()
    }
}
