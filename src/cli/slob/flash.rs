//! The flash cache of the embedded engine.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use crate::cli::exit::Failure;
use model::config::TargetAddress;
use model::units::Bytes;
use targets::block::safety::Permission;
use targets::embedded::FlashOptions;

/// A second level of the buffer cache.
#[derive(Debug, Args)]
pub(super) struct FlashArgs {
    /// Second level of the embedded engine's buffer cache: a file that is made on flash and removed again, and the bytes of blocks
    /// that it holds. The memory of its map comes out of --cache
    #[arg(long, value_name = "PATH:SIZE", help_heading = "Target")]
    flash_cache: Option<PlaceAndSize>,

    /// Schemas, from 1, whose blocks others do not displace from the flash cache
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..),
        requires = "flash_cache",
        help_heading = "Target"
    )]
    flash_cache_keep: Vec<u32>,

    /// Schemas, from 1, whose blocks are left out of the flash cache
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..),
        requires = "flash_cache",
        help_heading = "Target"
    )]
    flash_cache_none: Vec<u32>,

    /// Put the flash cache on this device or into this file although Plimsoll did not make what it holds; its name, typed out
    #[arg(long, value_name = "NAME", requires = "flash_cache", help_heading = "Target")]
    flash_cache_destroy: Vec<String>,
}

impl FlashArgs {
    /// Whether there is to be one.
    pub(super) fn is_asked(&self) -> bool {
        self.flash_cache.is_some()
    }

    /// What was asked for.
    ///
    /// # Errors
    /// When the target has no buffer cache of ours.
    pub(super) fn options(&self, address: &TargetAddress) -> Result<Option<FlashOptions>, Failure> {
        let Some(PlaceAndSize { path, size }) = &self.flash_cache else { return Ok(None) };
        if !matches!(address, TargetAddress::Directory(_)) {
            let failure = Failure::new(format_args!("`--flash-cache` is for the embedded engine, not for `{address}`"));
            return Err(failure.with_hint("leave it out, or name a directory: `--target dir:PATH`".to_owned()));
        }
        let from_zero = |schemas: &[u32]| schemas.iter().map(|schema| schema - 1).collect();
        Ok(Some(FlashOptions {
            path: path.clone(),
            size: *size,
            keep: from_zero(&self.flash_cache_keep),
            none: from_zero(&self.flash_cache_none),
            permission: Permission { destroy: self.flash_cache_destroy.clone(), destroy_signature: false },
        }))
    }
}

/// `PATH:SIZE`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PlaceAndSize {
    path: PathBuf,
    size: Bytes,
}

impl FromStr for PlaceAndSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const WANTED: &str = "write a path and a size, such as `/flash/cache:64G`";
        // A path may have colons of its own.
        let (path, size) = text.rsplit_once(':').ok_or_else(|| format!("it has no size; {WANTED}"))?;
        if path.is_empty() {
            return Err(format!("it has no path; {WANTED}"));
        }
        let size = size.parse().map_err(|error| format!("{error}; {WANTED}"))?;
        Ok(Self { path: PathBuf::from(path), size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_a_size_are_read_from_the_last_colon() {
        let read = |text: &str| text.parse::<PlaceAndSize>();
        let expected = PlaceAndSize { path: PathBuf::from("/flash/a:b"), size: Bytes::mib(512) };
        assert_eq!(read("/flash/a:b:512M"), Ok(expected));
        for (text, why) in
            [("/flash/cache", "no size"), (":4G", "no path"), ("/flash:much", "number"), ("/flash:", "number")]
        {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(why) && refused.contains("/flash/cache:64G"), "{refused}");
        }
    }
}
