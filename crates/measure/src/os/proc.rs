//! Reading of the counters in `/proc`, from text to numbers. What is malformed is unknown, never an error or a panic.

use model::record::{CpuTime, DeviceStats, ProcessIo};

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

/// The machine-wide line of `/proc/stat`. Guest time is already part of user time there, so it is not added.
pub fn host_cpu(text: &str, ticks_per_second: u64) -> Option<CpuTime> {
    cpu_line(text, "cpu ", ticks_per_second)
}

/// The line of one processor in `/proc/stat`.
pub fn one_cpu(text: &str, number: u32, ticks_per_second: u64) -> Option<CpuTime> {
    cpu_line(text, &format!("cpu{number} "), ticks_per_second)
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
}

/// Rows of `/proc/diskstats` with 14 columns, 18 (discards, Linux 4.18) or 20 (flushes, Linux 5.5); others are passed
/// over.
pub fn diskstats(text: &str) -> impl Iterator<Item = DiskRow<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let number = DeviceNumber { major: words.next()?.parse().ok()?, minor: words.next()?.parse().ok()? };
        let name = words.next()?;
        let counts: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let [reads, _, read_sectors, read_ms, writes, _, write_sectors, write_ms, _, busy_ms, weighted_ms, rest @ ..] =
            counts.as_slice()
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
        };
        Some(DiskRow { number, name, counts })
    })
}

impl DiskCounts {
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
#[path = "proc_tests.rs"]
mod tests;
