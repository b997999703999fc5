//! Counters of an instance as Statspack has kept them: its tables hold rows of the views at the instants of its snapshots.

use super::super::connect::Connected;
use super::super::driver::ToDbValue;
use super::super::meanings::{STATISTICS, TIMES};
use super::reading::{InstanceReading, compare};
use super::views::{Form, IS_MACHINE_TIME, Part, Scope, listed};
use ::sql::ServerError;
use model::record::ServerStats;

/// Two snapshots of an instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    /// The database, as the snapshots have it.
    pub(crate) dbid: u64,
    /// Its instance.
    pub(crate) instance: u64,
    /// Numbers of the snapshots, the earlier one first.
    pub(crate) snapshots: [u64; 2],
    /// Whether they were taken in a pluggable database.
    pub(crate) is_of_container: bool,
}

/// How each part is asked for; bound are the snapshot, the database and the instance. The monitor asks the views for the same
/// counters.
fn forms() -> [(Part, Form); 5] {
    let of = |table: &str| format!("WHERE {table}.snap_id = :1 AND {table}.dbid = :2 AND {table}.instance_number = :3");
    let form = |view, sql, texts, numbers| Form::new(view, sql, (texts, numbers));
    let statistics = format!(
        "SELECT s.name, s.value FROM perfstat.stats$sysstat s {} AND s.name IN ({})",
        of("s"),
        listed(&STATISTICS)
    );
    let times = format!(
        "SELECT n.stat_name, t.value FROM perfstat.stats$sys_time_model t \
         JOIN perfstat.stats$time_model_statname n ON n.stat_id = t.stat_id {} AND n.stat_name IN ({})",
        of("t"),
        listed(&TIMES)
    );
    let machine = format!(
        "SELECT n.stat_name, o.value FROM perfstat.stats$osstat o \
         JOIN perfstat.stats$osstatname n ON n.osstat_id = o.osstat_id {} AND {IS_MACHINE_TIME}",
        of("o")
    );
    // Statspack keeps no classes of events.
    let events = format!(
        "SELECT e.event, n.wait_class, e.total_waits, e.time_waited_micro, e.total_waits_fg, e.time_waited_micro_fg \
         FROM perfstat.stats$system_event e JOIN v$event_name n ON n.name = e.event {} AND n.wait_class <> 'Idle'",
        of("e")
    );
    let histograms = format!(
        "SELECT e.event, h.wait_time_milli, h.wait_count FROM perfstat.stats$event_histogram h \
         JOIN perfstat.stats$system_event e ON e.snap_id = h.snap_id AND e.dbid = h.dbid \
         AND e.instance_number = h.instance_number AND e.event_id = h.event_id {} AND h.wait_count > 0",
        of("h")
    );
    [
        (Part::Statistics, form("stats$sysstat", statistics, 1, 1)),
        (Part::Times, form("stats$sys_time_model", times, 1, 1)),
        (Part::Machine, form("stats$osstat", machine, 1, 1)),
        (Part::Events, form("stats$system_event", events, 2, 4)),
        (Part::Histograms, form("stats$event_histogram", histograms, 1, 2)),
    ]
}

/// What was counted between two snapshots, and the views whose counters were set back meanwhile.
///
/// # Errors
/// When the tables may not be read, or the connection is gone.
pub(crate) fn counted_between(connected: &Connected, kept: Kept) -> Result<(ServerStats, Vec<String>), ServerError> {
    let scope = if kept.is_of_container { Scope::Container } else { Scope::Instance };
    let read = |snapshot: u64| {
        let mut reading = InstanceReading::new(scope);
        for (part, form) in forms() {
            let values: [&dyn ToDbValue; 3] = [&snapshot, &kept.dbid, &kept.instance];
            reading.take(part, &form, &form.read_with(connected, "read what Statspack has kept", &values)?);
        }
        Ok(reading)
    };
    let [earlier, later] = kept.snapshots;
    let (earlier, mut later) = (read(earlier)?, read(later)?);
    let mut stats = ServerStats::default();
    let set_back = compare(&earlier, &mut later, &mut stats);
    Ok((stats, set_back))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Need, grants};

    #[test]
    fn every_table_that_is_asked_can_be_granted() {
        let granted: Vec<String> = grants("U", "T")
            .into_iter()
            .filter(|grant| grant.need == Need::Statspack)
            .map(|grant| grant.statement.to_lowercase().replace("v_$", "v$").replace("sys.", ""))
            .collect();
        for (_, form) in forms() {
            let tables =
                form.sql.split([' ', '(']).filter(|word| word.starts_with("perfstat.") || word.starts_with("v$"));
            assert!(tables.clone().count() > 0, "{}", form.sql);
            for table in tables {
                assert!(granted.contains(&format!("grant select on {table} to \"u\"")), "{table}");
            }
        }
    }

    #[test]
    fn each_placeholder_stands_once_and_in_the_order_in_which_it_is_bound() {
        for (_, form) in forms() {
            let bound: Vec<&str> = form.sql.match_indices(':').map(|(at, _)| &form.sql[at..at + 2]).collect();
            assert_eq!(bound, [":1", ":2", ":3"], "{}", form.sql);
        }
    }
}
