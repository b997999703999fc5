//! Order entry on Oracle's sessions, each of which is a thread.

use std::sync::Arc;

use super::connect::{Connected, Connector};
use super::driver::{DB_TYPE_NUMBER, Prepared, Row, ToDbValue, Value};
use super::session::Landings;
use super::worker::{Opened, ThreadSession, Work};
use ::sql::orders::load::{ANSWERS, Argument, End, Gives, OrdersSession, OrdersSetting, Rows, Statement};
use ::sql::{ServerError, SessionId, SqlServers};

/// Levels of transactions that Oracle has, as SQL has them.
pub(super) const LEVELS: [&str; 2] = ["READ COMMITTED", "SERIALIZABLE"];
/// What sessions do, as an error says it.
const DOING: &str = "do a transaction";

/// Oracle databases with the data of order entry.
#[derive(Debug)]
pub struct OracleOrders(Arc<Shared>);

/// What the sessions of a run have in common.
#[derive(Debug)]
struct Shared {
    connector: Connector,
    /// The text of each statement, by its index.
    texts: Vec<String>,
    setting: OrdersSetting,
    landed: Landings,
}

impl OracleOrders {
    /// The databases that `connector` leads to, with data of this user.
    pub(super) fn new(connector: Connector, user: &str, setting: OrdersSetting) -> Self {
        let texts = texts(user);
        let landed = Landings::default();
        Self(Arc::new(Shared { connector, texts, setting, landed }))
    }
}

/// What is sent for each statement, by its index, for data of this user.
pub(super) fn texts(user: &str) -> Vec<String> {
    let text = |statement: Statement| {
        let text = statement.text::<Connector>(user);
        // A key comes back as what a block puts out.
        if statement.gives() == Gives::Key { format!("BEGIN {text}; END;") } else { text }
    };
    Statement::ALL.into_iter().map(text).collect()
}

impl SqlServers for OracleOrders {
    type Session = Session;

    async fn open_session(&self, node: usize) -> Result<Session, ServerError> {
        let blocks = std::iter::repeat_with(|| None).take(Statement::ALL.len()).collect();
        let inside = Inside { shared: Arc::clone(&self.0), node, connected: None, blocks };
        Session::open(inside, &self.0.connector, node).await
    }

    fn notes_of_the_load(&self) -> Vec<String> {
        self.0.landed.notes(&self.0.connector)
    }

    async fn at_work(&self, node: usize, sessions: Vec<SessionId>) -> Option<Vec<SessionId>> {
        self.0.landed.at_work(&self.0.connector, node, sessions).await
    }
}

/// What a session is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    Execute(Statement),
    Prepare(Statement),
    End(End),
}

/// A job with its values.
#[derive(Debug, Default)]
pub struct OrdersWork {
    job: Option<Job>,
    values: Vec<Given>,
}

#[derive(Debug)]
enum Given {
    Int(i64),
    Text(String),
}

/// What it answers.
#[derive(Debug)]
pub enum Reply {
    Rows(Rows),
    /// Rows that were changed, or the key of a new one.
    Number(i64),
}

/// One session.
pub type Session = ThreadSession<Inside>;

impl Session {
    async fn answered(&self, job: Job, values: &[Argument<'_>]) -> Result<Reply, ServerError> {
        self.asked(|asked| {
            asked.job = Some(job);
            asked.values.clear();
            asked.values.extend(values.iter().map(|value| match value {
                Argument::Int(number) => Given::Int(*number),
                Argument::Text(text) => Given::Text((*text).to_owned()),
            }));
        })
        .await
    }
}

impl OrdersSession for Session {
    async fn execute(
        &self,
        statement: Statement,
        values: &[Argument<'_>],
        into: &mut Rows,
    ) -> Result<i64, ServerError> {
        match self.answered(Job::Execute(statement), values).await? {
            Reply::Rows(rows) => {
                *into = rows;
                Ok(into.len() as i64)
            }
            Reply::Number(number) => Ok(number),
        }
    }

    async fn end(&self, how: End) -> Result<(), ServerError> {
        self.answered(Job::End(how), &[]).await.map(drop)
    }

    /// What a block did before its own commits is not taken back with it.
    async fn clear(&self) -> Result<u64, ServerError> {
        self.end(End::RollBack).await?;
        Ok(1)
    }

    async fn prepare(&self, statement: Statement) -> Result<(), ServerError> {
        self.answered(Job::Prepare(statement), &[]).await.map(drop)
    }
}

/// What lives on a session's thread.
pub struct Inside {
    shared: Arc<Shared>,
    node: usize,
    /// None before it is opened.
    connected: Option<Connected>,
    /// Blocks that insert or call, by the statement's index. What is no block the driver keeps by its text.
    blocks: Vec<Option<Prepared>>,
}

impl Inside {
    /// Prepares the block of a statement that is one.
    fn prepare_block(&mut self, statement: Statement) -> Result<(), ServerError> {
        if statement.gives() != Gives::Key && statement.called().is_none() {
            return Ok(());
        }
        let Self { shared, connected, blocks, .. } = self;
        let connected = connected.as_ref().expect("a session is opened before it works");
        let place = &mut blocks[statement.index()];
        if place.is_none() {
            *place = Some(connected.prepare("prepare the transactions", &shared.texts[statement.index()])?);
        }
        Ok(())
    }
}

impl Work for Inside {
    type Request = OrdersWork;
    type Reply = Reply;

    fn open(mut self) -> Result<(Self, Opened), ServerError> {
        let Shared { connector, setting, landed, .. } = &*self.shared;
        let connected = landed.open(connector, self.node)?;
        if let Some(level) = &setting.isolation {
            connected.execute("prepare a session", &format!("ALTER SESSION SET ISOLATION_LEVEL = {level}"), &[])?;
        }
        let id = connected.id;
        self.connected = Some(connected);
        Ok((self, id))
    }

    fn work(&mut self, asked: &OrdersWork) -> Result<Reply, ServerError> {
        let job = asked.job.expect("a session gets a request");
        if let Job::Execute(statement) | Job::Prepare(statement) = job {
            self.prepare_block(statement)?;
        }
        let Self { shared, connected, blocks, .. } = self;
        let connected = connected.as_ref().expect("a session is opened before it works");
        let values: Vec<Value<'_>> = asked
            .values
            .iter()
            .map(|value| match value {
                Given::Int(number) => Value::Signed(*number),
                Given::Text(text) => Value::Text(text),
            })
            .collect();
        let mut bound: Vec<&dyn ToDbValue> = values.iter().map(|value| value as &dyn ToDbValue).collect();
        let statement = match job {
            Job::Execute(statement) => statement,
            // A block is prepared already, and the driver keeps what is none by its text.
            Job::Prepare(_) => return Ok(Reply::Number(0)),
            Job::End(End::Commit) => return connected.commit(DOING).map(|()| Reply::Number(0)),
            Job::End(End::RollBack) => return connected.roll_back(DOING).map(|()| Reply::Number(0)),
        };
        let (text, block) = (&shared.texts[statement.index()], blocks[statement.index()].as_mut());
        match statement.gives() {
            Gives::Rows(_) if statement.called().is_some() => {
                bound.extend([&DB_TYPE_NUMBER as &dyn ToDbValue; ANSWERS]);
                let block = block.expect("it was prepared just now");
                let answer: [i64; ANSWERS] = connected.numbers_of_block(DOING, block, &bound)?;
                let mut rows = Rows::default();
                rows.begin(ANSWERS);
                rows.push(answer.into_iter().map(Some));
                Ok(Reply::Rows(rows))
            }
            Gives::Rows(width) => {
                let read = |row: &Row| (0..width).map(|column| row.get::<Option<i64>>(column)).collect();
                let found: Vec<Vec<Option<i64>>> = connected.query(DOING, text, &bound, read)?;
                let mut rows = Rows::default();
                rows.begin(width);
                found.into_iter().for_each(|row| rows.push(row.into_iter()));
                Ok(Reply::Rows(rows))
            }
            Gives::Changes => connected.execute(DOING, text, &bound).map(|rows| Reply::Number(rows as i64)),
            Gives::Key => {
                bound.push(&DB_TYPE_NUMBER);
                let key = connected.count_of_block(DOING, block.expect("it was prepared just now"), &bound)?;
                i64::try_from(key).map(Reply::Number).map_err(|_| {
                    let hint = "look whether a trigger changes the tables".to_owned();
                    ServerError::unfit(
                        format!("an insertion gave the key {key}, which is none of order entry"),
                        Some(hint),
                    )
                })
            }
        }
    }
}
