//! Who looks at servers while load runs: the monitor of their counters, and tracing in the kernel.

use std::path::Path;

use super::{Monitor, ServerReader};
use measure::environment;
use measure::trace::{TraceRequest, Tracer};
use targets::{Background, TargetError};

/// Monitor and tracer of a run.
pub struct Observers<R: ServerReader> {
    monitor: Monitor<R>,
    tracer: Option<Tracer>,
}

impl<R: ServerReader> Observers<R> {
    /// Both together.
    pub fn new(monitor: Monitor<R>, tracer: Option<Tracer>) -> Self {
        Self { monitor, tracer }
    }

    /// What the servers do not report, and what happened to them that figures do not show.
    pub fn notes(&self) -> Vec<String> {
        self.monitor.notes()
    }

    /// What they saw since the last call.
    pub fn take(&self) -> Background {
        let reported = self.monitor.take();
        let traces = self.tracer.as_ref().map(Tracer::take).unwrap_or_default();
        Background { counters: reported.counters, servers: reported.servers, traces, ..Background::default() }
    }

    /// Whether the servers still answer.
    ///
    /// # Errors
    /// [`TargetError::ServerSilent`] when one has not answered for [`ServerReader::SILENCE`].
    pub fn check(&self) -> Result<(), TargetError> {
        match self.monitor.silent_for() {
            Some(silent) if silent > R::SILENCE => Err(TargetError::ServerSilent { waited_s: silent.as_secs() }),
            _ => Ok(()),
        }
    }
}

/// Begins to trace the reads and writes of a server's process and of the devices below its data, where that is possible; says in
/// `notes` why it is not. `servers` is how many there are.
pub fn trace(servers: usize, process: Option<(u32, Option<&Path>)>, notes: &mut Vec<String>) -> Option<Tracer> {
    if servers > 1 {
        notes.push("reads and writes are not traced in the kernel where there are several servers".to_owned());
        return None;
    }
    let Some((pid, data_directory)) = process else {
        notes.push(
            "reads and writes are not traced: the server's processes cannot be seen from this machine".to_owned(),
        );
        return None;
    };
    let devices = data_directory.map(environment::devices_below).unwrap_or_default();
    match Tracer::start(&TraceRequest { process: Some(pid), devices }) {
        Ok(tracer) => Some(tracer),
        Err(missing) => {
            let hint = missing.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            notes.push(format!("reads and writes are not traced in the kernel: {missing}{hint}"));
            None
        }
    }
}
