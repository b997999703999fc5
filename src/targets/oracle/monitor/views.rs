//! What is asked of an instance: its views, where each is found, and with which right.

use super::super::connect::Connected;
use super::super::driver::{Error, Row as Fetched, ToDbValue};
use super::super::error::OracleError;
use super::super::meanings::{STATISTICS, TIMES};

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

/// One way to have a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// The view as it is asked for.
    pub(super) view: &'static str,
    pub(super) sql: String,
    /// Columns of text before those of numbers: the name, and a class.
    pub(super) texts: usize,
    pub(super) numbers: usize,
    /// Microseconds in the unit of its edges, of a histogram.
    pub(super) edge_us: u64,
}

/// A row of any of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
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

/// The load's sessions, by the name under which they work; monitoring has another.
const OF_LOAD: &str = "module = :1 AND username = SYS_CONTEXT('USERENV', 'SESSION_USER')";
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

    /// Ways to have it, the best first. Releases and rights decide which of them there is.
    pub(super) fn forms(self, scope: Scope) -> Vec<Form> {
        let in_container = scope == Scope::Container;
        let view = |instance: &'static str, container: &'static str| if in_container { container } else { instance };
        // What a pluggable database shows of others, or of all of them, is not its own.
        let of_container = if in_container { " AND con_id = SYS_CONTEXT('USERENV', 'CON_ID')" } else { "" };
        let named = |view: &'static str, name: &str, names: &[&str]| {
            let sql = format!("SELECT {name}, value FROM {view} WHERE {name} IN ({}){of_container}", listed(names));
            vec![Form { view, sql, texts: 1, numbers: 1, edge_us: 1 }]
        };
        match self {
            Self::Statistics => named(view("v$sysstat", "v$con_sysstat"), "name", &STATISTICS),
            Self::Times => named(view("v$sys_time_model", "v$con_sys_time_model"), "stat_name", &TIMES),
            Self::Machine => {
                let sql = format!("SELECT stat_name, value FROM v$osstat WHERE {IS_MACHINE_TIME}");
                vec![Form { view: "v$osstat", sql, texts: 1, numbers: 1, edge_us: 1 }]
            }
            Self::Functions if in_container => Vec::new(),
            Self::Functions => {
                let columns = OF_FUNCTIONS.map(|(column, ..)| column).join(", ");
                let sql = format!("SELECT function_name, {columns} FROM v$iostat_function");
                vec![Form { view: "v$iostat_function", sql, texts: 1, numbers: OF_FUNCTIONS.len(), edge_us: 1 }]
            }
            Self::Events => {
                let view = view("v$system_event", "v$con_system_event");
                let form = |numbers: usize, columns: &str| Form {
                    view,
                    sql: format!(
                        "SELECT event, wait_class, {columns} FROM {view} WHERE wait_class <> 'Idle'{of_container}"
                    ),
                    texts: 2,
                    numbers,
                    edge_us: 1,
                };
                let all = "total_waits, time_waited_micro";
                vec![form(4, &format!("{all}, total_waits_fg, time_waited_micro_fg")), form(2, all)]
            }
            Self::Histograms => {
                let form = |view: &'static str, edge: &str, edge_us| Form {
                    view,
                    sql: format!("SELECT event, {edge}, wait_count FROM {view} WHERE wait_count > 0{of_container}"),
                    texts: 1,
                    numbers: 2,
                    edge_us,
                };
                let micro = view("v$event_histogram_micro", "v$con_event_histogram_micro");
                let mut forms = vec![form(micro, "wait_time_micro", 1)];
                if !in_container {
                    forms.push(form("v$event_histogram", "wait_time_milli", MILLISECOND_US));
                }
                forms
            }
            Self::Ours => {
                // In one statement, so that sessions and waits are of one instant as nearly as can be had.
                let sql = format!(
                    "WITH ours AS (SELECT sid FROM v$session WHERE {OF_LOAD}) \
                     SELECT '{SESSIONS}', COUNT(*) FROM ours UNION ALL \
                     SELECT event, SUM(total_waits) FROM v$session_event \
                     WHERE wait_class = 'User I/O' AND sid IN (SELECT sid FROM ours) GROUP BY event"
                );
                vec![Form { view: "v$session_event", sql, texts: 1, numbers: 1, edge_us: 1 }]
            }
            Self::Doing => {
                // One that idles is between two calls, or thinks.
                let sql = format!(
                    "SELECT CASE WHEN state = 'WAITING' THEN wait_class || ':' || event ELSE 'CPU' END, COUNT(*) \
                     FROM v$session WHERE {OF_LOAD} AND status = 'ACTIVE' \
                     AND NOT (state = 'WAITING' AND wait_class = 'Idle') \
                     GROUP BY CASE WHEN state = 'WAITING' THEN wait_class || ':' || event ELSE 'CPU' END"
                );
                vec![Form { view: "v$session", sql, texts: 1, numbers: 1, edge_us: 1 }]
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
/// The view or table is not there, or its owner has not granted it; the column is not there; the right is missing.
const NOT_SHOWN: [u32; 4] = [942, 904, 1031, 1039];

/// Finds a way to have a part: the first that `try_form` accepts. Says what is not known if it is not the best one, and how it
/// would be.
///
/// # Errors
/// Any error but that something is not there or not granted.
pub(super) fn find(
    part: Part,
    scope: Scope,
    user: &str,
    try_form: impl Fn(&Form) -> Result<(), OracleError>,
) -> Result<(Option<Form>, Option<String>), OracleError> {
    let mut refused: Option<(&'static str, OracleError)> = None;
    for form in part.forms(scope) {
        match try_form(&form) {
            Ok(()) => {
                let note = refused.map(|(view, error)| missing(part.lesser(), view, user, &error));
                return Ok((Some(form), note));
            }
            Err(error) if error.number().is_some_and(|number| NOT_SHOWN.contains(&number)) => {
                refused.get_or_insert((form.view, error));
            }
            Err(error) => return Err(error),
        }
    }
    let note = match refused {
        Some((view, error)) => missing(part.lack(), view, user, &error),
        None => format!("{}: a pluggable database does not show that of its own", part.lack()),
    };
    Ok((None, Some(note)))
}

/// What is not known, and the right that may show it. Oracle does not say whether a view is missing or the right to it.
pub(super) fn missing(lack: &str, view: &str, user: &str, error: &OracleError) -> String {
    let number = match error {
        OracleError::Refused { code, .. } => format!(" ({code})"),
        _ => String::new(),
    };
    if error.number() == Some(904) {
        return format!("{lack}: `{view}` of this release lacks a column{number}");
    }
    let session = if view == "v$session_event" { grant("v$session", user) + "; " } else { String::new() };
    format!("{lack}: `{view}` is not there or not to be read{number}; `{session}{}`", grant(view, user))
}

/// The statement that gives the right to a view, whose own name has an underscore more.
fn grant(view: &str, user: &str) -> String {
    format!("GRANT SELECT ON {} TO {user}", view.replacen("v$", "v_$", 1).to_uppercase())
}

impl Form {
    /// Asks for it. Statements on sessions are given the name under which the load's work.
    pub(super) fn read(&self, connected: &Connected, doing: &str, module: &str) -> Result<Vec<Row>, OracleError> {
        let values: &[&dyn ToDbValue] = if self.sql.contains(":1") { &[&module] } else { &[] };
        self.read_with(connected, doing, values)
    }

    /// Asks for it with these values.
    pub(super) fn read_with(
        &self,
        connected: &Connected,
        doing: &str,
        values: &[&dyn ToDbValue],
    ) -> Result<Vec<Row>, OracleError> {
        connected.query(doing, &self.sql, values, |fetched| self.row(fetched))
    }

    fn row(&self, fetched: &Fetched) -> Result<Row, Error> {
        let text = |at: usize| {
            let text: Option<String> = fetched.get(at)?;
            Ok::<_, Error>(text.unwrap_or_default())
        };
        let number = |at: usize| {
            let number: Option<String> = fetched.get(at)?;
            Ok(number.and_then(|number| number.parse().ok()))
        };
        Ok(Row {
            name: text(0)?,
            class: if self.texts > 1 { text(1)? } else { String::new() },
            numbers: (self.texts..self.texts + self.numbers).map(number).collect::<Result<_, Error>>()?,
        })
    }
}

#[cfg(test)]
#[path = "views_tests.rs"]
mod tests;
