//! Knees that stay where they are however far a sweep goes, and curves through noise.

use proptest::prelude::*;

use super::*;
use model::record::Intensity;

const SECONDS: usize = 20;

fn closed(noise: &mut Noise, depths: &[u32], rate: impl Fn(f64) -> f64, deviation: f64) -> Run {
    let steps = depths.iter().zip(0..).map(|(depth, index)| {
        let rate = rate(f64::from(*depth)) * (1.0 + deviation * noise.normal());
        io_step(index, *depth, 8_192, &[rate.round(); SECONDS], 0)
    });
    io_run(steps.collect())
}

/// An open loop over `rates` whose mean response at each is `response_s`, served in `service_s`.
fn open(rates: &[f64], service_s: f64, response_s: impl Fn(f64) -> f64) -> Run {
    let steps = rates.iter().zip(0..).map(|(rate, index)| {
        let mut step = io_step(index, 256, 8_192, &[*rate; SECONDS], 0);
        step.load = Intensity { sessions: Some(256), rate_operations_per_s: Some(*rate), ..Intensity::default() };
        let of = |seconds: f64| {
            let mut times = Histogram::default();
            times.record_n((seconds * 1e9) as u64, (*rate * SECONDS as f64) as u64);
            times
        };
        step.operations[0].service = of(service_s);
        step.operations[0].response = of(response_s(*rate));
        step
    });
    io_run(steps.collect())
}

fn answers<T>(run: &Run, pick: impl Fn(Finding) -> Option<T>) -> Option<T> {
    analyse(run, &LatencyTarget::default()).into_iter().find_map(pick)
}

fn bound(run: &Run) -> Option<f64> {
    answers(run, |finding| match finding {
        Finding::Knee(Knee { bound, .. }) => Some(bound),
        _ => None,
    })
}

fn rate_knee(run: &Run) -> Option<f64> {
    answers(run, |finding| match finding {
        Finding::RateKnee(knee) => Some(knee.per_s),
        _ => None,
    })
}

fn law(run: &Run) -> Option<Scalability> {
    answers(run, |finding| match finding {
        Finding::Scales(scales) => Some(scales.law),
        _ => None,
    })
}

/// Runs with something to say.
pub(super) fn runs_with_findings() -> Vec<Run> {
    let depths = [1, 2, 4, 8, 16, 32, 64];
    let law = |b: f64| move |n: f64| 5_000.0 * n / (1.0 + 0.05 * (n - 1.0) + b * n * (n - 1.0));
    let rates: Vec<f64> = (1..=6).map(|k| 1_000.0 * f64::from(k)).collect();
    vec![
        closed(&mut Noise::new(1), &depths, law(0.0), 0.005),
        closed(&mut Noise::new(1), &depths, law(0.004), 0.005),
        open(&rates, 1e-3, |rate| 1e-3 / (1.0 - rate / 7_000.0)),
    ]
}

#[test]
fn the_bound_of_a_capped_loop_is_where_it_was_planted() {
    for seed in 0..SEEDS {
        let noise = &mut Noise::new(seed);
        let (response_s, knee) = (noise.between(100e-6, 2e-3), noise.between(2.0, 40.0));
        let run = closed(noise, &[1, 2, 4, 8, 16, 32, 64], |depth| depth.min(knee) / response_s, 0.005);
        let found = bound(&run).unwrap();
        assert!((found / knee - 1.0).abs() < 0.05, "seed {seed}: {knee} {found}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_bound_of_a_closed_loop_does_not_move_when_the_sweep_goes_on(
        seed in 0_u64..10_000, knee in 2.0_f64..20.0, response_us in 50.0_f64..5_000.0, further in 1_usize..5,
    ) {
        let depths: Vec<u32> = (0..6 + further).map(|power| 1 << power).collect();
        let noise = &mut Noise::new(seed);
        let run = closed(noise, &depths, |depth| depth.min(knee) / (response_us * 1e-6), 0.01);
        let shorter = Run { steps: run.steps[..6].to_vec(), ..run.clone() };
        let (before, after) = (bound(&shorter).unwrap(), bound(&run).unwrap());
        prop_assert!((after / before - 1.0).abs() < 0.05, "{before} {after}");
    }

    #[test]
    fn the_knee_of_an_open_loop_does_not_move_when_the_sweep_goes_on(
        capacity in 1_000.0_f64..50_000.0, beyond in 1_usize..4,
    ) {
        let rates: Vec<f64> = (1..=6 + beyond).map(|tenth| (capacity * tenth as f64 / 10.0).round()).collect();
        let service_s = 8.0 / capacity;
        let run = open(&rates, service_s, |rate| service_s / (1.0 - rate / capacity));
        let shorter = Run { steps: run.steps[..6].to_vec(), ..run.clone() };
        let (before, after) = (rate_knee(&shorter).unwrap(), rate_knee(&run).unwrap());
        prop_assert!((before - after).abs() < 1.0, "{before} {after}");
        prop_assert!((after / (capacity / 2.0) - 1.0).abs() < 0.03, "planted at half the capacity: {after} {capacity}");
    }
}

#[test]
fn an_open_loop_that_never_waits_has_no_knee_and_one_that_always_does_neither() {
    let rates = [1_000.0, 2_000.0, 3_000.0, 4_000.0];
    assert_eq!(rate_knee(&open(&rates, 1e-3, |_| 1.2e-3)), None);
    assert_eq!(rate_knee(&open(&rates, 1e-3, |_| 5e-3)), None);
}

#[test]
fn a_peak_is_reported_where_the_rate_falls_again() {
    for seed in 0..SEEDS {
        let noise = &mut Noise::new(seed);
        let (contention, coherence) = (noise.between(0.01, 0.1), noise.between(0.002, 0.01));
        let rate = |n: f64| 5_000.0 * n / (1.0 + contention * (n - 1.0) + coherence * n * (n - 1.0));
        let run = closed(noise, &[1, 2, 4, 8, 16, 32, 64], rate, 0.01);
        let peak = law(&run).unwrap().peak_sessions().unwrap();
        let planted = ((1.0 - contention) / coherence).sqrt();
        assert!((peak / planted - 1.0).abs() < 0.15, "seed {seed}: {planted} {peak}");
    }
}

#[test]
fn noise_alone_hardly_ever_makes_a_peak() {
    let peaks = share(|noise| {
        let contention = noise.between(0.02, 0.5);
        let deviation = noise.between(0.001, 0.05);
        let rate = |n: f64| 5_000.0 * n / (1.0 + contention * (n - 1.0));
        let run = closed(noise, &[1, 2, 4, 8, 16, 32, 64], rate, deviation);
        law(&run).is_some_and(|law| law.peak_sessions().is_some())
    });
    assert!(peaks <= 0.01, "{peaks}");
}

#[test]
fn an_open_loop_behind_a_cap_is_a_step_and_one_before_a_device_a_queue() {
    let shape = |run: &Run| {
        answers(run, |finding| match finding {
            Finding::Responds(responds) => responds.shape,
            _ => None,
        })
    };
    let rates: Vec<f64> = (1..=6).map(|k| 1_000.0 * f64::from(k)).collect();
    let queue = open(&rates, 1e-3, |rate| 1e-3 / (1.0 - rate / 7_000.0));
    assert!(
        matches!(shape(&queue), Some(ResponseShape::Queue(queue)) if (queue.capacity_per_s / 7_000.0 - 1.0).abs() < 0.02)
    );
    let mut capped = open(&rates, 1e-3, |rate| if rate > 4_500.0 { 1.0 } else { 1.05e-3 });
    for step in &mut capped.steps[4..] {
        step.counters.operations = Some(4_500 * SECONDS as u64);
    }
    assert!(matches!(
        shape(&capped),
        Some(ResponseShape::Step { carried_per_s: 4_000.0, not_carried_per_s: 5_000.0, .. })
    ));
}
