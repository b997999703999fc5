use super::*;
use crate::VerdictOutcome::{Failed, GeneratorBound, Passed, Unsteady};
use crate::chance::Chance;

/// What storage carries of a mix, in requests per second.
type Surface = dyn Fn(f64) -> f64;

fn load() -> IoMap {
    IoMap {
        block: "8K".parse().unwrap(),
        limit: "p99=5ms".to_owned(),
        least_read_pct: 0,
        most_read_pct: 100,
        lowest_per_s: 10.0,
        highest_per_s: 200_000.0,
        within: 0.05,
        most_points: 40,
        durable: Default::default(),
        demand: None,
    }
}

/// Caps on reads, on writes, and on both together.
fn caps(reads: f64, writes: f64, both: f64) -> impl Fn(f64) -> f64 {
    move |share: f64| (reads / share).min(writes / (1.0 - share)).min(both)
}

fn judged(surface: &Surface, level: IoMapLevel) -> Judged {
    let most = surface(level.read_share);
    let outcome = if level.per_s <= most { Passed } else { Failed };
    Judged { level, outcome, finished_per_s: level.per_s.min(most) }
}

/// Maps a surface as `judge` sees it.
fn map_by(load: &IoMap, mut judge: impl FnMut(IoMapLevel) -> Judged) -> Vec<Judged> {
    let mut points = Vec::new();
    while let Some(level) = Mapping::new(load, 7, points.clone()).next() {
        assert!(points.len() < load.most_points as usize, "it goes on after {points:?}");
        assert!(level.per_s >= load.lowest_per_s && level.per_s <= load.highest_per_s, "{level:?}");
        points.push(judge(level));
    }
    points
}

/// The widest error of the line to either side of the truth, in directions that are spread evenly over the scaled axes.
fn widest_error(mapping: &Mapping<'_>, surface: &Surface) -> f64 {
    let line = mapping.line();
    let [reads, writes] = [surface(1.0), surface(0.0)];
    (0..=60)
        .map(|look| {
            let angle = f64::from(look) / 60.0 * std::f64::consts::FRAC_PI_2;
            let demand = [reads * angle.cos().max(1e-9), writes * angle.sin().max(1e-9)];
            let per_s = demand[0] + demand[1];
            let truth = surface(demand[0] / per_s);
            let scaled = demand.map(|one| one / per_s * truth);
            match line.place(scaled) {
                MapPlace::Inside { times } | MapPlace::Outside { times } | MapPlace::Unknown { times: Some(times) } => {
                    times.max(1.0 / times) - 1.0
                }
                MapPlace::Unknown { times: None } => f64::INFINITY,
            }
        })
        .fold(0.0, f64::max)
}

#[test]
fn planted_caps_are_found_within_five_percent_in_forty_points() {
    let planted: [(&str, Box<Surface>); 6] = [
        ("reads and writes", Box::new(caps(8_000.0, 3_000.0, 1e9))),
        ("the sum", Box::new(caps(1e9, 1e9, 6_000.0))),
        ("all three", Box::new(caps(9_000.0, 4_000.0, 10_000.0))),
        ("few writes", Box::new(caps(50_000.0, 400.0, 1e9))),
        ("writes that cost three reads", Box::new(|share| 12_000.0 / (share + 3.0 * (1.0 - share)))),
        // A line that bends inwards: writes slow reads down more than they need themselves.
        ("writes in the way of reads", Box::new(|share| 10_000.0 / (1.0 + 2.4 * share * (1.0 - share)))),
    ];
    for (name, surface) in &planted {
        let load = load();
        let points = map_by(&load, |level| judged(surface, level));
        let mapping = Mapping::new(&load, 7, points.clone());
        let error = widest_error(&mapping, surface);
        println!(
            "{name}: {} points, {} mixes, error {error:.3}, said {:?}",
            points.len(),
            mapping.mixes.len(),
            mapping.within()
        );
        assert!(error <= 0.05, "{name}: {error} after {} points", points.len());
    }
}

/// The errors of 300 surfaces at random, in rising order, and the points that each took, as well. Latency ends the line at a part of what
/// is finished under more.
fn at_random(is_of_caps: bool) -> (Vec<f64>, Vec<usize>, usize) {
    let (mut errors, mut points_of_all, mut beyond) = (Vec::new(), Vec::new(), 0);
    for seed in 0..300 {
        let mut chance = Chance::new(seed);
        let mut among = |low: f64, high: f64| low * (high / low).powf(chance.share());
        let (reads, writes, both) = (among(300.0, 90_000.0), among(300.0, 90_000.0), among(300.0, 90_000.0));
        let (cost, bend, keeps) = (among(0.2, 5.0), among(0.3, 3.0), among(0.4, 1.0));
        let (cost, bend) = if is_of_caps { (1.0, 0.3) } else { (cost, bend) };
        let surface = move |share: f64| {
            let sum = both / (share + cost * (1.0 - share)) / (1.0 + (bend - 0.3) * share * (1.0 - share));
            caps(reads, writes, sum)(share) * keeps
        };
        let load = load();
        let points = map_by(&load, |level| {
            let finished_per_s = level.per_s.min(surface(level.read_share) / keeps);
            Judged { finished_per_s, ..judged(&surface, level) }
        });
        let mapping = Mapping::new(&load, 7, points.clone());
        let error = widest_error(&mapping, &surface);
        beyond += usize::from(error > mapping.within().unwrap() + 0.02);
        errors.push(error);
        points_of_all.push(points.len());
    }
    errors.sort_by(f64::total_cmp);
    points_of_all.sort_unstable();
    (errors, points_of_all, beyond)
}

#[test]
fn surfaces_at_random_are_found_within_the_error_that_is_said() {
    for (is_of_caps, most) in [(true, 0.05), (false, 0.06)] {
        let (errors, points, beyond) = at_random(is_of_caps);
        assert!(errors[150] < 0.03 && errors[270] < most, "{} {}", errors[150], errors[270]);
        assert!(points[150] <= 32 && points[299] <= 40, "{points:?}");
        assert!(beyond <= 15, "the line was farther off than was said {beyond} times of 300");
    }
}

#[test]
fn verdicts_that_err_near_the_line_move_it_little() {
    let surface = caps(9_000.0, 4_000.0, 10_000.0);
    let mut errors: Vec<f64> = (0..60)
        .map(|seed| {
            let (load, mut chance) = (load(), Chance::new(seed));
            let points = map_by(&load, |level| {
                let most = surface(level.read_share) * (1.0 + 0.02 * chance.normal());
                let outcome = if chance.share() < 0.03 {
                    Unsteady
                } else if level.per_s <= most {
                    Passed
                } else {
                    Failed
                };
                Judged { level, outcome, finished_per_s: level.per_s.min(most) }
            });
            widest_error(&Mapping::new(&load, 7, points), &surface)
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    assert!(errors[30] < 0.06 && errors[54] < 0.12, "{errors:?}");
}

#[test]
fn what_ends_a_mix_besides_the_limit_is_said() {
    // A generator that can send 5,000/s.
    let bound = |level: IoMapLevel| {
        let outcome = if level.per_s > 5_000.0 { GeneratorBound } else { Passed };
        Judged { level, outcome, finished_per_s: level.per_s.min(5_000.0) }
    };
    let load = load();
    let mapping = |points| Mapping::new(&load, 7, points);
    let points = map_by(&load, bound);
    let found = mapping(points.clone());
    assert!(found.mixes.iter().all(|mix| mix.is_generators() && mix.missed().is_none()), "{points:?}");
    let nothing = map_by(&load, |level| Judged { level, outcome: Failed, finished_per_s: 0.0 });
    let found = mapping(nothing.clone());
    assert!(found.mixes.iter().all(|mix| mix.carried().is_none()) && found.within().is_none(), "{nothing:?}");
    assert!(nothing.len() < 40, "both ends fail at the least rate, and there is no more to look for: {nothing:?}");
    let all = map_by(&load, |level| Judged { level, outcome: Passed, finished_per_s: level.per_s });
    let found = mapping(all);
    assert!(found.mixes.iter().all(|mix| mix.carried() == Some(load.highest_per_s)), "{:?}", found.line());
    let few = IoMap { most_points: 6, ..load.clone() };
    assert_eq!(map_by(&few, |level| judged(&caps(1e3, 1e3, 1e9), level)).len(), 6);
}

#[test]
fn a_demand_lies_inside_or_outside_or_too_close_to_say() {
    let surface = caps(8_000.0, 3_000.0, 1e9);
    let load = load();
    let points = map_by(&load, |level| judged(&surface, level));
    let mapping = Mapping::new(&load, 7, points);
    let place = |reads, writes| mapping.line().place([reads, writes]);
    let MapPlace::Inside { times } = place(4_000.0, 1_500.0) else { panic!("{:?}", place(4_000.0, 1_500.0)) };
    assert!((times - 2.0).abs() < 0.1, "{times}");
    assert!(matches!(place(7_000.0, 3_500.0), MapPlace::Outside { times } if times < 0.9));
    assert!(matches!(place(8_000.0, 0.0), MapPlace::Unknown { times: Some(_) }));
    for (reads, writes) in [(0.0, 0.0), (-1.0, 5.0), (f64::NAN, 5.0), (f64::INFINITY, 5.0)] {
        assert!(!matches!(place(reads, writes), MapPlace::Inside { .. }), "{reads} {writes}");
    }
    // Beyond the mixes that were measured nothing is known.
    let narrow = IoMap { least_read_pct: 50, ..load.clone() };
    let points = map_by(&narrow, |level| judged(&surface, level));
    assert_eq!(Mapping::new(&narrow, 7, points).line().place([10.0, 90.0]), MapPlace::Unknown { times: None });
}

#[test]
fn the_first_mix_is_measured_again_and_again() {
    let surface = caps(8_000.0, 3_000.0, 1e9);
    let load = load();
    let points = map_by(&load, |level| judged(&surface, level));
    let (anchors, missed) = Mapping::new(&load, 7, points.clone()).anchors();
    assert!(anchors >= 2 && missed == 0, "{anchors} of {points:?}");
    // It loses half of what it carried after 12 points.
    let mut measured = 0;
    let points = map_by(&load, |level| {
        measured += 1;
        let least = caps(4_000.0, 1_500.0, 1e9);
        if measured > 12 { judged(&least, level) } else { judged(&surface, level) }
    });
    let (anchors, missed) = Mapping::new(&load, 7, points).anchors();
    assert!(anchors >= 1 && missed >= 1, "{anchors} {missed}");
}
