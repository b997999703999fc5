//! Who uses a device or file at present, from what the kernel shows.
//!
//! Not all users can be seen from here (those of other containers, file systems that keep their devices to themselves),
//! so opening exclusively must be tried as well. What is found here is found with its name.

use std::fmt;
use std::path::{Path, PathBuf};

use super::BlockError;
use super::users::Process;
use measure::os::Root;
use measure::os::mounts::{self, Mount, ResolvedPath};
use measure::os::proc::DeviceNumber;

/// A stack of more devices than this is taken for a mistake in `/sys`.
const MAX_DEVICES: usize = 1_024;

/// One use of a device or file that forbids to write to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Usage {
    /// A mounted file system, at the mount point if it is known.
    Mounted {
        /// Name of the device, as in `/dev`.
        device: String,
        /// Where.
        at: Option<PathBuf>,
    },
    /// Swap space that is switched on.
    Swap {
        /// Device or file.
        what: String,
    },
    /// A part of another device: a volume, an array, a cache, a loop.
    Held {
        /// The device below.
        device: String,
        /// The device made of it.
        holder: String,
    },
    /// A lock of another program.
    Locked {
        /// Device or file.
        what: String,
        /// How, such as `fcntl`.
        how: &'static str,
        /// Who has it; unknown where the kernel does not show it.
        by: Option<Process>,
    },
    /// The kernel lets nobody write to it.
    ReadOnly {
        /// The device.
        device: String,
    },
    /// It refuses writes that do not continue where the last one in a zone ended.
    Zoned {
        /// The device.
        device: String,
    },
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted { device, at: Some(at) } => write!(f, "`{device}` is mounted at `{}`", at.display()),
            Self::Mounted { device, at: None } => write!(f, "`{device}` belongs to a mounted file system"),
            Self::Swap { what } => write!(f, "`{what}` is in use as swap space"),
            Self::Held { device, holder } => write!(f, "`{device}` is part of `{holder}`"),
            Self::Locked { what, how, by: Some(by) } => write!(f, "{by} has locked `{what}` ({how})"),
            Self::Locked { what, how, by: None } => write!(f, "another program has locked `{what}` ({how})"),
            Self::ReadOnly { device } => write!(f, "`{device}` is read-only"),
            Self::Zoned { device } => write!(f, "`{device}` is a zoned device, which takes only sequential writes"),
        }
    }
}

/// A device as `/sys` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    /// Its directory, without symbolic links.
    directory: PathBuf,
    /// Its name, as in `/dev`.
    pub(super) name: String,
    number: Option<DeviceNumber>,
}

impl Device {
    fn at(root: &Root, directory: PathBuf) -> Self {
        // `/sys` writes `!` for the slash in names such as `cciss/c0d0`.
        let name = directory.file_name().unwrap_or_default().to_string_lossy().replace('!', "/");
        let number = root.number(directory.join("dev"));
        Self { directory, name, number }
    }

    /// The device with this number.
    ///
    /// # Errors
    /// [`BlockError::Unseen`] where the kernel's files do not show it: what cannot be seen cannot be called unused.
    pub(super) fn find(root: &Root, number: DeviceNumber, path: &Path) -> Result<Self, BlockError> {
        let hidden = |what: &str| BlockError::Unseen { path: path.to_owned(), what: what.to_owned() };
        let place = format!("/sys/dev/block/{number}");
        let directory = root.canonical(&place).ok_or_else(|| hidden(&place))?;
        if !root.exists("/proc/self/mountinfo") {
            return Err(hidden("/proc/self/mountinfo"));
        }
        Ok(Self::at(root, directory))
    }

    /// The disk that it is a partition of.
    pub(super) fn disk(&self, root: &Root) -> Option<Self> {
        let is_partition = root.exists(self.directory.join("partition"));
        is_partition.then(|| self.directory.parent().map(|disk| Self::at(root, disk.to_owned()))).flatten()
    }

    /// Its partitions, if it is a disk.
    pub(super) fn partitions(&self, root: &Root) -> Vec<Self> {
        let inside = root.names(&self.directory).into_iter().map(|name| self.directory.join(name));
        inside.filter(|inside| root.exists(inside.join("partition"))).map(|inside| Self::at(root, inside)).collect()
    }

    fn is_read_only(&self, root: &Root) -> bool {
        root.number::<u32>(self.directory.join("ro")).is_some_and(|ro| ro != 0)
    }

    /// The directory of the disk, which has what its partitions have not.
    fn disk_directory(&self, root: &Root) -> PathBuf {
        self.disk(root).map_or_else(|| self.directory.clone(), |disk| disk.directory)
    }

    /// Whether it takes only sequential writes; a host-aware one takes others too.
    fn is_zoned(&self, root: &Root) -> bool {
        root.value(self.disk_directory(root).join("queue/zoned")).is_some_and(|zoned| zoned == "host-managed")
    }

    /// Whether `other` leads to the same bytes by another path: both have one name that is unique in the world, and begin at one
    /// place. Names that a vendor may give twice (`t10.`, `nvme.`) do not count.
    pub(super) fn is_other_path_of(&self, root: &Root, other: &Self) -> bool {
        let world_wide_name = |device: &Self| {
            let directory = device.disk_directory(root);
            let name = ["device/wwid", "wwid"].into_iter().find_map(|file| root.value(directory.join(file)))?;
            ["naa.", "eui.", "uuid."].iter().any(|kind| name.starts_with(kind)).then_some(name)
        };
        let start = |device: &Self| root.number::<u64>(device.directory.join("start")).unwrap_or(0);
        let one = world_wide_name(self);
        one.is_some() && one == world_wide_name(other) && start(self) == start(other)
    }
}

impl Device {
    /// The numbers of it, of its partitions, and of the disk that it is a partition of: what is written to one of these is written
    /// to the device.
    pub(super) fn numbers(&self, root: &Root) -> Vec<u64> {
        let family = std::iter::once(self.clone()).chain(self.partitions(root)).chain(self.disk(root));
        family.filter_map(|device| device.number).map(|number| libc::makedev(number.major, number.minor)).collect()
    }
}

/// All uses of a device, of its partitions, of the disk that it is a partition of (but not of other partitions there),
/// and of all devices made of these, with their partitions.
pub(super) fn of_device(root: &Root, device: &Device) -> Vec<Usage> {
    let mut walk = Walk { root, family: Vec::new(), found: Vec::new(), loops: loops(root) };
    walk.add(device.clone());
    if let Some(disk) = device.disk(root) {
        walk.add_alone(disk);
    }
    let Walk { family, mut found, .. } = walk;

    for mount in mounts::all(root) {
        if let Some(member) = family.iter().find(|member| member.is_source_of(root, &mount)) {
            found.push(Usage::Mounted { device: member.name.clone(), at: Some(mount.mount_point) });
        }
    }
    found.extend(btrfs_members(root, &family));
    for swap in swaps(root) {
        let place = ResolvedPath::nearest(root, &swap);
        let number = place.and_then(|place| place.block_device);
        let is_swap = |member: &&Device| (number.is_some() && member.number == number) || member.is_named(root, &swap);
        if let Some(member) = family.iter().find(is_swap) {
            found.push(Usage::Swap { what: member.name.clone() });
        }
    }
    if device.is_read_only(root) {
        found.push(Usage::ReadOnly { device: device.name.clone() });
    }
    if device.is_zoned(root) {
        found.push(Usage::Zoned { device: device.name.clone() });
    }
    found
}

/// All uses of a regular file, given its path without symbolic links and a test for being the same file under another
/// name.
pub(super) fn of_file(root: &Root, path: &Path, is_same: &dyn Fn(&Path) -> bool) -> Vec<Usage> {
    let is_it = |other: &Path| other == path || is_same(other);
    let held = loops(root).into_iter().filter(|(_, backing)| is_it(backing));
    let held = held.map(|(holder, _)| Usage::Held { device: path.display().to_string(), holder: holder.name });
    let swaps = swaps(root).into_iter().filter(|swap| is_it(swap));
    held.chain(swaps.map(|_| Usage::Swap { what: path.display().to_string() })).collect()
}

struct Walk<'a> {
    root: &'a Root,
    family: Vec<Device>,
    found: Vec<Usage>,
    loops: Vec<(Device, PathBuf)>,
}

impl Walk<'_> {
    /// Adds a device, its partitions and all that is made of them.
    fn add(&mut self, device: Device) {
        let partitions = device.partitions(self.root);
        if self.add_alone(device) {
            partitions.into_iter().for_each(|partition| self.add(partition));
        }
    }

    /// Adds a device and all that is made of it, but not its partitions. Broken links may form a ring, so each device is
    /// added once; false if it was there.
    fn add_alone(&mut self, device: Device) -> bool {
        if self.family.len() >= MAX_DEVICES || self.family.contains(&device) {
            return false;
        }
        self.family.push(device.clone());
        let holders = device.directory.join("holders");
        let mut above: Vec<Device> = Vec::new();
        for holder in self.root.names(&holders) {
            let directory = self.root.canonical(holders.join(&holder));
            above.push(Device::at(self.root, directory.unwrap_or_else(|| PathBuf::from(holder))));
        }
        for (holder, backing) in &self.loops {
            let number = ResolvedPath::nearest(self.root, backing).and_then(|place| place.block_device);
            if (number.is_some() && number == device.number) || device.is_named(self.root, backing) {
                above.push(holder.clone());
            }
        }
        for holder in above {
            self.found.push(Usage::Held { device: device.name.clone(), holder: holder.name.clone() });
            self.add(holder);
        }
        true
    }
}

impl Device {
    /// Whether `path` leads to its node in `/dev`.
    fn is_named(&self, root: &Root, path: &Path) -> bool {
        let real = root.canonical(path);
        let name = |path: &Path| path.strip_prefix("/dev").is_ok_and(|name| name == Path::new(&self.name));
        name(path) || real.is_some_and(|real| name(&real))
    }

    fn is_source_of(&self, root: &Root, mount: &Mount) -> bool {
        // File systems over several devices have a number of their own, and name one of their devices.
        Some(mount.device) == self.number || (mount.device.major == 0 && self.is_named(root, Path::new(&mount.source)))
    }
}

/// The mount table names only one device of a btrfs file system; `/sys` knows the others, as long as it is mounted.
fn btrfs_members(root: &Root, family: &[Device]) -> Vec<Usage> {
    let systems = root.names("/sys/fs/btrfs");
    let members = systems.iter().flat_map(|system| root.names(format!("/sys/fs/btrfs/{system}/devices")));
    let ours = members.filter(|name| family.iter().any(|device| device.name == *name));
    ours.map(|device| Usage::Mounted { device, at: None }).collect()
}

/// Loop devices that are set up, with the file or device that each stands on.
fn loops(root: &Root) -> Vec<(Device, PathBuf)> {
    let names = root.names("/sys/block").into_iter().filter(|name| name.starts_with("loop"));
    let backed = names.filter_map(|name| {
        let directory = root.canonical(format!("/sys/block/{name}"))?;
        let backing = root.value(directory.join("loop/backing_file"))?;
        Some((Device::at(root, directory), PathBuf::from(backing)))
    });
    backed.collect()
}

/// Devices and files that are swapped to.
fn swaps(root: &Root) -> Vec<PathBuf> {
    let text = root.text("/proc/swaps").unwrap_or_default();
    let names = text.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().next());
    names.map(mounts::unescaped).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A machine made of files: a disk `sdb` (8:16) with two partitions, and whatever a test adds.
    struct Machine {
        directory: TempDir,
        root: Root,
    }

    impl Machine {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = Root::at(directory.path());
            let machine = Self { directory, root };
            machine.file("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
            machine.device("8:16", "sdb");
            for partition in [1, 2] {
                machine.device(&format!("8:{}", 16 + partition), &format!("sdb/sdb{partition}"));
                machine.file(&format!("sys/devices/sdb/sdb{partition}/partition"), "1\n");
            }
            machine
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, path: &str, to: &str) {
            let path = self.directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(self.directory.path().join(to), path).unwrap();
        }

        /// A device of `/sys`, its directory given below `/sys/devices`.
        fn device(&self, number: &str, directory: &str) {
            self.file(&format!("sys/devices/{directory}/dev"), &format!("{number}\n"));
            fs::create_dir_all(self.directory.path().join(format!("sys/devices/{directory}/holders"))).unwrap();
            self.link(&format!("sys/dev/block/{number}"), &format!("sys/devices/{directory}"));
            let name = directory.rsplit('/').next().unwrap();
            self.link(&format!("sys/block/{name}"), &format!("sys/devices/{directory}"));
        }

        fn holder(&self, number: &str, holder: &str, below: &str) {
            self.device(number, holder);
            self.link(&format!("sys/devices/{below}/holders/{holder}"), &format!("sys/devices/{holder}"));
        }

        fn mount(&self, line: &str) {
            self.file("proc/self/mountinfo", line);
        }

        fn uses(&self, number: &str) -> Vec<String> {
            let device = Device::find(&self.root, number.parse().unwrap(), Path::new("/dev/x")).unwrap();
            of_device(&self.root, &device).iter().map(Usage::to_string).collect()
        }
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn an_idle_disk_is_unused() {
        let machine = Machine::new();
        assert_eq!(machine.uses("8:16"), NOTHING);
        assert_eq!(machine.uses("8:17"), NOTHING);
    }

    #[test]
    fn a_mounted_partition_is_in_use_and_so_is_its_disk_but_not_its_neighbour() {
        let machine = Machine::new();
        machine.mount("22 1 8:17 / /data\\040one rw - xfs /dev/sdb1 rw\n");
        assert_eq!(machine.uses("8:17"), ["`sdb1` is mounted at `/data one`"]);
        assert_eq!(machine.uses("8:16"), ["`sdb1` is mounted at `/data one`"]);
        assert_eq!(machine.uses("8:18"), NOTHING);
    }

    #[test]
    fn a_partition_of_a_disk_that_is_mounted_as_a_whole_is_in_use() {
        let machine = Machine::new();
        machine.mount("22 1 8:16 / /whole rw - xfs /dev/sdb rw\n");
        assert_eq!(machine.uses("8:18"), ["`sdb` is mounted at `/whole`"]);
    }

    #[test]
    fn what_is_made_of_a_device_uses_it_however_high_it_stands() {
        let machine = Machine::new();
        machine.holder("9:0", "md0", "sdb/sdb2");
        machine.holder("253:0", "dm-0", "md0");
        machine.mount("22 1 253:0 / /u02 rw - ext4 /dev/mapper/vg-u02 rw\n");
        let uses = ["`sdb2` is part of `md0`", "`md0` is part of `dm-0`", "`dm-0` is mounted at `/u02`"];
        assert_eq!(machine.uses("8:16"), uses);
        assert_eq!(machine.uses("8:18"), uses);
        assert_eq!(machine.uses("8:17"), NOTHING);
        assert_eq!(machine.uses("9:0"), uses[1..]);
    }

    #[test]
    fn a_holder_without_any_mount_is_a_use() {
        let machine = Machine::new();
        machine.holder("253:0", "dm-0", "sdb");
        assert_eq!(machine.uses("8:16"), ["`sdb` is part of `dm-0`"]);
        assert_eq!(machine.uses("8:17"), ["`sdb` is part of `dm-0`"], "the disk is used as a whole");
    }

    #[test]
    fn holders_that_form_a_ring_end() {
        let machine = Machine::new();
        machine.holder("253:0", "dm-0", "sdb");
        machine.link("sys/devices/dm-0/holders/sdb", "sys/devices/sdb");
        assert_eq!(machine.uses("8:16"), ["`sdb` is part of `dm-0`", "`dm-0` is part of `sdb`"]);
    }

    #[test]
    fn a_loop_over_a_device_uses_it() {
        let machine = Machine::new();
        machine.device("7:0", "loop0");
        machine.file("sys/devices/loop0/loop/backing_file", "/dev/sdb1\n");
        machine.mount("22 1 7:0 / /mnt rw - ext4 /dev/loop0 rw\n");
        assert_eq!(machine.uses("8:16"), ["`sdb1` is part of `loop0`", "`loop0` is mounted at `/mnt`"]);
    }

    #[test]
    fn swap_is_found_by_name_and_through_links() {
        let machine = Machine::new();
        machine.file("dev/sdb2", "");
        machine.link("dev/disk/swap", "dev/sdb2");
        machine.file("proc/swaps", "Filename Type Size Used Priority\n/dev/disk/swap partition 1048572 0 -2\n");
        assert_eq!(machine.uses("8:18"), ["`sdb2` is in use as swap space"]);
        assert_eq!(machine.uses("8:16"), ["`sdb2` is in use as swap space"]);
        assert_eq!(machine.uses("8:17"), NOTHING);
    }

    #[test]
    fn a_btrfs_member_that_the_mount_table_does_not_name_is_in_use() {
        let machine = Machine::new();
        machine.mount("22 1 0:44 / /b rw - btrfs /dev/sdc rw\n");
        machine.link("sys/fs/btrfs/0b5e/devices/sdb2", "sys/devices/sdb/sdb2");
        assert_eq!(machine.uses("8:16"), ["`sdb2` belongs to a mounted file system"]);
        machine.mount("22 1 0:44 / /b rw - btrfs /dev/sdb1 rw\n");
        assert_eq!(machine.uses("8:17"), ["`sdb1` is mounted at `/b`"]);
    }

    #[test]
    fn a_read_only_device_is_reported() {
        let machine = Machine::new();
        machine.file("sys/devices/sdb/ro", "1\n");
        assert_eq!(machine.uses("8:16"), ["`sdb` is read-only"]);
    }

    #[test]
    fn a_zoned_device_is_refused_with_its_partitions_unless_it_takes_any_write() {
        let machine = Machine::new();
        machine.file("sys/devices/sdb/queue/zoned", "host-managed\n");
        assert_eq!(machine.uses("8:16"), ["`sdb` is a zoned device, which takes only sequential writes"]);
        assert_eq!(machine.uses("8:17"), ["`sdb1` is a zoned device, which takes only sequential writes"]);
        machine.file("sys/devices/sdb/queue/zoned", "host-aware\n");
        assert_eq!(machine.uses("8:16"), NOTHING);
    }

    #[test]
    fn two_paths_of_one_device_are_known_by_its_name() {
        let machine = Machine::new();
        machine.device("8:32", "sdc");
        let are_one = |one: &str, other: &str| {
            let device = |number: &str| Device::find(&machine.root, number.parse().unwrap(), Path::new("x")).unwrap();
            device(one).is_other_path_of(&machine.root, &device(other))
        };
        assert!(!are_one("8:16", "8:32"), "neither has a name");
        let name = |wwid: &str| {
            machine.file("sys/devices/sdb/device/wwid", wwid);
            machine.file("sys/devices/sdc/device/wwid", wwid);
        };
        name("t10.ATA     DISK WITHOUT A NUMBER\n");
        assert!(!are_one("8:16", "8:32"), "a vendor may give this name twice");
        name("naa.5000c500a1b2c3d4\n");
        assert!(are_one("8:16", "8:32"));
        machine.file("sys/devices/sdb/sdb1/start", "2048\n");
        assert!(!are_one("8:17", "8:32"), "a partition begins elsewhere");
        machine.file("sys/devices/sdc/device/wwid", "naa.5000c500a1b2c3d5\n");
        assert!(!are_one("8:16", "8:32"));
    }

    #[test]
    fn a_file_that_a_loop_or_swap_stands_on_is_in_use() {
        let machine = Machine::new();
        machine.device("7:3", "loop3");
        machine.file("sys/devices/loop3/loop/backing_file", "/images/disk.img\n");
        machine.file("proc/swaps", "Filename Type\n/swap\\040file file 1 0 -2\n");
        let uses = |path: &str, other: &str| -> Vec<String> {
            let is_same = |named: &Path| named == Path::new(other);
            of_file(&machine.root, Path::new(path), &is_same).iter().map(Usage::to_string).collect()
        };
        assert_eq!(uses("/images/disk.img", ""), ["`/images/disk.img` is part of `loop3`"]);
        assert_eq!(uses("/hard.link", "/images/disk.img"), ["`/hard.link` is part of `loop3`"]);
        assert_eq!(uses("/swap file", ""), ["`/swap file` is in use as swap space"]);
        assert_eq!(uses("/other", ""), NOTHING);
    }

    #[test]
    fn a_machine_that_hides_its_devices_is_not_taken_for_an_idle_one() {
        let empty = tempfile::tempdir().unwrap();
        let find =
            |root: &Root| Device::find(root, "8:16".parse().unwrap(), Path::new("/dev/sdb")).unwrap_err().to_string();
        assert_eq!(
            find(&Root::at(empty.path())),
            "cannot tell whether `/dev/sdb` is in use: `/sys/dev/block/8:16` cannot be read"
        );
        let machine = Machine::new();
        fs::remove_file(machine.directory.path().join("proc/self/mountinfo")).unwrap();
        assert!(find(&machine.root).contains("/proc/self/mountinfo"));
    }

    #[test]
    fn a_partition_knows_its_disk_and_a_disk_its_partitions() {
        let machine = Machine::new();
        let find = |number: &str| Device::find(&machine.root, number.parse().unwrap(), Path::new("/dev/x")).unwrap();
        let disk = find("8:16");
        assert_eq!(find("8:17").disk(&machine.root), Some(disk.clone()));
        assert_eq!(disk.disk(&machine.root), None);
        assert_eq!(disk.partitions(&machine.root), [find("8:17"), find("8:18")]);
    }

    #[test]
    fn a_mounted_partition_of_an_array_uses_the_disks_of_the_array() {
        let machine = Machine::new();
        machine.holder("9:0", "md0", "sdb");
        machine.device("259:0", "md0/md0p1");
        machine.file("sys/devices/md0/md0p1/partition", "1\n");
        machine.mount("22 1 259:0 / /u03 rw - ext4 /dev/md0p1 rw\n");
        assert_eq!(machine.uses("8:16"), ["`sdb` is part of `md0`", "`md0p1` is mounted at `/u03`"]);
    }
}
