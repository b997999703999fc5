//! Disk groups, as ASM has them: files spread over many members in allocation units, with copies in different failure groups.
//!
//! `docs/groups.md` says what they do and how. A [`DiskGroup`] is made of open files and devices, opened for a run, and gives out files
//! that are storage as any other: a [`GroupFile`] is a [`VirtualFile`](super::io::VirtualFile), and its queue sends to the queues of
//! the members.

mod buffer;
mod disk_group;
mod document;
mod error;
mod file;
mod gates;
mod layout;
mod map;
mod member;
mod opening;
mod queue;
mod resync;
mod scrub;
mod state;
mod stripe;

pub use disk_group::{DEFAULT_UNIT, DiskGroup, FileInfo, GroupAccess, MemberInfo};
pub use error::GroupError;
pub use file::GroupFile;
pub use member::read_header;
pub use opening::MemberOffer;
pub use resync::Resynced;
pub use stripe::Striping;

#[cfg(test)]
mod tests;
