//! Episodes of slow operations, each with its cause.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::UNKNOWN;
use analysis::{Episode, Stalls};
use model::record::Run;
use model::units::{group_thousands, percent};

/// Most rows of each step.
const MAX_ROWS: usize = 100;

/// A table of the episodes of each step that had any; of many those with most of the slow time.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let mut grid = Grid::new(3, ["step", "cause", "seen", "at", "length", "operations", "longest", "% of slow time"]);
    let mut left_out = 0;
    for stalls in Stalls::all(run) {
        let mut shares: Vec<f64> = stalls.episodes.iter().map(|episode| episode.share).collect();
        shares.sort_by(|one, other| other.total_cmp(one));
        let least = shares.get(MAX_ROWS - 1).copied().unwrap_or(0.0);
        let shown: Vec<&Episode> =
            stalls.episodes.iter().filter(|episode| episode.share >= least).take(MAX_ROWS).collect();
        left_out += stalls.episodes.len() - shown.len();
        shown.into_iter().for_each(|episode| grid.push(row(&stalls.step, episode)));
    }
    paper.table("Episodes of slow operations (at: from the start of the window)", &grid)?;
    match left_out {
        0 => Ok(()),
        more => paper.remark(&format!("{more} more episodes had less of the slow time.")),
    }
}

fn row(step: &str, episode: &Episode) -> Vec<String> {
    let Episode { from, length, operations, longest, share, blame } = episode;
    let (cause, seen) = match blame {
        Some(blame) => (blame.cause.words(), blame.evidence.clone()),
        None => ("unexplained".to_owned(), UNKNOWN.to_owned()),
    };
    vec![
        step.to_owned(),
        cause,
        seen,
        if from.0 == 0 { "0 s".to_owned() } else { from.to_string() },
        length.to_string(),
        group_thousands(*operations as f64),
        longest.to_string(),
        percent(*share),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Terminal;
    use model::record::sample;

    #[test]
    fn each_episode_has_a_row_with_its_cause_and_what_was_seen() {
        let written = |run: &Run| {
            let mut out = Vec::new();
            write(&mut Terminal { out: &mut out, width: 200 }, run).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(&sample::sweep(5)), "");
        let text = written(&sample::stalls::stalled());
        let row = text.lines().find(|line| line.contains("completed no")).unwrap_or_else(|| panic!("{text}"));
        for word in ["s32_t1", "4.00 s", "500 ms", "32", "the device completed no request"] {
            assert!(row.contains(word), "{word}: {text}");
        }
        assert!(text.contains("unexplained"), "{text}");
    }
}
