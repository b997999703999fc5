//! A file on an NFS server.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use super::client::Open;
use super::mount::NfsMount;
use super::queue::NfsQueue;
use super::unstable::{Outcome, Writes};
use super::wire::{Attributes, Committed, FileHandle, FileKind, Stable, Status};
use super::{FileIdentity, NfsError, OTHERS_WRITE, OpenFile, send_again, stable};
use crate::io::{Arena, Durability, VirtualFile, VirtualQueue};
use model::config::nfs::NfsVersion;
use model::record::ChannelStats;

/// Rights of a file that is created.
const MODE: u32 = 0o640;
/// Least and most unit of requests that a server's word is taken for, in bytes, and what counts where it says nothing of use.
const MIN_UNIT_BYTES: u32 = 512;
const MAX_UNIT_BYTES: u32 = 64 << 10;
const DEFAULT_UNIT_BYTES: u32 = 4096;
/// How often a call that blocks looks whether it may go on.
const LOOK: Duration = Duration::from_millis(1);

/// An open file. Clones are the same open file.
#[derive(Debug, Clone)]
pub struct NfsFile(Arc<OpenFile>);

impl NfsFile {
    /// Opens a file that exists, by its path from the server's root.
    ///
    /// # Errors
    /// What the server says, or that it is no regular file.
    pub fn open(mount: &Arc<NfsMount>, path: &str, durability: Durability) -> Result<Self, NfsError> {
        let (handle, attributes) = mount.look_up(path)?;
        if attributes.kind != FileKind::Regular {
            return Err(NfsError::NotAFile { name: path.to_owned() });
        }
        let open = mount.open(handle, path)?;
        Ok(Self::of(mount, path, durability, (handle, open), &attributes))
    }

    /// Creates a file that must not exist (GUARDED).
    ///
    /// # Errors
    /// What the server says, [`NfsError::is_already_there`] among it.
    pub fn create(mount: &Arc<NfsMount>, path: &str, durability: Durability) -> Result<Self, NfsError> {
        let (handle, attributes, open) = mount.create_guarded(path, MODE)?;
        Ok(Self::of(mount, path, durability, (handle, open), &attributes))
    }

    fn of(
        mount: &Arc<NfsMount>,
        path: &str,
        durability: Durability,
        (handle, open): (FileHandle, Option<Arc<Open>>),
        attributes: &Attributes,
    ) -> Self {
        let writes = Writes::new(mount.ways().made());
        let cold = writes.open();
        let (mount, path, identity) = (Arc::clone(mount), path.to_owned(), attributes.into());
        Self(Arc::new(OpenFile { mount, handle, path, durability, identity, open, writes, cold }))
    }

    /// What makes it itself.
    pub fn identity(&self) -> FileIdentity {
        self.0.identity
    }

    /// Its path from the server's root.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// What it is in.
    pub fn mount(&self) -> &Arc<NfsMount> {
        &self.0.mount
    }

    /// What the server says of it.
    ///
    /// # Errors
    /// The server's answer, or why there is none.
    pub fn attributes(&self) -> Result<Attributes, NfsError> {
        self.0.mount.attributes(&self.0.handle, &self.0.path)
    }

    /// Whether its path leads to it. That it leads to nothing is no error.
    ///
    /// # Errors
    /// [`NfsError::OtherFile`] where the path leads to another one, and the server's answer.
    pub fn is_named(&self) -> Result<bool, NfsError> {
        match self.0.mount.look_up(&self.0.path) {
            Ok((_, attributes)) if FileIdentity::from(&attributes) == self.0.identity => Ok(true),
            Ok((_, attributes)) => Err(NfsError::OtherFile {
                name: self.0.path.clone(),
                before: self.0.identity.fileid,
                now: attributes.fileid,
            }),
            Err(NfsError::Refused { status: Status::NOENT | Status::STALE, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize, NfsError> {
        let OpenFile { mount, writes, .. } = &*self.0;
        loop {
            if !writes.is_sound(mount.ways().made()) {
                self.commit()?;
            }
            let read = self.read_once(buffer, offset)?;
            // The call itself may have met a server that has restarted.
            if writes.is_sound(mount.ways().made()) {
                return Ok(read);
            }
        }
    }

    fn read_once(&self, buffer: &mut [u8], offset: u64) -> Result<usize, NfsError> {
        let bytes = buffer.len().min(self.0.mount.cold_bytes() as usize);
        let data = self.0.read_once(offset, bytes as u32)?;
        buffer[..data.len()].copy_from_slice(&data);
        Ok(data.len())
    }

    fn write(&self, buffer: &[u8], offset: u64) -> Result<usize, NfsError> {
        let OpenFile { mount, path, durability, writes, cold, .. } = &*self.0;
        if writes.kept_bytes() >= mount.limits().kept_bytes {
            self.commit()?;
        }
        self.wait_until(|| writes.begin(cold))?;
        let (sent, stable) = (writes.number(), stable(*durability));
        let data = &buffer[..buffer.len().min(mount.cold_bytes() as usize)];
        let answer = self.0.write_once(stable, offset, data);
        cold.end();
        let done = answer?;
        let is_durable = done.committed == Committed::Data;
        if !is_durable && stable != Stable::Unstable {
            return Err(NfsError::NotDurable { name: path.clone() });
        }
        let bytes = done.bytes as usize;
        if !is_durable || writes.kept_bytes() > 0 {
            writes.keep(cold, (sent, offset), &data[..bytes], done.verifier);
        }
        Ok(bytes)
    }

    /// Has the server make durable what it has taken, and sends it again before that if the server has lost it.
    ///
    /// # Errors
    /// The server's answer, or that it lost writes for good.
    pub fn commit(&self) -> Result<(), NfsError> {
        let OpenFile { mount, writes, .. } = &*self.0;
        loop {
            let (mark, made) = (writes.number(), mount.ways().made());
            let done = self.0.commit_once()?;
            match writes.committed(mark, made, done.verifier) {
                Outcome::Durable => return Ok(()),
                Outcome::AskAgain => {}
                Outcome::Lost if writes.hold() => {
                    let sent = self.wait_until(|| writes.is_quiet()).and_then(|()| send_again(&self.0));
                    writes.let_go();
                    sent?;
                }
                // Another thread sends it again.
                Outcome::Lost => self.wait_until(|| !writes.is_held())?,
            }
        }
    }

    /// Waits for other threads as long as for the server.
    fn wait_until(&self, is_so: impl Fn() -> bool) -> Result<(), NfsError> {
        let began = Instant::now();
        while !is_so() {
            if began.elapsed() > self.0.mount.limits().give_up {
                return Err(NfsError::LostWrites { name: self.0.path.clone(), why: OTHERS_WRITE });
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    pub(super) fn open_file(&self) -> Arc<OpenFile> {
        Arc::clone(&self.0)
    }
}

impl VirtualFile for NfsFile {
    fn protocol(&self) -> &'static str {
        match self.0.mount.address().version {
            NfsVersion::V3 => "nfs3",
            NfsVersion::V41 => "nfs4.1",
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.attributes()?.size_bytes)
    }

    fn is_linked(&self) -> io::Result<bool> {
        Ok(self.is_named()?)
    }

    fn unit_bytes(&self) -> u32 {
        let multiple = self.0.mount.info().write_multiple_bytes;
        let is_of_use = multiple.is_power_of_two() && (MIN_UNIT_BYTES..=MAX_UNIT_BYTES).contains(&multiple);
        if is_of_use { multiple } else { DEFAULT_UNIT_BYTES }
    }

    fn sync(&self) -> io::Result<()> {
        Ok(self.commit()?)
    }

    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            let read = self.read(buffer, offset)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer = &mut buffer[read..];
            offset += read as u64;
        }
        Ok(())
    }

    fn write_all_at(&self, mut buffer: &[u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            let written = self.write(buffer, offset)?;
            buffer = &buffer[written..];
            offset += written as u64;
        }
        Ok(())
    }

    fn take_channels(&self) -> Vec<ChannelStats> {
        self.0.mount.channels().take()
    }

    fn use_connections(&self, each: u32) {
        self.0.mount.use_connections(each);
    }

    fn open_queue(
        &self,
        files: &[Arc<dyn VirtualFile>],
        arena: Arc<Arena>,
        depth: u32,
    ) -> io::Result<Box<dyn VirtualQueue>> {
        let ours = |file: &Arc<dyn VirtualFile>| {
            let file: &dyn Any = &**file;
            file.downcast_ref::<Self>().map(Self::open_file).ok_or(io::ErrorKind::Unsupported)
        };
        let files = files.iter().map(ours).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(NfsQueue::open(files, arena, depth)?))
    }
}
