//! Reports of raw storage.

use super::tests::{report, tabulate};
use super::*;
use model::record::sample::requests;
use model::record::{Clock, Imported, Run};

#[test]
fn a_sweep_of_raw_storage() {
    insta::assert_snapshot!(report(&requests::sweep(), Detail::Brief, 120));
}

#[test]
fn an_open_loop_on_raw_storage() {
    insta::assert_snapshot!(report(&requests::open_loop(), Detail::Brief, 120));
}

#[test]
fn reads_and_writes_of_raw_storage_in_full() {
    insta::assert_snapshot!(report(&requests::mixed(), Detail::Full, 120));
}

#[test]
fn raw_storage_in_tables_and_spreadsheets() {
    let runs = [requests::sweep(), requests::open_loop(), requests::mixed()];
    assert_eq!(Style::usual(&runs), Style::Requests);
    insta::assert_snapshot!("requests_table", tabulate(&runs, Style::usual(&runs), Format::Text));
    let mut out = Vec::new();
    csv::steps(&mut out, &runs[1]).unwrap();
    let out = String::from_utf8(out).unwrap();
    let columns = out.lines().next().unwrap().split(',').count();
    assert!(out.lines().all(|line| line.split(',').count() == columns), "{out}");
    insta::assert_snapshot!("requests_steps.csv", out);
}

#[test]
fn nothing_of_a_database_is_reported_of_raw_storage() {
    for run in [requests::sweep(), requests::open_loop(), requests::mixed()] {
        let text = report(&run, Detail::Full, 140);
        for word in ["SLOBops", "logical reads", "redo", "hit %", "session"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}

#[test]
fn no_line_of_raw_storage_is_wider_than_the_terminal() {
    for run in [requests::sweep(), requests::open_loop(), requests::mixed()] {
        for width in [80, 100, 132] {
            for line in report(&run, Detail::Full, width).lines() {
                assert!(line.len() <= width.max(112), "{width}: {line}");
            }
        }
    }
}

#[test]
fn the_page_cache_is_named_in_the_first_line_and_above_the_table() {
    let mut run = requests::sweep();
    run.target.facts.files.direct_io = Some(false);
    let text = report(&run, Detail::Brief, 200);
    assert!(text.starts_with("RESULT    not reliable (requests went through the page cache): "), "{text}");
    assert!(text.contains("warning: Through the page cache, as requested"), "{text}");
    assert!(text.contains("Requests (times from sent to finished), through the page cache\n"), "{text}");
}

#[test]
fn the_generators_own_limit_comes_first() {
    let mut run = requests::sweep();
    let generator = run.steps[2].generator.as_mut().unwrap();
    (generator.ceiling_operations_per_s, generator.busiest_share) = (Some(5_300.0), 0.85);
    let text = report(&run, Detail::Brief, 200);
    assert!(text.lines().next().unwrap().contains("not reliable (the load generator was the limit): "), "{text}");
}

#[test]
fn times_that_another_program_does_not_tell_are_not_known_rather_than_none() {
    let mut run = requests::sweep();
    run.steps.iter_mut().for_each(|step| step.operations.clear());
    let first = |run: &Run| {
        let text = report(run, Detail::Brief, 200);
        let table = text.split("Requests (times").nth(1).unwrap().to_owned();
        table.lines().nth(3).unwrap().split_whitespace().rev().take(6).collect::<Vec<_>>().concat()
    };
    assert_eq!(first(&run), "------");
    run.imported = Some(Imported { files: Vec::new(), clock: Clock::Utc, not_understood: Vec::new() });
    let text = report(&run, Detail::Brief, 200);
    assert!(text.contains("Requests (times") && !text.contains("p99.9"), "what no step knows is left out: {text}");
    run.steps[0].counters.operations = Some(0);
    assert_eq!(first(&run), "------", "nothing was sent");
}
