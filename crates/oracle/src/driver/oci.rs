//! An installed Oracle client, by ODPI-C, which loads it when it is first used.
//!
//! Nobody has tried this on a server: there is neither one nor a client where Plimsoll is built.

use std::time::Duration;

use odpi::sql_type::{OracleType, ToSql};
use odpi::{Connection, ErrorKind, Privilege, SqlValue, Statement};

use super::cells::{Cell, Cells};
use super::{Block, DbType, Driver, Error, Fetched, Landed, Prepared, Row, STATEMENTS, Settings, ToDbValue, Value};
use ::sql::SessionId;
use model::config::oracle::OracleRole;

/// Most bytes that a block puts out in one value, as with the other driver.
const MAX_OUT: u32 = 4000;
/// So many rows are asked for where one is wanted: then the client learns in the same round trip that there are no more.
const ONE_ROW: u32 = 2;

/// Numbers of ODPI-C's own errors: not connected, no client, a call that took too long, a connection that was closed.
const NOT_CONNECTED: i32 = 1010;
const NO_CLIENT: i32 = 1047;
const CALL_TIMEOUT: i32 = 1067;
const CLOSED: i32 = 1080;

/// Connects and logs in.
pub(super) fn connect(settings: &Settings) -> Result<(Box<dyn Driver>, Landed), Error> {
    let Settings { user, password, role, connect_string, .. } = settings;
    let mut connector = odpi::Connector::new(user.as_str(), password.expose(), connect_string.as_str());
    let driver = concat!("plimsoll : ", env!("CARGO_PKG_VERSION"));
    let connector = connector.stmt_cache_size(STATEMENTS).driver_name(driver);
    let connector = match role {
        Some(OracleRole::Sysdba) => connector.privilege(Privilege::Sysdba),
        Some(OracleRole::Sysoper) => connector.privilege(Privilege::Sysoper),
        None => connector,
    };
    let connection = connector.connect()?;
    let (version, _) = connection.server_version()?;
    let parts = [version.major(), version.minor(), version.update(), version.patch(), version.port_update()];
    let place = "SELECT SYS_CONTEXT('USERENV', 'INSTANCE_NAME'), TO_NUMBER(SYS_CONTEXT('USERENV', 'SID')) FROM DUAL";
    let place = Driver::first(&connection, place, &[])?;
    // Who may not see the sessions does not learn it.
    let serial = "SELECT serial# FROM v$session WHERE sid = TO_NUMBER(SYS_CONTEXT('USERENV', 'SID'))";
    let serial = Driver::first(&connection, serial, &[]).and_then(|row| row.get(0)).ok();
    let landed = Landed {
        instance: place.get(0)?,
        version: parts.map(|part| usize::try_from(part).unwrap_or(0)),
        id: SessionId { number: place.get(1)?, serial },
    };
    Ok((Box::new(connection), landed))
}

/// Text is bound as VARCHAR2, as the columns are. The client would take NVARCHAR2, and the server then convert the columns.
impl ToSql for Value<'_> {
    fn oratype(&self, _: &Connection) -> odpi::Result<OracleType> {
        let room = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).max(1);
        Ok(match self {
            Self::Number(_) | Self::Signed(_) | Self::NoNumber | Self::Out(DbType::Number) => OracleType::Number(0, 0),
            Self::Text(text) => OracleType::Varchar2(room(text.len())),
            Self::Bytes(bytes) => OracleType::Raw(room(bytes.len())),
            Self::Out(DbType::Text) => OracleType::Varchar2(MAX_OUT),
            Self::Out(DbType::Bytes) => OracleType::Raw(MAX_OUT),
        })
    }

    fn to_sql(&self, place: &mut SqlValue<'_>) -> odpi::Result<()> {
        match self {
            Self::Number(number) => place.set(number),
            Self::Signed(number) => place.set(number),
            Self::Text(text) => place.set(text),
            Self::Bytes(bytes) => place.set(bytes),
            Self::NoNumber | Self::Out(_) => place.set_null(),
        }
    }
}

/// Has `work` do something with the values.
fn with_bound<T>(values: &[&dyn ToDbValue], work: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
    let values: Vec<Value<'_>> = values.iter().map(|value| value.value()).collect();
    work(&values.iter().map(|value| value as &dyn ToSql).collect::<Vec<_>>())
}

/// What a statement has put out: a cell for each value that is one of the types.
fn put_out(statement: &Statement, values: &[&dyn ToDbValue]) -> Result<Row, Error> {
    let mut cells = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let Value::Out(kind) = value.value() else { continue };
        let position = at + 1;
        cells.push(match kind {
            DbType::Bytes => statement.bind_value::<_, Option<Vec<u8>>>(position)?.map_or(Cell::Null, Cell::Bytes),
            DbType::Number | DbType::Text => {
                statement.bind_value::<_, Option<String>>(position)?.map_or(Cell::Null, Cell::Text)
            }
        });
    }
    Ok(Row(Fetched::Oci(Cells(cells))))
}

fn fetched(row: &odpi::Row) -> Result<Row, Error> {
    let cell = |value: &SqlValue<'_>| match value.oracle_type()? {
        OracleType::Raw(_) | OracleType::LongRaw => Ok(value.get::<Option<_>>()?.map_or(Cell::Null, Cell::Bytes)),
        _ => Ok::<_, odpi::Error>(value.get::<Option<_>>()?.map_or(Cell::Null, Cell::Text)),
    };
    Ok(Row(Fetched::Oci(Cells(row.sql_values().iter().map(cell).collect::<Result<_, _>>()?))))
}

impl Driver for Connection {
    fn name_work(&self, module: &str, action: &str) -> Result<(), Error> {
        self.set_module(module)?;
        Ok(self.set_action(action)?)
    }

    fn limit_calls(&self, limit: Option<Duration>) -> Result<(), Error> {
        Ok(self.set_call_timeout(limit)?)
    }

    fn execute(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<u64, Error> {
        Ok(with_bound(values, |values| self.execute(sql, values))?.row_count()?)
    }

    fn call(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<Row, Error> {
        put_out(&with_bound(values, |values| self.execute(sql, values))?, values)
    }

    fn execute_for_each(&self, sql: &str, rows: &[&[&dyn ToDbValue]]) -> Result<u64, Error> {
        let mut batch = self.batch(sql, rows.len()).with_row_counts().build()?;
        for values in rows {
            with_bound(values, |values| batch.append_row(values))?;
        }
        batch.execute()?;
        Ok(batch.row_counts()?.into_iter().sum())
    }

    fn query(
        &self,
        sql: &str,
        values: &[&dyn ToDbValue],
        rows_at_once: u32,
        take: &mut dyn FnMut(&Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut statement = self.statement(sql).fetch_array_size(rows_at_once).prefetch_rows(rows_at_once).build()?;
        for row in with_bound(values, |values| statement.query(values))? {
            take(&fetched(&row?)?)?;
        }
        Ok(())
    }

    fn first(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<Row, Error> {
        let mut statement = self.statement(sql).fetch_array_size(ONE_ROW).prefetch_rows(ONE_ROW).build()?;
        fetched(&with_bound(values, |values| statement.query_row(values))?)
    }

    fn prepare(&self, sql: &str) -> Result<Prepared, Error> {
        Ok(Box::new(self.statement(sql).build()?))
    }

    fn ping(&self) -> Result<(), Error> {
        Ok(self.ping()?)
    }

    fn commit(&self) -> Result<(), Error> {
        Ok(self.commit()?)
    }

    fn rollback(&self) -> Result<(), Error> {
        Ok(self.rollback()?)
    }
}

impl Block for Statement {
    fn call(&mut self, values: &[&dyn ToDbValue]) -> Result<Row, Error> {
        with_bound(values, |values| self.execute(values))?;
        put_out(self, values)
    }
}

impl From<odpi::Error> for Error {
    fn from(error: odpi::Error) -> Self {
        if error.kind() == ErrorKind::NoDataFound {
            return Self::NoRow;
        }
        let message = error.db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
        match (error.oci_code().and_then(|code| u32::try_from(code).ok()), error.dpi_code()) {
            (Some(code), _) => Self::Refused { code, message },
            (_, Some(NO_CLIENT)) => Self::NoClient(message),
            (_, Some(CALL_TIMEOUT)) => Self::TookTooLong,
            (_, Some(NOT_CONNECTED | CLOSED)) => Self::Broken(message),
            _ => Self::Other(message),
        }
    }
}
