//! The processes of a server on this machine: what they fetched from storage, and the processor time that they used.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::super::LocalServer;
use crate::monitor::process::{delay_ns, processor_time};
use measure::os::mounts::{self, ResolvedPath};
use measure::os::proc::{self, ProcessReads, ProcessStat};
use measure::os::{KeptFiles, Quota, Root, Throttling, ticks_per_second};
use model::record::{CpuTime, Throttled};

/// How often processes are read again because one of them ended meanwhile.
const TRIES: usize = 3;
/// File systems whose reads the kernel counts where they are sent to a device. Others count none of them, or count what their
/// own cache had.
const COUNTED_FILE_SYSTEMS: [&str; 9] =
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "overlay", "tmpfs"];

/// A process, distinguished from a later one of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ProcessId {
    pid: u32,
    start_ticks: u64,
}

/// All processes of a server at one instant. Only the difference of two means something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessReading {
    /// Of all of them, those included that have ended.
    cpu: CpuTime,
    /// Of the postmaster and of all its children that have ended.
    postmaster: Option<ProcessReads>,
    children: BTreeMap<ProcessId, Child>,
    /// What a quota has done to them, where there is one.
    throttled: Throttling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Child {
    reads: Option<ProcessReads>,
    /// Whether it reads for the load's sessions.
    is_ours: bool,
    /// Time for which it was ready to run and did not.
    delay_ns: Option<u64>,
}

impl ProcessReading {
    /// Processor time of all processes since `earlier`.
    pub(super) fn cpu_since(&self, earlier: &Self) -> Option<CpuTime> {
        proc::cpu_between(&earlier.cpu, &self.cpu)
    }

    /// Time for which children were ready to run and did not since `earlier`. What those had waited that ended meanwhile is not known.
    pub(super) fn run_delay_since(&self, earlier: &Self) -> Option<u64> {
        let since = |(id, child): (&ProcessId, &Child)| {
            let before = earlier.children.get(id).map_or(Some(0), |child| child.delay_ns)?;
            child.delay_ns?.checked_sub(before)
        };
        self.children.iter().map(since).sum()
    }

    /// What a quota did to them since `earlier`.
    pub(super) fn throttled_since(&self, earlier: &Self) -> Option<Throttled> {
        self.throttled.since(&earlier.throttled)
    }

    /// What the load's sessions read since `earlier`. Of sessions that ended, the postmaster holds what they had read; it holds
    /// that of other children as well, of which all is taken off that was known of them.
    pub(super) fn reads_since(&self, earlier: &Self) -> Option<ProcessReads> {
        // Where that of the postmaster is hidden, there may be sessions that are hidden too.
        let mut ended = minus(self.postmaster?, earlier.postmaster?)?;
        let mut sum = ProcessReads::default();
        for (id, child) in self.children.iter().filter(|(_, child)| child.is_ours) {
            let known = earlier.children.get(id).filter(|child| child.is_ours);
            let before = known.map_or(Some(ProcessReads::default()), |child| child.reads)?;
            sum = plus(sum, minus(child.reads?, before)?)?;
        }
        let gone = || earlier.children.iter().filter(|(id, _)| !self.children.contains_key(id)).map(|(_, child)| child);
        if gone().any(|child| child.is_ours) {
            for child in gone() {
                ended = minus(ended, child.reads?)?;
            }
            sum = plus(sum, ended)?;
        }
        Some(sum)
    }
}

fn plus(a: ProcessReads, b: ProcessReads) -> Option<ProcessReads> {
    Some(ProcessReads {
        called_bytes: a.called_bytes.checked_add(b.called_bytes)?,
        storage_bytes: a.storage_bytes.checked_add(b.storage_bytes)?,
    })
}

fn minus(a: ProcessReads, b: ProcessReads) -> Option<ProcessReads> {
    Some(ProcessReads {
        called_bytes: a.called_bytes.checked_sub(b.called_bytes)?,
        storage_bytes: a.storage_bytes.checked_sub(b.storage_bytes)?,
    })
}

/// Reads the processes of one server.
#[derive(Debug)]
pub(super) struct Processes {
    root: Root,
    kept: KeptFiles,
    server: LocalServer,
    quota: Quota,
    ticks_per_second: u128,
    /// Whether the kernel reports reads from storage for the file system that holds the data.
    counts_reads: bool,
}

impl Processes {
    /// Of `server`, below this root; `None` where the kernel does not report its unit of time.
    pub(super) fn new(root: Root, server: LocalServer) -> Option<Self> {
        let quota = Quota::of(&root, &mounts::all(&root), &server.postmaster_pid.to_string());
        let kind = server.data_directory.as_deref().and_then(|directory| file_system(&root, directory));
        let counts_reads = kind.is_some_and(|kind| COUNTED_FILE_SYSTEMS.contains(&kind.as_str()));
        Some(Self {
            kept: KeptFiles::new(root.clone()),
            root,
            server,
            quota,
            ticks_per_second: ticks_per_second()?.into(),
            counts_reads,
        })
    }

    /// What cannot be known of these processes by this process, and how it could be.
    pub(super) fn unknown(&self) -> Option<String> {
        let io = self.root.text(format!("/proc/{}/io", self.server.postmaster_pid));
        if io.and_then(|text| proc::process_reads(&text)).is_none() {
            Some(
                "this user may not see what the server's processes read. Physical reads and page-cache hits are \
                unknown: run as root or as the server's own user"
                    .to_owned(),
            )
        } else if !self.counts_reads {
            Some(
                "the kernel does not count reads from storage for the file system that holds the server's data, so physical \
                 reads and page-cache hits are unknown"
                    .to_owned(),
            )
        } else {
            None
        }
    }

    /// Reads them all. `sessions` are the processes of the load's sessions. `None` where they cannot be read, or where so many
    /// end meanwhile that no sum would be right.
    pub(super) fn read(&mut self, sessions: &[u32]) -> Option<ProcessReading> {
        let sessions: HashSet<u32> = sessions.iter().copied().collect();
        self.kept.begin_round();
        let mut before = self.process(self.server.postmaster_pid, |_| true)?;
        for _ in 0..TRIES {
            let children = self.children(&sessions);
            // What a child did goes over to its parent when it is gone: then it may have been counted twice or not at all.
            let after = self.process(self.server.postmaster_pid, |_| true)?;
            if after == before {
                return self.sum(after, children);
            }
            before = after;
        }
        None
    }

    fn children(&mut self, sessions: &HashSet<u32>) -> Vec<(ProcessId, ProcessStat, Child)> {
        let postmaster = self.server.postmaster_pid;
        let numbers = self.root.names("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
        let children = numbers.filter_map(|pid| {
            let (stat, reads) = self.process(pid, |stat| stat.parent == postmaster)?;
            let is_ours = sessions.contains(&pid) || self.is_io_worker(pid);
            let delay = self.kept.text(&format!("/proc/{pid}/schedstat"), |_| true);
            let delay_ns = delay.and_then(|text| delay_ns(&text));
            Some((ProcessId { pid, start_ticks: stat.start_ticks }, stat, Child { reads, is_ours, delay_ns }))
        });
        children.collect()
    }

    fn sum(
        &self,
        (postmaster, reads): (ProcessStat, Option<ProcessReads>),
        children: Vec<(ProcessId, ProcessStat, Child)>,
    ) -> Option<ProcessReading> {
        let stats = children.iter().map(|(_, stat, _)| stat).chain([&postmaster]);
        let cpu = processor_time(stats, self.ticks_per_second)?;
        let children = children.into_iter().map(|(id, _, child)| (id, child)).collect();
        Some(ProcessReading { cpu, postmaster: reads, children, throttled: self.quota.throttled(&self.root) })
    }

    /// Since version 18, sequential scans are read by workers.
    fn is_io_worker(&self, pid: u32) -> bool {
        self.root.text(format!("/proc/{pid}/cmdline")).is_some_and(|title| title.contains(" io worker "))
    }

    fn process(
        &mut self,
        pid: u32,
        wanted: impl Fn(&ProcessStat) -> bool,
    ) -> Option<(ProcessStat, Option<ProcessReads>)> {
        let is_wanted = |text: &str| proc::process_stat(text).is_some_and(|stat| wanted(&stat));
        let stat = self.kept.text(&format!("/proc/{pid}/stat"), is_wanted)?;
        let stat = proc::process_stat(&stat).filter(&wanted)?;
        let reads = if self.counts_reads {
            self.kept.text(&format!("/proc/{pid}/io"), |_| true).and_then(|text| proc::process_reads(&text))
        } else {
            None
        };
        Some((stat, reads))
    }
}

fn file_system(root: &Root, directory: &Path) -> Option<String> {
    let place = ResolvedPath::nearest(root, directory)?;
    Some(mounts::holding(&mounts::all(root), &place.path, place.device)?.kind.clone())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine with a server whose postmaster is process 10.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(file_system: &str) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(machine.0.path().join("srv/pg")).unwrap();
            fs::create_dir_all(machine.0.path().join("proc/self")).unwrap();
            let mount = format!("22 1 8:2 / / rw - {file_system} /dev/root rw\n");
            fs::write(machine.0.path().join("proc/self/mountinfo"), mount).unwrap();
            machine
        }

        /// A process that began at tick `start`, used `ticks` of both kinds, read `blocks` of 8 KiB from storage and as many from the
        /// page cache.
        fn process(&self, pid: u32, parent: u32, start: u64, ticks: u64, blocks: u64) {
            let process = self.0.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&process).unwrap();
            let stat =
                format!("{pid} (postgres) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} {ticks} 0 0 20 0 1 0 {start} 0 0");
            fs::write(process.join("stat"), stat).unwrap();
            let bytes = blocks * 8192;
            fs::write(process.join("io"), format!("rchar: {}\nread_bytes: {bytes}\n", 2 * bytes)).unwrap();
        }

        fn title(&self, pid: u32, title: &str) {
            fs::write(self.0.path().join(format!("proc/{pid}/cmdline")), title).unwrap();
        }

        fn gone(&self, pid: u32) {
            fs::remove_dir_all(self.0.path().join(format!("proc/{pid}"))).unwrap();
        }

        fn processes(&self) -> Processes {
            let server = LocalServer { postmaster_pid: 10, data_directory: Some("/srv/pg".into()) };
            Processes::new(Root::at(self.0.path()), server).unwrap()
        }
    }

    fn blocks(reads: Option<ProcessReads>) -> Option<u64> {
        reads.map(|reads| reads.storage_bytes / 8192)
    }

    #[test]
    fn only_what_our_sessions_read_is_counted_and_of_new_ones_everything() {
        let machine = Machine::new("ext4");
        machine.process(10, 1, 1, 1, 0);
        machine.process(11, 10, 2, 0, 100);
        machine.process(12, 10, 2, 0, 1_000);
        machine.process(13, 1, 2, 0, 1_000);
        let mut processes = machine.processes();
        let earlier = processes.read(&[11, 13]).unwrap();
        machine.process(11, 10, 2, 0, 107);
        machine.process(12, 10, 2, 0, 2_000);
        machine.process(13, 1, 2, 0, 2_000);
        machine.process(14, 10, 9, 0, 20);
        let later = processes.read(&[11, 13, 14]).unwrap();
        assert_eq!(blocks(later.reads_since(&earlier)), Some(27));
        assert_eq!(later.reads_since(&earlier).unwrap().called_bytes, 2 * 27 * 8192);
        assert_eq!(processes.unknown(), None);
    }

    #[test]
    fn what_a_session_read_before_it_ended_is_not_lost() {
        let machine = Machine::new("xfs");
        machine.process(10, 1, 1, 1, 5);
        machine.process(11, 10, 2, 0, 100);
        machine.process(12, 10, 2, 0, 40);
        let mut processes = machine.processes();
        let earlier = processes.read(&[11]).unwrap();
        // 11 read 9 more and 12, which is not ours, nothing more; both ended, and their parent holds what they had read.
        machine.process(10, 1, 1, 1, 5 + 109 + 40);
        machine.gone(11);
        machine.gone(12);
        let later = processes.read(&[]).unwrap();
        assert_eq!(blocks(later.reads_since(&earlier)), Some(9));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_session() {
        let machine = Machine::new("xfs");
        machine.process(10, 1, 1, 1, 0);
        machine.process(11, 10, 2, 0, 100);
        let mut processes = machine.processes();
        let earlier = processes.read(&[11]).unwrap();
        machine.process(10, 1, 1, 1, 100);
        machine.process(11, 10, 5, 0, 130);
        let later = processes.read(&[11]).unwrap();
        assert_eq!(blocks(later.reads_since(&earlier)), Some(130));
    }

    #[test]
    fn workers_that_read_for_sessions_count_as_sessions() {
        let machine = Machine::new("ext4");
        machine.process(10, 1, 1, 1, 0);
        machine.process(11, 10, 2, 0, 1);
        machine.title(11, "postgres: main: io worker 0 ");
        let mut processes = machine.processes();
        let earlier = processes.read(&[]).unwrap();
        machine.process(11, 10, 2, 0, 4);
        assert_eq!(blocks(processes.read(&[]).unwrap().reads_since(&earlier)), Some(3));
    }

    #[test]
    fn waiting_for_a_processor_is_that_of_children_and_unknown_where_one_does_not_say() {
        let machine = Machine::new("ext4");
        let waited = |pid: u32, ns: u64| {
            let path = machine.0.path().join(format!("proc/{pid}/schedstat"));
            fs::write(path, format!("5000 {ns} 7\n")).unwrap();
        };
        machine.process(10, 1, 1, 1, 0);
        machine.process(11, 10, 2, 0, 0);
        waited(11, 300);
        let mut processes = machine.processes();
        let earlier = processes.read(&[]).unwrap();
        machine.process(12, 10, 3, 0, 0);
        waited(11, 1_000);
        waited(12, 40);
        assert_eq!(processes.read(&[]).unwrap().run_delay_since(&earlier), Some(740), "12 is new");
        fs::remove_file(machine.0.path().join("proc/12/schedstat")).unwrap();
        assert_eq!(machine.processes().read(&[]).unwrap().run_delay_since(&earlier), None);
    }

    #[test]
    fn processor_time_is_that_of_all_processes() {
        let machine = Machine::new("ext4");
        machine.process(10, 1, 1, 1, 0);
        machine.process(11, 10, 2, 5, 0);
        let mut processes = machine.processes();
        let earlier = processes.read(&[]).unwrap();
        // 11 ended, and its time went over to its parent; 12 is new.
        machine.process(10, 1, 1, 8, 0);
        machine.gone(11);
        machine.process(12, 10, 3, 4, 0);
        let later = processes.read(&[]).unwrap();
        let tick_ns = 1_000_000_000 / ticks_per_second().unwrap();
        let cpu = later.cpu_since(&earlier).unwrap();
        assert_eq!((cpu.user_ns, cpu.system_ns), (6 * tick_ns, 6 * tick_ns));
        assert_eq!(earlier.cpu_since(&later), None);
    }

    #[test]
    fn reads_are_unknown_where_the_kernel_or_its_rights_hide_them() {
        let hidden = Machine::new("ext4");
        hidden.process(10, 1, 1, 1, 0);
        hidden.process(11, 10, 2, 0, 1);
        fs::remove_file(hidden.0.path().join("proc/11/io")).unwrap();
        let reading = hidden.processes().read(&[11]).unwrap();
        assert_eq!(reading.reads_since(&reading), None);
        assert!(reading.cpu_since(&reading).is_some());
        fs::remove_file(hidden.0.path().join("proc/10/io")).unwrap();
        let nobody = hidden.processes().read(&[]).unwrap();
        assert_eq!(nobody.reads_since(&nobody), None);
        assert!(hidden.processes().unknown().unwrap().contains("run as root"));

        let uncounted = Machine::new("zfs");
        uncounted.process(10, 1, 1, 1, 0);
        uncounted.process(11, 10, 2, 0, 1);
        let reading = uncounted.processes().read(&[11]).unwrap();
        assert_eq!(reading.reads_since(&reading), None);
        assert!(uncounted.processes().unknown().unwrap().contains("file system"));
    }

    #[test]
    fn no_server_is_no_reading() {
        assert_eq!(Machine::new("ext4").processes().read(&[]), None);
    }
}
