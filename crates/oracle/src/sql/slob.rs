//! Data sets that SLOB's own `setup.sh` has made: `cf1` of `user1`, `user2`, …, used as they are.

use super::names::{Layout, Sql, quoted};

/// Users with a table `cf1` that this session can see, by their names: `USER1`, `USER2`, … SLOB numbers them from 1 on without a
/// gap, so the first number that is missing ends a data set. Beside each: whether `cf2`, the scan table, is there too (1 or 0).
pub const SLOB_OWNERS: &str = "SELECT t.owner, (SELECT COUNT(*) FROM all_tables s WHERE s.owner = t.owner \
    AND s.table_name = 'CF2') AS scan_tables FROM all_tables t WHERE t.table_name = 'CF1' AND REGEXP_LIKE(t.owner, '^USER[1-9][0-9]*$')";

/// Bytes of a block where a tablespace does not say otherwise. Wants `v$parameter`.
pub const SLOB_BLOCK_BYTES: &str = "SELECT value FROM v$parameter WHERE name = 'db_block_size'";

/// How many schemas a data set has: users from `USER1` on without a gap, of those that were found.
pub fn slob_schemas<'a>(owners: impl IntoIterator<Item = &'a str>) -> u32 {
    let numbers = owners.into_iter().filter_map(|owner| owner.strip_prefix("USER")?.parse::<u32>().ok());
    let numbers: std::collections::BTreeSet<u32> = numbers.collect();
    (1..).take_while(|number| numbers.contains(number)).count() as u32
}

impl Sql {
    /// The statements by which a user who may gives another one the right to use one schema of SLOB's, for `user` as the data
    /// dictionary has it. With `updates`, also to change it.
    pub fn slob_grants(user: &str, schema: u32, updates: bool) -> Vec<String> {
        let sql = Self::new(user, 0).with_layout(Layout::Slob);
        let rights = if updates { "SELECT, UPDATE" } else { "SELECT" };
        let user = quoted(user);
        vec![
            format!("GRANT {rights} ON {} TO {user}", sql.table(schema)),
            format!("GRANT SELECT ON {} TO {user}", sql.scan_table(schema)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_set_ends_where_a_number_is_missing() {
        assert_eq!(slob_schemas(["USER2", "USER10", "USER1", "USER4", "USER3"]), 4);
        assert_eq!(slob_schemas(["USER2", "USERX", "SYS", "USER99999999999"]), 0);
    }

    #[test]
    fn only_what_is_used_is_granted() {
        assert_eq!(
            Sql::slob_grants("BENCH", 1, true),
            ["GRANT SELECT, UPDATE ON \"USER2\".cf1 TO \"BENCH\"", "GRANT SELECT ON \"USER2\".cf2 TO \"BENCH\""]
        );
        assert!(Sql::slob_grants("BENCH", 0, false)[0].starts_with("GRANT SELECT ON"));
    }
}
