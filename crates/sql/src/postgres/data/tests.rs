use std::sync::atomic::AtomicBool;

use super::session::{Halt, Session};
use super::*;
use crate::data::catalog::load;
use crate::data::descriptor::DataSet;
use crate::data::descriptor::Stage;
use crate::data::drop;
use crate::data::tests::{self, Tested};
use crate::postgres::Connector;
use crate::postgres::test_server::{database, server};
use model::config::postgres::PostgresAddress;
use targets::TargetError;
use targets::database::{Phase, SetupRequest};

pub(super) use crate::data::tests::{assert_sound, interrupt, refusal, set_up};

pub(super) const NAMESPACE: &str = "plimsoll";

pub(super) fn connector(address: &PostgresAddress) -> Connector {
    Connector::new(address, "plimsoll tests").unwrap()
}

/// Of the same database, as another role.
pub(super) fn connector_as(address: &PostgresAddress, role: &str) -> Connector {
    connector(&PostgresAddress { user: Some(role.to_owned()), ..address.clone() })
}

pub(super) fn request() -> SetupRequest {
    SetupRequest { schemas: 3, ..tests::request::<Connector>() }
}

impl Tested for Connector {
    const PHASES: &'static [Phase] = &[Phase::Create, Phase::Load, Phase::Index, Phase::Vacuum, Phase::Checkpoint];
    const HOSTILE: [&'static str; 3] = ["x\"; DROP TABLE data_names.slob_1; --", "it's \\ $procedure$ %s", "Ünï cödé"];
    const CLASHES: &'static [(&'static str, &'static str)] = &[
        ("CREATE TABLE slob_7 (id int)", "slob_7"),
        ("CREATE VIEW scan_1 AS SELECT 1", "scan_1"),
        ("CREATE PROCEDURE slob_batch_2() LANGUAGE sql AS ''", "slob_batch_2"),
        ("CREATE TYPE slob_1 AS (id int)", "slob_1"),
        ("CREATE TABLE plimsoll_data (id int)", "plimsoll_data"),
    ];

    fn place(name: &str) -> Option<Self> {
        Some(connector(&database(name)?))
    }

    fn as_clerk(place: &str, namespace: &str) -> Self {
        let (address, user) = (server().unwrap().address(place), format!("{place}_clerk"));
        let rights = format!(
            "CREATE ROLE {user} LOGIN; GRANT USAGE ON SCHEMA {namespace} TO {user}; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {namespace} TO {user}; \
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA {namespace} TO {user}"
        );
        execute(&Access::new(&connector(&address), "public"), &rights);
        connector_as(&address, &user)
    }

    fn inside(access: &Access<'_>, statements: &[&str]) {
        let namespace = if access.namespace.is_empty() { "public" } else { access.namespace };
        execute(&Access { namespace, ..*access }, &statements.join("; "));
    }

    fn kill_sessions(&self) {
        let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                    WHERE datname = current_database() AND pid <> pg_backend_pid()";
        number(&Access::new(self, "public"), kill);
    }
}

/// Executes statements in the namespace as the owner of everything.
pub(super) fn execute(access: &Access<'_>, statements: &str) {
    let session = Session::open(*access).unwrap();
    let path = format!("SET search_path = {}", access.sql(8192).schema());
    session.execute("test", &path, Halt::NEVER).unwrap();
    for statement in statements.split(';') {
        session.execute("test", statement, Halt::NEVER).unwrap();
    }
}

pub(super) fn number(access: &Access<'_>, ask: &str) -> i64 {
    Session::open(*access).unwrap().query_one("test", ask, &[]).unwrap().get(0)
}

mod dropping {
    use super::*;

    fn drop_all(access: &Access<'_>) -> Result<bool, TargetError> {
        drop::run(drop::plan::<_, DataSet>(access)?, &AtomicBool::new(false))
    }

    #[test]
    fn what_others_put_beside_the_data_stays() {
        let Some(address) = database("data_drop_others") else { return };
        let connector = connector(&address);
        let access = Access::new(&connector, NAMESPACE);
        set_up(&access, &request()).unwrap();
        execute(
            &access,
            "CREATE TABLE slob_99 (id int); CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        );
        assert!(!drop_all(&access).unwrap());
        let left = number(&access, "SELECT count(*) FROM pg_class WHERE relnamespace = 'plimsoll'::regnamespace");
        assert_eq!(left, 1);
        execute(&access, "SELECT mine() FROM slob_99");
    }

    #[test]
    fn tables_that_somebody_depends_on_stay_and_are_reported() {
        let Some(address) = database("data_drop_view") else { return };
        let connector = connector(&address);
        let access = Access::new(&connector, NAMESPACE);
        set_up(&access, &request()).unwrap();
        execute(&access, "CREATE VIEW mine AS SELECT custid FROM slob_2");
        let (what, _) = refusal(drop_all(&access));
        assert!(what.contains("cannot drop the data") && what.contains("2BP01"), "{what}");
        // Half of it is gone; the rest can be dropped once nothing stands against it.
        assert!(refusal(load(&access)).0.contains("half removed"));
        execute(&access, "DROP VIEW mine");
        assert!(drop_all(&access).unwrap());
    }
}

mod looking {
    use super::*;

    #[test]
    fn info_tells_what_the_data_are_and_what_the_role_lacks() {
        let Some(address) = database("data_info") else { return };
        let owner = connector(&address);
        execute(
            &Access::new(&owner, "public"),
            "CREATE ROLE info_user LOGIN; GRANT CREATE ON DATABASE data_info TO info_user",
        );
        let connector = connector_as(&address, "info_user");
        let access = Access::new(&connector, NAMESPACE);
        assert!(refusal(info::info(&access)).0.contains("no SLOB data"));
        set_up(&access, &request()).unwrap();
        let info = info::info(&access).unwrap();
        assert_eq!((info.stage, info.in_use_by.as_deref(), info.descriptor.seed), (Stage::Ready, None, 42));
        assert_eq!(info.tables.len(), 6);
        assert_eq!((info.tables[0].estimated_rows, info.tables[0].bytes), (Some(300), 300 * 8192));
        assert_eq!((info.bytes, info.role.as_str()), (960 * 8192, "info_user"));
        let missing: Vec<&str> = info.missing.iter().map(|right| right.name.as_str()).collect();
        assert!(missing.contains(&"pg_read_all_stats") && missing.contains(&"track_io_timing"), "{missing:?}");
        // A superuser lacks no right.
        let all = info::info(&Access::new(&owner, NAMESPACE)).unwrap();
        assert!(all.missing.iter().all(|right| right.name.starts_with("track_")), "{:?}", all.missing);
        serde_json::to_value(&all).unwrap();
    }

    #[test]
    fn a_table_that_grew_is_a_change_of_shape() {
        let Some(address) = database("data_shape") else { return };
        let connector = connector(&address);
        let access = Access::new(&connector, NAMESPACE);
        set_up(&access, &request()).unwrap();
        let data = load(&access).unwrap();
        let before = shape::read(&access, &data, 3).unwrap();
        assert_eq!((before.tables.len(), before.tables[1].pages), (3, 300));
        execute(&access, "UPDATE slob_2 SET c2 = c3");
        assert_eq!(
            shape::read(&access, &data, 3).unwrap().changed_since(&before),
            None,
            "updates stay in their blocks"
        );
        // One transaction that changes rows more often than versions of them fit into a block.
        let session = Session::open(access).unwrap();
        let often = "UPDATE plimsoll.slob_2 SET c2 = c3 WHERE custid < 150;".repeat(12);
        session.execute("test", &often, Halt::NEVER).unwrap();
        let reported = shape::read(&access, &data, 3).unwrap().changed_since(&before).unwrap();
        assert!(reported.starts_with("`slob_2") && reported.contains("grew by"), "{reported}");
    }
}
