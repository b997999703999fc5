//! Specimens that were cut, scrambled and stretched, for tests that no importer gives up its footing.

use proptest::prelude::*;

use super::{Notes, Source};
use crate::record::Timestamp;

/// A file with this text.
pub(super) fn source(text: &str) -> Source {
    Source::new("file", text.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap()
}

/// One change to a text, at places that are told as shares of its length.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Cut(f64),
    Byte(f64, u8),
    DeleteLine(f64),
    RepeatLine(f64, usize),
    Insert(f64, &'static str, usize),
}

/// Some changes one after the other.
pub(super) fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = 0.0..1.0_f64;
    let words = prop::sample::select(vec![
        "9",
        "-",
        "99999999999999999999999999",
        "\u{fffd}",
        " ",
        "\n",
        "|",
        ":",
        ",",
        "(",
        "ms",
        "é",
        "\t",
        "\u{1b}[",
        "nan",
    ]);
    let change = prop_oneof![
        at.clone().prop_map(Change::Cut),
        (at.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        at.clone().prop_map(Change::DeleteLine),
        (at.clone(), 1..5_usize).prop_map(|(at, times)| Change::RepeatLine(at, times)),
        (at, words, 1..300_usize).prop_map(|(at, word, times)| Change::Insert(at, word, times)),
    ];
    prop::collection::vec(change, 1..6)
}

/// Makes the changes, reads what is left with the importer, and asks that it either gives runs with steps or an error.
pub(super) fn survives(
    read: fn(&Source, &mut Notes) -> Result<Vec<super::Draft>, super::ImportError>,
    recognises: fn(&str) -> bool,
    text: &str,
    changes: &[Change],
) {
    let mut bytes = text.as_bytes().to_vec();
    for change in changes {
        let place = |at: f64| (at * bytes.len() as f64) as usize;
        match change {
            Change::Cut(at) => bytes.truncate(place(*at)),
            Change::Byte(at, byte) => {
                let at = place(*at);
                if let Some(old) = bytes.get_mut(at) {
                    *old = *byte;
                }
            }
            Change::Insert(at, word, times) => {
                let at = place(*at);
                bytes.splice(at..at, word.repeat(*times).into_bytes());
            }
            Change::DeleteLine(at) | Change::RepeatLine(at, _) => {
                let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
                let line = (at * lines.len() as f64) as usize;
                match change {
                    Change::RepeatLine(_, times) => {
                        let again = vec![lines[line]; *times];
                        lines.splice(line..line, again);
                    }
                    _ => _ = lines.remove(line),
                }
                bytes = lines.join(&b'\n');
            }
        }
    }
    let Ok(source) = Source::new("file", bytes, Timestamp(jiff::Timestamp::UNIX_EPOCH)) else { return };
    let _ = recognises(source.head());
    let mut notes = Notes::new(&source);
    if let Ok(drafts) = read(&source, &mut notes) {
        assert!(!drafts.is_empty() && drafts.iter().all(|draft| !draft.steps.is_empty()));
        for step in drafts.iter().flat_map(|draft| &draft.steps) {
            assert!(step.told.iter().all(|figure| figure.value.is_finite()), "{:?}", step.told);
            serde_json::to_string(step).unwrap();
        }
    }
}
