//! Any words in any order, as parts that know the token may say them: the meeting point keeps its order. For longer,
//! `PROPTEST_CASES=10000000 cargo test --release --lib -- fleet::any_words`.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::book::Book;
use super::message::{FromMeeting, FromPart, Introduction, Judgement, MAX_NAME_CHARS};
use super::{OnPartEnd, Rules};
use targets::network::wire::{Frames, Version};

const PARTS: u32 = 3;

#[derive(Debug, Clone)]
enum Word {
    Comes { number: u32, parts: u32, configuration: bool },
    Ready { number: u32, step: u32 },
    Judged { number: u32, step: u32, judgement: Judgement },
    Leaves { number: u32, early: Option<String> },
    Time { milliseconds: u64 },
}

fn judgements() -> impl Strategy<Value = Judgement> {
    prop_oneof![
        Just(Judgement::Passed),
        Just(Judgement::Unsteady),
        Just(Judgement::GeneratorBound),
        Just(Judgement::Failed),
        Just(Judgement::Unjudged)
    ]
}

fn words() -> impl Strategy<Value = Word> {
    let number = 0..PARTS + 1;
    prop_oneof![
        4 => (number.clone(), PARTS - 1..PARTS + 1, prop::bool::weighted(0.9))
            .prop_map(|(number, parts, configuration)| Word::Comes { number, parts: parts.max(PARTS), configuration }),
        8 => (number.clone(), 0..2_u32).prop_map(|(number, step)| Word::Ready { number, step }),
        6 => (number.clone(), 0..2_u32, judgements())
            .prop_map(|(number, step, judgement)| Word::Judged { number, step, judgement }),
        1 => (number, prop::option::of("\\PC*")).prop_map(|(number, early)| Word::Leaves { number, early }),
        2 => (0..20_000_u64).prop_map(|milliseconds| Word::Time { milliseconds }),
    ]
}

/// What was last said by those who are here.
type Last = BTreeMap<u32, Option<Word>>;

fn worst(last: &Last) -> Option<Judgement> {
    let judged = last.values().flatten().filter_map(|word| match word {
        Word::Judged { judgement, .. } => Some(*judgement),
        _ => None,
    });
    judged.max()
}

/// What the book says is what all who are here have just said. Of several that are found to have gone at once, the verdict may count
/// those that were found last: they were there `before`.
fn assert_follows(said: &FromMeeting, last: &Last, before: &Last) -> Result<(), TestCaseError> {
    match said {
        FromMeeting::Begin { step, .. } => {
            for word in last.values() {
                let is_ready = matches!(word, Some(Word::Ready { step: ready, .. }) if ready == step);
                prop_assert!(is_ready, "{said:?} after {last:?}");
            }
        }
        FromMeeting::Verdict { step, judgement } => {
            for word in last.values() {
                let is_judged = matches!(word, Some(Word::Judged { step: judged, .. }) if judged == step);
                prop_assert!(is_judged, "{said:?} after {last:?}");
            }
            prop_assert!(
                worst(last) <= Some(*judgement) && Some(*judgement) <= worst(before),
                "{said:?} after {last:?}"
            );
        }
        FromMeeting::Stop { why } | FromMeeting::Gone { why, .. } => {
            prop_assert!(why.chars().count() <= 4 * MAX_NAME_CHARS && !why.chars().any(char::is_control), "{why:?}");
        }
        FromMeeting::Welcome { .. } | FromMeeting::Refused { .. } | FromMeeting::Time { .. } => {}
    }
    Ok(())
}

fn in_frames<M: Serialize + DeserializeOwned>(bytes: &[u8], piece: usize) {
    let mut frames: Frames<M> = Frames::default();
    for piece in bytes.chunks(piece) {
        frames.take_in(piece);
        while let Ok(Some(message)) = frames.next_message() {
            let text = serde_json::to_string(&message).unwrap();
            let again: M = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&again).unwrap(), text);
        }
    }
}

proptest! {
    #[test]
    fn a_step_begins_when_all_who_are_here_are_ready_and_nothing_does_after_a_stop(
        words in vec(words(), 0..60),
        goes_on in any::<bool>(),
    ) {
        let on_part_end = if goes_on { OnPartEnd::Continue } else { OnPartEnd::Stop };
        let rules = Rules {
            parts: PARTS,
            configuration: "c0ffee".to_owned(),
            host: "h0".to_owned(),
            patience: Duration::from_secs(60),
            on_part_end,
        };
        let (mut book, mut now_ns) = (Book::new(rules, 0), 0);
        let (mut last, mut has_begun, mut is_stopped) = (Last::new(), false, false);
        for word in words {
            match word.clone() {
                Word::Comes { number, parts, configuration } => {
                    let configuration = if configuration { "c0ffee" } else { "tea" }.to_owned();
                    let who = Introduction { version: Version::ours(), number, parts, configuration, host: "h\n".to_owned() };
                    let belongs = parts == PARTS && number < PARTS && who.configuration == "c0ffee";
                    let is_in = book.join(&who, now_ns).is_ok();
                    prop_assert!(!is_in || belongs && !has_begun && !is_stopped && !last.contains_key(&number), "{who:?}");
                    if is_in {
                        last.insert(number, None);
                    }
                }
                Word::Ready { number, step } => {
                    last.entry(number).and_modify(|last| *last = Some(word.clone()));
                    book.heard(number, now_ns);
                    book.ready(number, step, "step\u{7}", now_ns);
                }
                Word::Judged { number, step, judgement } => {
                    last.entry(number).and_modify(|last| *last = Some(word.clone()));
                    book.heard(number, now_ns);
                    book.judged(number, step, judgement, now_ns);
                }
                Word::Leaves { number, early } => {
                    last.remove(&number);
                    book.left(number, early.as_deref(), now_ns);
                }
                Word::Time { milliseconds } => {
                    now_ns += milliseconds * 1_000_000;
                    book.look(now_ns);
                }
            }
            let before = last.clone();
            last.retain(|number, _| book.has(*number));
            let here: Vec<u32> = last.keys().copied().collect();
            let mut all_said: Vec<Vec<FromMeeting>> = Vec::new();
            for number in here {
                let said: Vec<FromMeeting> = std::iter::from_fn(|| book.take(number)).collect();
                all_said.push(said.into_iter().filter(|said| !matches!(said, FromMeeting::Welcome { .. })).collect());
            }
            let Some(said) = all_said.first().cloned() else { continue };
            prop_assert!(all_said.iter().all(|other| *other == said), "all hear the same: {all_said:?}");
            for said in said {
                assert_follows(&said, &last, &before)?;
                prop_assert!(!is_stopped, "{said:?} after a stop");
                match said {
                    FromMeeting::Begin { monotonic_ns, .. } => {
                        prop_assert!(monotonic_ns > now_ns);
                        has_begun = true;
                        last.values_mut().for_each(|last| *last = None);
                    }
                    FromMeeting::Verdict { .. } => last.values_mut().for_each(|last| *last = None),
                    FromMeeting::Stop { .. } => is_stopped = true,
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn bytes_of_any_kind_are_messages_or_errors(bytes in vec(any::<u8>(), 0..400), piece in 1..64_usize) {
        in_frames::<FromPart>(&bytes, piece);
        in_frames::<FromMeeting>(&bytes, piece);
    }

    #[test]
    fn messages_that_were_damaged_are_messages_or_errors(
        number in any::<u32>(),
        text in ".{0,40}",
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        piece in 1..64_usize,
    ) {
        let messages = [
            FromPart::Ready { step: number, label: text.clone() },
            FromPart::Ask(number),
            FromPart::Judged { step: number, judgement: Judgement::Unsteady },
            FromPart::Leaves { early: Some(text) },
            FromPart::Alive,
        ];
        for message in messages {
            let body = serde_json::to_vec(&message).unwrap();
            let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
            bytes.extend(body);
            let place = place.index(bytes.len());
            bytes[place] = byte;
            in_frames::<FromPart>(&bytes, piece);
        }
    }
}
