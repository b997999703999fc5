//! PostgreSQL as a database for SLOB's method.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::json;

use super::cluster::{Binaries, facts_of};
use super::data::info::info;
use super::data::proof::prove;
use super::data::{Access, shape};
use super::{Connector, LocalServer, MonitorRequest, PostgresServers};
use crate::data::descriptor::DataSet;
use crate::data::proof::Proven;
use crate::data::shape::Shape;
use crate::database::add_state;
use crate::database::dialect::{APPLICATION, Dialect, Watched};
use crate::monitor::SAMPLE_EVERY;
use model::config::postgres::PostgresAddress;
use model::units::Bytes;
use targets::TargetError;
use targets::database::{Method, Sheet};

impl Dialect for Connector {
    const HOLDER_FIELD: &'static str = "db_schema";
    const LOG: (&'static str, Option<&'static str>) = ("write-ahead log", Some("max_wal_size"));
    const READS_PAST_PAGE_CACHE: bool = false;

    type Programs = Binaries;
    type Servers = PostgresServers;
    type Reader = MonitorRequest;

    fn connector(address: &PostgresAddress, per_node: bool, _: Method) -> Result<Self, TargetError> {
        let connector = Self::new(address, APPLICATION)?;
        Ok(if per_node { connector } else { connector.single()? })
    }

    fn remarks(&self) -> Vec<String> {
        self.notes().to_vec()
    }

    fn facts(&self) -> Result<BTreeMap<String, String>, TargetError> {
        Ok(facts_of(self, 0)?)
    }

    fn info(access: &Access<'_>) -> Result<Sheet, TargetError> {
        let info = info(access)?;
        let mut sheet = Sheet::of(json!(info));
        sheet.add("server", format!("{}, PostgreSQL {}", info.node, info.server_version));
        sheet.add("database", format!("{}, schema {}, role {}", info.database, info.namespace, info.role));
        add_state(&mut sheet, &info.descriptor, info.stage, info.in_use_by.as_deref());
        let (bytes, index_bytes) = (Bytes(info.bytes), Bytes(info.index_bytes));
        sheet.add("tables", format!("{}, {bytes} and {index_bytes} of indexes", info.tables.len()));
        sheet.add("checksums", if info.data_checksums { "on" } else { "off" });
        for right in &info.missing {
            sheet.add("missing", format!("{}: {}; {}", right.name, right.gives, right.cure));
        }
        Ok(sheet)
    }

    fn prove(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Proven, TargetError> {
        let proof = prove(access, data, schemas)?;
        Ok(Proven { facts: proof.facts(), notes: proof.notes })
    }

    fn reader(&self, watched: &Watched<'_>) -> MonitorRequest {
        let local = watched
            .process
            .clone()
            .map(|(postmaster_pid, data)| LocalServer { postmaster_pid, data_directory: Some(data) });
        MonitorRequest {
            connector: self.clone(),
            schema: watched.namespace.to_owned(),
            schemas: watched.schemas,
            block_bytes: watched.block_bytes,
            application: APPLICATION.to_owned(),
            local: vec![local; self.nodes().len()],
            sample_every: SAMPLE_EVERY,
        }
    }

    fn servers(&self, namespace: &str, data: &DataSet) -> PostgresServers {
        PostgresServers::new(self.clone(), data.sql(namespace))
    }

    fn process(&self) -> Result<Option<(u32, Option<PathBuf>)>, TargetError> {
        let found = LocalServer::find(self, 0)?;
        Ok(found.map(|local| (local.postmaster_pid, local.data_directory)))
    }

    fn shape(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Option<Shape>, TargetError> {
        shape::read(access, data, schemas).map(Some)
    }
}
