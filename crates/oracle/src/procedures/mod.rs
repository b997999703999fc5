//! Transactions of order entry as procedures, in PL/SQL.

use super::orders::OfUser;
use ::sql::orders::load::StatementWords as _;
use ::sql::orders::load::procedure::{Parts, Procedural};

impl Procedural for OfUser<'_> {
    fn frame(&self, parts: &Parts, mark: &str) -> String {
        let Parts { name, parameters, wholes, begins, banks, pauses, answer, body } = parts;
        let kind = |is_text: bool| if is_text { "VARCHAR2" } else { "NUMBER" };
        let mut head: Vec<String> =
            parameters.iter().map(|(name, is_text)| format!("{name} IN {}", kind(*is_text))).collect();
        head.extend(answer.iter().map(|name| format!("{name} OUT NUMBER")));
        let mut declared = vec!["TYPE numbers IS TABLE OF NUMBER INDEX BY PLS_INTEGER".to_owned()];
        declared.extend(wholes.iter().map(|name| format!("{name} NUMBER := 0")));
        declared.extend(begins.iter().map(|(name, value)| format!("{name} NUMBER := {value}")));
        for (bank, width) in banks {
            declared.extend((1..=*width).map(|column| format!("{bank}_{column} numbers")));
        }
        if *pauses {
            let sleeps =
                ["v_length NUMBER", "v_asleep TIMESTAMP WITH TIME ZONE", "v_slept INTERVAL DAY(3) TO SECOND(6)"];
            declared.extend(sleeps.map(str::to_owned));
        }
        let answers: Vec<String> = answer.iter().map(|name| format!("  {name} := 0;")).collect();
        let body: Vec<String> = body.iter().map(|line| format!("  {line}")).collect();
        format!(
            "CREATE PROCEDURE {}({})\nAUTHID CURRENT_USER AS\n  -- {mark}\n  {};\nBEGIN\n{}\n{}\nEND;",
            self.table(name),
            head.join(", "),
            declared.join(";\n  "),
            answers.join("\n"),
            body.join("\n")
        )
    }

    /// Whatever changes something begins a transaction.
    fn begin(&self, _: bool) -> Option<&'static str> {
        None
    }

    fn keep_rows(&self, query: &str, bank: &str, columns: &[&str]) -> Vec<String> {
        let mut lines = vec![
            format!("{bank} := 0;"),
            format!("FOR v_record IN ({query}) LOOP"),
            format!("  {bank} := {bank} + 1;"),
        ];
        let kept =
            (1..).zip(columns).map(|(number, column)| format!("  {bank}_{number}({bank}) := v_record.{column};"));
        lines.extend(kept);
        lines.push("END LOOP;".to_owned());
        lines
    }

    fn keep_row(&self, bank: &str, values: &[String]) -> Vec<String> {
        let kept = (1..).zip(values).map(|(number, value)| format!("{bank}_{number}({bank}) := {value};"));
        std::iter::once(format!("{bank} := {bank} + 1;")).chain(kept).collect()
    }

    fn kept(&self, bank: &str, column: usize, row: &str) -> String {
        format!("{bank}_{column}({row})")
    }

    fn count_changed(&self, into: &str) -> String {
        format!("{into} := SQL%ROWCOUNT;")
    }

    fn sleep(&self) -> Vec<String> {
        let lines = [
            "v_asleep := SYSTIMESTAMP;",
            "DBMS_SESSION.SLEEP(v_length / 1000000);",
            "v_slept := SYSTIMESTAMP - v_asleep;",
            "v_paused_us := v_paused_us + TRUNC(((EXTRACT(DAY FROM v_slept) * 24 + EXTRACT(HOUR FROM v_slept)) * 3600",
            "  + EXTRACT(MINUTE FROM v_slept) * 60 + EXTRACT(SECOND FROM v_slept)) * 1000000);",
        ];
        lines.map(str::to_owned).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::workload::orders::TransactionKind;
    use sql::orders::load::procedure::Procedure;

    #[test]
    fn an_order_of_products_is_a_procedure_in_plsql() {
        insta::assert_snapshot!(Procedure::of(TransactionKind::OrderProducts, &OfUser("BENCH")).text);
    }

    #[test]
    fn a_call_binds_what_it_is_asked_with_and_what_it_answers() {
        use sql::orders::load::Statement;
        assert_eq!(
            Statement::call(TransactionKind::SalesRepQuery).text(&OfUser("BENCH")),
            "BEGIN \"BENCH\".plimsoll_sales_rep_query(:v1, :v2, :v3, :v4, :v5, :v6, :v7, :v8, :v9); END;"
        );
    }
}
