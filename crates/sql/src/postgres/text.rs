//! What PostgreSQL says in words of its own, and transactions of order entry as procedures in PL/pgSQL.

use super::Connector;
use super::sql::{identifier, literal};
use crate::SqlText;
use crate::orders::load::ANSWERS;
use crate::orders::load::procedure::Parts;
use model::workload::orders::tables::Kind;

impl SqlText for Connector {
    fn kind(kind: Kind) -> String {
        match kind {
            // As many digits as are always held: 9 and 18.
            Kind::Whole(..=9) => "integer".to_owned(),
            Kind::Whole(_) => "bigint".to_owned(),
            Kind::Money(digits) => format!("numeric({digits},2)"),
            Kind::Text(chars) => format!("varchar({chars})"),
            Kind::Day => "date".to_owned(),
            Kind::Instant => "timestamptz(6)".to_owned(),
        }
    }

    fn float(expression: &str) -> String {
        format!("({expression})::float8")
    }

    fn table(namespace: &str, name: &str) -> String {
        format!("{}.{name}", identifier(namespace))
    }

    fn column(name: &str) -> String {
        name.to_owned()
    }

    fn value(number: usize) -> String {
        format!("${number}")
    }

    fn cents(amount: &str) -> String {
        format!("({amount} * 100)::bigint")
    }

    fn amount(cents: &str) -> String {
        format!("{cents}::bigint * 0.01")
    }

    fn days_ahead(days: &str) -> String {
        format!("CURRENT_DATE + {days}::integer")
    }

    fn now() -> &'static str {
        "now()"
    }

    fn hour_ago() -> String {
        "now() - INTERVAL '1 hour'".to_owned()
    }

    fn five_minutes(instant: &str) -> String {
        format!("floor(extract(epoch FROM {instant}) / 300)")
    }

    fn lower(column: &str) -> String {
        format!("lower({column})")
    }

    fn next_logon(namespace: &str) -> String {
        let sequence = format!("{}.logon_seq", identifier(namespace));
        format!("nextval({}::regclass)", literal(&sequence))
    }

    fn after_commits(table: &str, query: &str) -> String {
        format!("BEGIN; LOCK TABLE {table} IN SHARE MODE; {query}; COMMIT")
    }

    fn returning(key: &str) -> String {
        format!(" RETURNING {key}")
    }

    fn call(namespace: &str, procedure: &str, values: &[String]) -> String {
        let answer = ["NULL"; ANSWERS].map(str::to_owned);
        format!("CALL {}({})", Self::table(namespace, procedure), [values, &answer].concat().join(", "))
    }

    fn frame(namespace: &str, parts: &Parts, mark: &str) -> String {
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
            name = Self::table(namespace, name),
        )
    }

    /// A transaction is always open: one that only read ends first, so that another snapshot begins with what is to be committed.
    fn begin_changes(is_clean: bool) -> Option<&'static str> {
        (!is_clean).then_some("COMMIT;")
    }

    fn sleep() -> Vec<String> {
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
        insta::assert_snapshot!(Procedure::of::<Connector>(TransactionKind::OrderProducts, "bench").text);
    }
}
