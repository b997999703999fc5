//! Which database an address names: the one place that knows them all.

use std::sync::atomic::AtomicBool;

use durable::directory::CommitDirectory;
use durable::opening::FileCommits;
use model::config::TargetAddress;
use sql::database::durable::SqlCommits;
use sql::database::{AddressOf, Dialect, Place, SqlDatabase};
use sql::orders::OrdersDialect;
use sql::orders::load::Statement;
use sql::{mysql, postgres};
use targets::TargetError;
use targets::database::{Database, DatabaseOptions, Examination, IoCalibration, IoCalibrationRequest};
use targets::durable::CommitTarget;
use targets::embedded::EngineDirectory;
use targets::orders::OrdersDatabase;
use targets::simulated::SimulatedDatabase;

/// The database for the SLOB method at an address. Nothing is reached or started yet.
///
/// # Errors
/// When the address cannot be used as it stands.
pub fn slob(address: &TargetAddress, options: &DatabaseOptions) -> Result<Box<dyn Database>, TargetError> {
    let shown = address.to_string();
    Ok(match address {
        TargetAddress::Directory(path) => Box::new(EngineDirectory::new(path.clone(), options)),
        TargetAddress::Simulated(pairs) => Box::new(SimulatedDatabase::new(pairs, shown)?),
        TargetAddress::PrivateMysql(directory) => {
            slob_on::<mysql::Connector>(Place::Private(directory.clone()), shown, options)
        }
        TargetAddress::Mysql(servers) => slob_on::<mysql::Connector>(Place::Servers(servers.clone()), shown, options),
        #[cfg(feature = "oracle")]
        TargetAddress::Oracle(servers) => slob_on::<oracle::Connector>(Place::Servers(servers.clone()), shown, options),
        #[cfg(not(feature = "oracle"))]
        TargetAddress::Oracle(_) => return Err(TargetError::NoOracleDriver { address: shown }),
        TargetAddress::PrivateCluster(directory) => {
            slob_on::<postgres::Connector>(Place::Private(directory.clone()), shown, options)
        }
        TargetAddress::Postgres(servers) => {
            slob_on::<postgres::Connector>(Place::Servers(servers.clone()), shown, options)
        }
    })
}

/// Looks at everything about the database at an address that matters to a measurement, and changes nothing there. `say` hears what
/// takes long.
///
/// # Errors
/// When it cannot be asked, or when nothing looks at such databases yet.
pub fn examine(address: &TargetAddress, say: &dyn Fn(&str), stop: &AtomicBool) -> Result<Examination, TargetError> {
    match address {
        #[cfg(feature = "oracle")]
        TargetAddress::Oracle(servers) => oracle::examine(servers, say, stop),
        other => {
            let _ = (say, stop);
            Err(oracle_only("slob doctor", other))
        }
    }
}

/// Settles on the database at an address what is not known of any, by a table that is made and removed. `confirm` hears each step
/// before it is done, and says whether it may be.
///
/// # Errors
/// When it cannot be asked, or when nothing is asked of such databases.
pub fn first_contact(
    address: &TargetAddress,
    confirm: &(dyn Fn(&str) -> Result<bool, TargetError> + Sync),
    stop: &AtomicBool,
) -> Result<Examination, TargetError> {
    match address {
        #[cfg(feature = "oracle")]
        TargetAddress::Oracle(servers) => oracle::first_contact(servers, confirm, stop),
        other => {
            let _ = (confirm, stop);
            Err(oracle_only("--first-contact", other))
        }
    }
}

/// What [`first_contact`] sends, as a script for SQL*Plus.
///
/// # Errors
/// When this build does not know it.
pub fn first_contact_script() -> Result<String, TargetError> {
    #[cfg(feature = "oracle")]
    return Ok(oracle::first_contact_script());
    #[cfg(not(feature = "oracle"))]
    Err(TargetError::NoOracleDriver { address: "oracle://…".to_owned() })
}

/// Has the database at an address calibrate its own storage once, which takes minutes.
///
/// # Errors
/// When it cannot be asked or refuses, or when such databases have nothing of the kind.
pub fn calibrate_io(
    address: &TargetAddress,
    request: &IoCalibrationRequest,
    stop: &AtomicBool,
) -> Result<IoCalibration, TargetError> {
    match address {
        #[cfg(feature = "oracle")]
        TargetAddress::Oracle(servers) => oracle::calibrate_io(servers, request, stop),
        other => {
            let _ = (request, stop);
            Err(oracle_only("CALIBRATE_IO", other))
        }
    }
}

/// Why something cannot be had that only Oracle has.
fn oracle_only(what: &'static str, address: &TargetAddress) -> TargetError {
    let shown = address.to_string();
    match address {
        TargetAddress::Oracle(_) => TargetError::NoOracleDriver { address: shown },
        _ => TargetError::OracleOnly { what, address: shown },
    }
}

/// The database for order entry at an address. Nothing is reached or started yet.
///
/// # Errors
/// When nothing keeps order entry there.
pub fn orders(address: &TargetAddress, options: &DatabaseOptions) -> Result<Box<dyn OrdersDatabase>, TargetError> {
    let shown = address.to_string();
    Ok(match address {
        TargetAddress::Directory(_) | TargetAddress::Simulated(_) => {
            return Err(TargetError::NoOrders { address: shown });
        }
        #[cfg(feature = "oracle")]
        TargetAddress::Oracle(servers) => {
            orders_on::<oracle::Connector>(Place::Servers(servers.clone()), shown, options)
        }
        #[cfg(not(feature = "oracle"))]
        TargetAddress::Oracle(_) => return Err(TargetError::NoOracleDriver { address: shown }),
        TargetAddress::PrivateMysql(directory) => {
            orders_on::<mysql::Connector>(Place::Private(directory.clone()), shown, options)
        }
        TargetAddress::Mysql(servers) => orders_on::<mysql::Connector>(Place::Servers(servers.clone()), shown, options),
        TargetAddress::PrivateCluster(directory) => {
            orders_on::<postgres::Connector>(Place::Private(directory.clone()), shown, options)
        }
        TargetAddress::Postgres(servers) => {
            orders_on::<postgres::Connector>(Place::Servers(servers.clone()), shown, options)
        }
    })
}

/// What keeps commits at an address that must outlast a power failure; `files` is what they are in files. Nothing is reached,
/// started or made yet. `None` where nothing keeps such commits. Devices have no such address: [`durable::device`].
pub fn commits(
    address: &TargetAddress,
    options: &DatabaseOptions,
    files: FileCommits,
) -> Option<Box<dyn CommitTarget>> {
    let shown = address.to_string();
    Some(match address {
        TargetAddress::Directory(path) => Box::new(CommitDirectory::new(path.clone(), files)),
        TargetAddress::PrivateMysql(directory) => {
            Box::new(SqlCommits::<mysql::Connector>::new(Place::Private(directory.clone()), shown, options))
        }
        TargetAddress::Mysql(servers) => {
            Box::new(SqlCommits::<mysql::Connector>::new(Place::Servers(servers.clone()), shown, options))
        }
        TargetAddress::PrivateCluster(directory) => {
            Box::new(SqlCommits::<postgres::Connector>::new(Place::Private(directory.clone()), shown, options))
        }
        TargetAddress::Postgres(servers) => {
            Box::new(SqlCommits::<postgres::Connector>::new(Place::Servers(servers.clone()), shown, options))
        }
        TargetAddress::Simulated(_) | TargetAddress::Oracle(_) => return None,
    })
}

/// The statements of transactions as the server at an address gets them, each after its name, with data in this namespace, for
/// sending the same by other means.
///
/// # Errors
/// When nothing keeps order entry there.
pub fn statements(address: &TargetAddress, namespace: &str) -> Result<Vec<(String, String)>, TargetError> {
    let text: fn(Statement, &str) -> String = match address {
        TargetAddress::PrivateMysql(_) | TargetAddress::Mysql(_) => Statement::text::<mysql::Connector>,
        TargetAddress::PrivateCluster(_) | TargetAddress::Postgres(_) => Statement::text::<postgres::Connector>,
        #[cfg(feature = "oracle")]
        TargetAddress::Oracle(_) => Statement::text::<oracle::Connector>,
        #[cfg(not(feature = "oracle"))]
        TargetAddress::Oracle(_) => return Err(TargetError::NoOracleDriver { address: address.to_string() }),
        TargetAddress::Directory(_) | TargetAddress::Simulated(_) => {
            return Err(TargetError::NoOrders { address: address.to_string() });
        }
    };
    Ok(Statement::ALL.into_iter().map(|statement| (format!("{statement:?}"), text(statement, namespace))).collect())
}

fn slob_on<D: Dialect>(place: Place<AddressOf<D>>, address: String, options: &DatabaseOptions) -> Box<dyn Database> {
    Box::new(SqlDatabase::<D>::new(place, address, options))
}

fn orders_on<D: OrdersDialect>(
    place: Place<AddressOf<D>>,
    address: String,
    options: &DatabaseOptions,
) -> Box<dyn OrdersDatabase> {
    Box::new(SqlDatabase::<D>::new(place, address, options))
}
