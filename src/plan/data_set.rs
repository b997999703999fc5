//! The plan of a data set: from parameters to what set-up is asked for.

use super::PlanError;
use model::config::{Filler, Key, SlobParameters};
use targets::database::{Filling, Replace, SetupRequest};

/// What was asked for besides the parameters.
#[derive(Debug, Clone, Copy)]
pub struct DataSetRequest {
    /// Schemas to make.
    pub schemas: u32,
    /// Size of a block, in bytes, where the data are to be.
    pub block_bytes: u64,
    /// Seed of the placement of rows and of their filling.
    pub seed: u64,
    /// Whether the user named the seed.
    pub is_seed_asked: bool,
    /// What to do with other data that are there.
    pub replace: Replace,
}

/// What set-up is asked for.
///
/// # Errors
/// [`PlanError::EmptyScale`] if the scale does not hold one block.
pub fn plan(parameters: &SlobParameters, request: &DataSetRequest) -> Result<SetupRequest, PlanError> {
    let &DataSetRequest { schemas, block_bytes: block, seed, is_seed_asked, replace } = request;
    let scale_blocks = parameters.scale.blocks(block);
    if scale_blocks == 0 {
        return Err(PlanError::EmptyScale {
            value: parameters.to_map().remove(Key::Scale.name()).unwrap_or_default(),
            origin: parameters.origin(Key::Scale),
            block_bytes: block,
        });
    }
    Ok(SetupRequest {
        schemas,
        scale_blocks,
        scan_blocks: parameters.scan_table.blocks(block),
        block_bytes: u32::try_from(block).unwrap_or(u32::MAX),
        filling: match parameters.filler {
            Filler::Incompressible => Filling::Incompressible,
            Filler::Compressible => Filling::Compressible,
        },
        streams: parameters.load_parallel_degree,
        seed,
        is_seed_asked,
        replace,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::config::{Key, Setting};

    fn planned(settings: &[(Key, &str)]) -> Result<SetupRequest, PlanError> {
        let settings: Vec<_> = settings.iter().map(|(key, value)| Setting::from_command_line(*key, *value)).collect();
        let parameters = SlobParameters::from_settings(&settings).unwrap();
        let block_bytes = parameters.block_size.map_or(8 << 10, |size| size.0);
        plan(
            &parameters,
            &DataSetRequest { schemas: 8, block_bytes, seed: 7, is_seed_asked: false, replace: Replace::Refuse },
        )
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
