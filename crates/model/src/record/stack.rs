//! What stands around the devices of a run: limits of control groups, and the state of arrays, thin pools, paths and NVMe devices.

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos, group_thousands};

/// A limit that a control group around this process sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct GroupLimit {
    /// The group, below the top that this process sees. `/` is that top.
    pub group: String,
    /// Its file that sets the limit, such as `io.max` or `blkio.throttle.read_iops_device`.
    pub file: String,
    /// Kernel name of the device that is limited; absent for a limit on processors or memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// What is limited.
    pub what: Limited,
    /// The limit, in the unit that `what` names.
    pub value: f64,
}

/// What a control group limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Limited {
    /// Reads per second.
    ReadsPerS,
    /// Writes per second.
    WritesPerS,
    /// Bytes read per second.
    ReadBytesPerS,
    /// Bytes written per second.
    WriteBytesPerS,
    /// Nanoseconds that requests of this group should take: the kernel slows other groups until they do.
    LatencyNs,
    /// Percent of what the kernel's model of the device lets through, at most.
    CostPercent,
    /// Processors.
    Processors,
    /// Bytes of memory.
    MemoryBytes,
}

impl Limited {
    /// Whether it is a rate of requests or bytes of a device.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::ReadsPerS | Self::WritesPerS | Self::ReadBytesPerS | Self::WriteBytesPerS)
    }
}

impl GroupLimit {
    /// What it does, as a clause: `` `io.max` of `/app.slice` caps sda at 300 reads/s ``.
    pub fn words(&self) -> String {
        format!("{} {}", self.name(), self.does())
    }

    /// Its file and its group.
    pub fn name(&self) -> String {
        format!("`{}` of `{}`", self.file, self.group)
    }

    /// What it does: `caps sda at 300 reads/s`.
    pub fn does(&self) -> String {
        let Self { value, .. } = self;
        let device = self.device.as_deref().unwrap_or("its devices");
        let number = || group_thousands(*value);
        let megabytes = || group_thousands(value / 1e6);
        match self.what {
            Limited::ReadsPerS => format!("caps {device} at {} reads/s", number()),
            Limited::WritesPerS => format!("caps {device} at {} writes/s", number()),
            Limited::ReadBytesPerS => format!("caps {device} at {} MB/s of reads", megabytes()),
            Limited::WriteBytesPerS => format!("caps {device} at {} MB/s of writes", megabytes()),
            Limited::LatencyNs => {
                format!("slows other groups on {device} until requests of this one take {}", Nanos(*value as u64))
            }
            Limited::CostPercent => format!("slows requests to {device} to {} % of the kernel's model", number()),
            Limited::Processors => format!("leaves {value:.2} processors"),
            Limited::MemoryBytes => format!("leaves {} of memory", Bytes(*value as u64)),
        }
    }
}

/// The state of an array that the kernel makes of several devices (MD, or RAID of LVM).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ArrayState {
    /// State, such as `clean` or `active`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// What the kernel does with it besides: `idle`, `resync`, `recover`, `check`, `repair` or `reshape`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Members that it has when it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<u32>,
    /// How many of these are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u32>,
    /// Kernel names of the members that are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
}

impl ArrayState {
    /// That members are missing, after the array's name; `None` where none is, or where that is unknown.
    pub fn degraded(&self) -> Option<String> {
        let missing = self.missing.filter(|missing| *missing > 0)?;
        let of = self.members.map_or(String::new(), |members| format!(" of {members}"));
        let members = if self.members.unwrap_or(missing) == 1 { "member" } else { "members" };
        Some(format!("is degraded ({missing}{of} {members} missing)"))
    }

    /// All that is known of it and does not change by itself: `1 of 2 members missing, recover`. An array in order is `clean` or `active` from
    /// one write to the next.
    pub fn words(&self) -> String {
        let missing = match (self.missing, self.members) {
            (Some(missing), Some(members)) => Some(format!("{missing} of {members} members missing")),
            (Some(missing), None) => Some(format!("{missing} members missing")),
            (None, members) => members.map(|members| format!("{members} members")),
        };
        let is_in_order =
            |state: &&String| matches!(state.as_str(), "clean" | "active" | "active-idle" | "write-pending");
        let state = self.state.as_ref().map(|state| if is_in_order(&state) { "clean" } else { state }.to_owned());
        [state, missing, self.action.clone()].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// What the kernel does with it that takes the devices' time; `None` where it does nothing, or where that is unknown.
    pub fn at_work(&self) -> Option<&str> {
        self.action.as_deref().filter(|action| !matches!(*action, "idle" | "frozen" | "none"))
    }
}

/// How full the pool is that thin volumes of device-mapper take their blocks from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct PoolState {
    /// What the kernel lets volumes do with it.
    pub mode: PoolMode,
    /// Bytes of data that it can hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
    /// How many of these volumes have taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_used_bytes: Option<u64>,
    /// Blocks for its own metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_blocks: Option<u64>,
    /// How many of these are in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_used_blocks: Option<u64>,
}

/// What a thin pool lets its volumes do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PoolMode {
    /// Take new blocks.
    #[default]
    ReadWrite,
    /// Overwrite blocks that they have: there are no others.
    OutOfDataSpace,
    /// Read, and overwrite blocks that they alone have. Mostly its metadata are full or need a repair.
    ReadOnly,
    /// Nothing: the kernel could not use its metadata.
    Failed,
}

impl PoolState {
    /// A pool is nearly full above this share of its data or metadata. Pools that LVM extends by itself commonly stay at 0.7 to 0.8.
    pub const NEARLY_FULL: f64 = 0.9;

    /// Share of its data that is taken, from 0 to 1.
    pub fn data_share(&self) -> Option<f64> {
        share(self.data_used_bytes, self.data_bytes)
    }

    /// Share of its metadata that is in use, from 0 to 1.
    pub fn metadata_share(&self) -> Option<f64> {
        share(self.metadata_used_blocks, self.metadata_blocks)
    }

    /// Bytes that volumes can still take.
    pub fn free_bytes(&self) -> Option<u64> {
        self.data_bytes?.checked_sub(self.data_used_bytes?)
    }

    /// Why volumes cannot take new blocks, after the pool's name; `None` where they can.
    pub fn refuses(&self) -> Option<&'static str> {
        match self.mode {
            PoolMode::ReadWrite => None,
            PoolMode::OutOfDataSpace => Some("is out of data space"),
            PoolMode::ReadOnly => Some("is read-only"),
            PoolMode::Failed => Some("has failed"),
        }
    }

    /// Whether it is so full that a load may meet its end.
    pub fn is_nearly_full(&self) -> bool {
        self.data_share().into_iter().chain(self.metadata_share()).any(|share| share > Self::NEARLY_FULL)
    }

    /// What is used of it: `95 % of data and 12 % of metadata used`; empty where that is unknown.
    pub fn used(&self) -> String {
        let part = |share: Option<f64>, of: &str| Some(format!("{:.0} % of {of}", share? * 100.0));
        let parts = [part(self.data_share(), "data"), part(self.metadata_share(), "metadata")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { String::new() } else { format!("{} used", parts.join(" and ")) }
    }

    /// Whether it takes writes, without how full it is to the byte.
    pub fn words(&self) -> String {
        let full = if self.is_nearly_full() { "nearly full" } else { "has room" };
        self.refuses().unwrap_or(full).to_owned()
    }
}

fn share(part: Option<u64>, whole: Option<u64>) -> Option<f64> {
    let (part, whole) = (part?, whole?);
    (whole > 0 && part <= whole).then(|| part as f64 / whole as f64)
}

/// The paths by which one device is reached (multipath of device-mapper or of NVMe).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct PathState {
    /// Paths that the kernel knows.
    pub paths: u32,
    /// How many of them it can use; absent where one does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable: Option<u32>,
    /// Kernel names of those that it cannot use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

impl PathState {
    /// That paths are lost, after the device's name; `None` where none is known to be.
    pub fn degraded(&self) -> Option<String> {
        let Self { paths, usable, lost } = self;
        if *usable == Some(0) {
            return Some(format!("has no usable path of {paths}"));
        }
        (!lost.is_empty()).then(|| format!("has lost {} of {paths} paths ({})", lost.len(), lost.join(", ")))
    }

    /// All that is known of them: `1 of 2 paths usable`.
    pub fn words(&self) -> String {
        match self.usable {
            Some(usable) => format!("{usable} of {} paths usable", self.paths),
            None => format!("{} paths", self.paths),
        }
    }
}

/// What an NVMe device states about itself. Only root is told, except for the temperatures. What it leaves out is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct NvmeState {
    /// Its critical warnings; empty where it states that it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<NvmeWarning>>,
    /// Percent of the life that its maker expects which is used; may exceed 100. 255 stands for 255 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u8>,
    /// Percent of its spare blocks that are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_percent: Option<u8>,
    /// Below this percentage it warns of its spare blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_threshold_percent: Option<u8>,
    /// Times that it could not give back data as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_errors: Option<u64>,
    /// Temperature, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<i32>,
    /// From this temperature on it may stop working, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_temperature_c: Option<i32>,
    /// Whether it has a cache that loses writes with the power unless they are flushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volatile_write_cache: Option<bool>,
    /// Largest write that other requests never see in part (AWUN).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_write_bytes: Option<u64>,
    /// Largest write that a power failure leaves whole or undone (NAWUPF, or AWUPF where the namespace states none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_write_power_fail_bytes: Option<u64>,
}

/// A critical warning of an NVMe device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NvmeWarning {
    /// Spare blocks are below the threshold.
    SpareLow,
    /// The temperature is beyond a threshold.
    Temperature,
    /// Errors of the medium or inside make it less reliable.
    Unreliable,
    /// The medium takes no writes any more.
    ReadOnly,
    /// What keeps its volatile memory through a power failure has failed.
    BackupFailed,
    /// Its persistent memory region takes no writes, or is unreliable.
    MemoryRegion,
}

impl NvmeWarning {
    /// As a clause about the device: `its spare blocks are below the threshold`.
    pub fn words(self) -> &'static str {
        match self {
            Self::SpareLow => "its spare blocks are below the threshold",
            Self::Temperature => "its temperature is beyond a threshold",
            Self::Unreliable => "errors have made it less reliable",
            Self::ReadOnly => "its medium is read-only",
            Self::BackupFailed => "the backup of its volatile memory has failed",
            Self::MemoryRegion => "its persistent memory region is unreliable or read-only",
        }
    }
}

impl NvmeState {
    /// Whether it is as hot as its critical temperature, or hotter.
    fn is_too_hot(&self) -> bool {
        self.critical_temperature_c.zip(self.temperature_c).is_some_and(|(critical, now)| now >= critical)
    }

    /// In what trouble it is, without values that change: for comparison. `None` where it did not say.
    pub fn trouble(&self) -> Option<String> {
        let warnings = self.warnings.as_ref()?.iter().map(|warning| warning.words());
        let all: Vec<&str> =
            warnings.chain(self.is_too_hot().then_some("its critical temperature is reached")).collect();
        Some(if all.is_empty() { "none".to_owned() } else { all.join(", ") })
    }

    /// Whether its temperature is all that it warns of.
    pub fn is_only_hot(&self) -> bool {
        let mut warnings = self.warnings.iter().flatten().peekable();
        let is_hot = self.is_too_hot() || warnings.peek().is_some();
        is_hot && warnings.all(|warning| *warning == NvmeWarning::Temperature)
    }

    /// What makes its results those of a device in trouble, as clauses.
    pub fn troubles(&self) -> Vec<String> {
        let mut troubles: Vec<String> =
            self.warnings.iter().flatten().map(|warning| warning.words().to_owned()).collect();
        if self.is_too_hot() {
            let [now, critical] = [self.temperature_c, self.critical_temperature_c].map(Option::unwrap_or_default);
            troubles.push(format!("its {now} °C reach the critical {critical} °C"));
        }
        troubles
    }

    /// What a buyer or an administrator should know although it works, as clauses.
    pub fn wear(&self) -> Vec<String> {
        let used = self.used_percent.filter(|used| *used >= 100).map(|used| {
            let or_more = if used == u8::MAX { " or more" } else { "" };
            format!("it has used {used} %{or_more} of the life that its maker expects")
        });
        let errors = self.media_errors.filter(|errors| *errors > 0).map(|errors| {
            format!("it counts {} media error{}", group_thousands(errors as f64), if errors == 1 { "" } else { "s" })
        });
        used.into_iter().chain(errors).collect()
    }

    /// What does not change by itself: cache and atomic writes.
    pub fn words(&self) -> String {
        let cache = |has| if has { "volatile write cache" } else { "no volatile write cache" }.to_owned();
        let atomic = |bytes| format!("atomic writes up to {}", Bytes(bytes));
        let through = |bytes| format!("whole through a power failure up to {}", Bytes(bytes));
        let parts = [
            self.volatile_write_cache.map(cache),
            self.atomic_write_bytes.map(atomic),
            self.atomic_write_power_fail_bytes.map(through),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Its health: `no critical warning, 3 % of its life used, 100 % of spare left, 0 media errors, 38 °C`.
    pub fn health(&self) -> String {
        let percent = |percent: Option<u8>, of: &str| Some(format!("{} % of {of}", percent?));
        let warnings = self.warnings.as_ref().map(|warnings| match warnings.as_slice() {
            [] => "no critical warning".to_owned(),
            some => some.iter().map(|warning| warning.words()).collect::<Vec<_>>().join(", "),
        });
        let parts = [
            warnings,
            percent(self.used_percent, "its life used"),
            percent(self.spare_percent, "spare left"),
            self.media_errors.map(|errors| {
                format!("{} media error{}", group_thousands(errors as f64), if errors == 1 { "" } else { "s" })
            }),
            self.temperature_c.map(|now| format!("{now} °C")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_names_its_file_group_device_and_value() {
        let words = |what, value, device: Option<&str>| {
            let device = device.map(str::to_owned);
            GroupLimit { group: "/app.slice".to_owned(), file: "io.max".to_owned(), device, what, value }.words()
        };
        assert_eq!(words(Limited::ReadsPerS, 300.0, Some("sda")), "`io.max` of `/app.slice` caps sda at 300 reads/s");
        assert!(words(Limited::WriteBytesPerS, 2e6, Some("sda")).ends_with("caps sda at 2 MB/s of writes"));
        assert!(words(Limited::LatencyNs, 75e6, Some("sda")).ends_with("requests of this one take 75.0 ms"));
        assert!(words(Limited::Processors, 1.5, None).ends_with("leaves 1.50 processors"));
    }

    #[test]
    fn an_array_is_degraded_only_where_members_are_known_to_be_missing() {
        let state = |missing, members| ArrayState { missing, members, ..ArrayState::default() }.degraded();
        assert_eq!(state(Some(1), Some(2)).as_deref(), Some("is degraded (1 of 2 members missing)"));
        assert_eq!(state(Some(1), None).as_deref(), Some("is degraded (1 member missing)"));
        assert_eq!((state(Some(0), Some(2)), state(None, Some(2))), (None, None));
        let state = |state: &str| ArrayState { state: Some(state.to_owned()), ..ArrayState::default() }.words();
        assert_eq!(
            (state("active"), state("write-pending"), state("readonly")),
            ("clean".into(), "clean".into(), "readonly".into())
        );
        let action = |action: &str| ArrayState { action: Some(action.to_owned()), ..ArrayState::default() };
        assert_eq!((action("idle").at_work(), action("recover").at_work()), (None, Some("recover")));
        assert_eq!(ArrayState::default().at_work(), None);
    }

    #[test]
    fn a_pool_is_nearly_full_by_its_data_or_by_its_metadata_where_both_are_known() {
        let pool = |used, metadata| PoolState {
            data_bytes: Some(1_000),
            data_used_bytes: used,
            metadata_blocks: Some(100),
            metadata_used_blocks: metadata,
            ..PoolState::default()
        };
        assert_eq!(pool(Some(950), Some(12)).used(), "95 % of data and 12 % of metadata used");
        assert_eq!(
            (pool(Some(950), None).words(), pool(None, Some(91)).words()),
            ("nearly full".into(), "nearly full".into())
        );
        assert_eq!((pool(Some(900), Some(90)).is_nearly_full(), PoolState::default().used()), (false, String::new()));
        let impossible = pool(Some(u64::MAX), None);
        assert_eq!(
            (impossible.data_share(), impossible.free_bytes(), impossible.is_nearly_full()),
            (None, None, false)
        );
        assert_eq!(PoolState { mode: PoolMode::ReadOnly, ..pool(Some(1), Some(1)) }.words(), "is read-only");
    }

    #[test]
    fn paths_are_lost_only_where_that_is_known() {
        let lost = PathState { paths: 2, usable: Some(1), lost: vec!["sdb".into()] };
        assert_eq!(lost.degraded().as_deref(), Some("has lost 1 of 2 paths (sdb)"));
        assert_eq!(lost.words(), "1 of 2 paths usable");
        let none = PathState { paths: 2, usable: Some(0), lost: Vec::new() };
        assert_eq!(none.degraded().as_deref(), Some("has no usable path of 2"), "none is lost, and none can be used");
        let unknown = PathState { paths: 2, ..PathState::default() };
        assert_eq!((unknown.degraded(), unknown.words().as_str()), (None, "2 paths"));
    }

    #[test]
    fn what_an_nvme_device_does_not_state_is_not_said() {
        let silent = NvmeState::default();
        assert_eq!((silent.health(), silent.words()), (String::new(), String::new()));
        assert!(silent.troubles().is_empty() && silent.wear().is_empty());
        let hot = NvmeState {
            warnings: Some(vec![NvmeWarning::SpareLow]),
            used_percent: Some(255),
            media_errors: Some(1),
            temperature_c: Some(90),
            critical_temperature_c: Some(90),
            ..silent
        };
        assert_eq!(hot.troubles(), ["its spare blocks are below the threshold", "its 90 °C reach the critical 90 °C"]);
        assert_eq!(hot.wear()[0], "it has used 255 % or more of the life that its maker expects");
        assert_eq!(hot.wear()[1], "it counts 1 media error");
        assert_eq!(
            hot.trouble().as_deref(),
            Some("its spare blocks are below the threshold, its critical temperature is reached")
        );
        assert_eq!(
            (hot.is_only_hot(), NvmeState { warnings: Some(Vec::new()), ..hot.clone() }.is_only_hot()),
            (false, true)
        );
        assert_eq!(NvmeState { warnings: None, ..hot.clone() }.trouble(), None);
        let cool = NvmeState { temperature_c: Some(89), warnings: Some(Vec::new()), ..hot };
        assert_eq!((cool.trouble().as_deref(), cool.is_only_hot()), (Some("none"), false));
        assert!(cool.troubles().is_empty() && cool.health().starts_with("no critical warning, 255 % of its life used"));
    }
}
