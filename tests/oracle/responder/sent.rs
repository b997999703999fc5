//! What the program has sent, written down for parsers to read: `make check-plsql`.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::log::SessionLog;

/// Names the folder that statements go to; nothing is written without it.
const FOLDER: &str = "PLIMSOLL_ORACLE_SENT";
/// The name by which the program works. Tests of the driver have another.
const PROGRAM: &str = "plimsoll";

/// Writes each text that was sent in these sessions into a file of its own, ended as SQL*Plus wants it.
pub fn write(sessions: &[SessionLog]) {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let ours = sessions.iter().filter(|session| session.program == PROGRAM);
    let texts: BTreeSet<&str> =
        ours.flat_map(|session| &session.calls).map(|call| &*call.sql).filter(|sql| !sql.is_empty()).collect();
    for text in texts {
        // The parser knows no EXPLAIN, but what is explained.
        let text = text.strip_prefix("EXPLAIN PLAN SET STATEMENT_ID = 'plimsoll' FOR ").unwrap_or(text);
        let is_block = ["BEGIN", "DECLARE", "CREATE PROCEDURE"].iter().any(|word| text.starts_with(word));
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let file = Path::new(&folder).join(format!("sent-{:016x}.sql", hasher.finish()));
        std::fs::write(file, format!("{text}{}", if is_block { "\n/\n" } else { ";\n" })).unwrap();
    }
}
