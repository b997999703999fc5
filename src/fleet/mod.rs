//! Where the parts of a fleet meet: one experiment on many hosts begins each step at one instant, and ends together.
//!
//! Part 0 has the meeting point, a TCP port behind the same handshake as that of `plimsoll net serve`: nobody is heard before they
//! have shown the token. All parts come there, part 0 too, over loopback, so that there is one way only:
//!
//! ```text
//! part                                      meeting point
//!   hello: version, number, configuration ─▶
//!                                         ◀─ welcome, or refused
//!   ask, 64 times                         ─▶
//!                                         ◀─ time                    the offset of the two clocks
//!   ready for a step                      ─▶
//!                                         ◀─ begin at an instant     when all parts are ready
//!   judged: what came of the step         ─▶                         where a search decides by it
//!                                         ◀─ verdict                 the worst of all parts
//!   leaves                                ─▶
//! ```
//!
//! It is a barrier, not a cluster: nobody is started, nobody comes back, and no part depends on what another measures but for the
//! verdict. Clocks are compared again before each step and after the last one, because monotonic clocks of two hosts drift by
//! some 10 µs a second when nothing disciplines them.

mod book;
mod meeting;
mod member;
#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use targets::network::wire::{Version, WireError};

pub use meeting::{Meeting, listening_addresses};
pub use member::{Exchange, Joining, Member, Offset, Started};

/// What happens to the others when a part ends early, or never comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnPartEnd {
    /// All end, and keep what they measured.
    #[default]
    Stop,
    /// The others go on without it.
    Continue,
}

/// What a meeting point asks of parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// How many there are.
    pub parts: u32,
    /// Digest of all that decides the load.
    pub configuration: String,
    /// Name of the host of part 0.
    pub host: String,
    /// How long is waited for parts to come.
    pub patience: Duration,
    /// What happens when one ends early.
    pub on_part_end: OnPartEnd,
}

/// Longest name of a step, host or reason that is kept of what came.
const MAX_NAME_CHARS: usize = 200;

/// What came of a step at one part, from the best on. The meeting point makes the worst of all parts the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The limit was kept.
    Passed,
    /// The load was not steady enough to say.
    Unsteady,
    /// The load generator was the limit.
    GeneratorBound,
    /// The limit was broken.
    Failed,
    /// Nothing can be said of the step.
    Unjudged,
}

/// Who a part is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Introduction {
    /// Protocol and program.
    version: Version,
    /// Its number, from 0.
    pub number: u32,
    /// How many parts it thinks there are.
    pub parts: u32,
    /// Digest of all that decides the load.
    pub configuration: String,
    /// Its host's name.
    pub host: String,
}

/// What a part says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FromPart {
    /// Said first. Answered by [`FromMeeting::Welcome`] or [`FromMeeting::Refused`].
    Hello(Introduction),
    /// Asks for the time. Answered at once by [`FromMeeting::Time`] with the same number.
    Ask(u32),
    /// All its sessions can begin step number `step`. Answered by [`FromMeeting::Begin`] when all parts can.
    Ready { step: u32, label: String },
    /// What came of a step. Answered by [`FromMeeting::Verdict`] when all parts have said it.
    Judged { step: u32, judgement: Judgement },
    /// It is there still. Whoever says nothing for 10 s is taken for gone.
    Alive,
    /// It has done all that was asked, or why it ends before that.
    Leaves { early: Option<String> },
}

/// What the meeting point says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FromMeeting {
    /// The part belongs here.
    Welcome { host: String },
    /// The part does not belong here.
    Refused { why: String },
    /// The time at part 0: on its monotonic clock, and since 1970.
    Time { asked: u32, monotonic_ns: u64, utc_ns: u64 },
    /// Load begins at this reading of part 0's monotonic clock.
    Begin { step: u32, monotonic_ns: u64 },
    /// What came of a step over all parts.
    Verdict { step: u32, judgement: Judgement },
    /// A part has gone, and the rest goes on.
    Gone { number: u32, why: String },
    /// The load is to end.
    Stop { why: String },
}

/// What came, no longer than it may be, and without control characters: it is shown and kept.
fn plain(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(MAX_NAME_CHARS).collect()
}

const OTHER_PORT: &str = "another program has that port, perhaps a part 0 of another experiment: choose another port";
const HOST_AND_PORT: &str = "--meet names the host that part 0 runs on, and a port of it";

/// Why a part cannot take part, or not any more.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum FleetError {
    /// A name without an address.
    #[error("the meeting point `{point}` has no address: {source}")]
    #[diagnostic(help("name the host that part 0 runs on as all hosts know it, or give its address"))]
    NoAddress {
        /// As it was named.
        point: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Part 0 cannot listen there.
    #[error("part 0 cannot listen on `{point}`: {source}")]
    #[diagnostic(help("{}", if source.kind() == io::ErrorKind::AddrInUse { OTHER_PORT } else { HOST_AND_PORT }))]
    Listen {
        /// As it was named.
        point: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Nobody takes connections there.
    #[error("the meeting point `{point}` was not reached within {seconds} s: {source}")]
    #[diagnostic(help(
        "see that part 0 runs on that host, and that the firewall lets parts in. `--meet-wait` sets how long to try"
    ))]
    Connect {
        /// As it was named.
        point: String,
        /// How long it was tried.
        seconds: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// What both ends say to each other went wrong.
    #[error("the meeting point `{point}`: {source}")]
    #[diagnostic(help("{}", hint_for_wire(source)))]
    Wire {
        /// As it was named.
        point: String,
        /// What went wrong.
        source: WireError,
    },
    /// The meeting point does not want this part.
    #[error("the meeting point `{point}` refuses part {number}: {why}")]
    #[diagnostic(help("give all parts the same command, version and seed; `--dry-run` shows a part's configuration"))]
    Refused {
        /// As it was named.
        point: String,
        /// The part.
        number: u32,
        /// Its reason.
        why: String,
    },
    /// The fleet was stopped before or in the load.
    #[error("the fleet has been stopped: {why}")]
    #[diagnostic(help("`--on-part-end continue` lets the others go on when a part ends early"))]
    Stopped {
        /// The reason that was given.
        why: String,
    },
    /// No thread for it.
    #[error("cannot start a thread for the meeting point: {source}")]
    Thread {
        /// The system's reason.
        source: io::Error,
    },
}

impl FleetError {
    /// What to do about it, where there is something.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }
}

fn hint_for_wire(source: &WireError) -> String {
    match source {
        WireError::TokenRefused | WireError::Unproven => {
            "give all parts the same token in PLIMSOLL_MEET_TOKEN or --meet-token-file".to_owned()
        }
        WireError::Stranger => "another program listens there: choose another port for --meet".to_owned(),
        source => source.hint().unwrap_or_default(),
    }
}

#[cfg(test)]
mod any_words {
    //! Any words in any order, as parts that know the token may say them: the meeting point keeps its order. For longer,
    //! `PROPTEST_CASES=10000000 cargo test --release --lib -- fleet::any_words`.

    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::book::Book;
    use super::{FromMeeting, FromPart, Introduction, Judgement, MAX_NAME_CHARS, OnPartEnd, Rules};
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
                prop_assert!(
                    why.chars().count() <= 4 * MAX_NAME_CHARS && !why.chars().any(char::is_control),
                    "{why:?}"
                );
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
}
