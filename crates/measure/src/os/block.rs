//! The block devices below a path: from the one that the file system is mounted from down to the disks.

use std::path::{Path, PathBuf};

use super::mapper::{self, Mapped};
use super::mounts::{Mount, ResolvedPath, holding};
use super::proc::{DeviceNumber, SECTOR_BYTES, diskstats};
use super::{Root, nvme};
use model::record::{ArrayState, BlockDevice};

/// A stack of more devices than this is taken for a mistake in `/sys`, and the rest is left out.
const MAX_DEVICES: usize = 1_024;

/// The devices below `place`, the top one first and where its snapshots keep blocks last; each device once. Empty where the file
/// system has none of its own (network, memory, overlay) or none that the kernel shows (ZFS).
///
/// Asks NVMe devices and device-mapper, where this process may: a controller answers when it gets to it.
pub fn below(root: &Root, mounts: &[Mount], place: &ResolvedPath) -> Vec<BlockDevice> {
    walk(root, mounts, place).iter().map(|found| found.facts(root)).collect()
}

/// The names of the same devices, for which none is asked.
pub fn names_below(root: &Root, mounts: &[Mount], place: &ResolvedPath) -> Vec<String> {
    walk(root, mounts, place).iter().map(Found::name).collect()
}

fn walk(root: &Root, mounts: &[Mount], place: &ResolvedPath) -> Vec<Found> {
    let mut walk = Walk { root, mounts, found: Vec::new() };
    walk.place(place);
    walk.snapshot_stores();
    walk.found
}

/// A device as far as it could be found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    /// Its directory in `/sys`, without symbolic links.
    Directory(PathBuf),
    /// Its name alone: `/sys` is hidden here.
    Name(String),
}

struct Walk<'a> {
    root: &'a Root,
    mounts: &'a [Mount],
    found: Vec<Found>,
}

impl Walk<'_> {
    fn place(&mut self, place: &ResolvedPath) {
        if let Some(number) = place.block_device {
            return self.number(number);
        }
        let Some(mount) = holding(self.mounts, &place.path, place.device) else { return };
        if mount.device.major != 0 {
            return self.number(mount.device);
        }
        match mount.kind.as_str() {
            "btrfs" => {
                self.node(Path::new(&mount.source));
                self.btrfs_members();
            }
            "bcachefs" => mount.source.split(':').for_each(|node| self.node(Path::new(node))),
            _ => {}
        }
    }

    fn number(&mut self, number: DeviceNumber) {
        if let Some(directory) = self.root.canonical(format!("/sys/dev/block/{number}")) {
            return self.directory(directory);
        }
        let text = self.root.text("/proc/diskstats").unwrap_or_default();
        if let Some(row) = diskstats(&text).find(|row| row.number == number) {
            self.add(Found::Name(row.name.to_owned()));
        }
    }

    /// A device by its path below `/dev`. A container often lacks the node although the kernel has the device, so the
    /// name has to do then.
    fn node(&mut self, node: &Path) {
        let place = self.root.exists(node).then(|| ResolvedPath::nearest(self.root, node)).flatten();
        if let Some(number) = place.as_ref().and_then(|place| place.block_device) {
            return self.number(number);
        }
        let real = place.map_or_else(|| node.to_owned(), |place| place.path);
        if let Some(name) = real.strip_prefix("/dev").ok().and_then(Path::to_str) {
            self.named(&name.replace('/', "!"));
        }
    }

    /// A device by its name in `/sys`.
    fn named(&mut self, name: &str) {
        if let Some(directory) = self.root.canonical(Path::new("/sys/class/block").join(name)) {
            self.directory(directory);
        }
    }

    /// The mount table names one device of a btrfs file system; `/sys` knows the others.
    fn btrfs_members(&mut self) {
        let Some(Found::Directory(first)) = self.found.first().cloned() else { return };
        let name = file_name(&first);
        for file_system in self.root.names("/sys/fs/btrfs") {
            let members = self.root.names(format!("/sys/fs/btrfs/{file_system}/devices"));
            if members.contains(&name) {
                members.iter().for_each(|member| self.named(member));
            }
        }
    }

    fn directory(&mut self, directory: PathBuf) {
        if !self.add(Found::Directory(directory.clone())) {
            return;
        }
        if self.root.exists(directory.join("partition")) {
            if let Some(disk) = directory.parent() {
                self.directory(disk.to_owned());
            }
            return;
        }
        linked(self.root, &directory, "slaves").into_iter().for_each(|below| self.directory(below));
        let backing_file = self.root.value(directory.join("loop/backing_file"));
        if let Some(place) = backing_file.and_then(|file| ResolvedPath::nearest(self.root, Path::new(&file))) {
            self.place(&place);
        }
    }

    /// Where snapshots of what was found keep blocks. The first write to a block of their origin copies the old one there.
    fn snapshot_stores(&mut self) {
        let directories: Vec<PathBuf> = self.found.iter().filter_map(Found::directory).collect();
        let holders: Vec<PathBuf> =
            directories.iter().flat_map(|directory| linked(self.root, directory, "holders")).collect();
        for holder in holders {
            for below in linked(self.root, &holder, "slaves") {
                if is_snapshot_store(self.root, &below) {
                    self.directory(below);
                }
            }
        }
    }

    /// Whether the device was new; devices may be reached in several ways, and broken links may form a ring.
    fn add(&mut self, found: Found) -> bool {
        let new = self.found.len() < MAX_DEVICES && !self.found.contains(&found);
        if new {
            self.found.push(found);
        }
        new
    }
}

/// The devices that a directory in `/sys` has links to: `slaves` are below it, `holders` stand on it.
pub(super) fn linked(root: &Root, directory: &Path, kind: &str) -> Vec<PathBuf> {
    let links = directory.join(kind);
    root.names(&links).iter().filter_map(|name| root.canonical(links.join(name))).collect()
}

/// The last part of a path in `/sys`.
pub(super) fn file_name(directory: &Path) -> String {
    directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

impl Found {
    fn directory(&self) -> Option<PathBuf> {
        match self {
            Self::Directory(directory) => Some(directory.clone()),
            Self::Name(_) => None,
        }
    }

    /// `/sys` writes `!` for the slash in names such as `cciss/c0d0`.
    fn name(&self) -> String {
        match self {
            Self::Directory(directory) => file_name(directory).replace('!', "/"),
            Self::Name(name) => name.clone(),
        }
    }

    fn facts(&self, root: &Root) -> BlockDevice {
        let directory = match self {
            Self::Name(_) => return BlockDevice { name: self.name(), ..BlockDevice::default() },
            Self::Directory(directory) => directory,
        };
        let is_partition = root.exists(directory.join("partition"));
        let disk = directory.parent().filter(|_| is_partition).unwrap_or(directory);
        let queue = disk.join("queue");
        let flag = |file: &str| match root.value(queue.join(file))?.as_str() {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        };
        let kib = |file: &str| root.number::<u64>(queue.join(file))?.checked_mul(1024);
        let mapped = mapper::state(root, directory);
        let (mut pool, mut paths, mut array) = (None, None, array(root, directory));
        match mapped {
            Some(Mapped::Pool(found)) => pool = Some(found),
            Some(Mapped::Paths(found)) => paths = Some(found),
            Some(Mapped::Array(found)) => array = Some(ArrayState { on: names(root, directory, "slaves"), ..found }),
            None => {}
        }
        BlockDevice {
            name: self.name(),
            layer: layer(root, directory),
            model: root.value(disk.join("device/model")),
            size_bytes: root.number::<u64>(directory.join("size")).and_then(|n| n.checked_mul(SECTOR_BYTES)),
            rotational: flag("rotational"),
            scheduler: root.value(queue.join("scheduler")).and_then(|text| chosen(&text)),
            queue_requests: root.number(queue.join("nr_requests")),
            read_ahead_bytes: kib("read_ahead_kb"),
            max_request_bytes: kib("max_sectors_kb"),
            logical_block_bytes: root.number(queue.join("logical_block_size")),
            physical_block_bytes: root.number(queue.join("physical_block_size")),
            forced_unit_access: flag("fua"),
            write_cache: root.value(queue.join("write_cache")),
            statistics: flag("iostats"),
            array,
            pool,
            paths: mapper::path_state(root, directory, paths.as_deref()).or_else(|| nvme::paths(root, directory)),
            nvme: nvme::state(root, directory),
        }
    }
}

/// The names of devices that a directory in `/sys` has links to.
fn names(root: &Root, directory: &Path, kind: &str) -> Vec<String> {
    linked(root, directory, kind).iter().map(|below| file_name(below).replace('!', "/")).collect()
}

/// The state of an MD array.
fn array(root: &Root, directory: &Path) -> Option<ArrayState> {
    let md = directory.join("md");
    root.exists(&md).then(|| ArrayState {
        state: root.value(md.join("array_state")),
        action: root.value(md.join("sync_action")),
        members: root.number(md.join("raid_disks")),
        missing: root.number(md.join("degraded")),
        on: names(root, directory, "slaves"),
    })
}

/// The end of the name by which LVM knows where a snapshot keeps blocks.
const SNAPSHOT_STORE: &str = "-cow";

fn is_snapshot_store(root: &Root, directory: &Path) -> bool {
    let uuid = root.value(directory.join("dm/uuid"));
    uuid.is_some_and(|uuid| uuid.starts_with("LVM-") && uuid.ends_with(SNAPSHOT_STORE))
}

/// What a device is built as; `None` for a plain disk.
fn layer(root: &Root, directory: &Path) -> Option<String> {
    if root.exists(directory.join("partition")) {
        return Some("partition".to_owned());
    }
    if let Some(level) = root.value(directory.join("md/level")) {
        return Some(level);
    }
    if is_snapshot_store(root, directory) {
        return Some("snapshot".to_owned());
    }
    if root.exists(directory.join("dm")) {
        // Tools mark their devices with a prefix: `LVM-…`, `CRYPT-LUKS2-…`, `mpath-…`.
        let uuid = root.value(directory.join("dm/uuid"));
        let tool = uuid.as_deref().and_then(|uuid| uuid.split_once('-')).map(|(tool, _)| tool.to_ascii_lowercase());
        return Some(tool.unwrap_or_else(|| "device-mapper".to_owned()));
    }
    ["loop", "bcache"].into_iter().find(|kind| root.exists(directory.join(kind))).map(str::to_owned)
}

/// The choice in force where the kernel lists all, as in `none [mq-deadline] kyber`, or the only one.
pub fn chosen(text: &str) -> Option<String> {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(choice, _)| choice.trim());
    let choice = bracketed.unwrap_or_else(|| text.trim());
    (!choice.is_empty() && !choice.contains(char::is_whitespace)).then(|| choice.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::super::mounts;
    use super::*;

    /// A machine with its own `/sys`, `/proc` and `/dev`.
    struct Machine {
        directory: tempfile::TempDir,
        mounts: String,
    }

    impl Machine {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().unwrap(), mounts: String::new() }
        }

        fn root(&self) -> Root {
            Root::at(self.directory.path())
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.root().path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, path: &str, to: &str) {
            let real = self.root().path(path);
            fs::create_dir_all(real.parent().unwrap()).unwrap();
            let up = "../".repeat(path.matches('/').count() - 1);
            symlink(format!("{up}{}", to.trim_start_matches('/')), real).unwrap();
        }

        /// A device at `directory` with its links by number and name.
        fn device(&self, directory: &str, number: &str, sectors: u64) {
            self.file(&format!("{directory}/size"), &format!("{sectors}\n"));
            self.link(&format!("/sys/dev/block/{number}"), directory);
            let name = directory.rsplit('/').next().unwrap();
            self.link(&format!("/sys/class/block/{name}"), directory);
        }

        fn slave(&self, of: &str, below: &str) {
            let name = below.rsplit('/').next().unwrap();
            self.link(&format!("{of}/slaves/{name}"), below);
        }

        fn mount(&mut self, number: &str, at: &str, kind: &str, source: &str) {
            fs::create_dir_all(self.root().path(at)).unwrap();
            self.mounts.push_str(&format!("1 1 {number} / {at} rw - {kind} {source} rw\n"));
        }

        fn below(&self, path: &str) -> Vec<BlockDevice> {
            let place = ResolvedPath::nearest(&self.root(), Path::new(path)).unwrap();
            below(&self.root(), &mounts::parse(&self.mounts), &place)
        }

        fn names(&self, path: &str) -> Vec<String> {
            self.below(path).into_iter().map(|device| device.name).collect()
        }
    }

    const SDA: &str = "/sys/devices/pci/ata1/block/sda";
    const SDB: &str = "/sys/devices/pci/ata2/block/sdb";

    #[test]
    fn a_partition_stands_above_its_disk_and_has_its_queue() {
        let mut machine = Machine::new();
        machine.device(SDA, "8:0", 4_096);
        machine.device(&format!("{SDA}/sda1"), "8:1", 2_048);
        for (file, text) in [
            ("sda1/partition", "1\n"),
            ("device/model", "FAST DISK      \n"),
            ("queue/rotational", "0\n"),
            ("queue/scheduler", "none [mq-deadline] kyber\n"),
            ("queue/nr_requests", "256\n"),
            ("queue/read_ahead_kb", "128\n"),
            ("queue/max_sectors_kb", "1280\n"),
            ("queue/logical_block_size", "512\n"),
            ("queue/physical_block_size", "4096\n"),
            ("queue/write_cache", "write back\n"),
            ("queue/fua", "1\n"),
            ("queue/iostats", "0\n"),
        ] {
            machine.file(&format!("{SDA}/{file}"), text);
        }
        machine.mount("8:1", "/data", "ext4", "/dev/sda1");

        let devices = machine.below("/data/not/there/yet");
        let disk = BlockDevice {
            name: "sda".into(),
            layer: None,
            model: Some("FAST DISK".into()),
            size_bytes: Some(4_096 * 512),
            rotational: Some(false),
            scheduler: Some("mq-deadline".into()),
            queue_requests: Some(256),
            read_ahead_bytes: Some(128 << 10),
            max_request_bytes: Some(1_280 << 10),
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(4_096),
            write_cache: Some("write back".into()),
            forced_unit_access: Some(true),
            statistics: Some(false),
            ..BlockDevice::default()
        };
        let partition = BlockDevice {
            name: "sda1".into(),
            layer: Some("partition".into()),
            size_bytes: Some(2_048 * 512),
            ..disk.clone()
        };
        assert_eq!(devices, [partition, disk]);
    }

    #[test]
    fn a_volume_on_an_array_leads_down_to_every_disk_once() {
        let mut machine = Machine::new();
        let (dm, md) = ("/sys/devices/virtual/block/dm-0", "/sys/devices/virtual/block/md0");
        machine.device(SDA, "8:0", 8);
        machine.device(&format!("{SDA}/sda1"), "8:1", 8);
        machine.file(&format!("{SDA}/sda1/partition"), "1\n");
        machine.device(SDB, "8:16", 8);
        machine.device(md, "9:0", 8);
        machine.file(&format!("{md}/md/level"), "raid0\n");
        machine.slave(md, &format!("{SDA}/sda1"));
        machine.slave(md, SDB);
        machine.device(dm, "252:0", 8);
        machine.file(&format!("{dm}/dm/uuid"), "CRYPT-LUKS2-0123-data\n");
        machine.slave(dm, md);
        machine.slave(dm, SDB);
        machine.mount("252:0", "/data", "xfs", "/dev/mapper/data");

        let devices = machine.below("/data");
        let seen: Vec<_> = devices.iter().map(|d| (d.name.as_str(), d.layer.as_deref())).collect();
        assert_eq!(
            seen,
            [
                ("dm-0", Some("crypt")),
                ("md0", Some("raid0")),
                ("sda1", Some("partition")),
                ("sda", None),
                ("sdb", None)
            ]
        );
    }

    #[test]
    fn the_state_of_an_array_is_read_and_unknown_where_the_kernel_hides_it() {
        let mut machine = Machine::new();
        let (degraded, hidden) = ("/sys/devices/virtual/block/md0", "/sys/devices/virtual/block/md1");
        for (device, number) in [(degraded, "9:0"), (hidden, "9:1")] {
            machine.device(device, number, 8);
            machine.file(&format!("{device}/md/level"), "raid1\n");
            machine.mount(number, &format!("/{}", &number[2..]), "ext4", "/dev/md");
        }
        for (file, text) in
            [("array_state", "clean\n"), ("sync_action", "recover\n"), ("raid_disks", "2\n"), ("degraded", "1\n")]
        {
            machine.file(&format!("{degraded}/md/{file}"), text);
        }
        let known = ArrayState {
            state: Some("clean".into()),
            action: Some("recover".into()),
            members: Some(2),
            missing: Some(1),
            on: Vec::new(),
        };
        assert_eq!(machine.below("/0")[0].array, Some(known));
        assert_eq!(machine.below("/1")[0].array, Some(ArrayState::default()));
    }

    /// As LVM stacks them: what was the volume lies below both, and the snapshot keeps old blocks on a device of its own.
    #[test]
    fn where_a_snapshot_keeps_blocks_is_found_below_its_origin_too() {
        let mut machine = Machine::new();
        let dm = |number: u32| format!("/sys/devices/virtual/block/dm-{number}");
        machine.device(SDA, "8:0", 8);
        machine.device(SDB, "8:16", 8);
        for (number, suffix) in [(0, ""), (1, "-real"), (2, "-cow"), (3, "")] {
            machine.device(&dm(number), &format!("252:{number}"), 8);
            machine.file(&format!("{}/dm/uuid", dm(number)), &format!("LVM-abc{number}{suffix}\n"));
        }
        for (above, below) in
            [(dm(0), dm(1)), (dm(1), SDA.to_owned()), (dm(2), SDB.to_owned()), (dm(3), dm(1)), (dm(3), dm(2))]
        {
            machine.slave(&above, &below);
            let name = above.rsplit('/').next().unwrap();
            machine.link(&format!("{below}/holders/{name}"), &above);
        }
        machine.mount("252:0", "/origin", "xfs", "/dev/vg/lin");
        machine.mount("252:3", "/snap", "xfs", "/dev/vg/snap");
        let seen = |path: &str| -> Vec<(String, Option<String>)> {
            machine.below(path).into_iter().map(|device| (device.name, device.layer)).collect()
        };
        let lvm = |name: &str| (name.to_owned(), Some("lvm".to_owned()));
        let (store, disk) = (("dm-2".to_owned(), Some("snapshot".to_owned())), |name: &str| (name.to_owned(), None));
        assert_eq!(seen("/origin"), [lvm("dm-0"), lvm("dm-1"), disk("sda"), store.clone(), disk("sdb")]);
        assert_eq!(seen("/snap"), [lvm("dm-3"), lvm("dm-1"), disk("sda"), store, disk("sdb")]);
    }

    #[test]
    fn btrfs_is_found_by_its_source_with_all_of_its_members() {
        let mut machine = Machine::new();
        machine.device(SDA, "8:0", 8);
        machine.device(SDB, "8:16", 8);
        machine.file("/sys/fs/btrfs/features/raid", "0\n");
        machine.link("/sys/fs/btrfs/0a-1b/devices/sda", SDA);
        machine.link("/sys/fs/btrfs/0a-1b/devices/sdb", SDB);
        machine.file("/dev/sdb", "");
        machine.link("/dev/disk/by-label/data", "/dev/sdb");
        machine.mount("0:40", "/data", "btrfs", "/dev/disk/by-label/data");
        assert_eq!(machine.names("/data"), ["sdb", "sda"]);
    }

    #[test]
    fn a_source_without_a_node_is_found_by_its_name() {
        let mut machine = Machine::new();
        machine.device(SDB, "8:16", 8);
        machine.mount("0:40", "/data", "btrfs", "/dev/sdb");
        assert_eq!(machine.names("/data"), ["sdb"]);
    }

    #[test]
    fn a_loop_device_leads_to_the_disk_that_holds_its_file() {
        let mut machine = Machine::new();
        let looped = "/sys/devices/virtual/block/loop0";
        machine.device(SDA, "8:0", 8);
        machine.device(looped, "7:0", 8);
        machine.file(&format!("{looped}/loop/backing_file"), "/images/disk.img (deleted)\n");
        machine.mount("8:0", "/images", "ext4", "/dev/sda");
        machine.mount("7:0", "/data", "ext4", "/dev/loop0");
        assert_eq!(machine.names("/data"), ["loop0", "sda"]);
    }

    #[test]
    fn network_memory_and_overlay_have_no_devices() {
        let mut machine = Machine::new();
        machine.device(SDA, "8:0", 8);
        machine.mount("0:50", "/nfs", "nfs4", "host:/dev/sda");
        machine.mount("0:51", "/tmp", "tmpfs", "tmpfs");
        machine.mount("0:52", "/over", "overlay", "overlay");
        for path in ["/nfs", "/tmp", "/over"] {
            assert!(machine.names(path).is_empty(), "{path}");
        }
    }

    #[test]
    fn without_sys_the_name_comes_from_diskstats() {
        let mut machine = Machine::new();
        machine.file("/proc/diskstats", "254 0 vda 1 0 16 1 0 0 0 0 0 1 1\n");
        machine.mount("254:0", "/data", "ext4", "/dev/root");
        assert_eq!(machine.below("/data"), [BlockDevice { name: "vda".into(), ..BlockDevice::default() }]);
    }

    #[test]
    fn a_slash_in_a_device_name_is_written_as_diskstats_writes_it() {
        let mut machine = Machine::new();
        machine.device("/sys/devices/pci/block/cciss!c0d0", "104:0", 8);
        machine.mount("104:0", "/data", "ext4", "/dev/cciss/c0d0");
        assert_eq!(machine.names("/data"), ["cciss/c0d0"]);
    }

    #[test]
    fn links_in_a_ring_end() {
        let mut machine = Machine::new();
        let (one, two) = ("/sys/devices/virtual/block/dm-0", "/sys/devices/virtual/block/dm-1");
        machine.device(one, "252:0", 8);
        machine.device(two, "252:1", 8);
        machine.slave(one, two);
        machine.slave(two, one);
        machine.mount("252:0", "/data", "ext4", "/dev/dm-0");
        assert_eq!(machine.names("/data"), ["dm-0", "dm-1"]);
    }

    #[test]
    fn the_choice_in_force_is_the_bracketed_or_the_only_one() {
        for (text, choice) in [
            ("none [mq-deadline] kyber\n", Some("mq-deadline")),
            ("none", Some("none")),
            ("always madvise never", None),
            ("[]", None),
            ("", None),
        ] {
            assert_eq!(chosen(text).as_deref(), choice, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_choice_panic(text in "(?s).{0,60}") {
            let _ = chosen(&text);
        }
    }
}
