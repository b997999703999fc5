//! Where a data set is, or is to be.

use std::fmt::Debug;

use crate::SqlError;
use targets::TargetError;

/// Makes connections to the servers of one address. Each room has its own, and by its type all that is SQL of that room is found.
pub trait SqlConnector: Clone + Debug + Send + Sync + 'static {
    /// Why something about its servers cannot be done.
    type Error: SqlError;
    /// What holds data sets on such servers: `schema`, `database`.
    const HOLDER: &'static str;
    /// How another one is named.
    const HOLDER_OPTION: &'static str;

    /// The servers' names, at least one.
    fn node_names(&self) -> Vec<String>;
}

/// Where a data set is, or is to be.
#[derive(Debug)]
pub struct Access<'a, C> {
    /// Makes the connections.
    pub connector: &'a C,
    /// Number of the server.
    pub node: usize,
    /// What holds the data, by its name without quotes: see [`SqlConnector::HOLDER`].
    pub namespace: &'a str,
}

impl<C> Clone for Access<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Access<'_, C> {}

impl<'a, C: SqlConnector> Access<'a, C> {
    /// In the namespace of this name on the first server.
    pub fn new(connector: &'a C, namespace: &'a str) -> Self {
        Self { connector, node: 0, namespace }
    }

    /// Name of the server.
    pub fn node_name(&self) -> String {
        self.connector.node_names().swap_remove(self.node)
    }

    /// ``the schema `x` on `db1:5432` ``
    pub fn place(&self) -> String {
        format!("the {} `{}` on `{}`", C::HOLDER, self.namespace, self.node_name())
    }

    /// What cannot be because of what is on the server.
    pub fn unfit(&self, what: impl Into<String>, hint: impl Into<String>) -> TargetError {
        C::Error::unfit(what.into(), Some(hint.into())).into()
    }

    /// The same, where another place would do: `hint` is followed by how that is named.
    pub fn unfit_here(&self, what: impl Into<String>, hint: &str) -> TargetError {
        self.unfit(what, format!("{hint} another {}: {}", C::HOLDER, C::HOLDER_OPTION))
    }
}
