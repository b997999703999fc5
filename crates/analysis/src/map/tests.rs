use super::*;
use crate::VerdictOutcome::{Failed, GeneratorBound, Passed, Unsteady};
use crate::chance::Chance;
use model::record::IoMap;

/// What storage carries of a mix, in requests per second.
type Surface = dyn Fn(f64) -> f64;

fn load() -> MapSearch {
    MapSearch {
        of: MapOf::Requests,
        limit: "p99=5ms".to_owned(),
        least_read_pct: 0,
        most_read_pct: 100,
        lowest_per_s: 10.0,
        highest_per_s: 200_000.0,
        within: 0.05,
        most_points: 40,
        demand: None,
    }
}

/// Of requests of 8 KiB.
fn of_blocks(search: MapSearch) -> Load {
    Load::IoMap(IoMap { block: "8K".parse().unwrap(), durable: Default::default(), search })
}

/// Caps on reads, on writes, and on both together.
fn caps(reads: f64, writes: f64, both: f64) -> impl Fn(f64) -> f64 {
    move |share: f64| (reads / share).min(writes / (1.0 - share)).min(both)
}

fn point(level: MapLevel, outcome: VerdictOutcome) -> Judged {
    Judged { level, outcome, finished_per_s: level.per_s, has_hung: false, has_few: false }
}

fn judged(surface: &Surface, level: MapLevel) -> Judged {
    let most = surface(level.read_share);
    let outcome = if level.per_s <= most { Passed } else { Failed };
    Judged { finished_per_s: level.per_s.min(most), ..point(level, outcome) }
}

/// Maps a surface as `judge` sees it.
fn map_by(load: &MapSearch, mut judge: impl FnMut(MapLevel) -> Judged) -> Vec<Judged> {
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
                MapPlace::Inside { times } | MapPlace::Outside { times } | MapPlace::Unknown { times } => {
                    times.map_or(f64::INFINITY, |times| times.max(1.0 / times) - 1.0)
                }
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

/// Surfaces at random.
const SURFACES: u64 = 150;

/// The errors of such surfaces, in rising order, and the points that each took, as well. Latency ends the line at a part of what
/// is finished under more.
fn at_random(is_of_caps: bool) -> (Vec<f64>, Vec<usize>, usize) {
    let (mut errors, mut points_of_all, mut beyond) = (Vec::new(), Vec::new(), 0);
    for seed in 0..SURFACES {
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
        assert!(
            errors[SURFACES as usize / 2] < 0.03 && errors[SURFACES as usize * 9 / 10] < most,
            "{} {}",
            errors[SURFACES as usize / 2],
            errors[SURFACES as usize * 9 / 10]
        );
        assert!(points[SURFACES as usize / 2] <= 32 && points[SURFACES as usize - 1] <= 40, "{points:?}");
        assert!(beyond <= 8, "the line was farther off than was said {beyond} times of {SURFACES}");
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
                Judged { finished_per_s: level.per_s.min(most), ..point(level, outcome) }
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
    let bound = |level: MapLevel| {
        let outcome = if level.per_s > 5_000.0 { GeneratorBound } else { Passed };
        Judged { finished_per_s: level.per_s.min(5_000.0), ..point(level, outcome) }
    };
    let load = load();
    let mapping = |points| Mapping::new(&load, 7, points);
    let points = map_by(&load, bound);
    let found = mapping(points.clone());
    assert!(found.mixes.iter().all(|mix| mix.is_generators() && mix.missed().is_none()), "{points:?}");
    let nothing = map_by(&load, |level| Judged { finished_per_s: 0.0, ..point(level, Failed) });
    let found = mapping(nothing.clone());
    assert!(found.mixes.iter().all(|mix| mix.carried().is_none()) && found.within().is_none(), "{nothing:?}");
    assert!(nothing.len() < 40, "both ends fail at the least rate, and there is no more to look for: {nothing:?}");
    let all = map_by(&load, |level| point(level, Passed));
    let found = mapping(all);
    assert!(found.mixes.iter().all(|mix| mix.carried() == Some(load.highest_per_s)), "{:?}", found.line());
    let few = MapSearch { most_points: 6, ..load.clone() };
    assert_eq!(map_by(&few, |level| judged(&caps(1e3, 1e3, 1e9), level)).len(), 6);
}

#[test]
fn a_demand_lies_inside_or_outside_or_too_close_to_say() {
    let surface = caps(8_000.0, 3_000.0, 1e9);
    let load = load();
    let points = map_by(&load, |level| judged(&surface, level));
    let mapping = Mapping::new(&load, 7, points);
    let place = |reads, writes| mapping.line().place([reads, writes]);
    let MapPlace::Inside { times: Some(times) } = place(4_000.0, 1_500.0) else {
        panic!("{:?}", place(4_000.0, 1_500.0))
    };
    assert!((times - 2.0).abs() < 0.1, "{times}");
    assert!(matches!(place(7_000.0, 3_500.0), MapPlace::Outside { times: Some(times) } if times < 0.9));
    assert!(matches!(place(8_000.0, 0.0), MapPlace::Unknown { times: Some(_) }));
    for (reads, writes) in [(0.0, 0.0), (-1.0, 5.0), (f64::NAN, 5.0), (f64::INFINITY, 5.0)] {
        assert!(!matches!(place(reads, writes), MapPlace::Inside { .. }), "{reads} {writes}");
    }
    // Beyond the mixes that were measured nothing is known.
    let narrow = MapSearch { least_read_pct: 50, ..load.clone() };
    let points = map_by(&narrow, |level| judged(&surface, level));
    assert_eq!(Mapping::new(&narrow, 7, points).line().place([100.0, 9_000.0]), MapPlace::Unknown { times: None });
}

#[test]
fn the_first_mix_is_measured_again_and_again() {
    let surface = caps(8_000.0, 3_000.0, 1e9);
    let load = load();
    let points = map_by(&load, |level| judged(&surface, level));
    let anchors = Mapping::new(&load, 7, points.clone()).anchors;
    assert!(anchors.times >= 2 && anchors.missed == 0, "{anchors:?} of {points:?}");
    // It loses half of what it carried after 12 points.
    let mut measured = 0;
    let points = map_by(&load, |level| {
        measured += 1;
        let least = caps(4_000.0, 1_500.0, 1e9);
        if measured > 12 { judged(&least, level) } else { judged(&surface, level) }
    });
    let anchors = Mapping::new(&load, 7, points).anchors;
    // The first one came before.
    assert!(anchors.missed >= 1 && anchors.times == anchors.missed + 1, "{anchors:?}");
}

#[test]
fn beyond_what_was_tried_a_demand_is_neither_inside_nor_outside() {
    let load = MapSearch { highest_per_s: 5_000.0, ..load() };
    let points = map_by(&load, |level| point(level, Passed));
    let mapping = Mapping::new(&load, 7, points);
    assert_eq!(mapping.within(), None, "nothing bounds the line from above");
    assert!(matches!(mapping.line().place([6_000.0, 1_000.0]), MapPlace::Unknown { .. }));
    assert!(matches!(mapping.line().place([2_000.0, 1_000.0]), MapPlace::Inside { .. }));
}

#[test]
fn beyond_what_was_not_steady_a_demand_is_not_outside() {
    let surface = caps(8_000.0, 3_000.0, 1e9);
    // What is not steady is measured twice.
    let load = MapSearch { most_points: 100, ..load() };
    let points = map_by(&load, |level| {
        let judged = judged(&surface, level);
        Judged { outcome: if judged.outcome == Failed { Unsteady } else { judged.outcome }, ..judged }
    });
    let mapping = Mapping::new(&load, 7, points);
    assert!(mapping.mixes.iter().all(|mix| mix.missed().is_some() && !mix.has_failed()));
    let place = |reads, writes| mapping.line().place([reads, writes]);
    assert!(matches!(place(4_000.0, 1_500.0), MapPlace::Inside { .. }), "{:?}", place(4_000.0, 1_500.0));
    for (reads, writes) in [(9_000.0, 4_000.0), (30_000.0, 30_000.0)] {
        assert!(matches!(place(reads, writes), MapPlace::Unknown { .. }), "{:?}", place(reads, writes));
    }
}

#[test]
fn what_failed_above_a_rate_that_was_not_steady_stays_known() {
    let surface = caps(8_000.0, 3_000.0, 1e9);
    let load = MapSearch { most_points: 100, ..load() };
    // Close to the line it is not steady, far beyond it requests are too slow.
    let points = map_by(&load, |level| {
        let judged = judged(&surface, level);
        let is_near = level.per_s < 1.5 * surface(level.read_share);
        Judged { outcome: if judged.outcome == Failed && is_near { Unsteady } else { judged.outcome }, ..judged }
    });
    let mapping = Mapping::new(&load, 7, points);
    let place = |reads, writes| mapping.line().place([reads, writes]);
    assert!(matches!(place(8_500.0, 3_000.0), MapPlace::Unknown { .. }), "{:?}", place(8_500.0, 3_000.0));
    assert!(matches!(place(500_000.0, 500_000.0), MapPlace::Outside { .. }));
    assert_eq!(mapping.within(), None, "no upper end of the line was shown");
}

#[test]
fn between_few_mixes_only_what_was_measured_is_inside() {
    // It bends inwards: half and half carries 6,250 requests/s.
    let surface = |share: f64| 10_000.0 / (1.0 + 2.4 * share * (1.0 - share));
    for most_points in 6..=9 {
        let load = MapSearch { most_points, ..load() };
        let points = map_by(&load, |level| judged(&surface, level));
        let place = Mapping::new(&load, 7, points).line().place([4_000.0, 4_000.0]);
        assert!(!matches!(place, MapPlace::Inside { .. }), "{most_points}: {place:?}");
    }
}

#[test]
fn where_nothing_is_met_there_is_no_line() {
    // Writes always take too long, and so does every mix that has more than a few.
    let surface = |share: f64| if share > 0.98 { 8_000.0 } else { 0.0 };
    let load = load();
    let points = map_by(&load, |level| judged(&surface, level));
    let mapping = Mapping::new(&load, 7, points);
    assert!(mapping.is_found() && mapping.line().count() == 1, "{:?} {:?}", mapping.points, mapping.line());
    assert!(matches!(mapping.line().place([5_000.0, 3_000.0]), MapPlace::Outside { .. }));
    // A mix between two others that carries nothing is not led over.
    let surface = |share: f64| if (0.4..0.6).contains(&share) { 0.0 } else { 6_000.0 };
    let points = map_by(&load, |level| judged(&surface, level));
    let mapping = Mapping::new(&load, 7, points);
    assert!(!matches!(mapping.line().place([2_800.0, 2_800.0]), MapPlace::Inside { .. }), "{:?}", mapping.line());
}

#[test]
fn kinds_that_differ_a_thousandfold_have_mixes_of_their_own() {
    for (reads, writes) in [(100_000.0, 200.0), (60_000.0, 90.0), (150.0, 90_000.0)] {
        let surface = caps(reads, writes, 1e9);
        let load = load();
        let points = map_by(&load, |level| judged(&surface, level));
        let mapping = Mapping::new(&load, 7, points.clone());
        let mut shares: Vec<f64> = mapping.mixes.iter().map(|mix| mix.read_share).collect();
        shares.sort_by(f64::total_cmp);
        assert!(shares.windows(2).all(|pair| pair[0] < pair[1]), "{shares:?}");
        let error = widest_error(&mapping, &surface);
        assert!(error < 0.06 && points.len() < 40, "{reads} {writes}: {error} after {} points", points.len());
    }
}

#[test]
fn one_stall_below_the_line_does_not_move_it() {
    let surface = caps(8_000.0, 3_000.0, 9_500.0);
    let load = load();
    for stalled in 4..12 {
        let mut measured = 0;
        let points = map_by(&load, |level| {
            measured += 1;
            let point = judged(&surface, level);
            let outcome = if measured == stalled { Failed } else { point.outcome };
            Judged { outcome, ..point }
        });
        let error = widest_error(&Mapping::new(&load, 7, points), &surface);
        assert!(error < 0.1, "{error} with a stall in point {stalled}");
    }
}

#[test]
fn slow_requests_of_a_rare_kind_count_where_chance_does_not_explain_them() {
    // One in a hundred may be slow: of 50 one is, of 90 in a hundred.
    for (seen, expected, is_beyond) in [
        (0, 0.5, false),
        (1, 0.5, false),
        (3, 0.5, false),
        (5, 0.5, true),
        (12, 9.0, false),
        (22, 9.0, true),
        (130, 100.0, false),
        (140, 100.0, true),
    ] {
        assert_eq!(is_beyond_chance(seen, expected), is_beyond, "{seen} of {expected}");
    }
    assert!(is_beyond_chance(u64::MAX, 1e6) && !is_beyond_chance(u64::MAX, 1e300), "at once, whatever a document has");
}

#[test]
fn what_no_map_of_ours_has_is_no_map() {
    let run = |change: &dyn Fn(&mut MapSearch)| {
        let mut load = load();
        change(&mut load);
        Run { load: of_blocks(load), ..model::record::sample::sweep(3) }
    };
    let changes: [&dyn Fn(&mut MapSearch); 6] = [
        &|load| (load.lowest_per_s, load.highest_per_s) = (200_000.0, 10.0),
        &|load| load.lowest_per_s = f64::NAN,
        &|load| load.highest_per_s = f64::INFINITY,
        &|load| load.within = -1.0,
        &|load| load.within = f64::NAN,
        &|load| load.limit = "p99=1".to_owned(),
    ];
    for change in changes {
        let run = run(change);
        assert!(MapAnswer::of(&run).is_none() && next_of_map(&run).is_none());
    }
    let empty = MapAnswer::of(&run(&|_| ())).unwrap();
    assert!(
        empty.mixes.is_empty() && empty.within.is_none() && empty.sentence().contains("could be judged"),
        "{empty:?}"
    );
}

/// A map in requests of 8 KiB of storage that carries 10,000 reads, 4,000 writes, and 12,000 of both per second, measured between the
/// least share of reads and reads alone.
pub(crate) fn mapped(least_read_pct: u8) -> MapAnswer {
    let load = MapSearch { least_read_pct, ..load() };
    let surface = caps(10_000.0, 4_000.0, 12_000.0);
    let points = map_by(&load, |level| judged(&surface, level));
    let mapping = Mapping::new(&load, 7, points);
    assert!(mapping.is_found(), "the search ends");
    MapAnswer {
        of: load.of,
        limit: load.limit.clone(),
        block_bytes: Some(8_192),
        sessions: None,
        mixes: Vec::new(),
        within: mapping.within(),
        points: mapping.points.len(),
        ended: MapEnded::Found,
        anchors: mapping.anchors.times,
        anchors_missed: mapping.anchors.missed,
        demand: None,
        place: None,
        line: mapping.line(),
    }
}
