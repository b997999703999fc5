//! What instances report on themselves while load runs on them: their statistics, time model, waits and histograms of these by
//! difference, and what the load's sessions are doing. No view that is read here needs a licence besides the database's.
//!
//! An address that leads to a cluster has each of its instances read, in one statement for all of them where that is granted.
//!
//! The driver waits for its answers, so each is waited for on a thread of its own: a slow instance does not keep the others waiting.

mod cluster;
mod reading;
#[cfg(test)]
mod tests;
mod views;
mod waits;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::cluster::Cluster;
use self::reading::InstanceReading;
use self::views::{Form, Part, Reach, Row, Scope, Whose};
use super::connect::{Connected, Connector};
use super::data::schema_of;
use super::driver::ToDbValue;
use super::error::{ORACLE, OraNumber, SEND_US};
use super::meanings::{STATISTICS, TIMES};
use super::sql::quoted;
use ::sql::{Doing, Readings, Sampled, ServerError, ServerReader};
use model::record::ServerStats;
use reading::compare;
use views::{IS_MACHINE_TIME, listed};

/// The name under which monitoring sessions work; those of the load have another.
const MODULE: &str = "plimsoll monitor";
/// A view that takes longer than this to answer is taken for stuck. Long enough that it never comes in the middle of an answer, which
/// the driver would not survive.
const MAX_CALL: Duration = Duration::from_secs(60);
/// Connections that are made until one lands on an instance that is not watched already.
const MAX_ATTEMPTS: usize = 8;
/// Part of the time that reading the waits of the load's own sessions may take: they are many rows where sessions are many.
const OURS_SHARE: u32 = 20;

/// What to watch.
#[derive(Debug, Clone)]
pub struct MonitorRequest {
    connector: Connector,
    /// The name under which the load's sessions work, which tells them from others.
    module: String,
    /// Nodes that are watched, by their numbers: one for each instance, or one for a whole cluster.
    nodes: Vec<usize>,
    /// What is known of each of these, once it is connected.
    places: Arc<Mutex<Vec<Option<WatchedNode>>>>,
    /// What to know of the nodes that are not watched.
    remarks: Vec<String>,
}

/// Where a connection has landed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Instance {
    /// Of which there is one: the database, the instance and its machine.
    identity: [String; 3],
    scope: Scope,
    /// The pluggable database, where it is in one, and its number.
    container: (String, u64),
    /// Who has logged in, as sessions show it.
    user: String,
}

/// What is watched at a node.
#[derive(Debug)]
struct WatchedNode {
    instance: Instance,
    counters: Arc<Mutex<Connected>>,
    /// Whether all instances of its cluster are.
    reach: Reach,
    /// How sessions are looked at, where that is granted.
    doing: Option<Form>,
}

/// A connection that reads counters.
#[derive(Debug)]
pub struct CounterLine(Arc<Mutex<Counting>>);

#[derive(Debug)]
struct Counting {
    connected: Arc<Mutex<Connected>>,
    connector: Connector,
    whose: Whose,
    scope: Scope,
    reach: Reach,
    parts: Vec<(Part, Form)>,
    /// From when on the waits of the load's sessions may be read again.
    ours_from: Instant,
}

/// A connection that looks at sessions.
#[derive(Debug)]
pub struct SampleLine(Arc<Looking>);

#[derive(Debug)]
struct Looking {
    connected: Arc<Mutex<Connected>>,
    connector: Connector,
    whose: Whose,
    doing: Option<Form>,
}

impl MonitorRequest {
    /// To watch the instances that `connector` leads to, each of them once, and there the sessions of this user that work under the
    /// name `module`. Where there are several nodes it connects to each.
    pub fn new(connector: Connector, module: &str) -> Self {
        let names = connector.nodes();
        let mut known: Vec<(Instance, usize)> = Vec::new();
        let (mut nodes, mut remarks) = (Vec::new(), Vec::new());
        for (node, name) in names.iter().enumerate() {
            // One that cannot be connected is watched, and says then why it cannot.
            let landed =
                (names.len() > 1).then(|| landed(&connector, node).ok()).flatten().map(|(_, instance)| instance);
            match landed.as_ref().and_then(|landed| known.iter().find(|(known, _)| known.is(landed))) {
                Some((instance, first)) => remarks.push(format!(
                    "`{name}` leads to the instance {} as `{}` does: what it counts is reported once, there",
                    instance.name(),
                    names[*first]
                )),
                None => {
                    nodes.push(node);
                    known.extend(landed.map(|landed| (landed, node)));
                }
            }
        }
        let places = Arc::new(Mutex::new(nodes.iter().map(|_| None).collect()));
        Self { connector, module: module.to_owned(), nodes, places, remarks }
    }

    /// Connects to a watched node, on an instance that no other one watches.
    fn connect(&self, watched: usize) -> Result<(Connected, Instance), ServerError> {
        let node = self.nodes[watched];
        for _ in 0..MAX_ATTEMPTS {
            let (connected, instance) = landed(&self.connector, node)?;
            let places = locked(&self.places);
            let others = places.iter().enumerate().filter(|(other, _)| *other != watched);
            let mut others = others.filter_map(|(_, place)| place.as_ref());
            if !others.any(|other| other.instance.is(&instance)) {
                return Ok((connected, instance));
            }
        }
        Err(ServerError::Unfit {
            what: format!(
                "`{}` leads to an instance that another address leads to as well, so that one is watched twice and one not at all",
                self.connector.nodes()[node]
            ),
            hint: Some("name listeners, or services, that lead to one instance each".to_owned()),
        })
    }

    /// Connects, and finds out what the instance shows. Says what it does not show, and how it would.
    fn find(&self, watched: usize) -> Result<(CounterLine, Vec<String>), ServerError> {
        let (connected, instance) = self.connect(watched)?;
        let user = &quoted(&schema_of(self.connector.user()));
        let mut notes = if watched == 0 { self.remarks.clone() } else { Vec::new() };
        let places = locked(&self.places);
        let before = places[watched].as_ref().filter(|place| place.reach == Reach::One);
        notes.extend(before.and_then(|before| instance.instead_of(&before.instance)));
        drop(places);
        if instance.scope == Scope::Container {
            notes.push(format!(
                "counters are those of the pluggable database {}. The log writer and database writers serve all of \
                them, so part of their work is unknown",
                instance.container.0
            ));
        }
        let whose = self.whose(&instance);
        let mut parts = Vec::new();
        for part in Part::ALL {
            let try_form = |form: &Form| form.read(&connected, "find out what the instance shows", &whose).map(drop);
            let (form, note) = views::find(part, instance.scope, user, try_form)?;
            notes.extend(note);
            parts.extend(form.map(|form| (part, form)));
        }
        let mut reach = Reach::One;
        if self.nodes.len() == 1 {
            match cluster::find(&connected, (instance.name(), instance.scope), &parts, user, &whose)? {
                Cluster::All(all) => (reach, parts) = (Reach::All, all),
                // It was watched as a whole, and is so again once that is possible.
                Cluster::Alone(_) if self.is_whole(watched) => {
                    let reason = "the instances of its cluster cannot be read together now";
                    return Err(ORACLE.lost(connected.node(), reason));
                }
                Cluster::Alone(note) => notes.extend(note),
            }
        }
        let doing = parts.pop_if(|(part, _)| *part == Part::Doing).map(|(_, form)| form);
        let (scope, connector) = (instance.scope, self.connector.clone());
        let connected = Arc::new(Mutex::new(connected));
        let place = WatchedNode { instance, counters: Arc::clone(&connected), reach, doing };
        locked(&self.places)[watched] = Some(place);
        let counting = Counting { connected, connector, whose, scope, reach, parts, ours_from: Instant::now() };
        Ok((CounterLine(Arc::new(Mutex::new(counting))), notes))
    }

    /// Whether a cluster is watched there.
    fn is_whole(&self, watched: usize) -> bool {
        locked(&self.places)[watched].as_ref().is_some_and(|place| place.reach == Reach::All)
    }

    fn whose(&self, instance: &Instance) -> Whose {
        Whose { module: self.module.clone(), user: instance.user.clone(), container: instance.container.1 }
    }

    /// Connects to look at the sessions of the instance whose counters are read.
    fn find_sessions(&self, watched: usize) -> Result<SampleLine, ServerError> {
        let (connected, instance) = landed(&self.connector, self.nodes[watched])?;
        let (whose, connector) = (self.whose(&instance), self.connector.clone());
        let places = locked(&self.places);
        let (connected, doing) = match &places[watched] {
            // The listener may lead to another one each time; then both share a connection.
            Some(place) if place.reach == Reach::One && !place.instance.is(&instance) => {
                (Arc::clone(&place.counters), place.doing.clone())
            }
            place => (Arc::new(Mutex::new(connected)), place.as_ref().and_then(|place| place.doing.clone())),
        };
        Ok(SampleLine(Arc::new(Looking { connected, connector, whose, doing })))
    }
}

impl Instance {
    /// Whether both are the same; one that does not say what it is called is none of the others.
    fn is(&self, other: &Self) -> bool {
        !self.name().is_empty() && self.identity == other.identity
    }

    /// What to know where this is watched in the place of another one, as far as that is known.
    fn instead_of(&self, before: &Self) -> Option<String> {
        let is_another = !before.name().is_empty() && !before.is(self);
        is_another.then(|| {
            let ([.., then], [.., now]) = (&before.identity, &self.identity);
            format!(
                "the connection that reads counters reached the instance {} on {then}, and {} on {now} after it \
                reconnected. Counters are of the first until then, and of the second since",
                before.name(),
                self.name()
            )
        })
    }

    fn name(&self) -> &str {
        &self.identity[1]
    }
}

/// Connects to a node, and says where that led.
fn landed(connector: &Connector, node: usize) -> Result<(Connected, Instance), ServerError> {
    let connected = connector.connect(node)?;
    connected.name_work(MODULE, "");
    connected.limit_calls(Some(MAX_CALL))?;
    // Everybody may ask for these.
    let names = ["DB_UNIQUE_NAME", "INSTANCE_NAME", "SERVER_HOST", "CON_ID", "CON_NAME", "SESSION_USER"];
    let columns = names.map(|name| format!("SYS_CONTEXT('USERENV', '{name}')")).join(", ");
    let found =
        connected.first("find out which instance it is", &format!("SELECT {columns} FROM dual"), &[], |row| {
            let mut texts: [String; 6] = Default::default();
            for (at, text) in texts.iter_mut().enumerate() {
                let found: Option<String> = row.get(at)?;
                *text = found.unwrap_or_default();
            }
            Ok(texts)
        })?;
    let [database, instance, host, number, container, user] = found.unwrap_or_default();
    // 0 is a database that has no containers, 1 the root of one that has.
    let number = number.parse::<u64>().unwrap_or(0);
    let scope = if number > 1 { Scope::Container } else { Scope::Instance };
    Ok((connected, Instance { identity: [database, instance, host], scope, container: (container, number), user }))
}

impl Counting {
    fn read(&mut self) -> Result<Readings<InstanceReading>, ServerError> {
        let doing = "read the instance's counters";
        let connected = locked(&self.connected);
        let named = match self.reach {
            Reach::One => None,
            Reach::All => Some(Form::instances().read(&connected, doing, &self.whose)?),
        };
        let (mut answers, mut at): (Vec<(Part, &Form, Vec<Row>)>, _) = (Vec::new(), None);
        for (part, form) in &self.parts {
            let begun = Instant::now();
            if *part == Part::Ours && begun < self.ours_from {
                continue;
            }
            let rows = form.read(&connected, doing, &self.whose)?;
            // The statistics come first, and rates are of them.
            at.get_or_insert_with(Instant::now);
            if *part == Part::Ours {
                self.ours_from = begun + begun.elapsed() * OURS_SHARE;
            }
            answers.push((*part, form, rows));
        }
        let counted = match named {
            Some(named) => {
                let numbered = named.iter().map(|row| (row.instance, row.name.clone()));
                self.connector.instances().extend(numbered);
                cluster::members(self.scope, &named, answers)
            }
            None => {
                let mut reading = InstanceReading::new(self.scope);
                answers.iter().for_each(|(part, form, rows)| reading.take(*part, form, rows));
                vec![reading.into()]
            }
        };
        Ok((at.unwrap_or_else(Instant::now), counted))
    }
}

impl Looking {
    fn look(&self) -> Result<Vec<Doing>, ServerError> {
        let doing = "look at the sessions";
        let connected = locked(&self.connected);
        let Some(form) = &self.doing else {
            // It was refused once and is not asked again and again, which would fill the server's log.
            return Err(ORACLE.refused(connected.node(), doing, OraNumber(942), "it was refused before"));
        };
        let rows = form.read(&connected, doing, &self.whose)?;
        let instances = self.connector.instances();
        let seen = rows.into_iter().filter_map(|row| {
            let sessions = row.numbers.first().copied().flatten()?;
            let member = (row.instance > 0).then(|| instances.get(&row.instance).cloned().unwrap_or_default());
            Some(Doing { member, what: row.name, sessions })
        });
        Ok(seen.collect())
    }
}

/// What a panic left behind is a connection that says by itself what is wrong with it, or counts.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerReader for MonitorRequest {
    /// While the instances of a cluster agree on who is left of them, nothing that asks for all is answered. Whoever waits longer for
    /// an operation than sessions have patience is asked for apart.
    const SILENCE: Duration = Duration::from_secs(120);

    type Reading = InstanceReading;
    type CounterLine = CounterLine;
    type SampleLine = SampleLine;

    fn nodes(&self) -> Vec<String> {
        let names = self.connector.nodes();
        self.nodes.iter().map(|node| names[*node].clone()).collect()
    }

    async fn open_counters(&self, node: usize) -> Result<(CounterLine, Vec<String>), ServerError> {
        let request = self.clone();
        waiting(move || request.find(node)).await
    }

    async fn read(&self, line: &mut CounterLine) -> Result<Readings<InstanceReading>, ServerError> {
        let counting = Arc::clone(&line.0);
        waiting(move || locked(&counting).read()).await
    }

    async fn open_samples(&self, node: usize) -> Result<SampleLine, ServerError> {
        let request = self.clone();
        waiting(move || request.find_sessions(node)).await
    }

    async fn sample(&self, line: &mut SampleLine, _: bool) -> Result<Sampled, ServerError> {
        let looking = Arc::clone(&line.0);
        waiting(move || looking.look()).await.map(Sampled::from)
    }

    fn compare(&self, earlier: &InstanceReading, later: &mut InstanceReading, stats: &mut ServerStats) -> Vec<String> {
        reading::compare(earlier, later, stats)
    }
}

/// Has a thread wait for an instance, so that the others need not.
async fn waiting<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ServerError> + Send + 'static,
) -> Result<T, ServerError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        let what = "the driver gave up on what an instance sent while it was watched".to_owned();
        Err(ServerError::Unfit { what, hint: Some(SEND_US.to_owned()) })
    })
}

/// Two snapshots of an instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    /// The database, as the snapshots have it.
    pub(crate) dbid: u64,
    /// Its instance.
    pub(crate) instance: u64,
    /// Numbers of the snapshots, the earlier one first.
    pub(crate) snapshots: [u64; 2],
    /// Whether they were taken in a pluggable database.
    pub(crate) is_of_container: bool,
}

/// How each part is asked for; bound are the snapshot, the database and the instance. The monitor asks the views for the same
/// counters.
fn forms() -> [(Part, Form); 5] {
    let of = |table: &str| format!("WHERE {table}.snap_id = :1 AND {table}.dbid = :2 AND {table}.instance_number = :3");
    let form = |view, sql, texts, numbers| Form::new(view, sql, (texts, numbers));
    let statistics = format!(
        "SELECT s.name, s.value FROM perfstat.stats$sysstat s {} AND s.name IN ({})",
        of("s"),
        listed(&STATISTICS)
    );
    let times = format!(
        "SELECT n.stat_name, t.value FROM perfstat.stats$sys_time_model t \
         JOIN perfstat.stats$time_model_statname n ON n.stat_id = t.stat_id {} AND n.stat_name IN ({})",
        of("t"),
        listed(&TIMES)
    );
    let machine = format!(
        "SELECT n.stat_name, o.value FROM perfstat.stats$osstat o \
         JOIN perfstat.stats$osstatname n ON n.osstat_id = o.osstat_id {} AND {IS_MACHINE_TIME}",
        of("o")
    );
    // Statspack keeps no classes of events.
    let events = format!(
        "SELECT e.event, n.wait_class, e.total_waits, e.time_waited_micro, e.total_waits_fg, e.time_waited_micro_fg \
         FROM perfstat.stats$system_event e JOIN v$event_name n ON n.name = e.event {} AND n.wait_class <> 'Idle'",
        of("e")
    );
    let histograms = format!(
        "SELECT e.event, h.wait_time_milli, h.wait_count FROM perfstat.stats$event_histogram h \
         JOIN perfstat.stats$system_event e ON e.snap_id = h.snap_id AND e.dbid = h.dbid \
         AND e.instance_number = h.instance_number AND e.event_id = h.event_id {} AND h.wait_count > 0",
        of("h")
    );
    [
        (Part::Statistics, form("stats$sysstat", statistics, 1, 1)),
        (Part::Times, form("stats$sys_time_model", times, 1, 1)),
        (Part::Machine, form("stats$osstat", machine, 1, 1)),
        (Part::Events, form("stats$system_event", events, 2, 4)),
        (Part::Histograms, form("stats$event_histogram", histograms, 1, 2)),
    ]
}

/// What was counted between two snapshots, and the views whose counters were set back meanwhile.
///
/// # Errors
/// When the tables may not be read, or the connection is gone.
pub(crate) fn counted_between(connected: &Connected, kept: Kept) -> Result<(ServerStats, Vec<String>), ServerError> {
    let scope = if kept.is_of_container { Scope::Container } else { Scope::Instance };
    let read = |snapshot: u64| {
        let mut reading = InstanceReading::new(scope);
        for (part, form) in forms() {
            let values: [&dyn ToDbValue; 3] = [&snapshot, &kept.dbid, &kept.instance];
            reading.take(part, &form, &form.read_with(connected, "read what Statspack has kept", &values)?);
        }
        Ok(reading)
    };
    let [earlier, later] = kept.snapshots;
    let (earlier, mut later) = (read(earlier)?, read(later)?);
    let mut stats = ServerStats::default();
    let set_back = compare(&earlier, &mut later, &mut stats);
    Ok((stats, set_back))
}
