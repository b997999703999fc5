//! Looking at what all sessions of a live server do, many times a second, without load of ours.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use crate::ServerError;
use crate::ending::on_own_runtime;
use crate::monitor::{Pace, SAMPLE_EVERY, SAMPLING_SHARE};
use crate::mysql::statements::MysqlStatements;
use crate::postgres::{PostgresStatements, cluster};
use crate::private::{Programs, inspect};
use crate::{mysql, postgres};
use measure::monotonic_ns;
use model::config::TargetAddress;
use model::live::StatementLook;
use targets::TargetError;

/// Statements that are looked at, those that began first.
pub(crate) const MAX_STATEMENTS: u32 = 1_000;
/// Letters at either end of a statement's text that tell it from others: between them ORMs list columns.
pub(crate) const TEXT_LETTERS: u32 = 300;
/// A question about locks may take one part in so many of the time.
const QUESTION_SHARE: u32 = 20;
/// A server that refuses so many looks in a row is not watched any longer.
const MAX_REFUSALS: u32 = 20;
/// Between attempts to connect again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// A connection that says nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(60);

/// A connection that looks at the sessions of one server.
pub(crate) trait StatementLine: Sized {
    /// What makes it.
    type Connector;

    /// Connects. Says as well what this user may not see, and who can permit it.
    async fn open(connector: &Self::Connector) -> Result<(Self, Vec<String>), ServerError>;

    /// Looks once, and asks at times who holds up statements that wait for locks.
    async fn look(&mut self) -> Result<StatementLook, ServerError>;
}

/// What happened while a server is watched.
#[derive(Debug)]
pub enum Watched {
    /// The server can be looked at; what this user may not see.
    Open(Vec<String>),
    /// Sessions were looked at.
    Look(StatementLook),
    /// The connection broke, and is made again. The server had been asked at this instant of the kernel's monotonic clock.
    Lost(ServerError, u64),
    /// The server refused to answer.
    Refused(ServerError),
    /// Some time passed, at most that between two looks, whether or not the server answers.
    Time,
}

/// The servers at an address, of which the first that accepts a connection is watched.
#[derive(Debug, Clone)]
pub enum WatchedServer {
    /// PostgreSQL.
    Postgres(postgres::Connector),
    /// MySQL or MariaDB.
    Mysql(mysql::Connector),
}

impl WatchedServer {
    /// The server at an address; `None` where nothing of the kind is.
    ///
    /// # Errors
    /// When a private server does not run, or none of the address accepts a connection.
    pub fn at(address: &TargetAddress, application: &str) -> Result<Option<Self>, TargetError> {
        let postgres = |address| postgres::Connector::new(address, application).and_then(postgres::Connector::single);
        let mysql = |address| mysql::Connector::new(address, application).and_then(mysql::Connector::single);
        Ok(Some(match address {
            TargetAddress::Postgres(address) => Self::Postgres(postgres(address)?),
            TargetAddress::Mysql(address) => Self::Mysql(mysql(address)?),
            TargetAddress::PrivateCluster(directory) => {
                Self::Postgres(postgres(&running::<cluster::Binaries>(directory)?)?)
            }
            TargetAddress::PrivateMysql(directory) => {
                Self::Mysql(mysql(&running::<mysql::server::Binaries>(directory)?)?)
            }
            TargetAddress::Directory(_) | TargetAddress::Simulated(_) | TargetAddress::Oracle(_) => return Ok(None),
        }))
    }

    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Self::Postgres(connector) => connector.nodes()[0].to_string(),
            Self::Mysql(connector) => connector.nodes().remove(0),
        }
    }

    /// The first process of it, if it runs on this machine and this user sees it.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn process(&self) -> Result<Option<u32>, TargetError> {
        Ok(match self {
            Self::Postgres(connector) => postgres::LocalServer::find(connector, 0)?.map(|server| server.postmaster_pid),
            Self::Mysql(connector) => mysql::LocalServer::find(connector, 0)?.map(|server| server.pid),
        })
    }

    /// Watches it until `each`, which hears of everything that happens, gives `false`.
    ///
    /// # Errors
    /// When it cannot be looked at at all. A connection that breaks later is made again.
    pub fn watch(&self, each: &mut dyn FnMut(Watched) -> bool) -> Result<(), TargetError> {
        Ok(match self {
            Self::Postgres(connector) => on_own_runtime(watch::<PostgresStatements>(connector, each)),
            Self::Mysql(connector) => on_own_runtime(watch::<MysqlStatements>(connector, each)),
        }?)
    }
}

/// Where the private server in a directory is reached.
fn running<P: Programs>(directory: &Path) -> Result<P::Address, TargetError> {
    let found = inspect::<P>(directory)?;
    let address = found.and_then(|found| found.running).and_then(|running| running.address);
    address.ok_or_else(|| {
        let what = format!("no private server works on `{}`", directory.display());
        let hint = "load it meanwhile, or have a command leave it running: `--keep-running`";
        TargetError::from(ServerError::unfit(what, Some(hint.to_owned())))
    })
}

async fn watch<L: StatementLine>(
    connector: &L::Connector,
    each: &mut dyn FnMut(Watched) -> bool,
) -> Result<(), ServerError> {
    let Some(opened) = passing(timeout(SILENCE, L::open(connector)), each).await else { return Ok(()) };
    let (mut line, notes) = opened.unwrap_or_else(|_| Err(silent()))?;
    if !each(Watched::Open(notes)) {
        return Ok(());
    }
    let mut pace = Pace::default();
    let mut refusals = 0;
    loop {
        let (begun, asked_ns) = (Instant::now(), monotonic_ns());
        let Some(looked) = passing(timeout(SILENCE, line.look()), each).await else { return Ok(()) };
        let happened = match looked {
            Ok(Ok(look)) => {
                refusals = 0;
                Watched::Look(look)
            }
            Ok(Err(error)) if error.refusal().is_some() => {
                refusals += 1;
                if refusals == MAX_REFUSALS {
                    return Err(error);
                }
                Watched::Refused(error)
            }
            Ok(Err(error)) => Watched::Lost(error, asked_ns),
            Err(_) => Watched::Lost(silent(), asked_ns),
        };
        let is_lost = matches!(happened, Watched::Lost(..));
        if !each(happened) {
            return Ok(());
        }
        if is_lost {
            line = loop {
                let opened = passing(timeout(SILENCE, L::open(connector)), each).await;
                match opened {
                    None => return Ok(()),
                    Some(Ok(Ok((line, _)))) => break line,
                    Some(_) => {
                        let Some(()) = passing(sleep(RECONNECT_PAUSE), each).await else { return Ok(()) };
                    }
                }
            };
        }
        let period = pace.period(begun.elapsed(), SAMPLE_EVERY, SAMPLING_SHARE);
        let pause = period.saturating_sub(begun.elapsed());
        let Some(()) = passing(sleep(pause), each).await else { return Ok(()) };
    }
}

/// Waits for `work`, and says that time passes; `None` once that is to end.
async fn passing<T>(work: impl Future<Output = T>, each: &mut dyn FnMut(Watched) -> bool) -> Option<T> {
    let mut work = pin!(work);
    loop {
        // Dropping the timeout drops what refers to the work, not the work.
        match timeout(SAMPLE_EVERY, work.as_mut()).await {
            Ok(done) => return each(Watched::Time).then_some(done),
            Err(_) => {
                if !each(Watched::Time) {
                    return None;
                }
            }
        }
    }
}

fn silent() -> ServerError {
    ServerError::unfit(format!("the server answered nothing for {} s", SILENCE.as_secs()), None)
}

/// When a question about locks that was asked at this instant, and has been answered, may be asked again.
pub(crate) fn next_question(asked: Instant, every: Duration) -> Instant {
    asked + every.max(asked.elapsed() * QUESTION_SHARE)
}

/// What encloses constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// `'` alone, as in standard SQL.
    Single,
    /// `"` as well, and a backslash escapes, as in MySQL.
    Both,
}

/// A number that is equal for texts that differ in numbers, quoted words and spaces only.
pub(crate) fn text_of(parts: [&[u8]; 2], quotes: Quotes) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in parts {
        let text = String::from_utf8_lossy(part);
        let (mut quoted, mut last, mut letters) = (None, ' ', text.chars());
        while let Some(letter) = letters.next() {
            let is_quote = letter == '\'' || letter == '"' && quotes == Quotes::Both;
            match quoted {
                Some(_) if letter == '\\' && quotes == Quotes::Both => drop(letters.next()),
                Some(quote) if letter == quote => quoted = None,
                Some(_) => {}
                // A quote that is doubled does not begin another constant.
                None if is_quote => {
                    quoted = Some(letter);
                    if last != '\'' {
                        last = '\'';
                        last.hash(&mut hasher);
                    }
                }
                None if letter.is_numeric() && last == '0' || letter.is_whitespace() && last == ' ' => {}
                None => {
                    last = match letter {
                        _ if letter.is_numeric() => '0',
                        _ if letter.is_whitespace() => ' ',
                        _ => letter.to_ascii_lowercase(),
                    };
                    last.hash(&mut hasher);
                }
            }
        }
        // Where the first part ends.
        hasher.write_u8(0);
    }
    hasher.finish()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::postgres::test_server::{block_on, database};
    use model::live::{LockHolder, SeenStatement};
    use model::record::SessionState;

    /// Has one thread hold a lock, which says by what session, and two wait for it while `looked` looks.
    pub(crate) fn held(
        holds: impl FnOnce(Sender<u64>, Receiver<()>) + Send,
        waits: impl Fn() + Sync,
        looked: impl FnOnce(u64),
    ) {
        let ((ready, is_ready), (release, released)) = (channel(), channel());
        std::thread::scope(|scope| {
            scope.spawn(move || holds(ready, released));
            let holder = is_ready.recv().unwrap();
            scope.spawn(&waits);
            scope.spawn(&waits);
            // Dropped by a failure as well, so that the others end.
            let release = release;
            looked(holder);
            release.send(()).unwrap();
        });
    }

    /// The first look that shows what is wanted, with what cannot be seen.
    pub(crate) fn seen_until(
        server: &WatchedServer,
        is_it: impl Fn(&StatementLook) -> bool,
    ) -> (StatementLook, Vec<String>) {
        let (begun, mut notes, mut seen) = (Instant::now(), Vec::new(), None);
        let mut last = None;
        server
            .watch(&mut |happened| {
                match happened {
                    Watched::Open(found) => notes = found,
                    Watched::Look(look) if is_it(&look) => seen = Some(look),
                    Watched::Look(look) => last = Some(look),
                    Watched::Lost(error, _) | Watched::Refused(error) => panic!("{error}"),
                    Watched::Time => assert!(begun.elapsed() < Duration::from_secs(60), "{last:?}"),
                }
                seen.is_none()
            })
            .unwrap();
        (seen.unwrap(), notes)
    }

    #[test]
    fn sessions_in_locks_are_seen_with_the_one_that_holds_them() {
        let Some(address) = database("statements_watched") else { return };
        let connector = || postgres::Connector::new(&address, "plimsoll tests").unwrap();
        held(
            |ready, released| {
                block_on(async {
                    let client = connector().connect(0).await.unwrap().client;
                    client.batch_execute("CREATE TABLE t ()").await.unwrap();
                    client.batch_execute("BEGIN; LOCK TABLE t").await.unwrap();
                    let own = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap();
                    ready.send(own.get::<_, i32>(0).unsigned_abs().into()).unwrap();
                    released.recv().unwrap();
                    client.batch_execute("COMMIT").await.unwrap();
                });
            },
            || block_on(async { connector().connect(0).await.unwrap().client.batch_execute("TABLE t").await.unwrap() }),
            |holder| {
                let of_test = |by: &&LockHolder| by.session == Some(holder);
                let waits = |one: &&SeenStatement| one.text == text("TABLE t") && one.doing == "Lock:relation";
                // Locks and statements are read one after the other.
                let (look, notes) = seen_until(&WatchedServer::Postgres(connector()), |look| {
                    look.holders.iter().filter(of_test).count() == 2
                        && look.statements.iter().filter(waits).count() == 2
                });
                assert_eq!(notes, Vec::<String>::new());
                let by = look.holders.iter().find(of_test).unwrap();
                assert_eq!(by.who, "plimsoll tests, idle in transaction", "{look:?}");
                let mine: Vec<_> = look.statements.iter().filter(waits).collect();
                let [one, other] = mine.as_slice() else { panic!("{look:?}") };
                assert!(one.state == SessionState::Lock && one.session != other.session, "{look:?}");
                assert!(look.work.is_some(), "{look:?}");
            },
        );
    }

    pub(crate) fn text(text: &str) -> u64 {
        text_of([text.as_bytes(); 2], Quotes::Single)
    }

    #[test]
    fn texts_that_differ_in_constants_are_one() {
        let one = text("UPDATE t SET a = 17 WHERE name = 'Ann O''Neil' AND b = 3");
        assert_eq!(one, text("update t  SET a = 4 WHERE name = '' AND b = 33"));
        assert_ne!(one, text("UPDATE u SET a = 17 WHERE name = 'Ann' AND b = 3"));
        assert_ne!(text("SELECT a1"), text("SELECT a"));
        assert_ne!(text("SELECT \"a\""), text("SELECT \"b\""), "names of columns");
        assert_eq!(text("SELECT 'begun and cut o"), text("SELECT 'b"));
        let mysql = |text: &str| text_of([text.as_bytes(), b""], Quotes::Both);
        assert_eq!(mysql(r#"SELECT "a \" b", 'c'"#), mysql(r#"SELECT "", 'd\''"#));
        assert_ne!(mysql("SELECT a"), mysql("SELECT b"));
        let ends = |end: &[u8]| text_of([b"SELECT a, b, c", end], Quotes::Single);
        assert_ne!(ends(b"WHERE id = 1"), ends(b"WHERE name = 1"));
        assert_eq!(ends(b"\xff\xfe"), ends(b"\xff\xfe"), "of no encoding");
    }
}
