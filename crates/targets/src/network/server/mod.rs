//! The server of `plimsoll net`: what a client on another host measures a network with.
//!
//! It is safe by construction. It never connects to anybody. Of a connection it reads 64 bytes before that has shown the token, has
//! patience with four such connections at a time, and five seconds with each. Datagrams go only to the host of a proven control
//! connection (`datagrams.rs`). One test is served at a time, by an accepted client that keeps saying that it is there; rates, times,
//! connections and what is written to disk have limits. Each data connection has a thread of its own, for lack of a faster way.
//!
//! ```text
//! accept ─▶ handshake ─▶ control ─▶ test ◀─ flow, one thread for each data connection
//!                                      ◀─ datagrams
//! ```

mod accept;
mod control;
mod datagrams;
mod error;
mod event;
mod files;
mod flow;
mod options;
mod pace;
mod shared;
mod test;

pub use error::ServeError;
pub use event::Event;
pub use options::{DEFAULT_MAX_CONNECTIONS, DEFAULT_MAX_DURATION, DEFAULT_WRITE_MAX, Report, ServerOptions, WriteTo};

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;

use super::wire::Token;
use shared::Shared;

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens; nobody is answered before [`serve`](Self::serve).
    ///
    /// # Errors
    /// When the address cannot be had, or the directory for writes cannot be written to.
    pub fn bind(options: ServerOptions) -> Result<Self, ServeError> {
        if let Some(write) = &options.write {
            let path = || write.directory.clone();
            files::try_directory(&write.directory).map_err(|source| ServeError::Directory { path: path(), source })?;
        }
        let cannot = |source| ServeError::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        Ok(Self { options, listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What clients must know.
    pub fn token(&self) -> &Token {
        &self.options.token
    }

    /// Serves until `stop`, or until it is idle for as long as it was given, or has served the one test that it was to serve. A test
    /// that goes on is ended, and its client hears why. `report` is called by many threads.
    ///
    /// # Errors
    /// When connections cannot be taken any more.
    pub fn serve(&self, stop: &AtomicBool, report: Report<'_>) -> Result<(), ServeError> {
        let shared = Shared::new(&self.options, self.address, stop, report);
        std::thread::scope(|scope| {
            let served = accept::attend(&shared, &self.listener, scope);
            // Whoever is still there is sent away.
            shared.is_done();
            served
        })
    }
}
