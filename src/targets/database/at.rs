//! Which database an address names: the one place that knows them all.

use super::{Database, DatabaseOptions};
use crate::config::TargetAddress;
use crate::targets::TargetError;
use crate::targets::embedded::EngineDirectory;
use crate::targets::mysql::MysqlDatabase;
use crate::targets::postgres::PostgresDatabase;
use crate::targets::simulated::SimulatedDatabase;

/// The database at an address. Nothing is reached or started yet.
///
/// # Errors
/// When the address cannot be used as it stands.
pub fn at(address: &TargetAddress, options: &DatabaseOptions) -> Result<Box<dyn Database>, TargetError> {
    Ok(match address {
        TargetAddress::Directory(path) => Box::new(EngineDirectory::new(path.clone(), options)),
        TargetAddress::Simulated(pairs) => Box::new(SimulatedDatabase::new(pairs, address.to_string())?),
        TargetAddress::PrivateMysql(_) | TargetAddress::Mysql(_) => {
            Box::new(MysqlDatabase::new(address.clone(), options))
        }
        TargetAddress::PrivateCluster(_) | TargetAddress::Postgres(_) => {
            Box::new(PostgresDatabase::new(address.clone(), options))
        }
    })
}
