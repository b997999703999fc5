//! What stands around the devices of a run: limits of control groups, and the state of arrays.

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

/// The state of an array that the kernel makes of several devices (MD).
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
}

impl ArrayState {
    /// That members are missing, after the array's name; `None` where none is, or where that is unknown.
    pub fn degraded(&self) -> Option<String> {
        let missing = self.missing.filter(|missing| *missing > 0)?;
        let of = self.members.map_or(String::new(), |members| format!(" of {members}"));
        let members = if self.members.unwrap_or(missing) == 1 { "member" } else { "members" };
        Some(format!("is degraded ({missing}{of} {members} missing)"))
    }

    /// All that is known of it: `clean, 1 of 2 members missing, recover`.
    pub fn words(&self) -> String {
        let missing = match (self.missing, self.members) {
            (Some(missing), Some(members)) => Some(format!("{missing} of {members} members missing")),
            (Some(missing), None) => Some(format!("{missing} members missing")),
            (None, members) => members.map(|members| format!("{members} members")),
        };
        [self.state.clone(), missing, self.action.clone()].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// What the kernel does with it that takes the devices' time; `None` where it does nothing, or where that is unknown.
    pub fn at_work(&self) -> Option<&str> {
        self.action.as_deref().filter(|action| !matches!(*action, "idle" | "frozen" | "none"))
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
        let action = |action: &str| ArrayState { action: Some(action.to_owned()), ..ArrayState::default() };
        assert_eq!((action("idle").at_work(), action("recover").at_work()), (None, Some("recover")));
        assert_eq!(ArrayState::default().at_work(), None);
    }
}
