//! The process of a server on this machine whose sessions are threads: the processor time that it used, and for how long its threads
//! wanted a processor and had none.

use std::collections::BTreeMap;

use measure::os::proc::{self, ProcessStat};
use measure::os::{KeptFiles, Quota, Root, Throttling, mounts, ticks_per_second};
use model::record::{CpuTime, ServerStats};

/// Processor time of all of these processes, each with that of its children that have ended.
pub(crate) fn processor_time<'a>(stats: impl Iterator<Item = &'a ProcessStat>, ticks_per_s: u128) -> Option<CpuTime> {
    let ticks = stats.fold((0, 0), |sum, stat| (sum.0 + stat.user_ticks, sum.1 + stat.system_ticks));
    let nanos = |ticks: u64| u64::try_from(u128::from(ticks) * 1_000_000_000 / ticks_per_s).ok();
    Some(CpuTime { user_ns: nanos(ticks.0)?, system_ns: nanos(ticks.1)?, ..CpuTime::default() })
}

/// Time for which a thread was ready to run and did not, by the text of its `schedstat`.
pub(crate) fn delay_ns(schedstat: &str) -> Option<u64> {
    proc::schedstat(schedstat).map(|time| time.waiting_ns)
}

/// The process at one instant. Only the difference of two means something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadsReading {
    start_ticks: u64,
    cpu: CpuTime,
    /// Of each thread, by its number.
    delays_ns: BTreeMap<u32, u64>,
    /// What a quota has done to it, where there is one.
    throttled: Throttling,
}

impl ThreadsReading {
    /// Writes into `stats` what happened since `earlier`; nothing where that was of another process. What threads had waited that ended
    /// meanwhile is not known.
    pub(crate) fn since(&self, earlier: &Self, stats: &mut ServerStats) {
        if self.start_ticks != earlier.start_ticks {
            return;
        }
        // A number that is used again is another thread, which counts from nothing.
        let since = |(thread, ns): (&u32, &u64)| match earlier.delays_ns.get(thread) {
            Some(before) => ns.checked_sub(*before).unwrap_or(*ns),
            None => *ns,
        };
        stats.cpu = proc::cpu_between(&earlier.cpu, &self.cpu);
        stats.run_delay_ns = (!self.delays_ns.is_empty()).then(|| self.delays_ns.iter().map(since).sum());
        stats.throttled = self.throttled.since(&earlier.throttled);
    }
}

/// Reads one process.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    root: Root,
    kept: KeptFiles,
    pid: u32,
    quota: Quota,
    ticks_per_s: u128,
}

impl ServerProcess {
    /// Number `pid` below this root; `None` where the kernel does not report its unit of time.
    pub(crate) fn new(root: Root, pid: u32) -> Option<Self> {
        let quota = Quota::of(&root, &mounts::all(&root), &pid.to_string());
        Some(Self { kept: KeptFiles::new(root.clone()), root, pid, quota, ticks_per_s: ticks_per_second()?.into() })
    }

    /// Reads it now; `None` where it cannot be read.
    pub(crate) fn read(&mut self) -> Option<ThreadsReading> {
        let Self { root, kept, pid, quota, ticks_per_s } = self;
        kept.begin_round();
        let stat = proc::process_stat(&kept.text(&format!("/proc/{pid}/stat"), |_| true)?)?;
        let threads = root.names(format!("/proc/{pid}/task")).into_iter().filter_map(|name| name.parse::<u32>().ok());
        let delays_ns = threads.filter_map(|thread| {
            let text = kept.text(&format!("/proc/{pid}/task/{thread}/schedstat"), |_| true)?;
            Some((thread, delay_ns(&text)?))
        });
        Some(ThreadsReading {
            start_ticks: stat.start_ticks,
            cpu: processor_time([&stat].into_iter(), *ticks_per_s)?,
            delays_ns: delays_ns.collect(),
            throttled: quota.throttled(root),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine with a server that is process 10 and began at this tick.
    struct Machine(tempfile::TempDir, u64);

    impl Machine {
        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn process(&self, ticks: u64) {
            let began = self.1;
            self.write(
                "proc/10/stat",
                &format!("10 (mysqld) S 1 1 1 0 -1 0 0 0 0 0 {ticks} {ticks} 0 0 20 0 1 0 {began} 0 0"),
            );
        }

        fn thread(&self, number: u32, waited_ns: u64) {
            self.write(&format!("proc/10/task/{number}/schedstat"), &format!("5000 {waited_ns} 7\n"));
        }

        fn read(&self) -> ThreadsReading {
            ServerProcess::new(Root::at(self.0.path()), 10).unwrap().read().unwrap()
        }
    }

    #[test]
    fn a_process_used_what_its_threads_used_and_waited_for_what_each_of_them_waited() {
        let machine = Machine(tempfile::tempdir().unwrap(), 5);
        machine.process(3);
        machine.thread(10, 100);
        machine.thread(11, 5_000);
        machine.thread(12, 40);
        let mut process = ServerProcess::new(Root::at(machine.0.path()), 10).unwrap();
        let earlier = process.read().unwrap();
        machine.process(8);
        machine.thread(10, 130);
        // 11 is another thread now, 12 has ended, and 13 is new.
        machine.thread(11, 7);
        fs::remove_dir_all(machine.0.path().join("proc/10/task/12")).unwrap();
        machine.thread(13, 200);
        let mut stats = ServerStats::default();
        process.read().unwrap().since(&earlier, &mut stats);
        let tick_ns = 1_000_000_000 / ticks_per_second().unwrap();
        let cpu = stats.cpu.unwrap();
        assert_eq!((cpu.user_ns, cpu.system_ns, stats.run_delay_ns), (5 * tick_ns, 5 * tick_ns, Some(237)));
    }

    #[test]
    fn a_quota_of_its_group_is_read() {
        let machine = Machine(tempfile::tempdir().unwrap(), 5);
        machine.process(3);
        machine.thread(10, 100);
        machine.write("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        machine.write("proc/10/cgroup", "0::/db\n");
        machine.write("sys/fs/cgroup/db/cgroup.controllers", "cpu\n");
        machine.write("sys/fs/cgroup/db/cpu.max", "50000 100000\n");
        let held = |periods: u64, throttled: u64| {
            let text = format!("nr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec {throttled}000\n");
            machine.write("sys/fs/cgroup/db/cpu.stat", &text);
        };
        held(100, 10);
        let earlier = machine.read();
        held(160, 40);
        let mut stats = ServerStats::default();
        machine.read().since(&earlier, &mut stats);
        let throttled = stats.throttled.unwrap();
        assert_eq!((throttled.periods, throttled.throttled_periods), (60, 30));
    }

    #[test]
    fn another_process_of_the_same_number_has_no_difference() {
        let mut machine = Machine(tempfile::tempdir().unwrap(), 5);
        machine.process(3);
        machine.thread(10, 100);
        let earlier = machine.read();
        machine.1 = 9;
        machine.process(8);
        let mut stats = ServerStats::default();
        machine.read().since(&earlier, &mut stats);
        assert_eq!((stats.cpu, stats.run_delay_ns), (None, None));
    }
}
