//! The block devices below a path: from the one that the file system is mounted from down to the disks.

use std::path::{Path, PathBuf};

use super::Root;
use super::mounts::{Mount, ResolvedPath, holding};
use super::proc::{DeviceNumber, SECTOR_BYTES, diskstats};
use model::record::BlockDevice;

/// A stack of more devices than this is taken for a mistake in `/sys`, and the rest is left out.
const MAX_DEVICES: usize = 1_024;

/// The devices below `place`, the top one first; each device once. Empty where the file system has none of its own
/// (network, memory, overlay) or none that the kernel shows (ZFS).
pub fn below(root: &Root, mounts: &[Mount], place: &ResolvedPath) -> Vec<BlockDevice> {
    let mut walk = Walk { root, mounts, found: Vec::new() };
    walk.place(place);
    walk.found.iter().map(|found| found.facts(root)).collect()
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
        let slaves = directory.join("slaves");
        for slave in self.root.names(&slaves) {
            if let Some(below) = self.root.canonical(slaves.join(slave)) {
                self.directory(below);
            }
        }
        let backing_file = self.root.value(directory.join("loop/backing_file"));
        if let Some(place) = backing_file.and_then(|file| ResolvedPath::nearest(self.root, Path::new(&file))) {
            self.place(&place);
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

fn file_name(directory: &Path) -> String {
    directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

impl Found {
    fn facts(&self, root: &Root) -> BlockDevice {
        let directory = match self {
            Self::Name(name) => return BlockDevice { name: name.clone(), ..BlockDevice::default() },
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
        BlockDevice {
            // `/sys` writes `!` for the slash in names such as `cciss/c0d0`.
            name: file_name(directory).replace('!', "/"),
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
        }
    }
}

/// What a device is built as; `None` for a plain disk.
fn layer(root: &Root, directory: &Path) -> Option<String> {
    if root.exists(directory.join("partition")) {
        return Some("partition".to_owned());
    }
    if let Some(level) = root.value(directory.join("md/level")) {
        return Some(level);
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
#[path = "block_tests.rs"]
mod tests;
