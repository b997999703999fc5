//! Which devices have requests that the kernel shows.

use super::NoTrace;
use crate::os::proc::{DeviceNumber, DiskCounts, diskstats};
use crate::os::{Root, block, mounts};

/// A device whose requests can be traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TracedDevice {
    /// Kernel name.
    pub(super) name: String,
    /// Its number.
    pub(super) number: DeviceNumber,
}

/// The devices of these names, each once. A partition stands for its disk, and what is built on others (LVM, MD) for the disks
/// below: the kernel passes what is sent to them on, and shows requests there only.
pub(super) fn resolve(root: &Root, names: &[String]) -> Result<Vec<TracedDevice>, NoTrace> {
    let text = root.text("/proc/diskstats").unwrap_or_default();
    let numbered = |name: &str| diskstats(&text).find(|row| row.name == name).map(|row| row.number);
    let mounts = mounts::all(root);
    let mut devices: Vec<TracedDevice> = Vec::new();
    for name in names {
        let number = numbered(name).ok_or_else(|| NoTrace::NoDevice { name: name.clone() })?;
        let place = mounts::ResolvedPath { path: "/dev".into(), device: number, block_device: Some(number) };
        let below = block::below(root, &mounts, &place);
        let with_requests: Vec<_> = below.iter().filter(|device| has_requests(device.layer.as_deref())).collect();
        let traced = match (below.first(), with_requests.as_slice()) {
            // Its own requests are what was asked for; nothing that it may itself lie on.
            (Some(top), [first, ..]) if top.name == first.name => vec![name.clone()],
            (_, []) => vec![name.clone()],
            (_, found) => found.iter().map(|device| device.name.clone()).collect(),
        };
        for name in traced {
            if let Some(number) = numbered(&name).filter(|_| devices.iter().all(|known| known.name != name)) {
                devices.push(TracedDevice { name, number });
            }
        }
    }
    Ok(devices)
}

/// What the kernel itself has counted of each.
pub(super) fn counts(root: &Root, devices: &[TracedDevice]) -> Vec<Option<DiskCounts>> {
    let text = if devices.is_empty() { None } else { root.text("/proc/diskstats") }.unwrap_or_default();
    let of = |device: &TracedDevice| diskstats(&text).find(|row| row.name == device.name).map(|row| row.counts);
    devices.iter().map(of).collect()
}

/// Disks and loop devices have a queue of requests; what is built on other devices has none.
fn has_requests(layer: Option<&str>) -> bool {
    matches!(layer, None | Some("loop"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn partitions_and_volumes_stand_for_their_disks() {
        let directory = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let link = |path: &str, to: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(directory.path().join(to), path).unwrap();
        };
        let counts = "1 2 3 4 5 6 7 8 0 10 11";
        let rows = [("8 0", "sda"), ("8 1", "sda1"), ("8 16", "sdb"), ("252 0", "dm-0"), ("9 0", "md0")];
        put("proc/diskstats", &rows.map(|(number, name)| format!("{number} {name} {counts}\n")).concat());
        for (number, directory) in
            [("8:0", "sda"), ("8:1", "sda/sda1"), ("8:16", "sdb"), ("252:0", "virtual/dm-0"), ("9:0", "virtual/md0")]
        {
            put(&format!("sys/devices/{directory}/size"), "8\n");
            link(&format!("sys/dev/block/{number}"), &format!("sys/devices/{directory}"));
        }
        put("sys/devices/sda/sda1/partition", "1\n");
        put("sys/devices/virtual/dm-0/dm/uuid", "LVM-abc\n");
        put("sys/devices/virtual/md0/md/level", "raid0\n");
        link("sys/devices/virtual/dm-0/slaves/sda1", "sys/devices/sda/sda1");
        link("sys/devices/virtual/dm-0/slaves/sdb", "sys/devices/sdb");

        let root = Root::at(directory.path());
        let found = |names: &[&str]| -> Vec<String> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            resolve(&root, &names).unwrap().into_iter().map(|device| device.name).collect()
        };
        assert_eq!(found(&["sda1"]), ["sda"]);
        assert_eq!(found(&["dm-0", "sda", "sdb"]), ["sda", "sdb"]);
        assert_eq!(found(&["md0"]), ["md0"], "an array without members is better than nothing");
        let error = resolve(&root, &["sdz".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "there is no block device `sdz`");
    }
}
