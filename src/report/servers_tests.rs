//! Reports of runs on database servers.

use super::tests::{report, tabulate};
use super::*;
use crate::analysis::analyse_asked;
use crate::record::sample::servers::{changed_shape, private_cluster, remote, two_nodes};
use crate::record::{Run, sample};

/// As a user sees it who asks for no limit.
fn plain(run: &Run, detail: Detail, width: usize) -> String {
    let mut out = Vec::new();
    text(&mut out, run, &analyse_asked(run, None), detail, width).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_private_cluster_in_brief() {
    insta::assert_snapshot!(plain(&private_cluster(), Detail::Brief, 120));
}

#[test]
fn a_private_cluster_in_full() {
    insta::assert_snapshot!(plain(&private_cluster(), Detail::Full, 140));
}

#[test]
fn somebody_elses_server() {
    insta::assert_snapshot!(plain(&remote(), Detail::Brief, 120));
}

#[test]
fn two_uneven_nodes() {
    insta::assert_snapshot!(plain(&two_nodes(), Detail::Brief, 120));
}

#[test]
fn tables_that_changed_their_shape() {
    insta::assert_snapshot!(plain(&changed_shape(), Detail::Brief, 120));
}

#[test]
fn tables_over_runs_tell_device_reads_or_nothing() {
    let runs = [private_cluster(), remote(), two_nodes()];
    insta::assert_snapshot!("servers_awr_info", tabulate(&runs, Style::AwrInfo, Format::Markdown));
    insta::assert_snapshot!("servers_matrix", tabulate(&runs, Style::Matrix, Format::Text));
}

#[test]
fn a_server_that_reported_nothing_is_not_reported_as_idle() {
    let mut run = private_cluster();
    for step in &mut run.steps {
        step.servers[0] = crate::record::ServerStats { node: "db1:5432".to_owned(), ..Default::default() };
        step.counters = crate::record::Counters { operations: step.counters.operations, ..Default::default() };
    }
    let shown = plain(&run, Detail::Brief, 120);
    let row = shown.lines().skip_while(|line| !line.starts_with("Where blocks came from")).nth(3).unwrap();
    assert_eq!(row.split_whitespace().skip(1).collect::<Vec<_>>(), ["?"; 7], "{shown}");
    assert!(!shown.contains("Write-ahead log"), "{shown}");
}

#[test]
fn counts_that_seem_to_contradict_each_other_are_explained_below_them() {
    let ahead = "the kernel reads ahead what nobody has asked for yet";
    let mut run = private_cluster();
    let one_line = |run: &Run| plain(run, Detail::Brief, 120).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!one_line(&run).contains(ahead), "fewer came from the device than were missed");
    for step in &mut run.steps {
        let counters = &mut step.servers[0].counters;
        counters.physical_reads = counters.buffer_misses.map(|misses| misses * 2);
    }
    assert!(one_line(&run).contains(ahead));
    for step in &mut run.steps {
        step.servers[0].counters.physical_reads = None;
        step.servers[0].counters.page_cache_hits = None;
    }
    let traced = one_line(&run);
    assert!(traced.contains("the page cache answered is not known") && traced.contains("shows them all the same"));
    run.steps.iter_mut().for_each(|step| step.traces.clear());
    assert!(!one_line(&run).contains("shows them all the same"), "nothing below shows them");
}

#[test]
fn no_line_is_wider_than_the_terminal_and_hostile_names_stay_names() {
    for mut run in [private_cluster(), remote(), two_nodes(), changed_shape()] {
        run.steps[0].servers[0].node = "\u{1b}[2J".to_owned();
        run.steps[0].servers[0].session_samples.insert("\u{1b}[31m".to_owned(), 100_000);
        run.target.facts.insert("setting.search_path".to_owned(), "\u{1b}]0;x".to_owned());
        for width in [80, 120, 200] {
            let shown = report(&run, Detail::Full, width);
            assert!(!shown.contains('\u{1b}'), "{shown}");
            for line in shown.lines() {
                assert!(line.len() <= width.max(112), "at {width}: {line}");
            }
        }
    }
}

#[test]
fn runs_of_an_engine_have_no_tables_of_servers() {
    let shown = report(&sample::updates(60), Detail::Full, 120);
    assert!(!shown.contains("layer: server"), "{shown}");
}
