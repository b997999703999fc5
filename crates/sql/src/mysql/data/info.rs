//! What is known of a data set without reading its rows.

use serde::Serialize;

use super::{Access, Session};
use crate::data::catalog::{self, Keeps, NamespaceFacts, SqlData as _};
use crate::data::{DataSet, Stage, TableId};
use crate::mysql::Connector;
use targets::TargetError;

/// What is known of a data set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Info {
    /// The server.
    pub node: String,
    /// Its version, in its own words.
    pub server_version: String,
    /// The database.
    pub database: String,
    /// The user who looked, as the server knows it.
    pub user: String,
    /// What the data are, or are to become.
    pub descriptor: DataSet,
    /// How far they have come.
    pub stage: Stage,
    /// Who makes or removes them just now.
    pub in_use_by: Option<String>,
    /// Whether set-up made the database too.
    pub made_database: bool,
    /// The tables that are there, those of rows first.
    pub tables: Vec<TableInfo>,
    /// Bytes of all tables with their indexes.
    pub bytes: u64,
    /// Bytes of the server's buffer pool.
    pub buffer_pool_bytes: u64,
}

/// One table of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableInfo {
    /// Its bare name.
    pub name: String,
    /// Bytes of its leaves and indexes.
    pub bytes: u64,
}

/// Looks at a data set, also while load runs on it; changes nothing.
///
/// # Errors
/// When there is none, or the server cannot be asked.
pub(crate) fn info(access: &Access<'_>) -> Result<Info, TargetError> {
    let mut session = Session::open(*access)?;
    let NamespaceFacts { server, found, .. } = <Connector as Keeps<DataSet>>::look(&mut session)?;
    let found = catalog::require(*access, found)?;
    let there = <Connector as Keeps<DataSet>>::objects(&mut session)?;
    let table = |name: String| there.get(&name).map(|bytes| TableInfo { name, bytes: *bytes });
    let tables: Vec<TableInfo> = found.data.tables().map(TableId::name).filter_map(table).collect();
    Ok(Info {
        node: access.node_name(),
        server_version: server.version,
        database: access.namespace.to_owned(),
        user: server.user,
        in_use_by: Connector::lock_holder(&mut session)?,
        descriptor: found.data,
        stage: found.stage,
        made_database: found.made_namespace,
        bytes: tables.iter().map(|table| table.bytes).sum(),
        tables,
        buffer_pool_bytes: server.buffer_pool_bytes,
    })
}
