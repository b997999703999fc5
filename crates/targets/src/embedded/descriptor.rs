//! `database.json`: what a data set is. Written last when the data are made, so its presence says that they are whole.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::block::BlockShape;
use super::destination::{Destinations, Files};
use super::layout::Layout;
use super::ledger::LedgerPlace;
use super::redo::LogShape;
use crate::block::safety::Permission;
use crate::database::Filling;
use crate::error::{FileContext, TargetError};
use model::plain::{self, Links};
use model::units::Bytes;

/// Version of everything in the directory: descriptor, control file, blocks, redo.
pub const FORMAT_VERSION: u32 = 1;
/// Version of a data set whose files do not all lie in its directory: programs that do not know this must not look for them there.
pub const FORMAT_WITH_DESTINATIONS: u32 = 2;
/// Name of the descriptor.
pub const FILE_NAME: &str = "database.json";
/// Its name until it is whole.
pub(super) const UNFINISHED: &str = "database.json.new";
/// The longest descriptor.
pub(super) const MAX_FILE: Bytes = Bytes::mib(1);

/// What a data set is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// Says whose file this is.
    pub made_by: String,
    /// Version of the files' format.
    pub format_version: u32,
    /// Identity that every block repeats.
    pub database: u32,
    /// When it was made, RFC 3339 in UTC.
    pub created_at: String,
    /// Seed of the placement of rows and of their filling.
    pub seed: u64,
    /// Size of a block.
    pub block_bytes: u32,
    /// Number of schemas.
    pub schemas: u32,
    /// Rows, and so blocks, of each schema.
    pub scale_blocks: u64,
    /// Blocks of each schema's scan table.
    pub scan_blocks: u64,
    /// How rows were filled.
    pub filling: Filling,
    /// Number of redo log files.
    pub redo_files: u32,
    /// Size of each.
    pub redo_file_bytes: u64,
    /// Unit of redo writes.
    pub redo_sector_bytes: u32,
    /// Where its data files and redo log files lie, if not in its directory.
    #[serde(flatten)]
    pub destinations: Destinations,
}

const MADE_BY: &str = "plimsoll";

impl Descriptor {
    /// Text of `made_by`.
    pub fn made_by() -> String {
        MADE_BY.to_owned()
    }

    /// The places of its blocks.
    ///
    /// # Errors
    /// When the descriptor's values cannot be those of a data set.
    pub fn layout(&self, path: &Path) -> Result<Layout, TargetError> {
        let damaged = |what: &str| TargetError::Damaged { path: path.join(FILE_NAME), what: what.to_owned() };
        let shape =
            BlockShape::new(self.block_bytes as usize).ok_or_else(|| damaged("its block size is impossible"))?;
        if self.schemas == 0 || self.scale_blocks == 0 || self.redo_files < 2 || self.redo_sector_bytes < 512 {
            return Err(damaged("it describes no data"));
        }
        Ok(Layout::new(shape, self.database, self.seed, self.schemas, self.scale_blocks, self.scan_blocks))
    }

    /// Where its large files lie.
    ///
    /// # Errors
    /// When a destination cannot be reached.
    pub(super) fn files(&self, path: &Path, layout: &Layout) -> Result<Files, TargetError> {
        let redo = (self.redo_files, self.redo_file_bytes);
        Files::of(path, &self.destinations, self.database, layout, redo, &Permission::default())
    }

    /// Where its ledger lies.
    pub(super) fn ledger(&self, path: &Path) -> LedgerPlace {
        LedgerPlace::new(path, self.destinations.ledger.as_deref(), self.database)
    }

    /// The same data with the ledger in another directory, if one is given.
    #[must_use]
    pub(super) fn with_ledger(mut self, directory: Option<&str>) -> Self {
        if let Some(directory) = directory {
            self.destinations.ledger = Some(directory.to_owned());
        }
        self
    }

    /// Its log files.
    pub(super) fn log_shape(&self) -> LogShape {
        let Self { redo_files, redo_file_bytes, redo_sector_bytes, database, .. } = *self;
        LogShape {
            files: redo_files,
            file_bytes: redo_file_bytes,
            sector_bytes: u64::from(redo_sector_bytes),
            database,
        }
    }

    /// Reads the descriptor of `directory`.
    ///
    /// # Errors
    /// [`TargetError::NotSetUp`] without one; otherwise what is wrong with it.
    pub fn load(directory: &Path) -> Result<Self, TargetError> {
        let path = directory.join(FILE_NAME);
        let text = match plain::read_text(&path, Links::Ours, MAX_FILE) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(TargetError::NotSetUp { path: directory.to_owned() });
            }
            Err(error) => return Err(error).of_file("read", &path),
        };
        let damaged = |what: String| TargetError::Damaged { path: path.clone(), what };
        // The version is read first: another version's descriptor may have other fields.
        #[derive(Deserialize)]
        struct Version {
            made_by: String,
            format_version: u32,
        }
        let version: Version = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if version.made_by != MADE_BY {
            return Err(damaged("it was not made by Plimsoll".to_owned()));
        }
        if !(FORMAT_VERSION..=FORMAT_WITH_DESTINATIONS).contains(&version.format_version) {
            let (found, supported) = (version.format_version, FORMAT_WITH_DESTINATIONS);
            return Err(TargetError::FormatVersion { path, found, supported });
        }
        let descriptor: Self = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        let _ = descriptor.layout(directory)?;
        Ok(descriptor)
    }

    /// Writes the descriptor so that it is there whole or not at all.
    ///
    /// # Errors
    /// The system's error.
    pub fn save(&self, directory: &Path) -> Result<(), TargetError> {
        let path = directory.join(FILE_NAME);
        let text = serde_json::to_string_pretty(self).expect("a descriptor has no value that JSON lacks");
        files::replace_own(&path, UNFINISHED, text.as_bytes()).of_file("write", &path)
    }
}

/// Makes the names in a directory durable.
///
/// # Errors
/// The system's error.
pub fn sync_directory(directory: &Path) -> Result<(), TargetError> {
    files::sync_directory(directory).of_file("sync", directory)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn a_descriptor_that_leads_elsewhere_or_never_ends_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, outside) = (folder.path().join(FILE_NAME), folder.path().join("outside"));
        let refused = |what: &str| {
            let error = Descriptor::load(folder.path()).unwrap_err().to_string();
            assert!(error.contains(FILE_NAME) && error.contains(what), "{error}");
            fs::remove_file(&path).unwrap();
        };
        fs::write(&outside, "{}").unwrap();
        std::os::unix::fs::symlink(&outside, &path).unwrap();
        refused("it is a symbolic link, not a plain file");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        refused("it is a pipe, not a plain file");
        File::create(&path).unwrap().set_len(MAX_FILE.0 + 1).unwrap();
        refused("it is larger than 1 MiB");
    }
}
