//! What is known of Oracle's wait events where a table does not report it.

/// The class of an event, empty if it is not known here, and whether sessions of users wait in it: these others are waited for
/// by the writers alone.
pub(crate) fn kind_of_event(event: &str) -> (&'static str, bool) {
    const USER_IO: [&str; 14] = [
        "db file sequential read",
        "db file scattered read",
        "db file parallel read",
        "db file single write",
        "direct path read",
        "direct path read temp",
        "direct path write",
        "direct path write temp",
        "read by other session",
        "cell single block physical read",
        "cell multiblock physical read",
        "cell list of blocks physical read",
        "cell smart table scan",
        "Disk file operations I/O",
    ];
    const WRITERS: [&str; 5] = [
        "log file parallel write",
        "db file parallel write",
        "db file async I/O submit",
        "control file parallel write",
        "log file single write",
    ];
    match event {
        "log file sync" => ("Commit", true),
        "free buffer waits" | "log buffer space" | "log file switch completion" => ("Configuration", true),
        "control file sequential read" => ("System I/O", true),
        "buffer busy waits" => ("Concurrency", true),
        event if USER_IO.contains(&event) => ("User I/O", true),
        event if WRITERS.contains(&event) => ("System I/O", false),
        event if event.starts_with("gc ") => ("Cluster", true),
        _ => ("", true),
    }
}
