//! Parts that meet on loopback: those who belong together, and those who do not.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::book::{Book, SILENT};
use super::{FromMeeting, *};
use targets::network::wire::{Control, Token, Version, WireError, greet, prove_control};

const SECOND: u64 = 1_000_000_000;

fn token() -> Token {
    Token::new("one two three four").unwrap()
}

fn rules(parts: u32, on_part_end: OnPartEnd) -> Rules {
    Rules {
        parts,
        configuration: "c0ffee".to_owned(),
        host: "h0".to_owned(),
        patience: Duration::from_secs(60),
        on_part_end,
    }
}

fn open(rules: Rules) -> Meeting {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Meeting::open("loopback", &[loopback], &token(), rules).unwrap()
}

fn joining(meeting: &Meeting, number: u32, parts: u32) -> Joining {
    Joining {
        point: "loopback".to_owned(),
        host: "127.0.0.1".to_owned(),
        port: meeting.address().port(),
        token: token(),
        number,
        parts,
        configuration: "c0ffee".to_owned(),
        own_host: format!("h{number}"),
        patience: Duration::from_secs(30),
        on_part_end: OnPartEnd::Stop,
    }
}

fn join(joining: &Joining) -> Result<Member, FleetError> {
    Member::join(joining, &|| false, Box::new(|| {})).map(Option::unwrap)
}

fn never() -> bool {
    false
}

#[test]
fn all_begin_at_one_instant_and_hear_the_worst_verdict() {
    let meeting = open(rules(4, OnPartEnd::Stop));
    let starts: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let part = |number| {
            let joining = joining(&meeting, number, 4);
            scope.spawn(move || {
                let member = join(&joining).unwrap();
                assert_eq!(member.host(), "h0");
                let asked_ns = measure::monotonic_ns();
                let first = member.ready(0, "s1", &never).unwrap().unwrap();
                assert!(first.at_monotonic_ns > asked_ns, "it was still to come");
                let judgement = if number == 2 { Judgement::Failed } else { Judgement::Passed };
                assert_eq!(member.judged(0, judgement, &never).unwrap(), Some(Judgement::Failed));
                let second = member.ready(1, "s2", &never).unwrap().unwrap();
                assert!(member.take_gone().is_empty());
                assert!(member.leave(None).is_some(), "the clocks were compared at the end, too");
                let bound = first.offset.bound_ns + second.offset.bound_ns;
                (first.at_monotonic_ns, bound)
            })
        };
        let parts: Vec<_> = (0..4).map(part).collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect()
    });
    // It is one host, so its clock is one, and what was agreed on differs by what is not known of it.
    let bound = starts.iter().map(|(_, bound)| *bound).max().unwrap();
    let (first, last) = (starts.iter().min().unwrap().0, starts.iter().max().unwrap().0);
    assert!(last - first <= 2 * bound, "{starts:?}");
    assert!(meeting.turned_away().is_empty());
    meeting.close();
}

/// What comes of a part's first step at a meeting point that begins it so much later than the parts are ready.
fn begun_after(later: u64, is_early: bool) -> Result<Option<Started>, FleetError> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let point = std::thread::spawn(move || {
        let soon = std::time::Instant::now() + Duration::from_secs(60);
        let (stream, _) = listener.accept().unwrap();
        greet(&stream, &token().key(), || None, soon).unwrap();
        let mut control = Control::<FromPart, FromMeeting>::new(stream);
        // Until the part has gone.
        while let Ok(message) = control.expect(soon) {
            let now_ns = measure::monotonic_ns();
            let begin = |step| FromMeeting::Begin { step, monotonic_ns: now_ns.saturating_add(later) };
            let answers = match message {
                FromPart::Hello(_) => {
                    let welcome = FromMeeting::Welcome { host: "h0".to_owned() };
                    [welcome].into_iter().chain(is_early.then(|| begin(0))).collect()
                }
                FromPart::Ask(asked) => {
                    vec![FromMeeting::Time { asked, monotonic_ns: now_ns, utc_ns: measure::wall_ns() }]
                }
                FromPart::Ready { step, .. } if !is_early => vec![begin(step)],
                _ => continue,
            };
            if answers.iter().any(|answer| control.send(answer).is_err()) {
                break;
            }
        }
    });
    let meeting = open(rules(1, OnPartEnd::Stop));
    let member = join(&Joining { port, ..joining(&meeting, 0, 1) }).unwrap();
    let begun = member.ready(0, "s1", &never);
    drop(member);
    point.join().unwrap();
    meeting.close();
    begun
}

#[test]
fn a_start_that_nobody_agreed_on_is_not_waited_for() {
    assert!(begun_after(SECOND / 4, false).unwrap().is_some());
    for later in [1_000 * SECOND, u64::MAX / 2, u64::MAX] {
        let error = begun_after(later, false).unwrap_err().to_string();
        assert!(error.contains("the start of a step") && error.contains("250ms are agreed"), "{error}");
    }
    let error = begun_after(u64::MAX / 2, true).unwrap_err().to_string();
    assert!(error.contains("the start of a step") && error.contains("before the clocks were compared"), "{error}");
}

#[test]
fn who_does_not_belong_here_is_refused_by_name() {
    let meeting = open(rules(2, OnPartEnd::Stop));
    let first = join(&joining(&meeting, 1, 2)).unwrap();
    let refused = |change: &dyn Fn(&mut Joining)| {
        let mut other = joining(&meeting, 0, 2);
        change(&mut other);
        match join(&other) {
            Err(FleetError::Refused { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|it| it.number = 1), "part 1 is there already, on h1");
    assert_eq!(refused(&|it| it.parts = 3), "it is part 0 of 3, and this experiment has 2");
    assert!(refused(&|it| it.number = 2).contains("no part 2 of 2"));
    assert!(refused(&|it| it.configuration = "decaf".to_owned()).contains("configured in another way"));
    assert_eq!(meeting.turned_away().len(), 4);
    assert!(meeting.turned_away()[0].contains("part 1 on h0: part 1 is there already"), "{:?}", meeting.turned_away());
    let mut other = joining(&meeting, 0, 2);
    other.token = Token::new("five six seven eight").unwrap();
    assert!(matches!(join(&other), Err(FleetError::Wire { source: WireError::TokenRefused, .. })));
    let member = join(&joining(&meeting, 0, 2)).unwrap();
    drop((first, member));
    meeting.close();
}

#[test]
fn the_end_of_one_ends_all_and_says_why() {
    let meeting = open(rules(2, OnPartEnd::Stop));
    let is_stopped = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&is_stopped);
    let on_stop = Box::new(move || heard.store(true, Ordering::Relaxed));
    let stays = Member::join(&joining(&meeting, 0, 2), &never, on_stop).unwrap().unwrap();
    let goes = join(&joining(&meeting, 1, 2)).unwrap();
    goes.leave(Some("it was interrupted".to_owned()));
    match stays.ready(0, "s1", &never) {
        Err(FleetError::Stopped { why }) => assert_eq!(why, "part 1 on h1: it was interrupted"),
        other => panic!("{other:?}"),
    }
    assert!(is_stopped.load(Ordering::Relaxed), "its load was asked to end");
    drop(stays);
    meeting.close();
}

#[test]
fn the_others_go_on_without_one_where_that_was_asked() {
    let meeting = open(rules(2, OnPartEnd::Continue));
    let mut other = joining(&meeting, 0, 2);
    other.on_part_end = OnPartEnd::Continue;
    let stays = join(&other).unwrap();
    let goes = join(&joining(&meeting, 1, 2)).unwrap();
    goes.leave(Some("it was interrupted".to_owned()));
    assert!(stays.ready(0, "s1", &never).unwrap().is_some());
    assert_eq!(stays.take_gone(), ["part 1 on h1: it was interrupted"]);
    stays.leave(None);
    meeting.close();
}

#[test]
fn a_meeting_point_that_dies_ends_the_load_that_it_was_to_end() {
    let meeting = open(rules(2, OnPartEnd::Stop));
    let member = join(&joining(&meeting, 1, 2)).unwrap();
    drop(meeting);
    let error = member.ready(0, "s1", &never).unwrap_err();
    assert!(matches!(error, FleetError::Stopped { .. } | FleetError::Wire { .. }), "{error}");
}

#[test]
fn a_wish_to_end_is_heard_while_others_are_waited_for() {
    let meeting = open(rules(2, OnPartEnd::Stop));
    let member = join(&joining(&meeting, 0, 2)).unwrap();
    assert_eq!(member.ready(0, "s1", &|| true).unwrap(), None);
    let mut nobody = joining(&meeting, 1, 2);
    drop(member);
    meeting.close();
    nobody.patience = Duration::from_secs(600);
    assert!(Member::join(&nobody, &|| true, Box::new(|| {})).unwrap().is_none());
}

#[test]
fn nobody_there_is_an_error_that_names_the_place() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let meeting = open(rules(2, OnPartEnd::Stop));
    let mut lost = joining(&meeting, 1, 2);
    lost.port = free.local_addr().unwrap().port();
    lost.patience = Duration::from_millis(300);
    drop(free);
    let error = join(&lost).unwrap_err();
    assert!(error.to_string().contains("`loopback` was not reached"), "{error}");
    assert!(error.hint().unwrap().contains("--meet-wait"));
    meeting.close();
}

#[test]
fn strangers_neither_hold_up_nor_hear_anything() {
    let meeting = open(rules(1, OnPartEnd::Stop));
    let address = meeting.address();
    let silent: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut talks = TcpStream::connect(address).unwrap();
    talks.write_all(&[b'x'; 4096]).unwrap();
    let client = TcpStream::connect(address).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    // It knows the token, but comes for `plimsoll net`.
    prove_control(&client, &token().key(), deadline).unwrap();
    let mut heard = Vec::new();
    (&client).take(100).read_to_end(&mut heard).unwrap();
    assert!(heard.is_empty());
    let member = join(&joining(&meeting, 0, 1)).unwrap();
    assert!(member.ready(0, "s1", &never).unwrap().is_some());
    member.leave(None);
    drop(silent);
    assert!(!meeting.turned_away().is_empty());
    meeting.close();
}

fn introduction(number: u32) -> Introduction {
    Introduction {
        version: Version::ours(),
        number,
        parts: 2,
        configuration: "c0ffee".to_owned(),
        host: format!("h{number}\n\u{7}"),
    }
}

fn said(book: &mut Book, number: u32) -> Vec<FromMeeting> {
    std::iter::from_fn(|| book.take(number)).collect()
}

#[test]
fn one_that_never_comes_is_named() {
    for on_part_end in [OnPartEnd::Stop, OnPartEnd::Continue] {
        let mut book = Book::new(rules(2, on_part_end), 0);
        book.join(&introduction(0), SECOND).unwrap();
        book.ready(0, 0, "s1", 2 * SECOND);
        (2..62).for_each(|second| {
            book.heard(0, second * SECOND);
            book.look(second * SECOND);
        });
        let said = said(&mut book, 0);
        if on_part_end == OnPartEnd::Stop {
            assert_eq!(said[1], FromMeeting::Stop { why: "part 1 of 2 did not come within 60 s".to_owned() });
        } else {
            assert!(matches!(&said[1], FromMeeting::Gone { number: 1, .. }), "{said:?}");
            assert!(matches!(&said[2], FromMeeting::Begin { step: 0, .. }), "{said:?}");
            assert_eq!(book.join(&introduction(1), 63 * SECOND).unwrap_err(), "the load has begun without it");
        }
    }
}

#[test]
fn one_that_falls_silent_has_gone() {
    let mut book = Book::new(rules(2, OnPartEnd::Stop), 0);
    book.join(&introduction(0), 0).unwrap();
    book.join(&introduction(1), 0).unwrap();
    let later = SILENT.as_nanos() as u64 + 1;
    book.heard(0, later);
    book.look(later);
    assert!(!book.has(1));
    let stop = said(&mut book, 0).pop().unwrap();
    assert_eq!(stop, FromMeeting::Stop { why: "part 1 on h1: nothing was heard of it for 10 s".to_owned() });
}

#[test]
fn parts_at_different_steps_are_stopped() {
    let mut book = Book::new(rules(2, OnPartEnd::Continue), 0);
    book.join(&introduction(0), 0).unwrap();
    book.join(&introduction(1), 0).unwrap();
    book.ready(0, 0, "s1", 1);
    book.ready(1, 0, "s2", 1);
    let stop = said(&mut book, 0).pop().unwrap();
    let why = "the parts are not at the same step: part 0 on h0 is to begin s1; part 1 on h1 is to begin s2";
    assert_eq!(stop, FromMeeting::Stop { why: why.to_owned() });
}

#[test]
fn a_name_is_listened_for_on_all_addresses_and_an_address_there_alone() {
    assert_eq!(listening_addresses("10.0.0.7", 1), [SocketAddr::from(([10, 0, 0, 7], 1))]);
    assert!(listening_addresses("localhost", 1).iter().all(|address| address.ip().is_loopback()));
    assert!(listening_addresses("node1", 1).iter().all(|address| address.ip().is_unspecified()));
}
