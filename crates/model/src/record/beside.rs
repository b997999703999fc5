//! Which runs of a store belong to one measurement of loads beside each other. Tags say it, so that lists, comparisons and
//! people see it too.

use std::collections::BTreeMap;

use super::Run;

/// Tag: the measurement that a run belongs to.
pub const GROUP: &str = "beside";
/// Tag: the letter of the load.
pub const LOAD: &str = "beside.load";
/// Tag: the round in which it ran, from 1.
pub const ROUND: &str = "beside.round";
/// Tag: whether the load ran `alone` or `together` with the others.
pub const COMPANY: &str = "beside.turn";

/// Tags that differ between runs which repeat each other.
pub const INCIDENTAL: [&str; 2] = [GROUP, ROUND];

/// Whether a load ran by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Company {
    /// By itself.
    Alone,
    /// At the same time as all others of its group.
    Together,
}

impl Company {
    /// As tags and tables have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Together => "together",
        }
    }
}

/// The place of a run in such a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BesideMark {
    /// The measurement, such as `20261120-103000`.
    pub group: String,
    /// Letter of the load, from `A`.
    pub load: String,
    /// Round, from 1.
    pub round: u32,
    /// Whether it ran alone.
    pub company: Company,
}

impl BesideMark {
    /// The mark as tags.
    pub fn tags(&self) -> BTreeMap<String, String> {
        let pairs = [
            (GROUP, self.group.clone()),
            (LOAD, self.load.clone()),
            (ROUND, self.round.to_string()),
            (COMPANY, self.company.word().to_owned()),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The mark of a run that has one.
    pub fn of(run: &Run) -> Option<Self> {
        Self::of_tags(&run.tags)
    }

    /// The mark that tags are; absent unless all of it is there.
    pub fn of_tags(tags: &BTreeMap<String, String>) -> Option<Self> {
        let company = [Company::Alone, Company::Together];
        Some(Self {
            group: tags.get(GROUP)?.clone(),
            load: tags.get(LOAD)?.clone(),
            round: tags.get(ROUND)?.parse().ok()?,
            company: company.into_iter().find(|company| tags.get(COMPANY).is_some_and(|tag| tag == company.word()))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_a_part_of_one_is_none() {
        let mark = BesideMark { group: "g".to_owned(), load: "B".to_owned(), round: 2, company: Company::Together };
        assert_eq!(BesideMark::of_tags(&mark.tags()).as_ref(), Some(&mark));
        for key in [GROUP, LOAD, ROUND, COMPANY] {
            let mut tags = mark.tags();
            tags.remove(key);
            assert_eq!(BesideMark::of_tags(&tags), None, "{key}");
            tags.insert(key.to_owned(), "x".to_owned());
            assert_eq!(BesideMark::of_tags(&tags).is_some(), [GROUP, LOAD].contains(&key), "{key}");
        }
    }
}
