//! Servers under load: found fit, watched, opened, and looked at again afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::dialect::{Dialect, Watched};
use super::reached::Reached;
use crate::data::descriptor::DataSet;
use crate::data::shape::Shape;
use crate::{
    CheckHealth, Monitor, Observers, ServerReader, SlobTables, SqlOptions, SqlServers, SqlTarget, TakeBackground, trace,
};
use measure::Clock;
use model::record::{self, facts::UNWAITED_COMMITS};
use model::workload::Operation;
use targets::database::{DatabaseOptions, OpenDatabase, Sending};
use targets::{Target as _, TargetError, TargetFor};

/// Servers that are watched and open for load.
// The target and who watches are dropped first: monitor and tracer use the server.
pub(super) struct OpenServers<D: Dialect, S: SqlServers, W> {
    pub(super) target: SqlTarget<S, W>,
    pub(super) observers: Arc<Observers<D::Reader>>,
    pub(super) reached: Reached<D>,
    /// SLOB's data, where that is what they hold.
    pub(super) before: Option<Before>,
    pub(super) clock: Clock,
}

/// SLOB's data before the load.
pub(super) struct Before {
    data: DataSet,
    /// Those of the first schemas are under load.
    schemas: u32,
    /// How the tables of each server lay.
    shapes: Vec<Option<Shape>>,
}

/// Proves how the data of so many schemas lie, begins to watch, and opens the servers. `address` is as it is shown.
pub(super) fn open<D: Dialect>(
    reached: Reached<D>,
    address: String,
    options: &DatabaseOptions,
    sending: Sending,
    data: DataSet,
    schemas: Option<u32>,
) -> Result<Box<dyn OpenDatabase>, TargetError> {
    let (connector, schemas) = (&reached.connector, schemas.unwrap_or(data.schemas));
    let nodes = connector.node_names().len();
    let mut notes = reached.notes();
    let mut facts = reached.facts()?;
    if sending == Sending::Statement {
        // A statement of its own ends with its commit, and waits for it.
        facts.remove(UNWAITED_COMMITS);
    }
    let mut databases = BTreeSet::new();
    for access in reached.nodes() {
        if nodes > 1 && D::database_of(&access)?.is_some_and(|database| !databases.insert(database)) {
            continue;
        }
        let proven = D::prove(&access, &data, schemas)?;
        notes.extend(proven.notes);
        facts.extend(proven.facts);
    }
    notes.extend(D::doubts(&facts, &data));
    let shapes = reached.nodes().map(|access| D::shape(&access, &data, schemas)).collect::<Result<_, _>>()?;
    let watching = watch(&reached, options, data.block_bytes, schemas, &facts)?;
    notes.extend(watching.notes);
    let observers = Arc::new(watching.observers);
    let own_reporter = options.own_report.map(|kind| connector.own_reporter(kind)).transpose()?;
    let (send, timed_by) = match sending {
        Sending::Statement => ("statement", "client"),
        Sending::Batch => ("batch", "server"),
    };
    facts.extend([("send", send), ("timed_by", timed_by)].map(|(name, value)| (name.to_owned(), value.to_owned())));
    let target = SqlTarget::open(SqlOptions {
        product: D::PRODUCT,
        nodes: connector.node_names(),
        servers: connector.servers(&reached.namespace, &data),
        work: SlobTables::of(connector, &reached.namespace, data.column_bytes),
        sending,
        description: describe(&reached, address, (data.block_bytes, Some(data.bytes())), watching.servers, facts),
        notes,
        background: Some(background(&observers)),
        health: Some(health(&observers)),
    })
    .with_own_reporter(own_reporter);
    let before = Some(Before { data, schemas, shapes });
    Ok(Box::new(OpenServers { target, observers, reached, before, clock: Clock::start() }))
}

/// Who watches servers while load runs.
pub(crate) struct Watching<D: Dialect> {
    pub(crate) observers: Observers<D::Reader>,
    /// What the user should know about it.
    pub(crate) notes: Vec<String>,
    /// How many servers there are: a cluster that was named by one address has several.
    pub(crate) servers: usize,
}

/// Begins to watch servers with blocks of so many bytes, of which `facts` are known.
///
/// # Errors
/// When they cannot be asked.
pub(crate) fn watch<D: Dialect>(
    reached: &Reached<D>,
    options: &DatabaseOptions,
    block_bytes: u32,
    schemas: u32,
    facts: &BTreeMap<String, String>,
) -> Result<Watching<D>, TargetError> {
    let connector = &reached.connector;
    let nodes = connector.node_names().len();
    let watched = Watched { namespace: &reached.namespace, block_bytes, schemas, facts, process: reached.process() };
    let monitor = Monitor::start(connector.reader(&watched))?;
    let mut notes = monitor.notes();
    let servers = nodes.max(monitor.servers());
    let tracer = match options.trace {
        true => {
            let process = match reached.process() {
                Some((pid, directory)) => Some((pid, Some(directory))),
                None if nodes == 1 => connector.process()?,
                None => None,
            };
            let process = process.as_ref().map(|(pid, directory)| (*pid, directory.as_deref()));
            trace(nodes, process, &mut notes)
        }
        false => None,
    };
    Ok(Watching { observers: Observers::new(monitor, tracer), notes, servers })
}

/// What a target asks the observers for.
pub(crate) fn background<R: ServerReader>(observers: &Arc<Observers<R>>) -> TakeBackground {
    let watching = Arc::clone(observers);
    Box::new(move || watching.take())
}

/// How a target looks whether the servers are still there.
pub(crate) fn health<R: ServerReader>(observers: &Arc<Observers<R>>) -> CheckHealth {
    let watching = Arc::clone(observers);
    Box::new(move || watching.check())
}

impl<O: Operation, D: Dialect, S: SqlServers, W: Send + Sync> OpenDatabase<O> for OpenServers<D, S, W>
where
    SqlTarget<S, W>: TargetFor<O>,
{
    fn target(&self) -> &dyn TargetFor<O> {
        &self.target
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    /// Those of a private server.
    fn paths(&self) -> Vec<PathBuf> {
        self.reached.process().map(|(_, directory)| directory).into_iter().collect()
    }

    fn notes_of_the_load(&self) -> Vec<String> {
        let mut notes = self.target.notes_of_the_load();
        let known = self.target.notes();
        notes.extend(self.observers.notes().into_iter().filter(|note| !known.contains(note)));
        let Some(Before { data, schemas, shapes }) = &self.before else { return notes };
        for (access, before) in self.reached.nodes().zip(shapes) {
            match D::shape(&access, data, *schemas) {
                Ok(now) => notes.extend(now.zip(before.as_ref()).and_then(|(now, before)| now.changed_since(before))),
                // A server that is gone has been reported already.
                Err(_) => {
                    notes.push(format!("whether the tables of `{}` kept their shape is not known", access.node_name()));
                }
            }
        }
        notes
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        let Self { target, observers, reached, .. } = *self;
        drop((target, observers));
        reached.leave()
    }
}

/// Servers as a target, for the record: `address` is as it is shown; `block_bytes` and the bytes of all data as far as they are known.
pub(crate) fn describe<D: Dialect>(
    reached: &Reached<D>,
    address: String,
    (block_bytes, data_bytes): (u32, Option<u64>),
    servers: usize,
    mut facts: BTreeMap<String, String>,
) -> record::Target {
    let own = [("schema", reached.namespace.clone()), ("nodes", servers.to_string())];
    facts.extend(own.map(|(name, value)| (name.to_owned(), value)));
    record::Target {
        kind: D::PRODUCT.kind.to_owned(),
        address,
        block_bytes: Some(u64::from(block_bytes)),
        data_bytes,
        cache_bytes: None,
        cache_blocks: None,
        facts,
    }
}
