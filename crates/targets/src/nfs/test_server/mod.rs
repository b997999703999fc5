//! A small NFS server for tests, of versions 3 and 4.1, whose faults are switched on and off: it changes its verifier, forgets sessions,
//! answers late, in another order, in pieces, with less, with nonsense, or not at all.

mod faults;
mod service;
mod sessions;
mod store;
mod v3;
mod v4;

use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

pub use faults::{Faults, Kind, Loss, Refusal};
use service::Service;
use sessions::Sessions;
use store::Files;

use super::mount::NfsMount;
use super::ways::Limits;
use super::wire::nfs4::Op;

/// What is remembered between calls.
#[derive(Debug, Default)]
struct State {
    files: Files,
    sessions: Sessions,
    connections: Vec<TcpStream>,
    /// Calls of version 3, by their procedures.
    calls: HashMap<u32, u64>,
    /// Operations of version 4.1 that were done.
    done: HashMap<u32, u64>,
}

impl State {
    fn restart(&mut self, hangs_up: bool) {
        self.files.forget();
        self.sessions.restart();
        for socket in self.connections.drain(..).filter(|_| hangs_up) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// The server. It serves until the process ends.
#[derive(Debug, Clone)]
pub struct TestServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    faults: Mutex<Faults>,
    changed: Condvar,
    state: Mutex<State>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TestServer {
    /// Begins to serve on all of 127.0.0.0/8.
    pub fn begin() -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), shared: Arc::default() };
        let shared = Arc::clone(&server.shared);
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, shared) = (socket.unwrap(), Arc::clone(&shared));
                thread::spawn(move || Service::of(socket, shared).serve());
            }
        });
        server
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The address of a file on it, of version 3 unless the parameters say otherwise.
    pub fn url(&self, name: &str, parameters: &str) -> String {
        let port = self.port();
        // Version 4.1 has no mount service.
        let mount = if parameters.contains("version=4.1") { String::new() } else { format!("&mountport={port}") };
        format!("nfs://127.0.0.1:{port}/export/{name}?timeout=10{mount}{parameters}")
    }

    /// Mounts it with little patience, though more than a busy machine lets a thread wait.
    pub fn mount(&self, parameters: &str) -> Arc<NfsMount> {
        let (silent, give_up) = (Duration::from_millis(400), Duration::from_millis(2_400));
        let limits = Limits { silent, give_up, connect: Duration::from_secs(5), kept_bytes: 1 << 20 };
        self.mount_within(parameters, limits)
    }

    /// Mounts it with other limits.
    pub fn mount_within(&self, parameters: &str, limits: Limits) -> Arc<NfsMount> {
        NfsMount::connect_within(&self.url("data", parameters).parse().unwrap(), limits).unwrap()
    }

    /// Changes its faults.
    pub fn set(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut lock(&self.shared.faults));
        self.shared.changed.notify_all();
    }

    /// Has it refuse an operation of version 4.1, so often.
    pub fn refuse(&self, op: Op, status: u32, times: u32) {
        self.set(|faults| faults.refuses.push(Refusal { op, status, after: 0, times }));
    }

    /// Begins a new life: what was not committed is forgotten, and all clients with their sessions and open files; connections are closed
    /// where `hangs_up`.
    pub fn restart(&self, hangs_up: bool) {
        lock(&self.shared.state).restart(hangs_up);
    }

    /// Forgets what was not committed, as after an error of its disk.
    pub fn forget_writes(&self) {
        lock(&self.shared.state).files.forget();
    }

    /// Forgets all clients, as when their leases have passed.
    pub fn forget_clients(&self) {
        lock(&self.shared.state).sessions.expire();
    }

    /// Clients that it knows.
    pub fn clients(&self) -> usize {
        lock(&self.shared.state).sessions.clients()
    }

    /// The longest time for which a client said nothing before it said something again, and how often one said that it is still there
    /// and nothing else. Both begin anew.
    pub fn renewals(&self) -> (Duration, u64) {
        lock(&self.shared.state).sessions.take_renewals()
    }

    /// Puts another file in the place of `name`.
    pub fn replace(&self, name: &str) {
        lock(&self.shared.state).files.name(name, 4711);
    }

    /// Durable contents of a file.
    pub fn contents(&self, name: &str) -> Vec<u8> {
        let state = lock(&self.shared.state);
        state.files.find(name).map_or_else(Vec::new, |file| state.files.contents(file))
    }

    /// Calls of this procedure of version 3 so far.
    pub fn calls(&self, procedure: u32) -> u64 {
        lock(&self.shared.state).calls.get(&procedure).copied().unwrap_or(0)
    }

    /// How often this operation of version 4.1 was done so far.
    pub fn done(&self, op: Op) -> u64 {
        lock(&self.shared.state).done.get(&(op as u32)).copied().unwrap_or(0)
    }
}
