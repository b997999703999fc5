//! What went by each way to storage that this program drives itself: connections to a server, members of a disk group.

use serde::{Deserialize, Serialize};

use super::Histogram;

/// What a channel is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    /// A connection to a server.
    #[default]
    Connection,
    /// All connections that take the same path to a server, where they are too many to be kept apart.
    Path,
    /// A member of a disk group.
    Member,
}

impl ChannelKind {
    /// The word that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Path => "path",
            Self::Member => "member",
        }
    }
}

/// What one channel carried in a window or an interval. Requests count where they ended; one that was sent by two channels, since the
/// first did not answer or since it is mirrored, counts in both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ChannelStats {
    /// What it is.
    pub kind: ChannelKind,
    /// The server or disk group that it belongs to, such as `filer1:2049`.
    pub of: String,
    /// The path of a connection, or the failure group of a member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Its name: a number of a connection, the address of a path, the path of a member.
    pub name: String,
    /// How many are counted together under this name, such as the connections of as many threads.
    pub channels: u32,
    /// Reads that ended well.
    pub reads: u64,
    /// Bytes that they brought.
    pub read_bytes: u64,
    /// Writes that ended well.
    pub writes: u64,
    /// Bytes that they took.
    pub write_bytes: u64,
    /// Requests that ended in an error, those that were sent again elsewhere included.
    pub errors: u64,
    /// From sent by this channel to answered, of reads. Not in intervals.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub read: Histogram,
    /// The same of writes. Not in intervals.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub write: Histogram,
    /// The same of calls that ask for nothing: the network and the server's way to its own beginning. Not in intervals.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub nothing: Histogram,
    /// Integral of requests outstanding over time: divided by the window's length, the mean number outstanding.
    pub outstanding_ns: u64,
    /// Most requests outstanding at once; of several channels counted together, of the one that had most.
    pub most_outstanding: u32,
    /// Requests that had to wait in this program until the channel had room for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<u64>,
    /// How long they waited, summed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_ns: Option<u64>,
    /// Requests that this channel was sent again, since another one had not answered or the server had forgotten their session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
    /// Times that its connection was made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnects: Option<u64>,
    /// Segments that TCP sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_resent: Option<u64>,
    /// Time for which TCP had something to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
    /// Of it, time for which the receiver's window held TCP back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rwnd_limited_ns: Option<u64>,
    /// COMMITs that the load did not ask for, sent since no more could be kept of what was not durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_commits: Option<u64>,
    /// Writes that were sent again since the server had lost them in a restart; of a path, by its first connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resent_writes: Option<u64>,
    /// Bytes that were sent again so; less than those of the writes where they overlap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resent_bytes: Option<u64>,
    /// Blocks that were wrong or unreadable here and were written again from another copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<u64>,
    /// Times that it was dropped because it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<u64>,
    /// Bytes written to it to make up for writes that it had missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resynced_bytes: Option<u64>,
}

fn is_empty(histogram: &Histogram) -> bool {
    histogram.count() == 0
}

impl ChannelStats {
    /// Whether `other` is of the same channel.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let key = |it: &Self| (it.kind, it.of.clone(), it.within.clone(), it.name.clone());
        key(self) == key(other)
    }

    /// Adds what the same channel carried later, or what another one of the same name carried meanwhile. The number of channels is
    /// the larger of both. What one of them does not know is unknown.
    pub fn add(&mut self, other: &Self) {
        let Self { kind: _, of: _, within: _, name: _, channels, .. } = other;
        self.channels = self.channels.max(*channels);
        self.most_outstanding = self.most_outstanding.max(other.most_outstanding);
        let known = |sum: Option<u64>, more: Option<u64>| Some(sum?.saturating_add(more?));
        macro_rules! sum {
            ($($field:ident),*) => { $(self.$field = self.$field.saturating_add(other.$field);)* };
        }
        macro_rules! sum_if_known {
            ($($field:ident),*) => { $(self.$field = known(self.$field, other.$field);)* };
        }
        sum!(reads, read_bytes, writes, write_bytes, errors, outstanding_ns);
        sum_if_known!(queued, queued_ns, retries, reconnects, segments_resent, busy_ns, rwnd_limited_ns);
        sum_if_known!(room_commits, resent_writes, resent_bytes, repairs, drops, resynced_bytes);
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.nothing.merge(&other.nothing);
    }

    /// Adds each of `more` to the one of the same channel in `sums`, or puts it there.
    pub fn add_to(sums: &mut Vec<Self>, more: &[Self]) {
        for more in more {
            match sums.iter_mut().find(|sum| sum.is_same_as(more)) {
                Some(sum) => sum.add(more),
                None => sums.push(more.clone()),
            }
        }
    }

    /// Adds a channel to the one of the same name that carried something at the same time, or puts it there.
    pub fn add_beside(sums: &mut Vec<Self>, more: Self) {
        match sums.iter_mut().find(|sum| sum.is_same_as(&more)) {
            Some(sum) => {
                let channels = sum.channels.saturating_add(more.channels);
                sum.add(&more);
                sum.channels = channels;
            }
            None => sums.push(more),
        }
    }

    /// What of it is kept of an interval: no histograms.
    #[must_use]
    pub fn of_interval(self) -> Self {
        Self { read: Histogram::default(), write: Histogram::default(), nothing: Histogram::default(), ..self }
    }

    /// The path of a connection or the failure group of a member with what belongs to it, each as one, in the order in which they come
    /// first: those of the same server or disk group and `within`.
    pub fn groups(channels: &[Self]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for channel in channels {
            let name = match (channel.kind, &channel.within) {
                (ChannelKind::Path, _) | (_, None) => channel.name.clone(),
                (_, Some(within)) => within.clone(),
            };
            let group = Self { within: None, name, ..channel.clone() };
            Self::add_beside(&mut groups, Self { kind: ChannelKind::Path, ..group });
        }
        groups
    }

    /// Keeps its histograms in little memory until something is added to them.
    pub fn pack(&mut self) {
        [&mut self.read, &mut self.write, &mut self.nothing].into_iter().for_each(Histogram::pack);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(path: &str, name: &str, reads: u64) -> ChannelStats {
        let within = Some(path.to_owned());
        let of = "filer".to_owned();
        ChannelStats { of, within, name: name.to_owned(), channels: 2, reads, retries: Some(1), ..Default::default() }
    }

    #[test]
    fn the_same_channel_adds_up_and_what_one_part_does_not_know_is_unknown() {
        let mut sums = vec![connection("a", "1", 5)];
        let mut later = connection("a", "1", 7);
        later.most_outstanding = 9;
        ChannelStats::add_to(&mut sums, &[later, connection("b", "1", 1)]);
        assert_eq!(sums.iter().map(|sum| (sum.reads, sum.channels)).collect::<Vec<_>>(), [(12, 2), (1, 2)]);
        assert_eq!((sums[0].retries, sums[0].repairs, sums[0].most_outstanding), (Some(2), None, 9));
        sums[0].add(&ChannelStats { retries: None, ..connection("a", "1", 0) });
        assert_eq!(sums[0].retries, None);
    }

    #[test]
    fn connections_of_a_path_are_one_path() {
        let all = [connection("a", "1", 5), connection("a", "2", 6), connection("b", "1", 7)];
        let groups = ChannelStats::groups(&all);
        let seen: Vec<_> = groups.iter().map(|group| (group.name.as_str(), group.reads, group.channels)).collect();
        assert_eq!(seen, [("a", 11, 4), ("b", 7, 2)]);
    }
}
