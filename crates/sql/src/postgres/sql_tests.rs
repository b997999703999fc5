use std::time::SystemTime;

use super::connect::{Connected, Connector};
use super::sql::Sql;
use super::test_server::{block_on, database};
use crate::{StatementKind, batch_filling_bytes};

#[test]
fn a_batch_reads_updates_commits_and_times_each_operation() {
    let Some(address) = database("sql_batch") else { return };
    let sql = Sql::new("odd \"name", 8192);
    block_on(async {
        let Connected { client, .. } = Connector::new(&address, "test").unwrap().connect_session(0).await.unwrap();
        client.batch_execute(&format!("CREATE SCHEMA {}", sql.schema())).await.unwrap();
        for schema in [0, 1] {
            client.batch_execute(&sql.create_table(&sql.table(schema))).await.unwrap();
            let columns: Vec<String> =
                (0..19).map(|_| format!("decode(repeat('ab', {}), 'hex')", sql.column_bytes())).collect();
            let rows = format!(
                "INSERT INTO {} SELECT key, {} FROM generate_series(0, 99) key",
                sql.table(schema),
                columns.join(", ")
            );
            client.batch_execute(&rows).await.unwrap();
            client.batch_execute(&sql.create_index(schema)).await.unwrap();
            client.batch_execute(&sql.create_procedure(schema)).await.unwrap();
        }
        let call = client.prepare(&sql.call_procedure(1)).await.unwrap();
        let kinds = [StatementKind::Read, StatementKind::UpdateLite, StatementKind::UpdateHeavy, StatementKind::Read]
            .map(|kind| kind as i16);
        let filling = vec![7_u8; batch_filling_bytes(sql.column_bytes()) as usize];
        let row = client
            .query_one(
                &call,
                &[
                    &kinds.as_slice(),
                    &[false, false, true, true].as_slice(),
                    &[0_i64, 10, 20, 95].as_slice(),
                    &[64_i32, 3, 2, 64].as_slice(),
                    &filling,
                ],
            )
            .await
            .unwrap();
        let (began, ended): (SystemTime, Vec<SystemTime>) = (row.get(0), row.get(2));
        assert!(ended[0] >= began && ended.is_sorted());
        assert_eq!(row.get::<_, Vec<i64>>(3), [64, 3, 2, 5]);
        let changed = |schema| {
            let (client, table) = (&client, sql.table(schema));
            async move {
                let seven = format!("SELECT count(*) FROM {table} WHERE c2 = decode(repeat('07', 48), 'hex')");
                client.query_one(&seven, &[]).await.unwrap().get::<_, i64>(0)
            }
        };
        assert_eq!((changed(0).await, changed(1).await), (2, 3));
    });
}
