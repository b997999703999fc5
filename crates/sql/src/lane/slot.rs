//! A session's place: who is connected there now, and how somebody else gets there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::ServerError;
use crate::orders::load::Alarm;
use crate::session::{SessionId, SqlServers, SqlSession as _};
use measure::{ConnectFailure, FailedConnects};

/// A server that refuses a connection for a reason that may pass is asked again after so long, then after twice as long, and so on.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// A session that got no connection for so long ends the load.
const PATIENCE: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(10) };

/// What connecting came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Connecting {
    /// How long the attempt took that succeeded; `None` where none did, or none was needed.
    pub(super) took_ns: Option<u64>,
    /// Attempts that failed.
    pub(super) failed: FailedConnects,
    /// All attempts, and the pauses between them.
    pub(super) all_ns: u64,
}

/// One session's place at a server.
pub(super) struct Slot<D: SqlServers> {
    servers: Arc<D>,
    node: usize,
    /// Nobody, where the last connection was left and no other was needed yet.
    session: Mutex<Option<Arc<D::Session>>>,
    /// Ends what goes on here.
    alarm: Alarm,
}

impl<D: SqlServers> Slot<D> {
    /// The slot of a session that is connected to server number `node`.
    pub(super) fn new(servers: &Arc<D>, node: usize, session: D::Session) -> Self {
        let session = Mutex::new(Some(Arc::new(session)));
        Self { servers: Arc::clone(servers), node, session, alarm: Alarm::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<D::Session>>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server that it is at.
    pub(super) fn node(&self) -> usize {
        self.node
    }

    /// Who is connected here, if anybody is.
    pub(super) fn taken(&self) -> Option<Arc<D::Session>> {
        self.lock().clone()
    }

    /// The server's number of the session, if there is one.
    pub(super) fn id(&self) -> Option<SessionId> {
        self.lock().as_ref().map(|session| session.id())
    }

    /// Leaves the connection, which closes once nobody uses it any more.
    pub(super) fn leave(&self) {
        self.lock().take();
    }

    /// Who is connected here; whoever is not is connected now.
    ///
    /// # Errors
    /// As [`connected`](Self::connected).
    pub(super) async fn session(&self) -> Result<Arc<D::Session>, ServerError> {
        self.connected(&mut Connecting::default()).await
    }

    /// The same, with what it came to. Attempts are repeated where an application would.
    ///
    /// # Errors
    /// When no connection comes about, or the load ends meanwhile.
    pub(super) async fn connected(&self, connecting: &mut Connecting) -> Result<Arc<D::Session>, ServerError> {
        if let Some(session) = self.taken() {
            return Ok(session);
        }
        let begun = Instant::now();
        let outcome = self.connect(begun, connecting).await;
        connecting.all_ns = nanos(begun.elapsed());
        outcome
    }

    async fn connect(&self, begun: Instant, connecting: &mut Connecting) -> Result<Arc<D::Session>, ServerError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let attempt = Instant::now();
            let Some(outcome) = self.alarm.unless_rung(self.servers.open_session(self.node)).await else {
                return Err(self.ended());
            };
            let error = match outcome {
                Ok(session) => {
                    connecting.took_ns = Some(nanos(attempt.elapsed()));
                    let session = Arc::new(session);
                    *self.lock() = Some(Arc::clone(&session));
                    // Whoever rang before that found nobody to cancel.
                    return if self.alarm.has_rung() { Err(self.ended()) } else { Ok(session) };
                }
                Err(error) => error,
            };
            let failure = error.connect_failure().unwrap_or(ConnectFailure::Other);
            connecting.failed.count(failure);
            if !failure.is_worth_another_attempt() || begun.elapsed() + pause > PATIENCE {
                return Err(error);
            }
            if self.alarm.unless_rung(tokio::time::sleep(pause)).await.is_none() {
                return Err(self.ended());
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    fn ended(&self) -> ServerError {
        ServerError::unfit("the load ended before a session was connected".to_owned(), None)
    }

    /// What ends the pauses of who is connected here.
    pub(super) fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// Asks the server to cancel what goes on here, and connects nobody any more.
    pub(super) async fn cancel(&self) {
        self.alarm.ring();
        if let Some(session) = self.taken() {
            session.cancel().await;
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Product;
    use crate::session::SqlSession;

    const DOOR: &Product = &Product {
        name: "door",
        kind: "door",
        code: "error",
        meaning: |_| unreachable!("it only refuses connections"),
    };

    fn no_connection(failure: ConnectFailure) -> ServerError {
        let (node, reason) = ("door".to_owned(), "no".to_owned());
        ServerError::Connect { product: DOOR, node, reason, hint: None, failure }
    }

    /// A session with the number of its connection.
    struct Numbered(u64);

    impl SqlSession for Numbered {
        fn id(&self) -> SessionId {
            self.0.into()
        }

        async fn cancel(&self) {}
    }

    /// A server that lets nobody in for so many attempts, and never answers after so many connections.
    #[derive(Debug)]
    struct Door {
        refuses: Mutex<Vec<ConnectFailure>>,
        made: Mutex<u64>,
        most: u64,
    }

    impl SqlServers for Door {
        type Session = Numbered;

        async fn open_session(&self, _: usize) -> Result<Numbered, ServerError> {
            if let Some(failure) = self.refuses.lock().unwrap().pop() {
                return Err(no_connection(failure));
            }
            let made = {
                let mut made = self.made.lock().unwrap();
                *made += 1;
                *made
            };
            if made > self.most {
                std::future::pending::<()>().await;
            }
            Ok(Numbered(made))
        }

        async fn at_work(&self, _: usize, _: Vec<SessionId>) -> Option<Vec<SessionId>> {
            None
        }
    }

    fn slot(refuses: &[ConnectFailure], most: u64) -> Arc<Slot<Door>> {
        let door = Door { refuses: Mutex::new(refuses.to_vec()), made: Mutex::default(), most };
        Arc::new(Slot::new(&Arc::new(door), 0, Numbered(0)))
    }

    fn on_runtime<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn a_slot_that_was_left_is_taken_again_by_another_connection() {
        on_runtime(async {
            let slot = slot(&[], 9);
            let mut connecting = Connecting::default();
            assert_eq!(slot.connected(&mut connecting).await.unwrap().id(), 0.into());
            assert_eq!((connecting.took_ns, connecting.all_ns), (None, 0), "nothing was needed");
            slot.leave();
            assert_eq!(slot.id(), None);
            assert_eq!(slot.connected(&mut connecting).await.unwrap().id(), 1.into());
            assert!(connecting.took_ns.is_some_and(|took_ns| took_ns <= connecting.all_ns));
            assert_eq!((slot.id(), connecting.failed.total()), (Some(1.into()), 0));
        });
    }

    #[test]
    fn a_server_that_is_full_for_a_while_is_asked_again_and_what_it_refused_is_counted() {
        on_runtime(async {
            let slot = slot(&[ConnectFailure::Refused, ConnectFailure::OutOfConnections], 9);
            slot.leave();
            let mut connecting = Connecting::default();
            slot.connected(&mut connecting).await.unwrap();
            let reasons = connecting.failed.by_reason();
            assert_eq!(reasons, [("out of connections".to_owned(), 1), ("refused".to_owned(), 1)].into());
            let pauses_ns = nanos(3 * FIRST_PAUSE);
            assert!(connecting.all_ns >= pauses_ns && connecting.took_ns < Some(pauses_ns), "{connecting:?}");
        });
    }

    #[test]
    fn a_refused_login_is_final_and_so_is_a_server_that_stays_full() {
        on_runtime(async {
            for (refusal, least) in [(ConnectFailure::Login, 1), (ConnectFailure::OutOfConnections, 3)] {
                let slot = slot(&[refusal; 1_000], 9);
                slot.leave();
                let mut connecting = Connecting::default();
                let Err(error) = slot.connected(&mut connecting).await else { panic!("{refusal:?}") };
                assert_eq!(error.connect_failure(), Some(refusal));
                let attempts = connecting.failed.total();
                assert!(attempts >= least && (least > 1 || attempts == 1), "{refusal:?}: {attempts}");
                assert!(connecting.took_ns.is_none() && connecting.all_ns < nanos(2 * PATIENCE), "{connecting:?}");
            }
        });
    }

    #[test]
    fn whoever_is_cancelled_while_connecting_waits_no_longer() {
        on_runtime(async {
            let slot = slot(&[], 0);
            slot.leave();
            let waiting = tokio::spawn({
                let slot = Arc::clone(&slot);
                async move { slot.session().await.map(drop) }
            });
            tokio::task::yield_now().await;
            slot.cancel().await;
            let ended = tokio::time::timeout(Duration::from_secs(60), waiting).await;
            assert!(ended.unwrap().unwrap().is_err());
            assert!(slot.session().await.is_err(), "nor does anybody who comes later");
        });
    }
}
