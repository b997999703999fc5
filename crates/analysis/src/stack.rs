//! What the storage was built of when the run began, where that makes its results those of something else: an array without all of its
//! members or that the kernel is at work on, paths that are lost, a thin pool that is nearly full, an NVMe device in trouble, a snapshot,
//! compression.

use super::message::one_of;
use super::{Finding, Message, Rule, Severity, is_on_servers, measured};
use model::record::{ArrayState, BlockDevice, PoolState, Run};
use model::units::Bytes;

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
    /// Bytes that its members moved in the measured windows; absent where not all of them were counted.
    pub members_bytes: Option<u64>,
    /// How many of these, at least, were not for what the array was requested to do.
    pub not_of_the_array_bytes: Option<u64>,
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

/// A thin pool took no new blocks, was nearly full, or had less room than the run could take.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FullPool {
    /// Kernel name.
    pub device: String,
    /// State when the run began.
    #[serde(flatten)]
    pub pool: PoolState,
    /// Bytes that the run's writes could take from it, where that is more than it had.
    pub wanted_bytes: Option<u64>,
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
        let health = device.nvme.as_ref().map(|state| (state.troubles(), state.wear()));
        found.extend(
            health
                .filter(|(troubles, wear)| !troubles.is_empty() || !wear.is_empty())
                .map(|(troubles, wear)| StackFinding::Nvme(NvmeHealth { device: name(), troubles, wear })),
        );
        let Some(array) = &device.array else { continue };
        if let (Some(words), Some(missing)) = (array.degraded(), array.missing) {
            let members = array.members;
            found.push(StackFinding::Degraded(DegradedArray { device: name(), missing, members, words }));
        }
        found.extend(array.at_work().map(|action| {
            let (members_bytes, not_of_the_array_bytes) = beside(run, device, array).unzip();
            let action = action.to_owned();
            StackFinding::Busy(BusyArray { device: name(), action, members_bytes, not_of_the_array_bytes })
        }));
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
    let writes = writes(run);
    let wanted_bytes = new_blocks(run).filter(|wanted| writes && pool.free_bytes().is_some_and(|free| *wanted > free));
    let is_full = pool.refuses().is_some() || pool.is_nearly_full() || wanted_bytes.is_some();
    is_full.then(|| FullPool { device: device.name.clone(), pool: pool.clone(), wanted_bytes, writes })
}

/// Bytes of a thin volume that the run's data could still take from its pool; `None` where that is unknown. Blocks that a snapshot shares
/// are taken anew too, and are not in it.
fn new_blocks(run: &Run) -> Option<u64> {
    let mut thin = run.environment.devices.iter().filter(|device| device.mapped_bytes.is_some());
    let (volume, None) = (thin.next()?, thin.next()) else { return None };
    Some(run.target.data_bytes?.min(volume.size_bytes?.checked_sub(volume.mapped_bytes?)?))
}

/// What the members of an array moved in the measured windows, and how much of it at least was not for what the array was requested to do.
fn beside(run: &Run, device: &BlockDevice, array: &ArrayState) -> Option<(u64, u64)> {
    let members = u64::try_from(array.on.len()).ok().filter(|members| *members > 0)?;
    let is_mirror = matches!(device.layer.as_deref(), Some("raid1" | "raid10"));
    let (mut moved, mut own) = (0_u64, 0_u64);
    for step in measured(run) {
        let of = |name: &str| step.devices.iter().find(|stats| stats.name == name);
        let stats = of(&device.name)?;
        // Parity has more read and written than these count, and so has the place of a missing member.
        if !is_mirror && (stats.write_bytes > 0 || array.missing != Some(0)) {
            return None;
        }
        own = own.saturating_add(stats.read_bytes).saturating_add(stats.write_bytes.saturating_mul(members));
        for member in &array.on {
            let stats = of(member)?;
            moved = moved.saturating_add(stats.read_bytes).saturating_add(stats.write_bytes);
        }
    }
    Some((moved, moved.saturating_sub(own)))
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
        let Self { device, action, .. } = self;
        let served =
            format!("The kernel was at work on {device} ({action}) when the run began: its members served that too.");
        match (self.members_bytes, self.not_of_the_array_bytes) {
            (Some(moved), Some(other)) if other > 0 => {
                let [other, moved] = [other, moved].map(Bytes);
                format!("{served} At least {other} of the {moved} that they moved were not the run's.")
            }
            _ => served,
        }
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
        format!("{} {}: results are not those of all paths.", self.device, self.words)
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
        if self.writes || self.pool.refuses().is_some() { Severity::Doubt } else { Severity::Note }
    }

    fn sentence(&self) -> String {
        let Self { device, pool, .. } = self;
        let used = Some(pool.used()).filter(|used| !used.is_empty()).map_or(String::new(), |used| format!(" ({used})"));
        match (pool.refuses(), self.wanted_bytes.zip(pool.free_bytes())) {
            (Some(refuses), _) => format!("The thin pool {device} {refuses}{used}: writes to new blocks wait or fail."),
            (None, Some((wanted, free))) => format!(
                "The thin pool {device} had {} free{used}. The run's data could take {} more.",
                Bytes(free),
                Bytes(wanted)
            ),
            (None, None) => {
                format!(
                    "The thin pool {device} is nearly full{used}: once it is full, writes to new blocks wait or fail."
                )
            }
        }
    }

    fn advice(&self) -> Option<String> {
        Some("Extend the pool (`lvextend`), or remove volumes and snapshots that are not needed.".to_owned())
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
        let is_hot = self.troubles.iter().any(|trouble| trouble.contains("temperature") || trouble.contains("°C"));
        let advice = match (self.troubles.is_empty(), is_hot) {
            (true, _) => "`nvme smart-log` shows all that it states. Plan for its replacement.",
            (false, true) => "Such a device slows down. `nvme smart-log` shows more. Mend its cooling, and repeat.",
            (false, false) => "`nvme smart-log` shows all that it states. Replace it, and repeat.",
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
    use model::record::{DeviceStats, FileSystem, NvmeState, NvmeWarning, PathState, PoolMode};

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
    fn what_the_members_of_a_mirror_did_besides_is_said_at_least() {
        let words = |layer: &str, missing, written| {
            let on = vec!["sdx".to_owned(), "sdy".to_owned()];
            let action = Some("resync".to_owned());
            let array = Some(ArrayState { action, on, missing: Some(missing), ..ArrayState::default() });
            let name = "md0".to_owned();
            let mut run = with(BlockDevice { name, array, layer: Some(layer.to_owned()), ..BlockDevice::default() });
            let stats = |name: &str, read_bytes, write_bytes| DeviceStats {
                name: name.to_owned(),
                read_bytes,
                write_bytes,
                ..run.steps[0].devices[0].clone()
            };
            let all = [stats("md0", 1 << 30, written), stats("sdx", 3 << 30, written), stats("sdy", 0, 2 << 30)];
            run.steps.truncate(1);
            run.steps[0].devices.extend(all);
            said(&run).last().unwrap().1.clone()
        };
        let mirror = words("raid1", 0, 1 << 20);
        assert!(mirror.ends_with("At least 4.0 GiB of the 5.0 GiB that they moved were not the run's."), "{mirror}");
        let parity = words("raid5", 0, 0);
        assert!(parity.contains("At least 4 GiB of the 5 GiB"), "{parity}");
        for (missing, written) in [(0, 1), (1, 0)] {
            assert!(words("raid5", missing, written).ends_with("its members served that too."));
        }
    }

    #[test]
    fn lost_paths_are_a_doubt() {
        let paths = |lost: &[&str]| {
            let lost: Vec<String> = lost.iter().map(|name| (*name).to_owned()).collect();
            let paths = Some(PathState { paths: 2, usable: None, lost });
            said(&with(BlockDevice { name: "dm-0".into(), paths, ..BlockDevice::default() }))
        };
        assert_eq!(paths(&[]), []);
        let words = "dm-0 has lost 1 of 2 paths (sdb): results are not those of all paths.".to_owned();
        assert_eq!(paths(&["sdb"]), [(Severity::Doubt, words)]);
    }

    #[test]
    fn a_pool_is_a_doubt_where_it_is_nearly_full_or_the_runs_data_may_not_fit() {
        let of = |mode, used: u64, mapped: u64, writes: bool| {
            let pool = PoolState {
                mode,
                data_bytes: Some(100 << 30),
                data_used_bytes: Some(used << 30),
                ..PoolState::default()
            };
            let mut run = with(BlockDevice { name: "dm-3".into(), pool: Some(pool), ..BlockDevice::default() });
            run.environment.devices.push(BlockDevice {
                name: "dm-4".into(),
                size_bytes: Some(64 << 30),
                mapped_bytes: Some(mapped << 30),
                ..BlockDevice::default()
            });
            run.target.data_bytes = Some(32 << 30);
            run.steps.iter_mut().filter(|_| !writes).for_each(|step| step.counters.physical_writes = Some(0));
            said(&run)
        };
        assert_eq!(of(PoolMode::ReadWrite, 60, 0, true), []);
        let nearly = of(PoolMode::ReadWrite, 95, 64, true);
        assert!(nearly[0].1.starts_with("The thin pool dm-3 is nearly full (95 % of data used)"), "{nearly:?}");
        assert_eq!((nearly[0].0, of(PoolMode::ReadWrite, 95, 64, false)[0].0), (Severity::Doubt, Severity::Note));
        let short = of(PoolMode::ReadWrite, 80, 0, true);
        assert!(
            short[0].1.ends_with("had 20 GiB free (80 % of data used). The run's data could take 32 GiB more."),
            "{short:?}"
        );
        assert_eq!(of(PoolMode::ReadWrite, 80, 44, true), [], "20 GiB are left to take");
        assert_eq!(of(PoolMode::ReadWrite, 80, 0, false), []);
        let over = of(PoolMode::OutOfDataSpace, 100, 64, false);
        assert_eq!(over[0].0, Severity::Doubt);
        assert!(over[0].1.contains("is out of data space (100 % of data used)"), "{over:?}");
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
