//! What is known of the data without reading them.

use serde_json::json;

use super::catalog::Server;
use super::session::{Access, Session};
use crate::connect::Connector;
use crate::sql::Layout;
use ::sql::data::catalog::{Keeps, require};
use ::sql::data::{DataSet, TableId};
use ::sql::database::add_state;
use model::units::Bytes;
use targets::TargetError;
use targets::database::Sheet;

/// Data, where they are and what they take.
///
/// # Errors
/// When there are none, or the server cannot be asked.
pub(crate) fn info(access: &Access<'_>) -> Result<Sheet, TargetError> {
    let mut session = Session::open(*access)?;
    let facts = <Connector as Keeps<DataSet>>::look(&mut session)?;
    let found = require(*access, facts.found)?;
    let tables: Vec<TableId> = found.data.tables().collect();
    // How much tables of others take is not to be seen.
    let bytes: Option<u64> = match access.connector.method().layout {
        Layout::Plimsoll => {
            let there = <Connector as Keeps<DataSet>>::objects(&mut session)?;
            Some(tables.iter().filter_map(|table| there.get(&table.name())).sum())
        }
        Layout::Slob => None,
    };
    let Server { container, instance, role, place, .. } = &facts.server;
    let tablespace = place.as_ref().map(|place| place.name.as_str());
    let mut sheet = Sheet::of(json!({
        "node": access.node_name(),
        "server_version": facts.version,
        "container": container,
        "instance": instance,
        "role": role,
        "user": access.namespace,
        "tablespace": tablespace,
        "tables": tables.len(),
        "bytes": bytes,
        "descriptor": found.data,
        "stage": found.stage,
    }));
    sheet.add("server", format!("{}, {}", access.node_name(), facts.version));
    sheet.add("landed on", format!("instance {instance}, container {container}, {}", role.to_lowercase()));
    let encrypted = if place.as_ref().is_some_and(|place| place.is_encrypted) { ", encrypted" } else { "" };
    let tablespace = tablespace.map_or_else(|| "no tablespace".to_owned(), |name| format!("tablespace {name}"));
    sheet.add("user", format!("{}, {tablespace}{encrypted}", access.namespace));
    add_state(&mut sheet, &found.data, found.stage, None);
    let bytes = bytes.map(|bytes| format!(", {} with their indexes", Bytes(bytes))).unwrap_or_default();
    sheet.add("tables", format!("{}{bytes}", tables.len()));
    Ok(sheet)
}
