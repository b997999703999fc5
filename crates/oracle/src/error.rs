//! Why an Oracle database cannot do what was asked.

use std::fmt;
use std::fmt::Display;

use super::driver::Error;
use ::sql::{Meaning, Product, ServerError};
use measure::RefusalClass;
use model::record::TargetKind;
use targets::TargetError;

/// `ORA-00060`, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OraNumber(pub u32);

impl Display for OraNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ORA-{:05}", self.0)
    }
}

/// Oracle, whose codes are shown as [`OraNumber`]s.
pub(super) const ORACLE: &Product = &Product { name: "Oracle", kind: TargetKind::Oracle, code: "error", meaning };

fn meaning(code: &str) -> Meaning {
    let code = number_of(code);
    Meaning {
        // Only errors that are known to be about one operation leave the load able to go on: whatever else a server says stands
        // against the next operation as well.
        is_lasting: !COSTS_ONLY_THE_OPERATION.contains(&code),
        is_corruption: CORRUPTED.contains(&code),
        // Of a block that calls one, no more is said than that it cannot be compiled.
        lacks_procedure: matches!(code, 4042 | 6550),
        class: match code {
            60 => RefusalClass::Deadlock,
            8177 => RefusalClass::Serialization,
            54 | 4021 | 30_006 => RefusalClass::LockTimeout,
            CANCELLED => RefusalClass::Cancelled,
            1 | 1400 | 2290..=2292 => RefusalClass::Constraint,
            _ => RefusalClass::Other,
        },
        hint: Some(refusal_hint(code).unwrap_or(SEND_US)),
    }
}

/// The call was cancelled.
const CANCELLED: u32 = 1013;
/// Busy resource, deadlock, cancelled call, snapshot too old, a serialization that failed, a wait for a lock or an object that lasted
/// too long, a package that was compiled again meanwhile, and rows that a rule of their table does not allow: a key that is there, an
/// unknown value, a check, and a row that refers to none or is referred to.
const COSTS_ONLY_THE_OPERATION: [u32; 14] =
    [1, 54, 60, CANCELLED, 1400, 1555, 2290, 2291, 2292, 4021, 4061, 4068, 8177, 30_006];
/// A corrupted block, an index that does not go with its table, and a row that the index has and the table has not.
const CORRUPTED: [u32; 5] = [1578, 8102, 8103, 1499, 26_040];
/// The session, the instance or the way to it is gone: killed, idle too long, shut down, end of file, not connected.
const ENDS_THE_CONNECTION: [u32; 19] = [
    28, 1012, 1033, 1034, 1041, 1089, 1090, 1092, 2396, 2399, 3113, 3114, 3135, 12_152, 12_170, 12_537, 12_547, 12_570,
    12_571,
];
/// Where nothing better is known: nobody has met all errors that there are yet.
pub(super) const SEND_US: &str = "Oracle's documentation has more on errors by their numbers; if it makes no sense here, send us what `plimsoll slob \
                       doctor` writes";
/// Rights that are missing, and names that are not to be seen without them.
pub(super) const LACKS_RIGHTS: [u32; 5] = [990, 1031, 1045, 1720, 41_900];
/// What a view, a table or a package is called that is not there or not granted; from 23ai on a right that is missing has a number of
/// its own.
pub(super) const NOT_GRANTED: [u32; 3] = [942, 1031, 41_900];

/// What an error of the driver means: `node` was asked to do `doing`, such as `create the tables`.
pub(super) fn error_of(node: &str, doing: &str, error: &Error) -> ServerError {
    match error {
        Error::Refused { code, message } if ENDS_THE_CONNECTION.contains(code) => {
            ORACLE.lost(node, format!("{} ({})", bare(message), OraNumber(*code)))
        }
        Error::Refused { code, message } => ORACLE.refused(node, doing, OraNumber(*code), bare(message)),
        Error::Closed | Error::Broken(_) | Error::Tls(_) | Error::Silent => ORACLE.lost(node, error.to_string()),
        // As the server calls it where it is asked to cancel something.
        Error::TookTooLong => ORACLE.refused(node, doing, OraNumber(CANCELLED), error.to_string()),
        // Neither the server nor the network: a value that cannot be sent or read as what it should be.
        _ => ServerError::unfit(format!("cannot {doing} on `{node}`: {error}"), Some(SEND_US.to_owned())),
    }
}

/// The number of Oracle's own error, if it was one.
pub(super) fn number(error: &ServerError) -> Option<u32> {
    match error {
        ServerError::Refused { code, .. } => Some(number_of(code)),
        _ => None,
    }
}

/// The number of Oracle's own error behind an error, if there is one.
pub(super) fn number_in(error: &TargetError) -> Option<u32> {
    error.database().and_then(number)
}

/// The number of a code.
fn number_of(code: &str) -> u32 {
    code.trim_start_matches("ORA-").parse().unwrap_or(0)
}

/// The server's words without the number before them, which is shown apart, and without the address of a help page after them. Where
/// a block does not compile, the line after the first says why.
pub(super) fn bare(message: &str) -> String {
    let mut lines = message.lines().map(str::trim);
    let mut line = lines.next().unwrap_or_default().to_owned();
    // A statement of the server's own has failed, or a trigger: what it said comes next.
    let is_of_another = line.starts_with("ORA-00604");
    if let Some(why) = lines.next().filter(|_| line.ends_with(':') || is_of_another) {
        line = format!("{}: {why}", line.trim_end_matches(':'));
    }
    let is_number = |text: &str| text.starts_with("ORA-") && text[4..].bytes().all(|byte| byte.is_ascii_digit());
    match line.split_once(": ") {
        Some((number, words)) if is_number(number) => words.to_owned(),
        _ => line,
    }
}

/// What a refusal asks for.
pub(super) fn refusal_hint(code: u32) -> Option<&'static str> {
    Some(match code {
        18 | 20 | 2391 | 12_516 | 12_518..=12_520 => {
            "the database takes no more sessions; raise its `processes` or the profile's SESSIONS_PER_USER, or use fewer sessions"
        }
        257 => {
            "the archive destination is full, and every change waits; make room there, or raise `db_recovery_file_dest_size`"
        }
        439 => "this edition lacks the option, as Standard Edition 2 lacks Partitioning; leave `--partitions` out",
        604 => "a trigger or a statement of the server's own failed; its alert log and trace files say more",
        904 => "this release lacks a column that Plimsoll asks for; send us what `plimsoll slob doctor` writes",
        972 => {
            "the database takes names of 30 bytes, as before 12.2 and with `compatible` below 12.2; send us what `plimsoll slob \
             doctor` writes"
        }
        1033 | 1034 => "the database is not open; wait until it has started, or start it: STARTUP",
        1035 => "the database is open for administrators alone: ALTER SYSTEM DISABLE RESTRICTED SESSION",
        54 | 4021 | 30_006 => "another session holds the table or the rows; wait until it ends",
        60 => "two sessions changed the same rows; fewer meet with more data or without a hot spot",
        942 | 1031 | 1045 | 1720 | 41_900 => {
            "the data is missing, or the right to read it: `plimsoll slob setup --dry-run` prints every GRANT needed"
        }
        1013 => "the call took longer than it may; storage may have become very slow",
        1536 | 1950 => {
            "the user has no quota there: `ALTER USER … QUOTA UNLIMITED ON …`, which `slob setup --dry-run` prints"
        }
        1555 => "undo was overwritten while a long query read; give undo more room or a longer retention",
        1578 | 26_040 => "the database found a corrupted block; its alert log says more",
        8102 | 8103 | 1499 => "the data were changed or damaged; `plimsoll slob verify` says more",
        1652 => "the temporary tablespace is full, in which indexes are sorted; give it more room",
        1653..=1655 | 1658 | 1659 | 1688 | 1691 => "the tablespace is full; give it more room, or lower the scale",
        12_954 => "this edition takes no more data (Free: 12 GB in all); lower SCALE or `--scale`",
        13_716 => "`control_management_pack_access` switches the pack off; Statspack needs none: `--statspack`",
        30_036 => "the undo tablespace is full; give it more room, or use fewer sessions",
        65_114 => "the pluggable database is as large as it may be: ALTER PLUGGABLE DATABASE STORAGE (MAXSIZE …)",
        65_040 => "a pluggable database may not do that; connect to the root of its container database",
        372 | 1647 => {
            "the tablespace is only to be read: ALTER TABLESPACE … READ WRITE, or a load without updates (UPDATE_PCT=0)"
        }
        1109 | 16_000 | 16_397 => {
            "the database is open for reading only, as a standby is: only loads without updates work there (UPDATE_PCT=0)"
        }
        4031 => "the shared pool is too small for so many sessions; raise `shared_pool_size` or `sga_target`",
        28_009 => "SYS logs in with a role alone, and only calibration takes one; name another user",
        28_040 => {
            "the server accepts no login of this protocol; see SQLNET.ALLOWED_LOGON_VERSION_SERVER in its sqlnet.ora, and set the \
             password again"
        }
        28_000 => "the account is locked: `ALTER USER … ACCOUNT UNLOCK`",
        28_001 | 28_002 => "the password has expired; set a new one",
        6550 | 4063 | 6508 => {
            "a block or a procedure does not compile there; `plimsoll slob doctor` says which right is missing"
        }
        29_355 => "the database takes only some values, 10 to 100 ms as far as is known: `--max-latency 20ms`",
        56_705 => "another calibration runs, and there can be only one; v$io_calibration_status says when it ends",
        56_708 => {
            "data files are not read asynchronously: ALTER SYSTEM SET filesystemio_options = SETALL SCOPE = SPFILE, \
             disk_asynch_io = TRUE, and restart"
        }
        56_709 => "waits are not timed: ALTER SYSTEM SET timed_statistics = TRUE",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use targets::DatabaseError as _;

    use super::*;

    fn refused(code: u32) -> ServerError {
        ORACLE.refused("db1:1521", "execute operations", OraNumber(code), "no")
    }

    #[test]
    fn only_what_is_about_one_operation_leaves_the_load_going() {
        for code in COSTS_ONLY_THE_OPERATION {
            assert!(!refused(code).ends_the_load(), "{code}");
        }
        for code in [942, 1031, 1578, 1652, 16_000, 600, 6550, 4031] {
            assert!(refused(code).ends_the_load(), "{code}");
        }
        assert!(refused(1578).is_data_fault() && !refused(60).is_data_fault());
    }

    #[test]
    fn a_call_that_took_too_long_costs_its_operation_and_a_silent_server_the_load() {
        let error = error_of("db1:1521", "execute an operation", &Error::TookTooLong);
        assert_eq!((number(&error), error.ends_the_load()), (Some(1013), false));
        assert!(error.to_string().contains("took longer than it may (error ORA-01013)"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("storage")), "{error}");
        let silent = error_of("db1:1521", "execute an operation", &Error::Silent);
        assert!(matches!(silent, ServerError::Lost { .. }) && silent.ends_the_load(), "{silent}");
    }

    #[test]
    fn a_refusal_has_oracles_number_and_words_once() {
        assert_eq!(refused(60).to_string(), "cannot execute operations on `db1:1521`: no (error ORA-00060)");
        assert_eq!(bare("ORA-00060: deadlock detected\nHelp: https://x/ora-60/"), "deadlock detected");
        let block = "ORA-06550: line 1, column 7:\nPLS-00201: identifier 'X' must be declared\nORA-06550: line 1";
        assert_eq!(bare(block), "line 1, column 7: PLS-00201: identifier 'X' must be declared");
        assert_eq!(bare("TNS: no listener"), "TNS: no listener");
        let trigger =
            "ORA-00604: error occurred at recursive SQL level 1\nORA-20001: not from here\nORA-06512: at line 3";
        assert_eq!(bare(trigger), "error occurred at recursive SQL level 1: ORA-20001: not from here");
    }

    #[test]
    fn no_refusal_is_without_a_hint() {
        for code in [600, 1408, 12_838, 54] {
            assert!(refused(code).hint().is_some_and(|hint| !hint.is_empty()), "{code}");
        }
    }

    #[test]
    fn what_a_user_meets_first_has_a_hint() {
        for (code, cure) in [
            (372, "READ WRITE"),
            (942, "GRANT"),
            (1031, "GRANT"),
            (41_900, "GRANT"),
            (1536, "QUOTA"),
            (1950, "QUOTA"),
            (257, "archive destination"),
            (439, "--partitions"),
            (604, "alert log"),
            (904, "column"),
            (972, "30 bytes"),
            (1033, "not open"),
            (1034, "not open"),
            (1035, "RESTRICTED"),
            (1652, "temporary tablespace"),
            (1653, "lower the scale"),
            (12_516, "no more sessions"),
            (12_518, "no more sessions"),
            (12_519, "no more sessions"),
            (12_520, "no more sessions"),
            (12_954, "12 GB"),
            (13_716, "--statspack"),
            (28_000, "UNLOCK"),
            (28_040, "ALLOWED_LOGON_VERSION_SERVER"),
            (29_355, "--max-latency"),
            (30_036, "undo"),
            (65_040, "root"),
            (65_114, "MAXSIZE"),
            (16_000, "UPDATE_PCT=0"),
            (60, "hot spot"),
            (1555, "undo"),
            (6550, "doctor"),
            (56_705, "one"),
            (56_708, "SETALL"),
            (56_709, "timed_statistics"),
        ] {
            assert!(refusal_hint(code).is_some_and(|hint| hint.contains(cure)), "{code}");
        }
    }
}
