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
