use super::*;
use crate::Severity;
use crate::{LatencyTarget, Opening, analyse};
use model::record::{ClockOffset, sample};

fn found(run: &Run) -> Vec<FleetFinding> {
    let findings = find(run).into_iter();
    findings.filter_map(|finding| if let Finding::Fleet(found) = finding { Some(found) } else { None }).collect()
}

fn sentences(run: &Run) -> String {
    found(run).iter().map(FleetFinding::sentence).collect::<Vec<_>>().join("\n")
}

#[test]
fn parts_that_are_alike_bring_no_complaint_and_other_runs_none_at_all() {
    assert_eq!(found(&sample::fleet::merged()), []);
    assert_eq!(found(&sample::sweep(5)), []);
}

#[test]
fn an_unbalanced_part_is_named_with_its_host_and_steps() {
    let mut run = sample::fleet::merged();
    run.parts[3].steps[0].operations_per_s = Some(60.0);
    run.parts[3].steps[1].operations_per_s = Some(100.0);
    assert_eq!(
        sentences(&run),
        "Part 3 (db3) did 100 operations/s in s8_t1 and s16_t1, for its share 49.6 % less than the median part."
    );
    run.parts[3].steps.iter_mut().for_each(|step| step.operations_per_s = Some(96.0 * f64::from(step.step + 1)));
    assert_eq!(found(&run), [], "4 % are nothing");
}

#[test]
fn a_share_is_held_against_its_sessions_or_against_what_was_asked() {
    let mut run = sample::fleet::merged();
    run.parts[2].steps[0].sessions = Some(4);
    run.parts[2].steps[0].operations_per_s = Some(198.0);
    assert_eq!(found(&run), [], "twice the sessions, twice the rate");
    for part in &mut run.parts {
        part.steps[0].asked_operations_per_s = Some(100.0);
    }
    assert!(sentences(&run).starts_with("Part 2 (db2) did 198 operations/s in s8_t1"), "{}", sentences(&run));
}

#[test]
fn a_rate_that_scatters_more_than_parts_differ_is_no_finding() {
    let mut run = sample::fleet::merged();
    run.parts[3].steps[0].operations_per_s = Some(85.0);
    assert_eq!(found(&run).len(), 1);
    run.parts.iter_mut().for_each(|part| part.steps[0].deviation_per_s = Some(20.0));
    assert_eq!(found(&run), []);
}

#[test]
fn a_host_is_slow_where_all_of_its_parts_are() {
    let mut run = sample::fleet::merged();
    let mut more = run.parts[0].clone();
    more.number = 4;
    run.parts.push(more);
    run.parts[1].steps[0].p99_ns = Some(80_000_000);
    assert!(sentences(&run).starts_with("Part 1 (db2) had a p99 of 80.0 ms in s8_t1"), "{}", sentences(&run));
    run.parts[2].steps[0].p99_ns = Some(90_000_000);
    assert!(sentences(&run).starts_with("Each part on host db2 had a p99 of 90.0 ms in s8_t1"), "{}", sentences(&run));
}

#[test]
fn of_two_parts_the_worse_one_is_named() {
    let mut run = sample::fleet::merged();
    run.parts.truncate(2);
    run.parts[1].steps[1].p99_ns = Some(90_000_000);
    let [FleetFinding::Differs { who, figure: PartFigure::P99, .. }] = &found(&run)[..] else { panic!("{run:?}") };
    assert_eq!(who, "part 1 (db2)");
}

#[test]
fn late_starts_and_clocks_that_were_off_are_told_from_10_ms_on() {
    let mut run = sample::fleet::merged();
    run.parts[1].start_error_ns = Some(9_000_000);
    run.parts[2].clock = Some(ClockOffset { before_ns: -9_000_000, after_ns: None, bound_ns: 40_000 });
    assert_eq!(found(&run), []);
    run.parts[1].start_error_ns = Some(1_200_000_000);
    run.parts[3].start_error_ns = Some(-20_000_000);
    run.parts[2].clock =
        Some(ClockOffset { before_ns: -990_000_000, after_ns: Some(-1_010_000_000), bound_ns: 40_000 });
    let words = sentences(&run);
    assert!(words.contains("Part 1 (db2) began 1.20 s after the agreed start, of 2 that were off."), "{words}");
    assert!(words.contains("The clock of part 2 (db2) was 1.00 s ahead of that of part 0"), "{words}");
    run.parts[2].clock = Some(ClockOffset { before_ns: -990_000_000, after_ns: None, bound_ns: 2_000_000_000 });
    assert!(!sentences(&run).contains("clock"), "it may as well be right");
}

#[test]
fn what_is_missing_stands_before_the_answer_and_the_answer_is_given() {
    let mut run = sample::fleet::merged();
    run.merged.as_mut().unwrap().missing = vec![3];
    run.parts.truncate(3);
    run.merged.as_mut().unwrap().steps.iter_mut().for_each(|step| step.parts = 3);
    let findings = analyse(&run, &LatencyTarget::default());
    let opening = Opening::of(&run, &findings).sentence();
    assert!(opening.starts_with("By 3 of 4 parts, with 25.0 % of the load missing: "), "{opening}");
    assert!(opening.contains("reads/s"), "{opening}");
    assert!(findings.iter().any(|finding| finding.severity() == Severity::Doubt), "{findings:?}");
}

#[test]
fn a_part_that_died_and_a_forced_merge_make_the_answer_doubtful() {
    let mut run = sample::fleet::merged();
    run.parts[2].outcome = Outcome::Unfinished;
    let opening = |run: &Run| Opening::of(run, &analyse(run, &LatencyTarget::default())).sentence();
    assert!(opening(&run).contains("a part of the fleet did not come to its end"), "{}", opening(&run));
    assert!(sentences(&run).starts_with("Part 2 (db2) was killed"), "{}", sentences(&run));
    let mut run = sample::fleet::merged();
    run.merged.as_mut().unwrap().forced = vec!["seed differs".to_owned(), "format differs".to_owned()];
    assert!(opening(&run).contains("runs were merged that do not belong together"), "{}", opening(&run));
}
