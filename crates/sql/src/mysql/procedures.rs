//! Transactions of order entry as procedures, in what MySQL and MariaDB have in common of SQL/PSM.
//!
//! There are no arrays, so a column of a bank is its numbers as text with commas between them.

use super::orders::InDatabase;
use crate::orders::load::StatementWords as _;
use crate::orders::load::procedure::{Parts, Procedural};

/// What a text may be: names and addresses are in tables of this character set, and are found by their very letters.
const TEXT: &str = "VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
/// Room for the numbers of a column.
const COLUMN: &str = "VARCHAR(1000) CHARACTER SET latin1";

impl Procedural for InDatabase<'_> {
    fn frame(&self, parts: &Parts, mark: &str) -> String {
        let Parts { name, parameters, wholes, begins, banks, pauses, answer, body } = parts;
        let head: Vec<String> = parameters
            .iter()
            .map(|(name, is_text)| format!("IN {name} {}", if *is_text { TEXT } else { "BIGINT" }))
            .collect();
        let mut declared: Vec<String> =
            wholes.iter().chain(answer).map(|name| format!("{name} BIGINT DEFAULT 0")).collect();
        declared.extend(begins.iter().map(|(name, value)| format!("{name} BIGINT DEFAULT {value}")));
        for (bank, width) in banks {
            declared.extend((1..=*width).map(|column| format!("{bank}_{column} {COLUMN} DEFAULT ''")));
        }
        if *pauses {
            declared.extend(["v_length DOUBLE", "v_asleep DATETIME(6)"].map(str::to_owned));
        }
        let body: Vec<String> = body.iter().map(|line| format!("    {line}")).collect();
        format!(
            "CREATE PROCEDURE {}({})\nSQL SECURITY INVOKER\nCOMMENT '{mark}'\nBEGIN\n  DECLARE {};\n  steps: BEGIN\n{}\n  END steps;\n  SELECT {};\nEND",
            self.table(name),
            head.join(", "),
            declared.join(";\n  DECLARE "),
            body.join("\n"),
            answer.join(", ")
        )
    }

    fn assign(&self, variable: &str, to: &str) -> String {
        format!("SET {variable} = {to};")
    }

    fn repeated(&self) -> (&'static str, &'static str) {
        ("DO", "END WHILE;")
    }

    fn begin(&self, _: bool) -> Option<&'static str> {
        Some("START TRANSACTION;")
    }

    fn leave(&self) -> &'static str {
        "LEAVE steps;"
    }

    /// One statement puts the numbers together: a cursor would keep the rows in a table as well, and then fetch each.
    fn keep_rows(&self, query: &str, bank: &str, columns: &[&str]) -> Vec<String> {
        let gathered = columns.iter().map(|column| format!(", GROUP_CONCAT(q.{column})"));
        let into = (1..=columns.len()).map(|number| format!(", {bank}_{number}"));
        let (gathered, into): (String, String) = (gathered.collect(), into.collect());
        vec![format!("SELECT COUNT(*){gathered} INTO {bank}{into} FROM ({query}) q;")]
    }

    fn keep_row(&self, bank: &str, values: &[String]) -> Vec<String> {
        let kept = (1..)
            .zip(values)
            .map(|(number, value)| format!("SET {bank}_{number} = CONCAT({bank}_{number}, {value}, ',');"));
        std::iter::once(format!("SET {bank} = {bank} + 1;")).chain(kept).collect()
    }

    fn kept(&self, bank: &str, column: usize, row: &str) -> String {
        format!("SUBSTRING_INDEX(SUBSTRING_INDEX({bank}_{column}, ',', {row}), ',', -1)")
    }

    fn count_changed(&self, into: &str) -> String {
        format!("SET {into} = ROW_COUNT();")
    }

    fn giving(&self, _: &str, _: &str) -> String {
        String::new()
    }

    fn given(&self, into: &str) -> Option<String> {
        Some(format!("SET {into} = LAST_INSERT_ID();"))
    }

    fn sleep(&self) -> Vec<String> {
        let lines = [
            "SET v_asleep = SYSDATE(6);",
            "DO SLEEP(v_length / 1000000);",
            "SET v_paused_us = v_paused_us + TIMESTAMPDIFF(MICROSECOND, v_asleep, SYSDATE(6));",
        ];
        lines.map(str::to_owned).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::load::procedure::Procedure;
    use model::workload::orders::TransactionKind;

    #[test]
    fn an_order_of_products_is_a_procedure_in_sql_psm() {
        insta::assert_snapshot!(Procedure::of(TransactionKind::OrderProducts, &InDatabase("bench")).text);
    }
}
