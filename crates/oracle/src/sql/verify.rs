//! Reading a whole data set.

use super::names::{Sql, columns};

impl Sql {
    /// Rows with keys from `:first_key` to before `:beyond_key`, in their order: `custid`, ROWID as text, and the bytes of all
    /// filling. `table` is qualified. The scan table has no index, so there it reads all of it each time: ask once.
    pub fn filled_rows(&self, table: &str) -> String {
        let bytes: Vec<String> = columns().map(|column| format!("NVL(LENGTHB(t.{column}), 0)")).collect();
        format!(
            "SELECT t.custid, ROWIDTOCHAR(t.ROWID) AS address, {} AS filling FROM {table} t \
             WHERE t.custid >= :first_key AND t.custid < :beyond_key ORDER BY t.custid",
            bytes.join(" + ")
        )
    }

    /// Rows that set-up did not put there: with keys below `:lowest_key` or from `:beyond_key` on, or without one.
    pub fn strange_rows(&self, table: &str) -> String {
        format!(
            "SELECT COUNT(*) FROM {table} t WHERE t.custid < :lowest_key OR t.custid >= :beyond_key OR t.custid IS NULL"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::operations::placeholders;
    use super::*;

    #[test]
    fn every_column_counts() {
        let rows = Sql::new("PLIMSOLL", 8192).filled_rows("t");
        assert_eq!(rows.matches("LENGTHB(t.c").count(), 19);
        assert_eq!(placeholders(&rows), ["first_key", "beyond_key"]);
    }
}
