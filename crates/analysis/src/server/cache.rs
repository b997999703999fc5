//! Whether buffer misses are figures of storage or of the page cache.

use super::{Served, ServerFinding};
use crate::worst;
use crate::{measured, proof};
use model::record::facts::{DIRECT_READS, Term};
use model::record::{Run, Step};
use model::units::Bytes;

/// Shares of buffer misses that the page cache answered, from which that is reported.
const SERVED: f64 = 0.1;
/// Fewer buffer misses than this say nothing.
const ENOUGH_MISSES: u64 = 1_000;

pub(super) fn find(run: &Run) -> Option<ServerFinding> {
    if passes_by_page_cache(run) {
        return None;
    }
    let share = |step: &Step| enough(run, step)?.page_cache_share().filter(|share| *share >= SERVED);
    if let Some((steps, share)) = worst(run, share) {
        let is_private = proof::fact(run, "started_by_us").as_deref() == Some("yes");
        let limited_to = run.target.facts.get("host_memory").cloned();
        return Some(ServerFinding::PageCacheServed { steps, share, is_private, limited_to });
    }
    let is_unknown = |step: &&Step| enough(run, step).is_some_and(|served| served.page_cache_share().is_none());
    let steps: Vec<String> = measured(run).filter(is_unknown).map(|step| step.label.clone()).collect();
    let data = run.target.data_bytes.map(Bytes);
    let direct = run.target.facts.get(Term::DirectReads.fact().0).cloned();
    (!steps.is_empty()).then_some(ServerFinding::PageCacheUnknown { steps, data, direct })
}

/// What servers reported on a step, if blocks were missed in numbers.
fn enough<'a>(run: &Run, step: &'a Step) -> Option<Served<'a>> {
    let served = Served::of(run, step);
    served.buffer_misses().is_some_and(|misses| misses >= ENOUGH_MISSES).then_some(served)
}

/// Whether the server was asked to read data files directly.
fn passes_by_page_cache(run: &Run) -> bool {
    proof::fact(run, DIRECT_READS).as_deref() == Some("yes")
}
