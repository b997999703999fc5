//! AWR and Statspack of the model: snapshots of what it has counted, and what either says of the time between two.

use std::fmt::Write as _;

use jiff::Zoned;

use super::Database;
use super::counters::{Counters, Event};
use crate::responder::{Answer, Call, Column, Value, Way};

const DBID: i64 = 77_000_111;
/// Where the instance is started, in the tables of Statspack.
const STARTED: &str = "2021-03-01 08:00:00";

/// What is kept for reports.
#[derive(Default)]
pub struct Snapshots {
    /// The number of each is its place here, from 1 on.
    pub taken: Vec<Snapshot>,
    /// What the later snapshot of a report has counted besides.
    pub planted: Option<(&'static str, u64)>,
    /// A report of AWR that is handed out as it is.
    pub report: Option<String>,
    /// Whether the instance was started anew before the last snapshot.
    pub is_restarted: bool,
}

#[derive(Clone)]
pub struct Snapshot {
    /// The session that took it.
    pub session: u32,
    /// Operations until then.
    pub executed: usize,
    at: Zoned,
    counters: Counters,
}

impl Database {
    /// What is asked of AWR and Statspack.
    pub(super) fn snapshot(&mut self, text: &str, call: &Call) -> Option<Answer> {
        let asked: Vec<i64> = call.binds.first().into_iter().flatten().filter_map(Value::as_i64).collect();
        if text.contains("con_dbid") {
            let row = [DBID.into(), 1_i64.into(), self.container().into()];
            return Some(Answer::rows(["DBID", "INSTANCE", "CONTAINER"].map(Column::number), vec![row]));
        }
        if text.contains("CREATE_SNAPSHOT") || text.contains("PERFSTAT.STATSPACK.SNAP") {
            let (executed, counters) = (self.executed.len(), self.counters.clone());
            self.snapshots.taken.push(Snapshot { session: call.session, executed, at: Zoned::now(), counters });
            let number = self.snapshots.taken.len() as i64;
            return Some(Answer::Block { ways: vec![Way::Out], out: vec![vec![number.into()]] });
        }
        if text.contains("AWR_REPORT_TEXT") {
            let [DBID, 1 | 2, begin, end] = asked[..] else { return Some(Answer::error(20_200, "no such snapshots")) };
            let text = self.snapshots.report.clone().unwrap_or_else(|| self.awr(begin, end));
            let line = |line: &str| [if line.is_empty() { Value::Null } else { line.into() }];
            return Some(Answer::rows([Column::text("OUTPUT")], text.lines().map(line).collect()));
        }
        let table = text.split(" FROM ").nth(1)?.split(' ').next().filter(|table| table.starts_with("perfstat."))?;
        // Whether it may be read is tried so. Nobody has granted that.
        if text.ends_with(" WHERE 1 = 0") {
            return Some(Answer::error(942, "table or view does not exist"));
        }
        if table == "perfstat.stats$snapshot" {
            let [begin, end, 1] = asked[..] else { return Some(Answer::error(1722, "invalid number")) };
            let time = |number: i64| self.taken(number).at.strftime("%Y-%m-%d %H:%M:%S").to_string();
            let started = if self.snapshots.is_restarted { time(end) } else { STARTED.to_owned() };
            let mut columns = ["DBID", "B", "E", "SB", "SE", "DB", "INSTANCE", "VERSION", "PARALLEL"].map(Column::text);
            columns[0] = Column::number("DBID");
            let texts = [&time(begin), &time(end), STARTED, &started, "SHOP", "shop1", "19.0.0.0.0", "NO"];
            let row = std::iter::once(DBID.into()).chain(texts.map(Value::from)).collect();
            return Some(Answer::Rows { columns: columns.into(), rows: vec![row] });
        }
        let [number, DBID, 1] = asked[..] else { return Some(Answer::error(1722, "invalid number")) };
        self.counted_at(number).answer(table, text)
    }

    fn taken(&self, number: i64) -> &Snapshot {
        &self.snapshots.taken[number as usize - 1]
    }

    /// What a snapshot has; the last one more, where a test wants that.
    fn counted_at(&self, number: i64) -> Counters {
        let mut counters = self.taken(number).counters.clone();
        if let Some((name, more)) = self.snapshots.planted.filter(|_| number as usize == self.snapshots.taken.len()) {
            counters.add(name, more);
        }
        counters
    }

    /// A report as AWR prints it, with the sections that a comparison is made of.
    fn awr(&self, begin: i64, end: i64) -> String {
        let counted = self.counted_at(end).since(&self.counted_at(begin));
        let [from, to] = [begin, end].map(|number| self.taken(number).at.clone());
        let minutes = to.duration_since(&from).as_secs_f64() / 60.0;
        let [from, to] = [from, to].map(|at| at.strftime("%d-%b-%y %H:%M:%S").to_string());
        let time = |name: &str| counted.times_us().find(|(other, _)| *other == name).map_or(0, |(_, us)| us) as f64;
        let mut text = format!(
            "
WORKLOAD REPOSITORY report for

DB Name         DB Id    Unique Name DB Role          Edition Release    RAC CDB
------------ ----------- ----------- ---------------- ------- ---------- --- ---
SHOP            {DBID} shop        PRIMARY          EE      19.0.0.0.0 NO  NO

Instance     Inst Num Startup Time
------------ -------- ---------------
shop1               1 01-Mar-21 08:00

Host Name        Platform                         CPUs Cores Sockets Memory(GB)
---------------- -------------------------------- ---- ----- ------- ----------
host             Linux x86 64-bit                    4                     7.50

              Snap Id      Snap Time      Sessions Curs/Sess  PDBs
            --------- ------------------- -------- --------- -----
Begin Snap: {begin:>9} {from}        40        .9     2
  End Snap: {end:>9} {to}        41       1.1     2
   Elapsed:           {minutes:>9.2} (mins)
   DB Time:           {:>9.2} (mins)

",
            time("DB time") / 60e6
        );
        let end_of = "                          ------------------------------------------------------\n\n";
        let title = |name: &str| format!("{name:<46}DB/Inst: SHOP/shop1  Snaps: {begin}-{end}\n");
        text += &title("Time Model Statistics");
        text += "-> Ordered by % or DB time desc, Statistic name\n\n";
        text += "Statistic Name                                       Time (s) % of DB Time\n";
        text += "------------------------------------------ ------------------ ------------\n";
        for (name, us) in counted.times_us() {
            let _ = writeln!(text, "{name:<42} {:>18.3}", us as f64 / 1e6);
        }
        text += end_of;
        for (name, is_of_sessions) in [("Foreground Wait Events", true), ("Background Wait Events", false)] {
            text += &title(name);
            text += "-> s  - second, ms - millisecond -    1000th of a second\n\n";
            text += "                                                             Avg\n";
            text += "                                        %Time Total Wait    wait    Waits   % DB\n";
            text += "Event                             Waits -outs   Time (s)    (ms)     /txn   time\n";
            text += "-------------------------- ------------ ----- ---------- ------- -------- ------\n";
            for (event, Event { count, us, .. }) in
                counted.events().filter(|(_, event)| event.is_of_sessions == is_of_sessions && event.count > 0)
            {
                let (seconds, mean) = (*us as f64 / 1e6, *us as f64 / 1e3 / *count as f64);
                let _ = writeln!(text, "{event:<26.26} {count:>12}     0 {seconds:>10.3} {mean:>7.2}      1.0    1.0");
            }
            text += end_of;
        }
        text += &title("Key Instance Activity Stats");
        text += "-> Ordered by statistic name\n\n";
        text += "Statistic                                     Total     per Second     per Trans\n";
        text += "-------------------------------- ------------------ -------------- -------------\n";
        for (name, count) in counted.statistics() {
            let _ = writeln!(text, "{name:<32} {count:>18}            1.0           1.0");
        }
        text += end_of;
        text + "End of Report\n"
    }
}
