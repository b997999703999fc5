//! A server as the ground of a run: found fit, watched, opened, and looked at again afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{APPLICATION, DEFAULT_SESSIONS, Nodes, Purpose, Reached, SendArgs, SendChoice, ServerArgs};
use crate::cli::exit::Failure;
use crate::cli::timed::TimedBy;
use crate::config::TargetAddress;
use crate::measure::environment;
use crate::measure::trace::{TraceRequest, Tracer};
use crate::plan::caches::ample_scale;
use crate::plan::slob::{Caching, Facts, RunPlan};
use crate::record;
use crate::targets::postgres::cluster::{check_memory, needed_memory};
use crate::targets::postgres::data::{self, Access, DataSet, Shape, proof, shape};
use crate::targets::postgres::{
    LocalServer, Monitor, MonitorRequest, Postgres, PostgresError, PostgresOptions, Sending,
};
use crate::targets::{Background, TargetError, TargetFor};
use crate::units::Bytes;
use crate::workload::SlobOperation;

/// How often sessions are looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// A server that can be planned on.
pub(in crate::cli) struct ServerSite<'a> {
    reached: Reached<'a>,
    address: &'a TargetAddress,
    arguments: &'a ServerArgs,
    sending: &'a SendArgs,
    send: SendChoice,
    data: DataSet,
}

impl<'a> ServerSite<'a> {
    /// Connects and looks what data are there; `None` if the address is not that of a server.
    pub(in crate::cli) fn reach(
        address: &'a TargetAddress,
        arguments: &'a ServerArgs,
        sending: &'a SendArgs,
        is_open_loop: bool,
        stop: &AtomicBool,
    ) -> Result<Option<Self>, Failure> {
        sending.check(address)?;
        let send = sending.send(is_open_loop);
        let nodes = if sending.per_node { Nodes::Each } else { Nodes::FirstThatAccepts };
        let Some(reached) = Reached::reach(address, arguments, nodes, Purpose::Use, None, stop)? else {
            return Ok(None);
        };
        let found = send.and_then(|send| Ok((send, load_everywhere(&reached)?)));
        match found {
            Ok((send, data)) => Ok(Some(Self { reached, address, arguments, sending, send, data })),
            Err(failure) => {
                // The first failure is the one to tell.
                let _ = reached.leave();
                Err(failure)
            }
        }
    }

    /// Who times operations.
    pub(in crate::cli::slob) fn timed_by(&self) -> TimedBy {
        match self.send {
            SendChoice::Batch => TimedBy::ServerInBatches,
            SendChoice::Statement => TimedBy::Client,
        }
    }

    /// What a plan needs to know.
    pub(in crate::cli) fn facts(&self) -> Result<Facts, TargetError> {
        let DataSet { schemas, scale_blocks, scan_blocks, block_bytes, filling, .. } = self.data;
        let caching = self.reached.cache()?.map_or(Caching::Unknown, Caching::There);
        Ok(Facts { schemas, scale_blocks, scan_blocks, block_bytes, filling, available_memory: None, caching })
    }

    /// Refuses more sessions than the memory of a private cluster does for, and reports on a log that may have too little room.
    pub(in crate::cli::slob) fn check(&self, plan: &RunPlan) -> Result<Vec<String>, Failure> {
        if let (Some(limit), true) = (self.arguments.host_memory(), self.reached.cluster().is_some()) {
            let schemas = plan.steps.iter().filter_map(|step| step.load.schemas).max().unwrap_or(self.data.schemas);
            let (buffers, sessions) = (self.arguments.db_cache(), plan.max_sessions());
            check_memory(limit, buffers, sessions).map_err(|error| {
                let scale = ample_scale(schemas, needed_memory(buffers, sessions));
                let ample = format!("data of four times that are `{scale}` for each of {schemas} schemas");
                let hint = error.hint().map_or_else(|| ample.clone(), |hint| format!("{hint}; {ample}"));
                Failure::from(error).with_hint(hint)
            })?;
        }
        if plan.steps.iter().all(|step| step.shape.update_pct == 0) {
            return Ok(Vec::new());
        }
        let log = self.reached.facts()?.get("setting.max_wal_size").and_then(|text| text.parse().ok());
        let reported =
            log.zip(self.reached.room()).filter(|(log, (_, room)): &(Bytes, _)| log > room).map(|(log, (at, room))| {
                format!(
                    "the write-ahead log may grow to {log} between checkpoints, and {room} are left in `{}`",
                    at.display()
                )
            });
        Ok(reported.into_iter().collect())
    }

    /// Stops a private cluster again.
    pub(in crate::cli) fn leave(self) -> Result<(), TargetError> {
        Ok(self.reached.leave()?)
    }

    /// Proves how the data of so many schemas lie, begins to watch, and opens the server for so many sessions.
    pub(in crate::cli) fn open(
        self,
        sessions: u32,
        schemas: u32,
        stop: &AtomicBool,
    ) -> Result<ServerGround<'a>, Failure> {
        let Self { reached, address, arguments, sending, send, data } = self;
        let reached = with_room(reached, address, arguments, sessions, stop)?;
        match Watched::begin(&reached, sending, send, &data, schemas) {
            Ok(Watched { target, before, schemas }) => Ok(ServerGround { reached, target, data, before, schemas }),
            Err(failure) => {
                let _ = reached.leave();
                Err(failure)
            }
        }
    }
}

/// The data set, which must be the same on every server.
fn load_everywhere(reached: &Reached<'_>) -> Result<DataSet, Failure> {
    let first = data::load(&reached.access())?;
    for node in 1..reached.connector().nodes().len() {
        let access = Access { node, ..reached.access() };
        let other = data::load(&access)?;
        // Two servers may hold the same data from two set-ups; only when they were made differs then.
        if (DataSet {
            created_at: first.created_at.clone(),
            plimsoll_version: first.plimsoll_version.clone(),
            ..other.clone()
        }) != first
        {
            let failure = Failure::new(format_args!(
                "the data on `{}` differ from those on `{}`",
                access.node_name(),
                reached.access().node_name()
            ));
            return Err(failure.with_hint("set both up with the same parameters and the same `--seed`".to_owned()));
        }
    }
    Ok(first)
}

/// Makes sure that a private cluster takes so many sessions: it was started before anybody knew how many there will be.
fn with_room<'a>(
    reached: Reached<'a>,
    address: &'a TargetAddress,
    arguments: &'a ServerArgs,
    sessions: u32,
    stop: &AtomicBool,
) -> Result<Reached<'a>, Failure> {
    if reached.cluster().is_none() || sessions <= DEFAULT_SESSIONS {
        return Ok(reached);
    }
    reached.leave()?;
    let reached = Reached::reach(address, arguments, Nodes::FirstThatAccepts, Purpose::Use, Some(sessions), stop)?;
    Ok(reached.expect("the address is that of a server, as it was before"))
}

/// A server that is open for load.
pub(in crate::cli) struct ServerGround<'a> {
    reached: Reached<'a>,
    target: Postgres,
    data: DataSet,
    /// How large the tables of each server were before the load.
    before: Vec<Shape>,
    schemas: u32,
}

impl ServerGround<'_> {
    /// What load is put on.
    pub(in crate::cli) fn target(&self) -> &dyn TargetFor<SlobOperation> {
        &self.target
    }

    /// Directories whose devices are watched: those of a server that runs here and whose files are known.
    pub(in crate::cli) fn paths(&self) -> Vec<PathBuf> {
        self.reached.local().and_then(|local| local.data_directory).into_iter().collect()
    }

    /// What the user should know now that the load has ended.
    pub(in crate::cli) fn notes_of_the_load(&self) -> Vec<String> {
        let mut notes = self.target.notes_of_the_load();
        for (node, before) in self.before.iter().enumerate() {
            let access = Access { node, ..self.reached.access() };
            match shape::read(&access, &self.data, self.schemas) {
                Ok(now) => notes.extend(now.changed_since(before)),
                // A server that is gone has been reported on already.
                Err(_) => {
                    notes.push(format!("whether the tables of `{}` kept their shape is not known", access.node_name()))
                }
            }
        }
        notes
    }

    /// Ends watching and connections, and stops a private cluster.
    pub(in crate::cli) fn close(self) -> Result<(), TargetError> {
        let Self { reached, target, .. } = self;
        drop(target);
        Ok(reached.leave()?)
    }
}

/// A server that is watched and open for load.
struct Watched {
    target: Postgres,
    before: Vec<Shape>,
    schemas: u32,
}

impl Watched {
    fn begin(
        reached: &Reached<'_>,
        sending: &SendArgs,
        send: SendChoice,
        data: &DataSet,
        schemas: u32,
    ) -> Result<Self, Failure> {
        let connector = reached.connector();
        let nodes = || (0..connector.nodes().len()).map(|node| Access { node, ..reached.access() });
        let mut notes = reached.notes().to_vec();
        let mut facts = reached.facts()?;
        for access in nodes() {
            let proof = proof::prove(&access, data, schemas)?;
            notes.extend(proof.notes.iter().cloned());
            facts.extend(proof.facts());
        }
        let before = nodes().map(|access| shape::read(&access, data, schemas)).collect::<Result<_, _>>()?;
        let monitor = Monitor::start(MonitorRequest {
            connector: connector.clone(),
            schema: reached.access().namespace.to_owned(),
            schemas,
            block_bytes: data.block_bytes,
            application: APPLICATION.to_owned(),
            local: vec![reached.local(); connector.nodes().len()],
            sample_every: SAMPLE_EVERY,
        })?;
        notes.extend(monitor.notes());
        let tracer = if sending.no_trace { None } else { trace(reached, &mut notes)? };
        let watch = Arc::new(Watch { monitor, tracer });
        let (background, health) = (Arc::clone(&watch), watch);
        let target = Postgres::open(PostgresOptions {
            connector: connector.clone(),
            sql: data.sql(reached.access().namespace),
            sending: match send {
                SendChoice::Statement => Sending::Statement,
                SendChoice::Batch => Sending::Batch,
            },
            description: describe(reached, send, data, facts),
            notes,
            background: Some(Box::new(move || background.take())),
            health: Some(Box::new(move || health.check())),
        });
        Ok(Self { target, before, schemas })
    }
}

/// A server that has not answered the monitor for so long, on connections that are still open, is taken for gone.
const SILENCE: Duration = Duration::from_secs(30);

/// Who looks at the servers while load runs.
struct Watch {
    monitor: Monitor,
    tracer: Option<Tracer>,
}

impl Watch {
    fn take(&self) -> Background {
        let reported = self.monitor.take();
        let traces = self.tracer.as_ref().map(Tracer::take).unwrap_or_default();
        Background { counters: reported.counters, servers: reported.servers, traces, ..Background::default() }
    }

    fn check(&self) -> Result<(), TargetError> {
        match self.monitor.silent_for() {
            Some(silent) if silent > SILENCE => Err(PostgresError::TimedOut {
                node: "the server".to_owned(),
                doing: "tell its counters".to_owned(),
                waited_s: silent.as_secs(),
            }
            .into()),
            _ => Ok(()),
        }
    }
}

/// Begins to trace the server's reads and writes in the kernel, where that is possible.
fn trace(reached: &Reached<'_>, notes: &mut Vec<String>) -> Result<Option<Tracer>, Failure> {
    if reached.connector().nodes().len() > 1 {
        notes.push("reads and writes are not traced in the kernel where there are several servers".to_owned());
        return Ok(None);
    }
    let local = match reached.local() {
        Some(local) => Some(local),
        None => LocalServer::find(reached.connector(), 0)?,
    };
    let Some(local) = local else {
        notes.push(
            "reads and writes are not traced: the server's processes cannot be seen from this machine".to_owned(),
        );
        return Ok(None);
    };
    let devices = local.data_directory.as_deref().map(environment::devices_below).unwrap_or_default();
    match Tracer::start(&TraceRequest { process: Some(local.postmaster_pid), devices }) {
        Ok(tracer) => Ok(Some(tracer)),
        Err(missing) => {
            let hint = missing.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            notes.push(format!("reads and writes are not traced in the kernel: {missing}{hint}"));
            Ok(None)
        }
    }
}

fn describe(
    reached: &Reached<'_>,
    send: SendChoice,
    data: &DataSet,
    mut facts: BTreeMap<String, String>,
) -> record::Target {
    let (send, timed_by) = match send {
        SendChoice::Statement => ("statement", "client"),
        SendChoice::Batch => ("batch", "server"),
    };
    let own = [
        ("send", send.to_owned()),
        ("timed_by", timed_by.to_owned()),
        ("schema", reached.access().namespace.to_owned()),
        ("nodes", reached.connector().nodes().len().to_string()),
    ];
    facts.extend(own.map(|(name, value)| (name.to_owned(), value)));
    record::Target {
        kind: "postgres".to_owned(),
        address: reached.address().to_string(),
        block_bytes: Some(u64::from(data.block_bytes)),
        data_bytes: Some(data.bytes()),
        cache_bytes: None,
        cache_blocks: None,
        facts,
    }
}
