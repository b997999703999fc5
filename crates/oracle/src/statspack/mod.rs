//! What Statspack counted between two snapshots. Its own report is a script of SQL*Plus that no function returns, so what that is
//! made of is read, and laid out as it would be.

mod layout;

use jiff::civil::DateTime;

use super::connect::Connected;
use super::monitor::{Kept, counted_between};
use crate::driver::{Error, Row, ToDbValue};
use ::sql::ServerError;
use model::record::{OwnReport, ServerStats};

/// What came of asking for it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// What was counted, as text, and what its reader must know.
    Report(Box<ServerStats>, String, Vec<String>),
    /// Why nothing can be said of the time between the snapshots.
    Nothing(String),
}

/// What Statspack counted between the snapshots of a report.
///
/// # Errors
/// When its tables may not be read, or the connection is gone.
pub(super) fn report(connected: &Connected, report: &OwnReport, is_of_container: bool) -> Result<Outcome, ServerError> {
    let OwnReport { begin_snapshot, end_snapshot, instance, .. } = *report;
    let Some(edges) = Edges::find(connected, instance, [begin_snapshot, end_snapshot])? else {
        return Ok(Outcome::Nothing(format!(
            "the tables of PERFSTAT do not have snapshots {begin_snapshot} and {end_snapshot} of instance {instance}"
        )));
    };
    let [began, ended] = edges.started;
    if began != ended {
        return Ok(Outcome::Nothing(format!(
            "instance {instance} was started anew at {} between snapshots {begin_snapshot} and {end_snapshot}, so its counters \
             began again",
            ended.strftime(TIME)
        )));
    }
    let kept = Kept { dbid: edges.dbid, instance, snapshots: edges.snapshots, is_of_container };
    let (counted, set_back) = counted_between(connected, kept)?;
    let counted = ServerStats { node: report.node.clone(), elapsed_ns: edges.elapsed_ns(), ..counted };
    let mut remarks: Vec<String> = set_back
        .iter()
        .map(|view| format!("counters of `{view}` were set back between the snapshots: what those count is left out"))
        .collect();
    if is_of_container {
        remarks.push(
            "Statspack of a pluggable database keeps rows of the plain views, which may show work of other databases"
                .to_owned(),
        );
    }
    let text = layout::text(&edges, &counted);
    Ok(Outcome::Report(Box::new(counted), text, remarks))
}

/// Two snapshots of an instance, of the newest database that has such numbers; bound are those numbers and the instance's. Times are
/// those of the server's clock, in whole seconds.
const EDGES: &str = "SELECT b.dbid, TO_CHAR(b.snap_time, 'YYYY-MM-DD HH24:MI:SS'), TO_CHAR(e.snap_time, 'YYYY-MM-DD HH24:MI:SS'), \
    TO_CHAR(b.startup_time, 'YYYY-MM-DD HH24:MI:SS'), TO_CHAR(e.startup_time, 'YYYY-MM-DD HH24:MI:SS'), \
    d.db_name, d.instance_name, d.version, d.parallel \
    FROM perfstat.stats$snapshot b \
    JOIN perfstat.stats$snapshot e ON e.dbid = b.dbid AND e.instance_number = b.instance_number \
    JOIN perfstat.stats$database_instance d \
    ON d.dbid = e.dbid AND d.instance_number = e.instance_number AND d.startup_time = e.startup_time \
    WHERE b.snap_id = :1 AND e.snap_id = :2 AND e.instance_number = :3 ORDER BY e.snap_time DESC";
/// How Oracle is asked to write times.
const TIME: &str = "%Y-%m-%d %H:%M:%S";

/// Two snapshots, and what they are of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edges {
    dbid: u64,
    instance: u64,
    snapshots: [u64; 2],
    /// When they were taken.
    taken: [DateTime; 2],
    /// When the instance was started, as each has it.
    started: [DateTime; 2],
    database: String,
    name: String,
    version: String,
    /// `YES` in a cluster.
    is_cluster: String,
}

impl Edges {
    /// Those of these numbers; `None` where Statspack does not have them.
    fn find(connected: &Connected, instance: u64, snapshots: [u64; 2]) -> Result<Option<Self>, ServerError> {
        let values: [&dyn ToDbValue; 3] = [&snapshots[0], &snapshots[1], &instance];
        let read = |row: &Row| Self::of(row, instance, snapshots);
        Ok(connected.first("find the snapshots of Statspack", EDGES, &values, read)?.flatten())
    }

    /// `None` where a time is not written as it was asked for.
    fn of(row: &Row, instance: u64, snapshots: [u64; 2]) -> Result<Option<Self>, Error> {
        let text = |at: usize| Ok::<_, Error>(row.get::<Option<String>>(at)?.unwrap_or_default());
        let time = |at: usize| Ok::<_, Error>(DateTime::strptime(TIME, text(at)?).ok());
        let (Some(begin), Some(end), Some(began), Some(ended)) = (time(1)?, time(2)?, time(3)?, time(4)?) else {
            return Ok(None);
        };
        Ok(Some(Self {
            dbid: row.get(0)?,
            instance,
            snapshots,
            taken: [begin, end],
            started: [began, ended],
            database: text(5)?,
            name: text(6)?,
            version: text(7)?,
            is_cluster: text(8)?,
        }))
    }

    /// From the one to the other, by the server's clock.
    fn elapsed_ns(&self) -> u64 {
        let [begin, end] = self.taken;
        u64::try_from(end.duration_since(begin).as_nanos()).unwrap_or(0)
    }
}
