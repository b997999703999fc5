//! Bursts, rises, and what is neither.

use super::*;
use crate::burst::{bursts, rises};

/// Two levels with noise of `deviation` from second to second.
fn two(noise: &mut Noise, change: usize, seconds: usize, levels: (f64, f64), deviation: f64) -> Vec<f64> {
    (0..seconds)
        .map(|second| if second < change { levels.0 } else { levels.1 })
        .map(|rate| (rate * (1.0 + deviation * noise.normal())).max(0.0).round())
        .collect()
}

fn one_step(counts: &[f64]) -> Run {
    io_run(vec![io_step(0, 16, 8_192, counts, 0)])
}

/// Runs with something to say.
pub(super) fn runs_with_findings() -> Vec<Run> {
    let of = |change, levels| one_step(&two(&mut Noise::new(1), change, 120, levels, 0.01));
    let mut writes = of(60, (3_500.0, 500.0));
    for counters in writes.steps[0].intervals.iter_mut().map(|interval| &mut interval.counters) {
        (counters.physical_writes, counters.physical_reads) = (counters.physical_reads, None);
        (counters.physical_write_bytes, counters.physical_read_bytes) = (counters.physical_read_bytes, None);
    }
    vec![of(60, (3_000.0, 300.0)), of(60, (300.0, 3_000.0)), of(120, (3_000.0, 0.0)), writes]
}

#[test]
fn a_planted_burst_is_found_with_its_rates_its_moment_and_its_credit() {
    for seed in 0..SEEDS {
        let noise = &mut Noise::new(seed);
        let seconds = noise.between(90.0, 400.0) as usize;
        let change = noise.between(30.0, seconds as f64 - 30.0) as usize;
        let burst = noise.between(1_000.0, 10_000.0);
        let base = burst * noise.between(0.05, 0.6);
        let counts = two(noise, change, seconds, (burst, base), 0.03);
        let found = bursts(&one_step(&counts));
        let [found] = found.as_slice() else { panic!("seed {seed}: {found:?}") };
        assert!((found.burst_per_s / burst - 1.0).abs() < 0.02, "seed {seed}: {burst} {found:?}");
        assert!((found.base_per_s / base - 1.0).abs() < 0.05, "seed {seed}: {base} {found:?}");
        assert!((found.after.as_seconds() - change as f64).abs() <= 2.0, "seed {seed}: {change} {found:?}");
        let credit = (burst - base) * change as f64;
        assert!((found.credit / credit - 1.0).abs() < 0.1, "seed {seed}: {credit} {found:?}");
    }
}

#[test]
fn a_burst_that_barely_exceeds_its_base_is_found_between_two_caps() {
    for seed in 0..SEEDS {
        let noise = &mut Noise::new(seed);
        let counts = two(noise, 200, 300, (3_000.0, 2_700.0), 0.01);
        let found = bursts(&one_step(&counts));
        assert!(matches!(found.as_slice(), [found] if (found.after.as_seconds() - 200.0).abs() <= 2.0), "{found:?}");
    }
}

#[test]
fn a_burst_is_found_over_the_steps_of_a_long_run_and_with_its_warmup() {
    let counts = |seed: u64, seconds, levels| two(&mut Noise::new(seed), 600, seconds, levels, 0.03);
    let steps = vec![
        io_step(0, 16, 8_192, &counts(1, 600, (3_000.0, 0.0)), 10),
        io_step(1, 16, 8_192, &two(&mut Noise::new(2), 300, 900, (3_000.0, 300.0), 0.03), 0),
    ];
    let found = bursts(&io_run(steps));
    let [found] = found.as_slice() else { panic!("{found:?}") };
    assert!((found.after.as_seconds() - 900.0).abs() <= 2.0, "{found:?}");
    assert!((found.credit / (2_700.0 * 910.0) - 1.0).abs() < 0.02, "ten seconds of warm-up used credit too: {found:?}");
    assert_eq!(found.steps.len(), 2);
    assert_eq!(found.like.as_deref(), Some("AWS gp2 of about 100 GiB"));
}

#[test]
fn a_burst_is_found_in_spite_of_stalls() {
    for seed in 0..SEEDS {
        let noise = &mut Noise::new(seed);
        let mut counts = two(noise, 100, 200, (3_000.0, 300.0), 0.03);
        for low in [10.0, 110.0] {
            let (at, length) = (noise.between(low, low + 70.0) as usize, noise.between(1.0, 4.0) as usize);
            counts[at..at + length].fill(0.0);
        }
        let found = bursts(&one_step(&counts));
        let [found] = found.as_slice() else { panic!("seed {seed}: {found:?}") };
        assert!((found.after.as_seconds() - 100.0).abs() <= 2.0, "seed {seed}: {found:?}");
        assert!((found.burst_per_s / 3_000.0 - 1.0).abs() < 0.02, "seed {seed}: {found:?}");
    }
}

#[test]
fn two_steps_that_differ_are_not_one_load_with_a_burst() {
    let counts = |seed, rate| two(&mut Noise::new(seed), 0, 60, (0.0, rate), 0.02);
    let steps = vec![io_step(0, 16, 8_192, &counts(1, 3_000.0), 0), io_step(1, 16, 8_192, &counts(2, 1_000.0), 0)];
    assert!(bursts(&io_run(steps)).is_empty());
}

#[test]
fn the_answers_of_a_run_with_a_burst_begin_with_it_and_say_no_more_of_steadiness() {
    let run = one_step(&two(&mut Noise::new(1), 40, 100, (3_000.0, 300.0), 0.01));
    let found = analyse(&run, &LatencyTarget::default());
    assert!(matches!(found[0], Finding::Burst(_)), "{found:#?}");
    let again =
        |finding: &Finding| matches!(finding, Finding::NotSteady(_) | Finding::Ceiling(_) | Finding::CreditNotSeen(_));
    assert!(!found.iter().any(again), "{found:#?}");
    assert!(found[0].sentence().contains("then 300 requests/s"), "{}", found[0].sentence());
}

#[test]
fn a_minute_is_not_called_sustained_where_a_credit_could_last_longer() {
    let run = one_step(&two(&mut Noise::new(1), 60, 60, (3_000.0, 0.0), 0.01));
    let found = analyse(&run, &LatencyTarget::default());
    let sentences: Vec<_> = found.iter().map(Finding::sentence).collect();
    assert!(
        sentences.iter().any(|sentence| sentence.contains("AWS gp2 of 33 GiB would last for 32 minutes")),
        "{sentences:#?}"
    );
    let fast = one_step(&two(&mut Noise::new(1), 60, 60, (90_000.0, 0.0), 0.01));
    assert_eq!(crate::burst::not_seen(&fast), None, "no known volume bursts so fast");
}

#[test]
fn large_requests_spend_a_credit_of_bytes() {
    let counts = two(&mut Noise::new(3), 100, 200, (170.0, 100.0), 0.01);
    let found = bursts(&io_run(vec![io_step(0, 16, 1 << 20, &counts, 0)]));
    let [found] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(found.counted, Counted::Bytes);
    assert!((found.credit / (70.0 * 100.0 * 1_048_576.0) - 1.0).abs() < 0.03, "{found:?}");
}

#[test]
fn a_rise_is_reported_as_a_cache_that_warmed_and_never_as_a_burst() {
    for seed in 0..SEEDS {
        let run = one_step(&two(&mut Noise::new(seed), 40, 120, (1_000.0, 3_000.0), 0.05));
        assert!(bursts(&run).is_empty(), "seed {seed}");
        assert!(matches!(rises(&run).as_slice(), [rise] if (rise.after.as_seconds() - 40.0).abs() <= 2.0), "{seed}");
    }
}

#[test]
fn fewer_reads_because_a_cache_warmed_are_not_a_burst() {
    let mut run = one_step(&two(&mut Noise::new(1), 60, 120, (3_000.0, 1_000.0), 0.02));
    run.steps[0].intervals.iter_mut().for_each(|interval| interval.counters.operations = Some(500));
    assert!(bursts(&run).is_empty());
}

/// A way for a rate to vary without two levels.
type Kind = (&'static str, fn(&mut Noise, usize) -> Vec<f64>);

const UNPLANTED: &[Kind] = &[
    ("Poisson counts", |noise, seconds| {
        let rate = noise.between(50.0, 20_000.0);
        poisson(noise, &vec![rate; seconds])
    }),
    ("noise of 20 % from second to second", |noise, seconds| {
        (0..seconds).map(|_| (3_000.0 * (1.0 + 0.2 * noise.normal())).max(0.0)).collect()
    }),
    ("slow noise of 10 to 20 %", |noise, seconds| {
        let (deviation, memory_s) = (noise.between(0.1, 0.2), noise.between(3.0, 60.0));
        noise.slow(seconds, deviation, memory_s).iter().map(|stray| (3_000.0 * (1.0 + stray)).max(0.0)).collect()
    }),
    ("stalls", |noise, seconds| {
        let mut rates = vec![3_000.0; seconds];
        for _ in 0..4 {
            let (at, length) = (noise.between(0.0, seconds as f64 - 9.0) as usize, noise.between(1.0, 9.0) as usize);
            rates[at..at + length].fill(0.0);
        }
        rates.iter().map(|rate| (rate * (1.0 + 0.05 * noise.normal())).max(0.0)).collect()
    }),
    ("a drift", |noise, seconds| {
        let end = noise.between(0.3, 0.95);
        let rate = |second: usize| 3_000.0 * (1.0 - (1.0 - end) * second as f64 / seconds as f64);
        (0..seconds).map(|second| (rate(second) * (1.0 + 0.03 * noise.normal())).max(0.0)).collect()
    }),
    ("a slow decay", |noise, seconds| {
        let time = noise.between(0.1, 1.0) * seconds as f64;
        let rate = |second: usize| 1_000.0 + 3_000.0 * (-(second as f64) / time).exp();
        (0..seconds).map(|second| (rate(second) * (1.0 + 0.03 * noise.normal())).max(0.0)).collect()
    }),
];

#[test]
fn what_was_not_planted_is_hardly_ever_found() {
    for (name, rates) in UNPLANTED {
        for seconds in [20, 30, 60, 120, 300, 1_800] {
            let found = share(|noise| two_levels(&rates(noise, seconds)).is_some());
            assert!(found <= 0.01, "{name} over {seconds} s: {found}");
        }
    }
}
