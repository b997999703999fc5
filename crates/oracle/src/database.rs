//! Oracle as a database for SLOB's method.

use std::collections::BTreeMap;

use super::connect::Connector;
use super::data::{Access, info, name_of, prove, schema_of};
use super::driver::Row;
use super::meanings::TERMS;
use super::monitor::MonitorRequest;
use super::session::OracleServers;
use super::snapshots::Snapshots;
use super::sql::{BUFFER_CACHE, DATABASE, Sql};
use ::sql::data::{DataSet, Proven, TableId};
use ::sql::database::{APPLICATION, Dialect, Watched};
use ::sql::private::NoPrograms;
use model::config::oracle::OracleAddress;
use model::record::facts::{DEVICE_READS_LAYER, DIRECT_READS, UNWAITED_COMMITS};
use targets::database::{Commits, DatabaseOptions, Layout, Method, Reads, Sheet};
use targets::{OwnReportKind, OwnReporter, TargetError};

/// Parameters that matter to results, where the user may see them.
const PARAMETERS: &str = "SELECT name, value FROM v$parameter WHERE name IN ('db_block_size', 'db_cache_size', 'sga_target', \
    'memory_target', 'cpu_count', 'filesystemio_options', 'disk_asynch_io', 'commit_wait', 'commit_logging', \
    'timed_statistics', 'db_file_multiblock_read_count', 'resource_manager_plan', 'log_buffer', 'cluster_database', \
    'control_management_pack_access')";

impl Dialect for Connector {
    const LOG: (&'static str, Option<&'static str>) = ("redo", None);
    const BUFFERS: (&'static str, &'static str) = ("buffer cache", "buffer_cache");

    type Programs = NoPrograms<OracleAddress>;
    type Servers = OracleServers;
    type Reader = MonitorRequest;

    fn connector(address: &OracleAddress, per_node: bool, method: Method) -> Result<Self, TargetError> {
        Ok(Self::new(address, APPLICATION, per_node, method)?)
    }

    fn namespace(address: &OracleAddress, _: &DatabaseOptions) -> String {
        schema_of(&address.user)
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![
            "nobody has run this version of Plimsoll on a real Oracle database yet: compare its figures with AWR or Statspack, and \
             send us what `plimsoll slob doctor` writes"
                .to_owned(),
        ];
        if self.method().reads == Reads::KeyByKey {
            remarks.push(
                "ranges are read key by key: surely in single blocks, with more processor time than SLOB's own range scans"
                    .to_owned(),
            );
        }
        remarks
    }

    fn database_of(access: &Access<'_>) -> Result<Option<String>, TargetError> {
        let connected = access.connector.connect(access.node)?;
        let name =
            connected.first::<Option<String>>("find out which database it is", DATABASE, &[], |row| row.get(0))?;
        Ok(name.flatten())
    }

    fn facts(&self) -> Result<BTreeMap<String, String>, TargetError> {
        let connected = self.connect(0)?;
        let mut facts = BTreeMap::from([
            ("server_version".to_owned(), format!("Oracle {}", connected.version_text())),
            ("instance".to_owned(), connected.instance.clone()),
        ]);
        let Method { commits, reads, layout } = self.method();
        let chosen = [
            (UNWAITED_COMMITS, (commits == Commits::Slob).then_some("as SLOB, not waited for")),
            ("reads", (reads == Reads::KeyByKey).then_some("key by key")),
            ("layout", (layout == Layout::Slob).then_some("SLOB's own tables")),
        ];
        facts.extend(chosen.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))));
        let read = |row: &Row| Ok((row.get::<String>(0)?, row.get::<Option<String>>(1)?));
        // Who may not see them does not learn them.
        let parameters = connected.query("ask for its parameters", PARAMETERS, &[], read).unwrap_or_default();
        facts.extend(parameters.into_iter().filter_map(|(name, value)| Some((format!("setting.{name}"), value?))));
        let reads_directly = facts
            .get("setting.filesystemio_options")
            .filter(|mode| ["SETALL", "DIRECTIO"].contains(&mode.to_ascii_uppercase().as_str()));
        if reads_directly.is_some() {
            facts.insert(DIRECT_READS.to_owned(), "yes".to_owned());
        }
        facts.insert(DEVICE_READS_LAYER.to_owned(), "server".to_owned());
        facts.extend(TERMS.map(|(term, words)| (term.fact().0.to_owned(), words.to_owned())));
        if let Ok(Some(bytes)) = connected.first::<u64>("ask for its cache", BUFFER_CACHE, &[], |row| row.get(0)) {
            facts.insert("setting.buffer_cache".to_owned(), bytes.to_string());
        }
        Ok(facts)
    }

    fn info(access: &Access<'_>) -> Result<Sheet, TargetError> {
        info(access)
    }

    fn prove(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Proven, TargetError> {
        prove(access, data, schemas)
    }

    fn doubts(facts: &BTreeMap<String, String>, _: &DataSet) -> Vec<String> {
        let is_unwaited = facts.contains_key(UNWAITED_COMMITS);
        let note = "updates in batches are committed as SLOB's are: the server does not wait for the redo of each, so neither commits \
                    nor updates here compare with those of other databases or of `--commit wait`";
        is_unwaited.then(|| note.to_owned()).into_iter().collect()
    }

    fn reader(&self, _: &Watched<'_>) -> MonitorRequest {
        MonitorRequest::new(self.clone(), APPLICATION)
    }

    fn own_reporter(&self, kind: OwnReportKind) -> Result<Box<dyn OwnReporter>, TargetError> {
        Ok(Box::new(Snapshots::new(self, kind)?))
    }

    fn table_name(&self, namespace: &str, table: TableId) -> String {
        name_of(&Sql::new(namespace, 0).by(self.method()), table)
    }

    fn servers(&self, namespace: &str, data: &DataSet) -> OracleServers {
        OracleServers::new(self.clone(), Sql::new(namespace, data.block_bytes).by(self.method()))
    }
}
