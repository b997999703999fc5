//! What fio prints: its JSON ([`json`]), its normal output ([`text`]) and its terse rows ([`terse`]); and what it logs of latencies
//! ([`histogram_log`]).
//!
//! Each of the first three is read into the same few things ([`job`]): an invocation, its jobs, and what each did in each direction;
//! [`assemble`] makes a draft of them, so that a run reads the same whichever way it was printed.
//!
//! Decisions that hold for all three:
//! - One step for each job as fio lists it: a process, or a group of them with `group_reporting`. Steps of one group ran at the
//!   same time, which a note says; their sum is reported only where fio reports one itself.
//! - Latency is that of completion (`clat`) unless only the total (`lat`) has percentiles. Of that the histogram is made, from
//!   bins where there are any, else from percentiles.
//! - Status reports of one invocation are cumulative: only the last counts.
//! - Where a file holds several forms of one result, only one of them is taken: JSON, else terse rows, else normal output.

mod assemble;
mod at_once;
pub(super) mod histogram_log;
mod job;
pub(super) mod json;
mod latency;
#[cfg(test)]
mod mangled;
mod options;
pub(super) mod terse;
#[cfg(test)]
mod tests;
pub(super) mod text;
#[cfg(test)]
mod unusual;

/// What to say of status reports that a later one replaced.
fn of_earlier_reports(left_out: usize) -> Option<String> {
    let said = || {
        format!(
            "fio reported {left_out} times before on the same jobs; reports are cumulative, and only the last counts."
        )
    };
    (left_out > 0).then(said)
}
