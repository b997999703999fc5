//! Twenty caps and twenty runs without one on a disk that somebody else uses now and then. It takes a quarter of an hour,
//! so only `make torture` runs it.

use plimsoll::analysis::{Ceiling, Finding};
use plimsoll::workload::Rng;

use super::group::Counted;
use super::reader::Reader;
use super::skip::skip;
use super::{Place, ceiling, is_cap, told};

const RUNS: u64 = 20;
const SWEEP: [&str; 4] = ["sweep", "--depth=8,32,128", "--duration=6", "--warmup=1"];

/// What a sweep beside the reader is said to be limited by, if anything is said.
fn verdict(place: &Place, seed: u64) -> Option<Ceiling> {
    let _reader = Reader::start(place.directory.path(), seed);
    let run = place.run(&SWEEP);
    for step in &run.steps {
        let seconds = step.intervals.iter().filter(|second| !second.warmup);
        eprintln!(
            "    {}: {:?}",
            step.label,
            seconds.map(|second| second.counters.operations.unwrap()).collect::<Vec<_>>()
        );
    }
    let found = ceiling(&told(&run)).cloned();
    eprintln!(
        "    {}",
        found.as_ref().map_or_else(|| "nothing is said".to_owned(), |found| Finding::Ceiling(found.clone()).sentence())
    );
    found
}

#[test]
fn caps_are_found_beside_a_competing_reader_and_none_where_there_is_none() {
    let seed = match std::env::var("PLIMSOLL_TORTURE_SECONDS") {
        Ok(_) => u64::from(std::process::id()),
        Err(_) => return skip("no cap was sought beside a competing reader: `make torture` does that"),
    };
    let place = match Place::new() {
        Ok(place) => place,
        Err(why) => return skip(format_args!("no cap was sought beside a competing reader: {why}")),
    };
    eprintln!("seed {seed}");
    let (mut found, mut invented) = (0, 0);
    for number in 0..RUNS {
        let cap = 2_000 + Rng::new(seed, number).below(18_001) as u32;
        place.group.limit(Counted::Requests, cap);
        eprintln!("{cap} requests/s:");
        let capped = verdict(&place, seed + number).filter(is_cap);
        found += u64::from(capped.is_some_and(|capped| (capped.per_s / f64::from(cap) - 1.0).abs() <= 0.01));
        place.group.limit(Counted::Requests, 0);
        eprintln!("no limit:");
        invented += u64::from(verdict(&place, seed + RUNS + number).is_some_and(|found| is_cap(&found)));
    }
    eprintln!("{found} of {RUNS} caps were found within 1 %; {invented} of {RUNS} runs without one were called capped");
    assert!(found + 1 >= RUNS, "only {found} of {RUNS} caps were found (seed {seed})");
    assert!(invented <= 1, "{invented} of {RUNS} runs without a cap were called capped (seed {seed})");
}
