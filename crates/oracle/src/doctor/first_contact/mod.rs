//! The first contact with a real server: what no documentation settles and the program depends on, found out in ten minutes by one
//! small table, which is removed again whatever happens.

mod statements;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use self::statements::{COMMITS, INDEX, PIECE_ROWS, ROWS, TABLE};
use super::trials::{self, COMMIT_WAIT, Waits, difference};
use super::{DoctorSession, Landing, check_stop, hosts_of, version};
use crate::connect::Connector;
use crate::data::schema_of;
use crate::driver::Row;
use crate::error::number;
use crate::sql::{self, OWN_TABLESPACES, Sql, quoted};
use ::sql::ServerError;
use ::sql::database::APPLICATION;
use measure::doctor::Check;
use model::config::oracle::OracleAddress;
use model::units::{Bytes, group_thousands};
use targets::TargetError;
use targets::database::{Examination, Method};

/// What a name that is already used is called.
const NAME_IS_USED: u32 = 955;
/// The first release that has names of 128 bytes, by its `compatible`.
const LONG_NAMES: [u32; 2] = [12, 2];
/// Blocks that are cleaned, and bytes of redo for it, that are no more than a few for each transaction of the load.
const FEW_CLEANED: u64 = 4 * ROWS / PIECE_ROWS;
const LITTLE_REDO: u64 = 100_000;
/// Plain commits that may wait, one for each end of a call and some for whatever else the session does.
const FEW_WAITS: u64 = COMMITS / 10;
/// Of all blocks that were changed, what has to have been counted as written.
const MOST_BLOCKS: u64 = ROWS / 2;
/// Has the table's removal wait for another session of ours, in seconds.
const WAIT_FOR_TABLE: &str = "ALTER SESSION SET DDL_LOCK_TIMEOUT = 60";
/// What is done about an open question.
const HOW_TO_SETTLE: &str = "the file has the server's words under `refused.`; `plimsoll slob doctor` prints the GRANT";

/// The steps, as they are announced.
const LOOK: &str = "look at release, names, container and histograms; nothing is changed";
const MAKE: &str = "make the table PLIMSOLL_TRY of 32 MiB and load 4,096 rows past the buffer cache";
const READ: &str = "read all rows twice, in a new session";
const COMMIT: &str = "change 200 rows, each with a commit of its own";
const WRITE: &str = "change all rows and have them written: ALTER SYSTEM CHECKPOINT";

/// The first contact as a script for SQL*Plus, which needs nothing else.
pub fn first_contact_script() -> String {
    statements::script()
}

/// Settles on this database what is not known of any. `confirm` hears each step before it is done and says whether it may be; what
/// comes after one that may not stays open. Names of machines are masked in what comes out.
///
/// # Errors
/// When the database cannot be reached or is gone, or its table cannot be made; or when `stop` was set. The table is removed, or the
/// hint says how.
pub fn first_contact(
    address: &OracleAddress,
    confirm: &(dyn Fn(&str) -> Result<bool, TargetError> + Sync),
    stop: &AtomicBool,
) -> Result<Examination, TargetError> {
    if address.role.is_some() {
        let what = "the first contact creates a table in the user's schema, and SYS must not have it".to_owned();
        return Err(ServerError::unfit(what, Some("name another user, without `role`".to_owned())).into());
    }
    let connector = Connector::new(address, APPLICATION, false, Method::default())?;
    // On a thread of its own, where no signal breaks off the wait for an answer: that would leave it to the next call.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("first-contact".to_owned());
        let work = thread.spawn_scoped(scope, || make_contact(address, &connector, confirm, stop));
        let work = work.map_err(|source| TargetError::Kernel { action: "start a thread", source })?;
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn make_contact(
    address: &OracleAddress,
    connector: &Connector,
    confirm: &dyn Fn(&str) -> Result<bool, TargetError>,
    stop: &AtomicBool,
) -> Result<Examination, TargetError> {
    let namespace = schema_of(&address.user);
    let mut contact = Contact {
        asked: DoctorSession::connect(connector)?,
        connector,
        table: format!("{}.{TABLE}", quoted(&namespace)),
        index: format!("{}.{INDEX}", quoted(&namespace)),
        is_made: false,
        hosts: hosts_of(address),
        checks: Vec::new(),
    };
    let done = contact.steps(confirm, stop);
    contact.remove(&done)?;
    done?;
    let Contact { asked, hosts, checks, .. } = contact;
    let settled = checks.iter().filter(|check| check.finding.starts_with("settled")).count();
    let mut facts = asked.facts;
    facts.insert("first_contact.settled".to_owned(), format!("{settled} of {}", checks.len()));
    Ok(Examination { target: address.to_string(), checks, facts }.masked(&hosts))
}

/// Statistics of a session or of the server, by name.
type Counts = BTreeMap<String, u64>;

/// What is under way.
struct Contact<'a> {
    asked: DoctorSession,
    connector: &'a Connector,
    table: String,
    index: String,
    /// Whether the table is there, and ours.
    is_made: bool,
    hosts: Vec<String>,
    checks: Vec<Check>,
}

impl Contact<'_> {
    fn steps(
        &mut self,
        confirm: &dyn Fn(&str) -> Result<bool, TargetError>,
        stop: &AtomicBool,
    ) -> Result<(), TargetError> {
        let may = |step: &str| {
            check_stop(stop)?;
            let may = confirm(step)?;
            check_stop(stop)?;
            Ok::<_, TargetError>(may)
        };
        if !may(LOOK)? {
            return Ok(());
        }
        let landing = self.look()?;
        if !may(MAKE)? {
            return Ok(());
        }
        self.make(stop)?;
        if !may(READ)? {
            return Ok(());
        }
        self.read(stop)?;
        if !may(COMMIT)? {
            return Ok(());
        }
        self.commit()?;
        if !landing.is_pluggable() {
            let finding = "settled: this is not a pluggable database, so the plain views have all writes";
            self.checks.push(Check::good("writes", finding));
        } else if may(WRITE)? {
            self.write()?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<Landing, TargetError> {
        let asked = &mut self.asked;
        version(asked)?;
        let landing = Landing::ask(asked, &mut self.hosts)?;
        let parameters = asked.parameters()?;
        let edge = asked.rows("ask for the last edge of histograms", statements::LAST_EDGE, |row| row.get(0))?;
        let edge = edge.and_then(|rows| rows.into_iter().next());
        self.checks.push(names(parameters.get("compatible").map(String::as_str)));
        self.checks.push(last_edge(edge));
        let read = |row: &Row| Ok((row.get::<String>(0)?, row.get::<Option<String>>(4)?.unwrap_or_default()));
        let place = asked.rows("ask for the tablespace", sql::PLACE, read)?;
        let place = place.and_then(|rows| rows.into_iter().next());
        if let Some((name, space)) = &place {
            asked.note("tablespace", name);
            asked.note("tablespace.segment_space", space);
        }
        match place {
            Some((name, _)) if OWN_TABLESPACES.contains(&name.as_str()) => {
                let what = format!("tables of this user go to {name}, which holds the database itself");
                Err(ServerError::unfit(what, Some("name a user with another default tablespace".to_owned())).into())
            }
            _ => Ok(landing),
        }
    }

    fn make(&mut self, stop: &AtomicBool) -> Result<(), TargetError> {
        let doing = "make the table of the first contact";
        if let Err(error) = self.asked.connected.execute(doing, &statements::create(&self.table), &[]) {
            if number(&error) == Some(NAME_IS_USED) {
                let hint = format!("if an earlier first contact left it: {}", Sql::drop_table(&self.table));
                return Err(ServerError::unfit(error.to_string(), Some(hint)).into());
            }
            return Err(error.into());
        }
        self.is_made = true;
        for statement in statements::pin(&self.table, &self.index) {
            self.asked.connected.execute(doing, &statement, &[])?;
        }
        check_stop(stop)?;
        self.asked.connected.execute("load its rows", &statements::load(&self.table), &[])?;
        check_stop(stop)?;
        let read = |row: &Row| Ok([row.get::<u64>(0)?, row.get(1)?, row.get(2)?]);
        let counted = self.asked.rows("count its blocks", &statements::layout(&self.table), read)?;
        let counted = counted.and_then(|rows| rows.into_iter().next());
        if let Some([rows, blocks, followers]) = counted {
            self.asked.note("layout", &format!("{rows} rows, {blocks} blocks, {followers} followers"));
        }
        self.checks.push(layout(counted));
        Ok(())
    }

    /// What a session has counted so far, and waited for.
    fn counted(&mut self, when: &str) -> Result<(Option<Counts>, Option<Waits>), TargetError> {
        let counts = self.counts("ask what this session has counted", statements::COUNTED, when)?;
        let waits = self.asked.waits()?;
        for (event, (count, us)) in waits.iter().flatten() {
            self.asked.note(&format!("{when}.wait.{event}"), &format!("{count} in {us} us"));
        }
        Ok((counts, waits))
    }

    fn counts(&mut self, doing: &str, question: &str, when: &str) -> Result<Option<Counts>, TargetError> {
        let rows = self.asked.rows(doing, question, |row| Ok((row.get::<String>(0)?, row.get::<u64>(1)?)))?;
        let counts: Option<Counts> = rows.filter(|rows| !rows.is_empty()).map(|rows| rows.into_iter().collect());
        for (name, count) in counts.iter().flatten() {
            self.asked.note(&format!("{when}.{name}"), &count.to_string());
        }
        Ok(counts)
    }

    fn read(&mut self, stop: &AtomicBool) -> Result<(), TargetError> {
        // What the session that loaded has learned of its rows must not help.
        let facts = std::mem::take(&mut self.asked.facts);
        self.asked = DoctorSession::connect(self.connector)?;
        self.asked.facts = facts;
        let pass = statements::read(&self.table);
        let before = self.counted("before_reading")?;
        let began = Instant::now();
        self.asked.connected.execute("read its rows", &pass, &[])?;
        let took = began.elapsed();
        let first = self.counted("first_pass")?;
        check_stop(stop)?;
        self.asked.connected.execute("read its rows again", &pass, &[])?;
        let second = self.counted("second_pass")?;
        self.checks.push(cleaning([&before.0, &first.0, &second.0]));
        let waits = before.1.zip(first.1).map(|(before, after)| difference(&before, &after));
        let reads = trials::reads(ROWS / PIECE_ROWS, ROWS, took, waits.as_ref());
        let known = if waits.is_some_and(|waits| !waits.is_empty()) { "settled" } else { "open" };
        self.checks.push(Check { finding: format!("{known}: {}", reads.finding), ..reads });
        Ok(())
    }

    fn commit(&mut self) -> Result<(), TargetError> {
        let before = self.counted("before_commits")?;
        let doing = "commit in a block";
        let waiting = statements::commits(&self.table, statements::WAITING);
        self.asked.connected.execute(doing, &waiting, &[])?;
        let waited = self.counted("commits_that_wait")?;
        self.asked.connected.execute(doing, &statements::commits(&self.table, statements::PLAIN), &[])?;
        let plain = self.counted("plain_commits")?;
        let synchronous = |counts: &Option<Counts>| counts.as_ref()?.get("redo synch writes").copied();
        let waits = |waits: &Option<Waits>| Some(waits.as_ref()?.get(COMMIT_WAIT).map_or(0, |(count, _)| *count));
        let grown = |then: Option<u64>, now: Option<u64>| now?.checked_sub(then?);
        let asked = [
            grown(synchronous(&before.0), synchronous(&waited.0)),
            grown(synchronous(&waited.0), synchronous(&plain.0)),
        ];
        let seen = grown(waits(&before.1), waits(&waited.1));
        self.checks.extend([commits(asked), commit_waits(asked[0], seen)]);
        Ok(())
    }

    fn write(&mut self) -> Result<(), TargetError> {
        let doing = "ask who counts writes";
        let before = self.counts(doing, statements::WRITTEN, "before_checkpoint")?;
        self.asked.connected.execute("change all rows", &statements::change_all(&self.table), &[])?;
        self.asked.connected.commit("change all rows")?;
        let checkpoint = self.asked.connected.execute("have changes written", statements::CHECKPOINT, &[]);
        let is_written = self.asked.unless_refused("checkpoint", checkpoint.map_err(TargetError::from))?.is_some();
        let after = self.counts(doing, statements::WRITTEN, "after_checkpoint")?;
        self.checks.extend(writes(before.zip(after), is_written));
        Ok(())
    }

    /// Removes the table, if it is there. `done` is how the steps ended: where that was not by words of the server, their session may
    /// still have an answer to come, so another one removes it.
    fn remove(&mut self, done: &Result<(), TargetError>) -> Result<(), TargetError> {
        if !self.is_made {
            return Ok(());
        }
        let statement = Sql::drop_table(&self.table);
        let is_answered = |error: &TargetError| match error.database() {
            Some(error) => matches!(error, ServerError::Refused { .. } | ServerError::Unfit { .. }),
            None => true,
        };
        let removed = match done {
            Err(error) if !is_answered(error) => DoctorSession::connect(self.connector).map(|asked| self.asked = asked),
            _ => Ok(()),
        };
        let removed = removed.and_then(|()| {
            let connected = &self.asked.connected;
            connected.rollback();
            // A session that is gone may work to the end of its call.
            connected.execute("wait for the table", WAIT_FOR_TABLE, &[])?;
            connected.execute("remove the table", &statement, &[])?;
            Ok(())
        });
        self.is_made = removed.is_err();
        removed.map_err(|error| {
            let hint = format!("remove it yourself: {statement}");
            ServerError::unfit(format!("the table {TABLE} is still there: {error}"), Some(hint)).into()
        })
    }
}

fn open(topic: &'static str, what: &str) -> Check {
    Check::advice(topic, format!("open: {what}"), HOW_TO_SETTLE)
}

/// How long names may be, by the parameter `compatible`.
fn names(compatible: Option<&str>) -> Check {
    let topic = "names";
    let parts: Option<Vec<u32>> =
        compatible.map(|text| text.trim().split('.').take(2).map_while(|part| part.parse().ok()).collect());
    let Some([major, minor]) = parts.as_deref().and_then(|parts| parts.first_chunk()).copied() else {
        return open(topic, "what `compatible` is was not shown");
    };
    let longest = if [major, minor] >= LONG_NAMES { 128 } else { 30 };
    let compatible = compatible.unwrap_or_default().trim();
    Check::good(
        topic,
        format!("settled: with `compatible` at {compatible} names have up to {longest} bytes; ours have 30 at most"),
    )
}

fn last_edge(edge: Option<u64>) -> Check {
    let topic = "last edge of histograms";
    match edge {
        None => open(topic, "no histogram of waits was shown"),
        Some(edge) if edge.is_power_of_two() => Check::good(topic, format!("settled: {edge} us, a power of two")),
        Some(edge) => Check::good(topic, format!("settled: {edge} us, which stands for no edge and is read so")),
    }
}

/// Rows, blocks, and rows that are not the first of their block.
fn layout(counted: Option<[u64; 3]>) -> Check {
    let topic = "layout";
    match counted {
        None => open(topic, "rows and blocks could not be counted"),
        Some([ROWS, ROWS, 0]) => {
            Check::good(topic, "settled: 4,096 rows lie in 4,096 blocks, each the first of its block")
        }
        Some([ROWS, ROWS, followers]) => Check::advice(
            topic,
            format!("settled: 4,096 rows lie in 4,096 blocks, and {followers} of them are not numbered as the first"),
            "the proof before a run has to sort all addresses here: give the temporary tablespace room",
        ),
        Some([rows, blocks, _]) => Check::problem(
            topic,
            format!("settled: {rows} rows lie in {blocks} blocks, not one in each"),
            "loads past the buffer cache do not keep one row a block here, and set-up would be refused; send us this file",
        ),
    }
}

/// Whether whoever reads first has to clean blocks: counts before reading, after the first pass and after the second.
fn cleaning(counts: [&Option<Counts>; 3]) -> Check {
    let topic = "first reads";
    let of = |at: usize, name: &str| counts[at].as_ref()?.get(name).copied();
    let grown = |at: usize, name: &str| of(at + 1, name)?.checked_sub(of(at, name)?);
    let pass = |at: usize| Some([grown(at, "cleanouts only - consistent read gets")?, grown(at, "redo size")?]);
    let (Some([cleaned, redo]), Some([again, redo_again])) = (pass(0), pass(1)) else {
        return open(topic, "what reading costs after a load was not shown");
    };
    let finding = format!(
        "settled: the first pass cleaned {} of 4,096 blocks and wrote {} of redo, the second {} and {}",
        group_thousands(cleaned as f64),
        Bytes(redo),
        group_thousands(again as f64),
        Bytes(redo_again)
    );
    if cleaned <= FEW_CLEANED && redo <= LITTLE_REDO {
        return Check::good(topic, finding + ": as good as none");
    }
    Check::advice(
        topic,
        finding,
        "leave out the first run after a set-up, or read all rows before: `plimsoll slob verify`",
    )
}

/// How often each kind of commit asked for its redo to be on storage, of 100.
fn commits(asked: [Option<u64>; 2]) -> Check {
    let topic = "commits in blocks";
    let [Some(waiting), Some(plain)] = asked else { return open(topic, "the redo waits of commits were not shown") };
    let finding =
        format!("settled: of {COMMITS} commits with WAIT {waiting} requested a wait for redo, of plain ones {plain}");
    if waiting < COMMITS {
        let advice = "do not take commits here for durable ones before this is understood; send us this file";
        return Check::problem(topic, finding, advice);
    }
    if plain <= FEW_WAITS {
        return Check::good(topic, finding + ": only WAIT has a block wait for each");
    }
    Check::good(topic, finding + ": plain ones wait here too, as with `commit_wait` at FORCE_WAIT")
}

/// Whether each commit that asked for its redo was seen to wait for it.
fn commit_waits(asked: Option<u64>, seen: Option<u64>) -> Check {
    let topic = "waits of commits";
    let (Some(asked), Some(seen)) = (asked, seen) else { return open(topic, "waits of commits were not shown") };
    let finding =
        format!("settled: {asked} commits requested a wait for redo, and {seen} were seen in `{COMMIT_WAIT}`");
    if seen >= asked.min(COMMITS) {
        return Check::good(topic, finding);
    }
    let advice =
        "the log writer is often done before anybody waits: count commits by `redo synch writes`, as the doctor does";
    Check::advice(topic, finding, advice)
}

/// Whether a pluggable database counts what database writers and log writer write of it.
fn writes(counts: Option<(Counts, Counts)>, is_written: bool) -> [Check; 2] {
    let topics = ["writes of the database writers", "writes of the log writer"];
    let Some((before, after)) = counts else { return topics.map(|topic| open(topic, "writes were not shown")) };
    let grown = |name: &str| after.get(name)?.checked_sub(*before.get(name)?);
    let judge = |topic, name: &str, least: u64| {
        let (own, all) = (grown(&format!("own {name}")), grown(&format!("all {name}")));
        let shown = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| group_thousands(count as f64));
        let finding = format!("`{name}` grew by {} here and by {} in all", shown(own), shown(all));
        match (own, all) {
            (Some(own), _) if own >= least => {
                Check::good(topic, format!("settled: {finding}: a pluggable database counts them"))
            }
            (Some(_), Some(all)) if all >= least => Check::advice(
                topic,
                format!("settled: {finding}: a pluggable database does not count them, and runs call them unknown"),
                "for figures of writes, measure in a database of its own, or read AWR of the root",
            ),
            _ => open(topic, &if is_written { finding } else { format!("no checkpoint was allowed; {finding}") }),
        }
    };
    [judge(topics[0], "physical writes from cache", MOST_BLOCKS), judge(topics[1], "redo writes", 1)]
}
