//! Who uses a device or file at present, from what the kernel shows.
//!
//! Not all users can be seen from here (those of other containers, file systems that keep their devices to themselves),
//! so opening exclusively must be tried as well. What is found here is found with its name.

use std::fmt;
use std::path::{Path, PathBuf};

use super::BlockError;
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
    /// The kernel lets nobody write to it.
    ReadOnly {
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
            Self::ReadOnly { device } => write!(f, "`{device}` is read-only"),
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
#[path = "usage_tests.rs"]
mod tests;
