//! SLOB's parameters, typed and checked.

mod notes;
mod reading;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::units::{Bytes, Nanos};

use super::{ConfigError, Key, Origin, Setting};
use reading::Given;
use values::{read_mebibytes, read_switch};

pub(super) use values::bytes_text;
pub use values::{Connection, Filler, HotSpot, RedoStress, Scale, StatisticsType, Think, nanos_text};

/// Most sessions of one run; SLOB's own limit.
pub const MAX_SESSIONS: u32 = 4_096;

/// Most blocks that one operation may touch.
pub const MAX_WORK_UNIT: u32 = 65_536;

/// SLOB's parameters as they are in force: each valid by itself, and all of them together as far as it shows
/// without the data set.
#[derive(Debug, Clone, PartialEq)]
pub struct SlobParameters {
    /// Updates in every hundred operations. At most 100, together with [`Self::scan_pct`].
    pub update_pct: u8,
    /// Table scans in every hundred operations.
    pub scan_pct: u8,
    /// Length of the measured window. At least one second.
    pub run_time: Nanos,
    /// Operations after which a session ends unless [`Self::run_time`] ends it before; 0 for no limit.
    pub work_loop: u64,
    /// Data that operations choose from, for each schema. Never nothing.
    pub scale: Scale,
    /// Table that scans read, for each schema; zero for none.
    pub scan_table: Scale,
    /// Blocks that one operation touches. From 1 to [`MAX_WORK_UNIT`].
    pub work_unit: u32,
    /// How much an update changes.
    pub redo_stress: RedoStress,
    /// Loaders that set-up runs side by side. From 1 to 4096.
    pub load_parallel_degree: u32,
    /// Sessions for each schema. From 1 to [`MAX_SESSIONS`].
    pub threads_per_schema: u32,
    /// Hot spot within each schema.
    pub hot_spot: Option<HotSpot>,
    /// One operation in this many goes to the first schema; 0 for none.
    pub hot_schema_frequency: u32,
    /// Pauses between operations.
    pub think: Option<Think>,
    /// What rows are filled with.
    pub filler: Filler,
    /// Block size for set-up, if given: a power of two from 2 to 32 KiB.
    pub block_size: Option<Bytes>,
    /// Program to call with `pre`, `post` and `end`.
    pub external_script: Option<PathBuf>,
    /// How SLOB reaches its database.
    pub connection: Connection,
    origins: BTreeMap<Key, Origin>,
}

impl SlobParameters {
    /// Parameters from settings in rising order of precedence: those of the file, then those of the command line. What is
    /// not there has its default.
    ///
    /// # Errors
    ///
    /// [`ConfigError::BadValue`] for a value that its parameter does not accept, and the errors of parameters that do not
    /// go together. All name where the values came from.
    pub fn from_settings(settings: &[Setting]) -> Result<Self, ConfigError> {
        let parameters = Self::read(settings)?;
        parameters.check_together()?;
        Ok(parameters)
    }

    /// Whether a setting is valid by itself, whatever it may be combined with.
    ///
    /// # Errors
    ///
    /// [`ConfigError::BadValue`].
    pub fn check_value(setting: &Setting) -> Result<(), ConfigError> {
        Self::read(std::slice::from_ref(setting)).map(drop)
    }

    fn read(settings: &[Setting]) -> Result<Self, ConfigError> {
        let given = Given::last_of(settings);
        let hot_spot = HotSpot {
            size: given.read(Key::HotspotMb, read_mebibytes)?,
            offset: given.read(Key::HotspotOffsetMb, read_mebibytes)?,
            frequency: given.whole(Key::HotspotFrequency, 0..=u32::MAX)?,
        };
        let think = Think {
            frequency: given.whole(Key::ThinkTmFrequency, 0..=u32::MAX)?,
            min: given.read(Key::ThinkTmMin, |text| text.parse().ok())?,
            max: given.read(Key::ThinkTmMax, |text| text.parse().ok())?,
        };
        Ok(Self {
            update_pct: given.whole(Key::UpdatePct, 0..=100)?,
            scan_pct: given.whole(Key::ScanPct, 0..=100)?,
            run_time: given.read(Key::RunTime, |text| text.parse().ok().filter(|time| *time >= Nanos::seconds(1)))?,
            work_loop: given.whole(Key::WorkLoop, 0..=u64::MAX)?,
            scale: given.read(Key::Scale, |text| Scale::read(text).filter(|scale| !scale.is_zero()))?,
            scan_table: given.read(Key::ScanTableSz, Scale::read)?,
            work_unit: given.whole(Key::WorkUnit, 1..=MAX_WORK_UNIT)?,
            redo_stress: given.read(Key::RedoStress, |text| match text.to_ascii_uppercase().as_str() {
                "LITE" => Some(RedoStress::Lite),
                "HEAVY" => Some(RedoStress::Heavy),
                _ => None,
            })?,
            load_parallel_degree: given.whole(Key::LoadParallelDegree, 1..=4_096)?,
            threads_per_schema: given.whole(Key::ThreadsPerSchema, 1..=MAX_SESSIONS)?,
            hot_spot: given.read(Key::DoHotspot, read_switch)?.then_some(hot_spot),
            hot_schema_frequency: given.whole(Key::HotSchemaFrequency, 0..=u32::MAX)?,
            think: (think.frequency > 0).then_some(think),
            filler: if given.read(Key::ObfuscateColumns, read_switch)? {
                Filler::Incompressible
            } else {
                Filler::Compressible
            },
            block_size: given.read_if_given(Key::BlockSz, |text| {
                text.parse().ok().filter(|Bytes(bytes)| bytes.is_power_of_two() && (2 << 10..=32 << 10).contains(bytes))
            })?,
            external_script: given.text(Key::ExternalScript).map(PathBuf::from),
            connection: given.connection()?,
            origins: given.origins(),
        })
    }

    fn check_together(&self) -> Result<(), ConfigError> {
        let origin = |key| self.origin(key);
        let &Self { update_pct, scan_pct, .. } = self;
        if update_pct + scan_pct > 100 {
            return Err(ConfigError::Percentages {
                update_pct,
                update_origin: origin(Key::UpdatePct),
                scan_pct,
                scan_origin: origin(Key::ScanPct),
            });
        }
        if scan_pct > 0 && self.scan_table.is_zero() {
            let (origin, table_origin) = (origin(Key::ScanPct), origin(Key::ScanTableSz));
            return Err(ConfigError::NothingToScan { scan_pct, origin, table_origin });
        }
        if let Some(Think { min, max, .. }) = self.think
            && min > max
        {
            return Err(ConfigError::ThinkTime {
                min: nanos_text(min),
                min_origin: origin(Key::ThinkTmMin),
                max: nanos_text(max),
                max_origin: origin(Key::ThinkTmMax),
            });
        }
        if let Some(HotSpot { size, frequency, .. }) = self.hot_spot {
            let zero = [(frequency == 0, Key::HotspotFrequency), (size.0 == 0, Key::HotspotMb)];
            if let Some((_, key)) = zero.into_iter().find(|(is_zero, _)| *is_zero) {
                let (origin, switch_origin) = (origin(key), origin(Key::DoHotspot));
                return Err(ConfigError::NoHotSpot { key, origin, switch_origin });
            }
        }
        Ok(())
    }

    /// Checks what needs the data set: `scale_blocks` are the blocks of one schema from which operations choose,
    /// `block_bytes` is their size (at least 1).
    ///
    /// # Errors
    ///
    /// [`ConfigError::WorkUnitTooLarge`], [`ConfigError::HotSpotOutside`], [`ConfigError::HotSpotTooSmall`].
    pub fn check_against(&self, scale_blocks: u64, block_bytes: u64) -> Result<(), ConfigError> {
        let work_unit = self.work_unit;
        if u64::from(work_unit) > scale_blocks {
            return Err(ConfigError::WorkUnitTooLarge { work_unit, scale_blocks });
        }
        let Some(hot_spot) = self.hot_spot else { return Ok(()) };
        let hot = hot_spot.blocks(block_bytes);
        if hot.end > scale_blocks {
            return Err(ConfigError::HotSpotOutside { end_block: hot.end, scale_blocks });
        }
        let hot_blocks = hot.end - hot.start;
        if hot_blocks < u64::from(work_unit) {
            return Err(ConfigError::HotSpotTooSmall { hot_blocks, work_unit });
        }
        Ok(())
    }

    /// How many sessions `schemas` schemas make.
    ///
    /// # Errors
    ///
    /// [`ConfigError::TooManySessions`] above [`MAX_SESSIONS`].
    pub fn sessions(&self, schemas: u32) -> Result<u32, ConfigError> {
        let threads = self.threads_per_schema;
        schemas
            .checked_mul(threads)
            .filter(|sessions| *sessions <= MAX_SESSIONS)
            .ok_or(ConfigError::TooManySessions { schemas, threads })
    }

    /// Where the value in force came from.
    pub fn origin(&self, key: Key) -> Origin {
        self.origins.get(&key).cloned().unwrap_or_default()
    }

    /// Whether the user gave this parameter a value.
    pub fn was_set(&self, key: Key) -> bool {
        self.origins.contains_key(&key)
    }

    /// The parameters in force by their `slob.conf` names, as text that reads back to the same values. Those of a hot
    /// spot or think time that is off are left out, and so is every secret.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let switch = |on: bool| if on { "TRUE" } else { "FALSE" }.to_owned();
        let redo_stress = match self.redo_stress {
            RedoStress::Lite => "LITE",
            RedoStress::Heavy => "HEAVY",
        };
        let mut values = vec![
            (Key::UpdatePct, self.update_pct.to_string()),
            (Key::ScanPct, self.scan_pct.to_string()),
            (Key::RunTime, nanos_text(self.run_time)),
            (Key::WorkLoop, self.work_loop.to_string()),
            (Key::Scale, self.scale.text()),
            (Key::ScanTableSz, self.scan_table.text()),
            (Key::WorkUnit, self.work_unit.to_string()),
            (Key::RedoStress, redo_stress.to_owned()),
            (Key::LoadParallelDegree, self.load_parallel_degree.to_string()),
            (Key::ThreadsPerSchema, self.threads_per_schema.to_string()),
            (Key::DoHotspot, switch(self.hot_spot.is_some())),
            (Key::HotSchemaFrequency, self.hot_schema_frequency.to_string()),
            (Key::ThinkTmFrequency, self.think.map_or(0, |think| think.frequency).to_string()),
            (Key::ObfuscateColumns, switch(self.filler == Filler::Incompressible)),
        ];
        if let Some(HotSpot { size, offset, frequency }) = self.hot_spot {
            values.extend([
                (Key::HotspotMb, mebibytes_text(size)),
                (Key::HotspotOffsetMb, mebibytes_text(offset)),
                (Key::HotspotFrequency, frequency.to_string()),
            ]);
        }
        if let Some(Think { min, max, .. }) = self.think {
            values.extend([(Key::ThinkTmMin, nanos_text(min)), (Key::ThinkTmMax, nanos_text(max))]);
        }
        values.extend(self.block_size.map(|size| (Key::BlockSz, bytes_text(size))));
        values.extend(
            self.external_script.as_ref().map(|path| (Key::ExternalScript, path.to_string_lossy().into_owned())),
        );
        values.extend(self.connection.values());
        values.into_iter().map(|(key, value)| (key.name().to_owned(), value)).collect()
    }
}

/// A plain number where it is whole MiB, as SLOB writes it.
fn mebibytes_text(size: Bytes) -> String {
    if size.0.is_multiple_of(1 << 20) { (size.0 >> 20).to_string() } else { bytes_text(size) }
}

impl Default for SlobParameters {
    fn default() -> Self {
        Self::from_settings(&[]).expect("every default is accepted and they go together; a test holds this")
    }
}

#[cfg(test)]
mod tests;
