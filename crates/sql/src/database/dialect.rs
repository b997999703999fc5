//! What a server's own folder gives, so that its servers are a database for SLOB's method.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::data::access::Access;
use crate::data::descriptor::{DataSet, TableId};
use crate::data::proof::Proven;
use crate::data::setup::SetUp;
use crate::data::shape::Shape;
use crate::data::verify::Verify;
use crate::private::Programs;
use crate::{ServerError, ServerReader, SlobSession, SqlServers};
use targets::database::{DatabaseOptions, Method, Sheet};
use targets::{OwnReportKind, OwnReporter, TargetError};

/// Name under which the sessions of the load are known to the server.
pub const APPLICATION: &str = "plimsoll";

/// Where servers of one kind are reached.
pub type AddressOf<D> = <<D as Dialect>::Programs as Programs>::Address;

/// Servers of one kind, by what connects to them.
pub trait Dialect: SetUp + Verify {
    /// Name of the field that names the holder of the data in the document of a set-up.
    const HOLDER_FIELD: &'static str = Self::HOLDER;
    /// Size of a block of a server as it is made everywhere.
    const DEFAULT_BLOCK_BYTES: u64 = 8192;
    /// What its log is called, and the setting that limits how far it grows between checkpoints.
    const LOG: (&'static str, Option<&'static str>) = ("redo log", None);
    /// Whether data files of a private server are read past the page cache.
    const READS_PAST_PAGE_CACHE: bool = true;
    /// What its buffers are called, and by which setting.
    const BUFFERS: (&'static str, &'static str) = (Self::Programs::KIND.buffers, Self::Programs::KIND.buffers_setting);
    /// What is said of data in which nothing is wrong.
    const SOUND: &'static str = "every row is there once, in a block of its own, and as long as it was loaded";

    /// What private servers are made of, and where servers are reached; [`NoPrograms`](crate::private::NoPrograms) where there are none.
    type Programs: Programs;
    /// What load is put on.
    type Servers: SqlServers<Session: SlobSession>;
    /// Reads what servers count.
    type Reader: ServerReader;

    /// What connects to the servers of an address: to each of them, or to the first that accepts a connection. `method` is for those
    /// that have a choice.
    ///
    /// # Errors
    /// When something that the address needs is missing, or none accepts a connection.
    fn connector(address: &AddressOf<Self>, per_node: bool, method: Method) -> Result<Self, TargetError>;

    /// What holds the data there, by its name without quotes.
    fn namespace(_address: &AddressOf<Self>, options: &DatabaseOptions) -> String {
        options.schema.clone()
    }

    /// What the user should know about how the address was understood.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Which database a node leads to, where several may lead to one: what is in it is proven once.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn database_of(_access: &Access<'_, Self>) -> Result<Option<String>, TargetError> {
        Ok(None)
    }

    /// What is worth knowing of the first server: `server_version`, and `setting.NAME` of the settings that matter to results.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn facts(&self) -> Result<BTreeMap<String, String>, TargetError>;

    /// What is known of the data without reading them.
    ///
    /// # Errors
    /// When there are none, or the server cannot be asked.
    fn info(access: &Access<'_, Self>) -> Result<Sheet, TargetError>;

    /// Proves how the tables of the first `schemas` schemas lie, in a session as the load's are.
    ///
    /// # Errors
    /// The reason and the cure if they lie otherwise; or why the server cannot be asked.
    fn prove(access: &Access<'_, Self>, data: &DataSet, schemas: u32) -> Result<Proven, TargetError>;

    /// What to know of a server with such settings before its figures are believed.
    fn doubts(_facts: &BTreeMap<String, String>, _data: &DataSet) -> Vec<String> {
        Vec::new()
    }

    /// Who reads what the servers count.
    fn reader(&self, watched: &Watched<'_>) -> Self::Reader;

    /// Who has the servers report on windows by themselves.
    ///
    /// # Errors
    /// When the servers have no such reports, or do not let the user have them.
    fn own_reporter(&self, kind: OwnReportKind) -> Result<Box<dyn OwnReporter>, TargetError> {
        let what = format!("{} does not make reports of {}", Self::PRODUCT.kind, kind.name());
        Err(ServerError::unfit(what, Some("leave `--awr` and `--statspack` out".to_owned())).into())
    }

    /// A table of SLOB's in a namespace, as it stands in SQL.
    fn table_name(&self, namespace: &str, table: TableId) -> String {
        Self::qualified(namespace, &table.name())
    }

    /// What opens sessions for the data on the servers.
    fn servers(&self, namespace: &str, data: &DataSet) -> Self::Servers;

    /// Number and data of the first process of the only server, if it is not a private one and runs on this machine.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn process(&self) -> Result<Option<(u32, Option<PathBuf>)>, TargetError> {
        Ok(None)
    }

    /// Reads how large the tables of the first `schemas` schemas are, where a load may change that.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn shape(_access: &Access<'_, Self>, _data: &DataSet, _schemas: u32) -> Result<Option<Shape>, TargetError> {
        Ok(None)
    }
}

/// What is watched while load runs.
pub struct Watched<'a> {
    pub(crate) namespace: &'a str,
    /// Size of a block of the servers, in bytes.
    pub(crate) block_bytes: u32,
    /// SLOB's schemas that are under load.
    pub(crate) schemas: u32,
    /// What is known of the server.
    pub(crate) facts: &'a BTreeMap<String, String>,
    /// Number and data of the first process of a private server.
    pub(crate) process: Option<(u32, PathBuf)>,
}
