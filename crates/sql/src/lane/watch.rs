//! Servers that say nothing: are they at work, or gone without a word?
//!
//! A scan of a large table may take an hour, and nothing is heard of it meanwhile. So silence alone condemns nobody: after a
//! while the server is asked, over another connection, whether it still works on what it was asked. Only one that answers
//! nothing, or that knows nothing of it any more, is given up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::SideJob;
use super::slot::Slot;
use crate::session::{SessionId, SqlServers};
use crate::target::SqlTarget;
use targets::TargetError;

/// Silences are looked at this often.
const LOOK_NS: u64 = 1_000_000_000;
/// Longest wait for a server's word on whether it works. Less than a connection may take, so that one that does not come about
/// in time is distinguished from one that is refused: who refuses is alive.
const WORD_PATIENCE: Duration = Duration::from_secs(5);

/// A server's word: which of its sessions are at work; nothing when it refused to say.
type Word = Result<Option<Vec<SessionId>>, Silence>;
/// Where a word is put once it has come.
type Mailbox = Arc<Mutex<Option<Word>>>;

/// The server said nothing at all.
#[derive(Debug, Clone, Copy)]
struct Silence;

struct Watched<D: SqlServers> {
    slot: Arc<Slot<D>>,
    asked_ns: Option<u64>,
    /// When the server last said that it works on it.
    vouched_ns: u64,
    /// It paused inside a transaction when the server was last asked: it is not at work there, and yet not lost.
    rested: bool,
    /// The server did not know of it when it was last asked. The answer may have been on its way.
    doubted: bool,
}

impl<D: SqlServers> Watched<D> {
    fn silent_since_ns(&self) -> Option<u64> {
        self.asked_ns.map(|asked_ns| asked_ns.max(self.vouched_ns))
    }
}

/// Watches over the sessions of one lane.
pub(super) struct Watch<'t, D: SqlServers, W> {
    target: &'t SqlTarget<D, W>,
    sessions: Vec<Watched<D>>,
    next_look_ns: u64,
    /// Servers that were asked, and their words.
    words: BTreeMap<usize, Mailbox>,
}

impl<'t, D: SqlServers, W> Watch<'t, D, W> {
    /// Over the sessions at these slots, whoever has them at the time.
    pub(super) fn new(target: &'t SqlTarget<D, W>, slots: &[Arc<Slot<D>>]) -> Self {
        let watched = |slot: &Arc<Slot<D>>| Watched {
            slot: Arc::clone(slot),
            asked_ns: None,
            vouched_ns: 0,
            rested: false,
            doubted: false,
        };
        Self { target, sessions: slots.iter().map(watched).collect(), next_look_ns: 0, words: BTreeMap::new() }
    }

    /// A session was asked something.
    pub(super) fn asked(&mut self, session: u32, now_ns: u64) {
        let session = &mut self.sessions[session as usize];
        (session.asked_ns, session.vouched_ns, session.doubted) = (Some(now_ns), 0, false);
    }

    /// It answered.
    pub(super) fn answered(&mut self, session: u32) {
        self.sessions[session as usize].asked_ns = None;
    }

    /// Sessions that wait for an answer.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.sessions).filter(|(_, waiting)| waiting.asked_ns.is_some()).map(|(session, _)| session)
    }

    /// Whether it is time to [`look`](Self::look).
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_look_ns
    }

    /// Looks for sessions that have been silent for too long, and gives what asks their servers.
    ///
    /// # Errors
    /// When a server must be taken for gone.
    pub(super) fn look(&mut self, now_ns: u64) -> Result<Vec<SideJob>, TargetError> {
        self.next_look_ns = now_ns + LOOK_NS.min(self.target.patience_ns());
        self.hear_words(now_ns)?;
        let mut silent: BTreeMap<usize, Vec<SessionId>> = BTreeMap::new();
        for session in &self.sessions {
            // Who is being connected has a patience of its own.
            let Some(id) = session.slot.id() else { continue };
            if session
                .silent_since_ns()
                .is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= self.target.patience_ns())
            {
                silent.entry(session.slot.node()).or_default().push(id);
            }
        }
        silent.retain(|node, _| !self.words.contains_key(node));
        for session in self.sessions.iter_mut().filter(|session| silent.contains_key(&session.slot.node())) {
            session.rested = session.slot.alarm().is_resting();
        }
        let asking = silent.into_iter().map(|(node, sessions)| {
            let word = Mailbox::default();
            self.words.insert(node, Arc::clone(&word));
            let servers = Arc::clone(self.target.servers());
            let patience = WORD_PATIENCE.min(Duration::from_nanos(self.target.patience_ns()));
            Box::pin(async move {
                let reported = tokio::time::timeout(patience, servers.at_work(node, sessions)).await;
                let reported = reported.map_err(|_| Silence);
                *word.lock().unwrap_or_else(PoisonError::into_inner) = Some(reported);
            }) as SideJob
        });
        Ok(asking.collect())
    }

    fn hear_words(&mut self, now_ns: u64) -> Result<(), TargetError> {
        let mut reported = Vec::new();
        self.words.retain(|node, word| match word.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(word) => {
                reported.push((*node, word));
                false
            }
            None => true,
        });
        for (node, word) in reported {
            for session in self.sessions.iter_mut().filter(|session| session.slot.node() == node) {
                let Some(since_ns) = session.silent_since_ns() else { continue };
                let silent_ns = now_ns.saturating_sub(since_ns);
                if silent_ns < self.target.patience_ns() {
                    continue;
                }
                let is_at_work = match (&word, session.slot.id()) {
                    (Ok(Some(at_work)), Some(id)) => session.rested || at_work.contains(&id),
                    (Ok(_), _) => true,
                    (Err(Silence), _) => false,
                };
                if is_at_work {
                    session.vouched_ns = now_ns;
                    session.doubted = false;
                } else if word.is_err() || session.doubted {
                    let asked_ns = session.asked_ns.unwrap_or(since_ns);
                    let waited_s = now_ns.saturating_sub(asked_ns) / 1_000_000_000;
                    let name = &self.target.nodes()[node];
                    return Err(self.target.product().timed_out(name, "execute operations", waited_s).into());
                } else {
                    session.doubted = true;
                }
            }
        }
        Ok(())
    }
}
