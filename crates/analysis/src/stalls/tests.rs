//! Stalls with one cause each, planted in a load that is quiet otherwise.

use super::*;
use crate::{Finding, LatencyTarget, Message, analyse};
use model::record::sample::stalls::{quiet, stall, stalled};
use model::record::{ChannelKind, ChannelStats, Looks, Moment, NetworkEnd, ServerStats, SessionState, sample};

const SECOND: u64 = 1_000_000_000;
const HALF: u64 = 500_000_000;

fn found(run: &Run) -> Option<Stalls> {
    Stalls::of(run, 0)
}

/// The cause of one stall of half a second at second 7.
fn cause(during: impl Fn(&mut Moment)) -> Option<StallCause> {
    cause_in(quiet(), during)
}

fn cause_in(mut run: Run, during: impl Fn(&mut Moment)) -> Option<StallCause> {
    stall(&mut run, (7 * SECOND, HALF), during);
    let stalls = found(&run).unwrap();
    assert_eq!(stalls.episodes.len(), 1, "{stalls:?}");
    stalls.main_cause().cloned()
}

fn silent(moment: &mut Moment) {
    (moment.completed, moment.device_us) = (Some(0), Some(0));
}

fn raw() -> Run {
    let mut run = quiet();
    run.load = model::record::Load::foreign(model::record::Workload::Io);
    run
}

#[test]
fn each_cause_is_found_by_what_the_system_did() {
    let stopped = cause(|moment| {
        silent(moment);
        (moment.overslept_us, moment.waited_us) = (moment.length_us, Some(0));
    });
    assert_eq!(stopped, Some(StallCause::Stopped));
    let quota = |moment: &mut Moment| {
        silent(moment);
        (moment.throttled_us, moment.waited_us) = (Some(45_000), Some(90_000));
        moment.overslept_us = 40_000;
    };
    assert_eq!(cause(quota), Some(StallCause::Quota), "the run delay contains the quota's time");
    assert_eq!(cause(|moment| moment.stolen_us = Some(30_000)), Some(StallCause::Stolen));
    let mut run = quiet();
    run.steps[0].intervals.iter_mut().for_each(|interval| {
        let moments = interval.moments.as_mut().unwrap();
        moments.stolen_us = Some(vec![30_000; moments.length_us.len()]);
    });
    assert_eq!(cause_in(run, silent), Some(StallCause::DeviceSilent), "what is always stolen explains no episode");
    let unseen = |moment: &mut Moment| (moment.overslept_us, moment.waited_us) = (moment.length_us, None);
    assert_eq!(cause(unseen), None, "whether threads waited for a CPU is not known");
    let hogs = |moment: &mut Moment| (moment.waited_us, moment.idle_us) = (Some(60_000), Some(0));
    assert_eq!(cause(hogs), Some(StallCause::Processors));
    assert_eq!(cause(|moment| moment.memory_stall_us = Some(30_000)), Some(StallCause::Memory));
    let reclaims = |moment: &mut Moment| {
        silent(moment);
        (moment.overslept_us, moment.waited_us) = (moment.length_us, Some(0));
        moment.memory_stall_us = Some(30_000);
    };
    assert_eq!(cause(reclaims), Some(StallCause::Memory), "who waits for memory does not run either");
    assert_eq!(cause(silent), Some(StallCause::DeviceSilent));
    let frozen = |moment: &mut Moment| {
        silent(moment);
        moment.in_flight = Some(0);
    };
    assert_eq!(cause(frozen), Some(StallCause::BeforeDevice));
    let slow = |moment: &mut Moment| (moment.completed, moment.device_us) = (Some(100), Some(800_000));
    assert_eq!(cause(slow), Some(StallCause::DeviceSlow));
    let behind_writes = |moment: &mut Moment| {
        slow(moment);
        moment.written_bytes = Some(30_000_000);
    };
    let writing = || {
        let mut run = quiet();
        run.steps[0].counters.physical_write_bytes = Some(1 << 30);
        run
    };
    assert_eq!(cause_in(writing(), behind_writes), Some(StallCause::Writes));
    assert_eq!(cause(behind_writes), Some(StallCause::Neighbour), "a load that only reads did not write them");
    let flushed = |moment: &mut Moment| {
        slow(moment);
        moment.flushes = Some(20);
    };
    assert_eq!(cause_in(writing(), flushed), Some(StallCause::Writes));
}

#[test]
fn on_raw_storage_others_and_limits_are_told_apart() {
    let neighbour = |moment: &mut Moment| {
        (moment.completed, moment.device_us) = (Some(900), Some(900_000));
        moment.others_bytes = Some(400_000_000);
    };
    assert_eq!(cause_in(raw(), neighbour), Some(StallCause::Neighbour));
    let held = |moment: &mut Moment| (moment.completed, moment.device_us) = (Some(100), Some(30_000));
    let limited = |moment: &mut Moment| {
        held(moment);
        moment.in_flight = Some(1);
    };
    assert_eq!(cause_in(raw(), limited), Some(StallCause::BeforeDevice));
    assert_eq!(cause_in(raw(), held), None, "the device still holds as many requests as usual: a part of it may hang");
    assert_eq!(cause(limited), None, "an engine may do few requests for reasons of its own");
}

#[test]
fn what_fits_no_rule_or_was_not_seen_is_unexplained() {
    assert_eq!(cause(|_| ()), None);
    // Waiting for a CPU while one is idle is no contention; what storage did, nobody saw.
    let idle = |moment: &mut Moment| {
        silent(moment);
        (moment.waited_us, moment.in_flight) = (Some(60_000), Some(0));
    };
    assert_eq!(cause(idle), None);
    let mut run = quiet();
    run.steps[0].intervals.iter_mut().for_each(|interval| interval.moments = None);
    stall(&mut run, (7 * SECOND, HALF), silent);
    let stalls = found(&run).unwrap();
    assert!(stalls.main_cause().is_none() && stalls.sentence().contains("was not recorded"), "{}", stalls.sentence());
    // What was usual all the time explains nothing.
    let mut run = quiet();
    for at in 0..19 {
        stall(&mut run, (at * SECOND, SECOND), |moment| moment.memory_stall_us = Some(30_000));
    }
    let busy = stall_within(&mut run);
    assert_eq!(busy, None);
}

/// Of a load whose moments are all like each other: no episode at all, or none with a cause.
fn stall_within(run: &mut Run) -> Option<StallCause> {
    found(run).and_then(|stalls| stalls.main_cause().cloned())
}

#[test]
fn lost_packets_explain_only_what_crosses_a_network() {
    let lost = |moment: &mut Moment| moment.retransmitted = Some(1);
    assert_eq!(cause(lost), None);
    let mut run = quiet();
    run.steps[0].network.push(NetworkEnd::default());
    assert_eq!(cause_in(run.clone(), lost), Some(StallCause::Retransmission), "ten in half a second");
    run.steps[0].network.clear();
    run.steps[0].channels.push(ChannelStats { kind: ChannelKind::Member, ..ChannelStats::default() });
    assert_eq!(cause_in(run, lost), None, "members of a disk group are no network");
}

#[test]
fn an_event_that_a_session_waited_for_most_of_the_time_is_named_but_no_read() {
    let mut run = quiet();
    for (event, class) in
        [("log file switch (checkpoint incomplete)", "Configuration"), ("direct path read", "User I/O")]
    {
        let mut times = Histogram::default();
        times.record(HALF);
        run.steps[0].waits.push(sample::wait(event, class, true, times.clone()));
        let interval = run.steps[0].intervals.iter_mut().find(|interval| interval.offset_ns == 9 * SECOND).unwrap();
        interval.waits.insert(event.to_owned(), times);
    }
    let expected = StallCause::Wait("log file switch (checkpoint incomplete)".to_owned());
    assert_eq!(cause_in(run.clone(), |_| ()), Some(expected));
    assert_eq!(cause_in(run, silent), Some(StallCause::DeviceSilent), "sessions waited for the device in the end");
}

#[test]
fn a_state_of_a_servers_sessions_is_named_and_one_of_storage_only_where_no_device_is_to_blame() {
    let sampled = |state, samples| {
        let mut run = quiet();
        let server = |samples: u64| ServerStats {
            sampled_times: 100,
            session_samples: [("Lock:relation".to_owned(), samples)].into(),
            session_states: [("Lock:relation".to_owned(), state)].into(),
            ..ServerStats::default()
        };
        run.steps[0].servers = vec![server(samples)];
        for interval in &mut run.steps[0].intervals {
            interval.servers = vec![server(if interval.offset_ns == 9 * SECOND { samples } else { 10 })];
        }
        run
    };
    let named = Some(StallCause::Wait("Lock:relation".to_owned()));
    assert_eq!(cause_in(sampled(SessionState::Lock, 1_500), |_| ()), named, "15 of 32 sessions, half of the second");
    assert_eq!(cause_in(sampled(SessionState::Lock, 400), |_| ()), None);
    assert_eq!(cause_in(sampled(SessionState::LogWrite, 1_500), silent), Some(StallCause::DeviceSilent));
    assert_eq!(cause_in(sampled(SessionState::LogWrite, 1_500), |_| ()), named);
}

#[test]
fn shares_add_up_and_causes_come_by_their_share() {
    let run = stalled();
    let stalls = found(&run).unwrap();
    let [silent, unexplained] = stalls.causes.as_slice() else { panic!("{stalls:?}") };
    assert_eq!((silent.cause.as_ref(), silent.episodes), (Some(&StallCause::DeviceSilent), 1));
    assert_eq!((&unexplained.cause, unexplained.longest > Nanos(300_000_000)), (&None, true));
    let of_causes: f64 = stalls.causes.iter().map(|share| share.share).sum();
    let all = of_causes + stalls.scattered_share + stalls.unrecorded_share;
    assert!((all - 1.0).abs() < 1e-9 && silent.share > 0.5, "{stalls:?}");
    let [first, second] = stalls.episodes.as_slice() else { panic!("{stalls:?}") };
    assert_eq!((first.from, second.from), (Nanos(4 * SECOND), Nanos(9 * SECOND)));
    assert_eq!((first.operations, first.longest), (32, Nanos(HALF)));
    let of = |episode| stalls.points.iter().filter(|point| point.episode == episode).count();
    assert_eq!([of(Some(0)), of(Some(1)), of(None)], [32, 32, 0]);
    let findings = analyse(&run, &LatencyTarget::default());
    let words = findings.iter().find(|finding| matches!(finding, Finding::Stalls(_))).unwrap().sentence();
    assert!(words.contains("the device completed no request") && words.contains("At 4.00 s"), "{words}");
}

#[test]
fn a_single_session_of_several_and_short_times_make_no_episode() {
    let mut run = quiet();
    stall(&mut run, (7 * SECOND, 20_000_000), silent);
    assert_eq!(found(&run), None, "shorter than what moments show");
    let mut run = quiet();
    stall(&mut run, (7 * SECOND, HALF), silent);
    for interval in &mut run.steps[0].intervals {
        if let Some(slow) = &mut interval.slow {
            slow.kept.truncate(1);
        }
    }
    assert_eq!(found(&run), None);
    assert_eq!(found(&quiet()), None);
}

#[test]
fn a_schedule_that_goes_on_during_a_stall_is_judged_by_the_operation_that_was_under_way() {
    let mut run = quiet();
    stall(&mut run, (7 * SECOND, HALF), silent);
    // What fell due meanwhile was sent late, and a queue was worked off for two seconds.
    let warmup_ns = run.steps[0].window.warmup_ns;
    for number in 0..40_u64 {
        let due_ns = warmup_ns + 7 * SECOND + number * 50_000_000;
        let late = SlowOperation {
            kind: "read".to_owned(),
            session: number as u32 % 32,
            ended_ns: due_ns + 200_000_000,
            service_ns: 600_000,
            response_ns: 200_000_000,
            stands_for: 1.0,
        };
        let interval = run.steps[0].intervals.iter_mut().find(|one| late.ended_ns < one.offset_ns + SECOND).unwrap();
        interval.slow.get_or_insert_default().kept.push(late);
    }
    let stalls = found(&run).unwrap();
    let [episode] = stalls.episodes.as_slice() else { panic!("{stalls:?}") };
    assert!(episode.length > Nanos(2 * SECOND), "{episode:?}");
    assert_eq!(stalls.main_cause(), Some(&StallCause::DeviceSilent));
}

/// Two steps, the second of which was held up longer, and by something else.
fn two_steps() -> Run {
    let silent_for = |ns: u64, in_flight: u64| {
        let mut run = quiet();
        stall(&mut run, (7 * SECOND, ns), |moment| {
            silent(moment);
            moment.in_flight = Some(in_flight);
        });
        run
    };
    let (mut run, more) = (silent_for(HALF, 16), silent_for(2 * SECOND, 0));
    run.steps.extend(more.steps);
    run
}

#[test]
fn steps_with_the_same_label_are_told_apart_by_their_place() {
    let worst = Stalls::worst(&two_steps(), |_| true).unwrap();
    assert_eq!((worst.place, worst.main_cause()), (1, Some(&StallCause::BeforeDevice)));
}

#[test]
fn the_first_screen_names_the_stalls_of_the_step_that_missed_its_limit() {
    let limit: LatencyTarget = "p99.99=5ms".parse().unwrap();
    let mut run = two_steps();
    // Where reads of the engine are judged, operations are not.
    run.load = raw().load;
    run.steps[1].label = "later".to_owned();
    run.steps[1].load.sessions = Some(64);
    let screen = |run: &Run| {
        let findings = crate::analyse_asked(run, Some(&limit));
        let screen = crate::FirstScreen::of(run, &findings);
        assert!(screen.stalls.is_some(), "{screen:?} {:?}", findings.iter().map(Message::rule).collect::<Vec<_>>());
        screen.stalls
    };
    let words = screen(&run).unwrap();
    assert!(words.contains("the device completed no request"), "{words}");
    run.steps.remove(0);
    let words = screen(&run).unwrap();
    assert!(words.contains("in later") && words.contains("held before the device"), "{words}");
}

proptest::proptest! {
    /// Records may be damaged, or written by hand.
    #[test]
    fn whatever_a_record_says_shares_are_shares(
        slow in proptest::collection::vec((0..6_u32, proptest::num::u64::ANY, proptest::num::u64::ANY, proptest::num::f64::ANY), 0..40),
        near in proptest::collection::vec((0..6_u32, 0..30_u64, 0..3_000_u64), 0..40),
        lengths in proptest::collection::vec(proptest::num::u64::ANY, 0..5),
        looks in proptest::collection::vec((proptest::num::u64::ANY, proptest::num::u64::ANY, 0..90_u32), 0..9),
        begin_ns in proptest::num::u64::ANY,
    ) {
        let mut run = quiet();
        let anything = slow.into_iter().map(|(session, ended_ns, response_ns, stands_for)| {
            let (kind, service_ns) = ("read".to_owned(), response_ns / 3);
            SlowOperation { kind, session, ended_ns, service_ns, response_ns, stands_for }
        });
        let plausible = near.into_iter().map(|(session, second, ms)| {
            let (kind, response_ns) = ("read".to_owned(), ms * 1_000_000);
            let ended_ns = second * SECOND + response_ns;
            SlowOperation { kind, session, ended_ns, service_ns: response_ns, response_ns, stands_for: 1.0 }
        });
        let interval = &mut run.steps[0].intervals[5];
        let list = interval.slow.get_or_insert_default();
        list.kept.extend(anything.chain(plausible));
        let moments = interval.moments.get_or_insert_default();
        moments.begin_ns = begin_ns;
        moments.length_us.extend(lengths);
        moments.completed = Some(vec![u64::MAX; 2]);
        interval.looks = vec![Looks {
            at_us: looks.iter().map(|(at_us, ..)| *at_us).collect(),
            took_us: looks.iter().map(|(_, took_us, _)| *took_us).collect(),
            sessions: [("Lock:tuple".to_owned(), looks.iter().map(|(.., count)| *count).collect())].into(),
            ..Looks::default()
        }];
        let Some(stalls) = Stalls::of(&run, 0) else { return Ok(()) };
        let shares = stalls.causes.iter().map(|share| share.share).chain([stalls.scattered_share, stalls.unrecorded_share]);
        for share in shares {
            proptest::prop_assert!((0.0..=1.0 + 1e-9).contains(&share), "{stalls:?}");
        }
        proptest::prop_assert!(!stalls.sentence().contains("NaN"));
    }
}
