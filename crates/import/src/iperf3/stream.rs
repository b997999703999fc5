//! iperf3 with `--json-stream`.

use serde_json::{Map, Value};

use super::json::draft;
use crate::{Draft, Notes};

/// The events of `--json-stream`, one a line, as the document that they would have been.
#[derive(Default)]
pub(super) struct Stream {
    document: Map<String, Value>,
    intervals: Vec<Value>,
}

impl Stream {
    /// Takes an event; the one that begins a test ends that before it.
    pub(super) fn event(&mut self, event: &str, line: &Value, notes: &mut Notes) -> Option<Draft> {
        let data = line.get("data").cloned().unwrap_or(Value::Null);
        match event {
            "start" => {
                let before = self.end(notes);
                self.document.insert("start".to_owned(), data);
                return before;
            }
            "interval" => self.intervals.push(data),
            "end" | "error" => {
                self.document.insert(event.to_owned(), data);
            }
            _ => {}
        }
        None
    }

    /// Leaves out the test that is being read if `document` reports on the same, as it does with `--json-stream-full-output`.
    pub(super) fn forget(&mut self, document: &Value) {
        let cookie = self.document.get("start").and_then(|start| start.get("cookie"));
        if cookie.is_some() && cookie == document.pointer("/start/cookie") {
            *self = Self::default();
        }
    }

    /// The test that is being read, at the end of it.
    pub(super) fn end(&mut self, notes: &mut Notes) -> Option<Draft> {
        let mut document = std::mem::take(&mut self.document);
        let intervals = std::mem::take(&mut self.intervals);
        if document.is_empty() && intervals.is_empty() {
            return None;
        }
        document.insert("intervals".to_owned(), Value::Array(intervals));
        Some(draft(&Value::Object(document), notes))
    }
}
