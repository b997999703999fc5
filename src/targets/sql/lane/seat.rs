//! A session's place: who is connected there now, and how somebody else gets there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::measure::{ConnectFailure, FailedConnects};
use crate::targets::sql::orders::load::Alarm;
use crate::targets::sql::session::{SessionId, SqlError as _, SqlServers, SqlSession as _};

/// A server that refuses a connection for a reason that may pass is asked again after so long, then after twice as long, and so on.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// A session that got no connection for so long ends the load.
const PATIENCE: Duration = Duration::from_secs(10);

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
pub(super) struct Seat<D: SqlServers> {
    servers: Arc<D>,
    node: usize,
    /// Nobody, where the last connection was left and no other was needed yet.
    session: Mutex<Option<Arc<D::Session>>>,
    /// Ends what goes on here.
    alarm: Alarm,
}

impl<D: SqlServers> Seat<D> {
    /// The seat of a session that is connected to server number `node`.
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
    pub(super) fn id(&self) -> Option<SessionId<D>> {
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
    pub(super) async fn session(&self) -> Result<Arc<D::Session>, D::Error> {
        self.connected(&mut Connecting::default()).await
    }

    /// The same, with what it came to. Attempts are repeated where an application would.
    ///
    /// # Errors
    /// When no connection comes about, or the load ends meanwhile.
    pub(super) async fn connected(&self, connecting: &mut Connecting) -> Result<Arc<D::Session>, D::Error> {
        if let Some(session) = self.taken() {
            return Ok(session);
        }
        let begun = Instant::now();
        let outcome = self.connect(begun, connecting).await;
        connecting.all_ns = nanos(begun.elapsed());
        outcome
    }

    async fn connect(&self, begun: Instant, connecting: &mut Connecting) -> Result<Arc<D::Session>, D::Error> {
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

    fn ended(&self) -> D::Error {
        D::Error::unfit("the load ended before a session was connected".to_owned(), None)
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
