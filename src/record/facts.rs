//! Names of those facts about a target which importers write and the analysis decides by. All others are for readers only.

/// The database's own number.
pub const DATABASE_ID: &str = "db_id";
/// The containers that a report of a database is on: one alone in a report on a pluggable database, which bears the number of
/// the database that holds it.
pub const CONTAINERS: &str = "containers";
/// Which steps are jobs that ran at the same time: how many, if all of them did; else for each step a word that those which
/// ran together have in common, or [`TOGETHER_UNTOLD`].
pub const JOBS_AT_ONCE: &str = "jobs_at_once";
/// The word of a step that ran beside others for a time that is not told.
pub const TOGETHER_UNTOLD: &str = "?";
