//! One connection to a server for the sake of looking at it.

use std::time::Instant;

use tokio_postgres::{Client, Row, Statement};

use super::super::LocalServer;
use super::super::connect::{Connected, Connector};
use super::super::sql::{Sql, literal};
use super::MonitorRequest;
use super::processes::Processes;
use super::query::{Catalog, catalog_query, pages_query};
use super::reading::{Reading, Views};
use super::seen::{OWN_WORK, OWN_WORK_UNSEEN, blockers_query, look_query, sampled};
use crate::postgres::error_of;
use crate::{Sampled, ServerError};
use measure::monotonic_ns;
use measure::os::Root;

/// Data sets of more schemas than this are not asked for the sizes of their tables: each is a call for each file.
const MAX_SIZED_SCHEMAS: u32 = 64;

/// Settings of these sessions, where the server has them. None of their statements may wait for the load's locks, and the
/// times that end sessions and statements of a role are not meant for one that only looks. What one statement reads is of
/// one instant for each table or database.
const SETTINGS: &[(&str, &str)] = &[
    ("application_name", "plimsoll monitor"),
    ("lock_timeout", "200ms"),
    ("statement_timeout", "10s"),
    ("idle_session_timeout", "0"),
    ("stats_fetch_consistency", "cache"),
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
];

/// Reads the counters of one server.
#[derive(Debug)]
pub struct CounterLine {
    client: Client,
    /// The server's name.
    at: String,
    counters: Statement,
    sessions: Statement,
    pages: Option<Statement>,
    processes: Option<Processes>,
}

/// Looks at what the load's sessions do on one server.
#[derive(Debug)]
pub struct SampleLine {
    client: Client,
    /// The server's name.
    at: String,
    sample: Statement,
    /// Who holds up sessions that wait for locks.
    blockers: Statement,
}

impl CounterLine {
    /// Connects, and finds out what this server reports to this role; and what it does not, and how it could.
    pub(super) async fn open(request: &MonitorRequest, node: usize) -> Result<(Self, Vec<String>), ServerError> {
        let Looking { client, at } = Looking::open(&request.connector, node).await?;
        let refused = |error: tokio_postgres::Error| error_of(&at, "find out what the server counts", &error);
        let rows = client.query(catalog_query().as_str(), &[]).await.map_err(refused)?;
        let catalog = Catalog::from_rows(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))));
        let relations = client.query(&relations_query(request), &[]).await.map_err(refused)?;
        let of_kind = |is_index: bool| {
            let chosen = relations.iter().filter(move |row| row.get::<_, bool>(1) == is_index);
            chosen.map(|row| row.get::<_, u32>(0)).collect::<Vec<_>>()
        };
        let (tables, indexes) = (of_kind(false), of_kind(true));
        let mut notes = meanings(&catalog);
        let mut parts = Vec::new();
        for part in catalog.parts(&tables, &indexes) {
            match client.query(part.sql.as_str(), &[]).await {
                Ok(_) => parts.push(part.sql),
                Err(error) => match error.as_db_error() {
                    Some(refusal) => notes.push(format!("`{}` cannot be read: {}", part.view, refusal.message())),
                    None => return Err(refused(error)),
                },
            }
        }
        // A server that says nothing at all is still asked, so that it is known to answer.
        parts.push("SELECT '', '', 0::int8 WHERE false".to_owned());
        let counters = client.prepare(&parts.join(" UNION ALL ")).await.map_err(refused)?;
        let sessions = client.prepare(&sessions_query(&request.application)).await.map_err(refused)?;
        let pages = if request.schemas <= MAX_SIZED_SCHEMAS {
            Some(client.prepare(&pages_query(&tables)).await.map_err(refused)?)
        } else {
            notes.push(format!("growth of the tables is not watched with more than {MAX_SIZED_SCHEMAS} schemas"));
            None
        };
        let own_work = client.query_one(OWN_WORK, &[]).await.map_err(refused)?;
        if !own_work.get::<_, bool>(0) {
            notes.push(OWN_WORK_UNSEEN.to_owned());
        }
        let processes =
            local_processes(&client, request.local.get(node).and_then(Option::as_ref)).await.map_err(refused)?;
        notes.extend(match &processes {
            Some(processes) => processes.unknown(),
            None => Some(
                "the server's processes cannot be seen from here, so its processor time, physical reads and page-cache hits are \
                 unknown"
                    .to_owned(),
            ),
        });
        Ok((Self { client, at, counters, sessions, pages, processes }, notes))
    }

    /// Reads everything now.
    pub(super) async fn read(&mut self) -> Result<(Instant, Reading), ServerError> {
        let read = self.read_all().await;
        read.map_err(|error| error_of(&self.at, "read the server's counters", &error))
    }

    async fn read_all(&mut self) -> Result<(Instant, Reading), tokio_postgres::Error> {
        let rows = self.client.query(&self.counters, &[]).await?;
        let at = Instant::now();
        let mut views = Views::new();
        for row in &rows {
            if let Ok(value) = u64::try_from(row.get::<_, i64>(2)) {
                views.entry(row.get(0)).or_default().insert(row.get(1), value);
            }
        }
        let mut processes = None;
        if let Some(local) = &mut self.processes {
            let rows = self.client.query(&self.sessions, &[]).await?;
            let sessions: Vec<u32> = rows.iter().filter_map(|row| u32::try_from(row.get::<_, i32>(0)).ok()).collect();
            processes = local.read(&sessions);
        }
        let pages = match &self.pages {
            None => None,
            Some(statement) => match self.client.query_one(statement, &[]).await {
                Ok(row) => row.get::<_, Option<i64>>(0).and_then(|pages| u64::try_from(pages).ok()),
                // Somebody holds a lock on a table: its size is not known this time.
                Err(error) if error.as_db_error().is_some() => None,
                Err(error) => return Err(error),
            },
        };
        Ok((at, Reading { views, pages, processes }))
    }
}

impl SampleLine {
    /// Connects.
    pub(super) async fn open(request: &MonitorRequest, node: usize) -> Result<Self, ServerError> {
        let Looking { client, at } = Looking::open(&request.connector, node).await?;
        let prepare = async |query: String| {
            let statement = client.prepare(&query).await;
            statement.map_err(|error| error_of(&at, "look at the sessions", &error))
        };
        let sample = prepare(look_query(&request.application)).await?;
        let blockers = prepare(blockers_query(&request.application)).await?;
        Ok(Self { client, at, sample, blockers })
    }

    /// What sessions at work and the server itself are doing now; and `closely`, who holds up sessions that wait for a lock.
    pub(super) async fn sample(&self, closely: bool) -> Result<Sampled, ServerError> {
        let ask = async |statement: &Statement| {
            let rows = self.client.query(statement, &[]).await;
            rows.map_err(|error| error_of(&self.at, "look at the sessions", &error))
        };
        let row = |row: &Row| (row.get(0), row.get(1), row.get(2), row.get(3));
        let mut sampled = sampled(ask(&self.sample).await?.iter().map(row));
        sampled.answered_ns = Some(monotonic_ns());
        if closely && sampled.doing.iter().any(|doing| doing.what.starts_with("Lock:")) {
            let count = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
            let rows = ask(&self.blockers).await?;
            sampled.blockers = rows.iter().map(|row| (row.get(0), count(row.get(1)))).collect();
        }
        Ok(sampled)
    }
}

/// A session that only looks.
struct Looking {
    client: Client,
    /// The server's name.
    at: String,
}

impl Looking {
    async fn open(connector: &Connector, node: usize) -> Result<Self, ServerError> {
        let Connected { client, .. } = connector.connect(node).await?;
        let at = connector.nodes()[node].to_string();
        let settings: Vec<String> =
            SETTINGS.iter().map(|(name, value)| format!("({}, {})", literal(name), literal(value))).collect();
        let set = format!(
            "SELECT pg_catalog.set_config(name, value, false) FROM (VALUES {}) s(name, value) \
             WHERE pg_catalog.current_setting(name, true) IS NOT NULL",
            settings.join(", ")
        );
        client
            .batch_execute(&set)
            .await
            .map_err(|error| error_of(&at, "set up a session that watches the server", &error))?;
        Ok(Self { client, at })
    }
}

/// The processes of the load's sessions: every role may see those of its own. The function is asked because the view would look roles and
/// databases up in the catalog each time.
fn sessions_query(application: &str) -> String {
    let application = literal(application);
    format!(
        "SELECT a.pid FROM pg_catalog.pg_stat_get_activity(NULL) a, \
         pg_catalog.pg_stat_get_activity(pg_backend_pid()) own \
         WHERE a.application_name = {application} AND a.usesysid = own.usesysid AND a.datid = own.datid"
    )
}

/// Numbers of the data set's tables and indexes, and whether each is an index.
fn relations_query(request: &MonitorRequest) -> String {
    let names: Vec<String> = (0..request.schemas)
        .flat_map(|schema| [Sql::table_name(schema), Sql::scan_table_name(schema)])
        .map(|name| literal(&name))
        .collect();
    let tables = format!(
        "SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = {} AND c.relkind = 'r' AND c.relname = ANY (ARRAY[{}]::text[])",
        literal(&request.schema),
        names.join(", ")
    );
    format!(
        "SELECT oid, false FROM ({tables}) t UNION ALL \
         SELECT indexrelid, true FROM pg_catalog.pg_index WHERE indrelid IN ({tables})"
    )
}

/// The processes of the server, if they can be seen from here.
async fn local_processes(
    client: &Client,
    reported: Option<&LocalServer>,
) -> Result<Option<Processes>, tokio_postgres::Error> {
    let Some(mut server) = LocalServer::of_client(client).await? else { return Ok(None) };
    if server.data_directory.is_none() {
        server.data_directory = reported.and_then(|reported| reported.data_directory.clone());
    }
    Ok(Processes::new(Root::default(), server))
}

/// What the server's settings keep it from counting, and how that would be known.
fn meanings(catalog: &Catalog) -> Vec<String> {
    let mut notes = Vec::new();
    if !catalog.is_on("track_counts") {
        notes.push(
            "`track_counts` is off, so blocks that were hit and missed are unknown: a superuser can set it on"
                .to_owned(),
        );
    }
    if !catalog.is_on("track_activities") {
        notes.push(
            "`track_activities` is off, so what the sessions wait for is unknown: a superuser can set it on".to_owned(),
        );
    }
    if !catalog.is_on("track_io_timing") {
        notes.push(
            "`track_io_timing` is off, so the server does not time its reads and writes: a superuser can set it on, for this \
             role too (`ALTER ROLE … SET track_io_timing = on`)"
                .to_owned(),
        );
    }
    if catalog.setting("stats_fetch_consistency").is_none() {
        notes.push(
            "this version of the server reports its counters up to half a second late, so those of single seconds are \
             blurred"
                .to_owned(),
        );
    }
    notes
}
