//! From the texts by which users name them to virtual directories.

use std::path::PathBuf;
use std::sync::Arc;

use super::TargetError;
use super::block::safety::Permission;
pub use super::group_directory::GroupDirectory;
use super::io::{Durability, IoEngine, VirtualDirectory};
use super::nfs::NfsDirectory;
use model::config::group::GroupSpec;
use model::config::nfs::NfsAddress;

/// What addresses of files on NFS servers begin with.
const NFS: &str = "nfs://";

/// A disk group, if the text is one and could not be the path of a directory.
fn group(text: &str) -> Option<GroupSpec> {
    if text.starts_with(['/', '.']) { None } else { text.parse().ok() }
}

/// Whether a text names a disk group.
pub fn is_group(text: &str) -> bool {
    group(text).is_some()
}

/// Whether a text names a virtual directory, and no path of this machine.
pub fn is_virtual(text: &str) -> bool {
    text.starts_with(NFS) || is_group(text)
}

/// A text as it is kept for later: paths of members as they are from every directory.
pub fn kept(text: &str) -> String {
    let Some(mut spec) = group(text) else { return text.to_owned() };
    for member in spec.failure_groups.iter_mut().flatten().filter(|member| !member.starts_with(NFS)) {
        if let Ok(path) = std::path::absolute(&member) {
            *member = path.display().to_string();
        }
    }
    spec.to_string()
}

/// The virtual directory that a text names, connected. With `durability` each write to a disk group is durable when it ends; `permission`
/// has what may be overwritten where a group is to be made.
///
/// # Errors
/// [`TargetError::Place`] when the text is wrong or nobody answers, and what keeps a disk group from being opened.
pub fn directory(
    text: &str,
    durability: Durability,
    permission: &Permission,
) -> Result<Arc<dyn VirtualDirectory>, TargetError> {
    if let Some(spec) = group(text) {
        let engine = IoEngine::best_available().0;
        return Ok(Arc::new(GroupDirectory::look(&spec, permission, durability, engine)?));
    }
    let place = |why: String, hint: String| TargetError::Place { place: PathBuf::from(text), why, hint };
    let address: NfsAddress = text
        .parse()
        .map_err(|problem: model::config::ServerAddressProblem| place(problem.to_string(), problem.hint()))?;
    let directory = NfsDirectory::of_directory(&address).map_err(|error| place(error.to_string(), error.hint()))?;
    Ok(Arc::new(directory))
}
