//! What is found, held against what was noted: slot by slot, session by session.
//!
//! Notes decide what must be there, and so does what is there: a session makes one commit at a time, so a part of commit `n` proves that
//! `n - 1` was acknowledged, whether or not it was noted. Of each slot its last such commit must be there, since later ones replace earlier
//! ones. The next one was under way. Where more than one is beyond the notes, these lost something, as a pipe always does.

use serde::Serialize;

use crate::notes::SessionNotes;
use targets::durable::{Found, Owner, Shape, Torn};

/// Faults that are listed; all are counted.
const LISTED: usize = 20;

/// What is wrong with a commit that was noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is not there: its slot is blank, or holds this earlier commit.
    Missing {
        /// The earlier one.
        stale: Option<u64>,
    },
    /// Its slot holds parts of several commits, or what none wrote.
    Torn(Torn),
    /// Its slot holds a commit that belongs elsewhere.
    Foreign(Owner),
    /// Its slot cannot be read.
    Unreadable(String),
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The session, from 0.
    pub session: u32,
    /// Its slot.
    pub slot: u32,
    /// Number of the commit that must be there; 0 where none was noted.
    pub seq: u64,
    /// What became of it.
    pub fate: Fate,
}

/// What was found of a whole run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Findings {
    /// Slots whose last commit was noted: so many commits can be compared.
    pub compared: u64,
    /// Of them, those that hold it, or a commit after it, or what was under way when the power failed.
    pub kept: u64,
    /// Noted commits that are not there.
    pub missing: u64,
    /// Of them, those in whose slot an earlier commit is.
    pub stale: u64,
    /// The same with those that they had replaced since what their slot holds: so many acknowledged commits left no trace.
    pub missing_with_replaced: u64,
    /// Slots that hold parts of commits, or what none wrote.
    pub torn: u64,
    /// Slots that hold a commit that belongs elsewhere.
    pub foreign: u64,
    /// Noted commits whose slot cannot be read.
    pub unreadable: u64,
    /// Noted commits that are missing while a later one of their session is there.
    pub out_of_order: u64,
    /// Sessions of which a noted commit is missing, torn or unreadable, or which have a slot with a strange one.
    pub sessions_with_faults: u32,
    /// Age of the oldest such commit when the last one of all was noted, in microseconds.
    pub oldest_us: Option<u64>,
    /// Age of the newest.
    pub newest_us: Option<u64>,
    /// Sessions in which the commit after the last noted one is there whole.
    pub under_way_whole: u32,
    /// Sessions in which its slot is torn, which says nothing about any noted commit.
    pub under_way_torn: u32,
    /// Sessions in which its slot cannot be read: the write may have damaged it.
    pub under_way_unreadable: u32,
    /// Most commits of a session that are there beyond its notes.
    pub beyond: u64,
    /// Sessions that have more beyond than the one under way.
    pub sessions_beyond: u32,
    /// The first faults.
    #[serde(skip)]
    pub listed: Vec<Fault>,
}

impl Findings {
    /// How many faults there are.
    pub fn faults(&self) -> u64 {
        self.missing + self.torn + self.foreign + self.unreadable
    }

    /// Faults that prove a loss: what cannot be read may be there once its path is up again.
    pub fn losses(&self) -> u64 {
        self.missing + self.torn + self.foreign
    }
}

/// Compares slots with notes as they come, in any order.
#[derive(Debug)]
pub struct Judge<'a> {
    shape: Shape,
    last_us: u64,
    sessions: Vec<Seen<'a>>,
}

#[derive(Debug)]
struct Seen<'a> {
    notes: &'a SessionNotes,
    /// Highest commit of which anything is there.
    highest: u64,
    /// Highest commit that is there whole.
    highest_whole: u64,
    /// What was found in each slot that was visited: a commit, whole, or 0 for nothing.
    whole: Vec<(u32, u64)>,
    others: Vec<(u32, Found)>,
}

impl<'a> Judge<'a> {
    /// Of a run with these notes; `last_us` is when the last one was noted.
    pub fn new(shape: Shape, sessions: &'a [SessionNotes], last_us: u64) -> Self {
        let seen = |notes| Seen { notes, highest: 0, highest_whole: 0, whole: Vec::new(), others: Vec::new() };
        Self { shape, last_us, sessions: sessions.iter().map(seen).collect() }
    }

    /// Takes in what a slot holds. What belongs to no session of the run is passed over.
    pub fn slot(&mut self, session: u32, slot: u32, found: Found) {
        let Some(seen) = self.sessions.get_mut(session as usize) else { return };
        match found {
            Found::Whole { seq } => {
                seen.highest = seen.highest.max(seq);
                seen.highest_whole = seen.highest_whole.max(seq);
                seen.whole.push((slot, seq));
            }
            Found::Blank => seen.whole.push((slot, 0)),
            other => {
                if let Found::Torn(Torn { newest: Some(newest), .. }) = &other {
                    seen.highest = seen.highest.max(*newest);
                }
                seen.others.push((slot, other));
            }
        }
    }

    /// What was found of all slots.
    pub fn findings(self) -> Findings {
        let mut findings = Findings::default();
        let Self { shape, last_us, sessions } = self;
        for (number, seen) in (0..).zip(sessions) {
            let before = findings.faults();
            seen.add_to(&mut findings, &shape, number, last_us);
            findings.sessions_with_faults += u32::from(findings.faults() > before);
        }
        findings
    }
}

impl Seen<'_> {
    fn add_to(self, into: &mut Findings, shape: &Shape, session: u32, last_us: u64) {
        let Self { notes, highest, highest_whole, whole, others } = self;
        let noted = notes.last;
        // It waits for each, noted or not.
        let last = noted.max(highest.saturating_sub(1));
        let (blocks, under_way) = (u64::from(shape.blocks), last.saturating_add(1));
        let expected_in = |slot: u32| expected(last, slot, shape.blocks);
        let beyond = highest.saturating_sub(noted);
        into.beyond = into.beyond.max(beyond);
        into.sessions_beyond += u32::from(beyond > 1);
        into.under_way_whole += u32::from(highest_whole == under_way);
        let mut fault = |slot: u32, seq: u64, fate: Fate| {
            match fate {
                Fate::Missing { stale } => {
                    into.missing += 1;
                    into.stale += u64::from(stale.is_some());
                }
                Fate::Torn(_) => into.torn += 1,
                Fate::Foreign(_) => into.foreign += 1,
                Fate::Unreadable(_) => into.unreadable += 1,
            }
            // When one was acknowledged that was not noted is not known.
            if seq > 0 && seq <= noted {
                let age_us = last_us.saturating_sub(notes.time_us(slot));
                into.oldest_us = into.oldest_us.max(Some(age_us));
                into.newest_us = Some(into.newest_us.map_or(age_us, |newest| newest.min(age_us)));
            }
            if into.listed.len() < LISTED {
                into.listed.push(Fault { session, slot, seq, fate });
            }
        };
        let (mut compared, mut kept, mut with_replaced, mut out_of_order) = (0, 0, 0, 0);
        for (slot, seq) in whole {
            let must = expected_in(slot);
            compared += u64::from(must > 0);
            if seq >= must {
                kept += u64::from(must > 0);
                continue;
            }
            let stale = (seq > 0).then_some(seq);
            fault(slot, must, Fate::Missing { stale });
            // What followed what is there, or the slot's first.
            let first = stale.map_or(u64::from(slot) + 1, |stale| stale.saturating_add(blocks)).min(must);
            with_replaced += (must - first) / blocks + 1;
            out_of_order += u64::from(must < highest_whole);
        }
        let (mut torn_under_way, mut unread_under_way) = (false, false);
        for (slot, found) in others {
            let must = expected_in(slot);
            compared += u64::from(must > 0);
            let is_under_way = shape.slot_of(under_way) == slot;
            match found {
                // What is under way may leave anything, but nothing that is older than what it was to replace.
                Found::Torn(torn) if is_under_way && leaves(torn) >= must => {
                    torn_under_way = true;
                    kept += u64::from(must > 0);
                }
                Found::Unreadable(_) if is_under_way || must == 0 => {
                    unread_under_way |= is_under_way;
                    kept += u64::from(must > 0);
                }
                Found::Torn(torn) => fault(slot, must, Fate::Torn(torn)),
                Found::Foreign(owner) => fault(slot, must, Fate::Foreign(owner)),
                Found::Unreadable(why) => fault(slot, must, Fate::Unreadable(why)),
                Found::Blank | Found::Whole { .. } => {}
            }
        }
        into.compared += compared;
        into.kept += kept;
        into.missing_with_replaced += with_replaced;
        into.out_of_order += out_of_order;
        into.under_way_torn += u32::from(torn_under_way);
        into.under_way_unreadable += u32::from(unread_under_way);
    }
}

/// The oldest commit that a torn slot still has parts of; 0 where a part is blank again. What is under way may leave noise alone.
fn leaves(torn: Torn) -> u64 {
    torn.oldest.unwrap_or(u64::MAX)
}

/// The last commit of a slot up to number `last` of its session; 0 for none.
fn expected(last: u64, slot: u32, blocks: u32) -> u64 {
    let Some(behind) = last.checked_sub(u64::from(slot) + 1) else { return 0 };
    last - behind % u64::from(blocks.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { run: 1, sessions: 1, blocks: 4 };

    /// Notes of one session with so many commits, one each millisecond.
    fn noted(last: u64) -> Vec<SessionNotes> {
        vec![SessionNotes::sample(last, SHAPE.blocks)]
    }

    fn whole(seq: u64) -> Found {
        Found::Whole { seq }
    }

    fn torn(oldest: impl Into<Option<u64>>, newest: impl Into<Option<u64>>, strange: u32) -> Found {
        Found::Torn(Torn { oldest: oldest.into(), newest: newest.into(), strange })
    }

    fn answered(last: u64, slots: [Found; 4]) -> Findings {
        let notes = noted(last);
        let mut judge = Judge::new(SHAPE, &notes, last * 1000);
        (0..).zip(slots).for_each(|(slot, found)| judge.slot(0, slot, found));
        judge.findings()
    }

    #[test]
    fn the_last_commit_of_each_slot_is_what_must_be_there() {
        let found = answered(6, [whole(5), whole(6), whole(3), whole(4)]);
        assert_eq!(found, Findings { compared: 4, kept: 4, ..Findings::default() });
        let few = answered(2, [whole(1), whole(2), Found::Blank, Found::Blank]);
        assert_eq!(few, Findings { compared: 2, kept: 2, ..Findings::default() });
    }

    #[test]
    fn one_commit_beyond_the_notes_was_under_way_and_more_are_not() {
        let one = answered(6, [whole(5), whole(6), whole(7), whole(4)]);
        assert_eq!((one.faults(), one.kept, one.beyond, one.sessions_beyond, one.under_way_whole), (0, 4, 1, 0, 1));
        let two = answered(6, [whole(5), whole(6), whole(7), whole(8)]);
        assert_eq!((two.faults(), two.beyond, two.sessions_beyond), (0, 2, 1));
        let far = answered(6, [whole(9), whole(10), whole(11), whole(12)]);
        assert_eq!((far.faults(), far.beyond, far.sessions_beyond), (0, 6, 1));
        // What was not noted was acknowledged all the same, but for the one under way: number 11 is not in its slot.
        let lost = answered(6, [whole(9), whole(10), whole(3), whole(12)]);
        assert_eq!((lost.missing, lost.listed[0].seq, lost.oldest_us), (1, 11, None));
        let unnoted = answered(0, [whole(1), Found::Blank, Found::Blank, Found::Blank]);
        assert_eq!((unnoted.sessions_beyond, unnoted.beyond, unnoted.compared, unnoted.faults()), (0, 1, 0, 0));
    }

    #[test]
    fn a_slot_that_is_blank_or_holds_an_earlier_commit_has_lost_one() {
        let found = answered(6, [whole(5), whole(2), whole(3), Found::Blank]);
        assert_eq!((found.missing, found.stale, found.kept, found.compared), (2, 1, 2, 4));
        assert_eq!(found.listed[0].fate, Fate::Missing { stale: Some(2) });
        assert_eq!((found.listed[1].seq, &found.listed[1].fate), (4, &Fate::Missing { stale: None }));
        // Number 6 was noted last, number 4 two milliseconds before.
        assert_eq!((found.newest_us, found.oldest_us, found.sessions_with_faults), (Some(0), Some(2_000), 1));
        // Number 5 is there, number 4 is not; number 6 is after all that is there.
        assert_eq!(found.out_of_order, 1);
    }

    #[test]
    fn a_tail_that_is_missing_is_in_order() {
        let found = answered(6, [whole(1), whole(2), whole(3), whole(4)]);
        assert_eq!((found.missing, found.out_of_order, found.oldest_us), (2, 0, Some(1_000)));
        assert_eq!(found.missing_with_replaced, 2);
    }

    #[test]
    fn a_tail_that_is_longer_than_the_slots_is_counted_whole() {
        // Of 26 commits the first eleven are there.
        let found = answered(26, [whole(9), whole(10), whole(11), whole(8)]);
        assert_eq!((found.missing, found.missing_with_replaced, found.out_of_order), (4, 15, 0));
        assert_eq!(found.oldest_us, Some(3_000));
        let nothing = answered(26, [Found::Blank, Found::Blank, Found::Blank, Found::Blank]);
        assert_eq!(nothing.missing_with_replaced, 26);
        // What a hostile target says of its slots costs nothing.
        assert_eq!(answered(26, [whole(1), whole(10), whole(11), whole(u64::MAX)]).missing, 3);
    }

    #[test]
    fn a_target_that_wrote_nothing_has_lost_all() {
        let found = answered(6, [Found::Blank, Found::Blank, Found::Blank, Found::Blank]);
        assert_eq!((found.missing, found.kept, found.out_of_order), (4, 0, 0));
    }

    #[test]
    fn a_torn_slot_is_a_fault_unless_the_commit_under_way_did_it() {
        // Number 7 was under way, in slot 2 where number 3 was.
        for here in [torn(3, 7, 0), torn(3, 3, 2), torn(None, None, 16), torn(7, 7, 1)] {
            let found = answered(6, [whole(5), whole(6), here, whole(4)]);
            assert_eq!((found.faults(), found.under_way_torn, found.kept, found.sessions_beyond), (0, 1, 4, 0));
        }
        let fault = torn(1, 5, 0);
        let found = answered(6, [fault, whole(6), whole(3), whole(4)]);
        assert_eq!((found.torn, found.kept, found.out_of_order), (1, 3, 0));
        assert_eq!(found.listed[0].fate, Fate::Torn(Torn { oldest: Some(1), newest: Some(5), strange: 0 }));
        assert_eq!(answered(6, [whole(5), whole(6), whole(3), torn(None, None, 16)]).torn, 1);
        // What is under way brings nothing back that was replaced long ago.
        let found = answered(10, [whole(9), whole(10), torn(3, 11, 0), whole(8)]);
        assert_eq!((found.torn, found.listed[0].seq), (1, 7));
        // Nor does it make blank again what was acknowledged.
        let found = answered(6, [whole(5), whole(6), torn(0, 7, 0), whole(4)]);
        assert_eq!((found.torn, found.listed[0].seq), (1, 3));
        // A part of number 8 proves that number 7 was acknowledged, and that a note is missing.
        let found = answered(6, [whole(5), whole(6), whole(3), torn(4, 8, 0)]);
        assert_eq!((found.missing, found.listed[0].seq, found.beyond, found.sessions_beyond), (1, 7, 2, 1));
        let found = answered(6, [whole(5), whole(6), whole(7), torn(4, 8, 0)]);
        assert_eq!((found.faults(), found.beyond, found.sessions_beyond), (0, 2, 1));
    }

    #[test]
    fn the_slot_under_way_must_not_lose_what_was_there_before() {
        let stale = answered(10, [whole(9), whole(10), whole(3), whole(8)]);
        assert_eq!((stale.missing, stale.stale, stale.listed[0].seq), (1, 1, 7));
        let blank = answered(10, [whole(9), whole(10), Found::Blank, whole(8)]);
        assert_eq!(blank.missing, 1);
    }

    #[test]
    fn a_commit_in_the_place_of_another_is_not_kept() {
        let stranger = Owner { run: 1, session: 3, slot: 1, seq: 6 };
        for slots in [
            [whole(5), Found::Foreign(stranger), whole(3), whole(4)],
            [whole(5), whole(6), Found::Foreign(stranger), whole(4)],
        ] {
            let found = answered(6, slots);
            assert_eq!((found.foreign, found.kept, found.missing), (1, 3, 0));
        }
        let found = answered(2, [whole(1), whole(2), Found::Blank, Found::Foreign(stranger)]);
        assert_eq!((found.foreign, found.listed[0].seq), (1, 0), "also where nothing was noted");
    }

    #[test]
    fn what_cannot_be_read_is_lost_and_the_rest_is_judged() {
        let bad = || Found::Unreadable("offset 8192: Input/output error".to_owned());
        let found = answered(6, [whole(5), bad(), whole(3), whole(4)]);
        assert_eq!((found.unreadable, found.kept, found.missing), (1, 3, 0));
        assert!(matches!(&found.listed[0].fate, Fate::Unreadable(why) if why.contains("8192")));
        let under_way = answered(6, [whole(5), whole(6), bad(), whole(4)]);
        assert_eq!((under_way.faults(), under_way.under_way_unreadable, under_way.kept), (0, 1, under_way.compared));
        assert_eq!(answered(2, [whole(1), whole(2), Found::Blank, bad()]).faults(), 0, "no commit was there");
    }

    #[test]
    fn faults_are_counted_and_the_first_are_listed() {
        let shape = Shape { run: 1, sessions: 1, blocks: 1000 };
        let notes = vec![SessionNotes::sample(2_500, 1000)];
        let mut judge = Judge::new(shape, &notes, 2_500_000);
        (0..1000).for_each(|slot| judge.slot(0, slot, Found::Blank));
        judge.slot(9, 0, Found::Blank);
        let found = judge.findings();
        assert_eq!((found.missing, found.listed.len()), (1000, LISTED));
    }

    /// Whatever prefix of a session's writes reached the device, in order, with the last one torn or not, is judged by what was noted.
    #[test]
    fn an_honest_target_is_always_kept_and_a_lost_tail_never() {
        proptest::proptest!(|(last in 0..40_u64, under_way in 0..3_u8, lost in 0..40_u64)| {
            let at = |highest: u64, slot: u32| {
                let expected = SessionNotes::sample(highest, 4).expected(slot, 4);
                if expected == 0 { Found::Blank } else { whole(expected) }
            };
            let next = SHAPE.slot_of(last + 1);
            let honest: [Found; 4] = std::array::from_fn(|slot| match (under_way, slot as u32 == next) {
                (1, true) => whole(last + 1),
                (2, true) => torn(if expected(last, slot as u32, 4) == 0 { None } else { Some(expected(last, slot as u32, 4)) }, last + 1, 3),
                _ => at(last, slot as u32),
            });
            let found = answered(last, honest);
            proptest::prop_assert!(found.faults() == 0 && found.sessions_beyond == 0 && found.kept == found.compared);
            let lost = lost.min(last);
            let tail: [Found; 4] = std::array::from_fn(|slot| at(last - lost, slot as u32));
            let found = answered(last, tail);
            proptest::prop_assert_eq!((found.missing, found.out_of_order), (lost.min(4), 0));
        });
    }
}
