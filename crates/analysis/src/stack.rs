//! What the storage was built of when the run began, where that makes its results those of something else: an array without all of its
//! members or that the kernel is at work on, paths that are lost, a thin pool that is nearly full, an NVMe device in trouble, a snapshot,
//! compression.

use super::message::one_of;
use super::{Finding, Message, Rule, Severity, is_on_servers, measured};
use model::record::{BlockDevice, PoolMode, PoolState, Run};

one_of! {
    /// What the storage was built of.
    StackFinding {
        /// An array lacked members.
        Degraded(DegradedArray),
        /// The kernel was at work on an array.
        Busy(BusyArray),
        /// Paths were lost.
        Paths(LostPaths),
        /// A thin pool had little room or none.
        Pool(FullPool),
        /// An NVMe device stated that it is in trouble, or worn.
        Nvme(NvmeHealth),
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

/// Paths of a multipath device were lost when the run began.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LostPaths {
    /// Kernel name.
    pub device: String,
    /// Paths that the kernel knows.
    pub paths: u32,
    /// Kernel names of those that it could not use.
    pub lost: Vec<String>,
    #[serde(skip)]
    words: String,
}

/// A thin pool took no new blocks, or was nearly full.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FullPool {
    /// Kernel name.
    pub device: String,
    /// State when the run began.
    #[serde(flatten)]
    pub pool: PoolState,
    /// Whether the run wrote.
    pub writes: bool,
}

/// An NVMe device stated a critical warning or temperature, wear or errors of its medium.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NvmeHealth {
    /// Kernel name.
    pub device: String,
    /// What makes its results those of a device in trouble.
    pub troubles: Vec<String>,
    /// What else its owner should know.
    pub wear: Vec<String>,
    #[serde(skip)]
    is_only_hot: bool,
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
        let name = || device.name.clone();
        if let Some(paths) = &device.paths
            && let Some(words) = paths.degraded()
        {
            let lost = paths.lost.clone();
            found.push(StackFinding::Paths(LostPaths { device: name(), paths: paths.paths, lost, words }));
        }
        found.extend(device.pool.as_ref().and_then(|pool| full(run, device, pool)).map(StackFinding::Pool));
        let health = device.nvme.as_ref().map(|state| (state.troubles(), state.wear(), state.is_only_hot()));
        found.extend(health.filter(|(troubles, wear, _)| !troubles.is_empty() || !wear.is_empty()).map(
            |(troubles, wear, is_only_hot)| {
                StackFinding::Nvme(NvmeHealth { device: name(), troubles, wear, is_only_hot })
            },
        ));
        let Some(array) = &device.array else { continue };
        if let (Some(words), Some(missing)) = (array.degraded(), array.missing) {
            let members = array.members;
            found.push(StackFinding::Degraded(DegradedArray { device: name(), missing, members, words }));
        }
        let busy = array.at_work().map(|action| BusyArray { device: name(), action: action.to_owned() });
        found.extend(busy.map(StackFinding::Busy));
    }
    let keepers = run.environment.devices.iter().filter(|device| device.layer.as_deref() == Some("snapshot"));
    let devices: Vec<String> = keepers.map(|device| device.name.clone()).collect();
    found.extend((writes(run) && !devices.is_empty()).then_some(StackFinding::Snapshot(SnapshotKept { devices })));
    let files = run.environment.file_system.as_ref();
    found.extend(files.and_then(|files| {
        let (option, mount_point) = (files.compression()?.to_owned(), files.mount_point.clone());
        Some(StackFinding::Compressed(CompressedFiles { mount_point, option }))
    }));
    found.into_iter().map(Finding::Stack).collect()
}

fn writes(run: &Run) -> bool {
    measured(run).any(|step| step.counters.physical_writes > Some(0))
}

fn full(run: &Run, device: &BlockDevice, pool: &PoolState) -> Option<FullPool> {
    let is_full = pool.refuses().is_some() || pool.is_nearly_full();
    is_full.then(|| FullPool { device: device.name.clone(), pool: pool.clone(), writes: writes(run) })
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
        let shows = if self.device.starts_with("dm-") { "`lvs -a -o +sync_percent`" } else { "`/proc/mdstat`" };
        Some(format!("Repeat when {shows} shows that it has ended."))
    }
}

impl Message for LostPaths {
    fn rule(&self) -> Rule {
        Rule::StoragePaths
    }

    fn sentence(&self) -> String {
        format!("{} {} when the run began.", self.device, self.words)
    }

    fn advice(&self) -> Option<String> {
        Some("Bring the paths back (`multipath -ll` and `nvme list-subsys` show them), and repeat.".to_owned())
    }
}

impl Message for FullPool {
    fn rule(&self) -> Rule {
        Rule::StorageThinPool
    }

    fn severity(&self) -> Severity {
        // Blocks that a volume has can be read and overwritten all the same.
        let is_held_up = self.pool.mode == PoolMode::Failed || self.writes && self.pool.refuses().is_some();
        if is_held_up { Severity::Doubt } else { Severity::Note }
    }

    fn sentence(&self) -> String {
        let Self { device, pool, .. } = self;
        let used = Some(pool.used()).filter(|used| !used.is_empty()).map_or(String::new(), |used| format!(" ({used})"));
        match (pool.mode, pool.refuses()) {
            (PoolMode::Failed, _) => format!("The thin pool {device} has failed{used}: its volumes serve no requests."),
            (_, Some(refuses)) => format!("The thin pool {device} {refuses}{used}: writes to new blocks wait or fail."),
            (_, None) => {
                format!(
                    "The thin pool {device} is nearly full{used}. When it is full, writes to new blocks wait or fail."
                )
            }
        }
    }

    fn advice(&self) -> Option<String> {
        let is_metadata = self.pool.metadata_share().is_some_and(|share| share > PoolState::NEARLY_FULL);
        let advice = match self.pool.mode {
            PoolMode::Failed | PoolMode::ReadOnly => {
                "See `dmesg` and `lvs -a`. Its metadata may need `lvextend --poolmetadatasize` or `lvconvert --repair`."
            }
            PoolMode::ReadWrite | PoolMode::OutOfDataSpace if is_metadata => {
                "Extend its metadata (`lvextend --poolmetadatasize`), or remove snapshots that are not needed."
            }
            PoolMode::ReadWrite | PoolMode::OutOfDataSpace => {
                "Extend the pool (`lvextend`), or remove volumes and snapshots that are not needed."
            }
        };
        Some(advice.to_owned())
    }
}

impl Message for NvmeHealth {
    fn rule(&self) -> Rule {
        Rule::StorageNvme
    }

    fn severity(&self) -> Severity {
        if self.troubles.is_empty() { Severity::Note } else { Severity::Doubt }
    }

    fn sentence(&self) -> String {
        let all: Vec<String> = self.troubles.iter().chain(&self.wear).cloned().collect();
        format!("{} states: {}.", self.device, all.join("; "))
    }

    fn advice(&self) -> Option<String> {
        let advice = match (self.troubles.is_empty(), self.is_only_hot) {
            (true, _) => "`nvme smart-log` shows all that it states. Watch whether these values grow.",
            (false, true) => "A device that is too hot slows down. Improve its cooling, and repeat.",
            (false, false) => "`nvme smart-log` shows all that it states. Have it examined, and repeat.",
        };
        Some(advice.to_owned())
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
    use model::record::{ArrayState, FileSystem, NvmeState, NvmeWarning, PathState};

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

    /// A run of writes with a device of its own.
    fn with(device: BlockDevice) -> Run {
        let mut run = requests::mixed();
        run.environment.devices.push(device);
        run
    }

    #[test]
    fn lost_paths_are_a_doubt() {
        let paths = |lost: &[&str]| {
            let lost: Vec<String> = lost.iter().map(|name| (*name).to_owned()).collect();
            let paths = Some(PathState { paths: 2, usable: None, lost });
            said(&with(BlockDevice { name: "dm-0".into(), paths, ..BlockDevice::default() }))
        };
        assert_eq!(paths(&[]), []);
        let words = "dm-0 has lost 1 of 2 paths (sdb) when the run began.".to_owned();
        assert_eq!(paths(&["sdb"]), [(Severity::Doubt, words)]);
    }

    #[test]
    fn a_pool_that_refuses_new_blocks_is_a_doubt_where_the_run_writes_and_a_nearly_full_one_a_note() {
        let of = |mode, used: u64, writes: bool| {
            let pool = PoolState {
                mode,
                data_bytes: Some(100 << 30),
                data_used_bytes: Some(used << 30),
                ..PoolState::default()
            };
            let mut run = with(BlockDevice { name: "dm-3".into(), pool: Some(pool), ..BlockDevice::default() });
            run.steps.iter_mut().filter(|_| !writes).for_each(|step| step.counters.physical_writes = Some(0));
            said(&run)
        };
        assert_eq!(of(PoolMode::ReadWrite, 60, true), []);
        let nearly = of(PoolMode::ReadWrite, 95, true);
        assert!(nearly[0].1.starts_with("The thin pool dm-3 is nearly full (95 % of data used)"), "{nearly:?}");
        assert_eq!(nearly[0].0, Severity::Note, "the run may need no more");
        let over = of(PoolMode::OutOfDataSpace, 100, true);
        assert!(over[0].1.contains("is out of data space (100 % of data used)"), "{over:?}");
        assert_eq!((over[0].0, of(PoolMode::OutOfDataSpace, 100, false)[0].0), (Severity::Doubt, Severity::Note));
        assert_eq!(of(PoolMode::Failed, 1, false)[0].0, Severity::Doubt);
    }

    #[test]
    fn an_nvme_device_in_trouble_is_a_doubt_and_a_worn_one_a_note() {
        let of = |state: NvmeState| {
            said(&with(BlockDevice { name: "nvme0n1".into(), nvme: Some(state), ..BlockDevice::default() }))
        };
        let well = NvmeState { warnings: Some(Vec::new()), media_errors: Some(0), ..NvmeState::default() };
        assert_eq!(of(well.clone()), []);
        let worn = of(NvmeState { media_errors: Some(2), ..well.clone() });
        assert_eq!(worn, [(Severity::Note, "nvme0n1 states: it counts 2 media errors.".to_owned())]);
        let hot = of(NvmeState { warnings: Some(vec![NvmeWarning::Temperature]), ..well });
        assert_eq!(hot, [(Severity::Doubt, "nvme0n1 states: its temperature is beyond a threshold.".to_owned())]);
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
