//! Stalls of a live server, each with one cause.

use super::*;
use model::live::{LockHolder, SeenStatement, StatementLook};
use model::record::{ServerWork, SessionState};

const MS: u64 = 1_000_000;
const LOOK: u64 = 50 * MS;
const SLOWER_THAN: Nanos = Nanos::millis(250);
/// When the first look is.
const FIRST: u64 = 1_000_000 * MS;

fn statement(session: u64, begun: u64, age_ms: u64, doing: &str, text: u64) -> SeenStatement {
    let state = match doing.split_once(':') {
        Some(("Lock", _)) => SessionState::Lock,
        Some(("IO", "DataFileRead")) => SessionState::Read,
        Some(("IO", "WALSync")) => SessionState::LogWrite,
        Some(_) => SessionState::Other,
        None => SessionState::Processor,
    };
    let in_lock = Some(state == SessionState::Lock && doing != "Lock:advisory");
    SeenStatement { session, begun, age: Nanos(age_ms * MS), doing: doing.to_owned(), state, in_lock, text }
}

fn quiet_moment() -> Moment {
    Moment {
        length_us: 50_000,
        completed: Some(50),
        device_us: Some(50_000),
        in_flight: Some(1),
        written_bytes: Some(400_000),
        flushes: Some(5),
        idle_us: Some(50_000),
        stolen_us: Some(0),
        memory_stall_us: Some(0),
        ..Moment::default()
    }
}

/// A server with eight sessions, each with a short statement at a time, looked at 20 times a second.
struct Server {
    stalls: WatchedStalls,
    now_ns: u64,
    count: u64,
    found: Vec<WatchedEpisode>,
}

impl Server {
    fn new() -> Self {
        Self { stalls: WatchedStalls::new(SLOWER_THAN, true), now_ns: FIRST, count: 0, found: Vec::new() }
    }

    fn look(&mut self, took_ms: u64, moment: Moment, look: StatementLook) {
        self.stalls.moment(self.now_ns, moment);
        let answered_ns = self.now_ns + took_ms * MS;
        let look = StatementLook { asked_ns: self.now_ns, answered_ns, ..look };
        self.found.extend(self.stalls.look(&look));
        self.now_ns = (self.now_ns + LOOK).max(answered_ns + LOOK);
    }

    /// Time in which nothing is held up: each look shows other statements.
    fn quiet(&mut self, looks: u64) {
        for _ in 0..looks {
            self.count += 1;
            let each = (0..8).map(|session| statement(session, self.count, 2, "CPU", 7)).collect();
            let work = Some(BTreeMap::from([(ServerWork::CheckpointPause, 1)]));
            self.look(1, quiet_moment(), StatementLook { statements: each, work, ..StatementLook::default() });
        }
    }

    /// Sessions from 0 on that execute one statement in this state for so many looks.
    fn stall(&mut self, looks: u64, sessions: u64, doing: &str, moment: Moment, rest: &StatementLook) {
        self.count += 1;
        for place in 0..looks {
            let each = |session| statement(session, self.count, 2 + 50 * place, doing, 7);
            let statements = (0..sessions).map(each).chain(rest.statements.iter().cloned()).collect();
            self.look(1, moment, StatementLook { statements, ..rest.clone() });
        }
    }

    fn only(mut self) -> WatchedEpisode {
        self.quiet(20);
        assert_eq!(self.found.len(), 1, "{:?}", self.found);
        self.found.remove(0)
    }
}

fn working() -> StatementLook {
    StatementLook { work: Some(BTreeMap::from([(ServerWork::CheckpointPause, 1)])), ..StatementLook::default() }
}

/// This session holds what sessions up to 8 wait for.
fn holding(session: Option<u64>) -> StatementLook {
    let held = |waiter| LockHolder { waiter, session, who: "psql, idle in transaction".to_owned() };
    StatementLook { holders: (0..8).filter(|waiter| Some(*waiter) != session).map(held).collect(), ..working() }
}

#[test]
fn who_holds_the_lock_is_named_and_each_statement_is_counted_once() {
    let mut server = Server::new();
    server.quiet(60);
    server.stall(20, 6, "Lock:relation", quiet_moment(), &holding(Some(4711)));
    let found = server.only();
    let blame = found.blame.as_ref().unwrap();
    assert_eq!(blame.cause, StallCause::HeldLock("psql, idle in transaction".to_owned()));
    assert!(blame.evidence.contains("session 4711 (psql, idle in transaction) held it"), "{}", blame.evidence);
    assert_eq!((found.statements, found.sessions, found.goes_on), (6, 6, false));
    // Looks are 51 ms apart, and ages 50.
    assert_eq!((found.longest, found.took), (Nanos::millis(952), Nanos::millis(6 * 971)));
    let words = found.phrase();
    assert!(words.contains("6 statements of 6 sessions") && words.contains("locks held by psql"), "{words}");
}

#[test]
fn a_lock_needs_nothing_that_is_usual_and_one_session_is_enough() {
    let mut server = Server::new();
    server.stall(20, 1, "Lock:transactionid", quiet_moment(), &holding(Some(4711)));
    let found = server.only();
    assert!(matches!(found.blame.unwrap().cause, StallCause::HeldLock(_)));
    let mut unknown = Server::new();
    unknown.stall(20, 2, "Lock:relation", quiet_moment(), &working());
    let blame = unknown.only().blame.unwrap();
    assert_eq!(blame.cause, StallCause::Wait("Lock:relation".to_owned()));
    assert!(blame.evidence.contains("who held it was not seen"), "{}", blame.evidence);
}

#[test]
fn long_statements_are_no_stall() {
    let mut server = Server::new();
    server.quiet(60);
    let report = |begun, age_ms| statement(20, begun, age_ms, "IO:DataFileRead", 99);
    let other = |begun, age_ms| statement(21, begun, age_ms, "IO:DataFileRead", 98);
    for begun in 0..5 {
        for place in 0..30 {
            let statements = vec![report(begun, 50 * place), other(begun, 50 * place)];
            server.look(1, quiet_moment(), StatementLook { statements, ..working() });
        }
    }
    for place in 0..30 {
        // Workers that wait for work.
        let worker = |session| statement(session, 1_000, 50 * place, "Lock:advisory", 60);
        let statements = (30..34).map(worker).collect();
        server.look(1, quiet_moment(), StatementLook { statements, ..working() });
    }
    server.quiet(20);
    assert_eq!(server.found, []);
    assert_eq!(server.stalls.sum().long_statements, 14, "{:?}", server.stalls.sum());
}

#[test]
fn a_kind_that_was_never_seen_before_may_just_be_long() {
    let mut server = Server::new();
    server.quiet(60);
    for place in 0..40 {
        let new = |session| statement(session, 1_000, 50 * place, "IO:DataFileRead", 500);
        let statements = vec![new(30), new(31)];
        server.look(1, quiet_moment(), StatementLook { statements, ..working() });
    }
    server.quiet(20);
    assert_eq!(server.found, []);
    let sum = server.stalls.sum();
    assert_eq!((sum.episodes, sum.long_statements), (0, 2));
    assert!(sum.phrase().contains("no statement was held up") && sum.long().unwrap().starts_with("2 more"), "{sum:?}");
}

#[test]
fn a_checkpoint_is_named_where_it_presses_on_storage_and_statements_wait_for_it() {
    let slow = Moment { completed: Some(15), device_us: Some(200_000), ..quiet_moment() };
    let syncs = StatementLook { work: Some(BTreeMap::from([(ServerWork::CheckpointSync, 1)])), ..working() };
    let cause = |doing: &str, moment: Moment, rest: &StatementLook| {
        let mut server = Server::new();
        server.quiet(60);
        server.stall(20, 8, doing, moment, rest);
        server.only().blame.map(|blame| blame.cause)
    };
    assert_eq!(cause("IO:WALSync", slow, &syncs), Some(StallCause::Checkpoint));
    assert_eq!(cause("IO:WALSync", slow, &working()), Some(StallCause::DeviceSlow));
    assert_eq!(cause("CPU", slow, &syncs), None, "statements that compute do not wait for a device");
    let few = Moment { completed: Some(1), device_us: Some(3_000), in_flight: Some(0), ..quiet_moment() };
    let limited = cause("IO:WALSync", few, &working());
    assert_ne!(limited, Some(StallCause::DeviceSlow), "its few requests take three times as long, and it is idle");
    let silent = Moment { completed: Some(0), in_flight: Some(9), device_us: Some(0), ..quiet_moment() };
    assert_eq!(cause("IO:WALSync", silent, &working()), Some(StallCause::DeviceSilent));
    assert_eq!(cause("CPU", silent, &working()), None);
}

#[test]
fn only_sessions_that_are_held_up_say_why() {
    // Twenty others always wait for something else.
    let others = (100..120).map(|session| statement(session, 1, 60_000, "Timeout:PgSleep", 42)).collect();
    let rest = StatementLook { statements: others, ..working() };
    let mut server = Server::new();
    for _ in 0..60 {
        server.stall(1, 8, "CPU", quiet_moment(), &rest);
    }
    server.stall(20, 4, "LWLock:BufferMapping", quiet_moment(), &rest);
    for _ in 0..20 {
        server.stall(1, 8, "CPU", quiet_moment(), &rest);
    }
    assert_eq!(server.found.len(), 1);
    let blame = server.found[0].blame.clone().unwrap();
    assert_eq!(blame.cause, StallCause::Wait("LWLock:BufferMapping".to_owned()), "{blame:?}");
    assert!(blame.evidence.contains("of 4 sessions"), "{blame:?}");
}

#[test]
fn a_server_that_answers_nothing_is_silent_unless_it_was_us_who_did_not_run() {
    let mut server = Server::new();
    server.quiet(60);
    let away = Moment { length_us: 2_000_000, ..quiet_moment() };
    server.look(2_000, away, working());
    server.stalls.moment(server.now_ns - 2_000 * MS - LOOK, away);
    let found = server.only();
    assert_eq!(found.blame.as_ref().map(|blame| &blame.cause), Some(&StallCause::ServerSilent), "{found:?}");
    assert_eq!((found.statements, found.took), (0, Nanos::millis(2_000)));
    let mut stopped = Server::new();
    stopped.quiet(60);
    let overslept = Moment { length_us: 2_000_000, overslept_us: 1_900_000, ..quiet_moment() };
    stopped.look(2_000, overslept, working());
    stopped.quiet(20);
    assert_eq!(stopped.found, []);
}

#[test]
fn a_server_that_stood_still_is_not_blamed_on_locks_of_before() {
    let mut server = Server::new();
    server.quiet(60);
    // Sessions that often wait for locks of each other for a moment.
    let waiting = |age_ms| (0..8).map(|session| statement(session, 900, age_ms, "Lock:transactionid", 7)).collect();
    let look = |age_ms| StatementLook { statements: waiting(age_ms), ..holding(Some(77)) };
    server.look(1, quiet_moment(), look(10));
    let away = Moment { length_us: 2_000_000, ..quiet_moment() };
    server.look(2_000, away, look(2_050));
    server.look(1, quiet_moment(), look(2_110));
    let found = server.only();
    assert_eq!(found.blame.as_ref().map(|blame| &blame.cause), Some(&StallCause::ServerSilent), "{found:?}");
    assert_eq!(found.statements, 8);
}

#[test]
fn what_goes_on_is_said_before_it_ends_and_counted_once() {
    let mut server = Server::new();
    server.quiet(60);
    server.stall(260, 3, "Lock:relation", quiet_moment(), &holding(None));
    assert_eq!(server.found.len(), 1);
    let first = server.found.remove(0);
    assert!(first.goes_on && first.phrase().contains("and goes on"), "{}", first.phrase());
    assert_eq!(server.stalls.sum().episodes, 0);
    let mut all = server.stalls.finish(server.now_ns);
    let last = all.remove(0);
    assert_eq!(all, []);
    assert!(last.goes_on && last.blame == first.blame, "{last:?}");
    let sum = server.stalls.sum();
    assert_eq!((sum.episodes, sum.statements, sum.causes.len()), (1, 3, 1));
    assert!((sum.causes[0].share - 1.0).abs() < 1e-9);
    assert!(sum.advice().unwrap().contains("transaction left open"));
}

#[test]
fn one_that_is_held_up_itself_is_no_cause() {
    let mut server = Server::new();
    server.quiet(60);
    // Session 0 holds what the others wait for, and waits for storage for as long.
    for place in 0..20 {
        let waiting = (1..6).map(|session| statement(session, 900, 2 + 50 * place, "Lock:transactionid", 7));
        let statements = waiting.chain([statement(0, 900, 2 + 50 * place, "IO:WALSync", 7)]).collect();
        server.look(1, quiet_moment(), StatementLook { statements, ..holding(Some(0)) });
    }
    let found = server.only();
    let cause = found.blame.as_ref().map(|blame| &blame.cause);
    assert!(!matches!(cause, Some(StallCause::HeldLock(_))), "{found:?}");
    assert_eq!(found.statements, 6);
}

#[test]
fn one_after_the_other_that_holds_a_row_is_named() {
    let mut server = Server::new();
    server.quiet(60);
    // Each has the row for three looks and then waits for it again: of six one holds it at a time.
    for place in 0..60_u64 {
        let holder = place / 3 % 6;
        let since = |session: u64| place % 18 + 18 - 3 * (session + 1);
        let waiting = (0..6).filter(|session| *session != holder);
        let one = |session| {
            let age = since(session) % 18;
            statement(session, (place + 18 - age) * 100 + session, 2 + 50 * age, "Lock:transactionid", 7)
        };
        let held = |waiter| LockHolder { waiter, session: Some(holder), who: "app, idle in transaction".to_owned() };
        let (statements, holders) = (waiting.clone().map(one).collect(), waiting.map(held).collect());
        server.look(1, quiet_moment(), StatementLook { statements, holders, ..working() });
    }
    server.quiet(20);
    let held = StallCause::HeldLock("app, idle in transaction".to_owned());
    assert!(!server.found.is_empty());
    for found in &server.found {
        let blame = found.blame.as_ref().unwrap();
        assert_eq!(blame.cause, held, "{found:?}");
        assert!(blame.evidence.contains("sessions (app, idle in transaction) held it"), "{found:?}");
    }
}

#[test]
fn a_lock_is_blamed_on_who_holds_that_one_and_each_of_two_stalls_is_one() {
    let mut server = Server::new();
    server.quiet(60);
    let held = |waiter, session, who: &str| LockHolder { waiter, session: Some(session), who: who.to_owned() };
    for place in 0..30 {
        // Two wait for a report, four for a transaction that is left open, and workers for work.
        let one = |session| statement(session, 900, 2 + 50 * place, "Lock:relation", 7);
        let workers = (40..44).map(|session| statement(session, 1, 50 * place, "Lock:advisory", 60));
        let statements = (0..6).map(one).chain(workers).collect();
        let two = (0..2).map(|waiter| held(waiter, 70, "report, active"));
        let holders = two.chain((2..6).map(|waiter| held(waiter, 71, "app, idle in transaction"))).collect();
        server.look(1, quiet_moment(), StatementLook { statements, holders, ..working() });
    }
    server.quiet(20);
    let cause = |found: &WatchedEpisode| (found.statements, found.blame.as_ref().unwrap().cause.clone());
    let found: Vec<_> = server.found.iter().map(cause).collect();
    let by = |who: &str| StallCause::HeldLock(who.to_owned());
    assert_eq!(found, [(4, by("app, idle in transaction")), (2, by("report, active"))]);
}

#[test]
fn a_stall_during_one_that_goes_on_is_one_of_its_own() {
    let mut server = Server::new();
    server.quiet(60);
    let index = |place: u64| statement(50, 900, 2 + 50 * place, "Lock:virtualxid", 88);
    let of_index = LockHolder { waiter: 50, session: Some(70), who: "old, idle in transaction".to_owned() };
    for place in 0..300 {
        let is_stalled = (240..260).contains(&place);
        let doing = if is_stalled { "Lock:relation" } else { "CPU" };
        let begun = if is_stalled { 2_000 } else { 10_000 + place };
        let age = if is_stalled { 2 + 50 * (place - 240) } else { 2 };
        let statements = (0..4).map(|session| statement(session, begun, age, doing, 7)).chain([index(place)]).collect();
        let held = |waiter| LockHolder { waiter, session: Some(71), who: "psql, active".to_owned() };
        let holders = (0..4).filter(|_| is_stalled).map(held).chain([of_index.clone()]).collect();
        server.look(1, quiet_moment(), StatementLook { statements, holders, ..working() });
    }
    server.quiet(20);
    let cause = |found: &WatchedEpisode| (found.goes_on, found.statements, found.blame.as_ref().unwrap().cause.clone());
    let found: Vec<_> = server.found.iter().map(cause).collect();
    let by = |who: &str| StallCause::HeldLock(who.to_owned());
    let old = by("old, idle in transaction");
    assert_eq!(found, [(true, 1, old.clone()), (false, 4, by("psql, active")), (false, 1, old)]);
    let sum = server.stalls.sum();
    assert_eq!((sum.episodes, sum.statements), (2, 5));
    assert_eq!(sum.took, Nanos::millis(15_251 + 4 * 971));
}

#[test]
fn a_long_one_alone_takes_no_later_ones_with_it() {
    let mut server = Server::new();
    server.quiet(60);
    for place in 0..300 {
        // A kind that is usually short takes 15 s, and four others wait for half a second in the middle.
        let waits = (240..252).contains(&place);
        let long = statement(50, 900, 2 + 50 * place, "CPU", 7);
        let age = if waits { 2 + 50 * (place - 240) } else { 2 };
        let begun = if waits { 2_000 } else { 10_000 + place };
        let doing = if waits { "LWLock:BufferMapping" } else { "CPU" };
        let statements = (0..4).map(|session| statement(session, begun, age, doing, 7)).chain([long]).collect();
        server.look(1, quiet_moment(), StatementLook { statements, ..working() });
    }
    server.quiet(20);
    assert_eq!(server.found.len(), 1, "{:?}", server.found);
    assert_eq!((server.found[0].statements, server.stalls.sum().long_statements), (4, 1));
    let cause = server.found[0].blame.as_ref().map(|blame| &blame.cause);
    assert_eq!(cause, Some(&StallCause::Wait("LWLock:BufferMapping".to_owned())));
}

#[test]
fn a_clock_that_is_set_makes_no_stall() {
    let mut server = Server::new();
    server.quiet(60);
    for place in 0..4 {
        // Their server's clock jumps by a minute.
        let age_ms = 2 + 50 * place + if place > 1 { 60_000 } else { 0 };
        let statements = (0..8).map(|session| statement(session, 900, age_ms, "CPU", 7)).collect();
        server.look(1, quiet_moment(), StatementLook { statements, ..working() });
    }
    server.quiet(20);
    assert_eq!(server.found, []);
}

#[test]
fn a_connection_that_broke_after_a_silence_is_one() {
    let mut server = Server::new();
    server.quiet(60);
    let asked_ns = server.now_ns;
    server.now_ns += 60_000 * MS;
    server.stalls.moment(asked_ns, Moment { length_us: 60_000_000, ..quiet_moment() });
    server.stalls.silence(asked_ns, server.now_ns);
    server.quiet(20);
    assert_eq!(server.found.len(), 1, "{:?}", server.found);
    let found = &server.found[0];
    assert_eq!(found.blame.as_ref().map(|blame| &blame.cause), Some(&StallCause::ServerSilent), "{found:?}");
    assert_eq!(found.length, Nanos::seconds(60));
    // 80 looks that are 51 ms apart, and the silence.
    assert_eq!(server.stalls.sum().watched, Nanos::millis(60_000 + 80 * 51 - 50));
}

#[test]
fn texts_and_names_without_end_fill_no_memory() {
    let mut server = Server::new();
    for count in 0..3_000_u64 {
        let each = |session| statement(session, count, 5, &format!("LWLock:{count}.{session}"), count * 8 + session);
        let statements = (0..8).map(each).collect();
        server.look(1, quiet_moment(), StatementLook { statements, ..working() });
    }
    assert!(server.stalls.texts.texts.len() <= MAX_TEXTS && server.stalls.names.len() <= MAX_NAMES);
    assert!(server.stalls.looks.len() <= 2_401 && server.stalls.running.len() == 8);
}
