//! The time profile that `job … timing` of HammerDB prints, in JSON: one object for each procedure.

use model::record::Workload;
use serde_json::{Map, Value};

use super::profile::{self, Extended};
use crate::draft;
use crate::numbers::number;
use crate::percentiles::ms;
use crate::{Draft, ImportError, Notes, Source};

/// Names in JSON and in the report, and the unit that the former imply.
const NAMES: [(&str, &str, &str); 12] = [
    ("calls", "CALLS", ""),
    ("min_ms", "MIN", "ms"),
    ("avg_ms", "AVG", "ms"),
    ("max_ms", "MAX", "ms"),
    ("total_ms", "TOTAL", "ms"),
    ("p99_ms", "P99", "ms"),
    ("p95_ms", "P95", "ms"),
    ("p75_ms", "P75", "ms"),
    ("p50_ms", "P50", "ms"),
    ("p25_ms", "P25", "ms"),
    ("sd", "SD", ""),
    ("ratio_pct", "RATIO", "%"),
];

/// Whether it begins as JSON and has the names that only these profiles have.
pub(crate) fn recognises(head: &str) -> bool {
    head.trim_start().starts_with('{')
        && ["\"elapsed_ms\"", "\"calls\"", "\"p99_ms\"", "\"ratio_pct\""].iter().all(|name| head.contains(name))
}

/// The run in it.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let value: Value = serde_json::from_str(source.text()).map_err(|error| {
        let line = u64::try_from(error.line()).ok().filter(|line| *line > 0);
        ImportError::damaged(source, line, error.to_string())
    })?;
    let procedures = value.as_object().into_iter().flatten();
    let mut draft = Draft::new(Workload::Transactions, "HammerDB", "time profile");
    draft.notes.push("Calls of the ramp-up are among those of the time profile.".to_owned());
    let mut step = draft::step(0, "all", 0);
    for (name, figures) in procedures {
        let Some(figures) = figures.as_object().filter(|figures| figures.contains_key("calls")) else {
            notes.not_understood(None, format!("{name} has no calls"));
            continue;
        };
        let mut procedure = Extended::of(name);
        for (known, in_report, unit) in NAMES {
            if let Some(value) = text(figures, known) {
                procedure.set(in_report, format!("{value}{unit}"));
            }
        }
        let elapsed_ns = text(figures, "elapsed_ms").as_deref().and_then(number).and_then(ms);
        step.window.duration_ns = step.window.duration_ns.max(elapsed_ns.unwrap_or(0));
        if let Some(response) = procedure.histogram() {
            step.reported.extend(procedure.figures());
            step.operations.push(profile::operation(name, response));
        }
    }
    if step.operations.is_empty() {
        return Err(ImportError::damaged(source, None, "the time profile has no procedures"));
    }
    draft.steps.push(step);
    Ok(vec![draft])
}

/// Numbers stand there as text.
fn text(figures: &Map<String, Value>, name: &str) -> Option<String> {
    match figures.get(name)? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
