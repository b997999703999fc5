//! Looks at all sessions of a server that works for others.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;

use super::connect::{Connected, Connector};
use super::monitor::{LOCK_WAITS, ROW_LOCK, state};
use crate::ServerError;
use crate::statements::{MAX_STATEMENTS, Quotes, StatementLine, TEXT_LETTERS, next_question, text_of};
use measure::monotonic_ns;
use model::live::{LockHolder, SeenStatement, StatementLook};
use model::record::SessionState;
use model::units::Nanos;

/// A connection that looks.
#[derive(Debug)]
pub struct MysqlStatements {
    connected: Connected,
    statements: String,
    /// The question about row locks, where this user may see them.
    holders: Option<String>,
    /// When it is put again.
    next: Instant,
    begun: Begun,
}

/// A row of the list of statements: session, number, age in microseconds, state, and the two ends of its text.
type Listed = (u64, u64, Option<u64>, Option<String>, Option<Vec<u8>>, Option<Vec<u8>>);

/// Statements of all sessions but this one. MariaDB's list of sessions has milliseconds; its numbers are of statements in procedures, so
/// that a statement of a client is told by its age.
const OF_MARIADB: &str = "SELECT id, 0, CAST(GREATEST(time_ms, 0) * 1000 AS UNSIGNED) AS age_us, \
    COALESCE(NULLIF(state, ''), 'executing'), LEFT(info, {letters}), RIGHT(info, {letters}) \
    FROM information_schema.processlist \
    WHERE command IN ('Query', 'Execute') AND info IS NOT NULL AND id <> CONNECTION_ID() \
    ORDER BY age_us DESC LIMIT {most}";
/// MySQL's has seconds, and its `performance_schema` picoseconds. The level, unlike the number of what a statement is nested in, does not
/// count transactions.
const OF_MYSQL: &str = "SELECT t.processlist_id, s.event_id, s.timer_wait DIV 1000000 AS age_us, \
    COALESCE(NULLIF(t.processlist_state, ''), 'executing'), LEFT(s.sql_text, {letters}), RIGHT(s.sql_text, {letters}) \
    FROM performance_schema.events_statements_current s JOIN performance_schema.threads t ON t.thread_id = s.thread_id \
    WHERE s.end_event_id IS NULL AND s.nesting_event_level = 0 AND s.sql_text IS NOT NULL \
    AND t.processlist_command IN ('Query', 'Execute') AND t.processlist_id <> CONNECTION_ID() \
    ORDER BY age_us DESC LIMIT {most}";
/// `ER_TABLEACCESS_DENIED_ERROR`.
const NO_RIGHT: u16 = 1142;
/// 3 where it lists statements at all.
const ARE_LISTED: &str = "SELECT COUNT(*) FROM performance_schema.setup_consumers WHERE enabled = 'YES' AND name IN \
    ('global_instrumentation', 'thread_instrumentation', 'events_statements_current')";
/// Sessions that wait for row locks.
const WAITING: &str = "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";

/// Younger statements are not looked up among row locks: each question holds up the lock system for a moment.
const WAITS_FROM: Nanos = Nanos::millis(100);
/// Between two questions: InnoDB answers from a snapshot that it renews only after 100 ms without a reader.
const LOCKS_EVERY: Duration = Duration::from_millis(120);
const LOOK: &str = "look at the sessions";

impl StatementLine for MysqlStatements {
    type Connector = Connector;

    async fn open(connector: &Connector) -> Result<(Self, Vec<String>), ServerError> {
        let mut connected = connector.connect(0).await?;
        let is_mariadb = connected.version.is_mariadb;
        let statements = filled(if is_mariadb { OF_MARIADB } else { OF_MYSQL });
        if !is_mariadb {
            let asked = connected.conn.query_first::<u64, _>(ARE_LISTED).await;
            // Who may not read that may read nothing of what follows.
            if asked.is_ok_and(|found| found != Some(3)) {
                let what = "the server does not list the statements that it executes";
                let hint = "UPDATE performance_schema.setup_consumers SET enabled = 'YES' WHERE name IN \
                            ('global_instrumentation', 'thread_instrumentation', 'events_statements_current')";
                return Err(ServerError::unfit(what, Some(hint.to_owned())));
            }
        }
        let tried = connected.conn.query_drop(&statements).await;
        tried.map_err(|error| match &error {
            mysql_async::Error::Server(refusal) if refusal.code == NO_RIGHT => ServerError::unfit(
                format!("the server does not show this user its statements: {}", refusal.message),
                Some("GRANT SELECT ON performance_schema.* to this user, and PROCESS ON *.*".to_owned()),
            ),
            _ => connected.error(LOOK, &error),
        })?;
        let holders = holders_query(&mut connected).await;
        let mut notes = Vec::new();
        if holders.is_none() {
            let others = if is_mariadb { "sessions of other users and row locks" } else { "row locks" };
            notes.push(format!(
                "{others} cannot be seen, so no stall is explained by them: `GRANT PROCESS ON *.*` to this user, and on MySQL 8 \
                 `GRANT SELECT ON performance_schema.*`"
            ));
        }
        let (next, begun) = (Instant::now(), Begun::default());
        Ok((Self { connected, statements, holders, next, begun }, notes))
    }

    async fn look(&mut self) -> Result<StatementLook, ServerError> {
        let Self { connected, statements, holders, next, begun } = self;
        let asked_ns = monotonic_ns();
        let asked = connected.conn.query::<Listed, _>(statements.as_str()).await;
        let rows = asked.map_err(|error| connected.error(LOOK, &error))?;
        let answered_ns = monotonic_ns();
        let mut look = StatementLook { asked_ns, answered_ns, ..StatementLook::default() };
        look.statements = rows.into_iter().filter_map(statement).collect();
        if connected.version.is_mariadb {
            begun.tell(&mut look.statements, answered_ns);
        }
        let is_old = look.statements.iter().any(|one| one.age >= WAITS_FROM && one.in_lock.is_none());
        let Some(holders) = holders.as_ref().filter(|_| is_old && Instant::now() >= *next) else { return Ok(look) };
        let asked = Instant::now();
        let answer = connected.conn.query::<u64, _>(WAITING).await;
        let waiting: HashSet<u64> = answer.map_err(|error| connected.error(LOOK, &error))?.into_iter().collect();
        if !waiting.is_empty() {
            let answer = connected.conn.query::<(u64, Option<u64>, String), _>(holders.as_str()).await;
            let rows = answer.map_err(|error| connected.error(LOOK, &error))?;
            let holder = |(waiter, session, who)| LockHolder { waiter, session, who };
            look.holders = rows.into_iter().map(holder).collect();
        }
        *next = next_question(asked, LOCKS_EVERY);
        for one in &mut look.statements {
            // The list of sessions does not say who waits for a row lock, and nothing is known of looks without this question.
            let waits = waiting.contains(&one.session);
            if one.in_lock.is_none() {
                one.in_lock = Some(waits);
            }
            if waits && one.state != SessionState::Lock {
                (one.doing, one.state) = (ROW_LOCK.to_owned(), SessionState::Lock);
            }
        }
        Ok(look)
    }
}

/// Tells statements of a session apart by their ages: the age of one grows as time passes.
#[derive(Debug, Default)]
struct Begun {
    /// The last statement of each session: its number, its age, and when that was.
    last: HashMap<u64, (u64, Nanos, u64)>,
    count: u64,
}

impl Begun {
    /// Ages are in milliseconds and of an instant of the answer that is not known.
    const TOLERANCE_NS: u64 = 20_000_000;

    fn tell(&mut self, statements: &mut [SeenStatement], now_ns: u64) {
        let before = std::mem::take(&mut self.last);
        for one in statements {
            let goes_on = before.get(&one.session).filter(|(_, age, at_ns)| {
                let due_ns = age.0.saturating_add(now_ns.saturating_sub(*at_ns));
                one.age.0.saturating_add(Self::TOLERANCE_NS) >= due_ns
            });
            one.begun = goes_on.map_or_else(
                || {
                    self.count += 1;
                    self.count
                },
                |(number, ..)| *number,
            );
            self.last.insert(one.session, (one.begun, one.age, now_ns));
        }
    }
}

/// Asks who waits for row locks of whom, where this user may see that.
async fn holders_query(connected: &mut Connected) -> Option<String> {
    for (table, requesting, blocking) in LOCK_WAITS {
        let holders = format!(
            "SELECT DISTINCT r.trx_mysql_thread_id, NULLIF(b.trx_mysql_thread_id, 0), \
             CASE WHEN b.trx_mysql_thread_id = 0 THEN 'a prepared transaction' \
             WHEN p.id IS NULL THEN 'a session of another user' \
             ELSE CONCAT(p.user, IF(p.command = 'Sleep', ', idle in a transaction', ', at work')) END FROM {table} w \
             JOIN information_schema.innodb_trx r ON r.trx_id = w.{requesting} \
             JOIN information_schema.innodb_trx b ON b.trx_id = w.{blocking} \
             LEFT JOIN information_schema.processlist p ON p.id = b.trx_mysql_thread_id \
             WHERE b.trx_state <> 'LOCK WAIT'"
        );
        if connected.conn.query_drop(&holders).await.is_ok() {
            return Some(holders);
        }
    }
    None
}

fn filled(statement: &str) -> String {
    statement.replace("{letters}", &TEXT_LETTERS.to_string()).replace("{most}", &MAX_STATEMENTS.to_string())
}

/// `None` where its age is not known.
fn statement((session, begun, age_us, doing, begin, end): Listed) -> Option<SeenStatement> {
    let age = Nanos(age_us?.saturating_mul(1_000));
    let doing = doing.unwrap_or_default();
    // All waits begin so, but for those on purpose (`User lock` of `GET_LOCK`); the other states say what the session does.
    let waits = doing.starts_with("Waiting for");
    let state = match state(&doing) {
        SessionState::Other | SessionState::Lock if !waits => SessionState::ProcessorOrRead,
        state => state,
    };
    let text = text_of([&begin.unwrap_or_default(), &end.unwrap_or_default()], Quotes::Both);
    let in_lock = (state == SessionState::Lock).then_some(true);
    Some(SeenStatement { session, begun, age, state, in_lock, doing, text })
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
                    waiting.count() == 2 && look.holders.len() == 2
                });
                assert_eq!(notes, Vec::<String>::new());
                assert_eq!(look.holders.len(), 2, "{look:?}");
                for by in &look.holders {
                    assert_eq!(by.session, Some(holder), "{look:?}");
                    assert!(by.who.contains("idle in a transaction"), "{by:?}");
                }
                let [one, other] = look.statements.as_slice() else { panic!("{look:?}") };
                assert!(one.text == other.text && one.session != other.session && one.age > Nanos(0), "{look:?}");
            },
        );
    }

    #[test]
    fn a_statement_is_told_from_the_next_one_by_its_age() {
        let mut begun = Begun::default();
        let mut told = |age_ms: u64, now_ms: u64| {
            let row = (7, 0, Some(age_ms * 1_000), Some("executing".to_owned()), Some(b"x".to_vec()), None);
            let mut one = [statement(row).unwrap()];
            begun.tell(&mut one, now_ms * 1_000_000);
            one[0].begun
        };
        let numbers =
            [told(5, 1_000), told(55, 1_050), told(102, 1_100), told(3, 1_150), told(49, 1_200), told(10, 1_400)];
        assert_eq!(numbers, [1, 1, 1, 2, 2, 3]);
    }

    #[test]
    fn only_waits_are_waits_and_locks_on_purpose_are_none() {
        let state = |doing: &str| statement((1, 1, Some(1), Some(doing.to_owned()), None, None)).unwrap();
        let lock = state("Waiting for table metadata lock");
        assert_eq!((lock.state, lock.in_lock), (SessionState::Lock, Some(true)));
        for doing in ["User lock", "Unlocking tables", "Creating sort index", "executing"] {
            let other = state(doing);
            assert_eq!((other.state, other.in_lock), (SessionState::ProcessorOrRead, None), "{doing}");
        }
        assert_eq!(state("Waiting for handler commit").state, SessionState::LogWrite);
        assert_eq!(statement((1, 1, None, None, None, None)), None, "it is not timed");
    }

    #[test]
    fn the_statement_for_mysql_lists_what_is_executed() {
        let Some(server) = server_with(&["--performance-schema=ON"]) else { return };
        execute(&server, &["UPDATE performance_schema.setup_consumers SET enabled = 'YES'"]);
        let asleep = || {
            block_on(async {
                let mut connected = server.connector().connect(0).await.unwrap();
                connected.execute("begin", "BEGIN").await.unwrap();
                // It is broken off.
                let _ = connected.conn.query_drop("SELECT SLEEP(60)").await;
            });
        };
        std::thread::scope(|scope| {
            scope.spawn(asleep);
            block_on(async {
                let mut connected = server.connector().connect(0).await.unwrap();
                assert_eq!(connected.conn.query_first::<u64, _>(ARE_LISTED).await.unwrap(), Some(3));
                let begun = Instant::now();
                let seen = loop {
                    assert!(begun.elapsed().as_secs() < 50, "it was not seen");
                    let rows = connected.conn.query::<Listed, _>(filled(OF_MYSQL)).await;
                    let mut rows: Vec<SeenStatement> = rows.unwrap().into_iter().filter_map(statement).collect();
                    if let Some(seen) = rows.pop().filter(|seen| seen.age >= Nanos::millis(100)) {
                        break seen;
                    }
                };
                assert_eq!(seen.text, text_of([b"SELECT SLEEP(1)"; 2], Quotes::Both), "{seen:?}");
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
        if let Err(error) = watched {
            // MySQL shows such a user nothing at all.
            let hint = model::hint(&error).unwrap_or_default();
            assert!(hint.contains("GRANT SELECT ON performance_schema"), "{error:?}");
            return;
        }
        assert!(notes[0].contains("sessions of other users and row locks"), "{notes:?}");
    }
}
