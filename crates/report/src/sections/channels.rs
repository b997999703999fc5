//! What each way to storage carried: paths and connections to a server, members of a disk group.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::text::Detail;
use crate::words::{UNKNOWN, duration, mean, number, quantile, share};
use model::record::{ChannelKind, ChannelStats, Histogram, Run, Step};
use model::units::group_thousands;

const PATHS: &str = "Paths (times from sent on a path to answered; NULL: a call that asks for nothing; % of requests or of the time TCP had data to send)";
const CONNECTIONS: &str = "Connections of each path (those of the same number of all threads together)";
const MEMBERS: &str =
    "Members of disk groups (times from sent to a member to answered; a mirrored write counts on each)";

/// What has a channel's figures per second.
type Column = (&'static str, fn(&ChannelStats, &Step) -> String);

const COLUMNS: [Column; 18] = [
    (
        "connections",
        |it, _| if it.kind == ChannelKind::Member { UNKNOWN.to_owned() } else { count(it.channels.into()) },
    ),
    ("reads/s", |it, step| per_s(Some(it.reads), step, 1.0)),
    ("writes/s", |it, step| per_s(Some(it.writes), step, 1.0)),
    ("read MB/s", |it, step| per_s(Some(it.read_bytes), step, 1e6)),
    ("write MB/s", |it, step| per_s(Some(it.write_bytes), step, 1e6)),
    ("read mean", |it, _| known(&it.read, mean)),
    ("p99", |it, _| known(&it.read, |times| quantile(times, 0.99))),
    ("write mean", |it, _| known(&it.write, mean)),
    ("p99", |it, _| known(&it.write, |times| quantile(times, 0.99))),
    ("NULL mean", |it, _| known(&it.nothing, mean)),
    ("outstanding", |it, step| number(mean_outstanding(it, step))),
    ("most", |it, _| count(it.most_outstanding.into())),
    ("errors", |it, _| number(Some(it.errors as f64))),
    ("queued %", |it, _| share(it.queued.and_then(|queued| of(queued, it.reads + it.writes)))),
    ("queued mean", |it, _| {
        let mean_ns = it.queued.zip(it.queued_ns).map(|(queued, ns)| ns.checked_div(queued));
        mean_ns.map_or_else(|| UNKNOWN.to_owned(), duration)
    }),
    ("sent again", |it, _| counted(it.retries)),
    ("reconnects", |it, _| counted(it.reconnects)),
    ("TCP resent", |it, _| counted(it.segments_resent)),
];

const COLUMNS_OF_TIMES: [Column; 7] = [
    ("by window %", |it, _| share(it.rwnd_limited_ns.zip(it.busy_ns).and_then(|(limited, busy)| of(limited, busy)))),
    // Shown where there were any.
    ("COMMITs for room", |it, _| counted(it.room_commits.filter(|count| *count > 0))),
    ("resent after restart", |it, _| counted(it.resent_writes.filter(|count| *count > 0))),
    ("MB", |it, _| number(it.resent_bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64 / 1e6))),
    ("repairs", |it, _| counted(it.repairs)),
    ("drops", |it, _| counted(it.drops)),
    ("resynced MB", |it, _| number(it.resynced_bytes.map(|bytes| bytes as f64 / 1e6))),
];

fn per_s(value: Option<u64>, step: &Step, unit: f64) -> String {
    let seconds = step.window.duration_ns as f64 / 1e9;
    number(value.filter(|_| seconds > 0.0).map(|value| value as f64 / unit / seconds))
}

fn known(times: &Histogram, show: fn(&Histogram) -> String) -> String {
    if times.count() == 0 { UNKNOWN.to_owned() } else { show(times) }
}

fn mean_outstanding(channel: &ChannelStats, step: &Step) -> Option<f64> {
    of(channel.outstanding_ns, step.window.duration_ns)
}

fn of(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn count(value: u64) -> String {
    group_thousands(value as f64)
}

fn counted(value: Option<u64>) -> String {
    number(value.map(|value| value as f64))
}

/// The tables of paths and of members, and in full that of connections; nothing where there are none.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let is_member = |channel: &ChannelStats| channel.kind == ChannelKind::Member;
    let several = run.steps.iter().flat_map(|step| &step.channels).filter(|one| !is_member(one));
    let are_apart = several.clone().any(|one| one.kind == ChannelKind::Connection && one.name != "1");
    table(paper, run, PATHS, ["step", "server", "path"], |step| {
        let all: Vec<ChannelStats> = step.channels.iter().filter(|one| !is_member(one)).cloned().collect();
        let named = |path: ChannelStats| ([path.of.clone(), path.name.clone()], path);
        ChannelStats::groups(&all).into_iter().map(named).collect()
    })?;
    if detail == Detail::Full && are_apart {
        table(paper, run, CONNECTIONS, ["step", "path", "connection"], |step| {
            let apart = step.channels.iter().filter(|one| one.kind == ChannelKind::Connection);
            let named = |one: &ChannelStats| {
                let path = one.within.as_ref().unwrap_or(&one.of);
                ([path.clone(), one.name.clone()], one.clone())
            };
            apart.map(named).collect()
        })?;
    }
    table(paper, run, MEMBERS, ["step", "group", "member"], |step| {
        let named = |one: &ChannelStats| {
            let group = one.within.as_ref().map_or_else(|| one.of.clone(), |within| format!("{} {within}", one.of));
            ([group, one.name.clone()], one.clone())
        };
        step.channels.iter().filter(|one| is_member(one)).map(named).collect()
    })
}

fn table(
    paper: &mut dyn Paper,
    run: &Run,
    title: &str,
    keys: [&'static str; 3],
    channels: impl Fn(&Step) -> Vec<([String; 2], ChannelStats)>,
) -> io::Result<()> {
    let columns = || COLUMNS.iter().chain(&COLUMNS_OF_TIMES);
    let mut grid = Grid::new(keys.len(), keys.into_iter().chain(columns().map(|(name, _)| *name)));
    for step in &run.steps {
        for (names, channel) in channels(step) {
            let values = columns().map(|(_, value)| value(&channel, step));
            grid.push([step.label.clone()].into_iter().chain(names).chain(values).collect());
        }
    }
    paper.table(title, &grid.with_known_columns())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Terminal;
    use model::record::sample;

    fn run() -> Run {
        let mut run = sample::sweep(10);
        let mut times = Histogram::default();
        times.record_n(400_000, 1_000);
        let step = &mut run.steps[0];
        let seconds = step.window.duration_ns / 1_000_000_000;
        let channel = |kind, within: &str, name: &str, reads| ChannelStats {
            kind,
            of: "filer".to_owned(),
            within: Some(within.to_owned()),
            name: name.to_owned(),
            channels: 2,
            reads,
            read: times.clone(),
            outstanding_ns: step.window.duration_ns * 3 / 2,
            most_outstanding: 64,
            ..ChannelStats::default()
        };
        let connections = [("10.0.0.1", "1", 1_000), ("10.0.0.1", "2", 500), ("10.0.0.2", "1", 7)];
        let paths = connections.map(|(path, name, rate)| channel(ChannelKind::Connection, path, name, rate * seconds));
        let member = ChannelStats { repairs: Some(3), ..channel(ChannelKind::Member, "fg1", "/u01/a", 250 * seconds) };
        step.channels = paths.into_iter().chain([member]).collect();
        run
    }

    fn text(run: &Run, detail: Detail) -> String {
        let mut out = Vec::new();
        write(&mut Terminal { out: &mut out, width: 200 }, run, detail).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn paths_are_the_sum_of_their_connections_and_members_stand_alone() {
        let text = text(&run(), Detail::Brief);
        let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
        let words = |name: &str| row(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(words("10.0.0.1")[3..5] == ["4", "1,500"] && words("10.0.0.1").contains(&"3.0".to_owned()), "{text}");
        assert!(words("10.0.0.2")[3..5] == ["2", "7.0"], "{text}");
        assert!(words("/u01/a").contains(&"250".to_owned()) && row("/u01/a").contains("fg1"), "{text}");
        assert!(text.contains("repairs") && !text.contains("TCP resent"), "{text}");
    }

    #[test]
    fn connections_have_rows_of_their_own_in_full_only() {
        let run = run();
        assert!(!text(&run, Detail::Brief).contains("Connections of"));
        assert!(text(&run, Detail::Full).contains("Connections of"));
    }

    #[test]
    fn a_run_without_channels_has_no_table() {
        assert_eq!(text(&sample::sweep(10), Detail::Full), "");
    }
}
