//! Writes that a server has taken and not made durable, kept until a COMMIT says that they are. A server that restarts may have
//! forgotten them, and says so by another verifier: then they are sent again ([`super`]), and nobody writes to the file meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lives that a server may begin, each before a COMMIT of the one before, until its writes are given up.
const MAX_ROUNDS: u32 = 5;
/// After so long another thread may ask for room too: whoever asked may be gone.
const ROOM_PATIENCE_NS: u64 = 1_000_000_000;

/// Writes of one thread to one file.
#[derive(Debug, Default)]
pub struct Writer {
    /// Sent and not over.
    in_flight: AtomicU32,
    kept: Mutex<Kept>,
}

impl Writer {
    /// A write for which [`Writes::begin`] said yes is over.
    #[inline]
    pub fn end(&self) {
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    /// The thread goes: nothing of it is in flight any more.
    pub fn go(&self) {
        self.in_flight.store(0, Ordering::SeqCst);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a COMMIT comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All that it was to make durable is.
    Durable,
    /// Some of it was sent again since the COMMIT was sent: it has to be asked for once more.
    AskAgain,
    /// The server has begun a new life since it took what is kept.
    Lost,
}

/// Data to be sent again.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where in the file.
    pub offset: u64,
    /// What.
    pub data: Vec<u8>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }
}

/// All writes to a file.
#[derive(Debug)]
pub struct Writes {
    count: AtomicU64,
    kept_bytes: AtomicU64,
    /// The server's last word for its present life.
    verifier: AtomicU64,
    knows_verifier: AtomicBool,
    /// The mount's count of connections up to which it is certain that the server has what is kept; 0 where it is not.
    sound: AtomicU64,
    /// Nobody may write, since somebody sends lost writes again.
    is_held: AtomicBool,
    /// When a COMMIT for room was sent that has no answer; 0 for none.
    room_asked_ns: AtomicU64,
    rounds: AtomicU32,
    writers: Mutex<Vec<Arc<Writer>>>,
}

impl Writes {
    /// Of a file that is opened when its mount counts `made` connections.
    pub fn new(made: u64) -> Self {
        Self {
            count: AtomicU64::new(1),
            kept_bytes: AtomicU64::new(0),
            verifier: AtomicU64::new(0),
            knows_verifier: AtomicBool::new(false),
            sound: AtomicU64::new(made),
            is_held: AtomicBool::new(false),
            room_asked_ns: AtomicU64::new(0),
            rounds: AtomicU32::new(0),
            writers: Mutex::default(),
        }
    }

    /// Another writer.
    pub fn open(&self) -> Arc<Writer> {
        let writer = Arc::new(Writer::default());
        let mut writers = self.writers();
        // Those that are gone and left nothing are forgotten.
        writers.retain(|writer| Arc::strong_count(writer) > 1 || !writer.kept().entries.is_empty());
        writers.push(Arc::clone(&writer));
        writer
    }

    fn writers(&self) -> MutexGuard<'_, Vec<Arc<Writer>>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next number: of a write or a COMMIT that is sent now.
    #[inline]
    pub fn number(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// Bytes that are kept.
    #[inline]
    pub fn kept_bytes(&self) -> u64 {
        self.kept_bytes.load(Ordering::Relaxed)
    }

    /// A write is to be sent. False while nobody may write.
    #[inline]
    pub fn begin(&self, writer: &Writer) -> bool {
        writer.in_flight.fetch_add(1, Ordering::SeqCst);
        // Either this sees that writes are held, or whoever holds them sees this one in flight.
        let is_held = self.is_held();
        if is_held {
            writer.end();
        }
        !is_held
    }

    /// Keeps the data of a write that was sent as number `sent`, and that the server took in the life that `verifier` names. False where
    /// that is another one than it said last.
    pub fn keep(&self, writer: &Writer, (sent, offset): (u64, u64), data: &[u8], verifier: u64) -> bool {
        let mut kept = writer.kept();
        let answered = self.number();
        let entry = Entry { sent, answered, taken: answered, verifier, offset, chunk: 0, begin: 0, bytes: 0 };
        kept.push(entry, data);
        self.kept_bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
        let is_same = !self.knows_verifier.load(Ordering::Acquire) || self.verifier.load(Ordering::Acquire) == verifier;
        if !is_same {
            self.sound.store(0, Ordering::Release);
        }
        self.hear(verifier);
        is_same
    }

    #[inline]
    fn hear(&self, verifier: u64) {
        if self.verifier.load(Ordering::Relaxed) != verifier || !self.knows_verifier.load(Ordering::Relaxed) {
            self.verifier.store(verifier, Ordering::Release);
            self.knows_verifier.store(true, Ordering::Release);
        }
    }

    /// The server's last word for its present life.
    pub fn last_verifier(&self) -> Option<u64> {
        self.knows_verifier.load(Ordering::Acquire).then(|| self.verifier.load(Ordering::Acquire))
    }

    /// A COMMIT that was sent as number `mark`, when the mount counted `made` connections, was answered in the life that `verifier` names.
    pub fn committed(&self, mark: u64, made: u64, verifier: u64) -> Outcome {
        // Heard first, so that what is kept from now on with another one is not taken for sound.
        self.hear(verifier);
        let writers = self.writers();
        let mut outcome = Outcome::Durable;
        for writer in writers.iter() {
            for entry in &writer.kept().entries {
                if entry.verifier != verifier {
                    self.sound.store(0, Ordering::Release);
                    return Outcome::Lost;
                }
                if entry.answered < mark && entry.taken >= mark {
                    outcome = Outcome::AskAgain;
                }
            }
        }
        if outcome == Outcome::Durable {
            let forgotten = writers.iter().map(|writer| writer.kept().forget_before(mark)).sum();
            self.kept_bytes.fetch_sub(forgotten, Ordering::Relaxed);
            self.rounds.store(0, Ordering::Relaxed);
            self.sound.fetch_max(made, Ordering::Release);
        }
        outcome
    }

    /// Whether what is read is certainly what was written last, when the mount counts `made` connections: over a new one a server may
    /// answer that has lost what is kept.
    #[inline]
    pub fn is_sound(&self, made: u64) -> bool {
        self.kept_bytes() == 0 || self.sound.load(Ordering::Acquire) >= made
    }

    /// Whether the caller is the one to ask for room now.
    pub fn may_ask_for_room(&self, now_ns: u64) -> bool {
        let asked_ns = self.room_asked_ns.load(Ordering::Relaxed);
        let is_open = asked_ns == 0 || now_ns.saturating_sub(asked_ns) > ROOM_PATIENCE_NS;
        let (then, now) = (Ordering::Relaxed, Ordering::Relaxed);
        is_open && self.room_asked_ns.compare_exchange(asked_ns, now_ns.max(1), then, now).is_ok()
    }

    /// Who asked for room has an answer.
    pub fn was_asked_for_room(&self) {
        self.room_asked_ns.store(0, Ordering::Relaxed);
    }

    /// Stops all writes. False where somebody else has done so.
    pub fn hold(&self) -> bool {
        !self.is_held.swap(true, Ordering::SeqCst)
    }

    /// Lets writes go on.
    pub fn let_go(&self) {
        self.is_held.store(false, Ordering::SeqCst);
    }

    /// Whether nobody may write.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::SeqCst)
    }

    /// Whether no write is in flight.
    pub fn is_quiet(&self) -> bool {
        self.writers().iter().all(|writer| writer.in_flight.load(Ordering::SeqCst) == 0)
    }

    /// Whether what is kept may be sent again. False where that happened too often without a COMMIT.
    pub fn may_begin_round(&self) -> bool {
        self.rounds.fetch_add(1, Ordering::Relaxed) < MAX_ROUNDS
    }

    /// How many writes are kept, and what they leave in the file: of those that overlap, what was sent last. In order, none over
    /// another, and none of more than `most_bytes`, which is not 0. For whoever holds writes.
    pub fn latest(&self, most_bytes: usize) -> (u64, Vec<Piece>) {
        let writers = self.writers();
        let kept: Vec<MutexGuard<'_, Kept>> = writers.iter().map(|writer| writer.kept()).collect();
        let mut entries: Vec<(&Kept, &Entry)> =
            kept.iter().flat_map(|kept| kept.entries.iter().map(move |entry| (&**kept, entry))).collect();
        entries.sort_unstable_by_key(|(_, entry)| std::cmp::Reverse(entry.sent));
        let mut covered = BTreeMap::new();
        let mut parts: BTreeMap<u64, &[u8]> = BTreeMap::new();
        for (kept, entry) in &entries {
            let data = kept.data(entry);
            for (begin, end) in cover(&mut covered, entry.offset, entry.offset + data.len() as u64) {
                parts.insert(begin, &data[(begin - entry.offset) as usize..(end - entry.offset) as usize]);
            }
        }
        let mut pieces: Vec<Piece> = Vec::new();
        for (mut offset, mut data) in parts {
            while !data.is_empty() {
                let near = |last: &&mut Piece| last.end() == offset && last.data.len() < most_bytes;
                let Some(last) = pieces.last_mut().filter(near) else {
                    pieces.push(Piece { offset, data: Vec::new() });
                    continue;
                };
                let (now, later) = data.split_at(data.len().min(most_bytes - last.data.len()));
                last.data.extend_from_slice(now);
                (offset, data) = (offset + now.len() as u64, later);
            }
        }
        (entries.len() as u64, pieces)
    }

    /// All that is kept was taken once more, in the life that `verifier` names.
    pub fn taken_again(&self, verifier: u64) {
        self.hear(verifier);
        let taken = self.number();
        for writer in self.writers().iter() {
            writer.kept().entries.iter_mut().for_each(|entry| (entry.taken, entry.verifier) = (taken, verifier));
        }
    }
}

/// Adds a range to those that are covered, by their beginnings, and returns what of it was not.
fn cover(covered: &mut BTreeMap<u64, u64>, begin: u64, end: u64) -> Vec<(u64, u64)> {
    let touching: Vec<(u64, u64)> =
        covered.range(..=end).rev().map(|(begin, end)| (*begin, *end)).take_while(|(_, near)| *near >= begin).collect();
    let (mut gaps, mut at) = (Vec::new(), begin);
    let (mut first, mut last) = (begin, end);
    for (near, far) in touching.into_iter().rev() {
        if near > at {
            gaps.push((at, near));
        }
        at = at.max(far);
        (first, last) = (first.min(near), last.max(far));
        covered.remove(&near);
    }
    if at < end {
        gaps.push((at, end));
    }
    covered.insert(first, last);
    gaps
}

/// Memory for kept data is taken in pieces of so many bytes: as many as a call has at most.
const CHUNK_BYTES: usize = 1 << 20;

/// A write that is kept. Numbers of one count order all that happens to the file.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// When it was sent: of two that overlap, the later one wins.
    sent: u64,
    /// When it was answered: a COMMIT that is sent later has to make it durable.
    answered: u64,
    /// When the server last took it; later than `answered` where it was sent again.
    taken: u64,
    /// The server's word for the life in which it took it.
    verifier: u64,
    offset: u64,
    chunk: u64,
    begin: usize,
    bytes: usize,
}

/// What one writer keeps: a queue, since each COMMIT covers the oldest. Memory is used again.
#[derive(Debug, Default)]
struct Kept {
    entries: VecDeque<Entry>,
    chunks: VecDeque<Vec<u8>>,
    first_chunk: u64,
    spare: Vec<Vec<u8>>,
}

impl Kept {
    fn push(&mut self, entry: Entry, data: &[u8]) {
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
    fn forget_before(&mut self, mark: u64) -> u64 {
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

    fn data(&self, entry: &Entry) -> &[u8] {
        let chunk = self.chunks.get((entry.chunk - self.first_chunk) as usize);
        chunk.and_then(|chunk| chunk.get(entry.begin..entry.begin + entry.bytes)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    //! What a COMMIT covers, what is sent again, and who waits for whom.

    use super::{CHUNK_BYTES, *};
    use proptest::prelude::*;

    fn keep(writes: &Writes, writer: &Writer, offset: u64, data: &[u8], verifier: u64) -> bool {
        let sent = writes.number();
        writes.keep(writer, (sent, offset), data, verifier)
    }

    #[test]
    fn a_commit_covers_what_was_answered_before_it_was_sent() {
        let writes = Writes::new(1);
        let writer = writes.open();
        assert!(keep(&writes, &writer, 0, &[1; 10], 7));
        let mark = writes.number();
        assert!(keep(&writes, &writer, 10, &[2; 20], 7));
        assert_eq!(writes.committed(mark, 1, 7), Outcome::Durable);
        assert_eq!(writes.kept_bytes(), 20);
        assert_eq!(writes.latest(100), (1, vec![Piece { offset: 10, data: vec![2; 20] }]));
        // The server begins a new life: nothing is forgotten, and nothing read is trusted.
        assert_eq!(writes.committed(writes.number(), 1, 8), Outcome::Lost);
        assert!(!writes.is_sound(1));
        let early = writes.number();
        writes.taken_again(8);
        assert_eq!(writes.committed(early, 1, 8), Outcome::AskAgain);
        assert_eq!(writes.committed(writes.number(), 1, 8), Outcome::Durable);
        assert!(writes.is_sound(1) && writes.kept_bytes() == 0);
    }

    #[test]
    fn a_restart_is_seen_at_the_next_write_and_over_a_new_connection_nothing_is_trusted() {
        let writes = Writes::new(1);
        let writer = writes.open();
        assert!(keep(&writes, &writer, 0, &[1], 7) && writes.is_sound(1) && !writes.is_sound(2));
        assert!(!keep(&writes, &writer, 1, &[2], 8));
        assert!(!writes.is_sound(1));
        assert_eq!(writes.committed(writes.number(), 2, 8), Outcome::Lost);
    }

    #[test]
    fn whoever_sends_again_waits_for_writes_in_flight_and_others_wait_for_him() {
        let writes = Writes::new(1);
        let (here, there) = (writes.open(), writes.open());
        assert!(writes.begin(&here));
        assert!(writes.hold() && !writes.hold());
        assert!(!writes.is_quiet() && !writes.begin(&there));
        here.end();
        assert!(writes.is_quiet());
        writes.let_go();
        assert!(writes.begin(&there));
    }

    #[test]
    fn a_server_that_restarts_again_and_again_is_given_up_and_room_is_asked_for_by_one() {
        let writes = Writes::new(1);
        let writer = writes.open();
        keep(&writes, &writer, 0, &[1], 7);
        assert_eq!((0..9).filter(|_| writes.may_begin_round()).count(), 5);
        assert_eq!(writes.committed(writes.number(), 1, 7), Outcome::Durable);
        assert!(writes.may_begin_round());
        assert!(writes.may_ask_for_room(5) && !writes.may_ask_for_room(6));
        assert!(writes.may_ask_for_room(7 + ROOM_PATIENCE_NS));
        writes.was_asked_for_room();
        assert!(writes.may_ask_for_room(9));
    }

    #[test]
    fn what_a_thread_wrote_before_it_went_is_kept_and_memory_is_used_again() {
        let writes = Writes::new(1);
        let gone = writes.open();
        keep(&writes, &gone, 0, &[1; 3], 7);
        drop(gone);
        let writer = writes.open();
        assert_eq!(writes.writers().len(), 2);
        for _ in 0..5 {
            (0..3).for_each(|at| assert!(keep(&writes, &writer, at, &vec![9; CHUNK_BYTES / 2], 7)));
            assert_eq!(writes.committed(writes.number(), 1, 7), Outcome::Durable);
        }
        let kept = writer.kept();
        assert_eq!((kept.chunks.len(), kept.spare.len()), (0, 2));
        drop(kept);
        drop(writes.open());
        assert_eq!(writes.writers().len(), 2);
    }

    proptest! {
        #[test]
        fn later_writes_win_wherever_they_overlap(
            all in prop::collection::vec((0..60_u64, 0..20_usize, 0..3_usize), 0..40), most in 1..50_usize,
        ) {
            let writes = Writes::new(1);
            let writers = [writes.open(), writes.open(), writes.open()];
            let mut file: Vec<Option<u8>> = vec![None; 80];
            for (value, (offset, bytes, writer)) in (0..).zip(&all) {
                keep(&writes, &writers[*writer], *offset, &vec![value; *bytes], 7);
                file[*offset as usize..*offset as usize + bytes].fill(Some(value));
            }
            let (count, pieces) = writes.latest(most);
            prop_assert_eq!(count, all.len() as u64);
            let mut again: Vec<Option<u8>> = vec![None; 80];
            for Piece { offset, data } in pieces {
                prop_assert!((1..=most).contains(&data.len()));
                for (at, value) in (offset as usize..).zip(data) {
                    prop_assert_eq!(again[at].replace(value), None, "sent twice");
                }
            }
            prop_assert_eq!(again, file);
        }
    }
}
