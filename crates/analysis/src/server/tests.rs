use super::finding::CheckpointTerms;
use super::*;
use crate::{Ceiling, Figures, LatencyTarget, Limit, Message, Severity, analyse, analyse_asked, measured, two_levels};
use model::record::sample::servers::{LOCAL, Server, changed_shape, land, private_cluster, remote, two_nodes};
use model::record::sample::{self, Level};
use model::record::{Activity, Load, ServerStats, SessionState, Step, Term, Workload};
use model::units::{Bytes, Nanos};

pub(super) fn server_findings(run: &Run) -> Vec<ServerFinding> {
    let server = |finding| match finding {
        Finding::Server(reported) => Some(reported),
        _ => None,
    };
    analyse_asked(run, None).into_iter().filter_map(server).collect()
}

fn labels(steps: &[&str]) -> Vec<String> {
    steps.iter().map(|step| (*step).to_owned()).collect()
}

/// A private cluster with something changed on the server in its last step.
fn changed(change: impl Fn(&mut ServerStats)) -> Run {
    let mut run = private_cluster();
    change(&mut run.steps[2].servers[0]);
    run
}

fn set(server: &mut ServerStats, activity: Activity, count: u64) {
    assert!(server.activity.insert(activity, count).is_some(), "{activity:?} is not among what the sample counts");
}

#[test]
fn a_clean_run_on_a_private_cluster_brings_no_complaint() {
    let found = analyse_asked(&private_cluster(), None);
    assert!(found.iter().all(|finding| finding.severity() == Severity::Answer), "{found:#?}");
    assert!(server_findings(&private_cluster()).is_empty());
}

#[test]
fn a_run_on_an_engine_has_nothing_to_say_of_servers() {
    assert!(find(&sample::updates(60)).is_empty());
}

#[test]
fn misses_that_the_page_cache_answered_are_figures_of_memory() {
    let mut run = private_cluster();
    run.steps.iter_mut().for_each(|step| {
        let counters = &mut step.servers[0].counters;
        let misses = counters.buffer_misses.unwrap();
        counters.page_cache_hits = Some(misses * 8 / 10);
        counters.physical_reads = Some(misses - misses * 8 / 10);
    });
    let found = server_findings(&run);
    let [ServerFinding::PageCacheServed { steps, share, is_private: true, .. }] = &found[..] else {
        panic!("{found:#?}")
    };
    assert_eq!((steps.len(), (share * 100.0).round()), (3, 80.0));
    assert_eq!(found[0].severity(), Severity::Doubt);
    assert!(found[0].sentence().contains("not of storage"), "{}", found[0].sentence());
    // Transactions of an application are what they are with the cache that they have.
    let is_said = |run: &Run| {
        let served = |finding: &Finding| matches!(finding, Finding::Server(ServerFinding::PageCacheServed { .. }));
        crate::analyse_limits(run, &[]).iter().any(served)
    };
    assert!(is_said(&run));
    assert!(!is_said(&Run { load: Load::foreign(Workload::Orders), ..run.clone() }));
    let limited = found[0].advice().unwrap();
    assert!(limited.contains("less than the 1 GiB") && !limited.contains("--host-memory"), "it was given: {limited}");
    run.target.facts.server.memory_limit_bytes = None;
    assert!(server_findings(&run)[0].advice().unwrap().contains("--host-memory"));

    run.target.facts.server.is_private = Some(false);
    assert!(!server_findings(&run)[0].advice().unwrap().contains("--host-memory"), "it is not ours to limit");
}

#[test]
fn that_the_page_cache_cannot_be_seen_is_said() {
    let found = server_findings(&remote());
    let [ServerFinding::PageCacheUnknown { steps, data, .. }] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((steps, *data), (&labels(&["s16_t1"]), Some(Bytes::gib(8))));
    let mut direct = remote();
    direct.target.facts.server.reads_directly = Some(true);
    assert!(server_findings(&direct).is_empty(), "a server that reads directly has no page cache in its path");
}

#[test]
fn reads_of_several_blocks_are_no_single_block_reads() {
    let with_reads = |[single, batched, neighbours]: [u64; 3]| {
        changed(|server| {
            server.activity.extend([
                (Activity::SingleBlockReads, single),
                (Activity::BatchedReads, batched),
                (Activity::MultiBlockReads, neighbours),
            ]);
        })
    };
    let mut run = with_reads([9_000, 900, 100]);
    let found = server_findings(&run);
    let [ServerFinding::NotSingleBlock { steps, share, .. }] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((steps, (share * 1000.0).round()), (&labels(&["s16_t1"]), 100.0));
    assert_eq!(found[0].severity(), Severity::Doubt);
    run.target.facts.server.terms.insert(Term::SingleBlockReads, "`--one`".to_owned());
    let advice = server_findings(&run)[0].advice().unwrap();
    assert!(advice.contains("`--one`"), "{advice}");
    // Scans ask for neighbours, and for nothing else.
    let mut scan = run.steps[2].operations[0].clone();
    scan.kind = "scan".to_owned();
    run.steps[2].operations.push(scan);
    let found = server_findings(&run);
    let [ServerFinding::NotSingleBlock { share, .. }] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((share * 1000.0).round(), 91.0);

    // Nor are reads past the cache anything but what they ask for; without scans they are of several blocks.
    let past_cache = |run: &mut Run, count| {
        run.steps[2].servers[0].activity.extend([(Activity::ReadsPastCache, count)]);
    };
    past_cache(&mut run, 50_000);
    let found = server_findings(&run);
    let [ServerFinding::NotSingleBlock { share, .. }] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((share * 1000.0).round(), 91.0);
    let mut run = with_reads([9_000, 0, 0]);
    past_cache(&mut run, 1_000);
    let found = server_findings(&run);
    let [ServerFinding::NotSingleBlock { share, .. }] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((share * 1000.0).round(), 100.0);

    assert!(
        server_findings(&with_reads([9_950, 50, 0])).is_empty(),
        "a hundredth is beyond every percentile that is judged"
    );
    assert!(server_findings(&with_reads([50, 40, 0])).is_empty(), "so few say nothing");
}

#[test]
fn scans_that_went_through_the_cache_are_told() {
    let with = |past_cache: u64, blocks: Option<u64>| {
        let mut run = changed(|server| {
            server.activity.extend([
                (Activity::SingleBlockReads, 9_000),
                (Activity::BatchedReads, 0),
                (Activity::MultiBlockReads, 700),
                (Activity::ReadsPastCache, past_cache),
            ]);
            server.activity.extend(blocks.map(|blocks| (Activity::BlocksReadPastCache, blocks)));
        });
        let mut scan = run.steps[2].operations[0].clone();
        (scan.kind, scan.count, scan.block_touches) = ("scan".to_owned(), 10, 10_000);
        run.steps[2].operations.push(scan);
        run
    };
    for blocks in [None, Some(0), Some(40)] {
        let found = server_findings(&with(0, blocks));
        let [finding @ ServerFinding::ScansCached { steps, neighbours: 700, .. }] = &found[..] else {
            panic!("{found:#?}")
        };
        assert_eq!((steps, finding.severity()), (&labels(&["s16_t1"]), Severity::Note));
        assert!(finding.advice().unwrap().contains("SCAN_TABLE_SZ"));
    }
    assert!(server_findings(&with(80, Some(10_000))).is_empty(), "past the cache as they were to be");
    assert!(server_findings(&with(0, Some(10_000))).is_empty(), "nobody had to wait for them");
    let mut run = with(0, None);
    run.steps[2].operations.pop();
    let is_told = |found: &ServerFinding| matches!(found, ServerFinding::ScansCached { .. });
    assert!(!server_findings(&run).iter().any(is_told), "nobody asked for scans");
}

#[test]
fn tables_that_changed_their_shape_mark_the_run_first() {
    let found = analyse_asked(&changed_shape(), None);
    let Finding::Server(ServerFinding::ShapeChanged { steps, grown, hot_share }) = &found[0] else {
        panic!("{found:#?}")
    };
    assert_eq!(*steps, labels(&["s8_t1"]));
    let (pages, share) = grown.unwrap();
    assert_eq!(pages, 62 * 500, "the warm-up's two seconds write too");
    assert!((share - 31_000.0 / 1_048_576.0).abs() < 1e-9);
    assert!((hot_share.unwrap() - 0.2).abs() < 1e-3);
}

#[test]
fn growth_adds_up_over_the_steps() {
    let mut run = private_cluster();
    for step in &mut run.steps {
        set(&mut step.servers[0], Activity::TableBlocksGrown, 6_000);
    }
    let found = server_findings(&run);
    let [ServerFinding::ShapeChanged { steps, grown: Some((18_000, _)), hot_share: None }] = &found[..] else {
        panic!("{found:#?}")
    };
    assert_eq!(*steps, labels(&["s8_t1", "s16_t1"]), "6,000 of 1,048,576 pages are below 1 %");
}

#[test]
fn a_low_hot_share_of_a_few_rows_says_nothing() {
    let run = changed(|server| {
        set(server, Activity::RowsUpdated, 900);
        set(server, Activity::RowsUpdatedInPlace, 0);
    });
    assert!(server_findings(&run).is_empty());
}

#[test]
fn checkpoints_and_vacuums_in_the_window_are_reported() {
    let run = changed(|server| {
        set(server, Activity::CheckpointsRequested, 2);
        set(server, Activity::Vacuums, 1);
    });
    let found = server_findings(&run);
    let [
        ServerFinding::CheckpointInWindow { steps, timed: 0, requested: 2, images, image_share: Some(share), .. },
        ServerFinding::VacuumInWindow { vacuums: 1, analyses: 0, .. },
    ] = &found[..]
    else {
        panic!("{found:#?}")
    };
    assert_eq!(*steps, labels(&["s16_t1"]));
    assert_eq!((*images, *share), (176_640, 1.0), "as whole blocks, images are more than the log has");
    assert_eq!(found[0].sentence(), "2 requested checkpoints began in s16_t1; the WAL has 176,640 full-page images.");
    assert!(found[0].advice().unwrap().starts_with("Raise max_wal_size until a run's WAL fits"));
    let mut elsewhere = run;
    elsewhere.target.facts.server.terms.remove(&Term::LogCapacity);
    assert!(server_findings(&elsewhere)[0].advice().unwrap().starts_with("Raise the limit of the log until"));
}

/// A run of updates with a small log: `each` second of its last step is given what it counts of checkpoints, and its operations.
fn small_log(each: impl Fn(usize, u64, &mut ServerStats) -> u64) -> Run {
    let mut run = private_cluster();
    let server = &mut run.target.facts.server;
    let settings = [("max_wal_size", "64MB"), ("checkpoint_timeout", "5min"), ("checkpoint_completion_target", "0.9")];
    server.settings.extend(settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let step = &mut run.steps[2];
    let mut requested = 0;
    for (at, second) in step.intervals.iter_mut().filter(|interval| !interval.warmup).enumerate() {
        let server = &mut second.servers[0];
        let operations = each(at, second.counters.operations.unwrap(), server);
        requested += server.activity[&Activity::CheckpointsRequested];
        second.counters.operations = Some(operations);
    }
    set(&mut step.servers[0], Activity::CheckpointsRequested, requested);
    step.servers[0].counters.redo_bytes = Some(60 * 4_000_000);
    run
}

/// A checkpoint every ten seconds that writes for four, while so many of a hundred operations are done.
fn checkpoint_each_ten(pct: u64) -> impl Fn(usize, u64, &mut ServerStats) -> u64 {
    move |at, operations, server| {
        let during = at % 10;
        if during == 0 {
            set(server, Activity::CheckpointsRequested, 1);
        }
        if during < 4 {
            set(server, Activity::BlocksWrittenByCheckpoints, 500);
        }
        if during < 5 { operations * pct / 100 } else { operations }
    }
}

fn log_checkpoints_of(run: &Run) -> Option<(LogCheckpoints, String, String)> {
    server_findings(run).into_iter().find_map(|finding| match &finding {
        ServerFinding::LogCheckpoints { found, .. } => {
            Some((found.clone(), finding.sentence(), finding.advice().unwrap()))
        }
        _ => None,
    })
}

#[test]
fn checkpoints_that_a_small_log_requests_hold_back_where_seconds_with_them_are_slower() {
    let run = small_log(checkpoint_each_ten(50));
    let (found, sentence, advice) = log_checkpoints_of(&run).unwrap();
    assert_eq!((found.requested, found.every, found.limit), (6, Nanos::seconds(10), Bytes::mib(64)));
    assert!(found.slower.is_some_and(|share| (share - 0.5).abs() < 0.02), "{found:?}");
    // 4 MB/s for 300 s, times 1.9.
    assert_eq!(found.needed, Some(Bytes((2_280_000_000_u64).div_ceil(128 << 20) * (128 << 20))));
    assert!(
        sentence.starts_with("`max_wal_size` (64 MiB) requested 6 checkpoints in s16_t1, one every 10.0 s"),
        "{sentence}"
    );
    assert!(sentence.contains("they held the load back: throughput was 50"), "{sentence}");
    assert!(advice.starts_with("Raise `max_wal_size` to 2.1 GiB"), "{advice}");
    let others = server_findings(&run);
    assert!(!others.iter().any(|finding| matches!(finding, ServerFinding::CheckpointInWindow { .. })), "{others:#?}");
    let opening = crate::Opening::of(&run, &analyse_asked(&run, None)).sentence();
    assert!(
        opening.contains(
            "held back by checkpoints that max_wal_size=64 MiB requested, one every 10.0 s: throughput was 50"
        ),
        "{opening}"
    );
}

#[test]
fn checkpoints_that_cost_nothing_are_only_seen_and_few_or_others_are_no_matter_of_the_log() {
    let (found, sentence, _) = log_checkpoints_of(&small_log(checkpoint_each_ten(97))).unwrap();
    assert_eq!(found.slower, None);
    assert!(sentence.contains("that they held the load back is not seen"), "{sentence}");
    // A checkpoint that never ends leaves nothing to compare with.
    let always = small_log(|at, operations, server| {
        set(server, Activity::CheckpointsRequested, u64::from(at % 10 == 0));
        set(server, Activity::BlocksWrittenByCheckpoints, 500);
        operations / 2
    });
    assert_eq!(log_checkpoints_of(&always).unwrap().0.slower, None);
    let once = small_log(|at, operations, server| {
        set(server, Activity::CheckpointsRequested, u64::from(at == 7));
        operations
    });
    assert_eq!(log_checkpoints_of(&once), None, "one in 60 s is not too often");
    let mut by_command = small_log(checkpoint_each_ten(50));
    by_command.steps[2].servers[0].counters.redo_bytes = Some(60_000_000);
    assert_eq!(log_checkpoints_of(&by_command), None, "the log was far from its limit each time");
    assert!(matches!(server_findings(&by_command)[0], ServerFinding::CheckpointInWindow { requested: 6, .. }));
}

#[test]
fn blocks_written_by_sessions_are_counted_in_bytes_too() {
    let mut run = private_cluster();
    let written = |run: &Run| Served::of(run, &run.steps[0]).session_writes_per_s();
    let old = written(&run);
    assert!(old.is_some_and(|rate| rate > 0.0));
    let activity = &mut run.steps[0].servers[0].activity;
    let count = activity.remove(&Activity::BlocksWrittenBySessions).unwrap();
    activity.insert(Activity::BytesWrittenBySessions, count * 8_192);
    assert_eq!(written(&run), old);
    run.target.block_bytes = None;
    assert_eq!(written(&run), None);
}

#[test]
fn nodes_with_different_loads_are_reported() {
    let found = server_findings(&two_nodes());
    let uneven = found.iter().find(|reported| matches!(reported, ServerFinding::NodesUneven { .. })).unwrap();
    assert!(matches!(uneven, ServerFinding::NodesUneven { imbalance, .. } if (imbalance - 0.4).abs() < 0.001));
    let mut run = two_nodes();
    run.steps[0].servers[1].counters = run.steps[0].servers[0].counters.clone();
    assert!(!server_findings(&run).iter().any(|reported| matches!(reported, ServerFinding::NodesUneven { .. })));
}

#[test]
fn what_one_of_two_nodes_does_not_tell_is_not_known_of_both() {
    let mut run = two_nodes();
    let read = |run: &Run| Figures(&run.steps[0]).value(Metric::Reads);
    assert_eq!(read(&run), None);
    run.steps[0].servers[0].counters.physical_reads = Some(60_000);
    run.steps[0].counters.physical_reads = Some(60_000);
    assert_eq!(read(&run), None);
    run.steps[0].servers[1].counters.physical_reads = Some(30_000);
    assert_eq!(read(&run), Some(1_500.0));
}

#[test]
fn deadlocks_are_a_doubt_and_rollbacks_a_note() {
    let run = changed(|server| set(server, Activity::Deadlocks, 3));
    let found = server_findings(&run);
    assert!(matches!(&found[..], [ServerFinding::RolledBack { deadlocks: 3, .. }]), "{found:#?}");
    assert_eq!(found[0].severity(), Severity::Doubt);
    let few = changed(|server| set(server, Activity::Rollbacks, 5));
    assert!(server_findings(&few).is_empty());
    let many = changed(|server| set(server, Activity::Rollbacks, 5_000));
    assert_eq!(server_findings(&many)[0].severity(), Severity::Note);
}

#[test]
fn a_server_that_did_not_answer_is_reported() {
    let mut run = private_cluster();
    for second in &mut run.steps[2].intervals[10..13] {
        second.servers.clear();
    }
    let found = server_findings(&run);
    assert!(matches!(&found[..], [ServerFinding::Unread { silent: 3, missed: 0.0, .. }]), "{found:#?}");
    assert_eq!(found[0].severity(), Severity::Note, "what it counted meanwhile was read afterwards");
    run.steps[2].servers[0].elapsed_ns -= 5_000_000_000;
    let found = server_findings(&run);
    assert_eq!(found[0].severity(), Severity::Doubt);
    assert!(found[0].sentence().contains("8.3 % of the time is missing"), "{}", found[0].sentence());
}

#[test]
fn rates_of_a_server_are_over_the_time_between_its_readings() {
    let mut run = private_cluster();
    let rates = |run: &Run| {
        let figures = Figures(&run.steps[0]);
        [figures.value(Metric::LogicalReads), figures.operations_per_s()]
    };
    let before = rates(&run);
    let server = &mut run.steps[0].servers[0];
    server.elapsed_ns /= 2;
    server.counters.logical_reads = server.counters.logical_reads.map(|count| count / 2);
    run.steps[0].counters.logical_reads = server.counters.logical_reads;
    assert_eq!(rates(&run), before);
}

/// A step of 16 sessions whose server uses `cpu_ns` for each logical read, on eight processors.
fn busy(cpu_ns: u64) -> Run {
    let mut run = private_cluster();
    let level = Level { sessions: 16, operations_per_s: 460, read_ns: 34_000_000, seconds: 60, update_pct: 0 };
    let mut step = sample::step(2, level);
    land(&mut step, &[Server { cpu_ns: Some(cpu_ns), ..LOCAL }]);
    run.steps[2] = step;
    run
}

#[test]
fn a_server_that_uses_every_processor_is_the_limit_and_not_the_storage() {
    // 30,820 logical reads a second; one of eight processors waits for storage all the while.
    let mut run = busy(226_000);
    let host = run.steps[2].host_cpu.as_mut().unwrap();
    (host.iowait_ns, host.idle_ns) = (Some(0), Some(host.idle_ns.unwrap() / 10));
    let found = server_findings(&run);
    let ServerFinding::ProcessorsExhausted { steps, busy: share, server, generator } = &found[0] else {
        panic!("{found:#?}")
    };
    assert_eq!(*steps, labels(&["s16_t1"]));
    assert!(*share >= 0.95 && *server > 0.9 && generator.is_some_and(|share| share < 0.02), "{found:#?}");
    assert!(found[0].sentence().ends_with("the limit is processor time, not storage."), "{}", found[0].sentence());
    assert!(!analyse(&run, &LatencyTarget::default()).iter().any(|finding| matches!(finding, Finding::Ceiling(_))));

    assert!(server_findings(&busy(25_000)).is_empty());
    run.steps[2].servers[0].cpu = None;
    assert!(server_findings(&run).is_empty(), "a server elsewhere does not use this machine's processors");
}

#[test]
fn what_sessions_were_found_in_is_reported_where_it_is_not_reading() {
    let run = changed(|server| {
        server.session_samples.insert("LWLock:WALWrite".to_owned(), 9_000);
        server.session_states.insert("LWLock:WALWrite".to_owned(), SessionState::LogWrite);
    });
    let found = server_findings(&run);
    let [ServerFinding::SessionsFoundIn { doing, share, looks: 600, .. }] = &found[..] else { panic!("{found:#?}") };
    assert!(doing == "LWLock:WALWrite" && *share > 0.6);
    assert!(found[0].advice().unwrap().contains("WAL"));
    let few = changed(|server| {
        server.session_samples = [("Lock:transactionid".to_owned(), 9)].into();
        server.sampled_times = 9;
    });
    assert!(server_findings(&few).is_empty());
}

#[test]
fn time_between_batches_is_not_blamed_on_processors() {
    let mut run = private_cluster();
    run.steps[2].generator.as_mut().unwrap().idle_session_ns = 16 * 60_000_000_000 / 5;
    let found = analyse_asked(&run, None);
    assert!(found.iter().any(|finding| matches!(finding, Finding::Server(ServerFinding::Idle { .. }))), "{found:#?}");
    assert!(!found.iter().any(|finding| matches!(finding, Finding::WaitedForProcessor(_))));
    let mut advice = |busiest_share| {
        run.steps[2].generator.as_mut().unwrap().busiest_share = busiest_share;
        let found = server_findings(&run).into_iter();
        found.filter(|found| matches!(found, ServerFinding::Idle { .. })).find_map(|idle| idle.advice()).unwrap()
    };
    assert!(advice(0.2).contains("nearer to the server"));
    assert!(advice(0.8).contains("Give the load generator more threads"), "its own thread had no time for them");
}

#[test]
fn commits_alone_are_timed_and_so_are_no_top_wait() {
    let found = analyse_asked(&private_cluster(), None);
    assert!(!found.iter().any(|finding| matches!(finding, Finding::TopWait(_))), "{found:#?}");
}

#[test]
fn operations_are_judged_where_a_limit_is_asked_for_and_nothing_where_not() {
    let run = private_cluster();
    assert!(!analyse_asked(&run, None).iter().any(Finding::is_load_line));
    let asked: LatencyTarget = "p99=90ms".parse().unwrap();
    let found = analyse_asked(&run, Some(&asked));
    assert!(found[0].sentence().contains("p99 of response time"), "{}", found[0].sentence());
}

/// The plateau of a sweep from 4 to 16 sessions that stays at 400 operations a second.
fn plateau(server: Server) -> Option<Ceiling> {
    let mut run = private_cluster();
    let levels = [(4, 200), (8, 400), (16, 400), (32, 400)];
    run.steps = levels
        .iter()
        .zip(0..)
        .map(|((sessions, operations_per_s), index)| {
            let level = Level {
                sessions: *sessions,
                operations_per_s: *operations_per_s,
                read_ns: 0,
                seconds: 60,
                update_pct: 0,
            };
            let mut step = sample::step(index, level);
            land(&mut step, &[server]);
            step
        })
        .collect();
    analyse_asked(&run, None).into_iter().find_map(|finding| match finding {
        Finding::Ceiling(ceiling) => Some(ceiling),
        _ => None,
    })
}

#[test]
fn a_plateau_is_the_devices_only_where_reads_are_known_to_reach_it() {
    let device = plateau(LOCAL).unwrap();
    assert_eq!((device.what, device.limit, device.per_s), ("buffer misses", Limit::ServerStorage, 24_000.0));
    for page_cache_pct in [None, Some(60)] {
        let server = plateau(Server { page_cache_pct, ..LOCAL }).unwrap();
        assert_eq!((server.limit, server.like), (Limit::Server, None));
        let sentence = server.sentence();
        assert!(sentence.contains("24,000 buffer misses/s") && sentence.contains("operations take"), "{sentence}");
        assert!(!sentence.contains("IOPS") && !sentence.contains("physical"), "{sentence}");
    }
}

#[test]
fn a_checkpoint_that_slows_reads_down_is_no_burst_credit() {
    let halve = |step: &mut Step| {
        for second in step.intervals.iter_mut().skip(32) {
            let counters = &mut second.counters;
            for count in [&mut counters.operations, &mut counters.physical_reads, &mut counters.physical_read_bytes] {
                *count = count.map(|count| count / 2);
            }
        }
    };
    let mut run = private_cluster();
    run.steps.truncate(1);
    halve(&mut run.steps[0]);
    let rates: Vec<f64> =
        run.steps[0].intervals[2..].iter().map(|second| second.counters.operations.unwrap() as f64).collect();
    assert!(two_levels(&rates).is_some());
    let is_burst = |run: &Run| analyse_asked(run, None).iter().any(|finding| matches!(finding, Finding::Burst(_)));
    assert!(is_burst(&run));
    run.steps[0].counters.checkpoints = Some(1);
    assert!(!is_burst(&run));
    run.steps[0].counters.checkpoints = Some(0);
    for second in &mut run.steps[0].intervals {
        (second.counters.physical_reads, second.counters.physical_read_bytes) = (None, None);
    }
    (run.steps[0].counters.physical_reads, run.steps[0].counters.physical_read_bytes) = (None, None);
    assert!(!is_burst(&run), "writes to the page cache are no requests to storage");
}

#[test]
fn shares_of_this_machines_processors_add_up_to_what_was_used() {
    let run = private_cluster();
    for step in measured(&run) {
        let processors = Processors::of(&run, step).unwrap();
        let (generator, server) = (processors.generator.unwrap(), processors.server.unwrap());
        assert!(generator < 0.02 && generator + server < 1.0 && server > 0.5, "{processors:?}");
        assert!(processors.busy.unwrap() < 0.5 && processors.io_wait.unwrap() > 0.1, "{processors:?}");
    }
}

#[test]
fn every_finding_ends_as_a_sentence() {
    let steps = || labels(&["s8", "s16"]);
    for reported in [
        ServerFinding::ProcessorsExhausted { steps: steps(), busy: 0.98, server: 0.9, generator: None },
        ServerFinding::ShapeChanged { steps: steps(), grown: None, hot_share: Some(0.5) },
        ServerFinding::PageCacheServed { steps: steps(), share: 0.2, is_private: false, limited_to: None },
        ServerFinding::Unread { steps: steps(), node: "db1".to_owned(), silent: 0, missed: 0.1 },
        ServerFinding::RolledBack { steps: steps(), deadlocks: 1, rollbacks: 1 },
        ServerFinding::CheckpointInWindow {
            steps: steps(),
            timed: 1,
            requested: 1,
            images: 9,
            image_share: Some(0.4),
            terms: CheckpointTerms::of(&private_cluster()),
        },
        ServerFinding::VacuumInWindow { steps: steps(), vacuums: 1, analyses: 2 },
        ServerFinding::SessionsFoundIn {
            step: "s8".to_owned(),
            doing: "Lock:tuple".to_owned(),
            share: 0.5,
            looks: 60,
            state: SessionState::Lock,
            log: "WAL".to_owned(),
        },
        ServerFinding::Idle { steps: steps(), share: 0.2, wanted: Some(0.1), threads: ThreadsFlag::Absent },
        ServerFinding::Stopped {
            step: "u8".to_owned(),
            stops: Stops::Processors { busy: 0.99, by: UsedBy::Others, others: Some(0.4), stolen: None },
        },
        ServerFinding::Stopped {
            step: "u8".to_owned(),
            stops: Stops::Quota { share: 0.4, periods: 80, throttled_periods: 61 },
        },
        ServerFinding::Stopped { step: "u8".to_owned(), stops: Stops::Outside { share: 0.8, is_sure: true } },
        ServerFinding::Stopped { step: "u8".to_owned(), stops: Stops::Outside { share: 0.8, is_sure: false } },
        ServerFinding::Stopped {
            step: "u8".to_owned(),
            stops: Stops::Commits { share: 0.4, flush: None, log: "WAL".into() },
        },
        ServerFinding::Stopped { step: "u8".to_owned(), stops: Stops::Locks { share: 0.4, wait: Some(Nanos(7)) } },
        ServerFinding::Stopped { step: "u8".to_owned(), stops: Stops::Reads { share: 0.4 } },
    ] {
        assert!(reported.sentence().ends_with('.') && reported.advice().unwrap().ends_with('.'), "{reported:?}");
    }
}
