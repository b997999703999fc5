//! What this program and an NFS server say to each other, as pure code: XDR (RFC 4506), remote procedure calls with AUTH_SYS (RFC
//! 5531), the mount protocol and NFS version 3 (RFC 1813), NFS version 4.1 (RFC 8881), and the port mapper (RFC 1833).
//!
//! What comes from the wire is hostile until proven otherwise: no length is believed that is over its limit, nothing is allocated by
//! a number of the other end, and what cannot be read is a [`Fault`].

mod answers;
pub mod nfs3;
pub mod nfs4;
mod operations;
mod records;
mod rpc;
mod services;
mod xdr;

pub use answers::{
    Attributes, CommitDone, Committed, Created, FileHandle, FileKind, FsInfo, FsStat, ReadHead, Stable, StateId,
    Status, WriteDone,
};
pub use nfs3::{MAX_READ_HEAD_BYTES, NFS3, Procedure};
pub use operations::{
    Commit, Create, GetAttributes, GetServer, GetSpace, LookUp, Operation, Read, Remove, Rename, Write,
};
pub use records::{Records, Sink, Take};
pub use rpc::{Credential, Program, Rejection, ReplyHead, begin_call, end_call, reply_head};
pub use services::{MOUNT3, Mounted, PORT_MAPPER, mounted, port, put_get_port, put_mount_path};
pub use xdr::{Fault, Reader, put_bytes, put_u32};

#[cfg(test)]
mod tests;
