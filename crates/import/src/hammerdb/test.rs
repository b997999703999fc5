//! One test of a HammerDB log: a number of virtual users and what they reached.

use std::collections::BTreeMap;

use super::profile;
use crate::draft::{self, reported_figure, whole};
use crate::interval;
use crate::numbers::{number, whole_number};
use model::record::{Ending, Histogram, Metric, OperationStats, Outcome, Step};

const MINUTE_NS: u64 = 60_000_000_000;
const S: f64 = 1e9;
/// Virtual users that are named when they failed.
const MAX_USERS_NAMED: usize = 20;
/// Procedures of one interval that are added up.
const MAX_PROCEDURES: usize = 32;

/// Ten seconds of the time profile of one virtual user.
#[derive(Debug, Default)]
struct Profiled {
    began: Option<jiff::civil::DateTime>,
    ended: Option<jiff::civil::DateTime>,
    response: Option<Histogram>,
    merged: usize,
    figures: BTreeMap<String, f64>,
}

/// The queries of one virtual user.
#[derive(Debug, Default)]
struct OfUser {
    /// How many of each, and how long they took in all, in seconds.
    queries: BTreeMap<u32, (u32, f64)>,
    /// How many sets, and how long they took in seconds.
    sets: Vec<(f64, f64)>,
    geometric_mean_s: Option<f64>,
}

/// One test.
#[derive(Debug, Default)]
pub(super) struct Test {
    /// `4 Active Virtual Users configured`.
    active: Option<u32>,
    /// How many were created, the one that watches left out.
    created: Option<u32>,
    rampup_minutes: Option<u64>,
    minutes: Option<u64>,
    /// NOPM and TPM.
    result: Option<(f64, f64)>,
    /// As the result names it.
    pub database: Option<String>,
    /// Result and profile lines of a query run.
    queries: BTreeMap<u32, Histogram>,
    /// What each virtual user said of its queries.
    query_users: BTreeMap<u32, OfUser>,
    /// Refreshes of a power test, and how long they took in seconds.
    refreshes: Vec<(String, f64)>,
    profile: Vec<(String, Histogram)>,
    profiled: Vec<Profiled>,
    failed_users: Vec<u32>,
    /// It has begun to put load on.
    pub running: bool,
}

impl Test {
    /// Whether it has figures to import.
    pub fn has_results(&self) -> bool {
        self.result.is_some() || !self.queries.is_empty()
    }

    /// Whether a result was reported; a second one belongs to another test.
    pub fn is_reported(&self) -> bool {
        self.result.is_some()
    }

    /// `3 Virtual Users Created with Monitor VU`.
    pub fn created(&mut self, text: &str) {
        let users = text.split(' ').next().and_then(whole_number).and_then(|users| u32::try_from(users).ok());
        let watcher = u32::from(text.contains("Monitor"));
        self.created = users.and_then(|users| users.checked_sub(watcher));
    }

    /// What a virtual user says.
    pub fn said(&mut self, user: u32, text: &str) {
        let number_in = |text: &str| text.split_whitespace().find_map(whole_number);
        if let Some(minutes) = text.strip_prefix("Beginning rampup time of") {
            (self.rampup_minutes, self.running) = (number_in(minutes), true);
        } else if let Some(minutes) = text.strip_prefix("Timing test period of") {
            self.minutes = number_in(minutes);
        } else if let Some((users, _)) = text.split_once(" Active Virtual User") {
            let users = whole_number(users).and_then(|users| u32::try_from(users).ok());
            self.active = users.or(self.active);
        } else if let Some(reported) = text.strip_prefix("TEST RESULT") {
            self.result(reported);
        } else if let Some(reported) = text.strip_prefix("query ").or_else(|| text.strip_prefix("Query ")) {
            self.query(user, reported);
        } else if text.starts_with("Completed ") && text.contains("query set") {
            let mut numbers = text.split_whitespace().filter_map(number);
            self.query_users.entry(user).or_default().sets.extend(numbers.next().zip(numbers.next()));
        } else if text.starts_with("Geometric mean of query times") {
            self.query_users.entry(user).or_default().geometric_mean_s =
                text.split_whitespace().filter_map(number).next_back();
        } else if let Some((which, time)) = text.split_once(" refresh complete in ") {
            let seconds = time.split_whitespace().next().and_then(number);
            self.refreshes.extend(seconds.map(|seconds| (format!("{which} refresh"), seconds)));
        } else if text.starts_with("FINISHED FAILED") {
            self.failed_users.push(user);
        } else if text.starts_with('|') {
            self.profiled(text);
        }
    }

    /// ` : System achieved 344 NOPM from 1001 MySQL TPM`, of version 3 `1001 MySQL TPM at 344 NOPM`.
    pub fn result(&mut self, text: &str) {
        let words: Vec<&str> = text.split_whitespace().take(24).collect();
        let before = |unit: &str| words.iter().position(|word| word.trim_matches(['"', ',']) == unit);
        let (Some(nopm_at), Some(tpm_at)) = (before("NOPM"), before("TPM")) else { return };
        let value = |at: usize| Some((at, number(words.get(at)?)?));
        let back = |from: usize| (0..from).rev().find_map(value);
        let (Some((_, nopm)), Some((at, tpm))) = (back(nopm_at), back(tpm_at)) else { return };
        let database = words.get(at + 1..tpm_at).unwrap_or_default().join(" ");
        self.result = Some((nopm, tpm));
        self.database = Some(database).filter(|name| !name.is_empty());
    }

    /// `14 completed in 0.795 seconds`.
    fn query(&mut self, user: u32, text: &str) {
        let Some((query, time)) = text.split_once(" completed in ") else { return };
        let seconds = time.split_whitespace().next().and_then(number);
        let query = query.trim().parse().ok().filter(|query| *query < 1_000);
        if let Some(((query, seconds), ns)) = query.zip(seconds).zip(seconds.and_then(|seconds| whole(seconds * S))) {
            self.queries.entry(query).or_default().record(ns);
            let (count, sum_s) = self.query_users.entry(user).or_default().queries.entry(query).or_default();
            (*count, *sum_s) = (count.saturating_add(1), *sum_s + seconds);
            self.running = true;
        }
    }

    fn profiled(&mut self, text: &str) {
        if let Some(times) = text.strip_prefix("|PERCENTILES") {
            let mut times = times
                .trim_end_matches('|')
                .split(" to ")
                .map(|time| jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", time.trim()).ok());
            let (began, ended) = (times.next().flatten(), times.next().flatten());
            self.profiled.push(Profiled { began, ended, ..Profiled::default() });
        } else if let Some(row) = profile::percentiles_row(text) {
            let Some(last) = self.profiled.last_mut() else { return };
            for (figure, value) in row.figures {
                last.figures.insert(format!("{} {figure}", row.procedure), value);
            }
            if profile::is_transaction(&row.procedure) {
                match &mut last.response {
                    // A workload has five or so; merging takes longer the more there were.
                    Some(_) if last.merged >= MAX_PROCEDURES => {}
                    Some(response) => response.merge(&row.response),
                    None => last.response = Some(row.response),
                }
                last.merged += 1;
            }
        } else if let Some((name, calls, histogram)) = profile::totals_row(text)
            && calls > 0
            && profile::is_transaction(&name)
        {
            self.profile.push((name, histogram));
        }
    }

    fn users(&self) -> Option<u32> {
        let asking = self.query_users.values().filter(|user| !user.queries.is_empty()).count();
        let of_queries = u32::try_from(asking).ok().filter(|users| *users > 0);
        self.active.or(self.created).or(of_queries)
    }

    /// The step it becomes.
    pub fn step(self, index: usize) -> Step {
        let users = self.users();
        let label = users.map_or_else(|| "all".to_owned(), |users| format!("vu{users}"));
        let minutes_ns = |minutes: Option<u64>| minutes.map_or(0, |minutes| minutes.saturating_mul(MINUTE_NS));
        let sets = self.query_users.values().flat_map(|user| &user.sets);
        let longest_s = sets.map(|(_, seconds)| *seconds).max_by(f64::total_cmp);
        let window_ns = match longest_s.filter(|_| self.result.is_none()) {
            Some(seconds) => interval::seconds_ns(seconds),
            None => minutes_ns(self.minutes),
        };
        let mut step = draft::step(index, label, window_ns);
        step.load.sessions = users;
        step.window.warmup_ns = minutes_ns(self.rampup_minutes);
        step.window.ending = if self.minutes.is_some() { Ending::Time } else { Ending::Unknown };
        if !self.failed_users.is_empty() {
            let count = self.failed_users.len();
            let named: Vec<String> =
                self.failed_users.iter().take(MAX_USERS_NAMED).map(|user| user.to_string()).collect();
            let more = if count > MAX_USERS_NAMED { ", …" } else { "" };
            let error = format!("{count} virtual users finished with an error: {}{more}", named.join(", "));
            step.outcome = Outcome::Failed { error };
        }
        if let Some((nopm, tpm)) = self.result {
            step.reported.push(reported_figure("client", "NOPM", "/min", nopm).is(Metric::NewOrders, 1.0));
            step.reported.push(reported_figure("server", "TPM", "/min", tpm).is(Metric::Transactions, 1.0 / 60.0));
        }
        self.of_users(&mut step);
        for (refresh, seconds) in &self.refreshes {
            step.reported.push(reported_figure("client", refresh, "s", *seconds));
        }
        let timed = |name: &str, response: &Histogram| draft::operations(name, response.clone(), response.clone());
        step.operations = self.profile.iter().map(|(name, response)| timed(name, response)).collect();
        let of_queries = self.queries.iter();
        let operations: Vec<OperationStats> =
            of_queries.map(|(query, response)| timed(&format!("query {query}"), response)).collect();
        if !operations.is_empty() {
            step.counters.operations = Some(operations.iter().map(|operation| operation.count).sum());
        }
        step.operations.extend(operations);
        self.intervals(&mut step);
        step
    }

    /// What each virtual user did, by its number where there are several.
    fn of_users(&self, step: &mut Step) {
        let several = self.query_users.len() > 1;
        for (user, of_user) in &self.query_users {
            let of = |what: String| if several { format!("vu{user} {what}") } else { what };
            for (sets, seconds) in &of_user.sets {
                step.reported.push(reported_figure("client", of(format!("{sets} query set(s)")), "s", *seconds));
            }
            let mean = of_user.geometric_mean_s;
            step.reported.extend(
                mean.map(|mean| reported_figure("client", of("geometric mean of query times".into()), "s", mean)),
            );
            // Those of the only one are operations, and nothing but that.
            for (query, (count, sum_s)) in of_user.queries.iter().filter(|_| several) {
                step.reported.push(reported_figure(
                    "client",
                    of(format!("query {query} mean")),
                    "s",
                    sum_s / f64::from(*count),
                ));
            }
        }
    }

    /// Of one virtual user, so that nothing is counted for the whole. Those of the ramp-up are marked.
    fn intervals(&self, step: &mut Step) {
        let Some(first) = self.profiled.first().and_then(|first| first.began) else { return };
        let ns_between = |from: jiff::civil::DateTime, to: jiff::civil::DateTime| {
            u64::try_from(to.duration_since(from).as_nanos()).unwrap_or(0)
        };
        for profiled in &self.profiled {
            let Some((began, ended)) = profiled.began.zip(profiled.ended) else { continue };
            let offset_ns = ns_between(first, began);
            let mut interval = interval::of(step, offset_ns, ns_between(began, ended));
            interval.warmup = offset_ns < step.window.warmup_ns;
            interval.reported.clone_from(&profiled.figures);
            if let Some(response) = &profiled.response {
                interval.response = response.clone();
            }
            step.intervals.push(interval);
        }
    }

    /// What one should know of its figures.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if !self.profile.is_empty() || !self.profiled.is_empty() {
            remarks.push(
                "The time profile is that of one virtual user, its ramp-up included; times of procedures leave out those inside."
                    .to_owned(),
            );
        }
        remarks
    }
}
