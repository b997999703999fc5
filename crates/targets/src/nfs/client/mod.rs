//! Calls that block in version 4.1: who this client is to a server, the sessions that it has there, and what it has open. After a restart of
//! the server all three are made anew, under the same name.
//!
//! A call in a session is done at most once, however often it is sent: so it is sent again by another connection where one breaks.

mod calls;

use std::sync::{Mutex, PoisonError};

use crate::nfs::wire::nfs4::Access;
use crate::nfs::wire::{FileHandle, StateId};

pub use calls::{Client, MAX_HEAD_BYTES, MAX_SESSIONS, Session};

/// See the module.
#[derive(Debug)]
pub struct Open {
    handle: FileHandle,
    owner: u64,
    access: Access,
    state: Mutex<StateId>,
}

impl Open {
    /// By this owner, who may do this with it.
    fn new(handle: FileHandle, owner: u64, access: Access, state: StateId) -> Self {
        Self { handle, owner, access, state: Mutex::new(state) }
    }

    /// Its state at present.
    pub fn state(&self) -> StateId {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: StateId) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}
