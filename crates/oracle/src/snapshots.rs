//! AWR and Statspack: snapshots at both edges of a window, and the report between them.
//!
//! A connection of its own takes each, so that none is taken by a session of the load. The first is asked for so early in the
//! warm-up that it is there when the window begins; the second as soon as the load has ended. So a report covers a little more
//! than the window, and says how much.

use crate::error::{NOT_GRANTED, number};
use std::ops::Range;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::connect::{Connected, Connector};
use super::data::schema_of;
use super::driver::{DB_TYPE_NUMBER, Row, ToDbValue};
use super::error::SEND_US;
use super::sql::{Grant, Need, grants};
use super::statspack::{self, Outcome};
use ::sql::ServerError;
use measure::Clock;
use model::record::OwnReport;
use targets::{DatabaseError as _, OwnReportKind, OwnReporter, OwnReports};

/// The name under which snapshots are taken; sessions of the load have another.
const MODULE: &str = "plimsoll snapshots";
/// A snapshot or a report that takes longer than this is given up: snapshots of large instances take minutes at worst.
const MAX_CALL: Duration = Duration::from_secs(300);
/// The first snapshot is asked for so many times the time of the one before it ahead of the window: under load it takes longer.
const LEAD_TIMES: u32 = 2;
/// And this much besides, for connecting and for a busy machine.
const LEAD_MARGIN: Duration = Duration::from_millis(500);

/// The database, or the pluggable one, that snapshots are of, and the instance.
const PLACE: &str = "SELECT con_dbid, TO_NUMBER(SYS_CONTEXT('USERENV', 'INSTANCE')), \
    TO_NUMBER(SYS_CONTEXT('USERENV', 'CON_ID')) FROM v$database";
const INSTANCE: &str = "SELECT TO_NUMBER(SYS_CONTEXT('USERENV', 'INSTANCE')) FROM dual";
/// The first release in which pluggable databases have an AWR of their own.
const AWR_OF_CONTAINERS: [usize; 5] = [12, 2, 0, 0, 0];
/// Connections that are made until one lands on the instance that is meant.
const MAX_ATTEMPTS: usize = 8;
/// A package that is not to be executed, in a block.
const DOES_NOT_COMPILE: u32 = 6550;
const TAKE_AWR: &str = "BEGIN :1 := SYS.DBMS_WORKLOAD_REPOSITORY.CREATE_SNAPSHOT; END;";
const TAKE_STATSPACK: &str = "BEGIN :1 := PERFSTAT.STATSPACK.SNAP; END;";
const REPORT: &str = "SELECT output FROM TABLE(SYS.DBMS_WORKLOAD_REPOSITORY.AWR_REPORT_TEXT(:1, :2, :3, :4))";

/// Has Oracle databases report on windows.
#[derive(Debug)]
pub(super) struct Snapshots {
    databases: Arc<Databases>,
    begun: Mutex<Option<Begun>>,
}

/// What is reported on.
#[derive(Debug)]
struct Databases {
    connector: Connector,
    kind: OwnReportKind,
    /// One for each instance that an address leads to.
    places: Vec<ReportedInstance>,
    /// How long the last snapshot took.
    took: Mutex<Duration>,
}

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReportedInstance {
    /// Number of the node that leads there.
    node: usize,
    name: String,
    dbid: u64,
    instance: u64,
    /// Whether that is a pluggable database.
    is_container: bool,
}

/// The first snapshot of a window.
#[derive(Debug)]
enum Begun {
    /// It is taken when its time comes, unless the sender is dropped before.
    Later(Sender<()>, JoinHandle<Option<Result<Taken, ServerError>>>),
    Now(Result<Taken, ServerError>),
}

/// Snapshots that were taken.
#[derive(Debug)]
struct Taken {
    asked_ns: u64,
    there_ns: u64,
    /// The number of each place's snapshot.
    numbers: Vec<u64>,
}

impl Snapshots {
    /// Takes a first snapshot, to learn before any load whether that is allowed and how long it takes.
    ///
    /// # Errors
    /// When it is refused, with the right that is missing.
    pub(super) fn new(connector: &Connector, kind: OwnReportKind) -> Result<Self, ServerError> {
        let mut places: Vec<ReportedInstance> = Vec::new();
        for (node, name) in connector.nodes().into_iter().enumerate() {
            let doing = format!("find out which database {} is to report on", kind.name());
            let read = |row: &Row| Ok((row.get::<u64>(0)?, row.get::<u64>(1)?, row.get::<Option<u64>>(2)?));
            let asked = connected(connector, node)?;
            let found = asked.first(&doing, PLACE, &[], read);
            let found = found.map_err(|error| with_grants(connector, kind, error))?;
            let (dbid, instance, container) = found.ok_or_else(|| ServerError::Unfit {
                what: format!("cannot {doing}: v$database is empty on `{name}`"),
                hint: Some(SEND_US.to_owned()),
            })?;
            if kind == OwnReportKind::Awr && container > Some(1) {
                refuse_without_awr(asked.version, &name)?;
            }
            if !places.iter().any(|place| (place.dbid, place.instance) == (dbid, instance)) {
                // 0 is a database that has no containers, 1 the root of one that has.
                places.push(ReportedInstance { node, name, dbid, instance, is_container: container > Some(1) });
            }
        }
        // Where a cluster is watched as a whole, each instance has figures of its own to lay beside. A snapshot for AWR is of all
        // of them, wherever it is asked for.
        if let ([place], instances) = (places.as_slice(), connector.instances())
            && instances.contains_key(&place.instance)
        {
            let is_reported = |instance: &u64| kind == OwnReportKind::Awr || *instance == place.instance;
            let of_each = instances.iter().filter(|(instance, _)| is_reported(instance));
            let of_each = of_each.map(|(instance, name)| ReportedInstance {
                name: name.clone(),
                instance: *instance,
                ..place.clone()
            });
            places = of_each.collect();
        }
        let took = Mutex::new(Duration::ZERO);
        let databases = Databases { connector: connector.clone(), kind, places, took };
        databases.take(Clock::start()).map_err(|error| with_grants(connector, kind, error))?;
        Ok(Self { databases: Arc::new(databases), begun: Mutex::new(None) })
    }

    fn begun(&self) -> Option<Result<Taken, ServerError>> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        match begun? {
            Begun::Now(taken) => Some(taken),
            Begun::Later(go_on, thread) => {
                drop(go_on);
                thread.join().ok().flatten()
            }
        }
    }
}

impl OwnReporter for Snapshots {
    fn load_begins(&self, clock: Clock, warmup: Duration) {
        let databases = Arc::clone(&self.databases);
        // Where the warm-up is too short, the snapshot comes before all load.
        let begun = match warmup.checked_sub(databases.lead()) {
            None => Begun::Now(databases.take(clock)),
            Some(wait) => {
                let (go_on, going_on) = mpsc::channel();
                let thread = std::thread::Builder::new().name("snapshot".to_owned()).spawn(move || {
                    let is_time = going_on.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
                    is_time.then(|| databases.take(clock))
                });
                match thread {
                    Ok(thread) => Begun::Later(go_on, thread),
                    Err(_) => Begun::Now(self.databases.take(clock)),
                }
            }
        };
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
    }

    fn load_ended(&self, clock: Clock, window_ns: Option<Range<u64>>) -> OwnReports {
        let mut all = OwnReports::default();
        // Looked at in any case: a snapshot that is still to come is called off by that.
        let begun = self.begun();
        let Some(window_ns) = window_ns else { return all };
        let databases = &*self.databases;
        let begun = begun.unwrap_or_else(|| {
            let hint =
                Some("the window may have ended before its turn: use a longer RUN_TIME or `--warmup`".to_owned());
            Err(ServerError::Unfit { what: "the snapshot before the window was not taken".to_owned(), hint })
        });
        let edges = begun.and_then(|begin| Ok((begin, databases.take(clock)?)));
        let (begin, end) = match edges {
            Ok(edges) => edges,
            Err(error) => {
                all.notes.push(databases.missing(&error));
                return all;
            }
        };
        for (place, (begin_snapshot, end_snapshot)) in
            databases.places.iter().zip(begin.numbers.into_iter().zip(end.numbers))
        {
            let report = OwnReport {
                kind: databases.kind.name().to_owned(),
                node: place.name.clone(),
                instance: place.instance,
                begin_snapshot,
                end_snapshot,
                lead_ns: window_ns.start.saturating_sub(begin.asked_ns),
                overlap_ns: begin.there_ns.saturating_sub(window_ns.start),
                lag_ns: end.there_ns.saturating_sub(window_ns.end),
                ..OwnReport::default()
            };
            match databases.kind {
                OwnReportKind::Awr => match databases.report(place, &report) {
                    Ok(text) => all.reports.push((report, Some(text))),
                    Err(error) => all.notes.push(databases.missing(&error)),
                },
                OwnReportKind::Statspack => databases.report_to(place, report, &mut all),
            }
        }
        all
    }
}

impl Databases {
    /// How long before the window the first snapshot is asked for.
    fn lead(&self) -> Duration {
        *self.took.lock().unwrap_or_else(PoisonError::into_inner) * LEAD_TIMES + LEAD_MARGIN
    }

    /// Takes a snapshot for each place.
    fn take(&self, clock: Clock) -> Result<Taken, ServerError> {
        let began = Instant::now();
        let asked_ns = clock.now_ns();
        let (doing, statement) = match self.kind {
            OwnReportKind::Awr => ("take a snapshot for AWR", TAKE_AWR),
            OwnReportKind::Statspack => ("take a snapshot for Statspack", TAKE_STATSPACK),
        };
        let mut numbers: Vec<u64> = Vec::new();
        for place in &self.places {
            // AWR takes one of all instances of a cluster, Statspack one of the instance that it is asked on.
            let mut known = self.places.iter().zip(&numbers);
            let same = known.find(|(other, _)| self.kind == OwnReportKind::Awr && other.dbid == place.dbid);
            let number = match same {
                Some((_, number)) => *number,
                None => {
                    let connected = match self.kind {
                        OwnReportKind::Awr => connected(&self.connector, place.node)?,
                        OwnReportKind::Statspack => self.connected_at(place)?,
                    };
                    let row = connected.call(doing, statement, &[&DB_TYPE_NUMBER])?;
                    row.get(0).map_err(|error| connected.error(doing, &error))?
                }
            };
            numbers.push(number);
        }
        *self.took.lock().unwrap_or_else(PoisonError::into_inner) = began.elapsed();
        Ok(Taken { asked_ns, there_ns: clock.now_ns(), numbers })
    }

    /// Connects to the instance of a place: a listener may send each connection to another one, of which Statspack would then keep
    /// the counters.
    fn connected_at(&self, place: &ReportedInstance) -> Result<Connected, ServerError> {
        let doing = "find the instance of which Statspack is to take a snapshot";
        for _ in 0..MAX_ATTEMPTS {
            let connected = connected(&self.connector, place.node)?;
            if connected.first(doing, INSTANCE, &[], |row| row.get::<u64>(0))? == Some(place.instance) {
                return Ok(connected);
            }
        }
        Err(ServerError::Unfit {
            what: format!(
                "`{}` leads to other instances than number {}, whose snapshots are taken",
                place.name, place.instance
            ),
            hint: Some("name one instance for Statspack: `?instance=NAME`, or each with `--per-node`".to_owned()),
        })
    }

    /// The text of a report.
    fn report(&self, place: &ReportedInstance, report: &OwnReport) -> Result<String, ServerError> {
        let values: [&dyn ToDbValue; 4] = [&place.dbid, &place.instance, &report.begin_snapshot, &report.end_snapshot];
        let line = |row: &Row| row.get::<Option<String>>(0);
        let lines = connected(&self.connector, place.node)?.query("fetch the report of AWR", REPORT, &values, line)?;
        Ok(lines.into_iter().map(|line| line.unwrap_or_default() + "\n").collect())
    }

    /// What Statspack counted; where that may not be read, the numbers of its snapshots.
    fn report_to(&self, place: &ReportedInstance, mut report: OwnReport, all: &mut OwnReports) {
        let reported = connected(&self.connector, place.node)
            .and_then(|connected| statspack::report(&connected, &report, place.is_container));
        match reported {
            Ok(Outcome::Report(counted, text, remarks)) => {
                (report.counted, report.remarks) = (Some(*counted), remarks);
                all.reports.push((report, Some(text)));
            }
            Ok(Outcome::Nothing(why)) => all.notes.push(format!("a report of {} is missing: {why}", self.kind.name())),
            Err(error) => {
                all.notes.push(self.missing(&with_grants(&self.connector, self.kind, error)));
                all.reports.push((report, None));
            }
        }
    }

    fn missing(&self, error: &ServerError) -> String {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("a report of {} is missing: {error}{hint}", self.kind.name())
    }
}

fn connected(connector: &Connector, node: usize) -> Result<Connected, ServerError> {
    let connected = connector.connect(node)?;
    connected.name_work(MODULE, "");
    connected.limit_calls(Some(MAX_CALL))?;
    Ok(connected)
}

/// Refuses AWR in a pluggable database of a release that keeps it in the root alone.
fn refuse_without_awr(version: [usize; 5], name: &str) -> Result<(), ServerError> {
    if version >= AWR_OF_CONTAINERS {
        return Ok(());
    }
    Err(ServerError::Unfit {
        what: format!("`{name}` is a pluggable database, and Oracle before 12.2 keeps AWR in the root alone"),
        hint: Some("have Statspack report instead: `--statspack`".to_owned()),
    })
}

/// A refusal with what would have been granted; other errors as they are.
fn with_grants(connector: &Connector, kind: OwnReportKind, error: ServerError) -> ServerError {
    if !number(&error).is_some_and(|number| number == DOES_NOT_COMPILE || NOT_GRANTED.contains(&number)) {
        return error;
    }
    let user = schema_of(connector.user());
    let (need, first) = match kind {
        OwnReportKind::Awr => (Need::Awr, ""),
        OwnReportKind::Statspack => {
            (Need::Statspack, "Statspack has to be installed (`@?/rdbms/admin/spcreate`), and ")
        }
    };
    let is_needed = |grant: &Grant| grant.need == need || grant.statement.contains("V_$DATABASE ");
    let grants: Vec<String> = grants(&user, "").into_iter().filter(is_needed).map(|grant| grant.statement).collect();
    let hint = format!("{first}an administrator grants it: {}", grants.join("; "));
    ServerError::Unfit { what: error.to_string(), hint: Some(hint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pluggable_database_of_12_1_has_no_awr() {
        assert!(refuse_without_awr([12, 2, 0, 1, 0], "db1").is_ok());
        let refused = refuse_without_awr([12, 1, 0, 2, 0], "db1").unwrap_err();
        assert!(refused.to_string().contains("in the root alone"), "{refused}");
        assert!(refused.hint().is_some_and(|hint| hint.contains("--statspack")));
    }
}
