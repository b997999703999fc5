//! Caps, and series that have none.

use super::*;

const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const SECONDS: usize = 30;

fn even(noise: &mut Noise, rate: f64, deviation: f64) -> Vec<f64> {
    (0..SECONDS).map(|_| (rate * (1.0 + deviation * noise.normal())).max(0.0).round()).collect()
}

/// A sweep of depths with the rate that `rate` gives for each; the tail of latency is `tail` times as long as usual.
fn sweep(
    noise: &mut Noise,
    block_bytes: u64,
    deviation: f64,
    rate: impl Fn(f64) -> f64,
    tail: impl Fn(f64) -> f64,
) -> Run {
    let steps = DEPTHS.iter().zip(0..).map(|(depth, index)| {
        let load = f64::from(*depth);
        let counts = even(noise, rate(load), deviation);
        let mut step = io_step(index, *depth, block_bytes, &counts, 0);
        let service = &mut step.operations[0].service;
        let mean_ns = service.mean_ns().unwrap();
        service.record_n((mean_ns * 1.6 * tail(load)) as u64, service.count() / 20);
        step
    });
    io_run(steps.collect())
}

fn ceiling(run: &Run) -> Option<Ceiling> {
    analyse(run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
        Finding::Ceiling(ceiling) => Some(ceiling),
        _ => None,
    })
}

/// Runs with something to say.
pub(super) fn runs_with_findings() -> Vec<Run> {
    let of = |rate: fn(f64) -> f64, block_bytes, tail: fn(f64) -> f64| {
        sweep(&mut Noise::new(1), block_bytes, 0.003, rate, tail)
    };
    let mut generated = of(|depth| f64::min(depth * 2_000.0, 9_500.0), 8_192, |_| 1.0);
    for step in &mut generated.steps {
        let ceiling_operations_per_s = Some(10_000.0);
        step.generator = Some(model::record::Generator { ceiling_operations_per_s, ..Default::default() });
    }
    let counts = even(&mut Noise::new(1), 3_000.0, 0.003);
    vec![
        of(|depth| f64::min(depth * 1_000.0, 5_000.0), 8_192, |_| 1.0),
        of(|depth| f64::min(depth * 40.0, 250.0), 1 << 20, |_| 1.0),
        of(|depth| depth * 1_000.0, 8_192, |_| 1.0),
        of(|depth| 9_000.0 * depth / (depth + 2.0), 8_192, f64::sqrt),
        generated,
        io_run(vec![io_step(0, 32, 8_192, &counts, 0)]),
        over_sizes(&mut Noise::new(3)),
    ]
}

#[test]
fn a_planted_cap_is_found_with_its_value() {
    for seed in 0..SEEDS {
        let noise = &mut Noise::new(seed);
        let (cap, response_s) = (noise.between(1_000.0, 20_000.0), noise.between(100e-6, 600e-6));
        let cap = cap.min(12.0 / response_s);
        let run = sweep(noise, 8_192, 0.005, |depth| f64::min(depth / response_s, cap), |_| 1.0);
        let found = ceiling(&run).unwrap();
        assert_eq!(found.limit, Limit::RequestsOrThroughput, "seed {seed}: {found:?}");
        assert!((found.per_s / cap - 1.0).abs() < 0.01, "seed {seed}: {cap} {found:?}");
    }
}

/// The kernel's throttle lets a tenth of a second's requests through at once: with more outstanding, more of them wait for
/// the next slice.
#[test]
fn a_cap_that_lets_requests_through_in_slices_is_one_although_the_tail_widens() {
    let noise = &mut Noise::new(5);
    let mut run = sweep(noise, 8_192, 0.001, |_| 5_000.0, |_| 1.0);
    for step in &mut run.steps {
        let (all, sessions) = (step.counters.operations.unwrap(), u64::from(step.load.slots()));
        let waiting = all / 500 * sessions;
        // By Little's law, all together take as long as so many sessions are at work.
        let (total_ns, served_ns) = (sessions * SECONDS as u64 * 1_000_000_000, 150_000);
        let service = &mut step.operations[0].service;
        service.clear();
        service.record_n(served_ns, all - waiting);
        service.record_n((total_ns - served_ns * (all - waiting)) / waiting, waiting);
    }
    assert_eq!(ceiling(&run).map(|found| found.limit), Some(Limit::RequestsOrThroughput));
}

#[test]
fn a_planted_throughput_cap_is_found_with_its_value() {
    for seed in 0..SEEDS {
        let noise = &mut Noise::new(seed);
        let cap = noise.between(100.0, 400.0);
        let run = sweep(noise, 1 << 20, 0.003, |depth| f64::min(depth * 60.0, cap), |_| 1.0);
        let found = ceiling(&run).unwrap();
        assert_eq!(found.limit, Limit::Throughput, "seed {seed}: {found:?}");
        assert!((found.megabytes_per_s.unwrap() / (cap * 1.048_576) - 1.0).abs() < 0.01, "{cap} {found:?}");
    }
}

#[test]
fn a_device_that_slows_gradually_is_never_capped() {
    let capped = share(|noise| {
        let (contention, rate) = (noise.between(0.02, 0.5), noise.between(500.0, 20_000.0));
        let deviation = noise.between(0.005, 0.1);
        let slows = |depth: f64| rate * depth / (1.0 + contention * (depth - 1.0));
        let run = sweep(noise, 8_192, deviation, slows, |depth| 1.0 + contention * depth.sqrt());
        ceiling(&run).is_some_and(|found| found.is_cap())
    });
    assert!(capped <= 0.01, "{capped}");
}

#[test]
fn a_loop_limited_by_latency_is_never_capped() {
    let linear = |rate: f64| sweep(&mut Noise::new(1), 8_192, 0.003, |depth| depth * rate, |_| 1.0);
    let found = ceiling(&linear(1_000.0)).unwrap();
    assert!(matches!(found.limit, Limit::NotReached { .. }), "it ends at 64,000, which is published: {found:?}");
    let capped = share(|noise| {
        let (response_s, deviation) = (noise.between(50e-6, 5e-3), noise.between(0.0, 0.1));
        let run = sweep(noise, 8_192, deviation, |depth| depth / response_s, |_| 1.0);
        ceiling(&run).is_some_and(|found| !matches!(found.limit, Limit::NotReached { .. }))
    });
    assert!(capped <= 0.01, "{capped}");
}

#[test]
fn a_single_step_is_capped_only_at_a_published_number() {
    let one = |noise: &mut Noise, rate: f64, deviation: f64, depth: u32, block_bytes: u64| {
        let counts = even(noise, rate, deviation);
        let mut run = io_run(vec![io_step(0, depth, block_bytes, &counts, 0)]);
        assert_eq!(ceiling(&run), None, "what is simulated is as even at any rate");
        run.target.kind = Some(TargetKind::Block);
        ceiling(&run)
    };
    for seed in 0..SEEDS {
        let noise = &mut Noise::new(seed);
        let found = one(noise, 3_000.0, 0.003, 32, 8_192).unwrap();
        assert_eq!(
            (found.limit, found.like),
            (
                Limit::Requests,
                Some(
                    "Azure Premium SSD v2, AWS gp3, GCP hyperdisk-balanced, hyperdisk-balanced-ha, the burst of AWS gp2 and the largest OCI Lower Cost"
                )
            )
        );
        assert!((found.per_s / 3_000.0 - 1.0).abs() < 0.01);
        let found = one(noise, 125.0, 0.003, 32, 1 << 20).unwrap();
        assert_eq!((found.limit, found.like), (Limit::Throughput, Some("AWS gp3")));
    }
    let by_chance = share(|noise| {
        let (rate, deviation) = ((noise.between(4.0, 11.0)).exp(), noise.between(0.0, 0.1));
        let depth = noise.between(1.0, 64.0) as u32;
        one(noise, rate, deviation, depth, 8_192).is_some()
    });
    assert!(by_chance <= 0.01, "{by_chance}");
}

#[test]
fn an_open_loop_that_asks_for_more_and_gets_no_more_is_capped() {
    let noise = &mut Noise::new(7);
    let steps = [2_000.0, 4_000.0, 6_000.0, 8_000.0].iter().zip(0..).map(|(asked, index)| {
        let counts = even(noise, f64::min(*asked, 5_000.0), 0.003);
        let mut step = io_step(index, 256, 8_192, &counts, 0);
        step.load.rate_operations_per_s = Some(*asked);
        step
    });
    let found = ceiling(&io_run(steps.collect())).unwrap();
    assert_eq!((found.limit, found.like), (Limit::RequestsOrThroughput, Some("Azure P30")));
    assert_eq!(found.steps.len(), 2);
}

#[test]
fn request_sizes_tell_both_caps_and_take_the_place_of_single_ones() {
    let run = over_sizes(&mut Noise::new(3));
    let found = analyse(&run, &LatencyTarget::default());
    let caps: Vec<_> = found
        .iter()
        .filter_map(|finding| match finding {
            Finding::SizeLimits(limits) => Some(limits),
            _ => None,
        })
        .collect();
    let [limits] = caps.as_slice() else { panic!("{found:#?}") };
    assert!((limits.break_bytes().unwrap() / (42.7 * 1_024.0) - 1.0).abs() < 0.02, "{limits:?}");
    assert!(!found.iter().any(|finding| matches!(finding, Finding::Ceiling(_))), "{found:#?}");
}

/// Storage with a cap on requests and another on throughput, seen with many request sizes.
fn over_sizes(noise: &mut Noise) -> Run {
    let sizes = [4_u64, 8, 16, 32, 64, 128, 256, 1_024];
    let steps = sizes.iter().zip(0..).map(|(kib, index)| {
        let rate = f64::min(3_000.0, 131_072_000.0 / (*kib as f64 * 1_024.0));
        let mut step = io_step(index, 32, kib * 1_024, &even(noise, rate, 0.003), 0);
        step.parameters.insert("BLOCK_SIZE".to_owned(), format!("{kib}K"));
        step
    });
    io_run(steps.collect())
}

#[test]
fn a_rate_near_that_of_the_load_generator_alone_is_its_limit() {
    let noise = &mut Noise::new(1);
    let mut run = sweep(noise, 8_192, 0.005, |depth| f64::min(depth * 2_000.0, 9_500.0), |_| 1.0);
    for step in &mut run.steps {
        let (ceiling_operations_per_s, busiest_share) = (Some(10_000.0), 0.85);
        step.generator =
            Some(model::record::Generator { ceiling_operations_per_s, busiest_share, ..Default::default() });
    }
    assert!(matches!(ceiling(&run), Some(Ceiling { limit: Limit::Generator { .. }, .. })));
}
