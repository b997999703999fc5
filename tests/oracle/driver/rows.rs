//! Queries: values, and how many round trips rows cost.

use oracledb::{Connection, ErrorKind, OracleNumber, OracleTimestamp, Row, ToDbValue};

use super::{code, connect, first_column, number, numbered, options};
use crate::responder::{Answer, Call, Column, GENERATIONS, Kind, Moment, Options, Repeats, Responder, Value};

/// Answers one row with the first bind, and keeps both for a comparison.
fn echo(kind: fn(&str) -> Column) -> impl Fn(&Call) -> Answer + Send + Sync {
    move |call| match call.is_executed() {
        true => Answer::rows([kind("V")], vec![[call.binds[0][0].clone()]]),
        false => Answer::Ok,
    }
}

fn ask(connection: &Connection, value: &dyn ToDbValue) -> Row {
    connection.query_row("select :1 from dual", &[value]).unwrap()
}

/// The bind of the last query.
fn bound(responder: &Responder) -> Value {
    let calls = responder.calls();
    let query = calls.iter().rfind(|call| call.is_executed()).unwrap();
    query.binds[0][0].clone()
}

#[test]
fn numbers_keep_their_digits() {
    for generation in GENERATIONS {
        let responder = Responder::start(options(generation), echo(Column::number));
        let connection = connect(&responder);
        let digits = [
            "0",
            "1",
            "-1",
            "9",
            "10",
            "99",
            "100",
            "101",
            "-100",
            "12345",
            "1000000",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            "0.1",
            "0.01",
            "-0.001",
            "1.5",
            "-123.456",
            "100.001",
            "0.00000000000000000001",
            "99999999999999999999999999999999999999",
            "-12345678901234567890.123456789",
        ];
        for digits in digits {
            let value: OracleNumber = digits.parse().unwrap();
            let row = ask(&connection, &value);
            assert_eq!(bound(&responder), number(digits));
            assert_eq!(row.get::<OracleNumber>(0).unwrap().to_string(), digits);
        }
        for whole in [0, 1, -1, 255, 256, 65_535, 65_536, i64::MAX, i64::MIN] {
            assert_eq!(ask(&connection, &whole).get::<i64>(0).unwrap(), whole);
            assert_eq!(bound(&responder).as_i64(), Some(whole));
        }
    }
}

#[test]
fn texts_raws_and_times_come_back_as_they_were() {
    for generation in GENERATIONS {
        let responder = Responder::start(options(generation), echo(Column::text));
        let connection = connect(&responder);
        for text in ["x".to_owned(), "Übergröße ≤ 7".to_owned(), "y".repeat(252), "y".repeat(253), "z".repeat(4000)]
        {
            assert_eq!(ask(&connection, &text).get::<&str>(0).unwrap(), text);
            assert_eq!(bound(&responder).as_text(), Some(text.as_str()));
        }
        let responder = Responder::start(options(generation), echo(|name| Column::raw(name, 32_767)));
        let connection = connect(&responder);
        for length in [1, 252, 253, 4000, 8192, 32_767] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            assert_eq!(ask(&connection, &bytes).get::<&[u8]>(0).unwrap(), bytes);
            assert_eq!(bound(&responder).as_raw(), Some(&bytes[..]));
        }
        let responder = Responder::start(options(generation), echo(Column::double));
        let connection = connect(&responder);
        for double in [0.0, 1.5, -1.5, 1e300, -1e-300] {
            assert_eq!(ask(&connection, &double).get::<f64>(0).unwrap(), double);
            assert_eq!(bound(&responder), Value::Double(double));
        }
        let responder = Responder::start(options(generation), echo(Column::timestamp));
        let connection = connect(&responder);
        let time = OracleTimestamp::new_timestamp(2026, 11, 23, 23, 59, 58, 123_456_789);
        let back: OracleTimestamp = ask(&connection, &time).get(0).unwrap();
        assert_eq!((back.year(), back.month(), back.day()), (2026, 11, 23));
        assert_eq!((back.hour(), back.minute(), back.second(), back.nanoseconds()), (23, 59, 58, 123_456_789));
        let moment =
            Moment { year: 2026, month: 11, day: 23, hour: 23, minute: 59, second: 58, nanoseconds: 123_456_789 };
        assert_eq!(bound(&responder), Value::Moment(moment));
    }
}

#[test]
fn null_is_none_and_never_zero() {
    for generation in GENERATIONS {
        let columns = || [Column::number("A"), Column::text("B"), Column::raw("C", 10), Column::date("D")];
        let answers = move |_: &Call| {
            let date = Moment { year: 1999, month: 1, day: 31, hour: 0, minute: 0, second: 1, nanoseconds: 0 };
            let some = [7.into(), "b".into(), vec![1, 2].into(), Value::Moment(date)];
            Answer::rows(columns(), vec![[Value::Null, Value::Null, Value::Null, Value::Null], some])
        };
        let responder = Responder::start(options(generation), answers);
        let connection = connect(&responder);
        let rows: Vec<Row> = connection.query("select * from t", &[]).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows[0].get::<Option<i64>>("A").unwrap(), None);
        assert_eq!(rows[0].get::<Option<&str>>("B").unwrap(), None);
        assert_eq!(rows[0].get::<Option<&[u8]>>("C").unwrap(), None);
        let error = rows[0].get::<i64>(0).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ValueWasNull), "{error}");
        assert_eq!(rows[1].get::<Option<i64>>("A").unwrap(), Some(7));
        assert_eq!(rows[1].get::<&[u8]>("C").unwrap(), [1, 2]);
        assert_eq!(rows[1].get::<OracleTimestamp>("D").unwrap().year(), 1999);
        let names: Vec<&str> = rows[0].columns().iter().map(|column| column.name()).collect();
        assert_eq!(names, ["A", "B", "C", "D"]);
        let nothing: Option<i64> = None;
        connection.execute("update t set a = :1", &[&nothing]).unwrap();
        assert_eq!(responder.calls().last().unwrap().binds, [[Value::Null]]);
    }
}

#[test]
fn rows_beyond_the_first_ones_are_fetched() {
    for generation in GENERATIONS {
        let responder = Responder::start(options(generation), |_: &Call| numbered(1000));
        let connection = connect(&responder);
        assert!(first_column(connection.query("select n, t from t", &[]).unwrap()).into_iter().eq(0..1000));
        let calls = responder.calls();
        // Two with the statement, a hundred at a time, and the last ones with the end.
        assert_eq!((calls[0].kind, calls[0].rows_wanted), (Kind::Execute, 2));
        assert_eq!(calls.len(), 11);
        assert!(calls[1..].iter().all(|call| call.kind == Kind::Fetch && call.rows_wanted == 100));
        for (prefetch, array, round_trips) in [(1001, 100, 1), (1000, 100, 2), (500, 500, 3), (0, 600, 3)] {
            let before = responder.round_trips();
            let statement = connection.statement("select n, t from t").unwrap();
            let statement = statement.prefetch_rows(prefetch).fetch_array_size(array).build().unwrap();
            assert!(first_column(statement.query(&[]).unwrap()).into_iter().eq(0..1000));
            assert_eq!(responder.round_trips() - before, round_trips, "{prefetch} rows first, then {array}");
        }
    }
}

/// Rows of a number that differs, one that differs now and then, NULL, a text now and then, and a number that stays.
fn repeating(row: i64) -> Vec<Value> {
    let text = (row % 2 == 0).then_some("even");
    vec![row.into(), (row / 10).into(), Value::Null, text.into(), 7.into()]
}

/// Servers leave out what a row repeats of the one before, within an answer and from one to the next.
#[test]
fn repeated_values_are_put_back() {
    for generation in GENERATIONS {
        for repeats in [Repeats::Sent, Repeats::LeftOut, Repeats::LeftOutWhereAny] {
            let answers = |_: &Call| {
                let columns = vec![
                    Column::number("A"),
                    Column::number("B"),
                    Column::number("C"),
                    Column::text("D"),
                    Column::number("E"),
                ];
                Answer::Rows { columns, rows: (0..250).map(repeating).collect() }
            };
            let responder = Responder::start(Options { repeats, ..options(generation) }, answers);
            let connection = connect(&responder);
            let mut rows = 0;
            for row in connection.query("select * from t", &[]).unwrap() {
                let row = row.unwrap();
                assert_eq!((row.get::<i64>(0).unwrap(), row.get::<i64>(1).unwrap()), (rows, rows / 10));
                assert_eq!(row.get::<Option<i64>>(2).unwrap(), None);
                assert_eq!(row.get::<Option<&str>>(3).unwrap(), (rows % 2 == 0).then_some("even"));
                assert_eq!(row.get::<i64>(4).unwrap(), 7);
                rows += 1;
            }
            assert_eq!(rows, 250);
        }
    }
}

/// This release of the driver keeps what a row has said of its columns for the rows behind it. A row that repeats nothing and says
/// nothing is misread then. A column that is the same in all rows keeps a query out of that, whichever way real servers have.
#[test]
fn a_row_that_repeats_nothing_is_misread_behind_one_that_does() {
    for generation in GENERATIONS {
        for (is_constant, is_right) in [(false, false), (true, true)] {
            let answers = move |_: &Call| {
                let rows = [(1, 10), (1, 20), (2, 30), (3, 40)].map(|(a, b): (i64, i64)| {
                    let c = if is_constant { 0 } else { b };
                    [a.into(), b.into(), c.into()]
                });
                Answer::rows([Column::number("A"), Column::number("B"), Column::number("C")], rows.to_vec())
            };
            let options = Options { repeats: Repeats::LeftOutWhereAny, ..options(generation) };
            let responder = Responder::start(options, answers);
            let connection = connect(&responder);
            let statement = connection.statement("select a, b, c from t").unwrap().prefetch_rows(100).build().unwrap();
            let mut read = Vec::new();
            if let Ok(rows) = statement.query(&[]) {
                for row in rows.take(10) {
                    let Ok(row) = row else { break };
                    read.push((row.get::<i64>(0).ok(), row.get::<i64>(1).ok()));
                }
            }
            let right = [(1, 10), (1, 20), (2, 30), (3, 40)].map(|(a, b)| (Some(a), Some(b)));
            assert_eq!(read == right, is_right, "{read:?}");
        }
    }
}

#[test]
fn a_result_without_rows_has_columns() {
    for generation in GENERATIONS {
        let responder = Responder::start(options(generation), |_: &Call| numbered(0));
        let connection = connect(&responder);
        let cursor = connection.query("select n, t from t", &[]).unwrap();
        assert_eq!(cursor.columns().len(), 2);
        assert!(first_column(cursor).is_empty());
        let error = connection.query_row("select n, t from t", &[]).err().unwrap();
        assert!(matches!(error.kind(), ErrorKind::NoDataFound), "{error}");
    }
}

#[test]
fn an_error_in_the_middle_of_fetching_ends_it() {
    for generation in GENERATIONS {
        let answers = |_: &Call| {
            let Answer::Rows { columns, rows } = numbered(150) else { unreachable!("rows were made") };
            Answer::RowsThenError { columns, rows, code: 1555, message: "snapshot too old".to_owned() }
        };
        let responder = Responder::start(options(generation), answers);
        let connection = connect(&responder);
        let mut cursor = connection.query("select n, t from t", &[]).unwrap();
        let rows = cursor.by_ref().take_while(Result::is_ok).count();
        // The rows that came with the error are lost.
        assert_eq!(rows, 102);
        connection.ping().unwrap();
        assert_eq!(responder.calls().iter().filter(|call| call.kind == Kind::Fetch).count(), 2);
    }
}

#[test]
fn answers_may_come_in_any_pieces() {
    let long = "x".repeat(3000);
    for generation in GENERATIONS {
        for (packet_bytes, write_bytes) in [(8182, Some(1000)), (100, None), (37, Some(7)), (1, None)] {
            let text = long.clone();
            let answers = move |call: &Call| match call.kind {
                Kind::Execute if call.sql.starts_with("bad") => Answer::error(942, "table or view does not exist"),
                _ => Answer::rows([Column::number("N"), Column::text("T")], vec![[29.into(), text.as_str().into()]; 4]),
            };
            let options = Options { packet_bytes, write_bytes, ..options(generation) };
            let responder = Responder::start(options, answers);
            let connection = connect(&responder);
            let rows = connection.query("select n, t from t", &[]).unwrap();
            assert_eq!(rows.filter(|row| row.as_ref().unwrap().get::<&str>(1).unwrap() == long).count(), 4);
            assert_eq!(code(&connection.execute("bad", &[]).err().unwrap()), 942);
            connection.commit().unwrap();
        }
    }
}
