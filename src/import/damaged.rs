//! Texts as they arrive when something went wrong on the way, for tests that no importer panics on them.

use proptest::prelude::*;

use super::{Source, read};
use crate::record::Timestamp;

/// A text that was damaged: cut, with bytes changed, lines doubled or lost, and long runs put in.
pub(super) fn damaged(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    let change = (0..6_u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>());
    (prop::sample::select(texts), prop::collection::vec(change, 1..6)).prop_map(|(text, changes)| {
        let mut text = text.to_owned();
        for (what, at, other, byte) in changes {
            if text.is_empty() {
                break;
            }
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            let (line, to) = (at.index(lines.len()), other.index(lines.len()));
            let place = (at.index(text.len())..).find(|place| text.is_char_boundary(*place)).unwrap_or(0);
            text = match what {
                0 => text[..place].to_owned(),
                1 => {
                    let mut bytes = text.clone().into_bytes();
                    if let Some(place) = bytes.get_mut(place) {
                        *place = byte;
                    }
                    String::from_utf8_lossy(&bytes).into_owned()
                }
                2 => {
                    lines.insert(to, lines[line]);
                    lines.concat()
                }
                3 => {
                    lines.remove(line);
                    lines.concat()
                }
                4 => format!("{}{}{}", &text[..place], "9".repeat(usize::from(byte) * 40), &text[place..]),
                _ => format!("{}{}{}", &text[..place], "[ -: ".repeat(usize::from(byte) * 4), &text[place..]),
            };
        }
        text
    })
}

/// Reading gives runs or an error, whatever stands there.
pub(super) fn survives(text: String) {
    let Ok(source) = Source::new("file", text.into_bytes(), Timestamp(jiff::Timestamp::UNIX_EPOCH)) else { return };
    if let Ok((_, drafts, _)) = read(&source) {
        assert!(!drafts.is_empty() && drafts.iter().all(|draft| !draft.steps.is_empty()));
        for figure in drafts.iter().flat_map(|draft| &draft.steps).flat_map(|step| &step.told) {
            assert!(figure.value.is_finite(), "{figure:?}");
        }
    }
}
