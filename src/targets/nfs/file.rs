//! A file on an NFS server.

use std::any::Any;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::NfsError;
use super::mount::NfsMount;
use super::open_file::{FileIdentity, OpenFile, stable};
use super::queue::NfsQueue;
use super::unstable::{Marks, Writers, committed};
use super::wire::{self, Attributes, Committed, FileHandle, FileKind, Procedure, Stable, Status};
use crate::record::ChannelStats;
use crate::targets::io::{Arena, Durability, VirtualFile, VirtualQueue};

/// Rights of a file that is created.
const MODE: u32 = 0o640;
/// Least and most unit of requests that a server's word is taken for, in bytes, and what counts where it says nothing of use.
const MIN_UNIT_BYTES: u32 = 512;
const MAX_UNIT_BYTES: u32 = 64 << 10;
const DEFAULT_UNIT_BYTES: u32 = 4096;

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
        Self::of(mount, path, durability, handle, &attributes)
    }

    /// Creates a file that must not exist (GUARDED).
    ///
    /// # Errors
    /// What the server says, [`NfsError::is_already_there`] among it.
    pub fn create(mount: &Arc<NfsMount>, path: &str, durability: Durability) -> Result<Self, NfsError> {
        let (handle, attributes) = mount.create_guarded(path, MODE)?;
        Self::of(mount, path, durability, handle, &attributes)
    }

    fn of(
        mount: &Arc<NfsMount>,
        path: &str,
        durability: Durability,
        handle: FileHandle,
        attributes: &Attributes,
    ) -> Result<Self, NfsError> {
        if attributes.kind != FileKind::Regular {
            return Err(NfsError::NotAFile { name: path.to_owned() });
        }
        let writers = Writers::default();
        let cold = Mutex::new(writers.open());
        let (mount, path, identity) = (Arc::clone(mount), path.to_owned(), attributes.into());
        Ok(Self(Arc::new(OpenFile { mount, handle, path, durability, writers, identity, cold })))
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
        let OpenFile { mount, handle, path, .. } = &*self.0;
        let bytes = buffer.len().min(mount.cold_bytes() as usize);
        let put = |to: &mut Vec<u8>| wire::put_read(to, handle, offset, bytes as u32);
        let data = mount.ask(Procedure::Read, path, put, |mut reader| {
            let head = match wire::read_head(&mut reader)? {
                Ok(head) => head,
                Err(status) => return Ok(Err(status)),
            };
            if head.bytes as usize > bytes || head.bytes == 0 && !head.is_end {
                return Err(wire::Fault::Wrong("a READ of more than was asked, or of nothing"));
            }
            Ok(Ok(reader.fixed(head.bytes as usize)?.to_vec()))
        })?;
        buffer[..data.len()].copy_from_slice(&data);
        Ok(data.len())
    }

    fn write(&self, buffer: &[u8], offset: u64) -> Result<usize, NfsError> {
        let OpenFile { mount, handle, path, durability, cold, .. } = &*self.0;
        let bytes = buffer.len().min(mount.cold_bytes() as usize);
        let stable = stable(*durability);
        let put = |to: &mut Vec<u8>| {
            wire::put_write_head(to, handle, offset, bytes as u32, stable);
            to.extend_from_slice(&buffer[..bytes]);
            to.resize(to.len().next_multiple_of(4), 0);
        };
        let done = mount.ask_once(Procedure::Write, path, put, wire::write_done).map_err(|error| match error {
            NfsError::Silent { path, .. } | NfsError::Broken { path, .. } | NfsError::Garbage { path, .. } => {
                NfsError::WriteUnanswered { path, why: error.to_string() }
            }
            error => error,
        })?;
        if done.bytes == 0 || done.bytes as usize > bytes {
            let what = "a WRITE of more than was sent, or of nothing";
            return Err(NfsError::Garbage { path: mount.routes()[0].to, call: Procedure::Write.name(), what });
        }
        if done.committed == Committed::Not {
            if stable != Stable::Unstable {
                return Err(NfsError::NotDurable { name: path.clone() });
            }
            let cold = cold.lock().unwrap_or_else(PoisonError::into_inner);
            if !cold.wrote(done.verifier) {
                return Err(NfsError::LostWrites { name: path.clone() });
            }
        }
        Ok(done.bytes as usize)
    }

    /// Has the server make durable what it has taken.
    ///
    /// # Errors
    /// The server's answer, or that it lost writes.
    pub fn commit(&self) -> Result<(), NfsError> {
        let OpenFile { mount, handle, path, writers, .. } = &*self.0;
        let mut marks = Marks::new();
        writers.mark(&mut marks);
        let done = mount.ask(Procedure::Commit, path, |to| wire::put_commit(to, handle), wire::commit_done)?;
        if committed(&mut marks, done.verifier) { Ok(()) } else { Err(NfsError::LostWrites { name: path.clone() }) }
    }

    pub(super) fn open_file(&self) -> Arc<OpenFile> {
        Arc::clone(&self.0)
    }
}

impl VirtualFile for NfsFile {
    fn protocol(&self) -> &'static str {
        "nfs3"
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
