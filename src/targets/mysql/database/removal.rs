//! What `slob drop` would remove of a server.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::config::mysql::MysqlAddress;
use crate::targets::TargetError;
use crate::targets::database::DropPlan;
use crate::targets::mysql::data::{Access, drop};
use crate::targets::mysql::server::Binaries;
use crate::targets::sql::private::{FoundServer, inspect, remove};
use crate::units::Bytes;

/// The tables of a data set on somebody's server.
pub(super) struct TablesToRemove<'a>(drop::DropPlan<'a>);

impl<'a> TablesToRemove<'a> {
    pub(super) fn find(access: Access<'a>) -> Result<Self, TargetError> {
        Ok(Self(drop::plan(&access)?))
    }
}

impl DropPlan for TablesToRemove<'_> {
    fn what(&self) -> String {
        let drop::DropPlan { access, objects, bytes, .. } = &self.0;
        let (count, bytes, database, node) = (objects.len(), Bytes(*bytes), access.database, access.node_name());
        format!("{count} tables and procedures, {bytes}, in the database `{database}` on `{node}`")
    }

    fn items(&self) -> Vec<(u64, String)> {
        self.0.objects.iter().map(|(name, bytes)| (*bytes, name.clone())).collect()
    }

    fn run(self: Box<Self>, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
        Ok(drop::run(self.0, stop)?.then(|| "the database itself".to_owned()))
    }
}

/// A private server with everything in its directory.
pub(super) struct ServerToRemove {
    directory: PathBuf,
    found: FoundServer<MysqlAddress>,
    say: fn(&str),
}

impl ServerToRemove {
    pub(super) fn find(directory: &Path, say: fn(&str)) -> Result<Self, TargetError> {
        let path = directory.to_owned();
        match inspect::<Binaries>(directory)? {
            Some(found) => Ok(Self { directory: path, found, say }),
            None => Err(TargetError::NoPrivateServer { path }),
        }
    }
}

impl DropPlan for ServerToRemove {
    fn what(&self) -> String {
        let bytes = Bytes(self.found.files.iter().map(|file| file.bytes.0).sum());
        format!("the private server in `{}`, {bytes}", self.directory.display())
    }

    fn items(&self) -> Vec<(u64, String)> {
        self.found.files.iter().map(|file| (file.bytes.0, file.path.display().to_string())).collect()
    }

    fn run(self: Box<Self>, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
        remove::<Binaries>(&self.directory, &self.say, stop)?;
        Ok(None)
    }
}
