//! Rows of answers.

use super::error::Error;

/// A row, or what a block has put out.
pub(in crate::targets::oracle) struct Row(pub(super) oracledb::Row);

/// What a column can be read as; `Option` of it where the column may be NULL.
pub(in crate::targets::oracle) trait FromDbValue: for<'a> oracledb::FromDbValue<'a> {}

impl<T: for<'a> oracledb::FromDbValue<'a>> FromDbValue for T {}

impl Row {
    /// A column, counted from 0. Numbers can be read as text too.
    ///
    /// # Errors
    /// When it is not there, is NULL, or something else.
    pub(in crate::targets::oracle) fn get<T: FromDbValue>(&self, column: usize) -> Result<T, Error> {
        Ok(self.0.get(column)?)
    }

    /// The bytes of a column, or none if it is NULL.
    ///
    /// # Errors
    /// When it is not there, or something else.
    pub(in crate::targets::oracle) fn bytes(&self, column: usize) -> Result<&[u8], Error> {
        Ok(self.0.get::<Option<&[u8]>>(column)?.unwrap_or_default())
    }
}
