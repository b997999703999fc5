//! What damage does to fio's output.

use proptest::prelude::*;

use super::tests::{JSON_2, JSON_3, TERSE, TEXT_2, TEXT_3};
use crate::Source;
use model::record::Timestamp;

/// What happens to files on their way.
#[derive(Debug, Clone)]
enum Damage {
    Cut(usize),
    Flip(usize, u8),
    Repeat(usize),
    Drop(usize),
    Insert(usize, &'static str, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let junk = prop::sample::select(vec![
        "9", "{", "[", ";", ",", "th=[", "e308", "-", "%=", "\u{1b}[", "\r", "K", "é", "\"", ": io=", "(",
    ]);
    prop_oneof![
        any::<usize>().prop_map(Damage::Cut),
        (any::<usize>(), 9_u8..127).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        any::<usize>().prop_map(Damage::Repeat),
        any::<usize>().prop_map(Damage::Drop),
        (any::<usize>(), junk, 1_usize..2_000).prop_map(|(at, what, times)| Damage::Insert(at, what, times)),
    ]
}

fn damaged(text: &str, damages: &[Damage]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for damage in damages {
        let length = bytes.len().max(1);
        match damage {
            Damage::Cut(at) => bytes.truncate(at % length),
            Damage::Flip(at, byte) => {
                if let Some(place) = bytes.get_mut(at % length) {
                    *place = *byte;
                }
            }
            Damage::Insert(at, what, times) => {
                let at = (at % length).min(bytes.len());
                drop(bytes.splice(at..at, what.repeat(*times).into_bytes()));
            }
            Damage::Repeat(at) | Damage::Drop(at) => {
                let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
                let at = at % lines.len();
                if matches!(damage, Damage::Drop(_)) {
                    lines.remove(at);
                } else {
                    lines.insert(at, lines[at]);
                }
                bytes = lines.join(&b'\n');
            }
        }
    }
    bytes
}

proptest! {
    #[test]
    fn damaged_files_give_runs_or_an_error(
        specimen in prop::sample::select(vec![JSON_3, JSON_2, TEXT_3, TEXT_2, TERSE]),
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let bytes = damaged(specimen, &damages);
        let Ok(source) = Source::new("file", bytes, Timestamp(jiff::Timestamp::UNIX_EPOCH)) else { return Ok(()) };
        if let Ok((_, drafts, _)) = crate::read(&source) {
            prop_assert!(!drafts.is_empty() && drafts.iter().all(|draft| !draft.steps.is_empty()));
            for step in drafts.iter().flat_map(|draft| &draft.steps) {
                for operation in &step.operations {
                    prop_assert!(operation.service.count() > 0);
                }
            }
        }
    }
}
