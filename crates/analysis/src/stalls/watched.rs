//! Stalls of a live server that works for others, as looks at its sessions show them.
//!
//! Of such a server not every statement is seen, and a statement that takes long may just be a long one. One is *held up* if it takes three
//! times as long as statements of the same text usually do, or waits for a lock most of its time. What is said of a statement's length is
//! what was seen of it: it may have gone on until the next look.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::mem;
use std::sync::Arc;

use super::cause::{About, FEWEST_LOOKS, STATE_SHARE, STORAGE, Usual};
use super::servers::{ServersSeen, state_of};
use super::{Blame, CauseShare, EPISODE_TIMES, GAP_NS, StallCause};
use model::live::{LockHolder, SeenStatement, StatementLook};
use model::record::{Interval, Look, Looks, Moment, ServerStats, ServerWork, SessionState, Step};
use model::units::Nanos;

/// How far back looks and moments are kept.
const KEPT_NS: u64 = 120_000_000_000;
/// An episode that goes on for so long is said before it ends. What is held up later is of another one.
const LONG_EPISODE_NS: u64 = 10_000_000_000;
/// Two looks are so far apart: what a statement took may be longer than what was seen by as much.
const LOOK_NS: u64 = 50_000_000;
/// What is usual in looks is known from so many on.
const USUAL_LOOKS: usize = 20;
/// What statements of one text usually take is known from so many on,
const TEXT_LEAST: usize = 3;
/// and of no more than the last of them.
const TEXT_MOST: usize = 31;
/// Texts that are known, those seen last.
const MAX_TEXTS: usize = 4_096;
/// Names of what sessions do.
const MAX_NAMES: usize = 1_024;
/// Causes that are told apart.
const MAX_CAUSES: usize = 256;
/// Most of a span, or of the time of statements.
const MOST: f64 = 0.5;
/// Longest time between two looks for which sessions count as watched.
const GAP_OF_LOOKS_NS: u64 = 2_000_000_000;

/// Statements of a live server that were held up, found from looks as they come.
#[derive(Debug)]
pub struct WatchedStalls {
    slower_than_ns: u64,
    /// Whether moments are of the server's machine.
    is_here: bool,
    first_ns: Option<u64>,
    looks: VecDeque<Seen>,
    moments: VecDeque<(u64, Moment)>,
    running: HashMap<Key, Running>,
    texts: Texts,
    names: BTreeMap<Arc<str>, SessionState>,
    /// The episode that statements join.
    open: Open,
    /// Those that were said and go on, by their number.
    said: BTreeMap<u64, Said>,
    next_said: u64,
    /// Spans of episodes that ended.
    ended: VecDeque<(u64, u64)>,
    sum: Sum,
}

/// Number of no episode.
const PASSED_OVER: u64 = u64::MAX;

/// A statement: its session, and what tells it from others of it.
type Key = (u64, u64);

/// One look, of which all is kept that causes need.
#[derive(Debug)]
struct Seen {
    at_ns: u64,
    took_us: u64,
    sessions: Vec<(u64, Arc<str>)>,
    holders: Vec<LockHolder>,
    work: Option<BTreeMap<ServerWork, u32>>,
}

/// A statement that was seen and may go on.
#[derive(Debug)]
struct Running {
    member: Member,
    text: u64,
    /// Its age when it was seen first, and when that was.
    first: (u64, u64),
    is_held_up: bool,
    /// The episode that was said of it; [`PASSED_OVER`] where it has gone on for long alone.
    said: Option<u64>,
}

/// What was seen of a statement.
#[derive(Debug, Clone)]
struct Member {
    session: u64,
    from_ns: u64,
    /// The last look that showed it.
    until_ns: u64,
    age_ns: u64,
    /// Looks that say whether it waited for a lock, and those that found it waiting for one.
    looks: u32,
    locked: u32,
    /// Who held the lock, when it was asked last.
    holder: Option<(Option<u64>, String)>,
}

/// Statements of an episode that ended, and when the server did not answer us.
#[derive(Debug, Default)]
struct Open {
    members: Vec<Member>,
    silences: Vec<(u64, u64)>,
}

/// An episode that was said before its end.
#[derive(Debug)]
struct Said {
    episode: WatchedEpisode,
    /// Statements of it that go on.
    running: usize,
}

#[derive(Debug, Default)]
struct Sum {
    watched_ns: u64,
    /// When the server answered last.
    last_ns: Option<u64>,
    episodes: usize,
    statements: u64,
    took_ns: u64,
    /// Statements that took long and were not held up as far as is known.
    long: u64,
    causes: Vec<(CauseShare, u64)>,
}

/// Statements that were held up together.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct WatchedEpisode {
    /// When the first of them began, or watching, on the kernel's monotonic clock.
    #[serde(skip)]
    pub from_ns: u64,
    /// From there until the last one was seen last.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// How many statements; 0 where only the server's silence was seen.
    pub statements: u64,
    /// How many sessions.
    pub sessions: usize,
    /// The age of the oldest when it was seen last, by the server's clock.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// What they took together while they were watched; without a statement, how long the server was silent.
    #[serde(rename = "took_ns")]
    pub took: Nanos,
    /// Whether it still went on. Then it is said once more when it ends.
    pub goes_on: bool,
    /// Why; absent where it is unexplained.
    pub blame: Option<Blame>,
}

/// All episodes of a time.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct WatchedSum {
    /// Time in which the sessions were looked at.
    #[serde(rename = "watched_ns")]
    pub watched: Nanos,
    /// What took longer could be held up.
    #[serde(rename = "slower_than_ns")]
    pub slower_than: Nanos,
    /// How many episodes.
    pub episodes: usize,
    /// Statements in them.
    pub statements: u64,
    /// What these took together.
    #[serde(rename = "took_ns")]
    pub took: Nanos,
    /// Causes by their share of that time, the largest first.
    pub causes: Vec<CauseShare>,
    /// Statements that took longer as well, and usually do, or of which it is not known what they usually take.
    pub long_statements: u64,
}

/// What statements of each text take, as far as they were seen.
#[derive(Debug, Default)]
struct Texts {
    texts: HashMap<u64, (u64, VecDeque<u64>)>,
    /// How many statements ended: the age of what is known.
    count: u64,
}

impl Texts {
    fn learn(&mut self, text: u64, took_ns: u64) {
        self.count += 1;
        let (last, took) = self.texts.entry(text).or_default();
        *last = self.count;
        if took.len() == TEXT_MOST {
            took.pop_front();
        }
        took.push_back(took_ns);
        if self.texts.len() > MAX_TEXTS {
            let mut ages: Vec<u64> = self.texts.values().map(|(last, _)| *last).collect();
            ages.sort_unstable();
            let oldest = ages[ages.len() / 4];
            self.texts.retain(|_, (last, _)| *last > oldest);
        }
    }

    /// What a statement of this text takes at most, usually. Short ones are seen less often than long ones, so that it is rather too much.
    fn usual_ns(&self, text: u64) -> Option<u64> {
        let (_, took) = self.texts.get(&text).filter(|(_, took)| took.len() >= TEXT_LEAST)?;
        let mut sorted: Vec<u64> = took.iter().copied().collect();
        sorted.sort_unstable();
        Some(sorted[sorted.len() / 2].saturating_add(LOOK_NS))
    }
}

impl Member {
    /// It was found in a lock in most looks, and in more than one.
    fn is_locked(&self) -> bool {
        self.locked >= 2 && self.locked.saturating_mul(2) >= self.looks
    }

    /// How long it was watched.
    fn took_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }
}

impl Said {
    /// Adds what a statement of it has taken.
    fn add(&mut self, member: &Member) {
        let episode = &mut self.episode;
        episode.length = Nanos(episode.length.0.max(member.until_ns.saturating_sub(episode.from_ns)));
        episode.longest = episode.longest.max(Nanos(member.age_ns));
        episode.took = Nanos(episode.took.0.saturating_add(member.took_ns()));
    }
}

impl WatchedStalls {
    /// Of statements that take longer than this. `is_here` says that the server runs on the machine whose moments are given.
    pub fn new(slower_than: Nanos, is_here: bool) -> Self {
        Self {
            slower_than_ns: slower_than.0,
            is_here,
            first_ns: None,
            looks: VecDeque::new(),
            moments: VecDeque::new(),
            running: HashMap::new(),
            texts: Texts::default(),
            names: BTreeMap::new(),
            open: Open::default(),
            said: BTreeMap::new(),
            next_said: 0,
            ended: VecDeque::new(),
            sum: Sum::default(),
        }
    }

    /// What the system did from an instant of the monotonic clock on. `moment` is of this process too: what is only of it is left out.
    pub fn moment(&mut self, begin_ns: u64, moment: Moment) {
        let Moment { length_us, overslept_us, .. } = moment;
        let kept = if self.is_here {
            Moment { waited_us: None, throttled_us: None, retransmitted: None, others_bytes: None, ..moment }
        } else {
            Moment { length_us, overslept_us, ..Moment::default() }
        };
        self.moments.push_back((begin_ns, kept));
        while self.moments.front().is_some_and(|(at_ns, _)| at_ns.saturating_add(KEPT_NS) < begin_ns) {
            self.moments.pop_front();
        }
    }

    /// Adds a look. Gives episodes that have ended, or that have gone on for long.
    pub fn look(&mut self, look: &StatementLook) -> Vec<WatchedEpisode> {
        let took_ns = look.answered_ns.saturating_sub(look.asked_ns);
        let took_us = took_ns / 1_000;
        let is_late = took_us > Look::LATE_US;
        // What a late answer shows was so at some instant before it.
        let at_ns = if is_late { look.answered_ns } else { look.asked_ns.midpoint(look.answered_ns) };
        self.first_ns.get_or_insert(look.asked_ns);
        self.watched(look.asked_ns, look.answered_ns);
        let is_silent = is_late && self.is_longer_than_usual(took_us);
        let (ended, is_held_up) = self.learn(look, at_ns, took_ns);
        let sessions = look.statements.iter().map(|one| (one.session, self.name(one))).collect();
        self.keep(Seen {
            at_ns: look.asked_ns.midpoint(look.answered_ns),
            took_us,
            sessions,
            holders: look.holders.clone(),
            work: look.work.clone(),
        });
        if is_silent {
            self.was_silent(look.asked_ns, look.answered_ns);
        }
        let mut found = ended;
        found.extend(self.close(at_ns, is_held_up));
        found
    }

    /// The server answered nothing between these instants, and the connection is given up.
    pub fn silence(&mut self, asked_ns: u64, until_ns: u64) {
        let took_us = until_ns.saturating_sub(asked_ns) / 1_000;
        if self.first_ns.is_none() || took_us <= Look::LATE_US {
            return;
        }
        self.watched(asked_ns, until_ns);
        let (sessions, holders) = (Vec::new(), Vec::new());
        self.keep(Seen { at_ns: asked_ns.midpoint(until_ns), took_us, sessions, holders, work: None });
        self.was_silent(asked_ns, until_ns);
    }

    /// Counts the time of a question, and that since the last answer if it is not too long.
    fn watched(&mut self, asked_ns: u64, until_ns: u64) {
        let from_ns = match self.sum.last_ns {
            Some(last_ns) if asked_ns.saturating_sub(last_ns) <= GAP_OF_LOOKS_NS => last_ns,
            _ => asked_ns,
        };
        self.sum.watched_ns = self.sum.watched_ns.saturating_add(until_ns.saturating_sub(from_ns));
        self.sum.last_ns = Some(until_ns);
    }

    fn was_silent(&mut self, asked_ns: u64, until_ns: u64) {
        let is_long = until_ns.saturating_sub(asked_ns) >= self.slower_than_ns;
        if is_long && !self.did_not_run((asked_ns, until_ns)) {
            self.open.silences.push((asked_ns, until_ns));
        }
    }

    fn keep(&mut self, seen: Seen) {
        let least_ns = seen.at_ns.saturating_sub(KEPT_NS);
        self.looks.push_back(seen);
        while self.looks.front().is_some_and(|seen| seen.at_ns < least_ns) {
            self.looks.pop_front();
        }
        while self.ended.front().is_some_and(|(_, until_ns)| *until_ns < least_ns) {
            self.ended.pop_front();
        }
    }

    /// The episodes that go on at this instant.
    pub fn finish(&mut self, now_ns: u64) -> Vec<WatchedEpisode> {
        let open = mem::take(&mut self.open);
        let mut found: Vec<WatchedEpisode> =
            self.judge(&open, now_ns).into_iter().map(|(episode, _)| episode).collect();
        for one in self.running.values() {
            if let Some(said) = one.said.and_then(|number| self.said.get_mut(&number)) {
                said.add(&one.member);
            }
        }
        found.extend(mem::take(&mut self.said).into_values().map(|said| said.episode));
        found.iter().for_each(|episode| self.add(episode));
        found
    }

    /// The sum of all episodes that were given and have ended. One that goes on counts after [`finish`](Self::finish).
    pub fn sum(&self) -> WatchedSum {
        let all = self.sum.took_ns.max(1) as f64;
        let of_all =
            |(share, took_ns): &(CauseShare, u64)| CauseShare { share: *took_ns as f64 / all, ..share.clone() };
        let mut causes: Vec<CauseShare> = self.sum.causes.iter().map(of_all).collect();
        causes.sort_by(|one, other| other.share.total_cmp(&one.share));
        WatchedSum {
            watched: Nanos(self.sum.watched_ns),
            slower_than: Nanos(self.slower_than_ns),
            episodes: self.sum.episodes,
            statements: self.sum.statements,
            took: Nanos(self.sum.took_ns),
            causes,
            long_statements: self.sum.long,
        }
    }

    /// Whether sessions were looked at at all.
    pub fn has_looked(&self) -> bool {
        self.first_ns.is_some()
    }

    /// Whether a look took far longer than others.
    fn is_longer_than_usual(&self, took_us: u64) -> bool {
        let mut all: Vec<u64> = self.looks.iter().rev().take(200).map(|seen| seen.took_us).collect();
        all.sort_unstable();
        all.get(all.len() / 2).is_some_and(|median| took_us >= median.saturating_mul(4))
    }

    /// Whether this program did not run for most of a span, as its late awakening shows.
    fn did_not_run(&self, (from_ns, until_ns): (u64, u64)) -> bool {
        let ends_ns = |(at_ns, moment): &(u64, Moment)| at_ns.saturating_add(moment.length_us.saturating_mul(1_000));
        let touching = self.moments.iter().filter(|one| one.0 < until_ns && ends_ns(one) > from_ns);
        let overslept_us = touching.fold(0, |sum: u64, (_, moment)| sum.saturating_add(moment.overslept_us));
        overslept_us as f64 * 1e3 >= MOST * until_ns.saturating_sub(from_ns) as f64
    }

    fn name(&mut self, statement: &SeenStatement) -> Arc<str> {
        if let Some((name, _)) = self.names.get_key_value(statement.doing.as_str()) {
            return Arc::clone(name);
        }
        let name: Arc<str> = statement.doing.as_str().into();
        if self.names.len() < MAX_NAMES {
            self.names.insert(Arc::clone(&name), statement.state);
        }
        name
    }

    /// Takes over which statements go on. Gives episodes that were said and have ended, and whether one goes on that was not.
    fn learn(&mut self, look: &StatementLook, at_ns: u64, took_ns: u64) -> (Vec<WatchedEpisode>, bool) {
        let Self { running, texts, slower_than_ns, first_ns, .. } = self;
        let first_ns = first_ns.unwrap_or_default();
        for statement in &look.statements {
            let SeenStatement { session, begun, age, in_lock, text, .. } = statement;
            let one = running.entry((*session, *begun)).or_insert_with(|| {
                let from_ns = at_ns.saturating_sub(age.0).max(first_ns);
                let (until_ns, age_ns, looks, locked, holder) = (at_ns, 0, 0, 0, None);
                let member = Member { session: *session, from_ns, until_ns, age_ns, looks, locked, holder };
                Running { member, text: *text, first: (age.0, at_ns), is_held_up: false, said: None }
            });
            // The server's clock may be set meanwhile.
            let (first_age_ns, first_at_ns) = one.first;
            let most_ns = first_age_ns.saturating_add(at_ns.saturating_sub(first_at_ns));
            let member = &mut one.member;
            member.age_ns = member.age_ns.max(age.0.min(most_ns.saturating_add(LOOK_NS + took_ns)));
            member.until_ns = at_ns;
            member.looks = member.looks.saturating_add(u32::from(in_lock.is_some()));
            member.locked = member.locked.saturating_add(u32::from(*in_lock == Some(true)));
            if let Some(held) = look.holders.iter().find(|held| held.waiter == *session) {
                member.holder = Some((held.session, held.who.clone()));
            }
            let age_ns = member.age_ns;
            let is_unusual =
                || texts.usual_ns(*text).is_some_and(|usual| age_ns >= usual.saturating_mul(EPISODE_TIMES));
            one.is_held_up |= age_ns >= *slower_than_ns && (one.member.is_locked() || is_unusual());
        }
        let there: HashSet<Key> = look.statements.iter().map(|one| (one.session, one.begun)).collect();
        let gone: Vec<Key> = running.keys().filter(|key| !there.contains(*key)).copied().collect();
        let mut ended = Vec::new();
        for key in gone {
            let Some(one) = self.running.remove(&key) else { continue };
            if !one.is_held_up {
                // What was held up says nothing of what is usual.
                self.texts.learn(one.text, one.member.age_ns);
                self.sum.long += u64::from(one.member.age_ns >= self.slower_than_ns);
            } else if one.said == Some(PASSED_OVER) {
                self.sum.long += 1;
            } else if let Some(number) = one.said {
                ended.extend(self.end_of_said(number, &one.member));
            } else {
                // No more than fit into the time until the episode is said.
                self.open.members.push(one.member);
            }
        }
        (ended, self.running.values().any(|one| one.is_held_up && one.said.is_none()))
    }

    /// A statement of an episode that was said has ended. Gives the episode if it was the last one.
    fn end_of_said(&mut self, number: u64, member: &Member) -> Option<WatchedEpisode> {
        let said = self.said.get_mut(&number)?;
        said.running = said.running.saturating_sub(1);
        said.add(member);
        if said.running > 0 {
            return None;
        }
        let Said { mut episode, .. } = self.said.remove(&number)?;
        episode.goes_on = false;
        self.add(&episode);
        Some(episode)
    }

    /// Ends the open episode if nothing of it is held up any more, or may still turn out to be; says it if it has gone on for long.
    fn close(&mut self, at_ns: u64, is_held_up: bool) -> Vec<WatchedEpisode> {
        let Open { members, silences } = &self.open;
        if members.is_empty() && silences.is_empty() && !is_held_up {
            return Vec::new();
        }
        let of_open = || self.running.values().filter(|one| one.is_held_up && one.said.is_none());
        let ends = members.iter().map(|one| one.until_ns).chain(silences.iter().map(|silence| silence.1));
        let until_ns = ends.max().unwrap_or_default();
        let may_join = |one: &Running| {
            !one.is_held_up
                && one.member.age_ns < self.slower_than_ns
                && one.member.from_ns <= until_ns.saturating_add(GAP_NS)
        };
        let begins = members.iter().map(|one| one.from_ns).chain(silences.iter().map(|silence| silence.0));
        let from_ns = begins.chain(of_open().map(|one| one.member.from_ns)).min().unwrap_or(at_ns);
        let is_over = !is_held_up && !self.running.values().any(may_join);
        if !is_over && at_ns.saturating_sub(from_ns) < LONG_EPISODE_NS {
            return Vec::new();
        }
        let open = mem::take(&mut self.open);
        let mut found = Vec::new();
        for (episode, keys) in self.judge(&open, at_ns) {
            if episode.goes_on {
                for key in &keys {
                    self.running.entry(*key).and_modify(|one| one.said = Some(self.next_said));
                }
                // What they take is added when they end.
                let running_ns = keys.iter().filter_map(|key| self.running.get(key)).map(|one| one.member.took_ns());
                let took = Nanos(episode.took.0.saturating_sub(running_ns.sum()));
                let kept = WatchedEpisode { took, ..episode.clone() };
                self.said.insert(self.next_said, Said { episode: kept, running: keys.len() });
                self.next_said += 1;
            } else {
                self.add(&episode);
            }
            found.push(episode);
        }
        found
    }

    /// The episodes that an open one consists of, each with the statements of it that go on: those that waited for locks of one session, those
    /// that waited for locks of others, and the rest. One session alone that waited for no lock has a long statement rather than a stall.
    fn judge(&mut self, open: &Open, at_ns: u64) -> Vec<(WatchedEpisode, Vec<Key>)> {
        let running = self.running.iter().filter(|(_, one)| one.is_held_up && one.said.is_none());
        let running = running.map(|(key, one)| (Some(*key), one.member.clone()));
        let all: Vec<(Option<Key>, Member)> =
            running.chain(open.members.iter().map(|member| (None, member.clone()))).collect();
        // One that is held up by something else than a lock is not the cause of anything.
        let is_held_up = |session: Option<u64>, waiter: &Member| {
            let of = |one: &Member| Some(one.session) == session && !one.is_locked();
            let overlaps = |one: &Member| one.from_ns < waiter.until_ns && one.until_ns > waiter.from_ns;
            all.iter().any(|(_, one)| of(one) && overlaps(one))
        };
        let mut groups: BTreeMap<Group, Vec<(Option<Key>, Member)>> = BTreeMap::new();
        for (key, member) in &all {
            let group = match &member.holder {
                _ if !member.is_locked() => Group::NoLock,
                Some((session, _)) if is_held_up(*session, member) => Group::NoLock,
                Some((_, who)) => Group::Lock(who.clone()),
                None => Group::UnknownLock,
            };
            groups.entry(group).or_default().push((*key, member.clone()));
        }
        // They wait for one of those that wait for the only holder there is.
        if groups.keys().filter(|group| matches!(group, Group::Lock(_))).count() == 1
            && let Some(unknown) = groups.remove(&Group::UnknownLock)
            && let Some(members) = groups.values_mut().next()
        {
            members.extend(unknown);
        }
        if !open.silences.is_empty() {
            groups.entry(Group::NoLock).or_default();
        }
        let mut found = Vec::new();
        for (group, members) in groups {
            let keys: Vec<Key> = members.iter().filter_map(|(key, _)| *key).collect();
            let members: Vec<Member> = members.into_iter().map(|(_, member)| member).collect();
            let silences = if group == Group::NoLock { &open.silences[..] } else { &[] };
            let is_alone = members.iter().map(|one| one.session).collect::<BTreeSet<_>>().len() < 2;
            let is_silence = |found: &(WatchedEpisode, Vec<Key>)| {
                found.0.blame.as_ref().is_some_and(|blame| blame.cause == StallCause::ServerSilent)
            };
            // It is said with the statements that it held up.
            if members.is_empty() && found.iter().any(is_silence) {
                continue;
            }
            if is_alone && group == Group::NoLock && silences.is_empty() {
                self.sum.long += members.len() as u64 - keys.len() as u64;
                for key in keys {
                    self.running.entry(key).and_modify(|one| one.said = Some(PASSED_OVER));
                }
                continue;
            }
            found.extend(self.found(&group, &members, silences, (at_ns, !keys.is_empty())).map(|found| (found, keys)));
        }
        found
    }

    /// What these statements are together.
    fn found(
        &self,
        group: &Group,
        members: &[Member],
        silences: &[(u64, u64)],
        (at_ns, goes_on): (u64, bool),
    ) -> Option<WatchedEpisode> {
        let spans = members.iter().map(|one| (one.from_ns, one.until_ns)).chain(silences.iter().copied());
        let (from_ns, until_ns) = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
        let longest = members.iter().max_by_key(|one| one.took_ns());
        let silence = silences.iter().copied().max_by_key(|(from_ns, until_ns)| until_ns - from_ns);
        let span = longest.map(|one| (one.from_ns, one.until_ns)).or(silence)?;
        let span = (span.0.max(at_ns.saturating_sub(KEPT_NS)), span.1);
        let blame = (span.0 < span.1).then(|| self.blame(group, from_ns, span, members)).flatten();
        let sessions: BTreeSet<u64> = members.iter().map(|one| one.session).collect();
        Some(WatchedEpisode {
            from_ns,
            length: Nanos(until_ns.saturating_sub(from_ns)),
            statements: members.len() as u64,
            sessions: sessions.len(),
            longest: Nanos(members.iter().map(|one| one.age_ns).max().unwrap_or_default()),
            took: Nanos(match members.len() {
                0 => silences.iter().fold(0, |sum: u64, one| sum.saturating_add(one.1 - one.0)),
                _ => members.iter().fold(0, |sum: u64, one| sum.saturating_add(one.took_ns())),
            }),
            goes_on,
            blame,
        })
    }

    /// Counts an episode for good.
    fn add(&mut self, found: &WatchedEpisode) {
        self.ended.push_back((found.from_ns, found.from_ns.saturating_add(found.length.0)));
        let sum = &mut self.sum;
        sum.episodes += 1;
        sum.statements += found.statements;
        sum.took_ns = sum.took_ns.saturating_add(found.took.0);
        let mut cause = found.blame.as_ref().map(|blame| blame.cause.clone());
        if sum.causes.len() >= MAX_CAUSES && sum.causes.iter().all(|(share, _)| share.cause != cause) {
            cause = Some(StallCause::HeldLock("others, too many to tell apart".to_owned()))
                .filter(|_| matches!(cause, Some(StallCause::HeldLock(_))));
        }
        let place = sum.causes.iter().position(|(share, _)| share.cause == cause).unwrap_or_else(|| {
            let (length, longest) = (Nanos(0), Nanos(0));
            sum.causes.push((CauseShare { cause, share: 0.0, episodes: 0, length, longest }, 0));
            sum.causes.len() - 1
        });
        let (share, took_ns) = &mut sum.causes[place];
        *took_ns = took_ns.saturating_add(found.took.0);
        share.episodes += 1;
        share.length = Nanos(share.length.0.saturating_add(found.length.0));
        share.longest = share.longest.max(found.length);
    }

    /// Why these statements were held up in a span of an episode that began at `begun_ns`.
    fn blame(&self, group: &Group, begun_ns: u64, span: (u64, u64), members: &[Member]) -> Option<Blame> {
        // Who did not look cannot tell.
        if self.did_not_run(span) {
            return None;
        }
        let sessions: BTreeSet<u64> = members.iter().map(|one| one.session).collect();
        let moments: Vec<(u64, Moment)> = self.moments.iter().copied().collect();
        let step = self.step(&sessions, members);
        let servers = ServersSeen::of(&step);
        let average = servers.during(span).pop()?;
        let found = |states: &[SessionState]| servers.found(&average, states);
        let is_seen = average.covered_ns as f64 >= MOST * (span.1 - span.0) as f64;
        if let Some(percent) = locked_percent(members).filter(|_| is_seen) {
            let of = |by: &str| {
                let count = match members.len() {
                    1 => "one statement".to_owned(),
                    count => format!("{count} statements"),
                };
                format!("{count} waited for a lock for {percent} % of the time; {by}")
            };
            match (group, found(&[SessionState::Lock])) {
                (Group::Lock(by), _) => {
                    let evidence = of(&format!("{} held it", holder(members, by)));
                    return Some(Blame { cause: StallCause::HeldLock(by.clone()), evidence });
                }
                (Group::UnknownLock, Some(found)) => {
                    let evidence = of("who held it was not seen");
                    return Some(Blame { cause: StallCause::Wait(found.event.to_owned()), evidence });
                }
                // It matters what holds up the one that holds it.
                _ => {}
            }
        }
        let is_quiet = |at_ns: u64| {
            let of = |(from_ns, until_ns): &(u64, u64)| (*from_ns..*until_ns).contains(&at_ns);
            at_ns < begun_ns && !self.ended.iter().any(of)
        };
        let quiet = moments.iter().filter(|(at_ns, _)| is_quiet(*at_ns)).map(|(_, moment)| moment);
        let usual = Usual::of(quiet);
        let usual_looks = servers.over(|at_ns, for_ns| if is_quiet(at_ns) { for_ns } else { 0 });
        if usual_looks.first().is_none_or(|usual| usual.looks < USUAL_LOOKS) {
            return None;
        }
        let about = About::new((&usual, usual_looks), (false, false), (&step, &servers));
        let blame = about.blame(span, sessions.len(), &moments)?;
        let in_storage = found(&STORAGE).map_or(0.0, |found| found.sessions);
        let fits = match &blame.cause {
            // The device is not what statements wait for that wait for nothing.
            StallCause::DeviceSlow | StallCause::Writes | StallCause::Neighbour | StallCause::BeforeDevice => {
                in_storage >= STATE_SHARE * sessions.len() as f64
            }
            StallCause::DeviceSilent => in_storage > 0.0,
            // Who holds the lock is held up as well, and it is not known by what.
            StallCause::HeldLock(_) => false,
            _ => true,
        };
        fits.then_some(blame)
    }

    /// A step that has the looks that are kept, at these sessions alone.
    fn step(&self, sessions: &BTreeSet<u64>, members: &[Member]) -> Step {
        let look = |seen: &Seen| {
            let mut look = Look { took_us: seen.took_us, ..Look::default() };
            if look.is_late() {
                return (seen.at_ns, look);
            }
            for (_, doing) in seen.sessions.iter().filter(|(session, _)| sessions.contains(session)) {
                *look.sessions.entry(doing.to_string()).or_default() += 1;
            }
            for held in seen.holders.iter().filter(|held| sessions.contains(&held.waiter)) {
                let of = |one: &Member| Some(one.session) == held.session && !one.is_locked();
                let covers = |one: &Member| (one.from_ns..=one.until_ns).contains(&seen.at_ns);
                let is_held_up = members.iter().any(|one| of(one) && covers(one));
                let by = if is_held_up { Look::OWN } else { &held.who };
                *look.blockers.entry(by.to_owned()).or_default() += 1;
            }
            look.work.clone_from(&seen.work);
            (seen.at_ns, look)
        };
        let looks: Vec<(u64, Look)> = self.looks.iter().map(look).collect();
        let states = self.names.iter().map(|(name, state)| (name.to_string(), state_of(name, *state)));
        let server = ServerStats { session_states: states.collect(), ..ServerStats::default() };
        let interval = Interval { looks: vec![Looks::of("server", &looks)], ..Interval::default() };
        let mut step = Step { intervals: vec![interval], servers: vec![server], ..Step::new(0, "") };
        step.window.duration_ns = u64::MAX;
        step
    }
}

/// Statements that belong together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// They waited for locks that sessions of this name held.
    Lock(String),
    /// They waited for locks; of whom was not seen.
    UnknownLock,
    /// They waited for something else, or for a session that did.
    NoLock,
}

/// What is known of the sessions of this name that held locks.
fn holder(members: &[Member], by: &str) -> String {
    let sessions = members.iter().filter_map(|one| one.holder.as_ref()).filter(|(_, who)| who == by);
    let sessions: BTreeSet<Option<u64>> = sessions.map(|(session, _)| *session).collect();
    match (sessions.len(), sessions.first()) {
        (1, Some(Some(session))) => format!("session {session} ({by})"),
        (0 | 1, _) => by.to_owned(),
        (count, _) => format!("{count} sessions ({by})"),
    }
}

/// For which share of looks statements waited for locks, if that is most of them.
fn locked_percent(members: &[Member]) -> Option<f64> {
    let sum = |of: fn(&Member) -> u32| members.iter().map(|one| f64::from(of(one))).sum::<f64>();
    let (looks, locked) = (sum(|one| one.looks), sum(|one| one.locked));
    (looks >= FEWEST_LOOKS as f64 && locked >= MOST * looks).then(|| (locked / looks * 100.0).round())
}

#[cfg(test)]
#[path = "watched_tests.rs"]
mod tests;
