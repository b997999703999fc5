//! Making a data set: tables of one row a block, loaded past the buffer cache in permuted order, then indexed.

use super::catalog::{self, NO_TABLE, Server, name_of, unless};
use super::load;
use super::session::{Access, Session};
use crate::targets::TargetError;
use crate::targets::database::Phase;
use crate::targets::oracle::OracleError;
use crate::targets::oracle::connect::Connector;
use crate::targets::oracle::driver::DB_TYPE_NUMBER;
use crate::targets::oracle::error::LACKS_RIGHTS;
use crate::targets::oracle::sql::{
    CONTAINER, Grant, IS_CLUSTER, LOCK_TABLE, Layout, Need, OWN_COLUMNS, OWN_TABLESPACES, READY_PLACE, Sql,
    column_bytes, grants,
};
use crate::targets::sql::data::catalog::{LOAD_TABLE, NamespaceFacts, SqlData as _, lock};
use crate::targets::sql::data::descriptor::{DataSet, Stage, TableId, TableKind};
use crate::targets::sql::data::pieces::{Marks, Piece};
use crate::targets::sql::data::setup::{SetUp, Work};
use crate::targets::sql::data::streams::{Halt, Stream};

/// An entry of the index on the keys: its header, key and ROWID.
const INDEX_ENTRY_BYTES: u64 = 20;
/// An index of that name is there already; a table has none of its name.
const INDEX_IS_THERE: u32 = 955;

impl SetUp for Connector {
    // A tablespace of one large file has as many blocks.
    const MAX_TABLE_BLOCKS: (&'static str, u64) = ("Oracle", 1 << 32);
    type Loader<'a> = Session<'a>;

    fn column_bytes(block_bytes: u32) -> u32 {
        column_bytes(block_bytes)
    }

    /// Rows are written past the cache, with redo of whole blocks where the database forces or archives it.
    fn estimates(data: &DataSet) -> (u64, u64) {
        (data.scale_blocks * u64::from(data.schemas) * INDEX_ENTRY_BYTES, data.bytes())
    }

    fn grants(access: Access<'_>, server: &Server) -> Vec<(String, String)> {
        let tablespace = server.place.as_ref().map(|place| place.name.as_str()).unwrap_or("USERS");
        let (is_pluggable, is_cluster) = circumstances(access);
        let is_used = |grant: &Grant| match grant.need {
            Need::Load | Need::Setup | Need::Figures => true,
            Need::Container => is_pluggable,
            Need::Cluster => is_cluster,
            Need::ClusterContainer => is_pluggable && is_cluster,
            Need::Awr | Need::Statspack => false,
        };
        let grants = grants(access.namespace, tablespace).into_iter().filter(is_used);
        grants.map(|grant| (grant.statement, grant.why.to_owned())).collect()
    }

    fn check_place(
        access: Access<'_>,
        session: &mut Session<'_>,
        facts: &NamespaceFacts<Server>,
    ) -> Result<(), TargetError> {
        if access.connector.method().layout == Layout::Slob {
            let what = "SLOB's own tables are made by SLOB's own `setup.sh`".to_owned();
            return Err(access.unfit(what, "leave out `--layout slob`, and Plimsoll makes tables of its own"));
        }
        let server = &facts.server;
        let at = access.node_name();
        if server.is_standby() {
            let what = format!("`{at}` is a {}, which only reads", server.role.to_lowercase());
            return Err(access.unfit(what, "make the data on the primary; the standby gets them from there"));
        }
        if let Some(place) = &server.place {
            let stands_against = match () {
                () if !place.is_online => Some("is not online"),
                () if !place.is_permanent => Some("is not for tables that stay"),
                () if OWN_TABLESPACES.contains(&place.name.as_str()) => {
                    Some("is the database's own, and a database stops whose own is full")
                }
                () => None,
            };
            if let Some(why) = stands_against {
                let what = format!("the tablespace {} of `{at}` {why}", place.name);
                return Err(access.unfit(what, "give the user another one: ALTER USER … DEFAULT TABLESPACE …"));
            }
        }
        if facts.found.is_some() {
            return Ok(());
        }
        // Our own tables may be left of a set-up that was ended at its very beginning.
        let there = Connector::objects(session)?;
        let clash = there.into_keys().find(|name| !Sql::own_tables().contains(&name.as_str()));
        match clash.map_or_else(|| not_ours(session), |clash| Ok(Some(clash)))? {
            None => Ok(()),
            Some(clash) => {
                let what = format!("{} holds `{clash}`, which Plimsoll did not make", access.place());
                Err(access.unfit_here(what, "name"))
            }
        }
    }

    fn marks(session: &mut Session<'_>) -> Result<Marks, TargetError> {
        let mut marks = Marks::new();
        for (table, first, places) in all_marks(session)? {
            if let (Ok(first), true) = (u64::try_from(first), places > 0) {
                marks.entry(table).or_default().push((first, places));
            }
        }
        Ok(marks)
    }

    fn begin(session: &mut Session<'_>, data: &DataSet) -> Result<(), TargetError> {
        // The lock went with the data that were there.
        if !session.is_holding() {
            let access = session.access();
            lock::<Connector>(access, session)?;
            if catalog::read_descriptor(session)?.is_some() {
                let what = format!("another process has made data in {} meanwhile", access.place());
                return Err(access.unfit(what, "look what they are: `plimsoll slob info`"));
            }
        }
        catalog::begin(session, data)
    }

    fn loader<'a>(access: Access<'a>, _: &Server, _: &DataSet, _: Halt<'_>) -> Result<Session<'a>, TargetError> {
        Session::open(access)
    }

    fn load(session: &mut Session<'_>, data: &DataSet, piece: &Piece, stream: &Stream<'_>) -> Result<(), TargetError> {
        load::load(session, data, piece, stream)
    }

    fn make(work: &mut Work<'_, Self>) -> Result<(), TargetError> {
        work.make_tables()?;
        work.load_rows()?;
        work.build_indexes()?;
        work.analyze()?;
        catalog::set_stage(&work.session, Stage::Ready)?;
        let sql = work.access.sql(work.data.block_bytes);
        let forget = Sql::drop_table(&sql.qualified(LOAD_TABLE));
        unless(work.session.execute("end the set-up", &forget, &[]), &[NO_TABLE])
    }
}

/// Whether the user is in a pluggable database, and whether the database is one of a cluster. Who may not ask is told of less; the
/// notes of a run name what is missing then.
fn circumstances(access: Access<'_>) -> (bool, bool) {
    let Ok(connected) = access.connector.connect(access.node) else { return (false, false) };
    let container = connected.first("ask for its container", CONTAINER, &[], |row| row.get::<Option<String>>(0));
    let number = container.ok().flatten().flatten().and_then(|number| number.parse::<u64>().ok());
    let called = connected.call("ask whether it is one of a cluster", IS_CLUSTER, &[&DB_TYPE_NUMBER]);
    let is_cluster = called.ok().and_then(|row| row.get::<u64>(0).ok());
    (number.is_some_and(|number| number > 1), is_cluster == Some(1))
}

/// A refusal for lack of rights, with the way to all that are needed.
fn with_grants(access: Access<'_>, error: TargetError) -> TargetError {
    match &error {
        TargetError::Oracle(OracleError::Refused { code, .. }) if LACKS_RIGHTS.contains(&code.0) => {
            let hint =
                "`plimsoll slob setup --dry-run` prints every GRANT that is needed, for an administrator to execute";
            access.unfit(error.to_string(), hint)
        }
        _ => error,
    }
}

/// A table with a name of one of our own three that has other columns.
fn not_ours(session: &Session<'_>) -> Result<Option<String>, TargetError> {
    let found: Vec<(String, u64, u64)> = session
        .query("look whose tables there are", OWN_COLUMNS, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let own = |name: &str| match name {
        LOCK_TABLE => 1,
        LOAD_TABLE => 4,
        _ => 3,
    };
    Ok(found.into_iter().find(|(name, all, known)| (*all, *known) != (own(name), own(name))).map(|(name, ..)| name))
}

/// What has been done to tables: which, first place or [`READY_PLACE`], places.
fn all_marks(session: &Session<'_>) -> Result<Vec<(TableId, i64, u64)>, TargetError> {
    let sql = session.access().sql(0);
    session.query("read what has been loaded", &sql.marks(), &[], |row| {
        let kind = if row.get::<u32>(0)? == 1 { TableKind::Scan } else { TableKind::Rows };
        Ok((TableId { kind, schema: row.get(1)? }, row.get(2)?, row.get(3)?))
    })
}

impl Work<'_, Connector> {
    fn sql(&self) -> Sql {
        self.access.sql(self.data.block_bytes)
    }

    /// Makes the tables that are not ready for rows yet. One that somebody dropped in between is loaded again.
    fn make_tables(&mut self) -> Result<(), TargetError> {
        let there = Connector::objects(&mut self.session)?;
        let ready: Vec<TableId> = all_marks(&self.session)?
            .into_iter()
            .filter_map(|(table, first, _)| (first == READY_PLACE).then_some(table))
            .collect();
        let is_ready = |table: &TableId| ready.contains(table) && there.contains_key(&table.name());
        let missing: Vec<TableId> = self.data.tables().filter(|table| !is_ready(table)).collect();
        self.phase(Phase::Create, 0, |work, _| {
            let (halt, sql) = (work.halt(), work.sql());
            for table in &missing {
                halt.check()?;
                let (name, session) = (name_of(&sql, *table), &work.session);
                let (is_scan, doing) = (u32::from(table.kind == TableKind::Scan), "create the tables");
                session.execute(doing, &sql.forget_marks(), &[&is_scan, &table.schema])?;
                session.connected()?.commit(doing)?;
                unless(session.execute(doing, &Sql::drop_table(&name), &[]), &[NO_TABLE])?;
                let made = session.execute(doing, &sql.create_table(&name), &[]);
                made.map_err(|error| with_grants(session.access(), error))?;
                load::one_row(session, &sql, &name)?;
                session.execute(doing, &Sql::minimize(&name), &[])?;
                session.execute(doing, &Sql::truncate(&name), &[])?;
                session.execute(doing, &sql.insert_mark(), &[&is_scan, &table.schema, &READY_PLACE, &0_u32])?;
                session.connected()?.commit(doing)?;
            }
            Ok(())
        })
    }

    fn build_indexes(&mut self) -> Result<(), TargetError> {
        let (access, sql) = (self.access, self.sql());
        let each = self.data.scale_blocks * u64::from(self.data.block_bytes);
        let schemas: Vec<(u32, u64)> = (0..self.data.schemas).map(|schema| (schema, each)).collect();
        self.side_by_side(
            Phase::Index,
            &schemas,
            |_| Session::open(access),
            |session, schema, halt| {
                let doing = format!("build the index of {}", sql.table(schema));
                unless(session.execute_long(&doing, sql.create_index(schema), halt), &[INDEX_IS_THERE])
            },
        )
    }

    /// Has the server learn the shape of tables and indexes.
    fn analyze(&mut self) -> Result<(), TargetError> {
        let tables: Vec<TableId> = self.data.tables().collect();
        self.phase(Phase::Analyze, 0, |work, _| {
            let (sql, halt) = (work.sql(), work.halt());
            for table in &tables {
                halt.check()?;
                let name = table.name().to_uppercase();
                work.session.execute("gather statistics", &sql.gather_statistics(), &[&name.as_str()])?;
            }
            Ok(())
        })
    }
}
