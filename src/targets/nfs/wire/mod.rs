//! What this program and an NFS server say to each other, as pure code: XDR (RFC 4506), remote procedure calls with AUTH_SYS (RFC
//! 5531), the mount protocol and NFS version 3 (RFC 1813), and the port mapper (RFC 1833).
//!
//! What comes from the wire is hostile until proven otherwise: no length is believed that is over its limit, nothing is allocated by
//! a number of the other end, and what cannot be read is a [`Fault`].

mod nfs3;
mod records;
mod rpc;
mod services;
mod xdr;

pub use nfs3::{
    Attributes, CommitDone, Committed, Created, FileHandle, FileKind, FsInfo, FsStat, MAX_READ_HEAD_BYTES, NFS3,
    Procedure, ReadHead, Stable, Status, WriteDone, attributes, commit_done, created, fs_info, fs_stat, looked_up,
    put_commit, put_create, put_handle, put_handle_and_name, put_read, put_rename, put_write_head, read_head, removed,
    renamed, write_done,
};
pub use records::{Records, Sink, Take};
pub use rpc::{Credential, Program, Rejection, ReplyHead, begin_call, end_call, reply_head};
pub use services::{MOUNT3, Mounted, PORT_MAPPER, mounted, port, put_get_port, put_mount_path};
pub use xdr::{Fault, Reader, put_bytes, put_u32};

#[cfg(test)]
mod tests;
