//! The table `episodes`: when operations were slow together, and why.

use super::steps::of_step;
use super::table::{Cell, Field, Kind, Table, columns, count, field, fill, number, text};
use analysis::{Blame, Episode, Stalls};
use model::record::{Run, Step};

pub(super) const EPISODES: Table = Table {
    name: "episodes",
    words: "an episode of slow operations of a step, with its cause",
    columns: || columns(&episodes()),
    rows: |exported, out| fill(&episodes(), rows(exported.key, exported.run), out),
};

pub(crate) struct Row<'a> {
    pub(crate) key: &'a str,
    pub(crate) step: &'a Step,
    threshold_ns: u64,
    episode: Episode,
}

/// The episodes of all steps, in the order in which they began.
pub(crate) fn rows<'a>(key: &'a str, run: &'a Run) -> impl Iterator<Item = Row<'a>> {
    Stalls::all(run).into_iter().flat_map(move |Stalls { place, threshold, episodes, .. }| {
        let row = move |episode| Row { key, step: &run.steps[place], threshold_ns: threshold.0, episode };
        episodes.into_iter().map(row)
    })
}

fn episodes<'a>() -> Vec<Field<Row<'a>>> {
    let mut fields = Vec::from(of_step!(Row<'a>));
    fields.extend(what());
    fields
}

fn blame(row: &Row<'_>, of: impl Fn(&Blame) -> String) -> Cell {
    row.episode.blame.as_ref().map_or(Cell::Unknown, |blame| text(&of(blame)))
}

/// What an episode was.
pub(crate) fn what<'a>() -> Vec<Field<Row<'a>>> {
    vec![
        field("cause", Kind::Text, "", "why; NULL where it is unexplained", |row| {
            blame(row, |blame| blame.cause.words())
        }),
        field("evidence", Kind::Text, "", "what was seen that says so", |row| {
            blame(row, |blame| blame.evidence.clone())
        }),
        field("from_ns", Kind::Count, "ns", "when it began, from the start of the window", |row| {
            count(row.episode.from.0)
        }),
        field("length_ns", Kind::Count, "ns", "until the last of its operations had ended", |row| {
            count(row.episode.length.0)
        }),
        field("operations", Kind::Count, "", "slow operations, as far as is known", |row| {
            count(row.episode.operations)
        }),
        field("longest_ns", Kind::Count, "ns", "the longest of them, from due to finished", |row| {
            count(row.episode.longest.0)
        }),
        field("share", Kind::Number, "", "of all time beyond the threshold, 0 to 1", |row| number(row.episode.share)),
        field("threshold_ns", Kind::Count, "ns", "what took longer is slow in this step", |row| {
            count(row.threshold_ns)
        }),
    ]
}
