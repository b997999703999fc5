//! Statements that change rows: prepared, in arrays, and what they cost.

use oracledb::{BindParameters, ToDbValue};

use super::{code, connect, number, numbered, options, quiet};
use crate::responder::{Answer, Call, GENERATIONS, Kind, Options, Responder, State, Value};

#[test]
fn a_prepared_statement_sends_its_text_once() {
    for generation in GENERATIONS {
        let responder = Responder::start(options(generation), |_: &Call| Answer::Changed(64));
        let connection = connect(&responder);
        let mut update = connection.statement("update t set c = :1 where k = :2").unwrap().build().unwrap();
        assert_eq!(responder.round_trips(), 0);
        for (text, key) in [("abc", 1_i64), ("ab", 200), ("longer", 3), ("longer", 4)] {
            assert_eq!(update.execute(&[&text, &key]).unwrap().rows_affected(), 64);
        }
        let calls = responder.calls();
        assert_eq!(calls[0].kind, Kind::Execute);
        assert!(calls[1..].iter().all(|call| call.kind == Kind::Reexecute));
        assert!(calls.iter().all(|call| &*call.sql == "update t set c = :1 where k = :2" && !call.autocommit));
        let binds: Vec<_> = calls.iter().map(|call| call.binds[0].clone()).collect();
        let row = |text: &str, key| vec![Value::from(text), number(key)];
        assert_eq!(binds, [row("abc", "1"), row("ab", "200"), row("longer", "3"), row("longer", "4")]);
        // A longer text has its bind described again.
        assert_ne!(calls[1].bind_bytes[0], calls[2].bind_bytes[0]);
    }
}

/// "No more rows" makes the driver close a query's cursor, so that its text is sent and parsed each time. A query of one row escapes that
/// when no more than one is asked for.
#[test]
fn a_query_that_has_not_come_to_its_end_is_not_parsed_again() {
    for generation in GENERATIONS {
        for (prefetch, kind) in [(1, Kind::Reexecute), (2, Kind::Execute)] {
            let responder = Responder::start(options(generation), |_: &Call| numbered(1));
            let connection = connect(&responder);
            for _ in 0..3 {
                let statement = connection.statement("select n, t from t where n = :1").unwrap();
                let row = statement.prefetch_rows(prefetch).build().unwrap().query_row(&[&5_i64]).unwrap();
                assert_eq!(row.get::<&str>(1).unwrap(), "row 0");
            }
            let kinds: Vec<Kind> = responder.calls().iter().map(|call| call.kind).collect();
            assert_eq!(kinds, [Kind::Execute, kind, kind]);
        }
    }
}

#[test]
fn counts_of_changed_rows_may_be_large() {
    for generation in GENERATIONS {
        for count in [0, 1, 255, 65_535, 65_536, 16_777_216, u64::from(u32::MAX) + 7] {
            let responder = Responder::start(options(generation), move |_: &Call| Answer::Changed(count));
            let connection = connect(&responder);
            assert_eq!(connection.execute("delete t", &[]).unwrap().rows_affected(), count);
        }
    }
}

#[test]
fn an_array_of_rows_is_one_round_trip() {
    for generation in GENERATIONS {
        let answers = |call: &Call| Answer::Changed(call.binds.len() as u64);
        let responder = Responder::start(options(generation), answers);
        let connection = connect(&responder);
        let mut insert = connection.statement("insert into t values (:1, :2)").unwrap().build().unwrap();
        let filling = "f".repeat(128);
        for count in [1000_i64, 3, 1000] {
            let keys: Vec<i64> = (0..count).collect();
            let rows: Vec<[&dyn ToDbValue; 2]> = keys.iter().map(|key| [key as &dyn ToDbValue, &filling]).collect();
            let rows: Vec<&[&dyn ToDbValue]> = rows.iter().map(|row| row.as_slice()).collect();
            let before = responder.round_trips();
            let inserted = insert.execute_batch(BindParameters::Slice(&rows)).unwrap().rows_affected();
            assert_eq!((inserted, responder.round_trips() - before), (count as u64, 1));
        }
        let calls = responder.calls();
        assert_eq!(calls[2].kind, Kind::Reexecute);
        assert_eq!(calls[2].binds.len(), 1000);
        assert_eq!(calls[2].binds[999], [number("999"), Value::from(filling.as_str())]);
    }
}

/// A bind beyond 32,767 bytes of room comes behind the others.
#[test]
fn long_binds_come_last_and_are_put_back() {
    for generation in GENERATIONS {
        let responder = quiet(generation);
        let connection = connect(&responder);
        let (long, longer) = ("l".repeat(20_000), "m".repeat(40_000));
        for _ in 0..2 {
            let sql = "insert into t values (:1, :2, :3, :4)";
            connection.execute(sql, &[&long, &1_i64, &longer, &"short"]).unwrap();
        }
        let wanted = [Value::from(long), number("1"), Value::from(longer), Value::from("short")];
        assert!(responder.calls().iter().all(|call| call.binds == [wanted.clone()]));
    }
}

#[test]
fn long_statements_come_in_several_packets() {
    for generation in GENERATIONS {
        let responder = Responder::start(options(generation), |_: &Call| Answer::Changed(1));
        let connection = connect(&responder);
        for length in [8_000, 8_192, 20_000, 100_000] {
            let sql = format!("update t set c = :1 /* {} */", "x".repeat(length));
            assert_eq!(connection.execute(&sql, &[&"v"]).unwrap().rows_affected(), 1);
            assert_eq!(*responder.calls().last().unwrap().sql, *sql);
        }
    }
}

#[test]
fn a_statement_can_be_looked_at_without_being_executed() {
    for generation in GENERATIONS {
        let answers = |call: &Call| match &*call.sql {
            "select n, t from t" => numbered(3),
            _ => Answer::error(942, "table or view does not exist"),
        };
        let responder = Responder::start(options(generation), answers);
        let connection = connect(&responder);
        let mut statement = connection.statement("select n, t from t").unwrap().build().unwrap();
        statement.ensure_fully_parsed().unwrap();
        assert_eq!(statement.out_metadata().len(), 2);
        assert_eq!(responder.calls()[0].kind, Kind::Parse);
        let mut statement = connection.statement("select n from nowhere").unwrap().build().unwrap();
        assert_eq!(code(&statement.ensure_fully_parsed().err().unwrap()), 942);
    }
}

#[test]
fn errors_have_oracle_s_own_numbers_and_the_session_goes_on() {
    for generation in GENERATIONS {
        let answers = |call: &Call| match call.sql.strip_prefix("error ").and_then(|code| code.parse().ok()) {
            Some(code) => Answer::error(code, "said by the server"),
            None => Answer::Changed(1),
        };
        let responder = Responder::start(options(generation), answers);
        let connection = connect(&responder);
        for number in [1, 60, 942, 1031, 1555, 1652, 20_001, 65_535, 65_536, 100_000] {
            let error = connection.execute(&format!("error {number}"), &[]).err().unwrap();
            assert_eq!((code(&error), error.to_string()), (number, format!("ORA-{number:05}: said by the server")));
        }
        assert_eq!(connection.execute("update t set c = 1", &[]).unwrap().rows_affected(), 1);
    }
}

#[test]
fn an_error_may_be_announced_by_a_marker() {
    for generation in GENERATIONS {
        let answers = |call: &Call| match call.sql.starts_with("lock") {
            true => Answer::BreakThenError { code: 60, message: "deadlock detected".to_owned() },
            false => Answer::Changed(1),
        };
        let responder = Responder::start(options(generation), answers);
        let connection = connect(&responder);
        let mut lock = connection.statement("lock something").unwrap().build().unwrap();
        for _ in 0..3 {
            assert_eq!(code(&lock.execute(&[]).err().unwrap()), 60);
            assert_eq!(connection.execute("update t set c = 1", &[]).unwrap().rows_affected(), 1);
        }
        assert_eq!(responder.sessions()[0].markers, [2, 2, 2]);
    }
}

#[test]
fn an_open_transaction_is_rolled_back_when_the_session_ends() {
    for generation in GENERATIONS {
        let answers = |call: &Call| if call.sql.is_empty() { Answer::Ok } else { Answer::Changed(1) };
        let responder = Responder::start(options(generation), answers);
        for commits in [true, false] {
            let connection = connect(&responder);
            connection.execute("update t set c = 1", &[]).unwrap();
            if commits {
                connection.commit().unwrap();
            }
        }
        responder.wait_until("goodbyes", |all| all.iter().all(|session| session.state == State::LoggedOff));
        let kinds: Vec<_> = responder.sessions().iter().map(|session| session.kinds()).collect();
        assert_eq!(kinds[0], [Kind::Execute, Kind::Commit, Kind::Logoff]);
        assert_eq!(kinds[1], [Kind::Execute, Kind::Rollback, Kind::Logoff]);
    }
}

#[test]
fn cursors_are_closed_and_too_many_are_refused() {
    for generation in GENERATIONS {
        let options = Options { max_cursors: 5, ..options(generation) };
        let responder = Responder::start(options, |_: &Call| Answer::Changed(1));
        let connection = connect(&responder);
        // The driver keeps no more statements than the server allows, and closes the others.
        for number in 0..20 {
            connection.execute(&format!("update t set c = {number}"), &[]).unwrap();
        }
        connection.ping().unwrap();
        assert!(responder.sessions()[0].closed_cursors >= 14, "{}", responder.sessions()[0].closed_cursors);
        let mut held = Vec::new();
        let error = (0..10).find_map(|number| {
            let mut statement = connection.statement("delete t where c = :1").unwrap().build().unwrap();
            let error = statement.execute(&[&number]).err();
            held.push(statement);
            error
        });
        assert_eq!(error.map(|error| code(&error)), Some(1000));
    }
}
