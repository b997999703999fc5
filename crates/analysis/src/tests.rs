use super::*;
use model::record::sample::{self, Level, SEQUENTIAL_READ, windows};
use model::record::{CpuTime, Intensity, Metric, Outcome, TargetKind, Throttled};
use model::units::Nanos;

fn findings(run: &Run) -> Vec<Finding> {
    analyse(run, &LatencyTarget::default())
}

fn has(run: &Run, matches: impl Fn(&Finding) -> bool) -> bool {
    findings(run).iter().any(matches)
}

/// One step of one minute, 8 sessions, nothing wrong with it.
fn plain() -> Run {
    sample::run(&[Level { sessions: 8, operations_per_s: 560, read_ns: 610_000, seconds: 60, update_pct: 0 }])
}

macro_rules! finds {
    ($run:expr, $pattern:pat) => {
        let found = findings(&$run);
        assert!(found.iter().any(|finding| matches!(finding, $pattern)), "{} not in {found:#?}", stringify!($pattern));
    };
}

#[test]
fn a_clean_sweep_brings_answers_and_no_complaint() {
    let found = findings(&sample::sweep(60));
    assert!(found.iter().all(|finding| finding.severity() == Severity::Answer), "{found:#?}");
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[test]
fn a_clean_run_with_updates_brings_no_complaint() {
    let found = findings(&sample::updates(60));
    assert!(found.is_empty(), "one load has no load line, and nobody has asked for a limit: {found:#?}");
}

#[test]
fn the_load_line_is_the_largest_step_that_meets_the_target() {
    let found = findings(&sample::sweep(60));
    let Some(Finding::StepLine(StepLine::Between { passing, failing, .. })) = found.first() else {
        panic!("{found:#?}")
    };
    assert_eq!((passing.step.as_str(), failing.above.step.as_str()), ("s16_t1", "s32_t1"));
    assert!(passing.value.ns <= Nanos::millis(5) && failing.above.value.ns > Nanos::millis(5));
    assert_eq!(passing.reads_per_s, Some(636.0 * 63.0));
    assert!(failing.below.is_empty());
}

#[test]
fn the_order_in_which_steps_ran_does_not_matter() {
    let mut run = sample::sweep(60);
    run.steps.reverse();
    assert!(
        matches!(&findings(&run)[0], Finding::StepLine(StepLine::Between { passing, .. }) if passing.step == "s16_t1")
    );
}

#[test]
fn a_step_below_the_line_that_misses_the_target_is_named() {
    let mut run = sample::sweep(60);
    run.steps[1].waits[0].waits = sample::latencies(10_000, 20_000_000);
    let found = findings(&run);
    let line = found.iter().find(|finding| matches!(finding, Finding::StepLine(StepLine::Between { .. }))).unwrap();
    assert!(matches!(line, Finding::StepLine(StepLine::Between { failing, .. }) if failing.below == ["s2_t1"]));
    assert!(line.sentence().contains("not monotonic: s2_t1"), "{}", line.sentence());

    run.steps.truncate(4);
    finds!(run, Finding::StepLine(StepLine::OnlyAbove { .. }));
}

#[test]
fn a_target_that_all_or_none_meet_is_said_to_be_so() {
    let run = sample::sweep(60);
    let strict = LatencyTarget { limit: Nanos(100_000), ..LatencyTarget::default() };
    let lax = LatencyTarget { limit: Nanos::seconds(1), ..LatencyTarget::default() };
    assert!(matches!(&analyse(&run, &strict)[0], Finding::StepLine(StepLine::NoneMeets { .. })));
    assert!(
        matches!(&analyse(&run, &lax)[0], Finding::StepLine(StepLine::AllMeet { most, .. }) if most.step == "s32_t1")
    );
}

#[test]
fn a_target_on_an_event_that_did_not_happen_is_not_judged() {
    let target = LatencyTarget { subject: Some("log file sync".into()), ..LatencyTarget::default() };
    assert!(matches!(&analyse(&sample::sweep(60), &target)[0], Finding::StepLine(StepLine::NotJudged { .. })));
}

#[test]
fn failed_and_unfinished_steps_do_not_carry_the_load_line() {
    let mut run = sample::sweep(60);
    run.steps[4].outcome = Outcome::Failed { error: "gone".to_owned() };
    assert!(
        matches!(&findings(&run)[0], Finding::StepLine(StepLine::Between { passing, .. }) if passing.step == "s8_t1")
    );
}

#[test]
fn each_variation_has_its_own_load_line() {
    let mut run = sample::sweep(60);
    let more = sample::sweep(60).steps.into_iter().map(|mut step| {
        step.parameters.insert("WORK_UNIT".to_owned(), "16".to_owned());
        step.parameters.insert("THREADS_PER_SCHEMA".to_owned(), step.load.slots().to_string());
        step
    });
    run.steps.extend(more);
    let lines: Vec<_> = findings(&run)
        .into_iter()
        .filter_map(|finding| match finding {
            Finding::StepLine(StepLine::Between { series, .. }) => Some(series),
            _ => None,
        })
        .collect();
    assert_eq!(lines, ["", "WORK_UNIT=16"]);
}

#[test]
fn the_knee_is_where_the_cap_was_planted() {
    let found = findings(&sample::sweep(60));
    let knee = found.iter().find(|finding| matches!(finding, Finding::Knee(_))).unwrap();
    assert!(
        matches!(knee, Finding::Knee(Knee { bound, measured_sessions: 8, .. }) if (bound - 8.0).abs() < 0.01),
        "{knee:?}"
    );
}

#[test]
fn no_knee_is_reported_where_throughput_still_grows() {
    let mut run = sample::sweep(60);
    run.steps.truncate(3);
    assert!(!has(&run, |finding| matches!(finding, Finding::Knee(_))));
    finds!(run, Finding::Ceiling(Ceiling { limit: Limit::NotReached { .. }, .. }));
}

#[test]
fn a_cap_is_found_with_its_value() {
    let found = findings(&sample::sweep(60));
    let Some(Finding::Ceiling(cap)) = found.iter().find(|finding| matches!(finding, Finding::Ceiling(_))) else {
        panic!("{found:#?}")
    };
    assert_eq!((cap.per_s, cap.limit), (40_320.0, Limit::RequestsOrThroughput));
    assert_eq!((cap.loads.0.as_str(), cap.loads.1.as_str()), ("16 sessions", "32 sessions"));
}

#[test]
fn rate_and_throughput_of_a_plateau_are_those_of_one_step() {
    let mut run = sample::sweep(60);
    let step = &mut run.steps[4];
    let seconds = step.intervals.iter_mut().map(|second| &mut second.counters);
    for counters in seconds.chain([&mut step.counters]) {
        for count in [&mut counters.physical_reads, &mut counters.physical_read_bytes] {
            *count.as_mut().unwrap() += count.unwrap() / 100;
        }
    }
    let found = findings(&run);
    let Some(Finding::Ceiling(cap)) = found.iter().find(|finding| matches!(finding, Finding::Ceiling(_))) else {
        panic!("{found:#?}")
    };
    assert!(cap.per_s > 40_320.0, "the highest rate is reported");
    assert!((cap.megabytes_per_s.unwrap() - cap.per_s * 8_192.0 / 1e6).abs() < 0.1, "{cap:?}");
}

#[test]
fn a_plateau_of_a_saturated_client_is_not_blamed_on_storage() {
    let mut run = sample::sweep(60);
    run.steps[5].generator.as_mut().unwrap().busiest_share = 0.97;
    assert!(!has(&run, |finding| matches!(finding, Finding::Ceiling(_))));
    assert!(
        matches!(&findings(&run)[0], Finding::ClientSaturated(client) if !client.whole_machine && client.steps == ["s32_t1"])
    );
}

#[test]
fn a_thread_without_a_processor_is_kept_by_a_quota_only_where_the_kernel_says_so() {
    let said = |throttled: Option<(u64, u64)>, busiest_share: f64| {
        let mut run = plain();
        let step = &mut run.steps[0];
        let used = CpuTime { user_ns: 0, idle_ns: Some(60_000_000_000), iowait_ns: Some(0), ..CpuTime::default() };
        step.process_cpu = Some(CpuTime { user_ns: 60_000_000_000, ..CpuTime::default() });
        step.host_cpu = Some(CpuTime { user_ns: 420_000_000_000, ..used });
        let generator = step.generator.as_mut().unwrap();
        (generator.wanted_share, generator.busiest_share) = (Some(1.0), busiest_share);
        // Percent of the periods, and seconds of all processors together.
        generator.throttled = throttled.map(|(throttled_periods, seconds)| Throttled {
            periods: 600,
            throttled_periods: 6 * throttled_periods,
            throttled_ns: seconds * 1_000_000_000,
        });
        let found = findings(&run);
        let found = found.iter().find(|finding| matches!(finding, Finding::ClientSaturated(_))).unwrap();
        (found.sentence(), found.advice().unwrap())
    };
    let (quota, raise) = said(Some((60, 100)), 0.5);
    assert!(
        quota.contains("had one for 50.0 %, as a quota of its control group held it back") && raise.contains("cpu.max"),
        "{quota} {raise}"
    );
    // A server on the same machine, whose threads wake for a moment, leaves some of each processor idle.
    let (others, move_it) = said(Some((0, 0)), 0.5);
    // It sleeps while it waits for storage, and is held back for the rest of each period.
    let held = |wanted_share: f64| {
        let mut run = plain();
        let generator = run.steps[0].generator.as_mut().unwrap();
        (generator.wanted_share, generator.busiest_share) = (Some(wanted_share), 0.09);
        let counted = Throttled { periods: 600, throttled_periods: 588, throttled_ns: 44_000_000_000 };
        generator.throttled = Some(counted);
        let found = findings(&run);
        found.iter().find(|finding| matches!(finding, Finding::ClientSaturated(_))).map(Finding::sentence)
    };
    assert!(
        held(0.78).unwrap().contains("wanted a processor for 78.0 % of the time and had one for 9.0 %, as a quota")
    );
    assert_eq!(held(0.2), None, "others of its group were");
    // Threads of a server in the same group were held back, this one hardly: the sum over processors proves nothing.
    assert_eq!(said(Some((3, 29)), 0.5), (others.clone(), move_it.clone()));
    assert!(
        others.contains("had one for 50.0 %") && others.contains("while other programs used 75.0 % of this machine's"),
        "{others}"
    );
    assert!(!move_it.contains("cpu.max") && move_it.contains("another machine"), "{move_it}");
    let (old, _) = said(None, 0.5);
    assert!(old.contains("the kernel does not say what kept it"), "{old}");
    let (used, _) = said(Some((0, 0)), 0.95);
    assert!(used.contains("The busiest thread used 95.0 % of its processor"), "{used}");
}

#[test]
fn a_process_that_uses_up_its_quota_is_not_said_to_use_the_machine() {
    let mut run = plain();
    run.environment.cpus = Some(1);
    let step = &mut run.steps[0];
    step.process_cpu = Some(CpuTime { user_ns: 59_000_000_000, ..CpuTime::default() });
    let used = Throttled { periods: 600, throttled_periods: 500, throttled_ns: 200_000_000_000 };
    step.generator.as_mut().unwrap().throttled = Some(used);
    let said = |run: &Run| {
        let found = findings(run);
        let found = found.iter().find(|finding| matches!(finding, Finding::ClientSaturated(_))).unwrap().clone();
        (found.sentence(), found.advice().unwrap())
    };
    let (sentence, advice) = said(&run);
    assert!(sentence.contains("98.3 % of the processors that a quota of its control group leaves to it"), "{sentence}");
    assert!(advice.contains("cpu.max") && ThreadsFlag::of(&run).for_generator() == advice, "{advice}");
    run.steps[0].generator.as_mut().unwrap().throttled = Some(Throttled { throttled_periods: 5, ..used });
    let (sentence, advice) = said(&run);
    assert!(
        sentence.contains("of the processors that it may use") && !advice.contains("cpu.max"),
        "{sentence} {advice}"
    );
}

#[test]
fn a_plateau_without_longer_reads_is_not_a_cap() {
    let mut run = sample::sweep(60);
    run.steps[5].waits[0].waits = run.steps[4].waits[0].waits.clone();
    assert!(!has(&run, |finding| matches!(finding, Finding::Ceiling(_))));
}

#[test]
fn a_process_that_uses_every_processor_is_saturated() {
    let mut run = plain();
    run.steps[0].process_cpu.as_mut().unwrap().user_ns = 8 * 58_000_000_000;
    assert!(matches!(&findings(&run)[0], Finding::ClientSaturated(client) if client.whole_machine));
}

#[test]
fn an_open_loop_that_falls_behind_is_said_first() {
    let mut run = plain();
    let step = &mut run.steps[0];
    step.load = Intensity { rate_operations_per_s: Some(1_000.0), ..step.load.clone() };
    let generator = step.generator.as_mut().unwrap();
    generator.due_operations = Some(60_000);
    generator.backlog_operations = Some(26_400);
    let found = findings(&run);
    assert!(matches!(found[0], Finding::RateNotReached(_)), "{found:#?}");
    assert!(found[0].sentence().contains("560 of 1,000 operations/s"), "{}", found[0].sentence());
}

#[test]
fn an_open_loop_that_keeps_up_is_not_blamed_for_few_arrivals() {
    let mut run = plain();
    let step = &mut run.steps[0];
    step.load.rate_operations_per_s = Some(600.0);
    let generator = step.generator.as_mut().unwrap();
    generator.due_operations = Some(33_605);
    generator.backlog_operations = Some(5);
    assert!(!has(&run, |finding| matches!(finding, Finding::RateNotReached(_))));
}

#[test]
fn drift_inside_the_window_is_found() {
    let mut run = plain();
    for (second, interval) in run.steps[0].intervals.iter_mut().enumerate() {
        interval.counters.operations = Some(560 - 2 * second as u64);
    }
    finds!(run, Finding::NotSteady(_));
    let mut warm = plain();
    warm.steps[0].intervals.iter_mut().take(2).for_each(|interval| interval.counters.operations = Some(1));
    assert!(findings(&warm).iter().all(|finding| finding.severity() == Severity::Answer), "warm-up is not judged");
}

#[test]
fn a_stall_is_found_with_its_length() {
    let mut run = plain();
    run.steps[0].intervals[20..23].iter_mut().for_each(|interval| interval.counters.operations = Some(0));
    finds!(run, Finding::Stalled(Stalled { longest: Nanos(3_000_000_000), .. }));
}

#[test]
fn storage_is_not_blamed_for_a_generator_that_was_stopped() {
    let mut run = plain();
    run.steps[0].intervals[20..23].iter_mut().for_each(|interval| interval.counters.operations = Some(0));
    run.steps[0].generator.as_mut().unwrap().stopped_ns = Some(3_100_000_000);
    finds!(run, Finding::HeldUp(HeldUp { longest: Nanos(3_100_000_000), .. }));
    assert!(!findings(&run).iter().any(|finding| matches!(finding, Finding::Stalled(_) | Finding::NotSteady(_))));
    run.steps[0].generator.as_mut().unwrap().stopped_ns = Some(400_000_000);
    finds!(run, Finding::Stalled(_));
}

#[test]
fn sessions_that_waited_for_a_thread_are_found() {
    let mut run = plain();
    run.steps[0].generator.as_mut().unwrap().idle_session_ns = 8 * 60_000_000_000 / 10;
    finds!(run, Finding::WaitedForProcessor(_));
}

#[test]
fn a_cache_that_holds_the_data_is_a_doubt_and_a_warm_one_a_note() {
    let mut run = plain();
    run.steps[0].counters.cache_hits = run.steps[0].counters.logical_reads;
    run.target.cache_bytes = Some(8 << 30);
    let found = findings(&run);
    assert!(matches!(found[0], Finding::CacheHeld(CacheHeld { data_fits: true, .. })), "{found:#?}");
    run.steps[0].counters.cache_hits = run.steps[0].counters.logical_reads.map(|reads| reads * 6 / 10);
    assert!(matches!(findings(&run).last(), Some(Finding::CacheHeld(_))));
}

#[test]
fn every_way_of_ending_early_is_said() {
    for (outcome, word) in [
        (Outcome::Interrupted, "ended early"),
        (Outcome::Unfinished, "has not finished"),
        (Outcome::Failed { error: "device gone".to_owned() }, "device gone"),
    ] {
        let mut run = plain();
        run.outcome = outcome;
        assert!(findings(&run)[0].sentence().contains(word));
    }
}

#[test]
fn a_run_that_was_ended_before_its_window_says_that_nothing_was_measured() {
    let mut run = sample::sweep(60);
    run.outcome = Outcome::Interrupted;
    run.steps.truncate(2);
    run.steps[1].outcome = Outcome::Interrupted;
    let sentence = |run: &Run| findings(run)[0].sentence();
    assert_eq!(sentence(&run), "The run was ended early with 2 steps recorded; the last is partial.");
    run.steps[1].window.duration_ns = 0;
    assert_eq!(sentence(&run), "The run was ended early with 1 step recorded.");
    run.steps.remove(0);
    assert_eq!(sentence(&run), "The run was ended early, before anything was measured.");
    run.steps.clear();
    assert_eq!(sentence(&run), "The run was ended early, before anything was measured.");
}

#[test]
fn a_run_without_steps_is_not_judged_and_does_not_panic() {
    let mut run = plain();
    run.steps.clear();
    assert!(findings(&run).is_empty());
}

#[test]
fn short_windows_are_noted() {
    finds!(sample::sweep(10), Finding::CreditNotSeen(CreditNotSeen { shortest: Nanos(10_000_000_000), .. }));
}

#[test]
fn the_writers_and_the_log_are_named_when_sessions_wait_for_them() {
    for (event, wanted) in [
        ("free buffer waits", "database writers were the limit"),
        ("log file switch (checkpoint incomplete)", "redo logs are too small"),
        ("log file sync", "waited for commits more than"),
        ("read by other session", "waited most for `read by other session`"),
    ] {
        let mut run = plain();
        run.steps[0].waits.push(sample::wait(event, "Configuration", true, sample::latencies(50_000, 900_000_000)));
        let sentences: Vec<_> = findings(&run).iter().map(Finding::sentence).collect();
        assert!(sentences.iter().any(|sentence| sentence.contains(wanted)), "{event}: {sentences:#?}");
    }
}

#[test]
fn reads_that_the_kernel_did_not_see_are_a_doubt() {
    let mut run = plain();
    run.steps[0].process_io.as_mut().unwrap().read_bytes /= 2;
    run.steps[0].devices[0].read_bytes /= 2;
    finds!(run, Finding::BytesDisagree(BytesDisagree { copies: None, .. }));
    run.target.kind = Some(TargetKind::Postgres);
    assert!(!has(&run, |finding| matches!(finding, Finding::BytesDisagree(_))), "a server's reads are not ours");
}

#[test]
fn a_device_that_reads_for_others_is_noted() {
    let mut run = plain();
    run.steps[0].devices[0].read_bytes *= 2;
    finds!(run, Finding::DeviceSharedWithOthers(_));
    run.part = Some(model::record::FleetPart {
        number: 1,
        parts: 4,
        source: "--part".to_owned(),
        configuration: "c0ffee".to_owned(),
        start_at_ns: None,
        start_error_ns: None,
        clock: None,
    });
    assert!(
        !has(&run, |finding| matches!(finding, Finding::DeviceSharedWithOthers(_))),
        "the other parts read as well"
    );
    let mut run = model::record::sample::servers::private_cluster();
    let is_shared = |run: &Run| has(run, |finding| matches!(finding, Finding::DeviceSharedWithOthers(_)));
    let devices = |run: &mut Run, times: f64| {
        let all = run.steps.iter_mut().flat_map(|step| &mut step.devices);
        all.for_each(|device| device.read_bytes = (device.read_bytes as f64 * times) as u64);
    };
    devices(&mut run, 1.5);
    assert!(!is_shared(&run), "a server reads ahead, and for more than the load's sessions");
    devices(&mut run, 6.0);
    assert!(is_shared(&run));
    let servers = run.steps.iter_mut().flat_map(|step| &mut step.servers);
    servers.for_each(|server| server.counters.physical_read_bytes = Some(80 << 10));
    assert!(!is_shared(&run), "a server that reads nothing for the load reads its own program");
}

#[test]
fn fallbacks_are_reported() {
    let mut run = plain();
    run.target.facts.files.io_engine = Some("psync".to_owned());
    run.target.facts.files.direct_io = Some(false);
    assert_eq!(findings(&run)[0], Finding::PageCacheUsed(PageCacheUse::NotDirect));
    finds!(run, Finding::FallbackEngine(_));
}

#[test]
fn errors_of_operations_are_a_doubt() {
    let mut run = plain();
    run.steps[0].counters.errors = Some(3);
    finds!(run, Finding::OperationErrors(OperationErrors { errors: 3, last_after_ns: None, .. }));
    [2, 3, 30_000].iter().for_each(|ms| run.steps[0].operations[0].failed.record(ms * 1_000_000));
    let found = findings(&run).into_iter().find(|finding| matches!(finding, Finding::OperationErrors(_))).unwrap();
    assert!(found.sentence().contains(", half of them within 3.0"), "{}", found.sentence());
    assert!(found.sentence().ends_with(", the last after 30.0 s."), "{}", found.sentence());
    run.steps[0].counters.errors = Some(4);
    finds!(run, Finding::OperationErrors(OperationErrors { errors: 4, last_after_ns: None, .. }));
}

#[test]
fn operations_that_never_ended_are_a_doubt_and_miss_a_limit_that_they_were_waited_for_longer_than() {
    let mut run = plain();
    let ended = run.steps[0].counters.operations.unwrap();
    let mut with =
        |operations: u64, waited_ns: u64, limit: &str| {
            run.steps[0].unended = Some(model::record::Unended { operations, sessions: 1, waited_ns });
            let limit: LatencyTarget = limit.parse().unwrap();
            let found = crate::analyse_limits(&run, std::slice::from_ref(&limit));
            assert!(found.iter().any(
                |finding| matches!(finding, Finding::NotEnded(NotEnded { operations: n, .. }) if *n == operations)
            ));
            let verdict = found.iter().find_map(|finding| match finding {
                Finding::Verdict(verdict) => Some(verdict.answer),
                _ => None,
            });
            verdict.unwrap()
        };
    let seconds = 1_000_000_000;
    assert_eq!(with(1, 10 * seconds, "response:p90=5s"), crate::LimitAnswer::Yes, "of so many one more does not count");
    assert_eq!(with(ended, 10 * seconds, "response:p90=5s"), crate::LimitAnswer::No);
    assert_eq!(with(ended, 3 * seconds, "response:p90=5s"), crate::LimitAnswer::NoVerdict, "they may have taken less");
}

#[test]
fn a_quantile_of_few_waits_is_noted() {
    let mut run = plain();
    run.steps[0].waits[0].waits = sample::latencies(999, 400_000);
    assert!(has(&run, |finding| finding.sentence().starts_with("s8_t1 has fewer than the 1,000 waits")));
}

#[test]
fn an_import_with_many_absent_figures_is_judged_by_what_it_has() {
    let found = analyse_asked(&sample::imported(), Some(&LatencyTarget::default()));
    let [Finding::Verdict(verdict)] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(verdict.answer, LimitAnswer::No);
    assert!(verdict.sentence().ends_with(", at 63,000 reads/s with 128 sessions."), "{}", verdict.sentence());
}

#[test]
fn figures_follow_little_and_count_what_they_say() {
    let run = plain();
    let figures = Figures(&run.steps[0]);
    assert_eq!(figures.operations_per_s(), Some(560.0));
    assert_eq!(figures.hit_ratio(), Some(1.0 / 64.0));
    assert!((figures.busy_sessions().unwrap() - 8.0).abs() < 0.5);
    assert!((figures.io_per_cpu_second().unwrap() - 100_000.0).abs() < 1.0, "10 us of processor each");
    assert!((figures.share_of_waiting(SEQUENTIAL_READ).unwrap() - 1.0).abs() < 1e-9);
    let imported = sample::imported();
    assert_eq!(Figures(&imported.steps[0]).hit_ratio(), None);
    assert_eq!(Figures(&imported.steps[0]).value(Metric::Writes), None);
}

#[test]
fn every_sentence_ends_and_every_advice_is_one_line() {
    for finding in findings(&sample::sweep(10)).iter().chain(&findings(&sample::interrupted())) {
        assert!(finding.sentence().ends_with('.') && !finding.sentence().contains('\n'), "{}", finding.sentence());
        assert!(finding.advice().is_none_or(|advice| advice.ends_with('.')), "{finding:?}");
    }
}

#[test]
fn blocks_that_a_database_counts_apart_are_no_requests() {
    let hour = windows::Hour { at: 9, minutes: 5, reads_per_s: 900, writes_per_s: 250, within_ms: windows::QUICK };
    let mut run = windows::report(hour);
    let sentence = |run: &Run| {
        let credits = findings(run).into_iter().find(|finding| matches!(finding, Finding::CreditNotSeen(_)));
        credits.map_or(String::new(), |finding| finding.sentence())
    };
    run.steps[0].counters.physical_read_blocks = Some(2_000 * 300);
    run.steps[0].counters.physical_write_blocks = Some(250 * 300);
    assert!(sentence(&run).contains(" at 1,150 requests/s"), "{}", sentence(&run));
    run.steps[0].counters.physical_reads = None;
    run.steps[0].counters.physical_writes = None;
    assert!(!sentence(&run).contains("requests/s"), "{}", sentence(&run));
}

#[test]
fn the_upper_edge_of_a_bucket_is_reported_as_no_more_than_that() {
    let hour = windows::Hour { at: 9, minutes: 5, reads_per_s: 900, writes_per_s: 250, within_ms: windows::QUICK };
    let sentence = |limit: &str| {
        let found = analyse_asked(&windows::report(hour), Some(&limit.parse().unwrap()));
        found.iter().find(|finding| matches!(finding, Finding::Verdict(_))).unwrap().sentence()
    };
    assert!(sentence("p99=1ms").starts_with("No: p99 of `db file sequential read` is at most 4.10 ms, beyond 1.00 ms"));
    assert!(
        sentence("p99=5ms").starts_with("Yes: p99 of `db file sequential read` is at most 4.10 ms, within 5.00 ms")
    );
    assert!(sentence("p99=3ms").starts_with("No verdict: "), "{}", sentence("p99=3ms"));
}

#[test]
fn a_second_in_which_others_had_the_device_and_we_did_nothing_is_no_limit_of_anything() {
    let mut run = sample::requests::sweep();
    run.steps.truncate(1);
    let step = &mut run.steps[0];
    step.operations.clear();
    let nothing = |counters: &mut model::record::Counters| {
        counters.operations = Some(0);
        counters.physical_reads = Some(0);
        counters.physical_read_bytes = Some(0);
    };
    nothing(&mut step.counters);
    for second in &mut step.intervals {
        nothing(&mut second.counters);
        second.response = model::record::Histogram::default();
        second.waits.clear();
        second.devices = step.devices.clone();
    }
    let findings = findings(&run);
    let said: Vec<String> =
        findings.iter().flat_map(|finding| [Some(finding.sentence()), finding.advice()]).flatten().collect();
    assert!(!said.iter().any(|words| words.contains("NaN")), "{said:?}");
    assert!(!findings.iter().any(|finding| matches!(finding, Finding::Ceiling(_))), "{said:?}");
}
