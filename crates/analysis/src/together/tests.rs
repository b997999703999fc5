//! Made-up runs with and without a shared limit.

use super::*;
use crate::sampling_tests::{Noise, io_run, io_step};
use crate::{Finding, LatencyTarget, Opening, Series, analyse};
use model::config::io::Chosen;
use model::record::{CpuTime, Generator};

/// What a made-up platform does.
#[derive(Clone, Copy)]
struct Platform {
    /// Each volume's own cap.
    alone: [f64; 2],
    /// Of both.
    machine: f64,
    /// Rate of one request outstanding.
    latency_bound: f64,
    /// Standard deviation of a second, as a share.
    noise: f64,
    /// Share of the seconds in which a neighbour takes half.
    disturbed: f64,
}

const CAPPED: Platform =
    Platform { alone: [1_500.0, 1_500.0], machine: 2_000.0, latency_bound: 400.0, noise: 0.003, disturbed: 0.0 };
const FREE: Platform = Platform { machine: f64::MAX, ..CAPPED };
const SECONDS: usize = 10;

/// A run of two rounds at each depth. `change` makes something else of the rate of a load in a round.
fn run_as(
    seed: u64,
    platform: Platform,
    depths: &[u32],
    block_bytes: u64,
    change: impl Fn(&str, usize, f64) -> f64,
) -> Run {
    let mut noise = Noise::new(seed);
    let mut steps = Vec::new();
    for depth in depths {
        for round in 0..2 {
            let loads = [("A", vec![0]), ("B", vec![1]), ("A+B", vec![0, 1])];
            let forth_and_back = |at: usize| if round == 0 { at } else { 2 - at };
            for (volumes, members) in (0..3).map(|at| &loads[forth_and_back(at)]) {
                let wanted =
                    |member: &usize| f64::min(platform.alone[*member], f64::from(*depth) * platform.latency_bound);
                let rate = members.iter().map(wanted).sum::<f64>().min(platform.machine);
                let rate = change(volumes, round, rate);
                let counts: Vec<f64> = (0..SECONDS)
                    .map(|_| {
                        let halved = if noise.uniform() < platform.disturbed { 0.5 } else { 1.0 };
                        (rate * halved * (1.0 + platform.noise * noise.normal())).max(0.0).round()
                    })
                    .collect();
                let sessions = depth * members.len() as u32;
                let mut step = io_step(steps.len() as u32, sessions, block_bytes, &counts, 1);
                step.label = format!("d{depth}_{volumes}_{}", round + 1);
                let chosen = match members.as_slice() {
                    [only] => Chosen::One(*only),
                    all => Chosen::All { volumes: all.len() },
                };
                let level = Level::Io(IoLevel::Volumes { depth: *depth, chosen, round: round as u32 + 1 });
                step.parameters = level.parameters();
                step.level = Some(level);
                steps.push(step);
            }
        }
    }
    let mut run = io_run(steps);
    run.target.facts.volumes.paths = ["/dev/sdb", "/dev/sdc"].map(str::to_owned).into();
    run
}

fn made(platform: Platform, depths: &[u32]) -> Run {
    run_as(1, platform, depths, 8_192, |_, _, rate| rate)
}

fn found(run: &Run) -> Together {
    let findings = analyse(run, &LatencyTarget::default());
    let mut all = findings.into_iter().filter_map(|finding| match finding {
        Finding::Together(found) => Some(found),
        _ => None,
    });
    let found = all.next().unwrap();
    assert_eq!(all.next(), None);
    for text in [Some(found.sentence()), found.advice()].into_iter().flatten() {
        assert!(text.ends_with('.') && !text.contains('\n') && !text.contains("  "), "{text}");
    }
    found
}

#[test]
fn a_cap_of_both_is_reported_with_its_figures() {
    let run = made(CAPPED, &[1, 8, 32]);
    let found = found(&run);
    assert_eq!(found.verdict, TogetherVerdict::Shared);
    let point = found.point().unwrap();
    assert!(
        (point.together.per_s / 2_000.0 - 1.0).abs() < 0.005 && (point.share - 2.0 / 3.0).abs() < 0.01,
        "{point:?}"
    );
    assert!(point.share_error < 0.01 && found.points[0].verdict == TogetherVerdict::NotShared);
    let sentence = found.sentence();
    assert!(
        sentence.starts_with("A and B share a limit of 2,00") || sentence.starts_with("A and B share a limit of 1,99")
    );
    assert!(sentence.contains("of the machine, or of what lies between it and them"), "{sentence}");
    assert!(sentence.contains(" outstanding on each, and no more than with "), "{sentence}");
    let findings = analyse(&run, &LatencyTarget::default());
    assert!(Opening::of(&run, &findings).sentence().contains("; A and B share a limit of "));
}

#[test]
fn volumes_that_have_nothing_in_common_are_reported_so() {
    let found = found(&made(FREE, &[1, 8, 32]));
    assert_eq!(found.verdict, TogetherVerdict::NotShared);
    assert!((found.point().unwrap().together.per_s / 3_000.0 - 1.0).abs() < 0.01);
    assert!(found.sentence().contains("share no limit up to "), "{}", found.sentence());
}

#[test]
fn loads_of_other_volumes_are_no_steps_of_one_series() {
    let run = made(CAPPED, &[1, 8]);
    let series = Series::of(&run);
    let of = |series: &Series<'_>| (series.name.clone(), series.steps.len());
    let expected = ["VOLUMES=A", "VOLUMES=B", "VOLUMES=A+B"].map(|name| (name.to_owned(), 4));
    assert_eq!(series.iter().map(of).collect::<Vec<_>>(), expected);
}

#[test]
fn a_neighbour_who_comes_and_goes_changes_nothing() {
    let of = |seed: u64, platform: Platform| {
        found(&run_as(seed, Platform { disturbed: 0.15, ..platform }, &[8, 32], 8_192, |_, _, rate| rate))
    };
    let right = |platform: Platform, verdict: TogetherVerdict| {
        let all: Vec<Together> = (0..100).map(|seed| of(seed, platform)).collect();
        let opposite = |found: &&Together| {
            matches!(found.verdict, TogetherVerdict::Shared | TogetherVerdict::NotShared) && found.verdict != verdict
        };
        assert_eq!(all.iter().filter(opposite).count(), 0, "{verdict:?}");
        let near = |found: &&Together| found.verdict == verdict;
        assert!(all.iter().filter(near).count() >= 90, "{:#?}", all.iter().find(|found| found.verdict != verdict));
        assert!(all.iter().any(|found| found.point().unwrap().left_out().0 > 0));
    };
    right(CAPPED, TogetherVerdict::Shared);
    right(FREE, TogetherVerdict::NotShared);
}

#[test]
fn devices_that_scatter_are_not_said_to_share_a_limit() {
    let of =
        |seed: u64| found(&run_as(seed, Platform { noise: 0.06, ..FREE }, &[8, 32], 8_192, |_, _, rate| rate)).verdict;
    let wrong = (0..300).filter(|seed| of(*seed) == TogetherVerdict::Shared).count();
    assert!(wrong <= 3, "{wrong} of 300");
}

#[test]
fn a_credit_that_runs_out_is_no_limit_that_is_shared() {
    // After its first round A has used its credit up.
    let run = run_as(1, FREE, &[32], 8_192, |volumes, round, rate| match (volumes, round) {
        ("A", 1) => 300.0,
        ("A+B", _) => 1_800.0,
        _ => rate,
    });
    let found = found(&run);
    let TogetherVerdict::Changed { volumes, first_per_s, last_per_s } = &found.verdict else {
        panic!("{:?}", found.verdict);
    };
    assert_eq!((volumes.as_str(), first_per_s.round(), last_per_s.round()), ("A", first_per_s.round(), 300.0));
    assert!(found.sentence().contains("A went from 1,"), "{}", found.sentence());
    // A platform that only grows slower bit by bit does so for all loads alike.
    let slower = run_as(1, FREE, &[32], 8_192, |volumes, round, rate| {
        let place = match (volumes, round) {
            ("A", 0) => 0.0,
            ("B", 0) => 1.0,
            ("A+B", 0) => 2.0,
            ("A+B", _) => 3.0,
            ("B", _) => 4.0,
            _ => 5.0,
        };
        rate * (1.0 - 0.02 * place)
    });
    assert!((super::Together::of(&slower).unwrap().point().unwrap().share - 1.0).abs() < 0.01);
}

#[test]
fn the_load_generator_is_not_taken_for_a_limit_of_storage() {
    let busy = |change: fn(&mut Step)| {
        let mut run = made(CAPPED, &[8, 32]);
        run.steps.iter_mut().filter(|step| step.label.contains('+')).for_each(change);
        found(&run)
    };
    let by_thread = busy(|step| step.generator = Some(Generator { busiest_share: 0.97, ..Generator::default() }));
    let by_ceiling = busy(|step| {
        let (ceiling_operations_per_s, busiest_share) = (Some(2_100.0), 0.85);
        step.generator = Some(Generator { ceiling_operations_per_s, busiest_share, ..Generator::default() });
    });
    let by_machine = |busy_pct: u64| CpuTime {
        user_ns: busy_pct,
        idle_ns: Some(100 - busy_pct),
        iowait_ns: Some(0),
        ..CpuTime::default()
    };
    assert_eq!(by_thread.verdict, TogetherVerdict::GeneratorBound);
    assert_eq!(by_ceiling.verdict, TogetherVerdict::GeneratorBound);
    let mut run = made(CAPPED, &[8, 32]);
    run.steps.iter_mut().for_each(|step| step.host_cpu = Some(by_machine(95)));
    assert_eq!(found(&run).verdict, TogetherVerdict::GeneratorBound);
    run.steps.iter_mut().for_each(|step| step.generator = Some(Generator::default()));
    assert_eq!(found(&run).verdict, TogetherVerdict::Shared, "others keep it busy, and no request waits for that");
    run.steps.iter_mut().for_each(|step| (step.generator, step.host_cpu) = (None, Some(by_machine(60))));
    assert_eq!(found(&run).verdict, TogetherVerdict::Shared);
}

#[test]
fn too_few_seconds_and_a_run_that_was_cut_short_are_said() {
    let mut run = made(CAPPED, &[32]);
    for step in &mut run.steps {
        step.intervals.truncate(3);
    }
    let few = found(&run);
    assert!(
        few.sentence().contains("of A there are 4 among 4 with 32 outstanding on each, and 5 are needed"),
        "{few:?}"
    );
    let mut cut = made(CAPPED, &[8, 32]);
    cut.steps.truncate(8);
    assert_eq!(found(&cut).points.len(), 1, "the second depth has no load of both");
    cut.steps.truncate(2);
    let nothing = found(&cut);
    assert!(nothing.sentence().contains("the run ended before"), "{}", nothing.sentence());
}

#[test]
fn large_requests_are_reported_in_bytes_and_devices_below_are_named() {
    let throughput = Platform { alone: [150.0, 150.0], machine: 200.0, latency_bound: 40.0, ..CAPPED };
    let mut run = run_as(1, throughput, &[8, 32], 1 << 20, |_, _, rate| rate);
    run.target.facts.volumes.devices_shared = ["dm-0", "sda"].map(str::to_owned).into();
    let found = found(&run);
    assert_eq!((found.counted, &found.verdict), (Counted::Bytes, &TogetherVerdict::Shared));
    let sentence = found.sentence();
    assert!(
        sentence.contains("share a limit of 2") && sentence.contains(" MB/s, of `dm-0`, `sda`, which lies below"),
        "{sentence}"
    );
}

#[test]
fn what_still_grows_is_not_called_a_limit() {
    let run = run_as(1, FREE, &[1, 2], 8_192, |volumes, _, rate| if volumes == "A+B" { 0.8 * rate } else { rate });
    let found = found(&run);
    assert!(found.sentence().starts_with("A and B take from each other: "), "{}", found.sentence());
    assert!(found.phrase().ends_with("was not reached"));
}

#[test]
fn other_runs_say_nothing_of_it() {
    assert_eq!(Together::of(&model::record::sample::sweep(10)), None);
    assert_eq!(Together::of(&model::record::sample::requests::sweep()), None);
}
