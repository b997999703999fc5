//! Several servers that are put under load at once, each with a load of its own.

use super::{NetTarget, TestOptions};
use crate::{Background, Lane, SessionRange, Target, TargetError, TargetFor};
use measure::Counter;
use model::record;
use model::workload::net::{NetOperation, NetShape};

/// Servers that all have the same load at the same time. Its sessions are numbered server by server, so that its shape is that of
/// one server [`times`](NetShape::times) their number.
#[derive(Debug)]
pub struct NetTargets {
    targets: Vec<NetTarget>,
    sessions_each: u32,
}

impl NetTargets {
    /// Opens a test on each of them.
    ///
    /// # Errors
    /// When one refuses it, or a connection cannot be had.
    pub fn begin(targets: Vec<NetTarget>, each: &NetShape, wanted: &TestOptions) -> Result<Self, TargetError> {
        for target in &targets {
            target.begin(each, wanted)?;
        }
        Ok(Self { targets, sessions_each: each.sessions().max(1) })
    }

    /// Closes the tests.
    ///
    /// # Errors
    /// When a server has gone: the first of them.
    pub fn end(&self) -> Result<(), TargetError> {
        let mut all = Ok(());
        for target in &self.targets {
            // Each is ended, whatever became of those before it.
            let ended = target.end().map(drop);
            all = all.and(ended);
        }
        all
    }

    /// What went wrong at the servers since this was asked last.
    pub fn take_trouble(&self) -> Vec<String> {
        let of = |target: &NetTarget| {
            let words = target.take_trouble().into_iter();
            words.map(|words| format!("`{}`: {words}", target.server())).collect::<Vec<_>>()
        };
        self.targets.iter().flat_map(of).collect()
    }
}

impl Target for NetTargets {
    fn describe(&self) -> record::Target {
        let servers: Vec<&str> = self.targets.iter().map(NetTarget::server).collect();
        record::Target { kind: "network".to_owned(), address: servers.join(", "), ..record::Target::default() }
    }

    fn notes(&self) -> Vec<String> {
        let of = |target: &NetTarget| {
            let notes = target.notes().into_iter();
            notes.map(|note| format!("`{}`: {note}", target.server())).collect::<Vec<_>>()
        };
        self.targets.iter().flat_map(of).collect()
    }

    fn layer(&self) -> &'static str {
        "network"
    }

    fn known_counters(&self) -> &'static [Counter] {
        self.targets.first().map_or(&[], Target::known_counters)
    }

    fn take_background(&self) -> Background {
        let mut network = Vec::new();
        for target in &self.targets {
            let ends = target.take_background().network.into_iter();
            network.extend(ends.map(|end| record::NetworkEnd { server: Some(target.server().to_owned()), ..end }));
        }
        Background { network, ..Background::default() }
    }

    fn check_health(&self) -> Result<(), TargetError> {
        self.targets.iter().try_for_each(Target::check_health)
    }
}

impl TargetFor<NetOperation> for NetTargets {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<NetOperation> + '_>, TargetError> {
        let (place, first_session) =
            (range.first_session / self.sessions_each, range.first_session % self.sessions_each);
        // A lane has connections to one server: whoever plans gives each flow a thread.
        debug_assert!(first_session + range.sessions <= self.sessions_each, "{range:?} is of more than one server");
        let target = self.targets.get(place as usize).ok_or(TargetError::Stopped)?;
        target.open_lane(SessionRange { first_session, ..range })
    }
}
