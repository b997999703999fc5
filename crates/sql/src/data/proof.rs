//! Why rows do not lie as the SLOB method needs them: one that is addressed in each block, scattered, read one by one through
//! the index.
//!
//! It is looked at before every run. Data that do not lie so would still give numbers, but of something else; so a run on them is
//! refused, with the reason and the cure.

use std::collections::BTreeMap;

use super::access::Access;
use super::catalog::SqlData;
use targets::TargetError;

/// Growth of a table that still is the same shape: one part in this many.
pub(crate) const ALLOWED_PART: u64 = 100;
/// Rows of each table that are really looked at.
pub const SAMPLE_KEYS: u64 = 32;
/// Faults whose reasons are reported; all are counted.
const REPORTED_FAULTS: usize = 3;

/// What a proof gives the record, and what the user should know.
#[derive(Debug, Clone, PartialEq)]
pub struct Proven {
    /// Facts for the record, by name.
    pub facts: BTreeMap<String, String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Why data do not lie as they must, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    reason: String,
    cure: String,
}

impl Fault {
    /// A fault and what removes it.
    pub fn new(reason: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { reason: reason.into(), cure: cure.into() }
    }

    /// Where only making the data again helps.
    pub fn beyond_repair(reason: impl Into<String>) -> Self {
        Self::new(reason, "make the data again: `plimsoll slob setup --replace`")
    }
}

/// Refuses data with faults, with the first reasons and the first cure.
///
/// # Errors
/// When there are any.
pub fn refuse<C: SqlData>(access: &Access<'_, C>, faults: &[Fault]) -> Result<(), TargetError> {
    let Some(first) = faults.first() else { return Ok(()) };
    let mut reasons: Vec<&str> = faults.iter().take(REPORTED_FAULTS).map(|fault| fault.reason.as_str()).collect();
    let unreported = format!("{} more like these", faults.len() - reasons.len());
    if faults.len() > reasons.len() {
        reasons.push(&unreported);
    }
    let what = format!("the data in {} do not lie as the SLOB method needs: {}", access.place(), reasons.join("; "));
    Err(access.unfit(what, first.cure.clone()))
}

/// Keys that a table ends with, where others belong, in words.
pub fn wrong_ends(table: &str, (first, last): (Option<i64>, Option<i64>), wanted: [u64; 2]) -> String {
    let shown = |key: Option<i64>| key.map_or_else(|| "none".to_owned(), |key| key.to_string());
    let [from, to] = wanted;
    format!("keys of {table} go from {} to {} instead of {from} to {to}", shown(first), shown(last))
}
