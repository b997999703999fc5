//! SQL servers as a target: opened once for a run, whatever the servers and however operations are sent.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::data::TableId;
use super::database::Dialect;
use super::error::{Product, ServerError};
use super::lane::{BatchesLane, StatementLane, TransactionLane};
use super::orders::load::{OrdersSession, OrdersSetting};
use super::session::{SlobSession, SqlServers};
use measure::Counter;
use model::record::{self, Activity};
use model::units::group_thousands;
use model::workload::SlobOperation;
use model::workload::orders::OrderTransaction;
use targets::database::Sending;
use targets::{
    Background, BatchLane, DatabaseError as _, Lane, OwnReporter, SessionRange, Target, TargetError, TargetFor,
};

/// A session that has had no answer for so long has its server asked whether it still works on it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reports what happened besides the lanes since it was last asked, as [`Target::take_background`].
pub type TakeBackground = Box<dyn Fn() -> Background + Send + Sync>;
/// Looks whether the servers are still there, as [`Target::check_health`].
pub type CheckHealth = Box<dyn Fn() -> Result<(), TargetError> + Send + Sync>;
/// Says what ended a server, as [`Target::why_gone`].
pub type WhyGone = Box<dyn Fn() -> Option<TargetError> + Send + Sync>;

/// What a target of SQL servers is made of.
pub struct SqlOptions<D, W = SlobTables> {
    /// What the servers are.
    pub product: &'static Product,
    /// Their names, at least one. Sessions go to them in turn.
    pub nodes: Vec<String>,
    /// What sessions are opened by.
    pub servers: D,
    /// What the lanes have to know of the work.
    pub work: W,
    /// How operations are sent.
    pub sending: Sending,
    /// What it is, for the record.
    pub description: record::Target,
    /// What the user should know about how it was opened.
    pub notes: Vec<String>,
    /// Who counts on the servers' side, if anybody does.
    pub background: Option<TakeBackground>,
    /// Who looks after the servers, if anybody does. The lanes notice by themselves when their own connections end.
    pub health: Option<CheckHealth>,
}

/// SLOB's data, as statements and errors name them.
pub struct SlobTables {
    /// What holds them, such as a schema or a database, as it stands in SQL.
    pub namespace: String,
    /// A table, as it stands in SQL.
    pub name: Box<dyn Fn(TableId) -> String + Send + Sync>,
    /// Bytes of each filling column of a row.
    pub column_bytes: u32,
}

impl SlobTables {
    /// Those in a namespace of servers of one kind.
    pub fn of<D: Dialect>(connector: &D, namespace: &str, column_bytes: u32) -> Self {
        let (names, within) = (connector.clone(), namespace.to_owned());
        let name = Box::new(move |table| names.table_name(&within, table));
        Self { namespace: D::quoted(namespace), name, column_bytes }
    }
}

/// One or several SQL servers under load.
pub struct SqlTarget<D: SqlServers, W = SlobTables> {
    options: SqlOptions<Arc<D>, W>,
    patience: Duration,
    was_late: AtomicBool,
    /// Errors that only cost their operations: how many requests ended in one, and the first.
    failures: Mutex<(u64, Option<ServerError>)>,
    /// Batches during which a server's clock was set.
    set_clocks: AtomicU64,
    own_reporter: Option<Box<dyn OwnReporter>>,
    why_gone: Option<WhyGone>,
    known: &'static [Counter],
    /// Updates that had been done again on each server when the background was last asked for.
    repeated: Mutex<Vec<u64>>,
}

impl<D: SqlServers, W> fmt::Debug for SqlTarget<D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SqlOptions { servers, sending, description, .. } = &self.options;
        f.debug_struct("SqlTarget")
            .field("servers", servers)
            .field("sending", sending)
            .field("description", description)
            .finish_non_exhaustive()
    }
}

impl<D: SqlServers, W> SqlTarget<D, W> {
    /// Opens it. No session is connected before load starts.
    pub fn open(options: SqlOptions<D, W>) -> Self {
        let SqlOptions { product, nodes, servers, work, sending, description, notes, background, health } = options;
        let repeated = Mutex::new(vec![0; nodes.len()]);
        let servers = Arc::new(servers);
        let options = SqlOptions { product, nodes, servers, work, sending, description, notes, background, health };
        let (failures, set_clocks) = (Mutex::new((0, None)), AtomicU64::new(0));
        let known = &[Counter::Operations, Counter::Errors, Counter::Commits, Counter::BlockChanges];
        let was_late = AtomicBool::new(false);
        Self {
            options,
            patience: PATIENCE,
            failures,
            set_clocks,
            own_reporter: None,
            why_gone: None,
            known,
            repeated,
            was_late,
        }
    }

    /// The same, with servers that report on windows by themselves.
    pub fn with_own_reporter(self, own_reporter: Option<Box<dyn OwnReporter>>) -> Self {
        Self { own_reporter, ..self }
    }

    /// The same, on a server of which this says what killed it.
    pub fn with_why_gone(self, why_gone: Option<WhyGone>) -> Self {
        Self { why_gone, ..self }
    }

    /// The same, whose lanes keep these counters alone.
    pub fn counting(self, known: &'static [Counter]) -> Self {
        Self { known, ..self }
    }

    /// The same, asking servers sooner whether they still work.
    #[cfg(any(test, feature = "test-servers"))]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The first error that cost an operation, but not the load, in words; so that a user learns why operations failed.
    pub fn first_error(&self) -> Option<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).1.as_ref().map(ToString::to_string)
    }

    /// What the user should know about how the load went, once it has ended.
    pub fn notes_of_the_load(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let (failures, Some(first)) = &*self.failures.lock().unwrap_or_else(PoisonError::into_inner) {
            let hint = first.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            let what = match self.options.sending {
                Sending::Statement => "operations",
                Sending::Batch => "batches of operations",
            };
            notes.push(format!("{failures} {what} failed; the first: {first}{hint}"));
        }
        let servers = self.servers();
        let repeated: u64 = (0..self.nodes().len()).filter_map(|node| servers.repeated(node)).sum();
        if repeated > 0 {
            let what = if repeated == 1 { "update was" } else { "updates were" };
            notes.push(format!(
                "{} {what} done again after a deadlock or a lock wait that lasted too long; what that took counts in the operation",
                group_thousands(repeated as f64)
            ));
        }
        notes.extend(servers.notes_of_the_load());
        let set_clocks = self.set_clocks.load(Ordering::Relaxed);
        if set_clocks > 0 {
            notes.push(format!(
                "a server's clock was set while it timed operations: in {set_clocks} batches what each took is an estimate"
            ));
        }
        notes
    }

    pub(super) fn servers(&self) -> &Arc<D> {
        &self.options.servers
    }

    pub(super) fn nodes(&self) -> &[String] {
        &self.options.nodes
    }

    pub(super) fn work(&self) -> &W {
        &self.options.work
    }

    pub(super) fn product(&self) -> &'static Product {
        self.options.product
    }

    pub(super) fn patience_ns(&self) -> u64 {
        self.patience.as_nanos() as u64
    }

    /// An operation, or a batch, ended in an error that leaves the load able to go on.
    pub(super) fn note_failure(&self, error: ServerError) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.0 += 1;
        failures.1.get_or_insert(error);
    }

    /// A server went on with what it was asked to cancel: for a while it has fewer connections than it takes.
    pub(super) fn note_late(&self) {
        self.was_late.store(true, Ordering::Relaxed);
    }

    /// Whether that has happened in this run.
    pub(super) fn was_late(&self) -> bool {
        self.was_late.load(Ordering::Relaxed)
    }

    /// A batch was executed while its server's clock was set.
    pub(super) fn note_set_clock(&self) {
        self.set_clocks.fetch_add(1, Ordering::Relaxed);
    }
}

impl<D: SqlServers, W: Send + Sync> Target for SqlTarget<D, W> {
    fn describe(&self) -> record::Target {
        self.options.description.clone()
    }

    fn notes(&self) -> Vec<String> {
        self.options.notes.clone()
    }

    fn layer(&self) -> &'static str {
        match self.options.sending {
            Sending::Statement => "client",
            Sending::Batch => "server",
        }
    }

    fn known_counters(&self) -> &'static [Counter] {
        self.known
    }

    fn take_background(&self) -> Background {
        let mut background = self.options.background.as_ref().map_or_else(Background::default, |take| take());
        // Our own sessions count these, and both together would be twice as many. What a server counts is everybody's, and stays
        // with it.
        (background.counters.commits, background.counters.block_changes) = (None, None);
        let mut before = self.repeated.lock().unwrap_or_else(PoisonError::into_inner);
        for (node, (name, before)) in self.nodes().iter().zip(before.iter_mut()).enumerate() {
            // A server that did not answer is not among those reported: its updates are counted when it is again.
            let reported = background.servers.iter_mut().find(|server| server.node == *name);
            if let (Some(server), Some(now)) = (reported, self.servers().repeated(node)) {
                server.activity.insert(Activity::UpdatesRepeated, now - *before);
                *before = now;
            }
        }
        background
    }

    fn check_health(&self) -> Result<(), TargetError> {
        self.options.health.as_ref().map_or(Ok(()), |check| check())
    }

    fn why_gone(&self) -> Option<TargetError> {
        self.why_gone.as_ref().and_then(|why| why())
    }

    fn own_reporter(&self) -> Option<&dyn OwnReporter> {
        self.own_reporter.as_deref()
    }
}

impl<D: SqlServers<Session: SlobSession>> TargetFor<SlobOperation> for SqlTarget<D> {
    /// # Errors
    /// Also where operations are to be sent in batches: that would be another measurement than the one asked for.
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<SlobOperation> + '_>, TargetError> {
        match self.options.sending {
            Sending::Statement => Ok(Box::new(StatementLane::open(self, range)?)),
            Sending::Batch => {
                let what = "operations that fall due at a rate cannot be sent in batches".to_owned();
                let hint = Some("send each as a statement: `--send statement`".to_owned());
                Err(ServerError::unfit(what, hint).into())
            }
        }
    }

    fn open_batch_lane(
        &self,
        range: SessionRange,
    ) -> Result<Option<Box<dyn BatchLane<SlobOperation> + '_>>, TargetError> {
        match self.options.sending {
            Sending::Statement => Ok(None),
            Sending::Batch => Ok(Some(Box::new(BatchesLane::open(self, range)?))),
        }
    }
}

impl<D: SqlServers<Session: OrdersSession>> TargetFor<OrderTransaction> for SqlTarget<D, OrdersSetting> {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<OrderTransaction> + '_>, TargetError> {
        Ok(Box::new(TransactionLane::open(self, range)?))
    }
}
