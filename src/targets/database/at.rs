//! Which database an address names: the one place that knows them all.

use super::{Database, DatabaseOptions};
use crate::config::TargetAddress;
use crate::targets::TargetError;
use crate::targets::embedded::EngineDirectory;
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
        TargetAddress::PrivateCluster(directory) => {
            sql::<postgres::Connector>(Place::Private(directory.clone()), shown, options)
        }
        TargetAddress::Postgres(servers) => sql::<postgres::Connector>(Place::Servers(servers.clone()), shown, options),
    })
}

fn sql<D: Dialect>(place: Place<D::Address>, address: String, options: &DatabaseOptions) -> Box<dyn Database> {
    Box::new(SqlDatabase::<D>::new(place, address, options))
}
