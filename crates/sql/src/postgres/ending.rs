//! What a connection's end was, for the statements that then find it closed.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{AsyncMessage, Connection};

use super::error::{POSTGRES, reason_of, silence, system_error, with_state};
use crate::ServerError;

/// Why a connection ended, once it has. Shared by the task that drives it and whoever sends statements.
#[derive(Debug, Clone, Default)]
pub(super) struct Ending(Arc<OnceLock<End>>);

#[derive(Debug)]
enum End {
    /// With these words.
    Reported(String),
    /// The network was silent for longer than it may be.
    Silence,
}

impl Ending {
    /// The error of a statement that was to do `doing`, if the connection has ended.
    pub(super) fn error(&self, node: &str, doing: &str) -> Option<ServerError> {
        Some(match self.0.get()? {
            End::Reported(reason) => POSTGRES.lost(node, reason),
            End::Silence => silence(node, doing),
        })
    }

    /// Drives a connection to its end. Must be a task of its own.
    pub(super) async fn watch<S, T>(self, mut connection: Connection<S, T>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
        T: AsyncRead + AsyncWrite + Unpin,
    {
        // A server that breaks down says so by a notice, and then only closes the connection.
        let mut farewell = None;
        let end = loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notice(notice))) if notice.code().code().starts_with("57P") => {
                    farewell = Some(with_state(&notice));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        let Some(error) = end else { return };
        let timed_out = system_error(&error).is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut);
        let end = match (farewell, timed_out) {
            (Some(words), _) => End::Reported(words),
            (None, true) => End::Silence,
            (None, false) => End::Reported(reason_of(&error)),
        };
        // Before the connection is dropped, which is what statements under way notice. Nobody else sets it.
        let _ = self.0.set(end);
    }
}
