use super::detect::{self, Found};
use super::*;
use crate::chance::Chance;
use jiff::ToSpan;
use model::record::sample;

fn changes(values: &[f64], series: usize) -> Vec<Found> {
    detect::changes(values, &mut Limits::of(series))
}

/// Scatter of neighbours that have this much in common, of one hundredth.
fn noise(chance: &mut Chance, runs: usize, correlation: f64) -> Vec<f64> {
    let mut value = chance.normal();
    let next = |_| {
        let now = value;
        value = correlation * value + (1.0 - correlation * correlation).sqrt() * chance.normal();
        0.01 * now
    };
    (0..runs).map(next).collect()
}

/// `make bench` counts the same in thousands of histories.
#[test]
fn a_history_without_a_change_is_seldom_called_changed() {
    for (correlation, most) in [(0.0, 1), (0.5, 2)] {
        let alarms = (0..40).filter(|seed| {
            let values = noise(&mut Chance::new(*seed), 100, correlation);
            !changes(&values, 1).is_empty()
        });
        let alarms = alarms.count();
        assert!(alarms <= most, "{alarms} of 40 histories with a correlation of {correlation}");
    }
}

#[test]
fn a_step_is_found_within_five_runs_where_it_is() {
    let found = (0..40).filter(|seed| {
        let mut values = noise(&mut Chance::new(*seed), 45, 0.0);
        values[40..].iter_mut().for_each(|value| *value -= 0.06);
        changes(&values, 1).iter().any(|change| change.at.abs_diff(40) <= 1 && !change.is_drift)
    });
    let found = found.count();
    assert!(found >= 38, "{found} of 40");
}

#[test]
fn what_was_found_stays_when_runs_are_added() {
    let mut chance = Chance::new(5);
    let mut values = noise(&mut chance, 120, 0.2);
    values[40..].iter_mut().for_each(|value| *value -= 0.08);
    values[80..].iter_mut().for_each(|value| *value += 0.1);
    let places = |found: &[Found]| found.iter().map(|one| (one.at, one.seen_at)).collect::<Vec<_>>();
    let all = places(&changes(&values, 1));
    assert_eq!(all.len(), 2, "{all:?}");
    for runs in 0..values.len() {
        let seen: Vec<_> = all.iter().copied().filter(|(_, seen_at)| *seen_at < runs).collect();
        assert_eq!(places(&changes(&values[..runs], 1)), seen, "of {runs} runs");
    }
}

#[test]
fn a_slow_change_is_a_drift_and_a_few_wild_runs_are_nothing() {
    let mut values = noise(&mut Chance::new(1), 100, 0.0);
    values.iter_mut().enumerate().for_each(|(run, value)| *value -= 0.0015 * run as f64);
    let found = changes(&values, 1);
    let [drift] = found[..] else { panic!("{found:?}") };
    assert!(drift.is_drift && drift.stretch == [0, 100], "{drift:?}");
    assert!((drift.levels[1] - drift.levels[0] + 0.15).abs() < 0.02, "{drift:?}");

    let mut values = noise(&mut Chance::new(2), 60, 0.0);
    [20, 30, 31, 45, 46, 47].into_iter().for_each(|wild: usize| values[wild] -= 0.5);
    assert_eq!(changes(&values, 1), []);
}

#[test]
fn neighbours_that_are_alike_do_not_hide_a_collapse() {
    // Requests/s of a real disk, then under a cap of the kernel.
    let real = [
        44129, 47321, 42424, 47133, 46682, 45316, 42913, 40750, 45653, 41984, 43981, 47001, 43457, 46203, 46069, 41784,
        38662, 42650, 41654, 39958, 3000, 3000, 3000, 3000, 3000, 3000,
    ];
    let found = changes(&real.map(|rate| f64::from(rate).ln()), 5);
    assert_eq!(found.iter().map(|one| (one.at, one.seen_at, one.is_drift)).collect::<Vec<_>>(), [(20, 23, false)]);
}

#[test]
fn figures_counted_in_few_steps_are_no_change() {
    for seed in 0..20 {
        let mut chance = Chance::new(seed);
        let values: Vec<f64> = (0..60).map(|_| (400.0 + (0.6 * chance.normal()).round()).ln()).collect();
        assert_eq!(changes(&values, 1), [], "{seed}");
    }
}

#[test]
fn figures_that_are_all_the_same_change_when_one_differs_for_long() {
    assert_eq!(changes(&[], 1), []);
    assert_eq!(changes(&[3.0; 200], 1), []);
    let mut values = vec![3.0; 40];
    values[30..].fill(3.1);
    let found = changes(&values, 1);
    assert_eq!(found.iter().map(|one| (one.at, one.seen_at)).collect::<Vec<_>>(), [(30, 33)]);
}

#[test]
fn levels_are_those_of_runs_that_were_looked_at() {
    let mut values = noise(&mut Chance::new(7), 440, 0.0);
    values[400..].iter_mut().for_each(|value| *value -= 0.08);
    let found = changes(&values, 1);
    let [step] = found[..] else { panic!("{found:?}") };
    assert!(step.at == 400 && (150..=250).contains(&step.stretch[0]), "{step:?}");
}

#[test]
fn a_step_after_a_drift_is_found_where_it_is() {
    let mut values = noise(&mut Chance::new(9), 200, 0.0);
    values.iter_mut().enumerate().for_each(|(run, value)| *value -= 0.003 * run.min(80) as f64);
    values[170..].iter_mut().for_each(|value| *value += 0.08);
    let found = changes(&values, 1);
    assert!(found[0].is_drift && found.len() <= 3, "{found:?}");
    assert!(found.iter().any(|one| one.at.abs_diff(170) <= 1 && !one.is_drift), "{found:?}");
}

/// Nights of one load, the operations of each by its factor.
fn nights(factors: &[f64]) -> Vec<Run> {
    let begin = sample::sweep(5).started_at;
    let night = |(place, factor): (usize, &f64)| {
        let mut run = sample::sweep(5);
        run.id = format!("night-{place}");
        run.started_at = model::record::Timestamp(begin.0.checked_add((24 * place as i64).hours()).unwrap());
        for step in &mut run.steps {
            let count = step.counters.operations.unwrap() as f64;
            step.counters.operations = Some((count * factor) as u64);
        }
        run
    };
    factors.iter().enumerate().map(night).collect()
}

fn of(runs: &[Run], threshold: f64) -> Histories {
    Histories::of(&runs.iter().collect::<Vec<_>>(), threshold)
}

fn factors(levels: &[(usize, f64)]) -> Vec<f64> {
    let all: usize = levels.iter().map(|(runs, _)| runs).sum();
    let noise = noise(&mut Chance::new(3), all, 0.0);
    let levels = levels.iter().flat_map(|(runs, level)| std::iter::repeat_n(*level, *runs));
    levels.zip(noise).map(|(level, noise)| level * (0.2 * noise).exp()).collect()
}

#[test]
fn a_rate_that_fell_is_worse_with_what_changed_there() {
    let mut runs = nights(&factors(&[(30, 1.0), (10, 0.9)]));
    runs[30..].iter_mut().for_each(|run| run.environment.kernel = Some("7.0".to_owned()));
    runs.reverse();
    let found = of(&runs, 0.05);
    assert_eq!((found.histories.len(), found.is_worse()), (1, Some(true)));
    let worse: Vec<_> = found.today().filter(|(.., today)| matches!(today, Today::Worse(..))).collect();
    assert!(!worse.is_empty() && worse.iter().all(|(_, series, _)| matches!(series.measure, Measure::Operations(_))));
    for (history, series, today) in worse {
        let Today::Worse(share, since) = today else { panic!("{today:?}") };
        assert!((share + 0.1).abs() < 0.02, "{share}");
        let place = series.points[since.at].0;
        assert!(place.abs_diff(30) <= 1 && history.runs[place].id == format!("night-{place}"), "{place}");
        assert_eq!(since.surroundings.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["kernel"]);
    }
    assert_eq!(of(&runs, 0.2).is_worse(), Some(false), "a tenth does not matter beyond a fifth");
}

#[test]
fn small_losses_add_up_and_what_came_back_is_not_worse() {
    let small = of(&nights(&factors(&[(30, 1.0), (20, 0.965), (20, 0.93)])), 0.05);
    assert_eq!(small.is_worse(), Some(true));
    let back = of(&nights(&factors(&[(30, 1.0), (20, 0.9), (20, 1.0)])), 0.05);
    assert!(back.today().any(|(_, series, _)| series.changes.len() == 2));
    assert_eq!(back.is_worse(), Some(false));
}

#[test]
fn other_work_and_other_tags_have_histories_of_their_own_and_few_runs_no_answer() {
    let mut runs = nights(&factors(&[(15, 1.0)]));
    assert_eq!(of(&runs, 0.05).is_worse(), None);
    runs.extend(nights(&[1.0; 4]));
    runs[15..].iter_mut().for_each(|run| drop(run.tags.insert("disk".to_owned(), "other".to_owned())));
    runs[18].parameters.insert("UPDATE_PCT".to_owned(), "77".to_owned());
    let found = of(&runs, 0.05);
    let of_latest = |found: &Histories| found.histories.iter().map(|history| history.runs.len()).collect::<Vec<_>>();
    assert_eq!((of_latest(&found), found.too_short), (vec![15], 2));
    runs.iter_mut().for_each(|run| run.target.cache_bytes = Some(if run.id == "night-3" { 1 << 30 } else { 2 << 30 }));
    assert_eq!(of_latest(&of(&runs, 0.05)), [15], "a larger cache begins no other history");
    // Others that have enough say nothing about the latest run.
    let mut runs = nights(&factors(&[(20, 1.0)]));
    runs[19].tags.insert("disk".to_owned(), "other".to_owned());
    let found = of(&runs, 0.05);
    assert_eq!((of_latest(&found), found.is_worse()), (vec![1, 19], None));
}

#[test]
fn what_the_latest_run_lacks_is_no_pass() {
    let whole = nights(&factors(&[(20, 1.0)]));
    assert_eq!(of(&whole, 0.05).is_worse(), Some(false));
    let mut shorter = whole.clone();
    shorter[19].steps.truncate(5);
    let found = of(&shorter, 0.05);
    assert_eq!((found.is_worse(), &found.histories[0].missing[..]), (None, &["32 sessions".to_owned()][..]));
    let mut cut_short = whole.clone();
    cut_short[19].steps[5].outcome = Outcome::Interrupted;
    let found = of(&cut_short, 0.05);
    assert!(found.is_worse().is_none() && found.today().any(|(.., today)| today == Today::Missing));
    // From the next night on it is as it is.
    shorter.push(nights(&factors(&[(21, 1.0)])).remove(20));
    shorter[20].steps.truncate(5);
    assert_eq!(of(&shorter, 0.05).is_worse(), Some(false));
}

#[test]
fn a_history_that_ended_days_ago_says_nothing_about_today() {
    let mut runs = nights(&factors(&[(30, 1.0), (10, 0.9)]));
    runs.iter_mut().for_each(|run| drop(run.tags.insert("disk".to_owned(), "retired".to_owned())));
    assert_eq!(of(&runs, 0.05).is_worse(), Some(true));
    runs.extend(nights(&factors(&[(60, 1.0)])).split_off(42));
    let found = of(&runs, 0.05);
    assert_eq!(found.is_worse(), Some(false));
    assert_eq!(found.histories.iter().map(|history| history.is_current).collect::<Vec<_>>(), [true, false]);
}
