//! PL/SQL blocks: binds that go out, and arrays of them.

use oracledb::{BindParameters, DB_TYPE_NUMBER, DB_TYPE_RAW, DB_TYPE_VARCHAR, ErrorKind, ToDbValue};

use super::{code, connect, number, options};
use crate::responder::{Answer, Call, GENERATIONS, Kind, Responder, Value, Way};

const BATCH: &str = "begin slob_batch(:1, :2, :3); end;";
/// Room for a RAW that comes back.
static ROOM: [u8; 32_767] = [0; 32_767];

/// Turns the bytes of the first bind around, and says how many they are.
fn turned(call: &Call) -> Answer {
    if !call.is_executed() {
        return Answer::Ok;
    }
    let out = call.binds.iter().map(|binds| {
        let mut bytes = binds[0].as_raw().unwrap().to_vec();
        bytes.reverse();
        let count = bytes.len();
        vec![bytes.into(), count.into()]
    });
    Answer::Block { ways: vec![Way::In, Way::Out, Way::Out], out: out.collect() }
}

#[test]
fn a_raw_goes_in_and_a_raw_comes_out() {
    for generation in GENERATIONS {
        let responder = Responder::start(options(generation), turned);
        let connection = connect(&responder);
        let mut block = connection.statement(BATCH).unwrap().build().unwrap();
        // The longest first, so that the binds are described once.
        for length in [4000_usize, 1, 800, 4000] {
            let packed: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut result = block.execute(&[&packed, &DB_TYPE_RAW, &DB_TYPE_NUMBER]).unwrap();
            let row = result.out_bind_data();
            let wanted: Vec<u8> = packed.iter().rev().copied().collect();
            assert_eq!(row.get::<&[u8]>(0).unwrap(), wanted);
            assert_eq!(row.get::<usize>(1).unwrap(), length);
        }
        let calls = responder.calls();
        assert_eq!(calls.len(), 4);
        assert!(calls[1..].iter().all(|call| call.kind == Kind::Reexecute && call.binds[0][1] == Value::Null));
        assert_eq!(*calls[0].bind_bytes, [4000, 4000, 22]);
        assert_eq!(calls[3].bind_bytes, calls[0].bind_bytes);
    }
}

#[test]
fn the_room_of_a_bind_is_that_of_the_value_in_its_place() {
    for generation in GENERATIONS {
        let responder = Responder::start(options(generation), turned);
        let connection = connect(&responder);
        let mut block = connection.statement(BATCH).unwrap().build().unwrap();
        for length in [32_767_usize, 100] {
            let packed = vec![7; length];
            let mut result = block.execute(&[&packed, &&ROOM[..], &DB_TYPE_NUMBER]).unwrap();
            assert_eq!(result.out_bind_data().get::<&[u8]>(0).unwrap(), packed);
        }
        // The type will do once the room is described.
        let mut result = block.execute(&[&vec![1_u8], &DB_TYPE_RAW, &DB_TYPE_NUMBER]).unwrap();
        assert_eq!(result.out_bind_data().get::<i64>(1).unwrap(), 1);
        let calls = responder.calls();
        assert_eq!(
            calls.iter().map(|call| call.kind).collect::<Vec<_>>(),
            [Kind::Execute, Kind::Reexecute, Kind::Reexecute]
        );
        assert_eq!(calls[0].bind_bytes[1], 32_767);
        // What holds the room is sent with the first execution only.
        assert_eq!(calls[0].binds[0][1].as_raw().map(<[u8]>::len), Some(32_767));
        assert_eq!(calls[1].binds[0][1], Value::Null);
    }
}

#[test]
fn binds_may_go_both_ways() {
    for generation in GENERATIONS {
        let answers = |call: &Call| {
            if !call.is_executed() {
                return Answer::Ok;
            }
            let [binds] = &call.binds[..] else { panic!("one row of binds") };
            let text = binds[1].as_text().map(|text| format!("{text}!"));
            let ways = vec![Way::InOut, Way::InOut, Way::Out, Way::Out];
            Answer::Block {
                ways,
                out: vec![vec![(binds[0].as_i64().unwrap() + 1).into(), text.into(), "new".into(), Value::Null]],
            }
        };
        let responder = Responder::start(options(generation), answers);
        let connection = connect(&responder);
        let mut block = connection.statement("begin b(:1, :2, :3, :4); end;").unwrap().build().unwrap();
        for round in 0..3_i64 {
            let mut result = block.execute(&[&round, &"text", &DB_TYPE_VARCHAR, &DB_TYPE_NUMBER]).unwrap();
            let row = result.out_bind_data();
            assert_eq!(row.get::<i64>(0).unwrap(), round + 1);
            assert_eq!((row.get::<&str>(1).unwrap(), row.get::<&str>(2).unwrap()), ("text!", "new"));
            let error = row.get::<i64>(3).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::ValueWasNull), "{error}");
            // They can be taken once.
            assert!(result.out_bind_data().get::<i64>(0).is_err());
        }
        let calls = responder.calls();
        assert_eq!(calls[2].binds, [[number("2"), "text".into(), Value::Null, Value::Null]]);
    }
}

#[test]
fn an_array_of_blocks_is_two_round_trips_the_first_time_and_one_afterwards() {
    for generation in GENERATIONS {
        let responder = Responder::start(options(generation), turned);
        let connection = connect(&responder);
        let mut block = connection.statement(BATCH).unwrap().build().unwrap();
        let packed: Vec<Vec<u8>> = (1..=50).map(|length| vec![length; usize::from(length)]).rev().collect();
        let rows: Vec<[&dyn ToDbValue; 3]> =
            packed.iter().map(|packed| [packed as &dyn ToDbValue, &DB_TYPE_RAW, &DB_TYPE_NUMBER]).collect();
        let rows: Vec<&[&dyn ToDbValue]> = rows.iter().map(|row| row.as_slice()).collect();
        for round_trips in [2, 1, 1] {
            let before = responder.round_trips();
            let mut result = block.execute_batch(BindParameters::Slice(&rows)).unwrap();
            assert_eq!(responder.round_trips() - before, round_trips);
            let out = result.out_bind_data();
            assert_eq!(out.len(), 50);
            for (row, packed) in out.iter().zip(&packed) {
                assert_eq!(row.get::<&[u8]>(0).unwrap(), packed);
                assert_eq!(row.get::<usize>(1).unwrap(), packed.len());
            }
        }
        let calls = responder.calls();
        assert_eq!(calls.iter().map(|call| call.binds.len()).collect::<Vec<_>>(), [1, 49, 50, 50]);
    }
}

#[test]
fn a_block_without_binds_and_one_that_fails() {
    for generation in GENERATIONS {
        let answers = |call: &Call| match &*call.sql {
            "begin fine; end;" => Answer::Block { ways: Vec::new(), out: Vec::new() },
            _ => Answer::error(6550, "line 1, column 7:\nPLS-00201: identifier 'BAD' must be declared"),
        };
        let responder = Responder::start(options(generation), answers);
        let connection = connect(&responder);
        for _ in 0..2 {
            connection.execute("begin fine; end;", &[]).unwrap();
            let error = connection.execute("begin bad(:1); end;", &[&DB_TYPE_NUMBER]).err().unwrap();
            assert_eq!(code(&error), 6550);
            assert!(error.to_string().contains("PLS-00201"), "{error}");
        }
    }
}
