use super::*;
use crate::record::sample;
use crate::record::store::Store;

fn headline(run: &crate::record::Run) -> Headline {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path());
    store.save(run).unwrap();
    store.list().0.remove(0).headline.unwrap()
}

/// Whether the largest load is within the limit of its command.
fn limit_of(run: &crate::record::Run) -> String {
    let Some(limit) = headline(run).limit else { return String::new() };
    let word = limit.is_within.map_or("?", |is_within| if is_within { "kept" } else { "exceeded" });
    format!("{} {word}", limit.limit)
}

#[test]
fn the_largest_load_tells_its_rates_and_the_percentile_by_which_it_is_judged() {
    let run = sample::sweep(3);
    let largest = run.steps.last().unwrap();
    let found = headline(&run);
    assert_eq!(found.reads_per_s, Some(40_320.0));
    assert_eq!((found.p99_ns, found.p99_of), (largest.waits[0].waits.quantile_ns(0.99), "read"));
    assert!(!found.p99_is_bound && found.limit.is_none());
    let raw = headline(&sample::requests::sweep());
    assert_eq!((raw.operations_per_s, raw.p99_of), (Some(5_000.0), "response"));
}

#[test]
fn on_a_server_the_response_time_is_listed_as_a_report_judges_it() {
    let mut run = sample::servers::innodb();
    let mut wait = sample::sweep(1).steps[0].waits[0].clone();
    assert_eq!(wait.event, SINGLE_BLOCK_READ);
    wait.layer = "server".to_owned();
    run.steps.iter_mut().for_each(|step| step.waits.push(wait.clone()));
    run.command.extend(["--limit", "p99=100s"].map(str::to_owned));
    let listed = headline(&run);
    let limit = listed.limit.as_ref().unwrap();
    assert_eq!((listed.p99_of, limit.is_within), ("response", Some(true)));
}

#[test]
fn jobs_at_the_same_time_are_listed_with_what_they_did_together() {
    let mut run = requests_twice();
    let one = headline(&run);
    run.imported = Some(imported());
    run.target.facts.jobs_at_once = Some(JobsAtOnce::All(2));
    let both = headline(&run);
    assert_eq!(both.operations_per_s, one.operations_per_s.map(|rate| 2.0 * rate));
    assert_eq!(both.reads_per_s, one.reads_per_s.map(|rate| 2.0 * rate));
    assert!(both.p99_is_bound && both.p99_ns == one.p99_ns);
}

fn imported() -> crate::record::Imported {
    crate::record::Imported { files: Vec::new(), clock: crate::record::Clock::Wall, not_understood: Vec::new() }
}

fn requests_twice() -> crate::record::Run {
    let mut run = sample::requests::mixed();
    run.steps.truncate(1);
    let again = run.steps[0].clone();
    run.steps.push(again);
    run
}

#[test]
fn a_percentile_of_few_reads_is_not_listed_beside_the_rate_of_all() {
    let mut run = sample::sweep(3);
    run.steps.drain(..run.steps.len() - 1);
    assert!(headline(&run).p99_ns.is_some());
    let single = run.steps[0].waits[0].clone();
    let count = single.waits.count() + 1;
    let waits = crate::record::Histogram::counted(count, None);
    run.steps[0].waits.push(crate::record::WaitStats {
        event: "direct path read".to_owned(),
        class: "User I/O".to_owned(),
        foreground: true,
        waits,
        ..single
    });
    assert_eq!(headline(&run).p99_words(), "?");
}

#[test]
fn of_reads_and_writes_the_longer_bounds_both() {
    let run = sample::requests::mixed();
    let found = headline(&run);
    assert_eq!(found.p99_ns, run.steps[0].operations[1].response.quantile_ns(0.99));
    assert!(found.p99_is_bound && found.p99_words().starts_with("<="));
}

#[test]
fn a_limit_is_not_kept_by_what_is_left_when_others_failed() {
    let mut run = sample::requests::sweep();
    run.command = ["plimsoll", "io", "sweep", "--limit", "p99=1s"].map(str::to_owned).to_vec();
    assert_eq!(limit_of(&run), "p99=1s kept");
    run.steps.iter_mut().for_each(|step| step.counters.errors = Some(1));
    assert_eq!(limit_of(&run), "p99=1s ?");
    run.steps.iter_mut().for_each(|step| {
        step.counters.errors = Some(0);
        step.load.rate_operations_per_s = Some(1e6);
    });
    assert_eq!(limit_of(&run), "p99=1s ?", "the rate was not reached");
}

#[test]
fn a_limit_is_only_reported_of_what_is_known() {
    let mut run = sample::requests::sweep();
    let mut limit = |words: &str| {
        run.command = words.split(' ').map(str::to_owned).collect();
        limit_of(&run)
    };
    assert_eq!(limit("plimsoll io sweep --limit p99=1s"), "p99=1s kept");
    assert_eq!(limit("plimsoll io sweep --target-latency=p99=1us"), "p99=1us exceeded");
    assert_eq!(limit("plimsoll io sweep --limit p90=1s"), "p90=1s ?");
    assert_eq!(limit("plimsoll io sweep"), "");
    let mut mixed = sample::requests::mixed();
    mixed.command = ["--limit", "p99=1us"].map(str::to_owned).to_vec();
    assert_eq!(limit_of(&mixed), "p99=1us ?", "a bound exceeds nothing");
}

#[test]
fn a_percentile_is_unknown_where_much_ended_late_never_or_was_not_sent() {
    let with = |change: fn(&mut crate::record::Step)| {
        let mut run = sample::requests::sweep();
        run.steps.iter_mut().for_each(change);
        headline(&run).p99_ns
    };
    assert!(with(|_| ()).is_some());
    assert!(with(|step| add_late(step, 1)).is_some(), "too few to move it");
    assert_eq!(with(|step| add_late(step, 20)), None);
    let not_sent = |step: &mut crate::record::Step| {
        step.generator.as_mut().unwrap().backlog_operations = step.counters.operations;
    };
    assert_eq!(with(not_sent), None);
}

/// So many in ten thousand operations ended after the window.
fn add_late(step: &mut crate::record::Step, times: u64) {
    let mut late = crate::record::Outstanding { kind: "read".to_owned(), ..Default::default() };
    late.response.record_n(11_000_000_000, step.counters.operations.unwrap() * times / 10_000);
    step.outstanding = vec![late];
}
