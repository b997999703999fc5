//! Connections that execute prepared statements.

use std::io;

use tokio::sync::Mutex;

use super::connect::{CancelToken, Connected};
use super::error::{POSTGRES, WITHOUT_A_WORD, silence, with_code};
use super::executor::{Executor, Failure, Report};
use crate::ServerError;

/// A connection that executes prepared statements at little cost to the client.
#[derive(Debug)]
pub struct Executing {
    /// Where statements are sent.
    pub(super) executor: Mutex<Executor>,
    /// Process number of the server's side.
    pub(super) server_pid: i32,
    cancel_token: CancelToken,
}

impl Executing {
    /// Goes on with a connection, of which nothing is under way.
    pub(super) async fn on(connected: Connected) -> Self {
        let (stream, server_pid, cancel_token) = connected.into_stream().await;
        Self { executor: Mutex::new(Executor::new(stream)), server_pid, cancel_token }
    }

    /// What breaks off the statement under way.
    pub(super) fn cancel_token(&self) -> &CancelToken {
        &self.cancel_token
    }

    /// What a failure means, where the connection was to do `doing`.
    pub(super) fn error(&self, doing: &str, failure: Failure) -> ServerError {
        let node = self.cancel_token.node();
        let unfit = |what: String| ServerError::unfit(what, None);
        match failure {
            Failure::Refused(Report { code, message, .. }) => POSTGRES.refused(node, doing, code, message),
            Failure::Ended(Some(Report { code, message, .. })) => POSTGRES.lost(node, with_code(&message, &code)),
            Failure::Ended(None) => POSTGRES.lost(node, WITHOUT_A_WORD),
            Failure::System(error) if error.kind() == io::ErrorKind::TimedOut => silence(&node, doing),
            Failure::System(error) => POSTGRES.lost(node, error.to_string()),
            Failure::Protocol(what) => unfit(format!("cannot {doing} on `{node}`: it sent {what}")),
            Failure::Value(error) => unfit(format!("cannot {doing} on `{node}`: {error}")),
        }
    }
}
