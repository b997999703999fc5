//! Servers under load: found fit, watched, opened, and looked at again afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{APPLICATION, Reached};
use crate::config::TargetAddress;
use crate::measure::Clock;
use crate::record;
use crate::targets::database::{DatabaseOptions, OpenDatabase, Sending};
use crate::targets::postgres::data::{Access, DataSet, Shape, proof, shape};
use crate::targets::postgres::{LocalServer, Monitor, MonitorRequest, Postgres, PostgresServers};
use crate::targets::sql::{Observers, SqlOptions, trace};
use crate::targets::{TargetError, TargetFor};
use crate::workload::SlobOperation;

/// How often sessions are looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Servers that are watched and open for load.
// The target is dropped first: its monitor and tracer use the server.
struct OpenServers {
    target: Postgres,
    reached: Reached,
    schema: String,
    data: DataSet,
    /// How large the tables of each server were before the load.
    before: Vec<Shape>,
    schemas: u32,
    clock: Clock,
}

/// Proves how the data of so many schemas lie, begins to watch, and opens the servers.
pub(super) fn open(
    reached: Reached,
    address: &TargetAddress,
    options: &DatabaseOptions,
    sending: Sending,
    data: DataSet,
    schemas: Option<u32>,
) -> Result<Box<dyn OpenDatabase>, TargetError> {
    let (connector, schemas) = (&reached.connector, schemas.unwrap_or(data.schemas));
    let nodes = || (0..connector.nodes().len()).map(|node| Access { node, ..reached.access(&options.schema) });
    let mut notes = reached.notes();
    let mut facts = reached.facts()?;
    for access in nodes() {
        let proof = proof::prove(&access, &data, schemas)?;
        notes.extend(proof.notes.iter().cloned());
        facts.extend(proof.facts());
    }
    let before = nodes().map(|access| shape::read(&access, &data, schemas)).collect::<Result<_, _>>()?;
    let monitor = Monitor::start(MonitorRequest {
        connector: connector.clone(),
        schema: options.schema.clone(),
        schemas,
        block_bytes: data.block_bytes,
        application: APPLICATION.to_owned(),
        local: vec![reached.local(); connector.nodes().len()],
        sample_every: SAMPLE_EVERY,
    })?;
    notes.extend(monitor.notes());
    let tracer = match options.trace {
        true => {
            let local = match (reached.local(), connector.nodes().len()) {
                (None, 1) => LocalServer::find(connector, 0)?,
                (known, _) => known,
            };
            let process = local.as_ref().map(|local| (local.postmaster_pid, local.data_directory.as_deref()));
            trace(connector.nodes().len(), process, &mut notes)
        }
        false => None,
    };
    let observers = Arc::new(Observers::new(monitor, tracer));
    let (background, health) = (Arc::clone(&observers), observers);
    let target = Postgres::open(SqlOptions {
        servers: PostgresServers::new(connector.clone(), data.sql(&options.schema)),
        sending,
        description: describe(&reached, address, options, sending, &data, facts),
        notes,
        background: Some(Box::new(move || background.take())),
        health: Some(Box::new(move || health.check())),
    });
    let (schema, clock) = (options.schema.clone(), Clock::start());
    Ok(Box::new(OpenServers { target, reached, schema, data, before, schemas, clock }))
}

impl OpenDatabase for OpenServers {
    fn target(&self) -> &dyn TargetFor<SlobOperation> {
        &self.target
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    /// Those of a server that runs here and whose files are known.
    fn paths(&self) -> Vec<PathBuf> {
        self.reached.local().and_then(|local| local.data_directory).into_iter().collect()
    }

    fn notes_of_the_load(&self) -> Vec<String> {
        let mut notes = self.target.notes_of_the_load();
        for (node, before) in self.before.iter().enumerate() {
            let access = Access { node, ..self.reached.access(&self.schema) };
            match shape::read(&access, &self.data, self.schemas) {
                Ok(now) => notes.extend(now.changed_since(before)),
                // A server that is gone has been reported already.
                Err(_) => {
                    notes.push(format!("whether the tables of `{}` kept their shape is not known", access.node_name()));
                }
            }
        }
        notes
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        let Self { target, reached, .. } = *self;
        drop(target);
        reached.leave()
    }
}

fn describe(
    reached: &Reached,
    address: &TargetAddress,
    options: &DatabaseOptions,
    sending: Sending,
    data: &DataSet,
    mut facts: BTreeMap<String, String>,
) -> record::Target {
    let (send, timed_by) = match sending {
        Sending::Statement => ("statement", "client"),
        Sending::Batch => ("batch", "server"),
    };
    let own = [
        ("send", send.to_owned()),
        ("timed_by", timed_by.to_owned()),
        ("schema", options.schema.clone()),
        ("nodes", reached.connector.nodes().len().to_string()),
    ];
    facts.extend(own.map(|(name, value)| (name.to_owned(), value)));
    record::Target {
        kind: "postgres".to_owned(),
        address: address.to_string(),
        block_bytes: Some(u64::from(data.block_bytes)),
        data_bytes: Some(data.bytes()),
        cache_bytes: None,
        cache_blocks: None,
        facts,
    }
}
