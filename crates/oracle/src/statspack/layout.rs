//! What Statspack counted, with the sections and columns of its own report, so that people who know that can read it, and
//! whatever reads that, our importer among them. Times are as exact as they are kept.

use std::fmt::Write as _;

use super::Edges;
use model::record::{ServerStats, WaitStats, Waited};
use model::units::group_thousands;

/// Ends of the columns of histograms in milliseconds, but for the last; waits of the last but one are shorter than 1024 ms.
const EDGES_MS: [u64; 7] = [1, 2, 4, 8, 16, 32, 1_024];
const MILLISECOND_NS: u64 = 1_000_000;
/// A unit in which times of machines are counted.
const CENTISECOND_NS: u64 = 10_000_000;
/// Width of names of events in Statspack's own reports.
const MIN_EVENT_WIDTH: usize = 28;
/// How Statspack writes the times of snapshots, and of the start of an instance.
const SNAPSHOT_TIME: &str = "%d-%b-%y %H:%M:%S";
const STARTUP_TIME: &str = "%d-%b-%y %H:%M";

/// The text of a report.
pub(super) fn text(edges: &Edges, counted: &ServerStats) -> String {
    let mut text = String::new();
    // A text takes whatever is written to it.
    let _ = header(&mut text, edges).and_then(|()| sections(&mut text, edges, counted));
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

fn header(text: &mut String, edges: &Edges) -> std::fmt::Result {
    let Edges { dbid, instance, snapshots, taken, started, name, version, is_cluster, .. } = edges;
    let started = started[0].strftime(STARTUP_TIME).to_string();
    let [begin, end] = taken.map(|taken| taken.strftime(SNAPSHOT_TIME).to_string());
    let minutes = edges.elapsed_ns() as f64 / 60e9;
    writeln!(text, "STATSPACK report for")?;
    writeln!(text)?;
    writeln!(text, "Database    DB Id    Instance     Inst Num  Startup Time   Release     RAC")?;
    writeln!(text, "~~~~~~~~ ----------- ------------ -------- --------------- ----------- ---")?;
    writeln!(text, "         {dbid:>11} {name:<12} {instance:>8} {started:<15} {version:<11} {is_cluster:<3}")?;
    writeln!(text)?;
    writeln!(text, "Snapshot       Snap Id     Snap Time      Sessions Curs/Sess Comment")?;
    writeln!(text, "~~~~~~~~    ---------- ------------------ -------- --------- ------------------")?;
    writeln!(text, "Begin Snap: {:>10} {begin}", snapshots[0])?;
    writeln!(text, "  End Snap: {:>10} {end}", snapshots[1])?;
    writeln!(text, "   Elapsed: {minutes:>10.2} (mins)")?;
    writeln!(text)
}

fn sections(text: &mut String, edges: &Edges, counted: &ServerStats) -> std::fmt::Result {
    let snapshots = edges.snapshots;
    let title = |name: &str| {
        let [begin, end] = snapshots;
        format!("{name}  DB/Inst: {}/{}  Snaps: {begin}-{end}", edges.database, edges.name)
    };
    let end = "          -------------------------------------------------------------\n";
    let times = counted.own.iter().filter_map(|(name, ns)| Some((name.strip_suffix("_ns")?, *ns)));
    let (machine, times): (Vec<_>, Vec<_>) = times.partition(|(name, _)| name.ends_with("_TIME"));
    let db_ns = counted.own.get("DB time_ns").copied().filter(|ns| *ns > 0);

    writeln!(text, "{}\n", title("Time Model System Stats"))?;
    writeln!(text, "Statistic                                       Time (s) % DB time")?;
    writeln!(text, "----------------------------------- -------------------- ---------")?;
    for (name, ns) in times {
        let is_part = name != "DB time" && !name.starts_with("background");
        let share = db_ns.filter(|_| is_part).map(|db| format!("{:.1}", ns as f64 / db as f64 * 100.0));
        writeln!(text, "{name:<35} {:>20} {:>9}", seconds(ns), share.unwrap_or_default())?;
    }
    writeln!(text, "{end}")?;

    // Names are not cut, since two may begin alike.
    let event_width = counted.waits.iter().map(|wait| wait.event.len()).max().unwrap_or(0).max(MIN_EVENT_WIDTH);
    let rule = "-".repeat(event_width);
    type Whose = fn(&WaitStats) -> Option<Waited>;
    let whose: [(&str, Whose); 2] =
        [("Foreground Wait Events", WaitStats::of_sessions), ("Background Wait Events", WaitStats::of_background)];
    for (name, whose) in whose {
        let mut waits: Vec<(&str, Waited)> =
            counted.waits.iter().filter_map(|wait| Some((wait.event.as_str(), whose(wait)?))).collect();
        waits.sort_by_key(|(_, waited)| std::cmp::Reverse((waited.total_ns, waited.count)));
        writeln!(text, "{}\n", title(name))?;
        writeln!(text, "{:event_width$} {:>14} {:>16} {:>12}", "", "", "", "Avg")?;
        writeln!(text, "{:event_width$} {:>14} {:>16} {:>12}", "", "", "Total Wait", "wait")?;
        writeln!(text, "{:event_width$} {:>14} {:>16} {:>12}", "Event", "Waits", "Time (s)", "(ms)")?;
        writeln!(text, "{rule} -------------- ---------------- ------------")?;
        for (event, waited) in waits {
            let total = waited.total_ns.map(seconds).unwrap_or_default();
            let mean = waited.mean_ns().map(|ns| format!("{:.3}", ns / 1e6)).unwrap_or_default();
            writeln!(text, "{event:event_width$} {:>14} {total:>16} {mean:>12}", whole(waited.count))?;
        }
        writeln!(text, "{end}")?;
    }

    writeln!(text, "{}", title("Wait Event Histogram"))?;
    writeln!(text, "-> % of Waits - column heading: <=1s is truly <1024ms, >1s is truly >=1024ms\n")?;
    writeln!(text, "{:event_width$} {:>14} ----------------- % of Waits ------------------", "", "Total")?;
    writeln!(text, "{:event_width$} {:>14}  <1ms  <2ms  <4ms  <8ms <16ms <32ms  <=1s   >1s", "Event", "Waits")?;
    writeln!(text, "{rule} --------------{}", " -----".repeat(EDGES_MS.len() + 1))?;
    for wait in counted.waits.iter().filter(|wait| wait.waits.is_distribution()) {
        write!(text, "{:event_width$} {:>14}", wait.event, whole(wait.waits.count()))?;
        for share in shares(wait) {
            write!(text, " {:>5}", if share > 0.0 { format!("{share:.1}") } else { String::new() })?;
        }
        writeln!(text)?;
    }
    writeln!(text, "{end}")?;

    let elapsed_s = counted.elapsed_ns as f64 / 1e9;
    let commits = counted.counters.commits.unwrap_or(0) as f64;
    let each = |count: u64, by: f64| if by > 0.0 { format!("{:.1}", count as f64 / by) } else { String::new() };
    writeln!(text, "{}\n", title("Instance Activity Stats"))?;
    writeln!(
        text,
        "Statistic                                                     Total         per Second        per Trans"
    )?;
    writeln!(
        text,
        "----------------------------------------- ------------------------- ------------------ ----------------"
    )?;
    for (name, count) in counted.own.iter().filter(|(name, _)| !name.ends_with("_ns")) {
        let (second, transaction) = (each(*count, elapsed_s), each(*count, commits));
        writeln!(text, "{name:<41} {:>25} {second:>18} {transaction:>16}", whole(*count))?;
    }
    writeln!(text, "{end}")?;

    writeln!(text, "{}\n", title("OS Statistics"))?;
    writeln!(text, "Statistic                                  Total")?;
    writeln!(text, "------------------------- ----------------------")?;
    for (name, ns) in machine {
        writeln!(text, "{name:<25} {:>22}", whole(ns / CENTISECOND_NS))?;
    }
    writeln!(text, "{end}")?;
    writeln!(text, "End of Report")
}

/// Microseconds are what Oracle counts in.
fn seconds(ns: u64) -> String {
    format!("{:.6}", ns as f64 / 1e9)
}

fn whole(count: u64) -> String {
    group_thousands(count as f64)
}

/// Per cent of an event's waits, column by column.
fn shares(wait: &WaitStats) -> [f64; 8] {
    let mut counts = [0_u64; 8];
    for bucket in wait.waits.reported_buckets() {
        // Edges are whole powers of two, so none is between two columns.
        let at = bucket.to_ns.and_then(|to| EDGES_MS.iter().position(|edge| to <= edge * MILLISECOND_NS));
        counts[at.unwrap_or(EDGES_MS.len())] += bucket.count;
    }
    let all = counts.iter().sum::<u64>().max(1) as f64;
    counts.map(|count| count as f64 / all * 100.0)
}
