//! The proof that rows lie as the SLOB method needs them: one row a block, scattered, read one by one through the index.
//!
//! It is made before every run, from the catalogues and a small sample. Data that do not lie so would still give numbers,
//! but of something else; so a run on them is refused, with the reason and the cure.

mod layout;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::descriptor::DataSet;
use super::session::{Access, Session};
use crate::data::proof::refuse;
use targets::TargetError;

/// What was proven of the tables that load will use.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// Rows of all of them.
    pub rows: u64,
    /// Blocks of all of them.
    pub pages: u64,
    /// Blocks of their indexes.
    pub index_pages: u64,
    /// The correlation of keys and blocks farthest from 0, from -1 to 1; unknown where no table is large enough for it to
    /// mean anything.
    pub correlation: Option<f64>,
    /// What the user should know, such as tables that earlier runs let grow a little.
    pub notes: Vec<String>,
}

impl Proof {
    /// For the record.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::from(
            [
                ("layout.rows", self.rows.to_string()),
                ("layout.pages", self.pages.to_string()),
                ("layout.index_pages", self.index_pages.to_string()),
                ("layout.plan", "index scan".to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        if let Some(correlation) = self.correlation {
            facts.insert("layout.correlation".to_owned(), format!("{correlation:.4}"));
        }
        facts
    }
}

/// Proves how the tables of the first `schemas` schemas lie, in a session as the load's are.
///
/// # Errors
/// The reason and the cure if they lie otherwise; or why the server cannot be asked.
pub(crate) fn prove(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Proof, TargetError> {
    let session = Session::open_as_load(*access)?;
    let schemas = schemas.min(data.schemas);
    let (proof, mut faults) = layout::prove(&session, data, schemas)?;
    // Without its index a table cannot be planned for.
    if faults.is_empty() {
        faults = plan::check(&session, data, schemas)?;
    }
    refuse(access, &faults)?;
    Ok(proof)
}
