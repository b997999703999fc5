//! Two snapshots as Statspack has them.

use jiff::civil::DateTime;

use crate::connect::Connected;
use crate::driver::{Error, Row, ToDbValue};
use ::sql::ServerError;

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
pub(super) const TIME: &str = "%Y-%m-%d %H:%M:%S";

/// Two snapshots, and what they are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edges {
    pub(super) dbid: u64,
    pub(super) instance: u64,
    pub(super) snapshots: [u64; 2],
    /// When they were taken.
    pub(super) taken: [DateTime; 2],
    /// When the instance was started, as each has it.
    pub(super) started: [DateTime; 2],
    pub(super) database: String,
    pub(super) name: String,
    pub(super) version: String,
    /// `YES` in a cluster.
    pub(super) is_cluster: String,
}

impl Edges {
    /// Those of these numbers; `None` where Statspack does not have them.
    pub(super) fn find(connected: &Connected, instance: u64, snapshots: [u64; 2]) -> Result<Option<Self>, ServerError> {
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
    pub(super) fn elapsed_ns(&self) -> u64 {
        let [begin, end] = self.taken;
        u64::try_from(end.duration_since(begin).as_nanos()).unwrap_or(0)
    }
}
