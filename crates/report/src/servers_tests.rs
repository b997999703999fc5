//! Reports of runs on database servers.

use super::tests::{report, tabulate};
use super::*;
use analysis::analyse_asked;
use model::record::sample::servers::{changed_shape, innodb, private_cluster, remote, two_nodes};
use model::record::{Activity, Histogram, ReportedWaits, Run, ServerStats, Waiters, sample};

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
fn a_server_with_redo_that_counts_its_own_reads() {
    insta::assert_snapshot!(plain(&innodb(), Detail::Full, 120));
}

/// Words of one server in the report of another would send its reader to look for what is not there.
#[test]
fn no_word_of_postgresql_stands_in_what_is_reported_of_another_server() {
    let run = innodb();
    let mut two = run.clone();
    for step in &mut two.steps {
        let other = ServerStats { node: "other".to_owned(), ..step.servers[0].clone() };
        step.servers.push(other);
    }
    let mut page = Vec::new();
    let findings = analyse_asked(&run, None);
    html::report(&mut page, &[html::Reported::new(&run, &findings)], &html::Kept::File).unwrap();
    let interval = &run.steps[0].intervals[5];
    let said = [
        plain(&run, Detail::Brief, 100),
        plain(&two, Detail::Full, 140),
        String::from_utf8(page).unwrap(),
        interval_line(interval),
        interval_words(interval, 200),
    ];
    for text in said {
        for word in ["WAL", "HOT", "Write-ahead", "vacuum", "full-page", "device reads: OS", "the page cache answered"]
        {
            assert!(!text.contains(word), "{word} in {text}");
        }
        assert!(text.contains("redo MB/s") || text.contains("Redo log"), "{text}");
    }
}

#[test]
fn reads_that_the_page_cache_may_have_answered_are_no_device_reads() {
    let mut run = innodb();
    run.target.facts.server.reads_directly = None;
    run.target.facts.server.counts_device_reads = None;
    for step in &mut run.steps {
        for server in step.intervals.iter_mut().flat_map(|interval| &mut interval.servers).chain(&mut step.servers) {
            server.counters.buffer_misses = server.counters.physical_reads.take();
        }
        step.counters.buffer_misses = step.counters.physical_reads.take();
    }
    let text = plain(&run, Detail::Full, 140);
    assert!(text.contains("With `innodb_flush_method=O_DIRECT` it does not."), "{text}");
    assert!(text.contains("Have the server read past the page cache (`innodb_flush_method=O_DIRECT`)"), "{text}");
}

#[test]
fn reads_that_sessions_waited_for_stand_beside_other_rates_as_rates() {
    let mut run = innodb();
    for server in run.steps.iter_mut().flat_map(|step| &mut step.servers) {
        let seconds = server.elapsed_ns / 1_000_000_000;
        let reads = [(Activity::SingleBlockReads, 731), (Activity::BatchedReads, 0), (Activity::MultiBlockReads, 0)];
        server.activity.extend(reads.map(|(activity, per_s)| (activity, per_s * seconds)));
    }
    for detail in [Detail::Brief, Detail::Full] {
        let text = plain(&run, detail, 140);
        assert!(text.contains("single-block 731,") || text.contains(" 731 "), "{text}");
    }
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

/// A database that counts as Oracle's instances do, and what `awr_info` makes of a report of the same.
#[test]
fn servers_that_time_their_waits_have_the_columns_of_their_reports() {
    let mut run = two_nodes();
    let step = &mut run.steps[0];
    for server in &mut step.servers {
        let seconds = server.elapsed_ns / 1_000_000_000;
        let own = [
            ("DB time_ns", 4 * server.elapsed_ns),
            ("DB CPU_ns", server.elapsed_ns / 2),
            ("execute count", 700 * seconds),
            ("physical read total bytes", 50 * (seconds << 20)),
        ];
        server.own = own.map(|(name, count)| (name.to_owned(), count)).into();
    }
    let wait = |event: &str, class: &str, count, mean_us: u64| {
        let mut wait = sample::wait(event, class, true, Histogram::counted(count, None));
        wait.layer = "server".to_owned();
        wait.reported = [(Waiters::Foreground, mean_us), (Waiters::Background, mean_us / 2)]
            .into_iter()
            .map(|(by, mean_us)| {
                let (count, total_ns) = (count / 2, Some(count / 2 * mean_us * 1_000));
                ReportedWaits { by, count, total_ns, layer: "server".to_owned(), source: "v$system_event".to_owned() }
            })
            .collect();
        wait
    };
    step.waits = vec![
        wait("db file sequential read", "User I/O", 1_200_000, 600),
        wait("db file parallel read", "User I/O", 2_000, 900),
        wait("log file parallel write", "System I/O", 6_000, 500),
    ];
    let table = tabulate(std::slice::from_ref(&run), Style::AwrInfo, Format::Text);
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let lines: Vec<&str> = table.lines().collect();
    let (names, values) = (cells(lines[0]), cells(lines[1]));
    let value = |name: &str| values[names.iter().position(|known| known == name).unwrap()].as_str();
    assert_eq!(["DB CPU", "DB Tm", "EXECUTES", "READ_MBS"].map(value), ["1.0", "8.0", "1400", "100.0"], "{table}");
    assert_eq!(["DFSR_LAT", "DFPR_LAT", "LFPW_LAT"].map(value), ["600", "900", "250"], "{table}");
    assert_eq!(value("TOP WAIT"), "db file sequential read 75.0% of DB time", "{table}");
    let text = plain(&run, Detail::Full, 140);
    assert!(text.contains("Wait events (% of DB time;") && text.contains("of these, background"), "{text}");
}

/// An older program reported these of the same file.
#[test]
fn a_run_on_a_server_has_the_findings_that_it_had() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/postgres");
    let run = model::record::store::load(std::path::Path::new(path)).unwrap();
    assert!(!run.steps[0].intervals.is_empty());
    let found = analyse_asked(&run, None);
    let found: Vec<(String, Option<String>)> =
        found.iter().map(|finding| (finding.sentence(), finding.advice())).collect();
    let said = |sentence: &str, advice: &str| (sentence.to_owned(), Some(advice.to_owned()));
    assert_eq!(found.len(), 4, "{found:#?}");
    assert_eq!(
        found[2..],
        [
            said(
                "1 requested checkpoint began in s2_t2; the WAL has 4,108 full-page images, at most 17.4 % of it.",
                "Raise max_wal_size until a run's WAL fits between two timed checkpoints, and do not call CHECKPOINT.",
            ),
            said(
                "Sessions at work in s2_t2 were found most often in `LWLock:WALWrite`: 64.4 % of what 59 looks saw.",
                "Commits wait for the WAL: put it on storage with faster durable writes, and judge that by the commit's \
                 latency.",
            ),
        ]
    );
    let shown = plain(&run, Detail::Full, 120);
    let row = |title: &str| {
        let row = shown.lines().skip_while(|line| !line.starts_with(title)).nth(3).unwrap();
        row.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("Write-ahead log"), ["32.2", "56,265", "74,508", "685", "<=17.4"]);
    assert_eq!(row("Checkpoints begun"), ["-", "1", "682", "-", "-"]);
    assert!(shown.contains("\npg_stat_wal.wal_fpi ") && !shown.contains("term."), "{shown}");
    let interval = &run.steps[0].intervals[0].servers[0];
    assert!(interval.activity.len() > 10 && !interval.session_states.is_empty(), "{interval:?}");
}

#[test]
fn a_server_that_reported_nothing_is_not_reported_as_idle() {
    let mut run = private_cluster();
    for step in &mut run.steps {
        step.servers[0] = model::record::ServerStats { node: "db1:5432".to_owned(), ..Default::default() };
        step.counters = model::record::Counters { operations: step.counters.operations, ..Default::default() };
    }
    let shown = plain(&run, Detail::Brief, 120);
    assert!(!shown.contains("Where blocks came from") && !shown.contains("Write-ahead log"), "{shown}");
}

#[test]
fn counts_that_seem_to_contradict_each_other_are_explained_below_them() {
    let ahead = "than the server missed: the kernel reads ahead";
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
    assert!(traced.contains("the page cache answered is not known") && traced.contains("below still show them"));
    run.steps.iter_mut().for_each(|step| step.traces.clear());
    assert!(!one_line(&run).contains("below still show them"), "nothing below shows them");
}

#[test]
fn no_line_is_wider_than_the_terminal_and_hostile_names_stay_names() {
    for mut run in [private_cluster(), remote(), two_nodes(), changed_shape()] {
        run.steps[0].servers[0].node = "\u{1b}[2J".to_owned();
        run.steps[0].servers[0].session_samples.insert("\u{1b}[31m".to_owned(), 100_000);
        run.target.facts.server.settings.insert("search_path".to_owned(), "\u{1b}]0;x".to_owned());
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
