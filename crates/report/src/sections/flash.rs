//! What each level of the engine's cache answered, where it has a second one on flash.

use std::io;

use super::{Column, reads, steps};
use crate::paper::Paper;
use crate::words::{NONE, mean, number, quantile, share};
use analysis::{FLASH_READ, Figures, left_out, rate, shares_of_levels, wait};
use model::record::Run;

const LEVELS: [Column; 9] = [
    ("buffer cache %", |f| level(f, 0)),
    ("flash %", |f| level(f, 1)),
    ("data files %", |f| level(f, 2)),
    ("flash reads/s", |f| per_s(f, f.0.counters.flash_cache_reads)),
    ("flash mean", |f| wait(f.0, FLASH_READ).map_or_else(|| NONE.to_owned(), |wait| mean(&wait.times()))),
    ("flash p99", |f| wait(f.0, FLASH_READ).map_or_else(|| NONE.to_owned(), |wait| quantile(&wait.times(), 0.99))),
    ("data file mean", |f| reads(f, mean)),
    ("blocks to flash/s", |f| per_s(f, f.0.counters.flash_cache_writes)),
    ("left out %", |f| share(left_out(f.0))),
];

fn level(figures: &Figures<'_>, level: usize) -> String {
    share(shares_of_levels(figures.0).map(|shares| shares[level]))
}

fn per_s(figures: &Figures<'_>, count: Option<u64>) -> String {
    number(rate(count, figures.0.window.duration_ns))
}

/// A row each step; nothing where no step had a flash cache.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if run.steps.iter().all(|step| step.counters.flash_cache_reads.is_none()) {
        return Ok(());
    }
    steps(
        paper,
        run,
        "Levels of the cache (layer: engine; % of logical reads; left out: of the blocks for flash)",
        &LEVELS,
    )
}
