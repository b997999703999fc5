//! How the server will execute operations.

use serde_json::Value;
use tokio_postgres::SimpleQueryMessage;

use crate::data::descriptor::index_name;
use crate::data::proof::Fault;
use crate::postgres::data::descriptor::DataSet;
use crate::postgres::data::session::{Halt, Session};
use targets::TargetError;

/// Asks for the plan of reading and of updating each table, as prepared statements get it.
pub(super) fn check(session: &Session<'_>, data: &DataSet, schemas: u32) -> Result<Vec<Fault>, TargetError> {
    let sql = session.access().sql(data.block_bytes);
    let mut faults = Vec::new();
    for schema in 0..schemas {
        let table = sql.table(schema);
        let reads = (sql.read(schema), "(bigint, bigint)", "(0, 64)");
        let updates = (sql.update_lite(schema), "(bigint, bigint, bytea)", "(0, 64, '')");
        for (statement, types, values) in [reads, updates] {
            let explain = format!(
                "PREPARE plimsoll_proof {types} AS {statement}; \
                 EXPLAIN (FORMAT JSON) EXECUTE plimsoll_proof {values}; DEALLOCATE plimsoll_proof"
            );
            let doing = format!("explain how {table} is read");
            let answer = session.wait(&doing, Halt::NEVER, session.client().simple_query(&explain))?;
            if let Some(other) = other_than_index_scan(&plan_of(&answer), &index_name(schema)) {
                let cure = "see which setting of the server, the role or the database forbids index scans \
                            (`enable_indexscan`), or which extension changes plans";
                faults.push(Fault::new(format!("the server would use {other} on {table}, not an index scan"), cure));
            }
        }
    }
    Ok(faults)
}

fn plan_of(answer: &[SimpleQueryMessage]) -> Value {
    let text: Vec<&str> = answer
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })
        .collect();
    serde_json::from_str(&text.join("\n")).unwrap_or_default()
}

/// What the plan does instead of, or besides, one scan of this index, row by row.
fn other_than_index_scan(plan: &Value, index: &str) -> Option<String> {
    let mut scans = Vec::new();
    collect(&plan[0]["Plan"], &mut scans);
    let is_wanted = |node: &Value| node["Node Type"] == "Index Scan" && node["Index Name"] == index;
    match scans.as_slice() {
        [only] if is_wanted(only) => None,
        [] => Some("a plan without any scan".to_owned()),
        all => all.iter().find(|node| !is_wanted(node)).or(all.last()).map(|node| {
            let kind = node["Node Type"].as_str().unwrap_or("something else");
            node["Index Name"].as_str().map_or_else(|| kind.to_owned(), |name| format!("{kind} on {name}"))
        }),
    }
}

/// Nodes that fetch rows, and those that gather them from parallel workers.
fn collect<'a>(node: &'a Value, scans: &mut Vec<&'a Value>) {
    let kind = node["Node Type"].as_str().unwrap_or_default();
    if kind.contains("Scan") || kind.contains("Gather") {
        scans.push(node);
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        collect(child, scans);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(scan: Value) -> Value {
        json!([{ "Plan": { "Node Type": "Aggregate", "Plans": [scan] } }])
    }

    #[test]
    fn only_a_plain_scan_of_the_key_index_is_accepted() {
        let other = |scan| other_than_index_scan(&plan(scan), "slob_1_key");
        assert_eq!(other(json!({ "Node Type": "Index Scan", "Index Name": "slob_1_key" })), None);
        let cases = [
            (json!({ "Node Type": "Seq Scan" }), "Seq Scan"),
            (json!({ "Node Type": "Index Only Scan", "Index Name": "slob_1_key" }), "Index Only Scan on slob_1_key"),
            (json!({ "Node Type": "Index Scan", "Index Name": "mine" }), "Index Scan on mine"),
            (
                json!({ "Node Type": "Bitmap Heap Scan",
                        "Plans": [{ "Node Type": "Bitmap Index Scan", "Index Name": "slob_1_key" }] }),
                "Bitmap Heap Scan",
            ),
            (
                json!({ "Node Type": "Gather", "Plans": [{ "Node Type": "Index Scan", "Index Name": "slob_1_key" }] }),
                "Gather",
            ),
            (json!({ "Node Type": "Result" }), "a plan without any scan"),
        ];
        for (scan, reported) in cases {
            assert_eq!(other(scan).as_deref(), Some(reported));
        }
    }
}
