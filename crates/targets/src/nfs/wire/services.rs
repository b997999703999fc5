//! The services beside NFS: the port mapper, which says where the mount service is, and the mount service, which gives the handle to
//! begin with.

use super::answers::{FileHandle, Status};
use super::rpc::Program;
use super::xdr::{Fault, Reader, put_bytes, put_u32};

/// The port mapper (RFC 1833, version 2).
pub const PORT_MAPPER: Program = Program { number: 100_000, version: 2 };
/// The mount service that belongs to NFS version 3 (RFC 1813, appendix I).
pub const MOUNT3: Program = Program { number: 100_005, version: 3 };
/// TCP, as the port mapper calls it.
const TCP: u32 = 6;
/// Flavours of authentication that are read at most.
const MAX_FLAVOURS: u32 = 64;
const AUTH_SYS: u32 = 1;

/// Arguments of the port mapper's GETPORT (3).
pub fn put_get_port(to: &mut Vec<u8>, program: Program) {
    [program.number, program.version, TCP, 0].into_iter().for_each(|word| put_u32(to, word));
}

/// Result of GETPORT: the port, or `None` where no such program is registered.
///
/// # Errors
/// What is no port.
pub fn port(mut reader: Reader<'_>) -> Result<Option<u16>, Fault> {
    let port = reader.u32()?;
    match u16::try_from(port) {
        Ok(port) => Ok((port > 0).then_some(port)),
        Err(_) => Err(Fault::Wrong("a port over 65535")),
    }
}

/// Arguments of the mount service's MNT (1).
pub fn put_mount_path(to: &mut Vec<u8>, path: &str) {
    put_bytes(to, path.as_bytes());
}

/// What may be mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mounted {
    /// Its root.
    pub handle: FileHandle,
    /// Whether the server takes AUTH_SYS for it, or says nothing of what it takes.
    pub takes_auth_sys: bool,
}

/// Result of MNT.
///
/// # Errors
/// What is none.
pub fn mounted(mut reader: Reader<'_>) -> Result<Result<Mounted, Status>, Fault> {
    match reader.u32()? {
        0 => {}
        status => return Ok(Err(Status(status))),
    }
    let handle = FileHandle::read(&mut reader)?;
    let flavours = reader.u32()?;
    if flavours > MAX_FLAVOURS {
        return Err(Fault::Wrong("more kinds of authentication than there are"));
    }
    let mut takes_auth_sys = flavours == 0;
    for _ in 0..flavours {
        takes_auth_sys |= reader.u32()? == AUTH_SYS;
    }
    Ok(Ok(Mounted { handle, takes_auth_sys }))
}
