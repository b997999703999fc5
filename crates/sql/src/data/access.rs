//! Where a data set is, or is to be.

use super::catalog::SqlData;
use crate::ServerError;
use targets::TargetError;

/// Where a data set is, or is to be.
#[derive(Debug)]
pub struct Access<'a, C> {
    /// Makes the connections.
    pub connector: &'a C,
    /// Number of the server.
    pub node: usize,
    /// What holds the data, by its name without quotes: see [`SqlData::HOLDER`].
    pub namespace: &'a str,
}

impl<C> Clone for Access<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Access<'_, C> {}

impl<'a, C: SqlData> Access<'a, C> {
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
        ServerError::unfit(what, Some(hint.into())).into()
    }

    /// The same, where another place would do: `hint` is followed by how that is named.
    pub fn unfit_here(&self, what: impl Into<String>, hint: &str) -> TargetError {
        self.unfit(what, format!("{hint} another {}: {}", C::HOLDER, C::HOLDER_OPTION))
    }
}
