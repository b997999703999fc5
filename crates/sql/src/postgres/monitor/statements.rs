//! Looks at all sessions of a server that works for others.

use std::collections::BTreeMap;
use std::time::Instant;

use tokio_postgres::{Row, Statement};

use super::super::connect::Connector;
use super::line::Looking;
use super::seen::{OWN_WORK, OWN_WORK_UNSEEN, add_work, holders_query, statements_query};
use crate::ServerError;
use crate::postgres::error_of;
use crate::statements::{HOLDERS_EVERY, StatementLine, text_of};
use measure::monotonic_ns;
use model::live::{LockHolder, SeenStatement, StatementLook};
use model::record::{SessionState, state};
use model::units::Nanos;

/// A connection that looks.
#[derive(Debug)]
pub struct PostgresStatements {
    looking: Looking,
    statements: Statement,
    holders: Statement,
    /// When it was asked last who holds locks.
    asked: Option<Instant>,
}

const LOOK: &str = "look at the sessions";

impl StatementLine for PostgresStatements {
    type Connector = Connector;

    async fn open(connector: &Connector) -> Result<(Self, Vec<String>), ServerError> {
        let looking = Looking::open(connector, 0).await?;
        let refused = |error: tokio_postgres::Error| error_of(&looking.at, LOOK, &error);
        let statements = looking.client.prepare(&statements_query()).await.map_err(refused)?;
        let holders = looking.client.prepare(&holders_query()).await.map_err(refused)?;
        let own_work = looking.client.query_one(OWN_WORK, &[]).await.map_err(refused)?;
        let notes = match own_work.get(0) {
            true => Vec::new(),
            false => vec![
                "sessions of other roles cannot be seen at work: a superuser can `GRANT pg_read_all_stats` to this role"
                    .to_owned(),
                OWN_WORK_UNSEEN.to_owned(),
            ],
        };
        // A server that stands still for longer is what is looked for.
        looking.client.batch_execute("SET statement_timeout = 0").await.map_err(refused)?;
        Ok((Self { looking, statements, holders, asked: None }, notes))
    }

    async fn look(&mut self) -> Result<StatementLook, ServerError> {
        let client = &self.looking.client;
        let ask = async |statement: &Statement| {
            let rows = client.query(statement, &[]).await;
            rows.map_err(|error| error_of(&self.looking.at, LOOK, &error))
        };
        let asked_ns = monotonic_ns();
        let rows = ask(&self.statements).await?;
        let mut look = StatementLook { asked_ns, answered_ns: monotonic_ns(), ..StatementLook::default() };
        for row in rows {
            let doing: String = row.get(4);
            match row.get::<_, &str>(0) {
                "statement" => look.statements.push(statement(&row, doing)),
                _ => add_work(look.work.get_or_insert_with(BTreeMap::new), &doing),
            }
        }
        let is_due = self.asked.is_none_or(|asked| asked.elapsed() >= HOLDERS_EVERY);
        if is_due && look.statements.iter().any(|one| one.state == SessionState::Lock) {
            self.asked = Some(Instant::now());
            look.holders = ask(&self.holders).await?.iter().map(holder).collect();
        }
        Ok(look)
    }
}

fn statement(row: &Row, doing: String) -> SeenStatement {
    let count = |column: usize| row.get::<_, i64>(column).unsigned_abs();
    SeenStatement {
        session: count(1),
        begun: count(2),
        age: Nanos(count(3).saturating_mul(1_000)),
        state: state(&doing),
        doing,
        text: text_of(row.get(5)),
    }
}

fn holder(row: &Row) -> LockHolder {
    let session = u64::try_from(row.get::<_, i64>(0)).ok().filter(|session| *session > 0);
    let waiting = u32::try_from(row.get::<_, i64>(2)).unwrap_or(u32::MAX);
    LockHolder { session, who: row.get(1), waiting }
}
