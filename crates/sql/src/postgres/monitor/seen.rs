//! One look at a server: what the load's sessions do, who holds them up, and what the server itself does.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::sql::literal;
use crate::statements::{MAX_STATEMENTS, TEXT_LETTERS};
use crate::{Doing, Sampled};
use model::record::{Look, ServerWork};

/// Sessions that wait for a lock and are asked about, those that wait longest: each question holds up the lock manager for a moment.
const MAX_WAITERS: u32 = 8;
/// Letters of a name that a client gave itself.
const MAX_NAME: u32 = 40;

/// Whether this role sees what the server itself does.
pub(super) const OWN_WORK: &str =
    "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_stat_get_activity(NULL) WHERE backend_type = 'checkpointer')";
/// What it means that it does not.
pub(super) const OWN_WORK_UNSEEN: &str = "checkpoints and autovacuum cannot be seen at work, so no stall is explained by them: \
                                          a superuser can `GRANT pg_read_all_stats` to this role";

/// All sessions and processes at one instant, this one, and those of the load at work. Every role may see sessions of its own; the
/// function is asked because the view would look roles and databases up in the catalog each time.
fn sessions(application: &str) -> String {
    format!(
        "WITH seen AS (SELECT pid, datid, usesysid, application_name, state, wait_event_type, wait_event, \
         backend_type, query_start FROM pg_catalog.pg_stat_get_activity(NULL)), \
         own AS (SELECT usesysid, datid FROM seen WHERE pid = pg_catalog.pg_backend_pid()), \
         load AS (SELECT a.* FROM seen a, own WHERE {} AND a.state = 'active') ",
        is_of_load("a", application)
    )
}

fn is_of_load(alias: &str, application: &str) -> String {
    let application = literal(application);
    format!(
        "{alias}.application_name = {application} AND {alias}.usesysid = own.usesysid AND {alias}.datid = own.datid"
    )
}

/// A statement that gives rows of a kind (`load`, `work`), what it is, how many, and microseconds since the statement began that began
/// first.
pub(super) fn look_query(application: &str) -> String {
    sessions(application)
        + "SELECT 'load', coalesce(wait_event_type || ':' || wait_event, 'CPU'), count(*), \
           coalesce((extract(epoch FROM max(pg_catalog.clock_timestamp() - query_start)) * 1e6)::int8, 0) \
           FROM load GROUP BY 2 \
           UNION ALL SELECT 'work', backend_type || '/' || coalesce(wait_event_type || ':' || wait_event, 'CPU'), \
           count(*), 0 FROM seen WHERE backend_type IN ('checkpointer', 'autovacuum worker') GROUP BY 2"
}

/// A statement that gives who holds up sessions that wait for locks and does not wait for one itself, and how many sessions. One whose
/// waits this role may not see may in truth wait for another.
pub(super) fn blockers_query(application: &str) -> String {
    format!(
        "{}SELECT who, count(DISTINCT waiter) FROM (SELECT w.pid AS waiter, CASE \
         WHEN b.pid = 0 THEN 'a prepared transaction' \
         WHEN {} THEN '{}' \
         {} END AS who \
         FROM (SELECT pid FROM load WHERE wait_event_type = 'Lock' ORDER BY query_start LIMIT {MAX_WAITERS}) w \
         CROSS JOIN LATERAL (SELECT pg_catalog.unnest(pg_catalog.pg_blocking_pids(w.pid)) AS pid) b \
         CROSS JOIN own LEFT JOIN seen s ON s.pid = b.pid \
         WHERE (b.pid = 0 OR s.pid IS NOT NULL) AND s.wait_event_type IS DISTINCT FROM 'Lock') held GROUP BY who",
        sessions(application),
        is_of_load("s", application),
        Look::OWN,
        who()
    )
}

/// The last cases of an expression that says in words what session `s` is.
fn who() -> String {
    let special = "WHEN s.backend_type IS NULL THEN 'a session of another role, or who holds it up' \
                   WHEN s.backend_type = 'autovacuum worker' THEN 'autovacuum' ";
    let name = format!(
        "pg_catalog.left(coalesce(nullif(s.application_name, ''), s.backend_type), {MAX_NAME}) || ', ' || s.state"
    );
    special.to_owned() + "WHEN s.state IS NULL THEN s.backend_type ELSE " + &name
}

/// The columns of all sessions and processes that tell what they do.
const ALL: &str = "seen AS (SELECT pid, application_name, state, wait_event_type, wait_event, backend_type, query_start, query \
                   FROM pg_catalog.pg_stat_get_activity(NULL))";

/// A statement that gives rows of a kind (`statement`, `work`), and of each statement of any session but this one: process, begin and age
/// in microseconds, what it does, and the two ends of its text. `work` is as in [`look_query`].
pub(super) fn statements_query() -> String {
    format!(
        "WITH {ALL} (SELECT 'statement', pid::int8, (extract(epoch FROM query_start)::float8 * 1e6::float8)::int8, \
         greatest((extract(epoch FROM pg_catalog.clock_timestamp() - query_start)::float8 * 1e6::float8)::int8, 0), \
         coalesce(wait_event_type || ':' || wait_event, 'CPU'), \
         pg_catalog.left(query, {TEXT_LETTERS}), pg_catalog.right(query, {TEXT_LETTERS}) FROM seen \
         WHERE backend_type = 'client backend' AND state = 'active' AND query_start IS NOT NULL \
         AND pid <> pg_catalog.pg_backend_pid() ORDER BY query_start LIMIT {MAX_STATEMENTS}) \
         UNION ALL SELECT 'work', 0, 0, 0, \
         backend_type || '/' || coalesce(wait_event_type || ':' || wait_event, 'CPU'), '', '' \
         FROM seen WHERE backend_type IN ('checkpointer', 'autovacuum worker')"
    )
}

/// A statement that gives who waits for a lock of whom, of those that began to wait first: both processes, and words for the one that holds
/// it. Who waits for an advisory lock may do so on purpose.
pub(super) fn holders_query() -> String {
    format!(
        "WITH {ALL} SELECT w.pid::int8, b.pid::int8, CASE WHEN b.pid = 0 THEN 'a prepared transaction' {} END \
         FROM (SELECT pid FROM seen WHERE wait_event_type = 'Lock' AND wait_event <> 'advisory' \
         AND backend_type = 'client backend' ORDER BY query_start LIMIT {MAX_WAITERS}) w \
         CROSS JOIN LATERAL (SELECT DISTINCT pg_catalog.unnest(pg_catalog.pg_blocking_pids(w.pid)) AS pid) b \
         LEFT JOIN seen s ON s.pid = b.pid \
         WHERE (b.pid = 0 OR s.pid IS NOT NULL) AND s.wait_event_type IS DISTINCT FROM 'Lock'",
        who()
    )
}

/// Adds what a process of the server does to its work.
pub(super) fn add_work(all: &mut BTreeMap<ServerWork, u32>, what: &str) {
    if let Some(work) = work(what) {
        *all.entry(work).or_default() += 1;
    }
}

/// Puts together the rows of [`look_query`].
pub(super) fn sampled(rows: impl Iterator<Item = (String, String, i64, i64)>) -> Sampled {
    let mut sampled = Sampled::default();
    for (kind, what, count, age_us) in rows {
        let few = u32::try_from(count).unwrap_or(u32::MAX);
        match kind.as_str() {
            "load" => {
                let age = Duration::from_micros(age_us.unsigned_abs());
                sampled.oldest = sampled.oldest.max(Some(age));
                sampled.doing.push(Doing::from((what, count.unsigned_abs())));
            }
            _ => {
                let all = sampled.work.get_or_insert_with(BTreeMap::new);
                if let Some(work) = work(&what) {
                    *all.entry(work).or_default() += few;
                }
            }
        }
    }
    sampled
}

/// What a process of the server does by its kind and its wait event, after the chapter "The Cumulative Statistics System" of the manual;
/// nothing while it sleeps, as vacuum does most of its time, or waits for others.
fn work(what: &str) -> Option<ServerWork> {
    let (kind, event) = what.split_once('/')?;
    match (kind, event) {
        ("checkpointer", "Activity:CheckpointerMain") => None,
        ("checkpointer", "Timeout:CheckpointWriteDelay" | "Timeout:CheckpointerWriteDelay") => {
            Some(ServerWork::CheckpointPause)
        }
        ("checkpointer", event) if event.to_ascii_lowercase().contains("sync") => Some(ServerWork::CheckpointSync),
        ("checkpointer", _) => Some(ServerWork::CheckpointWrite),
        ("autovacuum worker", "CPU") => Some(ServerWork::Autovacuum),
        ("autovacuum worker", event) if event.starts_with("IO:") || event.starts_with("LWLock:") => {
            Some(ServerWork::Autovacuum)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sessions_with_the_oldest_statement_and_work_of_the_server() {
        let row = |kind: &str, what: &str, count, age| (kind.to_owned(), what.to_owned(), count, age);
        let rows = [
            row("load", "CPU", 3, 1_500),
            row("load", "Lock:relation", 2, 90_000),
            row("work", "checkpointer/IO:DataFileSync", 1, 0),
            row("work", "autovacuum worker/Timeout:VacuumDelay", 2, 0),
            row("work", "autovacuum worker/CPU", 1, 0),
        ];
        let seen = sampled(rows.into_iter());
        assert_eq!(seen.oldest, Some(Duration::from_millis(90)));
        assert_eq!(seen.doing, [("CPU".to_owned(), 3).into(), ("Lock:relation".to_owned(), 2).into()]);
        let work = seen.work.unwrap();
        assert_eq!(work, BTreeMap::from([(ServerWork::CheckpointSync, 1), (ServerWork::Autovacuum, 1)]));
        let idle = sampled([row("work", "checkpointer/Activity:CheckpointerMain", 1, 0)].into_iter());
        assert_eq!((idle.work, idle.oldest), (Some(BTreeMap::new()), None));
        assert_eq!(sampled(std::iter::empty()).work, None, "it does not let us see");
    }

    #[test]
    fn a_checkpoint_pauses_writes_and_syncs_by_the_names_of_every_version() {
        for (event, expected) in [
            ("Timeout:CheckpointWriteDelay", ServerWork::CheckpointPause),
            ("CPU", ServerWork::CheckpointWrite),
            ("IO:DataFileWrite", ServerWork::CheckpointWrite),
            ("IO:DataFileFlush", ServerWork::CheckpointWrite),
            ("IO:SLRUFlushSync", ServerWork::CheckpointSync),
            ("IO:SlruSync", ServerWork::CheckpointSync),
            ("IO:WalSync", ServerWork::CheckpointSync),
            ("IO:ControlFileSyncUpdate", ServerWork::CheckpointSync),
        ] {
            assert_eq!(work(&format!("checkpointer/{event}")), Some(expected), "{event}");
        }
    }
}
