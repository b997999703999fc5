//! What would be removed of a server.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::data::access::Access;
use crate::data::catalog::{Dropped, Keeps};
use crate::data::content::Content;
use crate::data::drop;
use crate::private::{OurFile, Programs, inspect, remove};
use model::units::Bytes;
use targets::TargetError;
use targets::database::DropPlan;

/// The tables of data on somebody's server.
pub(crate) struct TablesToRemove<'a, C, D>(drop::TablesToDrop<'a, C, D>);

impl<'a, C: Keeps<D>, D: Dropped<C>> TablesToRemove<'a, C, D> {
    pub(crate) fn find(access: Access<'a, C>) -> Result<Self, TargetError> {
        Ok(Self(drop::plan(&access)?))
    }
}

impl<C: Keeps<D>, D: Content> DropPlan for TablesToRemove<'_, C, D> {
    fn what(&self) -> String {
        let drop::TablesToDrop { access, objects, procedures, bytes, .. } = &self.0;
        let procedures = match procedures.len() {
            0 => String::new(),
            count => format!(" and {count} procedures"),
        };
        format!("{} {}{procedures}, {}, in {}", objects.len(), D::DROPPED, Bytes(*bytes), access.place())
    }

    fn items(&self) -> Vec<(u64, String)> {
        let procedures = self.0.procedures.iter().map(|name| (0, name.clone()));
        self.0.objects.iter().map(|(name, bytes)| (*bytes, name.clone())).chain(procedures).collect()
    }

    fn run(self: Box<Self>, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
        Ok(drop::run(self.0, stop)?.then(|| format!("the {} itself", C::HOLDER)))
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
