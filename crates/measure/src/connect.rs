//! Sessions that are made while load runs.

use std::collections::BTreeMap;

/// Why an attempt at a connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFailure {
    /// The server, or the user's share of it, takes no more sessions for now.
    OutOfConnections,
    /// Nobody took the connection: no listener, a full queue of them, a server that starts or stops.
    Refused,
    /// The server does not let this user in, or not with this password, or not to this database.
    Login,
    /// Anything else, such as encryption.
    Other,
}

impl ConnectFailure {
    /// Every reason, in the order of its number.
    pub const ALL: [Self; 4] = [Self::OutOfConnections, Self::Refused, Self::Login, Self::Other];

    /// The word for it in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutOfConnections => "out of connections",
            Self::Refused => "refused",
            Self::Login => "login",
            Self::Other => "other",
        }
    }

    /// Whether an application would try again: the reason may pass by itself.
    pub const fn is_worth_another_attempt(self) -> bool {
        matches!(self, Self::OutOfConnections | Self::Refused)
    }
}

/// Attempts that failed, by [`ConnectFailure`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailedConnects([u64; ConnectFailure::ALL.len()]);

impl FailedConnects {
    /// Counts one.
    pub fn count(&mut self, failure: ConnectFailure) {
        self.0[failure as usize] += 1;
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    /// How many failed.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The document's form: reasons that there were.
    pub fn by_reason(&self) -> BTreeMap<String, u64> {
        let reasons = ConnectFailure::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0);
        reasons.map(|(reason, count)| (reason.name().to_owned(), count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_their_reason_and_only_some_pass_by_themselves() {
        let mut failed = FailedConnects::default();
        for (reason, times) in ConnectFailure::ALL.into_iter().zip([3, 0, 1, 2]) {
            (0..times).for_each(|_| failed.count(reason));
        }
        let more = failed;
        failed.add(&more);
        assert_eq!(failed.total(), 12);
        let expected = [("login", 2), ("other", 4), ("out of connections", 6)];
        assert_eq!(failed.by_reason(), expected.map(|(reason, count)| (reason.to_owned(), count)).into());
        let passing = ConnectFailure::ALL.map(ConnectFailure::is_worth_another_attempt);
        assert_eq!(passing, [true, true, false, false]);
    }
}
