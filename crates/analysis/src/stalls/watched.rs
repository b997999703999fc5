//! Stalls of a live server that works for others, as looks at its sessions show them.
//!
//! Of such a server not every statement is seen, and a statement that takes long may just be a long one. One is *held up* if it takes three
//! times as long as statements of the same text usually do, or waits for a lock most of its time. What is said of a statement's length is
//! what was seen of it: it may have gone on until the next look.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::cause::{About, FEWEST_LOOKS, STATE_SHARE, STORAGE, Usual};
use super::servers::{ServersSeen, state_of};
use super::{Blame, CauseShare, EPISODE_TIMES, GAP_NS, StallCause};
use model::live::{LockHolder, SeenStatement, StatementLook};
use model::record::{Interval, Look, Looks, Moment, ServerStats, ServerWork, SessionState, Step};
use model::units::Nanos;

/// How far back looks and moments are kept. Of an episode that goes on longer, the last part is judged.
const KEPT_NS: u64 = 120_000_000_000;
/// An episode that goes on for so long is said before it ends.
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
/// Statements of an episode that are kept one by one.
const MAX_MEMBERS: usize = 10_000;
/// Names of what sessions do.
const MAX_NAMES: usize = 1_024;
/// Causes that are told apart.
const MAX_CAUSES: usize = 256;
/// Most of a span, or of the time of statements.
const MOST: f64 = 0.5;
/// Locks that programs take on purpose, to wait for work: a wait for one alone does not make a stall.
const ADVISORY: &str = "advisory";

/// Statements of a live server that were held up, found from looks as they come.
#[derive(Debug)]
pub struct WatchedStalls {
    slower_than_ns: u64,
    /// Whether moments are of the server's machine.
    is_here: bool,
    first_ns: Option<u64>,
    looks: VecDeque<Seen>,
    moments: VecDeque<(u64, Moment)>,
    running: HashMap<(u64, u64), Running>,
    texts: Texts,
    names: BTreeMap<Arc<str>, SessionState>,
    episode: Option<Open>,
    /// Spans of episodes that ended.
    ended: VecDeque<(u64, u64)>,
    sum: Sum,
}

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
    due_ns: u64,
    /// The last look that showed it.
    last_ns: u64,
    age_ns: u64,
    looks: u32,
    /// How many of these found it waiting for a lock.
    locked: u32,
    text: u64,
    is_held_up: bool,
}

/// A statement that was held up.
#[derive(Debug, Clone, Copy)]
struct Member {
    session: u64,
    from_ns: u64,
    until_ns: u64,
    took_ns: u64,
    looks: u32,
    locked: u32,
}

/// An episode that goes on.
#[derive(Debug, Default)]
struct Open {
    /// Those that ended, but for so many that took so long together and until then.
    members: Vec<Member>,
    more: (u64, u64, u64),
    /// Since when the server did not answer us, and until when.
    silent: Option<(u64, u64)>,
    /// Whether any of them waited for a lock most of its time.
    has_lock: bool,
    /// What it was blamed on when it was said before its end.
    said: Option<Option<Blame>>,
}

#[derive(Debug, Default)]
struct Sum {
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
    /// When the first of them began, on the kernel's monotonic clock.
    #[serde(skip)]
    pub from_ns: u64,
    /// From there until the last one was seen last.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// How many statements; 0 where only the server's silence was seen.
    pub statements: u64,
    /// How many sessions.
    pub sessions: usize,
    /// What the longest took, as far as it was seen.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// What they took together; without a statement, how long the server was silent.
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
    /// From the first look to the last.
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

impl Running {
    fn new(statement: &SeenStatement, at_ns: u64) -> Self {
        let due_ns = at_ns.saturating_sub(statement.age.0);
        let (last_ns, age_ns, text) = (at_ns, 0, statement.text);
        Self { due_ns, last_ns, age_ns, looks: 0, locked: 0, text, is_held_up: false }
    }

    fn member(&self, session: u64) -> Member {
        let Self { due_ns: from_ns, last_ns: until_ns, age_ns: took_ns, looks, locked, .. } = *self;
        Member { session, from_ns, until_ns, took_ns, looks, locked }
    }

    /// It was found in a lock in most looks, and in more than one.
    fn is_locked(&self) -> bool {
        self.locked >= 2 && self.locked.saturating_mul(2) >= self.looks
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
            episode: None,
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

    /// Adds a look. Gives an episode that has ended, or that has gone on for long.
    pub fn look(&mut self, look: &StatementLook) -> Option<WatchedEpisode> {
        let took_us = look.answered_ns.saturating_sub(look.asked_ns) / 1_000;
        let is_late = took_us > Look::LATE_US;
        // What a late answer shows was so at some instant before it.
        let at_ns = if is_late { look.answered_ns } else { look.asked_ns.midpoint(look.answered_ns) };
        self.first_ns.get_or_insert(look.asked_ns);
        let is_silent =
            is_late && self.is_longer_than_usual(took_us) && !self.did_not_run((look.asked_ns, look.answered_ns));
        self.learn(look, at_ns);
        let seen = Seen {
            at_ns: look.asked_ns.midpoint(look.answered_ns),
            took_us,
            sessions: look.statements.iter().map(|one| (one.session, self.name(one))).collect(),
            holders: look.holders.clone(),
            work: look.work.clone(),
        };
        self.looks.push_back(seen);
        while self.looks.front().is_some_and(|seen| seen.at_ns.saturating_add(KEPT_NS) < at_ns) {
            self.looks.pop_front();
        }
        while self.ended.front().is_some_and(|(_, until_ns)| until_ns.saturating_add(KEPT_NS) < at_ns) {
            self.ended.pop_front();
        }
        if is_silent && took_us.saturating_mul(1_000) >= self.slower_than_ns {
            let silent = &mut self.episode.get_or_insert_default().silent;
            let from_ns = silent.map_or(look.asked_ns, |(from_ns, _)| from_ns);
            *silent = Some((from_ns, look.answered_ns));
        }
        self.close(at_ns)
    }

    /// The episode that goes on at this instant, if one does.
    pub fn finish(&mut self, now_ns: u64) -> Option<WatchedEpisode> {
        let episode = self.episode.take()?;
        let goes_on = self.running.values().any(|running| running.is_held_up);
        self.judge(episode, now_ns, goes_on)
    }

    /// The sum of all episodes that were given. One that goes on counts after [`finish`](Self::finish).
    pub fn sum(&self) -> WatchedSum {
        let last_ns = self.looks.back().map(|seen| seen.at_ns);
        let all = self.sum.took_ns.max(1) as f64;
        let of_all =
            |(share, took_ns): &(CauseShare, u64)| CauseShare { share: *took_ns as f64 / all, ..share.clone() };
        let mut causes: Vec<CauseShare> = self.sum.causes.iter().map(of_all).collect();
        causes.sort_by(|one, other| other.share.total_cmp(&one.share));
        WatchedSum {
            watched: Nanos(self.first_ns.zip(last_ns).map_or(0, |(first, last)| last.saturating_sub(first))),
            slower_than: Nanos(self.slower_than_ns),
            episodes: self.sum.episodes,
            statements: self.sum.statements,
            took: Nanos(self.sum.took_ns),
            causes,
            long_statements: self.sum.long,
        }
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

    /// Takes over which statements go on, and which have ended.
    fn learn(&mut self, look: &StatementLook, at_ns: u64) {
        let Self { running, texts, slower_than_ns, .. } = self;
        for statement in &look.statements {
            let key = (statement.session, statement.begun);
            let one = running.entry(key).or_insert_with(|| Running::new(statement, at_ns));
            (one.last_ns, one.age_ns) = (at_ns, one.age_ns.max(statement.age.0));
            one.looks = one.looks.saturating_add(1);
            let is_lock = statement.state == SessionState::Lock && !statement.doing.contains(ADVISORY);
            one.locked = one.locked.saturating_add(u32::from(is_lock));
            let is_unusual =
                || texts.usual_ns(one.text).is_some_and(|usual| one.age_ns >= usual.saturating_mul(EPISODE_TIMES));
            one.is_held_up = one.is_held_up || one.age_ns >= *slower_than_ns && (one.is_locked() || is_unusual());
        }
        let there: HashSet<(u64, u64)> = look.statements.iter().map(|one| (one.session, one.begun)).collect();
        let gone: Vec<(u64, u64)> = running.keys().filter(|key| !there.contains(*key)).copied().collect();
        let is_held_up = running.values().any(|running| running.is_held_up);
        if is_held_up {
            self.episode.get_or_insert_default();
        }
        for key in gone {
            let Some(one) = self.running.remove(&key) else { continue };
            if !one.is_held_up {
                // What was held up says nothing of what is usual.
                self.texts.learn(one.text, one.age_ns);
                self.sum.long += u64::from(one.age_ns >= self.slower_than_ns);
            } else if let Some(episode) = &mut self.episode {
                episode.has_lock |= one.is_locked();
                let member = one.member(key.0);
                if episode.members.len() < MAX_MEMBERS {
                    episode.members.push(member);
                } else {
                    let (count, took_ns, until_ns) = &mut episode.more;
                    *count += 1;
                    *took_ns = took_ns.saturating_add(member.took_ns);
                    *until_ns = member.until_ns.max(*until_ns);
                }
            }
        }
    }

    /// Ends the episode if nothing is held up any more, or may still turn out to be.
    fn close(&mut self, at_ns: u64) -> Option<WatchedEpisode> {
        let episode = self.episode.as_ref()?;
        let until_ns = episode.until_ns();
        let goes_on = self.running.values().any(|running| running.is_held_up);
        let may_go_on = |running: &Running| {
            running.age_ns < self.slower_than_ns && running.due_ns <= until_ns.saturating_add(GAP_NS)
        };
        if !goes_on && !self.running.values().any(may_go_on) {
            let episode = self.episode.take()?;
            return self.judge(episode, at_ns, false);
        }
        let from_ns = self.running.values().filter(|one| one.is_held_up).map(|one| one.due_ns).min();
        let from_ns = from_ns.into_iter().chain(episode.members.iter().map(|one| one.from_ns)).min()?;
        let from_ns = from_ns.max(self.first_ns.unwrap_or_default());
        if goes_on && episode.said.is_none() && at_ns.saturating_sub(from_ns) >= LONG_EPISODE_NS {
            let mut episode = self.episode.take()?;
            let found = self.found(&episode, at_ns, true);
            episode.said = Some(found.as_ref().and_then(|found| found.blame.clone()));
            self.episode = Some(episode);
            return found;
        }
        None
    }

    /// Judges an episode for good, and counts it; nothing if it is none.
    fn judge(&mut self, episode: Open, at_ns: u64, goes_on: bool) -> Option<WatchedEpisode> {
        let Some(found) = self.found(&episode, at_ns, goes_on) else {
            // One session alone: a long statement rather than a stall.
            self.sum.long += episode.members.len() as u64;
            return None;
        };
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
        Some(found)
    }

    /// What an episode is, as far as it was seen; nothing if it is of one session that did not wait for a lock.
    fn found(&self, episode: &Open, at_ns: u64, goes_on: bool) -> Option<WatchedEpisode> {
        let running = self.running.iter().filter(|(_, running)| running.is_held_up);
        let members: Vec<Member> = running
            .clone()
            .map(|((session, _), running)| running.member(*session))
            .chain(episode.members.iter().copied())
            .collect();
        let has_lock = episode.has_lock || running.clone().any(|(_, running)| running.is_locked());
        let sessions: BTreeSet<u64> = members.iter().map(|one| one.session).collect();
        if sessions.len() < 2 && !has_lock && episode.silent.is_none() {
            return None;
        }
        let spans = members.iter().map(|one| (one.from_ns, one.until_ns)).chain(episode.silent);
        let (from_ns, until_ns) = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
        let (more, more_ns, more_until_ns) = episode.more;
        let until_ns = until_ns.max(more_until_ns);
        let longest = members.iter().max_by_key(|one| one.took_ns);
        let span = episode.silent.or(longest.map(|one| (one.from_ns, one.until_ns)))?;
        let span = (span.0.max(at_ns.saturating_sub(KEPT_NS)), span.1);
        let blame = self.blame(from_ns, span, (&members, &sessions));
        Some(WatchedEpisode {
            from_ns,
            length: Nanos(until_ns.saturating_sub(from_ns)),
            statements: more.saturating_add(members.len() as u64),
            sessions: sessions.len(),
            longest: Nanos(longest.map_or(0, |one| one.took_ns)),
            took: Nanos(match members.len() {
                0 => until_ns.saturating_sub(from_ns),
                _ => members.iter().fold(more_ns, |sum: u64, one| sum.saturating_add(one.took_ns)),
            }),
            goes_on,
            // What was seen while all of it was kept says more than what is left of it.
            blame: blame.or_else(|| episode.said.clone().flatten()),
        })
    }

    /// Why these statements were held up in a span of an episode that began at `begun_ns`.
    fn blame(
        &self,
        begun_ns: u64,
        span: (u64, u64),
        (members, sessions): (&[Member], &BTreeSet<u64>),
    ) -> Option<Blame> {
        // Who did not look cannot tell.
        if self.did_not_run(span) {
            return None;
        }
        let moments: Vec<(u64, Moment)> = self.moments.iter().copied().collect();
        let step = self.step(sessions);
        let servers = ServersSeen::of(&step);
        let average = servers.during(span).pop()?;
        let found = |states: &[SessionState]| servers.found(&average, states);
        let is_seen = average.covered_ns as f64 >= MOST * (span.1 - span.0) as f64;
        if let Some(percent) = locked_percent(members).filter(|_| is_seen) {
            let of = |by: &str| {
                format!("{} statements waited for a lock for {percent} % of their time; {by}", members.len())
            };
            match (average.blocker(), found(&[SessionState::Lock])) {
                // Then it matters what holds that one up.
                (Some(Look::OWN), _) => {}
                (Some(by), _) => {
                    let evidence = of(&format!("{} held it", self.holder(span, by)));
                    return Some(Blame { cause: StallCause::HeldLock(by.to_owned()), evidence });
                }
                (None, Some(found)) => {
                    let evidence = of("who held it is not known");
                    return Some(Blame { cause: StallCause::Wait(found.event.to_owned()), evidence });
                }
                (None, None) => {}
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
            // They wait for others that are held up themselves, and it is not known by what.
            StallCause::HeldLock(by) => by != Look::OWN,
            _ => true,
        };
        fits.then_some(blame)
    }

    /// What is known of who held locks in a span and is called so.
    fn holder(&self, (from_ns, until_ns): (u64, u64), by: &str) -> String {
        let near = self.looks.iter().filter(|seen| (from_ns..=until_ns).contains(&seen.at_ns));
        let holders = near.flat_map(|seen| &seen.holders).filter(|holder| holder.who == by);
        let sessions: BTreeSet<Option<u64>> = holders.map(|holder| holder.session).collect();
        match (sessions.len(), sessions.first()) {
            (1, Some(Some(session))) => format!("session {session} ({by})"),
            (0 | 1, _) => by.to_owned(),
            (count, _) => format!("{count} sessions ({by}), one after the other,"),
        }
    }

    /// A step that has the looks that are kept, at these sessions alone.
    fn step(&self, sessions: &BTreeSet<u64>) -> Step {
        let look = |seen: &Seen| {
            let mut look = Look { took_us: seen.took_us, ..Look::default() };
            if look.is_late() {
                return (seen.at_ns, look);
            }
            for (_, doing) in seen.sessions.iter().filter(|(session, _)| sessions.contains(session)) {
                *look.sessions.entry(doing.to_string()).or_default() += 1;
            }
            for LockHolder { session, who, waiting } in &seen.holders {
                // One that is held up itself is not the cause of anything.
                let is_held_up = session.is_some_and(|session| sessions.contains(&session));
                let by = if is_held_up { Look::OWN } else { who };
                *look.blockers.entry(by.to_owned()).or_default() += waiting;
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

/// For which share of their time statements waited for locks, if that is most of it.
fn locked_percent(members: &[Member]) -> Option<f64> {
    let sum = |of: fn(&Member) -> u32| members.iter().map(|one| f64::from(of(one))).sum::<f64>();
    let (looks, locked) = (sum(|one| one.looks), sum(|one| one.locked));
    (looks >= FEWEST_LOOKS as f64 && locked >= MOST * looks).then(|| (locked / looks * 100.0).round())
}

impl Open {
    fn until_ns(&self) -> u64 {
        let ends = self.members.iter().map(|one| one.until_ns).chain(self.silent.map(|(_, until_ns)| until_ns));
        let ends = ends.chain([self.more.2]);
        ends.max().unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "watched_tests.rs"]
mod tests;
