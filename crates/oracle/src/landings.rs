//! Where sessions landed: a listener sends them wherever it likes, so a cluster may be loaded on one side.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::connect::{Connected, Connector};
use super::driver::Row;
use super::sql::AT_WORK;
use ::sql::{ServerError, SessionId};

/// A call that takes longer is cancelled. It is far above any operation, the scan of a large table included; a server that is silent is
/// noticed before, by asking it.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(300);
/// An instance that has so small a part more sessions than another is no finding.
const UNBALANCED_PART: u64 = 10;

/// Sessions that were opened, by the instance where they landed.
#[derive(Debug, Default)]
pub(super) struct Landings(Mutex<Vec<(String, u64)>>);

impl Landings {
    fn lock(&self) -> MutexGuard<'_, Vec<(String, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session of the load, and notes where that is.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn open(&self, connector: &Connector, node: usize) -> Result<Connected, ServerError> {
        let connected = connector.connect(node)?;
        connected.limit_calls(Some(CALL_LIMIT))?;
        connected.name_work(connector.program(), "load");
        let mut landed = self.lock();
        match landed.iter_mut().find(|(name, _)| *name == connected.instance) {
            Some((_, sessions)) => *sessions += 1,
            None => landed.push((connected.instance.clone(), 1)),
        }
        drop(landed);
        Ok(connected)
    }

    /// What is worth knowing of it.
    pub(super) fn notes(&self, connector: &Connector) -> Vec<String> {
        let mut landed = self.lock().clone();
        if landed.is_empty() {
            return Vec::new();
        }
        // Where a cluster is watched as a whole, an instance that got none is known too.
        let watched = connector.instances();
        let without = watched.values().filter(|name| !landed.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        let without: Vec<(String, u64)> = without.map(|name| (name.clone(), 0)).collect();
        landed.extend(without);
        landed.sort();
        let all: Vec<String> = landed.iter().map(|(instance, sessions)| format!("{instance} {sessions}")).collect();
        let most = landed.iter().map(|(_, sessions)| *sessions).max().unwrap_or(0);
        let least = landed.iter().map(|(_, sessions)| *sessions).min().unwrap_or(0);
        let mut notes = Vec::new();
        if landed.len() > 1 {
            notes.push(format!("sessions landed on instances, over all steps: {}", all.join(", ")));
        }
        if most > least + least / UNBALANCED_PART + 1 {
            notes.push(
                "the instances had unequal shares of the sessions, so one of them is loaded before the others: name each by \
                 `--per-node`, or numbered services by `services=N`"
                    .to_owned(),
            );
        }
        notes
    }

    /// Those of `sessions` that the server works for just now; none where it does not say so.
    pub(super) async fn at_work(
        &self,
        connector: &Connector,
        node: usize,
        sessions: Vec<SessionId>,
    ) -> Option<Vec<SessionId>> {
        let connector = connector.clone();
        let landed: Vec<String> = self.lock().iter().map(|(instance, _)| instance.clone()).collect();
        let asked = tokio::task::spawn_blocking(move || {
            let connected = connector.connect(node).ok()?;
            // Another instance knows nothing of these sessions, and who is not seen would pass for idle.
            let is_alone = landed == [connected.instance.as_str()];
            let busy = if is_alone { AT_WORK.to_owned() } else { AT_WORK.replace("v$session", "gv$session") };
            let read = |row: &Row| Ok(SessionId { number: row.get(0)?, serial: row.get(1)? });
            connected.query("look which sessions work", &busy, &[], read).ok()
        });
        let busy = asked.await.ok()??;
        Some(sessions.into_iter().filter(|id| busy.contains(id)).collect())
    }
}
