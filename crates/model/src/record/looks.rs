//! What a database server was seen doing, looked at many times a second.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most names of a kind in a list of looks: what a server says is not ours, and what it does is a few things at a time.
const MAX_NAMES: usize = 64;

/// What the server itself does, beside its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerWork {
    /// A checkpoint that pauses between its writes, so that they are spread over time.
    CheckpointPause,
    /// A checkpoint that writes.
    CheckpointWrite,
    /// A checkpoint that makes durable what it wrote.
    CheckpointSync,
    /// Vacuum of tables that the server began by itself.
    Autovacuum,
}

/// One look at a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// How long the server took to answer. What it answers after more than [`Look::LATE_US`] is of an unknown instant and left out.
    pub took_us: u64,
    /// Sessions of the load at work by what they did, in the server's words.
    pub sessions: BTreeMap<String, u32>,
    /// Who held up those that waited for a lock, and how many sessions each.
    pub blockers: BTreeMap<String, u32>,
    /// What the server itself did, and in how many processes; absent where it does not let us see.
    pub work: Option<BTreeMap<ServerWork, u32>>,
}

impl Look {
    /// What a session of the load is called among those that hold up others.
    pub const OWN: &str = "a session of this load";

    /// A look whose answer takes longer says too little of when it was, in microseconds.
    pub const LATE_US: u64 = 100_000;

    /// Whether the answer came so late that nothing was kept of it.
    pub fn is_late(&self) -> bool {
        self.took_us > Self::LATE_US
    }
}

/// Looks at one database server. Every list has one element for each look.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Looks {
    /// Which server, as in `servers`.
    pub node: String,
    /// From the start of the step's load to each look: to the middle of the time that it took.
    pub at_us: Vec<u64>,
    /// How long the server took to answer.
    pub took_us: Vec<u64>,
    /// Sessions of the load at work by what they did, in the words of `session_samples`.
    pub sessions: BTreeMap<String, Vec<u32>>,
    /// Sessions that waited for a lock, by who held it. Asked only where a session took far longer than usual.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub blockers: BTreeMap<String, Vec<u32>>,
    /// Processes of the server itself by what they did; absent where they could not be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<BTreeMap<ServerWork, Vec<u32>>>,
}

impl Looks {
    /// Of looks in their order, each with its time from the start of the load. Of more than 64 names of a kind, those that were seen most
    /// are kept.
    pub fn of(node: &str, looks: &[(u64, Look)]) -> Self {
        fn lists<K: Ord + Clone>(
            looks: &[(u64, Look)],
            of: impl Fn(&Look) -> Option<&BTreeMap<K, u32>>,
        ) -> BTreeMap<K, Vec<u32>> {
            let seen = || looks.iter().flat_map(|(_, look)| of(look).into_iter().flatten());
            let mut totals: BTreeMap<&K, u64> = BTreeMap::new();
            seen().for_each(|(name, count)| *totals.entry(name).or_default() += u64::from(*count));
            let mut names: Vec<(&K, u64)> = totals.into_iter().collect();
            names.sort_by_key(|(_, total)| std::cmp::Reverse(*total));
            let counts = |name: &K| {
                let count =
                    |(_, look): &(u64, Look)| of(look).and_then(|counts| counts.get(name)).copied().unwrap_or(0);
                looks.iter().map(count).collect()
            };
            names.into_iter().take(MAX_NAMES).map(|(name, _)| (name.clone(), counts(name))).collect()
        }
        Self {
            node: node.to_owned(),
            at_us: looks.iter().map(|(at_ns, _)| at_ns / 1_000).collect(),
            took_us: looks.iter().map(|(_, look)| look.took_us).collect(),
            sessions: lists(looks, |look| Some(&look.sessions)),
            blockers: lists(looks, |look| Some(&look.blockers)),
            work: looks
                .iter()
                .all(|(_, look)| look.work.is_some() || look.is_late())
                .then(|| lists(looks, |look| look.work.as_ref())),
        }
    }

    /// The looks, one after another. A list that is too short, as in a file that was changed by hand, gives no value.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Look)> {
        fn at<K: Ord + Clone>(lists: &BTreeMap<K, Vec<u32>>, at: usize) -> BTreeMap<K, u32> {
            let counts = lists.iter().filter_map(|(name, list)| Some((name.clone(), *list.get(at)?)));
            counts.filter(|(_, count)| *count > 0).collect()
        }
        self.at_us.iter().enumerate().map(|(place, at_us)| {
            let look = Look {
                took_us: self.took_us.get(place).copied().unwrap_or_default(),
                sessions: at(&self.sessions, place),
                blockers: at(&self.blockers, place),
                work: self.work.as_ref().map(|work| at(work, place)),
            };
            (at_us.saturating_mul(1_000), look)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(sessions: &[(&str, u32)], work: Option<&[(ServerWork, u32)]>) -> Look {
        Look {
            took_us: 300,
            sessions: sessions.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            blockers: BTreeMap::new(),
            work: work.map(|work| work.iter().copied().collect()),
        }
    }

    #[test]
    fn looks_are_what_their_lists_were_made_of_and_what_one_lacks_is_unknown() {
        let all = [
            (5_000, look(&[("CPU", 3)], Some(&[]))),
            (9_000, look(&[("CPU", 1), ("Lock:tuple", 7)], Some(&[(ServerWork::CheckpointSync, 1)]))),
        ];
        let lists = Looks::of("db1:5432", &all);
        assert_eq!(
            (lists.at_us.as_slice(), lists.sessions["Lock:tuple"].as_slice()),
            ([5, 9].as_slice(), [0, 7].as_slice())
        );
        assert_eq!(lists.iter().collect::<Vec<_>>(), all);
        let hidden = Looks::of("db1:5432", &[all[0].clone(), (12_000, look(&[], None))]);
        assert_eq!((hidden.work.as_ref(), hidden.iter().nth(1)), (None, Some((12_000, look(&[], None)))));
        let cut = Looks { sessions: BTreeMap::from([("CPU".to_owned(), vec![3])]), ..lists };
        assert_eq!(cut.iter().map(|(_, look)| look.sessions.len()).collect::<Vec<_>>(), [1, 0]);
        let json = serde_json::to_string(&cut).unwrap();
        assert_eq!(serde_json::from_str::<Looks>(&json).unwrap(), cut);
    }

    #[test]
    fn a_server_that_says_ever_new_things_fills_no_memory() {
        let all: Vec<(u64, Look)> =
            (0..200).map(|at| (at, look(&[(&format!("state {at}"), 1), ("stalled", 1)], None))).collect();
        let lists = Looks::of("db", &all);
        assert_eq!((lists.sessions.len(), lists.sessions["stalled"].len()), (MAX_NAMES, 200));
    }
}
