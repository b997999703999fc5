//! What lanes over TCP and over UDP share: where they work, what ends a connection, and how an answer is booked.

use std::io;
use std::sync::Arc;

use super::NetTarget;
use super::error::NetError;
use super::exchange::Answered;
use super::traffic::Traffic;
use crate::{Finished, OperationResult, SessionRange, TargetError};
use measure::os::EndedThreads;
use measure::{Clock, LaneRecorder, WaitEvent};

/// Where a lane works.
#[derive(Debug)]
pub(super) struct LaneContext {
    server: String,
    pub(super) clock: Clock,
    pub(super) filling: Arc<[u8]>,
    pub(super) traffic: Arc<Traffic>,
    pub(super) timeout_ns: u64,
    ended: EndedThreads,
}

impl LaneContext {
    pub(super) fn new(
        target: &NetTarget,
        range: &SessionRange,
        filling: Arc<[u8]>,
        traffic: Arc<Traffic>,
        ended: EndedThreads,
    ) -> Self {
        let timeout_ns = target.timeout().as_nanos() as u64;
        Self { server: target.server().to_owned(), clock: range.clock, filling, traffic, timeout_ns, ended }
    }

    /// A connection that is gone; connections are numbered from 0.
    pub(super) fn lost(&self, number: u32, during: &'static str, source: io::Error) -> TargetError {
        NetError::Lost { server: self.server.clone(), number: number + 1, during, source }.into()
    }

    /// An answer that is none to what was asked.
    pub(super) fn wrong_answer(&self, number: u32, what: String) -> TargetError {
        NetError::Answer { server: self.server.clone(), number: number + 1, what }.into()
    }

    /// An error if nothing has moved on a connection for too long; `awaited` ends "nothing …".
    pub(super) fn check_silence(
        &self,
        number: u32,
        awaited: &'static str,
        progress_ns: u64,
        now_ns: u64,
    ) -> Result<(), TargetError> {
        if now_ns.saturating_sub(progress_ns) <= self.timeout_ns {
            return Ok(());
        }
        Err(self.silent(number, awaited, progress_ns, now_ns))
    }

    /// A connection on which nothing has moved since `progress_ns`.
    pub(super) fn silent(&self, number: u32, awaited: &'static str, progress_ns: u64, now_ns: u64) -> TargetError {
        let waited_ns = now_ns.saturating_sub(progress_ns);
        NetError::Silent { server: self.server.clone(), number: number + 1, during: awaited, waited_ns }.into()
    }
}

/// A lane goes with its thread.
impl Drop for LaneContext {
    fn drop(&mut self) {
        self.ended.leave();
    }
}

/// Cuts the time of an exchange into the network's and the server's, both on clocks of their own: the server says how long it had
/// the request, and cannot have had it for longer than it took.
pub(super) fn record_waits(recorder: &mut LaneRecorder, total_ns: u64, answered: &Answered) {
    let server_ns = answered.answer.server_ns.min(total_ns);
    let written_ns = answered.answer.durable_ns.min(server_ns);
    recorder.wait(WaitEvent::NetworkRoundTrip, total_ns - server_ns);
    recorder.wait(WaitEvent::RemoteService, server_ns - written_ns);
    if answered.answer.durable_ns > 0 {
        recorder.wait(WaitEvent::RfsWrite, written_ns);
    }
}

pub(super) fn done(session: u32, at_ns: u64, result: OperationResult) -> Finished {
    Finished { session, at_ns, paused_ns: 0, connecting_ns: 0, block_touches: 0, result }
}
