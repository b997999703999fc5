//! SLOB's parameters, typed and checked.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

use super::parameter::{PARAMETERS, Role};
use super::{ConfigError, Key, Origin, Secret, Setting};

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

// What the user should know about parameters that are in order.

/// Block size with which SLOB counts where nobody says otherwise.
const SLOB_BLOCK: Bytes = Bytes::kib(8);
const SLOB_MIN_BLOCKS: u64 = 10_000;
const SLOB_MIN_RUN_TIME: Nanos = Nanos::seconds(30);
const SLOB_WORK_UNITS: std::ops::RangeInclusive<u32> = 3..=1_024;

impl SlobParameters {
    /// Sentences for the run's notes: where SLOB itself would refuse or mean something else, and what has no effect here.
    pub fn notes(&self) -> Vec<String> {
        let scale_blocks = self.scale.blocks(self.block_size.unwrap_or(SLOB_BLOCK).0);
        let Self { work_unit, update_pct, scan_pct, .. } = self;
        [
            (self.run_time < SLOB_MIN_RUN_TIME && self.origin(Key::RunTime) != Origin::Default)
                .then(|| format!("RUN_TIME is {}; SLOB itself accepts 30 s or more", self.run_time)),
            (scale_blocks < SLOB_MIN_BLOCKS)
                .then(|| format!("SCALE is {scale_blocks} blocks; SLOB itself accepts 10,000 or more")),
            (!SLOB_WORK_UNITS.contains(work_unit))
                .then(|| format!("WORK_UNIT is {work_unit}; SLOB itself accepts 3 to 1024")),
            (*scan_pct > 0 && *update_pct > 0).then(|| {
                format!(
                    "SCAN_PCT counts in all operations: {scan_pct} in every hundred are scans; SLOB counts it in those \
                     that are not updates"
                )
            }),
            self.ignored_note(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn ignored_note(&self) -> Option<String> {
        let ignored: Vec<&str> = PARAMETERS
            .iter()
            .filter(|parameter| parameter.role == Role::Connection && self.was_set(parameter.key))
            .map(|parameter| parameter.key.name())
            .collect();
        (!ignored.is_empty()).then(|| {
            let verb = if ignored.len() == 1 { "is" } else { "are" };
            format!("{} {verb} kept for SQL targets and ignored on this one", ignored.join(", "))
        })
    }
}

/// The last setting of each parameter that has a value: the one in force.
struct Given<'a>([Option<&'a Setting>; PARAMETERS.len()]);

impl<'a> Given<'a> {
    fn last_of(settings: &'a [Setting]) -> Self {
        let mut last = [None; PARAMETERS.len()];
        for setting in settings {
            last[setting.key as usize] = Some(setting).filter(|setting| !setting.value.is_empty());
        }
        Self(last)
    }

    /// The text that was given, exactly as it is.
    fn text(&self, key: Key) -> Option<&'a str> {
        self.0[key as usize].map(|setting| setting.value.as_str())
    }

    fn origins(&self) -> BTreeMap<Key, Origin> {
        self.0.iter().flatten().map(|setting| (setting.key, setting.origin.clone())).collect()
    }

    /// The value that was given, if `read` makes sense of it.
    fn read_if_given<T>(&self, key: Key, read: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, ConfigError> {
        let Some(setting) = self.0[key as usize] else { return Ok(None) };
        read(setting.value.trim()).map(Some).ok_or_else(|| ConfigError::BadValue {
            key,
            value: setting.shown_value().to_owned(),
            origin: setting.origin.clone(),
        })
    }

    /// As [`Self::read_if_given`], with the default where nothing was given.
    fn read<T>(&self, key: Key, read: impl Fn(&str) -> Option<T>) -> Result<T, ConfigError> {
        match self.read_if_given(key, &read)? {
            Some(value) => Ok(value),
            None => {
                let default = key.parameter().default;
                read(default).ok_or_else(|| ConfigError::BadValue {
                    key,
                    value: default.to_owned(),
                    origin: Origin::Default,
                })
            }
        }
    }

    /// A whole number within `range`.
    fn whole<T: FromStr + PartialOrd>(&self, key: Key, range: RangeInclusive<T>) -> Result<T, ConfigError> {
        self.read(key, |text| text.parse().ok().filter(|value| range.contains(value)))
    }

    fn connection(&self) -> Result<Connection, ConfigError> {
        let owned = |key| self.text(key).map(str::to_owned);
        Ok(Connection {
            admin_sqlnet_service: owned(Key::AdminSqlnetService),
            sqlnet_service_base: owned(Key::SqlnetServiceBase),
            sqlnet_service_max: self
                .read_if_given(Key::SqlnetServiceMax, |text| text.parse().ok().filter(|max| *max >= 1))?,
            dba_priv_user: owned(Key::DbaPrivUser),
            sysdba_password: self.text(Key::SysdbaPasswd).map(Secret::new),
            statistics_type: self.read_if_given(Key::DatabaseStatisticsType, |text| {
                match text.to_ascii_lowercase().as_str() {
                    "statspack" => Some(StatisticsType::Statspack),
                    "awr" => Some(StatisticsType::Awr),
                    _ => None,
                }
            })?,
            no_os_perf_data: owned(Key::NoOsPerfData),
        })
    }
}

impl Connection {
    /// What was given, as text, without the password.
    fn values(&self) -> Vec<(Key, String)> {
        let Self {
            admin_sqlnet_service,
            sqlnet_service_base,
            sqlnet_service_max,
            dba_priv_user,
            sysdba_password: _,
            statistics_type,
            no_os_perf_data,
        } = self;
        let statistics_type = statistics_type.map(|kind| match kind {
            StatisticsType::Statspack => "statspack".to_owned(),
            StatisticsType::Awr => "awr".to_owned(),
        });
        [
            (Key::AdminSqlnetService, admin_sqlnet_service.clone()),
            (Key::SqlnetServiceBase, sqlnet_service_base.clone()),
            (Key::SqlnetServiceMax, sqlnet_service_max.map(|max| max.to_string())),
            (Key::DbaPrivUser, dba_priv_user.clone()),
            (Key::DatabaseStatisticsType, statistics_type),
            (Key::NoOsPerfData, no_os_perf_data.clone()),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
    }
}

/// How much data: SLOB counts blocks where a number stands alone, bytes where it has a suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// A number of blocks, whatever their size.
    Blocks(u64),
    /// As many blocks as fit.
    Bytes(Bytes),
}

impl Scale {
    /// The number of whole blocks of `block_bytes` (at least 1).
    pub fn blocks(self, block_bytes: u64) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Bytes(Bytes(bytes)) => bytes / block_bytes.max(1),
        }
    }

    /// Whether it is nothing at all.
    pub fn is_zero(self) -> bool {
        matches!(self, Self::Blocks(0) | Self::Bytes(Bytes(0)))
    }

    fn read(text: &str) -> Option<Self> {
        if is_digits(text) {
            return text.parse().ok().map(Self::Blocks);
        }
        // `1.5` has no meaning as blocks, and as bytes it can only be a forgotten suffix.
        let bytes = text.parse().ok().filter(|_| text.ends_with(|c: char| c.is_ascii_alphabetic()))?;
        Some(Self::Bytes(bytes))
    }

    fn text(self) -> String {
        match self {
            Self::Blocks(blocks) => blocks.to_string(),
            Self::Bytes(bytes) => bytes_text(bytes),
        }
    }
}

/// How much an update changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedoStress {
    /// 2 columns of each row.
    Lite,
    /// All 19 filler columns of each row.
    Heavy,
}

impl RedoStress {
    /// Columns that an update changes in each row.
    pub const fn columns(self) -> u32 {
        match self {
            Self::Lite => 2,
            Self::Heavy => 19,
        }
    }
}

/// What rows are filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filler {
    /// Bytes that no storage can compress or deduplicate (`OBFUSCATE_COLUMNS=TRUE`).
    Incompressible,
    /// Text that compresses well (`OBFUSCATE_COLUMNS=FALSE`).
    Compressible,
}

/// A part of each schema to which more operations go than to the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotSpot {
    /// Its size; more than 0.
    pub size: Bytes,
    /// Where it begins in the schema.
    pub offset: Bytes,
    /// One operation in this many goes to it; at least 1.
    pub frequency: u32,
}

impl HotSpot {
    /// The keys it covers, counted from 0 in whole blocks of `block_bytes` (at least 1).
    pub fn blocks(&self, block_bytes: u64) -> Range<u64> {
        let block_bytes = block_bytes.max(1);
        let first = self.offset.0 / block_bytes;
        first..first.saturating_add(self.size.0 / block_bytes)
    }
}

/// Pauses between a session's operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// A session pauses before one operation in this many; at least 1.
    pub frequency: u32,
    /// Shortest pause.
    pub min: Nanos,
    /// Longest pause; not less than the shortest.
    pub max: Nanos,
}

/// Which report SLOB asks its database for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatisticsType {
    /// Statspack.
    Statspack,
    /// Automatic Workload Repository.
    Awr,
}

/// How SLOB reaches its database: only what was given is here. Kept for SQL targets; the embedded engine ignores it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// `ADMIN_SQLNET_SERVICE`.
    pub admin_sqlnet_service: Option<String>,
    /// `SQLNET_SERVICE_BASE`.
    pub sqlnet_service_base: Option<String>,
    /// `SQLNET_SERVICE_MAX`, at least 1.
    pub sqlnet_service_max: Option<u32>,
    /// `DBA_PRIV_USER`.
    pub dba_priv_user: Option<String>,
    /// `SYSDBA_PASSWD`.
    pub sysdba_password: Option<Secret>,
    /// `DATABASE_STATISTICS_TYPE`.
    pub statistics_type: Option<StatisticsType>,
    /// `NO_OS_PERF_DATA`, whatever was given: SLOB asks only whether there is something.
    pub no_os_perf_data: Option<String>,
}

/// A size in a parameter whose plain number means MiB.
fn read_mebibytes(text: &str) -> Option<Bytes> {
    if is_digits(text) {
        return text.parse::<u64>().ok()?.checked_mul(1 << 20).map(Bytes);
    }
    text.parse().ok().filter(|_| text.ends_with(|c: char| c.is_ascii_alphabetic()))
}

/// A size as text that [`Scale::read`] and [`read_mebibytes`] read back exactly: `80M`, `1536K`, `1000B`.
pub(super) fn bytes_text(Bytes(bytes): Bytes) -> String {
    let unit = [("T", 40), ("G", 30), ("M", 20), ("K", 10)]
        .into_iter()
        .find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    match unit {
        Some((suffix, shift)) => format!("{}{suffix}", bytes >> shift),
        None => format!("{bytes}B"),
    }
}

/// A duration as text that reads back exactly; whole seconds are a plain number, as SLOB writes them.
pub fn nanos_text(Nanos(nanos): Nanos) -> String {
    let (suffix, scale) = [("", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)]
        .into_iter()
        .find(|(_, scale)| nanos.is_multiple_of(*scale))
        .unwrap_or(("ns", 1));
    format!("{}{suffix}", nanos / scale)
}

/// `TRUE` or `FALSE`, in any case.
fn read_switch(text: &str) -> Option<bool> {
    match text.to_ascii_uppercase().as_str() {
        "TRUE" => Some(true),
        "FALSE" => Some(false),
        _ => None,
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests;
