//! The load: sessions that commit, each of which waits until its commit is noted before it makes the next one.

use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::link::{LinkError, Notebook};
use measure::os::start_thread;
use targets::TargetError;
use targets::durable::{Committers, Shape};

/// How often the load is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A server that acknowledges nothing for so long is gone.
const SILENT_AFTER: Duration = Duration::from_secs(15);
/// A user who ends a load on a server that has acknowledged nothing for so long ends one whose server is gone.
const SILENT_AT_THE_END: Duration = Duration::from_secs(3);

/// What ends a load before its time.
#[derive(Debug)]
pub enum LoadError {
    /// The target failed, as a server does whose power is cut.
    Target(TargetError),
    /// Nothing was acknowledged for so long, in seconds.
    Silent(u64),
    /// The notes end.
    Notes(LinkError),
}

/// What a load did.
#[derive(Debug)]
pub struct Loaded {
    /// Commits that were acknowledged and noted.
    pub commits: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// For how long nothing had been acknowledged when it ended.
    pub idle: Duration,
    /// What ended it, if not its time or its user.
    pub error: Option<LoadError>,
}

/// How long a load goes on.
#[derive(Debug, Clone, Copy)]
pub struct Until<'a> {
    /// Its time; none where only the user or a cut ends it.
    pub duration: Option<Duration>,
    /// The user's request to end.
    pub stop: &'a AtomicBool,
    /// Whether a target that does not answer is given up. The system's own requests cannot be.
    pub gives_up: bool,
}

struct Running<'a> {
    committers: &'a dyn Committers,
    notebook: &'a dyn Notebook,
    /// Ends all sessions at once: the user, or a failure.
    halt: AtomicBool,
    /// No session begins another commit.
    is_over: AtomicBool,
    commits: AtomicU64,
    began: Instant,
    /// When the last commit was acknowledged, in nanoseconds since then.
    moved_ns: AtomicU64,
    /// For how long none had been when the first failure was seen.
    idle_ns: OnceLock<u64>,
    /// Sessions that wait for a commit, and not for its note.
    committing: AtomicU32,
    /// Since when there has been one without a break.
    asked_ns: AtomicU64,
    error: Mutex<Option<LoadError>>,
}

impl Running<'_> {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// For how long nothing has been acknowledged although commits were requested, the first one at `asked_ns`.
    fn idle_ns(&self, asked_ns: u64) -> u64 {
        self.now_ns().saturating_sub(self.moved_ns.load(Ordering::Relaxed).max(asked_ns))
    }

    fn fail(&self, error: LoadError, idle_ns: u64) {
        self.idle_ns.get_or_init(|| idle_ns);
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.halt.store(true, Ordering::Relaxed);
    }

    fn session(&self, session: u32) {
        let _halting = Halting(&self.halt);
        let mut committer = match self.committers.open(session) {
            Ok(committer) => committer,
            Err(TargetError::Interrupted) => return,
            Err(error) => return self.fail(LoadError::Target(error), 0),
        };
        let is_over = || self.halt.load(Ordering::Relaxed) || self.is_over.load(Ordering::Relaxed);
        for seq in 1.. {
            if is_over() {
                return;
            }
            let asked_ns = self.now_ns();
            if self.committing.fetch_add(1, Ordering::Relaxed) == 0 {
                self.asked_ns.store(asked_ns, Ordering::Relaxed);
            }
            let committed = committer.commit(seq, &self.halt);
            self.committing.fetch_sub(1, Ordering::Relaxed);
            match committed {
                Ok(()) => {
                    self.moved_ns.fetch_max(self.now_ns(), Ordering::Relaxed);
                }
                // It was under way when the load was to end.
                Err(TargetError::Interrupted) => return,
                Err(error) => return self.fail(LoadError::Target(error), self.idle_ns(asked_ns)),
            }
            // Before anything else of this session, and also where the load is to end: it was acknowledged.
            if let Err(error) = self.notebook.note(session, seq) {
                return self.fail(LoadError::Notes(error), 0);
            }
            self.commits.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A session that panics ends the others, which would go on for ever.
struct Halting<'a>(&'a AtomicBool);

impl Drop for Halting<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// A load that has ended, and the panic of a session that ended it. The caller tells the witness, then goes on with the panic.
pub type Ended = (Loaded, Option<Box<dyn std::any::Any + Send>>);

/// Loads commits until the time is over, the user ends it, or something fails. `look` hears every second how many were acknowledged.
pub fn run(
    shape: &Shape,
    committers: &dyn Committers,
    notebook: &dyn Notebook,
    until: Until<'_>,
    look: &mut dyn FnMut(u64, Duration),
) -> Ended {
    let began = Instant::now();
    let running = Running {
        committers,
        notebook,
        began,
        moved_ns: AtomicU64::new(0),
        idle_ns: OnceLock::new(),
        committing: AtomicU32::new(0),
        asked_ns: AtomicU64::new(0),
        halt: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        commits: AtomicU64::new(0),
        error: Mutex::default(),
    };
    let mut panicked = None;
    thread::scope(|scope| {
        let mut handles = Vec::new();
        for session in 0..shape.sessions {
            let running = &running;
            let started = start_thread(|begun| {
                let work = move || {
                    drop(begun);
                    running.session(session);
                };
                thread::Builder::new().name(format!("session {}", session + 1)).spawn_scoped(scope, work)
            });
            match started {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    running.fail(LoadError::Target(TargetError::Kernel { action: "start a thread", source: error }), 0);
                    break;
                }
            }
        }
        watch(&running, until, began, look, &|| handles.iter().all(thread::ScopedJoinHandle::is_finished));
        for handle in handles {
            if let Err(panic) = handle.join() {
                panicked.get_or_insert(panic);
            }
        }
    });
    let loaded = Loaded {
        commits: running.commits.load(Ordering::Relaxed),
        elapsed: began.elapsed(),
        idle: Duration::from_nanos(running.idle_ns.get().copied().unwrap_or(0)),
        error: running.error.into_inner().unwrap_or_else(PoisonError::into_inner),
    };
    (loaded, panicked)
}

/// Looks after the sessions until all have ended.
fn watch(
    running: &Running<'_>,
    until: Until<'_>,
    began: Instant,
    look: &mut dyn FnMut(u64, Duration),
    have_ended: &dyn Fn() -> bool,
) {
    let mut looked = Instant::now();
    while !have_ended() {
        thread::sleep(LOOK_EVERY);
        if until.duration.is_some_and(|duration| began.elapsed() >= duration) {
            running.is_over.store(true, Ordering::Relaxed);
        }
        let is_stopped = until.stop.load(Ordering::Relaxed);
        let patience = if is_stopped { SILENT_AT_THE_END } else { SILENT_AFTER };
        // A session that waits for its note says nothing of the target.
        let is_asked = running.committing.load(Ordering::Relaxed) > 0;
        let idle_ns = running.idle_ns(running.asked_ns.load(Ordering::Relaxed));
        let idle = Duration::from_nanos(idle_ns);
        if until.gives_up && is_asked && idle >= patience && !running.halt.load(Ordering::Relaxed) {
            running.fail(LoadError::Silent(idle.as_secs()), idle_ns);
        }
        if is_stopped {
            running.halt.store(true, Ordering::Relaxed);
        }
        if looked.elapsed() >= Duration::from_secs(1) {
            looked = Instant::now();
            look(running.commits.load(Ordering::Relaxed), began.elapsed());
        }
    }
}

/// Goes on with a panic of a session.
pub fn resume(panicked: Option<Box<dyn std::any::Any + Send>>) {
    if let Some(panic) = panicked {
        panic::resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use targets::durable::Committer;

    const SHAPE: Shape = Shape { run: 1, sessions: 3, blocks: 4 };

    /// What each session does at its fifth commit.
    #[derive(Clone, Copy, PartialEq)]
    enum Fifth {
        GoesOn,
        Fails,
        Panics,
        Hangs,
    }

    struct Fake(Fifth);
    struct FakeSession(Fifth, u32);

    thread_local! {
        /// The last commit that this thread's session was acknowledged.
        static ACKNOWLEDGED: std::cell::Cell<(u32, u64)> = const { std::cell::Cell::new((0, 0)) };
    }

    impl Committers for Fake {
        fn open(&self, session: u32) -> Result<Box<dyn Committer + '_>, TargetError> {
            Ok(Box::new(FakeSession(if session == 1 { self.0 } else { Fifth::GoesOn }, session)))
        }
    }

    impl Committer for FakeSession {
        fn commit(&mut self, seq: u64, stop: &AtomicBool) -> Result<(), TargetError> {
            match self.0 {
                Fifth::Fails if seq == 5 => return Err(TargetError::NoData { address: "x".to_owned() }),
                Fifth::Panics if seq == 5 => panic!("a planted panic"),
                Fifth::Hangs if seq == 5 => {
                    while !stop.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(1));
                    }
                    return Err(TargetError::Interrupted);
                }
                _ => {}
            }
            thread::sleep(Duration::from_millis(1));
            ACKNOWLEDGED.set((self.1, seq));
            Ok(())
        }
    }

    /// Keeps what was noted, and is full after so many.
    #[derive(Default)]
    struct Kept {
        notes: Mutex<Vec<(u32, u64)>>,
        full_at: Option<usize>,
    }

    impl Notebook for Kept {
        fn note(&self, session: u32, seq: u64) -> Result<(), LinkError> {
            assert_eq!(ACKNOWLEDGED.get(), (session, seq), "it was noted before it was acknowledged");
            let mut notes = self.notes.lock().unwrap();
            if self.full_at.is_some_and(|most| notes.len() >= most) {
                return Err(LinkError::Pipe(std::io::ErrorKind::BrokenPipe.into()));
            }
            notes.push((session, seq));
            Ok(())
        }
    }

    fn ran(fifth: Fifth, kept: &Kept, duration: Option<Duration>, stop: &AtomicBool) -> Ended {
        let until = Until { duration, stop, gives_up: false };
        run(&SHAPE, &Fake(fifth), kept, until, &mut |_, _| {})
    }

    #[test]
    fn each_commit_is_noted_before_the_next_of_its_session() {
        let kept = Kept::default();
        let (loaded, panic) = ran(Fifth::GoesOn, &kept, Some(Duration::from_millis(80)), &AtomicBool::new(false));
        assert!(loaded.error.is_none() && panic.is_none());
        let notes = kept.notes.into_inner().unwrap();
        assert_eq!(notes.len() as u64, loaded.commits);
        for session in 0..3 {
            let own: Vec<u64> = notes.iter().filter(|(of, _)| *of == session).map(|(_, seq)| *seq).collect();
            assert!(!own.is_empty() && own.iter().copied().eq(1..=own.len() as u64), "{own:?}");
        }
    }

    #[test]
    fn a_failure_ends_all_sessions_with_its_reason() {
        let never = AtomicBool::new(false);
        let (loaded, _) = ran(Fifth::Fails, &Kept::default(), None, &never);
        assert!(matches!(loaded.error, Some(LoadError::Target(TargetError::NoData { .. }))));
        let full = Kept { full_at: Some(7), ..Kept::default() };
        let (loaded, _) = ran(Fifth::GoesOn, &full, None, &never);
        assert!(matches!(loaded.error, Some(LoadError::Notes(LinkError::Pipe(_)))) && loaded.commits == 7);
    }

    #[test]
    fn a_panic_ends_all_sessions_and_is_handed_on() {
        let (loaded, panic) = ran(Fifth::Panics, &Kept::default(), None, &AtomicBool::new(false));
        assert!(loaded.commits >= 4);
        assert_eq!(panic.unwrap().downcast_ref::<&str>(), Some(&"a planted panic"));
    }

    #[test]
    fn the_user_ends_a_session_that_hangs() {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(100));
                stop.store(true, Ordering::Relaxed);
            });
            let (loaded, panic) = ran(Fifth::Hangs, &Kept::default(), None, &stop);
            assert!(loaded.error.is_none() && panic.is_none());
        });
    }
}
