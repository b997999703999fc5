//! Stalls of a load on a database server, with one cause each, as looks at the server show them.

use super::*;
use crate::Message;
use model::record::sample::stalls::{quiet, stall};
use model::record::{Look, Looks, ServerStats, ServerWork, SessionState, Term};

const SECOND: u64 = 1_000_000_000;
const HALF: u64 = 500_000_000;
const LOOK_NS: u64 = 50_000_000;

fn doing(sessions: &[(&str, u32)]) -> Look {
    let sessions = sessions.iter().map(|(event, count)| ((*event).to_owned(), *count)).collect();
    Look { took_us: 400, sessions, work: Some([].into()), ..Look::default() }
}

/// 32 sessions that read and commit; a checkpoint pauses most of the time.
fn usual() -> Look {
    let work = Some([(ServerWork::CheckpointPause, 1)].into());
    Look { work, ..doing(&[("CPU", 12), ("IO:DataFileRead", 9), ("LWLock:WALWrite", 2)]) }
}

/// A load that was held up for half a second at second 7 of its window, with what was seen meanwhile.
fn run(moment: impl Fn(&mut Moment), during: impl Fn() -> Look) -> Run {
    let mut run = quiet();
    stall(&mut run, (7 * SECOND, HALF), moment);
    let from_ns = run.steps[0].window.warmup_ns + 7 * SECOND;
    let states = [
        ("CPU", SessionState::Processor),
        ("IO:DataFileRead", SessionState::Read),
        ("LWLock:WALWrite", SessionState::LogWrite),
        ("Lock:relation", SessionState::Lock),
    ];
    let session_states = states.map(|(event, state)| (event.to_owned(), state)).into();
    run.steps[0].servers = vec![ServerStats { session_states, ..ServerStats::default() }];
    for interval in &mut run.steps[0].intervals {
        let at = |number: u64| interval.offset_ns + number * LOOK_NS;
        let look = |at_ns: u64| {
            if (from_ns..from_ns + HALF).contains(&at_ns) { during() } else { usual() }
        };
        let looks: Vec<(u64, Look)> = (0..20).map(|number| (at(number), look(at(number)))).collect();
        interval.looks = vec![Looks::of("db1:5432", &looks)];
    }
    run
}

fn stalls(run: &Run) -> Stalls {
    let stalls = Stalls::of(run, 0).unwrap();
    assert_eq!(stalls.episodes.len(), 1, "{stalls:?}");
    stalls
}

fn cause(moment: impl Fn(&mut Moment), during: impl Fn() -> Look) -> Option<StallCause> {
    stalls(&run(moment, during)).main_cause().cloned()
}

fn locked(by: &str) -> Look {
    let blockers = [(by.to_owned(), 8)].into();
    Look { blockers, ..doing(&[("Lock:relation", 30), ("CPU", 1)]) }
}

#[test]
fn who_held_the_locks_is_named() {
    let found = stalls(&run(|_| (), || locked("psql, idle in transaction")));
    assert_eq!(found.main_cause(), Some(&StallCause::HeldLock("psql, idle in transaction".to_owned())));
    let words = found.sentence();
    assert!(words.contains("30.0 of 32 sessions waited for a lock, held by psql, idle in transaction"), "{words}");
    let few = || Look { blockers: [("psql".to_owned(), 3)].into(), ..doing(&[("Lock:relation", 3)]) };
    assert_eq!(cause(|_| (), few), None, "three of 32 sessions");
}

#[test]
fn locks_of_the_loads_own_sessions_follow_from_what_holds_up_the_first_of_them() {
    let own = || locked(Look::OWN);
    assert_eq!(cause(|_| (), own), Some(StallCause::HeldLock(Look::OWN.to_owned())));
    let writes = || {
        let mut look = own();
        look.sessions.insert("LWLock:WALWrite".to_owned(), 2);
        look.sessions.insert("CPU".to_owned(), 0);
        look
    };
    // Usually two sessions are in it as well.
    assert_eq!(cause(|_| (), writes), Some(StallCause::HeldLock(Look::OWN.to_owned())));
    let checkpoint = || Look { work: Some([(ServerWork::CheckpointSync, 1)].into()), ..writes() };
    let written = |moment: &mut Moment| moment.written_bytes = Some(4_000_000);
    assert_eq!(cause(written, checkpoint), Some(StallCause::Checkpoint));
}

fn waiting_for_storage(work: &[ServerWork]) -> Look {
    let work = Some(work.iter().map(|work| (*work, 1)).collect());
    Look { work, ..doing(&[("LWLock:WALWrite", 20), ("IO:DataFileRead", 9)]) }
}

#[test]
fn a_checkpoint_is_named_only_where_it_presses_on_storage() {
    let slow_writes = |moment: &mut Moment| {
        (moment.completed, moment.device_us) = (Some(300), Some(900_000));
        moment.written_bytes = Some(4_000_000);
    };
    let syncs = || waiting_for_storage(&[ServerWork::CheckpointSync]);
    let found = stalls(&run(slow_writes, syncs));
    assert_eq!(found.main_cause(), Some(&StallCause::Checkpoint));
    let words = found.sentence();
    assert!(words.contains("made durable what it had written") && words.contains("29.0 of 32 sessions"), "{words}");
    assert!(found.advice().unwrap().contains("rarer and smoother"));
    let pauses = || waiting_for_storage(&[ServerWork::CheckpointPause]);
    assert_eq!(cause(slow_writes, pauses), Some(StallCause::Writes), "one that pauses is not in the way");
    let slow = |moment: &mut Moment| {
        slow_writes(moment);
        moment.written_bytes = Some(40_000);
    };
    assert_eq!(cause(slow, syncs), Some(StallCause::DeviceSlow), "nothing more was written than usual");
    let busy = || Look { work: Some([(ServerWork::CheckpointSync, 1)].into()), ..doing(&[("CPU", 30)]) };
    assert_ne!(cause(slow_writes, busy), Some(StallCause::Checkpoint), "no session waits for storage");
    let vacuum = || waiting_for_storage(&[ServerWork::Autovacuum]);
    assert_eq!(cause(slow_writes, vacuum), Some(StallCause::Autovacuum));
    let mut always = run(slow_writes, syncs);
    for interval in &mut always.steps[0].intervals {
        let lists = &mut interval.looks[0];
        lists.work = Some([(ServerWork::CheckpointSync, vec![1; lists.at_us.len()])].into());
    }
    assert_eq!(stalls(&always).main_cause(), Some(&StallCause::Writes), "what goes on all the time explains nothing");
    let hidden = || Look { work: None, ..syncs() };
    assert_eq!(cause(slow_writes, hidden), Some(StallCause::Writes), "it was not seen");
}

#[test]
fn advice_says_how_large_the_log_must_be_where_that_is_known() {
    let mut run =
        run(|moment| moment.written_bytes = Some(4_000_000), || waiting_for_storage(&[ServerWork::CheckpointWrite]));
    let server = &mut run.target.facts.server;
    let settings = [("max_wal_size", "64MB"), ("checkpoint_timeout", "5min"), ("checkpoint_completion_target", "0.9")];
    server.settings.extend(settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
    server.terms.insert(Term::LogCapacity, "max_wal_size".to_owned());
    server.terms.insert(Term::CheckpointInterval, "checkpoint_timeout".to_owned());
    let stats = &mut run.steps[0].servers[0];
    stats.elapsed_ns = 20 * SECOND;
    stats.activity.insert(model::record::Activity::CheckpointsRequested, 5);
    stats.counters.redo_bytes = Some(200 << 20);
    let found = stalls(&run);
    assert_eq!(found.main_cause(), Some(&StallCause::Checkpoint));
    let advice = found.advice().unwrap();
    // 10 MiB/s for 300 s, 1.9 times.
    assert!(advice.starts_with("Set max_wal_size=6 GiB"), "{advice}");
}

#[test]
fn a_server_that_does_not_even_say_what_its_sessions_do_is_named() {
    let mut run = run(|_| (), || doing(&[]));
    for interval in &mut run.steps[0].intervals {
        let looks: Vec<(u64, Look)> = interval.looks[0].iter().filter(|(_, look)| !look.sessions.is_empty()).collect();
        interval.looks = vec![Looks::of("db1:5432", &looks)];
    }
    assert_eq!(stalls(&run).main_cause(), None, "nobody looked");
    let middle_ns = run.steps[0].window.warmup_ns + 7 * SECOND + HALF / 2;
    let late = Look { took_us: HALF / 1_000, ..Look::default() };
    run.steps[0].intervals[0].looks.push(Looks::of("db1:5432", &[(middle_ns, late)]));
    assert_eq!(stalls(&run).main_cause(), Some(&StallCause::ServerSilent));
}

#[test]
fn what_is_usual_or_few_looks_show_explains_nothing() {
    let always = || doing(&[("Lock:relation", 12), ("CPU", 8)]);
    let mut run = run(|_| (), || locked("psql"));
    for interval in &mut run.steps[0].intervals {
        let seen: Vec<(u64, Look)> = interval.looks[0].iter().collect();
        let usual = |(at_ns, look): (u64, Look)| (at_ns, if look.blockers.is_empty() { always() } else { look });
        interval.looks = vec![Looks::of("db1:5432", &seen.into_iter().map(usual).collect::<Vec<_>>())];
    }
    assert_eq!(stalls(&run).main_cause(), None, "30 sessions where 12 always wait");
    let minor = || {
        let mut look = locked("psql");
        look.blockers.extend([("autovacuum".to_owned(), 5), ("startup".to_owned(), 6)]);
        look
    };
    let named = cause(|_| (), minor);
    assert_eq!(named, Some(StallCause::Wait("Lock:relation".to_owned())), "none of them holds up half of the sessions");
    let mut run = self::run(|_| (), || locked("psql"));
    for interval in &mut run.steps[0].intervals {
        let seen: Vec<(u64, Look)> = interval.looks[0].iter().collect();
        let first = seen.iter().position(|(_, look)| !look.blockers.is_empty());
        let keep = seen.into_iter().enumerate();
        let keep =
            keep.filter(|(at, (_, look))| look.blockers.is_empty() || first.is_some_and(|first| *at < first + 2));
        interval.looks = vec![Looks::of("db1:5432", &keep.map(|(_, seen)| seen).collect::<Vec<_>>())];
    }
    assert_eq!(stalls(&run).main_cause(), None, "two looks");
}

#[test]
fn a_checkpoint_explains_nothing_on_another_server_or_where_no_device_is_seen() {
    let unseen = |moment: &mut Moment| {
        (moment.completed, moment.device_us, moment.written_bytes, moment.flushes) = (None, None, None, None);
    };
    let syncs = || waiting_for_storage(&[ServerWork::CheckpointSync]);
    let mut remote = run(unseen, syncs);
    remote.steps[0].intervals.iter_mut().for_each(|interval| interval.moments.as_mut().unwrap().written_bytes = None);
    assert_ne!(stalls(&remote).main_cause(), Some(&StallCause::Checkpoint));
    let at = remote.steps[0].intervals.iter().position(|one| one.offset_ns == 9 * SECOND).unwrap();
    let wrote = |blocks| ServerStats {
        activity: [(model::record::Activity::BlocksWrittenByCheckpoints, blocks)].into(),
        ..ServerStats::default()
    };
    remote.steps[0].intervals[at].servers = vec![wrote(4_000)];
    assert_eq!(stalls(&remote).main_cause(), Some(&StallCause::Checkpoint), "the server says what it wrote");
    remote.steps[0].intervals.iter_mut().for_each(|interval| interval.servers = vec![wrote(4_000)]);
    assert_ne!(stalls(&remote).main_cause(), Some(&StallCause::Checkpoint), "as much as usual");
    let written = |moment: &mut Moment| moment.written_bytes = Some(4_000_000);
    let mut two = run(written, || waiting_for_storage(&[]));
    let other = run(written, || Look { work: Some([(ServerWork::CheckpointSync, 1)].into()), ..doing(&[("CPU", 3)]) });
    for (interval, other) in two.steps[0].intervals.iter_mut().zip(&other.steps[0].intervals) {
        interval.looks.push(Looks { node: "db2:5432".to_owned(), ..other.looks[0].clone() });
    }
    assert_ne!(stalls(&two).main_cause(), Some(&StallCause::Checkpoint), "its sessions did not wait");
}

#[test]
fn what_storage_does_after_the_window_is_the_end_of_the_load() {
    // Two requests were under way when the window closed, and the others went on as usual.
    let mut run = quiet();
    let end_ns = run.steps[0].window.warmup_ns + run.steps[0].window.duration_ns;
    let late = |session: u32| SlowOperation {
        kind: "read".to_owned(),
        session,
        ended_ns: end_ns + 390_000_000,
        service_ns: 400_000_000,
        response_ns: 400_000_000,
        stands_for: 1.0,
    };
    let last = run.steps[0].intervals.last_mut().unwrap();
    let slow = last.slow.get_or_insert_default();
    slow.count = 2;
    slow.kept = vec![late(0), late(1)];
    let mut moments: Vec<Moment> = last.moments.as_ref().unwrap().iter().collect();
    let idle = Moment { completed: Some(0), device_us: Some(0), in_flight: Some(0), ..moments[0] };
    moments.extend([idle; 8]);
    last.moments = Some(model::record::Moments::of(last.offset_ns, &moments));
    run.steps[0].operations[0].response.record_n(400_000_000, 2);
    assert_eq!(stalls(&run).main_cause(), None);
}

#[test]
fn lost_packets_are_no_silent_server_where_each_session_sent_a_segment_again() {
    let silent = || Look { took_us: 500_000, ..Look::default() };
    // The first moment of the stall has them.
    let segments = |count: u64| {
        let left = std::cell::Cell::new(count);
        move |moment: &mut Moment| moment.retransmitted = Some(left.take())
    };
    assert_eq!(cause(segments(40), silent), Some(StallCause::Retransmission));
    assert_eq!(cause(segments(0), silent), Some(StallCause::ServerSilent));
    assert_eq!(cause(segments(20), silent), Some(StallCause::ServerSilent), "of 32 sessions: they may be others'");
}
