//! Swingbench: results as XML or JSON, and what charbench prints while it runs.

pub(super) mod charbench;
mod report;
mod results;
#[cfg(test)]
mod tests;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::{Map, Value};

use crate::{Draft, ImportError, Notes, Source};

// What a results file says, before anything is made of it: the same for XML and JSON.

/// One set of results. Everything is text, by the names that Swingbench uses.
#[derive(Debug, Default)]
struct Fields {
    /// Name and value of what stands in a section, such as `Overview`, in the order of the file.
    pub sections: Vec<Section>,
    /// One for each transaction: its name and its figures.
    pub transactions: Vec<Section>,
}

/// A named group of figures.
#[derive(Debug, Default)]
struct Section {
    /// Its name.
    pub name: String,
    /// Name and value of each.
    pub fields: Vec<(String, String)>,
}

impl Section {
    /// The value of a field, without blanks; nothing where it is missing or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.fields.iter().find(|(known, _)| known == name)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }
}

impl Fields {
    /// The first section of this name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// A field of a section.
    pub fn get(&self, section: &str, name: &str) -> Option<&str> {
        self.section(section)?.get(name)
    }

    /// Adds a field to the last section if it has this name, else to a new one: fields come section by section.
    pub fn push(&mut self, section: &str, name: &str, value: String) {
        if self.sections.last().is_none_or(|last| last.name != section) {
            self.sections.push(Section { name: section.to_owned(), fields: Vec::new() });
        }
        if let Some(last) = self.sections.last_mut() {
            last.fields.push((name.to_owned(), value));
        }
    }
}

// The results file of Swingbench, as JSON: the same tree, numbers as text.

/// Whether it begins as JSON and names what only these results have.
pub(crate) fn recognises_json(head: &str) -> bool {
    head.trim_start().starts_with('{')
        && ["\"BenchmarkName\"", "\"TotalCompletedTransactions\"", "\"Overview\""]
            .iter()
            .all(|name| head.contains(name))
}

/// The results in it.
pub(crate) fn read_json(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let value: Value = source.json(notes)?;
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

// The results file of Swingbench, as XML.
//
// Its namespace has changed over the years, so elements are known by their local names. They are read as a stream, and nothing
// that a document type declares is ever expanded or fetched.

/// Whether the first element is the root of such a file. The configuration file of Swingbench shares its namespace.
pub(crate) fn recognises_xml(head: &str) -> bool {
    let markup = head.trim_start().starts_with('<');
    let Some(element) = first_element(head).filter(|_| markup) else { return false };
    let name = element.split(|char: char| char.is_whitespace() || matches!(char, '>' | '/')).next().unwrap_or_default();
    let local = name.rsplit(':').next().unwrap_or(name);
    local == "Results"
        && (element.contains("dominicgiles.com/swingbench")
            || head.contains("TotalCompletedTransactions>") && head.contains("BenchmarkName>"))
}

/// What follows the `<` of the first element, after comments and declarations.
fn first_element(head: &str) -> Option<&str> {
    let mut rest = head;
    loop {
        let (_, after) = rest.split_once('<')?;
        if after.starts_with(|char: char| char.is_alphabetic()) {
            return Some(after);
        }
        rest = match after.strip_prefix("!--") {
            Some(comment) => comment.split_once("-->")?.1,
            None => after,
        };
    }
}

/// The results in it.
pub(crate) fn read_xml(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut reader = Reader::from_str(source.text());
    let mut lines = Lines { text: source.text(), at: 0, line: 1 };
    let mut open: Vec<String> = Vec::new();
    let mut current = Fields::default();
    // Text of the innermost element; nothing where that has elements of its own.
    let mut text: Option<String> = None;
    let mut drafts = Vec::new();
    loop {
        let event = reader.read_event();
        let mut here = || lines.of(reader.buffer_position());
        let event = event.map_err(|error| ImportError::damaged(source, here(), error.to_string()))?;
        match event {
            Event::Start(start) => {
                begin(&start, &mut current);
                open.push(start.local_name().as_ref().to_owned());
                text = Some(String::new());
            }
            Event::End(_) => {
                let Some(name) = open.pop() else { continue };
                let parent = open.last().map_or("", String::as_str);
                if let Some(text) = text.take() {
                    keep(&mut current, parent, &name, text);
                }
                if open.is_empty() && name == "Results" {
                    let fields = std::mem::take(&mut current);
                    drafts.push(results::draft(source, notes, here(), &fields)?);
                }
            }
            Event::Empty(start) => {
                begin(&start, &mut current);
                text = None;
            }
            Event::Text(more) => {
                if let Some(text) = &mut text {
                    text.push_str(&more.xml10_content());
                }
            }
            Event::CData(more) => {
                if let Some(text) = &mut text {
                    text.push_str(&more.xml10_content());
                }
            }
            Event::GeneralRef(reference) => {
                let char = match reference.resolve_char_ref() {
                    Ok(Some(char)) => Some(char),
                    _ => predefined(&reference.xml10_content()),
                };
                let Some(char) = char else {
                    return Err(ImportError::damaged(source, here(), "it refers to an entity; none is expanded"));
                };
                if let Some(text) = &mut text {
                    text.push(char);
                }
            }
            Event::DocType(declared) => {
                let declared = declared.xml10_content();
                if ["<!ENTITY", "SYSTEM", "PUBLIC"].iter().any(|word| declared.contains(word)) {
                    return Err(ImportError::damaged(
                        source,
                        here(),
                        "it declares entities; none is expanded or fetched",
                    ));
                }
            }
            Event::Eof if open.is_empty() => break,
            Event::Eof => return Err(ImportError::damaged(source, here(), "it ends within an element")),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    if drafts.is_empty() {
        return Err(ImportError::no_result(source, "it holds no results"));
    }
    Ok(drafts)
}

fn begin(start: &BytesStart<'_>, current: &mut Fields) {
    if start.local_name().as_ref() != "Result" {
        return;
    }
    // Each attribute compared with all others would take long where there are many.
    let mut attributes = start.attributes();
    let id = attributes.with_checks(false).flatten().find(|attribute| attribute.key.local_name().as_ref() == "id");
    let name = id.and_then(|id| id.normalized_value(quick_xml::XmlVersion::Implicit1_0).ok());
    current.transactions.push(Section { name: name.unwrap_or_default().into_owned(), fields: Vec::new() });
}

fn keep(current: &mut Fields, parent: &str, name: &str, text: String) {
    match (parent, current.transactions.last_mut()) {
        ("Result", Some(transaction)) => transaction.fields.push((name.to_owned(), text)),
        _ => current.push(parent, name, text),
    }
}

fn predefined(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "apos" => '\'',
        "quot" => '"',
        _ => return None,
    })
}

/// Lines of places that only ever grow.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: u64,
}

impl Lines<'_> {
    fn of(&mut self, position: u64) -> u64 {
        let position = (position as usize).min(self.text.len());
        let between = self.text.as_bytes().get(self.at..position).unwrap_or_default();
        self.line += between.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.at = self.at.max(position);
        self.line
    }
}
