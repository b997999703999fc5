//! HammerDB: logs of its command line and of its windows, time profiles, and the log of its transaction counter.

pub(super) mod counter;
pub(super) mod log;
mod profile;
pub(super) mod report;
mod test;
#[cfg(test)]
mod tests;
pub(super) mod timing;

/// A database by the name that targets have.
fn target_kind(database: &str) -> String {
    match database.to_ascii_lowercase().as_str() {
        "postgresql" => "postgres".to_owned(),
        other => other.to_owned(),
    }
}
