//! What of a server is mounted, and everything that is done to files there beside load.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::NfsError;
use super::caller::{Caller, MAX_COLD_BYTES};
use super::client::{Client, MAX_HEAD_BYTES, Open, Session};
use super::connect::{Route, routes};
use super::ways::{Limits, Pauses, Ways, patience};
use super::wire::nfs4::SessionId;
use super::wire::{
    self, Attributes, Create, FileHandle, FsInfo, FsStat, GetAttributes, GetServer, GetSpace, LookUp, MOUNT3, Mounted,
    NFS3, Operation, PORT_MAPPER, Procedure, Remove, Rename, StateId, Status,
};
use measure::Channels;
use model::config::nfs::{DEFAULT_CONNECTIONS, DEFAULT_OUTSTANDING, DEFAULT_PORT, NfsAddress, NfsVersion};

/// Port of the port mapper.
const PORT_MAPPER_PORT: u16 = 111;

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

/// Who asks the server, one thing at a time.
#[derive(Debug)]
enum Speaker {
    /// By a connection, where one is there.
    V3(Option<Caller>),
    /// In a session.
    V41(Box<Client>),
}

impl Speaker {
    /// Asks by any way where that can do no harm.
    fn ask<O: Operation>(&mut self, ways: &Ways, operation: &O) -> Result<Result<O::Answer, Status>, NfsError> {
        let place = match self {
            Self::V3(place) => place,
            Self::V41(client) => return client.call(ways, operation),
        };
        let mut by = |route: Route| {
            let mut caller = match place.take().filter(Caller::is_open) {
                Some(caller) => caller,
                None => ways.connect(route, NFS3)?,
            };
            let procedure = (O::PROCEDURE as u32, O::PROCEDURE.name());
            let answer = caller.call(procedure, |to| operation.put_3(to), |reader| operation.read_3(reader))?;
            *place = Some(caller);
            Ok(answer)
        };
        // Where no answer comes, whether it was done is not known.
        match ways.routes.first().filter(|_| !O::IS_REPEATABLE) {
            Some(route) => by(*route),
            None => ways.by_any(by),
        }
    }
}

/// What a server exports, mounted by this process for itself. Its cold calls share one connection.
pub struct NfsMount {
    address: NfsAddress,
    ways: Ways,
    root: FileHandle,
    /// What is mounted.
    export: String,
    /// Whose space and limits are asked.
    volume: FileHandle,
    info: FsInfo,
    /// Version 4.1: calls at once that the server grants a session, and how long it remembers a client that says nothing.
    granted: Option<(u32, Duration)>,
    speaker: Mutex<Speaker>,
    channels: Channels,
    resent: Resent,
    /// Connections of each thread to each path.
    connections: AtomicU32,
}

impl fmt::Debug for NfsMount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NfsMount")
            .field("address", &self.address.to_string())
            .field("export", &self.export)
            .finish_non_exhaustive()
    }
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
        let ways = Ways::new(address.server.shown(DEFAULT_PORT), routes(address)?, limits);
        let mut lease = None;
        let (speaker, export, root) = match address.version {
            NfsVersion::V3 => {
                let (export, root) = ways.by_any(|route| mount_3(&ways, route, address))?;
                (Speaker::V3(None), export, root)
            }
            NfsVersion::V41 => {
                let mut client = Box::new(Client::new(address.outstanding.unwrap_or(DEFAULT_OUTSTANDING)));
                let refused = |status| NfsError::Refused { call: "PUTROOTFH", name: "/".to_owned(), status };
                let (root, seconds) = client.root(&ways)?.map_err(refused)?;
                lease = Some(seconds);
                (Speaker::V41(client), "/".to_owned(), root)
            }
        };
        let granted = match &speaker {
            Speaker::V3(_) => None,
            Speaker::V41(client) => client.granted(),
        };
        let info = FsInfo { read_max_bytes: 0, write_max_bytes: 0, write_multiple_bytes: 0, file_max_bytes: 0 };
        let mut mount = Self {
            address: address.clone(),
            ways,
            root,
            export,
            volume: root,
            info,
            granted: granted.map(|channel| channel.slots).zip(lease),
            speaker: Mutex::new(speaker),
            channels: Channels::default(),
            resent: Resent::default(),
            connections: AtomicU32::new(address.connections.unwrap_or(DEFAULT_CONNECTIONS)),
        };
        if address.version == NfsVersion::V41 {
            let volume = address.export.as_deref().unwrap_or(address.directory_and_name().0);
            mount.volume = mount.look_up(volume)?.0;
        }
        mount.info = mount.ask(&GetServer(&mount.volume), &mount.export)?;
        if let Some(channel) = granted {
            let most = |bytes: u32| bytes.saturating_sub(MAX_HEAD_BYTES);
            mount.info.read_max_bytes = mount.info.read_max_bytes.min(most(channel.reply_bytes));
            mount.info.write_max_bytes = mount.info.write_max_bytes.min(most(channel.request_bytes));
        }
        if mount.info.read_max_bytes == 0 || mount.info.write_max_bytes == 0 {
            let what = "limits with no room in a READ or WRITE";
            return Err(mount.garbage(Procedure::FsInfo, what));
        }
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

    /// Connections that a queue makes to each path: what the address says, unless [`NfsMount::use_connections`] said otherwise.
    pub fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Has queues that are opened from now on make so many.
    pub fn use_connections(&self, each: u32) {
        self.connections.store(each, Ordering::Relaxed);
    }

    /// Calls at once that the server grants a session, where there are sessions.
    pub fn slots(&self) -> Option<u32> {
        self.granted.map(|(slots, _)| slots)
    }

    /// How long the server remembers a client that says nothing, where it has to remember one.
    pub(super) fn lease(&self) -> Option<Duration> {
        self.granted.map(|(_, lease)| lease)
    }

    pub(super) fn ways(&self) -> &Ways {
        &self.ways
    }

    pub(super) fn limits(&self) -> Limits {
        self.ways.limits
    }

    pub(super) fn channels(&self) -> &Channels {
        &self.channels
    }

    pub(super) fn resent(&self) -> &Resent {
        &self.resent
    }

    /// An answer that cannot be.
    pub(super) fn garbage(&self, procedure: Procedure, what: &'static str) -> NfsError {
        match self.ways.first() {
            Some(path) => NfsError::Garbage { path, call: procedure.name(), what },
            None => self.ways.nowhere(),
        }
    }

    /// Finds a file or directory by its path from the server's root, and what the server says of it.
    ///
    /// # Errors
    /// What the server says, [`NfsError::is_not_found`] among it.
    pub fn look_up(&self, path: &str) -> Result<(FileHandle, Attributes), NfsError> {
        let mut found = (self.root, None);
        for name in self.below(path).split('/').filter(|name| !name.is_empty()) {
            found = self.ask(&LookUp(&found.0, name), path)?;
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
        self.ask(&GetSpace(&self.volume), &self.export)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// What the server says.
    pub fn remove(&self, path: &str) -> Result<(), NfsError> {
        let (directory, name) = self.directory_of(path)?;
        self.ask(&Remove(&directory, name), path)
    }

    /// Gives a file another name, in the same directory or another one. What has that name already is replaced.
    ///
    /// # Errors
    /// What the server says.
    pub fn rename(&self, path: &str, new: &str) -> Result<(), NfsError> {
        let (from, to) = (self.directory_of(path)?, self.directory_of(new)?);
        self.ask(&Rename((&from.0, from.1), (&to.0, to.1)), path)
    }

    /// Creates a file that must not exist. In version 4.1 it is open then.
    pub(super) fn create_guarded(
        &self,
        path: &str,
        mode: u32,
    ) -> Result<(FileHandle, Attributes, Option<Arc<Open>>), NfsError> {
        let (directory, name) = self.directory_of(path)?;
        let owner = self.with_client(Client::new_owner).unwrap_or_default();
        let made = self.ask(&Create { directory: &directory, name, mode, owner }, path)?;
        let (handle, attributes) = match (made.handle, made.attributes) {
            (Some(handle), Some(attributes)) => (handle, attributes),
            (Some(handle), None) => (handle, self.attributes(&handle, path)?),
            (None, _) => self.look_up(path)?,
        };
        let open = made.state.and_then(|state| self.with_client(|client| client.created(handle, owner, state)));
        Ok((handle, attributes, open))
    }

    /// Opens a file that is there, where the version knows that.
    pub(super) fn open(&self, handle: FileHandle, name: &str) -> Result<Option<Arc<Open>>, NfsError> {
        self.with_client(|client| client.open(&self.ways, handle, name)).transpose()
    }

    /// Opens it again, where the server does not know its state `lost` any more.
    pub(super) fn open_again(&self, open: &Open, lost: StateId, name: &str) -> Result<(), NfsError> {
        self.with_client(|client| client.open_again(&self.ways, open, lost, name)).unwrap_or(Ok(()))
    }

    pub(super) fn close(&self, open: &Open) {
        self.with_client(|client| client.close(&self.ways, open));
    }

    /// A session for a connection; `None` where the version has none.
    pub(super) fn open_session(&self) -> Result<Option<Session>, NfsError> {
        self.with_client(|client| client.open_session(&self.ways)).transpose()
    }

    pub(super) fn close_session(&self, session: &SessionId) {
        self.with_client(|client| client.close_session(&self.ways, session));
    }

    pub(super) fn attributes(&self, handle: &FileHandle, name: &str) -> Result<Attributes, NfsError> {
        self.ask(&GetAttributes(handle), name)
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

    fn speaker(&self) -> MutexGuard<'_, Speaker> {
        self.speaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_client<T>(&self, ask: impl FnOnce(&mut Client) -> T) -> Option<T> {
        match &mut *self.speaker() {
            Speaker::V3(_) => None,
            Speaker::V41(client) => Some(ask(client)),
        }
    }

    /// Asks the server. One that is not ready is asked again for a while; `name` is for errors.
    pub(super) fn ask<O: Operation>(&self, operation: &O, name: &str) -> Result<O::Answer, NfsError> {
        let mut speaker = self.speaker();
        let mut pauses = Pauses::begin();
        loop {
            match speaker.ask(&self.ways, operation)? {
                Ok(answer) => return Ok(answer),
                Err(status) if pauses.rest(patience(status)) => {}
                Err(status) => return Err(pauses.refused(O::PROCEDURE.name(), name, status)),
            }
        }
    }
}

impl Drop for NfsMount {
    fn drop(&mut self) {
        let Self { ways, speaker, .. } = self;
        if let Speaker::V41(client) = speaker.get_mut().unwrap_or_else(PoisonError::into_inner) {
            client.leave(ways);
        }
    }
}

/// Mounts what the file of the address is in by version 3: its mount service says what to begin with.
fn mount_3(ways: &Ways, route: Route, address: &NfsAddress) -> Result<(String, FileHandle), NfsError> {
    let port = match address.mount_port {
        Some(port) => port,
        None => {
            let mut caller = ways.call("port mapper", route.with_port(PORT_MAPPER_PORT), PORT_MAPPER)?;
            let port = caller.call((3, "GETPORT"), |to| wire::put_get_port(to, MOUNT3), wire::port)?;
            port.ok_or(NfsError::NoMountService { path: route.to })?
        }
    };
    mount(&mut ways.call("mount service", route.with_port(port), MOUNT3)?, address)
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
