//! Whether this machine is fit for measuring: what was seen, what it does to figures, and what to do about it.
//!
//! Pure functions from facts to checks; [`limits`] alone looks at the process. A fact that could not be read has no
//! check: nothing is said about the unknown.

mod host;
mod storage;

pub use storage::{is_in_memory, is_remote};

use serde::Serialize;

use super::os::{self, Resource, Root};
use model::record::Environment;

/// How a check came out, from best to worst, so that the worst of several is their maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing to do.
    Good,
    /// Measuring works; figures can be made better, or need care when they are read.
    Advice,
    /// Measuring does not work as asked, or its figures would mislead.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at, in a word or two.
    pub topic: &'static str,
    /// How it came out.
    pub status: Status,
    /// What was seen, with its value.
    pub finding: String,
    /// What to do; absent if there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Check {
    /// Nothing to do.
    pub fn good(topic: &'static str, finding: impl Into<String>) -> Self {
        Self { topic, status: Status::Good, finding: finding.into(), advice: None }
    }

    /// Measuring works, and `advice` makes figures better or says how they are read.
    pub fn advice(topic: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { topic, status: Status::Advice, finding: finding.into(), advice: Some(advice.into()) }
    }

    /// Figures would mislead, or cannot be had.
    pub fn problem(topic: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { topic, status: Status::Problem, finding: finding.into(), advice: Some(advice.into()) }
    }
}

/// Whether something can be used, found out by trying it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ability {
    /// Nobody tried.
    #[default]
    Untried,
    /// It works.
    Usable,
    /// The kernel said no.
    Refused {
        /// Its reason, such as `Operation not permitted (os error 1)`.
        reason: String,
    },
}

/// What this process may do here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Setting up a ring.
    pub io_uring: Ability,
    /// Opening a file below the target with O_DIRECT and reading from it.
    pub direct_io: Ability,
    /// Limits of the process.
    pub limits: Limits,
}

/// A limit of the kernel on a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Up to this much.
    AtMost(u64),
    /// As much as there is.
    Unlimited,
}

/// Limits and rights of this process. What could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Files open at the same time (`ulimit -n`).
    pub open_files: Option<Limit>,
    /// Bytes locked in memory (`ulimit -l`).
    pub locked_memory_bytes: Option<Limit>,
    /// How late the kernel may end a sleep to save wake-ups.
    pub timer_slack_ns: Option<u64>,
    /// `kernel.io_uring_disabled`: 0 allows all users, 1 a group and root, 2 nobody.
    pub io_uring_disabled: Option<u32>,
    /// Whose rights the process has.
    pub user: Option<User>,
}

/// Whose rights a process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Root, in this user namespace at least.
    Root,
    /// Anybody else.
    Ordinary,
}

/// What is going to be asked of the machine, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demand {
    /// Size of the buffer cache.
    pub cache_bytes: Option<u64>,
    /// Space that data and redo files will take beyond what they hold already.
    pub data_bytes: Option<u64>,
}

/// Reads the limits of this process.
pub fn limits() -> Limits {
    let root = Root::default();
    let limit = |resource| {
        os::limit(resource).map(|value| if value == u64::MAX { Limit::Unlimited } else { Limit::AtMost(value) })
    };
    Limits {
        open_files: limit(Resource::OpenFiles),
        locked_memory_bytes: limit(Resource::LockedMemory),
        timer_slack_ns: root.number("/proc/self/timerslack_ns"),
        io_uring_disabled: root.number("/proc/sys/kernel/io_uring_disabled"),
        user: Some(if os::effective_user() == 0 { User::Root } else { User::Ordinary }),
    }
}

/// All checks, storage first, in an order that does not depend on how they come out.
pub fn diagnose(environment: &Environment, capabilities: &Capabilities, demand: &Demand) -> Vec<Check> {
    let mut checks = storage::checks(environment, capabilities, demand);
    checks.extend(host::checks(environment, capabilities, demand));
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment;

    #[test]
    fn nothing_is_said_about_the_unknown() {
        assert_eq!(diagnose(&Environment::default(), &Capabilities::default(), &Demand::default()), []);
    }

    #[test]
    fn every_check_that_is_not_good_says_what_to_do() {
        let environment = environment::capture(Some(std::path::Path::new(".")));
        let refused = Ability::Refused { reason: "Operation not permitted".to_owned() };
        let capabilities = Capabilities { io_uring: refused.clone(), direct_io: refused, limits: limits() };
        let demand = Demand { cache_bytes: Some(u64::MAX), data_bytes: Some(u64::MAX) };
        let checks = diagnose(&environment, &capabilities, &demand);
        for check in &checks {
            assert_eq!(check.status == Status::Good, check.advice.is_none(), "{check:?}");
        }
        assert_eq!(checks.iter().map(|check| check.status).max(), Some(Status::Problem));
    }

    #[test]
    fn this_process_has_limits() {
        let limits = limits();
        assert!(limits.open_files.is_some() && limits.locked_memory_bytes.is_some() && limits.user.is_some());
        assert!(Limit::AtMost(u64::MAX) < Limit::Unlimited);
    }
}
