//! An open file as the server knows it.

use std::sync::{Mutex, PoisonError};

use crate::nfs::wire::nfs4::Access;
use crate::nfs::wire::{FileHandle, StateId};

/// See the module.
#[derive(Debug)]
pub struct Open {
    pub(super) handle: FileHandle,
    pub(super) owner: u64,
    pub(super) access: Access,
    state: Mutex<StateId>,
}

impl Open {
    /// By this owner, who may do this with it.
    pub(super) fn new(handle: FileHandle, owner: u64, access: Access, state: StateId) -> Self {
        Self { handle, owner, access, state: Mutex::new(state) }
    }

    /// Its state at present.
    pub fn state(&self) -> StateId {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, state: StateId) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}
