//! Reading of the counters in `/proc`, from text to numbers. What is malformed is unknown, never an error or a panic.

use model::record::{CpuTime, DeviceStats, ProcessIo, ThreadTime};

/// `/proc/diskstats` counts in sectors of 512 bytes whatever the device's own block size is.
pub const SECTOR_BYTES: u64 = 512;

/// The value of the first line `key: value`, trimmed.
pub fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// The number in the first line `key N`.
pub fn count(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The value of a line `key: N kB`, in bytes. The kernel writes kB for 1024 bytes.
pub fn kib_field_bytes(text: &str, key: &str) -> Option<u64> {
    let kib: u64 = field(text, key)?.strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// `/proc/self/io`.
pub fn process_io(text: &str) -> Option<ProcessIo> {
    Some(ProcessIo {
        read_bytes: field(text, "read_bytes")?.parse().ok()?,
        write_bytes: field(text, "write_bytes")?.parse().ok()?,
    })
}

/// What `/proc/PID/io` reports on reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessReads {
    /// Bytes asked for by calls such as `pread`, from page cache or device; sockets are not counted.
    pub called_bytes: u64,
    /// Bytes that were fetched from storage for the process, read-ahead included.
    pub storage_bytes: u64,
}

/// The reading in `/proc/PID/io`. That of a parent holds what children did that have ended and been waited for.
pub fn process_reads(text: &str) -> Option<ProcessReads> {
    Some(ProcessReads {
        called_bytes: field(text, "rchar")?.parse().ok()?,
        storage_bytes: field(text, "read_bytes")?.parse().ok()?,
    })
}

/// What `/proc/PID/stat` reports on a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// Its parent.
    pub parent: u32,
    /// When it began, in ticks since the machine was booted.
    pub start_ticks: u64,
    /// In user code, its own and that of children that have ended and been waited for.
    pub user_ticks: u64,
    /// In the kernel, likewise.
    pub system_ticks: u64,
}

/// `/proc/PID/stat`. The name of the program stands in parentheses and may itself hold any.
pub fn process_stat(text: &str) -> Option<ProcessStat> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace().skip(1);
    let parent = words.next()?.parse().ok()?;
    // `utime` is field 14, `starttime` field 22; the parent is field 4.
    let mut words = words.skip(9);
    let mut ticks = || words.next()?.parse::<u64>().ok();
    let [user, system, user_of_children, system_of_children] = [ticks()?, ticks()?, ticks()?, ticks()?];
    Some(ProcessStat {
        parent,
        start_ticks: words.nth(4)?.parse().ok()?,
        user_ticks: user.checked_add(user_of_children)?,
        system_ticks: system.checked_add(system_of_children)?,
    })
}

/// What a `schedstat` says of a thread: running, and ready to run without a processor, which a quota's throttling is part of.
pub fn schedstat(text: &str) -> Option<ThreadTime> {
    let mut words = text.split_ascii_whitespace();
    Some(ThreadTime { running_ns: words.next()?.parse().ok()?, waiting_ns: words.next()?.parse().ok()? })
}

/// The machine-wide line of `/proc/stat`. Guest time is already part of user time there, so it is not added.
pub fn host_cpu(text: &str, ticks_per_second: u64) -> Option<CpuTime> {
    cpu_line(text, "cpu ", ticks_per_second)
}

/// The line of one processor in `/proc/stat`.
pub fn one_cpu(text: &str, number: u32, ticks_per_second: u64) -> Option<CpuTime> {
    cpu_line(text, &format!("cpu{number} "), ticks_per_second)
}

/// How many processors have a line in `/proc/stat`.
pub fn cpus(text: &str) -> u64 {
    let is_one =
        |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    text.lines().filter(is_one).count() as u64
}

fn cpu_line(text: &str, name: &str, ticks_per_second: u64) -> Option<CpuTime> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let nanos = |ticks: u64| {
        let nanos = (u128::from(ticks) * 1_000_000_000).checked_div(u128::from(ticks_per_second))?;
        u64::try_from(nanos).ok()
    };
    let [user, nice, system, idle, rest @ ..] = ticks.as_slice() else { return None };
    let at = |index: usize| rest.get(index).copied();
    let interrupts = at(1).unwrap_or(0).checked_add(at(2).unwrap_or(0))?;
    Some(CpuTime {
        user_ns: nanos(user.checked_add(*nice)?)?,
        system_ns: nanos(system.checked_add(interrupts)?)?,
        iowait_ns: at(0).and_then(nanos),
        steal_ns: at(3).and_then(nanos),
        idle_ns: nanos(*idle),
    })
}

/// Processor time between two readings. The kernel documents that `iowait` may decrease; it is then unknown alone.
pub fn cpu_between(earlier: &CpuTime, later: &CpuTime) -> Option<CpuTime> {
    let optional = |earlier: Option<u64>, later: Option<u64>| later?.checked_sub(earlier?);
    Some(CpuTime {
        user_ns: later.user_ns.checked_sub(earlier.user_ns)?,
        system_ns: later.system_ns.checked_sub(earlier.system_ns)?,
        iowait_ns: optional(earlier.iowait_ns, later.iowait_ns),
        steal_ns: optional(earlier.steal_ns, later.steal_ns),
        idle_ns: optional(earlier.idle_ns, later.idle_ns),
    })
}

/// Storage I/O between two readings.
pub fn io_between(earlier: &ProcessIo, later: &ProcessIo) -> Option<ProcessIo> {
    Some(ProcessIo {
        read_bytes: later.read_bytes.checked_sub(earlier.read_bytes)?,
        write_bytes: later.write_bytes.checked_sub(earlier.write_bytes)?,
    })
}

/// Major and minor number of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceNumber {
    /// The driver; 0 for a file system without a device of its own.
    pub major: u32,
    /// The device of that driver.
    pub minor: u32,
}

impl std::str::FromStr for DeviceNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once(':').ok_or(())?;
        Ok(Self { major: major.parse().map_err(drop)?, minor: minor.parse().map_err(drop)? })
    }
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// One line of `/proc/diskstats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRow<'a> {
    /// Its numbers.
    pub number: DeviceNumber,
    /// Its name, as the kernel has it.
    pub name: &'a str,
    /// What it has counted since it was attached.
    pub counts: DiskCounts,
}

/// Counts of one device since it appeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskCounts {
    reads: u64,
    read_sectors: u64,
    read_ms: u64,
    writes: u64,
    write_sectors: u64,
    write_ms: u64,
    busy_ms: u64,
    weighted_ms: u64,
    flushes: Option<u64>,
    in_flight: u64,
}

/// Rows of `/proc/diskstats` with 14 columns, 18 (discards, Linux 4.18) or 20 (flushes, Linux 5.5); others are passed
/// over.
pub fn diskstats(text: &str) -> impl Iterator<Item = DiskRow<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let number = DeviceNumber { major: words.next()?.parse().ok()?, minor: words.next()?.parse().ok()? };
        let name = words.next()?;
        let counts: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let [
            reads,
            _,
            read_sectors,
            read_ms,
            writes,
            _,
            write_sectors,
            write_ms,
            in_flight,
            busy_ms,
            weighted_ms,
            rest @ ..,
        ] = counts.as_slice()
        else {
            return None;
        };
        let counts = DiskCounts {
            reads: *reads,
            read_sectors: *read_sectors,
            read_ms: *read_ms,
            writes: *writes,
            write_sectors: *write_sectors,
            write_ms: *write_ms,
            busy_ms: *busy_ms,
            weighted_ms: *weighted_ms,
            flushes: rest.get(4).copied(),
            in_flight: *in_flight,
        };
        Some(DiskRow { number, name, counts })
    })
}

impl DiskCounts {
    /// Requests that it holds.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// What happened since `earlier`; `None` if a count went backwards, as when a device was replaced by another of the
    /// same name.
    pub fn since(&self, earlier: &Self, name: &str, elapsed_ns: u64) -> Option<DeviceStats> {
        let bytes = |later: u64, earlier: u64| later.checked_sub(earlier)?.checked_mul(SECTOR_BYTES);
        let nanos = |later: u64, earlier: u64| wrapping_ms(later, earlier)?.checked_mul(1_000_000);
        Some(DeviceStats {
            name: name.to_owned(),
            elapsed_ns,
            reads: self.reads.checked_sub(earlier.reads)?,
            read_bytes: bytes(self.read_sectors, earlier.read_sectors)?,
            read_time_ns: nanos(self.read_ms, earlier.read_ms)?,
            writes: self.writes.checked_sub(earlier.writes)?,
            write_bytes: bytes(self.write_sectors, earlier.write_sectors)?,
            write_time_ns: nanos(self.write_ms, earlier.write_ms)?,
            flushes: self.flushes.and_then(|later| later.checked_sub(earlier.flushes?)),
            busy_ns: nanos(self.busy_ms, earlier.busy_ms)?,
            weighted_ns: nanos(self.weighted_ms, earlier.weighted_ms)?,
        })
    }
}

/// Milliseconds between two readings of a counter that the kernel prints as 32 bits. With a hundred requests in flight
/// the weighted time wraps twice a day, so a wrap must not cost the whole reading. A step back of less than half the
/// range is no wrap and is refused.
fn wrapping_ms(later: u64, earlier: u64) -> Option<u64> {
    const RANGE: u64 = 1 << 32;
    later.checked_sub(earlier).or_else(|| {
        let wrapped = (earlier < RANGE).then(|| later + RANGE - earlier)?;
        (wrapped < RANGE / 2).then_some(wrapped)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OLD: &str = "   8   0 sda 100 5 2000 30 50 6 400 70 0 80 100";
    const DISCARDS: &str = " 8 0 sda 110 5 2016 40 60 6 480 90 1 95 130 1 2 3 4";
    const FLUSHES: &str = "259 0 nvme0n1 7 0 56 1 9 0 72 2 0 3 3 0 0 0 0 11 12";

    fn counts(line: &str) -> DiskCounts {
        diskstats(line).next().unwrap().counts
    }

    #[test]
    fn reads_the_diskstats_of_every_kernel() {
        let text = [OLD, DISCARDS, FLUSHES, "8 1 sda1 4 3 2 1", "nonsense"].join("\n");
        let rows: Vec<_> = diskstats(&text).collect();
        assert_eq!(rows.iter().map(|row| row.name).collect::<Vec<_>>(), ["sda", "sda", "nvme0n1"]);
        assert_eq!(rows[2].number, DeviceNumber { major: 259, minor: 0 });
        assert_eq!(rows.iter().map(|row| row.counts.flushes).collect::<Vec<_>>(), [None, None, Some(11)]);
    }

    #[test]
    fn a_device_difference_is_in_bytes_and_nanoseconds() {
        assert_eq!(
            counts(DISCARDS).since(&counts(OLD), "sda", 1_000),
            Some(DeviceStats {
                name: "sda".to_owned(),
                elapsed_ns: 1_000,
                reads: 10,
                read_bytes: 16 * 512,
                read_time_ns: 10_000_000,
                writes: 10,
                write_bytes: 80 * 512,
                write_time_ns: 20_000_000,
                flushes: None,
                busy_ns: 15_000_000,
                weighted_ns: 30_000_000,
            })
        );
    }

    #[test]
    fn a_device_that_counts_backwards_has_no_difference() {
        assert_eq!(counts(OLD).since(&counts(DISCARDS), "sda", 1), None);
    }

    #[test]
    fn a_32_bit_time_that_wraps_goes_on() {
        let before = counts("8 0 sda 1 0 8 4294967290 0 0 0 0 0 0 4294967000");
        let after = counts("8 0 sda 2 0 16 4 0 0 0 0 0 0 200");
        let stats = after.since(&before, "sda", 1).unwrap();
        assert_eq!(stats.read_time_ns, 10_000_000);
        assert_eq!(stats.weighted_ns, 496_000_000);
    }

    #[test]
    fn a_time_that_only_stepped_back_is_refused() {
        assert_eq!(wrapping_ms(995, 1_000), None);
        assert_eq!(wrapping_ms(0, u64::MAX), None);
    }

    #[test]
    fn host_processor_time_adds_nice_and_interrupts_but_not_guests() {
        let stat = "cpu  100 10 50 1000 20 3 4 5 60 0\ncpu0 1 2 3 4\nintr 5\n";
        assert_eq!(
            host_cpu(stat, 100),
            Some(CpuTime {
                user_ns: 1_100_000_000,
                system_ns: 570_000_000,
                iowait_ns: Some(200_000_000),
                steal_ns: Some(50_000_000),
                idle_ns: Some(10_000_000_000),
            })
        );
    }

    #[test]
    fn an_old_kernel_leaves_the_later_columns_unknown() {
        let time = host_cpu("cpu  100 0 50 1000\n", 100).unwrap();
        assert_eq!((time.iowait_ns, time.steal_ns, time.idle_ns), (None, None, Some(10_000_000_000)));
        assert_eq!(host_cpu("cpu  100 0 50\n", 100), None);
        assert_eq!(host_cpu("cpu  100 0 50 1000\n", 0), None);
    }

    #[test]
    fn io_wait_that_falls_is_unknown_and_takes_nothing_else_with_it() {
        let earlier = host_cpu("cpu 100 0 50 1000 30 0 0 0\n", 100).unwrap();
        let later = host_cpu("cpu 150 0 60 1100 29 0 0 2\n", 100).unwrap();
        let between = cpu_between(&earlier, &later).unwrap();
        assert_eq!(between.user_ns, 500_000_000);
        assert_eq!(between.iowait_ns, None);
        assert_eq!(between.steal_ns, Some(20_000_000));
        assert_eq!(cpu_between(&later, &earlier), None);
    }

    #[test]
    fn process_io_is_what_reached_storage_not_what_was_asked_for() {
        let text =
            "rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\nread_bytes: 4096\nwrite_bytes: 512\ncancelled_write_bytes: 0\n";
        assert_eq!(process_io(text), Some(ProcessIo { read_bytes: 4096, write_bytes: 512 }));
        assert_eq!(process_io("rchar: 9\n"), None);
        let earlier = ProcessIo { read_bytes: 1, write_bytes: 9 };
        let later = ProcessIo { read_bytes: 2, write_bytes: 3 };
        assert_eq!(io_between(&earlier, &later), None);
    }

    #[test]
    fn kernel_kilobytes_are_1024_bytes() {
        let status = "Name:\tx\nVmPeak:\t  99 kB\nVmHWM:\t  12 kB\n";
        assert_eq!(kib_field_bytes(status, "VmHWM"), Some(12 << 10));
        assert_eq!(kib_field_bytes(status, "VmRSS"), None);
        assert_eq!(kib_field_bytes("VmHWM: 18446744073709551615 kB", "VmHWM"), None);
    }

    /// Text near enough to the kernel's to get past the first checks.
    fn almost_a_table() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            any::<u64>().prop_map(|n| n.to_string()),
            Just("cpu".to_owned()),
            Just("read_bytes:".to_owned()),
            Just("VmHWM:".to_owned()),
            Just("kB".to_owned()),
            "\\PC{0,4}",
        ];
        let line = proptest::collection::vec(word, 0..24).prop_map(|words| words.join(" "));
        proptest::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in prop_oneof![almost_a_table(), "(?s).{0,200}"], ticks in any::<u64>()) {
            let _ = host_cpu(&text, ticks);
            let _ = process_io(&text);
            let _ = kib_field_bytes(&text, "VmHWM");
            let rows: Vec<_> = diskstats(&text).collect();
            for row in &rows {
                for other in &rows {
                    let _ = row.counts.since(&other.counts, row.name, 1);
                }
            }
        }

        #[test]
        fn a_wrapped_time_is_the_time_that_passed(start in 0u64..1 << 32, passed in 0u64..1 << 31) {
            prop_assert_eq!(wrapping_ms((start + passed) % (1 << 32), start), Some(passed));
        }
    }

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let text =
            "812 (a) S 1 (b) S 77 812 812 0 -1 4194624 1309 5 0 0 30 4 2 1 20 0 1 0 5521 231 9 18446744073709551615";
        let stat = ProcessStat { parent: 77, start_ticks: 5_521, user_ticks: 32, system_ticks: 5 };
        assert_eq!(process_stat(text), Some(stat));
        assert_eq!(process_stat("812 (postgres) S 77 812"), None);
        assert_eq!(process_stat(""), None);
        let own = process_stat(&std::fs::read_to_string("/proc/self/stat").unwrap()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
    }

    #[test]
    fn reading_is_reported_only_where_all_of_it_is() {
        let reads = ProcessReads { called_bytes: 9_000, storage_bytes: 8_192 };
        assert_eq!(process_reads("rchar: 9000\nwchar: 1\nread_bytes: 8192\nwrite_bytes: 0\n"), Some(reads));
        assert_eq!(process_reads("read_bytes: 8192\n"), None);
    }
}
