//! What the doctor asks. None of it changes anything: the only update leaves each value as it is.

use crate::sql::Sql;
use ::sql::data::DATA_TABLE;

/// How this session has come here, in one row: network protocol, number of the container (0 without containers), and names and
/// addresses of both machines, which are only asked for to be masked.
pub(super) const WAY: &str = "SELECT SYS_CONTEXT('USERENV', 'NETWORK_PROTOCOL'), SYS_CONTEXT('USERENV', 'CON_ID'), \
    SYS_CONTEXT('USERENV', 'SERVER_HOST'), SYS_CONTEXT('USERENV', 'HOST'), SYS_CONTEXT('USERENV', 'IP_ADDRESS') FROM dual";

/// How the database is open, and what else its changes are written to. Wants `v$database`.
pub(super) const OPEN_MODE: &str = "SELECT open_mode, log_mode, flashback_on FROM v$database";

/// Parameters that matter to results. Hidden ones are there only where somebody has set them. Wants `v$parameter`.
pub(super) const PARAMETERS: &str = "SELECT name, value FROM v$parameter WHERE name IN ('cluster_database', 'commit_logging', \
    'commit_wait', 'compatible', 'control_management_pack_access', 'cpu_count', 'db_block_checking', 'db_block_checksum', \
    'db_block_size', 'db_cache_size', 'db_file_multiblock_read_count', 'db_writer_processes', 'disk_asynch_io', \
    'filesystemio_options', 'inmemory_size', 'log_buffer', 'memory_target', 'optimizer_features_enable', 'pga_aggregate_target', \
    'processes', 'resource_manager_plan', 'sga_target', 'statistics_level', 'timed_statistics', '_db_block_prefetch_limit', \
    '_db_block_prefetch_quota', '_db_file_noncontig_mblock_read_count')";

/// What this session has waited for so far: event, waits, microseconds. Wants `v$session_event`.
pub(super) const OWN_WAITS: &str = "SELECT event, total_waits, time_waited_micro FROM v$session_event \
    WHERE sid = TO_NUMBER(SYS_CONTEXT('USERENV', 'SID'))";

/// How often this session has asked for its redo to be on storage before it went on. Wants `v$mystat` and `v$statname`.
pub(super) const SYNCHRONOUS_WRITES: &str = "SELECT s.value FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# \
    WHERE n.name = 'redo synch writes'";

/// Objects of `SYS` and of Statspack that this user may use, of those that any statement of ours needs. Nothing of a pack is used
/// for it.
pub(super) const USABLE_OBJECTS: &str = "SELECT DISTINCT object_name FROM all_objects WHERE owner IN ('SYS', 'PERFSTAT') \
    AND object_name IN ('DBMS_STATS', 'UTL_RAW', 'DBMS_WORKLOAD_REPOSITORY', 'STATSPACK')";

/// Whether a view may be read, by its name: no row, or why not.
pub(super) fn try_view(view: &str) -> String {
    format!("SELECT NULL FROM {view} WHERE 1 = 0")
}

/// Reads the clock again and again, and puts out the shortest step that it made, in microseconds, and how many steps it made.
pub(super) const CLOCK: &str = "DECLARE
  earlier TIMESTAMP(9) WITH TIME ZONE := SYSTIMESTAMP;
  later TIMESTAMP(9) WITH TIME ZONE;
  passed INTERVAL DAY(9) TO SECOND(9);
  step_us NUMBER;
  smallest NUMBER;
  steps PLS_INTEGER := 0;
BEGIN
  FOR reading IN 1 .. 50000 LOOP
    later := SYSTIMESTAMP;
    IF later > earlier THEN
      passed := later - earlier;
      step_us := EXTRACT(SECOND FROM passed) * 1000000;
      steps := steps + 1;
      IF smallest IS NULL OR step_us < smallest THEN
        smallest := step_us;
      END IF;
      earlier := later;
    END IF;
  END LOOP;
  :smallest_us := smallest;
  :steps := steps;
END;";

/// Commits of [`commits`].
pub(super) const COMMITS: u32 = 10;

/// Commits as updates do, each after an update of the descriptor of the data that leaves it as it is, and puts out how long each
/// took, in microseconds, as a text of numbers.
pub(super) fn commits(sql: &Sql) -> String {
    let table = sql.qualified(DATA_TABLE);
    format!(
        "DECLARE
  began TIMESTAMP(9) WITH TIME ZONE;
  passed INTERVAL DAY(9) TO SECOND(9);
  took VARCHAR2(4000);
BEGIN
  FOR commit_number IN 1 .. {COMMITS} LOOP
    UPDATE {table} SET format = format;
    began := SYSTIMESTAMP;
    COMMIT WRITE IMMEDIATE WAIT;
    passed := SYSTIMESTAMP - began;
    took := took || TO_CHAR(ROUND((EXTRACT(MINUTE FROM passed) * 60 + EXTRACT(SECOND FROM passed)) * 1000000)) || ' ';
  END LOOP;
  :took := took;
EXCEPTION
  WHEN OTHERS THEN
    ROLLBACK;
    RAISE;
END;"
    )
}
