//! Questions about the server, the user and what is in the schema. All of them are answered to every user, without a grant.

use ::sql::data::{DATA_TABLE, LOAD_TABLE};

/// Whose row is locked by whoever makes or removes data. It is a table of its own, since the others are written meanwhile.
pub const LOCK_TABLE: &str = "plimsoll_lock";
/// Product with its edition, and version: one row.
pub const PRODUCT: &str =
    "SELECT product, version FROM product_component_version WHERE product LIKE 'Oracle%' AND ROWNUM = 1";

/// Where a session has landed, in one row: user, current schema, container, service, instance, role of the database
/// (`PRIMARY`, `PHYSICAL STANDBY`, …), number of the session.
pub const SESSION: &str = "SELECT SYS_CONTEXT('USERENV', 'SESSION_USER'), SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA'), \
    SYS_CONTEXT('USERENV', 'CON_NAME'), SYS_CONTEXT('USERENV', 'SERVICE_NAME'), SYS_CONTEXT('USERENV', 'INSTANCE_NAME'), \
    SYS_CONTEXT('USERENV', 'DATABASE_ROLE'), SYS_CONTEXT('USERENV', 'SID') FROM dual";

/// The database and its container: instances of a cluster have both in common.
pub const DATABASE: &str =
    "SELECT SYS_CONTEXT('USERENV', 'DB_UNIQUE_NAME') || '/' || SYS_CONTEXT('USERENV', 'CON_NAME') FROM dual";

/// Number of the container in which the session is: 0 without containers, 1 in the root.
pub const CONTAINER: &str = "SELECT SYS_CONTEXT('USERENV', 'CON_ID') FROM dual";

/// Puts out whether the database is one of a cluster, as 1 or 0. Everybody may ask, unless `PUBLIC` was denied the package.
pub const IS_CLUSTER: &str = "DECLARE found PLS_INTEGER := 0; BEGIN \
    IF SYS.DBMS_UTILITY.IS_CLUSTER_DATABASE THEN found := 1; END IF; :is_cluster := found; END;";

/// The tablespace in which the user's tables are made, in one row: name, bytes of a block, status (`ONLINE`), contents
/// (`PERMANENT`), how free blocks are found (`AUTO` or `MANUAL`), whether it is of one large file, whether it is encrypted.
/// No row where the user may make no table in it.
pub const PLACE: &str = "SELECT t.tablespace_name, t.block_size, t.status, t.contents, t.segment_space_management, t.bigfile, \
    t.encrypted FROM user_users u JOIN user_tablespaces t ON t.tablespace_name = u.default_tablespace";

/// Tablespaces that hold the database itself, which stops when they are full.
pub const OWN_TABLESPACES: [&str; 2] = ["SYSTEM", "SYSAUX"];

/// Bytes of the buffer cache as it is now. Wants `v$sgainfo`.
pub const BUFFER_CACHE: &str = "SELECT bytes FROM v$sgainfo WHERE name = 'Buffer Cache Size'";

/// How much of a tablespace, `:tablespace_name`, the user has and may have, in bytes: -1 is without limit. No row where nothing
/// was granted; with the privilege `UNLIMITED TABLESPACE` that is no limit either.
pub const QUOTAS: &str = "SELECT bytes, max_bytes FROM user_ts_quotas WHERE tablespace_name = :tablespace_name";

/// What the user may do in this session, a privilege a row.
pub const PRIVILEGES: &str = "SELECT privilege FROM session_privs";

/// A kind of data as Oracle keeps it: its own tables, and the names that are its.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The table of the descriptor.
    pub data_table: &'static str,
    /// The table of what has been loaded.
    pub load_table: &'static str,
    /// Its columns with their types.
    pub load_columns: [(&'static str, &'static str); 4],
    /// How many of them are its key.
    pub load_key: usize,
    /// Which of the user's tables are looked for, as a condition on `t.table_name`.
    condition: &'static str,
}

/// What SLOB's method is run on.
pub const SLOB: Kind = Kind {
    data_table: DATA_TABLE,
    load_table: LOAD_TABLE,
    load_columns: [
        ("is_scan", "NUMBER(1)"),
        ("slob_schema", "NUMBER(10)"),
        ("first_place", "NUMBER(19)"),
        ("places", "NUMBER(19)"),
    ],
    load_key: 3,
    condition: "REGEXP_LIKE(t.table_name, '^(PLIMSOLL_(DATA|LOAD|LOCK)|(SLOB|SCAN)_[0-9]+)$')",
};

/// Order entry.
pub const ORDERS: Kind = Kind {
    data_table: "plimsoll_orders",
    load_table: "plimsoll_orders_load",
    load_columns: [
        ("table_name", "VARCHAR2(40 BYTE)"),
        ("first_unit", "NUMBER(19)"),
        ("units", "NUMBER(19)"),
        ("rows_loaded", "NUMBER(19)"),
    ],
    load_key: 2,
    condition: "t.table_name IN ('PLIMSOLL_ORDERS', 'PLIMSOLL_ORDERS_LOAD', 'PLIMSOLL_LOCK')",
};

/// How many kinds of data are described in the schema.
pub const DESCRIBED: &str =
    "SELECT COUNT(*) FROM user_tables t WHERE t.table_name IN ('PLIMSOLL_DATA', 'PLIMSOLL_ORDERS')";

impl Kind {
    /// Our own tables by their bare names, in the order in which they are dropped: the descriptor stays until all else is gone,
    /// and the lock, which all kinds have in common, until then.
    pub fn own_tables(&self) -> [&'static str; 3] {
        [self.load_table, self.data_table, LOCK_TABLE]
    }

    /// Tables of the user with names that a set-up uses, in small letters, and the bytes of each with its indexes.
    pub fn objects(&self) -> String {
        format!("{TABLES} WHERE {}", self.condition)
    }

    /// Columns of those of our own tables that are there: table, how many, and how many of them have a name that ours have.
    pub fn own_columns(&self) -> String {
        let columns =
            ["id", "format", "stage", "descriptor"].into_iter().chain(self.load_columns.map(|(name, _)| name));
        let columns: Vec<String> = columns.map(|name| format!("'{}'", name.to_uppercase())).collect();
        let tables = [self.data_table, self.load_table, LOCK_TABLE].map(|name| format!("'{}'", name.to_uppercase()));
        format!(
            "SELECT LOWER(table_name) AS name, COUNT(*) AS columns_there, COUNT(CASE WHEN column_name IN \
             ({}) THEN 1 END) AS columns_known FROM user_tab_columns WHERE table_name IN ({}) GROUP BY table_name",
            columns.join(", "),
            tables.join(", ")
        )
    }

    /// How many of the descriptor's columns are there: 3 if its table is ours.
    pub fn descriptor_columns(&self) -> String {
        format!(
            "SELECT COUNT(*) FROM user_tab_columns WHERE table_name = '{}' AND column_name IN ('FORMAT', 'STAGE', 'DESCRIPTOR')",
            self.data_table.to_uppercase()
        )
    }
}

/// Tables of the user in small letters, and the bytes of each with its indexes.
pub(crate) const TABLES: &str = "SELECT LOWER(t.table_name) AS name, (SELECT NVL(SUM(s.bytes), 0) FROM user_segments s \
    WHERE s.segment_name = t.table_name OR s.segment_name IN \
    (SELECT i.index_name FROM user_indexes i WHERE i.table_name = t.table_name)) AS bytes \
    FROM user_tables t";

/// Who holds the lock of the data: number of the session, machine and program. Wants `v$locked_object` and `v$session`.
pub const LOCK_HOLDER: &str = "SELECT s.sid, s.machine, s.program FROM v$locked_object l \
    JOIN v$session s ON s.sid = l.session_id JOIN user_objects o ON o.object_id = l.object_id \
    WHERE o.object_name = 'PLIMSOLL_LOCK'";

/// Whether a database with this role (see [`SESSION`]) can only be read. A snapshot standby is open for changes too.
pub fn only_reads(role: &str) -> bool {
    !["", "PRIMARY", "SNAPSHOT STANDBY"].contains(&role)
}

/// Sessions of users that work at this moment: number and serial number. Wants `v$session`. In a cluster `gv$session` stands in its
/// place, whose rows are read by processes of all instances: who asks must not be a part of the question.
pub const AT_WORK: &str = "SELECT sid, serial# FROM v$session WHERE status = 'ACTIVE' AND type = 'USER'";

#[cfg(test)]
mod tests {
    use super::super::Sql;
    use super::*;

    #[test]
    fn our_tables_are_known_by_their_names_in_the_data_dictionary() {
        for kind in [SLOB, ORDERS] {
            for name in kind.own_tables() {
                let word = name.strip_prefix("plimsoll_").unwrap().to_uppercase();
                assert!(kind.objects().contains(&word), "{name}");
                assert!(kind.own_columns().contains(&format!("'{}'", name.to_uppercase())), "{name}");
            }
            let quoted = format!("'{}'", kind.data_table.to_uppercase());
            assert!(kind.descriptor_columns().contains(&quoted) && DESCRIBED.contains(&quoted));
        }
        assert!(LOCK_HOLDER.contains(&format!("'{}'", LOCK_TABLE.to_uppercase())));
    }

    #[test]
    fn our_tables_are_known_by_their_columns() {
        for kind in [SLOB, ORDERS] {
            for (_, create) in Sql::new("PLIMSOLL", 8192).create_own_tables(&kind) {
                let columns =
                    create.split_once('(').unwrap().1.split(", ").filter(|column| column.contains(" NOT NULL"));
                for column in columns {
                    let name = column.split(' ').next().unwrap().to_uppercase();
                    assert!(kind.own_columns().contains(&format!("'{name}'")), "{name}");
                }
            }
        }
    }

    #[test]
    fn sessions_at_work_are_asked_for_alike_on_all_instances() {
        let others = AT_WORK.replace("'USER'", "");
        assert!(!others.contains("USER") && !others.contains("SYS_CONTEXT"), "{AT_WORK}");
    }

    #[test]
    fn only_a_standby_that_is_not_open_for_changes_is_for_reading() {
        assert!(["PHYSICAL STANDBY", "LOGICAL STANDBY"].into_iter().all(only_reads));
        assert!(!["PRIMARY", "SNAPSHOT STANDBY", ""].into_iter().any(only_reads));
    }
}
