//! MySQL and MariaDB as a database for SLOB's method.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::json;

use super::data::Access;
use super::data::info::info;
use super::data::proof::prove;
use super::monitor::MonitorRequest;
use super::server::{self, Binaries, free_pages_note};
use super::{Connector, LocalServer, MysqlServers, Sql};
use crate::data::descriptor::DataSet;
use crate::data::proof::Proven;
use crate::database::add_state;
use crate::database::dialect::{APPLICATION, Dialect, Watched};
use crate::monitor::SAMPLE_EVERY;
use model::config::mysql::MysqlAddress;
use model::record::facts::DIRECT_READS;
use model::units::Bytes;
use targets::TargetError;
use targets::database::{DatabaseOptions, Method, Sheet};

/// Database that holds the data where the address names none.
const DEFAULT_DATABASE: &str = "plimsoll";

impl Dialect for Connector {
    const DEFAULT_BLOCK_BYTES: u64 = 16_384;
    const SOUND: &'static str = "every row is there once, and as long as it was loaded";

    type Programs = Binaries;
    type Servers = MysqlServers;
    type Reader = MonitorRequest;

    fn connector(address: &MysqlAddress, per_node: bool, _: Method) -> Result<Self, TargetError> {
        let connector = Self::new(address, APPLICATION)?;
        Ok(if per_node { connector } else { connector.single()? })
    }

    fn namespace(address: &MysqlAddress, _: &DatabaseOptions) -> String {
        address.database.clone().unwrap_or_else(|| DEFAULT_DATABASE.to_owned())
    }

    fn remarks(&self) -> Vec<String> {
        self.notes().to_vec()
    }

    fn facts(&self) -> Result<BTreeMap<String, String>, TargetError> {
        Ok(server::facts(self, 0)?)
    }

    fn info(access: &Access<'_>) -> Result<Sheet, TargetError> {
        let info = info(access)?;
        let mut sheet = Sheet::of(json!(info));
        sheet.add("server", format!("{}, {}", info.node, info.server_version));
        sheet.add("database", format!("{}, user {}", info.database, info.user));
        add_state(&mut sheet, &info.descriptor, info.stage, info.in_use_by.as_deref());
        sheet.add("tables", format!("{}, {} with their indexes", info.tables.len(), Bytes(info.bytes)));
        sheet.add("buffer pool", Bytes(info.buffer_pool_bytes).to_string());
        Ok(sheet)
    }

    fn prove(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Proven, TargetError> {
        let proof = prove(access, data, schemas)?;
        Ok(Proven { facts: proof.facts(), notes: proof.notes })
    }

    fn doubts(facts: &BTreeMap<String, String>, data: &DataSet) -> Vec<String> {
        free_pages_note(facts, data.block_bytes).into_iter().collect()
    }

    fn reader(&self, watched: &Watched<'_>) -> MonitorRequest {
        MonitorRequest {
            // What reads the counters is not to be seen as a session of the load.
            connector: self.clone().called("plimsoll monitor"),
            application: APPLICATION.to_owned(),
            page_bytes: watched.block_bytes,
            reads_directly: watched.facts.contains_key(DIRECT_READS),
            sample_every: SAMPLE_EVERY,
        }
    }

    fn servers(&self, namespace: &str, data: &DataSet) -> MysqlServers {
        MysqlServers::new(self.clone(), Sql::new(namespace, data.block_bytes))
    }

    fn process(&self) -> Result<Option<(u32, Option<PathBuf>)>, TargetError> {
        Ok(LocalServer::find(self, 0)?.map(|server| (server.pid, Some(server.data_directory))))
    }
}
