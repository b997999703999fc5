//! What `slob drop` would remove of a server.

use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::config::postgres::PostgresAddress;
use crate::targets::TargetError;
use crate::targets::database::DropPlan;
use crate::targets::postgres::cluster::Binaries;
use crate::targets::postgres::data::Access;
use crate::targets::postgres::data::drop::{self, DropPlan as TablesPlan};
use crate::targets::sql::private::{FoundServer, inspect, remove};
use crate::units::Bytes;

/// The tables of a data set on somebody's server.
pub(super) struct TablesToRemove<'a>(TablesPlan<'a>);

impl<'a> TablesToRemove<'a> {
    pub(super) fn find(access: Access<'a>) -> Result<Self, TargetError> {
        Ok(Self(drop::plan(&access)?))
    }
}

impl DropPlan for TablesToRemove<'_> {
    fn what(&self) -> String {
        let TablesPlan { access, objects, bytes, .. } = &self.0;
        let (count, bytes, schema, node) = (objects.len(), Bytes(*bytes), access.namespace, access.node_name());
        format!("{count} tables and procedures, {bytes}, in the schema `{schema}` on `{node}`")
    }

    fn items(&self) -> Vec<(u64, String)> {
        self.0.objects.iter().map(|object| (object.bytes, object.name.clone())).collect()
    }

    fn run(self: Box<Self>, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
        let report = drop::run(self.0, stop)?;
        Ok(report.removed_namespace.then(|| "the schema itself".to_owned()))
    }
}

/// A private cluster with everything in it.
pub(super) struct ClusterToRemove {
    directory: PathBuf,
    found: FoundServer<PostgresAddress>,
    say: fn(&str),
}

impl ClusterToRemove {
    pub(super) fn find(directory: &Path, say: fn(&str)) -> Result<Self, TargetError> {
        let path = directory.to_owned();
        match inspect::<Binaries>(directory)? {
            Some(found) => Ok(Self { directory: path, found, say }),
            None => Err(TargetError::NoPrivateServer { path }),
        }
    }
}

impl DropPlan for ClusterToRemove {
    fn what(&self) -> String {
        let bytes = Bytes(self.found.files.iter().map(|file| file.bytes.0).sum());
        format!("the private cluster in `{}`, {bytes}", self.directory.display())
    }

    fn items(&self) -> Vec<(u64, String)> {
        self.found.files.iter().map(|file| (file.bytes.0, file.path.display().to_string())).collect()
    }

    fn run(self: Box<Self>, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
        remove::<Binaries>(&self.directory, &self.say, stop)?;
        Ok(None)
    }
}
