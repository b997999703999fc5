use super::tests::server_findings;
use super::*;
use crate::analyse_asked;
use crate::opening::StoppedBy;
use model::record::sample::servers::private_cluster;
use model::record::{Activity, CpuTime, Load, SessionState, Step, Throttled, Workload};

/// The largest load as one of users, with so much seen of what they were doing, and then changed.
fn of_users(seen: &[(&str, SessionState, u64)], change: impl Fn(&mut Step)) -> Run {
    let mut run = private_cluster();
    run.load = Load::foreign(Workload::Orders);
    let step = &mut run.steps[2];
    let server = &mut step.servers[0];
    server.session_samples = seen.iter().map(|(what, _, samples)| ((*what).to_owned(), *samples)).collect();
    server.session_states = seen.iter().map(|(what, state, _)| ((*what).to_owned(), *state)).collect();
    // All that were under way were seen somewhere.
    let figures = crate::Figures(step);
    let under_way = figures.operations_per_s().unwrap() * figures.service().unwrap().mean_ns().unwrap() / 1e9;
    let samples: u64 = seen.iter().map(|(.., samples)| samples).sum();
    step.servers[0].sampled_times = (samples as f64 / under_way).round() as u64;
    change(step);
    run
}

fn stops(run: &Run) -> Option<Stops> {
    server_findings(run).into_iter().find_map(|finding| match finding {
        ServerFinding::Stopped { stops, .. } => Some(stops),
        _ => None,
    })
}

#[test]
fn what_stops_transactions_is_named_by_what_their_sessions_were_found_in() {
    let (cpu, log, lock, read) =
        (SessionState::Processor, SessionState::LogWrite, SessionState::Lock, SessionState::Read);
    let seen = |logs, locks, reads| {
        [("CPU", cpu, 300), ("IO:WALSync", log, logs), ("Lock:tuple", lock, locks), ("IO:DataFileRead", read, reads)]
    };
    let flushes = |step: &mut Step| {
        let activity = &mut step.servers[0].activity;
        activity.extend([(Activity::LogSyncs, 1_000), (Activity::LogSyncNs, 1_900_000_000)]);
    };
    let commits = stops(&of_users(&seen(600, 50, 50), flushes)).unwrap();
    assert_eq!(commits.words(), "commits (60.0 % of the time of transactions, WAL flushes at 1.90 ms each)");
    let untimed = |step: &mut Step| {
        step.servers[0].activity.remove(&Activity::LogSyncNs);
    };
    assert_eq!(
        stops(&of_users(&seen(600, 50, 50), untimed)).unwrap().words(),
        "commits (60.0 % of the time of transactions)"
    );
    let waits = |step: &mut Step| {
        step.servers[0].activity.extend([(Activity::LockWaits, 100), (Activity::LockWaitNs, 1_200_000_000)]);
    };
    let locks = stops(&of_users(&seen(50, 600, 50), waits)).unwrap();
    assert_eq!(locks.words(), "locks of rows (60.0 % of the time of transactions, waits of 12.0 ms each)");
    let reads = stops(&of_users(&seen(50, 50, 600), |_| ())).unwrap();
    assert_eq!(reads.words(), "reads from storage (60.0 % of the time of transactions)");
    assert_eq!(stops(&of_users(&seen(100, 100, 100), |_| ())), None, "nothing stands out");
    assert_eq!(stops(&of_users(&seen(600, 0, 0), |step| step.servers[0].sampled_times = 9)), None, "too few looks");
}

#[test]
fn a_rate_that_more_users_do_not_raise_is_stopped_by_what_they_wait_for() {
    let seen = [("IO:WALSync", SessionState::LogWrite, 800), ("CPU", SessionState::Processor, 200)];
    let opening = |shares: [f64; 2]| {
        let mut run = of_users(&seen, |_| ());
        let most = run.steps[2].counters.operations.unwrap() as f64;
        for (step, (users, share)) in run.steps.iter_mut().zip([4, 8, 16].into_iter().zip([shares[0], shares[1], 1.0]))
        {
            step.load.sessions = Some(users);
            step.counters.operations = Some((most * share) as u64);
        }
        let opening = crate::Opening::of(&run, &analyse_asked(&run, None));
        (opening.stopped_by.clone(), opening.sentence())
    };
    let (stopped, sentence) = opening([1.0, 1.01]);
    assert!(matches!(stopped, Some(StoppedBy::Sessions(Stops::Commits { .. }, _))), "{sentence}");
    let (stopped, sentence) = opening([0.25, 0.5]);
    assert!(matches!(stopped, Some(StoppedBy::MostOfTime(Stops::Commits { .. }, _))), "{sentence}");
}

#[test]
fn processors_stop_transactions_before_waits_do_if_the_load_used_them() {
    let log = SessionState::LogWrite;
    // All but a hundredth of the machine was busy; the server and the load generator used so much of what was used.
    let used = |server: f64, generator: f64| {
        of_users(&[("IO:WALSync", log, 600)], move |step| {
            let all_ns = (8 * step.window.duration_ns) as f64;
            let cpu = |share: f64| CpuTime { user_ns: (share * 0.99 * all_ns) as u64, ..CpuTime::default() };
            let idle_ns = Some((0.01 * all_ns) as u64);
            step.host_cpu = Some(CpuTime { iowait_ns: Some(0), steal_ns: Some(0), idle_ns, ..cpu(1.0) });
            (step.servers[0].cpu, step.process_cpu) = (Some(cpu(server)), Some(cpu(generator)));
            step.servers[0].elapsed_ns = step.window.duration_ns;
        })
    };
    let by = |server, generator| match stops(&used(server, generator)) {
        Some(Stops::Processors { by, .. }) => Some(by),
        _ => None,
    };
    assert_eq!(by(0.7, 0.2), Some(UsedBy::Server));
    assert_eq!(by(0.2, 0.7), Some(UsedBy::Generator));
    assert_eq!(by(0.4, 0.4), Some(UsedBy::Both));
    assert!(
        matches!(stops(&used(0.1, 0.1)), Some(Stops::Commits { .. })),
        "others used them, and sessions wait for the log"
    );
    // It is no doubt about the figures, and the opening names it.
    let run = used(0.7, 0.2);
    let findings = analyse_asked(&run, None);
    let opening = crate::Opening::of(&run, &findings).sentence();
    assert!(opening.contains("the server's processors (99.0 % busy)"), "{opening}");
    assert!(!server_findings(&run).iter().any(|finding| matches!(finding, ServerFinding::ProcessorsExhausted { .. })));
}

/// The largest load as one of users, of whom none was seen at work: 16 of them on eight processors.
fn not_at_work(change: impl Fn(&mut Step, f64)) -> Run {
    of_users(&[("CPU", SessionState::Processor, 100)], |step| {
        let all_ns = (8 * step.window.duration_ns) as f64;
        let cpu = |share: f64| CpuTime { user_ns: (share * all_ns) as u64, ..CpuTime::default() };
        step.host_cpu = Some(CpuTime { iowait_ns: Some(0), idle_ns: Some((0.8 * all_ns) as u64), ..cpu(0.2) });
        let server = &mut step.servers[0];
        (server.sampled_times, server.elapsed_ns) = (1_000, step.window.duration_ns);
        (server.cpu, step.process_cpu) = (Some(cpu(0.05)), Some(cpu(0.02)));
        step.generator.get_or_insert_default().busiest_share = 0.1;
        change(step, all_ns);
    })
}

#[test]
fn what_lies_outside_of_the_server_is_named_where_it_wants_no_processor() {
    let idle = |step: &mut Step, _: f64| step.servers[0].run_delay_ns = Some(1_000_000);
    let run = not_at_work(idle);
    assert!(matches!(stops(&run), Some(Stops::Outside { share, is_sure: true }) if share > 0.9), "{:?}", stops(&run));
    let opening = crate::Opening::of(&run, &analyse_asked(&run, None)).sentence();
    assert!(opening.contains("the way to the server and back"), "{opening}");
    let elsewhere = not_at_work(|step, _| step.servers[0].cpu = None);
    assert!(matches!(stops(&elsewhere), Some(Stops::Outside { is_sure: false, .. })), "its processors are not seen");
    let busy = not_at_work(|step, all_ns| {
        idle(step, all_ns);
        step.generator.as_mut().unwrap().busiest_share = 0.9;
    });
    assert_eq!(stops(&busy), None, "it may be the load generator itself");
    let waiting = not_at_work(|step, all_ns| {
        idle(step, all_ns);
        step.generator.as_mut().unwrap().wanted_share = Some(0.9);
    });
    assert_eq!(stops(&waiting), None, "it waits for a processor");
}

#[test]
fn a_quota_is_named_by_its_periods_and_by_the_time_that_the_server_was_ready() {
    let throttled = |step: &mut Step, periods: u64| {
        let under_way = crate::Figures(step).operations_per_s().unwrap()
            * crate::Figures(step).service().unwrap().mean_ns().unwrap()
            / 1e9;
        let server_ns = (0.7 * under_way * step.window.duration_ns as f64) as u64;
        step.servers[0].run_delay_ns = Some(server_ns);
        step.servers[0].throttled =
            Some(Throttled { periods: 100, throttled_periods: periods, throttled_ns: server_ns });
    };
    let run = not_at_work(|step, _| throttled(step, 75));
    let Some(Stops::Quota { share, periods: 100, throttled_periods: 75 }) = stops(&run) else {
        panic!("{:?}", stops(&run))
    };
    assert!((share - 0.7).abs() < 0.01);
    let words = stops(&run).unwrap().words();
    assert_eq!(
        words,
        "the server's processor quota (70.0 % of the time of transactions, held back in 75 of 100 periods)"
    );
    assert!(!matches!(stops(&not_at_work(|step, _| throttled(step, 5))), Some(Stops::Quota { .. })), "hardly ever");
    // Other programs have the rest of the machine, which a server that is held back in most periods could not use.
    let beside_others = |periods| {
        stops(&not_at_work(|step, all_ns| {
            throttled(step, periods);
            let cpu = CpuTime { user_ns: (0.99 * all_ns) as u64, ..CpuTime::default() };
            step.host_cpu =
                Some(CpuTime { iowait_ns: Some(0), steal_ns: Some(0), idle_ns: Some((0.01 * all_ns) as u64), ..cpu });
        }))
    };
    assert!(matches!(beside_others(75), Some(Stops::Quota { throttled_periods: 75, .. })), "{:?}", beside_others(75));
    let some = beside_others(20);
    assert!(matches!(some, Some(Stops::Processors { by: UsedBy::Others, .. })), "{some:?}");
}

#[test]
fn a_server_that_may_lose_commits_is_said_before_the_answer() {
    let mut run = not_at_work(|_, _| ());
    let opening = |run: &Run| crate::Opening::of(run, &analyse_asked(run, None)).sentence();
    run.target.facts.server.settings = [("fsync".to_owned(), "on".to_owned())].into();
    assert!(!opening(&run).contains("may be lost"), "{}", opening(&run));
    run.target.facts.server.settings = [("fsync".to_owned(), "off".to_owned())].into();
    assert!(opening(&run).starts_with("Commits may be lost (fsync=off). "), "{}", opening(&run));
    let mut reads = run.clone();
    reads.load = private_cluster().load;
    for step in &mut reads.steps {
        step.operations.retain(|operation| operation.kind != "update");
    }
    assert!(!opening(&reads).contains("may be lost"), "nothing was written: {}", opening(&reads));
}

#[test]
fn other_programs_that_used_much_are_named_before_the_server_that_used_more() {
    let run = not_at_work(|step, all_ns| {
        let cpu = |share: f64| CpuTime { user_ns: (share * all_ns) as u64, ..CpuTime::default() };
        step.host_cpu = Some(CpuTime { iowait_ns: Some(0), idle_ns: Some(0), ..cpu(1.0) });
        (step.servers[0].cpu, step.process_cpu) = (Some(cpu(0.55)), Some(cpu(0.1)));
    });
    let words = stops(&run).unwrap().words();
    assert_eq!(words, "processors (100.0 % busy, 35 % of that by other programs or the kernel)");
    assert_eq!(
        stops(&run).unwrap().advice(),
        "See what else works on this machine (`top`), and end it, or use more processors."
    );
    let mut unseen = run.clone();
    unseen.steps[2].servers[0].cpu = None;
    assert_eq!(
        stops(&unseen).unwrap().words(),
        "the processors of this machine (100.0 % busy)",
        "a server whose processor time is not known may have used them"
    );
}

#[test]
fn waits_that_looks_cannot_tell_apart_are_both_named() {
    let seen = |locks| {
        let seen = [("IO:WALSync", SessionState::LogWrite, 400), ("Lock:tuple", SessionState::Lock, locks)];
        stops(&of_users(&seen, |_| ())).unwrap()
    };
    let both = seen(390);
    assert_eq!(both.words(), "commits and locks of rows alike (99.8 % of the time of transactions)");
    let advice = both.advice();
    assert!(advice.contains("faster durable writes") && advice.contains("Fewer users meet"), "{advice}");
    assert!(matches!(seen(300), Stops::Commits { .. }), "{:?}", seen(300));
}

#[test]
fn what_comes_next_is_processors_where_they_are_not_far_off() {
    let next = |busy: f64| {
        let mut run = of_users(&[("IO:WALSync", SessionState::LogWrite, 600)], |step| {
            let all_ns = (8 * step.window.duration_ns) as f64;
            let cpu = |share: f64| CpuTime { user_ns: (share * all_ns) as u64, ..CpuTime::default() };
            let idle_ns = Some(((1.0 - busy) * all_ns) as u64);
            step.host_cpu = Some(CpuTime { iowait_ns: Some(0), steal_ns: Some(0), idle_ns, ..cpu(busy) });
            (step.servers[0].cpu, step.process_cpu) = (Some(cpu(0.5 * busy)), Some(cpu(0.1 * busy)));
            step.servers[0].elapsed_ns = step.window.duration_ns;
        });
        run.steps.drain(..2);
        let mut twice = run.steps[0].clone();
        (twice.label, twice.index) = ("more".to_owned(), 1);
        (run.steps[0].load.sessions, twice.load.sessions) = (Some(16), Some(32));
        run.steps.push(twice);
        crate::Opening::of(&run, &analyse_asked(&run, None)).sentence()
    };
    let near = next(0.5);
    assert!(near.contains("commits") && near.contains("; processors come next, at 2.0 times that at most"), "{near}");
    assert!(!next(0.05).contains("come next"), "{}", next(0.05));
    // Others use some of them.
    let used_up = next(0.99);
    assert!(used_up.contains("commits") && used_up.ends_with("; processors are at their end as well."), "{used_up}");
}

#[test]
fn a_wait_is_no_cause_beside_more_time_at_processors_and_may_have_a_name_of_its_own() {
    let (cpu, log, other) = (SessionState::Processor, SessionState::LogWrite, SessionState::Other);
    let seen = |running, event, state, waiting| {
        stops(&of_users(&[("CPU", cpu, running), ("IO:WALSync", log, 310), (event, state, waiting)], |_| ()))
    };
    assert_eq!(seen(690, "IPC:Idle", other, 0), None, "most of the time they ran");
    assert!(matches!(seen(200, "IPC:Idle", other, 0), Some(Stops::Commits { .. })));
    let named = |event, state| seen(100, event, state, 590).unwrap();
    let latch = named("LWLock:BufferContent", other);
    assert_eq!(
        latch.words(),
        "waits that the server calls `LWLock:BufferContent` (59.0 % of the time of transactions)"
    );
    assert!(latch.advice().contains("in the server's manual"), "{}", latch.advice());
    // A standby, and the end of a file, are neither the log's storage nor rows.
    let standby = named("IPC:SyncRep", SessionState::Log);
    assert!(matches!(standby, Stops::Waits { .. }) && standby.advice().contains("standby"), "{standby:?}");
    let extended = named("Lock:extend", SessionState::Lock);
    assert_eq!(extended.words(), "locks other than of rows (`Lock:extend`) (59.0 % of the time of transactions)");
    // Parallel workers compute or read: what their leader waits for is no cause.
    assert!(!matches!(seen(100, "IPC:ExecuteGather", other, 590), Some(Stops::Waits { .. })));
    assert!(matches!(named("Lock:transactionid", SessionState::Lock), Stops::Locks { .. }));
}

#[test]
fn time_that_the_hypervisor_took_is_no_work_of_the_server() {
    let stolen = |share: f64| {
        stops(&not_at_work(|step, all_ns| {
            let cpu = |share: f64| CpuTime { user_ns: (share * all_ns) as u64, ..CpuTime::default() };
            let stolen_ns = (share * all_ns) as u64;
            step.host_cpu =
                Some(CpuTime { iowait_ns: Some(0), steal_ns: Some(stolen_ns), idle_ns: Some(0), ..cpu(1.0 - share) });
            (step.servers[0].cpu, step.process_cpu) = (Some(cpu(0.9 - share)), Some(cpu(0.1)));
        }))
        .unwrap()
    };
    assert_eq!(stolen(0.05).words(), "the server's processors (100.0 % busy)");
    let half = stolen(0.5);
    assert_eq!(half.words(), "processors (100.0 % busy, 50 % of the time taken by the hypervisor)");
    assert!(half.advice().contains("not shared"), "{}", half.advice());
}

#[test]
fn a_quota_is_not_blamed_for_more_time_than_it_held_the_server_back() {
    let run = not_at_work(|step, _| {
        let window_ns = step.window.duration_ns;
        step.servers[0].run_delay_ns = Some(8 * window_ns);
        step.servers[0].throttled =
            Some(Throttled { periods: 100, throttled_periods: 20, throttled_ns: window_ns / 10 });
    });
    assert!(!matches!(stops(&run), Some(Stops::Quota { .. })), "{:?}", stops(&run));
    // The same held back on eight processors at once.
    let mut on_many = run;
    let window_ns = on_many.steps[2].window.duration_ns;
    on_many.steps[2].servers[0].throttled =
        Some(Throttled { periods: 100, throttled_periods: 20, throttled_ns: window_ns * 8 / 10 });
    assert!(!matches!(stops(&on_many), Some(Stops::Quota { .. })), "{:?}", stops(&on_many));
}

#[test]
fn sessions_that_may_read_do_so_only_if_the_machine_waits_for_storage() {
    let stopped = |waited: f64| {
        stops(&of_users(&[("Sending data", SessionState::ProcessorOrRead, 900)], |step| {
            let all_ns = (8 * step.window.duration_ns) as f64;
            let cpu = |share: f64| CpuTime { user_ns: (share * all_ns) as u64, ..CpuTime::default() };
            let [iowait_ns, idle_ns] = [waited, 0.8 - waited].map(|share| Some((share * all_ns) as u64));
            step.host_cpu = Some(CpuTime { iowait_ns, idle_ns, ..cpu(0.2) });
            let server = &mut step.servers[0];
            (server.cpu, server.run_delay_ns) = (Some(cpu(0.01)), Some(1_000_000));
            server.elapsed_ns = step.window.duration_ns;
            server.activity.remove(&Activity::BlockReadNs);
            server.counters.physical_reads = Some(100_000_000);
            step.process_cpu = Some(cpu(0.02));
        }))
    };
    assert!(matches!(stopped(0.7), Some(Stops::Reads { .. })), "{:?}", stopped(0.7));
    assert_eq!(stopped(0.1), None, "who waits for a latch leaves processors idle");
}
