//! Times as Oracle's programs print them.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

use super::{Began, calendar};
use model::record::Timestamp;

/// A time such as `26-AUG-13 04.26.51.653754 PM +02:00`, `01-NOV-2012 17:00:15`, `2012-11-01 17:00`, `2013 Aug 27 10:54:53`.
/// Days and months that are both plain numbers are taken only where the year stands first: otherwise nobody knows which is
/// which.
pub(super) fn began(text: &str) -> Option<Began> {
    let mut words: Vec<&str> = text.split_whitespace().take(8).collect();
    let iso = words.first().and_then(|word| word.split_once('T'));
    if let Some((date, clock)) = iso.filter(|(date, _)| date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
    {
        words.splice(..1, [date, clock]);
    }
    let (date, rest) = match words.as_slice() {
        [year, month, day, rest @ ..] if year.len() == 4 && calendar::month(month).is_some() => {
            (date_of(year, month, day)?, rest)
        }
        [date, rest @ ..] => (written_date(date)?, rest),
        [] => return None,
    };
    let mut time = Time::midnight();
    let mut offset = None;
    for (at, word) in rest.iter().enumerate() {
        match (at, *word) {
            (0, clock) => time = clock_of(clock)?,
            (_, "UTC" | "GMT" | "Z") => offset = Some(Offset::UTC),
            (_, word) => match calendar::hour(time.hour(), word) {
                Some(hour) => time = with_hour(time, hour)?,
                None => offset = offset_of(word),
            },
        }
    }
    let civil = DateTime::from_parts(date, time);
    match offset {
        Some(offset) => Some(Began::Utc(Timestamp(civil.to_zoned(TimeZone::fixed(offset)).ok()?.timestamp()))),
        None => Began::wall(civil),
    }
}

/// How many of the first words make a time: none, or the date, and its clock, `AM` or `PM`, and zone where they follow.
pub(super) fn words_of(words: &[&str]) -> usize {
    if !words.first().is_some_and(|word| written_date(word).is_some() || is_numeric_date(word)) {
        return 0;
    }
    let mut used = 1;
    let mut next = |fits: &dyn Fn(&str) -> bool| {
        if words.get(used).is_some_and(|word| fits(word)) {
            used += 1;
        }
    };
    next(&|word| word.contains([':', '.']) && clock_of(word).is_some());
    next(&|word| calendar::hour(1, word).is_some());
    next(&|word| offset_of(word).is_some());
    used
}

fn is_numeric_date(word: &str) -> bool {
    let parts: Vec<&str> = word.splitn(4, ['-', '/', '.']).collect();
    parts.len() == 3 && parts.iter().all(|part| matches!(part.len(), 1..=4) && is_digits(part))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn written_date(word: &str) -> Option<Date> {
    // French months end with a point.
    let word = word.replace(".-", "-");
    let mut parts = word.splitn(4, ['-', '/', '.']);
    let parts = [parts.next()?, parts.next()?, parts.next()?, parts.next().unwrap_or_default()];
    match parts {
        [year, month, day, ""] if year.len() == 4 && is_digits(year) => date_of(year, month, day),
        [day, month, year, ""] if calendar::month(month).is_some() => date_of(year, month, day),
        _ => None,
    }
}

fn date_of(year: &str, month: &str, day: &str) -> Option<Date> {
    let month = if is_digits(month) { month.parse().ok()? } else { calendar::month(month)? };
    Date::new(year_of(year)?, month, day.parse().ok()?).ok()
}

/// Two digits are Oracle's `RR`: from 50 on they belong to the last century.
fn year_of(text: &str) -> Option<i16> {
    let year: i16 = if is_digits(text) { text.parse().ok()? } else { return None };
    match (text.len(), year) {
        (2, 50..) => Some(1900 + year),
        (2, _) => Some(2000 + year),
        (4, _) => Some(year),
        _ => None,
    }
}

/// `04.26.51.653754`, `17:00:15`, `18:39`, `05:00:15.638`.
fn clock_of(text: &str) -> Option<Time> {
    let mut parts = text.splitn(4, [':', '.']);
    let (hour, minute) = (parts.next()?, parts.next()?);
    let second = parts.next().unwrap_or("0");
    let fraction: String = parts.next().unwrap_or("0").chars().chain("00000000".chars()).take(9).collect();
    if ![hour, minute, second].iter().all(|part| is_digits(part)) {
        return None;
    }
    let nanoseconds = format!("{fraction:0<9}").parse().ok()?;
    Time::new(hour.parse().ok()?, minute.parse().ok()?, second.parse().ok()?, nanoseconds).ok()
}

fn with_hour(time: Time, hour: i8) -> Option<Time> {
    Time::new(hour, time.minute(), time.second(), time.subsec_nanosecond()).ok()
}

fn offset_of(word: &str) -> Option<Offset> {
    let (sign, rest) = match word.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, word.strip_prefix('+')?),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    if !(0..=23).contains(&hours) || !(0..=59).contains(&minutes) {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3_600 + minutes * 60)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        began(text).map(|began| match began {
            Began::Utc(time) => format!("utc {}", time.0),
            Began::Wall(time) => format!("wall {}", time.0),
        })
    }

    #[test]
    fn times_of_oracle_are_read() {
        let of = |text: &str| shown(text).unwrap_or_default();
        assert_eq!(of("03-MAR-21 04.05.06.250000 PM +02:00"), "utc 2021-03-03T14:05:06.25Z");
        assert_eq!(of("03-MAR-2021 12.05.06 AM"), "wall 2021-03-03T00:05:06Z");
        assert_eq!(of("2021-03-03 16:05"), "wall 2021-03-03T16:05:00Z");
        assert_eq!(of("2013 Aug 27 10:54:53"), "wall 2013-08-27T10:54:53Z");
        assert_eq!(of("03-MAR-99"), "wall 1999-03-03T00:00:00Z");
        assert_eq!(of("01-OCT-12 01.02.03 PM"), "wall 2012-10-01T13:02:03Z");
        assert_eq!(of("2012-10-01T01:02:03 +00:00"), "utc 2012-10-01T01:02:03Z");
    }

    #[test]
    fn a_date_that_can_be_read_in_two_ways_is_left_out() {
        assert_eq!(shown("02/10/2020 10:00:00"), None);
        assert_eq!(["", "soon", "31-FEB-21", "1-2-3-4"].map(shown), [None, None, None, None]);
    }

    #[test]
    fn the_words_of_a_time_are_counted() {
        let count = |text: &str| words_of(&text.split(' ').collect::<Vec<_>>());
        assert_eq!(count("01-NOV-12 05.00.15.638 PM 1 some event"), 3);
        assert_eq!(count("2012-11-01 17:00:15 7 some event"), 2);
        assert_eq!(count("01-NOV-12 7 some event"), 1);
        assert_eq!(count("12 some event"), 0);
    }
}
