//! Writes that a server has taken and not made durable, kept until a COMMIT says that they are. A server that restarts may have
//! forgotten them, and says so by another verifier: then they are sent again ([`super::resend`]), and nobody writes to the file meanwhile.

mod kept;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kept::{Entry, Kept};

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

#[cfg(test)]
mod tests;
