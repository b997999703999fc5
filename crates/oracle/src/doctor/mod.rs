//! Looking at an Oracle database before it is measured. What cannot be seen is not known, and never a reason to stop; only a
//! database that is gone ends it.

mod first_contact;
mod parameters;
mod questions;
mod rights;
mod trials;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use self::first_contact::{first_contact, first_contact_script};
use self::rights::{Circumstances, rights};
use super::connect::Connector;
use super::data::{Access, prove, schema_of};
use super::driver::{DB_TYPE_NUMBER, DB_TYPE_VARCHAR, Error, Row, ToDbValue};
use super::sql::{self, PlanLine, Sql, plan_fault};
use crate::connect::Connected;
use crate::error::{LACKS_RIGHTS, number};
use ::sql::ServerError;
use ::sql::data::{DataSet, Stage, catalog};
use ::sql::database::APPLICATION;
use measure::doctor::Check;
use model::config::oracle::{OracleAddress, OraclePlace};
use model::units::Bytes;
use model::workload::mix64;
use targets::TargetError;
use targets::database::{Examination, Method, data_words};
use trials::Waits;

/// Round trips that are timed.
const ROUND_TRIPS: usize = 20;
/// How long reads of the load's kind are tried out, and keys of each, as SLOB's WORK_UNIT has it.
const READ_FOR: Duration = Duration::from_secs(2);
const READ_KEYS: u64 = 64;
/// Schemas whose layout is proved here; a run proves all that it uses.
const PROVED_SCHEMAS: u32 = 1;
/// Editions that limit what they use, and what they limit.
const LIMITED_EDITIONS: [(&str, &str); 3] = [
    ("Express", "processors, memory and data"),
    ("Free", "processors, memory and data"),
    ("Standard Edition 2", "itself to 16 processor threads, by the wait `resmgr:cpu quantum`"),
];

/// Looks at everything that matters to a measurement, and changes nothing. Names of machines are masked in what comes out.
///
/// # Errors
/// When the database cannot be reached, or is gone in the middle; or when `stop` was set.
pub fn examine(address: &OracleAddress, say: &dyn Fn(&str), stop: &AtomicBool) -> Result<Examination, TargetError> {
    let connector = Connector::new(address, APPLICATION, false, Method::default())?;
    let namespace = schema_of(&address.user);
    let access = Access::new(&connector, &namespace);
    let mut asked = DoctorSession::connect(&connector)?;
    let mut hosts = hosts_of(address);
    let mut checks = Vec::new();
    say("looking at the database, its rights and parameters");
    checks.push(version(&mut asked)?);
    let landing = Landing::ask(&mut asked, &mut hosts)?;
    checks.extend(landing.checks());
    let found = asked.unless_refused("data", catalog::find::<_, DataSet>(&access))?.flatten();
    let data = found.as_ref().filter(|found| found.stage == Stage::Ready).map(|found| &found.data);
    let parameters = asked.parameters()?;
    let circumstances = Circumstances {
        has_data: data.is_some(),
        is_pluggable: landing.is_pluggable(),
        is_cluster: parameters.get("cluster_database").map(|value| value.eq_ignore_ascii_case("TRUE")),
    };
    let tablespace = asked.rows("ask for the tablespace", sql::PLACE, |row| row.get::<String>(0))?;
    let tablespace = tablespace.and_then(|rows| rows.into_iter().next());
    asked.note("tablespace", tablespace.as_deref().unwrap_or("not known"));
    checks.extend(rights(&mut asked, &namespace, tablespace.as_deref(), circumstances)?);
    checks.extend(parameters::judge(&parameters));
    let cache = asked.rows("ask for the buffer cache", sql::BUFFER_CACHE, |row| row.get::<u64>(0))?;
    let cache = cache.and_then(|rows| rows.into_iter().next()).map(Bytes);
    asked.note("buffer_cache", &cache.map_or_else(|| "not known".to_owned(), |bytes| bytes.0.to_string()));
    let data_bytes = data.map(|data| u64::from(data.schemas) * data.scale_blocks * u64::from(data.block_bytes));
    checks.push(parameters::cache(cache, data_bytes.map(Bytes), &parameters));
    check_stop(stop)?;
    checks.extend(clock(&mut asked)?);
    checks.extend(round_trips(&mut asked)?);
    match (data, &found) {
        (Some(data), _) => checks.extend(with_data(&mut asked, &access, data, &landing, say, stop)?),
        (None, found) => {
            let state = if found.is_some() { "there, but not whole" } else { "none are there" };
            checks.push(Check::advice(
                "data",
                format!("{state}: how rows lie, how they are read and how commits wait is not known"),
                "make some and look again: `plimsoll slob setup -s 8 SCALE=10G`",
            ));
        }
    }
    let DoctorSession { facts, .. } = asked;
    checks.extend(unanswered(&facts));
    let target = address.to_string();
    Ok(Examination { target, checks, facts }.masked(&hosts))
}

/// Says how much is missing here because the server refused to answer.
fn unanswered(facts: &BTreeMap<String, String>) -> Option<Check> {
    let refused = facts.keys().filter(|name| name.starts_with(REFUSED)).count();
    (refused > 0).then(|| {
        Check::advice(
            "questions",
            format!("{refused} were refused, and what they would have shown is not known"),
            format!("the file has each with the server's words, under `{REFUSED}`"),
        )
    })
}

fn check_stop(stop: &AtomicBool) -> Result<(), TargetError> {
    if stop.load(Ordering::Relaxed) { Err(TargetError::Interrupted) } else { Ok(()) }
}

/// The machines that an address names.
fn hosts_of(address: &OracleAddress) -> Vec<String> {
    match &address.place {
        OraclePlace::Listeners { nodes, .. } => nodes.iter().map(|node| node.host.clone()).collect(),
        OraclePlace::Alias(_) => Vec::new(),
        OraclePlace::Descriptor(text) => {
            let upper = text.to_ascii_uppercase();
            let after = |(at, word): (usize, &str)| text[at + word.len()..].trim_start().strip_prefix('=');
            let ends = |value: &str| value.split(')').next().unwrap_or_default().trim().trim_matches('"').to_owned();
            upper.match_indices("HOST").filter_map(after).map(ends).collect()
        }
    }
}

fn text(row: &Row, column: usize) -> Result<String, Error> {
    Ok(row.get::<Option<String>>(column)?.unwrap_or_default())
}

/// Product, edition and version.
fn version(asked: &mut DoctorSession) -> Result<Check, TargetError> {
    let exact = asked.connected.version_text();
    let product = asked.rows("ask for the product", sql::PRODUCT, |row| text(row, 0))?;
    let product = product.and_then(|rows| rows.into_iter().next()).unwrap_or_else(|| "Oracle".to_owned());
    let shown = format!("{}, {exact}", product.trim());
    asked.note("version", &shown);
    Ok(match LIMITED_EDITIONS.iter().find(|(edition, _)| product.contains(edition)) {
        Some((_, what)) => {
            let advice = format!("this edition limits {what}: a ceiling may be the edition's and not the machine's");
            Check::advice("version", shown, advice)
        }
        None => Check::good("version", shown),
    })
}

/// Where the session has landed.
#[derive(Debug, Default)]
struct Landing {
    container: String,
    /// Number of the container: 0 without containers, 1 for the root.
    container_id: Option<u32>,
    service: String,
    instance: String,
    /// `PRIMARY`, `PHYSICAL STANDBY`, …; empty where that is not known.
    role: String,
    protocol: String,
    /// Open mode, log mode and whether flashback logs are written, where that may be seen.
    open: Option<(String, String, String)>,
}

impl Landing {
    /// Notes the names of both machines besides, for the masks.
    fn ask(asked: &mut DoctorSession, hosts: &mut Vec<String>) -> Result<Self, TargetError> {
        let landed = asked.rows("ask where it landed", sql::SESSION, |row| {
            Ok((text(row, 2)?, text(row, 3)?, text(row, 4)?, text(row, 5)?))
        })?;
        let (container, service, instance, role) = landed.and_then(|rows| rows.into_iter().next()).unwrap_or_default();
        let way = asked.rows("ask how it came", questions::WAY, |row| {
            Ok((text(row, 0)?, text(row, 1)?, [text(row, 2)?, text(row, 3)?, text(row, 4)?]))
        })?;
        let (protocol, container_id, machines) = way.and_then(|rows| rows.into_iter().next()).unwrap_or_default();
        hosts.extend(machines);
        let open = asked.rows("ask how it is open", questions::OPEN_MODE, |row| {
            Ok((text(row, 0)?, text(row, 1)?, text(row, 2)?))
        })?;
        let open = open.and_then(|rows| rows.into_iter().next());
        let landing =
            Self { container, container_id: container_id.parse().ok(), service, instance, role, protocol, open };
        for (name, value) in [
            ("container", landing.container.clone()),
            ("container_id", landing.container_id.map_or_else(String::new, |id| id.to_string())),
            ("service", landing.service.clone()),
            ("instance", landing.instance.clone()),
            ("role", landing.role.clone()),
            ("network_protocol", landing.protocol.clone()),
        ] {
            asked.note(name, if value.is_empty() { "not known" } else { &value });
        }
        Ok(landing)
    }

    fn is_root(&self) -> bool {
        self.container_id == Some(1)
    }

    fn is_pluggable(&self) -> bool {
        self.container_id.is_some_and(|id| id > 1)
    }

    fn is_standby(&self) -> bool {
        sql::only_reads(&self.role)
    }

    fn checks(&self) -> Vec<Check> {
        let kind = match self.container_id {
            Some(0) => "no containers",
            Some(1) => "the root of a container database",
            Some(_) => "a pluggable database",
            None => "a container",
        };
        let place = format!("instance {}, service {}, {} ({kind})", self.instance, self.service, self.container);
        let mut checks = vec![if self.is_root() {
            Check::advice(
                "landed on",
                place,
                "name the service of a pluggable database; common users cannot make our tables here",
            )
        } else {
            Check::good("landed on", place)
        }];
        let role = if self.role.is_empty() { "role not known" } else { &self.role };
        let (finding, flashback) = match &self.open {
            Some((mode, log, flashback)) => (format!("{role}, {mode}, {log}"), flashback.as_str()),
            None => (format!("{role}; how it is open is not known"), ""),
        };
        checks.push(if self.is_standby() {
            Check::advice("role", finding, "it can only be read: loads without updates (UPDATE_PCT=0)")
        } else if flashback.starts_with("YES") {
            let advice = "updates write flashback logs as well; say so beside the figures, or measure without";
            Check::advice("role", finding + ", flashback on", advice)
        } else {
            Check::good("role", finding)
        });
        checks.extend(match self.protocol.as_str() {
            "" => None,
            "tcps" => Some(Check::good("network", "TCPS: encrypted, which costs both sides processor time")),
            other => Some(Check::good(
                "network",
                format!(
                    "{other}, not encrypted; the driver does not check that the server knows the password, TCPS would"
                ),
            )),
        });
        checks
    }
}

fn clock(asked: &mut DoctorSession) -> Result<Option<Check>, TargetError> {
    let values: [&dyn ToDbValue; 2] = [&DB_TYPE_NUMBER, &DB_TYPE_NUMBER];
    let read = |row: Row| Ok((row.get::<Option<f64>>(0)?, row.get::<Option<u64>>(1)?.unwrap_or(0)));
    let Some((smallest_us, steps)) = asked.block("read the clock", questions::CLOCK, &values, read)? else {
        return Ok(None);
    };
    asked.note("clock.smallest_step_us", &smallest_us.map_or_else(|| "none".to_owned(), |us| us.to_string()));
    asked.note("clock.steps", &steps.to_string());
    Ok(Some(trials::clock(smallest_us, steps)))
}

fn round_trips(asked: &mut DoctorSession) -> Result<Option<Check>, TargetError> {
    let mut took = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let began = Instant::now();
        asked.connected.ping()?;
        took.push(began.elapsed());
    }
    let shown: Vec<String> = took.iter().map(|took| took.as_micros().to_string()).collect();
    asked.note("round_trips_us", &shown.join(" "));
    Ok(trials::round_trips(took))
}

/// What can only be tried on data.
fn with_data(
    asked: &mut DoctorSession,
    access: &Access<'_>,
    data: &DataSet,
    landing: &Landing,
    say: &dyn Fn(&str),
    stop: &AtomicBool,
) -> Result<Vec<Check>, TargetError> {
    let sql = Sql::new(access.namespace, data.block_bytes);
    asked.note("data", &serde_json::to_string(data).unwrap_or_default());
    let words = data_words(data.schemas, data.scale_blocks, data.scan_blocks, data.block_bytes);
    let mut checks = vec![Check::good("data", words)];
    say("proving how rows lie, which reads a whole index");
    checks.push(layout(asked, access, data)?);
    check_stop(stop)?;
    say("reading for two seconds as a load does");
    checks.extend(reads(asked, data, &sql, stop)?);
    checks.extend(executed_plans(asked, &sql)?);
    if !landing.is_standby() {
        checks.extend(commits(asked, &sql)?);
    }
    Ok(checks)
}

fn layout(asked: &mut DoctorSession, access: &Access<'_>, data: &DataSet) -> Result<Check, TargetError> {
    let topic = "layout";
    match prove(access, data, PROVED_SCHEMAS) {
        Ok(proven) => {
            for (name, value) in &proven.facts {
                asked.note(name, value);
            }
            let fact = |name: &str| proven.facts.get(name).map_or("?", String::as_str);
            let (rows, blocks, plan) = (fact("layout.rows"), fact("layout.blocks"), fact("layout.plan"));
            let finding = format!(
                "{rows} rows in {blocks} blocks, each in one of its own; plan: {plan} (schema 1 of {})",
                data.schemas
            );
            Ok(match proven.notes.first() {
                Some(note) => {
                    Check::advice(topic, format!("{finding}; {note}"), "look at the plan yourself: EXPLAIN PLAN")
                }
                None => Check::good(topic, finding),
            })
        }
        Err(error) => {
            let hint = error.hint().unwrap_or_else(|| "send us this file".to_owned());
            let said = words_unless_gone(error)?;
            Ok(Check::problem(topic, said, hint))
        }
    }
}

/// Reads as the load does, in one session, and looks at what it waited for.
fn reads(
    asked: &mut DoctorSession,
    data: &DataSet,
    sql: &Sql,
    stop: &AtomicBool,
) -> Result<Option<Check>, TargetError> {
    let before = asked.waits()?;
    let text = sql.read(0).text;
    let keys = data.scale_blocks.min(READ_KEYS);
    let (mut operations, mut rows, began) = (0, 0, Instant::now());
    while began.elapsed() < READ_FOR {
        check_stop(stop)?;
        let first = sql.custid(mix64(data.seed ^ operations) % (data.scale_blocks - keys + 1));
        let beyond = first + keys;
        match asked.connected.count_of_query("read as a load does", &text, &[&first, &beyond]) {
            Ok(count) => rows += count,
            Err(error) => {
                let said = words_unless_gone(error.into())?;
                return Ok(Some(Check::problem("reads", said, "without this no load works either")));
            }
        }
        operations += 1;
    }
    let took = began.elapsed();
    let waits = before.zip(asked.waits()?).map(|(before, after)| trials::difference(&before, &after));
    for (event, (count, us)) in waits.iter().flatten() {
        asked.note(&format!("wait_of_reads.{event}"), &format!("{count} in {us} us"));
    }
    asked.note("reads", &format!("{operations} operations, {rows} rows, {} us", took.as_micros()));
    Ok(Some(trials::reads(operations, rows, took, waits.as_ref())))
}

/// How the server really executed those reads. Who may not see it knows the plan as it was explained.
fn executed_plans(asked: &mut DoctorSession, sql: &Sql) -> Result<Option<Check>, TargetError> {
    let read = |row: &Row| {
        let line = PlanLine { operation: text(row, 1)?, options: row.get(2)?, object: row.get(3)? };
        Ok((text(row, 0)?, line))
    };
    let lines = asked.rows_for("look at executed plans", sql::EXECUTED_PLANS, &[&APPLICATION], read)?;
    let Some(lines) = lines.filter(|lines| !lines.is_empty()) else { return Ok(None) };
    for (at, (statement, line)) in lines.iter().enumerate() {
        let PlanLine { operation, options, object } = line;
        let parts = [Some(statement.as_str()), Some(operation), options.as_deref(), object.as_deref()];
        asked.note(&format!("plan.{at:03}"), &parts.into_iter().flatten().collect::<Vec<_>>().join(" "));
    }
    let index = sql.index(0);
    let is_of_index =
        |line: &PlanLine| line.object.as_deref().is_some_and(|object| object.eq_ignore_ascii_case(&index));
    let mut statements: Vec<&str> =
        lines.iter().filter(|(_, line)| is_of_index(line)).map(|(id, _)| id.as_str()).collect();
    statements.dedup();
    let fault = statements.iter().find_map(|id| {
        let plan: Vec<PlanLine> = lines.iter().filter(|(of, _)| of == id).map(|(_, line)| line.clone()).collect();
        plan_fault(&plan, &index)
    });
    Ok(match (fault, statements.len()) {
        (_, 0) => None,
        (Some(fault), _) => Some(Check::advice(
            "executed plans",
            format!("a statement was executed by {fault}"),
            "gather statistics anew, or make the data anew: `plimsoll slob setup --replace`",
        )),
        (None, count) => {
            Some(Check::good("executed plans", format!("by index and ROWID, in all {count} that were seen")))
        }
    })
}

/// Commits as updates do, in a block, and looks whether they waited.
fn commits(asked: &mut DoctorSession, sql: &Sql) -> Result<Option<Check>, TargetError> {
    let of_commits =
        |waits: Option<trials::Waits>| waits.map(|waits| waits.get(trials::COMMIT_WAIT).map_or(0, |(count, _)| *count));
    let before = of_commits(asked.waits()?);
    let synchronous = asked.synchronous_writes()?;
    let values: [&dyn ToDbValue; 1] = [&DB_TYPE_VARCHAR];
    let read = |row: Row| row.get::<Option<String>>(0);
    let Some(took) = asked.block("commit", &questions::commits(sql), &values, read)? else { return Ok(None) };
    let took = took.unwrap_or_default();
    asked.note("commits_us", took.trim());
    let took: Vec<u64> = took.split_whitespace().filter_map(|us| us.parse().ok()).collect();
    let waits = before.zip(of_commits(asked.waits()?)).and_then(|(before, after)| after.checked_sub(before));
    let synchronous = synchronous.zip(asked.synchronous_writes()?);
    let synchronous = synchronous.and_then(|(before, after)| after.checked_sub(before));
    for (name, count) in [("commits.waits", waits), ("commits.synchronous_writes", synchronous)] {
        asked.note(name, &count.map_or_else(|| "not known".to_owned(), |count| count.to_string()));
    }
    Ok(trials::commits(took, waits, synchronous))
}

/// Longest that one question may take.
const CALL_LIMIT: Duration = Duration::from_secs(60);
/// What a view that is not there, or not to be seen, is called.
const NO_TABLE: u32 = 942;

/// How the names of notes begin that say why there was no answer.
const REFUSED: &str = "refused.";

/// A session, and what is known so far.
struct DoctorSession {
    connected: Connected,
    facts: BTreeMap<String, String>,
}

impl DoctorSession {
    fn connect(connector: &Connector) -> Result<Self, TargetError> {
        let connected = connector.connect(0)?;
        connected.limit_calls(Some(CALL_LIMIT))?;
        connected.name_work(connector.program(), "doctor");
        Ok(Self { connected, facts: BTreeMap::new() })
    }

    /// Keeps something that was said, on one line.
    fn note(&mut self, name: &str, value: &str) {
        self.facts.insert(name.to_owned(), value.replace(char::is_control, " "));
    }

    /// An answer, or `None` and a note where it was refused.
    fn unless_refused<T>(&mut self, about: &str, answer: Result<T, TargetError>) -> Result<Option<T>, TargetError> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => {
                let words = words_unless_gone(error)?;
                self.note(&format!("{REFUSED}{about}"), &words);
                Ok(None)
            }
        }
    }

    /// All rows of a query; `None` where that was refused.
    fn rows<T>(
        &mut self,
        doing: &str,
        sql: &str,
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Option<Vec<T>>, TargetError> {
        self.rows_for(doing, sql, &[], read)
    }

    /// The same with values.
    fn rows_for<T>(
        &mut self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Option<Vec<T>>, TargetError> {
        let rows = self.connected.query(doing, sql, values, read).map_err(TargetError::from);
        self.unless_refused(doing, rows)
    }

    /// What a block puts out; `None` where it was refused.
    fn block<T>(
        &mut self,
        doing: &str,
        sql: &str,
        values: &[&dyn ToDbValue],
        read: impl FnOnce(Row) -> Result<T, Error>,
    ) -> Result<Option<T>, TargetError> {
        let out = self.connected.call(doing, sql, values);
        let out = out.and_then(|row| read(row).map_err(|error| self.connected.error(doing, &error)));
        self.unless_refused(doing, out.map_err(TargetError::from))
    }

    /// Whether a query is allowed; `None` where it fails for another reason.
    fn may_read(&mut self, sql: &str) -> Result<Option<bool>, TargetError> {
        match self.connected.query("try a view", sql, &[], |_| Ok(())) {
            Ok(_) => Ok(Some(true)),
            Err(error) => {
                let number = number(&error);
                let words = words_unless_gone(error.into())?;
                if number.is_some_and(|number| number == NO_TABLE || LACKS_RIGHTS.contains(&number)) {
                    return Ok(Some(false));
                }
                self.note(&format!("{REFUSED}{sql}"), &words);
                Ok(None)
            }
        }
    }

    /// Whether there is room in a tablespace for more.
    fn quota(&mut self, tablespace: &str) -> Result<Option<bool>, TargetError> {
        let read = |row: &Row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?));
        let quotas = self.rows_for("ask for the quota", sql::QUOTAS, &[&tablespace], read)?;
        Ok(quotas.map(|rows| rows.iter().any(|(has, may)| *may == -1 || has < may)))
    }

    /// Parameters, by name; none where they may not be seen.
    fn parameters(&mut self) -> Result<BTreeMap<String, String>, TargetError> {
        let read = |row: &Row| Ok((row.get::<String>(0)?, row.get::<Option<String>>(1)?.unwrap_or_default()));
        let parameters = self.rows("ask for the parameters", questions::PARAMETERS, read)?;
        let parameters: BTreeMap<String, String> = parameters.into_iter().flatten().collect();
        for (name, value) in &parameters {
            self.note(&format!("parameter.{name}"), value);
        }
        Ok(parameters)
    }

    /// How often this session has asked for its redo to be on storage, where it may see that.
    fn synchronous_writes(&mut self) -> Result<Option<u64>, TargetError> {
        let count = self.rows("ask for its synchronous writes", questions::SYNCHRONOUS_WRITES, |row| row.get(0))?;
        Ok(count.and_then(|rows| rows.into_iter().next()))
    }

    /// What this session has waited for so far, where it may see that.
    fn waits(&mut self) -> Result<Option<Waits>, TargetError> {
        let read = |row: &Row| Ok((row.get::<String>(0)?, (row.get::<u64>(1)?, row.get::<u64>(2)?)));
        let waits = self.rows("ask for its waits", questions::OWN_WAITS, read)?;
        Ok(waits.map(|waits| waits.into_iter().collect()))
    }
}

/// What was said instead of an answer.
///
/// # Errors
/// The error itself, when the database is gone or nobody wants to know any more.
fn words_unless_gone(error: TargetError) -> Result<String, TargetError> {
    match error.database() {
        Some(ServerError::Refused { .. } | ServerError::Unfit { .. }) => Ok(error.to_string()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::doctor::Status;

    #[test]
    fn machines_are_found_in_every_kind_of_address() {
        let of = |address: &str| hosts_of(&address.parse().unwrap());
        assert_eq!(of("oracle://u@a.b,c:1522/s"), ["a.b", "c"]);
        assert_eq!(of("oracle://u@ALIAS"), [""; 0]);
        let descriptor = "oracle://u@(DESCRIPTION=(ADDRESS=(PROTOCOL=tcp)(host = db1)(PORT=1))(ADDRESS=(HOST=\"db2\")(PORT=1))\
                          (CONNECT_DATA=(SERVICE_NAME=s)))";
        assert_eq!(of(descriptor), ["db1", "db2"]);
    }

    #[test]
    fn where_a_session_landed_is_judged() {
        let landing = |id, role: &str| Landing { container_id: id, role: role.to_owned(), ..Landing::default() };
        let status = |landing: Landing| landing.checks().iter().map(|check| check.status).max().unwrap();
        assert_eq!(status(landing(Some(3), "PRIMARY")), Status::Good);
        assert_eq!(status(landing(Some(1), "PRIMARY")), Status::Advice);
        assert_eq!(status(landing(Some(0), "PHYSICAL STANDBY")), Status::Advice);
        let open = Some(("READ WRITE".to_owned(), "ARCHIVELOG".to_owned(), "YES".to_owned()));
        assert_eq!(status(Landing { open, ..landing(Some(3), "PRIMARY") }), Status::Advice);
    }
}
