//! What the model counts, as a server does: statistics, times, waits and how long they took, by what its operations did. Views show
//! it as it is, and snapshots as it was.

use std::collections::BTreeMap;

use crate::responder::{Answer, Column, Value};

/// Bytes of a block.
const BLOCK: u64 = 8192;
/// Microseconds that reads take, in turn.
const READ_US: [u64; 5] = [130, 260, 700, 1_500, 5_200];
/// The same of a commit's wait, of the log writer's write, and of the database writers'.
const COMMIT_US: u64 = 340;
const LOG_WRITE_US: u64 = 290;
const WRITE_US: u64 = 410;
/// What set-up has loaded past the cache, where a session of a pluggable database counts that.
const LOADED: u64 = 4_096;
/// Processor time for a row, and that of the server's own processes for a commit.
const ROW_CPU_US: u64 = 20;
const BACKGROUND_CPU_US: u64 = 35;

const STATISTICS: [&str; 19] = [
    "consistent gets from cache",
    "db block changes",
    "db block gets from cache",
    "execute count",
    "physical read IO requests",
    "physical read bytes",
    "physical read total bytes",
    "physical reads",
    "physical reads cache",
    "physical write IO requests",
    "physical write bytes",
    "physical write total bytes",
    "physical writes",
    "physical writes from cache",
    "redo entries",
    "redo size",
    "redo writes",
    "session logical reads",
    "user commits",
];
const TIMES: [&str; 4] = ["DB CPU", "DB time", "background cpu time", "background elapsed time"];

/// Counters since the server was started.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    statistics: BTreeMap<&'static str, u64>,
    times_us: BTreeMap<&'static str, u64>,
    events: BTreeMap<&'static str, Event>,
    /// Whether a pluggable database counts none of what the server's own processes write: of writes it has set-up's past the cache.
    pub hides_writers: bool,
}

/// Waits in an event; all are of sessions, or all of the server's own processes.
#[derive(Clone, Debug, Default)]
pub struct Event {
    pub class: &'static str,
    pub is_of_sessions: bool,
    pub count: u64,
    pub us: u64,
    /// By upper edge in microseconds.
    pub buckets: BTreeMap<u64, u64>,
}

impl Counters {
    /// An operation read so many rows, each from storage, and changed them and committed that if it `changes`.
    pub fn executed(&mut self, rows: u64, changes: bool) {
        let changed = if changes { rows } else { 0 };
        let commits = u64::from(changes);
        for (name, more) in [
            ("execute count", 1),
            ("session logical reads", rows + changed),
            ("consistent gets from cache", rows),
            ("db block gets from cache", changed),
            ("physical reads", rows),
            ("physical reads cache", rows),
            ("physical read IO requests", rows),
            ("physical read bytes", rows * BLOCK),
            ("physical read total bytes", rows * BLOCK),
            ("db block changes", changed),
            ("physical writes", changed),
            ("physical writes from cache", changed),
            ("physical write IO requests", changed),
            ("physical write bytes", changed * BLOCK),
            ("physical write total bytes", changed * BLOCK),
            ("redo entries", changed),
            ("redo size", changed * 600 + commits * 200),
            ("redo writes", commits),
            ("user commits", commits),
        ] {
            self.add(name, more);
        }
        let mut waited_us = 0;
        for _ in 0..rows {
            let read = self.events.get("db file sequential read").map_or(0, |event| event.count);
            waited_us += self.wait("db file sequential read", "User I/O", true, READ_US[read as usize % READ_US.len()]);
        }
        for _ in 0..changed {
            self.wait("db file parallel write", "System I/O", false, WRITE_US);
        }
        if changes {
            waited_us += self.wait("log file sync", "Commit", true, COMMIT_US);
            self.wait("log file parallel write", "System I/O", false, LOG_WRITE_US);
        }
        for (name, us) in [
            ("DB CPU", rows * ROW_CPU_US),
            ("DB time", rows * ROW_CPU_US + waited_us),
            ("background cpu time", commits * BACKGROUND_CPU_US),
            ("background elapsed time", commits * (BACKGROUND_CPU_US + LOG_WRITE_US) + changed * WRITE_US),
        ] {
            *self.times_us.entry(name).or_default() += us;
        }
    }

    /// Counts something besides.
    pub fn add(&mut self, name: &'static str, more: u64) {
        *self.statistics.entry(name).or_default() += more;
    }

    fn wait(&mut self, name: &'static str, class: &'static str, is_of_sessions: bool, us: u64) -> u64 {
        let event = self.events.entry(name).or_default();
        (event.class, event.is_of_sessions) = (class, is_of_sessions);
        event.count += 1;
        event.us += us;
        // A wait is shorter than its bucket's edge.
        *event.buckets.entry((us + 1).next_power_of_two()).or_default() += 1;
        us
    }

    /// Statistics by name; what never happened is 0.
    pub fn statistics(&self) -> impl Iterator<Item = (&'static str, u64)> {
        STATISTICS.into_iter().map(|name| (name, self.statistics.get(name).copied().unwrap_or(0)))
    }

    /// The time model in microseconds.
    pub fn times_us(&self) -> impl Iterator<Item = (&'static str, u64)> {
        TIMES.into_iter().map(|name| (name, self.times_us.get(name).copied().unwrap_or(0)))
    }

    pub fn events(&self) -> impl Iterator<Item = (&'static str, &Event)> {
        self.events.iter().map(|(name, event)| (*name, event))
    }

    /// What was counted since.
    pub fn since(&self, then: &Counters) -> Counters {
        let less = |now: &BTreeMap<&'static str, u64>, then: &BTreeMap<&'static str, u64>| {
            now.iter().map(|(name, now)| (*name, now - then.get(name).copied().unwrap_or(0))).collect()
        };
        let event = |(name, now): (&&'static str, &Event)| {
            let none = Event::default();
            let then = then.events.get(name).unwrap_or(&none);
            let bucket = |(edge, now): (&u64, &u64)| (*edge, now - then.buckets.get(edge).copied().unwrap_or(0));
            let buckets = now.buckets.iter().map(bucket).collect();
            (*name, Event { count: now.count - then.count, us: now.us - then.us, buckets, ..now.clone() })
        };
        Counters {
            statistics: less(&self.statistics, &then.statistics),
            times_us: less(&self.times_us, &then.times_us),
            events: self.events.iter().map(event).collect(),
            hides_writers: self.hides_writers,
        }
    }

    /// What a view, or a table that holds its rows, answers to a question; `None` where it is not one of these.
    pub fn answer(&self, view: &str, text: &str) -> Option<Answer> {
        let is_asked = |name: &str| text.contains(&format!("'{name}'"));
        let numbers = |rows: Vec<(&str, Vec<u64>)>| {
            let width = rows.first().map_or(1, |(_, numbers)| numbers.len());
            let columns =
                std::iter::once(Column::text("NAME")).chain((0..width).map(|_| Column::number("N"))).collect();
            let row = |(name, numbers): (&str, Vec<u64>)| -> Vec<Value> {
                std::iter::once(Value::from(name)).chain(numbers.into_iter().map(|n| Value::from(n as i64))).collect()
            };
            Answer::Rows { columns, rows: rows.into_iter().map(row).collect() }
        };
        let named = |all: Vec<(&'static str, u64)>| {
            numbers(all.into_iter().filter(|(name, _)| is_asked(name)).map(|(name, n)| (name, vec![n])).collect())
        };
        let bare = view.trim_start_matches("perfstat.stats$").trim_start_matches("v$").trim_start_matches("con_");
        Some(match bare {
            "sysstat" if self.hides_writers && view.contains("con_") => {
                let own = |(name, count): (&'static str, u64)| match name {
                    "physical writes from cache" | "redo writes" => (name, 0),
                    _ if name.starts_with("physical write") => (name, LOADED),
                    _ => (name, count),
                };
                named(self.statistics().map(own).collect())
            }
            "sysstat" => named(self.statistics().collect()),
            "sys_time_model" => named(self.times_us().collect()),
            "osstat" => {
                let busy = self.times_us().filter(|(name, _)| name.contains("cpu") || name.contains("CPU"));
                let busy = busy.map(|(_, us)| us).sum::<u64>() / 10_000;
                let all = [("USER_TIME", busy), ("BUSY_TIME", busy), ("SYS_TIME", 0), ("IDLE_TIME", 5_000)];
                numbers(all.into_iter().map(|(name, cs)| (name, vec![cs])).collect())
            }
            "iostat_function" => {
                let of = |name: &str| self.statistics.get(name).copied().unwrap_or(0);
                let (reads, writes) = (of("physical read IO requests"), of("redo writes"));
                numbers(vec![
                    ("Buffer Cache Reads", vec![reads, 0, 0, 0, reads / 128, 0, 0, 0, reads, 0]),
                    ("LGWR", vec![0, 0, writes, 0, 0, 0, 0, 0, writes, 0]),
                ])
            }
            "system_event" => {
                let mut columns = ["EVENT", "WAIT_CLASS"].map(Column::text).to_vec();
                let of_sessions = text.contains("total_waits_fg");
                columns.extend(vec![Column::number("N"); if of_sessions { 4 } else { 2 }]);
                let row = |(name, event): (&str, &Event)| {
                    let sessions = if event.is_of_sessions { [event.count, event.us] } else { [0, 0] };
                    let counts = [event.count, event.us].into_iter().chain(sessions).take(columns.len() - 2);
                    let texts = [Value::from(name), Value::from(event.class)];
                    texts.into_iter().chain(counts.map(|n| Value::from(n as i64))).collect()
                };
                Answer::Rows { rows: self.events().map(row).collect(), columns }
            }
            "event_histogram_micro" => {
                let of_event = |(name, event): (&'static str, &Event)| {
                    event.buckets.iter().map(|(edge, count)| (name, vec![*edge, *count])).collect::<Vec<_>>()
                };
                numbers(self.events().flat_map(of_event).collect())
            }
            "event_histogram" => {
                let of_event = |(name, event): (&'static str, &Event)| {
                    let mut in_ms: BTreeMap<u64, u64> = BTreeMap::new();
                    for (edge_us, count) in &event.buckets {
                        *in_ms.entry((edge_us / 1024).max(1)).or_default() += count;
                    }
                    in_ms.into_iter().map(|(edge, count)| (name, vec![edge, count])).collect::<Vec<_>>()
                };
                numbers(self.events().flat_map(of_event).collect())
            }
            // All of its sessions that read are the load's, which has two.
            "session" if text.contains("v$session_event") => {
                let reads = self.events().filter(|(_, event)| event.class == "User I/O");
                numbers(
                    std::iter::once(("sessions", vec![2]))
                        .chain(reads.map(|(name, event)| (name, vec![event.count])))
                        .collect(),
                )
            }
            "session" => numbers(Vec::new()),
            "instance" => Answer::rows([Column::text("PARALLEL")], vec![["NO".into()]]),
            _ => return None,
        })
    }
}
