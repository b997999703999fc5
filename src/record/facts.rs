//! Names of those facts about a target, and of parameters, by which the analysis decides. All others are for readers only.

/// The database's own number.
pub const DATABASE_ID: &str = "db_id";
/// The containers that a report of a database is on: one alone in a report on a pluggable database, which bears the number of
/// the database that holds it.
pub const CONTAINERS: &str = "containers";
/// Which steps are jobs that ran at the same time: how many, if all of them did; else for each step a word that those which
/// ran together have in common, or [`TOGETHER_UNREPORTED`].
pub const JOBS_AT_ONCE: &str = "jobs_at_once";
/// The word of a step that ran beside others for a time that is not reported.
pub const TOGETHER_UNREPORTED: &str = "?";
/// Parameter of a step that loads some of several volumes: their letters, joined by [`VOLUMES_JOIN`], such as `A` or `A+B`.
pub const VOLUMES: &str = "VOLUMES";
/// What stands between the letters of volumes.
pub const VOLUMES_JOIN: &str = "+";
/// Fact whose name ends in the letter of a volume: the path that it is.
pub const VOLUME_PATH: &str = "volume_";
/// Devices that lie below several volumes that are loaded together, blanks between them.
pub const DEVICES_SHARED: &str = "devices_shared";
