//! What dialects of SQL say differently.

use crate::orders::load::procedure::Parts;
use model::workload::orders::tables::Kind;

/// The SQL of one dialect, as far as statements that all servers execute differ in it. What is provided is standard SQL, or what most
/// dialects say; a dialect gives the rest.
///
/// Statements of the load are written by [`Statement::text`](crate::orders::load::Statement::text), procedures by
/// [`Procedure::of`](crate::orders::load::procedure::Procedure::of), and tables by the functions of [`ddl`](crate::orders::ddl).
pub trait SqlText {
    // Names.

    /// A name in its quotes.
    fn quoted(name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    /// A name in a namespace, qualified and quoted.
    fn qualified(namespace: &str, name: &str) -> String {
        format!("{}.{}", Self::quoted(namespace), Self::quoted(name))
    }

    /// A table or a procedure as statements of the load name it, qualified.
    fn table(namespace: &str, name: &str) -> String {
        Self::qualified(namespace, name)
    }

    /// A column whose name some server has for a word of its own.
    fn column(name: &str) -> String {
        Self::quoted(name)
    }

    // Tables.

    /// The type of a column.
    fn kind(kind: Kind) -> String;

    /// What an aggregate of numbers is written as, so that it comes with all its digits.
    fn float(expression: &str) -> String {
        expression.to_owned()
    }

    // Statements.

    /// Value number `number`, from 1.
    fn value(_number: usize) -> String {
        "?".to_owned()
    }

    /// An amount of money as a whole number of hundredths.
    fn cents(amount: &str) -> String {
        format!("{amount} * 100")
    }

    /// Hundredths, which are a whole number, as an amount of money.
    fn amount(cents: &str) -> String {
        format!("{cents} * 0.01")
    }

    /// The date so many days from today.
    fn days_ahead(days: &str) -> String {
        format!("CURRENT_DATE + {days} * INTERVAL '1' DAY")
    }

    /// Now, as orders and logons are dated.
    fn now() -> &'static str {
        "CURRENT_TIMESTAMP"
    }

    /// The instant an hour ago.
    fn hour_ago() -> String {
        format!("{} - INTERVAL '1' HOUR", Self::now())
    }

    /// Number of the five minutes in which an instant lies.
    fn five_minutes(instant: &str) -> String;

    /// A name column in lower case, as its index has it.
    fn lower(column: &str) -> String {
        format!("LOWER({column})")
    }

    /// The key of the next logon, where the server gives it in the statement.
    fn next_logon(namespace: &str) -> String {
        format!("NEXT VALUE FOR {}", Self::table(namespace, "logon_seq"))
    }

    /// Groups by two columns, with the sums over each of them and over both.
    fn cube(one: &str, other: &str) -> String {
        format!("GROUP BY CUBE ({one}, {other})")
    }

    /// What stands behind a query and has it give no more rows than so many.
    fn limit(rows: usize) -> String {
        format!(" LIMIT {rows}")
    }

    /// A query of a table that sees what any session commits just now: one whose client is gone may still do so.
    fn after_commits(_table: &str, query: &str) -> String {
        query.to_owned()
    }

    /// What has an insertion give the key that the row got, where that is part of the statement.
    fn returning(_key: &str) -> String {
        String::new()
    }

    /// Calls the procedure of this bare name with these values, so that it gives one row of
    /// [`ANSWERS`](crate::orders::load::ANSWERS) numbers.
    fn call(namespace: &str, procedure: &str, values: &[String]) -> String {
        format!("CALL {}({})", Self::table(namespace, procedure), values.join(", "))
    }

    // Procedures. Names of variables are given as they stand there.

    /// Makes a procedure with this mark, which has no quotes in it, all of it or nothing.
    fn frame(namespace: &str, parts: &Parts, mark: &str) -> String;

    /// Sets a variable.
    fn assign(variable: &str, to: &str) -> String {
        format!("{variable} := {to};")
    }

    /// What begins and ends steps that are repeated while something is so.
    fn repeated() -> (&'static str, &'static str) {
        ("LOOP", "END LOOP;")
    }

    /// Begins what is committed as one, where a change does not do so by itself. `is_clean` if nothing was asked since the last commit.
    fn begin_changes(_is_clean: bool) -> Option<&'static str> {
        None
    }

    /// Commits inside of a procedure, so that it goes on only once that is durable.
    fn commit() -> &'static str {
        "COMMIT;"
    }

    /// Ends the procedure.
    fn leave() -> &'static str {
        "RETURN;"
    }

    /// A query as the rows of a loop.
    fn looped(query: &str) -> String {
        query.to_owned()
    }

    /// Executes a query, and keeps of its rows these columns in `bank`, and their number.
    fn keep_rows(query: &str, bank: &str, columns: &[&str]) -> Vec<String> {
        let head = [
            format!("{bank} := 0;"),
            format!("FOR v_record IN {} LOOP", Self::looped(query)),
            format!("  {bank} := {bank} + 1;"),
        ];
        let kept = (1..)
            .zip(columns)
            .map(|(number, column)| format!("  {} := v_record.{column};", Self::kept(bank, number, bank)));
        head.into_iter().chain(kept).chain(["END LOOP;".to_owned()]).collect()
    }

    /// Makes room for one more row of a bank, and keeps these values in it.
    fn keep_row(bank: &str, values: &[String]) -> Vec<String> {
        let kept = (1..).zip(values).map(|(number, value)| format!("{} := {value};", Self::kept(bank, number, bank)));
        std::iter::once(format!("{bank} := {bank} + 1;")).chain(kept).collect()
    }

    /// Column `column`, from 1, of a row of a bank that has it.
    fn kept(bank: &str, column: usize, row: &str) -> String {
        format!("{bank}_{column}[{row}]")
    }

    /// Sets a variable to the number of rows that the last change changed.
    fn count_changed(into: &str) -> String {
        format!("GET DIAGNOSTICS {into} = ROW_COUNT;")
    }

    /// What stands behind an insertion and has it give the key of the new row.
    fn giving(key: &str, into: &str) -> String {
        format!(" RETURNING {key} INTO {into}")
    }

    /// Sets a variable to the key of the row that was inserted last, where the insertion did not.
    fn given(_into: &str) -> Option<String> {
        None
    }

    /// Sleeps for `v_length` microseconds, and adds how long that was to `v_paused_us`.
    fn sleep() -> Vec<String>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::load::Statement;

    /// Says everything in standard SQL that is provided.
    struct Standard;

    impl SqlText for Standard {
        fn kind(_: Kind) -> String {
            unreachable!("a statement makes no table")
        }

        fn five_minutes(instant: &str) -> String {
            instant.to_owned()
        }

        fn frame(_: &str, _: &Parts, _: &str) -> String {
            unreachable!("a statement makes no procedure")
        }

        fn sleep() -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn what_is_provided_is_standard_sql() {
        assert_eq!(
            Statement::AddLogon.text::<Standard>("a\"b"),
            "INSERT INTO \"a\"\"b\".\"logon\" (logon_id, customer_id, logon_date) VALUES (NEXT VALUE FOR \"a\"\"b\".\"logon_seq\", ?, \
             CURRENT_DATE + 0 * INTERVAL '1' DAY)"
        );
        assert!(
            Statement::WarehouseActivity
                .text::<Standard>("s")
                .contains("order_date >= CURRENT_TIMESTAMP - INTERVAL '1' HOUR GROUP BY")
        );
        assert!(Statement::Warehouse.text::<Standard>("s").ends_with("GROUP BY CUBE (order_mode, warehouse_id)"));
    }
}
