//! Views of a cluster's instances. Each counts so much more whenever its statistics are asked for, in a proportion of its own.

use super::Database;
use crate::responder::{Answer, Column, Value};

/// An instance.
#[derive(Clone, Debug)]
pub struct Instance {
    pub number: u64,
    pub name: &'static str,
    /// When it was started; each readings' number from which it runs, and those at which it is away.
    pub started: fn(u64) -> &'static str,
    /// Whether it is there at a reading of this number, from 1 on.
    pub is_there: fn(u64) -> bool,
}

impl Instance {
    /// One that is there from first to last.
    pub fn steady(number: u64, name: &'static str) -> Self {
        Self { number, name, started: |_| "2026-11-01 08:00:00", is_there: |_| true }
    }
}

impl Database {
    /// Rows of a view, of all instances or of the first one, if there is a cluster and it shows that.
    pub(super) fn cluster_view(&mut self, view: &str, text: &str) -> Option<Answer> {
        let (is_of_all, name) = match view.strip_prefix("gv$") {
            Some(name) => (true, name),
            None => (false, view.strip_prefix("v$")?),
        };
        let name = name.strip_prefix("con_").unwrap_or(name);
        // Sessions are found in the statement on their waits first.
        let name = if text.contains("session_event") { "session_event" } else { name };
        if self.cluster.is_empty() || name == "session" && !text.contains("CASE WHEN state") {
            return None;
        }
        if (is_of_all, name) == (true, "instance") {
            self.readings += 1;
        }
        let at = self.readings;
        let texts = match name {
            "system_event" => 2,
            "instance" if is_of_all => 2,
            _ => 1,
        };
        let mut rows = Vec::new();
        for instance in self.cluster.iter().filter(|instance| !is_of_all || (instance.is_there)(at)) {
            let many = |base: u64| Value::from((base * instance.number * at) as i64);
            let of_view: Vec<Vec<Value>> = match name {
                "instance" if is_of_all => vec![vec![instance.name.into(), (instance.started)(at).into()]],
                "instance" => vec![vec!["YES".into()]],
                "sysstat" => vec![
                    vec!["session logical reads".into(), many(10_000)],
                    vec!["user commits".into(), many(10)],
                    vec!["physical reads direct".into(), many(64)],
                ],
                "sys_time_model" => vec![vec!["DB time".into(), many(700)]],
                "osstat" => vec![vec!["BUSY_TIME".into(), many(5)]],
                "iostat_function" => Vec::new(),
                "system_event" => {
                    let wait = |event: &str, class: &str| {
                        vec![event.into(), class.into(), many(100), many(20_000), many(100), many(20_000)]
                    };
                    vec![wait("db file sequential read", "User I/O"), wait("log file sync", "Commit")]
                }
                "event_histogram_micro" => ["db file sequential read", "log file sync"]
                    .map(|event| vec![event.into(), 256_i64.into(), many(100)])
                    .into(),
                "session_event" => {
                    vec![vec!["sessions".into(), 2_i64.into()], vec!["db file sequential read".into(), many(90)]]
                }
                "session" => vec![vec!["User I/O:db file sequential read".into(), 1_i64.into()]],
                _ => return None,
            };
            let of_view = of_view.into_iter().map(|mut row| {
                if is_of_all {
                    row.insert(0, (instance.number as i64).into());
                }
                row
            });
            rows.extend(of_view);
            if !is_of_all {
                break;
            }
        }
        let first = usize::from(is_of_all);
        let width = match name {
            "instance" => first + texts,
            "system_event" => first + 6,
            "event_histogram_micro" => first + 3,
            "iostat_function" => first + 11,
            _ => first + 2,
        };
        let column = |at: usize| {
            let name = format!("C{at}");
            if at < first || at >= first + texts { Column::number(&name) } else { Column::text(&name) }
        };
        Some(Answer::Rows { columns: (0..width).map(column).collect(), rows })
    }
}
