//! The results file of Swingbench, as JSON: the same tree, numbers as text.

use serde_json::{Map, Value};

use super::fields::{Fields, Section};
use super::results;
use crate::{Draft, ImportError, Notes, Source};

/// Whether it begins as JSON and names what only these results have.
pub(crate) fn recognises(head: &str) -> bool {
    head.trim_start().starts_with('{')
        && ["\"BenchmarkName\"", "\"TotalCompletedTransactions\"", "\"Overview\""]
            .iter()
            .all(|name| head.contains(name))
}

/// The results in it.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let value: Value = serde_json::from_str(source.text()).map_err(|error| {
        let line = u64::try_from(error.line()).ok().filter(|line| *line > 0);
        ImportError::damaged(source, line, error.to_string())
    })?;
    let no_results = || ImportError::no_result(source, "it holds no results");
    let root = value.get("Results").unwrap_or(&value).as_object().ok_or_else(no_results)?;
    if !root.contains_key("Overview") {
        return Err(no_results());
    }
    let mut fields = Fields::default();
    for (name, section) in root {
        match (name.as_str(), section) {
            ("TransactionResults", section) => fields.transactions = transactions(section),
            (_, Value::Object(section)) => {
                fields.sections.push(Section { name: name.clone(), fields: texts(section) });
            }
            _ => {}
        }
    }
    Ok(vec![results::draft(source, notes, None, &fields)?])
}

/// A list, or one alone, below `Result` or not; or one below the name of each.
fn transactions(section: &Value) -> Vec<Section> {
    let list = section.get("Result").unwrap_or(section);
    let named = |map: &Map<String, Value>, name: Option<&str>| {
        let own_name = ["id", "@id", "-id", "Id", "name"].iter().find_map(|key| map.get(*key)?.as_str());
        Section { name: own_name.or(name).unwrap_or_default().to_owned(), fields: texts(map) }
    };
    match list {
        Value::Array(list) => list.iter().filter_map(Value::as_object).map(|map| named(map, None)).collect(),
        Value::Object(map) if map.contains_key("TransactionCount") => vec![named(map, None)],
        Value::Object(map) => {
            map.iter().filter_map(|(name, value)| Some(named(value.as_object()?, Some(name)))).collect()
        }
        _ => Vec::new(),
    }
}

fn texts(map: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        // Readings may be a list, of numbers or of pairs.
        Value::Array(list) => {
            let one = |value: &Value| value.to_string().replace(['[', ']', '"'], "");
            Some(list.iter().map(one).collect::<Vec<_>>().join(","))
        }
        _ => None,
    };
    map.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}
