//! Transactions of order entry as procedures, in PL/pgSQL.

use super::orders::InSchema;
use crate::orders::load::StatementWords as _;
use crate::orders::load::procedure::{Parts, Procedural};

impl Procedural for InSchema<'_> {
    fn frame(&self, parts: &Parts, mark: &str) -> String {
        let Parts { name, parameters, wholes, begins, banks, pauses, answer, body } = parts;
        let mut head: Vec<String> = parameters
            .iter()
            .map(|(name, is_text)| format!("{name} {}", if *is_text { "text" } else { "bigint" }))
            .collect();
        // Servers before version 14 have no OUT for procedures.
        head.extend(answer.iter().map(|name| format!("INOUT {name} bigint")));
        let mut declared: Vec<String> = wholes.iter().map(|name| format!("{name} bigint := 0")).collect();
        declared.extend(begins.iter().map(|(name, value)| format!("{name} bigint := {value}")));
        for (bank, width) in banks {
            declared.extend((1..=*width).map(|column| format!("{bank}_{column} bigint[]")));
        }
        declared.push("v_record record".to_owned());
        if *pauses {
            declared.extend(["v_length double precision", "v_asleep timestamptz"].map(str::to_owned));
        }
        let answers: Vec<String> = answer.iter().map(|name| format!("  {name} := 0;")).collect();
        let body: Vec<String> = body.iter().map(|line| format!("  {line}")).collect();
        format!(
            "CREATE PROCEDURE {name}({})\nLANGUAGE plpgsql AS $procedure$\nDECLARE\n  {};\nBEGIN\n{}\n{}\nEND\n$procedure$;\n\
             COMMENT ON PROCEDURE {name} IS '{mark}'",
            head.join(", "),
            declared.join(";\n  "),
            answers.join("\n"),
            body.join("\n"),
            name = self.table(name),
        )
    }

    /// A transaction is always open: one that only read ends first, so that another snapshot begins with what is to be committed.
    fn begin(&self, is_clean: bool) -> Option<&'static str> {
        (!is_clean).then_some("COMMIT;")
    }

    fn keep_rows(&self, query: &str, bank: &str, columns: &[&str]) -> Vec<String> {
        let mut lines =
            vec![format!("{bank} := 0;"), format!("FOR v_record IN {query} LOOP"), format!("  {bank} := {bank} + 1;")];
        let kept =
            (1..).zip(columns).map(|(number, column)| format!("  {bank}_{number}[{bank}] := v_record.{column};"));
        lines.extend(kept);
        lines.push("END LOOP;".to_owned());
        lines
    }

    fn keep_row(&self, bank: &str, values: &[String]) -> Vec<String> {
        let kept = (1..).zip(values).map(|(number, value)| format!("{bank}_{number}[{bank}] := {value};"));
        std::iter::once(format!("{bank} := {bank} + 1;")).chain(kept).collect()
    }

    fn kept(&self, bank: &str, column: usize, row: &str) -> String {
        format!("{bank}_{column}[{row}]")
    }

    fn count_changed(&self, into: &str) -> String {
        format!("GET DIAGNOSTICS {into} = ROW_COUNT;")
    }

    fn sleep(&self) -> Vec<String> {
        let lines = [
            "v_asleep := clock_timestamp();",
            "PERFORM pg_sleep(v_length / 1000000);",
            "v_paused_us := v_paused_us + floor(extract(epoch FROM clock_timestamp() - v_asleep) * 1000000)::bigint;",
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
    fn an_order_of_products_is_a_procedure_in_plpgsql() {
        insta::assert_snapshot!(Procedure::of(TransactionKind::OrderProducts, &InSchema("bench")).text);
    }
}
