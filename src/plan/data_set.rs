//! The plan of a data set: from parameters to what set-up is asked for.

use super::PlanError;
use crate::config::{Filler, Key, SlobParameters};
use crate::targets::embedded::Filling;
use crate::targets::embedded::setup::{Replace, SetupRequest};
use crate::targets::io::IoEngine;
use crate::units::Bytes;

/// Size of a block where nobody says otherwise, as databases have it.
const DEFAULT_BLOCK: Bytes = Bytes::kib(8);

/// What was asked for besides the parameters.
#[derive(Debug, Clone)]
pub struct Request {
    /// Schemas to make.
    pub schemas: u32,
    /// Size of each redo log file.
    pub redo_file: Bytes,
    /// Redo log files.
    pub redo_files: u32,
    /// Seed of the placement of rows and of their filling.
    pub seed: u64,
    /// What to do with other data that are there.
    pub replace: Replace,
    /// How requests reach the kernel; by default the best that works.
    pub io_engine: Option<IoEngine>,
}

/// What set-up is asked for.
///
/// # Errors
/// [`PlanError::EmptyScale`] if the scale does not hold one block.
pub fn plan(parameters: &SlobParameters, request: &Request) -> Result<SetupRequest, PlanError> {
    let block = parameters.block_size.unwrap_or(DEFAULT_BLOCK).0;
    let scale_blocks = parameters.scale.blocks(block);
    if scale_blocks == 0 {
        return Err(PlanError::EmptyScale {
            value: parameters.to_map().remove(Key::Scale.name()).unwrap_or_default(),
            origin: parameters.origin(Key::Scale),
            block_bytes: block,
        });
    }
    Ok(SetupRequest {
        schemas: request.schemas,
        scale_blocks,
        scan_blocks: parameters.scan_table.blocks(block),
        block_bytes: u32::try_from(block).expect("a block size is 32 KiB at most"),
        filling: match parameters.filler {
            Filler::Incompressible => Filling::Incompressible,
            Filler::Compressible => Filling::Compressible,
        },
        redo_file_bytes: request.redo_file.0,
        redo_files: request.redo_files,
        loaders: parameters.load_parallel_degree,
        seed: request.seed,
        replace: request.replace,
        io_engine: request.io_engine,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Key, Setting};

    fn planned(settings: &[(Key, &str)]) -> Result<SetupRequest, PlanError> {
        let settings: Vec<_> = settings.iter().map(|(key, value)| Setting::from_command_line(*key, *value)).collect();
        let parameters = SlobParameters::from_settings(&settings).unwrap();
        let request = Request {
            schemas: 8,
            redo_file: Bytes::mib(64),
            redo_files: 4,
            seed: 7,
            replace: Replace::Refuse,
            io_engine: None,
        };
        plan(&parameters, &request)
    }

    #[test]
    fn sizes_are_counted_in_the_blocks_of_the_data_set() {
        let usual = planned(&[(Key::Scale, "1G")]).unwrap();
        assert_eq!((usual.block_bytes, usual.scale_blocks, usual.scan_blocks), (8_192, 131_072, 128));
        let large = planned(&[(Key::Scale, "1G"), (Key::BlockSz, "32K"), (Key::ScanTableSz, "0")]).unwrap();
        assert_eq!((large.block_bytes, large.scale_blocks, large.scan_blocks), (32_768, 32_768, 0));
        assert_eq!(planned(&[(Key::Scale, "2000")]).unwrap().scale_blocks, 2_000);
    }

    #[test]
    fn rows_are_incompressible_unless_asked_otherwise() {
        assert_eq!(planned(&[]).unwrap().filling, Filling::Incompressible);
        assert_eq!(planned(&[(Key::ObfuscateColumns, "FALSE")]).unwrap().filling, Filling::Compressible);
    }

    #[test]
    fn less_than_one_block_is_refused() {
        let error = planned(&[(Key::Scale, "16K"), (Key::BlockSz, "32K")]).unwrap_err();
        assert_eq!(error.to_string(), "`SCALE=16K` (command line) is less than one block of 32768 bytes");
    }
}
