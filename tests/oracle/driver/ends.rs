//! Calls that take too long, and connections that end.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use oracledb::{Connection, DB_TYPE_RAW, Error, ErrorKind};

use super::{connect, first_column, numbered, options, quiet};
use crate::responder::{Answer, Call, GENERATIONS, Kind, Responder, State, Way};
use test_support::patience::patiently;

/// Too short for whoever waits on purpose, in a test that says how long that is.
const TIMEOUTS: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(2)];

fn error(connection: &Connection, sql: &str) -> Error {
    connection.execute(sql, &[]).err().unwrap()
}

#[test]
fn a_call_that_takes_too_long_is_broken_off_and_the_session_goes_on() {
    let test = |generation, timeout| {
        let answers = |call: &Call| match &*call.sql {
            "hang" => Answer::Silence,
            "sleep" => Answer::Delay(Duration::from_secs(3600), Box::new(Answer::Changed(1))),
            "late" => Answer::Delay(Duration::from_millis(1), Box::new(Answer::Changed(1))),
            _ => numbered(3),
        };
        let responder = Responder::start(options(generation), answers);
        let connection = connect(&responder);
        for round in 1..=3 {
            connection.set_call_timeout(Some(timeout)).unwrap();
            for sql in ["hang", "sleep"] {
                let error = error(&connection, sql);
                assert!(matches!(error.kind(), ErrorKind::CallTimeoutExceeded), "{error}");
            }
            connection.set_call_timeout(None).unwrap();
            assert_eq!(first_column(connection.query("select n, t from t", &[]).unwrap()), [0, 1, 2]);
            assert_eq!(connection.execute("late", &[]).unwrap().rows_affected(), 1);
            // An interrupt and a reset for each.
            assert_eq!(responder.sessions()[0].markers, [3, 2, 3, 2].repeat(round));
        }
    };
    for generation in GENERATIONS {
        patiently(TIMEOUTS, |timeout| test(generation, timeout));
    }
}

/// This release of the driver panics when the timeout comes while half of a packet is here. A statement that is dropped then panics
/// again, which ends the whole program if it happens on the way up: so a statement has to be held outside and never dropped.
#[test]
fn a_timeout_in_the_middle_of_a_packet_is_a_panic_that_can_be_caught() {
    let test = |generation, timeout| {
        let answers = move |call: &Call| match call.is_executed() {
            true => {
                let block = Answer::Block { ways: vec![Way::Out], out: vec![vec![vec![7; 6000].into()]] };
                Answer::Halting(timeout * 4, Box::new(block))
            }
            false => Answer::Ok,
        };
        let responder = Responder::start(options(generation), answers);
        let connection = connect(&responder);
        connection.set_call_timeout(Some(timeout)).unwrap();
        let mut block = ManuallyDrop::new(connection.statement("begin b(:1); end;").unwrap().build().unwrap());
        assert!(catch_unwind(AssertUnwindSafe(|| block.execute(&[&DB_TYPE_RAW]).is_ok())).is_err());
        let error = connection.ping().err().unwrap();
        assert!(matches!(error.kind(), ErrorKind::LockPoisoned), "{error}");
        // Which is dropped without a panic.
    };
    for generation in GENERATIONS {
        patiently(TIMEOUTS, |timeout| test(generation, timeout));
    }
}

#[test]
fn a_connection_that_is_cut_says_so_and_stays_dead() {
    for generation in GENERATIONS {
        let answers = |call: &Call| match &*call.sql {
            "die" => Answer::Close,
            "select half" => Answer::CutInTheMiddle(Box::new(numbered(100))),
            _ => numbered(3),
        };
        let responder = Responder::start(options(generation), answers);
        for sql in ["die", "select half"] {
            let connection = connect(&responder);
            let gone = error(&connection, sql);
            assert!(matches!(gone.kind(), ErrorKind::DeadConnection | ErrorKind::StreamOperation), "{sql}: {gone}");
            let gone = connection.ping().err().unwrap();
            assert!(matches!(gone.kind(), ErrorKind::NotConnected | ErrorKind::StreamOperation), "{sql}: {gone}");
        }
        let connection = connect(&responder);
        assert_eq!(first_column(connection.query("select n, t from t", &[]).unwrap()), [0, 1, 2]);
        responder.wait_until("two ends", |all| all[..2].iter().all(|session| session.state == State::Gone));
    }
}

#[test]
fn one_session_is_killed_and_the_others_go_on() {
    for generation in GENERATIONS {
        let responder = Responder::start(options(generation), |_: &Call| numbered(3));
        let connections = [connect(&responder), connect(&responder), connect(&responder)];
        responder.cut(2);
        let alive = connections.iter().map(|connection| connection.ping().is_ok());
        assert_eq!(alive.collect::<Vec<_>>(), [true, false, true]);
        responder.wait_until("an end", |all| all[1].state == State::Gone);
        assert_eq!(responder.logged_on(), 2);
    }
}

#[test]
fn an_instance_that_goes_away_takes_its_sessions_and_its_listener() {
    for generation in GENERATIONS {
        let gone = quiet(generation);
        let stays = quiet(generation);
        let on_gone = [connect(&gone), connect(&gone)];
        let on_other = connect(&stays);
        gone.go_away();
        for connection in &on_gone {
            let error = connection.ping().err().unwrap();
            assert!(matches!(error.kind(), ErrorKind::DeadConnection | ErrorKind::StreamOperation), "{error}");
        }
        on_other.ping().unwrap();
        assert!(oracledb::connect(super::config(&gone)).is_err());
        gone.wait_until("ends", |all| all.iter().all(|session| session.state == State::Gone));
    }
}

#[test]
fn a_fetch_can_fail_by_itself() {
    for generation in GENERATIONS {
        let answers = |call: &Call| match call.kind {
            Kind::Fetch => Answer::Close,
            _ => numbered(10),
        };
        let responder = Responder::start(options(generation), answers);
        let connection = connect(&responder);
        let mut cursor = connection.query("select n, t from t", &[]).unwrap();
        assert_eq!(cursor.by_ref().take_while(Result::is_ok).count(), 2);
    }
}
