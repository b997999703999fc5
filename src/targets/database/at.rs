//! Which database an address names: the one place that knows them all.

use std::sync::atomic::AtomicBool;

use super::{Database, DatabaseOptions, Examination, IoCalibration, IoCalibrationRequest};
use crate::config::TargetAddress;
use crate::targets::TargetError;
use crate::targets::embedded::EngineDirectory;
#[cfg(feature = "oracle")]
use crate::targets::oracle;
use crate::targets::simulated::SimulatedDatabase;
use crate::targets::sql::database::dialect::Dialect;
use crate::targets::sql::database::{Place, SqlDatabase};
use crate::targets::{mysql, postgres};

/// The database at an address. Nothing is reached or started yet.
///
/// # Errors
/// When the address cannot be used as it stands.
pub fn at(address: &TargetAddress, options: &DatabaseOptions) -> Result<Box<dyn Database>, TargetError> {
    let shown = address.to_string();
    Ok(match address {
        TargetAddress::Directory(path) => Box::new(EngineDirectory::new(path.clone(), options)),
        TargetAddress::Simulated(pairs) => Box::new(SimulatedDatabase::new(pairs, shown)?),
        TargetAddress::PrivateMysql(directory) => {
            sql::<mysql::Connector>(Place::Private(directory.clone()), shown, options)
        }
        TargetAddress::Mysql(servers) => sql::<mysql::Connector>(Place::Servers(servers.clone()), shown, options),
        #[cfg(feature = "oracle")]
        TargetAddress::Oracle(servers) => sql::<oracle::Connector>(Place::Servers(servers.clone()), shown, options),
        #[cfg(not(feature = "oracle"))]
        TargetAddress::Oracle(_) => return Err(TargetError::NoOracleDriver { address: shown }),
        TargetAddress::PrivateCluster(directory) => {
            sql::<postgres::Connector>(Place::Private(directory.clone()), shown, options)
        }
        TargetAddress::Postgres(servers) => sql::<postgres::Connector>(Place::Servers(servers.clone()), shown, options),
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

fn sql<D: Dialect>(place: Place<D::Address>, address: String, options: &DatabaseOptions) -> Box<dyn Database> {
    Box::new(SqlDatabase::<D>::new(place, address, options))
}
