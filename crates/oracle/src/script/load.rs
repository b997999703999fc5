//! Proving how rows lie, and the load itself.

use std::fmt::Write;

use super::{Part, Script, Section, Value};
use crate::sql::{
    COLUMNS_OF, CONTINUED_ROWS, Commits, EXECUTED_PLANS, INDEXES_OF, Kinds, Layout, PLAN, Reads, SHAPE_OF, Statement,
    TRIGGERS_OF, explain, pack,
};
use ::sql::{StatementKind, batch_filling_bytes};
use model::workload::{OperationKind, RedoStress, SlobOperation};

impl Script {
    pub(super) fn proving(&self) -> Section {
        let (sql, data) = (&self.sql, &self.data);
        let mut parts = Vec::new();
        for schema in 0..data.schemas {
            let (owner, table) = match sql.layout() {
                Layout::Plimsoll => (sql.owner().to_owned(), format!("SLOB_{}", schema + 1)),
                Layout::Slob => (format!("USER{}", schema + 1), "CF1".to_owned()),
            };
            let of_table = |part: Part| {
                part.with("table_owner", Value::Text(format!("'{}'", owner.replace('\'', "''"))))
                    .with("table_name", Value::Text(format!("'{table}'")))
            };
            let sample = sql.custid(0) as i64;
            parts.extend([
                of_table(Part::new(format!("How {table} of {owner} is made"), SHAPE_OF)),
                of_table(
                    Part::new("Its columns", COLUMNS_OF).with("column_bytes", Value::Number(sql.column_bytes().into())),
                ),
                of_table(Part::new("Its indexes, of which there is one", INDEXES_OF)),
                of_table(Part::new("Its triggers, of which there is none", TRIGGERS_OF)),
                Part::new("Its lowest and its highest key", sql.ends(schema)),
                Part::new("Some neighbours, each in a block of its own, far from the others", sql.sample(schema))
                    .with("first_key", Value::Number(sample))
                    .with("beyond_key", Value::Number(sample + i64::from(self.work_unit))),
                Part::new("Rows, and how many are not the first of their block: none", sql.rows_and_followers(schema)),
                Part::new("Only where some are: rows, and as many blocks", sql.rows_and_blocks(schema)),
            ]);
            let updates: Vec<StatementKind> = self.updates.into_iter().collect();
            for statement in sql.to_explain(schema, &updates) {
                parts.extend([
                    Part::new("What the server would do with an operation", explain(&statement)),
                    Part::new("That is: fetch rows one by one, by a range of the index", PLAN),
                    Part::new("Forget it", "ROLLBACK"),
                ]);
            }
        }
        parts.push(Part::new(
            "How often this session read a row that goes on in another block: asked before and after such neighbours are read \
             again, and the same",
            CONTINUED_ROWS,
        ));
        let words = vec!["Before each run. Data that lie otherwise are refused, with the reason.".to_owned()];
        Section { title: "Proving how rows lie", words, parts }
    }

    pub(super) fn operating(&self) -> Section {
        let sql = &self.sql;
        let mut kinds = vec![StatementKind::Read];
        kinds.extend(self.updates);
        kinds.extend(self.has_scans.then_some(StatementKind::Scan));
        let mut parts = Vec::new();
        for schema in 0..self.data.schemas.min(2) {
            for kind in &kinds {
                parts.push(self.operation(*kind, schema));
            }
            parts.push(self.batch(schema));
        }
        parts.push(
            Part::new(
                "What the server has really done with statements of sessions with the module plimsoll",
                EXECUTED_PLANS,
            )
            .with("module", Value::Text("'plimsoll'".to_owned())),
        );
        let mut words = vec![
            "One of each kind. Plimsoll sends them from all sessions with keys drawn at random, as statements or in batches. \
             Those of schemas from 3 on differ from those of 2 in their names only."
                .to_owned(),
        ];
        if sql.commits() == Commits::Slob {
            words.push(
                "Commits are SLOB's: within a batch the server does not wait until redo is on storage. An update \
                costs less than a durable one."
                    .to_owned(),
            );
        }
        if sql.reads() == Reads::KeyByKey {
            words.push("Ranges are read key by key: no statement has more than one block to ask for.".to_owned());
        }
        Section { title: "The load", words, parts }
    }

    fn operation(&self, kind: StatementKind, schema: u32) -> Part {
        let Statement { text, columns, has_keys, is_block } = self.sql.statement(kind, schema);
        let why = match kind {
            StatementKind::Read => "A read as a statement",
            StatementKind::Scan => "A scan as a statement",
            StatementKind::UpdateLite | StatementKind::UpdateHeavy => "An update with its commit, in one round trip",
        };
        let mut part = Part::new(why, text);
        let first_key = self.sql.custid(0) as i64;
        let bound: Vec<u32> = if columns == 2 { vec![2, 20] } else { (2..2 + columns).collect() };
        for column in bound {
            part = part.with(&format!("c{column}"), Value::Text(self.repeated(self.sql.column_bytes())));
        }
        if has_keys {
            part = part.with("first_key", Value::Number(first_key));
            part = part.with("beyond_key", Value::Number(first_key + i64::from(self.work_unit)));
        }
        if is_block { part.with("touched", Value::OutNumber) } else { part }
    }

    fn batch(&self, schema: u32) -> Part {
        let redo_stress = match self.updates {
            Some(StatementKind::UpdateHeavy) => RedoStress::Heavy,
            _ => RedoStress::Lite,
        };
        let of = |kind, schema| {
            let keys = if kind == OperationKind::Scan { 0 } else { self.work_unit };
            SlobOperation { kind, schema, first_key: 0, keys, redo_stress }
        };
        let mut operations = vec![of(OperationKind::Read, schema), of(OperationKind::Read, 0)];
        operations.extend(self.updates.map(|_| of(OperationKind::Update, schema)));
        operations.extend(self.has_scans.then(|| of(OperationKind::Scan, schema)));
        let mut packed = Vec::new();
        pack(&self.sql, &operations, schema, &mut packed);
        let kinds = Kinds::of(&operations);
        let why = format!(
            "A batch of {} operations. The answer has 16 bytes for each. They are seconds and microseconds from the \
            begin of the batch to its end, microseconds of its commit (FFFFFFFF without one), and rows",
            operations.len()
        );
        let mut part = Part::new(why, self.sql.batch(schema, kinds))
            .with("operations", Value::Text(format!("'{}'", hexadecimal(&packed))));
        if kinds.updates {
            let filling = self.repeated(batch_filling_bytes(self.sql.column_bytes()));
            part = part.with("filling", Value::Text(filling));
        }
        part.with("times", Value::OutText)
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}
