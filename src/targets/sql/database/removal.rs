//! What `slob drop` would remove of a server.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::dialect::Dialect;
use crate::targets::TargetError;
use crate::targets::database::DropPlan;
use crate::targets::sql::data::access::Access;
use crate::targets::sql::data::drop;
use crate::targets::sql::private::{OurFile, Programs, inspect, remove};
use crate::units::Bytes;

/// The tables of a data set on somebody's server.
pub(super) struct TablesToRemove<'a, D>(drop::TablesToDrop<'a, D>);

impl<'a, D: Dialect> TablesToRemove<'a, D> {
    pub(super) fn find(access: Access<'a, D>) -> Result<Self, TargetError> {
        Ok(Self(drop::plan(&access)?))
    }
}

impl<D: Dialect> DropPlan for TablesToRemove<'_, D> {
    fn what(&self) -> String {
        let drop::TablesToDrop { access, objects, bytes, .. } = &self.0;
        format!("{} tables and procedures, {}, in {}", objects.len(), Bytes(*bytes), access.place())
    }

    fn items(&self) -> Vec<(u64, String)> {
        self.0.objects.iter().map(|(name, bytes)| (*bytes, name.clone())).collect()
    }

    fn run(self: Box<Self>, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
        Ok(drop::run(self.0, stop)?.then(|| format!("the {} itself", D::HOLDER)))
    }
}

/// A private server with everything in its directory.
pub(super) struct ServerToRemove<P> {
    directory: PathBuf,
    files: Vec<OurFile>,
    say: fn(&str),
    /// Why nobody knows what is in it.
    unseen: Option<String>,
    programs: std::marker::PhantomData<P>,
}

impl<P: Programs> ServerToRemove<P> {
    pub(super) fn find(directory: &Path, say: fn(&str)) -> Result<Self, TargetError> {
        let path = directory.to_owned();
        match inspect::<P>(directory)? {
            Some(found) => {
                let files = found.files;
                Ok(Self { directory: path, files, say, unseen: None, programs: std::marker::PhantomData })
            }
            None => Err(TargetError::NoPrivateServer { path }),
        }
    }

    /// The same, of a server that could not be asked what is in it.
    pub(super) fn unseen(self, error: &TargetError) -> Self {
        Self { unseen: Some(error.to_string()), ..self }
    }
}

impl<P: Programs> DropPlan for ServerToRemove<P> {
    fn what(&self) -> String {
        let bytes = Bytes(self.files.iter().map(|file| file.bytes.0).sum());
        let unseen = self.unseen.as_ref().map(|why| format!(" (which data are in it is not known: {why})"));
        format!("the private {} in `{}`, {bytes}{}", P::KIND.noun, self.directory.display(), unseen.unwrap_or_default())
    }

    fn items(&self) -> Vec<(u64, String)> {
        self.files.iter().map(|file| (file.bytes.0, file.path.display().to_string())).collect()
    }

    fn run(self: Box<Self>, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
        remove::<P>(&self.directory, &self.say, stop)?;
        Ok(None)
    }
}
