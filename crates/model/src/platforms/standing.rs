//! Where figures are from, how old they are, and whether what they are of is still sold.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::{Combination, Machine, VolumeKind};

/// A text that is older than so many days may be out of date: clouds raise limits once a year and more.
const OLD_DAYS: i32 = 366;

/// Where a figure is from.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Title of the document.
    pub document: String,
    /// Where it is published.
    pub address: String,
    /// Of when the text is that was read, as far as that is known.
    pub as_of: String,
    /// The day on which it was read.
    pub looked_up: String,
    /// Whether it is another's copy of what the cloud publishes.
    #[serde(default)]
    pub secondary: bool,
}

/// Whether it is what a cloud sells first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Of the generation that is sold now.
    Current,
    /// There is a newer one.
    Previous,
}

/// What is to be known of an entry beside its figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// Absent where it was not looked up.
    pub state: Option<State>,
    /// The day on which its cloud stops it, where that is announced.
    pub retires: Option<String>,
    /// Of when its first source is, which has its limits.
    pub as_of: String,
    /// Of when the oldest of its other sources is, which have what the first lacks, such as bursts or built-in storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also_as_of: Option<String>,
    /// Whether one of its sources is another's copy.
    pub secondary: bool,
}

impl Standing {
    /// `current`, `previous generation` or `retires on 2028-11-15`; absent where it was not looked up.
    pub fn state_words(&self) -> Option<String> {
        match (&self.retires, self.state) {
            (Some(day), _) => Some(format!("retires on {day}")),
            (None, Some(State::Current)) => Some("current".to_owned()),
            (None, Some(State::Previous)) => Some("previous generation".to_owned()),
            (None, None) => None,
        }
    }

    /// Whether its first source is older than a year on the day `today`. What has no date is old: nobody knows that it is not.
    pub fn is_old(&self, today: Date) -> bool {
        is_old(&self.as_of, today)
    }

    /// `*` for a secondary copy, `!` for what is old.
    pub fn marks(&self, today: Date) -> String {
        [(self.secondary, "*"), (self.is_old(today), "!")]
            .into_iter()
            .filter_map(|(is_so, mark)| is_so.then_some(mark))
            .collect()
    }

    /// `2024-07-29, a secondary copy, older than a year`.
    pub fn words(&self, today: Date) -> String {
        let copy = if self.secondary { ", a secondary copy" } else { "" };
        let old = match (self.is_old(today), day(&self.as_of)) {
            (false, _) => "",
            (true, Some(_)) if self.as_of.len() < "2025-01-01".len() => ", perhaps older than a year",
            (true, Some(_)) => ", older than a year",
            (true, None) => ", of no known date",
        };
        format!("{}{copy}{old}", self.as_of)
    }
}

fn is_old(as_of: &str, today: Date) -> bool {
    day(as_of).and_then(|day| (today - day).get_days().into()).is_none_or(|days: i32| days > OLD_DAYS)
}

/// The oldest of dates as sources have them; one without a day is the oldest.
pub(super) fn oldest<'a>(dates: impl Iterator<Item = &'a str>) -> Option<String> {
    dates.min_by_key(|as_of| day(as_of)).map(str::to_owned)
}

/// The first day that `as_of` may mean: of `2025` the first of January, so that a date that is not known whole is taken for old too early
/// and never too late. Absent where no year begins it.
fn day(as_of: &str) -> Option<Date> {
    let date = as_of.split(' ').next().unwrap_or_default();
    let mut parts = date.split('-').map(|part| part.parse::<i16>().ok());
    let year = parts.next().flatten()?;
    let mut next = || parts.next().map_or(Some(1), |part| part.and_then(|part| i8::try_from(part).ok()));
    Date::new(year, next()?, next()?).ok()
}

impl Combination {
    /// The standing of its machine, and of its volumes where it has some, each with its name.
    pub fn standings(&self) -> impl Iterator<Item = (&str, &Standing)> {
        let Machine { name, standing, .. } = &self.machine;
        let of_volumes = self.volumes.as_ref().map(|volumes| {
            let VolumeKind { name, standing, .. } = &volumes.kind;
            (name.as_str(), standing)
        });
        [(name.as_str(), standing)].into_iter().chain(of_volumes)
    }

    /// What a buyer must know before he trusts its figures, a sentence each.
    pub fn cautions(&self, today: Date) -> Vec<String> {
        let mut cautions = Vec::new();
        for (name, standing) in self.standings() {
            if standing.is_old(today) {
                let words = standing.words(today);
                cautions.push(format!(
                    "The limits of {name} are old ({words}): clouds raise limits, so look before you buy."
                ));
            } else {
                let older = standing.also_as_of.as_deref().filter(|as_of| is_old(as_of, today));
                let copy = standing.secondary.then(|| "from a secondary copy".to_owned());
                let reasons: Vec<String> =
                    copy.into_iter().chain(older.map(|as_of| format!("old ({as_of})"))).collect();
                if !reasons.is_empty() {
                    let reasons = reasons.join(" or ");
                    cautions
                        .push(format!("Some limits of {name} are {reasons}: compare them with its cloud's own page."));
                }
            }
            if let Some(state) =
                standing.state_words().filter(|_| standing.state != Some(State::Current) || standing.retires.is_some())
            {
                cautions.push(format!("{name}: {state}."));
            }
        }
        cautions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_that_is_not_known_whole_is_old_too_early() {
        let today = Date::constant(2026, 11, 29);
        let is_old = |as_of: &str| Standing { as_of: as_of.to_owned(), ..Standing::default() }.is_old(today);
        // A year and a day before is old, a year is not; of 2025 it may be any day.
        for (as_of, old) in [
            ("2025-11-28", false),
            ("2025-11-27", true),
            ("2025-11", true),
            ("2025-12", false),
            ("2025", true),
            ("2026 (undated)", false),
            ("an undated version", true),
            ("", true),
            ("2026-13-01", true),
            ("99999-01-01", true),
        ] {
            assert_eq!(is_old(as_of), old, "{as_of}");
        }
        let words = |as_of: &str| Standing { as_of: as_of.to_owned(), ..Standing::default() }.words(today);
        assert_eq!(words("2025"), "2025, perhaps older than a year");
        assert_eq!(words("2024-07-29"), "2024-07-29, older than a year");
        assert_eq!(words("an undated version"), "an undated version, of no known date");
    }
}
