//! Connections that execute prepared statements.

use std::io;

use tokio::sync::Mutex;

use super::connect::{CancelToken, Connected};
use super::error::{PostgresError, WITHOUT_A_WORD, with_code};
use super::executor::{Executor, Failure, Report};

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
    pub(super) fn error(&self, doing: &str, failure: Failure) -> PostgresError {
        let node = self.cancel_token.node();
        let unfit = |what: String| PostgresError::Unfit { what, hint: None };
        match failure {
            Failure::Refused(Report { code, message, .. }) => {
                PostgresError::Refused { node, doing: doing.to_owned(), code, message }
            }
            Failure::Ended(Some(Report { code, message, .. })) => {
                PostgresError::Lost { node, reason: with_code(&message, &code) }
            }
            Failure::Ended(None) => PostgresError::Lost { node, reason: WITHOUT_A_WORD.to_owned() },
            Failure::System(error) if error.kind() == io::ErrorKind::TimedOut => PostgresError::silence(&node, doing),
            Failure::System(error) => PostgresError::Lost { node, reason: error.to_string() },
            Failure::Protocol(what) => unfit(format!("cannot {doing} on `{node}`: it sent {what}")),
            Failure::Value(error) => unfit(format!("cannot {doing} on `{node}`: {error}")),
        }
    }
}
