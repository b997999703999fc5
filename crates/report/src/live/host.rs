//! A second of a load on processors.

use analysis::rate;
use model::record::{HostStats, Interval};
use model::units::{percent, short_count};

/// The parts of a line in the order in which they are shown, and how soon they are left out; `None` of another load.
pub(super) fn parts(interval: &Interval) -> Option<Vec<(Option<String>, u8)>> {
    let host = interval.host.as_ref()?;
    let slices = rate(interval.counters.operations, interval.duration_ns);
    let kinds: Vec<&str> = host.work.keys().map(String::as_str).collect();
    let what = if let [only] = kinds.as_slice() { format!(" of {only}") } else { String::new() };
    let per_second = |ns: u64| percent(ns as f64 / host.elapsed_ns.max(1) as f64);
    let others = host.loaded.busy_ns.map(|busy| busy.saturating_sub(host.loaded.own_ns));
    Some(vec![
        (interval.warmup.then(|| "warm-up".to_owned()), 0),
        (slices.map(|slices| format!("{} slices/s{what}", short_count(slices))), 0),
        (Some(format!("{} % own", per_second(host.loaded.own_ns))), 3),
        (others.map(|ns| format!("{} % others", per_second(ns))), 4),
        (host.loaded.steal_ns.map(|ns| format!("{} % stolen", per_second(ns))), 1),
        (held(host), 1),
        (host.temperature_celsius.map(|celsius| format!("{celsius:.0} C")), 2),
        (host.frequency_hz.map(|hz| format!("{:.2} GHz", hz as f64 / 1e9)), 2),
    ])
}

fn held(host: &HostStats) -> Option<String> {
    let held = host.throttled.filter(|throttled| throttled.throttled_periods > 0)?;
    Some(format!("held back {} of {} periods", held.throttled_periods, held.periods))
}

/// The same as a line of its own.
pub(super) fn line(interval: &Interval, parts: Vec<(Option<String>, u8)>) -> String {
    let ended_s = (interval.offset_ns + interval.duration_ns) as f64 / 1e9;
    let words: Vec<String> = parts.into_iter().filter_map(|(part, _)| part).collect();
    format!("{ended_s:>5.0} s  {}", words.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{Counters, ProcessorTimes};

    #[test]
    fn a_second_tells_what_was_done_and_what_was_taken() {
        let loaded =
            ProcessorTimes { busy_ns: Some(1_900_000_000), steal_ns: Some(0), own_ns: 1_400_000_000, operations: 10 };
        let work = [("checksum".to_owned(), 10)].into();
        let host = HostStats { elapsed_ns: 1_000_000_000, loaded, work, ..HostStats::default() };
        let counters = Counters { operations: Some(10), ..Counters::default() };
        let second = Interval { duration_ns: 1_000_000_000, counters, host: Some(host), ..Interval::default() };
        let said = line(&second, parts(&second).unwrap());
        assert_eq!(said, "    1 s  10 slices/s of checksum  140.0 % own  50.0 % others  0.0 % stolen");
        assert_eq!(parts(&Interval::default()), None);
    }
}
