//! What of a server is mounted, and everything that is done to files there beside load.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::caller::{Caller, MAX_COLD_BYTES};
use super::connect::{Route, routes};
use super::error::NfsError;
use super::wire::{
    self, Attributes, Credential, Fault, FileHandle, FsInfo, FsStat, MOUNT3, Mounted, NFS3, PORT_MAPPER, Procedure,
    Reader, Status,
};
use crate::config::nfs::{DEFAULT_TIMEOUT_S, NfsAddress};
use crate::measure::Channels;

/// Port of the port mapper.
const PORT_MAPPER_PORT: u16 = 111;
/// How long a server may say that it is not ready before that is an error, and the first and longest pause between.
pub const MAX_NOT_READY: Duration = Duration::from_secs(30);
pub const FIRST_PAUSE: Duration = Duration::from_millis(50);
pub const MAX_PAUSE: Duration = Duration::from_secs(2);
/// How many times the patience with a silent connection is the patience with the server.
const GIVE_UP_FACTOR: u32 = 6;
/// Bytes of writes to one file that are kept because they are not durable yet, at most, beside those in flight.
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// How long is waited, and how much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For any answer on a connection that owes one, before it counts as silent.
    pub silent: Duration,
    /// For an answer at all.
    pub give_up: Duration,
    /// For a connection.
    pub connect: Duration,
    /// Bytes that were written to a file and are not durable: at half of it COMMIT is sent, and no more is written above it.
    pub kept_bytes: u64,
}

/// Writes that were sent again because a server had lost them, since somebody last counted them.
#[derive(Debug, Default)]
pub struct Resent {
    writes: AtomicU64,
    bytes: AtomicU64,
}

impl Resent {
    pub(super) fn add(&self, writes: u64, bytes: u64) {
        self.writes.fetch_add(writes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Writes and bytes.
    pub(super) fn take(&self) -> (u64, u64) {
        (self.writes.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed))
    }
}

impl Limits {
    fn of(address: &NfsAddress) -> Self {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let silent = seconds(address.timeout_s.unwrap_or(DEFAULT_TIMEOUT_S));
        let connect = address.connect_timeout_s.map_or(silent, seconds);
        Self { silent, give_up: silent * GIVE_UP_FACTOR, connect, kept_bytes: MAX_KEPT_BYTES }
    }
}

/// What a server exports, mounted by this process for itself. Its cold calls share one connection.
pub struct NfsMount {
    address: NfsAddress,
    routes: Vec<Route>,
    credential: Arc<Credential>,
    root: FileHandle,
    /// What is mounted.
    export: String,
    info: FsInfo,
    limits: Limits,
    caller: Mutex<Option<Caller>>,
    channels: Channels,
    made: AtomicU64,
    resent: Resent,
}

impl fmt::Debug for NfsMount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NfsMount")
            .field("address", &self.address.to_string())
            .field("export", &self.export)
            .finish_non_exhaustive()
    }
}

/// Asks `routes` one after the other until one of them answers.
fn by_any<T>(routes: &[Route], mut ask: impl FnMut(Route) -> Result<T, NfsError>) -> Result<T, NfsError> {
    let mut failed = None;
    for route in routes {
        match ask(*route) {
            Err(error) if is_of_path(&error) => failed = failed.or(Some(error)),
            done => return done,
        }
    }
    Err(failed
        .unwrap_or_else(|| NfsError::Resolve { host: String::new(), source: Arc::new(io::ErrorKind::NotFound.into()) }))
}

/// Whether another path, or another attempt, may do better.
pub fn is_of_path(error: &NfsError) -> bool {
    matches!(error, NfsError::Connect { .. } | NfsError::Broken { .. } | NfsError::Silent { .. })
}

impl NfsMount {
    /// Mounts what the file of `address` is in, by the first path that answers.
    ///
    /// # Errors
    /// Why no path does, or why the server refuses.
    pub fn connect(address: &NfsAddress) -> Result<Arc<Self>, NfsError> {
        Self::connect_within(address, Limits::of(address))
    }

    /// The same with other limits.
    ///
    /// # Errors
    /// As [`NfsMount::connect`].
    pub fn connect_within(address: &NfsAddress, limits: Limits) -> Result<Arc<Self>, NfsError> {
        let credential = Arc::new(Credential::of_this_process());
        let routes = routes(address)?;
        let call = |service, route: Route, program| {
            Caller::connect(service, route, program, Arc::clone(&credential), (limits.connect, limits.give_up))
        };
        let (export, root) = by_any(&routes, |route| {
            let port = match address.mount_port {
                Some(port) => port,
                None => {
                    let mut caller = call("port mapper", route.with_port(PORT_MAPPER_PORT), PORT_MAPPER)?;
                    let port = caller.call((3, "GETPORT"), |to| wire::put_get_port(to, MOUNT3), wire::port)?;
                    port.ok_or(NfsError::NoMountService { path: route.to })?
                }
            };
            let mut caller = call("mount service", route.with_port(port), MOUNT3)?;
            mount(&mut caller, address)
        })?;
        let caller = Mutex::new(None);
        let info = FsInfo { read_max_bytes: 0, write_max_bytes: 0, write_multiple_bytes: 0, file_max_bytes: 0 };
        let (address, channels) = (address.clone(), Channels::default());
        let (made, resent) = (AtomicU64::new(1), Resent::default());
        let mut mount =
            Self { address, routes, credential, root, export, info, limits, caller, channels, made, resent };
        let info =
            mount.ask(Procedure::FsInfo, &mount.export, |to| wire::put_handle(to, &mount.root), wire::fs_info)?;
        if info.read_max_bytes == 0 || info.write_max_bytes == 0 {
            let what = "FSINFO with no room in a READ or WRITE";
            return Err(NfsError::Garbage { path: mount.routes[0].to, call: Procedure::FsInfo.name(), what });
        }
        mount.info = info;
        Ok(Arc::new(mount))
    }

    /// The address that it was made for.
    pub fn address(&self) -> &NfsAddress {
        &self.address
    }

    /// What the server takes in one call.
    pub fn info(&self) -> FsInfo {
        self.info
    }

    pub(super) fn routes(&self) -> &[Route] {
        &self.routes
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn credential(&self) -> Arc<Credential> {
        Arc::clone(&self.credential)
    }

    pub(super) fn channels(&self) -> &Channels {
        &self.channels
    }

    /// How often connections were made by which a server that has restarted could answer.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Ordering::Acquire)
    }

    /// Another connection was made, to a server that may have restarted. Said before anything is read by it.
    pub(super) fn make(&self) {
        self.made.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn resent(&self) -> &Resent {
        &self.resent
    }

    /// The server, for the record.
    pub(super) fn server(&self) -> String {
        self.address.server.shown(crate::config::nfs::DEFAULT_PORT)
    }

    /// Finds a file or directory by its path from the server's root, and what the server says of it.
    ///
    /// # Errors
    /// What the server says, [`NfsError::is_not_found`] among it.
    pub fn look_up(&self, path: &str) -> Result<(FileHandle, Attributes), NfsError> {
        let mut found = (self.root, None);
        for name in self.below(path).split('/').filter(|name| !name.is_empty()) {
            let put = |to: &mut Vec<u8>| wire::put_handle_and_name(to, &found.0, name);
            found = self.ask(Procedure::Lookup, path, put, wire::looked_up)?;
        }
        match found {
            (handle, Some(attributes)) => Ok((handle, attributes)),
            (handle, None) => Ok((handle, self.attributes(&handle, path)?)),
        }
    }

    /// Space of the file system.
    ///
    /// # Errors
    /// What the server says.
    pub fn space(&self) -> Result<FsStat, NfsError> {
        self.ask(Procedure::FsStat, &self.export, |to| wire::put_handle(to, &self.root), wire::fs_stat)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// What the server says.
    pub fn remove(&self, path: &str) -> Result<(), NfsError> {
        let (directory, name) = self.directory_of(path)?;
        self.ask_once(Procedure::Remove, path, |to| wire::put_handle_and_name(to, &directory, name), wire::removed)
    }

    /// Gives a file another name, in the same directory or another one. What has that name already is replaced.
    ///
    /// # Errors
    /// What the server says.
    pub fn rename(&self, path: &str, new: &str) -> Result<(), NfsError> {
        let (from, to) = (self.directory_of(path)?, self.directory_of(new)?);
        let put = |call: &mut Vec<u8>| wire::put_rename(call, (&from.0, from.1), (&to.0, to.1));
        self.ask_once(Procedure::Rename, path, put, wire::renamed)
    }

    /// Creates a file that must not exist.
    pub(super) fn create_guarded(&self, path: &str, mode: u32) -> Result<(FileHandle, Attributes), NfsError> {
        let (directory, name) = self.directory_of(path)?;
        let put = |to: &mut Vec<u8>| wire::put_create(to, &directory, name, mode);
        let made = self.ask_once(Procedure::Create, path, put, wire::created)?;
        match (made.handle, made.attributes) {
            (Some(handle), Some(attributes)) => Ok((handle, attributes)),
            (Some(handle), None) => Ok((handle, self.attributes(&handle, path)?)),
            (None, _) => self.look_up(path),
        }
    }

    pub(super) fn attributes(&self, handle: &FileHandle, name: &str) -> Result<Attributes, NfsError> {
        self.ask(Procedure::GetAttr, name, |to| wire::put_handle(to, handle), wire::attributes)
    }

    /// Bytes of one cold READ or WRITE.
    pub(super) fn cold_bytes(&self) -> u32 {
        self.info.read_max_bytes.min(self.info.write_max_bytes).min(MAX_COLD_BYTES)
    }

    /// The path below what is mounted.
    fn below<'a>(&self, path: &'a str) -> &'a str {
        if self.export == "/" { path } else { path.strip_prefix(self.export.as_str()).unwrap_or(path) }
    }

    fn directory_of<'a>(&self, path: &'a str) -> Result<(FileHandle, &'a str), NfsError> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.look_up(directory)?.0, name))
    }

    /// A call that may be sent again by any path, since doing it twice is doing it once.
    pub(super) fn ask<T>(
        &self,
        procedure: Procedure,
        name: &str,
        put: impl Fn(&mut Vec<u8>),
        read: impl Fn(Reader<'_>) -> Result<Result<T, Status>, Fault>,
    ) -> Result<T, NfsError> {
        by_any(&self.routes, |route| self.call(route, procedure, name, &put, &read))
    }

    /// A call that is sent once: where no answer comes, whether it was done is not known.
    pub(super) fn ask_once<T>(
        &self,
        procedure: Procedure,
        name: &str,
        put: impl Fn(&mut Vec<u8>),
        read: impl Fn(Reader<'_>) -> Result<Result<T, Status>, Fault>,
    ) -> Result<T, NfsError> {
        self.call(self.routes[0], procedure, name, &put, &read)
    }

    /// A call by the connection that there is, or else by `route`. A server that is not ready is asked again for a while.
    fn call<T>(
        &self,
        route: Route,
        procedure: Procedure,
        name: &str,
        put: &impl Fn(&mut Vec<u8>),
        read: &impl Fn(Reader<'_>) -> Result<Result<T, Status>, Fault>,
    ) -> Result<T, NfsError> {
        let mut place = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let mut caller = match place.take().filter(Caller::is_open) {
                Some(caller) => caller,
                None => {
                    let patience = (self.limits.connect, self.limits.give_up);
                    let caller = Caller::connect("NFS server", route, NFS3, self.credential(), patience)?;
                    self.make();
                    caller
                }
            };
            let answer = caller.call((procedure as u32, procedure.name()), put, read)?;
            *place = Some(caller);
            match answer {
                Ok(result) => return Ok(result),
                Err(Status::JUKEBOX) if began.elapsed() < MAX_NOT_READY => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                Err(Status::JUKEBOX) => {
                    let waited_ns = began.elapsed().as_nanos() as u64;
                    return Err(NfsError::NotReady { call: procedure.name(), name: name.to_owned(), waited_ns });
                }
                Err(status) => return Err(NfsError::Refused { call: procedure.name(), name: name.to_owned(), status }),
            }
        }
    }
}

/// Mounts the export of the address, or the longest path above its file that the server lets be mounted.
fn mount(caller: &mut Caller, address: &NfsAddress) -> Result<(String, FileHandle), NfsError> {
    let mut path = match &address.export {
        Some(export) => export.as_str(),
        None => address.directory_and_name().0,
    };
    let mut refused = None;
    loop {
        let answer = caller.call((1, "MNT"), |to| wire::put_mount_path(to, path), wire::mounted)?;
        match answer {
            Ok(Mounted { handle, takes_auth_sys: true }) => return Ok((path.to_owned(), handle)),
            Ok(Mounted { takes_auth_sys: false, .. }) => {
                return Err(NfsError::OtherSecurity { path: caller.path(), export: path.to_owned() });
            }
            // A refusal of access says more than that there is no such export.
            Err(status) if matches!(status, Status::PERM | Status::ACCES) => refused = Some(status),
            Err(status) => refused = refused.or(Some(status)),
        }
        path = match path.rsplit_once('/') {
            Some(("", "")) | None => "",
            Some(("", _)) => "/",
            Some((above, _)) => above,
        };
        if path.is_empty() || address.export.is_some() {
            let status = refused.unwrap_or(Status::NOENT);
            return Err(NfsError::NotExported { path: caller.path(), name: address.path.clone(), status });
        }
    }
}
