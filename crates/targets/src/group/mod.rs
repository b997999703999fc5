//! Disk groups, as ASM has them: files spread over many members in allocation units, with copies in different failure groups.
//!
//! `docs/workloads/storage.md` says what they do and how. A [`DiskGroup`] is made of open files and devices, opened for a run, and gives out files
//! that are storage as any other: a [`GroupFile`] is a [`VirtualFile`], and its queue sends to the queues of
//! the members.

pub mod buffer;
mod disk_group;
mod document;
mod layout;
mod map;
mod member;
mod opening;
mod queue;
mod state;
mod stripe;

use std::any::Any;
use std::io;
use std::sync::Arc;

use crate::io::{Arena, Caching, Scrub, Scrubbed, StorageFile, VirtualFile, VirtualQueue};
use buffer::{Buffer, PAGE_BYTES};
use map::FileMap;
use model::record::ChannelStats;
use model::units::Bytes;
use queue::GroupQueue;

pub use disk_group::{DEFAULT_UNIT, DiskGroup, FileInfo, GroupAccess, MemberInfo, Resynced};
pub use member::read_header;
pub use opening::MemberOffer;
pub use stripe::Striping;

#[cfg(test)]
mod tests;

/// An open file of a group.
#[derive(Debug)]
pub struct GroupFile(Arc<FileMap>);

impl GroupFile {
    /// Its name in the group.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Pieces of whole pages that lie in one range each, by offset and length in bytes.
    fn pieces(&self, offset: u64, bytes: usize) -> io::Result<Vec<(u64, usize)>> {
        let end =
            offset.checked_add(bytes as u64).filter(|end| *end <= self.0.bytes.next_multiple_of(PAGE_BYTES as u64));
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut pieces = Vec::new();
        let mut at = offset;
        while at < end {
            let bytes = self.0.range(at, end - at).bytes;
            pieces.push((at, bytes as usize));
            at += u64::from(bytes);
        }
        Ok(pieces)
    }

    /// Calls `each` with every piece of whole pages that `bytes` bytes at `offset` touch, and where in the memory it begins.
    fn with_pages(
        &self,
        offset: u64,
        bytes: usize,
        mut each: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
        memory: &mut [u8],
    ) -> io::Result<()> {
        let page = PAGE_BYTES as u64;
        let first = offset / page * page;
        let last = (offset + bytes as u64).next_multiple_of(page);
        for (at, bytes) in self.pieces(first, (last - first) as usize)? {
            let start = (at - first) as usize;
            each(at, &mut memory[start..start + bytes])?;
        }
        Ok(())
    }
}

/// Pages that `bytes` bytes at `offset` touch, in bytes, and where in them they begin.
fn pages(offset: u64, bytes: usize) -> (usize, usize) {
    let start = (offset % PAGE_BYTES as u64) as usize;
    ((start + bytes).next_multiple_of(PAGE_BYTES), start)
}

impl VirtualFile for GroupFile {
    fn protocol(&self) -> &'static str {
        "disk group"
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.bytes)
    }

    fn is_linked(&self) -> io::Result<bool> {
        self.0.state.check_health().map(|()| true).map_err(io::Error::other)
    }

    fn known_failure(&self) -> Option<io::Error> {
        let state = &self.0.state;
        state.has_failed().then(|| io::Error::other(state.failure()))
    }

    fn unit_bytes(&self) -> u32 {
        let state = &self.0.state;
        let unit = |file: &Arc<StorageFile>| file.direct_unit_bytes().max(file.logical_sector_bytes().unwrap_or(0));
        state.current().map(|(_, file)| unit(file)).max().unwrap_or(PAGE_BYTES as u32)
    }

    fn is_page_cached(&self) -> bool {
        self.0.state.current().any(|(_, file)| file.caching() == Caching::PageCache)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.state.sync()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > self.0.bytes) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (bytes, start) = pages(offset, buffer.len());
        let mut memory = Buffer::new(bytes);
        let read = |at, piece: &mut [u8]| self.0.read(self.0.range(at, piece.len() as u64), piece);
        self.with_pages(offset, buffer.len(), read, &mut memory)?;
        buffer.copy_from_slice(&memory[start..start + buffer.len()]);
        Ok(())
    }

    fn write_all_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > self.0.bytes) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (bytes, start) = pages(offset, buffer.len());
        let mut memory = Buffer::new(bytes);
        if bytes != buffer.len() {
            let read = |at, piece: &mut [u8]| self.0.read(self.0.range(at, piece.len() as u64), piece);
            self.with_pages(offset, buffer.len(), read, &mut memory)?;
        }
        memory[start..start + buffer.len()].copy_from_slice(buffer);
        let write = |at, piece: &mut [u8]| self.0.write(self.0.range(at, piece.len() as u64), piece);
        self.with_pages(offset, buffer.len(), write, &mut memory)
    }

    fn take_channels(&self) -> Vec<ChannelStats> {
        self.0.state.channels.take()
    }

    fn read_sound(&self, buffer: &mut [u8], offset: u64, is_sound: &dyn Fn(&[u8]) -> bool) -> io::Result<bool> {
        let range = self.0.range(offset, buffer.len() as u64);
        if self.0.state.shape.copies == 1 || range.bytes as usize != buffer.len() {
            // What lies in two pieces, or once, has no copy that could be judged.
            return Ok(false);
        }
        Ok(self.0.read_sound(range, buffer, is_sound))
    }

    fn scrub(&self, scrub: &Scrub<'_>) -> Option<Scrubbed> {
        (self.0.state.shape.copies > 1).then(|| scrub.run(&self.0))
    }

    fn open_queue(
        &self,
        files: &[Arc<dyn VirtualFile>],
        arena: Arc<Arena>,
        depth: u32,
    ) -> io::Result<Box<dyn VirtualQueue>> {
        let map = |file: &Arc<dyn VirtualFile>| {
            let file: &dyn Any = file.as_ref();
            file.downcast_ref::<Self>().map(|file| Arc::clone(&file.0)).ok_or(io::ErrorKind::Unsupported)
        };
        let maps = files.iter().map(map).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(GroupQueue::new(maps, &arena, depth)?))
    }
}

const OWN_MEMBERS: &str = "write the group's own members, in the order in which it was made";

/// Why a disk group cannot be made, opened or used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum GroupError {
    /// A request to a member failed.
    #[error("cannot {action} member `{member}`: {source}")]
    Member {
        /// What was tried, such as `read the header of`.
        action: &'static str,
        /// The member, as the user named it.
        member: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A member too small to hold an allocation unit.
    #[error("member `{member}` has {size}, and {needed} are needed at least")]
    #[diagnostic(help("use a larger file or device, or a smaller `au`"))]
    TooSmall {
        /// The member.
        member: String,
        /// Its size.
        size: Bytes,
        /// What is needed for our own pages and one allocation unit.
        needed: Bytes,
    },
    /// A path without a header of a member.
    #[error("`{member}` is not a member of a disk group")]
    #[diagnostic(help("check the path; a new disk takes the place of a lost member with `rebuild`"))]
    NoMember {
        /// The path.
        member: String,
    },
    /// A member of another group.
    #[error("`{member}` belongs to {found}, not to disk group `{wanted}`")]
    #[diagnostic(help("{OWN_MEMBERS}"))]
    Foreign {
        /// The member.
        member: String,
        /// The group that it carries, in words.
        found: String,
        /// The group that was asked for.
        wanted: String,
    },
    /// Members in another order.
    #[error("`{member}` is member {found} of the group and stands in the place of member {wanted}")]
    #[diagnostic(help("{OWN_MEMBERS}"))]
    Swapped {
        /// The member.
        member: String,
        /// Its number, from 1.
        found: u32,
        /// The number of its place, from 1.
        wanted: u32,
    },
    /// The group was made in another way.
    #[error("disk group `{group}` has {there}, but {asked} was requested")]
    #[diagnostic(help("write the group as it was made, or make another one of other members"))]
    Different {
        /// The group.
        group: String,
        /// How it is.
        there: String,
        /// How it should be.
        asked: String,
    },
    /// Nobody can tell whether those that are there are the newest.
    #[error(
        "disk group `{group}` lacks {missing}: without it, Plimsoll cannot tell whether the others have the newest \
        data"
    )]
    #[diagnostic(help(
        "bring the member back; with `force` the group is opened without it, and what only it has is lost"
    ))]
    Missing {
        /// The group.
        group: String,
        /// Members and why they are missing.
        missing: String,
    },
    /// Two halves of a group were each used without the other.
    #[error(
        "members of disk group `{group}` were changed apart from each other: `{one}` went on without `{other}`, and `{other}` without `{one}`"
    )]
    #[diagnostic(help(
        "leave out the one whose data you give up and open with `force`; later bring it back with `rebuild`"
    ))]
    Diverged {
        /// The group.
        group: String,
        /// One member.
        one: String,
        /// The other.
        other: String,
    },
    /// Our own pages make no sense.
    #[error("disk group `{group}` is damaged: {what}")]
    #[diagnostic(help("find out what wrote to its members; what is lost has to be laid out again"))]
    Damaged {
        /// The group, or the member where its name is not known.
        group: String,
        /// What is wrong.
        what: String,
    },
    /// No copy of some data is left.
    #[error("disk group `{group}` has lost data: {what}")]
    #[diagnostic(help("bring the failed members back, or lay the data out again"))]
    Lost {
        /// The group.
        group: String,
        /// What happened.
        what: String,
    },
    /// A member that nothing can stand for is gone.
    #[error("disk group `{group}` lost its member `{member}`: {why}")]
    #[diagnostic(help(
        "find out what removed or cut it; without copies, or open for reads only, a group does not go on without a \
         member"
    ))]
    Gone {
        /// The group.
        group: String,
        /// The member.
        member: String,
        /// What became of it.
        why: String,
    },
    /// No room for a file.
    #[error("disk group `{group}` has {free} free, and `{file}` needs {needed}")]
    #[diagnostic(help("ask for less, remove files, or make a group of larger members"))]
    Full {
        /// The group.
        group: String,
        /// The file.
        file: String,
        /// Its size in whole allocation units.
        needed: Bytes,
        /// What a file can have.
        free: Bytes,
    },
    /// A name that a file cannot have.
    #[error("`{file}` is not a name for a file of a disk group")]
    #[diagnostic(help("use letters, digits, `_`, `-` and `.`, at most 64"))]
    FileName {
        /// The name.
        file: String,
    },
    /// A file that is there already.
    #[error("disk group `{group}` has a file `{file}` already")]
    #[diagnostic(help("name another file, or remove this one first"))]
    Exists {
        /// The group.
        group: String,
        /// The file.
        file: String,
    },
    /// A file that is not there.
    #[error("disk group `{group}` has no file `{file}`")]
    #[diagnostic(help("check the name; a new file needs a size"))]
    NoFile {
        /// The group.
        group: String,
        /// The file.
        file: String,
    },
    /// A file that somebody has open.
    #[error("file `{file}` of disk group `{group}` is in use")]
    #[diagnostic(help("wait until its user ends"))]
    FileInUse {
        /// The group.
        group: String,
        /// The file.
        file: String,
    },
    /// More than the metadata can hold.
    #[error("disk group `{group}` cannot hold another file: {why}")]
    #[diagnostic(help("remove files that are not needed"))]
    Directory {
        /// The group.
        group: String,
        /// What is exhausted.
        why: String,
    },
    /// Something is to be changed in a group that was opened for reads.
    #[error("disk group `{group}` is open for reads only")]
    #[diagnostic(help("open it for writing"))]
    ReadOnly {
        /// The group.
        group: String,
    },
    /// Copying was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl GroupError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }
}
