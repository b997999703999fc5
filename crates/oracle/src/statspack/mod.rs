//! What Statspack counted between two snapshots. Its own report is a script of SQL*Plus that no function returns, so what that is
//! made of is read, and laid out as it would be.

mod edges;
mod layout;

use self::edges::{Edges, TIME};
use super::connect::Connected;
use super::monitor::{Kept, counted_between};
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
