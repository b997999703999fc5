//! Looks at all sessions of a server that works for others.
//!
//! Nothing is set for the session: behind a pooler it is one of the application's, which goes on with it. So every function is called by its
//! schema, and no name of a schema that others write to is looked up.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Row, Statement};

use super::super::connect::{Connected, Connector};
use super::seen::{OWN_WORK, OWN_WORK_UNSEEN, add_work, holders_query, statements_query};
use crate::ServerError;
use crate::postgres::error_of;
use crate::statements::{Quotes, StatementLine, next_question, text_of};
use measure::monotonic_ns;
use model::live::{LockHolder, SeenStatement, StatementLook};
use model::record::{SessionState, state};
use model::units::Nanos;

/// A connection that looks.
#[derive(Debug)]
pub struct PostgresStatements {
    client: Client,
    at: String,
    statements: Statement,
    holders: Statement,
    /// When it is asked again who holds locks.
    next: Instant,
}

const LOOK: &str = "look at the sessions";
/// Between two questions about locks: each holds up the lock manager for a moment.
const LOCKS_EVERY: Duration = Duration::from_millis(500);
/// Whether sessions say what they do.
const ACTIVITIES: &str = "SELECT pg_catalog.current_setting('track_activities') = 'on'";

impl StatementLine for PostgresStatements {
    type Connector = Connector;

    async fn open(connector: &Connector) -> Result<(Self, Vec<String>), ServerError> {
        let Connected { client, .. } = connector.connect(0).await?;
        let at = connector.nodes()[0].to_string();
        let refused = |error: tokio_postgres::Error| error_of(&at, LOOK, &error);
        let statements = client.prepare(&statements_query()).await.map_err(refused)?;
        let holders = client.prepare(&holders_query()).await.map_err(refused)?;
        let mut notes = Vec::new();
        if !client.query_one(OWN_WORK, &[]).await.map_err(refused)?.get::<_, bool>(0) {
            notes.push(
                "sessions of other roles cannot be seen at work: a superuser can `GRANT pg_read_all_stats` to this role"
                    .to_owned(),
            );
            notes.push(OWN_WORK_UNSEEN.to_owned());
        }
        if !client.query_one(ACTIVITIES, &[]).await.map_err(refused)?.get::<_, bool>(0) {
            notes.push(
                "`track_activities` is off, so sessions are not seen at work: a superuser can set it on".to_owned(),
            );
        }
        Ok((Self { client, at, statements, holders, next: Instant::now() }, notes))
    }

    async fn look(&mut self) -> Result<StatementLook, ServerError> {
        let ask = async |statement: &Statement| {
            let rows = self.client.query(statement, &[]).await;
            rows.map_err(|error| error_of(&self.at, LOOK, &error))
        };
        let unread = |error: tokio_postgres::Error| ServerError::unfit(format!("cannot {LOOK}: {error}"), None);
        let asked_ns = monotonic_ns();
        let rows = ask(&self.statements).await?;
        let mut look = StatementLook { asked_ns, answered_ns: monotonic_ns(), ..StatementLook::default() };
        for row in rows {
            match row.try_get::<_, &str>(0).map_err(unread)? {
                "statement" => look.statements.push(statement(&row).map_err(unread)?),
                _ => add_work(look.work.get_or_insert_with(BTreeMap::new), row.try_get(4).map_err(unread)?),
            }
        }
        if Instant::now() >= self.next && look.statements.iter().any(|one| one.in_lock == Some(true)) {
            let asked = Instant::now();
            let rows = ask(&self.holders).await?;
            look.holders = rows.iter().map(holder).collect::<Result<_, _>>().map_err(unread)?;
            self.next = next_question(asked, LOCKS_EVERY);
        }
        Ok(look)
    }
}

/// Text in whatever encoding its database has.
struct Bytes<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Bytes<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TEXT
    }
}

fn statement(row: &Row) -> Result<SeenStatement, tokio_postgres::Error> {
    let count = |column: usize| row.try_get::<_, i64>(column).map(i64::unsigned_abs);
    let doing: String = row.try_get(4)?;
    let (begin, end): (Bytes<'_>, Bytes<'_>) = (row.try_get(5)?, row.try_get(6)?);
    let state = state(&doing);
    Ok(SeenStatement {
        session: count(1)?,
        begun: count(2)?,
        age: Nanos(count(3)?.saturating_mul(1_000)),
        in_lock: Some(state == SessionState::Lock && doing != "Lock:advisory"),
        // The leader of a parallel query waits for its workers, whatever these do.
        state: if doing.starts_with("IPC:") && state == SessionState::Other { SessionState::Processor } else { state },
        doing,
        text: text_of([begin.0, end.0], Quotes::Single),
    })
}

fn holder(row: &Row) -> Result<LockHolder, tokio_postgres::Error> {
    let number = |column: usize| row.try_get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(LockHolder {
        waiter: number(0)?,
        session: Some(number(1)?).filter(|session| *session > 0),
        who: row.try_get(2)?,
    })
}
