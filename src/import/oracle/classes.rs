//! Wait classes of well-known events, as `V$EVENT_NAME` has them: many tables of events leave the class out.

/// The classes of wait events.
pub(in crate::import) const WAIT_CLASSES: [&str; 13] = [
    "Administrative",
    "Application",
    "Cluster",
    "Commit",
    "Concurrency",
    "Configuration",
    "Idle",
    "Network",
    "Other",
    "Queueing",
    "Scheduler",
    "System I/O",
    "User I/O",
];

/// Events by class. Events of a class are in the order of their names.
const CLASSES: [(&str, &[&str]); 11] = [
    (
        "User I/O",
        &[
            "ASM IO for non-blocking poll",
            "BFILE read",
            "Data file init write",
            "Datapump dump file I/O",
            "Disk file I/O Calibration",
            "Disk file Mirror Read",
            "Disk file operations I/O",
            "cell list of blocks physical read",
            "cell multiblock physical read",
            "cell single block physical read",
            "cell smart index scan",
            "cell smart table scan",
            "db file parallel read",
            "db file scattered read",
            "db file sequential read",
            "db file single write",
            "direct path read",
            "direct path read (lob)",
            "direct path read temp",
            "direct path sync",
            "direct path write",
            "direct path write (lob)",
            "direct path write temp",
            "flashback log file sync",
            "local write wait",
            "read by other session",
            "securefile direct-read completion",
            "securefile direct-write completion",
            "utl_file I/O",
        ],
    ),
    (
        "System I/O",
        &[
            "Log archive I/O",
            "RMAN backup & recovery I/O",
            "control file parallel write",
            "control file sequential read",
            "control file single write",
            "db file async I/O submit",
            "db file parallel write",
            "flashback log file read",
            "flashback log file write",
            "io done",
            "kfk: async disk IO",
            "ksfd: async disk IO",
            "log file parallel write",
            "log file sequential read",
            "log file single write",
            "recovery read",
        ],
    ),
    ("Commit", &["log file sync"]),
    (
        "Configuration",
        &[
            "checkpoint completed",
            "enq: HW - contention",
            "enq: SQ - contention",
            "enq: ST - contention",
            "enq: TX - allocate ITL entry",
            "free buffer waits",
            "log buffer space",
            "log file switch (archiving needed)",
            "log file switch (checkpoint incomplete)",
            "log file switch (private strand flush incomplete)",
            "log file switch completion",
            "undo segment extension",
            "write complete waits",
        ],
    ),
    (
        "Concurrency",
        &[
            "buffer busy waits",
            "cursor: mutex S",
            "cursor: mutex X",
            "cursor: pin S",
            "cursor: pin S wait on X",
            "cursor: pin X",
            "enq: TX - index contention",
            "latch: cache buffers chains",
            "latch: row cache objects",
            "latch: shared pool",
            "library cache lock",
            "library cache pin",
            "library cache: bucket mutex X",
            "library cache: mutex X",
            "os thread creation",
            "row cache lock",
            "row cache mutex",
        ],
    ),
    (
        "Application",
        &[
            "SQL*Net break/reset to client",
            "enq: KO - fast object checkpoint",
            "enq: RO - fast object reuse",
            "enq: TM - contention",
            "enq: TX - row lock contention",
        ],
    ),
    (
        "Network",
        &[
            "SQL*Net message to client",
            "SQL*Net message to dblink",
            "SQL*Net more data from client",
            "SQL*Net more data to client",
        ],
    ),
    (
        "Cluster",
        &[
            "gc buffer busy acquire",
            "gc buffer busy release",
            "gc cr block 2-way",
            "gc cr block 3-way",
            "gc cr block busy",
            "gc cr grant 2-way",
            "gc cr grant busy",
            "gc cr multi block grant",
            "gc cr multi block request",
            "gc cr request",
            "gc current block 2-way",
            "gc current block 3-way",
            "gc current block busy",
            "gc current grant 2-way",
            "gc current grant busy",
            "gc current request",
        ],
    ),
    ("Scheduler", &["resmgr:cpu quantum"]),
    (
        "Other",
        &[
            "LGWR all worker groups",
            "LGWR any worker group",
            "LGWR wait for redo copy",
            "PGA memory operation",
            "latch free",
            "oracle thread bootstrap",
        ],
    ),
    (
        "Idle",
        &[
            "ASM background timer",
            "DIAG idle wait",
            "Data Guard: Gap Manager",
            "Data Guard: Timer",
            "GCR sleep",
            "LGWR worker group idle",
            "OFS idle",
            "PING",
            "PX Idle Wait",
            "SQL*Net message from client",
            "SQL*Net vector message from client",
            "Space Manager: slave idle wait",
            "VKRM Idle",
            "VKTM Logical Idle Wait",
            "class slave wait",
            "dispatcher timer",
            "gcs remote message",
            "ges remote message",
            "heartbeat redo informer",
            "jobq slave wait",
            "lreg timer",
            "pman timer",
            "pmon timer",
            "rdbms ipc message",
            "shared server idle wait",
            "smon timer",
            "wait for unread message on broadcast channel",
            "watchdog main loop",
        ],
    ),
];

/// Beginnings of names of idle events that say nothing of idleness, or may be cut before they do. Where such an event is taken
/// for work, it stands above everything that is.
const IDLE_BEGINNINGS: [&str; 26] = [
    "AQPC ",
    "EMON slave",
    "JOX Jit Process Sleep",
    "KSV master wait",
    "LNS ASYNC",
    "LogMiner ",
    "LogMiner: ",
    "MRP redo arrival",
    "PL/SQL lock timer",
    "PX Deq: Execut",
    "PX Deq: Join ACK",
    "PX Deq: Msg Fragment",
    "PX Deq: Parse Reply",
    "PX Deq: Table Q Normal",
    "SGA: MMAN sleep for comp",
    "Streams AQ: RAC qmn coor",
    "Streams AQ: qmn ",
    "Streams AQ: waiting for ",
    "fbar timer",
    "i/o slave wait",
    "lock manager wait for rem",
    "null event",
    "pipe get",
    "single-task message",
    "virtual circuit ",
    "wakeup time manager",
];

/// Text reports cut names at 24 characters or more; a shorter name is whole.
const SHORTEST_CUT: usize = 24;

/// The class of an event; empty if it is not known. A name may be cut.
pub(super) fn class(event: &str) -> &'static str {
    let known = CLASSES.iter().find(|(_, events)| events.iter().any(|name| is_same(name, event)));
    match known {
        Some((class, _)) => class,
        None if event.to_ascii_lowercase().contains("idle") => "Idle",
        None if IDLE_BEGINNINGS.iter().any(|begin| event.starts_with(begin)) => "Idle",
        // `cell single block physical read: pmem cache` is one of the ways to do that.
        None => {
            event.split_once(": ").map_or("", |(whole, _)| if whole.starts_with("cell ") { class(whole) } else { "" })
        }
    }
}

/// The whole name of an event whose name may have been cut; nothing if that is not known, or fits several.
pub(super) fn whole_name(event: &str) -> Option<&'static str> {
    let mut names = CLASSES.iter().flat_map(|(_, events)| events.iter()).filter(|name| is_same(name, event));
    let name = names.next()?;
    (names.next().is_none()).then_some(name)
}

fn is_same(name: &str, maybe_cut: &str) -> bool {
    name == maybe_cut || is_cut(maybe_cut) && name.starts_with(maybe_cut)
}

/// Whether a name is as long as those that are cut.
pub(in crate::import) fn is_cut(event: &str) -> bool {
    event.len() >= SHORTEST_CUT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_known_of_whole_and_cut_names() {
        assert_eq!(
            ["db file sequential read", "log file sync", "pmon timer"].map(class),
            ["User I/O", "Commit", "Idle"]
        );
        assert_eq!((class("control file parallel wri"), class("no such event")), ("System I/O", ""));
        assert_eq!(class("some new idle event"), "Idle");
        let cut = ["Streams AQ: qmn coordinato", "PX Deq: Execution Msg", "PL/SQL lock timer", "PX Deq: reap credit"];
        assert_eq!(cut.map(class), ["Idle", "Idle", "Idle", ""]);
        assert_eq!(class("cell single block physical read: any new cache"), "User I/O");
        assert_eq!(class("enq: no such thing"), "");
        assert_eq!(whole_name("control file parallel wri"), Some("control file parallel write"));
        assert_eq!(
            (whole_name("db file"), whole_name("log file switch (checkpoi")),
            (None, Some("log file switch (checkpoint incomplete)"))
        );
    }
}
