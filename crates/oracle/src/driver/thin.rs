//! Oracle's own driver in Rust, which needs no client.

use std::path::Path;
use std::time::Duration;

use oracledb::{Config, Connection, ErrorKind, Statement};

use super::{
    Block, DbType, Driver, Error, Fetched, Landed, Prepared, ROOM, Row, STATEMENTS, Settings, ToDbValue, Value,
    look_at_names, look_at_wallet, with_values,
};
use ::sql::SessionId;
use model::config::oracle::OracleRole;

/// How errors of rustls begin where two sides cannot agree. They come as errors of the stream, when it is first written or read, and
/// the driver gives nothing of them but words.
const OF_TLS: [&str; 5] = [
    "invalid peer certificate",
    "peer is incompatible",
    "peer misbehaved",
    "received corrupt message",
    "received fatal alert",
];

/// Connects and logs in.
pub(super) fn connect(settings: &Settings) -> Result<(Box<dyn Driver>, Landed), Error> {
    // Two libraries in this program bring a provider each; the driver fails unless one was chosen. Another one that was
    // chosen before serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let connection = oracledb::connect(config(settings)?)?;
    let oracledb::OracleVersion(major, minor, third, fourth, fifth) = connection.version()?;
    let landed = Landed {
        instance: connection.instance_name()?.to_owned(),
        version: [major, minor, third, fourth, fifth],
        id: SessionId { number: connection.session_id()? as u64, serial: Some(connection.serial_num()? as u64) },
    };
    Ok((Box::new(connection), landed))
}

fn config(settings: &Settings) -> Result<Config, Error> {
    let Settings {
        driver: _,
        user,
        password,
        role,
        connect_string,
        connect_timeout,
        tns_admin,
        wallet,
        wallet_password,
        program,
    } = settings;
    let mut config = Config::default()
        .set_credentials(user, password.expose())
        .set_driver_name(concat!("plimsoll ", env!("CARGO_PKG_VERSION")))
        .set_program(program.as_str())?
        .set_stmtcachesize(STATEMENTS as usize)
        .set_transport_connect_timeout(Some(*connect_timeout));
    // A name, since no name begins so.
    let is_name = !connect_string.starts_with('(');
    if let Some(directory) = tns_admin {
        if is_name {
            look_at_names(directory)?;
        }
        config = config.set_config_dir(directory);
    }
    if let Some(wallet) = wallet {
        look_at_wallet(wallet)?;
        config = config.set_wallet_location(wallet.to_string_lossy());
    }
    if let Some(password) = wallet_password {
        config = config.set_wallet_password(password.expose());
    }
    config = match role {
        Some(OracleRole::Sysdba) => config.set_auth_mode(oracledb::AUTH_MODE_SYSDBA),
        Some(OracleRole::Sysoper) => config.set_auth_mode(oracledb::AUTH_MODE_SYSOPER),
        None => config,
    };
    config.set_connect_string(connect_string).map_err(|error| misunderstood(error, tns_admin.as_deref()))
}

/// What an error means that arose before anybody was asked. The driver's words repeat the whole descriptor, which is nobody's affair.
fn misunderstood(error: oracledb::Error, tns_admin: Option<&str>) -> Error {
    let names = |why: &str| Error::Names {
        file: Path::new(tns_admin.unwrap_or_default()).join("tnsnames.ora").display().to_string(),
        why: why.to_owned(),
    };
    match error.kind() {
        ErrorKind::ParseError(_, at) => {
            Error::Descriptor(format!("a bracket or a value is missing, or is one too many, at character {at}"))
        }
        ErrorKind::InvalidConnectString(_, why) => Error::Descriptor(why.clone()),
        ErrorKind::InvalidDescriptorNode(name, _) => Error::Descriptor(format!("{name} cannot be what stands there")),
        ErrorKind::IfileCycleDetected(..) => names("it includes itself (IFILE)"),
        ErrorKind::StreamOperation => names(&words(&error)),
        _ => error.into(),
    }
}

/// What a panic means: the driver has three while it connects, and each has a cause that can be named.
pub(super) fn given_up(said: &str) -> Error {
    match said {
        _ if said.contains("not yet implemented") => Error::NativeEncryption,
        _ if said.contains("InvalidDnsName") => {
            Error::Tls("the host has a name that no certificate can have".to_owned())
        }
        _ => Error::OldVerifier,
    }
}

/// A number that is unknown, which has the type of one all the same.
const NO_NUMBER: Option<i64> = None;

/// A value as the driver takes it.
fn bound<'a>(value: &'a Value<'_>) -> &'a dyn oracledb::ToDbValue {
    match value {
        Value::Number(number) => number,
        Value::Signed(number) => number,
        Value::Text(text) => text,
        Value::Bytes(bytes) => bytes,
        Value::NoNumber => &NO_NUMBER,
        Value::Out(DbType::Number) => &oracledb::DB_TYPE_NUMBER,
        Value::Out(DbType::Text) => &oracledb::DB_TYPE_VARCHAR,
        Value::Out(DbType::Bytes) => &oracledb::DB_TYPE_RAW,
    }
}

/// Has `work` do something with the values, which need no room on the heap unless they are many.
fn with_bound<T>(values: &[&dyn ToDbValue], work: impl FnOnce(&[&dyn oracledb::ToDbValue]) -> T) -> T {
    with_values(values, |values| {
        let mut room: [&dyn oracledb::ToDbValue; ROOM] = [&0_u64; ROOM];
        match room.get_mut(..values.len()) {
            Some(places) => {
                for (place, value) in places.iter_mut().zip(values) {
                    *place = bound(value);
                }
                work(places)
            }
            None => work(&values.iter().map(bound).collect::<Vec<_>>()),
        }
    })
}

/// Columns that stand behind those of a query of many rows.
const ADDED: usize = 1;

impl Driver for Connection {
    fn name_work(&self, module: &str, action: &str) -> Result<(), Error> {
        self.set_module(module)?;
        Ok(self.set_action(action)?)
    }

    fn limit_calls(&self, limit: Option<Duration>) -> Result<(), Error> {
        Ok(self.set_call_timeout(limit)?)
    }

    fn execute(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<u64, Error> {
        Ok(with_bound(values, |values| self.execute(sql, values))?.rows_affected())
    }

    fn call(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<Row, Error> {
        Ok(Row(Fetched::Thin(with_bound(values, |values| self.execute(sql, values))?.out_bind_data(), 0)))
    }

    fn execute_for_each(&self, sql: &str, rows: &[&[&dyn ToDbValue]]) -> Result<u64, Error> {
        let rows: Vec<Vec<Value<'_>>> =
            rows.iter().map(|values| values.iter().map(|value| value.value()).collect()).collect();
        let rows: Vec<Vec<&dyn oracledb::ToDbValue>> =
            rows.iter().map(|values| values.iter().map(bound).collect()).collect();
        let rows: Vec<&[&dyn oracledb::ToDbValue]> = rows.iter().map(Vec::as_slice).collect();
        Ok(self.execute_batch(sql, rows.as_slice())?.rows_affected())
    }

    /// A server leaves out what a row has in common with the row before, and the driver forgets to forget which columns those were.
    /// A column that is the same in all rows has each row say so again; it comes last, where nobody looks.
    fn query(
        &self,
        sql: &str,
        values: &[&dyn ToDbValue],
        rows_at_once: u32,
        take: &mut dyn FnMut(&Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let sql = format!("SELECT q.*, 1 FROM ({sql}) q");
        let statement = self.statement(&sql)?.prefetch_rows(rows_at_once).fetch_array_size(rows_at_once).build()?;
        for row in with_bound(values, |values| statement.query(values))? {
            take(&Row(Fetched::Thin(row?, ADDED)))?;
        }
        Ok(())
    }

    /// The driver keeps the statement prepared by its text, unless it has seen the end of the rows.
    fn first(&self, sql: &str, values: &[&dyn ToDbValue]) -> Result<Row, Error> {
        let statement = self.statement(sql)?.prefetch_rows(1).build()?;
        Ok(Row(Fetched::Thin(with_bound(values, |values| statement.query_row(values))?, 0)))
    }

    fn prepare(&self, sql: &str) -> Result<Prepared, Error> {
        Ok(Box::new(Held(Some(self.statement(sql)?.build()?))))
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

/// A statement that is not dropped on the way up from a panic. The driver panics where a call takes too long in the middle of a
/// packet; its statements then panic again when they are dropped, which would end the whole program.
struct Held(Option<Statement>);

impl Drop for Held {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::mem::forget(self.0.take());
        }
    }
}

impl Block for Held {
    fn call(&mut self, values: &[&dyn ToDbValue]) -> Result<Row, Error> {
        let statement = self.0.as_mut().expect("only a drop takes it");
        Ok(Row(Fetched::Thin(with_bound(values, |values| statement.execute(values))?.out_bind_data(), 0)))
    }
}

impl From<oracledb::Error> for Error {
    fn from(error: oracledb::Error) -> Self {
        match error.kind() {
            ErrorKind::DbError(refusal) => {
                let code = u32::try_from(refusal.code()).unwrap_or(0);
                Self::Refused { code, message: refusal.message().to_owned() }
            }
            ErrorKind::NoDataFound => Self::NoRow,
            ErrorKind::DeadConnection => Self::Closed,
            ErrorKind::StreamOperation if OF_TLS.iter().any(|begin| words(&error).starts_with(begin)) => {
                Self::Tls(words(&error))
            }
            ErrorKind::StreamOperation | ErrorKind::OutOfData | ErrorKind::NotConnected => Self::Broken(words(&error)),
            ErrorKind::CallTimeoutExceeded => Self::TookTooLong,
            ErrorKind::UnableToRecover => Self::Silent,
            ErrorKind::InvalidServiceName(_, service, ..) => Self::UnknownService(service.clone()),
            ErrorKind::InvalidSid(_, sid, ..) => Self::UnknownSid(sid.clone()),
            ErrorKind::ListenerRefusedConnection(_, _, _, code) => Self::ListenerRefused(*code),
            ErrorKind::TnsAliasNotFound(file, alias) => Self::UnknownAlias { file: file.clone(), alias: alias.clone() },
            ErrorKind::NoConfigDir => Self::NoAliases,
            ErrorKind::ServerVersionNotSupported => Self::TooOld,
            ErrorKind::WalletUnreadable(file) => {
                Self::Wallet { file: file.clone(), why: "it may not be read, or is not text".to_owned() }
            }
            ErrorKind::WalletPrivateKeyInvalid(_) => {
                Self::Wallet { file: "ewallet.pem".to_owned(), why: "the private key in it is damaged".to_owned() }
            }
            ErrorKind::WalletPasswordMissingOrInvalid(file, _) => Self::WalletPassword(file.clone()),
            ErrorKind::TlsOperation => Self::Tls(words(&error)),
            _ => Self::Other(words(&error)),
        }
    }
}

/// What an error says, without the driver's own words before the cause.
fn words(error: &oracledb::Error) -> String {
    let text = error.to_string();
    text.split_once(" operation failed: ").map_or(text.as_str(), |(_, cause)| cause).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_while_connecting_is_told_by_its_cause() {
        let name = rustls::pki_types::ServerName::try_from("no name").unwrap_err();
        let said = format!("called `Result::unwrap()` on an `Err` value: {name:?}");
        assert!(matches!(given_up(&said), Error::Tls(words) if words.contains("certificate")));
        assert_eq!(given_up("not yet implemented"), Error::NativeEncryption);
        assert_eq!(given_up("called `Option::unwrap()` on a `None` value"), Error::OldVerifier);
    }

    #[test]
    fn values_go_to_the_driver_as_what_they_are_however_many_there_are() {
        let (text, bytes): (&str, &[u8]) = ("x", &[1, 2, 3]);
        let few: [&dyn ToDbValue; 7] = [&7_u64, &7_u32, &-7_i64, &text, &bytes, &DbType::Text, &DbType::Bytes];
        let kinds = |values: &[&dyn ToDbValue]| {
            with_bound(values, |bound| bound.iter().map(|value| value.max_size()).collect::<Vec<_>>())
        };
        assert_eq!(kinds(&few), [0, 0, 0, 1, 3, 4000, 4000]);
        let many: Vec<&dyn ToDbValue> = few.iter().copied().cycle().take(ROOM + 4).collect();
        let expected: Vec<usize> = kinds(&few).into_iter().cycle().take(ROOM + 4).collect();
        assert_eq!(kinds(&many), expected);
        assert_eq!(kinds(&[]), [0; 0]);
    }
}
