//! What MySQL and MariaDB say in words of their own, and transactions of order entry as procedures in what both have in common of
//! SQL/PSM.
//!
//! There are no arrays, so a column of a bank is its numbers as text with commas between them. The answer to an insertion has the key.

use super::Connector;
use super::sql::quoted;
use crate::SqlText;
use crate::orders::load::procedure::Parts;
use model::workload::orders::tables::Kind;

/// What a text may be: names and addresses are in tables of this character set, and are found by their very letters.
const TEXT: &str = "VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
/// Room for the numbers of a column.
const COLUMN: &str = "VARCHAR(1000) CHARACTER SET latin1";

impl SqlText for Connector {
    fn quoted(name: &str) -> String {
        quoted(name)
    }

    fn kind(kind: Kind) -> String {
        match kind {
            Kind::Whole(..=9) => "INT".to_owned(),
            Kind::Whole(_) => "BIGINT".to_owned(),
            Kind::Money(digits) => format!("DECIMAL({digits},2)"),
            Kind::Text(chars) => format!("VARCHAR({chars})"),
            Kind::Day => "DATE".to_owned(),
            Kind::Instant => "DATETIME(6)".to_owned(),
        }
    }

    fn float(expression: &str) -> String {
        // An approximate number in it makes the whole approximate.
        format!("({expression}) + 0e0")
    }

    fn cents(amount: &str) -> String {
        format!("CAST({amount} * 100 AS SIGNED)")
    }

    fn days_ahead(days: &str) -> String {
        format!("DATE_ADD(CURRENT_DATE, INTERVAL {days} DAY)")
    }

    fn now() -> &'static str {
        "NOW(6)"
    }

    fn hour_ago() -> String {
        "DATE_SUB(NOW(6), INTERVAL 1 HOUR)".to_owned()
    }

    fn five_minutes(instant: &str) -> String {
        format!("FLOOR(UNIX_TIMESTAMP({instant}) / 300)")
    }

    /// A generated column, which both MySQL and MariaDB can have an index on.
    fn lower(column: &str) -> String {
        format!("{column}_lower")
    }

    /// The table has no key that the server would count, as Swingbench's has none.
    fn next_logon(_: &str) -> String {
        "UUID_SHORT() & 9223372036854775807".to_owned()
    }

    /// MySQL has no CUBE: the sums over the second column alone, which is one value here, are those over both.
    fn cube(one: &str, other: &str) -> String {
        format!("GROUP BY {one}, {other} WITH ROLLUP")
    }

    /// Rows that are not committed are locked.
    fn after_commits(_: &str, query: &str) -> String {
        format!("{query} LOCK IN SHARE MODE")
    }

    fn frame(namespace: &str, parts: &Parts, mark: &str) -> String {
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
            Self::table(namespace, name),
            head.join(", "),
            declared.join(";\n  DECLARE "),
            body.join("\n"),
            answer.join(", ")
        )
    }

    fn assign(variable: &str, to: &str) -> String {
        format!("SET {variable} = {to};")
    }

    fn repeated() -> (&'static str, &'static str) {
        ("DO", "END WHILE;")
    }

    fn begin_changes(_: bool) -> Option<&'static str> {
        Some("START TRANSACTION;")
    }

    fn leave() -> &'static str {
        "LEAVE steps;"
    }

    /// One statement puts the numbers together: a cursor would keep the rows in a table as well, and then fetch each.
    fn keep_rows(query: &str, bank: &str, columns: &[&str]) -> Vec<String> {
        let gathered = columns.iter().map(|column| format!(", GROUP_CONCAT(q.{column})"));
        let into = (1..=columns.len()).map(|number| format!(", {bank}_{number}"));
        let (gathered, into): (String, String) = (gathered.collect(), into.collect());
        vec![format!("SELECT COUNT(*){gathered} INTO {bank}{into} FROM ({query}) q;")]
    }

    fn keep_row(bank: &str, values: &[String]) -> Vec<String> {
        let kept = (1..)
            .zip(values)
            .map(|(number, value)| format!("SET {bank}_{number} = CONCAT({bank}_{number}, {value}, ',');"));
        std::iter::once(format!("SET {bank} = {bank} + 1;")).chain(kept).collect()
    }

    fn kept(bank: &str, column: usize, row: &str) -> String {
        format!("SUBSTRING_INDEX(SUBSTRING_INDEX({bank}_{column}, ',', {row}), ',', -1)")
    }

    fn count_changed(into: &str) -> String {
        format!("SET {into} = ROW_COUNT();")
    }

    fn giving(_: &str, _: &str) -> String {
        String::new()
    }

    fn given(into: &str) -> Option<String> {
        Some(format!("SET {into} = LAST_INSERT_ID();"))
    }

    fn sleep() -> Vec<String> {
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
        insta::assert_snapshot!(Procedure::of::<Connector>(TransactionKind::OrderProducts, "bench").text);
    }
}
