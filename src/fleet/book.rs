//! What the meeting point knows of the parts, and what it says when: no threads, no sockets.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{FromMeeting, Introduction, Judgement, OnPartEnd, Rules, plain};

/// From the last part's word to the start: every part has to hear of it before.
pub(super) const LEAD: Duration = Duration::from_millis(250);
/// A part that says nothing for so long is gone.
pub(super) const SILENT: Duration = Duration::from_secs(10);

/// One part.
#[derive(Debug)]
struct Member {
    host: String,
    heard_ns: u64,
    /// The step that it waits at.
    waits: Option<Waits>,
    outbox: VecDeque<FromMeeting>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Waits {
    ToBegin { step: u32, label: String },
    ToHear { step: u32, judgement: Judgement },
}

/// All parts.
#[derive(Debug)]
pub(super) struct Book {
    rules: Rules,
    opened_ns: u64,
    members: BTreeMap<u32, Member>,
    /// Those that have gone, or never came.
    gone: BTreeMap<u32, String>,
    /// A step has begun: nobody can join any more.
    has_begun: bool,
    /// Why all are to end.
    stopped: Option<String>,
}

impl Book {
    pub(super) fn new(rules: Rules, now_ns: u64) -> Self {
        Self {
            rules,
            opened_ns: now_ns,
            members: BTreeMap::new(),
            gone: BTreeMap::new(),
            has_begun: false,
            stopped: None,
        }
    }

    /// A part has come. Refused with the reason where it does not belong here.
    pub(super) fn join(&mut self, who: &Introduction, now_ns: u64) -> Result<(), String> {
        let Introduction { number, parts, configuration, .. } = who;
        let host = plain(&who.host);
        if *parts != self.rules.parts {
            return Err(format!("it is part {number} of {parts}, and this experiment has {}", self.rules.parts));
        }
        if *number >= self.rules.parts {
            return Err(format!("there is no part {number} of {parts}: parts are counted from 0"));
        }
        if *configuration != self.rules.configuration {
            return Err(
                "its load is configured in another way: all parts need the same command but for --part".to_owned()
            );
        }
        if let Some(why) = &self.stopped {
            return Err(format!("the experiment has been stopped: {why}"));
        }
        if let Some(other) = self.members.get(number) {
            return Err(format!("part {number} is there already, on {}", other.host));
        }
        if self.has_begun || self.gone.contains_key(number) {
            return Err("the load has begun without it".to_owned());
        }
        let outbox = VecDeque::from([FromMeeting::Welcome { host: self.rules.host.clone() }]);
        self.members.insert(*number, Member { host, heard_ns: now_ns, waits: None, outbox });
        Ok(())
    }

    /// A part has said something.
    pub(super) fn heard(&mut self, number: u32, now_ns: u64) {
        if let Some(member) = self.members.get_mut(&number) {
            member.heard_ns = now_ns;
        }
    }

    /// A part can begin a step.
    pub(super) fn ready(&mut self, number: u32, step: u32, label: &str, now_ns: u64) {
        self.waits(number, Waits::ToBegin { step, label: plain(label) }, now_ns);
    }

    /// A part says what came of a step.
    pub(super) fn judged(&mut self, number: u32, step: u32, judgement: Judgement, now_ns: u64) {
        self.waits(number, Waits::ToHear { step, judgement }, now_ns);
    }

    fn waits(&mut self, number: u32, waits: Waits, now_ns: u64) {
        if let Some(member) = self.members.get_mut(&number) {
            member.waits = Some(waits);
            self.go_on(now_ns);
        }
    }

    /// A part has gone: `early` says why, where that was before its end.
    pub(super) fn left(&mut self, number: u32, early: Option<&str>, now_ns: u64) {
        let Some(member) = self.members.remove(&number) else { return };
        let host = member.host;
        let why = early.map(plain);
        self.gone.insert(number, why.clone().unwrap_or_default());
        // Whoever is to end is expected to go.
        let Some(why) = why.filter(|_| self.stopped.is_none()) else { return self.go_on(now_ns) };
        match self.rules.on_part_end {
            OnPartEnd::Stop => self.stop(format!("part {number} on {host}: {why}")),
            OnPartEnd::Continue => {
                self.say_to_all(&FromMeeting::Gone { number, why: format!("part {number} on {host}: {why}") });
                self.go_on(now_ns);
            }
        }
    }

    /// Looks for those who never came, and those who are silent.
    pub(super) fn look(&mut self, now_ns: u64) {
        let since = |then_ns: u64| Duration::from_nanos(now_ns.saturating_sub(then_ns));
        let silent: Vec<u32> = self
            .members
            .iter()
            .filter(|(_, member)| since(member.heard_ns) > SILENT)
            .map(|(number, _)| *number)
            .collect();
        for number in silent {
            self.left(number, Some("nothing was heard of it for 10 s"), now_ns);
        }
        if self.has_begun || self.stopped.is_some() || since(self.opened_ns) <= self.rules.patience {
            return;
        }
        let missing: Vec<u32> = self.missing().collect();
        if missing.is_empty() {
            return;
        }
        let names: Vec<String> = missing.iter().map(u32::to_string).collect();
        let patience = self.rules.patience.as_secs();
        let why = format!(
            "{} {} of {} did not come within {patience} s",
            if missing.len() == 1 { "part" } else { "parts" },
            names.join(", "),
            self.rules.parts,
        );
        match self.rules.on_part_end {
            OnPartEnd::Stop => self.stop(why),
            OnPartEnd::Continue => {
                for number in missing {
                    self.gone.insert(number, "it did not come in time".to_owned());
                    self.say_to_all(&FromMeeting::Gone {
                        number,
                        why: format!("part {number} did not come within {patience} s"),
                    });
                }
                self.go_on(now_ns);
            }
        }
    }

    /// Those that are neither here nor gone.
    fn missing(&self) -> impl Iterator<Item = u32> {
        (0..self.rules.parts).filter(|number| !self.members.contains_key(number) && !self.gone.contains_key(number))
    }

    /// Where everybody waits at the same place, says how it goes on.
    fn go_on(&mut self, now_ns: u64) {
        if self.stopped.is_some() || self.missing().next().is_some() {
            return;
        }
        let Some(waiting) = self.members.values().map(|member| member.waits.clone()).collect::<Option<Vec<_>>>() else {
            return;
        };
        let (mut begins, mut hears) = (Vec::new(), Vec::new());
        for waits in waiting {
            match waits {
                Waits::ToBegin { step, label } => begins.push((step, label)),
                Waits::ToHear { step, judgement } => hears.push((step, judgement)),
            }
        }
        let at_once = match (begins.first(), hears.first()) {
            (Some(first), None) if begins.iter().all(|other| other == first) => {
                let monotonic_ns = now_ns + LEAD.as_nanos() as u64;
                self.has_begun = true;
                FromMeeting::Begin { step: first.0, monotonic_ns }
            }
            (None, Some((step, _))) if hears.iter().all(|(other, _)| other == step) => {
                let worst = hears.iter().map(|(_, judgement)| *judgement).max();
                FromMeeting::Verdict { step: *step, judgement: worst.unwrap_or(Judgement::Unjudged) }
            }
            (None, None) => return,
            _ => {
                let places: Vec<String> = self.members.iter().map(|(number, member)| place(*number, member)).collect();
                return self.stop(format!("the parts are not at the same step: {}", places.join("; ")));
            }
        };
        self.members.values_mut().for_each(|member| member.waits = None);
        self.say_to_all(&at_once);
    }

    /// Ends the load of all.
    pub(super) fn stop(&mut self, why: String) {
        if self.stopped.is_none() {
            self.say_to_all(&FromMeeting::Stop { why: why.clone() });
            self.stopped = Some(why);
        }
    }

    fn say_to_all(&mut self, message: &FromMeeting) {
        self.members.values_mut().for_each(|member| member.outbox.push_back(message.clone()));
    }

    /// What is to be said to a part next.
    pub(super) fn take(&mut self, number: u32) -> Option<FromMeeting> {
        self.members.get_mut(&number)?.outbox.pop_front()
    }

    /// Whether a part is here.
    pub(super) fn has(&self, number: u32) -> bool {
        self.members.contains_key(&number)
    }

    /// Whether nobody is here.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// How many parts are here, in words.
    pub(super) fn here(&self) -> String {
        format!("{} of {} parts", self.members.len(), self.rules.parts)
    }
}

fn place(number: u32, member: &Member) -> String {
    match &member.waits {
        Some(Waits::ToBegin { label, .. }) => format!("part {number} on {} is to begin {label}", member.host),
        Some(Waits::ToHear { step, .. }) => format!("part {number} on {} has done step {}", member.host, step + 1),
        None => format!("part {number} on {} is at work", member.host),
    }
}
