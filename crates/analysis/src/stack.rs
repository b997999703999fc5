//! What the storage was built of when the run began, where that makes its results those of something else: an array without all of its
//! members or that the kernel is at work on, a snapshot, compression.

use super::message::one_of;
use super::{Finding, Message, Rule, is_on_servers, measured};
use model::record::Run;

one_of! {
    /// What the storage was built of.
    StackFinding {
        /// An array lacked members.
        Degraded(DegradedArray),
        /// The kernel was at work on an array.
        Busy(BusyArray),
        /// Writes copy old blocks.
        Snapshot(SnapshotKept),
        /// Files are compressed.
        Compressed(CompressedFiles),
    }
}

/// An array lacked members when the run began.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DegradedArray {
    /// Kernel name.
    pub device: String,
    /// Members that were missing.
    pub missing: u32,
    /// Members that the array has when it is whole.
    pub members: Option<u32>,
    #[serde(skip)]
    words: String,
}

/// The kernel resynchronised, rebuilt, checked or reshaped an array when the run began.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct BusyArray {
    /// Kernel name.
    pub device: String,
    /// What it did, such as `resync`.
    pub action: String,
}

/// Writes to a volume copy old blocks to where its snapshots keep them.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SnapshotKept {
    /// Kernel names of the devices that keep them.
    pub devices: Vec<String>,
}

/// The file system compresses what is written.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CompressedFiles {
    /// Where it is mounted.
    pub mount_point: String,
    /// The mount option that says so.
    pub option: String,
}

pub(super) fn find(run: &Run) -> Vec<Finding> {
    // What this machine is built of says nothing of a server elsewhere or of a simulation.
    if run.target.is_simulated() || run.imported.is_some() || is_on_servers(run) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for device in &run.environment.devices {
        let Some(array) = &device.array else { continue };
        let name = || device.name.clone();
        if let (Some(words), Some(missing)) = (array.degraded(), array.missing) {
            let members = array.members;
            found.push(StackFinding::Degraded(DegradedArray { device: name(), missing, members, words }));
        }
        let busy = array.at_work().map(|action| BusyArray { device: name(), action: action.to_owned() });
        found.extend(busy.map(StackFinding::Busy));
    }
    let keepers = run.environment.devices.iter().filter(|device| device.layer.as_deref() == Some("snapshot"));
    let devices: Vec<String> = keepers.map(|device| device.name.clone()).collect();
    let writes = measured(run).any(|step| step.counters.physical_writes > Some(0));
    found.extend((writes && !devices.is_empty()).then_some(StackFinding::Snapshot(SnapshotKept { devices })));
    let files = run.environment.file_system.as_ref();
    found.extend(files.and_then(|files| {
        let (option, mount_point) = (files.compression()?.to_owned(), files.mount_point.clone());
        Some(StackFinding::Compressed(CompressedFiles { mount_point, option }))
    }));
    found.into_iter().map(Finding::Stack).collect()
}

impl Message for DegradedArray {
    fn rule(&self) -> Rule {
        Rule::StorageArray
    }

    fn sentence(&self) -> String {
        format!("{} {}: results are not those of the whole array.", self.device, self.words)
    }

    fn advice(&self) -> Option<String> {
        Some("Replace the missing members, wait until the array is rebuilt, and repeat.".to_owned())
    }
}

impl Message for BusyArray {
    fn rule(&self) -> Rule {
        Rule::StorageArray
    }

    fn sentence(&self) -> String {
        format!(
            "The kernel was at work on {} ({}) when the run began: its members served that too.",
            self.device, self.action
        )
    }

    fn advice(&self) -> Option<String> {
        Some("Repeat when `/proc/mdstat` shows that it has ended.".to_owned())
    }
}

impl Message for SnapshotKept {
    fn rule(&self) -> Rule {
        Rule::StorageSnapshot
    }

    fn sentence(&self) -> String {
        let devices = super::message::list(&self.devices);
        format!(
            "The volume has a snapshot, which copies on write: the first write to a block moves the old one to {devices}."
        )
    }

    fn advice(&self) -> Option<String> {
        Some("To measure the volume by itself, repeat without the snapshot.".to_owned())
    }
}

impl Message for CompressedFiles {
    fn rule(&self) -> Rule {
        Rule::StorageCompressed
    }

    fn sentence(&self) -> String {
        format!("{} is mounted with {}: results depend on how well the data compresses.", self.mount_point, self.option)
    }

    fn advice(&self) -> Option<String> {
        Some("Measure with data like your own, or in a directory that is not compressed (`chattr +C`).".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LatencyTarget, Severity, analyse};
    use model::record::sample::requests;
    use model::record::{ArrayState, BlockDevice, FileSystem};

    fn said(run: &Run) -> Vec<(Severity, String)> {
        let findings = analyse(run, &LatencyTarget::default());
        let ours = findings.iter().filter(|finding| matches!(finding, Finding::Stack(_)));
        ours.map(|finding| (finding.severity(), finding.sentence())).collect()
    }

    fn on(array: Option<ArrayState>, layer: Option<&str>) -> Run {
        let mut run = requests::mixed();
        let name = if array.is_some() { "md0" } else { "dm-2" }.to_owned();
        run.environment.devices.push(BlockDevice {
            name,
            array,
            layer: layer.map(str::to_owned),
            ..BlockDevice::default()
        });
        run
    }

    #[test]
    fn an_array_without_all_of_its_members_is_a_doubt_and_so_is_one_that_is_rebuilt() {
        let state = |action: &str, missing| {
            Some(ArrayState { action: Some(action.into()), members: Some(2), missing, ..ArrayState::default() })
        };
        let found = said(&on(state("recover", Some(1)), None));
        let words: Vec<&str> = found.iter().map(|(_, words)| words.as_str()).collect();
        assert!(words[0].starts_with("md0 is degraded (1 of 2 members missing)"), "{words:?}");
        assert!(words[1].contains("at work on md0 (recover)"), "{words:?}");
        assert!(found.iter().all(|(severity, _)| *severity == Severity::Doubt));
        for (action, missing) in [("idle", Some(0)), ("idle", None)] {
            assert!(said(&on(state(action, missing), None)).is_empty());
        }
    }

    #[test]
    fn a_snapshot_is_noted_where_the_run_writes() {
        let mut run = on(None, Some("snapshot"));
        assert!(said(&run)[0].1.contains("copies on write: the first write to a block moves the old one to dm-2"));
        run.steps.iter_mut().for_each(|step| step.counters.physical_writes = Some(0));
        assert!(said(&run).is_empty());
    }

    #[test]
    fn compression_is_noted_unless_the_directory_is_written_in_place() {
        let mut run = requests::sweep();
        let files = |writes_in_place| FileSystem {
            options: "rw,compress=zstd:3".into(),
            mount_point: "/bt".into(),
            writes_in_place,
            ..FileSystem::default()
        };
        run.environment.file_system = Some(files(Some(false)));
        assert!(said(&run)[0].1.starts_with("/bt is mounted with compress=zstd:3"));
        run.environment.file_system = Some(files(Some(true)));
        assert!(said(&run).is_empty());
    }

    #[test]
    fn the_machine_beside_a_simulation_is_not_doubted() {
        let mut run = on(Some(ArrayState { missing: Some(1), ..ArrayState::default() }), None);
        assert_eq!(said(&run).len(), 1);
        run.target.kind = Some(model::record::TargetKind::Simulated);
        assert!(said(&run).is_empty());
    }
}
