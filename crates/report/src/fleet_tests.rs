//! Reports of merged runs.

use super::tests::report;
use super::*;
use model::record::sample::fleet;

#[test]
fn a_merged_run_is_reported_with_its_parts() {
    let mut run = fleet::merged();
    run.parts[3].steps[1].operations_per_s = Some(100.0);
    run.parts[1].steps[0].cut_after_ns = 2_000_000_000;
    insta::assert_snapshot!(report(&run, Detail::Brief, 150));
}

#[test]
fn of_many_parts_a_brief_report_has_the_slowest_and_the_fastest() {
    let mut run = fleet::merged();
    for number in 4..40 {
        let mut part = run.parts[0].clone();
        part.number = number;
        part.run = format!("p{number}");
        part.steps.iter_mut().for_each(|step| step.operations_per_s = Some(101.0 + f64::from(number) / 100.0));
        run.parts.push(part);
    }
    let rows = |detail| {
        report(&run, detail, 200).lines().filter(|line| line.contains("0.40") && line.contains("s8_t1")).count()
    };
    assert_eq!((rows(Detail::Brief), rows(Detail::Full)), (12, 40));
    assert!(report(&run, Detail::Brief, 200).contains("28 between the slowest and the fastest"));
}
