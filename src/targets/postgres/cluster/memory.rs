//! How much memory a private server needs.

use crate::targets::postgres::PostgresError;
use crate::units::Bytes;

/// The server's own processes, its small shared memory and some page cache for catalogs and WAL.
const BASE: Bytes = Bytes::mib(64);
/// A session's process: catalog caches, prepared statements, stack.
const SESSION: Bytes = Bytes::mib(4);
/// Each process maps the shared buffers by page tables of its own, 8 bytes for 4 KiB, and they are charged too.
const PAGE_TABLES_OF: u64 = 512;

/// The least memory in which a server can live with so many sessions, in whole MiB: with less it would be killed, or its shared
/// buffers squeezed.
pub fn needed(shared_buffers: Bytes, sessions: u32) -> Bytes {
    let each = SESSION.0 + shared_buffers.0 / PAGE_TABLES_OF;
    Bytes((shared_buffers.0 + BASE.0 + each * u64::from(sessions)).next_multiple_of(1 << 20))
}

/// Refuses a limit in which the server could not live.
///
/// # Errors
/// When `limit` is too small, with what is needed.
pub fn check(limit: Bytes, shared_buffers: Bytes, sessions: u32) -> Result<(), PostgresError> {
    let needed = needed(shared_buffers, sessions);
    let sessions = if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") };
    if limit >= needed {
        return Ok(());
    }
    Err(PostgresError::Unfit {
        what: format!(
            "{limit} of memory are too little for a server with {shared_buffers} of shared buffers and {sessions}: it \
             needs at least {needed}"
        ),
        hint: Some(format!("lower `--db-cache` or the number of sessions, or use `--host-memory {}M`", needed.0 >> 20)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBI: u64 = 1 << 20;

    #[test]
    fn a_limit_that_leaves_the_server_no_room_is_refused() {
        check(Bytes::mib(128 + 64 + 8 * 5), Bytes::mib(128), 8).unwrap();
        let error = check(Bytes::mib(128), Bytes::mib(128), 8).unwrap_err();
        assert!(error.to_string().contains("and 8 sessions: it needs at least 226 MiB"), "{error}");
        assert!(error.hint().unwrap().contains("--host-memory 226M"), "{error}");
        check(needed(Bytes::mib(128), 8), Bytes::mib(128), 8).unwrap();
        // 16 GiB of buffers take 32 MiB of page tables in each process.
        check(Bytes((16 << 30) + 64 * MEBI + 100 * 36 * MEBI - 1), Bytes::gib(16), 100).unwrap_err();
    }
}
