//! Files are opened and closed.

use std::sync::Arc;
use std::time::Duration;

use super::calls::{Client, FAREWELL, Session};
use super::open::Open;
use crate::nfs::error::NfsError;
use crate::nfs::ways::{Pauses, Ways, patience};
use crate::nfs::wire::nfs4::{self, Access, Claim, Compound, Results};
use crate::nfs::wire::{FileHandle, StateId, Status};

/// A lease where the server does not say it.
const DEFAULT_LEASE_S: u32 = 60;

impl Client {
    /// Opens what is there. Waits as long as the server is not ready, or waits for clients of its life before.
    fn open_anew(
        &mut self,
        ways: &Ways,
        (handle, owner, access): (&FileHandle, u64, Access),
        name: &str,
    ) -> Result<StateId, NfsError> {
        let put = |compound: &mut Compound<'_>| nfs4::put_open_file(compound, handle, owner, access, Claim::File);
        let mut pauses = Pauses::begin();
        loop {
            match self.ask(ways, ("OPEN", true), &put, &nfs4::opened)? {
                Ok(state) => return Ok(state),
                Err(status) if pauses.rest(patience(status)) => {}
                Err(status) => return Err(pauses.refused("OPEN", name, status)),
            }
        }
    }

    /// Opens a file that is there: to read and write, or to read where that is refused.
    pub fn open(&mut self, ways: &Ways, handle: FileHandle, name: &str) -> Result<Arc<Open>, NfsError> {
        let owner = self.new_owner();
        let mut access = Access::Both;
        let opened = match self.open_anew(ways, (&handle, owner, access), name) {
            Err(NfsError::Refused { status: Status::ACCES | Status::PERM | Status::ROFS, .. }) => {
                access = Access::Read;
                self.open_anew(ways, (&handle, owner, access), name)
            }
            opened => opened,
        };
        Ok(self.keep(Open::new(handle, owner, access, opened?)))
    }

    /// What CREATE has opened.
    pub fn created(&mut self, handle: FileHandle, owner: u64, state: StateId) -> Arc<Open> {
        self.keep(Open::new(handle, owner, Access::Both, state))
    }

    fn keep(&mut self, open: Open) -> Arc<Open> {
        let open = Arc::new(open);
        self.opens.retain(|open| open.strong_count() > 0);
        self.opens.push(Arc::downgrade(&open));
        open
    }

    /// Opens a file again whose state `lost` the server does not know any more.
    pub fn open_again(&mut self, ways: &Ways, open: &Open, lost: StateId, name: &str) -> Result<(), NfsError> {
        // Where the whole client was not known, that was done with it.
        if open.state() == lost {
            open.set(self.open_anew(ways, (&open.handle, open.owner, open.access), name)?);
        }
        Ok(())
    }

    /// Says that a file is not used any more.
    pub fn close(&mut self, ways: &Ways, open: &Open) {
        let Some(Session { id, .. }) = self.session else { return };
        let slot = self.next_slot(id);
        let put = |compound: &mut Compound<'_>| {
            nfs4::put_sequence(compound, &slot, true);
            nfs4::put_close(compound, &open.handle, open.state());
        };
        let mut pauses = Pauses::begin();
        loop {
            let said = self.bid(ways, "CLOSE", &put, &|reader| {
                nfs4::told(Results::begin(reader).and_then(|mut results| nfs4::sequenced(&mut results, &slot)))
            });
            match said {
                Some(Ok(())) => self.sequence = slot.sequence,
                // Nothing was done, so the number is not used.
                Some(Err(Status::JUKEBOX)) if pauses.rest(FAREWELL) => continue,
                Some(Err(Status::JUKEBOX)) => {}
                Some(Err(_)) | None => self.session = None,
            }
            return;
        }
    }

    /// The root of all that the server exports, and for how long it remembers a client that says nothing.
    pub fn root(&mut self, ways: &Ways) -> Result<Result<(FileHandle, Duration), Status>, NfsError> {
        let answer = self.ask(ways, ("PUTROOTFH", true), &nfs4::put_root, &nfs4::root)?;
        let lease =
            |lease: Option<u32>| Duration::from_secs(lease.filter(|s| *s > 0).unwrap_or(DEFAULT_LEASE_S).into());
        Ok(answer.map(|(handle, seconds)| (handle, lease(seconds))))
    }
}
