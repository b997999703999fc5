//! What the system does in spans of 50 ms: short enough to say what happened while an operation was slow.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cgroup::Version;
use super::{KeptFiles, Quota, Root, Throttling, kernel, mounts, proc};
use model::record::Moment;

/// A moment is at least this long. Reading takes a fifth of a millisecond, four thousandths of that.
pub const MOMENT_NS: u64 = 50_000_000;
/// Most threads that are looked at, so that a load of thousands does not make a moment longer.
const MAX_THREADS: usize = 64;
/// After so many looks it is looked up again which groups have a quota, for it may be set at any time.
const LOOKS_PER_QUOTA: u32 = 20;

/// Counters at one instant; absent where they cannot be read.
#[derive(Debug, Clone, Default)]
struct Reading {
    devices: BTreeMap<String, proc::DiskCounts>,
    own_bytes: Option<u64>,
    waited_ns: BTreeMap<i32, u64>,
    throttled: Throttling,
    /// Time stolen from a CPU on average, and time of all CPUs without work.
    cpu: Option<(Option<u64>, Option<u64>)>,
    memory_stall_us: Option<u64>,
    retransmitted: Option<u64>,
}

/// Looks at the system again and again.
#[derive(Debug)]
pub struct MomentWatch {
    files: KeptFiles,
    root: Root,
    devices: Vec<String>,
    quota: Quota,
    /// The groups that have a quota, and how many looks ago that was found out.
    counting: Vec<(Version, PathBuf)>,
    looks: u32,
    ticks_per_second: Option<u64>,
    last: Option<(u64, Reading)>,
}

impl MomentWatch {
    /// Of these devices, by the kernel's names, and of this process.
    pub fn new(root: Root, devices: Vec<String>) -> Self {
        let quota = Quota::of(&root, &mounts::all(&root), "self");
        let ticks_per_second = kernel::ticks_per_second();
        Self {
            files: KeptFiles::new(root.clone()),
            root,
            devices,
            quota,
            counting: Vec::new(),
            looks: 0,
            ticks_per_second,
            last: None,
        }
    }

    /// When it looked last, on the caller's clock.
    pub fn looked_at_ns(&self) -> Option<u64> {
        self.last.as_ref().map(|(at_ns, _)| *at_ns)
    }

    /// Looks at `now_ns` on the caller's clock. Gives what happened since it looked last, but nothing the first time. `threads` are those of the load by
    /// the kernel's numbers, `overslept_ns` is how much later than it wished the caller woke since then.
    pub fn look(&mut self, now_ns: u64, threads: &[i32], overslept_ns: u64) -> Option<Moment> {
        let reading = self.read(threads);
        let (last_ns, before) = self.last.replace((now_ns, reading))?;
        let (_, now) = self.last.as_ref()?;
        let length_ns = now_ns.checked_sub(last_ns).filter(|ns| *ns > 0)?;
        Some(Moment { overslept_us: overslept_ns / 1_000, ..now.since(&before, length_ns) })
    }

    fn read(&mut self, threads: &[i32]) -> Reading {
        let Self { files, root, devices, quota, counting, looks, ticks_per_second, .. } = self;
        if *looks % LOOKS_PER_QUOTA == 0 {
            *counting = quota.counting(root);
        }
        *looks = looks.wrapping_add(1);
        files.begin_round();
        let mut text = |path: &str| files.text(path, |_| true).map(std::borrow::Cow::into_owned);
        let disks = if devices.is_empty() { None } else { text("/proc/diskstats") };
        let rows = disks.as_deref().into_iter().flat_map(proc::diskstats);
        let waited = threads.iter().take(MAX_THREADS).filter_map(|thread| {
            let time = proc::schedstat(&text(&format!("/proc/self/task/{thread}/schedstat"))?)?;
            Some((*thread, time.waiting_ns))
        });
        Reading {
            waited_ns: waited.collect(),
            devices: rows
                .filter(|row| devices.iter().any(|name| name == row.name))
                .map(|row| (row.name.to_owned(), row.counts))
                .collect(),
            own_bytes: text("/proc/self/io").and_then(|text| {
                let io = proc::process_io(&text)?;
                io.read_bytes.checked_add(io.write_bytes)
            }),
            throttled: Throttling::read(counting, |path: &Path| text(path.to_str()?)),
            cpu: ticks_per_second.and_then(|ticks| {
                let text = text("/proc/stat")?;
                let cpu = proc::host_cpu(&text, ticks)?;
                Some((cpu.steal_ns.map(|ns| ns / proc::cpus(&text).max(1)), cpu.idle_ns))
            }),
            memory_stall_us: text("/proc/pressure/memory").and_then(|text| stalled_us(&text)),
            retransmitted: text("/proc/net/snmp").and_then(|text| retransmitted(&text)),
        }
    }
}

impl Reading {
    fn since(&self, before: &Self, length_ns: u64) -> Moment {
        let difference = |now: Option<u64>, before: Option<u64>| now?.checked_sub(before?);
        // A device that came or went meanwhile leaves nothing to compare.
        let devices: Option<Vec<_>> = self
            .devices
            .iter()
            .map(|(name, now)| {
                now.since(before.devices.get(name)?, name, length_ns).map(|stats| (stats, now.in_flight()))
            })
            .collect();
        let devices = devices.filter(|devices| !devices.is_empty() && devices.len() == before.devices.len());
        let sum = |of: fn(&(model::record::DeviceStats, u64)) -> Option<u64>| -> Option<u64> {
            devices.as_ref()?.iter().map(of).sum()
        };
        let bytes = sum(|(device, _)| device.read_bytes.checked_add(device.write_bytes));
        let own_bytes = difference(self.own_bytes, before.own_bytes);
        let waited = self.waited_ns.iter().map(|(thread, now)| now.checked_sub(*before.waited_ns.get(thread)?));
        let waited_ns: Option<Vec<u64>> = waited.collect();
        let cpu = self.cpu.zip(before.cpu);
        Moment {
            length_us: length_ns / 1_000,
            overslept_us: 0,
            completed: sum(|(device, _)| device.reads.checked_add(device.writes)),
            flushes: sum(|(device, _)| device.flushes),
            device_us: sum(|(device, _)| Some(device.read_time_ns.checked_add(device.write_time_ns)? / 1_000)),
            in_flight: sum(|(_, in_flight)| Some(*in_flight)),
            written_bytes: sum(|(device, _)| Some(device.write_bytes)),
            // Devices above each other count the same bytes, so that only one can be held against our own.
            others_bytes: bytes
                .zip(own_bytes)
                .filter(|_| self.devices.len() == 1)
                .map(|(all, own)| all.saturating_sub(own)),
            waited_us: waited_ns.and_then(|all| all.into_iter().max()).map(|ns| ns / 1_000),
            throttled_us: self.throttled.since(&before.throttled).map(|held| held.throttled_ns / 1_000),
            stolen_us: cpu.and_then(|(now, before)| difference(now.0, before.0)).map(|ns| ns / 1_000),
            idle_us: cpu.and_then(|(now, before)| difference(now.1, before.1)).map(|ns| ns / 1_000),
            memory_stall_us: difference(self.memory_stall_us, before.memory_stall_us),
            retransmitted: difference(self.retransmitted, before.retransmitted),
        }
    }
}

/// The total of the line `some` of a file of `/proc/pressure`, in microseconds.
fn stalled_us(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// `RetransSegs` of `/proc/net/snmp`, which has a line of names above each line of values.
fn retransmitted(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_ascii_whitespace().position(|name| name == "RetransSegs")?;
    values.split_ascii_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn write(place: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = place.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    const SNMP: &str = "Ip: Forwarding\nIp: 1\nTcp: InSegs RetransSegs OutRsts\n";

    #[test]
    fn a_moment_has_what_happened_between_two_looks() {
        let place = tempfile::tempdir().unwrap();
        write(
            place.path(),
            &[
                ("proc/stat", "cpu  10 0 10 100 0 0 0 4 0 0\ncpu0 1\ncpu1 1\n"),
                ("proc/self/io", "read_bytes: 0\nwrite_bytes: 0\n"),
                ("proc/diskstats", "254 0 vda 10 0 16 10 0 0 0 0 3 1 1 0 0 0 0 7 9\n 8 0 sdb 9 0 0 0 0 0 0 0 0 0 0\n"),
                ("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=100\nfull total=9\n"),
                ("proc/net/snmp", &format!("{SNMP}Tcp: 9 4 0\n")),
                ("proc/self/task/17/schedstat", "5 1000000 3\n"),
                ("proc/self/task/18/schedstat", "5 0 3\n"),
            ],
        );
        let mut watch = MomentWatch::new(Root::at(place.path()), vec!["vda".to_owned()]);
        assert_eq!((watch.look(1_000, &[17, 18], 0), watch.looked_at_ns()), (None, Some(1_000)));
        write(
            place.path(),
            &[
                ("proc/stat", "cpu  10 0 10 102 0 0 0 6 0 0\ncpu0 1\ncpu1 1\n"),
                ("proc/self/io", "read_bytes: 1024\nwrite_bytes: 512\n"),
                ("proc/diskstats", "254 0 vda 14 0 24 19 1 0 8 2 32 1 1 0 0 0 0 8 9\n 8 0 sdb 9 0 0 0 0 0 0 0 0 0 0\n"),
                ("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=160\nfull total=9\n"),
                ("proc/net/snmp", &format!("{SNMP}Tcp: 9 5 0\n")),
                ("proc/self/task/17/schedstat", "5 4000000 3\n"),
                ("proc/self/task/18/schedstat", "5 500000 3\n"),
            ],
        );
        let ticks = |count: u64| Some(count * 1_000_000 / kernel::ticks_per_second().unwrap());
        let expected = Moment {
            length_us: 60_000,
            overslept_us: 9_000,
            completed: Some(5),
            flushes: Some(1),
            device_us: Some(11_000),
            in_flight: Some(32),
            written_bytes: Some(8 * 512),
            others_bytes: Some(16 * 512 - 1_536),
            waited_us: Some(3_000),
            throttled_us: None,
            stolen_us: ticks(1),
            idle_us: ticks(2),
            memory_stall_us: Some(60),
            retransmitted: Some(1),
        };
        assert_eq!(watch.look(60_001_000, &[17, 18], 9_000_000), Some(expected));
    }

    #[test]
    fn what_is_hidden_or_has_gone_is_unknown_and_no_device_is_none() {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), &[("proc/self/task/17/schedstat", "5 1000000 3\n")]);
        let mut watch = MomentWatch::new(Root::at(place.path()), vec!["vda".to_owned()]);
        watch.look(0, &[17], 0);
        write(place.path(), &[("proc/diskstats", "254 0 vda 10 0 16 10 0 0 0 0 3 1 1\n")]);
        write(place.path(), &[("proc/self/task/17/schedstat", "gone")]);
        let moment = watch.look(50_000_000, &[17], 0).unwrap();
        assert_eq!(moment, Moment { length_us: 50_000, ..Moment::default() });
        assert_eq!(watch.look(50_000_000, &[17], 0), None, "no time passed");
    }

    #[test]
    fn this_kernels_files_are_understood() {
        let root = Root::default();
        for (path, read) in [
            ("/proc/pressure/memory", stalled_us as fn(&str) -> Option<u64>),
            ("/proc/net/snmp", retransmitted as fn(&str) -> Option<u64>),
        ] {
            assert!(root.text(path).is_none_or(|text| read(&text).is_some()), "{path}");
        }
    }
}
