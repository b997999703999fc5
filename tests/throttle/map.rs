//! The line over reads and writes under the kernel's throttle with a limit of its own for each. Takes minutes, so only `make torture`
//! runs it.

use super::{ALONE, ATTEMPTS, Place, skip};
use plimsoll::analysis::{MapAnswer, MapEnded};
use std::sync::PoisonError;

const READS: f64 = 1_200.0;
const WRITES: f64 = 400.0;

#[test]
fn the_line_of_two_limits_is_found_within_five_percent() {
    if std::env::var_os("PLIMSOLL_TORTURE_SECONDS").is_none() {
        return skip("no map was made of a throttled disk: `make torture` does that");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = match Place::new() {
        Ok(place) => place,
        Err(why) => return skip(why),
    };
    place.group.limit_directions(READS as u32, WRITES as u32);
    let words = ["map", "--limit=p99=150ms", "--rate=50..6k", "--duration=6", "--warmup=2", "--quiet"];
    for attempt in 1..=ATTEMPTS {
        let map = MapAnswer::of(&place.ended(place.start_plain(&words))).unwrap();
        let off = map.mixes.iter().filter_map(|mix| {
            let truth = (READS / mix.read_share).min(WRITES / (1.0 - mix.read_share));
            Some((mix.read_share, mix.line_per_s? / truth - 1.0))
        });
        let off: Vec<(f64, f64)> = off.collect();
        eprintln!("{} points, {:?}, off by {off:.3?}", map.points, map.ended);
        let is_near = off.len() >= 5 && off.iter().all(|(_, error)| error.abs() < 0.05);
        if is_near && map.points <= 40 && map.ended == MapEnded::Found {
            return;
        }
        assert!(attempt < ATTEMPTS, "{map:?}");
    }
}
