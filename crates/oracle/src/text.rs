//! What Oracle says in words of its own, and transactions of order entry as procedures in PL/SQL.

use super::connect::Connector;
use super::sql::quoted;
use ::sql::SqlText;
use ::sql::orders::load::ANSWERS;
use ::sql::orders::load::procedure::Parts;
use model::workload::orders::tables::Kind;

/// Now in UTC, whatever the time zones of session and server are.
const NOW: &str = "SYS_EXTRACT_UTC(SYSTIMESTAMP)";

impl SqlText for Connector {
    fn quoted(name: &str) -> String {
        name.to_owned()
    }

    fn qualified(namespace: &str, name: &str) -> String {
        format!("{}.{name}", quoted(namespace))
    }

    fn kind(kind: Kind) -> String {
        match kind {
            Kind::Whole(digits) => format!("NUMBER({digits})"),
            Kind::Money(digits) => format!("NUMBER({digits},2)"),
            Kind::Text(chars) => format!("VARCHAR2({chars} CHAR)"),
            Kind::Day => "DATE".to_owned(),
            Kind::Instant => "TIMESTAMP(6)".to_owned(),
        }
    }

    fn value(number: usize) -> String {
        format!(":v{number}")
    }

    fn days_ahead(days: &str) -> String {
        format!("TRUNC({NOW}) + {days}")
    }

    fn now() -> &'static str {
        NOW
    }

    /// A date is a number of days once another one is taken from it.
    fn five_minutes(instant: &str) -> String {
        format!("FLOOR((CAST({instant} AS DATE) - DATE '1970-01-01') * 288)")
    }

    fn next_logon(namespace: &str) -> String {
        format!("{}.logon_seq.NEXTVAL", quoted(namespace))
    }

    fn limit(rows: usize) -> String {
        format!(" FETCH FIRST {rows} ROWS ONLY")
    }

    fn returning(key: &str) -> String {
        format!(" RETURNING {key} INTO :new_key")
    }

    fn call(namespace: &str, procedure: &str, values: &[String]) -> String {
        let answer = (values.len() + 1..=values.len() + ANSWERS).map(Self::value);
        let all: Vec<String> = values.iter().cloned().chain(answer).collect();
        format!("BEGIN {}({}); END;", Self::table(namespace, procedure), all.join(", "))
    }

    fn frame(namespace: &str, parts: &Parts, mark: &str) -> String {
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
            Self::table(namespace, name),
            head.join(", "),
            declared.join(";\n  "),
            answers.join("\n"),
            body.join("\n")
        )
    }

    fn looped(query: &str) -> String {
        format!("({query})")
    }

    fn kept(bank: &str, column: usize, row: &str) -> String {
        format!("{bank}_{column}({row})")
    }

    fn count_changed(into: &str) -> String {
        format!("{into} := SQL%ROWCOUNT;")
    }

    fn sleep() -> Vec<String> {
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
        insta::assert_snapshot!(Procedure::of::<Connector>(TransactionKind::OrderProducts, "BENCH").text);
    }

    #[test]
    fn a_call_binds_what_it_is_asked_with_and_what_it_answers() {
        use sql::orders::load::Statement;
        assert_eq!(
            Statement::call(TransactionKind::SalesRepQuery).text::<Connector>("BENCH"),
            "BEGIN \"BENCH\".plimsoll_sales_rep_query(:v1, :v2, :v3, :v4, :v5, :v6, :v7, :v8, :v9); END;"
        );
    }
}
