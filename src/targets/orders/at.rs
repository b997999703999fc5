//! Which database an address names, for order entry.

use super::OrdersDatabase;
use crate::config::TargetAddress;
use crate::targets::TargetError;
use crate::targets::database::DatabaseOptions;
#[cfg(feature = "oracle")]
use crate::targets::oracle;
use crate::targets::sql::database::{Place, SqlDatabase};
use crate::targets::sql::orders::OrdersDialect;
use crate::targets::sql::orders::load::Statement;
use crate::targets::{mysql, postgres};

/// The database at an address. Nothing is reached or started yet.
///
/// # Errors
/// When nothing keeps order entry there.
pub fn at(address: &TargetAddress, options: &DatabaseOptions) -> Result<Box<dyn OrdersDatabase>, TargetError> {
    let shown = address.to_string();
    Ok(match address {
        TargetAddress::Directory(_) | TargetAddress::Simulated(_) => {
            return Err(TargetError::NoOrders { address: shown });
        }
        #[cfg(feature = "oracle")]
        TargetAddress::Oracle(servers) => sql::<oracle::Connector>(Place::Servers(servers.clone()), shown, options),
        #[cfg(not(feature = "oracle"))]
        TargetAddress::Oracle(_) => return Err(TargetError::NoOracleDriver { address: shown }),
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

/// The statements of transactions as the server at an address gets them, each after its name, with data in this namespace: for
/// whoever sends the same by other means.
///
/// # Errors
/// When nothing keeps order entry there.
pub fn statements(address: &TargetAddress, namespace: &str) -> Result<Vec<(String, String)>, TargetError> {
    let text: fn(&str, Statement) -> String = match address {
        TargetAddress::PrivateMysql(_) | TargetAddress::Mysql(_) => mysql::Connector::statement,
        TargetAddress::PrivateCluster(_) | TargetAddress::Postgres(_) => postgres::Connector::statement,
        #[cfg(feature = "oracle")]
        TargetAddress::Oracle(_) => oracle::Connector::statement,
        #[cfg(not(feature = "oracle"))]
        TargetAddress::Oracle(_) => return Err(TargetError::NoOracleDriver { address: address.to_string() }),
        TargetAddress::Directory(_) | TargetAddress::Simulated(_) => {
            return Err(TargetError::NoOrders { address: address.to_string() });
        }
    };
    Ok(Statement::ALL.into_iter().map(|statement| (format!("{statement:?}"), text(namespace, statement))).collect())
}

fn sql<D: OrdersDialect>(
    place: Place<D::Address>,
    address: String,
    options: &DatabaseOptions,
) -> Box<dyn OrdersDatabase> {
    Box::new(SqlDatabase::<D>::new(place, address, options))
}
