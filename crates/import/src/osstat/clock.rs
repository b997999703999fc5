//! Times before, between and within lines: as the tools write them in many locales, and as wrappers such as `ts` put them in
//! front of every line.

use jiff::civil::{Date, DateTime, Time};

use crate::draft::whole;
use crate::{Began, calendar, unix_date};

/// What a date says, as far as one line can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Day {
    /// The day.
    Known(Date),
    /// `02/10/2020`: month first in some locales, day first in others.
    Either { first: i8, second: i8, year: i16 },
    /// None was reported.
    Unreported,
}

impl Day {
    /// The day, given whether the month stands first in this file.
    fn date(self, month_first: Option<bool>) -> Option<Date> {
        match (self, month_first) {
            (Self::Known(date), _) => Some(date),
            (Self::Either { first, second, year }, Some(true)) => Date::new(year, first, second).ok(),
            (Self::Either { first, second, year }, Some(false)) => Date::new(year, second, first).ok(),
            _ => None,
        }
    }
}

/// A time of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) day: Day,
    pub(super) time: Time,
    /// Whether it is universal time.
    pub(super) utc: bool,
    /// Whether the month stands first in dates with slashes, where this stamp shows it.
    pub(super) month_first: Option<bool>,
}

impl Stamp {
    /// The time so many seconds before, as the first sample of a tool that shows no other one began.
    pub(super) fn before(self, seconds: f64, month_first: Option<bool>) -> Option<Self> {
        let ms = whole(seconds * 1e3).and_then(|ms| i64::try_from(ms).ok())?;
        let date = self.day.date(month_first);
        let at = DateTime::from_parts(date.unwrap_or(jiff::civil::date(2000, 1, 1)), self.time);
        let at = at.checked_sub(jiff::SignedDuration::from_millis(ms)).ok()?;
        Some(Self { day: date.map_or(Day::Unreported, |_| Day::Known(at.date())), time: at.time(), ..self })
    }
}

/// When samples were taken: what is known of it.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    pub(super) began: Option<Began>,
    pub(super) ended: Option<model::record::Timestamp>,
    /// Offset and length of what each sample covers, in nanoseconds; all zero where that is unknown.
    pub(super) spans: Vec<(u64, u64)>,
    /// Whether a date stands there that could be read in two ways.
    pub(super) ambiguous_date: bool,
}

impl Timeline {
    /// The time line of samples that were taken at `stamps[1..]`, the first of them covering the time since `stamps[0]`.
    ///
    /// Clocks are often reported in whole seconds: where every sample came within a second of an even pace, the pace is taken. If
    /// the clock stands still or goes back between two of them, as it seems to when output was buffered, lengths are unknown.
    /// `reported_pace_s` is the interval of the command line, where the file shows it.
    pub(super) fn new(
        stamps: &[Option<Stamp>],
        header_day: Day,
        month_first: Option<bool>,
        reported_pace_s: Option<f64>,
    ) -> Self {
        let mut line = Self { spans: vec![(0, 0); stamps.len().saturating_sub(1)], ..Self::default() };
        let at_ms = offsets_ms(stamps, month_first);
        let paced = || reported_pace_s.filter(|pace_s| *pace_s > 0.0).map(|pace_s| vec![pace_s; line.spans.len()]);
        let lengths_s = at_ms.as_deref().and_then(lengths_s).or_else(paced);
        if let Some(lengths_s) = lengths_s {
            let mut offset_ns = 0;
            for (span, length_s) in line.spans.iter_mut().zip(lengths_s) {
                let length_ns = whole(length_s * 1e9).unwrap_or(0);
                *span = (offset_ns, length_ns);
                offset_ns = offset_ns.saturating_add(length_ns);
            }
        }
        if let Some(Some(first)) = stamps.first() {
            let day = if first.day == Day::Unreported { header_day } else { first.day };
            line.ambiguous_date = matches!(day, Day::Either { .. }) && month_first.is_none();
            let civil = day.date(month_first).map(|date| DateTime::from_parts(date, first.time));
            line.began = civil.and_then(Began::wall).map(|began| match began {
                Began::Wall(at) if first.utc => Began::Utc(at),
                began => began,
            });
        }
        let passed_ms = at_ms.and_then(|at_ms| Some(at_ms.last()? - at_ms.first()?));
        line.ended = line.began.zip(passed_ms).and_then(|(began, passed_ms)| {
            let ended = began.timestamp().0.checked_add(jiff::SignedDuration::from_millis(passed_ms));
            ended.ok().map(model::record::Timestamp)
        });
        line
    }

    /// The length of the window, in nanoseconds; 0 if unknown.
    pub(super) fn duration_ns(&self) -> u64 {
        self.spans.last().map_or(0, |(offset_ns, length_ns)| offset_ns.saturating_add(*length_ns))
    }
}

/// Milliseconds of each stamp since any fixed instant; nothing if one is missing. Without a date, time that goes back by more
/// than half a day has passed midnight.
fn offsets_ms(stamps: &[Option<Stamp>], month_first: Option<bool>) -> Option<Vec<i64>> {
    const DAY_MS: i64 = 86_400_000;
    let mut last_ms = None;
    let mut midnight_ms = 0;
    stamps
        .iter()
        .map(|stamp| {
            let stamp = stamp.as_ref()?;
            let time = stamp.time;
            let seconds = (i64::from(time.hour()) * 60 + i64::from(time.minute())) * 60 + i64::from(time.second());
            let in_day_ms = seconds * 1_000 + i64::from(time.millisecond());
            if let Some(date) = stamp.day.date(month_first) {
                let days = i64::from(date.since(Date::ZERO).ok()?.get_days());
                return Some(days * DAY_MS + in_day_ms);
            }
            if last_ms.is_some_and(|last_ms| in_day_ms + DAY_MS / 2 < last_ms) {
                midnight_ms += DAY_MS;
            }
            last_ms = Some(in_day_ms);
            Some(midnight_ms + in_day_ms)
        })
        .collect()
}

/// By how many seconds clocks are put forward or back: summer time, and zones, are whole half hours.
const PUT_S: f64 = 1_800.0;

/// Gives steps of a clock that was put while it was read, as at the beginning of summer time, the length of the others: such a step
/// differs from them by whole half hours, or seems to end before it began, while most keep one pace.
pub(crate) fn without_jumps(steps_s: &mut [f64]) {
    let mut sorted = steps_s.to_vec();
    sorted.sort_by(f64::total_cmp);
    let pace_s = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let keeps_pace = |step_s: &f64| (step_s - pace_s).abs() <= 1.0;
    let most = 2 * steps_s.iter().filter(|step_s| keeps_pace(step_s)).count() > steps_s.len();
    if steps_s.len() < 3 || pace_s <= 0.0 || !most {
        return;
    }
    for step_s in steps_s.iter_mut().filter(|step_s| !keeps_pace(step_s)) {
        let halves = (*step_s - pace_s) / PUT_S;
        if *step_s < 0.0 || (halves.round() != 0.0 && (halves - halves.round()).abs() * PUT_S <= 1.5) {
            *step_s = pace_s;
        }
    }
}

/// Seconds between instants, evened out where they differ by no more than a clock of whole seconds does.
fn lengths_s(at_ms: &[i64]) -> Option<Vec<f64>> {
    let mut steps_s: Vec<f64> =
        at_ms.iter().zip(at_ms.iter().skip(1)).map(|(from, to)| (to - from) as f64 / 1e3).collect();
    without_jumps(&mut steps_s);
    if steps_s.is_empty() {
        return None;
    }
    if steps_s.iter().any(|step_s| *step_s < 0.0) {
        return None;
    }
    let whole_seconds = at_ms.iter().all(|ms| ms % 1_000 == 0);
    let mean_s = steps_s.iter().sum::<f64>() / steps_s.len() as f64;
    if mean_s > 0.0 && whole_seconds && steps_s.iter().all(|step_s| (step_s - mean_s).abs() <= 1.0) {
        return Some(vec![mean_s; steps_s.len()]);
    }
    // Output that was buffered comes in heaps: samples a moment apart, and then none for long.
    let (min_s, max_s) = steps_s.iter().fold((f64::MAX, 0.0_f64), |(least, most), s| (least.min(*s), most.max(*s)));
    (min_s > 0.0 && max_s <= 20.0 * min_s).then_some(steps_s)
}

/// The first word, and what follows it with its blanks.
pub(super) fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The time of a snapshot, where a line begins one: watchers run a tool anew for each. OSWatcher writes `zzz ***Tue Feb 11
/// 11:00:04 EST 2020` before it, ExaWatcher `zzz <02/11/2020 11:00:04> Count:1`, always with the month first. The time is absent
/// where it cannot be read.
pub(super) fn snapshot(line: &str) -> Option<Option<Stamp>> {
    let time = line.strip_prefix("zzz ")?.trim_start_matches(['*', ' ']);
    let Some(time) = time.strip_prefix('<') else {
        let written = unix_date::parse(time).map(|began| {
            let at = began.timestamp().0.to_zoned(jiff::tz::TimeZone::UTC).datetime();
            Stamp {
                day: Day::Known(at.date()),
                time: at.time(),
                utc: matches!(began, Began::Utc(_)),
                month_first: None,
            }
        });
        return Some(written.or_else(|| leading(time).map(|(stamp, _)| stamp)));
    };
    let stamp = leading(time)
        .map(|(stamp, _)| Stamp { day: stamp.day.date(Some(true)).map_or(stamp.day, Day::Known), ..stamp });
    Some(stamp)
}

/// The date and time, or the seconds since 1970, that a line begins with, and the rest of the line.
pub(super) fn leading(line: &str) -> Option<(Stamp, &str)> {
    let (open, text) = match line.trim_start().strip_prefix('[') {
        Some(text) => (true, text),
        None => (false, line.trim_start()),
    };
    // Cheap for rows that begin with the name of a device.
    if !text.starts_with(|first: char| first.is_ascii_digit() || first.is_ascii_uppercase()) {
        return None;
    }
    let (stamp, rest) = iso(text).or_else(|| epoch(text)).or_else(|| named_month(text)).or_else(|| dated(text))?;
    let rest = match rest.trim_start().strip_prefix(']') {
        Some(rest) if open => rest,
        _ => rest,
    };
    Some((stamp, rest.strip_prefix([':', '|', ',']).unwrap_or(rest)))
}

/// The same, or a time of day alone, as `ts %H:%M:%S` puts it before a line.
pub(super) fn before(line: &str) -> Option<(Stamp, &str)> {
    leading(line).or_else(|| {
        let (time, rest, _) = time_of(line, false)?;
        Some((Stamp { day: Day::Unreported, time, utc: false, month_first: None }, rest))
    })
}

/// `2020-02-10T20:32:26`, with or without a fraction and a zone.
fn iso(text: &str) -> Option<(Stamp, &str)> {
    let end = text.find([' ', '\t', ']', '|']).unwrap_or(text.len());
    let (token, rest) = text.split_at(end);
    let token = token.trim_end_matches([':', ',']);
    if !token.contains('T') {
        return None;
    }
    if let Ok(at) = token.parse::<jiff::Timestamp>() {
        return Some((utc(at), rest));
    }
    let civil: DateTime = token.parse().ok()?;
    let (day, time) = (Day::Known(civil.date()), civil.time());
    Some((Stamp { day, time, utc: false, month_first: None }, rest))
}

fn utc(at: jiff::Timestamp) -> Stamp {
    let civil = at.to_zoned(jiff::tz::TimeZone::UTC).datetime();
    Stamp { day: Day::Known(civil.date()), time: civil.time(), utc: true, month_first: None }
}

/// `1598650437.516946`, or thirteen digits of milliseconds.
fn epoch(text: &str) -> Option<(Stamp, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (token, rest) = text.split_at(end);
    let (seconds, fraction) = token.split_once('.').unwrap_or((token, ""));
    let ms: i64 = match (seconds.len(), fraction) {
        (10, _) => {
            let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
            seconds.parse::<i64>().ok()?.checked_mul(1_000)?.checked_add(digits.parse().ok()?)?
        }
        (13, "") => seconds.parse().ok()?,
        _ => return None,
    };
    if !(rest.is_empty() || rest.starts_with([' ', '\t', ']', ':', '|', ','])) {
        return None;
    }
    Some((utc(jiff::Timestamp::from_millisecond(ms).ok()?), rest))
}

/// `Nov 22 04:42:10`, as `ts` and logs of the system have it, also `Mon Nov 22 04:42:10 CET 2026` and `Nov 22, 2026 4:42:10 PM`.
/// Without a year the date is unknown.
fn named_month(text: &str) -> Option<(Stamp, &str)> {
    let (mut first, mut rest) = word(text)?;
    // The name of a day may stand before.
    if !word(rest)?.0.starts_with(|c: char| c.is_ascii_digit()) {
        (first, rest) = word(rest)?;
    }
    let month = calendar::month(first)?;
    let (day, after_day) = word(rest)?;
    let day: i8 = day.trim_end_matches(',').parse().ok()?;
    let year_of = |text| word(text).filter(|(year, _)| year.len() == 4).and_then(|(year, _)| year.parse::<i16>().ok());
    let mut year = year_of(after_day);
    let after_day = if year.is_some() { word(after_day)?.1 } else { after_day };
    let (time, mut rest, _) = time_of(after_day, false)?;
    if year.is_none() {
        let (zone, after_zone) = word(rest).unwrap_or(("", rest));
        let zoned = (2..=5).contains(&zone.len()) && zone.chars().all(|c| c.is_ascii_uppercase());
        year = year_of(if zoned { after_zone } else { rest });
        if year.is_some() {
            rest = word(if zoned { after_zone } else { rest })?.1;
        }
    }
    let day = year.and_then(|year| Date::new(year, month, day).ok()).map_or(Day::Unreported, Day::Known);
    Some((Stamp { day, time, utc: false, month_first: None }, rest))
}

/// A date in digits, then a time.
fn dated(text: &str) -> Option<(Stamp, &str)> {
    let (mut day, four_digits, token, rest) = date_in(text)?;
    let (time, rest, half_day) = time_of(rest, true)?;
    // en_US writes 02/10/2020 08:32:26 PM; the locales that put the day first and write halves of the day do not write both
    // the year in four digits and AM or PM in capitals.
    let mut month_first = day_order(token);
    if let Day::Either { .. } = day
        && half_day
        && four_digits
    {
        month_first = Some(true);
        day = day.date(month_first).map_or(day, Day::Known);
    }
    Some((Stamp { day, time, utc: false, month_first }, rest))
}

/// A date in one word or, as `2026. 01. 05.`, `2026년 01월 05일` and `05 Jan 2026`, in three; its first word, and what follows it.
pub(super) fn date_in(text: &str) -> Option<(Day, bool, &str, &str)> {
    let (first, rest) = word(text)?;
    if let Some((day, four_digits)) = date_of(first) {
        return Some((day, four_digits, first, rest));
    }
    let (second, rest) = word(rest)?;
    let (third, rest) = word(rest)?;
    let (day, four_digits) = match calendar::month(second).filter(|_| third.len() == 4) {
        Some(month) => (Day::Known(Date::new(third.parse().ok()?, month, first.parse().ok()?).ok()?), true),
        None => date_of(&[first, second, third].concat())?,
    };
    Some((day, four_digits, first, rest))
}

/// Whether the month stands first in a date with slashes, where it shows.
pub(super) fn day_order(token: &str) -> Option<bool> {
    let mut parts = token.split('/').map(|part| part.parse::<u16>().ok());
    match (parts.next()??, parts.next()??, parts.next()??) {
        (13..=31, 1..=12, _) => Some(false),
        (1..=12, 13..=31, _) => Some(true),
        _ => None,
    }
}

/// A date in digits, and whether its year has four of them.
pub(super) fn date_of(token: &str) -> Option<(Day, bool)> {
    let mut groups = token.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty());
    let (first, second, third) = (groups.next()?, groups.next()?, groups.next()?);
    if groups.next().is_some() || !token.starts_with(|c: char| c.is_ascii_digit()) || token.contains(':') {
        return None;
    }
    let short = |group: &str| if group.len() <= 2 { group.parse::<i8>().ok() } else { None };
    if first.len() == 4 {
        return Some((Day::Known(Date::new(first.parse().ok()?, short(second)?, short(third)?).ok()?), true));
    }
    let (first, second) = (short(first)?, short(second)?);
    let year: i16 = match third.len() {
        4 => third.parse().ok()?,
        2 => 2_000 + third.parse::<i16>().ok()?,
        _ => return None,
    };
    let day = if !token.contains('/') || first > 12 || first == second {
        Day::Known(Date::new(year, second, first).ok()?)
    } else if second > 12 {
        Day::Known(Date::new(year, first, second).ok()?)
    } else {
        Day::Either { first, second, year }
    };
    Some((day, third.len() == 4))
}

/// A time of day and the rest of the line, and whether AM or PM stood there.
pub(super) fn time_of(text: &str, after_date: bool) -> Option<(Time, &str, bool)> {
    let text = text.trim_start();
    let (half_before, text) = calendar::half_before(text).map_or((None, text), |(half, rest)| (Some(half), rest));
    let mut end = text.find([' ', '\t', ']', '|']).unwrap_or(text.len());
    // Korean writes three words.
    if text.get(..end)?.ends_with('시') {
        end = text.find('초').map_or(end, |at| at + '초'.len_utf8());
    }
    let (token, rest) = text.split_at(end);
    let signs = [':', '时', '時', '시'];
    let marked = token.contains(signs) || (after_date && token.matches('.').count() == 2);
    if !marked || !token.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut groups = token.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty());
    let mut two = || groups.next().filter(|group| group.len() <= 2)?.parse::<i8>().ok();
    let (mut hour, minute, second) = (two()?, two()?, two()?);
    let fraction: String = groups.next().unwrap_or("").chars().chain("000".chars()).take(3).collect();
    let millis: i32 = fraction.parse().ok()?;
    let half = word(rest).filter(|(half, _)| calendar::hour(hour, half).is_some());
    if let Some(word) = half.map(|(half, _)| half).or(half_before) {
        hour = calendar::hour(hour, word)?;
    }
    // A leap second is reported as the one before it.
    let time = Time::new(hour, minute, second.min(59), millis * 1_000_000).ok()?;
    let capital = half.is_some_and(|(half, _)| half.starts_with(['A', 'P']));
    Some((time, half.map_or(rest, |(_, rest)| after_zone(rest)), capital))
}

/// What names the rows of a table of sysstat, where a zone may stand.
const KEYS: [&str; 9] = ["CPU", "NODE", "DEV", "IFACE", "INTR", "TTY", "BUS", "FAN", "TEMP"];

/// What follows a zone, which some locales such as en_IN write behind AM and PM.
fn after_zone(text: &str) -> &str {
    let is_zone = |word: &str| {
        (3..=5).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_uppercase()) && !KEYS.contains(&word)
    };
    word(text).filter(|(zone, _)| is_zone(zone)).map_or(text, |(_, rest)| rest)
}
