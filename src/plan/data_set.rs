//! The plan of a data set: from parameters to what set-up is asked for.

use super::PlanError;
use crate::config::{Filler, Key, SlobParameters};
use crate::target::embedded::{Filling, Replace, SetupRequest};
use crate::target::io::IoEngine;
use crate::units::Bytes;

/// Size of a block where nobody says otherwise, as databases have it.
const USUAL_BLOCK: Bytes = Bytes::kib(8);

/// What was asked for besides the parameters.
#[derive(Debug, Clone)]
pub struct DataSetRequest {
    /// Schemas to make.
    pub schemas: u32,
    /// Size of each redo log file.
    pub redo_file: Bytes,
    /// Redo log files; at least 2.
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
pub fn data_set(parameters: &SlobParameters, request: &DataSetRequest) -> Result<SetupRequest, PlanError> {
    let block = parameters.block_size.unwrap_or(USUAL_BLOCK).0;
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
