//! Processor time of each processor, and of the threads of this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::os::Root;
use crate::os::proc::schedstat;
use model::record::{ProcessorTime, ThreadTime};

/// Threads of a process that has more are not looked at: reading them would take longer than it is worth.
const MAX_THREADS: usize = 256;

/// Every processor in `/proc/stat`.
pub(super) fn all(text: &str, ticks_per_second: u64) -> Vec<ProcessorTime> {
    let nanos = |ticks: u64| ticks.saturating_mul(1_000_000_000 / ticks_per_second.max(1));
    let line = |line: &str| {
        let (name, values) = line.strip_prefix("cpu")?.split_once(' ')?;
        let ticks: Vec<u64> = values.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, _idle, _iowait, interrupts, softirq, stolen, ..] = ticks.as_slice() else {
            return None;
        };
        Some(ProcessorTime {
            number: name.parse().ok()?,
            busy_ns: nanos(user + nice + system + interrupts + softirq),
            softirq_ns: nanos(*softirq),
            stolen_ns: nanos(*stolen),
        })
    };
    text.lines().filter_map(line).collect()
}

/// The threads of this process, as they were when they were last looked at.
#[derive(Debug)]
pub(super) struct Threads {
    /// What the names of those begin with that are looked at; empty for all.
    prefix: &'static str,
    /// By their numbers; `None` for one that has another name.
    last: HashMap<String, Option<ThreadTime>>,
    /// What the busiest did, of each reading.
    busiest: Option<ThreadTime>,
    /// What those had done that ended since.
    ended: EndedThreads,
}

/// Where threads leave what they have done when they end. The kernel forgets them then, and what they did since the last reading
/// would be missing from the next one.
#[derive(Debug, Clone, Default)]
pub struct EndedThreads(Arc<Mutex<HashMap<String, ThreadTime>>>);

impl EndedThreads {
    /// Keeps what the calling thread has done: the last thing that it does.
    pub fn leave(&self) {
        let text = Root::default().text("/proc/thread-self/schedstat");
        if let Some(done) = text.as_deref().and_then(schedstat) {
            self.keep(rustix::thread::gettid().to_string(), done);
        }
    }

    fn keep(&self, number: String, done: ThreadTime) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number, done);
    }

    /// Takes out those that are not among `numbers`, which are sorted.
    fn take_gone(&self, numbers: &[String]) -> HashMap<String, ThreadTime> {
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ended.extract_if(|number, _| numbers.binary_search(number).is_err()).collect()
    }
}

impl Threads {
    pub(super) fn named(prefix: &'static str) -> Self {
        Self { prefix, last: HashMap::new(), busiest: None, ended: EndedThreads::default() }
    }

    /// Where those leave what they have done that end while they are looked at.
    pub(super) fn ended(&self) -> EndedThreads {
        self.ended.clone()
    }

    /// What the busiest thread did, of each reading so far; unknown where the kernel does not say (`CONFIG_SCHED_INFO`).
    pub(super) fn read(&mut self, root: &Root) -> Option<ThreadTime> {
        let numbers = root.names("/proc/self/task");
        if numbers.len() > MAX_THREADS {
            return self.busiest;
        }
        let is_first = self.last.is_empty();
        let mut busiest = ThreadTime::default();
        let mut count = |now: ThreadTime, past: ThreadTime| {
            let did = ThreadTime {
                running_ns: now.running_ns.saturating_sub(past.running_ns),
                waiting_ns: now.waiting_ns.saturating_sub(past.waiting_ns),
            };
            if wanted_ns(&did) > wanted_ns(&busiest) {
                busiest = did;
            }
        };
        for (number, now) in self.ended.take_gone(&numbers) {
            if !is_first {
                count(now, self.last.get(&number).copied().flatten().unwrap_or_default());
            }
        }
        self.last.retain(|number, _| numbers.binary_search(number).is_ok());
        for number in numbers {
            let folder = format!("/proc/self/task/{number}");
            let known = self.last.get(&number).copied().flatten();
            // A thread gives itself its name when it has begun, so that it may have another one when it is first seen.
            if known.is_none() && !self.is_wanted(root, &folder) {
                self.last.insert(number, None);
                continue;
            }
            let (is_new, past) = (known.is_none(), known.unwrap_or_default());
            let Some(now) = root.text(format!("{folder}/schedstat")).as_deref().and_then(schedstat) else { continue };
            // What a thread did before it was first looked at is of another time, unless it began since.
            if !(is_first && is_new) {
                count(now, past);
            }
            self.last.insert(number, Some(now));
        }
        if is_first && self.busiest.is_none() {
            self.busiest = root.exists("/proc/self/schedstat").then(ThreadTime::default);
        }
        if let Some(sum) = &mut self.busiest {
            sum.running_ns += busiest.running_ns;
            sum.waiting_ns += busiest.waiting_ns;
        }
        self.busiest
    }

    fn is_wanted(&self, root: &Root, folder: &str) -> bool {
        self.prefix.is_empty() || root.value(format!("{folder}/comm")).is_some_and(|name| name.starts_with(self.prefix))
    }
}

/// Time for which a thread ran or wanted to.
fn wanted_ns(time: &ThreadTime) -> u64 {
    time.running_ns.saturating_add(time.waiting_ns)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn processors_are_read_one_by_one() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 100 50 4 5 6 0 0\ncpu12 0 0 0 1 0 0 7 0 0 0\nintr 5\n";
        let found = all(text, 100);
        let expected = |number, busy: u64, softirq: u64, stolen: u64| ProcessorTime {
            number,
            busy_ns: busy * 10_000_000,
            softirq_ns: softirq * 10_000_000,
            stolen_ns: stolen * 10_000_000,
        };
        assert_eq!(found, [expected(0, 15, 5, 6), expected(12, 7, 7, 0)]);
    }

    #[test]
    fn the_busiest_thread_is_that_of_each_reading_and_only_of_those_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let put = |number: u32, name: &str, schedstat: &str| {
            let folder = root.path(format!("/proc/self/task/{number}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("comm"), name).unwrap();
            fs::write(folder.join("schedstat"), schedstat).unwrap();
        };
        fs::create_dir_all(root.path("/proc/self")).unwrap();
        fs::write(root.path("/proc/self/schedstat"), "0 0 0\n").unwrap();
        let mut threads = Threads::named("lane ");
        put(1, "plimsoll\n", "1000000 0 1\n");
        put(2, "lane 0\n", "500 50 1\n");
        assert_eq!(threads.read(&root), Some(ThreadTime::default()), "what was before is of another time");
        put(1, "plimsoll\n", "2000000 0 1\n");
        put(2, "lane 0\n", "600 50 1\n");
        put(3, "lane 1\n", "10 70 1\n");
        assert_eq!(threads.read(&root), Some(ThreadTime { running_ns: 100, waiting_ns: 0 }));
        put(3, "lane 1\n", "40 100 1\n");
        fs::remove_dir_all(root.path("/proc/self/task/2")).unwrap();
        assert_eq!(threads.read(&root), Some(ThreadTime { running_ns: 130, waiting_ns: 30 }));
        threads.ended().keep("3".to_owned(), ThreadTime { running_ns: 95, waiting_ns: 105 });
        assert_eq!(threads.read(&root).unwrap().running_ns, 130, "one that is still there is read as it is");
        fs::remove_dir_all(root.path("/proc/self/task/3")).unwrap();
        let with_its_end = Some(ThreadTime { running_ns: 185, waiting_ns: 35 });
        assert_eq!(threads.read(&root), with_its_end, "what one did until it ended is counted");
        assert_eq!(threads.read(&root), with_its_end, "once");
        put(1, "lane 2\n", "2000900 0 1\n");
        assert!(threads.read(&root).unwrap().running_ns > 185, "it has its name only now");
    }

    #[test]
    fn a_thread_that_ends_leaves_what_it_did() {
        let ended = EndedThreads::default();
        let leaving = ended.clone();
        let did = std::thread::spawn(move || {
            let begun = std::time::Instant::now();
            while begun.elapsed() < std::time::Duration::from_millis(20) {}
            leaving.leave();
        });
        did.join().unwrap();
        let done: Vec<ThreadTime> = ended.take_gone(&[]).into_values().collect();
        let [done] = done[..] else { panic!("{done:?}") };
        assert!(done.running_ns > 0, "{done:?}");
        assert!(ended.take_gone(&[]).is_empty());
    }
}
