//! Looks at all sessions of a server that works for others.

use std::time::Instant;

use mysql_async::prelude::Queryable;

use super::connect::{Connected, Connector};
use super::monitor::{LOCK_WAITS, ROW_LOCK, state};
use crate::ServerError;
use crate::statements::{HOLDERS_EVERY, MAX_STATEMENTS, StatementLine, TEXT_LETTERS, text_of};
use measure::monotonic_ns;
use model::live::{LockHolder, SeenStatement, StatementLook};
use model::record::SessionState;
use model::units::Nanos;

/// A connection that looks.
#[derive(Debug)]
pub struct MysqlStatements {
    connected: Connected,
    statements: String,
    locks: Option<Locks>,
}

/// The questions about row locks, where this user may see them.
#[derive(Debug)]
struct Locks {
    holders: String,
    /// Sessions that wait for one, by the last answer, and when it came.
    waiting: Vec<u64>,
    asked: Instant,
}

/// Statements of all sessions but this one: session, number or begin, age in microseconds, state and text. MariaDB's list of sessions has
/// milliseconds.
const OF_MARIADB: &str = "SELECT id, query_id, CAST(GREATEST(time_ms, 0) * 1000 AS UNSIGNED) AS age_us, \
    COALESCE(NULLIF(state, ''), 'executing'), LEFT(info, {letters}) FROM information_schema.processlist \
    WHERE command IN ('Query', 'Execute') AND info IS NOT NULL AND id <> CONNECTION_ID() \
    ORDER BY age_us DESC LIMIT {most}";
/// MySQL's has seconds, and its `performance_schema` picoseconds.
const OF_MYSQL: &str = "SELECT t.processlist_id, s.event_id, s.timer_wait DIV 1000000 AS age_us, \
    COALESCE(NULLIF(t.processlist_state, ''), 'executing'), COALESCE(LEFT(s.sql_text, {letters}), s.event_name) \
    FROM performance_schema.events_statements_current s JOIN performance_schema.threads t ON t.thread_id = s.thread_id \
    WHERE s.end_event_id IS NULL AND s.nesting_event_id IS NULL AND t.processlist_command IN ('Query', 'Execute') \
    AND t.processlist_id <> CONNECTION_ID() ORDER BY age_us DESC LIMIT {most}";
/// 3 where it lists statements at all.
const ARE_LISTED: &str = "SELECT COUNT(*) FROM performance_schema.setup_consumers WHERE enabled = 'YES' AND name IN \
    ('global_instrumentation', 'thread_instrumentation', 'events_statements_current')";
/// Sessions that wait for row locks.
const WAITING: &str = "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";

/// Younger statements are not looked up among row locks: each question holds up the lock system for a moment.
const WAITS_FROM: Nanos = Nanos::millis(100);
const LOOK: &str = "look at the sessions";

impl StatementLine for MysqlStatements {
    type Connector = Connector;

    async fn open(connector: &Connector) -> Result<(Self, Vec<String>), ServerError> {
        let mut connected = connector.connect(0).await?;
        let is_mariadb = connected.version.is_mariadb;
        let statements = filled(if is_mariadb { OF_MARIADB } else { OF_MYSQL });
        if !is_mariadb {
            let asked = connected.conn.query_first::<u64, _>(ARE_LISTED).await;
            if asked.map_err(|error| connected.error(LOOK, &error))? != Some(3) {
                let what = "the server does not list the statements that it executes";
                let hint = "UPDATE performance_schema.setup_consumers SET enabled = 'YES' WHERE name IN \
                            ('global_instrumentation', 'thread_instrumentation', 'events_statements_current')";
                return Err(ServerError::unfit(what, Some(hint.to_owned())));
            }
        }
        let tried = connected.conn.query_drop(&statements).await;
        tried.map_err(|error| connected.error(LOOK, &error))?;
        let mut notes = Vec::new();
        let sees_all = "SELECT COUNT(*) FROM information_schema.user_privileges WHERE privilege_type = 'PROCESS'";
        let asked = connected.conn.query_first::<u64, _>(sees_all).await;
        if asked.map_err(|error| connected.error(LOOK, &error))? == Some(0) {
            notes.push("sessions of other users cannot be seen: `GRANT PROCESS ON *.*` to this user".to_owned());
        }
        let locks = Locks::find(&mut connected).await;
        if locks.is_none() {
            notes.push(
                "row locks cannot be seen, so no stall is explained by them: `GRANT PROCESS ON *.*` to this user, and on MySQL 8 \
                 `GRANT SELECT ON performance_schema.*`"
                    .to_owned(),
            );
        }
        Ok((Self { connected, statements, locks }, notes))
    }

    /// The list of sessions does not say who waits for a row lock: who did at the last question, and is executing the same statement, still
    /// does.
    async fn look(&mut self) -> Result<StatementLook, ServerError> {
        let Self { connected, statements, locks } = self;
        let asked_ns = monotonic_ns();
        let asked = connected.conn.query::<(u64, u64, u64, String, String), _>(statements.as_str()).await;
        let rows = asked.map_err(|error| connected.error(LOOK, &error))?;
        let mut look = StatementLook { asked_ns, answered_ns: monotonic_ns(), ..StatementLook::default() };
        look.statements = rows.into_iter().map(statement).collect();
        let Some(locks) = locks.as_mut() else { return Ok(look) };
        let is_old = look.statements.iter().any(|one| one.age >= WAITS_FROM);
        if is_old && locks.asked.elapsed() >= HOLDERS_EVERY {
            locks.asked = Instant::now();
            let asked = connected.conn.query::<u64, _>(WAITING).await;
            locks.waiting = asked.map_err(|error| connected.error(LOOK, &error))?;
            if !locks.waiting.is_empty() {
                let asked = connected.conn.query::<(Option<u64>, String, u32), _>(locks.holders.as_str()).await;
                let rows = asked.map_err(|error| connected.error(LOOK, &error))?;
                let holder = |(session, who, waiting)| LockHolder { session, who, waiting };
                look.holders = rows.into_iter().map(holder).collect();
            }
        }
        for one in &mut look.statements {
            // It began before the question, so that it is the one that waited then.
            let waits = locks.waiting.contains(&one.session) && one.age.as_duration() >= locks.asked.elapsed();
            if waits && one.state != SessionState::Lock {
                (one.doing, one.state) = (ROW_LOCK.to_owned(), SessionState::Lock);
            }
        }
        Ok(look)
    }
}

impl Locks {
    async fn find(connected: &mut Connected) -> Option<Self> {
        for (table, requesting, blocking) in LOCK_WAITS {
            let holders = format!(
                "SELECT b.trx_mysql_thread_id, CASE WHEN p.id IS NULL THEN 'a session of another user' \
                 ELSE CONCAT(p.user, IF(p.command = 'Sleep', ', idle in a transaction', ', at work')) END, \
                 CAST(COUNT(DISTINCT w.{requesting}) AS UNSIGNED) FROM {table} w \
                 JOIN information_schema.innodb_trx b ON b.trx_id = w.{blocking} \
                 LEFT JOIN information_schema.processlist p ON p.id = b.trx_mysql_thread_id \
                 WHERE b.trx_state <> 'LOCK WAIT' GROUP BY 1, 2"
            );
            if connected.conn.query_drop(&holders).await.is_ok() {
                let asked = Instant::now().checked_sub(HOLDERS_EVERY).unwrap_or_else(Instant::now);
                return Some(Self { holders, waiting: Vec::new(), asked });
            }
        }
        None
    }
}

fn filled(statement: &str) -> String {
    statement.replace("{letters}", &TEXT_LETTERS.to_string()).replace("{most}", &MAX_STATEMENTS.to_string())
}

fn statement((session, begun, age_us, doing, text): (u64, u64, u64, String, String)) -> SeenStatement {
    let age = Nanos(age_us.saturating_mul(1_000));
    SeenStatement { session, begun, age, state: state(&doing), doing, text: text_of(&text) }
}

#[cfg(test)]
mod tests {
    use super::super::test_server::{TestServer, block_on, server_with};
    use super::*;
    use crate::statements::tests::{held, seen_until};
    use crate::statements::{Watched, WatchedServer};

    fn execute(server: &TestServer, statements: &[&str]) {
        server.execute(statements);
    }

    #[test]
    fn sessions_in_row_locks_are_seen_with_the_one_that_holds_them() {
        let Some(server) = server_with(&[]) else { return };
        let made = ["CREATE DATABASE held", "CREATE TABLE held.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB"];
        execute(&server, &made);
        execute(&server, &["INSERT INTO held.t VALUES (1, 0)"]);
        let update = "UPDATE held.t SET v = v + 1 WHERE id = 1";
        held(
            |ready, released| {
                block_on(async {
                    let mut holder = server.connector().connect(0).await.unwrap();
                    for statement in ["BEGIN", update] {
                        holder.execute("hold a lock", statement).await.unwrap();
                    }
                    ready.send(u64::from(holder.conn.id())).unwrap();
                    released.recv().unwrap();
                    holder.execute("release it", "COMMIT").await.unwrap();
                });
            },
            || execute(&server, &[update]),
            |holder| {
                let watched = WatchedServer::Mysql(server.connector());
                let (look, notes) = seen_until(&watched, |look| {
                    let waiting = look.statements.iter().filter(|one| one.state == SessionState::Lock);
                    waiting.count() == 2 && !look.holders.is_empty()
                });
                assert_eq!(notes, Vec::<String>::new());
                let [by] = look.holders.as_slice() else { panic!("{look:?}") };
                assert_eq!((by.session, by.waiting), (Some(holder), 2), "{look:?}");
                assert!(by.who.contains("idle in a transaction"), "{by:?}");
                let [one, other] = look.statements.as_slice() else { panic!("{look:?}") };
                assert!(one.text == other.text && one.begun != other.begun && one.age > Nanos(0), "{look:?}");
            },
        );
    }

    #[test]
    fn the_statement_for_mysql_lists_what_is_executed() {
        let Some(server) = server_with(&["--performance-schema=ON"]) else { return };
        execute(&server, &["UPDATE performance_schema.setup_consumers SET enabled = 'YES'"]);
        let asleep = || {
            block_on(async {
                let mut connected = server.connector().connect(0).await.unwrap();
                // It is broken off.
                let _ = connected.conn.query_drop("SELECT SLEEP(60)").await;
            });
        };
        std::thread::scope(|scope| {
            scope.spawn(asleep);
            block_on(async {
                let mut connected = server.connector().connect(0).await.unwrap();
                assert_eq!(connected.conn.query_first::<u64, _>(ARE_LISTED).await.unwrap(), Some(3));
                let seen = loop {
                    let rows = connected.conn.query::<(u64, u64, u64, String, String), _>(filled(OF_MYSQL)).await;
                    let mut rows: Vec<SeenStatement> = rows.unwrap().into_iter().map(statement).collect();
                    if let Some(seen) = rows.pop().filter(|seen| seen.age >= Nanos::millis(100)) {
                        break seen;
                    }
                };
                assert_eq!(seen.text, text_of("SELECT SLEEP(1)"), "{seen:?}");
                assert!(seen.age < Nanos::seconds(60), "{seen:?}");
                connected.conn.query_drop(format!("KILL QUERY {}", seen.session)).await.unwrap();
            });
        });
    }

    #[test]
    fn a_user_who_sees_little_is_told_what_is_missing() {
        let Some(server) = server_with(&[]) else { return };
        execute(&server, &["CREATE USER little@'127.0.0.1' IDENTIFIED BY ''"]);
        let connector = Connector::new(&server.network("little"), "plimsoll tests").unwrap();
        let mut notes = Vec::new();
        let watched = WatchedServer::Mysql(connector).watch(&mut |happened| match happened {
            Watched::Open(found) => {
                notes = found;
                false
            }
            _ => true,
        });
        watched.unwrap();
        assert!(notes[0].contains("sessions of other users") && notes[1].contains("row locks"), "{notes:?}");
    }
}
