//! Rows of answers.

#[cfg(feature = "oci")]
use super::cells::{Cells, OfCell};
use super::error::Error;

/// A row, or what a block has put out.
pub(crate) struct Row(pub(super) Fetched);

/// Whose row it is.
pub(super) enum Fetched {
    /// With so many columns at its end that nobody asked for.
    Thin(oracledb::Row, usize),
    #[cfg(feature = "oci")]
    Oci(Cells),
}

/// What a column can be read as; `Option` of it where the column may be NULL.
#[cfg(not(feature = "oci"))]
pub(crate) trait FromDbValue: for<'a> oracledb::FromDbValue<'a> {}

#[cfg(not(feature = "oci"))]
impl<T: for<'a> oracledb::FromDbValue<'a>> FromDbValue for T {}

/// What a column can be read as; `Option` of it where the column may be NULL.
#[cfg(feature = "oci")]
pub(crate) trait FromDbValue: for<'a> oracledb::FromDbValue<'a> + OfCell {}

#[cfg(feature = "oci")]
impl<T: for<'a> oracledb::FromDbValue<'a> + OfCell> FromDbValue for T {}

impl Row {
    /// A column, counted from 0. Numbers can be read as text too.
    ///
    /// # Errors
    /// When it is not there, is NULL, or something else.
    pub(crate) fn get<T: FromDbValue>(&self, column: usize) -> Result<T, Error> {
        match &self.0 {
            Fetched::Thin(row, _) => Ok(row.get(column)?),
            #[cfg(feature = "oci")]
            Fetched::Oci(cells) => cells.get(column),
        }
    }

    /// How many columns were asked for.
    pub(crate) fn width(&self) -> usize {
        match &self.0 {
            Fetched::Thin(row, added) => row.columns().len() - added,
            #[cfg(feature = "oci")]
            Fetched::Oci(cells) => cells.0.len(),
        }
    }

    /// The bytes of a column, or none if it is NULL.
    ///
    /// # Errors
    /// When it is not there, or something else.
    pub(crate) fn bytes(&self, column: usize) -> Result<&[u8], Error> {
        match &self.0 {
            Fetched::Thin(row, _) => Ok(row.get::<Option<&[u8]>>(column)?.unwrap_or_default()),
            #[cfg(feature = "oci")]
            Fetched::Oci(cells) => cells.bytes(column),
        }
    }
}
