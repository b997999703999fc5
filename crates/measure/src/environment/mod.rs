//! Facts about the machine and about the storage below a path, as an ordinary user may read them.

mod host;
mod virtualization;

use std::fs::File;
use std::path::{Path, PathBuf};

use super::os::mounts::{self, Mount, ResolvedPath};
use super::os::{Root, block, cgroup, group_limits, proc, space};
use model::record::{Cache, Environment, FileSystem, NumaNode, Processor, Topology};
use model::units::Bytes;

/// Facts about this machine and, with a path, about the file system and devices below it. A path that does not exist
/// yet stands for its nearest existing ancestor. Never fails: what cannot be read is absent.
pub fn capture(path: Option<&Path>) -> Environment {
    capture_under(&Root::default(), path)
}

/// [`capture`] with the kernel's files, and `path`, below another root. Architecture and number of processors are still
/// this machine's.
pub fn capture_under(root: &Root, path: Option<&Path>) -> Environment {
    let mounts = mounts::all(root);
    let place = path.and_then(|path| ResolvedPath::nearest(root, path));
    let meminfo = root.text("/proc/meminfo").unwrap_or_default();
    let cpuinfo = root.text("/proc/cpuinfo").unwrap_or_default();
    let devices = place.as_ref().map(|place| block::below(root, &mounts, place)).unwrap_or_default();
    Environment {
        hostname: root.value("/proc/sys/kernel/hostname"),
        os: host::os(root),
        kernel: root.value("/proc/sys/kernel/osrelease"),
        machine: host::machine(root),
        architecture: Some(std::env::consts::ARCH.to_owned()),
        cpu_model: host::cpu_model(&cpuinfo).or_else(|| root.value("/proc/device-tree/model")),
        cpus: std::thread::available_parallelism().ok().and_then(|cpus| u32::try_from(cpus.get()).ok()),
        topology: self::topology(root),
        cpu_governor: root.value("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory_bytes: proc::kib_field_bytes(&meminfo, "MemTotal"),
        memory_available_bytes: proc::kib_field_bytes(&meminfo, "MemAvailable"),
        memory_limit_bytes: cgroup::memory_limit_bytes(root, &mounts),
        transparent_huge_pages: root
            .value("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| block::chosen(&text)),
        load_average_1m: root.text("/proc/loadavg").and_then(|text| host::load_average_1m(&text)),
        io_pressure_percent: root.text("/proc/pressure/io").and_then(|text| host::pressure_percent(&text)),
        clocksource: root.value("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        virtualization: virtualization::detect(root, &cpuinfo),
        file_system: place.as_ref().and_then(|place| file_system(root, &mounts, place)),
        group_limits: group_limits::all(root, &mounts, &devices),
        devices,
    }
}

/// Memory that can be taken without driving somebody out of it: what is free or a limit on this process leaves.
pub fn available_memory() -> Option<Bytes> {
    let Environment { memory_available_bytes, memory_limit_bytes, .. } = capture(None);
    memory_available_bytes.into_iter().chain(memory_limit_bytes).min().map(Bytes)
}

/// Kernel names of the devices below `path`, the one that its file system is mounted from first and the disks below it
/// after: the devices to watch in `/proc/diskstats`. Empty where there are none, as on a network file system.
pub fn devices_below(path: &Path) -> Vec<String> {
    let root = Root::default();
    let names = ResolvedPath::nearest(&root, path).map(|place| block::names_below(&root, &mounts::all(&root), &place));
    names.unwrap_or_default()
}

/// Those below all `paths`, each once.
pub fn devices_below_all(paths: &[PathBuf]) -> Vec<String> {
    let mut devices = Vec::new();
    for device in paths.iter().flat_map(|path| devices_below(path)) {
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    devices
}

fn file_system(root: &Root, mounts: &[Mount], place: &ResolvedPath) -> Option<FileSystem> {
    if place.block_device.is_some() {
        return None;
    }
    let mount = mounts::holding(mounts, &place.path, place.device)?;
    let space = space(&root.path(&place.path));
    Some(FileSystem {
        kind: mount.kind.clone(),
        mount_point: mount.mount_point.to_string_lossy().into_owned(),
        source: mount.source.clone(),
        options: mount.options.clone(),
        size_bytes: space.map(|space| space.size_bytes),
        available_bytes: space.map(|space| space.available_bytes),
        writes_in_place: directory_of(root, &place.path).and_then(|directory| writes_in_place(&mount.kind, &directory)),
    })
}

/// The nearest directory, whose flags a new file takes over.
fn directory_of(root: &Root, path: &Path) -> Option<PathBuf> {
    path.ancestors().map(|path| root.path(path)).find(|path| path.is_dir())
}

/// Whether new files in `directory` are written in place; known of file systems that else write every change to a new place.
fn writes_in_place(kind: &str, directory: &Path) -> Option<bool> {
    if !matches!(kind, "btrfs" | "bcachefs") {
        return None;
    }
    // A look that changes nothing.
    let opened = File::open(directory).ok()?;
    Some(rustix::fs::ioctl_getflags(opened).ok()?.contains(rustix::fs::IFlags::NOCOW))
}

const PROCESSORS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// What the kernel reports; `None` if it lists no processor.
fn topology(root: &Root) -> Option<Topology> {
    let online = list(&root.value(format!("{PROCESSORS}/online"))?);
    let first = *online.first()?;
    let processor = |number: &u32| {
        let part = |file: &str| root.number(format!("{PROCESSORS}/cpu{number}/topology/{file}"));
        Processor { number: *number, core: part("core_id"), socket: part("physical_package_id") }
    };
    let mut caches: Vec<Cache> = root
        .names(format!("{PROCESSORS}/cpu{first}/cache"))
        .iter()
        .filter(|name| name.starts_with("index"))
        .filter_map(|name| cache(root, &format!("{PROCESSORS}/cpu{first}/cache/{name}")))
        .collect();
    caches.sort_by_key(|cache| cache.level);
    let mut nodes: Vec<NumaNode> = root
        .names(NODES)
        .iter()
        .filter_map(|name| name.strip_prefix("node")?.parse().ok())
        .map(|number| node(root, number))
        .collect();
    nodes.sort_by_key(|node| node.number);
    Some(Topology { processors: online.iter().map(processor).collect(), nodes, caches })
}

/// A cache that holds data.
fn cache(root: &Root, directory: &str) -> Option<Cache> {
    let kind = root.value(format!("{directory}/type"))?;
    if kind == "Instruction" {
        return None;
    }
    let shared = root.value(format!("{directory}/shared_cpu_list")).map(|text| list(&text).len());
    Some(Cache {
        level: root.number(format!("{directory}/level"))?,
        bytes: size(&root.value(format!("{directory}/size"))?)?,
        shared_by: shared.and_then(|shared| u32::try_from(shared).ok()).filter(|shared| *shared > 0),
    })
}

fn node(root: &Root, number: u32) -> NumaNode {
    let directory = format!("{NODES}/node{number}");
    let memory = root.text(format!("{directory}/meminfo")).and_then(|text| {
        let line = text.lines().find_map(|line| line.split_once("MemTotal:"))?.1.trim();
        line.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let distances = root.value(format!("{directory}/distance")).unwrap_or_default();
    NumaNode {
        number,
        processors: root.value(format!("{directory}/cpulist")).map(|text| list(&text)).unwrap_or_default(),
        memory_bytes: memory,
        distances: distances.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect(),
    }
}

/// Most processors that a list is believed to have: Linux knows fewer.
const MAX_PROCESSORS: usize = 16_384;

/// The kernel's way to write a list of numbers: `0-3,8,10-11`. What is no number is passed over.
fn list(text: &str) -> Vec<u32> {
    let range = |word: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().take(MAX_PROCESSORS).collect()
}

/// `48K` or `32768K`.
fn size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    const FILES: [&str; 29] = [
        "proc/sys/kernel/hostname",
        "proc/sys/kernel/osrelease",
        "etc/os-release",
        "proc/cpuinfo",
        "proc/meminfo",
        "proc/loadavg",
        "proc/pressure/io",
        "proc/self/cgroup",
        "proc/self/mountinfo",
        "proc/diskstats",
        "proc/device-tree/model",
        "run/systemd/container",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "sys/devices/system/clocksource/clocksource0/available_clocksource",
        "sys/kernel/mm/transparent_hugepage/enabled",
        "sys/class/dmi/id/sys_vendor",
        "sys/class/dmi/id/product_name",
        "sys/hypervisor/type",
        "sys/dev/block/8:0/size",
        "sys/dev/block/8:0/partition",
        "sys/dev/block/8:0/dm/uuid",
        "sys/dev/block/8:0/queue/scheduler",
        "sys/dev/block/8:0/loop/backing_file",
        "sys/dev/block/8:0/md/degraded",
        "sys/fs/cgroup/memory.max",
        "sys/fs/cgroup/io.max",
        "sys/fs/cgroup/cpu.max",
        "sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];

    fn write(directory: &Path, path: &str, bytes: &[u8]) {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn an_empty_machine_tells_only_what_needs_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let found = capture_under(&Root::at(directory.path()), Some(Path::new("/data")));
        let known =
            Environment { architecture: found.architecture.clone(), cpus: found.cpus, ..Environment::default() };
        assert_eq!(found, known);
    }

    #[test]
    fn all_facts_of_a_machine_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| write(directory.path(), path, text.as_bytes());
        put("proc/sys/kernel/hostname", "db1\n");
        put("proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
        put("etc/os-release", "NAME=Ubuntu\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n");
        put("proc/cpuinfo", "processor : 0\nmodel name : Fast CPU @ 3 GHz\nflags : fpu hypervisor\n");
        put("proc/meminfo", "MemTotal: 2048 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\n");
        put("proc/loadavg", "0.50 0.40 0.30 1/88 8934\n");
        put("proc/pressure/io", "some avg10=1.45 avg60=0.72 avg300=0.99 total=1\nfull avg10=0.00 total=0\n");
        put("proc/self/cgroup", "0::/app\n");
        put(
            "proc/self/mountinfo",
            "1 0 8:0 / / rw - ext4 /dev/sda rw\n2 1 0:9 / /sys/fs/cgroup rw - cgroup2 none rw\n",
        );
        put("sys/fs/cgroup/app/memory.max", "1048576\n");
        put("sys/fs/cgroup/app/io.max", "8:0 rbps=max wbps=max riops=300 wiops=max\n");
        put("sys/dev/block/8:0/queue/scheduler", "[none]\n");
        put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
        put("sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock\n");
        put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        put("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        put("sys/class/dmi/id/product_name", "m7i.large\n");

        let found = capture_under(&Root::at(directory.path()), Some(Path::new("/u01/new")));
        assert_eq!(found.hostname.as_deref(), Some("db1"));
        assert_eq!(found.os.as_deref(), Some("Ubuntu 24.04 LTS"));
        assert_eq!(found.kernel.as_deref(), Some("6.8.0-45-generic"));
        assert_eq!(found.machine.as_deref(), Some("Amazon EC2 m7i.large"));
        assert_eq!(found.cpu_model.as_deref(), Some("Fast CPU @ 3 GHz"));
        assert_eq!(found.cpu_governor.as_deref(), Some("performance"));
        assert_eq!((found.memory_bytes, found.memory_available_bytes), (Some(2 << 20), Some(1 << 20)));
        assert_eq!(found.memory_limit_bytes, Some(1 << 20));
        assert_eq!(found.transparent_huge_pages.as_deref(), Some("madvise"));
        assert_eq!((found.load_average_1m, found.io_pressure_percent), (Some(0.5), Some(1.45)));
        assert_eq!(found.clocksource.as_deref(), Some("kvm-clock"));
        assert_eq!(found.virtualization.as_deref(), Some("amazon nitro"));
        let file_system = found.file_system.unwrap();
        assert_eq!((file_system.kind.as_str(), file_system.mount_point.as_str()), ("ext4", "/"));
        assert!(file_system.size_bytes.is_some());
        assert_eq!(found.devices.len(), 1);
        assert_eq!(found.devices[0].scheduler.as_deref(), Some("none"));
        let limits: Vec<String> = found.group_limits.iter().map(|limit| limit.words()).collect();
        let device = &found.devices[0].name;
        assert_eq!(
            limits,
            [
                format!("`io.max` of `/app` caps {device} at 300 reads/s"),
                "`memory.max` of `/app` leaves 1 MiB of memory".into()
            ]
        );
    }

    #[test]
    fn this_machine_can_be_captured() {
        let directory = tempfile::tempdir().unwrap();
        let found = capture(Some(&directory.path().join("not/there/yet")));
        assert!(found.cpus.is_some_and(|cpus| cpus > 0));
        assert!(found.kernel.is_some());
        let names: Vec<String> = found.devices.into_iter().map(|device| device.name).collect();
        assert_eq!(devices_below(directory.path()), names);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn no_contents_of_the_kernels_files_make_it_panic(
            contents in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..80),
                    "[0-9]{1,25}\n".prop_map(String::into_bytes),
                    Just(b"1 0 8:0 / / rw - ext4 /dev/sda rw\n".to_vec()),
                    Just(b"0::/../..\n4:memory:/a/../b\n".to_vec()),
                    Just(b"/\n".to_vec()),
                ],
                FILES.len(),
            ),
        ) {
            let directory = tempfile::tempdir().unwrap();
            for (path, bytes) in FILES.iter().zip(&contents) {
                write(directory.path(), path, bytes);
            }
            let _ = capture_under(&Root::at(directory.path()), Some(Path::new("/data/x")));
        }
    }

    #[test]
    fn threads_caches_and_nodes_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let put = |path: &str, text: &str| {
            let path = root.path(format!("/sys/devices/system/{path}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(topology(&root), None);
        put("cpu/online", "0-3\n");
        for (number, core) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
            put(&format!("cpu/cpu{number}/topology/core_id"), &format!("{core}\n"));
            put(&format!("cpu/cpu{number}/topology/physical_package_id"), "0\n");
        }
        for (index, level, kind, bytes) in
            [(0, 1, "Data", "48K"), (1, 1, "Instruction", "32K"), (3, 3, "Unified", "32M")]
        {
            put(&format!("cpu/cpu0/cache/index{index}/level"), &format!("{level}\n"));
            put(&format!("cpu/cpu0/cache/index{index}/type"), &format!("{kind}\n"));
            put(&format!("cpu/cpu0/cache/index{index}/size"), &format!("{bytes}\n"));
        }
        put("cpu/cpu0/cache/index3/shared_cpu_list", "0-3\n");
        put("node/node0/cpulist", "0,2\n");
        put("node/node0/distance", "10 21\n");
        put("node/node0/meminfo", "Node 0 MemTotal:       2048 kB\nNode 0 MemFree: 1 kB\n");
        put("node/node1/cpulist", "1,3\n");
        let found = topology(&root).unwrap();
        assert_eq!(found.cores(), Some(2));
        let caches: Vec<_> = found.caches.iter().map(|cache| (cache.level, cache.bytes, cache.shared_by)).collect();
        assert_eq!(caches, [(1, 48 << 10, None), (3, 32 << 20, Some(4))]);
        let [first, second] = found.nodes.as_slice() else { panic!("{:?}", found.nodes) };
        assert_eq!((first.processors.as_slice(), first.memory_bytes), ([0, 2].as_slice(), Some(2 << 20)));
        assert_eq!(
            (first.distances.as_slice(), second.processors.as_slice()),
            ([10, 21].as_slice(), [1, 3].as_slice())
        );
    }

    proptest! {
        #[test]
        fn no_list_makes_it_panic_or_grow_without_end(text in "[0-9,-]{0,40}|.{0,40}") {
            prop_assert!(list(&text).len() <= MAX_PROCESSORS);
            let _ = size(&text);
        }
    }
}
