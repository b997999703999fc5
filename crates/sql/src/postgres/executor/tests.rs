use super::*;
use crate::ServerError;
use crate::postgres::connect_tests::connector_with;
use crate::postgres::test_server::{PASSWORD, block_on, database, network_server};
use crate::postgres::{Connector, Executing};
use model::config::postgres::PostgresAddress;

async fn executing(address: &PostgresAddress) -> (Connector, Executing) {
    let connector = Connector::new(address, "test").unwrap();
    let executing = Executing::on(connector.connect(0).await.unwrap()).await;
    (connector, executing)
}

/// The first column of each row.
async fn numbers(executor: &mut Executor, text: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<i64>, Failure> {
    let statement = executor.prepare(text).await?;
    let mut numbers = Vec::new();
    let rows = executor
        .execute(&statement, values, |row| numbers.push(row.whole_numbers().next().flatten().unwrap_or(-1)))
        .await?;
    assert_eq!(rows, numbers.len() as u64);
    Ok(numbers)
}

#[test]
fn rows_of_any_length_are_read_and_changes_are_counted() {
    let Some(address) = database("executor_rows") else { return };
    block_on(async {
        let (_, executing) = executing(&address).await;
        let mut executor = executing.executor.lock().await;
        let text = "SELECT length, repeat('x', length) FROM unnest($1::integer[]) AS length";
        let statement = executor.prepare(text).await.unwrap();
        let lengths: Vec<i32> =
            (0..2_000).map(|row| if row % 97 == 0 { 9_000 * (row % 30) } else { row % 50 }).collect();
        let mut seen = Vec::new();
        let rows = executor
            .execute(&statement, &[&lengths], |row| {
                let text: String = row.get(1).unwrap();
                assert!(text.bytes().all(|byte| byte == b'x'));
                assert_eq!(row.get::<i32>(0).unwrap() as usize, text.len());
                seen.push(text.len() as i32);
            })
            .await
            .unwrap();
        assert_eq!((rows, seen), (2_000, lengths));
        executor
            .execute_text("CREATE TABLE t AS SELECT generate_series(1, 10) AS n, NULL::bigint AS nothing")
            .await
            .unwrap();
        let change = executor.prepare("UPDATE t SET n = n + $1 WHERE n > $2").await.unwrap();
        assert_eq!(executor.execute(&change, &[&100_i32, &4_i32], |_| ()).await.unwrap(), 6);
        assert_eq!(numbers(&mut executor, "SELECT nothing FROM t WHERE n = $1", &[&110_i32]).await.unwrap(), [-1]);
        assert!(matches!(executor.execute_text("COPY t TO STDOUT").await, Err(Failure::Protocol(_))));
    });
}

#[test]
fn a_refusal_leaves_the_connection_as_it_was() {
    let Some(address) = database("executor_refusal") else { return };
    block_on(async {
        let (_, executing) = executing(&address).await;
        let mut executor = executing.executor.lock().await;
        let divide = executor.prepare("SELECT 100 / n FROM unnest($1::bigint[]) AS n").await.unwrap();
        let mut seen = 0;
        let refused = executor.execute(&divide, &[&[1_i64, 2, 0, 4].as_slice()], |_| seen += 1).await;
        assert!(matches!(&refused, Err(Failure::Refused(report)) if report.code == "22012"), "{refused:?}");
        assert_eq!(seen, 2);
        assert!(matches!(executor.prepare("SELECT missing").await, Err(Failure::Refused(_))));
        // Values that the statement does not take are not sent.
        assert!(matches!(executor.execute(&divide, &[], |_| ()).await, Err(Failure::Value(_))));
        assert!(matches!(executor.execute(&divide, &[&"text"], |_| ()).await, Err(Failure::Value(_))));
        assert_eq!(executor.execute(&divide, &[&[5_i64].as_slice()], |_| ()).await.unwrap(), 1);
    });
}

#[test]
fn what_is_sent_before_is_done_before_and_its_refusal_counts() {
    let Some(address) = database("executor_before") else { return };
    block_on(async {
        let (_, executing) = executing(&address).await;
        let mut executor = executing.executor.lock().await;
        let own = executor.prepare("SELECT txid_current()").await.unwrap();
        let mut ids = Vec::new();
        executor.send_before("BEGIN ISOLATION LEVEL SERIALIZABLE").unwrap();
        for _ in 0..2 {
            executor.execute(&own, &[], |row| ids.extend(row.whole_numbers().flatten())).await.unwrap();
        }
        let level = executor.prepare("SHOW transaction_isolation").await.unwrap();
        executor.execute(&level, &[], |row| assert_eq!(row.get::<String>(0).unwrap(), "serializable")).await.unwrap();
        executor.execute_text("COMMIT").await.unwrap();
        executor.execute(&own, &[], |row| ids.extend(row.whole_numbers().flatten())).await.unwrap();
        assert!(ids[0] == ids[1] && ids[1] != ids[2], "{ids:?}");
        executor.send_before("BEGIN NONSENSE").unwrap();
        let refused = executor.execute(&own, &[], |_| ()).await;
        assert!(matches!(&refused, Err(Failure::Refused(report)) if report.code == "42601"), "{refused:?}");
        assert_eq!(executor.execute(&own, &[], |_| ()).await.unwrap(), 1);
    });
}

#[test]
fn notices_and_settings_that_the_server_reports_are_no_answers() {
    let Some(address) = database("executor_notices") else { return };
    block_on(async {
        let (_, executing) = executing(&address).await;
        let mut executor = executing.executor.lock().await;
        executor.execute_text("SET client_min_messages = notice; SET application_name = 'other'").await.unwrap();
        let notices = "CREATE FUNCTION noisy() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN \
                       FOR i IN 1..50 LOOP RAISE NOTICE '%', repeat('n', 1000); END LOOP; \
                       PERFORM set_config('DateStyle', 'German', false); RETURN 7; END $$";
        executor.execute_text(notices).await.unwrap();
        assert_eq!(numbers(&mut executor, "SELECT noisy()", &[]).await.unwrap(), [7]);
    });
}

#[test]
fn a_server_that_ends_the_connection_is_quoted() {
    let why = "terminating connection due to administrator command (SQLSTATE 57P01)";
    let Some(address) = database("executor_end") else { return };
    block_on(async {
        let (connector, idle) = executing(&address).await;
        let operator = connector.connect(0).await.unwrap();
        // It can be told to wait only from version 14 on.
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid = $1";
        while operator.client.query_one(end, &[&idle.server_pid]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let failure = idle.executor.lock().await.prepare("SELECT 1").await.unwrap_err();
        let lost = idle.error("wait", failure);
        assert!(matches!(&lost, ServerError::Lost { reason, .. } if reason == why), "{lost}");
        drop(idle);

        let busy = Executing::on(connector.connect(0).await.unwrap()).await;
        let pid = busy.server_pid;
        let (failed, _) = futures_util::future::join(
            async { busy.executor.lock().await.execute_text("SELECT pg_sleep(60)").await.unwrap_err() },
            async {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                operator.client.execute("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap()
            },
        )
        .await;
        let lost = busy.error("wait", failed);
        assert!(matches!(&lost, ServerError::Lost { reason, .. } if reason == why), "{lost}");
    });
}

#[test]
fn a_statement_is_cancelled_and_a_connection_that_is_left_ends() {
    let Some(address) = database("executor_leave") else { return };
    block_on(async {
        let (connector, executing) = executing(&address).await;
        let token = executing.cancel_token().clone();
        let (failed, _) = futures_util::future::join(
            async { executing.executor.lock().await.execute_text("SELECT pg_sleep(60)").await.unwrap_err() },
            async {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                token.cancel().await.unwrap();
            },
        )
        .await;
        assert!(matches!(&failed, Failure::Refused(report) if report.code == "57014"), "{failed:?}");
        let pid = executing.server_pid;
        drop(executing);
        let operator = connector.connect(0).await.unwrap();
        let there = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1";
        while operator.client.query_one(there, &[&pid]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn an_encrypted_connection_is_gone_on_with() {
    let Some(server) = network_server(true) else { return };
    let at = format!("postgres://scram@127.0.0.1:{}/postgres?sslmode=require", server.port);
    block_on(async {
        let executing = Executing::on(connector_with(&at, PASSWORD).connect(0).await.unwrap()).await;
        let mut executor = executing.executor.lock().await;
        let own = "SELECT count(*) FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl";
        assert_eq!(numbers(&mut executor, own, &[]).await.unwrap(), [1]);
        let echo = executor.prepare("SELECT $1::text").await.unwrap();
        let long = "p".repeat(300_000);
        let mut seen = String::new();
        executor.execute(&echo, &[&long], |row| seen = row.get(0).unwrap()).await.unwrap();
        assert_eq!(seen, long);
    });
}

#[test]
fn an_error_is_read_by_its_fields() {
    let report = Report::read(b"SFEHLER\0VERROR\0C40P01\0MVerklemmung\0\0");
    assert_eq!((report.code.as_str(), report.message.as_str()), ("40P01", "Verklemmung"));
    assert!(!report.ends_the_connection());
    assert!(Report::read(b"SSCHWERWIEGEND\0VFATAL\0C57P01\0Mx\0\0").ends_the_connection());
}

#[test]
fn a_message_is_read_once_it_is_whole() {
    let bytes = b"C\0\0\0\x0dSELECT 3\0Z\0\0\0\x05I";
    for length in 0..14 {
        assert!(Message::first(&bytes[..length]).unwrap().is_none(), "{length}");
    }
    let (first, length) = Message::first(bytes).unwrap().unwrap();
    assert_eq!((first.kind, first.body, length), (b'C', &b"SELECT 3\0"[..], 14));
    assert_eq!(count_of(first.body), Some(3));
    assert_eq!(Message::first(&bytes[length..]).unwrap().unwrap().0, Message { kind: b'Z', body: b"I" });
    assert!(Message::first(b"C\0\0\0\x03").is_err());
    assert!(Message::first(b"HTTP/1.1 400").is_err());
}

#[test]
fn what_a_statement_did_is_counted_by_its_last_word() {
    for (tag, count) in [("INSERT 0 7", Some(7)), ("UPDATE 12", Some(12)), ("BEGIN", None), ("COMMIT", None)] {
        assert_eq!(count_of(format!("{tag}\0").as_bytes()), count, "{tag}");
    }
}

#[test]
fn values_are_taken_by_their_lengths_and_null_has_none() {
    let mut body = 5_u16.to_be_bytes().to_vec();
    for value in [Some(&b"\xff\xfe"[..]), None, Some(b"\0\0\0\x07"), Some(b"\0\0\0\0\0\0\x01\0"), Some(b"abc")] {
        body.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        body.extend(value.unwrap_or_default());
    }
    let row = Row::new(&body, &[]);
    assert_eq!(row.whole_numbers().collect::<Vec<_>>(), [Some(-2), None, Some(7), Some(256), None]);
    let cut = Row::new(&body[..body.len() - 1], &[]);
    assert_eq!(cut.values().count(), 4, "a value that is not whole is none");
}

#[test]
fn types_are_those_of_the_description() {
    let mut body = 2_u16.to_be_bytes().to_vec();
    for (name, oid) in [("a", 20_u32), ("much longer", 999_999)] {
        body.extend(name.as_bytes());
        body.extend([0; 7]);
        body.extend(oid.to_be_bytes());
        body.extend([0; 8]);
    }
    assert_eq!(column_types(&body).unwrap(), [Some(Type::INT8), None]);
    assert!(column_types(&body[..body.len() - 1]).is_err());
    assert_eq!(parameter_types(b"\0\x02\0\0\0\x17\0\0\0\x19").unwrap(), [Type::INT4, Type::TEXT]);
    assert!(parameter_types(b"\0\x01\0\x0f\x42\x3f").is_err());
}
