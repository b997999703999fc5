//! Checks of the file system and the devices below it.

use super::{Ability, Capabilities, Check, Demand};
use model::record::{BlockDevice, Environment, FileSystem, GroupLimit, Limited, PoolMode, PoolState};
use model::units::Bytes;

/// Below this, without a known demand, there is hardly room for a data set that says anything.
const LITTLE_SPACE_BYTES: u64 = 1 << 30;

pub(super) fn checks(environment: &Environment, capabilities: &Capabilities, demand: &Demand) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(file_system) = &environment.file_system {
        checks.push(kind(file_system));
        checks.extend(options(file_system));
        checks.extend(compression(file_system));
        checks.extend(space(file_system, demand));
    }
    checks.extend(direct_io(&capabilities.direct_io));
    checks.extend(devices(environment));
    for device in &environment.devices {
        checks.extend(scheduler(device));
        checks.extend(statistics(device));
        checks.extend(layer(device));
        checks.extend(array(device));
        checks.extend(paths(device));
        checks.extend(thin_pool(device));
        checks.extend(nvme(device));
    }
    checks.extend(environment.group_limits.iter().filter_map(group_limit));
    checks
}

/// What a type of file system means for measuring.
enum Kind {
    Disk,
    CopyOnWrite,
    Zfs,
    Memory,
    ContainerLayer,
    Remote,
    UserSpace,
}

/// Whether files on a file system of this type are in memory alone.
pub fn is_in_memory(kind: &str) -> bool {
    matches!(kind_of(kind), Kind::Memory)
}

/// Whether files on a file system of this type are on another machine.
pub fn is_remote(kind: &str) -> bool {
    matches!(kind_of(kind), Kind::Remote)
}

fn kind_of(name: &str) -> Kind {
    match name {
        "btrfs" | "bcachefs" => Kind::CopyOnWrite,
        "zfs" => Kind::Zfs,
        "tmpfs" | "ramfs" | "devtmpfs" | "rootfs" | "hugetlbfs" => Kind::Memory,
        "overlay" | "aufs" | "fuse.fuse-overlayfs" => Kind::ContainerLayer,
        "nfs" | "nfs4" | "cifs" | "smb3" | "smbfs" | "ceph" | "9p" | "virtiofs" | "lustre" | "gpfs" | "beegfs"
        | "afs" | "fuse.glusterfs" | "fuse.sshfs" | "fuse.ceph" => Kind::Remote,
        _ if name == "fuse" || name.starts_with("fuse.") => Kind::UserSpace,
        _ => Kind::Disk,
    }
}

fn kind(file_system: &FileSystem) -> Check {
    const TOPIC: &str = "file system";
    let FileSystem { kind, source, mount_point, .. } = file_system;
    let finding = format!("{kind} on {source}, mounted at {mount_point}");
    match kind_of(kind) {
        Kind::Disk => Check::good(TOPIC, finding),
        Kind::CopyOnWrite if file_system.writes_in_place == Some(true) => {
            Check::good(TOPIC, format!("{finding}; files in the directory are written in place (`chattr +C`)"))
        }
        Kind::CopyOnWrite => Check::advice(
            TOPIC,
            finding,
            "it writes every changed block to a new place. Databases usually turn that off: `chattr +C` on the empty \
            directory (btrfs), or use ext4 or xfs",
        ),
        Kind::Zfs => Check::advice(
            TOPIC,
            finding,
            "its own cache answers reads, and its devices are not shown. Set `primarycache=metadata` and a \
            `recordsize` of the block size, or use ext4 or xfs",
        ),
        Kind::Memory => Check::problem(
            TOPIC,
            finding,
            "it lies in memory, so figures say nothing about storage: choose a directory on a disk with `--target dir:…`",
        ),
        Kind::ContainerLayer => Check::advice(
            TOPIC,
            finding,
            "it is a container's layer over another file system: mount a volume into the container and use that",
        ),
        Kind::Remote => Check::advice(
            TOPIC,
            finding,
            "results include the network or the host, perhaps their caches, and no device counters. That is right \
            only if your database will run like this",
        ),
        Kind::UserSpace => Check::advice(
            TOPIC,
            finding,
            "a program in user space serves it, which takes part of the time measured: use the file system below it",
        ),
    }
}

fn options(file_system: &FileSystem) -> Option<Check> {
    const TOPIC: &str = "mount options";
    let has = |wanted: &str| file_system.options.split(',').any(|option| option == wanted);
    let mount_point = &file_system.mount_point;
    if has("ro") {
        return Some(Check::problem(
            TOPIC,
            format!("{mount_point} is mounted read-only (ro)"),
            format!(
                "data cannot be set up there: as root `mount -o remount,rw {mount_point}`, or choose another place"
            ),
        ));
    }
    if has("data=journal") {
        return Some(Check::problem(
            TOPIC,
            format!("{mount_point} is mounted with data=journal"),
            "it accepts direct I/O but still caches it, and writes all data twice: mount it with data=ordered",
        ));
    }
    let slow = ["sync", "dirsync"].into_iter().find(|option| has(option))?;
    Some(Check::advice(
        TOPIC,
        format!("{mount_point} is mounted with {slow}"),
        format!("every change waits for the device even where a database would not wait: mount it without {slow}"),
    ))
}

fn compression(file_system: &FileSystem) -> Option<Check> {
    let option = file_system.compression()?;
    Some(Check::advice(
        "compression",
        format!("{} is mounted with {option}", file_system.mount_point),
        "results depend on the data: blocks that compress well are smaller on the device. Measure with data like your own, or in a \
         directory with `chattr +C`, which is not compressed",
    ))
}

fn space(file_system: &FileSystem, demand: &Demand) -> Option<Check> {
    const TOPIC: &str = "free space";
    let available = file_system.available_bytes?;
    let finding = format!("{} are free at {}", Bytes(available), file_system.mount_point);
    Some(match demand.data_bytes {
        Some(wanted) if wanted > available => Check::problem(
            TOPIC,
            format!("{finding}, {} are wanted", Bytes(wanted)),
            "use a smaller SCALE or fewer schemas, or free some space",
        ),
        None if available < LITTLE_SPACE_BYTES => Check::advice(
            TOPIC,
            finding,
            "a data set that small fits into caches on the way to the medium: free some space or choose another place",
        ),
        _ => Check::good(TOPIC, finding),
    })
}

fn direct_io(ability: &Ability) -> Option<Check> {
    const TOPIC: &str = "direct I/O";
    match ability {
        Ability::Untried => None,
        Ability::Usable => Some(Check::good(TOPIC, "files can be opened with O_DIRECT")),
        Ability::Refused { reason } => Some(Check::problem(
            TOPIC,
            format!("O_DIRECT is refused: {reason}"),
            "the kernel's page cache would answer reads, so results would be those of memory. Choose a directory on \
             ext4 or xfs, or much more data than memory",
        )),
    }
}

fn devices(environment: &Environment) -> Option<Check> {
    const TOPIC: &str = "devices";
    let file_system = environment.file_system.as_ref();
    let names: Vec<&str> = environment.devices.iter().map(|device| device.name.as_str()).collect();
    if !names.is_empty() {
        return Some(Check::good(TOPIC, format!("the data lies on {}", names.join(", on "))));
    }
    let file_system = file_system.filter(|found| matches!(kind_of(&found.kind), Kind::Disk | Kind::CopyOnWrite))?;
    Some(Check::advice(
        TOPIC,
        format!("no block device is visible below {}", file_system.mount_point),
        "the kernel's device counters cannot be set beside the figures: in a container, let it see the host's /sys",
    ))
}

fn scheduler(device: &BlockDevice) -> Option<Check> {
    const TOPIC: &str = "I/O scheduler";
    // A spinning disk gains from a scheduler that sorts; what is built on other devices has none of its own.
    if device.rotational != Some(false) || device.layer.is_some() {
        return None;
    }
    let BlockDevice { name, scheduler, .. } = device;
    let scheduler = scheduler.as_deref()?;
    Some(match scheduler {
        "none" | "noop" | "mq-deadline" | "deadline" => {
            Check::good(TOPIC, format!("{name} is flash and its scheduler is {scheduler}"))
        }
        _ => Check::advice(
            TOPIC,
            format!("{name} is flash and its scheduler is {scheduler}"),
            format!(
                "sorting for fairness costs processor time and latency on flash: as root, \
                 `echo none > /sys/block/{}/queue/scheduler`",
                name.replace('/', "!")
            ),
        ),
    })
}

fn statistics(device: &BlockDevice) -> Option<Check> {
    // Switched off by default on loop and some stacked devices of old kernels; a partition shows its disk's switch, and the kernel
    // counts what goes to device-mapper whatever the switch says.
    if device.statistics != Some(false)
        || device.layer.as_deref() == Some("partition")
        || device.name.starts_with("dm-")
    {
        return None;
    }
    let name = &device.name;
    Some(Check::advice(
        "device counters",
        format!("the kernel does not count the I/O of {name} (queue/iostats is 0)"),
        format!(
            "/proc/diskstats stands still and cannot confirm the figures: as root, \
             `echo 1 > /sys/block/{}/queue/iostats`",
            name.replace('/', "!")
        ),
    ))
}

fn layer(device: &BlockDevice) -> Option<Check> {
    const TOPIC: &str = "device layers";
    let name = &device.name;
    match device.layer.as_deref()? {
        "crypt" => Some(Check::advice(
            TOPIC,
            format!("{name} is encrypted by this machine"),
            "encryption takes processor time for every block: compare only with machines that encrypt as well",
        )),
        "loop" => Some(Check::advice(
            TOPIC,
            format!("{name} is a file shown as a device"),
            "the file system below it caches unless the loop device was made with `losetup --direct-io=on`: put the data \
             on that file system itself",
        )),
        "snapshot" => Some(Check::advice(
            TOPIC,
            format!("{name} keeps old blocks for a snapshot"),
            "the first write to each block of the origin copies the old block there first: results are those of a volume with \
             a snapshot",
        )),
        _ => None,
    }
}

fn array(device: &BlockDevice) -> Option<Check> {
    const TOPIC: &str = "array";
    let (name, array) = (&device.name, device.array.as_ref()?);
    if let Some(degraded) = array.degraded() {
        return Some(Check::problem(
            TOPIC,
            format!("{name} {degraded}"),
            "results are not those of the whole array: replace the missing members and wait until it is rebuilt",
        ));
    }
    let action = array.at_work()?;
    Some(Check::advice(
        TOPIC,
        format!("the kernel is at work on {name} ({action})"),
        "that reads and writes its members beside the load: wait for its end, which `/proc/mdstat` tells",
    ))
}

fn paths(device: &BlockDevice) -> Option<Check> {
    let degraded = device.paths.as_ref()?.degraded()?;
    Some(Check::problem(
        "paths",
        format!("{} {degraded}", device.name),
        "bring the paths back: `multipath -ll` and `nvme list-subsys` show them",
    ))
}

fn thin_pool(device: &BlockDevice) -> Option<Check> {
    const TOPIC: &str = "thin pool";
    let (name, pool) = (&device.name, device.pool.as_ref()?);
    let finding = |says: &str| match pool.used() {
        used if used.is_empty() => format!("{name} {says}"),
        used => format!("{name} {says} ({used})"),
    };
    let is_metadata = pool.metadata_share().is_some_and(|share| share > PoolState::NEARLY_FULL);
    let extend = match is_metadata {
        true => "extend its metadata (`lvextend --poolmetadatasize`), or remove snapshots that are not needed",
        false => "extend it (`lvextend`), or remove volumes and snapshots that are not needed",
    };
    let advice = match pool.mode {
        PoolMode::ReadWrite => None,
        PoolMode::OutOfDataSpace => Some(format!("writes to new blocks wait or fail: {extend}")),
        PoolMode::ReadOnly | PoolMode::Failed => {
            Some("see `dmesg` and `lvs -a`: its metadata may be full or need `lvconvert --repair`".to_owned())
        }
    };
    if let Some((advice, refuses)) = advice.zip(pool.refuses()) {
        return Some(Check::problem(TOPIC, finding(refuses), advice));
    }
    if pool.is_nearly_full() {
        let advice = format!("when it is full, writes to new blocks wait or fail: {extend}");
        return Some(Check::advice(TOPIC, finding("is nearly full"), advice));
    }
    let used = pool.used();
    (!used.is_empty()).then(|| Check::good(TOPIC, finding("has room")))
}

fn nvme(device: &BlockDevice) -> Option<Check> {
    const TOPIC: &str = "NVMe";
    let (name, state) = (&device.name, device.nvme.as_ref()?);
    let (troubles, wear) = (state.troubles(), state.wear());
    let clauses = [troubles.as_slice(), wear.as_slice()].concat().join("; ");
    let finding = format!("{name} states: {clauses}");
    if !troubles.is_empty() {
        return Some(Check::problem(
            TOPIC,
            finding,
            "the device reports a fault, so results may be worse than those of a sound one: `nvme smart-log` shows more",
        ));
    }
    if !wear.is_empty() {
        return Some(Check::advice(TOPIC, finding, "watch whether these values grow: `nvme smart-log` shows more"));
    }
    state.warnings.as_ref().map(|_| Check::good(TOPIC, format!("{name} states: {}", state.health())))
}

/// Limits on devices and processors; that on memory is judged by what is needed.
fn group_limit(limit: &GroupLimit) -> Option<Check> {
    let advice = match limit.what {
        Limited::MemoryBytes => return None,
        Limited::Processors => "a load that needs more is held back. Raise it, or start Plimsoll outside of the group",
        Limited::LatencyNs => {
            "other groups get less of the device while this one runs: results are those of a protected group"
        }
        Limited::CostPercent => {
            "the kernel may hold requests back before the device: results may be those of the model"
        }
        _ => {
            "a load that reaches it measures the limit and not the device. Raise it, or start Plimsoll outside of the group"
        }
    };
    Some(Check::advice("control group", limit.words(), advice))
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use model::record::{ArrayState, NvmeState, NvmeWarning, PathState, PoolMode, PoolState};

    fn file_system(kind: &str, options: &str) -> FileSystem {
        FileSystem {
            kind: kind.into(),
            mount_point: "/data".into(),
            source: "/dev/sda1".into(),
            options: options.into(),
            ..FileSystem::default()
        }
    }

    fn flash(scheduler: &str) -> BlockDevice {
        BlockDevice {
            name: "sda".into(),
            rotational: Some(false),
            scheduler: Some(scheduler.into()),
            ..BlockDevice::default()
        }
    }

    #[test]
    fn file_systems_are_judged_by_what_they_do_to_direct_reads() {
        for (name, status) in [
            ("ext4", Status::Good),
            ("xfs", Status::Good),
            ("btrfs", Status::Advice),
            ("zfs", Status::Advice),
            ("tmpfs", Status::Problem),
            ("overlay", Status::Advice),
            ("nfs4", Status::Advice),
            ("fuse.glusterfs", Status::Advice),
            ("fuse.rclone", Status::Advice),
            ("fuseblk", Status::Good),
        ] {
            let check = kind(&file_system(name, "rw"));
            assert_eq!(check.status, status, "{name}");
            assert_eq!(check.finding, format!("{name} on /dev/sda1, mounted at /data"));
        }
    }

    #[test]
    fn mount_options_that_spoil_figures_are_named() {
        let of = |text| options(&file_system("ext4", text));
        assert_eq!(of("ro,relatime").unwrap().finding, "/data is mounted read-only (ro)");
        assert_eq!(of("rw,data=journal").unwrap().status, Status::Problem);
        assert_eq!(of("rw,dirsync").unwrap().finding, "/data is mounted with dirsync");
        // `errors=remount-ro` is no read-only mount.
        assert_eq!(of("rw,noatime,errors=remount-ro,data=ordered"), None);
    }

    #[test]
    fn space_is_judged_by_what_is_wanted() {
        let of = |available, wanted| {
            let found = FileSystem { available_bytes: available, ..file_system("ext4", "rw") };
            space(&found, &Demand { data_bytes: wanted, ..Demand::default() })
        };
        let short = of(Some(1 << 30), Some(2 << 30)).unwrap();
        assert_eq!(
            (short.status, short.finding.as_str()),
            (Status::Problem, "1 GiB are free at /data, 2 GiB are wanted")
        );
        assert_eq!(of(Some(1 << 20), Some(1 << 20)).unwrap().status, Status::Good);
        assert_eq!(of(Some(1 << 20), None).unwrap().status, Status::Advice);
        assert_eq!(of(Some(1 << 30), None).unwrap().status, Status::Good);
        assert_eq!(of(None, Some(1)), None);
    }

    #[test]
    fn refused_direct_io_is_a_problem_with_its_reason() {
        let check = direct_io(&Ability::Refused { reason: "Invalid argument (os error 22)".into() }).unwrap();
        assert_eq!(check.status, Status::Problem);
        assert_eq!(check.finding, "O_DIRECT is refused: Invalid argument (os error 22)");
        assert_eq!(direct_io(&Ability::Usable).unwrap().status, Status::Good);
        assert_eq!(direct_io(&Ability::Untried), None);
    }

    #[test]
    fn missing_devices_are_said_only_where_some_should_be() {
        let of = |kind: &str, found: Vec<BlockDevice>| {
            let file_system = Some(file_system(kind, "rw"));
            devices(&Environment { file_system, devices: found, ..Environment::default() })
        };
        assert_eq!(of("ext4", vec![]).unwrap().status, Status::Advice);
        assert_eq!(of("nfs4", vec![]), None);
        let names = ["sda1", "sda"].map(|name| BlockDevice { name: name.into(), ..BlockDevice::default() });
        assert_eq!(of("ext4", names.to_vec()).unwrap().finding, "the data lies on sda1, on sda");
    }

    #[test]
    fn schedulers_matter_on_flash_only_and_on_the_disk_itself() {
        assert_eq!(scheduler(&flash("none")).unwrap().status, Status::Good);
        assert_eq!(scheduler(&flash("mq-deadline")).unwrap().status, Status::Good);
        let fair = scheduler(&flash("bfq")).unwrap();
        assert_eq!((fair.status, fair.finding.as_str()), (Status::Advice, "sda is flash and its scheduler is bfq"));
        assert!(fair.advice.unwrap().contains("/sys/block/sda/queue/scheduler"));
        assert_eq!(scheduler(&BlockDevice { rotational: Some(true), ..flash("bfq") }), None);
        assert_eq!(scheduler(&BlockDevice { layer: Some("partition".into()), ..flash("bfq") }), None);
    }

    #[test]
    fn switched_off_counters_encryption_and_loops_are_pointed_out() {
        let device = |kind: Option<&str>, statistics| BlockDevice {
            name: "md0".into(),
            layer: kind.map(str::to_owned),
            statistics,
            ..BlockDevice::default()
        };
        assert!(statistics(&device(None, Some(false))).unwrap().advice.unwrap().contains("queue/iostats"));
        assert_eq!(statistics(&device(None, Some(true))), None);
        assert_eq!(statistics(&device(None, None)), None);
        assert_eq!(statistics(&BlockDevice { name: "dm-0".into(), ..device(Some("lvm"), Some(false)) }), None);
        assert_eq!(layer(&device(Some("crypt"), None)).unwrap().finding, "md0 is encrypted by this machine");
        assert_eq!(layer(&device(Some("loop"), None)).unwrap().status, Status::Advice);
        assert_eq!(layer(&device(Some("raid0"), None)), None);
    }

    #[test]
    fn nobody_is_advised_to_set_what_is_set() {
        let of = |writes_in_place| kind(&FileSystem { writes_in_place, ..file_system("btrfs", "rw") });
        assert_eq!(of(Some(true)).status, Status::Good);
        for unset in [Some(false), None] {
            assert!(of(unset).advice.unwrap().contains("chattr +C"));
        }
    }

    #[test]
    fn compression_makes_results_depend_on_data() {
        let of = |options: &str, writes_in_place| {
            compression(&FileSystem { writes_in_place, ..file_system("btrfs", options) }).map(|check| check.finding)
        };
        let found = of("rw,compress=zstd:3,ssd", None);
        assert_eq!(found.as_deref(), Some("/data is mounted with compress=zstd:3"));
        assert!(of("rw,compress-force=lzo", Some(false)).is_some());
        assert_eq!(of("rw,compress=zstd:3", Some(true)), None, "what is written in place is not compressed");
        assert_eq!(of("rw,ssd", None), None);
    }

    #[test]
    fn arrays_without_members_are_problems_and_busy_ones_are_named() {
        let of = |action: &str, missing| {
            let state = ArrayState { action: Some(action.into()), members: Some(2), missing, ..ArrayState::default() };
            array(&BlockDevice { name: "md0".into(), array: Some(state), ..BlockDevice::default() })
        };
        let degraded = of("recover", Some(1)).unwrap();
        assert_eq!(
            (degraded.status, degraded.finding.as_str()),
            (Status::Problem, "md0 is degraded (1 of 2 members missing)")
        );
        assert_eq!(of("resync", Some(0)).unwrap().finding, "the kernel is at work on md0 (resync)");
        assert_eq!((of("idle", Some(0)), of("idle", None)), (None, None));
    }

    #[test]
    fn lost_paths_full_pools_and_nvme_devices_in_trouble_are_problems() {
        let device = || BlockDevice { name: "dm-1".into(), ..BlockDevice::default() };
        let found = |check: Option<Check>| check.map(|check| (check.status, check.finding));
        let lost = |lost: Vec<String>| PathState { paths: 2, usable: None, lost };
        let of = |state| found(paths(&BlockDevice { paths: Some(state), ..device() }));
        assert_eq!(of(lost(vec!["sdb".into()])), Some((Status::Problem, "dm-1 has lost 1 of 2 paths (sdb)".into())));
        assert_eq!(of(lost(Vec::new())), None);
        let of = |mode, used: u64| {
            let pool = PoolState {
                mode,
                data_bytes: Some(100 << 30),
                data_used_bytes: Some(used << 30),
                ..PoolState::default()
            };
            found(thin_pool(&BlockDevice { pool: Some(pool), ..device() })).unwrap()
        };
        let (status, words) = of(PoolMode::ReadOnly, 1);
        assert_eq!((status, words.as_str()), (Status::Problem, "dm-1 is read-only (1 % of data used)"));
        assert_eq!(of(PoolMode::ReadWrite, 95).0, Status::Advice);
        assert_eq!(of(PoolMode::ReadWrite, 50).0, Status::Good);
        let of = |state| found(nvme(&BlockDevice { nvme: Some(state), ..device() }));
        let state =
            NvmeState { warnings: Some(vec![NvmeWarning::ReadOnly]), media_errors: Some(1), ..NvmeState::default() };
        let words = "dm-1 states: its medium is read-only; it counts 1 media error".to_owned();
        assert_eq!(of(state.clone()), Some((Status::Problem, words)));
        assert_eq!(of(NvmeState { warnings: Some(Vec::new()), ..state.clone() }).unwrap().0, Status::Advice);
        let well = NvmeState { warnings: Some(Vec::new()), media_errors: Some(0), ..state };
        assert_eq!(of(well), Some((Status::Good, "dm-1 states: no critical warning, 0 media errors".into())));
        assert_eq!(of(NvmeState::default()), None, "what may not be read is unknown");
    }

    #[test]
    fn limits_of_control_groups_are_named_before_a_run_meets_them() {
        let limit = |what, device: Option<&str>| GroupLimit {
            group: "/app.slice".into(),
            file: "io.max".into(),
            device: device.map(str::to_owned),
            what,
            value: 300.0,
        };
        let environment = Environment {
            group_limits: vec![limit(Limited::ReadsPerS, Some("dm-0")), limit(Limited::MemoryBytes, None)],
            ..Environment::default()
        };
        let found = checks(&environment, &Capabilities::default(), &Demand::default());
        let found: Vec<&str> = found.iter().map(|check| check.finding.as_str()).collect();
        assert_eq!(found, ["`io.max` of `/app.slice` caps dm-0 at 300 reads/s"]);
    }

    #[test]
    fn a_snapshot_is_named_with_what_it_costs() {
        let store = BlockDevice { name: "dm-2".into(), layer: Some("snapshot".into()), ..BlockDevice::default() };
        assert_eq!(layer(&store).unwrap().finding, "dm-2 keeps old blocks for a snapshot");
    }
}
