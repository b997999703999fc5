//! Twenty caps and twenty runs without one on a disk that somebody else uses now and then. It takes a quarter of an hour,
//! so only `make torture` runs it.

use std::sync::PoisonError;

use plimsoll::analysis::{Ceiling, Finding};
use plimsoll::workload::Rng;

use super::group::Counted;
use super::reader::Reader;
use super::skip::skip;
use super::{ALONE, Place, ceiling, is_cap, reported};

const RUNS: u64 = 20;
const SWEEP: [&str; 5] = ["sweep", "--depth=8,32,128", "--duration=6", "--warmup=1", "--no-pulse"];

/// Runs of which the disk gave less than the cap in most seconds of the most load are repeated so often: there the cap was not
/// the limit, and somebody else than the reader is on the disk.
const MAX_REPEATS: u32 = 3;

/// What a sweep beside the reader is said to be limited by, if anything is said; and whether the disk gave less than `cap` in
/// most seconds of the most load.
fn verdict(place: &Place, seed: u64, cap: u32) -> (Option<Ceiling>, bool) {
    let _reader = Reader::start(place.directory.path(), seed);
    let run = place.run(&SWEEP);
    let mut starved = false;
    for step in &run.steps {
        let seconds = step.intervals.iter().filter(|second| !second.warmup);
        let counts: Vec<u64> = seconds.map(|second| second.counters.operations.unwrap()).collect();
        let below = counts.iter().filter(|count| (**count as f64) < 0.98 * f64::from(cap)).count();
        eprintln!("    {}: {counts:?}", step.label);
        starved = 2 * below > counts.len();
    }
    let found = ceiling(&reported(&run)).cloned();
    let sentence = found.as_ref().map(|found| Finding::Ceiling(found.clone()).sentence());
    eprintln!("    {}", sentence.unwrap_or_else(|| "nothing is said".to_owned()));
    (found, starved)
}

/// The same below a cap, where that is the limit.
fn verdict_at(place: &Place, seed: u64, cap: u32) -> Option<Ceiling> {
    place.group.limit(Counted::Requests, cap);
    eprintln!("{cap} requests/s:");
    let mut repeats = 0;
    let found = loop {
        match verdict(place, seed, cap) {
            (found, true) if !found.as_ref().is_some_and(is_cap) && repeats < MAX_REPEATS => {
                eprintln!("  the disk gave less, so it is repeated:");
                repeats += 1;
            }
            (found, _) => break found,
        }
    };
    place.group.limit(Counted::Requests, 0);
    found.filter(is_cap)
}

#[test]
fn caps_are_found_beside_a_competing_reader_and_none_where_there_is_none() {
    let seed = match std::env::var("PLIMSOLL_TORTURE_SECONDS") {
        Ok(_) => u64::from(std::process::id()),
        Err(_) => return skip("no cap was sought beside a competing reader: `make torture` does that"),
    };
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = match Place::new() {
        Ok(place) => place,
        Err(why) => return skip(format_args!("no cap was sought beside a competing reader: {why}")),
    };
    eprintln!("seed {seed}");
    let (mut found, mut invented) = (0, 0);
    for number in 0..RUNS {
        let cap = 2_000 + Rng::new(seed, number).below(18_001) as u32;
        let capped = verdict_at(&place, seed + number, cap);
        found += u64::from(capped.is_some_and(|capped| (capped.per_s / f64::from(cap) - 1.0).abs() <= 0.01));
        eprintln!("no limit:");
        invented += u64::from(verdict(&place, seed + RUNS + number, 0).0.is_some_and(|found| is_cap(&found)));
        eprintln!("  so far {found} of {} found, {invented} invented", number + 1);
    }
    eprintln!("{found} of {RUNS} caps were found within 1 %; {invented} of {RUNS} runs without one were called capped");
    assert!(found + 1 >= RUNS, "only {found} of {RUNS} caps were found (seed {seed})");
    assert!(invented <= 1, "{invented} of {RUNS} runs without a cap were called capped (seed {seed})");
}
