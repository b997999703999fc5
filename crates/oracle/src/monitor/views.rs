//! What is asked of an instance: its views, where each is found, and with which right.

use super::super::connect::Connected;
use super::super::driver::{Error, Row as Fetched, ToDbValue};
use super::super::meanings::{STATISTICS, TIMES};
use crate::error::{NOT_GRANTED, number};
use ::sql::ServerError;

/// A part of what an instance counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Statistics by name.
    Statistics,
    /// The time model, in microseconds.
    Times,
    /// Processor time of the machine, in hundredths of a second.
    Machine,
    /// Reads and writes by who does them.
    Functions,
    /// Number and time of waits by event.
    Events,
    /// Waits by event and how long they took.
    Histograms,
    /// Reads that the load's own sessions waited for, by event.
    Ours,
    /// What the load's sessions are doing. No counter: it is looked at many times a second.
    Doing,
}

/// Whose counters there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Scope {
    /// All that the instance does.
    #[default]
    Instance,
    /// What a pluggable database does: the plain views say there too what others do.
    Container,
}

/// Which instances are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The one that the connection landed on, by `v$` views.
    One,
    /// All of a cluster in one statement, by `gv$` views.
    All,
}

/// A value that is bound. None of them is asked for by the statement itself: what a session says of itself has to be asked where it
/// is, and `gv$` views are read by processes of all instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// The name under which the load's sessions work; monitoring has another.
    Module,
    /// The user.
    User,
    /// Number of the pluggable database.
    Container,
}

/// What is bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) module: String,
    pub(super) user: String,
    pub(super) container: u64,
}

/// One way to have a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// The view as it is asked for.
    pub(super) view: String,
    pub(super) sql: String,
    bound: &'static [Bound],
    reach: Reach,
    /// Columns of text before those of numbers: the name, and a class.
    pub(super) texts: usize,
    pub(super) numbers: usize,
    /// Microseconds in the unit of its edges, of a histogram.
    pub(super) edge_us: u64,
}

/// A row of any of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Number of the instance, where all are asked.
    pub(super) instance: u64,
    pub(super) name: String,
    /// Class of a wait event.
    pub(super) class: String,
    /// `None` where it is NULL, negative or no whole number.
    pub(super) numbers: Vec<Option<u64>>,
}

/// Columns of `v$iostat_function`, by the words that the record has for them; megabytes are of 2^20 bytes, waits in milliseconds.
pub(super) const OF_FUNCTIONS: [(&str, &str, u64); 10] = [
    ("small_read_reqs", "small reads", 1),
    ("large_read_reqs", "large reads", 1),
    ("small_write_reqs", "small writes", 1),
    ("large_write_reqs", "large writes", 1),
    ("small_read_megabytes", "small read bytes", 1 << 20),
    ("large_read_megabytes", "large read bytes", 1 << 20),
    ("small_write_megabytes", "small write bytes", 1 << 20),
    ("large_write_megabytes", "large write bytes", 1 << 20),
    ("number_of_waits", "waits", 1),
    ("wait_time", "wait_ns", 1_000_000),
];

/// The load's sessions.
const OF_LOAD: (&str, &[Bound]) = ("module = :1 AND username = :2", &[Bound::Module, Bound::User]);
/// Times among the statistics of a machine that are its own, not a processor's mean.
pub(super) const IS_MACHINE_TIME: &str = "stat_name LIKE '%\\_TIME' ESCAPE '\\' AND stat_name NOT LIKE 'AVG%'";
/// By this name the number of the load's sessions stands among the waits of all of them; no event is called so.
pub(super) const SESSIONS: &str = "sessions";

impl Part {
    pub(super) const ALL: [Self; 8] = [
        Self::Statistics,
        Self::Times,
        Self::Machine,
        Self::Functions,
        Self::Events,
        Self::Histograms,
        Self::Ours,
        Self::Doing,
    ];

    /// Ways to have it, the best first, the same for one instance and for all. Releases and rights decide which of them there is.
    pub(super) fn forms(self, scope: Scope, reach: Reach) -> Vec<Form> {
        let in_container = scope == Scope::Container;
        let (all, of_instance) = match reach {
            Reach::One => ("", ""),
            Reach::All => ("g", "inst_id, "),
        };
        let view = |name: &str| format!("{all}v${name}");
        let own = |name: &str| view(&format!("{}{name}", if in_container { "con_" } else { "" }));
        // What a pluggable database shows of others, or of all of them, is not its own.
        let of_container = if in_container { " AND con_id = :1" } else { "" };
        let bound: &[Bound] = if in_container { &[Bound::Container] } else { &[] };
        let form = |view: String, columns: &str, rest: &str, (texts, numbers): (usize, usize)| Form {
            sql: format!("SELECT {of_instance}{columns} FROM {view} {rest}").trim_end().to_owned(),
            view,
            bound: &[],
            reach,
            texts,
            numbers,
            edge_us: 1,
        };
        let named = |view: String, name: &str, names: &[&str]| {
            let rest = format!("WHERE {name} IN ({}){of_container}", listed(names));
            vec![Form { bound, ..form(view, &format!("{name}, value"), &rest, (1, 1)) }]
        };
        let (of_load, load) = OF_LOAD;
        match self {
            Self::Statistics => named(own("sysstat"), "name", &STATISTICS),
            Self::Times => named(own("sys_time_model"), "stat_name", &TIMES),
            Self::Machine => {
                let rest = format!("WHERE {IS_MACHINE_TIME}");
                vec![form(view("osstat"), "stat_name, value", &rest, (1, 1))]
            }
            Self::Functions if in_container => Vec::new(),
            Self::Functions => {
                let columns = format!("function_name, {}", OF_FUNCTIONS.map(|(column, ..)| column).join(", "));
                vec![form(view("iostat_function"), &columns, "", (1, OF_FUNCTIONS.len()))]
            }
            Self::Events => {
                let rest = format!("WHERE wait_class <> 'Idle'{of_container}");
                let with = |columns: &str, numbers: usize| {
                    let columns = format!("event, wait_class, total_waits, time_waited_micro{columns}");
                    Form { bound, ..form(own("system_event"), &columns, &rest, (2, numbers)) }
                };
                vec![with(", total_waits_fg, time_waited_micro_fg", 4), with("", 2)]
            }
            Self::Histograms => {
                let rest = format!("WHERE wait_count > 0{of_container}");
                let with = |view: String, edge: &str, edge_us| {
                    let columns = format!("event, {edge}, wait_count");
                    Form { bound, edge_us, ..form(view, &columns, &rest, (1, 2)) }
                };
                let mut forms = vec![with(own("event_histogram_micro"), "wait_time_micro", 1)];
                if !in_container {
                    forms.push(with(view("event_histogram"), "wait_time_milli", MILLISECOND_US));
                }
                forms
            }
            Self::Ours => {
                // In one statement, so that sessions and waits are of one instant as nearly as can be had. It must not be kept in a
                // temporary table, whose blocks would be written and read while they are counted.
                let (sessions, events) = (view("session"), view("session_event"));
                let (is_theirs, grouped) = match reach {
                    Reach::One => ("sid IN (SELECT sid FROM ours)", ""),
                    Reach::All => ("(inst_id, sid) IN (SELECT inst_id, sid FROM ours)", " GROUP BY inst_id"),
                };
                let sql = format!(
                    "WITH ours AS (SELECT /*+ INLINE */ {of_instance}sid FROM {sessions} WHERE {of_load}) \
                     SELECT {of_instance}'{SESSIONS}', COUNT(*) FROM ours{grouped} UNION ALL \
                     SELECT {of_instance}event, SUM(total_waits) FROM {events} \
                     WHERE wait_class = 'User I/O' AND {is_theirs} GROUP BY {of_instance}event"
                );
                vec![Form { sql, bound: load, ..form(events, "", "", (1, 1)) }]
            }
            Self::Doing => {
                // One that idles is between two calls, or thinks.
                let what = "CASE WHEN state = 'WAITING' THEN wait_class || ':' || event ELSE 'CPU' END";
                let rest = format!(
                    "WHERE {of_load} AND status = 'ACTIVE' AND NOT (state = 'WAITING' AND wait_class = 'Idle') \
                     GROUP BY {of_instance}{what}"
                );
                vec![Form { bound: load, ..form(view("session"), &format!("{what}, COUNT(*)"), &rest, (1, 1)) }]
            }
        }
    }

    /// What is not known without it.
    fn lack(self) -> &'static str {
        match self {
            Self::Statistics => "reads, writes, redo and commits are not counted",
            Self::Times => "DB time and processor time are not counted",
            Self::Machine => "processor time of the server's machine is not counted",
            Self::Functions => "reads and writes are not counted by who does them",
            Self::Events => "waits are not counted",
            Self::Histograms => "how long waits took is known as their mean alone",
            Self::Ours => "whether the load's sessions read single blocks is not known",
            Self::Doing => "what the load's sessions do is not known",
        }
    }

    /// What is less known by a form that is not the best.
    fn lesser(self) -> &'static str {
        match self {
            Self::Histograms => "how long waits took is known in whole milliseconds alone",
            _ => "waits of sessions are not counted apart from those of the server's own processes",
        }
    }
}

/// Names as a condition lists them.
pub(super) fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// Microseconds in a millisecond, as Oracle's histograms have both: their edges are powers of two of either.
pub(super) const MILLISECOND_US: u64 = 1_000;
/// The column is not there; the right to the tables of a view is missing.
const NOT_SHOWN: [u32; 2] = [904, 1039];

/// Whether it is for want of a view, of a column or of a right.
pub(super) fn is_not_shown(error: &ServerError) -> bool {
    number(error).is_some_and(|number| NOT_SHOWN.contains(&number) || NOT_GRANTED.contains(&number))
}

/// Finds a way to have a part: the first that `try_form` accepts. Says what is not known if it is not the best one, and how it
/// would be.
///
/// # Errors
/// Any error but that something is not there or not granted.
pub(super) fn find(
    part: Part,
    scope: Scope,
    user: &str,
    try_form: impl Fn(&Form) -> Result<(), ServerError>,
) -> Result<(Option<Form>, Option<String>), ServerError> {
    let mut refused: Option<(String, ServerError)> = None;
    for form in part.forms(scope, Reach::One) {
        match try_form(&form) {
            Ok(()) => {
                let note = refused.map(|(view, error)| missing(part.lesser(), &view, user, &error));
                return Ok((Some(form), note));
            }
            Err(error) if is_not_shown(&error) => {
                refused.get_or_insert((form.view, error));
            }
            Err(error) => return Err(error),
        }
    }
    let note = match refused {
        Some((view, error)) => missing(part.lack(), &view, user, &error),
        None => format!("{}: a pluggable database does not show that of its own", part.lack()),
    };
    Ok((None, Some(note)))
}

/// What is not known, and the right that may show it. Oracle does not say whether a view is missing or the right to it.
pub(super) fn missing(lack: &str, view: &str, user: &str, error: &ServerError) -> String {
    let number = match error {
        ServerError::Refused { code, .. } => format!(" ({code})"),
        _ => String::new(),
    };
    if crate::error::number(error) == Some(904) {
        return format!("{lack}: `{view}` of this release lacks a column{number}");
    }
    let session = if view == "v$session_event" { grant("v$session", user) + "; " } else { String::new() };
    format!("{lack}: `{view}` is not there or not to be read{number}; `{session}{}`", grant(view, user))
}

/// The statement that gives the right to a view, whose own name has an underscore more. It has no public synonym: who grants it need
/// not be `SYS`.
pub(super) fn grant(view: &str, user: &str) -> String {
    format!("GRANT SELECT ON SYS.{} TO {user}", view.replacen("v$", "v_$", 1).to_uppercase())
}

impl Form {
    /// Instances of a cluster that are open, by their numbers: the name of each and when it was started.
    pub(super) fn instances() -> Self {
        let sql = "SELECT inst_id, instance_name, TO_CHAR(startup_time, 'YYYY-MM-DD HH24:MI:SS') FROM gv$instance \
                   WHERE status LIKE 'OPEN%'";
        Self { reach: Reach::All, ..Self::new("gv$instance", sql.to_owned(), (2, 0)) }
    }

    /// Rows of one instance with so many columns of text and of numbers, in milliseconds if it is a histogram.
    pub(super) fn new(view: &str, sql: String, (texts, numbers): (usize, usize)) -> Self {
        let view = view.to_owned();
        Self { view, sql, bound: &[], reach: Reach::One, texts, numbers, edge_us: MILLISECOND_US }
    }

    /// Asks for it.
    pub(super) fn read(&self, connected: &Connected, doing: &str, whose: &Whose) -> Result<Vec<Row>, ServerError> {
        let value = |bound: &Bound| -> &dyn ToDbValue {
            match bound {
                Bound::Module => &whose.module,
                Bound::User => &whose.user,
                Bound::Container => &whose.container,
            }
        };
        let values: Vec<&dyn ToDbValue> = self.bound.iter().map(value).collect();
        self.read_with(connected, doing, &values)
    }

    /// Asks for it with these values.
    pub(super) fn read_with(
        &self,
        connected: &Connected,
        doing: &str,
        values: &[&dyn ToDbValue],
    ) -> Result<Vec<Row>, ServerError> {
        connected.query(doing, &self.sql, values, |fetched| self.row(fetched))
    }

    fn row(&self, fetched: &Fetched) -> Result<Row, Error> {
        let text = |at: usize| {
            let text: Option<String> = fetched.get(at)?;
            Ok::<_, Error>(text.unwrap_or_default())
        };
        let number = |at: usize| {
            let number: Option<String> = fetched.get(at)?;
            Ok::<_, Error>(number.and_then(|number| number.parse().ok()))
        };
        let (instance, first) = match self.reach {
            Reach::One => (0, 0),
            Reach::All => (number(0)?.unwrap_or(0), 1),
        };
        let numbers = first + self.texts..first + self.texts + self.numbers;
        Ok(Row {
            instance,
            name: text(first)?,
            class: if self.texts > 1 { text(first + 1)? } else { String::new() },
            numbers: numbers.map(number).collect::<Result<_, Error>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ORACLE, OraNumber};

    fn refused(number: u32) -> ServerError {
        ORACLE.refused("db1:1521/s", "look", OraNumber(number), "no")
    }

    /// What is found of a part where the views in `refused` answer with these errors.
    fn found(part: Part, scope: Scope, errors: &[(&str, u32)]) -> (Option<String>, Option<String>) {
        let try_form = |form: &Form| match errors.iter().find(|(view, _)| *view == form.view) {
            Some((_, number)) => Err(refused(*number)),
            None => Ok(()),
        };
        let (form, note) = find(part, scope, "slob", try_form).unwrap();
        (form.map(|form| form.view), note)
    }

    #[test]
    fn a_view_that_is_not_granted_is_unknown_and_its_grant_is_named() {
        for number in [942, 1031, 41_900] {
            let (form, note) = found(Part::Events, Scope::Instance, &[("v$system_event", number)]);
            let note = note.unwrap();
            assert_eq!(form, None);
            assert!(note.contains("waits are not counted") && note.contains(&format!("ORA-{number:05}")), "{note}");
            assert!(note.contains("`GRANT SELECT ON SYS.V_$SYSTEM_EVENT TO slob`"), "{note}");
        }
        let (_, note) = found(Part::Statistics, Scope::Container, &[("v$con_sysstat", 942)]);
        assert!(note.unwrap().contains("GRANT SELECT ON SYS.V_$CON_SYSSTAT TO slob"));
        let (_, note) = found(Part::Ours, Scope::Instance, &[("v$session_event", 942)]);
        let note = note.unwrap();
        assert!(
            note.contains("GRANT SELECT ON SYS.V_$SESSION TO slob; GRANT SELECT ON SYS.V_$SESSION_EVENT TO slob"),
            "{note}"
        );
    }

    #[test]
    fn what_is_granted_brings_no_note() {
        for scope in [Scope::Instance, Scope::Container] {
            for part in Part::ALL.into_iter().filter(|part| (*part, scope) != (Part::Functions, Scope::Container)) {
                let (form, note) = found(part, scope, &[]);
                assert!(form.is_some() && note.is_none(), "{part:?} {scope:?}: {note:?}");
            }
        }
    }

    #[test]
    fn the_first_release_of_12_1_sorts_waits_into_milliseconds() {
        let (form, note) = found(Part::Histograms, Scope::Instance, &[("v$event_histogram_micro", 942)]);
        assert_eq!(form.as_deref(), Some("v$event_histogram"));
        let note = note.unwrap();
        assert!(note.contains("whole milliseconds") && note.contains("V_$EVENT_HISTOGRAM_MICRO"), "{note}");
        let both = [("v$event_histogram_micro", 942), ("v$event_histogram", 1031)];
        let (form, note) = found(Part::Histograms, Scope::Instance, &both);
        assert_eq!(form, None);
        assert!(note.unwrap().contains("V_$EVENT_HISTOGRAM_MICRO"), "the better one is asked for");
    }

    #[test]
    fn a_missing_column_leaves_the_rest_of_its_view() {
        let tries = std::cell::Cell::new(0);
        let try_form = |form: &Form| {
            tries.set(tries.get() + 1);
            if form.sql.contains("_fg") { Err(refused(904)) } else { Ok(()) }
        };
        let (form, note) = find(Part::Events, Scope::Instance, "slob", try_form).unwrap();
        assert_eq!((tries.get(), form.unwrap().numbers), (2, 2));
        let note = note.unwrap();
        assert!(note.contains("lacks a column") && !note.contains("GRANT"), "{note}");
    }

    #[test]
    fn what_is_no_refusal_of_a_view_ends_the_search() {
        let lost = |_: &Form| Err(ORACLE.lost("db1", "gone"));
        assert!(find(Part::Events, Scope::Instance, "slob", lost).is_err());
        assert!(find(Part::Events, Scope::Instance, "slob", |_| Err(refused(4031))).is_err());
    }

    #[test]
    fn a_pluggable_database_is_asked_for_its_own_counters_alone() {
        let counted = [Part::Statistics, Part::Times, Part::Events, Part::Histograms];
        for form in counted.iter().flat_map(|part| part.forms(Scope::Container, Reach::One)) {
            assert!(form.view.starts_with("v$con_"), "{form:?}");
            assert!(
                form.sql.contains(&form.view) && form.sql.contains("con_id = :1") && form.bound == [Bound::Container],
                "{form:?}"
            );
        }
        let (form, note) = found(Part::Functions, Scope::Container, &[]);
        assert_eq!(form, None);
        assert!(note.unwrap().contains("pluggable"));
        for form in Part::ALL.iter().flat_map(|part| part.forms(Scope::Instance, Reach::One)) {
            assert!(!form.sql.contains("con_"), "{form:?}");
        }
    }

    #[test]
    fn only_questions_about_the_loads_sessions_name_it() {
        let named = Part::ALL.into_iter().filter(|part| part.forms(Scope::Instance, Reach::One)[0].sql.contains(":1"));
        assert_eq!(named.collect::<Vec<_>>(), [Part::Ours, Part::Doing]);
    }

    #[test]
    fn a_cluster_is_asked_for_the_same_of_each_instance() {
        for scope in [Scope::Instance, Scope::Container] {
            for part in Part::ALL {
                let (one, all) = (part.forms(scope, Reach::One), part.forms(scope, Reach::All));
                assert_eq!(one.len(), all.len());
                for (one, all) in one.iter().zip(&all) {
                    assert_eq!(
                        (format!("g{}", one.view), one.numbers, one.texts),
                        (all.view.clone(), all.numbers, all.texts)
                    );
                    assert!(!all.sql.replace("gv$", "").contains("v$"), "{}", all.sql);
                    // What a session says of itself is not known to the processes of other instances that read these.
                    assert!(!all.sql.contains("SYS_CONTEXT") && !all.sql.contains("USER "), "{}", all.sql);
                    let sql = all.sql.replace("/*+ INLINE */ ", "");
                    let selects = sql.matches("SELECT ").count();
                    assert_eq!(sql.matches("SELECT inst_id, ").count(), selects, "{}", all.sql);
                    let groups = all.sql.matches("GROUP BY ").count();
                    assert_eq!(all.sql.matches("GROUP BY inst_id").count(), groups, "{}", all.sql);
                }
            }
        }
    }

    #[test]
    fn every_view_that_is_read_can_be_granted() {
        use crate::sql::{Need, grants};
        for (scope, reach) in [
            (Scope::Instance, Reach::One),
            (Scope::Container, Reach::One),
            (Scope::Instance, Reach::All),
            (Scope::Container, Reach::All),
        ] {
            let needs: &[Need] = match (scope, reach) {
                (Scope::Instance, Reach::One) => &[Need::Figures],
                (Scope::Container, Reach::One) => &[Need::Figures, Need::Container],
                (Scope::Instance, Reach::All) => &[Need::Cluster],
                (Scope::Container, Reach::All) => &[Need::Cluster, Need::ClusterContainer],
            };
            let granted: Vec<String> = grants("u", "t")
                .into_iter()
                .filter(|grant| needs.contains(&grant.need))
                .map(|grant| grant.statement)
                .collect();
            for part in Part::ALL {
                let Some(form) = part.forms(scope, reach).into_iter().next() else { continue };
                let wanted = grant(&form.view, "\"u\"");
                assert!(granted.contains(&wanted), "{wanted} is not among {granted:?}");
            }
        }
    }
}
