//! What the findings prove.
//!
//! *Lost* needs one acknowledged commit that is not there. *Kept* needs more than that none is missing: the notes must be whole, the power
//! must seem to have been cut while load went on, and enough must have been acknowledged just before. Everything else gives
//! no verdict, with each reason.

use std::fmt::{self, Display};

use serde_json::{Value, json};

use crate::judge::{Fate, Fault, Findings};
use crate::notes::Noted;
use crate::opening::{How, Machine, Way};
use model::units::{Bytes, Nanos, group_thousands};
use targets::database::Sheet;
use targets::durable::{Place, Presence};

/// A load that had said nothing for so long when its notes ended had lost its power before: it speaks twice a second.
const CUT_SILENCE_MS: u64 = 3_000;
/// Fewer acknowledged commits in the last five seconds say nothing: a cache would lose none of so few.
const MIN_RECENT: u64 = 50;
/// A load that acknowledged nothing for longer, before it fell silent, was not under way at the cut.
const MAX_IDLE_MS: u64 = 2_000;
/// The span at the end of the notes in which commits are counted.
const RECENT_S: u64 = 5;
/// Times at which a server says that it was started differ by no more than this if it was not started again.
const SAME_START_S: u64 = 2;

/// Why nothing is proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Commits were acknowledged without a flush.
    NothingPromised,
    /// The server was set up to lose commits.
    Settings(Vec<String>),
    /// More is on the target than the notes hold.
    NotesBehind {
        /// Sessions of which that is so.
        sessions: u32,
        /// Most commits of one of them.
        commits: u64,
    },
    /// Nothing was noted.
    NoNotes,
    /// The witness did not live to see how the load ended.
    WitnessDied,
    /// The load ended in order.
    EndedInOrder,
    /// The load ended by an error of its own.
    EndedByError(String),
    /// The target says that the load had ended.
    EndedOnTarget,
    /// The connection was closed, which a machine without power cannot do.
    Closed,
    /// The witness ended while the load went on.
    WitnessStopped,
    /// The load fell silent, and its target is on another machine.
    LoadGone,
    /// Which server it is, or was, is not known, or one that was not started again: it may be a copy.
    MayBeACopy,
    /// This boot is the one of the load.
    SameBoot,
    /// Which boot this is, or was, is not known.
    UnknownBoot,
    /// This is another machine.
    OtherMachine,
    /// The server was not started again.
    NotRestarted,
    /// When the server was started is not known.
    UnknownStart,
    /// Nothing was acknowledged for so long before the end, in milliseconds.
    Idle(u64),
    /// Too little was acknowledged.
    TooFew {
        /// In the last five seconds.
        recent: u64,
    },
    /// Not every slot was visited, or one twice.
    NotAllRead,
    /// Everything is gone.
    Gone(String),
    /// So many commits cannot be read.
    Unreadable(u64),
    /// The place is not the one of the load.
    Elsewhere {
        /// That of the load.
        made: String,
        /// The one that is there.
        now: String,
    },
    /// Another run is there.
    OtherRun,
}

impl Reason {
    /// Its name for programs.
    pub fn id(&self) -> &'static str {
        match self {
            Self::NothingPromised => "nothing_promised",
            Self::Settings(_) => "settings",
            Self::NotesBehind { .. } => "notes_behind",
            Self::NoNotes => "no_notes",
            Self::WitnessDied => "witness_died",
            Self::EndedInOrder => "ended_in_order",
            Self::EndedByError(_) => "ended_by_error",
            Self::EndedOnTarget => "ended_on_target",
            Self::Closed => "connection_closed",
            Self::WitnessStopped => "witness_stopped",
            Self::LoadGone => "load_gone",
            Self::MayBeACopy => "may_be_a_copy",
            Self::SameBoot => "same_boot",
            Self::UnknownBoot => "unknown_boot",
            Self::OtherMachine => "other_machine",
            Self::NotRestarted => "server_not_restarted",
            Self::UnknownStart => "server_start_unknown",
            Self::Idle(_) => "idle_before_the_end",
            Self::TooFew { .. } => "too_few_commits",
            Self::NotAllRead => "not_all_read",
            Self::Gone(_) => "gone",
            Self::Unreadable(_) => "unreadable",
            Self::Elsewhere { .. } => "elsewhere",
            Self::OtherRun => "other_run",
        }
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingPromised => f.write_str(
                "commits were acknowledged without a flush (`--means none`), so a loss breaks no promise. Repeat with another `--means`",
            ),
            Self::Settings(settings) => write!(
                f,
                "the server was set up so that a power failure may lose or tear what it acknowledged: {}. Change that and repeat",
                crate::brief(&settings.join(", "))
            ),
            Self::NotesBehind { sessions, commits } => write!(
                f,
                "the notes are incomplete: {sessions} sessions have more commits on the target than the one under way, up to {}. \
                 The witness lost notes",
                group_thousands(*commits as f64)
            ),
            Self::NoNotes => f.write_str("no commit was noted, so there is nothing to compare"),
            Self::WitnessDied => f.write_str(
                "the notes have no end: the witness is still at work, or it ended with its machine and may have lost notes",
            ),
            Self::EndedInOrder => {
                f.write_str("nothing was cut under load: the load ended in order before. Cut the power while it goes on")
            }
            Self::EndedByError(why) => write!(f, "nothing was cut under load: an error ended the load before ({why})"),
            Self::EndedOnTarget => {
                f.write_str("nothing was cut under load: the target holds the mark that the load had ended")
            }
            Self::Closed => f.write_str(
                "nothing seems to have been cut: the connection was closed, which a machine without power cannot do. A killed load \
                 looks like that",
            ),
            Self::WitnessStopped => f.write_str("the witness was stopped while the load went on"),
            Self::LoadGone => f.write_str(
                "the load fell silent, not its server: whether that was cut under load cannot be seen. Keep the load's machine running",
            ),
            Self::MayBeACopy => f.write_str(
                "commits are missing, and this may be a copy of the server: it does not say which one it is, or was not restarted",
            ),
            Self::SameBoot => {
                f.write_str("nothing was cut: this machine has not been restarted since the load. This proves nothing")
            }
            Self::UnknownBoot => f.write_str("the kernel does not say which boot this is, so a cut cannot be seen"),
            Self::OtherMachine => {
                f.write_str("this is not the machine of the load, so whether that lost its power cannot be seen. Verify there")
            }
            Self::NotRestarted => {
                f.write_str("nothing was cut: the server has not been restarted since the load began. This proves nothing")
            }
            Self::UnknownStart => f.write_str("the server does not say when it was started, so a cut cannot be seen"),
            Self::Idle(ms) => write!(
                f,
                "nothing was acknowledged in the last {} before the load fell silent, so a cache may have been written back",
                Nanos(ms.saturating_mul(1_000_000))
            ),
            Self::TooFew { recent } => write!(
                f,
                "too little was acknowledged to say: {recent} commits in the last five seconds, and {MIN_RECENT} are the least. \
                 Use more `--sessions`"
            ),
            Self::NotAllRead => f.write_str("not every slot could be compared. That is an error in Plimsoll: report it"),
            Self::Gone(what) => {
                write!(f, "{what} is gone. Unless a hand removed it, or this is a copy of before, every commit is lost")
            }
            Self::Unreadable(commits) => write!(
                f,
                "{} commits cannot be read now. Verify again when the device is whole; if that lasts, they are lost",
                group_thousands(*commits as f64)
            ),
            Self::Elsewhere { made, now } => {
                let (made, now) = (crate::brief(made), crate::brief(now));
                write!(f, "the load was on {made}, and this is {now}. Is it not mounted, or another server?")
            }
            Self::OtherRun => f.write_str("the target holds another run than the notes. Each run has notes of its own"),
        }
    }
}

/// What is proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every commit that was noted and can be compared is there, after what looks like a power cut under load.
    Kept,
    /// Commits that were acknowledged are not there.
    Lost,
    /// Neither is shown.
    None(Vec<Reason>),
}

impl Verdict {
    /// Its name for programs.
    pub fn id(&self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Lost => "lost",
            Self::None(_) => "no_verdict",
        }
    }
}

/// What a verdict is about.
#[derive(Debug)]
pub struct Judged<'a> {
    /// What was noted.
    pub noted: &'a Noted,
    /// What became of the target.
    pub presence: &'a Presence,
    /// What was found there.
    pub findings: &'a Findings,
    /// The machine that looked.
    pub here: &'a Machine,
}

impl Judged<'_> {
    /// What all of it proves.
    pub fn verdict(&self) -> Verdict {
        let (findings, opening) = (self.findings, &self.noted.opened.opening);
        let missing = match self.presence {
            Presence::Elsewhere { made, now } => {
                return Verdict::None(vec![Reason::Elsewhere { made: made.clone(), now: now.clone() }]);
            }
            Presence::OtherRun { .. } => return Verdict::None(vec![Reason::OtherRun]),
            Presence::Gone { .. } if self.noted.notes == 0 => return Verdict::None(vec![Reason::NoNotes]),
            // A cut that loses a directory looks like a hand that removes it, or a backup of before.
            Presence::Gone { what, .. } => return Verdict::None(vec![Reason::Gone(what.clone())]),
            Presence::There { missing, .. } => !missing.is_empty() && self.noted.notes > 0,
        };
        let mut reasons = Vec::new();
        // What lost nothing that was promised has lost nothing; what is a copy, or cannot be read yet, may have.
        let is_unknown_server = || opening.made.place == Place::Server(String::new()) || self.restarted().is_err();
        let is_a_copy = match self.is_elsewhere() {
            true => is_unknown_server(),
            false => opening.load.machine != self.here.machine,
        };
        let is_lost = missing || findings.losses() > 0;
        if opening.flushes_nothing() {
            reasons.push(Reason::NothingPromised);
        } else if is_lost && self.loses().is_empty() && !is_a_copy {
            return Verdict::Lost;
        }
        if is_lost && is_a_copy && self.is_elsewhere() {
            reasons.push(Reason::MayBeACopy);
        }
        if findings.unreadable > 0 {
            reasons.push(Reason::Unreadable(findings.unreadable));
        }
        let is_there = matches!(self.presence, Presence::There { .. });
        if is_there && findings.compared < self.noted.slots() {
            reasons.push(Reason::NotAllRead);
        }
        if self.noted.notes == 0 {
            reasons.push(Reason::NoNotes);
        }
        if findings.beyond > self.may_be_beyond() {
            reasons.push(Reason::NotesBehind { sessions: findings.sessions_beyond, commits: findings.beyond });
        }
        reasons.extend(self.was_cut_off().err());
        reasons.extend(self.restarted().err());
        if matches!(self.presence, Presence::There { has_ended: true, .. }) {
            reasons.push(Reason::EndedOnTarget);
        }
        let loses = self.loses();
        if !loses.is_empty() {
            reasons.push(Reason::Settings(loses));
        }
        reasons.extend(self.idle_ms().filter(|ms| *ms > MAX_IDLE_MS).map(Reason::Idle));
        if self.noted.recent < MIN_RECENT && self.noted.notes > 0 {
            reasons.push(Reason::TooFew { recent: self.noted.recent });
        }
        if reasons.is_empty() { Verdict::Kept } else { Verdict::None(reasons) }
    }

    /// Most commits of a session that the notes may lack: the one under way, and what a pipe loses, which is less than a second of them.
    fn may_be_beyond(&self) -> u64 {
        match self.noted.opened.opening.way {
            Way::Answered => 1,
            Way::OneWay => 1 + self.noted.recent / RECENT_S / self.noted.sessions.len().max(1) as u64,
        }
    }

    /// Settings by which commits may be lost, when the load began or now.
    fn loses(&self) -> Vec<String> {
        let mut loses = self.noted.opened.opening.made.loses.clone();
        if let Presence::There { loses: now, .. } = self.presence {
            loses.extend(now.iter().filter(|setting| !self.noted.opened.opening.made.loses.contains(setting)).cloned());
        }
        loses
    }

    /// For how long nothing had been noted when the load was heard last.
    fn idle_ms(&self) -> Option<u64> {
        let closing = self.noted.closing.as_ref()?;
        Some(closing.at_us.saturating_sub(self.noted.last_us) / 1_000).map(|ms| ms.saturating_sub(closing.silent_ms))
    }

    /// Whether the target is a server of others, whose machine is not the load's.
    fn is_elsewhere(&self) -> bool {
        !self.noted.opened.opening.made.is_here
    }

    /// Whether the notes end as a cut under load ends them.
    fn was_cut_off(&self) -> Result<(), Reason> {
        let Some(closing) = &self.noted.closing else { return Err(Reason::WitnessDied) };
        let is_silent = closing.silent_ms >= CUT_SILENCE_MS;
        match closing.how {
            How::Done => Err(Reason::EndedInOrder),
            How::TargetGone if self.is_elsewhere() && is_silent => Ok(()),
            How::TargetGone if self.is_elsewhere() => Err(Reason::Closed),
            How::Failed | How::TargetGone => Err(Reason::EndedByError(closing.why.clone())),
            How::Silent | How::Closed | How::Stopped if is_silent && self.is_elsewhere() => Err(Reason::LoadGone),
            How::Silent | How::Closed | How::Stopped if is_silent => Ok(()),
            How::Silent | How::Closed => Err(Reason::Closed),
            How::Stopped => Err(Reason::WitnessStopped),
        }
    }

    /// Whether the machine of the target, or the server, was started again since.
    fn restarted(&self) -> Result<(), Reason> {
        let opening = &self.noted.opened.opening;
        if self.is_elsewhere() {
            let now_s = match self.presence {
                Presence::There { started_s, .. } | Presence::Gone { started_s, .. } => *started_s,
                Presence::Elsewhere { .. } | Presence::OtherRun { .. } => None,
            };
            return match (opening.made.started_s, now_s) {
                (Some(then_s), Some(now_s)) if now_s <= then_s.saturating_add(SAME_START_S) => {
                    Err(Reason::NotRestarted)
                }
                (Some(_), Some(_)) => Ok(()),
                _ => Err(Reason::UnknownStart),
            };
        }
        let (then, now) = (&opening.load, self.here);
        if then.machine != now.machine {
            Err(Reason::OtherMachine)
        } else if then.boot.is_empty() || now.boot.is_empty() {
            Err(Reason::UnknownBoot)
        } else if then.boot == now.boot {
            Err(Reason::SameBoot)
        } else {
            Ok(())
        }
    }

    /// All of it as rows and as a document.
    pub fn sheet(&self) -> Sheet {
        let verdict = self.verdict();
        let mut sheet = Sheet::of(self.document(&verdict));
        sheet.add(
            match &verdict {
                Verdict::Kept => "kept",
                Verdict::Lost => "lost",
                Verdict::None(_) => "no verdict",
            },
            self.headline(&verdict),
        );
        if let Verdict::None(reasons) = &verdict {
            reasons.iter().for_each(|reason| sheet.add("why", reason.to_string()));
        }
        self.add_faults(&mut sheet);
        self.add_circumstances(&mut sheet, &verdict);
        sheet
    }

    fn headline(&self, verdict: &Verdict) -> String {
        let Findings { compared, kept, .. } = *self.findings;
        let notes = count(self.noted.notes);
        match (verdict, self.presence) {
            (Verdict::Lost, _) if compared == kept => {
                "what was made durable before the load is not as it was made".to_owned()
            }
            (Verdict::Lost, _) => format!(
                "{} of the {} commits that must be there are not as they were acknowledged",
                count(compared.saturating_sub(kept)),
                count(compared)
            ),
            (_, Presence::Elsewhere { .. } | Presence::OtherRun { .. } | Presence::Gone { .. }) => {
                "nothing could be compared".to_owned()
            }
            (Verdict::Kept, _) => format!(
                "every acknowledged commit that must be there is there: {} of {} noted, the last of each slot",
                count(compared),
                notes
            ),
            (Verdict::None(_), _) if self.findings.faults() == 0 => {
                format!("none is missing of {} commits that must be there, and that proves nothing", count(compared))
            }
            (Verdict::None(_), _) => format!(
                "{} of {} commits that must be there are not seen, and that proves nothing",
                count(compared.saturating_sub(kept)),
                count(compared)
            ),
        }
    }

    fn add_faults(&self, sheet: &mut Sheet) {
        let found = self.findings;
        if let Presence::There { missing, .. } = self.presence {
            missing.iter().for_each(|what| sheet.add("damaged", what.clone()));
        }
        let kinds = [
            ("missing", found.missing),
            ("torn", found.torn),
            ("foreign", found.foreign),
            ("unreadable", found.unreadable),
        ];
        if found.faults() > 0 {
            let kinds = kinds.iter().filter(|(_, many)| *many > 0);
            let words: Vec<String> = kinds.map(|(kind, many)| format!("{} {kind}", count(*many))).collect();
            let sessions = (found.sessions_with_faults, self.noted.sessions.len());
            sheet.add("faults", format!("{}, in {} of {} sessions", words.join(", "), sessions.0, sessions.1));
            if found.missing_with_replaced > found.missing {
                let all = count(found.missing_with_replaced);
                sheet.add(
                    "",
                    format!("{all} acknowledged commits left no trace, with those that later ones had replaced"),
                );
            }
        }
        if let (Some(oldest), Some(newest)) = (found.oldest_us, found.newest_us) {
            sheet.add("age", format!("acknowledged {} to {} before the last one of all", age(newest), age(oldest)));
        }
        if found.missing > 0 {
            let opening = &self.noted.opened.opening;
            sheet.add("order", order_words(found, opening.flushes_nothing()).to_owned());
        }
        for fault in &found.listed {
            sheet.add("", fault_words(fault));
        }
        let unlisted = found.faults() - found.listed.len() as u64;
        if unlisted > 0 {
            sheet.add("", format!("and {} more", count(unlisted)));
        }
    }

    fn add_circumstances(&self, sheet: &mut Sheet, verdict: &Verdict) {
        let (found, opened) = (self.findings, &self.noted.opened);
        let opening = &opened.opening;
        sheet.add("target", format!("{}, {}", crate::brief(&opening.target), crate::brief(&opening.made.words)));
        if let Some(files) = opening.files {
            sheet.add("means", format!("{} of {}", files.means.words(), Bytes(files.block_bytes.into())));
        }
        let rate = format!("{} in its last five seconds", count(self.noted.recent));
        sheet.add(
            "noted",
            format!("{} commits of {} sessions, {rate}", count(self.noted.notes), self.noted.sessions.len()),
        );
        if self.noted.notes > 0 {
            let last_ns = opened.at_wall_ns.saturating_add(self.noted.last_us.saturating_mul(1000));
            let until = format!("last commit noted at {} by the witness's clock", wall(last_ns));
            sheet.add("until", format!("{until}; compare that with the time of your cut"));
        }
        sheet.add("end", self.end_words());
        if found.under_way_whole + found.under_way_torn > 0 {
            let words = format!("{} are there whole, {} in part", found.under_way_whole, found.under_way_torn);
            sheet.add("under way", format!("of commits that were never acknowledged, {words}; that is not a fault"));
        }
        if let Some(words) = self.torn_words() {
            sheet.add("torn", words);
        }
        if opening.way == Way::OneWay && matches!(self.presence, Presence::There { .. }) {
            let beyond = format!("up to {} commits of a session are there beyond its notes", count(found.beyond));
            sheet.add("one way", format!("{beyond}; what the pipe lost is not judged"));
        }
        if self.noted.has_half_line {
            sheet.add("notes", "the last line is half a line, as a crash of the witness leaves it; it is not counted");
        }
        if *verdict == Verdict::Lost && found.out_of_order == 0 {
            sheet.add("unless", "a snapshot, a clone or a backup of before was put in its place: that looks the same");
        }
        if *verdict == Verdict::Kept {
            sheet.add("cut", self.cut_words());
            sheet.add("shows", ONE_CUT);
        }
    }

    /// Writes that a cut under load left in part: what full-page writes and the doublewrite buffer are for. None where that is unknown.
    fn torn_writes(&self) -> Option<u64> {
        self.noted.opened.opening.files?;
        let (found, torn) = (self.findings, self.seen_in_part());
        let was_idle = self.idle_ms().is_none_or(|ms| ms > MAX_IDLE_MS);
        let has_ended = matches!(self.presence, Presence::There { has_ended: true, .. });
        let was_cut = self.was_cut_off().is_ok() && self.restarted().is_ok() && !was_idle && !has_ended;
        let is_enough = self.noted.recent >= MIN_RECENT && found.compared > 0;
        (was_cut && (torn > 0 || is_enough)).then_some(torn)
    }

    fn seen_in_part(&self) -> u64 {
        u64::from(self.findings.under_way_torn + self.findings.under_way_unreadable) + self.findings.torn
    }

    fn torn_words(&self) -> Option<String> {
        let opening = &self.noted.opened.opening;
        let bytes = Bytes(opening.files?.block_bytes.into());
        let torn = self.seen_in_part();
        if torn > 0 {
            let unread = self.findings.under_way_unreadable;
            let unread = if unread > 0 { format!(", {unread} of them unreadable") } else { String::new() };
            return Some(format!(
                "{torn} writes of {bytes} are there in part{unread}: leave full-page writes or the doublewrite buffer on"
            ));
        }
        self.torn_writes()?;
        let promise = match &opening.made.whole {
            Some(words) => crate::brief(words),
            None => "nothing below states that. Leave full-page writes or the doublewrite buffer on".to_owned(),
        };
        let sessions = opening.shape.sessions;
        Some(format!("none of at most {sessions} writes of {bytes} is there in part, and {promise}"))
    }

    fn end_words(&self) -> String {
        let Some(closing) = &self.noted.closing else {
            return "the notes have no end: the witness did not live to write it".to_owned();
        };
        let silent = Nanos(closing.silent_ms.saturating_mul(1_000_000));
        match closing.how {
            How::Done => "the load said that it was over".to_owned(),
            How::Failed => format!("the load said that an error ended it: {}", closing.why),
            How::TargetGone => format!("the load said that its target was gone: {}", closing.why),
            How::Silent => format!("the load was silent for {silent}, then the witness ended"),
            How::Closed => format!("the connection or pipe was closed after {silent} of silence"),
            How::Stopped => format!("the witness was ended after {silent} of silence"),
        }
    }

    fn cut_words(&self) -> &'static str {
        if self.is_elsewhere() {
            "the server was started again; whether its power was cut, or it was shut down, cannot be seen from here"
        } else {
            "the machine was restarted after the load fell silent; a reset, or a network that broke before a clean shutdown, looks the same"
        }
    }

    fn document(&self, verdict: &Verdict) -> Value {
        let opened = &self.noted.opened;
        let reasons = match verdict {
            Verdict::None(reasons) => reasons.as_slice(),
            Verdict::Kept | Verdict::Lost => &[],
        };
        let listed: Vec<Value> = self.findings.listed.iter().map(fault_document).collect();
        let missing = match self.presence {
            Presence::There { missing, .. } => missing.as_slice(),
            _ => &[],
        };
        json!({
            "verdict": verdict.id(),
            "reasons": reasons.iter().map(|reason| json!({ "id": reason.id(), "text": reason.to_string() })).collect::<Vec<_>>(),
            "is_gone": matches!(self.presence, Presence::Gone { .. }),
            "damaged": missing,
            "found": self.findings,
            "faults": listed,
            "run": opened.opening.shape.run,
            "target": opened.opening.target,
            "kind": opened.opening.made.place.kind(),
            "words": opened.opening.made.words,
            "machine": opened.opening.load.machine,
            "files": opened.opening.files,
            "way": opened.opening.way,
            "noted": self.noted.notes,
            "noted_in_last_5_s": self.noted.recent,
            "last_noted_at_ns": opened.at_wall_ns.saturating_add(self.noted.last_us.saturating_mul(1000)),
            "closing": self.noted.closing,
            "has_half_line": self.noted.has_half_line,
            "torn": self.torn_words(),
            "torn_writes": self.torn_writes(),
        })
    }
}

fn order_words(found: &Findings, flushes_nothing: bool) -> &'static str {
    match (found.out_of_order > 0, flushes_nothing) {
        (true, true) => "broken: later commits are there and earlier ones are not. Without a flush that is allowed",
        (true, false) => {
            "broken: later commits of a session are there and earlier ones are not, so flushes were ignored"
        }
        (false, true) => "kept: only the last commits of a session are missing. Without a flush that is allowed",
        (false, false) => {
            "kept: only the last commits of a session are missing, as of a cache that was not written back"
        }
    }
}

fn fault_words(fault: &Fault) -> String {
    let place = format!("session {}, slot {}", fault.session + 1, fault.slot);
    let commit = match fault.seq {
        0 => "no commit was noted".to_owned(),
        seq => format!("commit {seq} was acknowledged"),
    };
    let what = match &fault.fate {
        Fate::Missing { stale: None } => "nothing is there".to_owned(),
        Fate::Missing { stale: Some(seq) } => format!("the older commit {seq} is there"),
        Fate::Torn(torn) => {
            let number = |seq: Option<u64>| match seq {
                None | Some(0) => "none".to_owned(),
                Some(seq) => seq.to_string(),
            };
            let (oldest, newest) = (number(torn.oldest), number(torn.newest));
            format!("it is torn: oldest part {oldest}, newest part {newest}, {} strange", torn.strange)
        }
        Fate::Foreign(owner) => format!(
            "it holds commit {} of session {}, slot {}, run {:x}",
            owner.seq,
            u64::from(owner.session) + 1,
            owner.slot,
            owner.run
        ),
        Fate::Unreadable(why) => crate::brief(why),
    };
    format!("{place}: {commit}, {what}")
}

fn fault_document(fault: &Fault) -> Value {
    let Fault { session, slot, seq, fate } = fault;
    let fate = match fate {
        Fate::Missing { stale } => json!({ "kind": "missing", "stale": stale }),
        Fate::Torn(torn) => {
            json!({ "kind": "torn", "oldest": torn.oldest, "newest": torn.newest, "strange": torn.strange })
        }
        Fate::Foreign(owner) => json!({
            "kind": "foreign", "run": owner.run, "session": owner.session, "slot": owner.slot, "seq": owner.seq,
        }),
        Fate::Unreadable(why) => json!({ "kind": "unreadable", "why": why }),
    };
    json!({ "session": session, "slot": slot, "commit": seq, "fate": fate })
}

/// The highest chance of a loss at a cut that is not excluded, with 95 % confidence, by so many cuts without one.
pub(crate) fn highest_chance(cuts: u32) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / f64::from(cuts.max(1)))
}

/// What a cut without a loss shows.
const ONE_CUT: &str = "one cut without a loss: with 95 % confidence a cut loses something in fewer than 95 % of cases. \
                       59 cuts would show less than 5 %, 299 less than 1 %: `plimsoll durable layers` counts them";

fn count(number: u64) -> String {
    group_thousands(number as f64)
}

fn age(us: u64) -> Nanos {
    Nanos(us.saturating_mul(1000))
}

fn wall(ns: u64) -> String {
    let seconds = i64::try_from(ns / 1_000_000_000).ok();
    let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "an unknown time".to_owned(), |time| time.to_string())
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
