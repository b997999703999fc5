//! The proof that rows lie as the SLOB method needs them: one row a block, scattered, read one by one through the index.
//!
//! It is made before every run, from the catalogues and a small sample. Data that do not lie so would still give numbers,
//! but of something else; so a run on them is refused, with the reason and the cure.

mod layout;

use std::collections::BTreeMap;

use serde_json::Value;
use tokio_postgres::SimpleQueryMessage;

use super::descriptor::DataSet;
use super::session::{Access, Session};
use crate::data::{Fault, index_name, refuse};
use crate::postgres::data::session::Halt;
use targets::TargetError;

/// What was proven of the tables that load will use.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// Rows of all of them.
    pub rows: u64,
    /// Blocks of all of them.
    pub pages: u64,
    /// Blocks of their indexes.
    pub index_pages: u64,
    /// The correlation of keys and blocks farthest from 0, from -1 to 1; unknown where no table is large enough for it to
    /// mean anything.
    pub correlation: Option<f64>,
    /// What the user should know, such as tables that earlier runs let grow a little.
    pub notes: Vec<String>,
}

impl Proof {
    /// For the record.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::from(
            [
                ("layout.rows", self.rows.to_string()),
                ("layout.pages", self.pages.to_string()),
                ("layout.index_pages", self.index_pages.to_string()),
                ("layout.plan", "index scan".to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        if let Some(correlation) = self.correlation {
            facts.insert("layout.correlation".to_owned(), format!("{correlation:.4}"));
        }
        facts
    }
}

/// Proves how the tables of the first `schemas` schemas lie, in a session as the load's are.
///
/// # Errors
/// The reason and the cure if they lie otherwise; or why the server cannot be asked.
pub(crate) fn prove(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Proof, TargetError> {
    let session = Session::open_as_load(*access)?;
    let schemas = schemas.min(data.schemas);
    let (proof, mut faults) = layout::prove(&session, data, schemas)?;
    // Without its index a table cannot be planned for.
    if faults.is_empty() {
        faults = check_plan(&session, data, schemas)?;
    }
    refuse(access, &faults)?;
    Ok(proof)
}

/// Asks for the plan of reading and of updating each table, as prepared statements get it.
fn check_plan(session: &Session<'_>, data: &DataSet, schemas: u32) -> Result<Vec<Fault>, TargetError> {
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
    use crate::data::catalog::load;
    use crate::postgres::data::tests::{NAMESPACE, connector, execute, refusal, request, set_up};
    use crate::postgres::test_server::database;
    use targets::database::{Replace, SetupRequest};

    #[test]
    fn fresh_data_lie_as_they_must() {
        let Some(address) = database("proof_fresh") else { return };
        let connector = connector(&address);
        let access = Access::new(&connector, NAMESPACE);
        set_up(&access, &SetupRequest { scale_blocks: 3000, ..request() }).unwrap();
        let proof = prove(&access, &load(&access).unwrap(), 3).unwrap();
        assert_eq!(proof.rows, 9000);
        assert!(proof.index_pages > 9 && proof.correlation.unwrap().abs() < 0.1, "{proof:?}");
        // Streams that wait for each other's new blocks, as on a slow disk, may leave a few that stay empty: those are noted.
        let empty = proof.pages - proof.rows;
        assert!(empty <= 90, "{proof:?}");
        let note = format!("the tables have {empty} blocks more than rows");
        assert!(
            proof.notes.len() == usize::from(empty > 0) && proof.notes.iter().all(|said| said.starts_with(&note)),
            "{proof:?}"
        );
        assert_eq!(proof.facts()["layout.pages"], proof.pages.to_string());
    }

    /// Spoils fresh data with statements, and gives why and how to cure it.
    fn spoiled(access: &Access<'_>, statements: &str) -> (String, String) {
        set_up(access, &SetupRequest { scale_blocks: 3000, replace: Replace::Replace, ..request() }).unwrap();
        execute(access, statements);
        refusal(prove(access, &load(access).unwrap(), 3))
    }

    #[test]
    fn what_lies_otherwise_is_refused_with_reason_and_cure() {
        let Some(address) = database("proof_spoiled") else { return };
        let connector = connector(&address);
        let access = Access::new(&connector, NAMESPACE);
        let cases = [
            ("CLUSTER slob_2 USING slob_2_key; ANALYZE slob_2", "correlated (1.00", "setup --replace"),
            (
                "ALTER TABLE slob_1 SET (fillfactor = 100); VACUUM FULL slob_1; VACUUM ANALYZE slob_1",
                "blocks for 3000 rows: some share a block",
                "setup --replace",
            ),
            ("DROP INDEX slob_3_key", "the index of \"plimsoll\".\"slob_3\" is missing", "setup --replace"),
            ("CREATE INDEX mine ON slob_1 (c2)", "has another index, plimsoll.mine", "DROP INDEX plimsoll.mine"),
            ("ALTER TABLE slob_1 ALTER c5 SET STORAGE EXTENDED", "column c5", "setup --replace"),
            (
                "ALTER TABLE slob_1 ALTER c5 SET STORAGE EXTERNAL; \
             UPDATE slob_1 SET c5 = decode(repeat('ab', 9000), 'hex') WHERE custid = 7",
                "lie partly in its TOAST table",
                "setup --replace",
            ),
            ("DELETE FROM slob_1 WHERE custid = 2999", "go from 0 to 2998 instead of 0 to 2999", "setup --replace"),
            (
                "DELETE FROM slob_1 WHERE custid % 2 = 1 AND custid < 2999; VACUUM slob_1",
                "estimates 1501 rows",
                "verify",
            ),
            ("DELETE FROM slob_2 WHERE custid % 30 = 7", "where 32 belong", "setup --replace"),
            ("DROP TABLE slob_2", "the table \"plimsoll\".\"slob_2\" is missing", "setup --replace"),
            (
                "CREATE TRIGGER mine BEFORE UPDATE ON slob_1 FOR EACH ROW \
             EXECUTE FUNCTION suppress_redundant_updates_trigger()",
                "has a trigger, `mine`",
                "drop the trigger",
            ),
            ("TRUNCATE slob_1", "has 0 blocks for 3000 rows", "setup --replace"),
        ];
        for (statements, reason, cure) in cases {
            let (what, hint) = spoiled(&access, statements);
            assert!(what.contains(reason), "`{statements}` gave: {what}");
            assert!(hint.contains(cure), "`{statements}` gave: {what}: {hint}");
        }
    }

    #[test]
    fn growth_is_noted_and_much_growth_refused() {
        let Some(address) = database("proof_grown") else { return };
        let connector = connector(&address);
        let access = Access::new(&connector, NAMESPACE);
        set_up(&access, &SetupRequest { scale_blocks: 3000, ..request() }).unwrap();
        let data = load(&access).unwrap();
        // A server that adds several blocks at a time may leave a few that nobody needed, which would be growth too.
        for table in data.tables() {
            execute(&access, &format!("VACUUM FULL {0}; VACUUM (ANALYZE) {0}", table.name()));
        }
        // A vacuum that waits for the table as it grows would make the server add more blocks at once than are needed.
        execute(&access, "ALTER TABLE slob_1 SET (autovacuum_enabled = off)");
        // Rows that are no longer there once they had grown the table.
        let grow = |rows: u32| {
            let columns: Vec<String> = (2..=20).map(|column| format!("c{column}")).collect();
            let columns = columns.join(", ");
            execute(
                &access,
                &format!(
                    "INSERT INTO slob_1 (custid, {columns}) SELECT custid + 1000000, {columns} FROM slob_2 WHERE custid < {rows}; \
                 DELETE FROM slob_1 WHERE custid >= 1000000; ANALYZE slob_1"
                ),
            );
        };
        grow(20);
        let proof = prove(&access, &data, 3).unwrap();
        assert_eq!(proof.notes, ["the tables have 20 blocks more than rows (0.2%)"]);
        grow(40);
        let (what, hint) = refusal(prove(&access, &data, 3));
        assert!(what.contains("\"slob_1\" has grown by 2.0% to 30"), "{what}");
        assert!(hint.contains("VACUUM FULL \"plimsoll\".\"slob_1\""), "{hint}");
        assert!(prove(&access, &data, 0).is_ok(), "only tables of the load matter");
        // The cure cures, once nobody may still see the deleted rows: the server's own ANALYZE keeps them for as long as it looks.
        let cured = (0..CURES).any(|_| {
            execute(&access, "VACUUM FULL slob_1; VACUUM (ANALYZE) slob_1");
            prove(&access, &data, 3).is_ok_and(|proof| proof.notes.is_empty())
        });
        assert!(cured, "{CURES} cures leave it grown");
    }

    /// More looks of the server at one small table than follow each other.
    const CURES: usize = 50;

    #[test]
    fn another_plan_is_refused() {
        let Some(address) = database("proof_plan") else { return };
        let connector = connector(&address);
        let access = Access::new(&connector, NAMESPACE);
        set_up(&access, &SetupRequest { scale_blocks: 3000, ..request() }).unwrap();
        let data = load(&access).unwrap();
        execute(&access, "ALTER DATABASE proof_plan SET enable_indexscan = off");
        let (what, hint) = refusal(prove(&access, &data, 1));
        assert!(what.contains("the server would use ") && what.contains("not an index scan"), "{what}");
        assert!(hint.contains("enable_indexscan"), "{hint}");
    }

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
