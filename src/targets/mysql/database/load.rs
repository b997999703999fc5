//! Servers under load: found fit, watched and opened.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{APPLICATION, Reached};
use crate::config::TargetAddress;
use crate::measure::Clock;
use crate::record;
use crate::targets::database::{DatabaseOptions, OpenDatabase, Sending};
use crate::targets::mysql::data::{self, Access};
use crate::targets::mysql::monitor::{Monitor, MonitorRequest};
use crate::targets::mysql::{Mysql, MysqlServers, Sql};
use crate::targets::sql::data::descriptor::DataSet;
use crate::targets::sql::{Observers, SqlOptions, trace};
use crate::targets::{TargetError, TargetFor};
use crate::workload::SlobOperation;

/// How often sessions are looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Servers that are watched and open for load.
// The target is dropped first: its monitor and tracer use the server.
struct OpenServers {
    target: Mysql,
    reached: Reached,
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
    let nodes = connector.nodes().len();
    let mut notes = reached.notes();
    let mut facts = reached.facts()?;
    for node in 0..nodes {
        let proof = data::prove(&Access { node, ..reached.access() }, &data, schemas)?;
        notes.extend(proof.notes.iter().cloned());
        facts.extend(proof.facts());
    }
    let monitor = Monitor::start(MonitorRequest {
        connector: connector.clone(),
        application: APPLICATION.to_owned(),
        page_bytes: data.block_bytes,
        sample_every: SAMPLE_EVERY,
    })?;
    notes.extend(monitor.notes());
    let files = reached.server.as_ref().map(|server| (server.pid(), server.data_directory()));
    let process = files.as_ref().map(|(pid, directory)| (*pid, Some(directory.as_path())));
    let tracer = if options.trace { trace(nodes, process, &mut notes) } else { None };
    let observers = Arc::new(Observers::new(monitor, tracer));
    let (background, health) = (Arc::clone(&observers), observers);
    let target = Mysql::open(SqlOptions {
        servers: MysqlServers::new(connector.clone(), Sql::new(&reached.database, data.block_bytes)),
        sending,
        description: describe(&reached, address, sending, &data, facts),
        notes,
        background: Some(Box::new(move || background.take())),
        health: Some(Box::new(move || health.check())),
    });
    Ok(Box::new(OpenServers { target, reached, clock: Clock::start() }))
}

impl OpenDatabase for OpenServers {
    fn target(&self) -> &dyn TargetFor<SlobOperation> {
        &self.target
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    /// Those of a private server.
    fn paths(&self) -> Vec<PathBuf> {
        self.reached.server.iter().map(|server| server.data_directory()).collect()
    }

    fn notes_of_the_load(&self) -> Vec<String> {
        self.target.notes_of_the_load()
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
        ("schema", reached.database.clone()),
        ("nodes", reached.connector.nodes().len().to_string()),
    ];
    facts.extend(own.map(|(name, value)| (name.to_owned(), value)));
    record::Target {
        kind: "mysql".to_owned(),
        address: address.to_string(),
        block_bytes: Some(u64::from(data.block_bytes)),
        data_bytes: Some(data.bytes()),
        cache_bytes: None,
        cache_blocks: None,
        facts,
    }
}
