//! What counters prove of the way that was asked for: that reads and writes went to storage, and that durable writes were
//! made durable. Asking the kernel for it proves nothing.

use super::message::list;
use super::{Figures, Finding, Message, is_on_server, measured, operations_are_requests, traffic, worst};
use crate::Rule;
use crate::Severity;
use model::config::io::Durable;
use model::record::{
    DeviceStats, FileFacts, Interval, Metric, Outstanding, Run, Step, TargetKind, VolumeLayout, known_sum,
};
use model::units::{Bytes, group_thousands, percent};

const AGREE: f64 = 0.01;
/// The device's reads above ours that are reported: file system metadata and rounding stay below.
const OTHERS: f64 = 1.1;
/// The share that a server may have read for itself: one held to 256 MiB of memory read 28 %.
const BESIDE_SERVER: f64 = 0.5;
/// Pages of this program and its libraries that the kernel may fetch while it measures: a run on a cold machine fetched 0.9 MiB.
const PROGRAM_BYTES: f64 = (2 << 20) as f64;
/// Byte counts below this are not compared.
const ENOUGH_BYTES: u64 = 16 << 20;
/// Fewer durable writes than this may all have been flushed just outside the window.
const ENOUGH_WRITES: u64 = 100;
/// So many syncs make at least one flush, however the kernel joins them.
const ENOUGH_SYNCS: u64 = 10;

pub(super) fn find(run: &Run) -> Vec<Finding> {
    let page_cache = page_cache(run);
    let disagreements = match page_cache {
        // Where the page cache is wanted, that it answered is no contradiction.
        Some(PageCacheUse::Asked { .. }) => [None, None],
        _ => [
            BytesDisagree::of(None, worst(run, |step| reads_differ(run, step))),
            BytesDisagree::of(Some(copies(run)), worst(run, |step| writes_differ(run, step))),
        ],
    };
    let shared = worst(run, |step| shared_device(run, step));
    // Parts of a fleet on one device are each other's others: their merge says what is left.
    let shared = shared.filter(|_| !run.is_one_of_many()).map(|(steps, (share, device))| DeviceSharedWithOthers {
        steps,
        device,
        share,
    });
    let found = page_cache.map(Finding::PageCacheUsed).into_iter();
    let found = found.chain(disagreements.into_iter().flatten().map(Finding::BytesDisagree));
    let found = found.chain(durable_writes(run).map(Finding::DurableWrites));
    found.chain(shared.map(Finding::DeviceSharedWithOthers)).collect()
}

/// Whether files are known not to be read directly.
pub fn is_through_page_cache(run: &Run) -> bool {
    run.target.facts.files.direct_io == Some(false)
}

/// Whether this process does the reading and writing itself, so that the kernel's accounts of it are about them.
fn is_in_process(run: &Run) -> bool {
    let FileFacts { protocol, data_protocol, redo_protocol, .. } = &run.target.facts.files;
    // What this program sends to servers itself, or to each member of a disk group, the kernel does not count as it is counted here.
    let is_virtual = [protocol, data_protocol, redo_protocol].iter().any(|protocol| protocol.is_some());
    matches!(run.target.kind, Some(TargetKind::Embedded | TargetKind::Block)) && !is_virtual
}

/// How many times each write goes to storage.
fn copies(run: &Run) -> u64 {
    if matches!(run.target.facts.files.layout, Some(VolumeLayout::Mirror { .. })) { 2 } else { 1 }
}

/// Bytes that only one of two counts may have, although both are right. The kernel counts a request when it is sent, and some devices
/// do; we count it when it has finished, in the window.
#[derive(Clone, Copy)]
struct Leeway {
    /// Of requests under way when the window began: ours alone.
    before: f64,
    /// Of requests under way when it ended, and of those that failed: the kernel's alone.
    within: f64,
}

impl Leeway {
    fn of(step: &Step) -> Self {
        let before = match step.load.rate_operations_per_s {
            None => step.load.sessions.map_or(0.0, f64::from),
            Some(_) => Figures(step)
                .service()
                .and_then(|service| service.total_ns())
                .map_or(0.0, |total_ns| total_ns as f64 / step.window.duration_ns.max(1) as f64),
        };
        // A queue may have grown until the end.
        let under_way: u64 = step.outstanding.iter().map(Outstanding::count).sum();
        let failed: u64 = step.operations.iter().map(|operation| operation.errors).sum();
        let bytes = traffic::request_bytes(step).unwrap_or(0.0);
        Self { before: before * bytes, within: (before.max(under_way as f64) + failed as f64) * bytes }
    }

    fn times(self, copies: u64) -> Self {
        Self { before: self.before * copies as f64, within: self.within * copies as f64 }
    }

    /// Share by which our count and another one differ, if that is beyond what may be.
    fn differ(self, ours: u64, other: u64) -> Option<f64> {
        let more = ours.max(other);
        let difference = ours.abs_diff(other) as f64;
        let leeway = if other > ours { self.within } else { self.before };
        let share_of = |bytes: f64| bytes / more.max(1) as f64;
        (more >= ENOUGH_BYTES && share_of(difference - leeway) > AGREE).then(|| share_of(difference))
    }

    /// The same of the process's own count, where the device's counters do not bear ours out. They come first: the process is charged
    /// twice for a request that is split and sent again (io_uring does, of one larger than the device takes), and for pages of its
    /// program that are fetched meanwhile.
    fn differ_from_process(self, ours: u64, process: u64, devices: &[u64], program: f64) -> Option<f64> {
        if devices.iter().any(|device| self.differ(ours, *device).is_none()) {
            return None;
        }
        Self { within: self.within + program, ..self }.differ(ours, process)
    }
}

/// Our count of bytes read against the kernel's. A mirrored volume reads one copy.
fn reads_differ(run: &Run, step: &Step) -> Option<(f64, u64, u64)> {
    let engine = step.counters.physical_read_bytes.filter(|_| is_in_process(run))?;
    let kernel = step.process_io?.read_bytes;
    let devices = moved(run, step, &step.devices, |device| device.read_bytes);
    Leeway::of(step).differ_from_process(engine, kernel, &devices, PROGRAM_BYTES).map(|share| (share, engine, kernel))
}

/// The same of bytes written, where all that this process writes are requests of ours: an engine writes its log too.
fn writes_differ(run: &Run, step: &Step) -> Option<(f64, u64, u64)> {
    if !is_in_process(run) || !operations_are_requests(run) {
        return None;
    }
    let ours = step.counters.physical_write_bytes? * copies(run);
    let kernel = step.process_io?.write_bytes;
    let devices = moved(run, step, &step.devices, |device| device.write_bytes);
    let leeway = Leeway::of(step).times(copies(run));
    leeway.differ_from_process(ours, kernel, &devices, 0.0).map(|share| (share, ours, kernel))
}

/// Share of the bytes read in the whole run that the kernel fetched from storage.
fn from_storage(run: &Run) -> Option<f64> {
    let read = |step: &Step| Some((step.counters.physical_read_bytes?, step.process_io?.read_bytes));
    let counts: Vec<_> = measured(run).filter_map(read).collect();
    let (ours, kernel) = counts.iter().fold((0, 0), |(ours, kernel), count| (ours + count.0, kernel + count.1));
    (ours >= ENOUGH_BYTES && is_in_process(run)).then(|| kernel as f64 / ours as f64)
}

/// The devices that our requests go to first, as far as they can be distinguished from those below them, which see the same
/// requests again. Empty where they cannot.
///
/// A step lists the devices below each path in turn, the top one first and each device once; the environment has those of
/// the first path.
pub(super) fn tops<'a>(run: &Run, step: &'a Step) -> Vec<&'a DeviceStats> {
    let first_stack = &run.environment.devices;
    let is_one_stack = step.devices.len() <= first_stack.len().max(1);
    if is_one_stack {
        return step.devices.first().into_iter().collect();
    }
    let paths = run.target.facts.files.paths.len().max(1);
    // A partition is named after its disk.
    let is_part = |part: &DeviceStats| {
        step.devices.iter().any(|disk| disk.name != part.name && part.name.starts_with(&disk.name))
    };
    let each_its_own = step.devices.len() == paths && first_stack.len() == 1 && !step.devices.iter().any(is_part);
    if each_its_own { step.devices.iter().collect() } else { Vec::new() }
}

/// Bytes that devices moved for everybody, by readings of the step or of an interval of it: the top ones, and in one stack what is below
/// them, which moves all that a cache between does not hold. Nothing where either is unknown.
fn moved(run: &Run, step: &Step, readings: &[DeviceStats], bytes: impl Fn(&DeviceStats) -> u64) -> Vec<u64> {
    let tops = tops(run, step);
    let read = |name: &str| readings.iter().find(|device| device.name == name).map(&bytes);
    let below = match (tops.as_slice(), step.devices.as_slice()) {
        ([_], [_, below @ ..]) => below,
        _ => &[],
    };
    let all = known_sum(tops.iter().map(|top| read(&top.name))).filter(|_| !tops.is_empty());
    let all_below = known_sum(below.iter().map(|device| read(&device.name))).filter(|_| !below.is_empty());
    all.into_iter().chain(all_below).collect()
}

/// The same where it is held against what we moved: the smallest count that has all of ours. A mapped device counts what it was sent,
/// the disk below it what was done, and a disk of several file systems what they moved too.
fn moved_at_least(ours: f64, counts: &[u64]) -> Option<u64> {
    let whole = counts.iter().filter(|count| **count as f64 >= ours * (1.0 - AGREE)).min();
    whole.or_else(|| counts.iter().max()).copied()
}

/// What others moved to and from the devices in an interval, as a share of what we moved; absent where that is unknown. It
/// compares bytes, since the kernel joins and splits requests.
pub(super) fn others_share(run: &Run, step: &Step, interval: &Interval) -> Option<f64> {
    if !operations_are_requests(run) || !is_in_process(run) || is_through_page_cache(run) || copies(run) > 1 {
        return None;
    }
    let ours = traffic::bytes(&interval.counters)?;
    let counts = moved(run, step, &interval.devices, |device| device.read_bytes.saturating_add(device.write_bytes));
    let all = moved_at_least(ours as f64, &counts)?;
    Some(all.saturating_sub(ours) as f64 / ours.max(1) as f64)
}

/// The share of what the devices have read that we did not ask for, above 0 and up to 1. A server that reads through the page cache has the
/// kernel read ahead, and reads for more than the load's sessions: what is beyond them need not be others' unless it is most.
fn shared_device(run: &Run, step: &Step) -> Option<(f64, String)> {
    let least = if is_on_server(step) && !run.target.reads_directly() { BESIDE_SERVER } else { 0.0 };
    let tops = tops(run, step);
    let ours_per_s = Figures(step).value(Metric::ReadMegabytes)? * 1e6;
    let ours = ours_per_s * tops.first()?.elapsed_ns as f64 / 1e9;
    let bytes = moved_at_least(ours, &moved(run, step, &step.devices, |device| device.read_bytes))?;
    let leeway = if is_in_process(run) { Leeway::of(step).within } else { 0.0 };
    let names = tops.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ");
    // A share of next to nothing says nothing: where we only write, the device's reads are somebody else's altogether.
    let others = (bytes as f64 - ours) / bytes as f64;
    // A server that reads next to nothing for the load still reads its own program and catalogues: that says nothing of others.
    let is_from_memory = least > 0.0 && ours < ENOUGH_BYTES as f64;
    let is_more = bytes as f64 > OTHERS * ours + leeway && others > least;
    (bytes >= ENOUGH_BYTES && is_more && !is_from_memory).then_some((others, names))
}

/// The page cache is in the path.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "use", rename_all = "snake_case")]
pub enum PageCacheUse {
    /// The user wants it there.
    Asked {
        /// Bytes that the kernel fetched from storage, as a share of those read; read-ahead can make it more than 1. Absent
        /// where nothing was read, or the kernel does not report.
        from_storage: Option<f64>,
    },
    /// Data files are not read directly, whoever decided that.
    NotDirect,
}

fn page_cache(run: &Run) -> Option<PageCacheUse> {
    let asked = || PageCacheUse::Asked { from_storage: from_storage(run) };
    let used = || if operations_are_requests(run) { asked() } else { PageCacheUse::NotDirect };
    is_through_page_cache(run).then(used)
}

impl Message for PageCacheUse {
    fn rule(&self) -> Rule {
        Rule::CachePageCache
    }

    fn sentence(&self) -> String {
        let Self::Asked { from_storage } = self else {
            return "Files are not read directly (direct_io is off): the operating system's page cache may have served reads."
                .to_owned();
        };
        let share = from_storage.map_or(String::new(), |share| {
            format!(" The kernel fetched {} % of the bytes read from storage.", percent(share))
        });
        format!(
            "Through the page cache, as requested (direct I/O off): as far as data was cached, these results measure the kernel and memory.{share}"
        )
    }

    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Asked { .. } => "Leave out `--direct off` to measure the storage.",
            Self::NotDirect => {
                "Put the target on a file system that takes O_DIRECT, such as xfs or ext4, and allow it."
            }
        };
        Some(advice.to_owned())
    }
}

/// Our count of bytes read or written and the kernel's differ, although the page cache was to be passed by.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct BytesDisagree {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The largest share by which they differ, 0 to 1.
    pub share: f64,
    /// By our count, every copy counted.
    #[serde(rename = "ours_bytes")]
    pub ours: Bytes,
    /// By the kernel's.
    #[serde(rename = "kernel_bytes")]
    pub kernel: Bytes,
    /// Of writes, how many copies are written; absent for reads.
    pub copies: Option<u64>,
}

impl BytesDisagree {
    /// Of the steps in which counts differ, and the largest share with both counts.
    fn of(copies: Option<u64>, found: Option<(Vec<String>, (f64, u64, u64))>) -> Option<Self> {
        let (steps, (share, ours, kernel)) = found?;
        Some(Self { steps, share, ours: Bytes(ours), kernel: Bytes(kernel), copies })
    }
}

impl Message for BytesDisagree {
    fn rule(&self) -> Rule {
        Rule::StorageBytesDisagree
    }

    fn sentence(&self) -> String {
        let moved = match self.copies {
            None => "read".to_owned(),
            Some(copies) if copies > 1 => format!("written, {copies} copies of each,"),
            Some(_) => "written".to_owned(),
        };
        format!(
            "Bytes {moved} by our count and by the kernel's differ by {} % in {}: {} against {}.",
            percent(self.share),
            list(&self.steps),
            self.ours,
            self.kernel
        )
    }

    fn advice(&self) -> Option<String> {
        let (ours, kernel) = (self.ours.0, self.kernel.0);
        let why = match self.copies {
            _ if kernel > ours => {
                return Some(
                    "The kernel moved more for this process than the load did, and no device's counters \
                     agree with it. `--full` shows what each device moved."
                        .to_owned(),
                );
            }
            Some(_) => "writes may have stayed in memory",
            None => "its page cache may have served reads",
        };
        Some(format!(
            "The kernel counted less: {why}. Check direct I/O, or network file systems, which it does not count."
        ))
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

/// Somebody else reads from the device.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DeviceSharedWithOthers {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The device, or several of them.
    pub device: String,
    /// The largest share of what it read that was not for us, 0 to 1.
    pub share: f64,
}

impl Message for DeviceSharedWithOthers {
    fn rule(&self) -> Rule {
        Rule::StorageShared
    }

    fn sentence(&self) -> String {
        format!(
            "`{}` read more in {} than the load requested: {} % of it is read-ahead, the server's own, or another \
             process's.",
            self.device,
            list(&self.steps),
            percent(self.share)
        )
    }

    fn advice(&self) -> Option<String> {
        Some("Repeat when the device is quiet.".to_owned())
    }
}

/// Whether writes that were to be durable could be seen to be so.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DurableWrites {
    /// What was asked for: `dsync` or `fsync:N`.
    pub asked: String,
    /// Labels of the steps that wrote.
    pub steps: Vec<String>,
    /// Writes that were to be durable.
    pub writes: u64,
    /// What the device's counters say.
    pub seen: SeenFlushes,
}

/// What the counters of the device below the files report on flushes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenFlushes {
    /// So many reached a device whose cache forgets without power.
    Flushes {
        /// The device.
        device: String,
        /// Its flushes in the windows, everybody's.
        flushes: u64,
    },
    /// None did, and nothing else could have made the writes durable.
    None {
        /// The device.
        device: String,
    },
    /// It cannot be known.
    Unknown {
        /// Why.
        why: &'static str,
    },
}

/// Every device must agree before flushes are said to be missing; one of them is enough to see them. Kernels count
/// flushes of whole disks only, neither of partitions nor of what is stacked above.
fn durable_writes(run: &Run) -> Option<DurableWrites> {
    let asked = run.target.facts.files.durable.filter(|durable| *durable != Durable::None)?;
    let wrote = |step: &&Step| step.counters.physical_writes.is_some_and(|writes| writes > 0);
    let steps: Vec<&Step> = measured(run).filter(wrote).collect();
    let writes = steps.iter().filter_map(|step| step.counters.physical_writes).sum();
    if writes < ENOUGH_WRITES || !is_in_process(run) {
        return None;
    }
    let labels = steps.iter().map(|step| step.label.clone()).collect();
    // After how many writes a sync was asked for; with dsync each write is its own.
    let every = match asked {
        Durable::Fsync { every } => Some(u64::from(every.get())),
        Durable::None | Durable::Dsync => None,
    };
    let seen = match every {
        Some(every) if writes < ENOUGH_SYNCS.saturating_mul(every) => return None,
        every => seen_flushes(run, &steps, every.is_none()),
    };
    Some(DurableWrites { asked: asked.to_string(), steps: labels, writes, seen })
}

fn seen_flushes(run: &Run, steps: &[&Step], by_each_write: bool) -> SeenFlushes {
    let unknown = |why| SeenFlushes::Unknown { why };
    // The last of a stack is the disk itself; what it is called is known for the first path.
    let caches = |device: &&model::record::BlockDevice| device.write_cache.as_deref() == Some("write back");
    // Where a snapshot keeps blocks is beside the stack, and listed last.
    let is_below = |device: &&model::record::BlockDevice| device.layer.as_deref() != Some("snapshot");
    let stack: Vec<_> = run.environment.devices.iter().take_while(is_below).collect();
    let Some(disk) = stack.iter().copied().rfind(caches) else {
        return unknown(match stack.last().and_then(|disk| disk.write_cache.as_deref()) {
            Some("write through") => "the device says that it has no cache to lose, so the kernel sends it no flush",
            _ => "whether the device has a cache to lose is not known",
        });
    };
    if disk.statistics == Some(false) {
        return unknown("the kernel is set not to count what the device does");
    }
    let of_disk = |step: &&&Step| step.devices.iter().find(|device| device.name == disk.name).and_then(|it| it.flushes);
    let counts: Vec<u64> = steps.iter().filter_map(|step| of_disk(&step)).collect();
    let flushes = counts.iter().sum();
    match (counts.len() == steps.len(), flushes) {
        (true, 0) if by_each_write && disk.forced_unit_access != Some(false) => unknown(
            "the device may take writes that are durable each by themselves (FUA), and the kernel does not count those",
        ),
        (true, 0) => SeenFlushes::None { device: disk.name.clone() },
        (true, flushes) => SeenFlushes::Flushes { device: disk.name.clone(), flushes },
        (false, _) => unknown("this kernel does not count flushes"),
    }
}

impl DurableWrites {
    /// Whether durability was asked for and did not happen.
    pub(super) fn is_doubt(&self) -> bool {
        matches!(self.seen, SeenFlushes::None { .. })
    }
}

impl Message for DurableWrites {
    fn rule(&self) -> Rule {
        Rule::StorageFlushes
    }

    fn severity(&self) -> Severity {
        if self.is_doubt() { Severity::Doubt } else { Severity::Note }
    }

    fn sentence(&self) -> String {
        let writes = group_thousands(self.writes as f64);
        match &self.seen {
            SeenFlushes::Flushes { device, flushes } => format!(
                "Durable writes ({}) reached the device: {} flushes of `{device}` were counted beside {writes} writes.",
                self.asked,
                group_thousands(*flushes as f64)
            ),
            SeenFlushes::None { device } => format!(
                "Durable writes ({}) were requested. No flush reached `{device}` during {writes} writes in {}, \
                 although its cache can lose data.",
                self.asked,
                list(&self.steps)
            ),
            SeenFlushes::Unknown { why } => {
                format!("That durable writes ({}) are durable cannot be seen here: {why}.", self.asked)
            }
        }
    }

    fn advice(&self) -> Option<String> {
        self.is_doubt().then(|| {
            "Look for a mount option (`nobarrier`) or a layer below that drops flushes: such a database can lose commits with the power."
                .to_owned()
        })
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample::requests;

    fn flushes(change: impl Fn(&mut Run)) -> Option<SeenFlushes> {
        let mut run = requests::mixed();
        change(&mut run);
        durable_writes(&run).map(|writes| writes.seen)
    }

    fn no_flush(run: &mut Run) {
        run.steps[0].devices[0].flushes = Some(0);
    }

    #[test]
    fn flushes_of_the_device_show_durable_writes() {
        let device = || "nvme0n1".to_owned();
        assert_eq!(flushes(|_| {}), Some(SeenFlushes::Flushes { device: device(), flushes: 29_000 }));
        assert_eq!(flushes(no_flush), Some(SeenFlushes::None { device: device() }));
        let unasked = |run: &mut Run| run.target.facts.files.durable = Some(Durable::None);
        assert_eq!(flushes(unasked), None);
    }

    #[test]
    fn what_cannot_be_seen_is_not_claimed() {
        let unknown = |change: fn(&mut Run)| {
            let seen = flushes(|run| {
                no_flush(run);
                change(run);
            });
            assert!(matches!(seen, Some(SeenFlushes::Unknown { .. })), "{seen:?}");
        };
        unknown(|run| run.environment.devices[0].forced_unit_access = Some(true));
        unknown(|run| run.environment.devices[0].forced_unit_access = None);
        unknown(|run| run.environment.devices[0].write_cache = Some("write through".to_owned()));
        unknown(|run| run.environment.devices.clear());
        unknown(|run| run.environment.devices[0].statistics = Some(false));
        unknown(|run| run.steps[0].devices[0].flushes = None);
    }

    #[test]
    fn a_sync_makes_flushes_even_where_single_writes_could_do_without() {
        let seen = |every: &'static str| {
            flushes(move |run| {
                no_flush(run);
                run.environment.devices[0].forced_unit_access = Some(true);
                run.target.facts.files.durable = Some(every.parse().unwrap());
            })
        };
        assert!(matches!(seen("fsync:8"), Some(SeenFlushes::None { .. })));
        assert_eq!(seen("fsync:20000"), None, "one sync or two may have fallen outside the window");
    }

    #[test]
    fn writes_that_stay_in_memory_are_reported_and_both_copies_of_a_mirror_counted() {
        let disagree = |layout: VolumeLayout, kernel_times: u64| {
            let mut run = requests::mixed();
            run.target.facts.files.layout = Some(layout);
            let step = &mut run.steps[0];
            step.process_io.as_mut().unwrap().write_bytes *= kernel_times;
            step.devices.clear();
            find(&run)
                .iter()
                .any(|finding| matches!(finding, Finding::BytesDisagree(BytesDisagree { copies: Some(_), .. })))
        };
        let unit_bytes = 1 << 20;
        let (stripe, mirror) = (VolumeLayout::Stripe { unit_bytes }, VolumeLayout::Mirror { unit_bytes });
        assert!(!disagree(VolumeLayout::Single, 1) && !disagree(mirror, 2) && !disagree(stripe, 1));
        assert!(disagree(VolumeLayout::Single, 0) && disagree(mirror, 1));
    }

    #[test]
    fn requests_under_way_at_the_edges_of_a_short_window_are_no_contradiction() {
        let disagree = |slots: u32, missing: u64| {
            let mut run = requests::sweep();
            let step = &mut run.steps[0];
            step.load.sessions = Some(slots);
            // Fifteen reads of 64 MiB were seen to finish.
            (step.counters.physical_reads, step.counters.physical_read_bytes) = (Some(15), Some(15 << 26));
            (step.counters.physical_writes, step.counters.physical_write_bytes) = (Some(0), Some(0));
            step.process_io.as_mut().unwrap().read_bytes = (15 << 26) - missing;
            step.devices[0].read_bytes = (15 << 26) - missing;
            reads_differ(&run, &run.steps[0]).is_some()
        };
        assert!(!disagree(2, 2 << 26), "two were under way");
        assert!(disagree(2, 3 << 26) && disagree(2, 15 << 26), "more than that never reached storage");
    }

    /// 64 MiB were read by our count.
    fn counted(process: u64, device: u64, change: impl Fn(&mut Step)) -> Option<f64> {
        let mut run = requests::sweep();
        let step = &mut run.steps[0];
        let ours = 64 << 20;
        (step.counters.physical_reads, step.counters.physical_read_bytes) = (Some(ours / 8192), Some(ours));
        (step.counters.physical_writes, step.counters.physical_write_bytes) = (Some(0), Some(0));
        step.process_io.as_mut().unwrap().read_bytes = process;
        step.devices.truncate(1);
        step.devices[0].read_bytes = device;
        change(step);
        reads_differ(&run, &run.steps[0]).map(|(share, ..)| share)
    }

    #[test]
    fn the_device_s_counters_come_before_the_process_s() {
        let mib = |count: u64| count << 20;
        assert_eq!(counted(mib(128), mib(64), |_| ()), None, "requests that were tried twice");
        assert_eq!(counted(mib(0), mib(64), |_| ()), None, "a way that the process is not charged for");
        assert_eq!(counted(mib(128), mib(128), |_| ()), Some(0.5), "the device too read twice as much");
        assert_eq!(counted(mib(32), mib(32), |_| ()), Some(0.5), "a cache answered half of it");
        assert_eq!(counted(mib(32), mib(32), |step| step.devices.clear()), Some(0.5));
        assert_eq!(counted(mib(65), mib(90), |_| ()), None, "pages of the program, beside others");
        assert_eq!(counted(mib(72), mib(90), |_| ()), Some(8.0 / 72.0));
    }

    #[test]
    fn what_failed_or_is_still_under_way_is_no_contradiction() {
        let eight_mib = 8 << 20;
        let kernel = (64 << 20) + eight_mib;
        assert_eq!(counted(kernel, kernel, |step| step.operations[0].errors = 1_024), None);
        assert!(counted(kernel, kernel, |step| step.operations[0].errors = 512).is_some());
        let queued = |count: u64| {
            move |step: &mut Step| {
                let mut unended = Outstanding { kind: "read".to_owned(), ..Outstanding::default() };
                unended.unended.record_n(1_000_000_000, count);
                step.outstanding = vec![unended];
            }
        };
        assert_eq!(counted(kernel, kernel, queued(1_024)), None);
        assert!(counted(kernel, kernel, queued(512)).is_some());
    }

    #[test]
    fn a_mapped_device_that_counts_what_is_sent_is_judged_by_the_disk_below() {
        let others = |mapped: u64, disk: u64| {
            let mut run = requests::sweep();
            run.environment.devices.truncate(1);
            run.environment.devices.push(run.environment.devices[0].clone());
            let step = &mut run.steps[0];
            step.devices.truncate(1);
            let ours = step.counters.physical_read_bytes.unwrap();
            let named = |name: &str, times: u64| DeviceStats {
                name: name.to_owned(),
                read_bytes: ours * times,
                ..step.devices[0].clone()
            };
            step.devices = vec![named("dm-0", mapped), named("sda", disk)];
            shared_device(&run, &run.steps[0]).is_some()
        };
        assert!(!others(2, 1), "as much again waits above the disk");
        assert!(!others(1, 2), "another file system of the disk");
        assert!(others(2, 2));
        assert!(others(2, 0), "a page cache between holds everything");
    }

    #[test]
    fn reads_of_others_are_reported_as_their_share_even_where_we_read_nothing() {
        let mut run = requests::mixed();
        let step = &mut run.steps[0];
        (step.counters.physical_reads, step.counters.physical_read_bytes) = (Some(0), Some(0));
        assert_eq!(shared_device(&run, &run.steps[0]).map(|(others, _)| others), Some(1.0));
    }

    #[test]
    fn devices_of_several_paths_are_added_only_where_none_is_below_another() {
        let shared = |names: &[&str], paths: &str| {
            let mut run = requests::sweep();
            run.target.facts.files.paths = paths.split(' ').map(str::to_owned).collect();
            let step = &mut run.steps[0];
            let mut device = step.devices[0].clone();
            device.read_bytes *= 3;
            step.devices =
                names.iter().map(|name| DeviceStats { name: (*name).to_owned(), ..device.clone() }).collect();
            shared_device(&run, &run.steps[0]).map(|(others, _)| (others * 100.0).round())
        };
        assert_eq!(shared(&["sda"], "/a"), Some(67.0));
        assert_eq!(shared(&["sda", "sdb"], "/a /b"), Some(83.0));
        assert_eq!(shared(&["sda", "sda1"], "/a /b"), None, "a partition and its disk see the same reads");
        assert_eq!(shared(&["dm-0", "sda", "sdb"], "/a /b"), None, "which is below which is not known");
    }
}
