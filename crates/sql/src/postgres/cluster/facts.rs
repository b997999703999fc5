//! What a private server reports on itself when it has started.

use std::collections::{BTreeMap, BTreeSet};

use super::super::connect::{Connected, Connector};
use super::super::meanings;
use super::super::sql::identifier;
use super::binaries::Binaries;
use super::{ROLE, settings};
use crate::ServerError;
use crate::ending::on_own_runtime;
use crate::postgres::error::error_of;
use crate::private::{Owner, PrivateError, Programs};
use model::config::postgres::PostgresAddress;

/// Application name of the connection.
const APPLICATION: &str = "plimsoll";
/// Exists in every cluster.
const FIRST_DATABASE: &str = "postgres";

/// Names of the settings that this version knows.
///
/// # Errors
/// When the program fails.
pub(super) fn known_settings(owner: &Owner, binaries: &Binaries) -> Result<BTreeSet<String>, PrivateError> {
    let program = binaries.program("postgres");
    let failed = |reason: String| {
        let hint = Binaries::hint(&reason);
        PrivateError::Program { program: program.clone(), reason, hint }
    };
    let reported =
        owner.command(&program).arg("--describe-config").output().map_err(|error| failed(error.to_string()))?;
    if !reported.status.success() {
        return Err(failed(String::from_utf8_lossy(&reported.stderr).trim().to_owned()));
    }
    let text = String::from_utf8_lossy(&reported.stdout);
    Ok(text.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect())
}

/// Makes our database if it is not there and `may_make` it, and reads what there is to know of the server.
///
/// # Errors
/// When the server cannot be connected to, or refuses.
pub(super) fn read(address: &PostgresAddress, may_make: bool) -> Result<BTreeMap<String, String>, ServerError> {
    on_own_runtime(async {
        let node = &address.nodes[0];
        let of = |doing: &'static str| move |error: tokio_postgres::Error| error_of(node, doing, &error);
        if may_make {
            let first = PostgresAddress { database: Some(FIRST_DATABASE.to_owned()), ..address.clone() };
            let Connected { client, .. } = Connector::new(&first, APPLICATION)?.connect(0).await?;
            let there = client.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&ROLE]).await;
            if there.map_err(of("look for the database"))?.is_none() {
                let made = client.batch_execute(&format!("CREATE DATABASE {}", identifier(ROLE))).await;
                made.map_err(of("create the database"))?;
            }
        }
        ask(&Connector::new(address, APPLICATION)?, 0).await
    })
}

/// What is worth knowing of any server: `server_version`, and `setting.NAME` of the settings that matter to results.
///
/// # Errors
/// When the server cannot be connected to, or refuses.
pub fn facts_of(connector: &Connector, node: usize) -> Result<BTreeMap<String, String>, ServerError> {
    on_own_runtime(async {
        let mut facts = ask(connector, node).await?;
        facts.insert("started_by_us".to_owned(), "no".to_owned());
        Ok(facts)
    })
}

async fn ask(connector: &Connector, node: usize) -> Result<BTreeMap<String, String>, ServerError> {
    let connected = connector.connect(node).await?;
    let of = |doing: &'static str| {
        let connected = &connected;
        move |error: tokio_postgres::Error| connected.error(doing, &error)
    };
    let (shown, hidden) = settings::shown();
    let rows =
        connected.client.query(settings::SHOWN_SQL, &[&shown, &hidden]).await.map_err(of("read its settings"))?;
    let mut facts: BTreeMap<String, String> =
        rows.iter().map(|row| (format!("setting.{}", row.get::<_, &str>(0)), row.get(1))).collect();
    let version = connected.client.query_one("SHOW server_version", &[]).await.map_err(of("read its version"))?;
    facts.insert("server_version".to_owned(), version.get(0));
    meanings::describe(&mut facts);
    Ok(facts)
}
