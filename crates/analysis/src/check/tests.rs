use super::*;
use crate::load_line::judge::tests::open;
use crate::{HowKnown, Opening, analyse_asked};
use model::record::Workload;
use model::record::sample::{self, wait};
use model::record::{CpuTime, Load, Outstanding, ReliefTest, ServerStats, SessionState, Unended};

/// A check of reads on raw storage: multiples of 1,000 a second with their median response in microseconds.
fn checked(demand: &str, steps: &[(f64, u64)]) -> Run {
    let mut run = sample::sweep(60);
    run.load = Load::foreign(Workload::Io);
    run.check = Some(sample::check_of_reads(demand));
    run.steps = steps.iter().map(|(times, us)| step(*times, *us)).collect();
    run
}

fn step(times: f64, us: u64) -> Step {
    let mut step = open((times * 1_000.0) as u64, us);
    step.label = if times == 1.0 { "asked".to_owned() } else { format!("x{times}") };
    step.devices.clear();
    step
}

/// The same with less finished than asked.
fn behind(times: f64, share: f64) -> Step {
    let mut step = step(times * share, 20_000);
    step.label = if times == 1.0 { "asked".to_owned() } else { format!("x{times}") };
    step.load.rate_operations_per_s = Some(times * 1_000.0);
    let generator = step.generator.as_mut().unwrap();
    generator.due_operations = Some((times * 60_000.0) as u64);
    generator.backlog_operations = Some((times * (1.0 - share) * 60_000.0) as u64);
    step
}

fn lines(run: &Run) -> Vec<String> {
    Check::of(run, &analyse_asked(run, None)).unwrap().lines()
}

fn answer(run: &Run) -> Carries {
    Check::of(run, &analyse_asked(run, None)).unwrap().answer
}

#[test]
fn a_run_that_was_not_asked_has_no_answer() {
    let run = sample::sweep(10);
    assert_eq!(Check::of(&run, &analyse_asked(&run, None)), None);
    assert_eq!(next_multiple(&run), None);
}

#[test]
fn what_is_carried_is_said_with_its_room() {
    let run = checked("1000@5ms", &[(1.0, 400), (2.0, 600), (4.0, 9_000), (2.8, 1_000)]);
    let lines = lines(&run);
    assert_eq!(lines[0], "Yes. /u01 sustains 1,000 reads/s (p99 963 us of 5.00 ms).");
    assert_eq!(
        lines[1],
        "Room to spare: between 2.8 and 4 times that (2,800 reads/s); at 4 times (4,000 reads/s), p99 of reads is 21.6 ms."
    );
    assert!(lines[2].starts_with("Not seen: anything that sets in after 1m00s") && lines.len() == 3, "{lines:?}");
    assert_eq!(next_multiple(&run), Some(3.347), "between the two");
}

#[test]
fn what_hangs_at_the_end_is_not_carried_although_what_came_back_was_fast() {
    let mut run = checked("1000@5ms", &[(1.0, 400)]);
    let step = &mut run.steps[0];
    // The last second's.
    step.counters.operations = Some(59_000);
    step.operations[0].response = sample::latencies(59_000, 400_000);
    assert!(matches!(answer(&run), Carries::No(Shortfall::FellBehind { share: Some(_) })), "{:?}", answer(&run));
    assert!(lines(&run)[0].starts_with("No"), "{:?}", lines(&run));
}

/// Has a server do what is asked, whose sessions were found in this all the time that they were at work.
fn on_server(run: &mut Run, what: &str, state: SessionState) {
    for step in &mut run.steps {
        let figures = crate::Figures(step);
        let under_way = figures.operations_per_s().unwrap() * figures.service().unwrap().mean_ns().unwrap() / 1e9;
        let server = ServerStats {
            elapsed_ns: step.window.duration_ns,
            sampled_times: 1_000,
            session_samples: [(what.to_owned(), (1_000.0 * under_way) as u64)].into(),
            session_states: [(what.to_owned(), state)].into(),
            ..ServerStats::default()
        };
        step.servers = vec![server];
    }
}

#[test]
fn what_the_sessions_of_a_server_wait_for_stands_in_the_first_line() {
    let mut run = checked("1000@5ms", &[]);
    run.steps = vec![behind(1.0, 0.75), behind(1.0, 0.75), step(0.5, 400)];
    on_server(&mut run, "IO:DataFileRead", SessionState::Read);
    let lines = lines(&run);
    assert!(
        lines[0]
            .contains("because it is stopped by reads from storage (100.0 % of the time of its operations): only 75 %"),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.starts_with("To change it: give the server a larger cache")), "{lines:?}");
    let first = |change: &dyn Fn(&mut Step)| {
        let mut changed = run.clone();
        changed.steps.iter_mut().for_each(change);
        self::lines(&changed).remove(0)
    };
    let failed = first(&|step| step.counters.errors = Some(3));
    assert!(failed.ends_with("because 3 operations failed."), "what the others waited for is not why: {failed}");
    let cached = first(&|step| {
        let counters = &mut step.servers[0].counters;
        (counters.buffer_misses, counters.page_cache_hits) = (Some(2_000), Some(900));
    });
    assert!(!cached.contains("storage"), "the page cache answered much of it: {cached}");
}

#[test]
fn that_commits_may_be_lost_stands_before_the_answer_of_a_check() {
    let mut run = with_commits(2_000, 1_000);
    on_server(&mut run, "CPU", SessionState::Processor);
    run.steps[0].counters.commits = Some(12_000);
    run.target.facts.server.settings = [("fsync".to_owned(), "off".to_owned())].into();
    let check = Check::of(&run, &analyse_asked(&run, None)).unwrap();
    assert_eq!((check.before.as_deref(), &check.answer), (Some("Commits may be lost (fsync=off). "), &Carries::Yes));
}

#[test]
fn a_hang_is_no_hiccup_whatever_repeats_show() {
    let mut run = checked("1000@5ms", &[(1.0, 400), (1.0, 400), (1.0, 400), (2.0, 400)]);
    assert_eq!(answer(&run), Carries::Yes);
    let stuck = |ns: u64| {
        let mut late = Outstanding { kind: "read".to_owned(), ..Outstanding::default() };
        late.service.record_n(ns, 3);
        late.response.record_n(ns, 3);
        vec![late]
    };
    run.steps[3].outstanding = stuck(7_000_000_000);
    let said = lines(&run).join("\n");
    assert!(said.starts_with("Yes.") && said.contains("Nothing was answered for 7.00 s at 2 times"), "{said}");
    run.steps[1].outstanding = stuck(2_000_000_000);
    assert_eq!(answer(&run), Carries::Yes, "a hiccup");
    run.steps[1].outstanding = stuck(7_000_000_000);
    let said = lines(&run);
    assert!(said[0].starts_with("No. ") && said[0].ends_with("because nothing was answered for 7.00 s."), "{said:?}");
    assert_eq!(
        next_multiple(&Run { steps: run.steps[..2].to_vec(), ..run.clone() }).map(|times| times < 1.0),
        Some(true)
    );
}

#[test]
fn what_was_given_up_before_its_limit_had_passed_is_no_answer() {
    let given_up = |waited_s: u64, operations: u64, us: u64| {
        let mut run = checked("1000@5s", &[(1.0, us)]);
        let waited_ns = waited_s * 1_000_000_000;
        let mut late = Outstanding { kind: "read".to_owned(), ..Outstanding::default() };
        late.unended.record_n(waited_ns, operations);
        run.steps[0].outstanding = vec![late];
        run.steps[0].unended = Some(Unended { operations, sessions: operations, waited_ns });
        run
    };
    assert_eq!(answer(&given_up(1, 10, 400)), Carries::Yes, "whatever they took");
    let run = given_up(1, 1_000, 400);
    assert!(matches!(answer(&run), Carries::Unknown(Unmeasured::GivenUp(_))), "{:?}", answer(&run));
    let said = lines(&run);
    assert_eq!(said[0], "Not measurable: 1,000 operations were given up after 1.00 s, before the limit had passed.");
    assert!(said.iter().any(|line| line.contains("ait longer for them after the window (`--drain`)")), "{said:?}");
    // Whatever else missed it, or the time itself, is an answer.
    assert!(matches!(answer(&given_up(1, 1_000, 9_000_000)), Carries::No(_)));
    assert!(matches!(answer(&given_up(2, 1_000, 400)), Carries::Unknown(_)));
    assert!(matches!(answer(&given_up(6, 1_000, 400)), Carries::No(Shortfall::Hung(_))));
    let mut growing = given_up(1, 1_000, 400);
    growing.steps.push(step(1.0, 9_000_000));
    growing.steps.push(step(1.0, 9_000_000));
    assert!(matches!(answer(&growing), Carries::No(Shortfall::Late(_))), "{:?}", answer(&growing));
    let mut met = given_up(1, 1_000, 400);
    met.steps.extend([step(1.0, 400), step(1.0, 400)]);
    let said = lines(&met).join("\n");
    assert!(said.starts_with("Yes.") && said.contains("did not show it: 1,000 operations were given up"), "{said}");
    assert_eq!(next_multiple(&Run { steps: vec![given_up(1, 1_000, 400).steps.swap_remove(0); 3], ..met }), None);
    let mut above = checked("1000@5s", &[(1.0, 400)]);
    above.steps.push(given_up(1, 2_000, 400).steps.swap_remove(0));
    above.steps[1].label = "x2".to_owned();
    above.steps[1].load.rate_operations_per_s = Some(2_000.0);
    let said = lines(&above).join("\n");
    assert!(said.contains("2,000 operations were given up after 1.00 s") && !said.contains("queue grew"), "{said}");
    let mut failed = given_up(1, 1_000, 400);
    failed.steps[0].counters.errors = Some(1);
    assert!(matches!(answer(&failed), Carries::No(Shortfall::Errors { count: 1 })));
}

#[test]
fn a_cause_is_proven_by_what_its_relief_brings() {
    let mut run = checked("1000@5ms", &[]);
    run.steps = vec![behind(1.0, 0.75), behind(1.0, 0.75), step(0.5, 400)];
    on_server(&mut run, "IO:DataFileRead", SessionState::Read);
    assert_eq!(relief_wanted(&run, &analyse_asked(&run, None)), None, "nobody relieves reads");
    on_server(&mut run, "IO:WALSync", SessionState::LogWrite);
    let wanted = relief_wanted(&run, &analyse_asked(&run, None));
    assert_eq!(wanted, Some(ReliefWanted { step: 0, times: 1.0 }));
    let relieved = |operations| {
        let mut run = run.clone();
        let setting = "synchronous_commit=off".to_owned();
        run.steps[0].relief_test =
            Some(ReliefTest { setting, asked_per_s: 8_000.0, operations, window_ns: 2_000_000_000 });
        lines(&run).into_iter().find(|line| line.contains("synchronous_commit=off")).unwrap()
    };
    let proven = relieved(6_000);
    assert!(
        proven.contains("Proven by relief") && proven.ends_with("3,000 operations/s instead of 750, 4 times as many."),
        "{proven}"
    );
    assert!(relieved(16_000).contains("at least"), "all that was requested was done");
    assert!(relieved(1_600).starts_with("Not confirmed"), "{}", relieved(1_600));
    let how_known = |run: &Run| Opening::of(run, &analyse_asked(run, None)).how_known();
    assert_eq!(how_known(&run), Some(HowKnown::Seen));
    run.steps[0].relief_test = Some(ReliefTest {
        setting: "synchronous_commit=off".to_owned(),
        asked_per_s: 8_000.0,
        operations: 6_000,
        window_ns: 2_000_000_000,
    });
    assert_eq!(how_known(&run), Some(HowKnown::Proven));
}

#[test]
fn a_server_that_leaves_no_processor_to_the_load_generator_is_named() {
    let mut run = checked("1000@5ms", &[(1.0, 9_000), (1.0, 9_000)]);
    on_server(&mut run, "CPU", SessionState::Processor);
    for step in &mut run.steps {
        let all_ns = (8 * step.window.duration_ns) as f64;
        let cpu = |share: f64| CpuTime { user_ns: (share * all_ns) as u64, ..CpuTime::default() };
        step.host_cpu = Some(CpuTime { iowait_ns: Some(0), steal_ns: Some(0), idle_ns: Some(0), ..cpu(1.0) });
        (step.servers[0].cpu, step.process_cpu) = (Some(cpu(0.8)), Some(cpu(0.1)));
        // Once sent they are answered soon, so that the lateness alone can have decided.
        step.operations[0].service = sample::latencies(60_000, 400_000);
        step.generator.as_mut().unwrap().own_lag = Some(sample::latencies(60_000, 4_000_000));
    }
    let lines = lines(&run);
    assert!(
        lines[0].starts_with("Not measurable: the server's processors (100.0 % busy) left too little time"),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("To measure it: for more transactions give the server more"), "{lines:?}");
}

#[test]
fn a_limit_that_stops_what_is_asked_stands_in_the_first_line() {
    let mut run = checked("1000@5ms", &[]);
    run.steps = vec![behind(1.0, 0.75), behind(1.0, 0.75), step(0.5, 400)];
    for (index, step) in run.steps.iter_mut().enumerate() {
        step.index = index as u32;
        // The same number of requests in each second.
        let rate = (step.counters.operations.unwrap() / 60).max(1);
        step.intervals.iter_mut().for_each(|second| {
            second.counters.operations = Some(rate);
            second.counters.physical_reads = Some(rate);
            second.duration_ns = 1_000_000_000;
        });
    }
    let lines = lines(&run);
    assert!(
        lines[0].contains("because it is stopped by a limit at 750 requests/s") && lines[0].contains("only 75 % of it"),
        "{lines:?}"
    );
    assert!(!lines[1..].iter().any(|line| line.contains("limit at")), "it is said once: {lines:?}");
    // Where operations failed, that is why it was missed.
    run.steps[0].counters.errors = Some(3);
    run.steps[1].counters.errors = Some(3);
    let lines = self::lines(&run);
    assert!(lines[0].contains("3 operations failed"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("limit at")), "{lines:?}");
}

#[test]
fn a_step_without_limit_leaves_the_room_open() {
    let lines = lines(&checked("1000@5ms", &[(1.0, 400), (64.0, 600)]));
    assert_eq!(lines[1], "Room to spare: at least 64 times that (64,000 reads/s); no limit was seen.");
}

#[test]
fn one_hiccup_does_not_decide() {
    let mut run = checked("1000@5ms", &[(1.0, 9_000)]);
    assert_eq!(next_multiple(&run), Some(1.0), "it is measured again");
    run.steps.push(step(1.0, 400));
    assert!(matches!(answer(&run), Carries::Unknown(Unmeasured::Contradictory)));
    assert_eq!(next_multiple(&run), Some(1.0), "and again where the two differ");
    run.steps.push(step(1.0, 400));
    assert_eq!(answer(&run), Carries::Yes);
    assert_eq!(next_multiple(&run), Some(2.0));
}

#[test]
fn what_takes_too_long_is_a_no_with_what_is_carried_instead() {
    let mut run = checked("1000@5ms", &[(1.0, 9_000), (1.0, 9_000)]);
    assert_eq!(next_multiple(&run), Some(0.5));
    run.steps.push(step(0.5, 400));
    let lines = lines(&run);
    assert_eq!(
        lines[0],
        "No. /u01 does not sustain 1,000 reads/s (p99 within 5.00 ms), because p99 of reads is 21.6 ms."
    );
    assert_eq!(
        lines[1],
        "It sustains between 0.5 and 1 times that: 500 reads/s (p99 963 us of 5.00 ms); at the requested load, p99 of reads is 21.6 ms."
    );
}

#[test]
fn what_was_late_behind_stalled_work_is_said_with_its_own_time() {
    let mut run = checked("1000@5ms", &[(1.0, 9_000), (1.0, 9_000)]);
    run.steps.iter_mut().for_each(|step| step.operations[0].service = sample::latencies(60_000, 400_000));
    let said = lines(&run);
    assert!(
        said[0].ends_with(
            "because p99 of reads is 21.6 ms from when they were due (963 us once sent: they waited behind work that stalled)."
        ),
        "{said:?}"
    );
}

#[test]
fn what_falls_behind_is_sought_just_below_what_was_finished() {
    let mut run = checked("1000@5ms", &[]);
    run.steps = vec![behind(1.0, 0.4), behind(1.0, 0.4)];
    assert!(lines(&run)[0].ends_with("because only 40 % of it was finished and a queue grew."), "{:?}", lines(&run));
    assert_eq!(next_multiple(&run), Some(0.36));
    run.steps.push(step(0.36, 400));
    assert!(next_multiple(&run).is_some_and(|times| times > 0.36 && times < 0.41), "{:?}", next_multiple(&run));
}

#[test]
fn where_nothing_is_carried_the_search_ends() {
    let mut run = checked("1000@1us", &[(1.0, 400), (1.0, 400)]);
    let mut tried = 0;
    while let Some(times) = next_multiple(&run) {
        run.steps.push(step(times, 400));
        tried += 1;
        assert!(tried < 10 && times < 1.0);
    }
    assert!(lines(&run)[1].starts_with("Its maximum was not found"), "{:?}", lines(&run));
}

#[test]
fn a_generator_that_is_late_makes_no_verdict() {
    let late = |us: u64| {
        let mut step = step(1.0, us);
        // Once sent they are answered soon, so that the lateness alone can have decided.
        step.operations[0].service = sample::latencies(60_000, 400_000);
        step.generator.as_mut().unwrap().own_lag = Some(sample::latencies(60_000, 4_000_000));
        step
    };
    let mut run = checked("1000@5ms", &[]);
    run.steps = vec![late(9_000), late(9_000)];
    let said = lines(&run);
    assert!(said[0].starts_with("Not measurable: this machine was too busy to send the load in time"), "{said:?}");
    assert!(said[1].starts_with("To measure it: end what else is working"), "{said:?}");
    run.steps = vec![step(1.0, 9_000), late(9_000)];
    assert!(matches!(answer(&run), Carries::Unknown(Unmeasured::Generator { .. })), "one failure is not confirmed");
    run.steps = vec![late(9_000), step(1.0, 400), late(9_000)];
    let said = lines(&run);
    assert!(said[0].starts_with("Not measurable: this machine was too busy"), "no yes from a minority: {said:?}");
    assert_eq!(said[1], "1 of 3 measurements met it.");
    run.steps.truncate(2);
    assert_eq!(next_multiple(&run), Some(1.0), "a third decides");
    run.steps.push(step(1.0, 400));
    assert_eq!(answer(&run), Carries::Yes);
    assert_eq!(lines(&run)[1], "1 of 3 measurements did not show it: this machine was too busy to send in time.");
    run.steps = vec![late(400)];
    assert_eq!(answer(&run), Carries::Yes, "it is met although response times contain the lateness");
}

#[test]
fn lateness_excuses_only_what_it_explains() {
    let late = |service_us: u64| {
        let mut step = step(1.0, 20_000);
        step.operations[0].service = sample::latencies(60_000, service_us * 1_000);
        step.generator.as_mut().unwrap().own_lag = Some(sample::latencies(60_000, 1_800_000));
        step
    };
    let mut run = checked("1000@5ms", &[]);
    run.steps = vec![late(16_500), late(16_500)];
    let said = lines(&run);
    assert!(
        said[0].starts_with("No.") && said[0].ends_with("from when they were due (39.8 ms once sent)."),
        "{said:?}"
    );
    // So much more than its own lateness that slots were what it waited for, and then no more than that explains.
    run.steps = vec![late(2_400), late(2_400)];
    assert!(lines(&run)[0].starts_with("No."), "{:?}", lines(&run));
    for step in &mut run.steps {
        step.operations[0].response = sample::latencies(60_000, 4_000_000);
    }
    assert!(lines(&run)[0].ends_with("; even once sent, p99 of reads is 5.77 ms)."), "{:?}", lines(&run));
}

#[test]
fn slots_that_were_all_busy_are_no_limit_of_what_they_load() {
    let full = |times: f64, us: u64| {
        let mut step = behind(times, 0.8);
        step.load.sessions = Some(64);
        // Few take long, and those have all slots.
        step.operations[0].service = sample::latencies(47_400, us * 1_000);
        step.operations[0].service.record_n(9_000_000_000, 400);
        step
    };
    let mut run = checked("1000@5ms", &[]);
    run.steps = vec![full(1.0, 200), full(1.0, 200)];
    let said = lines(&run);
    assert_eq!(said[0], "Not measurable: all 64 slots were busy.");
    assert!(said[1].starts_with("To measure it: ask for a lower rate"), "{said:?}");
    run.steps = vec![full(1.0, 30_000), full(1.0, 30_000)];
    assert!(matches!(answer(&run), Carries::No(_)), "who had a slot waited too long in it");
    run.steps = vec![step(1.0, 400), full(2.0, 200)];
    assert!(lines(&run)[1].ends_with("at 2 times (2,000 reads/s), all 64 slots were busy."), "{:?}", lines(&run));
}

#[test]
fn a_step_that_was_sent_late_is_not_called_the_limit_of_the_load_generator() {
    let mut late = step(2.0, 9_000);
    late.operations[0].service = sample::latencies(120_000, 400_000);
    late.generator.as_mut().unwrap().own_lag = Some(sample::latencies(120_000, 4_000_000));
    let mut run = checked("1000@5ms", &[(1.0, 400)]);
    run.steps.push(late);
    assert!(lines(&run)[1].ends_with("this machine was too busy to send in time."), "{:?}", lines(&run));
    run.steps[1].generator.as_mut().unwrap().busiest_share = 0.99;
    assert!(lines(&run)[1].ends_with("the load generator is the limit."), "{:?}", lines(&run));
}

#[test]
fn a_yes_after_a_miss_says_so_and_a_repeat_is_no_larger_rate() {
    let run = checked("1000@5ms", &[(1.0, 9_000), (1.0, 400), (1.0, 400)]);
    let said = lines(&run);
    assert!(said[0].starts_with("Yes."), "{said:?}");
    assert_eq!(said[1], "1 of 3 measurements did not show it: p99 of reads is 21.6 ms.");
    assert_eq!(said[2], "Room to spare: not measured, there was no time left for more than the requested load.");
}

#[test]
fn what_fails_is_a_no_at_once() {
    let mut run = checked("1000@5ms", &[(1.0, 400)]);
    run.steps[0].counters.errors = Some(3);
    assert!(lines(&run)[0].ends_with("because 3 operations failed."), "{:?}", lines(&run));
    run.steps.push(step(1.0, 400));
    run.steps.push(step(1.0, 400));
    assert!(matches!(answer(&run), Carries::No(Shortfall::Errors { count: 3 })), "no repeat makes it good");
}

#[test]
fn a_step_in_which_nothing_fell_due_is_no_answer() {
    let mut run = checked("0.001@5ms", &[(1.0, 400)]);
    run.steps[0].generator.as_mut().unwrap().due_operations = Some(0);
    assert!(lines(&run)[0].starts_with("Not measurable: nothing was measured"), "{:?}", lines(&run));
}

#[test]
fn too_few_for_their_percentile_are_no_answer() {
    let run = checked("1000@p99.999=5ms", &[(1.0, 400)]);
    let said = lines(&run);
    assert_eq!(
        said[0],
        "Not measurable: there were 60,000 reads, too few for their percentile, which needs 1,000,000."
    );
    assert_eq!(said[1], "To measure it: take more time (`--for 21m`), or a lower percentile.");
}

#[test]
fn a_page_cache_in_the_way_of_a_yes_makes_it_void_and_leaves_a_no() {
    let mut run = checked("1000@5ms", &[(1.0, 400)]);
    run.target.facts.files.direct_io = Some(false);
    assert!(matches!(answer(&run), Carries::Unknown(Unmeasured::Doubt { .. })), "{:?}", answer(&run));
    let mut run = checked("1000@5ms", &[(1.0, 9_000), (1.0, 9_000)]);
    run.target.facts.files.direct_io = Some(false);
    assert!(matches!(answer(&run), Carries::No(_)));
}

/// A check of reads and commits on a database of blocks.
fn with_commits(commit_us: u64, reads_per_s: u64) -> Run {
    let mut run = checked("1000@5ms", &[(1.0, 400)]);
    run.load = Load::foreign(Workload::Slob);
    run.check.as_mut().unwrap().demands.commits = "200@10ms".parse().ok();
    let step = &mut run.steps[0];
    step.waits = vec![
        wait("db file sequential read", "User I/O", true, sample::latencies(reads_per_s * 60, 400_000)),
        wait("log file sync", "Commit", true, sample::latencies(12_000, commit_us * 1_000)),
    ];
    step.operations.truncate(1);
    let mut updates = step.operations[0].clone();
    updates.kind = "update".to_owned();
    updates.response = sample::latencies(12_000, commit_us * 1_000 + 400_000);
    step.operations.push(updates);
    run
}

#[test]
fn reads_and_commits_are_judged_each_by_its_own_limit() {
    let run = with_commits(1_000, 1_000);
    assert!(
        lines(&run)[0].starts_with(
            "Yes. /u01 sustains 1,000 reads/s (p99 963 us of 5.00 ms) with 200 commits/s (p99 2.41 ms of 10.0 ms) at the same time."
        ),
        "{:?}",
        lines(&run)
    );
    let mut late = with_commits(9_000, 1_000);
    late.steps.push(late.steps[0].clone());
    let Carries::No(Shortfall::Late(kinds)) = answer(&late) else { panic!("{:?}", lines(&late)) };
    assert_eq!(kinds.iter().map(|kind| kind.kind).collect::<Vec<_>>(), [Kind::Commits]);
}

#[test]
fn reads_that_a_cache_answered_are_no_answer() {
    let run = with_commits(1_000, 500);
    let said = lines(&run);
    assert_eq!(
        said[0],
        "Not measurable: only 500 of 1,000 reads/s reached storage, a cache before it answered the others."
    );
}

#[test]
fn commits_on_data_that_fit_the_cache_are_no_answer() {
    let mut run = with_commits(1_000, 1_000);
    (run.target.data_bytes, run.target.cache_bytes) = (Some(8_192), Some(64 << 20));
    assert_eq!(lines(&run)[0], "Not measurable: the data (8 KiB) fit into the cache (64 MiB).");
    assert_eq!(lines(&run)[1], "To measure it: use a larger `--size`.");
}

#[test]
fn an_interrupted_check_says_so() {
    let mut run = checked("1000@5ms", &[]);
    run.outcome = model::record::Outcome::Interrupted;
    assert!(lines(&run)[0].starts_with("Not measurable: the run was ended early"), "{:?}", lines(&run));
}

#[test]
fn windows_of_different_lengths_are_said_as_they_are() {
    let mut run = checked("1000@5ms", &[(1.0, 400), (2.0, 600), (4.0, 700)]);
    run.steps[0].window.duration_ns = 11_000_000_000;
    run.steps[1].window.duration_ns = 3_000_000_000;
    run.steps[2].window.duration_ns = 3_000_000_000;
    let findings = analyse_asked(&run, None);
    let said = findings.iter().find(|finding| matches!(finding, Finding::CreditNotSeen(_))).expect("it was short");
    assert!(said.sentence().contains("last only 3.00 s to 11.0 s:"), "{}", said.sentence());
}
